"""Loops of what flies on other roots than free joints: they are evaluated with the root at the origin."""

import numpy as np
import pytest
from constraint_helpers import dense_solution

import alembert as al


@pytest.mark.parametrize("root", [al.Free(), al.Planar(), al.Translational()], ids=lambda joint: joint.kind)
def test_a_linkage_on_a_flying_hub(root):
    box = al.Inertia.box(1.0, (0.2, 0.3, 0.4))
    builder = al.ModelBuilder("flying")
    builder.body("hub", al.Inertia.box(5.0, (0.5, 0.5, 0.5)), joint=root)
    hinge = al.Revolute((0, 0, 1))
    builder.body("crank", box, joint=hinge, joint_name="a", parent="hub", placement=(0.2, 0, 0))
    builder.body("rod", box, joint=hinge, joint_name="b", parent="crank", placement=(0.3, 0, 0))
    builder.frame("tip", "rod", (0.4, 0, 0))
    builder.frame("anchor", "hub", (0.2, 0.45, 0))
    builder.loop("pin", hinge, "tip", "anchor")
    model = builder.build()
    rng = np.random.default_rng(3)
    guess = model.random_configuration(rng)
    guess[model.q_slice("a")], guess[model.q_slice("b")] = 0.3, 1.9
    state = model.assemble(guess, rng.normal(size=model.nv))
    tau = rng.normal(size=model.nv)
    expected, _ = dense_solution(model, state.q, state.v, tau)
    found = model.constrained_dynamics(state.q, state.v, tau).accelerations
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)  # well conditioned
