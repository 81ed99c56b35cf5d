"""The best controller of an order that is given.

After Hyland and Bernstein (1984), "The optimal projection equations for fixed-order dynamic compensation":

    x' = A x + B u + w,   y = C x + v,    x_c' = A_c x_c + B_c y,   u = C_c x_c,     J = E (x^T Q x + u^T R u)          (1)

With the loop closed, x' = F x + noise of intensity N, cost weight S,

    F^T P + P F + S = 0,   F L + L F^T + N = 0,   J = tr(P N)                                                         (2)

give J, the square of an H2 norm, and its slopes in A_c, B_c, C_c (`structured`), and a quasi-Newton method the minimum,
begun at reductions of the controller of full order.
Where the slopes vanish, the optimal projection equations hold: with

    Qh = L_12 L_22^-1 L_21,   Ph = P_12 P_22^-1 P_21,   X = L_11 - Qh,   Z = P_11 - Ph,   T = Qh Ph (Qh Ph)^#         (3)

T is a projection, its rank the order of the controller, and

    A X + X A^T + W - X C^T V^-1 C X + (1 - T) X C^T V^-1 C X (1 - T)^T = 0                                           (4)

What is left of (4) is part of the result. With the full order T is one, (4) the Riccati equation of the filter.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert.arguments import whole
from alembert.control import arguments
from alembert.control.arguments import read_system, takes_systems
from alembert.control.gramian import Lyapunov, semidefinite_root
from alembert.control.interconnection import feedback, lft
from alembert.control.quadratic import LQG, lqg
from alembert.control.reduction import balanced_truncation, loop_truncation, reduce_controller
from alembert.control.statespace import StateSpace
from alembert.control.structured import Goal, StructuredLoop, affine, fixed_order, tune
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
    whole("reduced_lqg", "order", order, f"a whole number from 1 to {n}", most=n)
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
    problem = _Problem(plant, full.controller, int(order), Q, R, process, sensor, through)
    own, whole_order = problem.plant, problem.scaled(full.controller)
    begun = _starts(own, whole_order, int(order)) if start is None else [problem.scaled(start)]
    stable = [K for K in begun if K.order == order and feedback(own, K, sign=1).is_stable]
    if not stable and start is None:
        stable = problem.tuned()
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
        lft(problem.P, whole_order).h2_norm() ** 2,
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


class _Problem:
    """(1) and (2), in units in which R and V have ones on their diagonals, and so has the covariance of the states with the
    controller of full order."""

    def __init__(
        self,
        plant: StateSpace,
        full: StateSpace,
        order: int,
        Q: Any,
        R: Any,
        process: Any,
        sensor: Any,
        through: Any,
    ) -> None:
        what, n, (p, m) = "reduced_lqg", plant.order, plant.shape
        G, W = arguments.process_noise(what, plant, process, through)
        W = G @ W @ G.T
        V = arguments.weight(what, "sensor", sensor, plant.output_names, definite=True)
        Q = arguments.weight(what, "Q", Q, plant.state_names)
        R = arguments.weight(what, "R", R, plant.input_names, definite=True)
        self.u, self.y = 1 / np.sqrt(np.diag(R)), np.sqrt(np.diag(V))
        noise = scipy.linalg.block_diag(W, full.B @ V @ full.B.T)
        size = np.diag(Lyapunov(feedback(plant, full, sign=1).A).solve(noise))[:n]
        x = np.sqrt(np.where(size > 0, size, 1.0))
        self.plant = plant.with_matrices(
            plant.A * x / x[:, None], plant.B * self.u / x[:, None], plant.C * x / self.y[:, None]
        )
        self.W, self.V = W / x / x[:, None], V / self.y / self.y[:, None]
        self.P = StateSpace(
            self.plant.A,
            np.hstack([semidefinite_root(self.W), np.zeros((n, p)), self.plant.B]),
            np.vstack([semidefinite_root(Q * x * x[:, None]).T, np.zeros((m, n)), self.plant.C]),
            np.block(
                [
                    [np.zeros((n, n + p)), np.zeros((n, m))],
                    [np.zeros((m, n + p)), semidefinite_root(R * self.u * self.u[:, None]).T],
                    [np.zeros((p, n)), semidefinite_root(self.V), np.zeros((p, m))],
                ]
            ),
        )
        self.free = np.ones((order + m, order + p), bool)
        self.free[order:, order:] = False
        self.structure = affine(np.zeros(self.free.shape), self.free, order=order)
        self.loop = StructuredLoop(self.P, m, p, self.structure)

    def scaled(self, K: StateSpace) -> StateSpace:
        """A controller of the plant as it was given, in these units."""
        return K.with_matrices(K.A, K.B * self.y, K.C / self.u[:, None], K.D * self.y / self.u[:, None])

    def unscaled(self, K: StateSpace) -> StateSpace:
        return K.with_matrices(K.A, K.B / self.y, K.C * self.u[:, None])

    def parameters(self, K: StateSpace) -> Array:
        if np.any(K.D):
            raise ArgumentError("reduced_lqg: start has a direct part, expected u = C_c x_c")
        return np.asarray(np.block([[K.A, K.B], [K.C, K.D]])[self.free])

    def gramians(self, K: StateSpace) -> tuple[Array, Array] | None:
        """P and L, where the loop is stable."""
        closed = lft(self.P, K)
        if not closed.is_stable:
            return None
        equation = Lyapunov(closed.A)
        return equation.adjoint(closed.C.T @ closed.C), equation.solve(closed.B @ closed.B.T)

    def is_used(self, K: StateSpace) -> bool:
        """Whether noise reaches all states of a controller, and the cost sees them."""
        self.parameters(K)
        found = self.gramians(K)
        if found is None:
            return False
        n = self.plant.order
        sizes = [np.linalg.eigvalsh(X[n:, n:]) for X in found]
        return all(
            s[0] > 1e-14 * s[-1] and s[-1] > 1e-14 * np.abs(X).max()
            for s, X in zip(sizes, found, strict=True)
        )

    def cost(self, x: Array) -> tuple[float, Array]:
        """J, and its slopes in the entries of A_c, B_c and C_c; infinite where the loop is not stable."""
        if not np.all(np.isfinite(x)):
            return np.inf, np.zeros_like(x)
        return self.loop.value(x, [Goal("h2", power=2.0)])

    def tuned(self) -> list[StateSpace]:
        """A stabilising controller, by another method."""
        p, m = self.plant.shape
        structure = fixed_order(self.structure.order, m, p, free=np.zeros((m, p), bool))
        try:
            found = tune(self.P, structure, controls=m, measurements=p, goals=[Goal("h2")], iterations=60)
        except NumericalError:
            return []
        return [found.controller]

    def minimised(self, K: StateSpace) -> tuple[float, StateSpace, float]:
        n, k, best = self.plant.order, K.order, np.inf

        def value(x: Array) -> tuple[float, Array]:
            J, slopes = self.cost(x)
            return (float(np.log(J)), slopes / J) if np.isfinite(J) else (1e6, np.zeros_like(x))

        for _ in range(6):  # each time in coordinates that the loop balances
            found = self.gramians(K)
            assert found is not None
            P, L = found
            left = np.linalg.cholesky(L[n:, n:] + 1e-12 * np.trace(L[n:, n:]) * np.eye(k))
            U, s, _ = np.linalg.svd(left.T @ P[n:, n:] @ left)
            K = K.transformed(left @ U / np.maximum(s, 1e-14 * s[0]) ** 0.25)
            end = scipy.optimize.minimize(
                value, self.parameters(K), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 400}
            )
            K = self.structure.system(end.x)
            before, best = best, float(end.fun)
            if before - best < 1e-13:
                break
        # near the minimum differences of J are rounding, slopes are not yet
        x = scipy.optimize.least_squares(
            lambda x: value(x)[1], end.x, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=20
        ).x
        x = x if value(x)[0] <= best + 1e-12 else end.x
        J, slopes = self.cost(x)
        names = self.plant.output_names, self.plant.input_names
        made = dataclasses.replace(self.structure.system(x), input_names=names[0], output_names=names[1])
        return J, made, float(np.abs(slopes).max()) / J

    def projection_residual(self, K: StateSpace) -> float:
        """(4)"""
        found = self.gramians(K)
        assert found is not None
        P, L = found
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
