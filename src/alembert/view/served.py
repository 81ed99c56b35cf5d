"""A small server for pages of this machine: it listens on loopback only, behind a `Guard`, and serves what it is given.

A page is a text made on demand, an answer is JSON. Nothing of the file system can be asked for.

Every page in a browser of this machine can open a connection to a port of this machine, and a name of another site may be
made to point here. So a request is answered only if

    its path begins with the token, which is in the address that the user was given,
    its `Host` is this machine by number or as localhost,
    its `Origin`, where it has one, is that host.

The live viewer is such a page, and moved from the program: its picture, sliders, hand and timeline are those of the
stand-alone page (`alembert.view.page`). Some times a second it asks whether the program wants another configuration or time
(`assets/connected.js`). It runs beside the program: making a `Viewer` returns at once, `stop` ends it.
"""

from __future__ import annotations

import contextlib
import functools
import hmac
import html
import http.server
import json
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self
from urllib.parse import urlsplit

from alembert.arguments import real, whole
from alembert.errors import ArgumentError, UnsupportedError
from alembert.view.animation import Animation
from alembert.view.page import (
    SCRIPTS,
    STYLES,
    Still,
    asset,
    configuration_of,
    page_data,
    page_text,
    pose_numbers,
)

HOSTS = ("127.0.0.1", "localhost", "::1")


