"""The same problem in other units takes the same iterations, and gives the same solution in these."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.optimal import Problem, System, duration, running, terminal
from alembert.optimal.scaling import Units

DEGREE = np.pi / 180


def slide(length, time):
    """The brachistochrone."""
    g = 9.80665 * length / time**2
    system = System(
        ["x", "y", "v"],
        ["slope"],
        lambda s: [s.v * ca.cos(s.slope), s.v * ca.sin(s.slope), -g * ca.sin(s.slope)],
    )
    ends = {"start": {"x": 0, "y": 10 * length, "v": 0}, "end": {"x": 10 * length, "y": 5 * length}}
    problem = Problem(system, (0.5 * time, 5 * time), **ends, cost=duration())
    states = [[0, 10 * length, 0], [10 * length, 5 * length, 9.9 * length / time]]
    return problem.solve(20, guess={"time": [0, 2 * time], "x": states, "controls": [[-1.0], [0.3]]}), time


def lander(length, time):
    """A soft landing with the least fuel: the thrust jumps once."""
    g = 1.5 * length / time**2
    system = System(["h", "v"], ["u"], lambda s: [s.v, s.u - g])
    ends = {"start": {"h": 10 * length, "v": -2 * length / time}, "end": {"h": 0, "v": 0}}
    limits = {"u": (0, 3 * length / time**2)}
    problem = Problem(system, (0.5 * time, 20 * time), **ends, limits=limits, cost=running(lambda s: s.u))
    return problem.solve(20, transcription="midpoint"), length / time


def push(length, time):
    """A mass between limits of force and speed; of all units, that of the mass follows from the others."""
    mass = 2.0 * time / length
    system = System(["x", "v"], ["f"], lambda s: [s.v, s.f / mass])
    limits = {"f": 10 * mass * length / time**2, "v": 1.6 * length / time}
    ends = {"start": {"x": 0, "v": 0}, "end": {"x": length, "v": 0}}
    problem = Problem(system, time, **ends, limits=limits)
    return problem.solve(20), mass**2 * length**2 / time**3


@pytest.mark.parametrize("make", [slide, lander, push])
def test_units_do_not_matter(make):
    """What differs are last bits."""
    one, unit = make(1.0, 1.0)
    assert one.success, one.diagnosis()
    for length, time in ((1e-3, 1.0), (1e6, 1e3)):
        other, size = make(length, time)
        assert other.success, other.diagnosis()
        assert abs(other.iterations - one.iterations) <= 2
        assert other.cost / size == pytest.approx(
            one.cost / unit, rel=1e-6
        )  # barriers of 1e-9, in other units
        assert other.violations() == []


def test_masses_do_not_matter():
    """Of a sliding arm: efforts are proportional to them, the cost to their squares."""

    def arm(mass):
        builder = al.ModelBuilder("arm", gravity=(0, -9.81, 0))
        link = al.Inertia(mass, (0.5, 0, 0), (0.01 * mass, 0, 0.35 * mass, 0, 0, 0.35 * mass))
        builder.body("cart", al.Inertia.point(2 * mass), joint=al.Prismatic((1.0, 0, 0)), joint_name="slide")
        turn = {"joint": al.Revolute((0, 0, 1.0)), "joint_name": "turn"}
        builder.body("link", link, **turn, parent="cart")
        start, end = {"q": [0, -np.pi / 2], "v": 0}, {"q": [0, np.pi / 2], "v": 0}
        return Problem(builder.build(), 2.0, start=start, end=end, actuated=["slide"]).solve(40)

    one = arm(1.0)
    assert one.success, one.diagnosis()
    for mass in (10.0, 1e4):
        other = arm(mass)
        assert other.success, other.diagnosis()
        assert abs(other.iterations - one.iterations) <= 2
        assert other.cost == pytest.approx(mass**2 * one.cost, rel=1e-6)


@pytest.mark.parametrize("transcription", ["dmoc", "rk4"])
def test_masses_of_a_floating_chain_do_not_matter(transcription):
    """Its joints bend from rest to rest: that the base is at rest then follows from its momentum, and is no further
    condition, although it is stated."""

    def floater(mass):
        builder = al.ModelBuilder("floater", gravity=(0, 0, 0))
        box = al.Inertia.box(mass, (1.0, 0.2, 0.2))
        builder.body("b0", box, joint=al.Free(), joint_name="base")
        for k, axis in ((1, (0, 1, 0)), (2, (0, 0, 1))):
            turn = {"joint": al.Revolute(axis), "joint_name": f"j{k}", "placement": (0.5, 0, 0)}
            builder.body(f"b{k}", box, parent=f"b{k - 1}", **turn)
        model = builder.build()
        ends = {"start": {"q": model.neutral(), "v": 0}, "end": {"q": {"j1": 1.0, "j2": 1.0}, "v": 0}}
        return Problem(model, 2.0, **ends, actuated=["j1", "j2"]).solve(30, transcription=transcription)

    one = floater(1.0)
    assert one.success, one.diagnosis()
    assert one.iterations <= 10
    # rk4 keeps momenta to its order: 1e-7 of speeds of about 1 rad/s on these steps
    np.testing.assert_allclose(one.v[-1], 0, atol=1e-12 if transcription == "dmoc" else 1e-6)
    for mass in (1e-2, 10.0):
        other = floater(mass)
        assert other.success, other.diagnosis()
        assert abs(other.iterations - one.iterations) <= 2
        assert other.cost == pytest.approx(mass**2 * one.cost, rel=1e-6)


def test_shuttle_in_feet_and_kilometres():
    """Re-entry with the largest cross-range (Betts 2010, section 6.1, no limit of heating: 34.1412 deg in 2008.59 s).

    An altitude is a number of 1e5 in feet, and a latitude one of 1.
    """

    def entry(foot):
        radius, mu, area = 20902900 * foot, 0.14076539e17 * foot**3, 2690 * foot**2
        mass, density, height = 203000 / 32.174, 0.002378 / foot**3, 23800 * foot

        def rate(s):
            r, a = radius + s.h, s.alpha / DEGREE
            g, pressure = mu / r**2, density / 2 * ca.exp(-s.h / height) * s.v**2 * area
            lift = pressure * (-0.20704 + 0.029244 * a)
            drag = pressure * (0.07854 - 0.61592e-2 * a + 0.621408e-3 * a**2)
            along, turn = s.v / r * ca.cos(s.gamma), lift / (mass * s.v)
            return [
                s.v * ca.sin(s.gamma),
                along * ca.cos(s.psi),
                -drag / mass - g * ca.sin(s.gamma),
                turn * ca.cos(s.beta) + ca.cos(s.gamma) * (s.v / r - g / s.v),
                turn * ca.sin(s.beta) / ca.cos(s.gamma) + along * ca.sin(s.psi) * ca.tan(s.theta),
            ]

        system = System(["h", "theta", "v", "gamma", "psi"], ["alpha", "beta"], rate)
        start = {"h": 260000 * foot, "theta": 0, "v": 25600 * foot, "gamma": -DEGREE, "psi": 90 * DEGREE}
        end = {"h": 80000 * foot, "v": 2500 * foot, "gamma": -5 * DEGREE}
        limits = {
            **{"h": (0, None), "theta": (-89 * DEGREE, 89 * DEGREE), "v": (foot, None)},
            **{"gamma": (-89 * DEGREE, 89 * DEGREE), "alpha": (-90 * DEGREE, 90 * DEGREE)},
            "beta": (-89 * DEGREE, DEGREE),
        }
        cost = terminal(lambda s: -s.theta)
        problem = Problem(system, (500.0, 4000.0), start=start, end=end, limits=limits, cost=cost)
        last = [80000 * foot, 0.5, 2500 * foot, -5 * DEGREE, 0.2]
        guess = {"time": [0, 2000], "x": [list(start.values()), last], "controls": [[0.3, -1.0], [0.3, -0.2]]}
        return problem.solve(60, guess=guess)

    feet, kilometres = entry(1.0), entry(0.3048e-3)
    for found in (feet, kilometres):
        assert found.success, found.diagnosis()
        assert -found.cost / DEGREE == pytest.approx(34.1412, abs=2e-3)  # 60 steps of order 4
        assert found.duration == pytest.approx(2008.59, abs=1.0)
    assert abs(feet.iterations - kilometres.iterations) <= 4  # restorations may come a step later


def test_units_are_those_of_the_quantities():
    """Not rounded to what differs from problem to problem."""

    def way(length):
        problem = Problem(
            System(["x"], ["u"], lambda s: [s.u]), 3.0, start={"x": 0}, end={"x": 700.0 * length}
        )
        return problem.solve(5)._outcome.units

    one, other = way(1.0), way(0.3048)
    assert isinstance(one, Units)
    assert one.x[0, 0] == 700.0
    assert other.parts[0].stage == pytest.approx(0.3048 * one.parts[0].stage, rel=1e-14)


def test_a_long_search_takes_the_same_turns():
    """The highest ascent on 600 kg of fuel, from a guess that stays on the ground: with units rounded to powers of two it
    took from 37 to 114 iterations."""

    def ascent(length, mass, time):
        force = mass * length / time**2
        system = System(
            ["h", "v", "m"],
            ["F"],
            lambda s: [
                s.v,
                (s.F - 0.1 * mass / length * s.v**2 * ca.exp(-s.h / (8000 * length))) / s.m
                - 9.81 * length / time**2,
                -s.F / (2000 * length / time),
            ],
        )
        start, end = {"h": 0, "v": 0, "m": 1000 * mass}, {"m": (400 * mass, 1000 * mass)}
        limits = {"F": (0, 30000 * force), "m": (400 * mass, 1000 * mass)}
        cost = terminal(lambda s: -s.h)
        problem = Problem(system, (time, 200 * time), start=start, end=end, limits=limits, cost=cost)
        return problem.solve(60, transcription="midpoint")

    metres, feet, hours = ascent(1.0, 1.0, 1.0), ascent(1 / 0.3048, 1.0, 1.0), ascent(1e-3, 1e-3, 1 / 3600)
    for found, length in ((metres, 1.0), (feet, 1 / 0.3048), (hours, 1e-3)):
        assert found.success, found.diagnosis()
        assert found.cost / length == pytest.approx(metres.cost, rel=1e-8)
        assert abs(found.iterations - metres.iterations) <= 4  # last bits, after some 40 iterations


def line(limits=None, **more):
    system = System(["x", "v"], ["u"], lambda s: [s.v, s.u])
    ends = {"start": {"x": 0, "v": 0}, "end": {"x": 1, "v": 0}}
    return Problem(system, (0.1, 10.0), **ends, limits={"u": 1.0, **(limits or {})}, cost=duration(), **more)


@pytest.mark.parametrize("transcription", ["hermite-simpson", "midpoint"])
def test_least_time_does_not_end_at_its_lower_bound(transcription):
    """x'' = u, |u| <= 1, from rest to rest: 2 sqrt(1) s."""
    solution = line().solve(30, transcription=transcription)
    assert solution.success, solution.diagnosis()
    # the switch is at a node; a control that is continuous and keeps its bounds needs an interval for it, and loses less
    # than a ramp of that length: by Pontryagin's principle T = 2 + O(h^2), with h = 2/30
    late = (2 / 30) ** 2 if transcription == "hermite-simpson" else 0.0
    assert 2.0 - 1e-6 <= solution.duration <= 2.0 + late + 1e-5


@pytest.mark.parametrize("transcription", ["hermite-simpson", "radau", "rk4"])
def test_short_motions(transcription):
    """1 m in a nanosecond, with nothing that says how large speeds and controls are: 6 / T^3, exact for controls that are
    polynomials; those that are held in each of 20 intervals cost 1 / 20^2 of it more."""
    system = System(["x", "v"], ["u"], lambda s: [s.v, s.u])
    ends = {"start": {"x": 0, "v": 0}, "end": {"x": 1, "v": 0}}
    solution = Problem(system, 1e-9, **ends).solve(20, transcription=transcription)
    assert solution.success, solution.message
    held = 20**2 / (20**2 - 1) if transcription == "rk4" else 1.0
    assert solution.cost == pytest.approx(6e27 * held, rel=1e-8)


def test_boat_in_a_current_with_a_path_equation():
    """Zermelo's boat (Bryson and Ho 1975, section 2.7), u^2 + w^2 = 1: 5.369 s, as with an angle as its control."""
    boat = System(["x", "y"], ["u", "w"], lambda s: [s.u - 0.5 * s.y, s.w])
    ends = {"start": {"x": 3.66, "y": -1.86}, "end": {"x": 0, "y": 0}}
    heading = {"heading": (lambda s: s.u**2 + s.w**2, 1, 1)}
    found = Problem(boat, (0.1, 20.0), **ends, cost=duration(), path=heading).solve(
        40, transcription="midpoint"
    )
    angle = System(["x", "y"], ["a"], lambda s: [ca.cos(s.a) - 0.5 * s.y, ca.sin(s.a)])
    other = Problem(angle, (0.1, 20.0), **ends, cost=duration()).solve(40, transcription="midpoint")
    assert found.success, found.diagnosis()
    assert other.success, other.diagnosis()
    assert found.duration == pytest.approx(other.duration, rel=1e-6)
    assert found.duration == pytest.approx(5.3697, abs=1e-3)  # 40 steps of order 2


