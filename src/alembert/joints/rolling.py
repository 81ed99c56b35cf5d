"""Pairs that roll or glide: rows on the speeds that are not derivatives of anything (nonholonomic)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import casadi as ca

from alembert.errors import ModelError
from alembert.expression import Expression, Scalar, scalar, scalars
from alembert.joints import closure
from alembert.joints.joint import unit_axis
from alembert.joints.pair import Pair, register_pair
from alembert.spatial import Pose
from alembert.spatial.arrays import Array, as_array, cross, dot, is_symbolic, matrix, sqrt, vector, zeros


@register_pair
@dataclass(frozen=True)
class RollingSphere(Pair):
    """A ball of the `radius` around the origin of frame b rolls on the x-y plane of frame a, on the side of +z.

    With n the plane's normal in b axes and s = -radius n the point of contact,

        phi = (z - radius, 0, 0),   n . (v + w x s) = 0,   t_k . (v + w x s) = 0,  t_1, t_2 tangent to the plane   (1)

    It may spin about the normal.
    """

    kind: ClassVar[str] = "rolling_sphere"
    radius: Scalar

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", _radius(self.radius, "sphere"))

    @property
    def holonomic(self) -> tuple[bool, ...]:
        return (True, False, False)

    def residual(self, X: Pose) -> Array:
        return vector(X.translation[2] - self.radius, zeros(2, like=X.translation))

    def rows(self, X: Pose) -> Array:
        t, u, n = (_axis_of_a(X, k) for k in range(3))
        return _at_point(-self.radius * n, (n, t, u))


@register_pair
@dataclass(frozen=True)
class RollingDisc(Pair):
    """A thin disc of the `radius` about `axis` through the origin of frame b rolls on the x-y plane of frame a.

    As a rolling sphere, with the lowest point of the rim: for c = n . axis and d = (n - c axis) / sqrt(1 - c^2)

        s = -radius d,   phi = (z - radius sqrt(1 - c^2), 0, 0)                                               (2)

    The rows of the speeds are: normal, along the track, across it. A disc that lies flat has no lowest point.
    """

    kind: ClassVar[str] = "rolling_disc"
    radius: Scalar
    axis: tuple[Scalar, ...] = (0.0, 1.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", _radius(self.radius, "disc"))
        object.__setattr__(self, "axis", unit_axis(self.axis, "disc axis"))

    @property
    def holonomic(self) -> tuple[bool, ...]:
        return (True, False, False)

    def residual(self, X: Pose) -> Array:
        _, sine, _ = self._tilt(X)
        return vector(X.translation[2] - self.radius * sine, zeros(2, like=X.translation))

    def rows(self, X: Pose) -> Array:
        n, sine, d = self._tilt(X)
        track = cross(closure.direction(self.axis, like=X.rotation), n) / sine
        return _at_point(-self.radius * d, (n, track, cross(n, track)))

    def _tilt(self, X: Pose) -> tuple[Array, Array, Array]:
        n, axis = _axis_of_a(X, 2), closure.direction(self.axis, like=X.rotation)
        c = dot(n, axis)
        across = n - c * axis
        sine = sqrt(dot(across, across))
        return n, sine, across / sine


@register_pair
@dataclass(frozen=True)
class Skate(Pair):
    """The origin of frame b does not move, relative to frame a, along a `direction` fixed in b: a blade or a wheel."""

    kind: ClassVar[str] = "skate"
    direction: tuple[Scalar, ...] = (0.0, 1.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "direction", unit_axis(self.direction, "skate direction"))

    @property
    def holonomic(self) -> tuple[bool, ...]:
        return (False,)

    def residual(self, X: Pose) -> Array:
        return zeros(1, like=X.translation)

    def rows(self, X: Pose) -> Array:
        d = closure.direction(self.direction, like=X.rotation)
        return _sparse(matrix([[0.0, 0.0, 0.0, *(d[k] for k in range(3))]]), X)


def _radius(value: Scalar, what: str) -> Scalar:
    radius = scalars((value,), 1, f"radius of the rolling {what}")[0]
    if not isinstance(radius, Expression) and radius <= 0:
        raise ModelError(f"radius of the rolling {what} is {radius}, expected a positive length")
    return scalar(radius, "radius")


def _axis_of_a(X: Pose, k: int) -> Array:
    """a's axis k in b axes."""
    return vector(*(X.rotation[k, i] for i in range(3)))


def _at_point(s: Array, directions: tuple[Array, ...]) -> Array:
    """Rows e . (v + w x s) = (s x e) . w + e . v."""
    rows = []
    for e in directions:
        m = cross(s, e)
        rows.append([*(m[k] for k in range(3)), *(e[k] for k in range(3))])
    return matrix(rows)


def _sparse(rows: Array, X: Pose) -> Array:
    return ca.sparsify(as_array(rows, like=X.rotation)) if is_symbolic(X.rotation) else rows
