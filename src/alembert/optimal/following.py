"""A controller that follows a solution, with the feedback of the last sweep."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from alembert.optimal.plant import Momenta

if TYPE_CHECKING:
    from alembert.optimal.solution import Solution

Array = np.ndarray


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

    return control


def _gains_on_speeds(solution: Solution, gains: Array) -> Array:
    """Gains on (q, p) as gains on (q, v), by dp = M dv + (dM/dq v) dq."""
    model = solution._model("controller")
    nv = model.nv
    q, v = solution.q[:-1], solution.v[:-1]
    tree = solution._tree
    M = tree.mass_matrix(q, **solution._given)
    step = 1e-6
    columns = []
    for k in range(nv):
        d = np.zeros(nv)
        d[k] = step
        plus = tree.mass_matrix(model.integrate(q, np.tile(d, (len(q), 1))), **solution._given)
        minus = tree.mass_matrix(model.integrate(q, np.tile(-d, (len(q), 1))), **solution._given)
        columns.append(np.einsum("kij,kj->ki", plus - minus, v) / (2 * step))
    along = np.stack(columns, axis=-1)
    Kq, Kp = gains[:, :, :nv], gains[:, :, nv:]
    return np.concatenate([Kq + np.matmul(Kp, along), np.matmul(Kp, M)], axis=2)
