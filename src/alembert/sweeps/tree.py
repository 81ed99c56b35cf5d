"""The tree that the sweeps run over: the model's moving bodies.

Bodies on fixed joints are made one with what carries them, so that they cost nothing; every body of the model keeps a
constant placement on its node. Degrees of freedom are those of the model, in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from alembert.expression import evaluate
from alembert.joints import Friction
from alembert.model import WORLD, Inertia, Joint, Model, Placement
from alembert.sweeps.node import Node, Structure


@dataclass(frozen=True)
class Tree:
    model: Model
    joints: tuple[Joint, ...]
    """the moving joints, one per node"""
    parents: tuple[int, ...]
    placements: tuple[Placement, ...]
    """X_PF of each node on its parent node (or on the world)"""
    inertias: tuple[Inertia, ...]
    carriers: tuple[tuple[int, Placement], ...]
    """for each body of the model: its node (-1 for the world) and its placement on it"""

    @classmethod
    def of(cls, model: Model) -> Tree:
        joints: list[Joint] = []
        parents: list[int] = []
        placements: list[Placement] = []
        inertias: list[Inertia] = []
        carriers: dict[str, tuple[int, Placement]] = {WORLD: (-1, Placement())}
        for body, joint in zip(model.bodies, model.joints, strict=True):
            carrier, offset = carriers[joint.parent]
            where = offset @ joint.placement
            if joint.type.nv:
                carriers[body.name] = (len(joints), Placement())
                joints.append(joint)
                parents.append(carrier)
                placements.append(where)
                inertias.append(body.inertia)
            else:
                carriers[body.name] = (carrier, where)
                if carrier >= 0:
                    inertias[carrier] = inertias[carrier] + body.inertia.at(where)
        return cls(
            model,
            tuple(joints),
            tuple(parents),
            tuple(placements),
            tuple(inertias),
            tuple(carriers[body.name] for body in model.bodies),
        )

    def __len__(self) -> int:
        return len(self.joints)

    @cached_property
    def q_slices(self) -> tuple[slice, ...]:
        return tuple(self.model.q_slice(joint.name) for joint in self.joints)

    @cached_property
    def v_slices(self) -> tuple[slice, ...]:
        return tuple(self.model.v_slice(joint.name) for joint in self.joints)

    @cached_property
    def structures(self) -> tuple[Structure, ...]:
        return tuple(_structure(joint) for joint in self.joints)

    @cached_property
    def parameter_symbols(self) -> ca.SX:
        return ca.vertcat(ca.SX(0, 1), *(ca.SX.sym(name) for name, _ in self.model.parameters))

    def constants(self, index: int, parameters: ca.SX) -> ca.SX:
        """The constants of a node with `SX` values for the parameters; numbers stay numbers."""
        values = {name: parameters[k] for k, (name, _) in enumerate(self.model.parameters)}
        joint, structure = self.joints[index], self.structures[index]
        pose = self.placements[index].symbolic_pose(values)
        mass, *rest = self.inertias[index].ten_vector()
        parts: dict[str, object] = {
            "rotation": ca.vec(ca.densify(pose.rotation).T),
            "translation": pose.translation,
            "mass": mass,
            "moment": rest[:3],
            "inertia": rest[3:],
            "joint": joint.type.constants(),
        }
        if joint.spring:
            neutral = tuple(float(x) for x in joint.type.neutral())
            parts |= {"stiffness": joint.spring.stiffness, "rest": joint.spring.rest or neutral}
        friction = joint.friction or Friction()
        parts |= {"viscous": friction.viscous, "coulomb": friction.coulomb, "smoothing": friction.smoothing}
        parts["armature"] = joint.armature
        parts["rotor"] = tuple(x for r in joint.rotors for x in (r.ratio, r.inertia, *r.axis))
        columns = []
        for name, size in structure.layout:
            if size:
                value = parts[name]
                if not isinstance(value, ca.SX):
                    entries = value if isinstance(value, (tuple, list)) else (value,)
                    value = ca.vertcat(*(ca.SX(evaluate(entry, values)) for entry in entries))
                columns.append(value)
        return ca.vertcat(*columns)

    def gravity(self, parameters: ca.SX) -> ca.SX:
        values = {name: parameters[k] for k, (name, _) in enumerate(self.model.parameters)}
        return ca.vertcat(*(ca.SX(evaluate(entry, values)) for entry in self.model.gravity))

    def nodes(self, parameters: ca.SX) -> list[Node]:
        return [Node(s, self.constants(k, parameters)) for k, s in enumerate(self.structures)]

    @cached_property
    def ancestors(self) -> tuple[tuple[int, ...], ...]:
        """For each node, itself and the nodes inboard of it, outermost first."""
        found: list[tuple[int, ...]] = []
        for k, parent in enumerate(self.parents):
            found.append((k, *(found[parent] if parent >= 0 else ())))
        return tuple(found)

    @cached_property
    def support(self) -> np.ndarray:
        """(nodes + 1) x nv: whether a speed moves a node; the last row, for the world, is all false."""
        table = np.zeros((len(self) + 1, self.model.nv), dtype=bool)
        for k, chain in enumerate(self.ancestors):
            for j in chain:
                table[k, self.v_slices[j]] = True
        return table


def _structure(joint: Joint) -> Structure:
    friction = joint.friction or Friction()
    template = joint.type.with_constants((0.0,) * len(joint.type.constants()))
    return Structure(
        template,
        spring=joint.spring is not None,
        viscous=any(x != 0.0 for x in friction.viscous),
        coulomb=any(x != 0.0 for x in friction.coulomb),
        armature=any(x != 0.0 for x in joint.armature),
        rotors=tuple(rotor.dof for rotor in joint.rotors),
    )

