"""Plates and facets in air and light: the density of the atmosphere, its drag, and the pressure of sunlight with the Earth's
shadow.

On a plate of area A and outward normal n, with u the velocity through the air and s the direction to the Sun,

    drag   f = -(1/2) rho C_d A max(n.u, 0) u                                                                    (1)
    light  f = -nu P (AU/d)^2 A max(n.s, 0) ((1 - c_s) s + 2 (c_s n.s + c_d/3) n)                                 (2)

at its centre of pressure, c_s the part of the light that is reflected as by a mirror, c_d that which is scattered. One
without a normal is a sphere: A its cross section, f = -(1/2) rho C_d A |u| u and -nu P A (1 + 4/9 c_d) s. nu is the part of
the Sun's disc that the Earth, as a sphere, leaves free: umbra, penumbra and light (Montenbruck and Gill, section 3.4.2).
Plates do not shade one another.

The density rho is exponential or tabulated over the height alone. That leaves out the day side (a factor of 2 to 6 at
400 km), the activity of the Sun (a factor of 10) and storms. A table for given activity can be made with MSIS
(`msis_profile`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.arguments import Numbers, Vector
from alembert.errors import ArgumentError, UnsupportedError
from alembert.expression import Scalar, scalars
from alembert.model import Model
from alembert.simulate.elements import ElementForces, Places, read_direction, read_numbers
from alembert.spacecraft.astronomy import ASTRONOMICAL_UNIT, EQUATOR, FLATTENING, SUN_RADIUS, Epoch
from alembert.spacecraft.orbits import origin_at

if TYPE_CHECKING:
    from alembert.spacecraft.environment import Environment

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


SUNLIGHT = 4.56e-6
"""pressure of sunlight on a black plate at 1 au [N/m^2]"""
_TINY = 1e-24


@dataclass(frozen=True)
class Facet:
    """A plate on a frame: `area` [m^2], outward `normal` and `center` in the frame's axes; no normal: a sphere.

    `drag` is C_d; `specular` and `diffuse` are c_s and c_d. With `two_sided` it is a panel of which both sides count.
    """

    frame: str
    area: Scalar
    normal: tuple[float, ...] | None = None
    center: tuple[Scalar, ...] = (0.0, 0.0, 0.0)
    drag: Scalar = 2.2
    specular: Scalar = 0.0
    diffuse: Scalar = 0.0
    two_sided: bool = False

    def __post_init__(self) -> None:
        read_numbers(self, "zero or more", "area", "drag", "specular", "diffuse")
        both = [x for x in (self.specular, self.diffuse) if isinstance(x, float)]
        if len(both) == 2 and sum(both) > 1:
            raise ArgumentError(
                f"Facet: specular {both[0]:g} and diffuse {both[1]:g} add up to more than 1, the light that comes"
            )
        object.__setattr__(self, "center", scalars(self.center, 3, "center"))
        if self.normal is not None:
            read_direction(self, "normal")

    def seen(self, along: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The normal that is turned to a direction, in the frame's axes, and its cosine times the length of `along`."""
        n = ca.SX(ca.sparsify(ca.DM(np.array(self.normal))))
        projected = ca.dot(n, along)
        if self.two_sided:
            return ca.if_else(projected < 0, -n, n), ca.fabs(projected)
        return n, ca.fmax(projected, 0)


def box(frame: str, size: Vector, **options: Any) -> list[Facet]:
    """The six sides of a cuboid about the origin of a frame."""
    found = []
    for k in range(3):
        area = float(size[(k + 1) % 3] * size[(k + 2) % 3])
        for sign in (1.0, -1.0):
            normal = [0.0, 0.0, 0.0]
            normal[k] = sign
            center = tuple(x * size[k] / 2 for x in normal)
            found.append(Facet(frame, area, tuple(normal), center, **options))
    return found


def panel(
    frame: str, size: tuple[float, float], normal: Vector, *, center: Vector = (0, 0, 0), **options: Any
) -> Facet:
    """A thin plate of which both sides count."""
    return Facet(frame, float(size[0] * size[1]), normal, center, two_sided=True, **options)


