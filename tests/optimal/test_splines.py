"""B-splines of the driven joints, the others integrated (Sohl and Bobrow 2001, section 5)."""

import os
import signal

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.optimal import Problem, System, duration, effort, solve_splines, terminal
from alembert.optimal.shooting import Shooting

UPRIGHT = np.pi / 2


def acrobot(q1=-1.0, T=3.0, **more):
    return Problem(
        al.library.acrobot(), T, start={"q": [q1, 0], "v": 0}, end={"q": [UPRIGHT, 0], "v": 0}, **more
    )


def satellite():
    model = al.library.satellite()
    rest = {"q": model.neutral(), "v": 0}
    rotors = [joint.name for joint in model.joints if joint.type.nv == 1]
    return Problem(model, (1.0, 3.0), start=rest, actuated=rotors, cost=effort() + duration())


@pytest.mark.parametrize(
    "problem",
    [
        Problem(al.library.two_link(), (1.0, 3.0), start={"q": [0, 0], "v": 0}, end={"q": [1, 0], "v": 0}),
        acrobot(
            T=(1.0, 3.0), limits={"tau": 10, "v": 5}, cost=effort() + terminal(lambda s: s.q[0] ** 2 * s.v[1])
        ),
        acrobot(T=2.0, path={"height": (lambda s: s.q[0] + s.tau[1], -3, 3)}),
        satellite(),
    ],
    ids=["all driven", "passive joint, free time", "path", "passive free body"],
)
def test_slopes_are_those_of_differences(problem):
    """Central differences with 1e-5 leave about 1e-9 relative to the largest slope."""
    shooting = Shooting(problem, 20, 7, 5)
    rng = np.random.default_rng(0)
    z = 0.3 * rng.normal(size=shooting.unknowns)
    if problem.is_free:
        z[-1] = 2.0
    at, h = shooting.evaluate(z), 1e-5
    for k, along in enumerate(np.eye(len(z))):
        plus, minus = shooting.evaluate(z + h * along), shooting.evaluate(z - h * along)
        for name in ("cost", "start", "end", "path", "controls"):
            slope = getattr(at, f"{name}_slope")
            difference = (getattr(plus, name) - getattr(minus, name)) / (2 * h)
            largest = max(1.0, np.max(np.abs(slope), initial=0.0))
            np.testing.assert_allclose(slope[..., k], difference, atol=1e-7 * largest)


def test_arm_converges_to_the_optimum_from_above():
    """The 2R arm of section 5.1. Spaces of 8, 12 and 20 control points; the first is in no other, but close to one."""
    problem = Problem(
        al.library.two_link(), 1.0, start={"q": [0, 0], "v": 0}, end={"q": [UPRIGHT, 0], "v": 0}
    )
    best = problem.solve(400)
    found = [solve_splines(problem, 100, control_points=K, guess=best) for K in (8, 12, 20)]
    assert all(s.success for s in found)
    above = [s.cost / best.cost - 1 for s in found]
    assert above[0] > above[1] > above[2] > -1e-4  # DMOC with 400 steps is of order 2
    assert above[2] < 0.01
    np.testing.assert_allclose(found[2].q, best.q[::4], atol=0.05)


@pytest.mark.parametrize("q1", [-1.0, -1.3])
def test_acrobot_swings_up(q1):
    """Section 5.2: kept conditions, efforts that an independent simulation turns into the same motion."""
    solution = solve_splines(acrobot(q1))
    assert solution.status == "solved"
    np.testing.assert_allclose(solution.q[0], [q1, 0], atol=1e-9)
    np.testing.assert_allclose(solution.q[-1], [UPRIGHT, 0], atol=1e-6)
    np.testing.assert_allclose(solution.v[[0, -1]], 0, atol=1e-6)
    assert solution.violations() == []
    assert "every constraint is kept" in solution.diagnosis()
    # the unstable motion multiplies what order 4 leaves in the efforts between nodes
    assert solution.check.largest < 1e-2
    finer = solve_splines(acrobot(q1), 400, guess=solution)
    assert finer.cost == pytest.approx(solution.cost, rel=1e-5)
    assert finer.check.largest < solution.check.largest / 4
    # the same optimum, from other rules: the effort's integral
    N = finer.steps
    tau = finer.node_controls[:, 0] ** 2 / 2
    simpson = (tau[0] + tau[-1] + 4 * tau[1::2].sum() + 2 * tau[2:-1:2].sum()) * finer.duration / N / 3
    assert finer.cost == pytest.approx(simpson, rel=1e-5)


def test_branched_acrobot_swings_up():
    """Section 5.3."""
    problem = Problem(
        al.library.branched_acrobot(),
        3.0,
        start={"q": [-1.0, 0, 0], "v": 0},
        end={"q": [UPRIGHT, 0, 0], "v": 0},
    )
    solution = solve_splines(problem, 100, control_points=10)
    assert solution.success
    np.testing.assert_allclose(solution.q[-1], [UPRIGHT, 0, 0], atol=1e-6)
    np.testing.assert_allclose(solution.v[-1], 0, atol=1e-6)
    assert solution.efforts.shape == (100, 3)
    np.testing.assert_array_equal(solution.efforts[:, 0], 0)


