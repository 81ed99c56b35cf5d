"""Instants and their time scales, the axes of the Earth and of orbits, and where Sun and Moon are.

Time scales are TT, TDB, TAI and UTC:

    TAI = UTC + leap seconds,    TT = TAI + 32.184 s,
    TDB = TT + 0.001657 s sin(g) + 0.000022 s sin(L),   g = 357.53 deg + 0.98560028 deg/day d                 (1)

with d the days since J2000 (Astronomical Almanac, section B; (1) is right to some 10 microseconds from 1980 to 2050). An
epoch is kept as a whole day and a fraction of seconds, so that it is exact to 1e-11 s whatever the century.

Inertial axes are those of the International Celestial Reference Frame (the mean equator and equinox of J2000 to 0.02").
Earth-fixed ones follow from them by

    E = R3(GAST) N P                                                                              (2)

with the precession angles of IAU 2006 (Capitaine, Wallace and Chapront 2003), the ten largest terms of nutation of IAU
1980, and Greenwich sidereal time from the rotation angle of the Earth (IERS Conventions 2010, chapter 5). Against the whole
theory this is within 0.1"; UT1 is taken for UTC unless `ut1_utc` is given (up to 0.9 s or 13"), and polar motion (0.5") is
left out. Within a run N P stays as it is at the epoch, which is 0.2" a day.

Sun and Moon follow short series (Montenbruck and Gill, Satellite Orbits, section 3.3.2). The Sun's mean elements are those
of Simon et al. (1994), with the motion of its perigee, which the book leaves out. The Sun is right to 0.01 deg and 0.02 %
of its distance, the Moon to 0.1 deg and 500 km, from 1950 to 2050; held against ERFA's series in the tests. Positions are
geocentric, in inertial axes, in metres. `days` are days of TDB since J2000, numbers or expressions.
"""

from __future__ import annotations

import datetime as _datetime
import math
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import Numbers, choice, numbers
from alembert.errors import ArgumentError
from alembert.spatial.arrays import is_symbolic

DAY = 86400.0
J2000 = 2451545
"""the Julian day that began at noon of 1 January 2000"""
TABLE_DATE = "2025-07-07"
"""IERS Bulletin C 70: no leap second up to the end of June 2026; later bulletins had none to add when this was written"""
_TRUSTED = 2035
"""the General Conference on Weights and Measures (2022, resolution 4) lets UTC go without leap seconds by then"""
_LEAPS = (
    (1972, 1, 10), (1972, 7, 11), (1973, 1, 12), (1974, 1, 13), (1975, 1, 14), (1976, 1, 15), (1977, 1, 16),
    (1978, 1, 17), (1979, 1, 18), (1980, 1, 19), (1981, 7, 20), (1982, 7, 21), (1983, 7, 22), (1985, 7, 23),
    (1988, 1, 24), (1990, 1, 25), (1991, 1, 26), (1992, 7, 27), (1993, 7, 28), (1994, 7, 29), (1996, 1, 30),
    (1997, 7, 31), (1999, 1, 32), (2006, 1, 33), (2009, 1, 34), (2012, 7, 35), (2015, 7, 36), (2017, 1, 37),
)  # fmt: skip
"""(year, month, TAI - UTC in seconds from the first day of that month on), IERS Bulletin C"""
SCALES = ("UTC", "TT", "TAI", "TDB")
_GIVE_TT = "give the epoch in TT, as '2045-03-01T12:00:00 TT': without the Earth's rotation it needs no table"
_NO_UTC = "neither UTC nor where the Earth's rotation has come to are known then"


