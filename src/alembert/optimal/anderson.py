"""Anderson acceleration of Gauss-Newton steps (Walker and Ni, SIAM J. Numer. Anal. 49, 2011).

Without the curvature of the dynamics a step s(w) from the iterate w makes a contraction with a rate of its own, w + s(w),
or none in some directions. From the last steps and the moves between them,

    gamma = argmin |s_k - dS gamma|,    s = s_k - (dW + dS) gamma                                (1)

dW and dS being the differences of iterates and of steps: near a solution that is a quasi-Newton method, at the price
of a few products. A step (1) is only proposed: the filter decides.

gamma is found from the products dS' dS, whose last row alone is new, and once more for what it leaves: so corrected, normal
equations are as accurate as a factorisation of dS up to conditions of about 1e8 (Bjorck, Lin. Alg. Appl. 88/89, 1987),
and take a tenth of its time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray
DEPTH = 4
LEAST = 1e-14
"""squared sine of the angle to what later steps have taught, below which an earlier one is left out"""


class Anderson:
    """Of steps whose first `primal` entries are states and controls; (1) is fitted to these."""

    def __init__(self, primal: int) -> None:
        self.primal = primal
        self._products = np.zeros((DEPTH, DEPTH))
        self._last = np.empty(0)
        self.clear()

    def clear(self) -> None:
        self._count = self._next = 0
        self._known = False
        """whether there is a last step"""
        self._move: Array | None = None

    def propose(self, step: Array) -> Array | None:
        """(1) for the step from here; None where no move since the last step is known."""
        if not self._last.size:
            self._last = np.empty_like(step)
            self._steps, self._both = np.empty((DEPTH, len(step))), np.empty((DEPTH, len(step)))
        move = self._move if self._known else None
        if move is not None:
            self._learn(step, move)
        self._last[...] = step
        self._known, self._move = True, None
        return step - self._weights(step) @ self._both[: self._count] if move is not None else None

    def _learn(self, step: Array, move: Array) -> None:
        k = self._next
        np.subtract(step, self._last, out=self._steps[k])
        np.add(self._steps[k], move, out=self._both[k])
        self._next, self._count = (k + 1) % DEPTH, min(self._count + 1, DEPTH)
        fit = self._steps[: self._count, : self.primal]
        self._products[k, : self._count] = self._products[: self._count, k] = fit @ fit[k]

    def _weights(self, step: Array) -> Array:
        fit, wanted = self._steps[: self._count, : self.primal], step[: self.primal]
        latest_first = [(self._next - 1 - i) % DEPTH for i in range(self._count)]
        solve = _factored(self._products.tolist(), latest_first)
        gamma = np.array(solve((fit @ wanted).tolist()))
        gamma += solve((fit @ (wanted - gamma @ fit)).tolist())
        return gamma

    def moved(self, move: Array) -> None:
        self._move = move


def _factored(G: list[list[float]], order: list[int]) -> Callable[[list[float]], list[float]]:
    """A function that solves with the rows and columns of G in this order, without those that follow from others before.

    On lists: arrays of four rows are slower.
    """
    rows: list[tuple[int, float, list[tuple[int, float]]]] = []
    for i in order:
        row: list[tuple[int, float]] = []
        left = G[i][i]
        for k, pivot, others in rows:
            known = dict(row)
            value = G[i][k] - sum(x * known[j] for j, x in others)
            row.append((k, value))
            left -= value * value / pivot
        if left > LEAST * G[i][i]:
            rows.append(
                (i, left, [(k, value / pivot) for (k, value), (_, pivot, _) in zip(row, rows, strict=True)])
            )

    def solve(b: list[float]) -> list[float]:
        x = [0.0] * len(b)
        for i, _, others in rows:
            x[i] = b[i] - sum(value * x[k] for k, value in others)
        for i, pivot, _ in rows:
            x[i] /= pivot
        for i, _, others in reversed(rows):
            for k, value in others:
                x[k] -= value * x[i]
        return x

    return solve
