"""What acts in orbit, against independent programs, closed forms and itself."""

import datetime
import math

import casadi as ca
import numpy as np
import ppigrf
import pytest

import alembert as al
from alembert import ArgumentError, spacecraft
from alembert.simulate.elements import Places
from alembert.simulate.symmetries import without_angles
from alembert.spacecraft import (
    Cowell,
    Encke,
    Environment,
    Epoch,
    Exponential,
    Facet,
    Orbit,
    Profile,
    box,
    cira72,
    egm2008,
    fields,
    flexible_panel,
    igrf,
    msis_profile,
)  # fmt: skip
from alembert.spacecraft.environment import sunlit
from alembert.spatial import Pose, quaternion

NOON = Epoch.of("2026-03-01T12:00:00")


def craft(boom=0.0):
    builder = al.ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("bus", al.Inertia.box(100.0, (1, 2, 3)), joint=al.Free(), joint_name="flight")
    if boom:
        builder.body(
            "boom", al.Inertia.rod(10.0, (0, 0, 0), (boom, 0, 0)), joint=al.Revolute((0, 1, 0)), parent="bus",
            placement=(0.5, 0, 0),
        )  # fmt: skip
    return builder.build()


def normalised_potential(r, table, degree):
    """sum GM/r (R/r)^n P_nm (C cos + S sin) by SciPy's Legendre functions, another way than Cunningham's."""
    from scipy.special import assoc_legendre_p_all

    d = np.linalg.norm(r)
    s, longitude = r[2] / d, math.atan2(r[1], r[0])
    P = assoc_legendre_p_all(degree, degree, s)[0]
    total = 0.0
    for n in range(2, degree + 1):
        for m in range(n + 1):
            p = P[n, m] * (-1) ** m  # without the phase of Condon and Shortley
            angle = m * longitude
            total += (table.radius / d) ** n * p * (
                table.C[n, m] * math.cos(angle) + table.S[n, m] * math.sin(angle)
            )  # fmt: skip
    return table.parameter / d * total


def test_harmonics_are_the_gradient_of_the_potential():
    table = egm2008()
    r = np.array([4.1e6, -3.3e6, 4.6e6])
    slope = np.array(table.slope(ca.DM(r))).ravel()
    h = 10.0
    for k in range(3):
        e = np.eye(3)[k] * h
        difference = (normalised_potential(r + e, table, 20) - normalised_potential(r - e, table, 20)) / (
            2 * h
        )
        assert slope[k] == pytest.approx(
            difference, abs=1e-9
        )  # rounding of 1e4 J/kg over 20 m: 5e-11; h^2: 1e-12


def test_igrf_agrees_with_ppigrf():
    date = datetime.datetime(2021, 3, 28)
    up, south, east = (float(np.squeeze(x)) for x in ppigrf.igrf_gc(6771.2, 50.0, 20.0, date))
    colatitude, longitude = math.radians(50.0), math.radians(20.0)
    radial = np.array(
        [
            math.sin(colatitude) * math.cos(longitude),
            math.sin(colatitude) * math.sin(longitude),
            math.cos(colatitude),
        ]
    )
    to_east = np.array([-math.sin(longitude), math.cos(longitude), 0.0])
    B = -1e9 * np.array(igrf(2021.0 + 86 / 365).slope(ca.DM(6771200.0 * radial))).ravel()
    ours = [B @ radial, B @ np.cross(to_east, radial), B @ to_east]
    assert np.allclose(ours, [up, south, east], atol=0.5)  # a day in a year that changes by up to 100 nT
    assert np.allclose(np.linalg.norm(igrf(2025.0, 1).C), 1e-9 * np.hypot(29350.0, 1410.3), rtol=1e-9)
    with pytest.raises(ArgumentError, match="outside 1995 to 2030"):
        igrf(2050.0)


