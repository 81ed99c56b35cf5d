"""Cases of an installed package: a distribution in a folder of its own, found through its entry points."""

import json
import os
import subprocess
import sys

import pytest

CASE = """
from alembert.verify import Check, case

@case(source="data sheet of the arm, table 3", kind="published", tags=("arm",))
def {name}():
    '''What the maker measured.'''
    yield Check("reach [m]", 0.85, {value}, 0.01, "half a unit of the last digit")
"""


@pytest.fixture
def install(tmp_path):
    """Put a package and its metadata where `pip install --target` would."""
    folder = tmp_path / "site"

    def written(modules, point="arm_cases"):
        package = folder / "arm_cases"
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").write_text("")
        for name, text in modules.items():
            (package / f"{name}.py").write_text(text)
        info = folder / "arm_cases-1.0.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: arm-cases\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[alembert.cases]\narm = {point}\n")
        return folder

    return written


def verify(folder, *arguments):
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", "alembert", "verify", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_cases_of_an_installed_package_run_in_other_processes_too(install):
    folder = install(
        {"reach": CASE.format(name="reach", value=0.85), "far": CASE.format(name="far", value=0.9)}
    )
    done = verify(folder, "--tag", "arm", "--json", "--jobs", "2")
    assert done.returncode == 1, done.stderr  # one of them fails, as it should
    outcomes = {outcome["name"]: outcome["status"] for outcome in json.loads(done.stdout)["outcomes"]}
    assert outcomes == {"far": "failed", "reach": "passed"}


def test_a_package_whose_cases_do_not_import_is_named(install):
    folder = install({"reach": "import no_such_module\n"}, point="arm_cases.reach")
    done = verify(folder, "--list")
    assert done.returncode == 2
    told = " ".join(done.stderr.split())
    assert (
        "verify: the cases of arm-cases 1.0 (arm = arm_cases.reach) do not load: ModuleNotFoundError" in told
    )
    assert "Traceback" not in done.stderr


def test_a_name_of_the_package_cannot_be_taken(install):
    folder = install({"reach": CASE.format(name="screw_descent", value=0.85)})
    done = verify(folder, "--list")
    assert done.returncode == 2
    assert "'screw_descent' is in alembert.verify.cases.rigid_bodies and in" in " ".join(done.stderr.split())
