"""How things look in notebooks, and what `import alembert` costs."""

import subprocess
import sys

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, UnsupportedError
from alembert.view import figures

HOSTILE = "<img src=x onerror=alert(1)>&\"'"


@pytest.fixture(scope="module")
def model():
    builder = al.ModelBuilder(HOSTILE)
    builder.body(HOSTILE, al.Inertia.point(1.0, (1, 0, 0)), joint=al.Revolute((0, 1, 0)), joint_name=HOSTILE)
    return builder.frame(f"frame {HOSTILE}", HOSTILE, (1, 0, 0)).build()


@pytest.fixture(scope="module")
def run(model):
    return al.simulate(model, [0.5], duration=0.1)


def test_models_and_results_are_shown_and_escaped(model, run):
    linear = al.linearize(model, [0.0])
    for thing in (model, run, linear, linear.modes()):
        text = thing._repr_html_()
        assert "<img src=x" not in text
        assert "&lt;img src=x" in text
    assert "1 degree of freedom" in model._repr_html_()
    assert "energy kept to" in run._repr_html_()
    assert "data:image/png;base64," in run._repr_html_()


def test_other_results_are_shown_and_escaped(model, run):
    pytest.importorskip("matplotlib")
    many = al.ensemble(model, {"q0": [[0.1], [0.2]]}, duration=0.1, step=0.01)
    measured = {"time": run.time, "q": run.q[:, 0] + 0.01}
    compared = al.compare(measured, measured)
    system = al.control.StateSpace(
        [[0.0, 1.0], [-4.0, -0.2]], [[0.0], [1.0]], [[1.0, 0.0]], input_names=[HOSTILE]
    )
    for thing in (many, system, compared):
        text = thing._repr_html_()
        assert "<img src=x" not in text
        assert "&lt;img src=x" in text or thing is not system
    assert "Comparison of 1 signal<" in compared._repr_html_()
    assert "data:image/png;base64," in compared._repr_html_()
    assert "2 members, 0 failed" in many._repr_html_()
    assert "data:image/png;base64," in many._repr_html_()
    many.failures[1] = HOSTILE
    assert "member 1: &lt;img" in many._repr_html_()
    text = system._repr_html_()
    assert "<td" in text
    assert ">0.05</td>" in text  # its damping ratio
    assert ">0.05</td>" in system.sampled(0.1)._repr_html_()


def test_texts_are_texts_in_a_kernel(run, monkeypatch):
    """Where rich believes to be in a notebook, `str` must not display anything itself."""
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    modes = al.linearize(run.model, [0.0]).modes()
    monkeypatch.setenv("FORCE_COLOR", "1")  # as kernels do
    assert "frequency" in modes._repr_html_()
    assert "\x1b" not in modes._repr_html_()


def test_without_matplotlib_the_run_is_shown_without_a_plot(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    text = run._repr_html_()
    assert "data:image" not in text
    assert "energy kept to" in text


def test_long_models_are_cut():
    text = al.library.chain(100)._repr_html_()
    assert "... and 41 more bodies" in text


def test_tables_escape():
    assert figures.table([HOSTILE], [[HOSTILE]]).count("&lt;img") == 2


def test_a_terminal_is_no_notebook():
    assert figures.in_notebook() is False


def test_pandas(run, monkeypatch):
    pandas = pytest.importorskip("pandas")
    frame = al.simulate(al.library.acrobot(), [0.1, 0.2], duration=0.1).to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == [
        "q.shoulder",
        "q.elbow",
        "v.shoulder",
        "v.elbow",
        "tau.shoulder",
        "tau.elbow",
    ]
    assert frame.attrs["units"]["v.elbow"] == "rad/s"
    assert frame.index.name == "time"
    assert frame["q.elbow"].iloc[0] == 0.2
    batch = al.simulate(al.library.pendulum(), [[0.1], [0.2]], duration=0.1, step=0.01)
    with pytest.raises(ArgumentError, match="to_pandas: the run is a batch of motions"):
        batch.to_pandas()
    assert batch.to_xarray().to_dataframe().shape[0] > 0
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        UnsupportedError, match=r'to_pandas: pandas is not installed; pip install "alembert\[data\]"'
    ):
        run.to_pandas()


def test_members_of_a_batch():
    batch = al.simulate(al.library.pendulum(), [[0.1], [0.2]], duration=0.1, step=0.01)
    np.testing.assert_array_equal(batch.motion(1).q, batch.q[1])
    np.testing.assert_array_equal(batch.motion((0,)).q, batch.q[0])
    with pytest.raises(ArgumentError, match=r"motion: member is 2, expected one of a batch of shape \(2,\)"):
        batch.motion(2)


HEAVY = """alembert.engine alembert.simulate alembert.view alembert.linear alembert.cli llvmlite matplotlib
scipy.linalg scipy.optimize scipy.sparse scipy.signal
xarray pandas mujoco control dask sksundae trimesh PIL IPython pydantic typer rich"""


def test_importing_alembert_loads_no_heavy_part():
    """By the graph of imports rather than by a clock: NumPy and CasADi, and nothing else that takes time."""
    code = f"""
import sys, alembert
model = alembert.library.acrobot()
print(*[name for name in {HEAVY.split()!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_pages_need_none_of_the_extras():
    """A page is written with NumPy alone."""
    code = """
import sys
for name in ("matplotlib", "xarray", "pandas", "trimesh", "PIL", "IPython"):
    sys.modules[name] = None
import alembert as al
print(len(al.view(al.library.pendulum(), inline=True).html) > 100000)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
