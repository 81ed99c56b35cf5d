"""Identities of derivatives, regressors and configurations on random trees."""

import numpy as np

from alembert import library
from alembert.check import derivatives as check_derivatives
from alembert.identify import regressor
from alembert.joints import REGISTRY
from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import RATE, RATE_REASON, TREES, rate_along, states, tree


@case(
    source="""Derivatives of inverse, forward and hybrid dynamics (Sohl, Bobrow 2001; Singh, Russell, Wensing
    2022) against automatic differentiation""",
    kind="identity",
    tags=("tree", "sensitivity", "random"),
    parameters={"seed": 4, "samples": 2},
    slow=True,
)
def identity_derivatives(seed: int, samples: int) -> Items:
    """Closed-form derivatives, tangent and adjoint products, on trees that have every joint type between them."""
    kinds = tuple(REGISTRY)
    for part in range(2):
        model = library.random_tree(seed + part, bodies=6, kinds=kinds[part::2], attachments=True)
        found = check_derivatives(
            model,
            ["inverse_dynamics", "forward_dynamics", "hybrid_dynamics"],
            states=samples,
            show=False,
        )
        reason = "relative to the derivative; some hundred operations more than the function, rounding 1e-12"
        yield Check(f"tree {part + 1}: largest relative error", found.largest, 0.0, 1e-9, reason)


@case(
    source="Forces of gravity and springs are the gradient of the potential energy",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 4},
)
def identity_gravity_gradient(count: int) -> Items:
    """The bias at rest is the gradient of the potential energy, in tangent coordinates."""
    for name in TREES:
        model = tree(name)
        q, _, _ = states(model, count)
        v = np.eye(model.nv)[:, None, :]
        gradient = rate_along(lambda q, v, m=model: m.potential_energy(q), model, q, v, 0 * v).T
        bias = model.bias_forces(q, np.zeros(model.nv))
        energy = np.abs(model.potential_energy(q))[
            :, None
        ]  # its rounding is what the differences divide by h
        error = np.max(np.abs(gradient - bias) / (np.abs(bias).max(axis=-1, keepdims=True) + energy))
        yield Check(f"{name}: residual / terms", error, 0.0, RATE, RATE_REASON)


@case(
    source="""Inverse dynamics is linear in masses, moments, inertias, friction, armature (Atkeson, An, Hollerbach
    1986)""",
    kind="identity",
    tags=("tree", "sensitivity", "random"),
    parameters={"count": 20},
)
def identity_regressor(count: int) -> Items:
    """Y(q, v, a) pi = tau."""
    for name in TREES[:2]:
        model = tree(name)
        q, v, a = states(model, count)
        tau = model.inverse_dynamics(q, v, a)
        found = regressor(model, q, v, a)
        error = np.max(np.abs(found.predict() - tau)) / np.max(np.abs(tau))
        yield Check(
            f"{name}: relative difference", error, 0.0, 1e-11, "rounding of sums over some 100 parameters"
        )


@case(
    source="Configurations form a manifold: integrate and difference undo each other",
    kind="identity",
    tags=("tree", "random"),
    parameters={"count": 64},
)
def identity_manifold(count: int) -> Items:
    """Configurations: q + (q' - q) = q', and (q + v) - q = v, for every joint type."""
    model = tree("plain")
    q, v, _ = states(model, count)
    v = 0.9 * v / np.max(np.abs(v))
    moved = model.integrate(q, v)
    reason = "rounding of exponential and logarithm, angles up to 2 pi"
    yield Check("difference of integrate", np.max(np.abs(model.difference(q, moved) - v)), 0.0, 1e-13, reason)
    other = states(model, count, seed=1)[0]
    back = model.integrate(q, model.difference(q, other))
    yield Check("integrate of difference", np.max(np.abs(model.difference(back, other))), 0.0, 1e-12, reason)
