"""Transcriptions that keep loops closed and prescribed joints in place: each step is followed by a projection.

The accelerations are those that the reactions allow, (1) of `alembert.optimal.closure`, but a scheme integrates them
with an error, and loops would drift open. So the point q^, v^ at the end of its step is moved to the nearest one that
keeps what must hold (Hairer, Lubich and Wanner 2006, IV.4; distances are those of the kinetic energy):

    q_1 = q^ + M^-1 G' mu,    g(t + h, q_1) = 0                                                       (1)
    v_1 = v^ - M^-1 G_1' (G_1 M^-1 G_1')^-1 (G_1 v^ - w)                                                (2)

with M and G at q^ in (1) and at q_1 in (2). mu is of the size of the scheme's error, whose order stays as it is; it is
among the z of a stage, found with everything else. (2) is the projection (3) of `closure`, for speeds or momenta.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from alembert.optimal.closure import Closure
from alembert.optimal.plant import Mechanics, Plant
from alembert.optimal.problem import Problem
from alembert.optimal.transcription import Interval, Scheme, Stretch

Array = np.ndarray


@dataclass(frozen=True)
class Projected:
    """`base`, then (1) and (2)."""

    base: Scheme

    @property
    def name(self) -> str:
        return self.base.name

    @property
    def order(self) -> int:
        return self.base.order

    @property
    def points(self) -> int:
        return self.base.points

    @property
    def node_controls(self) -> bool:
        return self.base.node_controls

    @property
    def places(self) -> tuple[float, ...]:
        return self.base.places

    @property
    def closes(self) -> bool:
        return True

    def plant(self, problem: Problem) -> Plant:
        return self.base.plant(problem)

    def implicit(self, plant: Plant) -> tuple[str, ...]:
        return (*self.base.implicit(plant), *(f"{name}, closing" for name in _closure(plant).names))

    def interval(self, on: Stretch) -> Interval:
        plant, closure = on.plant, _closure(on.plant)
        assert isinstance(plant, Mechanics)
        count = len(closure.names)
        found = self.base.interval(replace(on, z=on.z[:-count]))
        nq, t, symbolic = plant.model.nq, on.t + on.h, plant.tree.symbolic
        given, p = plant._given(on.p), on.p
        q, rest = found.after[:nq], found.after[nq:]
        pull = symbolic.solve_mass_matrix(q, closure.jacobian(q, p).T @ on.z[-count:], **given)
        q1 = plant.chart.retract(found.after, ca.vertcat(pull, ca.SX.zeros(rest.numel())))[:nq]
        inverse = symbolic.inverse_mass_matrix(q1, **given)
        rest = (closure.allowed if plant.momenta else closure.allowed_speeds)(t, q1, rest, inverse, p)
        implicit = ca.vertcat(found.implicit, closure.residual(t, q1, p))
        return replace(found, after=ca.vertcat(q1, rest), implicit=implicit)

    def guess(self, plant: Plant, x: Array, after: Array) -> Array:
        found = self.base.guess(plant, x, after)
        return np.concatenate([found, np.zeros((len(x), len(_closure(plant).names)))], axis=1)


def _closure(plant: Plant) -> Closure:
    assert isinstance(plant, Mechanics)
    assert plant.closure is not None
    return plant.closure
