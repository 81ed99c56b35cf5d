"""Inverse kinematics: configurations at which tasks are done.

What `reach` has found.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.arguments import common, names, numbers, real, told_elsewhere, whole
from alembert.errors import ArgumentError, UnsupportedError, warn
from alembert.reach.iteration import MOST, STRICT, USUAL, TaskLevels
from alembert.reach.tasks import ReachTask, Symbols, read
from alembert.spatial import Pose

if TYPE_CHECKING:
    from alembert.model import Model


Array = np.ndarray


@told_elsewhere(dict.fromkeys(("success", "ok", "converged"), "found.reached"))
@dataclass(frozen=True, eq=False)
class Reached:
    """Configurations, and how near each task is to being done, over the batch of the targets."""

    q: Array
    """(..., nq): where a task is out of reach, the nearest that was found"""
    reached: Array | bool
    """(...): whether all tasks of the first priority are done, and all loops closed"""
    measured: Array
    """(..., errors): those of `errors`, side by side"""
    units: Mapping[str, str]
    """of the errors, by their names"""
    tolerance: float
    attempts: Array | int
    """(...): starts that were tried"""
    iterations: Array | int
    """(...): of the start that is given"""
    first: tuple[str, ...]
    """the errors that `reached` asks for"""

    @cached_property
    def errors(self) -> Mapping[str, Array]:
        """(...) by task, in m or rad; of a pose `NAME: position` and `NAME: orientation`."""
        return {label: self.measured[..., k] for k, label in enumerate(self.units)}

    @property
    def out_of_reach(self) -> dict[str, Array]:
        """By how much tasks of any priority are missed, where they are, (...): zero elsewhere."""
        missed = {name: np.where(e > self.tolerance, e, 0.0) for name, e in self.errors.items()}
        return {name: e for name, e in missed.items() if np.any(e)}

    @property
    def message(self) -> str:
        """A sentence that names what was not reached, and by how much."""
        done = bool(np.all(self.reached))
        listed = ", ".join(
            f"{name} by {np.max(e):.3g} {self.units[name]}".rstrip()
            for name, e in self.out_of_reach.items()
            if done or name in self.first
        )
        if done and listed:
            return f"all tasks of the first priority are reached; after them are missed {listed}"
        if done:
            return "all tasks are reached"
        if np.ndim(self.reached) == 0:
            return f"out of reach: {listed}"
        count, total = int(np.sum(~np.asarray(self.reached))), np.size(self.reached)
        return f"{count} of {total} targets are out of reach; at most: {listed}"

    def __repr__(self) -> str:
        return f"<Reached: {self.message}>"


TOLERANCE = 1e-9
ITERATIONS = 60
RESTARTS = 50
SHORT = 20
"""iterations after which another start is tried first: 9 of 10 that get there need 17 or fewer (an arm of 7 joints)"""
QUICK = 25
"""starts that are given up so early; those after them have all iterations"""
STAGE = 10
"""iterations after which targets of a batch that are reached leave it, so that no lane waits for its neighbours"""
PATIENT = 7
"""further starts at the end, with all the iterations that there are: a vector of eight with the nearest that was found"""
RATIOS = (USUAL, 1e3, 1e5)
"""R one after the other where the first tasks are out of reach, before the first tasks take back what was bought"""
FEW = 256
"""targets for which that is not worth while"""
CLOSED = "loops and couplings"


def reach(
    model: Model,
    tasks: Any,
    *,
    start: Any = None,
    limits: bool | tuple[Any, Any] = True,
    fixed: Sequence[str] = (),
    tolerance: float = TOLERANCE,
    iterations: int = ITERATIONS,
    restarts: int = RESTARTS,
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
) -> Reached:
    """A configuration at which tasks are done: inverse kinematics.

    `tasks` are made by `al.reach.position`, `orientation`, `pose`, `point_at`, `distance`, `center_of_mass`, `custom`, and
    the preferences `posture` and `centered`; or they are a mapping from frames to poses or positions. Those of lower
    priority are done as far as those of higher priority leave room; within one, by weight. Targets with leading
    dimensions are a batch: thousands are solved together.

    The search starts at `start` (..., nq), by default in the middle of the joint limits, and from up to `restarts` random
    configurations (`seed`) where that fails. Joints stay within their `limits` (True; False: none; or a pair of lower and
    upper bounds of all coordinates); `fixed` joints stay where `start` has them, modes of flexible bodies always do.
    Loops, couplings and equations of the model hold. A task is done when its error (m, rad) is at most `tolerance`.

    What is out of reach is named in a warning and in the result, with the distance that is missing.
    """
    found = solver(model, tasks, fixed=fixed)
    return found(
        start=start,
        limits=limits,
        tolerance=tolerance,
        iterations=iterations,
        restarts=restarts,
        seed=seed,
        parameters=parameters,
        tasks=read("reach", model, tasks),
    )


def solver(model: Model, tasks: Any, *, fixed: Sequence[str] = ()) -> ReachSolver:
    """Compiled inverse kinematics for tasks of this kind: call it with new targets, as often as you like."""
    return _solver(model, read("reach", model, tasks), _held(model, fixed))


def _solver(model: Model, given: Sequence[ReachTask], held: tuple[int, ...]) -> ReachSolver:
    key = ("reach", tuple((task.structure, task.priority, task.target.shape[-1]) for task in given), held)
    kept = model.compute.kernels
    own = any(not task.structure for task in given)
    if not own and key in kept:
        return ReachSolver(model, given, held, kept[key])
    found = ReachSolver(model, given, held)
    if not own:
        kept[key] = found.kernel
    return found


def _held(model: Model, fixed: Sequence[str]) -> tuple[int, ...]:
    space = model.space
    found = space.dofs("reach", "fixed", [*space.of_bodies, *names("reach", "fixed", fixed)])
    return tuple(sorted(set(found)))


class ReachSolver:
    """Made by `al.reach.solver`: the compiled iteration for some tasks."""

    def __init__(
        self, model: Model, tasks: Sequence[ReachTask], held: tuple[int, ...] = (), kernel: Any = None
    ) -> None:
        moving = [k for k in range(model.nv) if k not in held]
        if not moving:
            raise ArgumentError("reach: no joint is left to move; fixed names them all")
        self.model, self.tasks, self._held = model, tuple(tasks), held
        self.problem = TaskLevels(model, self.tasks, moving)
        self.kernel = kernel or self.problem.kernel(self._structure(held))
        labels, units = ([CLOSED], [""]) if self.problem.held else ([], [])
        for task, k in self.problem.measures:
            label, unit = task.measures[k]
            labels.append(task.name if len(task.measures) == 1 else f"{task.name}: {label}")
            units.append(unit)
        self._labels = labels
        self._units = dict(zip(labels, units, strict=True))
        asked = [task.priority == self.problem.first for task, _ in self.problem.measures]
        self._asked = np.array([True] * self.problem.held + asked, dtype=bool)
        self._kept: dict[bool, Array] = {}
        self._first = tuple(label for label, asked in zip(labels, self._asked, strict=True) if asked)
        self._coordinates = np.array(list(self.problem.bounded.values()), dtype=int)
        self._still = self._not_moving()
        self._starts: dict[tuple[bytes, int], tuple[np.random.Generator, list[Array]]] = {}
        self._widths = self.problem.widths
        self._last_asked: tuple[Any, ...] = ()
        """what was found to be numbers"""
        self._is_quick = len(self.problem.levels) == 1 and not self.problem.has_preferences
        """whether a start that gets there does so in few iterations"""

    def _not_moving(self) -> list[int]:
        """Coordinates that stay as they are at the start."""
        moving, found = set(self.problem.moving), []
        for o in self.model.space:
            speeds = range(o.v.start, o.v.stop)
            if o.type.is_vector_space:
                found += [o.q.start + k for k, v in enumerate(speeds) if v not in moving]
            elif not any(v in moving for v in speeds):
                found += range(o.q.start, o.q.stop)
        return found

    # --- one target -------------------------------------------------------------------------------------------------

    @cached_property
    def _first_alone(self) -> tuple[ReachSolver, Array]:
        """Of the tasks of the first priority, without the others; and the places of their numbers in `targets`."""
        asked = [task.priority == self.problem.first for task in self.tasks]
        tasks = [task for task, own in zip(self.tasks, asked, strict=True) if own]
        return _solver(self.model, tasks, self._held), np.flatnonzero(np.repeat(asked, self._widths))

    def _is_reached(self, errors: Array, tolerance: float) -> bool:
        """Of one target."""
        return all(e <= tolerance for e in errors.tolist()) or bool(self._are_reached(errors, tolerance))

    def _are_reached(self, errors: Array, tolerance: float) -> Array:
        """(...)"""
        return np.asarray((errors[..., self._asked] <= tolerance).all(axis=-1))

    def __repr__(self) -> str:
        return f"<ReachSolver {', '.join(task.name for task in self.tasks)}>"

    def _structure(self, held: tuple[int, ...]) -> str:
        parts = [f"{held}"]
        for task in self.tasks:
            text = task.structure or self._content(task)
            parts.append(f"{text} {task.priority} {task.target.shape[-1]} {task.frames}")
        return "|".join(parts)

    def _content(self, task: ReachTask) -> str:
        """Of a function of the user's."""
        q, t = ca.SX.sym("q", self.model.nq), ca.SX.sym("t", task.target.shape[-1])
        p = ca.SX.sym("p", len(self.model.parameters))
        value = ca.Function("task", [q, t, p], [ca.SX(task.rows(Symbols(self.model, q, p), t).residual)])
        return f"{task.is_preference} {hashlib.sha256(value.serialize().encode()).hexdigest()}"

    def __call__(
        self,
        *targets: Any,
        start: Any = None,
        limits: bool | tuple[Any, Any] = True,
        tolerance: float = TOLERANCE,
        iterations: int = ITERATIONS,
        restarts: int = RESTARTS,
        seed: int = 0,
        parameters: Mapping[str, Any] | None = None,
        tasks: Sequence[ReachTask] | None = None,
        quiet: bool = False,
    ) -> Reached:
        """As `al.reach`, with targets in the order of the tasks; without, those of the tasks that it was made with.

        A target is an array as the kernel takes it: positions (..., 3), rotations by rows (..., 9), poses as `Pose` or
        (..., 12) with the rotation by rows first. `quiet` leaves the warning out.
        """
        model = self.model
        data, batch = self._data(targets, self.tasks if tasks is None else tasks)
        bounds = self._bounds(limits)
        if start is None:
            q0 = self._middle(bounds)
        else:
            q0 = numbers("reach", "start", start, model.nq, f"; the model has {model.nq} coordinates")
            if not (model.space.is_vector_space and _is_finite(q0)):
                model.space.check("reach", q0)
            if batch or q0.ndim > 1:
                batch = common("reach", [("targets", batch), ("start", q0.shape[:-1])])
        asked = (iterations, restarts, tolerance)
        if asked != self._last_asked:
            whole("reach", "iterations", iterations, f"a whole number from 1 to {MOST}", most=MOST)
            whole("reach", "restarts", restarts, f"a whole number from 0 to {10**6}", least=0, most=10**6)
            real("reach", "tolerance", tolerance, "a positive number", over=0.0)
            self._last_asked = asked
        last: tuple[Array, ...] = ()
        if model.parameters:
            p = model.compute.parameter_array("reach", parameters)
            batch = common("reach", [("targets", batch), ("parameters", p.shape[:-1])])
            last = (p,)
        elif parameters:
            raise ArgumentError(f"reach: the model {model.name!r} has no parameters")
        search = _Search(self, data, bounds, last, float(tolerance), iterations, restarts, seed)
        q, errors, iterated, reached, attempts = search.many(q0, batch) if batch else search.one(q0)
        result = Reached(q, reached, errors, self._units, tolerance, attempts, iterated, self._first)
        if not quiet and not (np.all(reached) if batch else reached):
            warn(f"reach: {result.message}")
        return result

    # --- reading -------------------------------------------------------------------------------------------------

    def _data(self, targets: Sequence[Any], tasks: Sequence[ReachTask]) -> tuple[Array, tuple[int, ...]]:
        """Weights and targets side by side, (..., widths)."""
        if len(targets) == 1 and len(tasks) == 1 and type(targets[0]) is Pose and self._widths[0] == 13:
            row = _row(tasks[0].weight, targets[0])
            if row is not None:
                return row, ()
        if not targets:
            values = [task.target for task in tasks]
        elif len(targets) != len(tasks):
            raise ArgumentError(f"reach: got {len(targets)} targets for {len(tasks)} tasks")
        else:
            values = [_flat(x) for x in targets]
            for task, x, width in zip(tasks, values, self._widths, strict=True):
                if x.shape[-1] != width - 1 or not _is_finite(x):
                    raise ArgumentError(
                        f"reach: the target of {task.name!r} has shape {x.shape}, expected finite numbers (..., {width - 1})"
                    )
        if all(x.ndim == 1 for x in values):
            rows = [(task.weight, *x.tolist()) for task, x in zip(tasks, values, strict=True)]
            return np.array([entry for row in rows for entry in row]), ()
        shapes = [(task.name, x.shape[:-1]) for task, x in zip(tasks, values, strict=True)]
        batch = common("reach", shapes)
        data = np.empty((*batch, sum(self._widths)))
        at = 0
        for task, x in zip(tasks, values, strict=True):
            data[..., at] = task.weight
            data[..., at + 1 : at + 1 + x.shape[-1]] = x
            at += 1 + x.shape[-1]
        return data, batch

    def _bounds(self, limits: Any) -> Array:
        if not isinstance(limits, bool):
            return self._read_bounds(limits)
        if limits not in self._kept:
            self._kept[limits] = self._read_bounds(limits)
        return self._kept[limits]

    def _read_bounds(self, limits: Any) -> Array:
        space, own = self.model.space, self._coordinates
        if limits is False:
            low, high = np.full(space.nq, -np.inf), np.full(space.nq, np.inf)
        elif limits is True:
            low, high = space.limits("lower"), space.limits("upper")
            self._check_curved(low, high)
        else:
            try:
                low, high = (numbers("reach", "limits", x, space.nq, batch=False) for x in limits)
            except (TypeError, ValueError) as error:
                raise ArgumentError(
                    f"reach: limits is {limits!r}, expected True, False or a pair of bounds ({space.nq} each)"
                ) from error
            if not np.all(low <= high):
                raise ArgumentError("reach: limits: a lower bound is above the upper one")
            self._check_curved(low, high)
        return np.concatenate([low[own], high[own]])

    def _check_curved(self, low: Array, high: Array) -> None:
        for owner in self.model.space:
            if owner.type.is_vector_space or not owner.type.nv:
                continue
            if np.any(np.isfinite(low[owner.q])) or np.any(np.isfinite(high[owner.q])):
                raise UnsupportedError(
                    f"reach: limits of the {owner.type.kind} joint {owner.name!r}, whose coordinates do not simply add, "
                    "cannot be kept; limits=False leaves all limits out, limits=(lower, upper) gives others"
                )

    def _middle(self, bounds: Array) -> Array:
        """The neutral configuration, moved to the middle of the limits where there are two."""
        q = self.model.neutral()
        low, high = bounds.reshape(2, -1)
        own = self._coordinates
        both = np.isfinite(low) & np.isfinite(high)
        q[own[both]] = (low[both] + high[both]) / 2
        q[own] = np.clip(q[own], low, high)
        return q

    # --- other starts ----------------------------------------------------------------------------------------------

    def _start_at(self, number: int, bounds: Array, seed: int, start: Array) -> Array:
        """The random configuration of this number within the bounds; what is held is as in `start` (..., nq)."""
        key = (bounds.tobytes(), seed)
        if key not in self._starts:
            if len(self._starts) > 8:
                self._starts.clear()
            self._starts[key] = (np.random.default_rng(seed), [])
        rng, drawn = self._starts[key]
        while len(drawn) < number:
            drawn.append(self._drawn(rng, bounds))
        found = drawn[number - 1]
        if self._still or start.ndim > 1:
            found = np.broadcast_to(found, start.shape).copy()
            found[..., self._still] = start[..., self._still]
        return found

    def _drawn(self, rng: np.random.Generator, bounds: Array) -> Array:
        space, q = self.model.space, self.model.neutral()
        low, high = (np.full(space.nq, x) for x in (-np.inf, np.inf))
        low[self._coordinates], high[self._coordinates] = bounds.reshape(2, -1)
        for o in space:
            if o.type.nv:
                q[o.q] = o.type.random(rng, low[o.q], high[o.q])
        return q


