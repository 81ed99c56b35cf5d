"""Where the search starts: straight on the manifold, from a simulation, a solution, arrays or a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
import scipy

from alembert.errors import AlembertError, ArgumentError
from alembert.model.printing import unknown
from alembert.model.space import Owner
from alembert.optimal.plant import Mechanics, Momenta, Row, System
from alembert.optimal.problem import Problem
from alembert.optimal.stages import Stages

if TYPE_CHECKING:
    from alembert.model import Model
    from alembert.optimal.plant import Row
    from alembert.optimal.problem import Problem

Array = np.ndarray
INSIDE = 0.1
"""share of the range of a control or state that a straight guess keeps from its bounds"""
PARAMETERS = 0.01
"""the same of design parameters, which begin at the values that they have"""
DRIFT_STEPS = 400
"""of rk4, for a motion that is only to be near"""
BACK = 0.1
"""share of its way within which a motion has come back"""
BRANCH_STEPS = 40
"""of a straight guess, in which loops are closed one after the other"""


@dataclass(frozen=True)
class Guess:
    """A motion of `duration` seconds: at the fractions of it, points (q, v) or states, and controls."""

    fraction: Array
    points: Array
    controls: Array
    duration: float
    design: Array | None = None
    """parameters that are to be found"""

    def at(self, problem: Problem, where: Array) -> Array:
        """Points at other fractions; configurations move along geodesics."""
        chart = problem.plant.chart
        k = np.clip(np.searchsorted(self.fraction, where, side="right") - 1, 0, len(self.fraction) - 2)
        share = (where - self.fraction[k]) / (self.fraction[k + 1] - self.fraction[k])
        steps = chart.difference(self.points[k], self.points[k + 1])
        return chart.move(self.points[k], share[:, None] * steps)

    def later(self, problem: Problem, seconds: float) -> Guess:
        """What is left of it after so many; where the duration of `problem` is given, it then stays where it ends."""
        passed = min(seconds / self.duration, 1 - 1e-3)
        left = (1 - passed) if problem.is_free else 1.0
        where = np.minimum(passed + left * self.fraction, 1.0)
        points, controls = self.at(problem, where), self.controls_at(where)
        return replace(self, points=points, controls=controls, duration=left * self.duration)

    def controls_at(self, where: Array) -> Array:
        """Linear in between."""
        columns = [np.interp(where, self.fraction, column) for column in self.controls.T]
        return np.column_stack(columns) if columns else np.empty((len(where), 0))


def make(problem: Problem, given: Any) -> Guess:
    """A guess from anything that describes a motion."""
    if given is None:
        return _coming_back(problem) or on_one_branch(problem, reaching(problem, straight(problem)))
    if isinstance(given, Guess):
        return given
    if isinstance(given, str | Path):
        return _from_arrays(problem, saved(given))
    if isinstance(given, Mapping):
        known = ("time", *(("q", "v", "efforts") if problem.model is not None else ("x",)), "controls")
        for name in given:
            if name not in (*known, "design", "cost"):
                raise ArgumentError(unknown("solve: the guess has no quantity", str(name), known))
        return _from_arrays(problem, given)
    other = getattr(getattr(given, "problem", None), "model", problem.model)
    if (other is None) != (problem.model is None):
        kinds = ("a System", "a model") if problem.model is not None else ("a model", "a System")
        raise ArgumentError(f"solve: the guess is a solution of {kinds[0]}, expected one of {kinds[1]}")
    names = ("time", "q", "v") if problem.model is not None else ("time", "x")
    if all(hasattr(given, name) for name in names):
        arrays = {name: getattr(given, name) for name in names}
        for name in ("controls", "efforts") if problem.model is not None else ("controls",):
            if hasattr(given, name):
                arrays[name] = getattr(given, name)
        return _from_arrays(problem, arrays)
    raise ArgumentError(
        f"solve: guess is a {type(given).__name__}, expected a solution, a simulation, a file of one, or arrays "
        f"{{{', '.join(map(repr, names))}}}"
    )


def saved(path: str | Path) -> dict[str, Any]:
    """The arrays of a file of `solution.save`."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        reason = getattr(error, "strerror", None) or "no file of solution.save (.npz)"
        raise ArgumentError(f"solve: the guess {str(path)!r} cannot be read: {reason}") from None


