"""What passes between a node and its parent.

A parent with modes offers a place that moves with them. At a node of the body with place x, shapes Phi, rotations Psi and
foreshortening chi (`alembert.model.modal`),

    p = x + Phi q + 1/2 q chi q,    R = exp((Psi q)~),    T = [Jl(Psi q) Psi; Phi + chi q + p~ Jl(Psi q) Psi]    (1)

T is the motion of that place per unit of the modal speeds, in the body's axes about its origin. Outward, the node receives

    V + T v,    A + T a + gamma,    gamma = dT/dt v + V x T v                                                    (2)

in place of V and A; what it delivers inward adds to the parent's fields, and to those of its modes:

    F -> (F, T' F),    P -> (P, P T, T' P T),    z -> z + P gamma as a force                                     (3)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca

from alembert.spatial import ArticulatedInertia, Motion, Pose, so3
from alembert.spatial.arrays import skew


class RigidAttachment:
    """A node on a rigid parent: fields pass outward, and contributions inward, as they are.

    Steps only ever see six entries of a parent's motion; what the modes of a parent add is in `ModalAttachment`.
    """

    def receive(self, record: Any, name: str) -> Any:
        """A field of the parent; `placement` is the pose of the joint frame on it."""
        return record.node.placement if name == "placement" else getattr(record.parent, name)

    def deliver(self, record: Any, contributions: Mapping[str, Any]) -> None:
        record.parent.add(**contributions)


RIGID_ATTACHMENT = RigidAttachment()


@dataclass(frozen=True)
class ModalAttachment:
    """A node at a place that the modes of its parent move: (1)-(3)."""

    place: ca.SX
    shapes: ca.SX
    """3 x modes"""
    rotations: ca.SX
    second: list[ca.SX]
    """chi of each mode, 3 x modes; none where the body has no foreshortening"""
    deformed: bool

    @classmethod
    def of(cls, parts: Mapping[str, ca.SX], modes: int, stiffening: str) -> ModalAttachment:
        chi = parts["foreshortening"]
        second = (
            [ca.reshape(chi[3 * modes * k : 3 * modes * (k + 1)], 3, modes) for k in range(modes)]
            if chi.numel()
            else []
        )
        return cls(
            parts["place"],
            ca.reshape(parts["shapes"], 3, modes),
            ca.reshape(parts["rotations"], 3, modes),
            second,
            stiffening != "ruthless",
        )

    def receive(self, record: Any, name: str) -> Any:
        parent = record.parent
        if name == "placement":
            return self._pose(parent.q) @ record.node.placement
        if name == "V":
            return parent.V + self._motion(parent.q, parent.v)
        if name == "A":
            return parent.A + self._motion(parent.q, parent.a) + self._bias(parent)
        return getattr(parent, name)

    def deliver(self, record: Any, contributions: Mapping[str, Any]) -> None:
        """(3): the fields of the modes have the names of the others with `_m`; D_m and J_m are T' P T."""
        found, T = dict(contributions), self.columns(record.parent.q)
        if "P" in found:
            P: ArticulatedInertia = found["P"]
            found["z"] = found["z"] + P @ self._bias(record.parent)
            found["P_m"] = P.columns(T)
            found["D_m"] = T.T @ found["P_m"]
        if "I" in found:
            found["I_m"] = found["I"].articulated().columns(T)
            found["J_m"] = T.T @ found["I_m"]
        for name in found.keys() & {"f", "z"}:
            found[f"{name}_m"] = T.T @ found[name].vector()
        record.parent.add(**found)

    def _pose(self, q: ca.SX) -> Pose:
        """(1)"""
        if not self.deformed:
            return Pose(ca.SX.eye(3), self.place)
        return Pose(so3.exp(self.rotations @ q), self.place + self.shapes @ q + self._shortened(q) @ q / 2)

    def _shortened(self, q: ca.SX) -> ca.SX:
        """chi q, 3 x modes"""
        if not self.second:
            return ca.SX(3, q.numel())
        return sum((self.second[k] * q[k] for k in range(1, q.numel())), self.second[0] * q[0])

    def columns(self, q: ca.SX) -> ca.SX:
        """T of (1)"""
        if not self.deformed:
            turn, shift = self.rotations, self.shapes
        else:
            turn = so3.left_jacobian(self.rotations @ q) @ self.rotations
            shift = self.shapes + self._shortened(q)
        return ca.sparsify(ca.vertcat(turn, shift + skew(self._pose(q).translation) @ turn))

    def _motion(self, q: ca.SX, v: ca.SX) -> Motion:
        return Motion.from_vector(self.columns(q) @ v)

    def _bias(self, parent: Any) -> Motion:
        """dT/dt v + V x T v"""
        q, v = parent.q, parent.v
        at, along = ca.SX.sym("q", q.numel()), ca.SX.sym("v", v.numel())
        change = ca.jtimes(self.columns(at) @ along, at, along)
        change = ca.substitute([change], [at, along], [ca.densify(q), ca.densify(v)])[0]
        return Motion.from_vector(change) + parent.V.cross(self._motion(q, v))
