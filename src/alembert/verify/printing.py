"""Results on a terminal: a line per quantity, then what went wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from alembert.verify.case import Case
from alembert.verify.results import CaseResult, Quantity, Results

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
