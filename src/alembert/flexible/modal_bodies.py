"""Modal bodies from tables of point masses, from finite elements with component modes, and at random.

With shapes phi_k that vanish at the attachment, integrals over the mass are sums over the points of the structure; what M
itself knows (mass, centre, inertia tensor, modal mass, couplings of modes with rigid motion) is taken from M. The
foreshortening comes from the geometric stiffness of the stresses under unit loads, with the attachment held: for the forces
f = e_i dm and f = x_j e_i dm (Banerjee's twelve inertia loads), and a unit force e_i at each node P,

    phi_k' K_g(f) phi_l = -int f . chi_kl   =>   Tt_kl,  Tr_kl,  chi_kl(P)                                     (1)

Arms of points turn with the structure and add 1/2 (psi_k x (psi_l x d) + psi_l x (psi_k x d)) to chi of the point.

Of a table, every point is a node, so that joints, frames and loads may be at each of them, and has its mass there, so that
the integrals over the mass are checked against the table. With random masses, places and shapes no integral is zero, and all
twelve unit inertia loads matter: a term left out or wrong shows in the motion. Tests and the fuzzer draw such bodies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from alembert.errors import ModelError
from alembert.flexible.component_modes import (
    ComponentModes,
    Interface,
    interface,
    named_interfaces,
    orthonormal,
    relative,
)
from alembert.flexible.finite_elements import DIRECTIONS, FiniteElements, node_names, solver
from alembert.model.modal import ModalBody, ModalNode, Stiffening

Array = np.ndarray
HELD = 100
"""times the rounding of a structure: the strain of a rigid motion from which it counts as held"""


def structure_body(
    fe: FiniteElements,
    modes: ComponentModes,
    *,
    attachment: Any,
    nodes: Mapping[str, Any] | Sequence[Any] = (),
    damping_ratio: Any = 0.0,
    damping: tuple[float, float] = (0.0, 0.0),
    stiffening: Stiffening = "consistent",
) -> ModalBody:
    """A flexible body of a structure, in the axes of its finite elements, its frame at the attachment.

    `modes` may be any shapes: they are seen from the attachment, dependent and rigid ones drop out, and what is left is made
    orthogonal. A coordinate is the displacement (in metres; an angle where nothing is displaced) where its shape is largest.
    `nodes` names places for joints, frames and loads: a list of nodes, or a mapping to a node or to several that move
    together. "root" is the attachment.
    """
    named = dict(nodes) if isinstance(nodes, Mapping) else {str(name): name for name in node_names(nodes)}
    if "root" in named and node_names(named["root"]) != node_names(attachment):
        raise ModelError(
            f"structure_body: the node 'root' is {named['root']!r}; every body has one at its attachment, {attachment!r}"
        )
    places = {"root": interface(fe, attachment)} | named_interfaces(fe, "structure_body", named)
    root = places["root"]
    _check_flies(fe)
    found = orthonormal(fe, relative(fe, modes, attachment))
    if not found.count:
        raise ModelError("structure_body: the shapes are motions of a rigid body; give elastic modes")
    V, units = _scaled(fe, found.shapes)
    x = fe.points.place - root.position
    phi, psi = fe.points.shapes(V)
    # a structure that is attached by a patch of nodes may leave them some motion; it is part of the shapes
    m = fe.points.mass
    S = np.einsum("p,pki->ki", m, phi)
    E = np.einsum("p,pi,pj->ij", m, x, x)
    Ek = np.einsum("p,pi,pkj->kij", m, x, phi)
    D = np.einsum("pki,plj->klij", m[:, None, None] * phi, phi, optimize=True)
    mass, s = fe.mass, fe.mass * (fe.center - root.position)
    if not fe.own_points:
        S, E, Ek, D = _as_the_matrix(fe, V, root.position, Ek, D)
    K = V.T @ (fe.K @ V)
    K = np.diag(np.diag(K))  # orthogonal but for rounding
    chi, Tt, Tr = (
        _foreshortening(fe, V, root, places, x, psi) if stiffening == "consistent" else (None, None, None)
    )
    made = []
    for name, place in places.items():
        moved = place.motion @ V
        if name == "root":
            moved = np.zeros_like(moved)
        fields: list[Any] = [place.position - root.position, moved[:3].T, moved[3:].T]
        fields.append(None if chi is None else chi[name])
        made.append(ModalNode(name, *fields))
    integrals: list[Any] = [mass, s, E, S, Ek, D, K, np.zeros_like(K), Tt, Tr, tuple(made), stiffening, units]
    body = ModalBody(found.names, *integrals)
    return body.damped(damping_ratio, rayleigh=damping)


def _check_flies(fe: FiniteElements) -> None:
    """A body takes its mass, centre and inertia from rigid motions of the structure."""
    held = [d for d, strain in zip(DIRECTIONS, fe.strain, strict=True) if strain > HELD * fe.rounding]
    if held:
        raise ModelError(
            f"structure_body: the structure is held to ground, its motion along {', '.join(held)} takes forces; a body is "
            "held by its joint: leave out what is fixed, or look at the report() of the structure"
        )
    mass = np.diag(fe.rigid_mass)[:3]
    if np.ptp(mass) > 1e-3 * mass.max():
        raise ModelError(
            f"structure_body: along x, y and z the mass is {', '.join(f'{m:.6g}' for m in mass)} kg; a body in space needs "
            "unknowns in all three directions, also where it moves in a plane"
        )


def _scaled(fe: FiniteElements, V: Array) -> tuple[Array, tuple[str, ...]]:
    """Each shape, of unit modal mass, one where it is largest: at a node, or in the mean where unknowns are modes."""
    far, turn = (np.abs(V[fe.dofs[:, 1] // 3 == k]).max(axis=0, initial=0.0) for k in (0, 1))
    if len(fe.nodal) < fe.size:
        far = np.maximum(far, 1 / np.sqrt(fe.mass))
    size = np.ptp(fe.positions, axis=0).max() or 1.0
    displaced = far > 1e-6 * size * turn
    return V / np.where(displaced, far, np.maximum(turn, 1e-300)), tuple(
        "m" if d else "rad" for d in displaced
    )


def _as_the_matrix(
    fe: FiniteElements, V: Array, origin: Array, Ek: Array, D: Array
) -> tuple[Array, Array, Array, Array]:
    """Sums over lumped masses, corrected where M knows better: int phi, int x x', int x x phi, int phi . phi."""
    R = fe.rigid_about(origin)
    C = V.T @ (fe.M @ R)
    J = (R.T @ (fe.M @ R))[3:, 3:]
    E = np.trace(J) / 2 * np.eye(3) - J
    own = np.stack([Ek[:, 1, 2] - Ek[:, 2, 1], Ek[:, 2, 0] - Ek[:, 0, 2], Ek[:, 0, 1] - Ek[:, 1, 0]], axis=1)
    gap = (C[:, 3:] - own) / 2
    skew = np.zeros_like(Ek)
    for (i, j), axis in (((1, 2), 0), ((2, 0), 1), ((0, 1), 2)):
        skew[:, i, j], skew[:, j, i] = gap[:, axis], -gap[:, axis]
    Me = V.T @ (fe.M @ V)
    lack = (Me - np.einsum("klii->kl", D)) / 3
    return C[:, :3], E, Ek + skew, D + lack[:, :, None, None] * np.eye(3)


