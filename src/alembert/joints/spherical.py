from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from alembert.joints import closure
from alembert.joints.joint import ANGLE, JointType, register
from alembert.spatial import Pose, quaternion
from alembert.spatial.arrays import Array, as_array, identity, matrix, vector, zeros

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


@register
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
