"""Sensors: what they measure, their errors, their instants, and controllers that read them."""

import numpy as np
import pytest
from simulate_helpers import model as helper_model
from simulate_helpers import state

import alembert as al
from alembert.errors import ArgumentError, UnsupportedError
from alembert.model import Sensor
from alembert.simulate import CentralGravity, Measured, Sampled, simulate

KINDS = ("joint_position", "joint_rate", "point", "frame", "gyro", "accelerometer")


@pytest.fixture(scope="module")
def arm():
    m = al.library.two_link()
    sensors = [
        Sensor("encoder", "joint_position", m.joints[0].name),
        Sensor("tacho", "joint_rate", m.joints[0].name),
    ]
    return m.replace(sensors=tuple(sensors))


def test_what_is_measured():
    m = helper_model("ball")
    q, v = state("ball")
    sensors = [
        Measured(Sensor(kind, kind, "ball" if kind.startswith("joint") else "tip"), 0.1) for kind in KINDS
    ]
    run = simulate(m, q, v, duration=0.3, step=0.01, integrator="rk4", sensors=sensors)
    rows = np.arange(0, 31, 10)
    found = {kind: run.measurements[kind].values for kind in KINDS}
    np.testing.assert_allclose(run.measurements["gyro"].time, [0.0, 0.1, 0.2, 0.3], atol=1e-12)
    q, v, a = run.q[rows], run.v[rows], run.accelerations[rows]
    X = m.frame_pose(q, "tip")
    np.testing.assert_array_equal(found["joint_position"], q[:, :4])
    np.testing.assert_array_equal(found["joint_rate"], v[:, :3])
    np.testing.assert_allclose(found["point"], X.translation, atol=1e-14)
    np.testing.assert_allclose(found["frame"][:, :3], X.translation, atol=1e-14)
    np.testing.assert_allclose(found["gyro"], m.frame_velocity(q, v, "tip")[:, :3], atol=1e-14)
    A = m.frame_acceleration(q, v, a, "tip", reference="local_world_aligned")[:, 3:] + [0, 0, 9.81]
    np.testing.assert_allclose(found["accelerometer"], np.einsum("kji,kj->ki", X.rotation, A), atol=1e-10)


def test_accelerometers_feel_no_gravity_in_free_fall():
    builder = al.ModelBuilder("probe")
    builder.body("probe", al.Inertia.box(1.0, (1, 1, 1)), joint=al.Free())
    m = builder.build()
    q = m.neutral()
    q[0] = 7e6
    sensor = Measured(Sensor("imu", "accelerometer", "probe"), 1.0)
    for gravity in (CentralGravity(), (0, 0, -9.81)):
        run = simulate(m, q, duration=5.0, step=0.5, integrator="rk4", gravity=gravity, sensors=sensor)
        assert np.abs(run.measurements["imu"].values).max() < 1e-8
    pushed = simulate(
        m,
        q,
        duration=5.0,
        step=0.5,
        integrator="rk4",
        wrenches={"probe": [0, 0, 0, 0, 2.0, 0]},
        sensors=sensor,
    )
    np.testing.assert_allclose(pushed.measurements["imu"].values, 6 * [[0, 2.0, 0]], atol=1e-12)


def test_errors(arm):
    """Noise, bias, random walk and resolution have the sizes that are asked for; zero errors read exactly."""
    zero = np.zeros(arm.nq)
    options = {"step": 0.01, "interval": 1.0, "integrator": "rk4", "gravity": (0, 0, 0)}

    def readings(duration=1.0, **errors):
        run = simulate(arm, zero, duration=duration, sensors=Measured("tacho", 0.01, **errors), **options)
        return run.measurements["tacho"].values[:, 0]

    assert not np.any(readings())
    noise = readings(20.0, noise=0.2, bias=1.0)
    # 2001 samples: mean to 0.2/sqrt(2001), deviation to 1/sqrt(4002), at five standard deviations
    assert noise.mean() == pytest.approx(1.0, abs=5 * 0.2 / np.sqrt(2001))
    assert noise.std() == pytest.approx(0.2, rel=5 / np.sqrt(4002))
    walk = np.diff(readings(20.0, walk=0.3))
    assert walk.std() == pytest.approx(0.3 * np.sqrt(0.01), rel=5 / np.sqrt(4000))
    coarse = readings(noise=0.2, quantum=0.05)
    np.testing.assert_allclose(coarse / 0.05, np.round(coarse / 0.05), atol=1e-9)
    np.testing.assert_array_equal(readings(noise=0.2, seed=4), readings(noise=0.2, seed=4))
    assert np.any(readings(noise=0.2, seed=4) != readings(noise=0.2, seed=5))


def test_noise_of_rotations_is_a_rotation():
    m = helper_model("ball")
    q, v = state("ball")
    sensors = [
        Measured(Sensor("attitude", "joint_position", "ball"), 0.01, noise=0.02),
        Measured(Sensor("tracker", "frame", "tip"), 0.01, noise=(0.02, 0.02, 0.02, 0, 0, 0)),
    ]
    run = simulate(m, q, v, duration=1.0, step=0.01, integrator="rk4", sensors=sensors)
    for name, columns in (("attitude", slice(0, 4)), ("tracker", slice(3, 7))):
        values = run.measurements[name].values[:, columns]
        np.testing.assert_allclose(np.linalg.norm(values, axis=-1), 1.0, atol=1e-12)
    measured = run.q.copy()
    measured[:, :4] = run.measurements["attitude"].values
    off = m.difference(run.q, measured)[:, :3]
    assert off.std() == pytest.approx(0.02, rel=5 / np.sqrt(600))


