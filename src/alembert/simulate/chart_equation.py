"""The equations of motion in a chart of the configuration manifold, as schemes with error control see them.

With y = (e, v, z), where q = integrate(q0, e) (see `alembert.simulate.step_code`), quaternions are unit wherever they are
looked at; z is what drives remember, and behind it the states x of controllers:

    e' = T(e) v,    v' = a(t, q, v, z),    z' = r(t, q, v, z)                       (1)

and for implicit schemes the exact Jacobian, with the derivatives of forward dynamics and J = T^-1,

    [ d(T v)/de   T     0   ]
    [ a_q J       a_v   a_z ]                                                       (2)
    [ r_q J       r_v   r_z ]

(1) is one kernel where an evaluation in Python is many calls: prescribed motion together with closed loops, and forces that
read reactions. It is traced as the stages of fixed steps are, with a minimal set of constraints that is chosen where a chart
starts; so is the way back to the surface of constraints. Where that set does not serve, the answer is NaN, and Python's own
evaluation is asked: it chooses another set, or says what is wrong. There, the drives of prescribed motion give what is
missing in the balance of their joints: with the tree's inverse dynamics r(q, v, a), the efforts u of force elements and the
forces f of the rows G,

    w = r(q, v, a) - u - G^T f                                                      (3)

Through singular places of loops and couplings, where rows of their Jacobian become dependent on the way.

A mechanism that goes through such a place (all bars of a four-bar in line, a Sarrus linkage that is flat) has a smooth
motion: its speeds are continuous, and choose one of the branches that meet there. But its accelerations are found from rows
that vanish, so that errors of a state off the surface grow like 1/c, where the *clearance* c, the smallest scaled pivot of
the rows (`alembert.constraints.saddle`), is the distance from the place. A scheme that evaluates them there loses energy, or
ends up on another branch. Therefore

- c is looked at from step to step, and the time at which it will vanish is foreseen (`Approach`);
- near the place all states at which accelerations are evaluated go back to the surface first: then off by d, they are wrong
  by d^2/c instead of d/c;
- the place itself is passed by one step of Gauss collocation of order 16, symmetric about it (`across`): the places where
  accelerations are evaluated are some way off on both sides, and follow the motion that came. A step of order 12 on the same
  window must agree to the tolerance; otherwise the run goes nearer, and tries a shorter window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial import legendre

from alembert.constraints.saddle import Choice
from alembert.engine.codegen import KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.lowering.plan import Plan
from alembert.simulate.actuators import Lags, Ramp
from alembert.simulate.elements import arguments
from alembert.simulate.step_code import Layout, StepModel, Tracer

if TYPE_CHECKING:
    from alembert.simulate.simulation import Simulation

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
        self.distance = system.surface.distance
        self.rates = ChartRates(system, effort, within) if lags is None and compiles(system) else None
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
        choice = self.system.surface.choose(q, v)
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

        tau = with_lags(by_u @ u, by_z)
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
        required = system.free_roots.efforts(q, v, a, wrenches=given, parameters=system.parameters)
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


# --- in machine code -----------------------------------------------------------------------------------------------


def compiles(system: Simulation) -> bool:
    """Whether the right-hand side is made of symbols, and worth a kernel of its own."""
    slow = system.prescribes or system.loads.reading is not None
    return slow and system.constrained and not (system.python or len(system.feedback.breaks))


def chart_layout(plant: StepModel) -> Layout:
    model, states = plant.model, {"x": plant.states} if plant.states else {}
    return Layout(q=model.nq, e=model.nv, v=model.nv, **states, **plant.rows)


def rates_kernel(plant: StepModel) -> Kernel:
    """`state, start, effort, [wrench], [parameters]` -> rates of (e, v, x), the state with its prescribed part, efforts
    (all but those of drives of prescribed motion), forces of the rows, and efforts that read these.

    `start` is the time.
    """
    nv, rows = plant.model.nv, plant.model.constrained_compute.rows.count
    sizes = {"rate": 2 * nv + plant.states, "q_at": plant.model.nq, "v_at": nv, "total": nv, "forces": rows}
    if plant.reading is not None:
        sizes["load"] = nv
    return _kernel(plant, "chart_rates", sizes, Tracer.chart_rates)


def settling_kernel(plant: StepModel) -> Kernel:
    """`state, start, effort, [wrench], [parameters]` -> done, what is left, and q, v as `Tracer.settled` has them."""
    return _kernel(plant, "settled", {"back": 2 + plant.model.nq + plant.model.nv}, Tracer.settled)


def _kernel(plant: StepModel, name: str, sizes: dict[str, int], trace: Callable[[Tracer], None]) -> Kernel:
    layout = chart_layout(plant)
    given = [Argument("state", (layout.size,)), Argument("start", (1,)), *plant.arguments]

    def build() -> KernelSource:
        tracer = Tracer(plant, layout)
        trace(tracer)
        inside = {name: size for name, size in tracer.temporaries.items() if name not in sizes}
        return Plan({a.name: a.size for a in given}, sizes, inside, tracer.body, tracer.sources)

    key = f"simulate:{plant.key}:{name}"
    return plant.model.compute.kept(
        key, lambda: Kernel("simulate", given, arguments(sizes), key=key, build=build)
    )


class ChartRates:
    """The rates under efforts that are held, in the chart that was begun last."""

    def __init__(self, system: Simulation, effort: Array, within: float) -> None:
        self.system, self.effort, self._within = system, effort, within
        self._rates, self._settling, self._layout = system.chart_code
        self._last = [system.parameter_array()] if system.model.parameters else []
        if system.loads.has_wrenches:  # constant, or held: no law reads the state
            at = system.model.neutral(), np.zeros(system.model.nv)
            self._last.insert(0, system.loads.wrench_array(within, *at, system.parameters))
        self._chart = np.zeros(self._layout.size)

    def begin(self, q: Array, v: Array) -> None:
        """A chart about q."""
        chosen = self.system.surface.chosen(q, v, unique=self.system.loads.reading is not None)
        self._chart = self._layout.numeric(0, 0, q=q, chosen=chosen)

    def __call__(self, t: float, y: Array) -> Array | None:
        """The rates of y = (e, v, x); None where they are not known."""
        state, start = self._chart.copy(), self._layout["e"].start
        state[start : start + len(y)] = y
        rate: Array = self._rates(state, np.array([t]), self.effort, *self._last)[0]
        return rate if np.isfinite(rate).all() else None

    def settled(self, t: float, q: Array, v: Array) -> tuple[Array, Array] | None:
        """A state with its prescribed part put in place, and loops closed around it; None where that is not known."""
        state, layout = self._chart.copy(), self._layout
        state[layout["q"]], state[layout["v"]] = q, v
        back: Array = self._settling(state, np.array([t]), self.effort, *self._last)
        if not (back[0] and np.isfinite(back).all()):
            return None
        return back[2 : 2 + len(q)].copy(), back[2 + len(q) :].copy()

    def efforts(self, times: Array, q: Array, v: Array, x: Array) -> Array | None:
        """(N, nv): all that drives, controllers and tables give at times (N,); None where it is not known."""
        system, loads = self.system, self.system.loads
        given = {"q": q, "v": v, "chosen": self._chart[self._layout["chosen"]]}
        if x.shape[-1]:
            given["x"] = x
        found = self._rates(self._layout.numeric(0, 0, **given), times[:, None], self.effort, *self._last)
        rate, q, v, total, f, *load = found
        if not np.isfinite(rate).all():
            return None
        acting = sum(load, np.zeros_like(total))
        if loads.elements is not None:
            kept, other, _, _ = loads.elements_at(times[:, None], q, v, along_time=True)
            acting = acting + kept + other
        if not system.prescribes:
            return total - acting
        nv, rows, p = system.model.nv, system.model.constrained_compute.rows, system.prescribed
        a = np.ascontiguousarray(rate[:, nv : 2 * nv])
        wrenches = loads.wrenches_at(float(times[0]), q[0], v[0], self._within)
        r = rows.primary.inverse_dynamics(q, v, a, wrenches=wrenches, parameters=system.parameters)
        G = rows.terms(q, v, *self._last[-1:] * bool(system.model.parameters))[1]
        return np.where(p, r - np.einsum("bi,bij->bj", f, G), total) - acting  # (3)


# --- singular places --------------------------------------------------------------------------------------------


Derivative = Callable[[float, Array], Array]
STAGES, FEWER = 8, 6
"""even: none of them in the middle"""
CLOSE = 0.1
"""of the best clearance so far: where it is less, states are taken to the surface before they are looked at"""
LOST = 0.15
"""of the clearance where a passage began: where it is less in between, at one of 16 places, rank was lost"""
FORESEEN = 1.5
"""in lengths of the coming step: so far ahead the vanishing of the clearance matters"""
ITERATIONS, MOST_STALLED = 60, 6
NOISE, MOST_NOISE = 10.0, 1e-9
"""times what rounding leaves of the iteration: differences that count; and the most that it may leave, relative and in SI"""


@dataclass(frozen=True)
class Approach:
    """What is known of the clearance: of which constraints, at full rank; the best, the last two, and their times."""

    active: tuple[str, ...]
    rank: int
    best: float
    times: tuple[float, float]
    values: tuple[float, float]

    @classmethod
    def after(cls, before: Approach | None, t: float, choice: Choice, active: tuple[str, ...]) -> Approach:
        if before is None or before.active != active or choice.rank > before.rank:
            return cls(active, choice.rank, choice.margin, (-np.inf, t), (np.inf, choice.margin))
        c = choice.margin if choice.rank == before.rank else 0.0
        if t <= before.times[1]:
            return before
        times, values = (before.times[1], t), (before.values[1], c)
        return cls(active, before.rank, max(before.best, c), times, values)

    @property
    def near(self) -> bool:
        return self.values[1] < CLOSE * self.best

    @property
    def ahead(self) -> float:
        """How long it takes until the clearance vanishes, if it goes on as it did; infinite where it grows."""
        (t0, t1), (c0, c1) = self.times, self.values
        if not np.isfinite(t0) or c1 >= c0 or c1 > self.best / 2:
            return np.inf
        return c1 * (t1 - t0) / (c0 - c1)


@dataclass(frozen=True)
class Passage:
    """A step of collocation: its state at the end, and in between."""

    start: float
    length: float
    y: Array
    slopes: Array
    end: Array
    noise: Array
    """what rounding leaves, of each entry"""

    def __call__(self, times: Any) -> Array:
        """(size, ...) as dense output of SciPy has it."""
        where = (np.asarray(times, dtype=float) - self.start) / self.length
        found = self.y + self.length * (_integrals(where.ravel(), len(self.slopes)) @ self.slopes)
        return np.moveaxis(found.reshape(*where.shape, len(self.y)), -1, 0)


def across(
    derivative: Derivative,
    t: float,
    y: Array,
    length: float,
    guess: Callable[[Array], Array] | None,
    scale: Callable[[Array], Array],
    rounding: float = MOST_NOISE,
) -> Passage | None:
    """One step over the window, from `guess` (times to states (..., size)); None where it does not come out right.

    `scale` gives the error that is allowed of a state; `rounding`, relative and in SI, may be more than that.
    """
    c = _nodes(STAGES)
    states = y + length * c[:, None] * derivative(t, y) if guess is None else guess(t + length * c)
    found = _collocated(derivative, t, y, length, states, scale, rounding)
    if found is None:
        return None
    other = _collocated(derivative, t, y, length, found(t + length * _nodes(FEWER)).T, scale, rounding)
    if other is None:
        return None
    allowed = np.maximum(scale(found.end), NOISE * np.maximum(found.noise, other.noise))
    return found if np.all(np.abs(other.end - found.end) <= allowed) else None


def _collocated(
    derivative: Derivative,
    t: float,
    y: Array,
    length: float,
    states: Array,
    scale: Callable[[Array], Array],
    rounding: float,
) -> Passage | None:
    """By iteration from the states at the nodes, until only rounding is left; None where it does not converge."""
    count = len(states)
    times, A = t + length * _nodes(count), _integrals(_nodes(count), count)
    least, stalled = np.inf, 0
    for _ in range(ITERATIONS):
        slopes = np.array([derivative(float(x), z) for x, z in zip(times, states, strict=True)])
        if not np.isfinite(slopes).all():
            return None
        following = y + length * A @ slopes
        change = np.max(np.abs(following - states), axis=0)
        size = float(np.max(change / scale(following[-1])))
        states = following
        stalled = 0 if size < least / 2 else stalled + 1
        if size < 1e-2 or (stalled > 2 and np.all(change < rounding * (1 + np.abs(following[-1])))):
            end = y + length * (_integrals(np.ones(1), count) @ slopes)[0]
            return Passage(t, length, y, slopes, end, change)
        if stalled > MOST_STALLED:
            return None
        least = min(least, size)
    return None


@cache
def _nodes(count: int) -> Array:
    """Gauss points of (0, 1)."""
    return (legendre.leggauss(count)[0] + 1) / 2


@cache
def _primitives(count: int) -> Array:
    """Coefficients of the integrals, from 0 on, of the polynomials that are 1 at one node and 0 at the others."""
    values = legendre.legvander(2 * _nodes(count) - 1, count - 1)
    return legendre.legint(np.linalg.inv(values), lbnd=-1) / 2


def _integrals(where: Array, count: int) -> Array:
    """(len(where), count): weights of slopes at the nodes in the integral from 0 to each place of (0, 1)."""
    return legendre.legval(2 * where - 1, _primitives(count)).T
