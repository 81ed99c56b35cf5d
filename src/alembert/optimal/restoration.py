"""Steps of a restoration, which looks for the feasible point that is nearest in the sense of

    min RESTORING / 2 |c_end|^2 + barrier,  with everything else as equations                     (1)

so that what bounds forbid is left to later steps, instead of stopping this one.
"""

from __future__ import annotations

import numpy as np

from alembert.optimal import tuning
from alembert.optimal.barrier import Merit
from alembert.optimal.newton import Newton

Array = np.ndarray


class Restoration:
    """On the iterate of a `Newton`, with the barrier `mu`: from `begin` on there is no cost, until `end`."""

    def __init__(self, newton: Newton) -> None:
        self.newton = newton
        self._residual = self._force = np.zeros(0)
        """what the end leaves, and the slope of (1) there"""

    def begin(self, mu: float, *, anew: bool = True) -> None:
        """If `anew`, slacks begin at what they bound, pushed off their bounds: those at one would stop each step."""
        newton = self.newton
        newton._scale[0], newton.mu, newton._curved = 0.0, mu, False
        self._weight = 10.0
        newton._duals[...] = 0.0
        if anew and (newton.it.path.slack.size or newton.it.last.slack.size):
            newton._enter()
        newton.it.path.settle(mu)
        newton.it.last.settle(mu)

    def end(self) -> None:
        """The iterate is taken: multipliers are estimated for the problem itself."""
        newton = self.newton
        newton.it.path.settle(newton.mu)
        newton.it.last.settle(newton.mu)
        newton.estimate_multipliers()

    def advance(self, here: Merit, damping: float) -> tuple[Merit, float] | None:
        """A step that makes (1) smaller, with its length; None where there is none."""
        newton = self.newton
        if not self._step(damping):
            return None
        alpha, dual, slope = newton.lengths(0.99)
        slope += float(self._force @ newton.sweep.x[-1])
        objective, off = self._merit(here, self._residual)
        weight = self._weight = max(self._weight, 2 * slope / off if off > 0 else 0.0)
        while alpha > tuning.SHORTEST_RESTORING:
            trial = newton.try_(alpha)
            if trial.is_finite:
                new, left = self._merit(trial, newton._new_end)
                gained = objective - new + weight * (off - left)
                if gained >= 1e-4 * alpha * (weight * off - slope) and gained > 0:
                    self._accept(alpha, dual)
                    return trial, alpha
            alpha /= 2
        return None

    def _step(self, damping: float) -> bool:
        """The step to the least squares of (1), linearised: conditions at the end need not be reached."""
        newton = self.newton
        lin, n = newton.linear, newton.linear.A.shape[1]
        newton.linearise()
        newton._d_used[...] = newton._d
        newton._end_slope(newton._rows)
        lin.Q += damping * np.eye(n)
        lin.R += damping * np.eye(lin.R.shape[1])
        C, c = newton.last.C, newton.last.c
        self._residual, self._force = c.copy(), tuning.RESTORING * c @ C
        lin.Q[-1] += tuning.RESTORING * C.T @ C
        lin.q[-1] += self._force
        C[...], c[...] = 0.0, 0.0
        newton.options = {"shift": 0.0, "rho": 0.0, "damping": 0.0}
        return newton._solve()

    def _accept(self, alpha: float, dual: float) -> None:
        newton = self.newton
        newton.accept(alpha, dual)
        newton._duals[...] = 0.0
        for bounds in (newton.it.path, newton.it.last):
            bounds.high[bounds.held > 0] = 0.0

    @staticmethod
    def _merit(merit: Merit, c: Array) -> tuple[float, float]:
        """The objective of (1) with c at the end, and the sum of the residuals that are no part of it."""
        objective = merit.objective + tuning.RESTORING / 2 * float(c @ c)
        return objective, merit.infeasibility - float(np.abs(c).sum())
