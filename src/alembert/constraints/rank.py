"""Which rows of a constraint Jacobian are independent.

Rows are scaled by the largest row of their loop, so that metres and radians of one loop, and loops of different
size, can be compared. A row is independent when its distance from the span of those chosen before it is more than the
tolerance times the largest of all rows. Pivoting picks the row that is farthest away each time; the minimal
set then is well conditioned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from alembert.constraints.tolerances import RANK as RANK

Array = np.ndarray


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
    result = np.empty_like(lengths)
    for s in groups:
        longest = lengths[..., s].max(axis=-1, keepdims=True)
        result[..., s] = np.where(longest > 0, longest, 1.0)
    return result


def choose(G: Array, groups: Sequence[slice], tolerance: float) -> Choice:
    """A minimal set of rows of G (m x nv)."""
    m = len(G)
    scaled = G / scales(G, groups)[:, None]
    lengths = np.linalg.norm(scaled, axis=1)
    limit = tolerance * max(float(np.max(lengths, initial=0.0)), np.finfo(float).tiny)
    candidates = np.flatnonzero(
        lengths > limit
    )  # shorter rows are never chosen (those of planar loops vanish)
    R, order = _pivoted(scaled[candidates].T)
    pivots = np.abs(np.diag(R))
    rank = int(np.count_nonzero(pivots > limit))
    rows = np.sort(candidates[order[:rank]])
    return Choice(rows, others(m, rows), float(pivots[rank - 1]) if rank else 1.0)


def others(count: int, chosen: Array) -> Array:
    """The numbers below `count` that are not chosen, ascending."""
    left = np.ones(count, dtype=bool)
    left[chosen] = False
    return np.flatnonzero(left)


def independent_columns(G: Array) -> tuple[Array, Array]:
    """For r independent rows (r x n): r columns that can be solved for, and the n - r others, ascending."""
    if not len(G):
        return np.arange(0), np.arange(G.shape[1])
    _, order = _pivoted(G)
    return np.sort(order[: len(G)]), np.sort(order[len(G) :])


def kernel_basis(G: Array, dependent: Array, free: Array) -> Array:
    """E (..., n, n - r) with G E = 0 for r independent rows (..., r, n), the unit matrix in the rows `free`."""
    E = np.zeros((*G.shape[:-2], G.shape[-1], len(free)))
    E[..., free, :] = np.eye(len(free))
    E[..., dependent, :] = -np.linalg.solve(G[..., dependent], G[..., free])
    return E


def _pivoted(A: Array) -> tuple[Array, Array]:
    """R and the order of the columns in A P = Q R."""
    if not A.size:
        return A[:0], np.arange(A.shape[1])
    from scipy.linalg import qr  # takes longer to import than the rest of the package

    R, order = qr(A, mode="r", pivoting=True, check_finite=False)
    return R, order
