"""Products with the Jacobians of inverse, forward and hybrid dynamics in closed form, in O(n).

A displacement of a joint by the tangent vector dq carries its body by eta = S dq, so that what the body's axes see of the
parent's motion changes by V' x eta with V' = Ad(X_PB)^-1 V_P, and what the parent feels of a force F by eta x* F. With
the changes s, t, b_v, g of the joint's subspace (`alembert.sensitivity.inverse_dynamics`; zero where S is constant), the
tangent of inverse dynamics is, outward and then inward,

    dV = Ad^-1 dV_P + V' x eta + u,    u = S dv + s dq                                              (1)
    zeta = Ad^-1 zeta_P + A' x eta + V' x (V' x eta + u) + V x u + S da + t dq + b_v dv             (2)
    df = M zeta + 2 B dV - d wrench,   2 B dV = 2 (h x (dw x v) - w x K dw; dw x l)                 (3)
    dtau = S^T df + g dq + J_r da - d own,    df_P += Ad^-T (df + eta x* f)                         (4)

where zeta = dA - dV x V. 2 B is that of (3) and (8) in `alembert.sensitivity.inverse_dynamics`, with K = tr(I) 1 / 2 - I by
I w~ + w~ I = (2 K w + I w)~; h is the first moment, l the linear momentum. It takes the angular part dw of dV only, so that
is all of (1) that is computed.

Its adjoint, for weights m of the efforts, needs the power of the forces in the virtual motion Vh that m gives the bodies,
Vh = Ad^-1 Vh_P + S m. Inward, with f the force across the joint, G and (H; 0) the gradients with respect to zeta and dV,

    G = M Vh + sum Ad^-T G_c,   H = 2 (K (w x wh) + v x lh + vh x (h x w)) + sum R H_c              (5)
    da = S^T G + J_r m,   dv = S^T k + b_v^T G - (d own/dv)^T m,   k = (H; 0) - (V' + V) x* G       (6)
    dq = s^T k + t^T G + g^T m - (d own/dq)^T m                                                     (7)
         - S^T (A' x* G + V' x* ((H; 0) - V' x* G) + Vh' x* f)

with lh the linear momentum of Vh, and minus Vh with respect to the wrench. Rotors on the parent (r is 3 x nv) add r^T w'_P
to tau and r a + w_P x r v to the moment on P.

Forward dynamics needs no derivatives of its own sweep: the change of the accelerations, and the weight of the efforts, are
solutions with the mass matrix, which the articulated sweep has already factorised,

    da = M^-1 (dtau - (4) at da = 0),      m = -M^-1 weight                                         (8)

and with these m (6) and (7) are the gradients of weight . a; that with respect to tau is -m. In hybrid dynamics (8) holds
for the free speeds: the changes of the prescribed accelerations go into (2), the weights of the efforts that they take are
the m of their speeds, and the gradient with respect to them is weight + da of (6).

Compare Sohl and Bobrow (2001), whose tangent is along single coordinates. The adjoint is derived here.

Reference: `alembert.sensitivity.traces` and `adjoint_traces`, which differentiate the steps themselves; held equal by
tests/sensitivity/test_products.py.

Derivatives of any algorithm along directions: tangent sweeps and their adjoints.

Differentiating the unrolled sweeps gives sweeps again: the derivative of each step, run in the same order (forward mode,
Sohl and Bobrow's algorithm of 2001 for any direction) or in the opposite one (reverse mode). A Jacobian-vector
product costs a small multiple of the algorithm itself, whatever the number of directions that the vector mixes.

Second derivatives are for exact Hessians: contracted with a weight, at the cost of one gradient per direction.

Directions of configurations are tangent: with q' = T(q) dq, the matrix of `Space.rate`,

    jvp = df/dq T dq + df/dv dv + ...,      vjp = (T^T (df/dq)^T, (df/dv)^T, ...) lambda       (9)

An algorithm is a CasADi function; `turned` says which of its inputs are configurations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import casadi as ca

from alembert.sensitivity.inverse_dynamics import own_effort_derivatives, subspace_terms
from alembert.sensitivity.traces import weight_of
from alembert.spatial import Force, Motion, RigidInertia
from alembert.spatial.arrays import cross
from alembert.sweeps.dynamics import (
    FORWARD_DYNAMICS,
    HYBRID_DYNAMICS,
    INVERSE_DYNAMICS,
    accelerate,
    begin,
    eliminate,
    move,
    newton_euler,
    place,
    project,
    respond,
    transmit_force,
    unit_columns,
)
from alembert.sweeps.node import Record
from alembert.sweeps.program import Extent, Program, Sweep, inward, outward
from alembert.sweeps.tree import Tree


def stacked(parts: Sequence[ca.SX]) -> ca.SX:
    """Several matrices, each by columns, as one column."""
    return ca.vertcat(ca.SX(0, 1), *(ca.vec(ca.densify(part)) for part in parts))


def results(function: ca.Function, inputs: Sequence[ca.SX]) -> ca.SX:
    """All results as one column."""
    found = function(*inputs)
    return stacked(found if isinstance(found, tuple) else (found,))


def jvp(
    function: ca.Function,
    tree: Tree,
    turned: Sequence[bool],
    inputs: Sequence[ca.SX],
    directions: Sequence[ca.SX],
) -> tuple[ca.SX, ca.SX]:
    """The results as one column, and their derivative along `directions`, one per input (symbols)."""
    value = results(function, inputs)
    moved = [
        tree.model.space.rate(x, d) if is_q else d
        for x, d, is_q in zip(inputs, directions, turned, strict=True)
    ]
    return value, ca.jtimes(value, stacked(inputs), stacked(moved))


def vjp(
    function: ca.Function, tree: Tree, turned: Sequence[bool], inputs: Sequence[ca.SX], weight: ca.SX
) -> list[ca.SX]:
    """The gradient of weight . results with respect to every input (symbols), tangent for configurations."""
    total = ca.jtimes(results(function, inputs), stacked(inputs), weight, True)
    gradients = ca.vertsplit(total, [0, *accumulate(x.numel() for x in inputs)])
    found = []
    for x, gradient, is_q in zip(inputs, gradients, turned, strict=True):
        if is_q:
            dq = ca.SX.sym("dq", tree.model.nv)
            found.append(ca.jtimes(tree.model.space.rate(x, dq), dq, gradient, True))
        else:
            found.append(ca.reshape(gradient, *x.shape))
    return found


def hessian(
    function: ca.Function,
    tree: Tree,
    turned: Sequence[bool],
    inputs: Sequence[ca.SX],
    weight: ca.SX,
    held: int = 0,
) -> ca.SX:
    """The second derivative of weight . results with respect to all inputs together (e of q + e for configurations).

    The last `held` inputs are left out.
    """
    count = len(inputs) - held
    steps, moved = [], []
    for x, is_q in zip(inputs[:count], turned, strict=False):
        step = ca.SX.sym("step", *((tree.model.nv, 1) if is_q else x.shape))
        steps.append(step)
        moved.append(ca.densify(tree.model.space.integrate(x, step) if is_q else x + step))
    total = ca.dot(results(function, [*moved, *inputs[count:]]), weight)
    along = stacked(steps)
    H, _ = ca.hessian(total, along)
    return ca.substitute(H, along, ca.SX.zeros(along.numel()))


def tangent(
    program: Program, given: Sequence[str], *, parameters: bool = False
) -> tuple[Program, tuple[str, ...]] | None:
    """A program for results and their changes (d + name), and its inputs: those `given` and their directions (d + name).

    None where there is none: for other programs, and where `parameters` change too.
    """
    sweeps = _TANGENTS.get(program.sweeps)
    if sweeps is None or parameters:
        return None
    inputs: dict[str, Extent] = dict(program.given)
    inputs |= {f"d{name}": _tangent(extent) for name, extent in program.given.items()}
    result: dict[str, Extent] = dict(program.result)
    result |= {f"d{name}": extent for name, extent in program.result.items()}
    found = replace(program, name=f"tangent_{program.name}", given=inputs, sweeps=sweeps, result=result)
    return found, (*given, *(f"d{name}" for name in given))


def adjoint(
    program: Program, given: Sequence[str], *, parameters: bool = False
) -> tuple[Program, tuple[str, ...]] | None:
    """A program for the gradients (d + name) with respect to the inputs `given`, and its inputs: these and the weights.

    None as for `tangent`.
    """
    sweeps = _ADJOINTS.get(program.sweeps)
    if sweeps is None or parameters:
        return None
    inputs: dict[str, Extent] = dict(program.given)
    inputs |= {weight_of(name): extent for name, extent in program.result.items()}
    result = {f"d{name}": _tangent(program.given[name]) for name in given}
    found = replace(program, name=f"adjoint_{program.name}", given=inputs, sweeps=sweeps, result=result)
    return found, (*given, *(weight_of(name) for name in program.result))


def _spread(M: RigidInertia) -> ca.SX:
    """tr(I) 1 / 2 - I, the second moments of the mass."""
    return ca.trace(M.inertia) / 2 * ca.SX.eye(3) - M.inertia


def _tangent(extent: Extent) -> Extent:
    return "v" if extent == "q" else extent


# -- the solution with the mass matrix ---------------------------------------------------------------------------


def eliminate_load(b: Record) -> None:
    """(10)-(12) of `alembert.sweeps.dynamics` for the effort `load` and the bias force `y`; `eliminate` went before.

    `held` are accelerations of speeds that are not free; `carried` and `shed` (in the parent's axes) go to the parent
    besides.
    """
    S, load = b.S, b.load
    y = b.y.vector()
    hybrid, r = b.has("free"), b.node.rotor_momentum
    if b.has("held"):
        y = y + b.P.columns(S) @ b.held
    e = load - S.T @ y
    b.m_ready = b.factor.solve(b.free * e if hybrid else e)
    if r is None:
        out = y + b.U @ b.m_ready
        if not hybrid and b.node.reflected_inertia is None:
            for k, row in unit_columns(S):
                out[row] = load[k]
    else:
        out = y
    if b.has("carried"):
        out = out + b.carried.vector()
    back = b.X.force(Force.from_vector(out))
    if r is not None:
        back = back + Force.from_vector(b.U_P @ b.m_ready)
        if b.has("held"):
            back = back + Force(r @ b.held, ca.SX(3, 1))
    b.deliver(y=back + b.shed if b.has("shed") else back)


def respond_to_load(b: Record) -> None:
    """(5) there."""
    Vh_P = b.receive("Vh")
    b.Vh_in = b.X.motion_inverse(Vh_P)
    before = b.Vh_in if b.node.rotor_momentum is None else Vh_P
    b.m = b.m_ready - b.W @ before.vector()
    if b.has("held"):
        b.m = b.m + b.held
    b.Vh = b.Vh_in + Motion.from_vector(b.S @ b.m)


# -- tangent -----------------------------------------------------------------------------------------------------


def hold(b: Record) -> None:
    """The accelerations that stay, or change as prescribed."""
    b.da_held = (1 - b.free) * b.da_given if b.has("free") else ca.SX(b.node.nv, 1)


def hold_all(b: Record) -> None:
    b.da_held = b.da


def vary(b: Record) -> None:
    """(1)-(3)"""
    S = b.S
    b.eta = Motion.from_vector(S @ b.dq)
    u, more = S @ b.dv, S @ b.da_held
    terms = subspace_terms(b.node, b.q, b.v, b.a, ca.SX(6, 1))
    if terms is not None:
        u = u + terms.s @ b.dq
        more = more + terms.t @ b.dq + terms.b_v @ b.dv
    change = Motion.from_vector(u)
    turn = b.V_in.cross(b.eta) + change
    b.dw = b.X.rotation.T @ b.receive("dw") + turn.angular
    b.zeta = b.X.motion_inverse(b.receive("zeta")) + b.A_in.cross(b.eta) + b.V_in.cross(turn)
    b.zeta = b.zeta + b.V.cross(change) + Motion.from_vector(more)
    M = b.node.inertia
    momentum = M @ b.V
    w, v = b.V.angular, b.V.linear
    turned = Force(
        cross(M.moment, cross(b.dw, v)) - cross(w, _spread(M) @ b.dw), cross(b.dw, momentum.linear)
    )
    b.y = M @ b.zeta + 2 * turned - Force.from_vector(b.dwrench)
    r = b.node.rotor_momentum
    if r is not None:
        w, dw = b.receive("V").angular, b.receive("dw")
        n = r @ b.da_held + cross(dw, r @ b.v) + cross(w, r @ b.dv)
        b.shed = Force(n, ca.SX(3, 1))


def carry(b: Record) -> None:
    """What (4) has besides S^T df; f is complete."""
    b.carried = b.eta.cross_force(b.f)
    b.beside = ca.SX(b.node.nv, 1)
    terms = subspace_terms(b.node, b.q, b.v, b.a, b.f.vector())
    if terms is not None:
        b.beside = b.beside + terms.g @ b.dq
    r = b.node.rotor_momentum
    if r is not None:
        w, dw = b.receive("V").angular, b.receive("dw")
        b.beside = b.beside + r.T @ (b.receive("zeta").angular + cross(dw, w))
    own = own_effort_derivatives(b.node, b.q, b.v) if b.passive else None
    if own is not None:
        b.beside = b.beside - own[0] @ b.dq - own[1] @ b.dv


def project_change(b: Record) -> None:
    """(4)"""
    b.dtau = b.S.T @ b.y.vector() + b.beside
    reflected = b.node.reflected_inertia
    if reflected is not None:
        b.dtau = b.dtau + reflected @ b.da_held
    back = b.X.force(b.y + b.carried)
    b.deliver(y=back + b.shed if b.has("shed") else back)


def load_change(b: Record) -> None:
    """(8)"""
    b.load = b.dtau - b.beside


def accelerations_change(b: Record) -> None:
    b.da = b.m


def results_change(b: Record) -> None:
    """Of hybrid dynamics: the efforts by (4), with the forces that the change of the free accelerations adds."""
    b.da = b.m + b.da_held
    required = b.S.T @ (b.y + b.P @ b.Vh).vector() + b.beside
    reflected, r = b.node.reflected_inertia, b.node.rotor_momentum
    if reflected is not None:
        required = required + reflected @ b.da
    if r is not None:
        required = required + r.T @ b.receive("Vh").angular
    b.deffort = b.free * b.dtau + (1 - b.free) * required


# -- adjoint -----------------------------------------------------------------------------------------------------


def move_by_weights(b: Record) -> None:
    """m of inverse dynamics, and the virtual motion that it gives."""
    b.m = getattr(b, weight_of("tau"))
    b.Vh_in = b.X.motion_inverse(b.receive("Vh"))
    b.Vh = b.Vh_in + Motion.from_vector(b.S @ b.m)


def load_weight(b: Record) -> None:
    """(8)"""
    zero = ca.SX(3, 1)
    b.y, b.load = Force(zero, zero), -getattr(b, weight_of("a"))
    if b.has("free"):
        b.held = (1 - b.free) * getattr(b, weight_of("effort"))


def give_back(b: Record) -> None:
    """(5)-(7)"""
    S, M, V, m = b.S, b.node.inertia, b.V, b.m
    momentum = M @ V
    f = M @ b.A + V.cross_force(momentum) - Force.from_vector(b.wrench)
    G = M @ b.Vh
    H = _spread(M) @ cross(V.angular, b.Vh.angular) + cross(V.linear, G.linear)
    H = 2 * (H + cross(b.Vh.linear, cross(M.moment, V.angular)))
    if b.has("f_back"):
        f, G, H = f + b.f_back, G + b.G_back, H + b.H_back
    turned = b.V_in.cross_force(G)
    inner = Force(H, ca.SX(3, 1)) - turned
    k = (inner - V.cross_force(G)).vector()
    b.da, b.dv, b.dwrench = S.T @ G.vector(), S.T @ k, -b.Vh.vector()
    b.dq = -S.T @ (b.A_in.cross_force(G) + b.V_in.cross_force(inner) + b.Vh_in.cross_force(f)).vector()
    terms = subspace_terms(b.node, b.q, b.v, b.a, f.vector())
    if terms is not None:
        b.dv = b.dv + terms.b_v.T @ G.vector()
        b.dq = b.dq + terms.s.T @ k + terms.t.T @ G.vector() + terms.g.T @ m
    own = own_effort_derivatives(b.node, b.q, b.v) if b.passive else None
    if own is not None:
        b.dq, b.dv = b.dq - own[0].T @ m, b.dv - own[1].T @ m
    reflected, r, X = b.node.reflected_inertia, b.node.rotor_momentum, b.X
    if reflected is not None:
        b.da = b.da + reflected @ m
    f, G, H = X.force(f), X.force(G), X.rotation @ H
    if r is not None:
        w, wh, none = b.receive("V").angular, b.receive("Vh").angular, ca.SX(3, 1)
        b.da, b.dv = b.da + r.T @ wh, b.dv + r.T @ cross(wh, w)
        f = f + Force(r @ b.a + cross(w, r @ b.v), none)
        G, H = G + Force(r @ m, none), H + cross(r @ b.v, wh) + cross(w, r @ m)
    b.deliver(f_back=f, G_back=G, H_back=H)


def give_back_effort(b: Record) -> None:
    b.dtau = -b.m


def give_back_choices(b: Record) -> None:
    """Of hybrid dynamics; which speeds are free is a choice, that has no gradient."""
    b.dtau = b.free * (getattr(b, weight_of("effort")) - b.m)
    b.da_given = (1 - b.free) * (getattr(b, weight_of("a")) + b.da)
    b.dfree = ca.SX(b.node.nv, 1)


_CHANGE = (
    *(outward(step) for step in (newton_euler, hold, vary)),
    *(inward(step) for step in (transmit_force, carry, load_change, eliminate_load)),
    outward(respond_to_load),
)
_TANGENTS: dict[tuple[Sweep, ...], tuple[Sweep, ...]] = {
    INVERSE_DYNAMICS.sweeps: (
        *(outward(step) for step in (place, move, accelerate, newton_euler, hold_all, vary)),
        *(inward(step) for step in (project, carry, project_change)),
    ),
    FORWARD_DYNAMICS.sweeps: (*FORWARD_DYNAMICS.sweeps, *_CHANGE, outward(accelerations_change)),
    HYBRID_DYNAMICS.sweeps: (*HYBRID_DYNAMICS.sweeps, *_CHANGE, outward(results_change)),
}
_WEIGHED = (
    *(outward(step) for step in (place, move, begin, load_weight)),
    *(inward(step) for step in (eliminate, eliminate_load)),
    *(outward(step) for step in (respond, respond_to_load)),
    inward(give_back),
)
_ADJOINTS: dict[tuple[Sweep, ...], tuple[Sweep, ...]] = {
    INVERSE_DYNAMICS.sweeps: (
        *(outward(step) for step in (place, move, accelerate, move_by_weights)),
        inward(give_back),
    ),
    FORWARD_DYNAMICS.sweeps: (*_WEIGHED, inward(give_back_effort)),
    HYBRID_DYNAMICS.sweeps: (*_WEIGHED, inward(give_back_choices)),
}
