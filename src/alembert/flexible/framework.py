"""Frameworks: trusses and frames of bars and beams in space, assembled to finite elements.

A member goes from node to node, its x axis along it. Its displacement is linear along x, its deflection w the cubic that is
exact for loads at the ends; with shear, theta is the rotation of the section and

    w' - theta = gamma,     Phi = 12 EI / (kGA L^2)                              shear deflection over bending      (1)

The mass is taken at Gauss points of these fields (the consistent mass matrix), with four points to a section that has
moments of inertia. Under an axial force N a member has the geometric stiffness

    K_g = N int (v_y' v_y' + v_z' v_z') dx,     N = EA/L (elongation)                                              (2)

Bars carry no moments; their fields are straight lines.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy

from alembert.arguments import unknown
from alembert.errors import ArgumentError, ModelError
from alembert.flexible.beam_shapes import gauss
from alembert.flexible.finite_elements import FiniteElements, MassPoints, point_masses
from alembert.model.inertia import Inertia

Array = np.ndarray
GAUSS = 4
"""points along a beam: products of two cubics are integrated exactly"""
ROUNDING = 1e-12
"""forces under rigid motions of what is assembled here, relative to their terms: some roundings, with room"""


@dataclass(frozen=True)
class CrossSection:
    """What a member is like per length. `rhoI_y`, `rhoI_z`: moments of inertia; `kGA_y`, `kGA_z`: shear (None is rigid)."""

    rhoA: float
    EA: float
    EI_y: float = 0.0
    EI_z: float = 0.0
    GJ: float = 0.0
    rhoI_y: float = 0.0
    rhoI_z: float = 0.0
    kGA_y: float | None = None
    kGA_z: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is None:
                continue
            if not (isinstance(value, int | float | np.number) and np.isfinite(value) and value >= 0):
                raise ModelError(
                    f"cross section: {name} is {value!r}, expected a number that is not negative"
                )
        if not self.EA > 0:
            raise ModelError(f"cross section: EA is {self.EA!r}, expected a positive number")

    @classmethod
    def of(
        cls,
        E: float,
        rho: float,
        A: float,
        *,
        G: float | None = None,
        nu: float = 0.3,
        I_y: float = 0.0,
        I_z: float = 0.0,
        J: float = 0.0,
        shear: tuple[float | None, float | None] = (None, None),
        line_mass: float = 0.0,
    ) -> CrossSection:
        """From a material and a shape. `shear`: factors of the area along y, z; `line_mass` per length at the axis."""
        if G is None and not nu > -1:
            raise ArgumentError(f"cross-section: nu is {nu!r}, expected Poisson's ratio, above -1")
        G = E / (2 * (1 + nu)) if G is None else G
        y, z = (None if k is None else k * G * A for k in shear)
        return cls(rho * A + line_mass, E * A, E * I_y, E * I_z, G * J, rho * I_y, rho * I_z, y, z)

    @classmethod
    def tube(
        cls, E: float, rho: float, radius: float, thickness: float | None = None, *, nu: float = 0.3
    ) -> CrossSection:
        """A round tube of the outer radius, or a rod without `thickness`."""
        inner = 0.0 if thickness is None else radius - thickness
        if not 0 <= inner < radius:
            raise ModelError(f"cross section: a tube of radius {radius!r} and thickness {thickness!r}")
        A, I = np.pi * (radius**2 - inner**2), np.pi / 4 * (radius**4 - inner**4)
        return cls.of(E, rho, A, nu=nu, I_y=I, I_z=I, J=2 * I)

    @classmethod
    def rectangle(cls, E: float, rho: float, y: float, z: float, *, nu: float = 0.3) -> CrossSection:
        """A full rectangle of widths y and z; its torsion is Saint-Venant's, to 4 digits."""
        a, b = max(y, z), min(y, z)
        odd = np.arange(1, 20, 2)
        J = (
            a
            * b**3
            / 3
            * (1 - 192 * b / (np.pi**5 * a) * (np.tanh(odd * np.pi * a / (2 * b)) / odd**5).sum())
        )
        return cls.of(E, rho, y * z, nu=nu, I_y=y * z**3 / 12, I_z=z * y**3 / 12, J=float(J))


