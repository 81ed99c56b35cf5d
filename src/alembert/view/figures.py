"""Figures with matplotlib: lines that are told apart by dashes and markers as well as by colour.

How models and results look in notebooks: a page in a frame, tables, pictures. Names are escaped.
"""

from __future__ import annotations

import base64
import contextlib
import html
import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.errors import ArgumentError, FileError, UnsupportedError, writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


COLORS = ("#1f5fbf", "#c2410c", "#0f7b5a", "#8b2f7f", "#4b5563", "#a16207", "#0e7490", "#b91c1c")
DASHES: tuple[Any, ...] = (
    "-",
    (0, (6, 2)),
    (0, (1.5, 1.5)),
    (0, (7, 2, 1.5, 2)),
    (0, (4, 1.5)),
    (0, (10, 3)),
    (0, (1, 3)),
    (0, (7, 1.5, 1.5, 1.5, 1.5, 1.5)),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MOST_LABELS = 24


def style(k: int, *, markers: bool = False) -> dict[str, Any]:
    """Of the k-th line: colour and dashes; from the ninth on, or where asked for, a marker too."""
    found: dict[str, Any] = {
        "color": COLORS[k % len(COLORS)],
        "linestyle": DASHES[k % len(DASHES)],
        "linewidth": 1.4,
    }
    if markers or k >= len(COLORS):
        found |= {"marker": MARKERS[(k // len(COLORS) + k) % len(MARKERS)], "markersize": 4}
        found["markerfacecolor"] = "none"
    return found


def new_figure(function: str, width: float, height: float) -> Figure:
    """A figure of its own: no window, and nothing to close."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsupportedError(f"{function}: matplotlib is not installed; pip install matplotlib") from None
    return Figure(figsize=(width, height), layout="constrained")


def panels(
    function: str, count: int, *, height: float = 2.1, width: float = 9.0
) -> tuple[Figure, list[Axes]]:
    """Panels below each other with a common time axis."""
    figure = new_figure(function, width, 0.8 + height * count)
    axes = list(np.atleast_1d(figure.subplots(count, 1, sharex=True)))
    return figure, axes


def by_unit(numbers: Iterable[int], units: Sequence[str]) -> dict[str, list[int]]:
    """Numbers of signals by their unit, in the order in which units come; those of no known unit together."""
    found: dict[str, list[int]] = {}
    for k in numbers:
        found.setdefault(units[k] if units else "", []).append(k)
    return found


def lines(axis: Axes, x: Any, named: Mapping[str, Any], label: str, *, first: int = 0) -> None:
    """Lines with a legend beside them, in the styles from the `first` on."""
    for k, (name, y) in enumerate(named.items(), start=first):
        made = style(k)
        if "marker" in made:
            made["markevery"] = max(1, len(np.atleast_1d(x)) // 12)
        axis.plot(x, y, label=plain(name), **made)
    axis.set_ylabel(plain(label))
    axis.grid(alpha=0.3)
    axis.margins(x=0)
    if named:
        columns = 1 if len(named) <= 8 else 2
        handles, labels = axis.get_legend_handles_labels()
        more = len(labels) - MOST_LABELS
        axis.legend(
            handles[:MOST_LABELS],
            labels[:MOST_LABELS],
            title=f"... and {more} more" if more > 0 else None,
            title_fontsize="small",
            fontsize="small",
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            frameon=False,
            handlelength=3.2,
            ncols=columns,
        )


def plain(text: str) -> str:
    """Text that matplotlib does not take for mathematics; a leading underscore would hide it from legends."""
    text = str(text).replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text


def save(figure: Figure, path: str | os.PathLike[str] | None) -> Figure:
    if path is not None:
        try:
            with writing(path):
                figure.savefig(path, dpi=130)
        except FileError:  # a ValueError as well
            raise
        except ValueError as error:
            raise ArgumentError(f"plot: {os.fspath(path)}: {error}") from None
    return figure


def plot_convergence(
    log: Sequence[Any],
    *,
    title: str = "convergence",
    path: str | os.PathLike[str] | None = None,
    tolerances: Mapping[str, float] | None = None,
) -> Figure:
    """Cost, and what should become small, over the iterations of an optimiser.

    `log` has one record per iteration, a mapping or an object: `cost`, and any of `infeasibility`, `step`,
    `optimality` and other numbers. The cost has a panel of its own; everything else is drawn in a second one with a
    logarithmic axis. `tolerances` draws a level for some of them.
    """
    records = [_record(entry, k) for k, entry in enumerate(log)]
    if not records:
        raise ArgumentError("plot_convergence: log is empty, expected one record per iteration")
    names = [name for name in records[0] if name not in ("iteration", "number", "cost", "seconds")]
    names = [name for name in names if any(record.get(name) for record in records)]  # a logarithm has no zero
    iterations = np.array(
        [record.get("iteration", record.get("number", k)) for k, record in enumerate(records)]
    )
    shown = [what for what, there in (("cost", "cost" in records[0]), ("rest", bool(names))) if there]
    figure, axes = panels("plot_convergence", len(shown), height=2.5, width=8.0)
    marked = max(1, len(records) // 15)
    for axis, what in zip(axes, shown, strict=True):
        for k, name in enumerate(["cost"] if what == "cost" else names):
            y = np.array([float(record.get(name, np.nan)) for record in records])
            if what == "rest":
                y = np.where(np.abs(y) > 0, np.abs(y), np.nan)
            axis.plot(iterations, y, label=plain(name), markevery=marked, **style(k, markers=True))
            if tolerances and name in tolerances:
                axis.axhline(tolerances[name], color=COLORS[k % len(COLORS)], linewidth=0.8, alpha=0.7)
        if what == "rest":
            axis.set_yscale("log")
            axis.legend(fontsize="small", frameon=False)
        axis.set_ylabel("cost" if what == "cost" else "size")
        axis.grid(alpha=0.3)
    from matplotlib.ticker import MaxNLocator

    axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[-1].set_xlabel("iteration")
    axes[0].set_title(plain(title))
    return save(figure, path)


def _record(entry: Any, k: int) -> dict[str, float]:
    """The numbers of one iteration."""
    if isinstance(entry, Mapping):
        found = dict(entry)
    elif hasattr(entry, "_asdict"):
        found = entry._asdict()
    elif hasattr(entry, "__dataclass_fields__"):
        found = {name: getattr(entry, name) for name in entry.__dataclass_fields__}
    else:
        raise ArgumentError(
            f"plot_convergence: record {k} is a {type(entry).__name__}, expected a mapping or a record with fields"
        )
    return {
        str(name): float(value)
        for name, value in found.items()
        if isinstance(value, int | float | np.number) and not isinstance(value, bool)
    }


def framed(page: str, *, height: int = 560) -> str:
    """A page inside another, of whatever encoding: its scripts run only in a sandbox without access to the notebook."""
    text = html.escape(page, quote=True).encode("ascii", "xmlcharrefreplace").decode()
    return (
        f'<iframe srcdoc="{text}" sandbox="allow-scripts allow-downloads" '
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
