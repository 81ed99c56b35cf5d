"""The parts of a model, as frozen records: bodies, joints, frames, loops, couplings, actuators, sensors, shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alembert.errors import ModelError
from alembert.expression import Scalar, scalar, scalars
from alembert.joints import Friction, JointType, Limits, Rotor, Spring
from alembert.model.inertia import Inertia
from alembert.model.placement import Placement

WORLD = "world"


@dataclass(frozen=True)
class Box:
    size: tuple[float, ...]


@dataclass(frozen=True)
class Sphere:
    radius: float


@dataclass(frozen=True)
class Cylinder:
    """Along z."""

    radius: float
    length: float


@dataclass(frozen=True)
class Capsule:
    """Along z; `length` is the distance between the centres of the caps."""

    radius: float
    length: float


@dataclass(frozen=True)
class Mesh:
    path: str
    scale: tuple[float, ...] = (1.0, 1.0, 1.0)


Shape = Box | Sphere | Cylinder | Capsule | Mesh


@dataclass(frozen=True)
class Visual:
    """A shape drawn with a body; it has no mass."""

    shape: Shape
    placement: Placement = Placement()
    color: tuple[float, ...] | None = None
    """red, green, blue, opacity, each 0 to 1"""


@dataclass(frozen=True)
class Body:
    name: str
    inertia: Inertia = Inertia()
    visuals: tuple[Visual, ...] = ()


@dataclass(frozen=True)
class Joint:
    """Moves the body `child` relative to its `parent`; `placement` puts the joint frame on the parent."""

    name: str
    type: JointType
    parent: str
    child: str
    placement: Placement = Placement()
    limits: Limits = Limits()
    spring: Spring | None = None
    friction: Friction | None = None
    armature: tuple[Scalar, ...] = ()
    rotors: tuple[Rotor, ...] = ()

    def __post_init__(self) -> None:
        nq, nv = self.type.nq, self.type.nv
        armature = self.armature
        if isinstance(armature, (int, float)) or not isinstance(armature, tuple):
            armature = tuple(armature) if isinstance(armature, list) else (armature,)
        object.__setattr__(self, "armature", scalars(armature, len(armature), f"{self._name} armature"))
        object.__setattr__(self, "rotors", tuple(self.rotors))
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
        for rotor in self.rotors:
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
    placement: Placement = Placement()


@dataclass(frozen=True)
class LoopJoint:
    """Closes a loop: frame `b` moves relative to frame `a` as the joint type allows."""

    name: str
    type: JointType
    frame_a: str
    frame_b: str


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
        object.__setattr__(self, "masters", tuple(self.masters))
        object.__setattr__(self, "ratios", scalars(self.ratios, len(self.masters), "coupling ratios"))
        object.__setattr__(self, "offset", scalar(self.offset, "coupling offset"))


@dataclass(frozen=True)
class Actuator:
    """Drives one degree of freedom of a joint: effort = gear times the input, within `limits`."""

    name: str
    joint: str
    dof: int = 0
    gear: Scalar = 1.0
    limits: tuple[float, float] = (float("-inf"), float("inf"))


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
        if self.kind not in SENSOR_KINDS:
            raise ModelError(
                f"sensor {self.name!r} is of kind {self.kind!r}, expected one of {', '.join(SENSOR_KINDS)}"
            )

    @property
    def of_joint(self) -> bool:
        return self.kind.startswith("joint_")


def placement(value: Any) -> Placement:
    """A `Placement`, or one from a bare translation."""
    return value if isinstance(value, Placement) else Placement(tuple(value))
