"""Balanced rotors: bodies that turn about an axis of their own symmetry, and are the same at any angle.

A wheel's angle is no part of the dynamics: neither its own nor its carrier's accelerations depend on it, and what gravity
does to it acts on its carrier and has no moment about the axis. Steps leave the angle out, with its sine and cosine and all
that they would turn.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from alembert.spatial import RigidInertia
from alembert.sweeps.kinematics import place
from alembert.sweeps.program import Program, outward, unroll

_PLACES = Program("rotors", {"q": "q"}, (outward(place),), gravity=False)


def balanced_rotors(tree: Any, records: Any) -> list[int]:
    """The nodes that are some: nothing hangs at them, and their inertia is given by numbers."""
    has_children = set(tree.parents)
    return [
        k
        for k, record in enumerate(records)
        if tree.parents[k] >= 0
        and k not in has_children
        and tree.places[k] is None
        and tree.flexible[k] is None
        and _is_symmetric(record)
    ]


def joined_rotors(tree: Any, records: Any) -> list[RigidInertia | None]:
    """The inertias of nodes, those of balanced rotors with their carriers' (None in their own places)."""
    found: list[RigidInertia | None] = [record.node.inertia for record in records]
    for k in reversed(balanced_rotors(tree, records)):
        own, carrier = found[k], found[tree.parents[k]]
        if own is not None and carrier is not None:
            node = records[k].node
            at_zero = node.joint.placement(ca.SX.zeros(node.nq))  # a custom joint's may be anywhere
            found[tree.parents[k]] = carrier + own.transform(node.placement @ at_zero)
            found[k] = None
    return found


def without_angles(tree: Any, q: ca.SX, parameters: ca.SX) -> ca.SX:
    """q with the angles of balanced rotors zero, but of those whose springs feel them."""
    kept = ca.SX(q)
    records, _ = unroll(_PLACES, tree, {"q": q}, parameters)
    for k in balanced_rotors(tree, records):
        if tree.joints[k].spring is None:
            kept[tree.q_slices[k]] = 0.0
    return kept


def _is_symmetric(record: Any) -> bool:
    """Whether it turns about an axis through its centre of mass about which it is symmetric; by numbers."""
    inertia, S = record.node.inertia, ca.SX(record.S)
    entries = ca.vertcat(inertia.mass, inertia.moment, ca.vec(ca.SX(inertia.inertia)), ca.vec(S))
    if S.shape != (6, 1) or not entries.is_constant():
        return False
    x = np.array(ca.evalf(ca.densify(entries)), dtype=float).ravel()
    m, mc, about, axis = x[0], x[1:4], x[4:13].reshape(3, 3), x[13:16]
    if np.any(x[16:]) or not abs(np.linalg.norm(axis) - 1) < 1e-12:
        return False  # it also moves along
    size = np.linalg.norm(about)
    across = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    across /= np.linalg.norm(across)
    other = np.cross(axis, across)
    mixed = max(
        np.linalg.norm(about @ axis - (axis @ about @ axis) * axis),
        abs(across @ about @ other),
        abs(across @ about @ across - other @ about @ other),
    )
    off = np.linalg.norm(np.cross(axis, mc))
    return bool(m > 0 and mixed <= 1e-14 * size and off <= 1e-14 * np.sqrt(m * size))
