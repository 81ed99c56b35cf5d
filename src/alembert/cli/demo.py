"""`alembert demo`: motions worth looking at, on one page that opens without network or server."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alembert.arguments import unknown
from alembert.cli import console
from alembert.cli.app import STUDIES, Json, command
from alembert.cli.models import argument, option
from alembert.cli.scenes import SCENES, DemoScene, coloured
from alembert.errors import ArgumentError, made_folder
from alembert.study.report import Grid

if TYPE_CHECKING:
    from alembert.study.flagship import Story


FLAGSHIP, PLAY = "flagship", "play"
OTHERS = {
    FLAGSHIP: "A flexible satellite, from a model file to a controller that is proven, flown and dispersed.",
    PLAY: "A chain that is simulated in the browser: drag it, change gravity and damping.",
}
"""scenes with a page of their own"""


def _complete_scene(incomplete: str) -> list[str]:
    return [*SCENES, *OTHERS]


@command(
    "demo",
    panel=STUDIES,
    examples=[
        ("alembert demo", "all scenes on one page, demo-output/index.html"),
        (
            "alembert demo flagship",
            "a satellite from its model file to a controller proven and flown: orbiter.html",
        ),
        ("alembert demo satellite --folder /tmp/look", "one scene, elsewhere"),
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
        list[str] | None, argument("SCENE", "Which (see --list); all.", complete=_complete_scene)
    ] = None,
    folder: Annotated[Path, option("FOLDER", "Where the page goes.")] = Path("demo-output"),
    members: Annotated[int, option("N", "Dispersed flights of the flagship.", min=1)] = 1000,
    list_: Annotated[bool, typer.Option("--list", help="Say what there is.")] = False,
    as_json: Json = False,
) -> None:
    """Solve some hard and beautiful problems, and write one page to look at them in a browser."""
    if list_:
        known = {name: (make.__doc__ or "").partition("\n")[0] for name, make in SCENES.items()}
        known |= OTHERS
        console.answer({"scenes": known}, as_json, Grid.of("scenes", ("name", ""), known.items(), left=2))
        return
    asked = list(scene or [*SCENES, *OTHERS])
    for name in asked:
        if name not in (*SCENES, *OTHERS):
            raise ArgumentError(unknown("demo: there is no scene", name, [*SCENES, *OTHERS]))
    chosen = [name for name in asked if name not in OTHERS]
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
    pages = [write(list(made.values()), folder / "index.html")] if made else []
    if PLAY in asked:
        start = perf_counter()
        with console.working("A page that simulates ..."):
            pages.append(play(folder / "play.html"))
        about = {"title": OTHERS[PLAY], "seconds": perf_counter() - start, "summary": {}}
        data[PLAY] = about | {"page": str(pages[-1])}
    if FLAGSHIP in asked:
        flown = _fly(folder, members, as_json)
        pages.append(flown.path)
        told = {"title": flown.title, "seconds": sum(flown.seconds.values()), "summary": dict(flown.summary)}
        data[FLAGSHIP] = told | {"page": str(flown.path)}
    seconds = perf_counter() - begin
    listed = ", ".join(str(path) for path in pages)
    text = f"Open in a browser: {listed}. ({seconds:.0f} s)"
    console.answer({"page": str(pages[0]), "seconds": seconds, "scenes": data}, as_json, text)


def _fly(folder: Path, members: int, as_json: bool) -> Story:
    from alembert.study.flagship import fly

    with console.working("A flexible satellite: the model ...") as say:
        story = fly(folder, members=members, told=lambda stage: say(f"A flexible satellite: {stage} ..."))
    if not as_json:
        taken = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in story.seconds.items())
        rows = [*story.summary, ("seconds", taken)]
        console.show(Grid.of(story.title, ("", ""), rows, left=2), "")
    return story


def play(path: Path) -> Path:
    """A page that simulates a chain of 12 links in the browser, 1000 steps a second."""
    from alembert import library
    from alembert.deploy import live_page

    made_folder(path.parent)
    chain = coloured(library.chain(12, axes=((0.0, -1.0, 0.0),), length=0.25, mass=0.2))
    return live_page(chain, path, title="A chain to play with")


def write(scenes: list[DemoScene], path: Path) -> Path:
    """One page with a tab for each scene."""
    from alembert.view import Animation, write_page

    made_folder(path.parent)
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
