"""Controllers, continuous and sampled, drives, prescribed motion, wrenches."""

import re

import casadi as ca
import numpy as np
import pytest
from simulate_helpers import model, state

import alembert as al
from alembert.simulate import Batched, Drive, Measured, Sampled, SpringDamper, simulate
from alembert.simulate.actuators import JointDrives

FIXED = {"duration": 1.0, "step": 0.01, "integrator": "rk4"}


@pytest.fixture(scope="module")
def arm():
    return al.library.two_link()


def law(t, q, v):
    return np.array([20.0, 5.0]) * (np.array([0.5, -0.3]) - q) - 3.0 * v


def symbolic(m):
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv)
    return ca.Function("law", [t, q, v], [ca.DM([20.0, 5.0]) * (ca.DM([0.5, -0.3]) - q) - 3.0 * v])


@pytest.mark.parametrize("integrator", ["rk4", "adams_moulton4", "dop853", "radau"])
def test_symbolic_and_python_controllers_agree(arm, integrator):
    options = {"duration": 1.0, "integrator": integrator, "step": 0.01}
    one = simulate(arm, [0, 0], controller=law, **options)
    other = simulate(arm, [0, 0], controller=symbolic(arm), **options)
    limit = 1e-6 if integrator == "radau" else 1e-11  # there one Jacobian is exact and one is not
    np.testing.assert_allclose(one.q, other.q, rtol=0, atol=limit)
    np.testing.assert_allclose(one.efforts, other.efforts, rtol=0, atol=1e3 * limit)


def test_a_controller_of_mx_is_expanded(arm):
    t, q, v = ca.MX.sym("t"), ca.MX.sym("q", 2), ca.MX.sym("v", 2)
    mx = ca.Function("law", [t, q, v], [ca.DM([20.0, 5.0]) * (ca.DM([0.5, -0.3]) - q) - 3.0 * v])
    one, other = (simulate(arm, [0, 0], controller=c, **FIXED) for c in (mx, symbolic(arm)))
    np.testing.assert_array_equal(one.q, other.q)


def test_controllers_add_up_and_may_name_joints(arm):
    both = [lambda t, q, v: {"shoulder": 2.0}, lambda t, q, v: {"elbow": -1.0}]
    one = simulate(arm, [0.1, 0.2], controller=both, efforts={"elbow": 0.5}, **FIXED)
    other = simulate(arm, [0.1, 0.2], efforts=[2.0, -0.5], **FIXED)
    np.testing.assert_allclose(one.q, other.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(one.efforts, np.broadcast_to([2.0, -0.5], one.v.shape), rtol=0, atol=1e-15)


def test_a_sampled_controller_is_asked_at_its_instants_only(arm):
    asked = []

    def slow(t, q, v):
        asked.append(t)
        return law(t, q, v)

    run = simulate(arm, [0, 0], controller=Sampled(slow, period=0.1), **FIXED)
    np.testing.assert_allclose(asked[:10], 0.1 * np.arange(10), rtol=0, atol=1e-12)
    changes = np.flatnonzero(np.any(np.diff(run.efforts, axis=0) != 0, axis=1)) + 1
    assert set(changes) <= set(range(0, 101, 10))
    assert len(changes) >= 9
    np.testing.assert_array_equal(run.efforts[30], law(0.3, run.q[30], run.v[30]))


@pytest.mark.parametrize("integrator", ["rk4", "variational", "dop853"])
def test_delay_offset_and_quantum(arm, integrator):
    options = {**FIXED, "integrator": integrator}
    control = Sampled(lambda t, q, v: [10 * t + 0.1, 0.0], period=0.1, delay=0.05, quantum=0.25, offset=0.2)
    run = simulate(arm, [0, 0], controller=control, **options)
    expected = [
        0.0 if t < 0.25 - 1e-9 else 10 * (np.floor((t - 0.25) / 0.1 + 1e-9) * 0.1 + 0.2) for t in run.time
    ]
    quantised = 0.25 * np.round(np.array(expected) / 0.25)
    np.testing.assert_allclose(run.efforts[:, 0], quantised, rtol=0, atol=1e-12)
    assert run.efforts[24, 0] == 0.0  # asked at 0.2 s for the first time, answered 0.05 s later
    assert run.efforts[25, 0] == 2.0


def test_several_rates_in_a_fixed_order(arm):
    order = []

    def note(name):
        def answer(t, q, v):
            order.append((round(t, 6), name))
            return np.zeros(2)

        return answer

    simulate(arm, [0, 0], controller=[Sampled(note("fast"), 0.05), Sampled(note("slow"), 0.1)], duration=0.2, step=0.01,
             integrator="rk4")  # fmt: skip
    assert order[:5] == [(0.0, "fast"), (0.0, "slow"), (0.05, "fast"), (0.1, "fast"), (0.1, "slow")]


def test_sampled_control_tends_to_continuous_control(arm):
    options = {"duration": 1.0, "step": 1e-3, "interval": 0.1, "integrator": "rk4"}
    smooth = simulate(arm, [0, 0], controller=symbolic(arm), **options)
    errors = []
    for period in (0.02, 0.01):
        run = simulate(arm, [0, 0], controller=Sampled(law, period), **options)
        errors.append(np.max(np.abs(run.q - smooth.q)))
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.4)  # holding is a delay of half a period


