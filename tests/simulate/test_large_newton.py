"""Implicit steps of large systems: the Jacobian column by column gives the same steps as straight code."""

import numpy as np
import pytest

import alembert as al
from alembert.simulate import implicit_steps


@pytest.mark.parametrize("integrator", ["variational", "generalised_alpha"])
@pytest.mark.parametrize("batch", [False, True])
def test_columns_and_straight_code_agree(integrator, batch, monkeypatch):
    model = al.library.two_link()
    q = np.array([0.3, -0.5]) + (np.linspace(0.0, 1.0, 3)[:, None] if batch else 0.0)
    found = []
    for longest in (10**9, 0):
        monkeypatch.setattr(implicit_steps, "LONGEST", longest)
        fresh = model.replace(
            name=f"{integrator}{longest}{batch}"
        )  # kernels are kept by the model's fingerprint
        run = al.simulate(fresh, q, duration=0.2, step=1e-2, integrator=integrator)
        found.append(np.concatenate([np.ravel(run.q), np.ravel(run.v)]))
    # both solve the same equations to rounding, which twenty steps magnify little
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-11)


def test_columns_close_loops(monkeypatch):
    monkeypatch.setattr(implicit_steps, "LONGEST", 0)
    builder = al.ModelBuilder("bars", gravity=(0.0, -9.81, 0.0))
    upright, beam = al.Inertia.rod(1.0, (0, 0, 0), (0, 1, 0)), al.Inertia.rod(1.0, (0, 0, 0), (1.5, 0, 0))
    for i in range(2):
        builder.body(f"post{i}", upright, joint=al.Revolute(), placement=(1.5 * i, 0, 0))
    builder.body("beam", beam, joint=al.Revolute(), parent="post0", placement=(0, 1.0, 0))
    builder.frame("top", "post1", (0.0, 1.0, 0.0))
    builder.frame("end", "beam", (1.5, 0.0, 0.0))
    builder.loop("window", al.Revolute(), "top", "end")
    model = builder.build()
    v = np.array([-1.0 if "post" in n else 1.0 for n in model.speed_names])
    run = al.simulate(model, np.zeros(3), v, duration=0.3, step=5e-3, integrator="variational")
    assert np.abs(model.constraint_residual(run.q)).max() < 1e-12  # closed at every node, to rounding
