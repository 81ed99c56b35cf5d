"""URDF, read without ROS.

Files of real robots have inertias that no body can have, elements of other programs, and joints that mimic what is not
there. Such files are read, with one warning that names what was kept, changed or left out; `strict=True` refuses them.

Links become bodies (their frames are the link frames), joints keep their names. The root link hangs from the
world by a joint called `root_joint` (`root_joint_` if the file uses that name): fixed, or free with
`floating=True`; a root link called `world` is the world itself. Children are visited in the order of their
joints' names, depth first, as `urdfdom` and Pinocchio do.

    origin      xyz, rpy (R = Rz Ry Rx) or quat_xyzw
    revolute, continuous, prismatic, fixed, floating -> the joint types of the same meaning
    planar      moves in the plane normal to `axis`: x and y are those of the joint's origin frame, turned
                the shortest way that brings z to `axis`
    mimic       a `Coupling`
    dynamics    damping -> viscous, friction -> Coulomb friction

`Robot` has the links, joints and colours of a file by name: what the format has and Alembert does not read is noted there;
what other programs add to the format and what changes the physics is refused, or left out on request. `load_urdf` makes a
model of it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from alembert.arguments import unknown
from alembert.errors import ArgumentError, FileError, ModelError, UnsupportedError
from alembert.joints import Fixed, Free, Friction, JointType, Limits, Planar, Prismatic, Revolute
from alembert.joints.joint import unit_axis
from alembert.model.builder import ModelBuilder
from alembert.model.elements import WORLD, Box, Capsule, Cylinder, Mesh, Shape, Sphere, Visual
from alembert.model.inertia import Inertia
from alembert.model.io import xml
from alembert.model.io.notes import CHANGED, LEFT_OUT, MESHES, InertiaFilter, Notes, keeps
from alembert.model.io.xml import Element
from alembert.model.model import Model
from alembert.model.placement import Placement

_KNOWN: dict[str, tuple[set[str], set[str]]] = {
    "robot": ({"name", "version"}, {"link", "joint", "material"}),
    "link": ({"name"}, {"inertial", "visual", "collision"}),
    "inertial": (set(), {"origin", "mass", "inertia"}),
    "mass": ({"value"}, set()),
    "inertia": ({"ixx", "ixy", "ixz", "iyy", "iyz", "izz"}, set()),
    "origin": ({"xyz", "rpy", "quat_xyzw"}, set()),
    "visual": ({"name"}, {"origin", "geometry", "material"}),
    "geometry": ({"name"}, {"box", "cylinder", "sphere", "capsule", "mesh"}),
    "box": ({"size"}, set()),
    "cylinder": ({"radius", "length"}, set()),
    "capsule": ({"radius", "length"}, set()),
    "sphere": ({"radius"}, set()),
    "mesh": ({"filename", "scale"}, set()),
    "material": ({"name"}, {"color"}),
    "color": ({"rgba"}, set()),
    "joint": (
        {"name", "type"},
        {
            "origin",
            "parent",
            "child",
            "axis",
            "limit",
            "dynamics",
            "mimic",
            "calibration",
            "safety_controller",
        },
    ),
    "parent": ({"link"}, set()),
    "child": ({"link"}, set()),
    "axis": ({"xyz"}, set()),
    "limit": ({"lower", "upper", "effort", "velocity"}, set()),
    "dynamics": ({"damping", "friction"}, set()),
    "mimic": ({"joint", "multiplier", "offset"}, set()),
}
"""Attributes and children that are read, per element; others are passed over with a warning."""

_WITHOUT_EFFECT = {"collision", "calibration", "safety_controller"}  # part of the format, not of the dynamics
_PHYSICS_TAGS = {
    "drake:rotor_inertia",
    "drake:gear_ratio",
    "drake:joint",
    "drake:linear_bushing_rpy",
    "drake:linear_spring_damper",
    "drake:ball_constraint",
    "loop_joint",
    "force_element",
    "motorInertia",
    "springStiffness",
    "springReference",
    "dampingFactor",
    "turnGravityOff",
}
"""Extensions of other programs that change the physics, wherever they stand."""

_PHYSICS_ATTRIBUTES = {
    "dynamics": {
        "armature",
        "rotor_inertia",
        "gear_ratio",
        "spring_stiffness",
        "spring_reference",
        "stiffness",
        "springref",
        "frictionloss",
    },
    "option": {"gravity", "density", "viscosity", "wind"},  # of <mujoco>
}
"""The same for attributes, per element; those that are zero count as absent, except gravity."""

_VERSIONS = {"1.0", "1.1", "1.2"}


@dataclass(frozen=True)
class RobotJoint:
    element: Element
    name: str
    kind: str
    parent: str
    child: str


@dataclass
class Robot:
    """Links, joints and colours by name, with unknown names and features already refused or noted."""

    element: Element
    notes: Notes
    strict: bool
    skip_extensions: bool
    name: str = ""
    links: dict[str, Element] = field(default_factory=dict)
    joints: dict[str, RobotJoint] = field(default_factory=dict)
    colors: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        robot = self.element
        if robot.tag != "robot":
            robot.fail(f"the root element is <{robot.tag}>, expected <robot>")
        self._note_unknown(robot)
        version = robot.attributes.get("version", "1.0")
        if version not in _VERSIONS:
            raise UnsupportedError(f"{robot.where}: URDF version {version!r} is not supported")
        self.name = robot.text("name") if "name" in robot.attributes else "robot"
        for link in robot.all("link"):
            _add_named(self.links, link.text("name"), link, link)
        for element in robot.all("joint"):
            joint = RobotJoint(
                element,
                element.text("name"),
                element.text("type"),
                element.one("parent").text("link"),
                element.one("child").text("link"),
            )
            _add_named(self.joints, joint.name, joint, element)
        for material in (element for element in robot.walk() if element.tag == "material"):
            color = material.optional("color")
            if color is not None:
                self.colors.setdefault(material.attributes.get("name", ""), color.numbers("rgba", 4))

    def _note_unknown(self, element: Element) -> None:
        """Note what is not read in `element` and below; refuse what would change the model."""
        attributes, children = _KNOWN[element.tag]
        if element.text_line is not None:
            self.notes.add(f"text in <{element.tag}>", element.text_line)
        for name in element.attributes:
            if name not in attributes and not name.startswith(("xmlns", "xml:")):
                what = f"attribute {name!r} of <{element.tag}>"
                if _changes_physics(element, name):
                    self._leave_out(what, element)
                else:
                    self.notes.add(what, element.line)
        for child in element.children:
            if child.tag.startswith("xacro:"):
                raise UnsupportedError(
                    f"{child.where}: <{child.tag}> is a macro of xacro; expand the file with xacro first"
                )
            if child.tag in _WITHOUT_EFFECT:
                continue
            if child.tag in children:
                self._note_unknown(child)
            elif not self._leave_out_physics(child, element):
                self.notes.add(f"<{child.tag}> in <{element.tag}>", child.line)

    def _leave_out_physics(self, element: Element, parent: Element) -> bool:
        """Whether `element`, which is not read, is itself left out; what is in it is left out on the way."""
        if element.tag in _PHYSICS_TAGS and not _is_zero(element.attributes.get("value", "")):
            self._leave_out(f"<{element.tag}> in <{parent.tag}>", element)
            return True
        for name in element.attributes:
            if _changes_physics(element, name):
                self._leave_out(f"attribute {name!r} of <{element.tag}>", element)
        for child in element.children:
            self._leave_out_physics(child, element)
        return False

    def _leave_out(self, what: str, element: Element) -> None:
        if not self.skip_extensions:
            raise UnsupportedError(
                f"{element.where}: {what} changes the physics and is not supported; "
                "without strict=True it is left out, with a warning"
            )
        self.notes.add(what, element.line, LEFT_OUT)

    def differ(self, element: Element, problem: str, instead: str) -> None:
        """Refuse what the file says, or note what is done instead."""
        if self.strict:
            element.fail(problem)
        self.notes.add(f"{problem}: {instead}", element.line, CHANGED)

    def rename_world(self) -> str:
        """A root link called `world` that is to float gets another name, as that one is the inertial frame's."""
        new = f"{WORLD}_link"
        while new in self.links:
            new += "_"
        root = self.links[WORLD]
        self.differ(
            root,
            f"floating=True, but the root link is called {WORLD!r}, which is the inertial frame",
            f"it is called {new!r}",
        )
        self.links = {new if name == WORLD else name: link for name, link in self.links.items()}
        self.joints = {
            name: replace(joint, parent=new) if joint.parent == WORLD else joint
            for name, joint in self.joints.items()
        }
        return new

    def where(self, message: str) -> str:
        """File and line of the link or joint that a message of the builder names."""
        for name, link in self.links.items():
            if f"body {name!r}" in message:
                return link.where
        for name, joint in self.joints.items():
            if f"joint {name!r}" in message:
                return joint.element.where
        return self.element.where


