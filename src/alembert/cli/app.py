"""The command `alembert`: its grammar, the options of all commands, and how errors leave it.

A command is a function in a module of its own, listed in `alembert.cli`:

    @command("name", panel=COMPUTE, examples=[...], keys={...})
    def name(model: ModelName, as_json: Json = False) -> None:

`examples` and `keys` (those of the JSON document) go into the help and the documentation. A function loads what
it needs inside, says its result with `console.answer`, and raises Alembert's errors.
"""

from __future__ import annotations

import io
import json
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from alembert.arguments import unknown
from alembert.cli import console
from alembert.cli.console import OutputOptions
from alembert.cli.help import CommandEntry, command_help, group_help, section
from alembert.cli.models import File as File
from alembert.cli.models import Floating as Floating
from alembert.cli.models import PackageDirs as PackageDirs
from alembert.cli.models import load_model as _load  # noqa: F401  (for commands that were there before)
from alembert.errors import AlembertError, AlembertWarning, ArgumentError, NumericalError, UnsupportedError

OK, FAILED, BAD_INPUT, UNSUPPORTED, FAULT, INTERRUPTED = 0, 1, 2, 3, 4, 130
EXIT_CODES = {
    OK: "done",
    FAILED: "a check did not hold, or a computation found no solution",
    BAD_INPUT: "the command line, a file or a value in it cannot be used",
    UNSUPPORTED: "not supported: a combination that no algorithm covers, or an extra that is not installed",
    FAULT: "a fault of Alembert itself; --debug shows where",
    INTERRUPTED: "interrupted (Ctrl-C)",
}

MODELS, COMPUTE, STUDIES, PROGRAM = "Models", "Computations", "Studies", "This program"
PANELS = (MODELS, COMPUTE, STUDIES, PROGRAM)

_EXTRAS = {
    "xarray": "data",
    "h5netcdf": "data",
    "matplotlib": "view",
    "viser": "view",
    "plotly": "view",
    "mujoco": "mjcf",
    "control": "control",
    "dask": "cluster",
    "sksundae": "stiff",
}
_EVERYWHERE = {"--quiet", "-q", "--verbose", "-v", "--debug"}
_CommandLineError: type[Exception] = typer.BadParameter.__mro__[2]
"""what typer raises for bad usage; which module it is in depends on typer's version"""


