"""The editor as a page of this machine: a small server behind the viewer's guard, and the actions it answers.

The page asks for the state once and sends actions; every answer is the whole new state: the text, what it says, what is
wrong with it and where, the picture and the Python. Only pages that know the token are answered (`alembert.view.guard`).
"""

from __future__ import annotations

import contextlib
import functools
import html
import http.server
import json
import math
import socket
import threading
import warnings
import webbrowser
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Self

from alembert.editor.document import ModelDocument
from alembert.editor.forms import forms
from alembert.editor.python_source import python_source
from alembert.errors import AlembertError, AlembertWarning, ArgumentError
from alembert.model.printing import unknown
from alembert.view.guard import Guard
from alembert.view.page import asset, scene_data

PORT = 8090
LARGEST = 40_000_000  # bytes of a request: a whole file as text
_SCRIPTS = ("three.min.js", "plot.js", "stage.js", "hand.js", "player.js", "fields.js", "editor.js")
_STYLES = ("page.css", "editor.css")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def edit(path: str | Path | None = None, *, port: int | None = None, open_browser: bool = True) -> Editor:
    """Open a model in the editor; returns at once a handle with `url` and `stop()`.

    `path` is a file of Alembert's own format (.toml). One that is not there yet begins as an empty model; one of another
    format is read, and saved as .toml beside it. Only this machine is served.
    """
    return Editor(ModelDocument.open(path), port=port, open_browser=open_browser)


