"""The models of the library: pendulums and linkages, arms, a humanoid, a pitcher, a manipulator of truss bays, a satellite.

Pendulums are in the x-z plane, gravity along -z; their angles are positive from x towards z, about the axis (0, -1, 0).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from alembert.errors import ArgumentError
from alembert.joints import Free, Friction, Limits, Prismatic, Revolute, Rotor, Spherical
from alembert.model import (
    WORLD,
    Box,
    Capsule,
    Cylinder,
    Inertia,
    Model,
    ModelBuilder,
    Placement,
    Sphere,
    Visual,
)


class _Segment(NamedTuple):
    """A body and its joint; lengths are fractions of the height, masses of the total mass."""

    name: str
    parent: str
    axis: str
    origin: Vector
    mass: float
    end: Vector
    radius: float
    lower: float
    upper: float
    effort: float


# Of the left side; the right side is its mirror image in the x-z plane. x forward, y left, z up.
_TRUNK = (
    _Segment("waist", "pelvis", "z", (0, 0, 0.045), 0.014, (0, 0, 0.02), 0.050, -1.0, 1.0, 150.0),
    _Segment("belly", "waist", "x", (0, 0, 0.030), 0.026, (0, 0, 0.04), 0.050, -0.5, 0.5, 200.0),
    _Segment("chest", "belly", "y", (0, 0, 0.050), 0.268, (0, 0, 0.17), 0.075, -0.4, 1.2, 250.0),
    _Segment("neck", "chest", "z", (0, 0, 0.175), 0.010, (0, 0, 0.03), 0.025, -1.3, 1.3, 20.0),
    _Segment("head", "neck", "y", (0, 0, 0.035), 0.060, (0, 0, 0.09), 0.045, -0.7, 0.7, 20.0),
)
_LEG = (
    _Segment("hip", "pelvis", "z", (0, 0.055, -0.020), 0.010, (0, 0, -0.02), 0.035, -0.6, 0.8, 120.0),
    _Segment("groin", "hip", "x", (0, 0, -0.025), 0.012, (0, 0, -0.02), 0.035, -0.4, 0.9, 200.0),
    _Segment("thigh", "groin", "y", (0, 0, 0), 0.095, (0, 0, -0.22), 0.042, -2.1, 0.6, 300.0),
    _Segment("shin", "thigh", "y", (0, 0, -0.235), 0.044, (0, 0, -0.22), 0.030, 0.0, 2.4, 300.0),
    _Segment("ankle", "shin", "y", (0, 0, -0.230), 0.004, (0, 0, -0.01), 0.020, -0.9, 0.7, 200.0),
    _Segment("foot", "ankle", "x", (0, 0, 0), 0.012, (0.08, 0, -0.030), 0.015, -0.5, 0.5, 100.0),
)
_ARM = (
    _Segment("shoulder", "chest", "y", (0, 0.105, 0.160), 0.008, (0, 0.02, 0), 0.030, -3.0, 1.0, 80.0),
    _Segment("armpit", "shoulder", "x", (0, 0.025, 0), 0.008, (0, 0, -0.02), 0.028, -0.3, 2.8, 80.0),
    _Segment("upper_arm", "armpit", "z", (0, 0, 0), 0.024, (0, 0, -0.15), 0.026, -1.5, 1.5, 60.0),
    _Segment("elbow", "upper_arm", "y", (0, 0, -0.165), 0.006, (0, 0, -0.03), 0.022, -2.5, 0.0, 60.0),
    _Segment("forearm", "elbow", "z", (0, 0, -0.035), 0.012, (0, 0, -0.10), 0.020, -1.5, 1.5, 20.0),
    _Segment("wrist", "forearm", "y", (0, 0, -0.115), 0.002, (0, 0, -0.01), 0.016, -1.2, 1.2, 15.0),
    _Segment("hand", "wrist", "x", (0, 0, 0), 0.006, (0, 0, -0.08), 0.018, -0.5, 0.8, 15.0),
)
_PELVIS = 0.136
_AXES: dict[str, Vector] = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
_SOLE = -0.035


def humanoid(*, height: float = 1.7, mass: float = 65.0) -> Model:
    """A humanoid of 31 revolute joints on a free pelvis (37 degrees of freedom), upright at q = neutral.

    Every segment is a cylinder with fractions of `height` [m] and `mass` [kg] that are near those of people.
    The sides mirror each other, signs of the axes included: the same angles left and right make a symmetrical
    posture. Frames: left_sole, right_sole, left_hand_tip, right_hand_tip, head_top; sensors of the pelvis:
    gyro, accelerometer.
    """
    builder = ModelBuilder("humanoid")
    size = (0.09 * height, 0.16 * height, 0.08 * height)
    builder.body(
        "pelvis",
        Inertia.box(_PELVIS * mass, size),
        joint=Free(),
        joint_name="root",
        visuals=[Visual(Box(size), color=STEEL)],
    )
    builder.sensor("pelvis_gyro", "gyro", "pelvis").sensor("pelvis_accelerometer", "accelerometer", "pelvis")
    for segment in _TRUNK:
        _add(builder, segment, height, mass)
    builder.frame("head_top", "head", (0.0, 0.0, 0.12 * height))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        for segment in (*_LEG, *_ARM):
            _add(builder, _sided(segment, side, sign), height, mass, sign)
        builder.frame(f"{side}_sole", f"{side}_foot", (0.02 * height, 0.0, _SOLE * height))
        builder.frame(f"{side}_hand_tip", f"{side}_hand", (0.0, 0.0, -0.10 * height))
    return builder.build()


def _sided(segment: _Segment, side: str, sign: float) -> _Segment:
    own = {other.name for other in (*_LEG, *_ARM)}
    x, y, z = segment.origin
    a, b, c = segment.end
    return segment._replace(
        name=f"{side}_{segment.name}",
        parent=f"{side}_{segment.parent}" if segment.parent in own else segment.parent,
        origin=(x, sign * y, z),
        end=(a, sign * b, c),
    )


def _add(builder: ModelBuilder, segment: _Segment, height: float, mass: float, sign: float = 1.0) -> None:
    ex, ey, ez = (height * entry for entry in segment.end)
    length = (ex * ex + ey * ey + ez * ez) ** 0.5
    radius = height * segment.radius
    axis = _AXES[segment.axis]
    if segment.axis != "y":  # a mirror in the x-z plane turns rotations about x and z round
        axis = (sign * axis[0], 0.0, sign * axis[2])
    direction = (ex / length, ey / length, ez / length)
    center = (ex / 2, ey / 2, ez / 2)
    joint = f"{segment.name}_{segment.axis}"
    builder.body(
        segment.name,
        Inertia.cylinder(mass * segment.mass, radius, length + radius, direction, center),
        joint=Revolute(axis),
        joint_name=joint,
        parent=segment.parent,
        placement=Placement(tuple(height * entry for entry in segment.origin)),
        limits=Limits((segment.lower,), (segment.upper,), (12.0,), (segment.effort,)),
        friction=Friction(viscous=(0.005 * segment.effort,)),
        armature=(2e-4 * segment.effort,),
        visuals=[rod((0.0, 0.0, 0.0), (ex, ey, ez), radius, BLUE if segment.mass > 0.02 else ORANGE)],
    )
    builder.actuator(f"{joint}_motor", joint, limits=(-segment.effort, segment.effort))


def truss_arm(bays: int = 5, *, side: float = 1.0, longeron: float = 1.0, density: float = 0.5) -> Model:
    """A variable-geometry truss of `bays` double octahedra along z, on a triangle that stands in the world.

    A bay has a triangle of fixed `side` [m] below and one above, `bayK.top`, and between them a triangle with three
    actuated sides. Twelve longerons of fixed length [m] join each of its nodes with two corners below and two above. Two
    longerons and a side are a face that turns about the side, by the joint `bayK.lower1`, ..., `bayK.upper1`, ...; at the
    nodes two faces meet. So each bay has three degrees of freedom. The nodes are the frames `bayK.node1`, ...: the
    distances between them are the lengths of the actuated members, which have no mass. At the neutral configuration they
    are as long as `side`. `density` is the mass of a metre of member [kg/m].
    """
    height = math.sqrt(max(longeron**2 - side**2 / 4, 0.0))
    out = side / (2 * math.sqrt(3))
    if not (isinstance(bays, int) and bays >= 1 and side > 0 and density > 0 and height > out):
        least = side / math.sqrt(3)
        raise ArgumentError(
            f"truss_arm: {bays!r} bays with side {side!r}, longeron {longeron!r} and density {density!r}; expected at least "
            f"one bay, positive numbers, and longerons that are longer than side / sqrt(3) = {least:.4g}"
        )
    rise = math.sqrt(height**2 - out**2)
    triangle = _triangle(side)
    builder = ModelBuilder(f"truss_arm_{bays}")
    builder.world(visuals=[_member(a, b, STEEL) for a, b in triangle])
    below = WORLD
    for name in (f"bay{bay}" for bay in range(1, bays + 1)):
        top = f"{name}.top"
        _faces(builder, name, "lower", below, side, (out, 0.0, rise), density * longeron)
        sides = [Inertia.rod(density * side, a, b) for a, b in triangle]
        builder.body(
            top,
            sides[0] + sides[1] + sides[2],
            joint=Free(),
            joint_name=f"{name}.top_joint",
            parent=below,
            placement=(0.0, 0.0, 2 * rise),
            visuals=[_member(a, b, STEEL if name != f"bay{bays}" else ORANGE) for a, b in triangle],
        )
        _faces(builder, name, "upper", top, side, (out, 0.0, -rise), density * longeron)
        for k in (1, 2, 3):
            builder.frame(f"{name}.node{k}", f"{name}.lower_face{k}", (out, 0.0, rise))
            builder.frame(f"{name}.end{k}", f"{name}.upper_face{k}", (out, 0.0, -rise))
            builder.loop(f"{name}.pin{k}", Spherical(), f"{name}.node{k}", f"{name}.end{k}")
        below = top
    builder.frame("tip", below)
    return builder.build()


def _faces(
    builder: ModelBuilder, bay: str, half: str, parent: str, side: float, apex: Vector, mass: float
) -> None:
    """Three faces on a triangle: x of a face points away from the axis of the arm, y along its hinge."""
    out, _, rise = apex
    stands = math.atan2(abs(rise), out)
    ends: list[Vector] = [(0.0, s * side / 2, 0.0) for s in (-1, 1)]
    members = [Inertia.rod(mass, end, apex) for end in ends]
    for k in range(3):
        angle = math.pi / 3 + 2 * math.pi * k / 3
        builder.body(
            f"{bay}.{half}_face{k + 1}",
            members[0] + members[1],
            joint=Revolute((0.0, -math.copysign(1.0, rise), 0.0)),
            joint_name=f"{bay}.{half}{k + 1}",
            parent=parent,
            placement=Placement.from_rpy(
                (0.0, 0.0, angle), (out * math.cos(angle), out * math.sin(angle), 0.0)
            ),
            limits=Limits((0.05 - stands,), (math.pi - 0.05 - stands,)),
            visuals=[_member(end, apex, BLUE) for end in ends],
        )


def _triangle(side: float) -> list[tuple[Vector, Vector]]:
    radius = side / math.sqrt(3)
    corners: list[Vector] = [
        (radius * math.cos(a), radius * math.sin(a), 0.0) for a in (0.0, 2 * math.pi / 3, 4 * math.pi / 3)
    ]
    return [(corners[k], corners[(k + 1) % 3]) for k in range(3)]


def _member(a: Vector, b: Vector, color: tuple[float, ...]) -> Visual:
    return rod(a, b, 0.02 * float(np.linalg.norm(np.subtract(b, a))), color)


STEEL = (0.55, 0.58, 0.62, 1.0)
BLUE = (0.16, 0.38, 0.68, 1.0)
ORANGE = (0.90, 0.52, 0.14, 1.0)
Vector = tuple[float, float, float]


def rod(start: Vector, end: Vector, radius: float, color: tuple[float, ...] = BLUE) -> Visual:
    """A capsule between two points."""
    a, b = np.array(start), np.array(end)
    length = float(np.linalg.norm(b - a))
    middle = tuple((a + b) / 2)
    return Visual(Capsule(radius, length), Placement(middle, _from_z((b - a) / length)), color)


def disc(axis: Vector, radius: float, thickness: float, color: tuple[float, ...] = ORANGE) -> Visual:
    """A cylinder about the origin."""
    return Visual(Cylinder(radius, thickness), Placement(quaternion=_from_z(np.array(axis))), color)


def _from_z(direction: np.ndarray) -> tuple[float, ...]:
    """The quaternion of the shortest turn from the z axis to a unit vector."""
    x, y, z = direction
    if z < -1 + 1e-12:
        return (0.0, 1.0, 0.0, 0.0)
    q_wxyz = np.array([1 + z, -y, x, 0.0])
    return tuple(q_wxyz / np.linalg.norm(q_wxyz))


def pitcher(
    *,
    masses: tuple[float, float, float] = (6.0, 2.2, 1.7),
    lengths: tuple[float, float, float] = (0.20, 0.31, 0.36),
    ball: float = 0.145,
) -> Model:
    """A pitcher's arm: the collarbone turns with the torso about z, then a spherical shoulder and the elbow.

    `masses` [kg] and `lengths` [m] are those of the collarbone (with the part of the torso that goes with
    it), the upper arm and the forearm with the hand, in which the `ball` [kg] is held. At q = neutral the
    collarbone lies along x, the arm hangs down along -z, and the elbow bends forward, towards y. The problem
    of Leyendecker et al. 2009 (section 7.3), who state no data; these are of a grown man. Frame: `hand`.
    """
    clavicle, upper, lower = lengths
    origin, shoulder = (0.0, 0.0, 0.0), (clavicle, 0.0, 0.0)
    elbow, hand = (0.0, 0.0, -upper), (0.0, 0.0, -lower)
    builder = ModelBuilder("pitcher")
    builder.body(
        "collarbone",
        Inertia.cylinder(masses[0], 0.06, clavicle, (1.0, 0.0, 0.0), (clavicle / 2, 0.0, 0.0)),
        joint=Revolute((0.0, 0.0, 1.0)),
        joint_name="torso",
        limits=Limits(lower=(-1.2,), upper=(1.6,), effort=(150.0,)),
        visuals=[rod(origin, shoulder, 0.05, STEEL)],
    )
    builder.body(
        "upper_arm",
        Inertia.cylinder(masses[1], 0.05, upper, center=(0.0, 0.0, -upper / 2)),
        joint=Spherical(),
        joint_name="shoulder",
        parent="collarbone",
        placement=shoulder,
        limits=Limits(effort=(100.0, 100.0, 100.0)),
        visuals=[rod(origin, elbow, 0.045, BLUE)],
    )
    builder.body(
        "forearm",
        Inertia.cylinder(masses[2], 0.04, lower, center=(0.0, 0.0, -lower / 2)) + Inertia.point(ball, hand),
        joint=Revolute((1.0, 0.0, 0.0)),
        joint_name="elbow",
        parent="upper_arm",
        placement=elbow,
        limits=Limits(lower=(0.0,), upper=(2.5,), effort=(60.0,)),
        visuals=[rod(origin, hand, 0.035, BLUE), Visual(Sphere(0.037), Placement(hand), ORANGE)],
    )
    builder.frame("hand", "forearm", hand)
    builder.actuator("torso_muscle", "torso", limits=(-150.0, 150.0))
    for dof, letter in enumerate("xyz"):
        builder.actuator(f"shoulder_muscle_{letter}", "shoulder", dof=dof, limits=(-100.0, 100.0))
    builder.actuator("elbow_muscle", "elbow", limits=(-60.0, 60.0))
    return builder.build()


class _Link(NamedTuple):
    """The joint frame on the link before (origin, turn about x), and the link as a cylinder."""

    origin: Vector
    quarter_turns: int
    mass: float
    start: Vector
    end: Vector
    radius: float
    lower: float
    upper: float
    speed: float
    effort: float


_LINKS = (
    _Link((0.0, 0.0, 0.340), 0, 4.2, (0.0, 0.0, -0.14), (0.0, -0.03, 0.0), 0.060, -2.85, 2.85, 2.2, 90.0),
    _Link((0.0, 0.0, 0.0), -1, 4.0, (0.0, 0.0, 0.03), (0.0, -0.16, 0.0), 0.060, -1.75, 1.75, 2.2, 90.0),
    _Link((0.0, -0.320, 0.0), 1, 3.1, (0.0, 0.0, -0.11), (0.08, 0.03, 0.0), 0.055, -2.85, 2.85, 2.2, 90.0),
    _Link((0.080, 0.0, 0.0), 1, 3.0, (0.0, 0.0, 0.02), (-0.08, 0.12, 0.0), 0.055, -3.05, -0.05, 2.2, 90.0),
    _Link((-0.080, 0.380, 0.0), -1, 2.7, (0.0, 0.0, -0.25), (0.0, 0.05, 0.0), 0.050, -2.85, 2.85, 2.6, 15.0),
    _Link((0.0, 0.0, 0.0), 1, 1.6, (0.0, 0.0, 0.0), (0.09, -0.01, 0.0), 0.050, -0.02, 3.70, 2.6, 15.0),
    _Link((0.090, 0.0, 0.0), 1, 0.8, (0.0, 0.0, 0.03), (0.01, 0.0, 0.10), 0.045, -2.85, 2.85, 2.6, 15.0),
)
_RATIO = 100.0
_ROTOR_INERTIA = (4.0e-5, 4.0e-5, 3.0e-5, 3.0e-5, 1.5e-5, 1.5e-5, 1.5e-5)  # kg m^2
_FRICTION = ((1.2, 1.0), (1.2, 1.0), (0.8, 0.7), (0.8, 0.7), (0.3, 0.3), (0.3, 0.3), (0.3, 0.3))


def arm7(*, friction: bool = True, rotors: bool = False) -> Model:
    """An arm of seven revolute joints with 0.85 m of reach, 3 kg of payload and 19 kg of mass.

    The axes follow each other at right angles, as in the arms with a spherical shoulder and wrist that are
    common in laboratories; the data are our own. `friction` adds viscous [N m s/rad] and Coulomb [N m]
    friction. The motors turn a hundred times as fast as the joints; their inertia is an armature, or with
    `rotors` a spinning rotor that also has gyroscopic couplings. The fourth joint has no zero within its
    limits. Frames: `flange`, `tool`.
    """
    builder = ModelBuilder("arm7")
    for k, link in enumerate(_LINKS):
        inertia = _ROTOR_INERTIA[k]
        viscous, coulomb = _FRICTION[k]
        builder.body(
            f"link{k + 1}",
            _cylinder(link),
            joint=Revolute((0.0, 0.0, 1.0)),
            joint_name=f"joint{k + 1}",
            parent=f"link{k}" if k else WORLD,
            placement=Placement.from_rpy((link.quarter_turns * math.pi / 2, 0.0, 0.0), link.origin),
            limits=Limits((link.lower,), (link.upper,), (link.speed,), (link.effort,)),
            friction=Friction(viscous=(viscous,), coulomb=(coulomb,), smoothing=0.01) if friction else None,
            armature=() if rotors else (_RATIO**2 * inertia,),
            rotors=[Rotor(_RATIO, inertia, (0.0, 0.0, 1.0))] if rotors else (),
            visuals=[rod(link.start, link.end, link.radius, (STEEL, ORANGE)[k % 2])],
        )
        builder.actuator(f"motor{k + 1}", f"joint{k + 1}", limits=(-link.effort, link.effort))
    builder.frame("flange", "link7", (0.0, 0.0, 0.11))
    builder.frame("tool", "link7", (0.0, 0.0, 0.21))
    return builder.build()


def _cylinder(link: _Link) -> Inertia:
    d = [b - a for a, b in zip(link.start, link.end, strict=True)]
    length = math.hypot(*d)
    center = tuple((a + b) / 2 for a, b in zip(link.start, link.end, strict=True))
    # the shape is drawn with round caps; half a radius at each end makes the cylinder of about that volume
    return Inertia.cylinder(
        link.mass, link.radius, length + link.radius, tuple(x / length for x in d), center
    )


def satellite(
    *,
    mass: float = 300.0,
    size: Vector = (1.2, 1.0, 1.6),
    rotors: int = 3,
    rotor_mass: float = 10.0,
    rotor_radius: float = 0.2,
    offset: float = 0.35,
    torque: float = 20.0,
) -> Model:
    """A free main body turned by momentum wheels about its x, y and z axes, without gravity.

    The main body is a uniform cuboid of `mass` [kg] and `size` [m]; each rotor a disc of `rotor_mass` [kg]
    and `rotor_radius` [m], its centre `offset` [m] out on its axis, driven by up to `torque` [N m]. With
    `rotors=2` the wheel about z is missing: the underactuated case. The problem of Leyendecker et al. 2009
    (section 7.2), who state no data.
    """
    if rotors not in (1, 2, 3):
        raise ArgumentError(f"satellite: rotors is {rotors!r}, expected 1, 2 or 3")
    builder = ModelBuilder("satellite", gravity=(0.0, 0.0, 0.0))
    builder.body(
        "main",
        Inertia.box(mass, size),
        joint=Free(),
        joint_name="attitude",
        visuals=[Visual(Box(size), color=(*STEEL[:3], 0.4))],
    )
    builder.sensor("star_tracker", "frame", "main").sensor("rate_gyro", "gyro", "main")
    for letter, axis in list(_AXES.items())[:rotors]:
        builder.body(
            f"rotor_{letter}",
            Inertia.cylinder(rotor_mass, rotor_radius, 0.05, axis),
            joint=Revolute(axis),
            joint_name=f"spin_{letter}",
            parent="main",
            placement=tuple(offset * entry for entry in axis),
            visuals=[disc(axis, rotor_radius, 0.05)],
        )
        builder.actuator(f"motor_{letter}", f"spin_{letter}", limits=(-torque, torque))
        builder.sensor(f"tachometer_{letter}", "joint_rate", f"spin_{letter}")
    return builder.build()


def chain(
    n: int = 10,
    *,
    axes: Sequence[Sequence[float]] = ((0.0, 0.0, 1.0), (0.0, -1.0, 0.0)),
    length: float = 1.0,
    mass: float = 1.0,
) -> Model:
    """A serial chain of `n` equal links on revolute joints, stretched out along x at q = 0.

    Each link is a solid cylinder of `length` [m] and `mass` [kg], a tenth as thick as long. The joints turn
    about `axes` in turn: by default about z and about -y alternately; one axis makes the chain planar.
    """
    if n < 1 or not axes:
        raise ArgumentError(f"chain: n is {n} and axes {axes!r}, expected at least one of each")
    builder = ModelBuilder(f"chain_{n}")
    for k in range(n):
        axis = tuple(float(entry) for entry in axes[k % len(axes)])
        builder.body(
            f"link{k + 1}",
            Inertia.cylinder(mass, 0.05 * length, length, (1.0, 0.0, 0.0), (length / 2, 0.0, 0.0)),
            joint=Revolute(axis),
            joint_name=f"joint{k + 1}",
            parent=f"link{k}" if k else WORLD,
            placement=(length if k else 0.0, 0.0, 0.0),
            visuals=[rod((0.0, 0.0, 0.0), (length, 0.0, 0.0), 0.05 * length, (BLUE, ORANGE)[k % 2])],
        )
        builder.actuator(f"motor{k + 1}", f"joint{k + 1}")
    builder.frame("tip", f"link{n}", (length, 0.0, 0.0))
    return builder.build()


UPWARD = (0.0, -1.0, 0.0)
"""The axis of a positive turn from x towards z."""


def pendulum(*, mass: float = 1.0, length: float = 1.0, damping: float = 0.0) -> Model:
    """A point mass [kg] on a massless rod [m], hanging down at q = 0; viscous damping [N m s/rad].

    The defaults are the simple pendulum of the IFToMM benchmark, there released at q = -pi/2.
    """
    tip = (0.0, 0.0, -length)
    builder = ModelBuilder("pendulum")
    builder.body(
        "bob",
        Inertia.point(mass, tip),
        joint=Revolute(UPWARD),
        joint_name="pivot",
        friction=Friction(viscous=(damping,)) if damping else None,
        visuals=[
            rod((0.0, 0.0, 0.0), tip, 0.01 * length, STEEL),
            Visual(Sphere(0.06 * length), Placement(tip), ORANGE),
        ],
    )
    builder.frame("tip", "bob", tip)
    builder.actuator("motor", "pivot")
    return builder.build()


def two_link(*, masses: tuple[float, float] = (1.0, 1.0), lengths: tuple[float, float] = (1.0, 1.0)) -> Model:
    """Two uniform rods (masses [kg], lengths [m]), both joints driven.

    q[0] is the angle of the first rod from the horizontal, q[1] that of the second from the first: hanging is
    (-pi/2, 0), upright (pi/2, 0). The problem of Leyendecker et al. 2009 (section 7.1, whose second angle is
    the absolute one) and the planar 2R arm of Sohl and Bobrow 2001 (section 5.1); neither states the data.
    """
    builder = _two_rods("two_link", masses, lengths)
    builder.actuator("shoulder_motor", "shoulder").actuator("elbow_motor", "elbow")
    return builder.build()


def acrobot(*, masses: tuple[float, float] = (1.0, 1.0), lengths: tuple[float, float] = (1.0, 2.0)) -> Model:
    """The two rods with a motor at the elbow only; angles as in `two_link`, upright at (pi/2, 0).

    Sohl and Bobrow 2001 (section 5.2) state no data; the defaults have a second
    rod twice as long as the first, as usual.
    """
    builder = _two_rods("acrobot", masses, lengths)
    builder.actuator("elbow_motor", "elbow")
    return builder.build()


def branched_acrobot(
    *, masses: tuple[float, float] = (1.0, 1.0), lengths: tuple[float, float] = (1.0, 1.0)
) -> Model:
    """An acrobot with two legs: a rod on a passive base joint, and at its end two driven rods.

    `masses` [kg] and `lengths` [m] are those of the trunk and of each leg. q = (base, left hip, right hip),
    the base as in `acrobot`, the hips from the trunk's direction. Sohl and Bobrow 2001 (section 5.3) state no
    data.
    """
    builder = ModelBuilder("branched_acrobot")
    _rod(builder, "trunk", masses[0], lengths[0], "base")
    for side in ("left", "right"):
        _rod(builder, f"{side}_leg", masses[1], lengths[1], f"{side}_hip", "trunk", lengths[0])
        builder.frame(f"{side}_foot", f"{side}_leg", (lengths[1], 0.0, 0.0))
        builder.actuator(f"{side}_motor", f"{side}_hip")
    return builder.build()


def cart_pole(
    *,
    cart_mass: float = 1.0,
    pole_mass: float = 0.3,
    pole_length: float = 0.5,
    track: float = 2.0,
    force: float = 20.0,
) -> Model:
    """A cart [kg] on a track of +-`track` [m], driven by up to `force` [N], with a pole on a free hinge.

    The pole is a point mass [kg] at the end of a massless rod [m]; q = (position, angle from hanging down).
    """
    tip = (0.0, 0.0, -pole_length)
    builder = ModelBuilder("cart_pole")
    reach = track + 0.15
    builder.world(visuals=[rod((-reach, 0.0, -0.07), (reach, 0.0, -0.07), 0.02, STEEL)])
    builder.body(
        "cart",
        Inertia.box(cart_mass, (0.3, 0.2, 0.1)),
        joint=Prismatic((1.0, 0.0, 0.0)),
        joint_name="slide",
        limits=Limits(lower=(-track,), upper=(track,), effort=(force,)),
        visuals=[Visual(Box((0.3, 0.2, 0.1)), color=STEEL)],
    )
    builder.body(
        "pole",
        Inertia.point(pole_mass, tip),
        joint=Revolute(UPWARD),
        joint_name="hinge",
        parent="cart",
        visuals=[rod((0.0, 0.0, 0.0), tip, 0.01), Visual(Sphere(0.04), Placement(tip), ORANGE)],
    )
    builder.frame("tip", "pole", tip)
    builder.actuator("motor", "slide", limits=(-force, force))
    return builder.build()


def _two_rods(name: str, masses: tuple[float, float], lengths: tuple[float, float]) -> ModelBuilder:
    builder = ModelBuilder(name)
    _rod(builder, "upper", masses[0], lengths[0], "shoulder")
    _rod(builder, "lower", masses[1], lengths[1], "elbow", "upper", lengths[0], ORANGE)
    return builder.frame("tip", "lower", (lengths[1], 0.0, 0.0))


def _rod(
    builder: ModelBuilder,
    name: str,
    mass: float,
    length: float,
    joint: str,
    parent: str = "world",
    offset: float = 0.0,
    color: tuple[float, ...] = BLUE,
) -> None:
    """A uniform rod along its x axis, hinged `offset` out on its parent."""
    end = (length, 0.0, 0.0)
    builder.body(
        name,
        Inertia.rod(mass, (0.0, 0.0, 0.0), end),
        joint=Revolute(UPWARD),
        joint_name=joint,
        parent=parent,
        placement=(offset, 0.0, 0.0),
        visuals=[rod((0.0, 0.0, 0.0), end, 0.035 * length, color)],
    )
