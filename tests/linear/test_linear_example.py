"""The example runs and ends where it says."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "02_linearise.py"


def test_example(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    text = capsys.readouterr().out
    assert "unstable, centre of mass at x = " in text
    assert "controllable: rank 4 of 4" in text
    last = next(line for line in text.splitlines() if line.startswith("t = 3.0 s"))
    assert all(abs(float(number)) < 1e-4 for number in last.split(": ")[1].split(" rad")[0].split(", "))
