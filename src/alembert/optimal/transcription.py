"""What a transcription is: it makes of one stretch of time what the equations of motion say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import casadi as ca
import numpy as np

from alembert.optimal.plant import Moment, Plant
from alembert.optimal.problem import Problem
from alembert.simulate.schemes import CLASSICAL

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Stretch:
    """One stage as expressions: from the time t for h seconds, with the point x, controls u, z and parameters p."""

    problem: Problem
    plant: Plant
    t: ca.SX
    h: ca.SX
    duration: Any
    """of the whole motion"""
    x: ca.SX
    u: list[ca.SX]
    """as many as the scheme has; first the last ones of the stage before, if they are shared"""
    z: ca.SX
    p: ca.SX

    def moment(self, t: ca.SX, x: ca.SX, u: ca.SX) -> Moment:
        return moment_of(self.problem, self.plant, t, x, u, self.p, self.duration)


@dataclass(frozen=True)
class Interval:
    """What a scheme makes of one stage."""

    after: ca.SX
    """the point of the plant at its end"""
    cost: ca.SX
    implicit: ca.SX
    """(1) of `alembert.optimal.stages`"""
    moments: tuple[tuple[Moment, ca.SX], ...]
    """where bounds that involve controls are kept, and the controls there"""


class Transcription(Protocol):
    """A way to discretise time."""

    @property
    def name(self) -> str: ...

    @property
    def order(self) -> int: ...

    @property
    def points(self) -> int:
        """Values of each control that a stage brings."""
        ...

    @property
    def node_controls(self) -> bool:
        """Whether a stage also uses the last controls of the stage before."""
        ...

    @property
    def places(self) -> tuple[float, ...]:
        """Where in a stage its own controls act, from 0 to 1."""
        ...

    @property
    def closes(self) -> bool:
        """Whether it keeps loops closed by itself; otherwise its steps are projected."""
        ...

    def plant(self, problem: Problem) -> Plant: ...

    def implicit(self, plant: Plant) -> tuple[str, ...]:
        """Names for z."""
        ...

    def interval(self, on: Stretch) -> Interval: ...

    def guess(self, plant: Plant, x: Array, after: Array) -> Array:
        """z for points (N, ...) and the points after them."""
        ...


def moment_of(problem: Problem, plant: Plant, t: ca.SX, x: ca.SX, u: ca.SX, p: ca.SX, T: Any) -> Moment:
    own = problem.moment_inputs(p)
    return plant.moment(t, x, u, p, duration=T, _controls=problem.plant.controls, **own)


def classical_step(slope: Callable[[int, ca.SX], ca.SX], h: ca.SX, size: int) -> ca.SX:
    """By how much Runge and Kutta's method of order 4 moves a point in h: slope(i, d) is that of its point i, moved by d."""
    slopes: list[ca.SX] = []
    for i, row in enumerate(CLASSICAL.a):
        moved = sum((float(a) * k for a, k in zip(row, slopes, strict=True) if a), ca.SX.zeros(size))
        slopes.append(slope(i, h * moved))
    return h * sum((float(b) * k for b, k in zip(CLASSICAL.b, slopes, strict=True)), ca.SX.zeros(size))