def _changes_physics(element: Element, attribute: str) -> bool:
    if attribute not in _PHYSICS_ATTRIBUTES.get(element.tag, ()):
        return False
    return attribute == "gravity" or not _is_zero(element.attributes[attribute])


def _is_zero(value: str) -> bool:
    """Whether an attribute says no, or has numbers that are all zero."""
    words = value.split()
    return bool(words) and all(word == "false" or not word.strip("+-0.") for word in words)


def _add_named(table: dict[str, Any], name: str, item: Any, element: Element) -> None:
    if name in table:
        first = table[name].element if isinstance(table[name], RobotJoint) else table[name]
        element.fail(f"two {element.tag}s are called {name!r} (first on line {first.line})")
    table[name] = item


def root_of(robot: Robot) -> str:
    """The link that no joint moves, after checking that the joints make a tree below it."""
    if not robot.links:
        robot.element.fail("the robot has no links")
    inboard: dict[str, RobotJoint] = {}
    for joint in robot.joints.values():
        for role, end in (("parent", joint.parent), ("child", joint.child)):
            if end not in robot.links:
                joint.element.fail(unknown(f"joint {joint.name!r} has the {role} link", end, robot.links))
        if joint.child in inboard:
            joint.element.fail(
                f"link {joint.child!r} is moved by two joints, {inboard[joint.child].name!r} and "
                f"{joint.name!r}"
            )
        inboard[joint.child] = joint
    roots = [name for name in robot.links if name not in inboard]
    if len(roots) > 1:
        robot.links[roots[1]].fail(
            f"links {roots[0]!r} and {roots[1]!r} both have no joint above them ({len(roots)} roots), "
            "expected one root"
        )
    if WORLD in inboard:
        robot.links[WORLD].fail(f"link {WORLD!r} is moved by a joint; that name is the inertial frame's")
    children: dict[str, list[str]] = {}
    for joint in robot.joints.values():
        children.setdefault(joint.parent, []).append(joint.child)
    reached: set[str] = set()
    stack = list(roots)
    while stack:
        name = stack.pop()
        reached.add(name)
        stack += children.get(name, [])
    lost = next((name for name in robot.links if name not in reached), None)
    if lost is not None:
        cycle = [lost]
        while cycle.count(cycle[-1]) < 2:
            cycle.append(inboard[cycle[-1]].parent)
        names = list(reversed(cycle[cycle.index(cycle[-1]) :]))
        shown = " -> ".join(names[:10]) + (" -> ..." if len(names) > 10 else "")
        inboard[cycle[-1]].element.fail(f"joints form a cycle: {shown}")
    return roots[0]


