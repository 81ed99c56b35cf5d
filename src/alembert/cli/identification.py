"""`alembert identify MODEL DATA`: the parameters of a model from measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from alembert.cli.app import COMPUTE, Json, command
from alembert.cli.models import Floating, ModelName, PackageDirs, Strict, complete_file, pairs
from alembert.cli.tasks import output, perform
from alembert.study.tasks.identify import IdentifyTask

Save = Annotated[Path | None, output("Write the estimates: .json or .csv.")]
NewModel = Annotated[Path | None, output("Write the identified model: .toml or .yaml.")]
Plot = Annotated[Path | None, output("Write a plot of measured and predicted efforts: .png, .svg or .pdf.")]


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
        typer.Argument(
            metavar="DATA.csv",
            help="Columns time, q.NAME, tau.NAME, and v.NAME, a.NAME where measured; as simulate --save writes them.",
            show_default=False,
            autocompletion=_complete_data,
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="consistent: bodies that can exist; least_squares: the plain linear estimate.",
        ),
    ] = "consistent",
    include: Annotated[
        list[str] | None,
        typer.Option(metavar="TERM", help="viscous, coulomb or armature on every joint. May be repeated."),
    ] = None,
    fixed: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A body or joint that keeps its values. May be repeated."),
    ] = None,
    prior_spread: Annotated[
        float,
        typer.Option(metavar="NUMBER", help="How far the model may be off, as the logarithm of a factor."),
    ] = 1.0,
    cutoff: Annotated[
        float | None,
        typer.Option(
            metavar="HERTZ", help="Of a Butterworth filter before differentiating.", show_default=False
        ),
    ] = None,
    window: Annotated[
        int,
        typer.Option(
            metavar="SAMPLES", help="Of the local polynomials that differentiate, without a cutoff."
        ),
    ] = 31,
    noise: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JOINT=VALUE", help="Standard deviation of an effort, where known. May be repeated."
        ),
    ] = None,
    save: Save = None,
    model: NewModel = None,
    plot: Plot = None,
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
    perform(
        IdentifyTask,
        prior,
        options,
        outputs,
        as_json=as_json,
        floating=floating,
        package_dirs=package_dir,
        strict=strict,
    )
