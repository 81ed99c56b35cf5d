"""Whether Alembert's own files are those that a kernel in the cache was made with."""

import os

import pytest

from alembert import own_source


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Files in place of Alembert's."""
    for name in ("__init__.py", "sweeps/step.py", "sweeps/tree.py", "view/page.py", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# {name}\n")
    monkeypatch.setattr(own_source, "_ROOT", str(tmp_path))
    return tmp_path


def test_content_is_that_of_the_files_that_make_kernels(package):
    before = own_source.digest()
    assert own_source.digest() == before
    for name, counts in (
        ("sweeps/step.py", True),
        ("__init__.py", True),
        ("view/page.py", False),
        ("notes.txt", False),
    ):
        path = package / name
        kept = path.read_text()
        path.write_text("# other\n")
        assert (own_source.digest() != before) == counts, name
        path.write_text(kept)
    assert own_source.digest() == before


def test_names_count_too(package):
    before = own_source.digest()
    (package / "sweeps/step.py").rename(package / "sweeps/stride.py")
    assert own_source.digest() != before


def test_where_one_file_ends_and_the_next_begins_counts(package):
    before = own_source.digest()
    step, tree = package / "sweeps/step.py", package / "sweeps/tree.py"
    joined = step.read_text() + "sweeps/tree.py" + tree.read_text()
    step.write_text(joined)
    tree.unlink()
    assert own_source.digest() != before


def test_whether_the_source_is_still_that_of_the_import(package, monkeypatch):
    imported = own_source.digest()
    monkeypatch.setattr(own_source, "at_import", lambda: imported)
    path = package / "sweeps/step.py"
    kept = path.read_text()
    assert own_source.unchanged()
    os.utime(path, (0, 0))  # touched only
    assert own_source.unchanged()
    path.write_text(f"{kept}# edited\n")
    assert not own_source.unchanged()
    path.write_text(kept)
    assert own_source.unchanged()


def test_unchanged_files_are_not_read_again(package, monkeypatch):
    imported = own_source.digest()
    monkeypatch.setattr(own_source, "at_import", lambda: imported)
    assert own_source.unchanged()
    monkeypatch.setattr(own_source, "digest", lambda: pytest.fail("read again"))
    assert own_source.unchanged()


def test_the_package_itself():
    names = [path for path, _ in own_source._files(own_source._ROOT)]
    assert {
        "own_source.py",
        "engine/loader.py",
        "joints/revolute.py",
        "simulate/ensembles/__init__.py",
    } <= set(names)
    assert not any("__pycache__" in name or name.startswith("verify/") for name in names)
