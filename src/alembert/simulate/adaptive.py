"""Schemes with error control, in charts of the configuration manifold.

SciPy's integrators see y = (e, v, z) with q = integrate(q0, e) (see `alembert.simulate.stepping`), so that
quaternions are unit wherever they are looked at; z is what drives remember, and behind it the states x of controllers:

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

from alembert.constraints.system import NotClosed
from alembert.errors import ArgumentError, NumericalError
from alembert.model import Model
from alembert.simulate import chart_rates, passages
from alembert.simulate.actuators import Lags, Ramp
from alembert.simulate.chart_rates import ChartRates
from alembert.simulate.passages import Approach
from alembert.simulate.simulation import Simulation
from alembert.simulate.stepping import chart_kernel
from alembert.simulate.sundials import SOLVERS, Sundials

Array = np.ndarray


class Flow:
    """(1) under efforts that are held.

    `effort` is all that is held; with `lags`, `command` is what sampled controllers ask the drives for, and `effort` the
    rest. Tables that hold are read at the time `within` the span.
    """

    def __init__(
        self,
        system: Simulation,
        effort: Array,
        within: float,
        *,
        lags: Lags | None = None,
        command: Array | None = None,
        ramp: Ramp | None = None,
    ) -> None:
        self.system, self.effort, self.within = system, effort, within
        self.lags, self.command, self.ramp = lags, command, ramp
        self.lag_size = 0 if lags is None else lags.size
        self.size = self.lag_size + system.feedback.size
        self.exact = not (system.laws or system.loads.wrench_laws)
        """whether the Jacobian is known"""
        self.on_surface = system.constrained and system.stabilisation.method == "projection"
        self.distance = system.distance
        self.rates = (
            ChartRates(system, effort, within) if lags is None and chart_rates.compiles(system) else None
        )
        """the same in machine code, where that is made"""

    def begin(self, q: Array, v: Array) -> None:
        """A chart about q."""
        if self.rates is not None:
            self.rates.begin(q, v)

    def project(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """A state with its prescribed part put in place, and loops closed around it."""
        found = None if self.rates is None else self.rates.settled(t, q, v)
        return self.system.settled(t, q, v) if found is None else found

    def approach(self, before: Approach | None, t: float, q: Array, v: Array) -> Approach | None:
        """To a singular place of the constraints, whose minimal set is chosen here; None where none is looked for."""
        choice = self.system.choose(q, v)
        if choice is None or not self.on_surface or self.system.prescribes:
            return None
        return Approach.after(before, t, choice, self.system.active)

    def x(self, z: Array) -> Array:
        """The states of controllers."""
        return z[..., self.lag_size :]

    def asked(self, t: float, q: Array, v: Array, z: Array) -> Array:
        """u."""
        assert self.command is not None
        return self.command + self.system.command(t, q, v, self.x(z))

    def given(self, t: float, z: Array, u: Array) -> Array:
        assert self.lags is not None
        found = self.lags.given(z[..., : self.lag_size], u)
        if self.ramp is not None:
            found[..., self.ramp.where] = self.ramp.at(t)
        return np.where(self.system.prescribed, 0.0, found)

    def _effort(self, t: float, q: Array, v: Array, z: Array) -> Array:
        """Efforts as numbers, those of continuous controllers among them if there are lags."""
        return self.effort if self.lags is None else self.effort + self.given(t, z, self.asked(t, q, v, z))

    def efforts(self, t: float, q: Array, v: Array, z: Array) -> Array:
        """All that drives, controllers and tables give, also on joints that follow a motion."""
        system = self.system
        given = self._effort(t, q, v, z) + system.loads.tables.fed_efforts(np.array([t]))[0]
        if self.lags is None:
            given = given + system.command(t, q, v, self.x(z))
        if system.prescribes:
            return np.where(system.prescribed, system.required_efforts(t, q, v, given), given)
        return given

    def efforts_along(self, times: Array, q: Array, v: Array, z: Array) -> Array | None:
        """(N, nv): the same at times (N,), where machine code knows them."""
        return None if self.rates is None else self.rates.efforts(times, q, v, self.x(z))

    def slope(self, t: float, q: Array, v: Array, z: Array) -> tuple[Array, Array]:
        """v' and z'."""
        system, x = self.system, self.x(z)
        if self.lags is None:
            a = system.point(t, q, v, self.effort, x=x, within=self.within).a
            return a, system.rates(t, q, v, x)
        u = self.asked(t, q, v, z)
        a = system.point(t, q, v, self.effort + self.given(t, z, u), held=True, within=self.within).a
        return a, np.concatenate([self.lags.rates(z[: self.lag_size], u), system.rates(t, q, v, x)])

    def _effort_slopes(self, t: float, q: Array, v: Array, z: Array) -> tuple[Array, Array]:
        """d tau/d(q, v, z) of what does not read reactions; and the rows of z' with respect to the same."""
        system, nv, x = self.system, self.system.model.nv, self.x(z)
        if self.lags is None:
            return system.slopes(t, q, v, x)
        u, rates = system.controller_slopes(t, q, v, x)
        by_u, by_z, rate_u, rate_z = self.lags.slopes(z[: self.lag_size], self.asked(t, q, v, z))
        if self.ramp is not None:
            by_u[self.ramp.where] = 0.0

        def with_lags(M: Array, between: Array) -> Array:
            """Columns of q and v, of the lags, of x."""
            return np.hstack([M[:, : 2 * nv], between, M[:, 2 * nv :]])

        tau = with_lags(by_u[:, None] * u, by_z)
        if system.loads.elements is not None:
            s_q, s_v = system.loads.slopes(t, q, v)
            tau[:, :nv] += s_q
            tau[:, nv : 2 * nv] += s_v
        rows = [with_lags(rate_u @ u, rate_z), with_lags(rates, np.zeros((len(rates), self.lag_size)))]
        return tau, np.vstack(rows)

    def _total(self, t: float, q: Array, v: Array, z: Array) -> Array:
        given = self._effort(t, q, v, z)
        return self.system.all_efforts(t, q, v, given, x=self.x(z), held=self.lags is not None)

    def slopes(self, t: float, q: Array, v: Array, z: Array) -> tuple[Array, Array]:
        """Derivatives of v' (nv, 2 nv + size) and z' (size, 2 nv + size) with respect to q (tangent), v and z."""
        system = self.system
        q, v = system.imposed(t, q, v)
        tau, rows = self._effort_slopes(t, q, v, z)
        found = system.acceleration_slopes(t, q, v, self._total(t, q, v, z), tau, self.within)
        if system.prescribes:  # whatever the state says of these, it is replaced
            rows = np.where(np.concatenate([*2 * [system.prescribed], np.zeros(self.size, bool)]), 0.0, rows)
        return found, rows

    def balance(self, t: float, q: Array, v: Array, z: Array, a: Array) -> Array:
        """What is missing in the balance of efforts with accelerations a."""
        system = self.system
        given = system.loads.wrenches_at(t, q, v, self.within)
        required = system.flight.efforts(q, v, a, wrenches=given, parameters=system.parameters)
        return required - self._total(t, q, v, z)

    def balance_slopes(self, t: float, q: Array, v: Array, z: Array, a: Array) -> tuple[Array, Array, Array]:
        """Derivatives of the balance with respect to (q, v, z), and to a; and those of z' as in `slopes`."""
        system = self.system
        given = system.loads.wrenches_at(t, q, v, self.within)
        d = system.model.inverse_dynamics_derivatives(q, v, a, wrenches=given, parameters=system.parameters)
        tau, rows = self._effort_slopes(t, q, v, z)
        found = -tau
        found[:, : 2 * len(d.dq)] += np.hstack([d.dq, d.dv])
        return found, d.da, rows


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
        soon = approach is not None and approach.ahead < passages.FORESEEN * (counters.step or np.inf)
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

        counters.within_step, counters.trouble = False, ""
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
                last = f" (last, at {counters.trouble})" if counters.trouble else ""
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
                soon = found is not None and found.ahead < passages.FORESEEN * solver.h_abs
                if soon or flow.distance(q) > tolerance:
                    break
        came = piece if made else came
        y = solver.y.copy()
        t, q, v, z = solver.t, model.integrate(base, y[:nv]), y[nv : 2 * nv].copy(), y[2 * nv :].copy()
        if flow.on_surface:
            q, v = flow.project(t, q, v)


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
    return [float(times[np.argmin(values)])] if np.min(values) < passages.LOST * approach.values[1] else []


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
) -> passages.Passage | None:
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

    return passages.across(
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
        import scipy.integrate

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
    """(1) and (2) of `alembert.simulate.sundials`."""
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
