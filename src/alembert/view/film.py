"""Films: the picture of the stand-alone page at evenly spaced moments, drawn by a headless browser.

GIF and WebP need Pillow (the extra `view`); MP4 and WebM need ffmpeg, which is sought on the path and in the package
imageio-ffmpeg.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from alembert.errors import ArgumentError, FileError, UnsupportedError
from alembert.model.printing import unknown
from alembert.view.animation import as_animation
from alembert.view.browser import Browser
from alembert.view.page import THEMES, write_page

IMAGES = (".gif", ".webp")
VIDEOS = (".mp4", ".webm")
MOST_FRAMES = 3000
SWITCHES = tuple("trails ghosts forces frames com inertia loops sensors names ground follow".split())  # noqa: SIM905


def write_film(
    path: str | os.PathLike[str],
    shown: Any,
    *,
    size: tuple[int, int] = (640, 480),
    rate: float = 25.0,
    speed: float = 1.0,
    theme: str = "light",
    show: tuple[str, ...] = ("trails", "forces", "ground"),
) -> Path:
    """Write a result or a motion as a film: .gif, .webp, .mp4 or .webm, by the name's ending.

    `rate` is frames per second of the film, `speed` how much faster than the motion it runs. `show` lists what is drawn
    besides shapes: trails, ghosts, forces, frames, com, inertia, loops, sensors, names, ground, follow.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in IMAGES + VIDEOS:
        raise ArgumentError(
            f"write_film: {path.name} ends with {path.suffix!r}, expected one of {', '.join(IMAGES + VIDEOS)}"
        )
    if theme not in THEMES:
        raise ArgumentError(f"theme is {theme!r}, expected one of {', '.join(THEMES)}")
    width, height = (int(x) // 2 * 2 for x in size)  # video formats want even sizes
    if width < 16 or height < 16 or not rate > 0 or not speed > 0:
        raise ArgumentError(f"write_film: size {size}, rate {rate} and speed {speed} must be positive")
    for name in show:
        if name not in SWITCHES:
            raise ArgumentError(unknown("write_film: show: there is no", name, SWITCHES))
    motion = as_animation(shown)
    span = float(motion.time[-1] - motion.time[0])
    count = round(span * rate / speed) + 1
    if count > MOST_FRAMES:
        raise ArgumentError(
            f"write_film: {count} frames are more than {MOST_FRAMES}; lower the rate or raise the speed"
        )
    if not path.parent.is_dir():
        raise FileError(f"{path}: cannot be written: No such directory")
    encode = _image_writer(suffix) if suffix in IMAGES else _video_writer(suffix)
    times = np.linspace(motion.time[0], motion.time[-1], max(count, 1))
    with tempfile.TemporaryDirectory(prefix="alembert-film-") as folder:
        page = write_page(Path(folder) / "page.html", [motion], theme=theme, autoplay=False)
        with Browser(width=width, height=height, timeout=120) as browser:
            browser.open(page)
            browser.wait_for("!!window.alembert")
            problem = browser.evaluate("alembert.current.problem")
            if problem:
                raise UnsupportedError(f"write_film: the browser cannot draw in 3-D: {problem}")
            browser.evaluate(_ALONE % (width, height))
            for name in SWITCHES:
                if name in show or name in (
                    "trails",
                    "forces",
                    "ground",
                ):  # those that pages show of themselves
                    browser.evaluate(f"alembert.current.show('{name}', {str(name in show).lower()})")
            frames = []
            for t in times:
                browser.evaluate(_AT % float(t))
                frames.append(browser.screenshot(selector=".stage"))
        encode(path, frames, rate)
    return path


_ALONE = """(() => { for (const e of document.querySelectorAll('header, aside, .bar')) e.remove();
for (const e of document.querySelectorAll('.player')) e.style.display = 'block';
const s = document.querySelector('.stage'); s.style.position = 'absolute'; s.style.width = '%dpx'; s.style.height = '%dpx';
document.querySelector('main').style.overflow = 'hidden';
alembert.current.stage.resize(); alembert.current.stage.home(); })()"""
_AT = """new Promise((done) => { const p = alembert.current; p.seek(%r); p.stage.dirty = true; p.stage.render();
requestAnimationFrame(() => requestAnimationFrame(done)); })"""


def _image_writer(suffix: str) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise UnsupportedError(f'write_film: {suffix} needs Pillow; pip install "alembert[view]"') from None

    def write(path: Path, frames: list[bytes], rate: float) -> None:
        pictures = [Image.open(io.BytesIO(frame)).convert("RGB") for frame in frames]
        options: dict[str, Any] = {"save_all": True, "append_images": pictures[1:], "loop": 0}
        pictures[0].save(path, duration=round(1000 / rate), **options)

    return write


def _video_writer(suffix: str) -> Any:
    program = shutil.which("ffmpeg")
    if program is None:
        with contextlib.suppress(ImportError, RuntimeError):
            import imageio_ffmpeg

            program = imageio_ffmpeg.get_ffmpeg_exe()
    if program is None:
        raise UnsupportedError(
            f"write_film: {suffix} needs ffmpeg, which is not on the path; install it, or pip install imageio-ffmpeg, or "
            "write a .gif"
        )
    codec = {".mp4": ["libx264", "-crf", "20"], ".webm": ["libvpx-vp9", "-crf", "32", "-b:v", "0"]}[suffix]

    def write(path: Path, frames: list[bytes], rate: float) -> None:
        command = [
            program,
            "-y",
            "-loglevel",
            "error",
            "-f",
            "image2pipe",
            "-framerate",
            f"{rate:g}",
            "-c:v",
            "png",
        ]
        command += ["-i", "-", "-c:v", *codec, "-pix_fmt", "yuv420p", str(path.absolute())]
        done = subprocess.run(command, input=b"".join(frames), capture_output=True, check=False)
        if done.returncode:
            raise UnsupportedError(
                f"write_film: ffmpeg failed: {done.stderr.decode(errors='replace').strip()}"
            )

    return write
