"""Mass that leaves in a run: the rocket equation, damping by the jet in closed form, and the balance of all momentum."""

import math

import casadi as ca
import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import alembert as al
from alembert import ArgumentError, UnsupportedError
from alembert import spacecraft as sc
from alembert.simulate import MassFlow
from alembert.simulate.mass_flow import BoundFlow
from alembert.spacecraft import FlightSoftware, FlightTask, Hardware, Thruster, momentum_balance

DURATION = 100.0
C = 300 * 9.80665


def stage(tank=(0.0, 0.0, 0.0)):
    """A hub with a tank on it, whose propellant is a parameter."""
    builder = al.ModelBuilder("stage", gravity=(0, 0, 0))
    fuel = builder.parameter("fuel", 60.0)
    builder.body("hub", al.Inertia.box(100.0, (1, 1, 1)), joint=al.Free(), joint_name="flight")
    builder.body("tank", al.Inertia.cylinder(fuel, 0.3, 0.8), joint=al.Fixed(), parent="hub", placement=tank)
    return builder.build()


@pytest.fixture(scope="module")
def rocket():
    return stage()


def jet(at=(0.0, 0.0, -2.0), direction=(0, 0, 1), *, force=400.0, impulse=300.0):
    return Thruster("jet", "hub", direction, force, specific_impulse=impulse, at=at)


def flown(model, flow, rate=(0.0, 0.0, 0.0), *, step=0.5, **options):
    v0 = np.zeros(model.nv)
    v0[:3] = rate
    given = {"duration": DURATION, "integrator": "rk4", "progress": False, **options}
    return al.simulate(model, None, v0, step=step, controller=flow, **given)


def test_the_rocket_equation(rocket):
    run = flown(rocket, MassFlow([jet()], "fuel"))
    left = 60.0 - jet().flow * run.time
    # a rate that does not change: exact but for rounding
    np.testing.assert_allclose(run.controller_states[:, 0], left, rtol=1e-13)
    # the acceleration is 1/M: RK4 errs by h^5/120 y''''' a step, (0.5 * 0.136 / 144)^4 / 5 relative, 1e-14
    np.testing.assert_allclose(run.v[1:, 5], C * np.log(160.0 / (100.0 + left[1:])), rtol=1e-11)
    # what the thrust does, less what leaves with its own kinetic energy; Simpson's rule on the records
    assert run.report.energy_error < 1e-8
    assert run.channel("controller").values[-1, 0] == pytest.approx(left[-1])


def test_events_know_the_mass_that_is_left():
    """A push at an instant adds M |v|^2/2 with the mass of that instant; a bounce without loss keeps the energy with it."""
    model, left = stage(), 60.0 - jet().flow * 50.0
    push = al.simulate.Event(lambda t, q, v: t - 50.0, "push", 1, lambda t, q, v: (q, 2 * v))
    run = flown(model, MassFlow([jet()], "fuel"), events=push)
    assert run.events[0].energy == pytest.approx(1.5 * (100 + left) * run.events[0].v[5] ** 2, rel=1e-9)
    builder = al.ModelBuilder("lander", gravity=(0, 0, 0))
    fuel = builder.parameter("fuel", 60.0)
    builder.body("hub", al.Inertia.box(20.0, (1, 1, 1)), joint=al.Free(), joint_name="flight")
    builder.body("tank", al.Inertia.cylinder(fuel, 0.3, 0.8), joint=al.Fixed(), parent="hub")
    lander = builder.frame("foot", "hub", (0.5, 0, -0.5)).build()
    bounce = al.simulate.PlaneImpact("foot", offset=-20.0, restitution=1.0)
    v0 = np.array([0, 0, 0, 0, 0, -0.5])
    flow = MassFlow([Thruster("jet", "hub", (0, 0, -1), 1.0, specific_impulse=10.0)], "fuel", through=False)
    flight = al.simulate(
        lander, None, v0, duration=30.0, step=0.05, integrator="rk4", controller=flow, events=bounce
    )
    hit = flight.events[0]
    mass = {"fuel": 60.0 - flow.nozzles[0].flow * hit.time}
    before, after = (lander.kinetic_energy(hit.q, v, parameters=mass) for v in (hit.v, hit.v_after))
    assert after == pytest.approx(before, rel=1e-10)
    assert hit.energy == pytest.approx(0.0, abs=1e-9 * before)


