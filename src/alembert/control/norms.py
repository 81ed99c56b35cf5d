"""Norms of systems: H2, and the largest gain over all frequencies.

    |G|_2^2 = trace(C P C^T),      A P + P A^T + B B^T = 0                                                   (1)

The gain g is a singular value of G(jw) at some w just where jw is an eigenvalue of

    [A + B R^-1 D^T C      g B R^-1 B^T          ]
    [-g C^T S^-1 C         -(A + B R^-1 D^T C)^T ],       R = g^2 - D^T D,   S = g^2 - D D^T                 (2)

(Boyd, Balakrishnan, Kabamba 1989). Large systems take faster ways, where they prove the level: the impulse response
(`impulse_bound`), or fractions (`gain_bound`). For the others, Bruinsma and Steinbuch (1990, "A fast algorithm to
compute the H-infinity norm", Systems and Control Letters 14) start at the largest gain found and go up: where (2) still
has eigenvalues on the axis, the gain between them is larger. The start is taken from every pole and a coarse grid, each
peak polished; one test then usually suffices. Where the direct part D sets the level, R is nearly singular, and the
eigenvalues are those of the pencil

    s x = A x + B u,   s l = -A^T l - C^T y,   0 = B^T l + D^T y - g u,   0 = C x + D u - g y.               (3)

Eigenvalues taken for imaginary ones by mistake only cost evaluations: the level rises only by gains that were computed.
"""

from __future__ import annotations

import numpy as np
import scipy

from alembert.control.gain_bound import PeakGain, bounded_gain
from alembert.control.gramian import lyapunov
from alembert.control.impulse_bound import impulse_gain
from alembert.control.modal_form import ModalForm, fast_modes, modal_form
from alembert.control.responses import ResponseEvaluator
from alembert.control.sampling import bilinear
from alembert.control.statespace import StateSpace
from alembert.control.system_arguments import takes_systems
from alembert.errors import NumericalError

Array = np.ndarray
_NEAR_AXIS = 1e-7  # of the largest eigenvalue: double eigenvalues on the axis split by the root of rounding
_STEPS = 40
_LARGE = 30  # states; below, eigenvalues of twice the size take no longer than intervals


@takes_systems()
def h2_norm(G: StateSpace) -> float:
    """(1); infinite for an unstable system, and for a continuous one with a direct part."""
    if not G.is_stable or (not G.is_discrete and np.any(G.D)):
        return float("inf")
    if not G.is_discrete:
        return float(np.sqrt(max(np.trace(G.C @ lyapunov(G.A, G.B @ G.B.T) @ G.C.T), 0.0)))
    twin = bilinear(G)
    P = lyapunov(twin.A, twin.B @ twin.B.T)
    return float(np.sqrt(max(np.trace(G.C @ P @ G.C.T) + np.sum(G.D**2), 0.0)))


@takes_systems()
def hinf_norm(G: StateSpace, *, tolerance: float = 1e-9) -> PeakGain:
    """The largest singular value of G over all frequencies; infinite, at its fastest growing pole, for an unstable G."""
    if G.is_discrete:
        return linf_norm(G, tolerance=tolerance) if G.is_stable else _unbounded(G)
    found, modes = _by_impulses(G, tolerance)
    if found is not None:
        return found
    if not (G.is_stable if modes is None else np.all(modes.poles.real < 0)):
        return _unbounded(G)
    return _by_modes(G, modes, tolerance)


def _unbounded(G: StateSpace) -> PeakGain:
    worst = np.linalg.eigvals(G.A)[int(np.argmax(G.decay()))]
    at = abs(np.angle(worst)) / G.dt if G.is_discrete else abs(worst.imag)
    return PeakGain(float("inf"), float(at), float("inf"))


