"""A failed solve names what is wrong with the problem: equations that repeat or contradict others, and bad scales."""

import re

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError
from alembert.optimal import Phases, Problem, System, effort, model_system, running, terminal
from alembert.optimal.diagnosis import dependent, linearise, redundant, unscaled

TWO = System(["x", "y"], ["u", "w"], lambda s: [s.u, s.w])
COST = running(lambda s: s.u**2 + s.w**2)
ORIGIN = {"x": 0, "y": 0}


def diagnosed(system, solver="sweep", fails=True, transcription="midpoint", **given):
    cost = given.pop("cost", COST)
    problem = Problem(system, 1.0, start=ORIGIN, cost=cost, **given)
    given = {"transcription": transcription, "solver": solver, "iterations": 30, "progress": False}
    solution = problem.solve(10, **given)
    assert solution.success is not fails
    return solution.diagnosis()


@pytest.mark.parametrize("solver", ["sweep", "ipopt"])
def test_path_equations_that_contradict_each_other(solver):
    path = {"sum": (lambda s: s.u + s.w, 1, 1), "twice": (lambda s: 2 * s.u + 2 * s.w, 3, 3)}
    text = diagnosed(TWO, solver, path=path)
    assert "path twice contradicts path sum (at 10 times from t = 0 s to 0.9 s, by 1.000e+00)" in text


def test_path_equations_that_repeat_each_other():
    path = {"sum": (lambda s: s.u + s.w, 1, 1), "twice": (lambda s: 2 * s.u + 2 * s.w, 2, 2)}
    text = diagnosed(TWO, "ipopt", fails=False, path=path)
    assert "path twice repeats path sum (at 10 times from t = 0 s to 0.9 s)" in text


def test_path_equation_that_nothing_changes():
    """cos(t) = 1 holds at the start only."""
    text = diagnosed(TWO, path={"clock": (lambda s: ca.cos(s.t) + 0 * s.x, 1, 1)})
    assert "path clock cannot be changed by a state or control of its moment, and is off (at" in text


def test_end_conditions_that_contradict_each_other():
    """Stated values are compared before solving (`test_consistency`); that functions contradict is found by their slopes."""
    both = {"sum": (lambda s: s.x + s.y, 1.0), "difference": (lambda s: s.x - s.y, 0.0)}
    text = diagnosed(TWO, end=both | {"x": 0.6})
    assert "contradicts" in text
    assert re.search(r"\(at t = 1 s, by [12]\.000e-01\)", text)  # 2 x = 1, in units of x or of the sum


def test_end_condition_out_of_reach():
    """y' = sin(y) stays at 0."""
    alone = System(["x", "y"], ["u"], lambda s: [s.u, ca.sin(s.y)])
    text = diagnosed(alone, end={"x": 1, "y": 1}, cost=running(lambda s: s.u**2), transcription="rk4")
    assert (
        "end y cannot be changed by the controls, from the start that is given, and is off (at t = 1 s"
        in text
    )
    assert "end x" not in text


def test_end_conditions_with_one_control_between_them():
    coupled = System(["x", "y"], ["u"], lambda s: [s.u, 2 * s.u])
    text = diagnosed(coupled, end={"x": 1, "y": 1}, cost=running(lambda s: s.u**2))
    assert "end y cannot be changed apart from end x, and contradicts them (at t = 1 s, by 1.000e+00)" in text


def test_bad_scale_is_named():
    """|u| <= 0.1 in units of 1e-9, which does not reach the end."""
    text = diagnosed(TWO, end={"x": 1, "y": 1}, path={"huge": (lambda s: 1e9 * s.u, -1e8, 1e8)})
    assert "bound on huge is badly scaled: its gradient is 1.0e+09 at t = " in text
    assert "those of other constraints about 1.0e+00" in text
    assert text.count("badly scaled") == 1


@pytest.mark.parametrize("transcription", ["dmoc", "rk4", "trapezoidal"])
def test_nothing_is_wrong_with_a_sound_problem(transcription):
    """Too little torque for the time is no fault of the equations, and worst violations are listed once by name."""
    ends = {"start": {"q": [-1.5, 0], "v": 0}, "end": {"q": [1.5, 0.3], "v": 0}}
    problem = Problem(al.library.two_link(), 0.2, **ends, limits={"tau": 1.0})
    solution = problem.solve(20, transcription=transcription, iterations=10, progress=False)
    linear = linearise(solution.stages, solution._outcome.iterate)
    assert not solution.success
    assert redundant(solution.stages, linear, solution.time) == []
    assert unscaled(solution.stages, linear, solution.time) == []
    assert ", and at 19 other times" in solution.diagnosis()


def test_dependent_rows():
    C = np.array([[1.0, 0, 0], [1, 2, 0], [3, 2, 0], [0, 0, 0], [0, 0, 1e-8]])
    c = np.array([1.0, 1, 3.5, 0, 2])
    (one, others, off), (zero, none, _) = dependent(C, c)
    assert (one, others, zero, none) == (2, [0, 1], 3, [])
    assert off == pytest.approx(0.5)  # 2 * first + second asks for 3


