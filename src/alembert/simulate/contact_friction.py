"""Friction and creep where the two sides of a loop slide on each other, under the normal force that the loop gives.

With s the velocity of frame b's point of contact relative to a, tangential there, N the size of the reaction's force and
mu the coefficient of friction, what acts on b is

    f = -mu N s / sqrt(s^2 + speed^2)                                          dry friction             (1)
    f = -F s / |s|,   F = mu N (1 - (1 - x)^3),   x = min(1, creep |s| / (3 mu N travel))               (2)

and its opposite on a, at the same point. (2) is the creep of rolling wheels (Vermeulen, Johnson, Contact of nonspherical
elastic bodies transmitting tangential forces, J. Appl. Mech. 31 (1964) 338, without spin, alike in both directions): for
small creepages |s| / travel the force is creep |s| / travel, for large ones mu N.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca

from alembert.errors import ArgumentError, UnsupportedError
from alembert.expression import Scalar, evaluate, scalar
from alembert.model import LoopJoint, Model
from alembert.model.printing import unknown
from alembert.simulate.elements import ElementForces, Places, numbers
from alembert.spatial import Pose

TINY = 1e-24
"""added to squares under a root, so that its slope at zero is zero [SI]"""


@dataclass(frozen=True)
class ContactFriction:
    """Friction at a `loop` that slides (a point on a line, curve, plane or surface; surfaces that touch), (1).

    `coefficient` is mu; below `speed` [m/s] dry friction fades to zero, so that its equations are smooth: a body at rest on
    a slope creeps at a fraction of it. With `creep` [N], the force per unit of creepage, it is that of a rolling wheel, (2);
    `travel` [m/s] is the speed with which the wheel rolls. The normal force is found together with the friction.
    """

    loop: str
    coefficient: Scalar
    speed: Scalar = 1e-3
    creep: Scalar | None = None
    travel: Scalar | None = None

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in ("coefficient", "speed", "creep", "travel")}
        given = {name: scalar(x, name) for name, x in given.items() if x is not None}
        for name, value in given.items():
            object.__setattr__(self, name, value)
        signs = {
            "coefficient": "zero or more",
            "speed": "positive",
            "creep": "positive",
            "travel": "positive",
        }
        numbers(given, "ContactFriction", signs=signs)
        if (self.creep is None) != (self.travel is None):
            raise ArgumentError(
                f"ContactFriction: creep is {self.creep!r} and travel {self.travel!r}, expected both (the force per unit of "
                "creepage, and the speed of the wheel) or none"
            )

    @property
    def reactions(self) -> tuple[str, ...]:
        return (self.loop,)

    def check(self, model: Model) -> None:
        loop = self._loop(model)
        if _sliding_point(loop, Pose.identity(), {}) is None:
            raise UnsupportedError(
                f"ContactFriction: loop {loop.name!r} is closed by {loop.type.kind!r}, in which no point slides; a "
                "ForceElement(..., reactions=...) takes any law"
            )

    def internal(self, model: Model) -> bool:
        return False

    def _loop(self, model: Model) -> LoopJoint:
        for loop in model.loops:
            if loop.name == self.loop:
                return loop
        raise ArgumentError(unknown("ContactFriction: no loop", self.loop, [x.name for x in model.loops]))

    def terms(self, at: Places) -> ElementForces:
        loop = self._loop(at.model)
        a, b = at.pose(loop.frame_a), at.pose(loop.frame_b)
        values = {name: at.parameters[k] for k, (name, _) in enumerate(at.model.parameters)}
        c = b.rotation @ ca.SX(_sliding_point(loop, a.inverse() @ b, values))
        V_a, V_b = at.velocity(loop.frame_a), at.velocity(loop.frame_b)
        from_a = b.translation + c - a.translation
        s = V_b[3:6] + ca.cross(V_b[0:3], c) - V_a[3:6] - ca.cross(V_a[0:3], from_a)
        force = at.reactions[self.loop][3:6]
        N = ca.sqrt(ca.dot(force, force) + TINY)
        n = b.rotation @ force / N
        s = s - n * ca.dot(n, s)  # what is left there is of the error of a stage
        f = -self._factor(at, N, ca.dot(s, s)) * s
        F_b = ca.vertcat(ca.cross(c, f), f)
        F_a = ca.vertcat(-ca.cross(from_a, f), -f)
        return ElementForces(efforts=at.efforts([(loop.frame_a, F_a), (loop.frame_b, F_b)]))

    def _factor(self, at: Places, N: ca.SX, square: ca.SX) -> ca.SX:
        """Force over relative velocity."""
        most = at.value(self.coefficient) * N
        if self.creep is None or self.travel is None:
            return most / ca.sqrt(square + at.value(self.speed) ** 2)
        slope = at.value(self.creep) / at.value(self.travel)
        size = ca.sqrt(square + TINY)
        x = ca.fmin(1.0, slope * size / (3 * most + TINY))
        # most (1 - (1 - x)^3) / |s|, without a division by small velocities
        return ca.if_else(x < 1.0, slope * (1 - x + x * x / 3), most / size)


def _sliding_point(loop: LoopJoint, X: Pose, values: dict[str, Any]) -> Any:
    find = getattr(loop.type, "sliding_point", None)
    if find is None:
        return None
    if not values:
        return find(X)
    constants = ca.vertcat(*(ca.SX(evaluate(x, values)) for x in loop.type.constants()))
    return loop.type.with_constants(constants).sliding_point(X)
