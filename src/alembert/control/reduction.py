"""Systems of lower order.

With factors P = S S^T, Q = R R^T of two gramians and R^T S = U diag(sigma) V^T, the part of the largest sigma is kept,

    T = orth(S V_1),  W = orth(R U_1),     A_r = (W^T T)^-1 W^T A T, ...                                             (1)

(Varga 1991, square-root balancing-free: orthogonal bases, no ill-conditioned balancing). Which gramians makes the
method:

    truncation      P, Q of the system:      |G - G_r| <= 2 (sigma_(r+1) + ... )  (Glover 1984, Enns 1984)            (2)
    residualisation the same states, but at rest instead of left out: exact at zero frequency, the bound (2) too
    stochastic      Q of the phase matrix:   |G^-1 (G - G_r)| <= prod (1 + s_i)/(1 - s_i) - 1  (Green 1988)           (3)
    weighted        P of G W_i, Q of W_o G   (Enns 1984); no bound
    Hankel          the best in the Hankel norm, |G - G_r|_H = sigma_(r+1)  (Glover 1984)                             (4)
    modal           G = D + sum c_i b_i / (s - p_i), the largest terms: |G - G_r| <= sum |c_i| |b_i| / -Re p_i          (5)

Poles that are not stable, integrators among them, are split off first and kept as they are.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert.control.arguments import takes_systems
from alembert.control.gramian import Lyapunov, band_factor, gramian_factors, lyapunov, semidefinite_root
from alembert.control.interconnection import common_dt, feedback, parallel, series
from alembert.control.norms import PeakGain, linf_norm
from alembert.control.responses import bilinear, from_bilinear
from alembert.control.riccati import care
from alembert.control.statespace import StateSpace
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray
_DISTINCT = 1e8  # condition of eigenvectors up to which modes are told apart


@dataclass(frozen=True, eq=False)
class ReducedSystem:
    """The reduced system, the singular values of the stable part, and a bound of the error (nan where none is known)."""

    system: StateSpace
    original: StateSpace
    singular_values: Array
    bound: float

    def error(self) -> PeakGain:
        """The largest gain of the difference, over all frequencies; where both have the same poles that are not
        stable, of the stable parts."""
        if self.original.is_stable and self.system.is_stable:
            return linf_norm(self.original - self.system)
        (G, _), (H, _) = split_stable(self.original), split_stable(self.system)
        return linf_norm(G - H)


@takes_systems()
def split_stable(G: StateSpace) -> tuple[StateSpace, StateSpace]:
    """G = stable + rest; the direct part goes with the stable one."""
    G = G.balanced_scales()  # what is near the axis is told in like units
    half = "iuc" if G.is_discrete else "lhp"
    edge = 1e-12 * max(1.0, float(np.abs(G.A).max(initial=0.0)))

    def inside(x: Any, y: Any = 0.0) -> bool:
        return bool(np.hypot(x, y) < 1 - 1e-12) if half == "iuc" else bool(x < -edge)

    if not G.order:
        return G, G.with_matrices(G.A, G.B, G.C, 0 * G.D)
    T, Z, k = scipy.linalg.schur(G.A, sort=inside)
    B, C = Z.T @ G.B, G.C @ Z
    X = (
        scipy.linalg.solve_sylvester(T[:k, :k], -T[k:, k:], -T[:k, k:])
        if 0 < k < G.order
        else np.zeros((k, G.order - k))
    )
    stable = G.with_matrices(T[:k, :k], B[:k] - X @ B[k:], C[:, :k])
    rest = G.with_matrices(T[k:, k:], B[k:], C[:, :k] @ X + C[:, k:], 0 * G.D)
    return stable, rest


@takes_systems()
def balanced_truncation(
    G: StateSpace, order: int | None = None, *, tolerance: float | None = None, keep_dc: bool = False
) -> ReducedSystem:
    """(2): `order` states in all, or as few as the bound allows for an error below `tolerance`.

    With `keep_dc` the states that go are at rest instead of zero (singular perturbation), and G_r(0) = G(0).
    """
    stable, rest = _parts("balanced_truncation", G)
    S, R = gramian_factors(stable.A, stable.B, stable.C)
    values = np.linalg.svd(R.T @ S, compute_uv=False)
    k = _order("balanced_truncation", G, values, rest.order, order, tolerance)
    reduced = (_residualised if keep_dc else _projected)(stable, S, R, k)
    return ReducedSystem(_joined(G, reduced, rest), G, values, 2 * float(np.sum(values[k:])))


@takes_systems()
def modal_truncation(
    G: StateSpace, order: int | None = None, *, tolerance: float | None = None, keep_dc: bool = False
) -> ReducedSystem:
    """The modes of the largest gains |c_i| |b_i| / decay, (5): `order` states in all, or as few as `tolerance` allows.

    Poles of the result are poles of G. With `keep_dc` the gain at zero frequency of what is left out stays, as a direct
    part. `singular_values` are the gains, one for each stable state.
    """
    what = "modal_truncation"
    stable, rest = _parts(what, G)
    poles, V = np.linalg.eig(stable.A)
    condition = np.linalg.cond(V)
    if condition > _DISTINCT:
        raise NumericalError(
            f"{what}: the eigenvectors have the condition {condition:.1e}: poles are multiple or nearly so, and modes are "
            "not told apart; use `balanced_truncation`"
        )
    b = np.linalg.norm(np.linalg.solve(V, stable.B.astype(complex)), axis=1)
    gains = b * np.linalg.norm(stable.C @ V, axis=0) / -poles.real
    modes = sorted(np.flatnonzero(poles.imag >= 0), key=lambda i: -gains[i])
    values = np.concatenate([[gains[i]] * (1 if poles[i].imag == 0 else 2) for i in modes])
    ends = np.cumsum([0, *(1 if poles[i].imag == 0 else 2 for i in modes)])
    if order is not None and tolerance is None:
        _check_order(what, G, rest.order, order)
        k = int(order) - rest.order
        if k not in ends:
            raise ArgumentError(
                f"{what}: order is {order}, which splits a pair of poles; take {order - 1} or {order + 1} states"
            )
    else:
        least = _order(what, G, values * (1.0 if keep_dc else 0.5), rest.order, order, tolerance)
        k = int(ends[np.searchsorted(ends, least)])
    T = np.column_stack(
        [x for i in modes for x in ([V[:, i].real] if poles[i].imag == 0 else [V[:, i].real, V[:, i].imag])]
    )
    A, B, C = np.linalg.solve(T, stable.A @ T), np.linalg.solve(T, stable.B), stable.C @ T
    D = stable.D + (C[:, k:] @ np.linalg.solve(-A[k:, k:], B[k:]) if keep_dc else 0.0)
    reduced = stable.with_matrices(A[:k, :k], B[:k], C[:, :k], D)
    bound = float(values[k:].sum()) * (2 if keep_dc else 1)
    return ReducedSystem(_joined(G, reduced, rest), G, values, bound)


@takes_systems()
def hankel_optimal(G: StateSpace, order: int) -> ReducedSystem:
    """(4); `bound` is that of the largest gain of the error, which with an antistable part F is all-pass: s + |F|."""
    stable, rest = _parts("hankel_optimal", G)
    S, R = gramian_factors(stable.A, stable.B, stable.C)
    values = np.linalg.svd(R.T @ S, compute_uv=False)
    k = _order("hankel_optimal", G, values, rest.order, order, None)
    if k == len(values):
        return ReducedSystem(G, G, values, 0.0)
    n = int(np.count_nonzero(values > 1e-12 * values[0]))
    b = _balanced(stable, S, R, n)
    s = values[k]
    same = np.abs(values[:n] - s) <= 1e-9 * s
    first, last = np.flatnonzero(~same), np.flatnonzero(same)
    A11, B1, B2 = b.A[np.ix_(first, first)], b.B[first], b.B[last]
    C1, C2 = b.C[:, first], b.C[:, last]
    sigma = np.diag(values[first])
    U = -C2 @ np.linalg.pinv(B2.T)
    gamma = np.linalg.inv(sigma**2 - s**2 * np.eye(len(first)))
    made = stable.with_matrices(
        gamma @ (s**2 * A11.T + sigma @ A11 @ sigma - s * C1.T @ U @ B1.T),
        gamma @ (sigma @ B1 + s * C1.T @ U),
        C1 @ sigma + s * U @ B1.T,
        stable.D - s * U,
    )
    reduced, other = split_stable(made)  # the Hankel norm does not see the other part
    return ReducedSystem(_joined(G, reduced, rest), G, values, float(s + linf_norm(other).upper))


@takes_systems()
def stochastic_truncation(G: StateSpace, order: int, *, absolute: float = 0.0) -> ReducedSystem:
    """(3): small relative errors, for systems whose D has full row rank (no more outputs than inputs).

    `absolute` > 0 takes [G, absolute] instead, for systems without a direct part: relative errors where the gain is
    above it.
    """
    stable, rest = _parts("stochastic_truncation", G)
    p = stable.shape[0]
    B, D = stable.B, stable.D
    if absolute > 0:
        B, D = np.hstack([B, np.zeros((stable.order, p))]), np.hstack([D, absolute * np.eye(p)])
    R_ = D @ D.T
    if np.linalg.matrix_rank(R_, tol=1e-12 * max(1.0, float(np.abs(R_).max(initial=0.0)))) < p:
        raise ArgumentError(
            "stochastic_truncation: D has not full row rank, relative errors are not defined; give absolute= a small gain"
        )
    S, _ = gramian_factors(stable.A, B, stable.C)
    P = S @ S.T
    W = P @ stable.C.T + B @ D.T
    Q = care(stable.A, W, np.zeros_like(stable.A), -R_, -stable.C.T).X
    R = semidefinite_root(Q)
    values = np.minimum(np.linalg.svd(R.T @ S, compute_uv=False), 1.0)
    k = _order("stochastic_truncation", G, values, rest.order, order, None)
    tail = values[k:]
    bound = float(np.prod((1 + tail) / np.maximum(1 - tail, 1e-300)) - 1) if np.all(tail < 1) else np.inf
    return ReducedSystem(_joined(G, _projected(stable, S, R, k), rest), G, values, bound)


@takes_systems()
def weighted_truncation(
    G: StateSpace,
    order: int,
    *,
    input_weight: StateSpace | None = None,
    output_weight: StateSpace | None = None,
) -> ReducedSystem:
    """Small W_o (G - G_r) W_i; the weights have to be stable."""
    return _weighted("weighted_truncation", G, order, input_weight, output_weight)


def _weighted(
    function: str,
    G: StateSpace,
    order: int,
    input_weight: StateSpace | None,
    output_weight: StateSpace | None,
) -> ReducedSystem:
    stable, rest = _parts(function, G)
    n = stable.order
    for name, weight in (("input_weight", input_weight), ("output_weight", output_weight)):
        if weight is not None and not isinstance(weight, StateSpace):
            raise ArgumentError(f"{function}: {name} is {weight!r}, expected a system (`tf`, `static`)")
        if weight is not None and not weight.is_stable:
            raise ArgumentError(f"{function}: {name} is not stable, it has the pole {weight.poles()[-1]:.6g}")
        if weight is not None:
            common_dt(function, [G, weight])
    twin = (lambda W: bilinear(W)) if G.is_discrete else (lambda W: W)
    P = lyapunov(stable.A, stable.B @ stable.B.T)
    if input_weight is not None:
        whole = series(twin(input_weight), stable)
        P = lyapunov(whole.A, whole.B @ whole.B.T)[-n:, -n:]
    Q = lyapunov(stable.A.T, stable.C.T @ stable.C)
    if output_weight is not None:
        whole = series(stable, twin(output_weight))
        Q = lyapunov(whole.A.T, whole.C.T @ whole.C)[:n, :n]
    S, R = semidefinite_root(P), semidefinite_root(Q)
    values = np.linalg.svd(R.T @ S, compute_uv=False)
    k = _order(function, G, values, rest.order, order, None)
    return ReducedSystem(_joined(G, _projected(stable, S, R, k), rest), G, values, np.nan)


@takes_systems()
def frequency_limited_truncation(G: StateSpace, order: int, *, band: tuple[float, float]) -> ReducedSystem:
    """Small errors between two frequencies [rad/s]: gramians of that band alone (Gawronski and Juang 1990, "Model reduction
    in limited time and frequency intervals"). No bound is known.

        P = 1/(2 pi) int (jw - A)^-1 B B^T (jw - A)^-H dw,   A P + P A^T + F B B^T + B B^T F^T = 0,    F = Im log(jw - A)/pi
    """
    what = "frequency_limited_truncation"
    try:
        low, high = (float(x) for x in band)
    except (TypeError, ValueError):
        low, high = 1.0, 0.0
    if not 0 <= low < high < np.inf:
        raise ArgumentError(f"{what}: band is {band!r}, expected (low, high) in rad/s")
    if G.is_discrete:
        raise ArgumentError(f"{what} is for continuous systems; this one is sampled every {G.dt:g} s")
    stable, rest = _parts(what, G)
    F, equation = band_factor(stable.A, low, high), Lyapunov(stable.A)
    P = equation.solve(F @ stable.B @ stable.B.T + stable.B @ stable.B.T @ F.T)
    Q = equation.adjoint(F.T @ stable.C.T @ stable.C + stable.C.T @ stable.C @ F)
    S, R = semidefinite_root(P), semidefinite_root(Q)
    values = np.linalg.svd(R.T @ S, compute_uv=False)
    k = _order(what, G, values, rest.order, order, None)
    reduced = _projected(stable, S, R, k)
    if not reduced.is_stable:
        raise NumericalError(
            f"{what}: with {order} states the reduced system is not stable; take another number, or a wider band"
        )
    return ReducedSystem(_joined(G, reduced, rest), G, values, np.nan)


@takes_systems()
def reduce_controller(K: StateSpace, G: StateSpace, order: int, *, sign: int = 1) -> ReducedSystem:
    """A controller of lower order that keeps the loop with the plant G stable: weighted by (1 - G K)^-1 G at its output.

    The loop is closed by u = K y (`sign` = 1, as from synthesis), or u = -K y.
    """
    found = _weighted("reduce_controller", K, order, None, feedback(G, K, sign=sign))
    if not feedback(G, found.system, sign=sign).is_stable:
        raise NumericalError(
            f"reduce_controller: with order {order} the closed loop is not stable; keep more states"
        )
    return found


def loop_truncation(K: StateSpace, loop: StateSpace, order: int, *, noise: float = 0.0) -> StateSpace:
    """A controller, stable or not, of which the states remain that are largest in a stable loop, whose last states they
    are: gramians of the loop, with `noise` of that intensity at every state, and a weight of it. No bound is known."""
    n = K.order
    equation, one = Lyapunov(loop.A), noise * np.eye(loop.order)
    P = equation.solve(loop.B @ loop.B.T + one)[-n:, -n:]
    Q = equation.adjoint(loop.C.T @ loop.C + one)[-n:, -n:]
    return _projected(K, semidefinite_root(P), semidefinite_root(Q), order)


# --- pieces -----------------------------------------------------------------------------------------------------


def _parts(function: str, G: StateSpace) -> tuple[StateSpace, StateSpace]:
    """The stable part in continuous time (or its bilinear twin), and the rest as it is."""
    stable, rest = split_stable(G)
    if not stable.order:
        raise ArgumentError(f"{function}: the system has no stable poles, there is nothing to reduce")
    return (bilinear(stable) if G.is_discrete else stable), rest


def _joined(G: StateSpace, reduced: StateSpace, rest: StateSpace) -> StateSpace:
    reduced = from_bilinear(reduced, G.dt) if G.is_discrete else reduced
    whole = parallel(reduced, rest) if rest.order else reduced
    return dataclasses.replace(
        whole,
        state_names=tuple(f"x{k}" for k in range(whole.order)),
        state_units=("",) * whole.order,
        input_names=G.input_names,
        output_names=G.output_names,
        input_units=G.input_units,
        output_units=G.output_units,
    )


def _order(
    function: str, G: StateSpace, values: Array, kept: int, order: int | None, tolerance: float | None
) -> int:
    """How many states of the stable part are kept."""
    if (order is None) == (tolerance is None):
        raise ArgumentError(f"{function}: give either order or tolerance")
    if order is None:
        tails = 2 * np.concatenate([np.cumsum(values[::-1])[::-1], [0.0]])
        return (
            int(np.flatnonzero(tails <= tolerance)[0])
            if tolerance is not None and tolerance >= 0
            else len(values)
        )
    _check_order(function, G, kept, order)
    k = int(order) - kept
    rank = int(np.count_nonzero(values > 1e-13 * values[0])) if len(values) else 0
    if k < len(values) and 0 < k < rank and values[k - 1] - values[k] < 1e-9 * values[k - 1]:
        raise ArgumentError(
            f"{function}: the singular values {k} and {k + 1} are equal ({values[k]:.6g}); "
            f"take {order - 1} or {order + 1} states"
        )
    return min(k, rank) if k < len(values) else len(values)


def _check_order(function: str, G: StateSpace, kept: int, order: int) -> None:
    if order != int(order) or not kept <= order <= G.order:
        raise ArgumentError(
            f"{function}: order is {order}, expected {kept} to {G.order}; {kept} poles are not stable, and are kept"
        )


def _projected(G: StateSpace, S: Array, R: Array, k: int) -> StateSpace:
    """(1)"""
    if k >= G.order:
        return G
    if k == 0:
        return G.with_matrices(np.zeros((0, 0)), np.zeros((0, G.shape[1])), np.zeros((G.shape[0], 0)))
    U, _, Vt = np.linalg.svd(R.T @ S)
    T, W = np.linalg.qr(S @ Vt[:k].T)[0], np.linalg.qr(R @ U[:, :k])[0]
    left = np.linalg.solve(W.T @ T, W.T)
    return G.with_matrices(left @ G.A @ T, left @ G.B, G.C @ T)


def _balanced(G: StateSpace, S: Array, R: Array, n: int) -> StateSpace:
    """The n states of the largest singular values, balanced."""
    U, s, Vt = np.linalg.svd(R.T @ S)
    root = np.sqrt(s[:n])
    T, W = S @ Vt[:n].T / root, R @ U[:, :n] / root
    return G.with_matrices(W.T @ G.A @ T, W.T @ G.B, G.C @ T)


def _residualised(G: StateSpace, S: Array, R: Array, k: int) -> StateSpace:
    values = np.linalg.svd(R.T @ S, compute_uv=False)
    b = _balanced(G, S, R, int(np.count_nonzero(values > 1e-13 * values[0])))
    if k >= b.order:
        return b
    A, B, C, D = b.matrices
    X = np.linalg.solve(A[k:, k:], np.hstack([A[k:, :k], B[k:]]))
    return G.with_matrices(
        A[:k, :k] - A[:k, k:] @ X[:, :k],
        B[:k] - A[:k, k:] @ X[:, k:],
        C[:, :k] - C[:, k:] @ X[:, :k],
        D - C[:, k:] @ X[:, k:],
    )
