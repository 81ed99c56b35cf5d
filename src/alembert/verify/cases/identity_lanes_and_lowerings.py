"""An identity on random trees."""

import numpy as np

from alembert import library
from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    states,
)


@case(
    source="One state alone, in a batch, from the specialised and from the rolled kernel",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 33},
)
def identity_lanes_and_lowerings(count: int) -> Items:
    """A state gives bitwise the same result alone and in any lane of a batch; rolled code agrees to rounding."""
    model = library.arm7()
    q, v, tau = states(model, count)
    batch = model.forward_dynamics(q, v, tau)
    alone = np.array([model.forward_dynamics(*state) for state in zip(q, v, tau, strict=True)])
    yield Check("bits that differ", int(np.sum(batch != alone)), 0, 0, "lanes use the same operations")
    rolled = model.compile("forward_dynamics", batch=True, lowering="rolled")(q, v, tau)
    error = np.max(np.abs(rolled - batch) / np.max(np.abs(batch), axis=-1, keepdims=True))
    yield Check(
        "rolled: relative difference",
        error,
        0.0,
        1e-11,
        "another order of operations; condition number some 1e3",
    )
