"""`alembert simulate`."""

import numpy as np
import pytest
from typer.testing import CliRunner

import alembert as al
from alembert.cli import app


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "pendulum.toml"
    al.save(al.library.pendulum(), path)
    return path


def run(*arguments, code=0):
    result = CliRunner().invoke(app, ["simulate", *(str(argument) for argument in arguments)])
    assert result.exit_code == code, result.output
    return result


def test_simulate(file, tmp_path):
    pytest.importorskip("matplotlib")
    plot, records = tmp_path / "out.png", tmp_path / "run.csv"
    result = run(
        file, "--time", 10, "--position", "pivot=-1.5707963267948966", "--plot", plot, "--save", records
    )
    assert "dop853: no step is given" in result.stdout
    assert "energy kept to" in result.stdout
    assert plot.stat().st_size > 5000
    table = np.loadtxt(records, delimiter=",", skiprows=1)
    assert table[-1, 0] == 10.0
    assert np.sin(table[-1, 1]) == pytest.approx(-0.275087462576, abs=1e-7)


def test_netcdf(file, tmp_path):
    xarray = pytest.importorskip("xarray")
    run(
        file,
        "--duration",
        1,
        "--step",
        0.01,
        "--speed",
        "pivot=1",
        "--effort",
        "pivot=0.5",
        "--save",
        tmp_path / "run.nc",
    )
    with xarray.open_dataset(tmp_path / "run.nc") as data:
        assert data.q.shape == (101, 1)
        assert data.tau.values[0, 0] == 0.5


def test_wrong_values(file):
    message = (
        "--speed pivot: is 'a', expected a number or a formula of numbers such as -pi/2: 'a' is no number"
    )
    assert message in run(file, "--speed", "pivot=a", code=2).output
    assert "has no joint 'pivo'" in run(file, "--position", "pivo=1", code=2).output
