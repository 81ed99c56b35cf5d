"""The task `mission`: the example flies, its report has the budgets, and bad files are named by line."""

import json
from pathlib import Path

import pytest

from alembert.errors import FileError
from alembert.study.file import load_study
from alembert.study.run import run_study

EXAMPLE = Path(__file__).parents[2] / "examples" / "satellite.toml"
SHORT = (
    "task.time=20.0",
    "task.surroundings.degree=2",
    "task.surroundings.order=0",
    "task.dispersions.members=2",
)


@pytest.fixture(scope="module")
def flown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mission")
    study = load_study(EXAMPLE, changes=SHORT, folder=folder)
    return run_study(study, progress=False), folder


def test_the_example_flies(flown):
    finished, folder = flown
    data = finished.outcome.data
    start, end = data["orbit"]
    assert start[0] == pytest.approx(6878137.0, abs=1.0)
    assert abs(end[0] - start[0]) < 2e3  # J2 within 20 s
    assert data["pointing_error"][0] < 0.09  # it began 5.4 deg off
    assert data["momentum_error"][0] < 1e-10
    assert set(data["angular_impulses"]) == {"gravity", "drag", "sunlight", "actuators"}
    assert len(data["members"]) == 2
    report = (folder / "report.html").read_text(encoding="utf-8")
    for words in (
        "momentum balance",
        "angular impulse from outside",
        "Ground track",
        "dispersions: 2 members",
    ):
        assert words in report
    assert json.loads((folder / "manifest.json").read_text())["seeds"] == {"sensors": 0, "dispersions": 0}
    assert (folder / "records.csv").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("task.orbit.altitude=-300e3", "below the ground"),
        ('task.epoch="1950-01-01"', "outside the table of leap seconds"),
        ("task.wheels.wheel_x.inertia=-1.0", "wheel_x"),
        ("task.wheels.wheel_y.start=900.0", "beyond the wheel's speed of 600"),
        ("task.wheels.wheel_x.dynamic_imbalance=0.5", "wheel_x"),
        ("task.surroundings.degree=40", "go to 20"),
        ("task.software.target=[1.0, 1.0, 0.0, 0.0]", "unit quaternion"),
        ("task.panels.left.along=[1, 0, 0]", "right angles"),
        ("task.panels.left.size=[1, 2, 3]", "expected 2"),
    ],
)
def test_bad_missions_are_named(change, message, tmp_path):
    study = None
    with pytest.raises(FileError, match=message):
        study = load_study(EXAMPLE, changes=(*SHORT, change), folder=tmp_path)
        run_study(study, progress=False)


def test_contradictory_schedules_are_named(tmp_path):
    with pytest.raises(FileError, match="expected a multiple of the step"):
        run_study(
            load_study(EXAMPLE, changes=(*SHORT, "task.software.period=0.25"), folder=tmp_path),
            progress=False,
        )
