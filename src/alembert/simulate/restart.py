"""Runs from files: what a run needs to go on, written beside its records, and read back.

A netCDF file of a run has, besides what everybody can read, two variables: `restart`, a compressed JSON text, and
`restart_numbers`, the arrays that it refers to, bit for bit. In them are the machine's states (or the marks of a run
with error control), what controllers hold and wait for, what sensors and drives remember, which constraints hold, and the
log of events. Numbers that act (efforts, parameters, gravity) are there too. Functions are not: whoever goes on gives them
again, and is told where they are others.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.errors import ArgumentError, FileError, warn
from alembert.meaning import meaning
from alembert.model import Model
from alembert.model.io import netcdf
from alembert.simulate import channels
from alembert.simulate.adaptive import ADAPTIVE, Birth
from alembert.simulate.adaptive_run import EffortSpan, RestartPlace, ticks
from alembert.simulate.chart_equation import Approach
from alembert.simulate.event_search import Armed
from alembert.simulate.events import EventRecord, Topology
from alembert.simulate.fixed_run import stepper_of
from alembert.simulate.inputs import Inputs, Settings, Stabilisation
from alembert.simulate.result import Run
from alembert.simulate.schedule import Schedule
from alembert.simulate.sensors import SensorSamples
from alembert.simulate.simulation import Simulation

if TYPE_CHECKING:
    from xarray import Dataset

Array = np.ndarray
VERSION = 1
NUMBERS = ("duration", "step", "interval", "start", "origin", "tolerance", "absolute_tolerance")
TEXT, ARRAYS = "restart", "restart_numbers"
LARGEST_TEXT = 500_000_000  # bytes of the JSON text


# --- writing ------------------------------------------------------------------------------------------------


def add_to(data: Dataset, run: Run) -> Dataset:
    """The data with what the run needs to go on."""
    arrays = _Arrays()
    text = zlib.compress(json.dumps(arrays.plain(_content(run))).encode())
    return data.assign(
        {
            TEXT: (f"{TEXT}_byte", np.frombuffer(text, dtype=np.uint8)),
            ARRAYS: (f"{TEXT}_number", arrays.flat()),
        }
    )


def _content(run: Run) -> dict[str, Any]:
    system, settings = run._system, run._settings
    held = None if run._held is None else [run._held]
    found: dict[str, Any] = {
        "version": VERSION,
        "integrator": run.integrator,
        "reason": run.reason,
        "step": run.step,
        "steps": run.steps,
        "options": {name: x for name in NUMBERS if (x := getattr(settings, name)) is not None},
        "record": [one.text for one in settings.record],
        "stabilisation": [system.stabilisation.method, system.stabilisation.rate],
        "given": _digests(settings.inputs.by_name),
        "values": {name: value for name, value in settings.inputs.by_name.items() if _is_plain(value)},
        "held": held,
        "work": run._work if run._notes is None else run.work,
        "drives": run.drive_states,
        "controllers": run.controller_states,
        "passages": list(run.passages),
        "topologies": [[first, _topology(topology)] for first, topology in run._topologies],
        "events": [{f.name: getattr(e, f.name) for f in dataclasses.fields(e)} for e in run.events],
        "event_records": list(run._event_records),
        "measurements": {name: [x.time, x.values] for name, x in run.measurements.items()},
    }
    if run.integrator in ADAPTIVE:
        spans = list(dict.fromkeys(id(mark.span) for mark in run._machine))
        by_id = {id(mark.span): mark.span for mark in run._machine}
        found["spans"] = [[s.t, s.n, _schedule(s.schedule), s.before] for s in (by_id[key] for key in spans)]
        found["marks"] = [
            [
                mark.record,
                [
                    *(getattr(mark.birth, name) for name in ("t", "q", "v", "z", "step")),
                    _approach(mark.birth),
                ],
                spans.index(id(mark.span)),
                list(mark.armed.values),
                [list(mark.armed.happened), list(mark.armed.closed)],
                _topology(mark.topology),
            ]
            for mark in run._machine
        ]
    else:
        states, snapshots = run._machine
        found["states"] = states
        found["snapshots"] = [[_schedule(schedule), memory] for schedule, memory in snapshots]
    return found


def _approach(birth: Birth) -> np.ndarray | None:
    x = birth.approach
    return None if x is None else np.array([x.rank, x.best, *x.times, *x.values], dtype=float)


def _to_birth(birth: Sequence[Any], topology: Topology) -> Birth:
    t, q, v, z, step, *more = birth
    if not more or more[0] is None:
        return Birth(t, q, v, z, step)
    rank, best, *pairs = more[0].tolist()
    approach = Approach(topology.active, int(rank), best, tuple(pairs[:2]), tuple(pairs[2:]))
    return Birth(t, q, v, z, step, approach)


def _topology(topology: Topology) -> list[Any]:
    return [list(topology.active), dict(topology.values), dict(topology.sides)]


def _schedule(schedule: Schedule | None) -> dict[str, Any] | None:
    if schedule is None:
        return None
    names = ("held", "walks", "readings", "pending", "asked", "effort", "states")
    return {name: getattr(schedule, name) for name in names}


def _is_plain(value: Any) -> bool:
    """Numbers, texts, and what is made of them: a file can hold it."""
    if isinstance(value, np.ndarray):
        return bool(np.issubdtype(value.dtype, np.number))
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(x) for key, x in value.items())
    if isinstance(value, list | tuple):
        return all(_is_plain(x) for x in value)
    return isinstance(value, int | float | str | np.number)


def _digests(given: Mapping[str, Any]) -> dict[str, str]:
    """What was given, as digests; "?" for what cannot be told from another."""
    found = {}
    for name, value in given.items():
        if value is None or (isinstance(value, list | tuple | dict | str) and not value):
            continue
        try:
            found[name] = hashlib.sha256(meaning(value).encode()).hexdigest()
        except ArgumentError:
            found[name] = "?"
    return found


class _Arrays:
    """Arrays of a tree of plain data, one after the other; the same array is there once."""

    def __init__(self) -> None:
        self._parts: list[Array] = []
        self._places: dict[int, tuple[Array, int]] = {}
        self._size = 0

    def plain(self, x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return {"@": [self._place(x), *x.shape]}
        if isinstance(x, Mapping):
            return {str(key): self.plain(value) for key, value in x.items()}
        if isinstance(x, list | tuple):
            return [self.plain(value) for value in x]
        if isinstance(x, np.generic):
            return x.item()
        return x

    def _place(self, x: Array) -> int:
        if id(x) not in self._places:
            self._places[id(x)] = x, self._size
            self._parts.append(np.asarray(x, dtype=float).ravel())
            self._size += x.size
        return self._places[id(x)][1]

    def flat(self) -> Array:
        return np.concatenate([np.zeros(0), *self._parts])


# --- reading ------------------------------------------------------------------------------------------------


def load_run(path: str | Path, *, model: Model | None = None, **given: Any) -> Run:
    """A run that `run.save("run.nc")` has written: to look at, and to go on with `resume(duration, time=...)`.

    Args:
        path: the file.
        model: needed only where the file does not hold it (joints made by a program).
        given: what acted, as it was given to `simulate`: `controller`, `efforts`, `wrenches`, `prescribed`, `drives`,
            `sensors`, `events`, `locked`, `parameters`, `gravity`, `forces`. Numbers are in the file, functions and
            objects cannot be: it knows what was there, refuses to go on without, and warns where something else is
            given. All other options are in the file.

    The continuation has the same bits as a run that was never interrupted.
    """
    for name in given:
        if name not in Inputs.names():
            raise ArgumentError(f"load_run: no option {name!r}, expected some of {', '.join(Inputs.names())}")
    data, content = _read(Path(path))
    with netcdf.damage_told(path, "its restart data are damaged"):
        return _run(path, data, content, model, given)


def _run(
    path: str | Path, data: Dataset, content: dict[str, Any], model: Model | None, given: dict[str, Any]
) -> Run:
    inputs = Inputs(**{**content["values"], **given})
    _compare(content["given"], _digests(given), set(content["values"]), path)
    stored = _model(data, path)
    if model is None:
        if stored is None:
            raise ArgumentError(f"load_run: {path} does not hold its model, expected model=...")
        own = stored
    else:
        own = inputs.model(model)
        if own.fingerprint != data.attrs["fingerprint"]:
            raise ArgumentError(f"load_run: model is another than that of the run in {path}")
    q, v, tau = (netcdf.array(data, name, path) for name in ("q", "v", "tau"))
    for name, x, width in (("q", q, own.nq), ("v", v, own.nv), ("tau", tau, own.nv)):
        if x.shape != (*q.shape[:-1], width) or x.shape[-2] != data["time"].size:
            raise FileError(f"{path}: variable {name!r} has shape {x.shape}, which is none of {own.name!r}")
    system = Simulation(own, inputs, q.shape[:-2])
    system.stabilisation = Stabilisation(*content["stabilisation"])
    topologies = tuple((first, _to_topology(x)) for first, x in content["topologies"])
    system.topology = topologies[-1][1]
    settings = Settings(
        **{name: x for name, x in content["options"].items() if name in NUMBERS},
        events=system.watched_events,
        record=channels.requests(own, content["record"], system.feedback.states),
        inputs=inputs,
    )
    return Run(
        own,
        np.array(data["time"].values),
        q,
        v,
        tau,
        tuple(EventRecord(**event) for event in content["events"]),
        content["integrator"],
        content["reason"],
        content["step"],
        content["steps"],
        system,
        settings,
        _machine(content, system, settings),
        None if content["held"] is None else content["held"][0],
        topologies,
        tuple(content["event_records"]),
        content["drives"],
        {name: SensorSamples(*x) for name, x in content["measurements"].items()},
        content.get("work"),
        controller_states=content.get("controllers"),
        passages=tuple(content.get("passages", ())),
    )


def _read(path: Path) -> tuple[Dataset, dict[str, Any]]:
    data = netcdf.read(path, "load_run")
    if TEXT not in data or ARRAYS not in data:
        raise FileError(f"{path}: is no run that can go on, expected a file that run.save(...) has written")
    with netcdf.damage_told(path, "its restart data are damaged"):
        flat = np.asarray(data[ARRAYS].values, dtype=float)
        text = np.asarray(data[TEXT].values, dtype=np.uint8).tobytes()
        tree = json.loads(netcdf.unzipped(text, LARGEST_TEXT))
        if tree["version"] != VERSION:
            raise FileError(
                f"{path}: has restart data of version {tree['version']}, this Alembert reads {VERSION}; "
                "its records are read by xarray.open_dataset"
            )
        return data, _with_arrays(tree, flat)


def _with_arrays(x: Any, flat: Array) -> Any:
    if isinstance(x, dict):
        if set(x) == {"@"}:
            first, *shape = x["@"]
            return flat[first : first + int(np.prod(shape, dtype=int))].reshape(shape).copy()
        return {key: _with_arrays(value, flat) for key, value in x.items()}
    return [_with_arrays(value, flat) for value in x] if isinstance(x, list) else x


def _compare(stored: Mapping[str, str], given: Mapping[str, str], held: set[str], path: str | Path) -> None:
    for name in stored:
        if name not in given and name not in held:
            raise ArgumentError(
                f"load_run: the run in {path} had {name}=..., which a file does not hold; give it again"
            )
    other = [
        name for name in given if name not in stored or stored[name] != given[name] or stored[name] == "?"
    ]
    if other:
        warn(
            f"load_run: {', '.join(other)}: not known to be the same as in the run in {path}; its continuation may differ "
            "from that of the run"
        )


def _model(data: Dataset, path: str | Path) -> Model | None:
    from alembert.model.io.native import loads

    text = data.attrs.get("model_toml")
    return None if text is None else loads(text, name=f"{path}: model_toml")


def _to_topology(x: Any) -> Topology:
    active, values, sides = x
    return Topology(tuple(active), values, sides)


def _to_armed(values: Any, after: Any) -> Armed:
    if not isinstance(
        after, list
    ):  # files of the first release: the one event that had just changed the state
        after = [[] if after is None else [[after, 0.0]], []]
    happened, closed = (tuple((int(k), float(x)) for k, x in pairs) for pairs in after)
    return Armed(tuple(values), happened, closed)


def _machine(content: Mapping[str, Any], system: Simulation, settings: Settings) -> Any:
    if content["integrator"] in ADAPTIVE:
        blank, _ = ticks(system)
        spans = [EffortSpan(t, n, _to_schedule(x, blank), before) for t, n, x, before in content["spans"]]
        return tuple(
            RestartPlace(
                record,
                _to_birth(birth, _to_topology(topology)),
                spans[span],
                _to_armed(values, after),
                _to_topology(topology),
            )
            for record, birth, span, values, after, topology in content["marks"]
        )
    stepper = stepper_of(system, content["integrator"], content["step"], settings)
    states = content["states"]
    if states.shape[-1] != stepper.layout.size:
        raise FileError(
            f"load_run: the states in the file have {states.shape[-1]} entries, expected {stepper.layout.size}; they are of "
            "another version of Alembert"
        )
    blank = system.schedule(content["step"])
    return states, [(_to_schedule(x, blank), memory) for x, memory in content["snapshots"]]


def _to_schedule(x: Any, blank: Schedule | None) -> Schedule | None:
    if x is None or blank is None:
        return None
    pending = [(int(instant), int(who), value) for instant, who, value in x["pending"]]
    states = {int(k): value for k, value in x.get("states", {}).items()}
    return dataclasses.replace(blank, **{**x, "pending": pending, "states": states, "log": []})
