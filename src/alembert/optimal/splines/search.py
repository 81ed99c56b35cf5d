"""Spline shooting: the control points of B-splines that the driven joints follow are optimised (Sohl and Bobrow 2001).

There are few unknowns, and every iterate is a motion that the equations of motion allow: only the conditions at the
ends and the limits at the nodes are left to the solver. The minimum is that among the splines, above the one
among all motions and falling towards it with more control points. The paper adds the conditions on passive joints to
the cost, with weights; here that is only where the search starts, and they are then kept exactly.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from alembert.errors import ArgumentError, NumericalError
from alembert.optimal import guess as guesses
from alembert.optimal.outcome import Iteration, IterationLog, interruptible, reporter
from alembert.optimal.problem import Problem
from alembert.optimal.splines.conditions import SplineRows
from alembert.optimal.splines.shooting import Shooting
from alembert.optimal.splines.solution import Found, SplineSolution, runs_away
from alembert.optimal.splines.trust_region import TrustRegion

Array = np.ndarray
HEAVY = 100.0
"""the weight of the conditions against the efforts in `_approach`"""
NEAR, FEASIBLE = 0.1, 1e-3
"""the scaled error and the infeasibility up to which a search starts from a guess as it is: `_approach`, which knows efforts
but not the cost, would lead away from a solution of nearly the same problem"""


def solve_splines(
    problem: Problem,
    steps: int = 200,
    *,
    control_points: int = 16,
    degree: int = 5,
    guess: Any = None,
    tolerance: float = 1e-8,
    iterations: int = 500,
    progress: bool | Callable[[Iteration], Any] | None = None,
) -> SplineSolution:
    """Solve `problem` with B-splines of `degree` and `control_points` for each driven degree of freedom.

    The other joints are integrated over `steps` intervals by hybrid dynamics from the start; what is not stated of
    them there is found too. Limits are kept at the ends of the intervals. `guess` as for `problem.solve`: the motion
    of its driven joints is taken. Driven joints need plain coordinates, the others may be of any kind. `progress` as
    there; the same as `problem.solve(steps, transcription="splines", control_points=...)`.

    A solution is returned also when the solver did not succeed: `solution.success` and `solution.message` say so.
    Interrupting (Ctrl-C) returns the best iterate.
    """
    _whole("steps", steps, 1)
    _whole("degree", degree, 3, "; accelerations of lower degrees jump")
    _whole("control_points", control_points, degree + 1, " (degree + 1)")
    _whole("iterations", iterations, 1)
    if not (isinstance(tolerance, int | float) and 0 < tolerance < 1):
        raise ArgumentError(f"solve_splines: tolerance is {tolerance!r}, expected a number between 0 and 1")
    began = time.perf_counter()
    shooting = Shooting(problem, int(steps), int(control_points), int(degree))
    z = _fitted(shooting, guesses.make(problem, guess))
    rows = SplineRows(shooting)
    where = runs_away(shooting, rows.motion(z))
    if where:
        raise NumericalError(
            f"solve_splines: the motion of the guess is not finite ({where}); give another `guess`, or more `steps`"
        )
    found = _search(rows, z, tolerance, int(iterations), reporter(progress))
    return SplineSolution(rows, found, {"total": time.perf_counter() - began})


def _approach(rows: SplineRows, z: Array) -> Array:
    """Towards a motion that keeps the conditions at the ends: they and the efforts as least squares.

    That is the cost (83) of the paper, and a better start than a guess that leaves the passive joints hanging.
    """
    problem, shooting = rows.shooting.problem, rows.shooting
    at = rows.at["path"].start
    lower, upper = rows.lower[:at], rows.upper[:at]

    def residuals(z: Array) -> Array:
        motion, ends = rows.motion(z), rows.values(z)[:at]
        off = np.minimum(ends - lower, 0) + np.maximum(ends - upper, 0)
        found = [motion.controls.ravel() / np.sqrt(shooting.steps), HEAVY * off]
        return np.nan_to_num(np.concatenate(found), nan=1e8, posinf=1e8, neginf=-1e8)

    def slopes(z: Array) -> Array:
        ends, slope = rows.values(z)[:at], rows.jacobian(z)[:at]
        off = (ends < lower) | (ends > upper) | (lower == upper)
        efforts = rows.tangents(z).controls.reshape(-1, len(z)) / np.sqrt(shooting.steps)
        return np.nan_to_num(np.concatenate([efforts, HEAVY * off[:, None] * slope]))

    low, high = _range(problem, len(z))
    if problem.is_free:
        z = np.append(z[:-1], np.clip(z[-1], low[-1] + 1e-9, high[-1] - 1e-9))
    return least_squares(residuals, z, slopes, (low, high), x_scale="jac", max_nfev=100, ftol=1e-4).x


def _search(rows: SplineRows, z: Array, tolerance: float, iterations: int, report: Any) -> Found:
    """From z; a guess that is no solution of nearly the same problem is first brought near the conditions."""
    low, high = _range(rows.shooting.problem, len(z))
    log = IterationLog(rows.lower, rows.upper, report)

    def see(z: Array, y: Array, slope: float, radius: float) -> bool:
        log.add(rows.motion(z).cost, rows.values(z), z, y, (slope, np.nan, radius))
        return log.stop

    method = TrustRegion(rows, low, high, tolerance, see)
    with interruptible(log):
        if method.error_at(z) > NEAR and rows.infeasibility(z) > FEASIBLE:
            z = _approach(rows, z)
        end = method.run(z, iterations)
    if log.failure is not None:
        raise log.failure
    if log.stop:
        assert log.best is not None
        return Found(*log.best, "interrupted", log.history)
    return Found(end.z, end.y, end.status, log.history)


def _range(problem: Problem, n: int) -> tuple[Array, Array]:
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    if problem.is_free:
        low[-1], high[-1] = problem.shortest, problem.longest
    return low, high


def _fitted(shooting: Shooting, guess: guesses.Guess) -> Array:
    """Unknowns near the guess, with the values and speeds that the problem states at the ends."""
    problem, where = shooting.problem, np.arange(shooting.steps + 1) / shooting.steps
    points = guess.at(problem, where)
    duration = float(np.clip(guess.duration, problem.shortest, problem.longest))
    stated = [
        ({row.component: row.lower for row in rows if row.is_equation and row.component}, node)
        for rows, node in ((problem.start, 0), (problem.end, -1))
    ]
    B, rate = shooting.basis[0, ::2], shooting.basis[1, ::2]
    columns = []
    for name, k in zip(problem.plant.controls, shooting.driven_q, strict=True):
        A, b = [B], [points[:, k]]
        for values, node in stated:
            for what, basis, scale in (("q", B, 1.0), ("v", rate, duration)):
                if f"{what} {name}" in values:
                    A.append(1e4 * basis[[node]])  # heavy: the ends are met, the middle is near
                    b.append(np.array([1e4 * scale * values[f"{what} {name}"]]))
        columns.append(np.linalg.lstsq(np.concatenate(A), np.concatenate(b))[0])
    tail = [np.array([duration])] if problem.is_free else []
    return np.concatenate([*columns, _moved(shooting, points[0]), *tail])


def _moved(shooting: Shooting, point: Array) -> Array:
    """d for a start at `point` of the plant."""
    nq, nv = shooting.model.nq, shooting.model.nv
    first = point.copy()
    first[shooting.passive_q], first[[nq + k for k in shooting.passive]] = np.split(
        shooting.first, [len(shooting.passive_q)]
    )
    d = shooting.plant.chart.difference(first, point)
    passive = [*shooting.passive, *(nv + k for k in shooting.passive)]
    return d[[passive[k] for k in shooting.open]]


def _whole(name: str, value: Any, least: int, why: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ArgumentError(
            f"solve_splines: {name} is {value!r}, expected a whole number of at least {least}{why}"
        )