@dataclass(frozen=True, order=True)
class Epoch:
    """An instant: `day` counts days from noon of 1 January 2000 TT, and `seconds` go on from there, in TT.

    >>> Epoch.of("2026-03-01T12:00:00").utc
    '2026-03-01T12:00:00.000Z'
    """

    day: int
    seconds: float

    @classmethod
    def of(cls, text: str | _datetime.datetime, scale: str = "UTC") -> Epoch:
        """From a date and time, or as ISO 8601 writes them, in one of the scales UTC, TT, TAI or TDB.

        A text may end with its scale: "2045-03-01T12:00:00 TT".
        """
        if isinstance(text, _datetime.datetime):
            local = text if text.tzinfo is None else text.astimezone(_datetime.UTC)
            text = local.replace(tzinfo=None).isoformat()
        choice("Epoch", "scale", scale, SCALES)
        if isinstance(text, str) and text.endswith(tuple(f" {known}" for known in SCALES)):
            date, own = text.rsplit(" ", 1)
            if scale not in ("UTC", own):
                raise ArgumentError(f"Epoch: {text!r} says its scale, and scale is {scale!r}")
            text, scale = date, own
        day, seconds = _read(text)
        if scale == "UTC":
            return cls._normal(day, seconds + leap_seconds(day, text, _GIVE_TT) + 32.184)
        if scale == "TAI":
            return cls._normal(day, seconds + 32.184)
        found = cls._normal(day, seconds)
        return found if scale == "TT" else found + (-_tdb_minus_tt(found))

    @classmethod
    def _normal(cls, day: int, seconds: float) -> Epoch:
        more = math.floor(seconds / DAY)
        return cls(day + more, seconds - more * DAY)

    def __add__(self, seconds: float) -> Epoch:
        return Epoch._normal(self.day, self.seconds + seconds)

    def __sub__(self, other: Epoch) -> float:
        """Seconds of TT between two epochs."""
        return (self.day - other.day) * DAY + (self.seconds - other.seconds)

    @property
    def days(self) -> float:
        """Days of TT since J2000."""
        return self.day + self.seconds / DAY

    @property
    def tdb_days(self) -> float:
        """Days of TDB since J2000."""
        return self.day + (self.seconds + _tdb_minus_tt(self)) / DAY

    @property
    def utc_days(self) -> tuple[int, float]:
        """UTC since noon of 1 January 2000, as whole days of 86400 s and seconds."""
        day, seconds = self.day, self.seconds - 32.184
        civil = math.floor((seconds + 43200.0) / DAY) + day
        leap = leap_seconds(civil, str(self), _NO_UTC)
        if (seconds - leap + 43200.0) / DAY + day < civil:
            leap = leap_seconds(civil - 1, str(self), _NO_UTC)
        found = Epoch._normal(day, seconds - leap)
        return found.day, found.seconds

    @property
    def utc(self) -> str:
        """As ISO 8601 writes it, to the millisecond."""
        day, seconds = self.utc_days
        at = _datetime.datetime(2000, 1, 1, 12) + _datetime.timedelta(days=day, seconds=round(seconds, 3))
        return at.isoformat(timespec="milliseconds") + "Z"

    @property
    def year(self) -> float:
        """As a decimal of Julian years."""
        return 2000.0 + self.days / 365.25

    def __str__(self) -> str:
        return f"J2000 + {self.day} d + {self.seconds:.6f} s TT"


def leap_seconds(day: int, what: str = "", known: str = "the day's leap seconds are not known") -> int:
    """TAI - UTC on a civil day, which counts from 1 January 2000; refused where the table does not know it."""
    at = _datetime.date(2000, 1, 1).toordinal() + day
    date = _datetime.date.fromordinal(at) if at > 0 else _datetime.date.min
    found = [leap for year, month, leap in _LEAPS if date >= _datetime.date(year, month, 1)]
    if not found or date.year >= _TRUSTED:
        raise ArgumentError(
            f"Epoch: {what or date.isoformat()} is outside the table of leap seconds, 1972 to {_TRUSTED - 1} (as of "
            f"{TABLE_DATE}); {known}"
        )
    return found[-1]


def _tdb_minus_tt(epoch: Epoch) -> float:
    g = math.radians(357.53 + 0.98560028 * epoch.days)
    L = math.radians(246.11 + 0.90251792 * epoch.days)
    return 0.001657 * math.sin(g) + 0.000022 * math.sin(L)


