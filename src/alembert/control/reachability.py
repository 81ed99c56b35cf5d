"""Which part of the state the inputs reach, or the outputs see, by a staircase of orthogonal steps.

Starting from the range of B, every step adds what A makes of the last one and is new (Rosenbrock's staircase in
block Krylov form); orthogonal throughout, unlike the powers of A in the controllability matrix, which lose all
digits beyond some ten states. A and the columns of B are scaled to unit norm, so that `tolerance` is relative.

Transmission zeros and minimal realisations, by orthogonal steps.

Zeros of (A, B, C, D) are the s at which [A - s  B; C  D] has less than its usual rank. Rows and columns in which D is
deficient are taken out one after the other (Emami-Naeini and Van Dooren 1982, "Computation of zeros of linear
multivariable systems", Automatica 18), until a system with a square, regular D is left; its zeros are the generalised
eigenvalues of

    [A B; C D] W = [A_f *; 0 D_f],     [1 0] W = [B_f *],      det(A_f - s B_f) = 0                           (1)

Which modes inputs do not reach, for messages: the pole, what moves in it and how, and the states that take part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy

from alembert.errors import NumericalError

if TYPE_CHECKING:
    from alembert.control.statespace import StateSpace

Array = np.ndarray
_SHOWN = 12


@dataclass(frozen=True, eq=False)
class Reachability:
    """True when all of the state is reached (seen)."""

    rank: int
    size: int
    tolerance: float
    margin: float
    """the smallest singular value that was counted; close to the tolerance means nearly lost"""
    lost: Array
    """orthonormal directions that are not reached, one per row, (size - rank, size)"""
    state_names: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.rank == self.size

    def __str__(self) -> str:
        verdict = (
            f"rank {self.rank} of {self.size} (tolerance {self.tolerance:.1g}, margin {self.margin:.2g})"
        )
        if self:
            return verdict
        weight = np.linalg.norm(self.lost, axis=0)
        never = [name for name, w in zip(self.state_names, weight, strict=True) if w > 1 - 1e-9]
        mixed = [name for name, w in zip(self.state_names, weight, strict=True) if 1e-6 < w <= 1 - 1e-9]
        parts = [_listed(never)] if never else []
        count = self.size - self.rank - len(never)
        if count and mixed:
            parts.append(f"{count} combination{'s' * (count != 1)} of {_listed(mixed)}")
        return f"{verdict}; lost: {'; '.join(parts)}"


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:_SHOWN])}{f' and {len(names) - _SHOWN} more' if len(names) > _SHOWN else ''}"


def reachability(A: Array, B: Array, names: tuple[str, ...], tolerance: float) -> Reachability:
    size = len(A)
    lengths = np.linalg.norm(B, axis=0)
    new = B[:, lengths > 0] / lengths[lengths > 0]
    step = A / max(float(np.linalg.norm(A, 2)) if size else 0.0, np.finfo(float).tiny)
    basis, margin = np.zeros((size, 0)), float("inf")
    while new.shape[1] and basis.shape[1] < size:
        for _ in range(2):  # twice is enough for orthogonality
            new = new - basis @ (basis.T @ new)
        U, s, _ = np.linalg.svd(new, full_matrices=False)
        counted = s > tolerance
        if not counted.any():
            break
        margin = min(margin, float(s[counted].min()))
        basis = np.hstack([basis, U[:, counted]])
        new = step @ U[:, counted]
    rank = min(basis.shape[1], size)
    full = np.linalg.qr(np.hstack([basis, np.eye(size)]))[0] if size else basis
    return Reachability(rank, size, tolerance, margin if rank else 0.0, full[:, rank:size].T, names)


def transmission_zeros(G: StateSpace) -> Array:
    """By real part and then imaginary part; none where the system matrix has no normal rank to lose."""
    A, B, C, D = _equilibrated(G)
    tolerance = 1e3 * np.finfo(float).eps * float(np.linalg.norm(np.block([[A, B], [C, D]])) or 1.0)
    A, B, C, D = _without_rows(A, B, C, D, tolerance)
    A, B, C, D = _transposed(*_without_rows(*_transposed(A, B, C, D), tolerance))
    n, m = B.shape
    if not n:
        return np.zeros(0, dtype=complex)
    if not D.size:
        return (
            np.sort_complex(np.linalg.eigvals(A).astype(complex))
            if not m and not len(C)
            else np.zeros(0, complex)
        )
    # W puts the rows [C D] to the right: its null space comes first
    W = np.linalg.qr(np.hstack([C, D]).T, mode="complete")[0]
    W = np.hstack([W[:, len(D) :], W[:, : len(D)]])
    A_f = np.hstack([A, B]) @ W[:, :n]
    values = scipy.linalg.eigvals(A_f, W[:n, :n])
    return np.sort_complex(values[np.isfinite(values)].astype(complex))


def minimal(G: StateSpace, tolerance: float) -> StateSpace:
    """The part that inputs reach, and of it the part that outputs see."""
    for side in ("inputs", "outputs"):
        scaled = G.balanced_scales()
        pair = (scaled.A, scaled.B) if side == "inputs" else (scaled.A.T, scaled.C.T)
        found = reachability(*pair, scaled.state_names, tolerance)
        if not found:
            V = scipy.linalg.null_space(found.lost) if found.rank else np.zeros((G.order, 0))
            G = scaled.with_matrices(V.T @ scaled.A @ V, V.T @ scaled.B, scaled.C @ V)
    return G


def _equilibrated(G: StateSpace) -> tuple[Array, Array, Array, Array]:
    """Inputs, outputs and states in units that make rows and columns alike; zeros do not change."""
    scaled = G.balanced_scales()
    A, B, C, D = (x.copy() for x in scaled.matrices)
    size = np.abs(A).max(initial=0.0) or 1.0
    for axis, left, below in ((0, B, D), (1, C, D)):
        most = np.maximum(np.abs(left).max(axis=axis, initial=0.0), np.abs(below).max(axis=axis, initial=0.0))
        factor = np.exp2(np.round(np.log2(size / np.where(most > 0, most, size))))
        left *= factor if axis == 0 else factor[:, None]
        below *= factor if axis == 0 else factor[:, None]
    return A, B, C, D


def _transposed(A: Array, B: Array, C: Array, D: Array) -> tuple[Array, Array, Array, Array]:
    return A.T, C.T, B.T, D.T


def _without_rows(
    A: Array, B: Array, C: Array, D: Array, tolerance: float
) -> tuple[Array, Array, Array, Array]:
    """The same zeros with a D of full row rank."""
    while True:
        U, s, _ = np.linalg.svd(D, full_matrices=True) if D.size else (np.eye(len(D)), np.zeros(0), None)
        rank = int(np.count_nonzero(s > tolerance))
        if rank == len(D):
            return A, B, C, D
        C, D = U.T @ C, (U.T @ D)[:rank]
        C1, C2 = C[:rank], C[rank:]
        _, s, Vt = np.linalg.svd(C2, full_matrices=True) if C2.size else (None, np.zeros(0), np.eye(len(A)))
        r = int(np.count_nonzero(s > tolerance))
        if r == 0:
            return A, B, C1, D
        V = np.vstack([Vt[r:], Vt[:r]]).T  # what C2 does not see comes first
        A, B, C1 = V.T @ A @ V, V.T @ B, C1 @ V
        k = len(A) - r
        A, B, C, D = A[:k, :k], B[:k], np.vstack([C1[:, :k], A[k:, :k]]), np.vstack([D, B[k:]])


def unreached(A: Array, B: Array, *, discrete: bool = False) -> list[tuple[complex, Array]]:
    """Poles that are not stable and that B does not reach, each once, with the size of every state's part in what is lost.

    Left null vectors of [A - pole, B] (Popov, Belevitch, Hautus): of a multiple pole, only the part that is not reached.
    """
    found: list[tuple[complex, Array]] = []
    size = max(1.0, float(np.abs(A).max(initial=0.0)))
    for pole in np.linalg.eigvals(A):
        stable = abs(pole) < 1 - 1e-12 if discrete else pole.real < -1e-12 * size
        # multiple poles are found as clusters, their radius a root of rounding
        if stable or pole.imag < 0 or any(abs(pole - other) <= 1e-6 * size for other, _ in found):
            continue
        U, s, _ = np.linalg.svd(np.hstack([A - pole * np.eye(len(A)), B]))
        lost = U[:, s < 1e-10 * max(1.0, float(s[0]))]
        if lost.shape[1]:
            found.append((complex(pole) + 0.0, np.linalg.norm(lost, axis=1)))
    return found


def describe_unreached(A: Array, B: Array, names: Sequence[str], dt: float = 0.0) -> str:
    """`the pole 0.2 (states a, b: grows e-fold in 5 s)`; empty where all unstable modes are reached."""
    parts = []
    for pole, x in unreached(A, B, discrete=dt > 0):
        share = x / x.max()
        states = [names[k] for k in np.argsort(-share, kind="stable")[:4] if share[k] > 0.1]
        value = f"{pole.real + 0.0:.6g}" if pole.imag == 0 else f"{pole:.6g}"
        parts.append(f"the pole {value} (states {', '.join(states)}: {_motion(pole, states, dt)})")
    return " and ".join(parts)


def lost_modes(G: StateSpace) -> str:
    """What the inputs of G do not reach and what its outputs do not see, as one sentence; empty where nothing is lost."""
    parts = []
    if lost := describe_unreached(G.A, G.B, G.state_names, G.dt):
        parts.append(f"the inputs ({', '.join(G.input_names)}) do not reach {lost}")
    if lost := describe_unreached(G.A.T, G.C.T, G.state_names, G.dt):
        parts.append(f"the outputs ({', '.join(G.output_names)}) do not see {lost}")
    return "; ".join(parts)


def refuse_lost_modes(function: str, G: StateSpace, error: NumericalError) -> NumericalError:
    """The error of a Riccati equation of G, with the modes at its root where there are some."""
    return NumericalError(f"{function}: {lost_modes(G) or error}")


def _motion(pole: complex, states: Sequence[str], dt: float) -> str:
    """`a mode of 3 rad/s (0.477 Hz), damping ratio 0, of boom`"""
    if dt:
        pole = np.log(pole) / dt if pole else complex(-np.inf)
    size = abs(pole)
    # states of multibody models are called q:joint and v:joint
    joints = list(dict.fromkeys(name[2:] for name in states if name[:2] in ("q:", "v:")))
    of = f" of {', '.join(joints)}" if joints else ""
    if size < 1e-6:
        return f"free motion{of}"
    if abs(pole.imag) < 1e-9 * size:
        return f"{f'growth{of}' if of else 'grows'}, e-fold in {1 / size:.4g} s"
    damping = round(-pole.real / size, 9) + 0.0
    return f"a mode{of} at {size:.4g} rad/s ({size / (2 * np.pi):.3g} Hz), damping ratio {damping:.3g}"
