"""`alembert verify`: run the cases, and show where each number comes from.

`alembert bench MODEL`: how fast a model's algorithms are here; `alembert cache`: the compiled kernels on disk.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alembert.cli import console
from alembert.cli.app import COMPUTE, FAILED, PROGRAM, Command, CommandGroup, Json, app, command, describe
from alembert.cli.console import Floating, PackageDirs, Strict, argument, complete_model, load_model, option
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.study.report import Grid

if TYPE_CHECKING:
    from alembert.model import Model
    from alembert.verify import Case, Results


@command(
    "verify",
    panel=COMPUTE,
    examples=[
        ("alembert verify", "all cases, in some minutes"),
        ("alembert verify --tag iftomm --report report.html", "one page with a plot per case"),
        ("alembert verify --case 'soa_*' --json", "for programs"),
        ("alembert verify --against pinocchio", "the same questions to another program"),
        ("alembert verify --save new.json --against old.json", "against another version's results"),
        ("alembert verify --file mine.toml --tag mine", "cases of your own"),
    ],
    keys={
        "format": "of this document",
        "outcomes": "per case: status, source, and its quantities with the values expected and found",
        "program": "which computed",
        "machine": "processor, cores, system",
        "versions": "of the packages",
        "date": "of the run",
        "seconds": "that it took",
    },
)
def verify(
    case: Annotated[
        list[str] | None, option("NAME", "Only this case; * and ? stand for others. May be repeated.")
    ] = None,
    tag: Annotated[
        list[str] | None, option("TAG", "Only cases with this tag or of this kind. May be repeated.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Show the cases and do not run them.")] = False,
    save: Annotated[Path | None, option("FILE", "Keep the results: .json.")] = None,
    report: Annotated[
        Path | None,
        option("FILE", "Write a page with a plot per case: .html; or a folder with a page per area."),
    ] = None,
    against: Annotated[
        str | None,
        option(
            "WHAT",
            "Compare with a program (pinocchio, mujoco, exudyn, python-control, basilisk), or with results of --save.",
        ),
    ] = None,
    results: Annotated[Path | None, option("FILE", "Take these kept results, run nothing.")] = None,
    file: Annotated[
        list[Path] | None, option("FILE", "Cases of your own, .py or .toml. May be repeated.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes; by default one per core.", min=1)] = None,
    timeout: Annotated[float, option("SECONDS", "Of one case.")] = 600.0,
    as_json: Json = False,
) -> None:
    """Compare what Alembert computes with published values, closed forms and other programs.

    Exits with 1 if a case fails.
    """
    from alembert.verify import Results, compare, discover, select
    from alembert.verify.printing import explanations, show, show_list, show_pairs
    from alembert.verify.programs import programs

    terminal = console.terminal(quiet=console.settings().quiet or as_json)
    chosen = select(discover(file or ()), case or (), tag or ())
    if listed:
        show_list(chosen, terminal)
        return
    for path in (save, report):
        if path is not None and not path.parent.is_dir():
            raise ArgumentError(f"verify: there is no folder {path.parent} to write {path.name} into")
    other = None
    posed = chosen
    if against in programs():
        posed = [c for c in chosen if c.is_posed_to(against)]
        if len(posed) < len(chosen):
            sentence = (
                f"{against} is asked {len(posed)} of {len(chosen)} cases: the others are not posed to it"
            )
            terminal.print(sentence)
        chosen = chosen if case else posed  # what is named is run, though the other program is not asked
    elif against is not None:
        other = Results.load(against)
    found = Results.load(results) if results else _run(chosen, "alembert", jobs, timeout)
    if as_json:
        typer.echo(found.to_json(), nl=False)
    elif against is None:
        show(found, terminal)
    if save is not None:
        save.write_text(found.to_json(), encoding="utf-8")
        terminal.print(f"results: {save}")
    if report is not None:
        terminal.print(f"report: {_write_report(found, report)}")
    failed = found.bad
    if against is not None:
        for sentence in explanations(found):  # `show` has said so otherwise
            terminal.print(sentence, markup=False, highlight=False)
        if other is None:
            other = _run(posed, against, jobs, timeout)
            found = _only(found, {c.name for c in posed})
        elif case or tag:
            found, other = (_only(x, {c.name for c in chosen}) for x in (found, other))
        pairs = compare(found, other)
        show_pairs(found, other, pairs, terminal)
        failed = failed or any(pair.verdict in ("differs", "worse") for pair in pairs)
    if failed:
        raise typer.Exit(FAILED)


def _only(results: Results, names: set[str]) -> Results:
    return results.only(o for o in results.outcomes if o.name in names)


def _write_report(results: Results, path: Path) -> Path:
    """One page, or in a folder an index and a page per area; which of them to open."""
    from alembert.verify.report import page, pages

    if path.suffix == ".html":
        path.write_text(page(results), encoding="utf-8")
        return path
    path.mkdir(exist_ok=True)
    for name, text in pages(results).items():
        (path / name).write_text(text, encoding="utf-8")
    return path / "index.html"


def _run(cases: list[Case], program: str, jobs: int | None, timeout: float) -> Results:
    """With a bar on stderr, where there is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from alembert.verify import CaseResult, run

    columns = (
        TextColumn(f"verify ({program})"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[last]}"),
    )
    with Progress(
        *columns,
        console=console.terminal(stderr=True),
        transient=True,
        disable=console.settings().quiet or not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task("", total=len(cases), last="")

        def done(outcome: CaseResult) -> None:
            bar.update(task, advance=1, last=f"{outcome.name}: {outcome.status}")

        return run(cases, program=program, jobs=jobs, timeout=timeout, done=done)


ROUND = 0.002
"""s of one repeat: shorter than a slice of the scheduler, so that the least of many is one that nobody interrupted"""

ALGORITHMS = (
    "forward_dynamics",
    "inverse_dynamics",
    "mass_matrix",
    "energy",
    "forward_dynamics_derivatives",
    "inverse_dynamics_derivatives",
)


@dataclass(frozen=True)
class BenchRow:
    """Seconds of one algorithm."""

    algorithm: str
    first: float
    call: float
    state: float
    """in a batch, on all cores"""
    alone: float
    """in a batch, on one core"""
    peer: float | None


@command(
    "bench",
    panel=PROGRAM,
    examples=[
        ("alembert bench", "the 7-dof arm of the library"),
        ("alembert bench humanoid --batch 16384", "another model, larger batches"),
        ("alembert bench robot.urdf --json", "for programs"),
    ],
    keys={
        "model": "its name",
        "nv": "degrees of freedom",
        "batch": "states in a batch",
        "machine": "processor, cores and load (processes that wanted to run in the last minute)",
        "peer": "the program that was measured beside, or null, and why",
        "algorithms": "by name: first_call_s (compiled or from the cache), call_us, peer_call_us, "
        "batch_us (per state, all cores), batch_one_core_us",
    },
)
def bench(
    model: Annotated[
        str, argument("MODEL", "A file or a model of the library; arm7.", complete=complete_model)
    ] = "arm7",
    batch: Annotated[int, option("STATES", "In one call.")] = 1024,
    repeats: Annotated[int, option("COUNT", "The least of so many is taken.")] = 30,
    as_json: Json = False,
    floating: Floating = False,
    package_dir: PackageDirs = None,
    strict: Strict = False,
) -> None:
    """Measure the algorithms of a model: microseconds per call, and per state in a batch."""
    for name, value in (("--batch", batch), ("--repeats", repeats)):
        if value < 1:
            raise ArgumentError(f"{name} {value}: expected a positive whole number")
    found = load_model(model, floating, package_dir, strict)
    peer, why = _pinocchio(found)
    rows = []
    for name in ALGORITHMS:
        with console.working(f"{found.name}: {name}"):
            rows.append(_measure(found, name, batch, repeats, peer))
    data = {
        "model": found.name,
        "nv": found.nv,
        "batch": batch,
        "machine": _machine(),
        "peer": why,
        "algorithms": {
            row.algorithm: {
                "first_call_s": row.first,
                "call_us": 1e6 * row.call,
                "batch_us": 1e6 * row.state,
                "batch_one_core_us": 1e6 * row.alone,
                "peer_call_us": None if row.peer is None else 1e6 * row.peer,
            }
            for row in rows
        },
    }
    console.answer(data, as_json, _table(found, rows, batch, peer is not None), why, _conditions())


def _table(model: Model, rows: list[BenchRow], batch: int, with_peer: bool) -> Grid:
    head = ["algorithm", "first call [s]", "call [us]", "batch, one core", "batch, all cores"]
    lines = [
        [r.algorithm, f"{r.first:.2f}", *(f"{1e6 * x:.3g}" for x in (r.call, r.alone, r.state))] for r in rows
    ]
    if with_peer:
        head += ["Pinocchio [us]", "ratio"]
        for line, r in zip(lines, rows, strict=True):
            line += ["", ""] if r.peer is None else [f"{1e6 * r.peer:.3g}", f"{r.peer / r.call:.1f}"]
    return Grid.of(
        f"{model.name}, {model.nv} degrees of freedom; called from Python, batches of {batch} per state",
        head,
        lines,
    )


def _conditions() -> str:
    machine = _machine()
    load = machine["load"]
    busy = (
        f"; the load is {load:.1f}: times may be too long" if load and load > 0.5 * machine["cores"] else ""
    )
    return f"{machine['processor']}, {machine['cores']} cores; the least of the repeats{busy}"


def _machine() -> dict[str, Any]:
    from alembert.engine.target import host

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "processor": host().cpu,
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "load": load,
    }


