"""Inputs for a prescribed output, also where the system is not minimum phase: stable inversion, which looks ahead.

The tip of a flexible arm moves the wrong way first: its transfer function from the joint has zeros in the right half
plane, and the causal inverse grows without bound. Over all times from before to after the motion there is a bounded input,

    u(jw) = G(jw)^-1 y(jw),                                                                                  (1)

which begins before the motion does (Bayo 1987). Rest-to-rest motions of systems with rigid modes are inverted by their
accelerations, u = (-w^2 G)^-1 y'', which come back to zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert import arguments
from alembert.control import SecondOrder, StateSpace
from alembert.control.responses import ResponseEvaluator
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class StableInversion:
    """Inputs `u` (times, inputs) over `t`, which begins before and ends after the motion."""

    t: Array
    u: Array
    lead: float
    """how long before the motion the input begins to act (one percent of its largest), s"""


def stable_inversion(
    system: StateSpace | SecondOrder,
    t: Any,
    acceleration: Any,
    *,
    before: float | None = None,
    after: float | None = None,
) -> StableInversion:
    """The input that gives the outputs (as many as inputs) the accelerations over equally spaced times, from rest to rest.

    `acceleration` (times,) or (times, outputs) is zero outside of `t`. Time is added `before` and `after` for what
    comes early and what rings out: by default as long as the motion.
    """
    what = "stable_inversion"
    G = system.to_statespace() if isinstance(system, SecondOrder) else system
    times = arguments.numbers(what, "t", t)
    steps = np.diff(times)
    if times.ndim != 1 or len(times) < 4 or not np.allclose(steps, steps[0], rtol=1e-6) or not steps[0] > 0:
        raise ArgumentError(f"{what}: t has shape {times.shape}, expected equally spaced times")
    a = arguments.numbers(what, "acceleration", acceleration)
    a = a[:, None] if a.ndim == 1 else a
    m = G.B.shape[1]
    if G.C.shape[0] != m:
        raise ArgumentError(f"{what}: {G.C.shape[0]} outputs and {m} inputs, expected as many")
    if a.shape != (len(times), m):
        raise ArgumentError(
            f"{what}: acceleration has shape {np.shape(acceleration)}, expected ({len(times)}, {m})"
        )
    h, span = float(steps[0]), float(times[-1] - times[0])
    lead, tail = (int(np.ceil((span if x is None else float(x)) / h)) for x in (before, after))
    n = lead + len(times) + tail
    wide = np.zeros((n, m))
    wide[lead : lead + len(times)] = a
    w = 2 * np.pi * np.fft.rfftfreq(n, h)
    # at rest the response of rigid modes is that just above zero
    s = 1j * np.where(w == 0, 1e-3 * w[1], w)
    response = ResponseEvaluator(G.A, G.B, G.C, G.D)(s) * (s**2)[:, None, None]
    size = np.linalg.svd(response, compute_uv=False)
    if not np.isfinite(response).all() or (size[:, -1] <= 1e-12 * size.max()).any():
        k = int(np.argmin(size[:, -1])) if np.isfinite(response).all() else 0
        raise NumericalError(
            f"{what}: at {w[k]:g} rad/s the system gives no output: a zero on the imaginary axis (or an undamped pole) "
            "leaves no bounded input; choose another output, or add damping"
        )
    u = np.fft.irfft(np.linalg.solve(response, np.fft.rfft(wide, axis=0)[:, :, None])[:, :, 0], n, axis=0)
    ends = max(np.abs(u[:2]).max(), np.abs(u[-2:]).max())
    if ends > 0.05 * np.abs(u).max():
        raise NumericalError(
            f"{what}: the input has not died out at the ends ({ends / np.abs(u).max():.2g} of its largest); give more time "
            f"before ({lead * h:g} s) or after ({tail * h:g} s)"
        )
    grid = times[0] + h * (np.arange(n) - lead)
    acts = np.abs(u).max(axis=1) > 0.01 * np.abs(u).max()
    return StableInversion(grid, u, float(max(0.0, times[0] - grid[int(np.argmax(acts))])))
