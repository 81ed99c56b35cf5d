"""What a transcription is, and explicit steps and collocation as such.

A transcription makes of one stretch of time what the equations of motion say of it.

A Runge-Kutta method with the tableau (a, b, c) moves the point x in its own chart: with the slope of the plant there,
g(t, d, u) = chart_rate(d, rate(t, retract(x, d), u)),

    d_i = h sum_j a_ij g(t + c_i h, d_j, u_j),    x_{k+1} = retract(x_k, h sum_j b_j g_j)          (1)
    l = h sum_j b_j L(t + c_j h, ...)                                                           (2)

Explicit methods compute the d_i one after the other and have nothing to solve; implicit ones have the d_i as z. Methods with
c_1 = 0 and c_s = 1 (trapezoidal, Hermite-Simpson) have controls at the nodes, which neighbours share: the control is
continuous, linear or quadratic in between. The others have controls of their own at each point, or one for the whole stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal.closure import Closure
from alembert.optimal.dmoc import Dmoc, Dmocc
from alembert.optimal.plant import Mechanics, Moment, Momenta, Plant
from alembert.optimal.problem import Problem
from alembert.simulate.schemes import CLASSICAL, Tableau

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Stretch:
    """One stage as expressions: from the time t for h seconds, with the point x, controls u, z and parameters p."""

    problem: Problem
    plant: Plant
    t: ca.SX
    h: ca.SX
    duration: Any
    """of the whole motion"""
    x: ca.SX
    u: list[ca.SX]
    """as many as the scheme has; first the last ones of the stage before, if they are shared"""
    z: ca.SX
    p: ca.SX

    def moment(self, t: ca.SX, x: ca.SX, u: ca.SX) -> Moment:
        return moment_of(self.problem, self.plant, t, x, u, self.p, self.duration)


@dataclass(frozen=True)
class Interval:
    """What a scheme makes of one stage."""

    after: ca.SX
    """the point of the plant at its end"""
    cost: ca.SX
    implicit: ca.SX
    """(1) of `alembert.optimal.stages`"""
    moments: tuple[tuple[Moment, ca.SX], ...]
    """where bounds that involve controls are kept, and the controls there"""


class Transcription(Protocol):
    """A way to discretise time."""

    @property
    def name(self) -> str: ...

    @property
    def order(self) -> int: ...

    @property
    def points(self) -> int:
        """Values of each control that a stage brings."""
        ...

    @property
    def node_controls(self) -> bool:
        """Whether a stage also uses the last controls of the stage before."""
        ...

    @property
    def places(self) -> tuple[float, ...]:
        """Where in a stage its own controls act, from 0 to 1."""
        ...

    @property
    def closes(self) -> bool:
        """Whether it keeps loops closed by itself; otherwise its steps are projected."""
        ...

    def plant(self, problem: Problem) -> Plant: ...

    def implicit(self, plant: Plant) -> tuple[str, ...]:
        """Names for z."""
        ...

    def interval(self, on: Stretch) -> Interval: ...

    def guess(self, plant: Plant, x: Array, after: Array) -> Array:
        """z for points (N, ...) and the points after them."""
        ...


def moment_of(problem: Problem, plant: Plant, t: ca.SX, x: ca.SX, u: ca.SX, p: ca.SX, T: Any) -> Moment:
    own = problem.moment_inputs(p)
    return plant.moment(t, x, u, p, duration=T, _controls=problem.plant.controls, **own)


def classical_step(slope: Callable[[int, ca.SX], ca.SX], h: ca.SX, size: int) -> ca.SX:
    """By how much Runge and Kutta's method of order 4 moves a point in h: slope(i, d) is that of its point i, moved by d."""
    slopes: list[ca.SX] = []
    for i, row in enumerate(CLASSICAL.a):
        moved = sum((float(a) * k for a, k in zip(row, slopes, strict=True) if a), ca.SX.zeros(size))
        slopes.append(slope(i, h * moved))
    return h * sum((float(b) * k for b, k in zip(CLASSICAL.b, slopes, strict=True)), ca.SX.zeros(size))


