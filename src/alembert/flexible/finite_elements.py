"""Linear finite-element models of structures: sparse mass and stiffness, and what each of their unknowns is.

    M u'' + K u = f                                                                                            (1)

An unknown is a displacement x, y, z or a rotation rx, ry, rz of a node, in the axes of the model. A motion of the whole as a
rigid body about the origin is u = R (t, r), with

    R = 1 for displacements,   r x position for turns,   r for rotations,                                      (2)

so that K R = 0 for a structure that nothing holds, and R' M R is its mass matrix as a rigid body: mass, centre and inertia
tensor are read off it. Where the mass is, as far as integrals of third order need it, is told by points: each moves with
u_c + theta x d, a centre that is displaced, and an arm d that turns with it. Elements made here have points whose sums are
M; for matrices from elsewhere the rows of M are added up at the nodes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert.arguments import Numbers, check_known, unknown
from alembert.errors import ArgumentError, ModelError, NumericalError
from alembert.model.inertia import Inertia
from alembert.spatial.arrays import skew

if TYPE_CHECKING:
    from alembert.flexible.structure_response import StructureReport

Array = np.ndarray
DIRECTIONS = ("x", "y", "z", "rx", "ry", "rz")
DENSE = 400
"""unknowns up to which eigenvalue problems are solved with dense matrices"""
SYMMETRIC = 1e-8
"""how far M and K may be from symmetric, relative to their largest entries: printed digits"""
COARSE = 1e-3
"""how far an entry may be above what its diagonal allows: tables are printed with four digits"""


@dataclass(frozen=True)
class UnitSystem:
    """Metres, kilograms and seconds that the units of a file are."""

    length: float = 1.0
    mass: float = 1.0
    time: float = 1.0


UNITS = {
    "SI": UnitSystem(),
    "mm-t-s": UnitSystem(length=1e-3, mass=1e3),
    "mm-kg-s": UnitSystem(length=1e-3),
    "mm-kg-ms": UnitSystem(length=1e-3, time=1e-3),
    "in-lbf-s": UnitSystem(length=0.0254, mass=0.45359237 * 9.80665 / 0.0254),
    "ft-lbf-s": UnitSystem(length=0.3048, mass=0.45359237 * 9.80665 / 0.3048),
}
"""usual systems by name; with lbf the mass is that which a pound of force accelerates by an inch or foot per s^2"""


@dataclass(frozen=True, eq=False)
class MassPoints:
    """Points with mass: `position` of the undeformed centre, `arm` d from it; centres move by `displacement` @ u and turn by
    `rotation` @ u (three rows to a point)."""

    mass: Array
    position: Array
    arm: Array
    displacement: scipy.sparse.csr_array
    rotation: scipy.sparse.csr_array

    @property
    def place(self) -> Array:
        """Where the points are in the undeformed structure."""
        return self.position + self.arm

    def shapes(self, u: Array) -> tuple[Array, Array]:
        """Displacements of the points, and rotations of their arms, for the columns of u: points x columns x 3 each."""
        moved, turned = (
            (A @ u).reshape(len(self.mass), 3, -1).swapaxes(1, 2) for A in (self.displacement, self.rotation)
        )
        return moved + np.cross(turned, self.arm[:, None, :]), turned

    def load(self, acceleration: Array) -> Array:
        """Nodal forces of the masses under a field of accelerations at the points (points x 3)."""
        f = self.mass[:, None] * acceleration
        return self.displacement.T @ f.ravel() + self.rotation.T @ np.cross(self.arm, f).ravel()

    def mass_matrix(self) -> scipy.sparse.csr_array:
        """The sum of m (u_c + theta x d)' (u_c + theta x d)."""
        crossed = _cross_rows(self.arm) @ self.rotation
        N = self.displacement - crossed
        return (N.T @ scipy.sparse.diags_array(np.repeat(self.mass, 3)) @ N).tocsr()