def test_edges_are_named_where_a_solve_does_not_end():
    """A cost with an edge along the whole motion: multipliers jump from one of its sides to the other."""
    system = System(["x", "v"], ["u"], lambda s: [s.v, s.u])
    ends = {"start": {"x": 0, "v": 0}, "end": {"x": 1, "v": 0}}
    sharp = Problem(system, 1.0, **ends, cost=effort(1e-3) + running(lambda s: ca.fabs(s.v - 1.2)))
    lost = sharp.solve(20, iterations=5)
    assert not lost.converged
    assert "the running cost: chooses between branches (if_else, abs, min, max, a table)" in lost.diagnosis()
    later = Problem(system, 1.0)
    phases = Phases({"sharp": sharp.replace(end=None), "later": later}).solve(20, iterations=3)
    assert not phases.converged
    assert "sharp: the running cost: chooses between branches" in phases.diagnosis()
    assert "later: " not in phases.diagnosis()
    smooth = Problem(
        system, 1.0, **ends, cost=effort(1e-3) + running(lambda s: ca.sqrt((s.v - 1.2) ** 2 + 1e-2))
    )
    assert "chooses between" not in smooth.solve(20, iterations=1).diagnosis()


def test_controls_that_nothing_keeps_small_are_named():
    """The end is to be as far as possible: without limits or a cost there is no farthest one."""
    system = System(["x", "v"], ["u", "w"], lambda s: [s.v, s.u - s.w])
    problem = Problem(system, 1.0, start={"x": 0, "v": 0}, limits={"w": 1}, cost=terminal(lambda s: -s.x))
    lost = problem.solve(10, iterations=30)
    assert not lost.success
    assert "nothing keeps u small: state limits, or a cost" in lost.message
    kept = problem.replace(cost=terminal(lambda s: -s.x) + effort(1e-3)).solve(10)
    assert kept.success


def test_functions_that_return_nothing_are_named():
    """A forgotten `return` is the first mistake of all."""
    builder = al.ModelBuilder("slider", gravity=(0, 0, 0))
    builder.body("mass", al.Inertia.point(1.0), joint=al.Prismatic((1.0, 0, 0)), joint_name="slide")
    model = builder.build()
    problem = Problem(model, 1.0, start={"q": [0], "v": 0}, end={"q": [1]})
    for call, message in (
        (
            lambda: model_system(model, states=["used"], rate=lambda s: None),
            "model_system: rate: it returns None",
        ),
        (
            lambda: model_system(model, states=["used"], rate=lambda s: ["x"]),
            "model_system: rate: it returns a str",
        ),
        (lambda: Phases({"a": problem}, cost=lambda s: None), "Phases: the cost: it returns None"),
        (lambda: problem.replace(path={"c": (lambda s: None, 0, 1)}), "Problem: path 'c': it returns None"),
        (
            lambda: problem.replace(cost=running(lambda s: None)),
            "Problem: the running cost: it returns None. Functions get CasADi expressions and return one",
        ),
    ):
        with pytest.raises(ArgumentError, match=message):
            call()


CART = System(["x", "v"], ["u"], lambda s: [s.v, s.u])
MOVE = {"start": {"x": 0, "v": 0}, "end": {"x": 1, "v": 0}}


def test_bounds_that_no_motion_keeps_are_found_soon():
    """A way of 1 m from rest to rest in 1 s takes an effort of 12 at least, and a speed beyond 1 m/s. Restorations that lead
    nowhere end, and are not made a third time: these took 500 and 197 iterations without that."""
    cost = running(lambda s: s.v**4)
    weak = Problem(CART, 1.0, **MOVE, integrals={"work": (lambda s: s.u**2, 0, 11.0)}, cost=cost).solve(20)
    assert weak.status == "infeasible", weak.message
    slow = Problem(CART, 1.0, **MOVE, limits={"v": 1.05, "u": 10.0}).solve(20)
    assert slow.status == "infeasible", slow.message
    assert slow.iterations < 100


def test_bounds_that_leave_no_room_are_told():
    """From 3.5 m/s full braking over the first interval leads to the limit of 3 m/s, and nothing else does."""
    problem = Problem(CART, 1.0, **MOVE, limits={"v": 3.0, "u": 10.0})
    found = problem.prepare(20, transcription="rk4").solve(start={"x": 0, "v": 3.5})
    assert found.status == "stalled"
    assert "bounds that meet in one motion leave no room inside" in found.message
    assert found.iterations < 100


def test_rates_that_make_whole_numbers_are_told():
    with pytest.raises(
        ArgumentError, match=r"System: the rate: to_int not defined .* It gets CasADi expressions"
    ):
        System(["x"], ["u"], lambda s: [s.u + int(s.x)])
