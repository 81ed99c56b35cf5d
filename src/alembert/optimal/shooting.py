"""The motion that B-splines of the driven joints give, and its derivatives along their control points.

The driven coordinates are splines in s = t/T, and with them their speeds and accelerations (Sohl and Bobrow 2001,
section 5):

    q_a = sum_i B_i(s) c_i,   v_a = sum_i B_i'(s) c_i / T,   a_a = sum_i B_i''(s) c_i / T^2              (1)

Hybrid dynamics gives the accelerations of the others, on which no effort acts, and the efforts of the driven ones:

    (a_p, tau_a) = hybrid(q, v, a_a, tau_p = 0)                                                        (2)

The passive state x = (q_p, v_p) and the running cost are integrated by Runge and Kutta's method of order 4,
x_{k+1} = f(x_k, y_k, T), where y_k are the sums of (1) at the two ends and the middle of step k. With the unknowns
z = (c, T), the derivative of the motion follows from the exact derivatives of the steps:

    X_{k+1} = df/dx X_k + df/dy Y_k + df/dT,   X_k = dx_k/dz,   Y_k = dy_k/dz,   X_0 = 0               (3)

Passive joints may move on manifolds: X_k are tangent vectors there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from scipy.interpolate import BSpline

from alembert.engine.stage_loop import SHARED, StageLoop
from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal.plant import Mechanics
from alembert.optimal.problem import Problem, Row
from alembert.simulate.tangent import SymbolicManifold

Array = np.ndarray


@dataclass(frozen=True)
class Value:
    """A motion, what it costs, and the rows of its conditions; each with its derivative along z."""

    cost: float
    cost_slope: Array
    start: Array
    start_slope: Array
    end: Array
    end_slope: Array
    path: Array
    """(N + 1, rows)"""
    path_slope: Array
    x: Array
    """(N + 1, passive point)"""
    controls: Array
    """(N + 1, m)"""
    controls_slope: Array


class Shooting:
    """(1)-(3) for `problem` on `steps` intervals."""

    def __init__(self, problem: Problem, steps: int, control_points: int, degree: int) -> None:
        self.problem, self.steps = problem, steps
        self.control_points, self.degree = control_points, degree
        _check(problem)
        assert isinstance(problem.plant, Mechanics)
        self.plant = problem.plant
        self.model = model = problem.plant.model
        self._manifold = SymbolicManifold(model)
        self.driven = list(self.plant.driven)
        coordinate = _coordinates(problem)
        self.passive = [k for k in range(model.nv) if k not in self.driven]
        self.driven_q = [coordinate[k] for k in self.driven]
        self.passive_q = [k for k in range(model.nq) if k not in self.driven_q]
        self.m, self.n = len(self.driven), 2 * len(self.passive)
        self.first = self._first()
        self.knots = np.concatenate(
            [np.zeros(degree), np.linspace(0, 1, control_points - degree + 1), np.ones(degree)]
        )
        self.basis = np.stack([self.spline(np.arange(2 * steps + 1) / (2 * steps), nu) for nu in range(3)])
        """(3, 2 N + 1, control points): B, B' and B'' at nodes and middles"""
        self.path_rows: list[Row] = [*problem.limits["state"], *problem.limits["control"], *problem.path]
        names = [f"{what} {model.speed_names[k]}" for k in self.passive for what in "qv"]
        self.start_rows = [row for row in problem.start if row.component not in names]
        self.end_rows = list(problem.end)
        self._build()

    @property
    def unknowns(self) -> int:
        return self.m * self.control_points + self.problem.is_free

    def spline(self, s: Array, derivative: int = 0) -> Array:
        """(len(s), control points): the basis of (1)."""
        full = BSpline(self.knots, np.eye(self.control_points), self.degree)
        return np.asarray(full(s, derivative))

    def split(self, z: Array) -> tuple[Array, float]:
        """Control points (m, control points) and the duration."""
        size = self.m * self.control_points
        c = np.asarray(z[:size], dtype=float).reshape(self.m, self.control_points)
        return c, float(z[size]) if self.problem.is_free else self.problem.shortest

    def configurations(self, z: Array, x: Array) -> tuple[Array, Array]:
        """q and v of all joints at the nodes."""
        c, T = self.split(z)
        B, rate = self.basis[0, ::2], self.basis[1, ::2]
        q, v = np.empty((self.steps + 1, self.model.nq)), np.empty((self.steps + 1, self.model.nv))
        q[:, self.driven_q], v[:, self.driven] = B @ c.T, rate @ c.T / T
        q[:, self.passive_q], v[:, self.passive] = np.split(x, [len(self.passive_q)], axis=1)
        return q, v

    def evaluate(self, z: Array) -> Value:
        """The motion of z; one that runs away has values that are not finite."""
        with np.errstate(all="ignore"):
            return self._evaluate(z)

    def _evaluate(self, z: Array) -> Value:
        N, m, n, K = self.steps, self.m, self.n, self.control_points
        c, T = self.split(z)
        p = self.problem.parameters
        sums = np.concatenate([b @ c.T for b in self.basis], axis=1)  # (2 N + 1, 3 m)
        y = np.ascontiguousarray(np.concatenate([sums[0:-1:2], sums[1::2], sums[2::2]], axis=1))
        rows = n + 1 + m + len(self.path_rows)
        x = np.empty((N + 1, len(self.first)))
        x[0] = self.first
        cost, controls, path = np.empty((N, 1)), np.empty((N, m)), np.empty((N, len(self.path_rows)))
        J = np.empty((N, rows, n + 9 * m + 1))
        fraction, span = np.arange(N) / N, np.array([T])
        self._loop(N, x, y, fraction, span, p, x, cost, controls, path, J)

        own = J[:, :, n:-1].reshape(N, rows, 9, m).transpose(0, 1, 3, 2)
        at = self.basis[:, :-1:2], self.basis[:, 1::2], self.basis[:, 2::2]
        B = np.concatenate(at).transpose(1, 0, 2)  # (N, 9, K)
        D = np.matmul(own.reshape(N, rows * m, 9), B).reshape(N, rows, m * K)
        if self.problem.is_free:
            D = np.concatenate([D, J[:, :, -1:]], axis=2)
        X = np.zeros((N + 1, n, self.unknowns))
        for k in range(N if n else 0):
            X[k + 1] = J[k, :n, :n] @ X[k] + D[k, :n]
        slopes = np.matmul(J[:, n:, :n], X[:-1]) + D[:, n:]

        last, last_slope = self._at_node(self._end, x[-1], sums[-1], T, X[-1], -1)
        first, first_slope = self._at_node(self._start, x[0], sums[0], T, X[0], 0)
        r = len(self.path_rows)
        return Value(
            cost=float(cost.sum() + last[0]),
            cost_slope=slopes[:, 0].sum(axis=0) + last_slope[0],
            start=first,
            start_slope=first_slope,
            end=last[1 + m + r :],
            end_slope=last_slope[1 + m + r :],
            path=np.concatenate([path, last[None, 1 + m : 1 + m + r]]),
            path_slope=np.concatenate([slopes[:, 1 + m :], last_slope[None, 1 + m : 1 + m + r]]),
            x=x,
            controls=np.concatenate([controls, last[None, 1 : 1 + m]]),
            controls_slope=np.concatenate([slopes[:, 1 : 1 + m], last_slope[None, 1 : 1 + m]]),
        )

    def _at_node(
        self, function: ca.Function, x: Array, y: Array, T: float, X: Array, node: int
    ) -> tuple[Array, Array]:
        value, J = (found.full() for found in function(x, y, T, self.problem.parameters))
        n, m = self.n, self.m
        own = J[:, n:-1].reshape(len(J), 3, m).transpose(0, 2, 1)
        D = (own @ self.basis[:, node]).reshape(len(J), -1)
        if self.problem.is_free:
            D = np.concatenate([D, J[:, -1:]], axis=1)
        return value[:, 0], J[:, :n] @ X + D

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

    def _retract(self, x: ca.SX, d: ca.SX) -> ca.SX:
        q, _, _ = self._whole(x, ca.SX.zeros(3 * self.m), ca.SX(1))
        e, half = ca.SX.zeros(self.model.nv), len(self.passive)
        for k, j in enumerate(self.passive):
            e[j] = d[k]
        moved = self._manifold.integrate(q, e)
        return ca.vertcat(
            ca.SX(0, 1), *(moved[i] for i in self.passive_q), x[len(self.passive_q) :] + d[half:]
        )

    def _local(self, x: ca.SX, to: ca.SX) -> ca.SX:
        before, after = (self._whole(z, ca.SX.zeros(3 * self.m), ca.SX(1))[0] for z in (x, to))
        e, nq = self._manifold.difference(before, after), len(self.passive_q)
        return ca.vertcat(ca.SX(0, 1), *(e[j] for j in self.passive), to[nq:] - x[nq:])

    def _node(
        self, x: ca.SX, y: ca.SX, t: ca.SX, T: ca.SX, p: ca.SX
    ) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, Any]:
        """(2): speeds and accelerations of the passive ones, the cost's rate, efforts, bounded rows, the moment."""
        q, v, a = self._whole(x, y, T)
        names = self.plant.controls
        given: dict[str, Any] = {"parameters": p} if self.model.parameters else {}
        found = self.model.symbolic.hybrid_dynamics(
            q, v, accelerations={name: a[k] for k, name in enumerate(names)}, **given
        )
        u = ca.vertcat(*(found.efforts[k] for k in self.driven))
        s = self.problem.moment(t, ca.vertcat(q, v), u, p, T)
        rate = ca.vertcat(
            ca.SX(0, 1), *(v[k] for k in self.passive), *(found.accelerations[k] for k in self.passive)
        )
        path = ca.vertcat(ca.SX(0, 1), *(row.value(s) for row in self.path_rows))
        return rate, self.problem.cost.rate(s), u, path, s

    def _build(self) -> None:
        m, n, N = self.m, self.n, self.steps
        x, y = ca.SX.sym("x", len(self.first)), ca.SX.sym("y", 9 * m)
        fraction, T, p = ca.SX.sym("fraction"), ca.SX.sym("T"), ca.SX.sym("p", len(self.problem.parameters))
        d, e, own = ca.SX.sym("d", n), ca.SX.sym("e", n), ca.SX.sym("own", 3 * m)
        zero, half = ca.SX.zeros(n), len(self.passive)

        rate, cost, u, path, _ = self._node(self._retract(x, d), own, fraction * T, T, p)
        turn = ca.SX.zeros(self.model.nv)
        speeds = ca.SX.zeros(self.model.nv)
        for k, j in enumerate(self.passive):
            turn[j], speeds[j] = d[k], rate[k]
        charted = self._manifold.chart_rate(turn, speeds)
        slope = ca.vertcat(ca.SX(0, 1), *(charted[j] for j in self.passive), rate[half:])
        g = ca.Function("g", [d, own, fraction, x, T, p], [slope, cost, u, path])
        h, moved = T / N, self._retract(x, e)
        places = [y[3 * m * k : 3 * m * (k + 1)] for k in range(3)]
        one, c1, u, path = g(zero, places[0], fraction, moved, T, p)
        two, c2, _, _ = g(h / 2 * one, places[1], fraction + 0.5 / N, moved, T, p)
        three, c3, _, _ = g(h / 2 * two, places[1], fraction + 0.5 / N, moved, T, p)
        four, c4, _, _ = g(h * three, places[2], fraction + 1 / N, moved, T, p)
        after = self._retract(moved, h / 6 * (one + 2 * two + 2 * three + four))
        cost = h / 6 * (c1 + 2 * c2 + 2 * c3 + c4)
        here = ca.SX.sym("here", len(self.first))
        J = ca.jacobian(ca.vertcat(self._local(here, after), cost, u, path), ca.vertcat(e, y, T))
        after, cost, u, path = (ca.substitute(w, e, zero) for w in (after, cost, u, path))
        J = ca.substitute(ca.substitute(J, e, zero), here, after)
        results = [ca.densify(w) for w in (after, cost, u, path, J)]
        function = ca.Function("spline_step", [x, y, fraction, T, p], results)
        self._loop = StageLoop(function, [0, 0, 0, SHARED, SHARED, 1, 0, 0, 0, 0], backward=False)

        def at(t: ca.SX, rows: Any) -> ca.Function:
            _, _, u, path, s = self._node(self._retract(x, e), own, t, T, p)
            value = rows(u, path, s)
            J = ca.jacobian(value, ca.vertcat(e, own, T))
            results = [ca.densify(ca.substitute(w, e, zero)) for w in (value, J)]
            return ca.Function("node", [x, own, T, p], results)

        def end(u: ca.SX, path: ca.SX, s: Any) -> ca.SX:
            return ca.vertcat(self.problem.cost.final(s), u, path, *(row.value(s) for row in self.end_rows))

        self._end = at(T, end)
        self._start = at(ca.SX(0), lambda _u, _p, s: _stack(row.value(s) for row in self.start_rows))

    def _first(self) -> Array:
        """Where the passive joints start, which has to be stated."""
        from alembert.optimal.guess import straight

        model, stated = self.model, {r.component: r for r in self.problem.start if r.is_equation}
        for k in self.passive:
            for what in "qv":
                if f"{what} {model.speed_names[k]}" not in stated:
                    raise ArgumentError(
                        f"solve_splines: the start does not fix {what!r} of {model.speed_names[k]!r}, which is not "
                        "driven; it is integrated from the start, so state its value in `start`"
                    )
        q = straight(self.problem).points[0, : model.nq]
        v = [stated[f"v {model.speed_names[k]}"].lower for k in self.passive]
        return np.concatenate([q[self.passive_q], v])


