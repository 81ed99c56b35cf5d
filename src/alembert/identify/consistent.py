"""Inertias that some distribution of mass can have, without constraints: log-Cholesky coordinates.

A ten-vector is *physically consistent* when its pseudo-inertia is positive definite,

    J = [Sigma  h;  h^T  m],      Sigma = tr(I)/2 1 - I                                            (1)

(I about the origin; this is the positivity of mass and of the central principal moments with their triangle
inequalities). Every such J has one factor J = U U^T with

    U = e^alpha [e^d1  s12  s13  t1;  0  e^d2  s23  t2;  0  0  e^d3  t3;  0  0  0  1]               (2)

and theta = (alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3) is any vector of ten numbers. Relative to a
reference inertia J_0 = U_0 U_0^T, J = U_0 U U^T U_0^T: theta then is dimensionless, zero at the reference.

Source: Rucker and Wensing 2022.

The physically consistent estimate: Newton steps along the curved valley that the data leave open.

With pi(x) the inertias at the log-Cholesky coordinates x (see `alembert.identify.consistent`) and frictions, armatures and
rotor inertias as multiples x >= 0 of their scales:

    min (1/2) |w (R pi(x) - z)|^2 + (1/2) |(x - x0) / spread|^2                                   (3)

What the data fix is a steep valley, what they leave open its floor, which is as curved as the prior: there the term

    S = sum_k lambda_k d^2 pi_k / dx^2,     lambda = w^2 R^T (R pi - z)                            (4)

of the Hessian is as large as the prior's own, and without it (Gauss and Newton) steps creep. So a step d solves, over the
entries that are not held at zero,

    (A^T A + [S + 1/spread^2]_+ + mu C^2) d = -gradient,     A = w R dpi/dx                        (5)

with [.]_+ the same matrix with the absolute values of its eigenvalues, C the lengths of the columns, and mu by the ratio of
the decrease to what (5) predicts (Nielsen 1999). A^T A is never formed: nearly noiseless data would square away the prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray


def pseudo_inertia(ten: Any) -> Array:
    """(1): ten-vectors (..., 10) to matrices (..., 4, 4)."""
    return np.einsum("kij,...k->...ij", _TO_J, _checked("pseudo_inertia", "ten-vector", ten))


def ten_vector(J: Any) -> Array:
    """The inverse of `pseudo_inertia`."""
    return np.einsum("kij,...ij->...k", _FROM_J, np.asarray(J, dtype=float))


def is_consistent(ten: Any) -> Array:
    """Whether the pseudo-inertia is positive definite, per body."""
    return np.linalg.eigvalsh(pseudo_inertia(ten))[..., 0] > 0


def to_log_cholesky(ten: Any, *, reference: Any = None) -> Array:
    """theta (..., 10) of ten-vectors (..., 10), relative to the ten-vectors `reference` when given."""
    U = _factor(pseudo_inertia(ten), "ten-vector")
    if reference is not None:
        U = np.linalg.solve(_factor(pseudo_inertia(reference), "reference"), U)
    scale = U[..., 3, 3]
    N = U / scale[..., None, None]
    parts = [np.log(scale), *(np.log(N[..., i, i]) for i in range(3))]
    parts += [N[..., i, j] for i, j in _ABOVE]
    return np.stack(parts, axis=-1)


def from_log_cholesky(theta: Any, *, reference: Any = None) -> Array:
    """Ten-vectors (..., 10) of any theta (..., 10)."""
    with np.errstate(over="ignore", invalid="ignore"):  # far away: infinite, or not a number
        U = _total(theta, reference)
        return ten_vector(U @ np.swapaxes(U, -1, -2))


def log_cholesky_jacobian(theta: Any, *, reference: Any = None) -> Array:
    """d ten / d theta, (..., 10, 10), from dJ = dU U^T + U dU^T."""
    theta = _checked("log_cholesky_jacobian", "theta", theta)
    U = _upper(theta)
    dU = _slopes(theta, U)
    if reference is not None:
        U0 = _factor(pseudo_inertia(reference), "reference")
        U, dU = U0 @ U, U0[..., None, :, :] @ dU
    half = dU @ np.swapaxes(U, -1, -2)[..., None, :, :]
    return np.swapaxes(ten_vector(half + np.swapaxes(half, -1, -2)), -1, -2)


def log_cholesky_curvature(theta: Any, weight: Any, *, reference: Any = None) -> Array:
    """d^2 (weight . ten) / d theta^2, (..., 10, 10), for weights (..., 10).

    With weight . ten = tr(L U U^T), L symmetric (in the axes of the reference): 2 tr(L dU_i dU_j^T) + 2 tr(L d2U_ij U^T);
    by (2) the only second derivatives of U are those that hold alpha and one other, or the same d_i twice, and equal dU.
    """
    theta = _checked("log_cholesky_curvature", "theta", theta)
    L = np.einsum("kij,...k->...ij", _FROM_J, _checked("log_cholesky_curvature", "weight", weight))
    L = (L + np.swapaxes(L, -1, -2)) / 2
    if reference is not None:
        U0 = _factor(pseudo_inertia(reference), "reference")
        L = np.swapaxes(U0, -1, -2) @ L @ U0
    U = _upper(theta)
    dU = _slopes(theta, U)
    H = 2 * np.einsum("...ab,...iac,...jbc->...ij", L, dU, dU)
    again = 2 * np.einsum("...iab,...ab->...i", dU, L @ U)
    H[..., 0, :] += again
    H[..., 1:, 0] += again[..., 1:]
    for i in range(1, 4):
        H[..., i, i] += again[..., i]
    return H


def lifted(ten: Any, *, floor: float = 1e-3) -> Array:
    """Ten-vectors (..., 10) made safely consistent: no principal radius of gyration under `floor` metres, or under a
    hundredth of the largest radius of all of them about their origins, where that is less.

    Point masses, thin rods and plates lie on the boundary, where log-Cholesky coordinates are infinite.
    """
    ten = _checked("lifted", "ten-vector", ten)
    mass, h = ten[..., 0:1], ten[..., 1:4]
    if not np.all(mass > 0):
        raise ArgumentError(f"lifted: mass is {np.min(mass):.6g}, expected a positive number")
    J = pseudo_inertia(ten)
    central = J[..., :3, :3] - h[..., :, None] * h[..., None, :] / mass[..., None]
    size, axes = np.linalg.eigh(central)
    largest = float(np.sqrt((np.trace(J[..., :3, :3], axis1=-2, axis2=-1) / mass[..., 0]).max(initial=0.0)))
    least = min(floor, 0.01 * largest) if largest > 0 else floor
    raised = np.maximum(size, least**2 * mass)
    J[..., :3, :3] += (axes * (raised - size)[..., None, :]) @ np.swapaxes(axes, -1, -2)
    return ten_vector(J)


def _total(theta: Any, reference: Any) -> Array:
    U = _upper(_checked("from_log_cholesky", "theta", theta))
    return U if reference is None else _factor(pseudo_inertia(reference), "reference") @ U


def _upper(theta: Array) -> Array:
    """(2)"""
    U = np.zeros((*theta.shape[:-1], 4, 4))
    U[..., 3, 3] = 1.0
    for i in range(3):
        U[..., i, i] = np.exp(theta[..., 1 + i])
    for k, (i, j) in enumerate(_ABOVE):
        U[..., i, j] = theta[..., 4 + k]
    return np.exp(theta[..., 0])[..., None, None] * U


def _slopes(theta: Array, U: Array) -> Array:
    """dU/dtheta of (2), (..., 10, 4, 4)."""
    dU = np.zeros((*theta.shape[:-1], 10, 4, 4))
    dU[..., 0, :, :] = U
    for i in range(3):
        dU[..., 1 + i, i, i] = U[..., i, i]
    for k, (i, j) in enumerate(_ABOVE):
        dU[..., 4 + k, i, j] = np.exp(theta[..., 0])
    return dU


def _factor(J: Array, what: str) -> Array:
    """Upper U with J = U U^T: Cholesky's factor with rows and columns reversed."""
    try:
        return np.linalg.cholesky(J[..., ::-1, ::-1])[..., ::-1, ::-1]
    except np.linalg.LinAlgError:
        worst = float(np.min(np.linalg.eigvalsh(J)))
        raise ArgumentError(
            f"to_log_cholesky: {what} is not physically consistent: its pseudo-inertia has the eigenvalue {worst:.6g}, "
            "expected positive ones (point masses, thin rods and plates are on the boundary; see `lifted`)"
        ) from None


