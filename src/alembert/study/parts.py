"""Parts of an answer: tables that can be shown in a terminal, piped, or written into a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

from alembert.model.printing import printable

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Grid:
    """A table; the first `left` columns are texts, the others numbers and stand to the right."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1

    @classmethod
    def of(cls, title: str, head: Sequence[str], rows: Iterable[Sequence[Any]], *, left: int = 1) -> Grid:
        return cls(title, tuple(head), tuple(tuple(str(cell) for cell in row) for row in rows), left)

    @classmethod
    def from_rich(cls, table: Table) -> Grid:
        """A table of rich, as results of computations have them."""
        left = sum(column.justify == "left" for column in table.columns)
        head = [str(column.header) for column in table.columns]
        rows = zip(*([str(cell) for cell in column.cells] for column in table.columns), strict=True)
        return cls.of(str(table.title or ""), head, rows, left=left)

    def plain(self) -> str:
        """Aligned with spaces, without lines: for pipes."""
        lines = [self.head, *self.rows] if any(self.head) else list(self.rows)
        widths = [max((len(line[k]) for line in lines), default=0) for k in range(len(self.head))]
        texts = [
            "  ".join(
                cell.ljust(width) if k < self.left else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join([self.title, *texts] if self.title else texts)

    def printable(self) -> Grid:
        """With nothing in it that a terminal would obey."""
        rows = (tuple(printable(cell) for cell in row) for row in self.rows)
        return Grid(printable(self.title), tuple(map(printable, self.head)), tuple(rows), self.left)

    def rich(self) -> Table:
        """For terminals."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(
            title=Text(self.title) if self.title else None,
            title_justify="left",
            title_style="bold",
            box=box.SIMPLE_HEAD,
            show_header=any(self.head),
            pad_edge=False,
        )
        for k, name in enumerate(self.head):
            table.add_column(
                Text(name), justify="left" if k < self.left else "right", overflow="fold", no_wrap=k == 0
            )
        for row in self.rows:
            table.add_row(*(Text(cell) for cell in row))
        return table

    def markdown(self) -> str:
        head = [_cell(name) or " " for name in self.head]
        rule = ["---" if k < self.left else "---:" for k in range(len(head))]
        lines = [head, rule, *([_cell(cell) for cell in row] for row in self.rows)]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"**{_cell(self.title)}**\n\n{table}\n" if self.title else f"{table}\n"

    def html(self) -> str:
        def cells(row: Sequence[str], tag: str) -> str:
            return "".join(
                f"<{tag}{'' if k < self.left else ' class=number'}>{escape(cell)}</{tag}>"
                for k, cell in enumerate(row)
            )

        head = f"<thead><tr>{cells(self.head, 'th')}</tr></thead>\n" if any(self.head) else ""
        body = "\n".join(f"<tr>{cells(row, 'td')}</tr>" for row in self.rows)
        title = f"<h3>{escape(self.title)}</h3>\n" if self.title else ""
        return f"{title}<table>\n{head}<tbody>\n{body}\n</tbody></table>\n"


ReportPart: TypeAlias = str | Grid


def plain(part: ReportPart) -> str:
    return part if isinstance(part, str) else part.plain()


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
