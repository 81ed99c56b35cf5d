"""`alembert view MODEL|RESULT`: look at a model or at a stored motion in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from alembert.cli import console
from alembert.cli.app import MODELS, Json, command
from alembert.cli.models import Floating, PackageDirs, Strict, complete_model, load_model

Shown = Annotated[
    str,
    typer.Argument(
        metavar="MODEL|RESULT",
        help="A model (file or library), or records with their model (.nc from simulate --save).",
        show_default=False,
        autocompletion=complete_model,
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
    records: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A motion of the model: .csv or .nc.", show_default=False),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page instead: .html.", show_default=False),
    ] = None,
    film: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write a film instead: .gif, .webp, .mp4 or .webm.", show_default=False
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Where to listen; 8080.", show_default=False)
    ] = None,
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
