"""Forward, inverse and hybrid dynamics and the terms of M(q) a + bias(q, v) = tau, as methods of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.deferred import deferred
from alembert.dynamics import methods
from alembert.dynamics.arguments import Parameters, Wrenches
from alembert.errors import ArgumentError

if TYPE_CHECKING:
    from alembert.dynamics import results
    from alembert.dynamics.results import HybridResult
    from alembert.model import Model
else:
    results = deferred("alembert.dynamics.results")

Array = np.ndarray


class EquationsOfMotion:
    """Mixed into `Model`. Efforts and accelerations are nv wide, (..., nv)."""

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
        "conjugate_gradients" (matrix-free, O(n^2)); all give the same. Loops and couplings hold;
        `constrained_dynamics` also gives their reactions.
        """
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
        (names as in `speed_names`) to values; efforts not named are zero.
        """
        free, a_given = self._by_name("hybrid_dynamics", accelerations, "accelerations")
        given, tau = self._by_name("hybrid_dynamics", torques, "torques")
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
        self: Model, q: Any, v: Any, *, wrenches: Wrenches | None = None, parameters: Parameters = None
    ) -> Array:
        """The efforts at zero acceleration: Coriolis, gravity, springs and friction (M a + bias = tau)."""
        return self._evaluate("bias_forces", (q, v), wrenches=wrenches, parameters=parameters)

    def gravity_forces(self: Model, q: Any, *, parameters: Parameters = None) -> Array:
        """The efforts that hold the model against gravity alone (with loops: those of `inverse_dynamics`)."""
        if self.is_constrained:
            zero = np.zeros(self.nv)
            return self._constrained_inverse(q, zero, zero, None, parameters, "gravity_forces")
        return self._evaluate("gravity_forces", (q,), parameters=parameters)

    def coriolis_forces(self: Model, q: Any, v: Any, *, parameters: Parameters = None) -> Array:
        """Coriolis and centrifugal efforts alone, quadratic in v (gyroscopic ones of rotors included)."""
        return self._evaluate("coriolis_forces", (q, v), parameters=parameters)

    def mass_matrix(self: Model, q: Any, *, parameters: Parameters = None, out: Array | None = None) -> Array:
        """M(q), (..., nv, nv), armature and rotors included."""
        return self._evaluate("mass_matrix", (q,), parameters=parameters, out=out)

    def inverse_mass_matrix(self: Model, q: Any, *, parameters: Parameters = None) -> Array:
        """M(q)^-1, one sweep per column."""
        q = self._numbers("inverse_mass_matrix", "q", q, self.nq)
        columns = self.solve_mass_matrix(q[..., None, :], np.eye(self.nv), parameters=parameters)
        return np.swapaxes(columns, -1, -2)

    def solve_mass_matrix(self: Model, q: Any, x: Any, *, parameters: Parameters = None) -> Array:
        """M(q)^-1 x in O(n), without forming M."""
        return self._evaluate("solve_mass_matrix", (q, x), parameters=parameters)

    def multiply_mass_matrix(self: Model, q: Any, x: Any, *, parameters: Parameters = None) -> Array:
        """M(q) x in O(n), without forming M."""
        return self._evaluate("multiply_mass_matrix", (q, x), parameters=parameters)

    def _constrained_forward(
        self: Model, q: Any, v: Any, tau: Any, wrenches: Any, parameters: Any, method: str, out: Any
    ) -> Array:
        if method != "sweep":
            self.check_tree(f"forward_dynamics(method={method!r})")
        a = self._constrained_accelerations(q, v, tau, wrenches, parameters)
        return self._given_out("forward_dynamics", a, out)

    @staticmethod
    def _given_out(function: str, found: Array, out: Any) -> Array:
        if out is None:
            return found
        if np.shape(out) != found.shape:
            raise ArgumentError(f"{function}: out has shape {np.shape(out)}, expected {found.shape}")
        out[...] = found
        return out
