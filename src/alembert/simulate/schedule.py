"""What happens at instants: sensors measure, samples arrive, controllers are asked, their answers act.

At one instant all of it happens in this order, sensors and controllers each in the order in which they are given; so
that a run has one course, whatever its rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.errors import ArgumentError
from alembert.simulate.controllers import (
    Batched,
    Sampled,
    ask_with_posts,
    check_answer,
    efforts_of,
    to_multiples,
)
from alembert.simulate.sensors import Instrument, Measured, SensorSamples

if TYPE_CHECKING:
    from alembert.simulate.simulation import Simulation

Array = np.ndarray


@dataclass(frozen=True)
class Rate:
    """Instants in numbers of ticks."""

    period: int
    delay: int
    offset: int

    def due(self, n: int) -> bool:
        return n >= self.offset and (n - self.offset) % self.period == 0

    def count(self, n: int) -> int:
        return (n - self.offset) // self.period

    def next(self, n: int) -> int:
        return self.offset if n < self.offset else n + self.period - (n - self.offset) % self.period


@dataclass
class Schedule:
    """The sensors and sampled controllers of a run on its grid of instants; what is held at present is its state."""

    controllers: tuple[Sampled, ...]
    instruments: tuple[Instrument, ...]
    rates: tuple[Rate, ...]
    """of instruments, then of controllers"""
    held: list[Array] = field(default_factory=list)
    """what each controller gives"""
    walks: list[Array] = field(default_factory=list)
    readings: dict[str, Array] = field(default_factory=dict)
    """the newest sample of each sensor that has arrived"""
    pending: list[tuple[int, int, Any]] = field(default_factory=list)
    """(instant, who, sample or answer) still to come, by time; who as in `rates`"""
    asked: int = -1
    """the last instant that has been dealt with"""
    effort: Array | None = None
    """all efforts given as numbers up to now: what an accelerometer feels"""
    states: dict[int, Array] = field(default_factory=dict)
    """of controllers that have some, by their numbers"""
    log: list[tuple[int, float, Array]] = field(default_factory=list)
    """samples of this run, (sensor, time, value): a record, not a part of the state"""
    messages: list[tuple[str, float, Array]] = field(default_factory=list)
    """what controllers posted in this run, likewise"""

    def copy(self) -> Schedule:
        return replace(
            self,
            held=list(self.held),
            walks=list(self.walks),
            readings=dict(self.readings),
            pending=list(self.pending),
            states=dict(self.states),
        )

    @classmethod
    def on_grid(cls, controllers: Sequence[Sampled], instruments: Sequence[Instrument], h: float) -> Schedule:
        def steps(value: float, name: str, who: str) -> int:
            count = round(value / h)
            off = abs(value - count * h) > 1e-9 * max(value, h)
            if off or (name == "period" and not count):
                raise ArgumentError(
                    f"simulate: {who} has {name} {value:g} s, expected a multiple of the step {h:g} s"
                )
            return count

        given: list[tuple[Measured | Sampled, str]] = [(x.given, f"sensor {x.name!r}") for x in instruments]
        given += [(x, "a sampled controller") for x in controllers]
        rates = [
            Rate(
                steps(x.period, "period", who),
                steps(x.delay, "delay", who),
                steps(x.offset, "offset", who),
            )
            for x, who in given
        ]
        return cls(tuple(controllers), tuple(instruments), tuple(rates))

    def next_instant(self, n: int) -> int:
        """The first instant after n at which something happens."""
        found = [self.pending[0][0]] if self.pending else []
        found += [rate.next(n) for rate in self.rates]
        return min((k for k in found if k > n), default=n + 2**40)

    def update(self, n: int, t: float, q: Array, v: Array, system: Simulation) -> None:
        """All that happens at instant n, at time t."""
        if len(self.held) + len(self.walks) < len(self.rates):
            self.held = [np.zeros(system.model.nv) for _ in self.controllers]
            self.walks = [np.zeros(x.width) for x in self.instruments]
            for controller in self.controllers:
                for name, value in controller.posts.items():
                    self.readings.setdefault(name, value)
            self._start_states(q.shape[:-1], system)
        if n <= self.asked:
            return
        self.asked = n
        first = len(self.instruments)
        for k, instrument in enumerate(self.instruments):
            if self.rates[k].due(n):
                sample = self._sample(k, instrument, self.rates[k].count(n), t, q, v, system)
                self.pending.append((n + self.rates[k].delay, k, sample))
        self._arrive(n, lambda who: who < first)
        self._receive(n)
        for k, controller in enumerate(self.controllers):
            rate = self.rates[first + k]
            own = system.feedback.sampled_systems.get(k)
            reads = controller.reads if own is None else own.reads
            if rate.due(n) and all(name in self.readings for name in reads):
                given: tuple[Any, ...] = (q, v)
                posted: dict[str, Array] = {}
                bound = system.bound_laws.get(k)
                p = system.parameter_array() if system.model.parameters else np.zeros(0)
                if bound is not None:
                    effort, posted = bound.ask(t, self.readings, q, v, p)
                elif own is None and (controller.posts or controller.state):
                    effort, posted = ask_with_posts(system.model, controller, t, self.readings, q, v, p)
                elif own is not None:
                    effort, self.states[k] = own.sample(t, q, v, self.states[k], p, self.readings)
                else:
                    if reads:
                        given = ({name: self.readings[name].copy() for name in reads},)
                    law = controller.law if isinstance(controller.law, Batched) else controller.ask
                    effort = efforts_of(
                        system.model, law, t, *given, batch=q.shape[:-1], who="a sampled controller"
                    )
                check_answer(system.model, "a sampled controller", t, q, v, effort)
                effort = to_multiples(effort, controller.quantum)
                self.pending.append((n + rate.delay, first + k, effort))
                if posted:
                    self._post(n + rate.delay, n, first + k, t, posted)
        self._arrive(n, lambda who: who >= first)

    def _post(self, due: int, n: int, who: int, t: float, posted: dict[str, Array]) -> None:
        """Messages of a controller: at once for those that come after it, or later."""
        self.messages += [(name, t, value) for name, value in posted.items()]
        if due <= n:
            self.readings.update(posted)
        else:
            self.pending.append((due, who, posted))

    def _start_states(self, batch: tuple[int, ...], system: Simulation) -> None:
        for k, own in system.feedback.sampled_systems.items():
            if k not in self.states:
                self.states[k] = np.array(np.broadcast_to(own.controller.initial(), (*batch, own.size)))

    def controller_states(self, batch: tuple[int, ...], system: Simulation) -> Array:
        """(*batch, states): of all sampled controllers that have some, one after the other."""
        self._start_states(batch, system)
        parts = [self.states[k] for k in system.feedback.sampled_systems]
        return np.concatenate([np.zeros((*batch, 0)), *parts], axis=-1)

    def _sample(
        self, k: int, instrument: Instrument, count: int, t: float, q: Array, v: Array, system: Simulation
    ) -> Array:
        noise, step, chance = instrument.draws(count, system.batch)
        error = instrument.bias + self.walks[k] + instrument.noise * noise
        self.walks[k] = self.walks[k] + instrument.walk * math.sqrt(instrument.given.period) * step
        effort = system.loads.efforts if self.effort is None else self.effort
        value = instrument.measure(system, t, q, v, effort, error, chance)
        self.log.append((k, t, value))
        return value

    def _receive(self, n: int) -> None:
        """Messages that were posted with a delay."""
        for instant, _, value in sorted(self.pending, key=lambda entry: entry[:2]):
            if instant <= n and isinstance(value, Mapping):
                self.readings.update(value)
        self.pending = [x for x in self.pending if x[0] > n or not isinstance(x[2], Mapping)]

    def _arrive(self, n: int, mine: Any) -> None:
        self.pending.sort(key=lambda entry: entry[:2])
        waiting = []
        for entry in self.pending:
            instant, who, value = entry
            if instant > n or not mine(who):
                waiting.append(entry)
            elif who < len(self.instruments):
                self.readings[self.instruments[who].name] = value
            else:
                self.held[who - len(self.instruments)] = value
        self.pending = waiting

    def command(self) -> Array:
        return sum(self.held[1:], self.held[0]) if self.held else np.zeros(1)

    def measurements(self) -> dict[str, SensorSamples]:
        found = {}
        for k, instrument in enumerate(self.instruments):
            rows = [(t, value) for who, t, value in self.log if who == k]
            values = np.stack([x for _, x in rows], axis=-2) if rows else np.zeros((0, 0))
            found[instrument.name] = SensorSamples(np.array([t for t, _ in rows]), values)
        for name in dict.fromkeys(name for name, _, _ in self.messages):
            told = [(t, value) for other, t, value in self.messages if other == name]
            values = np.stack([x for _, x in told], axis=-2)
            found[name] = SensorSamples(np.array([t for t, _ in told]), values)
        return found


def common_tick(controllers: Sequence[Sampled], instruments: Sequence[Instrument]) -> float:
    """The longest interval of which all periods, delays and offsets are multiples."""
    given: list[Measured | Sampled] = [*(x.given for x in instruments), *controllers]
    values = [x for c in given for x in (c.period, c.delay, c.offset) if x > 0]
    return common_part(values)


def common_part(values: Sequence[float]) -> float:
    """The longest time of which all are multiples."""
    fractions = [Fraction(x).limit_denominator(10**9) for x in values]
    common = math.lcm(*(x.denominator for x in fractions))
    found = math.gcd(*(int(x * common) for x in fractions)) / common
    if not found:
        raise ArgumentError(f"simulate: instants are {max(values):g} s apart, expected a nanosecond or more")
    return found
