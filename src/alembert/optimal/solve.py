"""From a problem to its solution: transcribe, guess, solve; and a family of problems, each from the solution before."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from alembert.arguments import whole
from alembert.engine import loader
from alembert.errors import ArgumentError, UnsupportedError, interrupts_kept
from alembert.model.printing import unknown
from alembert.optimal import guess as guesses
from alembert.optimal import tuning
from alembert.optimal.conditions import effort
from alembert.optimal.diagnosis import linearise, not_finite, redundant, unlimited, with_edges
from alembert.optimal.evaluation import Evaluation
from alembert.optimal.interior_point import InteriorPoint
from alembert.optimal.newton import Newton
from alembert.optimal.outcome import (
    Attempt,
    Deadline,
    Iterate,
    Iteration,
    Outcome,
    Warm,
    jump_remark,
    reporter,
    same_nodes,
    shifted,
    stiff_remark,
    turn_remark,
    turns_too_far,
    warm,
    zigzag_remark,
    zigzags,
)
from alembert.optimal.problem import Problem
from alembert.optimal.refinement import SIMPLE, refined
from alembert.optimal.schemes import Transcription, scheme
from alembert.optimal.solution import Solution
from alembert.optimal.splines import solve_splines
from alembert.optimal.stages import Stages, cut

SOLVERS = ("sweep", "ipopt", "fatrop", "highs")
HESSIANS = ("auto", "exact", "gauss-newton")
LARGEST_EXACT = 6000
"""operations of a stage; beyond, second derivatives of the dynamics cost more than they save"""
NUDGES = ((0.3, 1.0), (1.0, 2.0))
"""sizes, in units of the controls, and half waves in the duration, of controls that are tried where a guess has no slope"""
BELOW = 1e-6
"""share of its cost by which a solution is to be cheaper than a saddle: far more than the tolerance leaves open"""
DEARER = 0.02
"""share of what the controls of the default one cost by which its solution may cost more: controls that are constant in each
interval do, and many steps may be needed to come near"""
MANY, NEARER = 50, 0.1
"""iterations in each half of a search, and by how much constraints are to be nearer in the second than in the first"""
UNREACHED = ("cannot be changed by the controls", "cannot be changed by a state or control")
MOST_TRANSCRIBED = 4
"""ways to cut a problem into stages that it keeps"""


def solve(
    problem: Problem,
    steps: int = 100,
    *,
    transcription: str | None = None,
    solver: Literal["sweep", "ipopt", "fatrop", "highs"] = "sweep",
    guess: Any = None,
    nodes: Any = None,
    hessian: Literal["auto", "exact", "gauss-newton"] = "auto",
    tolerance: float = 1e-8,
    iterations: int = 500,
    progress: bool | Callable[[Iteration], Any] | None = None,
    time_limit: float | None = None,
    control_points: int | None = None,
    accuracy: float | None = None,
    refine: Literal["h", "hp"] = "h",
    options: Mapping[str, Any] | None = None,
) -> Solution:
    """Solve `problem` with `steps` intervals of time.

    `transcription`: "dmoc" (the default for models), "euler", "rk4", "midpoint", "trapezoidal", "hermite-simpson" (the
    default for systems, where its controls mean something between its points, else "rk4"), "radau" (of order 5;
    "radau-3", "radau-7", "radau-9", "radau-11" are of others); the implicit ones also in momenta ("midpoint-momenta",
    ...); "dmocc" is DMOC in redundant coordinates, "splines" (with `control_points`) that of `solve_splines`. `solver`:
    "sweep", our own, "ipopt" or "fatrop" from CasADi, or "highs" for linear problems. `guess`: a solution (also of
    another number of steps; the sweep also begins with its multipliers), a simulation, arrays `{"time", "q", "v",
    "controls"}` or a file of `solution.save`; by default straight from start to end. `nodes`: where intervals begin and
    end, as fractions of the duration. `hessian`: "exact" has the curvature of the dynamics, "gauss-newton" has not;
    "auto" chooses by the size of the model. `progress` prints a line per iteration (by default on a terminal), or is
    called with each. After `time_limit` seconds of iterations the best iterate so far is returned, with the status
    "time".

    With `accuracy` the mesh is refined until the errors of its intervals, what its controls cost, and the change of the cost
    from mesh to mesh are below it, as shares: `steps` is then what it begins with, `solution.meshes` how it went, and
    `solution.estimate` what is left; more than ten times the accuracy is no success ("inaccurate"). Where controls jump,
    nodes are put on both sides. With `refine="hp"` a method of higher order is taken instead of more nodes where the
    solution is smooth, up to Radau's of order 11.

    `options` are those of IPOPT or FATROP by their own names, `{"mu_strategy": "adaptive"}`.

    A solution is returned also when the solver did not succeed: `solution.success` and `solution.message` say
    so, `solution.diagnosis()` which constraints are violated where. Ctrl-C during the iterations returns the
    best iterate with the status "interrupted", before them it raises KeyboardInterrupt.
    """
    with interrupts_kept(returns=True):
        steps = whole("solve", "steps", steps, "a positive number of intervals")
        how = SolverOptions(solver, hessian, tolerance, iterations, progress, time_limit, options)
        if accuracy is not None:
            chosen = {"transcription": transcription, "guess": guess, "nodes": nodes}
            return refined(problem, steps, accuracy, vars(how) | chosen, refine)
        if transcription == "splines":
            if solver != "sweep" or nodes is not None or hessian != "auto":
                raise UnsupportedError(
                    "solve: transcription 'splines' has its own solver and Hessian, and even steps; leave solver, nodes and "
                    "hessian out"
                )
            own: dict[str, Any] = {} if control_points is None else {"control_points": control_points}
            own |= {"guess": guess, "tolerance": tolerance, "iterations": iterations}
            report = progress if time_limit is None else Deadline(time_limit, reporter(progress))
            splines = solve_splines(problem, steps, **own, progress=report)
            if isinstance(report, Deadline) and splines.status == "interrupted":
                splines._status, splines._message = report.outcome
            return splines
        if control_points is not None:
            raise ArgumentError("solve: `control_points` is for transcription='splines'")
        own_nodes = read_nodes(steps, nodes)
        key = (transcription, steps, None if own_nodes is None else own_nodes.tobytes())
        transcribed = problem.transcribed.get(key)
        if transcribed is None:
            if len(problem.transcribed) >= MOST_TRANSCRIBED:
                problem.transcribed.clear()
            transcribed = problem.transcribed[key] = Transcribed(problem, transcription, steps, own_nodes)
        solution = transcribed.solve(problem, transcribed.stages, guess, how)
        if transcription is None and transcribed.name != SIMPLE and solver == "sweep":
            return _by_one_control(problem, solution, guess, nodes, how)
        return solution


def _by_one_control(
    problem: Problem, solution: Solution, guess: Any, nodes: Any, options: SolverOptions
) -> Solution:
    """By `SIMPLE`, where nobody chose a transcription and the controls of the default one mean nothing between points."""
    stages = solution.stages
    if stages.scheme.points + stages.scheme.node_controls == 1 or not solution.converged:
        return solution
    of_mesh = solution.accuracy.is_coarse
    if not (of_mesh or zigzags(stages, solution._outcome.iterate)):
        return solution
    own = vars(options) | {"transcription": SIMPLE, "guess": guess, "nodes": nodes}
    if options.time_limit is not None:
        own["time_limit"] = max(options.time_limit - solution.seconds["total"], 1e-3)
    again = problem.solve(solution.steps, **own)
    known = solution.accuracy.cost_of_controls
    known = max(known, solution.cost) if of_mesh else known
    if not again.success or again.cost > known + DEARER * abs(known):
        return solution
    why = "had an optimum of its mesh only" if of_mesh else "left the controls open between its points"
    again.remark(f"by {SIMPLE!r}, with one control in each interval: {solution.transcription!r} {why}")
    return again


@dataclass(frozen=True)
class SolverOptions:
    """How the stages of a problem are solved; see `solve`."""

    solver: str = "sweep"
    hessian: str = "auto"
    tolerance: float = 1e-8
    iterations: int = 500
    progress: bool | Callable[[Iteration], Any] | None = None
    time_limit: float | None = None
    options: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        limit, tolerance = self.time_limit, self.tolerance
        if limit is not None and not (isinstance(limit, int | float) and limit > 0):
            raise ArgumentError(f"solve: time_limit is {limit!r}, expected seconds, or None for no limit")
        if self.solver not in SOLVERS:
            raise ArgumentError(unknown("solve: no solver", self.solver, SOLVERS))
        if not (isinstance(tolerance, int | float) and 0 < tolerance < 1):
            raise ArgumentError(f"solve: tolerance is {tolerance!r}, expected a number between 0 and 1")
        whole("solve", "iterations", self.iterations, "a whole number, 0 or more", least=0)
        if self.hessian not in HESSIANS:
            raise ArgumentError(unknown("solve: no hessian", self.hessian, HESSIANS))
        if self.solver != "sweep" and self.hessian == "gauss-newton":
            raise UnsupportedError(
                f"solve: {self.solver} takes exact Hessians only; hessian='gauss-newton' is for solver='sweep'"
            )
        if self.options is not None:
            _check_options(self.solver, self.options)


class Transcribed:
    """A problem cut into stages, with their compiled functions: what is made once, and serves every solve."""

    def __init__(
        self,
        problem: Problem,
        transcription: str | Transcription | None,
        steps: int,
        nodes: np.ndarray | None,
        *,
        at_run_time: bool = False,
    ) -> None:
        if problem.is_determined:
            raise ArgumentError(
                "solve: the system has no controls, no `design`, a given duration and a start that is stated, so that "
                "nothing is to be chosen: simulate it, or make it one of `Phases`"
            )
        way = transcription or ("dmoc" if problem.model is not None else "hermite-simpson")
        way = scheme(way) if isinstance(way, str) else way
        self.name = way.name
        self.stages = cut(problem, way, steps, nodes, at_run_time=at_run_time)
        self._is_small = self.stages.stage.n_instructions() <= LARGEST_EXACT
        self._evaluations: dict[bool, Evaluation] = {}
        self._kept: dict[bool, Newton] = {}
        """with all arrays and calls of a solve in place, for the next one"""

    def is_exact(self, hessian: str, solver: str) -> bool:
        """Whether the Hessian has the curvature of the dynamics."""
        return hessian == "exact" or (hessian == "auto" and (self._is_small or solver != "sweep"))

    def evaluation(self, exact: bool) -> Evaluation:
        if exact not in self._evaluations:
            self._evaluations[exact] = Evaluation(self.stages, exact=exact)
        return self._evaluations[exact]

    def solve(
        self,
        problem: Problem,
        stages: Stages,
        guess: Any,
        options: SolverOptions,
        *,
        is_judged: bool = True,
        shift: float = 0.0,
    ) -> Solution:
        """`stages` are those of this transcription, with numbers of `problem`; `shift`: seconds since the guess was found.

        Samples are not judged: they also begin from where the one before was stopped, and its multipliers."""
        solver = options.solver
        known = warm(stages, guess, unfinished=not is_judged)
        if shift and problem.is_free:
            known = None
        if known is not None and same_nodes(stages, guess):
            it, passed = guess._outcome.iterate, round(shift / problem.shortest * stages.count)
            (x, u, z), known = shifted(it, known, passed) if passed else ((it.x, it.u, it.z), known)
        elif guess is None and problem is self.stages.problem:
            x, u, z = self._straight
        else:
            made = guesses.make(problem, guess)
            if isinstance(guess, Solution) and list(guess.problem.design) == list(problem.design):
                made = replace(made, design=guess.problem.parameters[list(problem.design)])
            made = made.later(problem, shift) if shift and guess is not None else made
            x, u, z = guesses.place(stages, made)
        with loader.spoken() if options.progress is True else nullcontext():
            attempt, outcome = self.attempts(
                (x, u, z), known, options, is_solution=_is_solution(guess, stages), stages=stages
            )
            # a sample begins near its solution; a first solve of a prepared problem does not
            is_first = not isinstance(guess, Solution)
            if (
                solver == "sweep"
                and outcome.status == "infeasible"
                and problem.is_free
                and (is_judged or is_first)
            ):
                outcome = self._in_given_time(problem, attempt, outcome)
            if solver == "sweep" and is_first:
                outcome = self._from_elsewhere(attempt, outcome, guess)
            if solver == "sweep" and (is_judged or is_first):
                outcome = self.off_saddle(attempt, outcome)
            elif solver == "sweep" and self._at_saddle(attempt, outcome):
                outcome.message += "; perhaps a saddle, as the guess: solve once without it"
        in_time(attempt, outcome)
        if is_judged:
            no_nearer(outcome)
        _remark(attempt, outcome, is_judged)
        if problem.design:
            problem = problem.with_design(outcome.iterate.x[0, stages.chosen])
        hessian = "exact" if attempt.exact else "gauss-newton"
        found = Solution(problem, stages, outcome, solver, self.name, hessian, is_judged=is_judged)
        if is_judged and found.converged and (text := jump_remark(found)):
            found.remark(text)
        return found

    def attempts(
        self,
        place: tuple[np.ndarray, np.ndarray, np.ndarray],
        known: Warm | None,
        options: SolverOptions,
        *,
        is_solution: bool,
        stages: Any,
    ) -> tuple[Attempt, Outcome]:
        """From x, u and z with these multipliers; where that leads nowhere, with others, other units, other controls."""
        solver, report = options.solver, reporter(options.progress)
        report = report if options.time_limit is None else Deadline(options.time_limit, report)
        exact = self.is_exact(options.hessian, solver)
        attempt = Attempt(
            *(stages, *place, exact, options.tolerance, int(options.iterations), report),
            known=known if solver == "sweep" else None,
            is_solution=is_solution,
            options=options.options or {},
        )
        outcome = self._run(attempt, solver)
        if attempt.known is not None and outcome.status in ("stalled", "infeasible", "failed"):
            attempt = replace(attempt, known=None)  # other multipliers may lead elsewhere
            outcome = self._run(attempt, solver)
        if solver == "sweep" and outcome.status == "stalled":
            outcome = self._again(attempt, outcome)
        if solver == "sweep" and outcome.status == "infeasible":
            outcome = self._nudged(attempt, outcome)
        return attempt, outcome

    @cached_property
    def _straight(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where a solve begins without a guess."""
        return guesses.place(self.stages, guesses.make(self.stages.problem, None))

    def _next(
        self,
        attempt: Attempt,
        before: Outcome,
        done: list[Iteration],
        place: tuple[np.ndarray, np.ndarray, np.ndarray],
        why: str = "",
    ) -> Outcome | None:
        """From another place, after the iterations `done`, to which its own are added; None where none are left for it.

        `why` is told where it finds a solution."""
        left, (x, u, z) = attempt.iterations - len(done), place
        if left < 1:
            return None
        outcome = self._run(replace(attempt, x=x, u=u, z=z, iterations=left, known=None), "sweep")
        done += outcome.history
        for name, value in before.seconds.items():  # what an earlier attempt took belongs to the solve
            outcome.seconds[name] = outcome.seconds.get(name, 0.0) + value
        before.seconds = dict(outcome.seconds)
        if outcome.converged:
            outcome.history = [i._replace(number=k) for k, i in enumerate(done)]
            outcome.message += why
        return outcome

    def _again(self, attempt: Attempt, stalled: Outcome) -> Outcome:
        """From where a solve has stalled, with units that are measured there."""
        it = stalled.iterate
        outcome = self._next(attempt, stalled, list(stalled.history), (it.x, it.u, it.z))
        return outcome if outcome is not None and outcome.converged else stalled

    def _from_elsewhere(self, attempt: Attempt, lost: Outcome, guess: Any) -> Outcome:
        """Where no way leads on from the guess: from a straight motion, and from the one the start leads to by itself."""
        problem, done = attempt.stages.problem, list(lost.history)
        others: dict[str, Callable[[], guesses.Guess | None]] = {}
        if guess is not None:
            others["a straight motion"] = partial(guesses.make, problem, None)
        others["the motion that the start leads to by itself"] = partial(guesses.drifting, problem)
        before = "a straight one" if guess is None else "the guess"
        for name, make in others.items():
            is_lost = lost.status in ("stalled", "infeasible", "failed") and len(done) < attempt.iterations
            other = make() if is_lost else None
            if other is None:
                continue
            place = guesses.place(attempt.stages, other)
            why = f"; begun from {name}: no way led on from {before}"
            outcome = self._next(attempt, lost, done, place, why)
            if outcome is not None and outcome.converged:
                return outcome
            if outcome is None or outcome.status == "interrupted":
                break
        return lost

    def off_saddle(self, attempt: Attempt, solved: Outcome) -> Outcome:
        """From controls that move, where the cost does not bend upward from a solution in all directions that are open.

        Motions that are symmetric have the slopes of an optimum, and no Newton step leaves the symmetry: a body that turns
        about its own axis all the way, although it is there earlier by leaving it to either side."""
        done, it = list(solved.history), solved.iterate
        why = f"; begun from a saddle, whose cost is {solved.cost:.6g}"
        for size, turns in NUDGES:
            if not self._at_saddle(attempt, solved):
                break
            u = it.u + solved.units.u * self._waves(size, turns)
            outcome = self._next(attempt, solved, done, (it.x, u, it.z), why)
            if outcome is not None and outcome.status == "stalled":
                end = outcome.iterate
                outcome = self._next(attempt, solved, done, (end.x, end.u, end.z), why)
            if outcome is None or outcome.status == "interrupted":
                break
            gain = (solved.cost - outcome.cost) / max(abs(solved.cost), abs(outcome.cost), 1e-300)
            if outcome.converged and gain > BELOW:
                return outcome
        return solved

    @staticmethod
    def _at_saddle(attempt: Attempt, solved: Outcome) -> bool:
        """Whether the Hessian of the last step had to be shifted: the cost falls to both sides, or is flat."""
        return solved.status == "solved" and attempt.exact and solved.history[-1].shift > 0

    def _nudged(self, attempt: Attempt, infeasible: Outcome) -> Outcome:
        """From controls that move, where those of the guess have no effect at first order on what is to be reached.

        A wheel at rest cannot go sideways, and the square of a control that is zero has no slope: no step leads away
        from such a point, although there are motions.
        """
        lost = self._lost(infeasible.iterate)
        if not lost:
            return infeasible
        done, still = list(infeasible.history), True
        why = "; begun from controls that move: those of the guess had no effect on an end or equation"
        for size, turns in NUDGES:
            u = attempt.u + infeasible.units.u * self._waves(size, turns)
            outcome = self._next(attempt, infeasible, done, (attempt.x, u, attempt.z), why)
            if outcome is None:
                break
            if outcome.converged:
                return outcome
            still = still and bool(self._lost(outcome.iterate))
        if not still:
            infeasible.status = "stalled"
            infeasible.message = (
                f"no way found from this guess, at which {lost[0]} to first order: that does not say that there is none; "
                "give a `guess` with controls that move"
            )
        return infeasible

    def _in_given_time(self, problem: Problem, attempt: Attempt, infeasible: Outcome) -> Outcome:
        """From a motion of least effort in the duration of the guess, or in the longest one.

        A cost that makes the duration short does so before the end is reached, and from motions that are too short no step
        to first order leads to longer ones: what is nearest to the end may be a motion that turns back too early.
        """
        stages, done = attempt.stages, list(infeasible.history)
        for span in dict.fromkeys((float(attempt.x[0, -1]), problem.longest)):
            left = attempt.iterations - len(done)
            over = isinstance(attempt.report, Deadline) and attempt.report.is_over
            if left < 1 or over:
                break
            given = problem.replace(duration=span, cost=effort())
            own: dict[str, Any] = {"transcription": self.name, "nodes": stages.nodes, "iterations": left}
            if isinstance(attempt.report, Deadline):
                own["time_limit"] = attempt.report.left
            there = given.solve(stages.count, **own, progress=False)
            done += there.history
            if not there.converged:
                continue
            place = guesses.place(stages, guesses.make(problem, there))
            why = f"; begun from the least effort in {span:.4g} s"
            outcome = self._next(attempt, infeasible, done, place, why)
            if outcome is not None and outcome.converged:
                return outcome
        return infeasible

    def _lost(self, it: Iterate) -> list[str]:
        """What controls do not reach, in any phase for itself."""
        found = []
        for own, where in self.stages.alone:
            x = it.x[where.start : where.stop + 1, : own.chart.point]
            u, z = it.u[where, : own.sizes[1]], it.z[where, : own.sizes[2]]
            found += unreached(own, replace(it, x=x, u=u, z=z))
        return found

    def _waves(self, size: float, turns: float) -> np.ndarray:
        """Controls of all stages that move, in units."""
        wave = np.zeros((self.stages.count, self.stages.sizes[1]))
        for own, where in self.stages.alone:
            wave[where, : own.sizes[1]] = waves(own, size, turns)
        return wave

    def _run(self, attempt: Attempt, solver: str) -> Outcome:
        if solver == "highs":
            from alembert.optimal.nlp import solve_linear

            return solve_linear(attempt)
        if solver != "sweep":
            from alembert.optimal.nlp import solve_nlp

            return solve_nlp(attempt, solver)
        began = time.perf_counter()
        a, evaluation = attempt, self.evaluation(attempt.exact)
        own: dict[str, Any] = {"tolerance": a.tolerance, "iterations": a.iterations, "report": a.report}
        kept = self._kept.pop(a.exact, None)  # a second thread makes its own
        method = InteriorPoint(a.stages, evaluation, **own, newton=kept)
        outcome = method.solve(a.x, a.u, a.z, a.known)
        self._kept[a.exact] = method.newton
        outcome.seconds["with compiling"] = time.perf_counter() - began
        return outcome


