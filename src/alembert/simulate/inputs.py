"""What acts on a model in a run (`Inputs`) and how the run is made (`Settings`): read once, and passed on as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from alembert.errors import ArgumentError
from alembert.model import Model
from alembert.simulate.actuators import Drive, checked, with_gears
from alembert.simulate.channels import Request
from alembert.simulate.events import Event, Lock, Release, extended
from alembert.simulate.gravity import GravityField
from alembert.simulate.impacts import JointStops, PlaneImpact


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
        return tuple(Lock(name) for name in ((self.locked,) if isinstance(self.locked, str) else self.locked))

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


def as_sequence(given: Any) -> Sequence[Any]:
    """What may be given alone or as a list."""
    return given if isinstance(given, list | tuple) else (given,)
