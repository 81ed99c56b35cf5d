"""Bounds of an interior point method: slacks strictly within them, their multipliers, and the barrier.

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

from dataclasses import dataclass

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
        low, high = np.where(below, lower, 0.0), np.where(above, upper, 0.0)
        width = np.where(below & above, high - low, np.inf)
        slack = np.where(
            below,
            np.maximum(values, low + tuning.PUSH * np.minimum(np.maximum(1, np.abs(low)), width)),
            values,
        )
        slack = np.where(
            above,
            np.minimum(slack, high - tuning.PUSH * np.minimum(np.maximum(1, np.abs(high)), width)),
            slack,
        )
        slack = np.where(equal, lower, slack)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(below & above, np.minimum(mu, tuning.NARROW * width**2), mu)
            z_low = np.where(below, np.minimum(1.0, each / (slack - low)), 0.0)
            z_high = np.where(above, np.minimum(1.0, each / (high - slack)), 0.0)
        held = np.where(equal, tuning.HELD, 0.0)
        return cls(slack, z_low, z_high, low, high, below.astype(float), above.astype(float), held)

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

    @property
    def weight(self) -> Array:
        """(3) of `alembert.optimal.evaluation`."""
        below, above = self.rooms
        free = self.held == 0
        return self.held + free * (self.low / below + self.high / above)

    def push(self, mu: float, values: Array) -> Array:
        """(4) of `alembert.optimal.evaluation`."""
        below, above = self.rooms
        slope = self._mu(mu) * (self.has_upper / above - self.has_lower / below)
        return slope + self.weight * (values - self.slack) + (self.held > 0) * self.high

    def _mu(self, mu: float) -> Array:
        """(2)"""
        both = self.has_lower * self.has_upper > 0
        return np.where(both, np.minimum(mu, tuning.NARROW * (self.upper - self.lower) ** 2), mu)

    def begin(self, values: Array, mu: float, low: Array, high: Array) -> None:
        """Slacks at `values`, with room as (1) wants it for the multipliers `low` and `high`; and these, near (1)."""
        there, above = self.has_lower > 0, self.has_upper > 0
        width = np.where(there & above, self.upper - self.lower, np.inf)
        each = self._mu(mu)
        least = [
            np.minimum(
                tuning.PUSH * np.minimum(np.maximum(1, np.abs(bound)), width),
                each / np.maximum(expected, 1e-300),
            )
            for bound, expected in ((self.lower, low), (self.upper, high))
        ]
        slack = np.where(there, np.maximum(values, self.lower + least[0]), values)
        slack = np.where(above, np.minimum(slack, self.upper - least[1]), slack)
        self.slack[...] = np.where(self.held > 0, self.slack, slack)
        below, beyond = self.rooms
        near = [
            np.clip(z, each / r / tuning.NEAR, tuning.NEAR * each / r)
            for z, r in ((low, below), (high, beyond))
        ]
        self.low[...] = np.where(there, near[0], 0.0)
        self.high[...] = np.where(above, near[1], np.where(self.held > 0, high, 0.0))

    def barrier(self, mu: float) -> float:
        below, above = self.rooms
        return -float((self._mu(mu) * (np.log(below) + np.log(above))).sum())

    def multiplier_steps(self, mu: float, ds: Array) -> tuple[Array, Array]:
        """(1), linearised; those of bounds only."""
        below, above = self.rooms
        each = self._mu(mu)
        low = self.has_lower * ((each - self.low * ds) / below - self.low)
        return low, self.has_upper * ((each + self.high * ds) / above - self.high)

    def limits(self, mu: float, ds: Array) -> tuple[float, float, float]:
        """The longest steps of slacks and of multipliers, and the slope of the barrier."""
        below, above = self.rooms
        low, high = self.multiplier_steps(mu, ds)
        primal = min(
            _longest(below, np.where(self.has_lower > 0, ds, 0)),
            _longest(above, np.where(self.has_upper > 0, -ds, 0)),
        )
        dual = min(_longest(self.low, low), _longest(self.high, high))
        slope = self._mu(mu) * ds * (self.has_upper / above - self.has_lower / below)
        return primal, dual, float(slope.sum())

    def move_multipliers(self, mu: float, ds: Array, dual: float, slack: Array, farthest: float) -> None:
        """A step of the multipliers, kept near mu / distance for the new `slack`."""
        low, high = self.multiplier_steps(mu, ds)
        self.low += dual * low
        self.high += dual * high
        below = np.where(self.has_lower > 0, slack - self.lower, 1.0)
        above = np.where(self.has_upper > 0, self.upper - slack, 1.0)
        for z, room, there in ((self.low, below, self.has_lower), (self.high, above, self.has_upper)):
            near = self._mu(mu) / room
            np.clip(z, near / farthest, farthest * near, out=z, where=there > 0)

    def move_held(self, alpha: float, missed: Array, gained: Array) -> None:
        """(3), where `missed` is D dw + d - a, after rounds of it that have `gained` as much."""
        self.high += alpha * (self.held * missed + gained)


def _longest(room: Array, change: Array) -> float:
    closing = change < 0
    return float(np.min(room[closing] / -change[closing])) if closing.any() else 1e300
