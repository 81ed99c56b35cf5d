"""The saddle-point system of constrained motion at a batch of states, on arrays, and the rows that are independent there.

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

To choose independent rows, they are scaled by the largest row of their loop, so that metres and radians of one loop, and
loops of different size, can be compared. A row is independent when its distance from the span of those chosen before it is
more than the tolerance times the largest of all rows. Pivoting picks the row that is farthest away each time; the minimal
set then is well conditioned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
import scipy

from alembert.constraints.results import GOOD
from alembert.constraints.results import RANK as RANK

Array = np.ndarray
TIE = 1e-7
"""relative difference of distances that is none: more than rounding makes of equal ones in a factorisation"""


@dataclass(frozen=True, eq=False)
class Choice:
    """Row numbers of a minimal set and of the others, both ascending; `margin` is its smallest scaled distance."""

    rows: Array
    dropped: Array
    margin: float

    @property
    def rank(self) -> int:
        return len(self.rows)


def scales(G: Array, groups: Sequence[slice]) -> Array:
    """(..., m): for each row of G (..., m, nv) the length of the longest row of its group (1 where all vanish)."""
    lengths = np.sqrt(np.einsum("...ij,...ij->...i", G, G))
    if not groups:
        return lengths
    longest = np.maximum.reduceat(lengths, [s.start for s in groups], axis=-1)
    longest[longest == 0] = 1.0
    return np.repeat(longest, [s.stop - s.start for s in groups], axis=-1)


def choose(G: Array, groups: Sequence[slice], tolerance: float) -> Choice:
    """A minimal set of rows of G (m x nv)."""
    scaled, lengths, limit = _scaled(G[None], groups, np.array([tolerance]))
    candidates = np.flatnonzero(lengths[0] > limit[0])
    rows, margin = candidates, 1.0
    if len(candidates):
        R, order = _pivoted(scaled[0, candidates].T)
        pivots = np.abs(R.diagonal())
        rank = int(np.count_nonzero(pivots > limit[0]))
        rows, margin = np.sort(candidates[order[:rank]]), float(pivots[rank - 1])
    return Choice(rows, others(len(G), rows), margin)


def choose_each(G: Array, groups: Sequence[slice], tolerance: Array) -> tuple[Array, Array]:
    """The same for B matrices (B, m, nv), each by its own tolerance: (B, m) masks, and the margins (B,).

    The matrices are orthogonalised together, each by its own pivots.
    """
    scaled, lengths, limit = _scaled(G, groups, tolerance)
    candidates = lengths > limit[:, None]
    chosen, margin, each = np.zeros(lengths.shape, dtype=bool), np.ones(len(G)), np.arange(len(G))
    some = np.flatnonzero(candidates.any(axis=0))
    left = scaled[:, some]
    left[~candidates[:, some]] = 0.0
    for _ in range(min(left.shape[1:])):
        distance = np.einsum("bij,bij->bi", left, left)
        row = distance.argmax(axis=1)
        far = np.sqrt(distance[each, row])
        more = far > limit
        if not more.any():
            break
        direction = left[each, row] * (more / np.where(more, far, 1.0))[:, None]
        left -= (left @ direction[..., None]) * direction[:, None]
        left[each, row] = 0.0
        chosen[each, some[row]] |= more
        margin = np.where(more, far, margin)
    return chosen, margin


def symbolic_choice(G: ca.SX, groups: Sequence[slice], tolerance: float) -> ca.SX:
    """The mask (m) of a minimal set, as `choose_each` takes it, on symbols: for code that chooses rows by itself."""
    m, n = G.shape
    left = ca.SX(m, n)
    for s in groups:
        lengths = ca.sqrt(ca.sum2(G[s, :] * G[s, :]))
        longest = ca.mmax(lengths)
        for i in range(s.start, s.stop):
            left[i, :] = G[i, :] * ((1 - TIE * i) / ca.if_else(longest > 0, longest, 1.0))
    limit = (tolerance**2) * ca.fmax(ca.mmax(ca.sum2(left * left)), np.finfo(float).tiny)
    chosen = ca.SX.zeros(m)
    for _ in range(min(m, n)):
        distance = ca.sum2(left * left)
        far = ca.mmax(distance)
        more, none = far > limit, ca.SX(1)
        direction = ca.SX.zeros(1, n)
        taken = []
        for i in range(m):
            here = more * none * (distance[i] >= far)
            none = none * (1 - here)
            direction = direction + here * left[i, :]
            taken.append(here)
        direction = direction / ca.sqrt(ca.if_else(more, far, 1.0))
        left = left - (left @ direction.T) @ direction
        for i, here in enumerate(taken):
            left[i, :] = (1 - here) * left[i, :]
            chosen[i] = chosen[i] + here
    return ca.densify(chosen)


def _scaled(G: Array, groups: Sequence[slice], tolerance: Array) -> tuple[Array, Array, Array]:
    """Rows to compare, their lengths, and up to which length (B,) they are none: those of planar loops vanish.

    Of rows that are equally far away the first is to be taken, whatever rounding says: each is shorter by a trifle.
    """
    scaled = G * ((1 - TIE * np.arange(G.shape[1])) / scales(G, groups))[..., None]
    lengths = np.sqrt(np.einsum("bij,bij->bi", scaled, scaled))
    return scaled, lengths, tolerance * np.maximum(lengths.max(axis=1, initial=0.0), np.finfo(float).tiny)


def choice(chosen: Array, margin: float) -> Choice:
    """From a mask of the rows."""
    return Choice(np.flatnonzero(chosen), np.flatnonzero(~chosen), margin)


def alike(chosen: Array) -> Iterator[tuple[Array, Array]]:
    """Of sets (B, m) that differ from state to state: each set that occurs, and the states that it is the set of."""
    left = np.arange(len(chosen))
    while len(left):
        same = (chosen[left] == chosen[left[0]]).all(axis=1)
        yield np.flatnonzero(chosen[left[0]]), left[same]
        left = left[~same]


def others(count: int, chosen: Array) -> Array:
    """The numbers below `count` that are not chosen, ascending."""
    left = np.ones(count, dtype=bool)
    left[chosen] = False
    return np.flatnonzero(left)


def independent_columns(G: Array) -> tuple[Array, Array]:
    """For r independent rows (r x n): r columns that can be solved for, and the n - r others, ascending."""
    if not len(G):
        return np.arange(0), np.arange(G.shape[1])
    order = _pivoted(G)[1]
    return np.sort(order[: len(G)]), np.sort(order[len(G) :])


def kernel_basis(G: Array, dependent: Array, free: Array) -> Array:
    """E (..., n, n - r) with G E = 0 for r independent rows (..., r, n), the unit matrix in the rows `free`."""
    E = np.zeros((*G.shape[:-2], G.shape[-1], len(free)))
    E[..., free, :] = np.eye(len(free))
    E[..., dependent, :] = -np.linalg.solve(G[..., dependent], G[..., free])
    return E


def _pivoted(A: Array) -> tuple[Array, Array]:
    """A matrix whose upper triangle is R, and the order of the columns, in A P = Q R."""
    factors, order, _, _, _ = scipy.linalg.lapack.dgeqp3(A)
    return factors, order - 1


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
        matter = np.max(np.abs(D) / scale[:, dropped, None], initial=0.0) > RANK
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
    for rows, states in alike(sets):
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
    return (np.linalg.pinv(_T(G), rcond=RANK) @ y[..., None])[..., 0]


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
