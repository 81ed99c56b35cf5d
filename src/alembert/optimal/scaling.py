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

They are not rounded, to powers of two for instance: what is rounded differs from unit to unit, and a search that turns many
corners then takes two or three times the iterations in one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.optimal.plant import Mechanics, Momenta

if TYPE_CHECKING:
    from alembert.optimal.newton import Newton
    from alembert.optimal.stages import Segment, Stages

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
class PartUnits:
    """Of a part of the stages, which is `where` among all: of x, u, z, c and d, and between phases of the next x."""

    where: slice
    stage: Array
    """all of them, one after the other"""
    x: Array
    u: Array
    z: Array
    c: Array
    d: Array
    next_x: Array

    @classmethod
    def ones(cls, part: Segment) -> PartUnits:
        n, m, nz, nd = part.stages.sizes
        stage = np.ones(n + m + 2 * nz + nd + (n if part.stages.following is not None else 0))
        return cls(part.where, stage, *np.split(stage, list(accumulate((n, m, nz, nz, nd)))))


@dataclass
class Units:
    """Of states (as tangent vectors) at all nodes, of controls, z, c and d of all stages, and of the rows at both ends.

    Arrays stay where they are; what the `parts` of the stages have is said once, `settle` hands it on.
    """

    parts: list[PartUnits]
    ends: Array
    """of the first and the last x, of the equations at the start and at the end, and of the bounds there"""
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
        N, (n, m, nz, nd) = stages.count, stages.sizes
        first, last = len(stages.start_names), len(stages.end_names)
        ends = np.ones(2 * n + first + last + len(stages.end_bounded))
        _, start, end, bounded = np.split(ends, list(accumulate((2 * n, first, last))))
        x, u, z, c, d = np.ones((N + 1, n)), *(np.ones((N, k)) for k in (m, nz, nz, nd))
        return cls([PartUnits.ones(part) for part in stages.parts], ends, x, u, z, c, d, start, end, bounded)

    @property
    def after(self) -> Array:
        """Of the x at the end of each stage."""
        return self.x[1:]

    @property
    def of_stages(self) -> tuple[Array, Array, Array]:
        """Of x at the beginning of stages, of u and z."""
        return self.x[:-1], self.u, self.z

    def reset(self) -> None:
        for part in self.parts:
            part.stage[...] = 1.0
        self.ends[...] = 1.0
        self.settle()

    def settle(self) -> None:
        """The arrays of all stages, and of x at the ends, from those of the parts."""
        for part in self.parts:
            for name in ("x", "u", "z", "c", "d"):
                getattr(self, name)[part.where] = getattr(part, name)
        for part, following in pairwise(self.parts):
            part.next_x[...] = following.x[: len(part.next_x)]
        self.x[-1] = self.parts[-1].x
        n = self.x.shape[1]
        self.ends[:n], self.ends[n : 2 * n] = self.x[0], self.x[-1]

    def copied(self) -> Units:
        """In arrays of their own, which are kept, not changed."""
        found: Units = _copied(self, parts=[_copied(part) for part in self.parts])
        return found

    def copy(self, other: Units) -> None:
        for part, given in zip(self.parts, other.parts, strict=True):
            part.stage[...] = given.stage
        self.ends[...], self.cost = other.ends, other.cost
        self.settle()


def _copied(units: Any, **more: Any) -> Any:
    """With copies of its arrays, and of those that are views of others."""
    arrays = {name: a.copy() for name, a in vars(units).items() if isinstance(a, np.ndarray)}
    return replace(units, **arrays, **more)


def measure(newton: Newton) -> None:
    """Sets the units at the iterate of `newton`, which is linearised there in units of one, without bounds."""
    stages, units = newton.stages, newton.units
    between = []
    for k, (part, own) in enumerate(zip(stages.parts, units.parts, strict=True)):
        if part.stages.following is not None:
            between.append((part, own, units.parts[k - 1], units.parts[k + 1]))
            continue
        found = _of_part(newton, part, newton._parts[k].is_plain)
        for name, values in found.items():
            getattr(own, name)[: len(values)] = values
        if part.stages.own is not None:
            _carried(newton, part, own)
    for part, own, before, after in between:
        _between(newton, part, own, before.x, after.x)
    units.settle()
    start, end, bounded = (
        (np.abs(C) * x).max(axis=1, initial=0.0)
        for C, x in (
            (newton.first.C, units.x[0]),
            (newton.last.C, units.x[-1]),
            (newton._end_D, units.x[-1]),
        )
    )
    width = stages.end_upper - stages.end_lower
    within = np.where(np.isfinite(width) & (width > 0), width, np.inf)
    bounded = np.where(bounded > 0, np.minimum(bounded, within), within)
    units.ends[2 * units.x.shape[-1] :] = _known(np.concatenate([start, end, bounded]))


