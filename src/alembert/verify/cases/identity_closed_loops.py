"""An identity on random closed mechanisms."""

import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    LOOP_KINDS,
    closed,
    dense_solution,
    possible_speeds,
)


@case(
    source="""Rodriguez, Jain, Kreutz-Delgado, Spatial operator algebra (1992), steps A-F, against the dense
    equations [M G^T; G 0]""",
    kind="identity",
    tags=("loops", "random"),
    slow=True,
)
def identity_closed_loops() -> Items:
    """Accelerations of a floating tree with one loop of each joint type, closed one at a time and in pairs."""
    model, q = closed()
    sets = [(kind,) for kind in LOOP_KINDS] + [("revolute", "spherical"), ("cylindrical", "planar", "gimbal")]
    tau = np.random.default_rng(5).normal(size=model.nv)
    errors, powers = [], []
    for active in sets:
        v = possible_speeds(model, q, active)
        found = model.constrained_dynamics(q, v, tau, active=active)
        expected, _ = dense_solution(model, q, v, tau, active)
        errors.append(float(np.linalg.norm(found.accelerations - expected) / np.linalg.norm(expected)))
        G, gamma = model.constraint_jacobian(q, active=active), model.constraint_bias(q, v, active=active)
        size = np.linalg.norm(G) * np.linalg.norm(found.accelerations)
        powers.append(float(np.max(np.abs(G @ found.accelerations + gamma)) / size))
    yield Check(
        "relative differences",
        errors,
        np.zeros(len(sets)),
        1e-10,
        "rounding times the condition of the loops, up to 1e5",
    )
    yield Check("G a + gamma / size", powers, np.zeros(len(sets)), 1e-12, "rounding")
