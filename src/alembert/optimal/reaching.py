"""Where a straight guess begins and ends, if conditions there are functions: a configuration that keeps them.

The joints that are not stated at an end are moved by d, as little as it takes to keep the rows g of the user's own,

    min_d |outside(g(q + d))|^2 + (NEAR |d|)^2                                                        (1)

from a few starts, since a stretched arm at rest has no slope along which its tip could rise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from scipy.optimize import least_squares

if TYPE_CHECKING:
    from alembert.optimal.guess import Guess
    from alembert.optimal.problem import Problem
    from alembert.optimal.row import Row

Array = np.ndarray
NEAR = 1e-3
"""the weight of a turn by one radian against a condition that is off by one"""
AWAY = 0.3
"""how far from the guess the other starts are [rad, m]"""


def reaching(problem: Problem, guess: Guess) -> Guess:
    """`guess` with its ends moved to where the conditions of the user's own hold, as far as (1) finds it."""
    model, plant = problem.model, problem.plant
    if model is None or getattr(plant, "closure", None) is not None:
        return guess
    points = guess.points.copy()
    for which, rows in ((0, problem.start), (-1, problem.end)):
        own = [row for row in rows if not row.component]
        stated = {row.component for row in rows if row.is_equation}
        free = [k for k, name in enumerate(model.speed_names) if f"q {name}" not in stated]
        if own and free:
            q = points[which, : model.nq]
            points[which, : model.nq] = model.integrate(q, _step(problem, own, free, q))
    if np.array_equal(points, guess.points):
        return guess
    speeds = model.difference(points[0, : model.nq], points[-1, : model.nq]) / guess.duration
    points[:, model.nq :] = speeds
    return replace(guess, points=points)


def _step(problem: Problem, own: list[Row], free: list[int], q: Array) -> Array:
    """d of (1), zero for joints that are stated."""
    model = problem.model
    assert model is not None
    d, v, t = ca.SX.sym("d", len(free)), ca.SX.sym("v", model.nv), ca.SX.sym("t")
    whole = ca.SX.zeros(model.nv)
    for k, j in enumerate(free):
        whole[j] = d[k]
    x = ca.vertcat(model.symbolic.integrate(ca.SX(q), whole), v)
    s = problem.moment(t, x, ca.SX.zeros(len(problem.plant.controls)), ca.SX(problem.parameters), t)
    values = [(row, row.value(s)) for row in own]
    kept = [(row, value) for row, value in values if not ca.depends_on(value, ca.vertcat(v, t))]
    if not kept:
        return np.zeros(model.nv)
    g = ca.vertcat(*(value for _, value in kept))
    f = ca.Function("reach", [d], [g, ca.densify(ca.jacobian(g, d))])
    lower, upper = (np.array([getattr(row, side) for row, _ in kept]) for side in ("lower", "upper"))

    def residuals(d: Array) -> Array:
        g = f(d)[0].full()[:, 0]
        return np.concatenate([np.minimum(g - lower, 0) + np.maximum(g - upper, 0), NEAR * d])

    def slopes(d: Array) -> Array:
        g, J = (w.full() for w in f(d))
        outside = (g[:, 0] < lower) | (g[:, 0] > upper)
        return np.concatenate([outside[:, None] * J, NEAR * np.eye(len(free))])

    count, still = len(kept), np.zeros(len(free))
    if not np.isfinite(residuals(still)).all() or np.abs(residuals(still)[:count]).max() < 1e-6:
        return np.zeros(model.nv)
    low, high = _room(problem, free, q)
    found, best = still, float(np.sum(residuals(still) ** 2))
    for start in (still, AWAY * np.cos(np.arange(len(free))), -AWAY * np.cos(np.arange(len(free)))):
        begin = np.clip(start, low + 1e-9, high - 1e-9)
        if not np.isfinite(residuals(begin)).all():
            continue
        tried = least_squares(residuals, begin, slopes, (low, high), max_nfev=50)
        if 2 * tried.cost < best:
            found, best = tried.x, 2 * tried.cost
    out = np.zeros(model.nv)
    out[free] = found
    return out


def _room(problem: Problem, free: list[int], q: Array) -> tuple[Array, Array]:
    """How far the joints may turn within their limits."""
    model = problem.model
    assert model is not None
    limits = {row.component: row for row in problem.limits["state"]}
    low, high = np.full(len(free), -np.inf), np.full(len(free), np.inf)
    place = {
        k: q[sq][i]
        for sq, sv in zip(model._q_slices, model._v_slices, strict=True)
        if sq.stop - sq.start == sv.stop - sv.start
        for i, k in enumerate(range(sv.start, sv.stop))
    }
    for i, k in enumerate(free):
        row = limits.get(f"q {model.speed_names[k]}")
        if row is not None and k in place and row.lower < row.upper:
            low[i], high[i] = row.lower - place[k], row.upper - place[k]
    return np.minimum(low, -1e-6), np.maximum(high, 1e-6)
