"""How the tangent error between two motions changes.

For the error e = difference(q0, q) of a motion q against the nominal one q0, with speeds v0 + dv and v0,

    e' = dv + N(q0, v0) e + ...                                                     (1)

N vanishes where coordinates simply add, and is -ad(v0) on a group; here it comes from differentiating the
joint's `difference`, `integrate` and `rate`, so that a new joint type needs nothing.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from alembert.engine.kernel import Argument, Kernel
from alembert.engine.source import FunctionSource
from alembert.joints import JointType
from alembert.model import Model


def error_rate(model: Model, q: Any, v: Any) -> np.ndarray:
    """N of (1), (..., nv, nv)."""
    if all(joint.type.is_vector_space for joint in model.joints):
        batch = np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1])
        return np.zeros((*batch, model.nv, model.nv))
    if "error_rate" not in model.compute.kernels:
        model.compute.kernels["error_rate"] = _kernel(model)
    return model.compute.kernels["error_rate"](q, v)


def _kernel(model: Model) -> Kernel:
    def build() -> FunctionSource:
        q, v = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
        N = ca.SX(model.nv, model.nv)
        for joint, at_q, at_v in zip(model.joints, model._q_slices, model._v_slices, strict=True):
            if not joint.type.is_vector_space:
                N[at_v, at_v] = joint_error_rate(joint.type, q[at_q], v[at_v])
        return FunctionSource(ca.Function("error_rate", [q, v], [ca.densify(N)]))

    return Kernel(
        "error_rate",
        [Argument("q", (model.nq,)), Argument("v", (model.nv,))],
        [Argument("N", (model.nv, model.nv))],
        key=f"{model.fingerprint}:error_rate",
        build=build,
    )


def joint_error_rate(joint: JointType, q: ca.SX, v: ca.SX) -> ca.SX:
    """N of one joint: the derivative of d/dt difference(q0, q) with respect to e at e = 0."""
    q0, q1, v0, e = (
        ca.SX.sym(name, n)
        for name, n in (("q0", joint.nq), ("q1", joint.nq), ("v0", joint.nv), ("e", joint.nv))
    )
    error = joint.difference(q0, q1)
    change = ca.jtimes(error, q0, joint.rate(q0, v0)) + ca.jtimes(error, q1, joint.rate(q1, v0))
    N = ca.jacobian(ca.substitute(change, q1, joint.integrate(q0, e)), e)
    return ca.substitute([N], [q0, v0, e], [q, v, ca.SX.zeros(joint.nv)])[0]
