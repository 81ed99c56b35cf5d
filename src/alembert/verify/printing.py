"""Results on a terminal: a line per quantity, then what went wrong; and two sets of results side by side."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from alembert.verify.case import Case
from alembert.verify.programs import program_named, programs
from alembert.verify.results import CaseResult, Quantity, QuantityPair, Results

STYLES = {"passed": "green", "failed": "bold red", "error": "bold red", "skipped": "yellow"}
SHOWN = 3  # numbers of an array
NARROWEST, WIDEST = 150, 500  # columns for the table: what it needs, and more than a terminal has (a pipe)


def number(x: float) -> str:
    return f"{x:.10g}" if np.isfinite(x) else str(x)


def short(x: Any) -> str:
    """A number or a few of them; of longer arrays the size and the largest entry."""
    values = np.asarray(x, dtype=float)
    if values.size <= SHOWN:
        return ", ".join(number(float(entry)) for entry in values.ravel())
    size = " x ".join(str(n) for n in values.shape)
    return f"{size} numbers up to {np.max(np.abs(values)):.4g}"


def limit(quantity: Quantity) -> str:
    values = np.asarray(quantity.tolerance, dtype=float)
    return f"{np.max(values):.2g}"


def show(results: Results, console: Console) -> None:
    """As a table where the terminal is wide enough, else (and into pipes) a paragraph per case; then what failed."""
    if NARROWEST <= console.width <= WIDEST:
        console.print(table(results))
    else:
        for outcome in results.outcomes:
            _paragraph(outcome, console)
    for sentence in explanations(results):
        console.print(sentence, markup=False, highlight=False)
    console.print(results.summary, style="bold", highlight=False)


def _paragraph(outcome: CaseResult, console: Console) -> None:
    mark = f"[{STYLES[outcome.status]}]{outcome.status:8}[/]"
    console.print(f"{mark}[bold]{escape(outcome.name)}[/]", highlight=False)
    note = " [yellow](incomplete)[/]" if outcome.missing else ""
    console.print(f"        [dim]{escape(outcome.source)}[/]{note}", highlight=False)
    for quantity in outcome.quantities:
        style = "green" if quantity.passed else "bold red"
        console.print(
            f"        {escape(quantity.what)}: published {short(quantity.published)}; ours {short(quantity.ours)}; "
            f"difference [{style}]{quantity.difference:.1e}[/] of {limit(quantity)}",
            highlight=False,
        )


def table(results: Results) -> Table:
    """case - source - quantity - published - ours - difference - tolerance - verdict."""
    found = Table(title=None, header_style="bold", expand=True)
    for head, options in (
        ("case", {"overflow": "fold", "ratio": 3}),
        ("source", {"overflow": "fold", "ratio": 4}),
        ("quantity", {"overflow": "fold", "ratio": 3}),
        ("published", {"overflow": "fold", "ratio": 3}),
        ("ours" if results.program == "alembert" else results.program, {"overflow": "fold", "ratio": 3}),
        ("difference", {"justify": "right", "no_wrap": True}),
        ("tolerance", {"justify": "right", "no_wrap": True}),
        ("verdict", {"no_wrap": True}),
    ):
        found.add_column(head, **options)
    for outcome in results.outcomes:
        _rows(found, outcome)
    return found


def _rows(found: Table, outcome: CaseResult) -> None:
    name, source = escape(outcome.name), escape(outcome.source)
    if outcome.missing:
        source += " [yellow](incomplete)[/]"
    if not outcome.quantities:
        verdict = f"[{STYLES[outcome.status]}]{outcome.status}[/]"
        found.add_row(name, source, escape(outcome.message), "", "", "", "", verdict)
    for k, quantity in enumerate(outcome.quantities):
        verdict = "[green]passed[/]" if quantity.passed else "[bold red]failed[/]"
        found.add_row(
            name if k == 0 else "",
            source if k == 0 else "",
            escape(quantity.what),
            short(quantity.published),
            short(quantity.ours),
            f"{quantity.difference:.1e}",
            limit(quantity),
            verdict,
        )


def explanations(results: Results) -> list[str]:
    """A sentence per case that did not pass."""
    return [
        f"{outcome.name}: {outcome.status}: {outcome.message}"
        for outcome in results.outcomes
        if outcome.status != "passed"
    ]


def show_list(cases: list[Case], console: Console) -> None:
    """Name, title, where it comes from and its tags, a paragraph per case."""
    for case in cases:
        note = " [yellow](incomplete)[/]" if case.missing else ""
        console.print(f"[bold]{escape(case.name)}[/]  {escape(case.title)}", highlight=False)
        console.print(f"    [dim]{escape(case.source)}[/]{note}", highlight=False)
        console.print(f"    {', '.join((case.kind, *case.tags))}", highlight=False)
    console.print(f"{len(cases)} cases", style="bold", highlight=False)


VERDICTS = {"same": "green", "better": STYLES["passed"], "worse": STYLES["failed"], "differs": "bold red"}
"""how a verdict looks"""


def label(results: Results) -> str:
    name = results.program
    known = name in programs()  # a file may name any
    return f"{name} {results.versions.get(program_named(name).distribution if known else name, '')}".rstrip()


def show_pairs(first: Results, second: Results, pairs: list[QuantityPair], console: Console) -> None:
    """As a table where the terminal is wide enough, else a line per quantity; then how many of which verdict."""
    if NARROWEST <= console.width <= WIDEST:
        console.print(table_of_pairs(first, second, pairs))
    else:
        for pair in pairs:
            _pair_line(pair, label(first), label(second), console)
    counts = Counter(pair.verdict for pair in pairs)
    parts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    sizes = (
        _counted(len(pairs), "quantity", "quantities"),
        _counted(len({p.case for p in pairs}), "case", "cases"),
    )
    console.print(f"{sizes[0]} of {sizes[1]}: {parts}", style="bold", highlight=False)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _pair_line(pair: QuantityPair, one: str, two: str, console: Console) -> None:
    head = f"[bold]{escape(pair.case)}[/]: {escape(pair.what)}: "
    verdict = f"[{VERDICTS.get(pair.verdict, 'yellow')}]{escape(pair.verdict)}[/]"
    if pair.first is None or pair.second is None:
        console.print(head + verdict, highlight=False)
        return
    console.print(
        f"{head}{one} {short(pair.first.ours)}; {two} {short(pair.second.ours)}; apart {pair.apart:.1e}: {verdict}",
        highlight=False,
    )


def table_of_pairs(first: Results, second: Results, pairs: list[QuantityPair]) -> Table:
    found = Table(header_style="bold", expand=True)
    heads = ("case", "quantity", "published", label(first), label(second))
    for head in heads:
        found.add_column(escape(head), overflow="fold")
    found.add_column("apart", justify="right", no_wrap=True)
    found.add_column("verdict", overflow="fold")
    for pair in pairs:
        if pair.first is None:
            found.add_row(pair.case, escape(pair.what), "", "", "", "", f"[yellow]{escape(pair.verdict)}[/]")
            continue
        apart = "" if pair.second is None else f"{pair.apart:.1e}"
        style = VERDICTS.get(pair.verdict, "yellow")
        found.add_row(
            pair.case,
            escape(pair.what),
            short(pair.first.published),
            short(pair.first.ours),
            short(pair.second.ours) if pair.second else "",
            apart,
            f"[{style}]{escape(pair.verdict)}[/]",
        )
    return found
