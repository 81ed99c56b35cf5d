"""Descriptor systems: equations of motion together with algebraic ones.

    E x' = A x + B u,    y = C x + D u,       E may be singular, the pencil s E - A regular                          (1)

With M = (s0 E - A)^-1 E for some s0 that is no pole, the state splits into the range of M^k, where M is regular, and the
null space of M^k, where it is nilpotent (k the index): with H = (s0 E - A)^-1 B,

    x_1' = M_1^-1 ((s0 M_1 - 1) x_1 + H_1 u),       x_2 = sum_i (s0 - s)^i M_2^i H_2 u                              (2)

The first part has the finite poles. The second is a polynomial in s: a direct part, and derivatives of the input where the
system is not proper. Ranges are found step by step with orthogonal bases, so that chains of infinite poles (constraints on
positions have index three) need no eigenvalues that are zero to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert.control import arguments
from alembert.control.norms import PeakGain
from alembert.control.responses import FrequencyResponse
from alembert.control.statespace import StateSpace
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray
RANK = 1e-10
"""relative: what is smaller counts as zero"""


@dataclass(frozen=True, eq=False)
class Descriptor:
    """(1), continuous or sampled every `dt` seconds."""

    E: Array
    A: Array
    B: Array
    C: Array
    D: Array = None  # type: ignore[assignment]
    dt: float = 0.0

    if TYPE_CHECKING:

        def __init__(self, E: Any, A: Any, B: Any, C: Any, D: Any = None, dt: float = 0.0) -> None: ...

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
        for name, value in (("E", E), ("A", A), ("B", B), ("C", C), ("D", D)):
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
    def _shift(self) -> float:
        size = max(float(np.linalg.norm(self.A)), 1e-300) / max(float(np.linalg.norm(self.E)), 1e-300)
        best, value = np.inf, 0.0
        for s in size * np.array([1.0, 0.37, 2.9, 0.11, 7.3]):
            condition = float(np.linalg.cond(s * self.E - self.A))
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
        M = np.linalg.solve(self._shift * self.E - self.A, self.E)
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
        solved = np.linalg.solve(s0 * self.E - self.A, np.hstack([self.E @ T, self.B]))
        n = self.order
        M, H, C = inverse @ solved[:, :n], inverse @ solved[:, n:], self.C @ T
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
        return StateSpace(A, B, C[:, :k], self.D + powers[0], self.dt), powers[1:]

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
