"""What drives and watches a simulation in a run file: controllers and events.

    [[task.controllers]]                        [[task.events]]
    type = "pd"                                 quantity = "frame:tip.position.z"
    target = { elbow = 0.5 }                    below = 0.1
    stiffness = { elbow = 40 }                  action = "stop"
    damping = { elbow = 4 }

Controllers add up: `pd` by joint; `feedback` with a row of gains for each degree of freedom that it drives,

    tau = -K (q (-) target, v)                                                       (1)

which is what a linear-quadratic regulator is; and `python`, a function of a file beside the run file.
"""

from __future__ import annotations

import functools
import importlib.util
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field, StrictStr

from alembert.arguments import unknown
from alembert.errors import AlembertError, FileError
from alembert.model import Model
from alembert.model.io.location import Place
from alembert.model.io.schema import FileTable
from alembert.study.task import Number, Numbers, OptionError, Positive, Setting, fill

if TYPE_CHECKING:
    from alembert.simulate import Event, Forces

Array = np.ndarray
Law = Callable[[float, Array, Array], Any]


class ControllerEntry(FileTable):
    """What all controllers have."""

    period: Positive | None = Field(
        default=None, description="Asked at these intervals and held, in seconds; without it, continuous."
    )
    delay: Positive | None = Field(
        default=None, description="Of the answers of a controller with a period, in seconds."
    )

    def law(self, model: Model, place: Place, setting: Setting) -> tuple[Law, tuple[Path, ...]]:
        """The function, and the files that it came from."""
        raise NotImplementedError


class _Towards(ControllerEntry):
    target: dict[str, Numbers] = Field(default={}, description="Coordinates by joint; others are neutral.")
    limit: dict[str, Positive] = Field(
        default={}, description="The largest effort by degree of freedom; others have none."
    )

    def _target(self, model: Model, place: Place) -> Array:
        q = model.neutral()
        fill(model, q, (*place, "target"), self.target, model.q_slice)
        return q

    def _limits(self, model: Model, place: Place) -> Array:
        most = np.full(model.nv, np.inf)
        for name, value in self.limit.items():
            most[_dof(model, name, (*place, "limit", name))] = value
        return most


class PDEntry(_Towards):
    """Springs and dampers towards a target: efforts stiffness (target (-) q) - damping v."""

    type: Literal["pd"] = "pd"
    stiffness: dict[str, Numbers] = Field(
        default={}, description="By joint, N m/rad or N/m; others have none."
    )
    damping: dict[str, Numbers] = Field(
        default={}, description="By joint, N m s/rad or N s/m; others have none."
    )

    def law(self, model: Model, place: Place, setting: Setting) -> tuple[Law, tuple[Path, ...]]:
        from alembert.simulate import Batched

        target, most = self._target(model, place), self._limits(model, place)
        gains = np.zeros((2, model.nv))
        for row, which in zip(gains, ("stiffness", "damping"), strict=True):
            fill(model, row, (*place, which), getattr(self, which), model.v_slice)
        k, d = gains

        def law(t: float, q: Array, v: Array) -> Array:
            return np.clip(k * model.difference(q, target) - d * v, -most, most)

        return Batched(law), ()


class FeedbackEntry(_Towards):
    """Efforts -K (q (-) target, v), with a row of K for each degree of freedom that is driven."""

    type: Literal["feedback"] = "feedback"
    gains: dict[str, Numbers] = Field(
        description="By degree of freedom, a row: gains of all displacements, then of all speeds."
    )

    def law(self, model: Model, place: Place, setting: Setting) -> tuple[Law, tuple[Path, ...]]:
        from alembert.simulate import Batched

        target, most = self._target(model, place), self._limits(model, place)
        K = np.zeros((model.nv, 2 * model.nv))
        for name, row in self.gains.items():
            if len(row) != 2 * model.nv:
                raise OptionError(
                    (*place, "gains", name),
                    f"has {len(row)} gains, expected {2 * model.nv}: of {model.nv} displacements, then of {model.nv} speeds",
                )
            K[_dof(model, name, (*place, "gains", name))] = row

        def law(t: float, q: Array, v: Array) -> Array:
            x = np.concatenate([model.difference(target, q), v], axis=-1)
            return np.clip(-x @ K.T, -most, most)  # (1)

        return Batched(law), ()


