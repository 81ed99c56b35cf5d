"""Transporters, tethers and rims: what is conserved, closed forms, and bad input."""

import math

import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError, UnsupportedError
from alembert import spacecraft as sc


def test_paths_rest_where_they_should():
    path = sc.rest_to_rest([1.0, 3.0, 4.0, 6.0], [0.0, 2.0, 2.0, -1.0])
    t = np.array([0.0, 1.0, 2.0, 3.0, 3.5, 4.0, 5.0, 6.0, 9.0])
    found = np.array(path(t[None, :])).ravel()
    np.testing.assert_allclose(found, [0, 0, 1, 2, 2, 2, 0.5, -1, -1], atol=1e-15)  # half way at half time
    assert sc.rest_to_rest([0.0, 1.0], [[0.0, 1.0], [1.0, 3.0]]).numel_out(0) == 2


@pytest.fixture(scope="module")
def station():
    builder = al.ModelBuilder("station", gravity=(0, 0, 0))
    builder.body("truss", al.Inertia.box(3000.0, (20, 2, 2)), joint=al.Free(), joint_name="flight")
    sc.transporter(builder, "car", "truss", at=(-8, 1.5, 0), along=(2, 0, 0), length=16, mass=600)
    builder.frame("lab", "truss", (0.0, 2.0, 3.0))
    return builder.build()


@pytest.fixture(scope="module")
def driven(station):
    path = sc.rest_to_rest([2.0, 18.0], [0.0, 16.0])
    return al.simulate(
        station, duration=20.0, step=0.05, integrator="rk4", prescribed={"car": path}, progress=False
    )


def test_a_transporter_keeps_momentum(station, driven):
    """The centre of mass stays; the truss turns against the car, and stops with it."""
    run = driven
    h = station.momentum(run.q, run.v)
    # RK4 on a motion of 16 s in steps of 0.05 s: (0.05/16)^4 = 1e-10, of the car's 600 kg at 1.9 m/s, 1.5 m off the axis
    assert np.abs(h).max() < 1e-9 * 600 * 1.9 * 1.5
    centre = station.center_of_mass(run.q)
    np.testing.assert_allclose(centre, np.broadcast_to(centre[0], centre.shape), atol=1e-9 * 16)
    assert np.abs(run.v[-1]).max() < 1e-9
    assert abs(run.q[-1, 6]) > 0.02  # it has turned about z meanwhile


def test_microgravity_of_a_car(station, driven):
    """What is felt in the lab is the truss's own acceleration there; Parseval's theorem holds for the bands."""
    run, level = driven, sc.microgravity(driven, "lab")
    v = station.frame_velocity(run.q, run.v, "lab", reference="local_world_aligned")[:, 3:]
    slope = (v[2:] - v[:-2]) / 0.1
    R = station.frame_pose(run.q, "lab").rotation[1:-1]
    felt = np.einsum("kji,kj->ki", R, slope)
    inner = (
        np.abs(np.abs(run.time[1:-1] - 10.0) - 8.0) > 0.06
    )  # the jerk jumps where the car starts and stops
    # central differences: h^2/6 of the third derivative of a polynomial of order 4 over 16 s, 360/16^2 h^2/6 of its size
    atol = 360 / 16**2 * 0.05**2 / 6 * np.abs(felt).max()
    np.testing.assert_allclose(level.felt[1:-1][inner], felt[inner], rtol=0, atol=atol)
    bands, sizes = level.third_octaves()
    x = level.felt[:-1] / 9.80665 * 1e6
    x = x - x.mean(axis=0)
    power = np.sum(np.abs(np.fft.rfft(x, axis=0)) ** 2, axis=-1) / len(x) ** 2
    power[1 : len(power) - 1] *= 2
    f, edge = np.fft.rfftfreq(len(x), 0.05), 10**0.05
    outside = power[(f < bands[0] / edge) | (f >= bands[-1] * edge)].sum()
    assert np.sum(sizes**2) + outside == pytest.approx(np.sum(np.mean(x**2, axis=0)), rel=1e-12)
    assert level.rms < level.peak
    assert "millionths of g" in str(level)


