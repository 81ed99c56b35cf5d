"""DMOC: discrete mechanics and optimal control (Leyendecker, Ober-Bloebaum, Marsden and Ortiz 2009).

The equations of motion are those of the discrete Lagrange-d'Alembert principle in the joints' own coordinates
(there (13), with the joints as nodal reparametrisation (11) and null space matrix):
`alembert.simulate.variational`. A stage has the point (q, p), and z is the displacement e over it:

    c = p^-(q, e, u) - p,    q_{k+1} = integrate(q, e),    p_{k+1} = p^+(q, e, u)                 (1)

with the forced discrete Legendre transforms (16) of the paper, controls constant over the stage with half of their
impulse at either node (12), and the running cost at the middle (20). Momentum maps change by exactly the applied impulses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from alembert.errors import UnsupportedError
from alembert.optimal.plant import Mechanics, Momenta, Plant
from alembert.optimal.problem import Problem
from alembert.optimal.stages import Interval
from alembert.simulate.stepping import Plant as Simulated
from alembert.simulate.variational import DiscreteMechanics

Array = np.ndarray


@dataclass(frozen=True)
class Dmoc:
    name: str = "dmoc"
    order: int = 2
    points: int = 1
    node_controls: bool = False
    places: tuple[float, ...] = (0.5,)

    def plant(self, problem: Problem) -> Plant:
        if problem.model is None:
            raise UnsupportedError(
                "solve: transcription 'dmoc' is for models of bodies and joints; for a System choose 'midpoint', "
                "'hermite-simpson' or 'radau'"
            )
        return Momenta(problem.model, problem.plant.driven)  # type: ignore[union-attr]

    def implicit(self, plant: Plant) -> tuple[str, ...]:
        return tuple(f"step of {name}" for name in plant.model.speed_names)  # type: ignore[attr-defined]

    def interval(
        self,
        problem: Problem,
        plant: Plant,
        span: tuple[ca.SX, ca.SX, Any],
        x: ca.SX,
        u: list[ca.SX],
        z: ca.SX,
        p: ca.SX,
    ) -> Interval:
        assert isinstance(plant, Momenta)
        (t, h, T), model = span, plant.model
        q, momentum = x[: model.nq], x[model.nq :]
        mechanics = DiscreteMechanics(Simulated(model), p, None)
        l_q, l_e = mechanics.derivatives(q, z, h)
        force = mechanics.effort(t, q, z, h, plant.effort(u[0]))
        before = mechanics.manifold.chart_rate_transposed(-z, l_e) - l_q - h / 2 * force
        after = mechanics.manifold.chart_rate_transposed(z, l_e) + h / 2 * force
        middle = ca.vertcat(mechanics.manifold.integrate(q, z / 2), z / h)
        moment = Mechanics.moment(
            plant, t + h / 2, middle, u[0], p, duration=T, _controls=problem.plant.controls
        )
        end = ca.vertcat(mechanics.manifold.integrate(q, z), after)
        return Interval(end, h * problem.cost.rate(moment), (before - momentum), ((moment, u[0]),))

    def guess(self, plant: Plant, x: Array, after: Array) -> Array:
        chart = plant.chart
        return chart.difference(x, after)[:, : chart.nv]
