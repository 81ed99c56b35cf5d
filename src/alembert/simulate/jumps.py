"""Accelerations that jump within a step of error control: found, placed and told.

A law that jumps without telling (bang-bang, sign) makes error control reject step after step until one is so short that the
jump no longer matters. So a step much shorter than others, over which the accelerations change, is looked at: halved again
and again, a smooth change shrinks, a jump stays whole in one of the halves.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from alembert.errors import NumericalError, warn
from alembert.simulate.adaptive import DenseStep
from alembert.simulate.chart_equation import Flow

Array = np.ndarray
SHORT = 1e-3
"""of the longest step so far, or of a thousandth of the run: shorter ones are looked at"""
SEEN = 1e-3
"""of the accelerations: smaller jumps are not told"""
WHOLE, HALVINGS = 0.9, 12
"""what must be left of a change in one half, each time"""
PROBED, SLIDING, AROUND = 50, 5, 4.0 ** np.arange(5)
"""of short steps that follow one another each 50th is looked at, up to so many lengths before and after it; where 5 have a
jump that near, the motion stays where the law jumps, and would never get on"""


class Jumps:
    """What is found in a run."""

    def __init__(self, duration: float) -> None:
        self._longest, self._short, self._slid = duration / 1000, 0, 0
        self.count = 0
        self.first: tuple[float, bool] | None = None
        """the time of the first, and whether it is one of the time alone"""

    def look(self, name: str, flow: Flow, piece: DenseStep) -> None:
        length = piece.end - piece.start
        self._longest = max(self._longest, length)
        if length > SHORT * self._longest:
            self._short = self._slid = 0
            return
        self._short += 1
        found = _placed(_Path(flow, piece), np.array([piece.start, piece.end]))
        if found is not None:
            self.count += 1
            self.first = self.first or found
        if self._short % PROBED == 0:
            times = piece.end + length * np.concatenate([-AROUND[::-1], AROUND])
            self._slid += _placed(_Straight(flow, piece), times) is not None
        if self._slid == SLIDING:
            raise NumericalError(
                f"simulate: {name} cannot go on at t = {piece.end:.9g} s: the forces jump to and fro there, so that the "
                "motion slides along the place where they jump, in ever shorter steps; sample the controller (Sampled), "
                "make the jump a steep slope (tanh), or give a step and integrator='rk4'"
            )

    def tell(self, name: str, steps: int) -> None:
        """Warn of what was found; to be called once, at the end."""
        if self.first is None:
            return
        t, alone = self.first
        hint = (
            "give the controller its period (Sampled), or its times (breaks)"
            if alone
            else "make the place where it jumps an event, or the jump a steep slope (tanh)"
        )
        times = "once" if self.count == 1 else f"{self.count} times"
        warn(
            f"simulate: forces jump {times} without telling, first at t = {t:.9g} s: of {steps} steps {name} spent many "
            f"there, and what is shorter than a step may be missed; {hint}"
        )


class _Path:
    """Accelerations along a step."""

    def __init__(self, flow: Flow, piece: DenseStep) -> None:
        self.flow, self.piece = flow, piece

    def state(self, t: float) -> tuple[Array, Array, Array]:
        return *self.piece.at(t), self.piece.memory(t)

    def at(self, t: float, of: float | None = None) -> Array:
        """At a time and the state `of` another one."""
        return self.flow.slope(t, *self.state(t if of is None else of))[0]


class _Straight(_Path):
    """The same around the end of a step, as if the accelerations there stayed."""

    def __init__(self, flow: Flow, piece: DenseStep) -> None:
        super().__init__(flow, piece)
        self._end = super().state(piece.end)
        self._a = flow.slope(piece.end, *self._end)[0]

    def state(self, t: float) -> tuple[Array, Array, Array]:
        (q, v, z), dt = self._end, t - self.piece.end
        return self.flow.system.model.integrate(q, dt * v), v + dt * self._a, z


def _placed(path: _Path, times: Array) -> tuple[float, bool] | None:
    """When the accelerations jump between some times, and whether they do so with time alone; None where they do not."""
    at = path.at
    try:
        values = [at(float(t)) for t in times]
        changes = [_most(b - a) for a, b in pairwise(values)]
        k = int(np.argmax(changes))
        start, end, before, after = float(times[k]), float(times[k + 1]), values[k], values[k + 1]
        size = changes[k]
        if not size > SEEN * (_most(before) + _most(after)):
            return None
        for _ in range(HALVINGS):
            middle = (start + end) / 2
            between = at(middle)
            if _most(between - before) >= WHOLE * size:
                end, after = middle, between
            elif _most(after - between) >= WHOLE * size:
                start, before = middle, between
            else:
                return None
        alone = _most(at(end, start) - before) >= WHOLE * size
    except NumericalError:  # told by the scheme itself
        return None
    return end, bool(alone)


def _most(x: Array) -> float:
    return float(np.max(np.abs(x), initial=0.0))
