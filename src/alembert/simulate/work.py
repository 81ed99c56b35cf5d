"""The work of all that puts energy into a model or takes it out: efforts, wrenches, prescribed motion, friction.

Runs with error control add it up along their steps, whatever the interval of their records. Over one step the power is
a polynomial through Gauss points of the dense output,

    P(t) = sum_k c_k L_k(x),    x = 2 (t - a)/(b - a) - 1,    W(t) = (b - a)/2 int_-1^x P dx         (1)

with Legendre polynomials L_k. Runs with fixed steps have it from their records, or from their steps where records are
further apart (`alembert.simulate.fixed_run.work_along_steps`).
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cache

import casadi as ca
import numpy as np
import scipy
from numpy.polynomial import legendre

from alembert.simulate.adaptive import DenseStep
from alembert.simulate.chart_equation import Flow
from alembert.simulate.elements import function_kernel, state_symbols
from alembert.simulate.simulation import Simulation
from alembert.simulate.variational import _friction

Array = np.ndarray
FEW, MANY = 4, 8
"""Gauss points of a step in which few records lie (its end counts), and of others (the way counts as well)"""


def power(
    system: Simulation, time: Array, q: Array, v: Array, given: Array, besides: Array | float = 0.0
) -> Array:
    """(..., N), at times (N,): of the efforts `given`, friction, wrenches, and force elements without a potential.

    `besides` are efforts that act as well and whose work is counted elsewhere.
    """
    total = given + friction_efforts(system, v)
    known = given + besides
    if system.loads.elements is not None:
        kept, other, _, _ = system.loads.elements_at(time[:, None], q, v, along_time=True)
        total, known = total + other, known + kept + other
    if system.loads.reading is not None:
        total = total + system.reading_efforts(time[:, None], q, v, known)
    found = np.sum(total * v, axis=-1)
    if system.loads.has_wrenches:
        zero = np.zeros(system.own.nv)
        for k, t in enumerate(time):
            x, y = q[..., k, :], v[..., k, :]
            wrenches = system.loads.wrenches_at(float(t), x, y)
            found[..., k] += system.own.power(x, y, zero, wrenches=wrenches, parameters=system.own_parameters)
    return found


def friction_efforts(system: Simulation, v: Array) -> Array:
    """(..., N, nv)."""
    model = system.own
    if not system.dissipates:
        return np.zeros_like(v)

    def friction() -> ca.Function:
        _, _, speeds, p = state_symbols(model)
        return ca.Function("friction", [speeds, p], [_friction(model, p)(speeds)])

    key, given = f"{model.fingerprint}:friction", {"v": model.nv, "parameters": len(model.parameters) or None}
    results = {"effort": model.nv}
    kernel = model.compute.kept(key, lambda: function_kernel("friction", key, given, results, friction))
    if not model.parameters:
        return kernel(v)
    parameters = model.compute.parameter_array("simulate", system.own_parameters)
    return kernel(v, parameters if parameters.ndim == 1 else parameters[..., None, :])


def by_simpson(P: Array, time: Array) -> Array:
    """The integral of P (..., N) over time, up to each record."""
    return scipy.integrate.cumulative_simpson(P, x=time, axis=-1, initial=0.0)


class StepNotes:
    """What was done at the steps of a run whose records are further apart: efforts, all and those held, and states.

    States are noted where steps are made one by one (`single`); others can be made again.
    """

    def __init__(self, *, single: bool) -> None:
        self.single = single
        self.numbers: list[float] = []
        self.jumps: set[int] = set()
        """the steps from which on other efforts or wrenches act"""
        self._efforts: list[tuple[Array, Array]] = []
        self._states: list[tuple[Array, Array, Array]] = []

    def add(self, number: float, effort: Array, held: Array, q: Array, v: Array, x: Array) -> None:
        if self.single:
            self._states.append((q.copy(), v.copy(), x.copy()))
        elif self._efforts and all(
            np.array_equal(x, y) for x, y in zip(self._efforts[-1], (effort, held), strict=True)
        ):
            return
        self.numbers.append(number)
        self._efforts.append((effort, held))

    def efforts_at(self, number: int) -> tuple[Array, Array]:
        """All efforts that are given as numbers, and those held of them, from a step on."""
        return self._efforts[max(0, bisect_right(self.numbers, number) - 1)]

    def states(self) -> tuple[Array, Array, Array, Array, Array]:
        """Numbers of steps, q, v, states of controllers and what was held, along the last axis but one."""
        q, v, controllers = (np.stack([x[k] for x in self._states], axis=-2) for k in (0, 1, 2))
        held = np.stack([np.broadcast_to(x, v.shape[:-2] + x.shape[-1:]) for _, x in self._efforts], axis=-2)
        return np.array(self.numbers), q, v, controllers, held


class Account:
    """The work along a run with error control; nothing is asked for where nothing does work."""

    def __init__(self, system: Simulation) -> None:
        self.system = system
        self.is_kept = not system.conserves_energy
        self.done = 0.0
        self._t = -np.inf

    def over(self, piece: DenseStep, flow: Flow, end: float, times: Array) -> list[float]:
        """Go on to `end`, at most that of the piece; the work up to each of the times in between."""
        a, b = max(self._t, piece.start), min(end, piece.end)
        if not self.is_kept or b <= a:
            return [self.done] * len(times)
        x, to_coefficients = _gauss(FEW if len(times) < FEW else MANY)
        t = a + (x + 1) * (b - a) / 2
        coefficients = legendre.legint(to_coefficients @ self._power(t, piece, flow), lbnd=-1)
        where = np.clip(2 * (np.append(times, b) - a) / (b - a) - 1, -1.0, 1.0)
        found = self.done + (b - a) / 2 * legendre.legval(where, coefficients)  # (1)
        self.done, self._t = float(found[-1]), b
        return found[:-1].tolist()

    def _power(self, times: Array, piece: DenseStep, flow: Flow) -> Array:
        (q, v), z = piece.at(times), piece.memory(times)
        efforts = flow.efforts_along(times, q, v, z)
        if efforts is None:
            efforts = np.array([flow.efforts(*row) for row in zip(times.tolist(), q, v, z, strict=True)])
        return power(self.system, times, q, v, efforts)


@cache
def _gauss(count: int) -> tuple[Array, Array]:
    """Points in (-1, 1), and the matrix from values there to coefficients of Legendre polynomials."""
    x, _ = legendre.leggauss(count)
    return x, np.linalg.inv(legendre.legvander(x, count - 1))
