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

beta, gamma and r have angular parts only. E is how the virtual motion changes the composite inertia. In (4) 2 xi is mu of a
joint with several speeds. Between these, (3) and S_vv are made symmetric: what is left of (1) there is the commutator of two
displacements, which a chart does not have, and V_P, which does not change with v.

For joints with a constant subspace whose charts are flows, q + s e + t e = q + (s + t) e, and without rotors
(`has_curvature`); springs and friction come in by differentiating the joint alone. Derived here; compare Singh, Russell
and Wensing (IEEE RA-L 7, 2022) for the whole tensors.

Reference: `hessian` of `alembert.sensitivity.products`; held equal by tests/sensitivity/test_curvature.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import casadi as ca

from alembert.joints import JointType
from alembert.sensitivity.inverse_dynamics import differentiate, gather, move_in_world
from alembert.spatial import Force, Motion
from alembert.spatial.arrays import cross, dot, identity, skew
from alembert.sweeps.dynamics import place, place_in_world
from alembert.sweeps.node import Record
from alembert.sweeps.program import Pairs, Program, inward, outward
from alembert.sweeps.tree import Tree

FLOWS = 1e-9
"""rounding, and what series for small angles leave"""


def has_curvature(tree: Tree) -> bool:
    """Whether the program is for this tree."""
    for node in tree.nodes(ca.SX.sym("p", len(tree.model.parameters))):
        q, v = ca.SX.sym("q", node.nq), ca.SX.sym("v", node.nv)
        if node.structure.rotors or node.joint.bias(q, v) is not None or not _flows(node.structure.joint):
            return False
    return True


@cache
def _flows(joint: JointType) -> bool:
    """Whether steps along the same tangent vector add up."""
    if joint.nv == 1:
        return True
    q, e = joint.neutral(), ca.SX.sym("e", joint.nv)
    start = joint.integrate(ca.SX(q), 0.3 * ca.SX(ca.DM([0.5, -0.7, 0.4, 0.9, -0.2, 0.6][: joint.nv])))
    twice, once = joint.integrate(joint.integrate(start, 0.4 * e), 0.6 * e), joint.integrate(start, e)
    off = ca.Function("off", [e], [twice - once])(ca.DM([0.3, 0.8, -0.6, 0.2, 0.5, -0.4][: joint.nv]))
    return bool(ca.norm_inf(off) < FLOWS)


def move_virtually(b: Record) -> None:
    """The virtual motion, and what it has of the momentum and of (7) in this body; `move_in_world` has gone before."""
    before = b.receive("Vh")
    b.Vh = before
    for k, J in enumerate(b.J):
        b.Vh = b.Vh + J * b.m[k]
    b.xh = [before.cross(J) for J in b.J]
    w, v, h = b.Vh.angular, b.Vh.linear, b.I.moment
    T, hv = b.I.inertia @ skew(w), h @ v.T
    b.E = T + T.T + hv + hv.T - 2 * dot(h, v) * identity(3, like=h)
    b.Uh = b.I @ b.Vh
    b.r = 2 * (b.Q.T @ w + cross(b.l, v))


def gather_virtual(b: Record) -> None:
    b.deliver(E=b.E, Uh=b.Uh, r=b.r)


def bend(b: Record) -> None:
    """(6)"""
    columns = range(b.node.nv)
    b.alpha = [b.I @ b.xh[k] + b.J[k].cross_force(b.Uh) for k in columns]
    b.gamma = [_C(b, J) for J in b.J]
    turned = [2 * (b.Q.T @ x.angular + cross(b.l, x.linear)) for x in b.xh]
    b.beta = [turned[k] + cross(b.J[k].angular, b.r) + _C(b, b.xi[k]) for k in columns]


def _C(b: Record, x: Motion) -> ca.SX:
    """(7)"""
    Uh: Force = b.Uh
    return b.E @ x.angular - cross(Uh.angular, x.angular) - 2 * cross(Uh.linear, x.linear)


def _pair(outer: Record, inner: Record) -> tuple[tuple[ca.SX, ca.SX], ...]:
    """(3)-(5)"""
    o, i = outer, inner

    def block(entry: Callable[[int, int], ca.SX]) -> ca.SX:
        rows, columns = range(o.node.nv), range(i.node.nv)
        return ca.vertcat(*(ca.horzcat(*(entry(k, j) for j in columns)) for k in rows))

    qq = block(
        lambda k, j: i.zeta[j].dot(o.alpha[k]) + i.xh[j].dot(o.Wq[k]) + dot(o.beta[k], i.xi[j].angular)
    )
    vq = block(lambda k, j: i.xh[j].dot(o.Wv[k]) + dot(o.gamma[k], i.xi[j].angular))
    vv = block(lambda k, j: dot(o.gamma[k], i.J[j].angular))
    aq = block(lambda k, j: i.xh[j].dot(o.U[k]))
    if o is i:
        qq, vv = (qq + qq.T) / 2, (vv + vv.T) / 2
        own = _own_curvature(o)
        if own is not None:
            qq, vq, vv = qq + own[0], vq + own[1], vv + own[2]
        return (qq, qq), (vq, vq), (vv, vv), (aq, aq)
    qv = block(lambda k, j: i.mu[j].dot(o.alpha[k]) + dot(o.beta[k], i.J[j].angular))
    qa = block(lambda k, j: i.J[j].dot(o.alpha[k]))
    return (qq, qq.T), (vq, qv.T), (vv, vv.T), (aq, qa.T)


def _own_curvature(b: Record) -> tuple[ca.SX, ca.SX, ca.SX] | None:
    """That of the joint's own effort: qq, vq, vv."""
    nv = b.node.nv
    q, v, e = ca.SX.sym("q", b.node.nq), ca.SX.sym("v", nv), ca.SX.sym("e", nv)
    effort = b.node.own_effort(b.node.joint.integrate(q, e), v) if b.passive else None
    if effort is None:
        return None
    H = ca.hessian(-ca.dot(b.m, effort), ca.vertcat(e, v))[0]
    H = ca.substitute(H, ca.vertcat(q, v, e), ca.vertcat(ca.densify(b.q), ca.densify(b.v), ca.SX.zeros(nv)))
    return H[:nv, :nv], H[nv:, :nv], H[nv:, nv:]


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
