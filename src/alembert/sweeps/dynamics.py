"""Kinematics, inverse, forward and hybrid dynamics of a tree.

Poses, velocities and accelerations of the nodes, all in body axes about the body's origin:

    X_PB = X_PF X_FB(q)                                               (1)
    V = Ad(X_PB)^-1 V_P + S v                                         (2)
    c = V x S v + (dS/dt) v                                           (3)
    A = Ad(X_PB)^-1 A_P + S a + c                                     (4)

The world starts with A = -g where gravity is on.

Inverse dynamics (recursive Newton-Euler): the efforts that give the accelerations a, in O(n).

    f = M A + V x* M V - w                  outward, w the external wrench on the node     (5)
    tau = S^T f + J_r a - own(q, v)         inward                                          (6)
    f_P += Ad(X_PB)^-T f                                                                    (7)

With rotors of angular momentum r v on the parent (r is 3 x nv, see `Node.rotor_momentum`):

    tau += r^T w'_P,    n_P += r a + w_P x r v                                              (8)

Forward and hybrid dynamics by the articulated sweep, in O(n).

Inward, a body with everything outboard of it answers F = P A + z (Riccati recursion; D'Eleuterio and Damaren
1991, (19)-(27); Rodriguez, Jain, Kreutz-Delgado 1992, (0.25)):

    U = P S,   D = S^T U + J_r,   z' = z + P c                                   (9)
    e = tau + own(q, v) - S^T z'                                                 (10)
    P_a = P - U D^-1 U^T,   z_a = z' + U D^-1 e                                  (11)
    P_P += Ad^-T P_a Ad^-1,   z_P += Ad^-T z_a                                   (12)

and outward  a = D^-1 e - W A',  A = A' + S a + c  with  W = D^-1 U^T,  A' = Ad(X_PB)^-1 A_P.     (13)

Without J_r, P_a S = 0, W S = 1, and S^T z_a = tau + own: the rows and columns that belong to unit columns of S are known
without arithmetic (14). Reference: (11) as it stands, P - U D^-1 U^T, without the entries of (14) and with an inertia turned
at once; held equal by tests/sweeps/test_references.py.

Rotors couple a directly to the parent. Then (11) is done in the parent's axes with U_P = Ad^-T U + (r; 0) and
W = D^-1 U_P^T, for the parent's A_P (15).

Hybrid (Sohl and Bobrow 2001): a speed whose acceleration is prescribed takes no part in the elimination. With
m = 1 for free and 0 for prescribed speeds, and a* the prescribed accelerations, the same sweep serves with

    D -> m D m + (1 - m),   U -> U m,   e -> m (e - S^T P S (1 - m) a*),   z' -> z' + P S (1 - m) a*      (16)

and the efforts of the prescribed speeds follow from (6) of inverse dynamics, tau = S^T F + ...

`eliminate` and `respond` ask of P, z, c, A and X only what `alembert.sweeps.linear_quadratic` also gives to
the stages of an optimal control problem: they are the steps of both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import casadi as ca

from alembert.spatial import Force, Motion
from alembert.spatial.arrays import cross
from alembert.sweeps.node import Record
from alembert.sweeps.program import Program, inward, outward


def place(b: Record) -> None:
    """(1)"""
    b.X_F = b.node.joint.placement(b.q)
    b.X = b.receive("placement") @ b.X_F
    b.S = b.node.joint.subspace(b.q)


def place_in_world(b: Record) -> None:
    b.X_W = b.receive("X_W") @ b.X


def move(b: Record) -> None:
    """(2), (3)"""
    relative = Motion.from_vector(b.S @ b.v)
    b.V_in = b.X.motion_inverse(b.receive("V"))
    b.V = b.V_in + relative
    b.c = b.V.cross(relative)
    bias = b.node.joint.bias(b.q, b.v)
    if bias is not None:
        b.c = b.c + Motion.from_vector(bias)


def accelerate(b: Record) -> None:
    """(4)"""
    b.A_in = b.X.motion_inverse(b.receive("A"))
    b.A = b.A_in + Motion.from_vector(b.S @ b.a) + b.c


def subspace_in_world(b: Record) -> None:
    """S in world axes about the world's origin: the columns of every Jacobian."""
    columns = (b.X_W.motion(Motion.from_vector(b.S[:, k])).vector() for k in range(b.node.nv))
    b.columns = ca.horzcat(ca.SX(6, 0), *columns)
    b.node.attachment.see(b)


POSES = Program("poses", {"q": "q"}, (outward(place), outward(place_in_world)), {"X_W": "node"})
VELOCITIES = Program("velocities", {"q": "q", "v": "v"}, (outward(place), outward(move)), {"V": "node"})
ACCELERATIONS = Program(
    "accelerations",
    {"q": "q", "v": "v", "a": "v"},
    (outward(place), outward(move), outward(accelerate)),
    {"A": "node"},
    gravity=False,
)
SUBSPACES = Program(
    "subspaces",
    {"q": "q"},
    (outward(place), outward(place_in_world), outward(subspace_in_world)),
    {"columns": "v6", "X_W": "node"},
)


def newton_euler(b: Record) -> None:
    """(5)"""
    M = b.node.inertia
    b.f = M @ b.A + b.V.cross_force(M @ b.V) - Force.from_vector(b.wrench)


def project(b: Record) -> None:
    """(6)-(8)"""
    b.tau = joint_effort(b, b.S.T @ b.f.vector())
    transmit_force(b)


def transmit_force(b: Record) -> None:
    """(7), (8)"""
    reaction = b.X.force(b.f)
    r = b.rotor_momentum()
    if r is not None:
        reaction = reaction + Force(r @ b.a + cross(b.receive("V").angular, r @ b.v), ca.SX(3, 1))
    b.deliver(f=reaction)


