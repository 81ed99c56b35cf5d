"""The functions of all stages at once: stages are the lanes of compiled kernels.

`condensed` is the linear-quadratic problem of a Newton step, with z eliminated in every stage: from (1) of
`alembert.optimal.stages`,

    dz = z_0 + Z_x dx + Z_u du,    G = dc/dz,    z_0 = -G^-1 c,    Z = -G^-1 dc/d(x, u)              (1)

The multipliers of c are those that make the Lagrangian stationary in z,

    nu = -G^-T (l_z + f_z' lambda + d_z' y)                                                       (2)

so they need no place among the unknowns. Points are on manifolds: derivatives are with respect to tangent vectors at the
present point (`alembert.optimal.plant`), and f is seen from the present next point, in its chart: r = local(x_{k+1}, f).

`condensed` adds D' weight D to the Hessian, with the weights (1) of `alembert.optimal.search_graphs`; D' push, (2) there,
is added by the sweep, since mu may change before. All derivatives, residuals and multipliers are in the units of
`alembert.optimal.scaling`, points as they are.

What an iteration wants to know of all stages together (costs, largest residuals, longest steps) is folded by
compiled loops, `fold`, from what the kernels leave in every stage.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

import casadi as ca
import numpy as np

from alembert.engine.codegen import FunctionSource
from alembert.engine.kernel import Argument, Kernel
from alembert.lowering.stage_loop import StageLoop
from alembert.optimal import search_graphs
from alembert.optimal.plant import StepTangent
from alembert.optimal.search_graphs import BOUNDS, barrier, column, weight_of
from alembert.optimal.stage_derivatives import Opened, eliminated
from alembert.optimal.stages import Stages

Array = np.ndarray
Graph = Callable[[dict[str, ca.SX]], list[ca.SX]]
MOST_KERNELS = 200
INNER = 2
"""Newton steps for z within a trial"""
LARGEST_INNER = 3000
"""operations of such a step; beyond, trials would cost more than is gained"""
CHUNK = 220
"""instructions in one function of `condensed`; with so many values in flight shorter ones are faster (measured)"""
LONGEST = 25_000
"""operations of a function; beyond, optimising its code would take longer than it saves in some hundred solves"""
LARGEST_STRAIGHT = 200_000
"""products in the elimination of z; beyond, arrays are as fast as expressions, which take seconds to be made (measured)"""
LABELS = {
    "condensed": "derivatives of a stage",
    "slopes": "derivatives of a stage",
    "second": "second derivatives of a stage",
    "ends": "derivatives of the ends",
    "trial": "functions of a stage",
}
"""what a user reads while functions are compiled"""
_KERNELS: dict[str, Kernel] = {}
"""by content: problems that differ in numbers only share them"""


class Evaluation:
    """Compiled functions of `stages`; with `exact` the Hessian has the curvature of the constraints.

    Kernels with all stages as lanes: `condensed`, `trial`, `steps`, `measure`, `push`, `barrier`, `settle`, `chart` (tangent
    vectors of steps in the coordinates of the stages' chart); for the two ends: `ends`, `ends_trial`.
    """

    def __init__(self, stages: Stages, *, exact: bool, has_ends: bool = True) -> None:
        self.stages, self.exact = stages, exact
        n, m, nz, nd = stages.sizes
        point = stages.chart.point
        digest = hashlib.sha256(stages.stage.serialize().encode()).hexdigest()
        self.tangent = StepTangent(stages.before or stages)
        self.is_plain = self.tangent.is_plain
        """whether points are moved as their chart has it"""
        self.tangent_after = StepTangent(stages.following) if stages.following is not None else self.tangent
        self._key = (
            f"optimal {exact} {self.tangent.fingerprint} {stages.chart.rest} {stages.chart.unused} "
            f"{self.tangent.name} {digest}"
        )
        if stages.following is not None:
            after, name = stages.following.chart, self.tangent_after.name
            self._key += f" to {self.tangent_after.fingerprint} {after.rest} {after.unused} {name}"
        self.sizes: dict[str, int | tuple[int, int]] = {
            **{"x": point, "u": m, "z": nz, "after": point, "s": 3, "p": len(stages.parameters)},
            **{
                "costate": n,
                "scale": 1,
                "alpha": 1,
                "inner": 1,
                "mu": 1,
                "dx": n,
                "du": m,
                "dz": nz,
                "ds": nd,
                "dafter": n,
            },
            **{
                "d": nd,
                "gained": nd,
                "push": nd,
                "slack": nd,
                "low": nd,
                "high": nd,
                "lower": nd,
                "upper": nd,
            },
            **{"has_lower": nd, "has_upper": nd, "held": nd, "slope_x": n, "slope_u": m, "g": n + m + nz},
            **{"Z": (nz, n + m), "z_0": nz, "D": (nd, n + m), "d_0": nd, "dlow": nd, "dhigh": nd, "dual": 1},
            "units": n + m + 2 * nz + nd + (n if stages.following is not None else 0),
        }
        bounds = BOUNDS
        place = ("x", "u", "z", "after", "s", "p")
        results = {
            **{"A": (n, n), "B": (n, m), "b": (n,), "Q": (n, n), "N": (n, m), "R": (m, m), "q": (n,)},
            **{"r": (m,), "slope_x": (n,), "slope_u": (m,), "Z": (nz, n + m), "z_0": (nz,)},
            **{"D": (nd, n + m), "d_0": (nd,), "g": (n + m + nz,), "G": (nz, nz), "F_z": (n, nz)},
            **{"H_z": (nz, n + m), "D_z": (nd, nz)},
        }
        self.condensed = self._kernel(
            "condensed",
            (*place, "units", "costate", "scale", *bounds),
            results,
            self._condensed_graph,
            chunk=CHUNK,
        )
        self._apart = self._condensing_kernels() if nz * nz * (n + m + nz) > LARGEST_STRAIGHT else None
        self.trial = self._kernel(
            "trial",
            (*place, "units", "dx", "du", "dz", "dafter", "ds", "alpha", "inner", "mu", "scale", *bounds),
            {
                **{"x_new": (point,), "u_new": (m,), "z_new": (nz,), "slack_new": (nd,), "gap": (n,)},
                **{"implicit": (nz,), "path": (nd,), "total": (4,)},
            },
            self._trial_graph,
        )
        self.steps = self._kernel(
            "steps",
            ("dx", "du", "Z", "z_0", "D", "d_0", "g", "d", "gained", "mu", *bounds),
            {"dz": (nz,), "ds": (nd,), "dlow": (nd,), "dhigh": (nd,), "limits": (3,)},
            search_graphs.steps,
        )
        self.measure = self._kernel(
            "measure",
            ("slope_x", "slope_u", "costate", "d", *bounds),
            {"found": (7,)},
            search_graphs.measure,
        )
        self.push = self._kernel("push", ("d", "mu", *bounds), {"push": (nd,)}, search_graphs.push)
        self.barrier = self._kernel(
            "barrier", ("mu", *bounds), {"barrier": (1,)}, lambda g: [barrier(g, g["slack"])]
        )
        self.settle = self._kernel(
            "settle",
            ("dlow", "dhigh", "alpha", "dual", "mu", *bounds),
            {"low_new": (nd,), "high_new": (nd,)},
            search_graphs.settle,
        )
        self.chart = self._kernel(
            "chart",
            ("x", "p"),
            {"J": (n, n), "inverse": (n, n)},
            lambda g: list(self.tangent.slopes(g["x"], self._own_parameters(g["p"]))),
        )
        if has_ends:
            self.ends, self.ends_trial = self.end_kernels(stages, self.tangent, self.tangent)

    @property
    def parts(self) -> tuple[Evaluation, ...]:
        """Of the stages' own parts: itself, unless there are phases."""
        return (self,)

    @property
    def opened(self) -> Opened | None:
        """The stage with symbols for accelerations, where derivatives are made of theirs."""
        opened = self.stages.opened
        return opened if opened is not None and (not self.exact or opened.has_second) else None

    def _retract(self, x: ca.SX, d: ca.SX, p: ca.SX, *, near: bool = False) -> ca.SX:
        """Points of a stage, moved; between phases p has the parameters of both."""
        return self.tangent.retract(x, d, self._own_parameters(p), near=near)

    def _own_parameters(self, p: ca.SX) -> ca.SX:
        before = self.stages.before
        return p if before is None else _first(p, len(before.parameters))

    def _after_retract(self, x: ca.SX, d: ca.SX, p: ca.SX) -> ca.SX:
        return self.tangent_after.retract(x, d, self._after_parameters(p))

    def _after_local(self, x: ca.SX, y: ca.SX, p: ca.SX) -> ca.SX:
        return self.tangent_after.local(x, y, self._after_parameters(p))

    def _after_parameters(self, p: ca.SX) -> ca.SX:
        before = self.stages.before
        return p if before is None else _rest(p, len(before.parameters))

    # --- kernels ------------------------------------------------------------------------------------------------

    def _kernel(
        self,
        name: str,
        inputs: Any,
        results: Mapping[str, tuple[int, ...]],
        graph: Graph,
        chunk: int | None = None,
    ) -> Kernel:
        shapes = inputs if isinstance(inputs, dict) else {label: self.sizes[label] for label in inputs}
        return compiled(name, f"{self._key} {name}", shapes, results, graph, chunk)

    def _condensing_kernels(self) -> tuple[Kernel, Kernel]:
        """What `alembert.optimal.stage_derivatives` takes: slopes of a stage, and second derivatives."""
        n, m, nz, nd = self.stages.sizes
        known = 0 if self.opened is None else self.opened.known_size
        fixed, place = n + m, ("x", "u", "z", "after", "s", "p", "units", "costate", "scale", *BOUNDS)
        sizes = {name: self.sizes[name] for name in place} | {"nu": nz, "known": known}

        @cache
        def near() -> tuple[ca.Function, ca.Function]:
            g = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
            here = _Near(self, {name: x for name, x in g.items() if name != "known"})
            gap, implicit, F, slope, C, D, along = here.first
            both = zip(ca.vertsplit(here.known), ca.vertsplit(g["known"]), strict=True)
            given = ca.vertcat(ca.SX(0, 1), *(x if x.is_constant() else symbol for x, symbol in both))
            right, H = ca.horzcat(implicit, C[:, :fixed]).T, here.second(g["nu"], given)
            found = [gap, right, C[:, fixed:], F[:, :fixed], F[:, fixed:], D[:, :fixed], D[:, fixed:]]
            found += [slope, along[:fixed], along[fixed:], here.known]
            bent = [H[:fixed, :fixed], H[:fixed, fixed:], H[fixed:, fixed:]]
            *places, _, _ = symbols = list(g.values())
            return ca.Function("slopes", places, found), ca.Function("second", symbols, bent)

        shapes = {
            **{"gap": (n,), "right": (1 + fixed, nz), "G": (nz, nz), "F": (n, fixed), "F_z": (n, nz)},
            **{"D": (nd, fixed), "D_z": (nd, nz), "g": (fixed + nz,), "along": (fixed,), "along_z": (nz,)},
            "known": (known,),
        }
        bent = {"H_ww": (fixed, fixed), "H_wz": (fixed, nz), "H_zz": (nz, nz)}
        return (
            self._kernel("slopes", place, shapes, lambda g: near()[0].call(list(g.values())), chunk=CHUNK),
            self._kernel("second", sizes, bent, lambda g: near()[1].call(list(g.values())), chunk=CHUNK),
        )

    def condense(
        self, count: int, given: Mapping[str, Array], left: Mapping[str, Array]
    ) -> Callable[[], None]:
        """A function that finds what `condensed` does, of `count` stages, on always the same arrays."""
        wanted = {result.name: left[result.name] for result in self.condensed.results}
        if self._apart is None:
            return bound(self.condensed, count, given, wanted)
        first, second = self._apart
        arrays = {a.name: np.zeros((count, *a.shape)) for a in (*first.results, *second.results)}
        arrays |= {name: wanted[name] for name in ("G", "F_z", "D_z", "g")}  # as they are
        arrays["nu"] = np.zeros((count, self.stages.sizes[2]))
        one, two = (bound(kernel, count, {**given, **arrays}, arrays) for kernel in (first, second))
        return eliminated(one, two, arrays, wanted)

    def end_kernels(
        self, stages: Stages, at_start: StepTangent, at_end: StepTangent
    ) -> tuple[Kernel, Kernel]:
        """Both ends in one call: functions and derivatives (`ends`), and functions at a trial (`ends_trial`)."""
        n, point, np_ = stages.chart.tangent, stages.chart.point, len(stages.parameters)
        first, last, bounded = len(stages.start_names), len(stages.end_names), len(stages.end_bounded)
        text = stages.start.serialize() + stages.end.serialize()
        self._key += (
            f"{hashlib.sha256(text.encode()).hexdigest()} {at_start.name} {at_end.name} {at_end.fingerprint}"
        )
        place = {"x_0": point, "s_0": 3, "x": point, "s": 3, "p": np_, "scale": 1}
        place |= {"units": 2 * n + first + last + bounded}
        bounds = dict.fromkeys(BOUNDS, bounded)

        def functions(
            g: dict[str, ca.SX], start: ca.SX, end: ca.SX, *, near: bool = False
        ) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX]:
            """Points moved by tangent vectors in units: there the start, the end, its cost, equations and rows in units."""
            units_0, units, of_start, of_end, of_rows = ca.vertsplit(
                g["units"], np.cumsum([0, n, n, first, last, bounded]).tolist()
            )
            p_0, p = stages.parameters_at_ends(g["p"])
            starts = stages.start(
                at_start.retract(g["x_0"], units_0 * start, p_0, near=near), g["s_0"], g["p"]
            )
            x = at_end.retract(g["x"], units * end, p, near=near)
            cost, equations, rows = stages.end(x, g["s"], g["p"])
            return x, starts / of_start, cost, equations / of_end, rows / of_rows

        def ends(g: dict[str, ca.SX]) -> list[ca.SX]:
            d = ca.SX.sym("d", n)
            _, starts, cost, equations, rows = functions(g, d, d, near=True)
            cost = cost * g["scale"]
            y = g["high"] - g["low"]
            lagrangian = cost + ca.dot(g["eta"], equations) + ca.dot(y, rows)
            results = [starts, ca.jacobian(starts, d), ca.hessian(ca.dot(g["sigma"], starts), d)[0], rows]
            results += [equations, ca.gradient(cost, d), ca.jacobian(equations, d), ca.jacobian(rows, d)]
            still = ca.Function("still", [d, *g.values()], [*results, ca.hessian(lagrangian, d)[0]])
            c_0, C_0, H_0, rows, c, slope, C, D, H = still.call([ca.DM.zeros(n), *g.values()])
            weight = column([weight_of(g, k) for k in range(bounded)])
            H = H + D.T @ (ca.repmat(weight, 1, n) * D)
            finally_ = slope + C.T @ g["eta"] + D.T @ y - g["costate"]
            first_ = g["costate_0"] + C_0.T @ g["sigma"]
            largest, noise, together = ca.SX(0), ca.SX(0), ca.SX(0)
            for entry in (*ca.vertsplit(finally_), *ca.vertsplit(first_)):
                largest = ca.fmax(largest, ca.fabs(entry))
                together += ca.fabs(entry)  # shows what is not finite
            for k in range(bounded):
                noise = ca.fmax(noise, weight[k] * ca.fabs(rows[k]) + g["held"][k])
            most, least, total, _ = search_graphs.complementarity(g)
            found = ca.vertcat(largest, noise, most, least, ca.sum1(ca.fabs(g["eta"])), total, together)
            return [c_0, C_0, H_0, c, C, slope, D, H, found]

        def trial(g: dict[str, ca.SX]) -> list[ca.SX]:
            x, starts, cost, equations, rows = functions(g, g["alpha"] * g["dx_0"], g["alpha"] * g["dx"])
            slack = g["slack"] + g["alpha"] * g["ds"]
            residuals = ca.vertcat(starts, equations, rows - slack)
            scaled = g["scale"] * cost
            total = _total(residuals, scaled + barrier(g, slack), cost)
            return [x, slack, starts, equations, rows, total]

        return (
            self._kernel(
                "ends",
                place | {"sigma": first, "eta": last, "costate_0": n, "costate": n} | bounds,
                {
                    **{"c_0": (first,), "C_0": (first, n), "H_0": (n, n), "c": (last,), "C": (last, n)},
                    **{"slope": (n,), "D": (bounded, n), "H": (n, n), "found": (7,)},
                },
                ends,
            ),
            self._kernel(
                "ends_trial",
                place | {"dx_0": n, "dx": n, "ds": bounded, "alpha": 1, "mu": 1} | bounds,
                {
                    **{"x_new": (point,), "slack_new": (bounded,), "starts": (first,), "equations": (last,)},
                    **{"rows": (bounded,), "total": (4,)},
                },
                trial,
            ),
        )

    # --- graphs -------------------------------------------------------------------------------------------------

    def _trial_graph(self, g: dict[str, ca.SX]) -> list[ca.SX]:
        of_x, of_u, of_z, of_c, of_d, of_after = self._units(g)
        x = self._retract(g["x"], g["alpha"] * of_x * g["dx"], g["p"])
        after = self._after_retract(g["after"], g["alpha"] * of_after * g["dafter"], g["p"])
        u, z = g["u"] + g["alpha"] * of_u * g["du"], g["z"] + g["alpha"] * of_z * g["dz"]
        slack = g["slack"] + g["alpha"] * g["ds"]
        z = self._settled(x, u, z, g["s"], g["p"], g["inner"])
        found, cost, implicit, path = self.stages.stage(x, u, z, g["s"], g["p"])
        gap = self._after_local(after, found, g["p"]) / of_after
        implicit, path = implicit / of_c, path / of_d
        residuals = ca.vertcat(gap, implicit, path - slack)
        total = _total(residuals, g["scale"] * cost + barrier(g, slack), cost)
        return [x, u, z, slack, gap, implicit, path, total]

    def _units(self, g: dict[str, ca.SX]) -> list[ca.SX]:
        """Of x, u, z, c, d and the next x."""
        n, m, nz, nd = self.stages.sizes
        more = g["units"].numel() - (n + m + 2 * nz + nd)
        *found, after = ca.vertsplit(g["units"], np.cumsum([0, n, m, nz, nz, nd, more]).tolist())
        return [*found, after if more else found[0]]

    def _settled(self, x: ca.SX, u: ca.SX, z: ca.SX, s: ca.SX, p: ca.SX, inner: ca.SX) -> ca.SX:
        """z after some Newton steps towards (1) of the stages, if `inner`: where they hold, f is as linear as it can be."""
        if not z.numel():
            return z
        symbol = ca.SX.sym("z", z.numel())
        c = self.stages.stage(x, u, symbol, s, p)[2]
        free = ca.symvar(ca.vertcat(x, u, s, p))
        G = ca.jacobian(c, symbol)
        if ca.Function("slopes", [symbol, *free], [c, G]).n_instructions() > LARGEST_INNER:
            return z
        Q, R = ca.qr(G)
        newton = ca.Function("newton", [symbol, *free], [c, symbol - ca.solve(R, Q.T @ c)])
        if newton.n_instructions() > LARGEST_INNER:
            return z
        here, after = newton(z, *free)
        for _ in range(INNER):
            there, beyond = newton(after, *free)
            better = ca.logic_and(inner, ca.sumsqr(there) < ca.sumsqr(here))
            z, here, after = (
                ca.if_else(better, a, b) for a, b in ((after, z), (there, here), (beyond, after))
            )
        return z

    def _condensed_graph(self, g: dict[str, ca.SX]) -> list[ca.SX]:
        """(1) and (2) in the expressions."""
        n, m, nz, _ = self.stages.sizes
        fixed, near = n + m, _Near(self, g)
        gap, implicit, F, slope, C, D, along = near.first
        if nz:
            Q, R = ca.qr(C[:, fixed:])
            nus = -Q @ ca.solve(R.T, along[fixed:, :])
            Z = -ca.solve(R, Q.T @ ca.horzcat(implicit, C[:, :fixed]))
        else:
            nus, Z = ca.SX(0, 1), ca.SX(0, 1 + fixed)
        H = near.second(nus, near.known)
        slopes = along[:fixed] + C[:, :fixed].T @ nus
        z0, Zw = Z[:, 0], Z[:, 1:]
        Hw, Hz, Hzz = H[:fixed, :fixed], H[fixed:, :fixed], H[fixed:, fixed:]
        cross = Hzz @ Zw + Hz
        reduced = Hw + Hz.T @ Zw + Zw.T @ cross
        # H is symmetric: H_wz Z + Z' H_zw + Z' H_zz Z
        linear = slope[:fixed] + Zw.T @ slope[fixed:, :] + cross.T @ z0
        moved = F[:, :fixed] + F[:, fixed:] @ Zw
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
            Zw,
            z0,
            D[:, :fixed] + D[:, fixed:] @ Zw,
            D[:, fixed:] @ z0,
            slope,
            C[:, fixed:],
            F[:, fixed:],
            cross,
            D[:, fixed:],
        ]


