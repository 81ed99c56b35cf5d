"""A ball on an incline."""

import numpy as np

from alembert.joints import Free, RollingSphere
from alembert.model import WORLD, Inertia, ModelBuilder
from alembert.verify.case import Check, Items, case


@case(
    source="""A ball that rolls down an incline: a = 5/7 g sin(slope), friction 2/7 m g sin(slope) (Goldstein,
    Classical Mechanics, sec. 2.4)""",
    kind="closed form",
    tags=("loops",),
    parameters={"mass": 0.7, "radius": 0.1, "slope": 0.4, "gravity": 9.81},
)
def rolling_ball(mass: float, radius: float, slope: float, gravity: float) -> Items:
    """Acceleration of a rolling ball, and that it rolls (nonholonomic rows)."""
    builder = ModelBuilder("ball", gravity=(gravity * np.sin(slope), 0.0, -gravity * np.cos(slope)))
    builder.body("ball", Inertia.sphere(mass, radius), joint=Free(), joint_name="ball")
    builder.loop("incline", RollingSphere(radius), WORLD, "ball")
    model = builder.build()
    q = np.array([0.0, 0.0, radius, 1.0, 0.0, 0.0, 0.0])
    v = np.array([0.0, 1.0 / radius, 0.0, 1.0, 0.0, 0.0])  # rolling at 1 m/s
    yield Check("sliding [m/s]", np.max(np.abs(model.constraint_jacobian(q) @ v)), 0.0, 1e-14, "rounding")
    a = model.forward_dynamics(q, v, np.zeros(6))
    down = 5 / 7 * gravity * np.sin(slope)
    yield Check("acceleration [m/s^2]", a[3] + v[1] * v[5] - v[2] * v[4], down, 1e-12, "rounding")
    yield Check("angular acceleration [rad/s^2]", a[1], down / radius, 1e-11, "rounding")
