"""Near a solution: how the optimal cost changes with parameters, and the controls with the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from alembert.optimal.plant import Momenta
from alembert.optimal.stages import Stages

if TYPE_CHECKING:
    from alembert.optimal.solution import Solution

Array = np.ndarray


def sensitivities(solution: Solution) -> dict[str, float]:
    """How the optimal cost changes with each parameter: the slope of the Lagrangian."""
    names = [name for name, _ in solution.problem.plant.parameters]
    if not names:
        return {}
    stages, it = solution.stages, solution._outcome.iterate
    slope = _parameter_slope(stages)
    given = (it.x[:-1].T, it.u.T, it.z.T, it.x[1:].T, stages.numbers.T, stages.parameters)
    total = slope.map(solution.steps)(
        *given[:5],
        np.tile(given[5][:, None], (1, solution.steps)),
        it.costates[1:].T,
        it.path.y.T,
    )
    found = total.full().reshape(len(stages.parameters), -1).sum(axis=1)
    x, s, p = ca.SX.sym("x", stages.chart.point), ca.SX.sym("s", 3), ca.SX.sym("p", len(stages.parameters))
    cost, equations, bounded = stages.end(x, s, p)
    end = cost + ca.dot(it.eta, equations) + ca.dot(it.last.y, bounded)
    start = ca.dot(it.sigma, stages.start(x, s, p))
    for expression, point in ((end, it.x[-1]), (start, it.x[0])):
        f = ca.Function("f", [x, s, p], [ca.gradient(expression, p)])
        found += f(point, stages.numbers[-1], stages.parameters).full()[:, 0]
    return dict(zip(names, map(float, found), strict=False))


def _parameter_slope(stages: Stages) -> ca.Function:
    """The slope of a stage's Lagrangian along the parameters, with the multipliers of c from (2) of `evaluation`."""
    n, m, nz, nd = stages.sizes
    point = stages.chart.point
    x, u, z = ca.SX.sym("x", point), ca.SX.sym("u", m), ca.SX.sym("z", nz)
    after, s, p = ca.SX.sym("after", point), ca.SX.sym("s", 3), ca.SX.sym("p", len(stages.parameters))
    costate, y = ca.SX.sym("costate", n), ca.SX.sym("y", nd)
    f, cost, c, d = stages.stage(x, u, z, s, p)
    lagrangian = cost + ca.dot(costate, stages.chart.local(after, f)) + ca.dot(y, d)
    slope = ca.gradient(lagrangian, p)
    if nz:
        nu = -ca.solve(ca.jacobian(c, z).T, ca.gradient(lagrangian, z))
        slope = slope + ca.jacobian(c, p).T @ nu
    return ca.Function("slope", [x, u, z, after, s, p, costate, y], [ca.densify(slope)])


def controller(solution: Solution) -> Callable[[float, Array, Array], Array]:
    """Controls with the feedback of the last sweep, for `al.simulate(model, ..., controller=...)`."""
    model = solution._model("controller")
    gains, x = solution.gains, solution.x
    chart = solution.problem.plant.chart
    driven = list(solution.stages.plant.driven)  # type: ignore[attr-defined]
    if isinstance(solution.stages.plant, Momenta):
        gains = _gains_on_speeds(solution, gains)

    def control(t: float, q: Array, v: Array) -> Array:
        k, share = solution._interval(t)
        step = chart.difference(x[k], x[k + 1])
        wanted = chart.move(x[k], share * step)
        error = chart.difference(wanted, np.concatenate([q, v]))
        tau = np.zeros(model.nv)
        tau[driven] = solution.control_at(t) - gains[k] @ error
        return tau

    control.breaks = solution.time  # type: ignore[attr-defined]  # gains jump there, and controls may
    return control


def _gains_on_speeds(solution: Solution, gains: Array) -> Array:
    """Gains on (q, p) as gains on (q, v), by dp = M dv + (dM/dq v) dq."""
    model = solution._model("controller")
    nv = model.nv
    q, v = solution.q[:-1], solution.v[:-1]
    tree = solution._tree
    M = tree.mass_matrix(q, parameters=solution.problem.parameter_values)
    step = 1e-6
    columns = []
    for k in range(nv):
        d = np.zeros(nv)
        d[k] = step
        plus = tree.mass_matrix(
            model.integrate(q, np.tile(d, (len(q), 1))), parameters=solution.problem.parameter_values
        )
        minus = tree.mass_matrix(
            model.integrate(q, np.tile(-d, (len(q), 1))), parameters=solution.problem.parameter_values
        )
        columns.append(np.einsum("kij,kj->ki", plus - minus, v) / (2 * step))
    along = np.stack(columns, axis=-1)
    Kq, Kp = gains[:, :, :nv], gains[:, :, nv:]
    return np.concatenate([Kq + np.matmul(Kp, along), np.matmul(Kp, M)], axis=2)
