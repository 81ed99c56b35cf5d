"""`solver="sweep"`: a primal-dual interior point method whose linear algebra is the sweep in time.

Bounds become d - s = 0 with slacks s inside (lower, upper) and a logarithmic barrier mu ((1) and (2) of
`alembert.optimal.search_graphs`), equations get multipliers with a proximal term ((3) of `alembert.optimal.barrier`); a
Newton step is the linear-quadratic problem of `alembert.optimal.time_sweep`.

The globalisation is that of Waechter and Biegler (Math. Program. 106, 2006): multipliers start at their least-squares
estimates, steps are shortened by the fraction to the boundary and a filter line search with second-order corrections,
negative curvature is met by a shift of the Hessian, and when no length of a step is acceptable, a restoration phase
looks for a feasible point with a barrier of its own until the filter takes an iterate again. Where also this fails, the
method goes back to its most feasible iterate and on from there with shorter steps, and at last to the guess.

Trials settle z ((1) of `alembert.optimal.stages`). Most random starts take fewer iterations so, but what f then makes of a
step is as curved as the motion itself, and some guesses allow next to no steps: these begin once more, with trials that
leave z where a step puts it, as unknowns like the others.
Gauss-Newton steps are accelerated (`Anderson`).

A restoration (`Restoration`) looks for the feasible point that is nearest in the sense of

    min RESTORING / 2 |c_end|^2 + barrier,  with everything else as equations                     (1)

so that what bounds forbid is left to later steps, instead of stopping this one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from alembert.errors import check_interrupt, interrupt_taken
from alembert.optimal import tuning
from alembert.optimal.barrier import Merit
from alembert.optimal.evaluation import Evaluation
from alembert.optimal.newton import Newton
from alembert.optimal.outcome import Iteration, Outcome, Warm
from alembert.optimal.search_graphs import INFINITE
from alembert.optimal.stages import Stages

Array = np.ndarray


class Restoration:
    """On the iterate of a `Newton`, with the barrier `mu`: from `begin` on there is no cost, until `end`."""

    def __init__(self, newton: Newton) -> None:
        self.newton = newton
        self._residual = self._force = np.zeros(0)
        """what the end leaves, and the slope of (1) there"""

    def begin(self, mu: float, *, anew: bool = True) -> None:
        """If `anew`, slacks begin at what they bound, pushed off their bounds: those at one would stop each step."""
        newton = self.newton
        newton._scale[0], newton.mu = 0.0, mu
        self._weight = 10.0
        newton._duals[...] = 0.0
        if anew and (newton.it.path.slack.size or newton.it.last.slack.size):
            newton._enter()
        newton.it.path.settle(mu)
        newton.it.last.settle(mu)

    def end(self) -> None:
        """The iterate is taken: multipliers are estimated for the problem itself."""
        newton = self.newton
        newton.it.path.settle(newton.mu)
        newton.it.last.settle(newton.mu)
        newton.estimate_multipliers()

    def advance(self, here: Merit, damping: float) -> tuple[Merit, float] | None:
        """A step that makes (1) smaller, with its length; None where there is none."""
        newton = self.newton
        if not self._step(damping):
            return None
        primal, dual, slope = newton.longest()
        alpha, dual = min(1.0, 0.99 * primal), min(1.0, 0.99 * dual)
        slope += float(self._force @ newton.sweep.x[-1])
        objective, off = self._merit(here, self._residual)
        weight = self._weight = max(self._weight, 2 * slope / off if off > 0 else 0.0)
        while alpha > tuning.SHORTEST_RESTORING:
            trial = newton.try_(alpha)
            if trial.is_finite:
                new, left = self._merit(trial, newton._new_end)
                gained = objective - new + weight * (off - left)
                if gained >= 1e-4 * alpha * (weight * off - slope) and gained > 0:
                    self._accept(alpha, dual)
                    return trial, alpha
            alpha /= 2
        return None

    def _step(self, damping: float) -> bool:
        """The step to the least squares of (1), linearised: conditions at the end need not be reached."""
        newton = self.newton
        lin, n = newton.linear, newton.linear.A.shape[1]
        newton.linearise()
        newton._d_used[...] = newton._d
        newton._end_slope(newton._rows)
        lin.Q += damping * np.eye(n)
        lin.R += damping * np.eye(lin.R.shape[1])
        C, c = newton.last.C, newton.last.c
        self._residual, self._force = c.copy(), tuning.RESTORING * c @ C
        lin.Q[-1] += tuning.RESTORING * C.T @ C
        lin.q[-1] += self._force
        C[...], c[...] = 0.0, 0.0
        newton.options = {"shift": 0.0, "rho": 0.0, "damping": 0.0}
        return newton._solve()

    def _accept(self, alpha: float, dual: float) -> None:
        newton = self.newton
        newton.accept(alpha, dual)
        newton._duals[...] = 0.0
        for bounds in (newton.it.path, newton.it.last):
            bounds.high[bounds.held > 0] = 0.0

    @staticmethod
    def _merit(merit: Merit, c: Array) -> tuple[float, float]:
        """The objective of (1) with c at the end, and the sum of the residuals that are no part of it."""
        objective = merit.objective + tuning.RESTORING / 2 * float(c @ c)
        return objective, merit.infeasibility - float(np.abs(c).sum())


NO_ROOM = (
    "no step makes progress, although the constraints are kept: bounds that meet in one motion leave no room inside; widen "
    "the limits, or state as an equation what they leave"
)


class InteriorPoint:
    """See the module. `tolerance` is for the scaled optimality error."""

    def __init__(
        self,
        stages: Stages,
        evaluation: Evaluation,
        *,
        tolerance: float = 1e-8,
        iterations: int = 500,
        barrier: float = tuning.BARRIER,
        report: Callable[[Iteration], Any] | None = None,
        newton: Newton | None = None,
    ) -> None:
        """`newton`: of an earlier solve of these stages with other numbers, which is begun anew."""
        self._known = newton
        self.stages, self.evaluation = stages, evaluation
        self.tolerance, self.iterations, self.report = tolerance, iterations, report
        self.bounded = bool(stages.path_names or stages.end_bounded)
        self.start_barrier = barrier

    def solve(self, x: Array, u: Array, z: Array, warm: Warm | None = None) -> Outcome:
        """From these states, controls and z, with the multipliers of `warm` or estimates of them."""
        began, worked = time.perf_counter(), time.process_time()
        x, u, z = (np.array(a, dtype=float, order="C") for a in (x, u, z))
        units = warm.units if warm is not None else None
        if self._known is not None:
            self.newton = newton = self._known
            newton.restart(self.stages, x, u, z, self.start_barrier, units=units)
        else:
            newton = Newton(self.stages, self.evaluation, x, u, z, self.start_barrier, units=units)
            self.newton = newton
        newton.tolerance = self.tolerance
        if warm is None or not newton.begin(warm):
            newton.estimate_multipliers()
        self._guess = newton.state()
        merit = newton.try_(0.0)
        newton.accept(0.0, 0.0)
        self._settles, self._short = not np.array_equal(z, newton.it.z), 0
        self._new_filter(merit)
        self._anderson = (
            None if self.evaluation.exact else Anderson(newton.sweep.x.size + newton.sweep.u.size)
        )
        self.history: list[Iteration] = []
        self._began = began
        alpha, best, waited, still = 0.0, np.inf, 0, 0
        self._returns, self._missed, self._ended = 0, np.inf, -1.0
        self._safe = kept = (merit, newton.state())
        slope, exactly = np.inf, self.evaluation.is_plain and not newton.has_equations
        check_interrupt()
        status, message = "iterations", f"stopped after {self.iterations} iterations"
        try:
            while True:
                check_interrupt()
                number = len(self.history)
                newton.linearise()
                mu, (slope, error) = newton.mu, newton.judge(merit)
                if slope > tuning.LOST:
                    newton.estimate_multipliers()
                    newton.linearise()
                    slope, error = newton.judge(merit)
                self._note(merit, alpha, mu, slope)
                if not (math.isfinite(slope) and merit.is_finite):
                    status, message = "failed", newton.locate()
                    break
                near = error <= self.tolerance
                if near and (exactly or merit.worst <= tuning.EXACTLY or number >= self.iterations):
                    status, message = "solved", "solved"
                    break
                exactly = exactly or near
                best, waited = (error, 0) if error < 0.9 * best else (best, waited + 1)
                if waited > tuning.PATIENCE and error <= tuning.HOPELESS * self.tolerance:
                    status, message = near_solution(error, self.tolerance)
                    break
                if number >= self.iterations:
                    break
                if min(still, waited) > tuning.PATIENCE:
                    status, message = "stalled", NO_ROOM
                    break
                if newton.mu != mu:
                    merit = newton.with_barrier()
                    if self._anderson is not None:
                        self._anderson.clear()
                found = self._advance(merit)
                if found is None and near:
                    status, message = "solved", "solved"
                    break
                if found is None:
                    near = error <= tuning.HOPELESS * self.tolerance
                    status, message = near_solution(error, self.tolerance) if near else self._stalled
                    break
                before, (merit, alpha) = merit, found
                stays = abs(merit.objective - before.objective) <= tuning.ROUNDING * abs(merit.objective)
                still = still + 1 if stays and merit.worst <= tuning.EXACTLY and alpha else 0
                smallest = newton.numbers["allowed"][1]
                safe = merit.infeasibility <= max(self._safe[0].infeasibility, tuning.SAFE * smallest)
                better = merit.rank < kept[0].rank
                if safe or better:
                    state = (merit, newton.state())
                    self._safe = state if safe else self._safe
                    kept = state if better else kept
        except KeyboardInterrupt:
            interrupt_taken()
            status, message = "interrupted", "interrupted; this is the best iterate so far"
            newton.with_cost(newton.mu)
            merit, slope = self._return_to(kept)
        newton.seconds["total"] = time.perf_counter() - began
        newton.seconds["processor"] = time.process_time() - worked
        iterate = newton.stated()
        return Outcome(
            *(status, message, iterate, merit.cost, merit.worst, slope, self.history),
            *(newton.gains(iterate), newton.residuals, newton.units.copied(), dict(newton.seconds)),
        )

    def _new_filter(self, merit: Merit) -> None:
        self.newton.numbers["here"][...] = merit
        self.newton.decide["new_filter"]()

    def _note(self, merit: Merit, alpha: float, mu: float, slope: float = np.nan) -> None:
        """A line of the history."""
        now, newton = time.perf_counter() - self._began, self.newton
        cost, number = merit.cost, len(self.history)
        self.history.append(
            Iteration(number, cost, merit.worst, slope, mu if self.bounded else 0.0, alpha, newton.shift, now)
        )
        if self.report is not None:
            self.report(self.history[-1])

    def _return_to(self, kept: tuple[Merit, tuple[Array, ...]]) -> tuple[Merit, float]:
        """An earlier iterate, with the slope there."""
        self.newton.return_to(kept[1])
        self.newton.linearise()
        return kept[0], self.newton.judge(kept[0])[0]

    @property
    def _stalled(self) -> tuple[str, str]:
        if np.isfinite(self._missed) and self._missed > tuning.KEPT:
            return "infeasible", (
                f"no motion near here keeps all constraints: the least they were off is {self._missed:.1e}, in units of "
                "what they bound; diagnosis() names them. A longer duration, wider limits or another `guess` may help"
            )
        return "stalled", (
            "no step makes progress, although the constraints are nearly kept; another `guess`, more steps or another "
            "transcription may help"
        )

    def _advance(self, merit: Merit) -> tuple[Merit, float] | None:
        """A Newton step, as long as the filter takes it; or the first step of a restoration."""
        newton = self.newton
        newton.numbers["done"][0] = 0.0  # where it is, although not yet exactly
        if not newton.step(merit, newton.numbers["floor"].item()):
            return self._restore(merit)
        found = self._accelerated() or self._search(merit)
        if found is not None:
            leads_on = self._short < tuning.MOST_HARDLY or len(self.history) > tuning.EARLY
            return found if leads_on or not self._settles else self._unsettled()
        if merit.worst > self.tolerance:
            newton.numbers["remembers"][0] = 1.0
            newton.decide["remember"]()
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

    def _accelerated(self) -> tuple[Merit, float] | None:
        """A step in full from what the last ones have taught, if the filter takes it."""
        if self._anderson is None:
            return None
        newton, step = self.newton, self.newton.direction()
        proposed = self._anderson.propose(step)
        if proposed is None:
            return None
        newton.redirect(proposed)
        alpha, dual = newton.lengths()
        trial = newton.try_(alpha)
        if self._takes(alpha):
            return self._take(alpha, alpha, dual, trial)
        newton.redirect(step)
        return None

    def _search(self, merit: Merit) -> tuple[Merit, float] | None:
        newton = self.newton
        full, dual = newton.lengths()
        alpha, ends = full, False
        while not ends:
            trial = newton.try_(alpha)
            if self._takes(alpha):
                return self._take(alpha, alpha, dual, trial)
            ends, shorter = newton.numbers["is_taken"].item(), newton.numbers["alpha"].item()
            grew = alpha == full and trial.is_finite and trial.infeasibility >= merit.infeasibility
            if grew and self.evaluation.exact:  # else the curvature that is left out is the greater error
                found = self._correct(merit, full, trial)
                if found is not None:
                    return found
            alpha = shorter
        return None

    def _takes(self, alpha: float) -> bool:
        """Whether the last trial is taken, as one at `alpha`."""
        self.newton.numbers["alpha"][0] = alpha
        self.newton.decide["look"]()
        return bool(self.newton.numbers["is_good"].item())

    def _take(self, tested: float, alpha: float, dual: float, trial: Merit) -> tuple[Merit, float]:
        newton, numbers = self.newton, self.newton.numbers
        numbers["alpha"][0] = tested
        newton.decide["accept"]()
        self._short = self._short + 1 if tested < tuning.HARDLY * numbers["full"].item() else 0
        if self._anderson is not None:
            self._anderson.moved(alpha * newton.direction() if alpha != 1 else newton.direction())
        newton.accept(alpha, dual)
        return trial, alpha

    def _correct(self, merit: Merit, full: float, trial: Merit) -> tuple[Merit, float] | None:
        """Second-order corrections of the step, which was tried in full."""
        newton, numbers, alpha = self.newton, self.newton.numbers, full
        descent, kept = numbers["descent"].item(), newton.keep()
        newton.begin_corrections()
        before = np.inf
        for left in range(tuning.CORRECTIONS, 0, -1):
            if not trial.is_finite or not before or trial.infeasibility > tuning.PROGRESS * before:
                break
            progress = (trial.infeasibility / before) ** left if before < np.inf else 0.0
            if not self._corrects(merit, full, trial, progress):  # not even if all that are left do as well
                break
            before = trial.infeasibility
            if not newton.correct(alpha):
                break
            alpha, dual = newton.lengths()
            numbers["descent"][0], numbers["full"][0] = descent, full  # of the step itself
            trial = newton.try_(alpha)
            if self._takes(full) and self._corrects(merit, full, trial):
                return self._take(full, alpha, dual, trial)
        newton.again(kept)
        return None

    def _corrects(self, merit: Merit, full: float, trial: Merit, progress: float = 1.0) -> bool:
        """Whether a corrected step is more than one that goes nowhere: where a step in full reaches the residuals of the
        iterate with the other sign, its correction is no step at all. One that makes the objective less by some of what its
        slope promised is a step, although curved constraints are then off by more than before.

        With `progress`, whether it would be one after corrections that reduce what it leaves by this factor.
        """
        m = self.newton.numbers["descent"].item()
        return (
            self.newton.numbers["switches"].item() > 0
            or progress * trial.infeasibility <= tuning.CORRECTED * merit.infeasibility
            or (m < 0 and trial.objective <= merit.objective + tuning.DESCENT * full * m)
        )

    def _restore(self, merit: Merit) -> tuple[Merit, float] | None:
        """The restoration phase, which ends when the filter takes what it reaches."""
        newton, first, mu = self.newton, merit.infeasibility, self.newton.mu
        if self._anderson is not None:
            self._anderson.clear()
        low = max(mu, min(tuning.BARRIER, 0.1 * first))
        restoration = Restoration(newton)
        restoration.begin(low)
        here, alpha, damping, short = newton.try_(0.0), 0.0, 1e-2, 0
        best, waited = np.inf, 0
        for _ in range(tuning.LONGEST_RESTORATION):
            if len(self.history) >= self.iterations:
                break
            self._note(here, alpha, newton.mu)
            step = restoration.advance(here, damping)
            if step is None:
                if damping >= 1.0:
                    break
                damping = 10 * max(damping, 1e-1)
                continue
            here, alpha = step
            short = short + 1 if alpha < tuning.CHOKED else 0
            better = here.infeasibility < tuning.PROGRESS * best
            best, waited = (here.infeasibility, 0) if better else (best, waited + 1)
            if short > tuning.MOST_CHOKED or waited > tuning.LONGEST_DETOUR:
                break
            damping = damping / 4 if alpha > 0.3 else 4 * damping
            damping = min(max(damping, tuning.LEAST_DAMPING), tuning.LARGEST_DAMPING)
            newton.mu = max(mu, min(newton.mu, 0.1 * here.infeasibility))
            here = newton.try_(0.0)
            if here.infeasibility <= tuning.RESTORED * first or here.worst <= self.tolerance:
                barrier, found = newton.mu, newton.with_cost(mu)
                newton.decide["allows"]()
                if newton.numbers["is_allowed"].item():
                    restoration.end()
                    newton.numbers["floor"][0] = 0.0
                    return found, alpha
                restoration.begin(barrier, anew=False)
        self._missed = min(self._missed, here.worst)
        newton.with_cost(mu)
        again = abs(here.infeasibility - self._ended) <= tuning.SAME * self._ended
        self._ended = here.infeasibility
        return None if again else self._go_back()

    def _go_back(self) -> tuple[Merit, float] | None:
        """When a restoration fails: from the most feasible iterate so far, go on with shorter steps; at last as
        `_unsettled`."""
        newton = self.newton
        if self._returns == tuning.MOST_RETURNS:
            return self._unsettled() if self._settles else None
        merit, state = self._safe
        self._returns += 1
        newton.return_to(state)
        newton.estimate_multipliers()
        numbers = newton.numbers
        numbers["filter"][...] = INFINITE
        numbers["allowed"][0] = max(2 * merit.infeasibility, numbers["allowed"][0] / 10)
        numbers["floor"][0] = min(tuning.RETURNED**self._returns, tuning.LARGEST_FLOOR)
        found = newton.try_(0.0)
        newton.accept(0.0, 0.0)
        return found, 0.0

    def _unsettled(self) -> tuple[Merit, float]:
        """The guess again, with trials that leave z where a step puts it."""
        newton = self.newton
        self._settles, self._returns, newton.inner[0], newton.numbers["floor"][0] = False, 0, 0.0, 0.0
        newton.return_to(self._guess)
        newton.estimate_multipliers()
        found = newton.try_(0.0)
        newton.accept(0.0, 0.0)
        self._safe = found, newton.state()
        self._new_filter(found)
        if self._anderson is not None:
            self._anderson.clear()
        return found, 0.0


def near_solution(error: float, tolerance: float) -> tuple[str, str]:
    """Status and message of an iterate near a solution, from which no step leads nearer."""
    if error <= tuning.ACCEPTABLE * tolerance:
        return "acceptable", f"stopped at the error {error:.1e}: rounding allows no better step"
    return "stalled", (
        f"stopped at the error {error:.1e}, which is more than {tuning.ACCEPTABLE:g} times the tolerance: no step makes it "
        "smaller; other units of states, controls or cost may, or a larger `tolerance`"
    )


class Anderson:
    """Of steps whose first `primal` entries are states and controls; (1) is fitted to these.

    Anderson acceleration of Gauss-Newton steps (Walker and Ni, SIAM J. Numer. Anal. 49, 2011).

    Without the curvature of the dynamics a step s(w) from the iterate w makes a contraction with a rate of its own,
    w + s(w), or none in some directions. From the last steps and the moves between them,

        gamma = argmin |s_k - dS gamma|,    s = s_k - (dW + dS) gamma                                (1)

    dW and dS being the differences of iterates and of steps: near a solution that is a quasi-Newton method, at the price
    of a few products. A step (1) is only proposed: the filter decides.

    gamma is found from the products dS' dS, whose last row alone is new, and once more for what it leaves: so corrected,
    normal equations are as accurate as a factorisation of dS up to conditions of about 1e8 (Bjorck, Lin. Alg. Appl. 88/89,
    1987), and take a tenth of its time.
    """

    def __init__(self, primal: int) -> None:
        self.primal = primal
        self._products = np.zeros((tuning.DEPTH, tuning.DEPTH))
        self._last = np.empty(0)
        self.clear()

    def clear(self) -> None:
        self._count = self._next = 0
        self._known = False
        """whether there is a last step"""
        self._move: Array | None = None

    def propose(self, step: Array) -> Array | None:
        """(1) for the step from here; None where no move since the last step is known."""
        if not self._last.size:
            self._last = np.empty_like(step)
            self._steps, self._both = np.empty((tuning.DEPTH, len(step))), np.empty((tuning.DEPTH, len(step)))
        move = self._move if self._known else None
        if move is not None:
            self._learn(step, move)
        self._last[...] = step
        self._known, self._move = True, None
        return step - self._weights(step) @ self._both[: self._count] if move is not None else None

    def _learn(self, step: Array, move: Array) -> None:
        k = self._next
        np.subtract(step, self._last, out=self._steps[k])
        np.add(self._steps[k], move, out=self._both[k])
        self._next, self._count = (k + 1) % tuning.DEPTH, min(self._count + 1, tuning.DEPTH)
        fit = self._steps[: self._count, : self.primal]
        self._products[k, : self._count] = self._products[: self._count, k] = fit @ fit[k]

    def _weights(self, step: Array) -> Array:
        fit, wanted = self._steps[: self._count, : self.primal], step[: self.primal]
        latest_first = [(self._next - 1 - i) % tuning.DEPTH for i in range(self._count)]
        solve = _factored(self._products.tolist(), latest_first)
        gamma = np.array(solve((fit @ wanted).tolist()))
        gamma += solve((fit @ (wanted - gamma @ fit)).tolist())
        return gamma

    def moved(self, move: Array) -> None:
        self._move = move


def _factored(G: list[list[float]], order: list[int]) -> Callable[[list[float]], list[float]]:
    """A function that solves with the rows and columns of G in this order, without those that follow from others before.

    On lists: arrays of four rows are slower.
    """
    rows: list[tuple[int, float, list[tuple[int, float]]]] = []
    for i in order:
        row: list[tuple[int, float]] = []
        left = G[i][i]
        for k, pivot, others in rows:
            known = dict(row)
            value = G[i][k] - sum(x * known[j] for j, x in others)
            row.append((k, value))
            left -= value * value / pivot
        if left > tuning.LEAST * G[i][i]:
            rows.append(
                (i, left, [(k, value / pivot) for (k, value), (_, pivot, _) in zip(row, rows, strict=True)])
            )

    def solve(b: list[float]) -> list[float]:
        x = [0.0] * len(b)
        for i, _, others in rows:
            x[i] = b[i] - sum(value * x[k] for k, value in others)
        for i, pivot, _ in rows:
            x[i] /= pivot
        for i, _, others in reversed(rows):
            for k, value in others:
                x[k] -= value * x[i]
        return x

    return solve
