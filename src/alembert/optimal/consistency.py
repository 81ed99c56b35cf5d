"""What is wrong with a problem, said before it is solved: functions that fail, conditions that contradict each other.

And which conditions follow from others: speeds of bodies that float, and where phases meet, loops that were closed
before. What holds at the end of a phase, h(y) = 0 (its loops and prescribed joints, its end conditions), and the rows
r(y) that are asked for besides are functions of the same numbers y. A row that vanishes wherever h and the rows before it
do would only make the equations of a solver singular. It is found where all of them hold, at points that are drawn at
random and brought there by Gauss and Newton's method:

    y <- y - J^+ [h; r],    row i repeats others where its slope is in the span of theirs                    (1)

at every point. Where they contradict each other there is no such point: then all are kept, for the solver to say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError, UnsupportedError, warn
from alembert.model import WORLD
from alembert.optimal.closure import SPAN, in_the_span
from alembert.optimal.plant import FREE, Bounds, Mechanics, Row, numpy_functions, unusual

if TYPE_CHECKING:
    from alembert.optimal.problem import Problem

SAME = 1000
"""depth to which two expressions are compared"""


def check(problem: Problem) -> None:
    """Refuse what nothing can satisfy, as far as it shows without solving."""
    if problem.model is not None and problem.is_determined:
        raise ArgumentError(
            "Problem: the start is stated, and there are no controls, no `design` and no free duration; name actuated "
            "joints, or simulate instead"
        )
    _functions(problem)
    _ranges(problem)
    for which in ("start", "end"):
        _at_an_end(problem, which)
        _degrees(problem, which)
    _periodic(problem)
    _speeds(problem)


def _degrees(problem: Problem, which: str) -> None:
    """Tell angles that look like degrees, as `al.simulate` does: whole numbers beyond a turn."""
    model = problem.model
    if model is None:
        return
    units = dict(zip(model.coordinate_names, model.space.coordinate_units, strict=True))
    for row in getattr(problem, which):
        value = row.lower
        is_angle = row.component.startswith("q ") and units.get(row.component[2:]) == "rad"
        if is_angle and row.is_equation and abs(value) > 2 * np.pi and round(2 * value) == 2 * value:
            warn(
                f"Problem: {which}: {row.component[2:]!r} is at {value:g} rad; angles are in radians: {value:g} degrees are "
                f"{np.radians(value):.4g}"
            )
            return


def evaluated(where: str, function: Callable[[], Any], who: str = "Problem") -> Any:
    """A function of the user's, with what goes wrong in it as a sentence."""
    try:
        with numpy_functions():
            found = function()
    except AttributeError as error:
        raise ArgumentError(f"{who}: {where}: {error}") from None
    except (ArgumentError, UnsupportedError):
        raise
    except Exception as error:  # whatever a user's function may raise
        reason = re.sub(r"^\S+:\d+: ", "", str(error).strip().splitlines()[-1].strip())
        if came := re.fullmatch(r"You have: '\(+(\w+).*'", reason):  # CasADi lists what it takes, and ends so
            reason = f"it returns {'None' if came[1] == 'NoneType' else f'a {came[1]}'}"
            if came[1] == "SX":
                reason = "CasADi does not know what is done with an expression; by name there are s.position(joint), s.speed"
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
    for row in problem.integrals:
        if row.lower > row.upper:
            raise ArgumentError(f"Problem: integral {row.name!r}: {row.lower:g} is above {row.upper:g}")
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


Array = np.ndarray
DRAWS = 3
"""points at which slopes are compared: one alone may be a place where a mechanism is stretched or symmetric"""
AROUND = 0.1
"""how far from the place that is given they are drawn"""
NEWTON = 30
HOLDS = 1e-9
"""to what the equations hold at a point, in the sizes of their slopes"""
ROUNDING = 1e-11
"""share of the longest slope, below which one is none: what vanishes by construction leaves rounding"""


SUBGROUPS = (
    *("free", "spherical", "revolute", "prismatic"),
    *("planar", "cylindrical", "screw", "translational"),
)
"""kinds of joints that carry a body by a group of motions: nothing inside a mechanism on one changes its momentum"""


def conserved(problem: Problem) -> set[str]:
    """Speeds that are zero at the end anyway: of bodies that float, where all else that they carry is at rest at both ends.

    Without gravity and forces from outside the momentum of a mechanism on a joint without a drive stays zero. To ask for
    it again makes the equations of a solver singular.
    """
    plant, model, given = problem.plant, problem.model, problem.statement
    if not isinstance(plant, Mechanics) or model is None or plant.closure is not None or problem.periodic:
        return set()
    if given.forces is not None or given.gravity is not None or any(g != 0 for g in model.gravity):
        return set()

    def at_rest(rows: Iterable[Row]) -> set[str]:
        return {row.component for row in rows if row.is_equation and row.lower == 0}

    every = {f"v {name}" for name in model.speed_names}
    if not (every <= at_rest(problem.start) and every <= at_rest(problem.end)):
        return set()
    found: set[str] = set()
    for joint in model.joints:
        own = range(model.v_slice(joint.name).start, model.v_slice(joint.name).stop)
        floats = joint.parent == WORLD and joint.type.kind in SUBGROUPS
        floats = floats and not set(own) & set(plant.driven)
        if floats and joint.spring is None and joint.friction is None:
            found |= {f"v {model.speed_names[k]}" for k in own}
    return found


def independent(y: ca.SX, given: ca.SX, rows: ca.SX, place: Array) -> list[int]:
    """Which of `rows` do not follow from `given` and from those before them; all are functions of y, near `place`."""
    count = rows.numel()
    whole = ca.vertcat(given, rows)
    f = ca.Function("rows", [y], [ca.densify(whole), ca.densify(ca.jacobian(whole, y))])
    draw = np.random.default_rng(1)
    repeats = np.ones(count, dtype=bool)
    for _ in range(DRAWS):
        slopes = _slopes_where_all_hold(f, place + AROUND * draw.uniform(-1, 1, y.numel()))
        if slopes is None:
            return list(range(count))
        first = given.numel()
        repeats &= [in_the_span(slopes[i], slopes[:i]) for i in range(first, len(slopes))]
    return np.flatnonzero(~repeats).tolist()


def _slopes_where_all_hold(f: ca.Function, y: Array) -> Array | None:
    """J of (1), with rows of length 1."""
    for _ in range(NEWTON):
        r, J = (part.full() for part in f(y))
        if not (np.isfinite(r).all() and np.isfinite(J).all()):
            return None
        size = np.linalg.norm(J, axis=1)
        slope = size > ROUNDING * size.max(initial=0.0)
        size = np.where(slope, size, 1.0)
        r, J = r[:, 0] / size, np.where(slope[:, None], J / size[:, None], 0.0)
        if np.abs(r).max(initial=0.0) <= HOLDS:
            return J
        y = y - np.linalg.lstsq(J, r, rcond=SPAN)[0]
    return None
