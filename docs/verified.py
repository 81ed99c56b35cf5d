"""Write the table of docs/verification.md from the results of a run: python docs/verified.py results.json

`make verify` runs all cases and then this; `tests/test_docs_generated.py` holds the page to the registry of cases.
"""

from __future__ import annotations

import sys
from pathlib import Path

from generate import _table, filled

from alembert.verify import Results

PAGE = Path(__file__).parent / "verification.md"


def table(results: Results) -> str:
    rows = []
    for outcome in results.outcomes:
        worst = max((q.margin for q in outcome.quantities), default=None)
        source = outcome.source + (" *(incomplete)*" if outcome.missing else "")
        rows.append(
            [
                f"`{outcome.name}`",
                _cell(outcome.title),
                _cell(source),
                outcome.kind,
                "" if worst is None else f"{worst:.0e}",
                outcome.status,
            ]
        )
    head = ["case", "what", "source", "kind", "difference / tolerance", "verdict"]
    return _table(head, rows)


def facts(results: Results) -> str:
    machine = ", ".join(f"{key} {value}" for key, value in results.machine.items())
    versions = ", ".join(f"{key} {value}" for key, value in results.versions.items())
    return f"{results.summary}. Run on {results.date}: {machine}; {versions}.\n\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("\\*(incomplete)\\*", "*(incomplete)*")


if __name__ == "__main__":
    found = Results.load(sys.argv[1])
    text = filled(PAGE.read_text(encoding="utf-8"), {"verified": facts(found) + table(found)})
    PAGE.write_text(text, encoding="utf-8")
