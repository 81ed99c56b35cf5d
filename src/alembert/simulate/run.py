"""`simulate`: choose an integrator, run it along with controllers and events, and keep records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any
from warnings import warn

import numpy as np

from alembert.errors import AlembertWarning, ArgumentError, NumericalError, UnsupportedError
from alembert.model import Model
from alembert.model.printing import unknown
from alembert.simulate import adaptive
from alembert.simulate.adaptive import ADAPTIVE
from alembert.simulate.controllers import Drive, Schedule
from alembert.simulate.events import MOST_IN_A_STEP, Event, Path, Watch
from alembert.simulate.loop import RECORDS
from alembert.simulate.progress import Progress
from alembert.simulate.result import Run
from alembert.simulate.schemes import SCHEMES
from alembert.simulate.stepper import Stepper
from alembert.simulate.system import System, as_sequence

Array = np.ndarray
IMPLICIT = ("variational", "generalised_alpha")
FIXED = (*SCHEMES, *IMPLICIT)
INTEGRATORS = (*FIXED, *ADAPTIVE)
RECORDS_OF_ADAPTIVE = 1000

MOST_VARIATIONAL = 60  # speeds; there compiling it takes half a minute
STABLE = 2.0  # |eigenvalue| times step up to which explicit schemes are trusted


def integrators() -> list[tuple[str, int, str, str, str]]:
    """A table: name, order, kind, what it keeps beyond its order, when to choose it."""
    rows = [(s.name, s.order, "fixed step", s.keeps, s.choose) for s in SCHEMES.values()]
    rows.append(
        (
            "variational",
            2,
            "fixed step, implicit",
            "momentum to rounding; energy bounded over long times",
            "free or conservative motion, long runs; the default without efforts",
        )
    )
    rows.append(
        (
            "generalised_alpha",
            2,
            "fixed step, implicit",
            "nothing exactly; damps what is too fast for the step",
            "stiff systems at a given step",
        )
    )
    for name, (_, order, choose) in ADAPTIVE.items():
        kind = "error control, implicit" if name in adaptive.IMPLICIT else "error control"
        rows.append((name, order, kind, "all to the tolerance", choose))
    return rows


def simulate(
    model: Model,
    q0: Any,
    v0: Any = None,
    *,
    duration: float,
    step: float | None = None,
    interval: float | None = None,
    integrator: str = "auto",
    controller: Any = None,
    efforts: Any = None,
    wrenches: Mapping[str, Any] | None = None,
    prescribed: Mapping[str, Any] | None = None,
    drives: Mapping[str, Drive] | None = None,
    events: Any = (),
    parameters: Mapping[str, Any] | None = None,
    gravity: Any = None,
    start: float = 0.0,
    tolerance: float = 1e-9,
    absolute_tolerance: float = 1e-11,
    progress: bool | None = None,
) -> Run:
    """The motion from the state (q0, v0), or from a batch of states (..., nq), (..., nv).

    Args:
        model: what moves. Loops and couplings are kept by projection (explicit schemes and "dop853").
        q0, v0: where it starts; at rest when v0 is left out.
        duration: how long [s], from `start`.
        step: of fixed-step schemes [s].
        interval: between records [s]; by default every step, or a thousandth of the duration with error
            control.
        integrator: one of `INTEGRATORS`, or "auto": the run's `reason` says what was chosen and why.
        controller: a function u(t, q, v), a `casadi.Function` of the same (compiled into the loop),
            `Sampled(...)`, or a list of them, whose efforts add up.
        efforts: constant efforts, (..., nv) or by joint.
        wrenches: by frame, constant (6,) or functions of (t, q, v): moment and force in the frame's axes.
        prescribed: joints that follow a motion: a number to stay at, a `casadi.Function` of t for the
            coordinates, or a Python function of t that returns coordinates, speeds and accelerations.
        drives: by joint, how its drive carries out what controllers ask for.
        events: `Event`s to look for, at the ends of steps (and between them with error control).
        parameters: values for the model's parameters; arrays go along the batch.
        gravity: another gravity than the model's.
        start: the time at which the run begins [s].
        tolerance, absolute_tolerance: of schemes with error control, relative and in SI units.
        progress: whether to show a bar (by default on terminals, when it takes longer than a second).
    """
    if gravity is not None:
        model = model.replace(gravity=gravity)
    if integrator != "auto" and integrator not in INTEGRATORS:
        raise ArgumentError(unknown("simulate: no integrator", integrator, ("auto", *INTEGRATORS)))
    q, v, batch = _start(model, q0, v0, parameters)
    for name, value in (("duration", duration), ("step", step), ("interval", interval)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise ArgumentError(f"simulate: {name} is {value!r}, expected a positive time in seconds")
    watched = tuple(as_sequence(events))
    for event in watched:
        if not isinstance(event, Event):
            raise ArgumentError(f"simulate: events has {event!r}, expected Event(function, ...)")
    system = System(
        model,
        batch=batch,
        controller=controller,
        efforts=efforts,
        wrenches=wrenches,
        prescribed=prescribed,
        drives=drives,
        parameters=parameters,
    )
    chosen, reason = (
        (integrator, "as asked") if integrator != "auto" else _choose(system, q, v, duration, step)
    )
    options = {
        "duration": duration,
        "step": step,
        "interval": interval,
        "events": watched,
        "start": start,
        "tolerance": tolerance,
        "absolute_tolerance": absolute_tolerance,
        "progress": progress,
    }
    if system.constrained:
        if chosen in (*IMPLICIT, *adaptive.IMPLICIT):
            kind = model.loops[0] if model.loops else model.couplings[0]
            raise UnsupportedError(
                f"simulate: integrator {chosen!r} and a model with loops or couplings ({kind.name!r}) do not go together; "
                "choose 'rk4' or 'dop853'"
            )
        model.forward_dynamics(q, v, np.zeros(model.nv), parameters=parameters)  # refuses loops that are open
        q, v = system.project(q, v)
    if batch and (chosen in ADAPTIVE or watched):
        what = f"integrator {chosen!r}" if chosen in ADAPTIVE else "events"
        raise UnsupportedError(
            f"simulate: {what} and a batch of motions do not go together: each motion would need steps of its own; choose "
            "'rk4' or 'variational' with a step, or run the motions one by one"
        )
    if chosen in ADAPTIVE:
        return _run_adaptive(system, q, v, chosen, reason, options)
    if step is None:
        raise ArgumentError(f"simulate: integrator {chosen!r} needs a step; give step=..., in seconds")
    return _run_fixed(system, chosen, reason, options, (q, v), None)


def _start(
    model: Model, q0: Any, v0: Any, parameters: Mapping[str, Any] | None
) -> tuple[Array, Array, tuple[int, ...]]:
    _ = model.symbolic  # makes the model's algorithms known
    q = model._numbers("simulate", "q0", q0, model.nq, f"; the model has {model.nq} coordinates")
    v = np.zeros(model.nv) if v0 is None else v0
    v = model._numbers("simulate", "v0", v, model.nv, f"; the model has {model.nv} degrees of freedom")
    for name, x, names in (("q0", q, model.coordinate_names), ("v0", v, model.speed_names)):
        if not np.all(np.isfinite(x)):
            entry = int(np.argwhere(~np.isfinite(x))[0][-1])
            raise ArgumentError(f"simulate: {name} is not finite at entry {entry} ({names[entry]})")
    for joint, s in zip(model.joints, model._q_slices, strict=True):
        problem = joint.type.problem(q[..., s]) if joint.type.nq else None
        if problem:
            raise ArgumentError(f"simulate: q0: joint {joint.name!r}: {problem}")
    shapes = [q.shape[:-1], v.shape[:-1], *(np.shape(x) for x in (parameters or {}).values())]
    try:
        batch = np.broadcast_shapes(*shapes)
    except ValueError:
        raise ArgumentError(
            f"simulate: the batch dimensions of q0 {shapes[0]}, v0 {shapes[1]} and the parameters do not go together"
        ) from None
    q = np.array(np.broadcast_to(q, (*batch, model.nq)))
    v = np.array(np.broadcast_to(v, (*batch, model.nv)))
    return q, v, batch


def _choose(system: System, q: Array, v: Array, duration: float, step: float | None) -> tuple[str, str]:
    """An integrator and a sentence why."""
    if system.constrained:
        if step is not None:
            return "rk4", "a step is given; loops or couplings are kept by projection"
        return "dop853", "no step is given: error control; loops or couplings are kept by projection"
    fastest, damping = _eigenvalues(system, q, v)
    if step is not None:
        if not system.batch and fastest * step > STABLE:
            return "radau", (
                f"the fastest eigenvalue at the start, {fastest:.3g}/s, is too fast for explicit steps of {step:g} s"
            )
        if system.conserves_energy and system.model.nv <= MOST_VARIATIONAL:
            return (
                "variational",
                "nothing feeds energy in or takes it out, so a symplectic scheme keeps it best",
            )
        if system.conserves_energy:
            return (
                "rk4",
                f"a step is given; the variational scheme compiles long beyond {MOST_VARIATIONAL} speeds",
            )
        return "rk4", "a step is given and something drives or damps the motion"
    if damping * duration > 2e4 and damping > 20 * (fastest - damping if fastest > damping else 0.0):
        return "radau", f"stiff: motions decay within {1 / damping:.1e} s, over a run of {duration:g} s"
    return (
        "dop853",
        "no step is given: error control, of high order since the motion is smooth between samples",
    )


def _eigenvalues(system: System, q: Array, v: Array) -> tuple[float, float]:
    """The largest |eigenvalue| and the fastest decay at the start; zeros where nothing stiff can be."""
    model = system.model
    springy = any(joint.spring is not None or joint.friction is not None for joint in model.joints)
    if not (springy or system.law is not None) or system.batch or np.any(system.prescribed) or model.nv > 60:
        return 0.0, 0.0
    effort = system.efforts + system.command(0.0, q, v)
    d = model.forward_dynamics_derivatives(q, v, effort, parameters=system.parameters)
    dq, dv = d.dq, d.dv
    if system.law is not None:
        u_q, u_v = system.law_slopes(np.zeros(1), q, v)
        dq, dv = dq + d.dtau @ u_q, dv + d.dtau @ u_v
    nv = model.nv
    values = np.linalg.eigvals(np.block([[np.zeros((nv, nv)), np.eye(nv)], [dq, dv]]))
    return float(np.max(np.abs(values))), float(max(0.0, np.max(-values.real)))


# --- fixed steps ------------------------------------------------------------------------------------------------


def _multiple(what: str, value: float, step: float) -> int:
    count = round(value / step)
    if count < 1 or abs(value - count * step) > 1e-9 * value:
        raise ArgumentError(
            f"simulate: {what} {value:g} s is not a multiple of the step {step:g} s; the nearest are "
            f"{max(count, 1) * step:.12g} and {(count + 1) * step:.12g} s"
        )
    return count


def _run_fixed(
    system: System,
    name: str,
    reason: str,
    options: Mapping[str, Any],
    state0: tuple[Array, Array] | None,
    resumed: tuple[Array, Schedule | None, Array | None] | None,
) -> Run:
    model, h = system.model, float(options["step"])
    steps = _multiple("the duration", options["duration"], h)
    every = 1 if options["interval"] is None else _multiple("the interval", options["interval"], h)
    # Python functions cannot be called within an implicit step, nor can drives look back within any step
    held = system.has_memory or (name in IMPLICIT and bool(system.laws))
    stepper = Stepper(system, name, h, options["start"], held=held)
    if resumed is not None:
        state, schedule, memory = resumed[0].copy(), resumed[1], resumed[2]
        schedule = schedule.copy() if schedule is not None else None
    else:
        assert state0 is not None
        state = stepper.initial(*state0)
        schedule = Schedule.on_grid(system.sampled, h) if system.sampled else None
        memory = np.zeros((*system.batch, model.nv)) if system.has_memory else None
    keeper = _Keeper(stepper, state, schedule, memory, rows=steps // every + 1)
    marching = _March(stepper, schedule, memory, held, Watch(options["events"]), keeper, every)
    with Progress(f"simulating {model.name}", shown=options["progress"]) as progress:
        marching.run(state, steps, progress)
    return keeper.finish(name, reason, options, marching.watch, marching.done)


class _Keeper:
    """Records: the machine's states, the efforts from each of them on, and what sampled controllers hold."""

    def __init__(
        self, stepper: Stepper, state: Array, schedule: Schedule | None, memory: Array | None, *, rows: int
    ) -> None:
        self.stepper = stepper
        self.states = np.empty((*state.shape[:-1], rows + RECORDS, state.shape[-1]))
        self.states[..., 0, :] = state
        self.count = 1
        self.held: list[Array] = []
        self.work = [np.zeros(state.shape[:-1])]
        """of what is held, up to each record"""
        self.done: Array = np.zeros(state.shape[:-1])
        self.snapshots: list[tuple[Schedule | None, Array | None]] = []
        self.note(schedule, memory)
        self.last: tuple[float, Array, Array] | None = None

    def note(self, schedule: Schedule | None, memory: Array | None) -> None:
        if schedule is not None or memory is not None:
            self.snapshots.append((schedule.copy() if schedule is not None else None, memory))

    def skip(self, count: int, schedule: Schedule | None, memory: Array | None) -> None:
        """Records that are in place already; what is held does not change between them."""
        self.count += count
        self.held += count * self.held[-1:]
        for _ in range(count):
            self.note(schedule, memory)

    def space(self) -> Array:
        return self.states[..., self.count : self.count + RECORDS, :]

    def finish(self, name: str, reason: str, options: Mapping[str, Any], watch: Watch, steps: int) -> Run:
        stepper, system = self.stepper, self.stepper.system
        states = self.states[..., : self.count, :]
        numbers = states[..., 0].reshape(-1, self.count)[0]
        time = stepper.start + numbers * stepper.h
        q = np.ascontiguousarray(stepper.q(states))
        _check_finite(system.model, time, q, states)
        v = np.ascontiguousarray(stepper.v(states, along_time=True))
        held = np.stack(self.held, axis=-2) if self.held else None
        work = np.stack(self.work, axis=-1)
        if self.last is not None:  # an event stopped the run between two records
            t, q_end, v_end = self.last
            time = np.append(time, t)
            q, v = np.concatenate([q, q_end[None]]), np.concatenate([v, v_end[None]])
            if held is not None:
                held, work = np.concatenate([held, held[-1:]]), np.append(work, self.done)
        efforts = _recorded_efforts(system, time, q, v, held, all_held=stepper.held)
        machine = (states, self.snapshots)
        return Run(
            system.model,
            time,
            q,
            v,
            efforts,
            tuple(watch.log),
            name,
            reason,
            stepper.h,
            steps,
            system,
            options,
            machine,
            None if held is None else (held, work),
        )


