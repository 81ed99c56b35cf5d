"""Operations in orbit, one call each: docking and berthing, paths from rest to rest, transporters, tethers, deployable rims.

    path = rest_to_rest([0, 600, 1500], [0.0, 0.0, 8.0])
    transporter(builder, "car", "truss", at=(-20, 0, 2), along=(1, 0, 0), length=40, mass=1500)
    run = al.simulate(model, ..., prescribed={"car": path})

They add bodies, joints and loops to a `ModelBuilder`; what moves by itself is a force or a spring, so that momentum is
kept.

Docking ports are frames that meet, hold, latch, and part again with a push. Two ports face one another: port b is captured
by port a when their origins come within `reach`, slowly and straight enough. A capture is rigid, or leaves what a joint
allows (a ball joint: the probe turns in the cone) until latches close. A port on springs (`soft_port`) gives way: what it
captures swings out on them. Momentum is kept through the impulse of capture (`alembert.simulate.events`), which is in the
log of events; so is a capture that was refused, with its reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.arguments import Numbers, Vector, real, whole
from alembert.errors import ArgumentError
from alembert.joints import Fixed, Free, Friction, JointType, Limits, Prismatic, Revolute, Spring, Universal
from alembert.model import Box, Inertia, Model, ModelBuilder, Placement, Visual
from alembert.simulate.elements import Places
from alembert.simulate.events import Attach, Change, Event, Lock, Release, WithParameters
from alembert.simulate.sensors import HoldSwitch, Measured
from alembert.spacecraft.devices import axes_about, not_negative, positive

if TYPE_CHECKING:
    from collections.abc import Callable

    from alembert.simulate.simulation import Simulation

Array = np.ndarray


def docking_port(
    builder: ModelBuilder, name: str, body: str, at: Vector, *, quaternion_wxyz: Numbers = (1, 0, 0, 0)
) -> str:
    """A frame on a body that points outward along its x axis; gives its name."""
    builder.frame(name, body, Placement(tuple(at), tuple(quaternion_wxyz)))
    return name


def soft_port(
    builder: ModelBuilder,
    name: str,
    body: str,
    at: Any,
    *,
    mass: float,
    radius: float,
    stiffness: tuple[float, float],
    damping: tuple[float, float],
    quaternion_wxyz: Any = (1, 0, 0, 0),
) -> str:
    """A port on a ring that springs and dampers hold in all six directions; gives the name of its frame.

    The ring is thin, of `mass` [kg] and `radius` [m], about the port's x axis. `stiffness` and `damping` are two numbers
    each, for turning [N m/rad, N m s/rad] and for moving [N/m, N s/m].
    """
    who = f"soft_port {name!r}"
    pairs = {"stiffness": stiffness, "damping": damping}
    for what, given in pairs.items():
        if np.shape(given) != (2,):
            raise ArgumentError(
                f"{who}: {what} is {given!r}, expected two numbers, for turning and for moving"
            )
    positive(who, mass=mass, radius=radius, stiffness=min(stiffness))
    not_negative(who, damping=min(damping))
    turning = mass * radius**2
    builder.body(
        f"{name}_ring",
        Inertia(mass, (0, 0, 0), (turning, 0, turning / 2, 0, 0, turning / 2)),
        joint=Free(),
        joint_name=f"{name}_springs",
        parent=body,
        placement=Placement(tuple(at), tuple(quaternion_wxyz)),
        spring=Spring((stiffness[0],) * 3 + (stiffness[1],) * 3),
        friction=Friction((damping[0],) * 3 + (damping[1],) * 3),
    )
    builder.frame(name, f"{name}_ring")
    return name


@dataclass(frozen=True)
class Capture(Attach):
    """From the event on port b stays where it is relative to port a, if it came slowly and straight enough.

    With a `joint` it is held as far as that joint does, until a `Latch` makes it rigid. `speed` [m/s] and `rate` [rad/s] are
    of b relative to a; `angle` [rad] is between the axes that face one another, `offset` [m] across a's axis.
    """

    speed: float = math.inf
    rate: float = math.inf
    angle: float = math.inf
    offset: float = math.inf

    def apply(self, system: Simulation, t: float, q: Array, v: Array) -> Change:
        found = approach(system.own, q, v, self.frame_a, self.frame_b, system.own_parameters)
        for what in ("speed", "rate", "angle", "offset"):
            if found[what] > getattr(self, what):
                return Change(q, v, {f"refused: {what}": found[what], **found})
        return _told(super().apply(system, t, q, v), found)

    def holds(self, active: Sequence[str]) -> bool:
        return self.name in active or Attach(self.frame_a, self.frame_b).name in active


@dataclass(frozen=True)
class Latch(Attach):
    """What a `Capture` holds by a joint becomes rigid, where it is then; that nothing was captured is told in the log."""

    captured: str = ""
    """the name of the capture"""

    def apply(self, system: Simulation, t: float, q: Array, v: Array) -> Change:
        found = approach(system.own, q, v, self.frame_a, self.frame_b, system.own_parameters)
        if self.captured not in system.active:
            return Change(q, v, {"refused: not captured": found["distance"], **found})
        system.switch(off=(self.captured,))
        return _told(super().apply(system, t, q, v), found)


def _told(change: Change, found: dict[str, float]) -> Change:
    return replace(change, quantities={**change.quantities, **found})


@dataclass(frozen=True)
class Separate(Release):
    """What was attached parts, with an `impulse` [N s] on frame b along a's x axis, and the opposite one on frame a.

    That a `Capture` was refused before, so that nothing parts, is told in the log.
    """

    impulse: float = 0.0

    def apply(self, system: Simulation, t: float, q: Array, v: Array) -> Change:
        if isinstance(self.what, Capture | Latch) and self.what.name not in system.active:
            gap = approach(system.own, q, v, self.what.frame_a, self.what.frame_b, system.own_parameters)
            return Change(q, v, {"refused: not captured": gap["distance"], **gap})
        found = super().apply(system, t, q, v)
        if not self.impulse:
            return found
        if not isinstance(self.what, Attach):
            raise ArgumentError(
                f"Separate: an impulse needs the Capture or Attach that parts, not {self.what!r}"
            )
        model = system.model
        a, b = self.what.frame_a, self.what.frame_b
        given: dict[str, Any] = {"parameters": system.parameters}
        push = model.frame_pose(q, a, **given).rotation[:, 0] * self.impulse
        here, there = (model.frame_pose(q, x, **given) for x in (a, b))
        J_b = model.frame_jacobian(q, b, reference="local_world_aligned", **given)[3:]
        arm = there.rotation.T @ (there.translation - here.translation)
        J_a = model.frame_jacobian(
            q, a, reference="local_world_aligned",
            point=here.rotation.T @ (there.rotation @ arm), **given,
        )[3:]  # fmt: skip
        p = (J_b - J_a).T @ push  # at one point of space: no moment is left over
        if system.active:
            raise ArgumentError("Separate: an impulse and other constraints that hold do not go together")
        free = ~system.prescribed  # the drives of the others keep their speeds
        after = v.copy()
        after[free] += np.linalg.solve(model.mass_matrix(q, **given)[np.ix_(free, free)], p[free])
        return Change(q, after, {"impulse": self.impulse}, switched=True, internal=not system.prescribes)


def approach(
    model: Model, q: Array, v: Array, a: str, b: str, parameters: Mapping[str, Any] | None = None
) -> dict[str, float]:
    """Distance, speed and rate of port b relative to port a, the angle between their axes, and the offset across a's."""
    given: dict[str, Any] = {"parameters": parameters}
    X, Y = (model.frame_pose(q, x, **given) for x in (a, b))
    V, W = (model.frame_velocity(q, v, x, reference="local_world_aligned", **given) for x in (a, b))
    r = Y.translation - X.translation
    axis = X.rotation[:, 0]
    cosine = float(np.clip(-axis @ Y.rotation[:, 0], -1.0, 1.0))
    return {
        "distance": float(np.linalg.norm(r)),
        "speed": float(np.linalg.norm(W[3:] - V[3:] - np.cross(V[:3], r))),
        "rate": float(np.linalg.norm(W[:3] - V[:3])),
        "angle": math.acos(cosine),
        "offset": float(np.linalg.norm(r - (r @ axis) * axis)),
    }


