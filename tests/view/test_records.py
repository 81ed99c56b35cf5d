"""Stored motions come back, with their model; films have the frames that were asked for."""

import sys

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, FileError, UnsupportedError
from alembert.view import film, read_motion, write_film
from alembert.view.window import Shown


@pytest.fixture(scope="module")
def run():
    return al.simulate(al.library.acrobot(), [2.0, 0.5], [0.0, 0.0], duration=0.4, efforts=[0.0, 1.0])


def test_netcdf_holds_its_model(run, tmp_path):
    pytest.importorskip("xarray")
    motion = read_motion(run.save(tmp_path / "run.nc"))
    assert motion.model == run.model
    np.testing.assert_array_equal(motion.q, run.q)
    np.testing.assert_array_equal(motion.efforts, run.efforts)
    np.testing.assert_allclose(motion.series["energy [J]"]["total"], run.energy, rtol=1e-12)
    assert isinstance(al.view(tmp_path / "run.nc", inline=True), Shown)


def test_csv_with_its_model(run, tmp_path):
    path = run.save(tmp_path / "run.csv")
    motion = read_motion(path, run.model)
    np.testing.assert_array_equal(motion.time, run.time)
    np.testing.assert_array_equal(motion.q, run.q)
    with pytest.raises(ArgumentError, match=r"run\.csv holds records without a model"):
        read_motion(path)
    with pytest.raises(FileError, match=r"has no column 'q\.pivot'; there is time"):
        read_motion(path, al.library.pendulum())


def test_bad_records(tmp_path):
    model = al.library.pendulum()
    with pytest.raises(ArgumentError, match=r"has the suffix '\.txt', expected one of \.nc, \.csv"):
        read_motion(tmp_path / "a.txt")
    with pytest.raises(FileError, match="No such file"):
        read_motion(tmp_path / "a.csv", model)
    path = tmp_path / "b.csv"
    for text, message in (
        ("time,q.pivot\n1,x\n", ":2: could not convert string to float: 'x'"),
        ("time,q.pivot\n1\n", ":2: has 1 values, expected 2"),
        ("t,q.pivot\n1,2\n", "has no column 'time'"),
        ("time,q.pivot\n", "has no records below the names of the columns"),
        ("time,q.pivot\n1,2\n2,\n", r"'q\.pivot' of record 2 is nan, expected a number"),
    ):
        path.write_text(text)
        with pytest.raises(FileError, match=message):
            read_motion(path, model)
    path.write_text("time,q.pivot,a.pivot\n1,2,nan\n")  # accelerations are not shown
    np.testing.assert_array_equal(read_motion(path, model).q, [[2.0]])
    xarray = pytest.importorskip("xarray")
    (tmp_path / "c.nc").write_bytes(b"nothing")
    with pytest.raises(FileError, match="is no readable netCDF file"):
        read_motion(tmp_path / "c.nc")
    xarray.Dataset({"x": ("time", [1.0])}).to_netcdf(tmp_path / "d.nc")
    with pytest.raises(ArgumentError, match="holds records without a model"):
        read_motion(tmp_path / "d.nc")
    with pytest.raises(FileError, match="has no variable 'q'"):
        read_motion(tmp_path / "d.nc", model)
    xarray.Dataset({"q": (("time", "k"), [[1.0, 2.0]])}, {"time": [0.0]}).to_netcdf(tmp_path / "e.nc")
    with pytest.raises(ArgumentError, match="has 2 coordinates, the model 'pendulum' 1"):
        read_motion(tmp_path / "e.nc", model)


def test_a_film_as_gif(run, tmp_path):
    image = pytest.importorskip("PIL.Image")
    if film.find() is None:
        pytest.skip("films are drawn by Chromium or Chrome, and none of them is installed")
    path = run.to_film(tmp_path / "run.gif", size=(160, 120), rate=10.0)
    with image.open(path) as picture:
        assert picture.size == (160, 120)
        assert picture.n_frames == 5
        first = np.asarray(picture.convert("RGB"), dtype=int)
        picture.seek(4)
        last = np.asarray(picture.convert("RGB"), dtype=int)
    assert np.max(np.abs(last - first)) > 50  # the model has moved
    assert first.std() > 5  # and is not a blank


def test_film_messages(run, tmp_path, monkeypatch):
    path = tmp_path / "run.gif"
    for options, message in (
        ({"size": (0, 10)}, r"size \(0, 10\), rate 25.0 and speed 1.0 must be positive"),
        ({"rate": 1e6}, "400001 frames are more than 3000; lower the rate"),
        ({"theme": "pink"}, "theme is 'pink'"),
        ({"show": ("ghost",)}, r"show: there is no 'ghost'; did you mean 'ghosts'\?"),
    ):
        with pytest.raises(ArgumentError, match=message):
            write_film(path, run, **options)
    with pytest.raises(
        ArgumentError, match=r"run.avi ends with '.avi', expected one of .gif, .webp, .mp4, .webm"
    ):
        write_film(tmp_path / "run.avi", run)
    with pytest.raises(ArgumentError, match="the model 'acrobot' does not move by itself; simulate it"):
        write_film(path, run.model)
    with pytest.raises(FileError, match="No such directory"):
        write_film(tmp_path / "none" / "run.gif", run)
    monkeypatch.setattr(film.shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(UnsupportedError, match=r"\.mp4 needs ffmpeg, which is not on the path"):
        write_film(tmp_path / "run.mp4", run)
    with pytest.raises(UnsupportedError, match="there is no browser to draw with; install one of chromium"):
        write_film(path, run)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UnsupportedError, match=r'\.gif needs Pillow; pip install "alembert\[view\]"'):
        write_film(path, run)
