from __future__ import annotations

from typing import NamedTuple

from alembert.joints import Free, Friction, Limits, Revolute
from alembert.library.shapes import BLUE, ORANGE, STEEL, Vector, rod
from alembert.model import Box, Inertia, Model, ModelBuilder, Placement, Visual


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