def test_limits_hold_at_the_nodes_and_the_time_is_found():
    free = solve_splines(acrobot(), 100, control_points=12)
    largest = 0.9 * np.abs(free.node_controls).max()
    problem = acrobot(T=(2.0, 4.0), limits={"tau": largest}, cost=effort() + duration(5.0))
    solution = solve_splines(problem, 100, control_points=12, guess=free)
    assert solution.success
    assert np.abs(solution.node_controls).max() <= largest + 1e-6
    assert 2.0 <= solution.duration <= 4.0
    open_time = acrobot(T=(2.0, 4.0), cost=effort() + duration(5.0))
    assert solve_splines(open_time, 100, control_points=12, guess=free).cost < free.cost + 15.0
    assert solution.dimensions() == (13, 6)  # driven q and v at the start, four conditions at the end


def test_what_others_have_too(tmp_path):
    solution = solve_splines(acrobot(), 60, control_points=12)
    solution.save(tmp_path / "motion.npz")
    again = solve_splines(acrobot(), 60, control_points=12, guess=tmp_path / "motion.npz")
    assert again.cost == pytest.approx(solution.cost, rel=1e-6)
    assert "solved: cost" in solution.summary()
    assert "60 steps of splines" in repr(solution)
    np.testing.assert_allclose(solution.control_at(solution.time), solution.node_controls, atol=1e-9)
    assert solution.momenta.shape == (61, 2)
    np.testing.assert_allclose(solution.motion().efforts[:, 1], solution.node_controls[:, 0], atol=1e-9)
    for name in ("costates", "multipliers"):
        with pytest.raises(UnsupportedError, match=f"solution.{name}: splines give none"):
            getattr(solution, name)
    with pytest.raises(UnsupportedError, match="sensitivities: splines give none"):
        solution.sensitivities()
    with pytest.raises(UnsupportedError, match="gains: ipopt gives none"):
        _ = solution.gains


def test_by_solve_with_progress_and_interruption():
    lines = []

    def stop(i):
        lines.append(i)
        if i.number == 2:
            raise KeyboardInterrupt

    options = {"transcription": "splines", "control_points": 12}
    solution = acrobot().solve(60, **options, progress=stop)
    assert solution.status == "interrupted"
    assert "this is the iterate that was reached" in solution.message
    assert [i.number for i in lines] == [0, 1, 2]
    assert solution.iterations == 2
    assert np.isfinite(solution.cost)
    stopped = acrobot().solve(20, solver="ipopt", progress=stop)
    assert stopped.status == "interrupted"
    for wrong in ({"solver": "fatrop"}, {"nodes": [0, 1]}, {"hessian": "exact"}):
        with pytest.raises(UnsupportedError, match="leave solver, nodes and hessian out"):
            acrobot().solve(60, **options, **wrong)
    with pytest.raises(ArgumentError, match="`control_points` is for transcription='splines'"):
        acrobot().solve(60, control_points=12)


def test_interrupt_by_signal():
    """Ctrl-C while IPOPT works; the handler is as before afterwards."""
    before = signal.getsignal(signal.SIGINT)

    def press(i):
        if i.number == 1:
            os.kill(os.getpid(), signal.SIGINT)

    solution = acrobot().solve(20, solver="ipopt", progress=press)
    assert solution.status == "interrupted"
    assert signal.getsignal(signal.SIGINT) is before


def test_an_end_out_of_reach_is_said():
    solution = solve_splines(acrobot(limits={"tau": 0.01}), 40, control_points=8, iterations=30)
    assert not solution.success
    assert solution.violations()
    assert "the worst:" in solution.diagnosis()
    short = solve_splines(acrobot(), 40, control_points=8, iterations=1)
    assert short.status == "iterations"
    assert "raise `iterations`" in short.message


def whole_satellite():
    model = al.library.satellite()
    return Problem(model, 1.0, actuated=[joint.name for joint in model.joints if joint.type.nv])


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (lambda: Problem(System(["x"], ["u"], lambda s: [s.u]), 1.0), "for models, not for a System"),
        (lambda: Problem(al.library.acrobot(), 1.0, periodic=True), "splines and a periodic motion"),
        (lambda: acrobot(limits={"rate": 1.0}), "limits on the rate of a control"),
        (lambda: acrobot(limits={"tau": (1.0, 1.0)}), "limits that leave one value only"),
        (whole_satellite, "the driven joint .* and B-splines are for joints whose"),
    ],
)
def test_refused(problem, message):
    with pytest.raises(UnsupportedError, match=message):
        solve_splines(problem())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps is 0, expected a whole number of at least 1"),
        ({"degree": 2}, "degree is 2, expected a whole number of at least 3; accelerations"),
        ({"control_points": 5}, "control_points is 5, expected a whole number of at least 6"),
        ({"iterations": True}, "iterations is True"),
        ({"tolerance": 0}, "tolerance is 0, expected a number between 0 and 1"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ArgumentError, match=message):
        solve_splines(acrobot(), **options)


def test_passive_joints_need_a_start():
    problem = Problem(al.library.acrobot(), 1.0, start={"q": [0, 0]}, end={"v": 0})
    with pytest.raises(ArgumentError, match="the start does not fix 'v' of 'shoulder', which is not driven"):
        solve_splines(problem)


def test_a_guess_that_runs_away():
    guess = {"time": [0, 1.5, 3], "q": [[0, 0], [0, 1e100], [0, 0]]}
    with pytest.raises(NumericalError, match="the motion of the guess is not finite"):
        solve_splines(acrobot(), 20, guess=guess)
