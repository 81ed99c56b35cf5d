"""How a tree responds to the forces of constraints, by its admittance or by orthogonal factors.

Notation: G (m x nv) the rows of the active constraints, r of them a minimal set R, D the dropped ones, with D = K R.

    Y = M^-1 R^T,   Lambda = R Y                          sweeps, one per row                   (1)
    x = Y f_r,      Lambda f_r = b_r                      x = M^-1 G^T f with R x = b           (2)
    D x = b_d                                             checked: then x solves all rows       (3)
    K = (D Y) Lambda^-1,   f = [1; K] (1 + K^T K)^-1 f_r  the smallest forces of the same effect (4)

These are steps C to F of Rodriguez, Jain and Kreutz-Delgado (spatial operator algebra, closed topology). Near a singular
configuration Lambda has lost too many digits; x then is found from an orthogonal factorisation R^T = Q U instead:

    x = Q1 y + Q2 z,   U^T y = b_r,   (Q2^T M Q2) z = -Q2^T M Q1 y,   U f_r = Q1^T M x          (5)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alembert.constraints import rank
from alembert.constraints.rank import Choice
from alembert.constraints.states import Terms
from alembert.constraints.tolerances import CONSISTENT, GOOD, OFF

Array = np.ndarray


def by_admittance(
    solve: Callable[[Array], Array], choice: Choice, t: Terms, b: Array, size: Array, forces: bool
) -> tuple[Array, Array, Array]:
    """(1)-(4) for a given minimal set, and which states it served; `solve` is M^-1 on (B, k, nv)."""
    rows, dropped = choice.rows, choice.dropped
    R = t.jacobian if not len(dropped) else t.jacobian[:, rows]
    Y = solve(R)
    admittance = R @ np.swapaxes(Y, -1, -2)
    diagonal = np.einsum("bii->bi", admittance)
    lengths = np.sqrt(np.einsum("bij,bij->bi", R, R))
    good = np.all((lengths > GOOD * t.scale[:, rows]) & (diagonal > 0), axis=-1)
    unit = np.where(good[:, None], 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 1.0)
    scaled = admittance * unit[:, :, None] * unit[:, None, :]
    L, fine = _cholesky(scaled)
    good &= fine & (np.einsum("bii->bi", L).min(axis=-1, initial=1.0) > GOOD)
    f_r = unit * _cholesky_solve(L, unit * b[:, rows])
    x = (f_r[:, None, :] @ Y)[:, 0]
    f = np.zeros_like(b)
    f[:, rows] = f_r
    if len(dropped):
        D = t.jacobian[:, dropped]
        left = np.abs((D @ x[..., None])[..., 0] - b[:, dropped]) / t.scale[:, dropped]
        allowed = (CONSISTENT + np.minimum(100 * t.slack, OFF)) * (size + np.linalg.norm(x, axis=-1))
        good &= np.all(left <= allowed[:, None], axis=-1)
        matter = np.max(np.abs(D) / t.scale[:, dropped, None], initial=0.0) > rank.RANK
        if forces and matter:
            crossed = D @ np.swapaxes(Y, -1, -2)  # D Y, (B, d, r)
            K = np.swapaxes(
                unit[:, :, None] * _cholesky_solve(L, unit[:, :, None] * np.swapaxes(crossed, -1, -2)),
                -1,
                -2,
            )
            f = smallest(K, f_r, rows, dropped, t.jacobian.shape[1])
    return x, f, good


def orthogonal(M: Array, R: Array, b: Array) -> tuple[Array, Array]:
    """(5): x = M^-1 R^T f with R x = b, and f, for independent rows R (..., r, nv)."""
    r = R.shape[-2]
    Q, U = np.linalg.qr(np.swapaxes(R, -1, -2), mode="complete")
    Q1, Q2, U = Q[..., :r], Q[..., r:], U[..., :r, :]
    x = Q1 @ np.linalg.solve(np.swapaxes(U, -1, -2), b[..., None])
    if r < M.shape[-1]:
        Q2_T = np.swapaxes(Q2, -1, -2)
        x = x - Q2 @ np.linalg.solve(Q2_T @ M @ Q2, Q2_T @ (M @ x))
    return x[..., 0], np.linalg.solve(U, np.swapaxes(Q1, -1, -2) @ (M @ x))[..., 0]


def _cholesky(A: Array) -> tuple[Array, Array]:
    """Factors of (B, n, n), and which are good; the others are the identity."""
    try:
        return np.linalg.cholesky(A), np.ones(len(A), dtype=bool)
    except np.linalg.LinAlgError:
        L, fine = np.empty_like(A), np.ones(len(A), dtype=bool)
        for k, matrix in enumerate(A):
            try:
                L[k] = np.linalg.cholesky(matrix)
            except np.linalg.LinAlgError:
                L[k], fine[k] = np.eye(A.shape[-1]), False
        return L, fine


def _cholesky_solve(L: Array, b: Array) -> Array:
    """L L^T x = b for vectors (B, n) or columns (B, n, k)."""
    columns = b if b.ndim == 3 else b[..., None]
    x = np.linalg.solve(np.swapaxes(L, -1, -2), np.linalg.solve(L, columns))
    return x if b.ndim == 3 else x[..., 0]


def smallest(K: Array, f_r: Array, rows: Array, dropped: Array, count: int) -> Array:
    """(4)"""
    f = np.zeros((len(f_r), count))
    r = len(rows)
    base = np.linalg.solve(np.eye(r) + np.swapaxes(K, -1, -2) @ K, f_r[..., None])
    f[:, rows] = base[..., 0]
    f[:, dropped] = (K @ base)[..., 0]
    return f
