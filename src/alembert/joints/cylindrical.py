from dataclasses import dataclass
from typing import ClassVar

from alembert.expression import Scalar
from alembert.joints import closure
from alembert.joints.joint import ANGLE, LENGTH, JointType, register, rotation_about, unit_axis
from alembert.spatial import Pose
from alembert.spatial.arrays import Array, cos, dot, matrix, sin, vector, zero_like


@register
@dataclass(frozen=True)
class Cylindrical(JointType):
    """Rotation by q[0] about `axis` and translation by q[1] along it."""

    kind: ClassVar[str] = "cylindrical"
    axis: tuple[Scalar, ...] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis, "cylindrical axis"))

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        return (("angle", ANGLE), ("distance", LENGTH))

    def placement(self, q: Array) -> Pose:
        R = rotation_about(self.axis, cos(q[0]), sin(q[0]))
        return Pose(R, vector(*(self.axis[k] * q[1] for k in range(3))))

    def subspace(self, q: Array) -> Array:
        zero = zero_like(q)
        a = self.axis
        return matrix([[a[k], zero] for k in range(3)] + [[zero, a[k]] for k in range(3)])

    def bias(self, q: Array, v: Array) -> None:
        return None

    def fit(self, X: Pose) -> Array:
        a = closure.direction(self.axis, like=X.rotation)
        return vector(closure.angle_about(a, X.rotation), dot(a, X.translation))

    def constraint_subspace(self, q: Array) -> Array:
        b, c = closure.across(closure.direction(self.axis, like=q))
        return closure.basis((b, c), (b, c), like=q)
