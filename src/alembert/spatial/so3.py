"""SO(3): exponential, logarithm and their Jacobians.

With x = |w|^2 and t = |w|, every function below is a combination of entire functions of x,

    a(x) = sin t / t,   b(x) = (1 - cos t)/t^2,   c(x) = (t - sin t)/t^3,   e(x) = (1 - (t/2) cot(t/2))/t^2,

    exp w   = 1 + a w~ + b w~w~                                       (1)
    J_l(w)  = 1 + b w~ + c w~w~,   J_r(w) = J_l(-w) = J_l(w)^T        (2)
    J_l^-1  = 1 - w~/2 + e w~w~                                       (3)

J_l is the left Jacobian: exp(w + dw) = exp(J_l(w) dw) exp(w) to first order; J_r the right one.
"""

from __future__ import annotations

from alembert.spatial import quaternion, series
from alembert.spatial.arrays import Array, cross, dot, identity, skew


def exp(w: Array) -> Array:
    """The rotation matrix of the rotation vector `w`, (1)."""
    x, W = dot(w, w), skew(w)
    return identity(3, like=w) + series.sinc(x) * W + series.versine(x) * (W @ W)


def log(R: Array) -> Array:
    """The rotation vector of `R`, of length at most pi (the sign is arbitrary at exactly pi)."""
    return quaternion.log(quaternion.from_matrix(R))


def left_jacobian(w: Array) -> Array:
    x, W = dot(w, w), skew(w)
    return identity(3, like=w) + series.versine(x) * W + series.c3(x) * (W @ W)


def right_jacobian(w: Array) -> Array:
    return left_jacobian(-w)


def left_jacobian_inverse(w: Array) -> Array:
    """(3); singular at |w| = 2 pi."""
    x, W = dot(w, w), skew(w)
    return identity(3, like=w) - W / 2 + series.cot(x) * (W @ W)


def left_jacobian_inverse_times(w: Array, u: Array) -> Array:
    """J_l^-1 u of (3) on vectors."""
    across = cross(w, u)
    return u - across / 2 + series.cot(dot(w, w)) * cross(w, across)


def right_jacobian_inverse(w: Array) -> Array:
    return left_jacobian_inverse(-w)
