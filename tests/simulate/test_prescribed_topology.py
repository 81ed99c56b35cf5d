"""Constraints that begin and cease to hold while joints follow prescribed motions."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.errors import NumericalError
from alembert.simulate import Event, events
from alembert.simulate.impacts import JointStops, PlaneImpact
from alembert.verify.random_models import closed, possible_speeds

T = ca.SX.sym("t")
CATCH, RELEASE = 0.5, 1.2


def at(time):
    return lambda t, q, v: t - time


@pytest.fixture(scope="module")
def conveyor():
    """A slide that is driven, a box that slides freely beside it; nothing else acts."""
    builder = al.ModelBuilder("conveyor", gravity=(0, 0, 0))
    builder.body("slide", al.Inertia.sphere(5.0, 0.1), joint=al.Prismatic((1, 0, 0)), joint_name="slide")
    builder.body("box", al.Inertia.sphere(2.0, 0.1), joint=al.Prismatic((1, 0, 0)), joint_name="box")
    return builder.build()


@pytest.mark.parametrize("integrator", ["rk4", "dop853"])
def test_a_driven_slide_catches_a_box_and_lets_it_go(conveyor, integrator):
    """The box takes the slide's speed at once; the drive gives the impulse, then m a for the box as well."""
    motion = ca.Function("motion", [T], [0.3 * T + 0.2 * T**2])
    catch = events.Attach("slide", "box")
    run = al.simulate(
        conveyor, [0.0, 1.0], [0.3, 0.0], duration=2.0, step=0.01, integrator=integrator,
        prescribed={"slide": motion},
        events=[Event(at(CATCH), "catch", action=catch), Event(at(RELEASE), "let go", action=events.Release(catch))],
    )  # fmt: skip
    speed = 0.3 + 0.4 * np.clip(run.time, CATCH, RELEASE)
    held = (run.time > CATCH + 1e-6) & (run.time < RELEASE - 1e-6)
    np.testing.assert_allclose(run.q[:, 0], 0.3 * run.time + 0.2 * run.time**2, atol=1e-12)
    np.testing.assert_allclose(run.v[run.time > CATCH + 1e-6, 1], speed[run.time > CATCH + 1e-6], rtol=1e-9)
    log = run.events[0].quantities
    np.testing.assert_allclose(log["impulse of the drive of slide"], 2.0 * 0.5, rtol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(log["impulse of box on slide"]), 2.0 * 0.5, rtol=1e-9)
    np.testing.assert_allclose(run.required_efforts[held, 0], 7.0 * 0.4, rtol=1e-9)
    late = run.time > RELEASE + 1e-6
    np.testing.assert_allclose(run.required_efforts[late, 0], 5.0 * 0.4, rtol=1e-9)
    np.testing.assert_allclose(run.v[-1, 1], 0.3 + 0.4 * RELEASE, rtol=1e-9)


@pytest.fixture(scope="module")
def arm():
    """Two links in the plane; the first is driven, the second swings."""
    builder = al.ModelBuilder("arm", gravity=(0, -9.81, 0))
    rod = al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    builder.body("upper", rod, joint=al.Revolute(), joint_name="shoulder")
    builder.body("lower", rod, joint=al.Revolute(), joint_name="elbow", parent="upper", placement=(1, 0, 0))
    builder.frame("tip", "lower", (1, 0, 0))
    return builder.build()


def test_a_joint_is_locked_while_another_is_driven(arm):
    """Then the arm is one body that follows the motion: the drive's effort is that of the stiff arm."""
    motion = ca.Function("motion", [T], [ca.sin(2 * T)])
    run = al.simulate(
        arm, [0.0, -1.0], [2.0, 0.0], duration=1.0, step=0.005, integrator="rk4", prescribed={"shoulder": motion},
        events=Event(at(0.4), "lock", action=events.Lock("elbow")),
    )  # fmt: skip
    k = int(np.searchsorted(run.time, 0.4 + 1e-9))
    angle = run.q[k, 1]
    np.testing.assert_allclose(run.q[k:, 1], angle, atol=1e-11)
    np.testing.assert_allclose(run.v[k:, 1], 0.0, atol=1e-10)
    for i in (k + 3, -1):
        t = run.time[i]
        q, v, a = np.sin(2 * t), 2 * np.cos(2 * t), -4 * np.sin(2 * t)
        stiff = arm.inverse_dynamics([q, angle], [v, 0.0], [a, 0.0])[0]
        np.testing.assert_allclose(run.required_efforts[i, 0], stiff, rtol=1e-8)


