"""The solver of a prepared problem as one compiled function: `prepared.compile`.

What `prepared.solve` does with a hundred calls of small functions from Python, this does in one: a sample of a predictive
controller takes about as long as its arithmetic. It begins from the solution before, whose states, controls and multipliers
are its memory. Several problems at once are lanes of vectors, shared by threads.
"""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.arguments import common, numbers, whole
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import ArgumentError
from alembert.model.printing import unknown
from alembert.optimal import tuning
from alembert.optimal.newton import Newton
from alembert.optimal.outcome import Iterate, Outcome, same_nodes, warm
from alembert.optimal.scaling import Units
from alembert.optimal.solution import Solution
from alembert.optimal.solver_routine import FOUND, SolverRoutine, parts_of
from alembert.optimal.solver_source import SolverSource, write_solver
from alembert.optimal.stages import Ends, Stages

if TYPE_CHECKING:
    from alembert.optimal.prepared import PreparedProblem
    from alembert.optimal.problem import Problem

Array = np.ndarray
_NOTHING = np.zeros(len(FOUND))
MOST_ITERATIONS = 200
"""more than any sample has time for; what needs them has `prepared.solve`, which also restores feasibility"""


@dataclass(frozen=True, eq=False)
class CompiledResult:
    """What a compiled solver found; of a batch, everything has its dimensions first."""

    controls: Array
    """(..., N, m): of each interval, the first of them where a transcription has several"""
    cost: Array
    infeasibility: Array
    """the largest residual, in units of the problem"""
    error: Array
    """what `tolerance` bounds: of all conditions for a minimum"""
    iterations: Array
    converged: Array
    memory: Array
    """states, controls and multipliers, from which a solve goes on"""
    is_constant: bool
    """whether controls are constant in each interval"""
    _make: Callable[[CompiledResult, tuple[int, ...]], Solution]

    def __repr__(self) -> str:
        count, good = np.size(self.converged), int(np.sum(self.converged))
        if not np.ndim(self.converged):
            return (
                f"<CompiledResult: {'converged' if good else 'not converged'}, cost {float(self.cost):.6g}>"
            )
        return f"<CompiledResult of {count} problems: {good} converged>"

    def solution(self, *which: int) -> Solution:
        """With everything that solutions of `prepared.solve` have; of a batch, that of the problem `which`."""
        batch = np.shape(self.converged)
        if len(which) != len(batch) or not all(-n <= k < n for k, n in zip(which, batch, strict=True)):
            raise ArgumentError(f"CompiledResult.solution: which is {which}, expected one of a batch {batch}")
        return self._make(self, which)