def _recorded_efforts(
    system: System, time: Array, q: Array, v: Array, held: Array | None, *, all_held: bool = False
) -> Array:
    total = np.zeros(v.shape) + (system.efforts[..., None, :] if system.efforts.ndim > 1 else system.efforts)
    if held is not None:
        total = total + held
    if all_held:
        return total
    if system.laws:
        for k, t in enumerate(time):
            total[..., k, :] += system.command(float(t), q[..., k, :], v[..., k, :])
    elif system.law is not None:
        total = total + system.command(np.broadcast_to(time[:, None], (*v.shape[:-1], 1)), q, v)
    return total


def _check_finite(model: Model, time: Array, q: Array, states: Array) -> None:
    good = np.isfinite(states).all(axis=-1)
    if good.all():
        return
    along = good if good.ndim == 1 else good.reshape(-1, good.shape[-1]).all(axis=0)
    k = int(np.argmin(along))
    if good.ndim == 1:
        raise NumericalError(
            f"simulate: the motion is not finite after t = {time[max(k - 1, 0)]:.9g} s; "
            f"{_why(model, q[max(k - 1, 0)])}; a smaller step may help"
        )
    bad = np.count_nonzero(~good.all(axis=-1))
    warn(
        f"simulate: {bad} of {good[..., 0].size} motions are not finite to the end, the first after t = "
        f"{time[max(k - 1, 0)]:.9g} s; their records are NaN from there on",
        AlembertWarning,
        stacklevel=5,
    )


