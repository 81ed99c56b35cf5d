"""Constraints that begin and cease to hold, and impacts: momentum, closed forms, energy and the log."""

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.simulate import Attach, Dock, Event, JointStops, Lock, PlaneImpact, Release, simulate

BOTH = pytest.mark.parametrize("integrator", ["rk4", "dop853"])


def at(t, action, name="switch"):
    return Event(lambda time, q, v: time - t, name, 1, action)


def options(integrator, **more):
    return {
        "integrator": integrator,
        "step": 1e-2 if integrator == "rk4" else None,
        "tolerance": 1e-10,
        **more,
    }


@pytest.fixture(scope="module")
def arm():
    """A free bus with a link on a hinge and one on a ball joint, without gravity."""
    builder = al.ModelBuilder("arm", gravity=(0, 0, 0))
    builder.body("bus", al.Inertia.box(5.0, (0.4, 0.6, 0.9)), joint=al.Free(), joint_name="base")
    rod = al.Inertia.box(1.0, (0.1, 0.2, 0.8), (0, 0, 0.4))
    builder.body(
        "link", rod, joint=al.Revolute((0, 1, 0)), joint_name="hinge", parent="bus", placement=(0.3, 0, 0)
    )
    builder.body("tip", rod, joint=al.Spherical(), joint_name="ball", parent="link", placement=(0, 0, 0.8))
    return builder.build()


def locks():
    """One joint after the other; one model for all of it."""
    return [
        at(0.103, Lock("hinge"), "lock hinge"),
        at(0.251, Release("hinge"), "release hinge"),
        at(0.303, Lock("ball"), "lock ball"),
        at(0.451, Release("ball"), "release ball"),
    ]


@BOTH
def test_lock_and_release(arm, integrator):
    q, v = arm.integrate(arm.neutral(), 0.3 * np.ones(arm.nv)), np.linspace(-0.6, 0.9, arm.nv)
    run = simulate(arm, q, v, duration=0.55, interval=0.01, events=locks(), **options(integrator))
    assert [e.name for e in run.events] == ["lock hinge", "release hinge", "lock ball", "release ball"]
    for k, joint in enumerate(("hinge", "ball")):
        lock, release = run.events[2 * k : 2 * k + 2]
        assert lock.time == pytest.approx((0.103, 0.303)[k], abs=1e-9)
        locked = (run.time > lock.time) & (run.time < release.time)
        s, place = arm.v_slice(joint), run.q[locked][:, arm.q_slice(joint)]
        assert np.abs(run.v[locked][:, s]).max() < 1e-9
        assert np.ptp(place, axis=0).max() < 1e-9
        assert np.abs(run.v[-1, s]).max() > 1e-3
        assert lock.energy < 0
        assert np.all(np.isfinite(lock.quantities[f"impulse of lock of {joint}"]))
    assert max(run.report.momentum_error) < 1e-6
    assert run.report.energy_error < 1e-6
    assert run.report.constraint_error < 1e-8
    assert "events added" in str(run.report)


@BOTH
def test_a_locked_joint_makes_one_body(arm, integrator):
    """After the lock, as the model whose hinge is fixed."""
    q, v = arm.neutral(), np.linspace(-0.6, 0.9, arm.nv)
    q[arm.q_slice("hinge")] = 0.4
    v[arm.v_slice("hinge")] = 0.0
    run = simulate(arm, q, v, duration=0.5, locked="hinge", **options(integrator))
    fixed = arm.replace_joint(
        "hinge", type=al.Fixed(), placement=al.Placement.from_rpy((0, 0.4, 0), (0.3, 0, 0))
    )
    keep_q = np.delete(np.arange(arm.nq), arm.q_slice("hinge").start)
    keep_v = np.delete(np.arange(arm.nv), arm.v_slice("hinge").start)
    expected = simulate(fixed, q[keep_q], v[keep_v], duration=0.5, **options(integrator))
    np.testing.assert_allclose(run.q[-1, keep_q], expected.q[-1], rtol=0, atol=1e-6)


