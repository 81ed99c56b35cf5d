"""Joints that turn about more than one axis: spherical and free (a unit quaternion), gimbals and universal joints.

Axes in sequence make R = R(a1, q1) R(a2, q2) ...; S then has the columns (R_{k+1} ... R_n)^T a_k, which depend on q.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
import numpy as np

from alembert.errors import ModelError
from alembert.expression import Expression, Scalar
from alembert.joints import closure
from alembert.joints.joint import ANGLE, LENGTH, JointType, Translation, rotation_about, unit_axis
from alembert.joints.pair import structural
from alembert.spatial import Pose, quaternion, series, so3
from alembert.spatial.arrays import (
    Array,
    as_array,
    atan2,
    cos,
    cross,
    dot,
    identity,
    is_symbolic,
    matrix,
    sin,
    sqrt,
    vector,
    zeros,
)

QUATERNION = (("qw", ""), ("qx", ""), ("qy", ""), ("qz", ""))
_UNIT = 1e-6  # how far from unit length a quaternion of the user may be


def quaternion_rate(q_wxyz: Array, w: Array) -> Array:
    """q' = q (0, w)/2 for the body angular velocity w."""
    return quaternion.multiply(q_wxyz, vector(as_array(0.0, like=w), w)) / 2


def quaternion_problem(q_wxyz: np.ndarray) -> str | None:
    with np.errstate(over="ignore"):
        length = np.linalg.norm(q_wxyz, axis=-1)
    off = np.abs(length - 1) > _UNIT
    if not np.any(off):
        return None
    return (
        f"the quaternion (w, x, y, z) has length {length[off].flat[0]:.9g}, expected 1; divide by its length"
    )


def random_quaternion(rng: np.random.Generator) -> np.ndarray:
    """Uniform over all rotations."""
    q_wxyz = rng.normal(size=4)
    return q_wxyz / np.linalg.norm(q_wxyz)