class _Near:
    """Derivatives of a stage at a point, in units, before z is eliminated."""

    def __init__(self, e: Evaluation, g: dict[str, ca.SX]) -> None:
        self._e, self._g = e, g
        n, _, nz, _ = e.stages.sizes
        self._y = y = g["high"] - g["low"]
        dx, self._nu = ca.SX.sym("dx", n), ca.SX.sym("nu", nz)
        self._w = w = ca.vertcat(dx, g["u"], g["z"])
        self._place = place = [e._retract(g["x"], dx, g["p"], near=True), g["u"], g["z"], g["s"], g["p"]]
        of_x, of_u, of_z, self._of_c, self._of_d, self._of_after = e._units(g)
        self._columns = columns = ca.vertcat(of_x, of_u, of_z).T
        order = list(g.values())
        self._free, self._here = [dx, *order], [ca.SX.zeros(n), *order]
        self._expansion, self.known = None, ca.SX(0, 1)
        if e.opened is not None:
            self._expansion = e.opened.expand(place, self._functions, w, self._free, self._here)
            values, by = self._expansion.values, self._expansion.slopes
            self.known = self._expansion.known
        else:
            results = self._functions(e.stages.stage.call(place))
            together = ca.vertcat(*results)  # they share most of their slopes
            found = ca.Function("first", self._free, [*results, ca.jacobian(together, w)]).call(self._here)
            rows = np.cumsum([0, *(k.numel() for k in results)]).tolist()
            values, by = found[:4], ca.vertsplit(found[4], rows)
        F, slope, C, self._D = (ca.repmat(columns, k.shape[0], 1) * k for k in by)
        along = slope.T + F.T @ g["costate"] + self._D.T @ y
        self.first = values[0], values[2], F, slope.T, C, self._D, along
        """the gap and c; slopes of the gap, the cost, c and d; and of the Lagrangian without c"""

    def second(self, nus: ca.SX, known: ca.SX) -> ca.SX:
        """Of the Lagrangian, with these multipliers of c, and of the barrier; from `known` or symbols in its place."""
        e, g, D = self._e, self._g, self._D
        if self._expansion is not None and e.exact and self._expansion.second is not None:
            H = self._expansion.second(self._lagrangian, [self._nu], [nus], known)
        else:
            whole = self._lagrangian(self._functions(e.stages.stage.call(self._place)))
            bent = ca.Function("second", [self._nu, *self._free], [ca.hessian(whole, self._w)[0]])
            H = bent(nus, *self._here)
        weight = column([weight_of(g, k) for k in range(D.shape[0])])
        return (self._columns.T @ self._columns) * H + D.T @ (ca.repmat(weight, 1, D.shape[1]) * D)

    def _functions(self, found: list[ca.SX]) -> list[ca.SX]:
        g = self._g
        gap = self._e._after_local(g["after"], found[0], g["p"])
        return [
            *(gap / self._of_after, found[1] * g["scale"]),
            *(found[2] / self._of_c, found[3] / self._of_d),
        ]

    def _lagrangian(self, found: list[ca.SX]) -> ca.SX:
        gap, cost, implicit, path = found
        if not self._e.exact:
            return cost
        g = self._g
        return cost + ca.dot(g["costate"], gap) + ca.dot(self._nu, implicit) + ca.dot(self._y, path)