def test_damping_by_the_jet(rocket):
    """I w' = -m' (l^2 - k^2) w, I = I0 + k^2 m: w = w0 (I/I(0))^((l^2 - k^2)/k^2)."""
    l2, k2 = 4.0, (3 * 0.3**2 + 0.8**2) / 12
    first = 100.0 / 6
    for rate in ((0.02, 0.0, 0.0), (0.0, 0.02, 0.0)):
        # slow, so that moments v x m v are not rounded to more than 1e-12 N m
        run = flown(rocket, MassFlow([jet(force=4.0, impulse=3.0)], "fuel"), rate)
        left = run.controller_states[:, 0]
        expected = 0.02 * ((first + k2 * left) / (first + k2 * 60.0)) ** ((l2 - k2) / k2)
        found = np.linalg.norm(run.v[:, :3], axis=-1)
        # rates of 1/60 s: (h/60)^4 of RK4
        np.testing.assert_allclose(found, expected, rtol=1e-8)
    still = MassFlow([jet(force=4.0, impulse=3.0)], "fuel", through=False)
    without = flown(rocket, still, (0.02, 0.0, 0.0))
    # shed in place; RK4 on a turn of 0.02 rad/s: (0.5 * 0.02)^4
    np.testing.assert_allclose(without.v[:, 0], 0.02, rtol=1e-8)


def left_over(model, nozzle, tank, step):
    """What a run leaves open in the balance of craft, flow inside and jet together, relative to what has left."""
    run = flown(model, MassFlow([nozzle], "fuel"), (0.02, -0.05, 0.1), duration=20.0, step=step)
    h = model.momentum(run.q, run.v, about="world", parameters={"fuel": run.controller_states[:, 0]})
    X = model.frame_pose(run.q, "hub")
    V = model.frame_velocity(run.q, run.v, "hub", reference="local_world_aligned")
    r_n, r_t = (np.einsum("kij,j->ki", X.rotation, point) for point in (nozzle.at, tank))
    thrust = np.einsum("kij,j->ki", X.rotation, nozzle.wrench[3:])
    leaving = V[:, 3:] + np.cross(V[:, :3], r_n) - thrust / nozzle.flow
    inside = np.concatenate([np.cross(r_t, r_n) + np.cross(X.translation, r_n - r_t), r_n - r_t], axis=-1)
    flux = np.concatenate([np.cross(X.translation + r_n, leaving), leaving], axis=-1)
    gone = CubicSpline(run.time, nozzle.flow * flux).antiderivative()(run.time)
    total = h + nozzle.flow * inside + gone
    return np.abs(total[-1] - total[0]).max() / np.abs(gone).max(), run