@dataclass(frozen=True, eq=False)
class _OnSurfaces:
    environment: Environment
    surfaces: tuple[Facet, ...]

    def check(self, model: Model) -> None:
        for facet in self.surfaces:
            model.frame(facet.frame)

    def internal(self, model: Model) -> bool:
        return False

    def terms(self, at: Places) -> ElementForces:
        r0, v0, _ = origin_at(self.environment.world, at)
        wrenches = []
        for frame in dict.fromkeys(facet.frame for facet in self.surfaces):
            X, V = at.pose(frame), at.own_velocity(frame)
            R = ca.SX(X.rotation)
            around = FramePlace(R, r0 + X.translation, v0, V[3:6], V[0:3])
            moment, force = ca.SX.zeros(3), ca.SX.zeros(3)
            for facet, f in self._forces(at, frame, around):
                moment = moment + ca.cross(ca.vertcat(*(at.value(x) for x in facet.center)), f)
                force = force + f
            wrenches.append((frame, ca.vertcat(moment, force)))
        return ElementForces(efforts=at.own_efforts(wrenches))

    def _on(self, frame: str) -> list[Facet]:
        return [facet for facet in self.surfaces if facet.frame == frame]

    def _forces(self, at: Places, frame: str, place: FramePlace) -> Iterator[tuple[Facet, ca.SX]]:
        """Facets of a frame, and the force on each in the frame's axes."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class FramePlace:
    """Where a frame is: its rotation, its origin from the Earth's centre; the velocity of the world's origin, and its own
    velocities there, in its own axes.
    """

    R: ca.SX
    r: ca.SX
    v0: ca.SX
    v: ca.SX
    w: ca.SX


@dataclass(frozen=True, eq=False)
class SurfaceDrag(_OnSurfaces):
    """(1); made by `Environment.drag`. The density is that at the origin of a plate's frame."""

    atmosphere: Atmosphere
    corotation: float = 1.0

    def _forces(self, at: Places, frame: str, place: FramePlace) -> Iterator[tuple[Facet, ca.SX]]:
        axes, R = self.environment.axes, place.R
        spin = ca.DM(self.corotation * axes.rate * axes.pole)
        rho = self.atmosphere.at(
            height_over_ellipsoid(ca.dot(place.r, place.r), ca.dot(ca.DM(axes.pole), place.r))
        )
        wind = place.v + R.T @ (place.v0 - ca.cross(spin, place.r))
        turning = place.w - R.T @ spin
        for facet in self._on(frame):
            u = wind + ca.cross(turning, ca.vertcat(*(at.value(x) for x in facet.center)))
            if facet.normal is None:
                facing = ca.sqrt(ca.dot(u, u) + _TINY)
            else:
                _, facing = facet.seen(u)
            size = -at.value(facet.drag) * at.value(facet.area) / 2
            yield facet, (size * rho * facing) * u


@dataclass(frozen=True, eq=False)
class SolarPressure(_OnSurfaces):
    """(2); made by `Environment.solar_pressure`. The Sun, and the shadow, are those at the origin of a plate's frame."""

    pressure: float = SUNLIGHT
    shadow: bool = True

    def _forces(self, at: Places, frame: str, place: FramePlace) -> Iterator[tuple[Facet, ca.SX]]:
        sun = at.once(("sun", self.environment), lambda: self.environment.sun(at.t))
        to = sun - place.r
        d = ca.sqrt(ca.dot(to, to))
        s = place.R.T @ (to / d)
        flux = self.pressure * (ASTRONOMICAL_UNIT / d) ** 2
        if self.shadow:
            flux = flux * sunlit(place.r, sun)
        for facet in self._on(frame):
            P = flux * at.value(facet.area)
            cs, cd = at.value(facet.specular), at.value(facet.diffuse)
            if facet.normal is None:
                f = -P * (1 + 4 / 9 * cd) * s
            else:
                n, cosine = facet.seen(s)
                f = -P * cosine * ((1 - cs) * s + 2 * (cs * cosine + cd / 3) * n)
            yield facet, f


def sunlit(r: Any, sun: Any) -> Any:
    """nu, 0 in the umbra to 1 in the light: r and the Sun from the Earth's centre, numbers or expressions."""
    to = sun - r
    d, distance = ca.sqrt(ca.dot(r, r)), ca.sqrt(ca.dot(to, to))
    a, b = ca.asin(SUN_RADIUS / distance), ca.asin(ca.fmin(EQUATOR / d, 1.0))
    cosine = ca.fmin(ca.fmax(-ca.dot(r, to) / (d * distance), -1.0), 1.0)
    c = ca.fmax(ca.acos(cosine), 1e-9)
    x = (c**2 + a**2 - b**2) / (2 * c)
    y = ca.sqrt(ca.fmax(a**2 - x**2, 0) + _TINY)
    first = ca.acos(ca.fmin(ca.fmax(x / a, -1.0), 1.0))
    second = ca.acos(ca.fmin(ca.fmax((c - x) / b, -1.0), 1.0))
    covered = (a**2 * first + b**2 * second - c * y) / (math.pi * a**2)
    partial = ca.fmin(ca.fmax(1 - covered, 0), 1)
    return ca.if_else(c >= a + b, 1.0, ca.if_else(c <= b - a, 0.0, partial))
