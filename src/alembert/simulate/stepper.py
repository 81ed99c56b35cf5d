"""One fixed-step scheme at work on a system: the machine's state, steps in machine code or in Python."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from alembert.constraints.results import GOOD
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError, NumericalError
from alembert.lowering.plan import RECORDS
from alembert.simulate import chart_equation, implicit_steps, schemes, step_code, variational
from alembert.simulate.controllers import AnswerError
from alembert.simulate.schedule import CompiledSchedule
from alembert.simulate.schemes import Now, Scheme, StatePoint
from alembert.simulate.simulation import Simulation
from alembert.simulate.step_code import Layout, SchemeManifold, StepModel

Array = np.ndarray


class Diverged(NumericalError):
    """The dynamics cannot be evaluated at a state within a step."""


class Stepper:
    """`held`: efforts come as numbers, constant over a step; otherwise symbolic controllers are part of the code.

    `sampling`: so are sensors and sampled laws.
    """

    def __init__(
        self,
        system: Simulation,
        name: str,
        h: float,
        start: float,
        *,
        held: bool,
        sampling: CompiledSchedule | None = None,
    ) -> None:
        self.system, self.name, self.h, self.start = system, name, h, start
        self.scheme: Scheme | None = schemes.SCHEMES.get(name)
        model = system.model
        closed = not system.constrained or system.compiles
        self.compiled = self.scheme is None or (
            closed and not system.prescribed_motions.functions and (held or not system.python)
        )
        self.held = held
        self.sampling = sampling if self.compiled and self.scheme is not None and not held else None
        self._parameters = [system.start_parameters()] if model.parameters else []

    @cached_property
    def plant(self) -> StepModel:
        plant = self.system.plant(held=self.held, sampling=self.sampling)
        return variational.with_numbers(plant) if self.name == "variational" else plant

    @cached_property
    def layout(self) -> Layout:
        if self.scheme is None:
            return self._module.layout(self.plant)
        return step_code.scheme_layout(self.plant, self.scheme, closed=self.compiled)

    @property
    def _module(self) -> Any:
        return variational if self.name == "variational" else implicit_steps

    @cached_property
    def _kernel(self) -> Kernel:
        if self.scheme is None:
            return self._module.stepping_kernel(self.plant)
        return step_code.stepping_kernel(self.plant, self.scheme)

    @cached_property
    def _starter(self) -> Kernel:
        assert self.scheme is not None
        return step_code.stepping_kernel(self.plant, self.scheme, starting=True)

    @property
    def past(self) -> int:
        return self.scheme.past if self.scheme is not None else 0

    def known(self, state: Array) -> int:
        """How many past points the state has."""
        return int(state[..., 1].flat[0])

    def number(self, state: Array) -> int:
        """How many steps have led to the state."""
        return int(state[..., 0].flat[0])

    def time(self, number: int) -> float:
        return self.start + number * self.h

    # --- states ------------------------------------------------------------------------------------------------

    def initial(
        self, q: Array, v: Array, number: int = 0, x: Array | None = None, t: float | None = None
    ) -> Array:
        """`x` are the states of controllers, at the start those that they start with; t is the time of the number."""
        system, t = self.system, self.time(number) if t is None else t
        q, v = system.imposed(t, q, v)
        x = system.start_states() if x is None else x
        parts = {"q": q, "v": v}
        if self.name == "variational":
            p = self.plant.tree.multiply_mass_matrix(q, v, parameters=system.parameters)
            parts = {"q": q, "p": p, "mean": v, "before": v}
        elif self.scheme is None:
            parts["a"] = parts["b"] = system.point(
                t, q, v, system.loads.efforts + system.loads.tables.held_efforts(t + self.h / 2), x=x
            ).a
        if "x" in self.layout:
            parts["x"] = x
        if "chosen" in self.layout:
            parts["chosen"] = system.surface.chosen(q, v)
        if self.sampling is not None:
            parts["remembered"] = self.sampling.start(system.batch)
        return self.layout.numeric(number, 0, **parts)

    def after_jump(self, state: Array, effort: Array, t: float) -> Array:
        """A state that goes on under other efforts than those that led to it: what schemes keep of these is renewed.

        Multistep schemes start anew. Accelerations are those under the new efforts, and their means jump by as much.
        """
        found = state.copy()
        if self.past:
            found[..., 1] = 0
        elif self.name == "generalised_alpha":
            a, b = self.layout["a"], self.layout["b"]
            new = self.system.point(
                t,
                self.q(state).copy(),
                self.v(state).copy(),
                effort,
                x=self.x(state),
                held=self.held,
                within=t + self.h / 2,
            ).a
            found[..., b] += new - found[..., a]
            found[..., a] = new
        return found

    def after_instant(self, state: Array, effort: Array, wrench: Array | None) -> Array:
        """A first state with what happens at its own instant done: at the end of a step of no length."""
        assert self.sampling is not None
        n = self.number(state)
        before = state.copy()
        before[..., 0] = n - 1
        out = np.empty((*state.shape[:-1], RECORDS, state.shape[-1]))
        kernel = self._starter if self.past else self._kernel
        self._run(kernel, self.given(before, self.time(n), 0.0, effort, wrench), out)
        found = state.copy()
        for part in ("remembered", "x") if self.system.pulses else ("remembered",):
            found[..., self.layout[part]] = out[..., 0, self.layout[part]]
        return found

    def motion(self, states: Array) -> Array:
        """All but what sensors and sampled laws remember, which need not be numbers (lost samples)."""
        return states if self.sampling is None else states[..., : self.layout["remembered"].start]

    def remembered(self, states: Array) -> Array:
        """What sensors and sampled laws remember."""
        return states[..., self.layout["remembered"]]

    def q(self, states: Array) -> Array:
        return states[..., self.layout["q"]]

    def x(self, states: Array) -> Array:
        """The states of continuous controllers."""
        if "x" not in self.layout:
            return np.zeros((*states.shape[:-1], 0))
        return states[..., self.layout["x"]]

    def v(self, states: Array, *, along_time: bool = False) -> Array:
        if self.name != "variational":
            return states[..., self.layout["v"]]
        parameters = self.system.parameters
        if parameters and along_time:
            parameters = {name: np.asarray(x, dtype=float)[..., None] for name, x in parameters.items()}
        model, q, p = self.system.model, self.q(states).copy(), states[..., self.layout["p"]].copy()
        v = self.plant.tree.solve_mass_matrix(q, p, parameters=parameters)
        if not self.system.constrained:
            return v
        good = np.isfinite(states).all(axis=-1)
        if good.all() and not parameters and model.constrained_compute.rows.projection is not None:
            y = self._closing(q, v, states[..., self.layout["chosen"]].copy())
            if np.isfinite(y).all():
                return v + y
        if good.all():
            return model.project(q, v, parameters=parameters).v
        v[~good] = np.nan
        if good.any() and not parameters:
            v[good] = model.project(q[good], v[good]).v
        return v

    def _closing(self, q: Array, v: Array, chosen: Array) -> Array:
        """y with G (v + y) = 0, by each state's own minimal set: its bits do not depend on others."""
        rows, zero = self.system.model.constrained_compute.rows, np.zeros(self.system.model.nv)
        projection = rows.projection
        assert projection is not None
        given = self._parameters  # the defaults: others go another way
        factor, _ = rows.tree(wrenches=False)(q, zero, zero, *given)
        _, y, status = projection(q, v, factor, chosen, np.ones(rows.count), *given)
        return np.where(status[..., :1] > GOOD * GOOD, y, np.nan)

    def middle(self, state: Array) -> tuple[float, Array, Array]:
        """Time, q and v expected in the middle of the next step, to second order in h."""
        return self._ahead(state, self.h / 2)

    def loaded_at(self, state: Array) -> tuple[float, Array, Array]:
        """The same where the next step takes what is given as numbers: in its middle, or where it balances forces."""
        return self._ahead(state, self.h if self.name == "generalised_alpha" else self.h / 2)

    def _ahead(self, state: Array, dt: float) -> tuple[float, Array, Array]:
        t, q = self.time(self.number(state)) + dt, self.q(state).copy()
        if self.name == "variational":
            mean, before = state[..., self.layout["mean"]], state[..., self.layout["before"]]
            v = 2 * mean - before
        else:
            v = self.v(state).copy()
            if "a" in self.layout:
                v += dt * state[..., self.layout["a"]]
        return t, self.system.model.integrate(q, dt * v), v

    # --- steps -------------------------------------------------------------------------------------------------

    def advance(
        self, state: Array, every: int, count: int, effort: Array, wrench: Array | None, out: Array
    ) -> None:
        """`count` records, `every` steps apart, into the first rows of `out` (..., RECORDS, size)."""
        starting = self.known(state) < self.past
        kernel = self._starter if starting else self._kernel
        self._run(kernel, self.given(state, self.start, self.h, effort, wrench, every, count), out)
        if self.system.constrained and not np.isfinite(self.motion(out[..., :count, :])).all():
            for row in range(count):
                for _ in range(every):
                    state = self._mended(kernel, state, effort, wrench)
                out[..., row, :] = state

    def _mended(self, kernel: Kernel, state: Array, effort: Array, wrench: Array | None) -> Array:
        """One step; where the minimal set of constraints does not serve, with a new one, or in Python."""
        out = np.empty((*state.shape[:-1], RECORDS, state.shape[-1]))

        def step(state: Array) -> Array:
            self._run(kernel, self.given(state, self.start, self.h, effort, wrench), out)
            return out[..., 0, :].copy()

        def lost(following: Array) -> Array:
            """Steps that went wrong though they started well."""
            good, there = (np.isfinite(self.motion(x)).all(axis=-1) for x in (state, following))
            return good & ~there

        following = step(state)
        bad = lost(following)
        if not bad.any():
            return following
        renewed = state.copy()
        renewed[bad, self.layout["chosen"]] = self.system.surface.chosen(
            self.q(state)[bad], self.v(state)[bad]
        )
        following = np.where(bad[..., None], step(renewed), following)
        bad = lost(following)
        if not bad.any() or bad.ndim:
            return following
        held = effort if self.sampling is None else effort + self.sampling.held(self.remembered(state))
        if self.scheme is not None:
            with suppress(Diverged):  # it stays lost, which is told with its time
                following = self.python_step(state, held, self.start, self.h)
        if lost(following):
            passed = self._through(state, held)
            following = following if passed is None else passed
        if self.sampling is None or lost(following):
            return following
        following[..., self.layout["remembered"]] = self.remembered(state)
        return self.after_instant(following, effort, wrench)

    def _through(self, state: Array, effort: Array) -> Array | None:
        """One step across a place where constraints lose rank, by collocation on both sides; None where it cannot be."""
        system, model, h = self.system, self.system.model, self.h
        nv, t = model.nv, self.time(self.number(state))
        q0, v0 = self.q(state).copy(), self.v(state).copy()
        if not np.isfinite(v0).all() or system.feedback.size:
            return None
        rate = step_code.chart_kernel(model, "chart_rate")

        def derivative(time: float, y: Array) -> Array:
            try:
                q, v = system.settled(time, model.integrate(q0, y[:nv]), y[nv:].copy())
                a = system.point(time, q, v, effort, held=self.held, within=t + h / 2).a
            except (NumericalError, ArgumentError):
                return np.full_like(y, np.nan)
            return np.concatenate([rate(y[:nv], v), a])

        start = np.concatenate([np.zeros(nv), v0])
        found = chart_equation.across(derivative, t, start, h, None, lambda y: 1e-10 * (1 + np.abs(y)), 1e-6)
        if found is None:
            return None
        q, v = system.settled(t + h, model.integrate(q0, found.end[:nv]), found.end[nv:].copy())
        following = self.initial(q, v, self.number(state) + 1)
        if self.name == "variational":
            following[self.layout["mean"]] = model.difference(q0, q) / h
            following[self.layout["before"]] = state[self.layout["mean"]]
        return following

    def given(
        self,
        state: Array,
        start: float,
        h: float,
        effort: Array,
        wrench: Array | None,
        every: int = 1,
        count: int = 1,
    ) -> list[Array]:
        """The arguments of the compiled loop; the last are `every` and `count`."""
        numbers = [np.array([x], dtype=float) for x in (start, h, every, count)]
        return [
            state,
            *numbers[:2],
            effort,
            *([] if wrench is None else [wrench]),
            *(self._parameters if self.plant.form is None else [self.plant.form.numbers]),
            *([] if self.sampling is None else self.sampling.draws(self.number(state))),
            *numbers[2:],
        ]

    @staticmethod
    def _run(kernel: Kernel, given: list[Array], out: Array) -> None:
        state, steps = given[0], float((given[-2] * given[-1])[0])
        kernel.foresee(steps / RECORDS, math.prod(state.shape[:-1]))
        if state.ndim == 1 and all(
            x.ndim == a for x, a in zip(given, map(_rank, kernel.arguments), strict=True)
        ):
            kernel.fast(0)(*given, out)
        else:
            kernel(*given, out=out)

    def lost(self, state: Array) -> Array:
        """The state one step later where no motion of the batch is finite any more."""
        following = state.copy()
        following[..., 0] += 1
        self.motion(following)[..., 2:] = np.nan
        return following

    def python_step(self, state: Array, effort: Array, start: float, h: float) -> Array:
        """One step whose dynamics call Python functions."""
        assert self.scheme is not None
        system, layout = self.system, self.layout

        starting = self.known(state) < self.past
        step = schemes.START if starting else self.scheme.step
        t = start + state[..., 0].flat[0] * h

        nv = system.model.nv

        def at(time: float, q: Array, v: Array) -> StatePoint:
            v, x = v[..., :nv], v[..., nv:]
            if not (np.isfinite(q).all() and np.isfinite(v).all()) and not system.batch:
                raise Diverged("the state within the step is not finite")
            try:
                found = system.point(time, q, v, effort, x=x, held=self.held, within=float(t + h / 2))
                if not x.shape[-1]:
                    return found
                rate = system.rates(time, found.q, found.v, x)
                return StatePoint(time, found.q, _joined(found.v, x), _joined(found.a, rate))
            except AnswerError:
                raise
            except (NumericalError, ArgumentError) as error:
                if isinstance(error, ArgumentError) and not str(error).startswith("constrained_dynamics:"):
                    raise
                raise Diverged(str(error)) from None

        past = layout.points(state, self.past)
        now = Now(float(t), self.q(state).copy(), layout.moving(state).copy(), past)
        q, v, first = step(now, h, at, SchemeManifold(system.model))
        v, x = v[..., :nv], v[..., nv:]
        try:
            q, v = system.settled(float(t + h), q, v)
        except NumericalError as error:
            raise Diverged(str(error)) from None
        parts = layout.past((first, *past)[: self.past])
        if "x" in layout:
            parts["x"] = x
        if "chosen" in layout:
            parts["chosen"] = system.surface.chosen(q, v)
        return layout.numeric(state[..., 0] + 1, state[..., 1] + (1 if starting else 0), q=q, v=v, **parts)

    def part(
        self, q: Array, v: Array, x: Array, t: float, dt: float, effort: Array, wrench: Array | None
    ) -> Array:
        """The state after a step of length dt from t, by the scheme itself or the one that starts it."""
        state = self.after_jump(self.initial(q, v, x=x, t=t), effort, t)
        if not self.compiled:
            return self.python_step(state, effort, t, dt)
        out = np.empty((*state.shape[:-1], RECORDS, state.shape[-1]))
        kernel = self._starter if self.past else self._kernel
        self._run(kernel, self.given(state, t, dt, effort, wrench), out)
        return out[..., 0, :]


def _joined(a: Array, b: Array) -> Array:
    batch = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    return np.concatenate([np.broadcast_to(y, (*batch, y.shape[-1])) for y in (a, b)], axis=-1)


def _rank(argument: Any) -> int:
    return len(argument.shape)
