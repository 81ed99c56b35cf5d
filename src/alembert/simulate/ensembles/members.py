"""Members of an ensemble: what is drawn for each of them, and the motion that follows.

A `Question` has all that a worker must know. Its answer to the draws of some members is a `MemberBlock`, the
same bits for each member whichever others are with it: they are computed together, in the lanes of the
vector registers, or one by one where each needs steps of its own (error control, events) or one of them
fails.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from alembert.arguments import check_known
from alembert.errors import AlembertWarning, ArgumentError, ModelError, UnsupportedError
from alembert.model import Model
from alembert.simulate import channels
from alembert.simulate.adaptive import ADAPTIVE
from alembert.simulate.events import EventRecord
from alembert.simulate.feedback import states_of
from alembert.simulate.inputs import EffortsAndTables, Table, as_sequence
from alembert.simulate.run import simulate
from alembert.simulate.sensors import Measured

Array = np.ndarray
Vary = Callable[[np.random.Generator], Mapping[str, Any]]
"""Draws a member: any of `q0`, `v0`, `efforts` and `parameters` (by name)."""

DRAWN = ("q0", "v0", "efforts", "parameters")
PARAMETER, RECORDED = "parameter:", "recorded:"


@dataclass(frozen=True)
class MemberBlock:
    """The motions of some members: `q` (members, N, nq), `v`; NaN where a member has failed or ended."""

    time: Array
    q: Array
    v: Array
    failures: Mapping[int, str]
    parameters: Mapping[str, Array]
    events: Mapping[int, tuple[EventRecord, ...]]
    recorded: Mapping[str, Array] = field(default_factory=dict)
    """by name, (members, records of the name, components)"""
    slow: str = ""
    """why they were computed one after the other though each of them is good"""

    def to_arrays(self) -> dict[str, Array]:
        log = [(member, e) for member in sorted(self.events) for e in self.events[member]]
        sizes = self.q.shape[-1], self.v.shape[-1]
        states = [
            np.array([getattr(e, key) for _, e in log]).reshape(len(log), size)
            for key, size in zip(("q", "v", "q_after", "v_after"), 2 * sizes, strict=True)
        ]
        failed = sorted(self.failures)
        return {
            "time": self.time,
            "slow": np.array([self.slow], dtype=np.str_),
            "q": self.q,
            "v": self.v,
            "failed": np.array(failed, dtype=np.int64),
            "reasons": np.array([self.failures[k] for k in failed], dtype=np.str_),
            "event_members": np.array([member for member, _ in log], dtype=np.int64),
            "event_names": np.array([e.name for _, e in log], dtype=np.str_),
            "event_times": np.array([e.time for _, e in log], dtype=float),
            "event_energies": np.array([e.energy for _, e in log], dtype=float),
            "event_internal": np.array([e.internal for _, e in log], dtype=bool),
            "event_quantities": np.array([_written(e.quantities) for _, e in log], dtype=np.str_),
            "event_states": np.concatenate(states, axis=-1),
            **{PARAMETER + name: values for name, values in self.parameters.items()},
            **{RECORDED + name: values for name, values in self.recorded.items()},
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> MemberBlock:
        failures = zip(arrays["failed"], arrays["reasons"], strict=True)
        events: dict[int, tuple[EventRecord, ...]] = {}
        nq, nv = arrays["q"].shape[-1], arrays["v"].shape[-1]
        keys = ("members", "names", "times", "energies", "internal", "quantities", "states")
        for member, name, t, energy, internal, quantities, row in zip(
            *(arrays[f"event_{key}"] for key in keys), strict=True
        ):
            q, v, q_after, v_after = np.split(row, [nq, nq + nv, 2 * nq + nv])
            record = EventRecord(
                str(name), float(t), q, v, q_after, v_after, _read(quantities), float(energy), bool(internal)
            )
            events[int(member)] = (*events.get(int(member), ()), record)
        return cls(
            arrays["time"],
            arrays["q"],
            arrays["v"],
            {int(k): str(reason) for k, reason in failures},
            {key.removeprefix(PARAMETER): x for key, x in arrays.items() if key.startswith(PARAMETER)},
            events,
            {key.removeprefix(RECORDED): x for key, x in arrays.items() if key.startswith(RECORDED)},
            _text(arrays["slow"]) if "slow" in arrays else "",
        )

    @classmethod
    def joined(cls, blocks: Sequence[MemberBlock]) -> MemberBlock:
        """Blocks of members that follow each other."""

        def arrays(name: str) -> dict[str, Array]:
            return {
                key: np.concatenate([getattr(x, name)[key] for x in blocks])
                for key in getattr(blocks[0], name)
            }

        return cls(
            blocks[0].time,
            np.concatenate([x.q for x in blocks]),
            np.concatenate([x.v for x in blocks]),
            {k: reason for x in blocks for k, reason in x.failures.items()},
            arrays("parameters"),
            {k: log for x in blocks for k, log in x.events.items()},
            arrays("recorded"),
            next((x.slow for x in blocks if x.slow), ""),
        )

    def fits(self, members: range, nq: int, nv: int) -> bool:
        """Whether the arrays have the shapes of a block of these members."""
        if self.time.ndim != 1:
            return False
        shape = (len(members), len(self.time))
        parts = [*self.parameters.values(), *self.recorded.values()]
        numbers = [self.time, self.q, self.v, *parts]
        return (
            self.q.shape == (*shape, nq)
            and self.v.shape == (*shape, nv)
            and all(x.ndim and len(x) == len(members) for x in parts)
            and all(np.issubdtype(x.dtype, np.floating) for x in numbers)
            and all(k in members for k in (*self.failures, *self.events))
            and bool(np.isfinite(self.time).all())
        )


def _text(array: Array) -> str:
    if array.shape != (1,) or array.dtype.kind != "U":
        raise ValueError("expected one text")
    return str(array[0])


def _written(quantities: Mapping[str, Any]) -> str:
    """As JSON, which keeps the bits of numbers."""
    return json.dumps(
        {name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in quantities.items()}
    )


def _read(text: str) -> dict[str, Any]:
    return {name: np.array(x) if isinstance(x, list) else x for name, x in json.loads(text).items()}


class Draws:
    """What members start from: drawn by `vary` from a generator of each member's own, or rows of arrays."""

    def __init__(self, model: Model, vary: Any, given: Mapping[str, Any], seed: int) -> None:
        self.model, self.vary, self.given = model, vary, given
        self._words = [seed >> shift & 0xFFFFFFFF for shift in range(0, max(1, seed.bit_length()), 32)]

    def member(self, member: int) -> Mapping[str, Any]:
        if callable(self.vary):
            # as default_rng([seed, member]), whose conversion of numbers to words takes as long as all the rest
            words = np.array([*self._words, member], dtype=np.uint32)
            return self.vary(np.random.Generator(np.random.PCG64(np.random.SeedSequence(words))))
        return {
            key: {name: values[member] for name, values in x.items()} if key == "parameters" else x[member]
            for key, x in self.vary.items()
        }

    def of(self, members: range) -> tuple[dict[str, Array], dict[int, str]]:
        """Arrays with a row for each member, and why members have none of their own."""
        model = self.model
        rows: dict[str, list[Array]] = {key: [] for key in ("q0", "v0", "efforts")}
        reasons: dict[int, str] = {}
        names = [(name, default, f"{PARAMETER}{name}") for name, default in model.parameters]
        parameters: dict[str, list[float]] = {key: [] for _, _, key in names}
        for member in members:
            drawn: Mapping[str, Any] = {}
            try:
                drawn = self.member(member)
            except Exception as error:
                reasons[member] = f"vary raised {type(error).__name__}: {error}"
            if not isinstance(drawn, Mapping):
                raise ArgumentError(
                    f"ensemble: vary returned {drawn!r}, expected what differs, as {{'q0': ...}}; return it at the end"
                )
            for key in drawn:
                check_known("ensemble: vary gives", key, DRAWN)
            for key, values in rows.items():
                values.append(numbers(model, key, drawn[key]) if key in drawn else self.given[key])
            chosen = drawn.get("parameters", {})
            for name in chosen:
                check_known("ensemble: vary: no parameter", name, model.parameter_values)
            for name, default, key in names:
                parameters[key].append(float(chosen.get(name, default)))
        found = {key: np.array(values) for key, values in rows.items()}
        return found | {key: np.array(values) for key, values in parameters.items()}, reasons


