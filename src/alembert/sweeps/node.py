"""One moving body as the steps see it: its structure, its constants, how it hangs from its parent, what is known of it.

The *structure* says which joint a node has and what the joint carries; it holds no numbers. The *constants* are one flat
vector. A node is bound to a vector of `SX`: numbers and parameter symbols when a model is unrolled, plain symbols when
one step is to serve all nodes of the same structure.

A body may have coordinates of its own, the modes in which it deforms. It then is a node of its own, the *mode node*, below
the node of its joint, and carries all that hangs from the body. So a structure also says what the node hangs from, and the
*attachment* of a node is what passes between it and its parent (`alembert.sweeps.modal`).

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

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca

from alembert.errors import UnsupportedError
from alembert.joints import JointType
from alembert.spatial import ArticulatedInertia, Motion, Pose, RigidInertia, so3
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


@dataclass(frozen=True)
class Carrier:
    """What a node hangs from, as far as its steps must know: how many modes move the place where it hangs."""

    modes: int = 0
    stiffening: str = ""
    """that of the body: the place is displaced to second order, to first order, or not at all"""
    turning: bool = False
    """whether the place turns to second order too"""

    @property
    def layout(self) -> tuple[tuple[str, int], ...]:
        n = self.modes
        second = 3 * n * n if self.stiffening == "consistent" else 0
        return (
            ("place", 3 if n else 0),
            ("shapes", 3 * n),
            ("rotations", 3 * n),
            ("foreshortening", second),
            ("turning", second if self.turning else 0),
        )


RIGID = Carrier()
PLAIN = (0.0, 1.0, -1.0)
"""numbers that save arithmetic where they stand"""
_ROTATION = 9  # constants of the placement come first
_TELLING = ("rotation", "joint")
"""parts of the constants whose zeros and ones change the course of steps; with modes, all parts do"""


@dataclass(frozen=True)
class Structure:
    """`joint` is a template: its class and names matter, its numbers do not."""

    joint: JointType
    spring: bool = False
    viscous: bool = False
    coulomb: bool = False
    armature: bool = False
    rotors: tuple[int, ...] = ()
    """the degree of freedom that each rotor is geared to"""
    carrier: Carrier = RIGID
    stiffening: str = ""
    """of a mode node: which integrals its body has, as `alembert.model.modal` says; empty for a joint"""
    guarded: bool = False
    """it moves a body displaced to second order, whose mass matrix is positive for small deflections only"""

    @property
    def layout(self) -> tuple[tuple[str, int], ...]:
        """Names and sizes of the parts of the constants."""
        nq, nv = self.joint.nq, self.joint.nv
        return (
            ("rotation", 9),
            ("translation", 3),
            ("mass", 1),
            ("moment", 3),
            ("inertia", 6),
            ("joint", len(self.joint.constants())),
            ("stiffness", nv if self.spring else 0),
            ("rest", nq if self.spring else 0),
            ("viscous", nv if self.viscous else 0),
            ("coulomb", nv if self.coulomb else 0),
            ("smoothing", 1 if self.coulomb else 0),
            ("armature", nv if self.armature else 0),
            ("rotor", 5 * len(self.rotors)),
            *self._modal_layout,
            *self.carrier.layout,
        )

    @property
    def _modal_layout(self) -> tuple[tuple[str, int], ...]:
        if not self.stiffening:
            return ()
        n = self.joint.nv
        lower = n * (n + 1) // 2
        pairs = lower if self.stiffening == "consistent" else 0
        return (
            ("shape_moments", 3 * n),
            ("shape_products", 9 * n),
            ("pair_products", 9 * n * n),
            ("pair_spins", 3 * (lower - n)),
            ("modal_mass", lower),
            ("modal_stiffness", lower),
            ("modal_damping", lower),
            ("foreshortening_moments", 3 * pairs),
            ("foreshortening_spins", 3 * pairs),
        )

    @property
    def size(self) -> int:
        return sum(size for _, size in self.layout)


class RigidAttachment:
    """A node on a rigid parent: fields pass outward, and contributions inward, as they are.

    Steps only ever see six entries of a parent's motion; what the modes of a parent add is in `ModalAttachment`.
    """

    def receive(self, record: Any, name: str) -> Any:
        """A field of the parent; `placement` is the pose of the joint frame on it."""
        return record.node.placement if name == "placement" else getattr(record.parent, name)

    def deliver(self, record: Any, contributions: Mapping[str, Any]) -> None:
        record.parent.add(**contributions)

    def see(self, record: Any) -> None:
        """Leave what the modes of the parent move the place by, in world axes: here there are none."""


RIGID_ATTACHMENT = RigidAttachment()


class Node:
    """A structure with its constants, a vector of `SX`."""

    attachment: Any = RIGID_ATTACHMENT

    def __init__(self, structure: Structure, constants: ca.SX) -> None:
        self.structure, self.constants = structure, constants
        self.parts: dict[str, ca.SX] = {}
        """the constants by name, see `Structure.layout`"""
        start = 0
        for name, size in structure.layout:
            self.parts[name] = constants[start : start + size]
            start += size
        self.nq, self.nv = structure.joint.nq, structure.joint.nv
        self.joint = structure.joint.with_constants(self.parts["joint"])
        if structure.carrier.modes:
            self.attachment = ModalAttachment.of(
                self.parts, structure.carrier.modes, structure.carrier.stiffening
            )

    def course(self, *, placed: bool = True) -> tuple[Structure, tuple[float | None, ...]]:
        """What the course of a step may depend on: the structure, and the numbers 0, 1 and -1 where they tell.

        Those of the placement tell only where it is asked for (`placed`).
        """
        return self.structure, self._telling if placed else self._telling[_ROTATION:]

    @cached_property
    def _telling(self) -> tuple[float | None, ...]:
        modal = self.structure.stiffening or self.structure.carrier.modes
        found: list[float | None] = []
        for name, size in self.structure.layout:
            if modal or name in _TELLING:
                entries: list[Any] = self.parts[name].elements()
                numbers = (float(x) if x.is_constant() else None for x in entries)
                found += (x if x in PLAIN else None for x in numbers)
            else:
                found += [None] * size
        return tuple(found)

    @cached_property
    def placement(self) -> Pose:
        """X_PF, the joint frame on the undeformed parent."""
        R = ca.reshape(self.parts["rotation"], 3, 3).T
        return Pose(ca.sparsify(R), ca.sparsify(self.parts["translation"]))

    @cached_property
    def inertia(self) -> RigidInertia:
        if self.structure.stiffening:
            raise UnsupportedError(
                "this algorithm does not take flexible bodies yet (modes have no rigid inertia)"
            )
        xx, xy, yy, xz, yz, zz = (self.parts["inertia"][k] for k in range(6))
        I = ca.vertcat(ca.horzcat(xx, xy, xz), ca.horzcat(xy, yy, yz), ca.horzcat(xz, yz, zz))
        return RigidInertia(self.parts["mass"], self.parts["moment"], I)

    def own_effort(self, q: ca.SX, v: ca.SX) -> ca.SX | None:
        """Spring and friction, (1)-(3) of `alembert.joints.attachments`; None where there is neither."""
        parts = []
        if self.structure.spring:
            step = ca.SX.sym("step", self.nv)
            gradient = ca.gradient(self._spring_energy(self.joint.integrate(q, step)), step)
            parts.append(-ca.substitute(gradient, step, ca.SX.zeros(self.nv)))
        if self.structure.viscous:
            parts.append(-self.parts["viscous"] * v)
        if self.structure.coulomb:
            s = self.parts["smoothing"]
            parts.append(-self.parts["coulomb"] * v / ca.sqrt(v * v + s * s))
        return sum(parts[1:], parts[0]) if parts else None

    def spring_energy(self, q: ca.SX) -> ca.SX:
        return self._spring_energy(q) if self.structure.spring else ca.SX(0)

    def _spring_energy(self, q: ca.SX) -> ca.SX:
        d = self.joint.difference(self.parts["rest"], q)
        return ca.dot(d, self.parts["stiffness"] * d) / 2

    @cached_property
    def reflected_inertia(self) -> ca.SX | None:
        """Armature and rotors on the diagonal of the mass matrix, (nv x nv); None where there is neither."""
        if not (self.structure.armature or self.structure.rotors):
            return None
        diagonal = self.parts["armature"] if self.structure.armature else ca.SX.zeros(self.nv)
        diagonal = ca.SX(diagonal)
        for dof, ratio, inertia, _ in self._rotors:
            diagonal[dof] += ratio * ratio * inertia
        return ca.diag(diagonal)

    @cached_property
    def rotor_momentum(self) -> ca.SX | None:
        """Angular momentum of the rotors per unit speed, 3 x nv in parent axes; None where there is no rotor."""
        if not self.structure.rotors:
            return None
        columns = [ca.SX(3, 1) for _ in range(self.nv)]
        for dof, ratio, inertia, axis in self._rotors:
            columns[dof] = columns[dof] + ratio * inertia * (self.placement.rotation @ axis)
        return ca.horzcat(*columns)

    @property
    def _rotors(self) -> list[tuple[int, ca.SX, ca.SX, ca.SX]]:
        parts = self.parts["rotor"]
        return [
            (dof, parts[5 * k], parts[5 * k + 1], parts[5 * k + 2 : 5 * k + 5])
            for k, dof in enumerate(self.structure.rotors)
        ]


class Record:
    """What is known of one node during a program. Steps set attributes; readers get `Any`."""

    node: Node
    parent: Record

    def __init__(self, **known: Any) -> None:
        self.__dict__.update(known)

    def __getattr__(self, name: str) -> Any:
        if "node" in self.__dict__ and self.node.structure.stiffening:
            raise UnsupportedError(
                f"this algorithm does not take flexible bodies yet (modes have no {name!r})"
            )
        raise AttributeError(f"no step before this one has left {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value

    def has(self, name: str) -> bool:
        return name in self.__dict__

    def receive(self, name: str) -> Any:
        """What the parent hands outward under this name."""
        return self.node.attachment.receive(self, name)

    def is_offered(self, name: str) -> bool:
        """Whether the parent has such a field: what steps leave with nodes, the world does not have."""
        return self.parent.has(name)

    def deliver(self, **contributions: Any) -> None:
        """Hand contributions inward: they add to the fields of the parent."""
        self.node.attachment.deliver(self, contributions)

    def own_effort(self) -> ca.SX | None:
        """Spring and friction of the node, unless the program leaves them out."""
        return self.node.own_effort(self.q, self.v) if self.passive else None

    def rotor_momentum(self) -> ca.SX | None:
        """That of the node, turned with the place where it hangs on a parent that deforms."""
        r = self.node.rotor_momentum
        return r if r is None or not self.has("R_P") else self.R_P @ r

    def add(self, **contributions: Any) -> None:
        """Add to fields that several children contribute to; the first contribution makes the field."""
        for name, value in contributions.items():
            self.__dict__[name] = self.__dict__[name] + value if name in self.__dict__ else value


def map_matrices(value: Any, f: Callable[[ca.SX], ca.SX]) -> Any:
    """A copy of a value (spatial types, factors, tuples of them) with `f` applied to every `SX` in it."""
    if isinstance(value, ca.SX):
        return f(value)
    if isinstance(value, tuple | list):
        return type(value)(map_matrices(x, f) for x in value)
    if value is None or isinstance(value, int | float | str):
        return value
    copy = object.__new__(type(value))
    copy.__dict__.update({name: map_matrices(x, f) for name, x in vars(value).items()})
    return copy
