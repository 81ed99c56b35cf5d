"""IFToMM A01."""

import numpy as np

from alembert import library
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.motion import motion
from alembert.verify.programs import Program


@case(
    source="IFToMM library of computational benchmark problems, A01; closed form by elliptic functions",
    kind="closed form",
    tags=("tree", "iftomm"),
    parameters={"mass": 1.0, "length": 1.0, "start": -np.pi / 2, "duration": 10.0},
)
def a01_pendulum_position(
    program: Program, mass: float, length: float, start: float, duration: float
) -> Items:
    """Position of a pendulum, released horizontally, after 10 s."""
    model = library.pendulum(mass=mass, length=length)
    t, q, _ = motion(model, program.load(model), [start], duration=duration)
    x, y = length * np.sin(q[:, 0]), -length * np.cos(q[:, 0])
    yield Check(
        "x, y [m]",
        (x[-1], y[-1]),
        (-0.275087462576, -0.961419205099),
        1e-10,
        "error control at 1e-13 over four periods; twelve digits of the closed form",
    )
    yield Plot("t [s]", "[m]", (Line("x", t, x), Line("y", t, y)))
