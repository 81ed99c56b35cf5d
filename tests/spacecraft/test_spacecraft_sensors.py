"""What sensors see, with errors as they are given, and when they see nothing."""

import dataclasses
import math

import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError, UnsupportedError
from alembert.simulate.sensors import Instrument
from alembert.spacecraft import (
    Encke,
    Environment,
    Epoch,
    Orbit,
    accelerometer,
    earth_sensor,
    gyro,
    magnetometer,
    position_fix,
    star_tracker,
    sun_sensor,
)
from alembert.spatial import quaternion

ORBIT = Orbit(6778137.0, 0.0, 0.9)
SPACE = Environment(Epoch.of("2026-03-01T12:00:00"), Encke(ORBIT))


def craft():
    builder = al.ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("bus", al.Inertia.box(100.0, (1, 1, 1)), joint=al.Free(), joint_name="flight")
    return builder.build()


def measured(*sensors, duration=10.0, **start):
    model = craft()
    q, v = SPACE.start(model, ORBIT, **start)
    gravity = SPACE.gravity(gradient=False)
    run = al.simulate(
        model,
        q,
        v,
        duration=duration,
        step=1.0,
        integrator="rk4",
        gravity=gravity,
        sensors=sensors,
        progress=False,
    )
    return run


def test_without_errors_they_tell_the_truth():
    run = measured(
        star_tracker("stars", "bus", SPACE, period=1.0),
        sun_sensor("sun", "bus", SPACE, period=1.0),
        earth_sensor("earth", "bus", SPACE, period=1.0),
        magnetometer("field", "bus", SPACE, period=1.0),
        position_fix("fix", "bus", SPACE, period=1.0),
        gyro("rate", "bus", period=1.0),
        accelerometer("felt", "bus", period=1.0),
    )
    seen = {name: x.values[-1] for name, x in run.measurements.items()}
    q = run.q[-1]
    R = np.asarray(quaternion.to_matrix(q[3:]))
    assert np.allclose(np.abs(seen["stars"] @ q[3:]), 1.0)
    assert np.allclose(seen["rate"], run.v[-1, :3])
    r, v = SPACE.inertial(run)
    assert np.allclose(seen["fix"], np.r_[r[-1], v[-1]], atol=1e-6)
    assert np.allclose(seen["earth"], -R.T @ r[-1] / np.linalg.norm(r[-1]))
    assert seen["earth"][2] == pytest.approx(1.0, abs=1e-3)  # local axes: z is down
    assert np.allclose(seen["felt"], 0.0, atol=1e-9)  # free fall
    assert 2e-5 < np.linalg.norm(seen["field"]) < 6e-5
    sun = np.array(SPACE.sun(10.0)).ravel()
    lit = SPACE.sunlit(10.0, q[:3])
    assert (
        np.allclose(seen["sun"], R.T @ sun / np.linalg.norm(sun), atol=1e-4)
        if lit > 0.5
        else np.isnan(seen["sun"]).all()
    )


def test_noise_has_the_density_that_is_asked_for():
    """Angle random walk N: the rate averaged over T has the deviation N/sqrt(T); a bias walks by K sqrt(T)."""
    sensors = [
        gyro(f"gyro{k}", "bus", period=1.0, noise_density=1e-3, walk_density=2e-4, seed=k) for k in range(40)
    ]
    run = measured(*sensors, duration=100.0, attitude="inertial")
    x = np.stack([run.measurements[f"gyro{k}"].values for k in range(40)])
    steps = np.diff(x, axis=1)
    expected = math.sqrt(2 * 1e-6 + 4e-8)  # neighbours: two noises and one step
    assert steps.std() == pytest.approx(expected, rel=0.03)  # 12000 numbers: 1 %
    drift = (x[:, -10:].mean(axis=1) - x[:, :10].mean(axis=1)).std()
    assert drift == pytest.approx(
        2e-4 * math.sqrt(90.0), rel=0.25
    )  # 120 numbers: 7 %, and the means' own noise


