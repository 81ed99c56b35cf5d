"""Slews along a sliding surface, designed so that they are proven to get there.

After Dwyer and Sira-Ramirez (1988); Dwyer, Karray and Kim (1989).

The craft has the inertia J = J_0 + D, |D| <= d, of which J_0 is known, and a disturbance torque |f| <= F acts. With the law
`sliding_mode`, s = w + c e, e the vector part of the error's quaternion,

    J s' = -w x (D w) + c D e' + f - k sat(s/p),      |w| <= |s| + c,   |e'| <= |w|/2                                   (1)

Let a be the largest |s| on the way, k = T + n with T = d (a + c)^2 + c d (a + c)/2 + F. As s_i sat(s_i/p) >= |s_i| - p/4,
V = s^T J s / 2 obeys

    V' <= -n |s| + (3/4) p k,                                                                                          (2)

so that |s| falls to 2 r, r = (3/4) p k / n, within 2 j |s_0| / n (j and i the largest and least moments of inertia), and
stays below q = 2 r sqrt(j/i); on the way a <= sqrt(j/i) max(|s_0|, 2 r). Then (|e|^2)' = e_0 (e s - c |e|^2) takes |e| below
q/c, where it stays: the pointing error is at most 2 asin(q/c). k and p follow from the time to reach and this accuracy. The
proof is one for continuous time: a sampled law needs a period well below J p/k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert import arguments
from alembert.arguments import Numbers
from alembert.errors import ArgumentError
from alembert.spacecraft.laws import sliding_mode

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class SlidingDesign:
    """A law of `sliding_mode`, and what is proven of it for all inertias and disturbances of the design."""

    inertia: Array
    slope: float
    """c [1/s]"""
    torque: float
    """k [N m], by axis"""
    width: float
    """p [rad/s], of the layer in which the law is linear"""
    reach: float
    """the surface is reached within [s]"""
    accuracy: float
    """the pointing error ends below [rad]"""
    rate: float
    """on the way, no rate is above [rad/s]"""
    peak_torque: float
    """nor a torque of the law above [N m], its size; without the momentum of wheels"""
    start: float
    """the largest |s| for which all this holds [rad/s]"""

    def law(
        self,
        q_wxyz: Numbers,
        rate: Any,
        *,
        target_wxyz: Numbers = (1.0, 0.0, 0.0, 0.0),
        momentum: Numbers = (0.0, 0.0, 0.0),
    ) -> Any:
        """The torque on the craft in its axes [N m], of numbers or expressions."""
        return sliding_mode(
            q_wxyz,
            rate,
            inertia=self.inertia,
            torque=self.torque,
            slope=self.slope,
            width=self.width,
            target_wxyz=target_wxyz,
            momentum=momentum,
        )


def sliding_design(
    inertia: Numbers,
    *,
    slope: float,
    reach: float,
    accuracy: float,
    angle: float = math.pi,
    rate: float = 0.0,
    inertia_error: float = 0.0,
    disturbance: float = 0.0,
) -> SlidingDesign:
    """Torque and layer of a sliding law that reaches its surface in time, and points as well as is asked.

    Args:
        inertia: (3, 3), that the law knows [kg m^2].
        slope: c [1/s]; on the surface a small angle halves every 1.39/c seconds.
        reach: time to reach the surface [s].
        accuracy: the pointing error at the end [rad].
        angle, rate: the largest ones at the start [rad, rad/s].
        inertia_error: the largest size of what the inertia differs by [kg m^2].
        disturbance: the largest torque from outside, its size [N m].
    """
    what = "sliding_design"
    J = arguments.numbers(what, "inertia", inertia)
    if J.shape != (3, 3) or not np.allclose(J, J.T) or np.linalg.eigvalsh(J)[0] <= 0:
        raise ArgumentError(
            f"sliding_design: inertia is {J.tolist()}, expected a symmetric, positive matrix (3, 3)"
        )
    for name, value in (("slope", slope), ("reach", reach), ("accuracy", accuracy)):
        if not (np.ndim(value) == 0 and 0 < arguments.numbers(what, name, value) < np.inf):
            raise ArgumentError(f"sliding_design: {name} is {value!r}, expected a number above zero")
    for name, value in (
        ("angle", angle), ("rate", rate), ("inertia_error", inertia_error), ("disturbance", disturbance)
    ):  # fmt: skip
        if not (np.ndim(value) == 0 and 0 <= arguments.numbers(what, name, value) < np.inf):
            raise ArgumentError(f"sliding_design: {name} is {value!r}, expected a number of zero or more")
    moments = np.linalg.eigvalsh(J)
    least, most = float(moments[0]) - inertia_error, float(moments[-1]) + inertia_error
    if least <= 0:
        raise ArgumentError(
            f"sliding_design: inertia_error is {inertia_error:g} kg m^2, and the least moment of inertia {moments[0]:g}; "
            "nothing is known of a craft whose inertia may vanish"
        )
    ratio = math.sqrt(most / least)
    start = rate + slope * math.sin(min(angle, math.pi) / 2)
    end = slope * math.sin(min(accuracy, math.pi) / 2)  # q of the module's documentation
    r = end / (2 * ratio)
    largest = ratio * max(start, 2 * r)
    turning = largest + slope
    needed = inertia_error * (turning**2 + slope * turning / 2) + disturbance
    spare = 2 * most * max(start, 2 * r) / reach
    torque = needed + spare
    width = r * spare / (0.75 * torque)
    size = float(moments[-1])
    peak = size * turning**2 + slope * size * turning / 2 + math.sqrt(3) * torque
    return SlidingDesign(J, slope, torque, width, reach, accuracy, turning, peak, start)
