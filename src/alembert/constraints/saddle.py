"""The saddle-point system of constrained motion at a batch of states, on arrays, and the rows that are independent there.

    M x - R^T f = b,     R x = c                                                                        (1)

with the mass matrix M and independent rows R: the minimal set of the rows G of the active constraints. Accelerations,
impulses, positions and derivatives differ in b and c only (see `alembert.constraints`). By an orthogonal factorisation
R^T = Q U, which loses no digits near a singular configuration,

    x = Q1 y + Q2 z,   U^T y = c,   (C^T M Q2) z = C^T (b - M Q1 y),   C = Q2,   U f = Q1^T (M x - b)   (2)

which takes any b, any M that is regular where R x = 0, and forces along other rows Z: then Z C = 0 and Z^T = Q U.

To choose independent rows, they are scaled by the largest row of their loop, so that metres and radians of one loop, and
loops of different size, can be compared. A row is independent when its distance from the span of those chosen before it is
more than the tolerance times the largest of all rows. Pivoting picks the row that is farthest away each time; the minimal
set then is well conditioned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
import scipy

from alembert.constraints.results import RANK as RANK

Array = np.ndarray
TIE = 1e-7
"""relative difference of distances that is none: more than rounding makes of equal ones in a factorisation"""
MANY_ROWS = 20
"""rows from which states are taken one by one, by LAPACK: as fast there, 8 times as fast with 60 (measured)"""


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

    The matrices are orthogonalised together, each by its own pivots: with few rows 30 times as fast as one by one.
    """
    scaled, lengths, limit = _scaled(G, groups, tolerance)
    candidates = lengths > limit[:, None]
    chosen, margins, each = np.zeros(lengths.shape, dtype=bool), np.ones(len(G)), np.arange(len(G))
    some = np.flatnonzero(candidates.any(axis=0))
    if len(some) > MANY_ROWS:
        for k, rows in enumerate(G):
            found = choose(rows, groups, float(tolerance[k]))
            chosen[k, found.rows], margins[k] = True, found.margin
        return chosen, margins
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
        margins = np.where(more, far, margins)
    return chosen, margins


def _scaled(G: Array, groups: Sequence[slice], tolerance: Array) -> tuple[Array, Array, Array]:
    """Rows to compare, their lengths, and up to which length (B,) they are none: those of planar loops vanish.

    Of rows that are equally far away the first is to be taken, whatever rounding says: each is shorter by a trifle.
    """
    scaled = G * ((1 - TIE * np.arange(G.shape[1])) / scales(G, groups))[..., None]
    lengths = np.sqrt(np.einsum("bij,bij->bi", scaled, scaled))
    return scaled, lengths, tolerance * np.maximum(lengths.max(axis=1, initial=0.0), np.finfo(float).tiny)


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


def orthogonal(
    M: Array, R: Array, c: Array, b: Array | float = 0.0, Z: Array | None = None
) -> tuple[Array, Array]:
    """(2): x (..., n, k) and f (..., r, k) for c (..., r, k) and b (..., n, k)."""
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
    """(2) with the rows of G (B, m, n) that each state's set (B, m) chooses; f is zero for the others."""
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


def smallest_forces(G: Array, y: Array) -> Array:
    """The smallest f with G^T f = y, over a batch."""
    return (np.linalg.pinv(_T(G), rcond=RANK) @ y[..., None])[..., 0]


def _T(x: Array) -> Array:
    return np.swapaxes(x, -1, -2)
