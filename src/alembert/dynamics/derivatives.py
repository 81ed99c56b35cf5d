"""The derivatives of a model's dynamics, as its methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.dynamics import kernels
from alembert.dynamics.programs import NEED_TREE, PROGRAMS
from alembert.dynamics.results import ForwardDerivatives, HybridDerivatives, InverseDerivatives
from alembert.engine.kernel import Argument, Kernel
from alembert.engine.source import FunctionSource, Source
from alembert.errors import ArgumentError, UnsupportedError
from alembert.model.printing import unknown
from alembert.sensitivity import directional

if TYPE_CHECKING:
    from alembert.model import Model


class Derivatives:
    """Mixed into `Model`; every derivative with respect to q is tangent, (..., nv, nv)."""

    def inverse_dynamics_derivatives(
        self: Model,
        q: Any,
        v: Any,
        a: Any,
        *,
        wrenches: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> InverseDerivatives:
        """d tau/dq, d tau/dv and d tau/da = M at given accelerations, in O(n depth)."""
        return InverseDerivatives(
            *self._evaluate(
                "inverse_dynamics_derivatives", (q, v, a), wrenches=wrenches, parameters=parameters
            )
        )

    def forward_dynamics_derivatives(
        self: Model,
        q: Any,
        v: Any,
        tau: Any,
        *,
        wrenches: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> ForwardDerivatives:
        """The accelerations and d a/dq, d a/dv, d a/dtau = M^-1 (for a tree; loops and couplings are kept)."""
        if self.is_constrained:
            d = self.constrained_dynamics_derivatives(q, v, tau, wrenches=wrenches, parameters=parameters)
            return ForwardDerivatives(d.acceleration, d.dq, d.dv, d.dtau)
        a, dq, dv, dtau = self._evaluate(
            "forward_dynamics_derivatives", (q, v, tau), wrenches=wrenches, parameters=parameters
        )
        return ForwardDerivatives(a, dq, dv, dtau)

    def hybrid_dynamics_derivatives(
        self: Model,
        q: Any,
        v: Any,
        *,
        accelerations: Mapping[str, Any] | None = None,
        torques: Mapping[str, Any] | None = None,
        wrenches: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> HybridDerivatives:
        """Derivatives of `hybrid_dynamics` with the same arguments.

        From M da + tau_q dq + tau_v dv = dtau, solved for the accelerations of the free and the efforts of the
        prescribed degrees of freedom.
        """
        result = self.hybrid_dynamics(
            q, v, accelerations=accelerations, torques=torques, wrenches=wrenches, parameters=parameters
        )
        prescribed, _ = self._by_name(
            "hybrid_dynamics_derivatives", {} if accelerations is None else accelerations, "accelerations"
        )
        d = self.inverse_dynamics_derivatives(
            q, v, result.accelerations, wrenches=wrenches, parameters=parameters
        )
        f, p = np.flatnonzero(~prescribed), np.flatnonzero(prescribed)
        M_ff, M_fp = d.da[..., f[:, None], f], d.da[..., f[:, None], p]
        M_pf, M_pp = d.da[..., p[:, None], f], d.da[..., p[:, None], p]

        def respond(rows: np.ndarray) -> np.ndarray:
            """(accelerations; efforts) for a change `rows` of the efforts at fixed accelerations."""
            change = np.zeros((*rows.shape[:-2], 2, *rows.shape[-2:]))
            change[..., 0, f, :] = -np.linalg.solve(M_ff, rows[..., f, :])
            change[..., 1, p, :] = rows[..., p, :] + M_pf @ change[..., 0, f, :]
            return change

        given = np.zeros((*d.da.shape[:-2], 2, self.nv, self.nv))
        given[..., 1, f, f] = 1.0
        given[..., 0, p, p] = 1.0
        inverse = np.linalg.inv(M_ff)
        given[..., 0, f[:, None], f] = inverse
        given[..., 0, f[:, None], p] = -inverse @ M_fp
        given[..., 1, p[:, None], f] = M_pf @ inverse
        given[..., 1, p[:, None], p] = M_pp - M_pf @ inverse @ M_fp
        return HybridDerivatives(result, respond(d.dq), respond(d.dv), given)

    def jvp(self: Model, name: str, at: Sequence[Any], along: Sequence[Any]) -> tuple[Any, Any]:
        """An algorithm's result and its derivative along a direction, in one sweep.

        `at` are its arguments (as for `compile(name)`), `along` one direction for each, tangent for q. Where the
        model has parameters, `at` and `along` may end with vectors for them. An algorithm with several results
        (`hybrid_dynamics`: accelerations and efforts) gives tuples of values and of changes.
        """
        if self.is_constrained and name == "forward_dynamics":
            d = self._constrained_slope("jvp", at)
            directions = [np.asarray(x, dtype=float) for x in along]
            if np.any([np.any(x) for x in directions[3:]]):
                raise UnsupportedError(
                    "jvp: forward_dynamics of a model with loops, couplings or equations, along parameters: derivatives "
                    "with respect to parameters do not go through constraints yet"
                )
            if len(directions) < 3:
                raise ArgumentError(f"jvp: forward_dynamics takes 3 arguments, got {len(directions)}")
            terms = [
                (A @ x[..., None])[..., 0] for A, x in zip((d.dq, d.dv, d.dtau), directions, strict=False)
            ]
            return d.acceleration, sum(terms)
        kernel = self._directional_kernel("jvp", name)
        count = len(kernel.arguments) // 2
        values = self._completed("jvp", name, at, count, 1.0)
        given = (*values, *self._completed("jvp", name, along, count, 0.0))
        found = self._checked("jvp", kernel, given)
        half = len(found) // 2
        return found if half == 1 else (found[:half], found[half:])

    def vjp(self: Model, name: str, at: Sequence[Any], weight: Any) -> tuple[Any, ...]:
        """The gradient of weight . result with respect to each argument (tangent for q), in one reverse sweep.

        An algorithm with several results takes as many weights, in a tuple.
        """
        if self.is_constrained and name == "forward_dynamics":
            d = self._constrained_slope("vjp", at)
            w = np.asarray(weight, dtype=float)[..., None, :]
            return tuple((w @ A)[..., 0, :] for A in (d.dq, d.dv, d.dtau))
        kernel = self._directional_kernel("vjp", name)
        given_weights = weights("vjp", name, weight)
        count = len(kernel.arguments) - len(given_weights)
        given = (*self._completed("vjp", name, at, count, 1.0), *given_weights)
        found = self._checked("vjp", kernel, given)
        return found if isinstance(found, tuple) else (found,)

    def hessian(self: Model, name: str, at: Sequence[Any], weight: Any) -> Any:
        """The second derivative of weight . result with respect to all arguments together, (..., N, N).

        The arguments follow each other in the order of `compile(name)`, q with its nv tangent directions. By
        differentiating the unrolled graph: meant for small models. A batch of unit weights gives the full tensor. Parameters
        are held.
        """
        kernel = self._directional_kernel("hessian", name)
        given_weights = weights("hessian", name, weight)
        count = len(kernel.arguments) - len(given_weights)
        given = (*self._completed("hessian", name, at, count, 1.0), *given_weights)
        return self._checked("hessian", kernel, given)

    def _constrained_slope(self: Model, function: str, at: Sequence[Any]) -> Any:
        """The derivatives at (q, v, tau[, parameters])."""
        if len(at) not in (3, 4 if self.parameters else 3):
            raise ArgumentError(f"{function}: forward_dynamics takes 3 arguments, got {len(at)}")
        values = np.asarray(at[3], dtype=float) if len(at) > 3 else None
        named = (
            {n: values[..., k] for k, n in enumerate(self.parameter_values)} if values is not None else None
        )
        return self.constrained_dynamics_derivatives(*at[:3], parameters=named)

    def _completed(
        self: Model, function: str, name: str, values: Sequence[Any], count: int, scale: float
    ) -> list[Any]:
        """The arguments of an algorithm, with the parameters at their defaults when they are left out."""
        given = list(values)
        if self.parameters and len(given) == count - 1:
            given.append(scale * self._parameter_defaults)
        if len(given) != count:
            raise ArgumentError(f"{function}: {name} takes {count} arguments, got {len(given)}")
        return given

    def _directional_kernel(self: Model, mode: str, name: str) -> Kernel:
        key = (mode, name)
        if key not in self._kernels:
            if name not in PROGRAMS:
                raise ArgumentError(unknown(f"{mode}: no algorithm", name, PROGRAMS))
            if self.is_constrained and name in NEED_TREE:
                raise UnsupportedError(
                    f"{mode}: {name} of a model with loops, couplings or equations: there are jvp and vjp of "
                    "forward_dynamics alone, and constrained_dynamics_derivatives"
                )
            self._kernels[key] = _directional_kernel(self, mode, name)
        return self._kernels[key]


def _directional_kernel(model: Model, mode: str, name: str) -> Kernel:
    program, names = PROGRAMS[name]
    tree = model._tree
    inputs = kernels.arguments(model, tree, program, names)
    results = kernels.results(model, tree, program)
    tangents = [
        Argument(f"d{a.name}", (model.nv,) if k < len(names) and program.given[names[k]] == "q" else a.shape)
        for k, a in enumerate(inputs)
    ]
    if mode == "jvp":
        extra, outputs = tangents, [*results, *(Argument(f"d{r.name}", r.shape) for r in results)]
    else:
        extra, outputs = [Argument(f"weight of {r.name}", r.shape) for r in results], tangents
        if mode == "hessian":
            size = sum(a.size for a in tangents[: len(names)])
            outputs = [Argument("hessian", (size, size))]

    def build() -> Source:
        symbols = [ca.SX.sym(a.name, *a.shape) for a in [*inputs, *extra]]
        values, more = symbols[: len(inputs)], symbols[len(inputs) :]
        if not model.parameters:
            values = [*values, ca.SX(0, 1)]
            more = [*more, ca.SX(0, 1)] if mode == "jvp" else more
        if mode == "jvp":
            value, change = directional.jvp(program, tree, names, values, more)
            found = [*_split(value, results), *_split(change, results)]
        elif mode == "hessian":
            found = [directional.hessian(program, tree, names, values, _stacked(more))]
        else:
            found = directional.vjp(program, tree, names, values, _stacked(more))[: len(inputs)]
        return FunctionSource(ca.Function(f"{mode}_{name}", symbols, [ca.densify(x) for x in found]))

    key = f"{model.fingerprint}:{mode}:{name}"
    return Kernel(f"{mode}({name})", [*inputs, *extra], outputs, key=key, build=build)


def weights(function: str, name: str, weight: Any) -> tuple[Any, ...]:
    """One weight for each result of an algorithm."""
    count = len(kernels.result_names(PROGRAMS[name][0]))
    if count == 1:
        return (weight,)
    if not isinstance(weight, tuple) or len(weight) != count:
        names = ", ".join(kernels.result_names(PROGRAMS[name][0]))
        raise ArgumentError(
            f"{function}: {name} has {count} results ({names}); give a tuple of {count} weights"
        )
    return weight


def _stacked(parts: Sequence[ca.SX]) -> ca.SX:
    return ca.vertcat(*(ca.vec(part) for part in parts))


def _split(column: ca.SX, results: Sequence[Argument]) -> list[ca.SX]:
    """The results out of one column, by columns each."""
    found, start = [], 0
    for result in results:
        part = column[start : start + result.size]
        start += result.size
        found.append(ca.reshape(part, *result.shape) if len(result.shape) == 2 else part)
    return found
