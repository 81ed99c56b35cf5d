"""The command `alembert`: its grammar, the options of all commands, and how errors leave it.

A command is a function in a module of its own, listed in `alembert.cli`:

    @command("name", panel=COMPUTE, examples=[...], keys={...})
    def name(model: ModelName, as_json: Json = False) -> None:

`examples` and `keys` (those of the JSON document) go into the help and the documentation. A function loads what
it needs inside, says its result with `console.answer`, and raises Alembert's errors.

Help, alike for all commands: what it does, arguments, options, examples, keys of --json.

Written here and not by typer, whose layout changes between versions.
"""

from __future__ import annotations

import inspect
import io
import json
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from alembert.arguments import unknown
from alembert.cli import console
from alembert.cli.console import OutputOptions
from alembert.errors import AlembertError, AlembertWarning, ArgumentError, NumericalError, UnsupportedError

WIDEST = 100


@dataclass(frozen=True)
class CommandEntry:
    """What the help says of a command beside its options."""

    name: str
    panel: str
    examples: tuple[tuple[str, str], ...]
    """a command line, and what it does"""
    keys: Mapping[str, str] = field(default_factory=dict)
    """of the document that --json prints"""


def command_help(context: Any, entry: CommandEntry | None) -> str:
    """Of one command."""
    command = context.command
    arguments, options = parameters(command)
    words = [usage_name(parameter) for parameter in command.params if is_argument(parameter)]
    subcommands = getattr(command, "commands", {})
    usage = " ".join([context.command_path, *words, "[OPTIONS]", *(["[COMMAND]"] if subcommands else [])])
    parts = [_title(usage), _paragraphs(command.help)]
    parts += [_section("Arguments", arguments), _section("Commands", _commands(subcommands.values()))]
    parts.append(_section("Options", options))
    if entry is not None:
        shown = "\n".join(f"  {_command(line)}\n      {what}" for line, what in entry.examples)
        parts += [f"{_title('Examples')}\n{shown}", _section("Keys of --json", list(entry.keys.items()))]
    return _joined(parts)


def group_help(context: Any, entries: Mapping[str, CommandEntry], panels: Sequence[str], closing: str) -> str:
    """Of the whole program: the commands by panel."""
    group = context.command
    parts = [_title(f"{context.command_path} COMMAND [ARGUMENTS] [OPTIONS]"), _paragraphs(group.help)]
    for panel in panels:
        chosen = [entry.name for entry in entries.values() if entry.panel == panel]
        parts.append(_section(panel, _commands(group.commands[name] for name in chosen)))
    rest = [command for name, command in group.commands.items() if name not in entries]
    parts += [_section("More", _commands(rest)), _section("Options", parameters(group)[1]), closing]
    return _joined(parts)


def parameters(command: Any) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Arguments and options: how each is written, and what it is for."""
    arguments, options = [], []
    for parameter in command.params:
        text = parameter.help or ""
        if is_argument(parameter):
            arguments.append((usage_name(parameter), text))
        elif not getattr(parameter, "hidden", False):
            options.append((_spelled(parameter), f"{text}{_default(parameter)}".strip()))
    if command.name and not any("--help" in written for written, _ in options):
        options.append(("-h, --help", "Show this help."))
    return arguments, options


def is_argument(parameter: Any) -> bool:
    return parameter.param_type_name == "argument"


def usage_name(parameter: Any) -> str:
    name = str(parameter.metavar or parameter.name.upper()).strip("[]")
    return name if parameter.required else f"[{name}]"


def summary(command: Any) -> str:
    """The first sentence of a command's help."""
    return inspect.cleandoc(command.help or "").partition("\n\n")[0].replace("\n", " ")


def _spelled(parameter: Any) -> str:
    short = [name for name in parameter.opts if not name.startswith("--")]
    long = [name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("--")]
    names = ", ".join([*short, *long])
    return names if parameter.is_flag else f"{names} {parameter.metavar or parameter.name.upper()}"


def _default(parameter: Any) -> str:
    value = parameter.default
    if not parameter.show_default or parameter.is_flag or value is None or callable(value):
        return ""
    return f" [default: {value.value if isinstance(value, Enum) else value}]"


def _commands(commands: Iterable[Any]) -> list[tuple[str, str]]:
    return [(command.name, summary(command)) for command in commands]


def _section(title: str, rows: Sequence[tuple[str, str]]) -> str:
    if not rows:
        return ""
    left = min(max(len(name) for name, _ in rows), 30) + 4
    lines = []
    for name, text in rows:
        folded = textwrap.wrap(text, max(_width() - left, 30)) or [""]
        shown = f"  {_command(name)}"
        if len(name) + 4 > left:
            lines.append(shown)
        else:
            lines.append(f"{shown}{' ' * (left - 2 - len(name))}{folded.pop(0)}".rstrip())
        lines += [" " * left + line for line in folded]
    return "\n".join([_title(title), *lines])


def _paragraphs(text: str | None) -> str:
    found = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(
        textwrap.fill(
            " ".join(part.split()),
            _width(),
            initial_indent="  ",
            subsequent_indent="  ",
            break_on_hyphens=False,
        )
        for part in found
    )


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def _title(text: str) -> str:
    return typer.style(text, bold=True)


def _command(text: str) -> str:
    return typer.style(text, fg="cyan")


def _width() -> int:
    return min(shutil.get_terminal_size().columns, WIDEST)


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
        codes = _section("Exit codes", [(str(code), text) for code, text in EXIT_CODES.items()])
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
            if code == INTERRUPTED:
                return _refused(code, "interrupted; what was not written yet is lost", "Interrupted", args)
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
    name: str, *, panel: str, examples: Sequence[tuple[str, str]], keys: Mapping[str, str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds a function as a command."""
    describe(name, panel=panel, examples=examples, keys=keys)
    return app.command(name, cls=Command)


def describe(
    name: str, *, panel: str, examples: Sequence[tuple[str, str]], keys: Mapping[str, str] | None = None
) -> None:
    COMMANDS[name] = CommandEntry(name, panel, tuple(examples), dict(keys or {}))
