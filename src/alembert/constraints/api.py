"""The algorithms of models with loops and couplings, as their methods."""
# mypy: disable-error-code="misc"
# (`self: Model`: the class is only ever mixed into Model)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.constraints.coordinates import Coordinates, names_of
from alembert.constraints.tolerances import CLOSED, RANK
from alembert.deferred import deferred

if TYPE_CHECKING:
    from alembert.constraints import (
        assembly,
        derivatives,
        dynamics,
        holding,
        inverse_derivatives,
        prescribed,
        reduced,
    )
    from alembert.constraints import power as powers
    from alembert.constraints import rows as all_rows
    from alembert.constraints import states as batches
    from alembert.constraints import tangent as tangents
    from alembert.constraints.reduced import Reduction
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
    from alembert.constraints.states import States, Terms
    from alembert.constraints.tangent import Slopes, Tangent
    from alembert.model import Model
else:
    assembly = deferred("alembert.constraints.assembly")
    derivatives = deferred("alembert.constraints.derivatives")
    dynamics = deferred("alembert.constraints.dynamics")
    holding = deferred("alembert.constraints.holding")
    inverse_derivatives = deferred("alembert.constraints.inverse_derivatives")
    powers = deferred("alembert.constraints.power")
    prescribed = deferred("alembert.constraints.prescribed")
    reduced = deferred("alembert.constraints.reduced")
    all_rows = deferred("alembert.constraints.rows")
    batches = deferred("alembert.constraints.states")
    tangents = deferred("alembert.constraints.tangent")

Array = np.ndarray
Parameters = Mapping[str, Any] | None
Active = Sequence[str] | None


