"""Ports hold by a joint until latches close; momentum is kept, and what cannot be is told."""

import numpy as np
import pytest

import alembert as al
from alembert import spacecraft as sc
from alembert.errors import ArgumentError

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
    closing, _ = sc.latching(capture, latch)
    sensors = [sc.port_range("ports", "port", "probe", period=0.5)]
    task = sc.note_docking(reach=0.101, period=0.5)
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
        float(t >= 2.0) for t in np.arange(0, 8.01, 0.5)
    ]
    assert latch.energy < 0


def test_latches_on_nothing_are_told(pair):
    run = flown(pair, 1.0)
    assert "refused: not captured" in run.events[0].quantities
    refused = flown(pair, 5.0, speed=0.01)
    assert "refused: speed" in refused.events[0].quantities
    assert "refused: not captured" in refused.events[1].quantities


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sc.latching(sc.Capture("port", "probe"), 1.0), "expected a Capture with a joint="),
        (lambda: sc.note_docking(reach=0.0, period=1.0), "note_docking: reach is 0.0, expected a positive"),
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