def _remark(attempt: Attempt, outcome: Outcome, is_judged: bool) -> None:
    """What the message says besides: functions that are not finite, turns that are too long, `remarks`."""
    stages, it = attempt.stages, outcome.iterate
    if outcome.status == "failed":
        finite = all(np.isfinite(a).all() for a in (it.x, it.u, it.z))
        reached = (it.x, it.u, it.z) if finite else (attempt.x, attempt.u, attempt.z)
        outcome.message = not_finite(stages, *reached) or outcome.message
    said = remarks(stages, it, outcome.status, is_judged)
    if outcome.converged and turns_too_far(stages, it):
        outcome.status, outcome.message = "failed", "no motion of the model"
    outcome.message = "; ".join((outcome.message, *said))


def remarks(stages: Stages, it: Iterate, status: str, is_judged: bool = True) -> list[str]:
    """Sentences on what is odd about a problem, or about a phase of several.

    Samples are stopped on purpose: why they did not end is not asked."""
    said = []
    if is_judged and status in ("iterations", "stalled"):
        if names := unlimited(stages.problem):
            said.append(f"nothing keeps {', '.join(names)} small: state limits, or a cost")
        if names := with_edges(stages.problem):
            said.append(
                f"{', '.join(names)}: has edges (if_else, abs, min, max, a table), round which iterations may go: smooth "
                "them, or take other steps or another `guess`"
            )
    said.append(turn_remark(stages, it))
    said.append((zigzag_remark if status in ("solved", "acceptable") else stiff_remark)(stages, it))
    return [text for text in said if text]


