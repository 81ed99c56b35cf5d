"""Write the table of docs/verification.md: python docs/verified.py [results.json]

With the results of a run (`alembert verify --save results.json`, which `make verify` makes) its rows get their numbers;
without, the rows stay as they are, and cases that have come since stand there as `new`.
`tests/test_docs_generated.py` holds the page to the registry of cases.
"""

from __future__ import annotations

import sys
from pathlib import Path

from generate import _table, filled, sections

from alembert.verify import Case, CaseResult, Results, discover

PAGE = Path(__file__).parent / "verification.md"
HEAD = ["case", "what", "source", "kind", "difference / tolerance", "verdict"]


def section(results: Results | None) -> str:
    """The sentence about the run, and a row per case."""
    before = sections(PAGE.read_text(encoding="utf-8"))["verified"]
    first = facts(results) if results else before.partition("\n")[0]
    known = {outcome.name: numbers(outcome) for outcome in results.outcomes} if results else _shown(before)
    rows = [[*_words(case), *known.get(name, ["", "new"])] for name, case in discover().items()]
    return f"{first}\n\n{_table(HEAD, rows)}"


def facts(results: Results) -> str:
    machine = ", ".join(f"{key} {value}" for key, value in results.machine.items())
    versions = ", ".join(f"{key} {value}" for key, value in results.versions.items())
    return f"{results.summary}. Run on {results.date}: {machine}; {versions}."


def numbers(outcome: CaseResult) -> list[str]:
    worst = max((q.margin for q in outcome.quantities), default=None)
    return ["" if worst is None else f"{worst:.0e}", outcome.status]


def _words(case: Case) -> list[str]:
    source = _cell(case.source) + (" *(incomplete)*" if case.missing else "")
    return [f"`{case.name}`", _cell(case.title), source, case.kind]


def _shown(text: str) -> dict[str, list[str]]:
    rows = [
        [cell.strip() for cell in line.split(" | ")] for line in text.splitlines() if line.startswith("| `")
    ]
    return {row[0].strip("| `"): [row[4], row[5].strip("| ")] for row in rows}


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


if __name__ == "__main__":
    found = Results.load(sys.argv[1]) if len(sys.argv) > 1 else None
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), {"verified": section(found)}), encoding="utf-8")
