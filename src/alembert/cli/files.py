"""`alembert info`, `convert` and `schema`: model files without computing anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alembert.arguments import check_known
from alembert.cli import console
from alembert.cli.app import MODELS, STUDIES, Json, command
from alembert.cli.models import Floating, ModelName, PackageDirs, Strict, argument, complete_model, load_model

if TYPE_CHECKING:
    from alembert.model import Model


@command(
    "info",
    panel=MODELS,
    examples=[
        ("alembert info arm.urdf", "the tree of bodies and joints, masses and limits"),
        ("alembert info acrobot", "a model of the library"),
        ("alembert info --json arm.urdf", "the same, and the whole content, for programs"),
        ("alembert info", "the models of the library"),
    ],
    keys={
        "name": "of the model",
        "nq": "number of coordinates",
        "nv": "number of degrees of freedom",
        "mass": "of all bodies, kg",
        "coordinates": "their names, in the order of q",
        "speeds": "their names, in the order of v",
        "model": "the content, as in Alembert's own format; infinities are texts",
        "library": "(without MODEL, and alone) a summary of each model of the library, by name",
    },
)
def info(
    model: Annotated[
        str | None,
        argument(
            "[MODEL]",
            "A file or a model of the library; without it, the library is listed.",
            complete=complete_model,
        ),
    ] = None,
    as_json: Json = False,
    floating: Floating = False,
    package_dir: PackageDirs = None,
    strict: Strict = False,
) -> None:
    """Show the tree of a model with its degrees of freedom, masses and limits."""
    if model is None:
        _library(as_json)
        return
    found = load_model(model, floating, package_dir, strict)
    console.answer(summary(found), as_json, str(found))


def _library(as_json: bool) -> None:
    import inspect

    from alembert import library
    from alembert.study.report import Grid

    listed = {name: inspect.getdoc(getattr(library, name)) or "" for name in library.names()}
    lines = {name: text.partition("\n")[0].rstrip(".") for name, text in listed.items()}
    table = Grid.of("models of the library", ("name", ""), lines.items(), left=2)
    console.answer({"library": lines}, as_json, table)


@command(
    "convert",
    panel=MODELS,
    examples=[
        ("alembert convert arm.urdf arm.toml", "from URDF to Alembert's own format"),
        ("alembert convert acrobot acrobot.yaml", "a model of the library, to edit"),
        ("alembert convert arm.toml arm.sdf", "for Gazebo; what the format cannot say is told"),
    ],
    keys={
        "source": "what was read",
        "target": "the file that was written",
        "name": "of the model",
        "nv": "degrees of freedom",
    },
)
def convert(
    model: ModelName,
    target: Annotated[
        Path,
        argument(
            "OUT", "The file to write: .toml or .yaml; .urdf, .mjcf (.xml), .sdf or .usda for other programs."
        ),
    ],
    as_json: Json = False,
    floating: Floating = False,
    package_dir: PackageDirs = None,
    strict: Strict = False,
    side_files: Annotated[
        bool,
        typer.Option("--side-files", help="Put the numbers of flexible bodies into .npz files beside it."),
    ] = False,
) -> None:
    """Read a model in any format and write it in Alembert's own, or for another program."""
    from alembert.model.io import save

    found = load_model(model, floating, package_dir, strict)
    save(found, target, side_files=side_files)
    if as_json:
        data = {"source": model, "target": target, "name": found.name, "nv": found.nv}
        console.answer(data, as_json)
    console.remark(f"{target}: {found!r}")


def summary(model: Model) -> dict[str, Any]:
    """Sizes and names, and the content of the model as in its own format."""
    from alembert.model.io.native import plain_model

    return {
        "name": model.name,
        "nq": model.nq,
        "nv": model.nv,
        "mass": model.mass,
        "coordinates": list(model.coordinate_names),
        "speeds": list(model.speed_names),
        "model": plain_model(model),
    }


KINDS = ("model", "study")


def _complete_kind(incomplete: str) -> list[str]:
    return [kind for kind in KINDS if kind.startswith(incomplete)]


@command(
    "schema",
    panel=STUDIES,
    examples=[
        ("alembert schema > model.schema.json", "of model files"),
        ("alembert schema study > study.schema.json", "of run files"),
    ],
)
def schema(
    kind: Annotated[
        str, typer.Argument(help="Of which files: model or study.", autocompletion=_complete_kind)
    ] = "model",
) -> None:
    """Print the JSON schema of a file format, for editors and other programs."""
    check_known("schema: there is no kind of files", kind, KINDS)
    if kind == "study":
        from alembert.study.file import json_schema
    else:
        from alembert.model.io import json_schema
    typer.echo(json.dumps(json_schema(), indent=2))
