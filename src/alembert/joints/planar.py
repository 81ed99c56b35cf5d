from dataclasses import dataclass
from typing import ClassVar

from alembert.joints import closure
from alembert.joints.joint import ANGLE, LENGTH, JointType, Translation, register, rotation_about
from alembert.spatial import Pose
from alembert.spatial.arrays import Array, cos, matrix, sin, vector, zero_like


@register
@dataclass(frozen=True)
class Planar(JointType):
    """Motion in the joint frame's xy plane: q = (x, y, angle about z), v = dq/dt."""

    kind: ClassVar[str] = "planar"

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        return (("x", LENGTH), ("y", LENGTH), ("angle", ANGLE))

    @property
    def translation(self) -> Translation:
        return Translation(slice(0, 2), slice(0, 2))

    def placement(self, q: Array) -> Pose:
        R = rotation_about((0.0, 0.0, 1.0), cos(q[2]), sin(q[2]))
        return Pose(R, vector(q[0], q[1], zero_like(q)))

    def subspace(self, q: Array) -> Array:
        c, s = cos(q[2]), sin(q[2])
        zero = zero_like(q)
        return matrix(
            [
                [zero, zero, zero],
                [zero, zero, zero],
                [zero, zero, 1.0],
                [c, s, zero],
                [-s, c, zero],
                [zero, zero, zero],
            ]
        )

    def fit(self, X: Pose) -> Array:
        z = closure.direction(closure.AXES[2], like=X.rotation)
        return vector(X.translation[0], X.translation[1], closure.angle_about(z, X.rotation))

    def constraint_subspace(self, q: Array) -> Array:
        x, y, z = closure.AXES
        return closure.basis((x, y), (z,), like=q)
