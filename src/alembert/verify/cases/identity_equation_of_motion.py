"""An identity on random trees."""

import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    ROUNDING,
    ROUNDING_REASON,
    TREES,
    relative,
    states,
    times,
    tree,
    wrenches_on,
)


@case(
    source="""M(q) a + bias = inverse dynamics; three algorithms: composite bodies, Newton-Euler with and without
    accelerations""",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 64},
)
def identity_equation_of_motion(count: int) -> Items:
    """Mass matrix, bias and inverse dynamics agree."""
    for name in TREES:
        model = tree(name)
        q, v, a = states(model, count)
        wrenches = wrenches_on(model, count)
        product, bias = times(model.mass_matrix(q), a), model.bias_forces(q, v, wrenches=wrenches)
        tau = model.inverse_dynamics(q, v, a, wrenches=wrenches)
        error = relative(product + bias - tau, np.abs(product) + np.abs(bias))
        yield Check(f"{name}: residual / terms", error, 0.0, ROUNDING, ROUNDING_REASON)