ROOT_JOINT = "root_joint"


def load_urdf(
    source: str | os.PathLike[str],
    *,
    floating: bool = False,
    package_dirs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    strict: bool = False,
    unphysical: str | None = None,
    extensions: str | None = None,
) -> Model:
    """The model in a URDF file, or in a text that starts with `<`.

    `floating` puts a free joint under the root link. `package://NAME/...` meshes are sought as `DIR/NAME/...`
    in `package_dirs` (one that is itself called NAME counts as well) and in the folders above the file; one
    that is missing is only warned about.

    What files of real robots often have is read with one warning that names it: inertias that no body can have, and
    massless links at the end of moving joints (kept); what other programs add to URDF and what changes the physics, such
    as rotor inertias, springs, loop joints, gravity (left out); joints that mimic one that is not there (they move
    freely), or lack the limits that the format requires (they have none); axes that are no unit vectors (normalised).
    `strict=True` refuses such files. `unphysical` ("warn" or "error") and `extensions` ("skip" or "error") choose for the
    first two alone.

    Raises `FileError` with file and line, `UnsupportedError` for what would change the physics and is not
    covered.
    """
    document = xml.read(source)
    notes = Notes(document.file)
    inertias = InertiaFilter(notes, keep=keeps(unphysical, "unphysical", strict, "warn"))
    skip = keeps(extensions, "extensions", strict, "skip")
    robot = Robot(xml.parse(document), notes, strict=strict, skip_extensions=skip)
    given: Any = package_dirs
    several = isinstance(given, Iterable) and not isinstance(given, str)
    folders = list(given) if several else [given]
    if not all(isinstance(folder, str | os.PathLike) for folder in folders):
        raise ArgumentError(f"load: package_dirs is {package_dirs!r}, expected a folder or a list of folders")
    meshes = _Meshes(notes, document.folder, [Path(folder) for folder in folders])
    root = root_of(robot)
    if floating and root == WORLD:
        root = robot.rename_world()
    builder = ModelBuilder(robot.name)
    for name in sorted(robot.links):  # the builder sorts bodies by their joints
        _add_link(builder, robot, name, inertias, meshes)
    _add_root_joint(builder, robot, root, floating)
    for name in sorted(robot.joints):
        _add_joint(builder, robot, robot.joints[name])
    try:
        model = inertias.build(builder)
    except ModelError as error:
        raise FileError(f"{robot.where(str(error))}: {error}") from None
    notes.warn()
    return model


