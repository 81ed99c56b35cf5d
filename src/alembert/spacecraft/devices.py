"""Devices of a spacecraft, one call each: they add bodies and joints to a `ModelBuilder`, or frames that push.

    builder = al.ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("hub", al.Inertia.box(500, (1, 1, 2)), joint=al.Free(), joint_name="flight")
    wheels = [reaction_wheel(builder, f"wheel_{a}", "hub", axis, inertia=0.05, torque=0.2, speed=600) for a, axis in ...]
    slosh_pendulum(builder, "fuel", "hub", mass=40, length=0.3, at=(0, 0, -0.4))

A wheel's imbalance is its centre of mass and its products of inertia, a slosh mass a body, a gimbal a joint: nothing is
added to the equations of motion by hand, so momentum is kept by all of them. What devices do with commands is in
`alembert.spacecraft.flight`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.arguments import Vector, numbers, real
from alembert.arguments import positive as finite_and_positive
from alembert.errors import ArgumentError
from alembert.flexible.beam import beam
from alembert.joints import Friction, Limits, Prismatic, Revolute, Spring, Universal
from alembert.library.examples import disc
from alembert.model import Box, Inertia, ModelBuilder, Placement, Visual

Array = np.ndarray
_THIN = 0.51
"""moment of inertia across the axis of a wheel over that about it; 0.5 is a disc without thickness"""


def positive(who: str, **values: float) -> None:
    """Refuse values that are not."""
    for name, value in values.items():
        if numbers(who, name, value).ndim or not value > 0:
            raise ArgumentError(f"{who}: {name} is {value!r}, expected a positive number")


def not_negative(who: str, **values: float) -> None:
    """Refuse values below zero."""
    for name, value in values.items():
        if numbers(who, name, value).ndim or not value >= 0:
            raise ArgumentError(f"{who}: {name} is {value!r}, expected zero or more")


def _limit(value: float) -> tuple[float, ...]:
    return (value,) if math.isfinite(value) else ()


def axes_about(axis: Vector, who: str) -> Array:
    """(3, 3): columns are two directions across the axis, and the axis."""
    a = np.asarray(axis, dtype=float)
    if a.shape != (3,) or not np.linalg.norm(a) > 0:
        raise ArgumentError(f"{who}: axis is {axis!r}, expected a direction")
    a = a / np.linalg.norm(a)
    across = np.cross(a, np.eye(3)[int(np.argmin(np.abs(a)))])
    across /= np.linalg.norm(across)
    return np.stack([across, np.cross(a, across), a], axis=1)


@dataclass(frozen=True)
class ReactionWheel:
    """What a wheel can do: its joint, its inertia about the axis [kg m^2], torque [N m] and speed [rad/s] at most."""

    name: str
    axis: tuple[float, ...]
    inertia: float
    torque: float
    speed: float


def reaction_wheel(
    builder: ModelBuilder,
    name: str,
    parent: str,
    axis: Vector,
    *,
    inertia: float,
    mass: float = 0.0,
    torque: float = math.inf,
    speed: float = math.inf,
    viscous: float = 0.0,
    coulomb: float = 0.0,
    static_imbalance: float = 0.0,
    dynamic_imbalance: float = 0.0,
    at: Vector = (0.0, 0.0, 0.0),
) -> ReactionWheel:
    """A wheel on a body: the joint and the body are called `name`, its motor `name_motor`.

    `inertia` is about the axis; `mass` is by default that of a disc of 0.2 m radius. Friction is viscous [N m s] and of
    Coulomb [N m]. The static imbalance [kg m] sets the centre of mass off the axis, the dynamic one [kg m^2] is a product of
    inertia: a wheel at Omega then pushes with U Omega^2.
    """
    who = f"reaction_wheel {name!r}"
    positive(who, inertia=inertia, torque=torque, speed=speed)
    mass = mass or 2 * inertia / 0.2**2
    positive(who, mass=mass)
    for what, value in (("static_imbalance", static_imbalance), ("dynamic_imbalance", dynamic_imbalance)):
        real(who, what, value, "a number")
    if math.isinf(inertia) or math.isinf(mass):
        raise ArgumentError(f"{who}: inertia is {inertia!r} and mass {mass!r}, expected finite numbers")
    R = axes_about(axis, who)
    local = np.diag([_THIN * inertia, _THIN * inertia, inertia])
    local[0, 2] = local[2, 0] = -dynamic_imbalance
    offset = static_imbalance / mass
    local -= (
        mass * offset**2 * np.diag([0.0, 1.0, 1.0])
    )  # `inertia` is about the axis, the tensor about the centre of mass
    not_negative(who, viscous=viscous, coulomb=coulomb)
    moments = np.linalg.eigvalsh(local)
    if not (moments[0] > 0 and moments[0] + moments[1] >= moments[2] * (1 - 1e-9)):
        raise ArgumentError(
            f"{who}: an imbalance of {static_imbalance:g} kg m and {dynamic_imbalance:g} kg m^2 leaves the principal "
            f"moments ({', '.join(f'{x:.4g}' for x in moments)}) of {inertia:g} kg m^2 about the axis, which no body has; "
            f"expected less imbalance, or more mass than {mass:g} kg"
        )
    builder.body(
        name,
        Inertia.from_matrix(mass, tuple(offset * R[:, 0]), R @ local @ R.T),
        joint=Revolute(tuple(R[:, 2])),
        joint_name=name,
        parent=parent,
        placement=tuple(at),
        friction=Friction((viscous,), (coulomb,), 0.1) if viscous or coulomb else None,
        limits=Limits(velocity=_limit(speed), effort=_limit(torque)),
        visuals=[disc(tuple(R[:, 2]), math.sqrt(2 * inertia / mass), 0.03)],
    )
    limits = (-torque, torque) if math.isfinite(torque) else (-math.inf, math.inf)
    builder.actuator(f"{name}_motor", name, limits=limits)
    return ReactionWheel(name, tuple(float(x) for x in R[:, 2]), inertia, torque, speed)


@dataclass(frozen=True)
class ControlMomentGyro:
    """A gimbal (joint `name`) that carries a rotor (joint `name_rotor`); axes at zero gimbal angle in the parent's axes."""

    name: str
    gimbal_axis: tuple[float, ...]
    spin_axis: tuple[float, ...]
    momentum: float
    rotor_inertia: float
    rate: float
    torque: float
    variable_speed: bool = False

    @property
    def rotor(self) -> str:
        return f"{self.name}_rotor"

    @property
    def speed(self) -> float:
        """Of the rotor, nominal [rad/s]."""
        return self.momentum / self.rotor_inertia


