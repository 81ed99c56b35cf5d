"""Norms of systems: H2, and the largest gain over all frequencies.

    |G|_2^2 = trace(C P C^T),      A P + P A^T + B B^T = 0                                                   (1)

The gain g is a singular value of G(jw) at some w just where jw is an eigenvalue of

    [A + B R^-1 D^T C      g B R^-1 B^T          ]
    [-g C^T S^-1 C         -(A + B R^-1 D^T C)^T ],       R = g^2 - D^T D,   S = g^2 - D D^T                 (2)

(Boyd, Balakrishnan, Kabamba 1989). Large systems take faster ways, where they prove the level: the impulse response
(`impulse_gain`), or fractions (`bounded_gain`). For the others, Bruinsma and Steinbuch (1990, "A fast algorithm to
compute the H-infinity norm", Systems and Control Letters 14) start at the largest gain found and go up: where (2) still
has eigenvalues on the axis, the gain between them is larger. The start is taken from every pole and a coarse grid, each
peak polished; one test then usually suffices. Where the direct part D sets the level, R is nearly singular, and the
eigenvalues are those of the pencil

    s x = A x + B u,   s l = -A^T l - C^T y,   0 = B^T l + D^T y - g u,   0 = C x + D u - g y.               (3)

Eigenvalues taken for imaginary ones by mistake only cost evaluations: the level rises only by gains that were computed.

**By fractions**: the largest gain of a real system in modal form, by intervals of frequency on each of which it is bounded.

    G = D + sum_k R_k / (z - mu_k),        z = w, mu = -i pole, R = -i residue,                              (4)
                                    or     z = 1 / w, mu = i / pole, R = -i residue / pole^2                 (5)

for w below and above some frequency. On an interval of length L from a to b, where |G''| <= c,

    |G| <= g + c L^2 / 8,        |G|^2 <= g^2 + 2 |G| c L^2 / 8,        g = max(|G(a)|, |G(b)|),             (6)

c = 2 sum_k |R_k| / d_k^3, d_k the distance of mu_k from the interval: the matrix level^2 - G^H G lies below the chord of
its values at the ends by no more than L^2 / 8 times its second derivative, -G^H G'' - G''^H G - 2 G'^H G', whose last
term only helps. An interval on which (6) does not prove the gain to be below the level is halved; a middle whose gain is
above all known ones leads to a higher peak. All intervals of a round are done at once.

Rounding: with N = W (A V - V diag(poles)) and W V = 1 + M, both nearly zero, and R_k = c_k b_k^T, G is computed with an
error of no more than

    s_c (2 |N| s_b + |M| |b|) + n eps sum_k |R_k| / d_k,    s_c^2 = sum_k |c_k|^2 / d_k^2,    s_b likewise,    (7)

d_k the distance from the pole, as long as all poles are further than 2 |N| from the axis. Near a peak, where this matters,
the entries of N and M tell more than their norms:

    sum_kl |c_k| / d_k (|N_kl| |b_l| / d_l + |M_kl| |b_l|) + 2 s_c s_b |N|^2 / min d_k + n eps sum_k |R_k| / d_k.    (8)

**By the impulse response**: stability and largest gain of a dense, well damped system, without eigenvalues.

With s = sigma (z - 1) / (z + 1), X = (sigma - A)^-1 (sigma + A) and v_k = X^k (sigma - A)^-1 B,

    C (s - A)^-1 B = sum_k (z^-k + z^-(k+1)) C v_k,        |z| = 1 where s is on the axis.                     (9)

X is squared until q = |X^J| < 1/2, J a power of two: that proves that A is stable. The vectors come J at a time, each block
being X^J times the one before, until the rest is nothing:

    sum_(k >= N) |v_k| <= q / (1 - q) (sum of |v_k| in the last block).                                        (10)

All of this is products of matrices, much faster than eigenvalues. The gain of (9), a polynomial in 1/z, comes on a grid by
a Fourier transform; between points at a distance L of the angle of z it is larger by no more than L^2 / 8 times
sum_k k^2 |H_k|, H_k its coefficients. Intervals for which that is too much are halved.

Rounding: with r_k = (sigma - A) v_k - (sigma + A) v_(k-1), r_0 = (sigma - A) v_0 - B, the v_k as computed, (9) is wrong by

    C (s - A)^-1 sum_k z^-k r_k,    |C (s - A)^-1| <= 2 / (1 - q) sum_(k < J) |C (sigma - A)^-1 X^k|,             (11)

and the r_k of a block are those of the block before times X^J, but for [X^J, A] (v_k + v_(k-1)). Norms are Frobenius'.
A product of sizes a and b over n terms is wrong by n eps a b at most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy

from alembert.control.arguments import relative, takes_systems
from alembert.control.gramian import ModalForm, conjugate_pairs, fast_modes, lyapunov, modal_form
from alembert.control.responses import ResponseEvaluator, bilinear
from alembert.control.statespace import StateSpace
from alembert.errors import NumericalError

Array = np.ndarray
_NEAR_AXIS = 1e-7  # of the largest eigenvalue: double eigenvalues on the axis split by the root of rounding
_STEPS = 40
_HIGH = 0.7  # of the highest peak: others are not climbed. If it is one of them, the eigenvalues of (2) tell
_LARGE = 30  # states; below, eigenvalues of twice the size take no longer than intervals
_LIGHT = 0.5  # mean damping: below, there are too many impulses


@takes_systems()
def h2_norm(G: StateSpace) -> float:
    """(1); infinite for an unstable system, and for a continuous one with a direct part."""
    if not G.is_stable or (not G.is_discrete and np.any(G.D)):
        return float("inf")
    G = G.balanced_scales()  # a Lyapunov equation in units far apart loses all digits
    if not G.is_discrete:
        return float(np.sqrt(max(np.trace(G.C @ lyapunov(G.A, G.B @ G.B.T) @ G.C.T), 0.0)))
    twin = bilinear(G)
    P = lyapunov(twin.A, twin.B @ twin.B.T)
    return float(np.sqrt(max(np.trace(G.C @ P @ G.C.T) + np.sum(G.D**2), 0.0)))


@takes_systems()
def hinf_norm(G: StateSpace, *, tolerance: float = 1e-9) -> PeakGain:
    """The largest singular value of G over all frequencies; infinite, at its fastest growing pole, for an unstable G."""
    relative("hinf_norm", tolerance)
    if G.is_discrete:
        return linf_norm(G, tolerance=tolerance) if G.is_stable else _unbounded(G)
    found, modes = _quickly(G, tolerance)
    if found is not None:
        return found
    if not (G.is_stable if modes is None else np.all(modes.poles.real < 0)):
        return _unbounded(G)
    return _thoroughly(G, modes, tolerance)


def _unbounded(G: StateSpace) -> PeakGain:
    worst = np.linalg.eigvals(G.A)[int(np.argmax(G.decay()))]
    at = abs(np.angle(worst)) / G.dt if G.is_discrete else abs(worst.imag)
    return PeakGain(float("inf"), float(at), float("inf"))


@takes_systems()
def linf_norm(G: StateSpace, *, tolerance: float = 1e-9) -> PeakGain:
    """The largest gain on the axis (the unit circle), whether or not the system is stable."""
    relative("linf_norm", tolerance)
    if G.is_discrete and G.order:
        if np.any(np.abs(G.decay()) < 1e-14):
            pole = np.linalg.eigvals(G.A)[int(np.argmin(np.abs(G.decay())))]
            return PeakGain(float("inf"), float(abs(np.angle(pole)) / G.dt), float("inf"))
        found = _on_axis(bilinear(G), tolerance)
        return PeakGain(found.gain, float(2 * np.arctan(found.frequency) / G.dt), found.upper)
    return _on_axis(G, tolerance)


def _on_axis(G: StateSpace, tolerance: float) -> PeakGain:
    found, modes = _quickly(G, tolerance)
    return _thoroughly(G, modes, tolerance) if found is None else found


def _quickly(G: StateSpace, tolerance: float) -> tuple[PeakGain | None, ModalForm | None]:
    """The gain of a large, well damped system without eigenvalues; the modes of another one."""
    if G.order < _LARGE or not all(G.shape):
        return None, None
    modes = fast_modes(G.A)
    if modes is not None:
        return None, modes
    found = None if _oscillates(G) else impulse_gain(*G.balanced_scales().matrices, tolerance)
    return found, modal_form(G.A) if found is None else None


def _thoroughly(G: StateSpace, modes: ModalForm | None, tolerance: float) -> PeakGain:
    """By intervals where G has modes and they prove it, by impulses, or by eigenvalues of twice the size."""
    found = None if modes is None else bounded_gain(*G.matrices, modes, tolerance)
    if found is not None:
        return found
    matrices = G.balanced_scales().matrices
    if G.order >= _LARGE and all(G.shape) and modes is None and _oscillates(G):
        found = impulse_gain(*matrices, tolerance)
    return peak_gain(*matrices, tolerance=tolerance) if found is None else found


def _oscillates(G: StateSpace) -> bool:
    """Poles are, in the mean, damped so little that modes are faster than impulses."""
    return mean_damping(G.A) < _LIGHT


def mean_damping(A: Array) -> float:
    """Of all poles: the mean decay over the root mean square of the frequencies, from the traces of A and of its square."""
    n = len(A)
    decay, squares = -np.trace(A) / n, np.einsum("ij,ji->", A, A) / n  # the mean of decay^2 - frequency^2
    frequencies = decay**2 - squares  # at least: decay^2 is, in the mean, the square of its mean or more
    return float(decay / np.sqrt(frequencies)) if frequencies > 0 else np.inf


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
        peak = climbed(partial(_gains, G), float(ends[k] - width), float(ends[k] + width))
        best, at = max(peak, (float(gains[k]), float(ends[k])))
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
        if gains[k] < _HIGH * best:
            break
        best, at = max((best, at), climbed(partial(_gains, G), float(w[k - 1]), float(w[k + 1])))
    return best, at


def _gains(G: ResponseEvaluator, w: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        response = G(1j * w)
    found = np.zeros(len(w))
    known = np.isfinite(response).all(axis=(1, 2))
    found[known] = _largest_singular(response[known])
    found[~known] = np.inf
    return found


def _largest_singular(T: Array) -> Array:
    """Of each matrix, by its smaller product with itself: of the largest one squares keep all digits."""
    size = float(np.abs(T).max(initial=0.0)) or 1.0
    T = (T if T.shape[1] <= T.shape[2] else T.conj().swapaxes(1, 2)) / size
    square = T @ T.conj().swapaxes(1, 2)
    largest = square[:, 0, 0].real if square.shape[1] == 1 else np.linalg.eigvalsh(square)[:, -1]
    return np.asarray(size * np.sqrt(largest))


_POINTS_A_POLE = (
    60  # of the intervals' ends, at most: more would take longer than eigenvalues of twice the size
)
_ROUNDING = (
    1e-5  # of the level: the largest part (7), (8) of an answer; it is what rounding of A itself may change
)
_CLIMB = 9  # points at once on the way to a peak, which leave a quarter of the interval
_BESIDE = np.array([-1e-2, -1e-4, 0.0, 1e-4, 1e-2])  # points at a parabola's top, in widths of the interval
_FLAT = 1e-13  # relative: the gain at these points is the peak's


@dataclass(frozen=True)
class PeakGain:
    """The largest gain, the frequency [rad/s] where it is reached, and a level that it provably stays below."""

    gain: float
    frequency: float
    upper: float

    def __float__(self) -> float:
        return self.gain


def bounded_gain(
    A: Array, B: Array, C: Array, D: Array, modes: ModalForm, tolerance: float
) -> PeakGain | None:
    """None where no pole is away from the axis, or the intervals become too many."""
    return _Search(A, B, C, D, modes, tolerance).found()


class _Search:
    def __init__(self, A: Array, B: Array, C: Array, D: Array, modes: ModalForm, tolerance: float) -> None:
        self.poles, self.D, self.tolerance = modes.poles, D, tolerance
        lengths = np.sqrt(np.linalg.norm(modes.inverse, axis=1) / np.linalg.norm(modes.V, axis=0))
        V, inverse = modes.V * lengths, modes.inverse / lengths[:, None]
        c, b = C @ V, inverse @ B
        self.residues = (c.T[:, :, None] * b[:, None, :]).reshape(len(A), -1)
        self.c, self.b = np.linalg.norm(c, axis=0), np.linalg.norm(b, axis=1)
        self.entries = rounding_of_modes(A, V, inverse, modes)
        self.N, self.M = (float(np.linalg.norm(x)) for x in self.entries)
        self.best, self.at, self.upper, self.points = 0.0, 0.0, 0.0, 0

    def found(self) -> PeakGain | None:
        if np.abs(self.poles.real).min() <= 2 * self.N:
            return None
        slow, fast = np.abs(self.poles).min(), 2 * np.abs(self.poles).max()
        ends = np.unique(np.concatenate([[0.0, slow], np.abs(self.poles.imag), [fast]]))
        inverse = np.array([0.0, 1 / fast])
        gains = self.gains(ends)
        at_inverse = np.array([np.linalg.norm(self.D, 2), gains[-1]])
        k = int(np.argmax(gains))
        self.best, self.at = float(gains[k]), float(ends[k])
        if at_inverse[0] > self.best:
            self.best, self.at = float(at_inverse[0]), np.inf
        if np.isfinite(self.at):
            width = np.abs(self.poles.real[np.argmin(np.abs(1j * self.at - self.poles))])
            self.climb(max(self.at - 2 * width, 0.0), self.at + 2 * width)
        if self.best == 0:
            return PeakGain(0.0, 0.0, 0.0)
        low = self.prove(ends, gains, inverted=False) and self.prove(inverse, at_inverse, inverted=True)
        if not low or self.upper > self.best * (1 + 2 * self.tolerance + _ROUNDING):
            return None
        return PeakGain(self.best, self.at, max(self.upper, self.best))

    def prove(self, ends: Array, gains: Array, *, inverted: bool) -> bool:
        """(6) on all intervals between the ends, which are frequencies or inverse ones."""
        mu = 1j / self.poles if inverted else -1j * self.poles
        weights = self.b * self.c / (np.abs(self.poles) ** 2 if inverted else 1.0)
        a, b, at_a, at_b = ends[:-1], ends[1:], gains[:-1], gains[1:]
        while len(a):
            self.points += len(a)
            if self.points > _POINTS_A_POLE * len(self.poles):
                return False
            x = mu.real
            beside = np.maximum(np.maximum(a[:, None] - x, x - b[:, None]), 0.0)
            near = 1 / np.hypot(beside, mu.imag)
            bend = (b - a) ** 2 / 4 * (near**3 @ weights)
            distances = near * b[:, None] / np.abs(self.poles) if inverted else near
            rounding = self.rounding(distances)
            top = np.maximum(at_a, at_b)
            bound = np.sqrt(top**2 + 2 * (top + bend) * bend)
            level = self.best * (1 + 2 * self.tolerance)
            proven = bound <= level
            high = np.flatnonzero(proven & (bound + rounding > self.best))
            if len(high):
                rounding[high] = self.rounding_near(distances[high])
            self.upper = max(self.upper, float((bound + rounding)[proven].max(initial=0.0)))
            a, b, at_a, at_b = (v[~proven] for v in (a, b, at_a, at_b))
            middle = (a + b) / 2
            if np.any((middle <= a) | (middle >= b)):
                return False
            at_middle = self.gains(1 / middle if inverted else middle)
            if at_middle.max(initial=0.0) > self.best:
                k = int(np.argmax(at_middle))
                self.climb(*((1 / b[k], 1 / max(a[k], 1e-6 * b[k])) if inverted else (a[k], b[k])))
            a, b = np.concatenate([a, middle]), np.concatenate([middle, b])
            at_a, at_b = np.concatenate([at_a, at_middle]), np.concatenate([at_middle, at_b])
        return True

    def rounding(self, near: Array) -> Array:
        """(7), from what 1 / d_k is at most."""
        c, b = (np.sqrt(near**2 @ x**2) for x in (self.c, self.b))
        sums = len(self.poles) * np.finfo(float).eps * (near @ (self.c * self.b))
        return np.asarray(c * (2 * self.N * b + self.M * np.linalg.norm(self.b)) + sums)

    def rounding_near(self, near: Array) -> Array:
        """(8), likewise."""
        N, M = self.entries
        c, b = near * self.c, near * self.b
        first = np.einsum("ij,ij->i", c @ N, b) + (c @ M) @ self.b
        second = 2 * self.N**2 * np.linalg.norm(c, axis=1) * np.linalg.norm(b, axis=1) * near.max(axis=1)
        return np.asarray(first + second + len(self.poles) * np.finfo(float).eps * (near @ (self.c * self.b)))

    def climb(self, low: float, high: float) -> None:
        self.best, self.at = max((self.best, self.at), climbed(self.gains, low, high))

    def gains(self, w: Array) -> Array:
        response = (1 / (1j * w[:, None] - self.poles)) @ self.residues
        return _largest_singular(response.reshape(-1, *self.D.shape) + self.D)


def climbed(gains: Callable[[Array], Array], low: float, high: float) -> tuple[float, float]:
    """(gain, frequency) of the peak between two frequencies; where there are several, of one of them. Points lie close to
    where a parabola through the best three has its top."""
    w, best, at = np.linspace(low, high, _CLIMB), 0.0, low
    for _ in range(60):
        found = gains(w)
        k = int(np.argmax(found))
        if found[k] > best:
            best, at = float(found[k]), float(w[k])
        if found.min() >= (1 - _FLAT) * found[k] or len(w) < 3:  # or there is no number between the last two
            break
        inner = int(np.clip(k, 1, len(w) - 2))
        (a, b, c), (ga, gb, gc) = (x[inner - 1 : inner + 2] for x in (w, found))
        low, high = w[max(k - 1, 0)], w[min(k + 1, len(w) - 1)]
        left, right = (b - a) * (gb - gc), (b - c) * (gb - ga)
        top = b - 0.5 * ((b - a) * left - (b - c) * right) / (left - right) if left != right else b
        near = np.clip(top, low, high) + (high - low) * _BESIDE
        w = np.unique(np.concatenate([np.linspace(low, high, _CLIMB), near[(near > low) & (near < high)]]))
    return best, at


def rounding_of_modes(A: Array, V: Array, inverse: Array, modes: ModalForm) -> tuple[Array, Array]:
    """|N| and |M|, entry by entry. Vectors come in conjugate pairs: products of their real and imaginary parts tell all."""
    above, below, real = conjugate_pairs(modes.poles)
    k, n = len(above), len(A)

    def parts(X: Array) -> Array:
        return np.vstack([X[above].real, X[above].imag, X[real].real])

    rows, columns = parts(inverse), parts(V.T).T
    moved = A @ columns
    V, poles = V[:, above], modes.poles[above]
    moved[:, :k] -= V.real * poles.real - V.imag * poles.imag
    moved[:, k : 2 * k] -= V.real * poles.imag + V.imag * poles.real
    moved[:, 2 * k :] -= columns[:, 2 * k :] * modes.poles[real].real
    found = []
    for product, unit in ((rows @ moved, 0.0), (rows @ columns, 1.0)):
        (a, b, x), (c, d, y), (e, f, z) = (
            np.split(part, [k, 2 * k], axis=1) for part in np.split(product, [k, 2 * k])
        )
        sizes = np.empty((n, n))
        same = _moduli(a - d - unit * np.eye(k), b + c)
        other = _moduli(a + d, c - b)
        for this, that in ((above, below), (below, above)):
            sizes[np.ix_(this, this)], sizes[np.ix_(this, that)] = same, other
            sizes[np.ix_(this, real)], sizes[np.ix_(real, this)] = _moduli(x, y), _moduli(e, f)
        sizes[np.ix_(real, real)] = np.abs(z - unit * np.eye(n - 2 * k))
        found.append(sizes)
    return found[0], found[1]


def _moduli(x: Array, y: Array) -> Array:
    return np.sqrt(x * x + y * y)  # five times faster than hypot; what underflows is below all other rounding


_EPS = float(np.finfo(float).eps)
_COLUMNS = 40  # of all v_k, in orders of the system: with more, modes do not take longer
_LASTS = 64  # vectors, of which the last ones tell whether so many would do
_ERROR = 1e-5  # of the largest gain: (10) and (11) together; it is what rounding of A itself may change
_HALVINGS = 60


def impulse_gain(A: Array, B: Array, C: Array, D: Array, tolerance: float) -> PeakGain | None:
    """The largest gain of a real system; None where stability, or the gain, is not proven so."""
    if len(C) < B.shape[1]:
        A, B, C, D = A.T, C.T, B.T, D.T
    if not np.any(B) or not np.any(C):
        return None
    with np.errstate(all="ignore"):  # of an unstable system powers of X overflow
        found = _impulses(A, B, C, D, tolerance)
    return None if found is None else _largest(*found, tolerance)


def _impulses(
    A: Array, B: Array, C: Array, D: Array, tolerance: float
) -> tuple[Array, float, int, float] | None:
    """H_k, a bound of what they are wrong by in all, J, and sigma; (10) leaves `tolerance` (relative)."""
    n, m = B.shape
    p, size, unit, u = len(C), _size(A), np.eye(n), n * _EPS
    sigma = size / np.sqrt(n)
    if not sigma > 0:
        return None
    try:
        X = np.linalg.solve(sigma * unit - A, sigma * unit + A)
    except np.linalg.LinAlgError:
        return None
    # (sigma - A)^-1 = (1 + X) / (2 sigma); what a product with it is wrong by is (sigma - A)^-1 times its residual
    x, V, W = _size(X), (B + X @ B) / (2 * sigma), (C + C @ X) / (2 * sigma)
    wrong = _size(sigma * (X - unit) - A @ (X + unit)) + 2 * u * (sigma + size) * (x + np.sqrt(n))
    first = _size(sigma * V - A @ V - B) + 2 * u * (sigma + size) * _size(V)
    of_W = _size(sigma * W - W @ A - C) + 2 * u * (sigma + size) * _size(W)
    inverse = (x + np.sqrt(n)) / (2 * sigma)
    if not wrong < sigma:
        return None
    inverse /= 1 - wrong / (2 * sigma)
    wrong *= inverse
    rows, slack = _lengths(W.T, p), np.array([inverse * of_W])
    most = _COLUMNS * n // m
    while not x + wrong < 0.5:
        if len(rows) > most or not np.isfinite(x):
            return None
        if len(rows) >= _LASTS and (rows[-1] / rows[len(rows) // 2]) ** (2 * most / len(rows)) > 1e-3:
            return None  # even the most would not shrink enough
        V, W = np.hstack([V, X @ V]), np.vstack([W, W @ X])
        slack = np.concatenate([slack, x * slack + (wrong + u * x) * (rows + slack)])
        rows = _lengths(W.T, p)
        X, wrong = X @ X, (2 * x + wrong) * wrong + u * x**2
        x = _size(X)
    q = x + wrong
    resolvent = 2 / (1 - q) * (rows + slack).sum()
    commutator = _size(X @ A - A @ X) + 2 * u * x * size
    block = _lengths(V, m).sum()
    ahead = np.hstack([V[:, m:], X @ V[:, :m]])
    residual = _lengths(sigma * (ahead - V) - A @ (ahead + V), m).sum() + 4 * u * (sigma + size) * block
    residuals, lengths, outputs = first + residual, block, [C @ V]
    highest = max(np.linalg.norm(outputs[0], axis=0).max(), _size(D))
    while 2 * _size(C) * q / (1 - q) * block > tolerance * highest:
        if len(outputs) * len(rows) > most:
            return None
        V, before = X @ V, block
        block = _lengths(V, m).sum()
        both = 2 * before + block
        residual = x * residual + (commutator + (sigma + size) * u * x) * both
        residuals, lengths = residuals + residual, lengths + block
        outputs.append(C @ V)
    y = np.concatenate(outputs, axis=1).reshape(len(C), -1, m).swapaxes(0, 1)
    H = np.concatenate([y, np.zeros((1, *y.shape[1:]))])
    H[1:] += y
    H[0] += D
    error = resolvent * (residuals + q / (1 - q) * residual)
    error += 2 * _size(C) * (q / (1 - q) * block + u * lengths)
    error += 5 * len(H) * _EPS * np.linalg.norm(H, axis=(1, 2)).sum()
    return H, float(error), len(rows), float(sigma)


def _largest(H: Array, error: float, J: int, sigma: float, tolerance: float) -> PeakGain | None:
    """The largest gain of the sum of H_k exp(-j k t), t from zero to pi."""
    points = 4 * 2 ** int(np.ceil(np.log2(len(H))))
    t = 2 * np.pi / points * np.arange(points // 2 + 1)
    grid = np.fft.rfft(H, points, axis=0)
    at_t = np.linalg.norm(
        grid, axis=(1, 2)
    )  # no less than the gain, which is looked at where it may be the largest
    high = at_t >= np.linalg.norm(grid[np.argmax(at_t)], 2)
    at_t[high] = np.linalg.norm(grid[high], 2, axis=(1, 2))
    bend = float(np.arange(len(H)) ** 2.0 @ np.linalg.norm(H, axis=(1, 2))) / 8
    taps = np.concatenate([H, np.zeros((-len(H) % J, *H.shape[1:]))]).reshape(-1, J, H[0].size) + 0j

    def gains(t: Array) -> Array:
        inner = np.exp(-1j * np.outer(t, np.arange(J))) @ taps
        outer = np.exp(-1j * J * np.outer(np.arange(len(taps)), t))
        return _largest_singular(np.einsum("it,itk->tk", outer, inner).reshape(-1, *H.shape[1:]))

    k = int(np.argmax(at_t))
    best, at = climbed(gains, float(t[max(k - 1, 0)]), float(t[min(k + 1, len(t) - 1)]))
    if at_t[k] > best:
        best, at = float(at_t[k]), float(t[k])
    a, b, at_a, at_b = t[:-1], t[1:], at_t[:-1], at_t[1:]
    for _ in range(_HALVINGS):
        level = best * (1 + 2 * tolerance)
        # the square of the gain lies above the chord by no more than 2 |G| |G''| L^2 / 8
        top, above = np.maximum(at_a, at_b), bend * (b - a) ** 2
        open_ = np.sqrt(top**2 + 2 * (top + above) * above) > level
        if not np.any(open_):
            upper = level + error
            w = sigma * np.tan(at / 2) if at < np.pi else np.inf
            return PeakGain(best, float(w), upper) if error <= _ERROR * best else None
        a, b, at_a, at_b = (x[open_] for x in (a, b, at_a, at_b))
        middle = (a + b) / 2
        at_middle = gains(middle)
        k = int(np.argmax(at_middle))
        if at_middle[k] > best:
            best, at = max((float(at_middle[k]), float(middle[k])), climbed(gains, float(a[k]), float(b[k])))
        a, b = np.concatenate([a, middle]), np.concatenate([middle, b])
        at_a, at_b = np.concatenate([at_a, at_middle]), np.concatenate([at_middle, at_b])
    return None


def _size(X: Array) -> float:
    return float(np.linalg.norm(X))


def _lengths(V: Array, m: int) -> Array:
    """Of matrices of m columns that stand side by side."""
    return np.sqrt(np.einsum("ij,ij->j", V, V).reshape(-1, m).sum(axis=1))
