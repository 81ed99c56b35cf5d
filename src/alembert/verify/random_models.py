"""Random models over the whole registry of joints, and states of them, shared by cases, tests and the fuzzer."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from alembert import library
from alembert.flexible import random_particles
from alembert.joints import REGISTRY
from alembert.library.random_tree import example_joint
from alembert.model import WORLD, Frame, LoopJoint, Model, Placement
from alembert.model.modal import ModalBody

Array = np.ndarray
EPS = float(np.finfo(float).eps)

# A result of a sweep is a sum of some hundreds of products over at most n bodies in a row; each rounds by
# eps, most errors cancel. 500 eps times the size of the terms is a bound with some room.
ROUNDING = 500 * EPS
ROUNDING_REASON = "rounding: 500 eps of the terms that are summed, over some ten bodies in a row"

TREES = ("plain", "attached", "floating")


@functools.cache
def tree(name: str) -> Model:
    """All joint types of the registry, branched.

    `plain` hangs from the world by several joints; `attached` has springs, friction, armature, rotors; `floating` too,
    and touches the world only by a bare free joint; `parameters` has named parameters.
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


Points = tuple[Array, Array, Array]
"""masses, places and shapes (points x modes x 3)"""


def random_modal_body(
    rng: np.random.Generator,
    points: int = 5,
    modes: int = 2,
    *,
    foreshortening: bool = False,
    size: float = 0.3,
) -> tuple[ModalBody, Points]:
    """A body of random particles, and the particles."""
    body = random_particles(
        rng, points=points, modes=modes, size=size, foreshortening=0.2 if foreshortening else 0.0
    )
    m, x, phi = (np.array([getattr(node, f) for node in body.nodes]) for f in ("mass", "position", "shapes"))
    return body, (m, x, phi)


def with_modes(model: Model, seed: int) -> Model:
    """A third of the bodies, and at least one, as point masses that deform; what hangs on them is at their nodes."""
    rng = np.random.default_rng(seed)
    chosen = {body.name for body in model.bodies if rng.random() < 0.3}
    chosen = chosen or {model.bodies[-1].name}
    bodies = []
    for body in model.bodies:
        if body.name in chosen:
            kind: Any = (
                "consistent" if rng.random() < 0.7 else "inconsistent"
            )  # ruthless bodies keep no energy
            modal, _ = random_modal_body(
                rng, modes=int(rng.integers(1, 4)), foreshortening=bool(rng.random() < 0.7)
            )
            body = dataclasses.replace(body, flexible=dataclasses.replace(modal, stiffening=kind))
        bodies.append(body)

    def placed(part: Any, name: str) -> Any:
        return dataclasses.replace(part, node=f"p{rng.integers(5)}") if name in chosen else part

    return model.replace(
        bodies=tuple(bodies),
        joints=tuple(placed(joint, joint.parent) for joint in model.joints),
        frames=tuple(placed(frame, frame.body) for frame in model.frames),
    )


