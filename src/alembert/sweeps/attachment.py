"""What passes between a node and a parent that has modes.

A parent with modes offers a place that moves with them. At a node of the body with place x, shapes Phi, rotations Psi and
foreshortening chi (`alembert.model.modal`), and the second order eta of its rotation vector b, where it has one,

    p = x + Phi q + 1/2 q chi q,    R = exp(b~),    b = Psi q + 1/2 q eta q,    W = Jl(b) (Psi + eta q)
    T = [W; Phi + chi q + p~ W]                                                                                  (1)

T is the motion of that place per unit of the modal speeds, in the body's axes about its origin. Outward, the node receives

    V + T v,    A + T a + gamma,    gamma = dT/dt v + V x T v                                                    (2)

in place of V and A; what it delivers inward adds to the parent's fields, and to those of its modes:

    F -> (F, T' F),    P -> (P, P T, T' P T),    z -> z + P gamma as a force                                     (3)

With the modes eliminated (U and D of `alembert.sweeps.modal`), a place answers forces by the admittance

    psi' Y psi + T D^-1 T',    psi = 1 - U D^-1 T'                                                               (4)

where Y is that of the body's frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca

from alembert.spatial import ArticulatedInertia, Motion, Pose, so3
from alembert.spatial.arrays import cross, skew, symmetric

OF_MODES = frozenset(("q", "v", "a", "da", "P_m", "D_m", "z_m", "f_m", "I_m", "J_m"))
"""the fields of a parent with modes that a `ModalAttachment` reads or adds to"""


@dataclass(frozen=True)
class ModalAttachment:
    """A node at a place that the modes of its parent move: (1)-(3)."""

    place: ca.SX
    shapes: ca.SX
    """3 x modes"""
    rotations: ca.SX
    second: list[ca.SX]
    """chi of each mode, 3 x modes; none where the body has no foreshortening"""
    turning: list[ca.SX]
    """eta of each mode, 3 x modes; none where the place turns to first order"""
    deformed: bool

    @classmethod
    def of(cls, parts: Mapping[str, ca.SX], modes: int, stiffening: str) -> ModalAttachment:
        size = 3 * modes
        second, turning = (
            [
                ca.sparsify(ca.reshape(given[size * k : size * (k + 1)], 3, modes))
                for k in range(given.numel() // size)
            ]
            for given in (parts["foreshortening"], parts["turning"])
        )
        return cls(
            parts["place"],
            ca.sparsify(ca.reshape(parts["shapes"], 3, modes)),
            ca.sparsify(ca.reshape(parts["rotations"], 3, modes)),
            second,
            turning,
            stiffening != "ruthless",
        )

    def receive(self, record: Any, name: str) -> Any:
        """Leaves the place and T, and gamma as soon as the parent's motion is known, in the node's record."""
        parent = record.parent
        if name == "placement":
            if not record.has("T_P"):
                record.T_P = self.columns(parent.q)
                place = self._pose(parent.q)
                record.R_P, record.X_P = place.rotation, place @ record.node.placement
            return record.X_P
        if name == "V":
            if not record.has("gamma_P"):
                relative = Motion.from_vector(record.T_P @ parent.v)
                record.gamma_P, record.V_P = self._bias(parent, relative), parent.V + relative
            return record.V_P
        if name == "A":
            found = parent.A + Motion.from_vector(record.T_P @ parent.a)
            return found + record.gamma_P if record.has("gamma_P") else found
        if name == "Upsilon":
            # (4); the force of the place is felt in the body's frame as psi_P times it
            record.psi_P = ca.SX.eye(6) - parent.factor.solve(parent.U.T).T @ record.T_P.T
            own = record.T_P @ parent.factor.solve(record.T_P.T)
            return record.psi_P.T @ parent.Upsilon @ record.psi_P + own
        if name == "dA":
            return parent.dA + Motion.from_vector(record.T_P @ parent.da)
        return getattr(parent, name)

    def deliver(self, record: Any, contributions: Mapping[str, Any]) -> None:
        """(3): the fields of the modes have the names of the others with `_m`; D_m and J_m are T' P T."""
        found, T = dict(contributions), record.T_P
        if "P" in found:
            P: ArticulatedInertia = found["P"]
            if "z" in found and record.has("gamma_P"):
                found["z"] = found["z"] + P @ record.gamma_P
            found["P_m"] = P.columns(T)
            found["D_m"] = symmetric(T.T @ found["P_m"])
        if "I" in found:
            found["I_m"] = found["I"].articulated().columns(T)
            found["J_m"] = symmetric(T.T @ found["I_m"])
        for name in found.keys() & {"f", "z"}:
            found[f"{name}_m"] = T.T @ found[name].vector()
        record.parent.add(**found)

    def see(self, record: Any) -> None:
        """T in world axes about the world's origin."""
        X, T = record.parent.X_W, record.T_P
        moved = [X.motion(Motion.from_vector(T[:, k])).vector() for k in range(T.shape[1])]
        record.columns_P = ca.horzcat(*moved)

    def _pose(self, q: ca.SX) -> Pose:
        """(1)"""
        if not self.deformed:
            return Pose(ca.SX.eye(3), self.place)
        angles = self._angles(q)
        axis = self._axis
        R = so3.exp(angles) if axis is None else _turn(axis, angles[axis])
        return Pose(R, self.place + self.shapes @ q + _times(self.second, q) @ q / 2)

    def _angles(self, q: ca.SX) -> ca.SX:
        """b of (1)"""
        return self.rotations @ q + _times(self.turning, q) @ q / 2

    @property
    def _axis(self) -> int | None:
        """The only axis that the modes turn the place about, if there is only one: then turns add."""
        if self.turning:
            return None
        rows = [k for k in range(3) if self.rotations[k, :].nnz()]
        return rows[0] if len(rows) == 1 else None

    def columns(self, q: ca.SX) -> ca.SX:
        """T of (1)"""
        turn, shift = self.rotations, self.shapes
        if self.deformed:
            shift = shift + _times(self.second, q)
            if self._axis is None and turn.nnz():
                turn = so3.left_jacobian(self._angles(q)) @ (turn + _times(self.turning, q))
        return ca.sparsify(ca.vertcat(turn, shift + skew(self._pose(q).translation) @ turn))

    def _bias(self, parent: Any, relative: Motion) -> Motion:
        """dT/dt v + V x T v: with Omega the rate of the place in the body, (Omega', chi(v, v) + p x Omega' + p' x Omega)."""
        q, v = parent.q, parent.v
        found = parent.V.cross(relative)
        if not self.deformed:
            return found
        change, p = ca.SX(3, 1), self._pose(q).translation
        if self._axis is None and self.rotations.nnz():
            at, along = ca.SX.sym("theta", 3), ca.SX.sym("rate", 3)
            slope = ca.jtimes(so3.left_jacobian(at) @ along, at, along)
            angles = ca.densify(self._angles(q))
            rates = ca.densify((self.rotations + _times(self.turning, q)) @ v)
            change = ca.substitute([slope], [at, along], [angles, rates])[0]
            if self.turning:
                change = change + so3.left_jacobian(angles) @ (_times(self.turning, v) @ v)
        Omega = relative.angular
        speed = relative.linear - cross(p, Omega)
        linear = _times(self.second, v) @ v + cross(p, change) + cross(speed, Omega)
        return found + Motion(change, linear)


def _times(second: list[ca.SX], q: ca.SX) -> ca.SX:
    """chi q or eta q, 3 x modes"""
    if not second:
        return ca.SX(3, q.numel())
    return sum((second[k] * q[k] for k in range(1, q.numel())), second[0] * q[0])


def _turn(axis: int, angle: ca.SX) -> ca.SX:
    """The rotation about a coordinate axis."""
    c, s = ca.cos(angle), ca.sin(angle)
    R = ca.SX.eye(3)
    j, k = (axis + 1) % 3, (axis + 2) % 3
    R[j, j], R[k, k], R[j, k], R[k, j] = c, c, -s, s
    return R
