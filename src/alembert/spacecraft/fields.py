"""Fields about the Earth, as expressions that compile into the step: gravity on every body, magnetism, density of the air.

On a body of mass m at r from the Earth's centre, J its inertia about its centre of mass, u = r/|r|, s = u . pole:

    central      f = -mu m r/|r|^3 - 3 mu/(2 |r|^4) ((tr J - 5 u.Ju) u + 2 Ju),    n = 3 mu/|r|^3 u x Ju           (1)
    J2           f = -(3/2) mu m J2 R^2/|r|^4 ((1 - 5 s^2) u + 2 s pole),    n of the field's gradient             (2)
    higher terms f = m times the gradient of `Harmonics`, at the first body of each tree that flies                (3)
    Sun, Moon    f = -mu_s m/|d|^3 (r + F(q) s),  d = s - r, q = r.(r - 2 s)/|s|^2 (Battin), there as well          (4)

(3) and (4) take the same acceleration for all bodies of a vehicle, which is 1e-11 m/s^2 off at 10 m from its first body. In
a world that runs along a reference orbit r0(t) (`Encke`), x = r - r0 is small and nothing is lost:

    g(r) - g(r0) = -mu/|r0|^3 (x - r F/(1 + F)),  F(q) = (1 + q)^(3/2) - 1 = q (3 + 3 q + q^2)/(1 + (1 + q)^(3/2)),
    q = x.(x + 2 r0)/|r0|^2                                                                                        (5)

and g(r0) - r0'' acts on everything alike.

One recursion of spherical harmonics serves gravity and the magnetic field. With x, y, z in axes fixed to the Earth, r their
length and a reference radius R (Cunningham 1970; Montenbruck and Gill, Satellite Orbits, section 3.2):

    V_mm = (2m - 1) (x V - y W) R/r^2,   W_mm = (2m - 1) (x W + y V) R/r^2   of (m - 1, m - 1),   V_00 = R/r, W_00 = 0   (6)
    V_nm = (2n - 1)/(n - m) z R/r^2 V_(n-1)m - (n + m - 1)/(n - m) R^2/r^2 V_(n-2)m,  W likewise                        (7)

and the potential (GM/R) sum (C_nm V_nm + S_nm W_nm) has the gradient of `slope`. Coefficients are unnormalised inside;
tables are read as they are published.

The magnetic field is that of IGRF-14, of a degree from 1 (a tilted dipole, within 10 to 30 % of the field near the Earth)
to 13 (within 10 nT of the main field; what currents above the ground add is 20 nT on a quiet day, up to 1000 nT in a
storm).

The density of the air is exponential or tabulated over the height alone. That leaves out the day side (a factor of 2 to 6 at
400 km), the activity of the Sun (a factor of 10) and storms. A table for given activity can be made with MSIS
(`msis_profile`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.arguments import Numbers, whole
from alembert.errors import ArgumentError, UnsupportedError
from alembert.model import Model
from alembert.simulate.elements import ElementForces, Places
from alembert.simulate.forces import field_terms
from alembert.simulate.symmetries import joined_rotors
from alembert.spacecraft import astronomy
from alembert.spacecraft.astronomy import EQUATOR, FLATTENING, EarthAxes, Epoch
from alembert.spacecraft.orbits import World, origin_at
from alembert.spatial import Force, Pose

if TYPE_CHECKING:
    from alembert.spacecraft.environment import Environment

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Harmonics:
    """Unnormalised coefficients C and S, (N + 1, N + 1), with the scale `parameter` and the `radius` they belong to."""

    parameter: float
    radius: float
    C: Array
    S: Array
    source: str = ""

    @property
    def degree(self) -> int:
        return len(self.C) - 1

    def truncated(self, degree: int, order: int, *, without: tuple[tuple[int, int], ...] = ()) -> Harmonics:
        """Up to a degree and an order, without some terms."""
        if not (0 <= order <= degree):
            raise ArgumentError(
                f"harmonics: degree {degree} and order {order}, expected 0 <= order <= degree"
            )
        if degree > self.degree:
            raise ArgumentError(
                f"harmonics: degree {degree} is asked for, the coefficients of "
                f"{self.source or 'the table'} go to {self.degree}"
            )
        C, S = self.C[: degree + 1, : degree + 1].copy(), self.S[: degree + 1, : degree + 1].copy()
        C[:, order + 1 :], S[:, order + 1 :] = 0.0, 0.0
        for n, m in without:
            if n <= degree:
                C[n, m] = S[n, m] = 0.0
        return Harmonics(self.parameter, self.radius, C, S, self.source)

    @property
    def orders(self) -> int:
        """The highest order that occurs."""
        used = np.flatnonzero(np.any((self.C != 0) | (self.S != 0), axis=0))
        return int(used[-1]) if len(used) else 0

    @property
    def is_zero(self) -> bool:
        return not (np.any(self.C) or np.any(self.S))

    def slope(self, position: Numbers) -> Any:
        """The gradient of the potential at an Earth-fixed position, an expression or numbers (3)."""
        if self.is_zero:
            return ca.DM.zeros(3)
        degree, orders, R = self.degree, self.orders, self.radius
        x, y, z = position[0], position[1], position[2]
        square = x * x + y * y + z * z
        k = R / square
        xs, ys, zs, rho = x * k, y * k, z * k, R * k
        V: dict[tuple[int, int], Any] = {(0, 0): R / ca.sqrt(square)}
        W: dict[tuple[int, int], Any] = {(0, 0): 0.0}
        for m in range(orders + 2):
            if m:
                v, w = V[m - 1, m - 1], W[m - 1, m - 1]
                V[m, m] = (2 * m - 1) * (xs * v - ys * w)  # (6)
                W[m, m] = (2 * m - 1) * (xs * w + ys * v)
            for n in range(m + 1, degree + 2):  # (7)
                a, b = (2 * n - 1) / (n - m), (n + m - 1) / (n - m)
                for T in (V, W):
                    T[n, m] = a * zs * T[n - 1, m] - (b * rho * T[n - 2, m] if n - 2 >= m else 0)
        g: list[Any] = [0.0, 0.0, 0.0]
        for n in range(degree + 1):
            for m in range(min(n, orders) + 1):
                C, S = float(self.C[n, m]), float(self.S[n, m])
                if C == 0 and S == 0:
                    continue
                if m == 0:
                    g[0] -= C * V[n + 1, 1]
                    g[1] -= C * W[n + 1, 1]
                else:
                    f = (n - m + 2) * (n - m + 1)
                    g[0] += (-C * V[n + 1, m + 1] - S * W[n + 1, m + 1]) / 2
                    g[0] += f * (C * V[n + 1, m - 1] + S * W[n + 1, m - 1]) / 2
                    g[1] += (-C * W[n + 1, m + 1] + S * V[n + 1, m + 1]) / 2
                    g[1] += f * (-C * W[n + 1, m - 1] + S * V[n + 1, m - 1]) / 2
                g[2] += (n - m + 1) * (-C * V[n + 1, m] - S * W[n + 1, m])
        return self.parameter / R**2 * ca.vertcat(*g)


def zonal(parameter: float, radius: float, J: dict[int, float]) -> Harmonics:
    """From J2, J3, ... by degree."""
    degree = max(J)
    C = np.zeros((degree + 1, degree + 1))
    for n, value in J.items():
        C[n, 0] = -value
    return Harmonics(parameter, radius, C, np.zeros_like(C), "the zonal terms given")


def _rows(name: str) -> list[list[str]]:
    text = resources.files("alembert.spacecraft").joinpath("data", name).read_text(encoding="utf-8")
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


@functools.cache
def egm2008() -> Harmonics:
    """The gravity of the Earth to degree and order 20, EGM2008 (Pavlis et al. 2012), tide free.

    What is left out above degree 20 accelerates a satellite at 400 km by some 1e-5 m/s^2.
    """
    C, S = np.zeros((21, 21)), np.zeros((21, 21))
    for n_text, m_text, c, s in _rows("egm2008.txt"):
        n, m = int(n_text), int(m_text)
        scale = math.sqrt((2 - (m == 0)) * (2 * n + 1) * math.factorial(n - m) / math.factorial(n + m))
        C[n, m], S[n, m] = scale * float(c), scale * float(s)
    return Harmonics(3.986004415e14, 6378136.3, C, S, "EGM2008")


def igrf(year: float, degree: int = 13) -> Harmonics:
    """The magnetic field of the Earth at a year, IGRF-14 (IAGA 2024); the field in tesla is minus the `slope`.

    Of the main field the model is good to some 10 nT; currents in the ionosphere and magnetosphere, 20 to 1000 nT,
    are not in it.
    """
    head, *rows = _rows("igrf14.txt")
    years = np.array([float(x) for x in head[2:]])
    if not years[0] <= year <= years[-1]:
        raise ArgumentError(
            f"igrf: {year:.1f} is outside {years[0]:.0f} to {years[-1]:.0f}, for which there are coefficients"
        )
    whole("igrf", "degree", degree, "1 (a dipole) to 13", most=13)
    C, S = np.zeros((degree + 1, degree + 1)), np.zeros((degree + 1, degree + 1))
    for row in rows:
        n, m = int(row[0]), int(row[1])
        if n <= degree:
            scale = math.sqrt((2 - (m == 0)) * math.factorial(n - abs(m)) / math.factorial(n + abs(m)))
            value = 1e-9 * scale * float(np.interp(year, years, [float(x) for x in row[2:]]))
            (S if m < 0 else C)[n, abs(m)] = value
    radius = 6371200.0
    return Harmonics(radius**2, radius, C, S, "IGRF-14")


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
            E = self.axes.turned(t) if self.higher.orders else ca.DM(self.axes.tilt)
            a = a + E.T @ self.higher.slope(E @ r)
        for name in self.bodies:
            where, mu = getattr(astronomy, name), getattr(astronomy, name.upper())
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

    def _common(self, at: Places, origin: Any) -> Callable[[int], Any]:
        """(3) and (4) on a body, which are those at the first body of its vehicle."""
        parents, roots = at.model.compute.tree.parents, list[int]()
        for k, parent in enumerate(parents):
            roots.append(k if parent < 0 else roots[parent])

        @functools.cache
        def found(k: int) -> Any:
            return self.others(at.t, self.central(at.t, at.records[k].X_W.translation, origin)[0])

        return lambda k: found(roots[k])

    def _of_shapes(self, at: Places) -> ElementForces:
        """Where bodies have modes: (1) to (4) as a potential of pose and shape, from which the efforts on modes follow.

        Without the torque of J2's gradient, a thousandth of that of (1).
        """
        origin = r0, _, a0 = origin_at(self.world, at)
        common = self._common(at, origin)

        def of(k: int) -> Any:
            steady = common(k) - a0

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
                return m * energy - self.parameter * (ca.trace(J) - 3 * ca.dot(r_B, J @ r_B) / d2) / (
                    2 * d2 * d
                )

            return U

        return ElementForces(efforts=field_terms(at, of).potential_efforts)

    def terms(self, at: Places) -> ElementForces:
        if any(record.node.structure.stiffening for record in at.records):
            return self._of_shapes(at)
        tree, origin = at.model.compute.tree, origin_at(self.world, at)
        common = self._common(at, origin)
        wrenches = []
        inertias = joined_rotors(tree, at.records)
        for k, record in enumerate(at.records):
            inertia = inertias[k]
            if inertia is None:
                continue
            m = ca.SX(inertia.mass)
            if m.is_zero():
                continue
            X = record.X_W
            c = inertia.moment / m
            R_T = ca.SX(X.rotation).T
            r, size, a = self.central(at.t, X.translation + X.rotation @ c, origin)
            f, n = R_T @ (m * (a + common(k))), ca.SX.zeros(3)
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


@dataclass(frozen=True, eq=False)
class MagneticField:
    """Made by `Environment.magnetic_field`."""

    environment: Environment
    harmonics: Harmonics

    def inertial(self, t: Any, r: Any) -> Any:
        """The field [T] at r from the Earth's centre, in inertial axes, as an expression."""
        E = self.environment.fixed(t)
        return -(E.T @ self.harmonics.slope(E @ r))

    @cached_property
    def _numbers(self) -> ca.Function:
        t, x = ca.SX.sym("t"), ca.SX.sym("x", 3)
        return ca.Function("field", [t, x], [self.inertial(t, self.environment.place(t, x))])

    def at(self, t: float, x: Any) -> Array:
        """The field [T] at a position in the world (3), as numbers in inertial axes."""
        return np.array(self._numbers(t, np.asarray(x, dtype=float)), dtype=float).ravel()