class Editor:
    """A running editor: `document` is what it edits, `url` where."""

    def __init__(
        self, document: ModelDocument, *, port: int | None = None, open_browser: bool = True
    ) -> None:
        self.document = document
        self._guard = Guard()
        self._lock = threading.Lock()
        self._version = 0
        self._picture: tuple[Any, dict[str, Any] | None, str] = (None, None, "")
        self._stopped = threading.Event()
        self._server = _listening(port, functools.partial(_Handler, editor=self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()
        if open_browser:
            webbrowser.open(self.url)

    @property
    def url(self) -> str:
        """The address of the page; its token is needed to see and to change anything."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/{self._guard.token}/"

    def stop(self) -> None:
        """End the server; what is not saved is lost."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._server.shutdown()
            self._server.server_close()

    def wait(self) -> None:
        """Until `stop` is called, or the user interrupts."""
        try:
            while not self._stopped.wait(0.5):
                pass
        except KeyboardInterrupt:
            self.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        name = self.document.path.name if self.document.path else "a new model"
        return f"<Editor of {name} {'stopped' if self._stopped.is_set() else f'at {self.url}'}>"

    def _repr_html_(self) -> str:
        if self._stopped.is_set():
            return "<p>This editor has stopped.</p>"
        return (
            f'<p><a href="{self.url}" target="_blank" rel="noopener">{html.escape(repr(self)[1:-1])}</a></p>'
        )

    # --- actions --------------------------------------------------------------------------------------------

    def act(self, action: Mapping[str, Any]) -> dict[str, Any]:
        """Do what the page asks for; the new state, with `error` where it could not be done."""
        with self._lock:
            answer: dict[str, Any] = {}
            if "version" in action and action["version"] != self._version:
                answer["error"] = "the model was changed in another window; this is how it is now"
            else:
                try:
                    answer |= self._do(action)
                    self._version += 1
                except AlembertError as error:
                    answer["error"] = str(error)
            return answer | self._state()

    def state(self) -> dict[str, Any]:
        """All that the page shows."""
        with self._lock:
            return self._state()

    def _do(self, action: Mapping[str, Any]) -> dict[str, Any]:
        document, given = self.document, dict(action)
        given.pop("version", None)
        name = given.pop("do", None)
        actions: dict[str, Callable[..., Any]] = {
            "change": lambda changes: document.change(changes),
            "add": lambda section, parent="world": {"added": [section, document.add(section, parent=parent)]},
            "remove": lambda section, name: {"removed": document.remove(section, name)},
            "rename": lambda section, name, to: document.rename(section, name, to),
            "move": lambda body, shift: document.move(body, shift),
            "text": lambda text: document.write(text),
            "undo": lambda: document.undo(),
            "redo": lambda: document.redo(),
            "save": lambda name="", over=False: {"wrote": str(document.save(name, over=over))},
        }
        if name not in actions:
            raise ArgumentError(unknown("there is no action", str(name), actions))
        try:
            done = actions[name](**given)
        except TypeError as error:
            raise ArgumentError(f"{name}: {error}") from None
        return done or {}

    def _state(self) -> dict[str, Any]:
        document = self.document
        scene, python, remarks = self._shown()
        return {
            "version": self._version,
            "file": document.path.name if document.path else "",
            "text": document.text,
            "data": _plain(document.data),
            "problems": [{"place": list(place), "text": what} for place, what in document.problems],
            "remarks": remarks,
            "undo": document.before[-1].what if document.before else "",
            "redo": document.after[-1].what if document.after else "",
            "saved": document.text == document.saved,
            "scene": scene,
            "python": python,
            "summary": self._summary(),
        }

    def _summary(self) -> str:
        model = self.document.model
        if model is None:
            return ""
        bodies = f"{len(model.bodies)} {'body' if len(model.bodies) == 1 else 'bodies'}"
        freedom = f"{model.nv} {'degree' if model.nv == 1 else 'degrees'} of freedom"
        freedom += " before constraints" if model.is_constrained else ""
        return f"{bodies}, {freedom}, {model.mass:.4g} kg"

    def _shown(self) -> tuple[dict[str, Any] | None, str, list[str]]:
        """The picture and the Python of the model that was right last; made once per model."""
        model = self.document.model
        if model is None:
            return None, "", []
        if self._picture[0] is not model:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always", AlembertWarning)
                scene = scene_data(model)
            self._picture = (model, scene, python_source(model, self.document.data))
            self._remarks = [str(w.message) for w in told if issubclass(w.category, AlembertWarning)]
        return self._picture[1], self._picture[2], self._remarks


# --- the server ---------------------------------------------------------------------------------------------


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *given: Any) -> None:
        self._open: set[Any] = set()
        super().__init__(*given)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Browsers keep connections: those are ended too."""
        super().server_close()
        for request in list(self._open):
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)


def _listening(port: int | None, handler: Any) -> _Server:
    """On the port that was asked for, or on the first free one from 8090 on."""
    for number in [port] if port is not None else [*range(PORT, PORT + 20), 0]:
        try:
            return _Server(("127.0.0.1", number), handler)
        except OSError as error:
            problem = error
    raise ArgumentError(f"build: port {port} cannot be used: {problem.strerror}")


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def __init__(self, *given: Any, editor: Editor) -> None:
        self._editor = editor
        super().__init__(*given)

    def do_GET(self) -> None:
        path = self._inside()
        if path is None:
            return
        if path == "":
            self._send(page_text(), "text/html")
        elif path == "state":
            self._send_json(self._editor.state())
        elif path == "forms":
            self._send_json(forms())
        elif path in _SCRIPTS:
            self._send(_file(path), "text/javascript")
        elif path in _STYLES:
            self._send(_file(path), "text/css")
        else:
            self._refuse(404, "there is nothing here")

    def do_POST(self) -> None:
        path = self._inside()
        if path is None:
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > LARGEST:
            self._refuse(413, f"a request has at most {LARGEST} bytes")
            return
        content = self.rfile.read(int(length))
        try:
            action = json.loads(content)
        except ValueError:
            action = None
        if path != "act" or not isinstance(action, dict):
            self._refuse(400, "expected an action as JSON")
            return
        self._send_json(self._editor.act(action))

    def _inside(self) -> str | None:
        """The path behind the token, None for a request that was refused."""
        guard = self._editor._guard
        if problem := guard.problem(self.path, self.headers):
            self._refuse(403, problem)
            return None
        return self.path.partition("?")[0].lstrip("/").removeprefix(guard.token).removeprefix("/")

    def _refuse(self, code: int, text: str) -> None:
        self.close_connection = True  # what else was sent is not read
        self._send(f"{text}\n", "text/plain", code)

    def _send_json(self, data: Any) -> None:
        self._send(json.dumps(data, allow_nan=False), "application/json")

    def _send(self, text: str, kind: str, code: int = 200) -> None:
        content = text.encode()
        self.send_response(code)
        for name, value in (
            ("Content-Type", f"{kind}; charset=utf-8"),
            ("Content-Length", str(len(content))),
            ("Content-Security-Policy", _POLICY),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cache-Control", "no-store"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Nothing is written to the terminal."""


@functools.cache
def _file(name: str) -> str:
    own = resources.files("alembert.editor").joinpath("assets", name)
    return own.read_text(encoding="utf-8") if own.is_file() else asset(name)


def page_text() -> str:
    """The page: its scripts ask for everything else."""
    scripts = "\n".join(f'<script defer src="{html.escape(name)}"></script>' for name in _SCRIPTS)
    styles = "\n".join(f'<link rel="stylesheet" href="{html.escape(name)}">' for name in _STYLES)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Alembert</title>
{styles}
{scripts}
</head>
<body>
<header><h1>Alembert</h1></header>
<main><p class="problem">Reading the model ...</p></main>
<noscript>This page needs JavaScript.</noscript>
</body>
</html>
"""


def _plain(data: Any) -> Any:
    """What JSON can say: infinite numbers and dates as texts."""
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_plain(entry) for entry in data]
    if isinstance(data, float) and not math.isfinite(data):
        return str(data)
    return data if isinstance(data, (bool, int, float, str)) else str(data)
