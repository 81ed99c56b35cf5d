"""The solver of a prepared problem as one compiled function, in batches, and as C."""

import os
import subprocess

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.deploy import compiler
from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal import Problem, System, effort, running, tuning
from alembert.optimal.search_graphs import bound_decisions

ROUNDING = 1e-9
"""of states and controls of the order of one: both ways make the same steps, and end with errors below 1e-6, from where a
Newton step leaves 1e-12; what the order of sums changes is smaller still"""


def pendulum(**more):
    system = System(
        *(["a", "w"], ["u"], lambda s: [s.w, -ca.sin(s.a) - s.b * s.w + s.u]), parameters={"b": 0.1}
    )
    cost = effort(0.1) + running(lambda s: (s.a - s.aim[0]) ** 2 + 0.1 * s.w**2)
    given = {"start": {"a": 0.5, "w": 0.0}, "inputs": {"aim": [0.0]}, "limits": {"u": 1.0}, "cost": cost}
    return Problem(system, **{"duration": 2.0, **given, **more})


@pytest.fixture(scope="module")
def prepared():
    return pendulum().prepare(8, transcription="rk4")


@pytest.fixture(scope="module")
def plan(prepared):
    return prepared.solve()


@pytest.fixture(scope="module")
def compiled(prepared, plan):
    return prepared.compile(iterations=12, guess=plan)


def test_what_a_problem_solved_before_leaves_no_trace():
    """Arrays and bound calls of a solve are kept for the next one, whatever it begins from."""
    problem = pendulum()
    first = problem.solve(8, transcription="rk4")
    problem.solve(8, transcription="rk4", guess={"time": [0, 2], "x": [[0.5, 0.0], [3.0, -1.0]]})
    again = problem.solve(8, transcription="rk4")
    np.testing.assert_array_equal(first.x, again.x)
    np.testing.assert_array_equal(first.gains, again.gains)


def assert_same(result, other):
    found = result.solution()
    assert result.converged
    assert found.converged
    assert int(result.iterations) == other.iterations
    assert float(result.cost) == pytest.approx(other.cost, rel=ROUNDING)
    for a, b in ((found.x, other.x), (found.controls, other.controls)):
        np.testing.assert_allclose(a, b, atol=ROUNDING)


def test_other_numbers(prepared, plan, compiled):
    """Each step is that of the solver in Python, so that iterations and results are the same."""
    given = {"start": {"a": 0.6, "w": 0.1}, "inputs": {"aim": [0.1]}, "duration": 1.9}
    given |= {"parameters": {"b": 0.2}, "limits": {"u": (-0.9, 0.5)}}
    other = prepared.solve(**given, guess=plan, tolerance=1e-6)
    found = compiled.solve(**given)
    assert_same(found, other)
    assert found.solution().controls.min() == pytest.approx(other.controls.min(), abs=ROUNDING)
    later = prepared.solve(start={"a": 0.5, "w": 0.0}, guess=other, shift=2 * 1.9 / 8, tolerance=1e-6)
    for before in (found, other):
        assert_same(compiled.solve(start={"a": 0.5, "w": 0.0}, before=before, shift=2), later)


@pytest.mark.parametrize(
    ("transcription", "more"),
    [
        ("hermite-simpson", {"duration": (0.5, 5.0), "end": {"a": 0.0, "w": 0.0}, "cost": al.optimal.duration()}),
        ("midpoint", {"end": {"a": 0.3, "w": (-0.01, 0.01)}, "limits": {"u": 1.0, "rate": 2.0}}),
    ],
)  # fmt: skip
def test_what_is_free(transcription, more):
    """A duration that is found, controls before the start that nothing states, conditions and bounds at the end, z."""
    problem = pendulum(**more)
    prepared = problem.prepare(6, transcription=transcription)
    plan = prepared.solve()
    given = {"start": {"a": 0.55, "w": 0.05}}
    found = prepared.compile(iterations=12, guess=plan).solve(**given)
    other = prepared.solve(**given, guess=plan, tolerance=1e-6)
    assert found.converged
    # what is nearly free moves by the square root of what the cost does not see
    assert float(found.cost) == pytest.approx(other.cost, rel=1e-6)
    np.testing.assert_allclose(found.solution().x, other.x, atol=1e-5)


