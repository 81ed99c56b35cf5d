"""Bodies with modes in the sweeps: the modal counterparts of the steps, and what hangs on a body that deforms.

A body with modes is two nodes: that of its joint, whose inertia is zero, and below it the *mode node*, whose speeds are
those of the modes; it has the body's mass. Its fields V, A, P, z, f, ... are those of the body's frame, with six entries
as everywhere. With the integrals of `alembert.model.modal`, sums over repeated k, l, and nu = (V, v):

    s = s_0 + S_k q_k + 1/2 Tt_kl q_k q_l                                                             (1)
    F_k = E_k' + (D_kl + Tr_kl) q_l,   E = sym(E_0 + q_k (E_k' + F_k)),   J = tr(E) 1 - E             (2)
    Cr_k = vee(F_k),   Ct_k = S_k + Tt_kl q_l                  vee(F) = (F32-F23, F13-F31, F21-F12)   (3)
    M = [[J, s~, Cr], [-s~, m 1, Ct], [Cr', Ct', Me]],   h = M nu                                     (4)
    bias = dM/dt nu + (V x* h_6 ; -1/2 d(nu' M nu)/dq)                                                (5)

Since dE/dq_k = F_k + F_k', ds/dq_k = Ct_k, and D_kl + D_lk is symmetric, (5) is, for V = (w, u) and alpha = w x u,

    angular:  (tr(L) 1 - L) w + w x (J w + Cr v) + s x alpha + vee(Tr_kl) v_k v_l,    L = sum_k (F_k + F_k') v_k
    linear:   m alpha + w x (w x s + 2 Ct v) + Tt_kl v_k v_l                                          (6)
    mode k:   2 w . vee(D_kl) v_l + w' F_k w - tr(F_k) w'w + Ct_k . alpha

What hangs on the body passes through `alembert.sweeps.node`, with T the motion of its place per unit of the modal
speeds. The elimination of the modes is that of a joint, (9)-(13) of `alembert.sweeps.dynamics`, with

    U = M_6m + sum P T,   D = Me + sum T' P T,   e = tau - K q - C v - z_m,   X = 1                   (7)

by the factors D = L d L', with U_L = L^-1 U' and e_L = L^-1 e:

    P_a = P - U_L' d^-1 U_L,   z_a = z + U_L' d^-1 e_L,   a = L^-T d^-1 (e_L - U_L A)                 (8)

In rows of matrices over the speeds (`Pairs`), a node beyond the place sees the modes move by T. What a mode node does in the
place of a step is declared with `counterpart`; an algorithm with a step that has none refuses bodies with modes.
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca

from alembert.spatial import Ad_dual, ArticulatedInertia, Force, RigidInertia
from alembert.spatial.arrays import cross, dot, skew, symmetric
from alembert.sweeps import dynamics, mass_matrix, operators
from alembert.sweeps.dynamics import Factor, force_columns
from alembert.sweeps.node import Record
from alembert.sweeps.program import counterpart


class Integrals:
    """The constants of (1)-(6) of a mode node; matrices of several modes have their entries by columns, a mode each."""

    def __init__(self, parts: Mapping[str, ca.SX], n: int, stiffening: str) -> None:
        self.n, self.deformed = n, stiffening != "ruthless"
        self.mass, self.moment = parts["mass"], parts["moment"]
        xx, xy, yy, xz, yz, zz = (parts["inertia"][k] for k in range(6))
        self.second = ca.vertcat(xx, xy, xz, xy, yy, yz, xz, yz, zz)
        self.S = _sparse(parts["shape_moments"], 3, n)
        self.E = _sparse(parts["shape_products"], 9, n)  # of E_k': the rows of E_k are its columns
        self.products = _sparse(parts["pair_products"], 9 * n, n)
        self.pair_spins = _sparse(parts["pair_spins"], 3, n * (n - 1) // 2)
        self.modal_mass, self.stiffness, self.damping = (
            _symmetric(parts[name], n) for name in ("modal_mass", "modal_stiffness", "modal_damping")
        )
        count = parts["foreshortening_moments"].numel() // 3
        self.Tt = _sparse(parts["foreshortening_moments"], 3, count)
        self.spins = _sparse(parts["foreshortening_spins"], 3, count)

    def first_products(self, q: ca.SX) -> ca.SX:
        """F_k of (2), 9 x modes"""
        return self.E + ca.reshape(self.products @ q, 9, self.n) if self.deformed else self.E

    def first_moments(self, q: ca.SX) -> ca.SX:
        """Ct of (3)"""
        if not (self.deformed and self.Tt.numel()):
            return self.S
        columns = [ca.SX(3, 1) for _ in range(self.n)]
        for p, (k, l) in enumerate(_lower(self.n)):
            columns[k] = columns[k] + self.Tt[:, p] * q[l]
            if k != l:
                columns[l] = columns[l] + self.Tt[:, p] * q[k]
        return self.S + ca.horzcat(*columns)

    def matrix(self, q: ca.SX, F: ca.SX, Ct: ca.SX) -> ca.SX:
        """(4)"""
        s, E = self.moment, self.second
        if self.deformed:
            s = s + (self.S + Ct) @ q / 2
            E = E + (self.E + F) @ q
        E = ca.reshape(E, 3, 3)
        E = symmetric((E + E.T) / 2)
        J = ca.trace(E) * ca.SX.eye(3) - E
        Cr = _vee(F)
        return ca.sparsify(
            ca.vertcat(
                ca.horzcat(J, skew(s), Cr),
                ca.horzcat(-skew(s), self.mass * ca.SX.eye(3), Ct),
                ca.horzcat(Cr.T, Ct.T, self.modal_mass),
            )
        )


def _sparse(values: ca.SX, rows: int, columns: int) -> ca.SX:
    return ca.sparsify(ca.reshape(values, rows, columns))


def _lower(n: int) -> list[tuple[int, int]]:
    return [(k, l) for k in range(n) for l in range(k + 1)]


def _symmetric(values: ca.SX, n: int) -> ca.SX:
    found = ca.SX(n, n)
    for p, (k, l) in enumerate(_lower(n)):
        found[k, l] = found[l, k] = values[p]
    return ca.sparsify(found)


def _vee(F: ca.SX) -> ca.SX:
    """Of matrices whose entries are columns."""
    return ca.vertcat(F[5, :] - F[7, :], F[6, :] - F[2, :], F[1, :] - F[3, :])


def _quadratic(parts: ca.SX, v: ca.SX) -> ca.SX:
    """sum over k, l of x_kl v_k v_l, from the lower triangle of x"""
    total = ca.SX(3, 1)
    if parts.nnz():
        for p, (k, l) in enumerate(_lower(v.numel())):
            total = total + parts[:, p] * (v[k] * v[l] * (1 if k == l else 2))
    return total


def bias(b: Record) -> tuple[Force, ca.SX]:
    """(6): the wrench, and the modal forces."""
    I, M, v, w, u = integrals(b), b.M, b.v, b.V.angular, b.V.linear
    if not I.deformed:
        h = M @ ca.vertcat(b.V.vector(), v)
        return b.V.cross_force(Force.from_vector(h[0:6])), ca.SX(b.node.nv, 1)
    alpha, s, J, Ct = cross(w, u), locked(M).moment, M[0:3, 0:3], M[3:6, 6:]
    L = ca.reshape(b.F @ v, 3, 3)
    L = L + L.T
    angular = ca.trace(L) * w - L @ w + cross(w, J @ w + M[0:3, 6:] @ v) + cross(s, alpha)
    linear = I.mass * alpha + cross(w, cross(w, s) + 2 * (Ct @ v))
    wrench = Force(angular + _quadratic(I.spins, v), linear + _quadratic(I.Tt, v))
    turning = w @ w.T - dot(w, w) * ca.SX.eye(3)
    modal = b.F.T @ ca.vec(turning) + Ct.T @ alpha
    along = [ca.SX(0)] * I.n
    rates = I.pair_spins.T @ (2 * w)
    for p, (k, l) in enumerate((i, j) for i in range(I.n) for j in range(i)):
        along[k] = along[k] + rates[p] * v[l]
        along[l] = along[l] - rates[p] * v[k]
    return wrench, modal + ca.vertcat(*along)


def integrals(b: Record) -> Integrals:
    structure = b.node.structure
    return Integrals(b.node.parts, structure.joint.nv, structure.stiffening)


# --- the mode node, step by step ------------------------------------------------------------------------------


@counterpart(dynamics.place)
def place(b: Record) -> None:
    """(2)-(4); the body's frame is where it would be without the modes."""
    b.X = b.receive("placement")
    constants = integrals(b)
    b.F = constants.first_products(b.q)
    b.M = constants.matrix(b.q, b.F, constants.first_moments(b.q))


