"""Pairs that guide a point along a line or over a surface, surfaces that touch, and pairs that roll or glide.

Distance, plane and line have constants; a surface or a curve is given by equations of the point, or by functions of
parameters: c(u), u of one or two entries. For a point p its parameters are then those of the nearest point,

    u:  J^T (p - c(u)) = 0,      J = dc/du                                                          (1)

found by Gauss and Newton's method, u <- u + (J^T J)^-1 J^T (p - c), from the nearest of some samples; on the curve itself
it converges quadratically, and its derivatives with respect to p with it. With N(u) an orthonormal basis of what is normal
to J,

    phi = N^T (p - c),     rows = N^T    (forces normal to the curve or surface)                    (2)

Two surfaces that touch (wheel and rail, cam and follower, a ball in a groove) are a(u, w) in frame a and b(s, t) in frame
b, with tangents A = da/d(u, w) and B = db/d(s, t). With the pose (R, p) of b in a, and n the normal of a, they touch at the
parameters for which

    A^T d = 0,    (R B)^T n = 0,        d = p + R b - a                                             (3)

found by Newton's method from the nearest points: of a to the origin of b, then of b to that point. There

    phi = n . d,      rows = (b x R^T n, R^T n)      (a force along the normal, at the point of contact)    (4)

The parameters move as well, but do not change phi: by (3), and since d is along n where it does not vanish.


Rolling and gliding give rows on the speeds that are not derivatives of anything (nonholonomic).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from alembert.errors import ModelError
from alembert.expression import Expression, Scalar, scalar, scalars
from alembert.joints import closure
from alembert.joints.joint import unit_axis
from alembert.joints.pair import Pair, register_pair, structural
from alembert.spatial import Pose
from alembert.spatial.arrays import Array, as_array, cross, dot, is_symbolic, matrix, sqrt, vector, zeros


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


STEPS = 8
"""of (1): from the nearest sample five reach rounding, where neighbours are some 0.2 radii of curvature apart"""


@dataclass(frozen=True)
class _Parametric(Pair):
    """c(u), with ranges for the samples."""

    letters: ClassVar[tuple[str, ...]]

    def formulas(self) -> tuple[str, ...]:
        raise NotImplementedError

    def grid(self) -> list[tuple[float, ...]]:
        raise NotImplementedError

    @property
    def holonomic(self) -> tuple[bool, ...]:
        return (True,) * (3 - len(self.letters))

    def sliding_point(self, X: Pose) -> Array | None:
        return np.zeros(3)

    def residual(self, X: Pose) -> Array:
        return self._evaluated(X)[0]

    def rows(self, X: Pose) -> Array:
        return self._evaluated(X)[1]

    def _evaluated(self, X: Pose) -> tuple[Array, Array]:
        """(2)"""
        if not is_symbolic(X.rotation, X.translation):
            found = _numeric(self)(X.rotation, X.translation)
            return np.asarray(found[0]).ravel(), np.asarray(found[1])
        p = ca.SX(ca.densify(as_array(X.translation, like=ca.SX(0))))
        c, J = self.at(self.nearest(p))
        normals = _normals(J)
        off = p - c
        R = X.rotation
        return ca.vertcat(*(ca.dot(n, off) for n in normals)), _forces([R.T @ n for n in normals])

    def nearest(self, p: ca.SX, steps: int = STEPS) -> ca.SX:
        """(1)"""
        least, u = ca.SX(ca.inf), ca.SX(len(self.letters), 1)
        for sample in self.grid():
            d = p - ca.DM(self.at(ca.SX(ca.DM(sample)))[0])
            squared = ca.dot(d, d)
            u = ca.if_else(squared < least, ca.SX(ca.DM(sample)), u)
            least = ca.fmin(least, squared)
        for _ in range(steps):
            c, J = self.at(u)
            u = u + ca.solve(J.T @ J, J.T @ (p - c))
        return u

    def at(self, u: ca.SX) -> tuple[ca.SX, ca.SX]:
        c, J = _curve(self)(u)
        return c, J


@cache
def _curve(pair: _Parametric) -> ca.Function:
    """u -> c, J"""
    u = ca.SX.sym("u", len(pair.letters))
    known = dict(zip(pair.letters, ca.vertsplit(u), strict=True))
    c = ca.vertcat(*(ca.SX(Expression(text).evaluate(known)) for text in pair.formulas()))
    return ca.Function("curve", [u], [c, ca.densify(ca.jacobian(c, u))])


@cache
def _numeric(pair: _Parametric) -> ca.Function:
    R, p = ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3)
    found = pair._evaluated(Pose(R, p))
    return ca.Function("pair", [R, p], [ca.densify(x) for x in found])


def _normals(J: ca.SX) -> tuple[ca.SX, ...]:
    if J.shape[1] == 1:
        return closure.across(J / ca.norm_2(J))
    normal = ca.cross(J[:, 0], J[:, 1])
    return (normal / ca.norm_2(normal),)


@register_pair
@dataclass(frozen=True)
class PointOnParametricCurve(_Parametric):
    """The origin of frame b stays on the curve (x(s), y(s), z(s)) of frame a.

    `coordinates` are three formulas of s. The nearest of `samples` points between `start` and `end` tells which part of the
    curve is meant (where it comes close to itself, the nearer one); the curve goes on beyond both ends as its formulas do.
    """

    kind: ClassVar[str] = "point_on_parametric_curve"
    letters: ClassVar[tuple[str, ...]] = ("s",)
    coordinates: tuple[str, ...] = structural()
    start: float = structural(default=-math.pi)
    end: float = structural(default=math.pi)
    samples: int = structural(default=32)

    def __post_init__(self) -> None:
        _check(self, "curve", ("start", "end"))

    def formulas(self) -> tuple[str, ...]:
        return self.coordinates

    def grid(self) -> list[tuple[float, ...]]:
        return [(float(s),) for s in np.linspace(self.start, self.end, self.samples)]


@register_pair
@dataclass(frozen=True)
class PointOnParametricSurface(_Parametric):
    """The origin of frame b stays on the surface (x(u, w), y(u, w), z(u, w)) of frame a.

    `coordinates` are three formulas of u and w, `start` and `end` the corners of the part that is sampled, `samples` along
    each of them; the surface goes on beyond it as its formulas do.
    """

    kind: ClassVar[str] = "point_on_parametric_surface"
    letters: ClassVar[tuple[str, ...]] = ("u", "w")
    coordinates: tuple[str, ...] = structural()
    start: tuple[float, ...] = structural(default=(-math.pi, -math.pi))
    end: tuple[float, ...] = structural(default=(math.pi, math.pi))
    samples: int = structural(default=12)

    def __post_init__(self) -> None:
        _check(self, "surface", ("start", "end"))

    def formulas(self) -> tuple[str, ...]:
        return self.coordinates

    def grid(self) -> list[tuple[float, ...]]:
        axes = [np.linspace(a, b, self.samples) for a, b in zip(self.start, self.end, strict=True)]
        return [tuple(map(float, point)) for point in itertools.product(*axes)]


def _check(pair: Any, what: str, ends: Sequence[str]) -> None:
    count = len(pair.letters)
    listed = " and ".join(pair.letters)
    given = (pair.coordinates,) if isinstance(pair.coordinates, str) else tuple(pair.coordinates)
    if len(given) != 3:
        raise ModelError(
            f"parametric {what} has {len(given)} formulas, expected x, y and z as functions of {listed}"
        )
    texts = []
    for formula in given:
        expression = Expression(formula.text if isinstance(formula, Expression) else str(formula))
        for name in sorted(expression.names - set(pair.letters)):
            raise ModelError(
                f"parametric {what}: {expression.text[:80]!r} has {name!r}; it may hold {listed} alone"
            )
        texts.append(expression.text)
    object.__setattr__(pair, "coordinates", tuple(texts))
    numbers = []
    for name in ends:
        value = getattr(pair, name)
        entries = tuple(value) if isinstance(value, tuple | list) else (value,)
        if len(entries) != count or not all(math.isfinite(float(x)) for x in entries):
            raise ModelError(f"parametric {what}: {name} is {value!r}, expected {count} finite number(s)")
        numbers.append([float(x) for x in entries])
        object.__setattr__(pair, name, numbers[-1][0] if count == 1 else tuple(numbers[-1]))
    if not all(a < b for a, b in zip(*numbers, strict=True)):
        raise ModelError(f"parametric {what}: start {pair.start!r} is not below end {pair.end!r}")
    if not (isinstance(pair.samples, int) and 2 <= pair.samples <= 1000):
        raise ModelError(
            f"parametric {what}: samples is {pair.samples!r}, expected a whole number from 2 to 1000"
        )
    middle = ca.SX(ca.DM([(a + b) / 2 + 0.123 * (b - a) for a, b in zip(*numbers, strict=True)]))
    J = np.asarray(ca.DM(_curve(pair)(middle)[1]))
    if np.linalg.matrix_rank(J) < count:
        raise ModelError(f"parametric {what}: its formulas do not depend on {listed} (each in its own way)")


NEAR, TOUCHING = 2, 6
"""steps to the nearest points, and of Newton's method for (3): five reach rounding from within 0.3 radii of curvature"""
_CORNERS = ((-math.pi, -math.pi), (math.pi, math.pi))


