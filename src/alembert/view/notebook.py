"""How models and results look in notebooks: a page in a frame, tables, pictures. Names are escaped."""

from __future__ import annotations

import base64
import contextlib
import html
import io
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