def test_docking_closes_the_gap_without_moving_what_is_driven(arm):
    """The tip reaches a rail while the shoulder follows its motion; from then on it slides along it."""
    builder = al.ModelBuilder("arm", gravity=(0, 0, 0))
    rod = al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    builder.body("upper", rod, joint=al.Revolute(), joint_name="shoulder")
    builder.body("lower", rod, joint=al.Revolute(), joint_name="elbow", parent="upper", placement=(1, 0, 0))
    builder.frame("tip", "lower", (1, 0, 0)).frame("rail", "world", (0, 0.9, 0))
    model = builder.build()
    rate = 0.5
    motion = ca.Function("motion", [T], [0.2 + rate * T])
    dock = events.Dock("rail", "tip", al.PointOnLine((1, 0, 0)), tolerance=1e-3)

    def height(t, q, v):
        return float(model.frame_pose(q, "tip").translation[1]) - 0.9

    run = al.simulate(
        model, [0.2, 0.1], [rate, 0.0], duration=1.5, step=0.01, integrator="rk4", prescribed={"shoulder": motion},
        events=Event(height, "rail", direction=1, action=dock),
    )  # fmt: skip
    np.testing.assert_allclose(run.q[:, 0], 0.2 + rate * run.time, atol=1e-12)
    after = run.time > run.events[0].time + 1e-9
    assert np.any(after)
    tips = model.frame_pose(run.q[after], "tip").translation
    np.testing.assert_allclose(tips[:, 1], 0.9, atol=1e-11)
    assert run.report.constraint_error < 1e-11
    # y = sin(a) + sin(a + b) = 0.9: cos(a) a' + cos(a + b) (a' + b') = 0
    a, b = run.q[-1]
    np.testing.assert_allclose(run.v[-1, 1], -rate * (1 + np.cos(a) / np.cos(a + b)), rtol=1e-8)


def test_impulses_with_held_speeds():
    """Against the dense equations [M -G^T -S^T; G 0 0; S 0 0]; nothing held is the plain impulse."""
    model, q = closed()
    model = model.replace(loops=model.loops[:2])
    G, M = model.constraint_jacobian(q), model.mass_matrix(q)
    full = np.linalg.matrix_rank(G)
    pairs = ((i, j) for i in range(6, model.nv) for j in range(i) if np.linalg.norm(G[:, i]) > 0.1)
    dofs = next(list(p) for p in pairs if np.linalg.matrix_rank(np.delete(G, p, axis=1), tol=1e-3) == full)
    held = [model.speed_names[k] for k in dofs]
    v = np.random.default_rng(3).normal(size=model.nv)
    found = model.impulse(q, v, held=held)
    S = np.eye(model.nv)[dofs]
    n, m, k = model.nv, len(G), len(dofs)
    K = np.block([[M, -G.T, -S.T], [G, np.zeros((m, m + k))], [S, np.zeros((k, m + k))]])
    x = np.linalg.lstsq(K, np.r_[M @ v, np.zeros(m), v[dofs]], rcond=1e-11)[0]
    np.testing.assert_allclose(found.velocities, x[:n], atol=1e-9 * np.linalg.norm(v))
    np.testing.assert_allclose(found.velocities[dofs], v[dofs], atol=1e-13)
    np.testing.assert_allclose(found.drives[dofs], x[n + m :], atol=1e-8 * np.linalg.norm(x))
    moving = model.impulse(np.stack([q, q]), np.stack([v, 2 * v]), held=held)
    np.testing.assert_allclose(moving.velocities[1], 2 * found.velocities, rtol=1e-9)
    free = model.impulse(q, possible_speeds(model, q))
    np.testing.assert_array_equal(free.drives, 0)


def test_impacts_leave_driven_joints_alone(arm):
    """A driven carriage does not feel the ball that bounces on a plane; a stop takes only the free joint's speed."""
    builder = al.ModelBuilder("lift", gravity=(0, 0, -9.81))
    builder.body("lift", al.Inertia.sphere(1.0, 0.1), joint=al.Prismatic((0, 0, 1)), joint_name="lift")
    builder.body(
        "rod",
        al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)),
        joint=al.Revolute((0, 1, 0)),
        joint_name="hinge",
        parent="lift",
    )
    builder.frame("tip", "rod", (1, 0, 0))
    model = builder.build()
    motion = ca.Function("motion", [T], [0.5 + 0.1 * T])
    run = al.simulate(
        model, [0.5, 0.0], [0.1, 0.0], duration=0.6, step=0.005, integrator="rk4", prescribed={"lift": motion},
        events=PlaneImpact("tip", restitution=1.0),
    )  # fmt: skip
    event = run.events[0]
    np.testing.assert_allclose(run.q[:, 0], 0.5 + 0.1 * run.time, atol=1e-12)
    # of the hinge alone: the tip's height is z - sin(b), so that I p = cos(b)^2 ... turns its rate back
    rate = [x[0] - np.cos(y[1]) * x[1] for x, y in ((event.v, event.q), (event.v_after, event.q_after))]
    np.testing.assert_allclose(rate[1], -rate[0], rtol=1e-9)
    assert event.v[0] == event.v_after[0]


