"""`alembert schema`: what editors and other programs need to know of the file formats."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated

import typer

from alembert.cli.app import STUDIES, command


class Kind(Enum):
    """Which files."""

    model = "model"
    study = "study"


@command(
    "schema",
    panel=STUDIES,
    examples=[
        ("alembert schema > model.schema.json", "of model files"),
        ("alembert schema study > study.schema.json", "of run files"),
    ],
)
def schema(
    kind: Annotated[Kind, typer.Argument(help="Of which files: model or study.")] = Kind.model,
) -> None:
    """Print the JSON schema of a file format, for editors and other programs."""
    if kind is Kind.study:
        from alembert.study.file import json_schema
    else:
        from alembert.model.io import json_schema
    typer.echo(json.dumps(json_schema(), indent=2))
