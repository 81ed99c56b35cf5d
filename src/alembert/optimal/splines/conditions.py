"""The conditions of a problem as rows over the unknowns of its splines, and derivatives of the motion along these.

With A = df/dx, and Y_k = dy_k/dz, which the splines give, the tangents of the passive states are

    X_{k+1} = A_k X_k + df/dy Y_k + df/dT T_z,    X_0 = dx_0/dz                                          (1)

a column for each unknown, whatever is asked for. For a weighted sum of results, here the Lagrangian

    L = w_l J + sum_k (w_u' u_k + w_d' d_k) + w_e' e + w_s' s + w_0' x_0 + w_N' x_N                        (2)

of costs, controls, rows of the path, the end and the start and the passive states there, the adjoints run backwards
over the stored states,

    lambda_N = dL_N/dx,    (lambda_k, dL/dy_k, dL/dT, dL/dp) = vjp of step k with (lambda_{k+1}, w_k)       (3)

and L_z follows with Y_k, by one sweep, however many control points there are. Jacobians take (1), slopes of the Lagrangian
(3).

Rows are lower <= g(z) <= upper, in this order: the start, the end, what a periodic motion must return to, bounds at
every node, and rates of controls over every interval. Rows have names and times, so that whatever is wrong with one can
be said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from alembert.lowering.stage_loop import SHARED, StageLoop
from alembert.optimal.closure import returning
from alembert.optimal.plant import FREE, Row
from alembert.optimal.splines.shooting import Shooting, SplineMotion

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Tangents:
    """Derivatives along z of what a `SplineMotion` has under these names."""

    cost: Array
    start: Array
    end: Array
    path: Array
    controls: Array
    x: Array


@dataclass(frozen=True, eq=False)
class Weights:
    """Those of (2)."""

    cost: float
    start: Array
    end: Array
    path: Array
    controls: Array
    x_first: Array
    x_last: Array


@dataclass(frozen=True, eq=False)
class Adjoint:
    """The slope of (2) along z and along the parameters, and lambda (N + 1, passive tangent)."""

    z: Array
    parameters: Array
    costates: Array


class SplineSlopes:
    """(1) and (3) of a `Shooting`."""

    def __init__(self, shooting: Shooting) -> None:
        self.shooting = shooting

    def tangents(self, motion: SplineMotion) -> Tangents:
        with np.errstate(all="ignore"):
            return self._tangents(motion)

    def _tangents(self, motion: SplineMotion) -> Tangents:
        s = self.shooting
        N, m, n, K, r = s.steps, s.m, s.n, s.control_points, len(s.path_rows)
        rows = n + 1 + m + r
        J = np.empty((N, rows, n + 9 * m + 1))
        span = np.array([motion.T])
        self._slopes(N, motion.x, motion.y, s.fractions, span, s.problem.parameters, J)
        own = J[:, :, n:-1].reshape(N, rows, 9, m).transpose(0, 1, 3, 2)
        D = np.zeros((N, rows, s.unknowns))
        D[:, :, : m * K] = np.matmul(own.reshape(N, rows * m, 9), s.within).reshape(N, rows, m * K)
        if s.problem.is_free:
            D[:, :, -1] = J[:, :, -1]
        X = np.zeros((N + 1, n, s.unknowns))
        X[0] = self.first(motion)
        for k in range(N if n else 0):
            X[k + 1] = J[k, :n, :n] @ X[k] + D[k, :n]
        within = np.matmul(J[:, n:, :n], X[:-1]) + D[:, n:]
        last = motion.by_end[:, :n] @ X[-1] + self._along(motion.by_end, -1, n)
        return Tangents(
            cost=within[:, 0].sum(axis=0) + last[0],
            start=self.start(motion),
            end=last[1 + m + r :],
            path=np.concatenate([within[:, 1 + m :], last[None, 1 + m : 1 + m + r]]),
            controls=np.concatenate([within[:, 1 : 1 + m], last[None, 1 : 1 + m]]),
            x=X,
        )

    def first(self, motion: SplineMotion) -> Array:
        """X_0 of (1)."""
        s = self.shooting
        free, at = len(s.open), s.m * s.control_points
        X = self._along(motion.by_first, 0, free)
        X[:, at : at + free] += motion.by_first[:, :free]
        return X

    def start(self, motion: SplineMotion) -> Array:
        """Of the rows at the start, which need no sweep."""
        n = self.shooting.n
        return motion.by_start[:, :n] @ self.first(motion) + self._along(motion.by_start, 0, n)

    def _along(self, J: Array, node: int, skip: int) -> Array:
        """Derivatives along z, by way of y at a node and of T, of rows with derivatives J along (skip, y, T, p)."""
        s = self.shooting
        m, K, out = s.m, s.control_points, np.zeros((len(J), s.unknowns))
        own = J[:, skip : skip + 3 * m].reshape(len(J), 3, m).transpose(0, 2, 1)
        out[:, : m * K] = (own @ s.basis[:, node]).reshape(len(J), m * K)
        if s.problem.is_free:
            out[:, -1] = J[:, skip + 3 * m]
        return out

    def adjoint(self, motion: SplineMotion, w: Weights) -> Adjoint:
        """(3)"""
        with np.errstate(all="ignore"):
            return self._adjoint(motion, w)

    def _adjoint(self, motion: SplineMotion, w: Weights) -> Adjoint:
        s = self.shooting
        N, m, n, K, free = s.steps, s.m, s.n, s.control_points, len(s.open)
        p = s.problem.parameters
        costates, by_y = np.empty((N + 1, n)), np.empty((N, 9 * m))
        by_T, by_p = np.empty((N, 1)), np.empty((N, len(p)))
        last = np.concatenate([[w.cost], w.controls[-1], w.path[-1], w.end]) @ motion.by_end
        costates[N] = last[:n] + w.x_last
        within = np.column_stack([np.full(N, w.cost), w.controls[:-1], w.path[:-1]])
        given = (motion.x, motion.y, s.fractions, np.array([motion.T]), p, costates)
        self._backward(N, *given, np.ascontiguousarray(within), costates, by_y, by_T, by_p)
        start = w.start @ motion.by_start
        costates[0] += start[:n] + w.x_first
        first = costates[0] @ motion.by_first
        z = np.zeros(s.unknowns)
        total = np.tensordot(by_y.reshape(N, 9, m), s.within, axes=((0, 1), (0, 1)))  # (m, K)
        for found, node, skip in ((last, -1, n), (start, 0, n), (first, 0, free)):
            total += found[skip : skip + 3 * m].reshape(3, m).T @ s.basis[:, node]
        z[: m * K] = total.ravel()
        z[m * K : m * K + free] = first[:free]
        ends = [(last, n), (start, n), (first, free)]
        if s.problem.is_free:
            z[-1] = by_T.sum() + sum(found[skip + 3 * m] for found, skip in ends)
        parameters = by_p.sum(axis=0) + sum(found[skip + 3 * m + 1 :] for found, skip in ends)
        return Adjoint(z, np.asarray(parameters), costates)

    # --- derivatives of steps -------------------------------------------------------------------------------------

    @cached_property
    def _slopes(self) -> StageLoop:
        """The Jacobian of a step's results along (x, y, T)."""
        x, y, fraction, T, p = place = self._place()
        e, here = ca.SX.sym("e", self.shooting.n), ca.SX.sym("here", x.numel())
        after, *rest = self.shooting.step(self.shooting.retract(x, e), y, fraction, T, p)
        results = ca.vertcat(self.shooting.local(here, after), *rest)
        J = ca.densify(self._at_rest(ca.jacobian(results, ca.vertcat(e, y, T)), e, here, after))
        function = ca.Function("spline_slopes", place, [J])
        return StageLoop(function, [0, 0, 0, SHARED, SHARED, 0], backward=False)

    @cached_property
    def _backward(self) -> StageLoop:
        """(3)"""
        x, y, fraction, T, p = place = self._place()
        e, here = ca.SX.sym("e", self.shooting.n), ca.SX.sym("here", x.numel())
        after, *rest = self.shooting.step(self.shooting.retract(x, e), y, fraction, T, p)
        others = ca.vertcat(*rest)
        costate, w = ca.SX.sym("costate", e.numel()), ca.SX.sym("w", others.numel())
        total = ca.dot(costate, self.shooting.local(here, after)) + ca.dot(w, others)
        slopes = [ca.gradient(total, along) for along in (e, y, T, p)]
        found = [ca.densify(self._at_rest(slope, e, here, after)) for slope in slopes]
        function = ca.Function("spline_adjoint", [*place, costate, w], found)
        return StageLoop(function, [0, 0, 0, SHARED, SHARED, 1, 0, 0, 0, 0, 0], backward=True)

    def _place(self) -> list[ca.SX]:
        s = self.shooting
        sizes = {"x": len(s.first), "y": 9 * s.m, "fraction": 1, "T": 1, "p": len(s.problem.parameters)}
        return [ca.SX.sym(name, size) for name, size in sizes.items()]

    def _at_rest(self, value: ca.SX, e: ca.SX, here: ca.SX, after: ca.SX) -> ca.SX:
        """Where nothing has moved: e = 0, and the point after is seen from itself."""
        zero = ca.SX.zeros(e.numel())
        return ca.substitute(ca.substitute(value, here, after), e, zero)