def test_a_tether_hangs_and_swings():
    """As stiff as rods: a vertical tether at rest in local axes stays, and its pull is 3 n^2 (m L + rho L^2/2)."""
    L, rho, m, segments = 2000.0, 0.01, 50.0, 4
    orbit = sc.Orbit.circular(400e3, 0.0)
    builder = al.ModelBuilder("tethered", gravity=(0, 0, 0))
    builder.body("hub", al.Inertia.box(1e5, (5, 5, 5)), joint=al.Free(), joint_name="flight")
    last = sc.tether(
        builder, "line", "hub", at=(0, 0, 0), along=(0, 0, 1), length=L, density=rho, segments=segments,
        end=al.Inertia.sphere(m, 0.5),
    )  # fmt: skip
    assert last == "line_end"
    model = builder.build()
    assert model.momentum_matrix(model.neutral())[3, 3] == pytest.approx(1e5 + rho * L + m)
    space = sc.Environment(world=sc.Encke(orbit, 0.0))
    q, v = space.start(model, orbit)
    forces = al.simulate.Forces(model, [space.gravity(degree=0)])
    a = model.forward_dynamics(q, v, forces.efforts(q, v))
    # by symmetry it hangs: rates of the joints do not change. n^2 = 1.3e-6, and rounding of 8 m/s^2 over 500 m
    assert np.abs(a[6:]).max() < 1e-3 * orbit.rate**2


def test_a_rim_deploys_and_locks():
    """Energy is kept until all hinges lock at once, and then gone; the rim is a regular polygon, momentum is kept."""
    builder = al.ModelBuilder("rim", gravity=(0, 0, 0))
    rim = sc.deployable_rim(
        builder, "rim", al.WORLD, segments=6, length=1.0, mass=1.0, stiffness=2.0, joint=al.Free()
    )
    model = builder.build()
    q = rim.stowed(model, model.neutral(), 1.5)
    assert np.abs(model.constraint_residual(q)).max() < 1e-13
    run = al.simulate(
        model, q, duration=0.4, step=0.01, integrator="rk4", events=rim.lock_ups(model), progress=False
    )
    assert [event.name for event in run.events] == [f"lock-up of rim_hinge_{k}" for k in range(1, 7)]
    assert np.ptp([event.time for event in run.events]) < 1e-6  # by symmetry
    before = run.time < run.events[0].time
    # rates of 10 rad/s: (0.01 * 10)^4 of RK4, a part of it
    assert np.ptp(run.energy[before]) < 1e-4 * run.energy[0]
    assert sum(event.energy for event in run.events) == pytest.approx(-6 * 2.0 * 1.5**2 / 2, rel=1e-4)
    assert np.abs(run.momentum).max() < 1e-4 * 10
    corners = np.array([model.frame_pose(run.q[-1], f"rim_{k}").translation for k in range(2, 7)])
    sides = np.linalg.norm(corners[2:] - corners[:-2], axis=-1)
    np.testing.assert_allclose(sides, math.sqrt(3), rtol=1e-6)
    assert rim.radius == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda b: sc.rest_to_rest([0, 1], [1.0]), "2 times .* and 1 values"),
        (lambda b: sc.rest_to_rest([1, 1], [0.0, 1.0]), "times ascending"),
        (lambda b: sc.rest_to_rest([0, 1], [0.0, np.inf]), "expected finite numbers, one or more"),
        (lambda b: sc.rest_to_rest([], []), "expected finite numbers, one or more"),
        (
            lambda b: sc.transporter(b, "car", "hub", at=(0, 0, 0), along=(0, 0, 0), length=1, mass=1),
            "transporter 'car': axis is",
        ),
        (
            lambda b: sc.transporter(b, "car", "hub", at=(0, 0, 0), along=(1, 0, 0), length=-1, mass=1),
            "length is -1",
        ),
        (
            lambda b: sc.tether(b, "line", "hub", at=(0, 0, 0), length=1, density=1, segments=0),
            "segments is 0, expected a positive number",
        ),
        (
            lambda b: sc.deployable_rim(b, "rim", "hub", length=1, mass=1, stiffness=1, segments=7),
            "segments is 7, expected an even number",
        ),
        (
            lambda b: sc.deployable_rim(b, "rim", "hub", length=1, mass=1, stiffness=1).stowed(None, [], 3.0),
            "fold is 3.0, expected 0 to 2.7925 rad",
        ),
    ],
)
def test_bad_operations(make, message):
    builder = al.ModelBuilder("craft")
    builder.body("hub", al.Inertia.box(10.0, (1, 1, 1)), joint=al.Free())
    with pytest.raises(ArgumentError, match=message):
        make(builder)


def test_bad_levels(station):
    run = al.simulate(station, duration=0.3, step=0.1, integrator="rk4", progress=False)
    with pytest.raises(ArgumentError, match=r"4 records from 0\.1 to 0\.1 s apart, expected 9 or more"):
        sc.microgravity(run, "lab").third_octaves()
    both = al.simulate(
        station, np.stack(2 * [station.neutral()]), duration=0.2, step=0.1, integrator="rk4", progress=False
    )
    with pytest.raises(UnsupportedError, match="one motion at a time"):
        sc.microgravity(both, "lab")