def docking(model: Model, a: str, b: str, *, reach: float = 0.05, **limits: Any) -> tuple[Event, Capture]:
    """The event of a capture, and what it attaches (for `Latch` and `Separate`). `limits` and `joint` are those of
    `Capture`. Ports that start within reach are captured at once, if their limits allow it."""
    real("docking", "reach", reach, "a positive distance", over=0.0)
    for frame in (a, b):
        model.frame(frame)
    capture = Capture(a, b, **limits)

    def distance(t: float, q: Array, v: Array, parameters: Any) -> float:
        here, there = (model.frame_pose(q, x, parameters=parameters).translation for x in (a, b))
        return float(np.linalg.norm(there - here)) - reach

    return Event(WithParameters(distance), f"capture of {b}", -1, capture, at_start=True), capture


def latching(capture: Capture, time: float) -> tuple[Event, Latch]:
    """The event of latches that close at a time [s] on what was captured, and what then holds (for `Separate`).

    Latches that are due where a run starts close there, after a capture there.
    """
    real("latching", "time", time, "seconds")
    if not isinstance(capture, Capture) or capture.joint == Fixed():
        raise ArgumentError(
            f"latching: capture is {capture!r}, expected a Capture with a joint=; without one it is rigid at once"
        )
    latch = Latch(capture.frame_a, capture.frame_b, captured=capture.name)
    name = f"latch of {capture.frame_b}"
    return Event(lambda t, q, v: t - time, name, 1, latch, at_start=True), latch


