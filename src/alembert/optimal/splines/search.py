"""Spline shooting: the control points of B-splines that the driven joints follow are optimised (Sohl and Bobrow 2001).

There are few unknowns, and every iterate is a motion that the equations of motion allow: only the conditions at the
ends and the limits at the nodes are left to the solver. The minimum is that among the splines, above the one
among all motions and falling towards it with more control points. The paper adds the conditions on passive joints to
the cost, with weights; here that is only where the search starts, and they are then kept exactly.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
from scipy.optimize import least_squares

from alembert.errors import ArgumentError, NumericalError
from alembert.optimal import guess as guesses
from alembert.optimal.outcome import Iteration
from alembert.optimal.problem import Problem
from alembert.optimal.progress import reporter
from alembert.optimal.splines.rows import Rows
from alembert.optimal.splines.shooting import Shooting
from alembert.optimal.splines.solution import Found, SplineSolution, runs_away
from alembert.optimal.watching import Watch, interruptible

Array = np.ndarray
HEAVY = 100.0
"""the weight of the conditions against the efforts in `_approach`"""


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
    rows = Rows(shooting)
    where = runs_away(shooting, rows.motion(z))
    if where:
        raise NumericalError(
            f"solve_splines: the motion of the guess is not finite ({where}); give another `guess`, or more `steps`"
        )
    if rows.infeasibility(z) > 1e-3:
        z = _approach(rows, z)
    found = _search(rows, z, tolerance, int(iterations), reporter(progress))
    return SplineSolution(rows, found, {"total": time.perf_counter() - began})


def _approach(rows: Rows, z: Array) -> Array:
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


class _Callback(ca.Callback):
    """A Python function as one of CasADi's: arrays in, arrays out."""

    def __init__(self, name: str, inputs: list[Any], outputs: list[Any], function: Any) -> None:
        super().__init__()
        self._inputs, self._outputs, self._function = inputs, outputs, function
        self.construct(name, {})

    def get_n_in(self) -> int:
        return len(self._inputs)

    def get_n_out(self) -> int:
        return len(self._outputs)

    def get_sparsity_in(self, k: int) -> Any:
        return self._inputs[k][1]

    def get_sparsity_out(self, k: int) -> Any:
        return self._outputs[k][1]

    def get_name_in(self, k: int) -> str:
        return self._inputs[k][0]

    def get_name_out(self, k: int) -> str:
        return self._outputs[k][0]

    def eval(self, arguments: Any) -> Any:
        return self._function(*(np.array(x).ravel() for x in arguments))


def _search(rows: Rows, z: Array, tolerance: float, iterations: int, report: Any) -> Found:
    """Interior points (IPOPT), with the curvature of the Lagrangian from differences of its exact slope.

    Each slope is one backward sweep, and there are so few unknowns that this takes far fewer iterations than an
    estimate from the steps.
    """
    n, r = len(z), len(rows.lower)
    x, p = ("x", ca.Sparsity.dense(n, 1)), ("p", ca.Sparsity(0, 1))
    one, g = ca.Sparsity.dense(1, 1), ca.Sparsity.dense(r, 1)
    upper = ca.Sparsity.upper(n)

    def curvature(z: Array, _: Array, sigma: Array, y: Array) -> list[Any]:
        columns = []
        for k in range(n):
            step = np.zeros(n)
            step[k] = 1e-5 * max(1.0, abs(z[k]))
            plus, minus = (rows.lagrangian(z + s, sigma[0], y).z for s in (step, -step))
            columns.append((plus - minus) / (2 * step[k]))
        H = np.array(columns)
        return [ca.triu(ca.DM((H + H.T) / 2))]

    def with_slope(z: Array, _: Array) -> list[Any]:
        return [rows.motion(z).cost, rows.gradient(z)]

    functions = {
        "grad_f": _Callback("nlp_grad_f", [x, p], [("f", one), ("grad_f_x", x[1])], with_slope),
        "jac_g": _Callback(
            "nlp_jac_g",
            [x, p],
            [("g", g), ("jac_g_x", ca.Sparsity.dense(r, n))],
            lambda z, _: [rows.values(z), rows.jacobian(z)],
        ),
        "hess_lag": _Callback(
            "nlp_hess_l",
            [x, p, ("lam_f", one), ("lam_g", g)],
            [("triu_hess_gamma_x_x", upper)],
            curvature,
        ),
    }
    nlp = _Callback("nlp", [x, p], [("f", one), ("g", g)], lambda z, _: [rows.motion(z).cost, rows.values(z)])
    watch = Watch((n, r), rows.lower, rows.upper, report)
    options: dict[str, Any] = {
        **functions,
        "iteration_callback": watch,
        "no_nlp_grad": True,
        "calc_lam_p": False,
        "show_eval_warnings": False,
        "print_time": False,
        "error_on_fail": False,
        "ipopt": {
            "print_level": 0,
            "sb": "yes",
            "max_iter": iterations,
            "tol": tolerance,
            "bound_relax_factor": 0.0,
        },
    }
    solver = ca.nlpsol("splines", "ipopt", nlp, options)
    watch.solver = solver
    low, high = _range(rows.shooting.problem, n)
    with interruptible(watch):
        found = solver(x0=z, lbx=low, ubx=high, lbg=rows.lower, ubg=rows.upper)
    stats = solver.stats()
    history = _with_details(watch.history, stats.get("iterations", {}))
    z, y = found["x"].full()[:, 0], found["lam_g"].full()[:, 0]
    if watch.best is not None and not stats["success"]:
        z, y = watch.best
    return Found(z, y, stats["return_status"], history)


def _with_details(history: list[Iteration], details: Any) -> list[Iteration]:
    """What IPOPT tells only afterwards: slopes, barriers and steps."""
    names = {"slope": "inf_du", "barrier": "mu", "step": "alpha_pr", "shift": "regularization_size"}
    known = {own: details[name] for own, name in names.items() if name in details}
    more: list[dict[str, Any]] = [
        {own: float(column[k]) for own, column in known.items() if k < len(column)}
        for k in range(len(history))
    ]
    return [replace(i, **own) for i, own in zip(history, more, strict=True)]


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
