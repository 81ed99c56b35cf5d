"""Files to begin with: each runs as it is, and no file is written over."""

import pytest
from typer.testing import CliRunner

import alembert as al
from alembert.cli import app
from alembert.study.models import TEMPLATES, create, names
from alembert.study.run import load_study, run_study


@pytest.mark.parametrize("name", TEMPLATES)
def test_projects_run_as_they_are(name, tmp_path):
    pytest.importorskip("matplotlib")
    model, study = create(name, tmp_path)
    assert al.load(model).name == name
    done = run_study(load_study(study))
    assert done.outcome.ok
    assert done.files["save"].stat().st_size > 0
    for path in (model, study):
        assert "#" in path.read_text(encoding="utf-8")


def test_tasks_in_comments_run_too(tmp_path):
    """What a comment offers is not to be out of date."""
    _, study = create("pendulum", tmp_path)
    text = study.read_text(encoding="utf-8")
    head, _, rest = text.partition("[task]")
    commented = [line.removeprefix("# ") for line in rest.partition("# Other tasks")[2].splitlines()[1:]]
    offered = "\n".join(commented).replace("#", "").split("[task]")[1:]
    assert len(offered) == 2
    for task in offered:
        task = task.replace("members = 1000", "members = 4").replace("the linear", "# the linear")
        lines = [line for line in task.splitlines() if "=" in line]
        path = tmp_path / "other.toml"
        path.write_text("\n".join([head, "[task]", *lines]), encoding="utf-8")
        assert run_study(load_study(path)).outcome.ok


@pytest.mark.parametrize("name", [name for name in names() if name not in TEMPLATES])
def test_models_of_the_library_too(name, tmp_path):
    """They load; running all of them is for those who have the time."""
    model, study = create(name, tmp_path)
    assert al.load(model) == al.library.make(name)
    load_study(study)


def test_the_arm_is_in_balance(tmp_path):
    """The efforts that its study states are those of the equilibrium."""
    model, study = create("arm", tmp_path)
    task = load_study(study).task
    q, tau = task.coordinates(al.load(model)), task.speeds(al.load(model), "effort")
    assert al.load(model).gravity_forces(q) == pytest.approx(tau, abs=1e-3)


def test_refusals(tmp_path):
    create("pendulum", tmp_path)
    with pytest.raises(
        al.FileError, match=r"model\.toml: is there already; choose another folder, or --force"
    ):
        create("acrobot", tmp_path)
    create("acrobot", tmp_path, replace=True)
    assert al.load(tmp_path / "model.toml").name == "acrobot"
    with pytest.raises(al.FileError, match="cannot be written"):
        create("acrobot", tmp_path / "model.toml" / "below")
    listed = CliRunner().invoke(app, ["new", "--list"]).stdout
    assert all(name in listed for name in names())
