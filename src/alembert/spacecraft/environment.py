"""What surrounds a spacecraft: the Earth at an epoch, seen from the world of a run.

    environment = Environment(Epoch.of("2026-03-01T12:00:00"), Encke(orbit))
    q0, v0 = environment.start(model, orbit)
    run = al.simulate(model, q0, v0, gravity=environment.gravity(degree=8, order=8, sun=True, moon=True), ...)

All of it is made of expressions: it becomes part of the compiled step, of ensembles and of linear models. The axes of the
world are inertial ones; t = 0 is the epoch.

Plates and facets in air and light: drag, and the pressure of sunlight with the Earth's shadow.

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import Vector, numbers, real
from alembert.errors import ArgumentError
from alembert.expression import Scalar, scalars
from alembert.joints import Free
from alembert.model import WORLD, Model
from alembert.simulate.elements import ElementForces, Places, read_direction, read_numbers
from alembert.simulate.events import Event, WithParameters
from alembert.simulate.forces import EARTH
from alembert.spacecraft import astronomy
from alembert.spacecraft.astronomy import (
    ASTRONOMICAL_UNIT,
    EQUATOR,
    SUN_RADIUS,
    EarthAxes,
    Epoch,
    geodetic,
    lvlh,
)
from alembert.spacecraft.fields import (
    Atmosphere,
    Harmonics,
    MagneticField,
    OrbitGravity,
    cira72,
    egm2008,
    height_over_ellipsoid,
    igrf,
    zonal,
)
from alembert.spacecraft.orbits import J2, Cowell, Encke, Orbit, World, origin, origin_at, origins
from alembert.spatial import quaternion

Array = np.ndarray


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


ENTRY = 100e3
"""the height at which entry begins [m]"""
EARLIEST, LATEST = 1900.0, 2100.0
"""years for which the series of Sun and Moon are let in"""


@dataclass(frozen=True, eq=False)
class Environment:
    """The Earth at an `epoch` (t = 0), and where the world's origin is: `Cowell()` or `Encke(orbit)`.

    Without an epoch the Earth's axis is z and there is no Sun or Moon. `ut1_utc` [s] places Greenwich.
    """

    epoch: Epoch | None = None
    world: World = Cowell()  # noqa: RUF009  (frozen)
    ut1_utc: float = 0.0

    def __post_init__(self) -> None:
        if self.epoch is not None and not isinstance(self.epoch, Epoch):
            raise ArgumentError(
                f"Environment: epoch is {self.epoch!r}, expected Epoch.of('2026-03-01T12:00:00')"
            )
        if not isinstance(self.world, Cowell | Encke):
            raise ArgumentError(f"Environment: world is {self.world!r}, expected Cowell() or Encke(orbit)")
        if self.epoch is not None and not EARLIEST <= self.epoch.year <= LATEST:
            raise ArgumentError(
                f"Environment: the epoch is in the year {self.epoch.year:.0f}, expected {EARLIEST:.0f} to {LATEST:.0f}, "
                "where the series of Sun and Moon hold"
            )

    @cached_property
    def axes(self) -> EarthAxes:
        """Of the Earth."""
        return EarthAxes.at(self.epoch, ut1_utc=self.ut1_utc)

    def days(self, what: str) -> float:
        """Of TDB from J2000 to the epoch."""
        if self.epoch is None:
            raise ArgumentError(f"Environment: {what} needs an epoch; give Environment(Epoch.of(...), ...)")
        return self.epoch.tdb_days

    # --- forces ------------------------------------------------------------------------------------------------

    def gravity(
        self,
        *,
        degree: int = 2,
        order: int = 0,
        sun: bool = False,
        moon: bool = False,
        harmonics: Harmonics | Mapping[int, float] | None = None,
        parameter: float | None = None,
        gradient: bool = True,
    ) -> OrbitGravity:
        """Of the Earth to a degree and order (0: a point, 2 and 0: with J2), and of Sun and Moon.

        Coefficients are those of EGM2008 (to 20), `harmonics` of your own, or zonal ones by degree, {2: J2, 3: J3}; up to
        degree 2 and order 0 they are mu and J2 as printed in most books. `gradient` gives the torques on every body.
        """
        if not (isinstance(degree, int) and isinstance(order, int) and degree >= 0 and 0 <= order <= degree):
            raise ArgumentError(
                f"gravity: degree {degree!r} and order {order!r}, expected 0 <= order <= degree"
            )
        if degree == 1:
            raise ArgumentError(
                "gravity: degree is 1, which vanishes about the centre of mass; expected 0, 2 or more"
            )
        table: Harmonics | None = None
        if isinstance(harmonics, Mapping):
            _check_zonal(harmonics, degree, order)
            table = zonal(parameter or EARTH, EQUATOR, dict(harmonics))
            degree = table.degree
        elif harmonics is not None:
            table = harmonics
        elif degree > 2 or order:
            table = egm2008()
        mu, radius = (EARTH, EQUATOR) if table is None else (table.parameter, table.radius)
        j2, higher = (J2 if degree >= 2 else 0.0), None
        if table is not None:
            if order and self.epoch is None:
                self.days("a field that turns with the Earth (order > 0)")
            kept = table.truncated(degree, order, without=((0, 0), (2, 0)))
            j2, higher = -float(table.C[2, 0]) if degree >= 2 else 0.0, None if kept.is_zero else kept
        bodies = tuple(name for name, wanted in (("sun", sun), ("moon", moon)) if wanted)
        days = self.days("the Sun and the Moon") if bodies else 0.0
        return OrbitGravity(
            self.world, self.axes, parameter or mu, radius, j2, higher, bodies, days, gradient
        )

    def drag(
        self,
        surfaces: Facet | Sequence[Facet],
        atmosphere: Atmosphere | None = None,
        *,
        corotation: float = 1.0,
    ) -> SurfaceDrag:
        """Of the atmosphere (by default `cira72()`), which turns with the Earth, `corotation` times as fast."""
        return SurfaceDrag(self, _listed(surfaces, "drag"), atmosphere or cira72(), corotation)

    def solar_pressure(
        self, surfaces: Facet | Sequence[Facet], *, pressure: float = SUNLIGHT, shadow: bool = True
    ) -> SolarPressure:
        """Of sunlight, `pressure` [N/m^2] at 1 au on a black plate, in the Earth's shadow as far as it is dark."""
        self.days("the pressure of sunlight")
        return SolarPressure(self, _listed(surfaces, "solar_pressure"), pressure, shadow)

    def magnetic_field(self, degree: int = 13) -> MagneticField:
        """By IGRF-14; degree 1 is the tilted dipole."""
        self.days("the magnetic field")
        assert self.epoch is not None
        return MagneticField(self, igrf(self.epoch.year, degree))

    def sunlit(self, t: float, x: Any) -> float:
        """The part of the Sun's disc that is seen from a position in the world, 0 to 1."""
        r = np.asarray(x, dtype=float) + origin(self.world, t)[0]
        return float(sunlit(ca.DM(r), ca.DM(self.sun(t))))

    # --- places ------------------------------------------------------------------------------------------------

    def sun(self, t: Any) -> Any:
        """Where the Sun is from the Earth's centre [m], t seconds after the epoch; a number or an expression."""
        return astronomy.sun(self.days("the Sun") + t / 86400.0)

    def moon(self, t: Any) -> Any:
        """Where the Moon is."""
        return astronomy.moon(self.days("the Moon") + t / 86400.0)

    def place(self, t: Any, x: Any) -> Any:
        """From a position in the world to one from the Earth's centre, as an expression."""
        return self.world.motion(t)[0] + x

    def fixed(self, t: Any) -> Any:
        """E(t), from inertial to Earth-fixed axes, as an expression."""
        return self.axes.turned(t)

    def inertial(self, run: Any, frame: str | None = None) -> tuple[Array, Array]:
        """Position and velocity of a frame (by default the first body) from the Earth's centre at each record, (N,
        3) each.
        """
        model = run.model
        frame = frame or model.bodies[0].name
        given: dict[str, Any] = {"parameters": run.parameters}
        X = model.frame_pose(run.q, frame, **given)
        V = model.frame_velocity(run.q, run.v, frame, reference="local_world_aligned", **given)
        r0, v0 = origins(self.world, run.time)
        return X.translation + r0, V[..., 3:] + v0

    def ground_track(self, run: Any, frame: str | None = None) -> Array:
        """(N, 3): latitude and longitude [rad] and height [m] of a frame at each record."""
        r, _ = self.inertial(run, frame)
        turned = np.stack([self.axes.fixed(float(t)) @ x for t, x in zip(run.time, r, strict=True)])
        return geodetic(turned)

    def entry(self, model: Model, frame: str | None = None, *, height: float = ENTRY) -> Event:
        """The event that ends a run when a frame (by default the first body) comes below a height [m] over the ellipsoid.

        Below 100 km the tables of the atmosphere do not reach, and the air grows so dense that no step of a flight in
        orbit is short enough.
        """
        real("entry", "height", height, "zero or more metres", least=0.0)
        frame = frame or model.bodies[0].name
        model.frame(frame)

        def above(t: float, q: Array, v: Array, parameters: Any) -> float:
            r = model.frame_pose(q, frame, parameters=parameters).translation + origin(self.world, t)[0]
            north = float(self.axes.pole @ r)
            return float(height_over_ellipsoid(float(r @ r), north)) - height

        return Event(
            WithParameters(above),
            f"entry below {height / 1e3:g} km, where the flight ends",
            -1,
            at_start=True,
        )

    def start(
        self,
        model: Model,
        orbit: Orbit,
        *,
        attitude: Any = "lvlh",
        rate: Any = None,
        joint: str | None = None,
        offset: Vector = (0.0, 0.0, 0.0),
    ) -> tuple[Array, Array]:
        """q and v of a model on an orbit: its free joint (the first, or by name) put there, all others neutral and at rest.

        `attitude` is "lvlh", "inertial", or a unit quaternion (wxyz) of the body in the world. `rate` [rad/s] is the angular
        velocity in body axes, relative to inertial space; by default that of the local axes with "lvlh", otherwise none.
        `offset` [m] places the body beside the orbit, in local axes (x along the track, z down), at rest there.
        """
        free = [x for x in model.joints if isinstance(x.type, Free) and x.parent == WORLD]
        named = [x for x in free if joint in (None, x.name)]
        if not named:
            listed = ", ".join(repr(x.name) for x in free) or "none"
            raise ArgumentError(
                f"Environment.start: joint {joint!r}, expected a free joint of {model.name!r} from the world "
                f"(it has {listed})"
            )
        name = named[0].name
        if not isinstance(orbit, Orbit):
            raise ArgumentError(f"Environment.start: orbit is {orbit!r}, expected Orbit(...)")
        if self.epoch is not None and orbit.epoch is not None:
            r, v = orbit.state(self.epoch - orbit.epoch)
        else:
            r, v = orbit.state()
        local = lvlh(r, v)
        turning = np.cross(r, v) / (r @ r)
        moved = local @ numbers("Environment.start", "offset", offset, 3, batch=False)
        r0, v0 = origin(self.world, 0.0)
        p, u = (r - r0) + moved, (v - v0) + np.cross(turning, moved)
        if isinstance(attitude, str):
            if attitude not in ("lvlh", "inertial"):
                raise ArgumentError(
                    f"Environment.start: attitude is {attitude!r}, expected 'lvlh', 'inertial' or a quaternion"
                )
            R = local if attitude == "lvlh" else np.eye(3)
            q_wxyz = quaternion.from_matrix(R)
        else:
            q_wxyz = numbers("Environment.start", "attitude", attitude)
            if q_wxyz.shape != (4,) or not abs(np.linalg.norm(q_wxyz) - 1) < 1e-6:
                raise ArgumentError(
                    f"Environment.start: attitude is {attitude!r}, expected a unit quaternion (w, x, y, z)"
                )
            q_wxyz = q_wxyz / np.linalg.norm(q_wxyz)
            R = np.asarray(quaternion.to_matrix(q_wxyz), dtype=float)
        if rate is None:
            w = R.T @ turning if isinstance(attitude, str) and attitude == "lvlh" else np.zeros(3)
        else:
            w = numbers("Environment.start", "rate", rate, 3, batch=False)
        q, speeds = model.neutral(), np.zeros(model.nv)
        q[model.q_slice(name)] = np.r_[p, q_wxyz]
        speeds[model.v_slice(name)] = np.r_[w, R.T @ u]
        return q, speeds