def test_saturation(arm):
    drives = {"shoulder": Drive(limit=4.0)}
    for control in (law, symbolic(arm), Sampled(law, 0.05)):
        run = simulate(arm, [0, 0], controller=control, drives=drives, **FIXED)
        assert np.max(np.abs(run.efforts[:, 0])) == 4.0
    one, other = (simulate(arm, [0, 0], controller=c, drives=drives, **FIXED) for c in (law, symbolic(arm)))
    np.testing.assert_allclose(one.q, other.q, rtol=0, atol=1e-11)


def test_lag_of_first_order():
    """A mass pushed through a lag: x and v in closed form; mean efforts make it exact at the steps."""
    builder = al.ModelBuilder("mass", gravity=(0, 0, 0))
    builder.body("mass", al.Inertia.point(2.0, (0, 0, 0)), joint=al.Prismatic((1, 0, 0)), joint_name="x")
    m = builder.build()
    T, F = 0.3, 5.0
    run = simulate(m, [0.0], duration=2.0, step=0.01, controller=lambda t, q, v: [F], drives={"x": Drive(lag=T)},
                   integrator="rk4")  # fmt: skip
    t = run.time
    np.testing.assert_allclose(run.v[:, 0], F / 2.0 * (t - T * (1 - np.exp(-t / T))), rtol=0, atol=1e-12)


def test_rate_limit():
    drives = JointDrives(*(np.array([x]) for x in (np.inf, 2.0, 0.0, 0.0, 1.0)))
    start = np.array([[1.0], [0.0]])
    mean, end = drives.advance(start, np.array([5.0]), 0.1)
    assert (mean[0], end[0, 0]) == pytest.approx((1.1, 1.2))
    mean, end = drives.advance(start, np.array([1.1]), 0.1)  # there after 0.05 s: 1.05 until then, 1.1 after
    assert (mean[0], end[0, 0]) == pytest.approx((1.075, 1.1))


# --- prescribed motion -----------------------------------------------------------------------------------------


def swing(t):
    return 0.3 * np.sin(2 * t), 0.6 * np.cos(2 * t), -1.2 * np.sin(2 * t)


def swing_symbolic():
    t = ca.SX.sym("t")
    return ca.Function("swing", [t], [0.3 * ca.sin(2 * t)])


