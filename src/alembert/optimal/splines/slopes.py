"""Derivatives of a motion along its unknowns: forwards by tangents, backwards by adjoints.

With A = df/dx, and Y_k = dy_k/dz, which the splines give, the tangents of the passive states are

    X_{k+1} = A_k X_k + df/dy Y_k + df/dT T_z,    X_0 = dx_0/dz                                          (1)

a column for each unknown, whatever is asked for. For a weighted sum of results, here the Lagrangian

    L = w_l J + sum_k (w_u' u_k + w_d' d_k) + w_e' e + w_s' s + w_0' x_0 + w_N' x_N                        (2)

of costs, controls, rows of the path, the end and the start and the passive states there, the adjoints run backwards
over the stored states,

    lambda_N = dL_N/dx,    (lambda_k, dL/dy_k, dL/dT, dL/dp) = vjp of step k with (lambda_{k+1}, w_k)       (3)

and L_z follows with Y_k: one sweep for each result, however many control points there are. Hence `jacobian` takes (3) where
results are fewer than unknowns, and (1) otherwise; slopes of the Lagrangian take (3).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from alembert.lowering.stage_loop import SHARED, StageLoop
from alembert.optimal.splines.shooting import Motion, Shooting

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Tangents:
    """Derivatives along z of what a `Motion` has under these names."""

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


class Slopes:
    """(1) and (3) of a `Shooting`."""

    def __init__(self, shooting: Shooting) -> None:
        self.shooting = shooting

    def none(self, motion: Motion) -> Weights:
        """Weights that are zero."""
        zero, n = np.zeros_like, self.shooting.n
        ends = zero(motion.start), zero(motion.end)
        return Weights(0.0, *ends, zero(motion.path), zero(motion.controls), np.zeros(n), np.zeros(n))

    def tangents(self, motion: Motion) -> Tangents:
        with np.errstate(all="ignore"):
            return self._tangents(motion)

    def _tangents(self, motion: Motion) -> Tangents:
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

    def first(self, motion: Motion) -> Array:
        """X_0 of (1)."""
        s = self.shooting
        free, at = len(s.open), s.m * s.control_points
        X = self._along(motion.by_first, 0, free)
        X[:, at : at + free] += motion.by_first[:, :free]
        return X

    def start(self, motion: Motion) -> Array:
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

    def adjoint(self, motion: Motion, w: Weights) -> Adjoint:
        """(3)"""
        with np.errstate(all="ignore"):
            return self._adjoint(motion, w)

    def _adjoint(self, motion: Motion, w: Weights) -> Adjoint:
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