def _checked(function: str, what: str, value: Any) -> Array:
    x = np.asarray(value, dtype=float)
    if x.ndim == 0 or x.shape[-1] != 10:
        raise ArgumentError(f"{function}: {what} has shape {x.shape}, expected (..., 10)")
    if not np.all(np.isfinite(x)):
        raise ArgumentError(
            f"{function}: {what} is {x[~np.isfinite(x)][0]} somewhere, expected finite numbers"
        )
    return x


_ABOVE = ((0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3))
_TENSOR = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))


def _to_j() -> Array:
    T = np.zeros((10, 4, 4))
    T[0, 3, 3] = 1.0
    for i in range(3):
        T[1 + i, i, 3] = T[1 + i, 3, i] = 1.0
    for k, (i, j) in enumerate(_TENSOR):
        if i == j:
            T[4 + k, :3, :3] = np.eye(3) / 2
            T[4 + k, i, i] -= 1.0
        else:
            T[4 + k, i, j] = T[4 + k, j, i] = -1.0
    return T


def _from_j() -> Array:
    """ten_k = sum of T_kij J_ij; I = tr(Sigma) 1 - Sigma."""
    T = np.zeros((10, 4, 4))
    T[0, 3, 3] = 1.0
    for i in range(3):
        T[1 + i, i, 3] = T[1 + i, 3, i] = 0.5
    for k, (i, j) in enumerate(_TENSOR):
        if i == j:
            T[4 + k, :3, :3] = np.eye(3)
            T[4 + k, i, i] -= 1.0
        else:
            T[4 + k, i, j] = T[4 + k, j, i] = -0.5
    return T