def _carried(newton: Newton, part: Segment, units: PartUnits) -> None:
    """What is only carried from phase to phase has the size that it has in the guess."""
    first, last = part.stages.own.chart.tangent, part.stages.chart.tangent  # type: ignore[union-attr]
    places = [part.stages.point_place(0, j) for j in range(first, last)]
    units.x[first:] = _known(np.abs(newton.it.x[:, places]).max(axis=0, initial=0.0))


def _between(newton: Newton, part: Segment, units: PartUnits, x: Array, after: Array) -> None:
    """Of a stage between phases, from those of the states on both sides."""
    where = part.where
    units.x[...] = x
    B, D = np.abs(newton.linear.B[where][0]), np.abs(newton.linear.D[where][0])
    with np.errstate(divide="ignore"):
        units.u[...] = _known((after[:, None] / B).min(axis=0, initial=np.inf))
    rows, widths = (D * np.concatenate([x, units.u])).max(axis=1, initial=0.0), _widths(part.stages)
    units.d[...] = _known(np.where(rows > 0, np.minimum(rows, widths), widths))


@dataclass(frozen=True)
class _Measured:
    """What is known of one part of the stages, in its own sizes."""

    stages: Stages
    x: Array
    u: Array
    A: Array
    B: Array
    b: Array
    D: Array
    Z: Array
    G: Array
    is_plain: bool

    @classmethod
    def of(cls, newton: Newton, part: Segment, is_plain: bool) -> _Measured:
        stages, where, lin = part.stages.own or part.stages, part.where, newton.linear
        (n, m, nz, nd), full = stages.sizes, part.stages.sizes[0]
        x = newton.it.x[where.start : where.stop + 1, : stages.chart.point]
        inputs = [*range(n), *range(full, full + m)] if full > n else slice(n + m)
        return cls(
            *(stages, x, newton.it.u[where, :m], lin.A[where, :n, :n], lin.B[where, :n, :m]),
            *(lin.b[where, :n], lin.D[where, :nd][:, :, inputs], newton._Z[where, :nz][:, :, inputs]),
            *(newton._G[where, :nz, :nz], is_plain),
        )


