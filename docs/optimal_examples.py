"""Write the table of docs/optimal-control.md: python docs/optimal_examples.py [NAME ...]

Runs every problem of examples/05_optimal_control.py with solver="sweep" and writes cost and iterations, with the date; with
names, prints the rows of these problems only and writes nothing.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path

from generate import _table, filled

PAGE = Path(__file__).parent / "optimal-control.md"
EXAMPLE = Path(__file__).parents[1] / "examples" / "05_optimal_control.py"
HEAD = ["problem", "cost", "published", "duration [s]", "transcription", "steps", "iterations"]
PUBLISHED = {
    "brachistochrone": "1.8016031225",
    "bryson denham": "4",
    "hager": "0.3807970780",
    "hypersensitive": "6.7241",
    "goddard": "-1.01283",
    "van der pol": "2.86696",
}


def problems() -> dict:
    arguments, sys.argv = sys.argv, sys.argv[:1]
    spec = importlib.util.spec_from_file_location("optimal_control_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.argv = arguments
    return module.PROBLEMS


def row(name: str, make) -> list[str]:
    solution = make()
    assert solution.success, f"{name}: {solution.diagnosis()}"
    shape = f"{solution.duration:.6g}", solution.transcription, str(solution.steps), str(solution.iterations)
    return [name, f"{solution.cost:.8g}", PUBLISHED.get(name, ""), *shape]


if __name__ == "__main__":
    known = problems()
    rows = []
    for name in sys.argv[1:] or known:
        rows.append(row(name, known[name]))
        print(" | ".join(rows[-1]), flush=True)
    if not sys.argv[1:]:
        note = f'Run of {time.strftime("%Y-%m-%d", time.gmtime())}, `solver="sweep"`, tolerance 1e-8.'
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(filled(text, {"optima": f"{note}\n\n{_table(HEAD, rows)}"}), encoding="utf-8")
