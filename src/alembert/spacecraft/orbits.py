"""Orbits: elements, states, two-line elements, and the motion of an orbit that precesses.

Where the world's origin stands is a choice (`Cowell`, `Encke`). An orbit has a radius of 7000 km, and a double has 16
digits: what a model needs to know to the nanometre must not be written as a distance from the centre of the Earth. `Encke`
lets the origin run along a reference orbit

    r = Q(t) p(t),   Q = R3(node)' R1(inclination)' R3(argument)',   p on an ellipse at mean motion n          (1)

whose node and argument go on at constant rates W, those of J2; the model's coordinates are deviations from it. With
mu' = n^2 a^3 and W the angular velocity of Q,

    r'' = Q p'' + 2 W x Q p' + W x (W x r) + W' x r,   p'' = -mu' p / |p|^3                                    (2)

so that forces can be taken relative to r''. J2 also moves the mean motion; the semi-major axis of (1) is the mean one, which
follows from the energy, a - J2 (R^2 a^2/r^3) (1 - 3/2 sin^2 i + 3/2 sin^2 i cos 2u) + its mean (Kozai 1959).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import numbers
from alembert.errors import ArgumentError, UnsupportedError, warn
from alembert.simulate.elements import Places
from alembert.simulate.forces import EARTH
from alembert.spacecraft.astronomy import DAY, EQUATOR, Epoch, nutation, precession, rotation

Array = np.ndarray
J2 = 1.08262668e-3
"""of the Earth, unnormalised"""
_LOW = 50e3
"""[m]: nothing orbits below; a number of kilometres was meant"""
_OLD = 30.0
"""days from the epoch of two-line elements, beyond which SGP4 is told to be a guess"""
_NEWTON = 12
"""steps on Kepler's equation, unrolled: enough up to e = 0.9"""


