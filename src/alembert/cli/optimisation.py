"""`alembert optimise MODEL`: the motion of least cost from one state to another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from alembert.cli.app import COMPUTE, Json, command
from alembert.cli.models import Floating, ModelName, PackageDirs, Parameters, Strict, complete_joint, pairs
from alembert.cli.studies import perform_study
from alembert.cli.tasks import Position, Speed, output, perform
from alembert.errors import ArgumentError
from alembert.study.tasks.optimise import OptimiseTask

Save = Annotated[Path | None, output("Write coordinates, speeds and efforts: .csv, .nc or .npz.")]
Plot = Annotated[Path | None, output("Write a plot: .png, .svg or .pdf.")]
Html = Annotated[Path | None, output("Write an animation for the browser: .html.")]


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
    time: Annotated[
        str, typer.Option(metavar="SECONDS", help="How long; SHORTEST,LONGEST to have it found.")
    ] = "2",
    position: Position = None,
    speed: Speed = None,
    end: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JOINT=VALUE",
            help="Coordinates of a joint at the end; others are free. May be repeated.",
            autocompletion=complete_joint,
        ),
    ] = None,
    end_speed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JOINT=VALUE",
            help="Speeds of a joint at the end; others are zero. May be repeated.",
            autocompletion=complete_joint,
        ),
    ] = None,
    free: Annotated[
        list[str] | None,
        typer.Option(metavar="JOINT", help="Its speed at the end is free. May be repeated."),
    ] = None,
    cost: Annotated[str, typer.Option(metavar="NAME", help="effort or duration.")] = "effort",
    steps: Annotated[int, typer.Option(metavar="COUNT", help="Intervals of time.")] = 100,
    actuated: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A joint or actuator with a control; the actuators. May be repeated."
        ),
    ] = None,
    transcription: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="dmoc, midpoint, hermite-simpson, radau, ...", show_default=False),
    ] = None,
    solver: Annotated[
        str, typer.Option(metavar="NAME", help="sweep, ipopt, fatrop, or highs for linear problems.")
    ] = "sweep",
    parameter: Parameters = None,
    save: Save = None,
    plot: Plot = None,
    html: Html = None,
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
    perform(
        OptimiseTask,
        model,
        options,
        outputs,
        as_json=as_json,
        floating=floating,
        package_dirs=package_dir,
        strict=strict,
    )


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
