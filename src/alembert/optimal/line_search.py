"""A filter line search (Waechter and Biegler, Math. Program. 106, 2006; the constants are those of their program).

A step is acceptable when it makes the constraints or the objective better than at the iterate, and than at every
earlier one that the filter remembers. With theta the sum of all residuals, phi the objective with the barrier
and m = phi'(w) d its slope along the step, a trial at the length alpha is taken when

    theta <= (1 - g_theta) theta_0   or   phi <= phi_0 - g_phi theta_0                           (1)

or, where the slope promises more than feasibility could gain, alpha (-m)^2.3 > theta_0^1.1,

    phi <= phi_0 + eta alpha m                                                                  (2)

Steps shorter than `shortest` cannot pass: then the search gives up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from alembert.optimal import tuning
from alembert.optimal.outcome import KEPT


class Merit(NamedTuple):
    """What a line search looks at."""

    infeasibility: float
    objective: float
    """with the barrier"""
    cost: float
    """unscaled, without"""
    worst: float
    """the largest residual"""

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.infeasibility + self.objective)

    @property
    def rank(self) -> tuple[float, float]:
        """The best is the cheapest of those that keep all to `KEPT`, or the nearest to it."""
        return (self.worst, self.cost) if self.worst > KEPT else (0.0, self.cost)


@dataclass
class Filter:
    """Pairs (theta, phi) that a trial must improve upon in one of both."""

    largest: float
    """theta beyond it is never taken"""
    smallest: float
    """below it (2) may be asked for"""
    pairs: list[tuple[float, float]] = field(default_factory=list)

    @classmethod
    def around(cls, theta: float) -> Filter:
        return cls(3 * max(1.0, theta), 1e-4 * max(1.0, theta))

    def allows(self, trial: Merit) -> bool:
        theta, phi = trial.infeasibility, trial.objective
        return theta <= self.largest and not any(
            theta > t and phi > f + tuning.ROUNDING * max(1.0, abs(f)) for t, f in self.pairs
        )

    def remember(self, here: Merit) -> None:
        pair = (
            (1 - tuning.G_THETA) * here.infeasibility,
            here.objective - tuning.G_PHI * here.infeasibility,
        )
        self.pairs = [(t, f) for t, f in self.pairs if t < pair[0] or f < pair[1]]
        self.pairs.append(pair)

    def clear(self) -> None:
        self.pairs.clear()


@dataclass(frozen=True, slots=True)
class Reference:
    """An iterate `here` with the slope of the objective along the step from it."""

    here: Merit
    slope: float
    filter: Filter

    def switches(self, alpha: float) -> bool:
        """Whether (2) is asked for."""
        theta, m = self.here.infeasibility, self.slope
        return (
            m < 0 and theta <= self.filter.smallest and alpha * (-m) ** tuning.S_PHI > theta**tuning.S_THETA
        )

    def descends(self, alpha: float, trial: Merit) -> bool:
        """(2)"""
        phi = self.here.objective
        return trial.objective <= phi + tuning.ETA * alpha * self.slope + tuning.ROUNDING * max(1.0, abs(phi))

    def takes(self, alpha: float, trial: Merit) -> bool:
        theta = self.here.infeasibility
        if not trial.is_finite or trial.infeasibility > max(
            tuning.GROWTH * theta, tuning.FREE_GROWTH * self.filter.smallest
        ):
            return False
        if self._rises(trial):
            return False
        if self.switches(alpha):
            if not self.descends(alpha, trial):
                return False
        else:
            phi = self.here.objective
            tiny = tuning.ROUNDING * max(1.0, abs(phi))
            if not (
                trial.infeasibility <= (1 - tuning.G_THETA) * theta
                or trial.objective <= phi - tuning.G_PHI * theta + tiny
            ):
                return False
        return self.filter.allows(trial)

    def _rises(self, trial: Merit) -> bool:
        phi, new = self.here.objective, trial.objective
        if new <= phi:
            return False
        size = math.log10(abs(phi)) if abs(phi) > 10 else 1.0
        return math.log10(new - phi) > tuning.LARGEST_RISE + size

    def accept(self, alpha: float, trial: Merit) -> None:
        """Note in the filter that this trial was taken."""
        if not (self.switches(alpha) and self.descends(alpha, trial)):
            self.filter.remember(self.here)

    @property
    def shortest(self) -> float:
        theta, m = self.here.infeasibility, self.slope
        least = tuning.G_THETA
        if m < 0:
            least = min(least, tuning.G_PHI * theta / -m)
            if theta <= self.filter.smallest:
                least = min(least, theta**tuning.S_THETA / (-m) ** tuning.S_PHI)
        return max(tuning.SHORTEST * least, 1e-14)