def test_all_momentum_is_accounted_for():
    """In space, with a tank and a nozzle off the centre: what is left open falls with the fourth power of the step."""
    tank = (0.2, -0.3, 0.5)
    model, nozzle = stage(tank), jet((0.3, 0.1, -1.0), (0.1, 0.0, 1.0), force=2.0, impulse=1.5)
    (coarse, _), (fine, run) = (left_over(model, nozzle, tank, h) for h in (0.2, 0.1))
    assert coarse / fine == pytest.approx(16.0, rel=0.3)
    assert fine < 1e-6  # (0.1 s * 0.5 rad/s)^4 = 6e-6 over a turn, a part of it
    # with a law in Python steps are made there
    both = [MassFlow([nozzle], "fuel"), lambda t, q, v: np.zeros(6)]
    slow = flown(model, both, (0.02, -0.05, 0.1), duration=1.0, step=0.1)
    np.testing.assert_allclose(slow.v[-1], run.v[10], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(slow.accelerations[-1], run.accelerations[10], rtol=1e-12, atol=1e-14)


def test_a_throttle_and_many_masses(rocket):
    t = ca.SX.sym("t")
    throttle = ca.Function("throttle", [t], [ca.sin(math.pi * t / DURATION) ** 2])
    run = flown(rocket, MassFlow([jet()], "fuel", throttle), parameters={"fuel": np.array([30.0, 60.0])})
    left = np.array([30.0, 60.0]) - jet().flow * DURATION / 2
    np.testing.assert_allclose(run.controller_states[:, -1, 0], left, rtol=1e-9)  # h^4 of a smooth throttle
    gained = C * np.log(np.array([130.0, 160.0]) / (100.0 + left))
    np.testing.assert_allclose(run.v[:, -1, 5], gained, rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda m: MassFlow([], "fuel"), ArgumentError, "nozzles is empty"),
        (lambda m: MassFlow([3], "fuel"), ArgumentError, "expected spacecraft.Thruster"),
        (
            lambda m: MassFlow([jet()], "fuel", throttle=2.0),
            ArgumentError,
            "throttle is 2.0, expected 0 to 1",
        ),
        (
            lambda m: MassFlow([jet()], "fuel", throttle=ca.Function("f", [ca.SX.sym("t", 2)], [1])),
            ArgumentError,
            "a casadi.Function of t that gives 1 or 1 numbers",
        ),
        (lambda m: flown(m, MassFlow([jet()], "water")), ArgumentError, "no parameter 'water'"),
        (lambda m: flown(m, 2 * [MassFlow([jet()], "fuel")]), ArgumentError, "two MassFlow burn 'fuel'"),
        (lambda m: flown(m, MassFlow([jet()], "fuel"), duration=1e3), ArgumentError, "they last 441.299 s"),
        (
            lambda m: flown(
                m, MassFlow([jet()], "fuel", ca.Function("f", [t := ca.SX.sym("t")], [2 * ca.cos(t)]))
            ),
            ArgumentError,
            "the throttle goes from -1.99996 to 2",
        ),
        (
            lambda m: flown(
                m, MassFlow([jet()], "fuel", ca.Function("f", [t := ca.SX.sym("t")], [ca.sqrt(1 - t)]))
            ),
            ArgumentError,
            "the throttle is not finite at t = 1.0",
        ),
        (
            lambda m: flown(m, MassFlow([jet()], "fuel"), integrator="dop853", step=None),
            UnsupportedError,
            "MassFlow and integrator 'dop853' do not go together",
        ),
    ],
)
def test_bad_flows(make, error, message, rocket):
    with pytest.raises(error, match=message):
        make(rocket)


def test_a_throttle_that_jumps_takes_what_it_takes(rocket):
    """Open until an instant between two at which it is looked at: the tank holds just so much, or a millionth less."""
    t, end = ca.SX.sym("t"), math.pi
    throttle = ca.Function("f", [t], [ca.if_else(t < end, 1.0, 0.0)])
    flow = BoundFlow(MassFlow([jet()], "fuel", throttle), rocket)
    flow.check(0.0, 100.0, jet().flow * end * (1 + 1e-8))
    with pytest.raises(ArgumentError, match=r"100 s take .* kg, and 'fuel' has .* kg: they last 3\.14159 s"):
        flow.check(0.0, 100.0, jet().flow * end * (1 - 1e-6))


def tanked(inertia, joint, placement=(0, 0, 0), *, tie=False):
    builder = al.ModelBuilder("stage", gravity=(0, 0, 0))
    fuel = builder.parameter("fuel", 60.0)
    builder.body("hub", al.Inertia.box(100.0, (1, 1, 1)), joint=al.Free())
    where = tuple(x(fuel) if callable(x) else x for x in placement)
    builder.body("tank", inertia(fuel), joint=joint, parent="hub", placement=where)
    if tie:
        builder.body(
            "other",
            al.Inertia.point(1.0, (0, 1, 0)),
            joint=al.Revolute((1, 0, 0)),
            joint_name="turn",
            parent="hub",
        )
        builder.coupling("tie", "turn", (), ())
    return builder.build()


