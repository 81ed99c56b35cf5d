from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
import numpy as np

from alembert.expression import Scalar, scalar
from alembert.joints import closure
from alembert.joints.joint import ANGLE, JointType, column, register, rotation_about, unit_axis
from alembert.spatial import Pose
from alembert.spatial.arrays import Array, cos, dot, is_symbolic, sin, sqrt, vector, where, zero_like


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
        return column(a[0] + zero_like(q), a[1], a[2], *(self.pitch * a[k] for k in range(3)))

    def bias(self, q: Array, v: Array) -> None:
        return None

    def fit(self, X: Pose) -> Array:
        """The rotation gives the angle within a turn, the advance how many turns."""
        a = closure.direction(self.axis, like=X.rotation)
        angle = closure.angle_about(a, X.rotation)
        flat = self.pitch == 0
        advanced = dot(a, X.translation) / where(flat, 1.0, self.pitch)
        turns = (advanced - angle) / (2 * np.pi) + 0.5
        whole = ca.floor(turns) if is_symbolic(turns) else np.floor(turns)
        return vector(angle + where(flat, 0.0, 2 * np.pi * whole))

    def constraint_subspace(self, q: Array) -> Array:
        """The last column balances a force along the axis with the moment -pitch times it."""
        a, h = closure.direction(self.axis, like=q), self.pitch
        b, c = closure.across(a)
        T = closure.basis((b, c), (b, c), like=q)
        length = sqrt(1 + h * h)
        last = column(*(h / length * a[k] for k in range(3)), *(-a[k] / length for k in range(3)))
        return ca.horzcat(T, last) if is_symbolic(T, last) else np.hstack([T, last])