def test_costs_that_bend_down_along_the_start():
    """Between two places under gravity the least effort is no convex function of the first one, which is given."""
    ends = {"start": {"q": [-0.5, 0], "v": 0}, "end": {"q": [0.5, 0.3], "v": 0}}
    prepared = Problem(al.library.two_link(), 1.0, **ends, limits=None).prepare(8, transcription="euler")
    plan = prepared.solve()
    start = {"q": [-0.45, 0.05], "v": [0.1, 0.0]}
    found = prepared.compile(iterations=8, guess=plan).solve(start=start)
    other = prepared.solve(start=start, guess=plan, tolerance=1e-6)
    assert found.converged
    assert int(found.iterations) == other.iterations  # each step is that of the solver in Python
    np.testing.assert_allclose(found.solution().x, other.x, atol=1e-6)  # speeds of some rad/s, both to 1e-6


def test_a_start_at_the_bound_of_its_range():
    """Its barrier bends the cost far more than all else: the end is in reach all the same. The least cost is 6 (1 - x)^2."""
    mass = System(["x", "v"], ["u"], lambda s: [s.v, s.u])
    problem = Problem(mass, 1.0, start={"x": (-0.1, 0.1), "v": 0}, end={"x": 1, "v": 0})
    found = problem.prepare(4).compile(iterations=8, tolerance=1e-8).solve()
    assert found.converged
    assert float(found.cost) == pytest.approx(
        6 * 0.9**2, abs=1e-5
    )  # barriers of 1e-9 on both sides, times slopes of 11


def test_functions_that_are_not_finite_are_no_solution():
    """The square root of a negative number is in cost and slopes, and no largest residual tells it."""
    system = System(["a"], ["u"], lambda s: [s.u])
    cost = effort() + running(lambda s: ca.sqrt(s.a - s.b[0]))
    problem = Problem(system, 1.0, start={"a": 1.0}, inputs={"b": [0.0]}, cost=cost)
    compiled = problem.prepare(4, transcription="rk4").compile(iterations=4)
    assert compiled.solve().converged
    found = compiled.solve(inputs={"b": [3.0]})
    assert np.isnan(found.cost)
    assert not found.converged


def test_a_filter_drops_what_is_no_better_and_then_the_oldest():
    """As lists do it: pairs that the new one is better than in both numbers go, and it comes first."""
    _, numbers, decide = bound_decisions()
    numbers["here"][:2], numbers["remembers"][0] = (1e3, 0.0), 1.0
    decide["new_filter"]()
    rng, expected = np.random.default_rng(0), []
    for _ in range(200):
        theta = rng.uniform()
        numbers["here"][:2] = theta, rng.uniform(0.9, 1.1) / (0.1 + theta)
        decide["remember"]()
        t, f = (1 - tuning.G_THETA) * theta, numbers["here"][1] - tuning.G_PHI * theta
        expected = [(t, f), *(pair for pair in expected if pair[0] < t or pair[1] < f)][: tuning.FILTER]
        pairs = [pair for pair in numbers["filter"].reshape(-1, 2) if pair[0] < 1e300]
        assert len(pairs) == len(expected)
        np.testing.assert_allclose(sorted(map(tuple, pairs)), sorted(expected))
        trial = numbers["trial"]
        trial[:2] = rng.uniform(size=2) * (1, 5)
        decide["allows"]()
        assert numbers["is_allowed"][0] == all(trial[0] <= t or trial[1] <= f for t, f in expected)
    decide["new_filter"]()
    for k in range(tuning.FILTER + 5):
        numbers["here"][:2] = 1 - 0.01 * k, k
        decide["remember"]()
    kept = numbers["filter"].reshape(-1, 2)
    np.testing.assert_allclose(
        kept[:, 1], np.arange(tuning.FILTER + 5)[:4:-1], atol=1e-6
    )  # the margin of phi is 1e-8


def test_other_bounds_hold_from_one_solve_to_the_next(prepared, plan):
    """Bounds twenty times as narrow, aims on both sides: each solve begins from the one before, and finds what the solver in
    Python finds from a straight motion. The problem is nearly linear-quadratic: it has one optimum."""
    solver, before, rng = prepared.compile(iterations=60, guess=plan), None, np.random.default_rng(0)
    for limit in (1.0, 0.05, 2.0, 0.05, 1.0, 0.1):
        start = {"a": rng.uniform(-1, 1), "w": rng.uniform(-1, 1)}
        given = {"start": start, "limits": {"u": limit}, "inputs": {"aim": [rng.uniform(-1, 1)]}}
        before = solver.solve(**given, before=before)
        other = prepared.solve(**given, tolerance=1e-6)
        assert before.converged
        assert other.converged
        # both are within the tolerance of 1e-6 times the scaled size of the cost
        assert float(before.cost) == pytest.approx(other.cost, rel=1e-5)