def test_flows_on_models_that_cannot_have_them():
    hinge, fixed = al.Revolute((1, 0, 0)), al.Fixed()
    for model, error, message in (
        (
            tanked(lambda m: al.Inertia.point(m, (0, 1, 0)), hinge),
            UnsupportedError,
            "a joint moves between the tank",
        ),
        (
            tanked(lambda m: al.Inertia.point(5.0), fixed),
            ArgumentError,
            "no mass of the model depends on 'fuel'",
        ),
        (
            tanked(lambda m: al.Inertia.point(2 * m), fixed),
            ArgumentError,
            "changes by 2 kg with a unit of 'fuel'",
        ),
        (tanked(al.Inertia.point, fixed, (0, 0, lambda m: 0.01 * m)), UnsupportedError, "the place of joint"),
        (tanked(al.Inertia.point, fixed, tie=True), UnsupportedError, "a model with loops or couplings"),
        (
            tanked(lambda m: al.flexible.beam(1.0, m, EI_y=10.0, bending_z=1), fixed),
            UnsupportedError,
            "is in the flexible body 'tank', expected a rigid one",
        ),
    ):
        with pytest.raises(error, match=message):
            flown(model, MassFlow([jet()], "fuel"))


def test_software_flies_with_the_mass_of_the_moment(rocket):
    """A law in machine code sees the parameters as they are."""
    law = al.simulate.SymbolicLaw(lambda t, m, at: {"seen": at.parameters[0]})
    told = al.simulate.Sampled(law, 1.0, posts={"seen": [0.0]}, state=True)
    run = flown(rocket, [MassFlow([jet()], "fuel"), told], duration=5.0)
    left = 60.0 - jet().flow * run.measurements["seen"].time
    np.testing.assert_allclose(run.measurements["seen"].values[:, 0], left, rtol=1e-13)
    # so do instants in Python, which an accelerometer takes: thrust over the mass of its own instant
    felt = al.simulate.Measured(al.Sensor("felt", "accelerometer", "hub"), 1.0)
    again = flown(rocket, [MassFlow([jet()], "fuel"), told], duration=5.0, sensors=[felt])
    np.testing.assert_allclose(again.measurements["seen"].values[:, 0], left, rtol=1e-13)
    np.testing.assert_allclose(again.measurements["felt"].values[:, 2], 400.0 / (100.0 + left), rtol=1e-12)


@pytest.mark.parametrize("world", ["encke", "cowell"])
def test_what_leaves_is_in_the_balance_of_momentum(world):
    """A craft that turns burns from a tank off its centre, under gravity: what is left of the balance is RK4's, h^4."""
    builder = al.ModelBuilder("stage", gravity=(0, 0, 0))
    fuel, dry = builder.parameter("fuel", 60.0), builder.parameter("dry", 10.0)
    builder.body("hub", al.Inertia.box(dry, (1, 1.4, 2)), joint=al.Free(), joint_name="flight")
    tank = al.Inertia.cylinder(fuel, 0.3, 0.8)
    builder.body("tank", tank, joint=al.Fixed(), parent="hub", placement=(0.1, 0.05, -0.3))
    model = builder.build()
    orbit = sc.Orbit.circular(500e3, 97.4)
    space = sc.Environment(
        sc.Epoch.of("2026-03-01T12:00:00"), sc.Encke(orbit) if world == "encke" else sc.Cowell()
    )
    gravity = space.gravity()
    q0, v0 = space.start(model, orbit)
    v0[:3] += [0.02, -0.01, 0.03]
    jets = [
        Thruster("a", "hub", (0.02, 0, 1), 20.0, specific_impulse=100.0, at=(0, 0.1, -1)),
        Thruster("b", "hub", (0, 1, 0), 1.0, at=(0.5, 0, 0.1)),
    ]
    t = ca.SX.sym("t")
    swells = ca.Function("opened", [t], [0.5 + 0.3 * ca.sin(0.5 * t)])
    law = al.simulate.SymbolicLaw(lambda t, m: {"jets": ca.vertcat(0.1, t, 0.05 * (ca.sin(t) > 0), t)})
    software = FlightSoftware([FlightTask("burn", law, 0.2, (), {"jets": np.zeros(4)})])
    ways = {
        "flow": MassFlow(jets, "fuel", swells),
        "pulses": software.controllers(Hardware(model, {"jets": jets}, 0.2, tank="fuel")),
    }
    for way, controller in ways.items():
        errors = []
        for step in (0.1, 0.05):
            run = al.simulate(
                model, q0, v0, duration=8.0, step=step, integrator="rk4", gravity=gravity, progress=False,
                controller=controller, parameters={"dry": 100.0},
            )  # fmt: skip
            balance = momentum_balance(run, {"gravity": gravity})
            errors.append([balance.angular_error, balance.linear_error])
        left = balance.impulses["mass that left"][-1]
        assert np.linalg.norm(left) > 1e-5 * np.linalg.norm(balance.angular[-1]), (
            way
        )  # 1e4 times what is asked below
        # rates up to 0.3 rad/s: (0.05 * 0.3)^4 = 5e-8, a hundredth of it in RK4's last term
        assert np.max(errors[1]) < 1e-9, (way, errors)
        assert np.all(np.array(errors[1]) < np.array(errors[0]) / 10 + 1e-12), (way, errors)
        assert ("more than 1e-10 is left" in str(balance)) == (np.max(errors[1]) > 1e-10)