# --- links ----------------------------------------------------------------------------------------


def _add_link(
    builder: ModelBuilder, robot: Robot, name: str, inertias: InertiaFilter, meshes: _Meshes
) -> None:
    link = robot.links[name]
    inertia = _inertia(link)
    visuals = [visual for element in link.all("visual") for visual in _visual(element, robot, meshes)]
    if name == WORLD:
        if inertia.mass != 0:
            robot.notes.add(f"mass of the link {WORLD!r}, which is the inertial frame", link.line)
        if visuals:
            builder.world(visuals=visuals)
        return
    inertias.add_body(builder, name, inertia, where=link.where, line=link.line, visuals=visuals)


def _inertia(link: Element) -> Inertia:
    inertial = link.optional("inertial")
    if inertial is None:
        return Inertia()
    mass = inertial.one("mass").number("value")
    tensor = inertial.one("inertia")
    entries = tuple(tensor.number(key) for key in ("ixx", "ixy", "iyy", "ixz", "iyz", "izz"))
    return Inertia(mass, tensor=entries).at(_origin(inertial))


def _origin(element: Element) -> Placement:
    origin = element.optional("origin")
    if origin is None:
        return Placement()
    xyz = origin.numbers("xyz", 3, (0.0, 0.0, 0.0))
    if "quat_xyzw" not in origin.attributes:
        return Placement.from_rpy(origin.numbers("rpy", 3, (0.0, 0.0, 0.0)), xyz)
    if "rpy" in origin.attributes:
        origin.fail("<origin> has both rpy and quat_xyzw, expected one of them")
    x, y, z, w = origin.numbers("quat_xyzw", 4)
    return _checked(origin, lambda: Placement(xyz, (w, x, y, z)))


def _checked(element: Element, make: Callable[[], Any]) -> Any:
    """What `make` returns, its `ModelError` told with the element's place."""
    try:
        return make()
    except FileError:  # has its place already
        raise
    except ModelError as error:
        element.fail(str(error))


