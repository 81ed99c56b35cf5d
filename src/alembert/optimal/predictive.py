"""Nonlinear model predictive control: a prepared problem solved at every sample, as a controller of `al.simulate`.

At the time t_k of a sample the state is measured, and the controls found for it act `delay` later. So the problem begins
where the motion will be then,

    x(t_k + delay) = x(t_k) + integral of the rate under the controls that are already decided             (1)

and is solved from the plan before, moved on by the time between the samples.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.arguments import real
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.model.printing import unknown
from alembert.optimal.compiled_solver import MOST_ITERATIONS, CompiledResult, CompiledSolver
from alembert.optimal.plant import Mechanics, depends_on_time
from alembert.optimal.solution import Solution
from alembert.optimal.solve import SolverOptions
from alembert.simulate import Sampled

if TYPE_CHECKING:
    from alembert.optimal.problem import Problem

Array = np.ndarray
POLICIES = ("plan", "hold", "raise")
PREDICTION = 4
"""steps of Runge and Kutta's method for (1) in each period"""


@dataclass(frozen=True)
class PredictiveSample:
    """What happened at one sample: `seconds` are those of the solve, `used` the controls that were given.

    `by` is "compiled" or "prepared": which solver found them, or was asked last.
    """

    t: float
    status: str
    iterations: int
    cost: float
    seconds: float
    used: Array
    by: str = "prepared"


class _CompiledPlan:
    """What a compiled solver found, as far as a controller asks for it; the whole solution is made when it is asked for."""

    def __init__(self, result: CompiledResult, nodes: Array, duration: float) -> None:
        self.result, self._nodes, self._duration = result, nodes, duration
        self.converged, self.infeasibility = bool(result.converged), float(result.infeasibility)
        self.iterations, self.cost = int(result.iterations), float(result.cost)
        self.status = "solved" if self.converged else "iterations"
        self.message = "solved" if self.converged else f"stopped after {self.iterations} iterations"

    @cached_property
    def solution(self) -> Solution:
        return self.result.solution()

    def control_at(self, t: float) -> Array:
        if self.result.is_constant:
            k = int(np.searchsorted(self._nodes * self._duration, t, side="right")) - 1
            return self.result.controls[max(k, 0)].copy()
        return self.solution.control_at(t)


