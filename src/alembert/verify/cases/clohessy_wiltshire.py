"""Motion near an orbit."""

import numpy as np

from alembert.joints import Translational
from alembert.model import Inertia, ModelBuilder
from alembert.simulate import GravityGradient, simulate
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="""Clohessy, Wiltshire, Terminal guidance system for satellite rendezvous, J. Aerospace Sci. 27 (1960):
    a push along the track""",
    kind="published",
    tags=("tree", "simulation"),
    parameters={"rate": 1.1e-3, "push": 0.3},
)
def clohessy_wiltshire(rate: float, push: float) -> Items:
    """Relative motion after a push along a circular orbit, in axes that do not turn."""
    builder = ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("bus", Inertia.box(10.0, (1, 1, 1)), joint=Translational())
    model = builder.build()
    run = simulate(
        model,
        [0, 0, 0],
        [0, push, 0],
        duration=2 * np.pi / rate,
        gravity=GravityGradient(rate),
        tolerance=1e-11,
        absolute_tolerance=1e-12,
        progress=False,
    )
    t, n = run.time, rate
    x, y = 2 * push / n * (1 - np.cos(n * t)), push / n * (4 * np.sin(n * t) - 3 * n * t)
    c, s = np.cos(n * t), np.sin(n * t)
    expected = np.stack([c * x - s * y, s * x + c * y], axis=-1)
    yield Check("place [m]", run.q[:, :2], expected, 1e-6, "error control at 1e-11 of some 5 km")
    yield Plot(
        "radial [m]",
        "along the track [m]",
        (Line("", c * run.q[:, 0] + s * run.q[:, 1], c * run.q[:, 1] - s * run.q[:, 0]),),
    )