def _why(model: Model, q: Array) -> str:
    for joint, s in zip(model.joints, model._q_slices, strict=True):
        sentence = joint.type.singularity(q[s])
        if sentence:
            return f"joint {joint.name!r}: {sentence}"
    return "the step is too long for the motion, or its equations have no solution"


class _March:
    """Through the steps of a run, as far at a time as controllers, events and records allow."""

    def __init__(
        self,
        stepper: Stepper,
        schedule: Schedule | None,
        memory: Array | None,
        held: bool,
        watch: Watch,
        keeper: _Keeper,
        every: int,
    ) -> None:
        self.stepper, self.system = stepper, stepper.system
        self.schedule, self.memory, self.held = schedule, memory, held
        self.watch, self.keeper, self.every = watch, keeper, every
        self.single = held or bool(watch.events) or not stepper.compiled or bool(self.system.wrench_laws)
        self.done = 0
        self.changing = schedule is not None or held

    def run(self, state: Array, steps: int, progress: Progress) -> None:
        stepper = self.stepper
        first = stepper.number(state)
        end = first + steps
        if self.watch.events:
            self.watch.begin(stepper.time(first), stepper.q(state).copy(), stepper.v(state).copy())
        while (n := stepper.number(state)) < end:
            effort, held = self._effort(state, n)
            if self.changing and len(self.keeper.held) < self.keeper.count:
                self.keeper.held.append(held)
            limit = min(end, n + 1) if self.single else end
            if self.schedule is not None:
                limit = min(limit, self.schedule.next_instant(n))
            known = stepper.known(state)
            if known < stepper.past:
                limit = min(limit, n + stepper.past - known)
            following = self._advance(state, n, first, limit, effort, held)
            if following is None:
                return
            state = following
            self.done = stepper.number(state) - first
            progress.at(self.done / steps)
        if self.changing and len(self.keeper.held) < self.keeper.count:
            schedule, memory = self.schedule, self.memory
            self.schedule = schedule.copy() if schedule is not None else None
            self.keeper.held.append(self._effort(state, end)[1])
            self.schedule, self.memory = schedule, memory

    def _effort(self, state: Array, n: int) -> tuple[Array, Array]:
        """Efforts for the steps from n on: all that are constant, and of them what controllers ask for."""
        system, stepper = self.system, self.stepper
        held: Array = np.zeros(system.model.nv)
        if self.changing:
            q, v = stepper.q(state).copy(), stepper.v(state).copy()
        if self.schedule is not None:
            self.schedule.update(n, stepper.time(n), q, v, system.model)
            held = held + self.schedule.command()
        if self.held:
            where = (stepper.time(n), q, v) if system.has_memory else stepper.middle(state)
            held = held + system.command(*where)
        if system.drives is not None and self.changing:
            if self.memory is not None:
                held, self.memory = system.drives.advance(self.memory, held, stepper.h)
            else:
                held = system.drives.saturate(held)
        return np.ascontiguousarray(system.efforts + held), np.broadcast_to(
            held, (*system.batch, system.model.nv)
        )

    def _advance(
        self, state: Array, n: int, first: int, limit: int, effort: Array, held: Array
    ) -> Array | None:
        """To `limit`, or to the next full set of records; None where an event stops the run."""
        stepper, keeper, every = self.stepper, self.keeper, self.every
        if not stepper.compiled:
            following = stepper.python_step(state, effort, stepper.start, stepper.h)
            wrench = None
            self._count_work(held, state, following[..., None, :])
        else:
            wrench = self._wrench(state)
            over = (n - first) % every
            if over == 0 and limit - n >= every:
                length, count = every, min(RECORDS, (limit - n) // every)
            else:
                length, count = min(every - over, limit - n), 1
            out = keeper.space()
            stepper.advance(state, length, count, effort, wrench, out)
            following = out[..., count - 1, :].copy()
            keeper.skip(count - 1, self.schedule, self.memory)
            self._count_work(held, state, out[..., :count, :] if count == 1 else self._last(count))
        if self.watch.events:
            watched = self._watch(state, following, n, effort, wrench)
            if watched is None:
                return None
            following = watched
        if not np.isfinite(following).all() and following.ndim == 1:
            keeper.space()[0] = following
            keeper.count += 1
            _check_finite(self.system.model, *self._so_far())
        if (stepper.number(following) - first) % every == 0:
            keeper.space()[..., 0, :] = following
            keeper.count += 1
            keeper.note(self.schedule, self.memory)
            keeper.work.append(keeper.done)
        return following

    def _last(self, count: int) -> Array:
        """The newest records, the one that is still to be counted among them."""
        end = self.keeper.count + 1
        return self.keeper.states[..., end - count : end, :]

    def _count_work(self, held: Array, state: Array, rows: Array) -> None:
        """What is held does the work tau . difference(q, q') from one row to the next."""
        keeper = self.keeper
        if not self.changing:
            keeper.work += (rows.shape[-2] - 1) * [keeper.done]
            return
        q = self.stepper.q(np.concatenate([state[..., None, :], rows], axis=-2))
        moved = self.system.model.difference(q[..., :-1, :].copy(), q[..., 1:, :].copy())
        parts = np.sum(np.asarray(held)[..., None, :] * moved, axis=-1)
        for k in range(parts.shape[-1]):
            keeper.done = keeper.done + parts[..., k]
            if k < parts.shape[-1] - 1:
                keeper.work.append(keeper.done)

    def _so_far(self) -> tuple[Array, Array, Array]:
        states = self.keeper.states[: self.keeper.count]
        return self.stepper.start + states[:, 0] * self.stepper.h, self.stepper.q(states), states

    def _wrench(self, state: Array) -> Array | None:
        if not self.stepper.plant.wrenches:
            return None
        system = self.system
        if system.wrench_laws:
            return system.wrench_array(*self.stepper.middle(state))
        return system.wrench_array(0.0, state, state)

    def _watch(
        self, state: Array, following: Array, n: int, effort: Array, wrench: Array | None
    ) -> Array | None:
        """The end of a step with all events in it dealt with; None where one stops the run."""
        stepper, watch = self.stepper, self.watch
        t, end = stepper.time(n), stepper.time(n + 1)
        q, v = stepper.q(state).copy(), stepper.v(state).copy()
        changed = False

        def path_from(t: float, q: Array, v: Array) -> Path:
            def path(time: float) -> tuple[Array, Array]:
                if time == t:
                    return q, v
                if time == end and not changed:
                    return stepper.q(following).copy(), stepper.v(following).copy()
                moved = stepper.part(q, v, t, time - t, effort, wrench)
                return stepper.q(moved).copy(), stepper.v(moved).copy()

            return path

        for _ in range(MOST_IN_A_STEP):
            path = path_from(t, q, v)
            found = watch.first(t, end, path)
            if found is None:
                if not changed:
                    return following
                return stepper.initial(*path(end), number=n + 1)
            k, t_event = found
            q, v, stop = watch.happen(k, t_event, *path(t_event))
            if stop:
                self.keeper.last = (t_event, q, v)
                self.done += 1
                return None
            t = t_event
            new = not (np.array_equal(q, watch.log[-1].q) and np.array_equal(v, watch.log[-1].v))
            changed = changed or new
            ahead = min(end - t, max(4 * watch.events[k].tolerance, 1e-6 * stepper.h))
            if ahead <= 0:
                watch.begin(end, q, v)
                return stepper.initial(q, v, number=n + 1) if changed else following
            watch.settle(k, t, path_from(t, q, v), ahead, changed=new)
        raise NumericalError(
            f"simulate: more than {MOST_IN_A_STEP} events within one step, the last {watch.log[-1].name!r} at t = "
            f"{t:.12g} s; they accumulate, as bounces do that come to rest: stop there, or switch to another model"
        )


def _resume(run: Run, k: int, duration: float) -> Run:
    options = {**run._options, "duration": duration}
    if run.integrator in ADAPTIVE or k >= run._machine[0].shape[-2]:
        options["start"] = float(run.time[k])
        q, v = run.q[..., k, :], run.v[..., k, :]
        if run.integrator in ADAPTIVE:
            return _run_adaptive(run._system, q, v, run.integrator, run.reason, options)
        return _run_fixed(run._system, run.integrator, run.reason, options, (q, v), None)
    states, snapshots = run._machine
    schedule, memory = snapshots[k] if snapshots else (None, None)
    return _run_fixed(
        run._system, run.integrator, run.reason, options, None, (states[..., k, :], schedule, memory)
    )


# --- error control ----------------------------------------------------------------------------------------------


def _run_adaptive(
    system: System, q: Array, v: Array, name: str, reason: str, options: Mapping[str, Any]
) -> Run:
    if system.has_memory:
        raise UnsupportedError(
            f"simulate: drives with a lag or a rate limit and integrator {name!r} do not go together; choose 'rk4' "
            "and a step"
        )
    model, start, duration = system.model, float(options["start"]), float(options["duration"])
    interval = options["interval"] or options["step"] or duration / RECORDS_OF_ADAPTIVE
    end = start + duration
    times = start + interval * np.arange(math.floor(duration / interval * (1 + 1e-12)) + 1)
    if end - times[-1] > 1e-9 * duration:
        times = np.append(times, end)
    times[-1] = end
    keeper = _AdaptiveKeeper(times, q, v)
    watch = Watch(options["events"])
    schedule, tick = _ticks(system)
    counters = adaptive.Counters()
    t, n = start, 0
    q, v = system.imposed(t, q, v)
    watch.begin(t, q, v)
    with Progress(f"simulating {model.name}", shown=options["progress"]) as progress:
        while t < end and not keeper.stopped:
            held, span_end = np.zeros(model.nv), end
            if schedule is not None:
                schedule.update(n, t, q, v, model)
                held = schedule.command()
                held = held if system.drives is None else system.drives.saturate(held)
                following = schedule.next_instant(n)
                span_end = min(end, start + following * tick)
            effort = np.ascontiguousarray(system.efforts + held)
            keeper.hold(t, held)
            while t < span_end and not keeper.stopped:
                t, q, v = _span(system, name, t, q, v, span_end, effort, watch, keeper, counters, options)
                progress.at((t - start) / duration)
            if schedule is not None:
                n = following
    time, qs, vs, held_records = keeper.arrays()
    qs, vs = system.project(*_imposed_all(system, time, qs, vs))
    efforts = _recorded_efforts(system, time, qs, vs, held_records)
    kept = None
    if held_records is not None:
        parts = np.sum(held_records[:-1] * model.difference(qs[:-1], qs[1:]), axis=-1)
        kept = held_records, np.r_[0.0, np.cumsum(parts)]
    return Run(
        model,
        time,
        qs,
        vs,
        efforts,
        tuple(watch.log),
        name,
        reason,
        None,
        counters.steps,
        system,
        options,
        None,
        kept,
    )


def _imposed_all(system: System, time: Array, q: Array, v: Array) -> tuple[Array, Array]:
    if not np.any(system.prescribed):
        return q, v
    pairs = [system.imposed(float(t), x, y) for t, x, y in zip(time, q, v, strict=True)]
    return np.array([x for x, _ in pairs]), np.array([y for _, y in pairs])


def _ticks(system: System) -> tuple[Schedule | None, float]:
    """The sampled controllers on a grid that has all their instants."""
    if not system.sampled:
        return None, 0.0
    values = [x for c in system.sampled for x in (c.period, c.delay, c.offset) if x > 0]
    fractions = [Fraction(x).limit_denominator(10**9) for x in values]
    tick = fractions[0]
    for other in fractions[1:]:
        common = math.lcm(tick.denominator, other.denominator)
        tick = Fraction(math.gcd(int(tick * common), int(other * common)), common)
    return Schedule.on_grid(system.sampled, float(tick)), float(tick)


class _AdaptiveKeeper:
    def __init__(self, times: Array, q: Array, v: Array) -> None:
        self.times = times
        self.q, self.v = [q], [v]
        self.time = [float(times[0])]
        self.held: list[tuple[float, Array]] = []
        self.stopped = False

    def hold(self, t: float, held: Array) -> None:
        self.held.append((t, held))

    def upto(self, end: float, piece: adaptive.Piece) -> None:
        """Records of the grid within a piece, up to a time."""
        k = len(self.time)
        last = int(np.searchsorted(self.times, end * (1 + 1e-15) if end > 0 else end, side="right"))
        if last > k:
            q, v = piece.at(np.minimum(self.times[k:last], piece.end))
            self.time += self.times[k:last].tolist()
            self.q += list(q)
            self.v += list(v)

    def stop(self, t: float, q: Array, v: Array) -> None:
        self.stopped = True
        if t > self.time[-1]:
            self.time.append(t)
            self.q.append(q)
            self.v.append(v)

    def arrays(self) -> tuple[Array, Array, Array, Array | None]:
        time = np.array(self.time)
        starts = np.array([t for t, _ in self.held])
        late = time + 1e-12 * np.maximum(np.abs(time), 1.0)  # instants are multiples of another number
        index = np.maximum(np.searchsorted(starts, late, side="right") - 1, 0)
        held = np.array([x for _, x in self.held])[index] if len(self.held) > 1 else None
        return time, np.array(self.q), np.array(self.v), held


def _span(
    system: System,
    name: str,
    t: float,
    q: Array,
    v: Array,
    end: float,
    effort: Array,
    watch: Watch,
    keeper: _AdaptiveKeeper,
    counters: adaptive.Counters,
    options: Mapping[str, Any],
) -> tuple[float, Array, Array]:
    """From t to `end`, or to an event that changes the state or stops the run."""
    model = system.model

    def slope(t: float, q: Array, v: Array) -> Array:
        return system.point(t, q, v, effort).a

    def slopes(t: float, q: Array, v: Array) -> tuple[Array, Array]:
        tau = effort + system.command(t, q, v)
        wrenches = system.wrenches_at(t, q, v)
        d = model.forward_dynamics_derivatives(q, v, tau, wrenches=wrenches, parameters=system.parameters)
        if system.law is None:
            return d.dq, d.dv
        u_q, u_v = system.law_slopes(np.array([t]), q, v)
        return d.dq + d.dtau @ u_q, d.dv + d.dtau @ u_v

    exact = not (system.python or np.any(system.prescribed))
    for piece in adaptive.pieces(
        model,
        name,
        slope,
        slopes if exact else None,
        t,
        q,
        v,
        end,
        tolerance=options["tolerance"],
        absolute=options["absolute_tolerance"],
        longest=np.inf,
        counters=counters,
        project=system.project if system.constrained else None,
    ):
        changed = _events_in(piece, watch, keeper) if watch.events else None
        if changed is not None:
            return changed
        keeper.upto(piece.end, piece)
    return end, *system.project(*piece.at(end))


def _events_in(
    piece: adaptive.Piece, watch: Watch, keeper: _AdaptiveKeeper
) -> tuple[float, Array, Array] | None:
    """Deal with the events of a piece; a changed state, or that of a stop, ends it early."""
    length = piece.end - piece.start
    marks = np.linspace(piece.start, piece.end, 5)
    t = piece.start
    if watch.left is not None:  # the first piece after a change: short returns must not be missed
        k, watch.left = watch.left, None
        near = piece.start + length * np.geomspace(1e-6, 0.1, 11)
        marks = np.concatenate([marks[:1], near, marks[1:]])
        t = float(near[0])
        watch.settle(k, piece.start, piece.at, t - piece.start, changed=True)
    for mark in marks[1:]:
        while t < mark:
            found = watch.first(t, mark, piece.at)
            if found is None:
                break
            k, t = found
            keeper.upto(t, piece)
            q, v = piece.at(t)
            q1, v1, stop = watch.happen(k, t, q, v)
            if stop:
                keeper.stop(t, q1, v1)
                return t, q1, v1
            if not (np.array_equal(q, q1) and np.array_equal(v, v1)):
                watch.left = k
                return t, q1, v1
            ahead = min(mark - t, max(4 * watch.events[k].tolerance, 1e-6 * length))
            watch.settle(k, t, piece.at, ahead, changed=False)
            t += ahead
        t = mark
    return None