@dataclass(frozen=True)
class Member:
    """From node `a` to node `b`; `toward` is a direction in the plane of the member's x and y axes.

    `kind` is "beam"; "bar", which carries forces along it; or "rod", a bar that also twists between nodes with rotations.

    Left out, y is horizontal: at right angles to the member and to the z axis of the model.
    """

    a: Any
    b: Any
    section: CrossSection
    kind: str = "beam"
    toward: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class LumpedMass:
    """A rigid body fixed to a node; its inertia is given in axes of the model, with the node as origin."""

    node: Any
    inertia: Inertia


@dataclass(frozen=True)
class NodeSpring:
    """Stiffness between two nodes at one place, or a node and ground (`b` None): six numbers, x y z rx ry rz."""

    a: Any
    b: Any
    stiffness: tuple[float, ...]


def framework(
    nodes: Mapping[Any, Any],
    members: Sequence[Member],
    *,
    masses: Sequence[LumpedMass] = (),
    springs: Sequence[NodeSpring] = (),
    fixed: Mapping[Any, str] | Sequence[Any] = (),
) -> FiniteElements:
    """Finite elements of a truss or frame: `nodes` by name with their places, in SI units.

    A node has displacements, and rotations where a beam, a spring or a body with inertia needs them. `fixed` nodes, or
    directions ("x y rz") of them, are held to ground and are no unknowns of the result. (A body that flies is not held.)
    """
    names = [str(name) for name in nodes]
    number = {name: k for k, name in enumerate(names)}
    if len(number) < len(names):
        raise ModelError("framework: two nodes have the same name")
    try:
        x = np.array([[float(c) for c in place] for place in nodes.values()]).reshape(len(names), 3)
    except (TypeError, ValueError):
        raise ModelError("framework: the place of a node is expected as three numbers") from None

    def at(what: str, name: Any) -> int:
        if str(name) not in number:
            raise ModelError(unknown(f"framework: {what} has no node", name, names))
        return number[str(name)]

    parts = [
        _Line(k, member, at(f"member {k}", member.a), at(f"member {k}", member.b), x)
        for k, member in enumerate(members)
    ]
    turns = np.zeros((len(names), 3), dtype=bool)
    for part in parts:
        if part.is_beam:
            turns[[part.a, part.b]] = True
    for spring in springs:
        if len(spring.stiffness) != 6 or min(spring.stiffness) < 0:
            raise ModelError(
                f"framework: the spring at {spring.a!r} has {spring.stiffness!r}, expected six numbers >= 0"
            )
        for name in (spring.a, spring.b):
            if name is not None:
                turns[at("a spring", name)] |= np.array(spring.stiffness[3:]) > 0
    for lumped in masses:
        if np.abs(np.asarray(lumped.inertia.matrix(), dtype=float)).max() > 0 or any(lumped.inertia.com):
            turns[at("a mass", lumped.node)] = True
    present = np.hstack([np.ones((len(names), 3), dtype=bool), turns])
    dofs = np.argwhere(present)
    place = np.full((len(names), 6), -1)
    place[present] = np.arange(len(dofs))
    n = len(dofs)

    stiffness, points = _Entries(), _Points()
    for part in parts:
        part.stiffen(stiffness, place)
        part.weigh(points, place, x)
    for spring in springs:
        i = place[at("a spring", spring.a)]
        j = None if spring.b is None else place[at("a spring", spring.b)]
        stiffness.spring(i, j, np.asarray(spring.stiffness, dtype=float))
    for lumped in masses:
        _weigh(lumped.inertia, points, place[at("a mass", lumped.node)], x[at("a mass", lumped.node)])
    K = stiffness.matrix(n)
    mass = points.build(n)
    if not parts:
        raise ModelError("framework: there are no members; expected Member(...), one at least")
    bars = _AxialForces(parts, place, n)
    whole = FiniteElements(mass.mass_matrix(), K, x, dofs, tuple(names), mass, bars, ROUNDING)
    return _grounded(whole, fixed) if fixed else whole


