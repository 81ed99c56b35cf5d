"""Flight tasks on several processors: redundant copies with a voter, and static schedules of task graphs.

    tasks = [*redundant(control, copies=3, failures={1: 40.0}), ...]

Copies read what the task reads, and each writes messages of its own (`wheels_0`, `wheels_1`, ...); what the task remembers
it reads as it was voted, so that copies stay together. The voter writes the task's own messages, entry by entry: of two
copies those of the first that gives numbers, of three the middle value, or, where one gives none, the first's of the others.

A schedule is made by the rule critical path first, most immediate successors first (CP/MISF). Tasks of one period run once
each, after those whose messages they read in the same period. The level of a task is the length of the longest path from its
start to the end,

    level = duration + max over successors (level)                                                        (1)

A processor that is free takes the ready task of the highest level; of equal ones the one with most immediate successors
(Kasahara and Narita, IEEE Trans. Computers C-33 (1984) 1023). No schedule is shorter than the longest path, nor than all
work divided by the processors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import choice, whole
from alembert.errors import ArgumentError, UnsupportedError
from alembert.simulate.controllers import SymbolicLaw
from alembert.spacecraft.flight import HUGE, FlightTask

MODES = ("silent", "stuck")


def redundant(
    task: FlightTask, copies: int = 3, *, failures: Mapping[int, float] | None = None, mode: str = "silent"
) -> list[FlightTask]:
    """The copies of a task, and their voter, which takes no time of its own.

    `failures` says which copy fails, 0 on, and when [s]: from then on it is "silent" (it gives no numbers), or "stuck" (it
    gives what it gave last).
    """
    who = f"redundant {task.name!r}"
    if copies not in (2, 3):
        raise ArgumentError(f"{who}: copies is {copies!r}, expected 2 or 3")
    choice(who, "mode", mode, MODES)
    if not task.writes:
        raise ArgumentError(f"{who}: the task writes nothing to vote on")
    if isinstance(task.function, ca.Function):
        raise UnsupportedError(
            f"{who}: its function is a casadi.Function, expected Python or SymbolicLaw(...)"
        )
    times = dict(failures or {})
    for k, t in times.items():
        if k not in range(copies) or not math.isfinite(t):
            raise ArgumentError(
                f"{who}: copy {k!r} fails at {t!r}, expected a copy, 0 to {copies - 1}, and a time"
            )
    made = [_copy(task, k, times.get(k, math.inf), mode) for k in range(copies)]
    return [*made, _voter(task, copies)]


def _copy(task: FlightTask, number: int, end: float, mode: str) -> FlightTask:
    own = {name: f"{name}_{number}" for name in task.writes}
    stuck = mode == "stuck" and math.isfinite(end)

    def symbolic(t: Any, m: Mapping[str, Any]) -> dict[str, Any]:
        found = task.function.law(t, m)
        if math.isinf(end):
            return {own[name]: x for name, x in found.items()}
        return {
            own[name]: ca.if_else(t >= end, m[own[name]] if stuck else ca.SX.nan(ca.SX(x).numel()), x)
            for name, x in found.items()
        }

    def numeric(t: float, m: Mapping[str, Any]) -> dict[str, Any]:
        if t < end:
            return {own[name]: x for name, x in task(t, m).items()}
        return {} if stuck else {own[name]: np.full(len(x), np.nan) for name, x in task.writes.items()}

    law = task.function
    return replace(
        task,
        name=f"{task.name}_{number}",
        function=SymbolicLaw(symbolic, law.check) if isinstance(law, SymbolicLaw) else numeric,
        reads=(*task.reads, *(own.values() if stuck else ())),
        writes={own[name]: x for name, x in task.writes.items()},
        delay=0.0,
        duration=task.duration if number == 0 else 0.0,  # the others have processors of their own
    )


def _voter(task: FlightTask, copies: int) -> FlightTask:
    def vote(t: Any, m: Mapping[str, Any]) -> dict[str, Any]:
        return {name: _chosen([m[f"{name}_{k}"] for k in range(copies)]) for name in task.writes}

    reads = tuple(f"{name}_{k}" for name in task.writes for k in range(copies))
    return replace(task, name=f"{task.name}_voter", function=SymbolicLaw(vote), reads=reads, duration=0.0)


def _chosen(given: list[Any]) -> Any:
    """Of two the first that is there, of three the middle one of those that are."""
    there = [ca.fabs(x) <= HUGE for x in given]
    first = given[-1]
    for x, known in reversed(list(zip(given[:-1], there[:-1], strict=True))):
        first = ca.if_else(known, x, first)
    if len(given) == 2:
        return first
    a, b, c = given
    middle = ca.fmax(ca.fmin(a, b), ca.fmin(ca.fmax(a, b), c))
    return ca.if_else(ca.logic_and(ca.logic_and(there[0], there[1]), there[2]), middle, first)


@dataclass(frozen=True)
class Placed:
    """A task on a processor, from `start` to `end` [s] after the period begins."""

    name: str
    processor: int
    start: float
    end: float


@dataclass(frozen=True)
class TaskSchedule:
    """The tasks in the order of their starts; `length` [s], and `least`, below which no schedule is."""

    placed: tuple[Placed, ...]
    processors: int
    period: float
    least: float

    @property
    def length(self) -> float:
        return max(x.end for x in self.placed)

    @property
    def efficiency(self) -> float:
        """Work over the time of all processors."""
        return sum(x.end - x.start for x in self.placed) / (self.processors * self.length)

    def latency(self, first: str, last: str) -> float:
        """Seconds from the start of one task to the end of another, in one period."""
        known = {x.name: x for x in self.placed}
        for name in (first, last):
            if name not in known:
                raise ArgumentError(f"latency: no task {name!r}; there is {', '.join(known)}")
        return known[last].end - known[first].start

    def delayed(self, tasks: Sequence[FlightTask]) -> list[FlightTask]:
        """The tasks with phases and delays as they are here: simulated so, they have this schedule's latency."""
        known = {x.name: x for x in self.placed}
        return [
            replace(
                task,
                phase=known[task.name].start,
                delay=known[task.name].end - known[task.name].start,
                duration=0.0,
            )
            for task in tasks
        ]

    def __str__(self) -> str:
        lines = [
            f"{len(self.placed)} tasks on {self.processors} processors: {1e3 * self.length:.6g} ms of a period of "
            f"{1e3 * self.period:.6g} ms, at least {1e3 * self.least:.6g} ms; efficiency {100 * self.efficiency:.0f} %"
        ]
        for x in self.placed:
            lines.append(
                f"  {1e3 * x.start:10.4g} to {1e3 * x.end:10.4g} ms  processor {x.processor + 1}  {x.name}"
            )
        return "\n".join(lines)


