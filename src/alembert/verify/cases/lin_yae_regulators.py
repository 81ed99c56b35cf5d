"""Lin and Yae 1989."""

from functools import partial
from typing import Any

import numpy as np

from alembert.linear import decoupled_pd, linearize, place_poles
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.mechanisms import lin_yae_two_link
from alembert.verify.motion import motion
from alembert.verify.papers import acc1989


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
