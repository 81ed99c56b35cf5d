"""How a joint's subspace and own effort change with its own coordinates, by differentiating the joint alone.

With b(q, v) = (dS/dt) v and derivatives along the joint's tangent directions, all in body axes:

    s = d(S v)/dq,    t = d(S a + b)/dq,    b_v = db/dv,    g = d(S^T F)/dq at fixed F             (1)

They vanish where S is constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from alembert.sweeps.node import Node


@dataclass(frozen=True, eq=False)
class SubspaceTerms:
    """The terms (1)."""

    s: ca.SX
    t: ca.SX
    b_v: ca.SX
    g: ca.SX


def subspace_terms(node: Node, q: ca.SX, v: ca.SX, a: ca.SX, F: ca.SX) -> SubspaceTerms | None:
    """(1) for the force F on the body; None where S is constant."""
    x, y, z, f = (
        ca.SX.sym(name, n) for name, n in (("q", node.nq), ("v", node.nv), ("a", node.nv), ("F", 6))
    )
    S, bias = node.joint.subspace(x), node.joint.bias(x, y)
    if bias is None:
        return None
    terms = [
        ca.jacobian(S @ y, x),
        ca.jacobian(S @ z + bias, x),
        ca.jacobian(bias, y),
        ca.jacobian(S.T @ f, x),
    ]
    return SubspaceTerms(*ca.substitute(terms, [x, y, z, f], [ca.densify(t) for t in (q, v, a, F)]))


def own_effort_derivatives(node: Node, q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX] | None:
    """d own/dq (tangent) and d own/dv; None where the joint has neither spring nor friction."""
    x, y, e = ca.SX.sym("q", node.nq), ca.SX.sym("v", node.nv), ca.SX.sym("e", node.nv)
    effort = node.own_effort(node.joint.integrate(x, e), y)
    if effort is None:
        return None
    dq, dv = ca.substitute(
        [ca.jacobian(effort, e), ca.jacobian(effort, y)],
        [x, y, e],
        [ca.densify(q), ca.densify(v), ca.SX.zeros(node.nv)],
    )
    return dq, dv
