"""Forward, inverse and hybrid dynamics and the terms of M(q) a + bias(q, v) = tau, as methods of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.algorithms import methods
from alembert.algorithms.arguments import Parameters, Wrenches
from alembert.algorithms.failures import all_finite
from alembert.constraints.coordinates import Coordinates, projected
from alembert.deferred import deferred
from alembert.errors import ArgumentError, UnsupportedError

if TYPE_CHECKING:
    from alembert.algorithms import results
    from alembert.algorithms.results import HybridResult
    from alembert.model import Model
else:
    results = deferred("alembert.algorithms.results")

Array = np.ndarray


class EquationsOfMotion:
    """Mixed into `Model`. Efforts and accelerations are nv wide, (..., nv).

    Loops, couplings and equations hold in forward, inverse and hybrid dynamics. The *terms* of the equation of motion,

        M(q) a + h(q, v) = tau + G^T f                                                                          (1)
        (E^T M E) a_i + E^T (h + M E' v_i) = E^T tau,     v = E v_i,   G E = 0                                  (2)

    are by default those of (1), in all speeds of the tree, where the reactions f of the constraints stand on the right; with
    `coordinates="independent"` (or a list of joints or degrees of freedom that determine the others) those of (2), where
    they have dropped out. States q and v are complete in both; `independent_coordinates` gives E.
    """

    def forward_dynamics(
        self: Model,
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
        if wrenches is None and parameters is None and out is None and method == "sweep":
            found = self._one_state("forward_dynamics", q, v, tau)
            if found is not None:
                return found
        if self.is_constrained:
            return self._constrained_forward(q, v, tau, wrenches, parameters, method, out)
        if method == "sweep":
            return self._evaluate(
                "forward_dynamics", (q, v, tau), wrenches=wrenches, parameters=parameters, out=out
            )
        return methods.forward_dynamics(self, q, v, tau, wrenches, parameters, method, out)

    def inverse_dynamics(
        self: Model,
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
        if wrenches is None and parameters is None and out is None:
            found = self._one_state("inverse_dynamics", q, v, a)
            if found is not None:
                return found
        if self.is_constrained:
            return self._given_out(
                "inverse_dynamics", self._constrained_inverse(q, v, a, wrenches, parameters), out
            )
        return self._evaluate(
            "inverse_dynamics", (q, v, a), wrenches=wrenches, parameters=parameters, out=out
        )

    def hybrid_dynamics(
        self: Model,
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
        free, a_given = self._by_name("hybrid_dynamics", accelerations, "accelerations", (q, v))
        given, tau = self._by_name("hybrid_dynamics", torques, "torques", (q, v))
        self._refuse_both("hybrid_dynamics", np.flatnonzero(free & given).tolist())
        if self.is_constrained:
            return results.HybridResult(
                *self._constrained_hybrid(q, v, tau, a_given, free, wrenches, parameters)
            )
        a, effort = self._evaluate(
            "hybrid_dynamics",
            (q, v, tau, a_given, (~free).astype(float)),
            wrenches=wrenches,
            parameters=parameters,
        )
        return results.HybridResult(a, effort)

    def bias_forces(
        self: Model,
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
            forces = self._wrench_array("bias_forces", wrenches, parameters) if wrenches else None
            found, forces = self._reduction("bias_forces", coordinates, q, parameters, v, forces)
            return found.forces("bias_forces", "bias_forces", forces)
        return self._evaluate("bias_forces", (q, v), wrenches=wrenches, parameters=parameters)

    def gravity_forces(
        self: Model, q: Any, *, coordinates: Coordinates = "all", parameters: Parameters = None
    ) -> Array:
        """g, the efforts that hold the model against gravity alone, given by all joints; E^T g in independent coordinates.

        What actuators of a model with loops or couplings must give, `inverse_dynamics` says.
        """
        if projected(coordinates):
            found, _ = self._reduction("gravity_forces", coordinates, q, parameters)
            return found.forces("gravity_forces", "gravity_forces")
        return self._evaluate("gravity_forces", (q,), parameters=parameters)

    def coriolis_forces(
        self: Model, q: Any, v: Any, *, coordinates: Coordinates = "all", parameters: Parameters = None
    ) -> Array:
        """c, Coriolis and centrifugal efforts alone, quadratic in v (gyroscopic ones of rotors included).

        In independent coordinates E^T (c + M E' v_i).
        """
        if projected(coordinates):
            found, _ = self._reduction("coriolis_forces", coordinates, q, parameters, v)
            return found.forces("coriolis_forces", "coriolis_forces")
        return self._evaluate("coriolis_forces", (q, v), parameters=parameters)

    def mass_matrix(
        self: Model,
        q: Any,
        *,
        coordinates: Coordinates = "all",
        parameters: Parameters = None,
        out: Array | None = None,
    ) -> Array:
        """M(q), (..., nv, nv), armature and rotors included; in independent coordinates E^T M E."""
        if projected(coordinates):
            found, _ = self._reduction("mass_matrix", coordinates, q, parameters)
            return self._given_out("mass_matrix", found.mass_matrix(), out)
        return self._evaluate("mass_matrix", (q,), parameters=parameters, out=out)

    def inverse_mass_matrix(
        self: Model, q: Any, *, coordinates: Coordinates = "all", parameters: Parameters = None
    ) -> Array:
        """M(q)^-1, one sweep per column; in independent coordinates (E^T M E)^-1.

        In all coordinates it is the response of the tree. That of a model whose loops and couplings hold is
        `forward_dynamics_derivatives(...).dtau`, E (E^T M E)^-1 E^T.
        """
        if projected(coordinates):
            return np.linalg.inv(self._reduced_mass("inverse_mass_matrix", coordinates, q, parameters))
        name = "inverse_mass_matrix"
        given = self._with_parameters(name, parameters, self._numbers(name, "q", q, self.nq))
        q_columns, *others = (
            x[..., None, :] for x in given
        )  # parameters go with the states, not with the columns
        columns = self._kernel("solve_mass_matrix")(q_columns, np.eye(self.nv), *others)
        if self._lockable:
            self._mark_locked("solve_mass_matrix", (q_columns,), columns)
        if not all_finite(columns):
            self._explain(name, columns, given, self._kernel("mass_matrix"))
        return np.swapaxes(columns, -1, -2)

    def solve_mass_matrix(
        self: Model, q: Any, x: Any, *, coordinates: Coordinates = "all", parameters: Parameters = None
    ) -> Array:
        """M(q)^-1 x in O(n), without forming M; in independent coordinates (E^T M E)^-1 x, by solving.

        In all coordinates it is the response of the tree: with loops or couplings, efforts x do not cause it (see
        `inverse_mass_matrix`).
        """
        if projected(coordinates):
            M = self._reduced_mass("solve_mass_matrix", coordinates, q, parameters)
            return np.linalg.solve(M, self._numbers("solve_mass_matrix", "x", x, M.shape[-1])[..., None])[
                ..., 0
            ]
        return self._evaluate("solve_mass_matrix", (q, x), parameters=parameters)

    def multiply_mass_matrix(
        self: Model, q: Any, x: Any, *, coordinates: Coordinates = "all", parameters: Parameters = None
    ) -> Array:
        """M(q) x in O(n), without forming M; in independent coordinates E^T M E x."""
        if projected(coordinates):
            M = self._reduced_mass("multiply_mass_matrix", coordinates, q, parameters)
            return (M @ self._numbers("multiply_mass_matrix", "x", x, M.shape[-1])[..., None])[..., 0]
        return self._evaluate("multiply_mass_matrix", (q, x), parameters=parameters)

    def _reduced_mass(
        self: Model, function: str, coordinates: Coordinates, q: Any, parameters: Parameters
    ) -> Array:
        return self._reduction(function, coordinates, q, parameters)[0].mass_matrix()

    def _constrained_forward(
        self: Model, q: Any, v: Any, tau: Any, wrenches: Any, parameters: Any, method: str, out: Any
    ) -> Array:
        if method == "factorise":
            a = self._constrained_by_factors(q, v, tau, wrenches, parameters)
            return self._given_out("forward_dynamics", a, out)
        if method != "sweep":
            methods.check(method)
            raise UnsupportedError(
                f"forward_dynamics: method {method!r} is for models without loops, couplings and equations; 'sweep' and "
                "'factorise' take them"
            )
        a = self._constrained_accelerations(q, v, tau, wrenches, parameters)
        return self._given_out("forward_dynamics", a, out)

    def _constrained_by_factors(
        self: Model, q: Any, v: Any, tau: Any, wrenches: Any, parameters: Any
    ) -> Array:
        """(2), solved for the accelerations of independent speeds."""
        name = "forward_dynamics"
        forces = self._wrench_array(name, wrenches, parameters) if wrenches else None
        found, forces = self._reduction(name, "independent", q, parameters, v, forces, tau=tau)
        rest = found.projected(found.s.vectors[1]) - found.forces("bias_forces", name, forces)
        return found.completed(np.linalg.solve(found.mass_matrix(), rest[..., None])[..., 0])

    @staticmethod
    def _given_out(function: str, found: Array, out: Any) -> Array:
        if out is None:
            return found
        if np.shape(out) != found.shape:
            raise ArgumentError(f"{function}: out has shape {np.shape(out)}, expected {found.shape}")
        out[...] = found
        return out
