"""Meshes that are refined by the order of the method where a solution is smooth, and by nodes where it is not.

Within an interval the controls of Radau's method are polynomials. By their coefficients a_j in Legendre's basis they are
smooth by the ratio

    rho = (max_i<s-1 |a_i| / |a_s-1|)^(1/(s-1-i))                                                    (1)

by which coefficients fall. One more of the s points divides the error of the interval by rho^2, and d of them by F =
rho^(2d), at the price of an iteration, s^alpha; to divide it by cutting the interval takes F^(1/2s) parts. The first is the
better way for small changes where

    alpha d / s < ln F / (2 s),  that is  ln rho > alpha                                              (2)

All intervals of a mesh have the same order: stages have the same sizes, so that one of few points costs the sweep in time as
much as one of many. What a mesh of mixed orders would save elsewhere are unknowns, which are none of its cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from alembert.errors import UnsupportedError
from alembert.optimal.arcs import junctions
from alembert.optimal.schemes import RADAU, radau_name

if TYPE_CHECKING:
    from alembert.optimal.solution import Solution

Array = np.ndarray
PRICE = 1.0
"""alpha of (2): measured 0.3 to 1.1 (van der Pol's oscillator and an acrobot, 300 intervals, 2 to 6 points)"""
LEFT = 1e-10
"""share of the range of a control: what a solver leaves of it"""
MOST = max(RADAU.values())
"""points"""


def _points(transcription: str) -> int | None:
    return {"radau": 3, "radau-momenta": 3, **RADAU}.get(transcription)


def with_orders(transcription: str | None) -> str:
    """The transcription to begin with; refuses those that have no others of their kind."""
    name = transcription or "radau"
    if _points(name) is None:
        raise UnsupportedError(
            f"solve: refine='hp' raises the order of Radau's methods, and {name!r} has one order only; choose "
            "transcription='radau', or refine='h'"
        )
    return name


def higher(transcription: str, more: int) -> str:
    """The one with `more` points, as far as there are any."""
    points = min((_points(transcription) or MOST) + more, MOST)
    return radau_name(points, momenta=transcription.endswith("momenta"))


def smoothness(solution: Solution) -> Array:
    """(N,): rho of (1), of the control that is the least smooth; inf for one that is a polynomial of a lower degree."""
    s, m = solution.stages.scheme.points, len(solution.problem.plant.controls)
    u = solution._outcome.iterate.u.reshape(solution.steps, s, m)
    basis = np.polynomial.legendre.legvander(2 * np.array(solution.stages.control_places) - 1, s - 1)
    a = np.abs(np.einsum("ij,kjm->kim", np.linalg.inv(basis), u))
    small = LEFT * np.maximum(np.ptp(u, axis=(0, 1)), 1e-300)
    last = np.maximum(a[:, -1], small)
    found = np.max([(np.maximum(a[:, i], small) / last) ** (1 / (s - 1 - i)) for i in range(s - 1)], axis=0)
    found = np.where(a[:, -1] <= small, np.inf, found)
    return found.min(axis=1, initial=np.inf)


def more_points(solution: Solution, accuracy: float, jumping: set[int]) -> tuple[int, Array]:
    """By how many points the method is to be raised, and (N,) which intervals are smooth, and so left uncut for it."""
    N, s = solution.steps, solution.stages.scheme.points
    known = solution.accuracy.intervals
    errors = np.where(np.isfinite(known), known, 0.0) * N / accuracy
    rho = smoothness(solution)
    smooth = np.log(rho) > PRICE
    smooth[list(jumping | junctions(solution))] = False
    off = smooth & (errors > 1)
    if s >= MOST:
        return 0, np.zeros(N, dtype=bool)
    if not off.any():
        return 0, smooth
    needed = np.ceil(np.log(errors[off]) / (2 * np.log(rho[off])))
    return int(np.clip(needed.max(), 1, MOST - s)), smooth