def compiled(
    name: str,
    key: str,
    inputs: Mapping[str, int | tuple[int, ...]],
    results: Mapping[str, tuple[int, ...]],
    graph: Graph,
    chunk: int | None = None,
) -> Kernel:
    """The kernel of this content, made when it is first called; equal keys mean equal content."""
    given = {k: v if isinstance(v, tuple) else (v,) for k, v in inputs.items()}
    label = LABELS.get(name.split()[0], name)

    def build() -> FunctionSource:
        symbols = {label: ca.SX.sym(label, *shape) for label, shape in given.items()}
        found = [ca.densify(ca.SX(v)) for v in graph(symbols)]
        function = ca.Function(name.split()[0], list(symbols.values()), found)
        return FunctionSource(function, chunk=chunk, longest=LONGEST)

    if key not in _KERNELS:
        if len(_KERNELS) > MOST_KERNELS:
            _KERNELS.clear()
        _KERNELS[key] = Kernel(
            f"optimal control ({label})",
            [Argument(label, shape) for label, shape in given.items()],
            [Argument(label, shape) for label, shape in results.items()],
            key=key,
            build=build,
            bound=True,
        )
    return _KERNELS[key]


def bound(
    kernel: Kernel, count: int, given: Mapping[str, Array], left: Mapping[str, Array]
) -> Callable[[], None]:
    """A kernel on always the same arrays, by the names of its arguments and results."""
    inputs, outputs = (
        [by[a.name] for a in some] for by, some in ((given, kernel.arguments), (left, kernel.results))
    )
    return kernel.bind(count, inputs, outputs)


