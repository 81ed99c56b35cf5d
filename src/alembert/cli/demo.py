"""`alembert demo`: motions worth looking at, on one page that opens without network or server."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from alembert.cli import console
from alembert.cli.app import STUDIES, Json, command
from alembert.cli.scenes import SCENES, DemoScene
from alembert.errors import ArgumentError, FileError
from alembert.model.printing import unknown
from alembert.study.parts import Grid


def _complete_scene(incomplete: str) -> list[str]:
    return list(SCENES)


@command(
    "demo",
    panel=STUDIES,
    examples=[
        ("alembert demo", "all scenes on one page, demo-output/index.html"),
        ("alembert demo satellite --folder /tmp/look", "one of them, elsewhere"),
        ("alembert demo --list", "what there is"),
    ],
    keys={
        "page": "the file to open in a browser",
        "seconds": "that it took",
        "scenes": "title, seconds and summary of each, by name (with --list: what each is about)",
    },
)
def demo(
    scene: Annotated[
        list[str] | None,
        typer.Argument(metavar="SCENE", help="Which (see --list); all.", autocompletion=_complete_scene),
    ] = None,
    folder: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the page goes.")] = Path(
        "demo-output"
    ),
    list_: Annotated[bool, typer.Option("--list", help="Say what there is.")] = False,
    as_json: Json = False,
) -> None:
    """Solve some hard and beautiful problems, and write one page to look at them in a browser."""
    if list_:
        known = {name: (make.__doc__ or "").partition("\n")[0] for name, make in SCENES.items()}
        console.answer({"scenes": known}, as_json, Grid.of("scenes", ("name", ""), known.items(), left=2))
        return
    chosen = list(scene or SCENES)
    for name in chosen:
        if name not in SCENES:
            raise ArgumentError(unknown("demo: there is no scene", name, SCENES))
    begin = perf_counter()
    made: dict[str, DemoScene] = {}
    data: dict[str, Any] = {}
    for name in chosen:
        start = perf_counter()
        with console.working(f"{(SCENES[name].__doc__ or name).partition('.')[0]} ..."):
            made[name] = SCENES[name]()
        seconds = perf_counter() - start
        data[name] = {"title": made[name].title, "seconds": seconds, "summary": dict(made[name].summary)}
        if not as_json:
            rows = [*made[name].summary, ("computed in", f"{seconds:.1f} s, compiling included")]
            console.show(Grid.of(made[name].title, ("", ""), rows, left=2), "")
    page = write(list(made.values()), folder / "index.html")
    seconds = perf_counter() - begin
    text = f"The page is {page}: open it in a browser. ({seconds:.0f} s)"
    console.answer({"page": str(page), "seconds": seconds, "scenes": data}, as_json, text)


def write(scenes: list[DemoScene], path: Path) -> Path:
    """One page with a tab for each scene."""
    from alembert.view import Animation, write_page

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{path.parent}: cannot be made: {error.strerror or error}") from None
    motions = [
        Animation(
            scene.model,
            scene.time,
            scene.q,
            series=scene.series,
            title=scene.title,
            notes={"": scene.about, **dict(scene.summary)},
            **scene.options,
        )
        for scene in scenes
    ]
    return write_page(path, motions, title="Alembert")
