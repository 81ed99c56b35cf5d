"""Second derivatives of inverse dynamics, contracted with weights, in closed form: O(n depth).

With S = m . tau(q, v, a), weights m as speeds of a virtual motion V^ = sum J m, and the letters of
`alembert.sensitivity.inverse_dynamics`, a displacement of joint j changes, besides its (1)-(3), relative to the carrying

    o V^_i = xh_j,  xh = V^_P x J,      o xi_k = xi_j x J_k,      o zeta_k = zeta_j x J_k + 2 xi_j x xi_k    (1)

for all i and k outboard of j. With the composite virtual momentum Uh = (n; l) = sum I V^ and r = sum 2 B^T V^,

    dS/dq = xh . F + zeta . Uh + xi . r,    dS/dv = 2 xi . Uh + J . r,    dS/da = J . Uh                      (2)

Their own changes by (1), for j inboard of k (or k itself), are products of what j has and what k has:

    S_{q_k q_j} = alpha_k . zeta_j + Wq_k . xh_j + beta_k . xi_j                                             (3)
    S_{v_k q_j} = Wv_k . xh_j + gamma_k . xi_j,    S_{q_k v_j} = 2 alpha_k . xi_j + beta_k . J_j             (4)
    S_{v_k v_j} = gamma_k . J_j,    S_{a_k q_j} = U_k . xh_j,    S_{q_k a_j} = alpha_k . J_j                 (5)
    alpha = I xh + J x* Uh,    gamma = C(J),    beta = 2 B^T xh + J x* r + C(xi)                             (6)
    C(w; v) = E w - n x w - 2 l x v,    E = sum T^ + T^^T + h v^^T + v^ h^T - 2 (h . v^) 1,  T^ = I w^~      (7)

beta, gamma and r have angular parts only. E is how the virtual motion changes the composite inertia. For joints with
one speed along a fixed axis, and without rotors (`has_curvature`); springs and friction come in by differentiating the
joint alone. Derived here; compare Singh, Russell and Wensing (IEEE RA-L 7, 2022) for the whole tensors.
"""

from __future__ import annotations

import casadi as ca

from alembert.sensitivity.inverse_dynamics import differentiate, gather, move_in_world
from alembert.spatial import Force, Motion
from alembert.spatial.arrays import cross, dot, identity, skew
from alembert.sweeps.kinematics import place, place_in_world
from alembert.sweeps.program import Pairs, Program, Record, inward, outward
from alembert.sweeps.tree import Tree


def has_curvature(tree: Tree) -> bool:
    """Whether the program is for this tree."""
    for node in tree.nodes(ca.SX.sym("p", len(tree.model.parameters))):
        q, v = ca.SX.sym("q", node.nq), ca.SX.sym("v", node.nv)
        if node.nq != 1 or node.nv != 1 or node.structure.rotors or node.joint.bias(q, v) is not None:
            return False
    return True


def move_virtually(b: Record) -> None:
    """The virtual motion, and what it has of the momentum and of (7) in this body; `move_in_world` has gone before."""
    zero = ca.SX(3, 1)
    before = b.parent.Vh if b.parent.has("Vh") else Motion(zero, zero)
    J, I = b.J[0], b.I
    b.Vh = before + J * b.m[0]
    b.xh = before.cross(J)
    w, v, h = b.Vh.angular, b.Vh.linear, I.moment
    T, hv = I.inertia @ skew(w), h @ v.T
    b.E = T + T.T + hv + hv.T - 2 * dot(h, v) * identity(3, like=h)
    b.Uh = I @ b.Vh
    b.r = b.Q.T @ w + 2 * cross(b.h.linear, v)


def gather_virtual(b: Record) -> None:
    if b.parent.has("E"):
        b.parent.add(E=b.E, Uh=b.Uh, r=b.r)


def bend(b: Record) -> None:
    """(6)"""
    J, xi = b.J[0], b.xi[0]
    b.alpha = b.I @ b.xh + J.cross_force(b.Uh)
    b.gamma = _C(b, J)
    b.beta = b.Q.T @ b.xh.angular + 2 * cross(b.h.linear, b.xh.linear) + cross(J.angular, b.r) + _C(b, xi)


def _C(b: Record, x: Motion) -> ca.SX:
    """(7)"""
    Uh: Force = b.Uh
    return b.E @ x.angular - cross(Uh.angular, x.angular) - 2 * cross(Uh.linear, x.linear)


def _pair(outer: Record, inner: Record) -> tuple[tuple[ca.SX, ca.SX], ...]:
    """(3)-(5)"""
    J, xi, zeta, xh = inner.J[0], inner.xi[0], inner.zeta[0], inner.xh
    qq = zeta.dot(outer.alpha) + xh.dot(outer.Wq[0]) + dot(outer.beta, xi.angular)
    vq = xh.dot(outer.Wv[0]) + dot(outer.gamma, xi.angular)
    qv = 2 * xi.dot(outer.alpha) + dot(outer.beta, J.angular)
    vv = dot(outer.gamma, J.angular)
    aq, qa = xh.dot(outer.U[0]), J.dot(outer.alpha)
    if outer is inner:
        own = _own_curvature(outer)
        if own is not None:
            qq, vq, vv = qq + own[0], vq + own[1], vv + own[2]
    return (qq, qq), (vq, qv), (vv, vv), (aq, qa)


def _own_curvature(b: Record) -> tuple[ca.SX, ca.SX, ca.SX] | None:
    """That of the joint's own effort: qq, vq, vv."""
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    effort = b.node.own_effort(q, v) if b.passive else None
    if effort is None:
        return None
    H = ca.hessian(-b.m * effort, ca.vertcat(q, v))[0]
    H = ca.substitute(H, ca.vertcat(q, v), ca.vertcat(ca.densify(b.q), ca.densify(b.v)))
    return H[0, 0], H[1, 0], H[1, 1]


INVERSE_DYNAMICS_CURVATURE = Program(
    "inverse_dynamics_curvature",
    {"q": "q", "v": "v", "a": "v", "m": "v", "wrench": "node6"},
    (
        outward(place),
        outward(place_in_world),
        outward(move_in_world),
        outward(move_virtually),
        inward(gather),
        inward(gather_virtual),
        inward(differentiate),
        inward(bend),
    ),
    pairs=Pairs(("qq", "vq", "vv", "aq"), _pair),
)
