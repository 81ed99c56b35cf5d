"""What a model computes, as its methods: one line each, on the `Compute` that it makes on first use.

Arrays have leading batch dimensions everywhere: (nv,) or (..., nv). Speeds, efforts and derivatives live in tangent space
(nv wide). `wrenches` maps frame names to (..., 6) moments and forces that act on the body at the frame's origin, in the
frame's axes. `parameters` maps names to numbers or arrays over the batch; parameters not named keep their defaults.
`reference` is one of those of `alembert.algorithms.frames`.

Loops, couplings and equations hold in forward, inverse and hybrid dynamics. The *terms* of the equation of motion,

    M(q) a + h(q, v) = tau + G^T f                                                                          (1)
    (E^T M E) a_i + E^T (h + M E' v_i) = E^T tau,     v = E v_i,   G E = 0                                  (2)

are by default those of (1), in all speeds of the tree, where the reactions f of the constraints stand on the right; with
`coordinates="independent"` (or a list of joints or degrees of freedom that determine the others) those of (2), where
they have dropped out. States q and v are complete in both; `independent_coordinates` gives E. `active` names the
loops, couplings and equations that hold, by default all; choosing others compiles nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from alembert.arguments import into

if TYPE_CHECKING:
    from alembert.algorithms import Compute
    from alembert.algorithms.frames import Reference
    from alembert.algorithms.kernels import Lowering
    from alembert.algorithms.results import (
        ForwardDerivatives,
        HybridDerivatives,
        HybridResult,
        InverseDerivatives,
    )
    from alembert.constraints import ConstrainedCompute
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
    from alembert.constraints.symbolic import ConstrainedSymbolic
    from alembert.engine.kernel import Kernel
    from alembert.spatial import Pose

Array = np.ndarray
Wrenches = Mapping[str, Any]
Parameters = Mapping[str, Any] | None
Active = Sequence[str] | None
Coordinates = Literal["all", "independent"] | Sequence[str]
"""all speeds, a choice of independent ones, or the joints and degrees of freedom that determine the others"""
CLOSED = 1e-2
"""How far open, relative to its size, a loop may be for the dynamics (stages of an integrator leave the surface)."""
RANK = 1e-9
"""Of a row's independence: rounding of a Jacobian is some 1e-15, a misplaced digit in a file 1e-6 or more."""


def projected(coordinates: Coordinates) -> bool:
    """Whether the speeds in which an equation of motion is written are not simply all."""
    return not (isinstance(coordinates, str) and coordinates == "all")