def pair():
    """Two free boxes, without gravity, b ahead of a along x."""
    builder = al.ModelBuilder("pair", gravity=(0, 0, 0))
    for name, mass in (("a", 2.0), ("b", 1.0)):
        builder.body(name, al.Inertia.box(mass, (0.4, 0.4, 0.4)), joint=al.Free(), joint_name=name)
    builder.frame("port", "a", (0.2, 0, 0))
    builder.frame("plug", "b", (-0.2, 0, 0))
    m = builder.build()
    q = m.neutral()
    q[m.q_slice("b")][0] = 1.0
    v = np.zeros(m.nv)
    v[m.v_slice("a")] = [0, 0, 0, 0.6, 0, 0]
    return m, q, v


def meet(action):
    return Event(lambda t, q, v: q[7] - q[0] - 0.4, "contact", -1, action)


@BOTH
def test_docking(integrator):
    m, q, v = pair()
    run = simulate(m, q, v, duration=2.0, events=meet(Dock("port", "plug")), **options(integrator))
    assert run.events[0].time == pytest.approx(1.0, abs=1e-9)
    for s in (m.v_slice("a"), m.v_slice("b")):
        np.testing.assert_allclose(run.v[-1, s], [0, 0, 0, 0.4, 0, 0], rtol=0, atol=1e-12)
    impulse = run.events[0].quantities["impulse of plug at port"]
    np.testing.assert_allclose(impulse, [0, 0, 0, 0.4, 0, 0], rtol=0, atol=1e-12)  # 1 kg from 0 to 0.4 m/s
    assert run.events[0].energy == pytest.approx(0.5 * 3 * 0.16 - 0.5 * 2 * 0.36)
    assert max(run.report.momentum_error) < 1e-12
    assert run.report.energy_error < 1e-9
    # a ball joint passes no moment
    ball = simulate(
        m, q, v, duration=1.5, events=meet(Dock("port", "plug", al.Spherical())), **options(integrator)
    )
    assert ball.report.energy_error < 1e-9


@BOTH
def test_attach_wherever_they_are(integrator):
    """Two bodies with any speeds become one: momentum as before, one angular velocity after."""
    m, q, v = pair()
    v = np.linspace(-0.5, 0.7, m.nv)
    attach = Attach("a", "b")
    events = [at(0.305, attach), at(0.905, [Release(attach)], "let go")]
    run = simulate(m, q, v, duration=1.2, interval=0.05, events=events, **options(integrator))
    together = (run.time > 0.31) & (run.time < 0.9)
    W = [m.frame_velocity(run.q, run.v, name, reference="world") for name in "ab"]
    np.testing.assert_allclose(W[0][together], W[1][together], rtol=0, atol=1e-7)
    assert np.abs(W[0][-1] - W[1][-1])[:3].max() < 1e-6  # cubes go on turning alike, each by itself
    assert max(run.report.momentum_error) < 1e-7
    assert run.report.energy_error < 1e-6


@BOTH
def test_what_holds_already_is_no_event(integrator):
    """After the meeting their distance passes zero again and again, by rounding."""
    m, q, v = pair()
    v = v + np.linspace(-0.05, 0.07, m.nv)

    def distance(t, q, v):
        a, b = (m.frame_pose(q, name).translation for name in ("port", "plug"))
        return float(b[0] - a[0])

    contact = Event(distance, "contact", 0, Attach("port", "plug"))
    run = simulate(m, q, v, duration=3.0, events=contact, **options(integrator))
    assert [event.name for event in run.events] == ["contact"]


def test_the_page_of_a_run_with_switches(tmp_path):
    """Places at which frames are attached are parameters of the run's own model, not of the user's."""
    m, q, v = pair()
    run = simulate(m, q, v, duration=1.5, events=meet(Attach("port", "plug")), **options("rk4"))
    assert run.motion().parameters is None
    assert run.to_html(tmp_path / "run.html").stat().st_size > 0


