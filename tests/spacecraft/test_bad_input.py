"""What cannot be flown is refused in a sentence that names the thing and the numbers: epochs, orbits, devices,
coefficients, schedules."""

import math
import re

import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError
from alembert import spacecraft as sc

EPOCH = "2026-03-01T12:00:00"


def hub():
    builder = al.ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("hub", al.Inertia.box(100.0, (1, 1, 1)), joint=al.Free(), joint_name="flight")
    return builder


def wheel(**options):
    return sc.reaction_wheel(hub(), "wheel", "hub", (1, 0, 0), **{"inertia": 0.1, **options})


def control(**options):
    wheels = [wheel()]
    return sc.control(wheels, inertia=np.eye(3), period=0.1, **options)


def here():
    return sc.Environment(sc.Epoch.of(EPOCH))


def task(name="a", period=0.1, **options):
    return sc.FlightTask(name, lambda t, m: {}, period, **options)


EPOCHS = {
    "1950-01-01 is outside the table of leap seconds, 1972 to 2034": lambda: sc.Epoch.of("1950-01-01"),
    "'yesterday' is no date and time, expected as 2026-03-01T12:00:00": lambda: sc.Epoch.of("yesterday"),
    "the epoch is in the year 2150, expected 1900 to 2100": lambda: sc.Environment(
        sc.Epoch.of("2150-01-01", scale="TT")
    ),
    "igrf: 1990.0 is outside 1995 to 2030": lambda: sc.igrf(1990.0),
    "the Sun and the Moon needs an epoch": lambda: sc.Environment().gravity(sun=True),
}
ORBITS = {
    "Orbit.circular: inclination_deg is 'x', expected numbers": lambda: sc.Orbit.circular(500e3, "x"),
    "Orbit: node is [1, 2], expected a number": lambda: sc.Orbit(7e6, node=[1, 2]),
    "sun_synchronous: altitude is -1 m": lambda: sc.sun_synchronous(-1),
    "Environment.start: orbit is 'low', expected Orbit(...)": lambda: here().start(hub().build(), "low"),
    "Environment.start: rate has shape (2,), expected (3,)": lambda: here().start(
        hub().build(), sc.Orbit(7e6), rate=[0, 0]
    ),
    "Environment.drag: surfaces is empty": lambda: here().drag([]),
    "the perigee is 1 km below the ground": lambda: sc.Orbit.circular(-1000.0),
    "the perigee is 778 km below the ground": lambda: sc.Orbit(7e6, 0.2),
    "semi_axis is nan, expected a number": lambda: sc.Orbit(math.nan),
    "the escape speed is 10671.7 m/s": lambda: sc.Orbit.of_state([7e6, 0, 0], [0, 2e4, 0]),
}
CONTROLS = {
    "control: target has shape (3,), expected (4,)": lambda: control(target=[1, 0, 0]),
    "control: target is [1, 1, 0, 0], expected a unit quaternion": lambda: control(target=[1, 1, 0, 0]),
    "control: bandwidth is -1.0, expected a positive number": lambda: control(bandwidth=-1.0),
    "a bandwidth of 15 rad/s is unstable with commands every 0.1 s": lambda: control(bandwidth=15.0),
}
DEVICES = {
    "an imbalance of 0 kg m and 0.5 kg m^2 leaves the principal moments": lambda: wheel(
        dynamic_imbalance=0.5
    ),
    "reaction_wheel 'wheel': inertia is 'a', expected numbers": lambda: wheel(inertia="a"),
    "Thruster 't': at has shape (2,), expected (3,)": lambda: sc.Thruster(
        "t", "hub", (0, 0, 1), 5.0, at=(1, 2)
    ),
    "Thruster 't': force is inf N, expected a finite one": lambda: sc.Thruster(
        "t", "hub", (0, 0, 1), math.inf
    ),
    "an imbalance of 5 kg m and 0 kg m^2 leaves": lambda: wheel(static_imbalance=5.0),
    "reaction_wheel 'wheel': inertia is nan, expected a positive number": lambda: wheel(inertia=math.nan),
    "reaction_wheel 'wheel': viscous is -1.0, expected zero or more": lambda: wheel(viscous=-1.0),
    "slosh_mass 's': damping is -1, expected zero or more": lambda: sc.slosh_mass(
        hub(), "s", "hub", mass=1, stiffness=1, damping=-1
    ),
    "slosh_pendulum 's': damping is -1": lambda: sc.slosh_pendulum(
        hub(), "s", "hub", mass=1, length=1, at=(0, 0, 0), damping=-1
    ),
    "hinged_panel 'p': stiffness is -1": lambda: sc.hinged_panel(
        hub(), "p", "hub", mass=1, size=(1, 1), at=(0, 0, 0), stiffness=-1
    ),
}
COEFFICIENTS = {
    "degree 30 is asked for, the coefficients of EGM2008 go to 20": lambda: here().gravity(degree=30),
    "degree 6 and order 0 are asked for, and harmonics has zonal coefficients of degree 2, 3": lambda: (
        here().gravity(degree=6, harmonics={2: 1e-3, 3: -2e-6})
    ),
    "degree 2 and order 2 are asked for": lambda: here().gravity(order=2, harmonics={2: 1e-3}),
    "harmonics has 'two': 0.001, expected zonal coefficients by degree": lambda: here().gravity(
        harmonics={"two": 1e-3}
    ),
    "igrf: degree is 20, expected 1 (a dipole) to 13": lambda: sc.igrf(2026.0, 20),
    "expected two or more, ascending": lambda: sc.Profile([1.0, 2.0], [1.0]),
}
SCHEDULES = {
    "two tasks are called 'a'": lambda: sc.FlightSoftware([task(), task()]),
    "takes 0.2 s on the processor and is asked every 0.1 s: it never ends": lambda: task(duration=0.2),
    "the tasks take 120 % of the processor (a 60 %, b 60 %)": lambda: sc.FlightSoftware(
        [task(x, duration=0.06) for x in "ab"]
    ),
    "the message 'x' is written by 'a' and 'b', expected one writer": lambda: sc.FlightSoftware(
        [task(x, writes={"x": 0.0}) for x in "ab"]
    ),
    "period is -0.1, expected a positive time": lambda: task(period=-0.1),
    "delay is -1, expected zero or more seconds": lambda: task(delay=-1),
}
JET = sc.Thruster("jet", "hub", (1, 0, 0), 5.0)
BURNS = {
    "scheduled_burns: no thruster 'jat'": lambda: sc.scheduled_burns([JET], {"jat": [[0, 1]]}, period=1.0),
    "burns of 'jet' are [(1.0, -1.0)], expected a start and a positive": lambda: sc.scheduled_burns(
        [JET], {"jet": [[1, -1]]}, period=1.0
    ),
    "a burn of 'jet' from 1 s for 5 s and the next at 4 s overlap": lambda: sc.scheduled_burns(
        [JET], {"jet": [[4, 1], [1, 5]]}, period=1.0
    ),
}
LINES = {**BURNS, **EPOCHS, **ORBITS, **CONTROLS, **DEVICES, **COEFFICIENTS, **SCHEDULES}


