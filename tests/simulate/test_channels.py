"""Recorded quantities by name and rate: what they are, and how they leave."""

import csv

import numpy as np
import pytest
from simulate_helpers import model, state

import alembert as al
from alembert.errors import ArgumentError
from alembert.simulate import simulate

EVERYTHING = [
    "q:root",
    "v:slide_joint",
    "a:base",
    "tau",
    "frame:boom.position",
    "frame:boom.orientation@20",
    "frame:boom.velocity",
    "frame:boom.angular_velocity",
    "frame:boom.acceleration@10",
    "energy",
    "momentum@50",
    "center_of_mass",
]


@pytest.fixture(scope="module")
def run():
    m = model("craft")
    return simulate(m, *state("craft"), duration=1.0, step=0.005, interval=0.01, efforts=np.full(m.nv, 0.2),
                    record=EVERYTHING)  # fmt: skip


def test_what_is_recorded(run):
    m = run.model
    found = run.recorded
    assert list(found) == [name.partition("@")[0] for name in EVERYTHING]
    np.testing.assert_array_equal(found["q:root"].values, run.q[:, m.q_slice("root")])
    assert found["q:root"].components == ("root.qw", "root.qx", "root.qy", "root.qz")
    np.testing.assert_array_equal(found["a:base"].values, run.accelerations[:, m.v_slice("base")])
    assert found["a:base"].units == ("rad/s^2",) * 3 + ("m/s^2",) * 3
    assert found["tau"].units[-1] == "N"
    np.testing.assert_array_equal(found["energy"].values[:, 0], run.energy)
    assert len(found["frame:boom.orientation"].time) == 21
    np.testing.assert_allclose(found["frame:boom.orientation"].time, np.arange(21) / 20)
    np.testing.assert_array_equal(found["momentum"].values, run.momentum[::2])
    pose = m.frame_pose(run.q[::5], "boom")
    R = np.array([al.spatial.quaternion.to_matrix(q) for q in found["frame:boom.orientation"].values])
    np.testing.assert_allclose(R, pose.rotation, rtol=0, atol=1e-14)


def test_velocities_are_derivatives(run):
    """Of positions and velocities, by differences of second order over 0.01 s: h^2/6 of a third derivative."""
    m = run.model
    t, p = run.time, run.channel("frame:boom.position").values
    v, a = (run.channel(f"frame:boom.{name}").values for name in ("velocity", "acceleration"))
    np.testing.assert_allclose(np.gradient(p, t, axis=0)[1:-1], v[1:-1], rtol=0, atol=1e-3 * np.abs(a).max())
    np.testing.assert_allclose(np.gradient(v, t, axis=0)[1:-1], a[1:-1], rtol=0, atol=2e-2 * np.abs(a).max())
    c = run.channel("center_of_mass").values
    total = sum(float(body.inertia.mass) for body in m.bodies)
    np.testing.assert_allclose(np.gradient(c, t, axis=0)[1:-1], run.momentum[1:-1, 3:] / total, atol=1e-3)


def test_orientations_do_not_jump():
    """Several turns: the quaternion that comes next is the near one."""
    builder = al.ModelBuilder("top", gravity=(0, 0, 0))
    builder.body("top", al.Inertia.box(1.0, (1, 1, 2)), joint=al.Revolute((0, 0, 1)))
    run = simulate(builder.build(), [0.0], [7.0], duration=4.0, step=0.01, record="frame:top.orientation")
    q = run.recorded["frame:top.orientation"].values
    assert np.abs(np.diff(q, axis=0)).max() < 0.04
    np.testing.assert_allclose(q[:, 0], np.cos(3.5 * run.time), rtol=0, atol=1e-12)


def test_sensors_and_actuators():
    m = al.library.satellite()
    v0 = np.r_[0.1, -0.2, 0.05, 0.02, 0.0, 0.01, 1.0, 2.0, 3.0]
    names = ["rate_gyro", "sensor:star_tracker", "tachometer_x", "actuator:motor_y"]
    run = simulate(m, m.neutral(), v0, duration=1.0, step=0.01, efforts={"spin_y": 0.5}, record=names)
    np.testing.assert_allclose(run.recorded["rate_gyro"].values, run.v[:, :3], rtol=0, atol=1e-15)
    np.testing.assert_array_equal(run.recorded["tachometer_x"].values[:, 0], run.v[:, 6])
    assert np.all(run.recorded["actuator:motor_y"].values == 0.5)
    tracker = run.recorded["sensor:star_tracker"]
    assert tracker.components[:4] == ("position.x", "position.y", "position.z", "orientation.w")
    np.testing.assert_allclose(
        np.abs(np.sum(tracker.values[:, 3:] * run.q[:, 3:7], axis=-1)), 1.0, atol=1e-14
    )


def test_an_accelerometer_at_rest_feels_gravity():
    builder = al.ModelBuilder("arm")
    builder.body("arm", al.Inertia.point(1.0, (0, 0, -1)), joint=al.Revolute((0, 1, 0)))
    builder.sensor("felt", "accelerometer", "arm")
    run = simulate(builder.build(), [0.0], duration=0.1, step=0.01, record="felt")
    np.testing.assert_allclose(
        run.recorded["felt"].values, np.broadcast_to([0, 0, 9.80665], (11, 3)), rtol=1e-3
    )


