"""Write the table of docs/optimal-control.md: python docs/optimal_examples.py [NAME ...]

Runs every problem of alembert.optimal.examples with solver="sweep" and writes cost and iterations, with the date; with
names, prints the rows of these problems only and writes nothing.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path

from generate import _table, filled

from alembert.optimal.examples import EXAMPLES

PAGE = Path(__file__).parent / "optimal-control.md"
HEAD = ["problem", "cost", "published", "duration [s]", "transcription", "steps", "iterations"]


def row(name: str, make) -> list[str]:
    example = make()
    solution = example.solve()
    assert solution.success, f"{name}: {solution.diagnosis()}"
    shape = f"{solution.duration:.6g}", solution.transcription, str(solution.steps), str(solution.iterations)
    published = "" if math.isnan(example.published) else f"{example.published:.11g}"
    return [name, f"{solution.cost:.8g}", published, *shape]


if __name__ == "__main__":
    rows = []
    for name in sys.argv[1:] or EXAMPLES:
        rows.append(row(name, EXAMPLES[name]))
        print(" | ".join(rows[-1]), flush=True)
    if not sys.argv[1:]:
        note = f'Run of {time.strftime("%Y-%m-%d", time.gmtime())}, `solver="sweep"`, tolerance 1e-8.'
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(filled(text, {"optima": f"{note}\n\n{_table(HEAD, rows)}"}), encoding="utf-8")