def test_continuation_across_switches(arm):
    q, v = arm.neutral(), np.linspace(-0.6, 0.9, arm.nv)
    run = simulate(arm, q, v, duration=0.55, events=locks(), **options("rk4"))
    for time in (0.15, 0.4, 0.5):
        again = run.resume(0.55 - time, time=time)
        k = int(np.argmin(np.abs(run.time - time)))
        np.testing.assert_array_equal(again.q, run.q[k:])
        np.testing.assert_array_equal(again.v, run.v[k:])
    assert run.accelerations.shape == run.v.shape
    k = int(np.argmin(np.abs(run.time - 0.4)))
    assert np.abs(run.accelerations[k, arm.v_slice("ball")]).max() < 1e-6


def test_a_loop_that_breaks():
    """A rod on two hinges falls as a pendulum when one of them breaks."""
    builder = al.ModelBuilder("rod")
    builder.body("rod", al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)), joint=al.Revolute((0, 1, 0)))
    builder.frame("end", "rod", (1, 0, 0))
    builder.frame("wall", "world", (1, 0, 0))
    builder.loop("latch", al.Revolute((0, 1, 0)), "wall", "end")
    m = builder.build()
    run = simulate(m, [0.0], duration=0.5, events=at(0.2, Release("latch")), **options("dop853"))
    assert np.abs(run.q[run.time < 0.2]).max() < 1e-9
    free = simulate(m.replace(loops=()), [0.0], duration=0.3, **options("dop853"))
    assert run.q[-1, 0] == pytest.approx(free.q[-1, 0], abs=1e-7)
    assert run.report.energy_error < 1e-6


# --- impacts ----------------------------------------------------------------------------------------------------


def drop(**limits):
    builder = al.ModelBuilder("drop")
    builder.body(
        "ball",
        al.Inertia.point(2.0),
        joint=al.Prismatic((0, 0, 1)),
        joint_name="fall",
        limits=al.Limits(**limits),
    )
    return builder.build()


@BOTH
def test_bounces_and_rest_at_a_limit(integrator):
    """From 1 m with e = 1/2: bounces at t0 (1, 2, 2.5, ...), rest after 3 t0 in all."""
    m = drop(lower=(0.0,), upper=(5.0,))
    t0 = np.sqrt(2 / 9.81)
    run = simulate(m, [1.0], duration=2.0, events=JointStops(0.5, rest_speed=1e-2), **options(integrator))
    times = [e.time for e in run.events if "lower limit" in e.name]
    np.testing.assert_allclose(times[:4], t0 * np.array([1, 2, 2.5, 2.75]), rtol=0, atol=1e-6)
    assert run.events[0].quantities["impulse"] == pytest.approx(2.0 * 1.5 * 9.81 * t0, rel=1e-6)
    assert run.events[0].energy == pytest.approx(-0.75 * 2.0 * 9.81, rel=1e-6)
    assert np.abs(run.q[run.time > 3 * t0 + 0.05]).max() < 1e-9
    assert run.report.energy_error < 1e-5
    assert not run.events[0].internal


@BOTH
def test_a_joint_leaves_its_stop_when_pulled(integrator):
    m = drop(lower=(0.0,))

    def lift(t, q, v):
        return [40.0 * t]  # the weight is 19.62 N, reached at 0.4905 s

    run = simulate(
        m, [0.0], [-1e-6], duration=1.0, events=JointStops(0.0), controller=lift, **options(integrator)
    )
    leaves = [e.time for e in run.events if "leaves" in e.name]
    assert leaves == pytest.approx([0.4905], abs=1e-6)
    t = 1.0 - 0.4905
    assert run.q[-1, 0] == pytest.approx(40.0 / 2 * t**3 / 6, rel=1e-6)


def test_impact_within_a_chain():
    """A limit between two free bodies: momentum is kept, and the relative speed turns by the restitution."""
    builder = al.ModelBuilder("chain", gravity=(0, 0, 0))
    builder.body("a", al.Inertia.box(2.0, (0.2, 0.3, 0.4)), joint=al.Free(), joint_name="base")
    rod = al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    builder.body(
        "b", rod, joint=al.Revolute((0, 0, 1)), joint_name="hinge", parent="a", limits=al.Limits(upper=(0.3,))
    )
    m = builder.build()
    v = np.array([0.1, -0.2, 0.3, 0.1, 0.2, 0.3, 1.0])
    run = simulate(m, m.neutral(), v, duration=0.6, events=JointStops(0.7), **options("rk4"))
    (event,) = run.events
    assert event.v_after[6] == pytest.approx(-0.7 * event.v[6])
    assert max(run.report.momentum_error) < 1e-8
    assert run.report.energy_error < 1e-8


