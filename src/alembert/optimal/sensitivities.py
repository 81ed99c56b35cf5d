"""How the optimal cost changes with parameters: the slope of the Lagrangian along them, multipliers held."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from alembert.optimal.stages import Stages

if TYPE_CHECKING:
    from alembert.optimal.solution import Solution


def sensitivities(solution: Solution) -> dict[str, float]:
    """How the optimal cost changes with each parameter: the slope of the Lagrangian."""
    names = [name for name, _ in solution.problem.plant.parameters]
    if not names:
        return {}
    stages, it, scale = solution.stages, solution._outcome.iterate, solution._outcome.scale
    slope = _parameter_slope(stages)
    given = (it.x[:-1].T, it.u.T, it.z.T, it.x[1:].T, stages.numbers.T, solution.problem.parameters)
    total = slope.map(solution.steps)(
        *given[:5],
        np.tile(given[5][:, None], (1, solution.steps)),
        it.costates[1:].T / scale,
        it.path.y.T / scale,
    )
    found = total.full().reshape(len(names), -1).sum(axis=1)
    x, s, p = ca.SX.sym("x", stages.chart.point), ca.SX.sym("s", 3), ca.SX.sym("p", len(names))
    cost, equations, bounded = stages.end(x, s, p)
    end = cost + ca.dot(it.eta / scale, equations) + ca.dot(it.last.y / scale, bounded)
    start = ca.dot(it.sigma / scale, stages.start(x, s, p))
    for expression, point in ((end, it.x[-1]), (start, it.x[0])):
        f = ca.Function("f", [x, s, p], [ca.gradient(expression, p)])
        found += f(point, stages.numbers[-1], solution.problem.parameters).full()[:, 0]
    return dict(zip(names, map(float, found), strict=True))


def _parameter_slope(stages: Stages) -> ca.Function:
    """The slope of a stage's Lagrangian along the parameters, with the multipliers of c from (2) of `evaluation`."""
    n, m, nz, nd = stages.sizes
    point = stages.chart.point
    x, u, z = ca.SX.sym("x", point), ca.SX.sym("u", m), ca.SX.sym("z", nz)
    after, s, p = ca.SX.sym("after", point), ca.SX.sym("s", 3), ca.SX.sym("p", len(stages.problem.parameters))
    costate, y = ca.SX.sym("costate", n), ca.SX.sym("y", nd)
    f, cost, c, d = stages.stage(x, u, z, s, p)
    lagrangian = cost + ca.dot(costate, stages.chart.local(after, f)) + ca.dot(y, d)
    slope = ca.gradient(lagrangian, p)
    if nz:
        nu = -ca.solve(ca.jacobian(c, z).T, ca.gradient(lagrangian, z))
        slope = slope + ca.jacobian(c, p).T @ nu
    return ca.Function("slope", [x, u, z, after, s, p, costate, y], [ca.densify(slope)])
