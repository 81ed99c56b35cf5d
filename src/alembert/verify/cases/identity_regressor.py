"""An identity on random trees."""

import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    TREES,
    states,
    tree,
)


@case(
    source="""Inverse dynamics is linear in masses, moments, inertias, friction, armature (Atkeson, An, Hollerbach
    1986)""",
    kind="identity",
    tags=("tree", "sensitivity", "random"),
    parameters={"count": 20},
)
def identity_regressor(count: int) -> Items:
    """Y(q, v, a) pi = tau."""
    from alembert.identify import regressor

    for name in TREES[:2]:
        model = tree(name)
        q, v, a = states(model, count)
        tau = model.inverse_dynamics(q, v, a)
        found = regressor(model, q, v, a)
        error = np.max(np.abs(found.predict() - tau)) / np.max(np.abs(tau))
        yield Check(
            f"{name}: relative difference", error, 0.0, 1e-11, "rounding of sums over some 100 parameters"
        )
