"""Closed mechanisms for the tests: a random tree with one loop of every kind, all closed at one configuration, and
published planar ones, as `alembert.verify` has them. Forces on both frames of a loop."""

import numpy as np

from alembert.spatial import Pose
from alembert.verify.mechanisms import Z, four_bars, parallelogram, runge_kutta
from alembert.verify.random_models import EPS, close, closed, dense_solution, possible_speeds
from alembert.verify.random_models import LOOP_KINDS as KINDS

__all__ = [
    "EPS", "KINDS", "Z", "close", "closed", "dense_solution", "four_bars", "integrate", "opposite",
    "parallelogram", "pose_error", "possible_speeds", "tree_of",
]  # fmt: skip


def tree_of(model):
    return (
        model.constrained_compute.rows.unconstrained
    )  # made once: replacing parts takes longer than most calls


def opposite(model, q, loop, F):
    """The wrench on frame a that balances F on frame b."""
    X_a, X_b = (model.frame_pose(q, end) for end in (loop.frame_a, loop.frame_b))
    X = X_a.inverse() @ X_b
    return -np.r_[X.rotation @ F[:3] + np.cross(X.translation, X.rotation @ F[3:]), X.rotation @ F[3:]]


def integrate(model, q, v, duration, steps):
    """The classical Runge-Kutta method, each step followed by a projection."""
    return runge_kutta(model, q, v, duration=duration, steps=steps)


def pose_error(X: Pose, Y: Pose) -> float:
    return float(np.max(np.abs(X.matrix() - Y.matrix())))
