"""Robust stability over all frequencies: the peak of mu, guaranteed; margins of several loops; the worst gain.

At a level b, scalings D and G found at one frequency prove mu < b not only there: with M(jw) = C (jw - A)^-1 B + D_M,

    F(w) = b^2 D - M^H D M - j (G M - M^H G) = [x; 1]^H [Q S; S^H R] [x; 1],     x = (jw - A)^-1 B                   (1)

stays positive until det F(w) = 0, that is, until jw is an eigenvalue of the Hamiltonian matrix

    [A - B R^-1 S^H          -B R^-1 B^H       ]
    [-Q + S R^-1 S^H     -(A - B R^-1 S^H)^H   ]                                                                     (2)

so that a whole interval of frequencies is done. Intervals are taken away until none is left; where a level fails, it
is raised. A narrow peak between frequencies of a grid cannot be missed.

Disk margins (Seiler, Packard, Gahinet 2020, "An introduction to disk margins"): each loop's gain is multiplied by some
(1 + (1-s)/2 d) / (1 - (1+s)/2 d) with complex |d| < a; the loop stays stable for a < 1/mu(S + (s-1)/2), S = (1 +
L)^-1, s the skew. With s = 0, gains between (2-a)/(2+a) and its inverse are in the disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from alembert.control.interconnection import feedback, static
from alembert.control.mu_bounds import DeltaBlock, Scalings, UpperBound, check_blocks, lower_bound
from alembert.control.norms import linf_norm
from alembert.control.responses import ResponseEvaluator
from alembert.control.sampling import bilinear
from alembert.control.statespace import StateSpace
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray
_NEAR_AXIS = 1e-9
SMALLEST = 1e-2
"""of the bound for complex parameters: no lower peak is looked for"""
NARROW, STEP = 1e-3, 5e-3
"""relative width of an interval on which the level is raised until it is proven, and how close to the least such level"""


@dataclass(frozen=True, eq=False)
class MuResponse:
    """Bounds of mu at frequencies [rad/s]."""

    frequency: Array
    upper: Array
    lower: Array


@dataclass(frozen=True, eq=False)
class MuPeak:
    """mu stays below `upper` at all frequencies; the largest bound found is `peak`, at `frequency` [rad/s], where
    `delta`, of size 1/lower, is the smallest perturbation found that gives the loop a pole there."""

    upper: float
    peak: float
    lower: float
    frequency: float
    delta: Array | None
    intervals: int
    """how many intervals of frequency the proof has"""

    @property
    def margin(self) -> float:
        """Perturbations up to this size are safe."""
        return 1 / self.upper if self.upper > 0 else np.inf


@dataclass(frozen=True)
class DiskMargin:
    """How much all loops named may change at once: gains, phases, or both within the disk."""

    margin: float
    gain_down: float
    gain: float
    phase_deg: float
    frequency: float
    guaranteed: float
    """the margin that is proven for all frequencies; `margin` is that of the worst frequency found"""


def mu_response(
    M: StateSpace, blocks: Sequence[DeltaBlock], frequency: Any, *, starts: int = 8
) -> MuResponse:
    """Bounds at some frequencies; see `mu_peak` for what holds between them."""
    check_blocks("mu_response", M.shape, blocks)
    response = M.frequency_response(frequency)
    scalings = Scalings(blocks)
    upper = np.array([scalings.least(X, tolerance=1e-6).level for X in response.response])
    lower = np.array([lower_bound(X, blocks, starts=starts)[0] for X in response.response])
    return MuResponse(response.frequency, upper, np.minimum(lower, upper))


def mu_peak(
    M: StateSpace, blocks: Sequence[DeltaBlock], *, tolerance: float = 1e-3, starts: int = 20
) -> MuPeak:
    """The largest upper bound of mu over all frequencies, and a proof that mu is nowhere larger by more than
    `tolerance`.

    The number of intervals in the proof grows with one over the square root of the (relative) tolerance.
    """
    check_blocks("mu_peak", M.shape, blocks)
    if not M.is_stable:
        worst = M.poles()[-1] if not M.is_discrete else M.poles()[np.argmax(np.abs(M.poles()))]
        raise NumericalError(f"mu_peak: the nominal loop is not stable, it has the pole {worst:.6g}")
    twin = (bilinear(M) if M.is_discrete else M).balanced_scales()
    proof = _Proof(twin, blocks)
    best, at, count = proof.peak(tolerance)
    value = proof.at(at)
    lower, delta = lower_bound(value, blocks, starts=starts)
    frequency = 2 * np.arctan(at) / M.dt if M.is_discrete else at
    return MuPeak(best * (1 + tolerance), best, min(lower, best), float(frequency), delta, count)


class _Proof:
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
        self.poles = np.linalg.eigvals(M.A)
        size = np.abs(self.poles)
        size = size[size > 1e-8 * size.max(initial=0.0)] if len(size) else np.ones(1)
        around = np.abs(self.poles.imag)[:, None] + np.abs(self.poles.real)[:, None] * np.linspace(-8, 8, 17)
        wide = np.geomspace(size.min() / 10, size.max() * 10, 800)
        self.marks = np.unique(np.concatenate([np.abs(self.poles), np.abs(around).ravel(), wide]))
        with np.errstate(divide="ignore", invalid="ignore"):
            self.responses = self.evaluate(1j * self.marks)
        good = np.isfinite(self.responses).all(axis=(1, 2))
        self.marks, self.responses = self.marks[good], self.responses[good]
        """frequencies at which intervals are looked at once more"""

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
        ends = 1e-3 * tolerance * sizes.min(), 1e3 / tolerance * sizes.max()
        count = 0
        while left:
            low, high = left.pop()
            if high - low <= 1e-12 * low:
                continue
            if high - low <= NARROW * low:
                level, count = self._covering(low, high, best * (1 + tolerance)), count + 1
                if level > best * (1 + tolerance):
                    best, at = level, (low + high) / 2
                continue
            # at the ends M changes by w/|pole| and |pole|/w, much less than the tolerance
            flat = (high <= ends[0], low >= ends[1])
            middle = 0.0 if flat[0] else np.inf if flat[1] else _between(low, high, at)
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
            if any(flat):
                continue
            below, above = self._valid(middle, bound, best * (1 + tolerance))
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
            below, above = self._valid(middle, bound, level)
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

    def _valid(self, w: float, bound: UpperBound, level: float) -> tuple[float, float]:
        """The interval around w on which the scalings prove the level, by (2)."""
        A, B, C, D = self.M.matrices
        bound = self._with_less_phase(w, bound, level)
        L, G = bound.D_left, bound.G
        cross = G @ D
        Q = -C.T @ L @ C
        S = -C.T @ L @ D + 1j * C.T @ G.conj().T
        R = level**2 * bound.D_right - D.T @ L @ D - 1j * (cross - cross.conj().T)
        try:
            right = np.linalg.solve(R, np.hstack([S.conj().T, B.T.astype(complex)]))
        except np.linalg.LinAlgError:
            return w, w
        n = len(A)
        H = np.block([[A.astype(complex), np.zeros((n, n))], [-Q, -A.T.astype(complex)]])
        H += np.vstack([-B.astype(complex), S]) @ right
        values = np.linalg.eigvals(H)
        near = values[
            np.abs(values.real) <= _NEAR_AXIS * np.maximum(np.abs(values), 1e-3 * max(w, 1e-300))
        ].imag
        low, high = float(near[near < w].max(initial=-np.inf)), float(near[near > w].min(initial=np.inf))
        # eigenvalues may lie beside the axis by rounding: F is looked at in between as well
        inside = (self.marks > low) & (self.marks < high)
        failing = self.marks[inside][~self._hold(self.responses[inside], bound, level)]
        low, high = (
            float(failing[failing < w].max(initial=low)),
            float(failing[failing > w].min(initial=high)),
        )
        return low, high

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

    def _hold(self, M: Array, bound: UpperBound, level: float) -> Array:
        """Whether F is positive, for responses M (N, outputs, inputs)."""
        L, R, G = bound.D_left, bound.D_right, bound.G
        adjoint, half = M.conj().swapaxes(1, 2), G @ M
        F = level**2 * R - adjoint @ L @ M - 1j * (half - half.conj().swapaxes(1, 2))
        return np.linalg.eigvalsh(F)[:, 0] > 0

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


def _between(low: float, high: float, near: float) -> float:
    """A frequency inside the interval: next to the peak first, then in the middle on a logarithmic scale."""
    if low < near < high and np.isfinite(near) and near > 0:
        return near
    if np.isinf(high):
        return 10 * low if low > 0 else 1.0
    if low <= 0:
        return high / 10
    return float(np.sqrt(low * high))


# --- margins and worst gain -----------------------------------------------------------------------------------


def disk_margins(L: StateSpace, *, skew: float = 0.0) -> tuple[DiskMargin, ...]:
    """One loop at a time, the others closed; L is the loop (square) under negative feedback."""
    S = _sensitivity("disk_margins", L)
    return tuple(_disk(S[k, k], skew) for k in range(L.shape[0]))


def multiloop_disk_margin(L: StateSpace, *, skew: float = 0.0, tolerance: float = 1e-3) -> DiskMargin:
    """All loops at once, each by a number of its own."""
    return _disk(_sensitivity("multiloop_disk_margin", L), skew, tolerance)


def worst_case_gain(
    M: StateSpace, blocks: Sequence[DeltaBlock], *, tolerance: float = 1e-3
) -> tuple[float, float]:
    """(lower, upper) bounds of the largest gain of what is left of M when Delta, |Delta| <= 1, closes its first signals.

    The gain stays below g where mu of M, its last outputs divided by g, stays below one, with a full block on top of
    Delta.
    """
    z, w = sum(b.columns for b in blocks), sum(b.rows for b in blocks)
    p, m = M.shape[0] - z, M.shape[1] - w
    if p < 1 or m < 1:
        raise ArgumentError(
            f"worst_case_gain: M has shape {M.shape}, and Delta takes ({z}, {w}) of it; nothing is left"
        )
    inner = mu_peak(M[:z, :w], blocks, tolerance=tolerance)
    if inner.upper >= 1:
        return float(inner.lower >= 1) * np.inf if inner.lower >= 1 else _gain(M, z, w), np.inf
    whole = [*blocks, DeltaBlock("full", m, p)]
    low = _gain(M, z, w)

    def holds(g: float) -> MuPeak:
        scale = np.diag([1.0] * z + [1 / g] * p)
        return mu_peak(M.with_matrices(M.A, M.B, scale @ M.C, scale @ M.D), whole, tolerance=tolerance)

    high = max(low, 1e-12)
    while holds(high).upper >= 1:
        high *= 2
    reached = low
    while high - low > 2 * tolerance * high:
        middle = (low + high) / 2
        found = holds(middle)
        if found.upper < 1:
            high = middle
        else:
            low = middle
            reached = max(reached, middle) if found.lower >= 1 else reached
    return reached, high


def _gain(M: StateSpace, z: int, w: int) -> float:
    return linf_norm(M[z:, w:]).gain


def _sensitivity(function: str, L: StateSpace) -> StateSpace:
    p, m = L.shape
    if p != m:
        raise ArgumentError(f"{function}: the loop has shape {L.shape}, expected as many outputs as inputs")
    S = feedback(static(np.eye(p), dt=L.dt), L)
    if not S.is_stable:
        raise NumericalError(
            f"{function}: the closed loop is not stable, it has the pole {S.poles()[-1]:.6g}"
        )
    return S


def _disk(S: StateSpace, skew: float, tolerance: float = 1e-3) -> DiskMargin:
    n = S.shape[0]
    M = S + static((skew - 1) / 2 * np.eye(n), dt=S.dt)
    if n == 1:
        peak = linf_norm(M)
        value, at, sure = peak.gain, peak.frequency, peak.upper
    else:
        found = mu_peak(M, [DeltaBlock("complex")] * n, tolerance=tolerance)
        value, at, sure = found.peak, found.frequency, found.upper
    a = 1 / value
    down, up = (2 - a * (1 - skew)) / (2 + a * (1 + skew)), 2 - a * (1 + skew)
    up = (2 + a * (1 - skew)) / up if up > 1e-9 else np.inf
    down = max(down, 0.0) if down > 1e-9 else 0.0
    cosine = (1 + down * up) / (down + up) if np.isfinite(up) else down
    phase = float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
    return DiskMargin(float(a), float(down), float(up), phase, float(at), 1 / sure)
