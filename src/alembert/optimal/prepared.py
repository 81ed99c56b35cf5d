"""A problem that is compiled once, and solved for other numbers: starts, ends, parameters, a duration.

What the equations at both ends state follows the parameters of the plant in p, which every function of the stages takes, so
that nothing is compiled again for other values of them: a sample of a predictive controller is a few Newton steps.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from alembert.errors import ArgumentError, UnsupportedError
from alembert.model.printing import unknown
from alembert.optimal.conditions import Reader
from alembert.optimal.outcome import Iteration, interrupts_kept
from alembert.optimal.plant import Mechanics, Row
from alembert.optimal.problem import Problem
from alembert.optimal.solution import Solution
from alembert.optimal.solve import SolverOptions, Transcribed, check, read_nodes
from alembert.optimal.stages import Ends

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
        check(steps, "sweep", 1e-8, 0, hessian)
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
            own = read_nodes(int(steps), nodes)
            self._transcribed = Transcribed(problem, transcription, int(steps), own, at_run_time=True)
            self._transcribed.evaluation(self._transcribed.is_exact(hessian, "sweep"))

    def __repr__(self) -> str:
        return (
            f"<prepared {self.problem!r}: {self._transcribed.stages.count} steps of {self._transcribed.name}>"
        )

    def solve(
        self,
        *,
        start: Mapping[str, Any] | None = None,
        end: Mapping[str, Any] | None = None,
        parameters: Mapping[str, float] | None = None,
        duration: float | None = None,
        guess: Any = None,
        tolerance: float = 1e-8,
        iterations: int = 500,
        progress: bool | Callable[[Iteration], Any] | None = False,
    ) -> Solution:
        """Solve with other values of what the problem states at its start and end, of parameters, or of its duration.

        What is left out stays as the problem has it; what it leaves free at the ends stays free. `guess`, `tolerance`,
        `iterations` and `progress` as for `problem.solve`: with the solution before as guess, the solve also begins
        with its multipliers. The numbers of other starts and ends are not checked against limits.
        """
        check(1, "sweep", tolerance, iterations, self._hessian)
        with interrupts_kept():
            problem = self._restated(start, end, parameters, duration)
            stages = self._transcribed.stages
            numbers = stages.numbers.copy()
            numbers[:, 2] = problem.shortest
            stages = replace(
                stages,
                problem=problem,
                parameters=np.concatenate([problem.parameters, Ends(problem).values()]),
                numbers=numbers,
            )
            options = SolverOptions("sweep", self._hessian, tolerance, int(iterations), progress)
            return self._transcribed.solve(problem, stages, guess, options, is_judged=False)

    def _restated(
        self,
        start: Mapping[str, Any] | None,
        end: Mapping[str, Any] | None,
        parameters: Mapping[str, float] | None,
        duration: float | None,
    ) -> Problem:
        problem = copy.copy(self.problem)
        changes: dict[str, Any] = {}
        problem.transcribed = {}
        if start is not None:
            problem.start = self._rows("start", problem.start, start)
            changes["start"] = {**(problem.statement.start or {}), **start}
        if end is not None:
            problem.end = self._rows("end", problem.end, end)
            changes["end"] = {**(problem.statement.end or {}), **end}
        if parameters is not None:
            changes["parameters"] = {**(problem.statement.parameters or {}), **parameters}
            problem.parameters = problem.read_parameters(changes["parameters"])
        if duration is not None:
            if problem.is_free:
                raise UnsupportedError("prepared.solve: the duration of this problem is found, not given")
            if not (isinstance(duration, int | float | np.number) and 0 < duration < np.inf):
                raise ArgumentError(f"prepared.solve: duration is {duration!r}, expected seconds")
            problem.shortest = problem.longest = changes["duration"] = float(duration)
        problem.statement = replace(problem.statement, **changes)
        return problem

    def _rows(self, which: str, rows: list[Row], given: Mapping[str, Any]) -> list[Row]:
        """`rows` with the values that are given for them."""
        if not isinstance(given, Mapping):
            raise ArgumentError(f"prepared.solve: {which} is {given!r}, expected a dictionary by names")
        new = {row.name: row for row in Reader(self.problem.plant).conditions(which, given)}
        stated = {row.name for row in rows if row.is_equation}
        for name, row in new.items():
            if name not in stated:
                raise ArgumentError(unknown(f"prepared.solve: the problem states no {which}", name, stated))
            if not row.is_equation:
                raise ArgumentError(
                    f"prepared.solve: {which} {name!r} is {row}, expected one value, as the problem has it"
                )
        return [new.get(row.name, row) for row in rows]
