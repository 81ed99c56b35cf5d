"""Every numbered example runs on its own, in an empty folder."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("[0-9][0-9]_*.py"))
NEEDS: dict[str, str] = {}
"""the optional package that an example needs, by the example's name"""
ELSEWHERE = {
    "01_first_model": "test_examples.py",
    "02_linearise": "linear",
    "03_identify_arm": "identify/test_identification.py",
}
"""examples that other tests run"""
LIMIT = 300  # s; they take some seconds each, on a busy machine many more


@pytest.mark.parametrize("path", [p for p in EXAMPLES if p.stem not in ELSEWHERE], ids=lambda path: path.stem)
def test_example_runs(path, tmp_path):
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem])
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stderr


def test_first_example_leaves_one_page(tmp_path):
    """Self-contained: it asks nothing of a network."""
    script = next(path for path in EXAMPLES if path.stem == "01_first_model")
    folder = tmp_path / "out"
    subprocess.run([sys.executable, str(script), str(folder)], check=True, capture_output=True, timeout=LIMIT)
    (page,) = folder.iterdir()
    text = page.read_text(encoding="utf-8")
    assert "<svg" in text
    assert "http://" not in text
    assert "https://" not in text
    assert "src=" not in text


NOTEBOOK = Path(__file__).parents[1] / "examples" / "first_hour.ipynb"


def test_the_notebook_runs_and_shows_everything(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("anywidget")
    book = nbformat.read(NOTEBOOK, 4)
    nbformat.validate(book)
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    assert all(not cell.outputs for cell in cells)  # results are not kept in the repository
    nbclient.NotebookClient(
        book, timeout=LIMIT, resources={"metadata": {"path": str(tmp_path)}}, kernel_name="python3"
    ).execute()
    widgets = [cell for cell in cells if "al.view.widget" in cell.source]
    for cell in widgets:
        assert "application/vnd.jupyter.widget-view+json" in cell.outputs[0].data
    cells = [cell for cell in cells if cell not in widgets]
    for cell in cells:  # the last line of each, once, as HTML; nothing else is written
        (shown,) = cell.outputs
        assert shown.output_type == "execute_result"
        assert len(shown.data["text/html"]) > 500, cell.source
    titles = "".join(cell.outputs[0].data["text/html"] for cell in cells)
    assert titles.count("<iframe srcdoc=") == 2  # pages that move
    assert titles.count("data:image/png;base64,") == 4  # two runs, a solution, an ensemble
    assert list(tmp_path.iterdir()) == []


def test_there_are_examples():
    assert EXAMPLES
    assert {*NEEDS, *ELSEWHERE} <= {path.stem for path in EXAMPLES}
    assert all((Path(__file__).parent / place).exists() for place in ELSEWHERE.values())