def pulsed(model, *, symbolic=True, open_for=0.25, **options):
    """Flight software opens the nozzle for a part of each period of 0.5 s."""
    thruster = jet()

    def law(t, m):
        return {"nozzle": ca.vertcat(open_for, t) if symbolic else np.array([open_for, t])}

    function = al.simulate.SymbolicLaw(law) if symbolic else law
    task = FlightTask("burn", function, 0.5, (), {"nozzle": np.zeros(2)})
    hardware = Hardware(model, {"nozzle": [thruster]}, 0.5, tank="fuel")
    return flown(model, FlightSoftware([task]).controllers(hardware), **options)


def test_pulses_of_flight_software_make_the_craft_lighter(rocket):
    run = pulsed(rocket)
    used = jet().flow * DURATION / 2
    assert run.measurements["propellant"].values[-2, 0] == pytest.approx(
        used
    )  # after it comes one more pulse
    # 1/M at the middle of each period: (0.034/150)^2/12 off, 5e-9
    np.testing.assert_allclose(run.v[-1, 5], C * np.log(160.0 / (160.0 - used)), rtol=1e-8)
    masses = run.controller_states[:, 0]
    np.testing.assert_allclose(masses[:-1], 60.0 - jet().flow * (run.time[:-1] + 0.25) / 2, rtol=1e-12)
    assert run.report.energy_error < 1e-11  # thrust along a line: what is left is rounding
    again = pulsed(rocket, duration=DURATION / 2).resume(DURATION / 2)
    np.testing.assert_allclose(again.v[-1], run.v[-1], rtol=0, atol=1e-11)
    event = al.simulate.Event(lambda t, q, v: t - 20.0, "note", 1, "note")
    for other in (pulsed(rocket, symbolic=False), pulsed(rocket, events=[event])):
        np.testing.assert_allclose(
            other.v, run.v, rtol=0, atol=1e-11
        )  # between instants, not in machine code
        np.testing.assert_allclose(other.controller_states[:-1], run.controller_states[:-1], rtol=1e-13)


def test_nothing_leaves_an_empty_tank(rocket):
    run = pulsed(rocket, open_for=0.5, parameters={"fuel": 1.0})
    assert run.measurements["propellant"].values[-1, 0] == pytest.approx(1.0, abs=1e-12)
    assert run.v[-1, 5] == pytest.approx(C * math.log(101 / 100), rel=1e-6)
    assert run.measurements["saturated"].values[-1, 0] == 1.0


def test_masses_choose_their_steps_by_themselves(rocket):
    v0 = np.zeros(rocket.nv)
    run = al.simulate(rocket, None, v0, duration=10.0, controller=MassFlow([jet()], "fuel"), progress=False)
    assert (run.integrator, run.step) == ("rk4", 0.01)
    assert "masses fall (MassFlow) in explicit steps: 0.01 s" in run.reason
    left = 60.0 - jet().flow * 10.0
    np.testing.assert_allclose(run.v[-1, 5], C * np.log(160.0 / (100.0 + left)), rtol=1e-11)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda m: Hardware(m, {"x": [jet()]}, 0.5, tank="oil"), "tank: the model has no parameter 'oil'"),
        (lambda m: Hardware(m, {}, 0.5, tank="fuel"), "tank is 'fuel', and no thruster burns it"),
        (
            lambda m: flown(m, [MassFlow([jet()], "fuel", burnt="gone")]),
            "MassFlow of 'fuel': no law posts 'gone'",
        ),
    ],
)
def test_tanks_that_are_refused(rocket, make, message):
    with pytest.raises(ArgumentError, match=message):
        make(rocket)


