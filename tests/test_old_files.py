"""Files that Alembert 0.1 wrote are read: models, runs that go on, studies (tests/data/version_1).

Never write these files again with a newer program: add a folder where a format changes.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest

import alembert as al
from alembert.simulate import load_run
from alembert.study.run import load_study

OLD = Path(__file__).parent / "data" / "version_1"


def test_models():
    model = al.load(OLD / "crane.toml")
    assert model == al.load(OLD / "crane.yaml")
    assert (model.nq, model.nv) == (13, 11)
    assert [loop.name for loop in model.loops] == ["shackle"]
    assert model.parameter_values["mass"] == 2.0


def test_a_model_is_written_as_it_was(tmp_path):
    """The format has grown; what a model does not use is not written, so that old programs read it too."""
    al.save(al.load(OLD / "crane.toml"), tmp_path / "again.toml")
    assert (tmp_path / "again.toml").read_text() == (OLD / "crane.toml").read_text()


def test_runs_go_on():
    pytest.importorskip("xarray")
    run = load_run(OLD / "crane.nc")
    assert run.model == al.load(OLD / "crane.toml")
    longer = run.resume(0.01)
    fresh = al.simulate(run.model, run.q[0], run.v[0], duration=0.21, interval=0.05)
    # both keep 1e-9 a step, in other steps
    np.testing.assert_allclose(longer.q[-1], fresh.q[-1], atol=1e-7)


def test_studies(tmp_path):
    for name in ("study.toml", "model.toml"):
        shutil.copy(OLD / name, tmp_path / name)
    assert load_study(tmp_path / "study.toml").name == "The acrobot, upright"
