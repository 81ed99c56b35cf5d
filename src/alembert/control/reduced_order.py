"""The best controller of an order that is given.

After Hyland and Bernstein (1984), "The optimal projection equations for fixed-order dynamic compensation":

    x' = A x + B u + w,   y = C x + v,    x_c' = A_c x_c + B_c y,   u = C_c x_c,     J = E (x^T Q x + u^T R u)          (1)

With the loop closed, x' = F x + noise of intensity N, cost weight S,

    F^T P + P F + S = 0,   F L + L F^T + N = 0,   J = tr(P N),   dJ = 2 tr(L P dF) + tr(L dS) + tr(P dN)              (2)

give the slopes in A_c, B_c, C_c, and a quasi-Newton method the minimum, begun at reductions of the controller of full order.
Where the slopes vanish, the optimal projection equations hold: with

    Qh = L_12 L_22^-1 L_21,   Ph = P_12 P_22^-1 P_21,   X = L_11 - Qh,   Z = P_11 - Ph,   T = Qh Ph (Qh Ph)^#         (3)

T is a projection, its rank the order of the controller, and

    A X + X A^T + W - X C^T V^-1 C X + (1 - T) X C^T V^-1 C X (1 - T)^T = 0                                           (4)

What is left of (4) is part of the result. With the full order T is one, (4) the Riccati equation of the filter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert.control import arguments
from alembert.control.arguments import read_system, takes_systems
from alembert.control.gramian import Lyapunov, semidefinite_root
from alembert.control.interconnection import feedback
from alembert.control.quadratic import LQG, lqg
from alembert.control.reduction import balanced_truncation, loop_truncation, reduce_controller
from alembert.control.statespace import StateSpace
from alembert.control.structured import Goal, fixed_order, tune
from alembert.errors import ArgumentError, NumericalError, UnsupportedError

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class ReducedLQG:
    """A controller u = K(s) y of low order, its cost, and that of the best controller of all."""

    controller: StateSpace
    cost: float
    full_cost: float
    slope: float
    """the largest slope of log J that is left, in balanced coordinates of the controller"""
    residual: float
    """what is left of the optimal projection equation (4), of its largest term"""
    full: LQG


@takes_systems()
def reduced_lqg(
    plant: StateSpace,
    order: int,
    Q: Any,
    R: Any,
    process: Any,
    sensor: Any,
    *,
    through: Any = None,
    start: StateSpace | None = None,
) -> ReducedLQG:
    """The controller of `order` states with least J; see `lqg` for the weights.

    It is begun at reductions of the controller of full order, or at `start`. What is found is a minimum nearby: there may be
    others.
    """
    n = plant.order
    start = None if start is None else read_system("reduced_lqg", "start", start)
    if isinstance(order, bool) or not (isinstance(order, (int, np.integer)) and 1 <= order <= n):
        raise ArgumentError(f"reduced_lqg: order is {order!r}, expected a whole number from 1 to {n}")
    if plant.is_discrete or np.any(plant.D):
        raise UnsupportedError(
            "reduced_lqg: the plant is sampled or has a direct part, expected x' = A x + B u, y = C x"
        )
    if start is not None and (start.order, *start.shape) != (order, *plant.shape[::-1]):
        raise ArgumentError(
            f"reduced_lqg: start has {start.order} states and shape {start.shape}, expected {order} and {plant.shape[::-1]}"
        )
    try:
        full = lqg(plant, Q, R, process, sensor, through=through)
    except NumericalError as error:
        raise NumericalError(f"reduced_lqg: there is no design of full order; {error}") from None
    problem = _Loop(plant, Q, R, process, sensor, through, full.controller)
    own = problem.plant
    begun = (
        _starts(own, problem.scaled(full.controller), int(order))
        if start is None
        else [problem.scaled(start)]
    )
    stable = [K for K in begun if K.order == order and feedback(own, K, sign=1).is_stable]
    if not stable and start is None:
        stable = problem.tuned(int(order))
    if not stable:
        raise NumericalError(
            f"reduced_lqg: no controller of order {order} to begin with makes the loop stable; give start= one that does, "
            "or a higher order"
        )
    stable = [K for K in stable if problem.is_used(K)]
    if not stable:
        raise NumericalError(
            "reduced_lqg: to begin with, a state of the controller is not reached by measurements or does nothing to u: "
            "without noise, or without Q, no controller is best; else give start= one whose states are used"
        )
    best = min((problem.minimised(K) for K in stable), key=lambda found: found[0])
    cost, K, slope = best
    found = problem.unscaled(K)
    return ReducedLQG(
        full.controller.with_matrices(*found.matrices) if order == n else found,
        cost,
        problem.cost(*problem.parts(problem.scaled(full.controller)))[0],
        slope,
        problem.projection_residual(K),
        full,
    )


def _starts(plant: StateSpace, K: StateSpace, order: int) -> list[StateSpace]:
    if order == K.order:
        return [K]
    found = []
    loop = feedback(plant, K, sign=1)
    for reduce in (
        lambda: reduce_controller(K, plant, order).system,
        lambda: balanced_truncation(K, order).system,
        lambda: loop_truncation(K, loop, order, noise=float(np.abs(loop.poles()).mean())),
    ):
        try:
            found.append(reduce())
        except (
            NumericalError,
            ArgumentError,
        ):  # an unstable controller, or a loop that is lost: the next one
            continue
    return found


class _Loop:
    """(1) and (2), in units in which R and V have ones on their diagonals, and so has the covariance of the states with the
    controller of full order."""

    def __init__(
        self, plant: StateSpace, Q: Any, R: Any, process: Any, sensor: Any, through: Any, full: StateSpace
    ) -> None:
        self.plant = plant
        G, W = arguments.process_noise("reduced_lqg", plant, process, through)
        self.W = G @ W @ G.T
        self.V = arguments.weight("reduced_lqg", "sensor", sensor, plant.output_names, definite=True)
        self.Q = arguments.weight("reduced_lqg", "Q", Q, plant.state_names)
        self.R = arguments.weight("reduced_lqg", "R", R, plant.input_names, definite=True)
        self.u, self.y = 1 / np.sqrt(np.diag(self.R)), np.sqrt(np.diag(self.V))
        found = self._solved(*self.parts(full))
        size = np.diag(found[1])[: plant.order] if found is not None else np.zeros(plant.order)
        x = np.sqrt(np.where(size > 0, size, 1.0))
        self.plant = plant.with_matrices(
            plant.A * x / x[:, None], plant.B * self.u / x[:, None], plant.C * x / self.y[:, None]
        )
        self.W, self.V = self.W / x / x[:, None], self.V / self.y / self.y[:, None]
        self.Q, self.R = self.Q * x * x[:, None], self.R * self.u * self.u[:, None]

    def scaled(self, K: StateSpace) -> StateSpace:
        """A controller of the plant as it was given, in these units."""
        return K.with_matrices(K.A, K.B * self.y, K.C / self.u[:, None], K.D * self.y / self.u[:, None])

    def unscaled(self, K: StateSpace) -> StateSpace:
        return K.with_matrices(K.A, K.B / self.y, K.C * self.u[:, None])

    def parts(self, K: StateSpace) -> tuple[Array, Array, Array]:
        if np.any(K.D):
            raise ArgumentError("reduced_lqg: start has a direct part, expected u = C_c x_c")
        return K.A, K.B, K.C

    def _solved(self, a: Array, b: Array, c: Array) -> tuple[Array, Array, Array] | None:
        """P, L and N, where the loop is stable."""
        A, B, C = self.plant.A, self.plant.B, self.plant.C
        n = len(A)
        F = np.block([[A, B @ c], [b @ C, a]])
        if not np.all(np.isfinite(F)) or np.linalg.eigvals(F).real.max() >= 0:
            return None
        S, N = np.zeros_like(F), np.zeros_like(F)
        S[:n, :n], S[n:, n:] = self.Q, c.T @ self.R @ c
        N[:n, :n], N[n:, n:] = self.W, b @ self.V @ b.T
        equation = Lyapunov(F)
        return equation.adjoint(S), equation.solve(N), N

    def is_used(self, K: StateSpace) -> bool:
        """Whether noise reaches all states of a controller, and the cost sees them."""
        found = self._solved(*self.parts(K))
        if found is None:
            return False
        n = self.plant.order
        sizes = [np.linalg.eigvalsh(X[n:, n:]) for X in found[:2]]
        return all(
            s[0] > 1e-14 * s[-1] and s[-1] > 1e-14 * np.abs(X).max()
            for s, X in zip(sizes, found[:2], strict=True)
        )

    def cost(self, a: Array, b: Array, c: Array) -> tuple[float, tuple[Array, Array, Array]]:
        """J, and its slopes in A_c, B_c and C_c."""
        found = self._solved(a, b, c)
        if found is None:
            return np.inf, (np.zeros_like(a), np.zeros_like(b), np.zeros_like(c))
        P, L, N = found
        n = self.plant.order
        slope = 2 * P @ L
        da = slope[n:, n:]
        db = slope[n:, :n] @ self.plant.C.T + 2 * P[n:, n:] @ b @ self.V
        dc = self.plant.B.T @ slope[:n, n:] + 2 * self.R @ c @ L[n:, n:]
        return float(np.trace(P @ N)), (da, db, dc)

    def tuned(self, order: int) -> list[StateSpace]:
        """A stabilising controller, by another method."""
        G = self.plant
        n, (p, m) = G.order, G.shape
        free = np.zeros((m, p), bool)
        P = StateSpace(
            G.A,
            np.hstack([semidefinite_root(self.W), np.zeros((n, p)), G.B]),
            np.vstack([semidefinite_root(self.Q).T, np.zeros((m, n)), G.C]),
            np.block(
                [
                    [np.zeros((n, n + p)), np.zeros((n, m))],
                    [np.zeros((m, n + p)), semidefinite_root(self.R).T],
                    [np.zeros((p, n)), semidefinite_root(self.V), np.zeros((p, m))],
                ]
            ),
        )
        try:
            goals = [Goal("h2")]
            found = tune(
                P, fixed_order(order, m, p, free=free), controls=m, measurements=p, goals=goals, iterations=60
            )
        except NumericalError:
            return []
        return [found.controller]

    def minimised(self, K: StateSpace) -> tuple[float, StateSpace, float]:
        a, b, c = self.parts(K)
        k = len(a)
        shapes = (a.shape, b.shape, c.shape)
        cuts = np.cumsum([a.size, b.size])

        def split(x: Array) -> list[Array]:
            return [part.reshape(s) for part, s in zip(np.split(x, cuts), shapes, strict=True)]

        def value(x: Array) -> tuple[float, Array]:
            J, slopes = self.cost(*split(x))
            if not np.isfinite(J):
                return 1e6, np.zeros_like(x)
            return float(np.log(J)), np.concatenate([s.ravel() for s in slopes]) / J

        best = np.inf
        for _ in range(6):  # each time in coordinates that the loop balances
            found = self._solved(a, b, c)
            assert found is not None
            P, L, _ = found
            n = self.plant.order
            left = np.linalg.cholesky(L[n:, n:] + 1e-12 * np.trace(L[n:, n:]) * np.eye(k))
            U, s, _ = np.linalg.svd(left.T @ P[n:, n:] @ left)
            T = left @ U / np.maximum(s, 1e-14 * s[0]) ** 0.25
            a, b, c = np.linalg.solve(T, a @ T), np.linalg.solve(T, b), c @ T
            x = np.concatenate([part.ravel() for part in (a, b, c)])
            end = scipy.optimize.minimize(
                value, x, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 400}
            )
            a, b, c = split(end.x)
            before, best = best, float(end.fun)
            if before - best < 1e-13:
                break
        # near the minimum differences of J are rounding, slopes are not yet
        end = scipy.optimize.least_squares(
            lambda x: value(x)[1], end.x, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=20
        )
        if value(end.x)[0] <= best + 1e-12:
            a, b, c = split(end.x)
        J, slopes = self.cost(a, b, c)
        slope = max(float(np.abs(s).max()) for s in slopes) / J
        G = self.plant
        made = StateSpace(a, b, c, np.zeros((len(c), b.shape[1])), 0.0, G.output_names, G.input_names)
        return J, made, slope

    def projection_residual(self, K: StateSpace) -> float:
        """(4)"""
        found = self._solved(*self.parts(K))
        assert found is not None
        P, L, _ = found
        A, C, n = self.plant.A, self.plant.C, self.plant.order
        Qh = L[:n, n:] @ np.linalg.solve(L[n:, n:], L[n:, :n])
        X = L[:n, :n] - Qh
        # the group inverse of a matrix of rank k: T projects on its range along its null space
        left, right = L[:n, n:], P[n:, :n]
        T = left @ np.linalg.solve(right @ left, right)
        gain = X @ C.T @ np.linalg.solve(self.V, C @ X)
        rest = np.eye(n) - T
        terms = A @ X, X @ A.T, self.W, -gain, rest @ gain @ rest.T
        return float(np.abs(sum(terms)).max() / max(np.abs(t).max() for t in terms))
