"""A ball that bounces."""

import numpy as np

from alembert.joints import Prismatic
from alembert.model import Inertia, ModelBuilder
from alembert.simulate import Event, simulate
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="A ball dropped from h with restitution e: bounces at sqrt(2h/g) (1 + 2 e + 2 e^2 + ...)",
    kind="closed form",
    tags=("tree", "simulation"),
    parameters={"height": 1.0, "restitution": 0.7, "gravity": 9.81, "bounces": 6},
)
def bouncing_ball(height: float, restitution: float, gravity: float, bounces: int) -> Items:
    """Instants of bounces, located as events that change the velocity."""
    builder = ModelBuilder("ball")
    builder.body("ball", Inertia.box(1.0, (0.1, 0.1, 0.1)), joint=Prismatic((0, 0, 1)), joint_name="height")
    model = builder.build()
    first = np.sqrt(2 * height / gravity)
    steps = np.concatenate([[1.0], 2 * restitution ** np.arange(1, bounces)])
    expected = first * np.cumsum(steps)
    end = expected[-1] + first * restitution**bounces  # half-way to the next
    floor = Event(
        lambda t, q, v: q[0],
        "floor",
        direction=-1,
        action=lambda t, q, v: (q, -restitution * v),
        tolerance=1e-12,
    )
    run = simulate(model, [height], duration=end, events=floor, integrator="dop853", progress=False)
    found = np.array([event.time for event in run.events])
    yield Check("instants [s]", found, expected, 1e-9, "each located to 1e-12; parabolas are exact")
    yield Plot("t [s]", "height [m]", (Line("", run.time, run.q[:, 0]),))
