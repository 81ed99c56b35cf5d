"""A model built in Pinocchio, joint by joint, and asked in Alembert's coordinates.

Pinocchio puts linear parts first and has other coordinates for some joints; v' = T(q) v takes speeds there, and since T
turns or reorders them, efforts as well (see `alembert.model.io.convert`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin

from alembert.joints import Fixed, Gimbal
from alembert.model import WORLD, Body, Model
from alembert.model.io.convert import (
    accelerations_from_pinocchio,
    accelerations_to_pinocchio,
    from_pinocchio,
    to_pinocchio,
)
from alembert.model.placement import Placement
from alembert.verify.programs import OtherDynamics, check_tree

Array = np.ndarray


class InPinocchio(OtherDynamics):
    """`alembert.verify.programs.Dynamics` by Pinocchio; its own energy leaves out the armature of some joints (4.1)."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.other = in_pinocchio(model)
        self.data = self.other.createData()

    def forward_dynamics(self, q: Any, v: Any, tau: Any) -> Array:
        qp, vp = self._state(q, v)
        a = pin.aba(self.other, self.data, qp, vp, self._state(q, tau)[1]).copy()
        return accelerations_from_pinocchio(self.model, qp, vp, a, pin_model=self.other)

    def inverse_dynamics(self, q: Any, v: Any, a: Any) -> Array:
        qp, vp = self._state(q, v)
        ap = accelerations_to_pinocchio(self.model, q, v, a, pin_model=self.other)
        tau = pin.rnea(self.other, self.data, qp, vp, ap).copy()
        return from_pinocchio(self.model, qp, tau, pin_model=self.other)[1]

    def mass_matrix(self, q: Any) -> Array:
        turn = to_pinocchio(self.model, q, np.eye(self.model.nv), pin_model=self.other)[1]
        M = pin.crba(self.other, self.data, to_pinocchio(self.model, q, pin_model=self.other))
        return turn @ (np.triu(M) + np.triu(M, 1).T) @ turn.T

    def potential_energy(self, q: Any) -> float:
        qp = to_pinocchio(self.model, q, pin_model=self.other)
        return float(pin.computePotentialEnergy(self.other, self.data, qp))

    def _state(self, q: Any, v: Any) -> tuple[Array, Array]:
        return to_pinocchio(self.model, q, v, pin_model=self.other)


def in_pinocchio(model: Model) -> Any:
    """Joint by joint; bodies on fixed joints are added to what carries them."""
    check_tree("pinocchio", model, (*JOINTS, "fixed"))
    result = pin.Model()
    result.gravity.linear = np.array(model.gravity)
    where: dict[str, tuple[int, Any]] = {WORLD: (0, pin.SE3.Identity())}
    for body, joint in zip(model.bodies, model.joints, strict=True):
        carrier, offset = where[joint.parent]
        placement = offset * _se3(joint.placement)
        if isinstance(joint.type, Fixed):
            where[body.name] = (carrier, placement)
            if carrier:
                result.appendBodyToJoint(carrier, _inertia(body), placement)
        else:
            index = result.addJoint(carrier, JOINTS[joint.type.kind](joint.type), placement, joint.name)
            result.appendBodyToJoint(index, _inertia(body), pin.SE3.Identity())
            where[body.name] = (index, pin.SE3.Identity())
            if any(joint.armature):
                at = result.joints[index].idx_v
                armature = result.armature
                armature[at : at + joint.type.nv] = joint.armature
                result.armature = armature
    for frame in model.frames:
        carrier, offset = where[frame.body]
        result.addFrame(
            pin.Frame(frame.name, carrier, 0, offset * _se3(frame.placement), pin.FrameType.OP_FRAME)
        )
    return result


def _se3(placement: Placement) -> Any:
    X = placement.pose({})
    return pin.SE3(np.asarray(X.rotation), np.asarray(X.translation).ravel())


def _inertia(body: Body) -> Any:
    return pin.Inertia(body.inertia.mass, np.array(body.inertia.com), body.inertia.matrix())


def _composite(*parts: Any) -> Any:
    joint = pin.JointModelComposite()
    for part in parts:
        joint.addJoint(part)
    return joint


def _gimbal(joint: Gimbal) -> Any:
    if joint.sequence == "zyx":
        return pin.JointModelSphericalZYX()
    letters = {"x": pin.JointModelRX, "y": pin.JointModelRY, "z": pin.JointModelRZ}
    return _composite(*(letters[letter]() for letter in joint.sequence))


def _revolute(axis: Any) -> Any:
    aligned = {(1, 0, 0): pin.JointModelRX, (0, 1, 0): pin.JointModelRY, (0, 0, 1): pin.JointModelRZ}
    found = aligned.get(tuple(axis))
    return found() if found else pin.JointModelRevoluteUnaligned(np.array(axis))


JOINTS: dict[str, Callable[[Any], Any]] = {
    "revolute": lambda t: _revolute(t.axis),
    "prismatic": lambda t: pin.JointModelPrismaticUnaligned(np.array(t.axis)),
    "screw": lambda t: pin.JointModelHelicalUnaligned(np.array(t.axis), t.pitch),
    "cylindrical": lambda t: _composite(
        pin.JointModelRevoluteUnaligned(np.array(t.axis)), pin.JointModelPrismaticUnaligned(np.array(t.axis))
    ),
    "universal": lambda t: _composite(
        pin.JointModelRevoluteUnaligned(np.array(t.first)),
        pin.JointModelRevoluteUnaligned(np.array(t.second)),
    ),
    "planar": lambda t: pin.JointModelPlanar(),
    "spherical": lambda t: pin.JointModelSpherical(),
    "gimbal": _gimbal,
    "translational": lambda t: pin.JointModelTranslation(),
    "free": lambda t: pin.JointModelFreeFlyer(),
}
"""joint types that Pinocchio has, by ours"""
