"""Draw the pictures of docs/viewing.md and docs/identification.md: pages in a headless browser, figures with matplotlib.

python docs/pictures.py
"""

from __future__ import annotations

import io
import runpy
import tempfile
from importlib import resources
from pathlib import Path

import numpy as np
from PIL import Image

import alembert as al
from alembert.editor import edit
from alembert.view.film import Browser

FOLDER = Path(__file__).parent / "images"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    model = al.library.acrobot()
    run = al.simulate(
        model, [2.4, 0.9], duration=6.0, controller=lambda t, q, v: [0.0, 2.0 * np.sin(3.0 * t)]
    )
    with tempfile.TemporaryDirectory() as folder, Browser(width=1200, height=760) as browser:
        page = run.to_html(Path(folder) / "run.html", title="An acrobot", theme="light")
        browser.open(page)
        browser.wait_for("!!window.alembert")
        browser.evaluate(
            "alembert.current.pause(); alembert.current.seek(2.6); alembert.current.show('ghosts', true)"
        )
        _draw(browser, "page.png")
        q = [0.4, 0.6, 0.0, -1.4, 0.0, 1.0, 0.0]
        page = al.view.write_html(Path(folder) / "arm.html", al.library.arm7(), q=q, theme="dark")
        browser.open(page)
        browser.wait_for("!!window.alembert")
        browser.evaluate("alembert.current.show('frames', true)")
        _draw(browser, "model.png")
        _draw_editor(browser, Path(folder))
    run.plot(show=["energy", "efforts"], path=FOLDER / "run.png")
    linear = al.linearize(model, [-np.pi / 2, 0.0])
    linear.plot("bode", outputs=linear.output_names[:2], path=FOLDER / "bode.png")
    for name in ("run.png", "bode.png"):
        _store(Image.open(FOLDER / name), name)
    with tempfile.TemporaryDirectory() as folder:
        runpy.run_path(str(FOLDER.parents[1] / "examples" / "03_identify_arm.py"))["main"](Path(folder))
        for name in ("efforts", "parameters"):
            _store(Image.open(Path(folder) / f"{name}.png"), f"identified-{name}.png")


def _draw_editor(browser: Browser, folder: Path) -> None:
    """A four-bar linkage, pulled by its coupler."""
    template = resources.files("alembert.study").joinpath("templates", "fourbar", "model.toml")
    (folder / "fourbar.toml").write_text(template.read_text(encoding="utf-8"), encoding="utf-8")
    with edit(folder / "fourbar.toml", open_browser=False) as editor:
        browser.open(editor.url)
        browser.wait_for("!!window.alembert")
        browser.evaluate("editor.select('bodies', 'coupler'); editor.open('python')")
        _draw(browser, "build.png")


def _draw(browser: Browser, name: str) -> None:
    browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    _store(Image.open(io.BytesIO(browser.screenshot())), name)


def _store(picture: Image.Image, name: str) -> None:
    """With few colours, which these pictures do not miss: a third of the size."""
    picture.convert("RGB").quantize(160).save(FOLDER / name, optimize=True)


if __name__ == "__main__":
    main()
