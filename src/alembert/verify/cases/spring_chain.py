"""A chain of masses and springs."""

import numpy as np

from alembert.joints import Prismatic, Spring
from alembert.linear import linearize
from alembert.model import WORLD, Inertia, ModelBuilder
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="""A fixed-free chain of equal masses and springs: w_j = 2 sqrt(k/m) sin((2j - 1) pi / (4N + 2))
    (Routh, Advanced Rigid Dynamics, ch. IX)""",
    kind="closed form",
    tags=("linearisation",),
    parameters={"count": 8, "mass": 0.5, "stiffness": 30.0},
)
def spring_chain(count: int, mass: float, stiffness: float) -> Items:
    """Frequencies of masses and springs in a row."""
    builder = ModelBuilder("row", gravity=(0, 0, 0))
    parent = WORLD
    for k in range(count):
        body = Inertia.box(mass, (0.1, 0.1, 0.1))
        builder.body(f"m{k}", body, joint=Prismatic((1, 0, 0)), parent=parent, spring=Spring((stiffness,)))
        parent = f"m{k}"
    model = builder.build()
    found = linearize(model, np.zeros(count)).modes().frequencies
    j = np.arange(1, count + 1)
    expected = 2 * np.sqrt(stiffness / mass) * np.sin((2 * j - 1) * np.pi / (4 * count + 2))
    yield Check("frequencies [rad/s]", found, expected, 1e-11, "rounding times the condition of the modes")
    yield Plot("mode", "[rad/s]", (Line("closed form", j, expected), Line("ours", j, found, "points")))
