"""Where the search starts."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.optimal import Problem, System, duration, effort, examples
from alembert.optimal.guess import make, place, straight
from alembert.optimal.schemes import scheme
from alembert.optimal.stages import cut


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


def test_loops_of_a_guess_are_closed_on_one_branch():
    """Waves of half a radian in joints of a four-bar leave its loop open; closing each node for itself jumps by 2.6 rad to
    the other assembly at some of them, from where no search finds back."""
    problem = examples.four_bar().problem
    model, t, rng = problem.model, np.linspace(0, 1, 21), np.random.default_rng(0)
    first = make(problem, None)
    for _ in range(3):
        waves = [rng.normal(0, 0.5, model.nq) * np.sin(k * np.pi * t)[:, None] for k in (1, 2)]
    q = first.at(problem, t)[:, : model.nq] + sum(waves)
    given = make(problem, {"time": t * first.duration, "q": q})
    x, _, _ = place(cut(problem, scheme("dmoc"), 20), given)
    found = x[:, : model.nq]
    assert np.abs(model.constraint_residual(found)).max() < 1e-6
    steps, own = (np.abs(model.difference(a[:-1], a[1:])).max() for a in (found, q))
    assert steps < 1.5 * own


def test_a_passive_joint_that_moves_little_is_no_long_way():
    """With trials that settle z the first steps lead nowhere; it took 93 iterations to an optimum of its mesh only."""
    ends = {"start": {"q": [0, 0], "v": 0}, "end": {"q": [0.1, 0], "v": 0}}
    problem = Problem(al.library.acrobot(), 1.0, **ends)
    solution, other = problem.solve(50), problem.solve(50, solver="ipopt")
    assert solution.success
    assert solution.iterations < 40
    assert solution.cost == pytest.approx(other.cost, rel=1e-6)


@pytest.mark.parametrize("share", [0.5, 0.75, 1.0])
def test_an_orbit_that_does_not_go_straight(share):
    """Turns at 7000 km, to one that is 100 km higher, in m and s: a straight motion goes through the Earth or stays where it
    is, and from there a search ends with efforts ten thousand times as large, or did not with an end at 1e-9 m for 0."""
    mu, r = 3.986004418e14, 7e6
    system = System(
        ["x", "y", "vx", "vy"],
        ["ax", "ay"],
        lambda s: [
            s.vx,
            s.vy,
            *(a - mu * x / (s.x**2 + s.y**2) ** 1.5 for a, x in ((s.ax, s.x), (s.ay, s.y))),
        ],
    )
    turn, angle = 2 * np.pi * np.sqrt(r**3 / mu), 2 * np.pi * share
    start = {"x": r, "y": 0, "vx": 0, "vy": np.sqrt(mu / r)}
    end = {"x": (r + 1e5) * np.cos(angle), "y": (r + 1e5) * np.sin(angle)}
    found = Problem(system, share * turn, start=start, end=end).solve(40)
    assert found.success
    assert found.iterations < 6
    exactly = {name: 0.0 if abs(x) < 1e-6 else x for name, x in end.items()}
    assert Problem(system, share * turn, start=start, end=exactly).solve(40).cost == pytest.approx(found.cost)
    within = {name: (x - 1.0, x + 1.0) for name, x in end.items()}
    near = Problem(system, share * turn, start=start, end=within).solve(40)
    assert near.cost == pytest.approx(found.cost, rel=1e-3)  # a metre of the hundred kilometres, twice
    if share in (0.5, 0.75):  # an end that is no place
        beyond = Problem(system, share * turn, start=start, end={"x": (-np.inf, end["x"])}).solve(40)
        assert beyond.success
        assert beyond.cost < found.cost
    if share == 0.75:
        assert beyond.message.endswith(
            "begun from the motion that the start leads to by itself: no way led on from a straight one"
        )
    # a free duration, and the end within a wide range of it: 5,400 to 37,000 before
    for shortest, longest in ((0.9 * share, 1.1 * share), (0.3, 1.3)):
        free = Problem(system, (shortest * turn, longest * turn), start=start, end=end).solve(40)
        assert free.success
        assert free.duration / turn == pytest.approx(share, rel=0.02)
        assert free.cost < found.cost
    # one side only, which the motion that comes back keeps or nearly keeps: 34,000 before at three quarters of a turn
    beside = Problem(system, share * turn, start=start, end={"y": (-np.inf, end["y"])}).solve(40)
    assert beside.success
    assert beside.cost <= found.cost * (1 + 1e-3)
    circle = {"time": found.time, "x": found.x, "controls": 0 * found.controls}
    again = Problem(system, share * turn, start=start, end=end).solve(40, transcription="radau", guess=circle)
    assert found.cost == pytest.approx(
        again.cost, rel=1e-3
    )  # order 4 with 9 degrees an interval, against order 5
