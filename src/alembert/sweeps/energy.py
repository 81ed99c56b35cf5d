"""Energies, centre of mass and momentum of the whole tree, gathered inward into the world's record.

    T = sum 1/2 V^T M V + 1/2 v^T J_r v + (r v) . w_P                      (1)
    U = sum -g . (m c)_W + springs                                          (2)
    h = sum Ad(X_WB)^-T M V + rotors                                        (3)

The momentum (angular; linear) is about the world's origin in world axes.
"""

from __future__ import annotations

import casadi as ca

from alembert.spatial import Force
from alembert.spatial.arrays import dot
from alembert.sweeps.kinematics import move, place, place_in_world
from alembert.sweeps.mass_matrix import COMPOSITE_SWEEPS, gather, own_inertia
from alembert.sweeps.node import Record
from alembert.sweeps.program import Program, inward, outward


def kinetic(b: Record) -> None:
    """(1)"""
    T = b.node.inertia.kinetic_energy(b.V)
    reflected = b.node.reflected_inertia
    if reflected is not None:
        T = T + ca.dot(b.v, reflected @ b.v) / 2
    r = b.rotor_momentum()
    if r is not None:
        T = T + dot(r @ b.v, b.receive("V").angular)
    b.T = T


def gather_kinetic(b: Record) -> None:
    b.deliver(T=b.T)


def potential(b: Record) -> None:
    """(2)"""
    E = b.node.spring_energy(b.q)
    h = b.X_W.rotation @ b.node.inertia.moment + b.node.inertia.mass * b.X_W.translation
    b.E = E - dot(b.gravity, h)


def propagate_gravity(b: Record) -> None:
    b.gravity = b.receive("gravity")


def gather_potential(b: Record) -> None:
    b.deliver(E=b.E)


def momentum(b: Record) -> None:
    b.h = b.node.inertia @ b.V


def gather_momentum(b: Record) -> None:
    """(3)"""
    h = b.X.force(b.h)
    r = b.rotor_momentum()
    if r is not None:
        h = h + Force(r @ b.v, ca.SX(3, 1))
    b.deliver(h=h)


KINETIC_ENERGY = Program(
    "kinetic_energy",
    {"q": "q", "v": "v"},
    (outward(place), outward(move), outward(kinetic), inward(gather_kinetic)),
    total=("T",),
)
POTENTIAL_ENERGY = Program(
    "potential_energy",
    {"q": "q"},
    (
        outward(place),
        outward(place_in_world),
        outward(propagate_gravity),
        outward(potential),
        inward(gather_potential),
    ),
    total=("E",),
)
COMPOSITE = Program(
    "composite", {"q": "q"}, (outward(place), outward(own_inertia), inward(gather)), total=("I",)
)
MOMENTUM = Program(
    "momentum",
    {"q": "q", "v": "v"},
    (outward(place), outward(move), outward(momentum), inward(gather_momentum)),
    total=("h",),
)
MOMENTUM_MATRIX = Program("momentum_matrix", {"q": "q"}, COMPOSITE_SWEEPS, {"Y": "v6"})
