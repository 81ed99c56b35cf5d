"""`alembert verify` as a user types it."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from alembert.cli import app

CASE = """
from alembert.verify import Check, case

@case(source="arithmetic", kind="identity")
def sum_of_two():
    '''One and one.'''
    yield Check("1 + 1", 1 + 1, {expected}, 0, "integers")
"""


def invoke(*arguments):
    return CliRunner().invoke(app, ["verify", *map(str, arguments)])


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(CASE.format(expected=2))
    return path


def test_list():
    done = invoke("--list", "--tag", "iftomm")
    assert done.exit_code == 0
    assert "a01_pendulum_period" in done.output.replace("\n", "")
    assert "cases" in done.output


def test_run_report_and_json(mine, tmp_path):
    page, kept = tmp_path / "report.html", tmp_path / "kept.json"
    done = invoke("--file", mine, "--case", "sum_of_two", "--report", page, "--save", kept, "--jobs", 1)
    assert done.exit_code == 0, done.output
    assert "1 case: 1 passed" in done.output
    assert "<svg" in page.read_text()
    assert json.loads(kept.read_text())["outcomes"][0]["status"] == "passed"
    mine.write_text(CASE.format(expected=3))
    done = invoke("--file", mine, "--case", "sum_of_two", "--against", kept, "--jobs", 1)
    assert done.exit_code == 1
    assert "worse" in done.output
    done = invoke("--results", kept, "--against", kept)
    assert done.exit_code == 0, done.output
    assert "same" in done.output


def test_a_report_in_a_folder_has_a_page_per_area(mine, tmp_path):
    kept = tmp_path / "kept.json"
    invoke("--file", mine, "--case", "sum_of_two", "--case", "control_gap", "--save", kept, "--jobs", 1)
    done = invoke("--results", kept, "--report", tmp_path / "pages")
    assert "report: " in done.stdout.replace("\n", " ")
    index = (tmp_path / "pages" / "index.html").read_text()
    assert 'href="control.html">control design</a></td><td>1 case: 1 passed' in index
    assert 'href="others.html"' in index
    assert (
        "<h1>Verification of alembert: control design</h1>"
        in (tmp_path / "pages" / "control.html").read_text()
    )
    assert "control_gap" not in (tmp_path / "pages" / "others.html").read_text()


def test_a_failure_is_told_by_the_exit_code(mine):
    mine.write_text(CASE.format(expected=3))
    done = invoke("--file", mine, "--case", "sum_of_two", "--jobs", 1)
    assert done.exit_code == 1
    assert "sum_of_two: failed: beyond the tolerance: 1 + 1" in done.output.replace("\n", " ")


def test_json_on_the_terminal(mine):
    done = invoke("--file", mine, "--case", "sum_of_two", "--json", "--jobs", 1)
    assert json.loads(done.stdout)["outcomes"][0]["name"] == "sum_of_two"


def test_another_program():
    pytest.importorskip("pinocchio")
    done = invoke("--case", "screw_descent", "--against", "pinocchio", "--jobs", 1)
    assert done.exit_code == 0, done.output
    assert "same" in done.output


def test_a_failure_counts_though_the_other_program_is_not_asked(mine):
    pytest.importorskip("pinocchio")
    mine.write_text(CASE.format(expected=3))
    arguments = ("--file", mine, "--case", "sum_of_two", "--case", "screw_descent", "--against", "pinocchio")
    done = invoke(*arguments, "--jobs", 1)
    assert done.exit_code == 1
    told = " ".join(done.output.split())
    assert "sum_of_two: failed: beyond the tolerance: 1 + 1" in told
    assert "pinocchio is asked 1 of 2 cases" in told
    assert "1 quantity of 1 case: 1 same" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--case", "a01"), "verify: no case 'a01'"),
        (("--against", "pinochio"), "verify: pinochio does not hold results"),
        (("--report", "no/such/folder/r.html"), "verify: there is no folder"),
    ],
)
def test_refusals(arguments, message, mine):
    done = invoke("--file", mine, "--case", "sum_of_two", "--jobs", 1, *arguments)
    assert done.exit_code == 2
    assert message in done.output.replace("\n", " ")


def test_as_a_command(mine):
    done = subprocess.run(
        [sys.executable, "-m", "alembert", "verify", "--file", str(mine), "--case", "sum_of_two"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "1 case: 1 passed" in done.stdout
