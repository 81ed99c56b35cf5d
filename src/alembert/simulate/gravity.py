"""Gravity fields besides the uniform one, body by body.

Of a centre with gravitational parameter mu, at r from a body's centre of mass, u = r/|r|, J the body's inertia about
its centre of mass (MacCullagh's formula):

    U = -mu m / |r| - mu (tr J - 3 u^T J u) / (2 |r|^3)                                   (1)

The second term makes the gravity-gradient torque 3 mu / |r|^3 u x J u. In axes that fall with a circular orbit of
angular rate n but do not turn, u(t) pointing away from the centre, what is left of the field is, to first order,

    g(x) = -n^2 (x - 3 u u^T x),    U = (n^2/2) integral (x^T x - 3 (u^T x)^2) dm         (2)

Of a flexible body, centre of mass and inertia are those of its deformed shape, and -dU/dq acts on its modes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import casadi as ca
import numpy as np

from alembert.arguments import is_number
from alembert.errors import ArgumentError
from alembert.expression import Scalar, scalar, scalars
from alembert.model import Model
from alembert.simulate.elements import ElementForces, ForceLaw, Places, numbers
from alembert.spatial import Pose, RigidInertia
from alembert.sweeps.modal import Integrals, locked
from alembert.sweeps.node import Record

EARTH = 3.986004418e14
"""gravitational parameter [m^3/s^2], WGS 84"""


@runtime_checkable
class GravityField(ForceLaw, Protocol):
    """A gravity that depends on the place: a force law that also says how points at x (..., 3) fall."""

    def acceleration(self, t: float, x: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class CentralGravity:
    """Inverse-square attraction to a point of the world, (1); `gradient` adds the torque of the field's gradient.

    With a height of h above the centre, positions are rounded to 1e-16 h: near the Earth that is 1e-9 m.
    """

    parameter: Scalar = EARTH
    center: tuple[float, ...] = (0.0, 0.0, 0.0)
    gradient: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameter", scalar(self.parameter, "gravitational parameter"))
        object.__setattr__(self, "center", scalars(self.center, 3, "center of gravity"))
        numbers({"parameter": self.parameter}, "CentralGravity", signs={"parameter": "positive"})

    def check(self, model: Model) -> None:
        pass

    def internal(self, model: Model) -> bool:
        return False

    def acceleration(self, t: float, x: np.ndarray) -> np.ndarray:
        """Of a point at x (..., 3)."""
        r = x - np.array(self.center, dtype=float)
        distance = np.linalg.norm(r, axis=-1, keepdims=True)
        return -float(self.parameter) * r / distance**3  # type: ignore[arg-type]

    def terms(self, at: Places) -> ElementForces:
        mu = at.value(self.parameter)
        center = ca.vertcat(*(at.value(x) for x in self.center))

        def U(X: Pose, m: ca.SX, c: ca.SX, J: ca.SX) -> ca.SX:
            r = X.translation + X.rotation @ c - center
            d2 = ca.dot(r, r)
            d = ca.sqrt(d2)
            energy = -mu * m / d
            if self.gradient:
                r_B = X.rotation.T @ r
                energy = energy - mu * (ca.trace(J) - 3 * ca.dot(r_B, J @ r_B) / d2) / (2 * d2 * d)
            return energy

        return field_terms(at, U)


@dataclass(frozen=True)
class GravityGradient:
    """Free fall along a circular orbit, (2): the world's axes keep their directions, its origin moves along the orbit.

    `rate` is the orbit's angular rate [rad/s], `radial` the direction away from the centre at t = 0 and `normal` that
    of the orbit's angular momentum.
    """

    rate: float
    radial: tuple[float, ...] = (1.0, 0.0, 0.0)
    normal: tuple[float, ...] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        if not (is_number(self.rate) and self.rate > 0):
            raise ArgumentError(f"GravityGradient: rate is {self.rate!r}, expected a positive rate in rad/s")
        u, n = (np.array(scalars(getattr(self, k), 3, k), dtype=float) for k in ("radial", "normal"))
        lengths = np.linalg.norm(u), np.linalg.norm(n)
        if not all(lengths) or abs(u @ n) > 1e-9 * lengths[0] * lengths[1]:
            raise ArgumentError(
                f"GravityGradient: radial {self.radial!r} and normal {self.normal!r}, expected orthogonal directions"
            )
        object.__setattr__(self, "radial", tuple(u / lengths[0]))
        object.__setattr__(self, "normal", tuple(n / lengths[1]))

    def check(self, model: Model) -> None:
        pass

    def internal(self, model: Model) -> bool:
        return False

    def direction(self, t: Any) -> Any:
        """u(t)"""
        along = np.cross(self.normal, self.radial)
        if isinstance(t, ca.SX):
            return ca.cos(self.rate * t) * ca.DM(self.radial) + ca.sin(self.rate * t) * ca.DM(along)
        return np.cos(self.rate * t) * np.array(self.radial) + np.sin(self.rate * t) * along

    def acceleration(self, t: float, x: np.ndarray) -> np.ndarray:
        u = self.direction(t)
        return -(self.rate**2) * (x - 3 * (x @ u)[..., None] * u)

    def terms(self, at: Places) -> ElementForces:
        u = self.direction(at.t)

        def U(X: Pose, m: ca.SX, c: ca.SX, J: ca.SX) -> ca.SX:
            r = X.translation + X.rotation @ c
            second = ca.trace(J) / 2 * ca.SX.eye(3) - J  # integral of x x^T about the centre of mass
            u_B = X.rotation.T @ u
            about = ca.trace(second) - 3 * ca.dot(u_B, second @ u_B)
            return self.rate**2 / 2 * (m * (ca.dot(r, r) - 3 * ca.dot(u, r) ** 2) + about)

        return field_terms(at, U)


def field_terms(at: Places, U: Any) -> ElementForces:
    """The sum over the moving bodies of U(pose, mass, centre of mass, inertia about it)."""
    total: ca.SX = ca.SX(0)
    wrenches, modal = [], ca.SX.zeros(at.model.nv)
    for k, record in enumerate(at.records):
        if record.node.structure.stiffening:
            energy, F, modal[at.speeds(k)] = _deformed_terms(at, U, record)
        else:
            if ca.SX(record.node.inertia.mass).is_zero():
                continue
            energy, F = _rigid_terms(at, U, record, record.node.inertia)
        total = total + energy
        wrenches.append((k, None, F))
    return ElementForces(total, at.node_efforts(wrenches) + modal)


def _rigid_terms(at: Places, U: Any, record: Record, inertia: RigidInertia) -> tuple[ca.SX, ca.SX]:
    """The energy of a body, and the wrench on it."""
    m = ca.SX(inertia.mass)
    c = inertia.moment / m
    skew = ca.skew(c)
    J = inertia.inertia + m * (skew @ skew)
    energy, (F,) = at.gradient_wrenches(lambda X: U(X, m, c, J), [record.X_W])
    return energy, F


def _deformed_terms(at: Places, U: Any, record: Record) -> tuple[ca.SX, ca.SX, ca.SX]:
    """The same of a body with modes, and the efforts on them; of a ruthless body at its undeformed shape."""
    q = ca.SX.sym("q", record.node.nv)
    shaped = Integrals(
        record.node.parts, record.node.nv, "consistent"
    )  # as far as the body has such integrals
    mass = shaped.matrix(q, shaped.first_products(q), shaped.first_moments(q))
    energy, F = _rigid_terms(at, U, record, locked(mass))
    slope, shape = ca.gradient(energy, q), record.q
    if record.node.structure.stiffening == "ruthless":
        energy, shape = energy + ca.dot(slope, record.q), ca.SX(q.numel(), 1)
    found = ca.substitute([energy, F, -slope], [q], [ca.densify(shape)])
    return found[0], found[1], found[2]
