"""Devices: what they add to a model, and that momentum is kept by all of them."""

import math

import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError
from alembert.spacecraft import (
    Thruster,
    control_moment_gyro,
    docking,
    docking_port,
    flexible_panel,
    gyro_jacobian,
    gyro_pyramid,
    gyro_steering,
    hinged_panel,
    reaction_wheel,
    slosh_mass,
    slosh_pendulum,
    spun_up,
)
from alembert.spacecraft.devices import MagneticTorquer
from alembert.spacecraft.operations import Separate


def hub(name="craft"):
    builder = al.ModelBuilder(name, gravity=(0, 0, 0))
    builder.body("hub", al.Inertia.box(300.0, (1.0, 1.2, 1.5)), joint=al.Free(), joint_name="flight")
    return builder


def everything():
    builder = hub()
    reaction_wheel(
        builder,
        "wheel",
        "hub",
        (1, 1, 0),
        inertia=0.05,
        static_imbalance=1e-3,
        dynamic_imbalance=1e-4,
        at=(0.1, 0, 0.3),
    )
    gyro = control_moment_gyro(
        builder, "cmg", "hub", gimbal_axis=(0, 0, 1), spin_axis=(1, 0, 0), momentum=20.0, rotor_inertia=0.1
    )
    slosh_pendulum(builder, "fuel", "hub", mass=20.0, length=0.3, at=(0, 0, -0.2))
    slosh_mass(
        builder, "oxidizer", "hub", mass=15.0, stiffness=5.0, damping=0.1, axis=(0, 1, 0), at=(0, 0, 0.2)
    )
    hinged_panel(builder, "panel", "hub", mass=12.0, size=(2.0, 1.0), at=(0, 0.6, 0), stiffness=30.0)
    return builder.build(), gyro


def test_momentum_is_kept_by_all_of_them():
    model, gyro = everything()
    rng = np.random.default_rng(3)
    v = spun_up(model, 0.05 * rng.normal(size=model.nv), [gyro])
    v[model.v_slice("wheel")] = 60.0
    run = al.simulate(
        model, None, v, duration=2.0, integrator="dop853", tolerance=1e-11,
        efforts={"wheel": 0.1, "cmg": 0.3, "cmg_rotor": -0.2}, progress=False,
    )  # fmt: skip
    h = model.momentum(run.q, run.v, about="world")
    assert np.abs(h - h[0]).max() < 1e-8 * np.abs(h).max()  # error control at 1e-11 over 20 turns of a wheel


def test_an_imbalanced_wheel_shakes_with_the_square_of_its_speed():
    """Held in place, the force is U_s Omega^2 and the moment U_d Omega^2, turning with the wheel."""
    builder = al.ModelBuilder("bench", gravity=(0, 0, 0))
    reaction_wheel(
        builder,
        "wheel",
        "world",
        (0, 0, 1),
        inertia=0.05,
        mass=4.0,
        static_imbalance=2e-3,
        dynamic_imbalance=3e-4,
    )
    model = builder.build()
    Omega = 200.0
    c = np.linalg.norm(model.center_of_mass([0.3])[:2]) * 4.0
    assert c == pytest.approx(2e-3, rel=1e-12)
    h = model.momentum([0.3], [Omega], about="world")  # H across the axis turns with it: dH/dt = Omega x H
    assert np.linalg.norm(h[:2]) * Omega == pytest.approx(3e-4 * Omega**2, rel=1e-12)
    assert h[2] == pytest.approx(0.05 * Omega, rel=1e-12)


def test_slosh_swings_as_it_should():
    builder = al.ModelBuilder("tank", gravity=(0, 0, -2.0))
    slosh_pendulum(builder, "fuel", "world", mass=10.0, length=0.4, at=(0, 0, 0))
    model = builder.build()
    linear = al.linearize(model, model.neutral())
    assert np.allclose(np.abs(linear.poles()), math.sqrt(2.0 / 0.4), rtol=1e-6)
    builder = al.ModelBuilder("tank", gravity=(0, 0, 0))
    slosh_mass(builder, "fuel", "world", mass=10.0, stiffness=90.0, damping=0.6)
    poles = al.linearize(builder.build(), [0.0]).poles()
    assert np.allclose(np.abs(poles), 3.0)
    assert np.allclose(poles.real, -0.03)


