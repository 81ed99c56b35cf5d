"""Random models for tests: any joint type, placement and topology, from a seed.

`example_joint` has an example of every joint type, with random constants. A new joint type needs an entry; a test says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import check_known
from alembert.errors import ArgumentError
from alembert.expression import Expression, Scalar
from alembert.joints import (
    REGISTRY,
    Custom,
    Cylindrical,
    Fixed,
    Free,
    Friction,
    Gimbal,
    JointType,
    Limits,
    Planar,
    Prismatic,
    Revolute,
    Rotor,
    Screw,
    Spherical,
    Spring,
    Translational,
    Universal,
)
from alembert.joints.joint import ANGLE, LENGTH, rotation_about
from alembert.model import WORLD, Inertia, Model, ModelBuilder, Placement
from alembert.spatial import Pose

Axis = tuple[Scalar, ...]
Factory = Callable[
    ["np.random.Generator", Callable[[], Axis]], JointType
]  # a text: NumPy imports it when asked
SEQUENCES = ("zyx", "xyz", "zxz", "yxy", "xzy")

FACTORIES: dict[str, Factory] = {
    "fixed": lambda rng, axis: Fixed(),
    "revolute": lambda rng, axis: Revolute(axis()),
    "prismatic": lambda rng, axis: Prismatic(axis()),
    "screw": lambda rng, axis: Screw(axis(), float(rng.uniform(-0.3, 0.3))),
    "cylindrical": lambda rng, axis: Cylindrical(axis()),
    "universal": lambda rng, axis: Universal(*_apart(rng)),
    "planar": lambda rng, axis: Planar(),
    "spherical": lambda rng, axis: Spherical(),
    "gimbal": lambda rng, axis: Gimbal(str(rng.choice(SEQUENCES))),
    "translational": lambda rng, axis: Translational(),
    "free": lambda rng, axis: Free(),
    "custom": lambda rng, axis: _knee(rng) if rng.random() < 0.5 else _ring(rng),
}


def example_joint(
    kind: str, rng: np.random.Generator | int | None = None, *, axis: Callable[[], Axis] | None = None
) -> JointType:
    """A joint of the kind with random constants; `axis` gives its axes, by default `random_axis`."""
    rng = np.random.default_rng(rng)
    check_known("example_joint: no example of the joint type", kind, FACTORIES)
    return FACTORIES[kind](rng, axis or (lambda: random_axis(rng)))


def random_axis(rng: np.random.Generator) -> tuple[float, ...]:
    """Half of the time a coordinate axis of either sign, otherwise any direction."""
    if rng.random() < 0.5:
        axis = np.zeros(3)
        axis[rng.integers(3)] = rng.choice([-1.0, 1.0])
    else:
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
    return tuple(float(entry) for entry in axis)


def _apart(rng: np.random.Generator) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Two axes that are at least 30 degrees apart."""
    while True:
        a, b = random_axis(rng), random_axis(rng)
        if abs(np.dot(a, b)) < np.cos(np.radians(30)):
            return a, b


def _knee(rng: np.random.Generator) -> Custom:
    """A knee: the shin rolls on an ellipse, so that the axis moves with the angle."""
    a, b, slope = (float(x) for x in rng.uniform(0.1, 0.5, size=3))

    def placement(q: ca.SX) -> Pose:
        R = rotation_about((0.0, 1.0, 0.0), ca.cos(q[0]), ca.sin(q[0]))
        return Pose(R, ca.vertcat(a * ca.sin(q[0]), slope * q[0], b * ca.cos(q[0])))

    return Custom.from_function(placement, [("flexion", ANGLE)])


def _ring(rng: np.random.Generator) -> Custom:
    """A bead that slides on a helix and turns about its wire."""
    radius, pitch = (float(x) for x in rng.uniform(0.2, 0.8, size=2))

    def placement(q: ca.SX) -> Pose:
        angle = q[0] / radius
        R = rotation_about((0.0, 0.0, 1.0), ca.cos(angle), ca.sin(angle))
        p = ca.vertcat(radius * ca.cos(angle), radius * ca.sin(angle), pitch * angle)
        return Pose(R @ rotation_about((0.0, 1.0, 0.0), ca.cos(q[1]), ca.sin(q[1])), p)

    return Custom.from_function(placement, [("distance", LENGTH), ("angle", ANGLE)])


Named = Callable[[str, float], Scalar]
"""Gives a number under a name: the number itself, or a parameter with it as its default."""


