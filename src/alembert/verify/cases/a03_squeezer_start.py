"""IFToMM A03, Andrews' squeezer."""

import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.mechanisms import SQUEEZER_START, squeezer, squeezer_accelerations


@case(
    source="Test set for IVP solvers, Andrews' squeezing mechanism (IFToMM A03): consistent initial values",
    kind="published",
    tags=("loops", "iftomm"),
)
def a03_squeezer_start() -> Items:
    """Initial accelerations of Andrews' squeezer."""
    model = squeezer()
    q = np.array([SQUEEZER_START[name] for name in model.coordinate_names])
    a = dict(zip(model.speed_names, squeezer_accelerations(q, np.zeros(7)), strict=True))
    found = model.constraint_analysis(q)
    yield Check("loops [m]", np.max(np.abs(model.constraint_residual(q))), 0.0, 1e-15, "16 printed digits")
    yield Check("rank, freedoms", (found.rank, found.degrees_of_freedom), (6, 1), 0, "integers")
    reason = "twelve digits: those of the printed coordinates times the condition of the loops"
    yield Check("beta'' [rad/s^2]", a["beta"], 14222.4439199541, 1.5e-8, reason)
    yield Check("Theta'' [rad/s^2]", a["theta"], -10666.8329399656, 1.1e-8, reason)