@dataclass(frozen=True)
class Orbit:
    """Osculating elements in inertial axes: lengths in metres, angles in radians, `anomaly` the true one.

    `epoch` says when; without one the orbit holds at t = 0 of a run. One that meets the ground is refused unless it is
    said to be `suborbital`.
    """

    semi_axis: float
    eccentricity: float = 0.0
    inclination: float = 0.0
    node: float = 0.0
    argument: float = 0.0
    anomaly: float = 0.0
    epoch: Epoch | None = None
    parameter: float = EARTH
    suborbital: bool = False

    def __post_init__(self) -> None:
        for name in ("semi_axis", "eccentricity", "inclination", "node", "argument", "anomaly", "parameter"):
            x = numbers("Orbit", name, getattr(self, name))
            if x.ndim or not math.isfinite(x):
                raise ArgumentError(f"Orbit: {name} is {getattr(self, name)!r}, expected a number")
        if not 0 <= self.eccentricity < 1:
            raise ArgumentError(f"Orbit: eccentricity is {self.eccentricity:g}, expected an ellipse, 0 to 1")
        if not 0 <= self.inclination <= math.pi + 1e-9:
            degrees = f"; {self.inclination:g} degrees are {math.radians(self.inclination):.4g}"
            raise ArgumentError(
                f"Orbit: inclination is {self.inclination:g} rad, expected 0 to pi{degrees if self.inclination > 0 else ''}"
            )
        if not (self.semi_axis > 0 and self.parameter > 0):
            raise ArgumentError(f"Orbit: semi_axis is {self.semi_axis:g} m, expected a positive length")
        if self.parameter == EARTH and self.perigee < EQUATOR and not self.suborbital:
            raise ArgumentError(
                f"Orbit: the perigee is {(EQUATOR - self.perigee) / 1e3:.3g} km below the ground (semi_axis "
                f"{self.semi_axis / 1e3:.6g} km, eccentricity {self.eccentricity:g}); lengths are in metres, from the "
                "Earth's centre"
            )

    @classmethod
    def circular(cls, altitude: float, inclination_deg: float = 0.0, **elements: Any) -> Orbit:
        """At a height over the equator's radius [m]."""
        for name, x in (("altitude", altitude), ("inclination_deg", inclination_deg)):
            if numbers("Orbit.circular", name, x).ndim:
                raise ArgumentError(f"Orbit.circular: {name} is {x!r}, expected a number")
        if 0 <= altitude < _LOW:
            warn(f"Orbit.circular: altitude is {altitude:g} m, where nothing orbits; heights are in metres")
        return cls(EQUATOR + altitude, 0.0, math.radians(inclination_deg), **elements)

    @classmethod
    def of_state(
        cls, r: Any, v: Any, *, epoch: Epoch | None = None, parameter: float = EARTH, suborbital: bool = False
    ) -> Orbit:
        """From a position and a velocity, inertial axes."""
        r, v = (np.asarray(x, dtype=float) for x in (r, v))
        if r.shape != (3,) or v.shape != (3,) or not (np.isfinite(r).all() and np.isfinite(v).all()):
            raise ArgumentError("Orbit.of_state: r and v, expected three numbers each")
        d, h = float(np.linalg.norm(r)), np.cross(r, v)
        energy = v @ v / 2 - parameter / d
        if energy >= 0 or np.linalg.norm(h) == 0:
            raise ArgumentError(
                f"Orbit.of_state: at {d / 1e3:.6g} km a speed of {np.linalg.norm(v):.6g} m/s gives no ellipse; the escape "
                f"speed is {math.sqrt(2 * parameter / d):.6g} m/s"
            )
        a = -parameter / (2 * energy)
        e_vector = np.cross(v, h) / parameter - r / d
        e = float(np.linalg.norm(e_vector))
        w = h / np.linalg.norm(h)
        ascending = np.array([-w[1], w[0], 0.0])
        if np.linalg.norm(ascending) < 1e-14:
            ascending = np.array([1.0, 0.0, 0.0])
        n = ascending / np.linalg.norm(ascending)
        m = np.cross(w, n)
        node = math.atan2(n[1], n[0])
        along = math.atan2(r @ m, r @ n)
        argument = math.atan2(e_vector @ m, e_vector @ n) if e > 1e-14 else 0.0
        inclination = math.atan2(math.hypot(w[0], w[1]), w[2])
        turn = 2 * math.pi
        return cls(
            a, e, inclination, node % turn, argument % turn, (along - argument) % turn, epoch, parameter,
            suborbital,
        )  # fmt: skip

    @classmethod
    def of_tle(cls, line1: str, line2: str, *, epoch: Epoch | None = None) -> Orbit:
        """From two-line elements by SGP4, at their own epoch or another; needs `sgp4` (pip install alembert[space]).

        SGP4 gives true equator and mean equinox of date (TEME); it is turned to inertial axes. Two-line elements are good
        to about a kilometre at their epoch, and lose a few a day.
        """
        try:
            from sgp4.api import SGP4_ERRORS, Satrec
            from sgp4.conveniences import jday_datetime, sat_epoch_datetime
        except ImportError:
            raise UnsupportedError(
                "Orbit.of_tle needs the package sgp4: pip install alembert[space]"
            ) from None
        for number, line in ((1, line1), (2, line2)):
            if not isinstance(line, str) or len(line.rstrip()) < 68 or line[0] != str(number):
                raise ArgumentError(
                    f"Orbit.of_tle: line {number} is {line!r}, expected 69 characters that begin with {number}"
                )
            digits = sum(int(x) if x.isdigit() else x == "-" for x in line[:68]) % 10
            if len(line.rstrip()) > 68 and line[68] != str(digits):
                raise ArgumentError(
                    f"Orbit.of_tle: line {number} ends with the checksum {line[68]!r}, and its characters give {digits}: "
                    "one of them is not as it was sent"
                )
        try:
            satellite = Satrec.twoline2rv(line1, line2)
        except ValueError as error:
            raise ArgumentError(f"Orbit.of_tle: {error}") from None
        if epoch is None:
            epoch = Epoch.of(sat_epoch_datetime(satellite).replace(tzinfo=None).isoformat())
            jd = (satellite.jdsatepoch, satellite.jdsatepochF)
        else:
            import datetime

            jd = jday_datetime(datetime.datetime.fromisoformat(epoch.utc.replace("Z", "+00:00")))
            away = jd[0] - satellite.jdsatepoch + jd[1] - satellite.jdsatepochF
            if abs(away) > _OLD:
                side = "after" if away > 0 else "before"
                warn(
                    f"Orbit.of_tle: the epoch {epoch.utc} is {abs(away):.0f} days {side} that of the elements; SGP4 "
                    "loses some kilometres a day"
                )
        failure, r, v = satellite.sgp4(*jd)
        if failure:
            raise ArgumentError(f"Orbit.of_tle: SGP4 says {SGP4_ERRORS[failure]}")
        R = teme(epoch).T
        return cls.of_state(R @ (1e3 * np.array(r)), R @ (1e3 * np.array(v)), epoch=epoch)

    @property
    def perigee(self) -> float:
        """Distance from the centre [m]."""
        return self.semi_axis * (1 - self.eccentricity)

    @property
    def rate(self) -> float:
        """Mean motion [rad/s]."""
        return math.sqrt(self.parameter / self.semi_axis**3)

    @property
    def period(self) -> float:
        return 2 * math.pi / self.rate

    @property
    def mean_anomaly(self) -> float:
        e, f = self.eccentricity, self.anomaly
        E = 2 * math.atan2(math.sqrt(1 - e) * math.sin(f / 2), math.sqrt(1 + e) * math.cos(f / 2))
        return E - e * math.sin(E)

    def state(self, t: float = 0.0) -> tuple[Array, Array]:
        """Position and velocity in inertial axes, t seconds on, as of two bodies."""
        r, v, _ = precessing(self, (0.0, 0.0, self.rate)).motion(t)
        return np.array(r, dtype=float).ravel(), np.array(v, dtype=float).ravel()

    def secular_rates(self, j2: float = J2, radius: float = EQUATOR) -> tuple[float, float, float]:
        """Of node, argument of perigee and mean anomaly under J2, to first order [rad/s]."""
        e, c = self.eccentricity, math.cos(self.inclination)
        k = 1.5 * self.rate * j2 * (radius / (self.semi_axis * (1 - e**2))) ** 2
        return -k * c, k / 2 * (5 * c**2 - 1), self.rate + k / 2 * math.sqrt(1 - e**2) * (3 * c**2 - 1)


