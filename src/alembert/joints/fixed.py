from dataclasses import dataclass
from typing import ClassVar

from alembert.joints.joint import JointType, register
from alembert.spatial import Pose
from alembert.spatial.arrays import Array, identity, zeros


@register
@dataclass(frozen=True)
class Fixed(JointType):
    """No motion: the body is welded to its parent."""

    kind: ClassVar[str] = "fixed"

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        return ()

    def placement(self, q: Array) -> Pose:
        return Pose.identity(like=q)

    def subspace(self, q: Array) -> Array:
        return zeros(6, 0, like=q)

    def bias(self, q: Array, v: Array) -> None:
        return None

    def fit(self, X: Pose) -> Array:
        return X.translation[0:0]

    def constraint_subspace(self, q: Array) -> Array:
        return identity(6, like=q)
