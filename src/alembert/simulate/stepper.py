"""One fixed-step scheme at work on a system: the machine's state, steps in machine code or in Python."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from alembert.engine.kernel import Kernel
from alembert.simulate import generalised_alpha, schemes, stepping, variational
from alembert.simulate.loop import RECORDS
from alembert.simulate.schemes import Now, Point, Scheme
from alembert.simulate.stepping import Layout, Plant
from alembert.simulate.system import System
from alembert.simulate.tangent import NumericManifold

Array = np.ndarray


class Stepper:
    """`held`: efforts come as numbers, constant over a step; otherwise symbolic controllers are part of the code."""

    def __init__(self, system: System, name: str, h: float, start: float, *, held: bool) -> None:
        self.system, self.name, self.h, self.start = system, name, h, start
        self.scheme: Scheme | None = schemes.SCHEMES.get(name)
        self.compiled = self.scheme is None or (
            not system.constrained and not system.motions and (held or not system.python)
        )
        self.held = held
        model = system.model
        self.layout: Any
        if name == "variational":
            self.layout = variational.VariationalLayout(model.nq, model.nv)
        elif self.scheme is None:
            self.layout = generalised_alpha.AlphaLayout(model.nq, model.nv)
        else:
            self.layout = Layout(model.nq, model.nv, self.scheme.past)
        self._parameters = [system.parameter_array()] if model.parameters else []

    @cached_property
    def plant(self) -> Plant:
        return self.system.plant(held=self.held)

    @cached_property
    def _kernel(self) -> Kernel:
        if self.scheme is None:
            module = variational if self.name == "variational" else generalised_alpha
            return module.stepping_kernel(self.plant)
        return stepping.stepping_kernel(self.plant, self.scheme)

    @cached_property
    def _starter(self) -> Kernel:
        assert self.scheme is not None
        return stepping.stepping_kernel(self.plant, self.scheme, starting=True)

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

    def initial(self, q: Array, v: Array, number: int = 0) -> Array:
        q, v = self.system.imposed(self.time(number), q, v)
        if self.name == "variational":
            p = self.system.model.multiply_mass_matrix(q, v, parameters=self.system.parameters)
            state = self.layout.initial(np.broadcast_to(q, (*p.shape[:-1], q.shape[-1])), v, p)
        elif self.scheme is None:
            t = self.time(number)
            a = self.system.point(t, q, v, self.system.efforts + self.system.held_efforts(t + self.h / 2)).a
            state = self.layout.initial(q, v, a)
        else:
            state = self.layout.initial(q, v)
        state[..., 0] = number
        return state

    def q(self, states: Array) -> Array:
        return states[..., self.layout.q]

    def v(self, states: Array, *, along_time: bool = False) -> Array:
        if self.name != "variational":
            return states[..., self.layout.v]
        parameters = self.system.parameters
        if parameters and along_time:
            parameters = {name: np.asarray(x, dtype=float)[..., None] for name, x in parameters.items()}
        q, p = states[..., self.layout.q].copy(), states[..., self.layout.p].copy()
        return self.system.model.solve_mass_matrix(q, p, parameters=parameters)

    def middle(self, state: Array) -> tuple[float, Array, Array]:
        """Time, q and v expected in the middle of the next step, to second order in h."""
        t = self.time(self.number(state)) + self.h / 2
        q = self.q(state).copy()
        if self.name == "variational":
            mean, before = state[..., self.layout.mean], state[..., self.layout.before]
            v = 2 * mean - before
        else:
            v = self.v(state).copy()
        return t, self.system.model.integrate(q, self.h / 2 * v), v

    # --- steps -------------------------------------------------------------------------------------------------

    def advance(
        self, state: Array, every: int, count: int, effort: Array, wrench: Array | None, out: Array
    ) -> None:
        """`count` records, `every` steps apart, into the first rows of `out` (..., RECORDS, size)."""
        starting = self.known(state) < self.past
        kernel = self._starter if starting else self._kernel
        self._run(kernel, state, self.start, self.h, effort, wrench, every, count, out)

    def _run(
        self,
        kernel: Kernel,
        state: Array,
        start: float,
        h: float,
        effort: Array,
        wrench: Array | None,
        every: int,
        count: int,
        out: Array,
    ) -> None:
        numbers = [np.array([x], dtype=float) for x in (start, h, every, count)]
        given = [
            state,
            *numbers[:2],
            effort,
            *([] if wrench is None else [wrench]),
            *self._parameters,
            *numbers[2:],
        ]
        if state.ndim == 1 and all(
            x.ndim == a for x, a in zip(given, map(_rank, kernel.arguments), strict=True)
        ):
            kernel.fast()(*given, out)
        else:
            kernel(*given, out=out)

    def python_step(self, state: Array, effort: Array, start: float, h: float) -> Array:
        """One step whose dynamics call Python functions."""
        assert self.scheme is not None
        system, layout = self.system, self.layout

        starting = self.known(state) < self.past
        step = schemes.START if starting else self.scheme.step
        t = start + state[..., 0].flat[0] * h

        def at(time: float, q: Array, v: Array) -> Point:
            return system.point(time, q, v, effort, held=self.held, within=float(t + h / 2))

        past = layout.points(state)
        now = Now(float(t), state[..., layout.q].copy(), state[..., layout.v].copy(), past)
        q, v, first = step(now, h, at, NumericManifold(system.model))
        q, v = system.project(*system.imposed(float(t + h), q, v))
        kept = (first, *past)[: layout.past]
        number, known = state[..., :1] + 1, state[..., 1:2] + (1 if starting else 0)
        return np.concatenate(np.atleast_1d(*layout.pack(number, known, q, v, kept)), axis=-1)

    def part(self, q: Array, v: Array, t: float, dt: float, effort: Array, wrench: Array | None) -> Array:
        """The state after a step of length dt from t, by the scheme itself or the one that starts it."""
        state = self.initial(q, v)
        if not self.compiled:
            return self.python_step(state, effort, t, dt)
        out = np.empty((*state.shape[:-1], RECORDS, state.shape[-1]))
        kernel = self._starter if self.past else self._kernel
        self._run(kernel, state, t, dt, effort, wrench, 1, 1, out)
        return out[..., 0, :]


def _rank(argument: Any) -> int:
    return len(argument.shape)
