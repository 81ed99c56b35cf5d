"""Numbers of flexible bodies in files beside the model's: exact, and refused when missing, changed or odd."""

import dataclasses
import io

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, FileError
from alembert.model.io import native


def three_bodies() -> al.Model:
    """A beam, a body whose nodes have masses, and one with formulas."""
    builder = al.ModelBuilder("arm", gravity=(0, 0, 0))
    boom = al.flexible.beam(1.0, 1.0, EI_z=1.0, bending_y=2, EI_y=3.0, bending_z=1, damping_ratio=0.01)
    builder.body("boom", boom, joint=al.Revolute(), joint_name="pin")
    rock = al.flexible.random_particles(np.random.default_rng(0), modes=3, points=9)
    builder.body("odd one", rock, joint=al.Fixed(), joint_name="bolt", parent="boom", node="tip")
    rho = builder.parameter("rho", 2.0)
    wire = al.flexible.beam(1.0, rho, EI_z=1.0, bending_y=1)
    builder.body("wire", wire, joint=al.Fixed(), joint_name="clamp", parent="boom", node="0.5")
    return builder.build()


@pytest.fixture
def model():
    return three_bodies()


@pytest.mark.parametrize("suffix", ["toml", "yaml"])
def test_models_with_side_files_come_back_exactly(tmp_path, model, suffix):
    path = tmp_path / f"arm.{suffix}"
    al.save(model, path, side_files=True)
    assert {x.name for x in tmp_path.iterdir()} == {"arm.1.npz", "arm.boom.npz", path.name}
    assert al.load(path) == model
    before = path.read_bytes()
    al.save(al.load(path), path, side_files=True)
    assert path.read_bytes() == before  # the same numbers have the same hash
    al.save(model, tmp_path / f"inline.{suffix}")
    assert al.load(tmp_path / f"inline.{suffix}") == model


def test_nodes_may_differ_in_what_they_have(tmp_path):
    boom = al.flexible.beam(1.0, 1.0, EI_z=1.0, bending_y=1)
    first, *others = boom.nodes
    bare = dataclasses.replace(first, loads=None, beyond=None)
    builder = al.ModelBuilder("arm")
    builder.body("boom", dataclasses.replace(boom, nodes=(bare, *others)), joint=al.Revolute())
    al.save(builder.build(), tmp_path / "a.toml", side_files=True)
    assert al.load(tmp_path / "a.toml") == builder.build()


def refused(path) -> str:
    with pytest.raises(FileError) as found:
        al.load(path)
    return str(found.value)


def test_files_that_are_missing_or_changed_are_named(tmp_path, model):
    path, side = tmp_path / "arm.toml", tmp_path / "arm.boom.npz"
    al.save(model, path, side_files=True)
    content = side.read_bytes()
    side.write_bytes(content[:-1] + b"x")
    message = refused(path)
    assert message.startswith(f"{path}:")
    assert "bodies.boom.flexible.file" in message
    assert "has changed since the model was written: its sha256 is" in message
    side.unlink()
    assert f"{side}: cannot be read" in refused(path)
    side.write_bytes(content)
    assert al.load(path) == model


def rewritten(tmp_path, model, change=None, *, content=None, text=lambda s: s):
    """The message for a side file with other arrays (or bytes), whose hash the model's file knows."""
    path, side = tmp_path / "arm.toml", tmp_path / "arm.boom.npz"
    al.save(model, path, side_files=True)
    old = native.side_file.digest(side.read_bytes())
    if change is not None:
        with np.load(side) as archive:
            arrays = change({name: archive[name] for name in archive.files})
        packed = io.BytesIO()
        np.savez(packed, **arrays)
        content = packed.getvalue()
    if content is not None:
        side.write_bytes(content)
    path.write_text(text(path.read_text().replace(old, native.side_file.digest(side.read_bytes()))))
    return refused(path)


def without(name):
    return lambda arrays: {key: value for key, value in arrays.items() if key != name}


def with_one(name, value):
    return lambda arrays: arrays | {name: value(arrays.get(name))}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("mass"), "has no array 'mass'"),
        (without("nodes.shapes"), "node 'root' has no shapes"),
        (without("nodes.beyond.mass"), "node 'root' has no beyond.mass"),
        (without("nodes.name"), "'nodes.position' has 11 entries for 0 of 0 nodes"),
        (with_one("weight", lambda _: np.zeros(3)), "array 'weight' is no field of a flexible body"),
        (with_one("mass", lambda _: np.array(np.nan)), "array 'mass' has a number at [] that is not finite"),
        (with_one("mass", lambda _: np.array(1)), "array 'mass' is of type int64, expected floats"),
        (
            with_one("nodes.mass.of", lambda _: np.zeros(2)),
            "'nodes.mass.of' is of type float64, expected whole numbers",
        ),
        (
            with_one("nodes.name", lambda x: np.arange(len(x))),
            "'nodes.name' is of type int64, expected texts",
        ),
        (
            with_one("nodes.loads.of", lambda _: np.array([0, 99])),
            "'nodes.loads' has 11 entries for 2 of 11 nodes",
        ),
        (with_one("stiffness", lambda x: x[:2]), "stiffness has 2 entries, expected 3"),
    ],
)
def test_arrays_that_are_no_flexible_body(tmp_path, model, change, message):
    assert message in rewritten(tmp_path, model, change)


def test_contents_that_are_no_arrays(tmp_path, model, monkeypatch):
    assert "is no readable .npz file of NumPy" in rewritten(tmp_path, model, content=b"PK nothing")
    packed = io.BytesIO()
    np.savez(packed, mass=np.array({"a": 1}, dtype=object))
    assert "is no readable .npz file" in rewritten(tmp_path, model, content=packed.getvalue())  # no pickles
    monkeypatch.setattr(native.side_file, "LARGEST", 20_000)
    packed = io.BytesIO()
    np.savez_compressed(packed, mass=np.zeros(10_000))
    assert "its arrays would take 80128 bytes; at most 20000 are read" in rewritten(
        tmp_path, model, content=packed.getvalue()
    )


def test_tables_that_name_a_side_file(tmp_path, model):
    def message(old, new):
        return rewritten(tmp_path, model, text=lambda s: s.replace(old, new, 1))

    al.save(model, tmp_path / "arm.toml", side_files=True)
    digest = native.side_file.digest((tmp_path / "arm.boom.npz").read_bytes())
    assert f'add sha256 = "{digest}"' in message(f'sha256 = "{digest}"\n', "")
    assert "sha256 is 5, expected a text" in message(f'sha256 = "{digest}"', "sha256 = 5")
    names = 'modes = ["bending_y_1", "bending_y_2", "bending_z_1"]\n'
    assert "has no modes, the names of the modal coordinates" in message(names, "")
    assert "has both file and mass; the file gives all numbers" in message(names, names + "mass = 1.0\n")
    assert "unknown key 'hash'" in message("sha256", "hash")
    with pytest.raises(FileError, match="names a side file, which is looked for beside the model's"):
        native.loads((tmp_path / "arm.toml").read_text())


def test_only_the_own_format_has_side_files(tmp_path, model):
    with pytest.raises(ArgumentError, match="side_files are of Alembert's own format"):
        al.save(model, tmp_path / "arm.urdf", side_files=True)
