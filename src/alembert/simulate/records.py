"""Records of a run with fixed steps, and what they become: a `Run`; and how far runs are.

Runs that cannot end are refused: more records than the memory holds, more steps than can be counted or waited for.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

import numpy as np

from alembert.algorithms.failures import massless, overbent
from alembert.arguments import real
from alembert.errors import ArgumentError, NumericalError, check_interrupt, interrupts_kept, warn
from alembert.lowering.plan import RECORDS
from alembert.model import Model
from alembert.simulate.event_search import EventSearch
from alembert.simulate.inputs import Settings
from alembert.simulate.report import StepNotes
from alembert.simulate.result import Run
from alembert.simulate.schedule import Schedule
from alembert.simulate.sensors import SensorSamples
from alembert.simulate.simulation import Simulation
from alembert.simulate.stepper import Stepper

Array = np.ndarray


class Keeper:
    """Records: the machine's states, the efforts from each of them on, and what sampled controllers hold."""

    def __init__(
        self, stepper: Stepper, state: Array, schedule: Schedule | None, memory: Array | None, *, rows: int
    ) -> None:
        self.stepper = stepper
        self.states = np.empty((*state.shape[:-1], rows + RECORDS, state.shape[-1]))
        self.states[..., 0, :] = state
        self.count = 1
        self.held: list[Array] = []
        self.snapshots: list[tuple[Schedule | None, Array | None]] = []
        self.schedule = schedule
        self.note(schedule, memory)
        self.topologies = [(0, stepper.system.topology)]
        self.last: tuple[float, Array, Array] | None = None
        self.last_x = np.zeros(0)
        self.states_held: list[Array] = []
        """the states of sampled controllers from each record on"""

    def note(self, schedule: Schedule | None, memory: Array | None) -> None:
        if schedule is not None or memory is not None:
            self.snapshots.append((schedule.copy() if schedule is not None else None, memory))

    def switched(self, system: Simulation) -> None:
        """Other constraints may hold from the next record on."""
        if system.topology is not self.topologies[-1][1]:
            self.topologies.append((self.count, system.topology))

    def skip(self, count: int, schedule: Schedule | None, memory: Array | None) -> None:
        """Records that are in place already; what is held does not change between them."""
        self.count += count
        self.held += count * self.held[-1:]
        self.states_held += count * self.states_held[-1:]
        for _ in range(count):
            self.note(schedule, memory)

    def cut(self, watch: EventSearch, notes: StepNotes | None) -> bool:
        """Of a run that was interrupted, leave out what is there in part; whether anything is left beside the start."""
        lists = [x for x in (self.held, self.snapshots, self.states_held) if x]
        self.count = min([self.count, *map(len, lists)])
        if notes is not None and (last := notes.cut()) >= 0.0 and notes.single:
            numbers = self.states[..., : self.count, 0].reshape(-1, self.count)[0]
            self.count = min(self.count, int(np.searchsorted(numbers, last, side="right")))
        for x in lists:
            del x[self.count :]
        self.last = None
        self.topologies = [x for x in self.topologies if x[0] < self.count]
        watch.cut(self.count)
        return self.count > 1

    def space(self) -> Array:
        return self.states[..., self.count : self.count + RECORDS, :]

    def finish(
        self,
        name: str,
        reason: str,
        settings: Settings,
        watch: EventSearch,
        steps: int,
        notes: StepNotes | None,
    ) -> Run:
        stepper, system = self.stepper, self.stepper.system
        states = self.states[..., : self.count, :]
        numbers = states[..., 0].reshape(-1, self.count)[0]
        time = stepper.start + numbers * stepper.h
        q = np.ascontiguousarray(stepper.q(states))
        check_finite(system.model, time, q, stepper.motion(states), stepper.h)
        v = np.ascontiguousarray(stepper.v(states, along_time=True))
        held = np.stack(self.held, axis=-2) if self.held else None
        sampling = stepper.sampling
        if sampling is not None:
            remembered = stepper.remembered(states)
            held = sampling.held(remembered) + (0.0 if held is None else held)
        if self.last is not None:  # an event stopped the run between two records
            t, q_end, v_end = self.last
            time = np.append(time, t)
            q, v = np.concatenate([q, q_end[None]]), np.concatenate([v, v_end[None]])
            if held is not None:
                held = np.concatenate([held, held[-1:]])
        x = np.ascontiguousarray(stepper.x(states))
        if self.last is not None:
            x = np.concatenate([x, self.last_x[None]])
        efforts = recorded_efforts(system, time, q, v, held, x, all_held=stepper.held)
        machine = (states, self.snapshots)
        return Run(
            system.own,
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
            settings,
            machine,
            held,
            tuple(self.topologies),
            tuple(watch.records),
            self._drive_states(len(time)),
            self._measurements(numbers, states),
            _notes=notes,
            controller_states=np.concatenate([x, self._sampled_states(len(time))], axis=-1),
        )

    def _measurements(self, numbers: Array, states: Array) -> dict[str, SensorSamples]:
        stepper = self.stepper
        if stepper.sampling is not None:
            return stepper.sampling.measurements(
                numbers, stepper.remembered(states), stepper.start, stepper.h
            )
        return {} if self.schedule is None else self.schedule.measurements()

    def _sampled_states(self, rows: int) -> Array:
        """(..., N, states): of sampled controllers, from each record on."""
        system = self.stepper.system
        if self.stepper.sampling is not None:
            return self.stepper.sampling.memories(self.stepper.remembered(self.states[..., :rows, :]))
        if not system.feedback.sampled_systems:
            return np.zeros((*system.batch, rows, 0))
        found = self.states_held[: self.count]
        found = [*found, *(rows - len(found)) * found[-1:]]
        return np.stack(found, axis=-2)

    def _drive_states(self, rows: int) -> Array | None:
        if not self.snapshots or self.snapshots[0][1] is None:
            return None
        found = [memory for _, memory in self.snapshots if memory is not None]
        found = [*found[: self.count], *(rows - self.count) * found[-1:]]
        return np.stack(found, axis=-3)


