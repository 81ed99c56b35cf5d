"""The switch of machines: what it sets, what it reports."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "machines.py"

sys.path.insert(0, str(SCRIPT.parent))
import machines  # noqa: E402


@pytest.fixture
def suite(tmp_path):
    """Tests that look at their surroundings."""
    (tmp_path / "test_small.py").write_text(
        "import os\n"
        "def test_first(): assert os.environ.get('OPENBLAS_CORETYPE') != 'Zen'\n"
        "def test_second(): assert os.environ.get('ALEMBERT_LANES') != '2'\n"
        "def test_third(): pass\n"
    )
    return tmp_path / "test_small.py"


def test_every_kind_of_change_is_there():
    found = machines.machines()
    variables = {(name, value) for machine in found.values() for name, value in machine.variables.items()}
    assert {value for name, value in variables if name == "OPENBLAS_CORETYPE"} == {
        *("Haswell", "Zen", "SkylakeX", "Sandybridge")
    }
    assert {value for name, value in variables if name == "ALEMBERT_LANES"} == {"1", "2", "4", "8"}
    assert {value for name, value in variables if name == "ALEMBERT_TARGET"} == {"sse2", "avx2"}
    assert {machine.cores for machine in found.values()} == {None, 1, 2}
    assert found["shuffled"].options == ("--shuffle=1",)
    together = [machine for machine in found.values() if len(machine.variables) > 4 and machine.options]
    assert len(together) == 2  # all at once


def test_what_fails_where_is_told(suite, tmp_path, capsys, monkeypatch):
    for name in ("OPENBLAS_CORETYPE", "ALEMBERT_TARGET", "ALEMBERT_LANES"):
        monkeypatch.delenv(name, raising=False)  # of the machine that this test itself may run as
    names = [x for name in ("here", "zen", "lanes-2", "shuffled") for x in ("--machine", name)]
    code = machines.main([str(suite), *names, "--jobs", "0", "--folder", str(tmp_path / "logs")])
    told = capsys.readouterr().out
    assert code == 1
    assert "here: 3 passed" in told
    assert "zen: 1 failed, 2 passed" in told
    assert "shuffled: 3 passed" in told
    assert [line.rpartition("::")[2] for line in told.splitlines() if "::" in line] == [
        "test_first",
        "test_second",
    ]
    assert (tmp_path / "logs" / "zen.log").exists()


def test_unknown_machines_are_refused():
    done = subprocess.run(
        [sys.executable, SCRIPT, "--machine", "cray"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "no machine 'cray'; there are here, haswell" in done.stderr


def test_another_order(tmp_path):
    """Of the tests of a file as well; the same for the same seed."""
    names = [f"test_{k}" for k in range(8)]
    suite = tmp_path / "test_many.py"
    suite.write_text("\n".join(f"def {name}(): pass" for name in names))

    def order(seed):
        machine = machines.machines(seed)["shuffled"]
        machines.run("shuffled", machine, [str(suite)], ["-v"], tmp_path)
        return re.findall(r"::(test_\w+) PASSED", (tmp_path / "shuffled.log").read_text())

    first, second, again = order(1), order(2), order(2)
    assert sorted(first) == sorted(second) == names
    assert first != second
    assert second == again
