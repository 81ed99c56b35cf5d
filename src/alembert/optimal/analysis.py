"""What can be said of a solution: how accurate it is, which arcs it has, and what is near to it.

`simulate` is a second opinion: the motion under the controls found, integrated independently of the transcription. Once
from the start, as a machine would move that nobody corrects, and once from every node for one interval: where the first
is far off and the second is not, the motion is unstable, and the solution as accurate as its steps.

`arcs` are where a control is at a bound, and where it is between them, singular or not. Where the Hamiltonian H = l +
lambda' f is linear in a control,

    H_u = 0 all along, while H_uu = 0                                                                  (1)

on an arc on which the control is at no bound: such an arc is *singular*. What the control is there follows from
derivatives of H_u, not from H_u itself, and a mesh sees it only by way of the motion: controls are found less accurately
there, and with values at nodes they may zigzag. Where a limit of a state, of a rate or a path condition holds, that is
what decides, and the arc is none of these.

`sensitivities` say how the optimal cost changes with parameters, `controller` how the controls follow the state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.errors import warn
from alembert.lowering.stage_loop import SHARED, StageLoop
from alembert.optimal import mesh
from alembert.optimal.mesh import FineSteps
from alembert.optimal.plant import Momenta
from alembert.optimal.stages import Stages

if TYPE_CHECKING:
    from alembert.optimal.problem import Problem
    from alembert.optimal.solution import Solution

Array = np.ndarray
LARGEST_PARTS = 256
UNSTABLE = 1e3
"""errors of single intervals that grow by more do so because the motion is unstable"""


COARSE = 0.1
"""share of the range of a coordinate or speed by which a single interval may be off"""


@dataclass(frozen=True)
class Accuracy:
    """How far a motion under the controls found, integrated by an independent accurate method, is from the solution."""

    largest: float
    """the largest difference of any coordinate or speed at any node"""
    final: float
    """the same at the end"""
    component: str
    time: float
    """where the largest is"""
    parts: int
    """steps of the simulation in each interval"""
    one_interval: float
    """the largest difference after one interval, when the simulation starts at the solution's node before it"""
    share: float = 0.0
    """the same in terms of how far that coordinate or speed moves in all"""

    @property
    def is_coarse(self) -> bool:
        """Whether single intervals are off by much of the whole motion: then the solution means little."""
        return not self.share <= COARSE

    @property
    def is_unstable(self) -> bool:
        """Whether what single intervals are off grows by far more than their number."""
        return self.largest > UNSTABLE * self.one_interval and self.largest > 1e-3

    def __str__(self) -> str:
        text = (
            f"simulated with the same controls: at most {self.largest:.2e} off "
            f"({self.component} at {self.time:.4g} s), "
            f"{self.final:.2e} at the end; {self.one_interval:.2e} in one interval"
        )
        if self.is_coarse:
            return (
                f"{text}. The steps are too long for this motion: one is off by {self.share:.0%} of its range; take more of "
                "them, or another transcription"
            )
        return (
            f"{text}. The motion is unstable: follow it with solution.controller()"
            if self.is_unstable
            else text
        )


def simulate(solution: Solution) -> Accuracy:
    """Runge and Kutta's method of order 4 on ever shorter steps, until halving them changes nothing that is reported."""
    parts = 4
    step = StageLoop(solution.problem.fine[0], [0, 0, 0, 0, SHARED, SHARED, 1, 0], backward=False)
    gaps = _gaps(solution, parts, step)
    while parts < LARGEST_PARTS:
        finer = _gaps(solution, 2 * parts, step)
        parts *= 2
        change = np.max(np.abs(finer - gaps), initial=0.0)
        gaps = finer
        if not np.all(np.isfinite(gaps)) or change <= 1e-10 + 1e-3 * np.max(np.abs(gaps)):
            break
    names = solution.problem.plant.tangent_names
    sizes = np.where(np.isfinite(gaps), np.abs(gaps), np.inf)
    k, at = np.unravel_index(int(np.argmax(sizes)), sizes.shape)
    fine = FineSteps(solution)
    near = np.abs(fine.gaps(fine.run(parts)[0]))
    return Accuracy(
        float(sizes[k, at]),
        float(np.max(sizes[-1])),
        names[at],
        float(solution.time[k]),
        parts,
        float(np.max(near)),
        float(np.max(near / _moved(solution))),
    )


def _moved(solution: Solution) -> Array:
    """How far each component of the state moves; those that hardly do count as a hundredth of the others."""
    steps = solution.problem.plant.chart.difference(solution.x[:-1], solution.x[1:])
    way = np.ptp(np.concatenate([np.zeros((1, steps.shape[1])), np.cumsum(steps, axis=0)]), axis=0)
    return np.maximum(way, 0.01 * np.max(way, initial=0.0) + 1e-9)