def _grounded(fe: FiniteElements, fixed: Mapping[Any, str] | Sequence[Any]) -> FiniteElements:
    """Without the unknowns that are held."""
    every = fixed if isinstance(fixed, Mapping) else {name: "x y z rx ry rz" for name in fixed}
    held = np.concatenate([fe.unknowns([name], directions) for name, directions in every.items()])
    free, _ = fe.held(held)
    points = fe.points
    kept = MassPoints(
        points.mass, points.position, points.arm, points.displacement[:, free], points.rotation[:, free]
    )
    whole, bars = fe.size, fe.geometric

    def geometric(u: Array) -> scipy.sparse.csr_array:
        full = np.zeros(whole)
        full[free] = u
        return bars(full)[free][:, free]  # type: ignore[misc]

    return dataclasses.replace(
        fe, M=fe.M[free][:, free], K=fe.K[free][:, free], dofs=fe.dofs[free], points=kept, geometric=geometric
    )


class _Entries:
    """A sparse matrix by its parts."""

    def __init__(self) -> None:
        self.rows: list[Array] = []
        self.columns: list[Array] = []
        self.values: list[Array] = []

    def add(self, at: Array, block: Array) -> None:
        r, c = np.meshgrid(at, at, indexing="ij")
        keep = (r >= 0) & (c >= 0)
        self.rows.append(r[keep])
        self.columns.append(c[keep])
        self.values.append(block[keep])

    def spring(self, i: Array, j: Array | None, k: Array) -> None:
        if j is None:
            self.add(i, np.diag(k))
        else:
            self.add(np.concatenate([i, j]), np.block([[np.diag(k), -np.diag(k)], [-np.diag(k), np.diag(k)]]))

    def matrix(self, n: int) -> scipy.sparse.csr_array:
        if not self.rows:
            return scipy.sparse.csr_array((n, n))
        entries = (np.concatenate(each) for each in (self.rows, self.columns))
        return scipy.sparse.csr_array((np.concatenate(self.values), tuple(entries)), shape=(n, n))


class _Points:
    """Mass points by their parts: each has maps from unknowns to the centre's displacement and rotation."""

    def __init__(self) -> None:
        self.mass: list[float] = []
        self.position: list[Array] = []
        self.arm: list[Array] = []
        self.maps: tuple[tuple[list[Array], list[Array], list[Array]], ...] = (([], [], []), ([], [], []))

    def add(
        self, mass: float, position: Array, arms: Array, at: Array, displacement: Array, rotation: Array
    ) -> None:
        """Points of equal mass on the given arms of one centre."""
        first, count = len(self.mass), len(arms)
        self.mass += [mass] * count
        self.position += [position] * count
        self.arm += list(arms)
        keep = at >= 0
        base = 3 * np.arange(first, first + count)[:, None]
        for (rows, columns, values), block in zip(self.maps, (displacement, rotation), strict=True):
            i, k = np.nonzero(block * keep)
            rows.append((base + i).ravel())
            columns.append(np.tile(at[k], count))
            values.append(np.tile(block[i, k], count))

    def build(self, n: int) -> MassPoints:
        p = len(self.mass)

        def whole(parts: tuple[list[Array], ...]) -> scipy.sparse.csr_array:
            r, c, v = (np.concatenate(x) if x else np.zeros(0, dtype=int) for x in parts)
            return scipy.sparse.csr_array((v.astype(float), (r, c)), shape=(3 * p, n))

        shape = (p, 3)
        return MassPoints(
            np.array(self.mass),
            np.reshape(self.position, shape),
            np.reshape(self.arm, shape),
            *(whole(m) for m in self.maps),
        )


