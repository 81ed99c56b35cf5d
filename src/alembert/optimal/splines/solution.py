"""Spline shooting: the control points of B-splines that the driven joints follow are optimised (Sohl and Bobrow 2001).

There are few unknowns, and every iterate is a motion that the equations of motion allow: only the conditions at the
ends and the limits at the nodes are left to the solver. The minimum is that among the splines, above the one
among all motions and falling towards it with more control points. The paper adds the conditions on passive joints to
the cost, with weights; here that is only where the search starts, and they are then kept exactly.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from alembert.arguments import whole
from alembert.errors import ArgumentError, NumericalError
from alembert.optimal import guess as guesses
from alembert.optimal.diagnosis import Dependencies, Violation, badly_scaled, violated
from alembert.optimal.outcome import Iteration, IterationLog, interruptible, reporter
from alembert.optimal.problem import Problem
from alembert.optimal.solution import Solution
from alembert.optimal.splines.conditions import Adjoint, SplineRows
from alembert.optimal.splines.shooting import Shooting, SplineMotion
from alembert.optimal.splines.trust_region import TrustRegion

Array = np.ndarray
MESSAGES = {
    "solved": "converged",
    "acceptable": "converged to ten times the tolerance, beyond which rounding does not let it",
    "iterations": "not converged; raise `iterations`, or give a better `guess`",
    "interrupted": "interrupted; this is the best iterate that was reached",
    "stalled": "no step makes progress; try another `guess`, or a larger `tolerance`",
    "infeasible": "no step brings the conditions nearer; they may contradict each other: try another `guess`, or more "
    "`control_points`",
}


@dataclass(frozen=True, eq=False)
class Found:
    """What a search ends with: unknowns, multipliers of the rows, why it ended, and its way."""

    z: Array
    y: Array
    status: str
    history: list[Iteration]


class SplineSolution(Solution):
    """The motion at the nodes, and the splines: `coefficients` (driven, control points) on `knots` of the share t/T.

    `controls` are means over the intervals as in other solutions; `node_controls` and `control_at(t)` have them
    at the nodes and in between.
    """

    _in_momenta = False

    def __init__(self, rows: SplineRows, found: Found, seconds: dict[str, float]) -> None:
        shooting = rows.shooting
        self.problem, self._shooting, self._rows = shooting.problem, shooting, rows
        self.solver, self.transcription, self.hessian = "trust region", "splines", "differences"
        self.unknowns, self._multipliers = found.z, found.y
        self.knots, self.degree = shooting.knots, shooting.degree
        self._motion = motion = rows.motion(found.z)
        self.coefficients, self._duration = motion.coefficients, motion.T
        self.cost, self.infeasibility = motion.cost, rows.infeasibility(found.z)
        self.seconds, self.history = seconds, found.history
        self.node_controls = motion.controls
        self._states = shooting.configurations(motion)
        self._status, self._message = found.status, MESSAGES[found.status]
        if not self.success:
            self._message += f" (conditions off by {self.infeasibility:.1e})"

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
    def _between(self) -> scipy.interpolate.CubicSpline:
        """Efforts over the shares of the time, from those at the nodes."""
        return scipy.interpolate.CubicSpline(np.arange(self.steps + 1) / self.steps, self.node_controls)

    @cached_property
    def controls(self) -> Array:
        """(N, m): means over the intervals."""
        return np.diff(self._between.antiderivative()(self._between.x), axis=0) * self.steps

    def control_within(self, k: Any, share: Any) -> Array:
        """The controls in interval k, at a share from 0 to 1 of it."""
        return np.asarray(self._between((np.asarray(k) + share) / self.steps))

    def dimensions(self) -> tuple[int, int]:
        """Unknowns and equations."""
        return len(self.unknowns), int(np.sum(self._rows.lower == self._rows.upper))

    # --- what else is known --------------------------------------------------------------------------------------------

    @cached_property
    def _adjoint(self) -> Adjoint:
        """Of the Lagrangian."""
        return self._rows.lagrangian(self.unknowns, 1.0, self._multipliers)

    @property
    def costates(self) -> Array:
        """(N, passive q and v): how the cost depends on the passive joints at each next node."""
        return self._adjoint.costates[1:]

    @property
    def multipliers(self) -> dict[str, Array]:
        """Of conditions at the ends, and of bounds at the nodes (positive at the upper one, negative at the lower one)."""
        found: dict[str, list[float]] = {}
        for name, y in zip(self._rows.names, self._multipliers, strict=True):
            found.setdefault(name.removeprefix("bound on "), []).append(y)
        ends = ("start ", "end ", "periodic ")
        return {name: np.array(own[0] if name.startswith(ends) else own) for name, own in found.items()}

    def sensitivities(self) -> dict[str, float]:
        """How the optimal cost changes with each parameter: the slope of the Lagrangian."""
        names = [name for name, _ in self.problem.plant.parameters]
        return dict(zip(names, map(float, self._adjoint.parameters), strict=True))

    # --- checks --------------------------------------------------------------------------------------------------------

    def violations(self, tolerance: float = 1e-6) -> list[Violation]:
        """Conditions and limits that are off by more than `tolerance`, the worst first."""
        rows = self._rows
        off = rows.off(self.unknowns)
        found = [
            Violation(name, float(share * self.duration), float(w) if np.isfinite(w) else np.inf)
            for name, share, w in zip(rows.names, rows.fractions, off, strict=True)
            if not w <= tolerance
        ]
        return sorted(found, key=lambda w: -w.amount)

    def diagnosis(self, most: int = 8) -> str:
        """In words: what is violated where by how much, where the motion runs away, which conditions repeat or contradict
        others or cannot be reached, and which are badly scaled."""
        rows = self._rows
        lines = [f"{self.status}: {self.message}"]
        where = runs_away(self._shooting, self._motion)
        if where:
            lines.append(f"the motion is not finite: {where}")
        violations = self.violations()
        lines += violated(violations, most)
        J, values = rows.jacobian(self.unknowns), rows.values(self.unknowns)
        if np.isfinite(J).all() and np.isfinite(values).all():
            lines += self._dependencies(J, values)[:most]
            lines += self._scales(J)[:most]
        active = {
            name: y for name, y in self.multipliers.items() if y.ndim and np.abs(y).max(initial=0.0) > 1e-4
        }
        if active:
            lines.append(f"bounds that hold somewhere: {', '.join(active)}")
        if not self.success and not violations and not where:
            lines.append("the motion is feasible but not optimal: raise `iterations`, or loosen `tolerance`")
        return "\n".join(lines)

    def _dependencies(self, J: Array, values: Array) -> list[str]:
        """Equations that repeat others at the start, and those that no control point reaches apart from others."""
        rows, found = self._rows, Dependencies()
        equations = np.flatnonzero(rows.lower == rows.upper)
        first = equations[equations < rows.at["start"].stop]
        names = np.array(rows.names, dtype=object)
        off = values - rows.lower
        named = found.add(list(names[first]), J[first], off[first], 0.0)
        rest = np.array([k for k in equations if k not in set(first[named])], dtype=int)
        if not self.success:
            found.add(list(names[rest]), J[rest], off[rest], self.duration, reached=True)
        return found.sentences()

    def _scales(self, J: Array) -> list[str]:
        rows = self._rows
        sizes: dict[str, tuple[float, float]] = {}
        for name, share, length in zip(rows.names, rows.fractions, np.linalg.norm(J, axis=1), strict=True):
            if length > sizes.get(name, (0.0, 0.0))[0]:
                sizes[name] = float(length), float(share * self.duration)
        return badly_scaled(sizes)


def runs_away(shooting: Shooting, motion: SplineMotion) -> str:
    """Where a motion stops being finite; "" if it is all along."""
    parts = [
        ("", shooting.passive_names, motion.x[:, -shooting.n :] if shooting.n else motion.x[:, :0]),
        ("effort of ", shooting.plant.controls, motion.controls),
        ("", [row.name for row in shooting.path_rows], motion.path),
    ]
    times = np.arange(shooting.steps + 1) / shooting.steps * motion.T
    for k, t in enumerate(times):
        for what, names, values in parts:
            bad = np.flatnonzero(~np.isfinite(values[k]))
            if len(bad):
                return f"{what}{names[bad[0]]} from t = {t:.4g} s on"
    return "" if np.isfinite(motion.cost) else "the cost"


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
    for name, value, least, why in (
        *(("steps", steps, 1, ""), ("degree", degree, 3, "; accelerations of lower degrees jump")),
        *(("control_points", control_points, degree + 1, " (degree + 1)"), ("iterations", iterations, 1, "")),
    ):
        whole("solve_splines", name, value, f"a whole number of at least {least}{why}", least=least)
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
    return scipy.optimize.least_squares(
        residuals, z, slopes, (low, high), x_scale="jac", max_nfev=100, ftol=1e-4
    ).x


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
