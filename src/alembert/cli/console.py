"""What commands take and print: the model argument and what shells complete for it; answers on stdout, remarks on stderr.

Colours and lines only in a terminal. Texts of files are shown, never obeyed: control characters become escapes here.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alembert.model.printing import printable
from alembert.study.report import ReportPart, plain

if TYPE_CHECKING:
    from rich.console import Console

    from alembert.model import Model


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


def option(metavar: str, help: str, *names: str, complete: Any = None, **more: Any) -> Any:
    """An option with a value; its default is said where it is not None."""
    return typer.Option(*names, metavar=metavar, help=help, autocompletion=complete, **more)


def argument(metavar: str, help: str, *, complete: Any = None) -> Any:
    return typer.Argument(metavar=metavar, help=help, autocompletion=complete)


def complete_model(incomplete: str) -> list[str]:
    """Files and folders, and the names of the library."""
    from alembert import library
    from alembert.study.models import PREFIX, SUFFIXES

    names = [*library.names(), *(f"{PREFIX}{name}" for name in library.names())]
    return complete_file(incomplete, SUFFIXES) + [name for name in names if name.startswith(incomplete)]


def complete_file(incomplete: str, suffixes: tuple[str, ...]) -> list[str]:
    """Files with these suffixes, and folders, as the user writes them."""
    start = Path(incomplete)
    folder = start if incomplete.endswith("/") or not incomplete else start.parent
    found = []
    try:
        for entry in sorted(folder.iterdir()):
            text = str(entry) + ("/" if entry.is_dir() else "")
            if text.startswith(incomplete) and (entry.is_dir() or entry.suffix.lower() in suffixes):
                found.append(text)
    except OSError:
        return []
    return [text for text in found if not Path(text).name.startswith(".")]


def complete_joint(context: typer.Context, incomplete: str) -> list[str]:
    """`elbow=` for the joints of the model that stands before it."""
    from alembert.errors import AlembertError
    from alembert.study.models import find_model

    try:
        model, _ = find_model(str(context.params.get("model") or _first_argument()))
    except (AlembertError, OSError):
        return []
    return [f"{joint.name}=" for joint in model.joints if joint.type.nv]


def _first_argument() -> str:
    """What stands after the command; an option without its value keeps typer from parsing that."""
    words = (os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")).split()
    return next((word for word in words[2:] if not word.startswith("-")), "")


def complete_integrator(incomplete: str) -> list[tuple[str, str]]:
    from alembert.simulate import integrators

    return [("auto", "chooses and says why"), *((row[0], row[4]) for row in integrators())]


ModelName = Annotated[
    str,
    argument(
        "MODEL",
        "A file (.toml, .yaml, .urdf, .xml, .mjcf) or a model of the library (acrobot, library:chain,n=20).",
        complete=complete_model,
    ),
]
Floating = Annotated[bool, typer.Option("--floating", help="URDF: put a free joint under the root.")]
PackageDirs = Annotated[
    list[Path] | None,
    typer.Option("--package-dir", help="URDF: a folder in which package:// is looked up. May be repeated."),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="URDF, MJCF: refuse what is unphysical or not supported, where a warning tells it."
    ),
]
Parameters = Annotated[
    list[str] | None,
    option("NAME=VALUE", "A parameter of the model, if not at its default. May be repeated.", "--parameter"),
]


def load_model(
    text: str | Path, floating: bool = False, package_dirs: list[Path] | None = None, strict: bool = False
) -> Model:
    from alembert.study.models import find_model

    return find_model(str(text), floating=floating, package_dirs=package_dirs or (), strict=strict)[0]


def pairs(option: str, entries: list[str] | None) -> dict[str, Any]:
    """`NAME=VALUE[,VALUE...]` as a run file would say it; what the values may be is checked with the task."""
    from alembert.errors import ArgumentError

    found: dict[str, Any] = {}
    for entry in entries or []:
        name, equals, text = entry.partition("=")
        if not equals or not name:
            raise ArgumentError(f"{option} {entry}: expected NAME=VALUE, or NAME=VALUE,VALUE,...")
        if name in found:
            raise ArgumentError(f"{option} {entry}: {name!r} is given twice")
        if "=" in text:
            raise ArgumentError(f"{option} {entry}: two values, expected one; write {option} once for each")
        values = [_number(part) for part in text.split(",")]
        found[name] = values if len(values) > 1 else values[0]
    return found


def _number(text: str) -> float | str:
    """A formula stays a text."""
    try:
        return float(text)
    except ValueError:
        return text.strip()
