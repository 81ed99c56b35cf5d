"""`alembert cache`: the compiled kernels kept on disk."""

from __future__ import annotations

import typer

from alembert.cli import console
from alembert.cli.app import PROGRAM, Command, CommandGroup, Json, app, describe

describe(
    "cache",
    panel=PROGRAM,
    examples=[
        ("alembert cache", "where the kernels are, how many, how large"),
        ("alembert cache clear", "remove them; they are compiled again when needed"),
    ],
    keys={
        "folder": "where the kernels are, or null when the cache is off",
        "kernels": "how many there are",
        "bytes": "their size",
        "removed": "(clear, and alone) how many were removed",
    },
)
cache = typer.Typer(cls=CommandGroup, invoke_without_command=True)
app.add_typer(cache, name="cache")


@cache.callback()
def _cache(context: typer.Context, as_json: Json = False) -> None:
    """Show or clear the compiled kernels kept on disk."""
    if context.invoked_subcommand is None:
        show(as_json)


@cache.command(cls=Command)
def show(as_json: Json = False) -> None:
    """Where the kernels are, how many, and how large."""
    from alembert.engine import cache as kernels

    folder = kernels.directory()
    entries, size = ([], 0) if folder is None else (kernels.entries(), kernels.size())
    text = f"{folder}: {_count(len(entries))}, {size / 1e6:.1f} MB" if folder else "the cache is off"
    console.answer({"folder": folder, "kernels": len(entries), "bytes": size}, as_json, text)


@cache.command(cls=Command)
def clear(as_json: Json = False) -> None:
    """Remove all kernels; they are compiled again when needed."""
    from alembert.engine import cache as kernels

    removed = kernels.clear()
    console.answer({"removed": removed}, as_json, f"removed {_count(removed)}")


def _count(kernels: int) -> str:
    return f"{kernels} kernel{'' if kernels == 1 else 's'}"
