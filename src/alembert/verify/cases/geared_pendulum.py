"""A pendulum with a geared motor."""

import numpy as np

from alembert.joints import Revolute, Rotor
from alembert.model import Inertia, ModelBuilder
from alembert.verify.case import Check, Items, case


@case(
    source="""A pendulum driven through a gear of ratio n by a rotor J: (m l^2 + n^2 J) a = n T - m g l sin(angle)""",
    kind="closed form",
    tags=("tree",),
    parameters={"mass": 1.5, "length": 0.6, "ratio": 50.0, "rotor": 2e-4, "torque": 0.1, "gravity": 9.81},
)
def geared_pendulum(
    mass: float, length: float, ratio: float, rotor: float, torque: float, gravity: float
) -> Items:
    """Acceleration of a pendulum whose motor stands on the ground."""
    builder = ModelBuilder("geared")
    axis = (0.0, -1.0, 0.0)
    bob = Inertia.point(mass, (0, 0, -length))
    builder.body("bob", bob, joint=Revolute(axis), rotors=[Rotor(ratio, rotor, axis)])
    model = builder.build()
    angle = 0.9
    a = model.forward_dynamics([angle], [0.4], [ratio * torque])
    moment = ratio * torque - mass * gravity * length * np.sin(angle)
    yield Check(
        "acceleration [rad/s^2]", a[0], moment / (mass * length**2 + ratio**2 * rotor), 1e-13, "rounding"
    )
