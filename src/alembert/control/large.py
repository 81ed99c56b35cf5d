"""Large sparse systems: gramians by factors of low rank, and balanced truncation with them.

    E x' = A x + B u,    y = C x,        A P E^T + E P A^T + B B^T = 0,        P ~ Z Z^T                                (1)

with sparse A and E of ten thousands of states. The alternating direction implicit iteration with factors (Li and White 2002;
in real arithmetic and with its residual at hand Benner, Kuerschner and Saak 2013) takes one sparse solve a step: with
W_0 = B and a shift a (Re a < 0)

    V = (A + a E)^-1 W,     W <- W - 2 a E V,     Z <- [Z, sqrt(-2 a) V];        residual of (1) = W W^T                (2)

a pair of complex shifts in one step with real numbers. Shifts are eigenvalues of the pencil projected on the last columns of
Z. With both factors, P ~ Z Z^T and Q ~ Y Y^T, the singular values of Y^T E Z are the Hankel singular values, and their
vectors give the projection of `balanced_truncation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert.control.statespace import StateSpace
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray
_SHIFTS = 24  # kept of a projection


@dataclass(frozen=True, eq=False)
class LowRankGramian:
    """Z of (1), the residual relative to B B^T, and the number of sparse solves."""

    Z: Array
    residual: float
    solves: int


@dataclass(frozen=True, eq=False)
class LargeReduction:
    """The reduced system, and the Hankel singular values that are known; twice the sum of those left out estimates the error
    (it bounds it where both gramians are exact)."""

    system: StateSpace
    singular_values: Array
    estimate: float


class LargeSystem:
    """(1); sparse or dense matrices, E the unit matrix when left out."""

    def __init__(self, A: Any, B: Any, C: Any, E: Any = None) -> None:
        self.A = scipy.sparse.csc_matrix(A, dtype=float)
        n = self.A.shape[0]
        self.E = (
            scipy.sparse.identity(n, format="csc") if E is None else scipy.sparse.csc_matrix(E, dtype=float)
        )
        self.B = _filled(B)
        self.C = _filled(C)
        shapes = self.A.shape, self.E.shape, self.B.shape, self.C.shape
        if self.A.shape != (n, n) or self.E.shape != (n, n) or self.B.shape[0] != n or self.C.shape[1] != n:
            raise ArgumentError(f"LargeSystem: A, E, B and C have shapes {shapes}, which do not fit")
        for name, part in (("A", self.A.data), ("E", self.E.data), ("B", self.B), ("C", self.C)):
            if not np.all(np.isfinite(part)):
                raise ArgumentError(f"LargeSystem: {name} has entries that are not finite")

    @classmethod
    def of_second_order(cls, M: Any, D: Any, K: Any, F: Any, C_q: Any, C_v: Any = None) -> LargeSystem:
        """M q'' + D q' + K q = F u, y = C_q q + C_v q', with the states (q, q'); M is not inverted."""
        M, D, K = (scipy.sparse.csc_matrix(X, dtype=float) for X in (M, D, K))
        n = M.shape[0]
        F, C_q = _filled(F), _filled(C_q)
        C_v = np.zeros_like(C_q) if C_v is None else _filled(C_v)
        one = scipy.sparse.identity(n, format="csc")
        A = scipy.sparse.bmat([[None, one], [-K, -D]], format="csc")
        E = scipy.sparse.bmat([[one, None], [None, M]], format="csc")
        return cls(A, np.vstack([np.zeros_like(F), F]), np.hstack([C_q, C_v]), E)

    @property
    def order(self) -> int:
        return int(self.A.shape[0])

    def gramian(self, kind: str = "inputs", *, tolerance: float = 1e-10, most: int = 400) -> LowRankGramian:
        """Z of (1) for the "inputs", or Y for the "outputs", to a relative residual."""
        if kind not in ("inputs", "outputs"):
            raise ArgumentError(f"gramian: kind is {kind!r}, expected 'inputs' or 'outputs'")
        if kind == "inputs":
            return low_rank_gramian(self.A, self.B, self.E, tolerance=tolerance, most=most)
        return low_rank_gramian(self.A.T.tocsc(), self.C.T, self.E.T.tocsc(), tolerance=tolerance, most=most)

    def reduced(self, order: int, *, tolerance: float = 1e-10) -> LargeReduction:
        """Balanced truncation to `order` states."""
        Z, Y = (self.gramian(kind, tolerance=tolerance).Z for kind in ("inputs", "outputs"))
        U, s, Vt = np.linalg.svd(Y.T @ (self.E @ Z))
        known = int(np.count_nonzero(s > 1e-14 * s[0]))
        if not 0 < order <= known:
            raise ArgumentError(
                f"reduced: order is {order!r}, expected 1 to {known}, the singular values that are known"
            )
        T, W = np.linalg.qr(Z @ Vt[:order].T)[0], np.linalg.qr(Y @ U[:, :order])[0]
        left = np.linalg.solve(W.T @ (self.E @ T), W.T)
        system = StateSpace(left @ (self.A @ T), left @ self.B, self.C @ T)
        return LargeReduction(system, s, 2 * float(np.sum(s[order:])))

    def at(self, s: complex) -> Array:
        """G(s), by one sparse solve."""
        solved = scipy.sparse.linalg.splu((s * self.E - self.A).tocsc().astype(complex)).solve(
            self.B.astype(complex)
        )
        return np.asarray(self.C @ solved)


def low_rank_gramian(
    A: Any, B: Array, E: Any, *, tolerance: float = 1e-10, most: int = 400
) -> LowRankGramian:
    """(2)"""
    W = np.array(B, dtype=float)
    first = float(np.linalg.norm(W.T @ W, 2))
    if first == 0:
        return LowRankGramian(np.zeros((A.shape[0], 1)), 0.0, 0)
    parts: list[Array] = []
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(np.hstack([W, rng.normal(size=(len(W), max(2, 8 - W.shape[1])))]))[0]
    shifts = _projected(A, E, basis)
    solves, residual = 0, 1.0
    while residual > tolerance:
        if solves >= most:
            raise NumericalError(
                f"gramian: after {solves} solves the residual is {residual:.2g}, above {tolerance:g}; lightly damped modes "
                "need many (most=...), a system that is not stable has no gramian"
            )
        if not shifts:
            last = np.hstack(parts[-4:])
            shifts = _projected(A, E, np.linalg.qr(last)[0])
        a = shifts.pop(0)
        factor = scipy.sparse.linalg.splu((A + (a if a.imag else a.real) * E).tocsc())
        solves += 1
        if a.imag == 0:
            V = factor.solve(W)
            W = W - 2 * a.real * (E @ V)
            parts.append(np.sqrt(-2 * a.real) * V)
        else:
            V = factor.solve(W.astype(complex))
            g, d = 2 * np.sqrt(-a.real), a.real / a.imag
            mixed = V.real + d * V.imag
            W = W + g**2 * (E @ mixed)
            parts.append(np.hstack([g * mixed, g * np.sqrt(d * d + 1) * V.imag]))
        residual = float(np.linalg.norm(W.T @ W, 2)) / first
        if not np.isfinite(residual):
            raise NumericalError("gramian: the iteration diverges; is the system stable?")
        if len(parts) % 20 == 0:
            parts = [_compressed(np.hstack(parts))]
    return LowRankGramian(_compressed(np.hstack(parts)), residual, solves)


def _compressed(Z: Array) -> Array:
    """The same Z Z^T to rounding, with fewer columns."""
    Q, R = np.linalg.qr(Z)
    U, s, _ = np.linalg.svd(R)
    keep = s > 1e-15 * s[0]
    return np.asarray(Q @ (U[:, keep] * s[keep]))


def _projected(A: Any, E: Any, basis: Array) -> list[Any]:
    """Stable eigenvalues of the pencil on a subspace, one of each pair, the slowest ones first."""
    values = scipy.linalg.eigvals(basis.T @ (A @ basis), basis.T @ (E @ basis))
    values = values[np.isfinite(values) & (np.abs(values) > 0)]
    values = np.where(values.real < 0, values, -values.conj())  # what the projection puts on the wrong side
    values = values[(values.imag >= 0) & (values.real < 0)]
    if not len(values):
        raise NumericalError("gramian: no stable shifts were found; is the system stable?")
    small = np.abs(values.imag) <= 1e-8 * np.abs(values)
    found = [complex(x.real, 0.0) if flat else complex(x) for x, flat in zip(values, small, strict=True)]
    return sorted(found, key=lambda x: abs(x))[:_SHIFTS]


def _filled(X: Any) -> Array:
    return np.atleast_2d(np.asarray(X.toarray() if scipy.sparse.issparse(X) else X, dtype=float))
