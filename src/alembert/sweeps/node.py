"""One moving body as the steps see it: its structure, its constants, and the two bound together.

The *structure* says which joint a node has and what the joint carries; it holds no numbers. The *constants* are one flat
vector. A node is bound to a vector of `SX`: numbers and parameter symbols when a model is unrolled, plain symbols when
one step is to serve all nodes of the same structure.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from alembert.joints import JointType
from alembert.spatial import Pose, RigidInertia


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
        )

    @property
    def size(self) -> int:
        return sum(size for _, size in self.layout)


class Node:
    """A structure with its constants, a vector of `SX`."""

    def __init__(self, structure: Structure, constants: ca.SX) -> None:
        self.structure = structure
        self._parts: dict[str, ca.SX] = {}
        start = 0
        for name, size in structure.layout:
            self._parts[name] = constants[start : start + size]
            start += size
        self.nq, self.nv = structure.joint.nq, structure.joint.nv
        self.joint = structure.joint.with_constants(self._parts["joint"])

    @cached_property
    def placement(self) -> Pose:
        """X_PF, the joint frame on the parent; the one place to change for a parent that deforms."""
        R = ca.reshape(self._parts["rotation"], 3, 3).T
        return Pose(ca.sparsify(R), ca.sparsify(self._parts["translation"]))

    @cached_property
    def inertia(self) -> RigidInertia:
        xx, xy, yy, xz, yz, zz = (self._parts["inertia"][k] for k in range(6))
        I = ca.vertcat(ca.horzcat(xx, xy, xz), ca.horzcat(xy, yy, yz), ca.horzcat(xz, yz, zz))
        return RigidInertia(self._parts["mass"], self._parts["moment"], I)

    def own_effort(self, q: ca.SX, v: ca.SX) -> ca.SX | None:
        """Spring and friction, (1)-(3) of `alembert.joints.attachments`; None where there is neither."""
        parts = []
        if self.structure.spring:
            step = ca.SX.sym("step", self.nv)
            gradient = ca.gradient(self._spring_energy(self.joint.integrate(q, step)), step)
            parts.append(-ca.substitute(gradient, step, ca.SX.zeros(self.nv)))
        if self.structure.viscous:
            parts.append(-self._parts["viscous"] * v)
        if self.structure.coulomb:
            s = self._parts["smoothing"]
            parts.append(-self._parts["coulomb"] * v / ca.sqrt(v * v + s * s))
        return sum(parts[1:], parts[0]) if parts else None

    def spring_energy(self, q: ca.SX) -> ca.SX:
        return self._spring_energy(q) if self.structure.spring else ca.SX(0)

    def _spring_energy(self, q: ca.SX) -> ca.SX:
        d = self.joint.difference(self._parts["rest"], q)
        return ca.dot(d, self._parts["stiffness"] * d) / 2

    @cached_property
    def reflected_inertia(self) -> ca.SX | None:
        """Armature and rotors on the diagonal of the mass matrix, (nv x nv); None where there is neither."""
        if not (self.structure.armature or self.structure.rotors):
            return None
        diagonal = self._parts["armature"] if self.structure.armature else ca.SX.zeros(self.nv)
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
        parts = self._parts["rotor"]
        return [
            (dof, parts[5 * k], parts[5 * k + 1], parts[5 * k + 2 : 5 * k + 5])
            for k, dof in enumerate(self.structure.rotors)
        ]
