"""Who may talk to the live viewer: pages that it served itself, at an address that holds a secret.

Every page in a browser of this machine can open a connection to a port of this machine, and a name of another site may be
made to point here. So a request is answered only if

    its path begins with the token, which is in the address that the user was given,
    its `Host` is this machine by number or as localhost,
    its `Origin`, where it has one (browsers always send it with a WebSocket), is that host.

viser has no option for this. Its server is started with a function that looks at each request first; that the function is
asked is tried out once the server runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hmac
import http
import secrets
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from alembert.errors import UnsupportedError

HOSTS = ("127.0.0.1", "localhost", "::1")
_STARTING = threading.Lock()


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

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """While it lasts, a server that viser starts asks this guard, as long as the server runs."""
        from viser.infra import _infra

        with _STARTING:
            before = _infra.websockets
            try:
                _infra.websockets = _Replaced(before, "asyncio.server.serve", self._serve(before))
                yield
            finally:
                _infra.websockets = before

    def _serve(self, websockets: Any) -> Any:
        def serve(handler: Any, *place: Any, process_request: Any = None, **options: Any) -> Any:
            def check(connection: Any, request: Any) -> Any:
                problem = self.problem(request.path, request.headers)
                if problem:
                    return connection.respond(http.HTTPStatus.FORBIDDEN, f"{problem}\n")
                inside = request.path.lstrip("/").removeprefix(self.token)
                return process_request(connection, dataclasses.replace(request, path=inside or "/"))

            return websockets.asyncio.server.serve(handler, *place, process_request=check, **options)

        return serve

    def try_out(self, port: int) -> None:
        """An `UnsupportedError` if a request of a foreign host is answered."""
        request = f"GET /{self.token}/ HTTP/1.1\r\nHost: example.invalid\r\nConnection: close\r\n\r\n"
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(request.encode())
            answer = connection.recv(64)
        if b" 403 " not in answer:
            raise UnsupportedError("view: this version of viser cannot be told to refuse foreign pages")


def _host(text: str) -> str | None:
    try:
        return urlsplit(f"//{text}").hostname
    except ValueError:  # a bracket that is not closed
        return None


class _Replaced:
    """A module in which one function, at a dotted name, is another."""

    def __init__(self, module: Any, name: str, function: Any) -> None:
        self._module, self._function = module, function
        self._first, _, self._rest = name.partition(".")

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if name != self._first:
            return found
        return _Replaced(found, self._rest, self._function) if self._rest else self._function