@dataclass
class Projected:
    """`base`, then (1) and (2).

    Transcriptions that keep loops closed and prescribed joints in place: each step is followed by a projection.

    The accelerations are those that the reactions allow, (1) of `alembert.optimal.closure`, but a scheme integrates them
    with an error, and loops would drift open. So the point q^, v^ at the end of its step is moved to the nearest one that
    keeps what must hold (Hairer, Lubich and Wanner 2006, IV.4; distances are those of the kinetic energy):

        q_1 = q^ + M^-1 G' mu,    g(t + h, q_1) = 0                                                       (1)
        v_1 = v^ - M^-1 G_1' (G_1 M^-1 G_1')^-1 (G_1 v^ - w)                                                (2)

    with M and G at q^ in (1) and at q_1 in (2). mu is of the size of the scheme's error, whose order stays as it is; it is
    among the z of a stage, found with everything else. (2) is the projection (3) of `closure`, for speeds or momenta.
    """

    base: Transcription
    closes: bool = True

    def __post_init__(self) -> None:
        self.name, self.order, self.places = self.base.name, self.base.order, self.base.places
        self.points, self.node_controls = self.base.points, self.base.node_controls

    def plant(self, problem: Problem) -> Plant:
        return self.base.plant(problem)

    def implicit(self, plant: Plant) -> tuple[str, ...]:
        return (*self.base.implicit(plant), *(f"{name}, closing" for name in _closure(plant).names))

    def interval(self, on: Stretch) -> Interval:
        plant, closure = on.plant, _closure(on.plant)
        assert isinstance(plant, Mechanics)
        count = len(closure.names)
        found = self.base.interval(replace(on, z=on.z[:-count]))
        nq, t, symbolic = plant.model.nq, on.t + on.h, plant.shared.symbolic
        known, p = plant.shared_values(on.p), on.p
        q, rest = found.after[:nq], found.after[nq:]
        pull = symbolic.solve_mass_matrix(q, closure.jacobian(q, p).T @ on.z[-count:], parameters=known)
        q1 = plant.chart.retract(found.after, ca.vertcat(pull, ca.SX.zeros(rest.numel())))[:nq]
        inverse = symbolic.inverse_mass_matrix(q1, parameters=known)
        rest = (closure.allowed if plant.momenta else closure.allowed_speeds)(t, q1, rest, inverse, p)
        implicit = ca.vertcat(found.implicit, closure.residual(t, q1, p))
        return replace(found, after=ca.vertcat(q1, rest), implicit=implicit)

    def guess(self, plant: Plant, x: Array, after: Array) -> Array:
        found = self.base.guess(plant, x, after)
        return np.concatenate([found, np.zeros((len(x), len(_closure(plant).names)))], axis=1)


def _closure(plant: Plant) -> Closure:
    assert isinstance(plant, Mechanics)
    assert plant.closure is not None
    return plant.closure


@dataclass(frozen=True)
class Collocation:
    """The coefficients (a, b, c) of a Runge-Kutta method with full rows, as an implicit one needs them."""

    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    order: int

    @classmethod
    def of(cls, tableau: Tableau) -> Collocation:
        """An explicit method of `alembert.simulate`."""
        size = len(tableau.b)
        rows = (tuple(map(float, row)) + (0.0,) * (size - len(row)) for row in tableau.a)
        return cls(tuple(rows), tuple(map(float, tableau.b)), tableau.order())

    @property
    def c(self) -> tuple[float, ...]:
        return tuple(sum(row) for row in self.a)

    @property
    def is_explicit(self) -> bool:
        return all(not any(row[i:]) for i, row in enumerate(self.a))


