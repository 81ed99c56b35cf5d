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
    source="Virtual work: a wrench at a frame is the effort J^T F",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 32},
)
def identity_jacobian_power(count: int) -> Items:
    """External wrenches act as the transposed Jacobians of their frames."""
    for name in TREES:
        model = tree(name)
        q, v, a = states(model, count)
        wrenches = wrenches_on(model, count)
        tau = model.inverse_dynamics(q, v, a)
        difference = tau - model.inverse_dynamics(q, v, a, wrenches=wrenches)
        expected = sum(times(np.swapaxes(model.frame_jacobian(q, f), -1, -2), F) for f, F in wrenches.items())
        yield Check(
            f"{name}: residual / efforts",
            relative(difference - expected, np.abs(tau)),
            0.0,
            ROUNDING,
            ROUNDING_REASON,
        )
