"""What every joint type offers, and the registry of them.

A joint moves the body frame B relative to a joint frame F fixed on the parent. With coordinates q and speeds
v,

    X_FB = placement(q),    V_FB_B = S(q) v,    A_FB_B = S v' + (dS/dt) v.

`S` has one column per speed, in B axes about B's origin. A joint type is a frozen record of its geometric
constants (an axis, a pitch, ...). Its methods take NumPy or `SX` coordinates; constants that are expressions
of parameters are first replaced by values with `with_constants`.

To add a type, subclass `JointType`, give `kind`, and decorate with `@register`. Unless it says
otherwise its coordinates form a vector space with q' = v, its S follows from the placement and its bias from
S by differentiation. To close loops it needs `fit` as well (and `constraint_subspace`, unless any basis will do).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import casadi as ca
import numpy as np

from alembert.errors import ModelError, UnsupportedError, warn
from alembert.expression import Expression, Scalar, scalars
from alembert.joints import closure
from alembert.joints.pair import Pair, structural
from alembert.spatial import Pose, se3
from alembert.spatial.arrays import Array, is_symbolic, matrix, unskew, vector, zeros

ANGLE = "rad"
LENGTH = "m"
ROUNDING = 2e-15  # of the length of a normalised vector: one that is read back must not be normalised again
_DIGITS = 1e-9  # beyond it an axis was written with few digits, which its owner should know


@dataclass(frozen=True)
class Translation:
    """Of the speeds of a joint: those that are a velocity, and those that turn the axes in which it is given, if any do.

    `position`, of the coordinates: the place that the velocity changes.
    """

    position: slice
    linear: slice
    angular: slice | None = None


@dataclass(frozen=True)
class JointType(Pair):
    """The protocol of a joint type: override what differs from a vector space of coordinates with q' = v.

    As a pair of frames, with q_c = fit(X) the nearest coordinates and T(q_c) the wrenches that it transmits:

        phi = T^T log(placement(q_c)^-1 X),    rows = T^T                                          (1)
    """

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        """Label and unit of each entry of q."""
        raise NotImplementedError

    @property
    def speeds(self) -> tuple[tuple[str, str], ...]:
        """Label and unit of each entry of v; by default those of q over time."""
        return tuple((label, f"{unit}/s") for label, unit in self.coordinates)

    @property
    def nq(self) -> int:
        return len(self.coordinates)

    @property
    def nv(self) -> int:
        by_default = type(self).speeds is JointType.speeds  # then their labels need not be made
        return len(self.coordinates if by_default else self.speeds)

    def placement(self, q: Array) -> Pose:
        raise NotImplementedError

    def subspace(self, q: Array) -> Array:
        """S, 6 x nv; here by differentiating the placement."""
        if not is_symbolic(q):
            return _numerically(self.subspace, q)
        if not q.is_valid_input():
            return _on_symbols(self.subspace, q)
        X = self.placement(q)
        columns = []
        for k in range(self.nq):
            dR = ca.reshape(ca.jacobian(ca.vec(X.rotation), q[k]), 3, 3)
            dp = ca.jacobian(X.translation, q[k])
            columns.append(vector(unskew(X.rotation.T @ dR), X.rotation.T @ dp))
        return ca.horzcat(*columns)

    def bias(self, q: Array, v: Array) -> Array | None:
        """(dS/dt) v as a 6-vector, None where S is constant; here by differentiation."""
        if not is_symbolic(q, v):
            return _numerically(self.bias, q, v).ravel()
        if not q.is_valid_input():
            return _on_symbols(self.bias, q, v)
        return ca.jtimes(self.subspace(q) @ v, q, self.rate(q, v))

    def rate(self, q: Array, v: Array) -> Array:
        """dq/dt."""
        return v

    def integrate(self, q: Array, dv: Array) -> Array:
        """The configuration reached from q by the tangent displacement dv."""
        return q + dv

    def difference(self, q0: Array, q1: Array) -> Array:
        """The tangent displacement that leads from q0 to q1."""
        return q1 - q0

    def chart_rate(self, e: ca.SX, v: ca.SX) -> ca.SX:
        """How fast the displacement e from a fixed configuration changes: T(e) v; here by differentiation."""
        if self.is_vector_space:
            return v
        neutral = ca.SX(self.neutral())
        q = ca.SX.sym("q", self.nq)
        rate = ca.jtimes(self.difference(neutral, q), q, self.rate(q, v))
        return ca.substitute(rate, q, self.integrate(neutral, e))

    def integrate_near(self, q: ca.SX, dv: ca.SX) -> ca.SX:
        """`integrate` but for terms of third order in dv: to be differentiated twice at dv = 0."""
        return self.integrate(q, dv)

    def difference_near(self, q0: ca.SX, q1: ca.SX) -> ca.SX:
        """`difference` but for terms of third order: to be differentiated twice at q1 = q0."""
        return self.difference(q0, q1)

    @property
    def closes_loops(self) -> bool:
        """Whether the joint can close a loop."""
        return type(self).fit is not JointType.fit

    def fit(self, X: Pose) -> Array:
        """The coordinates of the placement nearest to the pose X."""
        raise UnsupportedError(f"fit: a {self.kind} joint cannot give its coordinates for a pose")

    def constraint_subspace(self, q: Array) -> Array:
        """T, 6 x (6 - nv): what the joint transmits, an orthonormal complement of S (see `joints.closure`)."""
        if not is_symbolic(q):
            return closure.complement(self.subspace(q))
        symbol = ca.SX.sym("q", self.nq)  # S may need to be differentiated with respect to it
        return ca.substitute(closure.complement(ca.SX(self.subspace(symbol))), symbol, ca.densify(q))

    @property
    def holonomic(self) -> tuple[bool, ...]:
        return (True,) * (6 - self.nv)

    def residual(self, X: Pose) -> Array:
        q_c = self.fit(X)
        return self.constraint_subspace(q_c).T @ se3.log(self.placement(q_c).inverse() @ X)

    def rows(self, X: Pose) -> Array:
        return self.constraint_subspace(self.fit(X)).T

    @property
    def is_vector_space(self) -> bool:
        """Whether q' = v and configurations simply add."""
        return True

    @property
    def translation(self) -> Translation | None:
        """The speeds that carry everything outboard along without turning it; None where there are none such."""
        return None

    def neutral(self) -> np.ndarray:
        return np.zeros(self.nq)

    def random(self, rng: np.random.Generator, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Uniform between the limits; where there are none, within half a turn or one metre."""
        found = []  # one number or two: as arrays they would take many times longer
        for (_, unit), low, high in zip(self.coordinates, lower.tolist(), upper.tolist(), strict=True):
            reach = math.pi if unit == ANGLE else 1.0
            bounded = math.isfinite(low), math.isfinite(high)
            first = low if bounded[0] else high - 2 * reach if bounded[1] else -reach
            last = high if bounded[1] else low + 2 * reach if bounded[0] else reach
            found.append(rng.uniform(first, last))
        return np.array(found)

    def problem(self, q: np.ndarray) -> str | None:
        """What is wrong with the coordinates `q` (..., nq), in words; None when nothing is."""
        return None

    def singularity(self, q: np.ndarray) -> str | None:
        """The sentence for coordinates (..., nq) at which S loses rank, None elsewhere."""
        return None


@dataclass(frozen=True)
class ModalCoordinates(JointType):
    """The coordinates of a body that deforms, by name, with their units, in the protocol of a joint type: they add, q' = v.

    Not a joint: it moves no frame, is in no file and not in the registry. `model.space` gives it to bodies with modes.
    """

    kind: ClassVar[str] = "modes"
    names: tuple[str, ...] = structural(default=())
    units: tuple[str, ...] = structural(default=())

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        return tuple(zip(self.names, self.units, strict=True))

    def placement(self, q: Array) -> Pose:
        return Pose.identity(like=q)

    def subspace(self, q: Array) -> Array:
        """They move no frame."""
        return zeros(6, self.nv, like=q)

    def bias(self, q: Array, v: Array) -> None:
        return None


Kind = TypeVar("Kind", bound=type[JointType])
REGISTRY: dict[str, type[JointType]] = {}


def register(cls: Kind) -> Kind:
    """Make a joint type known to files, tests and docs under its `kind`."""
    if REGISTRY.setdefault(cls.kind, cls) is not cls:
        raise ModelError(f"joint type {cls.kind!r} is already registered by {REGISTRY[cls.kind].__name__}")
    return cls


_AXES = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}


def unit_axis(axis: Any, what: str) -> tuple[Scalar, ...]:
    """A unit vector: renormalised with a warning when it is one up to written digits (1e-4), refused otherwise."""
    if isinstance(axis, str) and axis.lower().strip("+-") in _AXES:
        meant = tuple(-x if axis[0] == "-" else x for x in _AXES[axis.lower().strip("+-")])
        raise ModelError(f"{what} is {axis!r}, expected 3 numbers: {meant}")
    entries = scalars(axis, 3, what)
    numbers = [entry for entry in entries if not isinstance(entry, Expression)]
    if len(numbers) < 3:
        return entries
    length = float(np.linalg.norm(numbers))
    if abs(length - 1) > 1e-4:
        hint = (
            f"; divide by its length: {tuple(float(n / length) for n in numbers)}"
            if length > 0
            else "; an axis needs a direction"
        )
        raise ModelError(f"{what} is {tuple(numbers)} of length {length:.6g}, expected a unit vector{hint}")
    if abs(length - 1) <= ROUNDING:
        return entries
    if abs(length - 1) > _DIGITS:
        warn(f"{what} {tuple(numbers)} has length {length:.9g} and is normalised")
    return tuple(float(number / length) for number in numbers)


def rotation_about(axis: Array, cosine: Array, sine: Array) -> Array:
    """The rotation about a unit axis, a a^T + cos (1 - a a^T) + sin a~; zeros of a stay structural zeros."""
    a = [axis[k] for k in range(3)]
    product = [[a[i] * a[j] for j in range(3)] for i in range(3)]
    across = [[(1.0 if i == j else 0.0) - product[i][j] for j in range(3)] for i in range(3)]
    tilde = [[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]]
    rows = [[product[i][j] + cosine * across[i][j] + sine * tilde[i][j] for j in range(3)] for i in range(3)]
    R = matrix(rows)
    return ca.sparsify(R) if is_symbolic(R) else R


def column(*entries: Array) -> Array:
    """A 6 x 1 matrix of scalars."""
    value = matrix([[entry] for entry in entries])
    return ca.sparsify(value) if is_symbolic(value) else value


def _on_symbols(function: Callable[..., Any], *given: ca.SX) -> ca.SX:
    """A function that differentiates by its first argument, where some of this is constant or an expression."""
    symbols = [ca.SX.sym("x", x.shape[0]) for x in given]
    return ca.substitute([function(*symbols)], symbols, [ca.densify(ca.SX(x)) for x in given])[0]


def _numerically(function: Callable[..., Array], *arguments: Array) -> np.ndarray:
    """A function that differentiates, at numbers."""
    symbols = [ca.SX.sym(f"x{k}", len(argument)) for k, argument in enumerate(arguments)]
    return np.asarray(ca.Function("f", symbols, [ca.densify(function(*symbols))])(*arguments))
