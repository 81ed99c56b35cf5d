"""Phases as one row of stages: those of each phase, and one stage between each two.

Phase p has stages of its own, with their functions, mesh and sizes (`alembert.optimal.stages`); those of all are given
the largest sizes, with states, controls and z that do nothing. Between phases there is one stage without motion: with x the
last point of the phase before, and w what the next one leaves free (controls at its start, its duration, states),

    x^+ = link(x, w),    l = l_N(x),    end conditions of the one, start conditions of the other as rows of d         (1)

So the sweep in time runs through all phases, and its cost is that of their stages. What conditions across phases need to
know later, and design parameters that phases share, is *carried*: further states that stay as they are,

    y' = y,    y^+ = what is to be known, after the phase where it is known                                            (2)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError
from alembert.optimal.closure import place as place_of
from alembert.optimal.consistency import independent
from alembert.optimal.evaluation import Evaluation
from alembert.optimal.guess import straight
from alembert.optimal.links import Linkage
from alembert.optimal.plant import Chart, Mechanics, Moment, Momenta, Row, closure_of
from alembert.optimal.problem import Problem
from alembert.optimal.schemes import moment_of
from alembert.optimal.stage_derivatives import Expansion, Functions
from alembert.optimal.stages import Segment, Stages

Array = np.ndarray
FREE = (-np.inf, np.inf)


@dataclass(frozen=True, eq=False)
class Chain(Stages):
    """(1), with the functions of both ends; `own` are the stages of each phase as they are by themselves."""

    names: tuple[str, ...] = ()
    phases: tuple[Stages, ...] = ()
    segments: tuple[Segment, ...] = ()
    between: tuple[_Between, ...] = ()
    carried: tuple[CarriedNumber, ...] = ()
    final: Final | None = None

    def carried_place(self, k: int) -> int:
        """Where in the point of node k what is carried begins."""
        chart = self.part_at(k).stages.chart
        return chart.tangent - len(self.carried) + chart.nq - chart.nv

    @property
    def parts(self) -> tuple[Segment, ...]:
        return self.segments

    @property
    def is_free(self) -> bool:
        return False

    @property
    def wheres(self) -> list[slice]:
        """Stages of each phase."""
        return [part.where for part in self.segments[::2]]

    @property
    def alone(self) -> list[tuple[Stages, slice]]:
        return list(zip(self.phases, self.wheres, strict=True))

    @property
    def clocks(self) -> tuple[tuple[int, int], ...]:
        return tuple((where.start, own.chart.tangent - 1) for own, where in self.alone if own.is_free)

    def part_at(self, k: int) -> Segment:
        """That of node k."""
        return next((part for part in self.segments if k < part.where.stop), self.segments[-1])

    def point_place(self, k: int, j: int) -> int:
        return self.part_at(k).stages.point_place(0, j)

    def parameters_at_ends(self, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        first = len(self.phases[0].parameters)
        return _piece(p, 0, first), _piece(p, first)

    def when(self, k: int, x: Array) -> str:
        for name, own, where in zip(self.names, self.phases, self.wheres, strict=True):
            if k < where.stop:
                t = own.numbers[k - where.start, 0] * own.span(x[where.start, : own.chart.point])
                return f"{name}: stage {k - where.start}, t = {t:.4g} s"
            if k == where.stop:
                return f"the link after {name}"
        return f"stage {k}"


@dataclass(frozen=True)
class CarriedNumber:
    """One entry of (2): from the start or the end of phase `phase`, the function of its own stage that is kept."""

    name: str
    phase: int
    at_end: bool
    value: Callable[[ca.SX, ca.SX, ca.SX], ca.SX]
    """(x, s, p) of the phase's own stages"""

    def number(self, own: Stages) -> ca.Function:
        x, s, p = ca.SX.sym("x", own.chart.point), ca.SX.sym("s", 3), ca.SX.sym("p", len(own.parameters))
        return ca.Function("carried", [x, s, p], [self.value(x, s, p)])


