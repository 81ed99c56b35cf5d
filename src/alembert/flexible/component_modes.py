"""Component modes of finite-element models: the few shapes in which a structure is allowed to deform.

Where the interfaces to other bodies are held, forced or left free decides which shapes serve:

    normal modes        K phi = w^2 M phi, an interface held, free, or loaded with the mass of what hangs there     (1)
    constraint modes    an interface moves by a unit as a rigid patch, the others held:  K_ii phi_i = -K_ib         (2)
    attachment modes    a unit force at an interface, another held:  K phi = f                                      (3)
    residual modes      what the kept normal modes leave out of (3):  (G - Phi Omega^-2 Phi') f                     (4)

In (4) G = K^-1 where something holds the structure; a free one carries the force by its own inertia (inertia relief),
G = P' K_c^-1 P with P = 1 - M R (R' M R)^-1 R'. Craig and Bampton's basis is (2) with normal modes held at all interfaces.

An interface is a node, or several that move together: its motion is that of the rigid body nearest to them. A node without
rotations of its own takes its neighbours for that.

Static modal derivatives say how shapes change with the deflection, as shapes of their own. The strain energy of third order
of members that are displaced by u is 1/2 u' K_g(u) u, with the geometric stiffness K_g, linear in u. A structure that is
displaced by q_k phi_k + 1/2 q_k q_l theta_kl at rest but for forces on the phi_k has

    K theta_kl = -(K_g(phi_k) phi_l + K_g(phi_l) phi_k + g_kl),      u . g_kl = phi_k' K_g(u) phi_l for all u     (5)

(Idelsohn and Cardona 1985; Wu and Tiso 2016). For bending g alone is not zero, and theta_kl is the foreshortening chi_kl
that `structure_body` takes along in every body; as shapes with coordinates of their own they let a body stretch as it bends.

Condensation leaves a few of the unknowns, which stay unknowns. With the unknowns to keep (m) and the others (s), shapes are
columns of T, and M, K become T' M T, T' K T:

    T = [1; -K_ss^-1 K_sm]                                 Guyan (1965): the others follow statically             (6)
    T + [0; K_ss^-1] M T (M_r^-1 K_r)                      IRS, O'Callahan (1989): with their inertia to first order (7)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert.arguments import whole
from alembert.control.arguments import distinct
from alembert.errors import ArgumentError, ModelError
from alembert.flexible.finite_elements import (
    DIRECTIONS,
    FiniteElements,
    MassPoints,
    lowest_modes,
    node_names,
    solver,
)
from alembert.model.inertia import Inertia
from alembert.spatial.arrays import skew

Array = np.ndarray
DEPENDENT = 1e-12
"""eigenvalue of the shapes' scaled mass matrix below which one of them is dependent: 1e-6 in a shape"""
STILL = 1e-15
"""strain energy, of the sum of its terms, that is rounding; the first mode of 3000 elements in a row has 3e-15"""


@dataclass(frozen=True, eq=False, repr=False)
class ComponentModes:
    """`shapes` by columns (unknowns x modes)."""

    shapes: Array
    names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<ComponentModes of {len(self.shapes)} unknowns: {', '.join(self.names)}>"

    @property
    def count(self) -> int:
        return len(self.names)

    def __add__(self, other: ComponentModes) -> ComponentModes:
        """All shapes of both."""
        if not isinstance(other, ComponentModes):
            return NotImplemented
        if len(self.shapes) != len(other.shapes):
            raise ArgumentError(
                f"component modes: shapes of {len(self.shapes)} and of {len(other.shapes)} unknowns are not of one structure"
            )
        return ComponentModes(np.hstack([self.shapes, other.shapes]), distinct([*self.names, *other.names]))

    def only(self, keep: Sequence[int]) -> ComponentModes:
        """Those with the given numbers, from 0."""
        at = np.asarray(keep, dtype=int)
        if at.size and not (at.min() >= 0 and at.max() < self.count):
            raise ArgumentError(
                f"component modes: only {keep!r} of {self.count}; they are counted from 0 to {self.count - 1}"
            )
        return ComponentModes(self.shapes[:, at], tuple(self.names[k] for k in at))


