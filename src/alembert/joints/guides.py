"""Pairs that guide a point: a distance, a plane, a line, a surface or a curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from alembert.errors import ModelError
from alembert.expression import Expression, Scalar, scalar
from alembert.joints import closure
from alembert.joints.joint import unit_axis
from alembert.joints.pair import Pair, register_pair, structural
from alembert.spatial import Pose
from alembert.spatial.arrays import Array, as_array, dot, is_symbolic, matrix, sqrt, vector


@register_pair
@dataclass(frozen=True)
class Distance(Pair):
    """The origins of both frames stay a `distance` apart, like the ends of a rod with ball joints."""

    kind: ClassVar[str] = "distance"
    distance: Scalar

    def __post_init__(self) -> None:
        distance = scalar(self.distance, "distance")
        if not isinstance(distance, Expression) and distance <= 0:
            raise ModelError(
                f"distance is {distance}, expected a positive length; Spherical() joins two points"
            )
        object.__setattr__(self, "distance", distance)

    @property
    def holonomic(self) -> tuple[bool, ...]:
        return (True,)

    def residual(self, X: Pose) -> Array:
        p = X.translation
        return vector(sqrt(dot(p, p)) - self.distance)

    def rows(self, X: Pose) -> Array:
        return _forces([X.rotation.T @ closure.unit(X.translation)])


@register_pair
@dataclass(frozen=True)
class PointOnPlane(Pair):
    """The origin of frame b stays on the plane of frame a that has the `normal` and is `offset` from a's origin."""

    kind: ClassVar[str] = "point_on_plane"
    normal: tuple[Scalar, ...] = (0.0, 0.0, 1.0)
    offset: Scalar = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "normal", unit_axis(self.normal, "plane normal"))
        object.__setattr__(self, "offset", scalar(self.offset, "plane offset"))

    @property
    def holonomic(self) -> tuple[bool, ...]:
        return (True,)

    def sliding_point(self, X: Pose) -> Array | None:
        return np.zeros(3)

    def residual(self, X: Pose) -> Array:
        n = closure.direction(self.normal, like=X.rotation)
        return vector(dot(n, X.translation) - self.offset)

    def rows(self, X: Pose) -> Array:
        return _forces([X.rotation.T @ closure.direction(self.normal, like=X.rotation)])


@register_pair
@dataclass(frozen=True)
class PointOnLine(Pair):
    """The origin of frame b stays on the line through a's origin along `axis` of frame a."""

    kind: ClassVar[str] = "point_on_line"
    axis: tuple[Scalar, ...] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis, "line axis"))

    @property
    def holonomic(self) -> tuple[bool, ...]:
        return (True, True)

    def sliding_point(self, X: Pose) -> Array | None:
        return np.zeros(3)

    def residual(self, X: Pose) -> Array:
        across = closure.across(closure.direction(self.axis, like=X.rotation))
        return vector(*(dot(b, X.translation) for b in across))

    def rows(self, X: Pose) -> Array:
        across = closure.across(closure.direction(self.axis, like=X.rotation))
        return _forces([X.rotation.T @ b for b in across])


@dataclass(frozen=True)
class _Implicit(Pair):
    """Formulas of x, y and z, the origin of frame b in frame a, that are to vanish."""

    def formulas(self) -> tuple[str, ...]:
        raise NotImplementedError

    @property
    def holonomic(self) -> tuple[bool, ...]:
        return (True,) * len(self.formulas())

    def sliding_point(self, X: Pose) -> Array | None:
        return np.zeros(3)

    def residual(self, X: Pose) -> Array:
        return self._evaluated(X.translation, X.rotation)[0]

    def rows(self, X: Pose) -> Array:
        return self._evaluated(X.translation, X.rotation)[1]

    def _evaluated(self, p: Array, R: Array) -> tuple[Array, Array]:
        at = ca.SX.sym("p", 3)
        found = ca.vertcat(
            *(
                ca.SX(Expression(x).evaluate(dict(zip("xyz", ca.vertsplit(at), strict=True))))
                for x in self.formulas()
            )
        )
        slope = ca.jacobian(found, at)
        if is_symbolic(p, R):
            found, slope = ca.substitute([found, slope], [at], [ca.densify(as_array(p, like=at))])
            return found, ca.horzcat(ca.SX(slope.shape[0], 3), slope @ R)
        values = ca.Function("f", [at], [found, ca.densify(slope)])(p)
        return np.asarray(values[0]).ravel(), np.hstack(
            [np.zeros(values[1].shape), np.asarray(values[1]) @ R]
        )


@register_pair
@dataclass(frozen=True)
class PointOnSurface(_Implicit):
    """The origin (x, y, z) of frame b in frame a satisfies `equation` = 0, such as "z - 0.1 * x**2"."""

    kind: ClassVar[str] = "point_on_surface"
    equation: str = structural()

    def __post_init__(self) -> None:
        object.__setattr__(self, "equation", _formula(self.equation, "surface equation"))

    def formulas(self) -> tuple[str, ...]:
        return (self.equation,)


@register_pair
@dataclass(frozen=True)
class PointOnCurve(_Implicit):
    """The origin (x, y, z) of frame b in frame a satisfies two equations: a curve as the cut of two surfaces."""

    kind: ClassVar[str] = "point_on_curve"
    equations: tuple[str, ...] = structural()

    def __post_init__(self) -> None:
        given = (self.equations,) if isinstance(self.equations, str) else tuple(self.equations)
        if len(given) != 2:
            raise ModelError(f"curve has {len(given)} equations, expected 2 (PointOnSurface takes one)")
        object.__setattr__(self, "equations", tuple(_formula(x, "curve equation") for x in given))

    def formulas(self) -> tuple[str, ...]:
        return self.equations


def _formula(text: Any, what: str) -> str:
    expression = text if isinstance(text, Expression) else Expression(text)
    for name in sorted(expression.names - {"x", "y", "z"}):
        raise ModelError(
            f"{what} {expression.text[:80]!r} has {name!r}; it may hold x, y and z, the point in frame a"
        )
    if not expression.names:
        raise ModelError(f"{what} {expression.text[:80]!r} does not depend on x, y or z")
    return expression.text


def _forces(directions: list[Array]) -> Array:
    """Rows of pure forces along directions in b axes."""
    rows = matrix([[0.0, 0.0, 0.0, *(d[k] for k in range(3))] for d in directions])
    return ca.sparsify(rows) if is_symbolic(rows) else rows
