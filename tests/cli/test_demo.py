"""The scenes of the demo: what they claim is so, and the page needs nothing but itself."""

import numpy as np
import pytest
from typer.testing import CliRunner

import alembert as al
from alembert.cli import app
from alembert.cli.demo import OTHERS, SCENES, write
from alembert.study.flagship import RANGES, fly


def test_the_satellite_arrives_without_momentum():
    scene = SCENES["satellite"]()
    assert len(scene.time) == len(scene.q)
    assert scene.series["left to turn [rad]"]["angle"][-1] < 1e-3
    assert all(len(line) == len(scene.time) for lines in scene.series.values() for line in lines.values())
    # it starts at rest: each of 60 steps adds rounding of the wheels' 15 N m s, 1e-16 of it
    momentum = dict(scene.summary)["total momentum"]
    assert float(momentum.split()[2]) < 1e-11


def test_the_acrobot_gets_up():
    """Within some mrad: torques are held over steps of 20 ms, the simulation knows nothing of that."""
    scene = SCENES["acrobot"]()
    assert abs(scene.q[-1] - [np.pi / 2, 0.0]).max() < 0.02
    assert "iterations" in dict(scene.summary)


def test_one_of_three_booms_diverges():
    tips = SCENES["spin_up"]().series["deflection of the tip [m]"]
    assert abs(tips["consistent"]).max() == pytest.approx(0.57444275, abs=2e-4)  # records every 20 ms
    assert abs(tips["inconsistent"][-1]) > 3.0


def test_the_arm_throws():
    scene = SCENES["throw"]()
    assert scene.series["speed of the hand [m/s]"]["hand"].max() > 10.0
    assert all(len(line) == len(scene.time) for lines in scene.series.values() for line in lines.values())


def test_a_page_to_play_with(tmp_path):
    done = CliRunner().invoke(app, ["demo", "play", "--folder", str(tmp_path / "new")])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "new" / "play.html").read_text(encoding="utf-8")
    assert "A chain to play with" in text
    assert len(text) < 2e6


def test_list():
    text = CliRunner().invoke(app, ["demo", "--list"]).stdout
    assert all(name in text for name in (*SCENES, *OTHERS))


def test_one_page_that_needs_nothing_else(tmp_path):
    path = write([SCENES["satellite"]()], tmp_path / "new" / "index.html")
    text = path.read_text(encoding="utf-8")
    assert "A satellite turns by its wheels" in text
    assert "src=" not in text.partition("<script")[0]
    assert path.stat().st_size < 5e6


def test_the_flagship(tmp_path):
    """Few members and one parameter: what the demo does is the same code."""
    ranges = {"stiffness": RANGES["stiffness"]}
    story = fly(tmp_path, members=6, ranges=ranges)
    assert story.certificate.ok
    assert story.certificate.family.certificate.exact
    planned, by_hand = (story.flights[name] for name in ("planned", "by hand"))
    after = planned.time > 43
    still, shaken = (abs(x.q[after][:, 10]).max() for x in (planned, by_hand))
    assert still < 0.2 * shaken  # one mode was planned, two are flown: a tenth, not nothing
    assert planned.report.energy_error < 1e-9  # rk4 at 3000 steps of a slow motion
    assert len(story.dispersed.q) == 6
    assert dict(story.certificate.family.ranges) == ranges
    text = story.path.read_text(encoding="utf-8")
    for said in ("Proven for all frequencies", "The turn", "Dispersions", "srcdoc=", "<svg"):
        assert said in text
    assert (tmp_path / "orbiter.toml").exists()
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(al.FileError, match=r"cannot be made"):
        fly(blocked / "below")
