"""A minimum under rows lower <= g(z) <= upper, for few unknowns: sequential quadratic programs within a trust region.

Motions of unstable mechanisms answer to small changes of their splines with large ones, so that a step which is only
shortened afterwards ends anywhere. Here a step d solves the quadratic program

    min  slope' d + d' B d / 2 + nu theta(g + J d),   |d_i| <= radius,   low <= z + d <= high                 (1)

where theta is what rows miss: the sum over equations, and the most among bounds. It is taken if the merit

    f(z) + nu theta(g(z))                                                                              (2)

falls by a share of what (1) foretells, otherwise the radius shrinks (Fletcher's Sl1QP; Nocedal and Wright 2006, 18.5).
Before that, the active rows are brought back to what they are in (1) along their curve: against Maratos' effect, and the
long way to a solution along curved rows takes far fewer steps. B is the Hessian H of the Lagrangian where that is
positive along the active rows,

    B = Z |Z'HZ| Z' + (Z Z'HY Y' + its transpose) + Y (Y'HZ |Z'HZ|^-1 Z'HY + 1) Y'                       (3)

with Z along and Y across them; across, what B is does not matter while they are met. nu grows where (1) would rather miss
rows than meet them ("steering"; Byrd, Nocedal and Waltz 2008).

Near a solution (1) is Newton's method, and a start there stays there.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from alembert.optimal.splines.conditions import SplineRows

Array = np.ndarray


@dataclass(frozen=True)
class TrustRegionTuning:
    """The constants of the method; cost and rows are divided by the lengths of their slopes at the start."""

    radius: float = 0.5
    """of the first step, in radians or metres of a control point: about as far as the equations of motion stay similar"""
    largest_radius: float = 10.0
    """more than a turn in one step is no improvement of the same motion"""
    weight: float = 1.0
    """nu at the beginning: slopes have length one"""
    largest_weight: float = 1e8
    """beyond, rounding in g hides the cost; rows that are still missed contradict each other"""
    refused: float = 0.1
    """a step whose fall is a smaller share of the foretold one is not taken"""
    trusted: float = 0.75
    """the share of the foretold fall from which on the radius grows"""
    steered: float = 0.1
    """the share of what could be gained in theta that every step must gain"""
    corrections: int = 3
    """how often active rows are met again after a step; each costs a motion, a new step costs its derivatives as well"""


TUNING = TrustRegionTuning()


@dataclass
class Evaluated:
    """What is known at z, scaled."""

    z: Array
    cost: float
    g: Array
    gradient: Array
    J: Array


@dataclass(frozen=True)
class End:
    """Where the search ends, and why: "solved", "acceptable", "iterations", "stalled" or "infeasible"."""

    z: Array
    y: Array
    status: str
    error: float


class TrustRegion:
    """The search on `rows`, with `low <= z <= high`, until the error is below `tolerance`.

    The error is the larger of the slope of the Lagrangian and of what rows and multipliers miss. `see(z, y, error, radius)`
    is told every iterate, and says whether to stop.
    """

    def __init__(
        self,
        rows: SplineRows,
        low: Array,
        high: Array,
        tolerance: float,
        see: Callable[[Array, Array, float, float], bool],
        tuning: TrustRegionTuning = TUNING,
    ) -> None:
        self._rows, self._low, self._high = rows, low, high
        self._tolerance, self._see, self._tuning = tolerance, see, tuning
        self._nu, self._radius = tuning.weight, tuning.radius
        self._cost_scale, self._scale = 1.0, np.ones(len(rows.lower))
        self._lower, self._upper = rows.lower, rows.upper
        self._equal = rows.lower == rows.upper
        self._program = StepProgram(len(low), rows.lower, rows.upper)

    def error_at(self, z: Array) -> float:
        """Of a guess, with multipliers of least squares."""
        here = self._first(np.clip(z, self._low, self._high))
        return self._error(here, self._multipliers(here))

    def run(self, z: Array, iterations: int) -> End:
        """From z, with at most so many iterations."""
        here = self._first(np.clip(z, self._low, self._high))
        y = self._multipliers(here)
        self._nu = max(self._nu, 1.5 * self._size(y))
        error, status = self._error(here, y), "iterations"
        stopped = self._see(here.z, self._unscaled(y), error, self._radius)
        for _ in range(iterations):
            if stopped or error <= self._tolerance:
                break
            after = self._advance(here, y)
            if after is None:
                status = "stalled" if self._missed(here.g) <= 1e-6 else "infeasible"
                break
            here, y = after
            error = self._error(here, y)
            stopped = self._see(here.z, self._unscaled(y), error, self._radius)
        if error <= self._tolerance:
            status = "solved"
        elif error <= 10 * self._tolerance:
            status = "acceptable"
        return End(here.z, self._unscaled(y), status, error)

    # --- functions -----------------------------------------------------------------------------------------------

    def _first(self, z: Array) -> Evaluated:
        """The first place, which also sets the scales."""
        rows = self._rows
        self._cost_scale = 1 / max(1.0, float(np.linalg.norm(rows.gradient(z))))
        self._scale = 1 / np.maximum(1.0, np.linalg.norm(rows.jacobian(z), axis=1))
        self._lower, self._upper = rows.lower * self._scale, rows.upper * self._scale
        return self._place(z)

    def _place(self, z: Array) -> Evaluated:
        rows = self._rows
        cost, g = self._values(z)
        return Evaluated(
            z, cost, g, self._cost_scale * rows.gradient(z), self._scale[:, None] * rows.jacobian(z)
        )

    def _values(self, z: Array) -> tuple[float, Array]:
        return self._cost_scale * self._rows.motion(z).cost, self._scale * self._rows.values(z)

    def _unscaled(self, y: Array) -> Array:
        return y * self._scale / self._cost_scale

    def _curvature(self, z: Array, y: Array) -> Array:
        """By differences of the slope of the Lagrangian: a backward sweep each, and there are few unknowns."""
        weights, columns = y * self._scale, []
        for k in range(len(z)):
            step = np.zeros(len(z))
            step[k] = 1e-5 * max(1.0, abs(z[k]))
            plus, minus = (self._rows.lagrangian(z + s, self._cost_scale, weights).z for s in (step, -step))
            columns.append((plus - minus) / (2 * step[k]))
        H = np.array(columns)
        return (H + H.T) / 2

    def _off(self, g: Array) -> Array:
        return g - np.clip(g, self._lower, self._upper)

    def _missed(self, g: Array) -> float:
        """theta"""
        off = np.abs(self._off(g))
        return float(off[self._equal].sum() + off[~self._equal].max(initial=0.0))

    def _error(self, here: Evaluated, y: Array) -> float:
        slope = here.gradient + y @ here.J
        held = ((here.z <= self._low) & (slope > 0)) | ((here.z >= self._high) & (slope < 0))
        off = here.g - np.clip(here.g + y, self._lower, self._upper)
        return float(max(np.abs(slope[~held]).max(initial=0.0), np.abs(off).max(initial=0.0)))

    def _multipliers(self, here: Evaluated) -> Array:
        """Those of least squares for the rows at their bounds, where they explain the slope of the cost; none otherwise."""
        near = 1e-2
        low, high = here.g <= self._lower + near, here.g >= self._upper - near
        y, rows = np.zeros(len(here.g)), np.flatnonzero(low | high)
        y[rows] = np.linalg.lstsq(here.J[rows].T, -here.gradient, rcond=1e-10)[0]
        y[(y > 0) & ~high | (y < 0) & ~low] = 0.0
        left = np.linalg.norm(here.gradient + y @ here.J)
        return y if left <= 0.1 * np.linalg.norm(here.gradient) else np.zeros(len(y))

    # --- steps ---------------------------------------------------------------------------------------------------

    def _advance(self, here: Evaluated, y: Array) -> tuple[Evaluated, Array] | None:
        """The next place, and its multipliers; None when no step is short enough."""
        tuning = self._tuning
        B = self._positive(here, y)
        rounding = 10 * np.finfo(float).eps * (1 + abs(here.cost) + self._nu)
        while self._radius > 1e-12:
            d, y_new = self._steered(here, B)
            if not np.isfinite(d).all():  # qpOASES gave up
                self._radius *= 0.25
                continue
            linear = here.g + here.J @ d
            foretold = -float(here.gradient @ d + 0.5 * d @ B @ d)
            foretold += self._nu * (self._missed(here.g) - self._missed(linear))
            merit = here.cost + self._nu * self._missed(here.g)
            size = float(np.abs(d).max(initial=0.0))
            best = None
            for z in self._trials(here, d, y_new, linear):
                cost, g = self._values(z)
                fall = merit - cost - self._nu * self._missed(g)
                if not np.isfinite(fall):
                    break
                if best is None or fall > best[0]:
                    best = fall, z
                if fall >= tuning.trusted * foretold:
                    break
            share = (best[0] + rounding) / (foretold + rounding) if best else -np.inf
            if best and foretold >= -rounding and share >= tuning.refused:
                if share >= tuning.trusted and size >= 0.99 * self._radius:
                    self._radius = min(2 * self._radius, tuning.largest_radius)
                return self._place(best[1]), y_new
            self._radius = 0.25 * min(size, self._radius)
        return None

    def _trials(self, here: Evaluated, d: Array, y: Array, linear: Array) -> Iterator[Array]:
        """z + d, and corrected: active rows are brought back to what they are in (1)."""
        z = np.clip(here.z + d, self._low, self._high)
        yield z
        rows = np.flatnonzero(self._equal | (y != 0))
        back = np.linalg.pinv(here.J[rows], rcond=1e-10)
        for _ in range(self._tuning.corrections):
            _, g = self._values(z)
            more = back @ (linear[rows] - g[rows])
            if not np.linalg.norm(more) <= np.linalg.norm(d):
                return
            z = np.clip(z + more, self._low, self._high)
            yield z

    def _steered(self, here: Evaluated, B: Array) -> tuple[Array, Array]:
        """(1), with a heavier nu if it gains too little of what theta could."""
        tuning = self._tuning
        low = np.maximum(self._low - here.z, -self._radius)
        high = np.minimum(self._high - here.z, self._radius)
        room = self._lower - here.g, self._upper - here.g
        d, y = self._program.solve(B, here.gradient, here.J, *room, low, high, self._nu)
        now, then = self._missed(here.g), self._missed(here.g + here.J @ d)
        if then > 1e-3 * self._tolerance and now > self._tolerance:
            still = 1e-8 * np.eye(len(d))
            best, _ = self._program.solve(still, 0 * here.gradient, here.J, *room, low, high, 1.0)
            gain = now - self._missed(here.g + here.J @ best)
            while now - then < tuning.steered * gain and self._nu < tuning.largest_weight:
                self._nu *= 10
                d, y = self._program.solve(B, here.gradient, here.J, *room, low, high, self._nu)
                then = self._missed(here.g + here.J @ d)
        if then <= self._tolerance:
            self._nu = min(max(self._nu, 1.5 * self._size(y)), tuning.largest_weight)
        return d, y

    def _size(self, y: Array) -> float:
        """The norm of multipliers that nu must exceed."""
        return float(max(np.abs(y[self._equal]).max(initial=0.0), np.abs(y[~self._equal]).sum()))

    def _positive(self, here: Evaluated, y: Array) -> Array:
        """(3)"""
        H = self._curvature(here.z, y)
        A = here.J[self._equal | (y != 0)]
        _, sizes, V = np.linalg.svd(A)
        rank = int(np.sum(sizes > 1e-10 * max(1.0, sizes.max(initial=0.0))))
        across, along = V[:rank].T, V[rank:].T
        values, vectors = np.linalg.eigh(along.T @ H @ along)
        least = 1e-8 * max(1.0, float(np.abs(values).max(initial=0.0)))
        values, vectors = np.maximum(np.abs(values), least), along @ vectors
        mixed = vectors.T @ H @ across
        stiff = mixed.T @ (mixed / values[:, None]) + np.eye(rank)
        cross = vectors @ mixed @ across.T
        return (vectors * values) @ vectors.T + cross + cross.T + across @ stiff @ across.T


class StepProgram:
    """(1) for qpOASES, with variables for what equations miss to both sides, and one for the bounds."""

    def __init__(self, n: int, lower: Array, upper: Array) -> None:
        self._n, self._equations = n, np.flatnonzero(lower == upper)
        self._below = np.flatnonzero((lower != upper) & np.isfinite(lower))
        self._above = np.flatnonzero((lower != upper) & np.isfinite(upper))
        e, b, a = len(self._equations), len(self._below), len(self._above)
        self._sizes, size = (e, b, a), n + 2 * e + 1
        self._A = np.zeros((e + b + a, size))
        self._A[:e, n : n + e], self._A[:e, n + e : n + 2 * e] = -np.eye(e), np.eye(e)
        self._A[e : e + b, -1], self._A[e + b :, -1] = 1.0, -1.0
        shape = {"h": ca.Sparsity.dense(size, size), "a": ca.Sparsity.dense(*self._A.shape)}
        options: Any = {"printLevel": "none", "error_on_fail": False, "nWSR": 2000}
        with contextlib.redirect_stdout(io.StringIO()):  # its banner comes before its options
            self._solve = ca.conic("step", "qpoases", shape, options)

    def solve(
        self, B: Array, slope: Array, J: Array, lower: Array, upper: Array, low: Array, high: Array, nu: float
    ) -> tuple[Array, Array]:
        """d and the multipliers of the rows."""
        n, (e, b, a) = self._n, self._sizes
        A, size = self._A, self._A.shape[1]
        A[:e, :n], A[e : e + b, :n], A[e + b :, :n] = J[self._equations], J[self._below], J[self._above]
        H = np.diag(np.full(size, 1e-12))
        H[:n, :n] = B
        free = np.inf
        found = self._solve(
            h=H,
            g=np.concatenate([slope, np.full(2 * e + 1, nu)]),
            a=A,
            lba=np.concatenate([lower[self._equations], lower[self._below], np.full(a, -free)]),
            uba=np.concatenate([upper[self._equations], np.full(b, free), upper[self._above]]),
            lbx=np.concatenate([low, np.zeros(2 * e + 1)]),
            ubx=np.concatenate([high, np.full(2 * e + 1, free)]),
        )
        x, lam = found["x"].full()[:, 0], found["lam_a"].full()[:, 0]
        d, y = x[:n], np.zeros(len(lower))
        y[self._equations] = lam[:e]
        y[self._below] += lam[e : e + b]
        y[self._above] += lam[e + b :]
        return d, y
