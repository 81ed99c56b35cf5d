"""Where functions of a problem are not finite: the first of them by name, and the interval.

What the user wrote comes first (costs, path, conditions): where it is not finite, solvers also lose the motion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

if TYPE_CHECKING:
    from alembert.optimal.stages import Stages

Array = np.ndarray


def locate(stages: Stages, x: Array, u: Array, z: Array) -> str:
    """A sentence, or "" where values and slopes are finite."""
    N, p, chart = stages.count, stages.problem.parameters, stages.chart
    n, m, nz, _ = stages.sizes
    point, d = ca.SX.sym("x", chart.point), ca.SX.sym("d", n)
    us, zs, s = ca.SX.sym("u", m), ca.SX.sym("z", nz), ca.SX.sym("s", 3)
    after, cost, c, rows = stages.stage(chart.retract(point, d), us, zs, s, p)
    named = [
        *[("the running cost", cost)],
        *((f"'{name}'", rows[k]) for k, name in enumerate(stages.path_names)),
        *((f"the motion of {name}", after[k]) for k, name in enumerate(_coordinates(stages))),
        *((f"{name}", c[k]) for k, name in enumerate(stages.z_names)),
    ]
    values = ca.vertcat(*(value for _, value in named))
    slopes = ca.jacobian(values, ca.vertcat(d, us, zs))
    f = ca.Function("stage", [point, d, us, zs, s], [values, ca.densify(slopes)]).map(N)
    found = f(x[:-1].T, np.zeros((n, N)), u.T, z.T, stages.numbers.T)
    last, conditions, bounded = stages.end(chart.retract(point, d), s, p)
    ends = [
        *[("the terminal cost", last)],
        *((f"'{name}' at the end", conditions[k]) for k, name in enumerate(stages.end_names)),
        *((f"'{name}' at the end", bounded[k]) for k, name in enumerate(stages.end_bounded)),
    ]
    values = ca.vertcat(*(value for _, value in ends))
    g = ca.Function("end", [point, d, s], [values, ca.densify(ca.jacobian(values, d))])
    final = g(x[-1], np.zeros(n), stages.numbers[-1])
    nodes = stages.nodes * stages.span(x)
    for order, what in ((0, ""), (1, "the slope of ")):
        along = found[order].full().T.reshape(N, -1, len(named))
        bad = ~np.isfinite(along).all(axis=1)
        if bad.any():
            row = int(np.argmax(bad.any(axis=0)))
            k = int(np.argmax(bad[:, row]))
            return f"{what}{named[row][0]} is not finite between t = {nodes[k]:.4g} and {nodes[k + 1]:.4g} s"
        bad = ~np.isfinite(final[order].full()).all(axis=1)
        if bad.any():
            return f"{what}{ends[int(np.argmax(bad))][0]} is not finite"
    return ""


def _coordinates(stages: Stages) -> list[str]:
    """Names of the entries of a point: those of the tangent do for plain coordinates."""
    model = stages.chart.model
    if model is None:
        return list(stages.x_names)
    return [*(f"q {name}" for name in model.coordinate_names), *stages.x_names[model.nv :]]