def _gaps(solution: Solution, parts: int, step: StageLoop) -> Array:
    """(N + 1, tangent): from the solution to the motion simulated from the start, at the nodes."""
    problem, N = solution.problem, solution.steps
    count = N * parts
    k, share = np.divmod(np.arange(count), parts)
    h = np.repeat(np.diff(solution.time) / parts, parts)[:, None]
    t = solution.time[k, None] + share[:, None] * h
    controls = np.concatenate(
        [solution.control_within(k, (share + c) / parts) for c in (0.0, 0.5, 1.0)], axis=1
    )
    x = np.empty((count + 1, problem.plant.chart.point))
    x[0] = solution.x[0]
    given = t, h, np.ascontiguousarray(controls), problem.parameters, np.array([solution.duration])
    step(count, x, *given, x, np.empty(count))
    return mesh.gaps(problem, solution.x, x[::parts])


AT_BOUND = 1e-3
"""share of the room between bounds within which a control counts as at one of them"""
SHORTEST = 2
"""intervals of an arc between bounds; fewer are a switch that falls into an interval"""


@dataclass(frozen=True)
class Arc:
    """From `start` to `end` [s] the control is at its "lower" or "upper" bound, "between" them, "singular", or
    "constrained": between its bounds while limits on other things hold, which may be what determines it."""

    control: str
    kind: str
    start: float
    end: float

    def __str__(self) -> str:
        where = {
            "lower": "at its lower bound",
            "upper": "at its upper bound",
            "between": "between its bounds",
            "constrained": "between its bounds, where other limits hold,",
        }
        return (
            f"{self.control} is {where.get(self.kind, 'singular')} from {self.start:.4g} to {self.end:.4g} s"
        )


def linear_controls(problem: Problem) -> list[str]:
    """Controls in which rates, running cost and path are linear."""
    plant = problem.plant
    x, u, t = ca.SX.sym("x", plant.chart.point), ca.SX.sym("u", len(plant.controls)), ca.SX.sym("t")
    p, T = ca.SX(problem.parameters), ca.SX.sym("T")
    s = problem.moment(t, x, u, p, T)
    whole = ca.vertcat(plant.rate(t, x, u, p), problem.cost.rate(s), *(row.value(s) for row in problem.path))
    J = ca.jacobian(whole, u)
    return [name for k, name in enumerate(plant.controls) if not ca.depends_on(J[:, k], u[k])]


def arcs(solution: Solution) -> list[Arc]:
    """By control and time; of controls with two bounds."""
    problem, N = solution.problem, solution.steps
    linear = linear_controls(problem)
    rows = {row.component: row for row in problem.limits["control"]}
    held = _held(solution)
    middle = solution.control_at((solution.time[:-1] + solution.time[1:]) / 2)
    found = []
    for k, name in enumerate(problem.plant.controls):
        row = rows.get(name)
        if row is None or not np.isfinite(row.upper - row.lower) or row.upper <= row.lower:
            continue
        room = AT_BOUND * (row.upper - row.lower)
        kinds = np.where(
            middle[:, k] <= row.lower + room, -1, np.where(middle[:, k] >= row.upper - room, 1, 0)
        )
        kinds = _without_switches(kinds)
        kinds = np.where((kinds == 0) & held, 2, kinds)
        edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), N]
        between = "singular" if name in linear else "between"
        for a, b in pairwise(edges):
            kind = {-1: "lower", 1: "upper", 0: between, 2: "constrained"}[int(kinds[a])]
            found.append(Arc(name, kind, float(solution.time[a]), float(solution.time[b])))
    return found


def _held(solution: Solution) -> Array:
    """Intervals where limits other than those of controls hold: their multipliers are larger than what is left to them."""
    stages, path = solution.stages, solution._outcome.iterate.path
    own = tuple(row.name for row in solution.problem.limits["control"])
    along = np.isfinite(stages.lower[1:]).any(axis=0) | np.isfinite(stages.upper[1:]).any(axis=0)
    others = [not any(name == x or name.startswith(f"{x} (") for x in own) for name in stages.path_names]
    below = (path.has_lower > 0) & (path.low > path.slack - path.lower)
    above = (path.has_upper > 0) & (path.high > path.upper - path.slack)
    at = ((below | above | (path.held > 0)) & along & np.array(others, dtype=bool)).any(axis=1)
    return at | np.append(at[1:], False)  # a state at the end of an interval too


def _without_switches(kinds: Array) -> Array:
    """Single intervals between two bounds belong to what follows: the switch is within them."""
    kinds = kinds.copy()
    edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(kinds)]
    for a, b in pairwise(edges):
        if kinds[a] == 0 and b - a < SHORTEST and a > 0 and b < len(kinds):
            kinds[a:b] = kinds[b]
    return kinds


def junctions(solution: Solution) -> set[int]:
    """Intervals on both sides of where a singular arc begins or ends: these are cut in refined meshes."""
    found: set[int] = set()
    nodes = solution.time
    for arc in arcs(solution):
        if arc.kind == "singular":
            for t in (arc.start, arc.end):
                k = int(np.argmin(np.abs(nodes - t)))
                found |= {j for j in (k - 1, k) if 0 < k < solution.steps and 0 <= j < solution.steps}
    return found


