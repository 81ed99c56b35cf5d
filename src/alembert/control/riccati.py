"""Algebraic Riccati equations.

    A^T X + X A - (X B + S) R^-1 (B^T X + S^T) + Q = 0                                 K = R^-1 (B^T X + S^T)        (1)
    A^T X A - X - (A^T X B + S)(R + B^T X B)^-1 (B^T X A + S^T) + Q = 0                K = (...)^-1 (B^T X A + S^T)   (2)

X is the solution for which A - B K is stable. It spans the stable deflating subspace of the extended pencil

    [ A   0   B ]     [1 0 0]            [ A  0 B]     [1    0   0]
    [-Q -A^T -S ] - s [0 1 0],    or     [-Q  1 -S] - z [0   A^T  0],                                                 (3)
    [S^T B^T  R ]     [0 0 0]            [S^T 0 R]     [0  -B^T   0]

in which R is not inverted (Van Dooren 1981, "A generalized eigenvalue approach for solving Riccati equations").
States are scaled first, the m columns of u are taken out by an orthogonal transformation, and QZ orders the stable
part first. One step of Newton's method (Kleinman 1968), a Lyapunov equation for the residual, recovers the digits
that the subspace has lost; the relative residual that is left is part of the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from alembert.control import arguments
from alembert.control.gramian import lyapunov
from alembert.errors import NumericalError

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class RiccatiSolution:
    """X, the gain K, the poles of A - B K, and the residual relative to the largest term of the equation."""

    X: Array
    K: Array
    poles: Array
    residual: float


def care(A: Any, B: Any, Q: Any, R: Any, S: Any = None) -> RiccatiSolution:
    """(1); Q and R are symmetric, R regular (it may be indefinite)."""
    A, B, Q, R, S = _read("care", A, B, Q, R, S)
    n, m = B.shape
    (A_, B_, Q_, S_, R_), scale, size = _scaled(A, B, Q, S, R)
    Z = np.zeros
    J = np.block([[A_, Z((n, n)), B_], [-Q_, -A_.T, -S_], [S_.T, B_.T, R_]])
    E = np.diag([1.0] * (2 * n) + [0.0] * m)
    X = _stable_solution("care", J, E, n, m, "lhp")
    X, residual = _refined(X, lambda X: _care_residual(A_, B_, Q_, R_, S_, X), discrete=False)
    K = np.linalg.solve(R_, B_.T @ X + S_.T)
    poles = np.linalg.eigvals(A_ - B_ @ K)
    _check_stable("care", float(poles.real.max(initial=-1.0)), poles)
    return RiccatiSolution(X / scale / scale[:, None] * size, K / scale, np.sort_complex(poles), residual)


def dare(A: Any, B: Any, Q: Any, R: Any, S: Any = None) -> RiccatiSolution:
    """(2); A may be singular."""
    A, B, Q, R, S = _read("dare", A, B, Q, R, S)
    n, m = B.shape
    (A_, B_, Q_, S_, R_), scale, size = _scaled(A, B, Q, S, R)
    Z = np.zeros
    J = np.block([[A_, Z((n, n)), B_], [-Q_, np.eye(n), -S_], [S_.T, Z((m, n)), R_]])
    E = np.zeros_like(J)
    E[:n, :n], E[n : 2 * n, n : 2 * n], E[2 * n :, n : 2 * n] = np.eye(n), A_.T, -B_.T
    X = _stable_solution("dare", J, E, n, m, "iuc")
    X, residual = _refined(X, lambda X: _dare_residual(A_, B_, Q_, R_, S_, X), discrete=True)
    K = np.linalg.solve(R_ + B_.T @ X @ B_, B_.T @ X @ A_ + S_.T)
    poles = np.linalg.eigvals(A_ - B_ @ K)
    _check_stable("dare", float(np.abs(poles).max(initial=0.0)) - 1, poles)
    return RiccatiSolution(X / scale / scale[:, None] * size, K / scale, np.sort_complex(poles), residual)


def hamiltonian_solution(H: Array, size: float) -> Array | None:
    """X = U2 U1^-1 of the stable subspace of H; None where H has eigenvalues on the axis, or U1 is singular.

    The quick way for the many equations of a gamma iteration; `size` is that of X, by which H is scaled.
    """
    n = len(H) // 2
    if not n:
        return np.zeros((0, 0))
    scaled = H.copy()
    scaled[:n, n:] *= size
    scaled[n:, :n] /= size
    try:
        _, U, stable = scipy.linalg.schur(scaled, sort="lhp", check_finite=False)
    except (np.linalg.LinAlgError, ValueError):
        return None
    if stable != n:
        return None
    U1, U2 = U[:n, :n], U[n:, :n]
    with np.errstate(divide="ignore", invalid="ignore"):
        if np.linalg.cond(U1) > 1e14:
            return None
    X = np.linalg.solve(U1.T, U2.T).T * size
    if np.abs(X - X.T).max() > 1e-3 * max(np.abs(X).max(), 1e-3 * size):
        return None
    return np.asarray((X + X.T) / 2)


def _read(function: str, A: Any, B: Any, Q: Any, R: Any, S: Any) -> tuple[Array, Array, Array, Array, Array]:
    A = arguments.square(function, "A", A)
    n = len(A)
    B = arguments.matrix(function, "B", B, rows=n)
    m = B.shape[1]
    Q = arguments.matrix(function, "Q", Q, n, n)
    R = arguments.matrix(function, "R", R, m, m)
    S = np.zeros((n, m)) if S is None else arguments.matrix(function, "S", S, n, m)
    return A, B, (Q + Q.T) / 2, (R + R.T) / 2, S


def _scaled(A: Array, B: Array, Q: Array, S: Array, R: Array) -> tuple[tuple[Array, ...], Array, float]:
    """States in units that balance A; the cost in units in which its largest entry is that of A."""
    _, (scale, _) = scipy.linalg.matrix_balance(A, permute=False, separate=True)
    A, B, Q, S = (
        A * scale / scale[:, None],
        B / scale[:, None],
        Q * scale * scale[:, None],
        S * scale[:, None],
    )
    terms = [np.abs(x).max(initial=0.0) for x in (Q, S, R)]
    size = (
        float(np.sqrt(max(terms[0], 1e-300) * max(terms[2], 1e-300))) if terms[0] > 0 else max(terms) or 1.0
    )
    return (A, B, Q / size, S / size, R / size), scale, size


def _stable_solution(function: str, J: Array, E: Array, n: int, m: int, half: str) -> Array:
    """U2 U1^-1 of the stable deflating subspace."""
    if not n:
        return np.zeros((0, 0))
    q = np.linalg.qr(J[:, 2 * n :], mode="complete")[0][:, m:]
    J, E = q.T @ J[:, : 2 * n], q.T @ E[:, : 2 * n]
    _, _, alpha, beta, _, Z = scipy.linalg.ordqz(J, E, sort=half, output="real", check_finite=False)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = alpha / beta
    inside = values.real < 0 if half == "lhp" else np.abs(values) < 1
    where = "the imaginary axis" if half == "lhp" else "the unit circle"
    if np.count_nonzero(inside[: 2 * n] & np.isfinite(values)) != n:
        finite = values[np.isfinite(values)]
        near = finite[np.argsort(np.abs(finite.real) if half == "lhp" else np.abs(np.abs(finite) - 1))[:2]]
        raise NumericalError(
            f"{function}: the pencil has eigenvalues on {where} ({', '.join(f'{v:.4g}' for v in near)}): "
            "the inputs do not reach, or the cost does not see, a mode there"
        )
    U1, U2 = Z[:n, :n], Z[n:, :n]
    if np.linalg.cond(U1) > 1e15:
        raise NumericalError(
            f"{function}: no stabilising solution: an unstable mode is not reached by the inputs"
        )
    return np.asarray(np.linalg.solve(U1.T, U2.T).T)


def _care_residual(A: Array, B: Array, Q: Array, R: Array, S: Array, X: Array) -> tuple[Array, float, Array]:
    K = np.linalg.solve(R, B.T @ X + S.T)
    quadratic = (X @ B + S) @ K
    residual = A.T @ X + X @ A - quadratic + Q
    size = max(np.abs(A.T @ X).max(), np.abs(quadratic).max(), np.abs(Q).max(), 1e-300)
    return residual, float(np.abs(residual).max() / size), A - B @ K


def _dare_residual(A: Array, B: Array, Q: Array, R: Array, S: Array, X: Array) -> tuple[Array, float, Array]:
    K = np.linalg.solve(R + B.T @ X @ B, B.T @ X @ A + S.T)
    residual = A.T @ X @ A - X - (A.T @ X @ B + S) @ K + Q
    size = max(np.abs(A.T @ X @ A).max(), np.abs(X).max(), np.abs(Q).max(), 1e-300)
    return residual, float(np.abs(residual).max() / size), A - B @ K


def _refined(X: Array, residual: Any, *, discrete: bool) -> tuple[Array, float]:
    """One step of Newton's method, kept where it lowers the residual."""
    if not len(X):
        return X, 0.0
    X = (X + X.T) / 2
    error, size, closed = residual(X)
    if discrete:
        step = scipy.linalg.solve_discrete_lyapunov(closed.T, error) if size > 0 else 0 * X
    else:
        step = lyapunov(closed.T, error)
    better = X + (step + step.T) / 2
    after = residual(better)[1] if np.all(np.isfinite(better)) else np.inf
    return (better, after) if after < size else (X, size)


def _check_stable(function: str, worst: float, poles: Array) -> None:
    if worst >= 0:
        pole = poles[np.argmax(poles.real)] if function == "care" else poles[np.argmax(np.abs(poles))]
        raise NumericalError(
            f"{function}: the closed loop keeps the pole {pole:.6g}: the inputs do not reach it, or the cost does not see it"
        )
