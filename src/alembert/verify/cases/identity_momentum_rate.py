"""An identity on random trees."""

import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    RATE,
    RATE_REASON,
    rate_along,
    relative,
    states,
    times,
    tree,
    wrenches_on,
)


@case(
    source="Newton and Euler: the momentum of a floating tree changes by external wrenches and weight",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 32},
)
def identity_momentum_rate(count: int) -> Items:
    """Rate of momentum: wrenches about the origin + weight at the centre of mass; inner forces have no part in it."""
    model = tree("floating")
    q, v, tau = states(model, count)
    tau[:, :6] = 0.0
    wrenches = wrenches_on(model, count)
    a = model.forward_dynamics(q, v, tau, wrenches=wrenches)
    A = model.momentum_matrix(q, about="world")
    rate = times(A, a) + rate_along(lambda q, v: model.momentum(q, v, about="world"), model, q, v, 0 * v)
    weight = model.mass * np.array(model.gravity)
    total = np.concatenate([np.cross(model.center_of_mass(q), weight), np.tile(weight, (count, 1))], axis=-1)
    for frame, F in wrenches.items():
        X = model.frame_pose(q, frame)
        n, f = times(X.rotation, F[:, :3]), times(X.rotation, F[:, 3:])
        total += np.concatenate([n + np.cross(X.translation, f), f], axis=-1)
    scale = np.linalg.norm(A, axis=(-1, -2))[:, None] * np.linalg.norm(a, axis=-1)[:, None] + np.abs(rate)
    yield Check("residual / terms", relative(rate - total, scale), 0.0, RATE, RATE_REASON)
