"""IFToMM A02."""

import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.mechanisms import four_bars, parallelogram


@case(
    source="""IFToMM library of computational benchmark problems, A02 (N-four-bar), N = 40; all posts turn alike:
    I t'' = g s sin t""",
    kind="closed form",
    tags=("loops", "iftomm"),
    parameters={"windows": 40, "angle": 0.6, "rate": -1.3},
    slow=True,
)
def a02_four_bars_forty(windows: int, angle: float, rate: float) -> Items:
    """Accelerations of forty four-bars, which move like one pendulum."""
    model = four_bars(windows)
    q, v = parallelogram(model, angle, rate)
    found = model.forward_dynamics(q, v, np.zeros(model.nv))
    posts, beams = windows + 1, windows
    expected = 9.81 * (posts / 2 + beams) * np.sin(angle) / (posts / 3 + beams)
    yield Check(
        "accelerations [rad/s^2]",
        found,
        parallelogram(model, 0.0, expected)[1],
        1e-9,
        "rounding times the condition of 200 constraint rows, some 1e4",
    )
