"""The scenes of the demo: what they claim is so, and the page needs nothing but itself."""

import numpy as np
from typer.testing import CliRunner

from alembert.cli import app
from alembert.cli.demo import write
from alembert.cli.scenes import SCENES


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


def test_list():
    text = CliRunner().invoke(app, ["demo", "--list"]).stdout
    assert all(name in text for name in SCENES)


def test_one_page_that_needs_nothing_else(tmp_path):
    path = write([SCENES["satellite"]()], tmp_path / "new" / "index.html")
    text = path.read_text(encoding="utf-8")
    assert "A satellite turns by its wheels" in text
    assert "src=" not in text.partition("<script")[0]
    assert path.stat().st_size < 5e6
