"""A bead on a turning rod."""

import casadi as ca
import numpy as np

from alembert.joints import (
    Prismatic,
    Revolute,
)
from alembert.model import Inertia, ModelBuilder
from alembert.simulate import simulate
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="A bead on a rod that is turned evenly: r = r0 cosh(w t); the torque on the rod 2 m w r r'",
    kind="closed form",
    tags=("tree", "simulation"),
    parameters={"rate": 2.0, "start": 0.1, "mass": 0.5, "duration": 1.5},
)
def bead_on_a_rod(rate: float, start: float, mass: float, duration: float) -> Items:
    """Prescribed rotation of a joint, and the torque that it takes (hybrid dynamics)."""
    builder = ModelBuilder("bead", gravity=(0, 0, 0))
    builder.body("rod", Inertia.rod(1.0, (-1, 0, 0), (1, 0, 0)), joint=Revolute(), joint_name="hub")
    builder.body("bead", Inertia.point(mass), joint=Prismatic((1, 0, 0)), joint_name="slide", parent="rod")
    model = builder.build()
    t = ca.SX.sym("t")
    turn = ca.Function("turn", [t], [rate * t])
    run = simulate(
        model,
        [0.0, start],
        [rate, 0.0],
        duration=duration,
        prescribed={"hub": turn},
        integrator="dop853",
        tolerance=1e-12,
        absolute_tolerance=1e-13,
        progress=False,
    )
    r = start * np.cosh(rate * run.time)
    yield Check("distance [m]", run.q[:, 1], r, 1e-10, "error control at 1e-12, growing as cosh(3)")
    end = model.hybrid_dynamics(run.q[-1], run.v[-1], accelerations={"hub": 0.0}, torques={"slide": 0.0})
    torque = 2 * mass * rate * r[-1] * start * rate * np.sinh(rate * duration)
    yield Check("torque at the end [N m]", end.efforts[0], torque, 1e-10, "as the motion")
    yield Plot("t [s]", "distance [m]", (Line("", run.time, run.q[:, 1]),))