class _Line:
    """One member in its own axes: 12 unknowns, x y z rx ry rz of a, then of b."""

    def __init__(self, k: int, member: Member, a: int, b: int, x: Array) -> None:
        if member.kind not in ("beam", "bar", "rod"):
            raise ModelError(f"framework: member {k} is a {member.kind!r}, expected 'beam', 'bar' or 'rod'")
        self.twists = member.kind == "rod"
        self.is_beam, self.section, self.a, self.b = member.kind == "beam", member.section, a, b
        span = x[b] - x[a]
        self.L = float(np.linalg.norm(span))
        if not self.L > 0:
            raise ModelError(f"framework: member {k}, from {member.a!r} to {member.b!r}, has no length")
        s = member.section
        if self.is_beam and not min(s.EI_y, s.EI_z, s.GJ) > 0:
            raise ModelError(
                f"framework: member {k}, a beam, needs EI_y, EI_z and GJ above zero; one without moments is a 'bar'"
            )
        self.axes = _axes(
            k, span / self.L, member.toward
        )  # rows: x, y, z of the member in those of the model
        self.turn = np.kron(np.eye(4), self.axes)

    def at(self, place: Array) -> Array:
        return np.concatenate([place[self.a], place[self.b]])

    def stiffen(self, entries: _Entries, place: Array) -> None:
        s, L = self.section, self.L
        K = np.zeros((12, 12))
        _two(K, (0, 6), s.EA / L)
        if self.is_beam:
            _two(K, (3, 9), s.GJ / L)
            for (v, t, sign), EI, shear in (((1, 5, 1.0), s.EI_z, s.kGA_y), ((2, 4, -1.0), s.EI_y, s.kGA_z)):
                Phi = 0.0 if shear is None else 12 * EI / (shear * L**2)
                at = [v, t, v + 6, t + 6]
                flip = np.array([1.0, sign, 1.0, sign])
                bend = np.array([
                    [12, 6 * L, -12, 6 * L],
                    [6 * L, (4 + Phi) * L**2, -6 * L, (2 - Phi) * L**2],
                    [-12, -6 * L, 12, -6 * L],
                    [6 * L, (2 - Phi) * L**2, -6 * L, (4 + Phi) * L**2],
                ]) * EI / ((1 + Phi) * L**3)  # fmt: skip
                K[np.ix_(at, at)] += flip[:, None] * bend * flip
        elif self.twists and (place[[self.a, self.b], 3:] >= 0).all():
            _two(K, (3, 9), s.GJ / L)
        entries.add(self.at(place), self.turn.T @ K @ self.turn)

    def fields(self, xi: float) -> tuple[Array, Array, Array]:
        return _fields(self.is_beam, self.section, self.L, xi)

    def weigh(self, points: _Points, place: Array, x: Array) -> None:
        s = self.section
        if not s.rhoA > 0:
            return
        at, back = self.at(place), self.axes.T
        nodes, weights = gauss(GAUSS if self.is_beam else 2)
        y, z = (np.sqrt(2 * I / s.rhoA) if self.is_beam else 0.0 for I in (s.rhoI_z, s.rhoI_y))
        own = [(0.0, y, 0.0), (0.0, -y, 0.0), (0.0, 0.0, z), (0.0, 0.0, -z)] if y or z else [(0.0, 0.0, 0.0)]
        arms = np.array(own) @ self.axes
        for xi, w in zip(nodes, weights, strict=True):
            U, T, _ = (back @ field @ self.turn for field in self.fields(float(xi)))
            center = x[self.a] + xi * (x[self.b] - x[self.a])
            points.add(s.rhoA * self.L * w / len(arms), center, arms, at, U, T)

    def prestress(self) -> Array:
        """(2) for N = 1, in the axes of the model."""
        return self.turn.T @ _prestress(self.is_beam, self.section, self.L) @ self.turn

    def pull(self) -> Array:
        """N by the twelve displacements of the ends."""
        row = np.zeros(12)
        row[[0, 6]] = -self.section.EA / self.L, self.section.EA / self.L
        return row @ self.turn


