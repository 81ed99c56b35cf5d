"""Optimal motions of models: what DMOC keeps, and how it relates to collocation (Leyendecker et al. 2009, section 7)."""

import numpy as np
import pytest

import alembert as al
from alembert.optimal import Phases, Problem, System, duration, effort, examples
from alembert.optimal.outcome import largest_turn, turn_remark, turns_too_far
from alembert.optimal.solve import Transcribed
from alembert.optimal.time_sweep import Reach

HANGING, UPRIGHT = [-np.pi / 2, 0.0], [np.pi / 2, 0.0]


@pytest.fixture(scope="module")
def pendulum():
    return Problem(al.library.two_link(), 1.0, start={"q": HANGING, "v": 0}, end={"q": UPRIGHT, "v": 0})


@pytest.fixture(scope="module")
def reference(pendulum):
    solution = pendulum.solve(256)
    assert solution.success
    return solution


def test_dmoc_equals_midpoint_collocation_in_momenta(pendulum, reference):
    """The paper: identical solutions for DMOC and the collocation of Hamilton's equations."""
    dmoc = pendulum.solve(32, guess=reference)
    momenta = pendulum.solve(32, guess=reference, transcription="midpoint-momenta")
    assert dmoc.cost == pytest.approx(momenta.cost, rel=1e-9)
    np.testing.assert_allclose(dmoc.q, momenta.q, atol=1e-7)
    np.testing.assert_allclose(dmoc.controls, momenta.controls, atol=1e-5)