def control_moment_gyro(
    builder: ModelBuilder,
    name: str,
    parent: str,
    *,
    gimbal_axis: Vector,
    spin_axis: Vector,
    momentum: float,
    rotor_inertia: float,
    gimbal_inertia: float | None = None,
    mass: float = 0.0,
    rate: float = math.inf,
    torque: float = math.inf,
    variable_speed: bool = False,
    at: Vector = (0.0, 0.0, 0.0),
) -> ControlMomentGyro:
    """A single-gimbal gyro, of constant or `variable_speed`: `momentum` [N m s] at the rotor's nominal speed.

    `rate` and `torque` are those of the gimbal at most. A run starts with the rotor at speed: `spun_up(model, v, gyros)`.
    """
    who = f"control_moment_gyro {name!r}"
    positive(who, momentum=momentum, rotor_inertia=rotor_inertia, rate=rate, torque=torque)
    g, s = axes_about(gimbal_axis, who)[:, 2], axes_about(spin_axis, who)[:, 2]
    if abs(g @ s) > 1e-9:
        raise ArgumentError(
            f"{who}: gimbal_axis and spin_axis have the cosine {g @ s:.3g}, expected right angles"
        )
    mass = mass or 2 * rotor_inertia / 0.2**2
    frame = np.stack([s, np.cross(g, s), g], axis=1)
    Jg = rotor_inertia if gimbal_inertia is None else gimbal_inertia
    positive(who, gimbal_inertia=Jg)
    builder.body(
        name,
        Inertia.from_matrix(0.3 * mass, (0, 0, 0), frame @ (Jg * np.diag([0.6, 0.6, 1.0])) @ frame.T),
        joint=Revolute(tuple(g)),
        joint_name=name,
        parent=parent,
        placement=tuple(at),
        limits=Limits(effort=_limit(torque)),
    )
    local = rotor_inertia * np.diag([1.0, _THIN, _THIN])
    builder.body(
        f"{name}_rotor",
        Inertia.from_matrix(mass, (0, 0, 0), frame @ local @ frame.T),
        joint=Revolute(tuple(s)),
        joint_name=f"{name}_rotor",
        parent=name,
        visuals=[disc(tuple(s), math.sqrt(2 * rotor_inertia / mass), 0.05)],
    )
    builder.actuator(f"{name}_motor", name)
    builder.actuator(f"{name}_rotor_motor", f"{name}_rotor")
    axes = (tuple(float(x) for x in g), tuple(float(x) for x in s))
    return ControlMomentGyro(name, *axes, momentum, rotor_inertia, rate, torque, variable_speed)