def test_every_piece_of_gravity_is_what_it_says():
    """One craft, all terms: the acceleration of its centre of mass is that of a point, and torques those of the
    gradient.
    """
    model = craft()
    orbit = Orbit(6778137.0, 0.01, 0.9, 0.3, 0.2, 0.1)
    for world in (Cowell(), Encke(orbit)):
        environment = Environment(NOON, world)
        gravity = environment.gravity(degree=8, order=8, sun=True, moon=True)
        q, v = environment.start(model, orbit, attitude=[0.8, 0.0, 0.6, 0.0])
        tau = al.simulate.Forces(model, gravity).efforts(q, v, t=100.0)
        a = gravity.acceleration(100.0, q[:3])
        R = model.frame_pose(q, "bus").rotation
        second_order = 3 * 3.986e14 * 100.0 / 6.7e6**4  # (1) beyond the point mass
        assert np.allclose(R @ tau[3:] / 100.0, a, atol=second_order)
        J = np.diag([100 / 12 * (4 + 9), 100 / 12 * (1 + 9), 100 / 12 * (1 + 4)])
        r = q[:3] + np.array(world.motion(100.0)[0]).ravel()
        u = R.T @ r / np.linalg.norm(r)
        n = 3 * gravity.parameter / np.linalg.norm(r) ** 3 * np.cross(u, J @ u)
        off = np.linalg.norm(tau[:3] - n) / np.linalg.norm(n)
        assert 1e-4 < off < 1e-2  # J2 turns and stretches the gradient by some 1e-3


def test_both_worlds_are_one():
    """Cowell's and Encke's accelerations differ by that of the origin."""
    orbit = Orbit(7e6, 0.02, 1.1, 0.3, 0.2, 0.1)
    fields = [
        Environment(NOON, w).gravity(degree=6, order=6, sun=True, moon=True) for w in (Cowell(), Encke(orbit))
    ]
    for t in (0.0, 5000.0):
        r0, _, a0 = (np.array(x).ravel() for x in Encke(orbit).motion(t))
        x = np.array([3e3, -2e3, 1e3])
        naive = fields[0].acceleration(t, x + r0) - a0
        assert np.allclose(fields[1].acceleration(t, x), naive, atol=3e-14)  # rounding of 8 m/s^2


def test_a_hinged_boom_feels_the_gradient():
    """The pendulum of the gravity gradient: omega^2 = 3 n^2 about the point along the radius."""
    builder = al.ModelBuilder("boom", gravity=(0, 0, 0))
    builder.body("bus", al.Inertia.box(1e9, (100, 100, 100)), joint=al.Free(), joint_name="flight")
    builder.body(
        "boom",
        al.Inertia.rod(1.0, (0, 0, 0), (0, 0, 1)),
        joint=al.Revolute((0, 1, 0)),
        parent="bus",
        joint_name="hinge",
    )
    model = builder.build()
    orbit = Orbit(6778137.0)
    environment = Environment(world=Encke(orbit, j2=0.0))
    q, v = environment.start(model, orbit, attitude="lvlh")
    forces = al.simulate.Forces(model, environment.gravity(degree=0))
    slopes = forces.derivatives(q, v)
    k = model.v_slice("hinge").start
    inertia = 1 / 3
    assert slopes.dq[k, k] == pytest.approx(-3 * orbit.rate**2 * inertia, rel=1e-6)


def test_flexible_bodies_fall_too():
    """A stiff beam and a rod of the same mass: the same wrench on the hub, and efforts on the modes besides."""
    made = []
    for flexible in (False, True):
        builder = al.ModelBuilder("craft", gravity=(0, 0, 0))
        builder.body("bus", al.Inertia.box(100.0, (1, 1, 1)), joint=al.Free(), joint_name="flight")
        if flexible:
            flexible_panel(
                builder, "boom", "bus", mass=10.0, length=8.0, bending=1e4, at=(0.5, 0, 0), modes=1
            )
        else:
            boom = al.Inertia.rod(10.0, (0, 0, 0), (8.0, 0, 0))
            builder.body("boom", boom, joint=al.Fixed(), parent="bus", placement=(0.5, 0, 0))
        model = builder.build()
        orbit = Orbit(6778137.0, 0.0, 0.9)
        environment = Environment(NOON, Encke(orbit))
        q, v = environment.start(model, orbit, attitude=[0.8, 0.0, 0.6, 0.0])
        made.append(al.simulate.Forces(model, environment.gravity(sun=True)).efforts(q, v))
    rigid, bent = made
    assert np.allclose(bent[3:6], rigid[3:6], atol=1e-9)
    assert np.linalg.norm(bent[:3] - rigid[:3]) < 1e-2 * np.linalg.norm(rigid[:3])  # J2's gradient
    assert abs(bent[6]) > 1e-6


