"""Reports of studies, and their parts: what was asked, what was found, tables and figures.

Tables can be shown in a terminal, piped, or written into a report. Reports and figures have the same bits for the same
results.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from alembert.model import Model
from alembert.model.io import toml
from alembert.model.printing import printable

if TYPE_CHECKING:
    from rich.table import Table

    from alembert.study.run import Study
    from alembert.study.task import TaskResult


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


_STILL: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}


def save_figure(make: Callable[[], Any], path: Path) -> None:
    """A figure as a file that is the same, bit for bit, each time it is made."""
    path.write_bytes(drawn(make(), path.suffix.removeprefix(".")))


def drawn(figure: Any, kind: str) -> bytes:
    """A figure as the content of a file, without dates and random names in it."""
    import matplotlib

    stream = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "alembert", "svg.fonttype": "path"}):
        figure.savefig(stream, format=kind, metadata=_STILL[kind], dpi=120)
    return stream.getvalue()


_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { margin-bottom: .2rem; } h2 { margin-top: 2.2rem; border-bottom: 1px solid #8885; } h3 { margin-bottom: .3rem; }
p.lead { opacity: .75; margin-top: 0; }
pre { background: #8881; border-radius: 6px; padding: .9rem 1.1rem; overflow-x: auto;
  font: 13px/1.4 ui-monospace, monospace; }
table { border-collapse: collapse; display: block; overflow-x: auto; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #8884; padding: .25rem .9rem .25rem 0; text-align: left; vertical-align: top; }
.number { text-align: right; }
img { max-width: 100%; background: #fff; border-radius: 6px; }
"""


def render(study: Study, model: Model, outcome: TaskResult, files: Mapping[str, Path]) -> str:
    """HTML or Markdown, by the name of the report."""
    name = study.outputs["report"]
    return (_markdown if name.endswith(".md") else _html)(study, model, outcome, files)


def _asked(study: Study) -> str:
    """The task as it was run, with the defaults that it took."""
    task = study.task.model_dump(mode="json", exclude_none=True)
    return toml.write({"model": study.model, "task": task})


def _markdown(study: Study, model: Model, outcome: TaskResult, files: Mapping[str, Path]) -> str:
    parts = [f"# {study.name}", "", _lead(study, model, outcome), "", "## Result", ""]
    for part in outcome.parts:
        parts.append(part.markdown() if isinstance(part, Grid) else f"```text\n{part}\n```\n")
    if files:
        parts += ["## Files", "", *(f"- {kind}: `{_name(study, path)}`" for kind, path in files.items()), ""]
    parts += ["## Task", "", f"```toml\n{_asked(study)}```", "", "## Model", "", f"```text\n{model}\n```", ""]
    return "\n".join(parts)


def _html(study: Study, model: Model, outcome: TaskResult, files: Mapping[str, Path]) -> str:
    parts = [f"<h1>{escape(study.name)}</h1>", f"<p class=lead>{escape(_lead(study, model, outcome))}</p>"]
    parts.append("<h2>Result</h2>")
    for part in outcome.parts:
        parts.append(part.html() if isinstance(part, Grid) else f"<pre>{escape(part)}</pre>")
    for title, scene in outcome.scenes.items():
        parts.append(f"<h2>{escape(title)}</h2>\n{scene()}")
    parts += images(outcome.figures)
    if files:
        listed = "".join(
            f"<li>{escape(kind)}: <a href='{escape(_name(study, path))}'>{escape(_name(study, path))}</a></li>"
            for kind, path in files.items()
        )
        parts.append(f"<h2>Files</h2>\n<ul>{listed}</ul>")
    parts.append(f"<h2>Task</h2>\n<pre>{escape(_asked(study))}</pre>")
    parts.append(f"<h2>Model</h2>\n<pre>{escape(str(model))}</pre>")
    return page(study.name, parts)


def page(title: str, parts: Sequence[str]) -> str:
    """A page of HTML parts."""
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width">\n<style>{_STYLE}</style>\n</head>\n'
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _lead(study: Study, model: Model, outcome: TaskResult) -> str:
    done = "" if outcome.ok else ": failed"
    return (
        f"{study.source.data['task']['type']} of {model.name}{done}; run by Alembert from {study.path.name}"
    )


def bullets(texts: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def images(figures: Mapping[str, Callable[[], Any]]) -> list[str]:
    """Figures under their titles, where matplotlib is there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return []
    data = {title: base64.b64encode(drawn(make(), "png")).decode() for title, make in figures.items()}
    return [
        f"<h2>{escape(title)}</h2>\n<img alt='{escape(title)}' src='data:image/png;base64,{image}'>"
        for title, image in data.items()
    ]


def _name(study: Study, path: Path) -> Any:
    return path.relative_to(study.folder).as_posix()