def test_panels_swing_as_they_should():
    builder = al.ModelBuilder("wall", gravity=(0, 0, 0))
    hinged_panel(builder, "panel", "world", mass=12.0, size=(2.0, 1.0), at=(0, 0, 0), stiffness=16.0)
    assert np.allclose(np.abs(al.linearize(builder.build(), [0.0]).poles()), 1.0)  # m L^2 / 3 = 16
    builder = al.ModelBuilder("wall", gravity=(0, 0, 0))
    flexible_panel(
        builder,
        "boom",
        "world",
        mass=10.0,
        length=5.0,
        bending=2000.0,
        at=(0, 0, 0),
        modes=1,
        damping_ratio=0.0,
    )
    model = builder.build()
    rate = np.abs(al.linearize(model, model.neutral()).poles()).max()
    assert rate == pytest.approx(3.5160 * math.sqrt(2000.0 / (2.0 * 5.0**4)), rel=1e-4)  # a clamped beam


def test_a_pyramid_of_gyros():
    """cos beta = 0.6: sqrt(det(A A')) = 1.152 at zero; (-90, 0, 90, 0) deg is singular with H = (1.2, 0, 0) h."""
    builder = hub()
    gyros = gyro_pyramid(
        builder, "cmg", "hub", skew_deg=math.degrees(math.acos(0.6)), momentum=1.0, rotor_inertia=0.01
    )
    model = builder.build()
    A, H = gyro_jacobian(gyros, np.zeros(4))
    assert math.sqrt(np.linalg.det(A @ A.T)) == pytest.approx(1.152, abs=1e-12)
    assert np.allclose(H, 0)
    A, H = gyro_jacobian(gyros, np.radians([-90, 0, 90, 0]))
    assert np.linalg.det(A @ A.T) == pytest.approx(0.0, abs=1e-12)
    assert np.allclose(H, [1.2, 0, 0], atol=1e-12)
    q, v = model.neutral(), spun_up(model, np.zeros(model.nv), gyros)
    angles = [0.3, -0.4, 0.5, 0.2]
    for gyro, angle in zip(gyros, angles, strict=True):
        q[model.q_slice(gyro.name)] = angle
    _, H = gyro_jacobian(gyros, angles)
    assert np.allclose(model.momentum(q, v)[:3], H, atol=1e-12)  # the multibody model says the same


def test_steering_gives_the_torque_and_survives_singular_places():
    builder = hub()
    gyros = gyro_pyramid(builder, "cmg", "hub", momentum=10.0, rotor_inertia=0.1, rate=1.0)
    A, _ = gyro_jacobian(gyros, [0.3, 0.2, -0.1, 0.4])
    rates = gyro_steering(gyros, [0.3, 0.2, -0.1, 0.4], [0.5, -0.2, 0.1])
    assert np.allclose(-A @ rates, [0.5, -0.2, 0.1], atol=1e-4)
    singular = np.radians([-90, 0, 90, 0])
    rates = gyro_steering(gyros, singular, [1.0, 0, 0], t=0.7)
    assert np.all(np.isfinite(rates))
    assert 0 < np.abs(rates).max() <= 1.0


def pair():
    builder = al.ModelBuilder("pair", gravity=(0, 0, 0))
    builder.body("target", al.Inertia.box(500.0, (2, 2, 2)), joint=al.Free(), joint_name="target_flight")
    builder.body("chaser", al.Inertia.box(200.0, (1, 1, 1)), joint=al.Free(), joint_name="chaser_flight")
    docking_port(builder, "port", "target", (1.0, 0.1, 0))
    docking_port(builder, "probe", "chaser", (-0.5, 0, 0.05), quaternion_wxyz=(0, 0, 0, 1))
    return builder.build()


