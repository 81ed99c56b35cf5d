"""The robots of the benchmark, the same in every program.

panda7 is the arm with its two fingers locked, talos the humanoid with a free base; chains have joints about z
and y in turn. Friction is left out: Pinocchio's algorithms do not have it.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin

from alembert import Fixed, Free, Model, Prismatic, Revolute, library
from alembert.errors import AlembertWarning
from alembert.model.io.convert import to_pinocchio
from alembert.model.io.urdf import load_urdf

_ROBOTS = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots"
_PANDA = _ROBOTS / "panda_description" / "urdf" / "panda.urdf"
_TALOS = _ROBOTS / "talos_data" / "robots" / "talos_reduced.urdf"
ROBOTS = ("panda7", "talos")


@dataclass(frozen=True)
class States:
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray

    def __iter__(self):
        return iter((self.q, self.v, self.tau))


@functools.cache
def alembert_model(name: str) -> Model:
    if name.startswith("chain"):
        return library.chain(int(name[5:]), axes=((0.0, 0.0, 1.0), (0.0, 1.0, 0.0)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlembertWarning)
        model = load_urdf(_PANDA if name == "panda7" else _TALOS, floating=name == "talos")
    joints = []
    for joint in model.joints:
        changes: dict[str, Any] = {"friction": None}
        if name == "panda7" and "finger" in joint.name:
            changes |= {"type": Fixed(), "limits": type(joint.limits)()}
        joints.append(dataclasses.replace(joint, **changes))
    kept = {joint.name for joint in joints if joint.type.nv}
    actuators = tuple(a for a in model.actuators if a.joint in kept)
    return model.replace(joints=tuple(joints), couplings=(), actuators=actuators)


@functools.cache
def pinocchio_model(name: str) -> Any:
    if name.startswith("chain"):
        return _pinocchio_chain(alembert_model(name))
    if name == "talos":
        return pin.buildModelFromUrdf(str(_TALOS), pin.JointModelFreeFlyer())
    full = pin.buildModelFromUrdf(str(_PANDA))
    fingers = [full.getJointId(joint) for joint in full.names if "finger" in joint]
    return pin.buildReducedModel(full, fingers, pin.neutral(full))


def _pinocchio_chain(model: Model) -> Any:
    result = pin.Model()
    last = 0
    for body, joint in zip(model.bodies, model.joints, strict=True):
        X = joint.placement.pose({})
        kind = {(0.0, 0.0, 1.0): pin.JointModelRZ, (0.0, 1.0, 0.0): pin.JointModelRY}[joint.type.axis]
        last = result.addJoint(
            last, kind(), pin.SE3(np.asarray(X.rotation), np.asarray(X.translation).ravel()), joint.name
        )
        xx, xy, yy, xz, yz, zz = body.inertia.tensor
        I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        inertia = pin.Inertia(body.inertia.mass, np.array(body.inertia.com), I)
        result.appendBodyToJoint(last, inertia, pin.SE3.Identity())
    return result


def mujoco_model(name: str) -> Any:
    """Made from ours: bodies, joints and inertias; no geometry, no contacts."""
    model = alembert_model(name).merge_fixed()
    children: dict[str, list[int]] = {}
    for k, joint in enumerate(model.joints):
        children.setdefault(joint.parent, []).append(k)

    def numbers(values: Any) -> str:
        return " ".join(repr(float(x)) for x in np.ravel(values))

    def element(k: int) -> str:
        body, joint = model.bodies[k], model.joints[k]
        placement, inertia = joint.placement, body.inertia
        xx, xy, yy, xz, yz, zz = inertia.tensor
        if isinstance(joint.type, Free):
            moving = "<freejoint/>"
        else:
            kind = {Revolute: "hinge", Prismatic: "slide"}[type(joint.type)]
            moving = f'<joint type="{kind}" axis="{numbers(joint.type.axis)}"/>'
        inside = "".join(element(child) for child in children.get(body.name, []))
        X = placement.pose({})
        place = f'pos="{numbers(X.translation)}" quat="{numbers(_quaternion(X.rotation))}"'
        return (
            f'<body name="{body.name}" {place}>'
            f'{moving}<inertial pos="{numbers(inertia.com)}" mass="{float(inertia.mass)!r}" '
            f'fullinertia="{numbers((xx, yy, zz, xy, xz, yz))}"/>{inside}</body>'
        )

    bodies = "".join(element(k) for k in children["world"])
    return mujoco.MjModel.from_xml_string(
        '<mujoco><option><flag contact="disable" limit="disable"/></option>'
        f"<worldbody>{bodies}</worldbody></mujoco>"
    )


def _quaternion(R: Any) -> np.ndarray:
    q_wxyz = np.empty(4)
    mujoco.mju_mat2Quat(q_wxyz, np.ascontiguousarray(R, dtype=float).ravel())
    return q_wxyz


@functools.cache
def states(name: str, count: int) -> States:
    """In our coordinates."""
    model = alembert_model(name)
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    return States(q, rng.normal(size=(count, model.nv)), rng.normal(size=(count, model.nv)))


def states_in_pinocchio(name: str, count: int) -> States:
    model, other = alembert_model(name), pinocchio_model(name)
    q, v, tau = states(name, count)
    q_there, v_there = to_pinocchio(model, q, v, pin_model=other)
    return States(q_there, v_there, to_pinocchio(model, q, tau, pin_model=other)[1])
