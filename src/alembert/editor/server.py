"""The editor as a page of this machine: a small server behind the viewer's guard, and the actions it answers.

The page asks for the state once and sends actions; every answer is the whole new state: the text, what it says, what is
wrong with it and where, the picture and the Python. Only pages that know the token are answered (`alembert.view.served`).
"""

from __future__ import annotations

import functools
import html
import math
import threading
import warnings
import webbrowser
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from alembert.arguments import unknown
from alembert.editor.document import ModelDocument
from alembert.editor.forms import forms
from alembert.editor.python_source import python_source
from alembert.errors import AlembertError, AlembertWarning, ArgumentError
from alembert.view.page import asset, scene_data
from alembert.view.served import Served, ServedPage, page_text

PORT = 8090
_SCRIPTS = ("three.min.js", "plot.js", "stage.js", "hand.js", "player.js", "fields.js", "editor.js")
_STYLES = ("page.css", "editor.css")


def edit(path: str | Path | None = None, *, port: int | None = None, open_browser: bool = True) -> Editor:
    """Open a model in the editor; returns at once a handle with `url` and `stop()`.

    `path` is a file of Alembert's own format (.toml). One that is not there yet begins as an empty model; one of another
    format is read, and saved as .toml beside it. Only this machine is served.
    """
    return Editor(ModelDocument.open(path), port=port, open_browser=open_browser)


class Editor(ServedPage):
    """A running editor: `document` is what it edits, `url` where."""

    def __init__(
        self, document: ModelDocument, *, port: int | None = None, open_browser: bool = True
    ) -> None:
        self.document = document
        self._lock = threading.Lock()
        self._version = 0
        self._picture: tuple[Any, dict[str, Any] | None, str, list[str]] = (None, None, "", [])
        texts: dict[str, Callable[[], str]] = {
            name: functools.partial(_file, name) for name in (*_SCRIPTS, *_STYLES)
        }
        self._served = Served(
            "build",
            {"": lambda: page_text("Alembert", _STYLES, _SCRIPTS, "Reading the model ..."), **texts},
            answers={"state": self.state, "forms": forms},
            actions={"act": self.act},
            port=port,
            first=PORT,
        )
        if open_browser:
            webbrowser.open(self.url)

    def wait(self) -> None:
        """Until `stop` is called, or the user interrupts."""
        self._served.wait()

    def __repr__(self) -> str:
        name = self.document.path.name if self.document.path else "a new model"
        return f"<Editor of {name} {'stopped' if self._served.stopped.is_set() else f'at {self.url}'}>"

    def _repr_html_(self) -> str:
        if self._served.stopped.is_set():
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
        if not isinstance(name, str) or name not in actions:
            raise ArgumentError(unknown("there is no action", str(name), actions))
        try:
            done = actions[name](**given)
        except AlembertError:
            raise
        except RecursionError:
            raise ArgumentError(f"{name}: what is given is nested too deeply") from None
        except OSError as error:
            raise ArgumentError(f"{name}: {error.strerror or error}") from None
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            # no such action as the page makes them
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
                try:
                    scene, failed = scene_data(model), []
                except AlembertError as error:  # the form can mend it
                    scene, failed = None, [f"the model cannot be drawn: {error}"]
            remarks = failed + [str(w.message) for w in told if issubclass(w.category, AlembertWarning)]
            self._picture = (model, scene, python_source(model, self.document.data), remarks)
        return self._picture[1:]


# --- pieces -------------------------------------------------------------------------------------------------


@functools.cache
def _file(name: str) -> str:
    own = resources.files("alembert.editor").joinpath("assets", name)
    return own.read_text(encoding="utf-8") if own.is_file() else asset(name)


def _plain(data: Any) -> Any:
    """What JSON can say: infinite numbers and dates as texts."""
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_plain(entry) for entry in data]
    if isinstance(data, float) and not math.isfinite(data):
        return str(data)
    return data if isinstance(data, (bool, int, float, str)) else str(data)
