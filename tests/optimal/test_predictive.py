"""Problems solved again and again while a motion goes on: inputs and limits at run time, shifts, predictive control."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.optimal import PredictiveController, Problem, System, effort, running
from alembert.simulate import ForceElement


def balance(**more):
    """The pole of a cart is to stand, and the cart at a target."""
    cost = effort(1e-2) + running(lambda s: 10 * (s.q[0] - s.target[0]) ** 2 + 10 * s.q[1] ** 2)
    given = {"start": {"q": [0.0, 0.1], "v": 0}, "inputs": {"target": [0.0]}, "limits": {"tau": 20.0}}
    return Problem(al.library.cart_pole(), 1.0, **given | {"cost": cost} | more)


@pytest.fixture(scope="module")
def prepared():
    return balance().prepare(20)


def same(one, other):
    return one.cost == other.cost and all(
        np.array_equal(a, b) for a, b in ((one.x, other.x), (one.controls, other.controls))
    )


def test_what_was_solved_before_leaves_no_trace(prepared):
    """Arrays and compiled calls are used again: the same numbers give the same bits."""
    first = prepared.solve()
    kept = first.x.copy(), first.multipliers["tau slide"].copy(), first.gains.copy()
    prepared.solve(start={"q": [0.3, -0.2], "v": [0.1, 0.0]}, inputs={"target": [0.4]}, limits={"tau": 5.0})
    prepared.solve(start={"q": [0.3, -0.2], "v": [0.1, 0.0]}, guess=first, iterations=2)
    assert same(prepared.solve(), first)
    assert same(balance().prepare(20).solve(), first)
    for before, now in zip(kept, (first.x, first.multipliers["tau slide"], first.gains), strict=True):
        np.testing.assert_array_equal(before, now)


def test_inputs_and_limits_at_run_time(prepared):
    """As the problem gives that states them itself, to the tolerance of 1e-8 of both."""
    start = {"q": [0.0, 0.4], "v": 0}
    found = prepared.solve(start=start, inputs={"target": [0.3]}, limits={"tau": (-4.0, 3.0)})
    other = balance(start=start, inputs={"target": [0.3]}, limits={"tau": (-4.0, 3.0)}).solve(20)
    assert found.success
    assert found.cost == pytest.approx(other.cost, rel=1e-7)
    assert found.controls.min() >= -4.0
    assert found.controls.max() == pytest.approx(3.0, abs=1e-5)  # the bound holds
    wide = prepared.solve(start=start, inputs={"target": [0.3]})
    assert wide.cost < found.cost


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"inputs": {"aim": 1.0}}, "the problem has no input 'aim'"),
        ({"inputs": {"target": [1.0, 2.0]}}, "input 'target' has 2 entries, expected 1"),
        ({"inputs": {"target": "left"}}, "input 'target' is 'left', expected a finite number or a vector"),
        ({"limits": {"v": 1.0}}, "the problem has no limits of"),
        ({"limits": {"rate": 1.0}}, "those of rates are part of what is compiled"),
        ({"shift": -1.0}, "shift is -1.0, expected seconds, 0 or more"),
    ],
)
def test_refused(prepared, given, said):
    with pytest.raises((ArgumentError, UnsupportedError), match=said):
        prepared.solve(**given)


def test_limits_of_the_path_at_run_time():
    system = System(["x"], ["u"], lambda s: [s.u])
    path = {"room": (lambda s: s.x + 0 * s.t, -1.0, 2.0)}
    problem = Problem(system, 1.0, start={"x": 0}, path=path, cost=effort() + running(lambda s: -s.x))
    prepared = problem.prepare(8, transcription="rk4")
    assert prepared.solve(limits={"room": (-1.0, 0.1)}).x.max() == pytest.approx(0.1, abs=1e-6)
    assert prepared.solve().x.max() == pytest.approx(0.5, abs=1e-6)  # x = t - t^2/2
    with pytest.raises(ArgumentError, match=r"limits 'room' is 3, expected a pair \(lower, upper\)"):
        prepared.solve(limits={"room": 3})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"inputs": [1]}, r"inputs is \[1\], expected numbers or vectors by name"),
        ({"inputs": {"q": 1.0}}, "inputs: 'q' is no name for an input"),
    ],
)
def test_inputs_that_cannot_be(given, said):
    with pytest.raises(ArgumentError, match=said):
        balance(**given)


def test_a_plan_that_is_followed_needs_no_steps(prepared):
    """With the plant exactly as planned the shifted plan is nearly one: fewer steps than without the shift."""
    plan = prepared.solve()
    there = {"q": plan.q[2], "v": plan.v[2]}
    moved = prepared.solve(start=there, guess=plan, shift=0.1)
    cold = prepared.solve(start=there)
    assert moved.success
    assert moved.iterations < cold.iterations
    assert moved.cost == pytest.approx(cold.cost, rel=1e-6)


def test_one_step_in_each_sample_converges(prepared):
    """Real-time iterations with a state that stays: their limit is the solution."""
    start = {"q": [0.1, 0.2], "v": [0.0, 0.0]}
    plan = prepared.solve(start=start, iterations=1)
    assert plan.status == "iterations"
    for _ in range(40):
        plan = prepared.solve(start=start, guess=plan, iterations=1)
    assert plan.cost == pytest.approx(prepared.solve(start=start).cost, rel=1e-5)


@pytest.mark.parametrize(("delay", "compiled"), [(0.0, False), (0.03, True)])
def test_the_cart_goes_to_its_target(delay, compiled):
    """Also where controls come late: the problem then begins where the motion will be; and with the compiled solver."""
    aim = {"target": lambda t: 0.2 if t > 0.5 else 0.0}
    law = PredictiveController(balance(), 20, period=0.05, delay=delay, inputs=aim, compiled=compiled)
    run = al.simulate(
        al.library.cart_pole(), [0.0, 0.2], [0, 0], duration=2.5, controller=law.sampled, step=0.01
    )
    assert len(law.samples) in (50, 51)
    assert {s.status for s in law.samples} <= {"solved", "acceptable"}
    assert abs(run.q[-1, 0] - 0.2) < 0.05
    assert abs(run.q[-1, 1]) < 0.02
    again = al.simulate(
        al.library.cart_pole(), [0.0, 0.2], [0, 0], duration=2.5, controller=law.sampled, step=0.01
    )
    np.testing.assert_array_equal(run.q, again.q)
    assert law.plan.converged
    if compiled:  # another way through the same iterations: samples end with errors below 1e-6
        plain = PredictiveController(balance(), 20, period=0.05, delay=delay, inputs=aim)
        one = [
            law(*sample)
            for law in (law, plain)
            for sample in [(0.0, [0.0, 0.2], [0, 0]), (0.05, [0.0, 0.21], [0, 0])]
        ]
        np.testing.assert_allclose(one[1], one[3], atol=1e-4)


def test_failures_follow_the_policy():
    law = PredictiveController(balance(), 20, period=0.05, iterations=0, on_failure="raise")
    law(0.0, [0.0, 0.2], [0, 0])  # without a plan to go on from, as many as it takes
    with pytest.raises(NumericalError, match=r"PredictiveController: at t = 0\.05 s: iterations"):
        law(0.05, [1.5, 1.0], [3.0, 0.0])
    for policy, wanted in (("plan", 1), ("hold", 0)):
        law = PredictiveController(balance(), 20, period=0.05, on_failure=policy)
        first = law(0.0, [0.0, 0.2], [0, 0])
        plan = law.plan
        law._options["iterations"] = 0
        second = law(0.05, [1.5, 1.0], [3.0, 0.0])  # far from the plan, with no step to get there
        assert law.plan is plan
        expected = plan.control_at(0.05)[0] if wanted else first[0]
        assert second[0] == expected
        law(1.0, [1.5, 1.0], [3.0, 0.0])  # the end of the horizon
        if policy == "plan":
            said = r"at t = 1.05 s: no solve was good since t = 0 s, and the plan of then ends at 1 s; .* iterations"
            with pytest.raises(NumericalError, match=said):
                law(1.05, [1.5, 1.0], [3.0, 0.0])
        else:
            assert law(1.05, [1.5, 1.0], [3.0, 0.0])[0] == first[0]


def test_families(prepared):
    """Each from the one before; alone, in any order, they are the same bits as a solve of its own."""
    cases = [{"start": {"q": [x, 0.1], "v": 0}, "inputs": {"target": [x / 2]}} for x in (0.1, 0.2, 0.15)]
    alone = [prepared.solve(**case) for case in cases]
    for one, other in zip(prepared.solve_each(cases, follow=False), alone, strict=True):
        assert same(one, other)
    followed = prepared.solve_each(cases, tolerance=1e-9)
    assert sum(s.iterations for s in followed) < sum(s.iterations for s in alone)
    for one, other in zip(followed, alone, strict=True):
        assert one.converged
        assert one.cost == pytest.approx(other.cost, rel=1e-6)  # of the tolerance 1e-8 of the scaled cost
    with pytest.raises(ArgumentError, match="solve_each: case 1 is 3, expected what changes by name"):
        prepared.solve_each([{}, 3])
    with pytest.raises(ArgumentError, match="solve_each: case 0 has no 'mass'"):
        prepared.solve_each([{"mass": 2.0}])


def test_one_step_is_the_tangent(prepared):
    """From a solution to that of another start: what a Newton step leaves is of second order."""
    base = prepared.solve(start={"q": [0.1, 0.0], "v": 0}, tolerance=1e-10)
    errors = []
    for way in (0.04, 0.02, 0.01):
        start = {"q": [0.1 + way, 0.0], "v": 0}
        exact = prepared.solve(start=start, guess=base, tolerance=1e-10)
        step = prepared.solve(start=start, guess=base, iterations=1)
        errors.append(np.abs(step.controls - exact.controls).max())
    order = np.polyfit(np.log([0.04, 0.02, 0.01]), np.log(errors), 1)[0]
    assert order == pytest.approx(2, abs=0.2)  # terms of third order: a tenth of those of second at 0.04


def test_from_sensors():
    def estimate(t, readings):
        return readings["where"][:2], readings["where"][2:]

    law = PredictiveController(balance(), 20, period=0.05, reads=("where",), estimate=estimate)
    assert law.sampled.reads == ("where",)
    tau = law._from_sensors(0.0, {"where": np.array([0.0, 0.2, 0.0, 0.0])})
    np.testing.assert_array_equal(
        tau, PredictiveController(balance(), 20, period=0.05)(0.0, [0, 0.2], [0, 0])
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"period": 0.0}, "period is 0.0, expected seconds"),
        ({"delay": -1.0}, "delay is -1.0, expected seconds"),
        ({"on_failure": "cry"}, "no policy on_failure 'cry'"),
        ({"reads": ("where",)}, "reads needs `estimate`"),
        ({"feasible": -1.0}, "feasible is -1.0, expected a number from 0 on"),
        ({"iterations": "few"}, "iterations is 'few'"),
    ],
)
def test_controllers_that_cannot_be(given, said):
    with pytest.raises(ArgumentError, match=said):
        PredictiveController(balance(), 20, **{"period": 0.05} | given)


def test_problems_that_are_no_horizon():
    with pytest.raises(UnsupportedError, match="the duration is the horizon, and cannot be free"):
        PredictiveController(balance(cost=effort()).replace(duration=(0.5, 1.0)), 20, period=0.05)
    system = Problem(System(["x"], ["u"], lambda s: [s.u]), 1.0, start={"x": 0})
    with pytest.raises(UnsupportedError, match="the problem is of a System"):
        PredictiveController(system, 20, period=0.05)
    with pytest.raises(ArgumentError, match="start does not state 'q hinge'"):
        PredictiveController(balance(start={"q": {"slide": 0.0}, "v": 0}), 20, period=0.05)


def test_late_controls_are_foreseen_however_late_they_are(monkeypatch):
    """The prediction is the motion itself, to the error of four steps of rk4 in a period: (h/tau)^5 with h = 10 ms and the
    0.2 s in which a pole falls is 1e-6. Delays of many periods, and those that are no multiples of them."""
    for delay in (0.3, 0.03):
        law = PredictiveController(balance(), 10, period=0.02, delay=delay, iterations=3, feasible=np.inf)
        seen, ahead = [], law._ahead
        monkeypatch.setattr(law, "_ahead", lambda t, q, v: seen.append((t, ahead(t, q, v))) or seen[-1][1])  # noqa: B023
        run = al.simulate(
            al.library.cart_pole(),
            [0.0, 0.02],
            [0, 0],
            duration=0.4 + delay,
            controller=law.sampled,
            step=0.01,
        )
        foreseen = [(round((t + delay) / 0.01), np.r_[q, v]) for t, (q, v) in seen if t < 0.4]
        assert len(foreseen) == 20
        for k, x in foreseen:
            np.testing.assert_allclose(x, np.r_[run.q[k], run.v[k]], rtol=0, atol=1e-5)
        assert len(law._used) <= delay / 0.02 + 3  # what has acted is forgotten


def test_one_plan_for_one_motion():
    """The end of a run is asked again where it goes on, with the same answer; a batch is refused."""
    law = PredictiveController(balance(), 10, period=0.05)
    model = al.library.cart_pole()
    first = law(0.0, [0.0, 0.2], [0, 0])
    np.testing.assert_array_equal(law(0.0, [0.0, 0.2], [0, 0]), first)
    assert len(law.samples) == 1
    with pytest.raises(UnsupportedError, match=r"asked twice at t = 0.05 s, for different states"):
        al.simulate(model, [[0.0, 0.2], [0.0, 0.1]], [0, 0], duration=0.1, controller=law.sampled, step=0.05)


def test_what_the_compiled_solver_does_not_find_is_solved_with_python():
    """A pole that is pushed over within a sample: other bounds hold, and the plan before is no start for compiled code."""
    law = PredictiveController(balance(), 20, period=0.05, compiled=True, iterations=20)
    for k, (angle, rate) in enumerate([(0.1, 0.0), (0.1, 0.0), (2.5, 5.0), (0.1, 0.0)]):
        law(0.05 * k, np.array([0.0, angle]), np.array([0.0, rate]))
    assert [sample.by for sample in law.samples] == ["prepared", "compiled", "prepared", "compiled"]
    assert law.fallbacks == 1
    assert all(sample.status == "solved" for sample in law.samples if sample.by == "compiled")
    # the push left nothing behind: the same state has the same cost as before, to the tolerance of 1e-6
    assert law.samples[-1].cost == pytest.approx(law.samples[1].cost, rel=1e-6)
    law.reset()
    assert law.fallbacks == 0


def slider():
    builder = al.ModelBuilder("slider", gravity=(0, 0, 0))
    builder.body("mass", al.Inertia.point(1.0), joint=al.Prismatic((1.0, 0, 0)), joint_name="slide")
    return builder.build()


def test_a_reference_that_moves_with_the_time_of_the_run():
    """s.t begins at 0 in every sample; the input `now` makes it the time of the run. What is left of sin(t) is what the cost
    of efforts, 1e-4, leaves, and the samples of 0.1 s, over which it bends by 1/2 0.1^2."""
    model = slider()
    cost = effort(1e-4) + running(lambda s: (s.q[0] - ca.sin(s.now + s.t)) ** 2)
    problem = Problem(model, 1.0, start={"q": [0.0], "v": 0}, cost=cost, inputs={"now": 0.0})
    controller = PredictiveController(problem, 10, period=0.1, inputs={"now": lambda t: t})
    run = al.simulate(model, [0.0], [1.0], duration=3.0, controller=controller.sampled, step=0.02)
    assert abs(run.q[:, 0] - np.sin(run.time)).max() < 5e-3


def test_forces_that_depend_on_the_time_are_refused():
    def gust(t, poses, velocities):
        return [ca.vertcat(0, 0, 0, ca.sin(t), 0, 0)]

    wind = ForceElement("mass", wrenches=gust)
    problem = Problem(slider(), 1.0, start={"q": [0.0], "v": 0}, forces=wind)
    with pytest.raises(UnsupportedError, match="forces or gravity depend on the time, which begins at 0"):
        PredictiveController(problem, 10, period=0.1)


def test_real_time_iterations_need_nothing_but_their_number():
    """One Newton step a sample, also from a start that is far from rest: the loop is as good as with solves."""
    ends = []
    for iterations in (1, 50):
        law = PredictiveController(balance(), 20, period=0.05, iterations=iterations)
        run = al.simulate(
            al.library.cart_pole(), [0.0, 0.3], [0, 0], duration=2.5, controller=law.sampled, step=0.01
        )
        ends.append(run.q[-1])
    np.testing.assert_allclose(*ends, atol=2e-3)  # a hundredth of what the cart moves
