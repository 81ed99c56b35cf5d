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

What is proven: for the matrices as they are given, mu(M(jw)) < b for all w from zero to infinity. Rounding errors in forming
M and F are not enclosed by intervals of numbers; an allowance of 1e-11 of the terms of F is taken off instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize_scalar

from alembert.control.mu_bounds import DeltaBlock, Scalings, UpperBound
from alembert.control.responses import ResponseEvaluator
from alembert.control.statespace import StateSpace
from alembert.errors import NumericalError

Array = np.ndarray
SMALLEST = 1e-2
"""of the bound for complex parameters: no lower peak is looked for"""
NARROW, STEP = 1e-3, 5e-3
"""relative width of an interval on which the level is raised until it is proven, and how close to the least such level"""
ALLOWANCE = 1e-11
TERMS = 6
"""of the series (2)"""
_DIAGONAL = 1e7  # condition of eigenvectors up to which A is made diagonal: nine digits are left
_TRIED = 2.0 ** np.arange(3, -10, -1)  # lengths of cells, in those of the last one
_MOST = 5000


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
        self.evaluate = ResponseEvaluator(*M.matrices)
        self.poles: Array
        self.poles, V = np.linalg.eig(M.A) if M.order else (np.zeros(0), np.zeros((0, 0)))
        s = np.linalg.svd(V, compute_uv=False)
        self.diagonal = bool(M.order) and bool(s[-1] * _DIAGONAL > s[0])
        self.B, self.C = M.B.astype(complex), M.C.astype(complex)
        if self.diagonal:
            self.B, self.C = np.linalg.solve(V, self.B), self.C @ V

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
        values = np.array([self.level(x, 1e-3) for x in w])
        best, at = max((self.level(np.inf), np.inf), (float(values.max()), float(w[np.argmax(values)])))
        inner = [k for k in range(1, len(w) - 1) if values[k] >= max(values[k - 1], values[k + 1])]
        for k in sorted(inner, key=lambda k: -values[k])[:3]:
            if values[k] > 0.7 * best:
                best, at = max((best, at), self._climbed(w[k - 1], w[k + 1], tolerance))
        if self.without_phase is not None:
            # real blocks alone have mu = 0 but for single frequencies, which a grid does not meet
            loose = max(
                self.without_phase.least(self.at(x), tolerance=1e-2).level for x in w[:: max(1, len(w) // 20)]
            )
            best = max(best, SMALLEST * loose)
        if best <= 1e-12:
            return 0.0, 0.0, 0
        left: list[tuple[float, float]] = [(0.0, np.inf)]
        far = 1e3 * sizes.max(initial=0.0)
        count = 0
        while left:
            low, high = left.pop()
            if high <= low:
                continue
            if high - low <= NARROW * low:
                level, count = self._covering(low, high, best * (1 + tolerance)), count + 1
                if level > best * (1 + tolerance):
                    best, at = level, (low + high) / 2
                continue
            if np.isinf(high) and np.isfinite(far) and low < far:
                left += [(low, far), (far, np.inf)]
                continue
            last = np.isinf(high) and low >= far
            middle = np.inf if last else _between(low, high, at)
            bound = self._bound(self.at(middle), best * (1 + tolerance))
            if bound.level >= best * (1 + tolerance):
                best, at = max((best, at), (self.level(middle), middle))
                if 0 < middle < np.inf:
                    best, at = max(
                        (best, at), self._climbed(max(low, middle / 2), min(high, 2 * middle), tolerance)
                    )
                left.append((low, high))
                continue
            count += 1
            if count > 3000:
                raise NumericalError(
                    f"mu_peak: more than 3000 intervals at the level {best:.6g}; use a larger tolerance"
                )
            if last:
                if not self._beyond(bound, best * (1 + tolerance), low):
                    far = 10 * low
                    left.append((low, np.inf))
                continue
            below, above = self._proven(middle, bound, best * (1 + tolerance), low, high)
            if below > low:
                left.append((low, below))
            if above < high:
                left.append((above, high))
        return best, at, count

    def _covering(self, low: float, high: float, level: float) -> float:
        """The least level, in steps, that is proven on a narrow interval from its middle: mu may jump there."""
        middle = (low + high) / 2

        def covers(level: float) -> bool:
            bound = self._bound(self.at(middle), level)
            if bound.level >= level:
                return False
            below, above = self._proven(middle, bound, level, low, high)
            return below <= low and above >= high

        if covers(level):
            return level
        fails, level = level, 1.5 * level
        while not covers(level):
            fails, level = level, 1.5 * level
            if not np.isfinite(level):
                raise NumericalError(f"mu_peak: no level is proven between {low:.9g} and {high:.9g} rad/s")
        while level > (1 + STEP) * fails:
            between = float(np.sqrt(fails * level))
            fails, level = (fails, between) if covers(between) else (between, level)
        return level

    def _bound(self, M: Array, level: float) -> UpperBound:
        if self.without_phase is not None:
            found = self.without_phase.least(M, tolerance=1e-3, below=level)
            if found.level < level:
                return found
        return self.scalings.least(M, tolerance=1e-4, below=level)

    def _climbed(self, low: float, high: float, tolerance: float) -> tuple[float, float]:
        low = max(low, 1e-3 * high)
        fine = min((tolerance / 1e-3) ** 2, 1e4) * 1e-8  # a rough peak need not be found finely
        found = minimize_scalar(
            lambda x: -self.level(float(np.exp(x)), fine),
            bounds=(np.log(low), np.log(high)),
            method="bounded",
            options={"xatol": 10 * fine},
        )
        return float(-found.fun), float(np.exp(found.x))

    # --- cells, (2) and (3) -------------------------------------------------------------------------------------------

    def _scaled(self, bound: UpperBound) -> _Cells | None:
        """The system where D is one; None where D is singular to rounding."""
        try:
            left = np.linalg.cholesky((bound.D_left + bound.D_left.conj().T) / 2).conj().T
            right = np.linalg.cholesky((bound.D_right + bound.D_right.conj().T) / 2).conj().T
        except np.linalg.LinAlgError:
            return None
        inverse = np.linalg.inv(right)
        G = inverse.conj().T @ bound.G @ np.linalg.inv(left)
        A = self.poles if self.diagonal else self.M.A.astype(complex)
        return _Cells(A, self.B @ inverse, left @ self.C, left @ self.M.D @ inverse, G)

    def _proven(
        self, w: float, bound: UpperBound, level: float, low: float, high: float
    ) -> tuple[float, float]:
        """The interval around w, within [low, high], on which the scalings prove the level."""
        cells = self._scaled(self._with_less_phase(w, bound, level))
        if cells is None:
            return w, w
        near = float(np.abs(1j * w - self.poles).min(initial=np.inf))
        first = 0.1 * (near if np.isfinite(near) else max(w, 1.0))
        below = self._walked(cells, level, w, low, -1, first)
        above = self._walked(cells, level, w, high, 1, first)
        return below, above

    def _walked(
        self, cells: _Cells, level: float, start: float, end: float, way: int, length: float
    ) -> float:
        """How far from `start` towards `end` cells can be put next to each other."""
        at = start
        for _ in range(_MOST):
            left = abs(end - at)
            if not left:
                return end
            lengths = np.minimum(length * _TRIED, left)
            h = lengths / 2 * (1 + 1e-9) + 1e-15 * at  # cells overlap by more than rounding
            good = np.flatnonzero(cells.hold(at + way * h, h, level))
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
        cells = self._scaled(bound)
        return cells is not None and cells.hold_beyond(start, level)

    def _form(self, w: float, bound: UpperBound, level: float) -> tuple[Array, Array]:
        """F(w) of (1) without G, and the part that G adds, in the coordinates where D is one."""
        M = self.at(w)
        L, R, G = bound.D_left, bound.D_right, bound.G
        root = np.linalg.cholesky((R + R.conj().T) / 2)
        X = np.linalg.solve(
            root, np.stack([level**2 * R - M.conj().T @ L @ M, -1j * (G @ M - (G @ M).conj().T)])
        )
        Y = np.linalg.solve(root, X.conj().swapaxes(1, 2)).conj().swapaxes(1, 2)
        return Y[0], Y[1]

    def _with_less_phase(self, w: float, bound: UpperBound, level: float) -> UpperBound:
        """G no larger than it must be: where it may grow without end, (2) would be all rounding."""
        if not np.any(bound.G):
            return bound
        try:
            plain, phase = self._form(w, bound, level)
        except np.linalg.LinAlgError:
            return bound
        wanted = min(float(np.linalg.eigvalsh(plain + phase)[0]), level**2 / 2)
        share = 1.0
        while share > 1e-15 and np.linalg.eigvalsh(plain + share / 2 * phase)[0] >= wanted:
            share /= 2
        return UpperBound(bound.level, bound.D_left, bound.D_right, share * bound.G)


class _Cells:
    """(2) and (3) for one set of scalings, D made one; A is a vector of poles, or a matrix."""

    def __init__(self, A: Array, B: Array, C: Array, D: Array, G: Array) -> None:
        self.A, self.B, self.C, self.D, self.G = A, B, C, D, G
        self.size_G = float(np.linalg.norm(G, 2)) if G.size else 0.0
        self.weights = np.linalg.norm(C, axis=0) * np.linalg.norm(B, axis=1)
        self.abs_B, self.abs_C = np.abs(B), np.abs(C)

    def hold(self, w: Array, h: Array, level: float) -> Array:
        """Whether F > 0 on [w - h, w + h], for each of the cells."""
        if self.A.ndim == 1:
            x = 1 / (1j * w[:, None] - self.A)
            apart = np.maximum(np.abs(w[:, None] - self.A.imag) - h[:, None], 0.0)
            last = np.abs(x) ** TERMS / np.hypot(self.A.real, apart)
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
            terms = [self.C @ Y]
            for _ in range(1, TERMS):
                Y = -1j * X @ Y
                terms.append(self.C @ Y)
        terms[0] = terms[0] + self.D
        sizes = [np.linalg.norm(term, axis=(1, 2)) for term in terms]
        F = [self._coefficient(terms, k, level) for k in range(TERMS)]
        with np.errstate(invalid="ignore", over="ignore"):
            whole = sum(h**k * n for k, n in enumerate(sizes))
            e = h**TERMS * rest * (2 * whole + h**TERMS * rest + 2 * self.size_G)
            for k in range(TERMS, 2 * TERMS - 1):
                e += h**k * sum(sizes[a] * sizes[k - a] for a in range(k - TERMS + 1, TERMS))
            for k in range(3, TERMS):
                e += h**k * np.linalg.norm(F[k], axis=(1, 2))
            e += h**2 * np.maximum(-np.linalg.eigvalsh(F[2])[:, 0], 0.0)
            e += ALLOWANCE * (level**2 + whole**2 + 2 * self.size_G * whole)
        good = np.isfinite(e)
        step = h[:, None, None] * F[1]
        for at in (F[0] - step, F[0] + step):
            good &= np.linalg.eigvalsh(np.where(good[:, None, None], at, 0.0))[:, 0] > np.where(good, e, 0.0)
        return good

    def _coefficient(self, terms: list[Array], k: int, level: float) -> Array:
        """F_k of (2)."""
        half = sum(terms[a].conj().swapaxes(1, 2) @ terms[k - a] for a in range((k + 1) // 2))
        half = half + 1j * (self.G @ terms[k])
        F = -half - half.conj().swapaxes(1, 2)
        if k % 2 == 0:
            middle = terms[k // 2]
            F = F - middle.conj().swapaxes(1, 2) @ middle
        return F + level**2 * np.eye(F.shape[1]) if k == 0 else F

    def hold_beyond(self, start: float, level: float) -> bool:
        """Whether F > 0 from `start` on."""
        if self.A.ndim == 1:
            far = start - np.abs(self.A)
            r = float(np.sum(self.weights / far)) if np.all(far > 0) else np.inf
        else:
            far = start - float(np.linalg.norm(self.A, 2))
            r = float(np.linalg.norm(self.C, 2) * np.linalg.norm(self.B, 2) / far) if far > 0 else np.inf
        n = float(np.linalg.norm(self.D, 2))
        e = r * (2 * n + 2 * self.size_G) + r**2 + ALLOWANCE * (level**2 + n**2 + 2 * self.size_G * n)
        return bool(self._least(self.D[None], level)[0] > e)

    def _least(self, N: Array, level: float) -> Array:
        half = 1j * (self.G @ N)
        F = level**2 * np.eye(N.shape[2]) - N.conj().swapaxes(1, 2) @ N - half - half.conj().swapaxes(1, 2)
        return np.linalg.eigvalsh(F)[:, 0]


def _norms(X: Array) -> Array:
    return np.asarray(np.linalg.norm(X, 2, axis=(1, 2)))


def _between(low: float, high: float, near: float) -> float:
    """A frequency inside the interval: next to the peak first, then in the middle on a logarithmic scale."""
    if low < near < high and np.isfinite(near) and near > 0:
        return near
    if np.isinf(high):
        return 10 * low if low > 0 else 1.0
    if low <= 0:
        return high / 10
    return float(np.sqrt(low * high))
