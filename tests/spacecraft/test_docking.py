"""Ports hold by a joint until latches close; momentum is kept, and what cannot be is told."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert import spacecraft as sc
from alembert.errors import ArgumentError, UnsupportedError

SPEED = 0.05


@pytest.fixture(scope="module")
def pair():
    builder = al.ModelBuilder("pair", gravity=(0, 0, 0))
    builder.body("target", al.Inertia.box(8.0, (2, 2, 2)), joint=al.Free(), joint_name="target_flight")
    builder.body("chaser", al.Inertia.box(3.0, (1, 1, 1)), joint=al.Free(), joint_name="chaser_flight")
    sc.docking_port(builder, "port", "target", (1.0, 0.6, 0.0))
    sc.docking_port(builder, "probe", "chaser", (-0.5, 0, 0), quaternion_wxyz=(0, 0, 0, 1))
    model = builder.build()
    q0, v0 = model.neutral(), np.zeros(model.nv)
    q0[model.q_slice("chaser_flight")] = [1.7, 0.6, 0.0, 1, 0, 0, 0]
    v0[model.v_slice("chaser_flight").start + 3] = -SPEED
    return model, q0, v0


def flown(pair, latch, **options):
    model, q0, v0 = pair
    event, capture = sc.docking(model, "port", "probe", reach=0.1, joint=al.Spherical(), **options)
    closing, latched = sc.latching(capture, latch)
    sensors = [
        sc.port_range("ports", "port", "probe", period=0.5),
        sc.docking_switch("captured", capture, latched, period=0.5),
    ]
    task = sc.note_docking(switch="captured", period=0.5)
    return al.simulate(
        model, q0, v0, duration=8.0, step=0.1, integrator="rk4", events=[event, closing], sensors=sensors,
        controller=sc.FlightSoftware([task]).controllers(), progress=False,
    )  # fmt: skip


def test_capture_turns_in_the_port_until_latches_close(pair):
    model, *_ = pair
    run = flown(pair, 5.0)
    capture, latch = run.events
    assert (capture.name, latch.name) == ("capture of probe", "latch of probe")
    assert capture.time == pytest.approx(0.1 / SPEED, abs=1e-9)
    h = model.momentum(run.q, run.v, about="world")
    # rounding of 50 steps on momenta of 0.15 N s, 0.1 N m s
    np.testing.assert_allclose(h, np.broadcast_to(h[0], h.shape), atol=1e-13)
    frames = [
        model.frame_velocity(run.q, run.v, x, reference="local_world_aligned") for x in ("port", "probe")
    ]
    turning = np.linalg.norm(frames[1][:, :3] - frames[0][:, :3], axis=-1)
    held, rigid = (run.time > 2.05) & (run.time < 4.95), run.time > 5.05
    assert turning[held].min() > 1e-3  # the probe turns in the port
    assert turning[rigid].max() < 1e-12
    # the point of the probe stays in the port: 0.1 m away
    np.testing.assert_allclose(run.measurements["ports"].values[-1], 0.1, atol=1e-6)
    assert run.measurements["docked"].values[:, 0].tolist() == [
        float(t > 2.0) for t in np.arange(0, 8.01, 0.5)
    ]  # the sample at 2 s is taken before the capture, which is 1e-11 s later or at the same instant
    assert latch.energy < 0


def test_latches_on_nothing_are_told(pair):
    run = flown(pair, 1.0)
    assert "refused: not captured" in run.events[0].quantities
    refused = flown(pair, 5.0, speed=0.01)
    assert "refused: speed" in refused.events[0].quantities
    assert "refused: not captured" in refused.events[1].quantities
    assert not refused.measurements["docked"].values.any()  # though it was within reach


@pytest.mark.parametrize("options", [{"step": 0.1, "integrator": "rk4"}, {"integrator": "dop853"}])
def test_ports_that_start_within_reach_are_captured_at_once(pair, options):
    model, q0, v0 = pair
    q0 = q0.copy()
    q0[model.q_slice("chaser_flight").start] -= 0.15  # 0.05 m are left, of 0.1
    event, _ = sc.docking(model, "port", "probe", reach=0.1)
    run = al.simulate(model, q0, v0, duration=1.0, events=[event], progress=False, **options)
    assert [(x.name, x.time < 1e-9) for x in run.events] == [(event.name, True)]
    gap = [model.frame_pose(run.q, x).translation for x in ("port", "probe")]
    # the capture is 1e-10 s after the start, at 0.05 m/s
    np.testing.assert_allclose(np.linalg.norm(gap[1] - gap[0], axis=-1), 0.05, atol=1e-9)
    switch = sc.docking_switch("captured", sc.Capture("port", "chaser"), period=0.5)
    with pytest.raises(UnsupportedError, match="sensor 'captured' sees what holds in a run"):
        switch.sensor.observe(model, 0.0, q0, v0, np.zeros(1), np.ones(()), None)
    with pytest.raises(ArgumentError, match="sensor 'captured': no event holds 'chaser on port'"):
        al.simulate(model, q0, v0, duration=1.0, step=0.1, events=[event], sensors=[switch], progress=False)


@pytest.mark.parametrize("options", [{"step": 0.1, "integrator": "rk4"}, {"integrator": "dop853"}])
def test_latches_that_are_due_at_the_start_close_there(pair, options):
    model, q0, v0 = pair
    near = q0.copy()
    near[model.q_slice("chaser_flight").start] -= 0.15
    event, capture = sc.docking(model, "port", "probe", reach=0.1, joint=al.Spherical())
    closing, _ = sc.latching(capture, 0.0)
    run = al.simulate(model, near, v0, duration=1.0, events=[event, closing], progress=False, **options)
    assert [x.name for x in run.events] == ["capture of probe", "latch of probe"]
    assert not any(name.startswith("refused") for x in run.events for name in x.quantities)
    assert run.report.momentum_error is None or max(run.report.momentum_error) < 1e-12
    w = [
        model.frame_velocity(run.q[-1], run.v[-1], x, reference="local_world_aligned")
        for x in ("port", "probe")
    ]
    np.testing.assert_allclose(w[1][:3], w[0][:3], atol=1e-12)  # rigid
    # further away there is nothing to latch then, which is told
    far = al.simulate(model, q0, v0, duration=1.0, events=[event, closing], progress=False, **options)
    assert [next(iter(x.quantities)) for x in far.events] == ["refused: not captured"]
    with pytest.raises(ArgumentError, match="latching: time is inf, expected seconds"):
        sc.latching(capture, np.inf)


def test_ports_and_entry_are_where_the_parameters_of_the_run_put_them():
    builder = al.ModelBuilder("pair", gravity=(0, 0, 0))
    arm = builder.parameter("arm", 1.0)
    builder.body("target", al.Inertia.box(8.0, (2, 2, 2)), joint=al.Free(), joint_name="target_flight")
    builder.body("chaser", al.Inertia.box(3.0, (1, 1, 1)), joint=al.Free(), joint_name="chaser_flight")
    sc.docking_port(builder, "port", "target", (arm, 0.0, 0.0))
    sc.docking_port(builder, "probe", "chaser", (-0.5, 0, 0), quaternion_wxyz=(0, 0, 0, 1))
    model = builder.build()
    q0, v0 = model.neutral(), np.zeros(model.nv)
    q0[model.q_slice("chaser_flight").start] = 2.5  # the port is 1 m off, or half of it with a longer arm
    v0[model.v_slice("chaser_flight").start + 3] = -0.1
    event, _ = sc.docking(model, "port", "probe", reach=0.1)
    given = {"duration": 12.0, "step": 0.1, "integrator": "rk4", "events": [event], "progress": False}
    for length, time in ((1.0, 9.0), (1.5, 4.0)):
        run = al.simulate(model, q0, v0, parameters={"arm": length}, **given)
        assert run.events[0].time == pytest.approx(time, abs=1e-9)
        assert run.events[0].quantities["distance"] == pytest.approx(0.1, abs=1e-9)
    space = sc.Environment(sc.Epoch.of("2026-03-01T12:00:00"), sc.Cowell())
    entry = space.entry(model, "port", height=100e3)
    q0[0] = 6378137.0 + 100e3  # the port decides, which is above
    lower = entry.value(0.0, q0, v0, {"arm": -2.0}) - entry.value(0.0, q0, v0)
    assert lower == pytest.approx(-3.0, abs=1e-5)  # the ellipsoid is 0.1 deg off these axes


def test_an_arm_berths_a_module():
    builder = al.ModelBuilder("station", gravity=(0, 0, 0))
    builder.body("hub", al.Inertia.box(20.0, (3, 3, 3)), joint=al.Free(), joint_name="flight")
    arm = al.Inertia.rod(3.0, (0, 0, 0), (3, 0, 0))
    builder.body(
        "arm", arm, parent="hub", joint=al.Revolute((0, 0, 1)), joint_name="shoulder", placement=(1.5, 0, 0)
    )
    builder.body("module", al.Inertia.box(3.0, (1, 1, 1)), joint=al.Free(), joint_name="drift")
    builder.frame("tip", "arm", al.Placement((3, 0, 0)))
    builder.frame("port", "hub", al.Placement((1.5, 2.0, 0)))
    model = builder.build()
    q0 = model.neutral()
    q0[model.q_slice("drift").start] = 5.0
    events = sc.berthing(model, "tip", "module", "port", grip=0.2, berth=1.6, release=1.8)
    swing = {"shoulder": sc.rest_to_rest([0.3, 1.5], [0.0, 0.7])}
    run = al.simulate(
        model, q0, duration=2.5, step=0.05, integrator="rk4", prescribed=swing, events=events, progress=False
    )
    assert [x.time for x in run.events] == pytest.approx([0.2, 1.6, 1.8])
    # all begins at rest: RK4 on a swing of 1.2 s in steps of h leaves (h/1.2)^4 of some 10 N s of arm and module, 10 m away
    h = model.momentum(run.q, run.v, about="world")
    assert np.abs(h).max() < 100 * (0.05 / 1.2) ** 4
    X, Y = (model.frame_pose(run.q, x) for x in ("port", "module"))
    seen = np.einsum("kji,kj->ki", X.rotation, Y.translation - X.translation)
    np.testing.assert_allclose(seen[-14:], np.broadcast_to(seen[-1], (14, 3)), atol=1e-8)  # the port holds it
    assert np.linalg.norm(seen[-1] - seen[0]) > 1.5
    # held from the start, with error control, whose first trials swing the arm out of the loop that it closes
    events = sc.berthing(model, "tip", "module", "port", grip=0.0, berth=1.6, release=1.8)
    options = {"integrator": "dop853", "prescribed": swing, "events": events, "progress": False}
    other = al.simulate(model, q0, duration=2.5, **options)
    assert [x.time for x in other.events] == pytest.approx([0.0, 1.6, 1.8], abs=1e-9)
    ends = [model.frame_pose(x.q[-1], "module").translation for x in (run, other)]
    # nothing moves before 0.3 s: the same motion, up to the error of RK4 above, on 5 m
    np.testing.assert_allclose(*ends, rtol=0, atol=5 * (0.05 / 1.2) ** 4)


@pytest.mark.parametrize(
    "options", [{"step": 0.01, "integrator": "rk4"}, {"integrator": "dop853", "interval": 0.01}]
)
def test_a_soft_port_swings_as_a_spring_between_two_masses(options):
    """The ring takes part of the speed, m V = (m + ring) V'; then x = -V'/w sin w t, w^2 = k/(reduced mass)."""
    target, chaser, ring, k, speed = 500.0, 200.0, 2.0, 400.0, 0.05
    builder = al.ModelBuilder("pair", gravity=(0, 0, 0))
    builder.body("target", al.Inertia.box(target, (2, 2, 2)), joint=al.Free(), joint_name="target_flight")
    builder.body("chaser", al.Inertia.box(chaser, (1, 1, 1)), joint=al.Free(), joint_name="chaser_flight")
    sc.soft_port(
        builder, "port", "target", (1.0, 0, 0), mass=ring, radius=0.4, stiffness=(50.0, k), damping=(0.0, 0.0)
    )
    sc.docking_port(builder, "probe", "chaser", (-0.5, 0, 0), quaternion_wxyz=(0, 0, 0, 1))
    model = builder.build()
    q0, v0 = model.neutral(), np.zeros(model.nv)
    q0[model.q_slice("chaser_flight").start] = 1.7
    v0[model.v_slice("chaser_flight").start + 3] = -speed
    event, _ = sc.docking(model, "port", "probe", reach=0.1)
    run = al.simulate(model, q0, v0, duration=10.0, events=[event], progress=False, **options)
    w = np.sqrt(k * (target + chaser + ring) / (target * (chaser + ring)))
    since = np.maximum(run.time - 2.0, 0.0)
    expected = -chaser * speed / (chaser + ring) / w * np.sin(w * since)
    # dop853 keeps 1e-9 of a metre; rk4 loses (w h)^4/120 of 0.03 m each radian, for 13 radians: 3e-10
    np.testing.assert_allclose(run.q[:, model.q_slice("port_springs").start], expected, atol=2e-9)


def test_a_soft_port_off_the_centre_keeps_momentum_and_comes_to_rest():
    builder = al.ModelBuilder("pair", gravity=(0, 0, 0))
    builder.body("target", al.Inertia.box(500.0, (2, 2, 2)), joint=al.Free(), joint_name="target_flight")
    builder.body("chaser", al.Inertia.box(200.0, (1, 1, 1)), joint=al.Free(), joint_name="chaser_flight")
    sc.soft_port(
        builder, "port", "target", (1.0, 0.3, 0), mass=10.0, radius=0.4, stiffness=(300.0, 400.0), damping=(60.0, 250.0)
    )  # fmt: skip
    sc.docking_port(builder, "probe", "chaser", (-0.5, 0, 0), quaternion_wxyz=(0, 0, 0, 1))
    model = builder.build()
    q0, v0 = model.neutral(), np.zeros(model.nv)
    q0[model.q_slice("chaser_flight")][:2] = [1.7, 0.3]
    v0[model.v_slice("chaser_flight").start + 3] = -SPEED
    event, _ = sc.docking(model, "port", "probe", reach=0.1)
    run = al.simulate(
        model, q0, v0, duration=40.0, step=0.01, integrator="rk4", events=[event], progress=False
    )
    balance = sc.momentum_balance(run)
    assert max(balance.angular_error, balance.linear_error) < 1e-10  # what reports call closed
    springs = run.v[:, model.v_slice("port_springs")]
    assert np.abs(springs).max() > 0.02  # it gives way
    assert np.abs(springs[-1]).max() < 1e-6  # and comes to rest: exp(-0.3 t), slowest of its modes


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sc.latching(sc.Capture("port", "probe"), 1.0), "expected a Capture with a joint="),
        (
            lambda: sc.berthing(al.library.make("arm7"), *(3 * ["world"]), grip=1.0, berth=1.0, release=2.0),
            "grip at 1 s, berth at 1 s, release at 2 s, expected them in this order",
        ),
        (
            lambda: sc.docking_switch("held", period=1.0),
            "docking_switch 'held': nothing is named that it could see",
        ),
        (lambda: sc.note_docking(period=1.0), "note_docking: switch and reach, expected one of them"),
        (
            lambda: sc.docking_switch("x", "port", period=1.0),
            "held has 'port', expected a Capture or a Latch",
        ),
        (
            lambda: al.simulate.Event(lambda t, q, v: t, "late", 0, at_start=True),
            "Event: at_start needs a direction, 1 or -1",
        ),
        (lambda: sc.note_docking(reach=0.0, period=1.0), "note_docking: reach is 0.0, expected a positive"),
        (
            lambda: sc.soft_port(
                al.ModelBuilder("m"), "p", "world", (0, 0, 0), mass=1, radius=1, stiffness=5.0, damping=(1, 1)
            ),
            "soft_port 'p': stiffness is 5.0, expected two numbers, for turning and for moving",
        ),
        (
            lambda: sc.soft_port(
                al.ModelBuilder("m"),
                "p",
                "world",
                (0, 0, 0),
                mass=1,
                radius=1,
                stiffness=(5, 5),
                damping=(-1, 1),
            ),
            "soft_port 'p': damping is -1, expected zero or more",
        ),
        (
            lambda: sc.control([], inertia=np.eye(3), period=1.0, docked="docked"),
            "docked and docked_inertia go together",
        ),
        (
            lambda: sc.control([], inertia=np.eye(3), period=1.0, docked="x", docked_inertia=-np.eye(3)),
            "docked_inertia, expected a positive 3 x 3 matrix",
        ),
        (
            lambda: sc.manage([], inertia=np.diag([70.0, 80, 60]), orbital_rate=1e-3, period=0.2),
            r"a loop of 62.5 rad/s: sampled every 0\.2 s it is not stable; weigh by less momentum",
        ),
        (
            lambda: sc.manage([], inertia=np.eye(3), orbital_rate=0.0, period=1.0),
            "manage: orbital_rate is 0.0, expected a positive rate",
        ),
    ],
)
def test_bad_docking(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_a_push_that_parts_leaves_prescribed_joints_their_speeds():
    """A panel that is turned by its drive: momentum is kept, and the balance of energy, as the push acts inside."""
    builder = al.ModelBuilder("pair", gravity=(0, 0, 0))
    builder.body("bus", al.Inertia.box(50.0, (1, 1, 1)), joint=al.Free(), joint_name="bus")
    panel = al.Inertia.box(15.0, (0.1, 2.0, 1.0), (0, 1.2, 0.3))
    hinge = al.Revolute((0, 0.6, 0.8))
    builder.body("panel", panel, joint=hinge, joint_name="hinge", parent="bus", placement=(0, 0.5, 0))
    builder.body("craft", al.Inertia.box(30.0, (1, 0.5, 0.5)), joint=al.Free(), joint_name="craft")
    builder.frame("port", "bus", (0.5, 0.1, 0))
    builder.frame("probe", "craft", (-0.5, 0, 0))
    model = builder.build()
    held = sc.Capture("port", "probe")
    events = [
        al.simulate.Event(lambda t, q, v: t - 0.1, "capture", 1, held),
        al.simulate.Event(lambda t, q, v: t - 0.3, "parting", 1, sc.Separate(held, impulse=6.0)),
    ]
    t = ca.SX.sym("t")
    run = al.simulate(
        model, {"craft.x": 1.0, "craft.y": 0.1}, {"hinge": 0.5, "craft.wx": 0.1}, duration=0.5, interval=0.1,
        integrator="dop853", events=events, prescribed={"hinge": ca.Function("turn", [t], [t / 2])},
    )  # fmt: skip
    parting = run.events[1]
    k = model.v_slice("hinge").start
    assert parting.v_after[k] == parting.v[k]
    assert np.ptp(parting.v_after[model.v_slice("craft")] - parting.v[model.v_slice("craft")]) > 0.05
    # error control to 1e-9; the push is 6 N s
    assert np.abs(run.momentum - run.momentum[0]).max() < 1e-8
    assert run.report.energy_error < 1e-8
