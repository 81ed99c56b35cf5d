"""Inertias that some distribution of mass can have, without constraints: log-Cholesky coordinates.

A ten-vector is *physically consistent* when its pseudo-inertia is positive definite,

    J = [Sigma  h;  h^T  m],      Sigma = tr(I)/2 1 - I                                            (1)

(I about the origin; this is the positivity of mass and of the central principal moments with their triangle
inequalities). Every such J has one factor J = U U^T with

    U = e^alpha [e^d1  s12  s13  t1;  0  e^d2  s23  t2;  0  0  e^d3  t3;  0  0  0  1]               (2)

and theta = (alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3) is any vector of ten numbers. Relative to a
reference inertia J_0 = U_0 U_0^T, J = U_0 U U^T U_0^T: theta then is dimensionless, zero at the reference.

Source: Rucker and Wensing 2022.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from alembert.errors import ArgumentError

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
    """Ten-vectors (..., 10) made safely consistent: no principal radius of gyration under `floor` metres.

    Point masses, thin rods and plates lie on the boundary, where log-Cholesky coordinates are infinite.
    """
    ten = _checked("lifted", "ten-vector", ten)
    mass, h = ten[..., 0:1], ten[..., 1:4]
    if not np.all(mass > 0):
        raise ArgumentError(f"lifted: mass is {np.min(mass):.6g}, expected a positive number")
    J = pseudo_inertia(ten)
    central = J[..., :3, :3] - h[..., :, None] * h[..., None, :] / mass[..., None]
    size, axes = np.linalg.eigh(central)
    raised = np.maximum(size, floor**2 * mass)
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
