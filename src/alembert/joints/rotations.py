"""Joints that turn about several axes in sequence: R = R(a1, q1) R(a2, q2) ...

S has the columns (R_{k+1} ... R_n)^T a_k, which depend on q.
"""

from collections.abc import Sequence

import casadi as ca

from alembert.joints.joint import rotation_about
from alembert.spatial.arrays import Array, as_array, cos, identity, is_symbolic, matrix, sin, zeros


def product(axes: Sequence[Array], q: Array) -> Array:
    R = identity(3, like=q)
    for k, axis in enumerate(axes):
        R = R @ rotation_about(axis, cos(q[k]), sin(q[k]))
    return R


def columns(axes: Sequence[Array], q: Array) -> Array:
    R = identity(3, like=q)
    found = []
    for k in reversed(range(len(axes))):
        a = axes[k] if is_symbolic(axes[k]) else as_array(axes[k], like=q)
        found.append(R.T @ a)
        R = rotation_about(axes[k], cos(q[k]), sin(q[k])) @ R
    angular = matrix([[column[i] for column in reversed(found)] for i in range(3)])
    S = matrix([[angular], [zeros(3, len(axes), like=q)]])
    return ca.sparsify(S) if is_symbolic(S) else S
