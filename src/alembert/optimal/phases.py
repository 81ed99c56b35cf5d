"""Problems in phases that follow each other, each with its own dynamics, duration, conditions and costs.

Phases run side by side, each over the same intervals of its own duration: with x^p the states of phase p and T^p its
duration, over a time s from 0 to 1,

    dx^p/ds = T^p f^p(s T^p, x^p, u^p),    dT^p/ds = 0,    dc^p/ds = 0                              (1)
    x^p(0) = c^p,    c^p = link(x^{p-1}(1))                                                         (2)

where c^p are the states that a phase takes over from the one before. So phases are one `Problem`, which every transcription
and solver takes as it is; the sweep in time is over the states of all phases together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError, UnsupportedError
from alembert.model.printing import unknown
from alembert.optimal import guess as guesses
from alembert.optimal.costs import running, terminal
from alembert.optimal.plant import FREE, Chart, Mechanics, Moment, Row, System
from alembert.optimal.problem import Problem

if TYPE_CHECKING:
    from alembert.optimal.solution import Solution

Array = np.ndarray
Link = Callable[[Moment], Any] | None
GRID = 41
"""points of a guess"""


class Phases:
    """`phases` by name, in their order, each a `Problem` of a `System` or of a model whose coordinates add.

    Of a phase after the first, states that the one before has too go on from there. `links` changes that, by the name of the
    phase that begins and of its state: `{"second": {"m": lambda s: s.m - 8000}}` jumps, where s is the moment at the end of
    the phase before, and `{"second": {"m": None}}` leaves it free, or to the phase's own `start`. For a model states are
    "q elbow" and "v elbow". Conditions at the ends of a phase, limits, path, costs and a free duration are those of its
    problem; its time begins at 0. Costs add. A design parameter that several phases have has one value for all of them.
    """

    follow = True
    """whether a phase begins where the one before ends"""

    def __init__(
        self, phases: Mapping[str, Problem], *, links: Mapping[str, Mapping[str, Link]] | None = None
    ) -> None:
        if not isinstance(phases, Mapping) or not phases:
            raise ArgumentError(f"Phases: phases is {phases!r}, expected problems by name")
        for name, problem in phases.items():
            if not isinstance(problem, Problem):
                raise ArgumentError(
                    f"Phases: {name!r} is a {type(problem).__name__}, expected a Problem for each phase"
                )
        for name in links or {}:
            if name not in list(phases)[1:]:
                raise ArgumentError(
                    unknown("Phases: links: no phase that follows another", name, list(phases)[1:])
                )
        self.phases = dict(phases)
        self.design = _shared(self.phases)
        self.plant = SideBySide(self.phases, links or {}, self.design, follow=self.follow)
        self.problem = self._problem()

    def __repr__(self) -> str:
        return f"<Phases: {', '.join(self.phases)}>"

    def solve(self, steps: int = 50, *, guess: Any = None, **options: Any) -> PhasesSolution:
        """Solve with `steps` intervals in every phase; `guess` is by phase. Options are those of `Problem.solve`."""
        given = guess.solution if isinstance(guess, PhasesSolution) else self._guess(guess)
        return PhasesSolution(self, self.problem.solve(steps, guess=given, **options))

    # --- one problem ------------------------------------------------------------------------------------------------

    def _problem(self) -> Problem:
        plant = self.plant
        start: dict[str, Any] = {}
        end: dict[str, Any] = {}
        limits: dict[str, Any] = {"rate": {}}
        path: dict[str, Any] = {}
        for k, (name, problem) in enumerate(self.phases.items()):
            for rows, into in ((problem.start, start), (problem.end, end)):
                into |= {f"{name}: {row.name}": self._condition(k, row) for row in rows}
            for row in (*problem.limits["state"], *problem.limits["control"]):
                limits[f"{name}: {row.component}"] = (row.lower, row.upper)
            for control, pair in zip(problem.plant.controls, problem.rates, strict=True):
                if pair != FREE and problem.is_free:
                    raise UnsupportedError(
                        f"Phases: {name!r} limits the rate of {control!r} and has a free duration; make the rate a control "
                        "of its own, and the control a state"
                    )
                if pair != FREE:
                    limits["rate"][f"{name}: {control}"] = tuple(problem.shortest * b for b in pair)
            if problem.is_free:
                limits[f"{name}: duration"] = (problem.shortest, problem.longest)
            for row in problem.path:
                value = plant.seen(k, row.value)
                path[f"{name}: {row.name}"] = (value, row.lower, row.upper)
        for begins, ends in plant.links():
            start |= begins
            end |= ends
        cost = running(lambda s: sum(p.cost.rate(m) * m.duration for p, m in self._moments(s))) + terminal(
            lambda s: sum(p.cost.final(m) for p, m in self._moments(s))
        )
        integrals = {
            f"{name}: {row.name}": (plant.seen(k, _over_time(row.value)), row.lower, row.upper)
            for k, (name, problem) in enumerate(self.phases.items())
            for row in problem.integrals
        }
        whole: dict[str, Any] = {
            "start": start,
            "end": end,
            "limits": limits,
            "path": path,
            "integrals": integrals,
        }
        return Problem(plant, 1.0, **whole, cost=cost, design=self.design)

    def _moments(self, s: Moment) -> list[tuple[Problem, Moment]]:
        return [(problem, self.plant.of(s, k)) for k, problem in enumerate(self.phases.values())]

    def _condition(self, k: int, row: Row) -> Any:
        bounds = row.lower if row.is_equation else (row.lower, row.upper)
        return bounds if row.component else (self.plant.seen(k, row.value), bounds)

    def _guess(self, given: Any) -> dict[str, Array]:
        if given is not None and not isinstance(given, Mapping):
            raise ArgumentError(f"Phases.solve: guess is {given!r}, expected guesses by phase")
        for name in given or {}:
            if name not in self.phases:
                raise ArgumentError(unknown("Phases.solve: the guess has no phase", name, self.phases))
        where = np.linspace(0.0, 1.0, GRID)
        points, controls, spans = [], [], []
        before: dict[str, float] = {}
        for name, problem in self.phases.items():
            own = (given or {}).get(name)
            made = guesses.make(problem, own)
            x = made.at(problem, where)
            names = problem.plant.tangent_names
            if own is None:  # what is not stated goes on from the phase before
                stated = {row.component for row in (*problem.start, *problem.end)}
                for j, state in enumerate(names):
                    if state in before and state not in stated:
                        x[:, j] = before[state]
            points.append(x)
            controls.append(made.controls_at(where))
            spans.append(made.duration)
            before = dict(zip(names, x[-1].tolist(), strict=True))
        return {
            "time": where,
            "x": self.plant.stack(points, spans),
            "controls": np.concatenate(controls, axis=1),
        }


class SideBySide(System):
    """(1): all phases as one system; states are "phase: state", free durations "phase: duration", and the c of (2)."""

    def __init__(
        self,
        phases: Mapping[str, Problem],
        links: Mapping[str, Mapping[str, Link]],
        shared: Mapping[str, tuple[float, float]],
        *,
        follow: bool = True,
    ) -> None:
        """`shared` are parameters that all phases have in common; `follow`: whether they go on from each other."""
        self.name, self._phases, self.units = "phases", list(phases.items()), {}
        self._linked: list[tuple[int, int, Link, str]] = []
        """phase, state, the link and its name"""
        states: list[str] = []
        controls: list[str] = []
        parameters: list[tuple[str, float]] = []
        self._x, self._u = [0], [0]
        self._p: list[list[int]] = []
        """of each phase, where its parameters are"""
        before: Sequence[str] = ()
        for k, (name, problem) in enumerate(self._phases):
            self._check(name, problem)
            plant = problem.plant
            names = plant.tangent_names
            own = dict(links.get(name, {}))
            for state in own:
                if state not in names:
                    raise ArgumentError(unknown(f"Phases: links of {name!r}: no state", state, names))
                if own[state] is not None and not callable(own[state]):
                    raise ArgumentError(
                        f"Phases: links of {name!r}: {state!r} is {own[state]!r}, expected a function of the moment at the "
                        "end of the phase before, or None"
                    )
            for j, state in enumerate(names):
                link = own.get(state, _same(before.index(state)) if state in before else None)
                if k and link is not None:
                    self._linked.append((k, j, link, f"{name}: {state}"))
            states += [f"{name}: {state}" for state in names]
            controls += [f"{name}: {control}" for control in plant.controls]
            known = {
                k: (v, k if k in shared else f"{name}: {k}")
                for k, v in (problem.parameter_values or {}).items()
            }
            for key, values in problem.input_values.items():
                known |= {f"{key} {i}": (float(v), f"{name}: {key} {i}") for i, v in enumerate(values)}
            there = [label for label, _ in parameters]
            parameters += [(label, value) for value, label in known.values() if label not in there]
            there = [label for label, _ in parameters]
            self._p.append([there.index(label) for _, label in known.values()])
            self._x.append(len(states))
            self._u.append(len(controls))
            before = names if follow else ()
        self._free = [k for k, (_, problem) in enumerate(self._phases) if problem.is_free]
        states += [f"{self._phases[k][0]}: duration" for k in self._free]
        states += [f"link to {name}" for *_, name in self._linked]
        self.states, self.controls, self.parameters = tuple(states), tuple(controls), tuple(parameters)
        self.chart = Chart(None, len(states))
        self.still = len(self._free) + len(self._linked)

    @staticmethod
    def _check(name: str, problem: Problem) -> None:
        plant = problem.plant
        if problem.periodic:
            raise UnsupportedError(
                f"Phases: {name!r} is periodic, which a phase cannot be; state a link instead"
            )
        if isinstance(plant, Mechanics) and (
            plant.closure is not None or plant.chart.point != plant.chart.tangent
        ):
            raise UnsupportedError(
                f"Phases: the model of {name!r} has loops, prescribed joints, or joints whose coordinates do not add (free, "
                "spherical); phases take models without them, or a System"
            )

    def __repr__(self) -> str:
        return f"<phases {', '.join(name for name, _ in self._phases)}>"

    def of(self, s: Moment, k: int) -> Moment:
        """The moment of phase k within that of all."""
        x, u, T = (
            self._part(s.states, self._x, k),
            self._part(s.controls, self._u, k),
            self._span(s.states, k),
        )
        p, problem = self._parameters(s.parameters, k), self._phases[k][1]
        return problem.moment(s.t * T, x, u, p, T)

    def seen(self, k: int, value: Callable[[Moment], Any]) -> Callable[[Moment], Any]:
        """A function of the moment of phase k, of that of all."""
        return lambda s: value(self.of(s, k))

    def rate(self, t: ca.SX, x: ca.SX, u: ca.SX, p: ca.SX) -> ca.SX:
        rates = []
        for k, (_, problem) in enumerate(self._phases):
            T = self._span(x, k)
            own = (self._part(x, self._x, k), self._part(u, self._u, k), self._parameters(p, k))
            rates.append(T * problem.plant.rate(t * T, *own))
        return ca.vertcat(*rates, ca.SX.zeros(self.still))

    @staticmethod
    def _part(whole: ca.SX, at: Sequence[int], k: int) -> ca.SX:
        return whole[at[k] : at[k + 1]]

    def _parameters(self, p: ca.SX, k: int) -> ca.SX:
        return ca.vertcat(ca.SX(0, 1), *(p[i] for i in self._p[k]))

    def _span(self, x: ca.SX, k: int) -> Any:
        problem = self._phases[k][1]
        return x[self._x[-1] + self._free.index(k)] if problem.is_free else ca.SX(problem.shortest)

    def links(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """(2), as conditions at the start and at the end."""
        found = []
        held = self._x[-1] + len(self._free)
        for i, (k, j, link, name) in enumerate(self._linked):
            at, place = self._x[k] + j, held + i
            begins = (lambda s, at=at, place=place: s.states[at] - s.states[place], 0.0)
            ends = (
                lambda s, k=k, link=link, place=place: link(self.of(s, k - 1)) - s.states[place],
                0.0,
            )
            found.append(({f"{name} after the link": begins}, {f"{name} before the link": ends}))
        return found

    def stack(self, points: Sequence[Array], spans: Sequence[float]) -> Array:
        """States of all phases at the same shares of their durations, with durations and c."""
        count = len(points[0])
        durations = [np.full((count, 1), spans[k]) for k in self._free]
        held = [np.full((count, 1), points[k][0, j]) for k, j, *_ in self._linked]
        return np.concatenate([*points, *durations, *held], axis=1)

    def split(self, x: Array, u: Array, k: int) -> tuple[Array, Array, float]:
        """States and controls of phase k, and its duration."""
        problem = self._phases[k][1]
        T = float(x[0, self._x[-1] + self._free.index(k)]) if problem.is_free else problem.shortest
        return x[:, self._x[k] : self._x[k + 1]], u[:, self._u[k] : self._u[k + 1]], T


class Cases(Phases):
    """Several motions of one design, each a `Problem`: their costs add, and design parameters of the same name are shared.

    `Cases({"empty": light, "loaded": heavy}).solve(40).design` is the best of all cases together. Nothing else joins them.
    """

    follow = False

    def __init__(self, cases: Mapping[str, Problem]) -> None:
        super().__init__(cases)

    def __repr__(self) -> str:
        return f"<Cases: {', '.join(self.phases)}>"


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


def _over_time(value: Callable[[Moment], Any]) -> Callable[[Moment], Any]:
    """The rate of an integral, over the share of a phase's duration."""
    return lambda s: value(s) * s.duration


