"""What the dynamics of a model do not depend on, and steps leave out: a common velocity, and the angles of balanced rotors.

A steady velocity of a whole tree leaves its dynamics as they are (Galileo). But v x (m v), which is zero, is rounded to
m |v|^2 1e-16: at 7.5 km/s that makes angular accelerations of 1e-9 rad/s^2 that jump from state to state, and error control
goes after them in tiny steps. So accelerations are evaluated at u, which is v without the velocity of the trees' roots:

    u = (w, 0),    (w', v') = a(q, u) - (0, w x v)                                        (1)

for a root with angular velocity w and velocity v in body axes; in axes that do not turn there is nothing to add. Loops,
couplings and equations within one vehicle do not see its velocity either. Fixed steps gain as well: the angular
accelerations of rounding would turn a satellite by 1e-5 rad within an hour.

A balanced rotor turns about an axis of its own symmetry, and is the same at any angle: neither its own nor its carrier's
accelerations depend on it, and what gravity does to it acts on its carrier and has no moment about the axis. Steps leave the
angle out, with its sine and cosine and all that they would turn.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from alembert.constraints.equations import unseen_roots
from alembert.model import Model
from alembert.spatial import RigidInertia
from alembert.sweeps.dynamics import place
from alembert.sweeps.program import Program, outward, unroll

Array = np.ndarray


class FreeRoots:
    """(1), for the roots of a model that are free to fly; those in `held` (nv,) follow a given motion."""

    def __init__(self, model: Model, held: Array) -> None:
        tree = model.compute.tree
        self.model = model
        self.roots: list[tuple[slice, slice | None]] = []
        for k in unseen_roots(tree):
            joint, s = tree.joints[k], tree.v_slices[k]
            found = joint.type.translation
            bare = (
                joint.friction is None and not joint.armature and not joint.rotors
            )  # these see the velocity
            if found is not None and bare and not np.any(held[s]):
                self.roots.append((_within(s, found.linear), found.angular and _within(s, found.angular)))

    def apart(self, v: Array) -> tuple[Array, Array]:
        """u and what (1) takes away."""
        u, away = v.copy(), np.zeros_like(v)
        for linear, angular in self.roots:
            u[..., linear] = 0.0
            if angular is not None:
                (x, y, z), (a, b, c) = _parts(v[..., angular]), _parts(v[..., linear])
                for k, value in enumerate((y * c - z * b, z * a - x * c, x * b - y * a)):
                    away[..., linear.start + k] = value
        return u, away

    def symbolic_apart(self, v: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The same on `SX`."""
        u, away = ca.SX(v), ca.SX.zeros(v.numel())
        for linear, angular in self.roots:
            u[linear] = 0.0
            if angular is not None:
                away[linear] = ca.cross(v[angular], v[linear])
        return u, away

    def accelerations(self, q: Array, v: Array, tau: Array, **given: Any) -> Array:
        if not self.roots:
            return self.model.forward_dynamics(q, v, tau, **given)
        u, away = self.apart(v)
        return self.model.forward_dynamics(q, u, tau, **given) - away

    def efforts(self, q: Array, v: Array, a: Array, **given: Any) -> Array:
        """The other way round: what accelerations a take."""
        if not self.roots:
            return self.model.inverse_dynamics(q, v, a, **given)
        u, away = self.apart(v)
        return self.model.inverse_dynamics(q, u, a + away, **given)

    def hybrid(self, q: Array, v: Array, tau: Array, a: Array, free: Array, **given: Any) -> Any:
        """Accelerations and efforts where some of either are given."""
        evaluate = self.model.compute.evaluate
        if not self.roots:
            return evaluate("hybrid_dynamics", (q, v, tau, a, free), **given)
        u, away = self.apart(v)
        found, total = evaluate("hybrid_dynamics", (q, u, tau, a, free), **given)
        return found - away, total


def _within(s: slice, part: slice) -> slice:
    return slice(s.start + part.start, s.start + part.stop)


def _parts(x: Array) -> tuple[Array, Array, Array]:
    return x[..., 0], x[..., 1], x[..., 2]


# --- balanced rotors -----------------------------------------------------------------------------------------------

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