@counterpart(dynamics.place_in_world)
def place_in_world(b: Record) -> None:
    dynamics.place_in_world(b)


@counterpart(dynamics.move)
def move(b: Record) -> None:
    b.V_in = b.V = b.X.motion_inverse(b.receive("V"))


@counterpart(dynamics.accelerate)
def accelerate(b: Record) -> None:
    b.A_in = b.A = b.X.motion_inverse(b.receive("A"))


@counterpart(dynamics.newton_euler)
def newton_euler(b: Record) -> None:
    F = b.M @ ca.vertcat(b.A.vector(), b.a)
    wrench, modal = bias(b)
    b.f = Force.from_vector(F[0:6]) + wrench - Force.from_vector(b.wrench)
    b.f_m = F[6:] + modal


@counterpart(dynamics.project)
def project(b: Record) -> None:
    b.tau = b.f_m - own_effort(b)
    b.deliver(f=b.X.force(b.f))


def own_effort(b: Record) -> ca.SX:
    """-K q - C v, unless the program leaves springs and friction out."""
    if not b.passive:
        return ca.SX(b.node.nv, 1)
    constants = integrals(b)
    return -(constants.stiffness @ b.q) - constants.damping @ b.v


@counterpart(dynamics.begin)
def begin(b: Record) -> None:
    wrench, b.z_m = bias(b)
    b.z = wrench - Force.from_vector(b.wrench)
    b.P = ArticulatedInertia.from_matrix(b.M[0:6, 0:6])
    b.P_m, b.D_m = b.M[0:6, 6:], b.M[6:, 6:]


