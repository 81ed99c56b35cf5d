"""The parts of a model as frozen records: bodies, joints, frames, loops, actuators, sensors, shapes; chains of bodies."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.errors import ModelError
from alembert.expression import Expression, Scalar, is_name, scalar, scalars
from alembert.joints import Fixed, Friction, JointType, Limits, Pair, Rotor, Spring
from alembert.joints.attachments import per_dof
from alembert.model.inertia import Inertia
from alembert.model.modal import ModalBody
from alembert.model.placement import Placement

WORLD = "world"


def _lengths(shape: Any, **counts: int) -> None:
    """Fields of a shape as floats, zero or more: a number for a count of 0, otherwise a tuple."""
    for field, count in counts.items():
        what = f"{type(shape).__name__.lower()} {field}"
        entries = scalars(getattr(shape, field), count or 1, what)
        for entry in entries:
            if isinstance(entry, Expression) or entry < 0:
                raise ModelError(f"{what} is {entry}, expected a number, zero or more")
        object.__setattr__(shape, field, entries if count else entries[0])


def _named(part: Any, **ends: str) -> None:
    """Refuse what is no name: the part's own, and in the fields `ends` those of the kinds of parts that they say."""
    kind = {"LoopJoint": "loop"}.get(type(part).__name__, type(part).__name__.lower())
    if not isinstance(part.name, str) or not part.name:
        raise ModelError(f"{kind} has the name {part.name!r}, expected a non-empty text")
    for field, expected in ends.items():
        value = getattr(part, field)
        if not isinstance(value, str):
            raise ModelError(f"{kind} {part.name!r}: {field} is {value!r}, expected the name of a {expected}")


def _listed(parts: Any, what: str, expected: str) -> tuple[Any, ...]:
    if not isinstance(parts, Iterable):
        raise ModelError(f"{what} is {parts!r}, expected a list of {expected}")
    return tuple(parts)


@dataclass(frozen=True)
class Box:
    """Edges along x, y, z, centred."""

    size: tuple[float, ...]

    def __post_init__(self) -> None:
        _lengths(self, size=3)


@dataclass(frozen=True)
class Sphere:
    """Centred."""

    radius: float

    def __post_init__(self) -> None:
        _lengths(self, radius=0)


@dataclass(frozen=True)
class Ellipsoid:
    """Centred, with half-axes along x, y, z."""

    radii: tuple[float, ...]

    def __post_init__(self) -> None:
        _lengths(self, radii=3)


@dataclass(frozen=True)
class Cylinder:
    """Along z."""

    radius: float
    length: float

    def __post_init__(self) -> None:
        _lengths(self, radius=0, length=0)


@dataclass(frozen=True)
class Capsule:
    """Along z; `length` is the distance between the centres of the caps."""

    radius: float
    length: float

    def __post_init__(self) -> None:
        _lengths(self, radius=0, length=0)


@dataclass(frozen=True)
class Mesh:
    """A surface in a file, scaled along x, y, z."""

    path: str
    scale: tuple[float, ...] = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", scalars(self.scale, 3, "mesh scale"))


Shape = Box | Sphere | Ellipsoid | Cylinder | Capsule | Mesh


@dataclass(frozen=True)
class Visual:
    """A shape drawn with a body; it has no mass."""

    shape: Shape
    placement: Placement = Placement()  # noqa: RUF009  (frozen)
    color: tuple[float, ...] | None = None
    """red, green, blue, opacity, each 0 to 1"""

    def __post_init__(self) -> None:
        if self.color is not None:
            object.__setattr__(self, "color", scalars(self.color, 4, "color"))


