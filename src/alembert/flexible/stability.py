"""Where a structure loses its stability as a load grows: divergence (buckling) and flutter.

    M q'' + D q' + K(p) q = 0                                                                                (1)

A conservative load makes K singular; a follower force makes it unsymmetric, and two frequencies meet.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.control import SecondOrder
from alembert.errors import ArgumentError
from alembert.flexible.campbell import pairs

Array = np.ndarray
_GROWTH = 1e-5
"""growth over frequency that counts: poles that meet on the axis are known to the square root of rounding"""


@dataclass(frozen=True, eq=False)
class StabilityBoundary:
    """The smallest value of the parameter at which something grows."""

    value: float
    kind: str
    """"divergence" or "flutter" """
    pole: complex
    """just beyond"""


def stability_boundary(
    system: Callable[[float], SecondOrder], low: float, high: float, *, samples: int = 40, digits: int = 8
) -> StabilityBoundary | None:
    """The first loss of stability of `system(p)` between `low` and `high`, None if there is none at the samples.

    The range is sampled, then halved. Poles that grow by less than 1e-5 of the largest frequency seen so far do not count.
    """
    if not (np.isfinite([low, high]).all() and low < high) or samples < 2:
        raise ArgumentError(f"stability_boundary: from {low!r} to {high!r} with {samples!r} samples")
    reference = np.abs(_poles(system, low)).max()

    def worst(p: float) -> complex | None:
        poles = _poles(system, p)
        scale = np.minimum(np.maximum(np.abs(poles), 1e-3 * np.abs(poles).min()), reference)
        grows = poles.real > _GROWTH * scale
        return complex(poles[grows][np.argmax(poles[grows].real)]) if grows.any() else None

    if worst(low) is not None:
        raise ArgumentError(f"stability_boundary: the system is unstable at {low:g} already")
    grid = np.linspace(low, high, samples + 1)
    for a, b in itertools.pairwise(grid):
        pole = worst(float(b))
        if pole is None:
            continue
        below, above = float(a), float(b)
        while above - below > 10.0**-digits * max(abs(above), abs(below)):
            middle = (below + above) / 2
            found = worst(middle)
            if found is None:
                below = middle
            else:
                above, pole = middle, found
        return StabilityBoundary(above, "divergence" if abs(pole.imag) < abs(pole.real) else "flutter", pole)
    return None


def _poles(system: Any, p: float) -> Array:
    s = system(p)
    if not isinstance(s, SecondOrder):
        raise ArgumentError(
            f"stability_boundary: system({p:g}) is {type(s).__name__}, expected a SecondOrder"
        )
    return pairs(s.M, s.D, s.K)[0]
