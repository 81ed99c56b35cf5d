"""Write the generated parts of docs/command-line.md and docs/run-files.md, by asking the command itself.

`make docs` runs it; `tests/test_command_docs.py` holds the pages to it. The session on the first page is what the
commands print when they are run, in an empty folder.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from generate import _table, filled, sections, steady
from typer.main import get_command
from typer.testing import CliRunner

from alembert.cli import app
from alembert.cli.app import COMMANDS, EXIT_CODES, PANELS, summary
from alembert.study.laws import KINDS, EventEntry, FeedbackEntry, PDEntry, PythonEntry
from alembert.study.run import EVERY_TASK, TASKS, StudyEntry

FOLDER = Path(__file__).parent
COMMANDS_PAGE, FILES_PAGE = FOLDER / "command-line.md", FOLDER / "run-files.md"
WIDTH = "100"

SESSION = (
    "alembert info acrobot",
    "alembert simulate pendulum --position pivot=pi/2 --time 5 --save swing.csv",
    "alembert linearize acrobot --position shoulder=pi/2 --output q:elbow",
    "alembert simulate acrobot --integrater rk4",
    "alembert simulate acrobot --position elbo=1",
    "alembert new satellite first",
    "alembert run first/study.toml --set task.time=10",
    "alembert run first/study.toml --set task.time=10 --check",
    "alembert convert acrobot acrobot.yaml --json",
)


@contextlib.contextmanager
def empty_folder() -> Iterator[None]:
    before = Path.cwd(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = WIDTH
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before[0])
            if before[1] is None:
                del os.environ["COLUMNS"]
            else:
                os.environ["COLUMNS"] = before[1]


def asked(line: str) -> str:
    """What a command prints, on both streams."""
    program, *arguments = shlex.split(line)
    return CliRunner().invoke(app, arguments, prog_name=program).output


def session() -> str:
    """All commands in turn, with what they print."""
    with empty_folder():
        return "".join(f"```text\n$ {line}\n{asked(line).rstrip()}\n```\n\n" for line in SESSION)


def commands() -> str:
    """One line per command."""
    group = get_command(app)
    rows = [
        [f"[`{name}`](#alembert-{name})", panel, summary(group.commands[name])]
        for panel in PANELS
        for name, entry in COMMANDS.items()
        if entry.panel == panel
    ]
    return _table(["command", "", ""], rows)


def exit_codes() -> str:
    return _table(["code", "meaning"], [[str(code), text] for code, text in EXIT_CODES.items()])


def helps() -> str:
    """The help of every command."""
    with empty_folder():
        return "".join(
            f"### alembert {name}\n\n```text\n{asked(f'alembert {name} --help').rstrip()}\n```\n\n"
            for panel in PANELS
            for name, entry in COMMANDS.items()
            if entry.panel == panel
        )


# --- run files ----------------------------------------------------------------------------------------------


def study_keys() -> str:
    rows = _rows(StudyEntry.model_json_schema())
    rows.append(["`task`", "table", "required", "What to do: `type` and the options of that task."])
    rows.append(
        ["`outputs`", "table", " ", 'What to write: `folder`, and names of files; `""` leaves one out.']
    )
    return _table(["key", "value", "default", ""], rows)


def outputs() -> str:
    """What each task can write."""
    rows = [
        [
            f"`{key}`",
            " ",
            ", ".join(f"`{s}`" for s in output.suffixes),
            f"`{output.default}`",
            _sentence(output.what),
        ]
        for key, output in EVERY_TASK.items()
    ]
    for name, task in TASKS.items():
        for key, output in task.OUTPUTS.items():
            default = f"`{output.default}`" if output.default else "not written"
            endings = ", ".join(f"`{suffix}`" for suffix in output.suffixes)
            rows.append([f"`{key}`", f"`{name}`", endings, default, _sentence(output.what)])
    return _table(["key", "task", "endings", "default", ""], rows)


def tasks() -> str:
    """The options of every task."""
    parts = []
    for name, task in TASKS.items():
        doc = " ".join((task.__doc__ or "").split())
        rows = _rows(task.model_json_schema())
        parts.append(f"### {name}\n\n{doc}\n\n{_table(['key', 'value', 'default', ''], rows)}\n")
    return "".join(parts)


def controllers() -> str:
    """The tables of controllers and events."""
    shown = {
        f'type = "{kind}"': table
        for kind, table in zip(KINDS, (PDEntry, FeedbackEntry, PythonEntry), strict=True)
    }
    parts = []
    for name, table in {**shown, "events": EventEntry}.items():
        doc = " ".join((table.__doc__ or "").split())
        rows = _rows(table.model_json_schema())
        parts.append(f"`{name}`: {doc}\n\n{_table(['key', 'value', 'default', ''], rows)}\n")
    return "\n".join(parts)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _rows(schema: dict[str, Any]) -> list[list[str]]:
    known, required = schema.get("$defs", {}), schema.get("required", ())
    rows = []
    for name, field in schema["properties"].items():
        if name == "type":
            continue
        value = "required" if name in required else _default(field.get("default"))
        rows.append([f"`{name}`", _kind(field, known), value, field.get("description", "")])
        reference = field.get("$ref", "").rpartition("/")[2]
        if reference in known and "properties" in known[reference]:
            rows += [
                [f"`{name}.{key[1:-1]}`", *rest] for key, *rest in _rows({**known[reference], "$defs": known})
            ]
    return [[cell.replace("|", "\\|") for cell in row] for row in rows]


def _default(value: Any) -> str:
    if value is None or value in ("", {}, []):
        return " "
    return (
        f"`{str(value).lower() if isinstance(value, bool) else value}`"
        if not isinstance(value, dict)
        else " "
    )


def _kind(field: dict[str, Any], known: dict[str, Any]) -> str:
    """A value in words."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return {"Constant": "number", "Number": "number", "Vector": "three numbers"}.get(name) or (
            "table" if "properties" in known.get(name, {}) else _kind(known.get(name, {}), known)
        )
    if "oneOf" in field:
        return "table"
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return " or ".join(f"`{entry}`" for entry in field["enum"])
    if "anyOf" in field:
        kinds = dict.fromkeys(_kind(part, known) for part in field["anyOf"] if part.get("type") != "null")
        return " or ".join(kinds)
    match field.get("type"):
        case "array":
            return f"list of {_kind(field.get('items', {}), known)}s".replace("yess", "yes")
        case "object" if _kind(field["additionalProperties"], known) in ("table", "None"):
            return "tables by name"
        case "object":
            return f"table of {_kind(field['additionalProperties'], known)}".removesuffix(
                " or list of numbers"
            ) + ("s" if "number" in _kind(field["additionalProperties"], known) else "")
        case kind:
            return {"string": "text", "integer": "whole number", "boolean": "true or false"}.get(
                kind, str(kind)
            )


def parts() -> dict[Path, dict[str, str]]:
    """All generated parts by page, but the session."""
    return {
        COMMANDS_PAGE: {"commands": commands(), "exit_codes": exit_codes(), "helps": helps()},
        FILES_PAGE: {
            "study_keys": study_keys(),
            "controllers": controllers(),
            "outputs": outputs(),
            "tasks": tasks(),
        },
    }


if __name__ == "__main__":
    found = parts()
    shown = sections(COMMANDS_PAGE.read_text(encoding="utf-8"))["session"]
    found[COMMANDS_PAGE]["session"] = steady(shown, session())
    for page, texts in found.items():
        page.write_text(filled(page.read_text(encoding="utf-8"), texts), encoding="utf-8")
