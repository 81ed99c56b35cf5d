"""Help, alike for all commands: what it does, arguments, options, examples, keys of --json.

Written here and not by typer, whose layout changes between versions.
"""

from __future__ import annotations

import inspect
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import typer

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


def section(title: str, rows: Sequence[tuple[str, str]]) -> str:
    return _section(title, rows)


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
