"""The generated tables are current, and the table of algorithms leaves none out."""

import importlib.util
from pathlib import Path

import pytest

from alembert.algorithms import Compute
from alembert.algorithms.table import TABLE
from alembert.constraints import ConstrainedCompute
from alembert.joints import REGISTRY
from alembert.model.methods import Methods

DOCS = Path(__file__).parents[1] / "docs"
HINT = "run python docs/generate.py"
NOT_ALGORITHMS = {"check_configuration", "compute", "constrained_compute", "compile"}


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def shown(generate):
    return generate.sections((DOCS / "joints.md").read_text(encoding="utf-8"))


def test_joint_types_are_current(generate, shown):
    assert shown["joint_types"] == generate.joint_types(), HINT


@pytest.mark.parametrize("group", range(6))
def test_algorithms_are_current(group, generate, shown):
    assert {kind for kinds in generate.GROUPS[:6] for kind in kinds} == set(REGISTRY)
    head, _, *rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in shown["joint_algorithms"].splitlines()
    ]
    assert [row[0] for row in rows] == [f"`{name}`" for name in generate.ALGORITHMS], HINT
    for kind, outcomes in generate.columns(*generate.GROUPS[group]).items():
        assert [row[head.index(kind)] for row in rows] == outcomes, HINT


def test_no_algorithm_is_left_out(generate):
    """Of trees: all that a model computes but for what is about constraints."""
    about_constraints = set(vars(ConstrainedCompute)) - set(dir(Compute))
    methods = {name for name in vars(Methods) if not name.startswith("_")} - about_constraints
    assert methods - NOT_ALGORITHMS <= set(generate.ALGORITHMS)
    assert {name for name, entry in TABLE.items() if entry.is_method} <= set(generate.ALGORITHMS)


def test_the_page_on_verification_has_every_case(generate):
    """Its numbers are those of a run, which `make verify` makes; the cases are those that there are."""
    from alembert.verify import discover

    shown = generate.sections((DOCS / "verification.md").read_text(encoding="utf-8"))["verified"]
    rows = [line.split(" | ") for line in shown.splitlines() if line.startswith("| `")]
    assert [row[0].strip("| `") for row in rows] == list(discover()), "run python docs/verified.py"
    assert {row[5].strip("| ") for row in rows} <= {"passed", "skipped", "new"}
