"""SE(3): poses, their action on motions, forces and inertias, exponential and logarithm.

`Pose(R, p)` named `X_AB` holds R_AB and p_AB_A: it maps coordinates in B to coordinates in A. With V in B axes about
B's origin, the same motion in A axes about A's origin is `Ad(X_AB) V`:

    Ad(X) = [R 0; p~R R],    Ad(X)^-T = [R p~R; 0 R] for forces                     (1)
    exp(w; v) = (exp w, J_l(w) v),   log(R, p) = (log R; J_l(w)^-1 p)               (2)
    J_l(w; v) = [J_l(w) 0; Q(w, v) J_l(w)]                                          (3)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from alembert.errors import ArgumentError
from alembert.spatial import quaternion, series, so3
from alembert.spatial.arrays import Array, as_array, cross, dot, identity, matrix, skew, vector, zeros
from alembert.spatial.motion import Force, Motion


@dataclass(frozen=True, eq=False)
class Pose:
    """`X_AB`: the rotation R_AB and the origin p_AB_A of B in A."""

    rotation: Array
    translation: Array

    def __post_init__(self) -> None:
        for name, shape in (("rotation", (3, 3)), ("translation", (3,))):
            given = getattr(self, name)
            if isinstance(given, list | tuple):  # what users write; the sweeps have arrays
                try:
                    array = np.asarray(given, dtype=float)
                except (TypeError, ValueError):
                    array = np.zeros(0)
                if array.shape[-len(shape) :] != shape:
                    raise ArgumentError(f"Pose: {name} is {given!r}, expected numbers of shape {shape}")
                object.__setattr__(self, name, array)

    @classmethod
    def identity(cls, like: Array = None) -> Pose:
        return cls(identity(3, like=like), zeros(3, like=like))

    @classmethod
    def from_quaternion(cls, q_wxyz: Array, translation: Array) -> Pose:
        return cls(quaternion.to_matrix(q_wxyz), translation)

    @classmethod
    def from_scipy(cls, transform: scipy.spatial.transform.RigidTransform) -> Pose:
        """One pose from a SciPy `RigidTransform`."""
        T = transform.as_matrix()
        return cls(T[:3, :3].copy(), T[:3, 3].copy())

    def to_scipy(self) -> scipy.spatial.transform.RigidTransform:
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = self.rotation, self.translation
        return scipy.spatial.transform.RigidTransform.from_matrix(T)

    def compose(self, other: Pose) -> Pose:
        """X_AC = X_AB X_BC."""
        return Pose(self.rotation @ other.rotation, self.translation + self.rotation @ other.translation)

    __matmul__ = compose

    def inverse(self) -> Pose:
        return Pose(self.rotation.T, -(self.rotation.T @ self.translation))

    def point(self, p_B: Array) -> Array:
        """The point `p_B` of B in A coordinates."""
        return self.translation + self.rotation @ p_B

    def motion(self, V_B: Motion) -> Motion:
        """Ad(X) V: the motion in A."""
        w = self.rotation @ V_B.angular
        return Motion(w, self.rotation @ V_B.linear + cross(self.translation, w))

    def motion_inverse(self, V_A: Motion) -> Motion:
        """Ad(X)^-1 V: the motion in B."""
        return Motion(
            self.rotation.T @ V_A.angular,
            self.rotation.T @ (V_A.linear - cross(self.translation, V_A.angular)),
        )

    def force(self, F_B: Force) -> Force:
        """Ad(X)^-T F: the force in A."""
        f = self.rotation @ F_B.linear
        return Force(self.rotation @ F_B.angular + cross(self.translation, f), f)

    def force_inverse(self, F_A: Force) -> Force:
        """Ad(X)^T F: the force in B."""
        return Force(
            self.rotation.T @ (F_A.angular - cross(self.translation, F_A.linear)),
            self.rotation.T @ F_A.linear,
        )

    def matrix(self) -> Array:
        """The homogeneous 4x4 matrix."""
        return matrix(
            [
                [self.rotation, _column(self.translation)],
                [zeros(1, 3, like=self.rotation), as_array([[1.0]], like=self.rotation)],
            ]
        )


def _column(x: Array) -> Array:
    return x.reshape(3, 1) if isinstance(x, np.ndarray) else x


def Ad(X: Pose) -> Array:
    """The 6x6 matrix of (1)."""
    R = X.rotation
    return matrix([[R, zeros(3, 3, like=R)], [skew(X.translation) @ R, R]])


def Ad_dual(X: Pose) -> Array:
    """The 6x6 matrix that maps forces in B to forces in A, Ad(X)^-T."""
    R = X.rotation
    return matrix([[R, skew(X.translation) @ R], [zeros(3, 3, like=R), R]])


def exp(V: Array) -> Pose:
    w = V[0:3]
    return Pose(so3.exp(w), so3.left_jacobian(w) @ V[3:6])


def log(X: Pose) -> Array:
    w = so3.log(X.rotation)
    return vector(w, so3.left_jacobian_inverse(w) @ X.translation)


def _Q(w: Array, v: Array) -> Array:
    x, W, U = dot(w, w), skew(w), skew(v)
    WU, UW = W @ U, U @ W
    WUW = WU @ W
    return (
        U / 2
        + series.c3(x) * (WU + UW + WUW)
        + series.c4(x) * (W @ WU + UW @ W - 3 * WUW)
        + series.c5(x) * (WUW @ W + W @ WUW)
    )


def left_jacobian(V: Array) -> Array:
    """(3), with exp(V + dV) = exp(J_l dV) exp(V) to first order."""
    J = so3.left_jacobian(V[0:3])
    return matrix([[J, zeros(3, 3, like=J)], [_Q(V[0:3], V[3:6]), J]])


def right_jacobian(V: Array) -> Array:
    return left_jacobian(-V)


def left_jacobian_inverse(V: Array) -> Array:
    J = so3.left_jacobian_inverse(V[0:3])
    return matrix([[J, zeros(3, 3, like=J)], [-(J @ _Q(V[0:3], V[3:6]) @ J), J]])


def chart_rate(e: Array, V: Array) -> Array:
    """How fast e changes where exp(e) moves with V in its own axes: the right Jacobian's inverse times V.

    Of e = (w; u) with p = J_l(w) u the translation of exp(e): w' = J_r^-1(w) V_w, u' = (J_l^-1(w) p)'.
    """
    w, u, a, b = e[0:3], e[3:6], V[0:3], V[3:6]
    x = dot(w, w)
    y = series.cot(x)
    wa, wb, wu = cross(w, a), cross(w, b), cross(w, u)
    turning = a + wa / 2 + y * cross(w, wa)
    p = u + series.versine(x) * wu + series.c3(x) * cross(w, wu)
    wp = cross(w, p)
    bent = 2 * dot(w, a) * series.cot_slope(x) * cross(w, wp) + y * (
        cross(turning, wp) + cross(w, cross(turning, p))
    )
    return vector(turning, b + wb / 2 + y * cross(w, wb) - cross(turning, p) / 2 + bent)


def right_jacobian_inverse(V: Array) -> Array:
    return left_jacobian_inverse(-V)