class Methods:
    """The methods of `Model` that compute. Defaults stand here alone: what computes takes all arguments, in this order."""

    @property
    def compute(self) -> Compute:
        """What computes: kernels, the reading of arguments, and what is said where a result is not finite."""
        raise NotImplementedError

    @property
    def constrained_compute(self) -> ConstrainedCompute:
        """What computes under loops, couplings and equations, of which a model may have none."""
        raise NotImplementedError

    @property
    def symbolic(self) -> ConstrainedSymbolic:
        """The algorithms on CasADi expressions."""
        return self.constrained_compute.symbolic

    # --- equations of motion ---------------------------------------------------------------------------------

    def forward_dynamics(
        self,
        q: Any,
        v: Any,
        tau: Any,
        *,
        wrenches: Wrenches | None = None,
        parameters: Parameters = None,
        method: str = "sweep",
        out: Array | None = None,
    ) -> Array:
        """The accelerations that the efforts `tau` cause.

        `method` is "sweep" (articulated bodies, O(n)), "factorise" (Cholesky of the mass matrix, O(n^3)) or
        "conjugate_gradients" (matrix-free, O(n^2)); all give the same. Loops and couplings hold (by "factorise" in
        independent coordinates); `constrained_dynamics` also gives their reactions.
        """
        return self.compute.forward_dynamics(q, v, tau, wrenches, parameters, method, out)

    def inverse_dynamics(
        self,
        q: Any,
        v: Any,
        a: Any,
        *,
        wrenches: Wrenches | None = None,
        parameters: Parameters = None,
        out: Array | None = None,
    ) -> Array:
        """The efforts that the accelerations `a` take.

        Of a model with loops, couplings or equations, those of its actuators (of all joints, where it has none) that give
        accelerations which keep them, the smallest; `constrained_inverse_dynamics` takes other sets and gives reactions.
        """
        return self.compute.inverse_dynamics(q, v, a, wrenches, parameters, out)

    def hybrid_dynamics(
        self,
        q: Any,
        v: Any,
        *,
        accelerations: Mapping[str, Any] | None = None,
        torques: Mapping[str, Any] | None = None,
        wrenches: Wrenches | None = None,
        parameters: Parameters = None,
    ) -> HybridResult:
        """Some degrees of freedom follow given accelerations, the others given efforts; returns both for all.

        `accelerations` and `torques` map joints (a number, or one per degree of freedom) or single degrees of freedom
        (names as in `speed_names`) to values, (N,) or (N, 1) for N states; efforts not named are zero.
        """
        return self.compute.hybrid_dynamics(q, v, accelerations, torques, wrenches, parameters)

    def bias_forces(
        self,
        q: Any,
        v: Any,
        *,
        coordinates: Coordinates = "all",
        wrenches: Wrenches | None = None,
        parameters: Parameters = None,
    ) -> Array:
        """h, the efforts at zero acceleration: Coriolis, gravity, springs and friction (M a + h = tau).

        In independent coordinates E^T (h + M E' v_i), the efforts at zero acceleration of these.
        """
        if projected(coordinates):
            found = self.constrained_compute.reduction("bias_forces", coordinates, q, parameters, v, wrenches)
            return found.forces("bias_forces")
        return self.compute.evaluate("bias_forces", (q, v), wrenches=wrenches, parameters=parameters)

    def gravity_forces(
        self, q: Any, *, coordinates: Coordinates = "all", parameters: Parameters = None
    ) -> Array:
        """g, the efforts that hold the model against gravity alone, given by all joints; E^T g in independent coordinates.

        What actuators of a model with loops or couplings must give, `inverse_dynamics` says.
        """
        if projected(coordinates):
            found = self.constrained_compute.reduction("gravity_forces", coordinates, q, parameters)
            return found.forces("gravity_forces")
        return self.compute.evaluate("gravity_forces", (q,), parameters=parameters)

    def coriolis_forces(
        self, q: Any, v: Any, *, coordinates: Coordinates = "all", parameters: Parameters = None
    ) -> Array:
        """c, Coriolis and centrifugal efforts alone, quadratic in v (gyroscopic ones of rotors included).

        In independent coordinates E^T (c + M E' v_i).
        """
        if projected(coordinates):
            found = self.constrained_compute.reduction("coriolis_forces", coordinates, q, parameters, v)
            return found.forces("coriolis_forces")
        return self.compute.evaluate("coriolis_forces", (q, v), parameters=parameters)

    def mass_matrix(
        self,
        q: Any,
        *,
        coordinates: Coordinates = "all",
        parameters: Parameters = None,
        out: Array | None = None,
    ) -> Array:
        """M(q), (..., nv, nv), armature and rotors included; in independent coordinates E^T M E."""
        if projected(coordinates):
            found = self.constrained_compute.reduction("mass_matrix", coordinates, q, parameters)
            return into("mass_matrix", found.mass_matrix(), out)
        return self.compute.evaluate("mass_matrix", (q,), parameters=parameters, out=out)

    def inverse_mass_matrix(
        self, q: Any, *, coordinates: Coordinates = "all", parameters: Parameters = None
    ) -> Array:
        """M(q)^-1, one sweep per column; in independent coordinates (E^T M E)^-1.

        In all coordinates it is the response of the tree. That of a model whose loops and couplings hold is
        `forward_dynamics_derivatives(...).dtau`, E (E^T M E)^-1 E^T.
        """
        if projected(coordinates):
            found = self.constrained_compute.reduction("inverse_mass_matrix", coordinates, q, parameters)
            return found.inverse_mass_matrix()
        return self.compute.inverse_mass_matrix(q, parameters)

    def solve_mass_matrix(
        self, q: Any, x: Any, *, coordinates: Coordinates = "all", parameters: Parameters = None
    ) -> Array:
        """M(q)^-1 x in O(n), without forming M; in independent coordinates (E^T M E)^-1 x, by solving.

        In all coordinates it is the response of the tree: with loops or couplings, efforts x do not cause it (see
        `inverse_mass_matrix`).
        """
        if projected(coordinates):
            found = self.constrained_compute.reduction("solve_mass_matrix", coordinates, q, parameters)
            return found.solve_mass_matrix(x)
        return self.compute.evaluate("solve_mass_matrix", (q, x), parameters=parameters)

    def multiply_mass_matrix(
        self, q: Any, x: Any, *, coordinates: Coordinates = "all", parameters: Parameters = None
    ) -> Array:
        """M(q) x in O(n), without forming M; in independent coordinates E^T M E x."""
        if projected(coordinates):
            found = self.constrained_compute.reduction("multiply_mass_matrix", coordinates, q, parameters)
            return found.multiply_mass_matrix(x)
        return self.compute.evaluate("multiply_mass_matrix", (q, x), parameters=parameters)

    # --- frames, centre of mass and momentum -----------------------------------------------------------------

    def frame_pose(self, q: Any, frame: str, *, parameters: Parameters = None) -> Pose:
        """X_WC: rotation (..., 3, 3) and origin (..., 3) of a frame in the world."""
        return self.compute.frame_pose(q, frame, parameters)

    def frame_velocity(
        self,
        q: Any,
        v: Any,
        frame: str,
        *,
        reference: Reference = "local",
        parameters: Parameters = None,
    ) -> Array:
        """The frame's (angular, linear) velocity, (..., 6)."""
        return self.compute.frame_velocity(q, v, frame, reference, parameters)

    def frame_acceleration(
        self,
        q: Any,
        v: Any,
        a: Any,
        frame: str,
        *,
        reference: Reference = "local",
        parameters: Parameters = None,
    ) -> Array:
        """The time derivative of `frame_velocity` in the same reference, (..., 6), gravity not included.

        With "local_world_aligned" the linear part is the acceleration of the frame's origin in the usual sense.
        """
        return self.compute.frame_acceleration(q, v, a, frame, reference, parameters)

    def frame_jacobian(
        self,
        q: Any,
        frame: str,
        *,
        reference: Reference = "local",
        point: Any = None,
        parameters: Parameters = None,
    ) -> Array:
        """J with frame_velocity = J v, (..., 6, nv); `point` moves the frame's origin (in frame axes)."""
        return self.compute.frame_jacobian(q, frame, reference, point, parameters)

    def frame_jacobian_rate(
        self,
        q: Any,
        v: Any,
        frame: str,
        *,
        reference: Reference = "local",
        parameters: Parameters = None,
    ) -> Array:
        """(dJ/dt) v, (..., 6): the frame's acceleration at a = 0."""
        return self.compute.frame_jacobian_rate(q, v, frame, reference, parameters)

    def center_of_mass(self, q: Any, *, parameters: Parameters = None) -> Array:
        """Of everything that moves (bodies welded to the world do not), (..., 3) in the world."""
        return self.compute.center_of_mass(q, parameters)

    def momentum(
        self, q: Any, v: Any, *, about: str = "center_of_mass", parameters: Parameters = None
    ) -> Array:
        """(angular, linear) momentum in world axes, (..., 6), about the centre of mass or about "world"'s origin."""
        return self.compute.momentum(q, v, about, parameters)

    def momentum_matrix(
        self, q: Any, *, about: str = "center_of_mass", parameters: Parameters = None
    ) -> Array:
        """The matrix that maps v to the momentum, (..., 6, nv)."""
        return self.compute.momentum_matrix(q, about, parameters)

    # --- energy ----------------------------------------------------------------------------------------------

    def kinetic_energy(self, q: Any, v: Any, *, parameters: Parameters = None) -> Any:
        return self.compute.evaluate("kinetic_energy", (q, v), parameters=parameters)[..., 0]

    def potential_energy(self, q: Any, *, parameters: Parameters = None) -> Any:
        """Of gravity (zero when the centre of mass of what moves is at the world's origin) and of springs."""
        return self.compute.evaluate("potential_energy", (q,), parameters=parameters)[..., 0]

    def energy(self, q: Any, v: Any, *, parameters: Parameters = None) -> Any:
        return self.kinetic_energy(q, v, parameters=parameters) + self.potential_energy(
            q, parameters=parameters
        )

    def power(
        self,
        q: Any,
        v: Any,
        tau: Any,
        *,
        wrenches: Wrenches | None = None,
        parameters: Parameters = None,
    ) -> Any:
        """What efforts and wrenches feed in: tau . v + sum F . V. Friction takes out its own part."""
        return self.compute.power(q, v, tau, wrenches, parameters)

    # --- configurations --------------------------------------------------------------------------------------

    def integrate(self, q: Any, dv: Any) -> Array:
        """The configuration reached from q by the tangent displacement dv."""
        return self.compute.evaluate("integrate", (q, dv))

    def difference(self, q0: Any, q1: Any) -> Array:
        """The tangent displacement from q0 to q1: integrate(q0, difference(q0, q1)) = q1."""
        return self.compute.evaluate("difference", (q0, q1))

    def rate(self, q: Any, v: Any) -> Array:
        """dq/dt, (..., nq)."""
        return self.compute.evaluate("rate", (q, v))

    def check_configuration(self, q: Any) -> None:
        """Raise `ArgumentError` naming the joint when q is no configuration (shape, NaN, quaternion length)."""
        return self.compute.check_configuration(q)

    # --- derivatives -----------------------------------------------------------------------------------------

    def inverse_dynamics_derivatives(
        self,
        q: Any,
        v: Any,
        a: Any,
        *,
        wrenches: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sensitive_to: Sequence[str] = (),
    ) -> InverseDerivatives:
        """d tau/dq, d tau/dv and d tau/da = M at given accelerations, in O(n depth).

        `sensitive_to` names parameters of the model to differentiate for as well, at fixed q, v and a: a tangent sweep for
        each. Loops and couplings are kept: then they are those of the actuators' efforts, and d tau/da is not M.
        """
        return self.compute.inverse_dynamics_derivatives(q, v, a, wrenches, parameters, sensitive_to)

    def forward_dynamics_derivatives(
        self,
        q: Any,
        v: Any,
        tau: Any,
        *,
        wrenches: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sensitive_to: Sequence[str] = (),
    ) -> ForwardDerivatives:
        """The accelerations and d a/dq, d a/dv, d a/dtau = M^-1 (for a tree; loops and couplings are kept).

        `sensitive_to` names parameters of the model to differentiate for as well, at fixed q, v and tau: for a tree
        da/dp = -M^-1 dtau/dp, with dtau/dp of inverse dynamics at these accelerations.
        """
        return self.compute.forward_dynamics_derivatives(q, v, tau, wrenches, parameters, sensitive_to)

    def hybrid_dynamics_derivatives(
        self,
        q: Any,
        v: Any,
        *,
        accelerations: Mapping[str, Any] | None = None,
        torques: Mapping[str, Any] | None = None,
        wrenches: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sensitive_to: Sequence[str] = (),
    ) -> HybridDerivatives:
        """Derivatives of `hybrid_dynamics` with the same arguments, and with respect to the parameters `sensitive_to`.

        From M da + tau_q dq + tau_v dv = dtau, solved for the accelerations of the free and the efforts of the
        prescribed degrees of freedom; the part of M for the free ones is factored along the tree. With loops, from the
        derivatives of constrained forward dynamics, solved for the efforts of the prescribed ones.
        """
        return self.compute.hybrid_dynamics_derivatives(
            q, v, accelerations, torques, wrenches, parameters, sensitive_to
        )

    def jvp(
        self,
        name: str,
        at: Sequence[Any],
        along: Sequence[Any],
        *,
        wrenches: Mapping[str, Any] | None = None,
        along_wrenches: Mapping[str, Any] | None = None,
        frame: str | None = None,
        reference: Reference | None = None,
        about: str | None = None,
    ) -> tuple[Any, Any]:
        """An algorithm's result and its derivative along a direction, in one sweep.

        `at` are its arguments (as for `compile(name)` and the method of that name), `along` one direction for each,
        tangent for q. Where the model has parameters, `at` and `along` may end with vectors for them. `wrenches` act
        on frames, and change along `along_wrenches` (zero for frames not named there). Algorithms on frames
        (`frame_pose`, `frame_velocity`, `frame_jacobian`, ...) need `frame`, and take `reference`; momentum takes `about`.
        Values are those of the method of that name. An algorithm with several results (`hybrid_dynamics`: accelerations and
        efforts; `frame_pose`: rotation and translation) gives tuples of values and of changes. `free` of hybrid dynamics,
        1 or 0, is a choice: it takes no direction, and its gradient is zero. Of models with loops, couplings or equations,
        what they change (forward, inverse and hybrid dynamics) goes through them.
        """
        return self.compute.jvp(
            name, at, along, wrenches, along_wrenches, frame=frame, reference=reference, about=about
        )

    def vjp(
        self,
        name: str,
        at: Sequence[Any],
        weight: Any,
        *,
        wrenches: Mapping[str, Any] | None = None,
        frame: str | None = None,
        reference: Reference | None = None,
        about: str | None = None,
    ) -> tuple[Any, ...]:
        """The gradient of weight . result with respect to each argument (tangent for q), in one reverse sweep.

        Options are those of `jvp`. With `wrenches`, the last item maps their frames to gradients; where the model has
        parameters, theirs comes before it. An algorithm with several results takes as many weights, in a tuple.
        """
        return self.compute.vjp(name, at, weight, wrenches, frame=frame, reference=reference, about=about)

    def hessian(
        self,
        name: str,
        at: Sequence[Any],
        weight: Any,
        *,
        wrenches: Mapping[str, Any] | None = None,
        frame: str | None = None,
        reference: Reference | None = None,
        about: str | None = None,
    ) -> Any:
        """The second derivative of weight . result with respect to all arguments together, (..., N, N).

        The arguments follow each other in the order of `compile(name)`, q with its nv tangent directions (along
        `integrate(q, d)`, in which the matrix is symmetric), then the wrenches. One tangent of the reverse sweep for each of
        the N directions; models of up to 8 bodies have straight code for all at once. `second_derivatives` gives the full
        tensor. Parameters are held; options are those of `jvp`. Of models with loops, couplings or equations, what they
        change is differentiated with the minimal set of constraint rows of the (first) state held, in straight code.
        """
        return self.compute.hessian(name, at, weight, wrenches, frame=frame, reference=reference, about=about)

    def second_derivatives(self, name: str, at: Sequence[Any], **options: Any) -> Any:
        """The tensor of all second derivatives of a result of m numbers, (..., m, N, N): `hessian` for each of them.

        Takes the options of `hessian`. Of an algorithm with several results, a tuple of tensors.
        """
        return self.compute.second_derivatives(name, at, **options)

    # --- loops, couplings and equations ----------------------------------------------------------------------

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
        """The accelerations that the efforts `tau` cause, and the reactions of loops and couplings.

        Redundant rows are left out, by rank; their reactions are the smallest that do. A state whose residuals, relative
        to the size of a loop, exceed `closure_tolerance` is refused.
        """
        return self.constrained_compute.constrained_dynamics(
            q, v, tau, active, wrenches, parameters, closure_tolerance
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
        """The accelerations and their derivatives; those with respect to q and v hold for any change of the state.

        Along the constraint surface they are the derivatives of the motion: with v = E v_i, d.dq @ E. Off the surface
        redundant rows are left out as they are at the state itself. Derivatives with respect to the parameters named in
        `sensitive_to` are at fixed q, v and tau.
        """
        return self.constrained_compute.constrained_dynamics_derivatives(
            q, v, tau, active, wrenches, parameters, sensitive_to, closure_tolerance
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
        """The efforts of `constrained_inverse_dynamics` and their derivatives with respect to q (tangent), v, a, parameters.

        The actuated set must drive every degree of freedom that the constraints leave; where it does so in several
        ways the efforts are the smallest by weight, and so are the derivatives of these.
        """
        return self.constrained_compute.constrained_inverse_dynamics_derivatives(
            q, v, a, actuated, weights, active, wrenches, parameters, sensitive_to, closure_tolerance
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
        """The efforts of the `actuated` joints (or degrees of freedom) that give the accelerations `a`.

        By default the model's actuators, or all joints, drive. Where they could do it in many ways the efforts
        have the least sum of squares, each times its weight; where they cannot, the error says what is missing.
        """
        return self.constrained_compute.constrained_inverse_dynamics(
            q, v, a, actuated, weights, active, wrenches, parameters, closure_tolerance
        )

    def constraint_power(
        self, q: Any, v: Any, reactions: Mapping[str, Any], *, parameters: Parameters = None
    ) -> dict[str, Array]:
        """The power (...) that each reaction gives to the model: rounding, at speeds that keep the constraints.

        `reactions` are those of `constrained_dynamics` or `constrained_inverse_dynamics` at the same q and v: ideal
        constraints take no power, however large their forces.
        """
        return self.constrained_compute.constraint_power(q, v, reactions, parameters)

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
        """Motions that are prescribed, and the forces of chosen actuators that bring them about (Ider).

        `motions` maps constraints of the model to the second derivatives that their residuals are to have, and joints (or
        degrees of freedom) to accelerations, (N,) or (N, 1) for N states. `actuators` are joints, degrees of freedom or
        actuators, one for each motion, or directions (rows, nv); left out, forces act along the motions themselves. All
        other constraints are kept by their reactions. `method` is "augmented" or "reduced" (see `constraints.prescribed`),
        or "least norm" for actuators that may be more than the motions, or depend on each other: of all forces that bring
        the motions about, those with the least sum of squares. Where the actuators cannot do it, the error says so.
        """
        return self.constrained_compute.control_forces(
            q, v, tau, motions, actuators, method, active, wrenches, parameters
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
        """The jump of the speeds when the active constraints begin to hold at q, and their impulses.

        Momentum is conserved; kinetic energy is lost, as little as the constraints allow. Joints (or degrees of freedom)
        that are `held` keep their speeds: drives that make them follow a motion give the impulses for it.
        """
        return self.constrained_compute.impulse(q, v, held, active, parameters, closure_tolerance)

    def constraint_analysis(
        self, q: Any, *, active: Active = None, parameters: Parameters = None, tolerance: float = RANK
    ) -> ConstraintAnalysis:
        """Rank, degrees of freedom and redundant constraints at q; `tolerance` as in `constraints.saddle`."""
        return self.constrained_compute.constraint_analysis(q, active, parameters, tolerance)

    def independent_coordinates(
        self,
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
        return self.constrained_compute.independent_coordinates(q, v, independent, active, parameters)

    def reduced_mass_matrix(
        self,
        q: Any,
        *,
        independent: Sequence[str] | None = None,
        active: Active = None,
        parameters: Parameters = None,
    ) -> Array:
        """E^T M E, the mass matrix in independent speeds; `mass_matrix(q, coordinates=...)` of the active constraints."""
        return self.constrained_compute.reduced_mass_matrix(q, independent, active, parameters)

    def constraint_residual(self, q: Any, *, active: Active = None, parameters: Parameters = None) -> Array:
        """(..., m): zero where all loops are closed; rows of loops first, then of couplings, then of equations."""
        return self.constrained_compute.constraint_residual(q, active, parameters)

    def constraint_jacobian(self, q: Any, *, active: Active = None, parameters: Parameters = None) -> Array:
        """G (..., m, nv): speeds are possible where G v = 0."""
        return self.constrained_compute.constraint_jacobian(q, active, parameters)

    def constraint_bias(
        self, q: Any, v: Any, *, active: Active = None, parameters: Parameters = None
    ) -> Array:
        """gamma (..., m) of d/dt (G v) = G v' + gamma."""
        return self.constrained_compute.constraint_bias(q, v, active, parameters)

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
        """The configuration nearest to the guess q that closes all loops, and the nearest speeds that keep them so.

        Returns a `State` with `.q` and `.v`. The guess may be by joint, `{"crank": 0.5}`, others neutral.
        `fixed` joints (or degrees of freedom) stay as they are; others move the less the greater their weight (1).
        """
        q = self.configuration(q) if isinstance(q, Mapping) else q  # type: ignore[attr-defined]
        return self.constrained_compute.assemble(q, v, fixed, weights, active, parameters)

    def project(
        self, q: Any, v: Any = None, *, active: Active = None, parameters: Parameters = None
    ) -> State:
        """A state that has drifted a little, back on the constraint surface, the shortest way in the mass metric.

        Returns a `State`: `.q` is the configuration and `.v` the speeds (zero where none were given):
        `v = model.project(q, v).v` are speeds that keep all loops closed.
        """
        return self.constrained_compute.project(q, v, active, parameters)

    # --- symbols, kernels and source -------------------------------------------------------------------------

    def compile(
        self,
        name: str,
        *,
        wrenches: Sequence[str] = (),
        batch: bool = False,
        lowering: Lowering = "auto",
        at: Any = None,
        actuated: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Kernel:
        """The kernel of an algorithm, compiled: call it, or use its `fast()` handle in tight loops.

        For each frame of `wrenches` it takes a wrench (..., 6) after the other arguments; the parameters, where the
        model has any, come last. `lowering` is "specialised" (code for each body: fastest), "rolled" (loops over the
        bodies: compiles in the same time for any number of them), or "auto", by the size of the tree.

        Of a model with loops, couplings or equations there are `forward_dynamics` (accelerations), `constrained_dynamics`
        (also the forces of all rows, and the wrenches of loops, one row each), `inverse_dynamics` (efforts) and
        `constrained_inverse_dynamics` (also forces and wrenches), which take `actuated` and `weights` as the method does.
        They need `at`, a configuration at which the minimal set of constraint rows is chosen; where that set does not serve,
        and where loops are open, they give NaN. Terms of the equation of motion are those in all coordinates.
        """
        return self.compute.compile(name, wrenches, batch, lowering, at, actuated, weights)

    def export_c(
        self,
        name: str,
        directory: str | Path,
        *,
        wrenches: Sequence[str] = (),
        frame: str | None = None,
        reference: Reference = "local",
        about: str = "center_of_mass",
        at: Any = None,
        actuated: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
        precision: str = "double",
    ) -> list[Path]:
        """Write an algorithm as C99 into a directory: NAME.c, NAME.h and a test program; returns the files.

        Arguments and results are those of `model.symbolic`. For each frame of `wrenches` the function takes a wrench
        (moment, then force) as `wrench_FRAME`. Algorithms on frames need `frame`; `reference` and `about` are as in
        the methods. Models with loops need `at` for their dynamics, and take `actuated` and `weights`, as in `compile`.
        `precision="float"` writes it in single precision.
        """
        return self.compute.export_c(
            name, directory, wrenches, frame, reference, about, at, actuated, weights, precision
        )