@dataclass(frozen=True)
class Body:
    """A body; its frame is that of the joint which moves it."""

    name: str
    inertia: Inertia = Inertia()  # noqa: RUF009  (frozen)
    visuals: tuple[Visual, ...] = ()
    unphysical: bool = False
    """the inertia is kept as a file gave it, although no body can have it (or a moving body has none)"""
    flexible: ModalBody | None = None
    """how the body deforms; `inertia` then follows from it, as that of the undeformed body"""

    def __post_init__(self) -> None:
        _named(self)
        object.__setattr__(self, "visuals", _listed(self.visuals, f"body {self.name!r}: visuals", "Visuals"))
        for k, visual in enumerate(self.visuals):
            if not isinstance(visual, Visual):
                raise ModelError(
                    f"body {self.name!r}: visuals[{k}] is {visual!r}, expected a Visual: a shape with its place and colour, "
                    "such as al.Visual(al.Box((0.1, 0.1, 0.1)))"
                )
        if self.flexible is not None:
            if not isinstance(self.flexible, ModalBody):
                raise ModelError(
                    f"body {self.name!r}: flexible is {self.flexible!r}, expected a ModalBody, such as al.flexible.beam(...)"
                )
            object.__setattr__(self, "inertia", self.flexible.undeformed())
        if not isinstance(self.inertia, Inertia):
            raise ModelError(
                f"body {self.name!r}: inertia is {self.inertia!r}, expected an Inertia, such as Inertia.box(mass, size), or "
                "a flexible body"
            )


@dataclass(frozen=True)
class Joint:
    """Moves the body `child` relative to its `parent`; `placement` puts the joint frame on the parent."""

    name: str
    type: JointType
    parent: str
    child: str
    placement: Placement = Placement()  # noqa: RUF009  (frozen)
    limits: Limits = Limits()  # noqa: RUF009  (frozen)
    spring: Spring | None = None
    friction: Friction | None = None
    armature: tuple[Scalar, ...] = ()
    rotors: tuple[Rotor, ...] = ()
    node: str = ""
    """the node of a flexible parent at which the joint frame is, displaced with it; empty for the body's own frame"""

    def __post_init__(self) -> None:
        _named(self, parent="body", child="body", node="node")
        object.__setattr__(self, "placement", placement(self.placement))
        if not isinstance(self.type, JointType):
            raise ModelError(f"{self._name}: type is {self.type!r}, expected a joint type such as Revolute()")
        nq, nv = self.type.nq, self.type.nv
        for field, kinds, example in (
            ("limits", Limits, "Limits(lower=-1, upper=1)"),
            ("spring", Spring | None, "Spring(stiffness=10)"),
            ("friction", Friction | None, "Friction(viscous=0.1)"),
        ):
            value = getattr(self, field)
            if not isinstance(value, kinds):
                raise ModelError(f"{self._name}: {field} is {value!r}, expected one such as al.{example}")
        object.__setattr__(self, "armature", per_dof(self.armature, f"{self._name}: armature"))
        object.__setattr__(self, "rotors", _listed(self.rotors, f"{self._name}: rotors", "Rotors"))
        for what, values, expected in (
            ("lower limit", self.limits.lower, nq),
            ("upper limit", self.limits.upper, nq),
            ("velocity limit", self.limits.velocity, nv),
            ("effort limit", self.limits.effort, nv),
            ("spring stiffness", self.spring.stiffness if self.spring else (), nv),
            ("spring rest", self.spring.rest if self.spring else (), nq),
            ("viscous friction", self.friction.viscous if self.friction else (), nv),
            ("Coulomb friction", self.friction.coulomb if self.friction else (), nv),
            ("armature", self.armature, nv),
        ):
            if len(values) not in (0, expected):
                raise ModelError(
                    f"{self._name}: {what} has {len(values)} entries, "
                    f"expected {expected} for a {self.type.kind} joint"
                )
        rest = self.spring.rest if self.spring else ()
        if rest and not any(isinstance(entry, Expression) for entry in rest):
            problem = self.type.problem(np.array(rest, dtype=float))
            if problem:
                raise ModelError(f"{self._name}: spring rest: {problem}")
        for rotor in self.rotors:
            if not isinstance(rotor, Rotor):
                raise ModelError(f"{self._name}: rotors has {rotor!r}, expected a Rotor")
            if rotor.dof >= nv:
                raise ModelError(
                    f"{self._name}: rotor on dof {rotor.dof}, but a {self.type.kind} joint has {nv}"
                )

    @property
    def _name(self) -> str:
        return f"joint {self.name!r}"


@dataclass(frozen=True)
class Frame:
    """A named place on a body."""

    name: str
    body: str
    placement: Placement = Placement()  # noqa: RUF009  (frozen)
    node: str = ""
    """the node of a flexible body at which it is, displaced with it; empty for the body's own frame"""

    def __post_init__(self) -> None:
        _named(self, body="body", node="node")
        object.__setattr__(self, "placement", placement(self.placement))


