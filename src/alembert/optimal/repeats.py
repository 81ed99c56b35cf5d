"""Which conditions where phases meet follow from others: loops that were closed before are closed after.

What holds at the end of a phase, h(y) = 0 (its loops and prescribed joints, its end conditions), and the rows r(y) that are
asked for besides are functions of the same numbers y. A row that vanishes wherever h and the rows before it do would only
make the equations of a solver singular. It is found where all of them hold, at points that are drawn at random and
brought there by Gauss and Newton's method:

    y <- y - J^+ [h; r],    row i repeats others where its slope is in the span of theirs                    (1)

at every point. Where they contradict each other there is no such point: then all are kept, for the solver to say so.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

Array = np.ndarray
DRAWS = 3
"""points at which slopes are compared: one alone may be a place where a mechanism is stretched or symmetric"""
AROUND = 0.1
"""how far from the place that is given they are drawn"""
NEWTON = 30
HOLDS = 1e-9
"""to what the equations hold at a point, in the sizes of their slopes"""
ROUNDING = 1e-11
"""share of the longest slope, below which one is none: what vanishes by construction leaves rounding"""
SPAN = 1e-7
"""distance of a slope of length 1 from a span, within which it is in it"""


def independent(y: ca.SX, given: ca.SX, rows: ca.SX, place: Array) -> list[int]:
    """Which of `rows` do not follow from `given` and from those before them; all are functions of y, near `place`."""
    count = rows.numel()
    whole = ca.vertcat(given, rows)
    f = ca.Function("rows", [y], [ca.densify(whole), ca.densify(ca.jacobian(whole, y))])
    draw = np.random.default_rng(1)
    repeats = np.ones(count, dtype=bool)
    for _ in range(DRAWS):
        slopes = _slopes_where_all_hold(f, place + AROUND * draw.uniform(-1, 1, y.numel()))
        if slopes is None:
            return list(range(count))
        repeats &= _in_the_span(slopes, given.numel())
    return np.flatnonzero(~repeats).tolist()


def _slopes_where_all_hold(f: ca.Function, y: Array) -> Array | None:
    """J of (1), with rows of length 1."""
    for _ in range(NEWTON):
        r, J = (part.full() for part in f(y))
        if not (np.isfinite(r).all() and np.isfinite(J).all()):
            return None
        size = np.linalg.norm(J, axis=1)
        slope = size > ROUNDING * size.max(initial=0.0)
        size = np.where(slope, size, 1.0)
        r, J = r[:, 0] / size, np.where(slope[:, None], J / size[:, None], 0.0)
        if np.abs(r).max(initial=0.0) <= HOLDS:
            return J
        y = y - np.linalg.lstsq(J, r, rcond=SPAN)[0]
    return None


def _in_the_span(slopes: Array, given: int) -> Array:
    """Of the rows after the first `given`, which are in the span of those before."""
    found = []
    for i in range(given, len(slopes)):
        basis, new = slopes[:i], slopes[i]
        left = new - np.linalg.lstsq(basis.T, new, rcond=1e-10)[0] @ basis if i else new
        found.append(float(np.linalg.norm(left)) < SPAN)
    return np.array(found, dtype=bool)
