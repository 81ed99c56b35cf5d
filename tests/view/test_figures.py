"""Plots: what they show, labelled with names and units, told apart without colour."""

import sys
from dataclasses import dataclass

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, FileError, UnsupportedError
from alembert.view import figures, plot_convergence

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def run():
    return al.simulate(al.library.acrobot(), [2.0, 0.5], [0.0, 0.0], duration=0.3, efforts=[0.0, 1.0])


def labels(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


def test_a_run_by_quantity(run, tmp_path):
    figure = run.plot(path=tmp_path / "run.png")
    assert [axis.get_ylabel() for axis in figure.axes] == ["angles [rad]", "rates [rad/s]", "torques [N m]"]
    assert labels(figure.axes[0]) == list(run.model.coordinate_names)
    assert labels(figure.axes[2]) == ["elbow"]
    figure = run.plot(show=["energy", "momentum"])
    assert [axis.get_ylabel() for axis in figure.axes] == [
        "energy [J]",
        "angular momentum [N m s]",
        "linear momentum [N s]",
    ]
    total = next(line for line in figure.axes[0].lines if line.get_label() == "total")
    np.testing.assert_array_equal(total.get_ydata(), run.energy)
    assert figure.axes[-1].get_xlabel() == "time [s]"
    assert len(run.plot("elbow", show="coordinates").axes[0].lines) == 1


def test_constraint_drift():
    builder = al.ModelBuilder("pair")
    for name in "ab":
        builder.body(
            name, al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)), joint=al.Revolute((0, 1, 0)), joint_name=name
        )
    model = builder.coupling("geared", "b", ("a",), (2.0,)).build()
    run = al.simulate(model, [0.1, 0.2], duration=0.1)
    (axis,) = run.plot(show="constraints").axes
    assert axis.get_ylabel() == "constraint drift [m, rad]"
    assert labels(axis) == ["coupling 'geared'"]
    assert "constraint drift [m, rad]" in run.motion().series or not np.any(axis.lines[0].get_ydata())


def test_lines_are_told_apart_without_colour():
    seen = set()
    for k in range(24):
        style = figures.style(k)
        seen.add((str(style["linestyle"]), style.get("marker")))
    assert len(seen) == 24


def test_names_are_not_mathematics(tmp_path):
    builder = al.ModelBuilder("$x_{")
    builder.body("a", al.Inertia.point(1.0, (1, 0, 0)), joint=al.Revolute((0, 1, 0)), joint_name="_$q_{")
    run = al.simulate(builder.build(), [0.1], duration=0.05)
    figure = run.plot(path=tmp_path / "run.png")
    assert len(labels(figure.axes[0])) == 1
    problem = al.optimal.Problem(run.model, 1.0, start={"q": [0.0], "v": 0}, end={"q": [0.1]})
    figure = problem.solve(4).plot(tmp_path / "solution.png")
    assert len(labels(figure.axes[0])) == 1
    phases = al.optimal.Phases({"_$1": problem, "$2": problem.replace(start=None)})
    figure = phases.solve(4).plot(tmp_path / "phases.png")
    assert len(labels(figure.axes[0])) == 1
    beside = al.compare({"time": [0, 1], "_$x_{": [1, 2]}, {"time": [0, 1], "_$x_{": [1, 3]})
    beside.plot(path=tmp_path / "beside.png")


def test_every_figure_says_where_it_cannot_be_written(tmp_path):
    beside = al.compare({"time": [0, 1], "x": [1, 2]}, {"time": [0, 1], "x": [1, 3]})
    speeds = al.flexible.Campbell(
        np.array([0.0, 1.0]), np.full((2, 1), 1j), np.ones((2, 1, 1)), np.ones((2, 1))
    )
    for shown in (beside, speeds):
        with pytest.raises(FileError, match="cannot be written"):
            shown.plot(path=tmp_path / "none" / "x.png")
        with pytest.raises(ArgumentError, match=r"x\.foo: Format 'foo' is not supported"):
            shown.plot(path=tmp_path / "x.foo")


@pytest.mark.parametrize("kind", ["bode", "poles", "modes"])
def test_linear_models(kind, tmp_path):
    linear = al.linearize(al.library.acrobot(), [0.3, 0.2])
    figure = linear.plot(kind, path=tmp_path / f"{kind}.png")
    assert (tmp_path / f"{kind}.png").stat().st_size > 5000
    if kind == "bode":
        shown = [axis.get_ylabel() for axis in figure.axes]
        assert shown == ["magnitude [dB of rad]", "magnitude [dB of rad/s]", "phase [deg]"]
        assert figure.axes[-1].get_xlabel() == "frequency [rad/s]"
        assert [*labels(figure.axes[0]), *labels(figure.axes[1])] == list(linear.output_names)
        line = figure.axes[0].lines[0]
        response = linear.frequency_response(line.get_xdata())
        np.testing.assert_allclose(line.get_ydata(), response.magnitude_db[:, 0, 0])
    elif kind == "poles":
        drawn = np.concatenate(
            [np.array(x.get_xdata()) + 1j * np.array(x.get_ydata()) for x in figure.axes[0].lines[2:]]
        )
        np.testing.assert_allclose(np.sort_complex(drawn.ravel()), linear.poles())
    else:
        assert len(figure.axes) == len(linear.modes().modes)


