"""The configuration manifold in tangent coordinates: the chart q = integrate(q0, e) about a configuration q0.

With body velocities v, and T(e) the inverse of the right Jacobian of the exponential map,

    e' = T(e) v                                                                     (1)

T is 1 where configurations simply add. It follows from the joint's own `difference` and `rate` by
differentiation, and does not depend on q0 since displacements are those of a group.
"""

from __future__ import annotations

from typing import Any, Protocol

import casadi as ca
import numpy as np

from alembert.algorithms import manifold
from alembert.engine.codegen import FunctionSource
from alembert.engine.kernel import Argument, Kernel
from alembert.joints import JointType
from alembert.model import Model


class Manifold(Protocol):
    """What the schemes need of the configurations; on arrays or on expressions."""

    def integrate(self, q: Any, e: Any) -> Any: ...

    def difference(self, q0: Any, q1: Any) -> Any: ...

    def chart_rate(self, e: Any, v: Any) -> Any:
        """(1)"""
        ...


class SymbolicManifold:
    """On `SX`."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._integrate = manifold.function(model, "integrate")
        self._difference = manifold.function(model, "difference")

    def integrate(self, q: ca.SX, e: ca.SX) -> ca.SX:
        return self._integrate(q, e)

    def difference(self, q0: ca.SX, q1: ca.SX) -> ca.SX:
        return self._difference(q0, q1)

    def chart_rate(self, e: ca.SX, v: ca.SX) -> ca.SX:
        parts = [
            _chart_rate(joint.type, e[s], v[s])
            for joint, s in zip(self.model.joints, self.model._v_slices, strict=True)
        ]
        return ca.vertcat(ca.SX(0, 1), *parts)

    def chart_rate_transposed(self, e: ca.SX, p: ca.SX) -> ca.SX:
        """T(e)^T p."""
        v = ca.SX.sym("v", self.model.nv)
        return ca.substitute(ca.jtimes(self.chart_rate(e, v), v, p, True), v, ca.SX.zeros(self.model.nv))

    def chart_jacobian(self, e: ca.SX) -> ca.SX:
        """T(e)^-1: the tangent displacement of q for a change of e, (nv x nv)."""
        blocks = [
            _chart_jacobian(joint.type, e[s])
            for joint, s in zip(self.model.joints, self.model._v_slices, strict=True)
        ]
        return ca.diagcat(*blocks) if blocks else ca.SX(0, 0)


class NumericManifold:
    """On arrays (..., nq) and (..., nv)."""

    def __init__(self, model: Model) -> None:
        self.integrate = model.integrate
        self.difference = model.difference
        self.chart_rate = chart_kernel(model, "chart_rate")


def chart_kernel(model: Model, name: str) -> Kernel:
    """`chart_rate` (e, v), or `chart_derivatives` (e, v): d(T v)/de, T and T^-1."""
    key = ("simulate", name)
    if key not in model.compute.kernels:
        nv = model.nv

        def build() -> FunctionSource:
            e, v = ca.SX.sym("e", nv), ca.SX.sym("v", nv)
            m = SymbolicManifold(model)
            rate = m.chart_rate(e, v)
            found = [rate]
            if name == "chart_derivatives":
                found = [ca.jacobian(rate, e), ca.jacobian(rate, v), m.chart_jacobian(e)]
            return FunctionSource(ca.Function(name, [e, v], [ca.densify(x) for x in found]))

        square = [Argument(label, (nv, nv)) for label in ("rate_e", "rate_v", "jacobian")]
        results = [Argument("rate", (nv,))] if name == "chart_rate" else square
        arguments = [Argument("e", (nv,)), Argument("v", (nv,))]
        model.compute.kernels[key] = Kernel(
            name, arguments, results, key=f"{model.fingerprint}:{name}", build=build
        )
    return model.compute.kernels[key]


def curved(model: Model) -> np.ndarray:
    """The speeds of joints whose configurations do not simply add."""
    found = np.zeros(model.nv, dtype=bool)
    for joint, s in zip(model.joints, model._v_slices, strict=True):
        found[s] = not joint.type.is_vector_space
    return found


def _chart_rate(joint: JointType, e: ca.SX, v: ca.SX) -> ca.SX:
    if joint.is_vector_space:
        return v
    neutral = ca.SX(joint.neutral())
    q = ca.SX.sym("q", joint.nq)
    rate = ca.jtimes(joint.difference(neutral, q), q, joint.rate(q, v))
    return ca.substitute(rate, q, joint.integrate(neutral, e))


def _chart_jacobian(joint: JointType, e: ca.SX) -> ca.SX:
    if joint.is_vector_space:
        return ca.SX.eye(joint.nv)
    q, x = ca.SX.sym("q", joint.nq), ca.SX.sym("x", joint.nv)
    neutral = ca.SX(joint.neutral())
    moved = joint.difference(q, joint.integrate(neutral, x))
    jacobian = ca.substitute(ca.jacobian(moved, x), q, joint.integrate(neutral, e))
    return ca.substitute(jacobian, x, e)