@counterpart(dynamics.eliminate)
def eliminate(b: Record) -> None:
    """(7), (8), and (14) of `alembert.sweeps.dynamics` where accelerations are prescribed."""
    U, D, z, z_m = b.P_m, b.D_m, b.z.vector(), b.z_m
    hybrid = b.has("free")
    if hybrid:
        b.a_star = (1 - b.free) * b.a_given
        z, z_m = z + U @ b.a_star, z_m + D @ b.a_star
        m = ca.diag(b.free)
        U, D = U @ m, m @ D @ m + ca.diag(1 - b.free)
    b.e = b.tau + own_effort(b) - z_m
    if hybrid:
        b.e = b.free * b.e
    b.U, b.D, b.factor = U, D, Factor(D, guarded=b.node.structure.guarded)
    b.U_L, b.e_L = b.factor.inward(U.T), b.factor.inward(b.e)
    half = b.factor.scaled(b.U_L).T
    P = ArticulatedInertia.from_matrix(ca.sparsify(b.P.matrix() - half @ b.U_L))
    b.deliver(P=P.transform(b.X), z=b.X.force(Force.from_vector(z + half @ b.e_L)))


@counterpart(dynamics.respond)
def respond(b: Record) -> None:
    b.A_in = b.A = b.X.motion_inverse(b.receive("A"))
    b.a = b.factor.outward(b.factor.scaled(b.e_L - b.U_L @ b.A.vector()))
    if b.has("free"):
        b.a = b.a + b.a_star


@counterpart(dynamics.complete)
def complete(b: Record) -> None:
    required = b.P_m.T @ b.A.vector() + b.D_m @ b.a + b.z_m - own_effort(b)
    b.effort = b.free * b.tau + (1 - b.free) * required