class PythonEntry(ControllerEntry):
    """A function u(t, q, v) that gives efforts, as an array or by joint."""

    type: Literal["python"] = "python"
    function: StrictStr = Field(description="FILE.py:NAME, the file relative to the run file.")
    reads: list[StrictStr] = Field(
        default=[],
        description="Sensors: the function is then one of t and of what they delivered last, by name; needs a period.",
    )

    def law(self, model: Model, place: Place, setting: Setting) -> tuple[Law, tuple[Path, ...]]:
        function, path = load_function(self.function, (*place, "function"), setting.folder)
        return function, (path,)


AnyControllerEntry = Annotated[PDEntry | FeedbackEntry | PythonEntry, Field(discriminator="type")]
KINDS = ("pd", "feedback", "python")


class EventEntry(FileTable):
    """A quantity, or a function, that passes a value."""

    quantity: StrictStr | None = Field(
        default=None,
        description="As in record: elbow, v:elbow, frame:tip.position.z, center_of_mass.z, kinetic_energy, ...",
    )
    function: StrictStr | None = Field(
        default=None, description="Instead of a quantity: FILE.py:NAME, a function of t, q and v."
    )
    above: Number | None = Field(default=None, description="It happens when the quantity rises above this.")
    below: Number | None = Field(default=None, description="It happens when the quantity falls below this.")
    action: Literal["stop", "note"] = Field(
        default="stop", description="stop ends the run; note only logs when."
    )
    name: StrictStr = Field(default="", description="In the log; by default what is watched.")


@dataclass(frozen=True, eq=False)
class WatchedModel:
    """Of what quantities are told: the model under its gravity, with its parameters and the force elements that act."""

    model: Model
    parameters: Mapping[str, float] | None = None
    elements: Sequence[Any] = ()

    @cached_property
    def forces(self) -> Forces | None:
        from alembert.simulate import Forces

        return Forces(self.model, list(self.elements)) if self.elements else None


def laws(
    controllers: Sequence[ControllerEntry],
    events: Sequence[EventEntry],
    watched: WatchedModel,
    setting: Setting,
    sensors: Collection[str] = (),
) -> tuple[list[Any], list[Event], tuple[Path, ...]]:
    """For `simulate`: controllers, events, and the files in which their functions are."""
    from alembert.simulate import Sampled

    model = watched.model
    laws: list[Any] = []
    files: list[Path] = []
    for k, controller in enumerate(controllers):
        law, used = controller.law(model, ("controllers", k), setting)
        files += used
        if controller.delay is not None and controller.period is None:
            raise OptionError(("controllers", k, "delay"), "is given without a period")
        reads = tuple(getattr(controller, "reads", ()))
        if reads and controller.period is None:
            raise OptionError(("controllers", k, "reads"), "is given without a period")
        for name in reads:
            if name not in sensors:
                raise OptionError(("controllers", k, "reads"), unknown("there is no sensor", name, sensors))
        if controller.period is not None:
            law = Sampled(law, controller.period, controller.delay or 0.0, reads=reads)  # type: ignore[assignment]
        laws.append(law)
    found = []
    for k, table in enumerate(events):
        event, used = _event(table, ("events", k), watched, setting)
        found.append(event)
        files += used
    return laws, found, tuple(dict.fromkeys(files))


# --- events -------------------------------------------------------------------------------------------------


def _event(
    table: EventEntry, place: Place, watched: WatchedModel, setting: Setting
) -> tuple[Event, tuple[Path, ...]]:
    from alembert.simulate import Event

    if (table.quantity is None) == (table.function is None):
        raise OptionError(place, "expected either quantity or function")
    if (table.above is None) == (table.below is None):
        raise OptionError(place, "expected either above or below")
    rising = table.above is not None
    bound: Any = table.above if rising else table.below
    level = float(bound)
    files: tuple[Path, ...] = ()
    if table.quantity is not None:
        value: Law = quantity(watched, table.quantity, (*place, "quantity"))
    else:
        value, path = load_function(str(table.function), (*place, "function"), setting.folder)
        files = (path,)

    def passed(t: float, q: Array, v: Array) -> float:
        x = np.asarray(value(t, q, v), dtype=float)
        if x.size != 1:
            raise OptionError((*place, "function"), f"returned {x.size} numbers, expected one")
        return float(x.reshape(())) - level

    name = table.name or f"{table.quantity or table.function} {'above' if rising else 'below'} {level:g}"
    return Event(passed, name, 1 if rising else -1, table.action), files


