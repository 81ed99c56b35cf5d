"""Reports of studies: what was asked, what was found, and figures; the same bits for the same results."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alembert.model import Model
from alembert.model.io import toml
from alembert.study import figures
from alembert.study.parts import Grid
from alembert.study.task import TaskResult

if TYPE_CHECKING:
    from alembert.study.file import Study

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
    for title, image in _images(outcome):
        parts.append(
            f"<h2>{escape(title)}</h2>\n<img alt='{escape(title)}' src='data:image/png;base64,{image}'>"
        )
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


def _images(outcome: TaskResult) -> list[tuple[str, str]]:
    """Figures, where matplotlib is there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return []
    return [
        (title, base64.b64encode(figures.drawn(make(), "png")).decode())
        for title, make in outcome.figures.items()
    ]


def _name(study: Study, path: Path) -> Any:
    return path.relative_to(study.folder).as_posix()
