"""A run with error control: pieces of dense output between the instants of sampled controllers and events.

A run goes on from the start of a chart (`adaptive.Birth`), the last before the record at which it is to go on, and makes
the same steps again: what it records from there on has the same bits as if it had never stopped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from alembert.errors import UnsupportedError
from alembert.simulate import adaptive
from alembert.simulate.actuators import Lags, Ramp
from alembert.simulate.adaptive import Birth, DenseStep
from alembert.simulate.chart_equation import Flow
from alembert.simulate.event_search import Armed, EventSearch
from alembert.simulate.events import Topology
from alembert.simulate.inputs import Settings
from alembert.simulate.records import Pace, Progress, check_records, recorded_efforts, run_kept
from alembert.simulate.report import Account, Jumps
from alembert.simulate.result import Run
from alembert.simulate.schedule import Schedule, common_tick
from alembert.simulate.simulation import Simulation

Array = np.ndarray

RECORDS_OF_ADAPTIVE = 1000


@dataclass(frozen=True)
class EffortSpan:
    """What holds between two instants: the schedule, its instant, and what drives without a lag gave at the start."""

    t: float
    n: int
    schedule: Schedule | None
    before: Array


@dataclass(frozen=True)
class RestartPlace:
    """A place from which a run can go on: the start of a chart within a span, and what events look at."""

    record: int
    """the first that comes after it"""
    birth: Birth
    span: EffortSpan
    armed: Armed
    topology: Topology


@dataclass(frozen=True)
class Restart:
    """A mark, and the time of the record from which the run goes on."""

    mark: RestartPlace
    time: float

    @classmethod
    def at(cls, marks: Sequence[RestartPlace], time: Array, k: int) -> Restart:
        """From record k: the last mark before it was made."""
        found = marks[0]
        for mark in marks:
            if mark.record <= k:
                found = mark
        return cls(found, float(time[k]))


def run_adaptive(
    system: Simulation,
    q: Array,
    v: Array,
    name: str,
    reason: str,
    settings: Settings,
    restart: Restart | None = None,
) -> Run:
    _refuse(system, name)
    interval = _interval(settings)
    settings = replace(settings, interval=interval)
    width = system.model.nq + 2 * system.model.nv
    check_records("simulate", settings.duration, interval, width)
    lags = Lags(system.drives) if system.has_memory and system.drives is not None else None
    z = np.concatenate([np.zeros(0 if lags is None else lags.size), system.x])
    keeper = AdaptiveKeeper(_times(settings, restart), system)
    watch = EventSearch(settings.events, system)
    progress = Progress(f"simulating {system.model.name}", shown=settings.progress)
    going = AdaptiveRun(system, name, settings, lags, watch, keeper, progress)

    def finish() -> Run:
        return keeper.finish(going, name, reason, settings, after=None if restart is None else restart.time)

    with run_kept(lambda: finish() if keeper.cut(watch) else None), progress:
        if restart is None:
            going.begin(q, v, z)
        else:
            going.go_on(restart)
        going.run()
    return finish()


def _refuse(system: Simulation, name: str) -> None:
    if name == "ida" and (system.constrained or system.prescribes):
        what = "a model with loops or couplings" if system.constrained else "prescribed motion"
        raise UnsupportedError(
            f"simulate: integrator 'ida' and {what} do not go together; choose 'cvode' or 'radau'"
        )
    if system.drives is None or not (system.laws or system.feedback.is_compiled):
        return
    ramps = Lags(system.drives).ramps
    if len(ramps):
        raise UnsupportedError(
            f"simulate: a drive with a limited rate and no lag ({system.model.speed_names[ramps[0]]!r}), a continuous "
            f"controller and integrator {name!r} do not go together: what it gives would follow no differential equation; "
            "give the drive a lag, sample the controller (Sampled), or choose 'rk4' and a step"
        )


def _interval(settings: Settings) -> float:
    return float(settings.interval or settings.step or float(settings.duration) / RECORDS_OF_ADAPTIVE)


def _times(settings: Settings, restart: Restart | None) -> Array:
    """Of the records: multiples of the interval from the start of the run, or of the run that goes on, and the end."""
    interval, start = _interval(settings), float(settings.start)
    origin, first = float(settings.first_start), float(start if restart is None else restart.time)
    duration = float(settings.duration)
    end = first + duration
    if restart is not None:  # as it would be without an interruption, the last bit of times included
        nearest = origin + interval * round((first - origin) / interval)
        first = nearest if abs(nearest - first) < 1e-9 * interval else first
        short = origin + float(f"{end - origin:.12g}")
        end = short if abs(short - end) < 1e-14 * max(abs(end), 1.0) else end
    last = math.floor((end - origin) / interval * (1 + 1e-12))
    times = origin + interval * np.arange(last + 1)
    times = np.concatenate([[first], times[times > first + 1e-9 * interval]])
    if end - times[-1] > 1e-9 * duration:
        times = np.append(times, end)
    times[-1] = end
    return times


class AdaptiveRun:
    """Through a run, span by span."""

    def __init__(
        self,
        system: Simulation,
        name: str,
        settings: Settings,
        lags: Lags | None,
        watch: EventSearch,
        keeper: AdaptiveKeeper,
        progress: Progress,
    ) -> None:
        self.progress = progress
        self.system, self.name, self.settings = system, name, settings
        self.lags, self.watch, self.keeper = lags, watch, keeper
        self.schedule, self.tick = ticks(system)
        self.origin = float(settings.first_start)
        self.counters = adaptive.Counters()
        self.jumps = Jumps(float(settings.duration))
        self.pace = Pace(name, implicit=name in adaptive.IMPLICIT)
        self.t, self.n = 0.0, 0
        self.before = np.zeros(system.model.nv)
        """what drives without a lag, but with a limited rate, give at present"""
        self.span: EffortSpan | None = None
        self.q = self.v = self.z = np.zeros(0)

    def begin(self, q: Array, v: Array, z: Array) -> None:
        self.t, self.z = float(self.settings.start), z
        self.q, self.v = self.system.imposed(self.t, q, v)
        self.watch.begin(self.t, self.q, self.v, fresh=True)
        self.keeper.start(self.q, self.v, z)

    def go_on(self, restart: Restart) -> None:
        mark = restart.mark
        birth, self.span = mark.birth, mark.span
        self.t, self.q, self.v, self.z = birth.t, birth.q, birth.v, birth.z
        self.counters.step, self.counters.approach = birth.step, birth.approach
        self.n, self.before = mark.span.n, mark.span.before
        if mark.span.schedule is not None:
            self.schedule = mark.span.schedule.copy()
            self.schedule.log = []
            self.schedule.messages = []
        self.system.topology = mark.topology
        self.watch.armed = mark.armed
        if self.t >= restart.time:
            self.keeper.start(self.q, self.v, self.z)

    def run(self) -> None:
        end = float(self.keeper.times[-1])
        try:
            while self.t < end and not self.keeper.stopped:
                self._span(end)
        finally:
            self.system.feedback.until = np.inf
        self.jumps.tell(self.name, self.counters.steps)

    def _tell(self, piece: DenseStep) -> None:
        start, end = float(self.keeper.times[0]), float(self.keeper.times[-1])
        passed = piece.end - start
        self.progress.at(passed / (end - start))

        def fastest() -> str:
            v, space = piece.at(piece.end)[1], self.system.model.space
            k = int(np.argmax(np.abs(v)))
            return f"{self.system.model.speed_names[k]!r} moves at {v[k]:.3g} {space.speed_units[k]}"

        self.pace.check(self.counters.steps, passed, end - start, fastest)

    def _span(self, end: float) -> None:
        """To the next instant at which something jumps, or to `end`."""
        system, model, schedule = self.system, self.system.model, self.schedule
        span_end, command, held = end, np.zeros(model.nv), np.zeros(model.nv)
        instant = self.n
        if schedule is not None:
            if self.span is None:
                schedule.update(self.n, self.t, self.q, self.v, system)
            command = schedule.command()
            instant = schedule.next_instant(self.n)
            span_end = min(end, self.origin + instant * self.tick)
        if self.span is None:
            self.span = EffortSpan(self.t, self.n, None if schedule is None else schedule.copy(), self.before)
        ramp = None
        breaks = np.union1d(system.loads.tables.breaks, system.feedback.breaks)
        if self.lags is not None and len(self.lags.ramps):
            ramp = Ramp(self.lags, self.span.t, self.span.before, command)
            breaks = np.unique(np.concatenate([breaks, ramp.ends]))
        later = breaks[np.searchsorted(breaks, self.t + 1e-12 * max(1.0, abs(self.t)), side="right") :]
        whole = not len(later) or later[0] >= span_end
        span_end = span_end if whole else float(later[0])
        within = (self.t + span_end) / 2
        system.feedback.until = span_end if len(system.feedback.breaks) else np.inf
        if self.lags is None and schedule is not None:
            held = command if system.drives is None else system.drives.saturate(command)
        if system.loads.tables.holds:
            held = held + system.loads.tables.held_efforts(within)
        held = np.where(system.prescribed, 0.0, held)
        effort = np.ascontiguousarray(system.loads.efforts + held)
        flow = Flow(system, effort, within, lags=self.lags, command=command, ramp=ramp)
        self.keeper.flow = flow
        states = np.zeros(0) if schedule is None else schedule.controller_states((), system)
        self.keeper.hold(self.t, held, flow if self.lags is not None else None, states)
        self._let_feel(flow, self.t, self.q, self.v, self.z)
        while self.t < span_end and not self.keeper.stopped:
            self._motion(flow, span_end)
        if self.lags is not None:
            self.before = flow.given(self.t, self.z, flow.asked(self.t, self.q, self.v, self.z))
        if flow.size:
            self._let_feel(flow, self.t, self.q, self.v, self.z)
        self.span = None
        if schedule is not None and whole:
            self.n = instant

    def _let_feel(self, flow: Flow, t: float, q: Array, v: Array, z: Array) -> None:
        """What is given as numbers at present, for reactions and accelerometers."""
        effort = flow.effort
        self.system.x = flow.x(z)
        if self.lags is not None:
            effort = effort + flow.given(t, z, flow.asked(t, q, v, z)) - self.system.command(t, q, v)
        self.system.effort = effort
        if self.schedule is not None:
            self.schedule.effort = effort

    def _felt(self, flow: Flow, piece: adaptive.DenseStep) -> adaptive.DenseStep:
        """A piece whose states let feel what drives and controllers give there."""
        if not flow.size:
            return piece

        def at(times: Any) -> tuple[Array, Array]:
            q, v = piece.at(times)
            if not np.ndim(times):
                self._let_feel(flow, float(times), q, v, piece.memory(times))
            return q, v

        return replace(piece, at=at)

    def _born(self, birth: Birth, record: int | None = None) -> None:
        assert self.span is not None
        self.keeper.mark(
            RestartPlace(
                len(self.keeper.time) if record is None else record,
                birth,
                self.span,
                self.watch.armed,
                self.system.topology,
            )
        )

    def _motion(self, flow: Flow, end: float) -> None:
        """To `end`, or to an event that changes the state or stops the run."""
        for piece in adaptive.pieces(
            self.name,
            flow,
            self.t,
            self.q,
            self.v,
            self.z,
            end,
            tolerance=self.settings.tolerance,
            absolute=self.settings.absolute_tolerance,
            counters=self.counters,
            born=self._born,
        ):
            self.jumps.look(self.name, flow, piece)
            if self.watch.events:
                changed = _events_in(self._felt(flow, piece), self.watch, self.keeper)
                if changed is not None:
                    self.t, self.q, self.v = changed
                    self.z = piece.memory(self.t)
                    if self.keeper.stopped:
                        self.watch.begin(self.t, self.q, self.v)
                        birth = Birth(
                            self.t, self.q, self.v, self.z, self.counters.step, self.counters.approach
                        )
                        self._born(birth, len(self.keeper.time) - 1)
                    return
            self.keeper.upto(piece.end, piece)
            self._tell(piece)
        self.t, self.z = end, piece.memory(end)
        self.q, self.v = flow.project(end, *piece.at(end))


def ticks(system: Simulation) -> tuple[Schedule | None, float]:
    """Sensors and sampled controllers on a grid that has all their instants."""
    if not (system.sampled or system.instruments):
        return None, 0.0
    tick = common_tick(system.sampled, system.instruments)
    return system.schedule(tick), tick


class AdaptiveKeeper:
    def __init__(self, times: Array, system: Simulation) -> None:
        self.times, self.system = times, system
        self.topologies = [(0, system.topology)]
        self.q: list[Array] = []
        self.v: list[Array] = []
        self.z: list[Array] = []
        self.time: list[float] = []
        self.exactly = system.constrained or system.prescribes
        """records go onto the surface of constraints, and follow prescribed motion, one by one: so their bits do not
        depend on how many there are"""
        self.held: list[tuple[float, Array, Flow | None, Array]] = []
        """from a time on: what is held, its flow where drives lag, and the states of sampled controllers"""
        self.flow: Flow | None = None
        self.account = Account(system)
        self.work: list[float] = []
        self.marks: list[RestartPlace] = []
        self.stopped = False

    def start(self, q: Array, v: Array, z: Array) -> None:
        """The state from which the run starts is its first record."""
        self.time, self.q, self.v, self.z = [float(self.times[0])], [q], [v], [z]
        self.work = [0.0]

    def hold(self, t: float, held: Array, flow: Flow | None, states: Array) -> None:
        self.held.append((t, held, flow, states))

    def mark(self, mark: RestartPlace) -> None:
        """Of the marks between two records only the last is needed."""
        if len(self.marks) > 1 and self.marks[-1].record == mark.record:
            self.marks.pop()
        self.marks.append(mark)

    def upto(self, end: float, piece: adaptive.DenseStep) -> None:
        """Records of the grid within a piece, up to a time."""
        assert self.flow is not None
        k = len(self.time)
        last = int(np.searchsorted(self.times, end * (1 + 1e-15) if end > 0 else end, side="right"))
        self.work += self.account.over(piece, self.flow, end, self.times[k:last])
        if last > k:
            times = np.minimum(self.times[k:last], piece.end)
            q, v = piece.at(times)
            self.time += self.times[k:last].tolist()
            self.z += list(piece.memory(times))
            if self.exactly:
                for t, x, y in zip(times.tolist(), q, v, strict=True):
                    x, y = self.flow.project(t, x, y)
                    self.q.append(x)
                    self.v.append(y)
            else:
                self.q += list(q)
                self.v += list(v)

    def switched(self) -> None:
        """Other constraints may hold from the next record on."""
        if self.system.topology is not self.topologies[-1][1]:
            self.topologies.append((len(self.time), self.system.topology))

    def stop(self, t: float, q: Array, v: Array, z: Array) -> None:
        self.stopped = True
        if not self.time or t > self.time[-1]:
            self.time.append(t)
            self.q.append(q)
            self.v.append(v)
            self.z.append(z)
            self.work.append(self.account.done)

    def cut(self, watch: EventSearch) -> bool:
        """Of a run that was interrupted, leave out what is there in part; whether anything is left beside the start."""
        lists: tuple[list[Any], ...] = (self.time, self.q, self.v, self.z, self.work)
        count = min(map(len, lists))
        for x in lists:
            del x[count:]
        self.marks = [x for x in self.marks if x.record <= count]
        self.topologies = [x for x in self.topologies if x[0] < count]
        watch.cut(count)
        return count > 1

    def _spans(self, time: Array) -> Array:
        """The number of the span of each record."""
        starts = np.array([t for t, *_ in self.held])
        late = time + 1e-12 * np.maximum(np.abs(time), 1.0)  # instants are multiples of another number
        return np.maximum(np.searchsorted(starts, late, side="right") - 1, 0)

    def finish(
        self, going: AdaptiveRun, name: str, reason: str, settings: Settings, *, after: float | None
    ) -> Run:
        """The run; of the log what came `after` the record from which it went on."""
        system, watch, lags = self.system, going.watch, going.lags
        events = [
            (event, record)
            for event, record in zip(watch.log, watch.records, strict=True)
            if after is None or event.time > after
        ]
        time, zs = np.array(self.time), np.array(self.z)
        qs, vs = np.array(self.q), np.array(self.v)
        spans = self._spans(time)
        drive_states = None
        held = np.array([x for _, x, _, _ in self.held])[spans]
        if lags is not None:
            rows = []
            for span, t, q, v, z in zip(spans, time.tolist(), qs, vs, zs, strict=True):
                flow = self.held[span][2]
                assert flow is not None
                rows.append(flow.given(t, z, flow.asked(t, q, v, z)))
            given = np.array(rows)
            drive_states = lags.unpacked(zs[..., : lags.size], given)
            held = held + given
        xs = zs[..., 0 if lags is None else lags.size :]
        efforts = recorded_efforts(system, time, qs, vs, held, xs, all_held=lags is not None)
        sampled = (
            np.array([x for _, _, _, x in self.held])[spans] if system.feedback.sampled_systems else xs[:, :0]
        )
        return Run(
            system.own,
            time,
            qs,
            vs,
            efforts,
            tuple(event for event, _ in events),
            name,
            reason,
            None,
            going.counters.steps,
            system,
            settings,
            tuple(self.marks),
            None,
            tuple(self.topologies),
            tuple(record for _, record in events),
            drive_states,
            {} if going.schedule is None else going.schedule.measurements(),
            np.array(self.work) - self.work[0] if self.account.is_kept else None,
            controller_states=np.concatenate([xs, sampled], axis=-1),
            passages=tuple(going.counters.passages),
        )


def _events_in(
    piece: adaptive.DenseStep, watch: EventSearch, keeper: AdaptiveKeeper
) -> tuple[float, Array, Array] | None:
    """Deal with the events of a piece; a changed state, or that of a stop, ends it early.

    They are looked for as closely as the piece is recorded: free motions are long pieces, in which all can come and go.
    """
    length = piece.end - piece.start
    records = int(np.count_nonzero((keeper.times > piece.start) & (keeper.times <= piece.end)))
    marks = np.linspace(piece.start, piece.end, 1 + min(max(4, records), 100))
    if watch.has_just_acted:  # short returns must not be missed
        near = piece.start + length * np.geomspace(1e-6, 0.1, 11)
        marks = np.concatenate([marks[:1], near, marks[1:]])
    t = piece.start
    for mark in marks[1:].tolist():
        while (found := watch.first(t, mark, piece.at, 1e-6 * length)) is not None:
            which, t = found
            keeper.upto(t, piece)
            q, v, stop, changed = watch.happen(which, t, *piece.at(t), len(keeper.time))
            keeper.switched()
            if stop:
                keeper.stop(t, q, v, piece.memory(t))
            if stop or changed:
                return t, q, v
        t = mark
    return None
