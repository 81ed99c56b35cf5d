"""Commands, and how errors leave them: one paragraph on stderr and exit code 2."""

from __future__ import annotations

import io
import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from alembert.errors import AlembertError, AlembertWarning

if TYPE_CHECKING:
    from alembert.model import Model


class _Group(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("default", AlembertWarning)
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except AlembertError as error:
                if ctx.params.get("debug"):
                    raise
                typer.secho("error: ", fg="red", bold=True, err=True, nl=False)
                typer.echo(str(error), err=True)
                raise typer.Exit(2) from None


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.secho("warning: ", fg="yellow", bold=True, err=True, nl=False)
    typer.echo(str(message), err=True)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
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
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Computational control of articulated systems."""


# --- models -------------------------------------------------------------------------------------------------

File = Annotated[
    Path, typer.Argument(help="A model: .toml, .yaml, .urdf, .xml or .mjcf.", show_default=False)
]
Floating = Annotated[bool, typer.Option("--floating", help="URDF: put a free joint under the root.")]
PackageDirs = Annotated[
    list[Path] | None,
    typer.Option("--package-dir", help="URDF: a folder in which package:// is looked up. May be repeated."),
]


@app.command()
def info(
    file: File,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    floating: Floating = False,
    package_dir: PackageDirs = None,
) -> None:
    """Show the tree of a model with its degrees of freedom, masses and limits."""
    model = _load(file, floating, package_dir)
    typer.echo(json.dumps(_summary(model), indent=2, allow_nan=False) if as_json else str(model))


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The model to read.", show_default=False)],
    target: Annotated[Path, typer.Argument(metavar="OUT", help=".toml or .yaml.", show_default=False)],
    floating: Floating = False,
    package_dir: PackageDirs = None,
) -> None:
    """Read a model in any format and write it in Alembert's own."""
    from alembert.model.io import save

    save(_load(source, floating, package_dir), target)


def _load(file: Path, floating: bool, package_dirs: list[Path] | None) -> Model:
    from alembert.model.io import load

    options: dict[str, Any] = {}
    if floating:
        options["floating"] = True
    if package_dirs:
        options["package_dirs"] = package_dirs
    return load(file, **options)


def _summary(model: Model) -> dict[str, Any]:
    """Sizes and names, and the content of the model as in its own format; infinities as texts."""
    from alembert.model.io.native import plain_model

    return {
        "name": model.name,
        "nq": model.nq,
        "nv": model.nv,
        "mass": model.mass,
        "coordinates": list(model.coordinate_names),
        "speeds": list(model.speed_names),
        "model": _finite(plain_model(model)),
    }


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_finite(entry) for entry in value]
    return str(value) if isinstance(value, float) and value in (float("inf"), float("-inf")) else value


@app.command()
def schema() -> None:
    """Print the JSON schema of Alembert's own format."""
    from alembert.model.io import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


# --- the cache of compiled kernels --------------------------------------------------------------------------

cache = typer.Typer(help="Show or clear the compiled kernels kept on disk.", invoke_without_command=True)
app.add_typer(cache, name="cache")


@cache.callback()
def _cache(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        show()


@cache.command()
def show() -> None:
    """Where the kernels are, how many, and how large."""
    from alembert.engine import cache as kernels

    folder = kernels.directory()
    if folder is None:
        typer.echo("the cache is off")
        return
    typer.echo(f"{folder}: {_count(len(kernels.entries()))}, {kernels.size() / 1e6:.1f} MB")


@cache.command()
def clear() -> None:
    """Remove all kernels; they are compiled again when needed."""
    from alembert.engine import cache as kernels

    typer.echo(f"removed {_count(kernels.clear())}")


def _count(kernels: int) -> str:
    return f"{kernels} kernel{'' if kernels == 1 else 's'}"
