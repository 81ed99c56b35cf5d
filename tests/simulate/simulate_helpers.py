"""Small models that between them have every way of moving, and the order of a scheme by regression."""

import functools

import numpy as np

from alembert import (
    Cylindrical,
    Free,
    Friction,
    Gimbal,
    Inertia,
    Model,
    ModelBuilder,
    Placement,
    Planar,
    Prismatic,
    Revolute,
    Rotor,
    Spherical,
    Spring,
    Universal,
)

BOX = Inertia.box(1.0, (0.2, 0.3, 0.5))


@functools.cache
def model(name: str) -> Model:
    """`ball`: spherical and revolute under gravity; `craft`: a free body with a sprung boom, no gravity;
    `bench`: joints whose coordinates add, with springs, friction, a rotor and armature."""
    turned = Placement.from_rpy((0.3, -0.2, 0.5), (0.1, 0.2, -0.3))
    if name == "ball":
        builder = ModelBuilder("ball")
        builder.body(
            "arm", Inertia.box(1.0, (0.2, 0.3, 0.5), (0, 0.1, -0.3)), joint=Spherical(), joint_name="ball"
        )
        builder.body(
            "tip", BOX, joint=Revolute((0.6, 0.8, 0)), joint_name="hinge", parent="arm", placement=turned
        )
    elif name == "craft":
        builder = ModelBuilder("craft", gravity=(0, 0, 0))
        builder.body("bus", Inertia.box(3.0, (0.4, 0.6, 0.9)), joint=Free(), joint_name="base")
        builder.body(
            "boom",
            BOX,
            joint=Spherical(),
            joint_name="root",
            parent="bus",
            placement=turned,
            spring=Spring((6.0, 4.0, 5.0)),
        )
        builder.body("slide", BOX, joint=Prismatic((0, 1, 0)), parent="boom", spring=Spring((20.0,)))
    elif name == "bench":
        builder = ModelBuilder("bench")
        builder.body("a", BOX, joint=Cylindrical((0, 0, 1)), spring=Spring((5.0, 60.0)), armature=(0.1, 0.2))
        builder.body("b", BOX, joint=Universal(), parent="a", placement=turned, friction=Friction((0.2, 0.1)))
        builder.body(
            "c", BOX, joint=Planar(), parent="b", placement=turned, spring=Spring((9.0, 30.0, 30.0)),
            rotors=[Rotor(10.0, 1e-3, (0.0, 0.6, 0.8), 0)],
        )  # fmt: skip
        builder.body(
            "d", BOX, joint=Gimbal("zyx"), parent="c", placement=turned, spring=Spring((8.0, 8.0, 8.0))
        )
    else:
        raise KeyError(name)
    return builder.build()


MODELS = ("ball", "craft", "bench")


def state(name: str, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    m = model(name)
    return m.integrate(m.neutral(), rng.uniform(-0.4, 0.4, m.nv)), rng.uniform(-1.0, 1.0, m.nv)


def distance(m: Model, run, q: np.ndarray, v: np.ndarray) -> float:
    """How far the end of a run is from a state."""
    return float(np.linalg.norm(np.r_[m.difference(q, run.q[-1]), run.v[-1] - v]))


def slope(errors: list[float], steps: list[float]) -> float:
    """The order: the slope of log(error) over log(step)."""
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])