def numbers(model: Model, key: str, value: Any) -> Array:
    if not isinstance(value, np.ndarray) and isinstance(value, Mapping):
        if key == "q0":
            value = model.configuration(value)
        else:
            return model.compute.by_name("ensemble", value, key)[1]
    return model.compute.numbers("ensemble", key, value, model.nq if key == "q0" else model.nv, batch=False)


def swept(vary: Mapping[str, Any], members: int | None) -> tuple[dict[str, Any], int]:
    """A sweep's arrays, and how many members they have."""
    found: dict[str, Any] = {}
    lengths: dict[str, int] = {}
    for key, x in vary.items():
        check_known("ensemble: vary gives", key, DRAWN)
        if key == "parameters":
            found[key] = {name: np.atleast_1d(np.asarray(values, dtype=float)) for name, values in x.items()}
            lengths |= {f"parameter {name!r}": len(values) for name, values in found[key].items()}
        else:
            found[key] = np.asarray(x, dtype=float)
            if found[key].ndim != 2:
                raise ArgumentError(
                    f"ensemble: vary: {key} has shape {found[key].shape}, expected one row for each member"
                )
            lengths[key] = len(found[key])
    if members is not None:
        lengths["members"] = members
    if len(set(lengths.values())) != 1:
        listed = ", ".join(f"{key}: {length}" for key, length in lengths.items())
        raise ArgumentError(f"ensemble: vary: the members do not agree ({listed or 'nothing is given'})")
    return found, next(iter(lengths.values()))