@lru_cache(maxsize=64)
def end_row_kernels(n: int, count: int) -> tuple[Kernel, Kernel, Kernel, Kernel]:
    """What a step asks of `count` rows of bounds at the end: the slope of the cost with pushes, steps, the longest of them
    and the slope along them, multipliers after a step, and the barrier."""
    bounds: dict[str, int | tuple[int, int]] = dict.fromkeys(BOUNDS, count)

    def slope(g: dict[str, ca.SX]) -> list[ca.SX]:
        return [g["gradient"] + g["D"].T @ search_graphs.push(g)[0]]

    def steps(g: dict[str, ca.SX]) -> list[ca.SX]:
        none = {"du": ca.SX(0, 1), "Z": ca.SX(0, n), "z_0": ca.SX(0, 1), "d_0": ca.SX.zeros(count)}
        return search_graphs.steps({**none, **g})[1:]

    of_d: dict[str, int | tuple[int, int]] = {"D": (count, n), "d": count, "mu": 1}
    moves: dict[str, int | tuple[int, int]] = {"dx": n, "g": n, **of_d, "gained": count}
    after: dict[str, int | tuple[int, int]] = {"dlow": count, "dhigh": count, "alpha": 1, "dual": 1, "mu": 1}
    key = f"rows at the end {n} {count}"
    return (
        compiled("end_slope", f"{key} slope", {"gradient": n, **of_d, **bounds}, {"q": (n,)}, slope),
        compiled(
            "end_steps",
            f"{key} steps",
            moves | bounds,
            {"ds": (count,), "dlow": (count,), "dhigh": (count,), "limits": (3,)},
            steps,
        ),
        compiled(
            "end_settle",
            f"{key} settle",
            after | bounds,
            {"low_new": (count,), "high_new": (count,)},
            search_graphs.settle,
        ),
        compiled(
            "end_barrier",
            f"{key} barrier",
            {"mu": 1, **bounds},
            {"barrier": (1,)},
            lambda g: [barrier(g, g["slack"])],
        ),
    )