@dataclass(frozen=True, eq=False)
class Interface:
    """Where a structure meets other bodies: its unknowns, and how a rigid motion about `position` moves them."""

    position: Array
    unknowns: Array
    rigid: Array
    """unknowns x 6: translations, rotations"""
    motion: scipy.sparse.csr_array
    """6 x all unknowns: the rigid motion nearest to theirs"""

    @property
    def moves(self) -> list[int]:
        """The directions that its unknowns see."""
        return [k for k in range(6) if np.abs(self.rigid[:, k]).max(initial=0.0) > 0]


def interface(fe: FiniteElements, nodes: Any) -> Interface:
    """Of a node by name, or of several that move together; its place is the mean of theirs."""
    names = node_names(nodes)
    if not names:
        raise ArgumentError("interface: no nodes")
    at = fe.unknowns_of(names)
    position = fe.positions[[fe.node(name) for name in names]].mean(axis=0)
    about = fe.rigid_about(position)
    rigid = about[at]
    around, seen = at, rigid
    if np.linalg.matrix_rank(rigid) < min(6, np.linalg.matrix_rank(fe.rigid)):
        # nodes that share stiffness tell how it turns
        near = np.unique(fe.dofs[np.unique(fe.K[at].indices), 0])
        around = np.flatnonzero(np.isin(fe.dofs[:, 0], near))
        seen = about[around]
    fit = np.linalg.pinv(seen, rcond=1e-8)
    if around is not at and not np.array_equal(around, at):
        fit[:3] = 0.0
        place = {int(k): i for i, k in enumerate(around)}
        columns = [place[int(k)] for k in at]
        own = np.linalg.pinv(rigid[:, :3])
        fit[:3, columns] = own
    motion = scipy.sparse.csr_array(
        (fit.ravel(), (np.repeat(np.arange(6), len(around)), np.tile(around, 6))), shape=(6, fe.size)
    )
    return Interface(position, at, rigid, motion)


def directed(
    fe: FiniteElements, what: str, places: Any, *, own: bool = False
) -> list[tuple[str, str, Array]]:
    """Places by name with a node (or nodes) and directions, ("tip", "y rz"): name, direction and motion of each.

    With `own`, along directions that the unknowns of the nodes themselves have.
    """
    example = "{'tip': ('node', 'y z')}"
    if not isinstance(places, Mapping):
        raise ArgumentError(
            f"{what} are {places!r}, expected by name a node (or nodes) and directions, such as {example}"
        )
    found = []
    for name, given in places.items():
        if not (isinstance(given, tuple | list) and len(given) == 2 and isinstance(given[1], str)):
            raise ArgumentError(
                f"{what}: {name!r} is {given!r}, expected a node (or nodes) and directions, such as {example}"
            )
        place = interface(fe, given[0])
        known = [DIRECTIONS[k] for k in place.moves] if own else DIRECTIONS
        for d in given[1].split():
            if d not in known:
                raise ArgumentError(f"{what}: {name!r} has no direction {d!r}; there are {', '.join(known)}")
            found.append((name, d, place.motion[[DIRECTIONS.index(d)]].toarray()[0]))
    return found


def named_interfaces(fe: FiniteElements, what: str, interfaces: Any) -> dict[str, Interface]:
    """By name, of a node or of several that move together."""
    if not isinstance(interfaces, Mapping):
        raise ArgumentError(
            f"{what}: interfaces are {interfaces!r}, expected by name a node or nodes, such as {{'tip': 'node'}}"
        )
    return {name: interface(fe, nodes) for name, nodes in interfaces.items()}


