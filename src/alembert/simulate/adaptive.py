"""Schemes with error control, in charts of the configuration manifold.

SciPy's integrators see (1) and (2) of `alembert.simulate.chart_equation`, about a configuration q0 of their own.

A joint that turns further than `REACH` from q0 gets a new chart; so does everything after an event, and every `RENEWED`
steps of a scheme that does not look back. The state at the start of a chart is all that the motion from there on depends
on, so a run can go on from there with the same bits. SUNDIALS' solvers (`alembert.simulate.adaptive`) see the same.

SUNDIALS' solvers (extra `stiff`) behind the interface of SciPy's: `step`, `dense_output`, `t`, `y`, `status`.

CVODE solves y' = f(t, y), with BDF or Adams formulas. IDA solves F(t, y, y') = 0, here the equations of motion as
inverse dynamics gives them, so that nothing is ever divided by the mass matrix:

    e' - T(e) v = 0,    inverse_dynamics(q, v, v') - tau(t, q, v) = 0               (1)

with y = (e, v) as in `alembert.simulate.adaptive`, and the exact Jacobian dF/dy + c dF/dy',

    [ c - d(T v)/de            -T                    ]
    [ (id_q - tau_q) T^-1      id_v - tau_v + c M    ]                              (2)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy

from alembert.algorithms.failures import overbent
from alembert.constraints.system import NotClosed
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.model import Model
from alembert.simulate import chart_equation
from alembert.simulate.chart_equation import Approach, Flow
from alembert.simulate.feedback import blame
from alembert.simulate.step_code import chart_kernel

Array = np.ndarray

SOLVERS = {"cvode": "BDF", "cvode_adams": "Adams", "ida": ""}
SMALLEST, PATIENCE = 1e-14, 30
"""a step, relative to the time; and how many such may follow one another: the first steps of IDA grow from there"""


class Sundials:
    """`derivative(t, y)` is asked by CVODE, `residual(t, y, y')` by IDA; `jacobian(t, y)` or `(t, y, y', c)`."""

    def __init__(
        self,
        name: str,
        t: float,
        y: Array,
        end: float,
        *,
        derivative: Callable[[float, Array], Array],
        residual: Callable[[float, Array, Array], Array] | None,
        jacobian: Callable[..., Array] | None,
        **options: Any,
    ) -> None:
        try:
            from sksundae.cvode import CVODE
            from sksundae.ida import IDA
        except ImportError:
            raise UnsupportedError(
                f'simulate: integrator {name!r} needs SUNDIALS; pip install "alembert[stiff]"'
            ) from None
        self.t_old, self.t, self.y = t, t, y
        self.status, self.h_abs = "running", 0.0
        self._end, self._looked, self._small = end, False, 0
        given = {**options, "max_step": 0.0 if np.isinf(options["max_step"]) else options["max_step"]}
        self._solver: Any
        if name == "ida":
            assert residual is not None
            self._solver = IDA(_fills(residual, 3), jacfn=_fills_ida(jacobian), **given)
            found = self._solver.init_step(t, y, derivative(t, y))
        else:
            self._solver = CVODE(
                _fills(derivative, 2), jacfn=_fills_cvode(jacobian), method=SOLVERS[name], **given
            )
            found = self._solver.init_step(t, y)
        self._check(found)

    def step(self) -> str | None:
        if self._looked:  # back from where dense output has left it
            self._solver.step(self.t, method="normal")
            self._looked = False
        found = self._solver.step(self._end, method="onestep", tstop=self._end)
        self.t_old, self.t, self.y = self.t, float(found.t), np.array(found.y, dtype=float).ravel()
        self.h_abs = self.t - self.t_old
        message = self._check(found)
        if message is None and not np.isfinite(self.y).all():
            message = "the motion is not finite"
        self._small = self._small + 1 if self.h_abs <= SMALLEST * max(abs(self.t), 1e-3) else 0
        if message is None and self._small > PATIENCE:
            message = "the step has become too small"
        if message is not None:
            self.status = "failed"
        elif self.t >= self._end:
            self.status = "finished"
        return message

    def _check(self, found: Any) -> str | None:
        return None if found.success else str(found.message)

    def dense_output(self) -> Callable[[Any], Array]:
        """The formula's own polynomial over the last step; it holds until the next one."""
        newest = self.t

        def at(times: Any) -> Array:
            assert self.t == newest
            self._looked = self._looked or bool(np.any(np.ravel(times) != newest))
            flat = [
                self.y
                if t == newest
                else np.array(self._solver.step(float(t), method="normal").y, dtype=float).ravel()
                for t in np.ravel(times)
            ]
            return np.stack(flat, axis=-1).reshape(len(self.y), *np.shape(times))

        return at


