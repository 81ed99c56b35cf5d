"""Problems that are compiled once, and solved for other starts, ends, parameters and durations."""

import sys

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal import Problem, System, effort, running
from alembert.verify.mechanisms import four_bars, parallelogram

SOLVE = sys.modules["alembert.optimal.solve"]
"""the module; the package has the function under this name"""


def reach(**more):
    ends = {"start": {"q": [-0.5, 0], "v": 0}, "end": {"q": [0.5, 0.3], "v": 0}}
    return Problem(al.library.two_link(), 1.0, **ends | more)


def mass(**more):
    system = System(
        ["x", "v"], ["force"], lambda s: [s.v, s.force / s.m - s.k * s.x], parameters={"m": 1.0, "k": 1.0}
    )
    return Problem(
        system, 1.0, **{"start": {"x": 0, "v": 0}, "end": {"x": 1, "v": 0}, "limits": {"force": 30.0}, **more}
    )


def body():
    """One that turns: its start and end are orientations."""
    builder = al.ModelBuilder("body", gravity=(0, 0, 0))
    builder.body(
        "body", al.Inertia(1.0, (0, 0, 0), (1.0, 0, 2.0, 0, 0, 3.0)), joint=al.Spherical(), joint_name="turn"
    )
    return builder.build()


def turned(angle, axis=(1.0, 0.0, 0.0)):
    return np.array([np.cos(angle / 2), *(np.sin(angle / 2) * np.array(axis))])


def assert_same(found, problem, steps, **options):
    """As the problem gives that has these numbers itself: to the tolerance of 1e-8 of both."""
    other = problem.solve(steps, **options)
    assert found.success
    assert found.cost == pytest.approx(other.cost, rel=1e-7)
    np.testing.assert_allclose(found.x, other.x, atol=1e-6)
    np.testing.assert_allclose(found.controls, other.controls, atol=1e-4)
    assert found.violations() == []
    for name, slope in other.sensitivities().items():
        assert found.sensitivities()[name] == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("transcription", ["dmoc", "midpoint", "hermite-simpson"])
def test_other_starts_and_ends(transcription):
    prepared = reach().prepare(20, transcription=transcription)
    start, end = {"q": [-0.3, 0.2], "v": [0.5, -0.1]}, {"q": [0.6, 0.1], "v": 0}
    found = prepared.solve(start=start, end=end)
    assert_same(found, reach(start=start, end=end), 20, transcription=transcription)
    np.testing.assert_allclose(found.q[0], start["q"], atol=1e-8)
    np.testing.assert_allclose(found.v[0], start["v"], atol=1e-8)
    assert_same(prepared.solve(), reach(), 20, transcription=transcription)
    elbow = prepared.solve(start={"q": {"elbow": 0.4}})
    np.testing.assert_allclose(elbow.q[0], [-0.5, 0.4], atol=1e-8)


def test_other_parameters_and_durations():
    prepared = mass().prepare(16)
    found = prepared.solve(parameters={"m": 2.0}, duration=1.5, start={"x": 0.2})
    assert found.duration == 1.5
    other = mass(parameters={"m": 2.0}, start={"x": 0.2, "v": 0}).replace(duration=1.5)
    assert_same(found, other, 16)
    assert found.problem.statement.parameters == {"m": 2.0}


def test_other_orientations():
    rest = {"v": 0}
    model = body()
    problem = Problem(model, 1.0, start={"q": turned(0.0), **rest}, end={"q": turned(1.0), **rest})
    start, end = {"q": turned(0.4, (0, 0.6, 0.8))}, {"q": turned(1.5)}
    found = problem.prepare(20).solve(start=start, end=end)
    assert_same(found, problem.replace(start=start | rest, end=end | rest), 20)


def test_nothing_is_transcribed_or_compiled_again(monkeypatch):
    """A regulator's samples, each from the solution before."""
    cost = effort(1e-2) + running(lambda s: s.q[0] ** 2 + s.q[1] ** 2)
    problem = Problem(al.library.two_link(), 1.0, start={"q": [0.1, 0.0], "v": 0}, cost=cost)
    prepared = problem.prepare(20)
    before = prepared.solve()
    assert np.isfinite(before.v).all()  # a kernel of its own

    def refuse(*_, **__):
        raise AssertionError("compiled again")

    monkeypatch.setattr(SOLVE, "cut", refuse)
    monkeypatch.setattr(SOLVE, "Evaluation", refuse)
    monkeypatch.setattr("alembert.engine.kernel.Kernel.__init__", refuse)
    for _ in range(3):
        found = prepared.solve(start={"q": before.q[1], "v": before.v[1]}, guess=before)
        assert found.success
        np.testing.assert_allclose(found.q[0], before.q[1], atol=1e-8)
        again = prepared.solve(start={"q": before.q[1], "v": before.v[1]}, guess=before)
        np.testing.assert_array_equal(again.x, found.x)  # bit by bit
        before = found


def test_a_problem_keeps_what_it_has_compiled(monkeypatch):
    problem = mass()
    first = problem.solve(12)
    monkeypatch.setattr(SOLVE, "cut", None)
    again = problem.solve(12)
    np.testing.assert_array_equal(again.x, first.x)


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"start": {"y": 1}}, ArgumentError, "no state 'y'"),
        ({"start": 1}, ArgumentError, "start is 1, expected a dictionary by names"),
        ({"end": {"v": (0, 1)}}, ArgumentError, "end 'v' is 0 .. 1, expected one value"),
        ({"duration": -1}, ArgumentError, "duration is -1, expected seconds"),
        ({"parameters": {"g": 1}}, ArgumentError, "no parameter 'g'"),
        ({"tolerance": 2}, ArgumentError, "tolerance is 2"),
    ],
)
def test_refused(given, kind, message):
    with pytest.raises(kind, match=message):
        mass().prepare(4).solve(**given)


def test_what_cannot_be_prepared():
    with pytest.raises(ArgumentError, match="the problem states no end 'v'"):
        mass(end={"x": 1}).prepare(4).solve(end={"v": 0})
    with pytest.raises(UnsupportedError, match="the duration of this problem is found"):
        mass().replace(duration=(0.5, 2.0)).prepare(4).solve(duration=1.0)
    with pytest.raises(UnsupportedError, match="'splines' has a solver of its own"):
        reach().prepare(4, transcription="splines")
    model = four_bars(1)
    q, _ = parallelogram(model, 0.5, 0)
    with pytest.raises(UnsupportedError, match="with loops or prescribed joints"):
        Problem(model, 1.0, start={"q": q, "v": 0}, actuated=["foot0"]).prepare(4)
    assert "4 steps of hermite-simpson" in repr(mass().prepare(4))
