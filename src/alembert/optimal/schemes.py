"""Explicit steps and collocation, as stages.

A Runge-Kutta method with the tableau (a, b, c) moves the point x in its own chart: with the slope of the plant there,
g(t, d, u) = chart_rate(d, rate(t, retract(x, d), u)),

    d_i = h sum_j a_ij g(t + c_i h, d_j, u_j),    x_{k+1} = retract(x_k, h sum_j b_j g_j)          (1)
    l = h sum_j b_j L(t + c_j h, ...)                                                           (2)

Explicit methods compute the d_i one after the other and have nothing to solve; implicit ones have the d_i as z. Methods with
c_1 = 0 and c_s = 1 (trapezoidal, Hermite-Simpson) have controls at the nodes, which neighbours share: the control is
continuous, linear or quadratic in between. The others have controls of their own at each point, or one for the whole stage.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal.directors import Dmocc
from alembert.optimal.dmoc import Dmoc
from alembert.optimal.plant import Momenta, Plant
from alembert.optimal.problem import Problem
from alembert.optimal.transcription import Interval, Scheme, Stretch

Array = np.ndarray


@dataclass(frozen=True)
class Tableau:
    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    order: int

    @property
    def c(self) -> tuple[float, ...]:
        return tuple(sum(row) for row in self.a)

    @property
    def is_explicit(self) -> bool:
        return all(not any(row[i:]) for i, row in enumerate(self.a))


_6 = 6.0**0.5
TABLEAUS = {
    "rk4": Tableau(
        ((0, 0, 0, 0), (1 / 2, 0, 0, 0), (0, 1 / 2, 0, 0), (0, 0, 1, 0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6), 4
    ),
    "midpoint": Tableau(((1 / 2,),), (1.0,), 2),
    "trapezoidal": Tableau(((0, 0), (1 / 2, 1 / 2)), (1 / 2, 1 / 2), 2),
    "hermite-simpson": Tableau(
        ((0, 0, 0), (5 / 24, 1 / 3, -1 / 24), (1 / 6, 2 / 3, 1 / 6)), (1 / 6, 2 / 3, 1 / 6), 4
    ),
    "radau": Tableau(
        (
            ((88 - 7 * _6) / 360, (296 - 169 * _6) / 1800, (-2 + 3 * _6) / 225),
            ((296 + 169 * _6) / 1800, (88 + 7 * _6) / 360, (-2 - 3 * _6) / 225),
            ((16 - _6) / 36, (16 + _6) / 36, 1 / 9),
        ),
        ((16 - _6) / 36, (16 + _6) / 36, 1 / 9),
        5,
    ),
}
"""Butcher's tableaus; their order conditions are tested."""


