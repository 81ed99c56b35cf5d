"""A spherical pendulum."""

import numpy as np
from scipy.special import ellipk

from alembert.joints import Revolute
from alembert.model import Inertia, ModelBuilder
from alembert.simulate import Event, simulate
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="""Spherical pendulum: z'^2 l^2 = 2 (E - g z)(l^2 - z^2) - h^2, period by an elliptic integral
    (Whittaker, Analytical Dynamics, sec. 55)""",
    kind="closed form",
    tags=("tree", "simulation"),
    parameters={"length": 1.0, "tilt": 0.8, "rate": 2.0, "gravity": 9.81},
)
def spherical_pendulum(length: float, tilt: float, rate: float, gravity: float) -> Items:
    """Period of the height of a spherical pendulum, and its angular momentum."""
    builder = ModelBuilder("spherical_pendulum")
    builder.body("shaft", Inertia.box(1e-9, (0.1, 0.1, 0.1)), joint=Revolute(), joint_name="spin")
    bob = Inertia.point(1.0, (0, 0, -length))
    builder.body("bob", bob, joint=Revolute((0.0, 1.0, 0.0)), joint_name="tilt", parent="shaft")
    model = builder.build()
    z0 = -length * np.cos(tilt)
    h = length**2 * np.sin(tilt) ** 2 * rate
    E = (length * np.sin(tilt) * rate) ** 2 / 2 + gravity * z0
    # z' = 0 at the roots of 2 (E - g z)(l^2 - z^2) - h^2
    roots = np.sort(np.roots([2 * gravity, -2 * E, -2 * gravity * length**2, 2 * E * length**2 - h**2]).real)
    k2 = (roots[1] - roots[0]) / (roots[2] - roots[0])
    period = 2 * length * ellipk(k2) / np.sqrt(gravity / 2 * (roots[2] - roots[0]))
    top = Event(lambda t, q, v: v[1], "turn", direction=0, action="note", tolerance=1e-12)
    run = simulate(
        model,
        [0.0, tilt],
        [rate, 0.0],
        duration=3.2 * period,
        events=top,
        tolerance=1e-12,
        absolute_tolerance=1e-13,
        progress=False,
    )
    turns = np.array([event.time for event in run.events])
    turns = turns[turns > 1e-6][:6]
    reason = "events to 1e-12, motion to 1e-12; the shaft's 1e-9 kg"
    yield Check("instants of turning [s]", turns, period / 2 * np.arange(1, 7), 1e-8, reason)
    momentum = run.v[:, 0] * (length * np.sin(run.q[:, 1])) ** 2
    yield Check("momentum / start", np.max(np.abs(momentum / momentum[0] - 1)), 0.0, 1e-8, reason)
    yield Plot("t [s]", "height [m]", (Line("", run.time, -length * np.cos(run.q[:, 1])),))