@dataclass(frozen=True, eq=False, repr=False)
class FiniteElements:
    """(1) in SI units. `dofs` has for each unknown the node (its number in `positions`) and the direction, 0 to 5.

    (-1, -1) is a coordinate without a node, as a component mode of a superelement: rigid motions leave it at rest.
    """

    M: scipy.sparse.csr_array
    K: scipy.sparse.csr_array
    positions: Array
    dofs: Array
    names: tuple[str, ...] = ()
    """of the nodes; 1, 2, 3 and so on where none are given"""
    points: MassPoints = None  # type: ignore[assignment]
    geometric: Callable[[Array], scipy.sparse.csr_array] | None = None
    """the geometric stiffness by the stresses under the displacements u; it is linear in u"""
    rounding: float = 1e-6
    """forces under a rigid motion, relative to the sum of their terms, that count as none: files have six to eight digits;
    what is held more softly than that floats"""
    own_points: bool = field(init=False, default=False)
    """whether the points stand for M exactly"""

    def __post_init__(self) -> None:
        x = np.asarray(self.positions, dtype=float)
        if x.ndim != 2 or x.shape[1] != 3 or not np.isfinite(x).all():
            raise ModelError(
                f"finite elements: positions have shape {x.shape}, expected finite numbers (nodes, 3)"
            )
        dofs = np.asarray(self.dofs)
        if dofs.ndim != 2 or dofs.shape[1] != 2 or dofs.dtype.kind not in "iu":
            raise ModelError(
                "finite elements: dofs are expected as whole numbers, (unknowns, 2): node and direction"
            )
        n = len(dofs)
        nodal = (dofs != -1).any(axis=1)
        outside = nodal & (dofs < 0).any(axis=1) | (dofs[:, 0] >= len(x)) | (dofs[:, 1] > 5)
        if outside.any():
            k = int(np.flatnonzero(outside)[0])
            raise ModelError(
                f"finite elements: unknown {k} is direction {dofs[k, 1]} of node {dofs[k, 0]}; there are {len(x)} nodes "
                "and the directions 0 to 5"
            )
        if len(np.unique(dofs[nodal] @ (6, 1))) < nodal.sum():
            raise ModelError("finite elements: two unknowns are the same direction of the same node")
        matrices = {}
        for name in "MK":
            matrices[name] = _matrix(name, getattr(self, name), n)
        names = tuple(map(str, self.names)) or tuple(str(k + 1) for k in range(len(x)))
        if len(names) != len(x) or len(set(names)) < len(names):
            raise ModelError(f"finite elements: {len(set(names))} different names for {len(x)} nodes")
        for name, value in {**matrices, "positions": x, "dofs": dofs.astype(int), "names": names}.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "own_points", self.points is not None)
        if self.points is None:
            object.__setattr__(self, "points", _lumped(self))

    @classmethod
    def of_matrices(
        cls,
        M: Any,
        K: Any,
        positions: Any,
        dofs: Any = None,
        *,
        names: Sequence[Any] = (),
        units: str | UnitSystem = "SI",
        rounding: float = 1e-6,
    ) -> FiniteElements:
        """From arrays, dense or sparse, in the given units; positions in rows, or by the names of the nodes.

        `dofs` may be left out where every node has the same three or six unknowns, node by node. `rounding` is that of the
        printed digits; less, such as 1e-12, lets soft springs to ground hold the structure.
        """
        scale = unit_system(units)
        if isinstance(positions, Mapping):
            names, positions = names or tuple(positions), list(positions.values())
        try:
            x = np.asarray(positions, dtype=float)
        except (TypeError, ValueError):
            raise ModelError(
                "finite elements: positions are expected as numbers (nodes, 3), or as three numbers by the names of nodes"
            ) from None
        if dofs is None:
            n = np.shape(M)[0]
            each = n // max(len(x), 1)
            if each * len(x) != n or each not in (3, 6):
                raise ModelError(
                    f"finite elements: {n} unknowns and {len(x)} nodes; without dofs every node has three or six"
                )
            dofs = np.array([(node, d) for node in range(len(x)) for d in range(each)])
        dofs = np.asarray(dofs)
        turns = dofs[:, 1] > 2 if dofs.ndim == 2 and dofs.shape[1] == 2 else np.zeros(len(dofs), dtype=bool)
        S = scipy.sparse.diags_array(np.where(turns, scale.length, 1.0))
        M, K = (_matrix(name, A, len(dofs)) for name, A in (("M", M), ("K", K)))
        return cls(
            S @ M @ S * scale.mass,
            S @ K @ S * (scale.mass / scale.time**2),
            x * scale.length,
            dofs,
            tuple(map(str, names)),
            rounding=rounding,
        )

    def __repr__(self) -> str:
        return f"<FiniteElements: {len(self.positions)} nodes, {self.size} unknowns, {self.mass:.6g} kg>"

    @property
    def size(self) -> int:
        """The number of unknowns."""
        return len(self.dofs)

    def node(self, name: Any) -> int:
        """The number of a node, by its name."""
        try:
            return self._numbers[str(name)]
        except KeyError:
            raise ArgumentError(unknown("finite elements: no node", name, self.names)) from None

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.names)}

    def unknowns(self, nodes: Any, directions: str | Iterable[str] = DIRECTIONS) -> Array:
        """The numbers of the unknowns of one or several nodes in the given directions, as far as they have them."""
        several = node_names(nodes)
        wanted = directions.split() if isinstance(directions, str) else list(directions)
        for d in wanted:
            check_known("finite elements: no direction", d, DIRECTIONS)
        where = self._places[np.ix_([self.node(x) for x in several], [DIRECTIONS.index(d) for d in wanted])]
        return where[where >= 0]

    def unknowns_of(self, nodes: Any) -> Array:
        """All unknowns of one or several nodes, of which each has some."""
        found = self.unknowns(nodes)
        bare = [name for name in node_names(nodes) if (self._places[self.node(name)] < 0).all()]
        if bare:
            raise ArgumentError(
                f"finite elements: node {bare[0]!r} has no unknowns, and cannot be held, loaded or seen"
            )
        return found

    @cached_property
    def _places(self) -> Array:
        """nodes x 6: the number of the unknown, or -1"""
        found = np.full((len(self.positions), 6), -1)
        at = self.nodal
        found[self.dofs[at, 0], self.dofs[at, 1]] = at
        return found

    @cached_property
    def nodal(self) -> Array:
        """The numbers of the unknowns that belong to nodes."""
        return np.flatnonzero(self.dofs[:, 0] >= 0)

    @cached_property
    def rigid(self) -> Array:
        """R of (2): unknowns x (translations, rotations about the origin)."""
        R = np.zeros((self.size, 6))
        node, d = self.dofs[:, 0], self.dofs[:, 1]
        R[self.nodal, d[self.nodal]] = 1.0
        x = self.positions[node]
        move = d // 3 == 0
        for axis in range(3):
            turn = np.cross(np.eye(3)[axis], x)
            R[move, 3 + axis] = turn[move, d[move]]
        return R

    @cached_property
    def strain(self) -> Array:
        """(6,): forces that the motions of R take, as shares of their terms: zero where nothing holds the structure."""
        force, terms = self.K @ self.rigid, abs(self.K) @ np.abs(self.rigid)
        return np.linalg.norm(force, axis=0) / np.maximum(np.linalg.norm(terms, axis=0), 1e-300)

    @cached_property
    def floating(self) -> Array:
        """Rigid motions that nothing holds (unknowns x as many), such as turns about a node that alone is held."""
        size = np.abs(self.positions - self.positions.mean(axis=0)).max() or 1.0
        R = self.rigid / np.array([1.0, 1.0, 1.0, size, size, size])
        terms = np.linalg.norm(abs(self.K) @ np.abs(R), axis=0)
        _, s, Vt = np.linalg.svd(self.K @ R / np.where(terms > 0, terms, 1.0), full_matrices=False)
        found = (R / np.where(terms > 0, terms, 1.0)) @ Vt[s < np.sqrt(6) * self.rounding].T
        most = np.abs(found).max(axis=0, initial=0.0)
        moves = most > 1e-12 * most.max(initial=0.0)
        return found[:, moves] / most[moves]

    def rigid_about(self, place: Any) -> Array:
        """R with turns about a node, by name, or about a place."""
        x = place if isinstance(place, np.ndarray) else self.positions[self.node(place)]
        R = self.rigid.copy()
        R[:, 3:] += R[:, :3] @ skew(x)  # r x (position - x)
        return R

    @cached_property
    def rigid_mass(self) -> Array:
        """R' M R, 6 x 6."""
        return self.rigid.T @ (self.M @ self.rigid)

    @property
    def mass(self) -> float:
        return float(np.trace(self.rigid_mass[:3, :3]) / 3)

    @property
    def center(self) -> Array:
        """The centre of mass."""
        if not self.mass > 0:
            raise ModelError(f"finite elements: the mass is {self.mass:g} kg; there is no centre of mass")
        s = self.rigid_mass[:3, 3:]  # r x s
        return np.array([s[1, 2] - s[2, 1], s[2, 0] - s[0, 2], s[0, 1] - s[1, 0]]) / (2 * self.mass)

    def held(self, unknowns: Numbers) -> tuple[Array, Array]:
        """The unknowns that are free where the given ones are held, and the latter."""
        given = np.asarray(unknowns)
        if given.size and given.dtype.kind not in "iu":
            raise ArgumentError(
                f"finite elements: unknowns are {unknowns!r}, expected their numbers, such as fe.unknowns(nodes, 'x y z')"
            )
        fixed = np.unique(given.astype(int))
        if len(fixed) and not (fixed[0] >= 0 and fixed[-1] < self.size):
            raise ArgumentError(f"finite elements: unknown {fixed[-1]} of {self.size}")
        free = np.ones(self.size, dtype=bool)
        free[fixed] = False
        return np.flatnonzero(free), fixed

    def static(self, load: Any, held: Any) -> Array:
        """The displacements under nodal forces (unknowns, or unknowns x cases), the unknowns `held` at rest."""
        f = np.asarray(load, dtype=float)
        free, _ = self.held(held)
        u = np.zeros_like(f)
        u[free] = solver(self.K[free][:, free], "static")(f[free])
        return u

    def natural(self, count: int, held: Any = ()) -> tuple[Array, Array]:
        """The lowest `count` modes with the unknowns `held` at rest: frequencies (rad/s) and shapes of unit modal mass.

        Nothing held, rigid-body modes are the first six.
        """
        free, fixed = self.held(held)
        values, V = lowest_modes(self.K[free][:, free], self.M[free][:, free], count, not len(fixed))
        shapes = np.zeros((self.size, len(values)))
        shapes[free] = V
        return np.sqrt(np.maximum(values, 0.0)), shapes

    def report(self, attachment: Any = None, modes: int = 6) -> StructureReport:
        """Whether it is as it should be: rigid motions, mass properties, lowest modes, effective masses; print it."""
        from alembert.flexible.structure_response import structure_report

        return structure_report(self, attachment, modes)

    def with_names(self, names: Mapping[Any, str]) -> FiniteElements:
        """The same with other names for some nodes."""
        new = list(self.names)
        for old, name in names.items():
            new[self.node(old)] = name
        points = self.points if self.own_points else None
        return dataclasses.replace(self, names=tuple(new), points=points)  # type: ignore[arg-type]


