"""How models and tables look in a terminal, and how unknown names are answered."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

from alembert.arguments import unknown as unknown
from alembert.model.elements import WORLD

if TYPE_CHECKING:
    from rich.table import Table

    from alembert.model.model import Model

WIDTH = 110


def printable(text: str) -> str:
    """Text for a terminal: what it would obey instead of showing becomes an escape; line ends and tabs stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def counted(count: int, one: str, several: str = "") -> str:
    """`1 body`, `2 bodies`."""
    return f"{count} {one if count == 1 else several or one + 's'}"


def tree(model: Model) -> str:
    """The tree with dof, masses and limits."""
    head = (
        f"{model.name}: {counted(len(model.bodies), 'body', 'bodies')}, "
        f"{counted(model.nv, 'degree of freedom', 'degrees of freedom')}, "
        f"{counted(model.nq, 'coordinate')}, {model.mass:.6g} kg"
    )
    rows = [(WORLD, "", "", "", "")]
    rows += [_row(model, i, prefix) for i, prefix in itertools.islice(_prefixes(model), _MOST_LINES)]
    widths = [max(len(row[k]) for row in [*rows, _HEAD]) for k in range(len(_HEAD))]
    lines = [head, ""]
    for row in [_HEAD, *rows]:
        lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if len(model.bodies) > _MOST_LINES:
        lines.append(f"... and {len(model.bodies) - _MOST_LINES} more bodies")
    extra: list[tuple[str, tuple[Any, ...]]] = [
        ("frames", model.frames),
        ("loops", model.loops),
        ("couplings", model.couplings),
        ("equations", model.equations),
        ("actuators", model.actuators),
        ("sensors", model.sensors),
    ]
    if any(items for _, items in extra) or model.parameters:
        lines.append("")
    for what, items in extra:
        if items:
            names = ", ".join(item.name for item in items[:8])
            lines.append(f"{what} ({len(items)}): {names}{', ...' if len(items) > 8 else ''}")
    if model.parameters:
        lines.append("parameters: " + ", ".join(f"{name} = {value:g}" for name, value in model.parameters))
    return "\n".join(lines)


def html_table(model: Model) -> str:
    """The tree as a table for notebooks; names are escaped."""
    head = "".join(f'<th style="text-align: left">{title}</th>' for title in _HEAD)
    listed = itertools.islice(_prefixes(model), _MOST_ROWS - 1)
    shown = [(WORLD, "", "", "", ""), *(_row(model, i, prefix) for i, prefix in listed)]
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{html.escape(cell)}</td>' for cell in row) + "</tr>"
        for row in shown
    )
    first, *rest = tree(model).split("\n\n")
    left = len(model.bodies) + 1 - len(shown)
    more = f"<p>... and {left} more bodies</p>" if left else ""
    extra = "".join(
        f"<div>{html.escape(line)}</div>" for line in (rest[1].splitlines() if len(rest) > 1 else ())
    )
    return (
        f"<div><b>{html.escape(first)}</b></div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"{more}{extra}"
    )


_MOST_ROWS, _MOST_LINES = 60, 500  # in notebooks and in terminals; a chain's lines grow with its length
_CELL = "text-align: left; white-space: pre; font-family: monospace; padding: 1px 12px 1px 0"
_HEAD = ("body", "joint", "dof", "mass [kg]", "limits")


def _row(model: Model, i: int, prefix: str) -> tuple[str, str, str, str, str]:
    body, joint = model.bodies[i], model.joints[i]
    none = joint.type.nq * (math.inf,)
    low, high = joint.limits.lower or tuple(-x for x in none), joint.limits.upper or none
    limits = ", ".join(
        f"{a:.4g} .. {b:.4g}" for a, b in zip(low, high, strict=True) if math.isfinite(a) or math.isfinite(b)
    )
    mass = f"{model.value(body.inertia.mass):.6g}"
    freedom = str(joint.type.nv)
    if body.flexible is not None:
        freedom += f" + {body.flexible.count} modes"
    return prefix + body.name, f"{joint.name} ({joint.type.kind})", freedom, mass, limits


def _prefixes(model: Model) -> Iterator[tuple[int, str]]:
    """Each body with the lines that hang it from its parent."""
    children: dict[int, list[int]] = {}
    for i, parent in enumerate(model.parents):
        children.setdefault(parent, []).append(i)
    stack = [(i, "", i == children.get(-1, [i])[-1]) for i in reversed(children.get(-1, []))]
    while stack:
        i, indent, last = stack.pop()
        yield i, indent + ("└─ " if last else "├─ ")
        deeper = indent + ("   " if last else "│  ")
        below = children.get(i, [])
        stack += [(k, deeper, k == below[-1]) for k in reversed(below)]


# --- tables ---------------------------------------------------------------------------------------------------------


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> Table:
    """The first `left` columns to the left, numbers to the right."""
    from rich.table import Table

    found = Table(title=title, title_justify="left", min_width=min(len(title), WIDTH))
    for k, column in enumerate(columns):
        found.add_column(column, justify="left" if k < left else "right", overflow="fold")
    for row in rows:
        found.add_row(*row)
    return found


def number(x: float, digits: int = 5) -> str:
    """Without a negative zero."""
    return f"{x + 0.0:.{digits}g}"


def as_text(*parts: Any, markup: bool = False) -> str:
    """What rich would print, without colours."""
    from rich.console import Console

    file = StringIO()
    console = Console(
        file=file, width=WIDTH, highlight=False, markup=markup, color_system=None, force_jupyter=False
    )
    for part in parts:
        console.print(part)
    return file.getvalue().rstrip()


def html_text(text: str) -> str:
    """For notebooks; names are escaped."""
    return f'<pre style="line-height: 1.2; overflow-x: auto">{html.escape(text)}</pre>'
