"""A thrown body."""

import numpy as np

from alembert.joints import Free
from alembert.model import Inertia, ModelBuilder
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.motion import motion
from alembert.verify.programs import Program


@case(
    source="Galilei's parabola and the conservation of momentum, for a body thrown with spin",
    kind="closed form",
    tags=("tree",),
    parameters={"duration": 2.0},
)
def projectile(program: Program, duration: float) -> Items:
    """The centre of mass of a thrown, spinning body follows a parabola, its angular momentum stays."""
    builder = ModelBuilder("thrown")
    builder.body("body", Inertia.box(2.0, (0.1, 0.3, 0.6)), joint=Free())
    model = builder.build()
    v0 = np.array([1.0, -2.0, 0.5, 3.0, 1.0, 6.0])
    t, q, v = motion(model, program.load(model), model.neutral(), v0, duration=duration)
    expected = v0[3:] * duration + np.array([0, 0, -9.81]) * duration**2 / 2
    yield Check("place [m]", q[-1, :3], expected, 1e-10, "error control at 1e-13")
    h = np.array([model.momentum(x, y)[:3] for x, y in zip(q, v, strict=True)])
    yield Check("angular momentum [kg m^2/s]", h, np.tile(h[0], (len(t), 1)), 1e-11, "error control at 1e-13")
    yield Plot("t [s]", "height [m]", (Line("", t, q[:, 2]),))
