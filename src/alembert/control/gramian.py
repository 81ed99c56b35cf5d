"""Gramians and Hankel singular values of stable systems.

    A P + P A^T + B B^T = 0,    A^T Q + Q A + C^T C = 0,    sigma^2 = eig(P Q)                               (1)

by the method of Bartels and Stewart (1972), both from one Schur form; for mechanical systems, where it can be, from
their modes (`second_order_lyapunov`). Factors P = S S^T come without P itself (Hammarling 1982), so that small singular
values keep their digits: with A upper triangular, from the last state to the first,

    s = |b| / t,   t = sqrt(-2 Re a),   (A_1 + conj(a)) u = -B_1 b^H t / |b| - a_1 s,   B_1 <- B_1 - t u b / |b|    (2)

for the last diagonal entry a, the column a_1 above it, and the last row b of B. Sampled systems go through `bilinear`.

Lyapunov equations of mechanical systems, in the modes of half their size.

    A X + X A^T + Q = 0,        A = [0 S; -S^-1 K  -S^-1 D S],   S diagonal                                  (3)

has the positions and the scaled velocities of q'' + D q' + K q = 0 as states. In the modes K Phi = Phi diag(k), and
with damping of d_i in mode i, the equation of the modes i and j has four unknowns,

    x12 = (k_j s (q12 - q21 - d_i q11) - c (k_j q11 + q22 + s q12)) / (c^2 + s (d_i k_j + d_j k_i)),
    x22 = (c x12 + k_j q11 + q22) / s,      x11 = (x22 - d_j x12 + q12) / k_j,                               (4)
    x21 = -q11 - x12,       s = d_i + d_j,   c = k_j - k_i,

so that all of X takes one eigenvalue problem of half the size and some products. Damping that couples modes a
little is put right by solving (4) again for what is left of the equation, until nothing is. The equation of A^T is
that of A in other coordinates: [0 1; -k -d]^T = Z^-1 [0 1; -k -d] Z with Z = diag(1, -k).
"""

from __future__ import annotations

import numpy as np
import scipy

from alembert.control.modal_form import modes_of_stiffness, second_order_form
from alembert.control.statespace import StateSpace
from alembert.control.system_arguments import takes_systems
from alembert.errors import NumericalError

Array = np.ndarray
_MODAL_FROM = 60  # states; below, Bartels and Stewart's method takes no longer
_LEFT = 1e-11  # of the largest term: the residual that the method of Bartels and Stewart leaves is some n times rounding


@takes_systems()
def gramians(G: StateSpace) -> tuple[Array, Array]:
    """(P, Q) of (1)."""
    G = stable_continuous("gramians", G)
    equation = Lyapunov(G.A)
    return equation.solve(G.B @ G.B.T), equation.adjoint(G.C.T @ G.C)


@takes_systems()
def hankel_singular_values(G: StateSpace) -> Array:
    G = stable_continuous("hankel_singular_values", G)
    S, R = gramian_factors(G.A, G.B, G.C)
    return np.linalg.svd(R.T @ S, compute_uv=False)


def gramian_factors(A: Array, B: Array, C: Array) -> tuple[Array, Array]:
    """(S, R) with P = S S^T and Q = R R^T, by (2), from one Schur form."""
    T, Z = scipy.linalg.schur(A, output="complex")
    S = _hammarling(T, Z.conj().T @ B)
    # of the transposed equation: A^T = conj(Z) T^T Z^T, made upper triangular by reversing the order of the states
    R = _hammarling(T.T[::-1, ::-1], (C @ Z).T[::-1])
    return _real_factor(Z @ S), _real_factor(Z.conj() @ R[::-1])


def _real_factor(S: Array) -> Array:
    """S S^H is real: it is that of the real and imaginary parts side by side, made triangular."""
    return np.asarray(np.linalg.qr(np.hstack([S.real, S.imag]).T, mode="r")).T


def _hammarling(T: Array, B: Array) -> Array:
    """(2)"""
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
    """Equations with one A and several right-hand sides: the Schur form of A is made once."""

    def __init__(self, A: Array) -> None:
        self.A = A
        self._modal = len(A) >= _MODAL_FROM and not np.iscomplexobj(A)
        self._schur: tuple[Array, Array] | None = None

    def solve(self, Q: Array) -> Array:
        """X of A X + X A^H + Q = 0, Q symmetric."""
        return self._solved(self.A, Q, "N", "C")

    def adjoint(self, S: Array) -> Array:
        """Y of A^H Y + Y A + S = 0, S symmetric."""
        return self._solved(self.A.conj().T, S, "C", "N")

    def _solved(self, A: Array, Q: Array, left: str, right: str) -> Array:
        X = _by_modes(A, Q) if self._modal else None
        return self._by_schur_form(Q, left, right) if X is None else X

    def _by_schur_form(self, Q: Array, left: str, right: str) -> Array:
        if not len(self.A):
            return np.zeros((0, 0))
        self._modal = False
        if self._schur is None:
            self._schur = scipy.linalg.schur(self.A)
        T, Z = self._schur
        (trsyl,) = scipy.linalg.get_lapack_funcs(("trsyl",), (T, Z, Q))
        x, scale, _ = trsyl(T, T, -Z.conj().T @ Q @ Z, trana=left, tranb=right)
        X = Z @ (x / scale) @ Z.conj().T
        return np.asarray((X + X.conj().T) / 2)


def _by_modes(A: Array, Q: Array) -> Array | None:
    """From the modes of a mechanical system, where what is left of the equation is rounding."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        X = second_order_solution(A, Q)
    if X is None or not np.all(np.isfinite(X)):
        return None
    AX = A @ X
    left = np.abs(AX + AX.T + Q).max()
    return X if left <= _LEFT * max(np.abs(Q).max(), np.abs(AX).max()) else None


def stable_continuous(function: str, G: StateSpace) -> StateSpace:
    """The system in continuous time, or its bilinear twin; refused where a pole is not stable."""
    from alembert.control.sampling import bilinear

    bad = G.decay()
    # within rounding of the axis (the unit circle) nothing is stable
    if np.any(bad >= -1e-14 * (1.0 if G.is_discrete else np.abs(G.A).max(initial=0.0))):
        pole = np.linalg.eigvals(G.A)[int(np.argmax(bad))]
        raise NumericalError(
            f"{function}: the system is not stable, it has the pole {pole:.6g}; split it first (`split_stable`)"
        )
    return bilinear(G) if G.is_discrete else G


_EXACT, _ROUNDING = (
    1e-15,
    1e-9,
)  # of the largest entry of Q in modes: nothing is left, or what rounding may leave
_SLOW = 0.3  # a round that leaves more than this would need more rounds than the method of Bartels and Stewart costs


def second_order_solution(A: Array, Q: Array) -> Array | None:
    """X of (3), or None where A is not of this form, a mode is not damped, or damping couples the modes too much."""
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
    """x11, x12, x22 in modes: (4), and again for what is left."""
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
    """(4)"""
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
