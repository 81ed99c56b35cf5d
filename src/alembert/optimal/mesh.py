"""How far the intervals of a solution are off, each by itself, and what bounds say between their nodes.

From every node the motion under the controls found is integrated again over its interval, with steps of Runge and Kutta
that are halved until their own error does not count. With x the solution's nodes, X and L what fine steps reach and cost,

    e_k = max_i |X_k+1,i - x_k+1,i| / way_i,    c = |sum_k L_k + l_N - J| / (|sum_k L_k| + |l_N|)             (1)

where way_i is how far component i moves in all. What these errors may change is told by the costates: to first order an
optimum without them costs

    w = sum_k |lambda_k+1' (X_k+1 - x_k+1)|                                                                  (2)

more or less at the most, and from about a tenth of the cost on meshes have been seen to have optima of their own, at half of
the cost of the true one. Motions too stiff for these steps are followed by those of Rosenbrock and
Wanner, with J the Jacobian of the slope f where a step begins, g = 1 + 1 / sqrt(2), W = 1 - g h J and what f changes by
itself in the step, e = f(x, t + h) - f(x, t),

    W k_1 = f(x, t) + g e,   W k_2 = f(x + h k_1, t + h) - 2 k_1 - g e,   x+ = x + h (3 k_1 + k_2) / 2,             (3)

of order 2 and stable for any h (Verwer, Spee, Blom and Hundsdorfer, SIAM J. Sci. Comput. 20, 1999). From half as many steps,
x_h, and these they are extrapolated to where errors of that order lead, as are the costs:

    x + (x - x_h) / 3                                                                                      (4)

Modes of J that are faster than these steps and do not die out, which (3) would damp, are not judged.

A solution whose e_k add up to much of the motion, or are worth much of the cost, or whose cost is not that of its own
controls, is none of the problem but of its mesh: coarse meshes have optima of their own, which use the points between which
nobody looks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from alembert.optimal import tuning
from alembert.optimal.diagnosis import Violation
from alembert.optimal.plant import Momenta
from alembert.optimal.schemes import classical_step
from alembert.simulate.schemes import CLASSICAL

if TYPE_CHECKING:
    from alembert.optimal.plant import Row
    from alembert.optimal.problem import Problem
    from alembert.optimal.solution import Solution

Array = np.ndarray
LARGEST_PARTS = 128
"""fine steps of an interval; what is stiffer than these can follow is judged by (3)"""
LARGEST_IMPLICIT = 1024
"""steps (3) of an interval; what these do not settle is not judged"""
WEIGHT = 1 + np.sqrt(0.5)
"""g of (3)"""
DYING = 0.1
"""damping ratio of a mode from which on one that is faster than a step may be taken as died out within a few"""
SETTLED = 0.1
"""share of the errors to which they are known"""
LOST = 1e6
"""ways of a motion, from where fine steps are taken to run away"""
STILL = 1e-3
"""of the unit of a state, as the solver has it: the least way that counts"""
COARSE = 0.5
"""the sum of (1) beyond which a solution counts as one of its mesh: half of the whole motion. Of the examples on their own
steps, half and a quarter of them, only the pitcher on 17 and 8 is beyond (0.60 and 1.3, with costs within 3 % of that on
35). What is below is no proof: hence ROUGH and WORTH"""
WORTH = 0.1
"""(2) as a share of the cost, beyond which it does. Acrobots on 50 steps have 0.12 to 0.63, and 0.47 to 0.80 of the costs
that they have on 400; on 100 steps 0.08 to 0.20, and 0.90 to 0.995 of them; on 200 at most 0.05, and 0.996 to 1.002. All
other examples on their own steps, half and a quarter of them have at most 0.07, but the pitcher on 8 (run of 2026-11-18)"""
ROUGH = 0.1
"""the sum of (1) beyond which the message tells it"""
COARSE_COST = 0.02
"""c of (1) beyond which it does. A cost that errs by c can be pulled below the least one by as much: of the examples and the
hanging chain, meshes whose optimum is that of the problem to a hundredth have at most 0.006, spurious optima at least 0.034
(run of 2026-11-18)"""
NOTHING = 1e-8
"""share of the largest cost on the way to a solution that counts as 0: the tolerance that solvers have by default"""
OUTSIDE = 1e-3
"""share of its room by which a quantity may be beyond its bound between nodes before the message says so"""


@dataclass(frozen=True, eq=False)
class MeshErrors:
    """(1): `intervals` (N,), their `total` and the `cost`; `outside` are bounds that are not kept between nodes.

    All are shares: 1e-3 is a thousandth of the whole motion, or of the cost. NaN where no fine steps agree on the motion:
    then the solution is not judged, and `remarks` say so.
    """

    intervals: Array
    total: float
    """of the component for which the sum is largest"""
    component: str
    cost: float
    cost_of_controls: float
    """the cost of the controls between the nodes of the solution, integrated finely"""
    worth: float
    """(2) as a share of the cost; NaN for spline shooting, whose motion is integrated as one"""
    outside: tuple[Violation, ...]
    room: tuple[float, ...]
    """of each of `outside`: what it may be off before it counts"""
    parts: int
    several: bool
    """whether the transcription has more than one control in each interval"""

    @property
    def is_coarse(self) -> bool:
        """Whether the solution means little: then it is none of the problem."""
        return self.total > COARSE or self.cost > COARSE_COST or self.worth > WORTH

    @property
    def is_known(self) -> bool:
        """Whether fine steps have agreed on the motion."""
        return bool(np.isfinite(self.total + self.cost))

    @property
    def worst(self) -> float:
        """The largest of all errors."""
        return float(max(self.total, self.cost))

    def __str__(self) -> str:
        if not self.is_known:
            return "; ".join(("accuracy: not known", *self.remarks))
        text = (
            f"accuracy: intervals are off by {self.total:.1e} of the motion together ({self.component}), the cost by "
            f"{self.cost:.1e}"
        )
        return "; ".join((text, *self.remarks))

    @property
    def remarks(self) -> list[str]:
        """What a user should know, in words; empty where all is well."""
        found = []
        if not self.is_known:
            found.append(
                "not judged: within an interval the motion is too fast for any fine steps, and so perhaps for the solution; "
                "take more steps, or `nodes` where it is fast, and see whether the cost stays"
            )
        if self.is_coarse:
            which = f"{self.component} is off by {self.total:.0%} of its way, over all intervals"
            if self.cost > COARSE_COST:
                which = f"the cost of these controls is {self.cost_of_controls:.6g}"
            elif not self.total > COARSE:
                which = f"the errors of its intervals are worth {self.worth:.0%} of the cost"
            how = "more steps or `accuracy=...`"
            if self.several:
                how = "more steps, `accuracy=...`, or a transcription with one control in each interval (rk4, midpoint)"
            found.append(f"an optimum of this mesh rather than of the problem: {which}; take {how}")
        elif self.total > ROUGH:
            found.append(
                f"a rough mesh: {self.component} is off by {self.total:.0%} of its way, over all intervals; see whether the "
                "cost stays with more steps"
            )
        beyond = [v for v, room in zip(self.outside, self.room, strict=True) if v.amount > OUTSIDE * room]
        if beyond:
            v = beyond[0]
            found.append(
                f"between nodes {v.name} is beyond its bound by {v.amount:.2g} at t = {v.time:.4g} s"
                + (f", and {len(beyond) - 1} more" if len(beyond) > 1 else "")
            )
        return found


def judged(solution: Solution) -> MeshErrors:
    """(1) of a solution."""
    if not (np.isfinite(solution.x).all() and np.isfinite(solution.controls).all()):
        return _unknown(solution, 0)
    found = _judged(FineSteps(solution))
    return found if found.is_known else _judged(_Implicit(solution))


def _unknown(solution: Solution, parts: int) -> MeshErrors:
    return MeshErrors(
        np.full(solution.steps, np.nan), np.nan, "", np.nan, np.nan, np.nan, (), (), parts, False
    )


def _judged(fine: FineSteps) -> MeshErrors:
    """(1) by these fine steps; NaN where halving them changes too much."""
    solution, N, n = fine.solution, fine.solution.steps, fine.problem.plant.chart.tangent
    parts = 4
    ends, costs, seen = fine.run(2)
    way = _ways(solution, np.stack([x.T for _, x, _ in seen], axis=1).reshape(-1, solution.x.shape[1]))
    while True:
        before = ends, costs
        ends, costs, seen = fine.run(parts)
        gaps = np.abs(fine.gaps(ends)) / way
        with np.errstate(invalid="ignore"):  # both may have run away
            change = np.abs(fine.gaps(ends) - fine.gaps(before[0])) / way
        drift = abs(costs.sum() - before[1].sum())
        size = max(abs(costs.sum()) + abs(fine.final), solution.cost_size, least_cost(solution)) + 1e-300
        settled = (
            np.max(gaps, initial=0.0) < LOST
            and np.max(change, initial=0.0) <= 1e-10 + SETTLED * np.max(gaps, initial=0.0)
            and drift <= 1e-10 * size + SETTLED * abs(costs.sum() + fine.final - solution.cost)
        )
        if settled or parts >= fine.largest:
            break
        parts *= 2
    if not fine.follows(parts) or (not settled and not np.max(change) < COARSE / N):
        return _unknown(solution, parts)
    sums = gaps.sum(axis=0)
    i = int(np.argmax(sums)) if n else 0
    cost = float(costs.sum() + fine.final)
    outside = fine.outside(seen)
    return MeshErrors(
        gaps.max(axis=1),
        float(sums[i]),
        solution.problem.plant.tangent_names[i],
        abs(cost - solution.cost) / size,
        cost,
        float(np.abs(_worth(solution, ends)).sum()) / size,
        tuple(v for v, _ in outside),
        tuple(room for _, room in outside),
        parts,
        _has_several(solution),
    )


def _has_several(solution: Solution) -> bool:
    """Whether intervals have more than one control each."""
    scheme = solution.stages.scheme if solution.transcription != "splines" else None
    return scheme is not None and scheme.points + scheme.node_controls > 1


def _worth(solution: Solution, ends: Array) -> Array:
    """(N,): lambda' (X - x) of (2), by where the fine steps end."""
    if solution.transcription == "splines":
        return np.full(solution.steps, np.nan)
    plant, nodes = solution.stages.plant, solution.x[1:]
    if isinstance(plant, Momenta):
        nq, known = solution.q.shape[1], solution.problem.parameter_values
        M = plant.tree.mass_matrix(ends[:, :nq], parameters=known)
        ends = np.concatenate([ends[:, :nq], np.einsum("kij,kj->ki", M, ends[:, nq:])], axis=1)
        nodes = np.concatenate([solution.q, solution.momenta], axis=1)[1:]
    off = plant.chart.difference(nodes, ends)
    return np.einsum("ki,ki->k", solution.costates, off)


