"""A conical pendulum."""

import numpy as np

from alembert.joints import Revolute
from alembert.linear import trim
from alembert.model import Inertia, ModelBuilder
from alembert.verify.case import Check, Items, case


@case(
    source="Huygens, Horologium oscillatorium (1673), part V: the conical pendulum, w^2 = g / (l cos(angle))",
    kind="closed form",
    tags=("tree", "linearisation"),
    parameters={"angle": 0.6, "length": 1.0, "gravity": 9.81},
)
def conical_pendulum(angle: float, length: float, gravity: float) -> Items:
    """The rate at which a pendulum turns steadily, found by trimming."""
    builder = ModelBuilder("conical")
    builder.body("shaft", Inertia.box(0.1, (0.1, 0.1, 0.1)), joint=Revolute(), joint_name="spin")
    bob = Inertia.point(1.0, (0, 0, -length))
    builder.body("bob", bob, joint=Revolute((0.0, 1.0, 0.0)), joint_name="tilt", parent="shaft")
    model = builder.build()
    found = trim(model, v=[3.0, 0.0], fixed={"tilt": angle, "v:tilt": 0.0}, free=["v:spin"])
    expected = np.sqrt(gravity / (length * np.cos(angle)))
    yield Check("rate [rad/s]", found.v[0], expected, 1e-11, "Newton's method to rounding")