@pytest.mark.parametrize("world", [Cowell(), Encke(Orbit(6878137.0, 0.0, 0.9))])
def test_a_craft_falls_as_it_does_beside_a_rigid_one(world):
    """That the other craft has a flexible boom, 1 km away, does not change harmonics, Sun and Moon here."""
    fall = []
    for flexible in (False, True):
        builder = al.ModelBuilder("two", gravity=(0, 0, 0))
        for name in ("other", "own"):
            builder.body(name, al.Inertia.box(100.0, (1, 1, 1)), joint=al.Free(), joint_name=name)
        if flexible:
            flexible_panel(
                builder, "boom", "other", mass=10.0, length=8.0, bending=1e4, at=(0.5, 0, 0), modes=1
            )
        model = builder.build()
        environment = Environment(NOON, world)
        q, _ = environment.start(model, Orbit(6878137.0, 0.0, 0.9), attitude="inertial")
        q[model.q_slice("own")] = q[model.q_slice("other")]
        q[model.q_slice("own")][:3] += [600.0, -800.0, 0.0]
        forces = al.simulate.Forces(model, environment.gravity(degree=8, order=8, sun=True, moon=True))
        fall.append(forces.efforts(q)[model.v_slice("own")][3:] / 100.0)
    # 8 m/s^2 is rounded to 1e-15; the field of higher degrees differs by 1e-7 m/s^2 over 1 km
    assert np.abs(fall[1] - fall[0]).max() < 1e-13


def test_a_plate_in_sunlight():
    """Case of the shared values: P = 4.56e-6, 10 m^2, 30 deg, cs = 0.3, cd = 0.2 (closed form)."""
    model = craft()
    orbit = Orbit(6778137.0)
    environment = Environment(NOON)
    q, v = environment.start(model, orbit, attitude="inertial")
    s = np.array(environment.sun(0.0)).ravel()
    s -= q[:3]
    distance = np.linalg.norm(s)
    s /= distance
    side = np.cross(s, [0, 0, 1.0])
    side /= np.linalg.norm(side)
    n = math.cos(math.pi / 6) * s - math.sin(math.pi / 6) * side
    plate = Facet("bus", 10.0, tuple(n), specular=0.3, diffuse=0.2)
    light = environment.solar_pressure(
        plate, shadow=False, pressure=4.56e-6 * (distance / 149597870700.0) ** 2
    )
    f = al.simulate.Forces(model, light).efforts(q, v)[3:]
    along = np.cross(np.cross(n, s), n)
    along /= np.linalg.norm(along)
    assert np.allclose([f @ n, f @ along], [-4.972543446e-5, -1.382176544e-5], rtol=1e-9)
    behind = environment.solar_pressure(Facet("bus", 10.0, tuple(-n)), shadow=False)
    assert np.allclose(al.simulate.Forces(model, behind).efforts(q, v), 0.0)
    panel = environment.solar_pressure(Facet("bus", 10.0, tuple(-n), two_sided=True), shadow=False)
    assert np.linalg.norm(al.simulate.Forces(model, panel).efforts(q, v)) > 1e-5


def test_the_shadow_of_the_earth():
    """The fraction of a circular orbit in umbra and penumbra, cylinder's formula within the width of the penumbra."""
    sun = ca.DM([149597870700.0, 0, 0])
    a = 6778137.0
    for beta, expected in ((0.0, 0.390099618), (60.0, 0.263328610)):
        b = math.radians(beta)
        angles = np.linspace(0, 2 * math.pi, 1001)[:-1]
        places = a * np.stack(
            [-np.cos(angles) * math.cos(b), np.sin(angles), np.cos(angles) * math.sin(b)], axis=0
        )
        dark = np.mean([1 - float(sunlit(ca.DM(r), sun)) for r in places.T])
        assert dark == pytest.approx(expected, abs=2e-3)  # the Sun's half degree, and 1000 points
    assert float(sunlit(ca.DM([-a, 0, 0]), sun)) == 0.0
    assert float(sunlit(ca.DM([a, 0, 0]), sun)) == 1.0
    edge = float(sunlit(ca.DM([-math.sqrt(a**2 - 6378137.0**2), 6378137.0, 0]), sun))
    assert 0.2 < edge < 0.8


