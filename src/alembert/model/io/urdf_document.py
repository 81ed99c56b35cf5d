"""The links, joints and colours of a URDF file by name, and the root of their tree.

What the format has and Alembert does not read is noted; what other programs add to the format and what changes the physics
is refused, or left out on request. Nothing here knows of a model: `urdf` makes one of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from alembert.arguments import unknown
from alembert.errors import UnsupportedError
from alembert.model.elements import WORLD
from alembert.model.io.notes import CHANGED, LEFT_OUT, Notes
from alembert.model.io.xml import Element

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