def _fills(function: Callable[..., Array], count: int) -> Callable[..., None]:
    if count == 2:

        def derivative(t: float, y: Array, out: Array) -> None:
            out[:] = function(t, y.copy())

        return derivative

    def residual(t: float, y: Array, yp: Array, out: Array) -> None:
        out[:] = function(t, y.copy(), yp.copy())

    return residual


def _fills_cvode(jacobian: Callable[..., Array] | None) -> Any:
    if jacobian is None:
        return None

    def fill(t: float, y: Array, yp: Array, out: Array) -> None:
        out[:] = jacobian(t, y.copy())

    return fill


def _fills_ida(jacobian: Callable[..., Array] | None) -> Any:
    if jacobian is None:
        return None

    def fill(t: float, y: Array, yp: Array, res: Array, c: float, out: Array) -> None:
        out[:] = jacobian(t, y.copy(), yp.copy(), c)

    return fill


REACH = 1.5  # rad; T is singular at 2 pi
RENEWED = 50  # steps: making a solver anew costs less than one of them
SHARE = 1e-3
"""of the relative tolerance, on the size of a coordinate: so much may its displacement over a step be off"""
ADAPTIVE = {
    "dop853": ("DOP853", 8, "smooth motion to high accuracy"),
    "rk45": ("RK45", 5, "smooth motion to moderate accuracy"),
    "radau": ("Radau", 5, "stiff springs, dampers and controllers"),
    "bdf": ("BDF", 5, "stiff, large models, moderate accuracy"),
    "cvode": ("CVODE", 5, "stiff; SUNDIALS, extra `stiff`"),
    "cvode_adams": ("CVODE", 12, "smooth motion whose forces are costly; SUNDIALS, extra `stiff`"),
    "ida": ("IDA", 5, "stiff, mass matrices of bad condition; SUNDIALS, extra `stiff`"),
}
SHORTEST = 1e-14
"""of the time, or of what is left of it: steps that are not made shorter"""
MOST_TRIED = 10
"""times, half as far away each time, before a singular place is given up"""
IMPLICIT = ("radau", "bdf", "cvode", "cvode_adams", "ida")
MULTISTEP = ("bdf", *SOLVERS)


@dataclass(frozen=True)
class DenseStep:
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
    approach: Approach | None = None
    """to a singular place of loops and couplings"""


@dataclass
class Counters:
    """What an adaptive run took."""

    steps: int = 0
    step: float | None = None
    within_step: bool = False
    """whether a solver evaluates the dynamics at trials, not where its chart starts"""
    trouble: str = ""
    """why the dynamics could not be evaluated at a trial within a step"""
    trial: tuple[list[float], Array] | None = None
    """its time and state"""
    approach: Approach | None = None
    passages: list[float] = field(default_factory=list)
    """times at which singular places were passed"""
    tried: int = 0
    """how often in vain to pass the one that is ahead"""

    def at_a_trial(
        self, t: float, given: tuple[Array, ...], found: Callable[[], Array], shape: tuple[int, ...]
    ) -> Array:
        """What is found there; NaN where the dynamics cannot be evaluated, so that the solver makes its step shorter."""
        if not all(np.isfinite(x).all() for x in given):
            return np.full(shape, np.nan)
        try:
            return found()
        except (NumericalError, ArgumentError) as error:
            told = isinstance(error, NumericalError | NotClosed)
            told = told or str(error).startswith("constrained_dynamics:")
            if not (told and self.within_step):
                raise
            self.trouble = f"t = {t:.9g} s: {error}"
            self.trial = ([t], given[0].copy())
            return np.full(shape, np.nan)