def _read(text: str) -> tuple[int, float]:
    """Civil days since 1 January 2000, and seconds since noon of that day (negative before it)."""
    try:
        plain = text.strip().removesuffix("Z")
        date_text, _, time_text = plain.partition("T" if "T" in plain else " ")
        date = _datetime.date.fromisoformat(date_text)
        hours, minutes, seconds = (*time_text.split(":"), "0", "0", "0")[:3] if time_text else ("0", "0", "0")
        h, m, s = int(hours), int(minutes), float(seconds)
    except (ValueError, AttributeError):
        raise ArgumentError(f"Epoch: {text!r} is no date and time, expected as 2026-03-01T12:00:00") from None
    leap = h == 23 and m == 59 and 60 <= s < 61
    if not (0 <= h < 24 and 0 <= m < 60 and (0 <= s < 60 or leap)):
        raise ArgumentError(f"Epoch: {text!r} has no such time of day, expected 00:00:00 to 23:59:60")
    return date.toordinal() - _datetime.date(2000, 1, 1).toordinal(), 3600.0 * (h - 12) + 60.0 * m + s


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
        """(2); without an epoch the pole is the inertial z axis, and Greenwich is on x at t = 0."""
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

    def turned(self, t: Any) -> Any:
        """The same as an expression."""
        angle = self.angle + self.rate * t
        c, s = ca.cos(angle), ca.sin(angle)
        R = ca.vertcat(ca.horzcat(c, s, 0), ca.horzcat(-s, c, 0), ca.horzcat(0, 0, 1))
        return R @ ca.DM(self.tilt)

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


SUN, MOON = 1.32712440041279e20, 4.9028001184575e12
"""gravitational parameters [m^3/s^2], DE440"""
ASTRONOMICAL_UNIT = 149597870700.0
SUN_RADIUS = 6.957e8
_OBLIQUITY = math.radians(23.43929111)


def _equatorial(longitude: Any, latitude: Any, distance: Any) -> Any:
    x = distance * ca.cos(longitude) * ca.cos(latitude)
    y = distance * ca.sin(longitude) * ca.cos(latitude)
    z = distance * ca.sin(latitude)
    c, s = math.cos(_OBLIQUITY), math.sin(_OBLIQUITY)
    return ca.vertcat(x, c * y - s * z, s * y + c * z)


def sun(days: Any) -> Any:
    """From the Earth's centre [m]."""
    T = days / 36525
    M = math.radians(357.5291) + math.radians(35999.0503) * T
    perigee = math.radians(282.9373) + math.radians(0.32257) * T
    longitude = perigee + M + (6892 * ca.sin(M) + 72 * ca.sin(2 * M)) * ARCSECOND
    distance = 149.619e9 - 2.499e9 * ca.cos(M) - 0.021e9 * ca.cos(2 * M)
    return _equatorial(longitude, 0.0, distance)


def moon(days: Any) -> Any:
    """From the Earth's centre [m]."""
    T, turn = days / 36525, 2 * math.pi
    L0 = turn * (0.606433 + 1336.851344 * T)
    l = turn * (0.374897 + 1325.552410 * T)
    lp = turn * (0.993133 + 99.997361 * T)
    D = turn * (0.827361 + 1236.853086 * T)
    F = turn * (0.259086 + 1342.227825 * T)
    sin, cos = ca.sin, ca.cos
    dL = 22640 * sin(l) - 4586 * sin(l - 2 * D) + 2370 * sin(2 * D) + 769 * sin(2 * l)
    dL += -668 * sin(lp) - 412 * sin(2 * F) - 212 * sin(2 * l - 2 * D) - 206 * sin(l + lp - 2 * D)
    dL += 192 * sin(l + 2 * D) - 165 * sin(lp - 2 * D) - 125 * sin(D) - 110 * sin(l + lp)
    dL += 148 * sin(l - lp) - 55 * sin(2 * F - 2 * D)
    S = F + (dL + 412 * sin(2 * F) + 541 * sin(lp)) * ARCSECOND
    h = F - 2 * D
    N = -526 * sin(h) + 44 * sin(l + h) - 31 * sin(-l + h) - 23 * sin(lp + h) + 11 * sin(-lp + h)
    N += -25 * sin(-2 * l + F) + 21 * sin(-l + F)
    distance = (
        385000e3 - 20905e3 * cos(l) - 3699e3 * cos(2 * D - l) - 2956e3 * cos(2 * D) - 570e3 * cos(2 * l)
    )
    distance += 246e3 * cos(2 * l - 2 * D) - 205e3 * cos(lp - 2 * D) - 171e3 * cos(l + 2 * D)
    distance += -152e3 * cos(l + lp - 2 * D)
    return _equatorial(L0 + dL * ARCSECOND, (18520 * sin(S) + N) * ARCSECOND, distance)