@pytest.mark.parametrize("integrator", ["rk4", "semi_implicit_euler", "adams_bashforth3", "dop853"])
def test_prescribed_joint_follows_exactly(arm, integrator):
    runs = [
        simulate(
            arm, [0.2, 0.0], prescribed={"elbow": motion}, duration=1.0, step=0.01, integrator=integrator
        )
        for motion in (swing, swing_symbolic())
    ]
    for run in runs:
        np.testing.assert_allclose(run.q[:, 1], 0.3 * np.sin(2 * run.time), rtol=0, atol=1e-14)
        np.testing.assert_allclose(run.v[:, 1], 0.6 * np.cos(2 * run.time), rtol=0, atol=1e-14)
    np.testing.assert_allclose(runs[0].q, runs[1].q, rtol=0, atol=1e-11)


def test_a_held_joint_makes_one_rod_of_two(arm):
    """Both rods in line: a physical pendulum of 2 kg and 2 m."""
    run = simulate(arm, [0.1, 0.0], prescribed={"elbow": 0.0}, duration=1.0, step=0.002, integrator="rk4")
    builder = al.ModelBuilder("rod")
    builder.body("rod", al.Inertia.rod(2.0, (0, 0, 0), (2, 0, 0)), joint=al.Revolute((0, -1, 0)))
    rod = simulate(builder.build(), [0.1], duration=1.0, step=0.002, integrator="rk4")
    np.testing.assert_allclose(run.q[:, 0], rod.q[:, 0], rtol=0, atol=1e-11)


# --- wrenches --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", ["rk4", "variational", "dop853"])
def test_constant_wrenches_as_numbers_and_as_functions(integrator):
    m, (q0, v0) = model("ball"), state("ball")
    wrench = np.array([0.1, 0.2, -0.1, 1.0, 0.5, -2.0])
    options = {"duration": 0.5, "step": 0.01, "integrator": integrator}
    one = simulate(m, q0, v0, wrenches={"tip": wrench}, **options)
    other = simulate(m, q0, v0, wrenches={"tip": lambda t, q, v: wrench}, **options)
    none = simulate(m, q0, v0, **options)
    np.testing.assert_allclose(one.q, other.q, rtol=0, atol=1e-8 if integrator == "dop853" else 1e-12)
    assert np.max(np.abs(one.q - none.q)) > 0.05


@pytest.mark.parametrize("integrator", ["variational", "generalised_alpha", "semi_implicit_euler"])
def test_wrenches_on_every_kind_of_joint(integrator):
    """Against RK4: the schemes differ by their own errors, far less than by the wrench."""
    m, (q0, v0) = model("bench"), state("bench")
    wrench = {"d": [1.0, -2.0, 1.0, 3.0, 5.0, -2.0]}
    options = {"duration": 0.05, "step": 1e-4, "interval": 0.05}
    reference = simulate(m, q0, v0, wrenches=wrench, integrator="rk4", **options)
    without = simulate(m, q0, v0, integrator="rk4", **options)
    run = simulate(m, q0, v0, wrenches=wrench, integrator=integrator, **options)
    error, effect = (np.max(np.abs(reference.v[-1] - x.v[-1])) for x in (run, without))
    assert error < 0.02 * effect


def test_weight_as_a_wrench():
    """Gravity and the same force written as a wrench in turning axes."""
    builder = al.ModelBuilder("stone")
    builder.body("stone", al.Inertia.box(2.0, (0.1, 0.2, 0.3)), joint=al.Free())
    m = builder.build()

    def weight(t, q, v):
        return np.r_[0, 0, 0, m.frame_pose(q, "stone").rotation.T @ [0, 0, -2.0 * 9.81]]

    v0 = [1.0, 2.0, 3.0, 0.1, 0.2, 4.0]
    options = {"duration": 1.0, "step": 0.005, "integrator": "rk4"}
    one = simulate(m, m.neutral(), v0, **options)
    other = simulate(m, m.neutral(), v0, gravity=(0, 0, 0), wrenches={"stone": weight}, **options)
    np.testing.assert_allclose(one.q, other.q, rtol=0, atol=1e-7)
    z = 4.0 * one.time - 9.81 / 2 * one.time**2
    assert one.q[-1, 2] == pytest.approx(z[-1], abs=0.5)