def sun_synchronous(altitude: float, eccentricity: float = 0.0) -> float:
    """The inclination at which the node follows the mean Sun [rad]."""
    if not (0 <= altitude < math.inf and 0 <= eccentricity < 1):
        raise ArgumentError(
            f"sun_synchronous: altitude is {altitude!r} m and eccentricity {eccentricity!r}, expected zero or more, and an "
            "ellipse"
        )
    a = EQUATOR + altitude
    n = math.sqrt(EARTH / a**3)
    wanted = 2 * math.pi / (365.2421897 * DAY)
    cosine = -wanted / (1.5 * n * J2 * (EQUATOR / (a * (1 - eccentricity**2))) ** 2)
    if cosine < -1:
        raise ArgumentError(f"sun_synchronous: no orbit at {altitude / 1e3:.6g} km; at most some 5970 km")
    return math.acos(cosine)


def teme(epoch: Epoch) -> Array:
    """From inertial axes to those of SGP4, the true equator and mean equinox of date."""
    T = epoch.tdb_days / 36525
    longitude, obliquity, mean = nutation(T)
    N = rotation(0, -(mean + obliquity)) @ rotation(2, -longitude) @ rotation(0, mean)
    return rotation(2, longitude * math.cos(mean + obliquity)) @ N @ precession(T)


