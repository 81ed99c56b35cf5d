"""Small dense arrays that are either NumPy floats or CasADi `SX`, behind one set of functions.

The spatial algebra, the joints and the sweeps are written once on these. A value is *symbolic* as soon as one of
its parts is an `SX`; otherwise it is a NumPy array of float64. Vectors are `(n,)` in NumPy and `n x 1` in CasADi.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import casadi as ca
import numpy as np

Array: TypeAlias = Any
"""A float, `numpy.ndarray` or `casadi.SX`."""


def is_symbolic(*values: Array) -> bool:
    return any(isinstance(value, ca.SX) for value in values)


def vector(*entries: Array) -> Array:
    """A column of scalars or of shorter vectors."""
    if is_symbolic(*entries):
        return ca.vertcat(*entries)
    return np.concatenate([np.atleast_1d(np.asarray(entry, dtype=float)) for entry in entries])


def matrix(rows: Sequence[Sequence[Array]]) -> Array:
    """A matrix from rows of scalars or blocks."""
    if is_symbolic(*(entry for row in rows for entry in row)):
        return ca.blockcat([list(row) for row in rows])
    if all(np.ndim(entry) == 0 for row in rows for entry in row):
        return np.array(rows, dtype=float)
    blocks = [[np.atleast_2d(np.asarray(entry, dtype=float)) for entry in row] for row in rows]
    return np.block(blocks)


def zero_like(x: Array) -> Array:
    """A scalar zero of the kind of the vector x: an array or a matrix with this entry is symbolic where x is."""
    return 0 * x[0]


def as_array(value: Array, like: Array) -> Array:
    """`value` as an `SX` when `like` is one, as a float array otherwise."""
    if is_symbolic(value):
        return value
    dense = np.asarray(value, dtype=float)
    return ca.SX(ca.sparsify(ca.DM(dense))) if is_symbolic(like) else dense


def zeros(*shape: int, like: Array) -> Array:
    if is_symbolic(like):
        return ca.SX(shape[0], shape[1] if len(shape) > 1 else 1)
    return np.zeros(shape)


def identity(n: int, like: Array) -> Array:
    return ca.SX.eye(n) if is_symbolic(like) else np.eye(n)


def sin(x: Array) -> Array:
    return ca.sin(x) if is_symbolic(x) else np.sin(x)


def cos(x: Array) -> Array:
    return ca.cos(x) if is_symbolic(x) else np.cos(x)


def sqrt(x: Array) -> Array:
    return ca.sqrt(x) if is_symbolic(x) else np.sqrt(x)


def atan2(y: Array, x: Array) -> Array:
    return ca.atan2(y, x) if is_symbolic(y, x) else np.arctan2(y, x)


def where(condition: Array, yes: Array, no: Array) -> Array:
    """A choice that differentiates as the chosen branch does, provided that the other branch is finite."""
    if is_symbolic(condition, yes, no):
        return ca.if_else(condition, yes, no)
    return np.where(condition, yes, no)


def least(a: Array, b: Array) -> Array:
    return ca.fmin(a, b) if is_symbolic(a, b) else np.minimum(a, b)


def greatest(a: Array, b: Array) -> Array:
    return ca.fmax(a, b) if is_symbolic(a, b) else np.maximum(a, b)


def clip(x: Array, most: Array) -> Array:
    """Within -most to most. What is not a number stays so: of it, `fmin` and `fmax` would make a limit."""
    if is_symbolic(x, most):
        return ca.if_else(x > most, most, ca.if_else(x < -most, -most, x))
    return np.clip(x, -most, most)


def solve(A: Array, B: Array) -> Array:
    """A^-1 B of a small regular matrix."""
    if is_symbolic(A, B):
        return ca.solve(as_array(A, ca.SX()), as_array(B, ca.SX()))
    return np.linalg.solve(A, B)


def dot(a: Array, b: Array) -> Array:
    return ca.dot(a, b) if is_symbolic(a, b) else np.dot(a, b)


def cross(a: Array, b: Array) -> Array:
    if is_symbolic(a, b):
        return ca.cross(a, b)
    return vector(
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


def skew(a: Array) -> Array:
    """The matrix `a~` with `a~ b = a x b`."""
    if is_symbolic(a):
        return ca.sparsify(ca.skew(a))
    return matrix([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def unskew(A: Array) -> Array:
    """The vector of the skew part of a 3x3 matrix."""
    return vector(A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]) / 2


def symmetric(A: Array) -> Array:
    """The lower triangle of a matrix that is symmetric in exact arithmetic, mirrored.

    In a symbolic graph the upper triangle then is never computed.
    """
    if is_symbolic(A):
        return ca.tril2symm(ca.tril(A))
    lower = np.tril(A)
    return lower + np.tril(A, -1).T