def _measure(model: Model, name: str, batch: int, repeats: int, peer: Any) -> BenchRow:

    from alembert.engine.kernel import limit_threads

    function = getattr(model, name)
    count = {"mass_matrix": 1, "energy": 2}.get(name, 3)
    many = _states(model, name, batch)[:count]
    one = tuple(x[0] for x in many)
    start = perf_counter()
    function(*one)
    first = perf_counter() - start
    with limit_threads(1):
        alone = best(lambda: function(*many), repeats) / batch
    other = None
    if peer is not None and name in peer:
        call = peer[name]
        other = best(lambda: call(*one), repeats)
    return BenchRow(
        name,
        first,
        best(lambda: function(*one), repeats),
        best(lambda: function(*many), repeats) / batch,
        alone,
        other,
    )


def _states(model: Model, name: str, batch: int) -> tuple[Any, Any, Any]:
    """Random ones; of a model with loops or couplings one at which they are closed, over and over."""
    import numpy as np

    rng = np.random.default_rng(0)
    if not model.is_constrained:
        q = np.array([model.random_configuration(rng) for _ in range(batch)])
        return q, *rng.normal(size=(2, batch, model.nv))
    v, x = rng.normal(size=(2, model.nv))
    for guess in (model.neutral(), *(model.random_configuration(rng) for _ in range(20))):
        try:
            state = model.assemble(guess, v)
        except NumericalError:
            continue
        if name.startswith("inverse"):
            x = model.forward_dynamics(state.q, state.v, x)
        return tuple(np.tile(part, (batch, 1)) for part in (state.q, state.v, x))  # type: ignore[return-value]
    raise NumericalError(f"bench: no configuration was found at which the loops of {model.name!r} are closed")