_6 = 6.0**0.5
TABLEAUS = {
    "rk4": Collocation.of(CLASSICAL),
    "midpoint": Collocation(((1 / 2,),), (1.0,), 2),
    "trapezoidal": Collocation(((0, 0), (1 / 2, 1 / 2)), (1 / 2, 1 / 2), 2),
    "hermite-simpson": Collocation(
        ((0, 0, 0), (5 / 24, 1 / 3, -1 / 24), (1 / 6, 2 / 3, 1 / 6)), (1 / 6, 2 / 3, 1 / 6), 4
    ),
    "radau": Collocation(
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
    tableau: Collocation
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
        plant = problem.plant
        assert isinstance(plant, Mechanics)
        return Momenta(plant.model, plant.driven, plant.closure, plant.elements)

    def implicit(self, plant: Plant) -> tuple[str, ...]:
        names = plant.tangent_names
        names = names[: len(names) - plant.still]
        return tuple(f"{name} at point {i + 1}" for i in self._solved for name in names)

    def interval(self, on: Stretch) -> Interval:
        problem, plant, t, h, x, u, z, p = on.problem, on.plant, on.t, on.h, on.x, on.u, on.z, on.p
        tableau, chart = self.tableau, plant.chart
        n, count, still = chart.tangent, len(tableau.b), ca.SX.zeros(plant.still)
        moving = n - plant.still
        controls = u if len(u) == count else u * count
        slopes: list[ca.SX] = []
        moments = []
        solved = self._solved
        cost = ca.SX(0)
        for i in range(count):
            if i in solved:
                k = solved.index(i)
                d = ca.vertcat(z[moving * k : moving * (k + 1)], still)
            else:
                d = sum((h * a * g for a, g in zip(tableau.a[i], slopes, strict=False) if a), ca.SX.zeros(n))
            point = chart.retract(x, d) if i or i in solved else x
            when = t + tableau.c[i] * h
            slopes.append(chart.chart_rate(d, plant.rate(when, point, controls[i], p)))
            moment = on.moment(when, point, controls[i])
            moments.append((moment, controls[i]))
            if tableau.b[i]:
                cost += h * tableau.b[i] * problem.integrands(moment)
        residuals = []
        for k, i in enumerate(solved):
            moved = sum((a * g for a, g in zip(tableau.a[i], slopes, strict=True) if a), ca.SX.zeros(n))
            residuals.append(z[moving * k : moving * (k + 1)] - h * moved[:moving])
        last = count - 1
        if last in solved and tableau.a[last] == tableau.b:
            after = chart.retract(x, ca.vertcat(z[-moving:], still))
        else:
            after = chart.retract(
                x, sum((h * b * g for b, g in zip(tableau.b, slopes, strict=True)), ca.SX.zeros(n))
            )
        kept = moments[:1] if self.tableau.is_explicit else moments[int(self.node_controls) :]
        return Interval(after, cost, ca.vertcat(ca.SX(0, 1), *residuals), tuple(kept))

    def guess(self, plant: Plant, x: Array, after: Array) -> Array:
        d = plant.chart.difference(x, after)
        d = d[:, : d.shape[1] - plant.still]
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
            plant.chart.retract(x, step), h * problem.integrands(moment), ca.SX(0, 1), ((moment, u[0]),)
        )

    def guess(self, plant: Plant, x: Array, after: Array) -> Array:
        return np.empty((len(x), 0))


def scheme(name: str) -> Transcription:
    """A transcription by name."""
    if name in SCHEMES:
        return SCHEMES[name]
    if name in RADAU:
        return _radau(name)
    from alembert.model.printing import unknown

    raise ArgumentError(unknown("solve: no transcription", name, [*SCHEMES, *RADAU]))


RADAU = {f"radau-{2 * points - 1}{kind}": points for kind in ("", "-momenta") for points in (2, 3, 4, 5, 6)}
"""Radau's methods by their order, with their points; "radau" is that of order 5"""


def radau_name(points: int, *, momenta: bool) -> str:
    """The transcription with so many points."""
    order = f"-{2 * points - 1}" if points != 3 else ""
    return f"radau{order}{'-momenta' if momenta else ''}"


@cache
def _radau(name: str) -> Transcription:
    """Radau's method (IIA): collocation at the zeros of P_s - P_(s-1) in [0, 1], the last of which is 1; order 2 s - 1."""
    points = RADAU[name]
    difference = np.polynomial.Legendre([*([0.0] * (points - 1)), -1.0, 1.0])
    c = (np.sort(np.real(difference.roots())) + 1) / 2
    c[-1] = 1.0
    # integrals of powers at c from those at 1: a V = diag(c) W with V_ij = c_i^j, W_ij = c_i^j / (j + 1)
    powers = c[:, None] ** np.arange(points)
    a = np.linalg.solve(powers.T, (c[:, None] * powers / (1 + np.arange(points))).T).T
    rows = tuple(tuple(map(float, row)) for row in a)
    return RungeKutta(name, Collocation(rows, rows[-1], 2 * points - 1), momenta=name.endswith("momenta"))


SCHEMES: dict[str, Transcription] = {
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