_TO_J, _FROM_J = _to_j(), _from_j()


_ITERATIONS = 1000
_SETTLED = 1e-11  # of the scaled gradient against the residuals
_LEAST = 1e-2  # curvature of the floor, of that of the prior


@dataclass(frozen=True, eq=False)
class ConsistentFit:
    """(3); x has ten entries for each body, then one for each other parameter."""

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
        bodies = from_log_cholesky(x[: self.count].reshape(-1, 10), reference=self.tens)
        return np.concatenate([bodies.ravel(), self.scale * x[self.count :]])

    def slopes(self, x: Array) -> Array:
        """dpi/dx"""
        D = np.diag(np.concatenate([np.zeros(self.count), self.scale]))
        theta = x[: self.count].reshape(-1, 10)
        for k, block in enumerate(log_cholesky_jacobian(theta, reference=self.tens)):
            D[10 * k : 10 * k + 10, 10 * k : 10 * k + 10] = block
        return D

    def solve(self, x: Array, weight: float) -> Array:
        """The minimum of (3) with w = `weight`, from x."""
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
        """B with B^T B = [S + 1/spread^2]_+ of (5), and b with B^T b the gradient of the prior."""
        root, push = np.eye(len(x)) / self.spread, p.copy()
        theta, weights = (y[: self.count].reshape(-1, 10) for y in (x, force))
        curvature = log_cholesky_curvature(theta, weights, reference=self.tens)
        sizes, axes = np.linalg.eigh(curvature + np.eye(10) / self.spread**2)
        sizes = np.sqrt(np.maximum(np.abs(sizes), _LEAST / self.spread**2))
        for k in range(len(theta)):
            own = slice(10 * k, 10 * k + 10)
            root[own, own] = sizes[k][:, None] * axes[k].T
            push[own] = axes[k].T @ p[own] / self.spread / sizes[k]
        return root, push


def _damped(A: Array, root: Array, r: Array, push: Array, columns: Array, mu: float) -> Array:
    """(5) by orthogonal factors; `root` makes the columns independent whatever the data."""
    rows = np.vstack([A / columns, root / columns, np.sqrt(mu) * np.eye(len(columns))])
    right = -np.concatenate([r, push, np.zeros(len(columns))])
    factor = np.asarray(np.linalg.qr(np.column_stack([rows, right]), mode="r"))
    step: Array = scipy.linalg.solve_triangular(factor[:-1, :-1], factor[:-1, -1])
    return step / columns
