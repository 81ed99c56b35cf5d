"""Lin and Yae 1989."""

import numpy as np

from alembert.linear import linearize
from alembert.verify.case import Check, Items, case
from alembert.verify.mechanisms import lin_yae_two_link
from alembert.verify.papers import acc1989


@case(
    source=acc1989(
        "Lin, Yae",
        "two-link matrices A and B",
    ),
    kind="published",
    tags=("linearisation", "acc1989"),
    missing="""link data (a lost figure); the printed matrices determine mass matrix and stiffness, which the links
    here have""",
)
def lin_yae_matrices() -> Items:
    """State and input matrix of a hanging two-link arm."""
    model = lin_yae_two_link()
    order = [1, 0]  # (theta2, theta1)
    linear = linearize(model, [0.0, 0.0])
    A, B = linear.A[2:, :2][np.ix_(order, order)], linear.B[2:][order]
    reason = "one unit of the last printed digit, which is cut and not rounded in the first entry"
    yield Check(
        "A, lower left", A, [[-5.191, 3.4612], [1.1537, -4.0380]], [[1e-3, 1e-4], [1e-4, 1e-4]], reason
    )
    yield Check("A, lower right", linear.A[2:, 2:], np.zeros((2, 2)), 0.0, "no damping")
    yield Check("B, lower", B, [[-0.0824, 0.0294], [0.0294, -0.0176]], 1e-4, reason)
    yield Check(
        "frequencies [rad/s]",
        linear.modes().frequencies,
        (1.592, 2.587),
        5e-4,
        "those of the printed A, four digits",
    )