def straight(problem: Problem) -> Guess:
    """From start to end at constant speed, with controls as small as their bounds allow at some distance."""
    duration = problem.shortest if not problem.is_free else _middle(problem.shortest, problem.longest)
    model = problem.model
    fraction = np.array([0.0, 1.0])
    controls = np.zeros((2, len(problem.plant.controls)))
    for row in problem.limits["control"]:
        k = problem.plant.controls.index(row.component)
        controls[:, k] = _inside(row)
    if model is None:
        assert isinstance(problem.plant, System)
        ends = [_stated(rows) for rows in (problem.start, problem.end)]
        points = np.zeros((2, len(problem.plant.states)))
        for k, name in enumerate(problem.plant.states):
            first, last = (values.get(name) for values in ends)
            within = next((r for r in problem.limits["state"] if r.component == name), None)
            rest = _inside(within) if within else 0.0
            first = first if first is not None else last
            last = last if last is not None else first
            points[:, k] = (rest if first is None else first, rest if last is None else last)
        return Guess(fraction, points, controls, duration)
    configurations = []
    for rows, other in ((problem.start, problem.end), (problem.end, problem.start)):
        q = model.neutral()
        for owner in model.space:
            q[owner.q] = _stated_joint(problem, owner, rows, other)
        configurations.append(q)
    v = model.difference(*configurations) / duration
    points = np.array([np.concatenate([q, v]) for q in configurations])
    return Guess(fraction, points, controls, duration)


def drifting(problem: Problem, duration: float | None = None) -> Guess | None:
    """The motion that the start leads to under the controls of a straight guess: an orbit does not go straight.

    None where the start is not stated, joints are prescribed or loops are to be kept closed, or it runs away.
    """
    plant, chart = problem.plant, problem.plant.chart
    stated = {row.component: row.lower for row in problem.start if row.is_equation}
    if not stated.keys() >= set(plant.tangent_names) or getattr(plant, "closure", None) is not None:
        return None
    begin = straight(problem)
    duration = duration or begin.duration
    where, controls, h = np.linspace(0, 1, DRIFT_STEPS + 1), begin.controls[0], duration / DRIFT_STEPS
    points = np.empty((DRIFT_STEPS + 1, chart.point))
    points[0] = begin.points[0]
    points[0, chart.nq :] = [stated[name] for name in plant.tangent_names[chart.nv :]]
    for k, share in enumerate(where[:-1]):
        at = share * duration, h, np.tile(controls, 3), problem.parameters, duration
        points[k + 1] = problem.fine[0](points[k], *at)[0].full()[:, 0]
    if not np.isfinite(points).all():
        return None
    return Guess(where, points, np.tile(controls, (len(where), 1)), duration)