def berthing(
    model: Model, tip: str, grapple: str, port: str, *, grip: float, berth: float, release: float
) -> list[Event]:
    """The events of a berthing: the arm's `tip` takes hold of a `grapple` frame, the `port` holds it, the tip lets go.

    Between the times `grip` and `berth` [s] the arm carries what it holds, by prescribed motion (`rest_to_rest`) or a law;
    all three keep momentum, and hold what they hold where it is then. What is due where a run starts happens there.
    """
    for frame in (tip, grapple, port):
        model.frame(frame)
    if not 0 <= grip < berth < release:
        raise ArgumentError(
            f"berthing: grip at {grip:g} s, berth at {berth:g} s, release at {release:g} s, expected them in this order"
        )
    held = Attach(tip, grapple)

    def at(time: float, name: str, action: Any) -> Event:
        return Event(lambda t, q, v: t - time, name, 1, action, at_start=True)

    return [
        at(grip, f"grip of {grapple}", held),
        at(berth, f"berthing of {grapple}", Attach(port, grapple)),
        at(release, f"release of {grapple}", Release(held)),
    ]


@dataclass(frozen=True)
class PortRange:
    """The distance [m] between two frames, as a sensor."""

    name: str
    frame_a: str
    frame_b: str

    width = 1
    entries = 1
    is_lost_by_chance = False

    def check(self, model: Model) -> None:
        for frame in (self.frame_a, self.frame_b):
            model.frame(frame)

    def expression(self, at: Places, error: ca.SX, chance: ca.SX) -> ca.SX:
        gap = at.pose(self.frame_b).translation - at.pose(self.frame_a).translation
        return ca.sqrt(ca.dot(gap, gap)) + error


def docking_switch(name: str, *held: Attach, period: float, **options: Any) -> Measured:
    """A sensor that is 1 while one of the given `Capture`s and `Latch`es holds, otherwise 0: a switch behind the port."""
    if not held:
        raise ArgumentError(
            f"docking_switch {name!r}: nothing is named that it could see, expected a Capture or a Latch"
        )
    for x in held:
        if not isinstance(x, Attach):
            raise ArgumentError(f"docking_switch {name!r}: held has {x!r}, expected a Capture or a Latch")
    return Measured(HoldSwitch(name, tuple(x.name for x in held)), period, **options)


def port_range(name: str, a: str, b: str, *, period: float, **options: Any) -> Measured:
    """A sensor of the distance between two ports; options are those of `Measured`."""
    return Measured(PortRange(name, a, b), period, **options)


