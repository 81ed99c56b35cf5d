"""Models as URDF: trees of revolute, prismatic and fixed joints, on a fixed or free base."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from alembert.model.elements import WORLD, Box, Capsule, Cylinder, Joint, Mesh, Sphere, Visual
from alembert.model.io.robot_text import GRAVITY, Writer, roll_pitch_yaw
from alembert.model.model import Model
from alembert.model.placement import Placement

UNLIMITED = 1e9
"""what stands for no limit where the format asks for a number"""
_KINDS = ("revolute", "prismatic", "fixed")


def save_urdf(model: Model, path: str | Path) -> None:
    """Write a model; what the format cannot say is refused or told in one warning (see `robot_text`)."""
    _UrdfWriter(model, path, "URDF").write()


class _UrdfWriter(Writer):
    def write(self) -> None:
        model, out = self.model, self.text
        floating = [x.name for x in self.roots() if x.type.kind == "free" and x.placement.is_identity]
        alone = len(self.roots()) == 1 and bool(floating)
        self.lose("free base, to be read with floating=True", floating if alone else [])
        out.open("robot", name=model.name or "model")
        if not alone:
            out.put("link", name=WORLD)
        for body in model.bodies:
            self.link(body.name)
        for joint in model.joints:
            if not (alone and joint.parent == WORLD):
                self.joint(joint)
        for frame in model.frames:
            out.put("link", name=frame.name)
            out.open("joint", name=f"{frame.name}_fixed", type="fixed")
            self.origin(frame.placement)
            out.put("parent", link=frame.body)
            out.put("child", link=frame.name)
            out.close("joint")
        out.close("robot")
        self.lose("actuators", [x.name for x in model.actuators])
        self.lose("sensors", [x.name for x in model.sensors])
        if not np.allclose(self.numbers(model.gravity), GRAVITY):
            self.lose("gravity", [str(self.numbers(model.gravity))])
        out.write(self.path)
        self.tell()

    def link(self, name: str) -> None:
        out, body = self.text, self.bodies[name]
        out.open("link", name=name)
        inertia = body.inertia
        mass = self.numbers([inertia.mass])[0]
        xx, xy, yy, xz, yz, zz = self.numbers(inertia.tensor)
        if mass or any((xx, xy, yy, xz, yz, zz)):
            out.open("inertial")
            out.put("origin", xyz=self.numbers(inertia.com), rpy=(0.0, 0.0, 0.0))
            out.put("mass", value=mass)
            out.put("inertia", ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)
            out.close("inertial")
        for visual in body.visuals:
            self.visual(visual, name)
        out.close("link")

    def visual(self, visual: Visual, body: str) -> None:
        out, shape = self.text, visual.shape
        shown = isinstance(shape, Box | Sphere | Cylinder | Capsule | Mesh)
        if not shown:
            self.lose("shapes", [body])
            return
        out.open("visual")
        self.origin(visual.placement)
        out.open("geometry")
        if isinstance(shape, Box):
            out.put("box", size=shape.size)
        elif isinstance(shape, Sphere):
            out.put("sphere", radius=shape.radius)
        elif isinstance(shape, Mesh):
            out.put("mesh", filename=shape.path, scale=shape.scale)
        elif isinstance(shape, Cylinder | Capsule):
            # many programs do not know capsules: a cylinder of the same length between the caps
            out.put("cylinder", radius=shape.radius, length=shape.length)
            self.lose("round caps of capsules", [body] if isinstance(shape, Capsule) else [])
        out.close("geometry")
        if visual.color is not None:
            rgba = (*visual.color, 1.0)[:4]
            out.open("material", name=f"color_{'_'.join(f'{round(255 * x):02x}' for x in rgba)}")
            out.put("color", rgba=rgba)
            out.close("material")
        out.close("visual")

    def origin(self, placement: Placement) -> None:
        rpy = roll_pitch_yaw(self.rotation(placement))
        self.text.put("origin", xyz=self.numbers(placement.translation), rpy=rpy)

    def joint(self, joint: Joint) -> None:
        out, kind = self.text, joint.type.kind
        if kind not in _KINDS:
            self.refuse(f"the {kind} joint {joint.name!r}")
        low, high = (
            (getattr(joint.limits, which) or (sign * math.inf,))[0]
            for which, sign in (("lower", -1), ("upper", 1))
        )
        bounded = math.isfinite(low) or math.isfinite(high)
        label = "continuous" if kind == "revolute" and not bounded else kind
        out.open("joint", name=joint.name, type=label)
        self.origin(joint.placement)
        out.put("parent", link=joint.parent)
        out.put("child", link=joint.child)
        if joint.type.nv:
            out.put("axis", xyz=self.numbers(joint.type.constants()[:3]))
            self.limit(joint, label, low, high)
            if joint.friction is not None:
                viscous, coulomb = joint.friction.viscous or (0.0,), joint.friction.coulomb or (0.0,)
                out.put("dynamics", damping=self.numbers(viscous)[0], friction=self.numbers(coulomb)[0])
            self.mimic(joint)
        out.close("joint")
        self.lose("springs", [joint.name] if joint.spring is not None else [])
        self.lose("armatures", [joint.name] if any(self.numbers(joint.armature)) else [])
        self.lose("rotors", [joint.name] if joint.rotors else [])

    def limit(self, joint: Joint, label: str, low: float, high: float) -> None:
        velocity, effort = (
            (getattr(joint.limits, which) or (math.inf,))[0] for which in ("velocity", "effort")
        )
        rates = {"effort": min(effort, UNLIMITED), "velocity": min(velocity, UNLIMITED)}
        if label == "continuous":
            if math.isfinite(velocity) or math.isfinite(effort):
                self.text.put("limit", **rates)
        else:
            bounds = {"lower": max(low, -UNLIMITED), "upper": min(high, UNLIMITED)}
            self.text.put("limit", **bounds, **rates)

    def mimic(self, joint: Joint) -> None:
        for coupling in self.model.couplings:
            if coupling.joint != joint.name:
                continue
            master, ratio, offset = self.single(coupling)
            self.text.put("mimic", joint=master, multiplier=ratio, offset=offset)
