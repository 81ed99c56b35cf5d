"""What meshes make of problems: bounds between nodes, optima that are those of a mesh, points without a slope."""

import re

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from alembert.optimal import Phases, Problem, System, duration, effort, examples, mesh, running


def lander():
    """On the Moon, with the least fuel: no thrust, then full thrust."""
    system = System(["h", "v"], ["u"], lambda s: [s.v, s.u - 1.5])
    ends = {"start": {"h": 10, "v": -2}, "end": {"h": 0, "v": 0}}
    return Problem(system, (1.0, 10.0), **ends, limits={"u": (0, 3)}, cost=running(lambda s: s.u))


@pytest.mark.parametrize("transcription", ["hermite-simpson", "radau"])
def test_controls_keep_their_bounds_at_every_time(transcription):
    """Polynomials through values within bounds leave them in between, by up to an eighth of the jump; these must not."""
    solution = lander().solve(20, transcription=transcription)
    assert solution.success
    u = solution.control_at(np.linspace(0, solution.duration, 2001))
    assert u.min() >= -1e-9  # rounding of sums of three numbers of size 3
    assert u.max() <= 3 + 1e-9
    assert solution.cost >= 2 * np.sqrt(17) - 1e-6  # nothing that keeps the bounds takes less fuel
    assert solution.cost == pytest.approx(2 * np.sqrt(17), rel=1e-2)
    assert solution.accuracy.outside == ()
    assert solution.accuracy.remarks == []


def test_states_beyond_their_bounds_between_nodes_are_told():
    """One step with u = -1 to all bounds at its nodes: x = t - t^2/2 is 0.5 in the middle."""
    free = System(["x", "v"], ["u"], lambda s: [s.v, s.u])
    ends = {"start": {"x": 0, "v": 1}, "end": {"x": 0, "v": -1}}
    swing = Problem(free, 2.0, **ends, limits={"x": (-1, 0.3)}).solve(1, transcription="rk4")
    assert swing.success
    assert "between nodes x is beyond its bound by 0.2 at t = 1 s" in swing.message
    assert swing.accuracy.outside[0].amount == pytest.approx(0.2, abs=1e-7)


def test_an_optimum_of_the_mesh_is_no_success():
    """The hanging chain has 5.0685; controls that alternate cheat a quadrature that looks at their points only."""
    chain = System(["x", "E"], ["u"], lambda s: [s.u, ca.sqrt(1 + s.u**2)])
    problem = Problem(
        chain,
        1.0,
        start={"x": 1, "E": 0},
        end={"x": 3, "E": 4},
        cost=running(lambda s: s.x * ca.sqrt(1 + s.u**2)),
    )
    false = problem.solve(10, transcription="hermite-simpson")
    assert false.converged
    assert false.status == "coarse"
    assert not false.success
    assert false.cost < 0.995 * 5.0685  # one of several false optima of this mesh, all below the least cost
    assert false.accuracy.cost_of_controls > 5.0685 - 1e-3
    assert (
        "an optimum of this mesh rather than of the problem: the cost of these controls is" in false.message
    )
    true = problem.solve(20, transcription="rk4")
    assert true.success
    assert true.accuracy.worst < 1e-6


def test_the_accuracy_has_the_order_of_the_method():
    """Errors of single intervals of order p + 1, of which there are N: their sum falls by 2^p."""
    system = System(["x"], ["u"], lambda s: [-(s.x**3) + s.u])
    problem = Problem(system, 1.0, start={"x": 1}, end={"x": 0.2}, cost=effort())
    one, two = (problem.solve(n, transcription="midpoint").accuracy.total for n in (8, 16))
    assert np.log2(one / two) == pytest.approx(2.0, abs=0.3)
    assert "accuracy: intervals are off by" in str(problem.solve(8, transcription="midpoint").accuracy)


def test_controls_without_effect_at_first_order():
    """u^2 has no slope at the guess u = 0, and no motion is impossible for that."""
    system = System(["x"], ["u"], lambda s: [s.u**2])
    problem = Problem(system, 1.0, start={"x": 0}, end={"x": 1}, cost=effort())
    solution = problem.solve(10, transcription="rk4")
    assert solution.success
    assert solution.cost == pytest.approx(0.5, abs=1e-6)
    assert "begun from controls that move" in solution.message
    never = problem.replace(end={"x": -1}).solve(10, transcription="rk4", iterations=200)
    assert not never.converged