def rest_to_rest(times: Sequence[float] | Array, values: Numbers) -> ca.Function:
    """A function of t for `prescribed=`: at rest at each of the times [s], at the values (rows where there are several).

    Between them polynomials of order 5: speeds and accelerations do not jump. Before and after, it stays where it is.
    """
    when = np.atleast_1d(np.asarray(times, dtype=float))
    where = np.asarray(values, dtype=float)
    if not (when.size and where.size and np.isfinite(when).all() and np.isfinite(where).all()):
        raise ArgumentError(
            f"rest_to_rest: times are {when.tolist()} and values {where.tolist()}, expected finite numbers, one or more"
        )
    where = where.reshape(len(where), -1) if where.ndim else where.reshape(1, 1)
    if when.ndim != 1 or len(when) != len(where) or np.any(np.diff(when) <= 0):
        raise ArgumentError(
            f"rest_to_rest: {len(when)} times {when.tolist()} and {len(where)} values, expected as many of both, times "
            "ascending"
        )
    t = ca.SX.sym("t")
    x = ca.SX(where[0])
    for a, b, start, end in zip(where, where[1:], when, when[1:], strict=False):
        if np.any(a != b):
            u = ca.fmin(ca.fmax((t - start) / (end - start), 0.0), 1.0)
            x = x + ca.DM(b - a) * (u**3 * (10 - 15 * u + 6 * u**2))
    return ca.Function("rest_to_rest", [t], [x])


def transporter(
    builder: ModelBuilder,
    name: str,
    parent: str,
    *,
    at: Vector,
    along: Vector,
    length: float,
    mass: float,
    size: Vector = (1.0, 1.0, 1.0),
) -> str:
    """A car on a rail of a body: it begins `at` and runs `length` [m] along a direction; body and joint are called `name`.

    Put an arm, or a payload, on it with `parent=name`; move it with `prescribed={name: rest_to_rest(...)}` or a motor.
    """
    who = f"transporter {name!r}"
    positive(who, length=length, mass=mass)
    builder.body(
        name,
        Inertia.box(mass, tuple(size)),
        joint=Prismatic(tuple(axes_about(along, who)[:, 2])),
        joint_name=name,
        parent=parent,
        placement=tuple(at),
        limits=Limits(lower=(0.0,), upper=(length,)),
        visuals=[Visual(Box(tuple(size)))],
    )
    builder.actuator(f"{name}_motor", name)
    return name


def tether(
    builder: ModelBuilder,
    name: str,
    parent: str,
    *,
    at: Vector,
    along: Vector = (0.0, 0.0, -1.0),
    length: float,
    density: float,
    segments: int = 10,
    damping: float = 0.0,
    end: Inertia | None = None,
) -> str:
    """A tether that does not stretch: `segments` rods in a row on universal joints, out from `at`; gives the last body.

    `density` [kg/m] is its mass per length, `damping` [N m s] that of each joint. Rods are called `name_1`, `name_2`, ...;
    at the far end is the body `name_end` with the inertia `end`, or without one a frame of that name.
    """
    who = f"tether {name!r}"
    positive(who, length=length, density=density)
    whole(who, "segments", segments, "a positive number of them")
    axes = axes_about(along, who)
    step = length / segments
    tip = tuple(step * axes[:, 2])
    where = tuple(at)
    for k in range(1, segments + 1):
        builder.body(
            f"{name}_{k}",
            Inertia.rod(density * step, (0, 0, 0), tip),
            joint=Universal(tuple(axes[:, 0]), tuple(axes[:, 1])),
            joint_name=f"{name}_{k}",
            parent=parent,
            placement=where,
            friction=Friction((damping, damping)) if damping else None,
        )
        parent, where = f"{name}_{k}", tip
    if end is None:
        builder.frame(f"{name}_end", parent, Placement(tip))
        return parent
    builder.body(
        f"{name}_end", end, joint=Fixed(), joint_name=f"{name}_end_joint", parent=parent, placement=tip
    )
    return f"{name}_end"


