"""Poles where they are wanted, by state feedback and by feedback of outputs.

State feedback u = -K x is that of Tits and Yang (1996), which makes the closed loop's eigenvectors well conditioned. A pole
that is wanted more often than B has independent columns has no such eigenvectors; with one input, whose gain is unique, it
comes from the Hessenberg form H of A in which B is b e_1 (Datta 1987): K = e_n^T prod_i (H - l_i) / (b prod_i h_(i+1,i)).

Output feedback u = -K y, y = C x, by deflation (after Miminis 1985): a pole l with the eigenvector v is assigned by
some K with

    (A - l) v = B u,      K C v = u,                                                                                 (1)

and stays with v as long as further feedback does not see C v; so one output is used up for each real pole, two for a
pair. With one output c left, the poles of what remains (in coordinates in which the v come first) are those for which

    1 + c (l - A_r)^-1 B_r k = 0,                                                                                    (2)

linear in k: as many more poles as there are inputs; where l comes again, the derivatives of (2) vanish as well. In all,
inputs + outputs - 1 poles can be asked for.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert.control.statespace import StateSpace
from alembert.control.system_arguments import takes_systems
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray


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
    reached = plant.controllable()
    if not reached:
        raise ArgumentError(f"place: the inputs do not reach all of the state: {reached}")
    wanted = _wanted("place", poles, plant.order)
    rank = int(np.linalg.matrix_rank(plant.B))
    times = [_times(wanted, pole) for pole in wanted]
    if max(times, default=0) > rank:
        if plant.shape[1] > 1:
            pole = wanted[int(np.argmax(times))]
            raise ArgumentError(
                f"place: the pole {pole:.6g} is asked for {max(times)} times, expected at most {rank}, the rank of B"
            )
        K = _unique_gain(plant.A, plant.B, wanted)
        return _placed(plant.A - plant.B @ K, K, wanted)
    try:
        found = scipy.signal.place_poles(plant.A, plant.B, wanted if np.any(wanted.imag) else wanted.real)
    except ValueError as error:
        raise ArgumentError(f"place: {error}") from None
    return _placed(plant.A - plant.B @ found.gain_matrix, found.gain_matrix, wanted)


@takes_systems()
def place_by_outputs(plant: StateSpace, poles: Any) -> PolePlacement:
    """Output feedback u = -K y for a plant with D = 0; up to inputs + outputs - 1 poles, in the order given."""
    A, B, C, D = plant.matrices
    n, m, p = plant.order, plant.shape[1], plant.shape[0]
    if np.any(D):
        raise ArgumentError("place_by_outputs: the plant has a direct part D, expected none")
    wanted = _wanted("place_by_outputs", poles, None)
    most = min(n, m + p - 1)
    if len(wanted) > most:
        raise ArgumentError(
            f"place_by_outputs: {len(wanted)} poles were asked for; {m} inputs and {p} outputs assign {most} of {n}"
        )
    if m == 1 < p:  # (2) of the dual takes all poles at once
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
    """(v, u) of (1) with the least feedback for what the outputs see of v."""
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
    wanted = np.atleast_1d(np.asarray(poles, dtype=complex))
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
