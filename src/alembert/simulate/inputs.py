"""What acts on a model in a run: as it is given (`Inputs`), as tables and loads, and how the run is made (`Settings`).

Tables are quantities given at instants. Between them `hold` keeps a value until the next instant, `linear` joins them by
lines, `cubic` by a spline with continuous second derivative (not-a-knot ends). `Loads` are efforts, wrenches, tables and
force elements: all that acts besides controllers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Any

import casadi as ca
import numpy as np
import scipy

from alembert.arguments import check_known, check_takes, mapping, names, real
from alembert.errors import ArgumentError, UnsupportedError
from alembert.model import WORLD, Model
from alembert.simulate.actuators import Drive, checked, with_gears
from alembert.simulate.channels import Request
from alembert.simulate.closed_loops import ReactionLoads
from alembert.simulate.controllers import for_each
from alembert.simulate.elements import ElementForces, Elements, Places, reactions_read
from alembert.simulate.events import Event, Lock, Release, extended
from alembert.simulate.forces import GravityField
from alembert.simulate.impacts import JointStops, PlaneImpact

Array = np.ndarray
METHODS = ("projection", "baumgarte", "ggl")
RUNGE_KUTTA = ("rk4", "midpoint")
INTERPOLATIONS = ("hold", "linear", "cubic")
OUTSIDE = ("refuse", "hold", "zero")
MOST_COMPILED = 400
"""instants up to which a table is part of the compiled loop; longer ones are looked up in Python"""


@dataclass(frozen=True, eq=False)
class Inputs:
    """All that acts, as `simulate` takes it; a field that is left out stands for nothing."""

    controller: Any = None
    efforts: Any = None
    wrenches: Mapping[str, Any] | None = None
    prescribed: Mapping[str, Any] | None = None
    drives: Mapping[str, Drive] | None = None
    sensors: Any = ()
    events: Any = ()
    locked: Any = ()
    parameters: Mapping[str, Any] | None = None
    gravity: Any = None
    forces: Any = ()

    def __post_init__(self) -> None:
        for name in ("wrenches", "prescribed", "parameters"):
            mapping("simulate", name, getattr(self, name))
        locked = () if self.locked is None else self.locked
        object.__setattr__(
            self, "locked", (locked,) if isinstance(locked, str) else names("simulate", "locked", locked)
        )

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(x.name for x in fields(cls))

    @property
    def by_name(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.names()}

    @cached_property
    def watched(self) -> tuple[Event | JointStops | PlaneImpact, ...]:
        """The events, checked."""
        found = tuple(as_sequence(self.events))
        for event in found:
            if not isinstance(event, Event | JointStops | PlaneImpact):
                raise ArgumentError(
                    f"simulate: events has {event!r}, expected Event(function, ...), JointStops(...) or PlaneImpact(...)"
                )
        return found

    @cached_property
    def stops(self) -> tuple[JointStops, ...]:
        return tuple(event for event in self.watched if isinstance(event, JointStops))

    @cached_property
    def locks(self) -> tuple[Lock, ...]:
        """Of joints that are locked from the start."""
        return tuple(Lock(name) for name in self.locked)

    @cached_property
    def actions(self) -> tuple[Any, ...]:
        """Of all events, one by one."""
        given = [event.action for event in self.watched if isinstance(event, Event)]
        return tuple(x for action in given for x in (action if isinstance(action, tuple) else (action,)))

    @property
    def releases(self) -> bool:
        """Whether events may end constraints of the model."""
        return any(isinstance(action, Release) for action in self.actions)

    @property
    def field(self) -> GravityField | None:
        """A gravity that depends on the place."""
        return self.gravity if isinstance(self.gravity, GravityField) else None

    def model(self, model: Model) -> Model:
        """The model with the rotors of its drives, under the gravity that is given."""
        if self.drives is not None:
            model = with_gears(model, checked(self.drives))
        if self.gravity is None:
            return model
        return model.replace(gravity=(0, 0, 0) if self.field is not None else self.gravity)

    def with_switches(self, model: Model) -> Model:
        """The model with all constraints that events may bring about."""
        resting = [name for stops in self.stops for name in stops.resting(model)]
        actions = [*self.locks, *self.actions]
        return extended(model, actions, list(dict.fromkeys(resting))) if actions or resting else model


@dataclass(frozen=True, eq=False)
class Settings:
    """How a run is made, and what it keeps; times in seconds."""

    duration: float
    step: float | None = None
    interval: float | None = None
    start: float = 0.0
    tolerance: float = 1e-9
    absolute_tolerance: float = 1e-11
    origin: float | None = None
    """the start of the run that this one goes on, with error control: records are multiples of the interval from there"""
    events: tuple[Event, ...] = ()
    """one by one, those of stops and planes among them"""
    record: tuple[Request, ...] = ()
    progress: bool | None = None
    inputs: Inputs = Inputs()

    @property
    def first_start(self) -> float:
        return self.start if self.origin is None else self.origin


@dataclass(frozen=True)
class Stabilisation:
    """How closed loops stay so: exactly, by projection at the ends of steps, or by feedback at a `rate` [1/s]."""

    method: str = "projection"
    rate: float = 20.0

    def __post_init__(self) -> None:
        check_known("simulate: no stabilisation", self.method, METHODS)
        real("simulate", "stabilisation_rate", self.rate, "a positive rate in 1/s", over=0.0)

    def check(self, model: Model, integrator: str) -> None:
        if self.method == "projection":
            return
        if not model.is_constrained:
            raise ArgumentError(f"simulate: stabilisation {self.method!r}, but the model has no constraints")
        if integrator == "variational":
            raise UnsupportedError(
                f"simulate: stabilisation {self.method!r} and integrator 'variational' do not go together; its steps keep "
                "loops closed without"
            )
        if self.method == "ggl" and integrator not in RUNGE_KUTTA:
            raise UnsupportedError(
                f"simulate: stabilisation 'ggl' and integrator {integrator!r} do not go together; choose "
                f"{' or '.join(map(repr, RUNGE_KUTTA))}"
            )

    def rates(self, v: Array, a: Array, x: Array, y: Array) -> tuple[Array, Array]:
        """q' and v' of (2) or (3)."""
        r = self.rate
        if self.method == "baumgarte":
            return v, a + 2 * r * y + r * r * x
        return v + r * x, a + r * y


def as_sequence(given: Any) -> Sequence[Any]:
    """What may be given alone or as a list."""
    return given if isinstance(given, list | tuple) else (given,)


@dataclass(frozen=True, eq=False)
class Table:
    """`values` (N,) or (N, width) at `times` (N,), ascending.

    `outside` says what holds before the first and after the last instant: "refuse" a run that goes there, "hold" the
    value at the end, or "zero". A `hold` table keeps its last value after the last instant anyway.
    """

    times: Any = field(repr=False)
    values: Any = field(repr=False)
    interpolation: str = "linear"
    outside: str = "refuse"

    def __post_init__(self) -> None:
        try:
            times, values = (np.array(x, dtype=float) for x in (self.times, self.values))
        except (TypeError, ValueError):
            raise ArgumentError("Table: times and values, expected numbers") from None
        if self.interpolation not in INTERPOLATIONS:
            raise ArgumentError(
                f"Table: interpolation is {self.interpolation!r}, expected one of {', '.join(INTERPOLATIONS)}"
            )
        if self.outside not in OUTSIDE:
            raise ArgumentError(f"Table: outside is {self.outside!r}, expected one of {', '.join(OUTSIDE)}")
        least = {"hold": 1, "linear": 2, "cubic": 4}[self.interpolation]
        if times.ndim != 1 or len(times) < least:
            raise ArgumentError(
                f"Table: times have shape {times.shape}, expected at least {least} instants for {self.interpolation!r}"
            )
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or len(values) != len(times):
            raise ArgumentError(
                f"Table: values have shape {np.shape(self.values)}, expected ({len(times)},) or ({len(times)}, width)"
            )
        if not (np.isfinite(times).all() and np.isfinite(values).all()):
            raise ArgumentError("Table: times and values, expected finite numbers")
        if np.any(np.diff(times) <= 0):
            k = int(np.argmax(np.diff(times) <= 0))
            raise ArgumentError(
                f"Table: times {times[k]:g} and {times[k + 1]:g}, expected ascending instants"
            )
        for name, x in (("times", times), ("values", values)):
            x.flags.writeable = False
            object.__setattr__(self, name, x)

    @property
    def fingerprint(self) -> str:
        """Of the content, the same in every process."""
        digest = hashlib.sha256(f"{self.interpolation} {self.outside} {self.values.shape}".encode())
        digest.update(self.times.tobytes() + self.values.tobytes())
        return digest.hexdigest()

    @property
    def width(self) -> int:
        return int(self.values.shape[1])

    @property
    def is_compiled(self) -> bool:
        return self.interpolation != "hold" and len(self.times) <= MOST_COMPILED

    @property
    def breaks(self) -> Array:
        """Where the quantity or its slope jumps."""
        found = self.times if self.interpolation != "cubic" else self.times[:0]
        return np.unique(np.r_[found, self.times[[0, -1]]]) if self.outside != "refuse" else found

    def check_range(self, what: str, start: float, end: float) -> None:
        """Refuse a run that leaves the table."""
        first, last = float(self.times[0]), float(self.times[-1])
        late = end > last + 1e-9 * max(1.0, abs(last)) and self.interpolation != "hold"
        if self.outside == "refuse" and (start < first - 1e-12 or late):
            raise ArgumentError(
                f"simulate: {what}: the table goes from {first:g} to {last:g} s, the run from {start:g} to {end:g} s; "
                "Table(..., outside='hold') or 'zero' says what holds outside"
            )

    @cached_property
    def _coefficients(self) -> Array:
        """(4, intervals, width): of the cube first, about the start of the interval."""
        times, values = self.times, self.values
        if self.interpolation == "cubic":
            return np.asarray(scipy.interpolate.CubicSpline(times, values).c)
        if self.interpolation == "linear":
            slopes = np.diff(values, axis=0) / np.diff(times)[:, None]
            return np.stack([0 * slopes, 0 * slopes, slopes, values[:-1]])
        return np.stack([0 * values, 0 * values, 0 * values, values])

    @cached_property
    def _pieces(self) -> tuple[Array, Array]:
        """Starts of pieces, the first holding for all times before the second, and their coefficients."""
        c, starts = self._coefficients, self.times[: self._coefficients.shape[1]]
        if self.outside == "refuse" and self.interpolation != "hold":
            return starts, c
        first, last = np.zeros((4, 1, self.width)), np.zeros((4, 1, self.width))
        if self.outside == "hold":
            first[3, 0], last[3, 0] = self.values[0], self.values[-1]
        if self.interpolation == "hold":
            last[3, 0] = 0.0 if self.outside == "zero" else self.values[-1]
            first[3, 0] = self.values[0] if self.outside == "hold" else 0.0
            c = c[:, :-1]
            starts = starts[:-1]
        starts = np.r_[self.times[0] - 1.0, starts, self.times[-1]]
        return starts, np.concatenate([first, c, last], axis=1)

    def __call__(self, t: float, *_: Any, order: int = 0) -> Array:
        """The value at a time, or a derivative of it."""
        starts, c = self._pieces
        k = max(int(np.searchsorted(starts, t, side="right")) - 1, 0)
        x, a = t - starts[k], c[:, k]
        if order == 0:
            return ((a[0] * x + a[1]) * x + a[2]) * x + a[3]
        if order == 1:
            return (3 * a[0] * x + 2 * a[1]) * x + a[2]
        return 6 * a[0] * x + 2 * a[1]

    def derivatives(self, t: float) -> tuple[Array, Array, Array]:
        """The value, its rate and its acceleration."""
        return self(t), self(t, order=1), self(t, order=2)

    def symbolic(self, t: ca.SX) -> ca.SX:
        """The value as an expression of t, (width)."""
        starts, c = self._pieces
        start: ca.SX = ca.SX(float(starts[0]))
        a: ca.SX = ca.SX(c[:, 0])
        for k in range(1, len(starts)):
            later = t >= float(starts[k])
            start = ca.if_else(later, float(starts[k]), start)
            a = ca.if_else(later, ca.SX(c[:, k]), a)
        x = t - start
        return (((a[0, :] * x + a[1, :]) * x + a[2, :]) * x + a[3, :]).T


def no_table_alone(function: str, model: Model) -> str:
    first = next((owner.name for owner in model.space if owner.type.nv), "joint")
    return f"{function}: efforts is a table, expected numbers, or tables by joint: efforts={{{first!r}: Table(...), ...}}"


@dataclass(frozen=True)
class EffortsAndTables:
    """Constant efforts (..., nv), and tables by joint."""

    numbers: Array
    tables: Mapping[str, Table]


class TimeTables:
    """The tables of a run."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.all: list[tuple[str, Table]] = []
        """all of them, and what they are for"""
        self._efforts: list[tuple[Array, Table]] = []
        self.wrenches: list[WrenchTable] = []
        """those that are compiled, as elements that act"""
        self.held_wrenches: dict[str, Table] = {}

    def take_efforts(self, efforts: Mapping[str, Any]) -> dict[str, Any]:
        """What is not a table."""
        model = self.model
        for name, value in efforts.items():
            if isinstance(value, Table):
                width = model.joint(name).type.nv if name in model.joint_indices else 1
                where = np.flatnonzero(
                    model.compute.by_name("simulate", {name: np.zeros(width)}, "efforts")[0]
                )
                if len(where) != value.width:
                    raise ArgumentError(
                        f"simulate: efforts: the table for {name!r} has width {value.width}, expected {len(where)}"
                    )
                self._efforts.append((where, value))
                self.all.append((f"efforts {name!r}", value))
        return {name: value for name, value in efforts.items() if not isinstance(value, Table)}

    def take_wrenches(self, wrenches: Mapping[str, Any]) -> dict[str, Any]:
        """What is not a table, and tables that are too long, which are functions of time like any other."""
        left = {}
        for frame, table in wrenches.items():
            if not isinstance(table, Table):
                left[frame] = table
                continue
            if table.width != 6:
                raise ArgumentError(
                    f"simulate: wrenches: the table for {frame!r} has width {table.width}, expected 6: moment, then force"
                )
            self.all.append((f"wrenches {frame!r}", table))
            if table.interpolation == "hold":
                self.held_wrenches[frame] = table
            elif table.is_compiled:
                self.wrenches.append(WrenchTable(frame, table))
            else:
                left[frame] = table
        return left

    def fed(self) -> ca.Function | None:
        """The efforts of tables that are compiled, as a function of t."""
        tables = self._by_kind["compiled"]
        if not tables:
            return None
        t, total = ca.SX.sym("t"), ca.SX.zeros(self.model.nv)
        for where, table in tables:
            total[where.tolist()] = table.symbolic(t)
        return ca.Function("fed", [t], [total])

    @cached_property
    def _by_kind(self) -> dict[str, list[tuple[Array, Table]]]:
        """Those of efforts: "held" from one instant to the next, "compiled", or "long", which are read in Python."""
        found: dict[str, list[tuple[Array, Table]]] = {"held": [], "compiled": [], "long": []}
        for where, table in self._efforts:
            moving = "compiled" if table.is_compiled else "long"
            found["held" if table.interpolation == "hold" else moving].append((where, table))
        return found

    @property
    def long(self) -> bool:
        """Whether some of efforts are too long to be compiled."""
        return bool(self._by_kind["long"])

    @property
    def acted_on(self) -> Array:
        """(nv,): where tables of efforts act."""
        found = np.zeros(self.model.nv, dtype=bool)
        for where, _ in self._efforts:
            found[where] = True
        return found

    def _read(self, tables: Sequence[tuple[Array, Table]], t: float) -> Array:
        total = np.zeros(self.model.nv)
        for where, table in tables:
            total[where] = table(t)
        return total

    def long_efforts(self, t: float) -> Array:
        """Of tables that are too long to be compiled."""
        return self._read(self._by_kind["long"], t)

    def held_efforts(self, t: float) -> Array:
        """Of tables that hold."""
        return self._read(self._by_kind["held"], t)

    def fed_efforts(self, time: Array) -> Array:
        """(N, nv): of tables that do not hold."""
        tables = [*self._by_kind["compiled"], *self._by_kind["long"]]
        if not tables:
            return np.zeros((len(time), self.model.nv))
        return np.array([self._read(tables, float(t)) for t in time])

    @property
    def holds(self) -> bool:
        """Whether some table holds."""
        return any(table.interpolation == "hold" for _, table in self.all)

    @cached_property
    def instants(self) -> Array:
        """Where tables that hold change."""
        found = [table.times for _, table in self.all if table.interpolation == "hold"]
        return np.unique(np.concatenate([np.zeros(0), *found]))

    @cached_property
    def breaks(self) -> Array:
        """Where the equations are not smooth in time."""
        return np.unique(np.concatenate([np.zeros(0), *(table.breaks for _, table in self.all)]))