def test_dmoc_is_of_second_order(pendulum, reference):
    finest = pendulum.solve(512, guess=reference)
    steps = np.array([16, 32, 64])
    found = [pendulum.solve(int(N), guess=reference) for N in steps]
    for errors in (
        [np.abs(s.q - finest.q[:: 512 // s.steps]).max() for s in found],
        [abs(s.cost - finest.cost) for s in found],
    ):
        assert -np.polyfit(np.log(steps), np.log(errors), 1)[0] > 1.85


@pytest.mark.parametrize(
    ("transcription", "kept"), [("dmoc", True), ("midpoint-momenta", True), ("midpoint", False)]
)
def test_change_of_momentum_is_the_applied_impulse(transcription, kept):
    """Without gravity the momentum of the first joint changes by its torque alone: discretely so in DMOC and in momenta,
    not in velocities."""
    model = al.library.two_link().replace(gravity=(0.0, 0.0, 0.0))
    problem = Problem(model, 1.0, start={"q": HANGING, "v": 0}, end={"q": [0.5, 1.0], "v": 0})
    solution = problem.solve(30, transcription=transcription)
    assert solution.success
    change = np.diff(solution.momenta[:, 0]) - solution.controls[:, 0] / 30
    assert (np.abs(change).max() < 1e-10) == kept


def test_satellite_keeps_zero_momentum():
    """Rotors turn a free body: to the rotation vector (pi/14)(1, 2, 3) in 5 s, h = 0.1."""
    example = examples.satellite()
    solution = example.solve()
    assert solution.success
    assert solution.iterations < 15
    model = example.problem.model
    axis = np.pi / 14 * np.array([1.0, 2.0, 3.0])
    angle = np.linalg.norm(axis)
    wxyz = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis / angle])
    momentum = model.momentum(solution.q, solution.v, about="center_of_mass")
    assert np.abs(momentum).max() < 1e-11 * np.abs(solution.momenta).max() * 50
    np.testing.assert_allclose(np.abs(solution.q[-1, 3:7] @ wxyz), 1, atol=1e-12)
    assert solution.check.largest < 1e-5  # second order, h = 0.1


def test_dimensions_of_the_smallest_form():
    """(2N + 1) n variables and (N + 3) n equations with a force on every joint: 909 and 477 for the satellite."""
    model = al.library.satellite()
    q = model.neutral()
    names = [joint.name for joint in model.joints]
    problem = Problem(model, 5.0, start={"q": q, "v": 0}, end={"q": q, "v": 0}, actuated=names, limits=None)
    from alembert.optimal import guess
    from alembert.optimal.forms import dimensions, smallest
    from alembert.optimal.schemes import scheme
    from alembert.optimal.stages import cut

    assert dimensions(cut(problem, scheme("dmoc"), 50)) == (909, 477)
    pitcher = al.library.pitcher()
    q = pitcher.neutral()
    ends = {"q": q, "v": 0}
    free = Problem(pitcher, (0.1, 1.0), start=ends, end=ends, limits=None)
    stages = cut(free, scheme("dmoc"), 35)
    assert dimensions(stages) == (356, 190)
    x, u, _ = guess.place(stages, guess.make(free, None))
    built = smallest(stages, x, u).program  # what IPOPT really gets, besides the bounds on the duration
    assert (built.size, np.sum(built.lower == built.upper)) == (356, 190)


@pytest.mark.parametrize("solver", ["ipopt", "fatrop"])
def test_solvers_agree(pendulum, reference, solver):
    own = pendulum.solve(40, guess=reference)
    other = pendulum.solve(40, guess=reference, solver=solver)
    assert other.success
    assert other.cost == pytest.approx(own.cost, rel=1e-7)
    np.testing.assert_allclose(other.q, own.q, atol=1e-5)


def test_tracking_with_the_gains_of_the_last_sweep(reference):
    """Feedback brings a disturbed start back to the upright, where open loop falls away."""
    model, end = reference.model, np.array(UPRIGHT)
    q0 = np.array(HANGING) + 0.02
    feedback = reference.controller()
    run = al.simulate(model, q0, np.zeros(2), duration=1.0, step=1e-3, controller=feedback, integrator="rk4")
    open_loop = al.simulate(
        model,
        q0,
        np.zeros(2),
        duration=1.0,
        step=1e-3,
        controller=lambda t, q, v: reference.control_at(t),
        integrator="rk4",
    )
    assert np.abs(run.q[-1] - end).max() < 0.2 * np.abs(open_loop.q[-1] - end).max()


def test_effort_by_joint():
    model = al.library.two_link()
    ends = {"start": {"q": HANGING, "v": 0}, "end": {"q": UPRIGHT, "v": 0}}
    dear = Problem(model, 1.0, **ends, cost=effort({"shoulder": 1.0, "elbow": 100.0})).solve(40)
    cheap = Problem(model, 1.0, **ends).solve(40)
    assert dear.success
    assert np.sum(dear.control("elbow") ** 2) < np.sum(cheap.control("elbow") ** 2)


def test_conditions_that_repeat_each_other_away_from_motions():
    """Momentum is conserved, so that half of the conditions at the end say nothing new, but only at motions of the
    satellite: from guesses that are none multipliers grew to 1e14 in ten steps, and 58 to 321 iterations were taken;
    with limits about ten."""
    example = examples.satellite()
    model, t = example.problem.model, np.linspace(0, 5, 21)
    q = np.tile(model.neutral(), (21, 1))
    waves = np.sin(np.pi * t / 5)[:, None] * np.random.default_rng(1).normal(size=(1, model.nv))
    guess = {"time": t, "q": model.integrate(q, 0.3 * waves), "v": 0.3 * waves}
    assert example.problem.solve(30, guess=guess, iterations=40).converged
    reach = Reach()
    found = np.array([1e9, 1e9, 5.0])
    reach.limit(found, np.abs(found), np.array([True, False, True]))
    np.testing.assert_array_equal(found, [reach.largest, 1e9, 5.0])
    before = reach.largest
    reach.give_way()
    assert reach.largest == 2 * before
    reach.give_way()  # not met again
    assert reach.largest == 2 * before


def test_lost_guesses_give_way_to_a_straight_one(monkeypatch):
    problem = Problem(System(["x"], ["u"], lambda s: [s.u]), 1.0, start={"x": 0}, end={"x": 1})
    given = {"time": [0, 1], "x": [[0], [5]], "controls": [[1], [1]]}
    run, starts = Transcribed._run, []

    def lost(self, attempt, solver):
        outcome = run(self, attempt, solver)
        starts.append(attempt.x[-1, 0])
        if len(starts) == 1:
            outcome.status, outcome.message = "infeasible", "no way"
        return outcome

    monkeypatch.setattr(Transcribed, "_run", lost)
    found = problem.solve(8, transcription="rk4", guess=given)
    assert found.success
    assert starts == [5, 1]
    assert found.message == "solved; begun from a straight motion: no way led on from the guess"
    assert [i.number for i in found.history] == list(range(len(found.history)))
    assert found.cost == pytest.approx(0.5, abs=1e-9)  # u = 1: constant controls are exact


def test_a_start_from_which_nothing_leads_on():
    """The sweep begins again and leaves z where a step puts it; IPOPT and FATROP do not solve this (2026-11-16)."""
    N, rng = 100, np.random.default_rng(0)
    share, up = np.linspace(0, 1, N + 1)[:, None], np.array([np.pi, 0.0])
    sizes = [[0.5 * rng.normal(size=2) for _ in range(2)] for _ in range(19)][-1]
    q = share * up - [np.pi / 2, 0]
    v = np.tile(up / 4, (N + 1, 1))
    for k, size in enumerate(sizes, start=1):
        q = q + size * np.sin(k * np.pi * share)
        v = v + size * k * np.pi / 4 * np.cos(k * np.pi * share)
    problem = Problem(
        al.library.acrobot(lengths=(1.0, 1.0)),
        4.0,
        start={"q": [-np.pi / 2, 0], "v": 0},
        end={"q": [np.pi / 2, 0], "v": 0},
    )
    guess = {"time": np.linspace(0, 4, N + 1), "q": q, "v": v, "controls": np.zeros((N + 1, 1))}
    assert problem.solve(
        N, guess=guess
    ).converged  # 430 iterations to one with turns that 100 steps hardly follow


def test_steps_keep_the_limits_of_speed_and_half_a_turn():
    """Speeds are limited where the nodes are, and along the steps: else the pitcher's steps were four times as fast. With
    five steps an arm would turn by half a turn in one of them, which the solution says."""
    example = examples.pitcher()
    solution = example.solve(8)
    assert solution.converged
    assert solution.status == "coarse"
    speeds = solution._outcome.iterate.z / (solution.duration / 8)
    assert np.abs(speeds).max() < 40 + 1e-6
    assert largest_turn(solution.stages, solution._outcome.iterate)[0] < np.pi
    solution._outcome.iterate.z[3, 1:4] = 0.0, 3.5, 0.0
    assert turns_too_far(solution.stages, solution._outcome.iterate)
    short = turn_remark(solution.stages, solution._outcome.iterate)
    assert short == (
        "shoulder turns by 3.5 rad within a step, where half a turn is the most that has a meaning: take more steps"
    )


@pytest.mark.parametrize(
    ("angle", "known", "room"),
    [
        (np.pi, 3.2430832758, (0.1, 10.0)),
        (np.pi, 3.2430832758, (1e-3, 1e3)),
        (np.pi / 2, 2.42112, (0.1, 10.0)),
    ],
)
def test_a_saddle_is_left(angle, known, room):
    """Bilimoria and Wie (1993): a body with three equal inertias and bounded torques turns fastest beside the axis. About
    it the whole way takes 2 sqrt(angle), and has the slopes of an optimum, which a straight guess leads to."""
    builder = al.ModelBuilder("cube", gravity=(0, 0, 0))
    inertia = al.Inertia(1.0, (0, 0, 0), (1.0, 0, 1.0, 0, 0, 1.0))
    builder.body("cube", inertia, joint=al.Spherical(), joint_name="turn")
    model = builder.build()
    ends = {
        "start": {"q": model.neutral(), "v": 0},
        "end": {"q": [np.cos(angle / 2), 0, 0, np.sin(angle / 2)], "v": 0},
    }
    slew = Problem(model, room, **ends, limits={"tau": {"turn": 1.0}}, cost=duration())
    found = slew.solve(40, transcription="rk4")
    assert found.success
    assert f"begun from a saddle, whose cost is {2 * np.sqrt(angle):.6g}" in found.message
    # controls that are held in each interval switch at nodes, which costs time to second order: 1/40^2 of it
    assert known - 1e-6 < found.duration < known * (1 + 1 / 40**2)
    if room[0] == 0.1:
        together = Phases({"slew": slew}).solve(40, transcription="rk4")
        assert together["slew"].duration == pytest.approx(found.duration, rel=1e-7)
        prepared = slew.prepare(40, transcription="rk4")
        first = prepared.solve()
        assert "begun from a saddle" in first.message
        assert first.duration == pytest.approx(found.duration, rel=1e-7)
        straight = {"time": [0, 2], "q": [model.neutral(), ends["end"]["q"]], "v": np.zeros((2, 3))}
        straight["controls"] = np.zeros((2, 3))
        stopped = prepared.solve(guess=straight, iterations=4)
        assert "perhaps a saddle" in prepared.solve(guess=stopped).message
