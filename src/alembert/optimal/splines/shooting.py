"""The motion that B-splines of the driven joints give.

The driven coordinates are splines in s = t/T, and with them their speeds and accelerations (Sohl and Bobrow 2001,
section 5):

    q_a = sum_i B_i(s) c_i,   v_a = sum_i B_i'(s) c_i / T,   a_a = sum_i B_i''(s) c_i / T^2              (1)

Hybrid dynamics gives the accelerations of the others, on which no effort acts, and the efforts of the driven ones:

    (a_p, tau_a) = hybrid(q, v, a_a, tau_p = 0)                                                        (2)

The passive state x = (q_p, v_p) and the running cost are integrated by Runge and Kutta's method of order 4,
x_{k+1} = f(x_k, y_k, T), where y_k are the sums of (1) at the two ends and the middle of step k. Unknown are
z = (c, d, T): d moves the passive state at the start, where that is not stated, and T is there if it is free.

Loops and prescribed joints are rows g(t, q) = 0 with the Jacobian G (`alembert.optimal.closure`). They are equations beside
those of the driven joints in (2), and f ends with steps of Newton's method on the passive coordinates, and a projection
of their speeds:

    q_p <- q_p - G_p^+ g,    v_p <- v_p - G_p^+ (G v - w)                                                (3)

Passive joints may move on manifolds: changes of x are tangent vectors there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
import scipy

from alembert.errors import ArgumentError, UnsupportedError
from alembert.lowering.stage_loop import SHARED, StageLoop
from alembert.optimal.closure import Closure, conditions, place
from alembert.optimal.guess import straight
from alembert.optimal.plant import Mechanics, Row
from alembert.optimal.problem import Problem
from alembert.optimal.schemes import classical_step
from alembert.optimal.search_graphs import column
from alembert.sweeps.dynamics import Factor

Array = np.ndarray


def _at_once(function: ca.Function) -> Callable[..., list[Array]]:
    """It on arrays, as one stage of a loop."""
    loop = StageLoop(function, [0] * (function.n_in() + function.n_out()), backward=False)
    shapes = [function.size_out(k) for k in range(function.n_out())]

    def run(*given: Any) -> list[Array]:
        results = [np.empty(shape) for shape in shapes]
        loop(1, *(np.array(x, dtype=float, ndmin=1) for x in given), *results)
        return results

    return run


NEWTON = 3
"""steps of (3): the error of a step of order 4 falls below rounding with two"""


@dataclass(frozen=True, eq=False)
class SplineMotion:
    """A motion, what it costs, and the rows of its conditions.

    `by_*` are derivatives along (passive tangent, y of the node, T, parameters), of the passive state at the start
    along (d, y, T, parameters).
    """

    coefficients: Array
    T: float
    y: Array
    """(N, 9 m)"""
    cost: float
    start: Array
    end: Array
    path: Array
    """(N + 1, rows)"""
    x: Array
    """(N + 1, passive point)"""
    controls: Array
    """(N + 1, m)"""
    by_first: Array
    by_start: Array
    by_end: Array
    """of the final cost, the controls, the path and the end"""


class Shooting:
    """(1)-(3) for `problem` on `steps` intervals."""

    def __init__(self, problem: Problem, steps: int, control_points: int, degree: int) -> None:
        self.problem, self.steps = problem, steps
        self.control_points, self.degree = control_points, degree
        if not isinstance(problem.plant, Mechanics):
            raise UnsupportedError(
                "solve_splines: splines are for models, not for a System; use problem.solve()"
            )
        problem.refuse_additions("solve_splines")
        self.plant = problem.plant
        self.model = model = problem.plant.model
        self.closure: Closure | None = self.plant.closure
        self.driven = list(self.plant.driven)
        coordinate = _coordinates(problem)
        self.passive = [k for k in range(model.nv) if k not in self.driven]
        self.driven_q = [coordinate[k] for k in self.driven]
        self.passive_q = [k for k in range(model.nq) if k not in self.driven_q]
        self.m, self.n = len(self.driven), 2 * len(self.passive)
        names = [f"{what} {model.speed_names[k]}" for what in "qv" for k in self.passive]
        self.passive_names = tuple(names)
        stated = {row.component for row in problem.start if row.is_equation}
        self.first = self._first()
        self.open = self._open(stated)
        """which of the passive tangent d moves"""
        self.knots = np.concatenate(
            [np.zeros(degree), np.linspace(0, 1, control_points - degree + 1), np.ones(degree)]
        )
        self.basis = np.stack([self.spline(np.arange(2 * steps + 1) / (2 * steps), nu) for nu in range(3)])
        """(3, 2 N + 1, control points): B, B' and B'' at nodes and middles"""
        at = self.basis[:, :-1:2], self.basis[:, 1::2], self.basis[:, 2::2]
        self.within = np.ascontiguousarray(np.concatenate(at).transpose(1, 0, 2))
        """(N, 9, control points): those of y"""
        self.path_rows: list[Row] = [*problem.limits["state"], *problem.limits["control"], *problem.path]
        self.start_rows = self._rows("start", problem.start)
        self.end_rows = self._rows("end", problem.end)
        _only_bounds(self.path_rows)
        self._symbols()

    @property
    def unknowns(self) -> int:
        return self.m * self.control_points + len(self.open) + self.problem.is_free

    def spline(self, s: Array, derivative: int = 0) -> Array:
        """(len(s), control points): the basis of (1)."""
        full = scipy.interpolate.BSpline(self.knots, np.eye(self.control_points), self.degree)
        return np.asarray(full(s, derivative))

    def split(self, z: Array) -> tuple[Array, Array, float]:
        """Control points (m, control points), d and the duration."""
        size = self.m * self.control_points
        c = np.asarray(z[:size], dtype=float).reshape(self.m, self.control_points)
        d = np.asarray(z[size : size + len(self.open)], dtype=float)
        return c, d, float(z[-1]) if self.problem.is_free else self.problem.shortest

    def configurations(self, motion: SplineMotion) -> tuple[Array, Array]:
        """q and v of all joints at the nodes."""
        c, T, x = motion.coefficients, motion.T, motion.x
        B, rate = self.basis[0, ::2], self.basis[1, ::2]
        q, v = np.empty((self.steps + 1, self.model.nq)), np.empty((self.steps + 1, self.model.nv))
        q[:, self.driven_q], v[:, self.driven] = B @ c.T, rate @ c.T / T
        q[:, self.passive_q], v[:, self.passive] = np.split(x, [len(self.passive_q)], axis=1)
        return q, v

    def motion(self, z: Array) -> SplineMotion:
        """The motion of z; one that runs away has values that are not finite."""
        with np.errstate(all="ignore"):
            return self._motion(z)

    def _motion(self, z: Array) -> SplineMotion:
        N, m, r = self.steps, self.m, len(self.path_rows)
        c, d, T = self.split(z)
        p = self.problem.parameters
        sums = np.concatenate([b @ c.T for b in self.basis], axis=1)  # (2 N + 1, 3 m)
        y = np.ascontiguousarray(np.concatenate([sums[0:-1:2], sums[1::2], sums[2::2]], axis=1))
        x = np.empty((N + 1, len(self.first)))
        first, by_first = self._begin(d, sums[0], T, p)
        x[0] = first[:, 0]
        cost, controls, path = np.empty((N, 1)), np.empty((N, m)), np.empty((N, r))
        self._forward(N, x, y, self.fractions, np.array([T]), p, x, cost, controls, path)
        last, by_end = self._end(x[-1], sums[-1], T, p)
        start, by_start = self._start(x[0], sums[0], T, p)
        last = last[:, 0]
        return SplineMotion(
            coefficients=c,
            T=T,
            y=y,
            cost=float(cost.sum() + last[0]),
            start=start[:, 0],
            end=last[1 + m + r :],
            path=np.concatenate([path, last[None, 1 + m : 1 + m + r]]),
            x=x,
            controls=np.concatenate([controls, last[None, 1 : 1 + m]]),
            by_first=by_first,
            by_start=by_start,
            by_end=by_end,
        )

    @cached_property
    def fractions(self) -> Array:
        return np.arange(self.steps) / self.steps

    # --- what is given -------------------------------------------------------------------------------------------

    def _first(self) -> Array:
        """The passive state at the start, as stated; what is not is assembled, or as in a straight guess."""
        problem, model = self.problem, self.model
        if self.closure is not None:
            q, v = place(problem, self.closure, "start")
            return np.concatenate([q[self.passive_q], v[self.passive]])
        q = straight(problem).points[0, : model.nq]
        stated = {row.component: row.lower for row in problem.start if row.is_equation}
        speeds = [stated.get(f"v {model.speed_names[k]}", 0.0) for k in self.passive]
        return np.concatenate([q[self.passive_q], speeds])

    @cached_property
    def _pull(self) -> Array:
        """G at the start, of the passive joints."""
        assert self.closure is not None
        q, _ = place(self.problem, self.closure, "start")
        p = ca.SX(ca.DM(self.problem.parameters))
        f = ca.Function("G", [], [ca.densify(self.closure.jacobian(ca.SX(q), p))])
        G = f.call([])[0].full()[:, self.passive]
        if _rank(G) < len(G):
            raise ArgumentError(
                "solve_splines: the loops and couplings determine a driven joint "
                f"({', '.join(self.plant.controls)}); name fewer in `actuated`"
            )
        return G

    def _open(self, stated: set[str]) -> list[int]:
        """What is not stated at the start, and not determined by loops either."""
        free = [k for k, name in enumerate(self.passive_names) if name not in stated]
        if self.closure is None:
            return free
        G, half = self._pull, len(self.passive)
        kept: list[int] = []
        for block in (range(half), range(half, 2 * half)):
            own = [k - block.start for k in free if k in block]
            for i, k in enumerate(own):
                # the others can close everything without it
                others = [j for j in own[i + 1 :] + [k for k in range(half) if k not in own]]
                if _rank(G[:, others]) == len(G):
                    kept.append(block.start + k)
        return kept

    def _rows(self, which: str, rows: list[Row]) -> list[Row]:
        """Conditions at an end that are not kept anyway: by the passive state at the start, or through loops."""
        at_start = which == "start"
        if self.closure is None:
            return [r for r in rows if not (at_start and r.is_equation and r.component in self.passive_names)]
        x = ca.SX.sym("x", self.plant.chart.point)
        p = ca.SX.sym("p", len(self.problem.parameters))
        equations = [row for row in rows if row.is_equation]
        moment = self.problem.moment(ca.SX(1), x, ca.SX.zeros(self.m), p, ca.SX(1))
        values = ca.vertcat(ca.SX(0, 1), *(row.value(moment) for row in equations))
        names, _ = conditions(self.problem, self.plant, which, equations, values, x, p)
        if at_start:  # rows that loops do not reach stay as they are
            still = np.tile(np.abs(self._pull).max(axis=0) == 0, 2)
            fixed = {name for name, is_still in zip(self.passive_names, still, strict=True) if is_still}
            names = [name for name in names if name not in fixed]
        return [row for row in rows if not row.is_equation or row.name in names]

    # --- expressions ---------------------------------------------------------------------------------------------

    def _whole(self, x: ca.SX, y: ca.SX, T: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """q and v of all joints, and the accelerations of the driven ones."""
        m = self.m
        q, v = ca.SX.zeros(self.model.nq), ca.SX.zeros(self.model.nv)
        for k, (i, j) in enumerate(zip(self.driven_q, self.driven, strict=True)):
            q[i], v[j] = y[k], y[m + k] / T
        for k, i in enumerate(self.passive_q):
            q[i] = x[k]
        for k, j in enumerate(self.passive):
            v[j] = x[len(self.passive_q) + k]
        return q, v, y[2 * m : 3 * m] / T**2

    def retract(self, x: ca.SX, d: ca.SX) -> ca.SX:
        q, _, _ = self._whole(x, ca.SX.zeros(3 * self.m), ca.SX(1))
        e, half = ca.SX.zeros(self.model.nv), len(self.passive)
        for k, j in enumerate(self.passive):
            e[j] = d[k]
        moved = self.model.space.integrate(q, e)
        return ca.vertcat(
            ca.SX(0, 1), *(moved[i] for i in self.passive_q), x[len(self.passive_q) :] + d[half:]
        )

    def local(self, x: ca.SX, to: ca.SX) -> ca.SX:
        before, after = (self._whole(z, ca.SX.zeros(3 * self.m), ca.SX(1))[0] for z in (x, to))
        e, nq = self.model.space.difference(before, after), len(self.passive_q)
        return ca.vertcat(ca.SX(0, 1), *(e[j] for j in self.passive), to[nq:] - x[nq:])

    def _node(
        self, x: ca.SX, y: ca.SX, t: ca.SX, T: ca.SX, p: ca.SX
    ) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, Any]:
        """(2): speeds and accelerations of the passive ones, the cost's rate, efforts, bounded rows, the moment."""
        q, v, given = self._whole(x, y, T)
        a, u = self._hybrid(t, q, v, given, p)
        s = self.problem.moment(t, ca.vertcat(q, v), u, p, T)
        rate = ca.vertcat(ca.SX(0, 1), *(v[k] for k in self.passive), *(a[k] for k in self.passive))
        path = ca.vertcat(ca.SX(0, 1), *(row.value(s) for row in self.path_rows))
        return rate, self.problem.cost.rate(s), u, path, s

    def _hybrid(self, t: ca.SX, q: ca.SX, v: ca.SX, given: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        """All accelerations, and the efforts of the driven joints."""
        known, closure = self.plant.parameter_values(p), self.closure
        if closure is None:
            names = self.plant.controls
            found: Any = self.model.symbolic.hybrid_dynamics(
                q, v, accelerations={name: given[k] for k, name in enumerate(names)}, parameters=known
            )
            return found.accelerations, ca.vertcat(*(found.efforts[k] for k in self.driven))
        symbolic = self.plant.tree.symbolic
        free = symbolic.forward_dynamics(q, v, ca.SX.zeros(self.model.nv), parameters=known)
        G = ca.vertcat(closure.jacobian(q, p), ca.sparsify(ca.SX(np.eye(self.model.nv)[self.driven])))
        Y = symbolic.inverse_mass_matrix(q, parameters=known) @ G.T
        reactions = Factor(G @ Y).solve(ca.vertcat(closure.accelerations(t, q, v, p), given) - G @ free)
        return free + Y @ reactions, reactions[len(closure.names) :]

    def _project(self, x: ca.SX, y: ca.SX, t: ca.SX, T: ca.SX, p: ca.SX) -> ca.SX:
        """(3)"""
        closure = self.closure
        if closure is None:
            return x
        half = len(self.passive)

        def back(q: ca.SX, off: ca.SX) -> ca.SX:
            G = closure.jacobian(q, p)[:, self.passive]
            return G.T @ Factor(G @ G.T).solve(off)

        for _ in range(NEWTON):
            q, _, _ = self._whole(x, y, T)
            step = back(q, closure.residual(t, q, p))
            x = self.retract(x, ca.vertcat(-step, ca.SX.zeros(half)))
        q, v, _ = self._whole(x, y, T)
        step = back(q, closure.jacobian(q, p) @ v - closure.speeds(t))
        return self.retract(x, ca.vertcat(ca.SX.zeros(half), -step))

    def _step(
        self, x: ca.SX, y: ca.SX, fraction: ca.SX, T: ca.SX, p: ca.SX
    ) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        """The passive state after a step, its cost, and efforts and bounded rows where it begins."""
        m, N, half = self.m, self.steps, len(self.passive)
        d, own = ca.SX.sym("d", self.n), ca.SX.sym("own", 3 * m)
        here, s = ca.SX.sym("here", len(self.first)), ca.SX.sym("s")
        rate, cost, u, path, _ = self._node(self.retract(here, d), own, s * T, T, p)
        turn = ca.SX.zeros(self.model.nv)
        speeds = ca.SX.zeros(self.model.nv)
        for k, j in enumerate(self.passive):
            turn[j], speeds[j] = d[k], rate[k]
        charted = self.model.space.chart_rate(turn, speeds)
        slope = ca.vertcat(ca.SX(0, 1), *(charted[j] for j in self.passive), rate[half:])
        free = [d, own, s, here, T, p]
        g = ca.Function("g", free, [slope, cost, u, path])
        first, middle, last = (y[3 * m * k : 3 * m * (k + 1)] for k in range(3))
        points = [(first, 0.0), (middle, 0.5 / N), (middle, 0.5 / N), (last, 1 / N)]

        def at(i: int, moved: ca.SX) -> Any:
            own, share = points[i]
            return g(parts(moved)[0], own, fraction + share, x, T, p)

        def parts(moved: ca.SX) -> Any:
            """Of the state, and of the cost."""
            return ca.vertsplit(moved, [0, self.n, self.n + 1])

        state, total = parts(classical_step(lambda i, d: ca.vertcat(*at(i, d)[:2]), T / N, self.n + 1))
        *_, u, path = at(0, ca.SX.zeros(self.n + 1))
        after = self._project(self.retract(x, state), last, (fraction + 1 / N) * T, T, p)
        return after, total, u, path

    def _symbols(self) -> None:
        """The functions that do not involve derivatives of steps."""
        x, y = ca.SX.sym("x", len(self.first)), ca.SX.sym("y", 9 * self.m)
        fraction, T, p = ca.SX.sym("fraction"), ca.SX.sym("T"), ca.SX.sym("p", len(self.problem.parameters))
        place = [x, y, fraction, T, p]
        e, own, zero = ca.SX.sym("e", self.n), ca.SX.sym("own", 3 * self.m), ca.SX.zeros(self.n)
        self.step = ca.Function("spline_step", place, [ca.densify(w) for w in self._step(*place)])
        self._forward = StageLoop(self.step, [0, 0, 0, SHARED, SHARED, 1, 0, 0, 0], backward=False)

        def at(t: ca.SX, rows: Any) -> Callable[..., list[Array]]:
            _, _, u, path, s = self._node(self.retract(x, e), own, t, T, p)
            value = rows(u, path, s)
            J = ca.jacobian(value, ca.vertcat(e, own, T, p))
            results = [ca.densify(ca.substitute(w, e, zero)) for w in (value, J)]
            return _at_once(ca.Function("node", [x, own, T, p], results))

        def end(u: ca.SX, path: ca.SX, s: Any) -> ca.SX:
            return ca.vertcat(self.problem.cost.final(s), u, path, *(row.value(s) for row in self.end_rows))

        self._end = at(T, end)
        self._start = at(ca.SX(0), lambda _u, _p, s: column(row.value(s) for row in self.start_rows))
        d, here = ca.SX.sym("d", len(self.open)), ca.SX.sym("here", len(self.first))
        moved = ca.SX.zeros(self.n)
        for k, j in enumerate(self.open):
            moved[j] = d[k]
        first = self._project(self.retract(ca.SX(self.first), moved), own, ca.SX(0), T, p)
        J = ca.substitute(ca.jacobian(self.local(here, first), ca.vertcat(d, own, T, p)), here, first)
        self._begin = _at_once(ca.Function("begin", [d, own, T, p], [ca.densify(first), ca.densify(J)]))


def _rank(G: Array) -> int:
    return int(np.linalg.matrix_rank(G, tol=1e-9 * max(np.abs(G).max(initial=0.0), 1e-300)))


def _only_bounds(rows: list[Row]) -> None:
    for row in rows:
        if row.is_equation:
            raise UnsupportedError(
                f"solve_splines: {row.name!r} is to have one value all along, which a few control points cannot keep at "
                "every node; use problem.solve()"
            )


def _coordinates(problem: Problem) -> dict[int, int]:
    """The coordinate of each driven degree of freedom."""
    model, found = problem.model, {}
    assert model is not None
    assert isinstance(problem.plant, Mechanics)
    for owner in model.space:
        for k in range(owner.v.start, owner.v.stop):
            if k not in problem.plant.driven:
                continue
            if not owner.type.is_vector_space:
                raise UnsupportedError(
                    f"solve_splines: the driven joint {owner.name!r} is {type(owner.type).__name__}, and B-splines are "
                    "for joints whose coordinates are plain numbers; use problem.solve()"
                )
            found[k] = owner.q.start + k - owner.v.start
    return found
