"""Joints that turn or slide about and along constant axes: the lower pairs, without the spherical, and those beside them."""

from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
import numpy as np

from alembert.expression import Scalar, scalar
from alembert.joints import closure
from alembert.joints.joint import (
    ANGLE,
    LENGTH,
    JointType,
    Translation,
    column,
    rotation_about,
    unit_axis,
)
from alembert.spatial import Pose
from alembert.spatial.arrays import (
    Array,
    cos,
    dot,
    identity,
    is_symbolic,
    matrix,
    sin,
    sqrt,
    vector,
    where,
    zero_like,
    zeros,
)


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


@dataclass(frozen=True)
class _AxisJoint(JointType):
    """Turns about or slides along one axis, which is constant on both bodies, as S is."""

    axis: tuple[Scalar, ...] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis, f"{self.kind} axis"))

    def bias(self, q: Array, v: Array) -> None:
        return None


@dataclass(frozen=True)
class Revolute(_AxisJoint):
    """Rotation by the angle q about `axis` through the joint frame's origin."""

    kind: ClassVar[str] = "revolute"

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        return (("angle", ANGLE),)

    def placement(self, q: Array) -> Pose:
        return Pose(rotation_about(self.axis, cos(q[0]), sin(q[0])), zeros(3, like=q))

    def subspace(self, q: Array) -> Array:
        return column(self.axis[0] + zero_like(q), self.axis[1], self.axis[2], 0, 0, 0)

    def fit(self, X: Pose) -> Array:
        return vector(closure.angle_about(closure.direction(self.axis, like=X.rotation), X.rotation))

    def constraint_subspace(self, q: Array) -> Array:
        a = closure.direction(self.axis, like=q)
        b, c = closure.across(a)
        return closure.basis((b, c), (b, c, a), like=q)


@dataclass(frozen=True)
class Prismatic(_AxisJoint):
    """Translation by the distance q along `axis`."""

    kind: ClassVar[str] = "prismatic"
    axis: tuple[Scalar, ...] = (1.0, 0.0, 0.0)

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        return (("distance", LENGTH),)

    def placement(self, q: Array) -> Pose:
        return Pose(identity(3, like=q), vector(*(self.axis[k] * q[0] for k in range(3))))

    def subspace(self, q: Array) -> Array:
        return column(zero_like(q), 0, 0, self.axis[0], self.axis[1], self.axis[2])

    def fit(self, X: Pose) -> Array:
        return vector(dot(closure.direction(self.axis, like=X.rotation), X.translation))

    def constraint_subspace(self, q: Array) -> Array:
        a = closure.direction(self.axis, like=q)
        b, c = closure.across(a)
        return closure.basis((b, c, a), (b, c), like=q)


@dataclass(frozen=True)
class Screw(_AxisJoint):
    """Rotation by the angle q about `axis`, advancing `pitch` metres per radian along it."""

    kind: ClassVar[str] = "screw"
    pitch: Scalar = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
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


@dataclass(frozen=True)
class Cylindrical(_AxisJoint):
    """Rotation by q[0] about `axis` and translation by q[1] along it."""

    kind: ClassVar[str] = "cylindrical"

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

    def fit(self, X: Pose) -> Array:
        a = closure.direction(self.axis, like=X.rotation)
        return vector(closure.angle_about(a, X.rotation), dot(a, X.translation))

    def constraint_subspace(self, q: Array) -> Array:
        b, c = closure.across(closure.direction(self.axis, like=q))
        return closure.basis((b, c), (b, c), like=q)


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
