"""Gain and phase margins of one loop, without a grid.

|L(jw)| = 1 where jw is an eigenvalue of the Hamiltonian matrix of the level one (see `norms`), and L(jw) is real
where it is a zero of L(s) - L(-s). The loop is broken at one place, with negative feedback: 1 + L.

The poles of a closed loop over its gain: u = -k K y, poles of A - B (1 + k K D)^-1 k K C.   (1)
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert.control import arguments
from alembert.control.interconnection import feedback, static
from alembert.control.norms import level_crossings
from alembert.control.sampling import bilinear
from alembert.control.statespace import StateSpace
from alembert.control.system_arguments import takes_systems
from alembert.errors import ArgumentError, NumericalError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray


@dataclass(frozen=True)
class Margins:
    """How much the loop may change: factors of gain, degrees of phase, seconds of delay, and the distance to -1."""

    gain: float
    """the smallest factor above one that makes the loop unstable; infinite where there is none"""
    gain_down: float
    """the largest factor below one; zero where there is none"""
    phase_deg: float
    delay: float
    gain_frequency: float
    phase_frequency: float
    distance: float
    """min |1 + L|, one over the peak of the sensitivity"""
    stable: bool


@takes_systems()
def margins(L: StateSpace) -> Margins:
    """Of a loop with one input and one output under negative feedback."""
    if L.shape != (1, 1):
        raise ArgumentError(
            f"margins: the loop has shape {L.shape}, expected one input and one output; `disk_margins` "
            "and `multiloop_disk_margin` take loops with several"
        )
    twin = (bilinear(L) if L.is_discrete else L).balanced_scales()
    A, B, C, D = twin.matrices
    value = lambda w: complex(twin.at(1j * w)[0, 0])  # noqa: E731
    true = lambda w: 2 * np.arctan(w) / L.dt if L.is_discrete else w  # noqa: E731
    crossings = level_crossings(A, B, C, D, 1.0) if L.order else np.zeros(0)
    unity = [w for w in _polished_crossings(twin, crossings) if w > 0]
    phases = [(abs(_turned(np.angle(value(w)))), true(w)) for w in unity]
    phase, w_phase = min(phases, default=(np.inf, np.nan))
    delays = [np.mod(np.angle(value(w)) + np.pi, 2 * np.pi) / true(w) for w in unity]
    real = _real_points(twin)
    factors = [(-1 / value(w).real, true(w)) for w in real if value(w).real < 0]
    if D[0, 0] < 0:
        factors.append((-1 / D[0, 0], np.pi / L.dt if L.is_discrete else np.inf))
    up = min(((f, w) for f, w in factors if f > 1), default=(np.inf, np.nan))
    down = max((f for f, _ in factors if f < 1), default=0.0)
    S = feedback(static(1.0, dt=L.dt), L)
    peak = S.hinf_norm()
    return Margins(
        float(up[0]),
        float(down),
        float(np.degrees(phase)),
        float(min(delays, default=np.inf)),
        float(up[1]),
        float(w_phase),
        0.0 if not np.isfinite(peak.gain) else 1 / peak.gain,
        bool(np.isfinite(peak.gain)),
    )


def _turned(angle: float) -> float:
    """The phase from -180 degrees, between -pi and pi."""
    return float(np.mod(angle + 2 * np.pi, 2 * np.pi) - np.pi)


def _polished_crossings(G: StateSpace, candidates: Array) -> list[float]:
    """Those frequencies at which the gain is one, after Newton steps on log |L|."""
    found: list[float] = []
    for w in np.unique(np.abs(candidates)):
        for _ in range(30):
            g = complex(G.at(1j * w)[0, 0])
            X = np.linalg.solve(1j * w * np.eye(G.order) - G.A, G.B)
            slope = (-1j * (G.C @ np.linalg.solve(1j * w * np.eye(G.order) - G.A, X))[0, 0] / g).real
            step = -np.log(abs(g)) / slope if slope else 0.0
            step = float(np.clip(step, -0.1 * w, 0.1 * w))
            w = w + step
            if abs(step) <= 1e-14 * w:
                break
        if abs(abs(complex(G.at(1j * w)[0, 0])) - 1) < 1e-9 and not any(abs(w - v) < 1e-9 * v for v in found):
            found.append(float(w))
    return found


def _real_points(G: StateSpace) -> list[float]:
    """Frequencies, zero among them, at which L(jw) is real."""
    z = (G - G.adjoint()).zeros()
    near = np.unique(np.abs(z[np.abs(z.real) < 1e-6 * np.maximum(np.abs(z), 1e-300)].imag))
    poles = np.linalg.eigvals(G.A)
    found = []
    for w in np.concatenate([[0.0], near]):
        if np.any(np.abs(1j * w - poles) <= 1e-7 * max(1.0, float(np.abs(poles).max(initial=0.0)))):
            continue  # a pole on the axis, or what rounding makes of it
        value = complex(G.at(1j * w)[0, 0])
        if abs(value.imag) < 1e-6 * abs(value):
            found.append(float(w))
    return found


_ROUNDS, _SMOOTH, _SEEN = (
    8,
    0.03,
    4.0,
)  # of halving; the longest piece of a branch, and the picture, in sizes of open-loop poles


@dataclass(frozen=True, eq=False)
class RootLocus:
    """`poles` (gains, states): each column follows one branch; some end at the `zeros` of the loop."""

    gains: Array
    poles: Array
    zeros: Array
    dt: float = 0.0
    """of a sampled loop [s], whose poles are to stay within the unit circle"""

    def plot(self, *, path: str | PathLike[str] | None = None) -> Figure:
        """The branches in the complex plane; needs matplotlib. `path` saves it."""
        from alembert.control import plots

        return plots.root_locus(self, path)


@takes_systems()
def root_locus(G: StateSpace, K: Any = 1.0, *, gains: Any = None) -> RootLocus:
    """(1) for the gains k; K is a matrix (inputs, outputs), or a number for a system with one of each."""
    K = arguments.matrix("root_locus", "K", K, G.shape[1], G.shape[0])
    k = None if gains is None else np.atleast_1d(arguments.numbers("root_locus", "gains", gains)).ravel()
    found = branches(*G.matrices, K, k)
    return RootLocus(found.gains, found.poles, found.zeros, G.dt)


def branches(A: Array, B: Array, C: Array, D: Array, K: Array, gains: Array | None) -> RootLocus:
    """(1); branches keep their columns by the assignment of least total distance."""
    if gains is not None:
        poles = np.array([_poles(A, B, C, D, K, k) for k in gains]).reshape(len(gains), len(A))
    else:
        gains, poles = _followed(A, B, C, D, K)
    poles = _in_columns(poles)
    zeros = StateSpace(A, B, K @ C, K @ D).zeros() if len(K) else np.zeros(0)
    return RootLocus(gains, poles, zeros)


def _followed(A: Array, B: Array, C: Array, D: Array, K: Array) -> tuple[Array, Array]:
    """Gains from 0 to 1000, closer where branches move fast: where they meet they move by the root of the gain."""
    gains = np.concatenate([[0.0], np.logspace(-3, 3, 200)])
    poles = np.array([_poles(A, B, C, D, K, k) for k in gains]).reshape(len(gains), len(A))
    size = np.abs(poles[0]).max(initial=0.0) or 1.0
    for _ in range(_ROUNDS):
        follow = _in_columns(poles)
        seen = np.abs(follow) < _SEEN * size
        moved = np.where(seen[1:] & seen[:-1], np.abs(np.diff(follow, axis=0)), 0.0)
        far = moved.max(axis=1, initial=0.0) > _SMOOTH * size
        if not far.any():
            break
        between = (gains[1:] + gains[:-1])[far] / 2
        added = np.array([_poles(A, B, C, D, K, k) for k in between])
        gains, poles = np.concatenate([gains, between]), np.concatenate([poles, added])
        order = np.argsort(gains)
        gains, poles = gains[order], poles[order]
    return gains, poles


def _in_columns(poles: Array) -> Array:
    poles = poles.copy()
    for i in range(1, len(poles)):
        poles[i] = poles[i][scipy.optimize.linear_sum_assignment(np.abs(poles[i - 1][:, None] - poles[i]))[1]]
    return poles


def _poles(A: Array, B: Array, C: Array, D: Array, K: Array, gain: float) -> Array:
    try:
        loop = np.linalg.solve(np.eye(len(K)) + gain * K @ D, gain * K @ C)
    except np.linalg.LinAlgError:
        raise NumericalError(
            f"root_locus: at the gain {gain:.6g} the direct part of the outputs feeds the inputs back to "
            "themselves, 1 + k K D is singular, and the poles are infinite"
        ) from None
    return np.sort_complex(np.linalg.eigvals(A - B @ loop))
