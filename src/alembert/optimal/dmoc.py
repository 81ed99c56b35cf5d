"""DMOC: discrete mechanics and optimal control (Leyendecker, Ober-Bloebaum, Marsden and Ortiz 2009).

The equations of motion are those of the discrete Lagrange-d'Alembert principle in the joints' own coordinates
(there (13), with the joints as nodal reparametrisation (11) and null space matrix):
`alembert.simulate.variational`. A stage has the point (q, p), and z is the displacement e over it:

    c = p^-(q, e, u) - p,    q_{k+1} = integrate(q, e),    p_{k+1} = p^+(q, e, u)                 (1)

with the forced discrete Legendre transforms (16) of the paper, controls constant over the stage with half of their
impulse at either node (12), and the running cost at the middle (20). Momentum maps change by exactly the applied impulses.
Loops and prescribed joints hold at every node, by impulses there: `alembert.optimal.closure`.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from alembert.errors import UnsupportedError
from alembert.optimal.plant import Mechanics, Momenta, Plant
from alembert.optimal.problem import Problem
from alembert.optimal.transcription import Interval, Stretch
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
    closes: bool = True

    def plant(self, problem: Problem) -> Plant:
        if problem.model is None:
            raise UnsupportedError(
                "solve: transcription 'dmoc' is for models of bodies and joints; for a System choose 'midpoint', "
                "'hermite-simpson' or 'radau'"
            )
        return Momenta(problem.model, problem.plant.driven, problem.plant.closure)  # type: ignore[union-attr]

    def implicit(self, plant: Plant) -> tuple[str, ...]:
        assert isinstance(plant, Momenta)
        steps = tuple(f"step of {name}" for name in plant.model.speed_names)
        return steps if plant.closure is None else (*steps, *plant.closure.names)

    def interval(self, on: Stretch) -> Interval:
        problem, plant, t, h, x, u, z, p = on.problem, on.plant, on.t, on.h, on.x, on.u, on.z, on.p
        assert isinstance(plant, Momenta)
        model = plant.model
        q, momentum = x[: model.nq], x[model.nq :]
        e, manifold = z[: model.nv], self.mechanics(plant, p).manifold
        before, after, q1 = self.momenta(plant, t, q, e, h, plant.effort(u[0]), p)
        middle = ca.vertcat(manifold.integrate(q, e / 2), e / h)
        moment = Mechanics.moment(
            plant, t + h / 2, middle, u[0], p, duration=on.duration, _controls=problem.plant.controls
        )
        implicit = before - momentum
        if plant.closure is not None:  # (2) and (3) there
            G, t1 = plant.closure.jacobian(q, p), t + h
            implicit = ca.vertcat(implicit - G.T @ z[model.nv :], plant.closure.residual(t1, q1, p))
            inverse = plant.tree.symbolic.inverse_mass_matrix(q1, **plant._given(p))
            after = plant.closure.allowed(t1, q1, after, inverse, p)
        end = ca.vertcat(q1, after)
        return Interval(end, h * problem.cost.rate(moment), implicit, ((moment, u[0]),))

    @staticmethod
    def mechanics(plant: Momenta, p: ca.SX) -> DiscreteMechanics:
        return DiscreteMechanics(Simulated(plant.model), p, None)

    def momenta(
        self, plant: Momenta, t: ca.SX, q: ca.SX, e: ca.SX, h: ca.SX, effort: ca.SX, p: ca.SX
    ) -> tuple[ca.SX, ca.SX, ca.SX]:
        """p^-, p^+ and the configuration after the displacement e."""
        mechanics = self.mechanics(plant, p)
        l_q, l_e = mechanics.derivatives(q, e, h)
        force = mechanics.effort(t, q, e, h, effort)
        before = mechanics.manifold.chart_rate_transposed(-e, l_e) - l_q - h / 2 * force
        after = mechanics.manifold.chart_rate_transposed(e, l_e) + h / 2 * force
        return before, after, mechanics.manifold.integrate(q, e)

    def guess(self, plant: Plant, x: Array, after: Array) -> Array:
        assert isinstance(plant, Momenta)
        steps = plant.chart.difference(x, after)[:, : plant.chart.nv]
        impulses = np.zeros((len(x), len(plant.closure.names) if plant.closure is not None else 0))
        return np.concatenate([steps, impulses], axis=1)
