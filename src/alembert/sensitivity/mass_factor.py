"""The mass matrix factored along the tree, M = L^T D L, without fill-in (Featherstone).

L is unit lower triangular with entries only where one speed is inboard of the other, so that factoring costs
O(n depth^2) and solving O(n depth) per right-hand side. For k from the last speed to the first, and i, j inboard of k:

    L_ki = M_ki / D_k,   M_ij -= L_ki M_kj                                        (1)
    M x = b:  outer to inner  b_i -= L_ki b_k;   b /= D;   inner to outer  b_k -= L_ki b_i       (2)
    X = M^-1:  X_kj = X_jk = [j = k] / D_k - sum_i L_ki X_ij,  j <= k                            (3)

Reference: the innovations factor of `alembert.sweeps.operators`; held equal by tests/sweeps/test_references.py.
"""

from __future__ import annotations

import casadi as ca

from alembert.sweeps.factor import positive
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

    def factor(self, M: ca.SX) -> ca.SX:
        """(1), as a column."""
        n = len(self.inboard)
        A = {(k, i): M[k, i] for k, i in self.positions} | {(k, k): M[k, k] for k in range(n)}
        L: dict[tuple[int, int], ca.SX] = {}
        inverse = [ca.SX(0)] * n
        for k in reversed(range(n)):
            inverse[k] = 1 / A[k, k]
            if k in self.guarded:
                inverse[k] = inverse[k] * positive(A[k, k])
            for position, i in enumerate(self.inboard[k]):
                L[k, i] = A[k, i] * inverse[k]
                for j in self.inboard[k][position:]:
                    A[i, j] = A[i, j] - L[k, i] * A[k, j]
        return ca.vertcat(*(L[key] for key in self.positions), *inverse)

    def solve(self, factor: ca.SX, b: ca.SX) -> ca.SX:
        """(2)"""
        n = len(self.inboard)
        x = [b[i] for i in range(n)]
        for k in reversed(range(n)):
            for i in self.inboard[k]:
                x[i] = x[i] - factor[self.positions[k, i]] * x[k]
        start = len(self.positions)
        x = [x[i] * factor[start + i] for i in range(n)]
        for k in range(n):
            for i in reversed(self.inboard[k]):  # the nearest, which is known last, comes last
                x[k] = x[k] - factor[self.positions[k, i]] * x[i]
        return ca.vertcat(*x)

    def inverse(self, factor: ca.SX) -> ca.SX:
        """(3)"""
        n, start = len(self.inboard), len(self.positions)
        X = ca.SX.zeros(n, n)
        for k in range(n):
            X[k, k] = factor[start + k]
            for j in range(k + 1):
                for i in reversed(self.inboard[k]):
                    X[k, j] = X[k, j] - factor[self.positions[k, i]] * X[i, j]
                X[j, k] = X[k, j]
        return X
