"""Random models that the dynamics are tested on, their states, and derivatives along a motion.

Models are few and shared by all files, since compiling them is what the tests take their time for.
"""

import dataclasses

import numpy as np

from alembert import Model
from alembert.verify.random_models import (
    EPS,
    RATE,
    ROUNDING,
    TREES,
    friction_effort,
    rate_along,
    relative,
    states,
    tree,
)

__all__ = [
    "EPS", "RATE", "ROUNDING", "TREES", "friction_effort", "observed_order", "rate_along", "relative",
    "runge_kutta", "states", "tree", "without_friction",
]  # fmt: skip


def without_friction(model: Model) -> Model:
    return model.replace(joints=tuple(dataclasses.replace(joint, friction=None) for joint in model.joints))


def runge_kutta(model: Model, q: np.ndarray, v: np.ndarray, *, duration: float, steps: int, tau=None):
    """The state after `duration` by the classical method of order 4 on (q, v), a batch of motions at once.

    Stages leave the manifold of unit quaternions by O(h^2), where dq/dt = rate(q, v) and the accelerations
    are still smooth, so that the order is that of the method; the drift of their length is of the order of
    the other errors.
    """
    h = duration / steps
    effort = tau or (lambda t: np.zeros(model.nv))

    def slope(t, q, v):
        return model.rate(q, v), model.forward_dynamics(q, v, effort(t))

    for k in range(steps):
        t = k * h
        k1 = slope(t, q, v)
        k2 = slope(t + h / 2, q + h / 2 * k1[0], v + h / 2 * k1[1])
        k3 = slope(t + h / 2, q + h / 2 * k2[0], v + h / 2 * k2[1])
        k4 = slope(t + h, q + h * k3[0], v + h * k3[1])
        q = q + h / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0])
        v = v + h / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
    return q, v


def observed_order(drifts: list[float], counts: list[int]) -> float:
    """The slope of log(drift) over log(step)."""
    return float(-np.polyfit(np.log(counts), np.log(drifts), 1)[0])
