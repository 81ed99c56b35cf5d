"""Algebraic Riccati equations.

    A^T X + X A - (X B + S) R^-1 (B^T X + S^T) + Q = 0                                 K = R^-1 (B^T X + S^T)        (1)
    A^T X A - X - (A^T X B + S)(R + B^T X B)^-1 (B^T X A + S^T) + Q = 0                K = (...)^-1 (B^T X A + S^T)   (2)

X is the solution for which A - B K is stable. It spans the stable deflating subspace of the extended pencil

    [ A   0   B ]     [1 0 0]            [ A  0 B]     [1    0   0]
    [-Q -A^T -S ] - s [0 1 0],    or     [-Q  1 -S] - z [0   A^T  0],                                                 (3)
    [S^T B^T  R ]     [0 0 0]            [S^T 0 R]     [0  -B^T   0]

in which R is not inverted (Van Dooren 1981, "A generalized eigenvalue approach for solving Riccati equations").
States and inputs are scaled first so that (3) is balanced, the m columns of u are taken out by an orthogonal
transformation, and QZ orders the stable part first. Where R is positive definite, ways that take a fraction of the time
are tried before: the modes of a stable mechanical system with few inputs (`modal_riccati`), then products of matrices
alone. With G = B R^-1 B^T, and A and Q free of S, doubling (Chu, Fan, Lin 2005, "A structure-preserving doubling
algorithm for continuous-time algebraic Riccati equations", Linear Algebra and its Applications 396)

    A <- A (1 + G H)^-1 A,    G <- G + A (1 + G H)^-1 G A^T,    H <- H + A^T H (1 + G H)^-1 A,      H -> X            (4)

starts at A, G, Q of (2), or at their Cayley transforms, with g of the size of A, A_g = A - g, U = A_g^-1 B,

    A <- 1 + 2 g W^T,    G <- 2 g U M^-1 U^T,    H <- 2 g W Q A_g^-1,
    M = R + U^T Q U,     W = A_g^-T (1 - Q U M^-1 U^T).                                                               (5)

While G = C C^T has a low rank (that of B, twice as much after every step), C is what (4) works with.

There is one stabilising solution: what leaves no residual and a stable loop is it, however it was found. Steps of
Newton's method (Kleinman 1968), a Lyapunov equation for the residual, recover digits that are lost; the relative
residual that is left is part of the answer.

The Riccati equation of a stable mechanical system with few inputs, in its modes.

With x = V z, A = V diag(poles) V^-1, b = V^-1 B R^(-1/2) and q = V^H Q V the equation is

    conj(pole_i) X_ij + X_ij pole_j + q_ij = (Z Z^H)_ij,        Z = X b                                                 (6)

so that X follows from Z by divisions, and Z, as narrow as B, is all that is unknown. Newton's method on

    F(Z) = [(Z Z^H - q) / (conj(pole_i) + pole_j)] b - Z = 0                                                            (7)

is that of Kleinman (1968): from a Z whose feedback -Z^H is stabilising all others are, and they converge. Such a one is
Z = diag(x) b for any x > 0, since diag(x) is a Lyapunov function of the free system; x is taken from the Riccati
equations of the single modes,

    2 Re(pole) x - x^2 |b|^2 + q = 0.                                                                                   (8)

A step solves linear equations in as many unknowns as Z has entries. Poles come in pairs, one of each is enough: the other
one has the conjugate Z. A real pole counts as half a pair.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy

from alembert.control import arguments
from alembert.control.gramian import lyapunov, uncoupled_modes
from alembert.errors import ArgumentError, NumericalError, warn

Array = np.ndarray
_REGULAR = 1e-10  # the least eigenvalue of R, of the largest entry, from which R is inverted
_SHIFT = 0.5  # g of (5) in root mean squares of the rows of A: between 0.1 and 3 the number of doublings is nearly the same
_DOUBLINGS = 40  # 2^40 samples: a pole nearer to the axis than 1e-12 of g is none that is clearly stable
_LAST = 1e-9  # of H: the step after this one is about its square
_GOOD_START, _GOOD = 1e-6, 1e-12  # relative residual: for Newton's method to start from, and to end with
_ROUGH = 1e-6  # relative residual from which users are told
_STEPS = 8  # of Newton's method: from a residual of 1e-2 three lead to rounding
_ROUNDING = 1e-14  # of poles, relative
_SPLIT = 1e-6  # of the size of A: double eigenvalues split by some roots of rounding
_CLEARLY_STABLE = 1e-11  # margin of the slowest pole, of the size of A: below, the pencil tells


@dataclass(frozen=True, eq=False)
class RiccatiSolution:
    """X, the gain K, the poles of A - B K, and the residual relative to the largest term of the equation."""

    X: Array
    K: Array
    poles: Array
    residual: float


class PencilUnits(NamedTuple):
    """What one of the scaled numbers is in those given."""

    states: Array
    inputs: Array
    cost: float


def care(A: Any, B: Any, Q: Any, R: Any, S: Any = None, *, function: str = "care") -> RiccatiSolution:
    """(1); Q and R are symmetric, R regular (it may be indefinite). `function` is whom messages name."""
    return _solved(function, *_read(function, A, B, Q, R, S), discrete=False)


def dare(A: Any, B: Any, Q: Any, R: Any, S: Any = None, *, function: str = "dare") -> RiccatiSolution:
    """(2); A may be singular. `function` is whom messages name."""
    return _solved(function, *_read(function, A, B, Q, R, S), discrete=True)


def _solved(
    function: str, A: Array, B: Array, Q: Array, R: Array, S: Array, *, discrete: bool
) -> RiccatiSolution:
    scaled, units = _scaled(A, B, Q, S, R)
    found = _quick(scaled, discrete=discrete) or _by_pencil(function, scaled, discrete=discrete)
    _refuse_hidden_modes(function, scaled, found.poles, discrete=discrete)
    if found.residual > _ROUGH:
        warn(
            f"{function}: the Riccati equation is solved to {found.residual:.1e} of its largest term only, and gains "
            "may have few digits; states far apart in size, or modes that are hardly reached or seen, make it so"
        )
    X = found.X / units.states / units.states[:, None] * units.cost
    K = found.K / units.states * units.inputs[:, None]
    return RiccatiSolution(X, K, np.sort_complex(found.poles), found.residual)


def _refuse_hidden_modes(function: str, scaled: tuple[Array, ...], poles: Array, *, discrete: bool) -> None:
    """Modes on the axis (the unit circle) that the cost does not see, or the inputs do not reach, have no stable solution:
    rounding splits their double eigenvalues of (3) by its root, and what looks stable then is noise."""
    A, B, Q, S, R = scaled
    size = 1.0 if discrete else float(np.abs(A).max(initial=0.0))

    def decay(x: Array) -> Array:
        return np.abs(x) - 1 if discrete else x.real

    if decay(poles).max(initial=-np.inf) < -_SPLIT * size:
        return
    free = np.linalg.solve(R, S.T) if np.any(S) else S.T
    for M, N in ((A - B @ free, Q - S @ free), (A.T, B.T)):
        values, V = np.linalg.eig(M)
        for value in values[(np.abs(decay(values)) <= 1e-12 * size) & (values.imag >= 0)]:
            U, s, _ = np.linalg.svd(V[:, np.abs(values - value) <= 1e-8 * size], full_matrices=False)
            seen = np.linalg.svd(N @ U[:, s > 1e-6 * s[0]])[1]
            if len(seen) < np.count_nonzero(s > 1e-6 * s[0]) or seen[-1] <= 1e-12 * np.linalg.norm(N):
                raise NumericalError(_on_the_axis(function, np.array([value]), discrete=discrete))


def _on_the_axis(function: str, values: Array, *, discrete: bool) -> str:
    return (
        f"{function}: the pencil has eigenvalues on {'the unit circle' if discrete else 'the imaginary axis'} "
        f"({', '.join(f'{v:.4g}' for v in values)}): the inputs do not reach, or the cost does not see, a mode there"
    )


def _by_pencil(function: str, scaled: tuple[Array, ...], *, discrete: bool) -> RiccatiSolution:
    """(3)"""
    A, B, Q, S, R = scaled
    n, m = B.shape
    Z, E = np.zeros, np.diag([1.0] * (2 * n) + [0.0] * m)
    if discrete:
        J = np.block([[A, Z((n, n)), B], [-Q, np.eye(n), -S], [S.T, Z((m, n)), R]])
        E[n : 2 * n, n : 2 * n], E[2 * n :, n : 2 * n] = A.T, -B.T
    else:
        J = np.block([[A, Z((n, n)), B], [-Q, -A.T, -S], [S.T, B.T, R]])
    equation = _dare_residual if discrete else _care_residual
    left = lambda X: equation(A, B, Q, R, S, X)  # noqa: E731
    X = _stable_solution(function, J, E, n, m, "iuc" if discrete else "lhp")
    try:
        _check_stable(function, left(X)[2], discrete=discrete)
        X, residual = _refined(X, left, discrete=discrete)
        K = _gain(A, B, R, S, X, discrete=discrete)
    except np.linalg.LinAlgError:
        inverted = "R + B^T X B" if discrete else "R"
        raise NumericalError(
            f"{function}: {inverted} is singular, controls of some kind cost nothing"
        ) from None
    return RiccatiSolution(X, K, _check_stable(function, A - B @ K, discrete=discrete), residual)


def _gain(A: Array, B: Array, R: Array, S: Array, X: Array, *, discrete: bool) -> Array:
    if discrete:
        return np.linalg.solve(R + B.T @ X @ B, B.T @ X @ A + S.T)
    return np.linalg.solve(R, B.T @ X + S.T)


def _quick(scaled: tuple[Array, ...], *, discrete: bool) -> RiccatiSolution | None:
    """In modes, or by doubling, (4); None where R is not positive definite, or where the answer is not good enough."""
    A, B, Q, S, R = scaled
    n, m = B.shape
    if not n or not m or np.linalg.eigvalsh(R)[0] <= _REGULAR * np.abs(R).max():
        return None
    RS = np.linalg.solve(R, S.T)
    free, cost = A - B @ RS, Q - S @ RS
    equation = _dare_residual if discrete else _care_residual
    left = lambda X: equation(A, B, Q, R, S, X)  # noqa: E731
    try:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            X = None if discrete else modal_solution(free, _root_inverse(B, R), cost)
            residual = np.inf if X is None else left(X)[1]
            if not residual <= _GOOD:
                start = (free, _root_inverse(B, R), cost) if discrete else _cayley(free, B, cost, R)
                X = _doubled(*start)
                residual = np.inf if X is None else left(X)[1]
        if X is None or not residual <= _GOOD_START:
            return None
        if residual > _GOOD:
            X, residual = _refined(X, left, discrete=discrete)
        if residual > _GOOD:
            return None
        K = _gain(A, B, R, S, X, discrete=discrete)
    except np.linalg.LinAlgError:
        return None
    poles = np.linalg.eigvals(A - B @ K)
    margin = 1 - np.abs(poles).max() if discrete else -poles.real.max() / max(1e-300, np.abs(A).max())
    return RiccatiSolution(X, K, poles, residual) if margin > _CLEARLY_STABLE else None


def _root_inverse(B: Array, R: Array) -> Array:
    """C with C C^T = B R^-1 B^T."""
    root = np.linalg.cholesky(R)
    return np.asarray(scipy.linalg.solve_triangular(root, B.T, lower=True, check_finite=False).T)


def _cayley(A: Array, B: Array, Q: Array, R: Array) -> tuple[Array, Array, Array]:
    """(5)"""
    n = len(A)
    g = _SHIFT * max(np.linalg.norm(A) / np.sqrt(n), 1e-300)
    inverse = np.linalg.inv(A - g * np.eye(n))
    U = inverse @ B
    C = _root_inverse(U, R + U.T @ Q @ U)
    cost = Q @ inverse
    seen = C.T @ cost
    turned = np.eye(n) + 2 * g * (inverse - C @ seen)
    H = 2 * g * (inverse.T @ cost - seen.T @ seen)
    return turned, np.sqrt(2 * g) * C, H


def _doubled(A: Array, C: Array, H: Array) -> Array | None:
    """(4), first with the columns of C; None where it does not converge."""
    n = len(A)
    G, H = None, (H + H.T) / 2
    for _ in range(_DOUBLINGS):
        if G is None and 2 * C.shape[1] > n:
            G = C @ C.T
        if G is None:
            HA = H @ A
            Y = _root_inverse(C, np.eye(C.shape[1]) + C.T @ H @ C)
            seen = Y.T @ HA
            step = A.T @ HA - seen.T @ seen
        else:
            solved = np.linalg.solve(np.eye(n) + G @ H, np.hstack([A, G]))
            step = A.T @ (H @ solved[:, :n])
        H = H + (step + step.T) / 2
        size, whole = np.abs(step).max(), np.abs(H).max()
        if not np.isfinite(size):
            return None
        # state by state: X may have entries of any size
        settled = np.all(np.abs(np.diag(step)) <= _LAST * np.abs(np.diag(H)))
        if size <= _LAST * whole and settled:
            return H
        if G is None:
            AY = A @ Y
            A, C = A @ A - AY @ seen, np.hstack([C, AY])
        else:
            more = A @ solved[:, n:] @ A.T
            A, G = A @ solved[:, :n], G + (more + more.T) / 2
    return None


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
    for name, X in (("Q", Q), ("R", R)):
        uneven = np.abs(X - X.T).max(initial=0.0)
        if uneven > 1e-6 * np.abs(X).max(initial=0.0):
            raise ArgumentError(
                f"{function}: {name} differs from its transpose by {uneven:.4g}, expected a symmetric matrix"
            )
    return A, B, (Q + Q.T) / 2, (R + R.T) / 2, S


def _scaled(A: Array, B: Array, Q: Array, S: Array, R: Array) -> tuple[tuple[Array, ...], PencilUnits]:
    """States and inputs in units that balance (3); the cost in units in which its parts are of like size."""
    n = len(A)
    terms = [float(np.abs(x).max(initial=0.0)) for x in (Q, S, R)]
    size = np.sqrt(terms[0]) * np.sqrt(terms[2]) if terms[0] * terms[2] > 0 else max(terms) or 1.0
    Q, S, R = Q / size, S / size, R / size
    whole = np.abs(np.block([[A, np.zeros((n, n)), B], [Q, A.T, S], [S.T, B.T, R]]))
    np.fill_diagonal(whole, 0.0)
    _, (found, _) = scipy.linalg.matrix_balance(whole, permute=False, separate=True)
    exponents = np.log2(found)
    # x is scaled by s, and with it what belongs to X x by 1 / s
    states = 2.0 ** np.round((exponents[:n] - exponents[n : 2 * n]) / 2)
    inputs = 2.0 ** np.round(exponents[2 * n :] - exponents.mean() if n else exponents[2 * n :])
    scaled = (
        A * states / states[:, None],
        B * inputs / states[:, None],
        Q * states * states[:, None],
        S * inputs * states[:, None],
        R * inputs * inputs[:, None],
    )
    return scaled, PencilUnits(states, inputs, size)


def _stable_solution(function: str, J: Array, E: Array, n: int, m: int, half: str) -> Array:
    """U2 U1^-1 of the stable deflating subspace."""
    if not n:
        return np.zeros((0, 0))
    q = np.linalg.qr(J[:, 2 * n :], mode="complete")[0][:, m:]
    J, E = q.T @ J[:, : 2 * n], q.T @ E[:, : 2 * n]
    where = "the imaginary axis" if half == "lhp" else "the unit circle"
    try:
        _, _, alpha, beta, _, Z = scipy.linalg.ordqz(J, E, sort=half, output="real", check_finite=False)
    except ValueError:  # what it raises where pairs cannot change places
        raise NumericalError(
            f"{function}: the pencil has eigenvalues too near to {where} to be told apart: the inputs do not reach, "
            "or the cost does not see, a mode there"
        ) from None
    with np.errstate(divide="ignore", invalid="ignore"):
        values = alpha / beta
    inside = values.real < 0 if half == "lhp" else np.abs(values) < 1
    if np.count_nonzero(inside[: 2 * n] & np.isfinite(values)) != n:
        finite = values[np.isfinite(values)]
        near = finite[np.argsort(np.abs(finite.real) if half == "lhp" else np.abs(np.abs(finite) - 1))[:2]]
        raise NumericalError(_on_the_axis(function, near, discrete=half == "iuc"))
    U1, U2 = Z[:n, :n], Z[n:, :n]
    if np.linalg.cond(U1) > 1e15:
        raise NumericalError(
            f"{function}: no stabilising solution: an unstable mode is not reached by the inputs"
        )
    return np.asarray(np.linalg.solve(U1.T, U2.T).T)


def _care_residual(A: Array, B: Array, Q: Array, R: Array, S: Array, X: Array) -> tuple[Array, float, Array]:
    K = _gain(A, B, R, S, X, discrete=False)
    quadratic = (X @ B + S) @ K
    residual = A.T @ X + X @ A - quadratic + Q
    return residual, _relative(residual, A.T @ X, quadratic, Q), A - B @ K


def _dare_residual(A: Array, B: Array, Q: Array, R: Array, S: Array, X: Array) -> tuple[Array, float, Array]:
    K = _gain(A, B, R, S, X, discrete=True)
    residual = A.T @ X @ A - X - (A.T @ X @ B + S) @ K + Q
    return residual, _relative(residual, A.T @ X @ A, X, Q), A - B @ K


def _relative(residual: Array, *terms: Array) -> float:
    sizes = [float(np.abs(x).max(initial=0.0)) for x in (residual, *terms)]
    return sizes[0] / max(*sizes[1:], 1e-300)


def _refined(X: Array, residual: Any, *, discrete: bool) -> tuple[Array, float]:
    """Steps of Newton's method, as long as they lower the residual much."""
    if not len(X):
        return X, 0.0
    X = (X + X.T) / 2
    error, size, closed = residual(X)
    for _ in range(_STEPS):
        if size == 0:
            break
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", scipy.linalg.LinAlgWarning
                )  # the residual tells what a step is worth
                solve = scipy.linalg.solve_discrete_lyapunov if discrete else lyapunov
                step = solve(closed.T, error)
            better = X + (step + step.T) / 2
            after = residual(better) if np.all(np.isfinite(better)) else (error, np.inf, closed)
        except np.linalg.LinAlgError:
            break
        if not after[1] < size:
            break
        slow = after[1] > 0.5 * size or after[1] <= _GOOD
        X, (error, size, closed) = better, after
        if slow:
            break
    return X, size


def _check_stable(function: str, closed: Array, *, discrete: bool) -> Array:
    """The poles of A - B K; those within rounding of the axis (the unit circle) are not stable."""
    poles = np.linalg.eigvals(closed)
    decay = np.abs(poles) - 1 if discrete else poles.real
    if len(poles) and decay.max() >= -_ROUNDING * (1.0 if discrete else np.abs(closed).max()):
        raise NumericalError(
            f"{function}: the closed loop keeps the pole {poles[np.argmax(decay)]:.6g}: the inputs do not reach it, or "
            "the cost does not see it"
        )
    return poles


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
    """(8)"""
    rate, reach = poles.real, np.sum(np.abs(pairs.b) ** 2, axis=1)
    q = np.maximum(np.diag(pairs.q_kept).real, 0.0)
    x = q / (np.sqrt(rate**2 + reach * q) - rate)
    return x[:, None] * pairs.b


def _settled(pairs: _Pairs, Z: Array) -> Array | None:
    """Newton's method for (7), as long as it gains."""
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
