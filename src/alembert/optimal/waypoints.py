"""Motions that pass through states on their way: a problem cut into phases at its waypoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal.costs import Cost
from alembert.optimal.phases import Phases
from alembert.optimal.plant import Moment
from alembert.optimal.problem import Problem

SHORTEST = 1e-3
"""of the longest duration: the least time between two waypoints whose times are found"""


def through(
    problem: Problem, waypoints: Sequence[Mapping[str, Any]], *, times: Sequence[float] | None = None
) -> Phases:
    """`problem` with conditions on its way, in this order, each as those of `end`: `[{"x": 1.0}, {"x": 2.0, "v": (0, 1)}]`.

    `times` [s] say when they hold, of a problem with a given duration; without, times are found as well. The parts of the
    motion are phases, "1", "2" and so on, of which each gets a mesh of its own; controls may jump where they meet.
    """
    if not isinstance(problem, Problem):
        raise ArgumentError(f"through: problem is a {type(problem).__name__}, expected a Problem")
    given = list(waypoints) if isinstance(waypoints, Sequence) else []
    if not given or not all(isinstance(point, Mapping) for point in given):
        raise ArgumentError(f"through: waypoints is {waypoints!r}, expected conditions by name, one or more")
    if problem.periodic or problem.integrals:
        raise UnsupportedError(
            "through: periodic problems and integrals are of a whole motion; state them as `Phases`"
        )
    if np.isfinite(problem.rates).any():
        raise UnsupportedError(
            "through: limits of the rates of controls do not hold where controls may jump, at waypoints; make the control a "
            "state, and its rate the control"
        )
    if _tells_time(problem):
        raise UnsupportedError(
            "through: rates, running costs, path or conditions depend on the time, which begins anew in every phase; make "
            "it a state"
        )
    count = len(given) + 1
    durations: list[Any]
    if times is None:
        durations = [(SHORTEST * problem.longest, problem.longest)] * count
    else:
        if problem.is_free:
            raise ArgumentError("through: times are of a given duration; that of this problem is found")
        nodes = np.array([0.0, *times, problem.shortest], dtype=float)
        if len(nodes) != count + 1 or not np.all(np.diff(nodes) > 0):
            raise ArgumentError(
                f"through: times is {times!r}, expected {len(given)} increasing times within {problem.shortest:g} s"
            )
        durations = np.diff(nodes).tolist()
    along = Cost(running=problem.cost.running)
    parts = {}
    for k, duration in enumerate(durations):
        own: dict[str, Any] = {"duration": duration}
        if k:
            own["start"] = None
        if k < count - 1:
            own["end"] = given[k]
        parts[str(k + 1)] = problem.replace(**own, cost=along)
    across = None
    if times is None:
        across = {"duration": (_total, problem.shortest, problem.longest)}

    def final(s: Mapping[str, Any]) -> Any:
        """What is due at the end sees the whole duration."""
        span = _total(s)
        return problem.cost.final(Moment(**vars(s[str(count)].end) | {"duration": span, "t": span}))

    return Phases(parts, across=across, cost=final if problem.cost.terminal else None)


def _total(s: Mapping[str, Any]) -> Any:
    return sum(part.duration for part in s.values())


def _tells_time(problem: Problem) -> bool:
    plant, t = problem.plant, ca.SX.sym("t")
    x, u = ca.SX.sym("x", plant.chart.point), ca.SX.sym("u", len(plant.controls))
    p, T = ca.SX(problem.parameters), ca.SX.sym("T")
    s = problem.moment(t, x, u, p, T)
    rows = (*problem.path, *problem.start, *problem.end)
    found = [plant.rate(t, x, u, p), problem.cost.rate(s), *(row.value(s) for row in rows)]
    return any(ca.depends_on(ca.SX(e), ca.vertcat(t, T)) for e in found)
