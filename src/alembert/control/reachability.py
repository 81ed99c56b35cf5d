"""Which part of the state the inputs reach, or the outputs see, and poles where they are wanted, by feedback.

Reachability is found by a staircase of orthogonal steps. Starting from the range of B, every step adds what A makes of the
last one and is new (Rosenbrock's staircase in block Krylov form); orthogonal throughout, unlike the powers of A in the
controllability matrix, which lose all digits beyond some ten states. A and the columns of B are scaled to unit norm, so
that `tolerance` is relative.

Transmission zeros and minimal realisations, by orthogonal steps.

Zeros of (A, B, C, D) are the s at which [A - s  B; C  D] has less than its usual rank. Rows and columns in which D is
deficient are taken out one after the other (Emami-Naeini and Van Dooren 1982, "Computation of zeros of linear
multivariable systems", Automatica 18), until a system with a square, regular D is left; its zeros are the generalised
eigenvalues of

    [A B; C D] W = [A_f *; 0 D_f],     [1 0] W = [B_f *],      det(A_f - s B_f) = 0                           (1)

Which modes inputs do not reach, for messages: the pole, what moves in it and how, and the states that take part.

Poles are placed by state feedback and by feedback of outputs. State feedback u = -K x is that of Tits and Yang (1996),
which makes the closed loop's eigenvectors well conditioned. A pole that is wanted more often than B has independent columns
has no such eigenvectors; with one input, whose gain is unique, it comes from the Hessenberg form H of A in which B is b e_1
(Datta 1987): K = e_n^T prod_i (H - l_i) / (b prod_i h_(i+1,i)).

Output feedback u = -K y, y = C x, by deflation (after Miminis 1985): a pole l with the eigenvector v is assigned by
some K with

    (A - l) v = B u,      K C v = u,                                                                                 (2)

and stays with v as long as further feedback does not see C v; so one output is used up for each real pole, two for a
pair. With one output c left, the poles of what remains (in coordinates in which the v come first) are those for which

    1 + c (l - A_r)^-1 B_r k = 0,                                                                                    (3)

linear in k: as many more poles as there are inputs; where l comes again, the derivatives of (3) vanish as well. In all,
inputs + outputs - 1 poles can be asked for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert.control.arguments import takes_systems
from alembert.control.statespace import StateSpace, state_scales
from alembert.errors import ArgumentError, NumericalError

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
    """In any units of the states: they are changed to some that make rows and columns of A alike."""
    A, B, states, _ = in_like_units(_without_rounding(A), _without_rounding(B))
    found = staircase(A, B, names, tolerance)
    if found:
        return found
    return dataclasses.replace(found, lost=np.linalg.qr(found.lost.T / states[:, None])[0].T)


def staircase(A: Array, B: Array, names: tuple[str, ...], tolerance: float) -> Reachability:
    """In the units given."""
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


def _without_rounding(X: Array) -> Array:
    """Units that make rows alike would make much of what rounding leaves in place of zeros."""
    return np.where(np.abs(X) > 4 * np.finfo(float).eps * np.abs(X).max(axis=0, initial=0.0), X, 0.0)


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


def in_like_units(A: Array, B: Array) -> tuple[Array, Array, Array, Array]:
    """A and B with states and inputs in units (powers of two) that make their rows and columns alike, and those units."""
    size = float(np.abs(A).max(initial=0.0)) or 1.0
    alone = np.abs(A).sum(axis=0) == np.abs(np.diag(A))  # states that act on no other one
    states = state_scales(A, B, size * np.diag(alone))
    A, B = A * states / states[:, None], B / states[:, None]
    size = float(np.abs(A).max(initial=0.0)) or 1.0
    most = np.abs(B).max(axis=0, initial=0.0)
    inputs = np.exp2(np.round(np.log2(size / np.where(most > 0, most, size))))
    return A, B * inputs, states, inputs


def unreached(
    A: Array, B: Array, *, discrete: bool = False, stable: bool = False
) -> list[tuple[complex, Array]]:
    """Poles that are not stable and that B does not reach, each once, with the size of every state's part in what is lost;
    with `stable` all poles that B does not reach.

    Left null vectors of [A - pole, B] (Popov, Belevitch, Hautus): of a multiple pole, only the part that is not reached.
    """
    A, B, _, _ = in_like_units(A, B)
    found: list[tuple[complex, Array]] = []
    size = max(1.0, float(np.abs(A).max(initial=0.0)))
    for pole in np.linalg.eigvals(A):
        settles = abs(pole) < 1 - 1e-12 if discrete else pole.real < -1e-12 * size
        # multiple poles are found as clusters, their radius a root of rounding
        if (
            (settles and not stable)
            or pole.imag < 0
            or any(abs(pole - other) <= 1e-6 * size for other, _ in found)
        ):
            continue
        U, s, _ = np.linalg.svd(np.hstack([A - pole * np.eye(len(A)), B]))
        lost = U[:, s < 1e-10 * max(1.0, float(s[0]))]
        if lost.shape[1]:
            found.append((complex(pole) + 0.0, np.linalg.norm(lost, axis=1)))
    return found


def describe_unreached(
    A: Array, B: Array, names: Sequence[str], dt: float = 0.0, *, stable: bool = False
) -> str:
    """`the pole 0.2 (states a, b: grows e-fold in 5 s)`; empty where all unstable modes (with `stable` all) are reached."""
    parts = []
    for pole, x in unreached(A, B, discrete=dt > 0, stable=stable):
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
        verb, noun = ("grows", "growth") if pole.real > 0 else ("decays", "decay")
        return f"{f'{noun}{of}' if of else verb}, e-fold in {1 / size:.4g} s"
    damping = round(-pole.real / size, 9) + 0.0
    return f"a mode{of} at {size:.4g} rad/s ({size / (2 * np.pi):.3g} Hz), damping ratio {damping:.3g}"


@dataclass(frozen=True, eq=False)
class PolePlacement:
    """The gain, and the poles that the closed loop has."""

    K: Array
    poles: Array
    error: float
    """of the pole that is farthest from where it was wanted"""


@takes_systems()
def place(plant: StateSpace, poles: Any) -> PolePlacement:
    """State feedback u = -K x; with several inputs, no pole more often than there are inputs."""
    A, B, states, inputs = in_like_units(plant.A, plant.B)
    reached = reachability(A, B, plant.state_names, 1e-10)
    if not reached:
        lost = describe_unreached(plant.A, plant.B, plant.state_names, plant.dt, stable=True)
        raise ArgumentError(
            f"place: the inputs do not reach all of the state: {f'not {lost}' if lost else reached}"
        )
    wanted = _wanted("place", poles, plant.order)
    rank = int(np.linalg.matrix_rank(B))
    times = [_times(wanted, pole) for pole in wanted]
    if max(times, default=0) > rank:
        if plant.shape[1] > 1:
            pole = wanted[int(np.argmax(times))]
            raise ArgumentError(
                f"place: the pole {pole:.6g} is asked for {max(times)} times, expected at most {rank}, the rank of B"
            )
        K = inputs[:, None] * _unique_gain(A, B, wanted) / states
        return _placed(plant.A - plant.B @ K, K, wanted)
    try:
        found = scipy.signal.place_poles(A, B, wanted if np.any(wanted.imag) else wanted.real)
    except ValueError as error:
        raise ArgumentError(f"place: {error}") from None
    K = inputs[:, None] * found.gain_matrix / states
    return _placed(plant.A - plant.B @ K, K, wanted)


@takes_systems()
def place_by_outputs(plant: StateSpace, poles: Any) -> PolePlacement:
    """Output feedback u = -K y for a plant with D = 0; up to inputs + outputs - 1 poles, in the order given."""
    A, B, C, D = plant.matrices
    n, m, p = plant.order, plant.shape[1], plant.shape[0]
    if np.any(D):
        raise ArgumentError("place_by_outputs: the plant has a direct part D, expected none")
    wanted = _wanted("place_by_outputs", poles, None)
    most = min(n, m + p - 1)
    if not 0 < len(wanted) <= most:
        raise ArgumentError(
            f"place_by_outputs: {len(wanted)} poles were asked for; {m} inputs and {p} outputs assign {most} of {n}"
        )
    if m == 1 < p:  # (3) of the dual takes all poles at once
        found = place_by_outputs(plant.dual(), wanted)
        return dataclasses.replace(found, K=found.K.T)
    K = np.zeros((m, p))
    seen = np.eye(p)  # rows: combinations of outputs that are still free
    basis = np.zeros((n, 0))
    left = list(wanted)
    while left and seen.shape[0] > 1:
        pole = left[0]
        width = 1 if pole.imag == 0 else 2
        if seen.shape[0] - width < 1:
            break
        closed = A - B @ K @ C
        v, u = _cheapest(closed, B, seen @ C, pole)
        V, U = (
            (v.real[:, None], u.real[:, None])
            if width == 1
            else (np.stack([v.real, v.imag], 1), np.stack([u.real, u.imag], 1))
        )
        outputs = seen @ C @ V
        K = K + U @ np.linalg.pinv(outputs) @ seen
        seen = scipy.linalg.null_space(outputs.T).T @ seen
        basis = np.linalg.qr(np.hstack([basis, V]))[0]
        left = left[width:]
    if left:
        closed = A - B @ K @ C
        Q = np.linalg.qr(np.hstack([basis, np.eye(n)]))[0][:, :n]
        r = basis.shape[1]
        A_r, B_r = (Q.T @ closed @ Q)[r:, r:], (Q.T @ B)[r:]
        best = None
        for row in seen:  # usually one
            c = (row @ C @ Q)[r:]
            repeats = [_times(left[:k], pole) for k, pole in enumerate(left)]
            rows = []
            for pole, again in zip(left, repeats, strict=True):
                x = B_r.astype(complex)
                for _ in range(again + 1):
                    x = np.linalg.solve(pole * np.eye(n - r) - A_r, x)
                rows.append(c @ x)
            equations = np.array(rows)
            stacked = np.vstack([equations.real, equations.imag])
            right = np.concatenate([-(np.array(repeats) == 0).astype(float), np.zeros(len(left))])
            k, *_ = np.linalg.lstsq(stacked, right, rcond=None)
            made = K + np.outer(k, row)
            error = _placed(A - B @ made @ C, made, wanted).error
            if best is None or error < best[0]:
                best = (error, made)
        assert best is not None
        K = best[1]
    found = _placed(A - B @ K @ C, K, wanted)
    size = max(1.0, float(np.abs(wanted).max()))
    most = max(_times(wanted, pole) for pole in wanted)
    if found.error > max(1e-6, 1e-10 ** (1 / most)) * size:  # rounding moves multiple poles by its root
        raise NumericalError(
            f"place_by_outputs: the poles are missed by {found.error:.3g}; one of them is a zero, or a pole that "
            "output feedback cannot move. Another order of the poles may do"
        )
    return found


def _cheapest(A: Array, B: Array, C: Array, pole: complex) -> tuple[Array, Array]:
    """(v, u) of (2) with the least feedback for what the outputs see of v."""
    n = len(A)
    N = scipy.linalg.null_space(np.hstack([A - pole * np.eye(n), -B]))
    V, U = N[:n], N[n:]
    seen, cost = (C @ V).conj().T @ (C @ V), U.conj().T @ U + 1e-12 * np.eye(N.shape[1])
    values, vectors = scipy.linalg.eigh(seen, cost)
    if values[-1] <= 0:
        raise NumericalError(f"place_by_outputs: the outputs left do not see the pole {pole:.6g}")
    x = vectors[:, -1]
    v = V @ x
    turn = np.exp(-1j * np.angle(v[np.argmax(np.abs(v))])) if pole.imag == 0 else 1.0
    return v * turn, U @ x * turn


def _wanted(function: str, poles: Any, order: int | None) -> Array:
    try:
        wanted = np.atleast_1d(np.asarray(poles, dtype=complex))
    except (TypeError, ValueError):
        wanted = np.array([np.nan])
    if wanted.ndim != 1 or not np.all(np.isfinite(wanted)):
        raise ArgumentError(f"{function}: poles is {poles!r}, expected a list of finite numbers")
    if order is not None and len(wanted) != order:
        raise ArgumentError(f"{function}: {len(wanted)} poles were given, expected {order}")
    paired: list[complex] = []
    rest = list(wanted)
    while rest:
        pole = rest.pop(0)
        paired.append(complex(pole))
        if pole.imag != 0:
            k = min(range(len(rest)), key=lambda k: abs(rest[k] - np.conj(pole)), default=None)
            if k is None or abs(rest[k] - np.conj(pole)) > 1e-9 * abs(pole):
                raise ArgumentError(f"{function}: {pole:.6g} comes without its conjugate")
            paired.append(complex(rest.pop(k)))
    return np.array(paired)


def _times(poles: Any, pole: complex) -> int:
    return int(np.sum(np.abs(np.asarray(poles) - pole) <= 1e-12 * abs(pole))) if len(poles) else 0


def _unique_gain(A: Array, b: Array, wanted: Array) -> Array:
    """Of one input, by the Hessenberg form."""
    n = len(A)
    Q = np.linalg.qr(b, mode="complete")[0]
    inner, T = scipy.linalg.hessenberg(Q.T @ A @ Q, calc_q=True)  # T leaves the first coordinate as it is
    first = float((Q.T @ b)[0, 0])
    row = np.eye(n)[-1]
    for pole in wanted[wanted.imag >= 0]:
        once = row @ inner - pole.real * row
        row = once if pole.imag == 0 else once @ inner - pole.real * once + pole.imag**2 * row
    return np.asarray(row @ T.T @ Q.T / (first * np.prod(np.diag(inner, -1))))[None]


def _placed(A: Array, K: Array, wanted: Array) -> PolePlacement:
    poles = np.linalg.eigvals(A)
    distance = np.abs(poles[:, None] - wanted)
    error = float(distance[scipy.optimize.linear_sum_assignment(distance)].max(initial=0.0))
    return PolePlacement(K, np.sort_complex(poles), error)
