"""The mass matrix from composite inertias, O(n depth), in world axes.

    I_P += Ad(X_PB)^-T I Ad(X_PB)^-1            inward, I starting as the body's own inertia       (1)
    J = Ad(X_WB) S,   Y = Ad(X_WB)^-T I S + (Ad(X_WP)^-T r for rotors)                             (2)
    M_kj = Y_k^T J_j  for every node k and each node j inboard of it                               (3)

On the diagonal the rotor's part of Y does no work on its own joint; J_r takes its place.

Energies, centre of mass and momentum of the whole tree, gathered inward into the world's record.

    T = sum 1/2 V^T M V + 1/2 v^T J_r v + (r v) . w_P                      (4)
    U = sum -g . (m c)_W + springs                                          (5)
    h = sum Ad(X_WB)^-T M V + rotors                                        (6)

The momentum (angular; linear) is about the world's origin in world axes.

The slopes of the kinetic energy are those of sum V^T h with the momenta h = M V held: T is quadratic in V, so that

    dT = sum dV^T M V                                                       (7)

which takes two thirds of the operations of differentiating (4) itself.
"""

from __future__ import annotations

import casadi as ca

from alembert.spatial import Force
from alembert.spatial.arrays import dot
from alembert.sweeps.dynamics import force_columns, move, place, place_in_world, subspace_in_world
from alembert.sweeps.node import Record
from alembert.sweeps.program import Pairs, Program, expressions, inward, outward
from alembert.sweeps.tree import Tree


def own_inertia(b: Record) -> None:
    b.I = b.node.inertia


def gather(b: Record) -> None:
    """(1)"""
    b.deliver(I=b.I.transform(b.X))


def composite_momentum(b: Record) -> None:
    """(2)"""
    b.Y = force_columns(b.X_W, b.I.articulated().columns(b.S))
    r = b.rotor_momentum()
    if r is not None:
        X_P = b.receive("X_W")
        carried = [X_P.force(Force(r[:, k], ca.SX(3, 1))).vector() for k in range(b.node.nv)]
        b.Y = b.Y + ca.horzcat(*carried)


def _couple(outer: Record, inner: Record) -> tuple[tuple[ca.SX, ca.SX], ...]:
    """(3)"""
    if outer is inner and outer.has("J_m"):  # modes, see `alembert.sweeps.modal`
        block = outer.J_m
    elif outer is inner:
        block = outer.S.T @ outer.I.articulated().columns(outer.S)
        reflected = outer.node.reflected_inertia
        if reflected is not None:
            block = block + reflected
    else:
        block = outer.Y.T @ inner.columns
    return ((block, block.T),)


COMPOSITE_SWEEPS = (
    outward(place),
    outward(place_in_world),
    outward(subspace_in_world),
    outward(own_inertia),
    inward(gather),
    outward(composite_momentum),
)
MASS_MATRIX = Program(
    "mass_matrix", {"q": "q"}, COMPOSITE_SWEEPS, pairs=Pairs(("matrix",), _couple), gravity=False
)


def kinetic(b: Record) -> None:
    """(4)"""
    T = b.node.inertia.kinetic_energy(b.V)
    reflected = b.node.reflected_inertia
    if reflected is not None:
        T = T + ca.dot(b.v, reflected @ b.v) / 2
    r = b.rotor_momentum()
    if r is not None:
        T = T + dot(r @ b.v, b.receive("V").angular)
    b.T = T


def kinetic_slopes(tree: Tree, q: ca.SX, v: ca.SX, parameters: ca.SX) -> tuple[ca.SX, ca.SX]:
    """(7): dT/dq (by coordinates) and dT/dv; `q` and `v` are symbols. Bodies do not deform."""
    held: list[ca.SX] = []
    momenta: list[ca.SX] = []

    def hold(value: ca.SX) -> ca.SX:
        momenta.append(ca.SX(value))
        held.append(ca.SX.sym("h", momenta[-1].sparsity()))
        return held[-1]

    def with_momenta_held(b: Record) -> None:
        h = b.node.inertia @ b.V
        T = b.V.dot(Force(hold(h.angular), hold(h.linear)))
        reflected = b.node.reflected_inertia
        if reflected is not None:
            T = T + ca.dot(b.v, hold(reflected @ b.v))
        r = b.rotor_momentum()
        if r is not None:
            T = T + dot(r @ b.v, b.receive("V").angular)
        b.T = T

    sweeps = (outward(place), outward(move), outward(with_momenta_held), inward(gather_kinetic))
    program = Program("kinetic slopes", {"q": "q", "v": "v"}, sweeps, total=("T",))
    T = expressions(program, tree, {"q": q, "v": v}, parameters)["T"]
    known = [q, v, parameters]
    slopes = ca.Function("slopes", [*known, *held], [ca.gradient(T, q), ca.gradient(T, v)])
    of_q, of_v = slopes.call([*known, *momenta])
    return of_q, of_v


def gather_kinetic(b: Record) -> None:
    b.deliver(T=b.T)


def potential(b: Record) -> None:
    """(5)"""
    E = b.node.spring_energy(b.q)
    h = b.X_W.rotation @ b.node.inertia.moment + b.node.inertia.mass * b.X_W.translation
    b.E = E - dot(b.gravity, h)


def propagate_gravity(b: Record) -> None:
    b.gravity = b.receive("gravity")


def gather_potential(b: Record) -> None:
    b.deliver(E=b.E)


def momentum(b: Record) -> None:
    b.h = b.node.inertia @ b.V


def gather_momentum(b: Record) -> None:
    """(6)"""
    h = b.X.force(b.h)
    r = b.rotor_momentum()
    if r is not None:
        h = h + Force(r @ b.v, ca.SX(3, 1))
    b.deliver(h=h)


KINETIC_ENERGY = Program(
    "kinetic_energy",
    {"q": "q", "v": "v"},
    (outward(place), outward(move), outward(kinetic), inward(gather_kinetic)),
    total=("T",),
)
POTENTIAL_ENERGY = Program(
    "potential_energy",
    {"q": "q"},
    (
        outward(place),
        outward(place_in_world),
        outward(propagate_gravity),
        outward(potential),
        inward(gather_potential),
    ),
    total=("E",),
)
COMPOSITE = Program(
    "composite", {"q": "q"}, (outward(place), outward(own_inertia), inward(gather)), total=("I",)
)
MOMENTUM = Program(
    "momentum",
    {"q": "q", "v": "v"},
    (outward(place), outward(move), outward(momentum), inward(gather_momentum)),
    total=("h",),
)
MOMENTUM_MATRIX = Program("momentum_matrix", {"q": "q"}, COMPOSITE_SWEEPS, {"Y": "v6"})
