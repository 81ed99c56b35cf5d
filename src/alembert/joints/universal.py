from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from alembert.errors import ModelError
from alembert.expression import Expression, Scalar
from alembert.joints import rotations
from alembert.joints.joint import ANGLE, JointType, register, unit_axis
from alembert.spatial import Pose
from alembert.spatial.arrays import Array, zeros


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
        return Pose(rotations.product((self.first, self.second), q), zeros(3, like=q))

    def subspace(self, q: Array) -> Array:
        return rotations.columns((self.first, self.second), q)
