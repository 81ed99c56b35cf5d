"""`alembert optimise MODEL`: the motion of least cost from one state to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from alembert.cli.app import COMPUTE, Json, command
from alembert.cli.models import Floating, ModelName, PackageDirs, Parameters, complete_joint, pairs
from alembert.cli.studies import perform_study
from alembert.cli.tasks import Position, Speed, output, perform
from alembert.errors import ArgumentError
from alembert.study.tasks.optimise import Optimise

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
    ],
    keys=Optimise.KEYS,
)
def optimise(
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
    solver: Annotated[str, typer.Option(metavar="NAME", help="sweep, ipopt or fatrop.")] = "sweep",
    parameter: Parameters = None,
    save: Save = None,
    plot: Plot = None,
    html: Html = None,
    as_json: Json = False,
    floating: Floating = False,
    package_dir: PackageDirs = None,
) -> None:
    """Find the motion and the efforts of least cost from one state to another.

    MODEL may also be a run file with a task `optimise`, which has its own options and outputs. Exits with 1 if no
    solution is found; what was reached is written all the same.
    """
    if _is_study(model):
        lists = (position, speed, end, end_speed, free, actuated, parameter, package_dir)
        plain = (time, cost, steps, transcription, solver, save, plot, html, floating)
        if any(lists) or plain != ("2", "effort", 100, None, "sweep", None, None, None, False):
            raise ArgumentError(
                f"{model}: is a run file, which has its own options; change them with `alembert run {model} --set KEY=VALUE`"
            )
        perform_study(Path(model), [], as_json=as_json)
        return
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
    perform(Optimise, model, options, outputs, as_json=as_json, floating=floating, package_dirs=package_dir)


def _is_study(name: str) -> bool:
    """Whether it is a run file with a task of this kind; one with another task is refused."""
    path = Path(name)
    if path.suffix != ".toml" or not path.is_file():
        return False
    from alembert.study.file import FORMAT, load_study

    if f'"{FORMAT}"' not in path.read_text(encoding="utf-8", errors="replace"):
        return False
    task: Any = load_study(path).task
    if not isinstance(task, Optimise):
        raise ArgumentError(
            f"{name}: its task is {task.type!r}, not 'optimise'; run it with `alembert run {name}`"
        )
    return True