def least_cost(solution: Solution) -> float:
    """A cost that is as good as 0, such as that of a fit which is exact: below it errors are none."""
    seen = [abs(i.cost) for i in getattr(solution, "history", ()) if np.isfinite(i.cost)]
    outcome = getattr(solution, "_outcome", None)
    if (
        outcome is not None and solution.solver == "sweep"
    ):  # 0 all the way: then what units of the controls would cost
        seen.append(tuning.COST / outcome.units.cost)
    return NOTHING * max(seen, default=0.0)


def _ways(solution: Solution, between: Array) -> Array:
    """How far each component of the state moves, at nodes and between; those that hardly do count as a hundredth of their
    size, or of the others of their kind."""
    chart = solution.problem.plant.chart
    points = np.concatenate([between[np.isfinite(between).all(axis=1)], solution.x[-1:]])
    steps = chart.difference(points[:-1], points[1:])
    way = np.ptp(np.concatenate([np.zeros((1, steps.shape[1])), np.cumsum(steps, axis=0)]), axis=0)
    size = np.maximum(way, np.concatenate([np.zeros(chart.nv), np.abs(points[:, chart.nq :]).max(axis=0)]))
    kinds = (
        [slice(0, chart.nv), slice(chart.nv, None)]
        if chart.nv
        else [slice(k, k + 1) for k in range(len(way))]
    )
    for kind in kinds:
        way[kind] = np.maximum(way[kind], 0.01 * np.max(size[kind], initial=0.0))
    units = solution.state_units
    if units is not None:  # what does not move at all is off by rounding
        way = np.maximum(way, STILL * units)
    return np.where(way > 0, way, 1.0)


