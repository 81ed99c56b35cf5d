"""A body that a rod, a screw, the ground or an incline guides."""

import casadi as ca
import numpy as np

from alembert.joints import Free, Prismatic, Revolute, RollingSphere, Screw
from alembert.model import WORLD, Inertia, ModelBuilder
from alembert.simulate import Event, simulate
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.programs import DynamicsProgram


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


@case(
    source="""A nut that runs down a screw without friction: a = g / (1 + I / (m h^2)), h the advance per radian""",
    kind="closed form",
    tags=("tree",),
    parameters={"mass": 0.8, "moment": 2e-3, "advance": 0.05, "gravity": 9.81},
)
def screw_descent(
    program: DynamicsProgram, mass: float, moment: float, advance: float, gravity: float
) -> Items:
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
