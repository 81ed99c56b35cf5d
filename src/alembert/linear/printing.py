"""Tables as text."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Any

from rich.console import Console, Group
from rich.table import Table

WIDTH = 110


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> Table:
    """The first `left` columns to the left, numbers to the right."""
    found = Table(title=title, title_justify="left", min_width=min(len(title), WIDTH))
    for k, column in enumerate(columns):
        found.add_column(column, justify="left" if k < left else "right", overflow="fold")
    for row in rows:
        found.add_row(*row)
    return found


def number(x: float, digits: int = 5) -> str:
    """Without a negative zero."""
    return f"{x + 0.0:.{digits}g}"


def text(*parts: Any) -> str:
    """What rich would print, without colours."""
    console = Console(
        file=StringIO(), width=WIDTH, highlight=False, markup=False, color_system=None, force_jupyter=False
    )
    console.print(Group(*parts))
    return console.file.getvalue().rstrip()  # type: ignore[attr-defined]


def html_text(text: str) -> str:
    """For notebooks; names are escaped."""
    return f'<pre style="line-height: 1.2; overflow-x: auto">{html.escape(text)}</pre>'
