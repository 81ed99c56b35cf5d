"""Random configurations, which follow the couplings of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from alembert.expression import evaluate

if TYPE_CHECKING:
    from alembert.model.model import Model

Array = np.ndarray
_TRIES = 1000


def random_configuration(model: Model, rng: np.random.Generator) -> Array:
    """Of samples that leave limits of coupled joints, the one that leaves them least."""
    if not model.couplings:
        return model.space.random(rng)
    best, least = np.zeros(0), np.inf
    for _ in range(_TRIES):
        q = coupled(model, model.space.random(rng))
        beyond = float(np.maximum(model.lower_limits - q, q - model.upper_limits).max(initial=0.0))
        if beyond < least:
            best, least = q, beyond
        if beyond <= 1e-12:
            break
    return best


def coupled(model: Model, q: Array) -> Array:
    """Coordinates that follow the couplings, R q = b: from their masters; where these go round, the nearest."""
    values, count = model.parameter_values, len(model.couplings)
    R, b = np.zeros((count, model.nq)), np.zeros(count)
    at = [model.q_slice(coupling.joint).start for coupling in model.couplings]
    for k, coupling in enumerate(model.couplings):
        b[k] = evaluate(coupling.offset, values)
        R[k, at[k]] = 1.0
        for master, ratio in zip(coupling.masters, coupling.ratios, strict=True):
            R[k, model.q_slice(master).start] -= evaluate(ratio, values)
    q, missing = q.copy(), R @ q - b
    if len(set(at)) == count and abs(np.linalg.det(R[:, at])) > 1e-9:
        q[at] -= np.linalg.solve(R[:, at], missing)
    else:
        q -= np.linalg.lstsq(R, missing, rcond=None)[0]
    return q