def _same(j: int) -> Callable[[Moment], Any]:
    def link(s: Moment) -> Any:
        return s.states[j] if "states" in s.__dict__ else ca.vertcat(s.q, s.v)[j]

    return link


class PhaseMotion:
    """One phase: `time` (N + 1,) from the start of the first one, states `x` (N + 1, ...), `controls` (N, ...)."""

    def __init__(self, problem: Problem, time: Array, x: Array, controls: Array) -> None:
        self.problem, self.time, self.x, self.controls = problem, time, x, controls

    @property
    def duration(self) -> float:
        """[s]"""
        return float(self.time[-1] - self.time[0])

    @property
    def q(self) -> Array:
        """(N + 1, nq), of a model"""
        return self.x[:, : self._nq]

    @property
    def v(self) -> Array:
        """(N + 1, nv), of a model"""
        return self.x[:, self._nq :]

    @property
    def _nq(self) -> int:
        if self.problem.model is None:
            raise UnsupportedError("this phase is of a System, which has no q and v; its states are in x")
        return self.problem.model.nq

    def state(self, name: str) -> Array:
        """A state at the nodes; of a model "q elbow" or "v elbow"."""
        return self._column("state", self.problem.plant.tangent_names, self.x, name)

    def control(self, name: str) -> Array:
        """A control over the intervals."""
        return self._column("control", self.problem.plant.controls, self.controls, name)

    @staticmethod
    def _column(what: str, names: Sequence[str], values: Array, name: str) -> Array:
        if name not in names:
            raise ArgumentError(unknown(f"this phase has no {what}", name, names))
        return values[:, names.index(name)]

    def __repr__(self) -> str:
        return f"<phase from {self.time[0]:.6g} to {self.time[-1]:.6g} s>"


