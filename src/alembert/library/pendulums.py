"""Pendulums in the x-z plane, gravity along -z.

Angles are positive from x towards z, that is about the axis (0, -1, 0).
"""

from __future__ import annotations

from collections.abc import Sequence

from alembert.errors import ArgumentError
from alembert.joints import Friction, Limits, Prismatic, Revolute
from alembert.library.robots import BLUE, ORANGE, STEEL, rod
from alembert.model import WORLD, Box, Inertia, Model, ModelBuilder, Sphere, Visual
from alembert.model.placement import Placement


def chain(
    n: int = 10,
    *,
    axes: Sequence[Sequence[float]] = ((0.0, 0.0, 1.0), (0.0, -1.0, 0.0)),
    length: float = 1.0,
    mass: float = 1.0,
) -> Model:
    """A serial chain of `n` equal links on revolute joints, stretched out along x at q = 0.

    Each link is a solid cylinder of `length` [m] and `mass` [kg], a tenth as thick as long. The joints turn
    about `axes` in turn: by default about z and about -y alternately; one axis makes the chain planar.
    """
    if n < 1 or not axes:
        raise ArgumentError(f"chain: n is {n} and axes {axes!r}, expected at least one of each")
    builder = ModelBuilder(f"chain_{n}")
    for k in range(n):
        axis = tuple(float(entry) for entry in axes[k % len(axes)])
        builder.body(
            f"link{k + 1}",
            Inertia.cylinder(mass, 0.05 * length, length, (1.0, 0.0, 0.0), (length / 2, 0.0, 0.0)),
            joint=Revolute(axis),
            joint_name=f"joint{k + 1}",
            parent=f"link{k}" if k else WORLD,
            placement=(length if k else 0.0, 0.0, 0.0),
            visuals=[rod((0.0, 0.0, 0.0), (length, 0.0, 0.0), 0.05 * length, (BLUE, ORANGE)[k % 2])],
        )
        builder.actuator(f"motor{k + 1}", f"joint{k + 1}")
    builder.frame("tip", f"link{n}", (length, 0.0, 0.0))
    return builder.build()


UPWARD = (0.0, -1.0, 0.0)
"""The axis of a positive turn from x towards z."""


def pendulum(*, mass: float = 1.0, length: float = 1.0, damping: float = 0.0) -> Model:
    """A point mass [kg] on a massless rod [m], hanging down at q = 0; viscous damping [N m s/rad].

    The defaults are the simple pendulum of the IFToMM benchmark, there released at q = -pi/2.
    """
    tip = (0.0, 0.0, -length)
    builder = ModelBuilder("pendulum")
    builder.body(
        "bob",
        Inertia.point(mass, tip),
        joint=Revolute(UPWARD),
        joint_name="pivot",
        friction=Friction(viscous=(damping,)) if damping else None,
        visuals=[
            rod((0.0, 0.0, 0.0), tip, 0.01 * length, STEEL),
            Visual(Sphere(0.06 * length), Placement(tip), ORANGE),
        ],
    )
    builder.frame("tip", "bob", tip)
    builder.actuator("motor", "pivot")
    return builder.build()


def two_link(*, masses: tuple[float, float] = (1.0, 1.0), lengths: tuple[float, float] = (1.0, 1.0)) -> Model:
    """Two uniform rods (masses [kg], lengths [m]), both joints driven.

    q[0] is the angle of the first rod from the horizontal, q[1] that of the second from the first: hanging is
    (-pi/2, 0), upright (pi/2, 0). The problem of Leyendecker et al. 2009 (section 7.1, whose second angle is
    the absolute one) and the planar 2R arm of Sohl and Bobrow 2001 (section 5.1); neither states the data.
    """
    builder = _two_rods("two_link", masses, lengths)
    builder.actuator("shoulder_motor", "shoulder").actuator("elbow_motor", "elbow")
    return builder.build()


