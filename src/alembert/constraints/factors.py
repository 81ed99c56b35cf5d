"""The saddle-point system factored on symbols: the admittance of the tree at its constraints.

With the mass matrix factored along the tree, M = L^T D L (`sensitivity.mass_factor`), and a mask w of the rows that are
in the minimal set, M x - G^T f = b and R x = c take

    z = L^-T b,     Z = L^-T G^T                              inward, sparse                           (1)
    (w Z^T D^-1 Z w + 1 - w) f = w (c - Z^T D^-1 z)           sparse factorisation                     (2)
    x = L^-1 D^-1 (z + Z w f)                                 outward                                  (3)

The mask is an argument, so that another minimal set or other active constraints need no other code. Rows that vanish
identically (those of planar mechanisms in space) cost nothing, and where loops form a chain (2) is linear in their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from alembert.constraints.equations import columns
from alembert.constraints.kernels import function_of, nonzeros
from alembert.sensitivity.mass_factor import Pattern

if TYPE_CHECKING:
    from alembert.model import Model

LARGEST = 100_000
"""cost above which compiling takes too long: some 5 s there, of 500 four-bars in a chain or a truss of 6 bays (measured)"""
_RESIDUAL = 150


def cost(model: Model, sizes: Sequence[int]) -> int:
    """About how many multiplications (1) and (2) take, from the topology; `sizes` are the rows of each constraint."""
    tree = model.compute.tree
    # rows meet where joints inboard of both constraints move both
    touches = np.zeros((len(sizes), model.nv), dtype=bool)
    for k, touched in enumerate(columns(tree)):
        touches[k, touched] = True
    pattern = Pattern(tree)
    for j in reversed(range(model.nv)):
        touches[:, pattern.inboard[j]] |= touches[:, j : j + 1]
    if not np.any(sizes):
        return 0
    coupled = np.repeat(np.repeat(touches @ touches.T, sizes, axis=0), sizes, axis=1)
    upper, _ = ca.sparsify(ca.DM(coupled.astype(float))).sparsity().ldl()
    fill = np.bincount(upper.row(), minlength=len(coupled))
    inboard = np.array([len(row) for row in pattern.inboard])
    half = sum(int(n) * int(np.sum(inboard[t])) for n, t in zip(sizes, touches, strict=True))
    return int(np.sum((fill + 1) ** 2)) + half + _RESIDUAL * len(model.loops)


class Admittance:
    """The factors of (2) for rows G, and how large rows are."""

    def __init__(
        self,
        pattern: Pattern,
        slices: Sequence[slice],
        factor: ca.SX,
        chosen: ca.SX,
        G: ca.SX,
    ) -> None:
        self.pattern, self.factor, self.chosen, self.G = pattern, factor, chosen, G
        self.inverse = factor[len(pattern.positions) :]
        self.Z = ca.horzcat(*(self.inward(G[i, :].T) for i in range(G.shape[0])))
        self.weighted = ca.diag(self.inverse) @ self.Z
        mask = ca.diag(chosen)
        self.matrix = mask @ (self.Z.T @ self.weighted) @ mask + ca.diag(1 - chosen)
        self.D, self.LT, self.order = ca.ldl(self.matrix)
        self.lengths = ca.sum2(G * G)
        self.scale = scales(G, slices)

    def solve(self, b: ca.SX) -> ca.SX:
        """(2) from its right-hand side."""
        return self.chosen * ca.ldl_solve(self.chosen * b, self.D, self.LT, self.order)

    def quality(self) -> ca.SX:
        """The smallest pivot of (2) relative to its diagonal, or squared length of a chosen row relative to its loop's."""
        found = ca.SX(1)
        for k, i in enumerate(self.order):
            found = ca.fmin(found, self.D[k] / self.matrix[i, i])
            found = ca.fmin(found, self.lengths[i] / self.scale[i] + (1 - self.chosen[i]))
        return found

    def inward(self, b: ca.SX) -> ca.SX:
        return self.pattern.inward(self.factor, b)

    def outward(self, x: ca.SX) -> ca.SX:
        return self.pattern.outward(self.factor, x)


@dataclass(frozen=True)
class ColumnFunctions:
    """For right-hand sides that come column by column (see `lowering.plan.Columns`).

    `prepare`: what all columns share, from entries of G, factor and mask. With that, `solve`: two columns (b; c),
    `respond`: one with c = 0, and `both`: the same without constraints, and with them.
    """

    prepare: ca.Function
    solve: ca.Function
    respond: ca.Function
    both: ca.Function


def column_functions(slices: Sequence[slice], pattern: Pattern, G: ca.Sparsity) -> ColumnFunctions:
    entries, factor = ca.SX.sym("G", G.nnz()), ca.SX.sym("factor", pattern.size)
    chosen = ca.SX.sym("chosen", G.size1())
    by = Admittance(pattern, slices, factor, chosen, ca.SX(G, entries))
    Z, LT = ca.sparsify(by.Z), ca.sparsify(by.LT)
    kept = [factor, chosen, by.D, nonzeros(LT), nonzeros(Z)]
    prepare = function_of("prepare", [entries, factor, chosen], [ca.vertcat(*kept)])

    shared, (factor, chosen, D, upper, z) = again(kept)
    Z, LT = ca.SX(Z.sparsity(), z), ca.SX(LT.sparsity(), upper)
    inverse = factor[len(pattern.positions) :]
    weighted = ca.diag(inverse) @ Z

    def column(b: ca.SX, c: ca.SX | float = 0.0) -> tuple[ca.SX, ca.SX]:
        """(1)-(3), and what it would be without constraints."""
        x = inverse * pattern.inward(factor, b)
        f = chosen * ca.ldl_solve(chosen * (c - Z.T @ x), D, LT, by.order)
        return pattern.outward(factor, x + weighted @ f), pattern.outward(factor, x)

    b, d = (ca.SX.sym(name, G.size2()) for name in "bd")
    c, e = (ca.SX.sym(name, G.size1()) for name in "ce")
    alone, free = column(b)
    return ColumnFunctions(
        prepare,
        function_of("solve", [shared, b, c, d, e], [column(b, c)[0], column(d, e)[0]]),
        function_of("respond", [shared, b], [alone]),
        function_of("both", [shared, b], [free, alone]),
    )


def again(kept: Sequence[ca.SX]) -> tuple[ca.SX, list[ca.SX]]:
    """A symbol for some columns one after the other, and the same columns of it."""
    ends = np.cumsum([0, *(x.numel() for x in kept)]).tolist()
    shared = ca.SX.sym("shared", ends[-1])
    return shared, ca.vertsplit(shared, ends)


def scales(G: ca.SX, slices: Sequence[slice]) -> ca.SX:
    """For each row the squared length of the longest of its constraint (1 where all vanish)."""
    lengths, found = ca.sum2(G * G), ca.SX(G.shape[0], 1)
    for group in slices:
        longest = ca.SX(0)
        for i in range(group.start, group.stop):
            longest = ca.fmax(longest, lengths[i])
        found[group] = ca.if_else(longest > 0, longest, 1.0)
    return found


def largest(x: ca.SX) -> ca.SX:
    total = ca.SX(0)
    for k in range(x.numel()):
        total = ca.fmax(total, ca.fabs(x[k]))
    return total
