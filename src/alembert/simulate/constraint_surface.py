"""The surface on which a simulated system moves: the states that keep the loops, couplings and equations that hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.constraints import rank
from alembert.constraints.tolerances import CLOSED
from alembert.errors import NumericalError

if TYPE_CHECKING:
    from alembert.simulate.simulation import Simulation

Array = np.ndarray


class ConstraintSurface:
    """Which constraints hold, and what is prescribed besides, is asked of the system each time."""

    def __init__(self, system: Simulation) -> None:
        self.system = system

    def _terms(self, q: Array, v: Array, active: Any, parameters: Any) -> tuple[Any, Any, Any]:
        """The state as it was read, the terms of the rows there, and the system of those that are active."""
        compute = self.system.model.constrained_compute
        s, terms = compute.constraint_terms("simulate", q, {"v": v}, active, parameters)
        return s, terms, compute.rows.system("simulate", active)

    def distance(self, q: Array) -> float:
        """The largest residual of loops and couplings [m, rad]."""
        if not self.system.active:
            return 0.0
        residual = self.system.model.constraint_residual(
            q, active=self.system.active, parameters=self.system.parameters
        )
        return float(np.max(np.abs(residual), initial=0.0))

    def chosen(self, q: Array, v: Array, *, unique: bool = False, along_time: bool = False) -> Array:
        """(..., rows): the rows of a minimal set of constraints at each state, 1, and 0 for the others.

        With `unique`, refuse sets that leave out rows which do not vanish: forces are a choice then. `along_time`: states
        are (*batch, N, n), and parameters vary over the batch alone.
        """
        active, parameters = self.system.active if unique else None, self.system.parameters
        if along_time and parameters:
            parameters = {name: np.asarray(x, dtype=float)[..., None] for name, x in parameters.items()}
        s, terms, constraints = self._terms(q, v, active, parameters)
        moving = terms.jacobian * ~self.system.prescribed  # drives hold the others
        found, _ = rank.choose_each(moving, constraints.groups, constraints.tolerances(terms))
        if unique:
            # of the whole rows: what drives hold already has no force of its own either
            length = np.linalg.norm(terms.jacobian, axis=-1) / rank.scales(terms.jacobian, constraints.groups)
            left = np.where(found, 0.0, length)
            if np.max(left, initial=0.0) > rank.RANK:
                row = int(np.argmax(np.max(left, axis=0)))
                raise NumericalError(
                    f"simulate: forces read reactions, but the constraints are redundant ({constraints.owner_name(row)} "
                    "follows from others, or from prescribed motion), so that reactions are not unique; take a loop out, or "
                    "close it by a pair with fewer rows (PointOnLine, Distance, Spherical)"
                )
        rows = constraints.over_all(found.astype(float))
        return rows.reshape(*s.shape, rows.shape[-1])

    def check_closed(self, q: Array, v: Array) -> float:
        """Refuse to start where loops of the model are open, or speeds open them; how far off, relative to their size."""
        s, terms, constraints = self._terms(q, v, self.system.active, self.system.parameters)
        constraints.check_closed(s, terms, s.vectors[0], CLOSED)
        return float(np.max(terms.slack, initial=0.0))

    def choose(self, q: Array, v: Array) -> rank.Choice | None:
        """Have a minimal set of constraints that depends on this state alone, not on those that came before."""
        if not (self.system.active and self.system.model.is_constrained):
            return None
        _, terms, constraints = self._terms(q, v, self.system.active, self.system.parameters)
        constraints.kept = constraints.chosen(terms, 0)
        return constraints.kept

    def project(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Back onto the surface, where there is one."""
        system = self.system
        if not (system.constrained and system.active) or system.stabilisation.method != "projection":
            return q, v
        return self.nearest(q, v)

    def nearest(self, q: Array, v: Array) -> tuple[Array, Array]:
        """The state nearest to one that has drifted; prescribed coordinates and speeds stay."""
        system = self.system
        if system.prescribes:
            return system.model.constrained_compute.constraint_projection_holding(
                q, v, np.flatnonzero(system.prescribed), system.active, system.parameters
            )
        state = system.model.project(q, v, active=system.active, parameters=system.parameters)
        return state.q, state.v
