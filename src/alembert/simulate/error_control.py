"""A run with error control: pieces of dense output between the instants of sampled controllers and events."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from alembert.errors import UnsupportedError
from alembert.simulate import adaptive
from alembert.simulate.events import Watch
from alembert.simulate.progress import Progress
from alembert.simulate.records import recorded_efforts
from alembert.simulate.result import Run
from alembert.simulate.schedule import Schedule, common_tick
from alembert.simulate.system import System
from alembert.simulate.topology import Topology

Array = np.ndarray
RECORDS_OF_ADAPTIVE = 1000


def run_adaptive(
    system: System, q: Array, v: Array, name: str, reason: str, options: Mapping[str, Any]
) -> Run:
    if name == "ida" and (system.constrained or np.any(system.prescribed)):
        what = "a model with loops or couplings" if system.constrained else "prescribed motion"
        raise UnsupportedError(
            f"simulate: integrator 'ida' and {what} do not go together; choose 'cvode' or 'radau'"
        )
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
    keeper = AdaptiveKeeper(times, q, v, system)
    watch = Watch(options["events"], system)
    schedule, tick = _ticks(system)
    breaks = system.feeds.breaks
    counters = adaptive.Counters()
    t, n = start, 0
    q, v = system.imposed(t, q, v)
    watch.begin(t, q, v)
    with Progress(f"simulating {model.name}", shown=options["progress"]) as progress:
        while t < end and not keeper.stopped:
            held, span_end = np.zeros(model.nv), end
            if schedule is not None:
                schedule.update(n, t, q, v, system)
                held = schedule.command()
                held = held if system.drives is None else system.drives.saturate(held)
                following = schedule.next_instant(n)
                span_end = min(end, start + following * tick)
            later = breaks[np.searchsorted(breaks, t + 1e-12 * max(1.0, abs(t)), side="right") :]
            whole = not len(later) or later[0] >= span_end
            span_end = span_end if whole else float(later[0])
            within = (t + span_end) / 2
            if system.feeds.holds:
                held = held + system.feeds.held_efforts(within)
            held = np.where(system.prescribed, 0.0, held)
            effort = np.ascontiguousarray(system.efforts + held)
            keeper.hold(t, held)
            system.effort = effort
            if schedule is not None:
                schedule.effort = effort
            while t < span_end and not keeper.stopped:
                t, q, v = _span(
                    system, name, t, q, v, span_end, effort, within, watch, keeper, counters, options
                )
                progress.at((t - start) / duration)
            if schedule is not None and whole:
                n = following
    time, qs, vs, held_records = keeper.arrays()
    qs, vs = _projected(system, keeper.topologies, *_imposed_all(system, time, qs, vs))
    efforts = recorded_efforts(system, time, qs, vs, held_records)
    kept = None
    if held_records is not None:
        parts = np.sum(held_records[:-1] * model.difference(qs[:-1], qs[1:]), axis=-1)
        kept = held_records, np.r_[0.0, np.cumsum(parts)]
    return Run(
        system.own,
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
        tuple(keeper.topologies),
        tuple(watch.records),
        None,
        {} if schedule is None else schedule.measurements(),
    )


def _projected(
    system: System, topologies: Sequence[tuple[int, Topology]], q: Array, v: Array
) -> tuple[Array, Array]:
    """Records on the surface of what holds at each of them."""
    if not system.constrained:
        return q, v
    last = system.topology
    ends = [*(first for first, _ in topologies[1:]), len(q)]
    for (first, topology), end in zip(topologies, ends, strict=True):
        if end > first:
            system.topology = topology
            q[first:end], v[first:end] = system.project(q[first:end], v[first:end])
    system.topology = last
    return q, v


def _imposed_all(system: System, time: Array, q: Array, v: Array) -> tuple[Array, Array]:
    if not np.any(system.prescribed):
        return q, v
    pairs = [system.imposed(float(t), x, y) for t, x, y in zip(time, q, v, strict=True)]
    return np.array([x for x, _ in pairs]), np.array([y for _, y in pairs])


def _ticks(system: System) -> tuple[Schedule | None, float]:
    """Sensors and sampled controllers on a grid that has all their instants."""
    if not (system.sampled or system.instruments):
        return None, 0.0
    tick = common_tick(system.sampled, system.instruments)
    return system.schedule(tick), tick


class AdaptiveKeeper:
    def __init__(self, times: Array, q: Array, v: Array, system: System) -> None:
        self.times, self.system = times, system
        self.topologies = [(0, system.topology)]
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

    def switched(self) -> None:
        """Other constraints may hold from the next record on."""
        if self.system.topology is not self.topologies[-1][1]:
            self.topologies.append((len(self.time), self.system.topology))

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
        held = np.array([x for _, x in self.held])[index] if any(np.any(x) for _, x in self.held) else None
        return time, np.array(self.q), np.array(self.v), held


def _span(
    system: System,
    name: str,
    t: float,
    q: Array,
    v: Array,
    end: float,
    effort: Array,
    within: float,
    watch: Watch,
    keeper: AdaptiveKeeper,
    counters: adaptive.Counters,
    options: Mapping[str, Any],
) -> tuple[float, Array, Array]:
    """From t to `end`, or to an event that changes the state or stops the run."""
    model = system.model

    def slope(t: float, q: Array, v: Array) -> Array:
        return system.point(t, q, v, effort, within=within).a

    def slopes(t: float, q: Array, v: Array) -> tuple[Array, Array]:
        d = system.derivatives(t, q, v, system.all_efforts(t, q, v, effort), within)
        found = system.slopes(t, q, v)
        if found is None:
            return d.dq, d.dv
        return d.dq + d.dtau @ found[0], d.dv + d.dtau @ found[1]

    def balance(t: float, q: Array, v: Array, a: Array) -> Array:
        given = system.wrenches_at(t, q, v, within)
        required = model.inverse_dynamics(q, v, a, wrenches=given, parameters=system.parameters)
        return required - system.all_efforts(t, q, v, effort)

    def balance_slopes(t: float, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        given = system.wrenches_at(t, q, v, within)
        d = model.inverse_dynamics_derivatives(q, v, a, wrenches=given, parameters=system.parameters)
        found = system.slopes(t, q, v)
        if found is None:
            return d.dq, d.dv, d.da
        return d.dq - found[0], d.dv - found[1], d.da

    exact = not (system.laws or system.wrench_laws or system.motions or np.any(system.prescribed))
    surface = (
        adaptive.Surface(system.settled, system.distance)
        if system.constrained and system.stabilisation.method == "projection"
        else None
    )
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
        balance=adaptive.Balance(balance, balance_slopes if exact else None),
        surface=surface,
    ):
        changed = _events_in(piece, watch, keeper) if watch.events else None
        if changed is not None:
            return changed
        keeper.upto(piece.end, piece)
    return end, *system.settled(end, *piece.at(end))


def _events_in(
    piece: adaptive.Piece, watch: Watch, keeper: AdaptiveKeeper
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
            q1, v1, stop, changed = watch.happen(k, t, q, v)
            watch.records.append(len(keeper.time))
            keeper.switched()
            if stop:
                keeper.stop(t, q1, v1)
                return t, q1, v1
            if changed:
                watch.left = k
                return t, q1, v1
            ahead = min(mark - t, max(4 * watch.events[k].tolerance, 1e-6 * length))
            watch.settle(k, t, piece.at, ahead, changed=False)
            t += ahead
        t = mark
    return None