def _coming_back(problem: Problem) -> Guess | None:
    """The motion that the start of a `System` leads to by itself, where that goes farther than the end and then comes near
    it: a turn of an orbit, where a straight one is slow or goes through the Earth. Of a free duration, until it is nearest.
    """
    begin, longest = straight(problem), problem.longest
    names = list(problem.plant.tangent_names)
    ends = {names.index(row.component): row for row in problem.end if row.component in names}
    if problem.model is not None or not ends or not np.isfinite(longest):
        return None
    x, u, p = ca.SX(begin.points[0]), ca.SX(begin.controls[0]), ca.SX(problem.parameters)
    speed = np.abs(ca.evalf(problem.plant.rate(ca.SX(0), x, u, p)).full()[:, 0])
    asked, way = list(ends), np.abs(np.diff(begin.points, axis=0)[0])
    if not (way < longest * speed)[asked].any():
        return None
    found = drifting(problem, longest)
    if found is None:
        return None
    low, high = (np.array([getattr(row, side) for row in ends.values()]) for side in ("lower", "upper"))
    at = found.points[:, asked]
    off = np.maximum(np.maximum(low - at, at - high), 0.0)
    late = np.flatnonzero(found.fraction * longest >= problem.shortest * (1 - 1e-9))
    size = np.maximum(np.ptp(at, axis=0), 1e-300)
    k = int(late[np.argmin((off[late] / size).max(axis=1))])
    duration = found.fraction[k] * longest
    if k == 0 or not (way < duration * speed)[asked].any():
        return None
    if not (off[k] < BACK * np.ptp(at[: k + 1], axis=0)).all():
        return None
    return Guess(
        found.fraction[: k + 1] / found.fraction[k], found.points[: k + 1], found.controls[: k + 1], duration
    )


def on_one_branch(problem: Problem, guess: Guess) -> Guess:
    """A straight guess in which joints that are stated at both ends move straight, the others as the loops have it.

    Closing each node for itself may jump to another assembly of the loops, and move what is stated. The guess as it is where
    nothing is stated twice, or the loops do not let it move straight.
    """
    model = problem.model
    if model is None or not model.is_constrained:
        return guess
    ends = [{row.component for row in rows if row.is_equation} for rows in (problem.start, problem.end)]
    stated = [name for name in model.speed_names if all(f"q {name}" in names for names in ends)]
    if not stated:
        return guess
    return along_branch(problem, guess, stated)


def along_branch(problem: Problem, guess: Guess, held: list[str]) -> Guess:
    """The guess with loops closed one node after the other, each from the one before; `held` joints move as it has it."""
    model = problem.model
    assert model is not None
    where = np.linspace(0, 1, BRANCH_STEPS + 1)
    given = guess.at(problem, where)
    steps = np.zeros((BRANCH_STEPS, model.nv))
    dofs = [model.speed_names.index(name) for name in held]
    steps[:, dofs] = model.difference(given[:-1, : model.nq], given[1:, : model.nq])[:, dofs]
    q, points = given[0, : model.nq], []
    try:
        for k, v in enumerate(given[:, model.nq :]):
            near = model.integrate(q, steps[k - 1]) if k else q
            found = model.assemble(near, v, fixed=held, parameters=problem.parameter_values)
            q = found.q
            points.append(np.concatenate([q, found.v]))
    except AlembertError:
        return guess
    return Guess(where, np.array(points), guess.controls_at(where), guess.duration, guess.design)


def _stated(rows: list[Row]) -> dict[str, float]:
    return {row.component: _middle(row.lower, row.upper) for row in rows if row.component}


def _stated_joint(problem: Problem, owner: Owner, rows: list[Row], other: list[Row]) -> Array:
    """What the conditions say of a joint's coordinates, or those at the other end, or its neutral ones."""
    names = [f"q {name}" for name in owner.speed_names]
    for found in (rows, other):
        known = {row.component: row for row in found if row.component in names}
        if not known:
            continue
        if not owner.type.is_vector_space:
            return known[names[0]].point
        q = np.array(owner.type.neutral())
        for k, name in enumerate(names):
            if name in known:
                q[k] = _middle(known[name].lower, known[name].upper)
        return q
    q = np.array(owner.type.neutral())
    if owner.type.is_vector_space:
        limits = {row.component: row for row in problem.limits["state"]}
        for k, name in enumerate(names):
            if name in limits:
                q[k] = np.clip(q[k], limits[name].lower, limits[name].upper)
    return q


def _inside(row: Row) -> float:
    """The value nearest to 0 that is not too near the bounds: solvers make only short steps from there."""
    low, high = row.lower, row.upper
    if np.isfinite(low) and np.isfinite(high):
        return float(np.clip(0.0, low + INSIDE * (high - low), high - INSIDE * (high - low)))
    if np.isfinite(low):
        return max(0.0, low + INSIDE * max(1.0, abs(low)))
    return min(0.0, high - INSIDE * max(1.0, abs(high))) if np.isfinite(high) else 0.0