@BOTH
def test_a_point_on_a_plane(integrator):
    """A free rod hits the floor with one end, e = 1: energy is kept, also by the turning; the tangential speed too."""
    builder = al.ModelBuilder("rod")
    builder.body("rod", al.Inertia.box(1.0, (1.0, 0.1, 0.1)), joint=al.Free(), joint_name="base")
    builder.frame("end", "rod", (0.5, 0, 0))
    m = builder.build()
    q = m.neutral()
    q[2] = 0.5
    run = simulate(
        m,
        q,
        [0, 0, 0, 0.3, 0, 0],
        duration=0.4,
        events=PlaneImpact("end", restitution=1.0),
        **options(integrator),
    )
    event = run.events[0]
    assert event.time == pytest.approx(np.sqrt(2 * 0.5 / 9.81), abs=1e-8)
    speeds = [
        m.frame_velocity(event.q, x, "end", reference="local_world_aligned") for x in (event.v, event.v_after)
    ]
    assert speeds[1][5] == pytest.approx(-speeds[0][5])
    assert event.energy == pytest.approx(0.0, abs=1e-10)
    inertia = 1.01 / 12
    assert event.quantities["impulse"] == pytest.approx(2 * np.sqrt(9.81) / (1 + 0.25 / inertia), rel=1e-6)
    assert run.report.energy_error < 1e-6


def test_a_point_at_rest_stops_the_run():
    builder = al.ModelBuilder("ball")
    builder.body("ball", al.Inertia.sphere(1.0, 0.1), joint=al.Free())
    m = builder.build()
    q = m.neutral()
    q[2] = 0.2
    run = simulate(
        m, q, duration=5.0, events=PlaneImpact("ball", restitution=0.3, rest_speed=0.1), **options("dop853")
    )
    assert run.time[-1] < 1.0
    assert len(run.events) > 1


# --- messages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "error", "message"),
    [
        (at(0.1, Lock("hinges")), ArgumentError, "Lock: no joint 'hinges'"),
        (at(0.1, Release("hinge")), ArgumentError, "Release: nothing holds by the name 'hinge'"),
        (
            [at(0.3, Lock("hinge")), at(0.1, Release("hinge"))],
            ArgumentError,
            "'lock of hinge' does not hold at t = 0.1",
        ),
        (
            at(0.1, Dock("bus", "tip")),
            NumericalError,
            r"'tip' is not at 'bus' at t = 0.1 s.*Attach\(...\) holds them",
        ),
        (at(0.1, Attach("bus", "nowhere")), ArgumentError, "no frame 'nowhere'"),
        (
            at(0.1, Attach("bus", "tip", joint="spherical")),
            ArgumentError,
            "Attach: joint is 'spherical', expected a joint type, as al.Spherical",
        ),
        (
            [at(0.1, Attach("bus", "tip", joint=al.Revolute(axis))) for axis in ((1, 0, 0), (0, 1, 0))],
            ArgumentError,
            "events join 'tip' to 'bus' by .* and by .*, expected one of this kind",
        ),
        (JointStops(), ArgumentError, "no joint of the model 'arm' has position limits"),
        (PlaneImpact("world"), ArgumentError, "PlaneImpact: frame 'world' does not move"),
        ("stop", ArgumentError, "events has 'stop', expected Event"),
    ],
)
def test_messages(arm, events, error, message):
    with pytest.raises(error, match=message):
        simulate(arm, arm.neutral(), duration=0.5, events=events, **options("rk4"))


