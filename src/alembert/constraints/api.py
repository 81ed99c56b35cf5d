"""The algorithms of models with loops and couplings, as their methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.constraints import assembly, derivatives, dynamics, prescribed, reduced
from alembert.constraints import rows as all_rows
from alembert.constraints import states as batches
from alembert.constraints.coordinates import Coordinates, names_of
from alembert.constraints.tolerances import CLOSED, RANK

if TYPE_CHECKING:
    from alembert.constraints.reduced import Reduction, RowDerivatives, Tangent
    from alembert.constraints.results import (
        ConstrainedDerivatives,
        ConstrainedEfforts,
        ConstrainedInverseDerivatives,
        ConstrainedResult,
        ConstraintAnalysis,
        ControlForces,
        ImpulseResult,
        IndependentCoordinates,
        State,
    )
    from alembert.constraints.rows import ConstraintRows
    from alembert.constraints.states import RowTerms, States
    from alembert.model import Model

Array = np.ndarray
Parameters = Mapping[str, Any] | None
Active = Sequence[str] | None


class Constraints:
    """Mixed into `Compute`. `active` names the loops and couplings that hold, by default all.

    Choosing others compiles nothing; the sweeps are those of the tree, whatever holds.
    """

    model: Model

    def constrained_dynamics(
        self,
        q: Any,
        v: Any,
        tau: Any,
        *,
        active: Active = None,
        wrenches: Mapping[str, Any] | None = None,
        parameters: Parameters = None,
        closure_tolerance: float = CLOSED,
    ) -> ConstrainedResult:
        system = self.constraint_rows.system("constrained_dynamics", active)
        return dynamics.forward(
            system, "constrained_dynamics", q, v, tau, wrenches, parameters, closure_tolerance, reactions=True
        )

    def constrained_dynamics_derivatives(
        self,
        q: Any,
        v: Any,
        tau: Any,
        *,
        active: Active = None,
        wrenches: Mapping[str, Any] | None = None,
        parameters: Parameters = None,
        sensitive_to: Sequence[str] = (),
        closure_tolerance: float = CLOSED,
    ) -> ConstrainedDerivatives:
        name = "constrained_dynamics_derivatives"
        system = self.constraint_rows.system(name, active)
        return derivatives.forward(
            system, name, q, v, tau, wrenches, parameters, closure_tolerance, sensitive_to
        )

    def constrained_inverse_dynamics_derivatives(
        self,
        q: Any,
        v: Any,
        a: Any,
        *,
        actuated: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
        active: Active = None,
        wrenches: Mapping[str, Any] | None = None,
        parameters: Parameters = None,
        sensitive_to: Sequence[str] = (),
        closure_tolerance: float = CLOSED,
    ) -> ConstrainedInverseDerivatives:
        name = "constrained_inverse_dynamics_derivatives"
        system = self.constraint_rows.system(name, active)
        return derivatives.inverse(
            system,
            name,
            q,
            v,
            a,
            actuated,
            weights,
            wrenches,
            parameters,
            closure_tolerance,
            sensitive_to,
        )

    def constrained_inverse_dynamics(
        self,
        q: Any,
        v: Any,
        a: Any,
        *,
        actuated: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
        active: Active = None,
        wrenches: Mapping[str, Any] | None = None,
        parameters: Parameters = None,
        closure_tolerance: float = CLOSED,
    ) -> ConstrainedEfforts:
        name = "constrained_inverse_dynamics"
        system = self.constraint_rows.system(name, active)
        return dynamics.inverse(
            system, name, q, v, a, actuated, weights, wrenches, parameters, closure_tolerance
        )

    def constraint_power(
        self, q: Any, v: Any, reactions: Mapping[str, Any], *, parameters: Parameters = None
    ) -> dict[str, Array]:
        name = "constraint_power"
        system = self.constraint_rows.system(name, list(reactions))
        return dynamics.power(system, name, q, v, reactions, parameters)

    def control_forces(
        self,
        q: Any,
        v: Any,
        tau: Any = None,
        *,
        motions: Mapping[str, Any],
        actuators: Any = None,
        method: str = "augmented",
        active: Active = None,
        wrenches: Mapping[str, Any] | None = None,
        parameters: Parameters = None,
    ) -> ControlForces:
        system = self.constraint_rows.system("control_forces", active)
        given = np.zeros(self.model.nv) if tau is None else tau
        return prescribed.control_forces(
            system, "control_forces", q, v, given, motions, actuators, method, wrenches, parameters
        )

    def impulse(
        self,
        q: Any,
        v: Any,
        *,
        held: Sequence[str] = (),
        active: Active = None,
        parameters: Parameters = None,
        closure_tolerance: float = CLOSED,
    ) -> ImpulseResult:
        system = self.constraint_rows.system("impulse", active)
        return dynamics.impulse(system, "impulse", q, v, held, parameters, closure_tolerance)

    # --- rank and independent speeds --------------------------------------------------------------------------

    def constraint_analysis(
        self,
        q: Any,
        *,
        active: Active = None,
        parameters: Parameters = None,
        tolerance: float = RANK,
    ) -> ConstraintAnalysis:
        system = self.constraint_rows.system("constraint_analysis", active)
        return dynamics.analysis(system, "constraint_analysis", q, parameters, tolerance)

    def independent_coordinates(
        self,
        q: Any,
        v: Any = None,
        *,
        independent: Sequence[str] | None = None,
        active: Active = None,
        parameters: Parameters = None,
    ) -> IndependentCoordinates:
        name = "independent_coordinates"
        system = self.constraint_rows.system(name, active)
        s = batches.states(self.model, name, q, {} if v is None else {"v": v}, parameters)
        return reduced.reduction(system, name, s, independent).coordinates

    def reduced_mass_matrix(
        self,
        q: Any,
        *,
        independent: Sequence[str] | None = None,
        active: Active = None,
        parameters: Parameters = None,
    ) -> Array:
        name = "reduced_mass_matrix"
        system = self.constraint_rows.system(name, active)
        s = batches.states(self.model, name, q, {}, parameters)
        return reduced.reduction(system, name, s, independent).mass_matrix()

    def constraint_residual(self, q: Any, *, active: Active = None, parameters: Parameters = None) -> Array:
        s, t = self.constraint_terms("constraint_residual", q, {}, active, parameters)
        return t.residual.reshape(*s.shape, t.residual.shape[-1])

    def constraint_jacobian(self, q: Any, *, active: Active = None, parameters: Parameters = None) -> Array:
        s, t = self.constraint_terms("constraint_jacobian", q, {}, active, parameters)
        return t.jacobian.reshape(*s.shape, *t.jacobian.shape[-2:])

    def constraint_bias(
        self, q: Any, v: Any, *, active: Active = None, parameters: Parameters = None
    ) -> Array:
        s, t = self.constraint_terms("constraint_bias", q, {"v": v}, active, parameters)
        return t.bias.reshape(*s.shape, t.bias.shape[-1])

    # --- assembly ---------------------------------------------------------------------------------------------

    def assemble(
        self,
        q: Any,
        v: Any = None,
        *,
        fixed: Sequence[str] = (),
        weights: Mapping[str, float] | None = None,
        active: Active = None,
        parameters: Parameters = None,
    ) -> State:
        system = self.constraint_rows.system("assemble", active)
        return assembly.assemble(system, "assemble", q, v, fixed, weights, parameters)

    def project(
        self, q: Any, v: Any = None, *, active: Active = None, parameters: Parameters = None
    ) -> State:
        system = self.constraint_rows.system("project", active)
        return assembly.project(system, "project", q, v, parameters)

    # --- inside -----------------------------------------------------------------------------------------------

    @cached_property
    def constraint_rows(self) -> ConstraintRows:
        return all_rows.ConstraintRows(self.model)

    def reduction(
        self,
        function: str,
        coordinates: Coordinates,
        q: Any,
        parameters: Parameters,
        v: Any = None,
        wrenches: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Reduction:
        """The independent speeds of `coordinates` ("independent": a choice) at closed states."""
        names = names_of(function, coordinates)
        system = self.constraint_rows.system(function, None)
        forces = self.model.compute.wrench_array(function, wrenches, parameters) if wrenches else None
        vectors = {} if v is None else {"v": v, **more}
        s = batches.states(self.model, function, q, vectors, parameters, forces)
        return reduced.reduction(system, function, s, names, argument="coordinates", closed=CLOSED)

    def constraint_terms(
        self,
        function: str,
        q: Any,
        vectors: Mapping[str, Any],
        active: Active,
        parameters: Parameters,
    ) -> tuple[States, RowTerms]:
        system = self.constraint_rows.system(function, active)
        s = batches.states(self.model, function, q, vectors, parameters)
        return s, system.terms(s, *s.vectors)

    def constrained_hybrid(
        self,
        q: Any,
        v: Any,
        tau: Array,
        a_given: Array,
        mask: Array,
        wrenches: Any,
        parameters: Parameters,
        *,
        function: str = "hybrid_dynamics",
        active: Active = None,
        closed: float = CLOSED,
    ) -> tuple[Array, Array]:
        system = self.constraint_rows.system(function, active)
        return prescribed.hybrid(system, function, q, v, tau, a_given, mask, wrenches, parameters, closed)

    def constraint_projection_holding(
        self, q: Array, v: Array, held: Array, active: Active, parameters: Parameters
    ) -> tuple[Array, Array]:
        """Back onto the surface, with the coordinates and speeds of some degrees of freedom as they are."""
        system = self.constraint_rows.system("simulate", active)
        return assembly.project_held(system, "simulate", q, v, held, parameters)

    def constraint_corrections(
        self, q: Array, v: Array, active: Active, parameters: Parameters
    ) -> tuple[Array, Array]:
        """x and y in the metric of the mass matrix with G x = -phi, G y = -G v."""
        system = self.constraint_rows.system("simulate", active)
        return assembly.corrections(system, "simulate", q, v, parameters)

    def constraint_slopes(
        self, function: str, q: Array, v: Array, f: Array, parameters: Parameters
    ) -> RowDerivatives:
        system = self.constraint_rows.system(function, None)
        return reduced.row_derivatives(
            system, batches.states(self.model, function, q, {"v": v}, parameters), f
        )

    def constraint_tangents(
        self,
        function: str,
        q: Array,
        v: Array,
        parameters: Parameters,
        sensitive: Sequence[int] = (),
    ) -> list[Tangent]:
        """At a batch of states, all in the independent degrees of freedom of the first."""
        system = self.constraint_rows.system(function, None)
        s = batches.states(self.model, function, q, {"v": v}, parameters)
        found: list[Tangent] = []
        for k in range(len(s)):
            chosen = (found[0].q_dofs.tolist(), found[0].v_dofs.tolist()) if found else None
            found.append(reduced.tangent(system, function, s.at(k), chosen, sensitive))
        return found

    def _constrained_inverse(
        self,
        q: Any,
        v: Any,
        a: Any,
        wrenches: Mapping[str, Any] | None,
        parameters: Parameters,
    ) -> Array:
        name = "inverse_dynamics"
        system = self.constraint_rows.system(name, None)
        return dynamics.inverse(
            system, name, q, v, a, None, None, wrenches, parameters, CLOSED, reactions=False
        ).efforts

    def _constrained_accelerations(
        self, q: Any, v: Any, tau: Any, wrenches: Mapping[str, Any] | None, parameters: Parameters
    ) -> Array:
        system = self.constraint_rows.system("forward_dynamics", None)
        return dynamics.forward(
            system, "forward_dynamics", q, v, tau, wrenches, parameters, CLOSED, reactions=False
        ).accelerations
