"""Where a frame sits on a body: a translation and a unit quaternion, numbers or expressions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import casadi as ca
import numpy as np

from alembert.errors import ModelError
from alembert.expression import Expression, Scalar, evaluate, names_in, scalars
from alembert.joints.joint import ROUNDING
from alembert.spatial import Pose, quaternion


@dataclass(frozen=True)
class Placement:
    """`X_AB`: the origin of B in A and the rotation from B to A axes (quaternion w, x, y, z)."""

    translation: tuple[Scalar, ...] = (0.0, 0.0, 0.0)
    quaternion: tuple[Scalar, ...] = (1.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "translation", scalars(self.translation, 3, "translation"))
        q_wxyz = scalars(self.quaternion, 4, "quaternion")
        if not any(isinstance(entry, Expression) for entry in q_wxyz):
            length = math.hypot(*q_wxyz)  # type: ignore[arg-type]
            if abs(length - 1) > 1e-4:
                raise ModelError(f"quaternion (w, x, y, z) {q_wxyz} has length {length:.6g}, expected 1")
            if abs(length - 1) > ROUNDING:
                q_wxyz = tuple(entry / length for entry in q_wxyz)
        object.__setattr__(self, "quaternion", q_wxyz)

    @classmethod
    def from_rpy(cls, rpy: Any, translation: Any = (0.0, 0.0, 0.0)) -> Placement:
        """Roll, pitch, yaw about fixed axes x, y, z: R = Rz(yaw) Ry(pitch) Rx(roll), as in URDF."""
        r, p, y = scalars(rpy, 3, "rpy")
        (cr, sr), (cp, sp), (cy, sy) = (_half_angle(angle) for angle in (r, p, y))
        return cls(
            translation,
            (
                cr * cp * cy + sr * sp * sy,
                sr * cp * cy - cr * sp * sy,
                cr * sp * cy + sr * cp * sy,
                cr * cp * sy - sr * sp * cy,
            ),
        )

    @classmethod
    def from_rotation_vector(cls, w: Any, translation: Any = (0.0, 0.0, 0.0)) -> Placement:
        entries = scalars(w, 3, "rotation vector")
        if any(isinstance(entry, Expression) for entry in entries):
            raise ModelError(f"rotation vector {w} depends on parameters, expected numbers; use from_rpy")
        return cls(translation, tuple(quaternion.exp(np.asarray(entries, dtype=float))))

    @classmethod
    def from_pose(cls, X: Pose) -> Placement:
        return cls(tuple(X.translation), tuple(quaternion.from_matrix(rotation_matrix(X.rotation))))

    @classmethod
    def from_matrix(cls, R: Any, translation: Any = (0.0, 0.0, 0.0)) -> Placement:
        return cls(translation, tuple(quaternion.from_matrix(rotation_matrix(R))))

    @property
    def is_identity(self) -> bool:
        return self == Placement()

    def pose(self, values: Mapping[str, Any] | None = None) -> Pose:
        """The pose in floats, with `values` for the parameters."""
        p = np.array([float(evaluate(entry, values or {})) for entry in self.translation])
        q_wxyz = np.array([float(evaluate(entry, values or {})) for entry in self.quaternion])
        return Pose(snap(quaternion.to_matrix(q_wxyz)), p)

    def symbolic_pose(self, values: Mapping[str, Any]) -> Pose:
        """The pose as `SX`, with `SX` symbols for the parameters; exact zeros stay structural."""
        p = ca.vertcat(*(ca.SX(evaluate(entry, values)) for entry in self.translation))
        if any(isinstance(entry, Expression) for entry in self.quaternion):
            R = quaternion.to_matrix(ca.vertcat(*(ca.SX(evaluate(e, values)) for e in self.quaternion)))
        else:
            R = ca.SX(ca.sparsify(ca.DM(self.pose().rotation if not values else self._numeric_rotation())))
        return Pose(R, ca.sparsify(p))

    def _numeric_rotation(self) -> np.ndarray:
        return snap(quaternion.to_matrix(np.array(self.quaternion, dtype=float)))

    def compose(self, other: Any) -> Any:
        """X_AC = X_AB X_BC; expressions are carried along."""
        if isinstance(other, PlacementProduct):
            return PlacementProduct((self @ other.parts[0], *other.parts[1:]))
        R = _rotate(self.quaternion)
        moved = tuple(
            plus(self.translation[i], _total(_times(R[i][j], other.translation[j]) for j in range(3)))
            for i in range(3)
        )
        return Placement(moved, _multiply(self.quaternion, other.quaternion))

    __matmul__ = compose

    def inverse(self) -> Placement:
        w, x, y, z = self.quaternion
        turned = (w, _negative(x), _negative(y), _negative(z))
        R = _rotate(turned)
        moved = tuple(
            _negative(_total(_times(R[i][j], self.translation[j]) for j in range(3))) for i in range(3)
        )
        return Placement(moved, turned)


@dataclass(frozen=True)
class PlacementProduct:
    """X_AB X_BC ..., multiplied when it is evaluated: as text, products of rotations that are expressions nest."""

    parts: tuple[Placement, ...]

    def __matmul__(self, other: Placement | PlacementProduct) -> PlacementProduct:
        more = other.parts if isinstance(other, PlacementProduct) else (other,)
        return PlacementProduct(self.parts + tuple(part for part in more if not part.is_identity))

    def pose(self, values: Mapping[str, Any] | None = None) -> Pose:
        return reduce(Pose.compose, (part.pose(values) for part in self.parts))

    def symbolic_pose(self, values: Mapping[str, Any]) -> Pose:
        return reduce(Pose.compose, (part.symbolic_pose(values) for part in self.parts))


def factored(placement: Placement) -> Placement | PlacementProduct:
    """A placement that others may be composed with any number of times."""
    return PlacementProduct((placement,)) if names_in(placement.quaternion) else placement


def rotation_matrix(R: Any) -> np.ndarray:
    """`R` as floats, refused unless it is a rotation to 1e-6 (its quaternion then is exact)."""
    try:
        value = np.asarray(R, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"not a rotation matrix: {R!r}") from None
    if (
        value.shape != (3, 3)
        or not np.allclose(value @ value.T, np.eye(3), atol=1e-6)
        or np.linalg.det(value) < 0
    ):
        raise ModelError(f"not a rotation matrix:\n{value}")
    return value


def snap(R: np.ndarray) -> np.ndarray:
    """Entries that are 0 or +-1 up to the rounding of the quaternion product become exactly so."""
    nearest = np.round(R)
    return np.where(np.abs(R - nearest) < 5e-16, nearest + 0.0, R)


def _half_angle(angle: Scalar) -> tuple[Scalar, Scalar]:
    if isinstance(angle, Expression):
        return Expression(f"cos(({angle}) / 2)"), Expression(f"sin(({angle}) / 2)")
    return math.cos(angle / 2), math.sin(angle / 2)


def _times(a: Scalar, b: Scalar) -> Scalar:
    if a == 0.0 or b == 0.0:
        return 0.0
    if a == 1.0:
        return b
    return a if b == 1.0 else a * b


def plus(a: Scalar, b: Scalar) -> Scalar:
    if a == 0.0:
        return b
    return a if b == 0.0 else a + b


def _negative(a: Scalar) -> Scalar:
    return 0.0 if a == 0.0 else -a


def _total(terms: Any) -> Scalar:
    result: Scalar = 0.0
    for term in terms:
        result = plus(result, term)
    return result


def _multiply(a: tuple[Scalar, ...], b: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    signs = (
        ((0, 0, 1), (1, 1, -1), (2, 2, -1), (3, 3, -1)),
        ((0, 1, 1), (1, 0, 1), (2, 3, 1), (3, 2, -1)),
        ((0, 2, 1), (2, 0, 1), (3, 1, 1), (1, 3, -1)),
        ((0, 3, 1), (3, 0, 1), (1, 2, 1), (2, 1, -1)),
    )
    return tuple(
        _total(_times(a[i], b[j]) if sign > 0 else _negative(_times(a[i], b[j])) for i, j, sign in row)
        for row in signs
    )


def _rotate(q_wxyz: tuple[Scalar, ...]) -> Any:
    if not any(isinstance(entry, Expression) for entry in q_wxyz):
        return [[float(x) for x in row] for row in snap(quaternion.to_matrix(np.array(q_wxyz, dtype=float)))]
    w, x, y, z = q_wxyz
    double = lambda a, b: _times(2.0, _times(a, b))  # noqa: E731
    one_minus = lambda a, b: plus(1.0, _negative(plus(double(a, a), double(b, b))))  # noqa: E731
    return [
        [one_minus(y, z), plus(double(x, y), _negative(double(w, z))), plus(double(x, z), double(w, y))],
        [plus(double(x, y), double(w, z)), one_minus(x, z), plus(double(y, z), _negative(double(w, x)))],
        [plus(double(x, z), _negative(double(w, y))), plus(double(y, z), double(w, x)), one_minus(x, y)],
    ]