def coordinate_sizes(model: Model, q: Array) -> Array:
    """(nv,): the sizes of coordinates, on which their displacements are seen: an orbit's radius, or turns of a shaft."""
    found = np.zeros(model.nv)
    for o in model.space:
        if o.type.is_vector_space:
            found[o.v] = np.abs(q[o.q])
            continue
        lengths = [x for x, (_, unit) in zip(q[o.q], o.type.coordinates, strict=True) if unit == "m"]
        moving = [unit == "m/s" for _, unit in o.type.speeds]
        found[o.v] = np.where(moving, float(np.linalg.norm(lengths)), 0.0)
    return found


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
) -> Iterator[DenseStep]:
    """The motion from t to `end`, step by step; `born` is told of every chart.

    On a surface of constraints every step ends on it; a multistep formula, which would lose its past, goes back there
    when it is further off than the tolerance.
    """
    model = flow.system.model
    nv, rate = model.nv, chart_kernel(model, "chart_rate")
    turning = model.space.curved & np.array([unit != "m/s" for unit in model.space.speed_units], dtype=bool)
    came: DenseStep | None = None
    while t < end:
        base = q
        approach = flow.approach(counters.approach, t, q, v)
        counters.approach = approach
        near = approach is not None and approach.near
        soon = approach is not None and approach.ahead < chart_equation.FORESEEN * (counters.step or np.inf)
        flow.begin(q, v)
        if not soon:  # a passage follows the step that came
            born(Birth(t, q, v, z, counters.step, approach))

        def derivative(t: float, y: Array, base: Array = base, near: bool = near) -> Array:
            def slope() -> Array:
                known = None if near or flow.rates is None else flow.rates(t, y)
                if known is not None:
                    return known
                e, v = y[:nv], y[nv : 2 * nv]
                q = model.integrate(base, e)
                if near:
                    q, v = flow.project(t, q, v)
                a, r = flow.slope(t, q, v, y[2 * nv :])
                return np.concatenate([rate(e, v), a, r])

            return counters.at_a_trial(t, (y,), slope, y.shape)

        counters.within_step, counters.trouble, counters.trial = False, "", None
        y0 = np.concatenate([np.zeros(nv), v, z])
        atol = np.full(len(y0), absolute)
        atol[:nv] = np.maximum(absolute, SHARE * tolerance * coordinate_sizes(model, base))
        longest_now = longest
        if soon and approach is not None:
            passed = _passage(derivative, flow, base, t, y0, end, approach, came, tolerance, atol)
            if passed is not None:
                piece = _piece(flow, base, passed, t, t + passed.length)
                counters.passages += _places(flow, piece, approach)
                counters.steps += 1
                counters.tried = 0
                yield piece
                t, (q, v), z = (
                    piece.end,
                    flow.project(piece.end, *piece.at(piece.end)),
                    piece.memory(piece.end),
                )
                continue
            counters.tried += 1
            if counters.tried > MOST_TRIED:
                raise NumericalError(
                    f"simulate: loops and couplings lose rank at about t = {t + approach.ahead:.9g} s, and the motion "
                    "cannot be followed through this singular place: more than one motion may go on from there; change the "
                    "start or the loads a little, or stop before it (an event)"
                )
            longest_now = min(longest, approach.ahead / 2)
        options: dict[str, Any] = {"rtol": tolerance, "atol": atol, "max_step": longest_now}
        if counters.step is not None:
            options["first_step"] = min(counters.step, end - t, longest_now)
        solver = _solver(name, flow, base, t, y0, end, derivative, options, counters)
        counters.within_step = True
        made = 0
        while solver.status == "running":
            try:
                message = solver.step()
            except ValueError as error:  # of SciPy's linear algebra, where a trial has no derivatives
                if not counters.trouble:
                    raise
                if solver.h_abs > SHORTEST * max(abs(solver.t), end - solver.t):
                    counters.step = solver.h_abs / 4
                    break  # from here on anew
                solver.status, message = "failed", str(error)
            if solver.status == "failed":
                fault = _fault(flow, base, solver, counters)
                if fault:
                    raise NumericalError(f"simulate: {name} cannot go on at t = {solver.t:.9g} s: {fault}")
                last = f" (last, at {counters.trouble})" if counters.trouble else ""
                far = overbent(model, model.integrate(base, solver.y[:nv]), flow.system.parameters or {})
                if far and far not in last:
                    last += f"; {far}"
                stiff = (
                    "singular there" if name in IMPLICIT else "singular or stiff there (integrator='radau')"
                )
                raise NumericalError(
                    f"simulate: {name} cannot go on at t = {solver.t:.9g} s: {str(message).rstrip('.').lower()}{last}; "
                    f"the motion may be {stiff}, or the tolerance too small"
                )
            counters.steps += 1
            made += 1
            if solver.status == "running" or solver.h_abs > (counters.step or 0.0):
                counters.step = (
                    solver.h_abs
                )  # what it would do next; the last step of a span may be cut short
            piece = _piece(flow, base, solver.dense_output(), solver.t_old, solver.t)
            yield piece
            if np.any(np.abs(solver.y[:nv][turning]) > REACH):
                break
            if name not in MULTISTEP and (made == RENEWED or (flow.on_surface and approach is not None)):
                break
            if name not in MULTISTEP and flow.on_surface:
                _put_back(solver, flow, base)
                continue
            if flow.on_surface:
                q = model.integrate(base, solver.y[:nv])
                counters.approach = flow.approach(
                    counters.approach, solver.t, q, solver.y[nv : 2 * nv].copy()
                )
                found = counters.approach
                soon = found is not None and found.ahead < chart_equation.FORESEEN * solver.h_abs
                if soon or flow.distance(q) > tolerance:
                    break
        came = piece if made else came
        y = solver.y.copy()
        t, q, v, z = solver.t, model.integrate(base, y[:nv]), y[nv : 2 * nv].copy(), y[2 * nv :].copy()
        if flow.on_surface:
            q, v = flow.project(t, q, v)


