"""Results that were damaged, or made to harm: a sentence with the file's name, whatever the damage."""

import zlib

import numpy as np
import pytest

import alembert as al
from alembert import AlembertError, FileError
from alembert.model.io import netcdf
from alembert.simulate import load_run
from alembert.view import read_motion

xarray = pytest.importorskip("xarray")
pytest.importorskip("h5netcdf")
SEEDS = 40


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.nc"
    model = al.library.two_link()
    al.simulate(model, [0.3, 0.2], duration=0.2, step=0.02, integrator="rk4").save(path)
    return path.read_bytes()


def damaged(content: bytes, seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    data = bytearray(content)
    if seed % 4 == 0:
        return bytes(data[: rng.integers(0, len(data))])
    for _ in range(int(rng.integers(1, 200))):
        data[rng.integers(0, len(data))] = rng.integers(0, 256)
    if seed % 4 == 1:
        start, size = rng.integers(0, len(data)), int(rng.integers(1, 500))
        data[start : start + size] = bytes(size)
    return bytes(data)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_damage_is_told_with_the_file(seed, stored, tmp_path):
    path = tmp_path / "run.nc"
    path.write_bytes(damaged(stored, seed))
    for read in (load_run, read_motion):
        try:
            read(path)
        except AlembertError as error:
            assert str(path) in str(error)  # noqa: PT017  (damage may leave the content as it was)


def _changed(stored, tmp_path, change):
    path = tmp_path / "run.nc"
    path.write_bytes(stored)
    with xarray.open_dataset(path) as file:
        data = file.load()
    other = tmp_path / "other.nc"
    change(data).to_netcdf(other)
    return other


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.assign(restart=("b", np.frombuffer(zlib.compress(b"[1, 2"), np.uint8))),
        lambda data: data.assign(restart=("b", np.frombuffer(zlib.compress(b"[1, 2]"), np.uint8))),
        lambda data: data.assign(restart=("b", np.frombuffer(zlib.compress(b'{"version": 1}'), np.uint8))),
        lambda data: data.assign(restart=("b", np.array(["x", "y"], dtype=object))),
        lambda data: data.isel({data["q"].dims[-1]: [0]}),
        lambda data: data.drop_vars("v"),
        lambda data: data.assign_attrs(model_toml="no model"),
        lambda data: data.assign_attrs(model_toml=3),
    ],
)
def test_wrong_content_is_told_with_the_file(change, stored, tmp_path):
    path = _changed(stored, tmp_path, change)
    with pytest.raises(AlembertError, match=r"other\.nc"):
        load_run(path)


def test_compressed_text_without_end_is_not_unpacked(stored, tmp_path, monkeypatch):
    monkeypatch.setattr("alembert.simulate.restart.LARGEST_TEXT", 1_000_000)
    bomb = np.frombuffer(zlib.compress(b" " * 50_000_000), np.uint8)
    path = _changed(stored, tmp_path, lambda data: data.assign(restart=("b", bomb)))
    with pytest.raises(FileError, match=r"its restart data are damaged: .* more than 1000000 bytes"):
        load_run(path)


def test_variables_without_end_are_not_read(stored, tmp_path, monkeypatch):
    monkeypatch.setattr(netcdf, "LARGEST", 1000)
    path = tmp_path / "run.nc"
    path.write_bytes(stored)
    with pytest.raises(FileError, match=r"run\.nc: would take \d+ bytes; at most 1000 are read"):
        load_run(path)


def test_folders_and_missing_files(tmp_path):
    with pytest.raises(FileError, match=r"^[^:]*: is not a regular file$"):
        load_run(tmp_path)
    with pytest.raises(FileError, match=r"none\.nc: cannot be read: No such file or directory"):
        load_run(tmp_path / "none.nc")


def test_one_changed_bit_is_noticed(stored, tmp_path):
    """Of a number it would go unnoticed otherwise, and some damage keeps HDF5 from returning."""
    path = tmp_path / "run.nc"
    for at in range(0, len(stored), len(stored) // 50):
        data = bytearray(stored)
        data[at] ^= 1
        path.write_bytes(data)
        with pytest.raises(FileError, match=r"run\.nc: "):
            load_run(path)
    path.write_bytes(stored)
    assert len(load_run(path).time) == 11
    with xarray.open_dataset(path) as file:  # others read it as ever
        assert "q" in file
