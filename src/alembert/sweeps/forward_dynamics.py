"""Forward and hybrid dynamics by the articulated sweep, in O(n).

Inward, a body with everything outboard of it answers F = P A + z (Riccati recursion; D'Eleuterio and Damaren
1991, (19)-(27); Rodriguez, Jain, Kreutz-Delgado 1992, (0.25)):

    U = P S,   D = S^T U + J_r,   z' = z + P c                                   (1)
    e = tau + own(q, v) - S^T z'                                                 (2)
    P_a = P - U D^-1 U^T,   z_a = z' + U D^-1 e                                  (3)
    P_P += Ad^-T P_a Ad^-1,   z_P += Ad^-T z_a                                   (4)

and outward  a = D^-1 e - W A',  A = A' + S a + c  with  W = D^-1 U^T,  A' = Ad(X_PB)^-1 A_P.     (5)

Without J_r, P_a S = 0, W S = 1 and S^T z_a = tau + own: the rows and columns that belong to unit columns of S are
known without arithmetic. Rotors couple a directly to the parent; then (3) is done in the parent's axes with
U_P = Ad^-T U + (r; 0), and W = D^-1 U_P^T is for the parent's A_P.

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
from alembert.sweeps.inverse_dynamics import joint_effort, own_effort
from alembert.sweeps.kinematics import move, place
from alembert.sweeps.linear import Factor
from alembert.sweeps.program import Program, Record, inward, outward


def begin(b: Record) -> None:
    M = b.node.inertia
    b.P = M.articulated()
    b.z = b.V.cross_force(M @ b.V) - Force.from_vector(b.wrench)
    r = b.node.rotor_momentum
    if r is not None:
        b.reaction = Force(cross(b.parent.V.angular, r @ b.v), ca.SX(3, 1))


def eliminate(b: Record) -> None:
    """(1)-(4), and (6) where `b.free` marks the speeds that are free."""
    S, P = b.S, b.P
    U = P.columns(S)
    D = S.T @ U
    reflected = b.node.reflected_inertia
    if reflected is not None:
        D = D + reflected
    z = b.z + P @ b.c
    own = own_effort(b)
    effort = b.tau if own is None else b.tau + own
    hybrid = b.has("free")
    if hybrid:
        b.a_star = (1 - b.free) * b.a_given
        z = z + type(z).from_vector(U @ b.a_star)
        m = ca.diag(b.free)
        D = m @ D @ m + ca.diag(1 - b.free)
        U = U @ m
    b.e = effort - S.T @ z.vector()
    if hybrid:
        b.e = b.free * b.e
    b.U, b.D, b.factor = U, D, Factor(D)
    b.ready = b.factor.solve(b.e)
    r = b.node.rotor_momentum
    if r is not None:
        _add_coupled(b, P, z, r)
        return
    W = b.factor.solve(U.T)
    P_a, z_a = P.matrix() - U @ W, z.vector() + U @ b.ready
    if not hybrid and reflected is None:
        _settle(S, P_a, z_a, W, effort)
    b.W = W
    P_a = type(P).from_matrix(ca.sparsify(P_a))
    b.parent.add(P=_to_parent(P_a, b), z=b.X.force(type(z).from_vector(z_a)))


def _settle(S: ca.SX, P_a: ca.SX, z_a: ca.SX, W: ca.SX, effort: ca.SX) -> None:
    """Write the entries that P_a S = 0, W S = 1 and S^T z_a = effort give where S has unit columns."""
    for k, row in unit_columns(S):
        W[:, row] = ca.SX.eye(W.shape[0])[:, k]
        P_a[row, :] = 0
        P_a[:, row] = 0
        z_a[row] = effort[k]


def _add_coupled(b: Record, P: Any, z: Any, r: ca.SX) -> None:
    """(3) in the parent's axes; the rows of the coupling that `r` leaves out are zero."""
    U_P = force_columns(b.X, b.U, type(z))
    N = ca.vertcat(r, ca.SX(U_P.shape[0] - r.shape[0], r.shape[1]))
    reaction = b.reaction
    if b.has("free"):
        reaction = type(z).from_vector(N @ b.a_star) + reaction
        N = N @ ca.diag(b.free)
    b.U_P = U_P + N
    b.W = b.factor.solve(b.U_P.T)
    b.parent.add(
        P=P.transform(b.X) - type(P).from_matrix(b.U_P @ b.W),
        z=b.X.force(z) + reaction + type(z).from_vector(b.U_P @ b.ready),
    )


def respond(b: Record) -> None:
    """(5)"""
    b.A_in = A = b.X.motion_inverse(b.parent.A)
    b.a = b.ready - b.W @ (A if b.node.rotor_momentum is None else b.parent.A).vector()
    if b.has("free"):
        b.a = b.a + b.a_star
    b.A = A + type(A).from_vector(b.S @ b.a) + b.c


def complete(b: Record) -> None:
    """The efforts behind the prescribed accelerations."""
    required = b.S.T @ (b.P @ b.A + b.z).vector()
    b.effort = b.free * b.tau + (1 - b.free) * joint_effort(b, required)


def _to_parent(P: Any, b: Record) -> Any:
    """In one turn, or in two where the placement only permutes axes and the joint's own turn is sparse."""
    if b.has("X_F") and b.node.placement.rotation.nnz() <= 3:
        return P.transform(b.X_F).transform(b.node.placement)
    return P.transform(b.X)


def unit_columns(S: ca.SX) -> list[tuple[int, int]]:
    """(column, row) of the columns of S that are constant unit vectors."""
    found = []
    for k in range(S.shape[1]):
        rows = [i for i in range(S.shape[0]) if not S[i, k].is_zero()]
        if len(rows) == 1 and S[rows[0], k].is_one():
            found.append((k, rows[0]))
    return found


def force_columns(X: Any, F: ca.SX, kind: Any = Force) -> ca.SX:
    """Ad(X)^-T on every column."""
    return ca.horzcat(*(X.force(kind.from_vector(F[:, k])).vector() for k in range(F.shape[1])))


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
