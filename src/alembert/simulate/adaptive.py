"""Schemes with error control, in charts of the configuration manifold.

SciPy's integrators see y = (e, v) with q = integrate(q0, e) (see `alembert.simulate.tangent`), so that
quaternions are unit wherever they are looked at:

    e' = T(e) v,    v' = a(t, q, v)                                                 (1)

and for implicit schemes the exact Jacobian, with the derivatives of forward dynamics and J = T^-1,

    [ d(T v)/de   T   ]
    [ a_q J       a_v ]                                                             (2)

A joint that turns further than `REACH` from q0 gets a new chart; so does everything after an event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alembert.errors import NumericalError
from alembert.model import Model
from alembert.simulate.tangent import chart_kernel, curved

Array = np.ndarray
Slope = Callable[[float, Array, Array], Array]
"""Accelerations from t, q and v."""
Slopes = Callable[[float, Array, Array], tuple[Array, Array]]
"""Their derivatives with respect to q (tangent) and v."""

REACH = 1.5  # rad; T is singular at 2 pi
ADAPTIVE = {
    "dop853": ("DOP853", 8, "smooth motion to high accuracy"),
    "rk45": ("RK45", 5, "smooth motion to moderate accuracy"),
    "radau": ("Radau", 5, "stiff springs, dampers and controllers"),
    "bdf": ("BDF", 5, "stiff, large models, moderate accuracy"),
}
IMPLICIT = ("radau", "bdf")


@dataclass(frozen=True)
class Piece:
    """The motion between two times, with its interpolation."""

    start: float
    end: float
    at: Callable[[Any], tuple[Array, Array]] = field(repr=False)
    """q and v, (..., nq) and (..., nv), at times within"""


@dataclass
class Counters:
    """What an adaptive run took."""

    steps: int = 0
    charts: int = 0
    evaluations: int = 0
    step: float | None = None


def pieces(
    model: Model,
    name: str,
    slope: Slope,
    slopes: Slopes | None,
    t: float,
    q: Array,
    v: Array,
    end: float,
    *,
    tolerance: float,
    absolute: float,
    longest: float,
    counters: Counters,
    project: Callable[[Array, Array], tuple[Array, Array]] | None = None,
) -> Iterator[Piece]:
    """The motion from t to `end`, step by step; with `project` every step ends on the surface of constraints."""
    import scipy.integrate

    method = getattr(scipy.integrate, ADAPTIVE[name][0])
    nv, rate = model.nv, chart_kernel(model, "chart_rate")
    turning = curved(model)
    while t < end:
        base = q

        def derivative(t: float, y: Array, base: Array = base) -> Array:
            counters.evaluations += 1
            e, v = y[:nv], y[nv:]
            return np.concatenate([rate(e, v), slope(t, model.integrate(base, e), v)])

        options: dict[str, Any] = {"rtol": tolerance, "atol": absolute, "max_step": longest}
        if counters.step is not None:
            options["first_step"] = min(counters.step, end - t)
        if name in IMPLICIT and slopes is not None:
            options["jac"] = _jacobian(model, slopes, base)
        solver = method(derivative, t, np.concatenate([np.zeros(nv), v]), end, **options)
        counters.charts += 1
        while solver.status == "running":
            message = solver.step()
            if solver.status == "failed":
                raise NumericalError(
                    f"simulate: {name} cannot go on at t = {solver.t:.9g} s: {str(message).rstrip('.').lower()}; "
                    "the motion may be singular or stiff there (integrator='radau'), or the tolerance too small"
                )
            counters.steps += 1
            dense = solver.dense_output()

            def at(times: Any, dense: Any = dense, base: Array = base) -> tuple[Array, Array]:
                y = np.moveaxis(dense(np.asarray(times)), 0, -1)
                return model.integrate(base, np.ascontiguousarray(y[..., :nv])), y[..., nv:]

            if solver.status == "running" or solver.h_abs > (counters.step or 0.0):
                counters.step = (
                    solver.h_abs
                )  # what it would do next; the last step of a span may be cut short
            yield Piece(solver.t_old, solver.t, at)
            if project is not None or np.any(np.abs(solver.y[:nv][turning]) > REACH):
                break
        t, q, v = solver.t, model.integrate(base, solver.y[:nv]), solver.y[nv:].copy()
        if project is not None:
            q, v = project(q, v)


def _jacobian(model: Model, slopes: Slopes, base: Array) -> Callable[[float, Array], Array]:
    kernel, nv = chart_kernel(model, "chart_derivatives"), model.nv

    def jacobian(t: float, y: Array) -> Array:
        """(2)"""
        e, v = y[:nv].copy(), y[nv:].copy()
        rate_e, rate_v, J = kernel(e, v)
        a_q, a_v = slopes(t, model.integrate(base, e), v)
        return np.block([[rate_e, rate_v], [a_q @ J, a_v]])

    return jacobian
