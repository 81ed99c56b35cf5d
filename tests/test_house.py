"""What must stay at zero in the house: knots between packages, class names with two meanings, private uses."""

import importlib.util
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def house():
    spec = importlib.util.spec_from_file_location("house", DOCS / "house.py")
    module = sys.modules["house"] = importlib.util.module_from_spec(spec)  # its dataclasses look for it there
    spec.loader.exec_module(module)
    return module


def test_no_knots_between_packages(house):
    assert house.knots() == []


def test_one_word_one_meaning(house):
    assert house.twice() == {}


def test_private_members_stay_in_their_packages(house):
    assert house.private() == []


def test_the_page_names_every_package(house):
    page = (DOCS / "house.md").read_text(encoding="utf-8")
    for package in house.packages():
        assert f"| `{package}` |" in page, "run python docs/house.py"