class Guard:
    """Looks at requests; `token` is the first part of the path of those that are answered."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(16)

    def problem(self, path: str, headers: Any) -> str | None:
        """Why a request is refused."""
        hosts, origins = headers.get_all("Host") or [], headers.get_all("Origin") or []
        if len(hosts) != 1 or _host(hosts[0]) not in HOSTS:
            return "this viewer serves its own machine only"
        if len(origins) > 1 or any(origin != f"http://{hosts[0]}" for origin in origins):
            return "this viewer serves its own page only"
        given = path.partition("?")[0].lstrip("/").partition("/")[0]
        if not hmac.compare_digest(given.encode(errors="replace"), self.token.encode()):
            return "the address of this viewer has a token, which is missing here"
        return None


def _host(text: str) -> str | None:
    try:
        return urlsplit(f"//{text}").hostname
    except ValueError:  # a bracket that is not closed
        return None


LARGEST = 40_000_000  # bytes of a request: a whole file as text
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_KINDS = {".js": "text/javascript", ".css": "text/css", "": "application/json"}

Answer = Callable[[], Any]


class ServedPage:
    """What shows itself on a page that is served in a thread of its own, until `stop` or the end of a `with`."""

    def _serve(
        self,
        what: str,
        title: str,
        styles: Sequence[str],
        scripts: Sequence[str],
        read: Callable[[str], str],
        *,
        answers: Mapping[str, Answer],
        actions: Mapping[str, Callable[[dict[str, Any]], Any]],
        port: int | None,
        first: int,
        open_browser: bool,
    ) -> None:
        """Begin, with a page of these styles and scripts, whose texts `read` gives by name.

        `answers` give what is asked for by GET, `actions` take what is sent by POST; both are JSON.
        """
        self._guard, self._stopped = Guard(), threading.Event()
        self._texts = {name: functools.partial(read, name) for name in (*styles, *scripts)}
        self._texts[""] = functools.partial(page_text, title, styles, scripts)
        self._answers, self._actions = answers, actions
        self._server = _listening(what, port, first, functools.partial(_Handler, served=self))
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()
        if open_browser:
            webbrowser.open(self.url)

    @property
    def url(self) -> str:
        """The address of the page; its token is needed to see and to change anything."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/{self._guard.token}/"

    def stop(self) -> None:
        """End the server; what the page has not saved is lost."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._server.shutdown()
            self._server.server_close()

    def _wait(self) -> None:
        try:
            while not self._stopped.wait(0.5):
                pass
        except KeyboardInterrupt:
            self.stop()

    @property
    def _place(self) -> str:
        return "stopped" if self._stopped.is_set() else f"at {self.url}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _repr_html_(self) -> str:
        """In notebooks: where it is."""
        text = html.escape(repr(self)[1:-1])
        if self._stopped.is_set():
            return f"<p>{text}</p>"
        return f'<p><a href="{self.url}" target="_blank" rel="noopener">{text}</a></p>'


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

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that is closed while it is answered is no fault to tell of."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def server_close(self) -> None:
        """Browsers keep connections: those are ended too."""
        super().server_close()
        for request in list(self._open):
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)


def _listening(what: str, port: int | None, first: int, handler: Any) -> _Server:
    """On the port that was asked for, or on the first free one from `first` on."""
    if port is not None:
        whole(what, "port", port, "a whole number, 0 to 65535", least=0, most=2**16 - 1)
    for number in [port] if port is not None else [*range(first, first + 20), 0]:
        try:
            return _Server(("127.0.0.1", number), handler)
        except OSError as error:
            problem = error
    raise ArgumentError(f"{what}: port {port} cannot be used: {problem.strerror}")


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    disable_nagle_algorithm = True

    def __init__(self, *given: Any, served: ServedPage) -> None:
        self._served = served
        super().__init__(*given)

    def do_GET(self) -> None:
        path = self._inside()
        if path is None:
            return
        if path in self._served._texts:
            kind = "text/html" if path == "" else _KINDS[f".{path.rpartition('.')[2]}"]
            self._send(self._served._texts[path](), kind)
        elif path in self._served._answers:
            self._send_json(self._served._answers[path]())
        else:
            self._refuse(404, "there is nothing here")

    def do_POST(self) -> None:
        path = self._inside()
        if path is None:
            return
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or int(length) > LARGEST:
            self._refuse(413, f"a request has at most {LARGEST} bytes")
            return
        content = self.rfile.read(int(length))
        try:
            action = json.loads(content)
        except (ValueError, RecursionError):
            action = None
        if path not in self._served._actions or not isinstance(action, dict):
            self._refuse(400, "expected an action as JSON")
            return
        self._send_json(self._served._actions[path](action))

    def _inside(self) -> str | None:
        """The path behind the token, None for a request that was refused."""
        guard = self._served._guard
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


PORT = 8080


class Viewer(ServedPage):
    """A running viewer: `url`, `stop()`; `set` and `seek` move what is shown first."""

    def __init__(
        self, shown: Sequence[Still | Animation], *, port: int | None = None, open_browser: bool = True
    ) -> None:
        self._first, self.model = shown[0], shown[0].model
        self._wanted: dict[str, Any] = {"number": 0}
        title, data = page_data(shown)
        self._serve(
            "view",
            title,
            STYLES,
            (*SCRIPTS, "connected.js"),
            asset,
            answers={"scenes": lambda: data, "wanted": lambda: self._wanted},
            actions={},
            port=port,
            first=PORT,
            open_browser=open_browser,
        )

    def wait(self) -> None:
        """Until `stop` is called, or the user interrupts."""
        self._wait()

    def set(self, q: Any) -> None:
        """Show a configuration, an array or by joint."""
        q = configuration_of(self.model, q)
        wanted: dict[str, Any] = {"poses": pose_numbers(self.model, q)}
        if isinstance(self._first, Still):
            wanted["x"] = self._first.values(q)
        self._want("set", wanted)

    def seek(self, t: float) -> None:
        """Show a motion at a time."""
        if isinstance(self._first, Still):
            raise UnsupportedError("seek: the viewer shows a model at rest; view a result to have a timeline")
        time = real("seek", "t", t, "a time in seconds")
        self._want("seek", {"time": time})

    def _want(self, function: str, wanted: dict[str, Any]) -> None:
        if self._stopped.is_set():
            raise ArgumentError(f"{function}: the viewer was stopped; al.view(...) opens another")
        self._wanted = {"number": self._wanted["number"] + 1, **wanted}

    def __repr__(self) -> str:
        return f"<Viewer of {self.model.name!r} {self._place}>"
