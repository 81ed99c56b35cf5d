"""A second opinion on a solution: the motion under its controls, integrated independently of the transcription.

Once from the start, as a machine would move that nobody corrects, and once from every node for one interval: where the first
is far off and the second is not, the motion is unstable, and the solution as accurate as its steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from alembert.lowering.stage_loop import SHARED, StageLoop
from alembert.optimal.transcription import classical_step

if TYPE_CHECKING:
    from alembert.optimal.problem import Problem
    from alembert.optimal.solution import Solution

Array = np.ndarray
LARGEST_PARTS = 256
UNSTABLE = 1e3
"""errors of single intervals that grow by more do so because the motion is unstable"""


COARSE = 0.1
"""share of the range of a coordinate or speed by which a single interval may be off"""


@dataclass(frozen=True)
class Accuracy:
    """How far a motion under the controls found, integrated by an independent accurate method, is from the solution."""

    largest: float
    """the largest difference of any coordinate or speed at any node"""
    final: float
    """the same at the end"""
    component: str
    time: float
    """where the largest is"""
    parts: int
    """steps of the simulation in each interval"""
    one_interval: float
    """the largest difference after one interval, when the simulation starts at the solution's node before it"""
    share: float = 0.0
    """the same in terms of how far that coordinate or speed moves in all"""

    @property
    def is_coarse(self) -> bool:
        """Whether single intervals are off by much of the whole motion: then the solution means little."""
        return not self.share <= COARSE

    @property
    def is_unstable(self) -> bool:
        """Whether what single intervals are off grows by far more than their number."""
        return self.largest > UNSTABLE * self.one_interval and self.largest > 1e-3

    def __str__(self) -> str:
        text = (
            f"simulated with the same controls: at most {self.largest:.2e} off "
            f"({self.component} at {self.time:.4g} s), "
            f"{self.final:.2e} at the end; {self.one_interval:.2e} in one interval"
        )
        if self.is_coarse:
            return (
                f"{text}. The steps are too long for this motion: one is off by {self.share:.0%} of its range; take more of "
                "them, or another transcription"
            )
        return (
            f"{text}. The motion is unstable: follow it with solution.controller()"
            if self.is_unstable
            else text
        )


def simulate(solution: Solution) -> Accuracy:
    """Runge and Kutta's method of order 4 on ever shorter steps, until halving them changes nothing that is reported."""
    parts = 4
    gaps = _gaps(solution, parts)
    while parts < LARGEST_PARTS:
        finer = _gaps(solution, 2 * parts)
        parts *= 2
        change = np.max(np.abs(finer - gaps), initial=0.0)
        gaps = finer
        if not np.all(np.isfinite(gaps)) or change <= 1e-10 + 1e-3 * np.max(np.abs(gaps)):
            break
    names = solution.problem.plant.tangent_names
    sizes = np.where(np.isfinite(gaps), np.abs(gaps), np.inf)
    k, at = np.unravel_index(int(np.argmax(sizes)), sizes.shape)
    near = np.abs(_gaps(solution, parts, restart=True))
    near = np.where(np.isfinite(near), near, np.inf)
    return Accuracy(
        float(sizes[k, at]),
        float(np.max(sizes[-1])),
        names[at],
        float(solution.time[k]),
        parts,
        float(np.max(near)),
        float(np.max(near / _moved(solution))),
    )


def _moved(solution: Solution) -> Array:
    """How far each component of the state moves; those that hardly do count as a hundredth of the others."""
    steps = solution.problem.plant.chart.difference(solution.x[:-1], solution.x[1:])
    way = np.ptp(np.concatenate([np.zeros((1, steps.shape[1])), np.cumsum(steps, axis=0)]), axis=0)
    return np.maximum(way, 0.01 * np.max(way, initial=0.0) + 1e-9)


def _gaps(solution: Solution, parts: int, *, restart: bool = False) -> Array:
    """(N + 1, tangent): from the solution to the motion simulated from the start, or from each node, at the nodes."""
    problem, N = solution.problem, solution.steps
    count = N * parts
    k, share = np.divmod(np.arange(count), parts)
    h = np.repeat(np.diff(solution.time) / parts, parts)[:, None]
    t = solution.time[k, None] + share[:, None] * h
    controls = np.concatenate(
        [solution.control_within(k, (share + c) / parts) for c in (0.0, 0.5, 1.0)], axis=1
    )
    controls = np.ascontiguousarray(controls)
    x = np.empty((count + 1, problem.plant.chart.point))
    x[0] = solution.x[0]
    step = _step(problem)
    if not restart:
        step(count, x, t, h, controls, problem.parameters, x)
        return _difference(problem, solution.x, x[::parts])
    ends = np.empty((N, x.shape[1]))
    for i in range(N):
        part = slice(i * parts, (i + 1) * parts)
        x[0] = solution.x[i]
        step(parts, x, t[part], h[part], controls[part], problem.parameters, x)
        ends[i] = x[parts]
    return _difference(problem, solution.x[1:], ends)


def _difference(problem: Problem, x: Array, y: Array) -> Array:
    """From x to y; inf where a motion has run away."""
    finite = np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1)
    found = np.full((len(x), problem.plant.chart.tangent), np.inf)
    found[finite] = problem.plant.chart.difference(x[finite], y[finite])
    return found


def _step(problem: Problem) -> StageLoop:
    plant = problem.plant
    chart, m = plant.chart, len(plant.controls)
    x, t, h = ca.SX.sym("x", chart.point), ca.SX.sym("t"), ca.SX.sym("h")
    u, p = ca.SX.sym("u", 3 * m), ca.SX.sym("p", len(problem.parameters))
    first, middle, last = u[:m], u[m : 2 * m], u[2 * m :]

    d, v, w = ca.SX.sym("d", chart.tangent), ca.SX.sym("v", m), ca.SX.sym("w")
    slope = chart.chart_rate(d, plant.rate(w, chart.retract(x, d), v, p))
    g = ca.Function("slope", [d, w, v, x, p], [slope])
    points = [(t, first), (t + h / 2, middle), (t + h / 2, middle), (t + h, last)]
    after = chart.retract(x, classical_step(lambda i, d: g(d, *points[i], x, p), h, chart.tangent))
    function = ca.Function("optimal_check", [x, t, h, u, p], [after])
    return StageLoop(function, [0, 0, 0, 0, SHARED, 1], backward=False)
