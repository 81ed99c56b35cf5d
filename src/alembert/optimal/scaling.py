"""The units in which `solver="sweep"` measures a problem, so that those in which it is stated do not matter.

A step of one unit is about as far as a quantity goes. Nothing here is compared with a number that has a dimension: with
lengths in feet instead of metres all units of lengths are 3.28 times as large, and the iterations the same.

- states: how far the guess moves them, or their size, or the width between two limits, whichever is known; of a model one
  radian and its radius of inertia, and for speeds that in a quarter of the time. What nothing is known of follows from
  those that move it;
- controls: what moves a state by its unit in the whole time, of a model in a quarter of it or what the guess
  takes, or the width between two limits, if that is less;
- z, residuals and rows: by how much they change when what they depend on changes by a unit; rows between two limits by no
  more than their width;
- cost: by how much all stages together change it.

Units are powers of two, so that dividing by them loses no digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from alembert.optimal.plant import Mechanics, Momenta

if TYPE_CHECKING:
    from alembert.optimal.newton import Newton
    from alembert.optimal.stages import Stages

Array = np.ndarray
PACE = 4.0
"""of speeds and efforts, in terms of the way over the duration, and of that over the duration: the motion of least time from
rest to rest over the way d in T takes 4 d/T^2, and 2 d/T at its fastest. What it is hardly matters: with 2 instead of 4
twelve of thirteen examples find the same in iterations that differ by less than half; the satellite with two wheels, whose
steps are the longest, takes more than 250 instead of 56 (run of 2026-11-17)"""
NOISE = 1e-10
"""share of the largest z below which it should not move at all; of slopes, 1e-12"""
STILL = 1e-3
"""share of its size below which a state of the guess does not move"""


@dataclass
class Units:
    """Of states (as tangent vectors), controls, z, c, d, and of the rows at both ends; arrays that stay where they are."""

    stage: Array
    """of x, u, z, c and d, one after the other"""
    ends: Array
    """of x, of the equations at the start and at the end, and of the bounds there"""
    x: Array
    u: Array
    z: Array
    c: Array
    d: Array
    start: Array
    end: Array
    bounded: Array
    cost: float = 1.0
    """the factor of the cost"""

    @classmethod
    def ones(cls, stages: Stages) -> Units:
        n, m, nz, nd = stages.sizes
        first, last = len(stages.start_names), len(stages.end_names)
        sizes = (n, m, nz, nd, first, last)
        ends = np.ones(n + first + last + len(stages.end_bounded))
        return cls._parted(np.ones(n + m + 2 * nz + nd), ends, sizes)

    @classmethod
    def _parted(cls, stage: Array, ends: Array, sizes: tuple[int, ...]) -> Units:
        n, m, nz, nd, first, last = sizes
        x, u, z, c, d = (stage[i:j] for i, j in pairwise((0, *accumulate((n, m, nz, nz, nd)))))
        behind = (n, n + first, n + first + last, len(ends))
        start, end, bounded = (ends[i:j] for i, j in pairwise(behind))
        return cls(stage, ends, x, u, z, c, d, start, end, bounded)

    def take(self, found: dict[str, Array]) -> None:
        for name, values in found.items():
            getattr(self, name)[...] = values
        self.ends[: len(self.x)] = self.x

    def copied(self) -> Units:
        """In arrays of their own."""
        sizes = tuple(len(a) for a in (self.x, self.u, self.z, self.d, self.start, self.end))
        found = Units._parted(self.stage.copy(), self.ends.copy(), sizes)
        found.cost = self.cost
        return found

    def copy(self, other: Units) -> None:
        self.stage[...], self.ends[...], self.cost = other.stage, other.ends, other.cost


def measure(newton: Newton) -> dict[str, Array]:
    """Units for the problem at the iterate of `newton`, which is linearised there in units of one, without bounds."""
    stages, it, lin = newton.stages, newton.it, newton.linear
    A, B, D = (np.abs(a).max(axis=0) if len(a) else a for a in (lin.A, lin.B, lin.D))
    n = stages.sizes[0]
    x = _states(stages, it.x, newton.tangent.is_plain)
    widths = _widths(stages)
    moved, driven = (stages.count * _without_noise(slope) for slope in (np.abs(A - np.eye(n)), B))
    u = _controls(stages, it.u, x, driven, D[:, n:], widths, _needed(newton, x))
    for _ in range(n):  # what nothing is known of, from what moves it
        open_ = np.flatnonzero(~(x > 0))
        if not len(open_):
            break
        by = np.where(x > 0, moved * np.where(x > 0, x, 0.0), 0.0).max(axis=1, initial=0.0)
        if not (
            by[open_] > 0
        ).any():  # in one stage a control hardly moves what it moves by way of others: states come first
            by = (driven * np.where(u > 0, u, 0.0)).max(axis=1, initial=0.0)
        if not (by[open_] > 0).any():
            break
        x[open_] = by[open_]
    own, points = stages.plant.chart.tangent, stages.scheme.points
    x = _rounded(x)
    u = _rounded(_controls(stages, it.u, x, driven, D[:, n:], widths, _needed(newton, x)))
    x[own : own + stages.memory] = u[len(u) - len(u) // points :][: stages.memory]
    w = np.concatenate([x, u])
    z = (np.abs(newton.by_z).max(axis=0, initial=0.0) * w).max(axis=1, initial=0.0)
    z = _rounded(np.where(z > NOISE * z.max(initial=0.0), z, z.max(initial=0.0)))
    c = _rounded((np.abs(newton.of_z).max(axis=0, initial=0.0) * z).max(axis=1, initial=0.0))
    rows = (D * w).max(axis=1, initial=0.0)
    d = _rounded(np.where(rows > 0, np.minimum(rows, widths), widths))
    start, end, bounded = (
        (np.abs(C) * x).max(axis=1, initial=0.0) for C in (newton.first.C, newton.last.C, newton.of_end)
    )
    width = stages.end_upper - stages.end_lower
    between = np.where(np.isfinite(width) & (width > 0), width, np.inf)
    bounded = np.where(bounded > 0, np.minimum(bounded, between), between)
    found = {"x": x, "u": u, "z": z, "c": c, "d": d}
    return found | {"start": _rounded(start), "end": _rounded(end), "bounded": _rounded(bounded)}


def cost_size(newton: Newton) -> float:
    """By how much the cost changes in all stages together, along its slope and along its curvature, in units of `units`."""
    lin = newton.linear
    w = np.concatenate([newton.units.x, newton.units.u, newton.units.z])
    slope = float((np.abs(newton.of_cost) * w).max(axis=1, initial=0.0).sum())
    last = float((np.abs(newton.of_final) * newton.units.x).max(initial=0.0))
    Q = np.abs(np.diagonal(lin.Q, axis1=1, axis2=2)) * newton.units.x**2
    R = np.abs(np.diagonal(lin.R, axis1=1, axis2=2)) * newton.units.u**2
    curved = float(Q.max(axis=1, initial=0.0).sum() + R.max(axis=1, initial=0.0).sum())
    return max(slope, last, curved)


def _states(stages: Stages, points: Array, in_momenta: bool) -> Array:
    """Units of the states as far as the guess and the limits tell them; 0 where they do not."""
    problem, plant, chart = stages.problem, stages.plant, stages.chart
    steps = chart.difference(points[:-1], points[1:])
    way = np.ptp(np.concatenate([np.zeros((1, chart.tangent)), np.cumsum(steps, axis=0)]), axis=0)
    plain = points[:, chart.nq :]
    size = np.concatenate([np.zeros(chart.nv), np.abs(plain).max(axis=0)])
    found = np.where(way > STILL * size, way, size)
    base = plant.chart.tangent
    names, T = plant.tangent_names, stages.span(points)
    for row in problem.limits["state"]:
        if row.component in names and np.isfinite(row.upper - row.lower):
            k, width = names.index(row.component), row.upper - row.lower
            found[k] = min(found[k], width) if found[k] > 0 else width
    if isinstance(plant, Mechanics):
        nv = plant.model.nv
        angles = np.array([unit.startswith("rad") for unit in plant.model.space.speed_units])
        q, known = points[:, : plant.model.nq], problem.parameter_values
        M = np.abs(plant.tree.mass_matrix(q, parameters=known)).max(axis=0)
        inertia, mass = (np.diag(M)[which].max(initial=0.0) for which in (angles, ~angles))
        radius = np.sqrt(inertia / mass) if mass > 0 else 0.0
        found[:nv] = np.where(angles, 1.0, np.maximum(found[:nv], radius))
        speeds = PACE * found[:nv] / T
        if isinstance(plant, Momenta) and in_momenta:
            speeds = (M * speeds).max(axis=1)
        found[nv : 2 * nv] = speeds
    rest = base + stages.memory
    if problem.periodic:
        found[rest : rest + base] = found[:base]
    last = chart.tangent - int(problem.is_free)
    for k, row in zip(range(last - len(problem.design), last), problem.design.values(), strict=True):
        width = row.upper - row.lower
        found[k] = min(found[k], width) if found[k] > 0 else width
    if problem.is_free:
        found[-1] = min(T, problem.longest - problem.shortest)
    found[base:rest] = 0.0
    return found


def _widths(stages: Stages) -> Array:
    """Between the two limits of each row of d; inf where one is missing, or both are the same."""
    width = stages.upper - stages.lower
    width = np.where(np.isfinite(width) & (width > 0), width, np.inf)
    return width.min(axis=0, initial=np.inf)


def _needed(newton: Newton, x: Array) -> Array:
    """Efforts that the guess takes, by the degree of freedom that each of them drives most: gravity is held by them."""
    stages, B, gaps = newton.stages, newton.linear.B, newton.linear.b
    own, m = stages.plant.chart.tangent, len(stages.plant.controls)
    by = np.abs(B[:, :own].reshape(len(B), own, stages.scheme.points, m)).sum(axis=2)
    best = np.argmax(by.max(axis=0) / np.where(x[:own] > 0, x[:own], np.inf)[:, None], axis=0)
    slopes = by[:, best, np.arange(m)]
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.median(np.abs(gaps[:, best]) / slopes, axis=0)
    return np.where(np.isfinite(found), found, 0.0)


def _controls(
    stages: Stages, guess: Array, x: Array, driven: Array, D: Array, widths: Array, needed: Array
) -> Array:
    """Of all inputs of a stage; the same for all values of a control."""
    points, own = stages.scheme.points, stages.plant.chart.tangent
    m = len(stages.plant.controls)
    known = x[:own] > 0
    effect = driven[:own].reshape(own, points, m).sum(axis=1)[known]
    with np.errstate(divide="ignore"):
        found = (x[:own][known, None] / effect).min(axis=0, initial=np.inf)
    if isinstance(stages.plant, Mechanics):
        found = np.maximum(PACE * found, needed)
    found = np.where(np.isfinite(found), found, 0.0)
    found = np.maximum(found, np.abs(guess).max(axis=0, initial=0.0).reshape(points, m).max(axis=0))
    alone = (D != 0).sum(axis=1) == 1
    for k in np.flatnonzero(alone & np.isfinite(widths)):
        j = int(np.argmax(D[k]))
        width = widths[k] / D[k, j]
        found[j % m] = min(found[j % m], width) if found[j % m] > 0 else width
    return np.tile(found, points)


def _without_noise(slopes: Array) -> Array:
    """Zero where there are only rounding errors."""
    return np.where(slopes > NOISE**1.2 * slopes.max(initial=0.0), slopes, 0.0)


def _rounded(sizes: Array) -> Array:
    """The nearest powers of two; 1 where nothing is known."""
    known = np.isfinite(sizes) & (sizes > 0)
    return np.where(known, 2.0 ** np.round(np.log2(np.where(known, sizes, 1.0))), 1.0)
