from dataclasses import dataclass
from typing import ClassVar

from alembert.expression import Scalar, scalar
from alembert.joints.joint import ANGLE, JointType, column, register, rotation_about, unit_axis
from alembert.spatial import Pose
from alembert.spatial.arrays import Array, cos, sin, vector


@register
@dataclass(frozen=True)
class Screw(JointType):
    """Rotation by the angle q about `axis`, advancing `pitch` metres per radian along it."""

    kind: ClassVar[str] = "screw"
    axis: tuple[Scalar, ...] = (0.0, 0.0, 1.0)
    pitch: Scalar = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis, "screw axis"))
        object.__setattr__(self, "pitch", scalar(self.pitch, "screw pitch"))

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        return (("angle", ANGLE),)

    def placement(self, q: Array) -> Pose:
        R = rotation_about(self.axis, cos(q[0]), sin(q[0]))
        return Pose(R, vector(*(self.pitch * self.axis[k] * q[0] for k in range(3))))

    def subspace(self, q: Array) -> Array:
        a = self.axis
        return column(a[0] + 0 * q[0], a[1], a[2], *(self.pitch * a[k] for k in range(3)))

    def bias(self, q: Array, v: Array) -> None:
        return None
