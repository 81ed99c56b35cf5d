"""What happens at instants: sensors measure, samples arrive, controllers are asked, their answers act.

At one instant all of it happens in this order, sensors and controllers each in the order in which they are given; so
that a run has one course, whatever its rates.

Where all sensors and sampled laws are expressions, the schedule is machine code (`CompiledSchedule`). It does what
`Schedule` does, in the same order, at the end of every step at which something is due: so the records of a run have what
is held from each of them on. All that is remembered is one part of the machine's state: biases that
walk, the newest samples and messages, those that are under way, states and efforts of controllers.

What is under way with a delay D from a source of period P stands in a row: each new sample moves the others on by one, and
what arrives is always the one in the same place, number floor(D/P), or ceil(D/P) - 1 for messages, which arrive before the
laws of their instant are asked.

Random numbers are drawn ahead, as they are for single samples, and given to the kernel for so many instants.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument
from alembert.errors import ArgumentError
from alembert.lowering.plan import Buffer, Call, Copy, Offset, Step, When
from alembert.simulate.controllers import (
    Batched,
    Sampled,
    ask_with_posts,
    check_answer,
    efforts_of,
    to_multiples,
)
from alembert.simulate.elements import Places, state_symbols
from alembert.simulate.sensors import Instrument, Measured, NewestSamples, SensorSamples

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


ROWS, ROWS_OF_ONE = 128, 1024
"""instants for which random numbers are drawn at a time, for batches and for one motion"""


@dataclass(frozen=True)
class InstantLaw:
    """A law at its instants: what it reads, posts and remembers; `function` as in `CompiledSchedule.law`."""

    rate: Rate
    """from the first instant on at which all that it reads has arrived"""
    reads: tuple[str, ...]
    posts: tuple[str, ...]
    acts: bool
    """whether it gives efforts"""
    memory: int
    quantum: float
    function: ca.Function


class CompiledSchedule:
    """The schedule of a run as a part of its machine's state (`size` numbers) and as steps of a plan."""

    def __init__(self, system: Simulation, schedule: Schedule) -> None:
        model = system.model
        self.system, self.model = system, model
        self.instruments = schedule.instruments
        count = len(self.instruments)
        self.sampling, rates = schedule.rates[:count], schedule.rates[count:]
        self._symbols = state_symbols(model)
        self._places = Places(model, *self._symbols)
        self.asked = [self._asked(k, rate) for k, rate in enumerate(rates)]
        self.first_values = {name: x for law in schedule.controllers for name, x in law.posts.items()}
        sizes: dict[str, int] = {}
        for k, law in enumerate(self.asked):
            if law.acts:
                sizes[f"held{k}"] = model.nv
        self.acting = len(sizes)
        for k, (instrument, rate) in enumerate(zip(self.instruments, self.sampling, strict=True)):
            assert instrument.entries is not None
            if instrument.drawn[1]:
                sizes[f"walk{k}"] = instrument.width
            for j in range(rate.delay // rate.period + 1):
                sizes[f"sample{k}_{j}"] = instrument.entries
            if rate.delay:
                sizes[f"reading:{instrument.name}"] = instrument.entries
        for k, law in enumerate(self.asked):
            for name in law.posts:
                sizes[f"reading:{name}"] = self.first_values[name].size
                for j in range(-(-law.rate.delay // law.rate.period)):
                    sizes[f"posted:{name}_{j}"] = self.first_values[name].size
            if law.acts and law.rate.delay:
                for j in range(law.rate.delay // law.rate.period + 1):
                    sizes[f"effort{k}_{j}"] = model.nv
            if law.memory:
                sizes[f"memory{k}"] = law.memory
        ends = np.cumsum([0, *sizes.values()]).tolist()
        self.parts = {name: slice(ends[k], ends[k + 1]) for k, name in enumerate(sizes)}
        self.size: int = ends[-1]
        every = [x for rate in schedule.rates for x in (rate.period, rate.offset, rate.delay) if x]
        self.tick = int(np.gcd.reduce([*every, *(law.rate.offset for law in self.asked if law.rate.offset)]))
        """steps of which all instants are multiples"""
        self.drawn = sum(sum(x.drawn) for x in self.instruments)

    # --- laws -------------------------------------------------------------------------------------------------------

    def _asked(self, k: int, rate: Rate) -> InstantLaw:
        """function(t, q, v, p, memory, *reads) gives efforts (if it acts), what it posts, and its next memory."""
        system = self.system
        given = system.sampled[k]
        t, q, v, p = self._symbols
        memory, acts, posts = ca.SX(0, 1), True, tuple(given.posts)
        sizes = {x.name: x.entries or 0 for x in self.instruments}
        sizes |= {name: x.size for law in system.sampled for name, x in law.posts.items()}
        own, bound = system.feedback.sampled_systems.get(k), system.bound_laws.get(k)
        reads = given.reads if own is None else tuple(own.reads)
        read = [ca.SX.sym(name, sizes[name]) for name in reads]
        if own is not None:
            memory = ca.SX.sym("memory", own.size)
            u, following = own.function(t, q, v, memory, p, ca.vertcat(ca.SX(0, 1), *read))
            results = [u, *([following] if own.size else [])]
        elif bound is not None:
            found = bound.function(t, q, v, p, *read)
            named = dict(zip(bound.names, found if isinstance(found, tuple) else (found,), strict=True))
            acts = "efforts" in named
            results = [*([named["efforts"]] if acts else []), *(named[name] for name in posts)]
        else:
            law = given.law if given.law.is_a("SXFunction") else given.law.expand()
            results = [law(t, *(read if reads else (q, v)))]
        if acts:
            free = 1.0 - np.asarray(system.prescribed, dtype=float)
            u = to_multiples(ca.SX(results[0]), given.quantum)
            results[0] = u * ca.DM(free)  # a joint that follows a motion takes no command
        ready = [
            r.offset + r.delay
            for x, r in zip(self.instruments, self.sampling, strict=True)
            if x.name in reads
        ]
        late = max([rate.offset, *ready])
        first = rate.offset + -(-(late - rate.offset) // rate.period) * rate.period
        inputs = [t, q, v, p, memory, *read]
        function = ca.Function("law", inputs, [ca.densify(ca.SX(x)) for x in results])
        return InstantLaw(
            Rate(rate.period, rate.delay, first),
            reads,
            posts,
            acts,
            memory.numel(),
            given.quantum,
            function,
        )

    def _sample(self, instrument: Instrument) -> ca.Function:
        """function(t, q, v, p, walk, drawn) gives a sample, and the next walk where it has one."""
        walk = ca.SX.sym("walk", instrument.width if instrument.drawn[1] else 0)
        drawn = ca.SX.sym("drawn", sum(instrument.drawn))
        n, m, c = instrument.drawn
        error = ca.SX(ca.DM(instrument.bias))
        results = []
        if m:
            error = error + walk
            pace = instrument.walk * np.sqrt(instrument.given.period)
            results = [walk + ca.DM(pace) * drawn[n : n + m]]
        if n:
            error = error + ca.DM(instrument.noise) * drawn[:n]
        y = instrument.expression(self._places, error, drawn[n + m] if c else ca.SX(1.0))
        given = [*self._symbols, walk, drawn]
        return ca.Function("sample", given, [ca.densify(x) for x in (y, *results)])

    # --- the plan ---------------------------------------------------------------------------------------------------

    @property
    def arguments(self) -> list[Argument]:
        if not self.drawn:
            return []
        return [Argument("draws", (self.rows * self.drawn,)), Argument("first_row", (1,))]

    @property
    def rows(self) -> int:
        """Instants whose random numbers a kernel is given at a time."""
        return ROWS if self.system.batch else ROWS_OF_ONE

    def at(self, part: str, state: str, start: int) -> Offset:
        """A part in a buffer whose part of what is remembered begins at `start`."""
        return Offset(state, start + self.parts[part].start)

    @cached_property
    def functions(self) -> dict[str, ca.Function]:
        """Of the instants themselves, of samples and of laws."""
        found = {"instants": self._due}
        found |= {f"sample{k}": self._sample(x) for k, x in enumerate(self.instruments)}
        found |= {f"asked{k}": law.function for k, law in enumerate(self.asked)}
        return found

    @cached_property
    def key(self) -> str:
        texts = [f"{name}:{f.serialize()}" for name, f in self.functions.items()]
        texts.append(
            repr((self.rows, self.parts, self.sampling, [(x.rate, x.reads, x.posts) for x in self.asked]))
        )
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()

    def _flags(self) -> dict[str, tuple[int, int]]:
        """First step and period of all that happens, by name; what happens at every tick has no flag."""
        found = {}
        for k, rate in enumerate(self.sampling):
            found[f"sample{k}"] = (rate.offset, rate.period)
            if rate.delay:
                found[f"arrive{k}"] = (rate.offset + rate.delay, rate.period)
        for k, law in enumerate(self.asked):
            found[f"asked{k}"] = (law.rate.offset, law.rate.period)
            if law.rate.delay:
                found[f"answer{k}"] = (law.rate.offset + law.rate.delay, law.rate.period)
        return {name: x for name, x in found.items() if x != (0, self.tick)}

    @cached_property
    def _due(self) -> ca.Function:
        """(number, start, step, first row) -> whether there is an instant, the time, the row of draws, and all flags."""
        n, start, step, first = (ca.SX.sym(x) for x in ("n", "start", "step", "first_row"))

        def due(begin: int, period: int) -> ca.SX:
            count = (n - begin) / period
            return ca.if_else(n >= begin, ca.floor(count) == count, 0)

        row = n / self.tick - first if self.drawn else ca.SX(0)
        flags = ca.vertcat(ca.SX(0, 1), *(due(*x) for x in self._flags().values()))
        results = [due(0, self.tick), start + n * step, row, flags]
        inputs = [n, start, step, *([first] if self.drawn else [])]
        return ca.Function("instants", inputs, [ca.densify(x) for x in results if x.numel()])

    @property
    def temporaries(self) -> dict[str, int]:
        sizes = {
            "is_instant": 1,
            "t_now": 1,
            "row": 1,
            "due": max(1, len(self._flags())),
            "drawn": self.drawn,
        }
        for k, instrument in enumerate(self.instruments):
            if instrument.drawn[1]:
                sizes[f"walked{k}"] = instrument.width
        for k, law in enumerate(self.asked):
            for name in law.posts:
                sizes[f"answer{k}:{name}"] = self.first_values[name].size
            if law.memory:
                sizes[f"remembered{k}"] = law.memory
        return sizes

    @property
    def sources(self) -> dict[str, KernelSource]:
        """Inputs of no size are left out."""
        found: dict[str, KernelSource] = {}
        for name, f in self.functions.items():
            symbols = [ca.SX.sym(f.name_in(k), f.numel_in(k)) for k in range(f.n_in())]
            results = f.call(symbols)
            found[name] = FunctionSource(ca.Function(name, [x for x in symbols if x.numel()], results))
        return found

    def steps(
        self, state: str, q: int, v: int, remembered: int, *, parameters: str = "parameters"
    ) -> list[Step]:
        """On a buffer with the state at the end of a step; q, v and this part begin where it says."""
        flags = {name: Offset("due", k) for k, name in enumerate(self._flags())}

        def when(name: str, steps: list[Step]) -> list[Step]:
            return [When(flags[name], steps)] if name in flags else steps

        def at(part: str) -> Offset:
            return self.at(part, state, remembered)

        def move_on(label: str, count: int) -> list[Step]:
            return [
                self._copy(at(f"{label}_{j - 1}"), at(f"{label}_{j}"), f"{label}_{j}")
                for j in range(count - 1, 0, -1)
            ]

        constants = [parameters] if self.model.parameters else []
        known: list[Buffer] = ["t_now", Offset(state, q), Offset(state, v), *constants]
        inside: list[Step] = []
        if self.drawn:
            inside.append(Copy("draws", "drawn", self.drawn, row="row"))
        place = 0
        for k, (instrument, rate) in enumerate(zip(self.instruments, self.sampling, strict=True)):
            walks, count = bool(instrument.drawn[1]), sum(instrument.drawn)
            given = [
                *known,
                *([at(f"walk{k}")] if walks else []),
                *([Offset("drawn", place)] if count else []),
            ]
            results: list[Buffer] = [at(f"sample{k}_0"), *([f"walked{k}"] if walks else [])]
            todo = [*move_on(f"sample{k}", rate.delay // rate.period + 1), Call(f"sample{k}", given, results)]
            if walks:
                todo.append(Copy(f"walked{k}", at(f"walk{k}"), instrument.width))
            inside += when(f"sample{k}", todo)
            place += count
        for k, (instrument, rate) in enumerate(zip(self.instruments, self.sampling, strict=True)):
            if rate.delay:
                reading = f"reading:{instrument.name}"
                newest = at(f"sample{k}_{rate.delay // rate.period}")
                inside += when(f"arrive{k}", [self._copy(newest, at(reading), reading)])
        for k, law in enumerate(self.asked):
            if law.rate.delay and law.posts:
                last = -(-law.rate.delay // law.rate.period) - 1
                inside += when(
                    f"answer{k}",
                    [
                        self._copy(at(f"posted:{name}_{last}"), at(f"reading:{name}"), f"reading:{name}")
                        for name in law.posts
                    ],
                )
        for k, law in enumerate(self.asked):
            inside += when(f"asked{k}", self._ask(k, law, known, at, move_on))
        for k, law in enumerate(self.asked):
            if law.rate.delay and law.acts:
                oldest = at(f"effort{k}_{law.rate.delay // law.rate.period}")
                inside += when(f"answer{k}", [self._copy(oldest, at(f"held{k}"), f"held{k}")])
        given = [Offset(state, 0), "start", "step", *(["first_row"] if self.drawn else [])]
        found = ["is_instant", "t_now", "row", *(["due"] if flags else [])]
        return [Call("instants", given, found), *([When("is_instant", inside)] if self.tick > 1 else inside)]

    def _ask(self, k: int, law: InstantLaw, known: list[Any], at: Any, move_on: Any) -> list[Step]:
        given = [*known, *([at(f"memory{k}")] if law.memory else [])]
        for name in law.reads:
            sensor = next((i for i, x in enumerate(self.instruments) if x.name == name), None)
            at_once = sensor is not None and not self.sampling[sensor].delay
            given.append(at(f"sample{sensor}_0" if at_once else f"reading:{name}"))
        results: list[Any] = [f"answer{k}:{name}" for name in law.posts]
        todo: list[Step] = []
        if law.acts:
            if law.rate.delay:
                todo += move_on(f"effort{k}", law.rate.delay // law.rate.period + 1)
            results.insert(0, at(f"effort{k}_0" if law.rate.delay else f"held{k}"))
        if law.memory:
            results.append(f"remembered{k}")
        todo.append(Call(f"asked{k}", given, results))
        for name in law.posts:
            count = -(-law.rate.delay // law.rate.period)
            todo += move_on(f"posted:{name}", count)
            target = f"posted:{name}_0" if count else f"reading:{name}"
            todo.append(self._copy(f"answer{k}:{name}", at(target), target))
        if law.memory:
            todo.append(Copy(f"remembered{k}", at(f"memory{k}"), law.memory))
        return todo

    def _copy(self, source: Any, target: Any, part: str) -> Copy:
        s = self.parts[part]
        return Copy(source, target, s.stop - s.start)

    def total(self) -> ca.Function:
        """(effort, held efforts) -> all efforts."""
        effort, held = ca.SX.sym("effort", self.model.nv), ca.SX.sym("held", self.acting * self.model.nv)
        return ca.Function("total", [effort, held], [effort + ca.sum2(ca.reshape(held, self.model.nv, -1))])

    # --- numbers ----------------------------------------------------------------------------------------------------

    def start(self, batch: tuple[int, ...]) -> Array:
        """Before the first instant."""
        found = np.zeros((*batch, self.size))
        for name, x in self.first_values.items():
            for part, s in self.parts.items():
                if part == f"reading:{name}" or part.rpartition("_")[0] == f"posted:{name}":
                    found[..., s] = x
        for k, own in self.system.feedback.sampled_systems.items():
            if own.size:
                found[..., self.parts[f"memory{k}"]] = own.controller.initial()
        return found

    def draws(self, n: int) -> list[Array]:
        """The random numbers of the instants after step n, (*batch, ROWS drawn), and the row of the first."""
        if not self.drawn:
            return []
        batch = self.system.batch
        first = n // self.tick + 1
        found = np.zeros((*batch, self.rows, self.drawn))
        place = 0
        for instrument, rate in zip(self.instruments, self.sampling, strict=True):
            width = sum(instrument.drawn)
            count = max(0, -(-(first * self.tick - rate.offset) // rate.period))
            row = (rate.offset + count * rate.period) // self.tick - first
            rows = range(row, self.rows, rate.period // self.tick)
            if width and len(rows):
                found[..., rows.start :: rows.step, place : place + width] = instrument.drawn_from(
                    count, len(rows), batch
                )
            place += width
        return [found.reshape(*batch, -1), np.array([float(first)])]

    def held(self, remembered: Array) -> Array:
        """(..., nv): what is held, of states (..., size)."""
        nv = self.model.nv
        return (
            remembered[..., : self.acting * nv].reshape(*remembered.shape[:-1], self.acting, nv).sum(axis=-2)
        )

    def memories(self, remembered: Array) -> Array:
        """(..., states): of sampled controllers that have some, one after the other."""
        parts = [
            remembered[..., self.parts[f"memory{k}"]]
            for k, own in self.system.feedback.sampled_systems.items()
            if own.size
        ]
        return np.concatenate([np.zeros((*remembered.shape[:-1], 0)), *parts], axis=-1)

    def readings(self, remembered: Array) -> dict[str, Array]:
        """What has arrived, and what has been posted, of one state (size,)."""
        found = {x.name: remembered[self.parts[f"sample{k}_0"]] for k, x in enumerate(self.instruments)}
        return found | {
            part.removeprefix("reading:"): remembered[s]
            for part, s in self.parts.items()
            if part.startswith("reading:")
        }

    def measurements(
        self, numbers: Array, remembered: Array, start: float, h: float
    ) -> dict[str, SensorSamples]:
        """The newest samples and messages at each record (..., N, size): all of them where records are not further apart."""
        found: dict[str, SensorSamples] = {}
        taken: dict[str, int] = {}

        def keep(name: str, rate: Rate, part: str) -> None:
            found[name] = self._newest(rate, part, numbers, remembered, start, h)
            first = int(numbers[0])
            count = rate.count(int(numbers[-1])) - (rate.count(first) if first > rate.offset else 0) + 1
            if len(found[name].time) < count:
                taken[name] = count

        for k, (instrument, rate) in enumerate(zip(self.instruments, self.sampling, strict=True)):
            keep(instrument.name, rate, f"sample{k}_0")
        for law in self.asked:
            for name in law.posts:
                keep(name, law.rate, f"posted:{name}_0" if law.rate.delay else f"reading:{name}")
        return NewestSamples(found, taken, float(np.diff(numbers).max(initial=0.0)) * h) if taken else found

    def _newest(
        self, rate: Rate, part: str, numbers: Array, remembered: Array, start: float, h: float
    ) -> SensorSamples:
        rows = np.flatnonzero(numbers >= rate.offset)
        count = (numbers[rows] - rate.offset) // rate.period
        new = np.flatnonzero(np.diff(count, prepend=-1.0))
        values = remembered[..., rows[new], self.parts[part]]
        return SensorSamples(
            start + (rate.offset + count[new] * rate.period) * h, np.ascontiguousarray(values)
        )

    def explain(self, t: float, q: Array, v: Array, remembered: Array) -> None:
        """Raise what a law has to say on a state after which the motion was not finite."""
        readings = self.readings(remembered)
        for k in self.system.bound_laws:
            given = self.system.sampled[k]
            if given.law.check is not None:
                given.law.check(t, {name: readings[name] for name in given.reads}, q, v)


def asked_in_python(system: Simulation, events: Sequence[Any]) -> str | None:
    """Why sensors and laws are asked in Python between explicit fixed steps; None: they are not."""
    if not system.bound_laws:
        return "no law is a SymbolicLaw"
    if events:
        return f"there is an event ({events[0].name!r})"
    if system.constrained and not system.compiles:
        return "steps of these loops are not in machine code"
    if system.drives is not None:
        return "there are drives"
    if system.python or system.loads.wrench_laws:
        return "something that acts is a Python function"
    for k, law in enumerate(system.sampled):
        known = k in system.bound_laws or k in system.feedback.sampled_systems
        if not (known or isinstance(law.law, ca.Function)):
            return f"the law {getattr(law.law, 'name', None) or law.law!r} is a Python function"
    for instrument in system.instruments:
        if not instrument.is_symbolic:
            return f"the sensor {instrument.name!r} is no expression of the state"
    return None


def compiled_schedule(
    system: Simulation, schedule: Schedule, events: Sequence[Any]
) -> CompiledSchedule | None:
    """Where a run with explicit fixed steps goes from instant to instant in machine code."""
    return CompiledSchedule(system, schedule) if asked_in_python(system, events) is None else None
