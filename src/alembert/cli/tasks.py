"""Commands that are one task each: the same code as in run files, options instead of keys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alembert.cli import console
from alembert.cli.app import FAILED
from alembert.cli.models import complete_joint, load_model
from alembert.errors import ArgumentError

if TYPE_CHECKING:
    from alembert.study.task import Task, TaskResult


def _values(what: str) -> Any:
    return typer.Option(
        metavar="JOINT=VALUE",
        help=f"{what} May be repeated.",
        autocompletion=complete_joint,
    )


Position = Annotated[
    list[str] | None, _values("Coordinates of a joint (pivot=pi/2, or with commas); others are neutral.")
]
Speed = Annotated[list[str] | None, _values("Speeds of a joint; others are zero.")]
Effort = Annotated[list[str] | None, _values("Constant efforts on a joint; others are zero.")]


def output(what: str) -> Any:
    """An option for a file to write."""
    return typer.Option(metavar="FILE", help=what, show_default=False)


def perform(
    kind: type[Task],
    model: str,
    options: Mapping[str, Any],
    outputs: Mapping[str, Path | None],
    *,
    as_json: bool,
    floating: bool = False,
    package_dirs: list[Path] | None = None,
    strict: bool = False,
) -> None:
    """Run a task and say what it found; options that are None are left at their defaults."""
    from alembert.study.run import write_outputs
    from alembert.study.task import OptionError, Setting, checked

    paths = {key: path for key, path in outputs.items() if path is not None}
    for key, path in paths.items():
        suffixes = kind.OUTPUTS[key].suffixes
        if path.suffix not in suffixes:
            raise ArgumentError(f"--{key} {path}: expected a name that ends with {' or '.join(suffixes)}")
    try:
        task = checked(kind, {key: value for key, value in options.items() if value is not None})
        found = load_model(model, floating, package_dirs, strict)
        with console.working(f"{options.get('type', kind.model_fields['type'].default)}: {found.name}"):
            outcome: TaskResult = task.run(found, Setting(Path(), console.progress()))
    except OptionError as error:
        option, *rest = map(str, error.place)
        name = " ".join([f"--{option.replace('_', '-')}", *rest])
        raise ArgumentError(f"{name}: {error.what}") from None
    files = write_outputs(outcome, paths)
    say(outcome, files, as_json)


def say(outcome: TaskResult, files: Mapping[str, Path], as_json: bool) -> None:
    listed = [f"wrote {path}" for path in files.values()]
    data = {**outcome.data, "files": {kind: str(path) for kind, path in files.items()}}
    console.answer(data, as_json, *outcome.parts, *listed)
    if not outcome.ok:
        raise typer.Exit(FAILED)
