"""Where the search starts."""

import casadi as ca
import pytest

from alembert.optimal import Problem, System, duration, effort
from alembert.optimal.guess import straight


def planar_craft():
    """One thrust along the body, which only pushes, and a torque."""

    def rate(s):
        ax, ay = -s.f * ca.sin(s.th) / s.m - s.drag * s.vx, s.f * ca.cos(s.th) / s.m - 9.81
        return [s.vx, s.vy, s.w, ax, ay, s.tq / s.J]

    states = ["x", "y", "th", "vx", "vy", "w"]
    return System(states, ["f", "tq"], rate, parameters={"m": 1.0, "J": 0.05, "drag": 0.1})


def test_a_straight_guess_keeps_away_from_bounds():
    system = System(["x", "y"], ["a", "b", "c"], lambda s: [s.a, s.b])
    limits = {"a": (0, 20), "b": 3, "c": (5, None), "y": (-4, 0)}
    found = straight(Problem(system, 1.0, start={"x": 0}, limits=limits))
    assert found.controls[0].tolist() == pytest.approx([2.0, 0.0, 5.5])
    assert found.points[0].tolist() == pytest.approx([0.0, -0.4])


@pytest.mark.parametrize("transcription", ["rk4", "midpoint", "hermite-simpson"])
def test_a_craft_that_only_pushes_is_steered_from_the_straight_guess(transcription):
    """Its thrust may not be negative; a guess with no thrust, on the bound, ended in a stalled search."""
    rest = dict.fromkeys(("x", "y", "th", "vx", "vy", "w"), 0)
    craft = planar_craft()
    problem = Problem(
        craft,
        (0.5, 5.0),
        start=rest,
        end=rest | {"x": 3.0, "y": 1.0},
        cost=duration() + 0.01 * effort(),
        limits={"f": (0, 25), "tq": 1, "th": 1},
    )
    solution = problem.solve(20, transcription=transcription)
    assert solution.success
    other = problem.solve(20, transcription=transcription, solver="ipopt")
    assert solution.cost == pytest.approx(other.cost, rel=1e-6)  # IPOPT relaxes bounds by 1e-8
    # The slope of the optimal cost along a condition is its multiplier, with the other sign.
    step = 1e-4
    costs = [
        problem.replace(end=rest | {"x": 3.0 + d, "y": 1.0})
        .solve(20, transcription=transcription, guess=solution)
        .cost
        for d in (step, -step)
    ]
    assert (costs[0] - costs[1]) / (2 * step) == pytest.approx(-solution.multipliers["end x"], rel=1e-4)