@takes_systems()
def linf_norm(G: StateSpace, *, tolerance: float = 1e-9) -> PeakGain:
    """The largest gain on the axis (the unit circle), whether or not the system is stable."""
    if G.is_discrete and G.order:
        if np.any(np.abs(G.decay()) < 1e-14):
            pole = np.linalg.eigvals(G.A)[int(np.argmin(np.abs(G.decay())))]
            return PeakGain(float("inf"), float(abs(np.angle(pole)) / G.dt), float("inf"))
        found = _on_axis(bilinear(G), tolerance)
        return PeakGain(found.gain, float(2 * np.arctan(found.frequency) / G.dt), found.upper)
    return _on_axis(G, tolerance)


def _on_axis(G: StateSpace, tolerance: float) -> PeakGain:
    found, modes = _by_impulses(G, tolerance)
    return _by_modes(G, modes, tolerance) if found is None else found


def _by_impulses(G: StateSpace, tolerance: float) -> tuple[PeakGain | None, ModalForm | None]:
    """The gain of a large system without eigenvalues; or its modes, where they are found fast, or nothing else helps."""
    if G.order < _LARGE or not all(G.shape):
        return None, None
    modes = fast_modes(G.A)
    if modes is not None:
        return None, modes
    found = impulse_gain(*G.balanced_scales().matrices, tolerance)
    return found, modal_form(G.A) if found is None else None


def _by_modes(G: StateSpace, modes: ModalForm | None, tolerance: float) -> PeakGain:
    """By intervals where G has modes and they prove it, by eigenvalues of twice the size otherwise."""
    found = None if modes is None else bounded_gain(*G.matrices, modes, tolerance)
    return peak_gain(*G.balanced_scales().matrices, tolerance=tolerance) if found is None else found


def peak_gain(A: Array, B: Array, C: Array, D: Array, *, tolerance: float = 1e-9) -> PeakGain:
    """Of a continuous system, whose matrices may be complex."""
    top = float(np.linalg.norm(D, 2)) if D.size else 0.0
    if not len(A) or not B.size or not C.size:
        return PeakGain(top, float("inf") if top and len(A) else 0.0, top)
    poles = np.linalg.eigvals(A)
    if np.any(poles.real == 0):
        return PeakGain(float("inf"), float(abs(poles[np.argmin(np.abs(poles.real))].imag)), float("inf"))
    G = ResponseEvaluator(A, B, C, D)
    two_sided = any(np.iscomplexobj(x) for x in (A, B, C, D))
    best, at = _start(G, poles, two_sided)
    if top >= best:
        best, at = top, float("inf")
    if best == 0.0:
        return PeakGain(0.0, 0.0, 0.0)
    for _ in range(_STEPS):
        level = best * (1 + 2 * tolerance)
        w = level_crossings(A, B, C, D, level)
        w = w if two_sided else np.unique(np.abs(w))
        if not len(w):
            return PeakGain(best, at, level)
        ends = np.concatenate([w, (w[1:] + w[:-1]) / 2, [w[0] - 0.5 * abs(w[0])]])
        gains = _gains(G, ends)
        k = int(np.argmax(gains))
        if gains[k] <= level:
            return PeakGain(best, at, level)
        near = np.sort(np.abs(ends[ends != ends[k]] - ends[k]))
        width = near[0] if len(near) and near[0] > 0 else 1e-3 * max(abs(ends[k]), 1e-6)
        at, best = _polished(G, float(ends[k]), float(width))
        best = max(best, float(gains[k]))
    raise NumericalError(f"hinf_norm: no level above {best:.6g} was found that the gain stays below")