def _of_part(newton: Newton, part: Segment, is_plain: bool) -> dict[str, Array]:
    at = _Measured.of(newton, part, is_plain)
    stages = at.stages
    A, B, D = (np.abs(a).max(axis=0) if len(a) else a for a in (at.A, at.B, at.D))
    n = stages.sizes[0]
    asked = _asked(newton, n)
    x = _states(stages, at.x, is_plain, asked)
    widths = _widths(stages)
    own, points = stages.plant.chart.tangent, stages.scheme.points
    moved, driven = (stages.count * _without_noise(slope, own) for slope in (np.abs(A - np.eye(n)), B))
    x[:own][_is_rounding(x[:own], np.maximum(x, asked)[:own], moved[:own, :own])] = 0.0
    u: Array | None = None
    for _ in range(n):  # what nothing is known of, from what moves it
        open_ = np.flatnonzero(~(x > 0))
        if not len(open_):
            break
        u = _controls(stages, at.u, x, driven, D[:, n:], widths, _needed(at, x)) if u is None else u
        by = np.where(x > 0, moved * np.where(x > 0, x, 0.0), 0.0).max(axis=1, initial=0.0)
        if not (
            by[open_] > 0
        ).any():  # in one stage a control hardly moves what it moves by way of others: states come first
            by = (driven * np.where(u > 0, u, 0.0)).max(axis=1, initial=0.0)
        if not (by[open_] > 0).any():
            break
        x[open_] = by[open_]
    x = _known(x)
    u = _known(_controls(stages, at.u, x, driven, D[:, n:], widths, _needed(at, x)))
    x[own : own + stages.memory] = u[len(u) - len(u) // points :][: stages.memory]
    w = np.concatenate([x, u])
    z = (np.abs(at.Z).max(axis=0, initial=0.0) * w).max(axis=1, initial=0.0)
    z = _known(np.where(z > NOISE * z.max(initial=0.0), z, z.max(initial=0.0)))
    c = _known((np.abs(at.G).max(axis=0, initial=0.0) * z).max(axis=1, initial=0.0))
    rows = (D * w).max(axis=1, initial=0.0)
    d = _known(np.where(rows > 0, np.minimum(rows, widths), widths))
    return {"x": x, "u": u, "z": z, "c": c, "d": d}


def cost_size(newton: Newton) -> float:
    """By how much the cost changes in all stages together, along its slope and along its curvature, in units of `units`."""
    lin = newton.linear
    w = np.concatenate(newton.units.of_stages, axis=-1)
    slope = float((np.abs(newton._g) * w).max(axis=1, initial=0.0).sum())
    last = float((np.abs(newton._gradient) * newton.units.x[-1]).max(initial=0.0))
    Q, R = (np.abs(a.diagonal(axis1=1, axis2=2)) for a in (lin.Q, lin.R))
    Q, R = Q * newton.units.x**2, R * newton.units.u**2
    curved = float(Q.max(axis=1, initial=0.0).sum() + R.max(axis=1, initial=0.0).sum())
    return max(slope, last, curved)


def _asked(newton: Newton, n: int) -> Array:
    """How far conditions at the ends ask the first n states to move; of phases nothing is known."""
    found = np.zeros(newton.first.C.shape[1])
    if len(newton.stages.parts) == 1:
        for end in (newton.first, newton.last):
            with np.errstate(divide="ignore", invalid="ignore"):
                far = np.where(end.C != 0, np.abs(end.c)[:, None] / np.abs(end.C), 0.0)
            found = np.maximum(found, far.max(axis=0, initial=0.0))
    return found[:n]


def _states(stages: Stages, points: Array, in_momenta: bool, asked: Array) -> Array:
    """Units of the states as far as the guess and the limits tell them; 0 where they do not."""
    problem, plant, chart = stages.problem, stages.plant, stages.chart
    way = np.cumsum(chart.difference(points[:-1], points[1:]), axis=0)
    way = way.max(axis=0, initial=0.0) - way.min(axis=0, initial=0.0)
    plain = points[:, chart.nq :]
    size = np.concatenate([np.zeros(chart.nv), np.abs(plain).max(axis=0)])
    found = np.where(way > STILL * size, way, size)
    found = np.where(found > NOISE * asked, found, 0.0)
    base = plant.chart.tangent
    names, T = plant.tangent_names, stages.span(points)
    for row in problem.limits["state"]:
        if row.component in names and np.isfinite(row.upper - row.lower):
            k, width = names.index(row.component), row.upper - row.lower
            found[k] = min(found[k], width) if found[k] > 0 else width
    if isinstance(plant, Mechanics):
        nv = plant.model.nv
        angles = [unit.startswith("rad") for unit in plant.model.space.speed_units]
        momenta = isinstance(plant, Momenta) and in_momenta
        if momenta or not all(angles):  # else nothing asks for it
            q, known = points[:, : plant.model.nq], problem.parameter_values
            M = np.abs(plant.tree.mass_matrix(q, parameters=known)).max(axis=0)
        if not all(angles):
            turns = np.array(angles)
            inertia, mass = (np.diag(M)[which].max(initial=0.0) for which in (turns, ~turns))
            found[:nv] = np.maximum(found[:nv], np.sqrt(inertia / mass) if mass > 0 else 0.0)
        found[:nv][angles] = 1.0
        speeds = PACE * found[:nv] / T
        found[nv : 2 * nv] = (M * speeds).max(axis=1) if momenta else speeds
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


def _needed(at: _Measured, x: Array) -> Array:
    """Efforts that the guess takes, by the degree of freedom that each of them drives most: gravity is held by them."""
    stages, B, gaps = at.stages, at.B, at.b
    if not isinstance(stages.plant, Mechanics):
        return np.zeros(len(stages.plant.controls))
    own, m = stages.plant.chart.tangent, len(stages.plant.controls)
    by = np.abs(B[:, :own].reshape(len(B), own, stages.scheme.points, m)).sum(axis=2)
    best = np.argmax(by.max(axis=0) / np.where(x[:own] > 0, x[:own], np.inf)[:, None], axis=0)
    slopes = by[:, best, np.arange(m)]
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.sort(np.abs(gaps[:, best]) / slopes, axis=0)  # what is not a number comes last
    middle = (each[(len(each) - 1) // 2] + each[len(each) // 2]) / 2
    return np.where(np.isfinite(middle + 0 * each[-1]), middle, 0.0)


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
    found = np.maximum(PACE * found if isinstance(stages.plant, Mechanics) else found, needed)
    found = np.where(np.isfinite(found), found, 0.0)
    found = np.maximum(found, np.abs(guess).max(axis=0, initial=0.0).reshape(points, m).max(axis=0))
    alone = (D != 0).sum(axis=1) == 1
    for k in np.flatnonzero(alone & np.isfinite(widths)):
        j = int(np.argmax(D[k]))
        width = widths[k] / D[k, j]
        found[j % m] = min(found[j % m], width) if found[j % m] > 0 else width
    return np.concatenate([found] * points)


def _without_noise(slopes: Array, own: int) -> Array:
    """Zero where there are only rounding errors, beside the largest slope of the `own` states: what is only carried along
    has slopes of one, however short the stages."""
    return np.where(slopes > NOISE**1.2 * slopes[:own].max(initial=0.0), slopes, 0.0)


def _is_rounding(x: Array, ways: Array, moved: Array) -> Array:
    """Which states are so small in the guess that the ways of all others that they move would not feel them: 1e-16 for 0."""
    felt = (moved > 0) & (ways[:, None] > 0) & ~np.eye(len(x), dtype=bool)
    small = moved * x <= NOISE * ways[:, None]
    return felt.any(axis=0) & (small | ~felt).all(axis=0)


def _known(sizes: Array) -> Array:
    """1 where nothing is known."""
    return np.where((sizes > 0) & np.isfinite(sizes), sizes, 1.0)
