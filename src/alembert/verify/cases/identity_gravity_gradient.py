"""An identity on random trees."""

import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    RATE,
    RATE_REASON,
    TREES,
    rate_along,
    states,
    tree,
)


@case(
    source="Forces of gravity and springs are the gradient of the potential energy",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 4},
)
def identity_gravity_gradient(count: int) -> Items:
    """The bias at rest is the gradient of the potential energy, in tangent coordinates."""
    for name in TREES:
        model = tree(name)
        q, _, _ = states(model, count)
        v = np.eye(model.nv)[:, None, :]
        gradient = rate_along(lambda q, v, m=model: m.potential_energy(q), model, q, v, 0 * v).T
        bias = model.bias_forces(q, np.zeros(model.nv))
        energy = np.abs(model.potential_energy(q))[
            :, None
        ]  # its rounding is what the differences divide by h
        error = np.max(np.abs(gradient - bias) / (np.abs(bias).max(axis=-1, keepdims=True) + energy))
        yield Check(f"{name}: residual / terms", error, 0.0, RATE, RATE_REASON)
