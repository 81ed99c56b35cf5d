"""Free motion of a symmetric body."""

import numpy as np

from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.mechanisms import rigid_body
from alembert.verify.motion import motion
from alembert.verify.programs import Program


@case(
    source="""Euler's equations of a symmetric body: w turns about the axis at (I3 - I1)/I1 w3 (Goldstein,
    Classical Mechanics, sec. 5.6)""",
    kind="closed form",
    tags=("tree",),
    parameters={"across": 1.2, "along": 2.0, "start": (0.5, 0.0, 3.0), "duration": 5.0},
)
def symmetric_body(
    program: Program, across: float, along: float, start: tuple[float, ...], duration: float
) -> Items:
    """The angular velocity of a free symmetric body turns about its axis evenly."""
    model = rigid_body((across, across, along))
    t, _, w = motion(model, program.load(model), model.neutral(), start, duration=duration)
    rate = (along - across) / across * start[2]
    expected = np.column_stack(
        [start[0] * np.cos(rate * t), start[0] * np.sin(rate * t), np.full(len(t), start[2])]
    )
    yield Check("angular velocity [rad/s]", w, expected, 1e-10, "error control at 1e-13")
    yield Plot("t [s]", "[rad/s]", (Line("w1", t, w[:, 0]), Line("w2", t, w[:, 1])))
