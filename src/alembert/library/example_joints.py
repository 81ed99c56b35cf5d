"""An example of every joint type, with random constants.

Tests and the random trees take their joints from here. A new joint type needs an entry; a test says so.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from alembert.arguments import check_known
from alembert.expression import Scalar
from alembert.joints import (
    Custom,
    Cylindrical,
    Fixed,
    Free,
    Gimbal,
    JointType,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Translational,
    Universal,
)
from alembert.joints.joint import ANGLE, LENGTH, rotation_about
from alembert.spatial import Pose

Axis = tuple[Scalar, ...]
Factory = Callable[
    ["np.random.Generator", Callable[[], Axis]], JointType
]  # a text: NumPy imports it when asked
SEQUENCES = ("zyx", "xyz", "zxz", "yxy", "xzy")

FACTORIES: dict[str, Factory] = {
    "fixed": lambda rng, axis: Fixed(),
    "revolute": lambda rng, axis: Revolute(axis()),
    "prismatic": lambda rng, axis: Prismatic(axis()),
    "screw": lambda rng, axis: Screw(axis(), float(rng.uniform(-0.3, 0.3))),
    "cylindrical": lambda rng, axis: Cylindrical(axis()),
    "universal": lambda rng, axis: Universal(*_apart(rng)),
    "planar": lambda rng, axis: Planar(),
    "spherical": lambda rng, axis: Spherical(),
    "gimbal": lambda rng, axis: Gimbal(str(rng.choice(SEQUENCES))),
    "translational": lambda rng, axis: Translational(),
    "free": lambda rng, axis: Free(),
    "custom": lambda rng, axis: _knee(rng) if rng.random() < 0.5 else _ring(rng),
}


def example_joint(
    kind: str,
    rng: np.random.Generator | int | None = None,
    *,
    axis: Callable[[], Axis] | None = None,
) -> JointType:
    """A joint of the kind with random constants; `axis` gives its axes, by default `random_axis`."""
    rng = np.random.default_rng(rng)
    check_known("example_joint: no example of the joint type", kind, FACTORIES)
    return FACTORIES[kind](rng, axis or (lambda: random_axis(rng)))


def random_axis(rng: np.random.Generator) -> tuple[float, ...]:
    """Half of the time a coordinate axis of either sign, otherwise any direction."""
    if rng.random() < 0.5:
        axis = np.zeros(3)
        axis[rng.integers(3)] = rng.choice([-1.0, 1.0])
    else:
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
    return tuple(float(entry) for entry in axis)


def _apart(rng: np.random.Generator) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Two axes that are at least 30 degrees apart."""
    while True:
        a, b = random_axis(rng), random_axis(rng)
        if abs(np.dot(a, b)) < np.cos(np.radians(30)):
            return a, b


def _knee(rng: np.random.Generator) -> Custom:
    """A knee: the shin rolls on an ellipse, so that the axis moves with the angle."""
    a, b, slope = (float(x) for x in rng.uniform(0.1, 0.5, size=3))

    def placement(q: ca.SX) -> Pose:
        R = rotation_about((0.0, 1.0, 0.0), ca.cos(q[0]), ca.sin(q[0]))
        return Pose(R, ca.vertcat(a * ca.sin(q[0]), slope * q[0], b * ca.cos(q[0])))

    return Custom.from_function(placement, [("flexion", ANGLE)])


def _ring(rng: np.random.Generator) -> Custom:
    """A bead that slides on a helix and turns about its wire."""
    radius, pitch = (float(x) for x in rng.uniform(0.2, 0.8, size=2))

    def placement(q: ca.SX) -> Pose:
        angle = q[0] / radius
        R = rotation_about((0.0, 0.0, 1.0), ca.cos(angle), ca.sin(angle))
        p = ca.vertcat(radius * ca.cos(angle), radius * ca.sin(angle), pitch * angle)
        return Pose(R @ rotation_about((0.0, 1.0, 0.0), ca.cos(q[1]), ca.sin(q[1])), p)

    return Custom.from_function(placement, [("distance", LENGTH), ("angle", ANGLE)])
