from __future__ import annotations

from alembert.joints import Limits, Revolute, Spherical
from alembert.library.shapes import BLUE, ORANGE, STEEL, rod
from alembert.model import Inertia, Model, ModelBuilder, Placement, Sphere, Visual


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
