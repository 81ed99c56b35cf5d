"""`alembert verify`: run the cases, and show where each number comes from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from alembert.cli import console as output
from alembert.cli.app import COMPUTE, FAILED, Json, command
from alembert.cli.models import option
from alembert.errors import ArgumentError

if TYPE_CHECKING:
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

    terminal = output.terminal(quiet=output.settings().quiet or as_json)
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
        console=output.terminal(stderr=True),
        transient=True,
        disable=output.settings().quiet or not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task("", total=len(cases), last="")

        def done(outcome: CaseResult) -> None:
            bar.update(task, advance=1, last=f"{outcome.name}: {outcome.status}")

        return run(cases, program=program, jobs=jobs, timeout=timeout, done=done)