def task_schedule(tasks: Sequence[FlightTask], processors: int = 1) -> TaskSchedule:
    """CP/MISF for tasks of one period, with their `duration`s; a task comes after those that write what it reads."""
    whole("task_schedule", "processors", processors, "a positive number of them")
    if not tasks:
        raise ArgumentError("task_schedule: no tasks are given")
    periods = {task.period for task in tasks}
    if len(periods) > 1:
        raise ArgumentError(
            f"task_schedule: the tasks have periods of {', '.join(f'{p:g}' for p in sorted(periods))} s, expected one; "
            "schedule each rate by itself"
        )
    duration = {task.name: task.duration for task in tasks}
    for name, seconds in duration.items():
        if not seconds > 0:
            raise ArgumentError(
                f"task_schedule: the task {name!r} has no duration; give duration=..., in seconds"
            )
    after = {
        a.name: [b.name for b in tasks if b.name != a.name and set(a.writes) & set(b.reads)] for a in tasks
    }
    level = _levels(duration, after)
    waits = {name: sum(name in x for x in after.values()) for name in duration}
    ends: dict[str, float] = {}
    free = [0.0] * processors
    placed: list[Placed] = []
    ready_at = {name: 0.0 for name, n in waits.items() if not n}
    while ready_at:
        k = min(range(processors), key=lambda i: free[i])
        now = max(free[k], min(ready_at.values()))
        able = [name for name, t in ready_at.items() if t <= now]
        name = max(able, key=lambda x: (level[x], len(after[x])))
        placed.append(Placed(name, k, now, now + duration[name]))
        ends[name] = free[k] = now + duration[name]
        del ready_at[name]
        for other in after[name]:
            waits[other] -= 1
            if not waits[other]:
                ready_at[other] = max(ends[x] for x in duration if other in after[x])
    least = max(max(level.values()), sum(duration.values()) / processors)
    found = TaskSchedule(
        tuple(sorted(placed, key=lambda x: (x.start, x.processor))), processors, periods.pop(), least
    )
    if found.length > found.period * (1 + 1e-12):
        raise ArgumentError(
            f"task_schedule: the tasks take {found.length:g} s on {processors} processors and are asked every "
            f"{found.period:g} s; {math.ceil(sum(duration.values()) / found.period)} processors at least, and a longest "
            f"path of {max(level.values()):g} s"
        )
    return found


def _levels(duration: Mapping[str, float], after: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """(1)"""
    level: dict[str, float] = {}

    def visit(name: str, path: tuple[str, ...]) -> float:
        if name in path:
            circle = " -> ".join((*path[path.index(name) :], name))
            raise ArgumentError(
                f"task_schedule: the tasks wait for one another in a circle, {circle}; let one of them read what was "
                "written a period before, by a message of another name"
            )
        if name not in level:
            level[name] = duration[name] + max((visit(x, (*path, name)) for x in after[name]), default=0.0)
        return level[name]

    for name in duration:
        visit(name, ())
    return level
