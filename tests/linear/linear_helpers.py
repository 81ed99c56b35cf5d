"""Models and states that the linear models are tested on."""

import dataclasses
import functools

import numpy as np

from alembert import library
from alembert.joints import REGISTRY

KINDS = tuple(REGISTRY)
GROUPS = {f"{k}": KINDS[k::3] for k in range(3)}
"""All joint types of the registry, four at a time: compiling derivatives of small trees is quick."""


@functools.cache
def tree(group: str):
    """Coulomb friction is smoothed over speeds that a step of the integrators below does not jump over."""
    kinds = GROUPS[group]
    model = library.random_tree(int(group) + 20, bodies=len(kinds) + 1, kinds=kinds, attachments=True)
    smooth = [
        dataclasses.replace(
            joint, friction=joint.friction and dataclasses.replace(joint.friction, smoothing=1.0)
        )
        for joint in model.joints
    ]
    return model.replace(joints=tuple(smooth))


@functools.cache
def tree_with_parameters():
    kinds = ("revolute", "free", "cylindrical", "fixed")
    return library.random_tree(4, bodies=5, kinds=kinds, attachments=True, parameters=True)


def regular(model, rng):
    """A configuration away from gimbal lock."""
    while True:
        q = model.random_configuration(rng)
        for joint in model.joints:
            if joint.type.kind == "gimbal":
                S = np.asarray(joint.type.subspace(q[model.q_slice(joint.name)]), dtype=float)
                if np.linalg.svd(S, compute_uv=False)[-1] < 0.3:
                    break
        else:
            return q


def state(model, seed=0):
    rng = np.random.default_rng(seed)
    return regular(model, rng), rng.normal(size=model.nv), rng.normal(size=model.nv)


STEP = 1e-3


def differentiated(function, size):
    """The Jacobian (..., size) of a function of a small vector at zero, by central differences of fourth order.

    Truncation is h^4/30 = 3e-14 and rounding eps/h = 2e-13 times the derivatives' own growth per unit; smoothed Coulomb
    friction at s = 0.05 grows by 1/s per order, (h/s)^4/30 = 5e-9 of it.
    """
    columns = []
    for e in STEP * np.eye(size):
        near, far = function(e) - function(-e), function(2 * e) - function(-2 * e)
        columns.append((8 * near - far) / (12 * STEP))
    return np.stack(columns, axis=-1)


DIFFERENCES = 1e-6


def close(found, expected, tolerance=DIFFERENCES):
    scale = max(np.abs(expected).max(initial=0.0), 1.0)
    assert np.abs(found - expected).max(initial=0.0) <= tolerance * scale


def runge_kutta(model, q, v, tau, *, duration, steps):
    """The states of a motion under constant or state-dependent efforts, (steps + 1, ...)."""
    h = duration / steps
    effort = tau if callable(tau) else lambda q, v: tau
    found = [(q, v)]

    def slope(q, v):
        return model.rate(q, v), model.forward_dynamics(q, v, effort(q, v))

    for _ in range(steps):
        k1 = slope(q, v)
        k2 = slope(q + h / 2 * k1[0], v + h / 2 * k1[1])
        k3 = slope(q + h / 2 * k2[0], v + h / 2 * k2[1])
        k4 = slope(q + h * k3[0], v + h * k3[1])
        q = q + h / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0])
        v = v + h / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
        found.append((q, v))
    return np.array([q for q, _ in found]), np.array([v for _, v in found])
