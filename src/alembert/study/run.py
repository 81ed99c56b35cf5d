"""Running a study: result, report and manifest, which another run can be compared with."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from alembert.errors import AlembertError, FileError, made_folder, writing
from alembert.model import Model, ModelBuilder
from alembert.study import report
from alembert.study.file import Study
from alembert.study.models import find_model
from alembert.study.task import Setting, Task, TaskResult, inside

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
