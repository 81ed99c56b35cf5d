"""`al.view(...)`: the live viewer in a browser, or a page inside a notebook."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from alembert.errors import ArgumentError, UnsupportedError
from alembert.model import Model
from alembert.view.animation import as_animation
from alembert.view.figures import framed, in_notebook
from alembert.view.page import Still, page

if TYPE_CHECKING:
    from alembert.view.joint_widget import JointWidget
    from alembert.view.served import Viewer


class Shown:
    """A page for a notebook: displays itself in a frame."""

    def __init__(self, text: str, name: str, height: int) -> None:
        self.html, self._name, self._height = text, name, height

    def _repr_html_(self) -> str:
        return framed(self.html, height=self._height)

    def __repr__(self) -> str:
        return f"<Shown {self._name!r}: {len(self.html) / 1e6:.1f} MB of HTML>"

    def stop(self) -> None:
        """Nothing runs behind it."""


def widget(model: Model, q: Any = None, *, height: int = 560, theme: str = "auto") -> JointWidget:
    """The model in a notebook, with joints that Python shares: `w.q` is where they are, `w.q = ...` moves them.

    `w.on_move(function)` calls `function(q)` whenever they have moved. Needs anywidget, of the extra `notebook`.
    """
    if importlib.util.find_spec("anywidget") is None:
        raise UnsupportedError("widget: needs anywidget; pip install 'alembert[notebook]'")
    from alembert.view.joint_widget import JointWidget

    return JointWidget(model, q, height=height, theme=theme)


@overload
def view(
    shown: Any,
    q: Any = None,
    *,
    inline: Literal[True],
    port: int | None = None,
    open_browser: bool = True,
    height: int = 560,
) -> Shown: ...
@overload
def view(
    shown: Any,
    q: Any = None,
    *,
    inline: Literal[False],
    port: int | None = None,
    open_browser: bool = True,
    height: int = 560,
) -> Viewer: ...
@overload
def view(
    shown: Any,
    q: Any = None,
    *,
    inline: bool | None = None,
    port: int | None = None,
    open_browser: bool = True,
    height: int = 560,
) -> Shown | Viewer: ...
def view(
    shown: Any,
    q: Any = None,
    *,
    inline: bool | None = None,
    port: int | None = None,
    open_browser: bool = True,
    height: int = 560,
) -> Shown | Viewer:
    """Show a model (at `q`), a result with its motion, a file of either, or a list of these, in tabs.

    Returns at once a handle with `stop()`. Modes have a tab each.

    Outside notebooks a page opens in the browser, served to this machine only: `set(q)` and `seek(t)` of the handle move it.
    In a notebook, or with `inline=True`, the handle displays itself as a page that needs no server.
    """
    listed = list(shown) if isinstance(shown, list | tuple) else [shown]
    things = [_read(thing) if isinstance(thing, str | os.PathLike) else thing for thing in listed]
    if q is not None and not (len(things) == 1 and isinstance(things[0], Model)):
        raise ArgumentError("view: q is given, but what is shown is not one model")
    things = [x for thing in things for x in (thing.motions() if hasattr(thing, "motions") else [thing])]
    if not things:
        raise ArgumentError(f"view: {type(shown).__name__} is empty")
    parts = [Still(thing, q) if isinstance(thing, Model) else as_animation(thing) for thing in things]
    if in_notebook() if inline is None else inline:
        return Shown(page(parts, autoplay=False), parts[0].model.name, height)
    from alembert.view.served import Viewer

    return Viewer(parts, port=port, open_browser=open_browser)


def _read(path: str | os.PathLike[str]) -> Any:
    from alembert.model.io import load
    from alembert.view.animation import SUFFIXES, read_motion

    return read_motion(path) if Path(path).suffix.lower() in SUFFIXES else load(path)