@dataclass(frozen=True)
class WrenchTable:
    """A table of wrenches on a frame, in its axes, as one of the elements that act."""

    frame: str
    table: Table

    def check(self, model: Model) -> None:
        if model.frame(self.frame).body == WORLD:
            raise ArgumentError(f"simulate: wrench on frame {self.frame!r}, which does not move")

    def internal(self, model: Model) -> bool:
        return False

    def terms(self, at: Places) -> ElementForces:
        F, R = self.table.symbolic(at.t), at.pose(self.frame).rotation
        return ElementForces(efforts=at.efforts([(self.frame, ca.vertcat(R @ F[0:3], R @ F[3:6]))]))


class Loads:
    """`efforts` are constant, (..., nv). `parameters` gives the values of the model's parameters at present."""

    def __init__(self, model: Model, inputs: Inputs, parameters: Callable[[], Array]) -> None:
        self.model, self._parameters = model, parameters
        self.tables = TimeTables(model)
        self.efforts = self._efforts(inputs.efforts)
        bad = np.argwhere(~np.isfinite(self.efforts))
        if len(bad):
            k = tuple(bad[0])
            raise ArgumentError(
                f"simulate: efforts is {self.efforts[k]} for {model.speed_names[k[-1]]!r}, expected finite numbers"
            )
        self._sort_wrenches(inputs.wrenches or {})
        field = [] if inputs.field is None else [inputs.field]
        elements = [*as_sequence(inputs.forces), *field, *self.tables.wrenches]
        reading = [x for x in elements if reactions_read(x)]
        elements = [x for x in elements if not reactions_read(x)]
        self.reading = ReactionLoads(model, reading) if reading else None
        """the elements that read reactions"""
        fed = self.tables.fed()
        self.elements = Elements(model, elements, fed) if elements or fed is not None else None

    @property
    def acted_on(self) -> Array:
        """(nv,): where constant efforts, or tables of them, act."""
        constant = np.any(self.efforts != 0, axis=tuple(range(self.efforts.ndim - 1)))
        return constant | self.tables.acted_on

    def _efforts(self, efforts: Any) -> Array:
        model = self.model
        if efforts is None:
            return np.zeros(model.nv)
        if isinstance(efforts, Mapping):
            efforts = self.tables.take_efforts(efforts)
            return model.compute.by_name("simulate", efforts, "efforts")[1]
        if isinstance(efforts, EffortsAndTables):
            self.tables.take_efforts(efforts.tables)
            efforts = efforts.numbers
        if isinstance(efforts, Table):
            raise ArgumentError(no_table_alone("simulate", model))
        return model.compute.numbers("simulate", "efforts", efforts, model.nv)

    def _sort_wrenches(self, wrenches: Mapping[str, Any]) -> None:
        left = self.tables.take_wrenches(wrenches)
        self.wrench_laws = {frame: law for frame, law in left.items() if callable(law)}
        self.wrenches = {frame: value for frame, value in left.items() if not callable(value)}
        for frame in wrenches:
            self.model.frame(frame)
        for frame, law in self.wrench_laws.items():
            check_takes(f"simulate: wrench on {frame!r}", law, "t", "q", "v")
        for frame, value in self.wrenches.items():
            if not np.isfinite(self._wrench(frame, value)).all():
                raise ArgumentError(
                    f"simulate: the wrench on {frame!r} is {value!r}, expected finite numbers"
                )

    @property
    def has_wrenches(self) -> bool:
        """Wrenches that come as numbers; those of compiled tables are among what acts."""
        return bool(self.wrenches or self.wrench_laws or self.tables.held_wrenches)

    def wrenches_at(self, t: float, q: Array, v: Array, within: float | None = None) -> dict[str, Any] | None:
        """Tables that hold are read at the time `within` the step or span, whatever stage t is."""
        if not self.has_wrenches:
            return None
        held = {
            frame: table(t if within is None else within)
            for frame, table in self.tables.held_wrenches.items()
        }
        given = {
            frame: for_each(law, t, q, v, batch=q.shape[:-1], read=partial(self._wrench, frame))
            for frame, law in self.wrench_laws.items()
        }
        return {**self.wrenches, **held, **given}

    def _wrench(self, frame: str, answer: Any) -> Array:
        hint = ": moment, then force"
        return self.model.compute.numbers("simulate", f"wrench on {frame!r}", answer, 6, hint)

    def _given(
        self,
        t: Any,
        q: Array,
        v: Array,
        *,
        along_time: bool = False,
        parameters: Mapping[str, Any] | None = None,
    ) -> list[Array]:
        given = [np.atleast_1d(np.asarray(t, dtype=float)), q, v]
        if self.model.parameters:
            if parameters is not None:
                p = self.model.compute.parameter_array("simulate", parameters)
            else:
                p = self._parameters()
                p = p[..., None, :] if along_time and p.ndim > 1 else p
            given.append(p)
        return given

    def elements_at(
        self,
        t: Any,
        q: Array,
        v: Array,
        *,
        along_time: bool = False,
        parameters: Mapping[str, Any] | None = None,
    ) -> tuple[Array, Array, Array, Array]:
        """Efforts of potentials, other efforts, efforts of compiled tables, and the potential (...,).

        `parameters` are those along the time, where masses fall.
        """
        assert self.elements is not None
        given = self._given(t, q, v, along_time=along_time, parameters=parameters)
        kept, other, fed, U = self.elements.kernel("numbers")(*given)
        return kept, other, fed, U[..., 0]

    def slopes(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """d/dq (tangent) and d/dv of the efforts of force elements."""
        assert self.elements is not None
        dq, dv = self.elements.kernel("slopes")(*self._given(t, q, v))
        return dq, dv

    def wrench_array(
        self, t: float, q: Array, v: Array, parameters: Mapping[str, Any] | None, within: float | None = None
    ) -> Array:
        """(..., nodes, 6) for the compiled loop."""
        found = self.wrenches_at(t, q, v, within)
        assert found is not None
        return self.model.compute.wrench_array("simulate", found, parameters)
