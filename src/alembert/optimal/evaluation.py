"""The functions of all stages at once: stages are the lanes of compiled kernels.

`condensed` is the linear-quadratic problem of a Newton step, with z eliminated in every stage: from (1) of
`alembert.optimal.stages`,

    dz = z_0 + Z_x dx + Z_u du,    G = dc/dz,    z_0 = -G^-1 c,    Z = -G^-1 dc/d(x, u)              (1)

The multipliers of c are those that make the Lagrangian stationary in z,

    nu = -G^-T (l_z + f_z' lambda + d_z' y)                                                       (2)

so they need no place among the unknowns. Points are on manifolds: derivatives are with respect to tangent vectors at the
present point, and f is seen from the present next point, in its chart: r = local(x_{k+1}, f).

Bounds have slacks s within (lower, upper) and multipliers low, high; y = high - low, and

    weight = low / (s - lower) + high / (upper - s)                                               (3)
    push = mu / (upper - s) - mu / (s - lower) + weight (d - s)                                   (4)

`condensed` adds D' weight D to the Hessian; D' push is added by the sweep, since mu may change before. Bounds
at infinity come as numbers of any size with a mark 0 (`has_lower`, `has_upper`); where there is a bound the
mark is 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from alembert.engine.kernel import Argument, Kernel
from alembert.engine.source import FunctionSource
from alembert.optimal.stages import Stages

Array = np.ndarray
Graph = Callable[[dict[str, ca.SX]], list[ca.SX]]
MOST_KERNELS = 200
_KERNELS: dict[str, Kernel] = {}
"""by content: problems that differ in numbers only share them"""


class Evaluation:
    """Compiled functions of `stages`; with `exact` the Hessian has the curvature of the constraints.

    Kernels with all stages as lanes: `condensed`, `trial`, `steps`, `measure`, `push`; for one point: `start`,
    `end`, `end_trial`.
    """

    def __init__(self, stages: Stages, *, exact: bool) -> None:
        self.stages, self.exact = stages, exact
        n, m, nz, nd = stages.sizes
        point = stages.chart.point
        digest = hashlib.sha256(stages.stage.serialize().encode()).hexdigest()
        model = stages.chart.model
        name = model.fingerprint if model is not None else ""
        self._key = f"optimal {exact} {name} {stages.chart.rest} {digest}"
        self.sizes = sizes = {
            **{"x": point, "u": m, "z": nz, "after": point, "s": 3, "p": len(stages.problem.parameters)},
            **{
                "costate": n,
                "scale": 1,
                "alpha": 1,
                "mu": 1,
                "dx": n,
                "du": m,
                "dz": nz,
                "ds": nd,
                "dafter": n,
            },
            **{"d": nd, "push": nd, "slack": nd, "low": nd, "high": nd, "lower": nd, "upper": nd},
            **{"has_lower": nd, "has_upper": nd, "slope_x": n, "slope_u": m, "g": n + m + nz},
            **{"Z": (nz, 1 + n + m), "D": (nd, 1 + n + m)},
        }
        del sizes
        bounds = ("slack", "low", "high", "lower", "upper", "has_lower", "has_upper")
        place = ("x", "u", "z", "after", "s", "p")
        self.condensed = self._kernel(
            "condensed",
            (*place, "costate", "scale", *bounds),
            {
                **{"A": (n, n), "B": (n, m), "b": (n,), "Q": (n, n), "N": (n, m), "R": (m, m), "q": (n,)},
                **{"r": (m,), "slope_x": (n,), "slope_u": (m,), "Z": (nz, 1 + n + m), "D": (nd, 1 + n + m)},
                "g": (n + m + nz,),
            },
            self._condensed_graph,
        )
        self.trial = self._kernel(
            "trial",
            (*place, "dx", "du", "dz", "dafter", "ds", "alpha", "mu", "scale", *bounds),
            {
                **{"x_new": (point,), "u_new": (m,), "z_new": (nz,), "slack_new": (nd,), "gap": (n,)},
                **{"implicit": (nz,), "path": (nd,), "total": (4,)},
            },
            self._trial_graph,
        )
        self.steps = self._kernel(
            "steps",
            ("dx", "du", "Z", "D", "g", "d", "mu", *bounds),
            {"dz": (nz,), "ds": (nd,), "dlow": (nd,), "dhigh": (nd,), "limits": (3,)},
            self._steps_graph,
        )
        self.measure = self._kernel(
            "measure",
            ("slope_x", "slope_u", "costate", "d", *bounds),
            {"largest": (4,), "sums": (3,)},
            self._measure_graph,
        )
        self.push = self._kernel("push", ("d", "mu", *bounds), {"push": (nd,)}, self._push_graph)
        self.start, self.end, self.end_trial = self._end_kernels()

    # --- kernels ------------------------------------------------------------------------------------------------

    def _kernel(self, name: str, inputs: Any, results: Mapping[str, tuple[int, ...]], graph: Graph) -> Kernel:
        shapes = inputs if isinstance(inputs, dict) else {label: self.sizes[label] for label in inputs}
        given = {k: v if isinstance(v, tuple) else (v,) for k, v in shapes.items()}

        def build() -> FunctionSource:
            symbols = {label: ca.SX.sym(label, *shape) for label, shape in given.items()}
            found = [ca.densify(ca.SX(v)) for v in graph(symbols)]
            return FunctionSource(ca.Function(name, list(symbols.values()), found))

        key = f"{self._key} {name}"
        if key not in _KERNELS:
            if len(_KERNELS) > MOST_KERNELS:
                _KERNELS.clear()
            _KERNELS[key] = Kernel(
                f"optimal control ({name})",
                [Argument(label, shape) for label, shape in given.items()],
                [Argument(label, shape) for label, shape in results.items()],
                key=key,
                build=build,
            )
        return _KERNELS[key]

    def _end_kernels(self) -> tuple[Kernel, Kernel, Kernel]:
        stages = self.stages
        n, point, np_ = stages.chart.tangent, stages.chart.point, self.sizes["p"]
        first, last, bounded = len(stages.start_names), len(stages.end_names), len(stages.end_bounded)
        text = stages.start.serialize() + stages.end.serialize()
        self._key += hashlib.sha256(text.encode()).hexdigest()
        place = {"x": point, "s": 3, "p": np_}

        def moved(g: dict[str, ca.SX], which: str) -> tuple[ca.SX, ...]:
            d = ca.SX.sym("d", n)
            x = stages.chart.retract(g["x"], d)
            found = stages.start(x, g["s"], g["p"]) if which == "start" else stages.end(x, g["s"], g["p"])
            return (d, *(found if isinstance(found, tuple) else (found,)))

        def still(d: ca.SX, results: list[ca.SX], g: dict[str, ca.SX]) -> list[ca.SX]:
            f = ca.Function("still", [d, *g.values()], results)
            return list(f.call([ca.DM.zeros(n), *g.values()]))

        def start(g: dict[str, ca.SX]) -> list[ca.SX]:
            d, equations = moved(g, "start")
            curvature = ca.hessian(ca.dot(g["sigma"], equations), d)[0]
            return still(d, [equations, ca.jacobian(equations, d), curvature], g)

        def end(g: dict[str, ca.SX]) -> list[ca.SX]:
            d, cost, equations, rows = moved(g, "end")
            cost = cost * g["scale"]
            lagrangian = cost + ca.dot(g["eta"], equations) + ca.dot(g["y"], rows)
            results = [cost, equations, rows, ca.gradient(cost, d), ca.jacobian(equations, d)]
            return still(d, [*results, ca.jacobian(rows, d), ca.hessian(lagrangian, d)[0]], g)

        def trial(g: dict[str, ca.SX]) -> list[ca.SX]:
            x = stages.chart.retract(g["x"], g["alpha"] * g["dx"])
            cost, equations, rows = stages.end(x, g["s"], g["p"])
            return [x, g["scale"] * cost, equations, rows]

        values = {"cost": (1,), "equations": (last,), "bounded": (bounded,)}
        return (
            self._kernel(
                "start",
                place | {"sigma": first},
                {"equations": (first,), "C": (first, n), "H": (n, n)},
                start,
            ),
            self._kernel(
                "end",
                place | {"eta": last, "y": bounded, "scale": 1},
                values | {"gradient": (n,), "C": (last, n), "D": (bounded, n), "H": (n, n)},
                end,
            ),
            self._kernel(
                "end_trial", place | {"dx": n, "alpha": 1, "scale": 1}, {"x_new": (point,)} | values, trial
            ),
        )

    # --- graphs -------------------------------------------------------------------------------------------------

    def _trial_graph(self, g: dict[str, ca.SX]) -> list[ca.SX]:
        chart = self.stages.chart
        x = chart.retract(g["x"], g["alpha"] * g["dx"])
        after = chart.retract(g["after"], g["alpha"] * g["dafter"])
        u, z = g["u"] + g["alpha"] * g["du"], g["z"] + g["alpha"] * g["dz"]
        slack = g["slack"] + g["alpha"] * g["ds"]
        found, cost, implicit, path = self.stages.stage(x, u, z, g["s"], g["p"])
        gap = chart.local(after, found)
        barrier = ca.SX(0)
        for k in range(slack.numel()):
            below, above = slack[k] - g["lower"][k], g["upper"][k] - slack[k]
            barrier -= ca.if_else(g["has_lower"][k], ca.log(below), 0)
            barrier -= ca.if_else(g["has_upper"][k], ca.log(above), 0)
        residuals = ca.vertcat(gap, implicit, path - slack)
        size, worst = ca.SX(0), ca.SX(0)
        for k in range(residuals.numel()):
            size += ca.fabs(residuals[k])
            worst = ca.fmax(worst, ca.fabs(residuals[k]))
        total = ca.vertcat(size, g["scale"] * cost + g["mu"] * barrier, cost, worst)
        return [x, u, z, slack, gap, implicit, path, total]

    def _steps_graph(self, g: dict[str, ca.SX]) -> list[ca.SX]:
        w = ca.vertcat(1, g["dx"], g["du"])
        dz = g["Z"] @ w
        ds = g["D"] @ w + g["d"] - g["slack"]
        primal, dual, barrier = ca.SX(1e300), ca.SX(1e300), ca.SX(0)
        dlow, dhigh = [], []
        for k in range(ds.numel()):
            below, above = g["slack"][k] - g["lower"][k], g["upper"][k] - g["slack"][k]
            low, high, move = g["low"][k], g["high"][k], ds[k]
            one = ca.if_else(g["has_lower"][k], (g["mu"] - low * move) / below - low, 0)
            two = ca.if_else(g["has_upper"][k], (g["mu"] + high * move) / above - high, 0)
            dlow.append(one)
            dhigh.append(two)
            for mark, room, change in (("has_lower", below, move), ("has_upper", above, -move)):
                limit = ca.if_else(ca.logic_and(g[mark][k], change < 0), -room / change, 1e300)
                primal = ca.fmin(primal, limit)
                barrier -= ca.if_else(g[mark][k], change / room, 0)
            for mark, room, change in (("has_lower", low, one), ("has_upper", high, two)):
                dual = ca.fmin(dual, ca.if_else(ca.logic_and(g[mark][k], change < 0), -room / change, 1e300))
        slope = ca.dot(g["g"], ca.vertcat(g["dx"], g["du"], dz)) + g["mu"] * barrier
        return [dz, ds, _column(dlow), _column(dhigh), ca.vertcat(primal, dual, slope)]

    def _measure_graph(self, g: dict[str, ca.SX]) -> list[ca.SX]:
        along, other = g["slope_x"] - g["costate"], g["slope_u"]
        slope, noise, most, least = ca.SX(0), ca.SX(0), ca.SX(-1e300), ca.SX(-1e300)
        total, bounds, together = ca.SX(0), ca.SX(0), ca.SX(0)
        for entry in (*ca.vertsplit(along), *ca.vertsplit(other)):
            slope = ca.fmax(slope, ca.fabs(entry))
            together += ca.fabs(entry)  # shows what is not finite
        for entry in ca.vertsplit(g["costate"]):
            total += ca.fabs(entry)
        for k in range(g["slack"].numel()):
            below, above = g["slack"][k] - g["lower"][k], g["upper"][k] - g["slack"][k]
            weight = _weight(g, k)
            noise = ca.fmax(noise, weight * ca.fabs(g["d"][k]))
            for mark, room, z in (("has_lower", below, g["low"][k]), ("has_upper", above, g["high"][k])):
                there = g[mark][k]
                most = ca.fmax(most, ca.if_else(there, room * z, -1e300))
                least = ca.fmax(least, ca.if_else(there, -room * z, -1e300))
                bounds += ca.if_else(there, z, 0)
        return [ca.vertcat(slope, noise, most, least), ca.vertcat(total, bounds, together)]

    def _push_graph(self, g: dict[str, ca.SX]) -> list[ca.SX]:
        rows = []
        for k in range(g["slack"].numel()):
            below, above = g["slack"][k] - g["lower"][k], g["upper"][k] - g["slack"][k]
            push = _weight(g, k) * (g["d"][k] - g["slack"][k])
            push += ca.if_else(g["has_upper"][k], g["mu"] / above, 0)
            rows.append(push - ca.if_else(g["has_lower"][k], g["mu"] / below, 0))
        return [_column(rows)]

    def _condensed_graph(self, g: dict[str, ca.SX]) -> list[ca.SX]:
        chart = self.stages.chart
        n, m, nz, nd = self.stages.sizes
        y = g["high"] - g["low"]
        weight = _column([_weight(g, k) for k in range(nd)])
        dx, nu = ca.SX.sym("dx", n), ca.SX.sym("nu", nz)
        w = ca.vertcat(dx, g["u"], g["z"])
        after, cost, implicit, path = self.stages.stage(
            chart.retract(g["x"], dx), g["u"], g["z"], g["s"], g["p"]
        )
        gap = chart.local(g["after"], after)
        cost = cost * g["scale"]
        first = [ca.gradient(cost, w), *(ca.jacobian(f, w) for f in (gap, implicit, path))]
        lagrangian = cost
        if self.exact:
            lagrangian += ca.dot(g["costate"], gap) + ca.dot(nu, implicit) + ca.dot(y, path)
        second = ca.hessian(lagrangian, w)[0]
        order = list(g.values())
        f = ca.Function("first", [dx, *order], [gap, implicit, path, *first])
        h = ca.Function("second", [dx, nu, *order], [second])
        zero = ca.DM.zeros(n)
        gap, implicit, path, slope, F, C, D = f(zero, *order)
        fixed = n + m
        along_z = slope + F.T @ g["costate"] + D.T @ y
        if nz:
            Q, R = ca.qr(C[:, fixed:])
            lower = ca.densify(R).T
            nus = -Q @ _forward(lower, along_z[fixed:])
            Z = -_backward(ca.densify(R), Q.T @ ca.horzcat(implicit, C[:, :fixed]))
        else:
            nus, Z = ca.SX(0, 1), ca.SX(0, 1 + fixed)
        H = h(zero, nus, *order)
        slopes = along_z[:fixed] + C[:, :fixed].T @ nus
        H = H + D.T @ (ca.repmat(weight, 1, fixed + nz) * D)
        z0, Zw = Z[:, 0], Z[:, 1:]
        Hw, Hz, Hzz = H[:fixed, :fixed], H[fixed:, :fixed], H[fixed:, fixed:]
        cross = Hzz @ Zw + Hz
        reduced = Hw + Hz.T @ Zw + Zw.T @ cross
        # H is symmetric: H_wz Z + Z' H_zw + Z' H_zz Z
        linear = slope[:fixed] + Zw.T @ slope[fixed:] + cross.T @ z0
        moved = F[:, :fixed] + F[:, fixed:] @ Zw
        along = ca.horzcat(D[:, fixed:] @ z0, D[:, :fixed] + D[:, fixed:] @ Zw)
        reduced = ca.tril2symm(ca.tril(reduced))
        return [
            moved[:, :n],
            moved[:, n:],
            gap + F[:, fixed:] @ z0,
            reduced[:n, :n],
            reduced[:n, n:],
            reduced[n:, n:],
            linear[:n],
            linear[n:],
            slopes[:n],
            slopes[n:],
            Z,
            along,
            slope,
        ]


def _column(rows: list[ca.SX]) -> ca.SX:
    return ca.vertcat(ca.SX(0, 1), *rows)


def _weight(g: dict[str, ca.SX], k: int) -> ca.SX:
    """(3)"""
    below, above = g["slack"][k] - g["lower"][k], g["upper"][k] - g["slack"][k]
    return ca.if_else(g["has_lower"][k], g["low"][k] / below, 0) + ca.if_else(
        g["has_upper"][k], g["high"][k] / above, 0
    )


def _forward(L: ca.SX, b: ca.SX) -> ca.SX:
    """L^-1 b for a lower triangular matrix."""
    rows: list[ca.SX] = []
    for i in range(L.shape[0]):
        value = b[i, :]
        for j in range(i):
            value = value - L[i, j] * rows[j]
        rows.append(value / L[i, i])
    return ca.vertcat(*rows)


def _backward(R: ca.SX, b: ca.SX) -> ca.SX:
    """R^-1 b for an upper triangular matrix."""
    rows: dict[int, ca.SX] = {}
    for i in reversed(range(R.shape[0])):
        value = b[i, :]
        for j in range(i + 1, R.shape[0]):
            value = value - R[i, j] * rows[j]
        rows[i] = value / R[i, i]
    return ca.vertcat(*(rows[i] for i in range(R.shape[0])))