def states(model: Model, count: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Configurations, speeds and a third vector over the speeds (efforts or accelerations).

    Modes are a tenth: with displacements to second order a mass matrix is positive only for moderate ones.
    """
    rng = np.random.default_rng(seed)
    q = np.array([away_from_lock(model, rng) for _ in range(count)])
    for owner in model.space.of_bodies.values():
        q[:, owner.q] *= 0.1
    return q, rng.normal(size=(count, model.nv)), rng.normal(size=(count, model.nv))


def trees(count: int, names: Sequence[str] = TREES) -> Iterator[tuple[str, Model, Array, Array, Array]]:
    """The trees by name, each with `count` states."""
    for name in names:
        yield name, tree(name), *states(tree(name), count)


def away_from_lock(model: Model, rng: np.random.Generator) -> Array:
    """Gimbal joints at least 0.2 rad from their singularity, where accelerations are still well defined."""
    while True:
        q = model.random_configuration(rng)
        if all(_regular(joint.type, q[model.q_slice(joint.name)]) for joint in model.joints):
            return q


def _regular(joint: Any, q: Array) -> bool:
    if joint.kind != "gimbal":
        return True
    repeated = joint.sequence[0] == joint.sequence[2]
    return bool(abs(np.sin(q[1]) if repeated else np.cos(q[1])) > 0.2)


def friction_effort(model: Model, v: Array) -> Array:
    """What friction and the damping of modes take, from their definitions: b v + c v / sqrt(v^2 + s^2), and C v."""
    total = np.zeros_like(v)
    for joint in model.joints:
        friction = joint.friction
        if friction is None:
            continue
        s, x = model.v_slice(joint.name), v[..., model.v_slice(joint.name)]
        if friction.viscous:
            total[..., s] += np.array([model.value(b) for b in friction.viscous]) * x
        if friction.coulomb:
            c = np.array([model.value(c) for c in friction.coulomb])
            total[..., s] += c * x / np.sqrt(x * x + model.value(friction.smoothing) ** 2)
    for name, owner in model.space.of_bodies.items():
        modal = model.body(name).flexible
        assert modal is not None
        total[..., owner.v] += times(modal.array("damping", model.parameter_values), v[..., owner.v])
    return total


def wrenches_on(model: Model, count: int) -> dict[str, Array]:
    """Random wrenches on some frames of a tree of 13 bodies."""
    rng = np.random.default_rng(count)
    return {frame: rng.normal(size=(count, 6)) for frame in ("tip2", "tip7", "body13", "tip13")}


def relative(error: Array, scale: Array) -> float:
    """The largest |error| / |scale|, norms over the last axis."""
    return float(np.max(np.linalg.norm(error, axis=-1) / np.linalg.norm(scale, axis=-1)))


def times(M: Array, x: Array) -> Array:
    """M x, over a batch of both."""
    product: Array = (M @ x[..., None])[..., 0]
    return product


STEP = 2e-4  # s
RATE = 1e-9
RATE_REASON = "central differences of fourth order, h = 2e-4 s: (w h)^4 w / 30 and 1.5 eps / h of the terms"


def rate_along(function: Any, model: Model, q: Array, v: Array, a: Array) -> Array:
    """d/dt function(q, v) when dq/dt = rate(q, v) and dv/dt = a, by the central difference of fourth order.

    With speeds w up to some 10 rad/s its error is (w h)^4 w / 30 = 5e-12 w |f|, and rounding gives 1.5 eps /
    h = 2e-12 |f|: compare with `RATE` times the size of the terms.
    """

    def at(k: int) -> Array:
        found: Array = function(model.integrate(q, k * STEP * v), v + k * STEP * a)
        return found

    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * STEP)


# --- closed mechanisms ----------------------------------------------------------------------------------------

LOOP_KINDS = tuple(kind for kind in REGISTRY if kind not in ("custom", "free"))
"""joint types that close loops"""


@functools.cache
def closed() -> tuple[Model, Array]:
    """A floating tree with a loop of every kind, and the configuration at which all of them are closed."""
    kinds = ("revolute", "spherical", "prismatic", "universal", "revolute")
    return close(library.random_tree(7, bodies=9, kinds=kinds, floating=True), LOOP_KINDS, seed=4)


def close(tree: Model, kinds: Sequence[str], seed: int = 1, at: Array | None = None) -> tuple[Model, Array]:
    """A tree with loops of the given kinds, between random bodies (or a body and the world), closed `at` a configuration."""
    rng = np.random.default_rng(seed)
    q = tree.random_configuration(rng) if at is None else at
    frames, loops = [], []
    for k, kind in enumerate(kinds):
        joint = example_joint(kind, rng)
        body_a, body_b = _apart(tree, q, rng, ground=k % 4 == 3)
        place = Placement.from_rpy(rng.uniform(-1, 1, 3), tuple(rng.uniform(-0.5, 0.5, 3)))
        q_c = joint.random(rng, np.full(joint.nq, -np.inf), np.full(joint.nq, np.inf))
        X_a = tree.frame_pose(q, body_a) @ place.pose() @ joint.placement(q_c)
        frames += [
            Frame(f"{kind}_a", body_a, place),
            Frame(f"{kind}_b", body_b, Placement.from_pose(tree.frame_pose(q, body_b).inverse() @ X_a)),
        ]
        loops.append(LoopJoint(kind, joint, f"{kind}_a", f"{kind}_b"))
    return tree.replace(frames=(*tree.frames, *frames), loops=tuple(loops)), q


def _apart(tree: Model, q: Array, rng: np.random.Generator, *, ground: bool) -> tuple[str, str]:
    """Two bodies that can move relative to each other in every way."""
    for _ in range(200):
        a, b = (str(name) for name in rng.permutation([body.name for body in tree.bodies])[:2])
        a = WORLD if ground else a
        J_a, J_b = (tree.frame_jacobian(q, name, reference="world") for name in (a, b))
        if np.linalg.svd(J_b - J_a, compute_uv=False)[5] > 0.05:
            return a, b
    raise LookupError("no two bodies of this tree can move freely relative to each other")


def possible_speeds(model: Model, q: Array, active: Sequence[str] | None = None, seed: int = 0) -> Array:
    """Random speeds with G v = 0, by the pseudo-inverse."""
    G = model.constraint_jacobian(q, active=active)
    v = np.random.default_rng(seed).normal(size=model.nv)
    for _ in range(2):
        v = v - np.linalg.lstsq(G, G @ v, rcond=1e-10)[0]
    return v


def dense_solution(
    model: Model, q: Array, v: Array, tau: Array, active: Sequence[str] | None = None, wrenches: Any = None
) -> tuple[Array, Array]:
    """Accelerations and generalised constraint forces from [M G^T; G 0], by least squares."""
    tree = model.constrained_compute.rows.unconstrained
    G, gamma = model.constraint_jacobian(q, active=active), model.constraint_bias(q, v, active=active)
    M = tree.mass_matrix(q)
    m = len(G)
    root = np.linalg.cholesky(M)
    # in the coordinates root^T v the mass matrix is the identity, and the least-squares solution the right one
    H = np.linalg.solve(root, G.T).T
    free = np.linalg.solve(root, tau - tree.bias_forces(q, v, wrenches=wrenches))
    matrix = np.block([[np.eye(model.nv), -H.T], [H, np.zeros((m, m))]])
    x = np.linalg.lstsq(matrix, np.r_[free, -gamma], rcond=1e-11)[0]
    a = np.linalg.solve(root.T, x[: model.nv])
    return a, M @ a + tree.bias_forces(q, v, wrenches=wrenches) - tau


# --- trees for the spatial operators --------------------------------------------------------------------------

OPERATOR_PLAIN = ("chain", "branched", "floating")
"""without armature and rotors, as Rodriguez, Jain and Kreutz-Delgado have it"""
OPERATOR_ALL = (*OPERATOR_PLAIN, "attached", "floating_attached")
_SEEDS: dict[str, dict[str, Any]] = {
    "chain": {"seed": 21, "branching": 0.0},
    "branched": {"seed": 22, "branching": 0.6},
    "floating": {"seed": 23, "branching": 0.5, "floating": True},
    "attached": {"seed": 24, "attachments": True},
    "floating_attached": {"seed": 25, "attachments": True, "floating": True},
}


@functools.cache
def operator_case(name: str) -> SimpleNamespace:
    """A tree with every joint type, its operators and mass matrix at a configuration, and a random state."""
    from alembert.operators import operators

    model = library.random_tree(bodies=13, **_SEEDS[name])
    rng = np.random.default_rng(len(name))
    q = away_from_lock(model, rng)
    v, a, tau = rng.normal(size=(3, model.nv))
    return SimpleNamespace(
        model=model, q=q, v=v, a=a, tau=tau, mass_matrix=model.mass_matrix(q), ops=operators(model, q)
    )


def apart(left: Any, right: Any, *factors: Any) -> float:
    """The largest difference of two operators, relative to the product of the norms of the factors."""
    dense = [np.asarray(x if isinstance(x, np.ndarray) else x.dense()) for x in (left, right)]
    size = float(np.prod([_norm(factor) for factor in factors]))
    return float(np.max(np.abs(dense[0] - dense[1]), initial=0.0)) / size


def _norm(operator: Any) -> float:
    matrix = operator if isinstance(operator, np.ndarray) else operator.dense()
    return float(np.linalg.norm(matrix, 2 if matrix.ndim == 2 else None)) if matrix.size else 0.0


# Both sides of an identity are products of a few operators, each a sum of some hundreds of terms of either
# sign. A product rounds by about eps times the product of the norms of its factors (measured: at most 1.4
# times); 20 leaves room for other machines.
OPERATOR_ROUNDING = 20 * EPS
OPERATOR_REASON = "rounding: 20 eps of the product of the norms of the factors (1.4 eps measured)"
