"""Impacts with restitution: of joints at their limits and of points on planes.

With G the direction in which the gap opens (gap rate = G v), an impact at G v < 0 gives the impulse p along G^T that
turns the gap's rate back, while the constraints C v = 0 that hold go on to hold:

    v+ = v + M^-1 (G^T p + C^T p_c),    G v+ = -e G v,    C v+ = 0                        (1)

Frictionless; e is the coefficient of restitution, by Newton's rule. Joints that follow a prescribed motion keep their
speeds. A joint whose rebound is slower than `rest_speed` comes to rest at its limit: the limit becomes a constraint, until
the reaction would have to pull.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.errors import ArgumentError, NumericalError
from alembert.expression import scalars
from alembert.model import WORLD, Model
from alembert.simulate.events import Event
from alembert.simulate.forces import limited_coordinates
from alembert.simulate.topology import Outcome, stop_name

if TYPE_CHECKING:
    from alembert.simulate.system import System

Array = np.ndarray


def _check(who: str, restitution: float, rest_speed: float) -> None:
    if not 0 <= restitution <= 1:
        raise ArgumentError(f"{who}: restitution is {restitution!r}, expected 0 to 1")
    if not (math.isfinite(rest_speed) and rest_speed > 0):
        raise ArgumentError(f"{who}: rest_speed is {rest_speed!r}, expected a positive speed")


@dataclass(frozen=True)
class JointStops:
    """Hard stops where the model's position limits are, of the joints named (by default of all that have limits).

    A rebound slower than `rest_speed` is rest; joints of more than one degree of freedom cannot rest.
    """

    restitution: float = 0.0
    joints: tuple[str, ...] | None = None
    rest_speed: float = 1e-3

    def __post_init__(self) -> None:
        _check("JointStops", self.restitution, self.rest_speed)
        if self.joints is not None:
            object.__setattr__(self, "joints", tuple(self.joints))

    def resting(self, model: Model) -> list[str]:
        """Joints that may come to rest at a limit."""
        places = limited_coordinates(model, self.joints, "JointStops")
        found = [_joint_of(model, iq) for iq, _, _, _ in places]
        return [name for name in dict.fromkeys(found) if model.joint(name).type.nq == 1]

    def start(self, system: System, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """A state at the limits from which a run may start: what presses against a stop rests there."""
        for event in self.events(system):
            if isinstance(event.action, _Stop):
                gap = event.value(t, q, v)
                if gap < -1e-9:
                    raise ArgumentError(
                        f"simulate: q0: {event.name.removesuffix(' limit')} limit is passed by {-gap:.3g}, expected a start "
                        "within the limits for JointStops"
                    )
                stop = event.action
                if gap <= 0 and stop.sign * v[stop.iv] <= 0:
                    found = stop.apply(system, t, q, v)
                    q, v = found.q, found.v
        return q, v

    def events(self, system: System) -> list[Event]:
        model = system.model
        found = []
        for iq, iv, lower, upper in limited_coordinates(model, self.joints, "JointStops"):
            joint = _joint_of(model, iq)
            label = model.coordinate_names[iq]
            for limit, sign, side in ((upper, -1.0, "upper"), (lower, 1.0, "lower")):
                if not np.isfinite(limit):
                    continue
                stop = _Stop(self, joint, iq, iv, float(limit), sign)
                found.append(Event(stop.gap(system), f"{label} at its {side} limit", -1, stop))
            if model.joint(joint).type.nq == 1:
                leave = _Leave(joint)
                found.append(Event(leave.push(system), f"{label} leaves its limit", -1, leave))
        return found


def _joint_of(model: Model, coordinate: int) -> str:
    return next(
        joint.name
        for joint, s in zip(model.joints, model._q_slices, strict=True)
        if s.start <= coordinate < s.stop
    )


@dataclass(frozen=True)
class _Stop:
    """The impact of one coordinate; `sign` is that of speeds that lead away from the limit."""

    stops: JointStops
    joint: str
    iq: int
    iv: int
    limit: float
    sign: float

    def gap(self, system: System) -> Callable[[float, Array, Array], float]:
        name = stop_name(self.joint)

        def gap(t: float, q: Array, v: Array) -> float:
            return 1.0 if name in system.active else float(self.sign * (q[self.iq] - self.limit))

        return gap

    def apply(self, system: System, t: float, q: Array, v: Array) -> Outcome:
        row = np.zeros(system.model.nv)
        row[self.iv] = self.sign
        internal = system.model.joint(self.joint).parent != WORLD
        after, impulse = bounce(system, q, v, row, self.stops.restitution)
        quantities: dict[str, Any] = {"impulse": impulse, "speed": float(row @ v)}
        if row @ after >= self.stops.rest_speed:
            return Outcome(q, after, quantities, internal=internal)
        name = stop_name(self.joint)
        after, impulse = bounce(system, q, v, row, 0.0)
        quantities["impulse"] = impulse
        if system.model.joint(self.joint).type.nq != 1:
            raise NumericalError(
                f"simulate: joint {self.joint!r} comes to rest at its limit at t = {t:.9g} s, which joints of more than one "
                "degree of freedom cannot; give SoftStop(...) in forces, or stop the run there"
            )
        q = q.copy()
        q[self.iq] = self.limit
        coupling = next(c for c in system.model.couplings if c.name == name)
        system.switch(on=(name,), values={str(coupling.offset): self.limit}, sides={name: self.sign})
        if self.sign * system.reaction(name, t, q, after) <= 0:  # something pulls it away at once
            system.switch(off=(name,))
            return Outcome(q, after, quantities, internal=internal)
        return Outcome(q, after, quantities, switched=True, internal=internal)


@dataclass(frozen=True)
class _Leave:
    """A joint at rest at its limit goes, when the stop would have to pull."""

    joint: str

    def push(self, system: System) -> Callable[[float, Array, Array], float]:
        name = stop_name(self.joint)

        def push(t: float, q: Array, v: Array) -> float:
            if name not in system.active:
                return 1.0
            return system.topology.sides[name] * system.reaction(name, t, q, v)

        return push

    def apply(self, system: System, t: float, q: Array, v: Array) -> Outcome:
        system.switch(off=(stop_name(self.joint),))
        return Outcome(q, v, {}, switched=True)


@dataclass(frozen=True)
class PlaneImpact:
    """The origin of a frame bounces on the plane normal . x = offset (world axes), from the side of the normal.

    When the rebound is slower than `rest_speed` the run stops there.
    """

    frame: str
    normal: tuple[float, ...] = (0.0, 0.0, 1.0)
    offset: float = 0.0
    restitution: float = 0.0
    rest_speed: float = 1e-3

    def __post_init__(self) -> None:
        _check("PlaneImpact", self.restitution, self.rest_speed)
        n = np.array(scalars(self.normal, 3, "normal"), dtype=float)
        if not np.linalg.norm(n) > 0:
            raise ArgumentError(f"PlaneImpact: normal is {self.normal!r}, expected a direction")
        object.__setattr__(self, "normal", tuple(n / np.linalg.norm(n)))

    def events(self, system: System) -> list[Event]:
        model = system.model
        if model.frame(self.frame).body == WORLD:
            raise ArgumentError(f"PlaneImpact: frame {self.frame!r} does not move")

        def gap(t: float, q: Array, v: Array) -> float:
            p = model.frame_pose(q, self.frame, parameters=system.parameters).translation
            return float(np.dot(self.normal, p)) - self.offset

        return [Event(gap, f"{self.frame} on the plane", -1, self)]

    def apply(self, system: System, t: float, q: Array, v: Array) -> Outcome:
        J = system.model.frame_jacobian(
            q, self.frame, reference="local_world_aligned", parameters=system.parameters
        )
        row = np.asarray(self.normal) @ J[3:6]
        after, impulse = bounce(system, q, v, row, self.restitution)
        stop = bool(row @ after < self.rest_speed)
        return Outcome(q, after, {"impulse": impulse, "speed": float(row @ v)}, stop=stop, internal=False)


def bounce(system: System, q: Array, v: Array, row: Array, restitution: float) -> tuple[Array, float]:
    """(1): the speeds after the impact, and the impulse."""
    M = system.own.mass_matrix(q, parameters=system.own_parameters)
    rows = row[None]
    target = np.array([-(1 + restitution) * (row @ v)])
    if system.active:
        C = system.model.constraint_jacobian(q, active=system.active, parameters=system.parameters)
        rows, target = np.vstack([rows, C]), np.concatenate([target, -C @ v])
    free = np.flatnonzero(~system.prescribed)
    W = np.zeros(rows.T.shape)
    W[free] = np.linalg.solve(M[free[:, None], free], rows[:, free].T)
    p, *_ = np.linalg.lstsq(rows @ W, target, rcond=1e-10)
    after = v + W @ p
    if abs(row @ after + restitution * (row @ v)) > 1e-6 * max(abs(row @ v), 1e-12):
        raise NumericalError(
            "simulate: an impact has no solution: the constraints that hold, or prescribed motions, do not let the gap open"
        )
    return after, float(p[0])
