"""Elements, two-line elements, reference orbits, and what they keep."""

import math

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError
from alembert.errors import AlembertWarning
from alembert.spacecraft import Cowell, Encke, Environment, Epoch, Orbit, sun_synchronous

MU = 3.986004418e14


@pytest.mark.parametrize("seed", range(20))
def test_elements_and_states_are_inverse(seed):
    rng = np.random.default_rng(seed)
    e = rng.uniform(0, 0.6)
    orbit = Orbit(7e6 / (1 - e), e, rng.uniform(0.01, 3.1), *rng.uniform(0.01, 6.2, 3))
    r, v = orbit.state()
    back = Orbit.of_state(r, v)
    assert np.allclose(back.state(), (r, v), rtol=1e-12)
    assert back.semi_axis == pytest.approx(orbit.semi_axis, rel=1e-12)
    assert np.allclose([back.eccentricity, back.inclination, back.node], [e, orbit.inclination, orbit.node])
    h = np.cross(r, v)
    assert np.linalg.norm(h) == pytest.approx(math.sqrt(MU * orbit.semi_axis * (1 - e**2)), rel=1e-12)
    r2, _ = orbit.state(orbit.period)
    assert np.allclose(r2, r, atol=1e-5)  # an angle of 2 pi more


@pytest.mark.parametrize("orbit", [Orbit(7e6), Orbit(7e6, 0.0, math.pi / 2), Orbit(7.2e6, 0.02)])
def test_singular_elements_still_give_their_state(orbit):
    assert np.allclose(Orbit.of_state(*orbit.state()).state(), orbit.state(), rtol=1e-12, atol=1e-6)


@pytest.mark.parametrize(("e", "j2"), [(0.0, 1.08e-3), (0.02, 1.08e-3), (0.7, 1.08e-3), (0.3, 0.0)])
def test_the_reference_orbit_is_a_motion(e, j2):
    """Velocity and acceleration are the derivatives of the position: (2) of the module."""
    world = Encke(Orbit(7e6 / (1 - e), e, 0.9, 0.3, 0.4, 0.5), j2=j2)
    t = ca.SX.sym("t")
    r, v, a = world.motion(t)
    f = ca.Function("f", [t], [ca.jacobian(r, t) - v, ca.jacobian(v, t) - a])
    for at in (0.0, 1234.5, 86400.0):
        slope, curve = f(at)
        assert np.abs(np.array(slope)).max() < 1e-9
        assert np.abs(np.array(curve)).max() < 1e-11


def test_two_line_elements():
    """SGP4 in axes of date, turned to inertial ones: the plane precesses by 50" a year from J2000."""
    lines = (
        "1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927",
        "2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537",
    )
    orbit = Orbit.of_tle(*lines)
    assert orbit.epoch.utc.startswith("2008-09-20T12:25:40")
    assert 6.70e6 < orbit.semi_axis < 6.76e6
    assert math.degrees(orbit.inclination) == pytest.approx(51.64, abs=0.2)
    later = Orbit.of_tle(*lines, epoch=orbit.epoch + 60.0)
    r, _ = orbit.state(60.0)
    assert np.linalg.norm(later.state()[0] - r) < 30.0  # J2 over a minute: 1e-2 m/s^2 60^2/2 is 18 m
    with pytest.raises(ArgumentError, match="line 2"):
        Orbit.of_tle(lines[0], "nothing")
    with pytest.raises(ArgumentError, match="line 2 ends with the checksum '7', and its characters give 8"):
        Orbit.of_tle(lines[0], lines[1].replace("51.6416", "51.6417"))
    with pytest.warns(AlembertWarning, match="is 31 days after that of the elements"):
        Orbit.of_tle(*lines, epoch=orbit.epoch + 31 * 86400.0)
    with pytest.warns(
        AlembertWarning, match="altitude is 500 m, where nothing orbits; heights are in metres"
    ):
        Orbit.circular(500.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Orbit(6.2e6), "178 km below the ground"),
        (lambda: Orbit(6778.0), "lengths are in metres"),
        (lambda: Orbit(7e6, 1.2), "expected an ellipse"),
        (lambda: Orbit.of_state([7e6, 0, 0], [0, 12e3, 0]), "escape speed"),
        (lambda: sun_synchronous(1e7), "no orbit at"),
        (lambda: Environment(epoch="2026"), "expected Epoch.of"),
        (lambda: Environment(world="encke"), "expected Cowell"),
        (lambda: Environment(Epoch.of("2150-01-01", "TT")), "where the series"),
        (lambda: Environment().gravity(sun=True), "needs an epoch"),
        (lambda: Environment().gravity(degree=30), "go to 20"),
        (lambda: Environment().gravity(degree=1), "vanishes"),
        (lambda: Environment().gravity(degree=2, order=3), "0 <= order <= degree"),
        (lambda: Environment().start(al.library.two_link(), Orbit(7e6)), "expected a free joint"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_sun_synchronous_inclination():
    assert math.degrees(sun_synchronous(700e3)) == pytest.approx(98.187982, abs=2e-6)


def test_digits_kept():
    """Two craft a metre apart: the distance between them after an orbit, in both worlds, against a high-order reference."""
    builder = al.ModelBuilder("pair", gravity=(0, 0, 0))
    for name in ("chief", "deputy"):
        builder.body(name, al.Inertia.box(100.0, (1, 1, 1)), joint=al.Free(), joint_name=f"{name}_flight")
    model = builder.build()
    orbit = Orbit(6778137.0, 0.0, 0.9)
    found = {}
    for label, world in (("encke", Encke(orbit)), ("cowell", Cowell())):
        environment = Environment(world=world)
        q, v = environment.start(model, orbit, attitude="inertial")
        s = model.q_slice("deputy_flight")
        q[s] = q[model.q_slice("chief_flight")]
        q[s.start] += 1.0
        v[model.v_slice("deputy_flight")] = v[model.v_slice("chief_flight")]
        separations = []
        for step in (2.5, 5.0):
            run = al.simulate(
                model, q, v, duration=5000.0, step=step, interval=5000.0, integrator="rk4",
                gravity=environment.gravity(gradient=False), progress=False,
            )  # fmt: skip
            separations.append(run.q[-1, s.start : s.start + 3] - run.q[-1, :3])
        found[label] = separations
    truncation = np.abs(found["encke"][0] - found["encke"][1]).max()
    assert truncation < 1e-8  # both steps are far below what rounding costs the other world
    lost = np.abs(found["cowell"][0] - found["encke"][0]).max()
    assert lost > 30 * truncation
    assert lost < 1e-4