class _Instant:
    """One state, with what a channel reads of a run; the rest is not known when events are looked for."""

    def __init__(self, watched: WatchedModel, q: Array, v: Array) -> None:
        self.model, self.parameters, self._forces = watched.model, watched.parameters, watched.forces
        self.q, self.v = q[None], v[None]

    @property
    def kinetic_energy(self) -> Array:
        return self.model.kinetic_energy(self.q, self.v, parameters=self.parameters)

    @property
    def potential_energy(self) -> Array:
        own = self.model.potential_energy(self.q, parameters=self.parameters)
        return (
            own if self._forces is None else own + self._forces.potential(self.q, parameters=self.parameters)
        )

    @property
    def energy(self) -> Array:
        return self.kinetic_energy + self.potential_energy

    @property
    def momentum(self) -> Array:
        return self.model.momentum(self.q, self.v, about="world", parameters=self.parameters)


def quantity(watched: WatchedModel, text: str, place: Place) -> Law:
    """A number by name as a function of the state, as `record` has it; `.x`, `.y`, ... choose a component."""
    from alembert.simulate.channels import Request, request

    model = watched.model

    def found(name: str) -> Request | None:
        try:
            return request(model, name)
        except AlembertError:
            return None

    words = text.split(".")
    splits = [(".".join(words[:k]), ".".join(words[k:])) for k in range(len(words), 0, -1)]
    chosen, component = next(((of, rest) for base, rest in splits if (of := found(base))), (None, ""))
    if chosen is None:
        try:
            request(model, text)
        except AlembertError as error:
            raise OptionError(place, str(error).removeprefix("simulate: record: ")) from None
    assert chosen is not None
    names = chosen.components
    if component and component not in names:
        raise OptionError(place, unknown(f"{chosen.name!r} has no component", component, names))
    if not component and len(names) > 1:
        listed = ", ".join(f"{text}.{c}" for c in names)
        raise OptionError(place, f"{text!r} has {len(names)} components, expected one of {listed}")
    column = names.index(component) if component else 0

    def value(t: float, q: Array, v: Array) -> float:
        x = np.asarray(chosen.values(_Instant(watched, q, v)))  # type: ignore[arg-type]
        return float(x.reshape(-1)[column])

    try:
        value(0.0, model.neutral(), np.zeros(model.nv))
    except AttributeError:
        raise OptionError(
            place, f"{text!r} depends on accelerations or efforts; events can watch what the state tells"
        ) from None
    return value


# --- functions of files -------------------------------------------------------------------------------------


def load_function(text: str, place: Place, folder: Path) -> tuple[Law, Path]:
    """FILE.py:NAME; errors inside it are told with the file and line in which they happened."""
    file, colon, name = text.rpartition(":")
    if not colon or not file.endswith(".py") or not name.isidentifier():
        raise OptionError(place, f"is {text!r}, expected FILE.py:NAME, such as law.py:swing_up")
    path = folder / file
    if not path.is_file():
        raise OptionError(place, f"{path}: there is no such file")
    spec = importlib.util.spec_from_file_location(f"alembert_study_{path.stem}", path)
    assert spec is not None  # the suffix is .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _Telling(path):
        spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise OptionError(place, f"{path}: " + unknown("has no function", name, known))

    @functools.wraps(function)  # what it takes can be seen
    def told(t: float, *states: Any) -> Any:
        with _Telling(path):
            return function(t, *states)

    return told, path


class _Telling:
    """Errors of a user's file as `FileError`s with its line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None or not isinstance(error, Exception) or isinstance(error, AlembertError):
            return
        lines = [
            x.lineno for x in traceback.extract_tb(trace) if Path(x.filename).resolve() == self.path.resolve()
        ]
        line = error.lineno if isinstance(error, SyntaxError) else (lines or [None])[-1]
        at = f"{self.path}:{line}" if line else str(self.path)
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        raise FileError(f"{at}: {type(error).__name__}: {text}") from error


def _dof(model: Model, name: str, place: Place) -> int:
    try:
        return model.speed_names.index(name)
    except ValueError:
        text = unknown(f"model {model.name!r} has no degree of freedom", name, model.speed_names)
        raise OptionError(place, text) from None
