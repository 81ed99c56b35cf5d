"""A headless browser, for films and tests: Chromium driven over a pipe with its DevTools protocol.

No port is opened and nothing is installed: whichever of Chromium and Chrome is there is used, with its own software
renderer, so that it needs neither display nor graphics card.
"""

from __future__ import annotations

import base64
import contextlib
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

from alembert.errors import AlembertError, UnsupportedError

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

    def screenshot(self, path: str | os.PathLike[str] | None = None, *, selector: str = "") -> bytes:
        """A PNG of the window, or of the first element that a selector finds."""
        options: dict[str, Any] = {"format": "png"}
        if selector:
            box = self.evaluate(
                f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                " return [r.x, r.y, r.width, r.height]; })()"
            )
            options["clip"] = dict(zip(("x", "y", "width", "height"), box, strict=True)) | {"scale": 1}
        data = base64.b64decode(self._call("Page.captureScreenshot", options, session=True)["data"])
        if path is not None:
            Path(path).write_bytes(data)
        return data

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
