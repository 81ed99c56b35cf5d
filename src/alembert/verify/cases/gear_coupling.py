"""Two wheels geared together."""

from alembert.joints import Revolute
from alembert.model import Coupling, Inertia, ModelBuilder
from alembert.simulate import simulate
from alembert.verify.case import Check, Items, case


@case(
    source="Two wheels with a ratio r: (I1 + r^2 I2) a = T",
    kind="closed form",
    tags=("loops", "simulation"),
    parameters={"ratio": -2.0, "torque": 1.0, "duration": 1.0},
)
def gear_coupling(ratio: float, torque: float, duration: float) -> Items:
    """Two wheels with a gear between them turn like one."""
    builder = ModelBuilder("gear", gravity=(0, 0, 0))
    wheel = Inertia.cylinder(1.0, 0.5, 0.1, (0, 0, 1))
    for name in "ab":
        builder.body(name, wheel, joint=Revolute(), joint_name=name)
    model = builder.build().replace(couplings=(Coupling("gear", "b", ("a",), (ratio,)),))
    run = simulate(
        model, [0.1, 0.1 * ratio], duration=duration, step=0.05, efforts={"a": torque}, progress=False
    )
    inertia = 0.125 * (1 + ratio**2)
    expected = 0.1 + run.time**2 * torque / (2 * inertia)
    yield Check(
        "angle of the first [rad]", run.q[:, 0], expected, 1e-12, "constant acceleration: order 4 is exact"
    )
    yield Check("angle of the second [rad]", run.q[:, 1], ratio * run.q[:, 0], 1e-12, "projection")
