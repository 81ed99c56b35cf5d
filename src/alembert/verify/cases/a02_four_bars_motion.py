"""IFToMM A02."""

import numpy as np

from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.mechanisms import four_bars, parallelogram
from alembert.verify.motion import runge_kutta


@case(
    source="""IFToMM library of computational benchmark problems, A02 (N-four-bar), N = 2; ten digits computed
    independently""",
    kind="reference",
    tags=("loops", "simulation", "iftomm"),
    parameters={"windows": 2, "duration": 10.0, "steps": 4000},
    slow=True,
)
def a02_four_bars_motion(windows: int, duration: float, steps: int) -> Items:
    """B0 after 10 s, through the singular positions with all bars in line."""
    model = four_bars(windows)
    places: list[np.ndarray] = []
    q, v = parallelogram(model, 0.0, -1.0)
    q, v = runge_kutta(model, q, v, duration=duration, steps=steps, each=lambda q, v: places.append(q[0]))
    place = model.frame_pose(q, "top0").translation[:2]
    speed = model.frame_velocity(q, v, "top0", reference="local_world_aligned")[3:5]
    reason = "order 4 at h = 2.5 ms: some 1e-9 by halving the step; the reference has ten digits"
    yield Check("B0 [m]", place, (0.3284581115, 0.9445185382), 3e-9, reason)
    yield Check(
        "velocity of B0 [m/s]", speed, (1.4230514702, -0.4948688455), 3e-8, reason + "; times the rates"
    )
    yield Check("energy [J]", model.energy(q, v), 35.835, 3.6e-8, "1e-9 relative, by the order of the scheme")
    yield Check("loops", np.max(np.abs(model.constraint_residual(q))), 0.0, 1e-12, "after projection")
    t = np.linspace(duration / steps, duration, steps)
    yield Plot("t [s]", "angle of the first bar [rad]", (Line("", t, np.array(places)),))