def test_a_design_and_a_range_at_the_start():
    """Solutions have the design that was found; a start that is a range stays one, as for prepared.solve."""
    aimed = effort() + al.optimal.terminal(lambda s: 5 * s.a**2 + (s.b - 0.5) ** 2)
    problem = pendulum(design={"b": (0.1, 2.0)}, start={"a": (0.5, 0.6), "w": 0.2}, cost=aimed)
    prepared = problem.prepare(4, transcription="euler")
    plan = prepared.solve()
    compiled = prepared.compile(iterations=12, guess=plan)
    found = compiled.solve(start={"w": 0.3}, inputs={"aim": [0.2]}).solution()
    other = prepared.solve(start={"w": 0.3}, guess=plan)
    assert other.design["b"] > 0.1001  # between its bounds
    assert found.design["b"] == pytest.approx(other.design["b"], abs=1e-5)  # tolerances of 1e-6 and 1e-8
    assert found.problem.input_values["aim"] == pytest.approx([0.2])
    with pytest.raises(ArgumentError, match=r"start 'a' is 0.55, expected a range"):
        compiled.solve(start={"a": 0.55, "w": 0.3})
    with pytest.raises(
        ArgumentError, match=r"prepared.solve: inputs is 3.0, expected numbers or vectors by name"
    ):
        prepared.solve(inputs=3.0)


def test_a_body_that_turns():
    """Orientations at the start, in any scale; steps without the curvature of the dynamics."""
    builder = al.ModelBuilder("body", gravity=(0, 0, 0))
    inertia = al.Inertia(1.0, (0, 0, 0), (1.0, 0, 2.0, 0, 0, 3.0))
    builder.body("body", inertia, joint=al.Spherical(), joint_name="turn")
    cost = effort() + al.optimal.terminal(lambda s: 10 * ca.sumsqr(s.q[1:]))
    problem = Problem(builder.build(), 1.0, start={"q": [0.8, 0.6, 0.0, 0.0], "v": 0}, cost=cost)
    prepared = problem.prepare(4, transcription="euler", hessian="gauss-newton")
    plan = prepared.solve()
    q = np.array([0.8, 0.5, 0.3, 0.1])
    found = prepared.compile(iterations=30, guess=plan).solve(start={"q": q, "v": np.zeros(3)})
    other = prepared.solve(start={"q": q / np.linalg.norm(q), "v": 0}, guess=plan)
    assert found.converged
    np.testing.assert_allclose(found.solution().q, other.q, atol=1e-5)  # tolerances of 1e-6 and 1e-8


def test_a_batch_has_the_bits_of_single_problems(compiled):
    angles = np.linspace(0.3, 0.7, 11)
    batch = compiled.solve(start={"a": angles, "w": 0.0}, inputs={"aim": np.linspace(0, 0.1, 11)})
    assert repr(batch) == "<CompiledResult of 11 problems: 11 converged>"
    part = compiled.solve(start={"a": angles}, inputs={"aim": np.linspace(0, 0.1, 11)})  # w stays as stated
    np.testing.assert_array_equal(part.memory, batch.memory)
    for k in (0, 5, 10):
        one = compiled.solve(start={"a": angles[k], "w": 0.0}, inputs={"aim": [0.01 * k]})
        np.testing.assert_array_equal(batch.memory[k], one.memory)
        assert batch.cost[k] == one.cost
        assert batch.iterations[k] == one.iterations
    assert batch.solution(3).x[0, 0] == pytest.approx(angles[3], abs=1e-9)
    again = compiled.solve(start={"a": angles, "w": 0.0}, before=batch, shift=1)
    assert again.converged.all()
    with pytest.raises(ArgumentError, match=r"which is \(\), expected one of a batch \(11,\)"):
        batch.solution()


def test_a_batch_of_parameters_and_ends():
    """A study of a parameter in one call."""
    prepared = pendulum(end={"a": 0.0, "w": 0.0}).prepare(8, transcription="rk4")
    compiled = prepared.compile(iterations=12)
    given = {"parameters": {"b": np.linspace(0.0, 0.2, 5)}, "end": {"a": np.linspace(0, 0.2, 5), "w": 0.0}}
    batch = compiled.solve(**given, limits={"u": np.inf})
    assert batch.converged.all()
    for k in (0, 3):
        one = {"parameters": {"b": 0.05 * k}, "end": {"a": 0.05 * k, "w": 0.0}, "limits": {"u": np.inf}}
        assert batch.cost[k] == pytest.approx(prepared.solve(**one).cost, rel=1e-5)  # both to 1e-6
        found = batch.solution(k)
        assert found.x[-1, 0] == pytest.approx(0.05 * k, abs=1e-9)
        assert found.problem.parameters[0] == pytest.approx(0.05 * k)


