"""`solver="sweep"`: a primal-dual interior point method whose linear algebra is the sweep in time.

Bounds become d - s = 0 with slacks s inside (lower, upper) and a logarithmic barrier mu ((3) and (4) of
`alembert.optimal.evaluation`); a Newton step is the linear-quadratic problem of `alembert.optimal.time_sweep`.

Steps are shortened by the fraction to the boundary and a filter line search (Waechter and Biegler, Math. Program. 106, 2006:
the constants are theirs); negative curvature found by the inward sweep is met by a shift of the Hessian. When no length of
a step is acceptable, a step of least size towards feasibility is made instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alembert.optimal.evaluation import Evaluation
from alembert.optimal.stages import Stages
from alembert.optimal.time_sweep import Conditions, Indefinite, LinearStages, TimeSweep

Array = np.ndarray
LARGEST_RHO = 1e6
STEEP = 1e4
BAND = 1e-8
"""half the width of the band, relative to its value, that stands for an equation along the path"""
"""weight of a bound beyond which a step is refined"""
ARMIJO, GAIN = 1e-4, 1e-5
ACCEPTABLE, PATIENCE = 1e4, 15
"""times the tolerance, an error that is accepted when so many iterations in a row have not made it smaller"""


@dataclass(frozen=True)
class Iteration:
    """One line of the progress."""

    number: int
    cost: float
    infeasibility: float
    """the largest residual"""
    slope: float
    """the largest slope of the Lagrangian"""
    barrier: float
    step: float
    shift: float
    seconds: float


@dataclass
class Bounds:
    """Slacks within bounds and their multipliers; bounds at infinity are marked by 0 in `has_lower`, `has_upper`."""

    slack: Array
    low: Array
    high: Array
    lower: Array
    upper: Array
    has_lower: Array
    has_upper: Array

    @classmethod
    def within(cls, values: Array, lower: Array, upper: Array, mu: float) -> Bounds:
        """Slacks at `values`, pushed off their bounds; an equation becomes a band of a width that is below the tolerance."""
        band = np.where(lower == upper, BAND * np.maximum(1, np.abs(upper)), 0.0)
        lower, upper = lower - band, upper + band
        below, above = np.isfinite(lower), np.isfinite(upper)
        low, high = np.where(below, lower, 0.0), np.where(above, upper, 0.0)
        width = np.where(below & above, high - low, np.inf)
        slack = np.where(
            below, np.maximum(values, low + 1e-2 * np.minimum(np.maximum(1, np.abs(low)), width)), values
        )
        slack = np.where(
            above, np.minimum(slack, high - 1e-2 * np.minimum(np.maximum(1, np.abs(high)), width)), slack
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            z_low = np.where(below, np.minimum(1.0, mu / (slack - low)), 0.0)
            z_high = np.where(above, np.minimum(1.0, mu / (high - slack)), 0.0)
        return cls(slack, z_low, z_high, low, high, below.astype(float), above.astype(float))

    @property
    def arrays(self) -> tuple[Array, ...]:
        """In the order of the kernels."""
        return self.slack, self.low, self.high, self.lower, self.upper, self.has_lower, self.has_upper

    @property
    def y(self) -> Array:
        return self.high - self.low

    @property
    def rooms(self) -> tuple[Array, Array]:
        """Distances from the bounds; 1 where there is none."""
        below = np.where(self.has_lower > 0, self.slack - self.lower, 1.0)
        return below, np.where(self.has_upper > 0, self.upper - self.slack, 1.0)

    @property
    def weight(self) -> Array:
        below, above = self.rooms
        return self.low / below + self.high / above

    def push(self, mu: float, values: Array) -> Array:
        below, above = self.rooms
        return mu * (self.has_upper / above - self.has_lower / below) + self.weight * (values - self.slack)

    def barrier(self, slack: Array) -> float:
        below = np.where(self.has_lower > 0, slack - self.lower, 1.0)
        above = np.where(self.has_upper > 0, self.upper - slack, 1.0)
        if below.min(initial=1.0) <= 0 or above.min(initial=1.0) <= 0:
            return np.inf
        return -float(np.log(below).sum() + np.log(above).sum())

    def multiplier_steps(self, mu: float, ds: Array) -> tuple[Array, Array]:
        below, above = self.rooms
        low = self.has_lower * ((mu - self.low * ds) / below - self.low)
        return low, self.has_upper * ((mu + self.high * ds) / above - self.high)

    def limits(self, mu: float, ds: Array) -> tuple[float, float, float]:
        """The longest steps of slacks and of multipliers, and the slope of the barrier."""
        below, above = self.rooms
        low, high = self.multiplier_steps(mu, ds)
        primal = min(
            _longest(below, np.where(self.has_lower > 0, ds, 0)),
            _longest(above, np.where(self.has_upper > 0, -ds, 0)),
        )
        dual = min(_longest(self.low, low), _longest(self.high, high))
        return primal, dual, mu * float(np.sum(ds * (self.has_upper / above - self.has_lower / below)))

    def keep_near(self, mu: float) -> None:
        """Multipliers near mu/distance, as the barrier has them."""
        below, above = self.rooms
        np.clip(self.low, mu / (1e10 * below), 1e10 * mu / below, out=self.low, where=self.has_lower > 0)
        np.clip(self.high, mu / (1e10 * above), 1e10 * mu / above, out=self.high, where=self.has_upper > 0)


def _longest(room: Array, change: Array) -> float:
    closing = change < 0
    return float(np.min(room[closing] / -change[closing])) if closing.any() else 1e300


@dataclass
class Iterate:
    """Where the method is. `costates` has N + 1 rows, the first for the state at the start."""

    x: Array
    u: Array
    z: Array
    path: Bounds
    last: Bounds
    costates: Array
    sigma: Array
    eta: Array


@dataclass
class Residuals:
    """Per stage: r, c and d."""

    gap: Array
    implicit: Array
    path: Array


@dataclass
class Outcome:
    """What a solver returns; `status` is "solved", "acceptable", "stalled", "iterations", "interrupted" or "failed"."""

    status: str
    message: str
    iterate: Iterate
    cost: float
    infeasibility: float
    slope: float
    history: list[Iteration]
    gains: Array
    residuals: Residuals
    scale: float
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass
class _Merit:
    """What a line search looks at."""

    infeasibility: float
    objective: float
    """with the barrier"""
    smooth: float
    """without"""
    cost: float
    """unscaled"""
    worst: float


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
        self.mu = barrier if self.bounded else 0.0
        self.shift, self._remembered, self._rho = 0.0, 0.0, 1e2
        self.seconds = {"functions": 0.0, "sweep": 0.0}

    # --- the method -----------------------------------------------------------------------------------------------

    def solve(self, x: Array, u: Array, z: Array) -> Outcome:
        began = time.perf_counter()
        self._prepare(x, u, z)
        merit = self._try(0.0)
        self._accept()
        self._filter: list[tuple[float, float]] = []
        self._largest, self._smallest = (f * max(1.0, merit.infeasibility) for f in (1e4, 1e-4))
        history: list[Iteration] = []
        alpha, slope, stuck, best, waited = 0.0, np.inf, 0, np.inf, 0
        status, message = "iterations", f"stopped after {self.iterations} iterations"
        try:
            for number in range(self.iterations + 1):
                self._linearise()
                slope, error = self._errors(merit)
                now = time.perf_counter() - began
                history.append(
                    Iteration(number, merit.cost, merit.worst, slope, self.mu, alpha, self.shift, now)
                )
                if self.report is not None:
                    self.report(history[-1])
                if not np.isfinite(slope + merit.worst):
                    status, message = "failed", self._locate()
                    break
                if error(0.0) <= self.tolerance:
                    status, message = "solved", "solved"
                    break
                best, waited = (error(0.0), 0) if error(0.0) < 0.9 * best else (best, waited + 1)
                if waited > PATIENCE and error(0.0) <= ACCEPTABLE * self.tolerance:
                    status, message = (
                        "acceptable",
                        f"stopped at the error {error(0.0):.1e}: rounding allows no better step",
                    )
                    break
                if number == self.iterations:
                    break
                if self.bounded and self._lower_barrier(error):
                    merit.objective = merit.smooth + self.mu * self._barrier()
                if not self._newton(merit):
                    status, message = "failed", "the linear-quadratic problem has no solution with any shift"
                    break
                found = self._search(merit)
                if found is None:
                    found = self._restore(merit)
                    stuck += 1
                else:
                    stuck = 0
                if found is None or stuck > 12:
                    near = error(0.0)
                    if near <= ACCEPTABLE * self.tolerance:
                        status, message = (
                            "acceptable",
                            f"stopped at the error {near:.1e}: rounding allows no better step",
                        )
                    else:
                        status, message = (
                            "stalled",
                            "no step makes progress: the constraints may contradict each other",
                        )
                    break
                merit, alpha = found
        except KeyboardInterrupt:
            status, message = "interrupted", "interrupted; this is the iterate it had reached"
        self.seconds["total"] = time.perf_counter() - began
        residuals = Residuals(self._gap.copy(), self._implicit.copy(), self._d.copy())
        return Outcome(
            *(status, message, self.it, merit.cost, merit.worst, slope, history),
            *(self.sweep.gains.copy(), residuals, self.scale, dict(self.seconds)),
        )

    # --- arrays and kernels on them ---------------------------------------------------------------------------------

    def _prepare(self, x: Array, u: Array, z: Array) -> None:
        stages, e = self.stages, self.evaluation
        N, (n, m, nz, nd) = stages.count, stages.sizes
        first, last, rows = len(stages.start_names), len(stages.end_names), len(stages.end_bounded)
        x, u, z = (np.array(a, dtype=float, order="C") for a in (x, u, z))
        p, s = stages.problem.parameters, stages.numbers
        _, _, d = (v.full()[:, 0] for v in stages.end(x[-1], s[-1], p))
        values = np.empty((N, nd))
        mapped = stages.stage.map(N)(x[:-1].T, u.T, z.T, s.T, np.tile(p[:, None], (1, N)))
        values[...] = mapped[3].full().T
        self.it = it = Iterate(
            *(x, u, z, Bounds.within(values, stages.lower, stages.upper, self.mu)),
            *(Bounds.within(d, stages.end_lower, stages.end_upper, self.mu), np.zeros((N + 1, n))),
            *(np.zeros(first), np.zeros(last)),
        )
        self._alpha, self._mu, self._scale = np.zeros(1), np.zeros(1), np.ones(1)
        self._d, self._gap, self._implicit = np.zeros((N, nd)), np.zeros((N, n)), np.zeros((N, nz))
        self.linear = LinearStages(
            *(np.zeros((N, n, n)), np.zeros((N, n, m)), np.zeros((N, n)), np.zeros((N + 1, n, n))),
            *(np.zeros((N, n, m)), np.zeros((N, m, m)), np.zeros((N + 1, n)), np.zeros((N, m))),
            *(np.zeros((N, nd, 1 + n + m)), np.zeros((N, nd))),
        )
        lin = self.linear
        self.sweep = sweep = TimeSweep(lin, last)
        self._slopes = np.zeros((N, n)), np.zeros((N, m))
        self._Z, self._g = np.zeros((N, nz, 1 + n + m)), np.zeros((N, n + m + nz))
        place = (it.x[:-1], it.u, it.z, it.x[1:], s, p)
        bounds = it.path.arrays
        self._condense = e.condensed.bind(
            N,
            [*place, it.costates[1:], self._scale, *bounds],
            [
                lin.A,
                lin.B,
                lin.b,
                lin.Q[:N],
                lin.N,
                lin.R,
                lin.q[:N],
                lin.r,
                *self._slopes,
                self._Z,
                lin.D,
                self._g,
            ],
        )
        self._dz, self._ds = np.zeros((N, nz)), np.zeros((N, nd))
        self._dlow, self._dhigh, self._limits = np.zeros((N, nd)), np.zeros((N, nd)), np.zeros((N, 3))
        self._steps = e.steps.bind(
            N,
            [sweep.x[:-1], sweep.u, self._Z, lin.D, self._g, self._d, self._mu, *bounds],
            [self._dz, self._ds, self._dlow, self._dhigh, self._limits],
        )
        self._new = (np.empty_like(x), np.empty_like(u), np.empty_like(z), np.empty_like(values))
        self._fresh = np.zeros((N, n)), np.zeros((N, nz)), np.zeros((N, nd))
        self._totals = np.zeros((N, 4))
        self._trial = e.trial.bind(
            N,
            [
                *place,
                *(sweep.x[:-1], sweep.u, self._dz, sweep.x[1:], self._ds),
                *(self._alpha, self._mu, self._scale, *bounds),
            ],
            [self._new[0][:N], *self._new[1:], *self._fresh, self._totals],
        )
        self._found, self._sums = np.zeros((N, 4)), np.zeros((N, 3))
        self._measure = e.measure.bind(
            N, [*self._slopes, it.costates[:-1], self._d, *bounds], [self._found, self._sums]
        )
        self._push = e.push.bind(N, [self._d, self._mu, *bounds], [lin.push]) if nd else None

        ends = [np.zeros(1), np.zeros(last), np.zeros(rows)]
        self._end_values, self._end_new = [a.copy() for a in ends], [np.zeros(x.shape[1]), *ends]
        self._end_trial = e.end_trial.bind(
            1,
            [it.x[-1:], s[-1:], p, sweep.x[-1:], self._alpha, self._scale],
            [a[None] for a in self._end_new],
        )
        self._gradient, self._end_D, self._end_H = np.zeros(n), np.zeros((rows, n)), np.zeros((n, n))
        self.last = Conditions(np.zeros((last, n)), np.zeros(last))
        self._end_y = np.zeros(rows)
        self._end = e.end.bind(
            1,
            [it.x[-1:], s[-1:], p, it.eta[None], self._end_y[None], self._scale],
            [
                *(np.zeros((1, 1)), self.last.c[None], np.zeros((1, rows)), self._gradient[None]),
                *(self.last.C[None], self._end_D[None], self._end_H[None]),
            ],
        )
        self.first, self._start_H = Conditions(np.zeros((first, n)), np.zeros(first)), np.zeros((n, n))
        self._start_new = np.zeros(first)
        self._start = e.start.bind(
            1,
            [it.x[:1], s[:1], p, it.sigma[None]],
            [self.first.c[None], self.first.C[None], self._start_H[None]],
        )
        self._start_trial = e.start.bind(
            1,
            [self._new[0][:1], s[:1], p, it.sigma[None]],
            [self._start_new[None], np.zeros((1, first, n)), np.zeros((1, n, n))],
        )
        self._d[...] = values
        self._condense()
        self._end()
        steepest = max(np.abs(self._g).max(initial=0.0), np.abs(self._gradient).max(initial=0.0))
        self.scale = min(1.0, 100 / steepest) if np.isfinite(steepest) and steepest > 0 else 1.0
        self._scale[0] = self.scale
        self._mu[0] = self.mu

    def _linearise(self) -> None:
        began = time.perf_counter()
        it = self.it
        self._condense()
        if len(self._end_y):
            self._end_y[...] = it.last.y
        self._end()
        self._start()
        self.seconds["functions"] += time.perf_counter() - began

    def _errors(self, merit: _Merit) -> tuple[float, Callable[[float], float]]:
        """The largest slope of the Lagrangian, and the scaled error of optimality for a barrier."""
        it = self.it
        self._measure()
        slope, noise, most, least = self._found.max(axis=0)
        multipliers, bounds, together = self._sums.sum(axis=0)
        final = self._gradient - it.costates[-1]
        if len(it.eta):
            final = final + self.last.C.T @ it.eta
        if len(self._end_y):
            final = final + self._end_D.T @ self._end_y
            below, above = it.last.rooms
            products = np.concatenate(
                [(below * it.last.low)[it.last.has_lower > 0], (above * it.last.high)[it.last.has_upper > 0]]
            )
            most, least = max(most, products.max(initial=-1e300)), max(least, (-products).max(initial=-1e300))
            noise = max(noise, np.abs(it.last.weight * self._end_values[2]).max())
            bounds += it.last.low.sum() + it.last.high.sum()
        slope = max(float(slope), float(np.abs(final).max()))
        if not np.isfinite(together + slope):
            return np.nan, lambda mu: np.inf
        count = it.costates.size + 2 * self._d.size
        size = max(100.0, (multipliers + bounds) / max(1, count)) / 100
        complement = max(100.0, bounds / max(1, 2 * self._d.size)) / 100
        noise = min(np.finfo(float).eps * float(noise), 1e3 * self.tolerance)

        def error(mu: float) -> float:
            gap = max(most - mu, least + mu, 0.0) if most > -1e299 else 0.0
            return float(max((slope - noise) / size, merit.worst, gap / complement))

        return slope, error

    def _lower_barrier(self, error: Callable[[float], float]) -> bool:
        least, before = self.tolerance / 10, self.mu
        while error(self.mu) <= 10 * self.mu and self.mu > least:
            self.mu = max(least, min(0.2 * self.mu, self.mu**1.5))
        self._mu[0] = self.mu
        if self.mu != before:
            self._filter = []
        return self.mu != before

    def _barrier(self) -> float:
        return self.it.path.barrier(self.it.path.slack) + self.it.last.barrier(self.it.last.slack)

    # --- steps ----------------------------------------------------------------------------------------------------

    def _newton(self, merit: _Merit) -> bool:
        """The step of the linear-quadratic problem, with the least shift of the Hessian that makes it positive definite."""
        began = time.perf_counter()
        it = self.it
        if self._push is not None:
            self._push()
        steep = self._add_ends()
        options = {"damping": min(1e-3, 1e-2 * merit.worst**2), "shift": 0.0, "rho": self._rho}
        while True:
            try:
                self.sweep.solve(self.first, self.last, **options)
                if np.isfinite(self.sweep.x).all() and np.isfinite(self.sweep.u).all():
                    break
            except Indefinite:
                pass
            if options["rho"] < LARGEST_RHO and len(it.eta):
                options["rho"] *= 100
            elif options["shift"] == 0.0:
                options["shift"] = 1e-4 if self._remembered == 0.0 else max(1e-12, self._remembered / 3)
            else:
                options["shift"] *= 100 if self._remembered == 0.0 else 8
            if options["shift"] > 1e20:
                return False
        self._rho, self.shift = options["rho"], options["shift"]
        self._remembered = self.shift or self._remembered
        if steep:
            self.sweep.refine(self.first, self.last, **options)
        self.seconds["sweep"] += time.perf_counter() - began
        return True

    def _add_ends(self) -> bool:
        """The terms of the start and the end; whether some bound is so near that a step wants refining."""
        it, lin = self.it, self.linear
        lin.Q[0] += self._start_H
        lin.Q[-1], lin.q[-1] = self._end_H, self._gradient
        steep = self._found[:, 1].max(initial=0.0) > STEEP
        if len(self._end_y):
            weight = it.last.weight
            lin.Q[-1] += self._end_D.T @ (weight[:, None] * self._end_D)
            lin.q[-1] += self._end_D.T @ it.last.push(self.mu, self._end_values[2])
            steep = steep or weight.max() > STEEP
        return bool(steep)

    def _try(self, alpha: float) -> _Merit:
        """Infeasibility and cost of the iterate at `alpha` of the step, which is left in the arrays `_new`."""
        began = time.perf_counter()
        self._alpha[0] = alpha
        self._trial()
        self._end_trial()
        self._new[0][-1] = self._end_new[0]
        self._start_trial()
        size, objective, cost, _ = self._totals.sum(axis=0)
        worst = self._totals[:, 3].max()
        final = self._end_new[1][0]
        smooth = self.scale * cost + final
        barrier = 0.0
        for residual in (self._start_new, self._end_new[2]):
            if len(residual):
                sizes = np.abs(residual)
                size, worst = size + sizes.sum(), max(worst, sizes.max())
        if len(self._end_y):
            self._end_slack = self.it.last.slack + (alpha * self._end_ds if alpha else 0.0)
            sizes = np.abs(self._end_new[3] - self._end_slack)
            size, worst = size + sizes.sum(), max(worst, sizes.max())
            barrier = self.mu * self.it.last.barrier(self._end_slack)
        self.seconds["functions"] += time.perf_counter() - began
        if not np.isfinite(size + objective):
            size = objective = worst = np.inf
        return _Merit(
            float(size),
            float(objective + final + barrier),
            float(smooth),
            float(cost + final / self.scale),
            float(worst),
        )

    def _accept(self) -> None:
        """Go to the iterate that was tried last."""
        it = self.it
        for target, value in zip((it.x, it.u, it.z, it.path.slack), self._new, strict=True):
            target[...] = value
        for target, value in zip((self._gap, self._implicit, self._d), self._fresh, strict=True):
            target[...] = value
        for target, value in zip(self._end_values, self._end_new[1:], strict=True):
            target[...] = value
        if len(self._end_y):
            it.last.slack[...] = self._end_slack

    def _lengths(self, fraction: float) -> tuple[float, float, float]:
        """The longest steps of the unknowns and of the multipliers, and the slope of the objective along the step."""
        self._steps()
        primal, dual, _ = self._limits.min(axis=0) if len(self._limits) else (1e300,) * 3
        slope = float(self._limits[:, 2].sum() + self._gradient @ self.sweep.x[-1])
        if len(self._end_y):
            self._end_ds = self._end_D @ self.sweep.x[-1] + self._end_values[2] - self.it.last.slack
            one, two, more = self.it.last.limits(self.mu, self._end_ds)
            primal, dual, slope = min(primal, one), min(dual, two), slope + more
        return min(1.0, fraction * primal), min(1.0, fraction * dual), slope

    def _search(self, merit: _Merit) -> tuple[_Merit, float] | None:
        """Shorten the step until the filter takes it."""
        alpha, dual, slope = self._lengths(max(0.99, 1 - self.mu))
        theta, phi = merit.infeasibility, merit.objective
        tiny = 10 * np.finfo(float).eps * max(1.0, abs(phi))
        while alpha > 1e-11:
            found = self._try(alpha)
            new_theta, new_phi = found.infeasibility, found.objective
            good = new_theta <= self._largest and not any(
                new_theta >= t and new_phi >= f for t, f in self._filter
            )
            if good:
                descent = new_phi <= phi + ARMIJO * alpha * slope + tiny
                switching = theta <= self._smallest and slope < 0 and alpha * (-slope) ** 2.3 > theta**1.1
                better = new_theta <= (1 - GAIN) * theta or new_phi <= phi - GAIN * theta + tiny
                if descent if switching else better:
                    if not switching:
                        self._filter.append(((1 - GAIN) * theta, phi - GAIN * theta))
                    self._move_multipliers(alpha, dual)
                    self._accept()
                    self._settle_multipliers()
                    return found, alpha
            alpha /= 2
        return None

    def _move_multipliers(self, alpha: float, dual: float) -> None:
        it, sweep = self.it, self.sweep
        if self._d.size:
            it.path.low += dual * self._dlow
            it.path.high += dual * self._dhigh
        if len(self._end_y):
            low, high = it.last.multiplier_steps(self.mu, self._end_ds)
            it.last.low += dual * low
            it.last.high += dual * high
        it.costates += alpha * (sweep.costates - it.costates)
        it.sigma += alpha * (sweep.start - it.sigma)
        it.eta += alpha * (sweep.end - it.eta)

    def _settle_multipliers(self) -> None:
        if self._d.size:
            self.it.path.keep_near(self.mu)
        if len(self._end_y):
            self.it.last.keep_near(self.mu)

    def _restore(self, merit: _Merit) -> tuple[_Merit, float] | None:
        """A step of least size towards feasibility."""
        lin, n = self.linear, self.linear.A.shape[1]
        D = lin.D[:, :, 1:]
        H = np.matmul(np.swapaxes(D, 1, 2), self.it.path.weight[:, :, None] * D) + np.eye(D.shape[2])
        lin.Q[:-1], lin.N[...], lin.R[...] = H[:, :n, :n], H[:, :n, n:], H[:, n:, n:]
        lin.Q[-1] = np.eye(n) + self._end_D.T @ (self.it.last.weight[:, None] * self._end_D)
        lin.q[...], lin.r[...], lin.push[...] = 0.0, 0.0, 0.0
        try:
            self.sweep.solve(self.first, self.last, damping=min(1e-3, 1e-2 * merit.worst**2))
        except Indefinite:
            return None
        alpha, _, _ = self._lengths(0.99)
        while alpha > 1e-9:
            found = self._try(alpha)
            if found.infeasibility <= (1 - 1e-3 * alpha) * merit.infeasibility:
                theta = merit.infeasibility
                self._filter.append(((1 - GAIN) * theta, merit.objective - GAIN * theta))
                self._accept()
                return found, alpha
            alpha /= 2
        return None

    def _locate(self) -> str:
        """Where the functions are not finite."""
        lin = self.linear
        blocks = {"motion": lin.A, "controls": lin.B, "curvature": lin.R, "slope": self._g, "residual": lin.b}
        for name, block in blocks.items():
            bad = ~np.isfinite(block.reshape(len(block), -1)).all(axis=1)
            if bad.any():
                k = int(np.argmax(bad))
                t = self.stages.numbers[k, 0] * self.stages.span(self.it.x)
                return f"the functions are not finite in stage {k}, t = {t:.4g} s (first in the {name})"
        return "the functions are not finite"