class CompiledSolver:
    """See `PreparedProblem.compile`."""

    def __init__(
        self, prepared: PreparedProblem, guess: Solution, iterations: int, tolerance: float, exact: bool
    ) -> None:
        self.prepared, self.guess, self.iterations, self.tolerance = prepared, guess, iterations, tolerance
        transcribed = prepared.transcribed
        self._stages = stages = transcribed.stages
        self._evaluation = transcribed.evaluation(exact)
        it, units = self._known(guess)
        self._routine = SolverRoutine(self._evaluation, iterations, tolerance)
        self._parts = parts_of(self._routine.memory_sizes)
        self._units = units
        self._newton = Newton(stages, self._evaluation, it.x, it.u, it.z, tuning.BARRIER, units=units)
        self._memory = self._memory_of(guess)
        there = np.isfinite(stages.lower) | np.isfinite(stages.upper)
        tables = {
            **{
                "fractions": stages.numbers[:, :2],
                "there": there.astype(float),
                "units": units.parts[0].stage,
            },
            **{"scale": np.array([units.cost]), "end_units": units.ends},
        }
        self._tables = np.concatenate([np.ravel(tables[name]) for name in self._routine.table_sizes])
        self._kept: Callable[..., None] | None = None

    def __repr__(self) -> str:
        return f"<compiled {self.prepared!r}: at most {self.iterations} iterations>"

    @cached_property
    def kernel(self) -> Kernel:
        """The compiled function, of p, duration, limits, tables and the memory before, to the memory and what was found."""
        plan = self._routine.parts.plan("solve")
        content = hashlib.sha256()
        for name, f in self._routine.parts.functions.items():
            content.update(f"{name} {f.serialize()}".encode())
        content.update(repr(self._routine.parts.routines["solve"].steps).encode())
        return Kernel(
            "optimal control (compiled solver)",
            [Argument(label, (size,)) for label, size in plan.arguments.items()],
            [Argument(label, (size,)) for label, size in plan.results.items()],
            key=f"optimal control solver {content.hexdigest()}",
            build=lambda: plan,
        )

    def solve(
        self,
        *,
        start: Any = None,
        end: Mapping[str, Any] | None = None,
        parameters: Mapping[str, float] | None = None,
        duration: Any = None,
        inputs: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
        before: CompiledResult | Solution | None = None,
        shift: int = 0,
        threads: int | None = None,
    ) -> CompiledResult:
        """Solve with other numbers, as `prepared.solve`; from the result or solution `before`, or the guess of `compile`.

        `shift`: how many intervals after it this solve begins. Values of `start` and `end` (where the problem states the
        whole state), `parameters`, `inputs` and `duration` may have leading dimensions of a batch, as may `before`:
        `start={"q": q, "v": v}` with q of shape (1000, nq) solves a thousand problems, by vectors and `threads`; each gives
        the same bits as alone.
        """
        given = self._numbers(start, end, parameters, inputs)
        restated = self._restated(start, end, limits)
        T = numbers(
            "compiled.solve", "duration", self._stages.problem.shortest if duration is None else duration
        )
        self._check(duration, T, shift)
        bounds = self._limits(restated)
        memory = self._memory
        if isinstance(before, Solution):
            memory = self._memory_of(before)
        elif before is not None:
            if not isinstance(before, CompiledResult) or before.memory.shape[-1] != len(memory):
                raise ArgumentError(
                    f"compiled.solve: before is {before!r}, expected a result of this solver, or a solution of this problem"
                )
            memory = before.memory
        if shift:
            memory = self._shifted(memory, shift)
        if given.ndim == 1 and T.ndim == 0 and memory.ndim == 1 and threads is None:
            if self._kept is None:
                self._kept = self.kernel.fast()
            left = np.empty(len(memory))
            found = np.empty(len(FOUND))
            self._kept(*self._arguments(given, T[None], bounds, memory), left, found)
        else:
            left, found = self.kernel(*self._arguments(given, T[..., None], bounds, memory), threads=threads)
        u = left[..., self._parts["u"]]
        m = len(self._stages.problem.plant.controls)
        controls = u.reshape(*u.shape[:-1], self._stages.count, -1)[..., :m]

        def make(result: CompiledResult, which: tuple[int, ...]) -> Solution:
            batch = found.shape[:-1]
            given_, T_, left_, found_ = (
                np.broadcast_to(a, (*batch, a.shape[-1]))[which] for a in (given, T[..., None], left, found)
            )
            return self._solution(restated, given_, T_, left_, found_, bounds)

        constant = self._stages.scheme.points == 1 and not self._stages.scheme.node_controls
        value: dict[str, Any] = {name: found[..., k] for k, name in enumerate(FOUND)}
        return CompiledResult(
            *(controls, value["cost"], value["infeasibility"], value["error"]),
            *(value["iterations"].astype(int), value["converged"] > 0, left),
            is_constant=constant,
            _make=make,
        )

    def export_c(self, directory: str | os.PathLike[str], *, name: str = "solver") -> SolverSource:
        """Write it as C99: NAME.h, NAME.c and NAME_test.c; see `PreparedProblem.export_c`."""
        stages = self._stages
        given = self._numbers(None, None, None, None)
        return write_solver(
            directory,
            name,
            self._routine,
            {
                "p": given,
                "limits": self._limits(self._stages.problem),
                "tables": self._tables,
                "memory": self._memory,
            },
            stages.problem.shortest,
            self._sample,
        )

    def numbers(self) -> dict[str, Array]:
        """What `kernel` takes, by name, for the problem as it is stated."""
        T = np.array([self._stages.problem.shortest])
        given = self._arguments(
            self._numbers(None, None, None, None), T, self._limits(self._stages.problem), self._memory
        )
        return {a.name.removesuffix("_in"): x for a, x in zip(self.kernel.arguments, given, strict=True)}

    # --- memory ------------------------------------------------------------------------------------------------------

    def _known(self, solution: Solution) -> tuple[Iterate, Units]:
        """Its iterate and units."""
        known = warm(self._stages, solution, unfinished=True)
        if known is None or not same_nodes(self._stages, solution):
            raise ArgumentError(
                f"prepared.compile: guess is {solution!r}, expected a solution of this prepared problem that was solved, or "
                "stopped on its way"
            )
        return solution._outcome.iterate, known.units

    def _memory_of(self, solution: Solution) -> Array:
        it, _ = self._known(solution)
        known = warm(self._stages, solution, unfinished=True)
        assert known is not None
        newton = self._newton
        newton.restart(self._stages, it.x, it.u, it.z, tuning.BARRIER, units=self._units)
        costates, sigma, eta, low, high, end_low, end_high = newton.multipliers(known)
        found = {"x": it.x, "u": it.u, "z": it.z, "low": low, "high": high, "end_low": end_low}
        found |= {"end_high": end_high, "costates": costates, "sigma": sigma, "eta": eta}
        return np.concatenate([np.ravel(found[name]) for name in self._parts])

    # --- numbers -------------------------------------------------------------------------------------------------

    def _arguments(self, given: Array, T: Array, bounds: Array, memory: Array) -> list[Array]:
        """Those of no size are left out of kernels."""
        return [a for a in (given, T, bounds, self._tables, memory, _NOTHING) if a.shape[-1]]

    def _sample(self, given: Array, memory: Array) -> tuple[Array, Array]:
        """Memory and result for p and memory: what a test program compares."""
        T = np.array([self._stages.problem.shortest])
        left, found = self.kernel(*self._arguments(given, T, self._limits(self._stages.problem), memory))
        return left, found

    def _check(self, duration: Any, T: Array, shift: int) -> None:
        if duration is not None and self._stages.is_free:
            raise ArgumentError("compiled.solve: the duration of this problem is found, not given")
        if not (np.isfinite(T).all() and (T > 0).all()):
            raise ArgumentError(f"compiled.solve: duration is {duration!r}, expected seconds")
        whole("compiled.solve", "shift", shift, "a number of intervals, 0 or more", least=0)

    def _restated(self, start: Any, end: Any, limits: Mapping[str, Any] | None) -> Problem:
        """The problem with other limits, and other ranges at its ends."""
        problem = self._stages.problem
        pairs = ((start, problem.start), (end, problem.end))
        first, last = (given if any(row.is_bound for row in rows) else None for given, rows in pairs)
        if first is None and last is None and limits is None:
            return problem
        return self.prepared.restated(first, last, None, None, None, limits)

    def _limits(self, problem: Problem) -> Array:
        """Lower and upper of each row."""
        is_own = problem is self._stages.problem
        if is_own and self._own_limits is not None:
            return self._own_limits
        stages = self._stages if is_own else self.prepared.bounded(problem)
        pairs = []
        for k in range(len(stages.path_names)):
            there = np.isfinite(self._stages.lower[:, k]) | np.isfinite(self._stages.upper[:, k])
            at = int(np.argmax(there))
            pairs.append((stages.lower[at, k], stages.upper[at, k]))
        pairs += zip(stages.end_lower, stages.end_upper, strict=True)
        for name, (low, high) in zip((*stages.path_names, *stages.end_bounded), pairs, strict=True):
            if not low < high:
                raise ArgumentError(
                    f"compiled.solve: limits of {name!r} are {low:g} and {high:g}, expected the lower one below the upper"
                )
        found = np.array(pairs, dtype=float).ravel()
        if is_own:
            self._own_limits = found
        return found

    _own_limits: Array | None = None

    @cached_property
    def _places(self) -> dict[str, Array | None]:
        """By end, where in (q, v) or x the numbers are that it states, in their order; None where it states others."""
        return {which: self._places_at(which) for which in ("start", "end")}

    def _places_at(self, which: str) -> Array | None:
        problem, model = self._stages.problem, self._stages.problem.model
        found: list[int] = []
        where: dict[str, tuple[int, slice]] = {}
        if model is None:
            where = {name: (k, slice(k, k + 1)) for k, name in enumerate(problem.plant.tangent_names)}
        else:
            for owner in model.space:
                for k in range(owner.v.stop - owner.v.start):
                    name = model.speed_names[owner.v.start + k]
                    where[f"q {name}"] = owner.q.start + k, owner.q
                    at = model.nq + owner.v.start + k
                    where[f"v {name}"] = at, slice(at, at + 1)
        for row in Ends(problem).rows[which]:
            if row.component not in where:
                return None
            one, several = where[row.component]
            found += [one] if row.about is None else range(several.start, several.stop)
        return np.array(found, dtype=int)

    def _numbers(
        self,
        start: Any,
        end: Mapping[str, Any] | None,
        parameters: Mapping[str, float] | None,
        inputs: Mapping[str, Any] | None,
    ) -> Array:
        """p of the stages."""
        problem = self._stages.problem
        values, count = problem.parameters, len(problem.plant.parameters)
        known = {name: slice(k, k + 1) for k, (name, _) in enumerate(problem.plant.parameters)}
        sizes = {name: value.size for name, value in problem.input_values.items()}
        values = self._placed(values, known, parameters, "parameter")
        values = self._placed(values, parts_of(sizes, count), inputs, "input")
        ends = {"start": self._at_end("start", start), "end": self._at_end("end", end)}
        return _beside({"parameters and inputs": values, **ends})

    @cached_property
    def _own_ends(self) -> dict[str, Array]:
        rows = Ends(self._stages.problem).rows
        return {which: np.array(_values(own), dtype=float) for which, own in rows.items()}

    def _placed(self, values: Array, places: Mapping[str, slice], given: Any, what: str) -> Array:
        """The numbers with those that are given by name: of parameters, or of inputs."""
        if given is None:
            return values
        if not isinstance(given, Mapping):
            expected = "a dictionary by names" if what == "parameter" else "numbers or vectors by name"
            raise ArgumentError(f"compiled.solve: {what}s is {given!r}, expected {expected}")
        for name, value in given.items():
            if name not in places:
                raise ArgumentError(unknown(f"compiled.solve: the problem has no {what}", name, places))
            new = numbers("compiled.solve", f"{what} {name!r}", value)
            size = places[name].stop - places[name].start
            if what == "parameter" or (size == 1 and new.shape[-1:] != (1,)):
                new = new[..., None]
            is_finite = np.isfinite(new).all()
            if what == "parameter" and not is_finite:
                raise ArgumentError(f"compiled.solve: {what} {name!r} is {value!r}, expected finite numbers")
            if new.shape[-1:] != (size,) or not is_finite:
                raise ArgumentError(
                    f"compiled.solve: {what} {name!r} has shape {np.shape(value)}, expected (..., {size}) finite numbers"
                )
            batch = _batch({"other parameters and inputs": values, name: new})
            values = np.array(np.broadcast_to(values, (*batch, values.shape[-1])))
            values[..., places[name]] = new
        return values

    def _at_end(self, which: str, given: Any) -> Array:
        """The numbers of p that an end states."""
        if given is None:
            return self._own_ends[which]
        problem, model, places = self._stages.problem, self._stages.problem.model, self._places[which]
        if not isinstance(given, Mapping):
            raise ArgumentError(f"compiled.solve: {which} is {given!r}, expected a dictionary by names")
        names = ("q", "v") if model is not None else problem.plant.tangent_names
        if model is None and places is not None and any(np.ndim(x) for x in given.values()):  # others stay
            own = zip(places.tolist(), self._own_ends[which].tolist(), strict=True)
            given = {**{names[k]: x for k, x in own}, **given}
        if (
            places is None
            or set(given) != set(names)
            or len(places) != problem.plant.chart.point
            or any(isinstance(x, Mapping) for x in given.values())
        ):
            stated = {"start": None, "end": None} | {which: given}
            restated = self.prepared.restated(stated["start"], stated["end"], None, None, None)
            return np.array(_values(Ends(restated).rows[which]), dtype=float)
        sizes = (model.nq, model.nv) if model is not None else (1,) * len(names)
        parts = []
        for name, size in zip(names, sizes, strict=True):
            x = numbers("compiled.solve", f"{which} {name!r}", given[name])
            x = (
                x[..., None]
                if model is None
                else np.broadcast_to(x, (size,))
                if x.ndim == 0 and name == "v"
                else x
            )
            if x.shape[-1:] != (size,) or not np.isfinite(x).all():
                raise ArgumentError(
                    f"compiled.solve: {which} {name!r} has shape {np.shape(given[name])}, expected finite (..., {size})"
                )
            parts.append(x)
        if model is not None and model.nq != model.nv:
            parts[0] = model.integrate(parts[0], np.zeros(model.nv))
        return _beside(dict(zip(names, parts, strict=True)))[..., places]

    def _shifted(self, memory: Array, by: int) -> Array:
        """States, controls and multipliers `by` intervals later; the last ones are repeated."""
        N = self._stages.count
        found = memory.copy()
        counts = {"x": N + 1, "costates": N + 1, "u": N, "z": N, "low": N, "high": N}
        for name, count in counts.items():
            part = self._parts[name]
            records = memory[..., part].reshape(*memory.shape[:-1], count, -1)
            later = records[..., np.minimum(np.arange(count) + by, count - 1), :]
            found[..., part] = later.reshape(*memory.shape[:-1], -1)
        return found

    def _solution(
        self, restated: Problem, given: Array, T: Array, memory: Array, found: Array, bounds: Array
    ) -> Solution:
        """From what a call left."""
        prepared, newton = self.prepared, self._newton
        problem = self._problem(restated, given, float(T[0]))
        numbers = self._stages.numbers.copy()
        numbers[:, 2] = problem.shortest
        nd = len(self._stages.path_names)
        pairs = bounds.reshape(-1, 2)
        there = np.isfinite(self._stages.lower) | np.isfinite(self._stages.upper)
        lower, upper = np.where(there, pairs[:nd, 0], -np.inf), np.where(there, pairs[:nd, 1], np.inf)
        stages: Stages = replace(
            self._stages,
            problem=problem,
            parameters=given.copy(),
            numbers=numbers,
            lower=lower,
            upper=upper,
            end_lower=pairs[nd:, 0],
            end_upper=pairs[nd:, 1],
        )
        part = {name: memory[where] for name, where in self._parts.items()}
        it = newton.it
        x, u, z = (part[name].reshape(getattr(it, name).shape) for name in ("x", "u", "z"))
        newton.restart(stages, x, u, z, max(float(found[4]), 1e-300), units=self._units)
        it.costates[...], it.sigma[...], it.eta[...] = (
            part["costates"].reshape(it.costates.shape),
            part["sigma"],
            part["eta"],
        )
        newton.enter(
            part["low"].reshape(it.path.low.shape),
            part["high"].reshape(it.path.low.shape),
            part["end_low"],
            part["end_high"],
        )
        newton.linearise()
        merit = newton.try_(0.0)
        newton.accept(0.0, 0.0)
        newton.linearise()
        newton.tolerance = self.tolerance
        newton.judge(merit)
        newton.step(merit)
        stated = newton.stated()
        status = "solved" if found[6] else "iterations"
        message = "solved" if found[6] else f"stopped after {int(found[5])} iterations"
        outcome = Outcome(
            *(status, message, stated, float(found[0]), float(found[1]), float(found[2]), []),
            *(newton.gains(stated), newton.residuals, newton.units.copied(), {}),
        )
        hessian = "exact" if self._evaluation.exact else "gauss-newton"
        name = prepared.transcribed.name
        if problem.design:
            problem = problem.with_design(outcome.iterate.x[0, stages.chosen])
        return Solution(problem, stages, outcome, "sweep", name, hessian, is_judged=False)

    def _problem(self, restated: Problem, given: Array, T: float) -> Problem:
        problem = copy.copy(restated)
        problem.transcribed = {}
        problem.parameters = given[: len(problem.parameters)].copy()
        at = len(problem.parameters) - sum(value.size for value in problem.input_values.values())
        new = {}
        for name, value in problem.input_values.items():
            new[name], at = problem.parameters[at : at + value.size], at + value.size
        problem.input_values = new
        if not problem.is_free:
            problem.shortest = problem.longest = T
        return problem


def _batch(parts: Mapping[str, Array]) -> tuple[int, ...]:
    return common("compiled.solve", [(name, x.shape[:-1]) for name, x in parts.items()])


def _beside(parts: Mapping[str, Array]) -> Array:
    """Numbers one after the other, of all problems of a batch."""
    batch = _batch(parts)
    return np.concatenate([np.broadcast_to(x, (*batch, x.shape[-1])) for x in parts.values()], axis=-1)


def _values(rows: list[Any]) -> list[float]:
    return [x for row in rows for x in ([row.lower] if row.about is None else np.ravel(row.point))]
