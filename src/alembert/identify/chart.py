"""Motions of any joints from functions of time that add.

About the neutral configuration q0 of a joint whose coordinates do not add (spherical, free), with phi in its tangent space,

    q = q0 (+) phi,     v = d/de [q (-) q_e]_(e=0),  q_e = q + e q',     a = v'                                   (1)

the exponential chart: v is what `rate` makes q' of. Where coordinates add, q = phi, v = phi' and a = phi''. Derivatives are
automatic, of the joint's own `integrate` and `difference`, so that a new joint type needs nothing.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from alembert.engine.kernel import Argument, Kernel
from alembert.engine.source import FunctionSource
from alembert.model import Model

Array = np.ndarray


def states(model: Model, phi: Array, rate: Array, second: Array) -> tuple[Array, Array, Array]:
    """(1): q (..., nq), v and a (..., nv) of phi and its derivatives, (..., nv) each."""
    if all(joint.type.is_vector_space for joint in model.joints):
        return phi, rate, second
    if "chart" not in model.compute.kernels:
        model.compute.kernels["chart"] = _kernel(model)
    q, v, a = model.compute.kernels["chart"](phi, rate, second)
    return q, v, a


def _kernel(model: Model) -> Kernel:
    def build() -> FunctionSource:
        phi, d, dd = (ca.SX.sym(name, model.nv) for name in ("phi", "d", "dd"))
        q, v = ca.SX(model.nq, 1), ca.SX(model.nv, 1)
        for joint, at_q, at_v in zip(model.joints, model._q_slices, model._v_slices, strict=True):
            kind = joint.type
            if kind.is_vector_space:
                q[at_q], v[at_v] = phi[at_v], d[at_v]
                continue
            at = kind.integrate(ca.SX(kind.neutral()), phi[at_v])
            here, there = ca.SX.sym("here", kind.nq), ca.SX.sym("there", kind.nq)
            speed = ca.jtimes(kind.difference(here, there), there, ca.jtimes(at, phi, d))
            q[at_q] = at
            v[at_v] = ca.substitute([speed], [here, there], [at, at])[0]
        a = ca.jtimes(v, phi, d) + ca.jtimes(v, d, dd)
        return FunctionSource(ca.Function("chart", [phi, d, dd], [ca.densify(x) for x in (q, v, a)]))

    n = (model.nv,)
    return Kernel(
        "chart",
        [Argument(name, n) for name in ("phi", "rate", "second")],
        [Argument("q", (model.nq,)), Argument("v", n), Argument("a", n)],
        key=f"{model.fingerprint}:chart",
        build=build,
    )
