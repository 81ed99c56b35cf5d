"""An orbit."""

import numpy as np

from alembert.joints import Translational
from alembert.model import Inertia, ModelBuilder
from alembert.simulate import CentralGravity, simulate
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="""Kepler's laws: period 2 pi sqrt(a^3/mu), and the anomaly from M = E - e sin E (Curtis, Orbital
    Mechanics, ch. 3)""",
    kind="closed form",
    tags=("tree", "simulation"),
    parameters={"semi_axis": 1.0, "eccentricity": 0.5, "mu": 1.0},
)
def kepler_orbit(semi_axis: float, eccentricity: float, mu: float) -> Items:
    """A point on an elliptic orbit, a quarter of the period and a whole one after the pericentre."""
    builder = ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("craft", Inertia(1.0, (0, 0, 0), (1e-9, 0, 1e-9, 0, 0, 1e-9)), joint=Translational())
    model = builder.build()
    a, e = semi_axis, eccentricity
    period = 2 * np.pi * np.sqrt(a**3 / mu)
    run = simulate(
        model,
        [a * (1 - e), 0, 0],
        [0, np.sqrt(mu / a * (1 + e) / (1 - e)), 0],
        duration=period,
        interval=period / 200,
        integrator="dop853",
        gravity=CentralGravity(mu),
        tolerance=1e-12,
        absolute_tolerance=1e-13,
        progress=False,
    )
    E = np.pi / 2
    for _ in range(50):  # Newton's method on Kepler's equation
        E -= (E - e * np.sin(E) - np.pi / 2) / (1 - e * np.cos(E))
    quarter = (a * (np.cos(E) - e), a * np.sqrt(1 - e**2) * np.sin(E))
    reason = "error control at 1e-12; errors along the track grow as 3 pi of that of the energy"
    yield Check("a quarter of the period on", run.q[50, :2], quarter, 1e-9, reason)
    yield Check("back after a period", run.q[-1, :2], (a * (1 - e), 0.0), 1e-9, reason)
    yield Plot("x", "y", (Line("", run.q[:, 0], run.q[:, 1]),))
