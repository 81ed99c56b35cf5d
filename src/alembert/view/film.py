"""Films: the picture of the stand-alone page at evenly spaced moments, drawn by a headless browser.

GIF and WebP need Pillow (the extra `view`); MP4 and WebM need ffmpeg, which is sought on the path and in the package
imageio-ffmpeg.

A headless browser, for films and tests: Chromium driven over a pipe with its DevTools protocol.

No port is opened and nothing is installed: whichever of Chromium and Chrome is there is used, with its own software
renderer, so that it needs neither display nor graphics card.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import numpy as np

from alembert.arguments import check_known
from alembert.errors import AlembertError, ArgumentError, FileError, UnsupportedError
from alembert.view.animation import as_animation
from alembert.view.page import THEMES, write_page

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "chromium-headless-shell",
)


def find() -> str | None:
    """The browser's program; `ALEMBERT_BROWSER` names another."""
    named = os.environ.get("ALEMBERT_BROWSER")
    if named:
        return shutil.which(named)
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """`with Browser() as browser: browser.open(path); browser.evaluate("1 + 1")`."""

    def __init__(
        self, *, width: int = 1280, height: int = 800, timeout: float = 60.0, arguments: tuple[str, ...] = ()
    ) -> None:
        program = find()
        if program is None or os.name != "posix":
            raise UnsupportedError(
                f"there is no browser to draw with; install one of {', '.join(NAMES[:3])}, or name it in ALEMBERT_BROWSER"
            )
        self.timeout = timeout
        self.messages: list[str] = []
        """what pages wrote to the console as errors or warnings, and exceptions"""
        self._number = 0
        self._buffer = b""
        self._loaded = False
        self._folder = tempfile.mkdtemp(prefix="alembert-browser-")
        there, self._write = os.pipe()
        self._read, back = os.pipe()
        flags = [
            "--headless=new",
            "--remote-debugging-pipe",
            f"--user-data-dir={self._folder}",
            "--no-first-run",
            "--no-default-browser-check",
            "--disable-extensions",
            "--disable-background-networking",
            "--disable-dev-shm-usage",
            "--mute-audio",
            "--hide-scrollbars",
            "--use-gl=angle",
            "--use-angle=swiftshader",
            "--enable-unsafe-swiftshader",
            f"--window-size={width},{height}",
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            flags.append("--no-sandbox")  # its sandbox does not run as root
        # the protocol is spoken on the descriptors 3 and 4
        script = f'exec "$0" "$@" 3<&{there} 4>&{back}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", script, program, *flags, *arguments, "about:blank"],
            pass_fds=(there, back),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(there)
        os.close(back)
        self.requests: list[str] = []
        """addresses that pages asked for, other than files and data"""
        self._session: str | None = None
        try:
            self._start(width, height)
        except BaseException:
            self.close()
            raise

    def _start(self, width: int, height: int) -> None:
        target = self._call("Target.createTarget", {"url": "about:blank"})
        attached = self._call("Target.attachToTarget", {"targetId": target["targetId"], "flatten": True})
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable", {}, session=True)
        self._call(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
            session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._send("Browser.close", {}, None)
        for descriptor in (self._write, self._read):  # an end of the pipe is an end of the browser
            with contextlib.suppress(OSError):
                os.close(descriptor)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # a session of its own: only what it started
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def open(self, path: str | os.PathLike[str]) -> None:
        """Load a file, or an address, and wait until it has loaded."""
        text = os.fspath(path)
        url = text if "://" in text else Path(text).absolute().as_uri()
        self._loaded = False
        self._call("Page.navigate", {"url": url}, session=True)
        end = time.monotonic() + self.timeout
        while not self._loaded:
            self._receive(end, "Page.navigate")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; promises are waited for."""
        result = self._call(
            "Runtime.evaluate",
            {"expression": expression, "returnByValue": True, "awaitPromise": True, "userGesture": True},
            session=True,
        )
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise AlembertError(
                f"browser: {details.get('exception', {}).get('description', details.get('text'))}"
            )
        return result["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Until an expression is true."""
        end = time.monotonic() + self.timeout
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise AlembertError(f"browser: waited {self.timeout:g} s for {expression}")
            time.sleep(0.02)

    def press(self, key: str, code: str = "", text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            event = {"type": kind, "key": key, "code": code or key}
            if text and kind == "keyDown":
                event["text"] = text
            self._call("Input.dispatchKeyEvent", event, session=True)

    def drag(self, start: tuple[float, float], *path: tuple[float, float], release: bool = True) -> None:
        """Press the mouse at a place of the window, move it along a path, let go."""
        for kind, (x, y) in (
            ("Pressed", start),
            *(("Moved", at) for at in path),
            ("Released", (path or (start,))[-1]),
        ):
            if kind == "Released" and not release:
                return
            event = {"type": f"mouse{kind}", "x": x, "y": y, "button": "left", "clickCount": 1}
            self._call("Input.dispatchMouseEvent", event | {"buttons": int(kind != "Released")}, session=True)

    def screenshot(self, *, selector: str = "") -> bytes:
        """A PNG of the window, or of the first element that a selector finds."""
        options: dict[str, Any] = {"format": "png"}
        if selector:
            box = self.evaluate(
                f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                " return [r.x, r.y, r.width, r.height]; })()"
            )
            options["clip"] = dict(zip(("x", "y", "width", "height"), box, strict=True)) | {"scale": 1}
        return base64.b64decode(self._call("Page.captureScreenshot", options, session=True)["data"])

    # --- the protocol ---------------------------------------------------------------------------------------

    def _call(self, method: str, parameters: dict[str, Any], *, session: bool = False) -> dict[str, Any]:
        number = self._send(method, parameters, self._session if session else None)
        end = time.monotonic() + self.timeout
        while True:
            answer = self._receive(end, method)
            if answer.get("id") == number:
                if "error" in answer:
                    raise AlembertError(f"browser: {method}: {answer['error'].get('message')}")
                return answer.get("result", {})

    def _send(self, method: str, parameters: dict[str, Any], session: str | None) -> int:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        return self._number

    def _receive(self, end: float, what: str) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            left = end - time.monotonic()
            ready, _, _ = select.select([self._read], [], [], max(left, 0.0))
            chunk = os.read(self._read, 1 << 20) if ready else b""
            if not chunk:
                reason = "ended" if ready else f"did not answer within {self.timeout:g} s"
                raise AlembertError(f"browser: {find()} {reason} ({what})")
            self._buffer += chunk
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        method, given = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.messages.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            words = [str(a.get("value", a.get("description", ""))) for a in given["args"]]
            self.messages.append(f"{given['type']}: {' '.join(words)}")
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            entry = given["entry"]
            self.messages.append(f"{entry['level']}: {entry['text']} {entry.get('url', '')}")
        elif method == "Network.requestWillBeSent":
            url = given["request"]["url"]
            if not url.startswith(("file:", "data:", "blob:", "about:")):
                self.requests.append(url)


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
        check_known("write_film: show: there is no", name, SWITCHES)
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