def recorded_efforts(
    system: Simulation,
    time: Array,
    q: Array,
    v: Array,
    held: Array | None,
    x: Array,
    *,
    all_held: bool = False,
) -> Array:
    """(..., N, nv), at times (N,); `x` (..., N, states) are those of continuous controllers. A joint that follows a motion
    takes no command."""
    total = np.zeros(v.shape) + (
        system.loads.efforts[..., None, :] if system.loads.efforts.ndim > 1 else system.loads.efforts
    )
    if held is not None:
        total = total + held
    if system.loads.tables.all:
        total = total + system.loads.tables.fed_efforts(time)
    if system.laws and not all_held:
        for k, t in enumerate(time):
            total[..., k, :] += system.command(float(t), q[..., k, :], v[..., k, :], x[..., k, :])
    elif system.law is not None and not all_held:
        times = np.broadcast_to(time[:, None], (*v.shape[:-1], 1))
        total = total + system.command(times, q, v, x, along_time=True)
    return np.where(system.prescribed, 0.0, total) if system.prescribes else total


def check_finite(model: Model, time: Array, q: Array, states: Array, step: float, fault: str = "") -> None:
    """`fault`: a law that gives no numbers, if one is known."""
    good = np.isfinite(states).all(axis=-1)
    if good.all():
        return
    along = good if good.ndim == 1 else good.reshape(-1, good.shape[-1]).all(axis=0)
    k = int(np.argmin(along))
    if good.ndim == 1:
        raise not_finite(model, float(time[max(k - 1, 0)]), q[max(k - 1, 0)], step, fault=fault)
    bad = np.count_nonzero(~good.all(axis=-1))
    warn(
        f"simulate: {bad} of {good[..., 0].size} motions are not finite to the end, the first after t = "
        f"{time[max(k - 1, 0)]:.9g} s; their records are NaN from there on"
    )


def not_finite(
    model: Model, t: float, q: Array, step: float, told: str = "", fault: str = ""
) -> NumericalError:
    """The error of a step from t that has no end; `told` is what was noticed first, `fault` a law that gives no numbers."""
    why = fault or _why(model, q, f" (first: {told})" if told else "")
    return NumericalError(
        f"simulate: the motion is not finite after t = {t:.9g} s, in steps of {step:g} s; {why}"
    )


def _why(model: Model, q: Array, first: str) -> str:
    none = massless(model, q, {})
    if none:
        return f"{none}{first}"
    sentence = model.space.singularity(q) or overbent(model, q, {})
    why = sentence or "the step is too long for the motion, or its equations have no solution"
    return f"{why}{first}; a smaller step may help"


DRAWN = 100.0
"""steps that take as long as drawing a member does"""
COUNTED = 2**53
"""steps; their number is kept as a double"""
LONG = 1e9
"""steps that are not begun without a word: a quarter of an hour for the smallest model in machine code"""
EARLY, HOPELESS = 1000, 1e14
"""steps with error control before a pace is judged at which no motion ends, and how many would be left then"""
TRIED = 10_000
"""steps with error control before the pace is judged"""
PATIENCE, SLOW = 1e9, 1e7
"""steps with error control that may be left then: a week or more; and that may be without a word: an hour or more"""
AT_A_TIME = 200_000
"""steps of one motion in machine code, which cannot be interrupted: less than a second, mostly"""


def check_times(who: str, duration: Any, step: Any, interval: Any) -> None:
    for name, value in (("duration", duration), ("step", step), ("interval", interval)):
        if value is not None or name == "duration":
            real(who, name, value, "a positive time in seconds", over=0.0)


def check_steps(who: str, duration: float, step: float) -> None:
    count = duration / step
    if count > COUNTED:
        raise ArgumentError(
            f"{who}: {duration:g} s in steps of {step:g} s are {count:.2g} steps, more than can be counted ({COUNTED:.2g}); "
            "give a shorter duration or a larger step"
        )


