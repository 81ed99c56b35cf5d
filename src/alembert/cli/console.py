"""What commands print: answers on stdout, remarks on stderr; colours and lines only in a terminal.

Texts of files are shown, never obeyed: control characters become escapes here.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from alembert.model.printing import printable
from alembert.study.report import ReportPart, plain

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 100_000  # columns where nothing ends them: pipes and files


@dataclass(frozen=True)
class OutputOptions:
    """The options that every command has."""

    quiet: bool = False
    verbose: bool = False
    debug: bool = False


_DEFAULT = OutputOptions()
_SETTINGS: ContextVar[OutputOptions] = ContextVar("settings", default=_DEFAULT)


def settings() -> OutputOptions:
    return _SETTINGS.get()


def configure(chosen: OutputOptions) -> None:
    _SETTINGS.set(chosen)


def is_terminal(stream: Any) -> bool:
    return stream is not None and stream.isatty()


def progress() -> bool | None:
    """For `progress=` of computations: None lets them decide by the terminal."""
    return False if settings().quiet else None


def answer(data: Mapping[str, Any], as_json: bool, *parts: ReportPart) -> None:
    """The result of a command: the data as one JSON document, or the parts for people."""
    if as_json:
        typer.echo(json.dumps(jsonable(data), indent=2, allow_nan=False))
    else:
        show(*parts)


def show(*parts: ReportPart) -> None:
    """On stdout, unless quiet."""
    if settings().quiet:
        return
    for k, part in enumerate(parts):
        if k and not isinstance(part, str):
            typer.echo()
        if isinstance(part, str) or not is_terminal(sys.stdout):
            typer.echo(printable(plain(part)))
        else:
            terminal().print(part.printable().rich())


def terminal(*, stderr: bool = False, quiet: bool = False) -> Console:
    """A rich console: as wide as the terminal, and without breaking lines where there is none."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if is_terminal(stream) else WIDE
    return Console(stderr=stderr, quiet=quiet, width=width, highlight=False)


def remark(text: str) -> None:
    """On stderr, with --verbose only."""
    if settings().verbose:
        typer.secho(printable(text), dim=True, err=True)


def warn(text: str) -> None:
    if not settings().quiet:
        typer.secho("warning: ", fg="yellow", bold=True, err=True, nl=False)
        typer.echo(printable(text), err=True)


def error(text: str) -> None:
    typer.secho("error: ", fg="red", bold=True, err=True, nl=False)
    typer.echo(printable(text), err=True)


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """A spinner on the terminal while something takes its time; what it yields changes the text."""
    if settings().quiet or not is_terminal(sys.stderr):
        yield lambda text: None
        return
    with terminal(stderr=True).status(printable(what)) as status:
        yield lambda text: status.update(printable(text))


def jsonable(value: Any) -> Any:
    """Plain data; infinities as texts, NaN as null, since JSON has neither."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [jsonable(entry) for entry in value]
    if isinstance(value, complex):
        return [jsonable(value.real), jsonable(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
