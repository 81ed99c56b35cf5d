"""Gravity fields against Kepler's orbits, gravity-gradient torques and Hill's relative motion."""

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError
from alembert.simulate import CentralGravity, GravityGradient, simulate
from alembert.simulate.elements import Elements


def craft(joint, tensor=(30.0, 0, 20.0, 0, 0, 12.0), com=(0.0, 0, 0)):
    builder = al.ModelBuilder("craft")
    builder.body("bus", al.Inertia(10.0, com, tensor), joint=joint)
    return builder.build()


@pytest.mark.parametrize("first", [{"gravity": CentralGravity(40.0, gradient=False)}, {}])
def test_nothing_is_felt_in_free_fall_through_several_fields(first):
    """One in the place of the model's gravity, or that gravity itself, and one among the forces."""
    builder = al.ModelBuilder("probe", gravity=(0, 0, -0.3))
    builder.body("bus", al.Inertia.sphere(10.0, 0.1), joint=al.Free())
    builder.sensor("felt", "accelerometer", "bus")
    other = CentralGravity(15.0, (0.0, 9.0, 1.0), gradient=False)
    run = simulate(
        builder.build(), [3.0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 2.0, 0], duration=1.0, step=0.1,
        integrator="rk4", forces=other, sensors=al.simulate.Measured("felt", 0.1), **first,
    )  # fmt: skip
    assert np.linalg.norm(run.accelerations, axis=-1).min() > 0.3
    np.testing.assert_allclose(run.channel("felt").values, 0.0, atol=1e-13)
    np.testing.assert_allclose(run.measurements["felt"].values, 0.0, atol=1e-13)


@pytest.mark.parametrize(
    ("integrator", "options", "tolerance"),
    [
        ("dop853", {"tolerance": 1e-12}, 1e-8),
        ("rk4", {"step": 2 * np.pi / 2000}, 1e-8),
        ("variational", {"step": 2 * np.pi / 2000}, 1e-3),
    ],
)
def test_kepler(integrator, options, tolerance):
    """mu = 1, from the pericentre at 0.5 of an orbit of semi-axis 1: back after 2 pi."""
    m = craft(al.Translational(), tensor=(1e-9, 0, 1e-9, 0, 0, 1e-9))
    v = np.sqrt(1.5 / 0.5)
    run = simulate(
        m,
        [0.5, 0, 0],
        [0, v, 0],
        duration=2 * np.pi,
        integrator=integrator,
        gravity=CentralGravity(1.0),
        **options,
    )
    np.testing.assert_allclose(run.q[-1], [0.5, 0, 0], rtol=0, atol=10 * tolerance)
    assert run.report.work is None
    assert run.energy[0] == pytest.approx(-10.0 / 2, abs=1e-8)  # -m mu/(2 a)
    assert run.report.energy_error < tolerance
    h = run.momentum[:, 2]
    assert np.ptp(h) < (1e-12 if integrator == "variational" else 1e-7)


def test_gravity_gradient_torque():
    """3 mu/r^3 u x J u of one body, at any attitude and with its centre of mass off the origin."""
    m = craft(al.Free(), com=(0.3, -0.2, 0.1))
    rng = np.random.default_rng(3)
    mu, J = 4e14, np.diag([30.0, 20.0, 12.0])
    q = np.r_[7e6, 1e6, -2e6, rng.normal(size=4)]
    q[3:] /= np.linalg.norm(q[3:])
    R = m.frame_pose(q, "bus").rotation
    r = q[:3] + R @ [0.3, -0.2, 0.1]
    d, u = np.linalg.norm(r), r / np.linalg.norm(r)
    u_B = R.T @ u
    torque = 3 * mu / d**3 * np.cross(u_B, J @ u_B)
    kept, *_ = Elements(m, [CentralGravity(mu)], None).kernel("numbers")(np.zeros(1), q, np.zeros(6))
    about_com = kept[:3] - np.cross([0.3, -0.2, 0.1], kept[3:])
    # the forces are 1e2 N with rounding 1e-14, the torque is 1e-5 N m
    np.testing.assert_allclose(about_com, torque, rtol=0, atol=1e-9 * np.abs(torque).max() + 1e-13)
    np.testing.assert_allclose(R @ kept[3:], -10.0 * mu / d**2 * u, rtol=1e-9)