def waves(stages: Stages, size: float, turns: float) -> np.ndarray:
    """Cosines over the duration, of another frequency and phase for each control."""
    points, m = stages.scheme.points, len(stages.plant.controls)
    t = (stages.nodes[:-1, None] + stages.numbers[:, 1:2] * np.array(stages.control_places))[:, :, None]
    wave = size * np.cos(np.pi * turns * t * (1 + np.arange(m)) + np.arange(m))
    return wave.reshape(-1, points * m)


def unreached(stages: Stages, it: Iterate) -> list[str]:
    """Sentences on conditions at the end, and equations on the way, that controls do not change to first order."""
    if not all(np.isfinite(a).all() for a in (it.x, it.u, it.z)):
        return []
    said = redundant(stages, linearise(stages, it), stages.nodes)
    return [line[: line.index(text) + len(text)] for line in said for text in UNREACHED if text in line]


def in_time(attempt: Attempt, outcome: Outcome) -> None:
    """Says so where a time limit has ended the solve."""
    if isinstance(attempt.report, Deadline) and outcome.status == "interrupted" and attempt.report.is_over:
        outcome.status, outcome.message = attempt.report.outcome


def no_nearer(outcome: Outcome) -> None:
    """Says so where many iterations have brought constraints no nearer: there may be no motion that keeps them."""
    off = np.array([i.infeasibility for i in outcome.history])
    off[~np.isfinite(off)] = np.inf
    half = len(off) // 2
    if outcome.status != "iterations" or half < MANY or outcome.infeasibility <= tuning.KEPT:
        return
    if off[half:].min() > NEARER * off[:half].min():
        outcome.message += (
            f"; constraints came no nearer in the last {len(off) - half}, so that perhaps no motion keeps them all: "
            "diagnosis() names some. A longer duration, wider limits or another `guess` may help"
        )


