"""A model built in MuJoCo, body by body, without contacts and limits, and asked in Alembert's coordinates."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from alembert.errors import UnsupportedError
from alembert.model import WORLD, Model
from alembert.model.io.convert import (
    accelerations_from_mujoco,
    accelerations_to_mujoco,
    from_mujoco,
    to_mujoco,
)
from alembert.spatial.quaternion import from_matrix
from alembert.verify.programs import OtherDynamics, check_tree

Array = np.ndarray

_TYPES = {
    "revolute": mujoco.mjtJoint.mjJNT_HINGE,
    "prismatic": mujoco.mjtJoint.mjJNT_SLIDE,
    "spherical": mujoco.mjtJoint.mjJNT_BALL,
    "free": mujoco.mjtJoint.mjJNT_FREE,
}


class InMujoco(OtherDynamics):
    """`alembert.verify.programs.Dynamics` by MuJoCo."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.other = in_mujoco(model)
        self.data = mujoco.MjData(self.other)

    def forward_dynamics(self, q: Any, v: Any, tau: Any) -> Array:
        _, applied = to_mujoco(self.model, q, tau, mj_model=self.other)
        self._set(q, v, applied)
        mujoco.mj_forward(self.other, self.data)
        return self._accelerations()

    def inverse_dynamics(self, q: Any, v: Any, a: Any) -> Array:
        self._set(q, v, 0.0)
        self.data.qacc[:] = accelerations_to_mujoco(self.model, q, v, a, mj_model=self.other)
        mujoco.mj_inverse(self.other, self.data)
        return from_mujoco(self.model, self.data.qpos, self.data.qfrc_inverse, mj_model=self.other)[1]

    def mass_matrix(self, q: Any) -> Array:
        zero = np.zeros(self.model.nv)
        self._set(q, zero, 0.0)
        mujoco.mj_forward(self.other, self.data)
        full = np.empty((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.other, self.data, full)
        turn = to_mujoco(self.model, q, np.eye(self.model.nv), mj_model=self.other)[1]
        return turn @ full @ turn.T

    def potential_energy(self, q: Any) -> float:
        self._set(q, np.zeros(self.model.nv), 0.0)
        mujoco.mj_forward(self.other, self.data)
        mujoco.mj_energyPos(self.other, self.data)
        return float(self.data.energy[0])

    def _set(self, q: Any, v: Any, applied: Any) -> None:
        qpos, qvel = to_mujoco(self.model, q, v, mj_model=self.other)
        self.data.qpos[:], self.data.qvel[:], self.data.qfrc_applied[:] = qpos, qvel, applied

    def _accelerations(self) -> Array:
        d = self.data
        return accelerations_from_mujoco(
            self.model, d.qpos.copy(), d.qvel.copy(), d.qacc.copy(), mj_model=self.other
        )


def in_mujoco(model: Model) -> Any:
    """Hinges, slides, balls and free bodies; anything else is refused."""
    check_tree("mujoco", model, (*_TYPES, "fixed"))
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.gravity = list(model.gravity)
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    bodies: dict[str, Any] = {WORLD: spec.worldbody}
    for body, joint in zip(model.bodies, model.joints, strict=True):
        X = joint.placement.pose({})
        pos, quat = np.asarray(X.translation, dtype=float).ravel(), from_matrix(np.asarray(X.rotation))
        xx, xy, yy, xz, yz, zz = (model.value(x) for x in body.inertia.tensor)
        there = bodies[joint.parent].add_body(
            name=body.name, pos=pos, quat=np.asarray(quat, dtype=float).ravel()
        )
        there.explicitinertial = True
        there.mass = model.value(body.inertia.mass)
        there.ipos = np.array([model.value(x) for x in body.inertia.com])
        there.fullinertia = np.array([xx, yy, zz, xy, xz, yz])
        bodies[body.name] = there
        kind = joint.type.kind
        if kind == "fixed":
            continue
        added = there.add_joint(name=joint.name, type=_TYPES[kind])
        if kind in ("revolute", "prismatic"):
            added.axis = np.array(joint.type.axis, dtype=float)  # type: ignore[attr-defined]
        if any(joint.armature):
            if len(set(joint.armature)) > 1:
                raise UnsupportedError(f"mujoco: one armature for a joint, {joint.name!r} has several")
            added.armature = model.value(joint.armature[0])
    try:
        return spec.compile()
    except ValueError as error:  # such as a point mass, which has no inertia of its own
        raise UnsupportedError(f"mujoco: does not take {model.name!r}: {error}") from error