class PhasesSolution:
    """`solution["coast"]` is the motion of a phase; `solution.solution` that of all as one problem."""

    def __init__(self, phases: Phases, solution: Solution) -> None:
        self.phases, self.solution = phases, solution
        self._motions: dict[str, PhaseMotion] = {}
        begin = 0.0
        for k, (name, problem) in enumerate(phases.phases.items()):
            x, u, T = phases.plant.split(solution.x, solution.controls, k)
            self._motions[name] = PhaseMotion(problem, begin + T * solution.time, x, u)
            begin += T
        self.duration = begin

    def __getitem__(self, name: str) -> PhaseMotion:
        if name not in self._motions:
            raise ArgumentError(unknown("there is no phase", name, self._motions))
        return self._motions[name]

    @property
    def success(self) -> bool:
        return self.solution.success

    @property
    def status(self) -> str:
        return self.solution.status

    @property
    def message(self) -> str:
        return self.solution.message

    @property
    def cost(self) -> float:
        return self.solution.cost

    @property
    def design(self) -> dict[str, float]:
        """The design parameters that were found, by name."""
        return self.solution.design

    @property
    def iterations(self) -> int:
        return self.solution.iterations

    def diagnosis(self) -> str:
        """As `Solution.diagnosis`; names begin with that of the phase."""
        return self.solution.diagnosis()

    def __repr__(self) -> str:
        spans = ", ".join(f"{name} {motion.duration:.6g} s" for name, motion in self._motions.items())
        return f"<PhasesSolution: {self.status}, cost {self.cost:.8g}; {spans}>"
