"""Two sets of results side by side: two versions, or two programs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from alembert.verify.printing import NARROWEST, STYLES, WIDEST, short
from alembert.verify.programs import program_named, programs
from alembert.verify.results import CaseResult, Quantity, Results

AGREE = 1.0
"""times the tolerance of a quantity: what two results may be apart and still be the same"""


VERDICTS = {"same": "green", "better": STYLES["passed"], "worse": STYLES["failed"], "differs": "bold red"}
"""how a verdict looks"""


@dataclass(frozen=True)
class QuantityPair:
    """A quantity in both results; None where one of them has no such quantity."""

    case: str
    what: str
    first: Quantity | None
    second: Quantity | None
    note: str

    @property
    def apart(self) -> float:
        """The largest difference of the two, infinite when they cannot be compared."""
        if self.first is None or self.second is None:
            return float("nan")
        x, y = (np.asarray(q.ours, dtype=float) for q in (self.first, self.second))
        return float(np.max(np.abs(x - y), initial=0.0)) if x.shape == y.shape else float("inf")

    @property
    def verdict(self) -> str:
        """`same` within the tolerances of both, `differs`, or why there is nothing to compare."""
        if self.first is None or self.second is None:
            return self.note
        if self.first.passed != self.second.passed:
            return "better" if self.first.passed else "worse"
        x, y = (np.asarray(q.ours, dtype=float) for q in (self.first, self.second))
        if x.shape != y.shape:
            return "differs"
        allowed = np.asarray(self.first.tolerance, float) + np.asarray(self.second.tolerance, float)
        return "same" if np.all(np.abs(x - y) <= AGREE * allowed) else "differs"


def compare(first: Results, second: Results) -> list[QuantityPair]:
    """Quantity by quantity, those of `first` in its order, then what only `second` has."""
    theirs = {outcome.name: outcome for outcome in second.outcomes}
    pairs: list[QuantityPair] = []
    for outcome in first.outcomes:
        pairs += _pairs(outcome, theirs.pop(outcome.name, None))
    for outcome in theirs.values():
        pairs.append(QuantityPair(outcome.name, outcome.title, None, None, "new there"))
    return pairs


def _pairs(one: CaseResult, other: CaseResult | None) -> list[QuantityPair]:
    if other is None:
        return [QuantityPair(one.name, one.title, None, None, "not there")]
    if not one.quantities or not other.quantities:
        short_one = one if not one.quantities else other
        return [QuantityPair(one.name, one.title, None, None, f"{short_one.status}: {short_one.message}")]
    theirs = {quantity.what: quantity for quantity in other.quantities}
    return [
        QuantityPair(one.name, quantity.what, quantity, theirs.get(quantity.what), "not there")
        for quantity in one.quantities
    ]


def label(results: Results) -> str:
    name = results.program
    known = name in programs()  # a file may name any
    return f"{name} {results.versions.get(program_named(name).distribution if known else name, '')}".rstrip()


def show(first: Results, second: Results, pairs: list[QuantityPair], console: Console) -> None:
    """As a table where the terminal is wide enough, else a line per quantity; then how many of which verdict."""
    if NARROWEST <= console.width <= WIDEST:
        console.print(table(first, second, pairs))
    else:
        for pair in pairs:
            _line(pair, label(first), label(second), console)
    counts = Counter(pair.verdict for pair in pairs)
    parts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    sizes = (
        _counted(len(pairs), "quantity", "quantities"),
        _counted(len({p.case for p in pairs}), "case", "cases"),
    )
    console.print(f"{sizes[0]} of {sizes[1]}: {parts}", style="bold", highlight=False)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _line(pair: QuantityPair, one: str, two: str, console: Console) -> None:
    head = f"[bold]{escape(pair.case)}[/]: {escape(pair.what)}: "
    verdict = f"[{VERDICTS.get(pair.verdict, 'yellow')}]{escape(pair.verdict)}[/]"
    if pair.first is None or pair.second is None:
        console.print(head + verdict, highlight=False)
        return
    console.print(
        f"{head}{one} {short(pair.first.ours)}; {two} {short(pair.second.ours)}; apart {pair.apart:.1e}: {verdict}",
        highlight=False,
    )


def table(first: Results, second: Results, pairs: list[QuantityPair]) -> Table:
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