class PredictiveController:
    """`problem` solved every `period` [s]; `controller.sampled` goes to `al.simulate(..., controller=...)`.

    The problem's `start` is replaced by the state at each sample; its duration is the horizon. The first sample, which has
    no plan to go on from, is solved to the end. After it, at most `iterations` Newton steps are made in each sample;
    `time_limit` [s] ends a solve with its best iterate. What a solve gives that was stopped so is used if its motion is
    feasible to `feasible`, in units of the problem.

    `delay` [s] is that from the sample to the controls: (1) makes up for it. `on_failure`: "plan" follows the last plan that
    was good, and ends with a `NumericalError` where that ends; "hold" keeps the last controls, "raise" ends at once.

    `inputs` of the problem may be functions of the time: `{"target": lambda t: np.sin(t)}`. `s.t` of its costs and path
    begins at 0 in every sample: with the input `{"now": lambda t: t}` the time of the run is `s.now + s.t`. `estimate`
    makes q and v of what sensors `reads` delivered, as a function of a mapping from their names; without it the law gets
    the true state.
    `samples` has what happened.

    With `compiled`, samples after the first one are solved by `prepared.compile(...)`, several times faster; where that
    finds nothing, as may be after a jump of the state that changes which bounds hold, `prepared.solve` is asked, and
    `fallbacks` counts it. `time_limit` is for the latter alone.
    """

    def __init__(
        self,
        problem: Problem,
        steps: int = 40,
        *,
        period: float,
        delay: float = 0.0,
        iterations: int = 50,
        time_limit: float | None = None,
        tolerance: float = 1e-6,
        feasible: float = 1e-3,
        on_failure: str = "plan",
        inputs: Mapping[str, Any] | None = None,
        reads: tuple[str, ...] = (),
        estimate: Callable[[float, Mapping[str, Array]], tuple[Array, Array]] | None = None,
        transcription: str | None = None,
        hessian: str = "auto",
        compiled: bool = False,
    ) -> None:
        if not isinstance(problem.plant, Mechanics):
            raise UnsupportedError(
                "PredictiveController: the problem is of a System; controllers of simulate need one of a Model. "
                "problem.prepare() solves samples of any problem"
            )
        if problem.is_free:
            raise UnsupportedError("PredictiveController: the duration is the horizon, and cannot be free")
        if on_failure not in POLICIES:
            raise ArgumentError(unknown("PredictiveController: no policy on_failure", on_failure, POLICIES))
        if depends_on_time(problem.plant):
            raise UnsupportedError(
                "PredictiveController: forces or gravity depend on the time, which begins at 0 in every sample; give the "
                "problem such that do not"
            )
        real("PredictiveController", "period", period, "seconds", over=0.0)
        real("PredictiveController", "delay", delay, "seconds", least=0.0)
        if reads and estimate is None:
            raise ArgumentError(
                "PredictiveController: reads needs `estimate`, a function of t and what the sensors gave, to q and v"
            )
        SolverOptions(tolerance=tolerance, iterations=iterations, time_limit=time_limit)
        if not (isinstance(feasible, int | float) and feasible >= 0):
            raise ArgumentError(
                f"PredictiveController: feasible is {feasible!r}, expected a number from 0 on"
            )
        self.problem, self.period, self.delay = problem, float(period), float(delay)
        self.prepared = problem.prepare(steps, transcription=transcription, hessian=hessian)
        self.on_failure, self.feasible = on_failure, feasible
        self._options: dict[str, Any] = {"iterations": iterations, "tolerance": tolerance}
        self._options |= {"time_limit": time_limit} if time_limit is not None else {}
        self._is_compiled = compiled
        self._solver: CompiledSolver | None = None
        self._inputs, self._reads, self._estimate = dict(inputs or {}), tuple(reads), estimate
        stated = {row.component for row in problem.start if row.is_equation}
        missing = [name for name in problem.plant.tangent_names if name not in stated]
        if missing:
            raise ArgumentError(
                f"PredictiveController: start does not state {missing[0]!r}; every sample replaces the whole state: "
                'start={"q": ..., "v": ...}'
            )
        self.reset()

    def reset(self) -> None:
        """Forget plans and samples: the next sample is the first one."""
        self._plan: Solution | _CompiledPlan | None = None
        self._planned = 0.0
        self.samples: list[PredictiveSample] = []
        self._used: list[tuple[float, Array]] = []
        self._asked = np.zeros(0)

    @property
    def plan(self) -> Solution | None:
        """The last one that was good."""
        return self._plan.solution if isinstance(self._plan, _CompiledPlan) else self._plan

    @property
    def fallbacks(self) -> int:
        """How many samples the compiled solver did not solve, of those that it was asked for: all but the first."""
        return sum(sample.by != "compiled" for sample in self.samples[1:]) if self._is_compiled else 0

    @property
    def sampled(self) -> Sampled:
        """For `al.simulate(model, ..., controller=...)`; it begins anew with each run that starts at its first sample."""
        if self._reads:
            return Sampled(self._from_sensors, self.period, self.delay, reads=self._reads)
        return Sampled(self, self.period, self.delay)

    def _from_sensors(self, t: float, readings: Mapping[str, Array]) -> Array:
        assert self._estimate is not None
        return self(t, *self._estimate(t, readings))

    def __call__(self, t: float, q: Any, v: Any) -> Array:
        """Efforts of all degrees of freedom for the state at t, which act from t + delay on."""
        began, at = time.perf_counter(), t + self.delay
        q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        if self.samples and t <= self.samples[-1].t:
            if t == self.samples[-1].t and np.array_equal(self._asked, np.concatenate([q, v])):
                return self._efforts(self.samples[-1].used)  # a run that goes on where it ended
            if t == self.samples[-1].t and len(self.samples) > 1:
                raise UnsupportedError(
                    f"PredictiveController: asked twice at t = {t:.6g} s, for different states; it has one plan, for one "
                    "motion: give simulate `controller.sampled`, each motion of a batch a run and a controller of its own, "
                    "and reset() it before another"
                )
            self.reset()
        self._asked = np.concatenate([q, v])
        q, v = self._ahead(t, q, v)
        given = {name: value(at) if callable(value) else value for name, value in self._inputs.items()}
        found = self._solved(q, v, given, at)
        if self._is_good(found):
            self._plan, self._planned = found, at
        elif self.on_failure == "raise" or self._plan is None:
            raise NumericalError(f"PredictiveController: at t = {t:.4g} s: {found.status}: {found.message}")
        self._check_plan(t, at, found)
        if self.on_failure == "hold" and self._plan is not found and self._used:
            controls = self._used[-1][1]
        else:
            assert self._plan is not None
            controls = self._plan.control_at(at - self._planned)
        decided = sum(begin <= t for begin, _ in self._used)  # of these the last one still acts
        self._used = [*self._used[max(decided - 1, 0) :], (at, controls)]
        seconds = time.perf_counter() - began
        by = "compiled" if isinstance(found, _CompiledPlan) else "prepared"
        self.samples.append(
            PredictiveSample(t, found.status, found.iterations, found.cost, seconds, controls, by)
        )
        return self._efforts(controls)

    def _solved(self, q: Array, v: Array, given: Mapping[str, Any], at: float) -> Solution | _CompiledPlan:
        """From the plan before, moved on."""
        start, plan = {"q": q, "v": v}, self._plan
        passed = at - self._planned
        if self._is_compiled and plan is not None:
            if self._solver is None:
                most = min(max(1, self._options["iterations"]), MOST_ITERATIONS)
                self._solver = self.prepared.compile(
                    iterations=most, tolerance=self._options["tolerance"], guess=self.plan
                )
            intervals = round(passed / self.problem.shortest * len(self._nodes))
            result = self._solver.solve(
                start=start,
                inputs=given or None,
                before=plan.result if isinstance(plan, _CompiledPlan) else plan,
                shift=intervals,
            )
            found = _CompiledPlan(result, self._nodes, self.problem.shortest)
            if self._is_good(found):
                return found
        own: dict[str, Any] = {"tolerance": self._options["tolerance"]}
        if plan is not None:
            own = self._options | {"guess": self.plan, "shift": passed}
        return self.prepared.solve(start=start, inputs=given or None, **own)

    def _check_plan(self, t: float, at: float, found: Solution | _CompiledPlan) -> None:
        """A plan that is followed says nothing of the time after its horizon."""
        end, good = self._planned + self.problem.shortest, self._planned - self.delay
        if self.on_failure == "plan" and at > end * (1 + 1e-12):
            raise NumericalError(
                f"PredictiveController: at t = {t:.4g} s: no solve was good since t = {good:.4g} s, and the "
                f"plan of then ends at {end:.4g} s; the last solve: {found.status}: {found.message}. "
                'on_failure="hold" keeps the last controls'
            )

    @property
    def _nodes(self) -> Array:
        """Where intervals begin, as shares of the horizon."""
        return self.prepared.transcribed.stages.nodes[:-1]

    def _is_good(self, found: Solution | _CompiledPlan) -> bool:
        if found.converged:
            return True
        return found.status in ("iterations", "time") and found.infeasibility <= self.feasible

    def _efforts(self, controls: Array) -> Array:
        plant = self.problem.plant
        assert isinstance(plant, Mechanics)
        tau = np.zeros(plant.model.nv)
        tau[list(plant.driven)] = controls
        return tau

    def _ahead(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """(1): the state when the controls of this sample begin to act."""
        if not self.delay:
            return q, v
        step, T, p = self.problem.fine[0], self.problem.shortest, self.problem.parameters
        x, none = np.concatenate([q, v]), np.zeros(len(self.problem.plant.controls))
        at = t + self.delay
        times = [t, *(begin for begin, _ in self._used if t < begin < at), at]
        for first, last in pairwise(times):
            decided = [u for begin, u in self._used if begin <= (first + last) / 2]
            u = decided[-1] if decided else none
            count = int(np.ceil(PREDICTION * (last - first) / self.period))
            h = (last - first) / count
            for i in range(count):
                x = step(x, first + i * h, h, np.concatenate([u, u, u]), p, T)[0].full()[:, 0]
        nq = self.problem.model.nq  # type: ignore[union-attr]
        return x[:nq], x[nq:]