def _visual(element: Element, robot: Robot, meshes: _Meshes) -> list[Visual]:
    geometry = element.one("geometry")
    shapes = [child for child in geometry.children if child.tag in _SHAPES]
    if len(shapes) != 1:
        geometry.fail(f"<geometry> has {len(shapes)} shapes, expected one of {', '.join(_SHAPES)}")
    shape = _SHAPES[shapes[0].tag](shapes[0], meshes)
    return [Visual(shape, _origin(element), _color(element, robot))]


def _color(visual: Element, robot: Robot) -> tuple[float, ...] | None:
    material = visual.optional("material")
    if material is None:
        return None
    color = material.optional("color")
    if color is not None:
        return color.numbers("rgba", 4)
    name = material.attributes.get("name", "")
    if name and name not in robot.colors and not material.children:
        robot.notes.add(f"material {name!r}, which has no colour", material.line)
    return robot.colors.get(name) if name else None


def _cylinder(element: Element) -> tuple[float, float]:
    return element.number("radius", lowest=0.0), element.number("length", lowest=0.0)


def _mesh(element: Element, meshes: _Meshes) -> Mesh:
    scale = element.numbers("scale", 3, (1.0, 1.0, 1.0))
    return Mesh(meshes.find(element.text("filename"), element.line), scale)


_SHAPES: dict[str, Callable[[Element, _Meshes], Shape]] = {
    "box": lambda element, _: Box(element.numbers("size", 3, lowest=0.0)),
    "cylinder": lambda element, _: Cylinder(*_cylinder(element)),
    "capsule": lambda element, _: Capsule(*_cylinder(element)),
    "sphere": lambda element, _: Sphere(element.number("radius", lowest=0.0)),
    "mesh": _mesh,
}


class _Meshes:
    """Finds mesh files; those that are missing keep the name they have in the URDF."""

    def __init__(self, notes: Notes, folder: Path | None, package_dirs: list[Path]) -> None:
        self._notes, self._folder = notes, folder
        above = [] if folder is None else [folder.absolute(), *folder.absolute().parents]
        self._roots = [*package_dirs, *above]

    def find(self, name: str, line: int) -> str:
        scheme, separator, rest = name.partition("://")
        if not separator:
            candidates = [Path(name) if self._folder is None else self._folder / name]
        elif scheme == "file":
            candidates = [Path(rest)]
        elif scheme in ("package", "model"):
            package, _, inside = rest.partition("/")
            candidates = [root / package / inside for root in self._roots]
            candidates += [root / inside for root in self._roots if root.name == package]
        else:
            candidates = []
        for candidate in candidates:
            try:
                if candidate.is_file():
                    return str(candidate)
            except (OSError, ValueError):  # a name no file can have
                continue
        self._notes.add(repr(name), line, MESHES)
        return name


# --- joints ---------------------------------------------------------------------------------------


def _add_root_joint(builder: ModelBuilder, robot: Robot, root: str, floating: bool) -> None:
    if root == WORLD:
        return
    name = ROOT_JOINT
    while name in robot.joints:
        name += "_"
    builder.joint(name, Free() if floating else Fixed(), parent=WORLD, child=root)


def _add_joint(builder: ModelBuilder, robot: Robot, joint: RobotJoint) -> None:
    make = _JOINTS.get(joint.kind)
    if make is None:
        joint.element.fail(unknown(f"joint {joint.name!r} is of type", joint.kind, _JOINTS))
    axis = _axis(joint, robot)
    type = _checked(joint.element, lambda: make(axis))
    placement, child = _origin(joint.element), joint.child
    if joint.kind == "planar":
        turn = _checked(joint.element, lambda: _shortest_turn(axis))
        if not turn.is_identity:  # the plane's frame as a body of its own, the link turned back on it
            placement, child = placement @ turn, f"{joint.child}/{joint.name}"
            builder.body(child)
            builder.joint(
                f"{joint.name}/link", Fixed(), parent=child, child=joint.child, placement=turn.inverse()
            )
    builder.joint(
        joint.name,
        type,
        parent=joint.parent,
        child=child,
        placement=placement,
        limits=_limits(joint, type, robot),
        friction=_friction(joint, type),
    )
    _add_mimic(builder, robot, joint, type)


