"""The inertia of a body: mass, centre of mass, and the tensor about it in body axes.

Helpers give the inertias of simple shapes; `+` joins two bodies in the same frame, `at` moves one to another
frame. All work on numbers and on expressions of parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.errors import ModelError
from alembert.expression import Expression, Scalar, evaluate, scalar, scalars
from alembert.joints.joint import unit_axis
from alembert.model.placement import Placement, _negative, _rotate, _times, _total, plus

TRIANGLE_TOLERANCE = 1e-4
"""How far the triangle inequality may be missed, relative to the largest moment: written digits."""

NOISE = 1e-12  # m^2: moments of this size per unit mass are rounding, not shape
_INDEX = ((0, 1, 3), (1, 2, 4), (3, 4, 5))  # position of (i, j) in (Ixx, Ixy, Iyy, Ixz, Iyz, Izz)


@dataclass(frozen=True)
class Inertia:
    """`tensor` is (Ixx, Ixy, Iyy, Ixz, Iyz, Izz) about the centre of mass, in body axes."""

    mass: Scalar = 0.0
    com: tuple[Scalar, ...] = (0.0, 0.0, 0.0)
    tensor: tuple[Scalar, ...] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mass", scalar(self.mass, "mass"))
        object.__setattr__(self, "com", scalars(self.com, 3, "centre of mass"))
        if np.shape(np.asarray(self.tensor, dtype=object)) == (3, 3):
            raise ModelError(
                "inertia tensor is a 3 x 3 matrix, expected (Ixx, Ixy, Iyy, Ixz, Iyz, Izz); "
                "Inertia.from_matrix takes matrices"
            )
        object.__setattr__(self, "tensor", scalars(self.tensor, 6, "inertia tensor"))

    @classmethod
    def point(cls, mass: Scalar, position: Any = (0.0, 0.0, 0.0)) -> Inertia:
        return cls(mass, position)

    @classmethod
    def rod(cls, mass: Scalar, start: Any, end: Any) -> Inertia:
        """A thin uniform rod between two points."""
        a, b = scalars(start, 3, "rod start"), scalars(end, 3, "rod end")
        d = [plus(b[k], _negative(a[k])) for k in range(3)]
        middle = tuple(_times(0.5, plus(a[k], b[k])) for k in range(3))
        square = _total(_times(x, x) for x in d)
        twelfth = scalar(mass, "mass") / 12
        entries = []
        for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)):
            outer = _negative(_times(d[i], d[j]))
            entries.append(_times(twelfth, plus(square, outer) if i == j else outer))
        return cls(mass, middle, tuple(entries))

    @classmethod
    def box(cls, mass: Scalar, size: Any, center: Any = (0.0, 0.0, 0.0)) -> Inertia:
        """A uniform cuboid with edges along the body axes."""
        x, y, z = (_times(edge, edge) for edge in _lengths(size, 3, "box size"))
        m = scalar(mass, "mass") / 12
        return cls(mass, center, (m * (y + z), 0.0, m * (x + z), 0.0, 0.0, m * (x + y)))

    @classmethod
    def cylinder(
        cls,
        mass: Scalar,
        radius: Scalar,
        length: Scalar,
        axis: Any = (0.0, 0.0, 1.0),
        center: Any = (0.0, 0.0, 0.0),
    ) -> Inertia:
        """A uniform solid cylinder; a disc when short."""
        mass, radius, length = scalar(mass, "mass"), _length(radius, "radius"), _length(length, "length")
        along = mass * radius * radius / 2
        across = mass * (3 * (radius * radius) + length * length) / 12
        return cls(mass, center, _about_axis(axis, along, across, "cylinder axis"))

    @classmethod
    def sphere(cls, mass: Scalar, radius: Scalar, center: Any = (0.0, 0.0, 0.0)) -> Inertia:
        mass, radius = scalar(mass, "mass"), _length(radius, "radius")
        moment = 2 * mass * (radius * radius) / 5
        return cls(mass, center, (moment, 0.0, moment, 0.0, 0.0, moment))

    @classmethod
    def from_matrix(cls, mass: Scalar, com: Any, tensor: Any) -> Inertia:
        """From a symmetric 3x3 matrix about the centre of mass, in body axes."""
        try:
            matrix = np.asarray(tensor, dtype=float)
        except (TypeError, ValueError):
            raise ModelError(f"inertia tensor is {tensor!r}, expected a 3x3 matrix of numbers") from None
        if matrix.shape != (3, 3) or not np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12):
            raise ModelError(f"inertia tensor is not a symmetric 3x3 matrix:\n{matrix}")
        return cls(mass, com, tuple(float(matrix[i, j]) for i, j in _PAIRS))

    @classmethod
    def from_ten_vector(cls, ten: Any) -> Inertia:
        """From (m, m cx, m cy, m cz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz), the tensor about the body's origin."""
        entries = scalars(ten, 10, "ten-vector")
        if any(isinstance(entry, Expression) for entry in entries):
            raise ModelError(f"ten-vector {entries} depends on parameters, expected numbers")
        m, hx, hy, hz, *about_origin = (float(entry) for entry in entries)  # type: ignore[arg-type]
        if m == 0.0:
            if any((hx, hy, hz, *about_origin)):
                raise ModelError(f"ten-vector {entries} has moments without mass")
            return cls()
        com = (hx / m, hy / m, hz / m)
        return cls(m, com, tuple(about_origin[k] - m * s for k, s in enumerate(_steiner(com))))

    def ten_vector(self) -> tuple[Scalar, ...]:
        """(m, m c, tensor about the origin), the parameters in which the dynamics are linear."""
        about_origin = (
            plus(entry, _times(self.mass, s))
            for entry, s in zip(self.tensor, _steiner(self.com), strict=True)
        )
        return (self.mass, *(_times(self.mass, c) for c in self.com), *about_origin)

    def matrix(self, values: Mapping[str, Any] | None = None) -> np.ndarray:
        """The 3x3 tensor in floats."""
        entries = [float(evaluate(entry, values or {})) for entry in self.tensor]
        return np.array([[entries[_INDEX[i][j]] for j in range(3)] for i in range(3)])

    def at(self, placement: Placement) -> Inertia:
        """The same body seen from A, for a placement X_AB of its present frame B."""
        R = _rotate(placement.quaternion)
        com = (placement @ Placement(self.com)).translation
        I = [[self.tensor[_INDEX[i][j]] for j in range(3)] for i in range(3)]
        RI = [[_total(_times(R[i][k], I[k][j]) for k in range(3)) for j in range(3)] for i in range(3)]
        turned = tuple(_total(_times(RI[i][k], R[j][k]) for k in range(3)) for i, j in _PAIRS)
        return Inertia(self.mass, com, turned)

    def __add__(self, other: Inertia) -> Inertia:
        """The two bodies as one, both given in the same frame."""
        if self == Inertia():
            return other
        if other == Inertia():
            return self
        mass = plus(self.mass, other.mass)
        if mass == 0.0:
            raise ModelError("the sum of two massless inertias with moments has no centre of mass")
        com = tuple(
            plus(_times(self.mass, a), _times(other.mass, b)) / mass
            for a, b in zip(self.com, other.com, strict=True)
        )
        parts = []
        for part in (self, other):
            offset = tuple(plus(c, _negative(g)) for c, g in zip(part.com, com, strict=True))
            parts.append(
                [plus(t, _times(part.mass, s)) for t, s in zip(part.tensor, _steiner(offset), strict=True)]
            )
        return Inertia(mass, com, tuple(plus(a, b) for a, b in zip(*parts, strict=True)))

    def scaled(self, factor: Scalar) -> Inertia:
        """Mass and tensor times a factor (a change of density)."""
        return Inertia(
            _times(factor, self.mass), self.com, tuple(_times(factor, entry) for entry in self.tensor)
        )

    def problem(self, values: Mapping[str, Any] | None = None) -> str | None:
        """Why no body can have this inertia, with the numbers; None when one can."""
        mass = float(evaluate(self.mass, values or {}))
        moments = np.linalg.eigvalsh(self.matrix(values))
        shown = "(" + ", ".join(f"{moment:.6g}" for moment in moments) + ")"
        slack = TRIANGLE_TOLERANCE * abs(moments).max() + NOISE * mass
        if mass < 0:
            return f"mass is {mass:.6g}, expected a positive number"
        if mass == 0 and abs(moments).max() > 0:
            return f"mass is 0 but the principal moments are {shown}"
        if moments[0] < -slack:
            return f"inertia is not positive: principal moments {shown}"
        if moments[2] > moments[0] + moments[1] + slack:
            return (
                f"inertia violates the triangle inequality: principal moments {shown}, "
                f"{moments[2]:.6g} > {moments[0]:.6g} + {moments[1]:.6g}"
            )
        return None


def _length(value: Any, what: str) -> Scalar:
    """A number that is no less than zero, or a formula."""
    length = scalar(value, what)
    if not isinstance(length, Expression) and length < 0:
        raise ModelError(f"{what} is {length:g}, expected no less than zero")
    return length


def _lengths(values: Any, count: int, what: str) -> tuple[Scalar, ...]:
    return tuple(_length(x, f"{what}[{k}]") for k, x in enumerate(scalars(values, count, what)))


_PAIRS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))


def _steiner(c: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """The tensor of a unit mass at c about the origin."""
    x, y, z = c
    xx, yy, zz = _times(x, x), _times(y, y), _times(z, z)
    xy, xz, yz = _times(x, y), _times(x, z), _times(y, z)
    return (plus(yy, zz), _negative(xy), plus(xx, zz), _negative(xz), _negative(yz), plus(xx, yy))


def _about_axis(axis: Any, along: Scalar, across: Scalar, what: str) -> tuple[Scalar, ...]:
    """across 1 + (along - across) a a^T"""
    a = unit_axis(axis, what)
    more = along - across
    return tuple(plus(across if i == j else 0.0, _times(more, _times(a[i], a[j]))) for i, j in _PAIRS)