@lru_cache(maxsize=16)
def fold(kinds: str) -> StageLoop:
    """Columns of all stages into one row: "+" adds, ">" takes the largest, "<" the least; from `so_far` before them."""
    values, so_far = ca.SX.sym("values", len(kinds)), ca.SX.sym("so_far", len(kinds))
    operations = {"+": lambda a, b: a + b, ">": ca.fmax, "<": ca.fmin}
    folded = ca.vertcat(*(operations[kind](so_far[k], values[k]) for k, kind in enumerate(kinds)))
    return StageLoop(ca.Function("fold", [values, so_far], [folded]), [0, 0, 1], backward=False)


def _total(residuals: ca.SX, objective: ca.SX, cost: ca.SX) -> ca.SX:
    """What a line search looks at: sum of the residuals, objective with the barrier, cost, largest residual."""
    size, worst = ca.SX(0), ca.SX(0)
    for k in range(residuals.numel()):
        size += ca.fabs(residuals[k])
        worst = ca.fmax(worst, ca.fabs(residuals[k]))
    return ca.vertcat(size, objective, cost, worst)


def _first(v: ca.SX, count: int) -> ca.SX:
    return v[:count] if count else ca.SX(0, 1)


def _rest(v: ca.SX, first: int) -> ca.SX:
    return v[first:] if first < v.numel() else ca.SX(0, 1)
