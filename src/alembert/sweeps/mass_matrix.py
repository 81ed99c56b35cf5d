"""The mass matrix from composite inertias, O(n depth), in world axes.

    I_P += Ad(X_PB)^-T I Ad(X_PB)^-1            inward, I starting as the body's own inertia       (1)
    J = Ad(X_WB) S,   Y = Ad(X_WB)^-T I S + (Ad(X_WP)^-T r for rotors)                             (2)
    M_kj = Y_k^T J_j  for every node k and each node j inboard of it                               (3)

On the diagonal the rotor's part of Y does no work on its own joint; J_r takes its place.
"""

from __future__ import annotations

import casadi as ca

from alembert.spatial import Force
from alembert.sweeps.forward_dynamics import force_columns
from alembert.sweeps.kinematics import place, place_in_world, subspace_in_world
from alembert.sweeps.node import Record
from alembert.sweeps.program import Pairs, Program, inward, outward


def own_inertia(b: Record) -> None:
    b.I = b.node.inertia


def gather(b: Record) -> None:
    """(1)"""
    b.deliver(I=b.I.transform(b.X))


def composite_momentum(b: Record) -> None:
    """(2)"""
    b.Y = force_columns(b.X_W, b.I.articulated().columns(b.S))
    r = b.rotor_momentum()
    if r is not None:
        X_P = b.receive("X_W")
        carried = [X_P.force(Force(r[:, k], ca.SX(3, 1))).vector() for k in range(b.node.nv)]
        b.Y = b.Y + ca.horzcat(*carried)


def _couple(outer: Record, inner: Record) -> tuple[tuple[ca.SX, ca.SX], ...]:
    """(3)"""
    if outer is inner and outer.has("J_m"):  # modes, see `alembert.sweeps.modal`
        block = outer.J_m
    elif outer is inner:
        block = outer.S.T @ outer.I.articulated().columns(outer.S)
        reflected = outer.node.reflected_inertia
        if reflected is not None:
            block = block + reflected
    else:
        block = outer.Y.T @ inner.columns
    return ((block, block.T),)


COMPOSITE_SWEEPS = (
    outward(place),
    outward(place_in_world),
    outward(subspace_in_world),
    outward(own_inertia),
    inward(gather),
    outward(composite_momentum),
)
MASS_MATRIX = Program(
    "mass_matrix", {"q": "q"}, COMPOSITE_SWEEPS, pairs=Pairs(("matrix",), _couple), gravity=False
)
