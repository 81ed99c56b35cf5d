"""What the parent feels of a body whose joint is eliminated: (3) and (4) of `alembert.sweeps.forward_dynamics`.

    P_a = P - U D^-1 U^T,   z_a = z' + U D^-1 e                                  (1)
    P_P += Ad^-T P_a Ad^-1,   z_P += Ad^-T z_a                                   (2)

Without J_r, P_a S = 0, W S = 1 with W = D^-1 U^T, and S^T z_a = tau + own: the rows and columns that belong to unit columns
of S are known without arithmetic (3).

Rotors couple the joint directly to the parent. Then (1) is done in the parent's axes with U_P = Ad^-T U + (r; 0) and
W = D^-1 U_P^T (4).

Reference: (1) as it stands, P - U D^-1 U^T, without the entries of (3) and with an inertia turned at once; held equal by
tests/sweeps/test_references.py.
"""

from __future__ import annotations

from typing import Any

import casadi as ca

from alembert.spatial import Force
from alembert.sweeps.record import Record


def reduce_articulated(b: Record, z: Any, effort: ca.SX) -> tuple[Any, Any]:
    """(1), (2), (3): the inertia and the bias force that the parent feels. Leaves W."""
    W = b.factor.solve(b.U.T)
    P_a, z_a = b.P.matrix() - b.U @ W, z.vector() + b.U @ b.ready
    if not b.has("free") and b.node.reflected_inertia is None:
        _write_known(b.S, P_a, z_a, W, effort)
    b.W = W
    P = type(b.P).from_matrix(ca.sparsify(P_a))
    return _to_parent(P, b), b.X.force(type(z).from_vector(z_a))


def reduce_coupled(b: Record, z: Any, r: ca.SX) -> tuple[Any, Any]:
    """(4) for the momentum r of the rotors; the rows of the coupling that it leaves out are zero. Leaves U_P and W."""
    U_P = force_columns(b.X, b.U, type(z))
    N = ca.vertcat(r, ca.SX(U_P.shape[0] - r.shape[0], r.shape[1]))
    reaction = b.reaction
    if b.has("free"):
        reaction = type(z).from_vector(N @ b.a_star) + reaction
        N = N @ ca.diag(b.free)
    b.U_P = U_P + N
    b.W = b.factor.solve(b.U_P.T)
    P = b.P.transform(b.X) - type(b.P).from_matrix(b.U_P @ b.W)
    return P, b.X.force(z) + reaction + type(z).from_vector(b.U_P @ b.ready)


def _write_known(S: ca.SX, P_a: ca.SX, z_a: ca.SX, W: ca.SX, effort: ca.SX) -> None:
    """(3)"""
    for k, row in unit_columns(S):
        W[:, row] = ca.SX.eye(W.shape[0])[:, k]
        P_a[row, :] = 0
        P_a[:, row] = 0
        z_a[row] = effort[k]


def _to_parent(P: Any, b: Record) -> Any:
    """In one turn, or in two where the placement only permutes axes and the joint's own turn is sparse."""
    if b.has("X_F") and b.receive("placement").rotation.nnz() <= 3:
        return P.transform(b.X_F).transform(b.receive("placement"))
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
    columns = [X.force(kind.from_vector(F[:, k])).vector() for k in range(F.shape[1])]
    return ca.horzcat(*columns) if columns else ca.SX(F.shape[0], 0)