@pytest.mark.parametrize("words", LINES)
def test_it_is_said_what_is_wrong(words):
    with pytest.raises(ArgumentError, match=re.escape(words)) as error:
        LINES[words]()
    assert len(str(error.value)) < 400


@pytest.fixture(scope="module")
def craft():
    builder = hub()
    wheels = [sc.reaction_wheel(builder, "wheel", "hub", (1, 0, 0), inertia=0.1, speed=100.0)]
    return builder.build(), wheels


@pytest.mark.parametrize("symbolic", [True, False])
@pytest.mark.parametrize(
    ("writes", "told", "start", "message"),
    [
        (np.zeros(2), np.zeros(2), 0.0, "the message 'wheels' has 2 entries, expected 1"),
        (np.zeros(1), np.array([np.nan]), 0.0, "'wheel' is commanded [nan] at t = "),
        (
            np.zeros(1),
            np.zeros(1),
            150.0,
            "the wheel 'wheel' turns at 150 rad/s at t = 0 s, expected at most 100",
        ),
    ],
)
def test_hardware_refuses(craft, symbolic, writes, told, start, message):
    """The width of a message, a command that is no number, a wheel beyond its speed; in machine code and in Python."""
    model, wheels = craft
    law = (
        (lambda t, m: {"wheels": told})
        if not symbolic
        else al.simulate.SymbolicLaw(lambda t, m: {"wheels": told})
    )
    software = sc.FlightSoftware([sc.FlightTask("law", law, 0.1, (), {"wheels": writes})])
    hardware = sc.Hardware(model, {"wheels": wheels}, 0.1)
    v = np.zeros(model.nv)
    v[-1] = start
    with pytest.raises(ArgumentError, match=re.escape(message)):
        al.simulate(
            model, None, v, duration=0.5, step=0.1, integrator="rk4", controller=software.controllers(hardware),
            progress=False,
        )  # fmt: skip


@pytest.mark.parametrize("damping_ratio", [0.5, 0.7071, 1.0])
def test_the_bound_on_the_bandwidth_is_where_a_rigid_body_becomes_unstable(damping_ratio):
    """Angle and rate of a unit inertia under a torque that is held: its pole passes -1."""

    def largest(bandwidth, period=0.1):
        k, d = (float(x[0]) for x in sc.gains(np.eye(3), bandwidth, damping_ratio))
        held = np.array([[period**2 / 2], [period]]) @ [[-k, -d]]
        return np.abs(np.linalg.eigvals(np.array([[1, period], [0, 1]]) + held)).max()

    limit = 1 / (damping_ratio * 0.1)
    assert largest(0.99 * limit) < 1 < largest(1.01 * limit)
    control(bandwidth=0.99 * limit, damping_ratio=damping_ratio)
    with pytest.raises(ArgumentError, match="is unstable with commands every"):
        control(bandwidth=1.01 * limit, damping_ratio=damping_ratio)