def test_what_does_not_move_cannot_be_locked(arm):
    fixed = arm.replace_joint("hinge", type=al.Fixed())
    with pytest.raises(ArgumentError, match="Lock: joint 'hinge' does not move"):
        simulate(fixed, fixed.neutral(), duration=0.5, locked=["hinge"], **options("rk4"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: JointStops(1.5), "JointStops: restitution is 1.5, expected 0 to 1"),
        (lambda: JointStops(0.5, rest_speed=0.0), "rest_speed is 0.0, expected a positive speed"),
        (lambda: PlaneImpact("a", (0, 0, 0)), "PlaneImpact: normal is"),
        (lambda: at(0.0, [3]), "Event: action is"),
    ],
)
def test_messages_of_actions(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_what_does_not_go_together(arm):
    with pytest.raises(UnsupportedError, match="'variational' and a changing topology"):
        simulate(
            arm,
            arm.neutral(),
            duration=0.5,
            events=at(0.1, Lock("ball")),
            step=0.01,
            integrator="variational",
        )
    with pytest.raises(UnsupportedError, match="locked joints and a batch"):
        simulate(
            arm, np.stack(2 * [arm.neutral()]), duration=0.5, locked=["ball"], step=0.01, integrator="rk4"
        )


def test_joints_of_several_degrees_of_freedom_cannot_rest():
    builder = al.ModelBuilder("slab")
    limits = al.Limits(lower=(-10.0, -0.1))
    builder.body(
        "slab",
        al.Inertia.box(1.0, (1, 1, 1)),
        joint=al.Cylindrical((0, 0, 1)),
        joint_name="rod",
        limits=limits,
    )
    m = builder.build()
    with pytest.raises(NumericalError, match="joint 'rod' comes to rest at its limit"):
        simulate(m, m.neutral(), duration=2.0, events=JointStops(0.2), **options("rk4"))


def test_a_start_beyond_a_limit_is_refused():
    with pytest.raises(ArgumentError, match=r"q0: fall at its lower limit is passed by 0\.1"):
        simulate(drop(lower=(0.0,)), [-0.1], duration=1.0, events=JointStops(), **options("rk4"))
    with pytest.raises(UnsupportedError, match="JointStops and a batch"):
        simulate(drop(lower=(0.0,)), [[0.1], [0.2]], duration=1.0, events=JointStops(), **options("rk4"))


def test_auto_knows_that_the_topology_changes(arm):
    for step, expected in ((0.01, "rk4"), (None, "dop853")):
        run = simulate(arm, arm.neutral(), duration=0.02, step=step, events=at(0.5, Lock("hinge")))
        assert run.integrator == expected
        assert "constraints begin or cease to hold" in run.reason


@pytest.mark.parametrize("how", ["locked", "attached"])
def test_what_holds_at_a_node_of_a_flexible_body_moves_with_it(how):
    """A block at the tip of a beam: held by a lock or attached there, it falls as one that the model fixes to the tip."""

    def model(joint, **place):
        builder = al.ModelBuilder("boom")
        boom = al.flexible.beam(length=2.0, rhoA=1.2, EI_z=50.0, EI_y=60.0, bending_y=1, bending_z=1)
        builder.body("boom", boom, joint=al.Revolute((0, 1, 0)), joint_name="hub")
        builder.frame("tip", "boom", node="tip")
        block = al.Inertia.box(0.5, (0.3, 0.2, 0.1), (0.1, 0.1, 0))
        return builder.body("block", block, joint=joint, joint_name="hold", **place).build()

    on_tip = {"parent": "boom", "node": "tip", "placement": (0.1, 0, 0.05)}
    start = {"boom.bending_z_1": 0.05, "boom.bending_y_1": -0.03}
    same = options("dop853", duration=0.3, interval=0.1)
    fixed = simulate(model(al.Fixed(), **on_tip), start, **same)
    if how == "locked":
        held = simulate(model(al.Spherical(), **on_tip), start, locked=["hold"], **same)
    else:
        free = model(al.Free())
        q = free.configuration(start)
        X = free.frame_pose(q, "tip") @ al.Pose(np.eye(3), (0.1, 0, 0.05))
        q = free.configuration(start | {"hold": free.joint("hold").type.fit(X)})
        held = simulate(free, q, events=at(1e-6, Attach("tip", "block")), **same)
    n = fixed.model.nq
    # a microsecond of free motion before it is attached, and the tolerance of both runs
    assert np.abs(held.q[:, :n] - fixed.q).max() < 1e-7
    assert np.abs(fixed.q[-1, 1:] - fixed.q[0, 1:]).max() > 1e-3
