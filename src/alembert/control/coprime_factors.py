"""Normalised coprime factors: the gap between systems, and robust stabilisation of a shaped loop.

G = N M^-1 with stable N and M, N^~ N + M^~ M = 1. With S = 1 + D^T D and the stabilising X of (A, B, C^T C, S, C^T D),

    F = -S^-1 (D^T C + B^T X),        [N; M] = (A + B F, B S^-1/2, [C + D F; F], [D; 1] S^-1/2)                       (1)

(Meyer and Franklin 1987; Vidyasagar 1988). The nu-gap (Vinnicombe 1993) is the largest gain of M~_2 N_1 - N~_2 M_1,
or one where the winding number of det(N_2^~ N_1 + M_2^~ M_1) is not zero; the gap is the larger of inf_Q |[N_1; M_1]
- [N_2; M_2] Q| and its converse (Georgiou 1988). A controller that stabilises G with

    b = 1 / |[1; K] (1 - G K)^-1 [1  G]|                                                                             (2)

stabilises every system nearer than b to G. With X as above and the filter's Z, the largest b is (1 + rho(X Z))^-1/2,
and (Glover and McFarlane 1989), W = 1 + X Z - g^2,

    K = (A + B F + g^2 W^-T Z C^T (C + D F),  g^2 W^-T Z C^T,  B^T X,  -D^T)                                          (3)

reaches 1/g for every g above the least one. Loops are closed by u = K y (positive feedback).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert.arguments import real
from alembert.control.arguments import takes_systems
from alembert.control.hinf import hinfsyn
from alembert.control.interconnection import alike, append, close, common_dt, same_units, series, static
from alembert.control.norms import linf_norm
from alembert.control.reachability import lost_modes, refuse_lost_modes
from alembert.control.responses import bilinear, from_bilinear
from alembert.control.riccati import care
from alembert.control.statespace import StateSpace
from alembert.control.transfer import weight_of
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class LoopShaping:
    """`controller` = W1 K W2 for u = K y; `margin` is b of (2) for the shaped plant, computed from the closed loop."""

    controller: StateSpace
    inner: StateSpace
    """K alone, of the shaped plant W2 G W1"""
    margin: float
    best_margin: float
    """no controller has a larger one"""

    @property
    def gamma(self) -> float:
        return 1 / self.margin

    @property
    def least_gamma(self) -> float:
        return 1 / self.best_margin


@takes_systems()
def coprime(G: StateSpace) -> tuple[StateSpace, StateSpace]:
    """(N, M) of (1), right normalised coprime factors."""
    return _coprime("coprime", G, G)


def _coprime(function: str, G: StateSpace, named: StateSpace) -> tuple[StateSpace, StateSpace]:
    """Of G; `named` is the system that the caller was given, for messages."""
    twin = bilinear(G) if G.is_discrete else G
    A, B, C, D = twin.matrices
    S = np.eye(D.shape[1]) + D.T @ D
    try:
        F = -care(A, B, C.T @ C, S, C.T @ D).K
    except NumericalError as error:
        raise refuse_lost_modes(function, named, error) from None
    root = np.linalg.inv(scipy.linalg.sqrtm(S).real)
    N = StateSpace(A + B @ F, B @ root, C + D @ F, D @ root)
    M = StateSpace(A + B @ F, B @ root, F, root)
    return (from_bilinear(N, G.dt), from_bilinear(M, G.dt)) if G.is_discrete else (N, M)


@takes_systems()
def nu_gap(G1: StateSpace, G2: StateSpace) -> float:
    """The nu-gap of two systems with the same signals, between 0 and 1."""
    given = G1, G2
    G1, G2 = _pair("nu_gap", G1, G2)
    N1, M1 = _coprime("nu_gap", G1, given[0])
    N2, M2 = _coprime("nu_gap", G2, given[1])
    inner = _stack(N2, M2).adjoint() * _stack(N1, M1)
    # det(...) has the poles of the antistable factor to the right; the winding number is zero if as many zeros are there
    D = inner.D
    if np.linalg.svd(D, compute_uv=False)[-1] < 1e-12:
        return 1.0
    zeros = np.linalg.eigvals(inner.A - inner.B @ np.linalg.solve(D, inner.C)) if inner.order else np.zeros(0)
    if np.any(np.abs(zeros.real) < 1e-12 * np.maximum(np.abs(zeros), 1e-300)):
        return 1.0
    if np.count_nonzero(zeros.real > 0) != G2.order:
        return 1.0
    N2_left, M2_left = (X.dual() for X in coprime(G2.dual()))
    difference = M2_left * N1 - N2_left * M1
    return min(1.0, linf_norm(difference).gain)


@takes_systems()
def gap(G1: StateSpace, G2: StateSpace) -> float:
    """The gap of two systems with the same signals, between 0 and 1; no smaller than the nu-gap."""
    pair = _pair("gap", G1, G2)
    first, second = (_stack(*_coprime("gap", twin, G)) for twin, G in zip(pair, (G1, G2), strict=True))
    below = nu_gap(G1, G2)
    return below if below == 1 else max(below, _directed(first, second), _directed(second, first))


@takes_systems(gains=True)
def ncf_margin(G: StateSpace, K: StateSpace, *, sign: int = -1) -> float:
    """b of (2), with negative feedback unless `sign` is 1; zero where the loop is not stable."""
    K = K if sign == 1 else -K
    p, m = G.shape
    if K.shape != (m, p):
        raise ArgumentError(
            f"ncf_margin: K has shape {K.shape}, expected ({m}, {p}), from the outputs of G to its inputs"
        )
    common_dt("ncf_margin", [G, K])
    same_units("ncf_margin", G.output_names, G.output_units, K.input_names, K.input_units)
    same_units("ncf_margin", K.output_names, K.output_units, G.input_names, G.input_units)
    both = append(G, K)
    # from disturbances at the input of G and of K to both outputs
    F = np.block([[np.zeros((m, p)), np.eye(m)], [np.eye(p), np.zeros((p, m))]])
    loop = close("ncf_margin", both, F)
    # [1; K](1 - G K)^-1 [1 G]: from (d_y, d_u) to (y, u) with d_y counted in y
    whole = loop + static(np.block([[np.zeros((p, m)), np.eye(p)], [np.zeros((m, m + p))]]), dt=G.dt)
    if not whole.is_stable:
        return 0.0
    return 1 / linf_norm(whole).gain


@takes_systems()
def ncfsyn(G: StateSpace, W1: Any = 1.0, W2: Any = 1.0, *, factor: float = 1.1) -> LoopShaping:
    """The controller (3) of the shaped plant W2 G W1, at `factor` times the least g; u = W1 K W2 y."""
    real("ncfsyn", "factor", factor, "1 or more", least=1.0)
    W1, W2 = (_weight(name, W, k, G.dt) for name, W, k in (("W1", W1, G.shape[1]), ("W2", W2, G.shape[0])))
    common_dt("ncfsyn", [G, W1, W2])
    shaped = W2 * G * W1
    twin = bilinear(shaped) if shaped.is_discrete else shaped
    A, B, C, D = twin.matrices
    S, R = np.eye(D.shape[1]) + D.T @ D, np.eye(D.shape[0]) + D @ D.T
    try:
        X, Z = care(A, B, C.T @ C, S, C.T @ D), care(A.T, C.T, B @ B.T, R, B @ D.T)
    except NumericalError as error:
        raise refuse_lost_modes("ncfsyn", G if lost_modes(G) else shaped, error) from None
    least = float(np.sqrt(1 + np.abs(np.linalg.eigvals(X.X @ Z.X)).max(initial=0.0)))
    g = least * max(factor, 1 + 1e-6)
    F = -X.K
    W = np.eye(len(A)) + X.X @ Z.X - g**2 * np.eye(len(A))
    L = g**2 * np.linalg.solve(W.T, Z.X @ C.T)
    K = StateSpace(A + B @ F + L @ (C + D @ F), L, B.T @ X.X, -D.T)
    K = from_bilinear(K, G.dt) if shaped.is_discrete else K
    margin = ncf_margin(shaped, K, sign=1)
    if margin < (1 - 1e-6) / g:
        raise NumericalError(
            f"ncfsyn: the closed loop has the margin {margin:.6g}, expected {1 / g:.6g}; scale the signals"
        )
    K = K.renamed(inputs=[f"e{k}" for k in range(K.shape[1])])
    return LoopShaping(W1 * K * W2, K, margin, 1 / least)


def _directed(first: StateSpace, second: StateSpace) -> float:
    """inf_Q |[N1; M1] - [N2; M2] Q| over stable Q, as an H-infinity problem with y = w."""
    m = first.shape[1]
    both = series(append(first, second), static(np.hstack([np.eye(len(first.D)), -np.eye(len(first.D))])))
    P = StateSpace(
        both.A,
        both.B,
        np.vstack([both.C, np.zeros((m, both.order))]),
        np.vstack([both.D, np.hstack([np.eye(m), np.zeros((m, m))])]),
    )
    return min(1.0, hinfsyn(P, controls=m, measurements=m).upper)


def _pair(function: str, G1: StateSpace, G2: StateSpace) -> tuple[StateSpace, StateSpace]:
    if G1.shape != G2.shape or G1.dt != G2.dt:
        raise ArgumentError(
            f"{function}: the systems have shapes {G1.shape} and {G2.shape}, dt {G1.dt:g} and {G2.dt:g}, expected alike"
        )
    for kind in ("input", "output"):
        alike(function, kind, G1, G2)
    return (bilinear(G1), bilinear(G2)) if G1.is_discrete else (G1, G2)


def _stack(N: StateSpace, M: StateSpace) -> StateSpace:
    """[N; M], which have the same states."""
    return StateSpace(N.A, N.B, np.vstack([N.C, M.C]), np.vstack([N.D, M.D]))


def _weight(name: str, W: Any, size: int, dt: float) -> StateSpace:
    W = weight_of("ncfsyn", name, W, size, dt)
    if W.shape != (size, size):
        raise ArgumentError(f"ncfsyn: {name} has shape {W.shape}, expected ({size}, {size})")
    return W