def joint_effort(b: Record, projected: ca.SX) -> ca.SX:
    """(6), (8): what the drive must give when S^T f is `projected`."""
    effort = projected
    reflected = b.node.reflected_inertia
    if reflected is not None:
        effort = effort + reflected @ b.a
    r = b.rotor_momentum()
    if r is not None:
        effort = effort + r.T @ b.receive("A").angular
    own = b.own_effort()
    return effort if own is None else effort - own


INVERSE_DYNAMICS = Program(
    "inverse_dynamics",
    {"q": "q", "v": "v", "a": "v", "wrench": "node6"},
    (outward(place), outward(move), outward(accelerate), outward(newton_euler), inward(project)),
    {"tau": "v"},
)
GRAVITY_FORCES = replace(INVERSE_DYNAMICS, name="gravity_forces", passive=False)
CORIOLIS_FORCES = replace(INVERSE_DYNAMICS, name="coriolis_forces", gravity=False, passive=False)


class Factor:
    """M = L diag(d) L^T, symmetric positive definite, of the size of a joint or of a stage's input; written out for `SX`.

    A matrix that is `guarded` may turn out not to be positive definite: then its solutions are NaN.
    """

    def __init__(self, M: ca.SX, *, guarded: bool = False) -> None:
        n = M.shape[0]
        self._n = n
        self._L: list[ca.SX] = []  # columns, each from its diagonal on
        self._inverse: list[ca.SX] = []
        left = M
        for _ in range(n):
            column = left[:, 0]  # of L diag(d)
            self._inverse.append(1 / column[0])
            self._L.append(column * self._inverse[-1])
            left = left[1:, 1:] - self._L[-1][1:, :] @ column[1:, :].T
        if guarded and n:
            self._inverse[0] = self._inverse[0] * positive(self.least_pivot)

    @property
    def least_pivot(self) -> ca.SX:
        """Not positive when the matrix is not positive definite."""
        least = ca.SX(1.0)
        for k, inverse in enumerate(self._inverse):
            least = inverse if k == 0 else ca.fmin(least, inverse)
        return least

    def solve(self, B: ca.SX) -> ca.SX:
        """M^-1 B for a matrix of right-hand sides."""
        return self.outward(self.scaled(self.inward(B)))

    def inward(self, B: ca.SX) -> ca.SX:
        """L^-1 B"""
        left, rows = B, list[ca.SX]()
        for i in range(self._n):
            rows.append(left[0, :])
            left = left[1:, :] - ca.mtimes(self._L[i][1:, :], rows[i])
        return ca.vertcat(*rows) if rows else B

    def scaled(self, B: ca.SX) -> ca.SX:
        """diag(d)^-1 B"""
        return ca.vertcat(*(B[i, :] * x for i, x in enumerate(self._inverse))) if self._n else B

    def outward(self, B: ca.SX) -> ca.SX:
        """L^-T B"""
        rows = [B[i, :] for i in range(self._n)]
        for i in reversed(range(self._n)):
            for k in range(i + 1, self._n):  # as they come: sums have the bits of rolled code
                rows[i] = rows[i] - self._L[i][k - i] * rows[k]
        return ca.vertcat(*rows) if rows else B


def positive(x: ca.SX) -> ca.SX:
    """1 where x is positive and NaN elsewhere, with derivatives of zero."""
    return ca.sqrt(2 * (x > 0) - 1)


def begin(b: Record) -> None:
    M = b.node.inertia
    b.P = M.articulated()
    b.z = b.V.cross_force(M @ b.V) - Force.from_vector(b.wrench)
    r = b.rotor_momentum()
    if r is not None:
        b.reaction = Force(cross(b.receive("V").angular, r @ b.v), ca.SX(3, 1))


def eliminate(b: Record) -> None:
    """(9)-(12), and (16) where `b.free` marks the speeds that are free."""
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
    """(9), and the effort of (10): U, D, z', tau + own."""
    U = b.P.columns(b.S)
    D = b.S.T @ U
    reflected = b.node.reflected_inertia
    if reflected is not None:
        D = D + reflected
    own = b.own_effort()
    return U, D, b.z + b.P @ b.c, b.tau if own is None else b.tau + own


def _without_prescribed(b: Record, U: ca.SX, D: ca.SX, z: Any) -> tuple[ca.SX, ca.SX, Any]:
    """(16)"""
    b.a_star = (1 - b.free) * b.a_given
    z = z + type(z).from_vector(U @ b.a_star)
    m = ca.diag(b.free)
    return U @ m, m @ D @ m + ca.diag(1 - b.free), z


def reduce_articulated(b: Record, z: Any, effort: ca.SX) -> tuple[Any, Any]:
    """(11), (12), (14): the inertia and the bias force that the parent feels. Leaves W."""
    W = b.factor.solve(b.U.T)
    P_a, z_a = b.P.matrix() - b.U @ W, z.vector() + b.U @ b.ready
    if not b.has("free") and b.node.reflected_inertia is None:
        _write_known(b.S, P_a, z_a, W, effort)
    b.W = W
    P = type(b.P).from_matrix(ca.sparsify(P_a))
    return _to_parent(P, b), b.X.force(type(z).from_vector(z_a))


def reduce_coupled(b: Record, z: Any, r: ca.SX) -> tuple[Any, Any]:
    """(15) for the momentum r of the rotors; the rows of the coupling that it leaves out are zero. Leaves U_P and W."""
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
    """(14)"""
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


def respond(b: Record) -> None:
    """(13)"""
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
