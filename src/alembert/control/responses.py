"""Responses over frequency and time; from continuous time to samples and back.

    G(s) = C (s - A)^-1 B + D                                                                                (1)

at many frequencies takes one reduction of A and little per frequency. Where the eigenvectors V of A are well
conditioned,

    G(s) = sum_k (C V)_k (V^-1 B)_k / (s - lambda_k) + D,                                                    (2)

which is so for lightly damped structures. Otherwise the unitary Schur form A = Q T Q^H, and (s - T) X = Q^H B by back
substitution for all frequencies at once.

Over time, inputs that are held, or joined by straight lines, are integrated exactly by the exponential of a block matrix
(Van Loan 1978).

Sampled systems come by three methods:

    zoh     the input is held between samples:      A_d = exp(A h),    B_d = int_0^h exp(A s) ds B                  (3)
    foh     the input goes along a line to the next sample; the sampled system then has a direct part               (4)
    tustin  s = a (z - 1)/(z + 1),  a = 2/h, or a = w / tan(w h / 2), which keeps the gain at the frequency w       (5)

With r = sqrt(2 a), (5) is A = a (A_d + 1)^-1 (A_d - 1), B = r (A_d + 1)^-1 B_d, C = r C_d (A_d + 1)^-1,
D = D_d - C_d (A_d + 1)^-1 B_d. For a = 1 it keeps norms, gramians, Hankel singular values and Riccati solutions, so that
what is written here for continuous time serves sampled systems too (`bilinear`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert.arguments import choice, positive, real
from alembert.control import arguments
from alembert.control.arguments import takes_systems
from alembert.control.gramian import ModalForm, modal_form
from alembert.control.statespace import StateSpace
from alembert.errors import ArgumentError, NumericalError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from alembert.control.statespace import StateSpace

Array = np.ndarray
_AT_ONCE = 4_000_000  # complex numbers of intermediate results
_TIMES = 120  # at which the response to a step is looked at, for few periods of every pole
_FEW, _PERIODS = 6, 375  # of a pole: those that are always looked at, and at most
_DISTINCT = 1e8  # condition of eigenvectors up to which responses are sums of exponentials
_EXPONENTIALS = 5000  # of matrices, at most
_SAMPLES = 50_000  # of a sampled system, where no times are given


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
    choice("simulate", "hold", hold, ("zero", "first"))
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
    k = _one_input("step_response", G, input)
    return simulate(G[:, k], _times("step_response", G, t), np.ones(1), None, "zero")


def impulse_response(G: StateSpace, t: Any, input: Any) -> TimeResponse:
    k = _one_input("impulse_response", G, input)
    times = _times("impulse_response", G, t)
    one = G[:, k]
    if G.is_discrete:
        return simulate(one, times, (np.arange(len(times)) == 0).astype(float)[:, None], None, "zero")
    return simulate(one, times, None, one.B[:, 0], "zero")


def _one_input(function: str, G: StateSpace, given: Any) -> int:
    found = arguments.picked(function, "input", G.input_names, given)
    if len(found) != 1:
        raise ArgumentError(f"{function}: input is {given!r}, expected one of {', '.join(G.input_names)}")
    return found[0]


def _times(function: str, G: StateSpace, t: Any) -> Array:
    """The times that are given, up to the one time that is given, or until the response has settled."""
    if t is None:
        return settling_times(G)
    times = arguments.numbers(function, "t", t)
    if times.ndim:
        return times
    end = positive(function, "t", t)
    return G.dt * np.arange(int(end / G.dt * (1 + 1e-9)) + 1) if G.is_discrete else np.linspace(0.0, end, 500)


def settling_times(G: StateSpace, points: int = 500) -> Array:
    """From zero until the slowest stable pole has gone down to 1 %, and multiple ones to 2 % of what they move, or two
    periods of the slowest undamped one."""
    p = _rates(G.poles(), G.dt)
    decay, size = np.abs(p.real), np.abs(p)
    largest = size[np.isfinite(size)].max(initial=0.0)
    slow = decay[(decay > 1e-4 * size) & np.isfinite(size)]
    slow = slow[slow > 1e-8 * largest]
    end = 4.6 / slow.min() if len(slow) else (4 * np.pi / size[size > 0].min() if largest > 0 else 1.0)
    if len(slow) and G.is_stable:
        end *= _longer(G, end)
    if G.is_discrete:
        return G.dt * np.arange(min(max(int(np.ceil(end / G.dt)), 10), _SAMPLES) + 1)
    return np.linspace(0.0, end, points)


def _longer(G: StateSpace, end: float) -> float:
    """How much longer than `end` it takes until a step has come within 2 % of where it goes: 1 to 3 times."""
    A = G.A - np.eye(G.order) if G.is_discrete else G.A
    left = np.linalg.solve(A, G.B)  # what is left of the step is C A^-1 exp(A t) B
    half = (
        np.linalg.matrix_power(G.A, max(int(end / G.dt / 2), 1))
        if G.is_discrete
        else scipy.linalg.expm(G.A * end / 2)
    )
    allowed = 0.02 * np.abs(G.C @ left).max(initial=0.0)
    left = half @ half @ left
    for factor in (1.0, 1.5, 2.0, 2.5):
        if np.abs(G.C @ left).max(initial=0.0) <= allowed:
            return factor
        left = half @ left
    return 3.0


def _rates(poles: Array, dt: float) -> Array:
    """Poles in 1/s; infinite for those of a sampled system that are zero."""
    if not dt:
        return poles
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(poles.astype(complex)) / dt)


class StepCurve:
    """z = C x + d after a step from rest, x' = A x + b or x+ = A x + b, at any times (of samples, where dt is not zero)."""

    def __init__(self, A: Array, b: Array, C: Array, d: Array, dt: float = 0.0) -> None:
        self.A, self.b, self.C, self.d, self.dt = A, b, C, d, dt
        self.poles, V = np.linalg.eig(A)
        self.modal = bool(len(A) == 0 or np.linalg.cond(V) < _DISTINCT)
        self.weights = (C @ V) * np.linalg.solve(V, b.astype(complex)) if self.modal else C

    def at(self, times: Array) -> Array:
        """(times, outputs)"""
        count = max(1, _AT_ONCE // max(1, len(self.A)))
        return np.concatenate([self._some(times[k : k + count]) for k in range(0, len(times), count)])

    def _some(self, times: Array) -> Array:
        t = np.rint(times / self.dt) if self.dt else np.asarray(times, dtype=float)
        n = len(self.A)
        if not self.modal:
            whole = np.zeros((n + 1, n + 1))
            whole[:n, :n], whole[:n, n] = self.A, self.b
            if self.dt:
                whole[n, n] = 1.0
                ends = [np.linalg.matrix_power(whole, int(k)) for k in t]
            else:
                ends = [scipy.linalg.expm(whole * x) for x in t]
            return np.array([self.C @ E[:n, n] + self.d for E in ends])
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = np.log(self.poles.astype(complex)) if self.dt else self.poles
            still = self.poles - 1 if self.dt else self.poles
            grown = np.where(still == 0, t[:, None], np.expm1(t[:, None] * rates) / still)
        grown = np.where(t[:, None] == 0, 0.0, grown)
        return np.asarray((grown @ self.weights.T).real + self.d)

    def grid(self) -> Array:
        """20 times a period of every pole, until it has died out (375 periods at most: modes that lie close together are
        largest after many), and on to the end of the slowest."""
        poles = _rates(self.poles, self.dt)
        poles = poles[np.isfinite(poles)]
        sizes = np.abs(poles)
        fast, slow = float(sizes.max(initial=1e-9)), float((-poles.real).min(initial=np.inf))
        slow = 1.0 if slow == np.inf else slow
        most = _PERIODS if self.modal else 6 * _FEW
        times = [np.linspace(0, _FEW * 2 * np.pi / size, _TIMES) for size in sizes[sizes > 0]]
        for pole in poles[poles.imag > 0]:
            periods = np.clip(5 * abs(pole) / (2 * np.pi * max(-pole.real, 1e-12 * abs(pole))), _FEW, most)
            times.append(np.linspace(0, periods * 2 * np.pi / abs(pole), int(periods * _TIMES / _FEW)))
        times.append(np.geomspace(0.01 / fast, 12 / max(slow, 1e-12 * fast), _TIMES))
        found = np.unique(np.concatenate([[0.0], *times]))
        found = found if self.modal else found[:: 1 + len(found) // _EXPONENTIALS]
        if not self.dt:
            return found
        first = np.arange(len(self.A) + 2.0)  # poles at zero are over by then
        return self.dt * np.unique(np.concatenate([first, np.rint(found / self.dt)]))


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
    """Of a stable system with one input and one output. With `t`, times are those of these points of the response."""
    if G.shape != (1, 1):
        raise ArgumentError(
            f"step_info: the system has shape {G.shape}, expected one input and one output; G['y', 'u'] takes a part"
        )
    if not G.is_stable:
        raise ArgumentError("step_info: the system is not stable, its response has no final value")
    final = float(G.dc_gain()[0, 0])
    curve = StepCurve(G.A, G.B[:, 0], G.C, G.D[:, 0], G.dt)
    times = curve.grid() if t is None else G.step_response(t).t
    y = curve.at(times)[:, 0]
    if abs(final) < 1e-12 * max(float(np.abs(y).max()), 1e-300):
        raise ArgumentError(
            "step_info: the response goes back to zero, shares of its final value do not exist"
        )
    share = y / final

    def reached(test: Callable[[Array], Array], k: int) -> float:
        """When the test holds first, after times[k - 1] and at times[k] at the latest."""
        low, high = float(times[max(k - 1, 0)]), float(times[k])
        for _ in range(0 if t is not None or k == 0 else 60):
            near = np.linspace(low, high, 9)[1:-1]
            if G.is_discrete:
                near = G.dt * np.unique(np.rint(near / G.dt))
                near = near[(near > low) & (near < high)]
            if not len(near) or high - low <= 1e-9 * high:
                break
            held = np.append(test(curve.at(near)[:, 0] / final), True)
            j = int(np.argmax(held))
            low, high = np.concatenate([[low], near, [high]])[[j, j + 1]]
        return high

    rising = [
        reached(partial(np.less_equal, x), int(np.argmax(share >= x))) if np.any(share >= x) else np.inf
        for x in (0.1, 0.9)
    ]
    outside = np.flatnonzero(np.abs(share - 1) > band)
    if not len(outside):
        settled = 0.0
    elif outside[-1] == len(share) - 1:
        settled = np.inf
    else:
        settled = reached(lambda s: np.abs(s - 1) <= band, int(outside[-1] + 1))
    k = int(np.argmax(share))
    top = float(share[k])
    if t is None and not G.is_discrete:
        low, high = times[max(k - 1, 0)], times[min(k + 1, len(times) - 1)]
        top = max(top, float((curve.at(np.linspace(low, high, 200))[:, 0] / final).max()))
    return StepInfo(final, float(rising[1] - rising[0]), float(settled), max(top - 1, 0.0))


METHODS = ("zoh", "foh", "tustin")


@takes_systems()
def c2d(G: StateSpace, dt: float, *, method: str = "zoh", prewarp: float | None = None) -> StateSpace:
    """(3), (4) or (5); `prewarp` is a frequency in rad/s at which "tustin" keeps the response."""
    if G.is_discrete:
        raise ArgumentError(f"c2d: the system is sampled already, every {G.dt:g} s")
    real("c2d", "dt", dt, "seconds above zero", over=0.0)
    _check_method("c2d", method, prewarp)
    A, B, C, D = G.matrices
    if method == "tustin":
        a = _rate("c2d", dt, prewarp)
        E = a * np.eye(len(A)) - A
        if np.linalg.cond(E) > 1e14 if len(A) else False:
            raise NumericalError(
                f"c2d: the system has a pole at {a:.6g}, which the bilinear map sends to infinity"
            )
        r = np.sqrt(2 * a)
        X = np.linalg.solve(E, np.hstack([a * np.eye(len(A)) + A, r * B]))
        C_E = np.linalg.solve(E.T, C.T).T
        matrices = X[:, : len(A)], X[:, len(A) :], r * C_E, D + C_E @ B
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            Phi, G0, G1 = held(A, B, dt)
        if not (np.isfinite(Phi).all() and np.isfinite(G0).all()):
            fastest = G.poles()[-1]
            raise NumericalError(
                f"c2d: within one sample of {dt:g} s the system grows beyond all numbers, it has the pole {fastest:.6g}"
            )
        matrices = Phi, G0, C, D
        if method == "foh":  # x shifted by G1 u takes the next sample out of the equation
            matrices = Phi, G0 + Phi @ G1 - G1, C, D + C @ G1
    return dataclasses.replace(G.with_matrices(*matrices), dt=float(dt))


@takes_systems()
def d2c(G: StateSpace, *, method: str = "zoh", prewarp: float | None = None) -> StateSpace:
    """The inverse of `c2d`; for "zoh" and "foh" through the logarithm of A, which has no negative real poles."""
    if not G.is_discrete:
        raise ArgumentError("d2c: the system is continuous already")
    _check_method("d2c", method, prewarp)
    A, B, C, D = G.matrices
    n = len(A)
    if method == "tustin":
        return dataclasses.replace(bilinear(G, _rate("d2c", G.dt, prewarp)), dt=0.0)
    poles = np.linalg.eigvals(A)
    if np.any((np.abs(poles.imag) <= 1e-12 * np.abs(poles)) & (poles.real <= 0)):
        bad = poles[np.argmin(poles.real)]
        raise NumericalError(
            f"d2c: the pole {bad.real:.6g} is real and not positive; no continuous system of this order has it. "
            "Use method='tustin'"
        )
    a = np.real(scipy.linalg.logm(A)) / G.dt
    unit = held(a, np.eye(n), G.dt)  # B_d = unit[1] B; with foh, B_d = (G0 + Phi G1 - G1) B
    factor = unit[1] if method == "zoh" else unit[1] + unit[0] @ unit[2] - unit[2]
    b = np.linalg.solve(factor, B)
    d = D if method == "zoh" else D - C @ unit[2] @ b
    return dataclasses.replace(G.with_matrices(a, b, C, d), dt=0.0)


def bilinear(G: StateSpace, a: float = 1.0) -> StateSpace:
    """(5), from sampled to continuous; the result is the same system in another variable."""
    A, B, C, D = G.matrices
    E = A + np.eye(len(A))
    if len(A) and np.linalg.cond(E) > 1e14:
        raise NumericalError("bilinear: the sampled system has a pole at -1, which the map sends to infinity")
    r = np.sqrt(2 * a)
    X = np.linalg.solve(E, np.hstack([a * (A - np.eye(len(A))), r * B]))
    C_E = np.linalg.solve(E.T, C.T).T
    made = G.with_matrices(X[:, : len(A)], X[:, len(A) :], r * C_E, D - C_E @ B)
    return dataclasses.replace(made, dt=0.0)


def from_bilinear(G: StateSpace, dt: float) -> StateSpace:
    """Back to samples: the inverse of `bilinear` with a = 1."""
    return dataclasses.replace(c2d(dataclasses.replace(G, dt=0.0), 2.0, method="tustin"), dt=dt)


def _rate(function: str, dt: float, prewarp: float | None) -> float:
    if prewarp is None:
        return 2 / dt
    if not 0 < prewarp * dt < np.pi:
        raise ArgumentError(
            f"{function}: prewarp is {prewarp:g} rad/s, expected a frequency below that of Nyquist, {np.pi / dt:g} rad/s"
        )
    return float(prewarp / np.tan(prewarp * dt / 2))


def _check_method(function: str, method: Any, prewarp: float | None) -> None:
    choice(function, "method", method, METHODS)
    if prewarp is not None and method != "tustin":
        raise ArgumentError(f"{function}: prewarp is for the method 'tustin', this is {method!r}")
