"""What a task is: options that a file or a command line gives, and a run that leaves an outcome."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import AfterValidator, Field, ValidationError

from alembert.arguments import unknown
from alembert.errors import AlembertError, ArgumentError
from alembert.model import Model
from alembert.model.io.location import Place, shown
from alembert.model.io.notes import explanations
from alembert.model.io.schema import Default, FileTable, annotation
from alembert.study.report import ReportPart

Array = np.ndarray
Write = Callable[[Path], Any]
PLOT = (".png", ".svg", ".pdf")
"""what figures are written as"""


class OptionError(ArgumentError):
    """An option that cannot be used: `place` is where it stands within the task."""

    def __init__(self, place: Place, what: str) -> None:
        super().__init__(f"{shown(place)}: {what}")
        self.place, self.what = place, what


@contextmanager
def described_at(*place: str) -> Iterator[None]:
    """Errors of what is made here are those of the place in the file that describes it."""
    try:
        yield
    except OptionError:
        raise
    except AlembertError as error:
        raise OptionError(place, str(error)) from None


def check_joint(model: Model, name: str, place: Place) -> None:
    if name not in model.joint_indices:
        joints = [joint.name for joint in model.joints if joint.type.nv]
        raise OptionError(place, unknown(f"model {model.name!r} has no joint", name, joints))


def check_parameter(model: Model, name: str, place: Place) -> None:
    if name not in model.parameter_values:
        raise OptionError(place, unknown("the model has no parameter", name, model.parameter_values))


@dataclass(frozen=True)
class OutputFile:
    """A file that a task can write."""

    suffixes: tuple[str, ...]
    """an empty one stands for a folder"""
    what: str
    default: str | None = None
    """the name where a run file gives none; None: not written"""


@dataclass(frozen=True, eq=False)
class TaskResult:
    """What a task found."""

    data: Mapping[str, Any]
    """for programs, the keys as in the task's `KEYS`"""
    parts: tuple[ReportPart, ...]
    """for people"""
    files: Mapping[str, Write] = field(default_factory=dict)
    """what writes each of the task's outputs"""
    figures: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    """for the report, by their headings"""
    scenes: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    """parts of an HTML report that can be moved, by their headings"""
    inputs: tuple[Path, ...] = ()
    """files that were read, beside the model"""
    seeds: Mapping[str, int] = field(default_factory=dict)
    model: Model | None = None
    """that the task made, where the file names none"""
    ok: bool = True


@dataclass(frozen=True)
class Setting:
    """Where a task runs."""

    folder: Path = Path()
    """what names of files are relative to"""
    progress: bool | None = None


class Task(FileTable):
    """Options of a task; subclasses say what it does."""

    KEYS: ClassVar[Mapping[str, str]] = {}
    OUTPUTS: ClassVar[Mapping[str, OutputFile]] = {}
    NEEDS_MODEL: ClassVar[bool] = True

    def run(self, model: Model, setting: Setting) -> TaskResult:
        raise NotImplementedError


def inside(folder: Path, path: Path) -> bool:
    """Whether a path is in a folder, links followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def checked(kind: type[Task], options: Mapping[str, Any]) -> Any:
    """A task from options; the first that cannot be used is an `OptionError`."""
    try:
        return kind.model_validate(dict(options))
    except ValidationError as invalid:
        place, what = explanations(invalid, dict(options), kinds=lambda _: ())[0]
        raise OptionError(place, what) from None


# --- values -------------------------------------------------------------------------------------------------


def _positive(value: float) -> float:
    if not value > 0:
        raise ValueError(f"is {value:g}, expected a positive number")
    return value


def _whole(value: int) -> int:
    if isinstance(value, bool) or value < 1:
        raise ValueError(f"is {value}, expected a positive whole number")
    return value


def _finite(values: tuple[Any, ...]) -> tuple[Any, ...]:
    for value in values:
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"is {value:g}, expected a finite number")
    return values


Number: Any = Default
Positive: Any = Annotated[Number, AfterValidator(_positive)]
Count: Any = Annotated[int, Field(strict=True), AfterValidator(_whole)]
Numbers: Any = Annotated[annotation(tuple[float, ...]), AfterValidator(_finite)]
"""one number or a list of them"""


class FromState(Task):
    """A task that starts from a state."""

    position: dict[str, Numbers] = Field(
        default={},
        description='Coordinates by joint: a number, a formula such as "pi/2", or a list; others are neutral.',
    )
    speed: dict[str, Numbers] = Field(default={}, description="Speeds by joint; others are zero.")
    parameters: dict[str, Number] = Field(
        default={}, description="Parameters of the model, where not at their defaults."
    )

    def coordinates(self, model: Model) -> Array:
        q = model.neutral()
        fill(model, q, ("position",), self.position, model.q_slice)
        return q

    def speeds(self, model: Model, which: str = "speed", values: Mapping[str, Any] | None = None) -> Array:
        """Any vector over the degrees of freedom."""
        x = np.zeros(model.nv)
        fill(model, x, (which,), getattr(self, which) if values is None else values, model.v_slice)
        return x

    def parameter_values(self, model: Model) -> dict[str, float] | None:
        for name in self.parameters:
            check_parameter(model, name, ("parameters", name))
        return dict(self.parameters) or None


class AtState(FromState):
    """A task about a state and the efforts there."""

    effort: dict[str, Numbers] = Field(default={}, description="Constant efforts by joint; others are zero.")


def fill(model: Model, x: Array, place: Place, values: Mapping[str, Any], at: Callable[[str], slice]) -> None:
    """Put values by joint into a vector; `place` is where the table of them stands within the task."""
    for name, entries in values.items():
        check_joint(model, name, (*place, name))
        s = at(name)
        if len(entries) != s.stop - s.start:
            labels = getattr(model.joint(name).type, "coordinates" if at == model.q_slice else "speeds")
            listed = ", ".join(label for label, _ in labels)
            raise OptionError(
                (*place, name),
                f"expected {len(labels)} number{'s' * (len(labels) != 1)} ({listed}), got {len(entries)}",
            )
        x[s] = entries


def by_joint(model: Model, x: Array) -> dict[str, Any]:
    """A vector as plain data by joint, single numbers where a joint has one."""
    return {name: part.tolist() if part.size > 1 else float(part[0]) for name, part in model.split(x).items()}