def test_libration_period():
    """Pitch of a body that looks down, in the field (2): frequency n sqrt(3 (Jx - Jy)/Jz), radial along y."""
    n = 1e-3
    m = craft(al.Revolute((0, 0, 1)), tensor=(30.0, 0, 12.0, 0, 0, 20.0))
    field = GravityGradient(n, radial=(0, 1, 0))
    small, w = 1e-3, n * np.sqrt(3 * (30 - 12) / 20)
    run = simulate(
        m, [small], [n], duration=2 * np.pi / w, gravity=field, tolerance=1e-11, absolute_tolerance=1e-14
    )
    pitch = run.q[:, 0] - n * run.time
    # the nonlinear period is longer by theta^2/16
    np.testing.assert_allclose(pitch, small * np.cos(w * run.time), rtol=0, atol=2 * small**3 + 1e-8 * small)
    assert run.report.energy_error < 1e-6  # the field does work, which is in the balance


def test_relative_motion():
    """Hill's equations: a push along the orbit from the origin, in closed form (Clohessy and Wiltshire)."""
    n, push = 1.1e-3, 0.3
    m = craft(al.Translational())
    T = 2 * np.pi / n
    run = simulate(
        m,
        [0, 0, 0],
        [0, push, 0],
        duration=T,
        gravity=GravityGradient(n),
        tolerance=1e-11,
        absolute_tolerance=1e-12,
    )
    t = run.time
    x, y = 2 * push / n * (1 - np.cos(n * t)), push / n * (4 * np.sin(n * t) - 3 * n * t)
    c, s = np.cos(n * t), np.sin(n * t)
    expected = np.stack([c * x - s * y, s * x + c * y], axis=-1)
    np.testing.assert_allclose(run.q[:, :2], expected, rtol=0, atol=1e-6)


def test_the_gradient_is_what_is_left_of_the_centre():
    """Two bodies on a tether: the field of a centre, seen from the orbit, to first order in their distance."""
    n, radius = 1e-3, 7e6
    mu = n**2 * radius**3
    m = craft(al.Translational())
    x = np.array([20.0, -10.0, 15.0])
    central, gradient = CentralGravity(mu), GravityGradient(n)
    at_center = central.acceleration(0.0, np.array([radius, 0, 0]))
    left = central.acceleration(0.0, np.array([radius, 0, 0]) + x) - at_center
    np.testing.assert_allclose(gradient.acceleration(0.0, x), left, rtol=1e-4, atol=1e-12)
    for field, q in ((central, x + np.array([radius, 0, 0])), (gradient, x)):
        kept, other, _, _ = Elements(m, [field], None).kernel("numbers")(np.zeros(1), q, np.zeros(3))
        np.testing.assert_allclose((kept + other) / 10.0, field.acceleration(0.0, q), rtol=1e-8)


def test_bodies_without_mass_and_models_with_joints():
    """Energy of an arm in orbit about a centre."""
    builder = al.ModelBuilder("arm")
    builder.body("bus", al.Inertia.box(10.0, (1, 1, 1)), joint=al.Free())
    builder.body("link", al.Inertia(), joint=al.Revolute((0, 0, 1)), parent="bus", placement=(0.5, 0, 0))
    builder.body(
        "tip", al.Inertia.rod(2.0, (0, 0, 0), (1, 0, 0)), joint=al.Revolute((0, 1, 0)), parent="link"
    )
    m = builder.build()
    q = m.neutral()
    q[0] = 3.0
    v = np.array([0.1, 0.2, 0.3, 0, 1.2, 0, 0.4, -0.3])
    run = simulate(m, q, v, duration=2.0, step=1e-3, integrator="rk4", gravity=CentralGravity(5.0))
    assert run.report.energy_error < 1e-8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CentralGravity(-1.0), "CentralGravity: parameter is -1.0, expected positive"),
        (lambda: GravityGradient(0.0), "GravityGradient: rate is 0.0, expected a positive rate"),
        (lambda: GravityGradient(1.0, (1, 0, 0), (1, 0, 0)), "expected orthogonal directions"),
    ],
)
def test_messages(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_ensembles_in_a_field():
    m = craft(al.Translational(), tensor=(1e-9, 0, 1e-9, 0, 0, 1e-9))
    options = {"duration": 0.5, "step": 0.01, "integrator": "rk4", "gravity": CentralGravity(1.0)}
    found = al.ensemble(
        m, lambda rng: {"v0": [0, rng.uniform(0.5, 1.0), 0]}, members=2, q0=[1.0, 0, 0], **options
    )
    run = simulate(m, [1.0, 0, 0], found.v[0, 0], **options)
    np.testing.assert_allclose(found.q[0, -1], run.q[-1], rtol=0, atol=1e-15)