def test_drag_of_a_sphere_and_of_plates():
    """a(1 day) = 6777346.6167 m: CdA/m = 0.044, rho = 4e-12, in a plane, no rotation of the air (closed form
    6777346.6166).
    """
    model = craft()
    orbit = Orbit(6778137.0)
    environment = Environment(world=Encke(orbit, j2=0.0))
    q, v = environment.start(model, orbit, attitude="inertial")
    air = Profile([0.0, 1e6], [4e-12, 4e-12 * (1 + 1e-12)])
    drag = environment.drag(Facet("bus", 2.0), air, corotation=0.0)
    run = al.simulate(
        model, q, v, duration=86400.0, step=10.0, interval=86400.0, integrator="rk4",
        gravity=environment.gravity(degree=0, gradient=False), forces=drag, progress=False,
    )  # fmt: skip
    r, u = environment.inertial(run)
    found = Orbit.of_state(r[-1], u[-1]).semi_axis
    assert found == pytest.approx(6777346.6167, abs=2e-3)  # RK4 at 10 s
    tau = al.simulate.Forces(
        model, environment.drag(box("bus", (1, 2, 3)), Exponential(4e-12, 400e3, 6e4))
    ).efforts(q, v)
    assert np.linalg.norm(tau[3:]) > 1e-5
    assert np.abs(tau[:3]).max() < 1e-10  # a box about its centre of mass: air is thinner above, 1 m in 60 km


def test_a_point_has_no_oblateness_whatever_the_table():
    """Of degree 0, coefficients of one's own count as little as those of EGM2008."""
    environment, x = Environment(), np.array([5e6, 3e6, 4e6])
    a = environment.gravity(degree=0, harmonics=egm2008()).acceleration(0.0, x)
    expected = -egm2008().parameter * x / np.linalg.norm(x) ** 3
    np.testing.assert_allclose(a, expected, rtol=1e-14)  # J2 adds some 1e-3
    flat = environment.gravity(degree=2, harmonics=egm2008()).acceleration(0.0, x)
    assert np.linalg.norm(flat - expected) > 1e-4 * np.linalg.norm(expected)


def test_places_in_orbit_are_those_of_the_run_with_its_parameters():
    builder = al.ModelBuilder("craft", gravity=(0, 0, 0))
    boom = builder.parameter("boom", 1.0)
    builder.body("bus", al.Inertia.box(100.0, (1, 2, 3)), joint=al.Free(), joint_name="flight")
    builder.frame("tip", "bus", (boom, 0, 0))
    model, orbit = builder.build(), Orbit.circular(500e3)
    environment = Environment(world=Encke(orbit))
    q, v = environment.start(model, orbit, attitude="inertial", rate=(0, 0, 0.1))
    run = al.simulate(model, q, v, duration=0.2, step=0.1, integrator="rk4", parameters={"boom": 3.0})
    (tip, u), (hub, w) = (environment.inertial(run, frame) for frame in ("tip", "bus"))
    assert np.allclose(np.linalg.norm(tip - hub, axis=-1), 3.0, atol=1e-8)
    assert np.allclose(np.linalg.norm(u - w, axis=-1), 0.3, atol=1e-8)


def test_densities():
    table = cira72()
    assert float(table.at(400e3)) == pytest.approx(3.725e-12, rel=1e-9)
    assert float(table.at(425e3)) == pytest.approx(math.sqrt(3.725e-12 * 1.585e-12), rel=1e-9)
    table = msis_profile(Epoch.of("2020-01-01T12:00:00"), f107=150, ap=7)
    assert float(table.at(400e3)) == pytest.approx(4.754317e-12, rel=1e-3)  # version 2.1 here, 2.0 there


