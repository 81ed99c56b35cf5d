from dataclasses import dataclass
from typing import ClassVar

from alembert.expression import Scalar
from alembert.joints import closure
from alembert.joints.joint import ANGLE, JointType, column, register, rotation_about, unit_axis
from alembert.spatial import Pose
from alembert.spatial.arrays import Array, cos, sin, vector, zero_like, zeros


@register
@dataclass(frozen=True)
class Revolute(JointType):
    """Rotation by the angle q about `axis` through the joint frame's origin."""

    kind: ClassVar[str] = "revolute"
    axis: tuple[Scalar, ...] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis, "revolute axis"))

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        return (("angle", ANGLE),)

    def placement(self, q: Array) -> Pose:
        return Pose(rotation_about(self.axis, cos(q[0]), sin(q[0])), zeros(3, like=q))

    def subspace(self, q: Array) -> Array:
        return column(self.axis[0] + zero_like(q), self.axis[1], self.axis[2], 0, 0, 0)

    def bias(self, q: Array, v: Array) -> None:
        return None

    def fit(self, X: Pose) -> Array:
        return vector(closure.angle_about(closure.direction(self.axis, like=X.rotation), X.rotation))

    def constraint_subspace(self, q: Array) -> Array:
        a = closure.direction(self.axis, like=q)
        b, c = closure.across(a)
        return closure.basis((b, c), (b, c, a), like=q)
