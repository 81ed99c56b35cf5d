"""The structured singular value of a matrix: bounds from above and below.

    mu(M) = 1 / min { |Delta| : Delta of the structure, det(1 - M Delta) = 0 },      w = Delta z,  z = M w            (1)

Delta is block diagonal: real numbers d 1, complex numbers d 1, and full complex blocks. `mu_upper` says how the bound from
above comes about, `mu_lower` the one from below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.control.mu_lower import lower_bound
from alembert.control.mu_upper import Scalings
from alembert.errors import ArgumentError

Array = np.ndarray
KINDS = ("real", "complex", "full", "sector")


@dataclass(frozen=True)
class DeltaBlock:
    """A block of Delta: "real" or "complex" (a number times the unit matrix of size `rows`), "full" (rows x columns), or
    "sector": a nonlinearity, perhaps with memory, whose output is never larger than its input (as energy over time).

    Rows count inputs w of M, columns outputs z.
    """

    kind: str
    rows: int = 1
    columns: int = 0
    name: str = ""

    def __post_init__(self) -> None:
        columns = self.columns or self.rows
        if self.kind not in KINDS:
            raise ArgumentError(f"DeltaBlock: kind is {self.kind!r}, expected one of {', '.join(KINDS)}")
        if self.rows < 1 or columns < 1 or (self.kind in ("real", "complex") and columns != self.rows):
            raise ArgumentError(
                f"DeltaBlock: a {self.kind} block of {self.rows} x {columns}; expected a square one"
            )
        object.__setattr__(self, "columns", columns)


@dataclass(frozen=True, eq=False)
class MuBounds:
    """mu lies between `lower` and `upper`; `delta` (of norm 1/lower) makes 1 - M Delta singular; D and G prove `upper`."""

    upper: float
    lower: float
    delta: Array | None
    D_left: Array
    D_right: Array
    G: Array


def mu(M: Any, blocks: Sequence[DeltaBlock], *, starts: int = 12, tolerance: float = 1e-9) -> MuBounds:
    """Bounds of (1) for a matrix M (outputs z, inputs w); `starts` is how many searches from below are begun."""
    M = np.asarray(M, dtype=complex)
    check_blocks("mu", M.shape, blocks)
    if not np.all(np.isfinite(M)):
        raise ArgumentError("mu: M has entries that are not finite")
    scalings = Scalings(blocks)
    above = scalings.least(M, tolerance=tolerance)
    lower, delta = lower_bound(M, blocks, starts=starts, above=above)
    return MuBounds(above.level, min(lower, above.level), delta, above.D_left, above.D_right, above.G)


def check_blocks(function: str, shape: tuple[int, ...], blocks: Sequence[DeltaBlock]) -> None:
    if len(shape) != 2 or not blocks or not all(isinstance(b, DeltaBlock) for b in blocks):
        raise ArgumentError(f"{function}: expected a matrix and a list of DeltaBlock")
    rows, columns = sum(b.rows for b in blocks), sum(b.columns for b in blocks)
    if shape != (columns, rows):
        raise ArgumentError(
            f"{function}: M has shape {shape}, and the blocks take {columns} outputs z and give {rows} inputs w"
        )
