"""Plates and facets: drag in a co-rotating atmosphere, and the pressure of sunlight with the Earth's shadow.

On a plate of area A and outward normal n, with u the velocity through the air and s the direction to the Sun,

    drag   f = -(1/2) rho C_d A max(n.u, 0) u                                                                    (1)
    light  f = -nu P (AU/d)^2 A max(n.s, 0) ((1 - c_s) s + 2 (c_s n.s + c_d/3) n)                                 (2)

at its centre of pressure, c_s the part of the light that is reflected as by a mirror, c_d that which is scattered. One
without a normal is a sphere: A its cross section, f = -(1/2) rho C_d A |u| u and -nu P A (1 + 4/9 c_d) s. nu is the part of
the Sun's disc that the Earth, as a sphere, leaves free: umbra, penumbra and light (Montenbruck and Gill, section 3.4.2).
Plates do not shade one another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError
from alembert.expression import Scalar, scalar, scalars
from alembert.model import Model
from alembert.simulate.elements import ElementForces, Places, numbers
from alembert.spacecraft.atmosphere import Atmosphere, height_over_ellipsoid
from alembert.spacecraft.ephemeris import ASTRONOMICAL_UNIT, SUN_RADIUS
from alembert.spacecraft.frames import EQUATOR

if TYPE_CHECKING:
    from alembert.spacecraft.environment import Environment

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
        names = ("area", "drag", "specular", "diffuse")
        given = {name: scalar(getattr(self, name), name) for name in names}
        for name, value in given.items():
            object.__setattr__(self, name, value)
        numbers(given, "Facet", signs=dict.fromkeys(names, "zero or more"))
        both = [x for x in (given["specular"], given["diffuse"]) if isinstance(x, float)]
        if len(both) == 2 and sum(both) > 1:
            raise ArgumentError(
                f"Facet: specular {both[0]:g} and diffuse {both[1]:g} add up to more than 1, the light that comes"
            )
        object.__setattr__(self, "center", scalars(self.center, 3, "center"))
        if self.normal is not None:
            n = np.array(scalars(self.normal, 3, "normal"), dtype=float)
            if not np.linalg.norm(n) > 0:
                raise ArgumentError(f"Facet: normal is {self.normal!r}, expected a direction")
            object.__setattr__(self, "normal", tuple(float(x) for x in n / np.linalg.norm(n)))

    def seen(self, R: ca.SX, along: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The normal that is turned to a direction, in world axes, and its cosine times the length of `along`."""
        n = R @ ca.DM(np.array(self.normal))
        projected = ca.dot(n, along)
        if self.two_sided:
            return ca.if_else(projected < 0, -n, n), ca.fabs(projected)
        return n, ca.fmax(projected, 0)


def box(frame: str, size: Sequence[float], **options: Any) -> list[Facet]:
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
    frame: str, size: tuple[float, float], normal: Any, *, center: Any = (0, 0, 0), **options: Any
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

    def _places(self, at: Places) -> Any:
        """Of each facet: itself, rotation, arm, and its centre's place and velocity from the Earth's centre."""
        r0, v0, _ = self.environment.world.motion(at.t)
        for facet in self.surfaces:
            X, V = at.pose(facet.frame), at.velocity(facet.frame)
            arm = X.rotation @ ca.vertcat(*(at.value(x) for x in facet.center))
            yield (
                facet, X.rotation, arm, r0 + X.translation + arm, v0 + V[3:6] + ca.cross(V[0:3], arm)
            )  # fmt: skip

    def terms(self, at: Places) -> ElementForces:
        wrenches = [(facet.frame, ca.vertcat(ca.cross(arm, f), f)) for facet, arm, f in self._forces(at)]
        return ElementForces(efforts=at.efforts(wrenches))

    def _forces(self, at: Places) -> Any:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class SurfaceDrag(_OnSurfaces):
    """(1); made by `Environment.drag`."""

    atmosphere: Atmosphere
    corotation: float = 1.0

    def _forces(self, at: Places) -> Any:
        axes = self.environment.axes
        spin = ca.DM(self.corotation * axes.rate * axes.pole)
        tilt = ca.DM(axes.tilt)
        for facet, R, arm, r, v in self._places(at):
            rho = self.atmosphere.at(height_over_ellipsoid(tilt @ r))
            u = v - ca.cross(spin, r)
            if facet.normal is None:
                facing = ca.sqrt(ca.dot(u, u) + _TINY)
            else:
                _, facing = facet.seen(R, u)
            yield facet, arm, -rho * at.value(facet.drag) * at.value(facet.area) / 2 * facing * u


@dataclass(frozen=True, eq=False)
class SolarPressure(_OnSurfaces):
    """(2); made by `Environment.solar_pressure`."""

    pressure: float = SUNLIGHT
    shadow: bool = True

    def _forces(self, at: Places) -> Any:
        sun = self.environment.sun(at.t)
        for facet, R, arm, r, _ in self._places(at):
            to = sun - r
            d = ca.sqrt(ca.dot(to, to))
            s = to / d
            P = self.pressure * (ASTRONOMICAL_UNIT / d) ** 2 * at.value(facet.area)
            if self.shadow:
                P = P * sunlit(r, sun)
            cs, cd = at.value(facet.specular), at.value(facet.diffuse)
            if facet.normal is None:
                f = -P * (1 + 4 / 9 * cd) * s
            else:
                n, cosine = facet.seen(R, s)
                f = -P * cosine * ((1 - cs) * s + 2 * (cs * cosine + cd / 3) * n)
            yield facet, arm, f


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
