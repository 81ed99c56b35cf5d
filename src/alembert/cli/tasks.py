"""Studies and their tasks: `alembert run STUDY` and `new NAME`, and commands that are one task each.

Those (simulate, optimise, linearize, identify) have the options that a task has as keys in a run file.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer

from alembert.cli import console
from alembert.cli.app import COMPUTE, FAILED, STUDIES, Json, command
from alembert.cli.console import (
    Floating,
    ModelName,
    PackageDirs,
    Strict,
    argument,
    complete_file,
    complete_integrator,
    complete_joint,
    load_model,
    option,
    pairs,
)
from alembert.errors import ArgumentError
from alembert.study.tasks.analysis import IdentifyTask, LinearizeTask
from alembert.study.tasks.motion import SimulateTask
from alembert.study.tasks.optimise import OptimiseTask

if TYPE_CHECKING:
    from alembert.study.task import Task, TaskResult


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
    from alembert.study.run import differences, load_study, run_study

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
    from alembert.study.models import names

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
    from alembert.study.models import TEMPLATES, create, names
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


# --- a command for a task -------------------------------------------------------------------------------------------

WRITTEN = {
    "parameters": "parameter", "inputs": "input", "outputs": "output", "sensitivities": "sensitivity", "wrenches": "wrench",
}  # fmt: skip
"""options that a run file has in the plural and the command line repeats"""
METAVARS = {
    "time": "SECONDS", "step": "SECONDS", "interval": "SECONDS", "cutoff": "HERTZ", "window": "SAMPLES", "data": "DATA.csv",
    "hold": "JOINT", "include": "TERM", "gravity": "X,Y,Z", "guess": "FILE.npz",
}  # fmt: skip
"""what stands for a value where its type alone would say less"""
BY_JOINT = ("position", "speed", "effort", "end", "end_speed", "noise")


def _complete_data(incomplete: str) -> list[str]:
    return complete_file(incomplete, (".csv",))


COMPLETED: dict[str, Any] = {
    "integrator": complete_integrator, "data": _complete_data,
    **dict.fromkeys(("hold", *BY_JOINT), complete_joint),
}  # fmt: skip


def _kind_of(hint: Any) -> type | None:
    """What a command takes for an option of a task: float, int, str, bool, list, dict (NAME=VALUE), tuple (numbers with
    commas); None where only a run file can say it."""
    while hasattr(hint, "__value__") or get_origin(hint) in (
        Annotated,
        Union,
        UnionType,
    ):  # the first is not None
        hint = hint.__value__ if hasattr(hint, "__value__") else get_args(hint)[0]
    outer, inner = get_origin(hint), [_kind_of(x) for x in get_args(hint) if x is not ...]
    if outer is Literal:
        return str
    simple = {list: inner[:1] == [str], dict: inner[1:] in ([float], [tuple]), tuple: inner == [float]}
    if outer in simple:
        return outer if simple[outer] else None
    return float if hint is Any else hint if hint in (int, str, bool) else None


def _parameter(name: str, field: Any) -> inspect.Parameter | None:
    """An option of a task as one of its command."""
    kind, default, written = _kind_of(field.annotation), field.default, _written(name)
    if kind is None or name == "type":
        return None
    repeated = kind in (list, dict)
    pair = "JOINT=VALUE" if name in BY_JOINT else "NAME=VALUE"
    metavar = METAVARS.get(name, {int: "COUNT", float: "NUMBER", dict: pair}.get(kind, "NAME"))
    help, complete = f"{field.description}{' May be repeated.' if repeated else ''}", COMPLETED.get(name)
    if field.is_required():
        return _keyword(name, Annotated[str, argument(metavar, help, complete=complete)], _NONE)
    if kind is bool:
        flag = f"{written}/--no-{written[2:]}" if default else written
        return _keyword(name, Annotated[bool, typer.Option(flag, help=help)], default)
    if kind is tuple and default is not None:
        default = ",".join(f"{x:g}" for x in default)
    names = (written, "--duration") if name == "time" else (written,)
    given: Any = list[str] if repeated else str if kind is tuple else kind
    how = option(metavar, help, *names, complete=complete)
    return _keyword(name, Annotated[given | None, how], None if repeated else default)


_NONE = inspect.Parameter.empty


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _signature(kind: type[Task]) -> inspect.Signature:
    """The model, the options of a task (its own before those that others have too), its outputs, and what all have."""
    own = [name for name in kind.__annotations__ if name in kind.model_fields]
    order = [*own, *(name for name in kind.model_fields if name not in own)]
    options = [x for name in order if (x := _parameter(name, kind.model_fields[name])) is not None]
    writes = {
        name: f"Write {file.what}: {', '.join(file.suffixes[:-1])}{' or ' * (len(file.suffixes) > 1)}{file.suffixes[-1]}."
        for name, file in kind.OUTPUTS.items()
    }
    return inspect.Signature(
        [
            _keyword("context", typer.Context, _NONE),
            _keyword(_subject(kind), ModelName, _NONE),
            *sorted(options, key=lambda x: x.default is not _NONE),
            *(_keyword(name, Annotated[Path | None, option("FILE", x)], None) for name, x in writes.items()),
            _keyword("as_json", Json, False),
            _keyword("floating", Floating, False),
            _keyword("package_dir", PackageDirs, None),
            _keyword("strict", Strict, False),
        ]
    )


def _subject(kind: type[Task]) -> str:
    """The name of the argument MODEL."""
    return "prior" if "model" in kind.OUTPUTS else "model"


def task_command(
    kind: type[Task], *examples: tuple[str, str], also: str = "", instead: Callable[..., bool] | None = None
) -> None:
    """A command with the options of a task; `instead(context, model, given)` may do something else, and says so."""

    def call(context: typer.Context, **given: Any) -> None:
        model = given[_subject(kind)]
        for name, field in kind.model_fields.items():
            if isinstance(given.get(name), str) and _kind_of(field.annotation) is tuple:
                given[name] = _numbers(name, given[name])
        if instead is None or not instead(context, model, given):
            perform(kind, model, given)

    name, signature = kind.model_fields["type"].default, _signature(kind)
    call.__name__, call.__doc__ = name, f"{inspect.cleandoc(kind.__doc__ or '')}{also}"
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__annotations__ = {x.name: x.annotation for x in signature.parameters.values()}
    command(name, panel=COMPUTE, examples=examples, keys=kind.KEYS)(call)


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        wanted = "SECONDS, or SHORTEST,LONGEST" if name == "time" else METAVARS[name]
        raise ArgumentError(f"{_written(name)} {text}: expected {wanted}") from None


def perform(kind: type[Task], model: str, given: Mapping[str, Any]) -> None:
    """Run a task and say what it found; `given` are the arguments of its command, by the names that run files have."""
    from alembert.study.run import write_outputs
    from alembert.study.task import OptionError, Setting, checked

    paths = {key: given[key] for key in kind.OUTPUTS if given.get(key) is not None}
    for key, path in paths.items():
        suffixes = kind.OUTPUTS[key].suffixes
        if path.suffix not in suffixes:
            raise ArgumentError(f"--{key} {path}: expected a name that ends with {' or '.join(suffixes)}")
    try:
        task = checked(kind, task_options(kind, given))
        found = load_model(model, given["floating"], given["package_dir"], given["strict"])
        with console.working(f"{kind.model_fields['type'].default}: {found.name}"):
            outcome: TaskResult = task.run(found, Setting(Path(), console.progress()))
    except OptionError as error:
        name, *rest = error.place
        keys = [
            key for key in rest if isinstance(key, str)
        ]  # which number of a list it is stands in what was given
        raise ArgumentError(f"{' '.join([_written(str(name)), *keys])}: {error.what}") from None
    files = write_outputs(outcome, paths)
    data = {**outcome.data, "files": {key: str(path) for key, path in files.items()}}
    console.answer(data, given["as_json"], *outcome.parts, *(f"wrote {path}" for path in files.values()))
    if not outcome.ok:
        raise typer.Exit(FAILED)


def task_options(kind: type[Task], given: Mapping[str, Any]) -> dict[str, Any]:
    """What a task is told: the options that are given, NAME=VALUE as mappings; others keep their defaults."""
    found = {}
    for name, field in kind.model_fields.items():
        value = given.get(name)
        if value is None or value == []:
            continue
        found[name] = pairs(_written(name), value) if _kind_of(field.annotation) is dict else value
    return found


def _written(name: str) -> str:
    """An option of a task as the command line has it."""
    return f"--{WRITTEN.get(name, name).replace('_', '-')}"


def _of_study(context: typer.Context, model: str, given: Mapping[str, Any]) -> bool:
    """Run a run file with a task of this kind, with what is given besides."""
    if not _is_study(model):
        return False
    perform_study(Path(model), _changes(context, given), as_json=given["as_json"])
    return True


def _changes(context: typer.Context, given: Mapping[str, Any]) -> list[str]:
    """What the command line says otherwise than a run file, as for `alembert run --set`."""
    stated = {
        name: value
        for name, value in given.items()
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    }
    found = [f"{name}={json.dumps(stated[name])}" for name in ("floating", "strict") if name in stated]
    if "package_dir" in stated:
        folders = [str(Path(folder).absolute()) for folder in stated["package_dir"]]
        found.append(f"package_dirs={json.dumps(folders)}")
    found += [
        f"outputs.{key}={json.dumps(str(stated[key]))}" for key in OptimiseTask.OUTPUTS if key in stated
    ]
    for name, value in task_options(OptimiseTask, stated).items():
        if isinstance(value, dict):
            found += [f"task.{name}.{json.dumps(key)}={json.dumps(one)}" for key, one in value.items()]
        else:
            found.append(f"task.{name}={json.dumps(value)}")
    return found


def _is_study(name: str) -> bool:
    """Whether it is a run file with a task of this kind; one with another task is refused."""
    path = Path(name)
    if path.suffix != ".toml" or not path.is_file():
        return False
    from alembert.study.run import FORMAT, load_study

    if f'"{FORMAT}"' not in path.read_text(encoding="utf-8", errors="replace"):
        return False
    task: Any = load_study(path).task
    if not isinstance(task, OptimiseTask):
        raise ArgumentError(
            f"{name}: its task is {task.type!r}, not 'optimise'; run it with `alembert run {name}`"
        )
    return True


task_command(
    SimulateTask,
    ("alembert simulate pendulum --position pivot=pi/2", "let it swing for 10 s"),
    (
        "alembert simulate acrobot --speed elbow=2 --time 5 --step 0.001 --save run.csv --plot run.png",
        "with fixed steps, records and a plot",
    ),
    ("alembert simulate satellite --speed attitude=0,0,0.1,0,0,0 --html run.html", "a page to look at"),
    ("alembert simulate arm.urdf --json", "for programs"),
)
task_command(
    OptimiseTask,
    (
        "alembert optimise two_link --time 2 --position shoulder=-pi/2 --end shoulder=pi/2 --end elbow=0",
        "swing up in 2 s with the least effort",
    ),
    (
        "alembert optimise cart_pole --time 0.5,5 --end slide=0 --end hinge=pi --cost duration --html up.html",
        "as fast as its motor allows, and a page to look at",
    ),
    (
        "alembert optimise examples/acrobot.toml",
        "a run file with a task of this kind, as `alembert run` does",
    ),
    (
        "alembert optimise examples/acrobot.toml --solver ipopt --steps 200",
        "the same with another solver and fewer steps",
    ),
    also="""

    MODEL may also be a run file with a task `optimise`: options given here take the place of its own, and outputs go into
    the folder of its results. Exits with 1 if no solution is found; what was reached is written all the same.""",
    instead=_of_study,
)
task_command(
    LinearizeTask,
    ("alembert linearize acrobot --position shoulder=pi/2", "about the upright position: modes and matrices"),
    ("alembert linearize cart_pole --trim", "about the nearest equilibrium"),
    (
        "alembert linearize two_link --fixed shoulder=0.3 --fixed elbow=0.5 --save linear.mat --bode bode.png",
        "held there by its motors; for MATLAB, and a plot",
    ),
    ("alembert linearize arm7 --output frame:tool.position --json", "from torques to the hand, for programs"),
    ("alembert linearize humanoid --html modes.html", "see how it swings in each of its modes"),
)
task_command(
    IdentifyTask,
    ("alembert identify arm7 log.csv --cutoff 8 --model identified.toml", "from encoders and torques"),
    ("alembert identify arm.urdf log.csv --include viscous --include coulomb", "friction too"),
    ("alembert identify pendulum run.csv --method least_squares --json", "for programs"),
)
