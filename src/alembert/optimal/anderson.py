"""Anderson acceleration of Gauss-Newton steps (Walker and Ni, SIAM J. Numer. Anal. 49, 2011).

Without the curvature of the dynamics a step s(w) from the iterate w makes a contraction with a rate of its own, w + s(w),
or none in some directions. From the last steps and the moves between them,

    gamma = argmin |s_k - dS gamma|,    s = s_k - (dW + dS) gamma                                (1)

dW and dS being the differences of iterates and of steps: near a solution that is a quasi-Newton method, at the price
of a few products. A step (1) is only proposed: the filter decides.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
DEPTH = 4
LARGEST = 1e8
"""condition of dS, beyond which its least directions are left out"""


class Anderson:
    """Of steps whose first `primal` entries are states and controls; (1) is fitted to these."""

    def __init__(self, primal: int) -> None:
        self.primal = primal
        self.clear()

    def clear(self) -> None:
        self._steps: list[Array] = []
        self._moves: list[Array] = []
        self._last: Array | None = None

    def propose(self, step: Array) -> Array | None:
        """(1) for the step from here; None where no move since the last step is known."""
        if self._last is not None and len(self._moves) > len(self._steps):
            self._steps.append(step - self._last)
        self._steps, self._moves = self._steps[-DEPTH:], self._moves[-DEPTH:]
        self._last = step
        if not self._steps or len(self._steps) != len(self._moves):
            return None
        S = np.array(self._steps)
        fit = S[:, : self.primal]
        gamma = np.linalg.lstsq(fit.T, step[: self.primal], rcond=1 / LARGEST)[0]
        return step - gamma @ (np.array(self._moves) + S)

    def moved(self, move: Array) -> None:
        self._moves.append(move)