@pytest.mark.parametrize("interval", [None, 1.0])
def test_fields_count_the_mass_of_each_record(interval):
    """The energy in a field balances with the mass that left and took its share along; -mu m / r at every record."""
    builder = al.ModelBuilder("craft", gravity=(0, 0, 0))
    fuel = builder.parameter("fuel", 20.0)
    builder.body("hub", al.Inertia.sphere(30.0, 0.5), joint=al.Free(), joint_name="flight")
    builder.body("tank", al.Inertia.sphere(fuel, 0.2), joint=al.Fixed(), parent="hub")
    craft, mu = builder.build(), 2000.0
    engine = al.spacecraft.Thruster("engine", "hub", (0, 0, 1), 20.0, specific_impulse=50.0)
    run = al.simulate(
        craft,
        {"flight.x": 50.0},
        {"flight.vy": 5.0},
        duration=20.0,
        step=0.05,
        interval=interval,
        integrator="rk4",
        controller=MassFlow([engine], "fuel"),
        gravity=al.simulate.CentralGravity(mu),
    )
    mass = 30.0 + run.channel("controller").values[:, 0]
    np.testing.assert_allclose(
        run.potential_energy, -mu * mass / np.linalg.norm(run.q[:, :3], axis=1), rtol=1e-12
    )
    assert run.report.energy_error < 1e-7  # the step's error, 1e-9; 1e-2 with the mass of one instant


def test_the_effort_of_a_prescribed_joint_is_that_of_the_mass_of_each_record():
    builder = al.ModelBuilder("boom")
    fuel = builder.parameter("fuel", 20.0)
    builder.body(
        "arm", al.Inertia.rod(5.0, (0, 0, 0), (1, 0, 0)), joint=al.Revolute((0, 1, 0)), joint_name="hinge"
    )
    builder.body("tank", al.Inertia.point(fuel), joint=al.Fixed(), parent="arm", placement=(1, 0, 0))
    boom = builder.build()
    engine = al.spacecraft.Thruster(
        "engine", "tank", (1, 0, 0), 20.0, specific_impulse=50.0
    )  # through the hinge
    t = ca.SX.sym("t")
    run = al.simulate(
        boom,
        v0=[0.4],
        duration=4.0,
        step=0.02,
        integrator="rk4",
        controller=MassFlow([engine], "fuel", through=False),
        prescribed={"hinge": ca.Function("swing", [t], [0.4 * ca.sin(t)])},
    )
    left = run.channel("controller").values[:, 0]
    expected = boom.inverse_dynamics(run.q, run.v, run.accelerations, parameters={"fuel": left})
    np.testing.assert_allclose(run.required_efforts, expected, rtol=1e-10)


@pytest.mark.parametrize("interval", [None, 1.0])
def test_friction_that_follows_the_mass_takes_what_it_takes(interval):
    """Bearings that rub by the weight on them: their work is that at the mass of each moment, not at the first."""
    builder = al.ModelBuilder("sled", gravity=(0, 0, 0))
    fuel = builder.parameter("fuel", 60.0)
    rubbing = al.Friction(viscous=(0.05 * fuel,))
    builder.body("hub", al.Inertia.box(100.0, (1, 1, 1)), joint=al.Prismatic((0, 0, 1)), friction=rubbing)
    builder.body("tank", al.Inertia.cylinder(fuel, 0.3, 0.8), joint=al.Fixed(), parent="hub")
    flow = MassFlow([jet(force=40.0, impulse=3.0)], "fuel")
    run = flown(builder.build(), flow, 0.0, duration=20.0, step=0.1, interval=interval)
    assert run.report.energy_error < 1e-6  # (0.1 s / 10 s)^4 and what splines of the mass leave; it was 1e-2