def _stack(rows: Any) -> ca.SX:
    return ca.vertcat(ca.SX(0, 1), *rows)


def _coordinates(problem: Problem) -> dict[int, int]:
    """The coordinate of each driven degree of freedom."""
    model, found = problem.model, {}
    assert model is not None
    assert isinstance(problem.plant, Mechanics)
    for joint, sq, sv in zip(model.joints, model._q_slices, model._v_slices, strict=True):
        for k in range(sv.start, sv.stop):
            if k not in problem.plant.driven:
                continue
            if not joint.type.is_vector_space:
                raise UnsupportedError(
                    f"solve_splines: the driven joint {joint.name!r} is {type(joint.type).__name__}, and B-splines are "
                    "for joints whose coordinates are plain numbers; use problem.solve()"
                )
            found[k] = sq.start + k - sv.start
    return found


def _check(problem: Problem) -> None:
    """Refuse what splines do not cover."""
    if problem.model is None:
        raise UnsupportedError("solve_splines: splines are for models, not for a System; use problem.solve()")
    reasons = [
        ("a periodic motion", problem.periodic),
        (
            "limits on the rate of a control",
            any(np.isfinite(bound) for pair in problem.rates for bound in pair),
        ),
        (
            "limits that leave one value only",
            any(row.is_equation for kind in problem.limits.values() for row in kind),
        ),
    ]
    for what, given in reasons:
        if given:
            raise UnsupportedError(
                f"solve_splines: splines and {what} do not go together; use problem.solve()"
            )
