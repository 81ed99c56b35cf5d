"""The fast heavy top."""

import numpy as np

from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.mechanisms import heavy_top
from alembert.verify.motion import motion
from alembert.verify.programs import Program


@case(
    source="""Heavy top of the Lie-group integrator literature (Brüls, Cardona, Arnold 2012, sec. 5); attitude
    computed independently, eight digits""",
    kind="reference",
    tags=("tree",),
    parameters={"duration": 0.2, "spin": (0.0, 150.0, -4.61538)},
)
def heavy_top_attitude(program: Program, duration: float, spin: tuple[float, ...]) -> Items:
    """Attitude of a fast heavy top after 0.2 s."""
    model = heavy_top()
    t, q, _ = motion(model, program.load(model), model.neutral(), spin, duration=duration)
    expected = np.array([-0.70827915, 0.43878109, 0.54572840, 0.08939975])
    found = q[-1] * np.sign(q[-1] @ expected)  # a quaternion and its negative are one attitude
    yield Check("quaternion (w, x, y, z)", found, expected, 1e-8, "eight digits")
    yield Plot("t [s]", "quaternion", tuple(Line(name, t, q[:, k]) for k, name in enumerate("wxyz")))