def meeting(model, speed):
    q, v = model.neutral(), np.zeros(model.nv)
    q[model.q_slice("chaser_flight").start] = 2.5
    q[model.q_slice("chaser_flight").start + 1] = 0.1
    v[model.v_slice("chaser_flight")] = [0, 0, 0.01, -speed, 0, 0]
    return q, v


def test_capture_latch_and_release_keep_momentum():
    model = pair()
    q, v = meeting(model, 0.2)
    event, capture = docking(model, "port", "probe", reach=0.1, speed=0.3, angle=0.2)
    later = al.simulate.Event(lambda t, q, v: t - 8.0, "parting", 1, Separate(capture, 20.0))
    run = al.simulate(
        model, q, v, duration=10.0, integrator="dop853", events=[event, later], interval=0.1, progress=False
    )
    assert [e.name for e in run.events] == ["capture of probe", "parting"]
    assert 0.19 < run.events[0].quantities["speed"] < 0.21
    h = model.momentum(run.q, run.v, about="world")
    assert np.abs(h - h[0]).max() < 1e-6  # of 40 N s: the weld is kept by projection to 1e-9
    before = run.events[1]
    gained = model.frame_velocity(before.q_after, before.v_after, "chaser", reference="local_world_aligned")
    lost = model.frame_velocity(before.q, before.v, "chaser", reference="local_world_aligned")
    assert np.linalg.norm(gained[3:] - lost[3:]) == pytest.approx(20.0 / 200.0, rel=0.05)


def test_a_fast_approach_is_not_captured():
    model = pair()
    q, v = meeting(model, 0.5)
    event, capture = docking(model, "port", "probe", reach=0.1, speed=0.3)
    later = al.simulate.Event(lambda t, q, v: t - 2.8, "parting", 1, Separate(capture, 20.0))
    run = al.simulate(
        model, q, v, duration=3.0, integrator="dop853", events=[event, later], interval=0.5, progress=False
    )
    assert run.events[0].quantities["refused: speed"] == pytest.approx(0.5, abs=0.02)
    assert "refused: not captured" in run.events[1].quantities  # nothing parts, and nothing is pushed
    h = model.momentum(run.q, run.v, about="world")
    assert np.abs(h - h[0]).max() < 1e-6
    assert np.allclose(run.v[-1, :6], 0.0)  # the target has not been touched


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda b: reaction_wheel(b, "w", "hub", (0, 0, 0), inertia=1.0), "expected a direction"),
        (lambda b: reaction_wheel(b, "w", "hub", (0, 0, 1), inertia=-1.0), "inertia is -1.0"),
        (lambda b: reaction_wheel(b, "w", "hub", (0, 0, 1), inertia=1.0, speed=0.0), "speed is 0.0"),
        (
            lambda b: control_moment_gyro(
                b, "c", "hub", gimbal_axis=(0, 0, 1), spin_axis=(0, 1, 1), momentum=1, rotor_inertia=1
            ),
            "right angles",
        ),
        (lambda b: hinged_panel(b, "p", "hub", mass=1, size=(1, 1), at=(0, 0, 0), along=(1, 0, 0)), "right angles"),
        (lambda b: slosh_mass(b, "s", "hub", mass=0.0, stiffness=1.0), "mass is 0.0"),
        (lambda b: Thruster("t", "hub", (0, 0, 1), 0.0), "force is 0.0"),
        (lambda b: Thruster("t", "hub", (0, 0, 1), 1.0, minimum=-1.0), "minimum"),
        (lambda b: MagneticTorquer("m", "hub", 0.0), "dipole"),
    ],
)  # fmt: skip
def test_bad_devices(make, message):
    with pytest.raises(ArgumentError, match=message):
        make(hub())
