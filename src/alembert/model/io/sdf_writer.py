"""Models as SDF (SDFormat 1.11): trees of revolute, prismatic, ball and fixed joints, on fixed or free bases.

Links stand at the configuration zero, each relative to its parent; a joint's frame is that of its child. Gravity belongs to
worlds in this format, and a model's file has none.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from alembert.model.elements import WORLD, Box, Capsule, Cylinder, Ellipsoid, Joint, Mesh, Sphere, Visual
from alembert.model.io.robot_text import GRAVITY, Writer, roll_pitch_yaw
from alembert.model.model import Model
from alembert.model.placement import Placement

VERSION = "1.11"
_KINDS = {"revolute": "revolute", "prismatic": "prismatic", "spherical": "ball", "fixed": "fixed"}


def save_sdf(model: Model, path: str | Path) -> None:
    """Write a model; what the format cannot say is refused or told in one warning (see `robot_text`)."""
    _SdfWriter(model, path, "SDF").write()


class _SdfWriter(Writer):
    def write(self) -> None:
        model, out = self.model, self.text
        out.open("sdf", version=VERSION)
        out.open("model", name=model.name or "model")
        for joint in model.joints:
            self.link(joint)
        for joint in model.joints:
            if joint.type.kind != "free":
                self.joint(joint)
        for frame in model.frames:
            out.open("frame", name=frame.name, attached_to=frame.body)
            self.pose(frame.placement)
            out.close("frame")
        out.close("model")
        out.close("sdf")
        self.lose("actuators", [x.name for x in model.actuators])
        self.lose("sensors", [x.name for x in model.sensors])
        self.lose("shapes of the world", ["world"] if model.visuals else [])
        if not np.allclose(self.numbers(model.gravity), GRAVITY):
            self.lose("gravity", [str(self.numbers(model.gravity))])
        out.write(self.path)
        self.tell()

    def pose(self, placement: Placement, relative_to: str | None = None) -> None:
        numbers = (*self.numbers(placement.translation), *roll_pitch_yaw(self.rotation(placement)))
        self.text.value("pose", numbers, relative_to=relative_to)

    def link(self, joint: Joint) -> None:
        out, body = self.text, self.bodies[joint.child]
        if joint.type.kind == "free" and joint.parent != WORLD:
            self.refuse(f"the free joint {joint.name!r} on the body {joint.parent!r}")
        out.open("link", name=body.name)
        self.pose(joint.placement, None if joint.parent == WORLD else joint.parent)
        inertia = body.inertia
        mass = self.numbers([inertia.mass])[0]
        xx, xy, yy, xz, yz, zz = self.numbers(inertia.tensor)
        out.open("inertial")
        out.value("pose", (*self.numbers(inertia.com), 0.0, 0.0, 0.0))
        out.value("mass", mass)
        out.open("inertia")
        for name, x in {"ixx": xx, "ixy": xy, "ixz": xz, "iyy": yy, "iyz": yz, "izz": zz}.items():
            out.value(name, x)
        out.close("inertia")
        out.close("inertial")
        for k, visual in enumerate(body.visuals):
            self.visual(visual, body.name, k)
        out.close("link")
        if not mass:
            self.lose("bodies without mass, to which other programs may give one", [body.name])

    def visual(self, visual: Visual, body: str, number: int) -> None:
        out, shape = self.text, visual.shape
        parts: dict[str, Any] = {}
        if isinstance(shape, Box):
            kind, parts = "box", {"size": shape.size}
        elif isinstance(shape, Sphere):
            kind, parts = "sphere", {"radius": shape.radius}
        elif isinstance(shape, Ellipsoid):
            kind, parts = "ellipsoid", {"radii": shape.radii}
        elif isinstance(shape, Cylinder | Capsule):
            kind = "cylinder" if isinstance(shape, Cylinder) else "capsule"
            parts = {"radius": shape.radius, "length": shape.length}
        elif isinstance(shape, Mesh):
            kind, parts = "mesh", {"uri": shape.path, "scale": shape.scale}
        else:
            self.lose("shapes", [body])
            return
        out.open("visual", name=f"{body}_{number + 1}")
        self.pose(visual.placement)
        out.open("geometry")
        out.open(kind)
        for name, x in parts.items():
            out.value(name, x)
        out.close(kind)
        out.close("geometry")
        if visual.color is not None:
            out.open("material")
            out.value("diffuse", (*visual.color, 1.0)[:4])
            out.close("material")
        out.close("visual")

    def joint(self, joint: Joint) -> None:
        out, kind = self.text, _KINDS.get(joint.type.kind)
        if kind is None:
            self.refuse(f"the {joint.type.kind} joint {joint.name!r}")
        out.open("joint", name=joint.name, type=kind)
        out.value("parent", joint.parent)
        out.value("child", joint.child)
        if joint.type.nv == 1:
            self.axis(joint)
        elif joint.type.nv:
            self.lose("springs", [joint.name] if joint.spring is not None else [])
            self.lose("friction", [joint.name] if joint.friction is not None else [])
            self.lose("limits", [joint.name] if _is_limited(joint) else [])
        out.close("joint")
        self.lose("armatures", [joint.name] if any(self.numbers(joint.armature)) else [])
        self.lose("rotors", [joint.name] if joint.rotors else [])

    def axis(self, joint: Joint) -> None:
        out = self.text
        out.open("axis")
        out.value("xyz", self.numbers(joint.type.constants()[:3]))
        limits = {name: (getattr(joint.limits, name) or (math.inf,))[0] for name in ("effort", "velocity")}
        low, high = (
            (getattr(joint.limits, name) or (sign * math.inf,))[0]
            for name, sign in (("lower", -1), ("upper", 1))
        )
        out.open("limit")
        for name, x in {"lower": low, "upper": high, **limits}.items():
            if math.isfinite(x):
                out.value(name, x)
        out.close("limit")
        values: dict[str, float] = {}
        if joint.friction is not None:
            values["damping"] = self.numbers(joint.friction.viscous or (0.0,))[0]
            values["friction"] = self.numbers(joint.friction.coulomb or (0.0,))[0]
            self.lose("smoothing of friction", [joint.name] if values["friction"] else [])
        if joint.spring is not None:
            values["spring_stiffness"] = self.numbers(joint.spring.stiffness)[0]
            values["spring_reference"] = self.numbers(joint.spring.rest or (0.0,))[0]
        if values:
            out.open("dynamics")
            for name, x in values.items():
                out.value(name, x)
            out.close("dynamics")
        for coupling in self.model.couplings:
            if coupling.joint == joint.name:
                master, ratio, offset = self.single(coupling)
                out.open("mimic", joint=master)
                for name, x in {"multiplier": ratio, "offset": offset, "reference": 0.0}.items():
                    out.value(name, x)
                out.close("mimic")
        out.close("axis")


def _is_limited(joint: Joint) -> bool:
    parts = (joint.limits.lower, joint.limits.upper, joint.limits.velocity, joint.limits.effort)
    return any(math.isfinite(x) for part in parts for x in part)
