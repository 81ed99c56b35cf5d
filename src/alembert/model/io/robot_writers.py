"""Models as URDF, SDF and MJCF, and what the writers of these and of USD share: numbers as text, what is lost.

A model is written with the values of its parameters. What would change its motion and cannot be written at all (a joint
type, a loop) is refused; the rest of what is lost is told in one warning.

    URDF    trees of revolute, prismatic and fixed joints, on a fixed or free base
    SDF     (SDFormat 1.11) with ball joints as well, on fixed or free bases. Links stand at the configuration zero, each
            relative to its parent; a joint's frame is that of its child. Gravity belongs to worlds in this format, and a
            model's file has none
    MJCF    trees of hinges, slides, balls and free bodies, with springs, friction, armature, couplings and motors
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from alembert.errors import UnsupportedError, warn, writing
from alembert.expression import evaluate
from alembert.model.elements import (
    WORLD,
    Body,
    Box,
    Capsule,
    Coupling,
    Cylinder,
    Ellipsoid,
    Joint,
    Mesh,
    Sphere,
    Visual,
)
from alembert.model.model import Model
from alembert.model.placement import Placement
from alembert.spatial import quaternion

GRAVITY = (0.0, 0.0, -9.81)


class Text:
    """The lines of an XML file."""

    def __init__(self) -> None:
        self.lines: list[str] = ['<?xml version="1.0"?>']
        self._depth = 0

    @contextmanager
    def within(self, tag: str, **attributes: Any) -> Iterator[None]:
        """An element that holds what is put inside of the block."""
        self.lines.append(f"{'  ' * self._depth}<{tag}{_attributes(attributes)}>")
        self._depth += 1
        yield
        self._depth -= 1
        self.lines.append(f"{'  ' * self._depth}</{tag}>")

    def put(self, tag: str, **attributes: Any) -> None:
        self.lines.append(f"{'  ' * self._depth}<{tag}{_attributes(attributes)}/>")

    def value(self, tag: str, content: Any, **attributes: Any) -> None:
        """An element that holds numbers or a text."""
        self.lines.append(
            f"{'  ' * self._depth}<{tag}{_attributes(attributes)}>{escape(text(content))}</{tag}>"
        )

    def values(self, contents: Mapping[str, Any]) -> None:
        """An element for each of them."""
        for tag, content in contents.items():
            self.value(tag, content)

    def write(self, path: str | Path) -> None:
        with writing(path):
            Path(path).write_text("\n".join([*self.lines, ""]), encoding="utf-8")


def _attributes(values: Mapping[str, Any]) -> str:
    return "".join(f" {name.rstrip('_')}={quoteattr(text(x))}" for name, x in values.items() if x is not None)


def text(x: Any) -> str:
    if isinstance(x, str):
        return x
    if isinstance(x, bool):
        return "true" if x else "false"
    return " ".join(repr(float(entry)) for entry in np.ravel(x))


class Writer:
    """The model at the values of its parameters, with what its new format loses."""

    format: ClassVar[str]
    kinds: ClassVar[Mapping[str, str]]
    """joint types that the format knows -> its word for them"""

    def __init__(self, model: Model, path: str | Path) -> None:
        self.model, self.path = model, path
        self.values = model.parameter_values
        self.text = Text()
        self._lost: dict[str, list[str]] = {}
        self.bodies = {body.name: body for body in model.bodies}
        for body in model.bodies:
            if body.flexible is not None:
                self.refuse(f"the flexible body {body.name!r}")
        for loop in model.loops:
            self.refuse(f"the loop {loop.name!r}")
        for equation in model.equations:
            self.refuse(f"the equation {equation.name!r}")
        if self.values:
            self.lose("parameters, written with their values", list(self.values))

    def write(self) -> None:
        raise NotImplementedError

    def refuse(self, what: str) -> None:
        raise UnsupportedError(
            f"save: {self.path}: {self.format} cannot say {what}; Alembert's own format (.toml, .yaml) can"
        )

    def lose(self, what: str, names: Sequence[str]) -> None:
        if names:
            self._lost.setdefault(what, []).extend(names)

    def lose_of_joint(self, joint: Joint, *what: str) -> None:
        """What this joint has of it, and the format has not."""
        friction, limits = joint.friction, joint.limits
        has = {
            "springs": joint.spring is not None,
            "friction": friction is not None,
            "smoothing of friction": friction is not None and any(self.numbers(friction.coulomb)),
            "armatures": any(self.numbers(joint.armature)),
            "rotors": bool(joint.rotors),
            "limits of speed": any(map(math.isfinite, limits.velocity)),
            "limits": any(
                map(math.isfinite, (*limits.lower, *limits.upper, *limits.velocity, *limits.effort))
            ),
        }
        for name in what:
            self.lose(name, [joint.name] if has[name] else [])

    def lose_of_model(self) -> None:
        """Parts beside bodies and joints, of formats that have none of them."""
        self.lose("actuators", [x.name for x in self.model.actuators])
        self.lose("sensors", [x.name for x in self.model.sensors])
        self.lose("shapes of the world", [WORLD] if self.model.visuals else [])

    def lose_gravity(self) -> None:
        gravity = self.numbers(self.model.gravity)
        self.lose("gravity", [] if np.allclose(gravity, GRAVITY) else [str(gravity)])

    def tell(self) -> None:
        """One warning for all that is lost."""
        if self._lost:
            listed = "; ".join(
                f"{what} ({', '.join(names[:5])}{', ...' if len(names) > 5 else ''})"
                for what, names in self._lost.items()
            )
            warn(f"save: {self.path}: {self.format} does not keep: {listed}")

    def word(self, joint: Joint) -> str:
        """What the format calls the joint's type; others are refused."""
        kind = joint.type.kind
        if kind not in self.kinds:
            self.refuse(f"the {kind} joint {joint.name!r}")
        if kind == "free" and joint.parent != WORLD:
            self.refuse(f"the free joint {joint.name!r} on the body {joint.parent!r}")
        return self.kinds[kind]

    def limit(self, joint: Joint, which: str) -> float:
        """Of a joint with one degree of freedom, infinite where there is none."""
        return (getattr(joint.limits, which) or (-math.inf if which == "lower" else math.inf,))[0]

    def single(self, coupling: Coupling) -> tuple[str, float, float]:
        """The joint that another one follows, the ratio and the offset."""
        if len(coupling.masters) != 1:
            self.refuse(f"the coupling {coupling.name!r} of several joints")
        (ratio,), (offset,) = self.numbers(coupling.ratios), self.numbers([coupling.offset])
        return coupling.masters[0], ratio, offset

    def numbers(self, entries: Sequence[Any]) -> tuple[float, ...]:
        return tuple(float(evaluate(x, self.values)) for x in entries)

    def rotation(self, placement: Placement) -> np.ndarray:
        return np.asarray(quaternion.to_matrix(np.array(self.numbers(placement.quaternion))))

    def children(self, body: str) -> list[Joint]:
        return [joint for joint in self.model.joints if joint.parent == body]

    def roots(self) -> list[Joint]:
        return self.children(WORLD)


