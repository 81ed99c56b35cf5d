"""Poses, velocities and accelerations of the nodes.

    X_PB = X_PF X_FB(q)                                               (1)
    V = Ad(X_PB)^-1 V_P + S v                                         (2)
    c = V x S v + (dS/dt) v                                           (3)
    A = Ad(X_PB)^-1 A_P + S a + c                                     (4)

All in body axes about the body's origin. The world starts with A = -g where gravity is on.
"""

from __future__ import annotations

import casadi as ca

from alembert.spatial import Motion
from alembert.sweeps.node import Record
from alembert.sweeps.program import Program, outward


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
