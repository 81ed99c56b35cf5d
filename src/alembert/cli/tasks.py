"""Commands that are one task each (simulate, optimise, linearize, identify): as in run files, options instead of keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alembert.cli import console
from alembert.cli.app import COMPUTE, FAILED, Json, command
from alembert.cli.models import (
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
from alembert.cli.studies import perform_study
from alembert.errors import ArgumentError
from alembert.study.tasks.identify import IdentifyTask
from alembert.study.tasks.linearize import LinearizeTask
from alembert.study.tasks.optimise import OptimiseTask
from alembert.study.tasks.simulate import SimulateTask

if TYPE_CHECKING:
    from alembert.study.task import Task, TaskResult


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


def perform(
    kind: type[Task],
    model: str,
    options: Mapping[str, Any],
    outputs: Mapping[str, Path | None],
    as_json: bool,
    floating: bool,
    package_dirs: list[Path] | None,
    strict: bool,
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
    parameter: Parameters = None,
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
    options = {
        "time": time,
        "step": step,
        "interval": interval,
        "integrator": integrator,
        "position": pairs("--position", position),
        "speed": pairs("--speed", speed),
        "effort": pairs("--effort", effort),
        "hold": hold or [],
        "parameters": pairs("--parameter", parameter),
        "tolerance": tolerance,
    }
    outputs = {"save": save, "plot": plot, "html": html}
    perform(SimulateTask, model, options, outputs, as_json, floating, package_dir, strict)


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
    parameter: Parameters = None,
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
    try:
        span = [float(part) for part in time.split(",")]
    except ValueError:
        raise ArgumentError(f"--time {time}: expected SECONDS, or SHORTEST,LONGEST") from None
    options = {
        "time": span,
        "position": pairs("--position", position),
        "speed": pairs("--speed", speed),
        "end": pairs("--end", end),
        "end_speed": pairs("--end-speed", end_speed),
        "free": free or [],
        "cost": cost,
        "steps": steps,
        "actuated": actuated or None,
        "transcription": transcription,
        "solver": solver,
        "parameters": pairs("--parameter", parameter),
    }
    outputs = {"save": save, "plot": plot, "html": html}
    if _is_study(model):
        given = {"floating": floating, "strict": strict, "package_dir": package_dir, **options, **outputs}
        perform_study(Path(model), _changes(context, given), as_json=as_json)
        return
    perform(OptimiseTask, model, options, outputs, as_json, floating, package_dir, strict)


def _changes(context: typer.Context, options: dict[str, Any]) -> list[str]:
    """What the command line says otherwise than a run file, as for `alembert run --set`."""

    def is_given(name: str) -> bool:
        name = {"parameters": "parameter"}.get(name, name)
        return getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"

    found = []
    for name, value in options.items():
        if not is_given(name):
            continue
        if name == "package_dir":
            found.append(f"package_dirs={json.dumps([str(Path(folder).absolute()) for folder in value])}")
        elif name in ("floating", "strict"):
            found.append(f"{name}={json.dumps(value)}")
        elif name in ("save", "plot", "html"):
            found.append(f"outputs.{name}={json.dumps(str(value))}")
        elif isinstance(value, dict):
            found += [f"task.{name}.{json.dumps(key)}={json.dumps(one)}" for key, one in value.items()]
        else:
            found.append(f"task.{name}={json.dumps(value)}")
    return found


def _is_study(name: str) -> bool:
    """Whether it is a run file with a task of this kind; one with another task is refused."""
    path = Path(name)
    if path.suffix != ".toml" or not path.is_file():
        return False
    from alembert.study.file import FORMAT, load_study

    if f'"{FORMAT}"' not in path.read_text(encoding="utf-8", errors="replace"):
        return False
    task: Any = load_study(path).task
    if not isinstance(task, OptimiseTask):
        raise ArgumentError(
            f"{name}: its task is {task.type!r}, not 'optimise'; run it with `alembert run {name}`"
        )
    return True


def _names(what: str) -> Any:
    return option("NAME", f"{what} May be repeated.")


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
    input: Annotated[
        list[str] | None, _names("An actuator, joint or degree of freedom; the actuators.")
    ] = None,
    output: Annotated[
        list[str] | None,
        _names("q:elbow, v:elbow, a sensor, frame:hand.position, ...; by default the state."),
    ] = None,
    parameter: Parameters = None,
    sensitivity: Annotated[
        list[str] | None, _names("A parameter of the model, for the matrices E and F.")
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
    options = {
        "position": pairs("--position", position),
        "speed": pairs("--speed", speed),
        "effort": pairs("--effort", effort),
        "trim": trim,
        "fixed": pairs("--fixed", fixed),
        "free": free or None,
        "inputs": input or None,
        "outputs": output or [],
        "parameters": pairs("--parameter", parameter),
        "sensitivities": sensitivity or [],
    }
    outputs = {"save": save, "bode": bode, "poles": poles, "html": html}
    perform(LinearizeTask, model, options, outputs, as_json, floating, package_dir, strict)


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
    options = {
        "data": str(data),
        "method": method,
        "include": include or [],
        "fixed": fixed or [],
        "prior_spread": prior_spread,
        "cutoff": cutoff,
        "window": window,
        "noise": pairs("--noise", noise),
    }
    outputs = {"save": save, "model": model, "plot": plot}
    perform(IdentifyTask, prior, options, outputs, as_json, floating, package_dir, strict)
