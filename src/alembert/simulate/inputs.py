"""What acts on a model in a run (`Inputs`) and how the run is made (`Settings`): read once, and passed on as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from alembert.arguments import is_number, mapping, names
from alembert.errors import ArgumentError, UnsupportedError
from alembert.model import Model
from alembert.model.printing import unknown
from alembert.simulate.actuators import Drive, checked, with_gears
from alembert.simulate.channels import Request
from alembert.simulate.events import Event, Lock, Release, extended
from alembert.simulate.gravity import GravityField
from alembert.simulate.impacts import JointStops, PlaneImpact

Array = np.ndarray
METHODS = ("projection", "baumgarte", "ggl")
RUNGE_KUTTA = ("rk4", "midpoint")


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
        if self.method not in METHODS:
            raise ArgumentError(unknown("simulate: no stabilisation", self.method, METHODS))
        if not (is_number(self.rate) and self.rate > 0):
            raise ArgumentError(
                f"simulate: stabilisation_rate is {self.rate!r}, expected a positive rate in 1/s"
            )

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
