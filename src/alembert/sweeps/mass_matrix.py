"""The mass matrix from composite inertias (O(n depth)), and factors of it.

    I_P += Ad(X_PB)^-T I Ad(X_PB)^-1            inward, I starting as the body's own inertia   (1)
    F = I S                                     then, climbing from a node to the root:
    M_jk = S_j^T F,   F <- Ad(X_PB)^-T F        (F <- F + (r; 0) after the first step, for rotors)  (2)
"""

from __future__ import annotations

import casadi as ca

from alembert.sweeps.forward_dynamics import force_columns
from alembert.sweeps.kinematics import place
from alembert.sweeps.program import Climb, Program, Record, inward, outward


def own_inertia(b: Record) -> None:
    b.I = b.node.inertia


def gather(b: Record) -> None:
    """(1)"""
    b.parent.add(I=b.I.transform(b.X))


def _start(b: Record) -> ca.SX:
    return b.I.articulated().columns(b.S)


def _visit(b: Record, F: ca.SX, at: Record) -> tuple[ca.SX, ca.SX]:
    """(2)"""
    block = at.S.T @ F
    carried = force_columns(at.X, F)
    if at is b:
        reflected = b.node.reflected_inertia
        if reflected is not None:
            block = block + reflected
        r = b.node.rotor_momentum
        if r is not None:
            carried = ca.vertcat(carried[0:3, :] + r, carried[3:6, :])
    return block, carried


MASS_MATRIX = Program(
    "mass_matrix",
    {"q": "q"},
    (outward(place), outward(own_inertia), inward(gather)),
    climb=Climb(_start, _visit),
    gravity=False,
)