class _Search:
    """From a start, and then from random ones, what is asked for; the nearest is kept, and brought to rest at the end."""

    __slots__ = ("bounds", "by", "data", "last", "most", "restarts", "seed", "short", "tolerance")

    def __init__(
        self,
        by: ReachSolver,
        data: Array,
        bounds: Array,
        last: tuple[Array, ...],
        tolerance: float,
        most: int,
        restarts: int,
        seed: int,
    ) -> None:
        self.by, self.data, self.bounds, self.last = by, data, bounds, last
        self.tolerance, self.most, self.restarts, self.seed = tolerance, most, restarts, seed
        self.short = min(most, SHORT) if restarts and by._is_quick else most

    def one(self, start: Array) -> tuple[Array, Array, int, bool, int]:
        """q, errors, iterations, whether it is reached, and the starts that were tried; of one target."""
        by, tolerance = self.by, self.tolerance
        settings = _settings(tolerance, self.short)
        q, errors, status = by.kernel(start, self.data, self.bounds, settings, *self.last)
        tried, reached = 1, by._is_reached(errors, tolerance)
        while not reached and tried <= self.restarts:
            q0 = by._start_at(tried, self.bounds, self.seed, start)
            if tried == QUICK:
                settings = _settings(tolerance, self.most)
            found = by.kernel(q0, self.data, self.bounds, settings, *self.last)
            tried += 1
            reached = by._is_reached(found[1], tolerance)
            if reached or not found[2][0] >= status[0]:
                q, errors, status = found
        if not reached and len(by.problem.levels) > 1:
            rest = [x[None] for x in self.last]
            q, errors, status = (x[0] for x in self._by_priority(start[None], self.data[None], rest))
            reached = by._is_reached(errors, tolerance)
        elif not reached:
            given, more = self._patient(q[None], start[None], self.data[None], [x[None] for x in self.last])
            found = by.kernel(*given, self.bounds, _settings(tolerance, MOST, 1.0), *more)
            k, good = self._best(found)
            if good[0] or found[2][k[0], 0] <= status[0]:
                q, errors, status = (x[k[0]] for x in found)
                reached = bool(good[0])
        return q, errors, int(status[1]), reached, tried

    def _by_priority(self, start: Array, data: Array, last: Sequence[Array]) -> tuple[Array, Array, Array]:
        """What the first tasks alone find, from where the others get what those leave free: q, errors, status by rows."""
        first, places = self.by._first_alone
        alone = _Search(
            first,
            data[:, places],
            self.bounds,
            tuple(last),
            self.tolerance,
            self.most,
            self.restarts,
            self.seed,
        )
        q = alone.many(start, start.shape[:1])[0]

        def follow(by: ReachSolver, q: Array, ratio: float) -> tuple[Array, Array, Array]:
            of = data if by is self.by else data[:, places]
            settings = _settings(self.tolerance, MOST, 1.0, ratio)
            found: tuple[Array, Array, Array] = by.kernel(q, of, self.bounds, settings, *last)
            return found

        found, eased = follow(self.by, q, STRICT), q
        # steps along what the first leave free are long only while they may cost something
        for ratio in RATIOS:
            eased = follow(self.by, eased, ratio)[0]
        other = follow(self.by, follow(first, eased, USUAL)[0], STRICT)
        better = other[2][:, :1] < found[2][:, :1]
        q, errors, status = (np.where(better, b, a) for a, b in zip(found, other, strict=True))
        return q, errors, status

    def _patient(
        self, q: Array, start: Array, data: Array, last: Sequence[Array]
    ) -> tuple[tuple[Array, Array], list[Array]]:
        """The nearest that was found and further starts, one after the other for each target, with what belongs to them."""
        others = PATIENT if self.restarts else 0
        numbers = range(self.restarts + 1, self.restarts + 1 + others)
        rows = [q, *(self.by._start_at(k, self.bounds, self.seed, start) for k in numbers)]
        tiled = [np.repeat(x, 1 + others, axis=0) for x in (data, *last)]
        return (np.stack(rows, axis=1).reshape(-1, q.shape[-1]), tiled[0]), tiled[1:]

    def _best(self, found: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        """The row of each target that is reached, or nearest; and whether it is reached."""
        each = 1 + (PATIENT if self.restarts else 0)
        good = self.by._are_reached(found[1], self.tolerance)
        merit = np.where(good, -1.0, np.nan_to_num(found[2][:, 0], nan=np.inf)).reshape(-1, each)
        rows = np.arange(len(merit)) * each + np.argmin(merit, axis=1)
        return rows, good[rows]

    def many(self, start: Array, batch: tuple[int, ...]) -> tuple[Array, Array, Array, Array, Array]:
        """The same of a batch: what is reached leaves it after every stage."""
        by, total, tolerance = self.by, int(np.prod(batch, dtype=int)), self.tolerance
        flat = lambda x: np.broadcast_to(x, (*batch, x.shape[-1])).reshape(total, x.shape[-1])  # noqa: E731
        starts, data = flat(start), flat(self.data)
        last = [flat(x) for x in self.last]
        at, q, merit = starts.copy(), starts.copy(), np.full(total, np.inf)
        errors = np.full((total, len(by._labels)), np.inf)
        iterated, used = np.zeros(total, dtype=int), np.zeros(total, dtype=int)
        reached, attempts = np.zeros(total, dtype=bool), np.ones(total, dtype=int)
        left = np.arange(total)
        while len(left):
            most = np.where(attempts[left] <= QUICK, self.short, self.most)
            stage = STAGE if by._is_quick and len(left) > FEW else int(most.max())
            settings = _settings(tolerance, stage)
            given = (
                (at, data, *last) if len(left) == total else (at[left], data[left], *(x[left] for x in last))
            )
            found = by.kernel(*given[:2], self.bounds, settings, *given[2:])
            good = by._are_reached(found[1], tolerance)
            iterations = found[2][:, 1].astype(int)
            used[left] += iterations
            better = np.flatnonzero(good | (found[2][:, 0] < merit[left]))
            to = left[better]
            q[to], errors[to], merit[to] = found[0][better], found[1][better], found[2][better, 0]
            iterated[to], reached[to] = used[to], good[better]
            rest = np.flatnonzero(~good)
            over = (iterations[rest] < stage) | (used[left[rest]] >= most[rest])
            on, again = left[rest[~over]], left[rest[over]]
            at[on] = found[0][rest[~over]]
            again = again[attempts[again] <= self.restarts]
            for number in set(attempts[again].tolist()):
                own = again[attempts[again] == number]
                at[own] = by._start_at(number, self.bounds, self.seed, starts[own])
            attempts[again] += 1
            used[again] = 0
            left = np.sort(np.concatenate([on, again]))  # while all are left, `at` is taken as it is
        lost = np.flatnonzero(~reached)
        if len(lost) and len(by.problem.levels) > 1:
            found = self._by_priority(starts[lost], data[lost], [x[lost] for x in last])
            q[lost], errors[lost], iterated[lost] = found[0], found[1], found[2][:, 1]
            reached[lost] = by._are_reached(found[1], tolerance)
        elif len(lost):
            given, more = self._patient(q[lost], starts[lost], data[lost], [x[lost] for x in last])
            found = by.kernel(*given, self.bounds, _settings(tolerance, MOST, 1.0), *more)
            k, good = self._best(found)
            better = good | (found[2][k, 0] <= merit[lost])
            to, k = lost[better], k[better]
            q[to], errors[to], iterated[to] = found[0][k], found[1][k], found[2][k, 1]
            reached[to] = good[better]
        shaped = lambda x: x.reshape(*batch, x.shape[-1])  # noqa: E731
        each = (iterated.reshape(batch), reached.reshape(batch), attempts.reshape(batch))
        return shaped(q), shaped(errors), *each


@functools.lru_cache(maxsize=64)
def _settings(tolerance: float, iterations: int, patient: float = 0.0, ratio: float = USUAL) -> Array:
    """As the kernel takes them."""
    return np.array([tolerance, iterations, patient, ratio])


def _is_finite(x: Array) -> bool:
    """Of few numbers by their squares, which takes a tenth of the time."""
    return (x.ndim == 1 and x.dot(x) < math.inf) or bool(np.isfinite(x).all())


def _row(weight: float, x: Pose) -> Array | None:
    """What the kernel takes for one pose, without much ado, unless there is something about it."""
    R, p = x.rotation, x.translation
    if not (type(R) is np.ndarray and type(p) is np.ndarray and R.shape == (3, 3) and p.shape == (3,)):
        return None
    row = np.empty(13)
    row[0], row[1:10], row[10:] = weight, R.ravel(), p
    return row if _is_finite(row) else None


def _flat(x: Any) -> Array:
    if isinstance(x, Pose) or (hasattr(x, "rotation") and hasattr(x, "translation")):
        R, p = np.asarray(x.rotation, dtype=float), np.asarray(x.translation, dtype=float)
        return np.concatenate([R.reshape(*R.shape[:-2], 9), p], axis=-1)
    found = numbers("reach", "target", x)
    return found if found.ndim else found[None]