def shapes_of(fe: FiniteElements, modes: Any) -> Array:
    """Those of the structure, unknowns x modes."""
    V = modes.shapes if isinstance(modes, ComponentModes) else modes
    if not (isinstance(V, np.ndarray) and V.ndim == 2 and len(V) == fe.size):
        given = f"shapes of {len(V)} unknowns" if isinstance(V, np.ndarray) and V.ndim else repr(modes)
        raise ArgumentError(
            f"component modes: {given}; expected modes of this structure, which has {fe.size} unknowns"
        )
    return V


def normal_modes(
    fe: FiniteElements,
    count: int,
    *,
    held: Any = None,
    loaded: Mapping[Any, Inertia] | None = None,
    frequency: float | None = None,
) -> ComponentModes:
    """(1): the lowest `count` elastic ones, of these those up to `frequency` (rad/s).

    `held` are nodes, `loaded` are bodies at nodes.
    """
    M = fe.M
    for node, inertia in (loaded or {}).items():
        if not isinstance(inertia, Inertia):
            raise ArgumentError(
                f"normal_modes: loaded: node {node!r} has {inertia!r}, expected an Inertia, such as Inertia.point(mass)"
            )
        G = interface(fe, node).motion
        M = M + G.T @ scipy.sparse.csr_array(_six(inertia)) @ G
    fixed = np.zeros(0, dtype=int) if held is None else fe.unknowns_of(held)
    free, _ = fe.held(fixed)
    rigid = np.zeros((fe.size, 0)) if len(fixed) else fe.floating
    skip = int(np.linalg.matrix_rank(rigid)) if rigid.size else 0
    whole("normal_modes", "count", count, "a number of modes")
    if count + skip > len(free):
        raise ArgumentError(
            f"normal_modes: {count} modes; {len(free)} free unknowns have {len(free) - skip} besides rigid motions"
        )
    values, V = lowest_modes(
        fe.K[free][:, free], M[free][:, free], count + skip, bool(skip) or not len(fixed)
    )
    shapes = np.zeros((fe.size, len(values)))
    shapes[free] = V
    terms = np.einsum("ij,ij->j", np.abs(shapes), abs(fe.K) @ np.abs(shapes))
    still = int((values <= STILL * terms).sum())
    if still > skip:
        raise ModelError(
            f"normal_modes: {still - skip} motions besides those of a rigid body are without strain: mechanisms, or loose "
            "parts; see the report() of the structure"
        )
    w = np.sqrt(np.maximum(values, 0.0))[skip:]
    shapes = shapes[:, skip:]
    if skip:
        # exactly free of rigid motion, whatever the shift left in them
        shapes = (
            shapes - rigid @ np.linalg.lstsq(rigid.T @ (M @ rigid), rigid.T @ (M @ shapes), rcond=None)[0]
        )
    if frequency is not None:
        keep = w <= frequency
        if not keep.any():
            raise ArgumentError(
                f"normal_modes: no mode up to {frequency:g} rad/s; the first is at {w[0]:.6g} rad/s"
            )
        shapes = shapes[:, keep]
    return ComponentModes(shapes, tuple(f"mode_{k + 1}" for k in range(shapes.shape[1])))


def constraint_modes(
    fe: FiniteElements, interfaces: Mapping[str, Any], *, held: Any = None
) -> ComponentModes:
    """(2), by names of interfaces with their node or nodes; what is `held` stays."""
    places = named_interfaces(fe, "constraint_modes", interfaces)
    fixed = np.zeros(0, dtype=int) if held is None else fe.unknowns_of(held)
    boundary, often = np.unique(
        np.concatenate([*(p.unknowns for p in places.values()), np.unique(fixed)]), return_counts=True
    )
    if (often > 1).any():
        node = fe.names[fe.dofs[boundary[often > 1][0], 0]]
        raise ArgumentError(
            f"constraint_modes: node {node!r} is in two interfaces, or in one and held; each moves alone"
        )
    free, _ = fe.held(boundary)
    solve = solver(fe.K[free][:, free], "constraint modes") if len(free) else None
    columns, names = [], []
    for name, place in places.items():
        for d in place.moves:
            u = np.zeros(fe.size)
            u[place.unknowns] = place.rigid[:, d]
            if solve is not None:
                u[free] = -solve((fe.K @ u)[free])
            columns.append(u)
            names.append(f"{name}_{DIRECTIONS[d]}")
    return ComponentModes(np.column_stack(columns) if columns else np.zeros((fe.size, 0)), tuple(names))