def random_tree(
    seed: int = 0,
    *,
    bodies: int = 12,
    kinds: Sequence[str] | None = None,
    floating: bool = False,
    branching: float = 0.4,
    attachments: bool = False,
    parameters: bool = False,
) -> Model:
    """A random tree; equal arguments give equal models.

    Args:
        seed: of the random numbers.
        bodies: how many.
        kinds: joint types to draw from, by default all of the registry. They are dealt out in rounds, so that
        all occur
            once `bodies` is at least their number.
        floating: whether the first joint is a free one; otherwise it is the first that was dealt.
        branching: the chance that a body hangs from any earlier body (or the world) rather than from the last
        one; 0
            makes a chain.
        attachments: whether joints have limits, springs, friction, armature and rotors.
        parameters: whether some masses, centres of mass, placements, axes, springs and frictions, and
        gravity, are
            named parameters.
    """
    kinds = tuple(REGISTRY) if kinds is None else tuple(kinds)
    if bodies < 1 or not kinds:
        raise ArgumentError(
            f"random_tree: {bodies} bodies of the kinds {kinds}, expected at least one of each"
        )
    rng = np.random.default_rng(seed)
    builder = ModelBuilder(f"random_tree_{seed}")

    def named(name: str, value: float) -> Scalar:
        return builder.parameter(name, value) if parameters and rng.random() < 0.4 else value

    deck: list[str] = []
    for k in range(1, bodies + 1):
        deck = deck or list(rng.permutation(kinds))
        kind = "free" if floating and k == 1 else str(deck.pop())
        earlier = [f"body{j}" for j in range(1, k)]
        anywhere = rng.random() < branching
        parent = WORLD if not earlier else (earlier[-1], str(rng.choice([WORLD, *earlier])))[anywhere]
        joint = example_joint(kind, rng, axis=lambda k=k: _axis(rng, named, k))  # type: ignore[misc]
        options = _attachments(rng, named, joint, k) if attachments else {}
        placement = _placement(rng, named, f"place{k}")
        inertia = _inertia(rng, named, k)
        builder.body(
            f"body{k}",
            inertia,
            joint=joint,
            joint_name=f"joint{k}",
            parent=parent,
            placement=placement,
            **options,
        )
        builder.frame(f"tip{k}", f"body{k}", _placement(rng, named, f"tip{k}_place"))
    model = builder.build()
    if parameters:
        model = model.replace(
            gravity=(0.3, -0.2, Expression("-g")), parameters=(*model.parameters, ("g", 9.81))
        )
    return model


def _axis(rng: np.random.Generator, named: Named, k: int) -> Axis:
    tilt = named(f"tilt{k}", float(rng.uniform(-3, 3)))
    if isinstance(tilt, Expression):
        return (
            Expression(f"cos({tilt})"),
            Expression(f"0.6 * sin({tilt})"),
            Expression(f"0.8 * sin({tilt})"),
        )
    return random_axis(rng)


def _placement(rng: np.random.Generator, named: Named, name: str) -> Placement:
    """Now and then along the axes only: quarter turns, zeros in the translation, or nothing."""
    choice = rng.random()
    p = rng.uniform(-0.5, 0.5, size=3)
    if choice < 0.1:
        return Placement()
    if choice < 0.3:
        p[rng.integers(3)] = 0.0
        turns = rng.integers(-1, 3, size=3) * (np.pi / 2)
        return Placement.from_rpy(turns, (named(f"{name}_x", p[0]), p[1], p[2]))
    if choice < 0.5:
        angles = (named(f"{name}_roll", rng.uniform(-1, 1)), 0.3, rng.uniform(-3, 3))
        return Placement.from_rpy(angles, (p[0], named(f"{name}_y", p[1]), p[2]))
    q_wxyz = rng.normal(size=4)
    return Placement((p[0], p[1], named(f"{name}_z", p[2])), tuple(q_wxyz / np.linalg.norm(q_wxyz)))


def _inertia(rng: np.random.Generator, named: Named, k: int) -> Inertia:
    """A uniform cuboid, turned and moved any way."""
    q_wxyz = rng.normal(size=4)
    box = Inertia.box(1.0, rng.uniform(0.1, 0.8, size=3))
    turned = box.at(Placement(quaternion=tuple(q_wxyz / np.linalg.norm(q_wxyz))))
    com = rng.uniform(-0.4, 0.4, size=3)
    mass = named(f"mass{k}", rng.uniform(0.2, 3.0))
    return Inertia(1.0, (named(f"com{k}", com[0]), com[1], com[2]), turned.tensor).scaled(mass)


def _attachments(rng: np.random.Generator, named: Named, joint: JointType, k: int) -> dict[str, Any]:
    """Each kind of attachment on about half of the joints."""
    nv = joint.nv
    some = lambda: bool(rng.random() < 0.5)  # noqa: E731
    found: dict[str, Any] = {}
    if nv == 0:
        return found
    if some():
        reach = [1.0 if unit else np.inf for _, unit in joint.coordinates]  # none on quaternions
        center = joint.neutral()
        speeds = rng.uniform(1.0, 5.0, size=nv)
        lower, upper = (
            tuple(c + sign * r * rng.uniform(0.3, 1.2) for c, r in zip(center, reach, strict=True))
            for sign in (-1, 1)
        )
        found["limits"] = Limits(lower, upper, tuple(speeds), tuple(10 * speeds))
    if some():
        stiffness = (named(f"stiffness{k}", rng.uniform(1.0, 20.0)), *rng.uniform(0.0, 20.0, size=nv - 1))
        rest = joint.integrate(joint.neutral(), rng.uniform(-0.3, 0.3, size=nv)) if some() else ()
        found["spring"] = Spring(stiffness, tuple(rest))
    if some():
        viscous = (named(f"viscous{k}", rng.uniform(0.1, 1.0)), *rng.uniform(0.0, 1.0, size=nv - 1))
        coulomb = tuple(rng.uniform(0.0, 0.5, size=nv)) if some() else ()
        found["friction"] = Friction(viscous, coulomb, smoothing=0.05)
    if some():
        found["armature"] = (named(f"armature{k}", rng.uniform(0.01, 0.3)), *rng.uniform(0.0, 0.3, nv - 1))
    if some():
        ratio, inertia = rng.uniform(-20.0, 20.0), named(f"rotor{k}", rng.uniform(1e-4, 1e-3))
        found["rotors"] = (Rotor(ratio, inertia, random_axis(rng), int(rng.integers(nv))),)
    return found
