"""How models and results look in notebooks: a page in a frame, tables, pictures. Names are escaped.

A model in a notebook whose joints are Python's as well: moved by hand they are read, set in Python they move.

The picture is the stand-alone page in a sandbox (`alembert.view.page`), which exchanges slider values with the widget. Needs
anywidget, of the extra `notebook`.
"""

from __future__ import annotations

import base64
import contextlib
import html
import io
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import anywidget
import numpy as np
import traitlets

from alembert.arguments import numbers
from alembert.errors import UnsupportedError
from alembert.model import Model
from alembert.view.page import Still, asset, page
from alembert.view.sliders import configuration

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Array = np.ndarray


class JointWidget(anywidget.AnyWidget):
    """Made by `al.view.widget`: `q` is where the joints are, as sliders and mouse have them; it can be set."""

    _esm = asset("widget.js")
    page = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int(560).tag(sync=True)
    x = traitlets.List(traitlets.Float()).tag(sync=True)
    """values of the sliders, one for each degree of freedom"""

    def __init__(self, model: Model, q: Any = None, *, height: int = 560, theme: str = "auto") -> None:
        still = Still(model, q)
        text = page([still], theme=theme, told=True)
        if model.nv == 0 or any(body.flexible is not None for body in model.bodies):
            raise UnsupportedError(
                f"widget: {model.name!r} has {'bodies that deform' if model.nv else 'no joint that moves'}; al.view(model) "
                "shows it without Python"
            )
        self._model, self._start = model, np.asarray(still.q, dtype=float)
        super().__init__(page=text, height=int(height), x=self._values(self._start))

    def _values(self, q: Array) -> list[float]:
        """Of the sliders: coordinates where these add, displacements from the start elsewhere."""
        moved, found = self._model.difference(self._start, q), np.zeros(self._model.nv)
        for o in self._model.space:
            found[o.v] = q[o.q] if o.type.is_vector_space else moved[o.v]
        return [float(value) for value in found]

    @property
    def q(self) -> Array:
        """(nq,)"""
        return np.asarray(configuration(self._model, self._start, np.array(self.x)))

    @q.setter
    def q(self, value: Any) -> None:
        q = numbers("widget", "q", value, self._model.nq, batch=False)
        self._model.space.check("widget", q)
        self.x = self._values(q)

    def on_move(self, function: Callable[[Array], Any]) -> None:
        """Call `function(q)` whenever the joints have moved, by hand or by Python."""
        self.observe(lambda _: function(self.q), names="x")


def framed(page: str, *, height: int = 560) -> str:
    """A page inside another: its scripts run only in a sandbox without access to the notebook."""
    return (
        f'<iframe srcdoc="{html.escape(page, quote=True)}" sandbox="allow-scripts allow-downloads" '
        f'style="width: 100%; height: {int(height)}px; border: 1px solid #8884; border-radius: 8px" '
        'title="alembert viewer"></iframe>'
    )


def in_notebook() -> bool:
    """Whether output can be shown as HTML: a Jupyter kernel, not a terminal."""
    import sys

    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return type(get_ipython()).__name__ == "ZMQInteractiveShell"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """An HTML table of texts."""
    head = "".join(f'<th style="text-align: left">{html.escape(str(c))}</th>' for c in columns)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="text-align: left; white-space: pre">{html.escape(str(x))}</td>' for x in row)
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def picture(figure: Figure) -> str:
    """A figure as an image in the text."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=90)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="plot" style="max-width: 100%" src="data:image/png;base64,{data}">'


def result_html(
    title: str, lines: Sequence[str] = (), plot: Callable[[], Figure] | None = None, *, body: str = ""
) -> str:
    """A result: what it is, its report in lines, a `body` of HTML, and its plot where matplotlib is installed."""
    from alembert.errors import UnsupportedError

    parts = [f"<p><b>{html.escape(title)}</b></p>"]
    if lines:
        parts.append("<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>")
    parts.append(body)
    if plot is not None:
        with contextlib.suppress(UnsupportedError, ModuleNotFoundError):  # no matplotlib
            parts.append(picture(plot()))
    return "".join(parts)