@dataclass(frozen=True)
class Question:
    """A model, the options of `simulate` that all members share, and the ensemble's seed, for the noise of sensors.

    `tables` are efforts over time by joint, in addition to the numbers that are drawn.
    """

    model: Model
    options: Mapping[str, Any]
    seed: int = 0
    tables: Mapping[str, Table] = field(default_factory=dict)

    def _seeded(self, members: Any) -> dict[str, Any]:
        """The options for some members (or one): noise from seeds of their own, whoever is with them."""
        sensors = as_sequence(self.options.get("sensors", ()))
        if not sensors:
            return dict(self.options)

        def seed(member: int, sensor: Measured) -> int:
            words = np.random.SeedSequence([self.seed, int(member), 1, int(sensor.seed)])
            return int(words.generate_state(1, np.uint64)[0])

        found = []
        for sensor in sensors:
            if np.ndim(sensor.seed):
                raise ArgumentError(
                    "ensemble: sensors: seed is an array, expected a number; members have their own seeds"
                )
            seeds = (
                [seed(k, sensor) for k in members] if isinstance(members, range) else seed(members, sensor)
            )
            found.append(replace(sensor, seed=np.array(seeds, dtype=np.uint64)))
        return {**self.options, "sensors": found}

    def answer(self, members: range, draws: Mapping[str, Array], reasons: Mapping[int, str]) -> MemberBlock:
        alone = any(self.options.get(key) for key in ("events", "locked"))
        together = self.options["integrator"] not in ADAPTIVE and not alone
        if not together:
            return self.one_by_one(members, draws, reasons)
        try:
            return self._together(members, draws, reasons)
        except (ArgumentError, ModelError, UnsupportedError):
            raise
        except Exception as error:  # one of them spoils it for the others: find out which
            block = self.one_by_one(members, draws, reasons)
            if block.failures.keys() != reasons.keys():
                return block
            return replace(block, slow=f"{type(error).__name__}: {error}")

    def _simulate(
        self, members: range | int, draws: Mapping[str, Array], parameters: Mapping[str, Any]
    ) -> Any:
        return simulate(
            self.model,
            draws["q0"],
            draws["v0"],
            efforts=EffortsAndTables(draws["efforts"], self.tables) if self.tables else draws["efforts"],
            parameters=parameters or None,
            progress=False,
            **self._seeded(members),
        )

    def _together(
        self, members: range, draws: Mapping[str, Array], reasons: Mapping[int, str]
    ) -> MemberBlock:
        parameters = _parameters(draws)
        run = self._simulate(members, draws, parameters)
        failures = dict(reasons)
        good = np.isfinite(run.q).all(axis=-1) & np.isfinite(run.v).all(axis=-1)
        for k in np.flatnonzero(~good.all(axis=-1)):
            last = run.time[max(int(np.argmin(good[k])) - 1, 0)]
            failures.setdefault(members[k], f"the motion is not finite after t = {last:.9g} s")
        recorded = {name: channel.values for name, channel in run.recorded.items()}
        for member in reasons:
            for x in (run.q, run.v, *recorded.values()):
                x[member - members.start] = np.nan
        return MemberBlock(run.time, run.q, run.v, failures, parameters, {}, recorded)

    def one_by_one(
        self, members: range, draws: Mapping[str, Array], reasons: Mapping[int, str]
    ) -> MemberBlock:
        """Members that are among the `reasons` have failed before, and do not move."""
        parameters, time = _parameters(draws), self._times()
        q = np.full((len(members), len(time), self.model.nq), np.nan)
        v = np.full((len(members), len(time), self.model.nv), np.nan)
        failures, events = dict(reasons), {}
        wanted = channels.requests(
            self.model, self.options.get("record", ()), states_of(self.options.get("controller"))
        )
        recorded = {
            one.name: np.full((len(members), len(one.rows(time)), max(1, len(one.components))), np.nan)
            for one in wanted
        }
        for k, member in enumerate(members):
            if member in failures:
                continue
            own = {key: draws[key][k] for key in ("q0", "v0", "efforts")}
            try:
                run = self._simulate(member, own, {name: float(x[k]) for name, x in parameters.items()})
                rows = np.searchsorted(time, run.time[-1] * (1 + 1e-12) + 1e-15, side="right")
                for one in wanted:
                    count = len(one.rows(time[:rows]))
                    recorded[one.name][k, :count] = run.recorded[one.name].values[:count]
            except (ArgumentError, ModelError, UnsupportedError):
                raise
            except Exception as error:
                failures[member] = f"{type(error).__name__}: {error}"
                continue
            q[k, :rows], v[k, :rows] = run.q[:rows], run.v[:rows]
            if run.events:
                events[member] = run.events
        return MemberBlock(time, q, v, failures, parameters, events, recorded)

    def _times(self) -> Array:
        """Of the records, as `simulate` has them."""
        start, step = float(self.options.get("start", 0.0)), self.options.get("step")
        duration, interval = float(self.options["duration"]), float(self.options["interval"])
        if self.options["integrator"] not in ADAPTIVE and step is not None:
            every = round(interval / step)
            return start + float(step) * np.arange(0, round(duration / step) + 1, every).astype(float)
        times = start + interval * np.arange(int(duration / interval * (1 + 1e-12)) + 1)
        if start + duration - times[-1] > 1e-9 * duration:
            times = np.append(times, start + duration)
        times[-1] = start + duration
        return times


def _parameters(draws: Mapping[str, Array]) -> dict[str, Array]:
    return {key.removeprefix(PARAMETER): x for key, x in draws.items() if key.startswith(PARAMETER)}


def ignore_what_is_recorded() -> None:
    """Members that fail are listed by number; the warnings about them are for those who simulate a batch."""
    for told in (
        r"simulate: \d+ of \d+ motions are not finite",
        r"\w+: \d+ of \d+ states have no finite result",
    ):
        warnings.filterwarnings("ignore", told, AlembertWarning)
