"""Lin and Yae 1989."""

import numpy as np

from alembert.joints import Revolute
from alembert.linear import linearize
from alembert.model import WORLD, Inertia, ModelBuilder
from alembert.verify.case import Check, Items, case
from alembert.verify.papers import acc1989


@case(
    source=acc1989(
        "Lin, Yae",
        "seven-joint arm: pattern of M^-1 P2, accuracy of linearisation",
    ),
    kind="published",
    tags=("linearisation", "acc1989"),
    missing="""link data and mass matrix; used for the pattern and for the stated accuracy 1e-6 only, on the arm of
    alembert.library""",
)
def lin_yae_seven_link_pattern() -> Items:
    """Straight up, the roll and the pitch joints of a seven-joint arm do not couple; differences agree to 1e-6."""
    builder = ModelBuilder("seven")
    parent = WORLD
    for k in range(7):
        axis = (0.0, 0.0, 1.0) if k % 2 == 0 else (0.0, 1.0, 0.0)
        link = Inertia(5.0 - 0.5 * k, (0, 0, 0.15), (0.06, 0, 0.05, 0, 0, 0.02))
        builder.body(f"link{k}", link, joint=Revolute(axis), parent=parent, placement=(0, 0, 0.3 if k else 0))
        parent = f"link{k}"
    model = builder.build()
    linear = linearize(model, np.zeros(7))
    K = linear.A[7:, :7]
    yield Check(
        "couplings of roll and pitch",
        [K[0::2, 1::2].ravel(), K[1::2, 0::2].ravel()],
        np.zeros((2, 12)),
        1e-12,
        "rounding; entries up to some 10",
    )
    yield Check("M^-1 P1 at rest", linear.A[7:, 7:], np.zeros((7, 7)), 1e-13, "printed as zero; rounding")
    h, zero = 1e-5, np.zeros(7)

    def at(dq: np.ndarray) -> np.ndarray:
        return model.forward_dynamics(dq, zero, model.bias_forces(zero, zero))

    differences = np.column_stack([(at(h * e) - at(-h * e)) / (2 * h) for e in np.eye(7)])
    yield Check(
        "differences / size",
        np.max(np.abs(K - differences)) / np.max(np.abs(K)),
        0.0,
        1e-6,
        "stated in the paper",
    )