class FineSteps:
    """The fine steps of all intervals side by side."""

    largest = LARGEST_PARTS

    def __init__(self, solution: Solution) -> None:
        self.solution, self.problem = solution, solution.problem
        self._step, self._rows, final = self.problem.fine
        self._p = self.problem.parameters[:, None]
        self.final = float(final(solution.x[-1], solution.duration, self._p))

    def run(self, parts: int) -> tuple[Array, Array, list[tuple[Array, Array, Array]]]:
        """Where intervals end and what they cost; and times, points and controls on the way."""
        solution, N = self.solution, self.solution.steps
        step = self._steps()
        k, h = np.arange(N), np.diff(solution.time)[None] / parts
        x, cost = solution.x[:-1].T, np.zeros(N)
        seen = []
        for i in range(parts):
            t = solution.time[None, :-1] + i * h
            u = [solution.control_within(k, np.full(N, (i + c) / parts)).T for c in (0.0, 0.5, 1.0)]
            seen.append((t, x, u[0]))
            x, more = step(x, t, h, u)
            cost = cost + more
        return x.T, cost, seen

    def follows(self, parts: int) -> bool:
        """Whether steps that agree with shorter ones show the motion: explicit ones do."""
        return True

    def _steps(self) -> Callable[..., tuple[Array, Array]]:
        """Of all intervals: points, times, lengths and controls at three places -> points after it, and what it costs."""
        step, T = self._step.map(self.solution.steps), self.solution.duration

        def move(x: Array, t: Array, h: Array, u: list[Array]) -> tuple[Array, Array]:
            after, more = step(x, t, h, np.concatenate(u), self._p, T)
            return after.full(), more.full()[0]

        return move

    def gaps(self, ends: Array) -> Array:
        return gaps(self.problem, self.solution.x[1:], ends)

    def outside(self, seen: list[tuple[Array, Array, Array]]) -> list[tuple[Violation, float]]:
        """Bounds that are not kept between nodes: the worst of each, with the room that it has."""
        rows, N = bounded(self.problem), self.solution.steps
        if not rows:
            return []
        f, T = self._rows.map(N), self.solution.duration
        values = np.stack([f(t, x, u, self._p, T).full() for t, x, u in seen], axis=2)
        times = np.stack([t[0] for t, _, _ in seen], axis=1)
        found = []
        for row, own in zip(rows, values, strict=True):
            off = np.maximum(row.lower - own, own - row.upper)
            at = np.unravel_index(int(np.argmax(off)), off.shape)
            width = row.upper - row.lower
            # what an equation keeps at zero has the size that the solver sees in it
            reach = (
                float(np.ptp(own))
                if width
                else max(float(np.abs(own).max()), self.solution.row_unit(row.name))
            )
            room = width if np.isfinite(width) and width > 0 else reach or 1.0
            if off[at] > 1e-6 * room:
                found.append((Violation(row.name, float(times[at]), float(off[at])), room))
        return sorted(found, key=lambda pair: -pair[0].amount / pair[1])