@dataclass(frozen=True)
class RungeKutta:
    """(1)-(2); `momenta` takes points (q, p) of a model instead of (q, v)."""

    name: str
    tableau: Tableau
    momenta: bool = False
    closes: bool = False

    @property
    def order(self) -> int:
        return self.tableau.order

    @property
    def node_controls(self) -> bool:
        c = self.tableau.c
        return not self.tableau.is_explicit and c[0] == 0 and abs(c[-1] - 1) < 1e-12

    @property
    def points(self) -> int:
        if self.tableau.is_explicit:
            return 1
        return len(self.tableau.b) - self.node_controls

    @property
    def places(self) -> tuple[float, ...]:
        return (0.5,) if self.tableau.is_explicit else self.tableau.c[int(self.node_controls) :]

    @property
    def _solved(self) -> list[int]:
        """The rows of the tableau that have a z."""
        if self.tableau.is_explicit:
            return []
        return [i for i, row in enumerate(self.tableau.a) if any(row)]

    def plant(self, problem: Problem) -> Plant:
        if not self.momenta:
            return problem.plant
        if problem.model is None:
            raise UnsupportedError(
                f"solve: transcription {self.name!r} is for models; a System has no momenta"
            )
        return Momenta(problem.model, problem.plant.driven, problem.plant.closure)  # type: ignore[union-attr]

    def implicit(self, plant: Plant) -> tuple[str, ...]:
        names = plant.tangent_names
        return tuple(f"{name} at point {i + 1}" for i in self._solved for name in names)

    def interval(self, on: Stretch) -> Interval:
        problem, plant, t, h, x, u, z, p = on.problem, on.plant, on.t, on.h, on.x, on.u, on.z, on.p
        tableau, chart = self.tableau, plant.chart
        n, count = chart.tangent, len(tableau.b)
        controls = u if len(u) == count else u * count
        slopes: list[ca.SX] = []
        moments = []
        solved = self._solved
        cost = ca.SX(0)
        for i in range(count):
            if i in solved:
                k = solved.index(i)
                d = z[n * k : n * (k + 1)]
            else:
                d = sum((h * a * g for a, g in zip(tableau.a[i], slopes, strict=False) if a), ca.SX.zeros(n))
            point = chart.retract(x, d) if i or i in solved else x
            when = t + tableau.c[i] * h
            slopes.append(chart.chart_rate(d, plant.rate(when, point, controls[i], p)))
            moment = on.moment(when, point, controls[i])
            moments.append((moment, controls[i]))
            if tableau.b[i]:
                cost += h * tableau.b[i] * problem.cost.rate(moment)
        residuals = []
        for k, i in enumerate(solved):
            moved = sum((a * g for a, g in zip(tableau.a[i], slopes, strict=True) if a), ca.SX.zeros(n))
            residuals.append(z[n * k : n * (k + 1)] - h * moved)
        last = count - 1
        if last in solved and tableau.a[last] == tableau.b:
            after = chart.retract(x, z[-n:])
        else:
            after = chart.retract(
                x, sum((h * b * g for b, g in zip(tableau.b, slopes, strict=True)), ca.SX.zeros(n))
            )
        kept = moments[:1] if self.tableau.is_explicit else moments[int(self.node_controls) :]
        return Interval(after, cost, ca.vertcat(ca.SX(0, 1), *residuals), tuple(kept))

    def guess(self, plant: Plant, x: Array, after: Array) -> Array:
        d = plant.chart.difference(x, after)
        parts = [self.tableau.c[i] * d for i in self._solved]
        return np.concatenate([np.empty((len(x), 0)), *parts], axis=1)


@dataclass(frozen=True)
class SemiImplicitEuler:
    """v_{k+1} = v_k + h a(q_k, v_k, u_k), q_{k+1} = integrate(q_k, h v_{k+1}); for a system Euler's method."""

    name: str = "euler"
    order: int = 1
    points: int = 1
    node_controls: bool = False
    places: tuple[float, ...] = (0.5,)
    closes: bool = False

    def plant(self, problem: Problem) -> Plant:
        return problem.plant

    def implicit(self, plant: Plant) -> tuple[str, ...]:
        return ()

    def interval(self, on: Stretch) -> Interval:
        problem, plant, t, h, x, u, p = on.problem, on.plant, on.t, on.h, on.x, on.u, on.p
        moment = on.moment(t, x, u[0])
        step = h * plant.rate(t, x, u[0], p)
        if problem.model is not None:
            nq, nv = problem.model.nq, problem.model.nv
            step = ca.vertcat(h * (x[nq:] + step[nv:]), step[nv:])
        return Interval(
            plant.chart.retract(x, step), h * problem.cost.rate(moment), ca.SX(0, 1), ((moment, u[0]),)
        )

    def guess(self, plant: Plant, x: Array, after: Array) -> Array:
        return np.empty((len(x), 0))


def scheme(name: str) -> Scheme:
    """A transcription by name."""
    if name in SCHEMES:
        return SCHEMES[name]
    from alembert.model.printing import unknown

    raise ArgumentError(unknown("solve: no transcription", name, SCHEMES))


SCHEMES: dict[str, Scheme] = {
    "dmoc": Dmoc(),
    "dmocc": Dmocc(),
    "euler": SemiImplicitEuler(),
    **{name: RungeKutta(name, tableau) for name, tableau in TABLEAUS.items()},
    "midpoint-momenta": RungeKutta("midpoint-momenta", TABLEAUS["midpoint"], momenta=True),
    "trapezoidal-momenta": RungeKutta("trapezoidal-momenta", TABLEAUS["trapezoidal"], momenta=True),
    "hermite-simpson-momenta": RungeKutta(
        "hermite-simpson-momenta", TABLEAUS["hermite-simpson"], momenta=True
    ),
    "radau-momenta": RungeKutta("radau-momenta", TABLEAUS["radau"], momenta=True),
}
