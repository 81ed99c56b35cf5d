"""Motions and forces as 6-vectors, angular part first: V = (w; v), F = (n; f).

They are different types because they transform differently: a motion is an element of se(3), a force of its dual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from alembert.spatial.arrays import Array, cross, dot, matrix, skew, vector, zeros

Self = TypeVar("Self", bound="_Six")


@dataclass(frozen=True, eq=False)
class _Six:
    """Two 3-vectors, angular first."""

    angular: Array
    linear: Array

    @classmethod
    def from_vector(cls: type[Self], x: Array) -> Self:
        return cls(x[0:3], x[3:6])

    @classmethod
    def zero(cls: type[Self], like: Array) -> Self:
        return cls(zeros(3, like=like), zeros(3, like=like))

    def vector(self) -> Array:
        return vector(self.angular, self.linear)

    def __add__(self: Self, other: Self) -> Self:
        return type(self)(self.angular + other.angular, self.linear + other.linear)

    def __sub__(self: Self, other: Self) -> Self:
        return type(self)(self.angular - other.angular, self.linear - other.linear)

    def __neg__(self: Self) -> Self:
        return type(self)(-self.angular, -self.linear)

    def __mul__(self: Self, scalar: Array) -> Self:
        return type(self)(scalar * self.angular, scalar * self.linear)

    __rmul__ = __mul__


class Motion(_Six):
    """Angular velocity `w` and the velocity `v` of the reference point (or an acceleration, or a displacement)."""

    def cross(self, other: Motion) -> Motion:
        """ad_V W: the rate of a motion `other` that moves along with V."""
        return Motion(
            cross(self.angular, other.angular),
            cross(self.angular, other.linear) + cross(self.linear, other.angular),
        )

    def cross_force(self, force: Force) -> Force:
        """-ad_V^T F: the rate of a force that moves along with V."""
        return Force(
            cross(self.angular, force.angular) + cross(self.linear, force.linear),
            cross(self.angular, force.linear),
        )

    def dot(self, force: Force) -> Array:
        """Power."""
        return dot(self.angular, force.angular) + dot(self.linear, force.linear)


class Force(_Six):
    """Moment `n` about the reference point and force `f` (or a momentum, or an impulse)."""


def ad(V: Array) -> Array:
    """The 6x6 matrix of `W -> V x W` on motions given as 6-vectors."""
    W, U = skew(V[0:3]), skew(V[3:6])
    return matrix([[W, zeros(3, 3, like=W)], [U, W]])


def ad_dual(V: Array) -> Array:
    """The 6x6 matrix of `F -> V x* F` on forces given as 6-vectors, -ad(V)^T."""
    return -ad(V).T
