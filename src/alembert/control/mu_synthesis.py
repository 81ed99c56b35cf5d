"""Controllers for plants with structured uncertainty: D-K iteration.

mu of the closed loop M = F_l(P, K) is bounded by the gain of D M D^-1. The iteration (Doyle 1985) makes it small in
turns: the H-infinity controller of the plant scaled by D, then D at every frequency for that K, fitted by stable
systems with stable inverses,

    d(s) = k prod (s^2 + 2 z w s + w^2) / (s^2 + 2 y v s + v^2),      z, w, y, v > 0,                                 (1)

by least squares of log |d|, heavier where mu is large. Plain steps creep: after the first they are made longer after each
one that lowers mu, and shorter, from the same D, after one that does not. The best controller whose peak can be proven for
all frequencies (`mu_peak`) is returned.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert.control.hinf import hinfsyn
from alembert.control.interconnection import append, lft, series, static
from alembert.control.mu_bounds import DeltaBlock
from alembert.control.mu_upper import Scalings
from alembert.control.robustness import MuPeak, mu_peak
from alembert.control.sampling import bilinear
from alembert.control.statespace import StateSpace
from alembert.control.synthesis import count, finished, ordered
from alembert.control.system_arguments import takes_systems
from alembert.control.transfer import tf
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray
_LONGER, _SHORTER, _LONGEST, _SHORTEST = (
    1.3,
    0.5,
    30.0,
    0.3,
)  # steps of log D, after one that lowered mu, after one that did not
_ABOVE = 1e-5  # of the least level: D is the centre there, of which there is one; at the least level rounding chooses D
_MOST = 25.0  # of the logarithms of frequencies, damping ratios and gains in d(s)


@dataclass(frozen=True, eq=False)
class MuSynthesis:
    """The controller of least peak of mu that was found, the closed loop, its proven peak, and the peak of every step."""

    controller: StateSpace
    closed_loop: StateSpace
    peak: MuPeak
    history: tuple[float, ...]


@takes_systems()
def dksyn(
    P: StateSpace,
    blocks: Sequence[DeltaBlock],
    *,
    controls: Any,
    measurements: Any,
    iterations: int = 6,
    order: int = 4,
    frequency: Any = None,
    relaxation: float = 1.5,
    tolerance: float = 1e-3,
) -> MuSynthesis:
    """D-K iteration; the last of the `blocks` is usually the full one of performance.

    `order` is that of every d(s), `frequency` [rad/s] where it is fitted. The first step of log D is plain; `relaxation` is
    the length of the next, in units of a plain one. Blocks have one number d each: repeated and real ones are taken as if
    they were full. A sampled plant is worked on by its bilinear twin, which has the same mu.
    """
    P = ordered("dksyn", P, controls, measurements)
    m, r = count(P.input_names, controls), count(P.output_names, measurements)
    z, w = P.shape[0] - r, P.shape[1] - m
    takes, gives = sum(b.columns for b in blocks), sum(b.rows for b in blocks)
    if (takes, gives) != (z, w):
        raise ArgumentError(
            f"dksyn: the blocks take {takes} outputs and give {gives} inputs, expected the {z} and {w} that P has beside "
            "y and u; performance is a block too: DeltaBlock('full', inputs, outputs)"
        )
    if P.is_discrete:
        bent = None if frequency is None else np.tan(np.asarray(frequency, dtype=float) * P.dt / 2)
        twin = dksyn(bilinear(P), blocks, controls=m, measurements=r, iterations=iterations, order=order,
                     frequency=bent, relaxation=relaxation, tolerance=tolerance)  # fmt: skip
        peak = dataclasses.replace(twin.peak, frequency=2 * np.arctan(twin.peak.frequency) / P.dt)
        K = finished(P, twin.controller)
        return MuSynthesis(K, lft(P, K), peak, twin.history)
    scalings = Scalings([DeltaBlock("full", b.rows, b.columns, b.name) for b in blocks])
    grid = _grid(P) if frequency is None else np.asarray(frequency, dtype=float)
    scaled, length = P, 1.0
    history: list[float] = []
    best: list[tuple[float, StateSpace, StateSpace]] = []
    """peak, controller and loop of the steps that lowered mu"""
    log_d = way = np.zeros((len(grid), len(blocks)))
    fits: list[StateSpace] = []
    for _ in range(iterations):
        try:
            K = hinfsyn(scaled, controls=m, measurements=r, tolerance=1e-4).controller
            M = lft(P, K)
            levels, wanted = _levels(M, scalings, grid)
        except NumericalError as error:
            if not best:
                raise NumericalError(f"dksyn: the first step has no controller; {error}") from None
            levels, wanted = np.array([np.inf]), log_d  # the Riccati equations cannot take these scalings
        if np.isfinite(levels[0]):
            history.append(float(levels.max()))
        if not best or levels.max() < best[-1][0]:
            if best:
                length = relaxation if len(best) == 1 else min(_LONGER * length, _LONGEST)
                log_d = _log_gains(fits, grid)
            best.append((float(levels.max()), K, M))
            way, weight = wanted - log_d, np.maximum(levels / levels.max(), 0.1)
        else:
            length *= _SHORTER
            if length < _SHORTEST:
                break
        target = log_d + length * way
        fits = [fitted_magnitude(grid, np.exp(x), order, weight) for x in target.T[:-1]] + [static(1.0)]
        scaled = _scaled(P, scalings.blocks, fits, m, r)
    for _, K, M in reversed(best):
        try:
            return MuSynthesis(K, M, mu_peak(M, blocks, tolerance=tolerance), tuple(history))
        except NumericalError as error:
            unproven = error
    raise NumericalError(f"dksyn: of no controller found the peak can be proven; {unproven}")


def _log_gains(fits: Sequence[StateSpace], grid: Array) -> Array:
    return np.array([np.log(np.abs(f.frequency_response(grid).response[:, 0, 0])) for f in fits]).T


def _levels(M: StateSpace, scalings: Scalings, grid: Array) -> tuple[Array, Array]:
    """Upper bounds of mu, and log d of every block relative to the last one, (frequencies, blocks)."""
    response = M.frequency_response(grid).response
    levels = np.array([bound.level for bound in scalings.least_of(response, tolerance=1e-8)])
    bounds = scalings.least_of(response, tolerance=1e-8, below=levels * (1 + _ABOVE))
    values = [[0.5 * np.log(x.D_right[at.start, at.start].real) for at in scalings.w] for x in bounds]
    d = np.array(values)
    return levels, d - d[:, -1:]


def _scaled(
    P: StateSpace, blocks: Sequence[DeltaBlock], fits: Sequence[StateSpace], m: int, r: int
) -> StateSpace:
    """D_left P D_right^-1"""
    left = append(*(append(*[f] * b.columns) for f, b in zip(fits, blocks, strict=True)), static(np.eye(r)))
    right = append(
        *(append(*[f.inverse()] * b.rows) for f, b in zip(fits, blocks, strict=True)), static(np.eye(m))
    )
    return series(right, P, left)


def fitted_magnitude(w: Array, magnitude: Array, order: int, weight: Array | None = None) -> StateSpace:
    """(1): a stable system with a stable inverse whose gain is near `magnitude` at the frequencies w."""
    target = np.log(magnitude)
    weight = np.ones_like(w) if weight is None else weight
    pairs, single = divmod(order, 2)
    if order == 0 or np.ptp(target) < 1e-6:
        return static(float(np.exp(np.average(target, weights=weight))))

    def log_gain(x: Array) -> Array:
        g = np.full(len(w), x[0])
        for k in range(pairs):
            wz, zz, wp, zp = np.exp(x[1 + 4 * k : 5 + 4 * k])
            g += 0.5 * np.log((wz**2 - w**2) ** 2 + (2 * zz * wz * w) ** 2)
            g -= 0.5 * np.log((wp**2 - w**2) ** 2 + (2 * zp * wp * w) ** 2)
        if single:
            a, b = np.exp(x[-2:])
            g += 0.5 * np.log(w**2 + a**2) - 0.5 * np.log(w**2 + b**2)
        return g

    low, high = np.log(w[w > 0].min()), np.log(w.max())
    best = None
    for shift in (0.0, 0.5):
        start = [float(np.mean(target))]
        for k in range(pairs):
            centre = low + (high - low) * (k + 0.5 + shift / 2) / (pairs + shift)
            start += [centre, 0.3, centre + 0.1, 0.3]
        if single:
            start += [(low + high) / 2, (low + high) / 2 + 0.1]
        found = scipy.optimize.least_squares(
            lambda x: weight * (log_gain(x) - target), start, bounds=(-_MOST, _MOST), max_nfev=200
        )
        if best is None or found.cost < best.cost:
            best = found
    assert best is not None
    x = best.x
    made = static(float(np.exp(x[0])))
    for k in range(pairs):
        wz, zz, wp, zp = np.exp(x[1 + 4 * k : 5 + 4 * k])
        made = series(made, tf([1, 2 * zz * wz, wz**2], [1, 2 * zp * wp, wp**2]))
    if single:
        a, b = np.exp(x[-2:])
        made = series(made, tf([1, a], [1, b]))
    return made


def _grid(P: StateSpace) -> Array:
    """Five decades up to ten times the fastest pole: what is slower (an integrator, nearly) does not shape D."""
    top = 10 * float(np.abs(P.poles()).max(initial=1.0))
    return np.geomspace(1e-6 * top, top, 50)