def roll_pitch_yaw(R: np.ndarray) -> tuple[float, float, float]:
    """R = Rz(yaw) Ry(pitch) Rx(roll); where the pitch is a right angle, yaw is 0."""
    across = math.hypot(R[0, 0], R[1, 0])
    pitch = math.atan2(-R[2, 0], across)
    if across < 1e-9:
        return math.atan2(-R[1, 2], R[1, 1]), pitch, 0.0
    return math.atan2(R[2, 1], R[2, 2]), pitch, math.atan2(R[1, 0], R[0, 0])


UNLIMITED = 1e9
"""what stands for no limit where a format asks for a number"""


class UrdfWriter(Writer):
    format = "URDF"
    kinds: ClassVar = {"revolute": "revolute", "prismatic": "prismatic", "fixed": "fixed"}

    def write(self) -> None:
        model, out = self.model, self.text
        floating = [x.name for x in self.roots() if x.type.kind == "free" and x.placement.is_identity]
        alone = len(self.roots()) == 1 and bool(floating)
        self.lose("free base, to be read with floating=True", floating if alone else [])
        with out.within("robot", name=model.name or "model"):
            if not alone:
                out.put("link", name=WORLD)
            for body in model.bodies:
                self.link(body.name)
            for joint in model.joints:
                if not (alone and joint.parent == WORLD):
                    self.joint(joint)
            for frame in model.frames:
                out.put("link", name=frame.name)
                with out.within("joint", name=f"{frame.name}_fixed", type="fixed"):
                    self.origin(frame.placement)
                    out.put("parent", link=frame.body)
                    out.put("child", link=frame.name)
        self.lose_of_model()
        self.lose_gravity()
        out.write(self.path)
        self.tell()

    def link(self, name: str) -> None:
        out, body = self.text, self.bodies[name]
        with out.within("link", name=name):
            inertia = body.inertia
            mass = self.numbers([inertia.mass])[0]
            xx, xy, yy, xz, yz, zz = self.numbers(inertia.tensor)
            if mass or any((xx, xy, yy, xz, yz, zz)):
                with out.within("inertial"):
                    out.put("origin", xyz=self.numbers(inertia.com), rpy=(0.0, 0.0, 0.0))
                    out.put("mass", value=mass)
                    out.put("inertia", ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)
            for visual in body.visuals:
                self.visual(visual, name)

    def visual(self, visual: Visual, body: str) -> None:
        out, shape = self.text, visual.shape
        if isinstance(shape, Ellipsoid):
            self.lose("shapes", [body])
            return
        with out.within("visual"):
            self.origin(visual.placement)
            with out.within("geometry"):
                if isinstance(shape, Box):
                    out.put("box", size=shape.size)
                elif isinstance(shape, Sphere):
                    out.put("sphere", radius=shape.radius)
                elif isinstance(shape, Mesh):
                    out.put("mesh", filename=shape.path, scale=shape.scale)
                else:
                    # many programs do not know capsules: a cylinder of the same length between the caps
                    out.put("cylinder", radius=shape.radius, length=shape.length)
                    self.lose("round caps of capsules", [body] if isinstance(shape, Capsule) else [])
            if visual.color is not None:
                rgba = (*visual.color, 1.0)[:4]
                with out.within("material", name=f"color_{'_'.join(f'{round(255 * x):02x}' for x in rgba)}"):
                    out.put("color", rgba=rgba)

    def origin(self, placement: Placement) -> None:
        rpy = roll_pitch_yaw(self.rotation(placement))
        self.text.put("origin", xyz=self.numbers(placement.translation), rpy=rpy)

    def joint(self, joint: Joint) -> None:
        out, label = self.text, self.word(joint)
        bounded = any(math.isfinite(self.limit(joint, which)) for which in ("lower", "upper"))
        if label == "revolute" and not bounded:
            label = "continuous"
        with out.within("joint", name=joint.name, type=label):
            self.origin(joint.placement)
            out.put("parent", link=joint.parent)
            out.put("child", link=joint.child)
            if joint.type.nv:
                out.put("axis", xyz=self.numbers(joint.type.constants()[:3]))
                self.limits(joint, label)
                if joint.friction is not None:
                    viscous, coulomb = joint.friction.viscous or (0.0,), joint.friction.coulomb or (0.0,)
                    out.put("dynamics", damping=self.numbers(viscous)[0], friction=self.numbers(coulomb)[0])
                self.mimic(joint)
        self.lose_of_joint(joint, "springs", "smoothing of friction", "armatures", "rotors")

    def limits(self, joint: Joint, label: str) -> None:
        """A continuous joint has those of effort and speed, or none; all others have all four."""
        names = ("effort", "velocity") if label == "continuous" else ("lower", "upper", "effort", "velocity")
        found = {name: self.limit(joint, name) for name in names}
        if label != "continuous" or any(map(math.isfinite, found.values())):
            self.text.put("limit", **{name: max(-UNLIMITED, min(x, UNLIMITED)) for name, x in found.items()})

    def mimic(self, joint: Joint) -> None:
        for coupling in self.model.couplings:
            if coupling.joint != joint.name:
                continue
            master, ratio, offset = self.single(coupling)
            self.text.put("mimic", joint=master, multiplier=ratio, offset=offset)


