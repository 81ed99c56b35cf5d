"""The arcs of a solution: where a control is at a bound, and where it is between them, singular or not.

Where the Hamiltonian H = l + lambda' f is linear in a control,

    H_u = 0 all along, while H_uu = 0                                                                  (1)

on an arc on which the control is at no bound: such an arc is *singular*. What the control is there follows from derivatives
of H_u, not from H_u itself, and a mesh sees it only by way of the motion: controls are found less accurately there, and with
values at nodes they may zigzag. Where a limit of a state, of a rate or a path condition holds, that is what decides, and the
arc is none of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

if TYPE_CHECKING:
    from alembert.optimal.problem import Problem
    from alembert.optimal.solution import Solution

Array = np.ndarray
AT_BOUND = 1e-3
"""share of the room between bounds within which a control counts as at one of them"""
SHORTEST = 2
"""intervals of an arc between bounds; fewer are a switch that falls into an interval"""


@dataclass(frozen=True)
class Arc:
    """From `start` to `end` [s] the control is at its "lower" or "upper" bound, "between" them, "singular", or
    "constrained": between its bounds while limits on other things hold, which may be what determines it."""

    control: str
    kind: str
    start: float
    end: float

    def __str__(self) -> str:
        where = {
            "lower": "at its lower bound",
            "upper": "at its upper bound",
            "between": "between its bounds",
            "constrained": "between its bounds, where other limits hold,",
        }
        return (
            f"{self.control} is {where.get(self.kind, 'singular')} from {self.start:.4g} to {self.end:.4g} s"
        )


def linear_controls(problem: Problem) -> list[str]:
    """Controls in which rates, running cost and path are linear."""
    plant = problem.plant
    x, u, t = ca.SX.sym("x", plant.chart.point), ca.SX.sym("u", len(plant.controls)), ca.SX.sym("t")
    p, T = ca.SX(problem.parameters), ca.SX.sym("T")
    s = problem.moment(t, x, u, p, T)
    whole = ca.vertcat(plant.rate(t, x, u, p), problem.cost.rate(s), *(row.value(s) for row in problem.path))
    J = ca.jacobian(whole, u)
    return [name for k, name in enumerate(plant.controls) if not ca.depends_on(J[:, k], u[k])]


def arcs(solution: Solution) -> list[Arc]:
    """By control and time; of controls with two bounds."""
    problem, N = solution.problem, solution.steps
    linear = linear_controls(problem)
    rows = {row.component: row for row in problem.limits["control"]}
    held = _held(solution)
    middle = solution.control_at((solution.time[:-1] + solution.time[1:]) / 2)
    found = []
    for k, name in enumerate(problem.plant.controls):
        row = rows.get(name)
        if row is None or not np.isfinite(row.upper - row.lower) or row.upper <= row.lower:
            continue
        room = AT_BOUND * (row.upper - row.lower)
        kinds = np.where(
            middle[:, k] <= row.lower + room, -1, np.where(middle[:, k] >= row.upper - room, 1, 0)
        )
        kinds = _without_switches(kinds)
        kinds = np.where((kinds == 0) & held, 2, kinds)
        edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), N]
        between = "singular" if name in linear else "between"
        for a, b in pairwise(edges):
            kind = {-1: "lower", 1: "upper", 0: between, 2: "constrained"}[int(kinds[a])]
            found.append(Arc(name, kind, float(solution.time[a]), float(solution.time[b])))
    return found


def _held(solution: Solution) -> Array:
    """Intervals where limits other than those of controls hold: their multipliers are larger than what is left to them."""
    stages, path = solution.stages, solution._outcome.iterate.path
    own = tuple(row.name for row in solution.problem.limits["control"])
    along = np.isfinite(stages.lower[1:]).any(axis=0) | np.isfinite(stages.upper[1:]).any(axis=0)
    others = [not any(name == x or name.startswith(f"{x} (") for x in own) for name in stages.path_names]
    below = (path.has_lower > 0) & (path.low > path.slack - path.lower)
    above = (path.has_upper > 0) & (path.high > path.upper - path.slack)
    at = ((below | above | (path.held > 0)) & along & np.array(others, dtype=bool)).any(axis=1)
    return at | np.append(at[1:], False)  # a state at the end of an interval too


def _without_switches(kinds: Array) -> Array:
    """Single intervals between two bounds belong to what follows: the switch is within them."""
    kinds = kinds.copy()
    edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(kinds)]
    for a, b in pairwise(edges):
        if kinds[a] == 0 and b - a < SHORTEST and a > 0 and b < len(kinds):
            kinds[a:b] = kinds[b]
    return kinds


def junctions(solution: Solution) -> set[int]:
    """Intervals on both sides of where a singular arc begins or ends: these are cut in refined meshes."""
    found: set[int] = set()
    nodes = solution.time
    for arc in arcs(solution):
        if arc.kind == "singular":
            for t in (arc.start, arc.end):
                k = int(np.argmin(np.abs(nodes - t)))
                found |= {j for j in (k - 1, k) if 0 < k < solution.steps and 0 <= j < solution.steps}
    return found
