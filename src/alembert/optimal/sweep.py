"""`solver="sweep"`: a primal-dual interior point method whose linear algebra is the sweep in time.

Bounds become d - s = 0 with slacks s inside (lower, upper) and a logarithmic barrier mu ((3) and (4) of
`alembert.optimal.evaluation`), equations get multipliers with a proximal term ((3) of `alembert.optimal.barrier`); a
Newton step is the linear-quadratic problem of `alembert.optimal.time_sweep`.

The globalisation is that of Waechter and Biegler (Math. Program. 106, 2006): multipliers start at their least-squares
estimates, steps are shortened by the fraction to the boundary and a filter line search with second-order corrections,
negative curvature is met by a shift of the Hessian, and when no length of a step is acceptable, a restoration phase
makes steps of least size towards feasibility until the filter takes an iterate again. Where also these fail, the method
goes back to its most feasible iterate and on from there with shorter steps, and at last to the first one.
Gauss-Newton steps are accelerated (`alembert.optimal.anderson`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from alembert.optimal.anderson import Anderson
from alembert.optimal.barrier import Bounds
from alembert.optimal.evaluation import Evaluation
from alembert.optimal.iterations import Iteration
from alembert.optimal.line_search import Filter, Merit, Reference
from alembert.optimal.newton import Errors, Newton
from alembert.optimal.outcome import Iterate, Outcome, Residuals
from alembert.optimal.stages import Stages
from alembert.optimal.warm import Warm

__all__ = ["Bounds", "Iterate", "Iteration", "Outcome", "Residuals", "Sweep"]

Array = np.ndarray
ACCEPTABLE, PATIENCE = 1e4, 15
"""times the tolerance, an error that is accepted when so many iterations in a row have not made it smaller"""
CORRECTIONS, PROGRESS = 4, 0.99
"""second-order corrections of a step, and the factor by which each must reduce the infeasibility"""
SHORT, LEAST_FLOOR, LARGEST_FLOOR, RAISED, LOWERED = 0.01, 1e-4, 1e2, 4.0, 4.0
"""share of a step below which the next shifts are raised; the least and the largest of them, and the factors"""
SHORTEST_RESTORING, MOST_RETURNS, RETURNED, SAFE = 1e-4, 4, 3.0, 10.0
"""the shortest step of a restoration; how often the method goes back to a more feasible iterate, the shifts that it then
begins with, and the infeasibility, in the filter's `smallest`, below which the latest iterate counts as such"""
EXACTLY = 1e-12
"""the largest residual after which, with momenta, no further step is made: they are to be kept to rounding errors"""
RESTORED, LONGEST_RESTORATION = 0.9, 100
"""factor by which a restoration reduces the infeasibility, and its most steps"""