def _middle(low: float, high: float) -> float:
    if np.isfinite(low) and np.isfinite(high):
        return (low + high) / 2
    return low if np.isfinite(low) else high if np.isfinite(high) else 0.0


def _from_arrays(problem: Problem, given: Mapping[str, Any]) -> Guess:
    model = problem.model
    names = ("q", "v") if model is not None else ("x",)
    missing = [name for name in ("time", names[0]) if name not in given]
    if missing:
        raise ArgumentError(f"solve: guess lacks {missing[0]!r}; it has {', '.join(map(repr, given))}")
    time = np.asarray(given["time"], dtype=float)
    if time.ndim != 1 or len(time) < 2 or not np.all(np.diff(time) > 0):
        raise ArgumentError("solve: the times of the guess are not increasing")
    if model is not None:
        q = np.asarray(given["q"], dtype=float)
        if q.shape != (len(time), model.nq):
            raise ArgumentError(
                f"solve: the guess has q of shape {q.shape}, expected {(len(time), model.nq)}"
            )
        _finite("q", q, time)
        v = given.get("v")
        if v is None:
            steps = model.difference(q[:-1], q[1:]) / np.diff(time)[:, None]
            v = np.concatenate([steps, steps[-1:]])
        points = np.concatenate([q, np.asarray(v, dtype=float)], axis=-1)
    else:
        points = np.asarray(given["x"], dtype=float)
    expected = (len(time), problem.plant.chart.point)
    if points.shape != expected:
        raise ArgumentError(f"solve: the guess has points of shape {points.shape}, expected {expected}")
    _finite("points", points, time)
    controls = given.get("controls")
    if controls is None and given.get("efforts") is not None and isinstance(problem.plant, Mechanics):
        controls = np.asarray(given["efforts"], dtype=float)[..., list(problem.plant.driven)]
    m = len(problem.plant.controls)
    controls = np.zeros((len(time), m)) if controls is None else np.asarray(controls, dtype=float)
    if len(controls) == len(time) - 1:
        controls = np.concatenate([controls, controls[-1:]])
    if controls.shape != (len(time), m):
        raise ArgumentError(
            f"solve: the guess has controls of shape {controls.shape}, expected {(len(time), m)}"
        )
    _finite("controls", controls, time)
    found = Guess((time - time[0]) / (time[-1] - time[0]), points, controls, float(time[-1] - time[0]))
    design = np.asarray(given.get("design", ()), dtype=float)
    if design.shape == (len(problem.design),) and np.isfinite(design).all():
        found = replace(found, design=design)
    return found


def _finite(what: str, values: Array, time: Array) -> None:
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise ArgumentError(f"solve: the {what} of the guess are not finite at {time[bad[0]]:g} s")


