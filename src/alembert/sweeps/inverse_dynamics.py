"""Inverse dynamics (recursive Newton-Euler): the efforts that give the accelerations a, in O(n).

    f = M A + V x* M V - w                  outward, w the external wrench on the node     (1)
    tau = S^T f + J_r a - own(q, v)         inward                                          (2)
    f_P += Ad(X_PB)^-T f                                                                    (3)

With rotors of angular momentum r v on the parent (r is 3 x nv, see `Node.rotor_momentum`):

    tau += r^T w'_P,    n_P += r a + w_P x r v                                              (4)
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca

from alembert.spatial import Force
from alembert.spatial.arrays import cross
from alembert.sweeps.kinematics import accelerate, move, place
from alembert.sweeps.node import Record
from alembert.sweeps.program import Program, inward, outward


def newton_euler(b: Record) -> None:
    """(1)"""
    M = b.node.inertia
    b.f = M @ b.A + b.V.cross_force(M @ b.V) - Force.from_vector(b.wrench)


def project(b: Record) -> None:
    """(2)-(4)"""
    b.tau = joint_effort(b, b.S.T @ b.f.vector())
    transmit_force(b)


def transmit_force(b: Record) -> None:
    """(3), (4)"""
    reaction = b.X.force(b.f)
    r = b.rotor_momentum()
    if r is not None:
        reaction = reaction + Force(r @ b.a + cross(b.receive("V").angular, r @ b.v), ca.SX(3, 1))
    b.deliver(f=reaction)


def joint_effort(b: Record, projected: ca.SX) -> ca.SX:
    """(2), (4): what the drive must give when S^T f is `projected`."""
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
