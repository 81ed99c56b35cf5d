"""Impacts with restitution: of joints at their limits and of points on planes.

With G the directions in which the gaps of all contacts that touch open (rates G v), an impact gives impulses p >= 0 along
G^T that turn closing gaps back, while the constraints C v = 0 that hold go on to hold:

    v+ = v + M^-1 (G^T p + C^T p_c),    C v+ = 0,    0 <= p  _|_  G v+ + e min(G v, 0) >= 0         (1)

Frictionless; e is the coefficient of restitution, by Newton's rule, and with several contacts at one instant by Moreau's:
one that another impulse opens gives none. Joints that follow a prescribed motion keep their speeds. A joint whose rebound is
slower than `rest_speed` comes to rest at its limit: the limit becomes a constraint, until the reaction would have to pull.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import scipy

from alembert.arguments import names, real
from alembert.errors import ArgumentError, NumericalError
from alembert.model import WORLD, Model
from alembert.simulate.elements import read_direction
from alembert.simulate.events import Change, Event, stop_name
from alembert.simulate.forces import limited_coordinates

if TYPE_CHECKING:
    from alembert.simulate.simulation import Simulation

Array = np.ndarray


@runtime_checkable
class Contact(Protocol):
    """A gap that closes: the action of an event whose function is the gap."""

    @property
    def restitution(self) -> float: ...

    @property
    def rest_speed(self) -> float: ...

    def row(self, system: Simulation, q: Array) -> Array:
        """The gap's rate is row @ v."""
        ...

    def rests(self, system: Simulation) -> bool:
        """Whether it is closed and held."""
        ...

    def rest(self, system: Simulation, t: float, q: Array) -> tuple[Array, bool]:
        """Hold it closed from here on: the configuration, and whether the run stops instead."""
        ...

    def push(self, system: Simulation, t: float, q: Array, v: Array) -> float:
        """The force that holds it, positive where it pushes."""
        ...

    def leave(self, system: Simulation) -> None:
        """Hold it no longer."""
        ...

    def internal(self, system: Simulation) -> bool:
        """Whether its impulses act between bodies of the model."""
        ...