class _Group(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The options of all commands may stand anywhere."""
        end = args.index("--") if "--" in args else len(args)
        before, after = args[:end], args[end:]
        flags = {name for p in self.get_params(ctx) if getattr(p, "is_flag", False) for name in p.opts}
        for option in flags & {"--install-completion", "--show-completion"}:
            others = [entry for entry in args if entry not in (option, *_EVERYWHERE)]
            if option in before and others:  # typer would pass over them
                raise ArgumentError(
                    f"{option} serves the shell that it is called from and takes no value, got {others[0]!r}"
                )
        moved = [entry for entry in before if entry in _EVERYWHERE]
        return super().parse_args(
            ctx, [*moved, *(entry for entry in before if entry not in _EVERYWHERE), *after]
        )

    def format_help(self, ctx: Any, formatter: Any) -> None:
        codes = section("Exit codes", [(str(code), text) for code, text in EXIT_CODES.items()])
        closing = f"{codes}\n\nStart with: alembert demo, alembert new acrobot, alembert info acrobot"
        formatter.write(group_help(ctx, COMMANDS, PANELS, closing))

    def main(
        self, args: Sequence[str] | None = None, prog_name: str | None = None, *rest: Any, **extra: Any
    ) -> Any:
        args = sys.argv[1:] if args is None else list(args)
        sys.exit(_outcome(lambda: super(_Group, self).main(args, prog_name, **_plain(extra)), args))


def _plain(extra: dict[str, Any]) -> dict[str, Any]:
    return extra | {"standalone_mode": False}


def _outcome(run: Callable[[], Any], args: Sequence[str]) -> int:
    """The exit code of a command; what it raises becomes a paragraph."""
    console.configure(OutputOptions(debug="--debug" in args, quiet="--quiet" in args or "-q" in args))
    with warnings.catch_warnings():
        warnings.simplefilter("default", AlembertWarning)
        warnings.showwarning = lambda message, *_, **__: console.warn(str(message))
        try:
            code = run()
            return code if isinstance(code, int) else OK
        except typer.Abort:
            return INTERRUPTED
        except _CommandLineError as error:
            return _usage(error, args)
        except Exception as error:
            if "--debug" in args:
                raise
            code, text = _explained(error)
            if code is None:
                raise
            return _refused(
                code, text, type(error).__name__, args, "\n".join(getattr(error, "__notes__", []))
            )


def _explained(error: Exception) -> tuple[int | None, str]:
    match error:
        case NumericalError():
            return FAILED, str(error)
        case UnsupportedError():
            return UNSUPPORTED, str(error)
        case AlembertError():
            return BAD_INPUT, str(error)
        case BrokenPipeError():
            return None, ""
        case ModuleNotFoundError() if (name := str(error.name).partition(".")[0]) in _EXTRAS:
            return UNSUPPORTED, f'{name} is not installed; pip install "alembert[{_EXTRAS[name]}]"'
        case OSError() if error.filename is not None:
            return BAD_INPUT, f"{error.filename}: {error.strerror}"
    return FAULT, (
        f"{type(error).__name__}: {error}\nThis is a fault of Alembert; the same command with --debug shows where."
    )


def _usage(error: Any, args: Sequence[str]) -> int:
    context: Any = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(context.get_help())
        return BAD_INPUT
    text = error.format_message()
    option = str(getattr(error, "option_name", ""))
    if type(error).__name__ == "NoSuchOption" and context is not None:
        known = [name for parameter in context.command.params for name in parameter.opts if name[0] == "-"]
        known += sorted(_EVERYWHERE)
        text = f"{option} takes no value" if option in known else unknown("no option", option, known)
    if text.startswith("No such command") and context is not None:
        known = context.command.list_commands(context)
        text = unknown(f"{context.command_path}: no command", text.split("'")[1], known)
    if context is not None:
        text += f"\nTry: {context.command_path} --help"
    return _refused(BAD_INPUT, text, "UsageError", args)


def _refused(code: int, text: str, kind: str, args: Sequence[str], more: str = "") -> int:
    console.error(f"{text}\n{more}".rstrip())
    if "--json" in args:
        typer.echo(json.dumps({"error": {"type": kind, "message": text, "exit_code": code}}, indent=2))
    return code


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """The entry point of the console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # trees are drawn with lines that not every terminal has
    app(prog_name="alembert")


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"alembert {version('alembert')}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print errors only (and what --json asks for).")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more about what is done.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Computational control of articulated systems: models, dynamics, simulation, studies.

    --quiet, --verbose and --debug may stand before or after the command.
    """
    console.configure(OutputOptions(quiet, verbose, debug))


# --- commands -----------------------------------------------------------------------------------------------

COMMANDS: dict[str, CommandEntry] = {}
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")]


class Command(TyperCommand):
    """A command with our help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(command_help(ctx, COMMANDS.get(str(self.name))))


class CommandGroup(TyperGroup):
    """A command with commands of its own."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(command_help(ctx, COMMANDS.get(str(self.name))))


def command(
    name: str,
    *,
    panel: str,
    examples: Sequence[tuple[str, str]],
    keys: Mapping[str, str] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds a function as a command."""
    describe(name, panel=panel, examples=examples, keys=keys)
    return app.command(name, cls=Command)


def describe(
    name: str,
    *,
    panel: str,
    examples: Sequence[tuple[str, str]],
    keys: Mapping[str, str] | None = None,
) -> None:
    COMMANDS[name] = CommandEntry(name, panel, tuple(examples), dict(keys or {}))
