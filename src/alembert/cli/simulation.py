"""`alembert simulate MODEL`: let a model move, and keep the motion."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alembert.cli.app import COMPUTE, command
from alembert.cli.models import Floating, ModelName, PackageDirs, load_model
from alembert.errors import ArgumentError

if TYPE_CHECKING:
    from alembert.model import Model

Values = Annotated[
    list[str] | None,
    typer.Option(metavar="JOINT=VALUE[,VALUE...]", help="May be repeated; joints not named are at zero."),
]


@command(
    "simulate",
    panel=COMPUTE,
    examples=[("alembert simulate pendulum --position pivot=1.5", "let it swing for 10 s")],
)
def simulate(
    model: ModelName,
    time: Annotated[float, typer.Option(help="How long [s].")] = 10.0,
    step: Annotated[
        float | None, typer.Option(help="Of fixed-step integrators [s].", show_default=False)
    ] = None,
    interval: Annotated[float | None, typer.Option(help="Between records [s].", show_default=False)] = None,
    integrator: Annotated[str, typer.Option(help="'auto' chooses and says why.")] = "auto",
    position: Values = None,
    speed: Values = None,
    effort: Values = None,
    plot: Annotated[
        Path | None, typer.Option(help="Write a plot: .png, .svg or .pdf.", show_default=False)
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write the records: .nc or .csv.", show_default=False)
    ] = None,
    floating: Floating = False,
    package_dir: PackageDirs = None,
) -> None:
    """Let a model move from a state, and report how well energy and momentum were kept."""
    from alembert.simulate import simulate as run_simulation

    found = load_model(model, floating, package_dir)
    q = found.neutral()
    for name, values in _by_joint(found, "--position", position, "nq").items():
        q[found.q_slice(name)] = values
    run = run_simulation(
        found,
        q,
        _vector(found, "--speed", speed),
        duration=time,
        step=step,
        interval=interval,
        integrator=integrator,
        efforts=_vector(found, "--effort", effort),
    )
    typer.echo(run.report)
    typer.echo(f"at {run.time[-1]:g} s:")
    for name, x in found.split(run.q[-1]).items():
        typer.echo(f"  {name} = {', '.join(f'{entry:.9g}' for entry in x)}")
    if plot is not None:
        run.plot(path=plot)
        typer.echo(f"plot: {plot}")
    if save is not None:
        typer.echo(f"records: {run.save(save)}")


def _vector(model: Model, option: str, entries: list[str] | None) -> Any:
    import numpy as np

    x = np.zeros(model.nv)
    for name, values in _by_joint(model, option, entries, "nv").items():
        x[model.v_slice(name)] = values
    return x


def _by_joint(model: Model, option: str, entries: list[str] | None, count: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for entry in entries or []:
        name, _, text = entry.partition("=")
        expected = getattr(model.joint(name).type, count)
        try:
            values = [float(x) for x in text.split(",")]
        except ValueError:
            values = []
        if len(values) != expected:
            raise ArgumentError(
                f"{option} {entry}: expected {name}= and {expected} numbers, with commas between"
            )
        found[name] = values
    return found
