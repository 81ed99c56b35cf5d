"""Lyapunov equations of mechanical systems, in the modes of half their size.

    A X + X A^T + Q = 0,        A = [0 S; -S^-1 K  -S^-1 D S],   S diagonal                                  (1)

has the positions and the scaled velocities of q'' + D q' + K q = 0 as states. In the modes K Phi = Phi diag(k), and
with damping of d_i in mode i, the equation of the modes i and j has four unknowns,

    x12 = (k_j s (q12 - q21 - d_i q11) - c (k_j q11 + q22 + s q12)) / (c^2 + s (d_i k_j + d_j k_i)),
    x22 = (c x12 + k_j q11 + q22) / s,      x11 = (x22 - d_j x12 + q12) / k_j,                               (2)
    x21 = -q11 - x12,       s = d_i + d_j,   c = k_j - k_i,

so that all of X takes one eigenvalue problem of half the size and some products. Damping that couples modes a
little is put right by solving (2) again for what is left of the equation, until nothing is. The equation of A^T is
that of A in other coordinates: [0 1; -k -d]^T = Z^-1 [0 1; -k -d] Z with Z = diag(1, -k).
"""

from __future__ import annotations

import numpy as np

from alembert.control.modal_form import modes_of_stiffness, second_order_form

Array = np.ndarray
_EXACT, _ROUNDING = (
    1e-15,
    1e-9,
)  # of the largest entry of Q in modes: nothing is left, or what rounding may leave
_SLOW = 0.3  # a round that leaves more than this would need more rounds than the method of Bartels and Stewart costs


def solution(A: Array, Q: Array) -> Array | None:
    """X of (1), or None where A is not of this form, a mode is not damped, or damping couples the modes too much."""
    form = second_order_form(A)
    transposed = form is None
    if form is None:
        form = second_order_form(A.T)
    if form is None:
        return None
    S, K, D = form
    modes = modes_of_stiffness(K)
    if modes is None:
        return None
    k, Phi, inverse = modes
    D = inverse @ D @ Phi
    d = np.diag(D)
    if k.min() <= 0 or d.min() <= 0:
        return None
    size = len(k)
    units = np.concatenate([np.ones(size), 1 / S if transposed else S])
    way, back = (Phi.T, inverse.T) if transposed else (inverse, Phi)
    right = Q * units * units[:, None]
    q = [way @ x @ way.T for x in (right[:size, :size], right[:size, size:], right[size:, size:])]
    found = _rounds(q, k, D, transposed)
    if found is None:
        return None
    X = np.empty_like(right)
    X[:size, :size], X[:size, size:], X[size:, size:] = (back @ x @ back.T for x in found)
    X[size:, :size] = X[:size, size:].T
    X /= units * units[:, None]
    return np.asarray((X + X.T) / 2)


def _rounds(q: list[Array], k: Array, D: Array, transposed: bool) -> list[Array] | None:
    """x11, x12, x22 in modes: (2), and again for what is left."""
    x = _uncoupled(q, k, np.diag(D), transposed)
    whole = max(float(np.abs(b).max()) for b in q)
    before = np.inf
    while True:
        left = _left(q, x, k, D, transposed)
        size = max(float(np.abs(b).max()) for b in left)
        if size <= _EXACT * whole:
            return x
        if not size <= _SLOW * before:  # at the end rounding, or damping that couples the modes
            return x if size <= _ROUNDING * whole else None
        before = size
        x = [a + b for a, b in zip(x, _uncoupled(left, k, np.diag(D), transposed), strict=True)]


def _uncoupled(q: list[Array], k: Array, d: Array, transposed: bool) -> list[Array]:
    """(2)"""
    q11, q12, q22 = q
    if transposed:
        q12, q22 = -q12 * k, q22 * k * k[:, None]
    i, s, c = d[:, None], d[:, None] + d, k - k[:, None]
    x12 = (k * s * (q12 - q12.T - i * q11) - c * (k * q11 + q22 + s * q12)) / (
        c**2 + s * (i * k + d * k[:, None])
    )
    x22 = (c * x12 + k * q11 + q22) / s
    x11 = (x22 - d * x12 + q12) / k
    if transposed:
        x12, x22 = -x12 / k, x22 / k / k[:, None]
    return [(x11 + x11.T) / 2, x12, (x22 + x22.T) / 2]


def _left(q: list[Array], x: list[Array], k: Array, D: Array, transposed: bool) -> list[Array]:
    """The equation's residual with all of D."""
    (q11, q12, q22), (x11, x12, x22) = q, x
    if transposed:
        turned, damped = x12 * k, x22 @ D
        return [
            q11 - turned - turned.T,
            q12 + x11 - k[:, None] * x22 - x12 @ D,
            q22 + x12 + x12.T - damped - damped.T,
        ]
    turned, damped = k[:, None] * x12, D @ x22
    return [q11 + x12 + x12.T, q12 + x22 - x11 * k - x12 @ D.T, q22 - turned - turned.T - damped - damped.T]