def gyro_pyramid(
    builder: ModelBuilder, name: str, parent: str, *, skew_deg: float = 54.7356, **options: Any
) -> list[ControlMomentGyro]:
    """Four gyros on the sides of a pyramid about z, whose sides rise by the skew angle; at zero all momenta cancel."""
    beta = math.radians(skew_deg)
    c, s = math.cos(beta), math.sin(beta)
    gimbals = ((s, 0, c), (0, s, c), (-s, 0, c), (0, -s, c))
    spins = ((0, 1, 0), (-1, 0, 0), (0, -1, 0), (1, 0, 0))
    return [
        control_moment_gyro(builder, f"{name}{k + 1}", parent, gimbal_axis=g, spin_axis=h, **options)
        for k, (g, h) in enumerate(zip(gimbals, spins, strict=True))
    ]


def spun_up(model: Any, v: Any, gyros: Sequence[ControlMomentGyro]) -> Array:
    """Speeds with the rotors of the gyros at their nominal speed."""
    found = np.array(v, dtype=float)
    for gyro in gyros:
        found[model.v_slice(gyro.rotor)] = gyro.speed
    return found


@dataclass(frozen=True)
class MagneticTorquer:
    """Three coils along the axes of a frame: up to `dipole` [A m^2] each."""

    name: str
    frame: str
    dipole: float

    def __post_init__(self) -> None:
        positive(f"MagneticTorquer {self.name!r}", dipole=self.dipole)


@dataclass(frozen=True)
class Thruster:
    """At the origin of a frame (or `at` on it), pushing the craft along `direction` with `force` [N].

    The plume goes the other way. A pulse shorter than `minimum` [s] is not given. `specific_impulse` [s] counts propellant.
    """

    name: str
    frame: str
    direction: tuple[float, ...]
    force: float
    minimum: float = 0.0
    specific_impulse: float = 220.0
    at: tuple[float, ...] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        who = f"Thruster {self.name!r}"
        positive(who, force=self.force, specific_impulse=self.specific_impulse)
        if math.isinf(self.force):
            raise ArgumentError(f"{who}: force is {self.force!r} N, expected a finite one")
        if not self.minimum >= 0:
            raise ArgumentError(f"{who}: minimum is {self.minimum!r} s, expected zero or more")
        object.__setattr__(self, "direction", tuple(float(x) for x in axes_about(self.direction, who)[:, 2]))
        object.__setattr__(self, "at", tuple(numbers(who, "at", self.at, 3, batch=False).tolist()))

    @property
    def wrench(self) -> Array:
        """Moment and force in the frame's axes when it is open."""
        f = self.force * np.array(self.direction)
        return np.r_[np.cross(self.at, f), f]

    @property
    def flow(self) -> float:
        """[kg/s]"""
        return self.force / (self.specific_impulse * 9.80665)


@dataclass(frozen=True)
class ProofMass:
    """What one can do: its joint, its axis, force [N] and stroke [m] at most, from the middle."""

    name: str
    axis: tuple[float, ...]
    force: float = math.inf
    stroke: float = math.inf


def proof_mass(
    builder: ModelBuilder,
    name: str,
    parent: str,
    axis: Vector,
    *,
    mass: float,
    stiffness: float = 0.0,
    damping: float = 0.0,
    force: float = math.inf,
    stroke: float = math.inf,
    at: Vector = (0.0, 0.0, 0.0),
) -> ProofMass:
    """A mass on a rail, with a spring [N/m] and a damper [N s/m] to its middle, for `Hardware`: a message has its force.

    The motor pushes the mass along the axis, and the structure the other way. Beyond its stroke it pushes inwards alone.
    """
    who = f"proof_mass {name!r}"
    positive(who, mass=mass, force=force, stroke=stroke)
    not_negative(who, stiffness=stiffness, damping=damping)
    direction = tuple(float(x) for x in axes_about(axis, who)[:, 2])
    builder.body(
        name,
        Inertia.point(mass),
        joint=Prismatic(direction),
        joint_name=name,
        parent=parent,
        placement=tuple(at),
        spring=Spring((stiffness,)) if stiffness else None,
        friction=Friction((damping,)) if damping else None,
    )
    return ProofMass(name, direction, force, stroke)


# --- what moves by itself -------------------------------------------------------------------------------------


def slosh_pendulum(
    builder: ModelBuilder,
    name: str,
    parent: str,
    *,
    mass: float,
    length: float,
    at: Vector,
    damping: float = 0.0,
) -> None:
    """Propellant that swings as a pendulum about `at`, down along -z: the first lateral mode under thrust along z.

    Under an acceleration a it swings at sqrt(a / length). `damping` is viscous [N m s].
    """
    positive(f"slosh_pendulum {name!r}", mass=mass, length=length)
    not_negative(f"slosh_pendulum {name!r}", damping=damping)
    builder.body(
        name,
        Inertia.point(mass, (0.0, 0.0, -length)),
        joint=Universal(),
        joint_name=name,
        parent=parent,
        placement=tuple(at),
        friction=Friction((damping, damping)) if damping else None,
    )


