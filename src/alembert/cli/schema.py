"""`alembert schema`: what editors and other programs need to know of the file formats."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from alembert.cli.app import STUDIES, command
from alembert.errors import ArgumentError
from alembert.model.printing import unknown

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
    if kind not in KINDS:
        raise ArgumentError(unknown("schema: there is no kind of files", kind, KINDS))
    if kind == "study":
        from alembert.study.file import json_schema
    else:
        from alembert.model.io import json_schema
    typer.echo(json.dumps(json_schema(), indent=2))