def sensitivities(solution: Solution) -> dict[str, Any]:
    """How the optimal cost changes with each parameter and input: the slope of the Lagrangian."""
    names = [name for name, _ in solution.problem.plant.parameters]
    inputs = solution.problem.input_values
    if not names and not inputs:
        return {}
    stages, it = solution.stages, solution._outcome.iterate
    slope = _parameter_slope(stages)
    given = (it.x[:-1].T, it.u.T, it.z.T, it.x[1:].T, stages.numbers.T, stages.parameters)
    total = slope.map(solution.steps)(
        *given[:5],
        np.tile(given[5][:, None], (1, solution.steps)),
        it.costates[1:].T,
        it.path.y.T,
    )
    found = total.full().reshape(len(stages.parameters), -1).sum(axis=1)
    x, s, p = ca.SX.sym("x", stages.chart.point), ca.SX.sym("s", 3), ca.SX.sym("p", len(stages.parameters))
    cost, equations, bounded = stages.end(x, s, p)
    end = cost + ca.dot(it.eta, equations) + ca.dot(it.last.y, bounded)
    start = ca.dot(it.sigma, stages.start(x, s, p))
    for expression, point in ((end, it.x[-1]), (start, it.x[0])):
        f = ca.Function("f", [x, s, p], [ca.gradient(expression, p)])
        found += f(point, stages.numbers[-1], stages.parameters).full()[:, 0]
    slopes: dict[str, Any] = dict(zip(names, map(float, found), strict=False))
    at = len(names)
    for name, value in inputs.items():
        own, at = found[at : at + value.size], at + value.size
        slopes[name] = own if value.size > 1 else float(own[0])
    return slopes


def _parameter_slope(stages: Stages) -> ca.Function:
    """The slope of a stage's Lagrangian along the parameters, with the multipliers of c from (2) of `evaluation`."""
    n, m, nz, nd = stages.sizes
    point = stages.chart.point
    x, u, z = ca.SX.sym("x", point), ca.SX.sym("u", m), ca.SX.sym("z", nz)
    after, s, p = ca.SX.sym("after", point), ca.SX.sym("s", 3), ca.SX.sym("p", len(stages.parameters))
    costate, y = ca.SX.sym("costate", n), ca.SX.sym("y", nd)
    f, cost, c, d = stages.stage(x, u, z, s, p)
    lagrangian = cost + ca.dot(costate, stages.chart.local(after, f)) + ca.dot(y, d)
    slope = ca.gradient(lagrangian, p)
    if nz:
        nu = -ca.solve(ca.jacobian(c, z).T, ca.gradient(lagrangian, z))
        slope = slope + ca.jacobian(c, p).T @ nu
    return ca.Function("slope", [x, u, z, after, s, p, costate, y], [ca.densify(slope)])


def controller(solution: Solution) -> Callable[[float, Array, Array], Array]:
    """Controls with the feedback of the last sweep, for `al.simulate(model, ..., controller=...)`.

    After the end of the solution the last controls and gains are held, which is told once.
    """
    model = solution._model("controller")
    end, told = float(solution.time[-1]), False
    gains, x = solution.gains, solution.x
    chart = solution.problem.plant.chart
    driven = list(solution.stages.plant.driven)  # type: ignore[attr-defined]
    if isinstance(solution.stages.plant, Momenta):
        gains = _gains_on_speeds(solution, gains)

    def control(t: float, q: Array, v: Array) -> Array:
        nonlocal told
        if t > end * (1 + 1e-9) and not told:
            told = True
            warn(
                f"controller: asked at t = {t:.6g} s, after the end of the solution at {end:.6g} s; its last controls and "
                "gains are held, which keep no motion: give a shorter duration, or go on with another controller"
            )
        k, share = solution._interval(t)
        step = chart.difference(x[k], x[k + 1])
        wanted = chart.move(x[k], share * step)
        error = chart.difference(wanted, np.concatenate([q, v]))
        tau = np.zeros(model.nv)
        tau[driven] = solution.control_at(t) - gains[k] @ error
        return tau

    control.breaks = solution.time  # type: ignore[attr-defined]  # gains jump there, and controls may
    return control


def _gains_on_speeds(solution: Solution, gains: Array) -> Array:
    """Gains on (q, p) as gains on (q, v), by dp = M dv + (dM/dq v) dq."""
    model = solution._model("controller")
    nv = model.nv
    q, v = solution.q[:-1], solution.v[:-1]
    tree = solution._tree
    M = tree.mass_matrix(q, parameters=solution.problem.parameter_values)
    step = 1e-6
    columns = []
    for k in range(nv):
        d = np.zeros(nv)
        d[k] = step
        plus = tree.mass_matrix(
            model.integrate(q, np.tile(d, (len(q), 1))), parameters=solution.problem.parameter_values
        )
        minus = tree.mass_matrix(
            model.integrate(q, np.tile(-d, (len(q), 1))), parameters=solution.problem.parameter_values
        )
        columns.append(np.einsum("kij,kj->ki", plus - minus, v) / (2 * step))
    along = np.stack(columns, axis=-1)
    Kq, Kp = gains[:, :, :nv], gains[:, :, nv:]
    return np.concatenate([Kq + np.matmul(Kp, along), np.matmul(Kp, M)], axis=2)
