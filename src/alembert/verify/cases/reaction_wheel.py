"""A body turned by a wheel."""

from alembert.joints import Revolute
from alembert.model import Inertia, ModelBuilder
from alembert.simulate import simulate
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="""Conservation of angular momentum: a body of inertia B turns by -W/(B + W) of the angle of its wheel""",
    kind="closed form",
    tags=("tree", "simulation"),
    parameters={"body": 4.0, "wheel": 0.3, "torque": 0.5, "duration": 4.0},
)
def reaction_wheel(body: float, wheel: float, torque: float, duration: float) -> Items:
    """Angle of a body that turns against its wheel, with the variational scheme."""
    builder = ModelBuilder("bus", gravity=(0, 0, 0))
    builder.body(
        "bus", Inertia(10.0, (0, 0, 0), (body, 0, body, 0, 0, body)), joint=Revolute(), joint_name="turn"
    )
    disc = Inertia(1.0, (0, 0, 0), (wheel * 0.6, 0, wheel * 0.6, 0, 0, wheel))
    builder.body("wheel", disc, joint=Revolute(), joint_name="spin", parent="bus", placement=(0, 0, 0.2))
    model = builder.build()
    run = simulate(
        model,
        [0.0, 0.0],
        duration=duration,
        step=0.01,
        efforts={"spin": torque},
        integrator="variational",
        progress=False,
    )
    yield Check(
        "body / wheel",
        run.q[-1, 0] / run.q[-1, 1],
        -wheel / (body + wheel),
        1e-12,
        "momentum kept to rounding",
    )
    spin = torque * (1 / wheel + 1 / body) * duration
    yield Check(
        "rate of the wheel [rad/s]", run.v[-1, 1], spin, 1e-10, "constant torque: the midpoint rule is exact"
    )
    yield Plot("t [s]", "[rad]", (Line("body", run.time, run.q[:, 0]), Line("wheel", run.time, run.q[:, 1])))
