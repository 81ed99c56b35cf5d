"""The coordinates of a body that deforms, in the protocol of a joint type: they add, and q' = v.

Not a joint: it moves no frame, is in no file and not in the registry. `alembert.model.space` gives it to bodies with modes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from alembert.joints.joint import JointType
from alembert.spatial import Pose
from alembert.spatial.arrays import Array, zeros


@dataclass(frozen=True)
class ModalCoordinates(JointType):
    """Modal coordinates by name, with their units."""

    kind: ClassVar[str] = "modes"
    names: tuple[str, ...] = field(default=(), metadata={"structural": True})
    units: tuple[str, ...] = field(default=(), metadata={"structural": True})

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        return tuple(zip(self.names, self.units, strict=True))

    def placement(self, q: Array) -> Pose:
        return Pose.identity(like=q)

    def subspace(self, q: Array) -> Array:
        """They move no frame."""
        return zeros(6, self.nv, like=q)

    def bias(self, q: Array, v: Array) -> None:
        return None
