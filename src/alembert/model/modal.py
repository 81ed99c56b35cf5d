"""Bodies that deform: a few modes, and what of their mass distribution the dynamics need.

A point at x of the undeformed body is displaced, in body axes, by a field of second order in the modal coordinates q:

    u(x, q) = q_k phi_k(x) + 1/2 q_k q_l chi_kl(x)                                                    (1)

phi_k are the modes, chi_kl is the foreshortening: what bending takes from the length. Integrals over the mass are computed
once (sums over repeated k, l; a prime is a transpose):

    m = int dm,     s = int x dm,     E = int x x' dm                                                 (2)
    S_k = int phi_k dm,     E_k = int x phi_k' dm,     D_kl = int phi_k phi_l' dm                     (3)
    Tt_kl = int chi_kl dm,  Tr_kl = int chi_kl x' dm                                                  (4)

(4) are the geometric stiffness matrices of the twelve unit inertia loads, three accelerations of the frame and nine
products of its rates: without them a beam that spins is too soft and diverges (Banerjee and Dickens 1990; Wallrapp and
Schwertassek 1991). The body's frame is that of its inboard end, where all modes vanish: `ModalBody.of_points` takes free or
mean-axis modes as well and makes them relative to the attachment.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy

from alembert.arguments import is_number
from alembert.errors import ModelError
from alembert.expression import Expression, Scalar, evaluate, floats, names_in, scalar
from alembert.joints.joint import ModalCoordinates
from alembert.model import modal_checks
from alembert.model.inertia import Inertia
from alembert.model.placement import _negative, _times, _total, plus

Array = np.ndarray
Stiffening = Literal["consistent", "inconsistent", "ruthless"]
Row = tuple[Scalar, ...]
"""numbers or expressions; arrays are taken wherever rows, rows of rows and so on are expected"""
STIFFENING = ("consistent", "inconsistent", "ruthless")
"""all terms; without chi, as most programs do; besides, with the inertia and the frames of the undeformed body"""


@dataclass(frozen=True)
class MassBeyond:
    """Integrals (2) and (3) over the part of a beam beyond a node, seen from the body's frame."""

    mass: Scalar
    first_moment: Row
    second_moment: tuple[Row, ...]
    shape_moments: tuple[Row, ...]
    shape_products: tuple[tuple[Row, ...], ...]

    def shaped(self, n: int, what: str) -> MassBeyond:
        """With tuples in the place of arrays, of the right sizes."""
        return MassBeyond(
            scalar(self.mass, f"{what} mass"),
            nested(self.first_moment, (3,), f"{what} first_moment"),
            nested(self.second_moment, (3, 3), f"{what} second_moment"),
            nested(self.shape_moments, (n, 3), f"{what} shape_moments"),
            nested(self.shape_products, (n, 3, 3), f"{what} shape_products"),
        )


@dataclass(frozen=True)
class ModalNode:
    """A place on the body to which frames, joints and loads may be fixed, and how it moves with the modes."""

    name: str
    position: Row
    """x of the undeformed body"""
    shapes: tuple[Row, ...]
    """phi_k(x), a row of three for each mode"""
    rotations: tuple[Row, ...]
    """the rotation vector per unit of each mode"""
    foreshortening: tuple[tuple[Row, ...], ...] | None = None
    """chi_kl(x), modes x modes x 3"""
    loads: tuple[Row, ...] | None = None
    """moment and force in the section there, modes x 6: what the part beyond it exerts per unit of each mode, in its axes"""
    mass: Scalar | None = None
    """of the body, the part that is here: where nodes have masses, they are all of it, and (2)-(4) are sums over them"""
    beyond: MassBeyond | None = None
    """of a beam, what the equilibrium of the part beyond the node needs"""
    turning: tuple[tuple[Row, ...], ...] | None = None
    """the rotation vector to second order, as chi is of the place, modes x modes x 3; none where it is zero"""


