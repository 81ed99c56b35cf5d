"""Run files: a TOML file that names a model, a task with its options, and the outputs.

Errors name file and line; keys that are not known are refused with the nearest that is.
"""

from __future__ import annotations

import functools
import operator
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StrictStr, ValidationError, create_model

from alembert.arguments import unknown
from alembert.errors import AlembertError, ArgumentError, FileError
from alembert.model.io import toml
from alembert.model.io.location import Place, Source, read_text
from alembert.model.io.notes import explanations, walk
from alembert.model.io.schema import FileTable, check_format
from alembert.study.laws import KINDS
from alembert.study.task import OptionError, OutputFile, Task, inside
from alembert.study.tasks import TASKS
from alembert.study.tasks.simulate import kinds_at

FORMAT = "alembert-study"
VERSION = 1
_MOST_ERRORS = 5

EVERY_TASK: dict[str, OutputFile] = {
    "report": OutputFile((".html", ".md"), "what was asked, found and drawn", "report.html"),
    "manifest": OutputFile((".json",), "versions, seeds, and hashes of inputs and outputs", "manifest.json"),
}


class StudyEntry(FileTable):
    """A study: a model, a task, and what to write."""

    format: Literal["alembert-study"] = Field(description="Tells run files from other TOML files.")
    version: Literal[1] = Field(description="Of the format.")
    name: StrictStr | None = Field(default=None, description="A title; the name of the file.")
    model: StrictStr = Field(
        default="",
        description="A model file, relative to this file, or a model of the library (library:acrobot).",
    )
    floating: bool = Field(default=False, strict=True, description="URDF: put a free joint under the root.")
    strict: bool = Field(
        default=False,
        strict=True,
        description="URDF, MJCF: refuse what is unphysical or not supported, where a warning tells it.",
    )
    package_dirs: list[StrictStr] = Field(
        default=[], description="URDF: folders in which package:// is looked up, relative to this file."
    )


@dataclass(frozen=True, eq=False)
class Study:
    """A run file that has been read."""

    path: Path
    source: Source
    name: str
    model: str
    floating: bool
    strict: bool
    package_dirs: tuple[Path, ...]
    task: Task
    outputs: Mapping[str, str]
    """names of files in `folder`, by kind"""
    folder: Path
    """where outputs go"""

    @property
    def base(self) -> Path:
        """What names in the file are relative to."""
        return self.path.parent

    def located(self, error: AlembertError) -> AlembertError:
        """An error of the task, with the line that it is about."""
        if isinstance(error, FileError):
            return error
        if isinstance(error, OptionError):
            return self.source.error(("task", *error.place), error.what)
        place = self._mentioned(str(error))
        kind = FileError if not isinstance(error, ArithmeticError | NotImplementedError) else type(error)
        return kind(self.source.sentence(place, str(error)))

    def _mentioned(self, message: str) -> Place:
        """The option that a message names first."""
        _, given = walk(("task",), self.source.data)
        for word in re.findall(r"\w+", message):
            if isinstance(given, dict) and word in given:
                return ("task", word)
        return ("task",)


def load_study(
    path: str | os.PathLike[str], *, changes: Sequence[str] = (), folder: str | os.PathLike[str] | None = None
) -> Study:
    """Read a run file; `changes` are `KEY=VALUE` with keys such as `task.time` and values as in TOML."""
    if not isinstance(folder, str | os.PathLike | None):
        raise ArgumentError(f"load_study: folder is {folder!r}, expected a path for the outputs, or None")
    source = toml.parse(read_text(path, toml.LARGEST), os.fspath(path))
    _check_header(source)
    source = _changed(source, changes)
    found = _validated(source)
    task = found.task
    if type(task).NEEDS_MODEL and not found.model:
        raise source.error(
            ("model",), "is missing, expected a model file or the name of a model of the library"
        )
    outputs = _outputs(source, type(task), found.outputs.given())
    path = Path(path)
    where = found.outputs.folder or f"{path.stem}-results"
    if folder is None and not inside(path.parent, path.parent / where):
        raise source.error(
            ("outputs", "folder"),
            f"is {where!r}, which leads out of the folder of the run file; --folder chooses any other",
        )
    return Study(
        path,
        source,
        found.name or path.stem,
        found.model,
        found.floating,
        found.strict,
        tuple(path.parent / entry for entry in found.package_dirs),
        task,
        outputs,
        path.parent / where if folder is None else Path(folder),
    )


