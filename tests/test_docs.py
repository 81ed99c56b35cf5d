"""The pages are true: every python block runs, and prints what the page says."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from markdown_blocks import blocks, compare, run

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
TESTED_ELSEWHERE = {"format.md": "tests/model/io/test_native_docs.py"}
NEEDS = {"coming-from/pinocchio.md": "pinocchio", "coming-from/mujoco.md": "mujoco"}
"""other programs that a page runs side by side"""
WORDS = {"python", "python no-run", "text", "text output", "toml", "yaml"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_page_runs(page, tmp_path, monkeypatch):
    if page.name in TESTED_ELSEWHERE:
        assert (DOCS.parent / TESTED_ELSEWHERE[page.name]).exists()
        return
    if (needed := NEEDS.get(str(page.relative_to(DOCS)))) is not None:
        pytest.importorskip(needed)
    monkeypatch.chdir(tmp_path)
    expected = sum(words == "python" for words, _, _ in blocks(page))
    assert run(page) == expected


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_fences_are_known(page):
    """A misspelt word would leave a block untested."""
    for words, _, line in blocks(page):
        assert words in WORDS, f"{page.name}:{line}: ```{words}"


def test_names_for_users_of_matlab_exist():
    """Of the second table, whose names are those of `alembert.control` and of its systems."""
    import alembert as al

    text = (DOCS / "coming-from" / "matlab.md").read_text(encoding="utf-8")
    table = text.partition("Control System Toolbox and Robust")[2].partition("## Side by side")[0]
    cells = [row.split("|")[2] for row in table.splitlines() if row.startswith("|")][2:]
    named = {name for cell in cells for name in re.findall(r"`([A-Za-z][\w.]*)(?=[`(])", cell)}
    kinds = ("StateSpace", "UncertainSystem", "LargeSystem", "FrequencyResponse")
    owners = [al, al.control, al.simulate, *(getattr(al.control, kind) for kind in kinds)]
    assert len(named) > 80
    assert not [x for x in named if not any(hasattr(owner, x.rpartition(".")[2]) for owner in owners)]


def test_outputs_are_compared(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint('x', 1.0)\n```\n\n```text output\nx 1.00001\n```\n")
    assert run(page) == 1
    page.write_text("```python\nprint('x', 1.0)\n```\n\n```text output\nx 1.1\n```\n")
    with pytest.raises(AssertionError):
        run(page)
    with pytest.raises(AssertionError, match="the page shows"):
        compare("yes", "no", "page.md:1")


def test_equations_stand_where_the_theory_says():
    """Modules number their equations at their top; the page's table names modules and numbers."""
    text = (DOCS / "theory-sweeps.md").read_text(encoding="utf-8")
    rows = [
        line.split("|")[2] for line in text.splitlines() if line.startswith("| (") and "`alembert." in line
    ]
    assert len(rows) == 6
    for row in rows:
        for module, numbers in re.findall(r"`(alembert\.[\w.]+)`([^`]*)", row):
            source = Path(importlib.import_module(module).__file__).read_text(encoding="utf-8")
            doc = ast.get_docstring(
                ast.parse(source)
            )  # of the file: modules that are called show help of the call
            for number in re.findall(r"\(\d+\)", numbers):
                assert re.search(rf"{re.escape(number)}$", doc, re.MULTILINE), f"{module} has no {number}"


def test_broken_links_fail_the_build():
    """`--quiet` would drop the warnings before `--strict` counts them."""
    (line,) = (
        x for x in (DOCS.parent / "Makefile").read_text(encoding="utf-8").splitlines() if "mkdocs build" in x
    )
    assert "--strict" in line
    assert "-q" not in line
