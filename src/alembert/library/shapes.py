"""Shapes that are drawn with the example models."""

from __future__ import annotations

import numpy as np

from alembert.model import Capsule, Cylinder, Placement, Visual

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
