"""What is wrong with a problem, said before it is solved: functions that fail, conditions that contradict each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal.plant import FREE, Bounds, Row, unusual

if TYPE_CHECKING:
    from alembert.optimal.problem import Problem

SAME = 1000
"""depth to which two expressions are compared"""


def check(problem: Problem) -> None:
    """Refuse what nothing can satisfy, as far as it shows without solving."""
    chosen = problem.plant.controls or problem.design or problem.is_free
    if problem.model is not None and not chosen:
        raise ArgumentError(
            "Problem: there are no controls, no `design` and no free duration; name actuated joints, or simulate instead"
        )
    _functions(problem)
    _ranges(problem)
    for which in ("start", "end"):
        _at_an_end(problem, which)
    _periodic(problem)
    _speeds(problem)


def evaluated(where: str, function: Callable[[], Any], who: str = "Problem") -> Any:
    """A function of the user's, with what goes wrong in it as a sentence."""
    try:
        found = function()
    except AttributeError as error:
        raise ArgumentError(f"{who}: {where}: {error}") from None
    except (ArgumentError, UnsupportedError):
        raise
    except Exception as error:  # whatever a user's function may raise
        reason = re.sub(r"^\S+:\d+: ", "", str(error).strip().splitlines()[-1])
        hint = (
            " For a choice write casadi.if_else(condition, then, otherwise)"
            if "truth value" in reason
            else ". Functions get CasADi expressions and return one"
        )
        raise ArgumentError(f"{who}: {where}: {reason}{hint}") from None
    if isinstance(found, ca.SX) and (wrong := unusual(found)):
        raise ArgumentError(f"{who}: {where} {wrong}")
    return found


def _functions(problem: Problem) -> None:
    """Run every function once."""
    x, u = ca.SX.sym("x", problem.plant.chart.point), ca.SX.sym("u", len(problem.plant.controls))
    p, T = ca.SX.sym("p", len(problem.parameters)), ca.SX.sym("T")
    s = problem.moment(T, x, u, p, T)
    if not problem.cost.running and not problem.cost.terminal:
        raise ArgumentError("Problem: the cost has no terms; effort() is the usual one")
    _bounded(problem, u, evaluated("the running cost", lambda: problem.cost.rate(s)))
    final = evaluated("the terminal cost", lambda: problem.cost.final(s))
    if ca.depends_on(final, u):
        raise ArgumentError(
            "Problem: the terminal cost depends on the controls, which have no value at the end"
        )
    for which, row in _conditions(problem):
        value = evaluated(f"{which} {row.name!r}", lambda row=row: row.value(s))  # type: ignore[misc]
        if ca.depends_on(value, u):
            raise ArgumentError(
                f"Problem: {which} {row.name!r} depends on the controls, which have no value at the {which}; bound them "
                "by `limits` or `path`"
            )
    for row in problem.integrals:
        evaluated(f"integral {row.name!r}", lambda row=row: row.value(s))  # type: ignore[misc]
    for row in problem.path:
        evaluated(f"path {row.name!r}", lambda row=row: row.value(s))  # type: ignore[misc]


def _bounded(problem: Problem, u: ca.SX, rate: ca.SX) -> None:
    """Refuse a cost that falls without end along a control which nothing limits."""
    curvature = ca.hessian(rate, u)[0]
    limited = {row.component for row in problem.limits["control"]}
    for k, name in enumerate(problem.plant.controls):
        entry = curvature[k, k]
        if entry.is_constant() and float(entry) < 0 and name not in limited and not problem.path:
            raise ArgumentError(
                f"Problem: the cost falls without end as {name!r} grows, which has no limits; state some, or change the sign"
            )


def _conditions(problem: Problem) -> Iterator[tuple[str, Row]]:
    for which, rows in (("start", problem.start), ("end", problem.end)):
        for row in rows:
            yield which, row


def _ranges(problem: Problem) -> None:
    """Ranges that are upside down, conditions outside limits or stated twice."""
    bounds = {row.component: row for row in problem.limits["state"] if row.component}
    seen: set[tuple[str, str]] = set()
    for which, row in _conditions(problem):
        if not row.lower <= row.upper:
            raise ArgumentError(f"Problem: {which} {row.name!r}: {row.lower:g} is above {row.upper:g}")
        limit = bounds.get(row.component) if row.component else None
        if limit is not None and _disjoint(row, limit):
            raise ArgumentError(
                f"Problem: {which} {row.name!r} is {row}, outside its limits {limit}; nothing can satisfy both"
            )
        if row.component and (which, row.component) in seen:
            raise ArgumentError(f"Problem: {which} {row.name!r} is stated twice")
        seen.add((which, row.component))
    for row in (*problem.limits["state"], *problem.limits["control"], *problem.path):
        if row.lower > row.upper:
            raise ArgumentError(f"Problem: limits of {row.name!r}: {row.lower:g} is above {row.upper:g}")
    for name, (low, high) in zip(problem.plant.controls, problem.rates, strict=True):
        if low > high:
            raise ArgumentError(f"Problem: limits rate of {name!r}: {low:g} is above {high:g}")