@counterpart(mass_matrix.kinetic)
def kinetic(b: Record) -> None:
    nu = ca.vertcat(b.V.vector(), b.v)
    b.T = ca.dot(nu, b.M @ nu) / 2


@counterpart(mass_matrix.potential)
def potential(b: Record) -> None:
    inertia = locked(b.M)
    h = b.X_W.rotation @ inertia.moment + inertia.mass * b.X_W.translation
    b.E = ca.dot(b.q, integrals(b).stiffness @ b.q) / 2 - dot(b.gravity, h)


@counterpart(mass_matrix.momentum)
def momentum(b: Record) -> None:
    b.h = Force.from_vector((b.M @ ca.vertcat(b.V.vector(), b.v))[0:6])


for step in (mass_matrix.gather_kinetic, mass_matrix.propagate_gravity, mass_matrix.gather_potential):
    counterpart(step)(step)


@counterpart(mass_matrix.gather_momentum)
def gather_momentum(b: Record) -> None:
    b.deliver(h=b.X.force(b.h))


def locked(M: ca.SX) -> RigidInertia:
    """The inertia of the body with its modes held."""
    return RigidInertia(M[3, 3], ca.vertcat(M[2, 4], M[0, 5], M[1, 3]), M[0:3, 0:3])


@counterpart(mass_matrix.own_inertia)
def own_inertia(b: Record) -> None:
    b.I, b.I_m, b.J_m = locked(b.M), b.M[0:6, 6:], b.M[6:, 6:]


counterpart(mass_matrix.gather)(mass_matrix.gather)


@counterpart(dynamics.subspace_in_world)
def subspace_in_world(b: Record) -> None:
    """What the modes move depends on where it hangs: see `alembert.sweeps.program.seen`."""
    b.node.attachment.see(b)


@counterpart(mass_matrix.composite_momentum)
def composite_momentum(b: Record) -> None:
    """The momentum per unit of each modal speed, own and of what hangs on the body."""
    b.Y = ca.horzcat(*(b.X_W.force(Force.from_vector(b.I_m[:, k])).vector() for k in range(b.node.nv)))


@counterpart(operators.rest)
def rest(b: Record) -> None:
    zero = ca.SX(3, 1)
    b.P = ArticulatedInertia.from_matrix(b.M[0:6, 0:6])
    b.P_m, b.D_m = b.M[0:6, 6:], b.M[6:, 6:]
    b.z, b.z_m, b.tau = Force(zero, zero), ca.SX(b.node.nv, 1), ca.SX(b.node.nv, 1)


@counterpart(operators.gain)
def gain(b: Record) -> None:
    b.K = force_columns(b.X, b.factor.solve(b.U.T).T)


for step in (operators.gain_in_world, operators.diagonalise):
    counterpart(step)(step)


@counterpart(operators.undiagonalise)
def undiagonalise(b: Record) -> None:
    V = b.receive("V")
    b.speeds = b.v = b.n - b.K.T @ V.vector()
    b.V = b.X.motion_inverse(V)


@counterpart(operators.describe)
def describe(b: Record) -> None:
    """Speeds are the motion of the frame and those of the modes, 6 + n wide; M is so already."""
    n = b.node.nv
    b.S = ca.vertcat(ca.SX(6, n), ca.SX.eye(n))
    b.phi = ca.horzcat(Ad_dual(b.X), ca.SX(6, n))
    b.reflected, b.coupling = ca.SX(n, 1), ca.SX(6, n)


@counterpart(operators.describe_articulated)
def describe_articulated(b: Record) -> None:
    b.P_matrix = ca.vertcat(ca.horzcat(b.P.matrix(), b.P_m), ca.horzcat(b.P_m.T, b.D_m))


@counterpart(operators.propagate_admittance)
def propagate_admittance(b: Record) -> None:
    """Of the body's frame, which the modes do not move; what they do at other places is in the attachment."""
    b.psi = Ad_dual(b.X)
    Y = b.receive("Upsilon") if b.is_offered("Upsilon") else ca.SX(6, 6)
    b.Upsilon = symmetric(b.psi.T @ Y @ b.psi)