class Constraints:
    """Mixed into `Model`. `active` names the loops and couplings that hold, by default all.

    Choosing others compiles nothing; the sweeps are those of the tree, whatever holds.
    """

    def constrained_dynamics(
        self: Model,
        q: Any,
        v: Any,
        tau: Any,
        *,
        active: Active = None,
        wrenches: Mapping[str, Any] | None = None,
        parameters: Parameters = None,
        closure_tolerance: float = CLOSED,
    ) -> ConstrainedResult:
        """The accelerations that the efforts `tau` cause, and the reactions of loops and couplings.

        Redundant rows are left out, by rank; their reactions are the smallest that do. A state whose residuals, relative
        to the size of a loop, exceed `closure_tolerance` is refused.
        """
        system = self._constraint_rows.system("constrained_dynamics", active)
        return dynamics.forward(
            system, "constrained_dynamics", q, v, tau, wrenches, parameters, closure_tolerance, reactions=True
        )

    def constrained_dynamics_derivatives(
        self: Model,
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
        """The accelerations and their derivatives; those with respect to q and v hold for any change of the state.

        Along the constraint surface they are the derivatives of the motion: with v = E v_i, d.dq @ E. Off the surface
        redundant rows are left out as they are at the state itself. Derivatives with respect to the parameters named in
        `sensitive_to` are at fixed q, v and tau.
        """
        name = "constrained_dynamics_derivatives"
        system = self._constraint_rows.system(name, active)
        return derivatives.forward(
            system, name, q, v, tau, wrenches, parameters, closure_tolerance, sensitive_to
        )

    def constrained_inverse_dynamics_derivatives(
        self: Model,
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
        """The efforts of `constrained_inverse_dynamics` and their derivatives with respect to q (tangent), v, a, parameters.

        The actuated set must drive every degree of freedom that the constraints leave; where it does so in several
        ways the efforts are the smallest by weight, and so are the derivatives of these.
        """
        name = "constrained_inverse_dynamics_derivatives"
        system = self._constraint_rows.system(name, active)
        return inverse_derivatives.inverse(
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
        self: Model,
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
        """The efforts of the `actuated` joints (or degrees of freedom) that give the accelerations `a`.

        By default the model's actuators, or all joints, drive. Where they could do it in many ways the efforts
        have the least sum of squares, each times its weight; where they cannot, the error says what is missing.
        """
        name = "constrained_inverse_dynamics"
        system = self._constraint_rows.system(name, active)
        return dynamics.inverse(
            system, name, q, v, a, actuated, weights, wrenches, parameters, closure_tolerance
        )

    def constraint_power(
        self: Model, q: Any, v: Any, reactions: Mapping[str, Any], *, parameters: Parameters = None
    ) -> dict[str, Array]:
        """The power (...) that each reaction gives to the model: rounding, at speeds that keep the constraints.

        `reactions` are those of `constrained_dynamics` or `constrained_inverse_dynamics` at the same q and v: ideal
        constraints take no power, however large their forces.
        """
        return powers.power(self, "constraint_power", q, v, reactions, parameters)

    def control_forces(
        self: Model,
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
        """Motions that are prescribed, and the forces of chosen actuators that bring them about (Ider).

        `motions` maps constraints of the model to the second derivatives that their residuals are to have, and joints (or
        degrees of freedom) to accelerations. `actuators` are joints, degrees of freedom or actuators, one for each
        motion, or directions (rows, nv); left out, forces act along the motions themselves. All other constraints are
        kept by their reactions. `method` is "augmented" or "reduced" (see `constraints.prescribed`). Where the
        actuators cannot do it, the error says so.
        """
        system = self._constraint_rows.system("control_forces", active)
        given = np.zeros(self.nv) if tau is None else tau
        return prescribed.control_forces(
            system, "control_forces", q, v, given, motions, actuators, method, wrenches, parameters
        )

    def impulse(
        self: Model,
        q: Any,
        v: Any,
        *,
        held: Sequence[str] = (),
        active: Active = None,
        parameters: Parameters = None,
        closure_tolerance: float = CLOSED,
    ) -> ImpulseResult:
        """The jump of the speeds when the active constraints begin to hold at q, and their impulses.

        Momentum is conserved; kinetic energy is lost, as little as the constraints allow. Joints (or degrees of freedom)
        that are `held` keep their speeds: drives that make them follow a motion give the impulses for it.
        """
        system = self._constraint_rows.system("impulse", active)
        if len(held):
            dofs = dynamics.named_dofs(self, "impulse", held, "held")
            return holding.impulse(system, "impulse", q, v, dofs, parameters, closure_tolerance)
        return dynamics.impulse(system, "impulse", q, v, parameters, closure_tolerance)

    # --- rank and independent speeds --------------------------------------------------------------------------

    def constraint_analysis(
        self: Model, q: Any, *, active: Active = None, parameters: Parameters = None, tolerance: float = RANK
    ) -> ConstraintAnalysis:
        """Rank, degrees of freedom and redundant constraints at q; `tolerance` as in `constraints.rank`."""
        system = self._constraint_rows.system("constraint_analysis", active)
        return dynamics.analysis(system, "constraint_analysis", q, parameters, tolerance)

    def independent_coordinates(
        self: Model,
        q: Any,
        v: Any = None,
        *,
        independent: Sequence[str] | None = None,
        active: Active = None,
        parameters: Parameters = None,
    ) -> IndependentCoordinates:
        """Speeds that determine all others, v = E v_i: a well-conditioned choice, or the `independent` ones.

        Of a batch, the choice at its first state.
        """
        name = "independent_coordinates"
        system = self._constraint_rows.system(name, active)
        s = batches.states(self, name, q, {} if v is None else {"v": v}, parameters)
        return reduced.reduction(system, name, s, independent).coordinates

    def reduced_mass_matrix(
        self: Model,
        q: Any,
        *,
        independent: Sequence[str] | None = None,
        active: Active = None,
        parameters: Parameters = None,
    ) -> Array:
        """E^T M E, the mass matrix in independent speeds; `mass_matrix(q, coordinates=...)` of the active constraints."""
        name = "reduced_mass_matrix"
        system = self._constraint_rows.system(name, active)
        s = batches.states(self, name, q, {}, parameters)
        return reduced.reduction(system, name, s, independent).mass_matrix()

    def constraint_residual(
        self: Model, q: Any, *, active: Active = None, parameters: Parameters = None
    ) -> Array:
        """(..., m): zero where all loops are closed; rows of loops first, then of couplings, then of equations."""
        s, t = self._constraint_terms("constraint_residual", q, {}, active, parameters)
        return t.residual.reshape(*s.shape, t.residual.shape[-1])

    def constraint_jacobian(
        self: Model, q: Any, *, active: Active = None, parameters: Parameters = None
    ) -> Array:
        """G (..., m, nv): speeds are possible where G v = 0."""
        s, t = self._constraint_terms("constraint_jacobian", q, {}, active, parameters)
        return t.jacobian.reshape(*s.shape, *t.jacobian.shape[-2:])

    def constraint_bias(
        self: Model, q: Any, v: Any, *, active: Active = None, parameters: Parameters = None
    ) -> Array:
        """gamma (..., m) of d/dt (G v) = G v' + gamma."""
        s, t = self._constraint_terms("constraint_bias", q, {"v": v}, active, parameters)
        return t.bias.reshape(*s.shape, t.bias.shape[-1])

    # --- assembly ---------------------------------------------------------------------------------------------

    def assemble(
        self: Model,
        q: Any,
        v: Any = None,
        *,
        fixed: Sequence[str] = (),
        weights: Mapping[str, float] | None = None,
        active: Active = None,
        parameters: Parameters = None,
    ) -> State:
        """The configuration nearest to the guess q that closes all loops, and the nearest speeds that keep them so.

        `fixed` joints (or degrees of freedom) stay as they are; others move the less the greater their weight (1).
        """
        system = self._constraint_rows.system("assemble", active)
        return assembly.assemble(system, "assemble", q, v, fixed, weights, parameters)

    def project(
        self: Model, q: Any, v: Any = None, *, active: Active = None, parameters: Parameters = None
    ) -> State:
        """A state that has drifted a little, back on the constraint surface, the shortest way in the mass metric."""
        system = self._constraint_rows.system("project", active)
        return assembly.project(system, "project", q, v, parameters)

    # --- inside -----------------------------------------------------------------------------------------------

    @cached_property
    def is_constrained(self: Model) -> bool:
        """Whether the model has loops, couplings or equations."""
        return bool(self.loops or self.couplings or self.equations)

    @cached_property
    def _constraint_rows(self: Model) -> ConstraintRows:
        return all_rows.ConstraintRows(self)

    def _reduction(
        self: Model,
        function: str,
        coordinates: Coordinates,
        q: Any,
        parameters: Parameters,
        v: Any = None,
        forces: Array | None = None,
        **more: Any,
    ) -> tuple[Reduction, Array | None]:
        """The independent speeds of `coordinates` ("independent": a choice) at closed states; wrenches on the nodes."""
        names = names_of(function, coordinates)
        system = self._constraint_rows.system(function, None)
        vectors = {} if v is None else {"v": v, **more}
        s, forces = dynamics._with_wrenches(self, function, q, vectors, forces, parameters)
        found = reduced.reduction(system, function, s, names, argument="coordinates", closed=CLOSED)
        return found, forces

    def _constraint_terms(
        self: Model, function: str, q: Any, vectors: Mapping[str, Any], active: Active, parameters: Parameters
    ) -> tuple[States, Terms]:
        system = self._constraint_rows.system(function, active)
        s = batches.states(self, function, q, vectors, parameters)
        if not system.count:
            return s, dynamics._no_terms(s, self.nv)
        return s, system.terms(s, *s.vectors)

    def _constrained_hybrid(
        self: Model,
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
        system = self._constraint_rows.system(function, active)
        return prescribed.hybrid(system, function, q, v, tau, a_given, mask, wrenches, parameters, closed)

    def _constraint_projection_holding(
        self: Model, q: Array, v: Array, held: Array, active: Active, parameters: Parameters
    ) -> tuple[Array, Array]:
        """Back onto the surface, with the coordinates and speeds of some degrees of freedom as they are."""
        system = self._constraint_rows.system("simulate", active)
        return holding.project(system, "simulate", q, v, held, parameters)

    def _constraint_corrections(
        self: Model, q: Array, v: Array, active: Active, parameters: Parameters
    ) -> tuple[Array, Array]:
        """x and y in the metric of the mass matrix with G x = -phi, G y = -G v."""
        system = self._constraint_rows.system("simulate", active)
        return assembly.corrections(system, "simulate", q, v, parameters)

    def _constraint_slopes(
        self: Model, function: str, q: Array, v: Array, f: Array, parameters: Parameters
    ) -> Slopes:
        system = self._constraint_rows.system(function, None)
        return tangents.slopes(system, batches.states(self, function, q, {"v": v}, parameters), f)

    def _constraint_tangents(
        self: Model, function: str, q: Array, v: Array, parameters: Parameters, sensitive: Sequence[int] = ()
    ) -> list[Tangent]:
        """At a batch of states, all in the independent degrees of freedom of the first."""
        system = self._constraint_rows.system(function, None)
        s = batches.states(self, function, q, {"v": v}, parameters)
        found: list[Tangent] = []
        for k in range(len(s)):
            chosen = (found[0].q_dofs.tolist(), found[0].v_dofs.tolist()) if found else None
            found.append(tangents.tangent(system, function, s.at(k), chosen, sensitive))
        return found

    def _constrained_inverse(
        self: Model,
        q: Any,
        v: Any,
        a: Any,
        wrenches: Mapping[str, Any] | None,
        parameters: Parameters,
    ) -> Array:
        name = "inverse_dynamics"
        system = self._constraint_rows.system(name, None)
        return dynamics.inverse(
            system, name, q, v, a, None, None, wrenches, parameters, CLOSED, reactions=False
        ).efforts

    def _constrained_accelerations(
        self: Model, q: Any, v: Any, tau: Any, wrenches: Mapping[str, Any] | None, parameters: Parameters
    ) -> Array:
        system = self._constraint_rows.system("forward_dynamics", None)
        return dynamics.forward(
            system, "forward_dynamics", q, v, tau, wrenches, parameters, CLOSED, reactions=False
        ).accelerations
