"""An identity on random trees."""

import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    ROUNDING,
    ROUNDING_REASON,
    TREES,
    relative,
    states,
    times,
    tree,
)


@case(
    source="""Sohl, Bobrow, A recursive multibody dynamics and sensitivity algorithm for branched kinematic chains
    (2001), section 3: against the full linear system""",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 32},
)
def identity_hybrid_dynamics(count: int) -> Items:
    """Hybrid dynamics for any choice of prescribed degrees of freedom, another in every state."""
    for name in TREES:
        model = tree(name)
        q, v, tau = states(model, count)
        rng = np.random.default_rng(3)
        given = rng.normal(size=(count, model.nv))
        free = rng.random((count, model.nv)) < np.linspace(0.02, 0.98, count)[:, None]
        a, effort = model.compile("hybrid_dynamics", batch=True)(q, v, tau, given, free.astype(float))
        M, bias = model.mass_matrix(q), model.bias_forces(q, v)
        worst = 0.0
        for k in range(count):
            f = free[k]
            unknown = np.zeros(
                (model.nv, model.nv)
            )  # columns: accelerations of the free, efforts of the others
            unknown[:, f] = M[k][:, f]
            unknown[~f, ~f] = -1.0
            x = np.linalg.solve(unknown, np.where(f, tau[k], 0.0) - bias[k] - M[k][:, ~f] @ given[k][~f])
            expected = np.where(f, x, given[k])
            size = np.linalg.cond(M[k]) * np.linalg.norm(expected)
            worst = max(worst, float(np.linalg.norm(a[k] - expected) / size))
        yield Check(
            f"{name}: error / condition", worst, 0.0, ROUNDING, "rounding times the condition number of M"
        )
        product = times(M, a)
        error = relative(product + bias - effort, np.abs(product) + np.abs(bias))
        yield Check(f"{name}: residual / terms", error, 0.0, ROUNDING, ROUNDING_REASON)
