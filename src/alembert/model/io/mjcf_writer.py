"""Models as MJCF: trees of hinges, slides, balls and free bodies, with springs, friction, armature, couplings and motors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from alembert.model.elements import WORLD, Body, Box, Capsule, Cylinder, Ellipsoid, Joint, Sphere, Visual
from alembert.model.io.robot_text import Writer
from alembert.model.model import Model
from alembert.model.placement import Placement

_KINDS = {"revolute": "hinge", "prismatic": "slide", "spherical": "ball", "free": "free", "fixed": ""}
_LEAST = 1e-12
"""mass [kg], and moment beside moments up to 1 kg m^2: above MuJoCo's bounds (1e-15, 1e-14) and what rounding leaves"""


def save_mjcf(model: Model, path: str | Path) -> None:
    """Write a model; what the format cannot say is refused or told in one warning (see `robot_text`)."""
    _MjcfWriter(model, path, "MJCF").write()


class _MjcfWriter(Writer):
    def write(self) -> None:
        model, out = self.model, self.text
        out.open("mujoco", model=model.name or "model")
        out.put("compiler", angle="radian", autolimits="true")
        out.put("option", gravity=self.numbers(model.gravity))
        out.open("worldbody")
        for visual in model.visuals:
            self.geom(visual, WORLD)
        self.sites(WORLD)
        for joint in self.roots():
            self.body(joint)
        out.close("worldbody")
        self.couplings()
        self.motors()
        out.close("mujoco")
        self.lose("sensors", [x.name for x in model.sensors])
        out.write(self.path)
        self.tell()

    def body(self, joint: Joint) -> None:
        out, body = self.text, self.bodies[joint.child]
        kind = _KINDS.get(joint.type.kind)
        if kind is None:
            self.refuse(f"the {joint.type.kind} joint {joint.name!r}")
        if kind == "free" and joint.parent != WORLD:
            self.refuse(f"the free joint {joint.name!r} on the body {joint.parent!r}")
        out.open("body", name=body.name, **self.place(joint.placement))
        self.inertial(body, moves=bool(kind))
        if kind:
            self.joint(joint, kind)
        for visual in body.visuals:
            self.geom(visual, body.name)
        self.sites(body.name)
        for child in self.children(body.name):
            self.body(child)
        out.close("body")

    def inertial(self, body: Body, moves: bool) -> None:
        """Mass and moments, raised for MuJoCo where a body that `moves` has none: points, rods, massless bodies."""
        mass, *com = self.numbers([body.inertia.mass, *body.inertia.com])
        xx, xy, yy, xz, yz, zz = self.numbers(body.inertia.tensor)
        least = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])[0]
        raised = _LEAST * max(1.0, xx + yy + zz)
        if moves and (mass < _LEAST or least < raised / 2):
            mass, xx, yy, zz = max(mass, _LEAST), xx + raised, yy + raised, zz + raised
            self.lose(
                f"moments or masses of zero, raised by {_LEAST:g} since MuJoCo refuses them", [body.name]
            )
        if mass:
            self.text.put("inertial", pos=com, mass=mass, fullinertia=(xx, yy, zz, xy, xz, yz))

    def place(self, placement: Placement) -> dict[str, Any]:
        return {"pos": self.numbers(placement.translation), "quat": self.numbers(placement.quaternion)}

    def joint(self, joint: Joint, kind: str) -> None:
        single = kind in ("hinge", "slide")
        if kind == "free" and not joint.placement.is_identity:
            self.refuse(f"the placement of the free joint {joint.name!r}")
        values: dict[str, Any] = {"axis": self.numbers(joint.type.constants()[:3])} if single else {}
        low, high = (self.entry(getattr(joint.limits, which)) for which in ("lower", "upper"))
        if single and (low is not None or high is not None):
            lower, upper = -1e9 if low is None else low, 1e9 if high is None else high
            values["range"] = (max(lower, -1e9), min(upper, 1e9))
        if joint.spring is not None:
            if single:
                values["stiffness"] = self.entry(joint.spring.stiffness)
                values["springref"] = self.entry(joint.spring.rest) or 0.0
            elif kind == "ball" and self.numbers(joint.spring.rest) in ((), (1.0, 0.0, 0.0, 0.0)):
                values["stiffness"] = self.alike(joint, "springs", joint.spring.stiffness)
            else:
                self.lose("springs", [joint.name])
        if joint.friction is not None:
            values["damping"] = self.alike(joint, "viscous friction", joint.friction.viscous)
            values["frictionloss"] = self.alike(joint, "Coulomb friction", joint.friction.coulomb)
            self.lose("smoothing of friction", [joint.name] if values["frictionloss"] else [])
        values["armature"] = self.alike(joint, "armatures", joint.armature)
        self.lose("rotors", [joint.name] if joint.rotors else [])
        self.lose("limits of speed", [joint.name] if any(map(math.isfinite, joint.limits.velocity)) else [])
        self.text.put("joint", name=joint.name, type=kind, **{k: x for k, x in values.items() if x})

    def entry(self, values: Sequence[Any]) -> float | None:
        return self.numbers(values)[0] if values else None

    def alike(self, joint: Joint, what: str, values: Sequence[Any]) -> float:
        """One number for all degrees of freedom of a joint: MJCF has no more."""
        found = set(self.numbers(values))
        if len(found) > 1:
            self.lose(what, [joint.name])
            return 0.0
        return found.pop() if found else 0.0

    def geom(self, visual: Visual, body: str) -> None:
        shape = visual.shape
        if isinstance(shape, Box):
            kind, size = "box", [x / 2 for x in shape.size]
        elif isinstance(shape, Sphere):
            kind, size = "sphere", [shape.radius]
        elif isinstance(shape, Ellipsoid):
            kind, size = "ellipsoid", list(shape.radii)
        elif isinstance(shape, Cylinder | Capsule):
            kind = "cylinder" if isinstance(shape, Cylinder) else "capsule"
            size = [shape.radius, shape.length / 2]
        else:
            self.lose("meshes", [body])
            return
        rgba = None if visual.color is None else (*visual.color, 1.0)[:4]
        quiet = {"contype": "0", "conaffinity": "0", "mass": "0"}
        self.text.put("geom", type=kind, size=size, **self.place(visual.placement), rgba=rgba, **quiet)

    def sites(self, body: str) -> None:
        for frame in self.model.frames:
            if frame.body == body:
                self.text.put("site", name=frame.name, **self.place(frame.placement))

    def couplings(self) -> None:
        if not self.model.couplings:
            return
        self.text.open("equality")
        for coupling in self.model.couplings:
            master, ratio, offset = self.single(coupling)
            self.text.put(
                "joint",
                name=coupling.name,
                joint1=coupling.joint,
                joint2=master,
                polycoef=(offset, ratio, 0.0, 0.0, 0.0),
            )
        self.text.close("equality")
        self.lose("exactness of couplings, which MuJoCo holds softly", [x.name for x in self.model.couplings])

    def motors(self) -> None:
        motors = [x for x in self.model.actuators if self.model.joint(x.joint).type.nv == 1]
        self.lose("actuators", [x.name for x in self.model.actuators if x not in motors])
        if not motors:
            return
        self.text.open("actuator")
        for motor in motors:
            low, high = motor.limits
            bounded = math.isfinite(low) and math.isfinite(high)
            self.text.put(
                "motor",
                name=motor.name,
                joint=motor.joint,
                gear=self.numbers([motor.gear]),
                ctrlrange=(low, high) if bounded else None,
            )
            self.lose(
                "one-sided limits of actuators",
                [motor.name] if math.isfinite(low) != math.isfinite(high) else [],
            )
        self.text.close("actuator")
