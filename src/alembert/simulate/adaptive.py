"""Schemes with error control, in charts of the configuration manifold.

SciPy's integrators see y = (e, v) with q = integrate(q0, e) (see `alembert.simulate.tangent`), so that
quaternions are unit wherever they are looked at:

    e' = T(e) v,    v' = a(t, q, v)                                                 (1)

and for implicit schemes the exact Jacobian, with the derivatives of forward dynamics and J = T^-1,

    [ d(T v)/de   T   ]
    [ a_q J       a_v ]                                                             (2)

A joint that turns further than `REACH` from q0 gets a new chart; so does everything after an event. SUNDIALS' solvers
(`alembert.simulate.sundials`) see the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alembert.errors import NumericalError
from alembert.model import Model
from alembert.simulate.sundials import SOLVERS, Sundials
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
    "cvode": ("CVODE", 5, "stiff; SUNDIALS, extra `stiff`"),
    "cvode_adams": ("CVODE", 12, "smooth motion whose forces are costly; SUNDIALS, extra `stiff`"),
    "ida": ("IDA", 5, "stiff, mass matrices of bad condition; SUNDIALS, extra `stiff`"),
}
IMPLICIT = ("radau", "bdf", "cvode", "cvode_adams", "ida")
MULTISTEP = ("bdf", *SOLVERS)


@dataclass(frozen=True)
class Piece:
    """The motion between two times, with its interpolation."""

    start: float
    end: float
    at: Callable[[Any], tuple[Array, Array]] = field(repr=False)
    """q and v, (..., nq) and (..., nv), at times within"""


@dataclass(frozen=True)
class Balance:
    """The equations of motion as a balance of efforts, for IDA: zero, and its derivatives, from t, q, v and v'."""

    value: Callable[[float, Array, Array, Array], Array]
    slopes: Callable[[float, Array, Array, Array], tuple[Array, Array, Array]] | None


@dataclass(frozen=True)
class Surface:
    """The constraint surface: `project` a state at a time onto it, `distance` of a configuration from it."""

    project: Callable[[float, Array, Array], tuple[Array, Array]]
    distance: Callable[[Array], float]


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
    balance: Balance | None = None,
    surface: Surface | None = None,
) -> Iterator[Piece]:
    """The motion from t to `end`, step by step.

    With a `surface` of constraints every step ends on it; a multistep formula, which would lose its past, goes back there
    when it is further off than the tolerance.
    """
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
        solver = _solver(
            name, model, base, t, np.concatenate([np.zeros(nv), v]), end, derivative, slopes, balance, options
        )
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
            if np.any(np.abs(solver.y[:nv][turning]) > REACH):
                break
            if surface is not None and (
                name not in MULTISTEP or surface.distance(model.integrate(base, solver.y[:nv])) > tolerance
            ):
                break
        t, q, v = solver.t, model.integrate(base, solver.y[:nv].copy()), solver.y[nv:].copy()
        if surface is not None:
            q, v = surface.project(t, q, v)


def _solver(
    name: str,
    model: Model,
    base: Array,
    t: float,
    y: Array,
    end: float,
    derivative: Callable[[float, Array], Array],
    slopes: Slopes | None,
    balance: Balance | None,
    options: dict[str, Any],
) -> Any:
    exact: Callable[..., Array] | None = None
    if name in IMPLICIT and slopes is not None:
        exact = _jacobian(model, slopes, base)
    if name not in SOLVERS:
        import scipy.integrate

        more = {} if exact is None else {"jac": exact}
        return getattr(scipy.integrate, ADAPTIVE[name][0])(derivative, t, y, end, **options, **more)
    residual = None
    if name == "ida":
        assert balance is not None
        residual, exact = _balance(model, balance, base)
    return Sundials(name, t, y, end, derivative=derivative, residual=residual, jacobian=exact, **options)


def _jacobian(model: Model, slopes: Slopes, base: Array) -> Callable[[float, Array], Array]:
    kernel, nv = chart_kernel(model, "chart_derivatives"), model.nv

    def jacobian(t: float, y: Array) -> Array:
        """(2)"""
        e, v = y[:nv].copy(), y[nv:].copy()
        rate_e, rate_v, J = kernel(e, v)
        a_q, a_v = slopes(t, model.integrate(base, e), v)
        return np.block([[rate_e, rate_v], [a_q @ J, a_v]])

    return jacobian


def _balance(
    model: Model, balance: Balance, base: Array
) -> tuple[Callable[[float, Array, Array], Array], Callable[..., Array] | None]:
    """(1) and (2) of `alembert.simulate.sundials`."""
    nv, rate = model.nv, chart_kernel(model, "chart_rate")
    derivatives, slopes = chart_kernel(model, "chart_derivatives"), balance.slopes

    def residual(t: float, y: Array, yp: Array) -> Array:
        e, v = y[:nv].copy(), y[nv:].copy()
        return np.concatenate(
            [yp[:nv] - rate(e, v), balance.value(t, model.integrate(base, e), v, yp[nv:].copy())]
        )

    if slopes is None:
        return residual, None

    def jacobian(t: float, y: Array, yp: Array, c: float) -> Array:
        e, v = y[:nv].copy(), y[nv:].copy()
        rate_e, rate_v, J = derivatives(e, v)
        f_q, f_v, f_a = slopes(t, model.integrate(base, e), v, yp[nv:].copy())
        return np.block([[c * np.eye(nv) - rate_e, -rate_v], [f_q @ J, f_v + c * f_a]])

    return residual, jacobian
