"""The mass matrix factored along the tree, M = L^T D L, without fill-in (Featherstone).

L is unit lower triangular with entries only where one speed is inboard of the other, so that factoring costs
O(n depth^2) and solving O(n depth) per right-hand side. For k from the last speed to the first, and i, j inboard of k:

    L_ki = M_ki / D_k,   M_ij -= L_ki M_kj                                        (1)
    M x = b:  outer to inner  b_i -= L_ki b_k;   b /= D;   inner to outer  b_k -= L_ki b_i       (2)
    X = M^-1:  X_kj = X_jk = [j = k] / D_k - sum_i L_ki X_ij,  j <= k                            (3)

Reference: the innovations factor of `alembert.sweeps.operators`; held equal by tests/sweeps/test_references.py.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import casadi as ca

from alembert.sweeps.dynamics import positive
from alembert.sweeps.tree import Tree


class Pattern:
    """For every speed, the speeds inboard of it (its own joint's earlier ones included), nearest first."""

    def __init__(self, tree: Tree) -> None:
        self.inboard: list[list[int]] = [[] for _ in range(tree.model.nv)]
        for k, chain in enumerate(tree.ancestors):
            own = range(tree.v_slices[k].start, tree.v_slices[k].stop)
            above = [
                i for j in chain[1:] for i in reversed(range(tree.v_slices[j].start, tree.v_slices[j].stop))
            ]
            for i in own:
                self.inboard[i] = [*reversed(range(own.start, i)), *above]
        self.positions = {
            (k, i): index
            for index, (k, i) in enumerate((k, i) for k, row in enumerate(self.inboard) for i in row)
        }
        self.guarded: set[int] = set()
        """speeds whose pivots may turn negative, see `alembert.sweeps.node.Structure`; solutions then are NaN"""
        for structure, speeds in zip(tree.structures, tree.v_slices, strict=True):
            if structure.guarded:
                self.guarded |= set(range(speeds.start, speeds.stop))
        self.size = len(self.positions) + tree.model.nv
        """numbers in a factor: the entries of L, then 1/D"""

        self._graphs = _graphs(tuple(map(tuple, self.inboard)), frozenset(self.guarded))

    def factor(self, M: ca.SX) -> ca.SX:
        """(1), as a column."""
        return self._graphs.factor(M)

    def solve(self, factor: ca.SX, b: ca.SX) -> ca.SX:
        """(2)"""
        return self._graphs.solve(factor, b)

    def inward(self, factor: ca.SX, b: ca.SX) -> ca.SX:
        """L^-T b; zeros of b that no nonzero reaches stay structural."""
        return ca.sparsify(self._graphs.inward(factor, b))

    def outward(self, factor: ca.SX, x: ca.SX) -> ca.SX:
        """L^-1 x"""
        return self._graphs.outward(factor, x)

    def inverse(self, factor: ca.SX) -> ca.SX:
        """(3)"""
        return self._graphs.inverse(factor)


class _Graphs:
    """The functions of one pattern, made once for all models that have it; CasADi copies them on any expressions."""

    def __init__(self, inboard: tuple[tuple[int, ...], ...], guarded: frozenset[int]) -> None:
        self._inboard, self._guarded, self._n = inboard, guarded, len(inboard)
        keys = [(k, i) for k, row in enumerate(inboard) for i in row]
        self._L = dict(zip(keys, range(len(keys)), strict=True))
        self._factor = ca.SX.sym("factor", len(keys) + self._n)
        entries: list[Any] = self._factor.elements()
        self._entries, self._pivots = entries[: len(keys)], entries[len(keys) :]
        self._b = ca.SX.sym("b", self._n)

    @cached_property
    def factor(self) -> ca.Function:
        n = self._n
        M = ca.SX.sym("M", n, n)
        A = {(k, i): M[k, i] for k, i in self._L} | {(k, k): M[k, k] for k in range(n)}
        L: dict[tuple[int, int], ca.SX] = {}
        inverse = [ca.SX(0)] * n
        for k in reversed(range(n)):
            inverse[k] = 1 / A[k, k]
            if k in self._guarded:
                inverse[k] = inverse[k] * positive(A[k, k])
            for position, i in enumerate(self._inboard[k]):
                L[k, i] = A[k, i] * inverse[k]
                for j in self._inboard[k][position:]:
                    A[i, j] = A[i, j] - L[k, i] * A[k, j]
        column = ca.vertcat(ca.SX(0, 1), *(L[key] for key in self._L), *inverse)
        return ca.Function("factor", [M], [column])

    @cached_property
    def solve(self) -> ca.Function:
        x = self._taken_inward()
        return self._function(
            "solve", self._taken_outward([a * b for a, b in zip(x, self._pivots, strict=True)])
        )

    @cached_property
    def inward(self) -> ca.Function:
        return self._function("inward", self._taken_inward())

    @cached_property
    def outward(self) -> ca.Function:
        return self._function("outward", self._taken_outward(list(self._b.elements())))

    @cached_property
    def inverse(self) -> ca.Function:
        n = self._n
        X: dict[tuple[int, int], ca.SX] = {}
        for k in range(n):
            for j in range(k + 1):
                x = self._pivots[k] if j == k else ca.SX(0)
                for i in reversed(self._inboard[k]):
                    x = x - self._entries[self._L[k, i]] * X[i, j]
                X[k, j] = X[j, k] = x
        dense = ca.reshape(ca.vertcat(ca.SX(0, 1), *(X[i, j] for j in range(n) for i in range(n))), n, n)
        return ca.Function("inverse", [self._factor], [dense])

    def _taken_inward(self) -> list[ca.SX]:
        x: list[Any] = self._b.elements()
        for k in reversed(range(self._n)):
            for i in self._inboard[k]:
                x[i] = x[i] - self._entries[self._L[k, i]] * x[k]
        return x

    def _taken_outward(self, x: list[Any]) -> list[ca.SX]:
        for k in range(self._n):
            for i in reversed(self._inboard[k]):  # the nearest, which is known last, comes last
                x[k] = x[k] - self._entries[self._L[k, i]] * x[i]
        return x

    def _function(self, name: str, x: list[ca.SX]) -> ca.Function:
        return ca.Function(name, [self._factor, self._b], [ca.vertcat(ca.SX(0, 1), *x)])


_graphs = lru_cache(100)(_Graphs)
