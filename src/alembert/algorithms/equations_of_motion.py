"""Forward, inverse and hybrid dynamics and the terms of M(q) a + bias(q, v) = tau, of a model."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.algorithms import methods, results
from alembert.algorithms.arguments import Parameters, Wrenches
from alembert.algorithms.energy import Energy
from alembert.algorithms.failures import all_finite
from alembert.algorithms.manifold import Configurations
from alembert.constraints import ConstrainedAlgorithms
from alembert.constraints.coordinates import Coordinates, projected
from alembert.errors import ArgumentError, UnsupportedError

if TYPE_CHECKING:
    from alembert.algorithms.results import HybridResult

Array = np.ndarray


class EquationsOfMotion(Energy, Configurations, ConstrainedAlgorithms):
    """Forward, inverse and hybrid dynamics, and the terms of the equation of motion."""

    def forward_dynamics(
        self,
        q: Any,
        v: Any,
        tau: Any,
        wrenches: Wrenches | None = None,
        parameters: Parameters = None,
        method: str = "sweep",
        out: Array | None = None,
    ) -> Array:
        direct = self._direct.get("forward_dynamics")
        plain = wrenches is None and parameters is None and out is None and method == "sweep"
        if (
            direct
            and plain
            and type(q) is type(v) is type(tau) is Array
            and q.ndim == v.ndim == tau.ndim == 1
        ):
            found = direct(q, v, tau)
            if isfinite(sum(found.tolist()) if len(found) < 100 else found.dot(found)):
                return found
        if self.model.is_constrained:
            return self._constrained_forward(q, v, tau, wrenches, parameters, method, out)
        if method == "sweep":
            return self.evaluate(
                "forward_dynamics", (q, v, tau), wrenches=wrenches, parameters=parameters, out=out
            )
        return methods.forward_dynamics(self.model, q, v, tau, wrenches, parameters, method, out)

    def inverse_dynamics(
        self,
        q: Any,
        v: Any,
        a: Any,
        wrenches: Wrenches | None = None,
        parameters: Parameters = None,
        out: Array | None = None,
    ) -> Array:
        direct = self._direct.get("inverse_dynamics")
        plain = wrenches is None and parameters is None and out is None
        if direct and plain and type(q) is type(v) is type(a) is Array and q.ndim == v.ndim == a.ndim == 1:
            found = direct(q, v, a)
            if isfinite(sum(found.tolist()) if len(found) < 100 else found.dot(found)):
                return found
        if self.model.is_constrained:
            return self._given_out(
                "inverse_dynamics", self.constrained_efforts(q, v, a, wrenches, parameters), out
            )
        return self.evaluate("inverse_dynamics", (q, v, a), wrenches=wrenches, parameters=parameters, out=out)

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
        free, a_given = self.by_name("hybrid_dynamics", accelerations, "accelerations", (q, v))
        given, tau = self.by_name("hybrid_dynamics", torques, "torques", (q, v))
        self.refuse_both("hybrid_dynamics", np.flatnonzero(free & given).tolist())
        if self.model.is_constrained:
            return results.HybridResult(
                *self.constrained_hybrid(q, v, tau, a_given, free, wrenches, parameters)
            )
        a, effort = self.evaluate(
            "hybrid_dynamics",
            (q, v, tau, a_given, (~free).astype(float)),
            wrenches=wrenches,
            parameters=parameters,
        )
        return results.HybridResult(a, effort)

    def bias_forces(
        self,
        q: Any,
        v: Any,
        *,
        coordinates: Coordinates = "all",
        wrenches: Wrenches | None = None,
        parameters: Parameters = None,
    ) -> Array:
        if projected(coordinates):
            found = self.reduction("bias_forces", coordinates, q, parameters, v, wrenches)
            return found.forces("bias_forces")
        return self.evaluate("bias_forces", (q, v), wrenches=wrenches, parameters=parameters)

    def gravity_forces(
        self, q: Any, *, coordinates: Coordinates = "all", parameters: Parameters = None
    ) -> Array:
        if projected(coordinates):
            found = self.reduction("gravity_forces", coordinates, q, parameters)
            return found.forces("gravity_forces")
        return self.evaluate("gravity_forces", (q,), parameters=parameters)

    def coriolis_forces(
        self, q: Any, v: Any, *, coordinates: Coordinates = "all", parameters: Parameters = None
    ) -> Array:
        if projected(coordinates):
            found = self.reduction("coriolis_forces", coordinates, q, parameters, v)
            return found.forces("coriolis_forces")
        return self.evaluate("coriolis_forces", (q, v), parameters=parameters)

    def mass_matrix(
        self,
        q: Any,
        *,
        coordinates: Coordinates = "all",
        parameters: Parameters = None,
        out: Array | None = None,
    ) -> Array:
        if projected(coordinates):
            found = self.reduction("mass_matrix", coordinates, q, parameters)
            return self._given_out("mass_matrix", found.mass_matrix(), out)
        return self.evaluate("mass_matrix", (q,), parameters=parameters, out=out)

    def inverse_mass_matrix(
        self, q: Any, *, coordinates: Coordinates = "all", parameters: Parameters = None
    ) -> Array:
        if projected(coordinates):
            return np.linalg.inv(self._reduced_mass("inverse_mass_matrix", coordinates, q, parameters))
        name = "inverse_mass_matrix"
        given = self.with_parameters(name, parameters, self.numbers(name, "q", q, self.model.nq))
        q_columns, *others = (
            x[..., None, :] for x in given
        )  # parameters go with the states, not with the columns
        columns = self.kernel("solve_mass_matrix")(q_columns, np.eye(self.model.nv), *others)
        if self.lockable:
            self.mark_locked("solve_mass_matrix", (q_columns,), columns)
        if not all_finite(columns):
            self.explain(name, columns, given, self.kernel("mass_matrix"))
        return np.swapaxes(columns, -1, -2)

    def solve_mass_matrix(
        self, q: Any, x: Any, *, coordinates: Coordinates = "all", parameters: Parameters = None
    ) -> Array:
        if projected(coordinates):
            M = self._reduced_mass("solve_mass_matrix", coordinates, q, parameters)
            return np.linalg.solve(M, self.numbers("solve_mass_matrix", "x", x, M.shape[-1])[..., None])[
                ..., 0
            ]
        return self.evaluate("solve_mass_matrix", (q, x), parameters=parameters)

    def multiply_mass_matrix(
        self, q: Any, x: Any, *, coordinates: Coordinates = "all", parameters: Parameters = None
    ) -> Array:
        if projected(coordinates):
            M = self._reduced_mass("multiply_mass_matrix", coordinates, q, parameters)
            return (M @ self.numbers("multiply_mass_matrix", "x", x, M.shape[-1])[..., None])[..., 0]
        return self.evaluate("multiply_mass_matrix", (q, x), parameters=parameters)

    def _reduced_mass(self, function: str, coordinates: Coordinates, q: Any, parameters: Parameters) -> Array:
        return self.reduction(function, coordinates, q, parameters).mass_matrix()

    def _constrained_forward(
        self, q: Any, v: Any, tau: Any, wrenches: Any, parameters: Any, method: str, out: Any
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
        a = self.constrained_accelerations(q, v, tau, wrenches, parameters)
        return self._given_out("forward_dynamics", a, out)

    def _constrained_by_factors(self, q: Any, v: Any, tau: Any, wrenches: Any, parameters: Any) -> Array:
        """(2), solved for the accelerations of independent speeds."""
        name = "forward_dynamics"
        v = self.numbers(name, "v", v, self.model.nv)
        found = self.reduction(name, "independent", q, parameters, v, wrenches, tau=tau)
        rest = found.projected(found.s.vectors[1]) - found.forces("bias_forces")
        return found.completed(np.linalg.solve(found.mass_matrix(), rest[..., None])[..., 0])

    @staticmethod
    def _given_out(function: str, found: Array, out: Any) -> Array:
        if out is None:
            return found
        if np.shape(out) != found.shape:
            raise ArgumentError(f"{function}: out has shape {np.shape(out)}, expected {found.shape}")
        out[...] = found
        return out
