"""A problem cut into stages: what every transcription makes and every solver takes.

With the point x_k of stage k, its inputs u_k, and z_k, which follow from both by

    c(x_k, u_k, z_k) = 0,    dc/dz invertible                                                   (1)

the stages are linked and cost

    x_{k+1} = f(x_k, u_k, z_k),    J = sum_k l(x_k, u_k, z_k) + l_N(x_N)                          (2)
    lower_k <= d(x_k, u_k, z_k) <= upper_k                                                      (3)

with equations and bounds at the start and at the end. All stages share the functions; what differs comes as numbers s_k:
where the stage begins and how long it is, as fractions of the duration, and the duration (unless it is free: then
it is the last entry of x, the same in all stages).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import casadi as ca
import numpy as np

from alembert.optimal.closure import conditions, returning
from alembert.optimal.consistency import conserved
from alembert.optimal.dmoc import Dmoc
from alembert.optimal.plant import FREE, Chart, Mechanics, Moment, Momenta, Plant, Row
from alembert.optimal.problem import Problem
from alembert.optimal.schemes import Projected, Stretch, Transcription, moment_of
from alembert.optimal.search_graphs import column
from alembert.optimal.stage_derivatives import Opened, asked

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Stages:
    """(1)-(3) as CasADi functions, with the names and bounds of everything."""

    problem: Problem
    scheme: Transcription
    plant: Plant
    chart: Chart
    count: int
    memory: int
    """controls that are kept in the state"""
    x_names: tuple[str, ...]
    u_names: tuple[str, ...]
    z_names: tuple[str, ...]
    stage: ca.Function
    """(x, u, z, s, p) -> f, l, c, d"""
    start: ca.Function
    """(x, p) -> equations, bounded"""
    end: ca.Function
    """(x, s, p) -> cost, equations, bounded"""
    parameters: Array
    """p: those of the plant, what `Ends` has at run time, and the numbers of the plant"""
    numbers: Array
    """s"""
    path_names: tuple[str, ...]
    lower: Array
    upper: Array
    """(N, rows of d)"""
    start_names: tuple[str, ...]
    end_names: tuple[str, ...]
    end_bounded: tuple[str, ...]
    end_lower: Array
    end_upper: Array
    opened: Opened | None = None
    """the stage with symbols for accelerations, where it has any"""
    before: Stages | None = None
    following: Stages | None = None
    """of a stage between phases, those on both sides: x is of the one, f of the other; p has the parameters of both"""
    own: Stages | None = None
    """of a phase, before it was given the sizes of all"""

    @property
    def parts(self) -> tuple[Segment, ...]:
        """Stages one after the other that share their functions."""
        return (Segment(self, slice(0, self.count)),)

    @property
    def alone(self) -> list[tuple[Stages, slice]]:
        """The stages of single problems as they are by themselves, and where they are among these."""
        return [(self, slice(0, self.count))]

    @property
    def clocks(self) -> tuple[tuple[int, int], ...]:
        """Where free durations are: stage and entry of the tangent."""
        return ((0, self.chart.tangent - 1),) if self.is_free else ()

    def point_place(self, k: int, j: int) -> int:
        """Where in the point of stage k the entry j of the tangent is."""
        return j + self.chart.nq - self.chart.nv

    def parameters_at_ends(self, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Of p, what the start and what the end take."""
        return p, p

    def when(self, k: int, x: Array) -> str:
        """Stage k in words."""
        return f"stage {k}, t = {self.numbers[k, 0] * self.span(x):.4g} s"

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Of the tangent of x, of u, of z and of d."""
        return self.chart.tangent, len(self.u_names), len(self.z_names), len(self.path_names)

    @cached_property
    def nodes(self) -> Array:
        """Where stages begin and end, as fractions of the duration."""
        return np.append(self.numbers[:, 0], 1.0)

    @property
    def control_places(self) -> tuple[float, ...]:
        """Where in a stage, from 0 to 1, its own controls act."""
        return self.scheme.places

    @property
    def is_free(self) -> bool:
        return self.problem.is_free

    @property
    def chosen(self) -> slice:
        """Where in x the design parameters are."""
        end = self.chart.point - int(self.is_free)
        return slice(end - len(self.problem.design), end)

    def span(self, x: Array) -> float:
        """The duration, from the point of any stage."""
        return float(x[..., -1].flat[0]) if self.is_free else self.problem.shortest


@dataclass(frozen=True, eq=False)
class Segment:
    """`where` are these stages among all."""

    stages: Stages
    where: slice


class Ends:
    """What the equations at both ends state, as numbers that follow the parameters in p."""

    def __init__(self, problem: Problem) -> None:
        self.rows = {which: stated(rows) for which, rows in (("start", problem.start), ("end", problem.end))}

    def values(self) -> Array:
        found = [self._of(row) for rows in self.rows.values() for row in rows]
        return np.concatenate([np.empty(0), *found])

    @staticmethod
    def _of(row: Row) -> Array:
        return np.array([row.lower]) if row.about is None else np.asarray(row.point, dtype=float)

    def split(self, p: ca.SX) -> dict[str, list[ca.SX]]:
        """By end, the expressions of what its rows state."""
        sizes = [len(self._of(row)) for rows in self.rows.values() for row in rows]
        parts = ca.vertsplit(p, np.cumsum([0, *sizes]).tolist()) if sizes else []
        first = len(self.rows["start"])
        return {"start": parts[:first], "end": parts[first:]}


def stated(rows: list[Row]) -> list[Row]:
    """The equations among rows."""
    return [row for row in rows if row.is_equation]


def cut(
    problem: Problem,
    scheme: Transcription,
    steps: int,
    nodes: Array | None = None,
    *,
    at_run_time: bool = False,
) -> Stages:
    """The stages of `problem`; `nodes` are fractions of the duration from 0 to 1, by default evenly spaced.

    `at_run_time`: what the ends state is no part of the functions, but of `Stages.parameters`.
    """
    if nodes is None:
        nodes = np.arange(steps + 1) / steps
    plant = scheme.plant(problem)
    if isinstance(plant, Mechanics) and not at_run_time:
        plant = plant.with_numbers()
    if isinstance(plant, Mechanics) and plant.closure is not None and not scheme.closes:
        scheme = Projected(scheme)
    controls = plant.controls
    m = len(controls)
    limited = any(pair != FREE for pair in problem.rates)
    memory = m if scheme.node_controls or limited else 0
    base = plant.chart
    periodic = base.tangent if problem.periodic else 0
    sums, design = len(problem.integrals), len(problem.design)
    chart = base.extended(memory + periodic + sums + design + problem.is_free)
    x = ca.SX.sym("x", chart.point)
    u = ca.SX.sym("u", m * scheme.points)
    z_names = scheme.implicit(plant)
    z, s = ca.SX.sym("z", len(z_names)), ca.SX.sym("s", 3)
    ends_given = Ends(problem) if at_run_time else None
    parameters = problem.parameters
    if ends_given is not None:
        parameters = np.concatenate([parameters, ends_given.values()])
    if isinstance(plant, Mechanics):
        parameters = np.concatenate([parameters, plant.numbers])
    p = ca.SX.sym("p", len(parameters))
    T = x[-1] if problem.is_free else s[2]
    t, h = s[0] * T, s[1] * T
    sizes = (base.point, memory, periodic, sums, design, int(problem.is_free))
    own, kept, held, summed, chosen, _ = ca.vertsplit(x, np.cumsum([0, *sizes]).tolist())
    numbers, p = p, ca.SX(p)  # what is found of the parameters is in x
    for k, place_of in enumerate(problem.design):
        p[place_of] = chosen[k]
    values = [u[m * k : m * (k + 1)] for k in range(scheme.points)]
    given = [kept, *values] if scheme.node_controls else values
    symbolic = asked(plant)
    interval = scheme.interval(Stretch(problem, symbolic or plant, t, h, T, own, given, z, p))
    after = ca.vertcat(
        *(interval.after, *([values[-1]] if memory else []), held),
        *(*((summed + interval.cost[1:],) if sums else ()), chosen, *([T] if problem.is_free else [])),
    )

    rows = _Rows(steps)
    node = moment_of(problem, plant, t, own, values[0], p, T)
    fixed = {row.component for row in problem.start if row.is_equation and row.component}
    for row in problem.limits["state"]:
        rows.add(row.name, row.value(node), (row.lower, row.upper), first=row.component not in fixed)
        if isinstance(scheme, Dmoc) and row.component.startswith(
            "v "
        ):  # what steps make of time is another speed
            for moment, _ in interval.moments:
                rows.add(f"{row.name} along the step", row.value(moment), (row.lower, row.upper))
    for row in problem.limits["control"]:
        k = controls.index(row.component)
        hull = _hull(scheme, kept[k] if memory else None, [value[k] for value in values])
        for j, coefficient in enumerate(hull):
            rows.add(_numbered(row.name, j, len(hull)), coefficient, (row.lower, row.upper))
    for row in problem.path:
        involved = ca.depends_on(row.value(node), u)
        places = [moment for moment, _ in interval.moments] if involved else [node]
        first_too = not (row.is_equation and not involved and problem.settles("start", row))
        for k, moment in enumerate(places):
            name = _numbered(row.name, k, len(places))
            rows.add(name, row.value(moment), (row.lower, row.upper), first=first_too)
    if scheme.node_controls:
        for row in (
            *problem.limits["control"],
            *(row for row in problem.path if ca.depends_on(row.value(node), u)),
        ):
            at_start = moment_of(problem, plant, t, own, kept, p, T)
            rows.add(row.name + " at the start", row.value(at_start), (row.lower, row.upper), only_first=True)
    for k, pair in enumerate(problem.rates):
        if pair != FREE:
            changes = _rates(scheme, kept[k], [value[k] for value in values])
            for j, (change, known) in enumerate(changes):
                name = _numbered(f"rate of {controls[k]}", j, len(changes))
                rows.add(name, change / h, pair, first=known)
    for row in problem.start:
        if row.is_bound:
            rows.add(f"start {row.name}", row.value(node), (row.lower, row.upper), only_first=True)
    for k, row in enumerate(problem.design.values()):
        rows.add(row.name, chosen[k], (row.lower, row.upper), only_first=True)
    if problem.is_free:
        rows.add("duration", T, (problem.shortest, problem.longest), only_first=True)

    ends = moment_of(problem, plant, T, own, ca.SX.zeros(m), p, T)
    starts = moment_of(problem, plant, ca.SX(0), own, ca.SX.zeros(m), p, T)
    follows = set() if at_run_time else conserved(problem)
    first, last = stated(problem.start), [row for row in stated(problem.end) if row.component not in follows]
    given_at = ends_given.split(p[len(problem.parameters) :]) if ends_given is not None else {}
    final = {row.component for row in last if row.component}
    bounded = [row for row in problem.end if row.is_bound]
    bounded += [row for row in problem.limits["state"] if row.component not in final]
    bounded += [
        row
        for row in problem.path
        if not ca.depends_on(row.value(node), u) and not (row.is_equation and problem.settles("end", row))
    ]
    around = base.local(_reference(base), own) - held if problem.periodic else ca.SX(0, 1)
    again = tuple(f"periodic {name}" for name in plant.tangent_names[:periodic])
    back = returning(problem, plant, around, own, p)
    begins = _equations(plant, first, starts, own, p, given_at.get("start"))
    finishes = _equations(plant, last, ends, own, p, given_at.get("end"))
    begin = conditions(problem, plant, "start", first, begins, own, p)
    finish = conditions(problem, plant, "end", last, finishes, own, p)
    lower, upper = rows.bounds()
    place, found = [x, u, z, s, numbers], [after, interval.cost[0], interval.implicit, rows.expressions()]
    met = [(row, summed[k]) for k, row in enumerate(problem.integrals)]
    equal = [(row, value) for row, value in met if row.is_equation]
    within = [(row, value) for row, value in met if row.is_bound]
    opened = None
    if symbolic is not None and symbolic.calls:
        opened = Opened.of(symbolic, place, found)
        found = opened.closed(place)
    return Stages(
        problem=problem,
        scheme=scheme,
        plant=plant,
        chart=chart,
        count=steps,
        memory=memory,
        x_names=(
            *plant.tangent_names,
            *(f"{name} before" for name in controls[:memory]),
            *(f"{name} at the start" for name in plant.tangent_names[:periodic]),
            *(f"integral of {row.name}" for row in problem.integrals),
            *(row.name for row in problem.design.values()),
            *(["duration"] if problem.is_free else []),
        ),
        u_names=tuple(_numbered(name, k, scheme.points) for k in range(scheme.points) for name in controls),
        z_names=z_names,
        stage=ca.Function("stage", place, found),
        start=ca.Function("start", [x, s, numbers], [ca.vertcat(begin[1], around, summed)]),
        end=ca.Function(
            "end",
            [x, s, numbers],
            [
                problem.cost.final(ends),
                ca.vertcat(finish[1], around[back], *(value - row.lower for row, value in equal)),
                column([*(row.value(ends) for row in bounded), *(value for _, value in within)]),
            ],
        ),
        parameters=parameters,
        numbers=np.column_stack([nodes[:-1], np.diff(nodes), np.full(steps, problem.shortest)]),
        path_names=tuple(rows.names),
        lower=lower,
        upper=upper,
        start_names=(*begin[0], *again, *(f"integral of {row.name}" for row in problem.integrals)),
        end_names=(*finish[0], *(again[k] for k in back), *(f"integral of {row.name}" for row, _ in equal)),
        end_bounded=(*(row.name for row in bounded), *(f"integral of {row.name}" for row, _ in within)),
        end_lower=np.array([row.lower for row in (*bounded, *(row for row, _ in within))], dtype=float),
        end_upper=np.array([row.upper for row in (*bounded, *(row for row, _ in within))], dtype=float),
        opened=opened,
    )


def _reference(chart: Chart) -> ca.SX:
    """The point about which the state at the start of a periodic motion is kept as plain numbers."""
    neutral = chart.model.neutral() if chart.model is not None else np.empty(0)
    return ca.SX(np.concatenate([neutral, np.zeros(chart.rest)]))


def _equations(
    plant: Plant, rows: list[Row], moment: Moment, x: ca.SX, p: ca.SX, given_at: list[ca.SX] | None
) -> ca.SX:
    """Conditions at an end. All speeds together are asked for as momenta, where the state has these: p = M(q) v."""
    known = given_at if given_at is not None else [ca.SX(row.lower) for row in rows]
    momenta: dict[str, ca.SX] = {}
    if isinstance(plant, Momenta):
        names = [f"v {name}" for name in plant.model.speed_names]
        given = {row.component: value for row, value in zip(rows, known, strict=True)}
        if all(name in given for name in names):
            nq = plant.model.nq
            v = ca.sparsify(ca.vertcat(*(given[name] for name in names)))
            off = x[nq:]
            if v.nnz():
                off -= plant.shared.symbolic.mass_matrix(x[:nq], parameters=plant.shared_values(p)) @ v
            momenta = dict(zip(names, ca.vertsplit(off), strict=True))
    values = []
    for row, value in zip(rows, known, strict=True):
        if row.name in momenta:
            values.append(momenta[row.name])
            continue
        moved = given_at is not None and row.about is not None
        values.append(row.about(moment, value) if moved else row.value(moment) - value)  # type: ignore[misc]
    return column(values)


class _Rows:
    """Bounds of (3), as they are collected."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.names: list[str] = []
        self._expressions: list[ca.SX] = []
        self._lower: list[Array] = []
        self._upper: list[Array] = []

    def add(
        self,
        name: str,
        expression: ca.SX,
        pair: tuple[float, float],
        *,
        first: bool = True,
        only_first: bool = False,
    ) -> None:
        low, high = np.full(self.steps, pair[0]), np.full(self.steps, pair[1])
        free = slice(1, None) if only_first else slice(0, 0 if first else 1)
        low[free], high[free] = FREE
        self.names.append(name)
        self._expressions.append(expression)
        self._lower.append(low)
        self._upper.append(high)

    def expressions(self) -> ca.SX:
        return column(self._expressions)

    def bounds(self) -> tuple[Array, Array]:
        empty = np.empty((self.steps, 0))
        if not self.names:
            return empty, empty.copy()
        return np.column_stack(self._lower), np.column_stack(self._upper)


