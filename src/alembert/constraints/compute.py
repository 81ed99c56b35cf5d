"""What models with loops and couplings compute. `active` names those that hold, by default all.

Choosing others compiles nothing; the sweeps are those of the tree, whatever holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.constraints import assembly, derivatives, dynamics, prescribed, reduced
from alembert.constraints.coordinates import Coordinates, names_of
from alembert.constraints.reduced import Reduction, RowDerivatives, Tangent
from alembert.constraints.rows import ConstraintRows
from alembert.constraints.solver import ConstrainedCall, Parameters, Wrenches
from alembert.constraints.states import RowTerms, States
from alembert.constraints.tolerances import CLOSED

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray
Active = Sequence[str] | None


class ConstrainedAlgorithms:
    """Mixed into `Compute`. Arguments and results of the public methods are described with those of the model."""

    model: Model

    constrained_dynamics = dynamics.constrained_dynamics
    constrained_inverse_dynamics = dynamics.constrained_inverse_dynamics
    constrained_dynamics_derivatives = derivatives.constrained_dynamics_derivatives
    constrained_inverse_dynamics_derivatives = derivatives.constrained_inverse_dynamics_derivatives
    control_forces = prescribed.control_forces
    impulse = dynamics.impulse
    constraint_analysis = dynamics.constraint_analysis
    constraint_power = dynamics.constraint_power
    independent_coordinates = reduced.independent_coordinates
    reduced_mass_matrix = reduced.reduced_mass_matrix
    assemble = assembly.assemble
    project = assembly.project

    @cached_property
    def constraint_rows(self) -> ConstraintRows:
        return ConstraintRows(self.model)

    @cached_property
    def _calls(self) -> dict[str, ConstrainedCall]:
        return {}

    def call(
        self, function: str, active: Active, wrenches: Wrenches, parameters: Parameters
    ) -> ConstrainedCall:
        """What a function has in hand besides the state; that of plain calls is kept, for speed."""
        if active is None and wrenches is None and parameters is None:
            found = self._calls.get(function)
            if found is None:
                system = self.constraint_rows.system(function, None)
                found = self._calls.setdefault(function, ConstrainedCall(system, function, None, None))
            return found
        return ConstrainedCall(self.constraint_rows.system(function, active), function, wrenches, parameters)

    # --- the rows -------------------------------------------------------------------------------------------

    def constraint_residual(self, q: Any, *, active: Active = None, parameters: Parameters = None) -> Array:
        s, t = self.constraint_terms("constraint_residual", q, {}, active, parameters)
        return s.shaped(t.residual)

    def constraint_jacobian(self, q: Any, *, active: Active = None, parameters: Parameters = None) -> Array:
        s, t = self.constraint_terms("constraint_jacobian", q, {}, active, parameters)
        return s.shaped(t.jacobian)

    def constraint_bias(
        self, q: Any, v: Any, *, active: Active = None, parameters: Parameters = None
    ) -> Array:
        s, t = self.constraint_terms("constraint_bias", q, {"v": v}, active, parameters)
        return s.shaped(t.bias)

    def constraint_terms(
        self, function: str, q: Any, vectors: Mapping[str, Any], active: Active, parameters: Parameters
    ) -> tuple[States, RowTerms]:
        call = self.call(function, active, None, parameters)
        s = call.states(q, vectors)
        return s, call.system.terms(s, *s.vectors)

    def constraint_slopes(
        self, function: str, q: Array, v: Array, f: Array, parameters: Parameters
    ) -> RowDerivatives:
        call = self.call(function, None, None, parameters)
        return reduced.row_derivatives(call.system, call.states(q, {"v": v}), f)

    def constraint_tangents(
        self, function: str, q: Array, v: Array, parameters: Parameters, sensitive: Sequence[int] = ()
    ) -> list[Tangent]:
        """At a batch of states, all in the independent degrees of freedom of the first."""
        call = self.call(function, None, None, parameters)
        s = call.states(q, {"v": v})
        found: list[Tangent] = []
        for k in range(len(s)):
            chosen = (found[0].q_dofs.tolist(), found[0].v_dofs.tolist()) if found else None
            found.append(reduced.tangent(call.system, s.at(k), chosen, sensitive))
        return found

    # --- for the methods that all models have, and for simulation -----------------------------------------------

    def reduction(
        self,
        function: str,
        coordinates: Coordinates,
        q: Any,
        parameters: Parameters,
        v: Any = None,
        wrenches: Wrenches = None,
        **more: Any,
    ) -> Reduction:
        """The independent speeds of `coordinates` ("independent": a choice) at closed states."""
        names = names_of(function, coordinates)
        call = self.call(function, None, wrenches, parameters)
        s = call.states(q, {} if v is None else {"v": v, **more})
        return reduced.reduction(call.system, s, names, argument="coordinates", closed=CLOSED)

    def constrained_accelerations(
        self, q: Any, v: Any, tau: Any, wrenches: Wrenches, parameters: Parameters
    ) -> Array:
        call = self.call("forward_dynamics", None, wrenches, parameters)
        return dynamics.accelerations(call, q, v, tau).accelerations

    def constrained_efforts(
        self, q: Any, v: Any, a: Any, wrenches: Wrenches, parameters: Parameters
    ) -> Array:
        call = self.call("inverse_dynamics", None, wrenches, parameters)
        return dynamics.efforts(call, q, v, a).efforts

    def constrained_hybrid(
        self,
        q: Any,
        v: Any,
        tau: Array,
        a_given: Array,
        mask: Array,
        wrenches: Wrenches,
        parameters: Parameters,
        *,
        function: str = "hybrid_dynamics",
        active: Active = None,
        closed: float = CLOSED,
    ) -> tuple[Array, Array]:
        call = self.call(function, active, wrenches, parameters)
        return prescribed.hybrid(call, q, v, tau, a_given, mask, closed)

    def constraint_projection_holding(
        self, q: Array, v: Array, held: Array, active: Active, parameters: Parameters
    ) -> tuple[Array, Array]:
        """Back onto the surface, with the coordinates and speeds of some degrees of freedom as they are."""
        return assembly.project_held(self.call("simulate", active, None, parameters), q, v, held)

    def constraint_corrections(
        self, q: Array, v: Array, active: Active, parameters: Parameters
    ) -> tuple[Array, Array]:
        """x and y in the metric of the mass matrix with G x = -phi, G y = -G v."""
        return assembly.corrections(self.call("simulate", active, None, parameters), q, v)
