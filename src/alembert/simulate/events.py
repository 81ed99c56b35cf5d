"""Events: instants at which a function of the state passes through zero, and constraints that begin and cease to hold there.

All that may ever hold is in the model from the start, as couplings and loop joints whose offsets are parameters: a
joint that is locked, or two frames that are attached, keep the place that they have at that instant. Which of them hold
is the run's `Topology`; switching compiles nothing. When some begin to hold, the speeds jump as

    v+ = v + M^-1 G^T p,    G v+ = 0                                                    (1)

(`model.impulse`), so that momentum is kept and as little energy is lost as the constraints allow. The impulses p are in
the log. Joints that follow a prescribed motion keep their speeds: their drives give impulses, which are there too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.arguments import check_known, check_takes, real, unknown
from alembert.errors import ArgumentError, NumericalError
from alembert.expression import Expression
from alembert.joints import Fixed, JointType, Pair
from alembert.model import WORLD, Coupling, Frame, LoopJoint, Model, Placement
from alembert.spatial import quaternion

if TYPE_CHECKING:
    from alembert.simulate.simulation import Simulation

Array = np.ndarray
NO_OFFSET = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
"""translation and quaternion of a place that is where its frame is"""


@dataclass(frozen=True)
class Change:
    """What an action leads to; `switched` says that other constraints hold than before."""

    q: Array
    v: Array
    quantities: Mapping[str, Any] = field(default_factory=dict)
    switched: bool = False
    stop: bool = False
    internal: bool = True


@dataclass(frozen=True)
class Lock:
    """From the event on the joint stays where it is."""

    joint: str

    @property
    def name(self) -> str:
        return f"lock of {self.joint}"

    def apply(self, system: Simulation, t: float, q: Array, v: Array) -> Change:
        return begin(system, self.name, q, v)

    def extend(self, model: Model) -> Model:
        check_known("simulate: Lock: no joint", self.joint, model.joint_indices)
        joint = model.joint(self.joint)
        if joint.type.nv == 0:
            raise ArgumentError(f"simulate: Lock: joint {self.joint!r} does not move")
        if joint.type.nv == 1 and joint.type.nq == 1 and joint.type.is_vector_space:
            return with_offset(model, self.name, self.joint)
        on_parent = Frame(self.name, joint.parent, node=joint.node)
        return with_weld(model, self.name, on_parent, joint.child)


@dataclass(frozen=True)
class Attach:
    """From the event on, frame b keeps the place relative to frame a that it has then, or moves there as a joint allows."""

    frame_a: str
    frame_b: str
    joint: JointType = Fixed()  # noqa: RUF009  (frozen)

    @property
    def name(self) -> str:
        if self.joint != Fixed():
            return f"{self.frame_b} on {self.frame_a} ({self.joint.kind})"
        return f"{self.frame_b} on {self.frame_a}"

    def holds(self, active: Sequence[str]) -> bool:
        """Whether there is nothing left to attach, by the names of the constraints that hold."""
        return self.name in active

    def apply(self, system: Simulation, t: float, q: Array, v: Array) -> Change:
        return begin(system, self.name, q, v)

    def extend(self, model: Model) -> Model:
        return with_weld(model, self.name, model.frame(self.frame_a), self.frame_b, self.joint)


@dataclass(frozen=True)
class Dock:
    """From the event on, frame b moves relative to frame a as a joint allows (by default not at all).

    The frames must then be in reach: what is left between them, relative to the size of the model, is at most
    `tolerance`, and is closed the shortest way.
    """

    frame_a: str
    frame_b: str
    joint: JointType = Fixed()  # noqa: RUF009  (frozen)
    tolerance: float = 1e-3

    @property
    def name(self) -> str:
        return f"{self.frame_b} at {self.frame_a}"

    def apply(self, system: Simulation, t: float, q: Array, v: Array) -> Change:
        model = system.model
        residual = model.constraint_residual(q, active=(self.name,), parameters=system.parameters)
        left = float(np.max(np.abs(residual)))
        if left > self.tolerance:
            raise NumericalError(
                f"simulate: Dock: {self.frame_b!r} is not at {self.frame_a!r} at t = {t:.9g} s: {left:.3g} (m, rad) "
                f"are left, expected at most {self.tolerance:g}; Attach(...) holds them where they are, a joint= that "
                "leaves directions free needs less to agree, a larger tolerance= closes more at a stroke"
            )
        system.switch(on=(self.name,))
        return jump(system, (self.name,), system.surface.nearest(q, v)[0], v)

    def extend(self, model: Model) -> Model:
        loop = LoopJoint(self.name, self.joint, self.frame_a, self.frame_b)
        return model.replace(loops=(*model.loops, loop))


@dataclass(frozen=True)
class Release:
    """What was locked (the joint's name) or attached (an `Attach` or `Dock`), or a loop or coupling, holds no longer."""

    what: str | Attach | Dock | Lock

    def apply(self, system: Simulation, t: float, q: Array, v: Array) -> Change:
        name = self.constraint(system.model)
        if name not in system.active:
            raise ArgumentError(f"simulate: Release: {name!r} does not hold at t = {t:.9g} s")
        system.switch(off=(name,))
        return Change(q, v, {}, switched=True)

    def constraint(self, model: Model) -> str:
        name = self.what if isinstance(self.what, str) else self.what.name
        known = [*(x.name for x in model.loops), *(x.name for x in model.couplings)]
        known += [x.name for x in model.equations]
        for candidate in (name, f"lock of {name}"):
            if candidate in known:
                return candidate
        raise ArgumentError(unknown("simulate: Release: nothing holds by the name", name, known))


@dataclass(frozen=True)
class Topology:
    """The constraints that hold, and the places at which they do (values of parameters)."""

    active: tuple[str, ...]
    values: Mapping[str, float] = field(default_factory=dict)
    sides: Mapping[str, float] = field(default_factory=dict)
    """of joints that rest at a limit, the sign of speeds that lead away from it"""


def extended(model: Model, actions: Sequence[Any], stops: Sequence[str]) -> Model:
    """The model with all constraints that the actions may bring about; `stops` are joints that may rest at a limit."""
    added: dict[str, Any] = {}
    for action in actions:
        if isinstance(action, Attach | Dock):
            _check_joint(action, added)
        if isinstance(action, Lock | Attach | Dock) and action.name not in added:
            added[action.name] = action.joint
            model = action.extend(model)
    for joint in stops:
        if stop_name(joint) not in added:
            added[stop_name(joint)] = joint
            model = with_offset(model, stop_name(joint), joint)
    for action in actions:
        if isinstance(action, Release):
            action.constraint(model)
    return model


def _check_joint(action: Attach | Dock, added: Mapping[str, Any]) -> None:
    """Refuse what is no joint, and two that differ under one name."""
    if not isinstance(action.joint, Pair):
        raise ArgumentError(
            f"simulate: {type(action).__name__}: joint is {action.joint!r}, expected a joint type, as al.Spherical()"
        )
    if added.get(action.name, action.joint) != action.joint:
        raise ArgumentError(
            f"simulate: events join {action.frame_b!r} to {action.frame_a!r} by {added[action.name]!r} and by "
            f"{action.joint!r}, expected one of this kind; give one of them a frame of its own"
        )


def stop_name(joint: str) -> str:
    return f"stop of {joint}"


def with_offset(model: Model, name: str, joint: str) -> Model:
    """A coupling without masters, q = offset."""
    parameter = f"place_{len(model.couplings)}"
    coupling = Coupling(name, joint, (), (), Expression(parameter))
    return model.replace(
        couplings=(*model.couplings, coupling), parameters=(*model.parameters, (parameter, 0.0))
    )


def with_weld(
    model: Model,
    name: str,
    frame_a: Frame,
    frame_b: str,
    joint: JointType = Fixed(),  # noqa: B008  (frozen)
) -> Model:
    """A loop joint (by default a fixed one) between frame b and a frame on a's body, or at its node of a flexible one, whose
    place there is given by parameters."""
    model.frame(frame_b)
    labels = [f"weld_{len(model.loops)}_{k}" for k in range(7)]
    place = Placement(tuple(Expression(x) for x in labels[:3]), tuple(Expression(x) for x in labels[3:]))
    frame = Frame(f"{name}: place", frame_a.body, place, frame_a.node)
    return model.replace(
        frames=(*model.frames, frame),
        loops=(*model.loops, LoopJoint(name, joint, frame.name, frame_b)),
        parameters=(*model.parameters, *zip(labels, NO_OFFSET, strict=True)),
    )


def begin(system: Simulation, name: str, q: Array, v: Array) -> Change:
    """A constraint with a place of its own begins to hold where it is."""
    system.switch(on=(name,), values=place_of(system, name, q))
    return jump(system, (name,), q, v)


def place_of(system: Simulation, name: str, q: Array) -> dict[str, float]:
    """The values of a constraint's parameters at which it holds."""
    model = system.model
    for coupling in model.couplings:
        if coupling.name == name and isinstance(coupling.offset, Expression):
            return {coupling.offset.text: float(q[model.q_slice(coupling.joint)][0])}
    for loop in model.loops:
        if loop.name == name and loop.frame_a == f"{name}: place":
            place = model.frame(loop.frame_a).placement
            entries = [str(entry) for entry in (*place.translation, *place.quaternion)]
            parameters = {**(system.parameters or {}), **dict(zip(entries, NO_OFFSET, strict=True))}
            X_A, X_B = (
                model.frame_pose(q, frame, parameters=parameters) for frame in (loop.frame_a, loop.frame_b)
            )
            X = X_A.inverse() @ X_B
            numbers = (*X.translation, *quaternion.from_matrix(X.rotation))
            return {entry: float(x) for entry, x in zip(entries, numbers, strict=True)}
    raise AssertionError(name)


def jump(system: Simulation, names: Sequence[str], q: Array, v: Array) -> Change:
    """(1)"""
    model = system.model
    held = [name for name, follows in zip(model.speed_names, system.prescribed, strict=True) if follows]
    found = model.impulse(q, v, held=held, active=system.active, parameters=system.parameters)
    quantities: dict[str, Any] = {f"impulse of {name}": found.impulses[name] for name in names}
    quantities |= {
        f"impulse of the drive of {name}": found.drives[model.speed_names.index(name)] for name in held
    }
    outside = bool(held) or any(_touches_world(model, name) for name in names)
    return Change(q, found.velocities, quantities, switched=True, internal=not outside)


def _touches_world(model: Model, name: str) -> bool:
    for loop in model.loops:
        if loop.name == name:
            bodies = [model.frame(frame).body for frame in (loop.frame_a, loop.frame_b)]
            return any(
                body == WORLD or model.compute.tree.carriers[model.body_index(body)][0] < 0 for body in bodies
            )
    for coupling in model.couplings:
        if coupling.name == name:
            return model.joint(coupling.joint).parent == WORLD
    return True


@dataclass(frozen=True)
class WithParameters:
    """For an `Event`: a `function(t, q, v, parameters)`, where parameters are those given to the run (None: the model's)."""

    function: Callable[[float, Array, Array, Mapping[str, Any] | None], float]

    def __call__(self, t: float, q: Array, v: Array, parameters: Mapping[str, Any] | None = None) -> float:
        return self.function(t, q, v, parameters)


@dataclass(frozen=True)
class Event:
    """`function(t, q, v)` passes zero: rising (`direction` 1), falling (-1) or either way (0).

    A function that depends on parameters of the run is given as `WithParameters(function)`.

    `action` is "stop", "note" (only the log), a function of (t, q, v) that returns the state (q, v) to go on from, or
    None to go on unchanged, or what changes the topology: `Lock`, `Release`, `Attach`, `Dock`, or a list of them. The
    instant is located to `tolerance` [s]. With `at_start` it also happens where a run starts beyond zero, in its direction.

    The sign is looked at after each step; with error control, where steps may be long, as often as the run is recorded
    (`interval=`), at 4 to 100 places of a step. A function that passes zero twice in between is not seen.
    """

    function: Callable[[float, Array, Array], float]
    name: str = "event"
    direction: int = 0
    action: Any = "stop"
    tolerance: float = 1e-10
    at_start: bool = False

    def __post_init__(self) -> None:
        if self.at_start and self.direction == 0:
            raise ArgumentError(
                "Event: at_start needs a direction, 1 or -1, that says which side is beyond zero"
            )
        if not callable(self.function):
            raise ArgumentError(f"Event: function is {self.function!r}, expected a function of t, q and v")
        if not isinstance(self.function, WithParameters):
            check_takes("Event: function", self.function, "t", "q", "v")
        if self.direction not in (-1, 0, 1):
            raise ArgumentError(f"Event: direction is {self.direction!r}, expected -1, 0 or 1")
        if isinstance(self.action, list):
            object.__setattr__(self, "action", tuple(self.action))
        many = (
            isinstance(self.action, tuple) and self.action and all(hasattr(x, "apply") for x in self.action)
        )
        one = hasattr(self.action, "apply") or hasattr(self.action, "rests")
        if callable(self.action) and not one:
            check_takes("Event: action", self.action, "t", "q", "v")
            one = True
        if not (many or one or self.action in ("stop", "note")):
            raise ArgumentError(
                f"Event: action is {self.action!r}, expected 'stop', 'note', a function, Lock(...), Release(...), "
                "Attach(...) or Dock(...)"
            )
        real("Event", "tolerance", self.tolerance, "a positive time", over=0.0)

    def value(self, t: float, q: Array, v: Array, parameters: Mapping[str, Any] | None = None) -> float:
        if isinstance(self.function, WithParameters):
            found: Any = self.function(t, q, v, parameters)
        else:
            found = self.function(t, q, v)
        try:
            x = float(found)
        except (TypeError, ValueError):
            raise ArgumentError(f"simulate: event {self.name!r} gave {found!r}, expected a number") from None
        if math.isnan(x):
            raise NumericalError(f"simulate: event {self.name!r} gave NaN at t = {t:.9g} s")
        return x

    def crossed(self, before: float, after: float) -> bool:
        if before < 0 <= after:
            return self.direction >= 0
        return self.direction <= 0 and before > 0 >= after


@dataclass(frozen=True)
class EventRecord:
    """One line of the log: the state at which the event happened, and the state from which the run went on.

    `quantities` are impulses [N s, N m s] and what else the action tells; `energy` is the kinetic and potential energy
    that the event added [J].
    """

    name: str
    time: float
    q: Array = field(repr=False)
    v: Array = field(repr=False)
    q_after: Array = field(repr=False)
    v_after: Array = field(repr=False)
    quantities: Mapping[str, Any] = field(default_factory=dict)
    energy: float = 0.0
    internal: bool = field(default=True, repr=False)
    """nothing from outside acted on the model"""