# --- density of the air ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exponential:
    """density exp(-(height - reference)/scale): [kg/m^3], [m], [m]. A good fit over some 50 km only."""

    density: float
    reference: float
    scale: float

    def __post_init__(self) -> None:
        for name in ("density", "scale"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ArgumentError(
                    f"Exponential: {name} is {getattr(self, name)!r}, expected a positive number"
                )

    def at(self, height: Any) -> Any:
        """Density at a height, a number or an expression."""
        return self.density * ca.exp((self.reference - height) * (1 / self.scale))


@dataclass(frozen=True, eq=False)
class Profile:
    """Densities [kg/m^3] at heights [m], ascending; the logarithm is linear between them and goes on beyond the ends."""

    heights: Numbers
    densities: Numbers

    def __post_init__(self) -> None:
        h, rho = (np.array(x, dtype=float) for x in (self.heights, self.densities))
        if h.ndim != 1 or h.shape != rho.shape or len(h) < 2 or np.any(np.diff(h) <= 0):
            raise ArgumentError("Profile: heights, expected two or more, ascending, with a density for each")
        if not np.all(rho > 0):
            raise ArgumentError("Profile: densities, expected positive numbers")
        object.__setattr__(self, "heights", h)
        object.__setattr__(self, "densities", rho)

    def at(self, height: Any) -> Any:
        """Density at a height, a number or an expression."""
        h, rho = self.heights, np.log(self.densities)
        slopes = np.diff(rho) / np.diff(h)
        found = rho[0] + slopes[0] * (height - h[0])
        for k in range(1, len(slopes)):  # a kink at each node: no branches, and slopes are right everywhere
            found = found + (slopes[k] - slopes[k - 1]) * ca.fmax(height - h[k], 0)
        return ca.exp(found)


Atmosphere = Exponential | Profile
_CIRA72 = (
    (100, 5.297e-7), (110, 9.661e-8), (120, 2.438e-8), (130, 8.484e-9), (140, 3.845e-9), (150, 2.070e-9),
    (180, 5.464e-10), (200, 2.789e-10), (250, 7.248e-11), (300, 2.418e-11), (350, 9.518e-12), (400, 3.725e-12),
    (450, 1.585e-12), (500, 6.967e-13), (600, 1.454e-13), (700, 3.614e-14), (800, 1.170e-14), (900, 5.245e-15),
    (1000, 3.019e-15),
)  # fmt: skip


def cira72() -> Profile:
    """Mean density from 100 to 1000 km, CIRA-72 as tabulated by Vallado (Fundamentals of Astrodynamics, table 8-4)."""
    return Profile([1e3 * h for h, _ in _CIRA72], [rho for _, rho in _CIRA72])


def msis_profile(
    epoch: Epoch,
    *,
    f107: float,
    ap: float,
    latitude_deg: float = 0.0,
    longitude_deg: float = 0.0,
    heights: Numbers = None,
) -> Profile:
    """A profile by NRLMSIS 2.1 for a given solar flux and magnetic activity; needs `pymsis` (pip install
    alembert[space]).
    """
    try:
        import pymsis
    except ImportError:
        raise UnsupportedError("msis_profile needs the package pymsis: pip install alembert[space]") from None
    h = np.arange(100e3, 1001e3, 25e3) if heights is None else np.asarray(heights, dtype=float)
    found = pymsis.calculate(
        np.datetime64(epoch.utc.removesuffix("Z")),
        longitude_deg,
        latitude_deg,
        h / 1e3,
        f107s=[f107],
        f107as=[f107],
        aps=[[ap] * 7],
    )
    return Profile(h, np.asarray(found, dtype=float).reshape(len(h), -1)[:, 0])


def height_over_ellipsoid(square: Any, north: Any) -> Any:
    """Along the radius, as an expression; within 50 m of the geodetic height up to 1000 km.

    Of a place by the square of its distance from the Earth's centre, and its distance from the equator's plane.
    """
    e2 = FLATTENING * (2 - FLATTENING)
    # the radius of the ellipse, a sqrt((1 - e^2)/(1 - e^2 (1 - s^2))), with s = north/d
    return ca.sqrt(square) - EQUATOR * ca.sqrt((1 - e2) * square / ((1 - e2) * square + e2 * north**2))
