"""Small symmetric positive definite systems, written out for `SX`: M = L diag(d) L^T."""

from __future__ import annotations

import casadi as ca


class Factor:
    """The factors of a symmetric positive definite matrix of the size of a joint, or of a stage's input.

    A matrix that is `guarded` may turn out not to be positive definite: then its solutions are NaN.
    """

    def __init__(self, M: ca.SX, *, guarded: bool = False) -> None:
        n = M.shape[0]
        self._n = n
        self._L = [[ca.SX(0)] * n for _ in range(n)]
        self._inverse: list[ca.SX] = []
        scaled = [[ca.SX(0)] * n for _ in range(n)]  # L diag(d)
        for j in range(n):
            column = [M[i, j] for i in range(j, n)]
            for k in range(j):
                for i in range(j, n):
                    column[i - j] = column[i - j] - self._L[i][k] * scaled[j][k]
            self._inverse.append(1 / column[0])
            for i in range(j + 1, n):
                scaled[i][j] = column[i - j]
                self._L[i][j] = column[i - j] * self._inverse[j]
        if guarded and n:
            self._inverse[0] = self._inverse[0] * positive(self.least_pivot)

    @property
    def least_pivot(self) -> ca.SX:
        """Not positive when the matrix is not positive definite."""
        least = ca.SX(1.0)
        for k, inverse in enumerate(self._inverse):
            least = inverse if k == 0 else ca.fmin(least, inverse)
        return least

    def solve(self, B: ca.SX) -> ca.SX:
        """M^-1 B for a matrix of right-hand sides."""
        return self.outward(self.scaled(self.inward(B)))

    def inward(self, B: ca.SX) -> ca.SX:
        """L^-1 B"""
        rows = [B[i, :] for i in range(self._n)]
        for i in range(self._n):
            for k in range(i):
                rows[i] = rows[i] - self._L[i][k] * rows[k]
        return ca.vertcat(*rows) if rows else B

    def scaled(self, B: ca.SX) -> ca.SX:
        """diag(d)^-1 B"""
        return ca.vertcat(*(B[i, :] * x for i, x in enumerate(self._inverse))) if self._n else B

    def outward(self, B: ca.SX) -> ca.SX:
        """L^-T B"""
        rows = [B[i, :] for i in range(self._n)]
        for i in reversed(range(self._n)):
            for k in range(i + 1, self._n):
                rows[i] = rows[i] - self._L[k][i] * rows[k]
        return ca.vertcat(*rows) if rows else B


def positive(x: ca.SX) -> ca.SX:
    """1 where x is positive and NaN elsewhere, with derivatives of zero."""
    return ca.sqrt(2 * (x > 0) - 1)
