"""Rodriguez 1989, innovations."""

import numpy as np

from alembert.operators import diagonalising_velocities
from alembert.verify.case import Check, Items, case
from alembert.verify.papers import acc1989
from alembert.verify.random_models import (
    OPERATOR_ALL,
    ROUNDING,
    ROUNDING_REASON,
    operator_case,
)


@case(
    source=acc1989(
        "Rodriguez",
        "T = 1/2 n^T D n, n = [I + H phi K]* v",
    ),
    kind="published",
    tags=("operators", "random", "acc1989"),
)
def innovations_energy() -> Items:
    """Velocities in which the kinetic energy is diagonal."""
    for name in OPERATOR_ALL:
        c = operator_case(name)
        n = np.asarray(diagonalising_velocities(c.model, c.q, c.v))
        T = c.model.kinetic_energy(c.q, c.v)
        yield Check(
            f"{name}: relative difference", n @ (c.ops.D @ n) / 2 / T - 1, 0.0, ROUNDING, ROUNDING_REASON
        )