def test_root_locus(tmp_path):
    linear = al.linearize(al.library.acrobot(), [0.3, 0.2])
    locus = linear.root_locus(np.ones((1, 4)))
    figure = locus.plot(path=tmp_path / "locus.png")
    assert labels(figure.axes[0])[:2] == ["poles at k = 0", "poles at k = 1000"]
    response = linear.frequency_response([1.0, 2.0])
    assert len(response.plot(outputs=linear.output_names[:2]).axes[0].lines) == 2


@dataclass
class Record:
    cost: float
    infeasibility: float
    step: float
    name: str = "x"


def test_convergence(tmp_path):
    log = [Record(10.0 / (k + 1), 10.0**-k, 0.5**k) for k in range(8)]
    figure = plot_convergence(log, tolerances={"infeasibility": 1e-6}, path=tmp_path / "c.png")
    assert [axis.get_ylabel() for axis in figure.axes] == ["cost", "size"]
    assert labels(figure.axes[1]) == ["infeasibility", "step"]
    assert figure.axes[1].get_yscale() == "log"
    mapped = plot_convergence(
        [{"iteration": 5, "infeasibility": 0.0}, {"iteration": 6, "infeasibility": 1.0}]
    )
    assert len(mapped.axes) == 1
    assert list(mapped.axes[0].lines[0].get_xdata()) == [5, 6]
    with pytest.raises(ArgumentError, match="log is empty"):
        plot_convergence([])
    with pytest.raises(ArgumentError, match="record 0 is a int, expected a mapping or a record with fields"):
        plot_convergence([1])


def test_messages(run, tmp_path, monkeypatch):
    linear = al.linearize(al.library.acrobot(), [0.3, 0.2])
    with pytest.raises(ArgumentError, match=r"plot: nothing is called 'energie'; did you mean 'energy'\?"):
        run.plot(show="energie")
    with pytest.raises(ArgumentError, match="has no loops and no couplings, so no constraint drift"):
        run.plot(show="constraints")
    with pytest.raises(ArgumentError, match=r"there is no plot 'bod'; did you mean 'bode'\?"):
        linear.plot("bod")
    with pytest.raises(ArgumentError, match="outputs: there is no 'x'"):
        linear.plot(outputs="x")
    with pytest.raises(ArgumentError, match="inputs are for the plot 'bode', this is 'poles'"):
        linear.plot("poles", inputs="x")
    with pytest.raises(ArgumentError, match="plot: a Bode diagram needs an input and an output"):
        linear.plot(inputs=[])
    with pytest.raises(ArgumentError, match=r"plot: .*run\.xyz"):
        run.plot(path=tmp_path / "run.xyz")
    with pytest.raises(FileError, match="cannot be written"):
        run.plot(path=tmp_path / "none" / "run.png")
    still = al.ModelBuilder("still")
    still.body("a", al.Inertia.point(1.0), joint=al.Fixed())
    fixed = al.linearize(still.build(), [])
    with pytest.raises(ArgumentError, match="the model has no modes"):
        fixed.plot("modes")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UnsupportedError, match=r"plot: matplotlib is not installed; pip install matplotlib"):
        run.plot()


def test_ensembles_have_bands(tmp_path):
    def vary(rng):
        return {"q0": rng.normal([0.1, 0.2], 0.05)}

    found = al.ensemble(al.library.two_link(), vary, members=12, duration=0.5, step=0.01, seed=1)
    figure = found.plot("elbow", path=tmp_path / "bands.png")
    assert [axis.get_ylabel() for axis in figure.axes] == ["angles [rad]", "rates [rad/s]"]
    low, median, high = found.quantiles([0.05, 0.5, 0.95])[0][:, :, 1]
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), median)
    band = figure.axes[0].collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(min(low))
    assert band[:, 1].max() == pytest.approx(max(high))
    with pytest.raises(ArgumentError, match="probability is 2, expected a number between 0 and 1"):
        found.plot(probability=2)
    with pytest.raises(ArgumentError, match="plot: no joint 'knee'"):
        found.plot("knee")