def _check_options(solver: str, options: Any) -> None:
    if solver not in ("ipopt", "fatrop"):
        raise UnsupportedError(f"solve: options are for solver='ipopt' and 'fatrop', and this is {solver!r}")
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise ArgumentError(
            f"solve: options is {options!r}, expected values by the names that {solver} has for them"
        )
    for name, argument in (("tol", "tolerance"), ("max_iter", "iterations")):
        if name in options:
            raise ArgumentError(f"solve: options: {name!r} is the argument `{argument}`")


def _is_solution(guess: Any, stages: Stages) -> bool:
    """Whether a guess already is a solution of these stages."""
    return (
        isinstance(guess, Solution)
        and guess.converged
        and guess.problem is stages.problem
        and guess.transcription == stages.scheme.name
        and np.array_equal(guess.stages.nodes, stages.nodes)
    )


def read_nodes(steps: int, given: Any) -> np.ndarray | None:
    if given is None:
        return None
    expected = f"expected {steps + 1} increasing fractions of the duration, from 0 to 1"
    try:
        nodes = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"solve: nodes is {given!r}, {expected}") from None
    if nodes.shape != (steps + 1,):
        raise ArgumentError(f"solve: nodes has shape {nodes.shape}, {expected}")
    if nodes[0] != 0 or nodes[-1] != 1 or not np.all(np.diff(nodes) > 0):
        at = next((k for k in range(steps) if not nodes[k] < nodes[k + 1]), None)
        what = (
            f"{nodes[at]:g} is followed by {nodes[at + 1]:g}"
            if at is not None
            else f"{nodes[0]:g} .. {nodes[-1]:g}"
        )
        raise ArgumentError(f"solve: nodes: {what}, {expected}")
    return nodes


