from dataclasses import dataclass
from typing import ClassVar

from alembert.expression import Scalar
from alembert.joints import closure
from alembert.joints.joint import LENGTH, JointType, column, register, unit_axis
from alembert.spatial import Pose
from alembert.spatial.arrays import Array, dot, identity, vector, zero_like


@register
@dataclass(frozen=True)
class Prismatic(JointType):
    """Translation by the distance q along `axis`."""

    kind: ClassVar[str] = "prismatic"
    axis: tuple[Scalar, ...] = (1.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis, "prismatic axis"))

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        return (("distance", LENGTH),)

    def placement(self, q: Array) -> Pose:
        return Pose(identity(3, like=q), vector(*(self.axis[k] * q[0] for k in range(3))))

    def subspace(self, q: Array) -> Array:
        return column(zero_like(q), 0, 0, self.axis[0], self.axis[1], self.axis[2])

    def bias(self, q: Array, v: Array) -> None:
        return None

    def fit(self, X: Pose) -> Array:
        return vector(dot(closure.direction(self.axis, like=X.rotation), X.translation))

    def constraint_subspace(self, q: Array) -> Array:
        a = closure.direction(self.axis, like=q)
        b, c = closure.across(a)
        return closure.basis((b, c, a), (b, c), like=q)