def json_schema() -> dict[str, Any]:
    """The JSON schema of run files."""
    schema = document().model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


@functools.cache
def document() -> type[FileTable]:
    """The schema of a whole file."""
    tasks: Any = functools.reduce(operator.or_, TASKS.values())
    kinds: dict[str, list[str]] = {}
    for name, task in TASKS.items():
        for key in task.OUTPUTS:
            kinds.setdefault(key, []).append(name)
    fields: dict[str, Any] = {
        "folder": (
            StrictStr | None,
            Field(default=None, description="Where outputs go, relative to this file; FILE-results."),
        )
    }
    for key, output in EVERY_TASK.items():
        fields[key] = (StrictStr, Field(default=output.default, description=_described(output)))
    for key, names in kinds.items():
        text = "; ".join(f"{name}: {_described(TASKS[name].OUTPUTS[key])}" for name in names)
        fields[key] = (StrictStr | None, Field(default=None, description=text))
    outputs = create_model(
        "Outputs", __base__=FileTable, __doc__='Files to write; "" leaves one out.', **fields
    )
    whole: dict[str, Any] = {
        "task": (Annotated[tasks, Field(discriminator="type")], Field(description="What to do.")),
        "outputs": (outputs, Field(default=outputs(), description="What to write.")),
    }
    return create_model("Study", __base__=StudyEntry, __doc__=StudyEntry.__doc__, **whole)


def _described(output: OutputFile) -> str:
    return f"{output.what} ({', '.join(output.suffixes)})"


# --- reading ------------------------------------------------------------------------------------------------


def _check_header(source: Source) -> None:
    data = source.data
    if data.get("format") == "alembert-model":
        raise source.error(("format",), "this is a model, not a study; see alembert info and alembert new")
    check_format(source, FORMAT, VERSION)


def _changed(source: Source, changes: Sequence[str]) -> Source:
    import tomllib

    for change in changes:
        key, equals, value = change.partition("=")
        try:
            if not equals:
                raise ValueError("expected KEY=VALUE")
            try:
                entry = tomllib.loads(f"{key} = {value}")
            except tomllib.TOMLDecodeError:
                entry = tomllib.loads(f"{key} = '''{value}'''")  # a text without quotes
        except ValueError as error:
            raise FileError(f"--set {change}: {error}; write for instance task.time=2.5") from None
        _merge(source.data, entry)
    return source


def _merge(data: dict[str, Any], entry: Mapping[str, Any]) -> None:
    for key, value in entry.items():
        if isinstance(value, dict) and isinstance(data.get(key), dict):
            _merge(data[key], value)
        else:
            data[key] = value


def _kinds(place: Place) -> list[str]:
    """What `type` may be at a place."""
    return list(KINDS) if "controllers" in place else kinds_at(place, TASKS)


def _validated(source: Source) -> Any:
    try:
        return document().model_validate(source.data)
    except ValidationError as invalid:
        errors = explanations(invalid, source.data, kinds=_kinds)
        errors.sort(key=lambda error: source.line(error[0]))
        lines = [source.sentence(place, what) for place, what in errors[:_MOST_ERRORS]]
        if len(errors) > _MOST_ERRORS:
            lines.append(f"... and {len(errors) - _MOST_ERRORS} more")
        raise FileError("\n".join(lines)) from None


def _outputs(source: Source, task: type[Task], given: Mapping[str, Any]) -> dict[str, str]:
    known = {**EVERY_TASK, **task.OUTPUTS}
    found = {key: output.default for key, output in known.items() if output.default}
    for key, name in given.items():
        if key == "folder":
            continue
        place = ("outputs", key)
        if key not in known:
            kind = source.data["task"]["type"]
            raise source.error(place, unknown(f"the task {kind!r} has no output", key, known))
        found[key] = name or ""
        if name:
            _check_name(source, place, name, known[key])
    return {key: name for key, name in found.items() if name}


def _check_name(source: Source, place: Place, name: str, output: OutputFile) -> None:
    if Path(name).suffix not in output.suffixes:
        raise source.error(
            place, f"is {name!r}, expected a name that ends with {' or '.join(output.suffixes)}"
        )
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise source.error(
            place, f"is {name!r}, expected a file in the folder of outputs; see outputs.folder"
        )