def place(stages: Stages, guess: Guess) -> tuple[Array, Array, Array]:
    """x, u and z of the stages."""
    problem, scheme, N = stages.problem, stages.scheme, stages.count
    nodes, widths = stages.nodes, stages.numbers[:, 1]
    points = _closed(
        problem, guess.at(problem, nodes), nodes * np.clip(guess.duration, problem.shortest, problem.longest)
    )
    plant = stages.plant
    if isinstance(plant, Momenta):
        nq = plant.model.nq
        M = plant.tree.mass_matrix(points[:, :nq], parameters=problem.parameter_values)
        points = np.concatenate([points[:, :nq], np.einsum("kij,kj->ki", M, points[:, nq:])], axis=1)
    parts = [points]
    if stages.memory:
        before = nodes if scheme.node_controls else nodes - 0.5 * np.append(widths[0], widths)
        parts.append(guess.controls_at(np.clip(before, 0, 1)))
    if problem.periodic:
        reference = np.concatenate(
            [problem.model.neutral() if problem.model is not None else [], np.zeros(plant.chart.rest)]
        )
        held = plant.chart.difference(reference, points[0])
        parts.append(np.tile(held, (N + 1, 1)))
    parts.append(np.zeros((N + 1, len(problem.integrals))))
    if problem.design:
        rows = problem.design.values()
        room = [PARAMETERS * (row.upper - row.lower) for row in rows]
        low, high = ([getattr(row, side) for row in rows] for side in ("lower", "upper"))
        known = problem.parameters[list(problem.design)] if guess.design is None else guess.design
        parts.append(np.tile(np.clip(known, np.add(low, room), np.subtract(high, room)), (N + 1, 1)))
    if problem.is_free:
        span = np.clip(guess.duration, problem.shortest, problem.longest)
        parts.append(np.full((N + 1, 1), span))
    x = np.concatenate(parts, axis=1)
    u = np.concatenate([guess.controls_at(nodes[:-1] + c * widths) for c in stages.control_places], axis=1)
    return x, u, scheme.guess(plant, points[:-1], points[1:])


def _closed(problem: Problem, points: Array, times: Array) -> Array:
    """The points with prescribed joints where they are to be, and loops closed where that succeeds."""
    plant = problem.plant
    if not isinstance(plant, Mechanics) or plant.closure is None:
        return points
    model, closure = plant.model, plant.closure
    points = points.copy()
    q, v = points[:, : model.nq], points[:, model.nq :]
    t = ca.SX.sym("t")
    motion = ca.Function("motion", [t], list(closure.motion(t)[:2])).map(len(times))
    r, rate = (part.full().T for part in motion(times[None]))
    q[:, list(closure.coordinates)], v[:, list(closure.dofs)] = r, rate
    if not closure.loops:
        return points
    fixed = [model.speed_names[k] for k in closure.dofs]
    driven = [*fixed, *(name for name in plant.controls if name not in fixed)]
    given = q.copy()
    last: Array | None = None  # the node before

    def assembled(near: Array, v: Array, held: list[str]) -> tuple[Array, Array] | None:
        try:
            found = model.assemble(near, v, fixed=held, parameters=problem.parameter_values)
        except AlembertError:
            return None
        return found.q, found.v

    for k in range(len(q)):
        found = assembled(q[k], v[k], fixed)
        if last is not None:
            step = model.difference(given[k - 1], given[k])
            if found is None or _far(model, last, found[0]) > JUMP * np.abs(step).max():
                step[[name not in driven for name in model.speed_names]] = 0.0
                other = assembled(model.integrate(last, step), v[k], driven) or assembled(last, v[k], fixed)
                nearer = other is not None and (
                    found is None or _far(model, last, other[0]) < _far(model, last, found[0])
                )
                found = other if nearer else found
        if found is not None:
            q[k], v[k] = found
            last = q[k]
    return points


def _far(model: Model, one: Array, other: Array) -> float:
    return float(np.abs(model.difference(one, other)).max())


JUMP = 3.0
"""times the step of a guess from node to node: where closing its loops moves farther, they have found another assembly"""
NEAR = 1e-3
"""the weight of a turn by one radian against a condition that is off by one"""
AWAY = 0.3
"""how far from the guess the other starts are [rad, m]"""