def _axis(joint: RobotJoint, robot: Robot) -> tuple[float, ...]:
    axis = joint.element.optional("axis")
    if axis is None:
        return (1.0, 0.0, 0.0)
    numbers = axis.numbers("xyz", 3)
    length = math.hypot(*numbers)
    if robot.strict or length == 0 or abs(length - 1) < _UNIT or joint.kind in ("fixed", "floating"):
        return numbers
    robot.differ(axis, f"the axis of joint {joint.name!r} has length {length:.9g}", "it is normalised")
    return tuple(number / length for number in numbers)


_UNIT = 1e-9  # of the length of an axis, which is normalised beyond this with a note
_JOINTS: dict[str, Callable[[tuple[float, ...]], JointType]] = {
    "revolute": lambda axis: Revolute(axis=axis),
    "continuous": lambda axis: Revolute(axis=axis),
    "prismatic": lambda axis: Prismatic(axis=axis),
    "fixed": lambda axis: Fixed(),
    "floating": lambda axis: Free(),
    "planar": lambda axis: Planar(),
}


def _shortest_turn(axis: tuple[float, ...]) -> Placement:
    """The shortest rotation that brings z to the axis (about x when the axis is -z)."""
    x, y, z = (float(entry) for entry in unit_axis(axis, "planar axis"))  # type: ignore[arg-type]
    if z < -1 + 1e-12:
        return Placement(quaternion=(0.0, 1.0, 0.0, 0.0))
    w = math.sqrt((1 + z) / 2)
    return Placement(quaternion=(w, -y / (2 * w), x / (2 * w), 0.0))


def _limits(joint: RobotJoint, type: JointType, robot: Robot) -> Limits:
    limit = joint.element.optional("limit")
    bounded = joint.kind in ("revolute", "prismatic")
    if limit is None:
        if bounded:
            robot.differ(
                joint.element,
                f"joint {joint.name!r} is {joint.kind} and has no <limit>, which the format requires",
                "it moves without limits",
            )
        return Limits()
    if type.nv == 0:
        return Limits()
    if type.nv > 1:
        robot.notes.add(f"<limit> of a {joint.kind} joint", limit.line)
        return Limits()
    for name in ("velocity", "effort"):
        if name not in limit.attributes:
            robot.differ(limit, f"<limit> has no attribute {name!r}", "there is no such limit")
    rates = {
        name: (limit.number(name, math.inf, infinite=True),)
        for name in ("velocity", "effort")
        if name in limit.attributes
    }
    if not bounded:
        return _checked(limit, lambda: Limits(**rates))
    lower = limit.number("lower", 0.0, infinite=True)
    upper = limit.number("upper", 0.0, infinite=True)
    return _checked(limit, lambda: Limits((lower,), (upper,), **rates))


def _friction(joint: RobotJoint, type: JointType) -> Friction | None:
    dynamics = joint.element.optional("dynamics")
    if dynamics is None:
        return None
    damping, friction = dynamics.number("damping", 0.0), dynamics.number("friction", 0.0)
    if type.nv == 0 or (damping == 0 and friction == 0):
        return None
    if type.nv > 1:
        raise UnsupportedError(
            f"{dynamics.where}: <dynamics> of the {joint.kind} joint {joint.name!r} is not supported: "
            f"one coefficient for {type.nv} degrees of freedom of different units"
        )
    return _checked(dynamics, lambda: Friction((damping,), (friction,)))


def _add_mimic(builder: ModelBuilder, robot: Robot, joint: RobotJoint, type: JointType) -> None:
    mimic = joint.element.optional("mimic")
    if mimic is None:
        return
    master = mimic.text("joint")
    if type.nv == 0:
        robot.notes.add("<mimic> of a fixed joint", mimic.line)
        return
    if master not in robot.joints:
        missing = unknown(f"joint {joint.name!r} mimics the joint", master, robot.joints)
        robot.differ(mimic, missing, "it moves freely")
        return
    ratio, offset = mimic.number("multiplier", 1.0), mimic.number("offset", 0.0)
    builder.coupling(joint.name, joint.name, (master,), (ratio,), offset)