def _check(who: str, restitution: float, rest_speed: float) -> None:
    real(who, "restitution", restitution, "0 to 1", least=0.0, most=1.0)
    real(who, "rest_speed", rest_speed, "a positive speed", over=0.0)


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
            joints = (self.joints,) if isinstance(self.joints, str) else self.joints
            object.__setattr__(self, "joints", names("JointStops", "joints", joints))

    def resting(self, model: Model) -> list[str]:
        """Joints that may come to rest at a limit."""
        places = limited_coordinates(model, self.joints, "JointStops")
        found = [_joint_of(model, iq) for iq, _, _, _ in places]
        return [name for name in dict.fromkeys(found) if model.joint(name).type.nq == 1]

    def start(self, system: Simulation, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """A state at the limits from which a run may start: what presses against a stop rests there."""
        touching: list[Contact] = []
        for event in self.events(system):
            if isinstance(event.action, _Stop):
                gap = event.value(t, q, v)
                if gap < -1e-9:
                    raise ArgumentError(
                        f"simulate: q0: {event.name.removesuffix(' limit')} limit is passed by {-gap:.3g}, expected a start "
                        "within the limits for JointStops"
                    )
                if gap <= 0 and event.action.sign * v[event.action.iv] <= 0:
                    touching.append(event.action)
        if touching:
            found = impact(system, t, q, v, touching, pressing=True)
            q, v = found.q, found.v
        return q, v

    def events(self, system: Simulation) -> list[Event]:
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
    return next(owner.name for owner in model.space if owner.q.start <= coordinate < owner.q.stop)


@dataclass(frozen=True)
class _Stop:
    """The contact of one coordinate with a limit; `sign` is that of speeds that lead away from it."""

    stops: JointStops
    joint: str
    iq: int
    iv: int
    limit: float
    sign: float

    @property
    def restitution(self) -> float:
        return self.stops.restitution

    @property
    def rest_speed(self) -> float:
        return self.stops.rest_speed

    def gap(self, system: Simulation) -> Callable[[float, Array, Array], float]:
        name = stop_name(self.joint)

        def gap(t: float, q: Array, v: Array) -> float:
            return 1.0 if name in system.active else float(self.sign * (q[self.iq] - self.limit))

        return gap

    def row(self, system: Simulation, q: Array) -> Array:
        row = np.zeros(system.model.nv)
        row[self.iv] = self.sign
        return row

    def rests(self, system: Simulation) -> bool:
        name = stop_name(self.joint)
        return name in system.active and system.topology.sides[name] == self.sign

    def internal(self, system: Simulation) -> bool:
        return system.model.joint(self.joint).parent != WORLD

    def rest(self, system: Simulation, t: float, q: Array) -> tuple[Array, bool]:
        if system.model.joint(self.joint).type.nq != 1:
            raise NumericalError(
                f"simulate: joint {self.joint!r} comes to rest at its limit at t = {t:.9g} s, which joints of more than one "
                "degree of freedom cannot; give SoftStop(...) in forces, or stop the run there"
            )
        q = q.copy()
        q[self.iq] = self.limit
        name = stop_name(self.joint)
        coupling = next(c for c in system.model.couplings if c.name == name)
        system.switch(on=(name,), values={str(coupling.offset): self.limit}, sides={name: self.sign})
        return q, False

    def push(self, system: Simulation, t: float, q: Array, v: Array) -> float:
        return self.sign * system.reaction(stop_name(self.joint), t, q, v)

    def leave(self, system: Simulation) -> None:
        if self.rests(system):
            system.switch(off=(stop_name(self.joint),))


@dataclass(frozen=True)
class _Leave:
    """A joint at rest at its limit goes, when the stop would have to pull."""

    joint: str

    def push(self, system: Simulation) -> Callable[[float, Array, Array], float]:
        name = stop_name(self.joint)

        def push(t: float, q: Array, v: Array) -> float:
            if name not in system.active:
                return 1.0
            return system.topology.sides[name] * system.reaction(name, t, q, v)

        return push

    def apply(self, system: Simulation, t: float, q: Array, v: Array) -> Change:
        system.switch(off=(stop_name(self.joint),))
        return Change(q, v, {}, switched=True)


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
        if not isinstance(self.frame, str):
            raise ArgumentError(f"PlaneImpact: frame is {self.frame!r}, expected the name of a frame")
        real("PlaneImpact", "offset", self.offset, "a length in metres")
        read_direction(self, "normal")

    def events(self, system: Simulation) -> list[Event]:
        model = system.model
        if model.frame(self.frame).body == WORLD:
            raise ArgumentError(f"PlaneImpact: frame {self.frame!r} does not move")

        def gap(t: float, q: Array, v: Array) -> float:
            p = model.frame_pose(q, self.frame, parameters=system.parameters).translation
            return float(np.dot(self.normal, p)) - self.offset

        return [Event(gap, f"{self.frame} on the plane", -1, self)]

    def row(self, system: Simulation, q: Array) -> Array:
        J = system.model.frame_jacobian(
            q, self.frame, reference="local_world_aligned", parameters=system.parameters
        )
        return np.asarray(self.normal) @ J[3:6]

    def rests(self, system: Simulation) -> bool:
        return False

    def internal(self, system: Simulation) -> bool:
        return False

    def rest(self, system: Simulation, t: float, q: Array) -> tuple[Array, bool]:
        return q, True

    def push(self, system: Simulation, t: float, q: Array, v: Array) -> float:
        return 0.0

    def leave(self, system: Simulation) -> None:
        """It never rests."""


# --- several at one instant ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Impact:
    """The state after an impact, and for each contact its row of G, its impulse, and whether it was struck."""

    q: Array
    v: Array
    rows: Array
    impulses: Array
    struck: Array
    stop: bool

    def energies(self, before: Array) -> Array:
        """What the impulse of each contact added to the kinetic energy: p G (v + v+)/2."""
        return self.impulses * (self.rows @ (before + self.v)) / 2


def impact(
    system: Simulation, t: float, q: Array, v: Array, contacts: Sequence[Contact], *, pressing: bool = False
) -> Impact:
    """(1) for all contacts that close, touch or rest; those that end up at rest are held, or stop the run.

    With `pressing`, those that touch without speed are at rest, too.
    """
    rested = np.array([contact.rests(system) for contact in contacts])
    for contact in contacts:
        contact.leave(system)  # what rests is a contact like the others now
    rows = np.array([contact.row(system, q) for contact in contacts])
    speeds = np.array([contact.rest_speed for contact in contacts])
    restitution = np.array([contact.restitution for contact in contacts])
    while True:
        after, p = _impulses(system, q, v, rows, restitution)
        struck = ~rested & ((p > 0) | (rows @ v < 0) | pressing)
        slow = struck & (rows @ after < speeds) & (restitution > 0)
        if not slow.any():
            break
        restitution[slow] = 0.0
    stop, resting = False, []
    for k in np.flatnonzero((struck | rested) & (rows @ after < 1e-6 * speeds)).tolist():
        q, ends = contacts[k].rest(system, t, q)
        stop = stop or ends
        resting.append(contacts[k])
    while resting and not stop:
        pushes = [contact.push(system, t, q, after) for contact in resting]
        if min(pushes) > 0:
            break
        resting.pop(int(np.argmin(pushes))).leave(system)  # something pulls it away at once
    return Impact(q, after, rows, p, struck, stop)


def _impulses(system: Simulation, q: Array, v: Array, rows: Array, restitution: Array) -> tuple[Array, Array]:
    """(1): the speeds after the impact, and the impulses.

    With L L^T = M, y = L^T (v+ - v) and D the part of G L^-T that the constraints leave free, (1) is the condition for
    the least |D^T p + c| with p >= 0, where D c = G v + e min(G v, 0).
    """
    free = np.flatnonzero(~system.prescribed)
    M = system.own.mass_matrix(q, parameters=system.present_parameters)[free[:, None], free]
    L = np.linalg.cholesky(M)
    before = rows @ v
    D = scipy.linalg.solve_triangular(L, rows[:, free].T, lower=True).T
    held = np.zeros(len(free))
    if system.active:
        C = system.model.constraint_jacobian(q, active=system.active, parameters=system.parameters)
        E = scipy.linalg.solve_triangular(L, C[:, free].T, lower=True).T
        _, sizes, V = np.linalg.svd(E, full_matrices=False)
        V = V[sizes > 1e-10 * max(1.0, float(np.max(sizes, initial=0.0)))]
        held = V.T @ (V @ np.linalg.lstsq(E, -C @ v, rcond=1e-10)[0])
        shift, D = D @ held, D - (D @ V.T) @ V
    else:
        shift = np.zeros(len(rows))
    rebound = restitution * np.minimum(before, 0.0)
    wanted = before + rebound + shift
    c = np.linalg.lstsq(D, wanted, rcond=1e-10)[0]
    p, _ = scipy.optimize.nnls(D.T, -c)
    pushing = p > 0
    if pushing.any():  # where several sets of impulses do the same, the smallest
        least = np.linalg.lstsq(D[pushing].T, -c, rcond=1e-10)[0]
        if (least >= 0).all():
            p[pushing] = least
    after = v.copy()
    after[free] += scipy.linalg.solve_triangular(L, held + D.T @ p, lower=True, trans="T")
    missing = rows @ after + rebound
    if np.any(missing < -1e-6 * np.maximum(np.abs(before), 1e-12)):
        raise NumericalError(
            "simulate: an impact has no solution: the constraints that hold, or prescribed motions, do not let the gap open"
        )
    return after, p
