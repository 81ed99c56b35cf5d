"""Whether Alembert's own files are those that a kernel in the cache was made with."""

import pytest

from alembert.meaning import AT_IMPORT, digest


@pytest.fixture
def package(tmp_path):
    """Files in place of Alembert's."""
    for name in ("__init__.py", "sweeps/step.py", "sweeps/tree.py", "view/page.py", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# {name}\n")
    return tmp_path


def test_content_is_that_of_the_files_that_make_kernels(package):
    before = digest(package)
    assert digest(package) == before != AT_IMPORT
    for name, counts in (
        ("sweeps/step.py", True),
        ("__init__.py", True),
        ("view/page.py", False),
        ("notes.txt", False),
    ):
        path = package / name
        kept = path.read_text()
        path.write_text("# other\n")
        assert (digest(package) != before) == counts, name
        path.write_text(kept)
    assert digest(package) == before


def test_names_count_too(package):
    before = digest(package)
    (package / "sweeps/step.py").rename(package / "sweeps/stride.py")
    assert digest(package) != before


def test_where_one_file_ends_and_the_next_begins_counts(package):
    before = digest(package)
    step, tree = package / "sweeps/step.py", package / "sweeps/tree.py"
    joined = step.read_text() + "sweeps/tree.py" + tree.read_text()
    step.write_text(joined)
    tree.unlink()
    assert digest(package) != before
