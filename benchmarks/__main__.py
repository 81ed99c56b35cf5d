"""`python -m benchmarks [--quick] [--only PART]`: measure, print, store, and write docs/benchmarks.md."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from rich.console import Console

from benchmarks import report
from benchmarks.measure import PARTS, measure
from benchmarks.rows import Results

_ROOT = Path(__file__).parents[1]
_RESULTS = _ROOT / "benchmarks" / "results"
_PAGE = _ROOT / "docs" / "benchmarks.md"


def main() -> None:
    os.environ["ALEMBERT_INTERPRETER"] = "off"  # what is measured is compiled code, but for the first result
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="short repeats and chains; rough figures, nothing stored"
    )
    parser.add_argument(
        "--from", dest="stored", type=Path, help="show and document a stored run instead of measuring"
    )
    parser.add_argument(
        "--only",
        choices=PARTS,
        help="measure and show these rows; nothing stored",
    )
    options = parser.parse_args()
    console = Console(width=None if Console().is_terminal else 170)
    if options.stored:
        results = Results.from_json(options.stored.read_text())
    else:
        say = lambda text: console.print(f"[dim]{text}")  # noqa: E731
        results = measure(quick=options.quick, say=say, only=options.only or "")
        if not (options.quick or options.only):
            _RESULTS.mkdir(exist_ok=True)
            (_RESULTS / f"{results.date[:10]}.json").write_text(results.to_json() + "\n")
    report.show(results, console)
    if not (results.quick or options.only):
        _PAGE.write_text(report.page(results))


if __name__ == "__main__":
    main()
