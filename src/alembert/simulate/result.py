"""What a simulation returns."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert.arguments import real, told_elsewhere
from alembert.errors import ArgumentError, UnsupportedError, writing
from alembert.linear import quantities
from alembert.model import Model
from alembert.model.io import netcdf
from alembert.simulate import plots
from alembert.simulate.channels import Channel, request
from alembert.simulate.events import EventRecord, Topology
from alembert.simulate.inputs import Settings
from alembert.simulate.report import Report, StepNotes, report_of
from alembert.simulate.schemes import SCHEMES
from alembert.simulate.sensors import SensorSamples
from alembert.simulate.simulation import Simulation
from alembert.view import Animation, write_film, write_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame
    from xarray import Dataset

Array = np.ndarray
KEPT, KEPT_BY_STEPS, KEPT_ROUGHLY, BALANCED = 1e-5, 0.05, 0.25, 1e-2
"""of the largest kinetic energy, the error beyond which a balance is broken: with error control, with fixed steps, with
those of order 1 and 2, and with error control where work is done (its sum over steps is not as good where forces jump)"""


@told_elsewhere(
    {
        "t": "run.time",
        "x": "run.q and run.v",
        "y": "run.q and run.v",
        "tau": "run.efforts",
        "u": "run.efforts",
    }
)
@dataclass(frozen=True, repr=False)
class Run:
    """A motion: `time` (N,), `q` (..., N, nq) and `v` (..., N, nv), and what follows from them.

    `events` is the log of events. `resume` goes on from any record.
    """

    model: Model
    time: Array
    q: Array
    v: Array
    efforts: Array
    """(..., N, nv): of controllers and constant ones, from each record on"""
    events: tuple[EventRecord, ...]
    integrator: str
    reason: str
    """why this integrator, where it was left open"""
    step: float | None
    steps: int
    _system: Simulation = field(repr=False)
    _settings: Settings = field(repr=False)
    _machine: Any = field(repr=False, default=None)
    _held: Array | None = field(repr=False, default=None)
    """the part of the efforts that is held over steps, from each record on"""
    _topologies: tuple[tuple[int, Topology], ...] = field(repr=False, default=())
    """which constraints hold, from a record on"""
    _event_records: tuple[int, ...] = field(repr=False, default=())
    """the first record after each event"""
    drive_states: Array | None = field(repr=False, default=None)
    """(..., N, 2, nv): of drives with a lag or a rate limit, the effort before saturation and its rate"""
    measurements: Mapping[str, SensorSamples] = field(repr=False, default_factory=dict)
    """what sensors delivered, by name"""
    _work: Array | None = field(repr=False, default=None)
    """with error control, the work up to each record"""
    _notes: StepNotes | None = field(repr=False, default=None)
    """with fixed steps and records further apart, what was done at the steps"""
    controller_states: Array | None = field(repr=False, default=None)
    """(..., N, states): of controllers that have some, those of sampled ones from each record on; `channel("controller")`
    has their names"""
    passages: tuple[float, ...] = field(repr=False, default=())
    """times at which the motion went through places where loops and couplings lose rank"""

    def __repr__(self) -> str:
        batch = f", {'x'.join(map(str, self.q.shape[:-2]))} motions" if self.q.ndim > 2 else ""
        return (
            f"<Run of {self.model.name!r}: {self.time[0]:g} to {self.time[-1]:g} s, {len(self.time)} records{batch}, "
            f"{self.integrator}>"
        )

    # --- what follows from the motion --------------------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, Array] | None:
        """Those that the run was given, by name (..., 1), and masses that fall (..., N)."""
        return self._system.parameters_along(self.controller_states)

    @cached_property
    def accelerations(self) -> Array:
        """(..., N, nv), at each record."""
        return np.stack([self._point(k).a for k in range(len(self.time))], axis=-2)

    def _point(self, k: int) -> Any:
        system, q, v = self._system, self.q[..., k, :], self.v[..., k, :]
        t = float(self.time[k])
        system.topology = self.topology(k)
        x = None if self.controller_states is None else self.controller_states[..., k, : system.feedback.size]
        return system.point(t, q, v, self.efforts[..., k, :], x=x, held=True, complete=True)

    def topology(self, k: int) -> Topology:
        """What holds at a record."""
        found = self._system.topology
        for first, topology in self._topologies:
            if first <= k:
                found = topology
        return found

    @cached_property
    def kinetic_energy(self) -> Array:
        return self.model.kinetic_energy(self.q, self.v, parameters=self.parameters)

    @cached_property
    def potential_energy(self) -> Array:
        own = self.model.potential_energy(self.q, parameters=self.parameters)
        return own if self._from_elements is None else own + self._from_elements[3]

    @cached_property
    def _from_elements(self) -> tuple[Array, Array, Array, Array] | None:
        """Efforts of potentials, others, those of tables and the potential, at each record."""
        return self._elements_with(self.parameters if self.has_mass_flow else None)

    def _elements_with(self, parameters: dict[str, Array] | None) -> tuple[Array, Array, Array, Array] | None:
        loads = self._system.loads
        if loads.elements is None:
            return None
        return loads.elements_at(self.time[:, None], self.q, self.v, along_time=True, parameters=parameters)

    @property
    def energy(self) -> Array:
        return self.kinetic_energy + self.potential_energy

    @cached_property
    def momentum(self) -> Array:
        """(..., N, 6): angular and linear, in world axes about the world's origin."""
        return self.model.momentum(self.q, self.v, about="world", parameters=self.parameters)

    @cached_property
    def required_efforts(self) -> Array:
        """(..., N, nv): what the drives of prescribed joints must give; zero for the others."""
        total = np.zeros(self.v.shape)
        system = self._system
        if system.prescribes:
            for k, t in enumerate(self.time):
                q, v, given = self.q[..., k, :], self.v[..., k, :], self.efforts[..., k, :]
                x = None if self.controller_states is None else self.controller_states[..., k, :]
                system.topology = self.topology(k)
                total[..., k, :] = system.required_efforts(float(t), q, v, given, x)
        return total

    @cached_property
    def work(self) -> Array:
        """(..., N): what efforts, wrenches and prescribed motion have put in, and friction has taken out.

        Integrators with error control add it up along their steps. With fixed steps, of efforts that are held over
        steps it is what they did, of the others by Simpson's rule over the steps.
        """
        if self._work is not None:
            return self._work
        from alembert.simulate.fixed_run import work_of_steps

        return work_of_steps(self) + self._carried

    @property
    def has_mass_flow(self) -> bool:
        """Whether masses of the model change in the run (`MassFlow`)."""
        return bool(self._system.feedback.flows)

    @property
    def held_efforts(self) -> Array:
        """(..., N, nv): the part of `efforts` that stays as it is from each record to the next."""
        return np.zeros(self.efforts.shape) if self._held is None else self._held

    @property
    def mass_rates(self) -> dict[str, Array]:
        """(N,): how fast masses change [kg/s], by parameter; those that fall by steps, at records, are not in it."""
        flows = [flow for _, flow in self._system.feedback.flows if flow.controller.burnt is None]
        return {flow.controller.parameter: flow.rates(self.time) for flow in flows}

    def carried(self, quantity: Callable[[dict[str, Array] | None], Array]) -> Array:
        """(..., N, ...): what came of a quantity with masses that flowed, up to each record; less than zero where they left.

        `quantity` is a function of the parameters that gives it at all records, as `lambda p: model.energy(run.q, run.v,
        parameters=p)`.
        """
        now = self.parameters
        total = np.zeros(np.shape(quantity(now)))
        along = self.q.ndim - 2  # the axis of time
        for _, flow in self._system.feedback.flows:
            assert now is not None
            name = flow.controller.parameter
            mass = now[name]
            if name not in self.mass_rates:
                before = np.concatenate([mass[..., :1], mass[..., :-1]], axis=-1)
                gone = quantity(now) - quantity({**now, name: before})
                total = total + np.cumsum(gone, axis=along)
                continue
            d = 1e-3 * float(np.max(mass))
            near, far = (
                quantity({**now, name: mass + x}) - quantity({**now, name: mass - x}) for x in (d, 2 * d)
            )
            each = (8 * near - far) / (12 * d)  # of a kilogram
            rates = self.mass_rates[name].reshape(-1, *(1,) * (total.ndim - along - 1))
            total = total + scipy.interpolate.CubicSpline(
                self.time, each * rates, axis=along
            ).antiderivative()(self.time)
        return total

    @property
    def _carried(self) -> Any:
        """(..., N): the energy that came with masses that flowed."""
        if not self.has_mass_flow:
            return 0.0

        def energy(parameters: dict[str, Array] | None) -> Array:
            own = self.model.energy(self.q, self.v, parameters=parameters)
            elements = self._elements_with(parameters)
            return own if elements is None else own + elements[3]

        return self.carried(energy)

    @property
    def held_over_steps(self) -> Array:
        """(..., N, nv): `held_efforts` where each record is a step; zero where it is not known what was held in between."""
        interval = self._settings.interval
        apart = interval is not None and self.step is not None and interval > 1.5 * self.step
        return np.zeros(self.efforts.shape) if apart else self.held_efforts

    @cached_property
    def report(self) -> Report:
        """How well energy, momentum and unit quaternions were kept, and which limits of the model were not."""
        return report_of(self)

    @property
    def _energy_limit(self) -> float:
        """Of the largest kinetic energy, the error beyond which the balance is broken."""
        if self.step is not None:
            scheme = SCHEMES.get(self.integrator)
            return KEPT_BY_STEPS if scheme is not None and scheme.order > 2 else KEPT_ROUGHLY
        if not self._system.conserves_energy:
            return BALANCED
        return min(KEPT_BY_STEPS, max(KEPT, 1e4 * float(self._settings.tolerance)))

    @property
    def _slow(self) -> float:
        """The kinetic energy at a thousandth of all speeds' units: where there is never more, nothing moves."""
        model, q = self.model, self.q.reshape(-1, self.q.shape[-1])[0]
        values = {name: np.ravel(x)[0] for name, x in (self._system.own_parameters or {}).items()} or None
        return max(
            float(model.kinetic_energy(q, np.full(model.nv, 1e-3), parameters=values)), np.finfo(float).tiny
        )

    def event_records(self) -> list[tuple[EventRecord, int]]:
        """The events, each with the number of the first record after it."""
        return list(zip(self.events, self._event_records, strict=True))

    @cached_property
    def _jumps(self) -> Array:
        """(N,): the energy that events have added up to each record."""
        total = np.zeros(len(self.time))
        for event, first in self.event_records():
            total[first:] += event.energy
        return total

    # --- records by name ---------------------------------------------------------------------------------------

    def channel(self, name: str) -> Channel:
        """Any quantity by name, as `frame:hand.position`, `v:elbow`, `energy@10`; see `alembert.simulate.channels`."""
        return request(self.model, name, self._system.feedback.states).channel(self)

    @cached_property
    def recorded(self) -> dict[str, Channel]:
        """What `record` asked for, by name."""
        return {one.name: one.channel(self) for one in self._settings.record}

    # --- seeing it ---------------------------------------------------------------------------------------------

    def plot(
        self,
        *joints: str,
        show: Sequence[str] | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> Figure:
        """Over time, for all joints or those named; needs matplotlib. `path` saves it.

        `show` lists some of "coordinates", "speeds", "efforts", "energy", "momentum" and "constraints" (the drift of
        loops and couplings), and names of `channel` as "frame:hand.position"; by default the first
        two, and efforts where there are any. Of a batch the first motion.
        """
        return plots.figure(self, joints, [show] if isinstance(show, str) else show, path)

    def motion(self, member: int | tuple[int, ...] = 0, *, title: str = "") -> Animation:
        """What `alembert.view` shows of this run; `member` chooses from a batch."""
        index = self._index(member)
        wanted = ["efforts", "energy", "coordinates", "speeds"]
        shown = plots.panels(
            self, [*wanted, "constraints"] if self.model.is_constrained else wanted, (), index
        )
        shown = {t: x for t, x in shown.items() if t != "quaternions" and any(np.any(y) for y in x.values())}
        batch = self.q.shape[:-2]
        parameters = {
            name: float(np.broadcast_to(np.asarray(x, dtype=float), batch)[index])
            for name, x in (self._system.own_parameters or {}).items()
        }
        return Animation(
            self.model,
            self.time,
            self.q[index],
            efforts=self.efforts[index],
            series=shown,
            wrenches={frame: F[index] for frame, F in (self._wrenches or {}).items()},
            title=title or self.model.name,
            parameters=parameters or None,
        )

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        member: int | tuple[int, ...] = 0,
        title: str = "",
        theme: str = "auto",
    ) -> Path:
        """Write a page that shows the motion and its plots; it opens from disk, without network or server."""
        return write_page(path, [self.motion(member, title=title)], title=title, theme=theme)

    def to_film(
        self, path: str | os.PathLike[str], *, member: int | tuple[int, ...] = 0, **options: Any
    ) -> Path:
        """Write the motion as a film (.gif, .webp, .mp4, .webm); `options` are those of `alembert.view.write_film`.

        Needs Chromium or Chrome, and Pillow or ffmpeg.
        """
        return write_film(path, self.motion(member), **options)

    def _index(self, member: int | tuple[int, ...]) -> tuple[int, ...]:
        """Where one motion is in the batch."""
        batch = self.q.shape[:-2]
        index = (member,) if isinstance(member, int) else tuple(member)
        if not batch and member == 0:
            return ()
        if isinstance(member, int) and -np.prod(batch) <= member < np.prod(batch):
            return tuple(int(k) for k in np.unravel_index(member % int(np.prod(batch)), batch))
        if len(index) != len(batch) or any(not -n <= k < n for k, n in zip(index, batch, strict=True)):
            raise ArgumentError(f"motion: member is {member!r}, expected one of a batch of shape {batch}")
        return index

    @cached_property
    def _wrenches(self) -> dict[str, Array] | None:
        """(..., N, 6) by frame, of those that come as numbers."""
        loads, shape = self._system.loads, (*self.q.shape[:-2], 6)
        if not loads.has_wrenches:
            return None
        at = [
            loads.wrenches_at(float(t), self.q[..., k, :], self.v[..., k, :]) or {}
            for k, t in enumerate(self.time)
        ]
        return {frame: np.stack([np.broadcast_to(x[frame], shape) for x in at], axis=-2) for frame in at[0]}

    def _repr_html_(self) -> str:
        """In notebooks: what it is, how well it kept energy and momentum, and a plot."""
        from alembert.view.figures import result_html

        return result_html(
            repr(self)[1:-1], str(self.report).splitlines(), self.plot if self.model.nv else None
        )

    # --- going on ----------------------------------------------------------------------------------------------

    def resume(self, duration: float, *, time: float | None = None) -> Run:
        """Go on for `duration` from the end, or from the record at `time`, with everything else as before.

        Fixed-step schemes continue with the same bits as if the run had never stopped there.
        """
        from alembert.simulate.run import _resume

        real("resume", "duration", duration, "a positive time in seconds", over=0.0)
        k = len(self.time) - 1
        if time is not None:
            real("resume", "time", time, "that of a record, in seconds")
            k = int(np.argmin(np.abs(self.time - time)))
            if abs(self.time[k] - time) > 1e-9 * max(1.0, abs(time)):
                raise ArgumentError(
                    f"resume: no record at t = {time:g} s; the nearest is at {self.time[k]:.9g} s"
                )
        return _resume(self, k, duration)

    # --- leaving -----------------------------------------------------------------------------------------------

    def _columns(self) -> list[tuple[str, str, Array]]:
        """Name, unit and values (..., N) of every coordinate, speed and effort, and of what is recorded by name.

        NaN stands where a channel with a rate of its own has no record.
        """
        model = self.model
        found = []
        for names, unit, x, prefix in (
            (model.coordinate_names, model.space.coordinate_units, self.q, "q"),
            (model.speed_names, model.space.speed_units, self.v, "v"),
            (model.speed_names, quantities.effort_units(model), self.efforts, "tau"),
        ):
            for k, (name, u) in enumerate(zip(names, unit, strict=True)):
                found.append((f"{prefix}.{name}", u, x[..., k]))
        for one in self._settings.record:
            channel, rows = self.recorded[one.name], one.rows(self.time)
            for k, (component, u) in enumerate(zip(channel.components, channel.units, strict=True)):
                column = np.full((*self.q.shape[:-2], len(self.time)), np.nan)
                column[..., rows] = channel.values[..., k]
                label = one.name if component == one.name else f"{one.name}.{component}"
                found.append((label, u, column))
        return found

    def to_csv(self, path: str | Path) -> Path:
        """One row per record, a header with names and units; one motion only."""
        if self.q.ndim > 2:
            raise ArgumentError(
                "to_csv: the run is a batch of motions; to_xarray().to_netcdf(...) keeps them all"
            )
        columns = self._columns()
        path = Path(path)
        with writing(path), path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(
                ["time [s]", *(f"{name} [{unit}]" if unit else name for name, unit, _ in columns)]
            )
            for k, t in enumerate(self.time):
                numbers = [float(x[k]) for _, _, x in columns]
                writer.writerow([repr(float(t)), *("" if math.isnan(x) else repr(x) for x in numbers)])
        return path

    def to_pandas(self) -> DataFrame:
        """One row per record, times as index, a column per coordinate, speed and effort; one motion only."""
        try:
            import pandas
        except ImportError:
            raise UnsupportedError(
                'to_pandas: pandas is not installed; pip install "alembert[data]"'
            ) from None
        if self.q.ndim > 2:
            raise ArgumentError("to_pandas: the run is a batch of motions; to_xarray keeps them all")
        columns = self._columns()
        frame = pandas.DataFrame(
            {name: x for name, _, x in columns}, index=pandas.Index(self.time, name="time")
        )
        frame.attrs = {
            "model": self.model.name,
            "units": {name: unit for name, unit, _ in columns} | {"time": "s"},
        }
        return frame

    def to_xarray(self) -> Dataset:
        """With names and units; needs xarray (pip install alembert[data])."""
        from alembert.model.io.native import dumps

        xarray = netcdf.imported_xarray("to_xarray")
        model = self.model
        batch = [f"motion{k}" if k else "motion" for k in range(self.q.ndim - 2)]
        coords: dict[str, Any] = {
            "time": ("time", self.time, {"units": "s"}),
            "coordinate": ("coordinate", list(model.coordinate_names)),
            "speed": ("speed", list(model.speed_names)),
            "coordinate_unit": ("coordinate", list(model.space.coordinate_units)),
            "speed_unit": ("speed", list(model.space.speed_units)),
        }
        data: dict[str, Any] = {
            "q": ([*batch, "time", "coordinate"], self.q),
            "v": ([*batch, "time", "speed"], self.v),
            "tau": ([*batch, "time", "speed"], self.efforts),
        }
        attributes: dict[str, Any] = {
            "model": model.name,
            "integrator": self.integrator,
            "fingerprint": model.fingerprint,
        }
        if self.step is not None:
            attributes["step"] = self.step
        with suppress(UnsupportedError):  # joints made by a program have no text
            attributes["model_toml"] = dumps(model)
        for one in self._settings.record:
            channel = self.recorded[one.name]
            along = "time" if one.rate is None else f"time_{one.rate:g}Hz"
            coords.setdefault(along, (along, channel.time, {"units": "s"}))
            units = set(channel.units)
            attrs = {"units": units.pop() if len(units) == 1 else ", ".join(channel.units)}
            if one.components:
                part = f"{one.name}.component"
                coords[part] = (part, list(channel.components))
                data[one.name] = ([*batch, along, part], channel.values, attrs)
            else:
                data[one.name] = ([*batch, along], channel.values[..., 0], attrs)
        return xarray.Dataset(data, coords, attributes)

    def save(self, path: str | Path) -> Path:
        """To netCDF (.nc, needs xarray) or CSV (.csv), by the name's ending; `load_run` goes on from netCDF."""
        path = Path(path)
        if path.suffix == ".csv":
            return self.to_csv(path)
        if path.suffix != ".nc":
            raise ArgumentError(f"save: {path.name} ends with {path.suffix!r}, expected .nc or .csv")
        from alembert.simulate import restart

        netcdf.write(restart.add_to(self.to_xarray(), self), path)
        return path