def test_linear_models_and_equilibria_take_forces():
    """Pitch of DeBra and Delp: omega^2 = 3 n^2 (I_roll - I_yaw)/I_pitch, by linearize with the gravity of the orbit."""
    builder = al.ModelBuilder("brick", gravity=(0, 0, 0))
    inertia = al.Inertia(100.0, (0, 0, 0), (120, 0, 150, 0, 0, 60))
    builder.body("brick", inertia, joint=al.Spherical(), joint_name="attitude")
    model = builder.build()
    n = 1.1e-3
    gradient = al.simulate.Forces(model, al.simulate.GravityGradient(n, (0, 0, 1), (0, -1, 0)))
    at = al.trim(model, forces=gradient, v=[0, 0, 0])
    linear = at.linearize()
    pitch = linear.A[4, 1]
    assert pitch == pytest.approx(-3 * n**2 * (120 - 60) / 150, rel=1e-6)
    with pytest.raises(ArgumentError, match=r"al\.simulate\.Forces"):
        al.linearize(model, model.neutral(), forces=[1])
    with pytest.raises(ArgumentError, match="make them for this model"):
        al.trim(al.library.two_link(), forces=gradient)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Facet("bus", 1.0, (0, 0, 0)), "expected a direction"),
        (lambda: Facet("bus", -1.0), "zero or more"),
        (lambda: Facet("bus", 1.0, specular=0.7, diffuse=0.5), "more than 1"),
        (lambda: Exponential(1e-12, 4e5, 0.0), "scale"),
        (lambda: Profile([2, 1], [1, 1]), "ascending"),
        (lambda: Profile([1, 2], [1, -1]), "positive"),
        (lambda: Environment().solar_pressure(Facet("bus", 1.0)), "needs an epoch"),
        (lambda: Environment().magnetic_field(), "needs an epoch"),
        (lambda: Environment().drag(["bus"]), "expected Facet"),
        (lambda: Environment().entry(craft(), height=-1.0), r"entry: height is -1\.0, expected zero or more"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_optimal_control_feels_the_gradient():
    """To hold an attitude against the gravity gradient for 10 s takes its torque, which turns by 0.01 rad meanwhile."""
    builder = al.ModelBuilder("brick", gravity=(0, 0, 0))
    builder.body("brick", al.Inertia.box(1000, (1, 2, 4)), joint=al.Spherical(), joint_name="attitude")
    model, still = builder.build(), np.zeros(3)
    pull = Environment(world=Encke(Orbit.circular(500e3, 51.0))).gravity(degree=0)
    held = {"q": np.array([math.cos(math.pi / 8), 0, math.sin(math.pi / 8), 0]), "v": still}
    problem = al.optimal.Problem(model, 10.0, start=held, end=held, cost=al.optimal.effort(), gravity=pull)
    torque = al.simulate.Forces(model, pull).efforts(held["q"], still)
    assert problem.solve(8).cost == pytest.approx(torque @ torque * 10.0 / 2, rel=1e-3)


def test_optimal_control_feels_drag():
    """To stay at the origin of a reference orbit takes the force of drag, for 10 s: its square, which hardly changes."""
    builder = al.ModelBuilder("ball", gravity=(0, 0, 0))
    builder.body("ball", al.Inertia.sphere(50, 0.5), joint=al.Free(), joint_name="flight")
    model, orbit = builder.build(), Orbit.circular(250e3, 51.0)
    space = Environment(NOON, Encke(orbit, j2=0.0))
    q, v = space.start(model, orbit, attitude="inertial")
    held, drag = {"q": q, "v": v}, space.drag(Facet("ball", 2.0))
    options = {"start": held, "end": held, "cost": al.optimal.effort(), "gravity": space.gravity(degree=0)}
    push = al.simulate.Forces(model, drag).efforts(q, v)
    cost = al.optimal.Problem(model, 10.0, forces=drag, **options).solve(8).cost
    # its direction turns by 0.01 rad, and the density follows the ellipsoid below: 0.1 % in 10 s
    assert cost == pytest.approx(push @ push * 10.0 / 2, rel=3e-3)


def test_balanced_rotors_go_with_their_carriers(monkeypatch):
    """Gravity on a wheel that is symmetric about its axis acts on what carries it, whatever its angle: an identity."""
    builder = al.ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("hub", al.Inertia.box(300, (1.0, 1.2, 1.5)), joint=al.Free(), joint_name="flight")
    spacecraft.reaction_wheel(builder, "even", "hub", (1, 2, 3), inertia=0.3, mass=20, at=(0.5, 0.2, -0.3))
    spacecraft.reaction_wheel(builder, "odd", "hub", (1, 0, 1), inertia=0.3, mass=20, static_imbalance=0.1)
    spacecraft.hinged_panel(builder, "panel", "hub", mass=12, size=(2.5, 1.0), at=(0, 0.6, 0))
    lying = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # its own axes at angle zero, beside the joint
    apart_at_zero = al.Custom.from_function(
        lambda x: Pose(al.Revolute((0, 0, 1)).placement(x).rotation @ lying, ca.SX([0.7, 0.2, -0.4])),
        [("angle", "rad")],
    )
    drum = al.Inertia.box(9.0, (0.2, 0.6, 0.2))
    builder.body("drum", drum, parent="hub", joint=apart_at_zero, joint_name="drum")
    model = builder.build()
    orbit = Orbit.circular(500e3, 60.0)
    space = Environment(world=Encke(orbit))
    rng = np.random.default_rng(4)
    q, v = space.start(model, orbit, attitude="inertial")
    q = model.integrate(q, rng.normal(size=model.nv))
    joined = al.simulate.Forces(model, [space.gravity()]).efforts(q, v)
    calls = []

    def apart(tree, records):
        found = [record.node.inertia for record in records]
        calls.append([x is None for x in plain(tree, records)])
        return found

    plain = fields.joined_rotors
    monkeypatch.setattr(fields, "joined_rotors", apart)
    each = al.simulate.Forces(model, [space.gravity()]).efforts(q, v)
    assert calls[0] == [False, True, False, False, True]
    # 8 m/s^2 of the origin and of the Earth cancel to some 1e-15 m/s^2, on 350 kg
    np.testing.assert_allclose(joined, each, rtol=0, atol=3e-12)
    assert abs(each[model.v_slice("even").start]) < 1e-12


def test_angles_of_balanced_rotors_are_no_part_of_the_dynamics():
    builder = al.ModelBuilder("craft", gravity=(0, 0, -1.6))
    builder.body("hub", al.Inertia.box(300, (1.0, 1.2, 1.5)), joint=al.Free(), joint_name="flight")
    for name, more in (("even", {}), ("odd", {"static_imbalance": 0.1})):
        spacecraft.reaction_wheel(
            builder, name, "hub", (1, 2, 3), inertia=0.3, mass=20, at=(0.5, 0, 0), **more
        )
    disc = al.Inertia.cylinder(5.0, 0.2, 0.1)
    builder.body(
        "sprung", disc, parent="hub", joint=al.Revolute((0, 0, 1)), joint_name="sprung", spring=al.Spring(3.0)
    )
    model = builder.build()
    q, p = ca.SX.sym("q", model.nq), ca.SX(0, 1)
    kept = without_angles(model.compute.tree, q, p)
    dropped = [name for name in ("even", "odd", "sprung") if kept[model.q_slice(name)].is_zero()]
    assert dropped == ["even"]
    rng = np.random.default_rng(5)
    start, v, tau = model.random_configuration(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
    still = np.array(ca.Function("kept", [q], [kept])(start)).ravel()
    assert still[model.q_slice("even").start] == 0.0 != start[model.q_slice("even").start]
    # 320 kg and 1 N m: rounding of some 1e-15
    a, b = (model.forward_dynamics(x, v, tau) for x in (start, still))
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    # frames that hang at a free joint have its quaternion, others one of their rotation
    at = Places(model, ca.SX.sym("t"), q, ca.SX.zeros(model.nv), p)
    for frame in ("hub", "even"):
        pair = [at.attitude(frame), quaternion.from_matrix(ca.SX(at.pose(frame).rotation))]
        found, expected = (np.array(x).ravel() for x in ca.Function("attitude", [q], pair)(start))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