class SplineRows:
    """Values, Jacobians and the slope of the Lagrangian; keeps what was evaluated last."""

    def __init__(self, shooting: Shooting) -> None:
        self.shooting, self.slopes = shooting, SplineSlopes(shooting)
        self._last: tuple[Array, SplineMotion] | None = None
        self._tangents: tuple[SplineMotion, Tangents] | None = None
        s, problem = shooting, shooting.problem
        self._back = self._returning()
        self._rates = [k for k, pair in enumerate(problem.rates) if pair != FREE]
        names = problem.plant.tangent_names
        nodes, controls = s.steps + 1, problem.plant.controls
        blocks = {
            "start": ([f"start {r.name}" for r in s.start_rows], _bounds(s.start_rows)),
            "end": ([f"end {r.name}" for r in s.end_rows], _bounds(s.end_rows)),
            "back": ([f"periodic {names[k]}" for k in self._back], [(0.0, 0.0)] * len(self._back)),
            "path": ([f"bound on {r.name}" for r in s.path_rows] * nodes, _bounds(s.path_rows) * nodes),
            "rates": (
                [f"rate of {controls[k]}" for k in self._rates] * s.steps,
                [problem.rates[k] for k in self._rates] * s.steps,
            ),
        }
        self.names = [name for own, _ in blocks.values() for name in own]
        bounds = np.array([pair for _, own in blocks.values() for pair in own], dtype=float).reshape(-1, 2)
        self.lower, self.upper = bounds[:, 0].copy(), bounds[:, 1].copy()
        sizes = np.cumsum([0, *(len(own) for own, _ in blocks.values())])
        self.at = {name: slice(*sizes[k : k + 2]) for k, name in enumerate(blocks)}
        self.fractions = np.concatenate(
            [
                *(np.zeros(len(s.start_rows)), np.ones(len(s.end_rows) + len(self._back))),
                np.repeat(np.arange(nodes) / s.steps, len(s.path_rows)),
                np.repeat(np.arange(s.steps) / s.steps, len(self._rates)),
            ]
        )
        """where rows hold, as shares of the duration"""
        x, y = (ca.SX.sym(name, len(s.first)) for name in "xy")
        e, f = (ca.SX.sym(name, s.n) for name in "ef")
        around = s.local(s.retract(x, e), s.retract(y, f))
        at_rest = [ca.SX.zeros(s.n), ca.SX.zeros(s.n)]
        found = [ca.densify(w) for w in (around, ca.jacobian(around, e), ca.jacobian(around, f))]
        self._around = ca.Function("around", [x, y], ca.substitute(found, [e, f], at_rest))

    def _returning(self) -> list[int]:
        """Of the tangent vectors of the plant, which are to be at the end as at the start."""
        s, problem, plant = self.shooting, self.shooting.problem, self.shooting.plant
        if not problem.periodic:
            return []
        x, held = ca.SX.sym("x", plant.chart.point), ca.SX.sym("held", plant.chart.point)
        p = ca.SX.sym("p", len(problem.parameters))
        back = returning(problem, plant, plant.chart.local(held, x), x, p)
        names = plant.tangent_names
        both = [{r.component for r in rows if r.is_equation} for rows in (problem.start, s.end_rows)]
        return [k for k in back if not all(names[k] in stated for stated in both)]

    # --- values --------------------------------------------------------------------------------------------------

    def motion(self, z: Array) -> SplineMotion:
        if self._last is None or not np.array_equal(self._last[0], z):
            self._last = np.array(z), self.shooting.motion(z)
        return self._last[1]

    def tangents(self, z: Array) -> Tangents:
        motion = self.motion(z)
        if self._tangents is None or self._tangents[0] is not motion:
            self._tangents = motion, self.slopes.tangents(motion)
        return self._tangents[1]

    def values(self, z: Array) -> Array:
        """g(z)."""
        found = self.motion(z)
        rates = np.diff(found.controls[:, self._rates], axis=0) * self.shooting.steps / found.T
        return np.concatenate(
            [found.start, found.end, self._ends_meet(found)[0], found.path.ravel(), rates.ravel()]
        )

    def _ends_meet(self, motion: SplineMotion) -> tuple[Array, Array, Array, Array]:
        """Periodic rows, and their derivatives along z directly, and along the passive tangent at start and end."""
        s = self.shooting
        n, nv, K = s.n, s.model.nv, s.control_points
        count = len(self._back)
        values, direct = np.zeros(count), np.zeros((count, s.unknowns))
        first, last = np.zeros((count, n)), np.zeros((count, n))
        if not count:
            return values, direct, first, last
        around, by_first, by_last = (w.full() for w in self._around(motion.x[0], motion.x[-1]))
        for i, k in enumerate(self._back):
            rate, dof = divmod(k, nv)
            if dof in s.driven:
                j = s.driven.index(dof)
                step = s.basis[rate, -1] - s.basis[rate, 0]
                scale = 1 / motion.T**rate
                values[i] = step @ motion.coefficients[j] * scale
                direct[i, j * K : (j + 1) * K] = step * scale
                if rate and s.problem.is_free:
                    direct[i, -1] = -values[i] / motion.T
            else:
                j = s.passive.index(dof) + rate * len(s.passive)
                values[i], first[i], last[i] = around[j, 0], by_first[j], by_last[j]
        return values, direct, first, last

    def infeasibility(self, z: Array) -> float:
        off = self.off(z)
        largest = np.max(off, initial=0.0)
        return float(largest) if np.isfinite(off).all() else np.inf

    def off(self, z: Array) -> Array:
        """How far each row is outside its bounds; 0 within, not finite where it is not."""
        values = self.values(z)
        return np.maximum(np.maximum(self.lower - values, values - self.upper), 0.0)

    # --- slopes --------------------------------------------------------------------------------------------------

    def gradient(self, z: Array) -> Array:
        """Of the cost."""
        return self.tangents(z).cost

    def jacobian(self, z: Array) -> Array:
        """Of g."""
        motion, found = self.motion(z), self.tangents(z)
        _, direct, first, last = self._ends_meet(motion)
        back = direct + first @ found.x[0] + last @ found.x[-1]
        N, T = self.shooting.steps, motion.T
        rates = np.diff(found.controls[:, self._rates], axis=0) * N / T
        if self.shooting.problem.is_free:
            rates[:, :, -1] -= np.diff(motion.controls[:, self._rates], axis=0) * N / T**2
        blocks = [found.start, found.end, back, found.path, rates]
        return np.concatenate([block.reshape(-1, len(z)) for block in blocks])

    def lagrangian(self, z: Array, sigma: float, y: Array) -> Adjoint:
        """The slope of sigma J + y' g, by one backward sweep."""
        motion, s = self.motion(z), self.shooting
        _, direct, first, last = self._ends_meet(motion)
        back = y[self.at["back"]]
        controls = np.zeros_like(motion.controls)
        rates = y[self.at["rates"]].reshape(s.steps, -1) * s.steps / motion.T
        controls[1:, self._rates] += rates
        controls[:-1, self._rates] -= rates
        weights = Weights(
            cost=float(sigma),
            start=y[self.at["start"]],
            end=y[self.at["end"]],
            path=y[self.at["path"]].reshape(motion.path.shape),
            controls=controls,
            x_first=back @ first,
            x_last=back @ last,
        )
        found = self.slopes.adjoint(motion, weights)
        slope = found.z + back @ direct
        if s.problem.is_free:
            slope[-1] -= np.sum(rates * np.diff(motion.controls[:, self._rates], axis=0)) / motion.T
        return replace(found, z=slope)


def _bounds(rows: list[Row]) -> list[Any]:
    return [(row.lower, row.upper) for row in rows]