def level_crossings(A: Array, B: Array, C: Array, D: Array, level: float) -> Array:
    """The frequencies, ascending, at which `level` is a singular value of G(jw) (and perhaps some more), by (2) or (3)."""
    n, m = B.shape
    p = len(C)
    R, S = (level**2 * np.eye(k) - X for k, X in ((m, D.conj().T @ D), (p, D @ D.conj().T)))
    least = min(np.linalg.eigvalsh(R)[0], np.linalg.eigvalsh(S)[0]) if m and p else 1.0
    if least > 1e-5 * level**2:
        left = np.linalg.solve(R, D.conj().T @ C)
        F = A + B @ left
        H = np.block(
            [
                [F, level * B @ np.linalg.solve(R, B.conj().T)],
                [-level * C.conj().T @ np.linalg.solve(S, C), -F.conj().T],
            ]
        )
        found = np.linalg.eigvals(H)
    else:
        M = np.zeros((2 * n + m + p, 2 * n + m + p), dtype=np.result_type(A, B, C, D))
        M[:n, :n], M[:n, 2 * n : 2 * n + m] = A, B
        M[n : 2 * n, n : 2 * n], M[n : 2 * n, 2 * n + m :] = -A.conj().T, -C.conj().T
        M[2 * n : 2 * n + m, n : 2 * n], M[2 * n : 2 * n + m, 2 * n + m :] = B.conj().T, D.conj().T
        M[2 * n : 2 * n + m, 2 * n : 2 * n + m] = -level * np.eye(m)
        M[2 * n + m :, :n], M[2 * n + m :, 2 * n : 2 * n + m] = C, D
        M[2 * n + m :, 2 * n + m :] = -level * np.eye(p)
        found = scipy.linalg.eigvals(M, np.diag([1.0] * (2 * n) + [0.0] * (m + p)))
        found = found[np.isfinite(found)]
        found = found[np.abs(found) < 1e8 * max(1.0, float(np.abs(np.linalg.eigvals(A)).max()))]
    size = min(
        float(np.abs(found).max(initial=0.0)), 10 * float(np.abs(np.linalg.eigvals(A)).max(initial=0.0))
    )
    return np.sort(found[np.abs(found.real) <= _NEAR_AXIS * np.maximum(size, np.abs(found))].imag)


def _start(G: ResponseEvaluator, poles: Array, two_sided: bool) -> tuple[float, float]:
    """The largest gain near a pole or on a coarse grid, after climbing to the peak."""
    sizes = np.abs(poles)
    sizes = sizes[sizes > 1e-8 * sizes.max()] if sizes.max() > 0 else np.ones(1)
    grid = np.geomspace(sizes.min() / 10, sizes.max() * 10, 40)
    resonant = np.sqrt(np.maximum(poles.imag**2 - poles.real**2, 0.0))
    w = np.unique(np.concatenate([[0.0], grid, np.abs(poles.imag), np.abs(poles), resonant]))
    w = np.concatenate([-w[:0:-1], w]) if two_sided else w
    gains = _gains(G, w)
    best, at = float(gains.max()), float(w[np.argmax(gains)])
    inner = np.flatnonzero((gains[1:-1] >= gains[:-2]) & (gains[1:-1] >= gains[2:])) + 1
    for k in sorted(inner, key=lambda k: -gains[k])[:4]:
        if gains[k] < 0.3 * best:
            break
        where, gain = _climbed(G, float(w[k - 1]), float(w[k + 1]))
        if gain > best:
            best, at = gain, where
    return best, at


def _climbed(G: ResponseEvaluator, low: float, high: float) -> tuple[float, float]:
    found = scipy.optimize.minimize_scalar(
        lambda w: -_gains(G, np.array([w]))[0],
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-11 * (high - low)},
    )
    return _polished(G, float(found.x), 1e-3 * (high - low))


def _polished(G: ResponseEvaluator, w: float, width: float) -> tuple[float, float]:
    """(frequency, gain) at the peak: parabolas through three points that come closer and closer."""
    h = width
    best = float(_gains(G, np.array([w]))[0])
    for _ in range(60):
        a, c = _gains(G, np.array([w - h, w + h]))
        bend = a - 2 * best + c
        step = 0.5 * h * (a - c) / bend if bend < 0 else (h if c > a else -h)
        trial = w + float(np.clip(step, -h, h))
        gain = float(_gains(G, np.array([trial]))[0])
        if gain > best:
            w, best = trial, gain
        if abs(bend) < 1e-9 * best or h <= 1e-12 * abs(w):
            break
        h *= 0.3
    return w, best


def _gains(G: ResponseEvaluator, w: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        response = G(1j * w)
    found = np.zeros(len(w))
    known = np.isfinite(response).all(axis=(1, 2))
    found[known] = np.linalg.svd(response[known], compute_uv=False)[:, 0]
    found[~known] = np.inf
    return found
