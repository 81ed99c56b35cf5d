"""`alembert view MODEL|RESULT`: look at a model or a stored motion; `alembert build [FILE]`: make or change a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alembert.cli import console
from alembert.cli.app import MODELS, Json, command
from alembert.cli.models import Floating, PackageDirs, Strict, argument, complete_model, load_model, option

if TYPE_CHECKING:
    from alembert.editor import ModelDocument


Shown = Annotated[
    str,
    argument(
        "MODEL|RESULT",
        "A model (file or library), or records with their model (.nc from simulate --save).",
        complete=complete_model,
    ),
]


@command(
    "view",
    panel=MODELS,
    examples=[
        ("alembert view acrobot", "sliders for every joint, in the browser"),
        ("alembert view run.nc", "a motion that simulate --save run.nc has stored"),
        ("alembert view arm.urdf --records run.csv", "records without a model, and their model"),
        ("alembert view run.nc --html run.html", "write a page that needs no server"),
        ("alembert view run.nc --film run.gif", "write a film: .gif, .webp, .mp4 or .webm"),
    ],
    keys={
        "shown": "what was asked for",
        "url": "(without --html and --film) where the viewer listens, on this machine only",
        "html": "(with --html) the page that was written",
        "film": "(with --film) the film that was written",
    },
)
def view(
    shown: Shown,
    records: Annotated[Path | None, option("FILE", "A motion of the model: .csv or .nc.")] = None,
    html: Annotated[Path | None, option("FILE", "Write a page instead: .html.")] = None,
    film: Annotated[Path | None, option("FILE", "Write a film instead: .gif, .webp, .mp4 or .webm.")] = None,
    port: Annotated[int | None, option("NUMBER", "Where to listen; 8080.")] = None,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
    as_json: Json = False,
    floating: Floating = False,
    package_dir: PackageDirs = None,
    strict: Strict = False,
) -> None:
    """Look at a model or a stored motion: a page in the browser, served to this machine only, until Ctrl-C."""
    from alembert.errors import ArgumentError
    from alembert.view import view as open_viewer
    from alembert.view import write_film, write_page
    from alembert.view.records import SUFFIXES, read_motion

    if html is not None and html.suffix.lower() != ".html":
        raise ArgumentError(f"--html {html}: expected a name that ends with .html")
    thing: Any
    if Path(shown).suffix.lower() in SUFFIXES:
        if records is not None:
            raise ArgumentError(f"--records: {shown} holds records itself")
        thing = read_motion(shown)
    else:
        thing = load_model(shown, floating, package_dir, strict)
        if records is not None:
            thing = read_motion(records, thing)
    done: dict[str, Any] = {"shown": shown}
    if html is not None:
        done["html"] = str(write_page(html, [thing]))
    if film is not None:
        with console.working("drawing"):
            done["film"] = str(write_film(film, thing))
    if len(done) > 1:
        console.answer(done, as_json, *(f"wrote {value}" for key, value in done.items() if key != "shown"))
        return
    with open_viewer(thing, inline=False, port=port, open_browser=browser) as viewer:
        done["url"] = viewer.url
        console.answer(done, as_json, f"{viewer.url}  (Ctrl-C ends it)")
        viewer.wait()


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
        argument(
            "FILE",
            "A model file (.toml; others, and models of the library, are saved as .toml); without one, a new model.",
            complete=complete_model,
        ),
    ] = None,
    python: Annotated[
        Path | None, option("FILE", "Write the model as a Python program instead: .py.")
    ] = None,
    port: Annotated[int | None, option("NUMBER", "Where to listen; 8090.")] = None,
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