def _foreshortening(
    fe: FiniteElements, V: Array, root: Interface, places: Mapping[str, Interface], x: Array, psi: Array
) -> tuple[dict[str, Array], Array, Array]:
    """(1): chi of the places, Tt (modes x modes x 3) and Tr (modes x modes x 3 x 3)."""
    if fe.geometric is None:
        raise ModelError(
            "structure_body: stiffening='consistent' needs the geometric stiffness, which matrices alone do not have; "
            "build the structure from members, give FiniteElements(geometric=...), or choose 'inconsistent', which is "
            "right only while the body turns slowly against its first frequency"
        )
    unit = np.eye(3)
    loads, n = [], V.shape[1]
    for i in range(3):
        loads.append(fe.points.load(np.tile(unit[i], (len(x), 1))))
    for i in range(3):
        loads += [fe.points.load(np.outer(x[:, j], unit[i])) for j in range(3)]
    others = [name for name in places if name != "root"]
    for name in others:
        loads += list(places[name].motion[:3].toarray())
    free, _ = fe.held(root.unknowns)
    u = np.zeros((fe.size, len(loads)))
    u[free] = solver(fe.K[free][:, free], "structure_body: unit loads with the attachment held")(
        np.array(loads).T[free]
    )
    stiff = np.array([-(V.T @ (fe.geometric(column) @ V)) for column in u.T])
    stiff = (stiff + stiff.swapaxes(1, 2)) / 2
    Tt = np.moveaxis(stiff[:3], 0, -1).copy()
    Tr = np.moveaxis(stiff[3:12].reshape(3, 3, n, n), (0, 1), (2, 3)).copy()
    arms = np.flatnonzero(np.abs(fe.points.arm).max(axis=1, initial=0.0) > 0)
    for some in np.array_split(arms, max(1, len(arms) * n * n // 2_000_000)):
        turned = psi[some]
        second = np.cross(turned[:, :, None], np.cross(turned, fe.points.arm[some, None])[:, None])
        second = (second + second.swapaxes(1, 2)) / 2
        m = fe.points.mass[some]
        Tt += np.einsum("p,pkli->kli", m, second)
        Tr += np.einsum("pkli,pj->klij", m[:, None, None, None] * second, x[some], optimize=True)
    chi = {"root": np.zeros((n, n, 3))}
    for k, name in enumerate(others):
        chi[name] = np.moveaxis(stiff[12 + 3 * k : 15 + 3 * k], 0, -1)
    return chi, Tt, Tr


def particles(
    masses: Any,
    positions: Any,
    shapes: Any,
    *,
    stiffness: Any,
    rotations: Any = None,
    foreshortening: Any = None,
    turning: Any = None,
    damping: Any = None,
    names: Sequence[str] | None = None,
    modes: Sequence[str] | None = None,
    attachment: str | None = None,
    stiffening: Stiffening = "consistent",
    units: Sequence[str] = (),
) -> ModalBody:
    """A body of point masses, each of them a node (`p0`, `p1`, ... or `names`).

    `positions` (points x 3) and `shapes` (points x modes x 3) are as in (1) of `alembert.model.modal`, `rotations` (points x
    modes x 3) turn what hangs on a point, `foreshortening` (points x modes x modes x 3) is chi, `turning` of that shape is
    the second order of the rotation vectors. Shapes are those of a body held at its frame; with
    `attachment`, the name of a point, all is made relative to that point, which becomes the frame.
    """
    m, x, phi = (np.asarray(given, dtype=float) for given in (masses, positions, shapes))
    if m.ndim != 1 or x.shape != (len(m), 3) or phi.ndim != 3 or phi.shape[::2] != (len(m), 3):
        raise ModelError(
            f"particles: masses, positions and shapes have the shapes {m.shape}, {x.shape} and {phi.shape}, expected "
            "(points,), (points, 3) and (points, modes, 3)"
        )
    labels = [f"p{k}" for k in range(len(m))] if names is None else list(names)
    if len(labels) != len(m):
        raise ModelError(f"particles: {len(labels)} names for {len(m)} points")
    for label, value in zip(labels, m, strict=True):
        if not (np.isfinite(value) and value >= 0):
            raise ModelError(
                f"particles: the mass of {label!r} is {value!r}, expected a number that is not negative"
            )
    psi = np.zeros_like(phi) if rotations is None else np.asarray(rotations, dtype=float)
    if psi.shape != phi.shape:
        raise ModelError(
            f"particles: rotations have the shape {psi.shape}, expected {phi.shape} as the shapes"
        )
    chi, eta = (None if x is None else np.asarray(x, dtype=float) for x in (foreshortening, turning))
    for name, given in (("foreshortening", chi), ("turning", eta)):
        if given is not None and given.shape != (*phi.shape[:2], *phi.shape[1:]):
            raise ModelError(
                f"particles: {name} has the shape {given.shape}, expected {(*phi.shape[:2], *phi.shape[1:])}"
            )
    chis, etas = ([None] * len(m) if x is None else list(x) for x in (chi, eta))
    nodes = []
    for k, label in enumerate(labels):
        parts: list[Any] = [x[k], phi[k], psi[k], chis[k], None, float(m[k]), None, etas[k]]
        nodes.append(ModalNode(label, *parts))
    return ModalBody.of_points(
        m,
        x,
        phi,
        stiffness=stiffness,
        damping=damping,
        foreshortening=chi,
        nodes=nodes,
        modes=modes,
        attachment=attachment,
        stiffening=stiffening,
        units=units,
    )


def random_particles(
    rng: np.random.Generator | int | None = None,
    *,
    points: int = 5,
    modes: int = 2,
    size: float = 0.3,
    foreshortening: float = 0.2,
    stiffening: Stiffening = "consistent",
) -> ModalBody:
    """Point masses at random places, within some metres, with random shapes and springs.

    `size` is that of shapes and rotations, per unit of a mode; `foreshortening` is the size of chi and of the second order
    of rotations against it, 0 for none.
    Deflections of a tenth leave the mass matrix positive.
    """
    if not (isinstance(points, int) and isinstance(modes, int) and 1 <= modes < 3 * points):
        raise ModelError(
            f"random_particles: points={points!r}, modes={modes!r}, expected whole numbers and fewer modes than three "
            "times the points"
        )
    generator = np.random.default_rng(rng)
    m, x = generator.uniform(0.1, 1.0, points), generator.normal(size=(points, 3))
    phi, psi = size * generator.normal(size=(2, points, modes, 3))
    chi = foreshortening * size * generator.normal(size=(points, modes, modes, 3))
    A = generator.normal(size=(modes, modes))
    eta = foreshortening * size * generator.normal(size=(points, modes, modes, 3))
    return particles(
        m,
        x,
        phi,
        rotations=psi,
        foreshortening=chi + np.swapaxes(chi, 1, 2),
        turning=eta + np.swapaxes(eta, 1, 2) if foreshortening else None,
        stiffness=5 * (A @ A.T + np.eye(modes)),
        damping=0.1 * np.eye(modes),
        stiffening=stiffening,
    )
