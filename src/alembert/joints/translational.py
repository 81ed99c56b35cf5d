from dataclasses import dataclass
from typing import ClassVar

from alembert.joints import closure
from alembert.joints.joint import LENGTH, JointType, Translation, register
from alembert.spatial import Pose
from alembert.spatial.arrays import Array, identity, matrix, zeros


@register
@dataclass(frozen=True)
class Translational(JointType):
    """Three translations along the joint frame's axes, no rotation."""

    kind: ClassVar[str] = "translational"

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        return (("x", LENGTH), ("y", LENGTH), ("z", LENGTH))

    @property
    def translation(self) -> Translation:
        return Translation(slice(0, 3), slice(0, 3))

    def placement(self, q: Array) -> Pose:
        return Pose(identity(3, like=q), q)

    def subspace(self, q: Array) -> Array:
        return matrix([[zeros(3, 3, like=q)], [identity(3, like=q)]])

    def bias(self, q: Array, v: Array) -> None:
        return None

    def fit(self, X: Pose) -> Array:
        return X.translation

    def constraint_subspace(self, q: Array) -> Array:
        return closure.basis(closure.AXES, (), like=q)