def _fault(flow: Flow, base: Array, solver: Any, counters: Counters) -> str:
    """A law that gives no numbers, at the last trial or soon after the last step."""
    soon = solver.t + np.array([0.0, 1e-12, 1e-9, 1e-6, 1e-3]) * max(1e-3, abs(solver.t))
    nv, found = flow.system.model.nv, ""
    for times, y in ((soon.tolist(), solver.y), *([] if counters.trial is None else [counters.trial])):
        q = flow.system.model.integrate(base, y[:nv])
        found = found or blame(flow.system, times, q, y[nv : 2 * nv].copy(), flow.x(y[2 * nv :]))
    return found


def _put_back(solver: Any, flow: Flow, base: Array) -> None:
    """Have one of SciPy's one-step schemes go on from the surface of constraints, in the same chart."""
    model, y = flow.system.model, solver.y
    nv = model.nv
    q, v = flow.project(solver.t, model.integrate(base, y[:nv]), y[nv : 2 * nv].copy())
    solver.y = np.concatenate([model.difference(base, q), v, y[2 * nv :]])
    solver.f = solver.fun(solver.t, solver.y)


def _piece(flow: Flow, base: Array, dense: Callable[[Any], Array], start: float, end: float) -> DenseStep:
    model = flow.system.model
    nv = model.nv

    def at(times: Any) -> tuple[Array, Array]:
        y = np.moveaxis(dense(np.asarray(times)), 0, -1)
        return model.integrate(base, np.ascontiguousarray(y[..., :nv])), y[..., nv : 2 * nv]

    def memory(times: Any) -> Array:
        if not flow.size:
            return np.zeros((*np.shape(times), 0))
        return np.moveaxis(dense(np.asarray(times)), 0, -1)[..., 2 * nv :]

    return DenseStep(start, end, at, memory)


def _places(flow: Flow, piece: DenseStep, approach: Approach) -> list[float]:
    """The time at which the constraints lose rank within a piece; none where they only came near to it."""
    times = np.linspace(piece.start, piece.end, 18)[1:-1]
    found = [flow.approach(approach, float(t), *piece.at(float(t))) for t in times]
    values = np.array([np.inf if x is None else x.values[1] for x in found])
    return (
        [float(times[np.argmin(values)])] if np.min(values) < chart_equation.LOST * approach.values[1] else []
    )


