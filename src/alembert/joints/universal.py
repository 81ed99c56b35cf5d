from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from alembert.errors import ModelError
from alembert.expression import Expression, Scalar
from alembert.joints import closure
from alembert.joints.gimbal import rotation_columns, rotation_product
from alembert.joints.joint import ANGLE, JointType, register, rotation_about, unit_axis
from alembert.spatial import Pose
from alembert.spatial.arrays import Array, atan2, cos, cross, dot, sin, vector, zeros


@register
@dataclass(frozen=True)
class Universal(JointType):
    """Hooke's joint: q[0] about `first`, fixed on the parent, then q[1] about `second`, fixed on the body."""

    kind: ClassVar[str] = "universal"
    first: tuple[Scalar, ...] = (1.0, 0.0, 0.0)
    second: tuple[Scalar, ...] = (0.0, 1.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", unit_axis(self.first, "universal first axis"))
        object.__setattr__(self, "second", unit_axis(self.second, "universal second axis"))
        a, b = self.first, self.second
        if not any(isinstance(x, Expression) for x in a + b):
            cosine = float(np.dot(np.array(a, dtype=float), np.array(b, dtype=float)))
            if abs(cosine) > 1 - 1e-12:
                raise ModelError(f"universal axes {a} and {b} are parallel; they must span a plane")

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        return (("first", ANGLE), ("second", ANGLE))

    def placement(self, q: Array) -> Pose:
        return Pose(rotation_product((self.first, self.second), q), zeros(3, like=q))

    def subspace(self, q: Array) -> Array:
        return rotation_columns((self.first, self.second), q)

    def fit(self, X: Pose) -> Array:
        """R b = R(a, q0) b gives the first angle, what is left of R the second."""
        a, b = (closure.direction(axis, like=X.rotation) for axis in (self.first, self.second))
        turned = X.rotation @ b
        first = atan2(dot(a, cross(b, turned)), dot(b, turned) - dot(a, b) * dot(a, turned))
        rest = rotation_about(self.first, cos(first), sin(first)).T @ X.rotation
        return vector(first, closure.angle_about(b, rest))

    def constraint_subspace(self, q: Array) -> Array:
        """All forces, and the moment normal to both axes, which turns with the second angle."""
        a, b = (closure.direction(axis, like=q) for axis in (self.first, self.second))
        normal = rotation_about(self.second, cos(q[1]), sin(q[1])).T @ closure.unit(cross(a, b))
        return closure.basis((normal,), closure.AXES, like=q)
