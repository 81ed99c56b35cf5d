"""Events: instants at which a function of the state passes through zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.errors import ArgumentError, NumericalError
from alembert.simulate.topology import Attach, Dock, Lock

if TYPE_CHECKING:
    from alembert.simulate.system import System

Array = np.ndarray
MOST_IN_A_STEP = 100


@dataclass(frozen=True)
class Event:
    """`function(t, q, v)` passes zero: rising (`direction` 1), falling (-1) or either way (0).

    `action` is "stop", "note" (only the log), a function of (t, q, v) that returns the state (q, v) to go on from, or
    None to go on unchanged, or what changes the topology: `Lock`, `Release`, `Attach`, `Dock`, or a list of them. The
    instant is located to `tolerance` [s].
    """

    function: Callable[[float, Array, Array], float]
    name: str = "event"
    direction: int = 0
    action: Any = "stop"
    tolerance: float = 1e-10

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ArgumentError(f"Event: function is {self.function!r}, expected a function of t, q and v")
        if self.direction not in (-1, 0, 1):
            raise ArgumentError(f"Event: direction is {self.direction!r}, expected -1, 0 or 1")
        if isinstance(self.action, list):
            object.__setattr__(self, "action", tuple(self.action))
        many = (
            isinstance(self.action, tuple) and self.action and all(hasattr(x, "apply") for x in self.action)
        )
        one = callable(self.action) or hasattr(self.action, "apply")
        if not (many or one or self.action in ("stop", "note")):
            raise ArgumentError(
                f"Event: action is {self.action!r}, expected 'stop', 'note', a function, Lock(...), Release(...), "
                "Attach(...) or Dock(...)"
            )
        if not self.tolerance > 0:
            raise ArgumentError(f"Event: tolerance is {self.tolerance!r}, expected a positive time")

    def value(self, t: float, q: Array, v: Array) -> float:
        x = float(self.function(t, q, v))
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


Path = Callable[[float], tuple[Array, Array]]
"""The state at a time within a piece of the motion."""


@dataclass
class Watch:
    """The events of a run, and the values of their functions where it is."""

    events: tuple[Event, ...]
    system: System
    values: list[float] = field(default_factory=list)
    log: list[EventRecord] = field(default_factory=list)
    records: list[int] = field(default_factory=list)
    """for each line of the log, the first record after it"""
    left: int | None = None
    """the event whose action has just changed the state"""

    def begin(self, t: float, q: Array, v: Array) -> None:
        self.values = [event.value(t, q, v) for event in self.events]

    def first(self, start: float, end: float, path: Path) -> tuple[int, float] | None:
        """The event that happens first in a piece, and when; None leaves the values at the end of the piece."""
        q, v = path(end)
        after = [event.value(end, q, v) for event in self.events]
        found: tuple[int, float] | None = None
        for k, event in enumerate(self.events):
            if event.crossed(self.values[k], after[k]) and not self._is_idle(event):
                t = self._locate(event, start, end, self.values[k], path)
                if found is None or t < found[1]:
                    found = (k, t)
        if found is None:
            self.values = after
        return found

    def _is_idle(self, event: Event) -> bool:
        """All that it would bring about holds already: where frames are attached, their distance is rounding's."""
        actions = event.action if isinstance(event.action, tuple) else (event.action,)
        return all(isinstance(x, Lock | Attach | Dock) and x.name in self.system.active for x in actions)

    def _locate(self, event: Event, start: float, end: float, before: float, path: Path) -> float:
        """Bisection with the secant's help: the first known time at which the sign has changed."""
        from scipy.optimize import brentq

        def value(t: float) -> float:
            return before if t == start else event.value(t, *path(t))

        t = brentq(value, start, end, xtol=event.tolerance / 2, rtol=4 * np.finfo(float).eps)
        later = min(end, t + event.tolerance / 2)
        return later if event.crossed(before, value(later)) else t

    def happen(self, k: int, t: float, q: Array, v: Array) -> tuple[Array, Array, bool, bool]:
        """Log event k and act: the state to go on from, whether to stop, and whether anything has changed."""
        event, after = self.events[k], (q, v)
        actions = event.action if isinstance(event.action, tuple) else (event.action,)
        if hasattr(actions[0], "apply"):
            return self._apply(event, actions, t, q, v)
        if callable(event.action):
            changed = event.action(t, q.copy(), v.copy())
            if changed is not None:
                try:
                    q1, v1 = (np.array(x, dtype=float) for x in changed)
                except (TypeError, ValueError):
                    q1, v1 = np.zeros(0), np.zeros(0)
                if q1.shape != q.shape or v1.shape != v.shape:
                    raise ArgumentError(
                        f"simulate: the action of event {event.name!r} returned {changed!r}, expected None or a state (q, v)"
                    )
                after = (q1, v1)
        changed = not (np.array_equal(q, after[0]) and np.array_equal(v, after[1]))
        self._note(event, t, q, v, *after, {}, internal=not changed)
        return *after, event.action == "stop", changed

    def _apply(
        self, event: Event, actions: Sequence[Any], t: float, q: Array, v: Array
    ) -> tuple[Array, Array, bool, bool]:
        q1, v1 = q.copy(), v.copy()
        quantities: dict[str, Any] = {}
        stop = switched = False
        internal = True
        for action in actions:
            found = action.apply(self.system, t, q1, v1)
            q1, v1 = found.q, found.v
            quantities |= found.quantities
            stop, switched, internal = (
                stop or found.stop,
                switched or found.switched,
                internal and found.internal,
            )
        self._note(event, t, q, v, q1, v1, quantities, internal=internal)
        return q1, v1, stop, switched or not (np.array_equal(q, q1) and np.array_equal(v, v1))

    def _note(
        self,
        event: Event,
        t: float,
        q: Array,
        v: Array,
        q1: Array,
        v1: Array,
        quantities: Mapping[str, Any],
        *,
        internal: bool,
    ) -> None:
        energy = 0.0
        if not (np.array_equal(q, q1) and np.array_equal(v, v1)):
            energy = self.system.energy(t, q1, v1) - self.system.energy(t, q, v)
        self.log.append(
            EventRecord(event.name, t, q.copy(), v.copy(), q1.copy(), v1.copy(), quantities, energy, internal)
        )

    def settle(self, k: int, t: float, path: Path, ahead: float, *, changed: bool) -> None:
        """Go on from event k at t: take the values a little later, on the side to which the motion leaves it."""
        before = self.values[k]
        self.begin(t + ahead, *path(t + ahead))
        if changed and before * self.values[k] < 0:
            self._refuse_accumulation(self.events[k].name, t, ahead)

    def _refuse_accumulation(self, name: str, t: float, ahead: float) -> None:
        """The action did not turn the motion back for long enough to be seen, after ever shorter intervals."""
        times = [record.time for record in self.log if record.name == name][-4:]
        intervals = np.diff(times)
        if len(intervals) == 3 and np.all(np.diff(intervals) < 0) and intervals[-1] < 1e3 * ahead:
            raise NumericalError(
                f"simulate: event {name!r} happens at ever shorter intervals and accumulates at t = {t:.9g} s, as bounces "
                "do that come to rest; let its action end there (a stop, or a state at rest)"
            )