@dataclass(frozen=True)
class Spherical(JointType):
    """A ball joint: q is a unit quaternion (w, x, y, z), v the angular velocity in body axes."""

    kind: ClassVar[str] = "spherical"

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        return QUATERNION

    @property
    def speeds(self) -> tuple[tuple[str, str], ...]:
        return tuple((f"w{axis}", f"{ANGLE}/s") for axis in "xyz")

    @property
    def is_vector_space(self) -> bool:
        return False

    def placement(self, q: Array) -> Pose:
        return Pose(quaternion.to_matrix(q), zeros(3, like=q))

    def subspace(self, q: Array) -> Array:
        return matrix([[identity(3, like=q)], [zeros(3, 3, like=q)]])

    def bias(self, q: Array, v: Array) -> None:
        return None

    def fit(self, X: Pose) -> Array:
        return quaternion.from_matrix(X.rotation)

    def constraint_subspace(self, q: Array) -> Array:
        return closure.basis((), closure.AXES, like=q)

    def rate(self, q: Array, v: Array) -> Array:
        return quaternion_rate(q, v)

    def integrate(self, q: Array, dv: Array) -> Array:
        return quaternion.normalize(quaternion.multiply(q, quaternion.exp(dv)))

    def difference(self, q0: Array, q1: Array) -> Array:
        turn = quaternion.multiply(quaternion.conjugate(q0), q1)
        return quaternion.log(quaternion.normalize(turn))

    def neutral(self) -> np.ndarray:
        return quaternion.identity()

    def random(self, rng: np.random.Generator, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        return random_quaternion(rng)

    def problem(self, q: np.ndarray) -> str | None:
        return quaternion_problem(q)


@dataclass(frozen=True)
class Free(JointType):
    """All six: q = (p_WB_W, quaternion wxyz), v = (angular, linear velocity) in body axes.

    Displacements are those of SE(3): integrate(q, dv) = X(q) exp(dv).
    """

    kind: ClassVar[str] = "free"

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        return (("x", LENGTH), ("y", LENGTH), ("z", LENGTH), *QUATERNION)

    @property
    def speeds(self) -> tuple[tuple[str, str], ...]:
        angular = tuple((f"w{axis}", f"{ANGLE}/s") for axis in "xyz")
        return (*angular, *((f"v{axis}", f"{LENGTH}/s") for axis in "xyz"))

    @property
    def is_vector_space(self) -> bool:
        return False

    @property
    def translation(self) -> Translation:
        return Translation(slice(0, 3), slice(3, 6), slice(0, 3))

    def placement(self, q: Array) -> Pose:
        return Pose(quaternion.to_matrix(q[3:7]), q[0:3])

    def subspace(self, q: Array) -> Array:
        return identity(6, like=q)

    def bias(self, q: Array, v: Array) -> None:
        return None

    def fit(self, X: Pose) -> Array:
        return vector(X.translation, quaternion.from_matrix(X.rotation))

    def constraint_subspace(self, q: Array) -> Array:
        return zeros(6, 0, like=q)

    def rate(self, q: Array, v: Array) -> Array:
        return vector(quaternion.to_matrix(q[3:7]) @ v[3:6], quaternion_rate(q[3:7], v[0:3]))

    def integrate(self, q: Array, dv: Array) -> Array:
        w, u = dv[0:3], dv[3:6]
        c, s, rest = series.half_turn(dot(w, w) / 4)
        turned = quaternion.normalize(quaternion.multiply(q[3:7], vector(c, s / 2 * w)))
        across = cross(w, u)
        moved = u + s * s / 2 * across + rest * cross(w, across)  # the left Jacobian of w times u
        return vector(q[0:3] + quaternion.rotate(q[3:7], moved), turned)

    def difference(self, q0: Array, q1: Array) -> Array:
        turn = quaternion.multiply(quaternion.conjugate(q0[3:7]), q1[3:7])
        w = quaternion.log(quaternion.normalize(turn))
        moved = quaternion.to_matrix(q0[3:7]).T @ (q1[0:3] - q0[0:3])
        return vector(w, so3.left_jacobian_inverse(w) @ moved)

    def neutral(self) -> np.ndarray:
        return np.r_[0.0, 0.0, 0.0, quaternion.identity()]

    def random(self, rng: np.random.Generator, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        return np.r_[super().random(rng, lower, upper)[:3], random_quaternion(rng)]

    def problem(self, q: np.ndarray) -> str | None:
        return quaternion_problem(q[..., 3:7])


def rotation_product(axes: Sequence[Array], q: Array) -> Array:
    R = identity(3, like=q)
    for k, axis in enumerate(axes):
        R = R @ rotation_about(axis, cos(q[k]), sin(q[k]))
    return R


def rotation_columns(axes: Sequence[Array], q: Array) -> Array:
    R = identity(3, like=q)
    found = []
    for k in reversed(range(len(axes))):
        a = axes[k] if is_symbolic(axes[k]) else as_array(axes[k], like=q)
        found.append(R.T @ a)
        R = rotation_about(axes[k], cos(q[k]), sin(q[k])) @ R
    angular = matrix([[column[i] for column in reversed(found)] for i in range(3)])
    S = matrix([[angular], [zeros(3, len(axes), like=q)]])
    return ca.sparsify(S) if is_symbolic(S) else S


_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
_LOCKED = 1e-6  # rad from the singularity: the accelerations then lose half of the digits


@dataclass(frozen=True)
class Gimbal(JointType):
    """Three Euler angles about body axes in `sequence`, such as "zyx" (yaw, pitch, roll) or "zxz".

    Singular where the middle angle makes the outer axes parallel: at +-90 degrees when all letters differ, at
    0 and 180 degrees when the first and last are the same. A spherical joint has no such place.
    """

    kind: ClassVar[str] = "gimbal"
    sequence: str = structural(default="zyx")

    def __post_init__(self) -> None:
        s = self.sequence
        if not isinstance(s, str) or len(s) != 3 or set(s) - set("xyz") or s[0] == s[1] or s[1] == s[2]:
            raise ModelError(
                f"gimbal sequence is {s!r}, expected three of x, y, z, neighbours different ('zyx')"
            )

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        return tuple((f"{letter}{k + 1}", ANGLE) for k, letter in enumerate(self.sequence))

    @property
    def _axes(self) -> list[tuple[float, float, float]]:
        return [_AXES[letter] for letter in self.sequence]

    def placement(self, q: Array) -> Pose:
        return Pose(rotation_product(self._axes, q), zeros(3, like=q))

    def subspace(self, q: Array) -> Array:
        return rotation_columns(self._axes, q)

    def fit(self, X: Pose) -> Array:
        """The middle angle within a quarter turn of 0, or between 0 and half a turn where letters repeat."""
        i, j, last = ("xyz".index(letter) for letter in self.sequence)
        k = 3 - i - j
        e = 1.0 if (j - i) % 3 == 1 else -1.0  # the sign of the permutation (i, j, k)
        R = X.rotation
        if last == i:  # R_ii = c2, R_ji = s1 s2, R_ki = -e c1 s2, R_ij = s2 s3, R_ik = e s2 c3
            middle = atan2(sqrt(R[i, j] ** 2 + R[i, k] ** 2), R[i, i])
            return vector(atan2(R[j, i], -e * R[k, i]), middle, atan2(R[i, j], e * R[i, k]))
        # R_ik = e s2, R_jk = -e s1 c2, R_kk = c1 c2, R_ij = -e c2 s3, R_ii = c2 c3
        middle = atan2(e * R[i, k], sqrt(R[i, i] ** 2 + R[i, j] ** 2))
        return vector(atan2(-e * R[j, k], R[k, k]), middle, atan2(-e * R[i, j], R[i, i]))

    def constraint_subspace(self, q: Array) -> Array:
        """Forces only, in gimbal lock as well."""
        return closure.basis((), closure.AXES, like=q)

    def neutral(self) -> np.ndarray:
        """Zero; for sequences that are singular there, a middle angle of 90 degrees."""
        repeated = self.sequence[0] == self.sequence[2]
        return np.array([0.0, np.pi / 2, 0.0]) if repeated else np.zeros(3)

    def singularity(self, q: np.ndarray) -> str | None:
        repeated = self.sequence[0] == self.sequence[2]
        middle = q[..., 1]
        locked = np.abs(np.sin(middle) if repeated else np.cos(middle)) < _LOCKED
        if not np.any(locked):
            return None
        angle = np.degrees(middle[locked].flat[0])
        return (
            f"gimbal lock: the middle angle of the sequence {self.sequence!r} is {angle:.6g} degrees; "
            "stay away from it or use a spherical joint"
        )


@dataclass(frozen=True)
class Universal(JointType):
    """Hooke's joint: q[0] about `first`, fixed on the parent, then q[1] about `second`, fixed on the body."""

    kind: ClassVar[str] = "universal"
    first: tuple[Scalar, ...] = (1.0, 0.0, 0.0)
    second: tuple[Scalar, ...] = (0.0, 1.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", unit_axis(self.first, "universal first axis"))
        object.__setattr__(self, "second", unit_axis(self.second, "universal second axis"))
        a, b = self.first, self.second
        if not any(isinstance(x, Expression) for x in a + b):
            cosine = float(np.dot(np.array(a, dtype=float), np.array(b, dtype=float)))
            if abs(cosine) > 1 - 1e-12:
                raise ModelError(f"universal axes {a} and {b} are parallel; they must span a plane")

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        return (("first", ANGLE), ("second", ANGLE))

    def placement(self, q: Array) -> Pose:
        return Pose(rotation_product((self.first, self.second), q), zeros(3, like=q))

    def subspace(self, q: Array) -> Array:
        return rotation_columns((self.first, self.second), q)

    def fit(self, X: Pose) -> Array:
        """R b = R(a, q0) b gives the first angle, what is left of R the second."""
        a, b = (closure.direction(axis, like=X.rotation) for axis in (self.first, self.second))
        turned = X.rotation @ b
        first = atan2(dot(a, cross(b, turned)), dot(b, turned) - dot(a, b) * dot(a, turned))
        rest = rotation_about(self.first, cos(first), sin(first)).T @ X.rotation
        return vector(first, closure.angle_about(b, rest))

    def constraint_subspace(self, q: Array) -> Array:
        """All forces, and the moment normal to both axes, which turns with the second angle."""
        a, b = (closure.direction(axis, like=q) for axis in (self.first, self.second))
        normal = rotation_about(self.second, cos(q[1]), sin(q[1])).T @ closure.unit(cross(a, b))
        return closure.basis((normal,), closure.AXES, like=q)