def test_what_does_not_move_is_not_off():
    """Straight across a river, held up against the current: x stays 0, up to rounding."""
    river = System(["x", "y"], ["a"], lambda s: [ca.cos(s.a) + 0.6, ca.sin(s.a)])
    problem = Problem(river, (0.5, 5.0), start={"x": 0, "y": 0}, end={"x": 0, "y": 1}, cost=duration())
    guess = {"time": [0, 1.5], "x": [[0, 0], [0, 1]], "controls": [[2.0], [2.0]]}
    solution = problem.solve(10, guess=guess, transcription="rk4")
    assert solution.success, solution.message
    assert solution.duration == pytest.approx(1.25, abs=1e-6)  # 1/sqrt(1 - 0.6^2)


def lag(rate):
    """x follows the cosine at this rate, beside what is steered."""
    system = System(["x", "y"], ["u"], lambda s: [-rate * (s.x - ca.cos(s.t)), s.u])
    return Problem(system, 1.0, start={"x": 1, "y": 0}, end={"y": 1}, cost=effort()).solve(
        4, transcription="radau"
    )


def test_stiff_motions_are_judged_by_implicit_steps():
    """x is behind the cosine by 1e-9 of its slope, and what is steered is linear: nothing is off."""
    assert lag(1e9).success
    assert (
        lag(1e9).accuracy.worst < 1e-6
    )  # trapezoidal costs of a constant, and steps (2) of a slope that is constant
    fast = System(["x", "z"], ["u"], lambda s: [s.z - s.x, 1e6 * (s.u - s.z)])
    behind = Problem(fast, 2.0, start={"x": 0, "z": 1}, end={"x": 0.5}).solve(20, transcription="radau")
    assert behind.accuracy.parts <= 64  # steps of order 2 with their errors taken out: 1024 without
    example = examples.hypersensitive()  # 6.7241, with nodes where something happens
    even = example.problem.solve(59, transcription="radau", guess=example.options["guess"])
    assert even.cost > 100
    assert even.status == "coarse"
    t, total = even.time, 0.0
    for k in range(even.steps):  # what these controls cost, by a method of SciPy's

        def rates(when, z, k=k):
            share = np.array([(when - t[k]) / (t[k + 1] - t[k])])
            u = even.control_within(np.array([k]), share)[0, 0]
            return [u - z[0] ** 3, z[0] ** 2 + u**2]

        total += solve_ivp(rates, t[k : k + 2], [even.x[k, 0], 0], method="LSODA", rtol=1e-6).y[1, -1]
    # errors are known to a tenth of themselves
    assert even.accuracy.cost_of_controls == pytest.approx(total, abs=0.1 * abs(total - even.cost))


def test_a_motion_that_runs_away_is_not_judged():
    """Radau's method steps over growth by exp(1e9): fine steps either do, too, or run away."""
    solution = lag(-1e9)
    assert str(solution.accuracy).startswith("accuracy: not known")
    assert "not judged: within an interval the motion is too fast for any fine steps" in solution.message


def test_an_optimum_that_errors_are_worth_much_of_is_none():
    """Acrobots on 50 steps are off by a quarter of their motion, and seem to cost half or three quarters of what they do."""
    for example in (examples.acrobot(), examples.acrobot_from_1_0()):
        solution, fine = example.solve(50), example.solve()
        assert solution.converged
        assert solution.status == "coarse"
        assert not solution.success
        assert fine.success
        assert solution.cost < 0.8 * fine.cost
        assert solution.accuracy.total < 0.5
        assert fine.accuracy.worth < 0.05 < 0.1 < solution.accuracy.worth
        assert re.search(
            r"the errors of its intervals are worth \d+% of the cost; take more steps or", solution.message
        )


