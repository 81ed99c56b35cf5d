"""Unit quaternions, scalar first: q = (w, x, y, z) rotates by the angle 2 acos w about (x, y, z).

q and -q are the same rotation. `to_matrix` takes quaternions of any length; `normalize` makes them unit.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import scipy

from alembert.spatial import series
from alembert.spatial.arrays import Array, atan2, cross, dot, is_symbolic, matrix, sqrt, vector, where


def identity(like: Array = None) -> Array:
    one = np.array([1.0, 0.0, 0.0, 0.0])
    return ca.SX(one) if is_symbolic(like) else one


def from_scipy(rotation: scipy.spatial.transform.Rotation) -> np.ndarray:
    """The quaternion (w, x, y, z) of a SciPy `Rotation`."""
    return rotation.as_quat(scalar_first=True)


def to_scipy(q_wxyz: Any) -> scipy.spatial.transform.Rotation:
    return scipy.spatial.transform.Rotation.from_quat(q_wxyz, scalar_first=True)


def multiply(a_wxyz: Array, b_wxyz: Array) -> Array:
    """First b, then a, as with matrices: R(a b) = R(a) R(b)."""
    a0, a = a_wxyz[0], a_wxyz[1:4]
    b0, b = b_wxyz[0], b_wxyz[1:4]
    return vector(a0 * b0 - dot(a, b), a0 * b + b0 * a + cross(a, b))


def conjugate(q_wxyz: Array) -> Array:
    return vector(q_wxyz[0], -q_wxyz[1:4])


def normalize(q_wxyz: Array) -> Array:
    return q_wxyz / sqrt(dot(q_wxyz, q_wxyz))


def to_matrix(q_wxyz: Array) -> Array:
    """The rotation of any quaternion but zero, whatever its length."""
    w, x, y, z = q_wxyz[0], q_wxyz[1], q_wxyz[2], q_wxyz[3]
    s = 2 / (w * w + x * x + y * y + z * z)
    xs, ys, zs = s * x, s * y, s * z
    xx, yy, zz = xs * x, ys * y, zs * z
    xy, xz, yz = xs * y, xs * z, ys * z
    wx, wy, wz = xs * w, ys * w, zs * w
    return matrix(
        [
            [1 - (yy + zz), xy - wz, xz + wy],
            [xy + wz, 1 - (xx + zz), yz - wx],
            [xz - wy, yz + wx, 1 - (xx + yy)],
        ]
    )


def rotate(q_wxyz: Array, u: Array) -> Array:
    """R u, R the rotation of any quaternion but zero."""
    v = q_wxyz[1:4]
    across = cross(v, u)
    return u + 2 / dot(q_wxyz, q_wxyz) * (q_wxyz[0] * across + cross(v, across))


def from_matrix(R: Array) -> Array:
    """The quaternion of `R` with w >= 0, by whichever component is the largest (stable at every angle)."""
    squares = [
        1 + R[0, 0] + R[1, 1] + R[2, 2],
        1 + R[0, 0] - R[1, 1] - R[2, 2],
        1 - R[0, 0] + R[1, 1] - R[2, 2],
        1 - R[0, 0] - R[1, 1] + R[2, 2],
    ]  # 4 w^2, 4 x^2, 4 y^2, 4 z^2
    s = [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]  # 4 w x, 4 w y, 4 w z
    t = [R[1, 0] + R[0, 1], R[2, 0] + R[0, 2], R[2, 1] + R[1, 2]]  # 4 x y, 4 x z, 4 y z
    rows = [
        (squares[0], s[0], s[1], s[2]),
        (s[0], squares[1], t[0], t[1]),
        (s[1], t[0], squares[2], t[2]),
        (s[2], t[1], t[2], squares[3]),
    ]  # row k is 4 q_k q
    best, largest = vector(*rows[0]), squares[0]
    for row, square in zip(rows[1:], squares[1:], strict=True):
        better = square > largest
        best, largest = where(better, vector(*row), best), where(better, square, largest)
    q_wxyz = normalize(best)
    return where(q_wxyz[0] < 0, -q_wxyz, q_wxyz)


def exp(w: Array) -> Array:
    """The quaternion of the rotation vector `w`."""
    x = dot(w, w) / 4
    return vector(series.cosine(x), series.sinc(x) / 2 * w)


def log(q_wxyz: Array) -> Array:
    """The rotation vector, of length at most pi: (2 atan2(n, |w|)/n) sign(w) v with n = |v|."""
    flip = q_wxyz[0] < 0
    scalar = where(flip, -q_wxyz[0], q_wxyz[0])
    v = q_wxyz[1:4]
    x = dot(v, v)
    small = x < 0.01
    n = sqrt(where(small, 1.0, x))
    # atan2(n, w)/n = atan(n/w)/n = (1/w) sum (-1)^k u^k/(2k+1), u = n^2/w^2 <= 0.0102 when n^2 < 0.01
    w_small = where(small, scalar, 1.0)
    u = where(small, x, 0.0) / (w_small * w_small)
    arctangent = series.horner(u, [(-1) ** k / (2 * k + 1) for k in range(9)])
    factor = 2 * where(small, arctangent / w_small, atan2(n, scalar) / n)
    return where(flip, -factor, factor) * v
