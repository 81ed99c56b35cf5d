"""Tables in rates and costs: splines through points as expressions, which compile with the rest.

A cubic spline with the knots x_0 < ... < x_K is a cubic and one truncated power for each inner knot,

    y(x) = sum_i a_i (x - x_0)^i + sum_k c_k max(0, x - x_k)^3,    i = 0 .. 3                              (1)

with 6 c_k the jumps of its third derivative; a broken line the same with the first power. Outside it stays at its ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import casadi as ca
import numpy as np
from scipy.interpolate import CubicSpline

from alembert.errors import ArgumentError

MOST = 200
"""knots: each is some operations in every step"""


def table(x: Any, y: Any, *, kind: Literal["cubic", "linear"] = "cubic") -> Callable[[Any], ca.SX]:
    """A function through the points (x_k, y_k), for expressions: `drag = table(mach, values)`, then `drag(s.v / 300)`.

    "cubic" has two continuous derivatives (not-a-knot ends), "linear" is a broken line, whose slope jumps: solvers that
    expect smooth functions take more iterations with it. Outside of the points it has the value of the nearest one.
    """
    try:
        knots, values = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError("table: x and y are not numbers") from None
    if knots.ndim != 1 or knots.shape != values.shape or not 2 <= len(knots) <= MOST:
        raise ArgumentError(
            f"table: x has shape {knots.shape} and y {values.shape}, expected the same number of points, from 2 to {MOST}"
        )
    if not (np.isfinite(knots).all() and np.isfinite(values).all() and np.all(np.diff(knots) > 0)):
        raise ArgumentError("table: x and y are to be finite, and x to increase")
    if kind not in ("cubic", "linear"):
        raise ArgumentError(f"table: kind is {kind!r}, expected 'cubic' or 'linear'")
    scale = float(np.mean(np.diff(knots)))
    where = (knots - knots[0]) / scale
    power = 1
    if kind == "linear" or len(knots) == 2:
        slopes = np.diff(values) / np.diff(where)
        first, jumps = [values[0], slopes[0]], np.diff(slopes)
    else:
        power = 3
        c = CubicSpline(where, values).c
        first, jumps = list(c[::-1, 0]), np.diff(c[0])
    kept = [
        (w, j)
        for w, j in zip(where[1:-1], jumps, strict=True)
        if abs(j) > 1e-14 * np.abs(values).max(initial=0)
    ]

    def value(at: Any) -> ca.SX:
        s = (ca.fmin(ca.fmax(ca.SX(at), knots[0]), knots[-1]) - knots[0]) / scale
        found = ca.SX(0)
        for a in reversed(first):
            found = found * s + float(a)
        for w, jump in kept:
            found += float(jump) * ca.fmax(0, s - float(w)) ** power
        return found

    return value
