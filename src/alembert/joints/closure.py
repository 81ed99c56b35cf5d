"""What a joint needs to close a loop: the coordinates of a relative pose, and the directions that it blocks.

For a pose X near a placement, `fit(X)` gives the coordinates of the nearest placement of the joint (those of X
itself where X is a placement), and `constraint_subspace(q)` an orthonormal basis T of the wrenches that the joint
transmits, 6 x (6 - nv) in B axes about B's origin:

    T^T S = 0,    T^T T = 1                                                        (1)
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from alembert.spatial.arrays import (
    Array,
    as_array,
    atan2,
    dot,
    identity,
    is_symbolic,
    matrix,
    sqrt,
    vector,
    where,
    zeros,
)

AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def direction(axis: Sequence[Array], like: Array) -> Array:
    """The constants of an axis as a vector."""
    a = vector(*(axis[k] for k in range(3)))
    return a if is_symbolic(a) else as_array(a, like=like)


def across(a: Array) -> tuple[Array, Array]:
    """Two unit vectors that make a right-handed frame (b, c, a) with the unit vector `a`.

    Without a branch but for the sign of a_z (Duff et al., Building an orthonormal basis, revisited, 2017).
    """
    sign = where(a[2] < 0, -1.0, 1.0)
    k = -1 / (sign + a[2])
    b = vector(1 + sign * a[0] * a[0] * k, sign * a[0] * a[1] * k, -sign * a[0])
    c = vector(a[0] * a[1] * k, sign + a[1] * a[1] * k, -a[1])
    return (ca.sparsify(b), ca.sparsify(c)) if is_symbolic(b) else (b, c)


def angle_about(a: Array, R: Array) -> Array:
    """The angle of the rotation about the unit vector `a` that is nearest to R."""
    twice = vector(R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1])
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    return atan2(dot(a, twice), trace - dot(a, R @ a))


def basis(angular: Sequence[Array], linear: Sequence[Array], like: Array) -> Array:
    """T from the moments and the forces that a joint transmits."""
    columns = [(x, None) for x in angular] + [(None, x) for x in linear]
    rows = [[x[i] if x is not None else 0.0 for x, _ in columns] for i in range(3)]
    rows += [[y[i] if y is not None else 0.0 for _, y in columns] for i in range(3)]
    T = matrix(rows)
    return ca.sparsify(T if is_symbolic(T) else as_array(T, like=like)) if is_symbolic(like) else T


def complement(S: Array) -> Array:
    """An orthonormal basis of what is normal to the n independent columns of S (6 x n), by reflections (Householder)."""
    size, n = S.shape
    Q, A = identity(size, like=S), S
    for k in range(n):
        x = A[k:, k]
        length = sqrt(dot(x, x))
        w = x + vector(where(x[0] < 0, -length, length), zeros(size - k - 1, like=S))
        v = vector(zeros(k, like=S), w) if k else w
        reflection = identity(size, like=S) - 2 * (
            matrix([[a] for a in _entries(v)]) @ matrix([_entries(v)])
        ) / dot(w, w)
        A, Q = reflection @ A, Q @ reflection
    return Q[:, n:]


def _entries(x: Array) -> list[Array]:
    return [x[k] for k in range(x.shape[0])]


def unit(x: Array) -> Array:
    return x / sqrt(dot(x, x))
