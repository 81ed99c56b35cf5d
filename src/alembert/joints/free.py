"""Joints that leave the orientation free, as a unit quaternion: spherical and free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from alembert.joints import closure
from alembert.joints.joint import ANGLE, LENGTH, JointType, Translation
from alembert.spatial import Pose, quaternion, se3, series, so3
from alembert.spatial.arrays import Array, as_array, cross, dot, identity, matrix, vector, zeros

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


def _turned_near(q_wxyz: Array, w: Array) -> Array:
    """q exp(w) to second order in w."""
    return quaternion.multiply(q_wxyz, vector(1 - dot(w, w) / 8, w / 2))


def _turn_near(q0_wxyz: Array, q1_wxyz: Array) -> Array:
    """The rotation vector from q0 to q1, to second order in it."""
    return 2 * quaternion.multiply(quaternion.conjugate(q0_wxyz), q1_wxyz)[1:4]


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

    def chart_rate(self, e: Array, v: Array) -> Array:
        return so3.left_jacobian_inverse_times(-e, v)

    def integrate_near(self, q: Array, dv: Array) -> Array:
        return _turned_near(q, dv)

    def difference_near(self, q0: Array, q1: Array) -> Array:
        return _turn_near(q0, q1)

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
        return vector(w, so3.left_jacobian_inverse_times(w, moved))

    def chart_rate(self, e: Array, v: Array) -> Array:
        return se3.chart_rate(e, v)

    def integrate_near(self, q: Array, dv: Array) -> Array:
        w, u = dv[0:3], dv[3:6]
        return vector(q[0:3] + quaternion.rotate(q[3:7], u + cross(w, u) / 2), _turned_near(q[3:7], w))

    def difference_near(self, q0: Array, q1: Array) -> Array:
        w = _turn_near(q0[3:7], q1[3:7])
        moved = quaternion.to_matrix(q0[3:7]).T @ (q1[0:3] - q0[0:3])
        return vector(w, moved - cross(w, moved) / 2)

    def neutral(self) -> np.ndarray:
        return np.r_[0.0, 0.0, 0.0, quaternion.identity()]

    def random(self, rng: np.random.Generator, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        return np.r_[super().random(rng, lower, upper)[:3], random_quaternion(rng)]

    def problem(self, q: np.ndarray) -> str | None:
        return quaternion_problem(q[..., 3:7])
