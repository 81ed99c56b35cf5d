"""An identity on random trees."""

import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    ROUNDING,
    ROUNDING_REASON,
    TREES,
    states,
    times,
    tree,
)


@case(
    source="T = 1/2 v^T M v; M symmetric and positive definite",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 64},
)
def identity_kinetic_energy(count: int) -> Items:
    """Kinetic energy from the mass matrix and from the velocities of the bodies."""
    for name in TREES:
        model = tree(name)
        q, v, _ = states(model, count)
        M, T = model.mass_matrix(q), model.kinetic_energy(q, v)
        error = np.max(np.abs(np.sum(v * times(M, v), axis=-1) / 2 / T - 1))
        yield Check(f"{name}: relative difference", error, 0.0, ROUNDING, ROUNDING_REASON)
        skew = np.max(np.abs(M - np.swapaxes(M, -1, -2))) / np.max(np.abs(M))
        yield Check(f"{name}: asymmetry of M", skew, 0.0, ROUNDING, ROUNDING_REASON)
        yield Check(
            f"{name}: M positive definite", float(np.linalg.eigvalsh(M).min() > 0), 1.0, 0, "yes or no"
        )
