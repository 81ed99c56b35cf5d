"""Gramians and Hankel singular values of stable systems; and the poles and modes of a matrix A, which serve them.

Poles and modes make a system a sum of fractions:

    A = V diag(poles) V^-1,        C (s - A)^-1 B = sum_k (C V)_k (V^-1 B)_k / (s - pole_k)                  (1)

A mechanical system of the states q and S^-1 q', S diagonal,

    A = [0 S; -S^-1 K  -S^-1 D S],        q'' + D q' + K q = 0,                                              (2)

takes an eigenvalue problem of half the size where damping does not couple its modes: with K Phi = Phi diag(k) and
D Phi = Phi diag(d), its poles are those of s^2 + d s + k, its vectors (phi, S^-1 phi pole).

Gramians and Hankel singular values,

    A P + P A^T + B B^T = 0,    A^T Q + Q A + C^T C = 0,    sigma^2 = eig(P Q)                               (3)

by the method of Bartels and Stewart (1972), both from one Schur form; from modes (1) where (2) has them: with W = V^-1,

    X = V [-(W Q W^H)_ij / (pole_i + conj(pole_j))] V^H,        A X + X A^T + Q = 0,                         (4)

poles come in pairs, and one of each is enough. Factors P = S S^T come without P itself (Hammarling 1982), so that small
singular values keep their digits: with A upper triangular, from the last state to the first,

    s = |b| / t,   t = sqrt(-2 Re a),   (A_1 + conj(a)) u = -B_1 b^H t / |b| - a_1 s,   B_1 <- B_1 - t u b / |b|    (5)

for the last diagonal entry a, the column a_1 above it, and the last row b of B. Sampled systems go through `bilinear`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from alembert.control.arguments import takes_systems
from alembert.control.statespace import StateSpace
from alembert.errors import NumericalError

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


_MODAL_FROM = 60  # states; below, Bartels and Stewart's method takes no longer
_LEFT = 1e-11  # of the largest term: the residual that the method of Bartels and Stewart leaves is some n times rounding


@takes_systems()
def gramians(G: StateSpace) -> tuple[Array, Array]:
    """(P, Q) of (3)."""
    G = stable_continuous("gramians", G)
    equation = Lyapunov(G.A)
    return equation.solve(G.B @ G.B.T), equation.adjoint(G.C.T @ G.C)


@takes_systems()
def hankel_singular_values(G: StateSpace) -> Array:
    G = stable_continuous("hankel_singular_values", G.balanced_scales())
    S, R = gramian_factors(G.A, G.B, G.C)
    return np.linalg.svd(R.T @ S, compute_uv=False)


def gramian_factors(A: Array, B: Array, C: Array) -> tuple[Array, Array]:
    """(S, R) with P = S S^T and Q = R R^T, by (5), from one Schur form."""
    T, Z = scipy.linalg.schur(A, output="complex")
    S = _hammarling(T, Z.conj().T @ B)
    # of the transposed equation: A^T = conj(Z) T^T Z^T, made upper triangular by reversing the order of the states
    R = _hammarling(T.T[::-1, ::-1], (C @ Z).T[::-1])
    return _real_factor(Z @ S), _real_factor(Z.conj() @ R[::-1])


def _real_factor(S: Array) -> Array:
    """S S^H is real: it is that of the real and imaginary parts side by side, made triangular."""
    return np.asarray(np.linalg.qr(np.hstack([S.real, S.imag]).T, mode="r")).T


def _hammarling(T: Array, B: Array) -> Array:
    """(5)"""
    n = len(T)
    U = np.zeros((n, n), dtype=complex)
    B = B.astype(complex)
    for k in range(n - 1, -1, -1):
        b = B[k]
        size = float(np.linalg.norm(b))
        if size == 0.0:
            continue
        t = np.sqrt(-2 * T[k, k].real)
        U[k, k] = size / t
        if k:
            unit = b / size
            right = -(B[:k] @ unit.conj()) * t - T[:k, k] * U[k, k]
            shifted = T[:k, :k] + np.conj(T[k, k]) * np.eye(k)
            u = scipy.linalg.solve_triangular(shifted, right, check_finite=False)
            U[:k, k] = u
            B[:k] -= t * np.outer(u, unit)
    return U


def semidefinite_root(P: Array) -> Array:
    """S with S S^T = P, for a P that is symmetric and positive semidefinite but for rounding."""
    values, vectors = np.linalg.eigh((P + P.T) / 2)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def band_factor(A: Array, low: float, high: float) -> Array:
    """F = Im log(jw - A)/pi between two frequencies: F P + P F^T is the gramian of that band, where P is that of a stable A
    (Gawronski and Juang 1990)."""
    log = [np.imag(scipy.linalg.logm(1j * w * np.eye(len(A)) - A)) / np.pi if w else 0.0 for w in (low, high)]
    return np.asarray(log[1] - log[0])


def lyapunov(A: Array, Q: Array) -> Array:
    """X of A X + X A^T + Q = 0, Q symmetric."""
    return Lyapunov(A).solve(Q)


class Lyapunov:
    """Equations with one A and several right-hand sides: the Schur form of A is made once, in units of the states in which A
    has rows and columns of like size. In units far apart the small entries of X would be rounding."""

    def __init__(self, A: Array) -> None:
        self.A = A
        self._scale = np.ones(len(A))
        self._modal = len(A) >= _MODAL_FROM and not np.iscomplexobj(A)
        self._schur: tuple[Array, Array] | None = None

    def solve(self, Q: Array) -> Array:
        """X of A X + X A^H + Q = 0, Q symmetric."""
        return self._solved(self.A, Q, "N", "C")

    def adjoint(self, S: Array) -> Array:
        """Y of A^H Y + Y A + S = 0, S symmetric."""
        return self._solved(self.A.conj().T, S, "C", "N")

    def _solved(self, A: Array, Q: Array, left: str, right: str) -> Array:
        X = lyapunov_by_modes(A, Q) if self._modal else None
        return self._by_schur_form(Q, left, right) if X is None else X

    def _by_schur_form(self, Q: Array, left: str, right: str) -> Array:
        if not len(self.A):
            return np.zeros((0, 0))
        self._modal = False
        if self._schur is None:
            A, (self._scale, _) = scipy.linalg.matrix_balance(self.A, permute=False, separate=True)
            self._schur = scipy.linalg.schur(A)
        T, Z = self._schur
        unit = self._scale if left == "N" else 1 / self._scale
        Q = Q / unit / unit[:, None]
        (trsyl,) = scipy.linalg.get_lapack_funcs(("trsyl",), (T, Z, Q))
        x, scale, _ = trsyl(T, T, -Z.conj().T @ Q @ Z, trana=left, tranb=right)
        X = Z @ (x / scale) @ Z.conj().T
        return np.asarray((X + X.conj().T) / 2) * unit * unit[:, None]


def lyapunov_by_modes(A: Array, Q: Array) -> Array | None:
    """(4); None where A is not (2) and stable, damping couples its modes, or more than rounding is left of the equation."""
    modes = uncoupled_modes(A)
    if modes is None or not np.all(modes.poles.real < 0):
        return None
    half = modes.poles.imag >= 0
    pole, V, W = modes.poles[half], modes.V[:, half], modes.inverse[half]
    V, W = np.hstack([V.real, V.imag]), np.vstack([W.real, W.imag])
    (rr, ri), (ir, ii) = (np.hsplit(x, 2) for x in np.vsplit(W @ Q @ W.T, 2))
    share = np.where(pole.imag == 0, 0.5, 1.0)  # a real pole counts as half a pair
    weights = -2 * share * share[:, None]
    # between the modes of one half, and between them and the conjugates of others
    kept = weights * (rr + ii + 1j * (ir - ri)) / (pole[:, None] + pole.conj())
    other = weights * (rr - ii + 1j * (ir + ri)) / (pole[:, None] + pole)
    more, less = other + kept, other - kept
    X = V @ np.block([[more.real, -less.imag], [-more.imag, -less.real]]) @ V.T
    X = (X + X.T) / 2
    AX = A @ X
    left = np.abs(AX + AX.T + Q).max()
    return X if left <= _LEFT * max(np.abs(Q).max(), np.abs(AX).max()) else None


def stable_continuous(function: str, G: StateSpace) -> StateSpace:
    """The system in continuous time, or its bilinear twin; refused where a pole is not stable."""
    from alembert.control.responses import bilinear

    bad = G.decay()
    # within rounding of the axis (the unit circle) nothing is stable
    if np.any(bad >= -1e-14 * (1.0 if G.is_discrete else np.abs(G.balanced_scales().A).max(initial=0.0))):
        pole = np.linalg.eigvals(G.A)[int(np.argmax(bad))]
        raise NumericalError(
            f"{function}: the system is not stable, it has the pole {pole:.6g}; split it first (`split_stable`)"
        )
    return bilinear(G) if G.is_discrete else G
