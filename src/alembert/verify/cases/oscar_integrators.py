"""Kasahara, Honda and Narita 1989."""

import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.papers import acc1989


@case(
    source=acc1989(
        "Kasahara, Honda, Narita",
        "integration formulas",
    ),
    kind="published",
    tags=("simulation", "acc1989"),
)
def oscar_integrators() -> Items:
    """Weights of the Adams formulas; the paper's "trapezoidal" rule is the one of Adams and Bashforth of order 2."""
    from alembert.simulate.schemes import ADAMS_BASHFORTH, ADAMS_MOULTON

    def weights(values: object) -> list[float]:
        return [float(x) for x in values]  # type: ignore[attr-defined]

    reason = "fractions"
    yield Check("x += h (3 f - f')/2", weights(ADAMS_BASHFORTH[2]), (1.5, -0.5), 0.0, reason)
    printed = np.array([55, -59, 37, -9]) / 24
    yield Check("AB4: (55, -59, 37, -9)/24", weights(ADAMS_BASHFORTH[4]), printed, 1e-16, reason)
    printed = np.array([9, 19, -5, 1]) / 24
    yield Check("AM4: (9, 19, -5, 1)/24", weights(ADAMS_MOULTON), printed, 1e-16, reason)
