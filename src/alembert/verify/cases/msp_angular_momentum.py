"""Chen and Ou 1989, validation (II)."""

import numpy as np

from alembert.simulate import simulate
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.mechanisms import RRC_MISSING, rrc_arm
from alembert.verify.papers import acc1989


@case(
    source=acc1989(
        "Chen, Ou",
        "validations (II-a) and (II-b), seven-link RRC arm",
    ),
    kind="published",
    tags=("tree", "simulation", "acc1989"),
    parameters={"duration": 1.0, "step": 5e-4},
    missing=RRC_MISSING,
)
def msp_angular_momentum(duration: float, step: float) -> Items:
    """No torque on a direct-drive first joint along gravity: H . z1 is constant, whatever the others do."""
    q0 = [0.2, 0.4, -0.6, 0.8, 0.3, -0.5, 0.7]
    v0 = [0.3, -0.5, 0.8, 1.0, -0.7, 0.9, 1.2]
    efforts = [0.0, 100.0, -30.0, 20.0, 10.0, -5.0, 3.0]
    lines = []
    for name, gravity in (("II-a", 0.0), ("II-b", -9.81)):
        model = rrc_arm(first_ratio=1.0, oblique=True, gravity=gravity)
        run = simulate(
            model,
            q0,
            v0,
            duration=duration,
            step=step,
            integrator="rk4",
            interval=0.01,
            efforts=efforts,
            progress=False,
        )
        h = run.momentum[:, 2]
        drift = (h - h[0]) / np.max(np.abs(run.momentum[:, :3]))
        yield Check(f"{name}: drift / momentum", np.max(np.abs(drift)), 0.0, 1e-8, "order 4 at h = 0.5 ms")
        lines.append(Line(name, run.time, drift))
    yield Plot("t [s]", "drift / momentum", tuple(lines))
