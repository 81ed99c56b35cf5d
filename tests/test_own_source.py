"""Whether Alembert's own files are those that a kernel in the cache was made with."""

import os
import time

import pytest

from alembert import own_source


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Files in place of Alembert's, an hour old."""
    for name in ("__init__.py", "sweeps/step.py", "sweeps/tree.py", "view/page.py", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# {name}\n")
        os.utime(path, (time.time() - 3600,) * 2)
    monkeypatch.setattr(own_source, "_ROOT", str(tmp_path))
    return tmp_path


def content():
    return own_source.content.__wrapped__()


def test_content_is_that_of_the_files_that_make_kernels(package):
    before = content()
    assert content() == before
    for name, counts in (
        ("sweeps/step.py", True),
        ("__init__.py", True),
        ("view/page.py", False),
        ("notes.txt", False),
    ):
        path = package / name
        kept = path.read_text()
        path.write_text("# other\n")
        assert (content() != before) == counts, name
        path.write_text(kept)
    assert content() == before


def test_names_count_too(package):
    before = content()
    (package / "sweeps/step.py").rename(package / "sweeps/stride.py")
    assert content() != before


def test_where_one_file_ends_and_the_next_begins_counts(package):
    before = content()
    step, tree = package / "sweeps/step.py", package / "sweeps/tree.py"
    joined = step.read_text() + "sweeps/tree.py" + tree.read_text()
    step.write_text(joined)
    tree.unlink()
    assert content() != before


def test_an_edit_shows_in_the_state_even_with_the_old_size_and_time(package):
    """What Python itself would not notice: it would run the old bytecode."""
    path = package / "sweeps/step.py"
    before, times = own_source.look(), path.stat()
    assert own_source.look() == before
    time.sleep(0.02)  # the clock of the file system ticks every few milliseconds
    path.write_text("# sweeps/step.pi\n"[: times.st_size])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (times.st_size, times.st_mtime_ns)
    assert own_source.look().text != before.text


def test_new_and_lost_files_show_in_the_state(package):
    before = own_source.look().text
    (package / "sweeps/more.py").write_text("")
    more = own_source.look().text
    (package / "sweeps/more.py").unlink()
    (package / "sweeps/tree.py").unlink()
    assert len({before, more, own_source.look().text}) == 3


def test_young_files_are_not_settled(package, monkeypatch):
    assert not own_source.look().settled  # they were made just now, whatever their times say
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + 10 * 10**9)
    assert own_source.look().settled


def test_files_that_are_younger_than_the_process_have_changed(package, monkeypatch):
    assert own_source.look().changed
    monkeypatch.setattr(own_source, "IMPORTED", time.time_ns() + 10**9)
    assert not own_source.look().changed


def test_the_package_itself():
    assert own_source.state().text == own_source.look().text
    names = [path for path, _ in own_source._files(own_source._ROOT)]
    assert {"own_source.py", "engine/link.py", "joints/revolute.py", "simulate/ensembles/__init__.py"} <= set(
        names
    )
    assert not any("__pycache__" in name or name.startswith("verify/") for name in names)
