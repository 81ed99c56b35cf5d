"""The physically consistent estimate: Newton steps along the curved valley that the data leave open.

With pi(x) the inertias at the log-Cholesky coordinates x (see `alembert.identify.consistent`) and frictions, armatures and
rotor inertias as multiples x >= 0 of their scales:

    min (1/2) |w (R pi(x) - z)|^2 + (1/2) |(x - x0) / spread|^2                                   (1)

What the data fix is a steep valley, what they leave open its floor, which is as curved as the prior: there the term

    S = sum_k lambda_k d^2 pi_k / dx^2,     lambda = w^2 R^T (R pi - z)                            (2)

of the Hessian is as large as the prior's own, and without it (Gauss and Newton) steps creep. So a step d solves, over the
entries that are not held at zero,

    (A^T A + [S + 1/spread^2]_+ + mu C^2) d = -gradient,     A = w R dpi/dx                        (3)

with [.]_+ the same matrix with the absolute values of its eigenvalues, C the lengths of the columns, and mu by the ratio of
the decrease to what (3) predicts (Nielsen 1999). A^T A is never formed: nearly noiseless data would square away the prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from alembert.errors import NumericalError
from alembert.identify import consistent

Array = np.ndarray
_ITERATIONS = 1000
_SETTLED = 1e-11  # of the scaled gradient against the residuals
_LEAST = 1e-2  # curvature of the floor, of that of the prior


@dataclass(frozen=True, eq=False)
class ConsistentFit:
    """(1); x has ten entries for each body, then one for each other parameter."""

    R: Array
    z: Array
    tens: Array
    """the prior inertias, (bodies, 10)"""
    rest: Array
    scale: Array
    spread: float

    @property
    def count(self) -> int:
        """The number of inertial parameters."""
        return self.tens.size

    @property
    def prior(self) -> Array:
        return np.concatenate([np.zeros(self.count), self.rest / self.scale])

    def start(self) -> Array:
        return np.concatenate([np.zeros(self.count), np.maximum(self.rest / self.scale, 1e-3)])

    def inside(self, x: Array) -> Array:
        """Which entries are not held at zero."""
        return (np.arange(len(x)) < self.count) | (x > 0)

    def values(self, x: Array) -> Array:
        """pi(x)"""
        bodies = consistent.from_log_cholesky(x[: self.count].reshape(-1, 10), reference=self.tens)
        return np.concatenate([bodies.ravel(), self.scale * x[self.count :]])

    def slopes(self, x: Array) -> Array:
        """dpi/dx"""
        D = np.diag(np.concatenate([np.zeros(self.count), self.scale]))
        theta = x[: self.count].reshape(-1, 10)
        for k, block in enumerate(consistent.log_cholesky_jacobian(theta, reference=self.tens)):
            D[10 * k : 10 * k + 10, 10 * k : 10 * k + 10] = block
        return D

    def solve(self, x: Array, weight: float) -> Array:
        """The minimum of (1) with w = `weight`, from x."""
        bounded = np.arange(len(x)) >= self.count
        cost, r, p = self._cost(x, weight)
        mu = 1e-3
        for _ in range(_ITERATIONS):
            A = weight * (self.R @ self.slopes(x))
            gradient = A.T @ r + p / self.spread
            columns = np.sqrt(np.sum(A**2, axis=0) + 1 / self.spread**2)
            free = np.flatnonzero(~(bounded & (x <= 0) & (gradient > 0)))
            if np.abs(gradient / columns)[free].max(initial=0.0) <= _SETTLED * max(1.0, np.sqrt(2 * cost)):
                return x
            root, push = self._floor(x, weight * (self.R.T @ r), p)
            while True:
                moved = x.copy()
                moved[free] += _damped(A[:, free], root[:, free], r, push, columns[free], mu)
                moved[bounded] = np.maximum(moved[bounded], 0.0)
                step = moved - x
                then, r_then, p_then = self._cost(moved, weight)
                predicted = -gradient @ step - (np.sum((A @ step) ** 2) + np.sum((root @ step) ** 2)) / 2
                if then < cost and predicted > 0:
                    break
                if np.linalg.norm(step) <= 1e-12 * (1 + np.linalg.norm(x)):
                    return x  # nothing lower within rounding
                mu = 4 * max(mu, 1e-12)
            gain = (cost - then) / predicted
            mu = 2 * mu if gain < 0.1 else mu * max(0.1, 1 - (2 * gain - 1) ** 3)
            mu = mu if mu > 1e-12 else 0.0
            settled = cost - then <= 1e-15 * cost
            x, cost, r, p = moved, then, r_then, p_then
            if settled:
                return x
        raise NumericalError(
            f"identify: the consistent estimate has not settled after {_ITERATIONS} iterations (gradient "
            f"{np.abs(gradient).max():.3g}); the data may contradict the model, see method='least_squares'"
        )

    def _cost(self, x: Array, weight: float) -> tuple[float, Array, Array]:
        r, p = weight * (self.R @ self.values(x) - self.z), (x - self.prior) / self.spread
        cost = float(r @ r + p @ p) / 2
        return (cost if np.isfinite(cost) else np.inf), r, p

    def _floor(self, x: Array, force: Array, p: Array) -> tuple[Array, Array]:
        """B with B^T B = [S + 1/spread^2]_+ of (3), and b with B^T b the gradient of the prior."""
        root, push = np.eye(len(x)) / self.spread, p.copy()
        theta, weights = (y[: self.count].reshape(-1, 10) for y in (x, force))
        curvature = consistent.log_cholesky_curvature(theta, weights, reference=self.tens)
        sizes, axes = np.linalg.eigh(curvature + np.eye(10) / self.spread**2)
        sizes = np.sqrt(np.maximum(np.abs(sizes), _LEAST / self.spread**2))
        for k in range(len(theta)):
            own = slice(10 * k, 10 * k + 10)
            root[own, own] = sizes[k][:, None] * axes[k].T
            push[own] = axes[k].T @ p[own] / self.spread / sizes[k]
        return root, push


def _damped(A: Array, root: Array, r: Array, push: Array, columns: Array, mu: float) -> Array:
    """(3) by orthogonal factors; `root` makes the columns independent whatever the data."""
    rows = np.vstack([A / columns, root / columns, np.sqrt(mu) * np.eye(len(columns))])
    right = -np.concatenate([r, push, np.zeros(len(columns))])
    factor = np.asarray(np.linalg.qr(np.column_stack([rows, right]), mode="r"))
    step: Array = scipy.linalg.solve_triangular(factor[:-1, :-1], factor[:-1, -1])
    return step / columns