@pytest.mark.parametrize("integrator", ["rk4", "dop853"])
def test_work_of_prescribed_motion(arm, integrator):
    """What the drive of a prescribed joint takes is in the balance; commands to it are not."""

    def run(*laws):
        return simulate(
            arm,
            [0.0, 0.3],
            [0.6, 0.0],
            duration=1.0,
            step=1e-3,
            integrator=integrator,
            prescribed={arm.joints[0].name: swing_symbolic()},
            controller=[lambda t, q, v: -0.1 * v, *laws],
            forces=SpringDamper("world", arm.bodies[1].name, 3.0, 0.2),
        )

    smooth = run()
    assert abs(smooth.report.work) > 1e-3
    assert smooth.report.energy_error < 1e-6
    assert np.abs(smooth.required_efforts[:, 0]).max() > 1.0
    assert not np.any(smooth.required_efforts[:, 1])
    # what the drive takes jumps with the sampled command to the other joint, 10 records apart
    stepped = run(Sampled(lambda t, q, v: np.array([5.0, -1.0]) * v, 0.01))
    assert stepped.report.energy_error < 5e-3


# --- batches ---------------------------------------------------------------------------------------------------


def entrywise(t, q, v):
    """For one state: on a batch of two motions q[0] would be the first of them."""
    return np.array([-20.0 * q[0] - v[1], -5.0 * q[1]])


def from_samples(t, read):
    return {"elbow": -3.0 * read["angle"][0]}


@pytest.mark.parametrize("motions", [1, 2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {"controller": entrywise},
        {"controller": Batched(law)},
        {"controller": Sampled(entrywise, 0.05)},
        {"controller": Sampled(Batched(law), 0.05)},
        {"controller": lambda t, q, v: {"elbow": -q[1]}, "integrator": "variational"},
        {"wrenches": {"tip": lambda t, q, v: [0, 0, 0, q[0], v[1], q[1]]}},
        {"wrenches": {"tip": Batched(lambda t, q, v: np.zeros(6))}},
        {
            "controller": Sampled(from_samples, 0.05, reads="angle"),
            "sensors": Measured(al.Sensor("angle", "joint_position", "elbow"), 0.05),
        },
    ],
)
def test_functions_are_asked_for_each_motion(arm, motions, options):
    q0, v0 = np.random.default_rng(5).normal(size=(2, motions, 2))
    options = {**FIXED, "duration": 0.2, **options}
    batch = simulate(arm, q0, v0, **options)
    for k in range(motions):
        np.testing.assert_array_equal(batch.q[k], simulate(arm, q0[k], v0[k], **options).q)
    members = al.ensemble(arm, {"q0": q0, "v0": v0}, **options)
    np.testing.assert_array_equal(members.q[:, -1], batch.q[:, -1])


def test_messages_of_functions_in_batches(arm):
    q0 = np.ones((2, 2))
    for controller, message in (
        (lambda t, q, v: [[1.0, 2.0]], r"a function of one state returned shape \(1, 2\), expected \(2,\)"),
        (
            Batched(lambda t, q, v: np.ones((3, 2))),
            r"Batched\(...\) returned shape \(3, 2\), expected \(2, 2\): a row",
        ),
    ):
        with pytest.raises(al.ArgumentError, match=message):
            simulate(arm, q0, controller=controller, **FIXED)
    with pytest.raises(
        al.ArgumentError, match=r"simulate: wrench on 'tip' has shape \(5,\), expected \(..., 6\): moment"
    ):
        simulate(arm, q0, wrenches={"tip": lambda t, q, v: np.ones(5)}, **FIXED)
    with pytest.raises(al.ArgumentError, match="Batched: law is 3, expected a function of t, q and v"):
        Batched(3)


