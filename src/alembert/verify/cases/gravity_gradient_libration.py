"""A body in orbit."""

import numpy as np

from alembert.joints import Revolute
from alembert.model import Inertia, ModelBuilder
from alembert.simulate import GravityGradient, simulate
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="""Pitch of a satellite in the gravity gradient: frequency n sqrt(3 (Jx - Jz)/Jy) (Hughes, Spacecraft
    Attitude Dynamics, sec. 9.2)""",
    kind="closed form",
    tags=("tree", "simulation"),
    parameters={"rate": 1e-3, "moments": (30.0, 12.0, 20.0), "small": 1e-3},
)
def gravity_gradient_libration(rate: float, moments: tuple[float, float, float], small: float) -> Items:
    """Small pitch of a body that looks down, over a period of its libration."""
    xx, yy, zz = moments  # z along the orbit's normal, y away from the centre
    builder = ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("bus", Inertia(10.0, (0, 0, 0), (xx, 0, yy, 0, 0, zz)), joint=Revolute())
    model = builder.build()
    w = rate * np.sqrt(3 * (xx - yy) / zz)
    run = simulate(
        model,
        [small],
        [rate],
        duration=2 * np.pi / w,
        gravity=GravityGradient(rate, radial=(0, 1, 0)),
        tolerance=1e-11,
        absolute_tolerance=1e-14,
        progress=False,
    )
    pitch = run.q[:, 0] - rate * run.time
    expected = small * np.cos(w * run.time)
    yield Check(
        "pitch [rad]",
        pitch,
        expected,
        2 * small**3 + 1e-8 * small,
        "the nonlinear period is longer by 1/16 of the angle's square",
    )
    yield Plot("t [s]", "pitch [rad]", (Line("", run.time, pitch),))
