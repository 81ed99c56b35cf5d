"""Gain and phase margins of one loop, without a grid.

|L(jw)| = 1 where jw is an eigenvalue of the Hamiltonian matrix of the level one (see `norms`), and L(jw) is real
where it is a zero of L(s) - L(-s). The loop is broken at one place, with negative feedback: 1 + L.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alembert.control.interconnection import feedback, static
from alembert.control.norms import level_crossings
from alembert.control.sampling import bilinear
from alembert.control.statespace import StateSpace
from alembert.control.system_arguments import takes_systems
from alembert.errors import ArgumentError

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