@register_pair
@dataclass(frozen=True)
class TouchingSurfaces(Pair):
    """The surface (x, y, z)(u, w) of frame b touches that of frame a; the force is along their common normal.

    `surface_a` and `surface_b` are three formulas of u and w each, `start_*` and `end_*` the corners of the part that is
    sampled, `samples` along each of them; surfaces go on beyond it as their formulas do. One row; they slide freely.
    """

    kind: ClassVar[str] = "touching_surfaces"
    surface_a: tuple[str, ...] = structural()
    surface_b: tuple[str, ...] = structural()
    start_a: tuple[float, ...] = structural(default=_CORNERS[0])
    end_a: tuple[float, ...] = structural(default=_CORNERS[1])
    start_b: tuple[float, ...] = structural(default=_CORNERS[0])
    end_b: tuple[float, ...] = structural(default=_CORNERS[1])
    samples: int = structural(default=12)

    def __post_init__(self) -> None:
        for side in "ab":
            surface = self._surface(side)
            object.__setattr__(self, f"surface_{side}", surface.coordinates)
            object.__setattr__(self, f"start_{side}", surface.start)
            object.__setattr__(self, f"end_{side}", surface.end)

    def _surface(self, side: str) -> PointOnParametricSurface:
        formulas, start, end = (getattr(self, f"{what}_{side}") for what in ("surface", "start", "end"))
        return PointOnParametricSurface(formulas, start, end, self.samples)

    @property
    def holonomic(self) -> tuple[bool, ...]:
        return (True,)

    def residual(self, X: Pose) -> Array:
        return self._evaluated(X)[0]

    def rows(self, X: Pose) -> Array:
        return self._evaluated(X)[1]

    def contact(self, X: Pose) -> Array:
        """The point of contact in b axes, and the normal of a there in a axes, (6,)."""
        return self._evaluated(X)[2]

    def sliding_point(self, X: Pose) -> Array | None:
        return self.contact(X)[:3]

    def _evaluated(self, X: Pose) -> tuple[Array, Array, Array]:
        """(4), and `contact`."""
        R, p = X.rotation, X.translation
        if is_symbolic(R, p):
            like = ca.SX(0)
            R, p = ca.densify(as_array(R, like=like)), ca.densify(as_array(p, like=like))
            phi, rows, where = _touching(self)(R, p)
            return phi, rows, where
        phi, rows, where = (np.asarray(x) for x in _touching(self)(R, p))
        return phi.ravel(), rows, where.ravel()


