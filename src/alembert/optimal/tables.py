"""Tables in rates and costs: splines through points as expressions, which compile with the rest.

A spline with the knots x_0 < ... < x_K is a polynomial of its own on each interval, of which one counts,

    y(x) = sum_k (H(x - x_k) - H(x - x_k+1)) sum_i c_ki (x - x_k)^i,    H(x) = 1 where x >= 0, else 0       (1)

A sum of truncated powers max(0, x - x_k)^3 would be shorter, and lose all digits where knots are unevenly spaced. Outside
it stays at its ends.
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
    if kind == "linear" or len(knots) == 2:
        pieces = np.stack([values[:-1], np.diff(values) / np.diff(knots)])
    else:
        pieces = CubicSpline(knots, values).c[::-1]

    def value(at: Any) -> ca.SX:
        """(1)"""
        s = ca.fmin(ca.fmax(ca.SX(at), knots[0]), knots[-1])
        passed = [ca.SX(1), *(s >= float(x) for x in knots[1:-1]), ca.SX(0)]
        found = ca.SX(0)
        for k, coefficients in enumerate(pieces.T):
            own = ca.SX(0)
            for c in reversed(coefficients):
                own = own * (s - float(knots[k])) + float(c)
            found += (passed[k] - passed[k + 1]) * own
        return found

    return value
