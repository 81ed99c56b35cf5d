"""Model files, without computing anything: `alembert info`, `convert`, `schema`, `view` (stored motions too) and `build`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alembert.arguments import check_known
from alembert.cli import console
from alembert.cli.app import MODELS, STUDIES, Json, command
from alembert.cli.console import (
    Floating,
    ModelName,
    PackageDirs,
    Strict,
    argument,
    complete_model,
    load_model,
    option,
)

if TYPE_CHECKING:
    from alembert.editor import ModelDocument
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
        from alembert.study.run import json_schema
    else:
        from alembert.model.io import json_schema
    typer.echo(json.dumps(json_schema(), indent=2))


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
    from alembert.view.animation import SUFFIXES, read_motion

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
