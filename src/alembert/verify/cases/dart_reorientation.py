"""Keat 1989, DART."""

import numpy as np

from alembert.joints import Revolute, Spring
from alembert.model import Inertia, ModelBuilder, Placement
from alembert.simulate import Table, simulate
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.papers import acc1989


@case(
    source=acc1989(
        "Keat",
        "first study: a hub with four booms, turned by one cycle of a sine torque",
    ),
    kind="closed form",
    tags=("tree", "simulation", "acc1989"),
    parameters={"period": 40.0, "amplitude": 20.0, "stiffness": 4e4},
    missing="all data; these are ours, and booms are hinged and sprung instead of flexible",
)
def dart_reorientation(period: float, amplitude: float, stiffness: float) -> Items:
    """A hub with four booms turns by A T^2/(2 pi J) under one cycle of a sine torque, and stands still again."""
    builder = ModelBuilder("hub", gravity=(0, 0, 0))
    builder.body("hub", Inertia.cylinder(500.0, 1.0, 1.0, (0, 0, 1)), joint=Revolute(), joint_name="turn")
    boom = Inertia.rod(10.0, (0, 0, 0), (5, 0, 0))
    for k in range(4):
        c, s = np.cos(k * np.pi / 2), np.sin(k * np.pi / 2)
        builder.body(
            f"boom{k}",
            boom,
            joint=Revolute(),
            parent="hub",
            placement=Placement.from_rpy((0, 0, k * np.pi / 2), (c, s, 0)),
            spring=Spring((stiffness,)),
        )
    model = builder.build()
    times = np.linspace(0, period, 201)
    torque = Table(times, amplitude * np.sin(2 * np.pi * times / period), "cubic", outside="zero")
    run = simulate(
        model,
        np.zeros(5),
        duration=1.1 * period,
        step=0.02,
        interval=0.2,
        integrator="rk4",
        efforts={"turn": torque},
        progress=False,
    )
    turn = amplitude * period**2 / (2 * np.pi * model.mass_matrix(np.zeros(5))[0, 0])
    reason = "booms bend by 1e-4 rad; the spline of the torque is good to (2 pi/200)^4/384"
    yield Check("angle / rigid body's", run.q[-1, 0] / turn, 1.0, 1e-3, reason)
    h = run.momentum[:, 2]
    yield Check(
        "momentum at the end / largest", h[-1] / np.abs(h).max(), 0.0, 1e-8, "a full cycle has no impulse"
    )
    yield Check(
        "balance of energy",
        run.report.energy_error,
        0.0,
        1e-4,
        "order 4 at h = 0.02 s, and the work's quadrature",
    )
    yield Plot("t [s]", "angle of the hub [rad]", (Line("", run.time, run.q[:, 0]),))