def test_blind_and_lost_samples_are_nan():
    sun = np.array(SPACE.sun(0.0)).ravel()
    sun /= np.linalg.norm(sun)
    blind = star_tracker("stars", "bus", SPACE, period=1.0, boresight=tuple(sun), sun_exclusion=0.3)
    fast = star_tracker("fast", "bus", SPACE, period=1.0, most_rate=1e-4)
    down = star_tracker("down", "bus", SPACE, period=1.0, boresight=(0, 0, -1), earth_exclusion=0.2)
    lost = earth_sensor("earth", "bus", SPACE, period=1.0, dropout=0.4, seed=5)
    narrow = earth_sensor("narrow", "bus", SPACE, period=1.0, field_of_view=0.1, boresight=(0, 0, 1))
    run = measured(blind, fast, down, lost, narrow, duration=200.0, attitude="inertial", rate=[0, 0, 1e-3])
    values = {name: x.values for name, x in run.measurements.items()}
    assert np.isnan(values["stars"][0]).all()
    assert np.isnan(values["fast"]).all()
    gone = np.isnan(values["earth"]).all(axis=1).mean()
    assert 0.3 < gone < 0.5  # 0.4 +- 0.035
    assert np.isfinite(values["earth"]).any()
    assert np.isnan(values["narrow"]).all()
    assert np.isfinite(values["down"]).all() or np.isnan(values["down"]).any()


def test_motions_of_a_batch_lose_their_own_samples():
    """One seed would lose the same samples in all motions: a seed each, or a word."""
    lost = earth_sensor("earth", "bus", SPACE, period=1.0, dropout=0.4)
    with pytest.raises(
        UnsupportedError, match=r"samples lost by chance of 'earth' and a batch of \(2,\) motions"
    ):
        Instrument.of(craft(), lost, (2,))
    own = Instrument.of(craft(), dataclasses.replace(lost, seed=[1, 2]), (2,))
    chances = own.drawn_from(0, 50, (2,))[..., -1]
    assert not np.allclose(chances[0], chances[1])


def test_a_resumed_run_sees_the_same():
    lost = earth_sensor("earth", "bus", SPACE, period=1.0, dropout=0.4, noise=1e-3, delay=2.0)
    run = measured(lost, duration=40.0)
    half = run.resume(20.0, time=20.0)
    a, b = run.measurements["earth"].values[21:], half.measurements["earth"].values
    assert np.array_equal(a[-20:], b[-20:], equal_nan=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout": 1.5}, "a chance"),
        ({"boresight": (0, 0, 0)}, "a direction"),
        ({"field_of_view": 7.0}, "half an angle"),
    ],
)
def test_bad_sensors(options, message):
    with pytest.raises(ArgumentError, match=message):
        sun_sensor("sun", "bus", SPACE, period=1.0, **options)
    with pytest.raises(ArgumentError, match="nowhere"):
        measured(sun_sensor("sun", "nowhere", SPACE, period=1.0))


@pytest.mark.parametrize("among", ["gravity", "forces"])
def test_accelerometers_feel_no_orbit_however_it_is_given(among):
    """In the run and in its records: off the centre of mass only what turns is felt, w x (w x r)."""
    builder = al.ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("bus", al.Inertia.box(100.0, (1, 1, 1)), joint=al.Free(), joint_name="flight")
    builder.frame("boom", "bus", (0.5, 0, 0)).sensor("felt", "accelerometer", "boom")
    model = builder.build()
    q, v = SPACE.start(model, ORBIT, attitude="inertial", rate=[0, 0, 0.1])
    run = al.simulate(
        model, q, v, duration=4.0, step=1.0, integrator="rk4", record=("sensor:felt",), progress=False,
        sensors=[al.simulate.Measured("felt", 1.0)], **{among: SPACE.gravity(gradient=False)},
    )  # fmt: skip
    expected = [-0.5 * 0.1**2, 0, 0]
    assert np.allclose(
        run.measurements["felt"].values, expected, atol=2e-6
    )  # the gradient of gravity over 0.5 m
    assert np.allclose(run.recorded["sensor:felt"].values, expected, atol=2e-6)