def reaching(problem: Problem, guess: Guess) -> Guess:
    """`guess` with its ends moved to where the conditions of the user's own hold, as far as (1) finds it.

    Where a straight guess begins and ends, if conditions there are functions: a configuration that keeps them.

    The joints that are not stated at an end are moved by d, as little as it takes to keep the rows g of the user's own,

        min_d |outside(g(q + d))|^2 + (NEAR |d|)^2                                                        (1)

    from a few starts, since a stretched arm at rest has no slope along which its tip could rise.
    """
    model, plant = problem.model, problem.plant
    if model is None or getattr(plant, "closure", None) is not None:
        return guess
    points = guess.points.copy()
    for which, rows in ((0, problem.start), (-1, problem.end)):
        own = [row for row in rows if not row.component]
        stated = {row.component for row in rows if row.is_equation}
        free = [k for k, name in enumerate(model.speed_names) if f"q {name}" not in stated]
        if own and free:
            q = points[which, : model.nq]
            points[which, : model.nq] = model.integrate(q, _step(problem, own, free, q))
    if np.array_equal(points, guess.points):
        return guess
    speeds = model.difference(points[0, : model.nq], points[-1, : model.nq]) / guess.duration
    points[:, model.nq :] = speeds
    return replace(guess, points=points)


def _step(problem: Problem, own: list[Row], free: list[int], q: Array) -> Array:
    """d of (1), zero for joints that are stated."""
    model = problem.model
    assert model is not None
    d, v, t = ca.SX.sym("d", len(free)), ca.SX.sym("v", model.nv), ca.SX.sym("t")
    whole = ca.SX.zeros(model.nv)
    for k, j in enumerate(free):
        whole[j] = d[k]
    x = ca.vertcat(model.symbolic.integrate(ca.SX(q), whole), v)
    s = problem.moment(t, x, ca.SX.zeros(len(problem.plant.controls)), ca.SX(problem.parameters), t)
    values = [(row, row.value(s)) for row in own]
    kept = [(row, value) for row, value in values if not ca.depends_on(value, ca.vertcat(v, t))]
    if not kept:
        return np.zeros(model.nv)
    g = ca.vertcat(*(value for _, value in kept))
    f = ca.Function("reach", [d], [g, ca.densify(ca.jacobian(g, d))])
    lower, upper = (np.array([getattr(row, side) for row, _ in kept]) for side in ("lower", "upper"))

    def residuals(d: Array) -> Array:
        g = f(d)[0].full()[:, 0]
        return np.concatenate([np.minimum(g - lower, 0) + np.maximum(g - upper, 0), NEAR * d])

    def slopes(d: Array) -> Array:
        g, J = (w.full() for w in f(d))
        outside = (g[:, 0] < lower) | (g[:, 0] > upper)
        return np.concatenate([outside[:, None] * J, NEAR * np.eye(len(free))])

    count, still = len(kept), np.zeros(len(free))
    if not np.isfinite(residuals(still)).all() or np.abs(residuals(still)[:count]).max() < 1e-6:
        return np.zeros(model.nv)
    low, high = _room(problem, free, q)
    found, best = still, float(np.sum(residuals(still) ** 2))
    for start in (still, AWAY * np.cos(np.arange(len(free))), -AWAY * np.cos(np.arange(len(free)))):
        begin = np.clip(start, low + 1e-9, high - 1e-9)
        if not np.isfinite(residuals(begin)).all():
            continue
        tried = scipy.optimize.least_squares(residuals, begin, slopes, (low, high), max_nfev=50)
        if 2 * tried.cost < best:
            found, best = tried.x, 2 * tried.cost
    out = np.zeros(model.nv)
    out[free] = found
    return out


def _room(problem: Problem, free: list[int], q: Array) -> tuple[Array, Array]:
    """How far the joints may turn within their limits."""
    model = problem.model
    assert model is not None
    limits = {row.component: row for row in problem.limits["state"]}
    low, high = np.full(len(free), -np.inf), np.full(len(free), np.inf)
    place = {
        k: q[owner.q][i]
        for owner in model.space
        if owner.type.nq == owner.type.nv
        for i, k in enumerate(range(owner.v.start, owner.v.stop))
    }
    for i, k in enumerate(free):
        row = limits.get(f"q {model.speed_names[k]}")
        if row is not None and k in place and row.lower < row.upper:
            low[i], high[i] = row.lower - place[k], row.upper - place[k]
    return np.minimum(low, -1e-6), np.maximum(high, 1e-6)
