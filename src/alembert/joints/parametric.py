"""Pairs that guide a point along a curve or over a surface given by functions of parameters.

The curve or surface is c(u), u of one or two entries. For a point p its parameters are those of the nearest point,

    u:  J^T (p - c(u)) = 0,      J = dc/du                                                          (1)

found by Gauss and Newton's method, u <- u + (J^T J)^-1 J^T (p - c), from the nearest of some samples; on the curve itself
it converges quadratically, and its derivatives with respect to p with it. With N(u) an orthonormal basis of what is normal
to J,

    phi = N^T (p - c),     rows = N^T    (forces normal to the curve or surface)                    (2)
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
from alembert.expression import Expression
from alembert.joints import closure
from alembert.joints.guides import _forces
from alembert.joints.pair import Pair, register_pair, structural
from alembert.spatial import Pose
from alembert.spatial.arrays import Array, as_array, is_symbolic

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
