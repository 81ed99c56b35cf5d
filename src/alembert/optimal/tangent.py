"""The tangent vectors in which the Newton steps of `solver="sweep"` are taken.

Points (q, p) with momenta p = M(q) v are moved by changes of configuration and *speed*:

    (q, p) + (dq, dv) = (q', M(q') (v + dv)),    q' = q + dq,    v = M(q)^-1 p                       (1)

A step that is straight in the momenta would change the speeds by the change of M along dq, although the motion need not
become faster: its equations are far less linear, and the steps that a line search allows far shorter.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from alembert.optimal.plant import Momenta
from alembert.optimal.stages import Stages

Array = np.ndarray
LARGEST = 400
"""operations of M(q) v; beyond, its derivatives would cost more than (1) gains"""


class Tangent:
    """`retract` and `local` of a chart, with (1) where points have momenta; p are the parameters."""

    def __init__(self, stages: Stages) -> None:
        self.chart, plant = stages.chart, stages.plant
        self._momenta: ca.Function | None = None
        if isinstance(plant, Momenta) and plant.closure is None:
            model = plant.tree
            q, v, p = (
                ca.SX.sym("q", model.nq),
                ca.SX.sym("v", model.nv),
                ca.SX.sym("p", len(stages.problem.parameters)),
            )
            given = plant._given(p)
            momenta = ca.Function("momenta", [q, v, p], [model.symbolic.mass_matrix(q, **given) @ v])
            if momenta.n_instructions() <= LARGEST:
                self._momenta = momenta
                speeds = model.symbolic.solve_mass_matrix(q, v, **given)
                self._speeds = ca.Function("speeds", [q, v, p], [speeds])

    @property
    def is_plain(self) -> bool:
        return self._momenta is None

    @property
    def name(self) -> str:
        return "plain" if self.is_plain else "speeds"

    def retract(self, x: ca.SX, d: ca.SX, p: ca.SX) -> ca.SX:
        moved = self.chart.retract(x, d)
        if self._momenta is None:
            return moved
        nq, nv = self.chart.nq, self.chart.nv
        v = self._speeds(x[:nq], x[nq : nq + nv], p) + d[nv : 2 * nv]
        return ca.vertcat(moved[:nq], self._momenta(moved[:nq], v, p), moved[nq + nv :])

    def local(self, x: ca.SX, y: ca.SX, p: ca.SX) -> ca.SX:
        d = self.chart.local(x, y)
        if self._momenta is None:
            return d
        nq, nv = self.chart.nq, self.chart.nv
        before, after = (self._speeds(point[:nq], point[nq : nq + nv], p) for point in (x, y))
        return ca.vertcat(d[:nv], after - before, d[2 * nv :])

    def to_chart(self, x: Array, parameters: Array) -> Array:
        """(..., n, n): these tangent vectors in the chart's coordinates."""
        n = self.chart.tangent
        symbol, d, p = ca.SX.sym("x", self.chart.point), ca.SX.sym("d", n), ca.SX.sym("p", len(parameters))
        moved = self.chart.local(symbol, self.retract(symbol, d, p))
        slope = ca.Function("slope", [symbol, d, p], [ca.densify(ca.jacobian(moved, d))])
        found = slope.map(len(x))(x.T, np.zeros((n, len(x))), np.tile(parameters[:, None], (1, len(x))))
        return np.swapaxes(found.full().T.reshape(len(x), n, n), 1, 2)
