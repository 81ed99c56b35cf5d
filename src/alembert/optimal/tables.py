"""Tables in rates and costs: splines through points as expressions, which compile with the rest.

A spline on a grid is a sum of products of the basis functions of its axes,

    y(x_1, x_2, ...) = sum_ij... c_ij... N_i(x_1) N_j(x_2) ...                                            (1)

and these follow from each other by de Boor's and Cox's recursion, from where the knots t have been passed,

    N_i,0(x) = 1 where t_i <= x < t_i+1, else 0
    N_i,p(x) = (x - t_i) / (t_i+p - t_i) N_i,p-1(x) + (t_i+p+1 - x) / (t_i+p+1 - t_i+1) N_i+1,p-1(x)          (2)

All terms are positive, so that no digits are lost, however the knots are spaced. Outside it stays at its ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import casadi as ca
import numpy as np
from scipy.interpolate import make_interp_spline

from alembert.errors import ArgumentError

Array = np.ndarray
MOST = 200
"""points of an axis: each is some operations in every step"""
MOST_VALUES = 4000
"""of a grid"""


def table(x: Any, y: Any, *, kind: Literal["cubic", "linear"] = "cubic") -> Callable[..., ca.SX]:
    """A function through the points (x_k, y_k), for expressions: `drag = table(mach, values)`, then `drag(s.v / 300)`.

    For several arguments x has the points of each axis, and y the values on their grid: `lift = table((alpha, mach),
    values)` with values of shape (len(alpha), len(mach)), then `lift(s.alpha, s.v / 300)`.

    "cubic" has two continuous derivatives (not-a-knot ends; with three points of an axis it is a parabola), "linear" is a
    broken line, whose slope jumps: solvers that expect smooth functions take more iterations with it. Outside of the points
    it has the value of the nearest one.
    """
    axes, values = _read(x, y)
    if kind not in ("cubic", "linear"):
        raise ArgumentError(f"table: kind is {kind!r}, expected 'cubic' or 'linear'")
    bases: list[_Basis] = []
    for i, knots in enumerate(axes):
        degree = min(1 if kind == "linear" else 3, len(knots) - 1)
        spline = make_interp_spline(knots, values, k=degree, axis=i)
        values = np.moveaxis(np.asarray(spline.c), 0, i)  # scipy has the axis first
        bases.append(_Basis(spline.t, degree))

    def value(*at: Any) -> ca.SX:
        """(1)"""
        if len(at) != len(bases):
            raise ArgumentError(
                f"table: called with {len(at)} arguments, expected {len(bases)}: one for each axis"
            )
        weights = [basis(argument) for basis, argument in zip(bases, at, strict=True)]
        found = ca.SX(ca.DM(values.reshape(-1, values.shape[-1]))) @ weights[-1]
        for own, count in zip(reversed(weights[:-1]), reversed(values.shape[:-1]), strict=True):
            found = ca.reshape(found, count, found.numel() // count).T @ own
        return found

    return value


def _read(x: Any, y: Any) -> tuple[list[Array], Array]:
    """The points of the axes, and the values on their grid."""
    several = isinstance(x, Sequence) and len(x) > 0 and all(np.ndim(axis) == 1 for axis in x)
    try:
        axes = [np.asarray(axis, dtype=float) for axis in (x if several else [x])]
        values = np.asarray(y, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError("table: x and y are not numbers") from None
    shape = tuple(axis.size for axis in axes)
    counted = all(axis.ndim == 1 and 2 <= len(axis) <= MOST for axis in axes)
    if not counted or values.shape != shape or values.size > MOST_VALUES:
        raise ArgumentError(
            f"table: x has shapes {', '.join(str(axis.shape) for axis in axes)} and y {values.shape}, expected from 2 to "
            f"{MOST} points for each axis, and a value for each point of the grid {shape}, at most {MOST_VALUES}"
        )
    if not (all(np.isfinite(a).all() for a in (*axes, values)) and all((np.diff(a) > 0).all() for a in axes)):
        raise ArgumentError("table: x and y are to be finite, and x to increase")
    return axes, values


class _Basis:
    """(2) of one axis."""

    def __init__(self, knots: Array, degree: int) -> None:
        self._t, self._degree = [float(t) for t in knots], degree

    def __call__(self, at: Any) -> ca.SX:
        t, count = self._t, len(self._t) - 1
        first, last = self._degree, count - self._degree
        x = ca.fmin(ca.fmax(ca.SX(at), t[first]), t[last])
        passed = {first: ca.SX(1), last: ca.SX(0)} | {k: x >= t[k] for k in range(first + 1, last)}
        N = [passed[k] - passed[k + 1] if first <= k < last else ca.SX(0) for k in range(count)]
        for p in range(1, self._degree + 1):
            N = [
                self._share(x - t[i], t[i + p] - t[i]) * N[i]
                + self._share(t[i + p + 1] - x, t[i + p + 1] - t[i + 1]) * N[i + 1]
                for i in range(count - p)
            ]
        return ca.vertcat(*N)

    @staticmethod
    def _share(part: ca.SX, whole: float) -> ca.SX:
        return part / whole if whole > 0 else ca.SX(0)
