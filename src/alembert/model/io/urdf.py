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
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from alembert.arguments import unknown
from alembert.errors import FileError, ModelError, UnsupportedError
from alembert.joints import Fixed, Free, Friction, JointType, Limits, Planar, Prismatic, Revolute
from alembert.joints.joint import unit_axis
from alembert.model.builder import ModelBuilder
from alembert.model.elements import WORLD, Box, Capsule, Cylinder, Mesh, Shape, Sphere, Visual
from alembert.model.inertia import Inertia
from alembert.model.io import xml
from alembert.model.io.notes import MESHES, InertiaFilter, Notes, keeps
from alembert.model.io.urdf_document import Robot, RobotJoint, root_of
from alembert.model.io.xml import Element
from alembert.model.model import Model
from alembert.model.placement import Placement

ROOT_JOINT = "root_joint"


def load_urdf(
    source: str | os.PathLike[str],
    *,
    floating: bool = False,
    package_dirs: Iterable[str | os.PathLike[str]] = (),
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
    meshes = _Meshes(notes, document.folder, [Path(folder) for folder in package_dirs])
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
