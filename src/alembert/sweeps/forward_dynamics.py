"""Forward and hybrid dynamics by the articulated sweep, in O(n).

Inward, a body with everything outboard of it answers F = P A + z (Riccati recursion; D'Eleuterio and Damaren
1991, (19)-(27); Rodriguez, Jain, Kreutz-Delgado 1992, (0.25)):

    U = P S,   D = S^T U + J_r,   z' = z + P c                                   (1)
    e = tau + own(q, v) - S^T z'                                                 (2)
    P_a = P - U D^-1 U^T,   z_a = z' + U D^-1 e                                  (3)
    P_P += Ad^-T P_a Ad^-1,   z_P += Ad^-T z_a                                   (4)

and outward  a = D^-1 e - W A',  A = A' + S a + c  with  W = D^-1 U^T,  A' = Ad(X_PB)^-1 A_P.     (5)

(3) and (4) are in `alembert.sweeps.articulated`: rotors couple a directly to the parent; then W = D^-1 U_P^T is for the
parent's A_P.

Hybrid (Sohl and Bobrow 2001): a speed whose acceleration is prescribed takes no part in the elimination. With
m = 1 for free and 0 for prescribed speeds, and a* the prescribed accelerations, the same sweep serves with

    D -> m D m + (1 - m),   U -> U m,   e -> m (e - S^T P S (1 - m) a*),   z' -> z' + P S (1 - m) a*      (6)

and the efforts of the prescribed speeds follow from (2) of inverse dynamics, tau = S^T F + ...

`eliminate` and `respond` ask of P, z, c, A and X only what `alembert.sweeps.linear_quadratic` also gives to
the stages of an optimal control problem: they are the steps of both.
"""

from __future__ import annotations

from typing import Any

import casadi as ca

from alembert.spatial import Force
from alembert.spatial.arrays import cross
from alembert.sweeps.articulated import reduce_articulated, reduce_coupled
from alembert.sweeps.factor import Factor
from alembert.sweeps.inverse_dynamics import joint_effort, own_effort
from alembert.sweeps.kinematics import move, place
from alembert.sweeps.program import Program, inward, outward
from alembert.sweeps.record import Record


def begin(b: Record) -> None:
    M = b.node.inertia
    b.P = M.articulated()
    b.z = b.V.cross_force(M @ b.V) - Force.from_vector(b.wrench)
    r = b.rotor_momentum()
    if r is not None:
        b.reaction = Force(cross(b.receive("V").angular, r @ b.v), ca.SX(3, 1))


def eliminate(b: Record) -> None:
    """(1)-(4), and (6) where `b.free` marks the speeds that are free."""
    U, D, z, effort = _joint_terms(b)
    if b.has("free"):
        U, D, z = _without_prescribed(b, U, D, z)
    b.e = effort - b.S.T @ z.vector()
    if b.has("free"):
        b.e = b.free * b.e
    b.U, b.D, b.factor = U, D, Factor(D, guarded=b.node.structure.guarded)
    b.ready = b.factor.solve(b.e)
    r = b.rotor_momentum()
    P, z = reduce_articulated(b, z, effort) if r is None else reduce_coupled(b, z, r)
    b.deliver(P=P, z=z)


def _joint_terms(b: Record) -> tuple[ca.SX, ca.SX, Any, ca.SX]:
    """(1), and the effort of (2): U, D, z', tau + own."""
    U = b.P.columns(b.S)
    D = b.S.T @ U
    reflected = b.node.reflected_inertia
    if reflected is not None:
        D = D + reflected
    own = own_effort(b)
    return U, D, b.z + b.P @ b.c, b.tau if own is None else b.tau + own


def _without_prescribed(b: Record, U: ca.SX, D: ca.SX, z: Any) -> tuple[ca.SX, ca.SX, Any]:
    """(6)"""
    b.a_star = (1 - b.free) * b.a_given
    z = z + type(z).from_vector(U @ b.a_star)
    m = ca.diag(b.free)
    return U @ m, m @ D @ m + ca.diag(1 - b.free), z


def respond(b: Record) -> None:
    """(5)"""
    A_P = b.receive("A")
    b.A_in = A = b.X.motion_inverse(A_P)
    b.a = b.ready - b.W @ (A if b.rotor_momentum() is None else A_P).vector()
    if b.has("free"):
        b.a = b.a + b.a_star
    b.A = A + type(A).from_vector(b.S @ b.a) + b.c


def complete(b: Record) -> None:
    """The efforts behind the prescribed accelerations."""
    required = b.S.T @ (b.P @ b.A + b.z).vector()
    b.effort = b.free * b.tau + (1 - b.free) * joint_effort(b, required)


FORWARD_DYNAMICS = Program(
    "forward_dynamics",
    {"q": "q", "v": "v", "tau": "v", "wrench": "node6"},
    (outward(place), outward(move), outward(begin), inward(eliminate), outward(respond)),
    {"a": "v"},
)
HYBRID_DYNAMICS = Program(
    "hybrid_dynamics",
    {"q": "q", "v": "v", "tau": "v", "a_given": "v", "free": "v", "wrench": "node6"},
    (*FORWARD_DYNAMICS.sweeps, outward(complete)),
    {"a": "v", "effort": "v"},
)
SOLVE_MASS_MATRIX = Program(
    "solve_mass_matrix",
    {"q": "q", "v": "v", "tau": "v", "wrench": "node6"},
    FORWARD_DYNAMICS.sweeps,
    {"a": "v"},
    gravity=False,
    passive=False,
)