def _passage(
    derivative: Callable[[float, Array], Array],
    flow: Flow,
    base: Array,
    t: float,
    y: Array,
    end: float,
    approach: Approach,
    came: DenseStep | None,
    tolerance: float,
    absolute: Array,
) -> chart_equation.Passage | None:
    """Through the singular place ahead, if it is before `end`; from where the last step points to."""
    if t + approach.ahead >= end:
        return None
    model = flow.system.model

    def guess(times: Array) -> Array:
        assert came is not None
        q, v = came.at(times)
        e = np.array([model.difference(base, x) for x in q])
        return np.hstack([e, v, came.memory(times)])

    def on_surface(t: float, y: Array) -> Array:
        return derivative(t, y, near=True)  # type: ignore[call-arg]

    return chart_equation.across(
        on_surface,
        t,
        y,
        min(2 * approach.ahead, end - t),
        None if came is None else guess,
        lambda y: absolute + tolerance * np.abs(y),
    )


def _solver(
    name: str,
    flow: Flow,
    base: Array,
    t: float,
    y: Array,
    end: float,
    derivative: Callable[[float, Array], Array],
    options: dict[str, Any],
    counters: Counters,
) -> Any:
    exact: Callable[..., Array] | None = None
    if name in IMPLICIT and flow.exact and name != "ida":
        exact = _jacobian(flow, base, counters)
    if name not in SOLVERS:
        more = {} if exact is None else {"jac": exact}
        return getattr(scipy.integrate, ADAPTIVE[name][0])(derivative, t, y, end, **options, **more)
    residual = None
    if name == "ida":
        residual, exact = _balance(flow, base, counters)
    return Sundials(name, t, y, end, derivative=derivative, residual=residual, jacobian=exact, **options)


def _jacobian(flow: Flow, base: Array, counters: Counters) -> Callable[[float, Array], Array]:
    model = flow.system.model
    kernel, nv = chart_kernel(model, "chart_derivatives"), model.nv

    def jacobian(t: float, y: Array) -> Array:
        """(2)"""

        def exactly() -> Array:
            e, v, z = y[:nv].copy(), y[nv : 2 * nv].copy(), y[2 * nv :].copy()
            rate_e, rate_v, J = kernel(e, v)
            found = np.vstack(flow.slopes(t, model.integrate(base, e), v, z))
            found[:, :nv] = found[:, :nv] @ J
            return np.vstack([np.hstack([rate_e, rate_v, np.zeros((nv, len(z)))]), found])

        return counters.at_a_trial(t, (y,), exactly, (len(y), len(y)))

    return jacobian


def _balance(
    flow: Flow, base: Array, counters: Counters
) -> tuple[Callable[[float, Array, Array], Array], Callable[..., Array] | None]:
    """(1) and (2) of `alembert.simulate.adaptive`."""
    model = flow.system.model
    nv, rate = model.nv, chart_kernel(model, "chart_rate")
    derivatives = chart_kernel(model, "chart_derivatives")

    def residual(t: float, y: Array, yp: Array) -> Array:
        def found() -> Array:
            e, v, z = y[:nv].copy(), y[nv : 2 * nv].copy(), y[2 * nv :].copy()
            q, a = model.integrate(base, e), yp[nv : 2 * nv].copy()
            parts = [yp[:nv] - rate(e, v), flow.balance(t, q, v, z, a)]
            if len(z):
                parts.append(yp[2 * nv :] - flow.slope(t, q, v, z)[1])
            return np.concatenate(parts)

        return counters.at_a_trial(t, (y, yp), found, y.shape)

    if not flow.exact:
        return residual, None

    def jacobian(t: float, y: Array, yp: Array, c: float) -> Array:
        def exactly() -> Array:
            e, v, z = y[:nv].copy(), y[nv : 2 * nv].copy(), y[2 * nv :].copy()
            rate_e, rate_v, J = derivatives(e, v)
            f, f_a, rows = flow.balance_slopes(t, model.integrate(base, e), v, z, yp[nv : 2 * nv].copy())
            found = np.vstack([f, -rows])
            found[:, :nv] = found[:, :nv] @ J
            found[:nv, nv : 2 * nv] += c * f_a
            found[nv:, 2 * nv :] += c * np.eye(len(z))
            return np.vstack([np.hstack([c * np.eye(nv) - rate_e, -rate_v, np.zeros((nv, len(z)))]), found])

        return counters.at_a_trial(t, (y, yp), exactly, (len(y), len(y)))

    return residual, jacobian
