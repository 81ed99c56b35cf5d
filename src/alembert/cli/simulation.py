"""`alembert simulate MODEL`: let a model move, and keep the motion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from alembert.cli.app import COMPUTE, Json, command
from alembert.cli.models import (
    Floating,
    ModelName,
    PackageDirs,
    Parameters,
    Strict,
    complete_integrator,
    complete_joint,
    pairs,
)
from alembert.cli.tasks import Effort, Position, Speed, output, perform
from alembert.study.tasks.simulate import SimulateTask

Save = Annotated[Path | None, output("Write the records: .csv or .nc.")]
Plot = Annotated[Path | None, output("Write a plot: .png, .svg or .pdf.")]
Html = Annotated[Path | None, output("Write an animation for the browser: .html.")]


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
    time: Annotated[float, typer.Option("--time", "--duration", metavar="SECONDS", help="How long.")] = 10.0,
    step: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Of integrators with fixed steps.", show_default=False),
    ] = None,
    interval: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Between records.", show_default=False)
    ] = None,
    integrator: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="auto chooses and says why; or rk4, variational, dop853, radau, ...",
            autocompletion=complete_integrator,
        ),
    ] = "auto",
    position: Position = None,
    speed: Speed = None,
    effort: Effort = None,
    hold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JOINT",
            help="Keeps its position while loops are closed at the start. May be repeated.",
            autocompletion=complete_joint,
        ),
    ] = None,
    parameter: Parameters = None,
    tolerance: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Of integrators with error control; 1e-9.")
    ] = None,
    save: Save = None,
    plot: Plot = None,
    html: Html = None,
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
    perform(
        SimulateTask,
        model,
        options,
        outputs,
        as_json=as_json,
        floating=floating,
        package_dirs=package_dir,
        strict=strict,
    )