def _disjoint(one: Row, other: Row) -> bool:
    return one.lower > other.upper or one.upper < other.lower


def _at_an_end(problem: Problem, which: str) -> None:
    """Rows whose values follow from what is stated there, and rows that are the same but for their bounds."""
    rows = problem.start if which == "start" else problem.end
    for row in problem.path:
        _settled(problem, which, row, "the path's")
    own = [row for row in rows if not row.component]
    for row in own:
        _settled(problem, which, row, "the condition's")
    x, u = ca.SX.sym("x", problem.plant.chart.point), ca.SX.sym("u", len(problem.plant.controls))
    s = problem.moment(ca.SX(0), x, u, ca.SX(problem.parameters), ca.SX(1))
    for one, other in combinations([*own, *problem.path], 2):
        if not _disjoint(one, other) or (one in problem.path and other in problem.path):
            continue
        if ca.is_equal(one.value(s), other.value(s), SAME):
            raise ArgumentError(
                f"Problem: at the {which} {one.name!r} is {one} and {other.name!r}, the same function, {other}; nothing can "
                "satisfy both"
            )


def _settled(problem: Problem, which: str, row: Row, whose: str) -> None:
    """Refuse an end that is stated outside a row."""
    if not problem.settles(which, row):
        return
    from alembert.optimal.guess import straight

    plant, model = problem.plant, problem.model
    x, p = ca.SX.sym("x", plant.chart.point), ca.SX.sym("p", len(problem.parameters))
    u = ca.SX.zeros(len(plant.controls))
    f = ca.Function("row", [x, p], [row.value(problem.moment(ca.SX(0), x, u, p, ca.SX(1)))])
    point = straight(problem).points[0 if which == "start" else -1]
    rows = problem.start if which == "start" else problem.end
    stated = {r.component: r.lower for r in rows if r.is_equation and r.point is None}
    nq = plant.chart.nq
    for k, name in enumerate(plant.tangent_names):
        if name in stated and (model is None or name[:2] == "v "):
            point[k if model is None else nq + k - model.nv] = stated[name]
    value = float(f(point, problem.parameters))
    off = max(row.lower - value, value - row.upper)
    if off > 1e-7 * max(1.0, abs(value)):
        raise ArgumentError(
            f"Problem: the {which} has {row.name!r} = {value:g}, outside {whose} {row}; nothing can satisfy both"
        )


def _periodic(problem: Problem) -> None:
    if not problem.periodic:
        return
    first = {row.component: row for row in problem.start if row.component}
    for row in problem.end:
        other = first.get(row.component)
        if other is not None and _disjoint(row, other):
            raise ArgumentError(f"Problem: periodic, but {row.name!r} starts at {other} and ends at {row}")


def _speeds(problem: Problem) -> None:
    """Joints or states that would have to be faster than their limits to come from start to end in the longest time."""
    first, last = (
        {row.component: row for row in rows if row.component and row.point is None}
        for rows in (problem.start, problem.end)
    )
    T = problem.longest
    for name, (slowest, fastest) in _rates(problem):
        one, other = first.get(name), last.get(name)
        if one is None or other is None:
            continue
        least, most = other.lower - one.upper, other.upper - one.lower
        if least > fastest * T * (1 + 1e-9) + 1e-12 or most < slowest * T * (1 + 1e-9) - 1e-12:
            way = least if least > fastest * T else most
            raise ArgumentError(
                f"Problem: {name.removeprefix('q ')!r} has to move by {way:g} within {T:g} s, a mean speed of {way / T:g}, "
                f"outside its limits {slowest:g} .. {fastest:g}; nothing can satisfy both"
            )


def _rates(problem: Problem) -> Iterator[tuple[str, Bounds]]:
    """Components of the state, and between what the limits hold their rates; of a system those that are linear."""
    limits = {row.component: (row.lower, row.upper) for row in problem.limits["state"]}
    if problem.model is not None:
        for name in problem.model.speed_names:
            yield f"q {name}", limits.get(f"v {name}", FREE)
        return
    plant = problem.plant
    limits |= {row.component: (row.lower, row.upper) for row in problem.limits["control"]}
    names = (*plant.tangent_names, *plant.controls)
    t, w = ca.SX.sym("t"), ca.SX.sym("w", len(names))
    x, u = w[: plant.chart.point], w[plant.chart.point :]
    rate = plant.rate(t, x, u, ca.SX(problem.parameters))
    slopes, still = ca.jacobian(rate, w), ca.substitute(rate, w, ca.SX.zeros(w.shape))
    for k, name in enumerate(plant.tangent_names):
        if not (slopes[k, :].is_constant() and still[k].is_constant()):
            continue
        low = high = float(still[k])
        for j, slope in enumerate(np.asarray(ca.DM(slopes[k, :])).ravel()):
            if slope:
                ends = [slope * bound for bound in limits.get(names[j], FREE)]
                low, high = low + min(ends), high + max(ends)
        yield name, (low, high)
