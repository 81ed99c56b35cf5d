"""Slider-crank in closed form."""

import numpy as np

from alembert.joints import Prismatic, Revolute
from alembert.model import Inertia, ModelBuilder
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="Slider-crank with point masses: x = r cos t + sqrt(l^2 - r^2 sin^2 t) and Newton's law",
    kind="closed form",
    tags=("loops",),
    parameters={"crank": 0.3, "rod": 1.0, "mass": 2.0, "angle": 0.7, "rate": 3.0, "torque": 0.8},
)
def slider_crank(crank: float, rod: float, mass: float, angle: float, rate: float, torque: float) -> Items:
    """Assembly, accelerations and the force in the rod of a slider-crank."""
    r, l, t, w = crank, rod, angle, rate
    builder = ModelBuilder("slider_crank", gravity=(0, 0, 0))
    z = (0.0, 0.0, 1.0)
    builder.body("crank", Inertia.point(1.0, (r, 0, 0)), joint=Revolute(z), joint_name="crank")
    light = Inertia.point(1e-9, (l, 0, 0))
    builder.body("rod", light, joint=Revolute(z), joint_name="pin", parent="crank", placement=(r, 0, 0))
    builder.body("slider", Inertia.box(mass, (0.1, 0.1, 0.1)), joint=Prismatic((1, 0, 0)), joint_name="slide")
    builder.frame("eye", "rod", (l, 0, 0))
    builder.loop("gudgeon", Revolute(z), "slider", "eye")
    model = builder.build()
    root = np.sqrt(l**2 - (r * np.sin(t)) ** 2)
    x = r * np.cos(t) + root
    dx = -r * np.sin(t) - r**2 * np.sin(t) * np.cos(t) / root
    ddx = -r * np.cos(t) - r**2 * (np.cos(2 * t) / root + (r * np.sin(t) * np.cos(t)) ** 2 / root**3)
    beta = -np.arcsin(r * np.sin(t) / l) - t
    state = model.assemble([t, beta + 0.1, x - 0.05], [w, 0, 0], fixed=["crank"])
    yield Check("assembled pin, slider", state.q[1:], (beta, x), 1e-12, "Newton's method to rounding")
    yield Check("speed of the slider [m/s]", np.asarray(state.v)[2], dx * w, 1e-11, "rounding")
    dw = (torque - mass * dx * ddx * w**2) / (1.0 * r**2 + mass * dx**2)
    found = model.constrained_dynamics(state.q, state.v, [torque, 0, 0])
    reason = "the rod's 1e-9 kg"
    yield Check(
        "crank, slider accelerations", found.accelerations[[0, 2]], (dw, ddx * w**2 + dx * dw), 1e-6, reason
    )
    force = -found.reactions["gudgeon"][3] * np.cos(t + state.q[1])
    yield Check("force on the slider [N]", force, mass * (ddx * w**2 + dx * dw), 1e-6, reason)
    turns = np.linspace(0, 2 * np.pi, 181)
    yield Plot(
        "crank [rad]",
        "slider [m]",
        (Line("", turns, r * np.cos(turns) + np.sqrt(l**2 - (r * np.sin(turns)) ** 2)),),
    )
