"""Redundant flight software: copies of a task on processors of their own, a voter, and failures to see what they do.

    tasks = [*redundant(control, copies=3, failures={1: 40.0}), ...]

Copies read what the task reads, and each writes messages of its own (`wheels_0`, `wheels_1`, ...); what the task remembers
it reads as it was voted, so that copies stay together. The voter writes the task's own messages, entry by entry: of two
copies those of the first that gives numbers, of three the middle value, or, where one gives none, the first's of the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError, UnsupportedError
from alembert.simulate.controllers import SymbolicLaw
from alembert.spacecraft.flight import FlightTask

MODES = ("silent", "stuck")
_HUGE = 1e300


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
    if mode not in MODES:
        raise ArgumentError(f"{who}: mode is {mode!r}, expected one of {', '.join(MODES)}")
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
    there = [ca.fabs(x) <= _HUGE for x in given]
    first = given[-1]
    for x, known in reversed(list(zip(given[:-1], there[:-1], strict=True))):
        first = ca.if_else(known, x, first)
    if len(given) == 2:
        return first
    a, b, c = given
    middle = ca.fmax(ca.fmin(a, b), ca.fmin(ca.fmax(a, b), c))
    return ca.if_else(ca.logic_and(ca.logic_and(there[0], there[1]), there[2]), middle, first)