def _check_zonal(harmonics: Mapping[Any, Any], degree: int, order: int) -> None:
    for n, value in harmonics.items():
        known = isinstance(value, int | float | np.number) and np.isfinite(value)
        if not (isinstance(n, int) and n >= 2 and known):
            raise ArgumentError(
                f"gravity: harmonics has {n!r}: {value!r}, expected zonal coefficients by degree, as {{2: 1.0826e-3}}"
            )
    highest = max(harmonics, default=0)
    if not harmonics or degree > highest or order:
        raise ArgumentError(
            f"gravity: degree {degree} and order {order} are asked for, and harmonics has zonal coefficients of degree "
            f"{', '.join(map(str, sorted(harmonics))) or 'none'}; give those that are missing, or leave degree and order out"
        )


def _listed(surfaces: Facet | Sequence[Facet], who: str) -> tuple[Facet, ...]:
    found = (surfaces,) if isinstance(surfaces, Facet) else tuple(surfaces)
    if not found:
        raise ArgumentError(
            f"Environment.{who}: surfaces is empty, expected Facet(frame, area, ...), or box(...)"
        )
    for facet in found:
        if not isinstance(facet, Facet):
            raise ArgumentError(
                f"Environment.{who}: surfaces has {facet!r}, expected Facet(frame, area, ...)"
            )
    return found