@cache
def _touching(pair: TouchingSurfaces) -> Any:
    """(R, p) -> phi, rows, contact"""
    R, p = ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3)
    a, b = pair._surface("a"), pair._surface("b")
    near = a.nearest(p, NEAR)
    far = b.nearest(R.T @ (a.at(near)[0] - p), NEAR)
    step = _newton(pair)
    x = ca.vertcat(near, far)
    for _ in range(TOUCHING):
        x = step(x, R, p)
    (c_a, A), (c_b, _) = a.at(x[:2]), b.at(x[2:])
    n = ca.cross(A[:, 0], A[:, 1])
    n = n / ca.norm_2(n)
    force = R.T @ n
    rows = ca.horzcat(ca.cross(c_b, force).T, force.T)
    outputs = [ca.dot(n, p + R @ c_b - c_a), rows, ca.vertcat(c_b, n)]
    return ca.Function("touching", [R, p], [ca.densify(x) for x in outputs])


@cache
def _newton(pair: TouchingSurfaces) -> Any:
    """One step of (3)."""
    x, R, p = ca.SX.sym("x", 4), ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3)
    (c_a, A), (c_b, B) = pair._surface("a").at(x[:2]), pair._surface("b").at(x[2:])
    n = ca.cross(A[:, 0], A[:, 1])
    F = ca.vertcat(A.T @ (p + R @ c_b - c_a), (R @ B).T @ n)
    return ca.Function("step", [x, R, p], [x - ca.solve(ca.jacobian(F, x), F)])


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
