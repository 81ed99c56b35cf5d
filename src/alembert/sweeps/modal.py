"""Bodies with modes in the sweeps: the modal counterparts of the steps, and what hangs on a body that deforms.

A body with modes is two nodes: that of its joint, whose inertia is zero, and below it the *mode node*, whose speeds are
those of the modes; it has the body's mass. Its fields V, A, P, z, f, ... are those of the body's frame, with six entries
as everywhere. With the integrals of `alembert.model.modal`, sums over repeated k, l, and nu = (V, v):

    s = s_0 + S_k q_k + 1/2 Tt_kl q_k q_l                                                             (1)
    F_k = E_k' + (D_kl + Tr_kl) q_l,   E = sym(E_0 + q_k (E_k' + F_k)),   J = tr(E) 1 - E             (2)
    Cr_k = vee(F_k),   Ct_k = S_k + Tt_kl q_l                  vee(F) = (F32-F23, F13-F31, F21-F12)   (3)
    M = [[J, s~, Cr], [-s~, m 1, Ct], [Cr', Ct', Me]],   h = M nu                                     (4)
    bias = dM/dt nu + (V x* h_6 ; -1/2 d(nu' M nu)/dq)                                                (5)

What hangs on the body passes through `alembert.sweeps.attachment`, with T the motion of its place per unit of the modal
speeds. The elimination of the modes is that of a joint, (1)-(5) of `alembert.sweeps.forward_dynamics`, with

    U = M_6m + sum P T,   D = Me + sum T' P T,   e = tau - K q - C v - z_m,   X = 1                   (6)

In rows of matrices over the speeds (`Pairs`), a node beyond the place sees the modes move by T. What a mode node does in the
place of a step is declared with `counterpart`; an algorithm with a step that has none refuses bodies with modes.
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca

from alembert.spatial import ArticulatedInertia, Force, RigidInertia
from alembert.spatial.arrays import dot, skew
from alembert.sweeps import energy, forward_dynamics, inverse_dynamics, kinematics, mass_matrix
from alembert.sweeps.factor import Factor
from alembert.sweeps.program import Record, counterpart


class Integrals:
    """The constants of (1)-(5) of a mode node, and what they give at its coordinates."""

    def __init__(self, parts: Mapping[str, ca.SX], n: int, stiffening: str) -> None:
        self.n, self._deformed = n, stiffening != "ruthless"
        self.mass = parts["mass"]
        self._s = parts["moment"]
        xx, xy, yy, xz, yz, zz = (parts["inertia"][k] for k in range(6))
        self._E = ca.vertcat(ca.horzcat(xx, xy, xz), ca.horzcat(xy, yy, yz), ca.horzcat(xz, yz, zz))
        self._S = _columns(parts["shape_moments"])
        self._Ek = _squares(parts["shape_products"])
        self._D = _squares(parts["pair_products"])
        self._Tt = _columns(parts["foreshortening_moments"])
        self._Tr = _squares(parts["foreshortening_products"])
        traces = [ca.trace(D) for D in self._D]
        self.modal_mass = ca.vertcat(*(ca.horzcat(*traces[n * k : n * k + n]) for k in range(n)))
        self.stiffness = ca.reshape(parts["modal_stiffness"], n, n).T
        self.damping = ca.reshape(parts["modal_damping"], n, n).T

    def matrix(self, q: ca.SX) -> ca.SX:
        """(4)"""
        n = self.n
        x = q if self._deformed else ca.SX(n, 1)
        s, total, Cr, Ct = self._s, self._E, [], []
        for k in range(n):
            F, t = self._Ek[k].T, self._S[k]
            for l in range(n):
                F = F + self._D[n * k + l] * x[l]
                if self._Tt:
                    F = F + self._Tr[n * k + l] * x[l]
                    t = t + self._Tt[n * k + l] * x[l]
            total = total + x[k] * (self._Ek[k].T + F)
            s = s + x[k] * (self._S[k] + t) / 2
            Cr.append(ca.vertcat(F[2, 1] - F[1, 2], F[0, 2] - F[2, 0], F[1, 0] - F[0, 1]))
            Ct.append(t)
        E = (total + total.T) / 2
        J = ca.trace(E) * ca.SX.eye(3) - E
        R, C = ca.horzcat(*Cr), ca.horzcat(*Ct)
        return ca.sparsify(
            ca.vertcat(
                ca.horzcat(J, skew(s), R),
                ca.horzcat(-skew(s), self.mass * ca.SX.eye(3), C),
                ca.horzcat(R.T, C.T, self.modal_mass),
            )
        )


def _columns(values: ca.SX) -> list[ca.SX]:
    return [values[k : k + 3] for k in range(0, values.numel(), 3)]


def _squares(values: ca.SX) -> list[ca.SX]:
    """3 x 3 matrices by rows"""
    return [ca.reshape(values[k : k + 9], 3, 3).T for k in range(0, values.numel(), 9)]


def bias(b: Record) -> tuple[Force, ca.SX]:
    """(5): the wrench, and the modal forces."""
    nu = ca.densify(ca.vertcat(b.V.vector(), b.v))
    at, fixed = ca.SX.sym("q", b.node.nv), ca.SX.sym("nu", nu.numel())
    h = integrals(b).matrix(at) @ fixed
    found = [ca.jtimes(h, at, fixed[6:]), ca.gradient(ca.dot(fixed, h) / 2, at)]
    rate, slope = ca.substitute(found, [at, fixed], [ca.densify(b.q), nu])
    turning = b.V.cross_force(Force.from_vector((b.M @ nu)[0:6]))
    return Force.from_vector(rate[0:6]) + turning, rate[6:] - slope


def integrals(b: Record) -> Integrals:
    structure = b.node.structure
    return Integrals(b.node.parts, structure.joint.nv, structure.stiffening)


# --- the mode node, step by step ------------------------------------------------------------------------------


@counterpart(kinematics.place)
def place(b: Record) -> None:
    """(4); the body's frame is where it would be without the modes."""
    b.X = b.receive("placement")
    b.M = integrals(b).matrix(b.q)


