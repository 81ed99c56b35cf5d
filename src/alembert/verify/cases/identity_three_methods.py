"""An identity on random trees."""

import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.papers import acc1989
from alembert.verify.random_models import (
    ROUNDING,
    TREES,
    states,
    tree,
)


@case(
    source=acc1989(
        "Fijany, Jain",
        "forward dynamics in O(n), O(n^2) and O(n^3) agree",
    ),
    kind="identity",
    tags=("tree", "random", "acc1989"),
    parameters={"count": 32},
)
def identity_three_methods(count: int) -> Items:
    """Articulated bodies, conjugate gradients and factorisation of the mass matrix."""
    for name in TREES:
        model = tree(name)
        q, v, tau = states(model, count)
        expected = model.forward_dynamics(q, v, tau)
        condition = np.linalg.cond(model.mass_matrix(q))
        for method in ("factorise", "conjugate_gradients"):
            found = model.forward_dynamics(q, v, tau, method=method)
            error = np.linalg.norm(found - expected, axis=-1) / np.linalg.norm(expected, axis=-1)
            reason = "rounding times the condition number of M"
            yield Check(
                f"{name}, {method}: error / condition", np.max(error / condition), 0.0, ROUNDING, reason
            )