def test_instants_and_order(arm):
    """A sensor of 50 Hz with a delay of 30 ms, a controller of 20 Hz: every answer is of the newest that has arrived."""
    seen = []

    def law(t, read):
        seen.append((round(t, 6), float(read["encoder"][0])))
        return [0.0, 0.0]

    run = simulate(arm, [0.5, 0.0], duration=0.3, step=0.01, integrator="rk4",
                   sensors=Measured("encoder", 0.02, delay=0.03),
                   controller=Sampled(law, 0.05, reads="encoder"))  # fmt: skip
    assert [t for t, _ in seen] == [0.05, 0.1, 0.15, 0.2, 0.25, 0.3]
    for t, value in seen:
        newest = 0.02 * np.floor((t - 0.03) / 0.02 + 1e-9)
        assert value == run.q[round(newest / 0.01), 0]


@pytest.mark.parametrize("integrator", ["rk4", "variational", "dop853"])
def test_reading_without_errors_is_seeing_the_state(arm, integrator):
    def blind(t, read):
        return np.array([-20.0 * read["encoder"][0] - 4.0 * read["tacho"][0], 0.0])

    def seeing(t, q, v):
        return np.array([-20.0 * q[0] - 4.0 * v[0], 0.0])

    options = {"duration": 0.5, "step": 0.01, "integrator": integrator}
    sensors = [Measured("encoder", 0.02), Measured("tacho", 0.02)]
    reading = Sampled(blind, 0.02, reads=("encoder", "tacho"))
    run = simulate(arm, [0.5, 0.1], sensors=sensors, controller=reading, **options)
    expected = simulate(arm, [0.5, 0.1], controller=Sampled(seeing, 0.02), **options)
    np.testing.assert_allclose(run.q, expected.q, rtol=0, atol=1e-12)


def test_continuation_is_bitwise_equal(arm):
    """Noise, random walk, delays and the accelerometer's effort go on as if the run had not been interrupted."""
    imu = Sensor("imu", "accelerometer", arm.bodies[-1].name)

    def law(t, read):
        return np.array([-20.0 * read["encoder"][0], -0.1 * read["imu"][0]])

    run = simulate(
        arm, [0.5, 0.1], duration=0.6, step=0.01, integrator="rk4",
        sensors=[Measured("encoder", 0.02, noise=0.01, walk=0.02, delay=0.03, seed=7), Measured(imu, 0.01, noise=0.1)],
        controller=[Sampled(law, 0.03, delay=0.01, reads=("encoder", "imu")), Sampled(lambda t, q, v: -v, 0.02)],
    )  # fmt: skip
    again = run.resume(0.35, time=0.25)
    np.testing.assert_array_equal(again.q, run.q[25:])
    whole, part = run.measurements["imu"], again.measurements["imu"]
    np.testing.assert_array_equal(part.values, whole.values[-len(part.values) :])


def test_batches_have_a_seed_each(arm):
    options = {"duration": 0.1, "step": 0.01, "integrator": "rk4"}
    sensor = Measured("encoder", 0.02, noise=0.01, seed=[3, 4])
    run = simulate(arm, [[0.5, 0.1], [0.4, 0.1]], sensors=sensor, **options)
    alone = simulate(arm, [0.4, 0.1], sensors=Measured("encoder", 0.02, noise=0.01, seed=4), **options)
    np.testing.assert_allclose(
        run.measurements["encoder"].values[1], alone.measurements["encoder"].values, atol=1e-14
    )
    with pytest.raises(UnsupportedError, match=r"a batch of \(2,\) motions: give a seed for each"):
        simulate(arm, [[0.5, 0.1], [0.4, 0.1]], sensors=Measured("encoder", 0.02, noise=0.01), **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Measured(3, 0.1), "Measured: sensor is 3, expected a name or a Sensor"),
        (lambda: Measured("a", 0.0), "period is 0.0, expected a positive time"),
        (lambda: Measured("a", 0.1, delay=-1.0), "delay is -1.0, expected zero or a positive number"),
        (lambda: Measured("a", 0.1, noise=-1.0), "noise is -1.0, expected zero or positive numbers"),
        (lambda: Measured("a", 0.1, bias=np.nan), "bias is nan, expected numbers"),
        (lambda: Measured("a", 0.1, seed=0.5), "seed is 0.5, expected integers"),
    ],
)
def test_messages(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sensors": "encoder"}, ArgumentError, "sensors has 'encoder', expected Measured"),
        ({"sensors": Measured("encodr", 0.1)}, ArgumentError, "sensors: no sensor 'encodr'"),
        ({"sensors": Measured(Sensor("x", "joint_rate", "knee"), 0.1)}, ArgumentError, "sensors: no joint 'knee'"),
        ({"sensors": Measured("encoder", 0.1, noise=(1.0, 2.0))}, ArgumentError, "noise of 'encoder' has 2 entries"),
        ({"sensors": Measured("encoder", 0.015)}, ArgumentError, "sensor 'encoder' has period 0.015 s, expected a multiple"),
        ({"sensors": 2 * [Measured("encoder", 0.1)]}, ArgumentError, "sensors: 'encoder' is given twice"),
        ({"controller": Sampled(print, 0.1, reads="encoder")}, ArgumentError, "controller reads no sensor 'encoder'"),
        (
            {"sensors": Measured(Sensor("x", "frame", "world"), 0.1, quantum=0.1)},
            UnsupportedError,
            "a quantum and 'x' do not go together",
        ),
    ],
)  # fmt: skip
def test_messages_of_runs(arm, options, error, message):
    with pytest.raises(error, match=message):
        simulate(arm, [0.1, 0.2], duration=0.1, step=0.01, integrator="rk4", **options)