def acrobot(*, masses: tuple[float, float] = (1.0, 1.0), lengths: tuple[float, float] = (1.0, 2.0)) -> Model:
    """The two rods with a motor at the elbow only; angles as in `two_link`, upright at (pi/2, 0).

    Sohl and Bobrow 2001 (section 5.2) state no data; the defaults have a second
    rod twice as long as the first, as usual.
    """
    builder = _two_rods("acrobot", masses, lengths)
    builder.actuator("elbow_motor", "elbow")
    return builder.build()


def branched_acrobot(
    *, masses: tuple[float, float] = (1.0, 1.0), lengths: tuple[float, float] = (1.0, 1.0)
) -> Model:
    """An acrobot with two legs: a rod on a passive base joint, and at its end two driven rods.

    `masses` [kg] and `lengths` [m] are those of the trunk and of each leg. q = (base, left hip, right hip),
    the base as in `acrobot`, the hips from the trunk's direction. Sohl and Bobrow 2001 (section 5.3) state no
    data.
    """
    builder = ModelBuilder("branched_acrobot")
    _rod(builder, "trunk", masses[0], lengths[0], "base")
    for side in ("left", "right"):
        _rod(builder, f"{side}_leg", masses[1], lengths[1], f"{side}_hip", "trunk", lengths[0])
        builder.frame(f"{side}_foot", f"{side}_leg", (lengths[1], 0.0, 0.0))
        builder.actuator(f"{side}_motor", f"{side}_hip")
    return builder.build()


def cart_pole(
    *,
    cart_mass: float = 1.0,
    pole_mass: float = 0.3,
    pole_length: float = 0.5,
    track: float = 2.0,
    force: float = 20.0,
) -> Model:
    """A cart [kg] on a track of +-`track` [m], driven by up to `force` [N], with a pole on a free hinge.

    The pole is a point mass [kg] at the end of a massless rod [m]; q = (position, angle from hanging down).
    """
    tip = (0.0, 0.0, -pole_length)
    builder = ModelBuilder("cart_pole")
    reach = track + 0.15
    builder.world(visuals=[rod((-reach, 0.0, -0.07), (reach, 0.0, -0.07), 0.02, STEEL)])
    builder.body(
        "cart",
        Inertia.box(cart_mass, (0.3, 0.2, 0.1)),
        joint=Prismatic((1.0, 0.0, 0.0)),
        joint_name="slide",
        limits=Limits(lower=(-track,), upper=(track,), effort=(force,)),
        visuals=[Visual(Box((0.3, 0.2, 0.1)), color=STEEL)],
    )
    builder.body(
        "pole",
        Inertia.point(pole_mass, tip),
        joint=Revolute(UPWARD),
        joint_name="hinge",
        parent="cart",
        visuals=[rod((0.0, 0.0, 0.0), tip, 0.01), Visual(Sphere(0.04), Placement(tip), ORANGE)],
    )
    builder.frame("tip", "pole", tip)
    builder.actuator("motor", "slide", limits=(-force, force))
    return builder.build()


def _two_rods(name: str, masses: tuple[float, float], lengths: tuple[float, float]) -> ModelBuilder:
    builder = ModelBuilder(name)
    _rod(builder, "upper", masses[0], lengths[0], "shoulder")
    _rod(builder, "lower", masses[1], lengths[1], "elbow", "upper", lengths[0], ORANGE)
    return builder.frame("tip", "lower", (lengths[1], 0.0, 0.0))


def _rod(
    builder: ModelBuilder,
    name: str,
    mass: float,
    length: float,
    joint: str,
    parent: str = "world",
    offset: float = 0.0,
    color: tuple[float, ...] = BLUE,
) -> None:
    """A uniform rod along its x axis, hinged `offset` out on its parent."""
    end = (length, 0.0, 0.0)
    builder.body(
        name,
        Inertia.rod(mass, (0.0, 0.0, 0.0), end),
        joint=Revolute(UPWARD),
        joint_name=joint,
        parent=parent,
        placement=(offset, 0.0, 0.0),
        visuals=[rod((0.0, 0.0, 0.0), end, 0.035 * length, color)],
    )
