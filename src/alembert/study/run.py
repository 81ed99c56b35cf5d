"""Run files: a TOML file that names a model, a task with its options, and the outputs.

Errors name file and line; keys that are not known are refused with the nearest that is.

Running a study: result, report and manifest, which another run can be compared with.
"""

from __future__ import annotations

import functools
import hashlib
import json
import operator
import os
import platform
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StrictStr, ValidationError, create_model

from alembert.arguments import unknown
from alembert.errors import AlembertError, ArgumentError, FileError, made_folder, writing
from alembert.model import Model, ModelBuilder
from alembert.model.io import toml
from alembert.model.io.location import Place, Source, read_text
from alembert.model.io.notes import explanations, walk
from alembert.model.io.schema import FileTable, check_format
from alembert.study import report
from alembert.study.laws import KINDS
from alembert.study.models import find_model
from alembert.study.task import OptionError, OutputFile, Setting, Task, TaskResult, inside
from alembert.study.tasks import TASKS
from alembert.study.tasks.motion import kinds_at

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
    if os.path.isdir(path):
        files = ", such as " + ", ".join(sorted(str(x) for x in Path(path).glob("*study*.toml")))
        raise FileError(f"{path}: is a folder, expected a run file{files.removesuffix(', such as ')}")
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


MANIFEST = "alembert-manifest"
_PACKAGES = ("alembert", "numpy", "scipy", "casadi", "llvmlite", "xarray", "h5netcdf", "matplotlib")


@dataclass(frozen=True, eq=False)
class Finished:
    """A study that has run."""

    outcome: TaskResult
    files: Mapping[str, Path]
    """what was written, by kind"""
    manifest: Mapping[str, Any]


def run_study(study: Study, *, command: Sequence[str] = (), progress: bool | None = None) -> Finished:
    """Run the task and write the outputs into the study's folder."""
    begin, date = time.perf_counter(), time.time()
    model, model_file = _model(study)
    try:
        outcome = study.task.run(model, Setting(study.base, progress))
    except AlembertError as error:
        raise study.located(error) from error
    model = outcome.model or model
    folder = made_folder(study.folder)
    for kind, name in study.outputs.items():
        if not inside(folder, folder / name):
            raise study.source.error(
                ("outputs", kind),
                f"{folder / name} is a link that leads out of the folder of outputs; remove it",
            )
    files = write_outputs(
        outcome, {k: folder / v for k, v in study.outputs.items() if k not in ("report", "manifest")}
    )
    if "report" in study.outputs:
        path = files["report"] = folder / study.outputs["report"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(report.render(study, model, outcome, files), encoding="utf-8")
    inputs = [study.path, *([model_file] if model_file else []), *outcome.inputs]
    manifest = {
        "format": MANIFEST,
        "version": 1,
        "study": study.name,
        "command": list(command),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(date)),
        "seconds": round(time.perf_counter() - begin, 3),
        "ok": outcome.ok,
        "versions": _versions(),
        "machine": _machine(),
        "model": {"source": study.model, "name": model.name, "fingerprint": model.fingerprint},
        "task": study.task.model_dump(mode="json"),
        "seeds": dict(outcome.seeds),
        "inputs": _hashes(inputs, study.base),
        "outputs": _hashes(files.values(), folder),
    }
    if "manifest" in study.outputs:
        path = files["manifest"] = folder / study.outputs["manifest"]
        path.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return Finished(outcome, files, manifest)


def write_outputs(outcome: TaskResult, paths: Mapping[str, Path]) -> dict[str, Path]:
    """Write the files of an outcome that are asked for."""
    for kind, path in paths.items():
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            outcome.files[kind](path)
    return dict(paths)


def differences(study: Study, manifest: Mapping[str, Any]) -> list[str]:
    """What of a new manifest is not as in the one that the study left before; sentences."""
    path = study.folder / study.outputs.get("manifest", "manifest.json")
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(
            f"{path}: cannot be read: {error.strerror}; run the study without --check first"
        ) from None
    except ValueError as error:
        raise FileError(f"{path}: is no manifest: {error}") from None
    found = []
    for what in ("inputs", "outputs"):
        old, new = ({entry["path"]: entry["sha256"] for entry in m[what]} for m in (before, manifest))
        found += [f"{what}: {name} is new" for name in new if name not in old]
        found += [f"{what}: {name} is missing" for name in old if name not in new]
        found += [f"{what}: {name} differs" for name in new if name in old and old[name] != new[name]]
    for name, now in manifest["versions"].items():
        was = before["versions"].get(name)
        if found and was != now:
            found.append(f"versions: {name} was {was}, is {now}")
    return found


def _model(study: Study) -> tuple[Model, Path | None]:
    task: type[Task] = type(study.task)
    if not task.NEEDS_MODEL and not study.model:
        return ModelBuilder("none").build(), None
    try:
        return find_model(
            study.model,
            folder=study.base,
            floating=study.floating,
            package_dirs=study.package_dirs,
            strict=study.strict,
        )
    except FileError:
        raise
    except AlembertError as error:
        raise study.source.error(("model",), str(error)) from error


def _hashes(paths: Iterable[Path], base: Path) -> list[dict[str, Any]]:
    found = []
    for path in paths:
        content = path.read_bytes()
        name = Path(os.path.relpath(path, base)).as_posix()
        found.append({"path": name, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)})
    return found


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _machine() -> dict[str, Any]:
    from alembert.engine.target import host

    return {
        "system": platform.system(),
        "release": platform.release(),
        "architecture": platform.machine(),
        "processor": host().cpu,
        "cores": os.cpu_count(),
        "byte_order": sys.byteorder,
    }
