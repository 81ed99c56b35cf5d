"""Schemes with error control, in charts of the configuration manifold.

SciPy's integrators see y = (e, v, z) with q = integrate(q0, e) (see `alembert.simulate.tangent`), so that
quaternions are unit wherever they are looked at; z is what drives remember (`alembert.simulate.flow`):

    e' = T(e) v,    v' = a(t, q, v, z),    z' = r(t, q, v, z)                       (1)

and for implicit schemes the exact Jacobian, with the derivatives of forward dynamics and J = T^-1,

    [ d(T v)/de   T     0   ]
    [ a_q J       a_v   a_z ]                                                       (2)
    [ r_q J       r_v   r_z ]

A joint that turns further than `REACH` from q0 gets a new chart; so does everything after an event, and every `RENEWED`
steps of a scheme that does not look back. The state at the start of a chart is all that the motion from there on depends
on, so a run can go on from there with the same bits. SUNDIALS' solvers (`alembert.simulate.sundials`) see the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alembert.errors import NumericalError
from alembert.simulate.flow import Flow
from alembert.simulate.sundials import SOLVERS, Sundials
from alembert.simulate.tangent import chart_kernel, curved

Array = np.ndarray
REACH = 1.5  # rad; T is singular at 2 pi
RENEWED = 50  # steps: making a solver anew costs less than one of them
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
    memory: Callable[[Any], Array] = field(repr=False)
    """z, (..., size)"""


@dataclass(frozen=True)
class Birth:
    """The start of a chart: time, state, and the step that comes next."""

    t: float
    q: Array
    v: Array
    z: Array
    step: float | None


@dataclass
class Counters:
    """What an adaptive run took."""

    steps: int = 0
    charts: int = 0
    evaluations: int = 0
    step: float | None = None


def pieces(
    name: str,
    flow: Flow,
    t: float,
    q: Array,
    v: Array,
    z: Array,
    end: float,
    *,
    tolerance: float,
    absolute: float,
    counters: Counters,
    born: Callable[[Birth], None] = lambda birth: None,
    longest: float = np.inf,
) -> Iterator[Piece]:
    """The motion from t to `end`, step by step; `born` is told of every chart.

    On a surface of constraints every step ends on it; a multistep formula, which would lose its past, goes back there
    when it is further off than the tolerance.
    """
    model = flow.system.model
    nv, rate = model.nv, chart_kernel(model, "chart_rate")
    turning = curved(model)
    while t < end:
        base = q
        born(Birth(t, q, v, z, counters.step))

        def derivative(t: float, y: Array, base: Array = base) -> Array:
            counters.evaluations += 1
            e, v = y[:nv], y[nv : 2 * nv]
            a, r = flow.slope(t, model.integrate(base, e), v, y[2 * nv :])
            return np.concatenate([rate(e, v), a, r])

        options: dict[str, Any] = {"rtol": tolerance, "atol": absolute, "max_step": longest}
        if counters.step is not None:
            options["first_step"] = min(counters.step, end - t)
        solver = _solver(name, flow, base, t, np.concatenate([np.zeros(nv), v, z]), end, derivative, options)
        counters.charts += 1
        made = 0
        while solver.status == "running":
            message = solver.step()
            if solver.status == "failed":
                raise NumericalError(
                    f"simulate: {name} cannot go on at t = {solver.t:.9g} s: {str(message).rstrip('.').lower()}; "
                    "the motion may be singular or stiff there (integrator='radau'), or the tolerance too small"
                )
            counters.steps += 1
            made += 1
            dense = solver.dense_output()

            def at(times: Any, dense: Any = dense, base: Array = base) -> tuple[Array, Array]:
                y = np.moveaxis(dense(np.asarray(times)), 0, -1)
                return model.integrate(base, np.ascontiguousarray(y[..., :nv])), y[..., nv : 2 * nv]

            def memory(times: Any, dense: Any = dense) -> Array:
                if not flow.size:
                    return np.zeros((*np.shape(times), 0))
                return np.moveaxis(dense(np.asarray(times)), 0, -1)[..., 2 * nv :]

            if solver.status == "running" or solver.h_abs > (counters.step or 0.0):
                counters.step = (
                    solver.h_abs
                )  # what it would do next; the last step of a span may be cut short
            yield Piece(solver.t_old, solver.t, at, memory)
            if np.any(np.abs(solver.y[:nv][turning]) > REACH):
                break
            if name not in MULTISTEP and (made == RENEWED or flow.on_surface):
                break
            if flow.on_surface and flow.distance(model.integrate(base, solver.y[:nv])) > tolerance:
                break
        y = solver.y.copy()
        t, q, v, z = solver.t, model.integrate(base, y[:nv]), y[nv : 2 * nv].copy(), y[2 * nv :].copy()
        if flow.on_surface:
            q, v = flow.project(t, q, v)


def _solver(
    name: str,
    flow: Flow,
    base: Array,
    t: float,
    y: Array,
    end: float,
    derivative: Callable[[float, Array], Array],
    options: dict[str, Any],
) -> Any:
    exact: Callable[..., Array] | None = None
    if name in IMPLICIT and flow.exact and name != "ida":
        exact = _jacobian(flow, base)
    if name not in SOLVERS:
        import scipy.integrate

        more = {} if exact is None else {"jac": exact}
        return getattr(scipy.integrate, ADAPTIVE[name][0])(derivative, t, y, end, **options, **more)
    residual = None
    if name == "ida":
        residual, exact = _balance(flow, base)
    return Sundials(name, t, y, end, derivative=derivative, residual=residual, jacobian=exact, **options)


def _jacobian(flow: Flow, base: Array) -> Callable[[float, Array], Array]:
    model = flow.system.model
    kernel, nv = chart_kernel(model, "chart_derivatives"), model.nv

    def jacobian(t: float, y: Array) -> Array:
        """(2)"""
        e, v, z = y[:nv].copy(), y[nv : 2 * nv].copy(), y[2 * nv :].copy()
        rate_e, rate_v, J = kernel(e, v)
        found = np.vstack(flow.slopes(t, model.integrate(base, e), v, z))
        found[:, :nv] = found[:, :nv] @ J
        return np.vstack([np.hstack([rate_e, rate_v, np.zeros((nv, len(z)))]), found])

    return jacobian


def _balance(
    flow: Flow, base: Array
) -> tuple[Callable[[float, Array, Array], Array], Callable[..., Array] | None]:
    """(1) and (2) of `alembert.simulate.sundials`."""
    model = flow.system.model
    nv, rate = model.nv, chart_kernel(model, "chart_rate")
    derivatives = chart_kernel(model, "chart_derivatives")

    def residual(t: float, y: Array, yp: Array) -> Array:
        e, v, z = y[:nv].copy(), y[nv : 2 * nv].copy(), y[2 * nv :].copy()
        q, a = model.integrate(base, e), yp[nv : 2 * nv].copy()
        parts = [yp[:nv] - rate(e, v), flow.balance(t, q, v, z, a)]
        if len(z):
            parts.append(yp[2 * nv :] - flow.slope(t, q, v, z)[1])
        return np.concatenate(parts)

    if not flow.exact:
        return residual, None

    def jacobian(t: float, y: Array, yp: Array, c: float) -> Array:
        e, v, z = y[:nv].copy(), y[nv : 2 * nv].copy(), y[2 * nv :].copy()
        rate_e, rate_v, J = derivatives(e, v)
        f, f_a, rows = flow.balance_slopes(t, model.integrate(base, e), v, z, yp[nv : 2 * nv].copy())
        found = np.vstack([f, -rows])
        found[:, :nv] = found[:, :nv] @ J
        found[:nv, nv : 2 * nv] += c * f_a
        found[nv:, 2 * nv :] += c * np.eye(len(z))
        return np.vstack([np.hstack([c * np.eye(nv) - rate_e, -rate_v, np.zeros((nv, len(z)))]), found])

    return residual, jacobian