@counterpart(kinematics.place_in_world)
def place_in_world(b: Record) -> None:
    kinematics.place_in_world(b)


@counterpart(kinematics.move)
def move(b: Record) -> None:
    b.V_in = b.V = b.X.motion_inverse(b.receive("V"))


@counterpart(kinematics.accelerate)
def accelerate(b: Record) -> None:
    b.A_in = b.A = b.X.motion_inverse(b.receive("A"))


@counterpart(inverse_dynamics.newton_euler)
def newton_euler(b: Record) -> None:
    F = b.M @ ca.vertcat(b.A.vector(), b.a)
    wrench, modal = bias(b)
    b.f = Force.from_vector(F[0:6]) + wrench - Force.from_vector(b.wrench)
    b.f_m = F[6:] + modal


@counterpart(inverse_dynamics.project)
def project(b: Record) -> None:
    b.tau = b.f_m - own_effort(b)
    b.deliver(f=b.X.force(b.f))


def own_effort(b: Record) -> ca.SX:
    """-K q - C v, unless the program leaves springs and friction out."""
    if not b.passive:
        return ca.SX(b.node.nv, 1)
    constants = integrals(b)
    return -(constants.stiffness @ b.q) - constants.damping @ b.v


@counterpart(forward_dynamics.begin)
def begin(b: Record) -> None:
    wrench, b.z_m = bias(b)
    b.z = wrench - Force.from_vector(b.wrench)
    b.P = ArticulatedInertia.from_matrix(b.M[0:6, 0:6])
    b.P_m, b.D_m = b.M[0:6, 6:], b.M[6:, 6:]


@counterpart(forward_dynamics.eliminate)
def eliminate(b: Record) -> None:
    """(6), then (3) and (6) of `alembert.sweeps.forward_dynamics`."""
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
    b.U, b.D, b.factor = U, D, Factor(D)
    b.ready = b.factor.solve(b.e)
    b.W = b.factor.solve(U.T)
    P = ArticulatedInertia.from_matrix(ca.sparsify(b.P.matrix() - U @ b.W))
    b.deliver(P=P.transform(b.X), z=b.X.force(Force.from_vector(z + U @ b.ready)))


@counterpart(forward_dynamics.respond)
def respond(b: Record) -> None:
    b.A_in = b.A = b.X.motion_inverse(b.receive("A"))
    b.a = b.ready - b.W @ b.A.vector()
    if b.has("free"):
        b.a = b.a + b.a_star


@counterpart(forward_dynamics.complete)
def complete(b: Record) -> None:
    required = b.P_m.T @ b.A.vector() + b.D_m @ b.a + b.z_m - own_effort(b)
    b.effort = b.free * b.tau + (1 - b.free) * required


@counterpart(energy.kinetic)
def kinetic(b: Record) -> None:
    nu = ca.vertcat(b.V.vector(), b.v)
    b.T = ca.dot(nu, b.M @ nu) / 2


@counterpart(energy.potential)
def potential(b: Record) -> None:
    inertia = locked(b.M)
    h = b.X_W.rotation @ inertia.moment + inertia.mass * b.X_W.translation
    b.E = ca.dot(b.q, integrals(b).stiffness @ b.q) / 2 - dot(b.gravity, h)


@counterpart(energy.momentum)
def momentum(b: Record) -> None:
    b.h = Force.from_vector((b.M @ ca.vertcat(b.V.vector(), b.v))[0:6])


for step in (energy.gather_kinetic, energy.propagate_gravity, energy.gather_potential):
    counterpart(step)(step)


@counterpart(energy.gather_momentum)
def gather_momentum(b: Record) -> None:
    b.deliver(h=b.X.force(b.h))


def locked(M: ca.SX) -> RigidInertia:
    """The inertia of the body with its modes held."""
    return RigidInertia(M[3, 3], ca.vertcat(M[2, 4], M[0, 5], M[1, 3]), M[0:3, 0:3])


@counterpart(mass_matrix.own_inertia)
def own_inertia(b: Record) -> None:
    b.I, b.I_m, b.J_m = locked(b.M), b.M[0:6, 6:], b.M[6:, 6:]


counterpart(mass_matrix.gather)(mass_matrix.gather)


@counterpart(kinematics.subspace_in_world)
def subspace_in_world(b: Record) -> None:
    """What the modes move depends on where it hangs: see `alembert.sweeps.program.seen`."""


@counterpart(mass_matrix.composite_momentum)
def composite_momentum(b: Record) -> None:
    """The momentum per unit of each modal speed, own and of what hangs on the body."""
    b.Y = ca.horzcat(*(b.X_W.force(Force.from_vector(b.I_m[:, k])).vector() for k in range(b.node.nv)))