@pytest.mark.parametrize("transcription", ["rk4", "hermite-simpson", "dmoc"])
def test_what_errors_are_worth_is_how_the_cost_changes(transcription):
    """(2) with signs: to first order, the cost without the errors of the intervals is J + sum lambda' (X - x)."""
    problem = examples.swing_up().problem
    solution, fine = (problem.solve(N, transcription=transcription) for N in (20, 640))
    ends, costs, _ = mesh.FineSteps(solution).run(16)
    # controls of the coarse mesh are not those of the fine one: what that costs is of second order, as is half of the rest
    found = float(mesh._worth(solution, ends).sum() + costs.sum() - solution.cost)
    assert found == pytest.approx(fine.cost - solution.cost, abs=0.01 * fine.cost)
    assert abs(found) <= solution.accuracy.worth * abs(solution.cost) * (1 + 1e-6) + abs(
        costs.sum() - solution.cost
    )


def test_a_rough_mesh_is_told():
    """The four-bar on 12 steps is off by a seventh of its motion, while its cost is right to 2 %."""
    solution = examples.four_bar().solve(12)
    assert solution.success
    assert 0.1 < solution.accuracy.total < 0.5
    assert re.search(
        r"a rough mesh: .* is off by \d+% of its way, over all intervals; see whether", solution.message
    )


def test_the_default_transcription_gives_way_to_one_control_in_each_interval():
    """The hanging chain (5.0685) cheats between the points of hermite-simpson, which leaves the heading of a boat open."""
    chain = System(["x", "s"], ["u"], lambda s: [s.u, ca.sqrt(1 + s.u**2)])
    ends = {"start": {"x": 1, "s": 0}, "end": {"x": 3, "s": 4}}
    problem = Problem(chain, 1.0, **ends, cost=running(lambda s: s.x * ca.sqrt(1 + s.u**2)))
    solution, chosen = problem.solve(50), problem.solve(50, transcription="hermite-simpson")
    assert chosen.status == "coarse"
    assert chosen.cost < 5
    assert solution.success
    assert solution.cost == pytest.approx(5.0685, abs=2e-4)
    assert "by 'rk4', with one control in each interval: 'hermite-simpson' had an optimum" in solution.message
    boat = System(["x", "y"], ["heading"], lambda s: [ca.cos(s.heading) + 0.5 * s.y, ca.sin(s.heading)])
    ends = {"start": {"x": 3.66, "y": -1.86}, "end": {"x": 0, "y": 0}}
    problem = Problem(boat, (0.1, 100), **ends, cost=duration())
    solution, finer = problem.solve(50), problem.solve(50, accuracy=1e-4)
    assert solution.success
    assert "left the controls open between its points" in solution.message
    assert (
        np.abs(np.diff(np.sin(solution.controls), 2, axis=0)).max() < 0.1
    )  # no zigzag; whole turns do not matter
    assert finer.success
    assert finer.transcription == "rk4"
    assert "not reached" not in finer.message
    # the same boat with a unit vector as its control, whose controls are determined
    vector = System(["x", "y"], ["a", "b"], lambda s: [s.a + 0.5 * s.y, s.b])
    path = {"unit": (lambda s: s.a**2 + s.b**2, 1, 1)}
    known = Problem(vector, (0.1, 100), **ends, cost=duration(), path=path).solve(100)
    assert solution.cost == pytest.approx(known.cost, rel=1e-4)
    assert finer.cost == pytest.approx(known.cost, rel=1e-5)


def test_a_motion_that_costs_nothing_is_not_coarse():
    """A crank with enough speed goes round by itself: the least effort is 0 from the guess on, and errors of the mesh are no
    share of that. They are of the order of 1e-6 of the motion."""
    crank = System(["angle", "speed"], ["u"], lambda s: [s.speed, s.u - 0.3 * ca.sin(s.angle)])
    turn = Problem(crank, 2.0, start={"angle": 0}, end={"angle": 2 * np.pi}).solve(20)
    assert turn.success, turn.message
    assert turn.accuracy.total < 1e-4
    links = {"turn": {"angle": lambda s: s.angle - 2 * np.pi}}
    again = Phases({"turn": Problem(crank, 2.0)}, cyclic=True, links=links).solve(20)
    assert again.success, again.message
    x = again["turn"].x
    np.testing.assert_allclose(x[-1] - x[0], [2 * np.pi, 0.0], atol=1e-9)