def craig_bampton(
    fe: FiniteElements, attachment: Any, interfaces: Mapping[str, Any], count: int
) -> ComponentModes:
    """Constraint modes of the interfaces, the attachment held, and `count` normal modes with all of them held."""
    found = constraint_modes(fe, interfaces, held=attachment)
    if not count:
        return found
    nodes = [x for group in (attachment, *interfaces.values()) for x in node_names(group)]
    fixed = normal_modes(fe, count, held=nodes)
    return found + ComponentModes(fixed.shapes, tuple(f"fixed_{k + 1}" for k in range(count)))


def attachment_modes(
    fe: FiniteElements, forces: Mapping[str, tuple[Any, str]], *, held: Any
) -> ComponentModes:
    """(3): for each name the node (or nodes) and the directions of unit forces there, such as ("tip", "y rz")."""
    f, names = _forces(fe, "attachment_modes: forces", forces)
    return ComponentModes(fe.static(f, fe.unknowns_of(held)), names)


def residual_modes(
    fe: FiniteElements, forces: Mapping[str, tuple[Any, str]], kept: ComponentModes, *, held: Any = None
) -> ComponentModes:
    """(4): `kept` are normal modes under the same conditions, held or (`held` None) free."""
    f, names = _forces(fe, "residual_modes: forces", forces)
    return ComponentModes(residual(fe, f, shapes_of(fe, kept), held)[0], names)


def residual(fe: FiniteElements, f: Array, Phi: Array, held: Any) -> tuple[Array, Array]:
    """(4) with the normal modes Phi, and how the whole accelerates where nothing is held."""
    u, a = _relief(fe, f) if held is None else (fe.static(f, fe.unknowns_of(held)), np.zeros_like(f))
    mass = np.einsum("ij,ij->j", Phi, fe.M @ Phi)
    return u - Phi @ ((Phi.T @ (fe.M @ u)) / mass[:, None]), a  # Phi Omega^-2 Phi' f, for modes of K and M


def _relief(fe: FiniteElements, f: Array) -> tuple[Array, Array]:
    """Of a structure under forces: how it is deformed, free of rigid motion, while the whole accelerates; and how.

    Along motions that something holds, nodes `fixed` in a framework or springs to ground, it does not accelerate.
    """
    R = fe.floating
    a = R @ (np.linalg.pinv(R.T @ (fe.M @ R), rcond=1e-12) @ (R.T @ f))
    u = fe.static(f - fe.M @ a, _statically(fe))
    return u - R @ np.linalg.lstsq(R.T @ (fe.M @ R), R.T @ (fe.M @ u), rcond=1e-12)[0], a


def _forces(
    fe: FiniteElements, what: str, forces: Mapping[str, tuple[Any, str]]
) -> tuple[Array, tuple[str, ...]]:
    found = directed(fe, what, forces, own=True)
    if not found:
        raise ArgumentError(f"{what}: none are given")
    return np.column_stack([row for _, _, row in found]), tuple(f"{name}_{d}" for name, d, _ in found)


def _statically(fe: FiniteElements) -> Array:
    """Unknowns that hold the structure without stress, six where all of it floats: pivots of its rigid motions."""
    rank = int(np.linalg.matrix_rank(fe.floating, tol=1e-9 * fe.size))
    _, _, order = scipy.linalg.qr(fe.floating.T, mode="economic", pivoting=True)
    return order[:rank]