class _Implicit(FineSteps):
    """Steps (3); costs by the trapezoidal rule."""

    largest = LARGEST_IMPLICIT

    def __init__(self, solution: Solution) -> None:
        super().__init__(solution)
        self._functions = [f.map(solution.steps) for f in implicit_functions(solution.problem)]

    def run(self, parts: int) -> tuple[Array, Array, list[tuple[Array, Array, Array]]]:
        """Extrapolated by (4)."""
        chart = self.problem.plant.chart
        (rough, before, _), (ends, costs, seen) = super().run(parts // 2), super().run(parts)
        with np.errstate(invalid="ignore"):  # where a motion runs away
            return chart.move(ends, chart.difference(rough, ends) / 3), costs + (costs - before) / 3, seen

    def _jacobian(self, t: Array, u: Array, x: Array) -> Array:
        """(N, n, n)"""
        N, n, T = self.solution.steps, self.problem.plant.chart.tangent, self.solution.duration
        found = self._functions[1](t, u, x, self._p, T).full()
        return np.asarray(found.reshape(n, N, n).transpose(1, 0, 2))

    def follows(self, parts: int) -> bool:
        """Whether all modes at the nodes that are faster than a step die out."""
        solution, N = self.solution, self.solution.steps
        u = solution.control_within(np.arange(N), np.zeros(N)).T
        J = self._jacobian(solution.time[None, :-1], u, solution.x[:-1].T)
        if not np.isfinite(J).all():
            return False
        modes = np.linalg.eigvals(J) * np.diff(solution.time)[:, None] / parts
        return not np.any((np.abs(modes) > 1) & (modes.real > -DYING * np.abs(modes)))

    def _steps(self) -> Callable[..., tuple[Array, Array]]:
        N, n, T = self.solution.steps, self.problem.plant.chart.tangent, self.solution.duration
        slope, _, retract = self._functions
        at_rest = np.zeros((n, N))

        @np.errstate(over="ignore", invalid="ignore")  # where a motion runs away
        def move(x: Array, t: Array, h: Array, u: list[Array]) -> tuple[Array, Array]:
            f, rate = (a.full() for a in slope(at_rest, t, u[0], x, self._p, T))
            W = np.eye(n) - WEIGHT * h[0][:, None, None] * self._jacobian(t, u[0], x)
            lost = ~np.isfinite(W).all(axis=(1, 2))
            W[lost] = np.nan
            drift = WEIGHT * (slope(at_rest, t + h, u[2], x, self._p, T)[0].full() - f)
            first = np.linalg.solve(W, (f + drift).T[:, :, None])[:, :, 0].T
            again, _ = slope(h * first, t + h, u[2], x, self._p, T)
            second = np.linalg.solve(W, (again.full() - 2 * first - drift).T[:, :, None])[:, :, 0].T
            after = retract(x, h * (3 * first + second) / 2).full()
            _, later = slope(at_rest, t + h, u[2], after, self._p, T)
            return after, h[0] * (rate + later.full())[0] / 2

        return move


def gaps(problem: Problem, nodes: Array, ends: Array) -> Array:
    """(N, tangent): from nodes to where a motion comes; inf where it has run away."""
    there = np.isfinite(nodes).all(axis=1) & np.isfinite(ends).all(axis=1)
    found = np.full((len(nodes), problem.plant.chart.tangent), np.inf)
    found[there] = problem.plant.chart.difference(nodes[there], ends[there])
    return found


def bounded(problem: Problem) -> list[Row]:
    """What is bounded all along."""
    return [*problem.limits["state"], *problem.limits["control"], *problem.path]


def fine_functions(problem: Problem) -> tuple[ca.Function, ca.Function, ca.Function]:
    """One fine step (x, t, h, u, p, T) -> after, cost; the rows of all bounds; the cost at the end."""
    chart, m = problem.plant.chart, len(problem.plant.controls)
    x, t, h, T = ca.SX.sym("x", chart.point), ca.SX.sym("t"), ca.SX.sym("h"), ca.SX.sym("T")
    u, p, v = ca.SX.sym("u", 3 * m), ca.SX.sym("p", len(problem.parameters)), ca.SX.sym("v", m)
    g = _slope(problem)
    first, middle, last = u[:m], u[m : 2 * m], u[2 * m :]
    points = [(t, first), (t + h / 2, middle), (t + h / 2, middle), (t + h, last)]
    costs: list[ca.SX] = []

    def found(i: int, d: ca.SX) -> ca.SX:
        slope, cost = g(d, *points[i], x, p, T)
        costs.append(cost)
        return slope

    after = chart.retract(x, classical_step(found, h, chart.tangent))
    total = h * sum((float(b) * c for b, c in zip(CLASSICAL.b, costs, strict=True)), ca.SX(0))
    moment = problem.moment(t, x, v, p, T)
    rows = ca.vertcat(ca.SX(0, 1), *(row.value(moment) for row in bounded(problem)))
    return (
        ca.Function("fine", [x, t, h, u, p, T], [after, total]),
        ca.Function("rows", [t, x, v, p, T], [rows]),
        ca.Function("final", [x, T, p], [problem.cost.final(problem.moment(T, x, ca.SX.zeros(m), p, T))]),
    )


def _slope(problem: Problem) -> ca.Function:
    """(d, t, u, x, p, T) -> rates of d, by which x is moved, and of the cost."""
    plant = problem.plant
    chart, m = plant.chart, len(plant.controls)
    x, p = ca.SX.sym("x", chart.point), ca.SX.sym("p", len(problem.parameters))
    d, t, u, T = ca.SX.sym("d", chart.tangent), ca.SX.sym("t"), ca.SX.sym("u", m), ca.SX.sym("T")
    there = chart.retract(x, d)
    slope = chart.chart_rate(d, plant.rate(t, there, u, p))
    rate = problem.cost.rate(problem.moment(t, there, u, p, T))
    return ca.Function("slope", [d, t, u, x, p, T], [slope, rate])


def implicit_functions(problem: Problem) -> tuple[ca.Function, ca.Function, ca.Function]:
    """Slope and rate of the cost (d, t, u, x, p, T); J of (3) by (t, u, x, p, T); the point that is x, moved by d."""
    slope, chart = _slope(problem), problem.plant.chart
    d, t, u, x, p, T = slope.sx_in()
    J = ca.substitute(ca.jacobian(slope(d, t, u, x, p, T)[0], d), d, ca.SX.zeros(d.numel()))
    return (
        slope,
        ca.Function("jacobian", [t, u, x, p, T], [ca.densify(J)]),
        ca.Function("retract", [x, d], [chart.retract(x, d)]),
    )
