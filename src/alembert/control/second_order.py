"""Mechanical systems that stay of second order.

    M q'' + D q' + K q = F u,        y = C_q q + C_v q'                                                      (1)

Frequency responses come from the undamped modes, K Phi = M Phi Omega^2, in which M and K are diagonal,

    G(jw) = (C_q + jw C_v) Phi (Omega^2 - w^2 + jw Phi^T D Phi)^-1 Phi^T F,                                  (2)

and from n numbers a frequency where damping is modal, Phi^T D Phi = diag(2 zeta omega). Position singular values are
sqrt(eig(P_q Q_q)) of the position blocks of the gramians (Meyer and Srinivasan 1996, "Balancing and model reduction for
second-order form linear systems", IEEE Trans. Automatic Control 41); balancing these blocks and truncating leaves a
system of the form (1), for all frequencies or by the gramians of a band (Gawronski and Juang 1990).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert.control import arguments
from alembert.control.gramian import Lyapunov, band_factor, semidefinite_root
from alembert.control.responses import FrequencyResponse, ResponseEvaluator
from alembert.control.statespace import StateSpace
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray
_LARGE = 2000
"""frequencies times positions from which one reduction is cheaper than a solution for each frequency"""


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """(1); `C_v` left out is zero."""

    M: Array
    D: Array
    K: Array
    F: Array
    C_q: Array
    C_v: Array = None  # type: ignore[assignment]
    input_names: tuple[str, ...] = None  # type: ignore[assignment]
    output_names: tuple[str, ...] = None  # type: ignore[assignment]

    if TYPE_CHECKING:

        def __init__(
            self,
            M: Any,
            D: Any,
            K: Any,
            F: Any,
            C_q: Any,
            C_v: Any = None,
            input_names: Any = None,
            output_names: Any = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        what = "SecondOrder"
        M = arguments.square(what, "M", self.M)
        n = len(M)
        D, K = (arguments.matrix(what, name, getattr(self, name), n, n) for name in "DK")
        F = arguments.matrix(what, "F", self.F, rows=n)
        C_q = arguments.matrix(what, "C_q", self.C_q, columns=n)
        C_v = np.zeros_like(C_q) if self.C_v is None else arguments.matrix(what, "C_v", self.C_v, len(C_q), n)
        if not np.allclose(M, M.T, rtol=1e-10, atol=1e-12 * np.abs(M).max()) or np.linalg.eigvalsh(M)[0] <= 0:
            raise ArgumentError(f"SecondOrder: M has the eigenvalue {np.linalg.eigvalsh(M)[0]:.4g}, expected a symmetric, "
                                "positive definite mass matrix")  # fmt: skip
        named = {
            "input_names": arguments.names(what, "input_names", self.input_names, F.shape[1], "u"),
            "output_names": arguments.names(what, "output_names", self.output_names, len(C_q), "y"),
        }
        for name, value in {"M": M, "D": D, "K": K, "F": F, "C_q": C_q, "C_v": C_v, **named}.items():
            object.__setattr__(self, name, value)

    @property
    def size(self) -> int:
        """The number of positions."""
        return len(self.M)

    def to_statespace(self) -> StateSpace:
        """With the states (q, q')."""
        n = self.size
        X = scipy.linalg.solve(self.M, np.hstack([-self.K, -self.D, self.F]), assume_a="pos")
        return StateSpace(
            np.block([[np.zeros((n, n)), np.eye(n)], [X[:, : 2 * n]]]),
            np.vstack([np.zeros_like(self.F), X[:, 2 * n :]]),
            np.hstack([self.C_q, self.C_v]),
            input_names=self.input_names,
            output_names=self.output_names,
            state_names=tuple(f"{kind}{k}" for kind in "qv" for k in range(n)),
        )

    def poles(self) -> Array:
        return self.to_statespace().poles()

    def frequency_response(self, frequency: Any) -> FrequencyResponse:
        """(2)"""
        w = arguments.frequencies("frequency_response", frequency)
        modes = self.in_modes() if _symmetric(self.K) else self
        f = modes.F
        damping = np.diag(modes.D)
        modal = _symmetric(self.K) and np.abs(modes.D - np.diag(damping)).max() <= 1e-12 * np.abs(
            modes.D
        ).max(initial=1e-300)
        if modal:
            with np.errstate(divide="ignore", invalid="ignore"):
                weights = 1 / (np.diag(modes.K) - w[:, None] ** 2 + 1j * w[:, None] * damping)
                X = weights[:, :, None] * f
        elif len(w) * self.size > _LARGE:
            # one reduction of the system of first order, and little for each frequency
            G = self.to_statespace()
            response = ResponseEvaluator(G.A, G.B, G.C, G.D)(1j * w)
            if not np.all(np.isfinite(response)):
                raise NumericalError("frequency_response: one of the frequencies is that of an undamped mode")
            return FrequencyResponse(w, response, self.output_names, self.input_names)
        else:
            s = 1j * w[:, None, None]
            try:
                X = np.linalg.solve(modes.K + s * modes.D + s**2 * modes.M, f[None].astype(complex))
            except np.linalg.LinAlgError:
                X = np.full((1, 1, 1), np.nan)
        if not np.all(np.isfinite(X)):
            raise NumericalError("frequency_response: one of the frequencies is that of an undamped mode")
        C = modes.C_q + 1j * w[:, None, None] * modes.C_v
        return FrequencyResponse(w, C @ X, self.output_names, self.input_names)

    def in_modes(self) -> SecondOrder:
        """In undamped modes of unit mass, by frequency: M = 1, K = diag(omega^2)."""
        values, Phi = scipy.linalg.eigh((self.K + self.K.T) / 2, self.M)
        if not _symmetric(self.K):
            raise ArgumentError("in_modes: K is not symmetric; circulatory forces have no real modes")
        return self._in(Phi.T, Phi, K=np.diag(values), M=np.eye(self.size))

    def truncated(self, keep: Any) -> SecondOrder:
        """Only the undamped modes with these numbers (from 0, by frequency); couplings by damping to others are dropped."""
        m = self.in_modes()
        at = arguments.picked("truncated", "keep", [f"mode {k}" for k in range(self.size)], keep)
        return SecondOrder(
            m.M[np.ix_(at, at)], m.D[np.ix_(at, at)], m.K[np.ix_(at, at)], m.F[at], m.C_q[:, at], m.C_v[:, at],
            self.input_names, self.output_names,
        )  # fmt: skip

    def position_singular_values(self, *, band: tuple[float, float] | None = None) -> Array:
        """sqrt(eig(P_q Q_q)), largest first; of frequencies in the `band` (rad/s) only, if it is given."""
        return self._position_balance(band)[1]

    def reduced(self, size: int, *, band: tuple[float, float] | None = None) -> SecondOrder:
        """`size` positions: P_q and Q_q balanced, the rest left out. Stable where the result says so; no bound is known.

        With `band`, from one frequency to another in rad/s, only these count in P_q and Q_q.
        """
        if not 0 < size <= self.size:
            raise ArgumentError(f"reduced: size is {size!r}, expected 1 to {self.size} positions")
        (S, R), values, U, V = self._position_balance(band)
        scale = np.sqrt(values[:size])
        T, W = S @ V[:size].T / scale, R @ U[:, :size] / scale  # W^T T = 1
        # in the coordinates q = T z the equation of motion is M^-1 (1), projected along W
        left = np.linalg.solve(self.M.T, W).T
        E = left @ self.M @ T
        return self._in(np.linalg.solve(E, left), T, M=np.eye(size))

    def _position_balance(
        self, band: tuple[float, float] | None = None
    ) -> tuple[tuple[Array, Array], Array, Array, Array]:
        G, n = self.to_statespace(), self.size
        if not G.is_stable:
            raise NumericalError(
                "position_singular_values: the system is not stable; damp or leave out its rigid modes first"
            )
        equation = Lyapunov(G.A)
        P, Q = equation.solve(G.B @ G.B.T), equation.adjoint(G.C.T @ G.C)
        S, R = (semidefinite_root(_within(A, X, band)[:n, :n]) for A, X in ((G.A, P), (G.A.T, Q)))
        U, s, V = np.linalg.svd(R.T @ S)
        return (S, R), s, U, V

    __array_ufunc__ = None

    def __rmul__(self, other: Any) -> StateSpace:
        return other * self.to_statespace()

    def __mul__(self, other: Any) -> StateSpace:
        return self.to_statespace() * other

    def __add__(self, other: Any) -> StateSpace:
        return self.to_statespace() + other

    __radd__ = __add__

    def __neg__(self) -> StateSpace:
        return -self.to_statespace()

    def __sub__(self, other: Any) -> StateSpace:
        return self.to_statespace() - other

    def __rsub__(self, other: Any) -> StateSpace:
        return other - self.to_statespace()

    def __truediv__(self, number: float) -> StateSpace:
        return self.to_statespace() / number

    def __repr__(self) -> str:
        counts = (("position", self.size), ("input", self.F.shape[1]), ("output", len(self.C_q)))
        return f"<SecondOrder: {', '.join(f'{n} {what}' + 's' * (n != 1) for what, n in counts)}>"

    def _in(self, left: Array, T: Array, *, M: Array, K: Array | None = None) -> SecondOrder:
        K = left @ self.K @ T if K is None else K
        return SecondOrder(
            M,
            left @ self.D @ T,
            K,
            left @ self.F,
            self.C_q @ T,
            self.C_v @ T,
            self.input_names,
            self.output_names,
        )


def _within(A: Array, P: Array, band: tuple[float, float] | None) -> Array:
    if band is None:
        return P
    low, high = (float(x) for x in band)
    if not 0 <= low < high < np.inf:
        raise ArgumentError(f"reduced: band is {band!r}, expected two frequencies, the first smaller")
    found = band_factor(A, low, high) @ P
    return found + found.T


def _symmetric(K: Array) -> bool:
    return bool(np.abs(K - K.T).max() <= 1e-8 * np.abs(K).max(initial=1e-300))
