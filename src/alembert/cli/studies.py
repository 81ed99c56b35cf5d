"""`alembert run STUDY`: a study from a run file; `alembert new NAME`: files to begin with."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from alembert.cli import console
from alembert.cli.app import FAILED, STUDIES, Json, command
from alembert.cli.models import argument, complete_file, option


def _complete_study(incomplete: str) -> list[str]:
    return complete_file(incomplete, (".toml",))


@command(
    "run",
    panel=STUDIES,
    examples=[
        ("alembert run study.toml", "result, report and manifest into study-results/"),
        ("alembert run study.toml --set task.time=2 --folder try", "with another value, into another folder"),
        ("alembert run study.toml --check", "run again elsewhere, and compare with the manifest bit for bit"),
    ],
    keys={
        "study": "its name",
        "ok": "whether the task succeeded (with --check: whether all is the same)",
        "folder": "where the outputs are",
        "files": "what was written, by kind",
        "seconds": "that it took",
        "differences": "(--check) sentences; empty when all is the same",
        "result": "what the task found, with the keys of its command",
    },
)
def run(
    study: Annotated[
        Path, argument("STUDY.toml", "A run file: model, task, outputs.", complete=_complete_study)
    ],
    set_: Annotated[
        list[str] | None, option("KEY=VALUE", "Another value, such as task.time=2. May be repeated.", "--set")
    ] = None,
    folder: Annotated[Path | None, option("FOLDER", "Where outputs go.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; compare with what the last run left.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a study: it writes the result, a report, and a manifest with versions, seeds and hashes."""
    perform_study(study, set_ or [], folder, check=check, as_json=as_json)


def perform_study(
    study: Path, changes: list[str], folder: Path | None = None, *, check: bool = False, as_json: bool = False
) -> None:
    """Run a study and say what it found."""
    from alembert.study.file import load_study
    from alembert.study.run import differences, run_study

    found = load_study(study, changes=changes, folder=folder)
    line = [Path(sys.argv[0]).name, *sys.argv[1:]]
    with console.working(f"running {found.name}"), tempfile.TemporaryDirectory() as elsewhere:
        target = replace(found, folder=Path(elsewhere)) if check else found
        finished = run_study(target, command=line, progress=console.progress())
        changed = differences(found, finished.manifest) if check else []
    ok = finished.outcome.ok and not changed
    files = {} if check else {kind: _short(path) for kind, path in finished.files.items()}
    data = {
        "study": found.name,
        "ok": ok,
        "folder": _short(found.folder),
        "files": files,
        "seconds": finished.manifest["seconds"],
        "result": finished.outcome.data,
    }
    if check:
        data["differences"] = changed
        count = len(finished.manifest["outputs"])
        parts = changed or [f"the same as before: {count} file{'s' * (count != 1)}, bit for bit"]
        console.answer(data, as_json, *parts)
    else:
        console.answer(data, as_json, *finished.outcome.parts, *(f"wrote {path}" for path in files.values()))
    if not ok:
        raise typer.Exit(FAILED)


def _short(path: Path) -> str:
    """As the user would write it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def _complete_project(incomplete: str) -> list[str]:
    from alembert.study.new import names

    return list(names())


@command(
    "new",
    panel=STUDIES,
    examples=[
        ("alembert new acrobot", "acrobot/model.toml and acrobot/study.toml, with comments, to edit and run"),
        ("alembert new satellite work/first", "into another folder"),
        ("alembert new --list", "what there is"),
    ],
    keys={
        "folder": "where the files are",
        "files": "that were written",
        "projects": "(--list, and alone) what each is about, by name",
    },
)
def new(
    name: Annotated[
        str | None,
        argument("NAME", "A project (see --list) or a model of the library.", complete=_complete_project),
    ] = None,
    folder: Annotated[Path | None, argument("FOLDER", "Where to; ./NAME.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="Say what there is.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over files that are there.")] = False,
    as_json: Json = False,
) -> None:
    """Write a model and a study with comments, which run as they are, to begin with."""
    from alembert.study.new import TEMPLATES, create, names
    from alembert.study.report import Grid

    if list_ or name is None:
        plain = ", ".join(entry for entry in names() if entry not in TEMPLATES)
        table = Grid.of("projects", ("name", ""), TEMPLATES.items(), left=2)
        console.answer(
            {"projects": TEMPLATES}, as_json, table, f"and, without comments, from the library: {plain}"
        )
        return
    target = Path(name) if folder is None else folder
    files = [_short(path) for path in create(name, target, replace=force)]
    study = files[-1]
    console.answer(
        {"folder": _short(target), "files": files},
        as_json,
        *(f"wrote {path}" for path in files),
        f"now: alembert run {study}",
    )
