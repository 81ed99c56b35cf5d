"""Balakrishnan 1989."""

import numpy as np
from scipy.linalg import solve_continuous_lyapunov

from alembert.joints import (
    Prismatic,
    Spring,
)
from alembert.linear import linearize
from alembert.model import WORLD, Inertia, ModelBuilder
from alembert.verify.case import Check, Items, case
from alembert.verify.papers import acc1989


@case(
    source=acc1989(
        "Balakrishnan",
        "(3.4)",
    ),
    kind="published",
    tags=("linearisation", "acc1989"),
    parameters={"actuator_noise": 0.02, "sensor_noise": 0.005, "masses": 5, "mass": 1.3, "stiffness": 40.0},
)
def balakrishnan_bound(
    actuator_noise: float, sensor_noise: float, masses: int, mass: float, stiffness: float
) -> Items:
    """Mean square response under rate feedback: sqrt(d_s d_o) times the static compliance.

    Direct feedback u = -sqrt(d_s/d_o) v reaches the bound; (3.4) is printed with the response squared. On a chain of
    masses and springs instead of the paper's beam, by Lyapunov's equation of the linear model.
    """
    builder = ModelBuilder("chain", gravity=(0, 0, 0))
    parent = WORLD
    for k in range(masses):
        builder.body(
            f"m{k}",
            Inertia.box(mass, (0.1, 0.1, 0.1)),
            joint=Prismatic((1, 0, 0)),
            parent=parent,
            spring=Spring((stiffness,)),
        )
        parent = f"m{k}"
    model = builder.build()
    linear = linearize(model, model.neutral())
    tip = np.ones(masses)  # a force on the last mass does work on every relative displacement
    gain = np.sqrt(actuator_noise / sensor_noise)
    force = np.concatenate([np.zeros(masses), np.linalg.solve(model.mass_matrix(model.neutral()), tip)])
    rate = np.concatenate([np.zeros(masses), tip])
    closed = linear.A - gain * np.outer(force, rate)
    intensity = actuator_noise + gain**2 * sensor_noise
    P = solve_continuous_lyapunov(closed, -intensity * np.outer(force, force))
    place = np.concatenate([tip, np.zeros(masses)])
    expected = np.sqrt(actuator_noise * sensor_noise) * masses / stiffness
    yield Check(
        "mean square of the tip [m^2]",
        place @ P @ place,
        expected,
        1e-13,
        "Lyapunov's equation of ten states; rounding",
    )
