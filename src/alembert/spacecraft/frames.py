"""Axes: inertial ones, those of the Earth, those of an orbit.

Inertial axes are those of the International Celestial Reference Frame (the mean equator and equinox of J2000 to 0.02").
Earth-fixed ones follow from them by

    E = R3(GAST) N P                                                                              (1)

with the precession angles of IAU 2006 (Capitaine, Wallace and Chapront 2003), the ten largest terms of nutation of
IAU 1980,
and Greenwich sidereal time from the rotation angle of the Earth (IERS Conventions 2010, chapter 5). Against the
whole theory
this is within 0.1"; UT1 is taken for UTC unless `ut1_utc` is given (up to 0.9 s or 13"), and polar motion (0.5") is
left out.
Within a run N P stays as it is at the epoch, which is 0.2" a day.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import Numbers, numbers
from alembert.errors import ArgumentError
from alembert.spacecraft.epochs import DAY, Epoch
from alembert.spatial.arrays import is_symbolic

Array = np.ndarray
ARCSECOND = math.pi / 648000
EARTH_RATE = 2 * math.pi * 1.00273781191135448 / DAY
"""rotation of the Earth [rad/s]"""
EQUATOR, FLATTENING = 6378137.0, 1 / 298.257223563
"""radius [m] and flattening of the ellipsoid WGS 84"""
_NUTATION = (  # multiples of l, l', F, D, Omega; longitude and obliquity ["]
    (0, 0, 0, 0, 1, -17.1996, 9.2025), (0, 0, 2, -2, 2, -1.3187, 0.5736), (0, 0, 2, 0, 2, -0.2274, 0.0977),
    (0, 0, 0, 0, 2, 0.2062, -0.0895), (0, 1, 0, 0, 0, 0.1426, 0.0054), (1, 0, 0, 0, 0, 0.0712, -0.0007),
    (0, 1, 2, -2, 2, -0.0517, 0.0224), (0, 0, 2, 0, 1, -0.0386, 0.0200), (1, 0, 2, 0, 2, -0.0301, 0.0129),
    (0, -1, 2, -2, 2, 0.0217, -0.0095), (1, 0, 0, -2, 0, -0.0158, -0.0001), (0, 0, 2, -2, 1, 0.0129, -0.0070),
    (-1, 0, 2, 0, 2, 0.0123, -0.0053),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class EarthAxes:
    """The Earth at an epoch: `tilt` takes inertial axes to those of its equator, it then turns by `angle` + rate t."""

    tilt: Array
    angle: float
    rate: float = EARTH_RATE

    @classmethod
    def at(cls, epoch: Epoch | None, *, ut1_utc: float = 0.0) -> EarthAxes:
        """(1); without an epoch the pole is the inertial z axis, and Greenwich is on x at t = 0."""
        if epoch is None:
            return cls(np.eye(3), 0.0)
        T = epoch.tdb_days / 36525
        if abs(T) > 2:
            raise ArgumentError(f"EarthAxes: {epoch.year:.0f} is outside 1800 to 2200, where the series hold")
        day, seconds = epoch.utc_days
        turns = 0.7790572732640 + 0.00273781191135448 * (day + (seconds + ut1_utc) / DAY)
        angle = 2 * math.pi * ((turns + (seconds + ut1_utc) / DAY) % 1.0)
        longitude, obliquity, mean = nutation(T)
        angle += ARCSECOND * (0.014506 + T * (4612.156534 + T * (1.3915817 - T * 4.4e-7)))
        angle += longitude * math.cos(mean + obliquity)
        N = rotation(0, -(mean + obliquity)) @ rotation(2, -longitude) @ rotation(0, mean)
        return cls(N @ precession(T), angle % (2 * math.pi))

    def fixed(self, t: float) -> Array:
        """E, from inertial to Earth-fixed axes, t seconds after the epoch."""
        return rotation(2, self.angle + self.rate * t) @ self.tilt

    @property
    def pole(self) -> Array:
        """The axis of rotation in inertial axes."""
        return self.tilt[2]


def rotation(axis: int, angle: float) -> Array:
    """R1, R2 or R3 (axis 0, 1, 2): components of a vector in axes that are turned by the angle."""
    c, s = math.cos(angle), math.sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3)
    R[i, i] = R[j, j] = c
    R[i, j], R[j, i] = s, -s
    return R


def precession(T: float) -> Array:
    """P, T centuries of TDB after J2000."""
    zeta = 2.650545 + T * (2306.083227 + T * (0.2988499 + T * 0.01801828))
    z = -2.650545 + T * (2306.077181 + T * (1.0927348 + T * 0.01826837))
    theta = T * (2004.191903 - T * (0.4294934 + T * 0.04182264))
    return rotation(2, -z * ARCSECOND) @ rotation(1, theta * ARCSECOND) @ rotation(2, -zeta * ARCSECOND)


def nutation(T: float) -> tuple[float, float, float]:
    """In longitude and in obliquity, and the mean obliquity of the ecliptic [rad]."""
    l, lp, F, D, node = (
        math.radians(x)
        for x in (
            134.96340251 + 477198.8675605 * T,
            357.52910918 + 35999.0502911 * T,
            93.27209062 + 483202.0174577 * T,
            297.85019547 + 445267.1114469 * T,
            125.04455501 - 1934.1362619 * T,
        )
    )
    longitude = obliquity = 0.0
    for a, b, c, d, e, psi, eps in _NUTATION:
        argument = a * l + b * lp + c * F + d * D + e * node
        longitude += psi * math.sin(argument)
        obliquity += eps * math.cos(argument)
    mean = 84381.406 - T * (46.836769 + T * (0.0001831 - T * 0.0020034))
    return longitude * ARCSECOND, obliquity * ARCSECOND, mean * ARCSECOND


def geodetic(position: Numbers) -> Array:
    """(..., 3): latitude, longitude [rad] and height [m] over the ellipsoid, of Earth-fixed positions (..., 3)."""
    x, y, z = np.moveaxis(numbers("geodetic", "position", position, 3), -1, 0)
    e2 = FLATTENING * (2 - FLATTENING)
    across = np.hypot(x, y)
    latitude = np.arctan2(z, across * (1 - e2))
    for _ in range(6):  # each step gains three digits from the surface upwards
        N = EQUATOR / np.sqrt(1 - e2 * np.sin(latitude) ** 2)
        latitude = np.arctan2(z + e2 * N * np.sin(latitude), across)
    N = EQUATOR / np.sqrt(1 - e2 * np.sin(latitude) ** 2)
    c, s = np.cos(latitude), np.sin(latitude)
    height = across * c + z * s - N * (1 - e2 * s**2)
    return np.stack([latitude, np.arctan2(y, x), height], axis=-1)


def lvlh(r: Any, v: Any) -> Array:
    """(..., 3, 3): local axes in inertial ones (columns): x along the track, y against the orbit's normal, z down.

    Of numbers, or of expressions.
    """
    if is_symbolic(r, v):
        z, h = -r / ca.sqrt(ca.dot(r, r)), ca.cross(r, v)
        y = -h / ca.sqrt(ca.dot(h, h))
        return ca.horzcat(ca.cross(y, z), y, z)
    r, v = numbers("lvlh", "r", r, 3), numbers("lvlh", "v", v, 3)
    with np.errstate(invalid="ignore", divide="ignore"):
        axes = _local_axes(r, v)
    if not np.isfinite(axes).all():
        raise ArgumentError(
            "lvlh: r or v is zero or not finite, or they are parallel; expected a position and a speed across it"
        )
    return axes


def _local_axes(r: Array, v: Array) -> Array:
    z = -r / np.linalg.norm(r, axis=-1, keepdims=True)
    h = np.cross(r, v)
    y = -h / np.linalg.norm(h, axis=-1, keepdims=True)
    return np.stack([np.cross(y, z), y, z], axis=-1)