@dataclass(frozen=True)
class ModalBody:
    """What takes the place of a rigid body's inertia: (2)-(4), stiffness, damping, nodes."""

    modes: tuple[str, ...]
    """their names; the coordinates are called body.mode"""
    mass: Scalar
    first_moment: Row
    """s"""
    second_moment: tuple[Row, ...]
    """E, 3 x 3"""
    shape_moments: tuple[Row, ...]
    """S_k, modes x 3"""
    shape_products: tuple[tuple[Row, ...], ...]
    """E_k, modes x 3 x 3"""
    pair_products: tuple[tuple[tuple[Row, ...], ...], ...]
    """D_kl, modes x modes x 3 x 3"""
    stiffness: tuple[Row, ...]
    damping: tuple[Row, ...]
    foreshortening_moments: tuple[tuple[Row, ...], ...] | None = None
    """Tt_kl, modes x modes x 3"""
    foreshortening_products: tuple[tuple[tuple[Row, ...], ...], ...] | None = None
    """Tr_kl, modes x modes x 3 x 3"""
    nodes: tuple[ModalNode, ...] = ()
    stiffening: Stiffening = "consistent"
    units: tuple[str, ...] = ()
    """of the modal coordinates: m or rad where a shape is scaled to a displacement or an angle"""

    def __post_init__(self) -> None:
        n = len(self.modes)
        if not n:
            raise ModelError("modal body: no modes; a body without them has an Inertia")
        if self.stiffening not in STIFFENING:
            raise ModelError(
                f"modal body: stiffening is {self.stiffening!r}, expected {', '.join(map(repr, STIFFENING))}"
            )
        shapes: dict[str, tuple[int, ...]] = {
            "first_moment": (3,),
            "second_moment": (3, 3),
            "shape_moments": (n, 3),
            "shape_products": (n, 3, 3),
            "pair_products": (n, n, 3, 3),
            "stiffness": (n, n),
            "damping": (n, n),
            "foreshortening_moments": (n, n, 3),
            "foreshortening_products": (n, n, 3, 3),
        }
        object.__setattr__(self, "modes", tuple(self.modes))
        object.__setattr__(self, "units", tuple(self.units))
        if len(self.units) not in (0, n):
            raise ModelError(f"modal body: {len(self.units)} units for {n} modes")
        object.__setattr__(self, "mass", scalar(self.mass, "modal body: mass"))
        for name, shape in shapes.items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, nested(value, shape, f"modal body: {name}"))
        nodes = []
        for node in self.nodes:
            what = f"modal body: node {node.name!r}:"
            chi, turning = node.foreshortening, node.turning
            nodes.append(
                ModalNode(
                    node.name,
                    nested(node.position, (3,), f"{what} position"),
                    nested(node.shapes, (n, 3), f"{what} shapes"),
                    nested(node.rotations, (n, 3), f"{what} rotations"),
                    None if chi is None else nested(chi, (n, n, 3), f"{what} foreshortening"),
                    None if node.loads is None else nested(node.loads, (n, 6), f"{what} loads"),
                    None if node.mass is None else scalar(node.mass, f"{what} mass"),
                    None if node.beyond is None else node.beyond.shaped(n, f"{what} beyond:"),
                    None if turning is None else nested(turning, (n, n, 3), f"{what} turning"),
                )
            )
        object.__setattr__(self, "nodes", tuple(nodes))
        if len({node.name for node in nodes}) < len(nodes):
            raise ModelError("modal body: two nodes have the same name")
        if len(set(self.modes)) < n:
            raise ModelError("modal body: two modes have the same name")
        if self.stiffening == "consistent":
            self._check_foreshortening()

    def _check_foreshortening(self) -> None:
        missing = [
            what
            for what in ("foreshortening_moments", "foreshortening_products")
            if getattr(self, what) is None
        ]
        missing += [
            f"the foreshortening of node {node.name!r}" for node in self.nodes if node.foreshortening is None
        ]
        if missing:
            raise ModelError(
                f"modal body: stiffening='consistent' needs {missing[0]}; give it, or choose 'inconsistent', which is right "
                "only while the body turns slowly against its first frequency"
            )

    @property
    def coordinates(self) -> ModalCoordinates:
        """The modal coordinates as owners of places in q and v; their units are as in `units`."""
        return ModalCoordinates(self.modes, self.units or ("",) * self.count)

    def undeformed(self) -> Inertia:
        """The inertia of the body with its modes at rest."""
        m, s, E = self.mass, self.first_moment, self.second_moment
        trace = plus(plus(E[0][0], E[1][1]), E[2][2])
        com = tuple(_divided(x, m) for x in s)
        entries = []
        square = _total(_times(x, y) for x, y in zip(com, s, strict=True))
        for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)):
            about_origin = plus(trace, _negative(E[i][j])) if i == j else _negative(E[i][j])
            steiner = _negative(_times(com[i], s[j]))
            entries.append(plus(about_origin, _negative(plus(square, steiner) if i == j else steiner)))
        return Inertia(m, com, tuple(entries))

    @property
    def count(self) -> int:
        """The number of modes."""
        return len(self.modes)

    def node(self, name: str) -> ModalNode:
        for node in self.nodes:
            if node.name == name:
                return node
        known = ", ".join(repr(node.name) for node in self.nodes) or "none"
        raise ModelError(f"modal body: no node {name!r}; there are {known}")

    def array(self, field: str, values: Mapping[str, float] | None = None) -> Array:
        """A field in floats, at the given values of the parameters."""
        entries = getattr(self, field)
        return floats(entries, values or {})

    def node_array(self, name: str, field: str, values: Mapping[str, float] | None = None) -> Array:
        """A field of a node in floats, at the given values of the parameters."""
        return floats(getattr(self.node(name), field), values or {})

    def modal_mass(self, values: Mapping[str, float] | None = None) -> Array:
        """Me = int phi_k . phi_l dm, the trace of D_kl."""
        return np.einsum("klii->kl", self.array("pair_products", values))

    def mass_matrix(self, q: Any, values: Mapping[str, float] | None = None) -> Array:
        """That of the motion of its frame (angular first) and of the modal speeds, deflected by q (..., modes).

        (1)-(4) of `alembert.sweeps.modal`, in numbers.
        """
        x = np.asarray(q, dtype=float) * (self.stiffening != "ruthless")
        s, E, Ek, Ct, D = (
            self.array(name, values)
            for name in ("first_moment", "second_moment", "shape_products", "shape_moments", "pair_products")
        )
        F = np.swapaxes(Ek, 1, 2)
        S, T = Ct, np.zeros((self.count, self.count, 3))
        if self.is_consistent:
            T = self.array("foreshortening_moments", values)
            D = D + self.array("foreshortening_products", values)
        Ct = Ct + np.einsum("klj,...l->...kj", T, x)
        s = s + np.einsum("...kj,...k->...j", (S + Ct) / 2, x)
        F_q = F + np.einsum("klij,...l->...kij", D, x)
        E = E + np.einsum("...kij,...k->...ij", F + F_q, x)
        E = (E + np.swapaxes(E, -1, -2)) / 2
        M = np.zeros((*x.shape[:-1], 6 + self.count, 6 + self.count))
        M[..., :3, :3] = np.trace(E, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - E
        M[..., 3:6, 3:6] = float(evaluate(self.mass, values or {})) * np.eye(3)
        M[..., 6:, 6:] = self.modal_mass(values)
        M[..., 3:6, 6:] = np.swapaxes(Ct, -1, -2)
        for a, b, c in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            M[..., a, 6:] = F_q[..., c, b] - F_q[..., b, c]
            M[..., a, 3 + c], M[..., a, 3 + b] = s[..., b], -s[..., c]
        lower = np.tril_indices(6 + self.count, -1)
        M[..., lower[0], lower[1]] = M[..., lower[1], lower[0]]
        return M

    def least_inertia(
        self, q: Any, values: Mapping[str, float] | None = None, *, moved: Array | None = None
    ) -> Array:
        """The least eigenvalue of the mass matrix at deflections (..., modes), against the body's inertia at rest.

        Negative where displacements of second order take more from the inertia than there is: no mass is so distributed, and
        deflections are too large for them. With `moved` (..., 6, speeds), of motions of the frame that those speeds give.
        """
        scale = np.diagonal(self.mass_matrix(np.zeros(self.count), values)).copy()
        scale[:3] = np.maximum(scale[:3], 0.01 * scale[:3].max())  # a thin beam has none about its axis
        size = np.sqrt(np.where(scale > 0, scale, 1.0))
        M = np.nan_to_num(self.mass_matrix(q, values)) / np.outer(size, size)
        if moved is not None:
            U, s, _ = np.linalg.svd(np.nan_to_num(moved) * size[:6, None])
            reached = np.zeros(U.shape[:-1])
            reached[..., : s.shape[-1]] = s > 1e-9 * s.max(initial=1e-300)
            P = np.zeros_like(M)
            P[..., :6, :6] = (U * reached[..., None, :]) @ np.swapaxes(U, -1, -2)
            P[..., 6:, 6:] = np.eye(self.count)
            M = P @ M @ P + np.eye(P.shape[-1]) - P  # ones where nothing moves
        return np.linalg.eigvalsh(M)[..., 0]

    def frequencies(self, values: Mapping[str, float] | None = None) -> Array:
        """Of the body held at its frame, rad/s, ascending."""
        squares = scipy.linalg.eigh(
            self.array("stiffness", values), self.modal_mass(values), eigvals_only=True
        )
        return np.sqrt(np.maximum(squares, 0.0))

    def damped(
        self, ratio: Any = 0.0, *, rayleigh: tuple[Scalar, Scalar] = (0.0, 0.0), loss_factor: Scalar = 0.0
    ) -> ModalBody:
        """The same body with other damping, of its modes while its frame is held.

        `ratio` is that of every mode, or one for each by ascending frequency; `rayleigh` (a, b) adds a M + b K.
        `loss_factor` is structural damping: at the frequency of a mode it takes as much as the ratio loss_factor / 2.
        All may be expressions of parameters.
        """
        ratios, (a, b), (eta,) = (
            _coefficients(name, given)
            for name, given in (("ratio", ratio), ("rayleigh", rayleigh), ("loss_factor", loss_factor))
        )
        n = self.count
        if len(ratios) not in (1, n):
            raise ModelError(f"damped: ratio has {len(ratios)} entries, expected one number or {n}")
        weights = [plus(x, _times(0.5, eta)) for x in ratios]
        parts = np.zeros((1, n, n))
        if any(weight != 0.0 for weight in weights):
            if names_in(self.stiffness) | names_in(self.pair_products):
                raise ModelError(
                    "damped: mass or stiffness are expressions of parameters, with which the modes of the body change; give "
                    "rayleigh=(a, b), or a beam its damping_ratio when it is made"
                )
            parts = damping_parts(self.modal_mass(), self.array("stiffness"))
            parts = parts if len(weights) > 1 else parts.sum(axis=0, keepdims=True)
        parts = np.where(np.abs(parts) > 1e-12 * np.abs(parts).max(initial=0.0), parts, 0.0)

        def entry(i: int, j: int) -> Scalar:
            i, j = min(i, j), max(i, j)
            mass = _total(self.pair_products[i][j][axis][axis] for axis in range(3))
            ratio_part = _total(
                _times(weight, float(part[i, j])) for weight, part in zip(weights, parts, strict=True)
            )
            return plus(ratio_part, plus(_times(a, mass), _times(b, self.stiffness[i][j])))

        C: Any = tuple(tuple(entry(i, j) for j in range(n)) for i in range(n))
        return dataclasses.replace(self, damping=C)

    def check(self, what: str, values: Mapping[str, float]) -> None:
        """Refuse what no body can have."""
        modal_checks.check(self, what, values)

    @cached_property
    def is_consistent(self) -> bool:
        return self.stiffening == "consistent"

    @classmethod
    def of_points(
        cls,
        masses: Any,
        positions: Any,
        shapes: Any,
        *,
        stiffness: Any,
        damping: Any = None,
        foreshortening: Any = None,
        nodes: Sequence[ModalNode] = (),
        modes: Sequence[str] | None = None,
        attachment: str | None = None,
        stiffening: Stiffening = "consistent",
        units: Sequence[str] = (),
        beyond: Mapping[str, tuple[Array, Array, Array]] | None = None,
    ) -> ModalBody:
        """From point masses (or points of quadrature with the mass that each stands for).

        `positions` (points x 3), `shapes` (points x modes x 3), `foreshortening` (points x modes x modes x 3). With
        `attachment`, a node that moves with the modes, all is made relative to it, and it becomes the body's frame:

            x <- d = x - x_A,    phi_k <- phi_k - phi_Ak - psi_k x d
            chi_kl <- chi_kl - chi_Akl - psi_k x e_l - psi_l x e_k + 1/2 (psi_k x (psi_l x d) + psi_l x (psi_k x d))

        with e_k = phi_k - phi_Ak and psi_k the rotation of the node per unit of mode k. Nodes that turn by eta_k then have
        the turning -1/2 (psi_k x eta_l + psi_l x eta_k) besides their own.

        `beyond` gives, for nodes of a beam, masses, positions and shapes of the part of it beyond them: section loads then
        come from its equilibrium.
        """
        m = np.asarray(masses, dtype=float)
        x = np.asarray(positions, dtype=float)
        phi = np.asarray(shapes, dtype=float)
        if x.shape != (*m.shape, 3) or m.ndim != 1:
            raise ModelError(
                f"modal body: {m.shape} masses, {x.shape} positions, expected (points,) and (points, 3)"
            )
        if phi.ndim != 3 or phi.shape[0] != len(m) or phi.shape[2] != 3:
            raise ModelError(f"modal body: shapes have shape {phi.shape}, expected ({len(m)}, modes, 3)")
        n = phi.shape[1]
        if n > 3 * len(m):
            raise ModelError(
                f"modal body: {n} modes of {len(m)} points, which have {3 * len(m)} degrees of freedom"
            )
        chi = None
        if foreshortening is not None:
            chi = np.asarray(foreshortening, dtype=float)
            if chi.shape != (len(m), n, n, 3):
                raise ModelError(
                    f"modal body: foreshortening has shape {chi.shape}, expected ({len(m)}, {n}, {n}, 3)"
                )
        places = tuple(nodes)
        fields_at: Fields | None = None
        if attachment is not None:
            fields_at = _relative(places, attachment, chi is not None)
            x, phi, chi = fields_at(x, phi, chi)
            places = tuple(_moved(node, fields_at, places, attachment) for node in places)
        if beyond:
            places = tuple(_with_mass_beyond(node, beyond.get(node.name), fields_at) for node in places)
        if damping is None:
            damping = np.zeros((n, n))
        fields: list[Any] = [
            tuple(modes) if modes is not None else tuple(f"mode_{k + 1}" for k in range(n)),
            float(m.sum()),
            tuple(m @ x),
            np.einsum("p,pi,pj->ij", m, x, x),
            np.einsum("p,pki->ki", m, phi),
            np.einsum("p,pi,pkj->kij", m, x, phi),
            np.einsum("p,pki,plj->klij", m, phi, phi),
            stiffness,
            damping,
            None if chi is None else np.einsum("p,pkli->kli", m, chi),
            None if chi is None else np.einsum("p,pkli,pj->klij", m, chi, x),
            places,
            stiffening,
            tuple(units),
        ]
        return cls(*fields)


Fields = Callable[[Array, Array, Array | None], tuple[Array, Array, Array | None]]
"""x, phi and chi of points to those relative to an attachment"""


def relative_nodes(nodes: tuple[ModalNode, ...], attachment: str) -> tuple[ModalNode, ...]:
    """The same nodes as seen from one of them, which then is at rest."""
    fields = _relative(nodes, attachment, True)
    return tuple(_moved(node, fields, nodes, attachment) for node in nodes)


def _relative(nodes: tuple[ModalNode, ...], attachment: str, with_chi: bool) -> Fields:
    at = next((node for node in nodes if node.name == attachment), None)
    if at is None:
        known = ", ".join(repr(node.name) for node in nodes) or "none"
        raise ModelError(f"modal body: no node {attachment!r} to attach it at; there are {known}")
    x_A, phi_A, psi = (floats(value, {}) for value in (at.position, at.shapes, at.rotations))
    chi_A = None if at.foreshortening is None else floats(at.foreshortening, {})
    if at.turning is not None and np.any(floats(at.turning, {})):
        raise ModelError(
            f"modal body: node {attachment!r} turns to second order; attach it where turning is zero"
        )
    if with_chi and chi_A is None:
        raise ModelError(f"modal body: node {attachment!r} has no foreshortening, the body has")

    def fields(x: Array, phi: Array, chi: Array | None) -> tuple[Array, Array, Array | None]:
        d, e = x - x_A, phi - phi_A
        turned = np.cross(psi[None], d[:, None])  # psi_k x d
        if chi is None:
            return d, e - turned, None
        first = np.cross(psi[None, :, None], e[:, None, :])  # psi_k x e_l
        second = np.cross(psi[None, :, None], turned[:, None, :])  # psi_k x (psi_l x d)
        swapped = np.swapaxes(first, 1, 2), np.swapaxes(second, 1, 2)
        return d, e - turned, chi - chi_A - first - swapped[0] + (second + swapped[1]) / 2

    return fields


def _moved(node: ModalNode, fields: Fields, nodes: tuple[ModalNode, ...], attachment: str) -> ModalNode:
    """A node relative to the attachment."""
    psi = floats(next(one for one in nodes if one.name == attachment).rotations, {})
    chi = None if node.foreshortening is None else floats(node.foreshortening, {})[None]
    d, e, c = fields(floats(node.position, {})[None], floats(node.shapes, {})[None], chi)
    eta = floats(node.rotations, {})
    parts: list[Any] = [d[0], e[0], eta - psi, None if c is None else c[0]]
    parts += [node.loads, node.mass, None, None if c is None else _turned_back(node, psi, eta)]
    return ModalNode(node.name, *parts)


def _turned_back(node: ModalNode, psi: Array, eta: Array) -> Array | None:
    """The second order of the rotation vector of exp(-psi q) exp(eta q), and the node's own; none where it is zero."""
    found = -np.cross(psi[:, None], eta[None]) / 2
    found = found + np.swapaxes(found, 0, 1)
    if node.turning is not None:
        found = found + floats(node.turning, {})
    return found if found.any() else None


def _with_mass_beyond(
    node: ModalNode, points: tuple[Array, Array, Array] | None, fields: Fields | None
) -> ModalNode:
    if points is None:
        return node
    m, x, phi = points
    if fields is not None:
        x, phi, _ = fields(x, phi, None)
    sums: list[Any] = [
        float(m.sum()),
        m @ x,
        np.einsum("p,pi,pj->ij", m, x, x),
        np.einsum("p,pki->ki", m, phi),
        np.einsum("p,pi,pkj->kij", m, x, phi),
    ]
    return dataclasses.replace(node, beyond=MassBeyond(*sums))


def damping_parts(M: Array, K: Array) -> Array:
    """For each mode of M and K, by ascending frequency, the damping that a ratio of one of it takes (modes x n x n)."""
    squares, V = scipy.linalg.eigh(K, M)
    momenta = M @ V
    return np.einsum("k,ik,jk->kij", 2 * np.sqrt(np.maximum(squares, 0.0)), momenta, momenta)


def _coefficients(name: str, given: Any) -> tuple[Scalar, ...]:
    """Numbers that are not negative, or expressions."""
    entries = [given] if isinstance(given, Expression) or np.ndim(given) == 0 else list(given)
    for x in entries:
        if not (isinstance(x, Expression) or (is_number(x) and x >= 0)):
            raise ModelError(f"damped: {name} is {given!r}, expected a finite number that is not negative")
    if len(entries) != 2 and name == "rayleigh":
        raise ModelError(f"damped: rayleigh is {given!r}, expected two numbers (a, b), of a M + b K")
    if len(entries) != 1 and name == "loss_factor":
        raise ModelError(f"damped: loss_factor is {given!r}, expected one number")
    return tuple(x if isinstance(x, Expression) else float(x) for x in entries)


def nested(values: Any, shape: tuple[int, ...], what: str) -> Any:
    """Numbers or expressions as tuples of tuples of the given shape."""
    if not shape:
        return scalar(values, what)
    if isinstance(values, Expression):
        entries: list[Any] = []
    else:
        try:
            entries = list(values)
        except TypeError:
            entries = []
    if len(entries) != shape[0]:
        raise ModelError(f"{what} has {len(entries)} entries, expected {shape[0]}")
    if len(shape) == 1 and all(isinstance(x, float) and math.isfinite(x) for x in entries):
        return tuple(float(x) + 0.0 for x in entries)  # as `scalar` does, without a name for each
    return tuple(nested(entry, shape[1:], f"{what}[{k}]") for k, entry in enumerate(entries))


def _divided(a: Scalar, b: Scalar) -> Scalar:
    return a / b if a else 0.0
