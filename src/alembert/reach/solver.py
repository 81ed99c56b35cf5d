"""Inverse kinematics: configurations at which tasks are done."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.arguments import common, names, numbers, unknown
from alembert.errors import ArgumentError, UnsupportedError, warn
from alembert.reach.iteration import MOST, TaskLevels
from alembert.reach.result import Reached
from alembert.reach.tasks import ReachTask, Symbols, read

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray
TOLERANCE = 1e-9
ITERATIONS = 60
RESTARTS = 50
TOGETHER = 8
"""starts that are tried at once at first, where few targets are left: the lanes of one vector; then twice as many, ..."""
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
    given = read("reach", model, tasks)
    held = _held(model, fixed)
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
    places = model.space.speed_places
    found = {k for owner in model.space.of_bodies.values() for k in range(owner.v.start, owner.v.stop)}
    for name in names("reach", "fixed", fixed):
        if name not in places:
            raise ArgumentError(unknown("reach: fixed: no joint or speed", name, places))
        found |= set(range(places[name].start, places[name].stop))
    return tuple(sorted(found))


class ReachSolver:
    """Made by `al.reach.solver`: the compiled iteration for some tasks."""

    def __init__(
        self, model: Model, tasks: Sequence[ReachTask], held: tuple[int, ...] = (), kernel: Any = None
    ) -> None:
        moving = [k for k in range(model.nv) if k not in held]
        if not moving:
            raise ArgumentError("reach: no joint is left to move; fixed names them all")
        self.model, self.tasks = model, tuple(tasks)
        self.problem = TaskLevels(model, self.tasks, moving)
        self.kernel = kernel or self.problem.kernel(self._structure(held))
        labels, units = ([CLOSED], [""]) if self.problem.held else ([], [])
        for task, k in self.problem.measures:
            label, unit = task.measures[k]
            labels.append(task.name if len(task.measures) == 1 else f"{task.name}: {label}")
            units.append(unit)
        self._labels, self._units = labels, dict(zip(labels, units, strict=True))
        asked = [task.priority == self.problem.first for task, _ in self.problem.measures]
        self._asked = np.array([True] * self.problem.held + asked, dtype=bool)
        self._kept: dict[bool, Array] = {}
        self._first = tuple(label for label, asked in zip(labels, self._asked, strict=True) if asked)
        self._coordinates = np.array(list(self.problem.bounded.values()), dtype=int)

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
            if not (model.space.is_vector_space and np.isfinite(q0).all()):
                model.space.check("reach", q0)
            batch = common("reach", [("targets", batch), ("start", q0.shape[:-1])])
        settings = np.array(
            [_number("tolerance", tolerance, 0.0), _count("iterations", iterations, MOST), 0.0]
        )
        last: tuple[Array, ...] = ()
        if model.parameters:
            p = model.compute.parameter_array("reach", parameters)
            batch = common("reach", [("targets", batch), ("parameters", p.shape[:-1])])
            last = (p,)
        elif parameters:
            raise ArgumentError(f"reach: the model {model.name!r} has no parameters")
        q, errors, status = self.kernel(
            np.broadcast_to(q0, (*batch, model.nq)) if batch else q0, data, bounds, settings, *last
        )
        asked = errors[..., self._asked]
        reached = np.all(asked <= tolerance, axis=-1) if asked.shape[-1] else np.ones(batch, dtype=bool)
        attempts: Any = np.ones(batch, dtype=int) if batch else 1
        if not np.all(reached):
            count = _count("restarts", restarts, 10**6, least=0)
            given = (data, bounds, settings, last)
            q, errors, status, reached, attempts = self._again(
                q, errors, status, reached, batch, given, count, seed, q0
            )
        result = Reached(
            q,
            reached if batch else bool(reached),
            {label: errors[..., k] for k, label in enumerate(self._labels)},
            self._units,
            tolerance,
            attempts,
            status[..., 1].astype(int) if batch else int(status[1]),
            self._first,
        )
        if not quiet and not np.all(reached):
            warn(f"reach: {result.message}")
        return result

    # --- reading -------------------------------------------------------------------------------------------------

    def _data(self, targets: Sequence[Any], tasks: Sequence[ReachTask]) -> tuple[Array, tuple[int, ...]]:
        """Weights and targets side by side, (..., widths)."""
        values = [task.target for task in tasks]
        if targets:
            if len(targets) != len(tasks):
                raise ArgumentError(f"reach: got {len(targets)} targets for {len(tasks)} tasks")
            values = [_flat(x) for x in targets]
            for task, x in zip(tasks, values, strict=True):
                width = task.target.shape[-1]
                if x.shape[-1:] != (width,) or not np.all(np.isfinite(x)):
                    raise ArgumentError(
                        f"reach: the target of {task.name!r} has shape {x.shape}, expected finite numbers (..., {width})"
                    )
        if len(values) == 1:
            batch = values[0].shape[:-1]
        else:
            shapes = [(task.name, x.shape[:-1]) for task, x in zip(tasks, values, strict=True)]
            batch = common("reach", shapes)
        data = np.empty((*batch, sum(self.problem.widths)))
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

    def _again(
        self,
        q: Array,
        errors: Array,
        status: Array,
        reached: Array,
        batch: tuple[int, ...],
        given: tuple[Array, Array, Array, tuple[Array, ...]],
        restarts: int,
        seed: int,
        start: Array,
    ) -> tuple[Array, Array, Array, Array, Any]:
        """From random starts what was not reached from the first; the nearest is kept, and brought to rest at the end."""
        data, bounds, settings, last = given
        total = int(np.prod(batch, dtype=int))
        flat = lambda x: np.array(np.broadcast_to(x, (*batch, x.shape[-1]))).reshape(total, x.shape[-1])  # noqa: E731
        q, errors, status, data, starts = (flat(x) for x in (q, errors, status, data, start))
        lasts = [flat(x) for x in last]
        reached = np.array(reached, dtype=bool).reshape(total)
        attempts = np.ones(total, dtype=int)
        draw = self._drawing(np.random.default_rng(seed), bounds)
        tried = 0
        while tried < restarts and not np.all(reached):
            left = np.flatnonzero(~reached)
            each = min(restarts - tried, max(1, max(TOGETHER, tried) // len(left)))
            rows = np.repeat(left, each)
            q0 = draw(starts[rows])
            found = self.kernel(q0, data[rows], bounds, settings, *(x[rows] for x in lasts))
            self._keep(left, each, found, q, errors, status, reached, settings[0])
            attempts[left] += each
            tried += each
        left = np.flatnonzero(~reached)
        if len(left):
            patient = np.array([settings[0], float(MOST), 1.0])
            found = self.kernel(q[left], data[left], bounds, patient, *(x[left] for x in lasts))
            self._keep(left, 1, found, q, errors, status, reached, settings[0])
        shaped = lambda x: x.reshape(*batch, x.shape[-1])  # noqa: E731
        many: Any = attempts.reshape(batch) if batch else int(attempts[0])
        return shaped(q), shaped(errors), shaped(status), reached.reshape(batch), many

    def _keep(
        self,
        left: Array,
        each: int,
        found: tuple[Array, Array, Array],
        q: Array,
        errors: Array,
        status: Array,
        reached: Array,
        tolerance: float,
    ) -> None:
        """The best of `each` starts, where it is better than what there was."""
        good = np.all(found[1][:, self._asked] <= tolerance, axis=-1)
        merit = np.where(good, -1.0 / (1.0 + found[2][:, 0]), found[2][:, 0])
        merit = np.where(np.isfinite(merit), merit, np.inf).reshape(-1, each)
        best = np.argmin(merit, axis=1)
        rows = np.arange(len(left)) * each + best
        better = merit[np.arange(len(left)), best] <= status[left, 0]
        to, source = left[better], rows[better]
        q[to], errors[to], status[to], reached[to] = (
            found[0][source],
            found[1][source],
            found[2][source],
            good[source],
        )

    def _drawing(self, rng: np.random.Generator, bounds: Array) -> Callable[[Array], Array]:
        """Random configurations within the bounds; what is held stays."""
        space, own = self.model.space, self._coordinates
        low, high = (np.full(space.nq, x) for x in (-np.inf, np.inf))
        low[own], high[own] = bounds.reshape(2, -1)
        moving = set(self.problem.moving)
        owners = [o for o in space if o.type.nv and any(k in moving for k in range(o.v.start, o.v.stop))]
        kept = [
            o.q.start + k
            for o in owners
            if o.type.is_vector_space
            for k in range(o.type.nv)
            if o.v.start + k not in moving
        ]

        def draw(starts: Array) -> Array:
            q = starts.copy()
            for o in owners:
                simple = o.type.is_vector_space and np.all(np.isfinite(high[o.q] - low[o.q]))
                if simple:
                    q[:, o.q] = rng.uniform(low[o.q], high[o.q], (len(q), o.type.nq))
                else:
                    q[:, o.q] = [o.type.random(rng, low[o.q], high[o.q]) for _ in range(len(q))]
            q[:, kept] = starts[:, kept]
            return q

        return draw


def _flat(x: Any) -> Array:
    if hasattr(x, "rotation") and hasattr(x, "translation"):
        R, p = np.asarray(x.rotation, dtype=float), np.asarray(x.translation, dtype=float)
        return np.concatenate([R.reshape(*R.shape[:-2], 9), p], axis=-1)
    found = numbers("reach", "target", x)
    return found if found.ndim else found[None]


def _number(what: str, value: Any, least: float) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | np.number)
        or not least < value < np.inf
    ):
        raise ArgumentError(f"reach: {what} is {value!r}, expected a positive number")
    return float(value)


def _count(what: str, value: Any, most: int, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise ArgumentError(f"reach: {what} is {value!r}, expected a whole number from {least} to {most}")
    return int(value)