def best(call: Callable[[], Any], repeats: int) -> float:
    """Seconds of a call: the least of the repeats, each of as many calls as the clock needs."""
    call()
    rounds, least, done = 1, float("inf"), 0
    while done < repeats:
        start = perf_counter()
        for _ in range(rounds):
            call()
        took = perf_counter() - start
        if took < ROUND and rounds < 1_000_000:
            rounds *= 2
            continue
        least = min(least, took / rounds)
        done += 1
    return least


def _pinocchio(model: Model) -> tuple[dict[str, Callable[..., Any]] | None, str]:
    """Pinocchio's functions of the same model, in its coordinates, and a sentence about them."""
    if find_spec("pinocchio") is None:
        return None, "Pinocchio is not installed; it would be measured beside (pip install pin)"
    import pinocchio as pin

    try:
        from alembert.verify.in_pinocchio import in_pinocchio

        other = in_pinocchio(model)
    except UnsupportedError as error:
        return None, f"no peer: {error}"
    import numpy as np

    data, q = other.createData(), pin.neutral(other)
    v, x = np.random.default_rng(0).normal(size=(2, other.nv))
    functions = {
        "forward_dynamics": lambda *_: pin.aba(other, data, q, v, x),
        "inverse_dynamics": lambda *_: pin.rnea(other, data, q, v, x),
        "mass_matrix": lambda *_: pin.crba(other, data, q),
        "forward_dynamics_derivatives": lambda *_: pin.computeABADerivatives(other, data, q, v, x),
        "inverse_dynamics_derivatives": lambda *_: pin.computeRNEADerivatives(other, data, q, v, x),
    }
    return functions, f"peer: Pinocchio {pin.__version__}, called from Python"


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