def slosh_mass(
    builder: ModelBuilder,
    name: str,
    parent: str,
    *,
    mass: float,
    stiffness: float,
    damping: float = 0.0,
    axis: Vector = (1.0, 0.0, 0.0),
    at: Vector = (0.0, 0.0, 0.0),
) -> None:
    """Propellant, or a proof mass, on a spring [N/m] and a damper [N s/m] along an axis."""
    who = f"slosh_mass {name!r}"
    positive(who, mass=mass, stiffness=stiffness)
    not_negative(who, damping=damping)
    builder.body(
        name,
        Inertia.point(mass),
        joint=Prismatic(tuple(axes_about(axis, who)[:, 2])),
        joint_name=name,
        parent=parent,
        placement=tuple(at),
        spring=Spring((stiffness,)),
        friction=Friction((damping,)) if damping else None,
    )


def yo_yo(
    builder: ModelBuilder,
    name: str,
    parent: str,
    *,
    mass: float,
    radius: float,
    at: Vector = (0.0, 0.0, 0.0),
    angle: float = 0.0,
) -> None:
    """A mass on a cord wound about the z axis of `parent` at a radius, to despin it; give two, `angle` pi apart.

    The joint `name_turn` is the angle by which the cord is unwound, in the sense of a positive spin, `name_cord` the free
    length, held to `radius` times the angle by the coupling `name_taut`. A mass cannot start at the drum, where its inertia
    vanishes: begin with a small angle, and the rate of the spin.
    """
    positive(f"yo_yo {name!r}", mass=mass, radius=radius)
    c, s = math.cos(angle), math.sin(angle)
    builder.body(
        f"{name}_turn",
        Inertia.point(0.0),
        joint=Revolute((0, 0, 1)),
        joint_name=f"{name}_turn",
        parent=parent,
        placement=tuple(at),
    )
    builder.body(
        name,
        Inertia.point(mass),
        joint=Prismatic((s, -c, 0)),
        joint_name=f"{name}_cord",
        parent=f"{name}_turn",
        placement=(radius * c, radius * s, 0.0),
    )
    builder.coupling(f"{name}_taut", f"{name}_cord", (f"{name}_turn",), (radius,))


def hinged_panel(
    builder: ModelBuilder,
    name: str,
    parent: str,
    *,
    mass: float,
    size: tuple[float, float],
    at: Vector,
    along: Vector = (0.0, 1.0, 0.0),
    hinge: Vector = (1.0, 0.0, 0.0),
    stiffness: float = 0.0,
    damping: float = 0.0,
) -> None:
    """A rigid panel of `size` (along, across) [m] that reaches out from `at`, on a hinge with a spring [N m/rad]."""
    who = f"hinged_panel {name!r}"
    for what, value in (("mass", mass), ("length", size[0]), ("width", size[1])):
        finite_and_positive(who, what, value)
    not_negative(who, stiffness=stiffness, damping=damping)
    out, h = axes_about(along, who)[:, 2], axes_about(hinge, who)[:, 2]
    if abs(out @ h) > 1e-9:
        raise ArgumentError(f"{who}: along and hinge have the cosine {out @ h:.3g}, expected right angles")
    frame = np.stack([h, out, np.cross(h, out)], axis=1)
    L, w = size
    local = mass / 12 * np.diag([L**2, w**2, L**2 + w**2])
    builder.body(
        name,
        Inertia.from_matrix(mass, tuple(L / 2 * out), frame @ local @ frame.T),
        joint=Revolute(tuple(h)),
        joint_name=name,
        parent=parent,
        placement=tuple(at),
        spring=Spring((stiffness,)) if stiffness else None,
        friction=Friction((damping,)) if damping else None,
        visuals=[Visual(Box(tuple(np.abs(frame @ np.array([w, L, 0.02])))), Placement(tuple(L / 2 * out)))],
    )


def flexible_panel(
    builder: ModelBuilder,
    name: str,
    parent: str,
    *,
    mass: float,
    length: float,
    bending: float,
    at: Vector,
    modes: int = 2,
    damping_ratio: float = 0.005,
) -> None:
    """A boom or panel as a beam with bending stiffness EI [N m^2], out along the x axis of `at` (a place or
    `Placement`).
    """
    from alembert.joints import Fixed

    positive(f"flexible_panel {name!r}", mass=mass, length=length, bending=bending)
    body = beam(length, mass / length, EI_y=bending, bending_z=modes, damping_ratio=damping_ratio)
    where = at if isinstance(at, Placement) else Placement(tuple(at))
    builder.body(name, body, joint=Fixed(), joint_name=f"{name}_root", parent=parent, placement=where)
