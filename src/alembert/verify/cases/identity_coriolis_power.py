"""An identity on random trees."""

import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    RATE,
    RATE_REASON,
    TREES,
    rate_along,
    states,
    times,
    tree,
)


@case(
    source="v . c(q, v) = 1/2 v . (dM/dt) v: dM/dt - 2C is skew",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 32},
)
def identity_coriolis_power(count: int) -> Items:
    """Coriolis forces do the work of the changing mass matrix."""
    for name in TREES:
        model = tree(name)
        q, v, _ = states(model, count)
        half = rate_along(lambda q, v, m=model: m.mass_matrix(q), model, q, v, 0 * v) / 2
        expected = np.sum(v * times(half, v), axis=-1)
        scale = np.sum(np.abs(v) * times(np.abs(half), np.abs(v)), axis=-1)
        error = np.max(np.abs(np.sum(v * model.coriolis_forces(q, v), axis=-1) - expected) / scale)
        yield Check(f"{name}: residual / terms", error, 0.0, RATE, RATE_REASON)
