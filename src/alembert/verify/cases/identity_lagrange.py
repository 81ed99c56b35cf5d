"""An identity on random trees."""

import casadi as ca
import numpy as np

from alembert import library
from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    states,
)


@case(
    source="""Lagrange's equations d/dt dT/dv - dT/dq + dU/dq = tau by automatic differentiation of the energies""",
    kind="independent program",
    tags=("tree", "random"),
    parameters={"seed": 6, "bodies": 6, "count": 5},
)
def identity_lagrange(seed: int, bodies: int, count: int) -> Items:
    """Inverse dynamics against Lagrange's equations of the two energies, on joints whose coordinates add."""
    kinds = ("revolute", "prismatic", "screw", "cylindrical", "universal", "translational", "gimbal")
    model = library.random_tree(seed, bodies=bodies, kinds=kinds)
    n = model.nv
    q, v, a = (ca.SX.sym(x, n) for x in "qva")
    s = model.symbolic
    T, U = s.kinetic_energy(q, v), s.potential_energy(q)
    p = ca.gradient(T, v)
    tau = ca.jtimes(p, ca.vertcat(q, v), ca.vertcat(v, a)) - ca.gradient(T, q) + ca.gradient(U, q)
    function = ca.Function("lagrange", [q, v, a], [tau])
    worst = 0.0
    for x in zip(*states(model, count), strict=True):
        expected, found = function(*x).full().ravel(), model.inverse_dynamics(*x)
        worst = max(worst, float(np.max(np.abs(found - expected)) / np.max(np.abs(expected))))
    yield Check(
        "relative difference", worst, 0.0, 1e-12, "rounding of a gradient of some thousand operations"
    )
