"""Models with states of one's own beside them: drives with lags, and whatever has a rate."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal import Problem, System, model_system, running
from alembert.simulate import Drive, Gear, SpringDamper
from alembert.verify.mechanisms import four_bars

ENDS = {"start": {"q_slide": 0, "v_slide": 0}, "end": {"q_slide": 1, "v_slide": 0}}


def slider(joint=None):
    builder = al.ModelBuilder("slider", gravity=(0, 0, 0))
    builder.body("mass", al.Inertia.point(2.0), joint=joint or al.Prismatic((1.0, 0, 0)), joint_name="slide")
    builder.frame("wall", "world", (-1.0, 0, 0))
    return builder.build()


def test_lags_of_drives_and_states_of_ones_own():
    """A slider with a lag of 0.1 s, a spring and a battery is what is written down for it; the geared rotor adds 3^2 x 0.1
    kg, and a lag of second order has two states."""
    spring = SpringDamper("wall", "mass", stiffness=3.0, length=1.0)
    ours = model_system(
        slider(),
        drives={"slide": Drive(lag=0.1)},
        forces=spring,
        states=["charge"],
        rate=lambda s: [-(s.u_slide**2) - s.drive_slide * s.v_slide],
    )
    assert ours.states == ("q_slide", "v_slide", "drive_slide", "charge")
    assert ours.controls == ("u_slide",)
    hand = System(
        ["q_slide", "v_slide", "drive_slide", "charge"],
        ["u_slide"],
        lambda s: [
            s.v_slide,
            (s.drive_slide - 3.0 * s.q_slide) / 2.0,
            (s.u_slide - s.drive_slide) / 0.1,
            -(s.u_slide**2) - s.drive_slide * s.v_slide,
        ],
    )
    start = {**ENDS["start"], "drive_slide": 0, "charge": 500}
    costs = []
    for system in (ours, hand):
        cost = running(lambda s: s.u_slide**2 + s.q_slide**2)
        problem = Problem(system, 1.0, start=start, end={**ENDS["end"], "charge": (0, 500)}, cost=cost)
        costs.append(problem.solve(10).cost)
    assert costs[0] == pytest.approx(costs[1], rel=1e-9)
    second = model_system(
        slider(), drives={"slide": Drive(frequency=5.0, gear=Gear(3.0, 0.1))}, gravity=(1.0, 0, 0)
    )
    assert second.states[2:] == ("drive_slide", "drive_rate_slide")
    at = second.rate(ca.SX(0), ca.SX([0.1, 0.2, 0.3, 0.4]), ca.SX([2.0]), ca.SX(0, 1))
    expected = [0.2, (0.3 + 2.0) / 2.9, 0.4, 25 * (2.0 - 0.3) - 10 * 0.4]
    np.testing.assert_allclose(ca.evalf(at).full()[:, 0], expected, rtol=1e-12)


def test_efforts_of_ones_own():
    """A cylinder: the force is the pressure times an area, and the valve changes the pressure."""
    ours = model_system(
        slider(),
        states=["pressure"],
        controls=["valve"],
        rate=lambda s: s.valve - 2 * s.position("slide"),
        efforts=lambda s: {"slide": 3 * s.pressure},
    )
    assert ours.controls == ("valve",)
    at = ours.rate(ca.SX(0), ca.SX([0.1, 0.2, 0.5]), ca.SX([2.0]), ca.SX(0, 1))
    np.testing.assert_allclose(ca.evalf(at).full()[:, 0], [0.2, 3 * 0.5 / 2.0, 2.0 - 2 * 0.1], rtol=1e-12)


def test_what_is_refused():
    joint = al.Spherical()
    for given, error, said in (
        ({"model": 3}, ArgumentError, "model is a int, expected a Model"),
        ({"model": four_bars(1)}, UnsupportedError, "has loops or couplings"),
        ({"model": slider(joint)}, UnsupportedError, r"'slide' do not add \(a Spherical joint\)"),
        ({"drives": {"slide": Drive(rate=1.0)}}, UnsupportedError, "a limited rate and no lag"),
        ({"controls": ["a"]}, ArgumentError, "`controls` and `efforts` go together"),
        ({"states": ["a"]}, ArgumentError, "`states` and `rate` go together"),
        ({"states": ["a"], "rate": lambda s: [1, 2]}, ArgumentError, "rate gave 2 numbers, expected 1"),
        (
            {"controls": ["a"], "efforts": lambda s: [s.a, 0]},
            ArgumentError,
            "efforts gave 2 numbers, expected 1",
        ),
        (
            {"controls": ["a"], "efforts": lambda s: {"slip": s.a}},
            ArgumentError,
            "no degree of freedom 'slip'",
        ),
    ):
        with pytest.raises(error, match=said):
            model_system(**{"model": slider()} | given)