class SdfWriter(Writer):
    format = "SDF"
    kinds: ClassVar = {
        "revolute": "revolute",
        "prismatic": "prismatic",
        "spherical": "ball",
        "fixed": "fixed",
        "free": "",
    }

    def write(self) -> None:
        model, out = self.model, self.text
        with out.within("sdf", version="1.11"), out.within("model", name=model.name or "model"):
            for joint in model.joints:
                self.link(joint)
            for joint in model.joints:
                if joint.type.kind != "free":
                    self.joint(joint)
            for frame in model.frames:
                with out.within("frame", name=frame.name, attached_to=frame.body):
                    self.pose(frame.placement)
        self.lose_of_model()
        self.lose_gravity()
        out.write(self.path)
        self.tell()

    def pose(self, placement: Placement, relative_to: str | None = None) -> None:
        numbers = (*self.numbers(placement.translation), *roll_pitch_yaw(self.rotation(placement)))
        self.text.value("pose", numbers, relative_to=relative_to)

    def link(self, joint: Joint) -> None:
        out, body = self.text, self.bodies[joint.child]
        self.word(joint)
        with out.within("link", name=body.name):
            self.pose(joint.placement, None if joint.parent == WORLD else joint.parent)
            inertia = body.inertia
            mass = self.numbers([inertia.mass])[0]
            xx, xy, yy, xz, yz, zz = self.numbers(inertia.tensor)
            with out.within("inertial"):
                out.value("pose", (*self.numbers(inertia.com), 0.0, 0.0, 0.0))
                out.value("mass", mass)
                with out.within("inertia"):
                    out.values({"ixx": xx, "ixy": xy, "ixz": xz, "iyy": yy, "iyz": yz, "izz": zz})
            for k, visual in enumerate(body.visuals):
                self.visual(visual, body.name, k)
        if not mass:
            self.lose("bodies without mass, to which other programs may give one", [body.name])

    def visual(self, visual: Visual, body: str, number: int) -> None:
        out, shape = self.text, visual.shape
        kind, parts = type(shape).__name__.lower(), dict(vars(shape))
        if isinstance(shape, Mesh):
            parts = {"uri": shape.path, "scale": shape.scale}
        with out.within("visual", name=f"{body}_{number + 1}"):
            self.pose(visual.placement)
            with out.within("geometry"), out.within(kind):
                out.values(parts)
            if visual.color is not None:
                with out.within("material"):
                    out.value("diffuse", (*visual.color, 1.0)[:4])

    def joint(self, joint: Joint) -> None:
        out = self.text
        with out.within("joint", name=joint.name, type=self.word(joint)):
            out.value("parent", joint.parent)
            out.value("child", joint.child)
            if joint.type.nv == 1:
                self.axis(joint)
            elif joint.type.nv:
                self.lose_of_joint(joint, "springs", "friction", "limits")
        self.lose_of_joint(joint, "armatures", "rotors")

    def axis(self, joint: Joint) -> None:
        out = self.text
        with out.within("axis"):
            out.value("xyz", self.numbers(joint.type.constants()[:3]))
            with out.within("limit"):
                for name in ("lower", "upper", "effort", "velocity"):
                    if math.isfinite(x := self.limit(joint, name)):
                        out.value(name, x)
            values: dict[str, float] = {}
            if joint.friction is not None:
                values["damping"] = self.numbers(joint.friction.viscous or (0.0,))[0]
                values["friction"] = self.numbers(joint.friction.coulomb or (0.0,))[0]
                self.lose_of_joint(joint, "smoothing of friction")
            if joint.spring is not None:
                values["spring_stiffness"] = self.numbers(joint.spring.stiffness)[0]
                values["spring_reference"] = self.numbers(joint.spring.rest or (0.0,))[0]
            if values:
                with out.within("dynamics"):
                    out.values(values)
            for coupling in self.model.couplings:
                if coupling.joint == joint.name:
                    master, ratio, offset = self.single(coupling)
                    with out.within("mimic", joint=master):
                        out.values({"multiplier": ratio, "offset": offset, "reference": 0.0})


