"""The live viewer: the page of models and motions, served to this machine only (see `Guard`), and moved from the program.

Picture, sliders, hand and timeline are those of the stand-alone page (`alembert.view.page`). Some times a second the page
asks whether the program wants another configuration or time (`assets/connected.js`). It runs beside the program: making a
`Viewer` returns at once, `stop` ends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alembert.arguments import real
from alembert.errors import ArgumentError, UnsupportedError
from alembert.view.animation import Animation
from alembert.view.page import SCRIPTS, STYLES, Still, asset, configuration_of, page_data, pose_numbers
from alembert.view.served import ServedPage

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
