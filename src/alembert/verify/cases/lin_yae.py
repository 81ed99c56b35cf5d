"""Lin and Yae 1989: recursive linearisation."""

from functools import partial
from typing import Any

import numpy as np

from alembert.joints import Revolute
from alembert.linear import decoupled_pd, linearize, place_poles
from alembert.model import WORLD, Inertia, ModelBuilder
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.mechanisms import lin_yae_two_link
from alembert.verify.motion import motion
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


@case(
    source=acc1989(
        "Lin, Yae",
        "decoupled PD gains (37)-(38)",
    ),
    kind="published",
    tags=("linearisation", "acc1989"),
    parameters={"frequencies": (2.0, 3.0), "damping": 0.7},
)
def lin_yae_decoupled_gains(frequencies: tuple[float, float], damping: float) -> Items:
    """The closed loop of the decoupled PD law has the asked-for frequencies and damping, joint by joint."""
    model = lin_yae_two_link()
    linear = linearize(model, [0.3, -0.4], [0.5, -0.2])
    regulator = decoupled_pd(linear, list(frequencies), damping)
    w = np.array(frequencies)
    expected = np.sort_complex(
        np.concatenate([w * (-damping + s * 1j * np.sqrt(1 - damping**2)) for s in (1, -1)])
    )
    poles = np.sort_complex(regulator.poles())
    reason = "rounding times the condition of the mass matrix"
    yield Check("real parts of the poles", poles.real, expected.real, 1e-12, reason)
    yield Check("imaginary parts of the poles", poles.imag, expected.imag, 1e-12, reason)


@case(
    source=acc1989(
        "Lin, Yae",
        "regulators from 0.05 and 1.0 rad",
    ),
    kind="published",
    tags=("linearisation", "simulation", "acc1989"),
    parameters={"deviations": (0.05, 1.0), "duration": 12.0},
    missing="poles; those here are ours (lower gains lose the links from 1 rad)",
)
def lin_yae_regulators(deviations: tuple[float, ...], duration: float) -> Items:
    """Pole placement and decoupled PD bring the two-link arm back from small and large deviations."""
    model = lin_yae_two_link()
    linear = linearize(model, [0.0, 0.0])
    regulators = {
        "decoupled PD": decoupled_pd(linear, [2.0, 3.0], 0.7),
        "pole placement": place_poles(linear, [-1.0, -1.5, -2.0, -2.5], method="KNV0"),
    }
    lines = []
    for name, regulator in regulators.items():
        for deviation in deviations:
            t, q, v = motion(
                model,
                model,
                np.full(2, deviation),
                duration=duration,
                efforts=partial(_efforts, regulator),
                tolerance=1e-9,
            )
            left = max(np.abs(q[-1]).max(), np.abs(v[-1]).max()) / deviation
            yield Check(
                f"{name}, {deviation:g} rad: left / deviation",
                left,
                0.0,
                1e-3,
                "slowest pole -1: exp(-12) = 6e-6, times the nonlinear part",
            )
            lines.append(Line(f"{name}, {deviation:g} rad", t, q[:, 0] / deviation))
    yield Plot("t [s]", "angle 1 / deviation", tuple(lines))


def _efforts(regulator: Any, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.asarray(regulator.efforts(q, v))


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
