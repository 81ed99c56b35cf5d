"""A level that mu stays below at all frequencies, proven.

Scalings D and G found at one frequency prove mu < b as far as, with M(jw) = C (jw - A)^-1 B + D_M,

    F(w) = b^2 D - M^H D M - j (G M - M^H G^H) > 0                                                                   (1)

holds, and that is decided on whole intervals, not at points. In coordinates where D is one, with X = (j w_0 - A)^-1, for
all |t| <= h

    M(j w_0 + j t) = M_0 + t M_1 + t^2 M_2 + ...,   M_k = C X (-j X)^k B,   F(w_0 + t) = F_0 + t F_1 + t^2 F_2 + ...  (2)

The least eigenvalue of F_0 + t F_1 is concave in t: over the interval it is least at one of the two ends. So (1) holds on
[w_0 - h, w_0 + h] where at both ends

    eig(F_0 +- h F_1) > h^2 max(-eig(F_2), 0) + h^3 |F_3| + ... + what the rest of the series can do                  (3)

From some term q on, M's is at most h^q sum_k |c_k| |b_k| |x_k|^q / d_k: A is diagonal there, x_k the entries of X, and d_k
the distance of a pole from the interval. (Where A has no good eigenvectors, norms of C X, X and X B take their place.)
From W on, |M - D_M| <= sum_k |c_k| |b_k| / (W - |pole_k|) does the same. Cells like these are put next to each other, and
every frequency is in one of them.

What is proven: for the matrices as they are given, mu(M(jw)) < b for all w from zero to infinity. Rounding is not enclosed
by intervals of numbers, but bounded as it is known to grow. Eigenvectors V and poles L that are not exact make, with N =
V^-1 (A V - V L), d_b and d_c in V^-1 B and C V,

    |change of M| <= sum_k (|c_k| |x_k| (|d_b,k| + sum_l |N_kl| |x_l| |b_l|) + |d_c,k| |x_k| |b_k|) / (1 - |x N|)    (4)

where N, d_b and d_c come from residuals, to which their own rounding is added; so what is taken off (3) grows with the
condition of V. Products and eigenvalues of small matrices err by no more than 32 eps times their size and that of what
they are made of.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from alembert.control.mu_bounds import DeltaBlock, lower_bounds, real_crossing
from alembert.control.mu_upper import Scalings, UpperBound
from alembert.control.responses import ResponseEvaluator
from alembert.control.statespace import StateSpace
from alembert.errors import NumericalError

Array = np.ndarray
SMALLEST = 1e-2
"""of the bound for complex parameters: no lower peak is looked for"""
NARROW, STEP = 1e-3, 5e-3
"""relative width of an interval on which the level is raised until it is proven, and how close to the least such level"""
EPS = float(np.finfo(float).eps)
TERMS = 6
"""of the series (2)"""
_DIAGONAL = 1e7  # condition of eigenvectors up to which A is made diagonal: nine digits are left
_TRIED = np.array([4.0, 2.0, 1.0, 0.5, 0.25])  # lengths of cells, in those of the last one
_MOST = 5000  # cells of an interval
_TRIES = 5000  # intervals
_GAIN, _HUGE = 1e-6, 30.0
"""how finely the level of a gain is found, relative; and the logarithm of a step up that is too long"""
WIDE = 8.0
"""ratio of the ends of an interval that is tried first"""


class Proof:
    """The peak of mu of a stable, continuous system."""

    def __init__(self, M: StateSpace, blocks: Sequence[DeltaBlock]) -> None:
        self.M = M
        self.scalings = Scalings(blocks)
        self.without_phase = None
        """for real blocks taken as complex: where that is enough, it holds on wider intervals"""
        if any(b.kind == "real" for b in blocks):
            self.without_phase = Scalings(
                [DeltaBlock("complex" if b.kind == "real" else b.kind, b.rows, b.columns) for b in blocks]
            )
        self.reached: tuple[float, float, Array] = (0.0, 0.0, np.zeros(M.D.T.shape))
        """(1/|Delta|, frequency, Delta) of the smallest perturbation met, once the peak is known"""
        self.evaluate = ResponseEvaluator(*M.matrices)
        self.poles: Array
        self.poles, V = np.linalg.eig(M.A) if M.order else (np.zeros(0), np.zeros((0, 0)))
        s = np.linalg.svd(V, compute_uv=False)
        self.diagonal = bool(M.order) and bool(s[-1] * _DIAGONAL > s[0])
        self.B, self.C = M.B.astype(complex), M.C.astype(complex)
        self.errors = np.zeros((M.order, M.order)), np.zeros(M.B.shape), np.zeros(M.C.shape)
        """sizes of N, d_b and d_c of (4)"""
        if self.diagonal:
            self.B, self.C = np.linalg.solve(V, self.B), self.C @ V
            rounding, sizes, inverse = (M.order + 4) * EPS, np.abs(V), np.abs(np.linalg.inv(V))
            product = np.abs(M.A) @ sizes + sizes * np.abs(self.poles)
            N = inverse @ (np.abs(M.A @ V - V * self.poles) + rounding * product)
            b = inverse @ (np.abs(M.B - V @ self.B) + rounding * (sizes @ np.abs(self.B)))
            self.errors = N, b, rounding * (np.abs(M.C) @ sizes)

    def rows(self, level: float) -> Array:
        """What rows of M are multiplied with, for mu below one there to mean what is to be proven."""
        return np.full(len(self.C), 1 / level)

    def at(self, w: float) -> Array:
        return self.M.D.astype(complex) if np.isinf(w) else self.evaluate(np.array([1j * w]))[0]

    def level(self, w: float, tolerance: float = 1e-9) -> float:
        return self.scalings.least(self.at(w), tolerance=tolerance).level

    def peak(self, tolerance: float) -> tuple[float, float, int]:
        """(level, frequency, number of intervals)"""
        sizes = np.abs(self.poles)
        sizes = sizes[sizes > 1e-8 * sizes.max(initial=0.0)] if len(sizes) else np.ones(1)
        grid = np.geomspace(sizes.min() / 10, sizes.max() * 10, 40)
        w = np.unique(np.concatenate([[0.0], grid, np.abs(self.poles.imag)]))
        best, at = self._highest(np.append(w, np.inf), tolerance)
        if best <= 1e-12:
            return 0.0, 0.0, 0
        return self._proven_peak(best, at, tolerance, sizes)

    def _proven_peak(
        self, best: float, at: float, tolerance: float, sizes: Array
    ) -> tuple[float, float, int]:
        """Intervals next to each other, each as wide as one set of scalings carries; `best` grows where it must."""
        far, count = 1e3 * sizes.max(), 0
        left: list[tuple[float, float]] = [(0.0, np.inf)]
        ratio, first, near = WIDE, float(sizes.min()), None
        for _ in range(_TRIES):
            if not left or np.isinf(best):
                return best, at, count
            low, high = left.pop()
            level = best * (1 + tolerance)
            if np.isinf(high):
                bound = self._bound(self.M.D[None].astype(complex), level, None)
                far = max(far, low)
                if bound.level >= 1:
                    best, at = self._exceeded(bound, level, np.inf), np.inf
                elif self._beyond(bound, level, far):
                    count += 1
                    left += [(low, far)] if far > low else []
                    continue
                else:
                    far *= 10
                left.append((low, high))
                continue
            if high - low <= NARROW * low:
                proven, count = self._covering(low, high, level), count + 1
                if proven > level:
                    best, at = proven, (low + high) / 2
                continue
            inside = low < at < high and at > 0
            single = inside or ratio < 1 + 10 * NARROW or (low <= 0 and first < 1e-6 * sizes.min())
            end = high if inside else min(high, low * ratio if low > 0 else first)
            if single:
                middle = at if inside else (low + end) / 2 if low > 0 else 0.0
                points = np.array([middle])
            else:
                points = np.geomspace(low, end, 3) if low > 0 else np.array([0.0, end / 2, end])
                middle = float(points[1])
            bound = self._bound(self.evaluate(1j * points), level, near)
            if bound.level >= 1:
                if not single:
                    ratio, first = np.sqrt(ratio), first if low > 0 else first / 10
                else:
                    best, at = (
                        self._exceeded(bound, level, middle),
                        middle,
                    )  # higher than before by the tolerance, at least
                    if middle > 0:
                        around = max(low, middle / 2), min(high, 2 * middle)
                        best, at = max((best, at), self._climbed(*around, tolerance))
                left.append((low, high))
                continue
            near, count = bound, count + 1
            below, above = self._proven(middle, bound, level, low, end)
            if above < high:
                left.append((above, high))
            if below > low:
                left.append((low, below))
            whole = below <= low and above >= end
            if low > 0 and not inside:
                ratio = min(ratio**1.5, WIDE**4) if whole else max(np.sqrt(ratio), 1 + 5 * NARROW)
            elif low <= 0 and not whole:
                first = min(first, end) / 10
                if first < 1e-12 * sizes.min():
                    raise NumericalError(
                        f"mu_peak: no proof at frequency zero and the level {level:.6g}: beside the fastest pole, of size "
                        f"{sizes.max():.3g} rad/s, the slowest one, {np.abs(self.poles).min():.1g}, is lost in rounding; "
                        "use a larger tolerance, or faster poles in weights"
                    )
        raise NumericalError(
            f"mu_peak: no proof in {_TRIES} intervals at the level {best:.6g}; use a larger tolerance"
        )

    def _highest(self, w: Array, tolerance: float) -> tuple[float, float]:
        """(level, frequency) of a high bound, from frequencies in rising order; a low one only makes the proof longer."""
        M = np.concatenate([self.evaluate(1j * w[:-1]), self.M.D[None].astype(complex)])
        loose = self.scalings if self.without_phase is None else self.without_phase
        above = max(x.level for x in loose.least_of(M, tolerance=1e-2))
        self.reached = real_crossing(
            self.M, self.scalings.blocks, least=max(SMALLEST * above, 1e-12), largest=2 * above
        )
        reached, deltas = lower_bounds(M, self.scalings.blocks, starts=2)
        at = int(np.argmax(reached))
        if self.reached[0] > reached[at]:
            size, frequency, _ = self.reached
            highest = max(size, self.level(frequency)), frequency
        else:
            if reached[at] > 0:
                self.reached = float(reached[at]), float(w[at]), deltas[at]
            highest = max(self.level(float(w[at])), SMALLEST * above), float(w[at])
            if 0 < at < len(w) - 2:
                highest = max(highest, self._climbed(w[at - 1], w[at + 1], tolerance))
        # with real blocks, what is within the tolerance need not be the peak, and is not looked at closely: it takes long
        enough = None if self.without_phase is None else highest[0] * (1 + tolerance)
        found = np.array([x.level for x in self.scalings.least_of(M, tolerance=1e-3, below=enough)])
        least = 0.7 * found.max() if enough is None else enough
        inner = [k for k in range(1, len(w) - 2) if found[k] > max(found[k - 1], found[k + 1], least)]
        for k in sorted(inner, key=lambda k: -found[k])[:3]:
            if found[k] > 0.7 * found.max():
                highest = max(highest, self._climbed(w[k - 1], w[k + 1], tolerance))
        return highest

    def _covering(self, low: float, high: float, level: float) -> float:
        """The least level, in steps, that is proven on a narrow interval from its middle: mu may jump there."""
        if self._covers(low, high, level):
            return level
        fails, level = level, 1.5 * level
        while not self._covers(low, high, level):
            fails, level = level, 1.5 * level
            if not np.isfinite(level):
                raise NumericalError(f"mu_peak: no level is proven between {low:.9g} and {high:.9g} rad/s")
        while level > (1 + STEP) * fails:
            between = float(np.sqrt(fails * level))
            fails, level = (fails, between) if self._covers(low, high, between) else (between, level)
        return level

    def _covers(self, low: float, high: float, level: float) -> bool:
        middle = (low + high) / 2
        bound = self._bound(self.at(middle)[None], level, None)
        return bound.level < 1 and self._proven(middle, bound, level, low, high) == (low, high)

    def _bound(self, M: Array, level: float, near: UpperBound | None) -> UpperBound:
        """Scalings for all of the matrices, their rows multiplied for the level: below one, as far as it is found out."""
        M = self.rows(level)[:, None] * M
        if self.without_phase is not None:
            found = self.without_phase.least(M, tolerance=1e-3, below=1.0)
            if found.level < 1:
                return found
        return self.scalings.least(M, tolerance=1e-3 if len(M) > 1 else 1e-6, below=1.0, near=near)

    def _exceeded(self, bound: UpperBound, level: float, w: float) -> float:
        """The level at a frequency where a lower one was tried."""
        return level * bound.level

    def _climbed(self, low: float, high: float, tolerance: float) -> tuple[float, float]:
        low = max(low, 1e-3 * high)
        fine = min((tolerance / 1e-3) ** 2, 1e4) * 1e-8  # a rough peak need not be found finely
        found = scipy.optimize.minimize_scalar(
            lambda x: -self.level(float(np.exp(x)), fine),
            bounds=(np.log(low), np.log(high)),
            method="bounded",
            # that of real parameters is not smooth, and flat where it is high
            options={"xatol": 10 * fine if self.without_phase is None else max(10 * fine, 1e-3)},
        )
        return float(-found.fun), float(np.exp(found.x))

    # --- cells, (2) and (3) -------------------------------------------------------------------------------------------

    def _scaled(self, bound: UpperBound, level: float) -> _Cells | None:
        """The system where D is one, and the level; None where D is singular to rounding."""
        try:
            left = np.linalg.cholesky((bound.D_left + bound.D_left.conj().T) / 2).conj().T
            right = np.linalg.cholesky((bound.D_right + bound.D_right.conj().T) / 2).conj().T
        except np.linalg.LinAlgError:
            return None
        inverse = np.linalg.inv(right)
        G = inverse.conj().T @ bound.G @ np.linalg.inv(left)
        A = self.poles if self.diagonal else self.M.A.astype(complex)
        N, b, c = self.errors
        left_of_M = left * self.rows(level)
        errors = N, b @ np.abs(inverse), np.abs(left_of_M) @ c
        return _Cells(A, self.B @ inverse, left_of_M @ self.C, left_of_M @ self.M.D @ inverse, G, errors)

    def _proven(
        self, w: float, bound: UpperBound, level: float, low: float, high: float
    ) -> tuple[float, float]:
        """The interval around w, within [low, high], on which the scalings prove the level."""
        cells = self._scaled(bound, level)
        if cells is None:
            return w, w
        near = float(np.abs(1j * w - self.poles).min(initial=np.inf))
        first = 0.1 * (near if np.isfinite(near) else max(w, 1.0))
        below = self._walked(cells, w, low, -1, first)
        above = self._walked(cells, w, high, 1, first)
        return below, above

    def _walked(self, cells: _Cells, start: float, end: float, way: int, length: float) -> float:
        """How far from `start` towards `end` cells can be put next to each other."""
        at = start
        for _ in range(_MOST):
            left = abs(end - at)
            if not left:
                return end
            lengths = np.minimum(length * _TRIED, left)
            h = lengths / 2 * (1 + 1e-9) + 1e-15 * at  # cells overlap by more than rounding
            good = np.flatnonzero(cells.hold(at + way * h, h))
            if not len(good):
                if length * _TRIED[-1] < 1e-3 * abs(at - start) or length < 1e-10 * max(start, 1e-300):
                    return at
                length *= float(_TRIED[-1])
                continue
            length = float(lengths[good[0]])
            if length == left:
                return end
            at = at + way * length
            if length < 2e-3 * abs(at - start) and length < 1e-3 * at:
                return at
        return at

    def _beyond(self, bound: UpperBound, level: float, start: float) -> bool:
        """Whether the scalings prove the level from `start` on."""
        cells = self._scaled(bound, level)
        return cells is not None and cells.hold_beyond(start)


class GainProof(Proof):
    """The largest gain of the last outputs, under perturbations of size one at the first signals.

    It is below g where mu is below one with these outputs divided by g, and a full block on top of Delta, the last of the
    blocks. `least` is a gain that is reached. A level is infinite where Delta alone may make the loop unstable.
    """

    def __init__(self, M: StateSpace, blocks: Sequence[DeltaBlock], least: float) -> None:
        super().__init__(M, blocks)
        self.least, self.inner = least, Scalings(blocks[:-1])

    def rows(self, level: float) -> Array:
        found = np.ones(len(self.C))
        found[self.inner.p :] = 1 / level
        return found

    def level(self, w: float, tolerance: float = 1e-9) -> float:
        M, fine = self.at(w), max(tolerance, _GAIN)
        if self.inner.least(M[: self.inner.p, : self.inner.m], tolerance=fine).level >= 1:
            return np.inf

        def excess(log: float) -> float:
            found = self.scalings.least(self.rows(np.exp(log))[:, None] * M, tolerance=fine).level
            return float(np.log(max(found, 1e-300)))

        low = high = np.log(self.least)
        while excess(high) > 0:
            low, high = high, high + max(1.0, 2 * (high - low))
            if high > low + _HUGE:
                return np.inf
        if low == high:
            return self.least
        return float(np.exp(scipy.optimize.brentq(excess, low, high, xtol=fine, rtol=1e-12)))

    def _highest(self, w: Array, tolerance: float) -> tuple[float, float]:
        M = np.concatenate([self.evaluate(1j * w[:-1]), self.M.D[None].astype(complex)])
        best, at = self.least, float(w[0])
        for _ in range(len(w)):  # where it is higher most, each time
            rows = self.rows(best * (1 + tolerance))[:, None]
            found = np.array([x.level for x in self.scalings.least_of(rows * M, tolerance=1e-3, below=1.0)])
            k = int(np.argmax(found))
            if found[k] < 1:
                break
            best, at = max((best, at), (self.level(float(w[k])), float(w[k])))
            if 0 < k < len(w) - 2 and np.isfinite(best):
                best, at = max((best, at), self._climbed(w[k - 1], w[k + 1], tolerance))
            if np.isinf(best):
                break
            best *= 1 + tolerance
        return best, at

    def _exceeded(self, bound: UpperBound, level: float, w: float) -> float:
        return max(level, self.level(w))

    def _covering(self, low: float, high: float, level: float) -> float:
        return super()._covering(low, high, level) if self._covers(low, high, np.inf) else np.inf


class _Cells:
    """(2) and (3) for one set of scalings, D and b made one; A is a vector of poles, or a matrix."""

    def __init__(
        self, A: Array, B: Array, C: Array, D: Array, G: Array, errors: tuple[Array, Array, Array]
    ) -> None:
        self.A, self.B, self.C, self.D, self.G = A, B, C, D, G
        self.size_G = float(np.linalg.norm(G, 2)) if G.size else 0.0
        self.sizes = np.linalg.norm(C, axis=0), np.linalg.norm(B, axis=1)
        self.abs_B, self.abs_C = np.abs(B), np.abs(C)
        self.rounding = 32 * (len(A) + sum(D.shape)) * EPS
        self.errors = errors

    def _changed(self, x: Array, computed: Array) -> Array:
        """(4) and the rounding of the series; x are the largest entries of |X| in a cell, `computed` those of the series."""
        N, d_b, d_c = self.errors
        size = (x @ N.T).max(axis=1) if x.shape[1] else np.zeros(len(x))
        B = x[:, :, None] * self.abs_B
        through = x[:, :, None] * (d_b + N @ B) + self.rounding * computed[:, :, None] * self.abs_B
        change = np.linalg.norm(self.abs_C @ through + d_c @ B, axis=(1, 2))
        return np.where(size < 0.5, change / np.where(size < 0.5, 1 - size, 1.0), np.inf)

    def hold(self, w: Array, h: Array) -> Array:
        """Whether F > 0 on [w - h, w + h], for each of the cells."""
        if self.A.ndim == 1:
            x = 1 / (1j * w[:, None] - self.A)
            apart = np.maximum(np.abs(w[:, None] - self.A.imag) - h[:, None], 0.0)
            largest = 1 / np.hypot(self.A.real, apart)
            last = np.abs(x) ** TERMS * largest
            grown = (h[:, None] * np.abs(x)) ** (TERMS - 1)
            changed = self._changed(largest, TERMS * np.abs(x) * np.maximum(1.0, grown))
            # entry by entry: what D makes small stays so
            rest = np.linalg.norm(self.abs_C @ (last[:, :, None] * self.abs_B), axis=(1, 2))
            Y, turn = x[:, :, None] * self.B, -1j * x[:, :, None]
            terms = [self.C @ Y]
            for _ in range(1, TERMS):
                Y = turn * Y
                terms.append(self.C @ Y)
        else:
            X = np.linalg.inv(1j * w[:, None, None] * np.eye(len(self.A)) - self.A)
            Y, CX = X @ self.B, self.C @ X
            size = _norms(X)
            inside = 1 - h * size
            product = _norms(CX) * size ** (TERMS - 1) * _norms(Y)
            rest = np.where(inside > 0, product / np.where(inside > 0, inside, 1.0), np.inf)
            # |dX| <= n eps |X| |jw - A| |X|, and so for each factor of each term; h |X| < 1
            changed = self.rounding * TERMS * _norms(CX) * (np.abs(w) + np.linalg.norm(self.A, 2)) * _norms(Y)
            terms = [self.C @ Y]
            for _ in range(1, TERMS):
                Y = -1j * X @ Y
                terms.append(self.C @ Y)
        terms[0] = terms[0] + self.D
        sizes = [np.linalg.norm(term, axis=(1, 2)) for term in terms]
        F = [self._coefficient(terms, k) for k in range(TERMS)]
        with np.errstate(invalid="ignore", over="ignore"):
            whole = sum(h**k * n for k, n in enumerate(sizes))
            e = h**TERMS * rest * (2 * whole + h**TERMS * rest + 2 * self.size_G)
            for k in range(TERMS, 2 * TERMS - 1):
                e += h**k * sum(sizes[a] * sizes[k - a] for a in range(k - TERMS + 1, TERMS))
            for k in range(3, TERMS):
                e += h**k * np.linalg.norm(F[k], axis=(1, 2))
            e += h**2 * np.maximum(-np.linalg.eigvalsh(F[2])[:, 0], 0.0)
            e += changed * (2 * whole + changed + 2 * self.size_G)
            e += self.rounding * (1 + whole**2 + 2 * self.size_G * whole)
        good = np.isfinite(e)
        step = h[:, None, None] * F[1]
        for at in (F[0] - step, F[0] + step):
            good &= np.linalg.eigvalsh(np.where(good[:, None, None], at, 0.0))[:, 0] > np.where(good, e, 0.0)
        return good

    def _coefficient(self, terms: list[Array], k: int) -> Array:
        """F_k of (2)."""
        half = sum(terms[a].conj().swapaxes(1, 2) @ terms[k - a] for a in range((k + 1) // 2))
        half = half + 1j * (self.G @ terms[k])
        F = -half - half.conj().swapaxes(1, 2)
        if k % 2 == 0:
            middle = terms[k // 2]
            F = F - middle.conj().swapaxes(1, 2) @ middle
        return F + np.eye(F.shape[1]) if k == 0 else F

    def hold_beyond(self, start: float) -> bool:
        """Whether F > 0 from `start` on."""
        if self.A.ndim == 1:
            far = start - np.abs(self.A)
            if not np.all(far > 0):
                return False
            x = 1 / far[None]
            r = float((self.sizes[0] * x[0]) @ self.sizes[1] + self._changed(x, x)[0])
        else:
            away = start - float(np.linalg.norm(self.A, 2))
            r = float(np.linalg.norm(self.C, 2) * np.linalg.norm(self.B, 2) / away) if away > 0 else np.inf
            r *= 1 + self.rounding
        n = float(np.linalg.norm(self.D, 2))
        e = r * (2 * n + 2 * self.size_G) + r**2
        e += self.rounding * (1 + n**2 + 2 * self.size_G * n)
        return bool(self._least(self.D[None])[0] > e)

    def _least(self, N: Array) -> Array:
        half = 1j * (self.G @ N)
        F = np.eye(N.shape[2]) - N.conj().swapaxes(1, 2) @ N - half - half.conj().swapaxes(1, 2)
        return np.linalg.eigvalsh(F)[:, 0]


def _norms(X: Array) -> Array:
    return np.asarray(np.linalg.norm(X, 2, axis=(1, 2)))
