"""Systems in forms of their own: descriptor systems, mechanical ones of second order, large sparse ones.

**Descriptor systems**: equations of motion together with algebraic ones.

    E x' = A x + B u,    y = C x + D u,       E may be singular, the pencil s E - A regular                          (1)

With M = (s0 E - A)^-1 E for some s0 that is no pole, the state splits into the range of M^k, where M is regular, and the
null space of M^k, where it is nilpotent (k the index): with H = (s0 E - A)^-1 B,

    x_1' = M_1^-1 ((s0 M_1 - 1) x_1 + H_1 u),       x_2 = sum_i (s0 - s)^i M_2^i H_2 u                              (2)

The first part has the finite poles. The second is a polynomial in s: a direct part, and derivatives of the input where the
system is not proper. Ranges are found step by step with orthogonal bases, so that chains of infinite poles (constraints on
positions have index three) need no eigenvalues that are zero to rounding.

**Mechanical systems** that stay of second order.

    M q'' + D q' + K q = F u,        y = C_q q + C_v q'                                                      (3)

Frequency responses come from the undamped modes, K Phi = M Phi Omega^2, in which M and K are diagonal,

    G(jw) = (C_q + jw C_v) Phi (Omega^2 - w^2 + jw Phi^T D Phi)^-1 Phi^T F,                                  (4)

and from n numbers a frequency where damping is modal, Phi^T D Phi = diag(2 zeta omega). Position singular values are
sqrt(eig(P_q Q_q)) of the position blocks of the gramians (Meyer and Srinivasan 1996, "Balancing and model reduction for
second-order form linear systems", IEEE Trans. Automatic Control 41); balancing these blocks and truncating leaves a
system of the form (3), for all frequencies or by the gramians of a band (Gawronski and Juang 1990).

**Large sparse systems**: gramians by factors of low rank, and balanced truncation with them.

    E x' = A x + B u,    y = C x,        A P E^T + E P A^T + B B^T = 0,        P ~ Z Z^T                                (5)

with sparse A and E of ten thousands of states. The alternating direction implicit iteration with factors (Li and White 2002;
in real arithmetic and with its residual at hand Benner, Kuerschner and Saak 2013) takes one sparse solve a step: with
W_0 = B and a shift a (Re a < 0)

    V = (A + a E)^-1 W,     W <- W - 2 a E V,     Z <- [Z, sqrt(-2 a) V];        residual of (5) = W W^T                (6)

a pair of complex shifts in one step with real numbers. Shifts are eigenvalues of the pencil projected on the last columns of
Z, twice as many each time. With both factors, P ~ Z Z^T and Q ~ Y Y^T, the singular values of Y^T E Z are the Hankel
singular values, and their vectors give the projection of `balanced_truncation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert.arguments import choice, whole
from alembert.control import arguments
from alembert.control.gramian import Lyapunov, band_factor, semidefinite_root
from alembert.control.norms import PeakGain
from alembert.control.responses import FrequencyResponse, ResponseEvaluator
from alembert.control.statespace import StateSpace
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray
RANK = 1e-10
"""relative: what is smaller counts as zero"""


@dataclass(frozen=True, eq=False)
class Descriptor:
    """(1), continuous or sampled every `dt` seconds; names left out are u0, y0 and so on."""

    E: Array
    A: Array
    B: Array
    C: Array
    D: Array = None  # type: ignore[assignment]
    dt: float = 0.0
    input_names: tuple[str, ...] = None  # type: ignore[assignment]
    output_names: tuple[str, ...] = None  # type: ignore[assignment]

    if TYPE_CHECKING:

        def __init__(
            self,
            E: Any,
            A: Any,
            B: Any,
            C: Any,
            D: Any = None,
            dt: float = 0.0,
            input_names: Any = None,
            output_names: Any = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        what = "Descriptor"
        A = arguments.square(what, "A", self.A)
        n = len(A)
        E = arguments.matrix(what, "E", self.E, n, n)
        B = arguments.matrix(what, "B", self.B, rows=n)
        C = arguments.matrix(what, "C", self.C, columns=n)
        D = np.zeros((len(C), B.shape[1])) if self.D is None else self.D
        D = arguments.matrix(what, "D", D, len(C), B.shape[1])
        if not self.dt >= 0:
            raise ArgumentError(f"Descriptor: dt is {self.dt!r}, expected seconds, or 0 (continuous)")
        named = _signal_names(what, self.input_names, B.shape[1], self.output_names, len(C))
        for name, value in {"E": E, "A": A, "B": B, "C": C, "D": D, **named}.items():
            object.__setattr__(self, name, value)
        _ = self._shift  # a pencil that is singular is refused here

    @property
    def order(self) -> int:
        """The number of equations."""
        return len(self.A)

    @property
    def shape(self) -> tuple[int, int]:
        return self.D.shape[0], self.D.shape[1]

    @cached_property
    def _scaled(self) -> tuple[Array, Array, Array, Array]:
        """E, A, B and C, equations and states in other units, powers of two: logarithms of the entries have least squares
        (Curtis and Reid 1972, "On the automatic scaling of matrices for Gaussian elimination")."""
        X = np.abs(self.A) + self._size * np.abs(self.E)
        there = 1e-15 * np.minimum(X.max(axis=1, initial=0.0)[:, None], X.max(axis=0, initial=0.0)) < X
        logs = np.where(there, np.log2(np.where(there, X, 1.0)), 0.0)
        sums = np.concatenate([there.sum(axis=1), there.sum(axis=0)])
        normal = np.diag(sums) + np.block([[0.0 * logs, there], [there.T, 0.0 * logs]])
        found = np.linalg.lstsq(normal, -np.concatenate([logs.sum(axis=1), logs.sum(axis=0)]), rcond=None)[0]
        rows, columns = np.split(2.0 ** np.round(found), 2)
        both = rows[:, None] * columns
        return both * self.E, both * self.A, rows[:, None] * self.B, self.C * columns

    @property
    def _size(self) -> float:
        """Of s, where s E and A are of like size."""
        return max(float(np.linalg.norm(self.A)), 1e-300) / max(float(np.linalg.norm(self.E)), 1e-300)

    @cached_property
    def _shift(self) -> float:
        E, A, *_ = self._scaled
        size = max(float(np.linalg.norm(A)), 1e-300) / max(float(np.linalg.norm(E)), 1e-300)
        best, value = np.inf, 0.0
        for s in size * np.array([1.0, 0.37, 2.9, 0.11, 7.3]):
            condition = float(np.linalg.cond(s * E - A))
            if condition < best:
                best, value = condition, float(s)
        if best > 1e14:
            raise ArgumentError(
                "Descriptor: s E - A is singular for all s: the equations do not determine the state"
            )
        return value

    @cached_property
    def _parts(self) -> tuple[Array, Array, int, int]:
        """Bases of the two subspaces of (2), side by side, their inverse, the index, and the size of the first."""
        E, A, *_ = self._scaled
        M = np.linalg.solve(self._shift * E - A, E)
        reached, _ = _settled(M)
        kept, index = _settled(M.T)
        n, k = self.order, reached.shape[1]
        null = np.linalg.svd(kept.T)[2][kept.shape[1] :].T if kept.shape[1] else np.eye(n)
        if k + null.shape[1] != n:
            raise NumericalError(
                "Descriptor: finite and infinite poles cannot be told apart; scale the equations and the states"
            )
        T = np.hstack([reached, null])
        return T, np.linalg.inv(T), index, k

    @property
    def index(self) -> int:
        """0 where E is regular, 1 where the algebraic equations can be solved for their unknowns, and so on."""
        return self._parts[2]

    @cached_property
    def _split(self) -> tuple[StateSpace, list[Array]]:
        """The finite part with the direct one, and coefficients of s, s^2, ..."""
        T, inverse, index, k = self._parts
        s0 = self._shift
        E, A, B, C = self._scaled
        solved = np.linalg.solve(s0 * E - A, np.hstack([E @ T, B]))
        n = self.order
        M, H, C = inverse @ solved[:, :n], inverse @ solved[:, n:], C @ T
        M1, M2 = M[:k, :k], M[k:, k:]
        A = s0 * np.eye(k) - np.linalg.inv(M1) if k else np.zeros((0, 0))
        B = np.linalg.solve(M1, H[:k]) if k else np.zeros((0, self.shape[1]))
        powers = [np.zeros(self.shape) for _ in range(max(index, 1))]
        power, factor = H[k:], np.array([1.0])  # (s0 - s)^i, powers of s upwards
        for _ in range(max(index, 1)):
            term = C[:, k:] @ power
            for i, weight in enumerate(factor):
                powers[i] = powers[i] + weight * term
            power, factor = M2 @ power, np.convolve(factor, [s0, -1.0])
        small = 1e-12 * max(float(np.abs(C).max(initial=0.0) * np.abs(H).max(initial=0.0)), 1e-300)
        powers = [np.where(np.abs(x) > small, x, 0.0) for x in powers]  # no direct part by rounding
        names = self.input_names, self.output_names
        return StateSpace(A, B, C[:, :k], self.D + powers[0], self.dt, *names), powers[1:]

    @property
    def is_proper(self) -> bool:
        """Whether the response stays finite at high frequencies."""
        system, rest = self._split
        size = max(
            float(np.abs(system.D).max(initial=0.0)),
            float(np.abs(self.C).max() * np.abs(self.B).max()),
            1e-300,
        )
        return all(float(np.abs(x).max(initial=0.0)) <= 1e-9 * size for x in rest)

    def to_statespace(self) -> StateSpace:
        """The same response without the algebraic equations; refused where derivatives of the inputs go through."""
        system, rest = self._split
        if not self.is_proper:
            degree = max(k for k, x in enumerate(rest, start=1) if np.abs(x).max() > 0)
            raise ArgumentError(
                f"to_statespace: the system is not proper, its response grows with s^{degree} (index {self.index}): the "
                "outputs follow derivatives of the inputs. Take other outputs, or put a filter in front"
            )
        return system

    def poles(self) -> Array:
        """The finite ones."""
        return self._split[0].poles()

    def zeros(self) -> Array:
        """Transmission zeros: finite eigenvalues of the pencil [A - s E, B; C, D] of a square system."""
        p, m = self.shape
        if p != m:
            raise ArgumentError(
                f"zeros: the system has shape {self.shape}, expected as many outputs as inputs"
            )
        n = self.order
        left = np.block([[self.A, self.B], [self.C, self.D]])
        right = np.zeros_like(left)
        right[:n, :n] = self.E
        return Descriptor(right, left, np.zeros((n + m, 1)), np.zeros((1, n + m))).poles()

    def at(self, s: complex) -> Array:
        return np.asarray(self.C @ np.linalg.solve(s * self.E - self.A, self.B.astype(complex)) + self.D)

    def frequency_response(self, frequency: Any) -> FrequencyResponse:
        """By (2), derivatives of the inputs included."""
        w = arguments.frequencies("frequency_response", frequency)
        system, rest = self._split
        found = system.frequency_response(w)
        s = (np.exp(1j * w * self.dt) if self.dt else 1j * w)[:, None, None]
        response = found.response + sum(s**k * x for k, x in enumerate(rest, start=1))
        return FrequencyResponse(w, response, found.output_names, found.input_names)

    def hinf_norm(self) -> PeakGain:
        """Infinite where the system is not proper or not stable."""
        if not self.is_proper:
            return PeakGain(np.inf, np.inf, np.inf)
        return self.to_statespace().hinf_norm()

    def h2_norm(self) -> float:
        return self.to_statespace().h2_norm() if self.is_proper else np.inf

    def __repr__(self) -> str:
        return f"<Descriptor: {self.order} equations, shape {self.shape}, index {self.index}>"


def descriptor_of_second_order(
    M: Any, D: Any, K: Any, F: Any, C_q: Any, constraints: Any = None
) -> Descriptor:
    """M q'' + D q' + K q = F u + G^T r with G q = 0: states (q, q', r); index three where there are constraints."""
    what = "descriptor_of_second_order"
    M = arguments.square(what, "M", M)
    n = len(M)
    D, K = (arguments.matrix(what, name, X, n, n) for name, X in (("D", D), ("K", K)))
    F, C_q = arguments.matrix(what, "F", F, rows=n), arguments.matrix(what, "C_q", C_q, columns=n)
    G = (
        np.zeros((0, n))
        if constraints is None
        else arguments.matrix(what, "constraints", constraints, columns=n)
    )
    c = len(G)
    E = scipy.linalg.block_diag(np.eye(n), M, np.zeros((c, c)))
    Z = np.zeros
    A = np.block([[Z((n, n)), np.eye(n), Z((n, c))], [-K, -D, G.T], [G, Z((c, n + c))]])
    B = np.vstack([Z((n, F.shape[1])), F, Z((c, F.shape[1]))])
    return Descriptor(E, A, B, np.hstack([C_q, Z((len(C_q), n + c))]))


def _settled(M: Array) -> tuple[Array, int]:
    """An orthonormal basis of the range of M^k for the first k from which on it does not shrink, and that k."""
    basis, steps = np.eye(len(M)), 0
    while basis.shape[1]:
        U, s, _ = np.linalg.svd(M @ basis, full_matrices=False)
        rank = int(np.count_nonzero(s > RANK * max(float(np.linalg.norm(M, 2)), 1e-300)))
        if rank == basis.shape[1]:
            break
        basis, steps = U[:, :rank], steps + 1
    return basis, steps


def _signal_names(what: str, inputs: Any, m: int, outputs: Any, p: int) -> dict[str, tuple[str, ...]]:
    return {
        "input_names": arguments.names(what, "input_names", inputs, m, "u"),
        "output_names": arguments.names(what, "output_names", outputs, p, "y"),
    }


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """(3); `C_v` left out is zero."""

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
        named = _signal_names(what, self.input_names, F.shape[1], self.output_names, len(C_q))
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
        """(4)"""
        w = arguments.frequencies("frequency_response", frequency)
        modes = self.in_modes() if _symmetric(self.K) else self
        damping = np.diag(modes.D)
        modal = _symmetric(self.K) and np.abs(modes.D - np.diag(damping)).max() <= 1e-12 * np.abs(
            modes.D
        ).max(initial=1e-300)
        if not modal:
            G = self.to_statespace()
            response = ResponseEvaluator(G.A, G.B, G.C, G.D)(1j * w)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                weights = 1 / (np.diag(modes.K) - w[:, None] ** 2 + 1j * w[:, None] * damping)
                C = modes.C_q + 1j * w[:, None, None] * modes.C_v
                response = C @ (weights[:, :, None] * modes.F)
        if not np.all(np.isfinite(response)):
            raise NumericalError("frequency_response: one of the frequencies is that of an undamped mode")
        return FrequencyResponse(w, response, self.output_names, self.input_names)

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
        whole("reduced", "size", size, f"1 to {self.size} positions", most=self.size)
        (S, R), values, U, V = self._position_balance(band)
        scale = np.sqrt(values[:size])
        T, W = S @ V[:size].T / scale, R @ U[:, :size] / scale  # W^T T = 1
        # in the coordinates q = T z the equation of motion is M^-1 (3), projected along W
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


_LOOKS = 8
"""frequencies at which a reduced system is compared"""
_NARROW, _WIDE = 8, 400
"""columns that shifts are found on: at first, and at most. Many weakly damped modes need as many shifts at once: what two
dozen gain for some modes they lose for others"""


@dataclass(frozen=True, eq=False)
class LowRankGramian:
    """Z of (5), the residual relative to B B^T, and the number of sparse solves."""

    Z: Array
    residual: float
    solves: int


@dataclass(frozen=True, eq=False)
class LargeReduction:
    """The reduced system, and the Hankel singular values that are known.

    `estimate` is twice the sum of those left out, which bounds the error where both gramians are exact, or the error that is
    seen at zero frequency and at poles, if that is more.
    """

    system: StateSpace
    singular_values: Array
    estimate: float


class LargeSystem:
    """(5); sparse or dense matrices, E the unit matrix when left out; names left out are u0, y0 and so on."""

    def __init__(
        self, A: Any, B: Any, C: Any, E: Any = None, *, input_names: Any = None, output_names: Any = None
    ) -> None:
        what = "LargeSystem"
        self.A = _sparse(what, "A", A)
        n = self.A.shape[0]
        self.E = scipy.sparse.identity(n, format="csc") if E is None else _sparse(what, "E", E)
        self.B = _filled(what, "B", B, rows=n)
        self.C = _filled(what, "C", C, columns=n)
        named = _signal_names(what, input_names, self.B.shape[1], output_names, len(self.C))
        self.input_names, self.output_names = named["input_names"], named["output_names"]
        shapes = self.A.shape, self.E.shape, self.B.shape, self.C.shape
        if self.A.shape != (n, n) or self.E.shape != (n, n):
            raise ArgumentError(f"LargeSystem: A, E, B and C have shapes {shapes}, which do not fit")

    @classmethod
    def of_second_order(
        cls,
        M: Any,
        D: Any,
        K: Any,
        F: Any,
        C_q: Any,
        C_v: Any = None,
        *,
        input_names: Any = None,
        output_names: Any = None,
    ) -> LargeSystem:
        """M q'' + D q' + K q = F u, y = C_q q + C_v q', with the states (q, q'); M is not inverted."""
        what = "LargeSystem.of_second_order"
        M, D, K = (_sparse(what, name, X) for name, X in (("M", M), ("D", D), ("K", K)))
        n = M.shape[0]
        F, C_q = _filled(what, "F", F, rows=n), _filled(what, "C_q", C_q, columns=n)
        C_v = np.zeros_like(C_q) if C_v is None else _filled(what, "C_v", C_v, rows=len(C_q), columns=n)
        if D.shape != (n, n) or K.shape != (n, n) or M.shape != (n, n):
            raise ArgumentError(
                f"{what}: M, D and K have shapes {M.shape}, {D.shape} and {K.shape}, expected ({n}, {n})"
            )
        one = scipy.sparse.identity(n, format="csc")
        A = scipy.sparse.bmat([[None, one], [-K, -D]], format="csc")
        E = scipy.sparse.bmat([[one, None], [None, M]], format="csc")
        B, C = np.vstack([np.zeros_like(F), F]), np.hstack([C_q, C_v])
        return cls(A, B, C, E, input_names=input_names, output_names=output_names)

    @property
    def order(self) -> int:
        return int(self.A.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """(outputs, inputs)"""
        return len(self.C), self.B.shape[1]

    def __repr__(self) -> str:
        return f"<LargeSystem: {self.order} states, shape {self.shape}>"

    def gramian(self, kind: str = "inputs", *, tolerance: float = 1e-10, most: int = 800) -> LowRankGramian:
        """Z of (5) for the "inputs", or Y for the "outputs", to a relative residual."""
        choice("gramian", "kind", kind, ("inputs", "outputs"))
        arguments.relative("gramian", tolerance)
        whole("gramian", "most", most, "a whole number of one or more")
        if kind == "inputs":
            return low_rank_gramian(self.A, self.B, self.E, tolerance=tolerance, most=most)
        return low_rank_gramian(self.A.T.tocsc(), self.C.T, self.E.T.tocsc(), tolerance=tolerance, most=most)

    def reduced(self, order: int, *, tolerance: float = 1e-10, most: int = 800) -> LargeReduction:
        """Balanced truncation to `order` states; `tolerance` and `most` (sparse solves) are those of both gramians."""
        Z, Y = (self.gramian(kind, tolerance=tolerance, most=most).Z for kind in ("inputs", "outputs"))
        U, s, Vt = np.linalg.svd(Y.T @ (self.E @ Z))
        least = max(1e-14 * s[0], 1e-15 * float(np.linalg.norm(Y) * np.linalg.norm(self.E @ Z)))
        known = int(np.count_nonzero(s > least))
        if not known:
            raise ArgumentError("reduced: the inputs do not act on the outputs, nothing is left to reduce")
        whole("reduced", "order", order, f"1 to {known}, the singular values that are known", most=known)
        T, W = np.linalg.qr(Z @ Vt[:order].T)[0], np.linalg.qr(Y @ U[:, :order])[0]
        left = np.linalg.solve(W.T @ (self.E @ T), W.T)
        names = self.input_names, self.output_names
        system = StateSpace(left @ (self.A @ T), left @ self.B, self.C @ T, None, 0.0, *names)
        if not system.is_stable:
            raise NumericalError(
                f"reduced: with {order} states the result is not stable: singular values of "
                f"{s[order - 1] / s[0]:.2g} of the first are rounding, or beyond gramians to a residual of {tolerance:g}. "
                "Take fewer states, or a smaller tolerance="
            )
        sizes = np.sort(np.abs(system.poles()))
        seen = [0.0, *sizes[np.linspace(0, order - 1, min(order, _LOOKS)).astype(int)]]
        errors = [float(np.linalg.norm(self.at(1j * w) - system.at(1j * w), 2)) for w in seen]
        return LargeReduction(system, s, max(2 * float(np.sum(s[order:])), *errors))

    def at(self, s: complex) -> Array:
        """G(s), by one sparse solve."""
        return np.asarray(self.C @ _factored("at", self.A, self.E, s).solve(-self.B.astype(complex)))

    def frequency_response(self, frequency: Any) -> FrequencyResponse:
        """G(jw), by one sparse solve for each frequency."""
        w = arguments.frequencies("frequency_response", frequency)
        return FrequencyResponse(
            w, np.array([self.at(1j * x) for x in w]), self.output_names, self.input_names
        )


def low_rank_gramian(
    A: Any, B: Array, E: Any, *, tolerance: float = 1e-10, most: int = 800
) -> LowRankGramian:
    """(6)"""
    W = np.array(B, dtype=float)
    first = float(np.linalg.norm(W.T @ W, 2))
    if first == 0:
        return LowRankGramian(np.zeros((A.shape[0], 1)), 0.0, 0)
    parts: list[Array] = []
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(np.hstack([W, rng.normal(size=(len(W), max(2, 8 - W.shape[1])))]))[0]
    shifts = _projected(A, E, basis)
    solves, residual, width = 0, 1.0, _NARROW
    newest: list[Array] = []
    while residual > tolerance:
        if solves >= most:
            raise NumericalError(
                f"gramian: after {solves} solves the residual is {residual:.2g}, above {tolerance:g}. A system that is not "
                "stable, or whose E is singular, has no gramian. Lightly damped modes need many solves (most=...), and all "
                "matter: keep those of interest, `k, Phi = scipy.sparse.linalg.eigsh(K, 50, M, sigma=0)` and "
                "`SecondOrder(np.eye(50), Phi.T @ D @ Phi, np.diag(k), Phi.T @ F, C_q @ Phi)`"
            )
        if not shifts:
            shifts = _projected(A, E, np.linalg.qr(np.hstack(newest)[:, -width:])[0])
            width = min(2 * width, _WIDE)
        a = shifts.pop(0)
        factor = _factored("gramian", A, E, -(a if a.imag else a.real))
        solves += 1
        if a.imag == 0:
            V = factor.solve(W)
            W = W - 2 * a.real * (E @ V)
            parts.append(np.sqrt(-2 * a.real) * V)
            newest.append(V)
        else:
            V = factor.solve(W.astype(complex))
            g, d = 2 * np.sqrt(-a.real), a.real / a.imag
            mixed = V.real + d * V.imag
            W = W + g**2 * (E @ mixed)
            parts.append(np.hstack([g * mixed, g * np.sqrt(d * d + 1) * V.imag]))
            newest.append(np.hstack([V.real, V.imag]))
        newest = newest[-_WIDE:]
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
    return sorted(found, key=lambda x: abs(x))


def _factored(function: str, A: Any, E: Any, s: complex) -> Any:
    """Of A - s E."""
    shifted = (A - s * E).tocsc()
    try:
        return scipy.sparse.linalg.splu(shifted.astype(complex) if function == "at" else shifted)
    except RuntimeError:
        why = (
            "it is a pole"
            if function == "at"
            else "the system is not stable, or E is singular, and there is no gramian"
        )
        raise NumericalError(f"{function}: A - s E is singular at s = {s:.6g}: {why}") from None


def _sparse(what: str, name: str, X: Any) -> Any:
    """Real and finite."""
    try:
        found = scipy.sparse.csc_matrix(X)
        found = found.real.astype(float) if found.dtype.kind != "c" or not np.any(found.data.imag) else None
    except (TypeError, ValueError):
        found = None
    if found is None:
        raise ArgumentError(
            f"{what}: {name} is of type {type(X).__name__}, expected a sparse or dense matrix of real numbers"
        )
    if not np.all(np.isfinite(found.data)):
        raise ArgumentError(f"{what}: {name} has entries that are not finite")
    return found


def _filled(what: str, name: str, X: Any, rows: int | None = None, columns: int | None = None) -> Array:
    return arguments.matrix(what, name, X.toarray() if scipy.sparse.issparse(X) else X, rows, columns)
