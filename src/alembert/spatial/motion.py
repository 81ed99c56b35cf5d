"""Motions and forces as 6-vectors, angular part first: V = (w; v), F = (n; f); the inertias that map one to the other.

Motions and forces are different types because they transform differently: a motion is an element of se(3), a force of its
dual. Inertias are about a frame's origin:

    rigid:        M = [I  h~; -h~  m 1],   h = m c,   I about the origin           (1)
    articulated:  P = [A  B;   B^T   C],   A, C symmetric                          (2)

A pose X_AB brings an inertia at B to A: M_A = Ad(X)^-T M_B Ad(X)^-1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from alembert.spatial.arrays import Array, cross, dot, identity, matrix, skew, symmetric, vector, zeros

if TYPE_CHECKING:
    from alembert.spatial.se3 import Pose

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


@dataclass(frozen=True, eq=False)
class RigidInertia:
    """Mass, first moment h = m c and second moment about the origin."""

    mass: Array
    moment: Array
    inertia: Array

    @classmethod
    def from_com(cls, mass: Array, com: Array, inertia_com: Array) -> RigidInertia:
        """From the mass, the centre of mass and the inertia about it (Steiner)."""
        C = skew(com)
        return cls(mass, mass * com, inertia_com - mass * symmetric(C @ C))

    def __matmul__(self, V: Motion) -> Force:
        return Force(
            self.inertia @ V.angular + cross(self.moment, V.linear),
            self.mass * V.linear - cross(self.moment, V.angular),
        )

    def __add__(self, other: RigidInertia) -> RigidInertia:
        return RigidInertia(self.mass + other.mass, self.moment + other.moment, self.inertia + other.inertia)

    def transform(self, X: Pose) -> RigidInertia:
        """The same inertia at A, for X = X_AB."""
        h = X.rotation @ self.moment
        p = X.translation
        # I_A = R I R^T - p~h~ - h~p~ - m p~p~, written by outer products
        moved = h + self.mass * p
        inertia = symmetric(
            X.rotation @ self.inertia @ X.rotation.T
            + (dot(p, moved) + dot(p, h)) * identity(3, like=h)
            - _outer(moved, p)
            - _outer(p, h)
        )
        return RigidInertia(self.mass, moved, inertia)

    def articulated(self) -> ArticulatedInertia:
        return ArticulatedInertia(self.inertia, skew(self.moment), self.mass * identity(3, like=self.inertia))

    def matrix(self) -> Array:
        return self.articulated().matrix()

    def kinetic_energy(self, V: Motion) -> Array:
        return V.dot(self @ V) / 2


@dataclass(frozen=True, eq=False)
class ArticulatedInertia:
    """The symmetric 6x6 inertia of a body with whatever is hinged to it."""

    A: Array
    B: Array
    C: Array

    @classmethod
    def zero(cls, like: Array) -> ArticulatedInertia:
        return cls(*(zeros(3, 3, like=like) for _ in range(3)))

    @classmethod
    def from_matrix(cls, P: Array) -> ArticulatedInertia:
        return cls(symmetric(P[0:3, 0:3]), P[0:3, 3:6], symmetric(P[3:6, 3:6]))

    def __matmul__(self, V: Motion) -> Force:
        return Force(self.A @ V.angular + self.B @ V.linear, self.B.T @ V.angular + self.C @ V.linear)

    def __add__(self, other: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(self.A + other.A, self.B + other.B, self.C + other.C)

    def __sub__(self, other: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(self.A - other.A, self.B - other.B, self.C - other.C)

    def columns(self, S: Array) -> Array:
        """P S for motions given as the columns of a 6 x k matrix."""
        return matrix(
            [
                [self.A @ S[0:3, :] + self.B @ S[3:6, :]],
                [self.B.T @ S[0:3, :] + self.C @ S[3:6, :]],
            ]
        )

    def transform(self, X: Pose) -> ArticulatedInertia:
        """The same inertia at A, for X = X_AB.

        With the blocks turned to A axes first: B' = B + p~C, A' = A - B p~ + p~B'^T, C' = C.
        """
        R, p = X.rotation, skew(X.translation)
        A = symmetric(R @ self.A @ R.T)
        B = R @ self.B @ R.T
        C = symmetric(R @ self.C @ R.T)
        moved = B + p @ C
        return ArticulatedInertia(symmetric(A - B @ p + p @ moved.T), moved, C)

    def matrix(self) -> Array:
        return matrix([[self.A, self.B], [self.B.T, self.C]])


def _outer(a: Array, b: Array) -> Array:
    return matrix([[a[i] * b[j] for j in range(3)] for i in range(3)])