@dataclass(frozen=True)
class Final:
    """What is asked of all phases together, when the last one ends: rows with functions of the carried numbers and of the
    end of the last phase, and a cost."""

    rows: list[tuple[Row, Callable[[ca.SX, ca.SX, ca.SX, ca.SX], ca.SX]]]
    cost: Callable[[ca.SX, ca.SX, ca.SX, ca.SX], ca.SX] | None
    """(carried, x, s, p)"""


def split(own: Stages, x: ca.SX, s: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Of a point of a phase's stages: that of its plant, its duration, and the parameters with those that are found."""
    T = x[own.chart.point - 1] if own.is_free else s[2]
    p, chosen = ca.SX(p), _piece(x, own.chosen.start, own.chosen.stop)
    for k, place in enumerate(own.problem.design):
        p[place] = chosen[k]
    return x[: own.plant.chart.point], T, p


def moment_at_end(own: Stages, x: ca.SX, u: ca.SX, s: ca.SX, p: ca.SX) -> Moment:
    point, T, p = split(own, x, s, p)
    return moment_of(own.problem, own.plant, T, point, u, p, T)


def join(
    phases: Mapping[str, Problem],
    stages: Sequence[Stages],
    linkages: Sequence[Linkage],
    carried: Sequence[CarriedNumber],
    shared: Mapping[str, int],
    final: Final,
) -> Chain:
    """The chain of these stages; `linkages` are those to the phases after the first, `shared` are design parameters that
    several phases have, with the entry of `carried` where they are."""
    names = tuple(phases)
    between = [
        _Between(stages[k], stages[k + 1], linkage, k, carried, shared) for k, linkage in enumerate(linkages)
    ]
    sizes = _Sizes.of(stages, between, len(carried))
    wide = [sizes.widened(own, name, carried) for own, name in zip(stages, names, strict=True)]
    segments, at = [], 0
    for k, own in enumerate(wide):
        segments.append(Segment(own, slice(at, at + own.count)))
        at += own.count
        if k < len(between):
            link = between[k].stages(sizes, own, wide[k + 1], (names[k], names[k + 1]))
            segments.append(Segment(link, slice(at, at + 1)))
            at += 1
    first, last = wide[0], wide[-1]
    start, start_names = _start(first, len(first.parameters) + len(last.parameters), carried)
    end = _end(last, len(first.parameters), len(carried), final)
    own = stages[-1]
    equal = [row for row, _ in final.rows if row.is_equation]
    within = [row for row, _ in final.rows if not row.is_equation]
    return Chain(
        problem=own.problem,
        scheme=own.scheme,
        plant=own.plant,
        chart=last.chart,
        count=at,
        memory=0,
        x_names=last.x_names,
        u_names=last.u_names,
        z_names=last.z_names,
        stage=last.stage,
        start=start,
        end=end,
        parameters=np.concatenate([first.parameters, last.parameters]),
        numbers=np.concatenate([part.stages.numbers for part in segments]),
        path_names=last.path_names,
        lower=np.concatenate([part.stages.lower for part in segments]),
        upper=np.concatenate([part.stages.upper for part in segments]),
        start_names=tuple(f"{names[0]}: {name}" for name in start_names),
        end_names=(*(f"{names[-1]}: {name}" for name in own.end_names), *(row.name for row in equal)),
        end_bounded=(*(f"{names[-1]}: {name}" for name in own.end_bounded), *(row.name for row in within)),
        end_lower=np.concatenate([own.end_lower, [row.lower for row in within]]),
        end_upper=np.concatenate([own.end_upper, [row.upper for row in within]]),
        names=names,
        phases=tuple(stages),
        segments=tuple(segments),
        between=tuple(between),
        carried=tuple(carried),
        final=final,
    )


@dataclass(frozen=True)
class _Sizes:
    """Those of all phases: tangent of x without what is carried, u, z, d; numbers that points have beyond their tangent."""

    n: int
    m: int
    nz: int
    nd: int
    surplus: int
    carried: int

    @classmethod
    def of(cls, stages: Sequence[Stages], between: Sequence[_Between], carried: int) -> _Sizes:
        n, m, nz, nd = (max(own.sizes[i] for own in stages) for i in range(4))
        m, nd = max([m, *(b.free for b in between)]), max([nd, *(len(b.row_names) for b in between)])
        return cls(n, m, nz, nd, max(own.chart.nq - own.chart.nv for own in stages), carried)

    def chart(self, own: Stages) -> Chart:
        more = self.n - own.chart.tangent + self.carried
        return Chart(own.chart.model, own.chart.rest + more, self.surplus - own.chart.nq + own.chart.nv)

    def place(self, own: Stages) -> int:
        """Where in a point what is carried begins."""
        return self.n + own.chart.nq - own.chart.nv

    def point(self, own: Stages, x: ca.SX, carried: ca.SX) -> ca.SX:
        """A point of these sizes, of one of the phase's own."""
        more = self.place(own) - x.numel()
        return ca.vertcat(x, ca.SX.zeros(more), carried, ca.SX.zeros(self.chart(own).unused))

    def carried_of(self, own: Stages, x: ca.SX) -> ca.SX:
        return _piece(x, self.place(own), self.place(own) + self.carried)

    def symbols(self, point: int, parameters: int) -> list[ca.SX]:
        sizes = {"x": point, "u": self.m, "z": self.nz, "s": 3, "p": parameters}
        return [ca.SX.sym(name, size) for name, size in sizes.items()]

    def widen(self, own: Stages, place: Sequence[ca.SX], found: Sequence[ca.SX]) -> list[ca.SX]:
        """f, l, c and d of a phase at `place` in these sizes. Controls that do nothing cost, so that they are 0."""
        x, u, z, *_ = place
        _, m, nz, nd = own.sizes
        after, cost, c, d = found
        return [
            self.point(own, after, self.carried_of(own, x)),
            cost + ca.sumsqr(_piece(u, m)) / 2,
            ca.vertcat(c, _piece(z, nz)),
            ca.vertcat(d, ca.SX.zeros(self.nd - nd)),
        ]

    def within(self, own: Stages, place: Sequence[ca.SX]) -> list[ca.SX]:
        """The place in the phase's own sizes."""
        x, u, z, s, p = place
        _, m, nz, _ = own.sizes
        return [x[: own.chart.point], _piece(u, 0, m), _piece(z, 0, nz), s, p]

    def widened(self, own: Stages, name: str, carried: Sequence[CarriedNumber]) -> Stages:
        n, m, nz, nd = own.sizes
        chart = self.chart(own)
        place = self.symbols(chart.point, len(own.parameters))
        found = self.widen(own, place, own.stage.call(self.within(own, place)))
        lower, upper = (
            np.concatenate([bounds, np.full((own.count, self.nd - nd), free)], axis=1)
            for bounds, free in ((own.lower, FREE[0]), (own.upper, FREE[1]))
        )
        kept = [c.name for c in carried]
        return replace(
            own,
            chart=chart,
            x_names=(*(f"{name}: {x}" for x in own.x_names), *_unused(self.n - n), *kept),
            u_names=(*(f"{name}: {u}" for u in own.u_names), *_unused(self.m - m)),
            z_names=(*(f"{name}: {z}" for z in own.z_names), *_unused(self.nz - nz)),
            path_names=(*(f"{name}: {d}" for d in own.path_names), *_unused(self.nd - nd)),
            stage=ca.Function("stage", place, found),
            lower=lower,
            upper=upper,
            start_names=(),
            end_names=(),
            end_bounded=(),
            end_lower=np.empty(0),
            end_upper=np.empty(0),
            opened=_Widened(own, self) if own.opened is not None else None,  # type: ignore[arg-type]
            own=own,
        )


def _piece(v: ca.SX, first: int, last: int | None = None) -> ca.SX:
    """v[first:last] as a column also where it is empty, which CasADi makes a row of a single number."""
    last = v.numel() if last is None else last
    return v[first:last] if last > first else ca.SX(0, 1)


def _unused(count: int) -> tuple[str, ...]:
    return tuple(f"unused {k}" for k in range(count))


class _Widened:
    """`Opened` of a phase, in the sizes of all."""

    def __init__(self, own: Stages, sizes: _Sizes) -> None:
        assert own.opened is not None
        self._own, self._sizes, self._opened = own, sizes, own.opened

    @property
    def has_second(self) -> bool:
        return self._opened.has_second

    @property
    def known_size(self) -> int:
        return self._opened.known_size

    def expand(
        self, place: Sequence[ca.SX], functions: Functions, w: ca.SX, free: Sequence[ca.SX], at: Sequence[Any]
    ) -> Expansion:
        def of_all(found: list[ca.SX]) -> list[ca.SX]:
            return functions(self._sizes.widen(self._own, place, found))

        return self._opened.expand(self._sizes.within(self._own, place), of_all, w, free, at)


class _Between:
    """(1): what is free in it, and its rows."""

    def __init__(
        self,
        before: Stages,
        after: Stages,
        linkage: Linkage,
        number: int,
        carried: Sequence[CarriedNumber],
        shared: Mapping[str, int],
    ) -> None:
        self.before, self.after, self.linkage, self.number = before, after, linkage, number
        self.carried, self.shared = carried, shared
        self._design = [row.name for row in after.problem.design.values()]
        self._new_design = [
            name for name in self._design if name not in shared or carried[shared[name]].phase == number + 1
        ]
        free_states = sum(entry.size for entry in linkage.free)
        self.free = free_states + after.memory + len(self._new_design) + int(after.is_free)
        settled = linkage.settled
        first = {row.name: row.component for row in after.problem.start}
        self.settled = [k for k, name in enumerate(after.start_names) if first.get(name) in settled]
        self._asked = [
            k for k in range(len(after.start_names) - len(after.problem.integrals)) if k not in self.settled
        ]
        if any(closure_of(own.plant) is not None for own in (before, after)):
            self._asked = self._not_repeated()
        self.row_names = (
            *before.end_names,
            *before.end_bounded,
            *(f"start {after.start_names[k]}" for k in self._asked),
        )

    def stages(self, sizes: _Sizes, before: Stages, after: Stages, names: tuple[str, str]) -> Stages:
        """`before` and `after` in the sizes of all."""
        one, two = self.before, self.after
        place = sizes.symbols(before.chart.point, len(one.parameters) + len(two.parameters))
        x, u, z, s, p = place
        p_1, p_2 = _piece(p, 0, len(one.parameters)), _piece(p, len(one.parameters))
        s_1, s_2 = ca.vertcat(1, 0, s[1]), ca.vertcat(0, 0, s[2])
        own, carried = x[: one.chart.point], sizes.carried_of(one, x)
        cost, equations, bounded = one.end(own, s_1, p_1)
        last = ca.SX.sym("last", len(one.plant.controls))
        begins = self._start(moment_at_end(one, own, last, s_1, p_1), carried, u, p_2)
        if ca.depends_on(begins, last):
            raise ArgumentError(
                f"Phases: a link of {names[1]!r} depends on controls, which have no value at the end of {names[0]!r}"
            )
        kept = list(ca.vertsplit(carried)) if self.carried else []
        for k, item in enumerate(self.carried):
            if item.phase == self.number and item.at_end:
                kept[k] = item.value(own, s_1, p_1)
            if item.phase == self.number + 1 and not item.at_end:
                kept[k] = item.value(begins, s_2, p_2)
        starts = two.start(begins, s_2, p_2)
        rows = ca.vertcat(equations, bounded, *(starts[k] for k in self._asked))
        equal = np.zeros(len(one.end_names)), np.zeros(len(self._asked))
        more = sizes.nd - rows.numel()
        lower = np.concatenate([equal[0], one.end_lower, equal[1], np.full(more, FREE[0])])
        upper = np.concatenate([equal[0], one.end_upper, equal[1], np.full(more, FREE[1])])
        found = [
            sizes.point(two, begins, ca.vertcat(ca.SX(0, 1), *kept)),
            cost + ca.sumsqr(_piece(u, self.free)) / 2,
            z,
            ca.vertcat(rows, ca.SX.zeros(more)),
        ]
        free = [f"{names[1]}: {name}" for name in self.free_names]
        return replace(
            before,
            count=1,
            x_names=tuple(f"link to {name}" for name in after.x_names),
            u_names=(*free, *_unused(sizes.m - self.free)),
            z_names=_unused(sizes.nz),
            path_names=(*(self._label(name, names) for name in self.row_names), *_unused(more)),
            stage=ca.Function("stage", place, found),
            parameters=np.concatenate([one.parameters, two.parameters]),
            numbers=np.array([[1.0, one.numbers[0, 2], two.numbers[0, 2]]]),
            lower=lower[None],
            upper=upper[None],
            opened=None,
            before=before,
            following=after,
            own=None,
        )

    def _not_repeated(self) -> list[int]:
        """Of what is asked at the start, what does not follow from loops, prescribed joints and conditions before."""
        one, two = self.before, self.after
        p_1, p_2 = ca.SX(one.parameters), ca.SX(two.parameters)
        s_1, s_2 = ca.SX([1, 0, one.numbers[0, 2]]), ca.SX([0, 0, two.numbers[0, 2]])
        d, u = ca.SX.sym("d", one.chart.tangent), ca.SX.sym("u", self.free)
        carried = ca.SX.sym("carried", len(self.carried))
        place, free = _end_place(one), np.zeros(self.free)
        if two.is_free:
            free[-1] = straight(two.problem).duration
        x = one.chart.retract(ca.SX(place), d)
        last = ca.SX.zeros(len(one.plant.controls))
        begins = self._start(moment_at_end(one, x, last, s_1, p_1), carried, u, p_2)
        given = ca.vertcat(_kept_closed(one, x, s_1, p_1), one.end(x, s_1, p_1)[1])
        starts = two.start(begins, s_2, p_2)
        rows = ca.vertcat(ca.SX(0, 1), *(starts[k] for k in self._asked))
        y = ca.vertcat(d, u, carried)
        begun = np.concatenate([np.zeros(d.numel()), free, np.zeros(carried.numel())])
        return [self._asked[k] for k in independent(y, given, rows, begun)]

    @staticmethod
    def _label(name: str, names: tuple[str, str]) -> str:
        return f"{names[1]}: {name}" if name.startswith("start ") else f"{names[0]}: end {name}"

    @property
    def free_names(self) -> list[str]:
        two = self.after
        found = [name for entry in self.linkage.free for name in entry.names]
        found += [f"{name} at the start" for name in two.plant.controls[: two.memory]]
        return [*found, *self._new_design, *(["duration"] if two.is_free else [])]

    def _start(self, s: Moment, carried: ca.SX, u: ca.SX, p: ca.SX) -> ca.SX:
        """The first point of the phase that begins."""
        two, left = self.after, list(ca.vertsplit(u[: self.free])) if self.free else []

        def take(count: int) -> ca.SX:
            return ca.vertcat(ca.SX(0, 1), *(left.pop(0) for _ in range(count)))

        point = self.linkage.point(s, [take(entry.size) for entry in self.linkage.free])
        memory = take(two.memory)
        new = {name: take(1) for name in self._new_design}
        design = [new[name] if name in new else carried[self.shared[name]] for name in self._design]
        if isinstance(two.plant, Momenta):
            nq, known = two.plant.model.nq, ca.SX(p)
            for k, place in enumerate(two.problem.design):
                known[place] = design[k]
            M = two.plant.shared.symbolic.mass_matrix(point[:nq], parameters=two.plant.shared_values(known))
            point = ca.vertcat(point[:nq], M @ point[nq:])
        sums = ca.SX.zeros(len(two.problem.integrals))
        return ca.vertcat(point, memory, sums, *design, *([take(1)] if two.is_free else []))

    def guess(self, before: Array, after: Array) -> Array:
        """u, for the last point before and the first one after."""
        two = self.after
        place = two.plant.chart.point
        point = after[:place]
        if isinstance(two.plant, Momenta):
            nq = two.plant.model.nq
            v = two.plant.tree.solve_mass_matrix(
                point[:nq], point[nq:], parameters=two.problem.parameter_values
            )
            point = np.concatenate([point[:nq], v])
        parts = [point[entry.at] for entry in self.linkage.free]
        chosen = dict(zip(self._design, after[two.chosen], strict=True))
        parts += [after[place : place + two.memory], np.array([chosen[name] for name in self._new_design])]
        return np.concatenate([*parts, after[-1:] if two.is_free else np.empty(0)])


def _start(
    first: Stages, parameters: int, carried: Sequence[CarriedNumber]
) -> tuple[ca.Function, tuple[str, ...]]:
    """Conditions of the first phase, what is carried from there, and that what does nothing is 0."""
    own = first.own
    assert own is not None
    x, s, p = ca.SX.sym("x", first.chart.point), ca.SX.sym("s", 3), ca.SX.sym("p", parameters)
    at = x[: own.chart.point], s, _piece(p, 0, len(own.parameters))
    place = first.chart.tangent - len(carried) + own.chart.nq - own.chart.nv
    idle = _piece(x, own.chart.point, place)
    kept = [
        x[place + k] - (c.value(*at) if c.phase == 0 and not c.at_end else 0) for k, c in enumerate(carried)
    ]
    names = (*own.start_names, *_unused(idle.numel()), *(c.name for c in carried))
    return ca.Function("start", [x, s, p], [ca.vertcat(own.start(*at), idle, *kept)]), names


def _end(last: Stages, begin: int, carried: int, final: Final) -> ca.Function:
    """Those of the last phase, and of all together; p has the parameters of the first phase before its own."""
    own = last.own
    assert own is not None
    x, s, p = ca.SX.sym("x", last.chart.point), ca.SX.sym("s", 3), ca.SX.sym("p", begin + len(own.parameters))
    at = x[: own.chart.point], s, _piece(p, begin)
    place = last.chart.tangent - carried + own.chart.nq - own.chart.nv
    y = _piece(x, place, place + carried)
    cost, equations, bounded = own.end(*at)
    if final.cost is not None:
        cost = cost + final.cost(y, *at)
    rows = [(row, value(y, *at)) for row, value in final.rows]
    equal = [value - row.lower for row, value in rows if row.is_equation]
    within = [value for row, value in rows if not row.is_equation]
    return ca.Function("end", [x, s, p], [cost, ca.vertcat(equations, *equal), ca.vertcat(bounded, *within)])


def _kept_closed(own: Stages, x: ca.SX, s: ca.SX, p: ca.SX) -> ca.SX:
    """What loops and prescribed joints say of the last point of a phase, and of its speeds."""
    closure = closure_of(own.plant)
    if closure is None:
        return ca.SX(0, 1)
    assert isinstance(own.plant, Mechanics)
    point, T, p = split(own, x, s, p)
    return closure.holding(T, point[: own.plant.model.nq], own.plant.speeds(point, p), p)


def _end_place(own: Stages) -> Array:
    """A last point of a phase's stages as its problem states it, with loops closed."""
    problem, closure = own.problem, closure_of(own.plant)
    motion = straight(problem)
    point = motion.points[-1] if closure is None else np.concatenate(place_of(problem, closure, "end"))
    if isinstance(own.plant, Momenta):
        nq = own.plant.model.nq
        M = own.plant.tree.mass_matrix(point[:nq], parameters=problem.parameter_values)
        point = np.concatenate([point[:nq], M @ point[nq:]])
    design = problem.parameters[list(problem.design)]
    more = np.zeros(own.memory + len(problem.integrals))
    return np.concatenate([point, more, design, [motion.duration] if own.is_free else []])


class ChainEvaluation:
    """Compiled functions of a chain: those of its parts, and of its ends."""

    def __init__(self, chain: Chain, *, exact: bool) -> None:
        self.stages, self.exact = chain, exact
        self.parts = tuple(Evaluation(part.stages, exact=exact, has_ends=False) for part in chain.parts)
        first, last = self.parts[0], self.parts[-1]
        self.steps, self.measure, self.push = first.steps, first.measure, first.push
        self.barrier, self.settle = first.barrier, first.settle
        self.ends, self.ends_trial = first.end_kernels(chain, first.tangent, last.tangent)
        self.is_plain = all(e.is_plain for e in self.parts)