def point_masses(body: Inertia) -> tuple[float, Array]:
    """The mass of each, and the places, of points that have the mass, the centre and the tensor of a body: six on its
    principal axes, or one."""
    m, c = float(body.mass), np.array([float(x) for x in body.com])  # type: ignore[arg-type]
    moments, axes = np.linalg.eigh(body.matrix())
    second = np.maximum(moments.sum() / 2 - moments, 0.0)  # int x x' about the centre, on the principal axes
    if not second.any():
        return m, c[None]
    arms = (np.sqrt(3 * second / m) * axes).T
    return m / 6, np.concatenate([c + arms, c - arms])


def node_names(nodes: Any) -> list[Any]:
    """Of one node, or of several."""
    if isinstance(nodes, str | int | np.integer):
        return [nodes]
    if not isinstance(nodes, Iterable):
        raise ArgumentError(
            f"finite elements: nodes are {nodes!r}, expected the name of a node or a list of names"
        )
    return list(nodes)


def unit_system(units: str | UnitSystem) -> UnitSystem:
    """By name, or as given."""
    if isinstance(units, UnitSystem):
        return units
    check_known("finite elements: no units", units, UNITS)
    return UNITS[units]


def solver(K: Any, what: str) -> Callable[[Array], Array]:
    """Solutions of K u = f for a sparse symmetric K, which is factorised once."""
    try:
        factor = scipy.sparse.linalg.splu(
            scipy.sparse.csc_matrix(K),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError:
        factor = None
    pivots = None if factor is None else np.abs(factor.U.diagonal())
    scale = np.abs(K.diagonal())
    if factor is None or pivots is None or (len(pivots) and pivots.min() <= 1e-13 * scale.max()):
        raise NumericalError(
            f"finite elements: {what}: the stiffness is singular; something moves without strain. Hold more unknowns, "
            "or look at the report() of the structure for mechanisms"
        )
    return lambda f: factor.solve(np.ascontiguousarray(f))


def lowest_modes(K: Any, M: Any, count: int, floats: bool) -> tuple[Array, Array]:
    """K v = w^2 M v for the lowest w^2, v' M v = 1; M may be singular. `floats`: K may be so too, for rigid bodies."""
    squares, V = modes_up_to(K, M, count, floats)
    if len(squares) < count:
        raise ArgumentError(
            f"finite elements: {count} modes; the free unknowns with mass have {len(squares)}"
        )
    return squares, V


def modes_up_to(K: Any, M: Any, count: int, floats: bool) -> tuple[Array, Array]:
    """As many of the lowest modes as there are with mass.

    By the inverse of K + s M: dense up to DENSE unknowns, else by Lanczos' method.
    """
    n = K.shape[0]
    m = M.diagonal()
    massive = m > 0
    if not massive.any():
        raise ModelError("finite elements: no free unknown has mass")
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 0 < count <= n:
        raise ArgumentError(f"finite elements: {count!r} modes of {n} free unknowns")
    shift = 0.0
    if floats:
        shift = 1e-9 * float((K.diagonal()[massive] / m[massive]).max()) or 1.0  # any, where nothing is stiff
    A = K + shift * M
    if floats:  # unknowns without mass may turn without strain too, as a rod without moments of inertia about its axis
        A = A + scipy.sparse.diags_array(np.where(massive, 0.0, 1e-10 * K.diagonal()))
    if n <= DENSE or count > n // 3:
        A = A.toarray()
        try:
            values, V = scipy.linalg.eigh(M.toarray(), (A + A.T) / 2, subset_by_index=(n - count, n - 1))
        except scipy.linalg.LinAlgError:
            raise NumericalError(
                "finite elements: modes: the stiffness is not positive; an element is negative, or entries are wrong"
                + (
                    ""
                    if floats
                    else ", or something moves without strain: hold more unknowns, or look at the report()"
                )
            ) from None
        values, V = values[::-1], V[:, ::-1]
    else:
        solve = solver(A, "modes")
        inverse = scipy.sparse.linalg.LinearOperator((n, n), matvec=solve, dtype=float)
        start = np.random.default_rng(0).normal(size=n)  # the same answer each time
        w, V = scipy.sparse.linalg.eigsh(
            scipy.sparse.csc_matrix(K),
            count,
            M=scipy.sparse.csc_matrix(M),
            sigma=-shift,
            OPinv=inverse,
            v0=start,
        )
        order = np.argsort(w)
        values, V = 1 / (w[order] + shift), V[:, order]
    V = V[:, values > 1e-14 * values[0]]
    V = V / np.sqrt(np.einsum("ij,ij->j", V, M @ V))
    at = np.abs(V).argmax(axis=0)
    V = V * np.where(V[at, np.arange(V.shape[1])] < 0, -1.0, 1.0)
    squares = np.einsum("ij,ij->j", V, K @ V)
    return squares, V


def _matrix(name: str, given: Any, n: int) -> scipy.sparse.csr_array:
    """Symmetric, square and finite."""
    try:
        A = scipy.sparse.csr_array(given, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(
            f"finite elements: {name} is {type(given).__name__}, expected a matrix of numbers"
        ) from None
    if A.shape != (n, n):
        raise ModelError(f"finite elements: {name} has shape {A.shape}, expected ({n}, {n}), as many as dofs")
    if not np.isfinite(A.data).all():
        raise ModelError(f"finite elements: {name} has entries that are not finite")
    size = np.abs(A.data).max(initial=0.0)
    gap = scipy.sparse.coo_array(abs(A - A.T))
    if gap.nnz and gap.data.max() > SYMMETRIC * size:
        i, j = (int(where[gap.data.argmax()]) for where in gap.coords)
        raise ModelError(
            f"finite elements: {name} is not symmetric; the entries ({i}, {j}) and ({j}, {i}) "
            f"differ by {gap.data.max():.3g}. Where a file has one triangle only, add the other"
        )
    d = A.diagonal()
    low = d.min(initial=0.0)
    if low < -SYMMETRIC * size:
        raise ModelError(
            f"finite elements: {name} has {low:.6g} on its diagonal, expected no negative entries there"
        )
    entry = scipy.sparse.coo_array(A)
    i, j = entry.coords
    wrong = np.flatnonzero(entry.data**2 > (1 + COARSE) * np.abs(d[i] * d[j]) + (SYMMETRIC * size) ** 2)
    if name == "M" and len(wrong):
        k = wrong[0]
        raise ModelError(
            f"finite elements: {name} has {entry.data[k]:.6g} at ({i[k]}, {j[k]}), more than the {d[i[k]]:.6g} and "
            f"{d[j[k]]:.6g} on the diagonal allow: a motion would have negative energy"
        )
    return ((A + A.T) / 2).tocsr()


def _cross_rows(arms: Array) -> scipy.sparse.csr_array:
    """Block diagonal d~, so that d x theta for every point."""
    p = len(arms)
    base = 3 * np.arange(p)
    x, y, z = arms.T
    rows = np.concatenate([base, base, base + 1, base + 1, base + 2, base + 2])
    columns = np.concatenate([base + 1, base + 2, base, base + 2, base, base + 1])
    return scipy.sparse.csr_array(
        (np.concatenate([-z, y, z, -x, -y, x]), (rows, columns)), shape=(3 * p, 3 * p)
    )


def _lumped(fe: FiniteElements) -> MassPoints:
    """The mass of each node, as a unit acceleration of the whole sees it: rows of M added up."""
    count = len(fe.positions)
    found = np.zeros((count, 3))
    for axis in range(3):
        row = fe.M @ fe.rigid[:, axis]
        mine = fe.dofs[:, 1] == axis
        np.add.at(found[:, axis], fe.dofs[mine, 0], row[mine])
    directions = np.zeros((count, 3), dtype=bool)
    moves = fe.dofs[:, 1] // 3 == 0
    directions[fe.dofs[moves, 0], fe.dofs[moves, 1]] = True
    mass = found.sum(axis=1) / np.maximum(directions.sum(axis=1), 1)
    some = np.flatnonzero(mass != 0)
    slot = np.full(count, -1)
    slot[some] = np.arange(len(some))
    used = slot[fe.dofs[:, 0]] >= 0

    def selects(first: int) -> scipy.sparse.csr_array:
        mine = used & (fe.dofs[:, 1] // 3 == first)
        rows = 3 * slot[fe.dofs[mine, 0]] + fe.dofs[mine, 1] % 3
        return scipy.sparse.csr_array(
            (np.ones(mine.sum()), (rows, np.flatnonzero(mine))), shape=(3 * len(some), fe.size)
        )

    return MassPoints(mass[some], fe.positions[some], np.zeros((len(some), 3)), selects(0), selects(1))
