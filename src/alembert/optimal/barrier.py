"""Bounds of an interior point method: slacks strictly within them, their multipliers, the barrier.

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
from dataclasses import dataclass
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
