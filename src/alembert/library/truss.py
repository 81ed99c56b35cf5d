"""A manipulator of truss bays whose members change their length."""

from __future__ import annotations

import math

import numpy as np

from alembert.errors import ArgumentError
from alembert.joints import Free, Limits, Revolute, Spherical
from alembert.library.shapes import BLUE, ORANGE, STEEL, Vector, rod
from alembert.model import WORLD, Inertia, Model, ModelBuilder, Placement, Visual


def truss_arm(bays: int = 5, *, side: float = 1.0, longeron: float = 1.0, density: float = 0.5) -> Model:
    """A variable-geometry truss of `bays` double octahedra along z, on a triangle that stands in the world.

    A bay has a triangle of fixed `side` [m] below and one above, `bayK.top`, and between them a triangle with three
    actuated sides. Twelve longerons of fixed length [m] join each of its nodes with two corners below and two above. Two
    longerons and a side are a face that turns about the side, by the joint `bayK.lower1`, ..., `bayK.upper1`, ...; at the
    nodes two faces meet. So each bay has three degrees of freedom. The nodes are the frames `bayK.node1`, ...: the
    distances between them are the lengths of the actuated members, which have no mass. At the neutral configuration they
    are as long as `side`. `density` is the mass of a metre of member [kg/m].
    """
    height = math.sqrt(max(longeron**2 - side**2 / 4, 0.0))
    out = side / (2 * math.sqrt(3))
    if not (isinstance(bays, int) and bays >= 1 and side > 0 and density > 0 and height > out):
        least = side / math.sqrt(3)
        raise ArgumentError(
            f"truss_arm: {bays!r} bays with side {side!r}, longeron {longeron!r} and density {density!r}; expected at least "
            f"one bay, positive numbers, and longerons that are longer than side / sqrt(3) = {least:.4g}"
        )
    rise = math.sqrt(height**2 - out**2)
    triangle = _triangle(side)
    builder = ModelBuilder(f"truss_arm_{bays}")
    builder.world(visuals=[_member(a, b, STEEL) for a, b in triangle])
    below = WORLD
    for name in (f"bay{bay}" for bay in range(1, bays + 1)):
        top = f"{name}.top"
        _faces(builder, name, "lower", below, side, (out, 0.0, rise), density * longeron)
        sides = [Inertia.rod(density * side, a, b) for a, b in triangle]
        builder.body(
            top,
            sides[0] + sides[1] + sides[2],
            joint=Free(),
            joint_name=f"{name}.top_joint",
            parent=below,
            placement=(0.0, 0.0, 2 * rise),
            visuals=[_member(a, b, STEEL if name != f"bay{bays}" else ORANGE) for a, b in triangle],
        )
        _faces(builder, name, "upper", top, side, (out, 0.0, -rise), density * longeron)
        for k in (1, 2, 3):
            builder.frame(f"{name}.node{k}", f"{name}.lower_face{k}", (out, 0.0, rise))
            builder.frame(f"{name}.end{k}", f"{name}.upper_face{k}", (out, 0.0, -rise))
            builder.loop(f"{name}.pin{k}", Spherical(), f"{name}.node{k}", f"{name}.end{k}")
        below = top
    builder.frame("tip", below)
    return builder.build()


def _faces(
    builder: ModelBuilder, bay: str, half: str, parent: str, side: float, apex: Vector, mass: float
) -> None:
    """Three faces on a triangle: x of a face points away from the axis of the arm, y along its hinge."""
    out, _, rise = apex
    stands = math.atan2(abs(rise), out)
    ends: list[Vector] = [(0.0, s * side / 2, 0.0) for s in (-1, 1)]
    members = [Inertia.rod(mass, end, apex) for end in ends]
    for k in range(3):
        angle = math.pi / 3 + 2 * math.pi * k / 3
        builder.body(
            f"{bay}.{half}_face{k + 1}",
            members[0] + members[1],
            joint=Revolute((0.0, -math.copysign(1.0, rise), 0.0)),
            joint_name=f"{bay}.{half}{k + 1}",
            parent=parent,
            placement=Placement.from_rpy(
                (0.0, 0.0, angle), (out * math.cos(angle), out * math.sin(angle), 0.0)
            ),
            limits=Limits((0.05 - stands,), (math.pi - 0.05 - stands,)),
            visuals=[_member(end, apex, BLUE) for end in ends],
        )


def _triangle(side: float) -> list[tuple[Vector, Vector]]:
    radius = side / math.sqrt(3)
    corners: list[Vector] = [
        (radius * math.cos(a), radius * math.sin(a), 0.0) for a in (0.0, 2 * math.pi / 3, 4 * math.pi / 3)
    ]
    return [(corners[k], corners[(k + 1) % 3]) for k in range(3)]


def _member(a: Vector, b: Vector, color: tuple[float, ...]) -> Visual:
    return rod(a, b, 0.02 * float(np.linalg.norm(np.subtract(b, a))), color)
