"""Studies and their tasks: `alembert run STUDY` and `new NAME`, and commands that are one task each.

Those (simulate, optimise, linearize, identify) have the options that a task has as keys in a run file.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_origin

import typer

from alembert.cli import console
from alembert.cli.app import COMPUTE, FAILED, STUDIES, Json, command
from alembert.cli.console import (
    Floating,
    ModelName,
    PackageDirs,
    Parameters,
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


def _values(what: str) -> Any:
    return option("JOINT=VALUE", f"{what} May be repeated.", complete=complete_joint)


Position = Annotated[
    list[str] | None, _values("Coordinates of a joint (pivot=pi/2, or with commas); others are neutral.")
]
Speed = Annotated[list[str] | None, _values("Speeds of a joint; others are zero.")]
Effort = Annotated[list[str] | None, _values("Constant efforts on a joint; others are zero.")]


def output(what: str) -> Any:
    """An option for a file to write."""
    return option("FILE", what)


WRITTEN = {"parameters": "parameter", "inputs": "input", "outputs": "output", "sensitivities": "sensitivity"}
"""options that a run file has in the plural and the command line repeats"""


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
        name, *rest = map(str, error.place)
        raise ArgumentError(f"{' '.join([_written(name), *rest])}: {error.what}") from None
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
        found[name] = pairs(_written(name), value) if get_origin(field.annotation) is dict else value
    return found


def _written(name: str) -> str:
    """An option of a task as the command line has it."""
    return f"--{WRITTEN.get(name, name).replace('_', '-')}"


@command(
    "simulate",
    panel=COMPUTE,
    examples=[
        ("alembert simulate pendulum --position pivot=pi/2", "let it swing for 10 s"),
        (
            "alembert simulate acrobot --speed elbow=2 --time 5 --step 0.001 --save run.csv --plot run.png",
            "with fixed steps, records and a plot",
        ),
        ("alembert simulate satellite --speed attitude=0,0,0.1,0,0,0 --html run.html", "a page to look at"),
        ("alembert simulate arm.urdf --json", "for programs"),
    ],
    keys=SimulateTask.KEYS,
)
def simulate(
    model: ModelName,
    time: Annotated[float, option("SECONDS", "How long.", "--time", "--duration")] = 10.0,
    step: Annotated[float | None, option("SECONDS", "Of integrators with fixed steps.")] = None,
    interval: Annotated[float | None, option("SECONDS", "Between records.")] = None,
    integrator: Annotated[
        str,
        option(
            "NAME",
            "auto chooses and says why; or rk4, variational, dop853, radau, ...",
            complete=complete_integrator,
        ),
    ] = "auto",
    position: Position = None,
    speed: Speed = None,
    effort: Effort = None,
    hold: Annotated[
        list[str] | None,
        option(
            "JOINT",
            "Keeps its position while loops are closed at the start. May be repeated.",
            complete=complete_joint,
        ),
    ] = None,
    parameters: Parameters = None,
    tolerance: Annotated[float | None, option("NUMBER", "Of integrators with error control; 1e-9.")] = None,
    save: Annotated[Path | None, output("Write the records: .csv or .nc.")] = None,
    plot: Annotated[Path | None, output("Write a plot: .png, .svg or .pdf.")] = None,
    html: Annotated[Path | None, output("Write an animation for the browser: .html.")] = None,
    as_json: Json = False,
    floating: Floating = False,
    package_dir: PackageDirs = None,
    strict: Strict = False,
) -> None:
    """Let a model move from a state, and report how well energy and momentum were kept."""
    perform(SimulateTask, model, locals())


@command(
    "optimise",
    panel=COMPUTE,
    examples=[
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
    ],
    keys=OptimiseTask.KEYS,
)
def optimise(
    context: typer.Context,
    model: ModelName,
    time: Annotated[str, option("SECONDS", "How long; SHORTEST,LONGEST to have it found.")] = "2",
    position: Position = None,
    speed: Speed = None,
    end: Annotated[list[str] | None, _values("Coordinates of a joint at the end; others are free.")] = None,
    end_speed: Annotated[list[str] | None, _values("Speeds of a joint at the end; others are zero.")] = None,
    free: Annotated[
        list[str] | None, option("JOINT", "Its speed at the end is free. May be repeated.")
    ] = None,
    cost: Annotated[str, option("NAME", "effort or duration.")] = "effort",
    steps: Annotated[int, option("COUNT", "Intervals of time.")] = 100,
    actuated: Annotated[
        list[str] | None,
        option("NAME", "A joint or actuator with a control; the actuators. May be repeated."),
    ] = None,
    transcription: Annotated[
        str | None, option("NAME", "dmoc, midpoint, hermite-simpson, radau, ...")
    ] = None,
    solver: Annotated[str, option("NAME", "sweep, ipopt, fatrop, or highs for linear problems.")] = "sweep",
    parameters: Parameters = None,
    save: Annotated[Path | None, output("Write coordinates, speeds and efforts: .csv, .nc or .npz.")] = None,
    plot: Annotated[Path | None, output("Write a plot: .png, .svg or .pdf.")] = None,
    html: Annotated[Path | None, output("Write an animation for the browser: .html.")] = None,
    as_json: Json = False,
    floating: Floating = False,
    package_dir: PackageDirs = None,
    strict: Strict = False,
) -> None:
    """Find the motion and the efforts of least cost from one state to another.

    MODEL may also be a run file with a task `optimise`: options given here take the place of its own, and outputs go into
    the folder of its results. Exits with 1 if no
    solution is found; what was reached is written all the same.
    """
    given = locals()
    try:
        given["time"] = [float(part) for part in time.split(",")]
    except ValueError:
        raise ArgumentError(f"--time {time}: expected SECONDS, or SHORTEST,LONGEST") from None
    if _is_study(model):
        perform_study(Path(model), _changes(context, given), as_json=as_json)
    else:
        perform(OptimiseTask, model, given)


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


def _names(what: str, *names: str) -> Any:
    return option("NAME", f"{what} May be repeated.", *names)


@command(
    "linearize",
    panel=COMPUTE,
    examples=[
        (
            "alembert linearize acrobot --position shoulder=pi/2",
            "about the upright position: modes and matrices",
        ),
        ("alembert linearize cart_pole --trim", "about the nearest equilibrium"),
        (
            "alembert linearize two_link --fixed shoulder=0.3 --fixed elbow=0.5 --save linear.mat --bode bode.png",
            "held there by its motors; for MATLAB, and a plot",
        ),
        (
            "alembert linearize arm7 --output frame:tool.position --json",
            "from torques to the hand, for programs",
        ),
        ("alembert linearize humanoid --html modes.html", "see how it swings in each of its modes"),
    ],
    keys=LinearizeTask.KEYS,
)
def linearize(
    model: ModelName,
    position: Position = None,
    speed: Speed = None,
    effort: Effort = None,
    trim: Annotated[bool, typer.Option("--trim", help="Find an equilibrium first, from the state.")] = False,
    fixed: Annotated[
        list[str] | None,
        option(
            "NAME=VALUE",
            "Look for an equilibrium with this value: elbow, v:elbow, tau:elbow, actuator:motor. May be repeated.",
        ),
    ] = None,
    free: Annotated[
        list[str] | None,
        _names(
            "Look for an equilibrium in which this may change: elbow, tau:elbow, actuator:motor, q, v, tau."
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None, _names("An actuator, joint or degree of freedom; the actuators.", "--input")
    ] = None,
    outputs: Annotated[
        list[str] | None,
        _names("q:elbow, v:elbow, a sensor, frame:hand.position, ...; by default the state.", "--output"),
    ] = None,
    parameters: Parameters = None,
    sensitivities: Annotated[
        list[str] | None, _names("A parameter of the model, for the matrices E and F.", "--sensitivity")
    ] = None,
    save: Annotated[Path | None, output("Write matrices and names: .json, .npz or .mat.")] = None,
    bode: Annotated[
        Path | None, output("Write a plot of the frequency responses: .png, .svg or .pdf.")
    ] = None,
    poles: Annotated[Path | None, output("Write a plot of the poles: .png, .svg or .pdf.")] = None,
    html: Annotated[Path | None, output("Write an animation of the modes for the browser: .html.")] = None,
    as_json: Json = False,
    floating: Floating = False,
    package_dir: PackageDirs = None,
    strict: Strict = False,
) -> None:
    """The linear model about a state or an equilibrium: modes, matrices, what can be reached and seen."""
    perform(LinearizeTask, model, locals())


def _complete_data(incomplete: str) -> list[str]:
    return complete_file(incomplete, (".csv",))


@command(
    "identify",
    panel=COMPUTE,
    examples=[
        ("alembert identify arm7 log.csv --cutoff 8 --model identified.toml", "from encoders and torques"),
        ("alembert identify arm.urdf log.csv --include viscous --include coulomb", "friction too"),
        ("alembert identify pendulum run.csv --method least_squares --json", "for programs"),
    ],
    keys=IdentifyTask.KEYS,
)
def identify(
    prior: ModelName,
    data: Annotated[
        Path,
        argument(
            "DATA.csv",
            "Columns time, q.NAME, tau.NAME, and v.NAME, a.NAME where measured; as simulate --save writes them.",
            complete=_complete_data,
        ),
    ],
    method: Annotated[
        str, option("NAME", "consistent: bodies that can exist; least_squares: the plain linear estimate.")
    ] = "consistent",
    include: Annotated[
        list[str] | None, option("TERM", "viscous, coulomb or armature on every joint. May be repeated.")
    ] = None,
    fixed: Annotated[
        list[str] | None, option("NAME", "A body or joint that keeps its values. May be repeated.")
    ] = None,
    prior_spread: Annotated[
        float, option("NUMBER", "How far the model may be off, as the logarithm of a factor.")
    ] = 1.0,
    cutoff: Annotated[
        float | None, option("HERTZ", "Of a Butterworth filter before differentiating.")
    ] = None,
    window: Annotated[
        int, option("SAMPLES", "Of the local polynomials that differentiate, without a cutoff.")
    ] = 31,
    noise: Annotated[
        list[str] | None,
        option("JOINT=VALUE", "Standard deviation of an effort, where known. May be repeated."),
    ] = None,
    save: Annotated[Path | None, output("Write the estimates: .json or .csv.")] = None,
    model: Annotated[Path | None, output("Write the identified model: .toml or .yaml.")] = None,
    plot: Annotated[
        Path | None, output("Write a plot of measured and predicted efforts: .png, .svg or .pdf.")
    ] = None,
    as_json: Json = False,
    floating: Floating = False,
    package_dir: PackageDirs = None,
    strict: Strict = False,
) -> None:
    """Estimate inertias, frictions and rotors of a model from measured motions and efforts."""
    perform(IdentifyTask, prior, locals() | {"data": str(data)})
