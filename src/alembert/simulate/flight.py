"""Dynamics of what flies fast, without the velocity that all its bodies share.

A steady velocity of a whole tree leaves its dynamics as they are (Galileo). But v x (m v), which is zero, is rounded to
m |v|^2 1e-16: at 7.5 km/s that makes angular accelerations of 1e-9 rad/s^2 that jump from state to state, and error control
goes after them in tiny steps. So accelerations are evaluated at u, which is v without the velocity of the trees' roots:

    u = (w, 0),    (w', v') = a(q, u) - (0, w x v)                                        (1)

for a root with angular velocity w and velocity v in body axes; in axes that do not turn there is nothing to add. Loops,
couplings and equations within one vehicle do not see its velocity either. Fixed steps gain as well: the angular
accelerations of rounding would turn a satellite by 1e-5 rad within an hour.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from alembert.constraints.equations import unseen_roots
from alembert.model import Model

Array = np.ndarray


class Flight:
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