@dataclass(frozen=True)
class LoopJoint:
    """Closes a loop: frame `b` moves relative to frame `a` as the joint type, or another pair, allows."""

    name: str
    type: Pair
    frame_a: str
    frame_b: str

    def __post_init__(self) -> None:
        _named(self, frame_a="frame", frame_b="frame")
        if not isinstance(self.type, Pair):
            raise ModelError(
                f"loop {self.name!r}: type is {self.type!r}, expected a joint type such as Revolute(), or a pair such as "
                "Distance(1.0)"
            )


@dataclass(frozen=True)
class Coupling:
    """One coordinate as an affine function of others: q[joint] = offset + sum ratio_k q[master_k].

    A URDF `mimic` is one. `joint` and the masters name joints of one degree of freedom.
    """

    name: str
    joint: str
    masters: tuple[str, ...]
    ratios: tuple[Scalar, ...]
    offset: Scalar = 0.0

    def __post_init__(self) -> None:
        _named(self, joint="joint")
        object.__setattr__(self, "masters", tuple(self.masters))
        object.__setattr__(self, "ratios", scalars(self.ratios, len(self.masters), "coupling ratios"))
        object.__setattr__(self, "offset", scalar(self.offset, "coupling offset"))


DOT = "_dot"
FRAME_PARTS = ("x", "y", "z", *(a + b for a in "xyz" for b in "xyz"))
"""what an equation may ask of a frame: its origin and its axes"""


@dataclass(frozen=True)
class Equation:
    """Formulas of coordinates and frames that are to vanish.

    `inputs` says what each name in the formulas stands for: a coordinate (as in `model.coordinate_names`), or of a frame
    `FRAME.x`, `.y`, `.z`, its origin, and `FRAME.xx`, `FRAME.xy`, ..., its axes (`xy` is the x component of its y axis), in
    `reference`. `NAME_dot` is the rate of an input: a formula with rates is about speeds alone (nonholonomic), and linear in
    them. Other names are parameters.
    """

    name: str
    formulas: tuple[str, ...]
    inputs: tuple[tuple[str, str], ...]
    reference: str = WORLD

    def __post_init__(self) -> None:
        _named(self, reference="frame")
        what = f"equation {self.name!r}"
        one = isinstance(self.formulas, str | Expression)
        given = (self.formulas,) if one else _listed(self.formulas, f"{what}: formulas", "texts")
        if not given:
            raise ModelError(f"{what} has no formulas")
        for formula in given:
            if not isinstance(formula, str | Expression):
                raise ModelError(f"{what}: a formula is {formula!r}, expected a text such as 'x - y'")
            if "=" in str(formula):
                raise ModelError(
                    f"{what}: {formula!r} has an =, expected what is to vanish: 'x - y' for x = y"
                )
        formulas = tuple(x if isinstance(x, Expression) else Expression(x) for x in given)
        object.__setattr__(self, "formulas", tuple(x.text for x in formulas))
        pairs = self.inputs.items() if isinstance(self.inputs, Mapping) else self.inputs
        try:
            inputs = tuple((str(name), str(quantity)) for name, quantity in pairs)
        except (TypeError, ValueError):
            raise ModelError(
                f"{what}: inputs are {self.inputs!r}, expected names and what they stand for"
            ) from None
        for name, _ in inputs:
            if not is_name(name) or name.endswith(DOT):
                raise ModelError(
                    f"{what}: {name!r} cannot be the name of an input; it is to be an identifier"
                )
        object.__setattr__(self, "inputs", inputs)
        for formula in formulas:
            if not formula.names & (self._symbols | self._rates):
                raise ModelError(
                    f"{what}: {formula.text[:80]!r} has none of the inputs {', '.join(sorted(self._symbols))}"
                )

    @property
    def _symbols(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.inputs)

    @property
    def _rates(self) -> frozenset[str]:
        return frozenset(name + DOT for name, _ in self.inputs)

    @property
    def parameter_names(self) -> frozenset[str]:
        """The names in the formulas that are no inputs."""
        used = frozenset().union(*(Expression(x).names for x in self.formulas))
        return used - self._symbols - self._rates

    @property
    def holonomic(self) -> tuple[bool, ...]:
        return tuple(not (Expression(x).names & self._rates) for x in self.formulas)


