"""Constraints on trees whose terms are made by loops: the same motion as by straight code."""

import numpy as np
import pytest

import alembert as al
from alembert.constraints import compiled


@pytest.mark.parametrize("parameters", [False, True])
def test_loops_and_straight_code_agree(monkeypatch, parameters):
    def model(name):
        builder = al.ModelBuilder(name)
        mass = builder.parameter("m", 0.7) if parameters else 0.7
        for k in range(5):
            parent = f"link{k - 1}" if k else "world"
            axis = (0, 1, 0) if k % 2 else (0, 0, 1)
            builder.body(f"link{k}", al.Inertia.rod(mass, (0, 0, 0), (0.3, 0, 0)), joint=al.Revolute(axis),
                         parent=parent, placement=(0.3 if k else 0.0, 0, 0))  # fmt: skip
        builder.coupling("gear", "link3_joint", ["link1_joint"], [2.0])
        return builder.build()

    rng = np.random.default_rng(3)
    v, tau = rng.normal(size=5), rng.normal(size=5)
    v[3] = 2 * v[1]
    q = np.array([0.2, 0.3, -0.4, 0.6, 0.1])
    wrench = {"link4": rng.normal(size=6)}
    found = []
    for pairs in (1000, 0):
        monkeypatch.setattr(compiled, "PAIRS", pairs)
        m = model(f"chain{pairs}{parameters}")  # kernels are kept by the model's fingerprint
        run = al.simulate(m, q, v, duration=0.05, step=5e-3, integrator="rk4")
        found.append(
            [
                m.forward_dynamics(q, v, tau),
                m.forward_dynamics(q, v, tau, wrenches=wrench),
                run.q[-1],
                run.v[-1],
            ]
        )
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)  # rounding, of accelerations up to 1e3
