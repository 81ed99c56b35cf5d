"""What happens at instants, in machine code: a schedule whose sensors and sampled laws are all expressions.

It does what `alembert.simulate.schedule` does, in the same order, at the end of every step at which something is due: so the
records of a run have what is held from each of them on. All that is remembered is one part of the machine's state: biases
that walk, the newest samples and messages, those that are under way, states and efforts of controllers.

What is under way with a delay D from a source of period P stands in a row: each new sample moves the others on by one, and
what arrives is always the one in the same place, number floor(D/P), or ceil(D/P) - 1 for messages, which arrive before the
laws of their instant are asked.

Random numbers are drawn ahead, as they are for single samples, and given to the kernel for so many instants.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument
from alembert.lowering.plan import Buffer, Call, Copy, Offset, Step, When
from alembert.simulate.controllers import to_multiples
from alembert.simulate.elements import Places, state_symbols
from alembert.simulate.schedule import Rate, Schedule
from alembert.simulate.sensors import Instrument, NewestSamples, SensorSamples

if TYPE_CHECKING:
    from alembert.simulate.simulation import Simulation

Array = np.ndarray
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
