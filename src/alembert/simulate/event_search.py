"""The events of a run: which of them happen first, at which instant, and what follows.

Every event is *armed* by the value of its function where the run is. In a window of time those happen whose values have
changed their sign at its end; their instants are located, and the earliest is dealt with, together with all others that
lie within the tolerance of it, in the order in which they were declared. Contacts that close at one instant have one impact
together. An action may carry other functions through zero: their events happen at the same instant, afterwards. Whatever
did not happen stays armed, so that nothing is passed over, however close it follows.

An event that has happened is armed again by its value a little later, on the side to which the motion leaves it. A contact
is open after its impact: its gap counts from where it was then, which is within the tolerance of zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert.errors import ArgumentError, NumericalError
from alembert.simulate.events import Attach, Dock, Event, EventRecord, Lock
from alembert.simulate.impacts import Contact, impact

if TYPE_CHECKING:
    from alembert.simulate.simulation import Simulation

Array = np.ndarray
MOST_IN_A_STEP = 100
TOUCHING = 1e-9
"""m or rad: a contact that is closed by no more is at its surface, not beyond it"""
NEAR = 1e-3
"""the same: a gap that is wider is not looked at any closer"""
OPEN = float(np.finfo(float).tiny)
Path = Callable[[float], tuple[Array, Array]]
"""The state at a time within a piece of the motion."""


@dataclass(frozen=True)
class Armed:
    """What the events of a run wait for: all that a run needs to go on looking."""

    values: tuple[float, ...] = ()
    happened: tuple[tuple[int, float], ...] = ()
    """events that are to be armed again a little later, and their values before (zero if the state has not changed)"""
    closed: tuple[tuple[int, float], ...] = ()
    """contacts that open, and the gaps from which they do"""


@dataclass
class EventSearch:
    """The events of a run, and the values of their functions where it is."""

    events: tuple[Event, ...]
    system: Simulation
    values: list[float] = field(default_factory=list)
    log: list[EventRecord] = field(default_factory=list)
    records: list[int] = field(default_factory=list)
    """for each line of the log, the first record after it"""
    _happened: dict[int, float] = field(default_factory=dict)
    _closed: dict[int, float] = field(default_factory=dict)
    _since: dict[int, float] = field(default_factory=dict)
    """when events were armed again, where this is later than the start of a window"""

    @property
    def armed(self) -> Armed:
        return Armed(tuple(self.values), tuple(self._happened.items()), tuple(self._closed.items()))

    @armed.setter
    def armed(self, armed: Armed) -> None:
        self.values = list(armed.values)
        self._happened, self._closed, self._since = dict(armed.happened), dict(armed.closed), {}

    @property
    def has_just_acted(self) -> bool:
        """Whether events may return at once, so that a window must be looked at closely."""
        return bool(self._happened or self._closed)

    def begin(self, t: float, q: Array, v: Array, *, fresh: bool = False) -> None:
        """From a state on; `fresh` where a run starts, and does not go on."""
        self._happened, self._closed, self._since = {}, {}, {}
        self.values = self._functions(t, q, v)
        for k, event in enumerate(self.events):
            if fresh and event.at_start and self.values[k] * event.direction >= 0:
                self.values[k] = -event.direction * max(
                    abs(self.values[k]), OPEN
                )  # as if it came from before zero
        for k in self._contacts:
            if -TOUCHING <= self.values[k] <= 0:
                self._open(k, self.values[k])

    # --- where -------------------------------------------------------------------------------------------------

    def first(self, start: float, end: float, path: Path, ahead: float) -> tuple[list[int], float] | None:
        """The events that happen first in a window, and when; None arms all of them by their values at its end.

        Those that have just happened are armed again `ahead` of the start, or four tolerances if this is more.
        """
        if start >= end:
            return None
        self._arm_again(start, end, path, ahead)
        after = self._values(end, *path(end))
        located = {
            k: self._locate(k, max(start, self._since.get(k, start)), end, path)
            for k, event in enumerate(self.events)
            if event.crossed(self.values[k], after[k]) and not self._is_idle(event)
        }
        if not located:
            self.values = after
            self._closed = {k: gap for k, gap in self._closed.items() if after[k] + gap <= 0}
            self._since = {}
            return None
        t = min(located.values())
        t = max(x for k, x in located.items() if x <= t + self.events[k].tolerance)
        return [k for k, x in located.items() if x <= t], t

    def _functions(self, t: float, q: Array, v: Array) -> list[float]:
        return [self._value(event, t, q, v) for event in self.events]

    def _value(self, event: Event, t: float, q: Array, v: Array) -> float:
        return event.value(t, q, v, self.system.own_parameters)

    def _values(self, t: float, q: Array, v: Array) -> list[float]:
        return [x - self._closed.get(k, 0.0) for k, x in enumerate(self._functions(t, q, v))]

    def _arm_again(self, start: float, end: float, path: Path, ahead: float) -> None:
        for k, before in self._happened.items():
            event = self.events[k]
            t = min(end, start + max(4 * event.tolerance, ahead))
            self.values[k], self._since[k] = self._value(event, t, *path(t)), t
            if before * self.values[k] < 0:
                self._refuse_accumulation(event.name, start, t - start)
        self._happened = {}

    def _refuse_accumulation(self, name: str, t: float, ahead: float) -> None:
        """The action did not turn the motion back for long enough to be seen, after ever shorter intervals."""
        times = [record.time for record in self.log if record.name == name][-4:]
        intervals = np.diff(times)
        if len(intervals) == 3 and np.all(np.diff(intervals) < 0) and intervals[-1] < 1e3 * ahead:
            raise NumericalError(
                f"simulate: event {name!r} happens at ever shorter intervals and accumulates at t = {t:.9g} s, as bounces "
                "do that come to rest; let its action end there (a stop, or a state at rest)"
            )

    def _is_idle(self, event: Event) -> bool:
        """All that it would bring about holds already: where frames are attached, their distance is rounding's."""
        actions = event.action if isinstance(event.action, tuple) else (event.action,)
        active = self.system.active
        return all(
            x.holds(active) if isinstance(x, Attach) else isinstance(x, Lock | Dock) and x.name in active
            for x in actions
        )

    def _locate(self, k: int, start: float, end: float, path: Path) -> float:
        """Bisection with the secant's help: the first known time at which the sign has changed."""
        event, before, shift = self.events[k], self.values[k], self._closed.get(k, 0.0)

        def value(t: float) -> float:
            return before if t <= start else self._value(event, t, *path(t)) - shift

        t = scipy.optimize.brentq(value, start, end, xtol=event.tolerance / 2, rtol=4 * np.finfo(float).eps)
        later = min(end, t + event.tolerance / 2)
        return later if event.crossed(before, value(later)) else t

    # --- what follows ------------------------------------------------------------------------------------------

    def happen(
        self, found: Iterable[int], t: float, q: Array, v: Array, record: int
    ) -> tuple[Array, Array, bool, bool]:
        """Log the events found at t and act: the state to go on from, whether to stop, and whether anything has changed.

        `record` is the number of the first record that comes after.
        """
        functions = self._functions(t, q, v)
        due = set(found) | {
            k
            for k, event in enumerate(self.events)
            if k not in self._happened
            and event.crossed(self.values[k], functions[k] - self._closed.get(k, 0.0))
            and not self._is_idle(event)
        }
        start = q, v
        before = list(self.values)
        done: set[int] = set()
        stop = switched = False
        while due:  # every event at most once, impacts after what may have closed contacts
            topology = self.system.topology
            struck: list[int] = []
            acted = False
            for k in sorted(due):
                ends = False
                if k in self._contacts and not struck:
                    q, v, ends, struck = self._impact([j for j in due if j in self._contacts], t, q, v)
                elif k not in self._contacts and not self._is_idle(self.events[k]):
                    q, v, ends = self._act(k, t, q, v)
                    acted = True
                stop = stop or ends
            done |= due | set(struck)
            switched = switched or self.system.topology is not topology
            was, functions = functions, self._functions(t, q, v)
            due = {
                k
                for k, event in enumerate(self.events)
                if k not in done
                and k not in self._happened
                and k not in self._contacts
                and event.crossed(was[k], functions[k])
                and not self._is_idle(event)
            }
            if acted:
                due |= set(self._closing(q, v, functions))
        self.records += (len(self.log) - len(self.records)) * [record]
        changed = switched or not (np.array_equal(start[0], q) and np.array_equal(start[1], v))
        self._arm(done, functions, before, changed=changed)
        return q, v, stop, changed

    def cut(self, records: int) -> None:
        """Forget events after the last of so many records."""
        kept = [(x, k) for x, k in zip(self.log, self.records, strict=False) if k < records]
        self.log, self.records = [x for x, _ in kept], [k for _, k in kept]

    def _arm(
        self, done: set[int], functions: Sequence[float], before: Sequence[float], *, changed: bool
    ) -> None:
        """By the values at the instant; events that have happened are armed a little later, contacts are open."""
        for k, value in enumerate(functions):
            if k in self._contacts:
                self._closed.pop(k, None)
                self.values[k] = value
                if -TOUCHING <= value <= 0 or (k in done and value <= 0):
                    self._open(k, value)
            elif k in done:
                self._happened[k] = before[k] if changed else 0.0
            elif k not in self._happened:
                self.values[k] = value
        self._since = {}

    def _open(self, k: int, gap: float) -> None:
        self._closed[k], self.values[k] = gap, OPEN

    def _act(self, k: int, t: float, q: Array, v: Array) -> tuple[Array, Array, bool]:
        """The state after an action that is not an impact, and whether it stops the run."""
        event = self.events[k]
        actions = event.action if isinstance(event.action, tuple) else (event.action,)
        q1, v1, stop = q.copy(), v.copy(), event.action == "stop"
        quantities: dict[str, Any] = {}
        if hasattr(actions[0], "apply"):
            internal = True
            for action in actions:
                found = action.apply(self.system, t, q1, v1)
                q1, v1 = found.q, found.v
                quantities |= found.quantities
                stop, internal = stop or found.stop, internal and found.internal
        else:
            if callable(event.action):
                q1, v1 = self._asked(event, t, q, v)
            internal = np.array_equal(q, q1) and np.array_equal(v, v1)
        energy = self._energy(t, q1, v1, q, v)
        self._note(event, t, (q, v), (q1, v1), quantities, energy, internal=internal)
        for contact in self._contacts.values():
            if contact.rests(self.system):
                rate = float(contact.row(self.system, q1) @ v1)
                if abs(rate) > 1e-6 * contact.rest_speed:  # it opens, or closes and has an impact
                    contact.leave(self.system)
        return q1, v1, stop

    def _asked(self, event: Event, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """The state that a user's function returns; joints that follow a motion stay on it."""
        found = event.action(t, q.copy(), v.copy())
        if found is None:
            return q, v
        try:
            q1, v1 = (np.array(x, dtype=float) for x in found)
        except (TypeError, ValueError):
            q1, v1 = np.zeros(0), np.zeros(0)
        if q1.shape != q.shape or v1.shape != v.shape:
            raise ArgumentError(
                f"simulate: the action of event {event.name!r} returned {found!r}, expected None or a state (q, v)"
            )
        if not (np.isfinite(q1).all() and np.isfinite(v1).all()):
            raise NumericalError(
                f"simulate: the action of event {event.name!r} returned a state that is not finite, at t = {t:.9g} s"
            )
        unchanged = np.array_equal(q, q1) and np.array_equal(v, v1)
        return (q, v) if unchanged else self.system.imposed(t, q1, v1)

    def _energy(self, t: float, q1: Array, v1: Array, q: Array, v: Array) -> float:
        """By how much the energy is more after than before."""
        if np.array_equal(q, q1) and np.array_equal(v, v1):
            return 0.0
        return self.system.energy(t, q1, v1) - self.system.energy(t, q, v)

    def _note(
        self,
        event: Event,
        t: float,
        before: tuple[Array, Array],
        after: tuple[Array, Array],
        quantities: dict[str, Any],
        energy: float,
        *,
        internal: bool,
    ) -> None:
        (q, v), (q1, v1) = before, after
        self.log.append(
            EventRecord(event.name, t, q.copy(), v.copy(), q1.copy(), v1.copy(), quantities, energy, internal)
        )

    # --- contacts ----------------------------------------------------------------------------------------------

    @property
    def _contacts(self) -> dict[int, Contact]:
        return {k: event.action for k, event in enumerate(self.events) if isinstance(event.action, Contact)}

    def _closing(self, q: Array, v: Array, functions: Sequence[float]) -> list[int]:
        """Contacts that touch and whose gaps close."""
        found = []
        for k, contact in self._contacts.items():
            if abs(functions[k]) < NEAR and not contact.rests(self.system):
                rate = float(contact.row(self.system, q) @ v)
                if rate < -1e-6 * contact.rest_speed and self._touches(k, functions[k], rate):
                    found.append(k)
        return found

    def _touches(self, k: int, gap: float, rate: float) -> bool:
        """Whether a gap is closed, or will be within the tolerance."""
        moved = self.events[k].tolerance * abs(rate)
        return -TOUCHING - 2 * moved <= gap <= moved

    def _impact(
        self, due: Sequence[int], t: float, q: Array, v: Array
    ) -> tuple[Array, Array, bool, list[int]]:
        """One impact of contacts that close and of all that touch or rest; a line of the log for each that is struck."""
        functions, contacts = self._functions(t, q, v), self._contacts
        fast = float(np.max(np.abs(v)))
        part = sorted(
            {*due, *self._closing(q, v, functions)}
            | {
                k
                for k, contact in contacts.items()
                if contact.rests(self.system) or self._touches(k, functions[k], fast)
            }
        )
        found = impact(self.system, t, q, v, [contacts[k] for k in part])
        shares = found.energies(v)
        struck = [n for n in range(len(part)) if found.struck[n] or part[n] in due]
        shares[struck[0]] += self._energy(t, found.q, found.v, q, v) - float(np.sum(shares[struck]))
        for n in struck:
            quantities = {"impulse": float(found.impulses[n]), "speed": float(found.rows[n] @ v)}
            internal = contacts[part[n]].internal(self.system)
            event, energy = self.events[part[n]], float(shares[n])
            self._note(event, t, (q, v), (found.q, found.v), quantities, energy, internal=internal)
        return found.q, found.v, found.stop, [part[n] for n in struck]
