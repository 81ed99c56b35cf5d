"""Bounds of an interior point method: slacks strictly within them, their multipliers, the barrier; and its filter.

The conditions for a minimum with the barrier mu are, for s within (lower, upper),

    low (s - lower) = mu,    high (upper - s) = mu                                               (1)

Between bounds that nearly touch, a barrier of this size would be much steeper than any cost. There it is

    min(mu, NARROW (upper - lower)^2)                                                            (2)

An equation d = a has no slack to move: s = a, and its multiplier y makes steps with a proximal term (the stabilised form
of Newton's method, Wright, SIAM J. Optim. 9, 1998),

    dy = HELD (d + D dw - a)                                                                     (3)

which is D dw + d = a when y no longer moves. Unlike that, it always has a solution: equations may repeat each other, or be
about what the stages before them have already decided.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from alembert.optimal import tuning

Array = np.ndarray


@dataclass
class Bounds:
    """Slacks within bounds and their multipliers; bounds at infinity are marked by 0 in `has_lower`, `has_upper`.

    Equations have neither, but a weight in `held`, and their multipliers are in `high`.
    """

    slack: Array
    low: Array
    high: Array
    lower: Array
    upper: Array
    has_lower: Array
    has_upper: Array
    held: Array

    @classmethod
    def within(cls, values: Array, lower: Array, upper: Array, mu: float) -> Bounds:
        """Slacks at `values`, pushed off their bounds; those of equations at what these ask for."""
        equal = lower == upper
        below, above = np.isfinite(lower) & ~equal, np.isfinite(upper) & ~equal
        found = cls(
            *(np.where(equal, lower, values), np.zeros(values.shape), np.zeros(values.shape)),
            *(np.where(below, lower, 0.0), np.where(above, upper, 0.0)),
            *(below.astype(float), above.astype(float), np.where(equal, tuning.HELD, 0.0)),
        )
        found.begin(values, mu)
        return found

    def in_units(self, units: Array, scale: float) -> Bounds:
        """From multiples of `units` and a cost times `scale` to what was stated."""
        slack, lower, upper = units * self.slack, units * self.lower, units * self.upper
        low, high = self.low / (scale * units), self.high / (scale * units)
        marks = (self.has_lower.copy(), self.has_upper.copy(), self.held.copy())
        return Bounds(slack, low, high, lower, upper, *marks)

    def take(self, other: Bounds) -> None:
        """Its numbers, in the arrays that are here."""
        for own, given in zip(self.arrays, other.arrays, strict=True):
            own[...] = given

    @property
    def arrays(self) -> tuple[Array, ...]:
        """In the order of the kernels."""
        return (
            *(self.slack, self.low, self.high, self.lower, self.upper),
            *(self.has_lower, self.has_upper, self.held),
        )

    @property
    def y(self) -> Array:
        return self.high - self.low

    @property
    def rooms(self) -> tuple[Array, Array]:
        """Distances from the bounds; 1 where there is none."""
        below = np.where(self.has_lower > 0, self.slack - self.lower, 1.0)
        return below, np.where(self.has_upper > 0, self.upper - self.slack, 1.0)

    def _mu(self, mu: float) -> Array:
        """(2)"""
        both = self.has_lower * self.has_upper > 0
        return np.where(both, np.minimum(mu, tuning.NARROW * (self.upper - self.lower) ** 2), mu)

    def begin(self, values: Array, mu: float, expected: tuple[Array, Array] | None = None) -> None:
        """Slacks at `values`, pushed off their bounds, and multipliers as (1) has them, at most 1.

        Where multipliers `low` and `high` are `expected`, with room as (1) wants it for them, and these, near (1).
        """
        if not self.slack.size:
            return
        below, above, held, slack = self.has_lower > 0, self.has_upper > 0, self.held > 0, self.slack
        width = np.where(below & above, self.upper - self.lower, np.inf)
        each = np.minimum(mu, tuning.NARROW * width * width)
        least = [
            tuning.PUSH * np.minimum(np.maximum(1.0, np.abs(a)), width) for a in (self.lower, self.upper)
        ]
        if expected is not None:
            least = [
                np.minimum(push, each / np.maximum(z, 1e-300))
                for push, z in zip(least, expected, strict=True)
            ]
        np.copyto(slack, values, where=~held)
        np.maximum(slack, self.lower + least[0], out=slack, where=below)
        np.minimum(slack, self.upper - least[1], out=slack, where=above)
        low, high = (each / room for room in self.rooms)
        if expected is None:
            low, high = np.minimum(low, 1.0), np.minimum(high, 1.0)
        else:
            low, high = (
                np.clip(z, near / tuning.NEAR, tuning.NEAR * near)
                for z, near in zip(expected, (low, high), strict=True)
            )
        self.low[...] = np.where(below, low, 0.0)
        self.high[...] = np.where(above, high, 0.0)
        if expected is not None:
            np.copyto(self.high, expected[1], where=held)

    def settle(self, mu: float) -> None:
        """Multipliers as (1) has them, for the slacks as they are."""
        if not self.slack.size:
            return
        below, above = self.rooms
        each = self._mu(mu)
        self.low[...] = self.has_lower * each / below
        self.high[...] = np.where(self.held > 0, 0.0, self.has_upper * each / above)


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
        return (self.worst, self.cost) if self.worst > tuning.KEPT else (0.0, self.cost)


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
    """An iterate `here` with the slope of the objective along the step from it.

    A filter line search (Waechter and Biegler, Math. Program. 106, 2006; the constants are those of their program).

    A step is acceptable when it makes the constraints or the objective better than at the iterate, and than at every
    earlier one that the filter remembers. With theta the sum of all residuals, phi the objective with the barrier
    and m = phi'(w) d its slope along the step, a trial at the length alpha is taken when

        theta <= (1 - g_theta) theta_0   or   phi <= phi_0 - g_phi theta_0                           (1)

    or, where the slope promises more than feasibility could gain, alpha (-m)^2.3 > theta_0^1.1,

        phi <= phi_0 + eta alpha m                                                                  (2)

    Steps shorter than `shortest` cannot pass: then the search gives up.
    """

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

    def corrects(self, alpha: float, trial: Merit, progress: float = 1.0) -> bool:
        """Whether a corrected step is more than one that goes nowhere: where a step in full reaches the residuals of the
        iterate with the other sign, its correction is no step at all. One that makes the objective less by some of what its
        slope promised is a step, although curved constraints are then off by more than before.

        With `progress`, whether it would be one after corrections that reduce what it leaves by this factor.
        """
        here, m = self.here, self.slope
        return (
            self.switches(alpha)
            or progress * trial.infeasibility <= tuning.CORRECTED * here.infeasibility
            or (m < 0 and trial.objective <= here.objective + tuning.DESCENT * alpha * m)
        )

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
