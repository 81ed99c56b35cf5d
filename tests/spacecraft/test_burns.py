"""Burns: the rocket equation, convergence of what turns, and bad input."""

import math

import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError
from alembert.spacecraft import Thruster, burn


def stage():
    builder = al.ModelBuilder("stage", gravity=(0, 0, 0))
    fuel = builder.parameter("fuel", 60.0)
    builder.body("hub", al.Inertia.box(100.0, (1, 1, 1)), joint=al.Free(), joint_name="flight")
    builder.body(
        "tank", al.Inertia.cylinder(fuel, 0.3, 0.8), joint=al.Fixed(), parent="hub", placement=(0, 0, 0.5)
    )
    return builder.build()


def pushed(direction, at, segments, duration=100.0):
    jet = Thruster("jet", "hub", direction, 400.0, specific_impulse=300.0, at=at)
    model = stage()
    return jet, burn(
        model, model.neutral(), np.zeros(6), [jet], duration=duration, propellant="fuel", segments=segments,
        step=0.5, integrator="rk4",
    )  # fmt: skip


def test_the_rocket_equation():
    jet, found = pushed((0, 0, 1), (0, 0, 0), 4)
    left = 60.0 - jet.flow * 100.0
    assert found.propellant[-1] == pytest.approx(left)
    assert found.v[-1, 5] == pytest.approx(300 * 9.80665 * math.log(160.0 / (100.0 + left)), rel=1e-12)


def test_what_turns_converges_with_the_square():
    rates = [pushed((0, 0, 1), (0.002, 0, 0), n)[1].v[-1, 1] for n in (2, 4, 8)]
    assert (rates[0] - rates[1]) / (rates[1] - rates[2]) == pytest.approx(4.0, rel=0.15)


def test_bad_burns():
    model = stage()
    jet = Thruster("jet", "hub", (0, 0, 1), 400.0)
    given = {"duration": 1.0, "propellant": "fuel"}
    for change, message in (
        ({"propellant": "water"}, "no parameter 'water'"),
        ({"segments": 0}, "segments"),
        ({"duration": -1.0}, "duration"),
        ({"duration": 1e4}, "they last"),
    ):
        with pytest.raises(ArgumentError, match=message):
            burn(model, model.neutral(), np.zeros(6), [jet], **{**given, **change})
