"""Jacobians of dynamics of every joint type on a thousand random states, against automatic differentiation."""

import numpy as np
import pytest

from alembert import Friction, Inertia, ModelBuilder, Placement, Revolute, Rotor, library
from alembert.check.oracles import ORACLES, _regular, wrench_frame
from alembert.joints import REGISTRY

STATES = 100  # of each joint type: more than a thousand together
RELATIVE = 1e-9


def geared(kind):
    """The joint between two revolute ones; what it moves carries the rotor of the last, whose momentum it turns."""
    joint = library.example_joint(kind, 5)
    body = Inertia(1.3, (0.1, -0.05, 0.2), (0.11, 0.01, 0.13, -0.02, 0.015, 0.09))
    builder = ModelBuilder("geared", gravity=(1.0, 2.0, -9.0))
    builder.body("base", body, joint=Revolute((0.6, 0.0, 0.8)))
    builder.body(
        "middle",
        body,
        joint=joint,
        joint_name="middle",
        parent="base",
        placement=Placement.from_rpy((0.3, -0.2, 0.5), translation=(0.3, 0.1, -0.2)),
        friction=Friction((0.3,) * joint.nv, (0.2,) * joint.nv, smoothing=0.05),
        armature=(0.05,) * joint.nv,
    )
    rotor = Rotor(inertia=1e-3, ratio=40.0, axis=(0.0, 0.6, 0.8))
    builder.body(
        "tip", body, joint=Revolute((0, 1, 0)), parent="middle", placement=(0.2, 0.3, 0.1), rotors=(rotor,)
    )
    return builder.build()


@pytest.mark.parametrize("kind", sorted(set(REGISTRY) - {"fixed"}))
def test_dynamics(kind):
    model = geared(kind)
    rng = np.random.default_rng(3)
    q = np.array([_regular(model, rng) for _ in range(STATES)])
    v, x = 2 * rng.normal(size=(2, STATES, model.nv))
    wrench = rng.normal(size=(STATES, 6))
    push = {wrench_frame(model): wrench}
    f = model.forward_dynamics_derivatives(q, v, x, wrenches=push)
    i = model.inverse_dynamics_derivatives(q, v, x, wrenches=push)
    condition = np.linalg.cond(model.mass_matrix(q))
    expected = model.forward_dynamics(q, v, x, wrenches=push)
    # the accelerations may come from the factor of the mass matrix, whose condition multiplies the rounding
    off = np.abs(f.acceleration - expected).max(axis=-1) / np.abs(expected).max(axis=-1)
    assert np.all(off <= np.maximum(1e-12, 1e-15 * condition))
    for name, last, found in (
        ("forward_dynamics", "tau", {"q": f.dq, "v": f.dv, "tau": f.dtau}),
        ("inverse_dynamics", "a", {"q": i.dq, "v": i.dv, "a": i.da}),
    ):
        oracle = ORACLES["ad"](model, name, None)
        forward = name == "forward_dynamics"
        for k in range(STATES):
            J = oracle({"q": q[k], "v": v[k], last: x[k], "wrench": wrench[k]})
            size = max(np.linalg.norm(J[key]) for key in found)
            tolerance = max(RELATIVE, 1e-14 * condition[k]) if forward else RELATIVE
            for key, jacobian in found.items():
                # a small one has its digits from larger ones: a millionth of these is what counts
                scale = max(np.linalg.norm(J[key]), 1e-6 * size)
                assert np.linalg.norm(jacobian[k] - J[key]) <= tolerance * scale, (name, key, k)
