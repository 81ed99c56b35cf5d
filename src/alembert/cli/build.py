"""`alembert build [FILE]`: make or change a model in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from alembert.cli import console
from alembert.cli.app import MODELS, Json, command
from alembert.cli.models import complete_model, load_model

if TYPE_CHECKING:
    from alembert.editor import ModelDocument


@command(
    "build",
    panel=MODELS,
    examples=[
        ("alembert build arm.toml", "open a model, or begin one, in the browser"),
        ("alembert build arm.urdf", "open another format; Save writes arm.toml"),
        (
            "alembert build arm.toml --python arm.py",
            "write the Python that makes the model, without a browser",
        ),
    ],
    keys={
        "file": "what Save writes; empty for a model without a file yet",
        "url": "(without --python) where the editor listens, on this machine only",
        "python": "(with --python) the program that was written",
    },
)
def build(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="A model file (.toml; others, and models of the library, are saved as .toml); without one, a new model.",
            show_default=False,
            autocompletion=complete_model,
        ),
    ] = None,
    python: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the model as a Python program instead: .py.", show_default=False
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Where to listen; 8090.", show_default=False)
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
    as_json: Json = False,
) -> None:
    """Make or change a model in the browser: bodies, joints, numbers, with its picture, until Ctrl-C."""
    from alembert.editor import Editor, ModelDocument
    from alembert.model.io.native import dumps

    if file is not None and not file.suffix and not file.exists():
        model = load_model(file)
        document = ModelDocument(Path(f"{model.name}.toml"), dumps(model))
    else:
        document = ModelDocument.open(file)
    if python is not None:
        return _write_python(document, python, as_json)
    with Editor(document, port=port, open_browser=browser) as editor:
        path = editor.document.path
        done = {"file": str(path) if path else "", "url": editor.url}
        console.answer(done, as_json, f"{editor.url}  (Ctrl-C ends it; what is not saved is lost)")
        editor.wait()


def _write_python(document: ModelDocument, path: Path, as_json: bool) -> None:
    from alembert.editor import python_source
    from alembert.errors import ArgumentError, FileError

    if path.suffix.lower() != ".py":
        raise ArgumentError(f"--python {path}: expected a name that ends with .py")
    if document.model is None or document.problems:
        raise FileError("\n".join(what for _, what in document.problems))
    path.write_text(python_source(document.model, document.data), encoding="utf-8")
    done = {"file": str(document.path or ""), "python": str(path)}
    console.answer(done, as_json, f"wrote {path}")