def test_a_free_joint_rests_at_its_stop_while_another_is_driven():
    """The reaction of the stop counts what the drive of the other joint makes the free one feel."""
    builder = al.ModelBuilder("tray", gravity=(0, 0, 0))
    builder.body("tray", al.Inertia.sphere(1.0, 0.1), joint=al.Prismatic((1, 0, 0)), joint_name="tray")
    builder.body(
        "block", al.Inertia.sphere(0.5, 0.05), joint=al.Prismatic((1, 0, 0)), joint_name="block", parent="tray",
        limits=al.Limits(lower=(-0.1,), upper=(0.3,)),
    )  # fmt: skip
    model = builder.build()
    # accelerates, then brakes: the block slides to the rear stop and rests there, and leaves when the tray brakes
    motion = ca.Function("motion", [T], [0.5 * T**2 - 0.25 * T**4])
    run = al.simulate(
        model,
        [0.0, 0.0],
        duration=1.2,
        step=0.002,
        integrator="rk4",
        prescribed={"tray": motion},
        events=JointStops(),
    )
    names = [event.name for event in run.events]
    assert names[0].endswith("lower limit")
    assert "block leaves its limit" in names
    left = next(event.time for event in run.events if "leaves" in event.name)
    np.testing.assert_allclose(left, 1 / np.sqrt(3), atol=2e-3)  # where 1 - 3 t^2 = 0


def test_what_two_motions_contradict(conveyor):
    motions = {"slide": ca.Function("a", [T], [0.3 * T]), "box": ca.Function("b", [T], [1.0 + 0.1 * T])}
    with pytest.raises(
        NumericalError,
        match=r"no impulse makes all constraints hold with 'slide', 'box' fixed: loop 'box on slide' would",
    ):
        al.simulate(
            conveyor, [0.0, 1.0], [0.3, 0.1], duration=1.0, step=0.01, integrator="rk4", prescribed=motions,
            events=Event(at(CATCH), action=events.Attach("slide", "box")),
        )  # fmt: skip


def test_the_work_of_a_drive_is_the_same_with_records_further_apart(conveyor):
    """What holds at each step counts, not what holds at the end: while the box is on, the drive moves 7 kg, not 5."""
    motion = ca.Function("motion", [T], [0.3 * T + 0.2 * T**2])
    catch = events.Attach("slide", "box")
    every, apart = (
        al.simulate(
            conveyor, [0.0, 1.0], [0.3, 0.0], duration=2.0, step=0.01, interval=interval, integrator="rk4",
            prescribed={"slide": motion},
            events=[Event(at(CATCH), "catch", action=catch), Event(at(RELEASE), "off", action=events.Release(catch))],
        )
        for interval in (None, 0.5)
    )  # fmt: skip
    np.testing.assert_allclose(apart.work, every.work[::50], rtol=1e-12)
    spans = 0.3 * np.array([CATCH, RELEASE, 2.0]) + 0.2 * np.array([CATCH, RELEASE, 2.0]) ** 2
    work = 0.4 * (5.0 * spans[0] + 7.0 * (spans[1] - spans[0]) + 5.0 * (spans[2] - spans[1]))
    np.testing.assert_allclose(
        apart.work[-1], work, atol=0.01 * 0.8
    )  # a step with each of two jumps of 0.8 N at 0.5 m/s


@pytest.mark.parametrize("integrator", ["rk4", "dop853"])
def test_actions_of_users_leave_prescribed_joints_on_their_motion(integrator):
    """The log has the state from which the run goes on, so that the energy balances."""
    arm = al.library.two_link()
    first = arm.joints[0].name
    run = al.simulate(
        arm,
        [0.3, 0.2],
        [0.5, 0.4],
        duration=0.4,
        step=1e-3 if integrator == "rk4" else None,
        interval=0.01,
        integrator=integrator,
        prescribed={first: ca.Function("motion", [T], [0.3 + 0.5 * T])},
        events=Event(at(0.1003), "brake", 1, lambda t, q, v: (q + 0.1, 0.5 * v)),
    )
    brake = run.events[0]
    assert brake.v_after == pytest.approx([0.5, 0.5 * brake.v[1]], abs=1e-12)
    assert brake.q_after == pytest.approx([brake.q[0], brake.q[1] + 0.1], abs=1e-12)
    # error control to 1e-9, or rk4 with steps of a millisecond
    assert run.report.energy_error < 1e-7
