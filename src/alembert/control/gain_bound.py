"""The largest gain of a real system in modal form, by intervals of frequency on each of which it is bounded.

    G = D + sum_k R_k / (z - mu_k),        z = w, mu = -i pole, R = -i residue,                              (1)
                                    or     z = 1 / w, mu = i / pole, R = -i residue / pole^2                 (2)

for w below and above some frequency. On an interval of length L from a to b, where |G''| <= c,

    |G| <= g + c L^2 / 8,        |G|^2 <= g^2 + 2 |G| c L^2 / 8,        g = max(|G(a)|, |G(b)|),             (3)

c = 2 sum_k |R_k| / d_k^3, d_k the distance of mu_k from the interval: the matrix level^2 - G^H G lies below the chord of
its values at the ends by no more than L^2 / 8 times its second derivative, -G^H G'' - G''^H G - 2 G'^H G', whose last
term only helps. An interval on which (3) does not prove the gain to be below the level is halved; a middle whose gain is
above all known ones leads to a higher peak. All intervals of a round are done at once.

Rounding: with N = W (A V - V diag(poles)) and W V = 1 + M, both nearly zero, and R_k = c_k b_k^T, G is computed with an
error of no more than

    s_c (2 |N| s_b + |M| |b|) + n eps sum_k |R_k| / d_k,    s_c^2 = sum_k |c_k|^2 / d_k^2,    s_b likewise,    (4)

d_k the distance from the pole, as long as all poles are further than 2 |N| from the axis. Near a peak, where this matters,
the entries of N and M tell more than their norms:

    sum_kl |c_k| / d_k (|N_kl| |b_l| / d_l + |M_kl| |b_l|) + 2 s_c s_b |N|^2 / min d_k + n eps sum_k |R_k| / d_k.    (5)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from alembert.control.modal_form import ModalForm, conjugate_pairs

Array = np.ndarray
_POINTS_A_POLE = (
    60  # of the intervals' ends, at most: more would take longer than eigenvalues of twice the size
)
_ROUNDING = (
    1e-5  # of the level: the largest part (4), (5) of an answer; it is what rounding of A itself may change
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
        """(3) on all intervals between the ends, which are frequencies or inverse ones."""
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
        """(4), from what 1 / d_k is at most."""
        c, b = (np.sqrt(near**2 @ x**2) for x in (self.c, self.b))
        sums = len(self.poles) * np.finfo(float).eps * (near @ (self.c * self.b))
        return np.asarray(c * (2 * self.N * b + self.M * np.linalg.norm(self.b)) + sums)

    def rounding_near(self, near: Array) -> Array:
        """(5), likewise."""
        N, M = self.entries
        c, b = near * self.c, near * self.b
        first = np.einsum("ij,ij->i", c @ N, b) + (c @ M) @ self.b
        second = 2 * self.N**2 * np.linalg.norm(c, axis=1) * np.linalg.norm(b, axis=1) * near.max(axis=1)
        return np.asarray(first + second + len(self.poles) * np.finfo(float).eps * (near @ (self.c * self.b)))

    def climb(self, low: float, high: float) -> None:
        self.best, self.at = max((self.best, self.at), climbed(self.gains, low, high))

    def gains(self, w: Array) -> Array:
        response = (1 / (1j * w[:, None] - self.poles)) @ self.residues
        return np.linalg.norm(response.reshape(-1, *self.D.shape) + self.D, 2, axis=(1, 2))


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
        same = np.hypot(a - d - unit * np.eye(k), b + c)
        other = np.hypot(a + d, c - b)
        for this, that in ((above, below), (below, above)):
            sizes[np.ix_(this, this)], sizes[np.ix_(this, that)] = same, other
            sizes[np.ix_(this, real)], sizes[np.ix_(real, this)] = np.hypot(x, y), np.hypot(e, f)
        sizes[np.ix_(real, real)] = np.abs(z - unit * np.eye(n - 2 * k))
        found.append(sizes)
    return found[0], found[1]