_LEAST = 1e-12
"""mass [kg], and moment beside moments up to 1 kg m^2: above MuJoCo's bounds (1e-15, 1e-14) and what rounding leaves"""


class MjcfWriter(Writer):
    format = "MJCF"
    kinds: ClassVar = {
        "revolute": "hinge",
        "prismatic": "slide",
        "spherical": "ball",
        "free": "free",
        "fixed": "",
    }

    def write(self) -> None:
        model, out = self.model, self.text
        with out.within("mujoco", model=model.name or "model"):
            out.put("compiler", angle="radian", autolimits="true")
            out.put("option", gravity=self.numbers(model.gravity))
            with out.within("worldbody"):
                for visual in model.visuals:
                    self.geom(visual, WORLD)
                self.sites(WORLD)
                for joint in self.roots():
                    self.body(joint)
            self.couplings()
            self.motors()
        self.lose("sensors", [x.name for x in model.sensors])
        out.write(self.path)
        self.tell()

    def body(self, joint: Joint) -> None:
        out, body = self.text, self.bodies[joint.child]
        kind = self.word(joint)
        with out.within("body", name=body.name, **self.place(joint.placement)):
            self.inertial(body, moves=bool(kind))
            if kind:
                self.joint(joint, kind)
            for visual in body.visuals:
                self.geom(visual, body.name)
            self.sites(body.name)
            for child in self.children(body.name):
                self.body(child)

    def inertial(self, body: Body, moves: bool) -> None:
        """Mass and moments, raised for MuJoCo where they are zero: points, rods, massless bodies that move."""
        mass, *com = self.numbers([body.inertia.mass, *body.inertia.com])
        xx, xy, yy, xz, yz, zz = self.numbers(body.inertia.tensor)
        least, middle, most = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        raised = _LEAST * max(1.0, xx + yy + zz)
        if not (moves or mass or most):
            return
        if mass < _LEAST or least < raised / 2:
            mass, xx, yy, zz, least = max(mass, _LEAST), xx + raised, yy + raised, zz + raised, least + raised
            self.lose(
                f"moments or masses of zero, raised by {_LEAST:g} since MuJoCo refuses them", [body.name]
            )
        if body.unphysical and (least < 0 or least + middle < most):
            raise UnsupportedError(
                f"save: {self.path}: MuJoCo refuses body {body.name!r}, whose inertia no body can have; "
                "model.merge_fixed() may join it with what is fixed to it"
            )
        self.text.put("inertial", pos=com, mass=mass, fullinertia=(xx, yy, zz, xy, xz, yz))

    def place(self, placement: Placement) -> dict[str, Any]:
        return {"pos": self.numbers(placement.translation), "quat": self.numbers(placement.quaternion)}

    def joint(self, joint: Joint, kind: str) -> None:
        single = kind in ("hinge", "slide")
        if kind == "free" and not joint.placement.is_identity:
            self.refuse(f"the placement of the free joint {joint.name!r}")
        values: dict[str, Any] = {"axis": self.numbers(joint.type.constants()[:3])} if single else {}
        if single:
            if joint.limits.lower or joint.limits.upper:
                low, high = self.limit(joint, "lower"), self.limit(joint, "upper")
                values["range"] = (max(low, -UNLIMITED), min(high, UNLIMITED))
            if math.isfinite(effort := self.limit(joint, "effort")):
                values["actuatorfrcrange"] = (-effort, effort)
        if joint.spring is not None:
            if single:
                values["stiffness"] = self.alike(joint, "springs", joint.spring.stiffness)
                values["springref"] = self.alike(joint, "springs", joint.spring.rest)
            elif kind == "ball" and self.numbers(joint.spring.rest) in ((), (1.0, 0.0, 0.0, 0.0)):
                values["stiffness"] = self.alike(joint, "springs", joint.spring.stiffness)
            else:
                self.lose("springs", [joint.name])
        if joint.friction is not None:
            values["damping"] = self.alike(joint, "viscous friction", joint.friction.viscous)
            values["frictionloss"] = self.alike(joint, "Coulomb friction", joint.friction.coulomb)
            self.lose("smoothing of friction", [joint.name] if values["frictionloss"] else [])
        values["armature"] = self.alike(joint, "armatures", joint.armature)
        self.lose_of_joint(joint, "rotors", "limits of speed" if single else "limits")
        self.text.put("joint", name=joint.name, type=kind, **{k: x for k, x in values.items() if x})

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
        with self.text.within("equality"):
            for coupling in self.model.couplings:
                master, ratio, offset = self.single(coupling)
                self.text.put(
                    "joint",
                    name=coupling.name,
                    joint1=coupling.joint,
                    joint2=master,
                    polycoef=(offset, ratio, 0.0, 0.0, 0.0),
                )
        self.lose("exactness of couplings, which MuJoCo holds softly", [x.name for x in self.model.couplings])

    def motors(self) -> None:
        motors = [x for x in self.model.actuators if self.model.joint(x.joint).type.nv == 1]
        self.lose("actuators", [x.name for x in self.model.actuators if x not in motors])
        if not motors:
            return
        with self.text.within("actuator"):
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
