"""Every case that comes with the package passes; the slow ones run with `make verify`."""

import re
from pathlib import Path

import pytest

import alembert.verify.cases
from alembert.verify import KINDS, TAGS, discover, run_case

CASES = discover()
QUICK = [name for name, case in CASES.items() if not case.slow]


@pytest.mark.parametrize("name", QUICK)
def test_case(name):
    outcome = run_case(CASES[name])
    if outcome.status == "skipped":
        pytest.skip(outcome.message)
    bad = [(q.what, q.difference, q.tolerance) for q in outcome.quantities if not q.passed]
    assert outcome.status == "passed", (outcome.message, bad)


def test_there_are_enough():
    assert len(CASES) >= 60
    assert {case.kind for case in CASES.values()} == set(KINDS)


@pytest.mark.parametrize("name", CASES)
def test_cases_say_where_they_come_from(name):
    case = CASES[name]
    assert set(case.tags) <= set(TAGS), case.tags
    assert len(case.source) > 20
    assert case.title[0].isupper()
    assert case.origin.startswith("alembert.verify.cases.")


def test_every_function_under_the_decorator_is_found():
    """Several cases share a file: none may hide another of its name."""
    files = sorted((Path(alembert.verify.cases.__file__).parent).glob("*.py"))
    written = re.findall(
        r"^@case\([\s\S]*?^def (\w+)\(", "\n".join(f.read_text("utf-8") for f in files), re.M
    )
    assert sorted(written) == list(CASES)
    assert {case.function.__name__ for case in CASES.values()} == set(CASES)
