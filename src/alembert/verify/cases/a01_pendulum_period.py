"""IFToMM A01."""

import numpy as np
from scipy.special import ellipk

from alembert import library
from alembert.simulate import Event, simulate
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="IFToMM library of computational benchmark problems, A01; closed form 4 K(1/2) sqrt(l/g)",
    kind="closed form",
    tags=("tree", "simulation", "iftomm"),
    parameters={"mass": 1.0, "length": 1.0, "gravity": 9.81},
)
def a01_pendulum_period(mass: float, length: float, gravity: float) -> Items:
    """Period of a pendulum released horizontally, from the instants at which it rests."""
    model = library.pendulum(mass=mass, length=length)
    period = 4 * ellipk(0.5) * np.sqrt(length / gravity)
    yield Check("4 K(1/2) sqrt(l/g) [s]", period, 2.3678419475762, 1e-12, "fourteen digits of print")
    rest = Event(lambda t, q, v: v[0], "rest", direction=1, action="note", tolerance=1e-12)
    run = simulate(
        model,
        [-np.pi / 2],
        duration=4.5 * period,
        events=rest,
        tolerance=1e-12,
        absolute_tolerance=1e-13,
        progress=False,
    )
    found = np.array([event.time for event in run.events])
    expected = period * np.arange(1, 5)
    yield Check(
        "four periods [s]", found, expected, 1e-9, "events located to 1e-12, motion to 1e-12 per step"
    )
    yield Plot("t [s]", "angle [rad]", (Line("", run.time, run.q[:, 0]),))