@pytest.mark.parametrize("transcription", ["radau", "hermite-simpson"])
def test_rounding_in_path_equations(transcription):
    """The weight of equations in a step lets rounding of its own size into the slopes: with one of 1e10 durations from
    several guesses agreed to 1e-10 only, after 50 to 120 iterations."""
    boat = System(["x", "y"], ["u", "w"], lambda s: [s.u - s.y, s.w])
    ends = {"start": {"x": 3.66, "y": -1.86}, "end": {"x": 0, "y": 0}}
    heading = {"heading": (lambda s: s.u**2 + s.w**2, 1, 1)}
    problem = Problem(boat, (2.0, 10.0), **ends, cost=duration(), path=heading)
    t, found = np.linspace(0, 1, 21)[:, None], []
    for height, first, last in ((1, (0.5, 0.5), (-0.5, -0.9)), (2, (-0.3, 1.0), (0.8, -0.2))):
        x = (1 - t) * [[3.66, -1.86]] + height * np.sin(np.pi * t) * [[1, -1]]
        controls = (1 - t) * np.array(first) + t * np.array(last)
        guess = {"time": 6 * t[:, 0], "x": x, "controls": controls}
        found.append(problem.solve(40, transcription=transcription, guess=guess))
        assert found[-1].success, found[-1].diagnosis()
        assert found[-1].iterations < 60
    # the cost is the duration itself, which is flat to second order of what a tolerance of 1e-8 leaves
    assert found[0].duration == pytest.approx(found[1].duration, rel=1e-12)


def test_what_cannot_be_is_infeasible():
    """1 m in 1 s takes 4 m/s^2; there is 1."""
    solution = line().replace(duration=1.0).solve(20, transcription="midpoint")
    assert solution.status == "infeasible"
    assert "no motion near here keeps all constraints" in solution.message
    assert "end x" in solution.diagnosis()


@pytest.mark.parametrize("solver", ["sweep", "ipopt", "fatrop"])
def test_time_limits(solver):
    solution = line().solve(30, solver=solver, time_limit=1e-9)
    assert solution.status == "time"
    assert solution.message.startswith("stopped after the time limit of 1e-09 s")
    assert not solution.success


def test_time_limits_are_seconds():
    with pytest.raises(al.ArgumentError, match="time_limit is -1, expected seconds"):
        line().solve(30, time_limit=-1)
