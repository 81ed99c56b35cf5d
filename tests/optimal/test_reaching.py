"""Ends of the guess where conditions of one's own hold."""

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError
from alembert.optimal import Problem, System, effort, final_momentum
from alembert.optimal.guess import make

HANGING = {"q": [-np.pi / 2, 0], "v": 0}


def height(s):
    return s.frame("tip").translation[2]


def tip(q):
    return al.library.two_link().frame_pose(q, "tip").translation


def test_the_end_of_the_guess_keeps_the_condition():
    """From hanging at rest the height of the tip has no slope; other starts find a way, within limits."""
    arm = al.library.two_link()
    both = {"x": (lambda s: s.frame("tip").translation[0], 1.2), "z": (height, 0.8), "v": 0}
    guess = make(Problem(arm, 1.0, start=HANGING, end=both), None)
    np.testing.assert_allclose(
        tip(guess.points[-1, :2])[[0, 2]], [1.2, 0.8], atol=1e-3
    )  # (NEAR |d|)^2 counts
    np.testing.assert_array_equal(guess.points[0, :2], HANGING["q"])
    np.testing.assert_allclose(guess.points[0, 2:], guess.points[-1, :2] - guess.points[0, :2])
    narrow = Problem(arm, 1.0, start=HANGING, end={"z": (height, (0.0, 0.5))}, limits={"q": {"elbow": 0.1}})
    q = make(narrow, None).points[-1, :2]
    assert -1e-3 < tip(q)[2] < 0.5 + 1e-3
    assert abs(q[1]) <= 0.1
    # what is stated stays
    held = Problem(arm, 1.0, start=HANGING, end={"q": {"elbow": 0.4}, "z": (height, 0.0)})
    q = make(held, None).points[-1, :2]
    assert q[1] == 0.4
    assert tip(q)[2] == pytest.approx(0.0, abs=1e-3)


def test_nothing_to_reach_leaves_the_guess_alone():
    """Conditions on speeds, and those that hold already."""
    arm = al.library.two_link()
    for end in ({"speed": (lambda s: s.velocity("tip")[0], 1.0)}, {"z": (height, (-2.5, -1.5))}):
        guess = make(Problem(arm, 1.0, start=HANGING, end=end), None)
        np.testing.assert_array_equal(guess.points[-1, :2], HANGING["q"])


def test_a_range_of_heights_is_solved():
    """It stalled at the start of the search when the guess had no slope."""
    end = {"v": 0, "z": (height, (0.8, 1.0))}
    solution = Problem(al.library.two_link(), 1.0, start=HANGING, end=end).solve(20)
    assert solution.success
    assert tip(solution.q[-1])[2] == pytest.approx(0.8, abs=1e-6)


def test_a_condition_without_slope_is_named():
    still = {"time": [0, 1], "q": [HANGING["q"]] * 2, "v": np.zeros((2, 2))}
    problem = Problem(al.library.two_link(), 1.0, start=HANGING, end={"v": 0, "z": (height, (0.8, 1.0))})
    text = problem.solve(20, guess=still, iterations=0).diagnosis()
    assert "bound at the end on z has no slope at t = 1 s: nothing there changes it to first order" in text


def test_final_momentum_is_that_of_a_point_mass():
    arm = al.library.two_link()
    cost = final_momentum("tip", (3.0, 0, 0), mass=0.2) + effort(1e-3)
    problem = Problem(arm, 0.5, start=HANGING, cost=cost, limits={"tau": 20.0})
    solution = problem.solve(20)
    assert solution.success
    speed = arm.frame_velocity(solution.q[-1], solution.v[-1], "tip", reference="local_world_aligned")[3]
    spent = 1e-3 / 2 * np.sum(solution.controls**2) * 0.5 / 20
    assert solution.cost == pytest.approx(-0.2 * speed + spent, rel=1e-9)
    for wrong, message in (
        (((0, 0, 0), 1.0), "direction is .*, expected three numbers, not all 0"),
        (((1, 0), 1.0), "direction is"),
        (((1, 0, 0), -1.0), "mass is -1.0, expected a positive number"),
    ):
        with pytest.raises(ArgumentError, match=f"final_momentum: {message}"):
            final_momentum("tip", *wrong)


@pytest.mark.parametrize("duration", [1.0, (0.5, 3.0)])
def test_an_equation_without_slope_at_the_guess(duration):
    """Controls on a circle, from a guess where they are zero, in a flow that turns: least effort is half of the shortest
    duration, in any direction. It was called infeasible."""
    flow = System(["x", "y"], ["a", "b"], lambda s: [s.a - s.y, s.b + s.x])
    circle = {"circle": (lambda s: s.a**2 + s.b**2, 1, 1)}
    problem = Problem(flow, duration, start={"x": 1, "y": 0}, path=circle)
    found = problem.solve(8, transcription="midpoint")
    assert found.success
    assert "begun from controls that move" in found.message
    assert found.cost == pytest.approx(np.min(duration) / 2, rel=1e-6)
    assert found.violations(1e-7) == []
