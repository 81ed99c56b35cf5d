"""Which part of the state the inputs reach, or the outputs see, by a staircase of orthogonal steps.

Starting from the range of B, every step adds what A makes of the last one and is new (Rosenbrock's staircase in
block Krylov form); orthogonal throughout, unlike the powers of A in the controllability matrix, which lose all
digits beyond some ten states. A and the columns of B are scaled to unit norm, so that `tolerance` is relative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray
_SHOWN = 12


@dataclass(frozen=True, eq=False)
class Reachability:
    """True when all of the state is reached (seen)."""

    rank: int
    size: int
    tolerance: float
    margin: float
    """the smallest singular value that was counted; close to the tolerance means nearly lost"""
    lost: Array
    """orthonormal directions that are not reached, one per row, (size - rank, size)"""
    state_names: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.rank == self.size

    def __str__(self) -> str:
        verdict = (
            f"rank {self.rank} of {self.size} (tolerance {self.tolerance:.1g}, margin {self.margin:.2g})"
        )
        if self:
            return verdict
        weight = np.linalg.norm(self.lost, axis=0)
        never = [name for name, w in zip(self.state_names, weight, strict=True) if w > 1 - 1e-9]
        mixed = [name for name, w in zip(self.state_names, weight, strict=True) if 1e-6 < w <= 1 - 1e-9]
        parts = [_listed(never)] if never else []
        count = self.size - self.rank - len(never)
        if count and mixed:
            parts.append(f"{count} combination{'s' * (count != 1)} of {_listed(mixed)}")
        return f"{verdict}; lost: {'; '.join(parts)}"


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:_SHOWN])}{f' and {len(names) - _SHOWN} more' if len(names) > _SHOWN else ''}"


def reachability(A: Array, B: Array, names: tuple[str, ...], tolerance: float) -> Reachability:
    size = len(A)
    lengths = np.linalg.norm(B, axis=0)
    new = B[:, lengths > 0] / lengths[lengths > 0]
    step = A / max(float(np.linalg.norm(A, 2)) if size else 0.0, np.finfo(float).tiny)
    basis, margin = np.zeros((size, 0)), float("inf")
    while new.shape[1] and basis.shape[1] < size:
        for _ in range(2):  # twice is enough for orthogonality
            new = new - basis @ (basis.T @ new)
        U, s, _ = np.linalg.svd(new, full_matrices=False)
        counted = s > tolerance
        if not counted.any():
            break
        margin = min(margin, float(s[counted].min()))
        basis = np.hstack([basis, U[:, counted]])
        new = step @ U[:, counted]
    rank = min(basis.shape[1], size)
    full = np.linalg.qr(np.hstack([basis, np.eye(size)]))[0] if size else basis
    return Reachability(rank, size, tolerance, margin if rank else 0.0, full[:, rank:size].T, names)