@dataclass(frozen=True)
class Actuator:
    """Drives one degree of freedom of a joint: effort = gear times the input, within `limits`."""

    name: str
    joint: str
    dof: int = 0
    gear: Scalar = 1.0
    limits: tuple[float, float] = (float("-inf"), float("inf"))

    def __post_init__(self) -> None:
        _named(self, joint="joint")
        object.__setattr__(self, "gear", scalar(self.gear, f"actuator {self.name!r}: gear"))
        if isinstance(self.dof, bool) or not isinstance(self.dof, int):
            raise ModelError(f"actuator {self.name!r}: dof is {self.dof!r}, expected an index")
        try:
            low, high = (float(limit) for limit in self.limits)
        except (TypeError, ValueError):
            raise ModelError(
                f"actuator {self.name!r}: limits are {self.limits!r}, expected two numbers"
            ) from None
        if not low <= high:
            raise ModelError(f"actuator {self.name!r}: limits are {low} .. {high}, expected lower, upper")
        object.__setattr__(self, "limits", (low, high))


SENSOR_KINDS = ("joint_position", "joint_rate", "point", "frame", "gyro", "accelerometer")


@dataclass(frozen=True)
class Sensor:
    """Measures a joint (`joint_position`, `joint_rate`) or a frame.

    A frame gives its origin (`point`), its pose (`frame`), its angular rate (`gyro`) or its specific force
    (`accelerometer`), the last two in its own axes.
    """

    name: str
    kind: str
    target: str

    def __post_init__(self) -> None:
        _named(self, target="joint" if self.of_joint else "frame")
        if self.kind not in SENSOR_KINDS:
            raise ModelError(
                f"sensor {self.name!r} is of kind {self.kind!r}, expected one of {', '.join(SENSOR_KINDS)}"
            )

    @property
    def of_joint(self) -> bool:
        return str(self.kind).startswith("joint_")


def placement(value: Any) -> Placement:
    """A `Placement`, or one from a bare translation."""
    return value if isinstance(value, Placement) else Placement(value)


@dataclass(frozen=True)
class SegmentChain:
    """Bodies, each held at the end of the one before: at the node `tip` of a flexible one, at the length of a rigid one.

    So a body bends far: of several that bend little, or of rigid ones with springs between them.

    In a model they are bodies of their own, NAME, NAME_2, NAME_3 and so on; nodes of the whole are nodes of one of them.
    """

    segments: tuple[ModalBody | Inertia, ...]
    nodes: Mapping[str, tuple[int, Scalar | str]]
    """for each node of the whole, the segment (from 0), and the node on it or its x on a rigid one"""
    lengths: tuple[Scalar, ...] = ()
    """of rigid segments"""
    hinge: JointType = Fixed()  # noqa: RUF009  (frozen)
    spring: Spring | None = None
    friction: Friction | None = None
    """of the joints between the segments"""

    def bodies(self, name: str) -> tuple[str, ...]:
        """What the segments are called in a model."""
        return tuple(name if k == 0 else f"{name}_{k + 1}" for k in range(len(self.segments)))

    def body(self, name: str, k: int) -> Body:
        part = self.segments[k]
        return Body(name, part) if isinstance(part, Inertia) else Body(name, flexible=part)

    def parts(self, name: str) -> tuple[tuple[Body, ...], tuple[Joint, ...]]:
        """All bodies but the first, and the joints that hold them."""
        names = self.bodies(name)
        bodies = (self.body(own, k) for k, own in enumerate(names) if k)
        joints = (
            Joint(
                f"{own}_joint",
                self.hinge,
                before,
                own,
                placement=Placement((self.lengths[k], 0.0, 0.0)) if self.lengths else Placement(),
                spring=self.spring,
                friction=self.friction,
                node="" if self.lengths else "tip",
            )
            for k, (before, own) in enumerate(itertools.pairwise(names))
        )
        return tuple(bodies), tuple(joints)

    def locate(self, what: str, name: str, node: str) -> tuple[str, str, Placement]:
        """The body, the node of it and the place from there that a node of the whole is."""
        if node not in self.nodes:
            known = ", ".join(map(repr, self.nodes))
            raise ModelError(f"{what} is at the node {node!r} of {name!r}, which has {known}")
        segment, own = self.nodes[node]
        body = self.bodies(name)[segment]
        return (body, own, Placement()) if isinstance(own, str) else (body, "", Placement((own, 0.0, 0.0)))