# --- continuation -----------------------------------------------------------------------------------------------------

SMALLEST = 1 / 64
"""of the way between two values: shorter steps are not tried"""


@dataclass(frozen=True)
class Continuation:
    """`solutions` at `values`, as far as they were found; `success` if at all that were asked for."""

    values: tuple[Any, ...]
    solutions: tuple[Solution, ...]
    success: bool
    message: str
    solves: int
    """problems that were solved, with values in between"""

    @property
    def last(self) -> Solution:
        """The solution farthest along the way."""
        return self.solutions[-1]

    def __repr__(self) -> str:
        return f"<Continuation: {self.message}, {self.solves} problems solved>"


def continuation(
    make: Callable[[Any], Any],
    values: Sequence[Any],
    steps: int = 100,
    *,
    guess: Any = None,
    **options: Any,
) -> Continuation:
    """Solve `make(value)` for each of `values`, each from the solution before.

    `make` returns a problem, or phases, for a number (or an array): a radius of an obstacle, gravity, a duration. Where a
    solve does not succeed, values in between are tried, up to a 64th of the way. `guess` is for the first
    one; `options` are those of `alembert.optimal.solve`.
    """
    try:
        given = [float(v) if np.ndim(v) == 0 else np.asarray(v, dtype=float) for v in values]
    except (TypeError, ValueError):
        raise ArgumentError(f"continuation: values is {values!r}, expected numbers (or arrays)") from None
    if not given:
        raise ArgumentError(
            "continuation: values is empty, expected numbers to solve for, one after the other"
        )
    if not callable(make):
        raise ArgumentError(f"continuation: make is {make!r}, expected a function from a value to a Problem")
    count = 0

    def solve(value: Any, start: Any) -> Any:
        nonlocal count
        count += 1
        from alembert.optimal.phases import Phases

        problem: Any = make(value)
        if not isinstance(problem, Problem | Phases):
            raise ArgumentError(
                f"continuation: make({value!r}) is a {type(problem).__name__}, expected a Problem or Phases"
            )
        return problem.solve(steps, guess=start, **options)

    found = [solve(given[0], guess)]
    if not found[0].success:
        message = f"no solution at the first value, {given[0]}: {found[0].message}"
        return Continuation((given[0],), tuple(found), False, message, count)
    for before, value in pairwise(given):
        here, share, last = 0.0, 1.0, found[-1]
        while here < 1.0:
            to = min(1.0, here + share)
            new = solve(value if to == 1.0 else before + to * (value - before), last)
            if new.success:
                here, last, share = to, new, 2 * share
                continue
            if new.status == "interrupted" or share <= SMALLEST:
                at = before + here * (value - before)
                message = f"stopped at {at} on the way to {value}: {new.message}"
                done = tuple(given[: len(found)])
                if here > 0:
                    found, done = [*found, last], (*done, at)
                return Continuation(done, tuple(found), False, message, count)
            share /= 2
        found.append(last)
    return Continuation(tuple(given), tuple(found), True, f"solved at all {len(given)} values", count)
