"""An identity on random trees."""

import casadi as ca
import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    ROUNDING,
    ROUNDING_REASON,
    TREES,
    friction_effort,
    states,
    tree,
    wrenches_on,
)


@case(
    source="dE/dt = tau . v + sum F . V - friction . v",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 8},
)
def identity_power_balance(count: int) -> Items:
    """The energy changes by the power of efforts, wrenches and friction; its rate by automatic differentiation."""
    for name in TREES:
        model = tree(name)
        q, v, tau = states(model, count)
        wrenches = wrenches_on(model, count)
        a = model.forward_dynamics(q, v, tau, wrenches=wrenches)
        x, y, z = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv), ca.SX.sym("a", model.nv)
        s = model.symbolic
        dT = ca.jtimes(s.kinetic_energy(x, y), ca.vertcat(x, y), ca.vertcat(s.rate(x, y), z))
        dU = ca.jtimes(s.potential_energy(x), x, s.rate(x, y))
        function = ca.Function("dE", [x, y, z], [ca.vertcat(dT, dU)])
        rates = np.array([function(*state).full().ravel() for state in zip(q, v, a, strict=True)])
        power = model.power(q, v, tau, wrenches=wrenches) - np.sum(friction_effort(model, v) * v, axis=-1)
        # dT/dt is v . M a + 1/2 v . dM/dt v: terms of that size cancel
        terms = np.sum(np.abs(v) * np.abs(model.multiply_mass_matrix(q, a)), axis=-1)
        terms += np.sum(np.abs(v) * np.abs(model.coriolis_forces(q, v)), axis=-1) + np.abs(rates).sum(axis=-1)
        error = np.max(np.abs(rates.sum(axis=-1) - power) / terms)
        yield Check(f"{name}: residual / terms", error, 0.0, ROUNDING, ROUNDING_REASON)
