"""Gramians and Hankel singular values of stable systems.

    A P + P A^T + B B^T = 0,    A^T Q + Q A + C^T C = 0,    sigma^2 = eig(P Q)                               (1)

Where eigenvectors V of A are well conditioned, P = V X V^H with X_ij = -(V^-1 B B^T V^-H)_ij / (lambda_i + conj
lambda_j): one eigendecomposition, much faster for large, lightly damped structures. Factors P = S S^T come without P
itself (Hammarling 1982), so that small singular values keep their digits: with A upper triangular, from the last
state to the first,

    s = |b| / t,   t = sqrt(-2 Re a),   (A_1 + conj(a)) u = -B_1 b^H t / |b| - a_1 s,   B_1 <- B_1 - t u b / |b|    (2)

for the last diagonal entry a, the column a_1 above it, and the last row b of B. Sampled systems go through `bilinear`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg

from alembert.control.responses import WELL_CONDITIONED
from alembert.errors import NumericalError

if TYPE_CHECKING:
    from alembert.control.statespace import StateSpace

Array = np.ndarray
_MODAL_FROM = 500  # states; below, Bartels and Stewart's method takes no longer


def gramians(G: StateSpace) -> tuple[Array, Array]:
    """(P, Q) of (1)."""
    G = stable_continuous("gramians", G)
    return lyapunov(G.A, G.B @ G.B.T), lyapunov(G.A.T, G.C.T @ G.C)


def hankel_singular_values(G: StateSpace) -> Array:
    G = stable_continuous("hankel_singular_values", G)
    S, R = gramian_factors(G.A, G.B, G.C)
    return np.linalg.svd(R.T @ S, compute_uv=False)


def gramian_factors(A: Array, B: Array, C: Array) -> tuple[Array, Array]:
    """(S, R) with P = S S^T and Q = R R^T, by (2), from one Schur form."""
    T, Z = scipy.linalg.schur(A, output="complex")
    S = _hammarling(T, Z.conj().T @ B)
    # of the transposed equation: A^T = conj(Z) T^T Z^T, made upper triangular by reversing the order of the states
    R = _hammarling(T.T[::-1, ::-1], (C @ Z).T[::-1])
    return _real_factor(Z @ S), _real_factor(Z.conj() @ R[::-1])


def _real_factor(S: Array) -> Array:
    """S S^H is real: it is that of the real and imaginary parts side by side, made triangular."""
    return np.asarray(np.linalg.qr(np.hstack([S.real, S.imag]).T, mode="r")).T


def _hammarling(T: Array, B: Array) -> Array:
    """(2)"""
    n = len(T)
    U = np.zeros((n, n), dtype=complex)
    B = B.astype(complex)
    for k in range(n - 1, -1, -1):
        b = B[k]
        size = float(np.linalg.norm(b))
        if size == 0.0:
            continue
        t = np.sqrt(-2 * T[k, k].real)
        U[k, k] = size / t
        if k:
            unit = b / size
            right = -(B[:k] @ unit.conj()) * t - T[:k, k] * U[k, k]
            shifted = T[:k, :k] + np.conj(T[k, k]) * np.eye(k)
            u = scipy.linalg.solve_triangular(shifted, right, check_finite=False)
            U[:k, k] = u
            B[:k] -= t * np.outer(u, unit)
    return U


def lyapunov(A: Array, Q: Array) -> Array:
    """X of A X + X A^T + Q = 0, Q symmetric."""
    n = len(A)
    if n >= _MODAL_FROM and not np.iscomplexobj(A):
        balanced, (scale, _) = scipy.linalg.matrix_balance(A, permute=False, separate=True)
        values, V = np.linalg.eig(balanced)
        s = np.linalg.svd(V, compute_uv=False)
        if s[-1] * WELL_CONDITIONED > s[0]:
            W = np.linalg.solve(V, (Q / scale / scale[:, None]).astype(complex))
            W = np.linalg.solve(V, W.conj().T).conj().T
            X = (V @ (-W / (values[:, None] + values.conj())) @ V.conj().T).real * scale * scale[:, None]
            X = (X + X.T) / 2
            residual = A @ X + X @ A.T + Q
            if np.abs(residual).max() <= 1e-9 * max(np.abs(Q).max(), np.abs(A @ X).max()):
                return X
    X = scipy.linalg.solve_continuous_lyapunov(A, -Q)
    return np.asarray((X + X.conj().T) / 2)


def stable_continuous(function: str, G: StateSpace) -> StateSpace:
    """The system in continuous time, or its bilinear twin; refused where a pole is not stable."""
    from alembert.control.sampling import bilinear

    bad = G.decay()
    if np.any(bad >= 0):
        pole = np.linalg.eigvals(G.A)[int(np.argmax(bad))]
        raise NumericalError(
            f"{function}: the system is not stable, it has the pole {pole:.6g}; split it first (`split_stable`)"
        )
    return bilinear(G) if G.is_discrete else G
