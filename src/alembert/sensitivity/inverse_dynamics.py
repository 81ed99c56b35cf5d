"""Derivatives of inverse dynamics, first and second, in closed form, O(n depth), in world axes about the world's origin.

A displacement of joint j by a tangent vector e carries everything outboard of it by the twist eta = J_j e. Measured
relative to that carrying (o), all bodies i outboard of j change alike; V_P and A_P are the parent's, A with gravity:

    o V_i = xi,              xi = V_P x eta + Ad s                                                  (1)
    o A_i = xi x V_i + zeta,  zeta = A_P x eta + V_P x xi + V_j x Ad s + Ad t                       (2)
    o f_i = I_i zeta + 2 B_i xi,    2 B_i = V_i x* I_i - I_i V_i x + (I_i V_i) x~*                  (3)

(s, t, b_v and g from `joint_terms`). A change of speed e gives

    f_i -> I_i mu + 2 B_i eta,    mu = V_P x eta + V_j x eta + Ad b_v                               (4)

With composite I, B and F over the subtree of a node, U = I J, R = 2 B^T J, for j inboard of k:

    dtau_k/dq_j = U_k^T zeta_j + R_k^T xi_j,    dtau_j/dq_k = J_j^T (I zeta + 2 B xi + J x* F)_k    (5)
    dtau_k/dv_j = U_k^T mu_j + R_k^T J_j,       dtau_j/dv_k = J_j^T (I mu + 2 B J)_k                (6)
    dtau_k/da_j = U_k^T J_j                                                                         (7)

and dtau_k/dq_k has g besides. B has only its angular columns: for x = (w; v), B x = (Q w; w x l) with the linear momentum l
and, for a body with the moments h and I that moves with (w; v), by I w~ + w~ I = (tr(I) w - I w)~,

    Q = w~ (I - tr(I) 1 / 2) + (h.v) 1 - v h^T                                                      (8)

Rotors on P with momentum rho v_k (rho = R_P r): Q_P -= (rho v)~ / 2; for j strictly inboard of k, U_k += rho,
R_k += w_P x rho, and the force of (6) on the inboard nodes += w_P x rho.                           (9)

Sources: Carpentier and Mansard 2018; Singh, Russell and Wensing 2022, here for joints of any width and changing S.

Reference: the steps of `alembert.sweeps.dynamics`, differentiated; held equal by
tests/sensitivity/test_derivatives.py.

How a joint's subspace and own effort change with its own coordinates, by differentiating the joint alone.

With b(q, v) = (dS/dt) v and derivatives along the joint's tangent directions, all in body axes:

    s = d(S v)/dq,    t = d(S a + b)/dq,    b_v = db/dv,    g = d(S^T F)/dq at fixed F             (10)

They vanish where S is constant.

Second derivatives are contracted with weights. With S = m . tau(q, v, a), weights m as speeds of a virtual motion V^ = sum
J m, and the letters above, a displacement of joint j changes, besides (1)-(3), relative to the carrying

    o V^_i = xh_j,  xh = V^_P x J,      o xi_k = xi_j x J_k,      o zeta_k = zeta_j x J_k + 2 xi_j x xi_k    (11)

for all i and k outboard of j. With the composite virtual momentum Uh = (n; l) = sum I V^ and r = sum 2 B^T V^,

    dS/dq = xh . F + zeta . Uh + xi . r,    dS/dv = 2 xi . Uh + J . r,    dS/da = J . Uh                      (12)

Their own changes by (11), for j inboard of k (or k itself), are products of what j has and what k has:

    S_{q_k q_j} = alpha_k . zeta_j + Wq_k . xh_j + beta_k . xi_j                                             (13)
    S_{v_k q_j} = Wv_k . xh_j + gamma_k . xi_j,    S_{q_k v_j} = 2 alpha_k . xi_j + beta_k . J_j             (14)
    S_{v_k v_j} = gamma_k . J_j,    S_{a_k q_j} = U_k . xh_j,    S_{q_k a_j} = alpha_k . J_j                 (15)
    alpha = I xh + J x* Uh,    gamma = C(J),    beta = 2 B^T xh + J x* r + C(xi)                             (16)
    C(w; v) = E w - n x w - 2 l x v,    E = sum T^ + T^^T + h v^^T + v^ h^T - 2 (h . v^) 1,  T^ = I w^~      (17)

beta, gamma and r have angular parts only. E is how the virtual motion changes the composite inertia. In (14) 2 xi is mu of
a joint with several speeds. Between these, (13) and S_vv are made symmetric: what is left of (11) there is the commutator of
two displacements, which a chart does not have, and V_P, which does not change with v.

For joints with a constant subspace whose charts are flows, q + s e + t e = q + (s + t) e, and without rotors
(`has_curvature`); springs and friction come in by differentiating the joint alone. Derived here; compare Singh, Russell
and Wensing (IEEE RA-L 7, 2022) for the whole tensors.

Reference: `hessian` of `alembert.sensitivity.products`; held equal by tests/sensitivity/test_curvature.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import casadi as ca

from alembert.joints import JointType
from alembert.spatial import Force, Motion, Pose
from alembert.spatial.arrays import cross, dot, identity, skew
from alembert.sweeps.dynamics import place, place_in_world
from alembert.sweeps.node import Node, Record
from alembert.sweeps.program import Extent, Pairs, Program, inward, outward
from alembert.sweeps.tree import Tree


@dataclass(frozen=True, eq=False)
class SubspaceTerms:
    """The terms (10)."""

    s: ca.SX
    t: ca.SX
    b_v: ca.SX
    g: ca.SX


def subspace_terms(node: Node, q: ca.SX, v: ca.SX, a: ca.SX, F: ca.SX) -> SubspaceTerms | None:
    """(10) for the force F on the body; None where S is constant."""
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


def move_in_world(b: Record) -> None:
    """Columns, velocity, acceleration and inertia in the world."""
    X, S = b.X_W, b.S
    b.J = [X.motion(Motion.from_vector(S[:, k])) for k in range(b.node.nv)]
    relative = _combine(b.J, b.v)
    b.V = b.receive("V") + relative
    b.A = b.receive("A") + _combine(b.J, b.a) + b.V.cross(relative)
    bias = b.node.joint.bias(b.q, b.v)
    if bias is not None:
        b.A = b.A + X.motion(Motion.from_vector(bias))
    I = b.node.inertia.transform(X)
    momentum = I @ b.V
    b.I, b.l = I, momentum.linear
    b.F = I @ b.A + b.V.cross_force(momentum) - X.force(Force.from_vector(b.wrench))
    w, v, h = b.V.angular, b.V.linear, I.moment
    one = identity(3, like=h)
    b.Q = skew(w) @ (I.inertia - ca.trace(I.inertia) / 2 * one) + dot(h, v) * one - v @ h.T  # (8)
    if b.node.structure.rotors and b.is_offered("Q"):
        b.rho = b.receive("X_W").rotation @ b.node.rotor_momentum


def gather(b: Record) -> None:
    if b.has("rho"):
        n = b.rho @ b.a + cross(b.receive("V").angular, b.rho @ b.v)
        b.deliver(F=Force(n, ca.SX(3, 1)), Q=-skew(b.rho @ b.v) / 2)
    b.deliver(I=b.I, l=b.l, F=b.F, Q=b.Q)


def exert(b: Record) -> None:
    """The effort itself, as in `alembert.sweeps.dynamics` (6), (8)."""
    effort = ca.vertcat(*(column.dot(b.F) for column in b.J))
    reflected = b.node.reflected_inertia
    if reflected is not None:
        effort = effort + reflected @ b.a
    if b.has("rho"):
        effort = effort + b.rho.T @ b.receive("A").angular
    own = b.own_effort()
    b.tau = effort if own is None else effort - own


def differentiate(b: Record) -> None:
    """Everything that the pairs need of one node, (1)-(6)."""
    V_P, A_P, J, nv = b.receive("V"), b.receive("A"), b.J, b.node.nv
    b.xi = [V_P.cross(column) for column in J]
    b.mu = [x + b.V.cross(column) if nv > 1 else 2 * x for x, column in zip(b.xi, J, strict=True)]
    b.zeta = [A_P.cross(column) for column in J]
    terms = subspace_terms(b.node, b.q, b.v, b.a, b.X_W.force_inverse(b.F).vector())
    b.g = None
    if terms is not None:
        b.g = terms.g
        s, t, b_v = (_motions(b.X_W, x) for x in (terms.s, terms.t, terms.b_v))
        b.xi = [x + y for x, y in zip(b.xi, s, strict=True)]
        b.mu = [V_P.cross(J[k]) + b.V.cross(J[k]) + b_v[k] for k in range(nv)]
        b.zeta = [b.zeta[k] + b.V.cross(s[k]) + t[k] for k in range(nv)]
    b.zeta = [x + V_P.cross(y) for x, y in zip(b.zeta, b.xi, strict=True)]
    b.U = [b.I @ column for column in J]
    b.R = [2 * (b.Q.T @ column.angular + cross(b.l, column.linear)) for column in J]
    b.Wq = [b.I @ b.zeta[k] + _two_B(b, b.xi[k]) + J[k].cross_force(b.F) for k in range(nv)]
    b.Wv = [b.I @ b.mu[k] + _two_B(b, J[k]) for k in range(nv)]
    if b.has("rho"):
        b.spin = [cross(V_P.angular, b.rho[:, k]) for k in range(nv)]
        b.Wv = [x + Force(s, ca.SX(3, 1)) for x, s in zip(b.Wv, b.spin, strict=True)]


_ORDER = (
    *(("xi", r) for r in range(3)),
    *((name, r) for name in ("mu", "zeta", "J") for r in range(6)),
    *((name, r) for r in range(6) for name in ("U", "Wv", "Wq", "R") if name != "R" or r < 3),
)
"""of the rows in a table: those that share factors follow each other, so that these stay in the registers"""
ROWS = {name: [k for k, (other, _) in enumerate(_ORDER) if other == name] for name, _ in _ORDER}
ROW_COUNT = len(_ORDER)


def tabulate(b: Record) -> None:
    """All that (5)-(7) and (9) multiply, a column for each speed; and the blocks of the joint with itself."""
    U, R = _coupling(b)
    columns = []
    for k in range(b.node.nv):
        parts = {name: x[k].vector() for name, x in (("J", b.J), ("zeta", b.zeta), ("mu", b.mu), ("U", U))}
        parts |= {"xi": b.xi[k].angular, "R": R[k], "Wq": b.Wq[k].vector(), "Wv": b.Wv[k].vector()}
        columns.append(ca.vertcat(*(parts[name][r] for name, r in _ORDER)))
    b.terms = ca.horzcat(*columns)
    b.blocks = [block for block, _ in _pair(b, b)]


BELOW = {
    "dq": (("U", "zeta", 6), ("R", "xi", 3)),
    "dv": (("U", "mu", 6), ("R", "J", 3)),
    "da": (("U", "J", 6),),
}
"""(5)-(7) for rows k, columns j: the rows of k and of j to multiply, and how many"""
ABOVE = {"dq": ("J", "Wq", 6), "dv": ("J", "Wv", 6), "da": ("J", "U", 6)}
"""for rows j, columns k: the rows of j and of k"""


def _coupling(b: Record) -> tuple[list[Force], list[ca.SX]]:
    """U and R as the nodes strictly inboard see them, (9)."""
    if not b.has("rho"):
        return b.U, b.R
    U = [Force(u.angular + b.rho[:, k], u.linear) for k, u in enumerate(b.U)]
    return U, [r + s for r, s in zip(b.R, b.spin, strict=True)]


def _pair(outer: Record, inner: Record) -> tuple[tuple[ca.SX, ca.SX], ...]:
    """(5)-(7), (9)"""
    same = outer is inner
    U, R = (outer.U, outer.R) if same else _coupling(outer)
    rows, columns = range(outer.node.nv), range(inner.node.nv)
    dq = [[inner.zeta[j].dot(U[k]) + dot(R[k], inner.xi[j].angular) for j in columns] for k in rows]
    dv = [[inner.mu[j].dot(U[k]) + dot(R[k], inner.J[j].angular) for j in columns] for k in rows]
    da = [[inner.J[j].dot(U[k]) for j in columns] for k in rows]
    below = [_matrix(x) for x in (dq, dv, da)]
    if same:
        return tuple((x, x) for x in _own_terms(outer, below))
    dq_above = [[inner.J[j].dot(outer.Wq[k]) for k in rows] for j in columns]
    dv_above = [[inner.J[j].dot(outer.Wv[k]) for k in rows] for j in columns]
    return tuple(zip(below, (_matrix(dq_above), _matrix(dv_above), below[2].T), strict=True))


def _own_terms(b: Record, blocks: list[ca.SX]) -> list[ca.SX]:
    """What only the diagonal blocks have: g, the joint's own effort, reflected inertia."""
    dq, dv, da = blocks
    if b.g is not None:
        dq = dq + b.g
    own = own_effort_derivatives(b.node, b.q, b.v) if b.passive else None
    if own is not None:
        dq, dv = dq - own[0], dv - own[1]
    reflected = b.node.reflected_inertia
    return [dq, dv, da if reflected is None else da + reflected]


