"""N pendulums below each other."""

import numpy as np
from scipy.special import roots_laguerre

from alembert.joints import Revolute
from alembert.linear import linearize
from alembert.model import WORLD, Inertia, ModelBuilder
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="""N equal point masses on equal links: w^2 = g/l times the roots of Laguerre's polynomial L_N
    (Bernoulli 1733; Cannon, Dostrovsky, The Evolution of Dynamics, 1981)""",
    kind="closed form",
    tags=("linearisation",),
    parameters={"count": 6, "length": 0.4, "mass": 0.7, "gravity": 9.81},
)
def laguerre_pendulum(count: int, length: float, mass: float, gravity: float) -> Items:
    """Frequencies of a hanging chain of point masses."""
    builder = ModelBuilder("hanging")
    parent = WORLD
    for k in range(count):
        builder.body(
            f"m{k}",
            Inertia.point(mass, (0, 0, -length)),
            joint=Revolute((0, -1, 0)),
            parent=parent,
            placement=(0, 0, -length if k else 0.0),
        )
        parent = f"m{k}"
    model = builder.build()
    found = linearize(model, np.zeros(count)).modes()
    expected = np.sqrt(gravity / length * np.sort(roots_laguerre(count)[0]))
    yield Check(
        "frequencies [rad/s]", found.frequencies, expected, 1e-9, "rounding times the condition of the modes"
    )
    shapes = np.array([np.real(mode.shape) for mode in found])
    lines = tuple(
        Line(
            f"{w:.3g} rad/s",
            np.arange(1, count + 1),
            np.cumsum(np.cumsum(s)) / np.max(np.abs(np.cumsum(np.cumsum(s)))),
        )
        for w, s in zip(found.frequencies[:3], shapes[:3], strict=True)
    )
    yield Plot("mass", "displacement", lines)