def relative(fe: FiniteElements, modes: ComponentModes, attachment: Any) -> ComponentModes:
    """The same shapes as seen from the attachment, which then is at rest in all of them."""
    place = interface(fe, attachment)
    R = fe.rigid_about(place.position)
    V = shapes_of(fe, modes)
    return dataclasses.replace(modes, shapes=V - R @ (place.motion @ V))


def orthonormal(fe: FiniteElements, modes: ComponentModes) -> ComponentModes:
    """The modes of K and M within the given shapes, of unit modal mass; dependent and rigid shapes drop out."""
    V = shapes_of(fe, modes)
    mass = np.einsum("ij,ij->j", V, fe.M @ V)
    stiff = np.einsum("ij,ij->j", V, fe.K @ V)
    scale = np.abs(fe.K.diagonal()) @ V**2
    V = V[:, (mass > 1e-20 * mass.max(initial=0.0)) & (stiff > 1e-13 * scale)]
    V = V / np.sqrt(np.einsum("ij,ij->j", V, fe.M @ V))
    values, U = np.linalg.eigh(V.T @ (fe.M @ V))
    keep = values > DEPENDENT
    V = V @ (U[:, keep] / np.sqrt(values[keep]))
    K = V.T @ (fe.K @ V)
    _, W = np.linalg.eigh((K + K.T) / 2)
    V = V @ W
    V = V / np.sqrt(np.einsum("ij,ij->j", V, fe.M @ V))
    if V.shape[1]:
        at = np.abs(V).argmax(axis=0)
        V = V * np.where(V[at, np.arange(V.shape[1])] < 0, -1.0, 1.0)
    return ComponentModes(V, tuple(f"mode_{k + 1}" for k in range(V.shape[1])))


def frequencies(fe: FiniteElements, modes: ComponentModes) -> Array:
    """Of the structure restricted to the shapes, rad/s, ascending."""
    V = shapes_of(fe, modes)
    K, M = V.T @ (fe.K @ V), V.T @ (fe.M @ V)
    return np.sqrt(np.maximum(scipy.linalg.eigh((K + K.T) / 2, (M + M.T) / 2, eigvals_only=True), 0.0))


def effective_masses(fe: FiniteElements, shapes: Any, attachment: Any) -> Array:
    """Share of each mode of the structure held at `attachment` in its mass and inertia (modes x 6)."""
    V = shapes_of(fe, shapes)
    R = fe.rigid_about(interface(fe, attachment).position)
    L = V.T @ (fe.M @ R)
    total = np.einsum("ij,ij->j", R, fe.M @ R)
    mass = np.einsum("ij,ij->j", V, fe.M @ V)
    return L**2 / mass[:, None] / np.where(total > 0, total, np.inf)


def _six(inertia: Inertia) -> Array:
    """The mass matrix of a body about its origin, translations first."""
    m = float(inertia.mass)  # type: ignore[arg-type]
    c = np.array([float(x) for x in inertia.com])  # type: ignore[arg-type]
    about = np.asarray(inertia.matrix(), dtype=float) + m * (c @ c * np.eye(3) - np.outer(c, c))
    return np.block([[m * np.eye(3), -m * skew(c)], [m * skew(c), about]])


