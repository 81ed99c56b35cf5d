"""The correction of Newton's method at the end of an implicit step in time, in O(n).

The accelerations a at the end of a step solve inverse_dynamics(q, v, a) = tau, where q and v follow them,
dq = beta da and dv = gamma da. Of the Jacobian M + gamma dtau/dv + beta dtau/dq only what springs and dampers
of joints and modes give is large for small steps:

    (M + gamma C + beta K) da = tau - inverse_dynamics(q, v, a)                                    (1)

The articulated sweep solves it with D -> D + gamma C + beta K in each node, from the wrenches f of inverse dynamics:

    e = tau - (S^T f + ...),   P_a = P - U D^-1 U^T,   f_a = f + U D^-1 e                          (2)
    da = D^-1 e - W dA',   dA = dA' + S da,   W = D^-1 U^T,   dA' = Ad(X_PB)^-1 dA_P               (3)

What (1) leaves out is gyroscopic and of weight: corrections shrink in proportion to the step.
"""

from __future__ import annotations

import casadi as ca

from alembert.spatial import ArticulatedInertia, Force, Motion
from alembert.spatial.arrays import cross
from alembert.sweeps import modal
from alembert.sweeps.dynamics import INVERSE_DYNAMICS, Factor, force_columns, joint_effort
from alembert.sweeps.node import Record
from alembert.sweeps.program import Program, counterpart, inward, outward


def begin(b: Record) -> None:
    b.P = b.node.inertia.articulated()


@counterpart(begin)
def begin_modes(b: Record) -> None:
    b.P = ArticulatedInertia.from_matrix(b.M[0:6, 0:6])
    b.P_m, b.D_m = b.M[0:6, 6:], b.M[6:, 6:]


def correct(b: Record) -> None:
    """(2)"""
    U, D, r = b.P.columns(b.S), ca.diag(_stiffness(b)), b.rotor_momentum()
    reflected = b.node.reflected_inertia
    D = D + b.S.T @ U + (0 if reflected is None else reflected)
    e = b.tau - joint_effort(b, b.S.T @ b.f.vector())
    factor = Factor(D)
    b.ready = factor.solve(e)
    if r is None:
        b.W = factor.solve(U.T)
        P = ArticulatedInertia.from_matrix(ca.sparsify(b.P.matrix() - U @ b.W)).transform(b.X)
        b.deliver(P=P, f=b.X.force(b.f + Force.from_vector(U @ b.ready)))
        return
    U_P = force_columns(b.X, U) + ca.vertcat(r, ca.SX(3, r.shape[1]))
    b.W = factor.solve(U_P.T)
    reaction = Force(r @ b.a + cross(b.receive("V").angular, r @ b.v), ca.SX(3, 1))
    P = b.P.transform(b.X) - ArticulatedInertia.from_matrix(U_P @ b.W)
    b.deliver(P=P, f=b.X.force(b.f) + reaction + Force.from_vector(U_P @ b.ready))


def _stiffness(b: Record) -> ca.SX:
    """gamma C + beta K of spring and friction, on the diagonal."""
    node = b.node
    total = ca.SX(node.nv, 1)
    if node.structure.spring:
        total = total + b.beta * node.parts["stiffness"]
    if node.structure.viscous:
        total = total + b.gamma * node.parts["viscous"]
    if node.structure.coulomb:
        s = node.parts["smoothing"]
        x = b.v * b.v + s * s
        total = total + b.gamma * node.parts["coulomb"] * s * s / (x * ca.sqrt(x))
    return ca.sparsify(total)


@counterpart(correct)
def correct_modes(b: Record) -> None:
    constants = modal.integrals(b)
    D = b.D_m + b.gamma[0] * constants.damping + b.beta[0] * constants.stiffness
    e = b.tau - (b.f_m - modal.own_effort(b))
    b.factor = Factor(D)
    b.U_L, b.e_L = b.factor.inward(b.P_m.T), b.factor.inward(e)
    half = b.factor.scaled(b.U_L).T
    P = ArticulatedInertia.from_matrix(ca.sparsify(b.P.matrix() - half @ b.U_L))
    b.deliver(P=P.transform(b.X), f=b.X.force(b.f + Force.from_vector(half @ b.e_L)))


def respond(b: Record) -> None:
    """(3)"""
    dA_P = b.receive("dA")
    dA = b.X.motion_inverse(dA_P)
    b.da = b.ready - b.W @ (dA if b.rotor_momentum() is None else dA_P).vector()
    b.dA = dA + Motion.from_vector(b.S @ b.da)


@counterpart(respond)
def respond_modes(b: Record) -> None:
    b.dA = b.X.motion_inverse(b.receive("dA"))
    b.da = b.factor.outward(b.factor.scaled(b.e_L - b.U_L @ b.dA.vector()))


CORRECTION = Program(
    "correction",
    {**INVERSE_DYNAMICS.given, "tau": "v", "beta": "v", "gamma": "v"},
    (*INVERSE_DYNAMICS.sweeps[:-1], outward(begin), inward(correct), outward(respond)),
    {"da": "v"},
)
