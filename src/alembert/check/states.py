"""States at which derivatives are compared: special ones, then random ones; on the constraints, where there are any."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from alembert.errors import NumericalError
from alembert.joints import JointType
from alembert.model import Model

Array = np.ndarray
Given = dict[str, Array]
"""The inputs of an algorithm by name, the parameters among them."""
REGULAR = 1e-2
"""how far the minimal set of constraints is from losing its rank at the states that are taken"""


def samples(model: Model, count: int, rng: np.random.Generator) -> Iterable[tuple[str, Given]]:
    """Special states, then random ones; all inputs that any algorithm takes. Where constraints hold, states on them."""
    if model.is_constrained:
        yield from _on_constraints(model, count, rng)
        return

    def random() -> Array:
        return rng.normal(size=model.nv)

    zero = np.zeros(model.nv)
    special = [
        ("neutral, all zero", model.neutral(), zero, zero),
        ("neutral, in motion", model.neutral(), random(), random()),
        ("straight, at rest", _straight(model, rng), zero, random()),
        ("straight, in motion", _straight(model, rng), random(), random()),
        ("random, at rest", _regular(model, rng), zero, random()),
    ]
    if any(joint.type.nq != joint.type.nv for joint in model.joints):
        special += [
            ("half a turn, at rest", _half_turn(model, rng), zero, random()),
            ("half a turn, in motion", _half_turn(model, rng), random(), random()),
        ]
    more = [(f"random {k + 1}", _regular(model, rng), random(), random()) for k in range(count)]
    for label, q, v, x in (*special, *more):
        yield label, _inputs(model, q, v, x, x, rng)


def _inputs(model: Model, q: Array, v: Array, tau: Array, a: Array, rng: np.random.Generator) -> Given:
    free = (rng.random(model.nv) < 0.6).astype(float)
    parameters = np.array([value for _, value in model.parameters])
    wrench = rng.normal(size=6) if np.any(tau) else np.zeros(6)
    given = {"q": q, "v": v, "tau": tau, "a": a, "a_given": tau[::-1], "free": free, "wrench": wrench}
    near = model.integrate(q, 0.3 * tau)  # far from half a turn, where differences jump
    return {**given, "dv": tau, "n": tau, "q0": q, "q1": near, "parameters": parameters}


def _on_constraints(model: Model, count: int, rng: np.random.Generator) -> Iterable[tuple[str, Given]]:
    """Closed, away from configurations where the rank of the constraints changes; speeds and accelerations keep them."""
    guesses: list[tuple[str, Array | None]] = [
        ("near neutral, at rest", model.neutral()),
        ("near neutral, in motion", model.neutral()),
    ]
    guesses += [("random, at rest", None), *((f"random {k + 1}", None) for k in range(count))]
    for label, guess in guesses:
        q = None if guess is None else _closed(model, guess)
        for _ in range(50):
            if q is not None:
                break
            q = _closed(model, _regular(model, rng))
        if q is None:
            raise NumericalError(
                f"check.derivatives: the constraints of model {model.name!r} could not be closed from random configurations"
            )
        E = model.independent_coordinates(q).E
        v = E @ rng.normal(size=E.shape[1]) * ("rest" not in label)
        by = model.independent_coordinates(q, v)
        rate = np.zeros(model.nv) if by.rate is None else by.rate
        a = by.E @ rng.normal(size=by.E.shape[1]) + rate
        yield label, _inputs(model, q, v, rng.normal(size=model.nv), a, rng)


def _closed(model: Model, guess: Array) -> Array | None:
    """The nearest configuration that closes the loops, if it is a regular one."""
    try:
        q = model.assemble(guess).q
    except NumericalError:
        return None
    return q if model.constraint_analysis(q).margin > REGULAR else None


def _straight(model: Model, rng: np.random.Generator) -> Array:
    """Every angle at zero or half a turn, where axes line up; singular joints stay neutral."""
    q = model.neutral()
    for o in model.space:
        turned = rng.integers(0, 2, size=o.type.nq) * np.pi
        angles = np.array([unit == "rad" for _, unit in o.type.coordinates], dtype=bool)
        if o.type.is_vector_space and o.type.singularity(q[o.q] + turned * angles) is None:
            q[o.q] += turned * angles
    return q


def _half_turn(model: Model, rng: np.random.Generator) -> Array:
    """Every attitude half a turn away, about an axis of its own, where the scalar part of its quaternion is zero."""
    turn = np.zeros(model.nv)
    for o in model.space:
        if o.type.nq != o.type.nv:
            turning = np.array([unit == "rad/s" for _, unit in o.type.speeds], dtype=bool)
            axis = rng.normal(size=o.type.nv) * turning
            turn[o.v] = np.pi * axis / np.linalg.norm(axis)
    return model.integrate(model.neutral(), turn)


def _regular(model: Model, rng: np.random.Generator) -> Array:
    """Random, but a tenth of a radian from singular joints: the conditioning there is not what is tested."""
    while True:
        q = model.random_configuration(rng)
        if not any(_near_singular(o.type, q[o.q]) for o in model.space):
            return q


def _near_singular(joint: JointType, q: Array) -> bool:
    if type(joint).singularity is JointType.singularity:
        return False
    S = np.asarray(joint.subspace(q), dtype=float)
    return bool(np.linalg.svd(S, compute_uv=False)[-1] < 0.1)
