"""Transmission zeros and minimal realisations, by orthogonal steps.

Zeros of (A, B, C, D) are the s at which [A - s  B; C  D] has less than its usual rank. Rows and columns in which D is
deficient are taken out one after the other (Emami-Naeini and Van Dooren 1982, "Computation of zeros of linear
multivariable systems", Automatica 18), until a system with a square, regular D is left; its zeros are the generalised
eigenvalues of

    [A B; C D] W = [A_f *; 0 D_f],     [1 0] W = [B_f *],      det(A_f - s B_f) = 0                           (1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy

from alembert.control.reachability import reachability

if TYPE_CHECKING:
    from alembert.control.statespace import StateSpace

Array = np.ndarray


def transmission_zeros(G: StateSpace) -> Array:
    """By real part and then imaginary part; none where the system matrix has no normal rank to lose."""
    A, B, C, D = _equilibrated(G)
    tolerance = 1e3 * np.finfo(float).eps * float(np.linalg.norm(np.block([[A, B], [C, D]])) or 1.0)
    A, B, C, D = _without_rows(A, B, C, D, tolerance)
    A, B, C, D = _transposed(*_without_rows(*_transposed(A, B, C, D), tolerance))
    n, m = B.shape
    if not n:
        return np.zeros(0, dtype=complex)
    if not D.size:
        return (
            np.sort_complex(np.linalg.eigvals(A).astype(complex))
            if not m and not len(C)
            else np.zeros(0, complex)
        )
    # W puts the rows [C D] to the right: its null space comes first
    W = np.linalg.qr(np.hstack([C, D]).T, mode="complete")[0]
    W = np.hstack([W[:, len(D) :], W[:, : len(D)]])
    A_f = np.hstack([A, B]) @ W[:, :n]
    values = scipy.linalg.eigvals(A_f, W[:n, :n])
    return np.sort_complex(values[np.isfinite(values)].astype(complex))


def minimal(G: StateSpace, tolerance: float) -> StateSpace:
    """The part that inputs reach, and of it the part that outputs see."""
    for side in ("inputs", "outputs"):
        scaled = G.balanced_scales()
        pair = (scaled.A, scaled.B) if side == "inputs" else (scaled.A.T, scaled.C.T)
        found = reachability(*pair, scaled.state_names, tolerance)
        if not found:
            V = scipy.linalg.null_space(found.lost) if found.rank else np.zeros((G.order, 0))
            G = scaled.with_matrices(V.T @ scaled.A @ V, V.T @ scaled.B, scaled.C @ V)
    return G


def _equilibrated(G: StateSpace) -> tuple[Array, Array, Array, Array]:
    """Inputs, outputs and states in units that make rows and columns alike; zeros do not change."""
    scaled = G.balanced_scales()
    A, B, C, D = (x.copy() for x in scaled.matrices)
    size = np.abs(A).max(initial=0.0) or 1.0
    for axis, left, below in ((0, B, D), (1, C, D)):
        most = np.maximum(np.abs(left).max(axis=axis, initial=0.0), np.abs(below).max(axis=axis, initial=0.0))
        factor = np.exp2(np.round(np.log2(size / np.where(most > 0, most, size))))
        left *= factor if axis == 0 else factor[:, None]
        below *= factor if axis == 0 else factor[:, None]
    return A, B, C, D


def _transposed(A: Array, B: Array, C: Array, D: Array) -> tuple[Array, Array, Array, Array]:
    return A.T, C.T, B.T, D.T


def _without_rows(
    A: Array, B: Array, C: Array, D: Array, tolerance: float
) -> tuple[Array, Array, Array, Array]:
    """The same zeros with a D of full row rank."""
    while True:
        U, s, _ = np.linalg.svd(D, full_matrices=True) if D.size else (np.eye(len(D)), np.zeros(0), None)
        rank = int(np.count_nonzero(s > tolerance))
        if rank == len(D):
            return A, B, C, D
        C, D = U.T @ C, (U.T @ D)[:rank]
        C1, C2 = C[:rank], C[rank:]
        _, s, Vt = np.linalg.svd(C2, full_matrices=True) if C2.size else (None, np.zeros(0), np.eye(len(A)))
        r = int(np.count_nonzero(s > tolerance))
        if r == 0:
            return A, B, C1, D
        V = np.vstack([Vt[r:], Vt[:r]]).T  # what C2 does not see comes first
        A, B, C1 = V.T @ A @ V, V.T @ B, C1 @ V
        k = len(A) - r
        A, B, C, D = A[:k, :k], B[:k], np.vstack([C1[:, :k], A[k:, :k]]), np.vstack([D, B[k:]])