def _two_B(b: Record, x: Motion) -> Force:
    """(8)"""
    w = 2 * x.angular
    return Force(b.Q @ w, cross(w, b.l))


def _combine(columns: list[Motion], values: ca.SX) -> Motion:
    total = columns[0] * values[0]
    for k, column in enumerate(columns[1:], start=1):
        total = total + column * values[k]
    return total


def _motions(X: Pose, columns: ca.SX) -> list[Motion]:
    return [X.motion(Motion.from_vector(columns[:, k])) for k in range(columns.shape[1])]


def _matrix(rows: list[list[ca.SX]]) -> ca.SX:
    return ca.vertcat(*(ca.horzcat(*row) for row in rows))


_GIVEN: dict[str, Extent] = {"q": "q", "v": "v", "a": "v", "wrench": "node6"}
_SWEEPS = (
    outward(place),
    outward(place_in_world),
    outward(move_in_world),
    inward(gather),
    inward(differentiate),
)
INVERSE_DYNAMICS_TERMS = Program(
    "inverse_dynamics_terms",
    _GIVEN,
    (*_SWEEPS, inward(tabulate)),
    {"terms": "table", "blocks": "own"},
)
"""what the derivatives are made of, for `alembert.lowering.tree_matrices`"""
INVERSE_DYNAMICS_DERIVATIVES = Program(
    "inverse_dynamics_derivatives",
    _GIVEN,
    _SWEEPS,
    pairs=Pairs(("dq", "dv", "da"), _pair),
)
INVERSE_DYNAMICS_AND_DERIVATIVES = Program(
    "inverse_dynamics_and_derivatives",
    _GIVEN,
    (*_SWEEPS, inward(exert)),
    {"tau": "v"},
    pairs=Pairs(("dq", "dv", "da"), _pair),
)


FLOWS = 1e-9
"""rounding, and what series for small angles leave"""


def has_curvature(tree: Tree) -> bool:
    """Whether the program is for this tree."""
    for node in tree.nodes(tree.parameter_symbols):
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
    """The virtual motion, and what it has of the momentum and of (17) in this body; `move_in_world` has gone before."""
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
    """(16)"""
    columns = range(b.node.nv)
    b.alpha = [b.I @ b.xh[k] + b.J[k].cross_force(b.Uh) for k in columns]
    b.gamma = [_C(b, J) for J in b.J]
    turned = [2 * (b.Q.T @ x.angular + cross(b.l, x.linear)) for x in b.xh]
    b.beta = [turned[k] + cross(b.J[k].angular, b.r) + _C(b, b.xi[k]) for k in columns]


def _C(b: Record, x: Motion) -> ca.SX:
    """(17)"""
    Uh: Force = b.Uh
    return b.E @ x.angular - cross(Uh.angular, x.angular) - 2 * cross(Uh.linear, x.linear)


def _pair_curvature(outer: Record, inner: Record) -> tuple[tuple[ca.SX, ca.SX], ...]:
    """(13)-(15)"""
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
    pairs=Pairs(("qq", "vq", "vv", "aq"), _pair_curvature),
)
