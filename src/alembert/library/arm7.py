""""""

from __future__ import annotations

import math
from typing import NamedTuple

from alembert.joints import Friction, Limits, Revolute, Rotor, Spherical
from alembert.library.shapes import BLUE, ORANGE, STEEL, Vector, rod
from alembert.model import WORLD, Inertia, Model, ModelBuilder, Placement, Sphere, Visual


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