def test_what_each_motion_does_alone(arm):
    """Events, stops and locked joints: a batch says so, an ensemble does it."""
    q0 = np.array([[0.3, 0.1], [0.5, -0.2]])
    event = al.simulate.Event(lambda t, q, v: q[0], "down")
    for options, message in (
        ({"events": event}, r"events and a batch of motions do not go together: .*one by one on all cores$"),
        ({"locked": "elbow"}, r"locked joints and a batch of motions do not go together; al.ensemble"),
    ):
        with pytest.raises(al.UnsupportedError) as refused:
            simulate(arm, q0, **options, **FIXED)
        assert re.search(message, str(refused.value))
        members = al.ensemble(arm, {"q0": q0}, **options, **FIXED)
        for k in range(2):
            alone = simulate(arm, q0[k], interval=1.0, **options, **FIXED)
            for one, other in zip(alone.events, members.events.get(k, ()), strict=True):
                assert one.time == other.time
            if not alone.events:  # those stop the motion
                np.testing.assert_array_equal(members.q[k], alone.q)


def test_auto_goes_from_sample_to_sample():
    """A law asked every millisecond: as many calls as samples, and what error control gives that begins anew at each."""
    model = al.library.two_link()
    calls = []

    def law(t, q, v):
        calls.append(t)
        return -20.0 * q - 2.0 * v

    def run(**options):
        calls.clear()
        return al.simulate(
            model, [0.5, -0.3], duration=0.2, controller=Sampled(law, period=0.001), interval=0.01, **options
        )

    auto = run()
    assert auto.integrator == "rk4"
    assert 0.001 % auto.step < 1e-12
    assert "controllers are sampled, the fastest every 0.001 s" in auto.reason
    assert len(calls) <= 202
    exact = run(integrator="dop853")
    # order 4 at a twentieth of the fastest period over 2 pi: some 1e-8 a step of what moves
    np.testing.assert_allclose(auto.q, exact.q, rtol=0, atol=1e-7)
    # slow samples, or a duration that is none of their multiples: error control
    slow = al.simulate(model, [0.5, -0.3], duration=1.0, controller=Sampled(law, period=0.5))
    assert slow.integrator == "dop853"
    odd = al.simulate(model, [0.5, -0.3], duration=0.0105, controller=Sampled(law, period=0.001))
    assert odd.integrator == "dop853"


@pytest.mark.parametrize("integrator", ["rk4", "dop853"])
@pytest.mark.parametrize("kind", ["symbolic", "python", "sampled"])
def test_joints_that_follow_a_motion_take_no_command(kind, integrator):
    """What is asked of their drives is no effort of the run and passes no limit; the motion takes 2 N: 2 kg at 1 m/s^2."""
    builder = al.ModelBuilder("cart", gravity=(0, 0, 0))
    limits = al.Limits(effort=(1.5,))
    builder.body("cart", al.Inertia.point(2.0), joint=al.Prismatic((1, 0, 0)), joint_name="x", limits=limits)
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q"), ca.SX.sym("v")
    laws = {
        "symbolic": ca.Function("law", [t, q, v], [ca.SX(5.0)]),
        "python": lambda t, q, v: [5.0],
        "sampled": al.simulate.Sampled(lambda t, q, v: [5.0], 0.1),
    }
    run = al.simulate(
        builder.build(), duration=0.5, step=0.05 if integrator == "rk4" else None, integrator=integrator,
        controller=laws[kind], prescribed={"x": ca.Function("path", [t], [t**2 / 2])},
    )  # fmt: skip
    assert not run.efforts.any()
    np.testing.assert_allclose(run.required_efforts, 2.0, rtol=1e-12)
    assert run.report.beyond_limits == {"tau:x": pytest.approx(0.5)}
