"""Problems in phases that follow each other, each with its own dynamics, mesh, duration, conditions and costs.

Every phase is a `Problem` with stages of its own; `alembert.optimal.chain` joins them, with one stage between each two for
the links of `alembert.optimal.links`. Motions that pass through states on their way (`through`) are one problem, cut into
phases at its waypoints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError, UnsupportedError
from alembert.model.printing import unknown
from alembert.optimal.chain import CarriedNumber, Chain, Final, join, split
from alembert.optimal.closure import place as closed_place
from alembert.optimal.conditions import Cost, path_row
from alembert.optimal.consistency import evaluated, independent
from alembert.optimal.guess import straight
from alembert.optimal.links import Link, Linkage, same
from alembert.optimal.phases_solution import PhasesSolution
from alembert.optimal.plant import Moment, Momenta, Row, closure_of
from alembert.optimal.problem import Problem
from alembert.optimal.refinement import Meshes, refine_by_parts
from alembert.optimal.schemes import scheme
from alembert.optimal.solution import Solution
from alembert.optimal.solve import read_nodes
from alembert.optimal.stages import Stages, cut

Array = np.ndarray
Across = Callable[[Mapping[str, "PhaseEnds"]], Any]


@dataclass(frozen=True)
class PhaseEnds:
    """One phase as functions across phases see it: the moments at its `start` and its `end`, and its `duration`."""

    start: Moment
    end: Moment
    duration: Any


class Phases:
    """`phases` by name, in their order, each a `Problem` of a `System` or of a model, with its own mesh.

    Of a phase after the first, states that the one before has too go on from there. `links` changes that, by the name of the
    phase that begins and of its state: `{"second": {"m": lambda s: s.m - 8000}}` jumps, where s is the moment at the end of
    the phase before, and `{"second": {"m": None}}` leaves it free, or to the phase's own `start`. For a model states are
    "q elbow" and "v elbow", or "q" and "v" for all of them; `impact` and `same_bodies` make such links. Conditions at the
    ends of a phase, limits, path, costs and a free duration are those of its problem; its time begins at 0. Costs add. A
    design parameter that several phases have has one value for all of them.

    With `cyclic` the first phase goes on from the last one, by `links` of its own: a gait whose stride repeats itself, or
    only some of its states, where links leave others out (None) or move them on: `{"x": lambda s: s.x - 2 * pi}`.

    `across` are conditions on several phases, `{"all in all": (lambda s: s["up"].duration + s["down"].duration, 0, 60)}`;
    `cost` is a function like these, which is added: `s[name].start` and `s[name].end` are moments.
    """

    follow = True
    """whether a phase begins where the one before ends"""

    def __init__(
        self,
        phases: Mapping[str, Problem],
        *,
        links: Mapping[str, Mapping[str, Link | None]] | None = None,
        across: Mapping[str, tuple[Across, float, float]] | None = None,
        cost: Across | None = None,
        cyclic: bool = False,
    ) -> None:
        if not isinstance(phases, Mapping) or not phases:
            raise ArgumentError(
                f'Phases: phases is {phases!r}, expected problems by name, as {{"up": problem, "down": other}}'
            )
        for name, problem in phases.items():
            if not isinstance(problem, Problem):
                raise ArgumentError(
                    f"Phases: {name!r} is a {type(problem).__name__}, expected a Problem for each phase"
                )
            _check(name, problem)
        for name, own in (links or {}).items():
            if not isinstance(own, Mapping):
                raise ArgumentError(
                    f"Phases: links of {name!r} is {own!r}, expected a function or None for each state by name"
                )
            following = list(phases)[0 if cyclic else 1 :]
            if name not in following:
                raise ArgumentError(unknown("Phases: links: no phase that follows another", name, following))
        self.phases = dict(phases)
        self._problems = list(self.phases.values())
        self.design = _shared(self.phases)
        names = list(self.phases)
        self.linkages = [
            Linkage(
                name,
                self.phases[before],
                self.phases[name],
                dict((links or {}).get(name, {})),
                follow=self.follow,
            )
            for before, name in pairwise(names)
        ]
        cycle = None
        if cyclic:
            first, last = self._problems[0], self._problems[-1]
            cycle = Linkage(names[0], last, first, dict((links or {}).get(names[0], {})), follow=True)
        self._across = _Together(self.phases, across or {}, cost, cycle)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(self.phases)}>"

    def solve(
        self,
        steps: int | Mapping[str, int] = 50,
        *,
        transcription: str | Mapping[str, str] | None = None,
        nodes: Mapping[str, Any] | None = None,
        guess: Any = None,
        accuracy: float | None = None,
        refine: Literal["h", "hp"] = "h",
        **options: Any,
    ) -> PhasesSolution:
        """Solve with `steps` intervals in every phase, or as many as it says for each by name.

        `transcription`, `nodes` and `guess` are by phase as well (a transcription also one for all); a solution of phases is
        a guess too. `accuracy` refines the mesh of every phase, and with `refine="hp"` its order. Other options are those of
        `Problem.solve`.
        """
        from alembert.optimal.phases_solve import solve_phases

        first = Meshes(
            {name: self._of_phase("steps", steps, name, 50) for name in self.phases},
            {name: self._of_phase("transcription", transcription, name, None) for name in self.phases},
            {name: self._of_phase("nodes", nodes or {}, name, None) for name in self.phases},
        )
        if accuracy is None:
            return solve_phases(self, first, guess, options)

        def solve(now: Meshes, start: Any, left: float | None) -> tuple[PhasesSolution, dict[str, Solution]]:
            solution = solve_phases(self, now, start, {**options, "time_limit": left})
            return solution, {name: motion.solution for name, motion in solution.items()}

        limit = options.get("time_limit")
        found: PhasesSolution = refine_by_parts(solve, first, guess, accuracy, refine, limit)
        return found

    def __getattr__(self, name: str) -> Any:
        if name in ("prepare", "compile", "export_c"):
            raise AttributeError(
                "phases are not prepared, compiled or exported: solve(guess=solution) begins from one nearby with its "
                "multipliers, and parts that are one Problem each can be prepared"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _of_phase(self, what: str, given: Any, name: str, default: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        for key in given:
            if key not in self.phases:
                raise ArgumentError(unknown(f"Phases.solve: {what}: no phase", key, self.phases))
        return given.get(name, default)

    def chain(
        self, counts: Mapping[str, int], schemes: Mapping[str, str | None], meshes: Mapping[str, Any]
    ) -> Chain:
        """All stages."""
        stages = []
        for name, problem in self.phases.items():
            kind = schemes[name] or ("dmoc" if problem.model is not None else "hermite-simpson")
            own = read_nodes(int(counts[name]), meshes[name])
            stages.append(cut(problem, scheme(kind), int(counts[name]), own))
        shared: dict[str, int] = {}
        carried: list[CarriedNumber] = []
        for row in self.design:
            having = [k for k, p in enumerate(self._problems) if row in _design_names(p)]
            if len(having) > 1:
                shared[row] = len(carried)
                place = _design_names(self._problems[having[0]]).index(row)
                carried.append(CarriedNumber(row, having[0], False, _design_entry(stages[having[0]], place)))
        begin = len(carried)
        carried += self._across.carried(stages)
        return join(self.phases, stages, self.linkages, carried, shared, self._across.final(stages, begin))


class Cases(Phases):
    """Several motions of one design, each a `Problem`: their costs add, and design parameters of the same name are shared.

    `Cases({"empty": light, "loaded": heavy}).solve(40).design` is the best of all cases together. Nothing else joins them.
    """

    follow = False

    def __init__(self, cases: Mapping[str, Problem]) -> None:
        super().__init__(cases)


def _check(name: str, problem: Problem) -> None:
    if problem.periodic:
        raise UnsupportedError(
            f"Phases: {name!r} is periodic, which a phase cannot be; state a link or a condition `across` phases instead"
        )


def _design_names(problem: Problem) -> list[str]:
    return [row.name for row in problem.design.values()]


def _design_entry(own: Stages, k: int) -> Callable[[ca.SX, ca.SX, ca.SX], ca.SX]:
    return lambda x, s, p: x[own.chosen][k]


def _shared(phases: Mapping[str, Problem]) -> dict[str, tuple[float, float]]:
    """The design parameters of all phases, with their bounds."""
    found: dict[str, tuple[float, float]] = {}
    for name, problem in phases.items():
        for row in problem.design.values():
            pair = (row.lower, row.upper)
            if found.setdefault(row.name, pair) != pair:
                raise ArgumentError(
                    f"Phases: {name!r} has the design parameter {row.name!r} within {row}, another phase within "
                    f"{found[row.name][0]:g} .. {found[row.name][1]:g}; it is shared, so its bounds are the same"
                )
    return found


class _Together:
    """Conditions and a cost across phases: of which numbers they are functions, and these as what is carried."""

    def __init__(
        self,
        phases: Mapping[str, Problem],
        across: Mapping[str, tuple[Across, float, float]],
        cost: Any,
        cycle: Linkage | None = None,
    ) -> None:
        if not isinstance(across, Mapping):
            raise ArgumentError(f"Phases: across is {across!r}, expected (function, lower, upper) by name")
        if cost is not None and not callable(cost):
            raise ArgumentError(f"Phases: cost is {cost!r}, expected a function of the phases' ends")
        self._names, self._problems = list(phases), list(phases.values())
        self.rows = [path_row(name, given, "across", "Phases") for name, given in across.items()]
        self.rows += _returning(cycle, self._names[0], self._names[-1]) if cycle is not None else []
        for row in self.rows:
            if row.lower > row.upper:
                raise ArgumentError(f"Phases: across {row.name!r}: {row.lower:g} is above {row.upper:g}")
        self._symbols: list[dict[str, ca.SX]] = []
        controls = []
        views: dict[str, PhaseEnds] = {}
        for name, problem in phases.items():
            plant = problem.plant
            a, b = (ca.SX.sym(which, plant.chart.point) for which in ("start", "end"))
            T = ca.SX.sym("T") if problem.is_free else ca.SX(problem.shortest)
            found, p = ca.SX.sym("design", len(problem.design)), ca.SX(problem.parameters)
            for k, place in enumerate(problem.design):
                p[place] = found[k]
            u = ca.SX.sym("u", len(plant.controls))
            controls.append(u)
            moments = (problem.moment(ca.SX(0), a, u, p, T), problem.moment(T, b, u, p, T))
            views[name] = PhaseEnds(*moments, T)
            own = {"start": a, "end": b, "design": found}
            self._symbols.append(own | ({"span": T} if problem.is_free else {}))
        seen = _Views(views)
        values = [evaluated(f"across {row.name!r}", partial(row.value, seen), "Phases") for row in self.rows]  # type: ignore[arg-type]
        if cost is not None:
            values.append(evaluated("the cost", lambda: ca.SX(cost(seen)), "Phases"))
        whole = ca.vertcat(ca.SX(0, 1), *values)
        for k, name in enumerate([*(repr(row.name) for row in self.rows), "the cost across phases"]):
            if k < whole.numel() and ca.depends_on(whole[k], ca.vertcat(*controls)):
                raise ArgumentError(
                    f"Phases: {name} depends on controls, which have no value at the ends of a phase"
                )
        self._has_cost = cost is not None
        flat = [
            entry for own in self._symbols for v in own.values() for entry in ca.vertsplit(v) if v.numel()
        ]
        self._function = ca.Function("across", [ca.vertcat(*flat)], [whole])
        touched = set(self._function.jac_sparsity(0, 0).get_triplet()[1])
        places = [
            (k, which, i)
            for k, own in enumerate(self._symbols)
            for which, v in own.items()
            for i in range(v.numel())
        ]
        self._places = places
        self.needed = [place for k, place in enumerate(places) if k in touched]

    def _is_last(self, k: int, which: str) -> bool:
        return k == len(self._problems) - 1 and which != "start"

    def _label(self, k: int, which: str, i: int) -> str:
        names = self._problems[k].plant.tangent_names
        label = names[min(i, len(names) - 1)] if which in ("start", "end") else which
        return f"{self._names[k]}: {label} at the {'start' if which == 'start' else 'end'}"

    def carried(self, stages: Sequence[Stages]) -> list[CarriedNumber]:
        return [
            CarriedNumber(self._label(k, which, i), k, which != "start", _entry(stages[k], which, i))
            for k, which, i in self.needed
            if not self._is_last(k, which)
        ]

    def final(self, stages: Sequence[Stages], begin: int) -> Final:
        """`begin`: where its own numbers begin among what is carried."""
        kept = [place for place in self.needed if not self._is_last(*place[:2])]

        def values(y: ca.SX, x: ca.SX, s: ca.SX, p: ca.SX) -> ca.SX:
            found = []
            for place in self._places:
                if place in kept:
                    found.append(y[begin + kept.index(place)])
                elif place in self.needed:
                    found.append(_entry(stages[-1], *place[1:])(x, s, p))
                else:
                    found.append(ca.SX(0))
            return self._function(ca.vertcat(*found))

        rows = [(row, _pick(values, k)) for k, row in enumerate(self.rows)]
        return Final(rows, _pick(values, len(rows)) if self._has_cost else None)


def _returning(cycle: Linkage, first: str, last: str) -> list[Row]:
    """The conditions of a cycle: the first phase begins where the last one leads."""
    found = []
    for entry, link in zip(cycle.entries, cycle.values, strict=True):
        if link is None:
            continue
        if not entry.adds:
            raise UnsupportedError(
                f"Phases: cyclic: the coordinates of {entry.key!r} do not add; leave it out by a link to None, and state "
                "what is to return as conditions `across` phases"
            )

        def value(s: Any, link: Link = link, at: slice = entry.at) -> ca.SX:
            return link(s[last].end) - same(at)(s[first].start)

        found.append(Row(f"{first}: {entry.key} again", value, 0.0, 0.0))
    return [found[k] for k in _not_repeated(cycle, found, first, last)]


def _not_repeated(cycle: Linkage, rows: Sequence[Row], first: str, last: str) -> list[int]:
    """Of the conditions of a cycle those that do not follow from loops, prescribed joints and what the ends state."""
    given, symbols, moments, places = [], [], [], []
    pairs = ((cycle.after, "start"), (cycle.before, "end"))
    if all(closure_of(problem.plant) is None for problem, _ in pairs):
        return list(range(len(rows)))
    for problem, which in pairs:
        plant, closure, motion = problem.plant, closure_of(problem.plant), straight(problem)
        point = motion.points[0 if which == "start" else -1]
        if closure is not None:
            point = np.concatenate(closed_place(problem, closure, which))
        d, p, T = ca.SX.sym("d", plant.chart.tangent), ca.SX(problem.parameters), ca.SX(motion.duration)
        x = plant.chart.retract(ca.SX(point), d)
        t = ca.SX(0) if which == "start" else T
        s = problem.moment(t, x, ca.SX.zeros(len(plant.controls)), p, T)
        if closure is not None:
            given.append(closure.holding(t, s.q, s.v, p))
        given += [row.value(s) - row.lower for row in getattr(problem, which) if row.is_equation]
        symbols.append(d)
        moments.append(s)
        places.append(np.zeros(d.numel()))
    views = {first: PhaseEnds(moments[0], moments[0], 0), last: PhaseEnds(moments[1], moments[1], 0)}
    if first == last:
        views = {first: PhaseEnds(moments[0], moments[1], 0)}
    values = [row.value(views) for row in rows]  # type: ignore[arg-type]
    return independent(
        ca.vertcat(*symbols), ca.vertcat(*given), ca.vertcat(ca.SX(0, 1), *values), np.concatenate(places)
    )


class _Views(dict[str, PhaseEnds]):
    def __missing__(self, name: str) -> PhaseEnds:
        raise ArgumentError(unknown("Phases: across: there is no phase", name, list(self)))


def _pick(values: Callable[..., ca.SX], k: int) -> Callable[[ca.SX, ca.SX, ca.SX, ca.SX], ca.SX]:
    return lambda y, x, s, p: values(y, x, s, p)[k]


def _entry(own: Stages, which: str, i: int) -> Callable[[ca.SX, ca.SX, ca.SX], ca.SX]:
    """A number of a phase, of a point of its stages."""

    def value(x: ca.SX, s: ca.SX, p: ca.SX) -> ca.SX:
        if which == "design":
            return x[own.chosen][i]
        point, T, p = split(own, x, s, p)
        if which == "span":
            return T
        if isinstance(own.plant, Momenta):
            point = ca.vertcat(point[: own.plant.model.nq], own.plant.speeds(point, p))
        return point[i]

    return value


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
