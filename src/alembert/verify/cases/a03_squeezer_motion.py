"""IFToMM A03, Andrews' squeezer."""

import numpy as np

from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.mechanisms import (
    SQUEEZER_DRIVE,
    SQUEEZER_START,
    squeezer,
    squeezer_accelerations,
    squeezer_spring,
)
from alembert.verify.motion import runge_kutta

PUBLISHED = {
    "beta": 15.81077119629904,
    "theta": -15.75637105984298,
    "gamma": 0.04082224013073101,
    "phi": -0.5347301163226948,
    "delta": 0.5244099658805304,
    "omega": 0.5347301163226948,
    "epsilon": 1.048080741042263,
}


@case(
    source="""Test set for IVP solvers, Andrews' squeezing mechanism (IFToMM A03): reference solution at 0.03 s""",
    kind="published",
    tags=("loops", "simulation", "iftomm"),
    parameters={"duration": 0.03, "steps": 1200},
)
def a03_squeezer_motion(duration: float, steps: int) -> Items:
    """Andrews' squeezer at 0.03 s, and the balance of energy with the work of its drive."""
    model = squeezer()
    start = np.array([SQUEEZER_START[name] for name in model.coordinate_names])
    path = [start]
    q, v = runge_kutta(
        model,
        start,
        np.zeros(7),
        duration=duration,
        steps=steps,
        accelerations=squeezer_accelerations,
        each=lambda q, v: path.append(q),
    )
    expected = [PUBLISHED[name] for name in model.coordinate_names]
    yield Check("coordinates [rad]", q, expected, 1e-7, "order 4: 1000 steps give 2e-8, 2000 give 2e-9")
    work = SQUEEZER_DRIVE * (q - start)[model.coordinate_names.index("beta")]
    gained = model.kinetic_energy(q, v) + squeezer_spring(q)[1] - squeezer_spring(start)[1]
    yield Check(
        "energy - work [J]", gained - work, 0.0, 5e-8, "1e-7 of the work 0.52 J, by the order of the scheme"
    )
    t, x = np.linspace(0, duration, steps + 1), np.array(path)
    names = ("gamma", "phi", "delta", "epsilon")
    columns = [model.coordinate_names.index(name) for name in names]
    lines = tuple(Line(name, t, x[:, k]) for name, k in zip(names, columns, strict=True))
    yield Plot("t [s]", "[rad]", lines)
