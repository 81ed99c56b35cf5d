"""The density of the upper atmosphere over the height: exponential or tabulated, as expressions.

`Exponential` and tables depend on the height alone: they leave out the day side (a factor of 2 to 6 at 400 km), the
activity
of the Sun (a factor of 10) and storms. A table for given activity can be made with MSIS (`msis_profile`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import Numbers
from alembert.errors import ArgumentError, UnsupportedError
from alembert.spacecraft.epochs import Epoch
from alembert.spacecraft.frames import EQUATOR, FLATTENING

Array = np.ndarray


@dataclass(frozen=True)
class Exponential:
    """density exp(-(height - reference)/scale): [kg/m^3], [m], [m]. A good fit over some 50 km only."""

    density: float
    reference: float
    scale: float

    def __post_init__(self) -> None:
        for name in ("density", "scale"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ArgumentError(
                    f"Exponential: {name} is {getattr(self, name)!r}, expected a positive number"
                )

    def at(self, height: Any) -> Any:
        """Density at a height, a number or an expression."""
        return self.density * ca.exp((self.reference - height) * (1 / self.scale))


@dataclass(frozen=True, eq=False)
class Profile:
    """Densities [kg/m^3] at heights [m], ascending; the logarithm is linear between them and goes on beyond the ends."""

    heights: Numbers
    densities: Numbers

    def __post_init__(self) -> None:
        h, rho = (np.array(x, dtype=float) for x in (self.heights, self.densities))
        if h.ndim != 1 or h.shape != rho.shape or len(h) < 2 or np.any(np.diff(h) <= 0):
            raise ArgumentError("Profile: heights, expected two or more, ascending, with a density for each")
        if not np.all(rho > 0):
            raise ArgumentError("Profile: densities, expected positive numbers")
        object.__setattr__(self, "heights", h)
        object.__setattr__(self, "densities", rho)

    def at(self, height: Any) -> Any:
        """Density at a height, a number or an expression."""
        h, rho = self.heights, np.log(self.densities)
        slopes = np.diff(rho) / np.diff(h)
        found = rho[0] + slopes[0] * (height - h[0])
        for k in range(1, len(slopes)):  # a kink at each node: no branches, and slopes are right everywhere
            found = found + (slopes[k] - slopes[k - 1]) * ca.fmax(height - h[k], 0)
        return ca.exp(found)


Atmosphere = Exponential | Profile
_CIRA72 = (
    (100, 5.297e-7), (110, 9.661e-8), (120, 2.438e-8), (130, 8.484e-9), (140, 3.845e-9), (150, 2.070e-9),
    (180, 5.464e-10), (200, 2.789e-10), (250, 7.248e-11), (300, 2.418e-11), (350, 9.518e-12), (400, 3.725e-12),
    (450, 1.585e-12), (500, 6.967e-13), (600, 1.454e-13), (700, 3.614e-14), (800, 1.170e-14), (900, 5.245e-15),
    (1000, 3.019e-15),
)  # fmt: skip


def cira72() -> Profile:
    """Mean density from 100 to 1000 km, CIRA-72 as tabulated by Vallado (Fundamentals of Astrodynamics, table 8-4)."""
    return Profile([1e3 * h for h, _ in _CIRA72], [rho for _, rho in _CIRA72])


def msis_profile(
    epoch: Epoch,
    *,
    f107: float,
    ap: float,
    latitude_deg: float = 0.0,
    longitude_deg: float = 0.0,
    heights: Numbers = None,
) -> Profile:
    """A profile by NRLMSIS 2.1 for a given solar flux and magnetic activity; needs `pymsis` (pip install
    alembert[space]).
    """
    try:
        import pymsis
    except ImportError:
        raise UnsupportedError("msis_profile needs the package pymsis: pip install alembert[space]") from None
    h = np.arange(100e3, 1001e3, 25e3) if heights is None else np.asarray(heights, dtype=float)
    found = pymsis.calculate(
        np.datetime64(epoch.utc.removesuffix("Z")),
        longitude_deg,
        latitude_deg,
        h / 1e3,
        f107s=[f107],
        f107as=[f107],
        aps=[[ap] * 7],
    )
    return Profile(h, np.asarray(found, dtype=float).reshape(len(h), -1)[:, 0])


def height_over_ellipsoid(square: Any, north: Any) -> Any:
    """Along the radius, as an expression; within 50 m of the geodetic height up to 1000 km.

    Of a place by the square of its distance from the Earth's centre, and its distance from the equator's plane.
    """
    e2 = FLATTENING * (2 - FLATTENING)
    # the radius of the ellipse, a sqrt((1 - e^2)/(1 - e^2 (1 - s^2))), with s = north/d
    return ca.sqrt(square) - EQUATOR * ca.sqrt((1 - e2) * square / ((1 - e2) * square + e2 * north**2))