@lru_cache(maxsize=512)
def _fields(is_beam: bool, s: CrossSection, L: float, xi: float) -> tuple[Array, Array, Array]:
    """Displacement, rotation of the section and slopes (d/dx of the displacement) at x = xi L, 3 x 12 each, own axes."""
    U, T, D = (np.zeros((3, 12)) for _ in range(3))
    U[0, [0, 6]] = T[0, [3, 9]] = 1 - xi, xi
    D[0, [0, 6]] = -1 / L, 1 / L
    if not is_beam:
        for v in (1, 2):
            U[v, [v, v + 6]] = 1 - xi, xi
            D[v, [v, v + 6]] = -1 / L, 1 / L
        return U, np.zeros((3, 12)), D
    for v, t, sign, EI, shear in ((1, 5, 1.0, s.EI_z, s.kGA_y), (2, 4, -1.0, s.EI_y, s.kGA_z)):
        P = 0.0 if shear is None else 12 * EI / (shear * L**2)
        at, flip = [v, t, v + 6, t + 6], np.array([1.0, sign, 1.0, sign])
        w = np.array([
            1 - 3 * xi**2 + 2 * xi**3 + P * (1 - xi),
            L * (xi - 2 * xi**2 + xi**3 + P / 2 * (xi - xi**2)),
            3 * xi**2 - 2 * xi**3 + P * xi,
            L * (-(xi**2) + xi**3 + P / 2 * (xi**2 - xi)),
        ]) / (1 + P)  # fmt: skip
        slope = np.array([
            (-6 * xi + 6 * xi**2 - P) / L,
            1 - 4 * xi + 3 * xi**2 + P / 2 * (1 - 2 * xi),
            (6 * xi - 6 * xi**2 + P) / L,
            -2 * xi + 3 * xi**2 + P / 2 * (2 * xi - 1),
        ]) / (1 + P)  # fmt: skip
        turn = np.array([
            6 * (xi**2 - xi) / L,
            1 - 4 * xi + 3 * xi**2 + P * (1 - xi),
            -6 * (xi**2 - xi) / L,
            -2 * xi + 3 * xi**2 + P * xi,
        ]) / (1 + P)  # fmt: skip
        U[v, at], D[v, at] = flip * w, flip * slope
        T[t - 3, at] = sign * flip * turn
    return U, T, D


@lru_cache(maxsize=512)
def _prestress(is_beam: bool, section: CrossSection, L: float) -> Array:
    K = np.zeros((12, 12))
    for xi, w in zip(*gauss(3), strict=True):
        D = _fields(is_beam, section, L, float(xi))[2][1:]
        K += w * L * D.T @ D
    return K


class _AxialForces:
    """The geometric stiffness under displacements: the axial force of every member times (2)."""

    def __init__(self, parts: Sequence[_Line], place: Array, n: int) -> None:
        self.n = n
        pulls, unit = _Entries(), _Entries()
        self.owner: list[Array] = []
        for k, part in enumerate(parts):
            at = part.at(place)
            keep = at >= 0
            pulls.rows.append(np.full(keep.sum(), k))
            pulls.columns.append(at[keep])
            pulls.values.append(part.pull()[keep])
            unit.add(at, part.prestress())
            self.owner.append(np.full(len(unit.values[-1]), k))
        self.members = len(parts)
        self.pull = scipy.sparse.csr_array(
            (np.concatenate(pulls.values), (np.concatenate(pulls.rows), np.concatenate(pulls.columns))),
            shape=(len(parts), n),
        )
        self.at = np.concatenate(unit.rows), np.concatenate(unit.columns)
        self.values, self.owners = np.concatenate(unit.values), np.concatenate(self.owner)

    def gradient(self, a: Array, b: Array) -> Array:
        """g with u . g = a' K_g(u) b for all displacements u."""
        each = self.values * a[self.at[0]] * b[self.at[1]]
        return self.pull.T @ np.bincount(self.owners, weights=each, minlength=self.members)

    def __call__(self, u: Array) -> scipy.sparse.csr_array:
        N = self.pull @ np.asarray(u, dtype=float)
        return scipy.sparse.csr_array((self.values * N[self.owners], self.at), shape=(self.n, self.n))


def _two(K: Array, at: tuple[int, int], k: float) -> None:
    K[np.ix_(at, at)] += k * np.array([[1.0, -1.0], [-1.0, 1.0]])


def _axes(k: int, along: Array, toward: Any) -> Array:
    if toward is None:
        upright = abs(along[2]) > 1 - 1e-6
        toward = (0.0, 1.0, 0.0) if upright else np.cross((0.0, 0.0, 1.0), along)
    z = np.cross(along, np.asarray(toward, dtype=float))
    size = np.linalg.norm(z)
    if not size > 1e-6 * np.linalg.norm(toward):
        raise ModelError(
            f"framework: member {k} lies along its direction toward {tuple(map(float, toward))!r}"
        )
    z = z / size
    return np.array([along, np.cross(z, along), z])


def _weigh(inertia: Inertia, points: _Points, at: Array, place: Array) -> None:
    """A rigid body at a node."""
    mass, arms = point_masses(inertia)
    U, T = np.hstack([np.eye(3), np.zeros((3, 3))]), np.hstack([np.zeros((3, 3)), np.eye(3)])
    points.add(mass, place, arms, at, U, T)
