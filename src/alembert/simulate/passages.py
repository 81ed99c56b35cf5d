"""Through singular places of loops and couplings, where rows of their Jacobian become dependent on the way.

A mechanism that goes through such a place (all bars of a four-bar in line, a Sarrus linkage that is flat) has a smooth
motion: its speeds are continuous, and choose one of the branches that meet there. But its accelerations are found from rows
that vanish, so that errors of a state off the surface grow like 1/c, where the *clearance* c, the smallest scaled pivot of
the rows (`alembert.constraints.saddle`), is the distance from the place. A scheme that evaluates them there loses energy, or
ends up on another branch. Therefore

- c is looked at from step to step, and the time at which it will vanish is foreseen (`Approach`);
- near the place all states at which accelerations are evaluated go back to the surface first: then off by d, they are wrong
  by d^2/c instead of d/c;
- the place itself is passed by one step of Gauss collocation of order 16, symmetric about it (`across`): the places where
  accelerations are evaluated are some way off on both sides, and follow the motion that came. A step of order 12 on the same
  window must agree to the tolerance; otherwise the run goes nearer, and tries a shorter window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import legendre

from alembert.constraints.saddle import Choice

Array = np.ndarray
Derivative = Callable[[float, Array], Array]
STAGES, FEWER = 8, 6
"""even: none of them in the middle"""
CLOSE = 0.1
"""of the best clearance so far: where it is less, states are taken to the surface before they are looked at"""
LOST = 0.15
"""of the clearance where a passage began: where it is less in between, at one of 16 places, rank was lost"""
FORESEEN = 1.5
"""in lengths of the coming step: so far ahead the vanishing of the clearance matters"""
ITERATIONS, MOST_STALLED = 60, 6
NOISE, MOST_NOISE = 10.0, 1e-9
"""times what rounding leaves of the iteration: differences that count; and the most that it may leave, relative and in SI"""


@dataclass(frozen=True)
class Approach:
    """What is known of the clearance: of which constraints, at full rank; the best, the last two, and their times."""

    active: tuple[str, ...]
    rank: int
    best: float
    times: tuple[float, float]
    values: tuple[float, float]

    @classmethod
    def after(cls, before: Approach | None, t: float, choice: Choice, active: tuple[str, ...]) -> Approach:
        if before is None or before.active != active or choice.rank > before.rank:
            return cls(active, choice.rank, choice.margin, (-np.inf, t), (np.inf, choice.margin))
        c = choice.margin if choice.rank == before.rank else 0.0
        if t <= before.times[1]:
            return before
        times, values = (before.times[1], t), (before.values[1], c)
        return cls(active, before.rank, max(before.best, c), times, values)

    @property
    def near(self) -> bool:
        return self.values[1] < CLOSE * self.best

    @property
    def ahead(self) -> float:
        """How long it takes until the clearance vanishes, if it goes on as it did; infinite where it grows."""
        (t0, t1), (c0, c1) = self.times, self.values
        if not np.isfinite(t0) or c1 >= c0 or c1 > self.best / 2:
            return np.inf
        return c1 * (t1 - t0) / (c0 - c1)


@dataclass(frozen=True)
class Passage:
    """A step of collocation: its state at the end, and in between."""

    start: float
    length: float
    y: Array
    slopes: Array
    end: Array
    noise: Array
    """what rounding leaves, of each entry"""

    def __call__(self, times: Any) -> Array:
        """(size, ...) as dense output of SciPy has it."""
        where = (np.asarray(times, dtype=float) - self.start) / self.length
        found = self.y + self.length * (_integrals(where.ravel(), len(self.slopes)) @ self.slopes)
        return np.moveaxis(found.reshape(*where.shape, len(self.y)), -1, 0)


def across(
    derivative: Derivative,
    t: float,
    y: Array,
    length: float,
    guess: Callable[[Array], Array] | None,
    scale: Callable[[Array], Array],
    rounding: float = MOST_NOISE,
) -> Passage | None:
    """One step over the window, from `guess` (times to states (..., size)); None where it does not come out right.

    `scale` gives the error that is allowed of a state; `rounding`, relative and in SI, may be more than that.
    """
    c = _nodes(STAGES)
    states = y + length * c[:, None] * derivative(t, y) if guess is None else guess(t + length * c)
    found = _collocated(derivative, t, y, length, states, scale, rounding)
    if found is None:
        return None
    other = _collocated(derivative, t, y, length, found(t + length * _nodes(FEWER)).T, scale, rounding)
    if other is None:
        return None
    allowed = np.maximum(scale(found.end), NOISE * np.maximum(found.noise, other.noise))
    return found if np.all(np.abs(other.end - found.end) <= allowed) else None


def _collocated(
    derivative: Derivative,
    t: float,
    y: Array,
    length: float,
    states: Array,
    scale: Callable[[Array], Array],
    rounding: float,
) -> Passage | None:
    """By iteration from the states at the nodes, until only rounding is left; None where it does not converge."""
    count = len(states)
    times, A = t + length * _nodes(count), _integrals(_nodes(count), count)
    least, stalled = np.inf, 0
    for _ in range(ITERATIONS):
        slopes = np.array([derivative(float(x), z) for x, z in zip(times, states, strict=True)])
        if not np.isfinite(slopes).all():
            return None
        following = y + length * A @ slopes
        change = np.max(np.abs(following - states), axis=0)
        size = float(np.max(change / scale(following[-1])))
        states = following
        stalled = 0 if size < least / 2 else stalled + 1
        if size < 1e-2 or (stalled > 2 and np.all(change < rounding * (1 + np.abs(following[-1])))):
            end = y + length * (_integrals(np.ones(1), count) @ slopes)[0]
            return Passage(t, length, y, slopes, end, change)
        if stalled > MOST_STALLED:
            return None
        least = min(least, size)
    return None


@cache
def _nodes(count: int) -> Array:
    """Gauss points of (0, 1)."""
    return (legendre.leggauss(count)[0] + 1) / 2


@cache
def _primitives(count: int) -> Array:
    """Coefficients of the integrals, from 0 on, of the polynomials that are 1 at one node and 0 at the others."""
    values = legendre.legvander(2 * _nodes(count) - 1, count - 1)
    return legendre.legint(np.linalg.inv(values), lbnd=-1) / 2


def _integrals(where: Array, count: int) -> Array:
    """(len(where), count): weights of slopes at the nodes in the integral from 0 to each place of (0, 1)."""
    return legendre.legval(2 * where - 1, _primitives(count)).T
