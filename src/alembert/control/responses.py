"""Responses over frequency and time.

    G(s) = C (s - A)^-1 B + D                                                                                (1)

at many frequencies takes one reduction of A and little per frequency. Where the eigenvectors V of A are well
conditioned,

    G(s) = sum_k (C V)_k (V^-1 B)_k / (s - lambda_k) + D,                                                    (2)

which is so for lightly damped structures. Otherwise the unitary Schur form A = Q T Q^H, and (s - T) X = Q^H B by back
substitution for all frequencies at once.

Over time, inputs that are held, or joined by straight lines, are integrated exactly by the exponential of a block matrix
(Van Loan 1978).
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert.control import arguments
from alembert.control.modal_form import ModalForm, modal_form
from alembert.control.system_arguments import takes_systems
from alembert.errors import ArgumentError, NumericalError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from alembert.control.statespace import StateSpace

Array = np.ndarray
_AT_ONCE = 4_000_000  # complex numbers of intermediate results


@dataclass(frozen=True, eq=False)
class FrequencyResponse:
    """`response` is (frequencies, outputs, inputs), complex; `frequency` in rad/s."""

    frequency: Array
    response: Array
    output_names: tuple[str, ...]
    input_names: tuple[str, ...]
    output_units: tuple[str, ...] = ()
    input_units: tuple[str, ...] = ()
    """empty where they are not known"""

    @property
    def magnitude_db(self) -> Array:
        with np.errstate(divide="ignore"):
            return 20 * np.log10(np.abs(self.response))

    @property
    def phase_deg(self) -> Array:
        """Unwrapped along the frequencies."""
        return np.degrees(np.unwrap(np.angle(self.response), axis=0))

    @property
    def singular_values(self) -> Array:
        """(frequencies, gains), largest first."""
        return np.linalg.svd(self.response, compute_uv=False)

    def plot(
        self, *, inputs: Any = None, outputs: Any = None, path: str | PathLike[str] | None = None
    ) -> Figure:
        """The Bode diagram, of all inputs and outputs or those named; needs matplotlib. `path` saves it."""
        from alembert.control import plots

        return plots.bode(self, path, inputs=inputs, outputs=outputs)


@dataclass(frozen=True, eq=False)
class TimeResponse:
    """Over the times `t`: states `x` (times, states) and outputs `y` (times, outputs)."""

    t: Array
    x: Array
    y: Array


def frequency_response(G: StateSpace, frequency: Any) -> FrequencyResponse:
    """G(jw), or G(exp(jw dt)); a frequency at a pole is refused."""
    w = arguments.frequencies("frequency_response", frequency)
    s = np.exp(1j * w * G.dt) if G.is_discrete else 1j * w
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        response = ResponseEvaluator(G.A, G.B, G.C, G.D)(s)
    if not np.all(np.isfinite(response)):
        at = w[np.flatnonzero(~np.isfinite(response).all(axis=(1, 2)))[0]]
        raise NumericalError(
            f"frequency_response: the frequency {at:g} rad/s is a pole; the poles are "
            f"{', '.join(f'{pole + 0.0:.6g}' for pole in G.poles())}"
        )
    return FrequencyResponse(w, response, G.output_names, G.input_names, G.output_units, G.input_units)


class ResponseEvaluator:
    """G(s) at many points s: (1) by one reduction, kept for further calls. The matrices may be complex."""

    def __init__(self, A: Array, B: Array, C: Array, D: Array) -> None:
        self.D = np.asarray(D, dtype=complex)
        self.modes = modal_form(A)
        if self.modes is not None:
            self.residues = residues(self.modes, B, C)
            self.size = self.residues.size
            return
        self.transposed = C.shape[0] < B.shape[1]
        if self.transposed:
            A, B, C = A.T, C.T, B.T
        self.size = B.size
        if len(A):
            if not np.iscomplexobj(A):
                A, (scale, _) = scipy.linalg.matrix_balance(A, permute=False, separate=True)
                B, C = B / scale[:, None], C * scale
            self.T, Q = scipy.linalg.schur(A, output="complex")
            self.C, self.B = C @ Q, Q.conj().T @ B

    def __call__(self, s: Array) -> Array:
        """(points, outputs, inputs)"""
        s = np.atleast_1d(s).astype(complex)
        if not self.size:
            return np.broadcast_to(self.D, (len(s), *self.D.shape)).copy()
        chunk = max(1, _AT_ONCE // self.size)
        parts = [self._some(s[k : k + chunk]) for k in range(0, len(s), chunk)]
        found = np.concatenate(parts) if parts else np.zeros((0, *self.D.shape), dtype=complex)
        return found + self.D

    def _some(self, s: Array) -> Array:
        if self.modes is not None:
            return ((1 / (s[:, None] - self.modes.poles)) @ self.residues).reshape(-1, *self.D.shape)
        n, m = self.B.shape
        X = np.empty((n, len(s), m), dtype=complex)
        for k in range(n - 1, -1, -1):
            right = self.B[k] + np.tensordot(self.T[k, k + 1 :], X[k + 1 :], axes=1)
            X[k] = right / (s - self.T[k, k])[:, None]
        return np.tensordot(self.C, X, axes=1).transpose((1, 2, 0) if self.transposed else (1, 0, 2))


def residues(modes: ModalForm, B: Array, C: Array) -> Array:
    """(C V)_k (V^-1 B)_k of (2), a row for each pole: (poles, outputs x inputs)."""
    left, right = C @ modes.V, modes.inverse @ B
    return (left.T[:, :, None] * right[:, None, :]).reshape(len(modes.poles), -1)


# --- time ---------------------------------------------------------------------------------------------------


def simulate(G: StateSpace, t: Any, u: Any, x0: Any, hold: str) -> TimeResponse:
    n, m = G.B.shape
    t = arguments.numbers("simulate", "t", t)
    if t.ndim != 1 or not len(t) or np.any(np.diff(t) <= 0):
        raise ArgumentError(f"simulate: t has shape {t.shape}, expected increasing times (times,)")
    u = np.zeros(m) if u is None else arguments.numbers("simulate", "u", u)
    if u.ndim == 1 and u.shape == (len(t),) and m == 1:
        u = u[:, None]
    if u.shape not in ((), (m,), (len(t), m)):
        raise ArgumentError(f"simulate: u has shape {u.shape}, expected ({len(t)}, {m}) or ({m},)")
    u = np.broadcast_to(u, (len(t), m))
    x0 = np.zeros(n) if x0 is None else arguments.numbers("simulate", "x0", x0)
    if x0.shape != (n,):
        raise ArgumentError(f"simulate: x0 has shape {x0.shape}, expected ({n},)")
    if hold not in ("zero", "first"):
        raise ArgumentError(f"simulate: hold is {hold!r}, expected 'zero' or 'first'")
    x = np.empty((len(t), n))
    x[0] = x0
    if G.is_discrete:
        if np.abs(np.diff(t) - G.dt).max(initial=0.0) > 1e-6 * G.dt:
            raise ArgumentError(f"simulate: the times of a sampled system go up by dt = {G.dt:g} s")
        for k in range(len(t) - 1):
            x[k + 1] = G.A @ x[k] + G.B @ u[k]
        return TimeResponse(t, x, x @ G.C.T + u @ G.D.T)
    steps: dict[float, tuple[Array, Array, Array]] = {}
    for k, h in enumerate(np.diff(t)):
        key = float(f"{h:.10e}")  # steps that differ by rounding are one
        if key not in steps:
            steps[key] = held(G.A, G.B, float(h))
        Phi, G0, G1 = steps[key]
        x[k + 1] = Phi @ x[k] + G0 @ u[k]
        if hold == "first":
            x[k + 1] += G1 @ (u[k + 1] - u[k])
    return TimeResponse(t, x, x @ G.C.T + u @ G.D.T)


def held(A: Array, B: Array, h: float) -> tuple[Array, Array, Array]:
    """x(h) = Phi x(0) + G0 u(0) + G1 (u(h) - u(0)) for an input that goes from u(0) to u(h) along a line (Van Loan)."""
    n, m = B.shape
    block = np.zeros((n + 2 * m, n + 2 * m))
    block[:n, :n], block[:n, n : n + m], block[n : n + m, n + m :] = A * h, B * h, np.eye(m)
    E = scipy.linalg.expm(block)
    return E[:n, :n], E[:n, n : n + m], E[:n, n + m :]


def step_response(G: StateSpace, t: Any, input: Any) -> TimeResponse:
    (k,) = arguments.picked("step_response", "input", G.input_names, input)
    times = settling_times(G) if t is None else t
    return simulate(G[:, k], times, np.ones(1), None, "zero")


def impulse_response(G: StateSpace, t: Any, input: Any) -> TimeResponse:
    (k,) = arguments.picked("impulse_response", "input", G.input_names, input)
    times = np.asarray(settling_times(G) if t is None else t, dtype=float)
    one = G[:, k]
    if G.is_discrete:
        return simulate(one, times, (np.arange(len(times)) == 0).astype(float)[:, None], None, "zero")
    return simulate(one, times, None, one.B[:, 0], "zero")


def settling_times(G: StateSpace, points: int = 500) -> Array:
    """From zero until the slowest stable pole has gone down to 1 %, or two periods of the slowest undamped one."""
    p = np.log(np.where(G.poles() == 0, 1e-300, G.poles())) / G.dt if G.is_discrete else G.poles()
    decay, size = np.abs(p.real), np.abs(p)
    largest = size.max(initial=0.0)
    slow = decay[decay > 1e-4 * size]
    slow = slow[slow > 1e-8 * largest]
    end = 4.6 / slow.min() if len(slow) else (4 * np.pi / size[size > 0].min() if largest > 0 else 1.0)
    if G.is_discrete:
        return G.dt * np.arange(min(max(int(np.ceil(end / G.dt)), 10), 10 * points) + 1)
    return np.linspace(0.0, end, points)


@dataclass(frozen=True)
class StepInfo:
    """Of a step response: its final value; the times from 10 to 90 % of it and until it stays within the band; and by which
    share of it the response goes beyond."""

    final: float
    rise: float
    settling: float
    overshoot: float


@takes_systems()
def step_info(G: StateSpace, *, t: Any = None, band: float = 0.02) -> StepInfo:
    """Of a stable system with one input and one output; times are those of the points of the response."""
    if G.shape != (1, 1):
        raise ArgumentError(
            f"step_info: the system has shape {G.shape}, expected one input and one output; G['y', 'u'] takes a part"
        )
    if not G.is_stable:
        raise ArgumentError("step_info: the system is not stable, its response has no final value")
    final = float(G.dc_gain()[0, 0])
    found = G.step_response(t)
    if abs(final) < 1e-12 * max(float(np.abs(found.y).max()), 1e-300):
        raise ArgumentError(
            "step_info: the response goes back to zero, shares of its final value do not exist"
        )
    share = found.y[:, 0] / final
    reached = [found.t[np.flatnonzero(share >= x)[0]] if np.any(share >= x) else np.inf for x in (0.1, 0.9)]
    outside = np.flatnonzero(np.abs(share - 1) > band)
    last = len(share) - 1
    settled = 0.0 if not len(outside) else np.inf if outside[-1] == last else float(found.t[outside[-1] + 1])
    return StepInfo(final, float(reached[1] - reached[0]), settled, max(float(share.max()) - 1, 0.0))
