"""Problems that are compiled once, and solved for other starts, ends, parameters and durations."""

import sys

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal import Problem, System, duration, effort, running
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


def test_other_limits_are_those_of_the_solution():
    """Also where its ranges, its arcs and its accuracy are told; one that is infinite is none."""
    prepared = mass().prepare(16)
    found = prepared.solve(limits={"force": 5.5})
    assert_same(found, mass(limits={"force": 5.5}), 16)
    assert found.ranges()[-1][-1] == "-5.5 .. 5.5"
    free = prepared.solve(limits={"force": np.inf}, end={"x": 9})
    assert_same(free, mass(limits=None, end={"x": 9, "v": 0}), 16)
    assert abs(free.controls).max() > 30


def test_limits_leave_the_range_of_an_end_alone():
    """Both bound the same state: a limit of 3 must not take the place of a range of 0.9 to 1.1."""
    problem = mass(end={"x": (0.9, 1.1), "v": 0}, limits={"x": 2.0}, start={"x": (0, 0.1), "v": 0})
    prepared = problem.prepare(12)
    first = prepared.solve()
    assert first.x[-1, 0] == pytest.approx(0.9, abs=1e-6)
    np.testing.assert_allclose(prepared.solve(limits={"x": 3.0}).x[-1, 0], 0.9, atol=1e-6)
    ranges = {"start": {"x": (0.3, 0.4)}, "end": {"x": (1.5, 1.6)}}
    other = prepared.solve(**ranges)
    solver = prepared.compile(iterations=30, tolerance=1e-8, guess=first)
    for found in (other, solver.solve(**ranges).solution()):
        np.testing.assert_allclose(found.x[[0, -1], 0], [0.4, 1.5], atol=1e-6)
    compiled = solver.solve(limits={"x": 3.0}).solution()
    np.testing.assert_allclose(compiled.x[-1, 0], 0.9, atol=1e-6)


def test_limits_of_a_path_whose_name_looks_like_that_of_a_row():
    path = {"pace (1)": (lambda s: s.v, -9, 9)}
    found = mass(path=path).prepare(16).solve(limits={"pace (1)": (-1.4, 1.4)})
    assert found.x[:, 1].max() == pytest.approx(1.4, abs=1e-6)


def test_other_values_of_functions_at_an_end():
    def both(s):
        return s.x + s.v

    prepared = mass(end={"both": (both, 1.0)}).prepare(12)
    for value in (2.0, (both, 2.0)):
        found = prepared.solve(end={"both": value})
        assert found.x[-1].sum() == pytest.approx(2.0, abs=1e-7)
        assert_same(prepared.solve(end={"both": value}), mass(end={"both": (both, 2.0)}), 12)
        assert found.problem.statement.end == {"both": (both, 2.0)}


def test_a_part_of_a_start_leaves_the_rest_stated():
    found = reach().prepare(10).solve(start={"q": {"elbow": 0.4}})
    again = found.problem.replace(cost=effort(2.0)).solve(10)
    np.testing.assert_allclose(again.q[0], [-0.5, 0.4], atol=1e-8)


def test_a_free_duration_is_shifted():
    """The double integrator in least time, a quarter of which has passed: what is left of the plan is nearly the answer."""
    cart = System(["x", "v"], ["u"], lambda s: [s.v, s.u])
    problem = Problem(
        cart, (0.2, 5.0), start={"x": 0, "v": 0}, end={"x": 1, "v": 0}, limits={"u": 1.0}, cost=duration()
    )
    prepared = problem.prepare(20)
    plan = prepared.solve()
    later = {"start": {"x": plan.x[5, 0], "v": plan.x[5, 1]}, "guess": plan}
    seen = []
    found = prepared.solve(**later, shift=plan.time[5], progress=seen.append)
    # the guess ends when the plan does; that time is off by the mesh's error of the switch
    assert seen[0].cost == pytest.approx(0.75 * plan.duration, rel=1e-9)
    assert found.duration == pytest.approx(1.5, abs=2e-3)
    arrays = {"time": plan.time, "x": plan.x, "controls": plan.controls}
    prepared.solve(**later | {"guess": arrays}, shift=plan.time[5], progress=seen.append)
    assert seen[found.iterations + 1].cost == pytest.approx(0.75 * plan.duration, rel=1e-9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"limits": {"force": (3, 1)}}, "limits of 'force': 3 is above 1"),
        ({"parameters": {"m": "heavy"}}, "parameter 'm' is 'heavy', expected a finite number"),
        ({"parameters": {"m": np.nan}}, "parameter 'm' is nan, expected a finite number"),
        (
            {"start": {"x": 0.1}},
            r"start 'x' is 0.1, expected a range \(lower, upper\), as the problem has it",
        ),
        ({"start": {"x": (0.2, 0.1)}}, "start 'x': 0.2 is above 0.1"),
    ],
)
def test_numbers_that_are_refused(given, message):
    with pytest.raises(ArgumentError, match=message):
        mass(start={"x": (0, 0.5), "v": 0}).prepare(4).solve(**given)


def test_a_first_solve_begins_again_as_problem_solve_does():
    """To go back, with its speed, to where it came from: a way round that no straight guess shows. Prepared, the problem was
    called infeasible; so it was for other starts."""
    oscillator = System(["x", "v"], ["u"], lambda s: [s.v, (1 - s.x**2) * s.v - s.x + s.u])
    problem = Problem(
        oscillator,
        (0.3, 8.0),
        start={"x": 0.6, "v": 0.7},
        end={"x": 0.1, "v": 0.9},
        limits={"u": 3.0, "v": 1.2},
        cost=running(lambda s: s.u**2 / 2 + 2 * s.x**2) + 2 * duration(),
    )
    best = problem.solve(12, transcription="trapezoidal")
    prepared = problem.prepare(12, transcription="trapezoidal")
    found = prepared.solve()
    assert best.success
    assert found.success
    assert found.cost == pytest.approx(best.cost, rel=1e-9)
    assert "begun from the least effort in" in found.message
    other = prepared.solve(start={"x": 0.5, "v": 0.8}, end={"x": 0.5, "v": 0.8})
    assert other.success
    again = problem.replace(start={"x": 0.5, "v": 0.8}, end={"x": 0.5, "v": 0.8})
    assert other.cost == pytest.approx(again.solve(12, transcription="trapezoidal").cost, rel=1e-7)
