"""From a problem to its solution: transcribe, guess, solve, and check by simulation."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Literal

import numpy as np

from alembert.engine import loader
from alembert.errors import ArgumentError, UnsupportedError
from alembert.model.printing import unknown
from alembert.optimal import chatter, turning
from alembert.optimal import guess as guesses
from alembert.optimal.evaluation import Evaluation
from alembert.optimal.finite import locate
from alembert.optimal.iterations import Iteration, reporter
from alembert.optimal.problem import Problem
from alembert.optimal.schemes import scheme
from alembert.optimal.solution import Solution
from alembert.optimal.splines import solve_splines
from alembert.optimal.stages import Stages, cut
from alembert.optimal.sweep import Outcome, Sweep
from alembert.optimal.warm import Warm, same_nodes, warm

SOLVERS = ("sweep", "ipopt", "fatrop")
LARGEST_EXACT = 6000
"""operations of a stage; beyond, second derivatives of the dynamics cost more than they save"""


def solve(
    problem: Problem,
    steps: int = 100,
    *,
    transcription: str | None = None,
    solver: Literal["sweep", "ipopt", "fatrop"] = "sweep",
    guess: Any = None,
    nodes: Any = None,
    hessian: Literal["auto", "exact", "gauss-newton"] = "auto",
    tolerance: float = 1e-8,
    iterations: int = 500,
    progress: bool | Callable[[Iteration], Any] | None = None,
    control_points: int | None = None,
) -> Solution:
    """Solve `problem` with `steps` intervals of time.

    `transcription`: "dmoc" (the default for models), "euler", "rk4", "midpoint", "trapezoidal",
    "hermite-simpson" (the default for systems), "radau"; the implicit ones also in momenta
    ("midpoint-momenta", ...); "dmocc" is DMOC in redundant coordinates, "splines" (with `control_points`) that of
    `solve_splines`. `solver`: "sweep", our own, or "ipopt" or "fatrop" from CasADi. `guess`: a
    solution (also of another number of steps; the sweep also begins with its multipliers), a simulation, arrays
    `{"time", "q", "v", "controls"}` or a file
    of `solution.save`; by default straight from start to end. `nodes`: where
    intervals begin and end, as fractions of the duration. `hessian`: "exact" has the curvature of the
    dynamics, "gauss-newton" has not; "auto" chooses by the size of the model. `progress` prints a line per
    iteration (by default on a terminal), or is called with each.

    A solution is returned also when the solver did not succeed: `solution.success` and `solution.message` say
    so, `solution.diagnosis()` which constraints are violated where. Interrupting (Ctrl-C) returns the
    iterate that the sweep had reached.
    """
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise ArgumentError(f"solve: steps is {steps!r}, expected a positive number of intervals")
    if solver not in SOLVERS:
        raise ArgumentError(unknown("solve: no solver", solver, SOLVERS))
    if not (isinstance(tolerance, int | float) and 0 < tolerance < 1):
        raise ArgumentError(f"solve: tolerance is {tolerance!r}, expected a number between 0 and 1")
    if isinstance(iterations, bool) or not isinstance(iterations, int | np.integer) or iterations < 0:
        raise ArgumentError(f"solve: iterations is {iterations!r}, expected a whole number, 0 or more")
    if hessian not in ("auto", "exact", "gauss-newton"):
        raise ArgumentError(unknown("solve: no hessian", hessian, ("auto", "exact", "gauss-newton")))
    if transcription == "splines":
        if solver != "sweep" or nodes is not None or hessian != "auto":
            raise UnsupportedError(
                "solve: transcription 'splines' has its own solver and Hessian, and even steps; leave solver, nodes and "
                "hessian out"
            )
        own: dict[str, Any] = {} if control_points is None else {"control_points": control_points}
        own |= {"guess": guess, "tolerance": tolerance, "iterations": iterations, "progress": progress}
        return solve_splines(problem, int(steps), **own)
    if control_points is not None:
        raise ArgumentError("solve: `control_points` is for transcription='splines'")
    name = transcription or ("dmoc" if problem.model is not None else "hermite-simpson")
    stages = cut(problem, scheme(name), int(steps), _nodes(int(steps), nodes))
    start = guesses.make(problem, guess)
    if solver != "sweep" and hessian == "gauss-newton":
        raise UnsupportedError(
            f"solve: {solver} takes exact Hessians only; hessian='gauss-newton' is for solver='sweep'"
        )
    small = stages.stage.n_instructions() <= LARGEST_EXACT
    exact = hessian == "exact" or (hessian == "auto" and (small or solver != "sweep"))
    report = reporter(progress)
    x, u, z = guesses.place(stages, start)
    known = warm(stages, guess)
    if known is not None and same_nodes(stages, guess):
        it = guess._outcome.iterate
        x, u, z = it.x, it.u, it.z
    begin = known if solver == "sweep" else _is_warm(guess, stages)
    with loader.spoken() if progress is True else nullcontext():
        outcome = _SOLVE[solver](stages, x, u, z, exact, tolerance, iterations, report, begin)
        if isinstance(begin, Warm) and outcome.status in ("stalled", "failed"):  # others may lead elsewhere
            outcome = _SOLVE[solver](stages, x, u, z, exact, tolerance, iterations, report, None)
    solved, it = outcome.status in ("solved", "acceptable"), outcome.iterate
    if outcome.status == "failed":
        reached = (it.x, it.u, it.z) if all(np.isfinite(a).all() for a in (it.x, it.u, it.z)) else (x, u, z)
        outcome.message = locate(stages, *reached) or outcome.message
    if solved and turning.is_beyond(stages, it):
        outcome.status, outcome.message = "failed", "no motion of the model"
    remarks = (turning.sentence(stages, it), chatter.sentence(stages, it) if solved else "")
    outcome.message = "; ".join(filter(None, (outcome.message, *remarks)))
    return Solution(problem, stages, outcome, solver, name, "exact" if exact else "gauss-newton")


def _is_warm(guess: Any, stages: Stages) -> bool:
    """Whether a guess already is a solution of these stages."""
    return (
        isinstance(guess, Solution)
        and guess.success
        and guess.problem is stages.problem
        and guess.transcription == stages.scheme.name
        and np.array_equal(guess.stages.nodes, stages.nodes)
    )


def _nodes(steps: int, given: Any) -> np.ndarray | None:
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


def _sweep(
    stages: Stages,
    x: Any,
    u: Any,
    z: Any,
    exact: bool,
    tolerance: float,
    iterations: int,
    report: Any,
    known: Warm | None,
) -> Outcome:
    began = time.perf_counter()
    evaluation = Evaluation(stages, exact=exact)
    method = Sweep(stages, evaluation, tolerance=tolerance, iterations=iterations, report=report)
    outcome = method.solve(x, u, z, known)
    outcome.seconds["with compiling"] = time.perf_counter() - began
    return outcome


def _casadi(solver: str) -> Callable[..., Outcome]:
    def run(stages: Stages, x: Any, u: Any, z: Any, exact: bool, *options: Any) -> Outcome:
        from alembert.optimal.nlp import solve_nlp

        return solve_nlp(stages, x, u, z, solver, *options)

    return run


_SOLVE: dict[str, Callable[..., Outcome]] = {
    "sweep": _sweep,
    "ipopt": _casadi("ipopt"),
    "fatrop": _casadi("fatrop"),
}
