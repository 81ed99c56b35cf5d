"""A run with fixed steps: as many at a time in machine code as controllers, events and records allow."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

from alembert.errors import ArgumentError, NumericalError
from alembert.lowering.plan import RECORDS
from alembert.simulate.actuators import no_state
from alembert.simulate.choice import IMPLICIT
from alembert.simulate.controllers import check_answer
from alembert.simulate.event_search import MOST_IN_A_STEP, EventSearch, Path
from alembert.simulate.events import Topology
from alembert.simulate.feedback import blame
from alembert.simulate.inputs import Settings
from alembert.simulate.records import (
    Keeper,
    Progress,
    check_finite,
    check_records,
    check_steps,
    not_finite,
    recorded_efforts,
    run_kept,
    steps_at_a_time,
    tell_many_steps,
)
from alembert.simulate.report import StepNotes, power
from alembert.simulate.result import Run
from alembert.simulate.schedule import Schedule, compiled_schedule
from alembert.simulate.schemes import MULTISTEP
from alembert.simulate.simulation import Simulation
from alembert.simulate.stepper import Diverged, Stepper

Array = np.ndarray
MOST_NOTED = 2 * 10**7
"""numbers; beyond it, the work of steps that are made in Python is known from the records only"""


def _multiple(what: str, value: float, step: float) -> int:
    count = round(value / step)
    if count < 1 or abs(value - count * step) > 1e-9 * value:
        fewer = max(math.floor(value / step), 1)
        raise ArgumentError(
            f"simulate: {what} {value:g} s is not a multiple of the step {step:g} s; the nearest are "
            f"{fewer * step:.12g} and {(fewer + 1) * step:.12g} s"
        )
    return count


def run_fixed(
    system: Simulation,
    name: str,
    reason: str,
    settings: Settings,
    state0: tuple[Array, Array, Array] | None,
    resumed: tuple[Array, Schedule | None, Array | None] | None,
) -> Run:
    assert settings.step is not None
    model, h = system.model, float(settings.step)
    check_steps("simulate", max(settings.duration, settings.interval or h), h)
    steps = _multiple("the duration", settings.duration, h)
    every = 1 if settings.interval is None else _multiple("the interval", settings.interval, h)
    stepper = stepper_of(system, name, h, settings)
    held = stepper.held
    # the machine's states, then coordinates, speeds and efforts
    kept = math.prod(system.batch) * (stepper.layout.size + model.nq + 2 * model.nv)
    check_records("simulate", settings.duration, every * h, kept)
    tell_many_steps("simulate", settings.duration, h)
    if resumed is not None:
        state, schedule, memory = resumed[0].copy(), resumed[1], resumed[2]
        if schedule is not None:
            schedule = schedule.copy()
            schedule.log = []
            schedule.messages = []
    else:
        assert state0 is not None
        state = stepper.initial(*state0[:2], x=state0[2])
        schedule = None if stepper.sampling is not None else system.schedule(h)
        memory = no_state(system.batch, model.nv) if system.has_memory else None
    keeper = Keeper(stepper, state, schedule, memory, rows=steps // every + 1)
    going = FixedRun(stepper, schedule, memory, held, EventSearch(settings.events, system), keeper, every)
    if stepper.sampling is not None and resumed is None:
        state = keeper.states[..., 0, :] = going.after_instant(state)
    if every > 1 and not system.conserves_energy:
        going.note_steps(steps)

    def finish() -> Run:
        return keeper.finish(name, reason, settings, going.watch, going.done, going.notes)

    with (
        run_kept(lambda: finish() if keeper.cut(going.watch, going.notes) else None),
        Progress(f"simulating {model.name}", shown=settings.progress) as progress,
    ):
        going.run(state, steps, progress)
    return finish()


def stepper_of(system: Simulation, name: str, h: float, settings: Settings) -> Stepper:
    """Python functions cannot be called within an implicit step, nor can drives look back within any step.

    Multistep schemes start anew where a sampled law changes what it gives: not within machine code.
    """
    held = _all_held(system, name)
    schedule = None if name in (*IMPLICIT, *MULTISTEP) else system.schedule(h)
    sampling = None if schedule is None else compiled_schedule(system, schedule, settings.events)
    return Stepper(system, name, h, settings.start, held=held, sampling=sampling)


def _all_held(system: Simulation, name: str) -> bool:
    """Whether what controllers ask for is held over steps."""
    return system.has_memory or (name in IMPLICIT and bool(system.laws))


def _on_grid(system: Simulation, stepper: Stepper) -> Array:
    """The steps at which tables that hold change in the run."""
    instants = system.loads.tables.instants
    instants = instants[instants > stepper.start]
    numbers = (instants - stepper.start) / stepper.h
    steps = np.round(numbers)
    off = np.abs(numbers - steps) * stepper.h > 1e-9 * np.maximum(1.0, np.abs(instants))
    if np.any(off):
        raise ArgumentError(
            f"simulate: a table that holds changes at {instants[off][0]:g} s, expected a multiple of "
            f"the step {stepper.h:g} s from the start at {stepper.start:g} s"
        )
    return steps.astype(int)


class FixedRun:
    """Through the steps of a run, as far at a time as controllers, events and records allow."""

    def __init__(
        self,
        stepper: Stepper,
        schedule: Schedule | None,
        memory: Array | None,
        held: bool,
        watch: EventSearch,
        keeper: Keeper,
        every: int,
    ) -> None:
        self.stepper, self.system = stepper, stepper.system
        self.schedule, self.memory, self.held = schedule, memory, held
        self.watch, self.keeper, self.every = watch, keeper, every
        self.single = (
            held or bool(watch.events) or not stepper.compiled or bool(self.system.loads.wrench_laws)
        )
        self.single = self.single or self.system.loads.tables.long
        self.done = 0
        self.changing = schedule is not None or held or bool(self.system.loads.tables.holds)
        self.instants = _on_grid(self.system, stepper)
        self.longest = steps_at_a_time(self.system.batch)
        if stepper.sampling is not None and stepper.sampling.drawn:
            self.longest = min(self.longest, (stepper.sampling.rows - 1) * stepper.sampling.tick)
        self.jumped = False
        """whether efforts or wrenches are others from this step on than before"""
        self.notes: StepNotes | None = None
        self.replayed: StepNotes | None = None
        """what a run had done, where this one repeats a part of it"""

    def after_instant(self, state: Array) -> Array:
        """The state with which a run begins: what happens at its first instant, in machine code, is done."""
        return self.stepper.after_instant(
            state, self._effort(state, self.stepper.number(state))[0], self._wrench(state)
        )

    def note_steps(self, steps: int) -> None:
        """Keep what the work between records is computed from: states of steps made in Python, otherwise the efforts."""
        model = self.system.model
        numbers = steps * math.prod(self.system.batch) * (model.nq + 2 * model.nv)
        if not self.single or numbers < MOST_NOTED:
            self.notes = StepNotes(single=self.single)

    def _note(self, number: float, effort: Array, held: Array, q: Array, v: Array, x: Array) -> None:
        assert self.notes is not None
        self.notes.add(number, effort, held, q, v, x, self.system.topology)

    def run(self, state: Array, steps: int, progress: Progress) -> None:
        stepper = self.stepper
        first = stepper.number(state)
        end = first + steps
        if self.watch.events:
            q, v = stepper.q(state).copy(), stepper.v(state).copy()
            self.watch.begin(stepper.time(first), q, v, fresh=first == 0)
        while (n := stepper.number(state)) < end:
            effort, held = self._effort(state, n)
            if self.notes is not None:
                self._note(n, effort, held, stepper.q(state), stepper.v(state), stepper.x(state))
                self.notes.jumps |= {n} if self.jumped else set()
            self.system.effort = effort
            if self.jumped:
                state = stepper.after_jump(state, effort, stepper.time(n))
            if self.schedule is not None:
                self.schedule.effort = effort
            if self.changing and len(self.keeper.held) < self.keeper.count:
                self._hold(held)
            limit = min(end, n + 1) if self.single else end
            if self.schedule is not None:
                limit = min(limit, self.schedule.next_instant(n))
            later = self.instants[np.searchsorted(self.instants, n, side="right") :]
            limit = min([limit, *later[:1].tolist()])
            known = stepper.known(state)
            if known < stepper.past:
                limit = min(limit, n + stepper.past - known)
            following = self._advance(state, n, first, limit, effort)
            if following is None:
                return
            state = following
            self.done = stepper.number(state) - first
            progress.at(self.done / steps)
        if self.notes is not None and self.single:
            self._note(end, effort, held, stepper.q(state), stepper.v(state), stepper.x(state))
        if self.changing and len(self.keeper.held) < self.keeper.count:
            schedule, memory = self.schedule, self.memory
            self.schedule = schedule.copy() if schedule is not None else None
            self._hold(self._effort(state, end)[1])
            self.schedule, self.memory = schedule, memory

    def _hold(self, held: Array) -> None:
        self.keeper.held.append(held)
        if self.schedule is not None:
            self.keeper.states_held.append(self.schedule.controller_states(self.system.batch, self.system))

    def _effort(self, state: Array, n: int) -> tuple[Array, Array]:
        """Efforts for the steps from n on: all that are constant, and of them what controllers ask for."""
        system, stepper = self.system, self.stepper
        system.x = stepper.x(state)  # samples of this instant are taken with it
        if self.replayed is not None:
            self.jumped = n in self.replayed.jumps
            return self.replayed.efforts_at(n)
        self.jumped = n == 0 or self.held or n in self.instants
        held: Array = np.zeros(system.model.nv)
        if self.changing:
            q, v = stepper.q(state).copy(), stepper.v(state).copy()
        if self.schedule is not None:
            before = self.schedule.command()
            self.schedule.update(n, stepper.time(n), q, v, system)
            held = held + self.schedule.command()
            self.jumped = self.jumped or not np.array_equal(before, held)
            if system.pulses:
                self._lighten(state, n)
        last = None
        if self.held:
            t, q_middle, v_middle = stepper.middle(state)
            x, sampled = stepper.x(state).copy(), held
            if self.memory is not None and system.drives is not None and stepper.scheme is not None:
                given = system.loads.efforts + system.drives.saturate(self.memory[..., 0, :])
                given = given + system.loads.tables.held_efforts(t)
                a = system.point(stepper.time(n), q, v, given, held=True).a
                v_middle = v_middle + stepper.h / 2 * a  # what a drive does with it is of second order
            x = x + stepper.h / 2 * system.rates(t, q_middle, v_middle, x)
            held = sampled + system.command(t, q_middle, v_middle, x)
            if system.drives is not None and np.any(system.drives.follows_at_once):
                q_end, v_end = system.model.integrate(q, stepper.h * v_middle), 2 * v_middle - v
                last = sampled + system.command(t + stepper.h / 2, q_end, v_end, x)
        if system.drives is not None and self.changing:
            if self.memory is not None:
                held, self.memory = system.drives.advance(self.memory, held, stepper.h, last)
            else:
                held = system.drives.saturate(held)
        if system.loads.tables.holds:
            held = held + system.loads.tables.held_efforts(stepper.time(n) + stepper.h / 2)
        held = np.where(system.prescribed, 0.0, held)  # a joint that follows a motion takes no command
        outside = system.loads.efforts
        if system.loads.tables.long and stepper.compiled:
            outside = outside + system.loads.tables.long_efforts(stepper.time(n) + stepper.h / 2)
        return np.ascontiguousarray(outside + held), np.broadcast_to(held, (*system.batch, system.model.nv))

    def _lighten(self, state: Array, n: int) -> None:
        """The masses that are left from this instant on, in the state and in its record."""
        assert self.schedule is not None
        stepper, keeper = self.stepper, self.keeper
        left = self.system.pulsed(stepper.x(state), self.schedule.readings)
        record = keeper.states[..., keeper.count - 1, :]
        for one in (state, *([record] if stepper.number(record) == n else [])):
            one[..., stepper.layout["x"]] = left
        self.system.x = left

    def _advance(self, state: Array, n: int, first: int, limit: int, effort: Array) -> Array | None:
        """To `limit`, or to the next full set of records; None where an event stops the run."""
        stepper, keeper, every = self.stepper, self.keeper, self.every
        if not stepper.compiled:
            try:
                following = (
                    stepper.python_step(state, effort, stepper.start, stepper.h)
                    if np.isfinite(stepper.motion(state)).all(axis=-1).any()
                    else stepper.lost(state)
                )
            except Diverged as error:
                q = stepper.q(state)
                raise not_finite(
                    self.system.model,
                    stepper.time(n),
                    q.reshape(-1, q.shape[-1])[0],
                    stepper.h,
                    str(error),
                    self._blame(state),
                ) from None
            wrench = None
        else:
            wrench = self._wrench(state)
            over = (n - first) % every
            if over == 0 and limit - n >= every:
                length, count = every, min(RECORDS, (limit - n) // every)
            else:
                length, count = min(every - over, limit - n), 1
            if length > self.longest:
                length, count = self.longest, 1
            elif length * count > self.longest:
                count = max(1, self.longest // length)
            out = keeper.space()
            stepper.advance(state, length, count, effort, wrench, out)
            following = out[..., count - 1, :].copy()
            keeper.skip(count - 1, self.schedule, self.memory)
            self._check_finite(state, following)
        if self.watch.events:
            watched = self._watch(state, following, n, effort, wrench)
            if watched is None:
                return None
            following = watched
        self._check_finite(state, following)
        if (stepper.number(following) - first) % every == 0:
            keeper.space()[..., 0, :] = following
            keeper.count += 1
            keeper.note(self.schedule, self.memory)
        return following

    def _check_finite(self, state: Array, following: Array) -> None:
        """Raise where one motion is not finite, with what laws in machine code have to say on its last good record."""
        stepper, keeper, sampling = self.stepper, self.keeper, self.stepper.sampling
        if following.ndim > 1 or np.isfinite(stepper.motion(following)).all():
            return
        keeper.space()[0] = following
        keeper.count += 1
        if sampling is not None:
            rows = keeper.states[: keeper.count]
            good = np.flatnonzero(np.isfinite(stepper.q(rows)).all(axis=-1))
            last = rows[good[-1]] if len(good) else state
            t = stepper.time(stepper.number(last))
            sampling.explain(t, stepper.q(last), stepper.v(last), stepper.remembered(last))
        check_finite(self.system.model, *self._so_far(), stepper.h, self._blame(state))

    def _blame(self, state: Array) -> str:
        """A law that gives no numbers within the steps from a state on, which may be many."""
        stepper, rows = self.stepper, self.keeper.states[..., : self.keeper.count, :]
        if state.ndim > 1:
            return ""
        good = np.flatnonzero(np.isfinite(stepper.motion(rows)).all(axis=-1))
        if stepper.sampling is not None and len(good):
            for k in range(good[-1], min(good[-1] + 2, len(rows))):
                t, held = (
                    stepper.time(stepper.number(rows[k])),
                    stepper.sampling.held(stepper.remembered(rows[k])),
                )
                last = rows[good[-1]]
                check_answer(
                    self.system.model, "a sampled controller", t, stepper.q(last), stepper.v(last), held
                )
        number = stepper.number(state)
        if len(good) and stepper.number(rows[good[-1]]) > number:
            state, number = rows[good[-1]], stepper.number(rows[good[-1]])
        times = [
            stepper.time(number) + share * self.every * stepper.h for share in (0.0, 0.25, 0.5, 0.75, 1.0)
        ]
        return blame(self.system, times, stepper.q(state), stepper.v(state).copy(), stepper.x(state))

    def _so_far(self) -> tuple[Array, Array, Array]:
        states = self.keeper.states[: self.keeper.count]
        motion = self.stepper.motion(states)
        return self.stepper.start + states[:, 0] * self.stepper.h, self.stepper.q(states), motion

    def _wrench(self, state: Array) -> Array | None:
        if not self.stepper.plant.wrenches:
            return None
        system = self.system
        if system.loads.wrench_laws or system.loads.tables.holds:
            t = self.stepper.time(self.stepper.number(state)) + self.stepper.h / 2
            return system.loads.wrench_array(*self.stepper.loaded_at(state), system.parameters, within=t)
        return system.loads.wrench_array(0.0, state, state, system.parameters)

    def _watch(
        self, state: Array, following: Array, n: int, effort: Array, wrench: Array | None
    ) -> Array | None:
        """The end of a step with all events in it dealt with; None where one stops the run."""
        stepper, watch = self.stepper, self.watch
        t, end = stepper.time(n), stepper.time(n + 1)
        q, v, x = stepper.q(state).copy(), stepper.v(state).copy(), stepper.x(state).copy()
        changed = False

        def moved_to(t: float, q: Array, v: Array, x: Array, time: float) -> tuple[Array, Array, Array]:
            if time == t:
                return q, v, x
            moved = following
            if time != end or changed:
                moved = stepper.part(q, v, x, t, time - t, effort, wrench)
            return stepper.q(moved).copy(), stepper.v(moved).copy(), stepper.x(moved).copy()

        def path_from(t: float, q: Array, v: Array, x: Array) -> Path:
            def path(time: float) -> tuple[Array, Array]:
                q_there, v_there, self.system.x = moved_to(t, q, v, x, time)
                return q_there, v_there

            return path

        path, since = path_from(t, q, v, x), (t, q, v, x)
        for _ in range(MOST_IN_A_STEP):
            found = watch.first(t, end, path, 1e-6 * stepper.h)
            if found is None:
                if changed:
                    q, v, x = moved_to(*since, end)
                    following = stepper.initial(q, v, number=n + 1, x=x)
                    following = stepper.after_jump(following, effort, end)
                return following
            which, t = found
            q_there, v_there, x = moved_to(*since, t)
            self.system.x = x
            q, v, stop, new = watch.happen(which, t, q_there, v_there, self.keeper.count)
            self.keeper.switched(self.system)
            if stop:
                self.keeper.last, self.keeper.last_x = (t, q, v), x
                self.done += 1
                if self.notes is not None:
                    self._note((t - stepper.start) / stepper.h, *self.notes.efforts_at(n), q, v, x)
                return None
            if new:
                changed = True
                path, since = path_from(t, q, v, x), (t, q, v, x)
        raise NumericalError(
            f"simulate: more than {MOST_IN_A_STEP} events within one step, the last {watch.log[-1].name!r} at t = "
            f"{t:.12g} s; they accumulate, as bounces do that come to rest: stop there, or switch to another model"
        )


# --- the work -------------------------------------------------------------------------------------------------------


def work_of_steps(run: Run) -> Array:
    """(..., N): the work up to each record, from the states of all steps where records are further apart.

    Steps in machine code are made once more from each record on, with the same bits; those in Python were noted.
    """
    notes, system, h = run._notes, run._system, run.step
    if notes is None:
        return work_of_records(run)
    assert h is not None
    stepper = stepper_of(system, run.integrator, h, run._settings)
    total = [np.zeros(run.q.shape[:-2])]
    if notes.single:
        numbers, q, v, x, held = notes.states()
        times = stepper.start + numbers * h
        firsts = np.searchsorted(times + ROUNDING * np.abs(times), [event.time for event in run.events])
        efforts = recorded_efforts(system, times, q, v, held, x, all_held=stepper.held)
        parts = _work_over(run, times, q, v, x, held, efforts, notes.topologies, np.maximum(firsts, 1))
        at = np.searchsorted(numbers, (run.time - stepper.start) / h - 1e-6)
        return parts[..., np.minimum(at, parts.shape[-1] - 1)]
    states = run._machine[0]
    numbers = states[..., 0].reshape(-1, states.shape[-2])[0].astype(int)
    for k in range(len(numbers) - 1):
        steps = int(numbers[k + 1] - numbers[k])
        state = np.ascontiguousarray(states[..., k, :])
        keeper = Keeper(stepper, state, None, None, rows=steps + 1)
        again = FixedRun(stepper, None, None, False, EventSearch((), system), keeper, 1)
        again.changing, again.replayed = False, notes
        again.instants = np.union1d(again.instants, notes.numbers)
        again.run(state.copy(), steps, Progress("", shown=False))
        passed = keeper.states[..., : steps + 1, :]
        times = stepper.start + (numbers[k] + np.arange(steps + 1)) * h
        q, v = (
            np.ascontiguousarray(stepper.q(passed)),
            np.ascontiguousarray(stepper.v(passed, along_time=True)),
        )
        x = np.ascontiguousarray(stepper.x(passed))
        held = np.stack([notes.efforts_at(int(numbers[k]) + n)[1] for n in range(steps + 1)], axis=-2)
        if stepper.sampling is not None:
            held = held + stepper.sampling.held(stepper.remembered(passed))
        efforts = recorded_efforts(system, times, q, v, held, x, all_held=stepper.held)
        topologies = len(times) * [system.topology]
        total.append(total[-1] + _work_over(run, times, q, v, x, held, efforts, topologies, [])[..., -1])
    return np.stack(total, axis=-1)


def work_of_records(run: Run, every: int = 1) -> Array:
    """(..., N): the work up to each record, from the records, or from some of them."""
    rows = slice(None, None, every)
    x = np.zeros((*run.q.shape[:-1], 0)) if run.controller_states is None else run.controller_states
    x = x[..., : run._system.feedback.size]  # those of sampled ones are held over steps, as what they give
    q, v, x, held, efforts = (x[..., rows, :] for x in (run.q, run.v, x, run.held_over_steps, run.efforts))
    firsts = [-(-first // every) for _, first in run.event_records()]
    topologies = [run.topology(k) for k in range(0, len(run.time), every)]
    return _work_over(run, run.time[rows], q, v, x, held, efforts, topologies, firsts)


def _work_over(
    run: Run,
    time: Array,
    q: Array,
    v: Array,
    x: Array,
    held: Array,
    efforts: Array,
    topologies: Sequence[Topology],
    firsts: Sequence[int] | Array,
) -> Array:
    """(..., M): of what is held over steps by their displacements, of all else by Simpson's rule.

    At events, before the rows `firsts`, states jump, and where something that is held changes, accelerations do, and what
    prescribed joints take: each stretch between two of them counts by itself, with a row at either end.
    """
    system, count = run._system, len(time)
    jumps = np.arange(1, count)[_changes(system, time, held)]
    where = np.concatenate([np.repeat(np.asarray(firsts, dtype=int), 2), jumps])
    begins, added = np.zeros(count, dtype=bool), np.zeros(len(where), dtype=bool)
    begins[jumps], added[1 : 2 * len(firsts) : 2] = True, True
    cuts, rows = np.flatnonzero(np.insert(begins, where, added)), np.arange(count)
    if len(where):
        owners = np.concatenate([np.where(added, where, where - 1)[: 2 * len(firsts)], jumps])
        owners = np.minimum(owners, count - 1)
        more = [x[..., owners, :] for x in (q, v, x, held, efforts)]
        t = time[owners]
        since = 2 * len(firsts)
        for x_before in more[3:]:
            x_before[..., since:, :] += held[..., jumps - 1, :] - held[..., jumps, :]
        if len(firsts):
            _at_events(run, time, firsts, t, more, x, held)
        rows = np.flatnonzero(np.insert(np.ones(count, dtype=bool), where, False))
        q, v, x, held, efforts = (
            np.insert(old, where, new, axis=-2)
            for old, new in zip((q, v, x, held, efforts), more, strict=True)
        )
        time = np.insert(time, where, t)
        topologies = [topologies[k] for k in np.insert(np.arange(count), where, owners).tolist()]
    given = efforts - held
    if system.prescribes:
        for k, moment in enumerate(time.tolist()):
            system.topology = topologies[k]
            required = system.required_efforts(
                moment, q[..., k, :], v[..., k, :], efforts[..., k, :], x[..., k, :]
            )
            given[..., k, :] = np.where(system.prescribed, required, given[..., k, :])
    moved = system.own.difference(q[..., :-1, :].copy(), q[..., 1:, :].copy())
    steps = np.sum(held[..., :-1, :] * moved, axis=-1)
    steps[..., cuts - 1] = 0.0
    middles = (time[:-1] + time[1:]) / 2
    within = np.append(middles, middles[-1:] if len(middles) else time)
    """rows begin what follows, but for the last of a stretch"""
    within[cuts - 1] = middles[np.maximum(cuts - 2, 0)]
    P = power(system, time, q, v, given, held, controllers=x, within=within)
    found = np.zeros(P.shape)
    found[..., 1:] = np.cumsum(steps, axis=-1)
    done = np.zeros(P.shape[:-1])
    for piece in np.split(np.arange(len(time)), cuts):
        stretch = _by_simpson(P[..., piece], time[piece])
        found[..., piece] += done[..., None] + stretch
        done = done + stretch[..., -1]
    return found[..., rows]


def _changes(system: Simulation, time: Array, held: Array) -> Array:
    """Whether what is held changes at a row, or a table bends there, for all but the first.

    What lagging drives give changes with every step, and is smooth; only what reads it at an instant jumps then.
    """
    middles = (time[:-1] + time[1:]) / 2
    found = np.zeros(max(len(time) - 1, 0), dtype=bool)
    if system.prescribes or system.loads.reading is not None or not system.has_memory:
        changed = np.any(held[..., 1:, :] != held[..., :-1, :], axis=-1)
        found |= changed.any(axis=tuple(range(changed.ndim - 1)))
    for table in system.loads.tables.held_wrenches.values():
        values = np.array([table(t) for t in middles])
        found[:-1] |= np.any(values[1:] != values[:-1], axis=-1)
    for _, table in system.loads.tables.all:
        row = np.searchsorted(middles, table.breaks)  # the nearest
        found[row[(row > 0) & (np.abs(time[row] - table.breaks) < 1e-6 * np.ptp(time))] - 1] = True
    return found


def _at_events(
    run: Run, time: Array, firsts: Sequence[int] | Array, t: Array, rows: list[Array], x: Array, held: Array
) -> None:
    """Put states, efforts and times before and after events into pairs of rows."""
    count, before = 2 * len(firsts), np.repeat(np.asarray(firsts, dtype=int), 2) - 1
    later = np.minimum(before + 1, len(time) - 1)
    t[:count] = np.repeat([event.time for event in run.events], 2)
    for k, name in enumerate(("q", "v")):
        pairs = [(getattr(event, name), getattr(event, f"{name}_after")) for event in run.events]
        rows[k][:count] = np.concatenate(pairs)
    share = (t[:count] - time[before]) / np.maximum(time[later] - time[before], np.finfo(float).tiny)
    rows[2][:count] = x[before] + share[:, None] * (x[later] - x[before])
    rows[3][:count] = held[before]
    rows[4][:count] = recorded_efforts(
        run._system,
        t[:count],
        *(row[:count] for row in (rows[0], rows[1], rows[3], rows[2])),
        all_held=_all_held(run._system, run.integrator),
    )


ROUNDING = 4 * float(np.finfo(float).eps)
NEAR = 1e-3
"""of the longest step: an event as near to a record is no point of a parabola with it"""


def _by_simpson(P: Array, time: Array) -> Array:
    """The integral of P (..., N) over time, up to each row."""
    found, h = np.zeros(P.shape), np.diff(time)
    strips = (P[..., 1:] + P[..., :-1]) / 2 * h
    kept = np.ones(len(time), dtype=bool)
    if len(time) > 2:
        kept[1] = h[0] > NEAR * np.max(h)
        kept[-2] = kept[-2] and h[-1] > NEAR * np.max(h)
    if np.count_nonzero(kept) < 3:
        found[..., 1:] = np.cumsum(strips, axis=-1)
        return found
    found[..., kept] = scipy.integrate.cumulative_simpson(P[..., kept], x=time[kept], axis=-1, initial=0.0)
    if not kept[1]:
        found[..., 1] = strips[..., 0]
    if not kept[-2]:
        found[..., -2] = found[..., -1] - strips[..., -1]
    return found
