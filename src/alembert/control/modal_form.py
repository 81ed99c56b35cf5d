"""The poles and modes of a matrix A: what makes a system a sum of fractions.

    A = V diag(poles) V^-1,        C (s - A)^-1 B = sum_k (C V)_k (V^-1 B)_k / (s - pole_k)                  (1)

A mechanical system of the states q and S^-1 q', S diagonal,

    A = [0 S; -S^-1 K  -S^-1 D S],        q'' + D q' + K q = 0,                                              (2)

takes an eigenvalue problem of half the size where damping does not couple its modes: with K Phi = Phi diag(k) and
D Phi = Phi diag(d), its poles are those of s^2 + d s + k, its vectors (phi, S^-1 phi pole).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

Array = np.ndarray
WELL_CONDITIONED = 1e5
"""condition up to which modes are used: they lose at most five digits"""
_UNCOUPLED = 1e-13  # of the largest entry of D in modes: what rounding leaves beside the diagonal


@dataclass(frozen=True, eq=False)
class ModalForm:
    """(1), with vectors of any length."""

    poles: Array
    V: Array
    inverse: Array


def conjugate_pairs(poles: Array) -> tuple[Array, Array, Array]:
    """Of a real matrix: which poles are above the axis, their conjugates in the same order, and the real ones."""
    sides = (np.flatnonzero(side) for side in (poles.imag > 0, poles.imag < 0))
    # equal ones stay in the order in which they came
    above, below = (k[np.lexsort((np.abs(poles[k].imag), poles[k].real))] for k in sides)
    return above, below, np.flatnonzero(poles.imag == 0)


def modal_form(A: Array) -> ModalForm | None:
    """None where poles are multiple, or nearly so, and (1) would lose digits."""
    if not len(A):
        return None
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = fast_modes(A)
        return _of_all_states(A) if found is None else found


def fast_modes(A: Array) -> ModalForm | None:
    """Of (2), or of a symmetric matrix; None where A is something else."""
    if not np.iscomplexobj(A) and np.array_equal(A, A.T):
        poles, V = np.linalg.eigh(A)
        return ModalForm(poles + 0j, V + 0j, V.T + 0j)
    return uncoupled_modes(A)


def uncoupled_modes(A: Array) -> ModalForm | None:
    """Of (2), or of its transpose; None where A is something else, or damping couples the modes."""
    if np.iscomplexobj(A):
        return None
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = _of_uncoupled_modes(A)
        if found is not None:
            return found
        turned = _of_uncoupled_modes(A.T)
    return None if turned is None else ModalForm(turned.poles, turned.inverse.T, turned.V.T)


def second_order_form(A: Array) -> tuple[Array, Array, Array] | None:
    """(S, K, D) of (2), or None where A is not of this form."""
    half = len(A) // 2
    S = np.diag(A[:half, half:])
    if len(A) % 2 or not half or np.any(A[:half, :half]) or np.any(S <= 0):
        return None
    if np.count_nonzero(A[:half, half:]) != half:
        return None
    return S, -S[:, None] * A[half:, :half], -S[:, None] * A[half:, half:] / S


def modes_of_stiffness(K: Array) -> tuple[Array, Array, Array] | None:
    """(k, Phi, Phi^-1), or None where they are not real or not well conditioned."""
    if np.array_equal(K, K.T):
        k, Phi = np.linalg.eigh(K)
        return k, Phi, Phi.T
    k, Phi = np.linalg.eig(K)
    if np.iscomplexobj(k):
        return None
    try:
        inverse = np.linalg.inv(Phi)
    except np.linalg.LinAlgError:
        return None
    if np.linalg.norm(Phi, 1) * np.linalg.norm(inverse, 1) > WELL_CONDITIONED * len(k):
        return None
    return k, Phi, inverse


def _of_uncoupled_modes(A: Array) -> ModalForm | None:
    form = second_order_form(A)
    modes = None if form is None else modes_of_stiffness(form[1])
    if form is None or modes is None:
        return None
    k, Phi, inverse = modes
    D = inverse @ form[2] @ Phi
    d = np.diag(D).copy()
    if np.abs(D - np.diag(d)).max() > _UNCOUPLED * np.abs(D).max(initial=1e-300):
        return None
    far = -d / 2 - np.copysign(1, d) * np.sqrt((d * d / 4 - k).astype(complex))
    near = np.where(far.imag == 0, k / far, far.conj())
    pole, other = np.concatenate([far, near]), np.concatenate([near, far])
    # in the coordinates (eta, eta' / sqrt(k)) of a mode
    squares = np.abs(np.concatenate([k, k]))
    condition = np.sqrt((squares + np.abs(pole) ** 2) * (squares + np.abs(other) ** 2) / squares)
    if not np.all(condition <= WELL_CONDITIONED * np.abs(pole - other)):
        return None
    # q = Phi (z1 + z2), q' = Phi (pole1 z1 + pole2 z2)
    both, rows = np.hstack([Phi, Phi]), np.vstack([inverse, inverse]) / (pole - other)[:, None]
    V = np.vstack([both, both * pole / form[0][:, None]])
    return ModalForm(pole, V, np.hstack([-rows * other[:, None], rows * form[0]]))


def _of_all_states(A: Array) -> ModalForm | None:
    scale = np.ones(len(A))
    if not np.iscomplexobj(A):
        A, (scale, _) = scipy.linalg.matrix_balance(A, permute=False, separate=True)
    poles, V = np.linalg.eig(A)
    try:
        inverse = np.linalg.inv(V) if np.iscomplexobj(A) else _inverse_of_pairs(poles, V)
    except np.linalg.LinAlgError:
        return None
    # the columns of V have length one: the rows of the inverse say how much more a pole moves than A
    if not np.linalg.norm(inverse, axis=1).max() <= WELL_CONDITIONED:
        return None
    return ModalForm(poles, V * scale[:, None], inverse / scale)


def _inverse_of_pairs(poles: Array, V: Array) -> Array:
    """V^-1 of conjugate pairs of columns, by that of their real and imaginary parts."""
    above, below, real = conjugate_pairs(poles)
    k = len(above)
    rows = np.linalg.inv(np.hstack([V[:, above].real, V[:, above].imag, V[:, real].real]))
    found = np.empty(V.shape, complex)
    found[above] = (rows[:k] - 1j * rows[k : 2 * k]) / 2
    found[below], found[real] = found[above].conj(), rows[2 * k :]
    return found
