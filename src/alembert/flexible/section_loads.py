"""Loads in sections of beams, from the equilibrium of the part beyond them.

Cut the beam at a node P and let the part beyond it move as a rigid body, by W y + a of points at y (W is a cross-product
matrix for turns about P, zero for displacements). That is six more modes of the body, with the second-order field of a
turn of the bent part,

    phi_c = a + W x,      chi_ck = W (phi_k - phi_k(P))        beyond P, else 0                         (1)

which stay at zero. Their efforts in inverse dynamics, of which all inertia, weight, loads and bodies beyond P are part, are
the load that the beam carries at P. Strains of few modes give it badly near hinges and masses.
Exact to first order in the deflection (arms of forces are those of the bent beam); moments of bodies that hang beyond P
are seen in axes turned by half of the beam's slope there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy

from alembert.arguments import check_known, numbers, unknown
from alembert.errors import ArgumentError
from alembert.expression import evaluate, floats
from alembert.model import Model
from alembert.model.modal import ModalBody, ModalNode
from alembert.model.model import check_model
from alembert.spatial.arrays import skew

Array = np.ndarray
BALANCED = 1e-6
"""of the largest effort: accelerations of stiff beams are not known better than 1e-8 or so"""


@dataclass(frozen=True)
class Cut:
    """A model whose beam is cut at a node: the six last coordinates of the body are the motion of the part beyond."""

    model: Model
    """without constraints"""
    constrained: Model
    whole: Model
    body: str
    node: str

    def widened(self, x: Array, kind: str) -> Array:
        """q, or v and accelerations, of the whole as those of the cut model."""
        owner = self.model.space.of_bodies[self.body]
        end = owner.q.stop if kind == "q" else owner.v.stop
        return np.insert(np.asarray(x, dtype=float), [end - 6] * 6, 0.0, axis=-1)

    def hold(
        self,
        q: Array,
        v: Array,
        a: Array,
        wrenches: Mapping[str, Any] | None,
        parameters: Mapping[str, Any] | None,
    ) -> Array:
        """Efforts of all coordinates of the cut model while the cut stays closed."""
        widened = (self.widened(q, "q"), self.widened(v, "v"), self.widened(a, "v"))
        return self.model.inverse_dynamics(*widened, wrenches=wrenches, parameters=parameters)

    def without_reactions(
        self, efforts: Array, q: Array, tau: Any, parameters: Mapping[str, Any] | None
    ) -> tuple[Array, Array]:
        """The efforts of the cut model less those of its constraints; and what no reactions explain in the whole (..., nv).

        Reactions f are those that, with the efforts tau, balance the whole: J' f = Q - tau. Without the cut both are alike.
        """
        stop = self.model.space.of_bodies[self.body].v.stop
        own = np.delete(efforts, np.s_[stop - 6 : stop], axis=-1) - tau
        J = self.whole.constraint_jacobian(q, parameters=parameters)
        J_cut = self.constrained.constraint_jacobian(self.widened(q, "q"), parameters=parameters)
        f = np.einsum("...ij,...j->...i", np.linalg.pinv(np.swapaxes(J, -1, -2)), own)
        of_constraints = [np.einsum("...ji,...j->...i", x, f) for x in (J_cut, J)]
        return efforts - of_constraints[0], own - of_constraints[1]

    def load(self, efforts: Array, q: Array, parameters: Mapping[str, float]) -> Array:
        """Moment and force, in the axes of the section, that the part beyond exerts: of the efforts that hold it."""
        stop = self.model.space.of_bodies[self.body].v.stop
        held = efforts[..., stop - 6 : stop]
        body = self.whole.body(self.body).flexible
        assert body is not None
        modes = np.asarray(q)[..., self.whole.space.of_bodies[self.body].q]
        turns = modes @ body.node_array(self.node, "rotations", parameters)
        if body.is_consistent and body.node(self.node).turning is not None:
            turning = body.node_array(self.node, "turning", parameters)
            turns = turns + np.einsum("...k,...l,kli->...i", modes, modes, turning) / 2
        R = (
            scipy.spatial.transform.Rotation.from_rotvec(turns.reshape(-1, 3))
            .as_matrix()
            .reshape(*turns.shape, 3)
        )
        return -np.concatenate(
            [np.einsum("...ji,...j->...i", R, x) for x in (held[..., :3], held[..., 3:])], axis=-1
        )


def section_loads(
    model: Model,
    q: Any,
    v: Any,
    a: Any,
    body: str,
    node: str,
    *,
    tau: Any = None,
    wrenches: Mapping[str, Any] | None = None,
    parameters: Mapping[str, float] | None = None,
) -> Array:
    """Moment and force (..., 6) that the part of a beam beyond a node exerts there, in the axes of the section.

    `a` are the accelerations of the motion (`model.forward_dynamics`), `wrenches` what acts on frames. Reactions of loops
    and couplings are those that balance the motion with the efforts `tau` (none by default; without constraints they are
    not needed); where nothing balances it, it is refused. Runs give the same with all their forces as the channel
    `section:BODY.NODE`.
    """
    check_model("section_loads", model)
    for name, value in (parameters or {}).items():
        if np.ndim(value):
            raise ArgumentError(
                f"section_loads: parameter {name!r} has shape {np.shape(value)}, expected a number"
            )
    given = {name: float(value) for name, value in (parameters or {}).items()}
    cut = cut_at(model, body, node, tuple(given.items()))
    values = model.parameter_values | given
    efforts = cut.hold(q, v, a, wrenches, given or None)
    if model.is_constrained:
        tau = np.zeros(model.nv) if tau is None else numbers("section_loads", "tau", tau, model.nv)
        rest = cut.hold(q, v, np.zeros_like(efforts[..., 6:]), None, given or None)
        scale = sum(np.abs(x).max(axis=-1) for x in (efforts, tau, rest))
        efforts, missing = cut.without_reactions(efforts, np.asarray(q, dtype=float), tau, given or None)
        if np.any(np.abs(missing).max(axis=-1) > BALANCED * scale):
            raise ArgumentError(
                "section_loads: no reactions of the constraints balance this motion; give its efforts as tau=, and as "
                "wrenches= all that acts on frames"
            )
    return cut.load(efforts, q, values)


@lru_cache(maxsize=64)
def cut_at(model: Model, body: str, node: str, given: tuple[tuple[str, float], ...] = ()) -> Cut:
    """The model with a beam cut at a node; its numbers are those at the `given` values of parameters."""
    flexible = model.body(body).flexible if body in model.space.of_bodies else None
    if flexible is None:
        raise ArgumentError(unknown("section_loads: no flexible body", body, model.space.of_bodies))
    sections = [place.name for place in flexible.nodes if place.beyond is not None]
    check_known(f"section_loads: body {body!r} has no section", node, sections)
    k = model.body_indices[body]
    cut = dataclasses.replace(
        model.bodies[k],
        flexible=_with_cut(flexible, flexible.node(node), model.parameter_values | dict(given)),
    )
    # not checked again: a thin beam has no mass that a turn about it moves, and nothing is beyond a tip
    bodies = (*model.bodies[:k], cut, *model.bodies[k + 1 :])
    constrained = dataclasses.replace(model, bodies=bodies)
    tree = dataclasses.replace(constrained, loops=(), couplings=(), equations=())
    return Cut(tree, constrained, model, body, node)


def _with_cut(body: ModalBody, at: ModalNode, values: Mapping[str, float]) -> ModalBody:
    """The body with the six modes (1), in numbers."""
    n, beyond = body.count, at.beyond
    assert beyond is not None
    x_P, phi_P = (floats(x, values) for x in (at.position, at.shapes))
    m = float(evaluate(beyond.mass, values))
    s, E, S, Ek = (
        floats(x, values)
        for x in (beyond.first_moment, beyond.second_moment, beyond.shape_moments, beyond.shape_products)
    )
    W = np.concatenate([np.stack([skew(e) for e in np.eye(3)]), np.zeros((3, 3, 3))])
    a = np.concatenate([-np.cross(np.eye(3), x_P), np.eye(3)])

    def joined(name: str, mixed: Array, own: Array) -> Array:
        """(modes, modes, ...) with what is of a mode and the cut, and of the cut alone."""
        given = getattr(body, name)
        old = np.zeros((n, n, *own.shape[2:])) if given is None else body.array(name, values)
        transposed = mixed if name != "pair_products" else np.swapaxes(mixed, -1, -2)
        upper = np.concatenate([old, np.swapaxes(transposed, 0, 1)], axis=1)
        return np.concatenate([upper, np.concatenate([mixed, own], axis=1)], axis=0)

    def with_zeros(matrix: Array) -> Array:
        return np.pad(matrix, (0, 6))

    D_ck = np.einsum("ci,kj->ckij", a, S) + np.einsum("cil,klj->ckij", W, Ek)
    Wx = W @ s  # int W x
    D_cc = (
        m * np.einsum("ci,dj->cdij", a, a)
        + np.einsum("ci,dj->cdij", a, Wx)
        + np.einsum("ci,dj->cdij", Wx, a)
        + np.einsum("cik,kl,djl->cdij", W, E, W)
    )
    Tt = np.einsum("cij,kj->cki", W, S - m * phi_P)
    Tr = np.einsum("cij,kjl->ckil", W, np.swapaxes(Ek, 1, 2) - np.einsum("kj,l->kjl", phi_P, s))
    nodes = tuple(_cut_node(place, x_P, phi_P, W, a, values) for place in body.nodes)
    fields: dict[str, Any] = {
        name: body.array(name, values) for name in ("first_moment", "second_moment")
    } | {
        "mass": evaluate(body.mass, values),
        "modes": (*body.modes, *(f"cut.{k}" for k in range(6))),
        "units": (),
        "shape_moments": np.concatenate([body.array("shape_moments", values), m * a + Wx]),
        "shape_products": np.concatenate(
            [
                body.array("shape_products", values),
                np.einsum("i,cj->cij", s, a) + np.einsum("ik,cjk->cij", E, W),
            ]
        ),
        "pair_products": joined("pair_products", D_ck, D_cc),
        "stiffness": with_zeros(body.array("stiffness", values)),
        "damping": with_zeros(body.array("damping", values)),
        "foreshortening_moments": joined("foreshortening_moments", Tt, np.zeros((6, 6, 3))),
        "foreshortening_products": joined("foreshortening_products", Tr, np.zeros((6, 6, 3, 3))),
        "nodes": nodes,
        "stiffening": "consistent",
    }
    if not body.is_consistent:  # of the cut alone
        for name in ("foreshortening_moments", "foreshortening_products"):
            fields[name][:n, :n] = 0.0
    return dataclasses.replace(body, **fields)


def _cut_node(
    place: ModalNode, x_P: Array, phi_P: Array, W: Array, a: Array, values: Mapping[str, float]
) -> ModalNode:
    x, phi, psi = (floats(value, values) for value in (place.position, place.shapes, place.rotations))
    n = len(phi)
    chi = np.zeros((n + 6, n + 6, 3))
    if place.foreshortening is not None:
        chi[:n, :n] = floats(place.foreshortening, values)
    beyond = x[0] >= x_P[0] - 1e-12 * max(abs(x_P[0]), 1.0)
    if beyond:
        chi[n:, :n] = np.einsum("cij,kj->cki", W, phi - phi_P)
        chi[:n, n:] = np.swapaxes(chi[n:, :n], 0, 1)
    moves = beyond * (a + W @ x)
    turns = beyond * np.concatenate([np.eye(3), np.zeros((3, 3))])
    parts: list[Any] = [x, np.concatenate([phi, moves]), np.concatenate([psi, turns]), chi]
    turning: Any = None
    if place.turning is not None:
        turning = np.zeros_like(chi)
        turning[:n, :n] = floats(place.turning, values)
    return dataclasses.replace(ModalNode(place.name, *parts), turning=turning)
