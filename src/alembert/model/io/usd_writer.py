"""Models as USD in its text form (.usda, with the schema UsdPhysics): trees of revolute, prismatic, ball and fixed joints.

Bodies stand side by side at the configuration zero, free ones without a joint. A joint turns about the x axis of its frame,
which stands on both bodies; angles are in degrees. Springs and dampers are drives of joints, as simulators of USD read them.
Masses and frames of joints have single precision in this format, 7 digits.

Names of prims are identifiers: others are changed, and stand beside it as `displayName`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from alembert.errors import writing
from alembert.joints.closure import across
from alembert.model.elements import WORLD, Body, Box, Capsule, Cylinder, Ellipsoid, Joint, Sphere, Visual
from alembert.model.io.notes import quoted
from alembert.model.io.robot_writers import Writer
from alembert.model.placement import Placement
from alembert.spatial import quaternion

_ROOT = "model"


class UsdWriter(Writer):
    format = "USD"
    kinds: ClassVar = {
        "revolute": "Revolute",
        "prismatic": "Prismatic",
        "spherical": "Spherical",
        "fixed": "Fixed",
        "free": "",
    }

    def write(self) -> None:
        model = self.model
        self.lines: list[str] = []
        self.depth = 0
        self.changed: list[str] = []
        self.used: dict[str, set[str]] = {}
        """names of prims by what they stand in"""
        for coupling in model.couplings:
            self.refuse(f"the coupling {coupling.name!r}")
        self.prims = {body.name: self.identifier("bodies", body.name) for body in model.bodies}
        self.poses = _at_zero(self)
        self.lines = [
            "#usda 1.0",
            "(",
            f'    defaultPrim = "{_ROOT}"',
            "    kilogramsPerUnit = 1",
            "    metersPerUnit = 1",
            '    upAxis = "Z"',
            ")",
            "",
        ]
        g = np.array(self.numbers(model.gravity))
        size = float(np.linalg.norm(g))
        with self.within("PhysicsScene", "scene"):
            self.put("vector3f physics:gravityDirection", _tuple(g / size if size else (0, 0, -1)))
            self.put("float physics:gravityMagnitude", _number(size))
        with self.within("Xform", _ROOT, schemas=["PhysicsArticulationRootAPI"], label=model.name):
            for body in model.bodies:
                self.body(body)
            with self.within("Scope", self.identifier("bodies", "joints")):
                for joint in model.joints:
                    if kind := self.word(joint):
                        self.joint(joint, kind)
        self.lose_of_model()
        self.lose("frames of the world", [x.name for x in model.frames if x.body == WORLD])
        self.lose("names that are no identifiers", self.changed)
        with writing(self.path):
            Path(self.path).write_text("\n".join([*self.lines, ""]), encoding="utf-8")
        self.tell()

    # --- text -------------------------------------------------------------------------------------------------------

    def identifier(self, place: str, name: str) -> str:
        """A name that no other prim of this place has."""
        used = self.used.setdefault(place, set())
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        plain = plain if re.match(r"[A-Za-z_]", plain) else f"_{plain}"
        found, k = plain, 2
        while found in used:
            found, k = f"{plain}_{k}", k + 1
        used.add(found)
        return found

    @contextmanager
    def within(self, kind: str, name: str, *, schemas: Sequence[str] = (), label: str = "") -> Iterator[None]:
        """A prim that holds what is put inside of the block."""
        pad, more = "    " * self.depth, []
        if schemas:
            more.append(f"prepend apiSchemas = [{', '.join(map(quoted, schemas))}]")
        if label and label != name:
            more.append(f"displayName = {quoted(label)}")
        self.lines.append(f'{pad}def {kind} "{name}"' + (" (" if more else ""))
        if more:
            self.lines += [*(f"{pad}    {line}" for line in more), f"{pad})"]
        self.lines.append(f"{pad}{{")
        self.depth += 1
        yield
        self.depth -= 1
        self.lines.append("    " * self.depth + "}")

    def put(self, what: str, value: str) -> None:
        self.lines.append(f"{'    ' * self.depth}{what} = {value}")

    def named(self, place: str, name: str) -> dict[str, str]:
        found = self.identifier(place, name)
        if found != name:
            self.changed.append(name)
        return {"name": found, "label": name}

    def pose(self, translation: Any, R: np.ndarray, scale: Any = None) -> None:
        self.put("double3 xformOp:translate", _tuple(translation))
        self.put("quatd xformOp:orient", _tuple(quaternion.from_matrix(R)))
        order = ['"xformOp:translate"', '"xformOp:orient"']
        if scale is not None:
            self.put("double3 xformOp:scale", _tuple(scale))
            order.append('"xformOp:scale"')
        self.put("uniform token[] xformOpOrder", f"[{', '.join(order)}]")

    # --- parts ------------------------------------------------------------------------------------------------------

    def body(self, body: Body) -> None:
        prim = self.prims[body.name]
        if prim != body.name:
            self.changed.append(body.name)
        with self.within("Xform", prim, schemas=["PhysicsRigidBodyAPI", "PhysicsMassAPI"], label=body.name):
            self.pose(*self.poses[body.name])
            (mass,) = self.numbers([body.inertia.mass])
            xx, xy, yy, xz, yz, zz = self.numbers(body.inertia.tensor)
            moments, axes = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            axes[:, 2] *= np.linalg.det(axes)
            self.put("float physics:mass", _number(mass))
            self.put("point3f physics:centerOfMass", _tuple(self.numbers(body.inertia.com)))
            self.put("float3 physics:diagonalInertia", _tuple(np.maximum(moments, 0.0)))
            self.put("quatf physics:principalAxes", _tuple(quaternion.from_matrix(axes)))
            if not mass:
                self.lose("bodies without mass, to which other programs give one", [body.name])
            elif not np.all(moments > 1e-12 * moments[2]):
                self.lose("moments of inertia that are zero, which other programs replace", [body.name])
            for k, visual in enumerate(body.visuals):
                self.visual(visual, body.name, k)
            for frame in self.model.frames:
                if frame.body == body.name:
                    with self.within("Xform", **self.named(body.name, frame.name)):
                        self.pose(self.numbers(frame.placement.translation), self.rotation(frame.placement))

    def visual(self, visual: Visual, body: str, number: int) -> None:
        shape, parts, scale = visual.shape, {}, None
        if isinstance(shape, Box):
            kind, parts, scale = "Cube", {"size": 1.0}, shape.size
        elif isinstance(shape, Sphere):
            kind, parts = "Sphere", {"radius": shape.radius}
        elif isinstance(shape, Ellipsoid):
            kind, parts, scale = "Sphere", {"radius": 1.0}, shape.radii
        elif isinstance(shape, Cylinder | Capsule):
            kind = "Cylinder" if isinstance(shape, Cylinder) else "Capsule"
            parts = {"radius": shape.radius, "height": shape.length}
        else:
            self.lose("meshes", [body])
            return
        with self.within(kind, self.identifier(body, f"shape_{number + 1}")):
            if "height" in parts:
                self.put("uniform token axis", '"Z"')
            for name, x in parts.items():
                self.put(f"double {name}", _number(x))
            self.pose(self.numbers(visual.placement.translation), self.rotation(visual.placement), scale)
            if visual.color is not None:
                *color, opacity = (*visual.color, 1.0)[:4]
                self.put("color3f[] primvars:displayColor", f"[{_tuple(color)}]")
                self.put("float[] primvars:displayOpacity", f"[{_number(opacity)}]")

    def joint(self, joint: Joint, kind: str) -> None:
        single = joint.type.nv == 1
        along = _turned(self.numbers(joint.type.constants()[:3])) if single else np.eye(3)
        drive = self.drive(joint) if single else {}
        motion = "angular" if kind == "Revolute" else "linear"
        schemas = [f"PhysicsDriveAPI:{motion}"] if drive else []
        with self.within(f"Physics{kind}Joint", schemas=schemas, **self.named("joints", joint.name)):
            if joint.parent != WORLD:
                self.put("rel physics:body0", f"</{_ROOT}/{self.prims[joint.parent]}>")
            self.put("rel physics:body1", f"</{_ROOT}/{self.prims[joint.child]}>")
            R = self.rotation(joint.placement)
            places = ((self.numbers(joint.placement.translation), R @ along), ((0.0, 0.0, 0.0), along))
            for k, (p, turned) in enumerate(places):
                self.put(f"point3f physics:localPos{k}", _tuple(p))
                self.put(f"quatf physics:localRot{k}", _tuple(quaternion.from_matrix(turned)))
            if single:
                self.put("uniform token physics:axis", '"X"')
                for which in ("lower", "upper"):
                    if math.isfinite(x := self.limit(joint, which)):
                        end = math.degrees(x) if kind == "Revolute" else x
                        self.put(f"float physics:{which}Limit", _number(end))
            for name, x in drive.items():
                self.put(
                    f"{'uniform token' if name == 'type' else 'float'} drive:{motion}:physics:{name}",
                    quoted(x) if isinstance(x, str) else _number(x),
                )
        limits = ("velocity", "effort") if single else ("lower", "upper", "velocity", "effort")
        for name in limits:
            ends = self.numbers(getattr(joint.limits, name))
            self.lose(f"limits ({name})", [joint.name] if any(map(math.isfinite, ends)) else [])
        self.lose_of_joint(joint, "armatures", "rotors")
        if not single:
            self.lose_of_joint(joint, "springs", "friction")

    def drive(self, joint: Joint) -> dict[str, Any]:
        """Spring and viscous friction; for turning, of degrees."""
        unit = math.pi / 180 if joint.type.kind == "revolute" else 1.0
        stiffness = rest = damping = 0.0
        if joint.spring is not None:
            (stiffness,), (rest,) = (
                self.numbers(x or (0.0,)) for x in (joint.spring.stiffness, joint.spring.rest)
            )
        if joint.friction is not None:
            (damping,) = self.numbers(joint.friction.viscous or (0.0,))
            coulomb = any(self.numbers(joint.friction.coulomb))
            self.lose("Coulomb friction", [joint.name] if coulomb else [])
        if not stiffness and not damping:
            return {}
        return {
            "type": "force",
            "stiffness": stiffness * unit,
            "damping": damping * unit,
            "targetPosition": rest / unit,
        }


def _at_zero(writer: Writer) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Place and rotation of each body where all joints are at zero."""
    found = {WORLD: (np.zeros(3), np.eye(3))}
    for joint in writer.model.joints:  # parents come first
        p, R = found[joint.parent]
        placement: Placement = joint.placement
        found[joint.child] = (
            p + R @ np.array(writer.numbers(placement.translation)),
            R @ writer.rotation(placement),
        )
    return found


def _turned(axis: Sequence[float]) -> np.ndarray:
    """A rotation that takes x to an axis."""
    x = np.array(axis) / np.linalg.norm(axis)
    return np.stack([x, *across(x)], axis=1)


def _number(x: Any) -> str:
    return repr(float(x))


def _tuple(x: Any) -> str:
    return f"({', '.join(_number(entry) for entry in np.ravel(x))})"
