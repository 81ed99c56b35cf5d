"""An identity on random trees."""

import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    ROUNDING,
    ROUNDING_REASON,
    TREES,
    relative,
    states,
    tree,
    wrenches_on,
)


@case(
    source="""Inverse dynamics of forward dynamics gives the efforts back; trees with every joint type of the
    registry""",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 64},
)
def identity_forward_inverse(count: int) -> Items:
    """ID(FD(tau)) = tau, with external wrenches, springs, friction, armature and rotors."""
    for name in TREES:
        model = tree(name)
        q, v, tau = states(model, count)
        wrenches = wrenches_on(model, count)
        a = model.forward_dynamics(q, v, tau, wrenches=wrenches)
        back = model.inverse_dynamics(q, v, a, wrenches=wrenches)
        terms = np.abs(model.multiply_mass_matrix(q, a)) + np.abs(model.bias_forces(q, v, wrenches=wrenches))
        yield Check(f"{name}: residual / terms", relative(back - tau, terms), 0.0, ROUNDING, ROUNDING_REASON)