def test_reactions():
    """A pendulum whose hinge is a loop: at rest the hinge carries the weight."""
    builder = al.ModelBuilder("hung")
    builder.body("bob", al.Inertia.box(2.0, (0.1, 0.1, 0.1), (0, 0, -1)), joint=al.Free())
    builder.loop("hinge", al.Revolute((0, 1, 0)), "world", "bob")
    m = builder.build()
    run = simulate(m, m.neutral(), duration=0.2, step=0.01, record="reaction:hinge")
    found = run.recorded["reaction:hinge"]
    g = -float(m.value(m.gravity[2]))
    np.testing.assert_allclose(
        found.values[:, 3:], np.broadcast_to([0, 0, 2 * g], (21, 3)), rtol=0, atol=1e-9
    )
    assert found.units == ("N m",) * 3 + ("N",) * 3


def test_xarray_and_netcdf(run, tmp_path):
    xarray = pytest.importorskip("xarray")
    data = run.to_xarray()
    assert data["frame:boom.position"].attrs["units"] == "m"
    assert data["frame:boom.orientation"].dims == ("time_20Hz", "frame:boom.orientation.component")
    assert data["energy"].dims == ("time",)
    path = run.save(tmp_path / "run.nc")
    with xarray.open_dataset(path) as read:
        np.testing.assert_array_equal(read["momentum"], run.recorded["momentum"].values)
        assert list(read["momentum.component"].values[:2]) == ["angular.x", "angular.y"]


def test_csv(run, tmp_path):
    with run.save(tmp_path / "run.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 101
    assert float(rows[7]["energy [J]"]) == run.energy[7]
    assert rows[7]["frame:boom.orientation.w"] == ""  # no record then
    assert float(rows[10]["frame:boom.orientation.w"]) == run.recorded["frame:boom.orientation"].values[2, 0]


def test_plot(run, tmp_path):
    pytest.importorskip("matplotlib")
    figure = run.plot(show=["frame:boom.position", "energy", "center_of_mass"], path=tmp_path / "out.png")
    assert figure.axes[0].get_ylabel() == "frame:boom.position [m]"
    assert (tmp_path / "out.png").stat().st_size > 10_000


def test_batches_and_resumed_runs(run):
    m = model("ball")
    q0, v0 = state("ball")
    options = {"duration": 0.2, "step": 0.01, "record": ["frame:tip.velocity", "work"]}
    batch = simulate(m, np.stack([q0, q0]), np.stack([v0, 2 * v0]), **options)
    assert batch.recorded["frame:tip.velocity"].values.shape == (2, 21, 3)
    alone = simulate(m, q0, v0, **options)
    np.testing.assert_array_equal(
        alone.recorded["frame:tip.velocity"].values, batch.recorded["frame:tip.velocity"].values[0]
    )
    again = run.resume(0.5, time=0.5)
    np.testing.assert_array_equal(
        again.recorded["frame:boom.position"].values, run.recorded["frame:boom.position"].values[50:]
    )


@pytest.mark.parametrize(
    ("record", "error", "message"),
    [
        ("hand", ArgumentError, "simulate: record: nothing is called 'hand'"),
        (3.0, ArgumentError, "simulate: record is 3.0, expected a list of names"),
        ([3.0], ArgumentError, "simulate: record has 3.0, expected a name"),
        ("energy@fast", ArgumentError, "simulate: record: 'energy@fast' asks for 'fast' records per second"),
        ("energy@-1", ArgumentError, "simulate: record: 'energy@-1' asks for '-1' records per second"),
        (["energy", "energy@10"], ArgumentError, "simulate: record: 'energy' is named twice"),
        ("q:elbow", ArgumentError, "simulate: record: no joint or coordinate 'elbow'"),
        ("v:elbow", ArgumentError, "simulate: record: no joint or degree of freedom 'elbow'"),
        ("frame:tip.speed", ArgumentError, "simulate: record: 'frame:tip.speed' is no quantity of a frame"),
        ("frame:top.position", ArgumentError, "has no frame 'top'"),
        ("sensor:gyro", ArgumentError, "simulate: record: no sensor 'gyro'"),
        ("actuator:motor", ArgumentError, "simulate: record: no actuator 'motor'"),
        ("reaction:loop", ArgumentError, "simulate: record: no loop, coupling or equation 'loop'"),
    ],
)
def test_messages(record, error, message):
    m = model("ball")
    with pytest.raises(error) as caught:
        simulate(m, *state("ball"), duration=0.1, step=0.01, record=record)
    assert message in str(caught.value)


def test_rates_fit_the_records(run):
    with pytest.raises(
        ArgumentError, match=r"'energy@30': the run has a record every 0.01 s, expected a rate that"
    ):
        run.channel("energy@30")
    with pytest.raises(ArgumentError, match="plot: nothing is called 'enemy'"):
        run.plot(show=["enemy"])
