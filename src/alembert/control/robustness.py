"""Robust stability over all frequencies: the peak of mu, guaranteed; margins of one loop and several; the worst gain.

`mu_peak` proves its level at every frequency (`mu_proof` says how): a narrow peak between frequencies of a grid cannot be
missed.

Nonlinear blocks ("sector": their output is never larger than their input, as energy over time) allow scalings D only that
are the same at all frequencies: the circle criterion, and its form for several nonlinearities. They are scaled against each
other by constants, and are then one full block, which contains them all.

Disk margins (Seiler, Packard, Gahinet 2020, "An introduction to disk margins"): each loop's gain is multiplied by some
(1 + (1-s)/2 d) / (1 - (1+s)/2 d) with complex |d| < a; the loop stays stable for a < 1/mu(S + (s-1)/2), S = (1 +
L)^-1, s the skew. With s = 0, gains between (2-a)/(2+a) and its inverse are in the disk.

Safonov's margin K_m (1982; Tekawy, Safonov and Chiang 1989) is the largest k for which all perturbations of a range are
harmless: two-sided, of size k, K_m = 1/mu; one-sided, d_i = k/2 (1 + e_i), |e_i| <= 1, where the sign of d_i is known,

    det(1 - M d) = 0   where   det(1 - N e) = 0,   N = (1 - k/2 M)^-1 k/2 M                                           (1)

so that k is safe where the loop is stable at e = 0, and mu(N) < 1. Real blocks make it the margin of real parameters.

Gain and phase margins of one loop come without a grid: |L(jw)| = 1 where jw is an eigenvalue of the Hamiltonian matrix of
the level one (see `norms`), and L(jw) is real where it is a zero of L(s) - L(-s). The loop is broken at one place, with
negative feedback: 1 + L.

Root loci are the poles of a closed loop over its gain: u = -k K y, poles of A - B (1 + k K D)^-1 k K C.   (2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert.arguments import whole
from alembert.control import arguments
from alembert.control.arguments import takes_systems
from alembert.control.interconnection import feedback, static
from alembert.control.mu_bounds import DeltaBlock, check_blocks, lower_bound, lower_bounds, reached_gain
from alembert.control.mu_proof import GainProof, Proof
from alembert.control.mu_upper import Scalings
from alembert.control.norms import level_crossings, linf_norm
from alembert.control.responses import bilinear
from alembert.control.statespace import StateSpace
from alembert.errors import ArgumentError, NumericalError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class MuResponse:
    """Bounds of mu at frequencies [rad/s]."""

    frequency: Array
    upper: Array
    lower: Array

    def plot(self, *, path: str | PathLike[str] | None = None) -> Figure:
        """Both bounds over frequency; needs matplotlib. `path` saves it."""
        from alembert.control import plots

        return plots.mu_bounds(self, path)


@dataclass(frozen=True, eq=False)
class MuPeak:
    """mu stays below `upper` at all frequencies, which is proven. `delta`, of size 1/lower, is the smallest perturbation
    found that makes the loop unstable: it has a pole at `frequency` [rad/s] then.

    With nonlinear blocks nothing is known from below: `lower` is zero.
    """

    upper: float
    peak: float
    """the largest bound found; `upper` is larger by the tolerance. Real parameters alone may have mu = 0 but for single
    frequencies: then it is at least 1 % of the bound for complex ones, below which nothing is looked for"""
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


@takes_systems()
def mu_response(
    M: StateSpace,
    blocks: Sequence[DeltaBlock],
    frequency: Any,
    *,
    starts: int = 2,
    tolerance: float = 1e-4,
) -> MuResponse:
    """Bounds at some frequencies; see `mu_peak` for what holds between them.

    Where that from above is not reached at once, `starts` searches from below are begun. `tolerance` (relative): how near
    to the least bound of its kind the one from above comes; it holds, however near.
    """
    check_blocks("mu_response", M.shape, blocks)
    arguments.relative("mu_response", tolerance)
    whole("mu_response", "starts", starts, "a number of searches from 0 on", least=0)
    nonlinear = any(b.kind == "sector" for b in blocks)
    M, blocks = _without_sectors(M, blocks)
    response = M.frequency_response(frequency)
    above = Scalings(blocks).least_of(response.response, tolerance=tolerance)
    upper = np.array([x.level for x in above])
    lower = np.zeros(len(upper))
    if not nonlinear:
        lower = lower_bounds(response.response, blocks, starts=starts, above=above)[0]
    return MuResponse(response.frequency, upper, np.minimum(lower, upper))


@takes_systems()
def mu_peak(
    M: StateSpace, blocks: Sequence[DeltaBlock], *, tolerance: float = 1e-3, starts: int = 20
) -> MuPeak:
    """The largest upper bound of mu over all frequencies, and a proof that mu is nowhere larger by more than
    `tolerance`.

    The number of intervals in the proof grows with one over the square root of the (relative) tolerance.
    """
    check_blocks("mu_peak", M.shape, blocks)
    arguments.relative("mu_peak", tolerance)
    whole("mu_peak", "starts", starts, "a number of searches from 0 on", least=0)
    _check_stable("mu_peak", "nominal", M)
    nonlinear = any(b.kind == "sector" for b in blocks)
    M, blocks = _without_sectors(M, blocks)
    twin = (bilinear(M) if M.is_discrete else M).balanced_scales()
    proof = Proof(twin, blocks)
    best, at, count = proof.peak(tolerance)
    lower, delta = (0.0, None) if nonlinear else lower_bound(proof.at(at), blocks, starts=starts)
    if not nonlinear and proof.reached[0] > lower:
        lower, at, delta = proof.reached
    frequency = 2 * np.arctan(at) / M.dt if M.is_discrete else at
    return MuPeak(best * (1 + tolerance), best, min(lower, best), float(frequency), delta, count)


def _without_sectors(M: StateSpace, blocks: Sequence[DeltaBlock]) -> tuple[StateSpace, list[DeltaBlock]]:
    """Nonlinear blocks scaled against each other by constants, and put into one full block behind the others."""
    sectors = [k for k, b in enumerate(blocks) if b.kind == "sector"]
    if not sectors:
        return M, list(blocks)
    order = [*(k for k in range(len(blocks)) if k not in sectors), *sectors]
    w = np.cumsum([0, *(b.rows for b in blocks)])
    z = np.cumsum([0, *(b.columns for b in blocks)])
    into = [i for k in order for i in range(w[k], w[k + 1])]
    out = [i for k in order for i in range(z[k], z[k + 1])]
    others = [blocks[k] for k in order[: len(order) - len(sectors)]]
    one = DeltaBlock(
        "full", sum(blocks[k].rows for k in sectors), sum(blocks[k].columns for k in sectors), "sectors"
    )
    found, joined = M[out, into], [*others, one]
    if len(sectors) == 1:
        return found, joined
    p, m = M.shape
    before_w, before_z = m - one.rows, p - one.columns

    def scaled(logs: Array) -> tuple[Array, Array]:
        sizes = np.exp(np.concatenate([[0.0], logs]))
        over = np.concatenate([np.full(blocks[k].columns, t) for k, t in zip(sectors, sizes, strict=True)])
        under = np.concatenate([np.full(blocks[k].rows, t) for k, t in zip(sectors, sizes, strict=True)])
        return np.concatenate([np.ones(before_z), over]), np.concatenate([np.ones(before_w), under])

    sizes = np.abs(found.poles()) if not M.is_discrete else np.ones(1)
    sizes = sizes[sizes > 1e-8 * sizes.max(initial=0.0)] if len(sizes) else np.ones(1)
    grid = (
        np.linspace(0, np.pi / M.dt, 40)
        if M.is_discrete
        else np.geomspace(sizes.min() / 10, sizes.max() * 10, 40)
    )
    responses, scalings = found.frequency_response(grid).response, Scalings(joined)

    def level(logs: Array) -> float:
        over, under = scaled(logs)
        X = over[:, None] * responses / under
        d_over, d_under = (np.sqrt(x) for x in scalings.spread(scalings.osborne(X)))
        sizes = np.linalg.norm(d_over[:, :, None] * X / d_under[:, None, :], 2, axis=(1, 2))
        return float(np.log(max(sizes.max(), 1e-300)))

    # every choice is sound; a good one makes the bound small
    best = scipy.optimize.minimize(
        level, np.zeros(len(sectors) - 1), method="Nelder-Mead", options={"maxiter": 60 * len(sectors)}
    )
    over, under = scaled(best.x)
    A, B, C, D = found.matrices
    return found.with_matrices(A, B / under, over[:, None] * C, over[:, None] * D / under), joined


# --- margins and worst gain -----------------------------------------------------------------------------------


@takes_systems()
def disk_margins(L: StateSpace, *, skew: float = 0.0) -> tuple[DiskMargin, ...]:
    """One loop at a time, the others closed; L is the loop (square) under negative feedback."""
    S = _sensitivity("disk_margins", L)
    return tuple(_disk(S[k, k], skew) for k in range(L.shape[0]))


@takes_systems()
def multiloop_disk_margin(L: StateSpace, *, skew: float = 0.0, tolerance: float = 1e-3) -> DiskMargin:
    """All loops at once, each by a number of its own."""
    arguments.relative("multiloop_disk_margin", tolerance)
    return _disk(_sensitivity("multiloop_disk_margin", L), skew, tolerance)


@dataclass(frozen=True)
class StabilityMargin:
    """All perturbations up to `guaranteed` are harmless, which is proven; one of size `reached` is not (infinite where none
    was found)."""

    guaranteed: float
    reached: float
    frequency: float


@takes_systems()
def stability_margin(
    M: StateSpace,
    blocks: Sequence[DeltaBlock],
    *,
    signs: Sequence[int] | int = 0,
    tolerance: float = 1e-3,
    largest: float = 1e3,
) -> StabilityMargin:
    """Safonov's K_m: perturbations of all blocks at once, w = d z.

    `signs`, one for all or one for each, say which sides they have: 0 both, 1 from zero to k, -1 from -k to zero. Margins
    above `largest` count as infinite.
    """
    check_blocks("stability_margin", M.shape, blocks)
    arguments.relative("stability_margin", tolerance)
    given = (
        [int(x) for x in np.broadcast_to(np.asarray(signs), (len(blocks),))]
        if np.size(signs) in (1, len(blocks))
        else []
    )
    if len(given) != len(blocks) or any(x not in (-1, 0, 1) for x in given):
        raise ArgumentError(
            f"stability_margin: signs are {signs!r}, expected -1, 0 or 1, for all or for each of {len(blocks)} blocks"
        )
    for block, sign in zip(blocks, given, strict=True):
        if sign and block.rows != block.columns:
            raise ArgumentError(
                f"stability_margin: a block of {block.rows} x {block.columns} has no sign, expected a square one"
            )
    _check_stable("stability_margin", "nominal", M)
    if not any(given):
        found = mu_peak(M, blocks, tolerance=tolerance)
        reached = 1 / found.lower if found.lower > 0 else np.inf
        return StabilityMargin(found.margin, reached, found.frequency)
    side = np.concatenate([np.full(b.rows, sign) for b, sign in zip(blocks, given, strict=True)])

    def around(k: float) -> tuple[bool, MuPeak | None]:
        """(1)"""
        center = np.diag(k / 2 * side)
        spread = np.where(side == 0, k, k / 2)
        loop = feedback(M, static(center, dt=M.dt), sign=1)
        if not loop.is_stable:
            return False, None
        found = mu_peak(loop * static(np.diag(spread), dt=M.dt), blocks, tolerance=tolerance)
        return found.upper < 1, found

    low, high, reached, frequency = 0.0, 1.0, np.inf, np.nan
    while around(high)[0]:
        low, high = high, 2 * high
        if low > largest:
            return StabilityMargin(np.inf, np.inf, np.nan)
    while high - low > 2 * tolerance * high:
        middle = (low + high) / 2
        safe, seen = around(middle)
        if safe:
            low = middle
            continue
        high = middle
        if seen is None or seen.lower >= 1:
            reached = min(reached, middle)
            frequency = frequency if seen is None else seen.frequency
    return StabilityMargin(low, reached, frequency)


@takes_systems()
def worst_case_gain(
    M: StateSpace, blocks: Sequence[DeltaBlock], *, tolerance: float = 1e-3
) -> tuple[float, float]:
    """(lower, upper) bounds of the largest gain of what is left of M when Delta, |Delta| <= 1, closes its first signals.

    The gain stays below g where mu of M, its last outputs divided by g, stays below one, with a full block on top of
    Delta.
    """
    if not blocks:
        raise ArgumentError(
            "worst_case_gain: blocks is empty, expected one or more; `hinf_norm` is the gain without"
        )
    arguments.relative("worst_case_gain", tolerance)
    z, w = sum(b.columns for b in blocks), sum(b.rows for b in blocks)
    p, m = M.shape[0] - z, M.shape[1] - w
    if p < 1 or m < 1:
        raise ArgumentError(
            f"worst_case_gain: M has shape {M.shape}, and Delta takes ({z}, {w}) of it; nothing is left"
        )
    _check_stable("worst_case_gain", "nominal", M)
    whole = [*blocks, DeltaBlock("full", m, p)]
    if any(b.kind == "sector" for b in blocks):
        return _gain_with_sectors(M, blocks, tolerance)
    twin = (bilinear(M) if M.is_discrete else M).balanced_scales()
    reached = reached_gain(twin, blocks)
    if np.isinf(reached):
        return np.inf, np.inf
    proof = GainProof(twin, whole, max(reached, 1e-12))
    best, at, _ = proof.peak(tolerance)
    if np.isfinite(best) and best > (1 + tolerance) * reached:
        # what makes mu one at the peak
        delta = lower_bound(proof.rows(best)[:, None] * proof.at(at), whole)[1]
        size = 0.0 if delta is None else np.linalg.norm(delta[:w, :z], 2)
        if delta is not None and size > 0:
            reached = max(reached, reached_gain(twin, blocks, delta[:w, :z] / size))
    if np.isinf(best) and mu_peak(M[:z, :w], blocks, tolerance=tolerance).lower >= 1:
        return np.inf, np.inf
    return reached, best * (1 + tolerance)


def _gain_with_sectors(M: StateSpace, blocks: Sequence[DeltaBlock], tolerance: float) -> tuple[float, float]:
    """By bisection: scalings of nonlinear blocks, and of the performance with them, are constants for each level."""
    z, w = sum(b.columns for b in blocks), sum(b.rows for b in blocks)
    p, m = M.shape[0] - z, M.shape[1] - w
    low = linf_norm(M[z:, w:]).gain
    if mu_peak(M[:z, :w], blocks, tolerance=tolerance).upper >= 1:
        return low, np.inf

    def holds(g: float) -> bool:
        scale = np.diag([1.0] * z + [1 / g] * p)
        scaled = M.with_matrices(M.A, M.B, scale @ M.C, scale @ M.D)
        return mu_peak(scaled, [*blocks, DeltaBlock("sector", m, p)], tolerance=tolerance).upper < 1

    reached, high = low, max(low, 1e-12)
    while not holds(high):
        high *= 2
    while high - low > 2 * tolerance * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return reached, high


def _sensitivity(function: str, L: StateSpace) -> StateSpace:
    p, m = L.shape
    if p != m:
        raise ArgumentError(f"{function}: the loop has shape {L.shape}, expected as many outputs as inputs")
    S = feedback(static(np.eye(p), dt=L.dt), L)
    _check_stable(function, "closed", S)
    return S


def _check_stable(function: str, which: str, M: StateSpace) -> None:
    if not M.is_stable:
        worst = np.linalg.eigvals(M.A)[int(np.argmax(M.decay()))]
        raise NumericalError(
            f"{function}: the {which} loop is not stable, it has the pole {complex(worst.real, abs(worst.imag)):.6g}"
        )


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


_ROUNDS, _SMOOTH, _SEEN = (
    8,
    0.03,
    4.0,
)  # of halving; the longest piece of a branch, and the picture, in sizes of open-loop poles


@dataclass(frozen=True, eq=False)
class RootLocus:
    """`poles` (gains, states): each column follows one branch; some end at the `zeros` of the loop."""

    gains: Array
    poles: Array
    zeros: Array
    dt: float = 0.0
    """of a sampled loop [s], whose poles are to stay within the unit circle"""

    def plot(self, *, path: str | PathLike[str] | None = None) -> Figure:
        """The branches in the complex plane; needs matplotlib. `path` saves it."""
        from alembert.control import plots

        return plots.root_locus(self, path)


@takes_systems()
def root_locus(G: StateSpace, K: Any = 1.0, *, gains: Any = None) -> RootLocus:
    """(2) for the gains k; K is a matrix (inputs, outputs), or a number for a system with one of each."""
    K = arguments.matrix("root_locus", "K", K, G.shape[1], G.shape[0])
    k = None if gains is None else np.atleast_1d(arguments.numbers("root_locus", "gains", gains)).ravel()
    found = branches(*G.matrices, K, k)
    return RootLocus(found.gains, found.poles, found.zeros, G.dt)


def branches(A: Array, B: Array, C: Array, D: Array, K: Array, gains: Array | None) -> RootLocus:
    """(2); branches keep their columns by the assignment of least total distance."""
    if gains is not None:
        poles = np.array([_poles(A, B, C, D, K, k) for k in gains]).reshape(len(gains), len(A))
    else:
        gains, poles = _followed(A, B, C, D, K)
    poles = _in_columns(poles)
    zeros = StateSpace(A, B, K @ C, K @ D).zeros() if len(K) else np.zeros(0)
    return RootLocus(gains, poles, zeros)


def _followed(A: Array, B: Array, C: Array, D: Array, K: Array) -> tuple[Array, Array]:
    """Gains from 0 to 1000, closer where branches move fast: where they meet they move by the root of the gain."""
    gains = np.concatenate([[0.0], np.logspace(-3, 3, 200)])
    poles = np.array([_poles(A, B, C, D, K, k) for k in gains]).reshape(len(gains), len(A))
    size = np.abs(poles[0]).max(initial=0.0) or 1.0
    for _ in range(_ROUNDS):
        follow = _in_columns(poles)
        seen = np.abs(follow) < _SEEN * size
        moved = np.where(seen[1:] & seen[:-1], np.abs(np.diff(follow, axis=0)), 0.0)
        far = moved.max(axis=1, initial=0.0) > _SMOOTH * size
        if not far.any():
            break
        between = (gains[1:] + gains[:-1])[far] / 2
        added = np.array([_poles(A, B, C, D, K, k) for k in between])
        gains, poles = np.concatenate([gains, between]), np.concatenate([poles, added])
        order = np.argsort(gains)
        gains, poles = gains[order], poles[order]
    return gains, poles


def _in_columns(poles: Array) -> Array:
    poles = poles.copy()
    for i in range(1, len(poles)):
        poles[i] = poles[i][scipy.optimize.linear_sum_assignment(np.abs(poles[i - 1][:, None] - poles[i]))[1]]
    return poles


def _poles(A: Array, B: Array, C: Array, D: Array, K: Array, gain: float) -> Array:
    try:
        loop = np.linalg.solve(np.eye(len(K)) + gain * K @ D, gain * K @ C)
    except np.linalg.LinAlgError:
        raise NumericalError(
            f"root_locus: at the gain {gain:.6g} the direct part of the outputs feeds the inputs back to "
            "themselves, 1 + k K D is singular, and the poles are infinite"
        ) from None
    return np.sort_complex(np.linalg.eigvals(A - B @ loop))
