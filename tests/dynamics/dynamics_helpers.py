"""Random models that the dynamics are tested on, their states, and derivatives along a motion.

Models are few and shared by all files, since compiling them is what the tests take their time for.
"""

import dataclasses
import functools
import itertools

import numpy as np

from alembert import WORLD, Model, library
from alembert.joints import Friction

EPS = float(np.finfo(float).eps)

# A result of a sweep is a sum of some hundreds of products over at most n bodies in a row; each rounds by
# eps, most errors cancel. 500 eps times the size of the terms is a bound with some room.
ROUNDING = 500 * EPS

TREES = ("plain", "attached", "floating")


@functools.cache
def tree(name: str) -> Model:
    """All joint types of the registry, branched.

    `plain` hangs from the world by several joints; `attached` has springs, friction, armature, rotors;
    `floating` too, and touches the world only by a bare free joint; `parameters` has named parameters.
    """
    if name == "plain":
        return library.random_tree(5, bodies=13)
    if name == "attached":
        return library.random_tree(11, bodies=13, attachments=True)
    if name == "floating":
        models = (
            library.random_tree(seed, bodies=13, floating=True, attachments=True)
            for seed in itertools.count()
        )
        model = next(m for m in models if len(m.children(WORLD)) == 1)
        return model.replace_joint("joint1", spring=None, friction=None, armature=(), rotors=())
    if name == "parameters":
        kinds = ("revolute", "prismatic", "cylindrical", "spherical", "fixed")
        return library.random_tree(3, bodies=6, kinds=kinds, attachments=True, parameters=True)
    raise KeyError(name)


def states(model: Model, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Configurations, speeds and a third vector over the speeds (efforts or accelerations)."""
    rng = np.random.default_rng(seed)
    q = np.array([_away_from_lock(model, rng) for _ in range(count)])
    return q, rng.normal(size=(count, model.nv)), rng.normal(size=(count, model.nv))


def _away_from_lock(model: Model, rng: np.random.Generator) -> np.ndarray:
    """Gimbal joints at least 0.2 rad from their singularity, where accelerations are still well defined."""
    while True:
        q = model.random_configuration(rng)
        for joint in model.joints:
            if joint.type.kind == "gimbal":
                middle = q[model.q_slice(joint.name)][1]
                repeated = joint.type.sequence[0] == joint.type.sequence[2]
                if abs(np.sin(middle) if repeated else np.cos(middle)) < 0.2:
                    break
        else:
            return q


def friction_effort(model: Model, v: np.ndarray) -> np.ndarray:
    """What friction takes, written out from its definition: b v + c v / sqrt(v^2 + s^2)."""
    total = np.zeros_like(v)
    for joint in model.joints:
        friction = joint.friction or Friction()
        s, x = model.v_slice(joint.name), v[..., model.v_slice(joint.name)]
        if friction.viscous:
            total[..., s] += np.array([model.value(b) for b in friction.viscous]) * x
        if friction.coulomb:
            c = np.array([model.value(c) for c in friction.coulomb])
            total[..., s] += c * x / np.sqrt(x * x + model.value(friction.smoothing) ** 2)
    return total


def without_friction(model: Model) -> Model:
    return model.replace(joints=tuple(dataclasses.replace(joint, friction=None) for joint in model.joints))


STEP = 2e-4  # s


def rate_along(function, model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """d/dt function(q, v) when dq/dt = rate(q, v) and dv/dt = a, by the central difference of fourth order.

    With speeds w up to some 10 rad/s its error is (w h)^4 w / 30 = 5e-12 w |f|, and rounding gives 1.5 eps /
    h = 2e-12 |f|: compare with `RATE` times the size of the terms.
    """
    at = lambda k: function(model.integrate(q, k * STEP * v), v + k * STEP * a)  # noqa: E731
    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * STEP)


RATE = 1e-9


def relative(error: np.ndarray, scale: np.ndarray) -> float:
    """The largest |error| / |scale|, norms over the last axis."""
    return float(np.max(np.linalg.norm(error, axis=-1) / np.linalg.norm(scale, axis=-1)))


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
