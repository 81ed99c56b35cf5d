"""The saddle-point system of constrained motion at a batch of states, on arrays.

    M x - R^T f = b,     R x = c                                                                        (1)

with the mass matrix M and independent rows R: the minimal set of the rows G of the active constraints, D the others, with
D = K R. Accelerations, impulses, positions and derivatives differ in b and c only (see `alembert.constraints`). By the
admittance of the tree, for b = 0,

    Y = M^-1 R^T,   Lambda = R Y                          sweeps, one per row                   (2)
    x = Y f,        Lambda f = c                          x = M^-1 R^T f with R x = c           (3)
    D x = c_d                                             checked: then x solves all rows       (4)
    K = (D Y) Lambda^-1,   [1; K] (1 + K^T K)^-1 f        the smallest forces of the same effect (5)

These are steps C to F of Rodriguez, Jain and Kreutz-Delgado (spatial operator algebra, closed topology). Near a singular
configuration Lambda has lost too many digits; then by an orthogonal factorisation R^T = Q U,

    x = Q1 y + Q2 z,   U^T y = c,   (C^T M Q2) z = C^T (b - M Q1 y),   C = Q2,   U f = Q1^T (M x - b)   (6)

which takes any b, any M that is regular where R x = 0, and forces along other rows Z: then Z C = 0 and Z^T = Q U.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from alembert.constraints import rank
from alembert.constraints.rank import Choice
from alembert.constraints.results import GOOD

Array = np.ndarray
AT_ONCE = 1 << 20
"""numbers in the right-hand sides of the states that are solved for at once"""


def by_admittance(
    solve: Callable[[Array], Array],
    choice: Choice,
    G: Array,
    scale: Array,
    c: Array,
    allowed: Callable[[Array], Array],
    *,
    forces: bool,
) -> tuple[Array, Array, Array]:
    """(2)-(5) for a given minimal set: x (B, nv), f (B, m), and which states it served.

    `solve` is M^-1 on (B, k, nv), `scale` (B, m) the size of the rows, `allowed` the violation of a dropped row, in units
    of its size, by the length of x.
    """
    rows, dropped = choice.rows, choice.dropped
    R = G if not len(dropped) else G[:, rows]
    Y = solve(R)
    admittance = R @ _T(Y)
    diagonal = np.einsum("bii->bi", admittance)
    lengths = np.sqrt(np.einsum("bij,bij->bi", R, R))
    good = np.all((lengths > GOOD * scale[:, rows]) & (diagonal > 0), axis=-1)
    unit = np.where(good[:, None], 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 1.0)
    L, fine = _cholesky(admittance * unit[:, :, None] * unit[:, None, :])
    good &= fine & (np.einsum("bii->bi", L).min(axis=-1, initial=1.0) > GOOD)

    def respond(b: Array) -> Array:
        return unit[..., None] * np.linalg.solve(_T(L), np.linalg.solve(L, unit[..., None] * b))

    f_r = respond(c[:, rows, None])
    x = (_T(f_r) @ Y)[:, 0]
    f = np.zeros_like(c)
    f[:, rows] = f_r[..., 0]
    if len(dropped):
        D = G[:, dropped]
        left = np.abs((D @ x[..., None])[..., 0] - c[:, dropped]) / scale[:, dropped]
        good &= np.all(left <= allowed(np.linalg.norm(x, axis=-1))[:, None], axis=-1)
        matter = np.max(np.abs(D) / scale[:, dropped, None], initial=0.0) > rank.RANK
        if forces and matter:
            f = smallest(_T(respond(_T(D @ _T(Y)))), f_r, choice, G.shape[1])
    return x, f, good


def orthogonal(
    M: Array, R: Array, c: Array, b: Array | float = 0.0, Z: Array | None = None
) -> tuple[Array, Array]:
    """(6): x (..., n, k) and f (..., r, k) for c (..., r, k) and b (..., n, k)."""
    r = R.shape[-2]
    Q, U = np.linalg.qr(_T(R), mode="complete")
    Q1, Q2, U = Q[..., :r], Q[..., r:], U[..., :r, :]
    x = Q1 @ np.linalg.solve(_T(U), c)
    C = Q2
    if Z is not None:
        Q, U = np.linalg.qr(_T(Z), mode="complete")
        Q1, C, U = Q[..., :r], Q[..., r:], U[..., :r, :]
    if r < M.shape[-1]:
        x = x + Q2 @ np.linalg.solve(_T(C) @ M @ Q2, _T(C) @ (b - M @ x))
    return x, np.linalg.solve(U, _T(Q1) @ (M @ x - b))


def by_sets(M: Array, G: Array, sets: Array, c: Array, b: Array | float = 0.0) -> tuple[Array, Array]:
    """(6) with the rows of G (B, m, n) that each state's set (B, m) chooses; f is zero for the others."""
    b = np.broadcast_to(b, (len(c), M.shape[-1], c.shape[-1]))
    x, f = np.empty(b.shape), np.zeros(c.shape)
    for rows, states in rank.alike(sets):
        for at in in_parts(states, (M.shape[-1] + len(rows)) * c.shape[-1]):
            own = np.ix_(at, rows)
            x[at], f[own] = orthogonal(M[at], G[own], c[own], b[at])
    return x, f


def in_parts(states: Array, size: int) -> Iterator[Array]:
    """Some states after others, so that matrices of `size` numbers for each do not take too much memory at once."""
    count = max(1, AT_ONCE // max(1, size))
    for start in range(0, len(states), count):
        yield states[start : start + count]


def least(M: Array, G: Array, c: Array, scale: Array) -> Array:
    """x of (1) at one state for rows of any rank; of rows that contradict each other, the nearest."""
    U = np.linalg.cholesky(M).T
    A = np.linalg.solve(U.T, (G / scale[:, None]).T).T
    return np.linalg.solve(U, np.linalg.lstsq(A, c / scale, rcond=1e-9)[0])


def smallest(K: Array, f: Array, choice: Choice, count: int) -> Array:
    """(5) for f (B, r, 1): (B, count)"""
    found = np.zeros((len(f), count))
    base = np.linalg.solve(np.eye(choice.rank) + _T(K) @ K, f)
    found[:, choice.rows] = base[..., 0]
    found[:, choice.dropped] = (K @ base)[..., 0]
    return found


def smallest_forces(G: Array, y: Array) -> Array:
    """The smallest f with G^T f = y, over a batch."""
    return (np.linalg.pinv(_T(G), rcond=rank.RANK) @ y[..., None])[..., 0]


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


def _T(x: Array) -> Array:
    return np.swapaxes(x, -1, -2)