def modal_derivatives(fe: FiniteElements, modes: ComponentModes, *, held: Any) -> ComponentModes:
    """The shapes theta_kl, k <= l, of a structure that is held at an interface, where the modes vanish.

    Needs a framework, whose members know their axial forces: `modes + modal_derivatives(fe, modes, held=root)` is a basis
    for bodies that bend far enough to stretch.
    """
    forces = fe.geometric
    gradient = getattr(forces, "gradient", None)
    if forces is None or gradient is None:
        raise ModelError(
            "modal_derivatives: the structure has no members that know their axial forces; build it with framework()"
        )
    root = interface(fe, held)
    V = shapes_of(fe, modes)
    moved = np.abs(V[root.unknowns]).max(initial=0.0)
    if moved > 1e-9 * np.abs(V).max():
        raise ModelError(
            f"modal_derivatives: the modes move what is held, by up to {moved:.3g} of {np.abs(V).max():.3g}; take "
            "modes with the same interface held"
        )
    free, _ = fe.held(root.unknowns)
    stiff = [forces(column) for column in V.T]
    pairs = [(k, l) for k in range(V.shape[1]) for l in range(k, V.shape[1])]
    loads = np.array(
        [-(stiff[k] @ V[:, l] + stiff[l] @ V[:, k] + gradient(V[:, k], V[:, l])) for k, l in pairs]
    )
    found = np.zeros((fe.size, len(pairs)))
    found[free] = solver(fe.K[free][:, free], "modal_derivatives: the structure held")(loads.T[free])
    return ComponentModes(found, tuple(f"{modes.names[k]}_by_{modes.names[l]}" for k, l in pairs))


def guyan(fe: FiniteElements, keep: Any) -> FiniteElements:
    """(6) for the unknowns with the numbers `keep` (`fe.unknowns(nodes, directions)`)."""
    return _restricted(fe, *_static(fe, keep, "guyan"))


def improved_reduction(fe: FiniteElements, keep: Any, *, held: Any = None) -> FiniteElements:
    """(7); frequencies are closer than Guyan's, but no bounds.

    The inertia is that of motions with the nodes `held` at rest, which should be those where the structure is attached.
    """
    T, kept = _static(fe, keep, "improved_reduction")
    others, _ = fe.held(kept)
    M, K = T.T @ (fe.M @ T), T.T @ (fe.K @ T)
    rates = np.zeros_like(K)
    moves = np.flatnonzero(~np.isin(kept, [] if held is None else fe.unknowns(held)))
    inner = np.ix_(moves, moves)
    try:
        rates[inner] = scipy.linalg.solve(M[inner], K[inner], assume_a="pos")
    except scipy.linalg.LinAlgError:
        raise ArgumentError(
            "improved_reduction: some of the unknowns to keep move no mass; leave them out, or choose guyan"
        ) from None
    T = T.copy()
    T[others] += solver(fe.K[others][:, others], "improved_reduction")((fe.M @ T)[others] @ rates)
    return _restricted(fe, T, kept)


def _static(fe: FiniteElements, keep: Any, what: str) -> tuple[Array, Array]:
    others, kept = fe.held(keep)
    if not len(kept):
        raise ArgumentError(f"{what}: no unknowns to keep")
    T = np.zeros((fe.size, len(kept)))
    T[kept, np.arange(len(kept))] = 1.0
    if len(others):
        T[others] = -solver(fe.K[others][:, others], what)(fe.K[others][:, kept].toarray())
    return T, kept


def _restricted(fe: FiniteElements, T: Array, kept: Array) -> FiniteElements:
    """The structure in the coordinates of the unknowns that are kept; its mass points and stresses follow."""
    of_all, p = fe.geometric, fe.points
    points = MassPoints(
        p.mass,
        p.position,
        p.arm,
        scipy.sparse.csr_array(p.displacement @ T),
        scipy.sparse.csr_array(p.rotation @ T),
    )

    def geometric(u: Array) -> scipy.sparse.csr_array:
        return scipy.sparse.csr_array(T.T @ (of_all(T @ u) @ T))  # type: ignore[misc]

    node, d = fe.dofs[kept].T
    nodes = np.unique(node[node >= 0])  # others are no nodes any more
    return FiniteElements(
        scipy.sparse.csr_array(T.T @ (fe.M @ T)),
        scipy.sparse.csr_array(T.T @ (fe.K @ T)),
        fe.positions[nodes],
        np.column_stack([np.where(node < 0, -1, np.searchsorted(nodes, node)), d]),
        tuple(fe.names[k] for k in nodes),
        points if fe.own_points else None,  # type: ignore[arg-type]
        None if of_all is None else geometric,
    )