def check_records(who: str, duration: float, interval: float, numbers: int, *, hint: str = "") -> None:
    """`numbers` are kept at each record."""
    count = duration / interval + 1
    needed, there = 8.0 * count * numbers, memory()
    if needed > there:
        raise ArgumentError(
            f"{who}: {count:.3g} records, {interval:g} s apart, take {_size(needed)} of memory, this machine has "
            f"{_size(there)}; give a larger interval between records (interval=...){hint}"
        )


def tell_many_steps(who: str, duration: float, step: float) -> None:
    """Once it is known that they are made."""
    if duration / step > LONG:
        warn(
            f"{who}: {duration:g} s in steps of {step:g} s are {duration / step:.2g} steps, which take hours or days; a "
            "shorter duration or a larger step helps"
        )


def tell_many_members(members: int, duration: float, step: float | None) -> None:
    each = 1.0 if step is None else duration / step
    if members * max(each, DRAWN) > LONG:
        steps = f"{each:.2g} steps" if step is not None else "at least one step"
        warn(
            f"ensemble: {members:.2g} members of {steps} each, {members * each:.2g} in all, take hours or days; give fewer "
            "members or a larger step, or a checkpoint= to go on from"
        )


class Pace:
    """Of error control: refuse to go on where the last `TRIED` steps say that the run never ends.

    A motion that grows without bound takes ever shorter steps.
    """

    def __init__(self, who: str, *, implicit: bool) -> None:
        self._who, self._last = who, (0, 0.0)
        self._hint = (
            "or a larger tolerance"
            if implicit
            else "a larger tolerance, or, if the motion is stiff, integrator='radau'"
        )
        self._judged = self._told = False

    def check(self, steps: int, passed: float, duration: float, fastest: Callable[[], str]) -> None:
        """`steps` were made for the time `passed`; `fastest` says what moves fastest."""
        before, then = self._last
        early = not self._judged and steps >= EARLY
        if not early and steps - before < TRIED:
            return
        left = (duration - passed) * (steps - before) / max(passed - then, np.finfo(float).tiny)
        if early:
            self._judged = True
        else:
            self._last = (steps, passed)
        if left > (HOPELESS if early else PATIENCE):
            raise NumericalError(
                f"simulate: {self._who} made the last {steps - before} of {steps} steps for {passed - then:.3g} s, at "
                f"{passed:.6g} s of {duration:g} s: at this pace it never ends ({fastest()}); give a shorter duration, "
                f"{self._hint}"
            )
        if left > SLOW and not early and not self._told:
            self._told = True
            warn(
                f"simulate: {self._who} made {steps} steps for the first {passed:.3g} s of {duration:g} s: at this pace "
                f"{left:.2g} more follow, which take hours or days ({fastest()})"
            )


def steps_at_a_time(batch: Sequence[int]) -> int:
    """In one call of a kernel: so that it can be interrupted, and progress be shown, within some seconds."""
    return max(1, AT_A_TIME * 8 // max(8, math.prod(batch)))


def memory() -> float:
    """Of the machine [bytes]; where it does not tell, a lot."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 2.0**40


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} PiB"


@contextmanager
def run_kept(finish: Callable[[], Run | None]) -> Iterator[None]:
    """Ctrl-C amid the steps: the exception has the run until then, if there is one, as its attribute `run`."""
    try:
        with interrupts_kept():
            yield
    except KeyboardInterrupt as error:
        run = finish()
        if run is not None and not hasattr(error, "run"):
            error.run = run  # type: ignore[attr-defined]
            error.add_note(
                f"The run until t = {run.time[-1]:.9g} s is the attribute `run` of this exception (except KeyboardInterrupt "
                "as error: error.run; at a prompt: sys.last_value.run); its resume(duration) goes on from there"
            )
        raise


SHOWN_AFTER = 1.0  # s


class Progress:
    """`at(fraction)` shows how far the run is; the bar appears after `SHOWN_AFTER` and goes away at the end."""

    def __init__(self, what: str, *, shown: bool | None = None) -> None:
        self._what = what
        self._wanted = (sys.stderr is not None and sys.stderr.isatty()) if shown is None else shown
        self._start = self._last = monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def at(self, fraction: float, note: str = "") -> None:
        check_interrupt()
        if not self._wanted:
            return
        now = monotonic()
        if now - self._last < 0.1:
            return
        self._last = now
        if self._bar is None and now - self._start > SHOWN_AFTER:
            from rich.console import Console
            from rich.progress import Progress as Bar
            from rich.progress import TextColumn

            columns = [*Bar.get_default_columns(), TextColumn("{task.fields[note]}")]
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=1.0, note=note)
        if self._bar is not None:
            self._bar.update(self._task, completed=fraction, note=note)

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.stop()
