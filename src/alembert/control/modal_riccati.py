"""The Riccati equation of a stable mechanical system with few inputs, in its modes.

With x = V z, A = V diag(poles) V^-1, b = V^-1 B R^(-1/2) and q = V^H Q V the equation is

    conj(pole_i) X_ij + X_ij pole_j + q_ij = (Z Z^H)_ij,        Z = X b                                                 (1)

so that X follows from Z by divisions, and Z, as narrow as B, is all that is unknown. Newton's method on

    F(Z) = [(Z Z^H - q) / (conj(pole_i) + pole_j)] b - Z = 0                                                            (2)

is that of Kleinman (1968): from a Z whose feedback -Z^H is stabilising all others are, and they converge. Such a one is
Z = diag(x) b for any x > 0, since diag(x) is a Lyapunov function of the free system; x is taken from the Riccati
equations of the single modes,

    2 Re(pole) x - x^2 |b|^2 + q = 0.                                                                                   (3)

A step solves linear equations in as many unknowns as Z has entries. Poles come in pairs, one of each is enough: the other
one has the conjugate Z. A real pole counts as half a pair.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from alembert.control.modal_form import uncoupled_modes

Array = np.ndarray
FEW_INPUTS = 3
"""with more of them a step takes as long as the method of doubling"""
_FROM = 40  # states; below, the method of doubling takes no longer
_STEPS = 30
_SETTLED = 1e-13  # of Z


class _Pairs(NamedTuple):
    """One mode of each pair: 1 / (conj(pole_i) + pole_j) and q_ij for j in the half kept, and for its conjugate."""

    b: Array
    kept: Array
    other: Array
    q_kept: Array
    q_other: Array


def modal_solution(A: Array, C: Array, Q: Array) -> Array | None:
    """X of A^T X + X A - X C C^T X + Q = 0; None where A is not stable, is not mechanical with modes that damping
    does not couple, or Newton's method does not settle."""
    n, m = C.shape
    modes = uncoupled_modes(A) if n >= _FROM and m <= FEW_INPUTS else None
    if modes is None or not np.all(modes.poles.real < 0):
        return None
    half = modes.poles.imag >= 0
    poles, V, W = modes.poles[half], modes.V[:, half], modes.inverse[half]
    weights = np.where(poles.imag == 0, 0.5, 1.0)
    if round(2 * weights.sum()) != n:
        return None
    QV = Q @ V
    pairs = _Pairs(
        W @ C,
        weights / (poles.conj()[:, None] + poles),
        weights / (poles.conj()[:, None] + poles.conj()),
        V.conj().T @ QV,
        V.conj().T @ QV.conj(),
    )
    Z = _settled(pairs, _single_modes(pairs, poles))
    if Z is None:
        return None
    W = W * weights[:, None]
    kept = (Z @ Z.conj().T - pairs.q_kept) * pairs.kept / weights
    other = (Z @ Z.T - pairs.q_other) * pairs.other / weights
    return np.asarray(2 * (W.conj().T @ (kept @ W + other @ W.conj())).real)


def _single_modes(pairs: _Pairs, poles: Array) -> Array:
    """(3)"""
    rate, reach = poles.real, np.sum(np.abs(pairs.b) ** 2, axis=1)
    q = np.maximum(np.diag(pairs.q_kept).real, 0.0)
    x = q / (np.sqrt(rate**2 + reach * q) - rate)
    return x[:, None] * pairs.b


def _settled(pairs: _Pairs, Z: Array) -> Array | None:
    """Newton's method for (2), as long as it gains."""
    before = np.inf
    for _ in range(_STEPS):
        F = _left(pairs, Z)
        size = float(np.abs(F).max() / max(np.abs(Z).max(), 1e-300))
        if size <= _SETTLED or before < 1e-9 <= 1e4 * size:
            return Z
        if not np.isfinite(size):
            return None
        Z, before = Z - _step(pairs, Z, F), size
    return None


def _left(pairs: _Pairs, Z: Array) -> Array:
    kept = pairs.kept * (Z @ Z.conj().T - pairs.q_kept)
    other = pairs.other * (Z @ Z.T - pairs.q_other)
    return np.asarray(kept @ pairs.b + other @ pairs.b.conj() - Z)


def _step(pairs: _Pairs, Z: Array, F: Array) -> Array:
    """What Newton's method takes off Z: real and imaginary parts of it are the unknowns."""
    b = pairs.b
    k, m = b.shape
    along = pairs.kept @ (Z.conj()[:, :, None] * b[:, None]).reshape(k, -1)
    along += pairs.other @ (Z[:, :, None] * b.conj()[:, None]).reshape(k, -1)
    of_step = pairs.other[:, None, :, None] * Z[:, None, None, :] * b.conj().T[:, :, None]
    of_conjugate = pairs.kept[:, None, :, None] * Z[:, None, None, :] * b.T[:, :, None]
    each = np.arange(k)
    of_step[each, :, each] += np.swapaxes(along.reshape(k, m, m), 1, 2) - np.eye(m)
    of_step, of_conjugate = (x.reshape(k * m, k * m) for x in (of_step, of_conjugate))
    real, imaginary = of_step + of_conjugate, of_step - of_conjugate
    M = np.block([[real.real, -imaginary.imag], [real.imag, imaginary.real]])
    found = np.linalg.solve(M, np.concatenate([F.real.ravel(), F.imag.ravel()]))
    return np.asarray((found[: k * m] + 1j * found[k * m :]).reshape(k, m))
