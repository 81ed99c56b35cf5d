"""`alembert schema`: what editors and other programs need to know of the file formats."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated

import typer

from alembert.cli.app import STUDIES, command


class Kind(Enum):
    model = "model"


@command(
    "schema",
    panel=STUDIES,
    examples=[("alembert schema > model.schema.json", "of model files")],
)
def schema(
    kind: Annotated[Kind, typer.Argument(help="Of which files.")] = Kind.model,
) -> None:
    """Print the JSON schema of a file format."""
    from alembert.model.io import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))
