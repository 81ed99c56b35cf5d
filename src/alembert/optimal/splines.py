"""Spline shooting: the driven joints follow B-splines, whose control points are optimised (Sohl and Bobrow 2001).

There are few unknowns, and every iterate is a motion that the equations of motion allow: only the conditions at the
ends and the limits at the nodes are left to the solver. The minimum is that among the splines, above the one
among all motions and falling towards it with more control points. The paper adds the conditions on passive joints to
the cost, with weights; here that is only where the search starts, and they are then kept exactly.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import Any, NoReturn

import casadi as ca
import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import least_squares

from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.optimal import guess as guesses
from alembert.optimal.problem import Problem, Row
from alembert.optimal.progress import reporter
from alembert.optimal.shooting import Shooting, Value
from alembert.optimal.solution import Solution, Violation
from alembert.optimal.sweep import Iteration
from alembert.optimal.watching import Watch, interruptible

Array = np.ndarray
HEAVY = 100.0
"""the weight of the conditions against the efforts in `_approach`"""
REASONS = {
    "Solve_Succeeded": ("solved", "converged"),
    "Solved_To_Acceptable_Level": ("acceptable", "converged to an acceptable level"),
    "Maximum_Iterations_Exceeded": (
        "iterations",
        "not converged; raise `iterations`, or give a better `guess`",
    ),
    "User_Requested_Stop": ("interrupted", "interrupted; this is the iterate that was reached"),
}


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

    The other joints are integrated over `steps` intervals by hybrid dynamics from the start, which has to be
    stated for them; limits are kept at the ends of the intervals. `guess` as for `problem.solve`: the motion
    of its driven joints is taken. Driven joints need plain coordinates, the others may be of any kind. `progress` as
    there; the same as `problem.solve(steps, transcription="splines", control_points=...)`.

    A solution is returned also when the solver did not succeed: `solution.success` and `solution.message` say so.
    Interrupting (Ctrl-C) returns the iterate that was reached.
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
    first = rows.at(z)
    if not np.isfinite(first.cost):
        raise NumericalError(
            "solve_splines: the motion of the guess is not finite; give another `guess`, or more `steps`"
        )
    if guess is None and rows.infeasibility(z) > 1e-3:
        z = _approach(rows, z)
    z, reason, watch = _search(rows, z, tolerance, int(iterations), reporter(progress))
    seconds = {"total": time.perf_counter() - began}
    return SplineSolution(shooting, rows, z, reason, watch.history, tolerance, seconds)


def _approach(rows: Rows, z: Array) -> Array:
    """Towards a motion that keeps the conditions at the ends: they and the efforts as least squares.

    That is the cost (83) of the paper, and a better start than a guess that leaves the passive joints hanging.
    """
    problem, shooting = rows.shooting.problem, rows.shooting
    at = len(rows.lower)

    def residuals(z: Array) -> Array:
        value, ends = rows.at(z), rows.all(z)[0][:at]
        off = np.minimum(ends - rows.lower, 0) + np.maximum(ends - rows.upper, 0)
        found = [value.controls.ravel() / np.sqrt(shooting.steps), HEAVY * off]
        return np.nan_to_num(np.concatenate(found), nan=1e8, posinf=1e8, neginf=-1e8)

    def slopes(z: Array) -> Array:
        value, (ends, slope) = rows.at(z), rows.all(z)
        off = (ends[:at] < rows.lower) | (ends[:at] > rows.upper) | (rows.lower == rows.upper)
        efforts = value.controls_slope.reshape(-1, len(z)) / np.sqrt(shooting.steps)
        return np.concatenate([efforts, HEAVY * off[:, None] * slope[:at]])

    low, high = np.full(len(z), -np.inf), np.full(len(z), np.inf)
    if problem.is_free:
        low[-1], high[-1] = problem.shortest, problem.longest
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


def _search(rows: Rows, z: Array, tolerance: float, iterations: int, report: Any) -> tuple[Array, str, Watch]:
    """Interior points (IPOPT), with the curvature of the Lagrangian from differences of its exact slope.

    There are so few unknowns that this costs as much as a few dozen motions, and it takes far fewer iterations
    than an estimate from the steps.
    """
    n, r = len(z), len(rows.lower_all)
    x, p = ("x", ca.Sparsity.dense(n, 1)), ("p", ca.Sparsity(0, 1))
    one, g = ca.Sparsity.dense(1, 1), ca.Sparsity.dense(r, 1)
    upper = ca.Sparsity.upper(n)

    def curvature(z: Array, _: Array, sigma: Array, y: Array) -> list[Any]:
        columns = []
        for k in range(n):
            step = np.zeros(n)
            step[k] = 1e-5 * max(1.0, abs(z[k]))
            difference = rows.lagrangian(z + step, sigma[0], y) - rows.lagrangian(z - step, sigma[0], y)
            columns.append(difference / (2 * step[k]))
        H = np.array(columns)
        return [ca.triu(ca.DM((H + H.T) / 2))]

    nlp = _Callback("nlp", [x, p], [("f", one), ("g", g)], lambda z, _: [rows.at(z).cost, rows.all(z)[0]])
    functions = {
        "grad_f": _Callback(
            "nlp_grad_f",
            [x, p],
            [("f", one), ("grad_f_x", x[1])],
            lambda z, _: [rows.at(z).cost, rows.at(z).cost_slope],
        ),
        "jac_g": _Callback(
            "nlp_jac_g", [x, p], [("g", g), ("jac_g_x", ca.Sparsity.dense(r, n))], lambda z, _: [*rows.all(z)]
        ),
        "hess_lag": _Callback(
            "nlp_hess_l",
            [x, p, ("lam_f", one), ("lam_g", g)],
            [("triu_hess_gamma_x_x", upper)],
            curvature,
        ),
    }
    watch = Watch((n, r), rows.lower_all, rows.upper_all, report)
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
    problem = rows.shooting.problem
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    if problem.is_free:
        low[-1], high[-1] = problem.shortest, problem.longest
    with interruptible(watch):
        found = solver(x0=z, lbx=low, ubx=high, lbg=rows.lower_all, ubg=rows.upper_all)
    return found["x"].full()[:, 0], solver.stats()["return_status"], watch


class Rows:
    """The conditions as equations and as inequalities g(z) >= 0; keeps what was evaluated last."""

    def __init__(self, shooting: Shooting) -> None:
        self.shooting = shooting
        self._last: tuple[Array, Value] | None = None
        at_ends = [*shooting.start_rows, *shooting.end_rows]
        self.lower, self.upper = _bounds(at_ends)
        self.path_lower, self.path_upper = _bounds(shooting.path_rows)
        nodes = shooting.steps + 1
        self.lower_all = np.concatenate([self.lower, np.tile(self.path_lower, nodes)])
        self.upper_all = np.concatenate([self.upper, np.tile(self.path_upper, nodes)])

    def at(self, z: Array) -> Value:
        if self._last is None or not np.array_equal(self._last[0], z):
            self._last = np.array(z), self.shooting.evaluate(z)
        return self._last[1]

    def all(self, z: Array) -> tuple[Array, Array]:
        """Every row, those at the ends before those at the nodes, and their slopes."""
        found = self.at(z)
        values = np.concatenate([found.start, found.end, found.path.ravel()])
        slopes = [found.start_slope, found.end_slope, found.path_slope.reshape(-1, len(z))]
        return values, np.concatenate(slopes)

    def lagrangian(self, z: Array, sigma: float, y: Array) -> Array:
        """The slope of the Lagrangian with the multipliers y."""
        found = self.shooting.evaluate(z)
        k, j = len(found.start), len(found.start) + len(found.end)
        slope = sigma * found.cost_slope + y[:k] @ found.start_slope + y[k:j] @ found.end_slope
        return slope + y[j:] @ found.path_slope.reshape(-1, len(z))

    def infeasibility(self, z: Array) -> float:
        values, _ = self.all(z)
        largest = np.max(np.maximum(self.lower_all - values, values - self.upper_all), initial=0.0)
        return float(largest) if np.isfinite(largest) else np.inf


class SplineSolution(Solution):
    """The motion at the nodes, and the splines: `coefficients` (driven, control points) on `knots` of the share t/T.

    `controls` are means over the intervals as in other solutions; `node_controls` and `control_at(t)` have them
    at the nodes and in between.
    """

    def __init__(
        self,
        shooting: Shooting,
        rows: Rows,
        z: Array,
        reason: str,
        history: list[Iteration],
        tolerance: float,
        seconds: dict[str, float],
    ) -> None:
        self.problem, self._shooting, self._rows = shooting.problem, shooting, rows
        self.solver, self.transcription, self.hessian = "ipopt", "splines", "differences"
        self.unknowns = z
        self.knots, self.degree = shooting.knots, shooting.degree
        self.coefficients, self._duration = shooting.split(self.unknowns)
        value = rows.at(self.unknowns)
        self.cost, self.infeasibility = value.cost, rows.infeasibility(self.unknowns)
        self.seconds, self.history = seconds, history
        self.node_controls = value.controls
        self._states = shooting.configurations(self.unknowns, value.x)
        if reason in REASONS:
            self.status, self.message = REASONS[reason]
        else:
            self.status = "failed"
            self.message = (
                f"IPOPT stopped ({reason.replace('_', ' ').lower()}), conditions off by {self.infeasibility:.1e}; "
                "try another `guess`, or more `control_points`"
            )

    @property
    def steps(self) -> int:
        return self._shooting.steps

    @property
    def duration(self) -> float:
        """[s]"""
        return self._duration

    @cached_property
    def time(self) -> Array:
        """(N + 1,) [s]"""
        return np.arange(self.steps + 1) / self.steps * self.duration

    def control_at(self, t: Any) -> Array:
        """The controls at any time, interpolated between the nodes."""
        return np.asarray(self._between(np.clip(np.asarray(t, dtype=float) / self.duration, 0, 1)))

    @property
    def q(self) -> Array:
        """(N + 1, nq)"""
        return self._states[0]

    @property
    def v(self) -> Array:
        """(N + 1, nv)"""
        return self._states[1]

    @cached_property
    def momenta(self) -> Array:
        """Generalised momenta M(q) v, (N + 1, nv)."""
        model = self._model("momenta")
        return np.einsum("kij,kj->ki", model.mass_matrix(self.q, **self._given), self.v)

    @cached_property
    def _between(self) -> CubicSpline:
        """Efforts over the shares of the time, from those at the nodes."""
        return CubicSpline(np.arange(self.steps + 1) / self.steps, self.node_controls)

    @cached_property
    def controls(self) -> Array:
        """(N, m): means over the intervals."""
        return np.diff(self._between.antiderivative()(self._between.x), axis=0) * self.steps

    @cached_property
    def efforts(self) -> Array:
        """(N, nv): of all degrees of freedom, means over the intervals [N m, N]."""
        tau = np.zeros((self.steps, self._shooting.model.nv))
        tau[:, self._shooting.driven] = self.controls
        return tau

    def control_within(self, k: Any, share: Any) -> Array:
        """The controls in interval k, at a share from 0 to 1 of it."""
        return np.asarray(self._between((np.asarray(k) + share) / self.steps))

    def dimensions(self) -> tuple[int, int]:
        """Unknowns and equations."""
        return len(self.unknowns), int(np.sum(self._rows.lower == self._rows.upper))

    def violations(self, tolerance: float = 1e-6) -> list[Violation]:
        """Conditions and limits that are off by more than `tolerance`, the worst first."""
        s, rows, value = self._shooting, self._rows, self._rows.at(self.unknowns)
        found = []
        ends = np.concatenate([value.start, value.end])
        off = np.maximum(rows.lower - ends, ends - rows.upper)
        names = [f"start {row.name}" for row in s.start_rows] + [f"end {row.name}" for row in s.end_rows]
        times = [0.0] * len(s.start_rows) + [self.duration] * len(s.end_rows)
        found += [Violation(*w) for w in zip(names, times, map(float, off), strict=True)]
        outside = np.maximum(rows.path_lower - value.path, value.path - rows.path_upper)
        for k, row in enumerate(s.path_rows):
            found += [
                Violation(f"bound on {row.name}", float(t), float(w))
                for t, w in zip(self.time, outside[:, k], strict=True)
            ]
        return sorted((w for w in found if not w.amount <= tolerance), key=lambda w: -w.amount)

    def diagnosis(self, most: int = 8) -> str:
        """In words: what is violated by how much."""
        violations = self.violations()
        lines = [f"{self.status}: {self.message}"]
        if violations:
            lines.append(f"{len(violations)} constraints are off by more than 1e-6; the worst:")
            lines += [f"  {violation}" for violation in violations[:most]]
        else:
            lines.append("every constraint is kept to 1e-6")
        return "\n".join(lines)

    @property
    def costates(self) -> Array:
        """Not known here."""
        self._none("costates")

    @property
    def multipliers(self) -> dict[str, Array]:
        """Not known here."""
        self._none("multipliers")

    def sensitivities(self) -> dict[str, float]:
        """Not known here."""
        self._none("sensitivities")

    def _none(self, what: str) -> NoReturn:
        raise UnsupportedError(f"solution.{what}: splines give none; use problem.solve()")


def _fitted(shooting: Shooting, guess: guesses.Guess) -> Array:
    """Control points near the guess, with the values and speeds that the problem states at the ends."""
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
    return np.concatenate([*columns, *tail])


def _bounds(rows: list[Row]) -> tuple[Array, Array]:
    return np.array([row.lower for row in rows]), np.array([row.upper for row in rows])


def _whole(name: str, value: Any, least: int, why: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ArgumentError(
            f"solve_splines: {name} is {value!r}, expected a whole number of at least {least}{why}"
        )