def test_a_step_that_no_length_is_taken_of_leaves_the_iterate(compiled):
    """Far from the guess the solver stops after its iterations, and says so."""
    found = compiled.solve(start={"a": 40.0, "w": -90.0})
    assert not found.converged
    assert found.solution().status == "iterations"
    assert np.isfinite(found.memory).all()


@pytest.mark.skipif(not compiler.has_compiler(), reason="no C compiler")
def test_as_c(compiled, tmp_path):
    """The test program solves four samples one after the other, and compares them with the compiled function."""
    source = compiled.export_c(tmp_path, name="mpc")
    header, code, _ = (file.read_text() for file in source.files)
    assert "malloc" not in code
    assert "0 b, 1 aim, 2 start a, 3 start w" in header
    assert source.p["start"] == (2, 2)
    assert "bytes" in repr(source)
    target = tmp_path / "check"
    compiler.program("export_c", source.files[1:], target)
    found = subprocess.run([os.fspath(target)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
    assert float(found.stdout.split()[-1]) < ROUNDING


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"start": 3.0}, "start is 3.0, expected a dictionary by names"),
        ({"start": {"a": np.nan, "w": 0.0}}, r"start 'a' has shape \(\), expected finite \(..., 1\)"),
        ({"inputs": {"goal": 1.0}}, "the problem has no input 'goal'"),
        (
            {"inputs": {"aim": [1.0, 2.0, np.inf]}},
            r"input 'aim' has shape \(3,\), expected \(..., 1\) finite",
        ),
        ({"limits": {"u": (1.0, 1.0)}}, "limits of 'u' are 1 and 1, expected the lower one below"),
        ({"start": {"a": np.zeros(3), "w": np.zeros(2)}}, r"do not go together: a \(3,\), w \(2,\)"),
        ({"before": 3.0}, "before is 3.0, expected a result of this solver, or a solution"),
        ({"inputs": 3.0}, "inputs is 3.0, expected numbers or vectors by name"),
        ({"inputs": {"aim": "up"}}, "input 'aim' is 'up', expected numbers"),
        ({"start": {"a": "up", "w": 0.0}}, "start 'a' is 'up', expected numbers"),
        ({"limits": 3.0}, "limits is 3.0, expected a dictionary by names"),
        ({"parameters": 3.0}, "parameters is 3.0, expected a dictionary by names"),
        ({"parameters": {"c": 3.0}}, "no parameter 'c'; there is b"),
        ({"parameters": {"b": [0.1, np.inf]}}, "parameter 'b' is .*, expected finite numbers"),
        ({"parameters": {"b": "much"}}, "parameter 'b' is 'much', expected numbers"),
        ({"duration": -1.0}, "duration is -1.0, expected seconds"),
        ({"shift": 0.5}, "shift is 0.5, expected a number of intervals, 0 or more"),
    ],
)
def test_refused(compiled, given, said):
    with pytest.raises(ArgumentError, match=said):
        compiled.solve(**given)


def test_what_is_not_compiled(prepared, plan, compiled, tmp_path):
    with pytest.raises(ArgumentError, match="iterations is 500, expected 1 to 200"):
        prepared.compile(iterations=500, guess=plan)
    with pytest.raises(ArgumentError, match="guess is a dict, expected a solution of this prepared problem"):
        prepared.compile(guess={})
    with pytest.raises(ArgumentError, match="expected a solution of this prepared problem that was solved"):
        pendulum().prepare(7, transcription="rk4").compile(guess=plan)
    with pytest.raises(ArgumentError, match="export_c: 'my solver' is not a name in C"):
        compiled.export_c(tmp_path, name="my solver")
    (tmp_path / "file").write_text("")
    with pytest.raises(al.errors.FileError, match="cannot be made"):
        compiled.export_c(tmp_path / "file" / "folder")
    held = pendulum(path={"hold": (lambda s: s.u - 0.1 * s.a, 0.0, 0.0)}).prepare(6, transcription="rk4")
    with pytest.raises(UnsupportedError, match="'hold' is an equation along the path"):
        held.compile()
