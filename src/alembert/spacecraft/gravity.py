"""The gravity of Earth, Sun and Moon on every body of a model, as forces that compile into the step.

On a body of mass m at r from the Earth's centre, J its inertia about its centre of mass, u = r/|r|, s = u . pole:

    central      f = -mu m r/|r|^3 - 3 mu/(2 |r|^4) ((tr J - 5 u.Ju) u + 2 Ju),    n = 3 mu/|r|^3 u x Ju           (1)
    J2           f = -(3/2) mu m J2 R^2/|r|^4 ((1 - 5 s^2) u + 2 s pole),    n of the field's gradient             (2)
    higher terms f = m times the gradient of `harmonics`, at the first body of each tree that flies                (3)
    Sun, Moon    f = -mu_s m/|d|^3 (r + F(q) s),  d = s - r, q = r.(r - 2 s)/|s|^2 (Battin), there as well          (4)

(3) and (4) take the same acceleration for all bodies of a vehicle, which is 1e-11 m/s^2 off at 10 m from its first
body. In a
world that runs along a reference orbit r0(t) (`Encke`), x = r - r0 is small and nothing is lost:

    g(r) - g(r0) = -mu/|r0|^3 (x - r F/(1 + F)),  F(q) = (1 + q)^(3/2) - 1 = q (3 + 3 q + q^2)/(1 + (1 + q)^(3/2)),
    q = x.(x + 2 r0)/|r0|^2                                                                                        (5)

and g(r0) - r0'' acts on everything alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from alembert.model import Model
from alembert.simulate.elements import ElementForces, Places
from alembert.simulate.forces import field_terms
from alembert.simulate.symmetries import joined_rotors
from alembert.spacecraft import ephemeris
from alembert.spacecraft.frames import EarthAxes
from alembert.spacecraft.harmonics import Harmonics
from alembert.spacecraft.orbits import World, origin_at
from alembert.spatial import Force, Pose

Array = np.ndarray


def growth(q: Any) -> Any:
    """F of (5), without cancellation."""
    return q * (3 + 3 * q + q * q) / (1 + (1 + q) ** 1.5)


def _inverse(r: Any) -> tuple[Any, Any]:
    """1/|r|^2 and 1/|r|. They are positive; without being told so CasADi makes k/x of each product k (1/x)."""
    size = ca.fmax(ca.sqrt(1 / ca.dot(r, r)), 0.0)
    return size * size, size


@dataclass(frozen=True, eq=False)
class OrbitGravity:
    """(1) to (5); made by `Environment.gravity`. It is given to `simulate` as `gravity=`, or among the forces."""

    world: World
    axes: EarthAxes
    parameter: float
    radius: float
    j2: float
    higher: Harmonics | None
    bodies: tuple[str, ...]
    days: float
    """of TDB from J2000 to t = 0"""
    gradient: bool = True

    def check(self, model: Model) -> None:
        pass

    def internal(self, model: Model) -> bool:
        return False

    def central(self, t: Any, x: Any, origin: Any = None) -> tuple[Any, Any, Any]:
        """The place r, 1/|r|, and what the Earth as a point pulls relative to the origin's own acceleration."""
        r0, _, a0 = origin or self.world.motion(t)
        mu = self.parameter
        if not self.world.moves:
            _, size = _inverse(x)
            return x, size, -mu * size * size * size * x
        near, size = _inverse(r0)
        k = mu * near * size
        r = r0 + x
        q = ca.dot(x, x + 2 * r0) * near
        p = (1 + q) * ca.sqrt(1 + q)  # 1 + F
        share = (
            q * (3 + 3 * q + q * q) / (p * (1 + p))
        )  # F/(1 + F); the quotient below has the same denominator
        return r, size * ((1 + q) * (1 + p) / (p * (1 + p))), -k * (x - r * share) - k * r0 - a0  # (5)

    def oblateness(self, r: Any, size: Any) -> Any:
        """(2); size is 1/|r|."""
        u, pole = r * size, ca.DM(self.axes.pole)
        s = ca.dot(u, pole)
        return self._oblate * size**4 * ((1 - 5 * s**2) * u + 2 * s * pole)

    @property
    def _oblate(self) -> float:
        return -1.5 * self.parameter * self.j2 * self.radius**2

    def others(self, t: Any, r: Any) -> Any:
        """(3) and (4)"""
        a = ca.SX.zeros(3)
        if self.higher is not None:
            tilt = ca.DM(self.axes.tilt)
            E = tilt
            if self.higher.orders:
                angle = self.axes.angle + self.axes.rate * t
                c, s = ca.cos(angle), ca.sin(angle)
                E = ca.vertcat(ca.horzcat(c, s, 0), ca.horzcat(-s, c, 0), ca.horzcat(0, 0, 1)) @ tilt
            a = a + E.T @ self.higher.slope(E @ r)
        for name in self.bodies:
            where, mu = getattr(ephemeris, name), getattr(ephemeris, name.upper())
            s = where(self.days + t / 86400.0)
            d = s - r
            F = growth(ca.dot(r, r - 2 * s) / ca.dot(s, s))
            a = a - mu / ca.dot(d, d) ** 1.5 * (r + F * s)
        return a

    def pull(self, t: Any, x: Any) -> Any:
        """The acceleration of a point at x, relative to the world's origin, as an expression."""
        r, size, a = self.central(t, x)
        return a + self.oblateness(r, size) + self.others(t, r)

    @cached_property
    def _point(self) -> ca.Function:
        t, x = ca.SX.sym("t"), ca.SX.sym("x", 3)
        return ca.Function("pull", [t, x], [ca.densify(self.pull(t, x))])

    def acceleration(self, t: float, x: Array) -> Array:
        """Of points at x (..., 3), relative to the world's origin: what accelerometers do not feel."""
        flat = np.asarray(x, dtype=float).reshape(-1, 3)
        found = np.array(self._point(t, flat.T)) if len(flat) else np.zeros((3, 0))
        return found.T.reshape(np.shape(x))

    def _of_shapes(self, at: Places) -> ElementForces:
        """Where bodies have modes: (1) to (4) as a potential of pose and shape, from which the efforts on modes follow.

        Without the torque of J2's gradient, a thousandth of that of (1).
        """
        first = at.records[0].X_W.translation
        origin = r0, _, a0 = origin_at(self.world, at)
        steady = self.others(at.t, self.central(at.t, first, origin)[0]) - a0

        def U(X: Pose, m: ca.SX, c: ca.SX, J: ca.SX) -> ca.SX:
            x = X.translation + X.rotation @ c
            r = r0 + x
            d2 = ca.dot(r, r)
            d = ca.sqrt(d2)
            s = ca.dot(r, ca.DM(self.axes.pole)) / d
            energy = -self.parameter / d - ca.dot(steady, x)
            energy = energy + self.parameter * self.j2 * self.radius**2 / (2 * d2 * d) * (3 * s**2 - 1)
            if not self.gradient:
                return m * energy
            r_B = X.rotation.T @ r
            return m * energy - self.parameter * (ca.trace(J) - 3 * ca.dot(r_B, J @ r_B) / d2) / (2 * d2 * d)

        return ElementForces(efforts=field_terms(at, U).potential_efforts)

    def terms(self, at: Places) -> ElementForces:
        if any(record.node.structure.stiffening for record in at.records):
            return self._of_shapes(at)
        tree, origin = at.model.compute.tree, origin_at(self.world, at)
        roots: dict[int, int] = {}
        common: dict[int, Any] = {}
        wrenches = []
        inertias = joined_rotors(tree, at.records)
        for k, record in enumerate(at.records):
            parent = tree.parents[k]
            roots[k] = k if parent < 0 else roots[parent]
            inertia = inertias[k]
            if inertia is None:
                continue
            m = ca.SX(inertia.mass)
            if m.is_zero():
                continue
            X = record.X_W
            if roots[k] not in common:
                first = at.records[roots[k]].X_W.translation
                common[roots[k]] = self.others(at.t, self.central(at.t, first, origin)[0])
            c = inertia.moment / m
            R_T = ca.SX(X.rotation).T
            r, size, a = self.central(at.t, X.translation + X.rotation @ c, origin)
            f, n = R_T @ (m * (a + common[roots[k]])), ca.SX.zeros(3)
            if self.gradient or self.j2:
                u, pole = R_T @ (r * size), R_T @ ca.DM(self.axes.pole)
                s = ca.dot(u, pole)
                K = self._oblate * size**4
                f = f + m * K * ((1 - 5 * s**2) * u + 2 * s * pole)
            if self.gradient:
                skew = ca.skew(c)
                J = inertia.inertia + m * (skew @ skew)
                Ju, Jp = J @ u, J @ pole
                f = f - 1.5 * self.parameter * size**4 * ((ca.trace(J) - 5 * ca.dot(u, Ju)) * u + 2 * Ju)
                # a term a b' of the field's gradient turns the body by (a x J b + b x J a)/2; that of (2) is
                # K/|r| ((1 - 5 s^2) E + (35 s^2 - 5) u u' - 10 s (p u' + u p') + 2 p p'), p the pole
                K = K * size
                own, mixed = 3 * self.parameter * size**3 + K * (35 * s**2 - 5), -10 * s * K
                n = ca.cross(u, own * Ju + mixed * Jp) + ca.cross(pole, mixed * Ju + 2 * K * Jp)
            wrenches.append((k, Force(n + ca.cross(c, f), f)))
        return ElementForces(efforts=at.body_efforts(wrenches))
