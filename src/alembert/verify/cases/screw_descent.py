"""A nut on a screw."""

import numpy as np

from alembert.joints import Screw
from alembert.model import Inertia, ModelBuilder
from alembert.verify.case import Check, Items, case
from alembert.verify.programs import Program


@case(
    source="""A nut that runs down a screw without friction: a = g / (1 + I / (m h^2)), h the advance per radian""",
    kind="closed form",
    tags=("tree",),
    parameters={"mass": 0.8, "moment": 2e-3, "advance": 0.05, "gravity": 9.81},
)
def screw_descent(program: Program, mass: float, moment: float, advance: float, gravity: float) -> Items:
    """Acceleration of a nut on a vertical screw."""
    builder = ModelBuilder("nut")
    builder.body(
        "nut", Inertia(mass, (0, 0, 0), (moment, 0, moment, 0, 0, moment)), joint=Screw((0, 0, 1), advance)
    )
    model = builder.build()
    a = program.load(model).forward_dynamics(np.array([0.7]), np.array([2.0]), np.zeros(1))
    yield Check(
        "acceleration [m/s^2]",
        advance * a[0],
        -gravity / (1 + moment / (mass * advance**2)),
        1e-13,
        "rounding",
    )
