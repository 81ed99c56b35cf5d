"""Stability and largest gain of a dense, well damped system from its impulse response, without eigenvalues.

With s = sigma (z - 1) / (z + 1), X = (sigma - A)^-1 (sigma + A) and v_k = X^k (sigma - A)^-1 B,

    C (s - A)^-1 B = sum_k (z^-k + z^-(k+1)) C v_k,        |z| = 1 where s is on the axis.                     (1)

X is squared until q = |X^J| < 1/2, J a power of two: that proves that A is stable. The vectors come J at a time, each block
being X^J times the one before, until the rest is nothing:

    sum_(k >= N) |v_k| <= q / (1 - q) (sum of |v_k| in the last block).                                        (2)

All of this is products of matrices, much faster than eigenvalues. The gain of (1), a polynomial in 1/z, comes on a grid by
a Fourier transform; between points at a distance L of the angle of z it is larger by no more than L^2 / 8 times
sum_k k^2 |H_k|, H_k its coefficients. Intervals for which that is too much are halved.

Rounding: with r_k = (sigma - A) v_k - (sigma + A) v_(k-1), r_0 = (sigma - A) v_0 - B, the v_k as computed, (1) is wrong by

    C (s - A)^-1 sum_k z^-k r_k,    |C (s - A)^-1| <= 2 / (1 - q) sum_(k < J) |C (sigma - A)^-1 X^k|,             (3)

and the r_k of a block are those of the block before times X^J, but for [X^J, A] (v_k + v_(k-1)). Norms are Frobenius'.
A product of sizes a and b over n terms is wrong by n eps a b at most.
"""

from __future__ import annotations

import numpy as np

from alembert.control.gain_bound import PeakGain, climbed

Array = np.ndarray
_EPS = float(np.finfo(float).eps)
_COLUMNS = 40  # of all v_k, in orders of the system: with more, modes do not take longer
_LASTS = 64  # vectors, of which the last ones tell whether so many would do
_ERROR = 1e-5  # of the largest gain: (2) and (3) together; it is what rounding of A itself may change
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
    """H_k, a bound of what they are wrong by in all, J, and sigma; (2) leaves `tolerance` (relative)."""
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
        return np.linalg.norm(np.einsum("it,itk->tk", outer, inner).reshape(-1, *H.shape[1:]), 2, axis=(1, 2))

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
