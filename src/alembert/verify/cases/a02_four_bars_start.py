"""IFToMM A02."""

import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.mechanisms import four_bars, parallelogram


@case(
    source="IFToMM library of computational benchmark problems, A02 (N-four-bar), N = 2: energy at the start",
    kind="published",
    tags=("loops", "iftomm"),
    parameters={"windows": 2},
)
def a02_four_bars_start(windows: int) -> Items:
    """Energy, and the velocity of B0, at the start of the N-four-bar mechanism."""
    model = four_bars(windows)
    q, v = parallelogram(model, 0.0, -1.0)
    speed = model.frame_velocity(q, v, "top0", reference="local_world_aligned")[3:]
    yield Check("energy [J]", model.energy(q, v), 35.835, 1e-12, "exact data; rounding of some ten terms")
    yield Check("velocity of B0 [m/s]", speed, (1.0, 0.0, 0.0), 1e-14, "given; rounding")
    yield Check("loops", model.constraint_residual(q), np.zeros(5 * windows), 1e-15, "closed by the data")
