"""`alembert linearize MODEL`: a linear model about a state or an equilibrium."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from alembert.cli.app import COMPUTE, Json, command
from alembert.cli.models import Floating, ModelName, PackageDirs, Parameters, Strict, pairs
from alembert.cli.tasks import Effort, Position, Speed, output, perform
from alembert.study.tasks.linearize import LinearizeTask

Save = Annotated[Path | None, output("Write matrices and names: .json, .npz or .mat.")]
Bode = Annotated[Path | None, output("Write a plot of the frequency responses: .png, .svg or .pdf.")]
Html = Annotated[Path | None, output("Write an animation of the modes for the browser: .html.")]
Poles = Annotated[Path | None, output("Write a plot of the poles: .png, .svg or .pdf.")]


def _names(what: str) -> Any:
    return typer.Option(metavar="NAME", help=f"{what} May be repeated.")


Free = Annotated[
    list[str] | None,
    _names("Look for an equilibrium in which this may change: elbow, tau:elbow, actuator:motor, q, v, tau."),
]
Input = Annotated[list[str] | None, _names("An actuator, joint or degree of freedom; the actuators.")]
Output = Annotated[
    list[str] | None, _names("q:elbow, v:elbow, a sensor, frame:hand.position, ...; by default the state.")
]
Sensitivity = Annotated[list[str] | None, _names("A parameter of the model, for the matrices E and F.")]


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
        typer.Option(
            metavar="NAME=VALUE",
            help="Look for an equilibrium with this value: elbow, v:elbow, tau:elbow, actuator:motor. May be repeated.",
        ),
    ] = None,
    free: Free = None,
    input: Input = None,
    output: Output = None,
    parameter: Parameters = None,
    sensitivity: Sensitivity = None,
    save: Save = None,
    bode: Bode = None,
    poles: Poles = None,
    html: Html = None,
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
    perform(
        LinearizeTask,
        model,
        options,
        outputs,
        as_json=as_json,
        floating=floating,
        package_dirs=package_dir,
        strict=strict,
    )