@dataclass(frozen=True)
class Precessing:
    """(1) and (2): an ellipse whose node, argument and mean anomaly go on at constant `rates`."""

    orbit: Orbit
    rates: tuple[float, float, float]

    def motion(self, t: Any) -> tuple[Any, Any, Any]:
        """r, its velocity and its acceleration in inertial axes; t is a number or an expression."""
        o, (node_rate, argument_rate, n) = self.orbit, self.rates
        e, a = o.eccentricity, o.semi_axis
        M = o.mean_anomaly + n * t
        E = M + e * ca.sin(M)
        for _ in range(_NEWTON if e > 0.05 else 5 if e else 0):
            E = E - (E - e * ca.sin(E) - M) / (1 - e * ca.cos(E))
        b = a * math.sqrt(1 - e**2)
        c, s = ca.cos(E), ca.sin(E)
        p = (a * (c - e), b * s)
        E_rate = n / (1 - e * c)
        p1 = (-a * s * E_rate, b * c * E_rate)
        d = a * (1 - e * c)
        pull = -(n**2) * a**3 / d**3
        node, argument = o.node + node_rate * t, o.argument + argument_rate * t
        ci, si = math.cos(o.inclination), math.sin(o.inclination)
        cn, sn, cw, sw = ca.cos(node), ca.sin(node), ca.cos(argument), ca.sin(argument)
        x = ca.vertcat(cn * cw - sn * sw * ci, sn * cw + cn * sw * ci, sw * si)
        y = ca.vertcat(-cn * sw - sn * cw * ci, -sn * sw + cn * cw * ci, cw * si)
        normal = ca.vertcat(sn * si, -cn * si, ci)
        up = ca.vertcat(0, 0, 1)
        W = node_rate * up + argument_rate * normal
        W_rate = argument_rate * node_rate * ca.cross(up, normal)
        r, moved = x * p[0] + y * p[1], x * p1[0] + y * p1[1]
        velocity = moved + ca.cross(W, r)
        acceleration = pull * r + 2 * ca.cross(W, moved) + ca.cross(W, ca.cross(W, r)) + ca.cross(W_rate, r)
        return r, velocity, acceleration


def precessing(orbit: Orbit, rates: tuple[float, float, float]) -> Precessing:
    if orbit.eccentricity > 0.9:
        raise UnsupportedError(
            f"Encke: eccentricity {orbit.eccentricity:g} and a reference orbit do not go together beyond 0.9; use Cowell()"
        )
    return Precessing(orbit, rates)


@dataclass(frozen=True)
class Cowell:
    """The world's origin is the centre of the Earth; positions near it are rounded to a nanometre."""

    def motion(self, t: Any) -> tuple[Any, Any, Any]:
        zero = ca.DM.zeros(3)
        return zero, zero, zero

    @property
    def moves(self) -> bool:
        return False


@dataclass(frozen=True)
class Encke:
    """The world's origin runs along a reference orbit through `orbit` at t = 0, with the secular rates of `j2` (0:
    Kepler's).
    """

    orbit: Orbit
    j2: float = J2

    @property
    def reference(self) -> Precessing:
        """The orbit with its mean semi-major axis."""
        o = self.orbit
        if not self.j2:
            return precessing(o, (0.0, 0.0, o.rate))
        e, a = o.eccentricity, o.semi_axis
        d = a * (1 - e**2) / (1 + e * math.cos(o.anomaly))
        s2 = math.sin(o.inclination) ** 2
        u = o.argument + o.anomaly
        here = (a / d) ** 3 * (1 - 1.5 * s2 + 1.5 * s2 * math.cos(2 * u))
        mean = a - self.j2 * EQUATOR**2 / a * (here - (1 - 1.5 * s2) / (1 - e**2) ** 1.5)
        o = replace(o, semi_axis=mean)
        return precessing(o, o.secular_rates(self.j2))

    def motion(self, t: Any) -> tuple[Any, Any, Any]:
        """Position, velocity and acceleration of the origin in inertial axes."""
        return self.reference.motion(t)

    @property
    def moves(self) -> bool:
        return True


World = Cowell | Encke


def origin_at(world: World, at: Places) -> tuple[Any, Any, Any]:
    """The motion of the origin, once for all that ask at the same time."""
    return at.once(("origin", world), lambda: world.motion(at.t))


@functools.lru_cache(maxsize=16)
def _motion(world: World) -> ca.Function:
    t = ca.SX.sym("t")
    r, v, _ = world.motion(t)
    return ca.Function("origin", [t], [ca.SX(r), ca.SX(v)])


def origin(world: World, t: float) -> tuple[Array, Array]:
    """Position and velocity of the world's origin as numbers."""
    r, v = _motion(world)(t)
    return np.array(r, dtype=float).ravel(), np.array(v, dtype=float).ravel()


def origins(world: World, times: Sequence[float] | Array) -> tuple[Array, Array]:
    """The same at many instants, (N, 3) each."""
    found = [origin(world, float(t)) for t in np.atleast_1d(times)]
    return np.array([r for r, _ in found]), np.array([v for _, v in found])