def _bernstein(scheme: Transcription, kept: ca.SX | None, values: list[ca.SX]) -> list[ca.SX]:
    """The polynomial of a control within a stage, by its coefficients in Bernstein's basis, between which it stays."""
    places, points = scheme.places, values
    if kept is not None and scheme.node_controls:
        places, points = (0.0, *places), [kept, *values]
    degree = len(places) - 1
    basis = [
        [math.comb(degree, j) * s**j * (1 - s) ** (degree - j) for j in range(degree + 1)] for s in places
    ]
    weights = np.linalg.inv(np.array(basis))
    weights[np.abs(weights) < 1e-14] = 0.0
    return [ca.dot(ca.SX(row), ca.vertcat(*points)) for row in weights]


def _hull(scheme: Transcription, kept: ca.SX | None, values: list[ca.SX]) -> list[ca.SX]:
    """Numbers between which a control stays within a stage: where they keep its bounds, it does so at every time.

    As many as there are values; the first one of a control that neighbours share is the last one of the stage before.
    """
    if len(values) == 1:
        return values
    return _bernstein(scheme, kept, values)[int(scheme.node_controls) :]


def _rates(scheme: Transcription, kept: ca.SX, values: list[ca.SX]) -> list[tuple[ca.SX, bool]]:
    """How fast a control changes, in terms of the length of the stage, and whether that is known in the first one too.

    The slope of a polynomial of degree d has the coefficients d (b_j+1 - b_j) in Bernstein's basis, between which it stays:
    those of degree 2, of Hermite-Simpson and Radau, are the slopes at both ends. Where stages share no value, the first one
    is reached from the last one before.
    """
    if len(values) == 1:
        return [(values[0] - kept, scheme.node_controls)]
    coefficients = _bernstein(scheme, kept, values)
    degree = len(coefficients) - 1
    found = [(degree * (after - before), True) for before, after in pairwise(coefficients)]
    if not scheme.node_controls:
        found.append(((values[0] - kept) / scheme.places[0], False))
    return found


def _numbered(name: str, k: int, count: int) -> str:
    return name if count == 1 else f"{name} ({k + 1})"
