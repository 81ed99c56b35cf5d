"""A problem that is compiled once, and solved for other numbers: starts, ends, parameters, inputs, bounds, a duration.

What the equations at both ends state follows the parameters of the plant in p, which every function of the stages takes, so
that nothing is compiled again for other values of them: a sample of a predictive controller is a few Newton steps.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from alembert.arguments import whole
from alembert.errors import ArgumentError, UnsupportedError, interrupts_kept
from alembert.model.printing import unknown
from alembert.optimal.compiled_solver import MOST_ITERATIONS, CompiledSolver
from alembert.optimal.conditions import Reader, path_row
from alembert.optimal.outcome import Iteration
from alembert.optimal.plant import FREE, Mechanics, Row
from alembert.optimal.problem import Problem
from alembert.optimal.solution import Solution
from alembert.optimal.solve import SolverOptions, Transcribed, read_nodes
from alembert.optimal.solver_source import SolverSource
from alembert.optimal.stages import Ends, Stages

Array = np.ndarray


class PreparedProblem:
    """`problem` on `steps` intervals, compiled; see `Problem.prepare`. It is solved by the sweep."""

    def __init__(
        self,
        problem: Problem,
        steps: int = 100,
        *,
        transcription: str | None = None,
        nodes: Any = None,
        hessian: str = "auto",
    ) -> None:
        steps = whole("solve", "steps", steps, "a positive number of intervals")
        SolverOptions(hessian=hessian)
        if transcription == "splines":
            raise UnsupportedError(
                "prepare: transcription 'splines' has a solver of its own; use problem.solve()"
            )
        if isinstance(problem.plant, Mechanics) and problem.plant.closure is not None:
            raise UnsupportedError(
                "prepare: with loops or prescribed joints the conditions that count depend on the values at the ends; use "
                "problem.replace(start=...).solve()"
            )
        self.problem, self._hessian = problem, hessian
        with interrupts_kept():
            own = read_nodes(steps, nodes)
            self.transcribed = Transcribed(problem, transcription, steps, own, at_run_time=True)
            self.transcribed.evaluation(self.transcribed.is_exact(hessian, "sweep"))

    def __repr__(self) -> str:
        return (
            f"<prepared {self.problem!r}: {self.transcribed.stages.count} steps of {self.transcribed.name}>"
        )

    def solve(
        self,
        *,
        start: Mapping[str, Any] | None = None,
        end: Mapping[str, Any] | None = None,
        parameters: Mapping[str, float] | None = None,
        duration: float | None = None,
        inputs: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
        guess: Any = None,
        shift: float = 0.0,
        tolerance: float = 1e-8,
        iterations: int = 500,
        time_limit: float | None = None,
        progress: bool | Callable[[Iteration], Any] | None = False,
    ) -> Solution:
        """Solve with other values of what the problem states at its start and end, of parameters, or of its duration.

        What is left out stays as the problem has it; what it leaves free at the ends stays free. `guess`, `tolerance`,
        `iterations` and `progress` as for `problem.solve`: with the solution before as guess, the solve also begins
        with its multipliers, also where that was stopped by `iterations` or `time_limit` [s]: a few Newton steps in each
        sample are a real-time iteration. `shift` is how many seconds after the guess this solve begins; whole intervals
        of the guess are left out, or just that where the duration is free. Ranges and functions at the ends are given by
        name: `end={"x": (0.9, 1.1), "tip height": 2.0}`. `inputs` are those of the problem by name, `limits` other bounds of
        states and controls that have some, and by name those of `path`. The numbers of other starts and ends are not checked
        against limits.
        """
        options = SolverOptions("sweep", self._hessian, tolerance, iterations, progress, time_limit)
        if not (isinstance(shift, int | float | np.number) and 0 <= shift < np.inf):
            raise ArgumentError(f"prepared.solve: shift is {shift!r}, expected seconds, 0 or more")
        with interrupts_kept():
            problem = self.restated(start, end, parameters, duration, inputs, limits)
            stages = self.bounded(problem)
            numbers = stages.numbers.copy()
            numbers[:, 2] = problem.shortest
            stages = replace(
                stages,
                problem=problem,
                parameters=np.concatenate([problem.parameters, Ends(problem).values()]),
                numbers=numbers,
            )
            return self.transcribed.solve(
                problem, stages, guess, options, is_judged=False, shift=float(shift)
            )

    def solve_each(
        self, cases: Iterable[Mapping[str, Any]], *, guess: Any = None, follow: bool = True, **options: Any
    ) -> list[Solution]:
        """One solution for each of `cases`: what `solve` takes, by name, for instance `{"parameters": {"mass": 2.0}}`.

        With `follow` each begins from the last case that was solved, so that cases are best ordered by their values; where
        that leads nowhere, and without it, each begins from `guess`, and then the order does not matter. `options` are
        those of `solve` for all cases, such as `tolerance`.
        """
        known = ("start", "end", "parameters", "duration", "inputs", "limits")
        found: list[Solution] = []
        last: Solution | None = None
        for k, case in enumerate(cases):
            if not isinstance(case, Mapping):
                raise ArgumentError(
                    f"prepared.solve_each: case {k} is {case!r}, expected what changes by name: "
                    "{'parameters': {...}}"
                )
            for name in case:
                if name not in known:
                    raise ArgumentError(unknown(f"prepared.solve_each: case {k} has no", str(name), known))
            solution = None
            if follow and last is not None:
                solution = self.solve(**{**options, **case}, guess=last)
            if solution is None or not solution.converged:
                solution = self.solve(**{**options, **case}, guess=guess)
            last = solution if solution.converged else last
            found.append(solution)
        return found

    def compile(
        self, *, iterations: int = 10, tolerance: float = 1e-6, guess: Solution | None = None
    ) -> CompiledSolver:
        """The solver as one compiled function of at most so many `iterations`, without Python inside.

        `guess` is a solution of this prepared problem (by default `solve()`): the solver begins from it, and has its units.
        It is what `solve` does from a solution nearby, without second-order corrections and restoration: for samples of a
        controller and for families of problems, not for a first solution. Equations along the path are not for it.
        """
        SolverOptions(tolerance=tolerance, iterations=iterations)
        if not 1 <= iterations <= MOST_ITERATIONS:
            raise ArgumentError(
                f"prepared.compile: iterations is {iterations}, expected 1 to {MOST_ITERATIONS}"
            )
        if guess is not None and not isinstance(guess, Solution):
            raise ArgumentError(
                f"prepared.compile: guess is a {type(guess).__name__}, expected a solution of this prepared problem"
            )
        exact = self.transcribed.is_exact(self._hessian, "sweep")
        with interrupts_kept():
            known = self.solve() if guess is None else guess
            return CompiledSolver(self, known, int(iterations), float(tolerance), exact)

    def export_c(
        self,
        directory: str | os.PathLike[str],
        *,
        name: str = "solver",
        iterations: int = 10,
        tolerance: float = 1e-6,
        guess: Solution | None = None,
    ) -> SolverSource:
        """Write `compile(...)` as C99, for a board: NAME.h, NAME.c, and NAME_test.c with samples that Python has solved.

        `NAME_solve(p, duration, limits, memory, found, room)` makes at most so many iterations; start, end, parameters and
        inputs are in p (NAME_START says where), what it has found is in `memory`. Nothing is allocated: the caller gives
        `memory` and `room`. `cc -O2 -std=c99 solver.c solver_test.c -lm` compares it with Python.
        """
        return self.compile(iterations=iterations, tolerance=tolerance, guess=guess).export_c(
            directory, name=name
        )

    def bounded(self, problem: Problem) -> Stages:
        """The stages, with the bounds that a restated `problem` has."""
        stages, own = self.transcribed.stages, self.problem
        if problem.limits is own.limits and _ranges(problem) == _ranges(own):
            return stages
        rows = [*problem.limits["state"], *problem.limits["control"], *problem.path]
        new = {row.name: (row.lower, row.upper) for row in rows}
        new |= {f"start {row.name}": (row.lower, row.upper) for row in problem.start}
        lower, upper = stages.lower.copy(), stages.upper.copy()
        end_lower, end_upper = stages.end_lower.copy(), stages.end_upper.copy()
        for k, label in enumerate(stages.path_names):
            pair = new.get(label) or new.get(_row_of(label))
            if pair is not None:
                there = np.isfinite(lower[:, k]) | np.isfinite(upper[:, k])
                lower[there, k], upper[there, k] = pair
        ranges = [row for row in problem.end if row.is_bound]
        for k, label in enumerate(stages.end_bounded):  # the ranges of the end come first
            if k < len(ranges):
                end_lower[k], end_upper[k] = ranges[k].lower, ranges[k].upper
            elif label in new:
                end_lower[k], end_upper[k] = new[label]
        return replace(stages, lower=lower, upper=upper, end_lower=end_lower, end_upper=end_upper)

    def _with_limits(self, problem: Problem, limits: Mapping[str, Any]) -> None:
        """Other bounds for rows that have some."""
        if not isinstance(limits, Mapping):
            raise ArgumentError(f"prepared.solve: limits is {limits!r}, expected a dictionary by names")
        path = {row.name: row for row in problem.path}
        found, rates = Reader(problem.plant).all_limits({k: v for k, v in limits.items() if k not in path})
        if any(pair != FREE for pair in rates):
            raise UnsupportedError("prepared.solve: limits: those of rates are part of what is compiled")
        new = {row.name: row for rows in found.values() for row in rows}
        new |= {
            name: path_row(name, (row.value, *_both(name, limits[name])))
            for name, row in path.items()
            if name in limits
        }
        known = {row.name for rows in problem.limits.values() for row in rows} | set(path)
        for name, row in new.items():
            if name not in known:
                raise ArgumentError(unknown("prepared.solve: the problem has no limits of", name, known))
            if row.lower > row.upper:
                raise ArgumentError(
                    f"prepared.solve: limits of {name!r}: {row.lower:g} is above {row.upper:g}"
                )
        problem.limits = {
            kind: [new.get(row.name, row) for row in rows] for kind, rows in problem.limits.items()
        }
        problem.path = [new.get(row.name, row) for row in problem.path]

    def restated(
        self,
        start: Mapping[str, Any] | None,
        end: Mapping[str, Any] | None,
        parameters: Mapping[str, float] | None,
        duration: float | None,
        inputs: Mapping[str, Any] | None,
        limits: Mapping[str, Any] | None = None,
    ) -> Problem:
        problem = copy.copy(self.problem)
        changes: dict[str, Any] = {}
        problem.transcribed = {}
        if start is not None:
            problem.start = self._rows("start", problem.start, start)
            changes["start"] = self._stated("start", problem.statement.start or {}, start)
        if end is not None:
            problem.end = self._rows("end", problem.end, end)
            changes["end"] = self._stated("end", problem.statement.end or {}, end)
        if inputs is not None:
            problem.input_values = problem.other_inputs("prepared.solve", inputs)
            changes["inputs"] = problem.input_values
            problem.parameters = problem.read_parameters(problem.statement.parameters)
        if parameters is not None:
            if not isinstance(parameters, Mapping):
                raise ArgumentError(
                    f"prepared.solve: parameters is {parameters!r}, expected a dictionary by names"
                )
            changes["parameters"] = {**(problem.statement.parameters or {}), **parameters}
            problem.parameters = problem.read_parameters(changes["parameters"])
        if duration is not None:
            if problem.is_free:
                raise UnsupportedError("prepared.solve: the duration of this problem is found, not given")
            if not (isinstance(duration, int | float | np.number) and 0 < duration < np.inf):
                raise ArgumentError(f"prepared.solve: duration is {duration!r}, expected seconds")
            problem.shortest = problem.longest = changes["duration"] = float(duration)
        if limits is not None:
            self._with_limits(problem, limits)
        problem.statement = replace(problem.statement, **changes)
        return problem

    def _rows(self, which: str, rows: list[Row], given: Mapping[str, Any]) -> list[Row]:
        """`rows` with the values that are given for them."""
        if not isinstance(given, Mapping):
            raise ArgumentError(f"prepared.solve: {which} is {given!r}, expected a dictionary by names")
        known = {row.name: row for row in rows}
        stated = {
            name: (known[name].value, _value(x)) if name in known and not known[name].component else x
            for name, x in given.items()
        }
        new = {row.name: row for row in Reader(self.problem.plant).conditions(which, stated)}
        for name, row in new.items():
            if name not in known:
                raise ArgumentError(unknown(f"prepared.solve: the problem states no {which}", name, known))
            if row.is_equation != known[name].is_equation:
                expected = "one value" if known[name].is_equation else "a range (lower, upper)"
                raise ArgumentError(
                    f"prepared.solve: {which} {name!r} is {row}, expected {expected}, as the problem has it"
                )
            if row.lower > row.upper:
                raise ArgumentError(f"prepared.solve: {which} {name!r}: {row.lower:g} is above {row.upper:g}")
        return [new.get(row.name, row) for row in rows]

    def _stated(self, which: str, known: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """As a user would state all of it."""
        found, reader = {**known, **given}, Reader(self.problem.plant)
        for name in known.keys() & given.keys():
            before, new = known[name], given[name]
            if isinstance(before, tuple) and callable(before[0]):
                found[name] = (before[0], _value(new))
            elif isinstance(new, Mapping):
                found[name] = {**reader.by_joint(f"{which} {name}", before, f"n{name}"), **new}
        return found


def _ranges(problem: Problem) -> list[Row]:
    return [row for row in (*problem.start, *problem.end) if row.is_bound]


def _value(given: Any) -> Any:
    """Of a condition of one's own, which may be stated with its function again."""
    return given[1] if isinstance(given, tuple) and len(given) == 2 and callable(given[0]) else given


def _row_of(label: str) -> str:
    """The name of the bound that a row of a stage belongs to."""
    for end in (" at the start", " along the step"):
        label = label.removesuffix(end)
    head, _, number = label.rpartition(" (")
    return head if head and number.rstrip(")").isdigit() else label


def _both(name: str, given: Any) -> tuple[Any, Any]:
    if not (isinstance(given, tuple | list) and len(given) == 2):
        raise ArgumentError(f"prepared.solve: limits {name!r} is {given!r}, expected a pair (lower, upper)")
    return given[0], given[1]
