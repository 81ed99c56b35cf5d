"""Operations in orbit, one call each: paths from rest to rest, transporters on rails, tethers, rims that deploy.

    path = rest_to_rest([0, 600, 1500], [0.0, 0.0, 8.0])
    transporter(builder, "car", "truss", at=(-20, 0, 2), along=(1, 0, 0), length=40, mass=1500)
    run = al.simulate(model, ..., prescribed={"car": path})

They add bodies, joints and loops to a `ModelBuilder`; what moves by itself is a force or a spring, so that momentum is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.arguments import Numbers, Vector
from alembert.errors import ArgumentError
from alembert.joints import Fixed, Friction, JointType, Limits, Prismatic, Revolute, Spring, Universal
from alembert.model import Box, Inertia, Model, ModelBuilder, Placement, Visual
from alembert.simulate.events import Event, Lock
from alembert.spacecraft.devices import axes_about, positive

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray


def rest_to_rest(times: Sequence[float] | Array, values: Numbers) -> ca.Function:
    """A function of t for `prescribed=`: at rest at each of the times [s], at the values (rows where there are several).

    Between them polynomials of order 5: speeds and accelerations do not jump. Before and after, it stays where it is.
    """
    when = np.atleast_1d(np.asarray(times, dtype=float))
    where = np.asarray(values, dtype=float)
    if not (when.size and where.size and np.isfinite(when).all() and np.isfinite(where).all()):
        raise ArgumentError(
            f"rest_to_rest: times are {when.tolist()} and values {where.tolist()}, expected finite numbers, one or more"
        )
    where = where.reshape(len(where), -1) if where.ndim else where.reshape(1, 1)
    if when.ndim != 1 or len(when) != len(where) or np.any(np.diff(when) <= 0):
        raise ArgumentError(
            f"rest_to_rest: {len(when)} times {when.tolist()} and {len(where)} values, expected as many of both, times "
            "ascending"
        )
    t = ca.SX.sym("t")
    x = ca.SX(where[0])
    for a, b, start, end in zip(where, where[1:], when, when[1:], strict=False):
        if np.any(a != b):
            u = ca.fmin(ca.fmax((t - start) / (end - start), 0.0), 1.0)
            x = x + ca.DM(b - a) * (u**3 * (10 - 15 * u + 6 * u**2))
    return ca.Function("rest_to_rest", [t], [x])


def transporter(
    builder: ModelBuilder,
    name: str,
    parent: str,
    *,
    at: Vector,
    along: Vector,
    length: float,
    mass: float,
    size: Vector = (1.0, 1.0, 1.0),
) -> str:
    """A car on a rail of a body: it begins `at` and runs `length` [m] along a direction; body and joint are called `name`.

    Put an arm, or a payload, on it with `parent=name`; move it with `prescribed={name: rest_to_rest(...)}` or a motor.
    """
    who = f"transporter {name!r}"
    positive(who, length=length, mass=mass)
    builder.body(
        name,
        Inertia.box(mass, tuple(size)),
        joint=Prismatic(tuple(axes_about(along, who)[:, 2])),
        joint_name=name,
        parent=parent,
        placement=tuple(at),
        limits=Limits(lower=(0.0,), upper=(length,)),
        visuals=[Visual(Box(tuple(size)))],
    )
    builder.actuator(f"{name}_motor", name)
    return name


def tether(
    builder: ModelBuilder,
    name: str,
    parent: str,
    *,
    at: Vector,
    along: Vector = (0.0, 0.0, -1.0),
    length: float,
    density: float,
    segments: int = 10,
    damping: float = 0.0,
    end: Inertia | None = None,
) -> str:
    """A tether that does not stretch: `segments` rods in a row on universal joints, out from `at`; gives the last body.

    `density` [kg/m] is its mass per length, `damping` [N m s] that of each joint. Rods are called `name_1`, `name_2`, ...;
    at the far end is the body `name_end` with the inertia `end`, or without one a frame of that name.
    """
    who = f"tether {name!r}"
    positive(who, length=length, density=density)
    if not (isinstance(segments, int) and segments > 0):
        raise ArgumentError(f"{who}: segments is {segments!r}, expected a positive number of them")
    axes = axes_about(along, who)
    step = length / segments
    tip = tuple(step * axes[:, 2])
    where = tuple(at)
    for k in range(1, segments + 1):
        builder.body(
            f"{name}_{k}",
            Inertia.rod(density * step, (0, 0, 0), tip),
            joint=Universal(tuple(axes[:, 0]), tuple(axes[:, 1])),
            joint_name=f"{name}_{k}",
            parent=parent,
            placement=where,
            friction=Friction((damping, damping)) if damping else None,
        )
        parent, where = f"{name}_{k}", tip
    if end is None:
        builder.frame(f"{name}_end", parent, Placement(tip))
        return parent
    builder.body(
        f"{name}_end", end, joint=Fixed(), joint_name=f"{name}_end_joint", parent=parent, placement=tip
    )
    return f"{name}_end"


@dataclass(frozen=True)
class DeployableRim:
    """A rim on a model: the hinges of its tree, and the angle at which each locks; all of them equal and positive."""

    name: str
    hinges: tuple[str, ...]
    angle: float
    length: float

    @property
    def radius(self) -> float:
        """From the middle to a hinge, deployed [m]."""
        return self.length / (2 * math.sin(self.angle / 2))

    def stowed(self, model: Model, q: Any, fold: float) -> Array:
        """q with the rim folded like an accordion: hinges alternate by `fold` [rad] about their deployed angle."""
        if not 0 <= fold < math.pi - self.angle:
            raise ArgumentError(
                f"DeployableRim {self.name!r}: fold is {fold!r}, expected 0 to {math.pi - self.angle:.4f} rad"
            )
        found = np.array(q, dtype=float)
        for k, hinge in enumerate(self.hinges):
            found[model.q_slice(hinge)] = self.angle + (fold if k % 2 == 0 else -fold)
        return found

    def lock_ups(self, model: Model) -> list[Event]:
        """An event for each hinge, which locks it where it comes to its deployed angle; the last three only note it.

        A closed rim is rigid without them: locks there would hold what is held already.
        """

        def gap(hinge: str) -> Callable[[float, Array, Array], float]:
            k = model.q_slice(hinge).start
            return lambda t, q, v: q[k] - self.angle

        actions = [*(Lock(hinge) for hinge in self.hinges[:-3]), *(["note"] * 3)]
        return [
            Event(gap(hinge), f"lock-up of {hinge}", 0, action)
            for hinge, action in zip(self.hinges, actions, strict=True)
        ]


def deployable_rim(
    builder: ModelBuilder,
    name: str,
    parent: str,
    *,
    segments: int = 18,
    length: float,
    mass: float,
    stiffness: float,
    damping: float = 0.0,
    joint: JointType | None = None,
    at: Vector = (0.0, 0.0, 0.0),
) -> DeployableRim:
    """A closed rim of rods, as of a bicycle wheel: springs in the hinges [N m/rad] open it, and each locks when it is open.

    The middle of the first rod is on `parent` by a `joint` (fixed), along x; the others follow on hinges about z, up to the
    other half of the first, which is held to it by the loop `name_closed`. Begin with `rim.stowed(model, q, fold)` and give
    `rim.lock_ups(model)` as events.
    """
    who = f"deployable_rim {name!r}"
    positive(who, length=length, mass=mass, stiffness=stiffness)
    if not (isinstance(segments, int) and segments >= 4 and segments % 2 == 0):
        raise ArgumentError(f"{who}: segments is {segments!r}, expected an even number, 4 or more")
    angle = 2 * math.pi / segments
    half = Inertia.rod(mass / 2, (0, 0, 0), (length / 2, 0, 0))
    builder.body(
        f"{name}_1", half, joint=joint or Fixed(), joint_name=f"{name}_root", parent=parent, placement=tuple(at),
        visuals=_bar(length / 2),
    )  # fmt: skip
    hinges = []
    for k in range(1, segments + 1):
        last = k == segments
        hinges.append(f"{name}_hinge_{k}")
        builder.body(
            f"{name}_{k + 1}" if not last else f"{name}_1_other_half",
            half if last else Inertia.rod(mass, (0, 0, 0), (length, 0, 0)),
            joint=Revolute((0, 0, 1)),
            joint_name=hinges[-1],
            parent=f"{name}_{k}",
            placement=(length / 2 if k == 1 else length, 0.0, 0.0),
            spring=Spring((stiffness,), (angle,)),
            friction=Friction((damping,)) if damping else None,
            visuals=_bar(length / 2 if last else length),
        )
    builder.frame(f"{name}_middle", f"{name}_1_other_half", (length / 2, 0.0, 0.0))
    # the two halves meet, and stay parallel: their angle is the sum of all hinges, a full turn
    builder.loop(f"{name}_closed", Revolute((0, 0, 1)), f"{name}_middle", f"{name}_1")
    builder.coupling(f"{name}_straight", hinges[-1], hinges[:-1], [-1.0] * (segments - 1), 2 * math.pi)
    return DeployableRim(name, tuple(hinges), angle, length)


def _bar(length: float) -> list[Visual]:
    return [Visual(Box((length, 0.03, 0.03)), Placement((length / 2, 0.0, 0.0)))]
