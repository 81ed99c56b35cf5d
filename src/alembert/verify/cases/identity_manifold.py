"""An identity on random trees."""

import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    states,
    tree,
)


@case(
    source="Configurations form a manifold: integrate and difference undo each other",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 64},
)
def identity_manifold(count: int) -> Items:
    """Configurations: q + (q' - q) = q', and (q + v) - q = v, for every joint type."""
    model = tree("plain")
    q, v, _ = states(model, count)
    v = 0.9 * v / np.max(np.abs(v))
    moved = model.integrate(q, v)
    reason = "rounding of exponential and logarithm, angles up to 2 pi"
    yield Check("difference of integrate", np.max(np.abs(model.difference(q, moved) - v)), 0.0, 1e-13, reason)
    other = states(model, count, seed=1)[0]
    back = model.integrate(q, model.difference(q, other))
    yield Check("integrate of difference", np.max(np.abs(model.difference(back, other))), 0.0, 1e-12, reason)