class Sweep:
    """See the module. `tolerance` is for the scaled optimality error."""

    def __init__(
        self,
        stages: Stages,
        evaluation: Evaluation,
        *,
        tolerance: float = 1e-8,
        iterations: int = 500,
        barrier: float = 0.1,
        report: Callable[[Iteration], Any] | None = None,
    ) -> None:
        self.stages, self.evaluation = stages, evaluation
        self.tolerance, self.iterations, self.report = tolerance, iterations, report
        self.bounded = bool(stages.path_names or stages.end_bounded)
        self.start_barrier = barrier

    def solve(self, x: Array, u: Array, z: Array, warm: Warm | None = None) -> Outcome:
        """From these states, controls and z, with the multipliers of `warm` or estimates of them."""
        began = time.perf_counter()
        x, u, z = (np.array(a, dtype=float, order="C") for a in (x, u, z))
        self.newton = newton = Newton(self.stages, self.evaluation, x, u, z, self.start_barrier)
        tangent = self.evaluation.tangent
        J = None if tangent.is_plain or warm is None else tangent.to_chart(x, self.stages.problem.parameters)
        if warm is None or not newton.begin(warm, J, self.tolerance):
            newton.estimate_multipliers()
        merit = newton.try_(0.0)
        newton.accept(0.0, 0.0)
        self.filter = Filter.around(merit.infeasibility)
        self._anderson = (
            None if self.evaluation.exact else Anderson(newton.sweep.x.size + newton.sweep.u.size)
        )
        history: list[Iteration] = []
        alpha, best, waited = 0.0, np.inf, 0
        self._restoring: Merit | None = None
        self._floor, self._returns = 0.0, 0
        self._safe = self._origin = (merit, newton.state())
        kept = self._origin
        slope, exactly = np.inf, self.evaluation.tangent.is_plain
        status, message = "iterations", f"stopped after {self.iterations} iterations"
        try:
            for number in range(self.iterations + 1):
                newton.linearise()
                errors = newton.errors(merit, self.tolerance)
                slope, error = errors.slope, errors.error(0.0)
                now = time.perf_counter() - began
                history.append(
                    Iteration(number, merit.cost, merit.worst, slope, self._shown, alpha, newton.shift, now)
                )
                if self.report is not None:
                    self.report(history[-1])
                if not (math.isfinite(slope) and merit.is_finite):
                    status, message = "failed", newton.locate()
                    break
                near = error <= self.tolerance
                if near and (exactly or merit.worst <= EXACTLY or number == self.iterations):
                    status, message = "solved", "solved"
                    break
                exactly = exactly or near
                best, waited = (error, 0) if error < 0.9 * best else (best, waited + 1)
                if waited > PATIENCE and error <= ACCEPTABLE * self.tolerance:
                    status, message = acceptable(error)
                    break
                if number == self.iterations:
                    break
                if self._restoring is None:
                    merit = self._lower_barrier(errors, merit)
                    found = self._advance(merit)
                else:
                    found = self._restore(merit)
                if found is None and near:
                    status, message = "solved", "solved"
                    break
                if found is None:
                    status, message = (
                        acceptable(error) if error <= ACCEPTABLE * self.tolerance else self._stalled
                    )
                    break
                merit, alpha = found
                safe = merit.infeasibility <= max(self._safe[0].infeasibility, SAFE * self.filter.smallest)
                better = merit.rank < kept[0].rank
                if safe or better:
                    state = (merit, newton.state())
                    self._safe = state if safe else self._safe
                    kept = state if better else kept
        except KeyboardInterrupt:
            status, message = "interrupted", "interrupted; this is the best iterate so far"
            merit, slope = self._return_to(kept)
        newton.seconds["total"] = time.perf_counter() - began
        return Outcome(
            *(status, message, newton.it, merit.cost, merit.worst, slope, history),
            *(self._gains(), newton.residuals, newton.scale, dict(newton.seconds)),
        )

    def _return_to(self, kept: tuple[Merit, tuple[Array, ...]]) -> tuple[Merit, float]:
        """An earlier iterate, with the slope there."""
        self.newton.return_to(kept[1])
        self.newton.linearise()
        return kept[0], self.newton.errors(kept[0], self.tolerance).slope

    def _gains(self) -> Array:
        """The gains of the last sweep; they and the costates leave in the coordinates of the stages' chart."""
        newton, tangent = self.newton, self.evaluation.tangent
        gains = newton.sweep.gains.copy()
        if tangent.is_plain or not np.isfinite(gains).all():
            return gains
        J = tangent.to_chart(newton.it.x, self.stages.problem.parameters)
        newton.it.costates[...] = np.linalg.solve(np.swapaxes(J, 1, 2), newton.it.costates[:, :, None])[
            :, :, 0
        ]
        return np.swapaxes(np.linalg.solve(np.swapaxes(J[:-1], 1, 2), np.swapaxes(gains, 1, 2)), 1, 2)

    @property
    def _shown(self) -> float:
        return self.newton.mu if self.bounded else 0.0

    @property
    def _stalled(self) -> tuple[str, str]:
        return "stalled", "no step makes progress: the constraints may contradict each other"

    def _lower_barrier(self, errors: Errors, merit: Merit) -> Merit:
        """A smaller barrier where the problem with the present one is solved well enough; the filter then begins anew."""
        newton, least = self.newton, self.tolerance / 11
        mu = newton.mu
        while errors.error(mu) <= 10 * mu and mu > least:
            mu = max(least, min(0.2 * mu, mu**1.5))
        if mu == newton.mu:
            return merit
        change = newton.barrier(mu) - newton.barrier(newton.mu) if self.bounded else 0.0
        newton.mu = mu
        self.filter.clear()
        if self._anderson is not None:
            self._anderson.clear()
        return Merit(merit.infeasibility, merit.objective + change, merit.cost, merit.worst)

    def _advance(self, merit: Merit) -> tuple[Merit, float] | None:
        """A Newton step, as long as the filter takes it; or the first step of a restoration."""
        newton = self.newton
        if not newton.step(merit, self._floor):
            return self._restore(merit)
        found = self._accelerated(merit) or self._search(merit)
        if found is not None:
            return found
        if merit.worst > self.tolerance:
            self.filter.remember(merit)
            newton.linearise()  # corrections have changed right-hand sides
            return self._restore(merit)
        for _ in range(6):  # feasible, and no descent: the quadratic model is too good to be true
            newton.linearise()
            if not newton.step(merit, max(1e-4, 10 * newton.shift)):
                return None
            found = self._search(merit)
            if found is not None:
                return found
        return None

    def _accelerated(self, merit: Merit) -> tuple[Merit, float] | None:
        """A step in full from what the last ones have taught, if the filter takes it."""
        if self._anderson is None:
            return None
        newton, step = self.newton, self.newton.direction()
        proposed = self._anderson.propose(step)
        if proposed is None:
            return None
        newton.redirect(proposed)
        alpha, dual, slope = newton.lengths(max(0.99, 1 - newton.mu))
        reference = Reference(merit, slope, self.filter)
        trial = newton.try_(alpha)
        if reference.takes(alpha, trial):
            return self._take(reference, alpha, alpha, dual, trial)
        newton.redirect(step)
        return None

    def _search(self, merit: Merit) -> tuple[Merit, float] | None:
        newton = self.newton
        fraction = max(0.99, 1 - newton.mu)
        alpha, dual, slope = newton.lengths(fraction)
        reference = Reference(merit, slope, self.filter)
        shortest, longest = reference.shortest, alpha
        while alpha >= shortest:
            trial = newton.try_(alpha)
            if reference.takes(alpha, trial):
                self._adapt(alpha / longest)
                return self._take(reference, alpha, alpha, dual, trial)
            grew = alpha == longest and trial.is_finite and trial.infeasibility >= merit.infeasibility
            if grew and self.evaluation.exact:  # else the curvature that is left out is the greater error
                found = self._correct(reference, alpha, trial, fraction)
                if found is not None:
                    return found
            alpha /= 2
        return None

    def _adapt(self, share: float) -> None:
        """A step that had to be shortened much went beyond where the quadratic model holds: shift the next ones more."""
        if share < SHORT:
            self._floor = min(max(LEAST_FLOOR, RAISED * max(self._floor, self.newton.shift)), LARGEST_FLOOR)
        elif share == 1.0:
            self._floor = self._floor / LOWERED if self._floor > LEAST_FLOOR else 0.0

    def _take(
        self, reference: Reference, tested: float, alpha: float, dual: float, trial: Merit
    ) -> tuple[Merit, float]:
        reference.accept(tested, trial)
        if self._anderson is not None:
            self._anderson.moved(alpha * self.newton.direction() if alpha != 1 else self.newton.direction())
        self.newton.accept(alpha, dual)
        return trial, alpha

    def _correct(
        self, reference: Reference, longest: float, trial: Merit, fraction: float
    ) -> tuple[Merit, float] | None:
        """Second-order corrections of the step, which was tried in full."""
        newton, alpha = self.newton, longest
        kept = newton.keep()
        newton.begin_corrections()
        before = np.inf
        for _ in range(CORRECTIONS):
            if not trial.is_finite or trial.infeasibility > PROGRESS * before:
                break
            before = trial.infeasibility
            if not newton.correct(alpha):
                break
            alpha, dual, _ = newton.lengths(fraction)
            trial = newton.try_(alpha)
            if reference.takes(longest, trial):
                self._adapt(1.0)
                return self._take(reference, longest, alpha, dual, trial)
        newton.again(kept)
        return None

    def _restore(self, merit: Merit) -> tuple[Merit, float] | None:
        """A step of the restoration phase, which ends when the filter takes what it reaches."""
        newton = self.newton
        if self._restoring is None:
            self._restoring, self._restoration_steps = merit, 0
            if self._anderson is not None:
                self._anderson.clear()
        self._restoration_steps += 1
        if self._restoration_steps > LONGEST_RESTORATION or not newton.step_to_feasibility(merit):
            return self._go_back()
        alpha, _, _ = newton.lengths(0.99)
        while alpha > SHORTEST_RESTORING:
            found = newton.try_(alpha)
            if found.is_finite and found.infeasibility <= (1 - 1e-4 * alpha) * merit.infeasibility:
                newton.accept(0.0, 0.0)
                enough = found.infeasibility <= RESTORED * self._restoring.infeasibility
                if (enough or found.worst <= self.tolerance) and self.filter.allows(found):
                    self._restoring, self._floor = None, 0.0
                    newton.estimate_multipliers()
                return found, alpha
            alpha /= 2
        return self._go_back()

    def _go_back(self) -> tuple[Merit, float] | None:
        """When a restoration fails: from the most feasible iterate so far, go on with shorter steps.

        After some such returns, once from the first iterate again, with trials that leave z where a step puts it.
        """
        newton = self.newton
        if self._returns == MOST_RETURNS:
            if not (newton.it.z.size and newton.inner[0]):
                return None
            self._safe, self._returns, newton.inner[0] = self._origin, -1, 0.0
        merit, state = self._safe
        self._returns += 1
        newton.return_to(state)
        newton.estimate_multipliers()
        self.filter = (
            Filter(max(2 * merit.infeasibility, self.filter.largest / 10), self.filter.smallest)
            if self._returns
            else Filter.around(merit.infeasibility)
        )
        self._restoring = None
        self._floor = min(RETURNED**self._returns, LARGEST_FLOOR) if self._returns else 0.0
        found = newton.try_(0.0)
        newton.accept(0.0, 0.0)
        return found, 0.0


def acceptable(error: float) -> tuple[str, str]:
    """Status and message of an iterate that is nearly a solution."""
    return "acceptable", f"stopped at the error {error:.1e}: rounding allows no better step"