@dataclass(frozen=True)
class DeployableRim:
    """A rim on a model: the hinges of its tree, and the angle at which each locks; all of them equal and positive."""

    name: str
    hinges: tuple[str, ...]
    angle: float
    length: float

    @property
    def radius(self) -> float:
        """From the middle to a hinge, deployed [m]."""
        return self.length / (2 * math.sin(self.angle / 2))

    def stowed(self, model: Model, q: Any, fold: float) -> Array:
        """q with the rim folded like an accordion: hinges alternate by `fold` [rad] about their deployed angle."""
        if not 0 <= fold < math.pi - self.angle:
            raise ArgumentError(
                f"DeployableRim {self.name!r}: fold is {fold!r}, expected 0 to {math.pi - self.angle:.4f} rad"
            )
        found = np.array(q, dtype=float)
        for k, hinge in enumerate(self.hinges):
            found[model.q_slice(hinge)] = self.angle + (fold if k % 2 == 0 else -fold)
        return found

    def lock_ups(self, model: Model) -> list[Event]:
        """An event for each hinge, which locks it where it comes to its deployed angle; the last three only note it.

        A closed rim is rigid without them: locks there would hold what is held already.
        """

        def gap(hinge: str) -> Callable[[float, Array, Array], float]:
            k = model.q_slice(hinge).start
            return lambda t, q, v: q[k] - self.angle

        actions = [*(Lock(hinge) for hinge in self.hinges[:-3]), *(["note"] * 3)]
        return [
            Event(gap(hinge), f"lock-up of {hinge}", 0, action)
            for hinge, action in zip(self.hinges, actions, strict=True)
        ]


def deployable_rim(
    builder: ModelBuilder,
    name: str,
    parent: str,
    *,
    segments: int = 18,
    length: float,
    mass: float,
    stiffness: float,
    damping: float = 0.0,
    joint: JointType | None = None,
    at: Vector = (0.0, 0.0, 0.0),
) -> DeployableRim:
    """A closed rim of rods, as of a bicycle wheel: springs in the hinges [N m/rad] open it, and each locks when it is open.

    The middle of the first rod is on `parent` by a `joint` (fixed), along x; the others follow on hinges about z, up to the
    other half of the first, which is held to it by the loop `name_closed`. Begin with `rim.stowed(model, q, fold)` and give
    `rim.lock_ups(model)` as events.
    """
    who = f"deployable_rim {name!r}"
    positive(who, length=length, mass=mass, stiffness=stiffness)
    if not (isinstance(segments, int) and segments >= 4 and segments % 2 == 0):
        raise ArgumentError(f"{who}: segments is {segments!r}, expected an even number, 4 or more")
    angle = 2 * math.pi / segments
    half = Inertia.rod(mass / 2, (0, 0, 0), (length / 2, 0, 0))
    builder.body(
        f"{name}_1", half, joint=joint or Fixed(), joint_name=f"{name}_root", parent=parent, placement=tuple(at),
        visuals=_bar(length / 2),
    )  # fmt: skip
    hinges = []
    for k in range(1, segments + 1):
        last = k == segments
        hinges.append(f"{name}_hinge_{k}")
        builder.body(
            f"{name}_{k + 1}" if not last else f"{name}_1_other_half",
            half if last else Inertia.rod(mass, (0, 0, 0), (length, 0, 0)),
            joint=Revolute((0, 0, 1)),
            joint_name=hinges[-1],
            parent=f"{name}_{k}",
            placement=(length / 2 if k == 1 else length, 0.0, 0.0),
            spring=Spring((stiffness,), (angle,)),
            friction=Friction((damping,)) if damping else None,
            visuals=_bar(length / 2 if last else length),
        )
    builder.frame(f"{name}_middle", f"{name}_1_other_half", (length / 2, 0.0, 0.0))
    # the two halves meet, and stay parallel: their angle is the sum of all hinges, a full turn
    builder.loop(f"{name}_closed", Revolute((0, 0, 1)), f"{name}_middle", f"{name}_1")
    builder.coupling(f"{name}_straight", hinges[-1], hinges[:-1], [-1.0] * (segments - 1), 2 * math.pi)
    return DeployableRim(name, tuple(hinges), angle, length)


def _bar(length: float) -> list[Visual]:
    return [Visual(Box((length, 0.03, 0.03)), Placement((length / 2, 0.0, 0.0)))]
