"""Inverse dynamics as a linear function of its parameters, tau = Y(q, v, a) pi + known(q), in O(n depth).

With d = a + w x v the acceleration of a body's origin (gravity included), the force that a body takes, in its
own axes about its origin, is linear in its ten-vector (m, h = m c, I about the origin):

    f = [0    -d~               L(alpha) + w~ L(w)] (m; h; I),       L(x) I = the tensor I times x          (1)
        [d   alpha~ + w~ w~     0                 ]

The joint of a node and all joints inboard of it carry it: with the columns J and f in the world,

    Y_j,k = J_j^T Ad(X_Wk)^-T f_k                                                                          (2)

The joint's own parameters enter its own row: b v, c v / sqrt(v^2 + s^2), armature a. The inertia of a rotor
of ratio r about the unit vector e on the parent gives, in its own row and as a moment on the parent,

    r^2 a + r e . alpha_P,        r (e a + w_P x e v)                                                      (3)

`known` are the efforts that springs take, which are not identified.

Source: Atkeson, An and Hollerbach 1986, here for joints of any width; (1) written with the acceleration of
the origin.

Reference: inverse dynamics in `alembert.sweeps.dynamics`, which is Y times the parameters; held equal by
tests/sensitivity/test_regressor.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import casadi as ca

from alembert.expression import Scalar, evaluate
from alembert.spatial import Force
from alembert.spatial.arrays import cross, dot, matrix, skew
from alembert.sweeps.dynamics import accelerate, force_columns, move, place, place_in_world, subspace_in_world
from alembert.sweeps.node import Record
from alembert.sweeps.program import Program, outward, unroll
from alembert.sweeps.tree import Tree

TEN = ("mass", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
Term = Literal["viscous", "coulomb", "armature"]
TERMS: tuple[Term, ...] = ("viscous", "coulomb", "armature")
"""What any joint may have, in the order of the columns; rotors follow."""


@dataclass(frozen=True)
class Parameter:
    """One column of the regressor."""

    name: str
    kind: Literal["inertia", "viscous", "coulomb", "armature", "rotor"]
    node: int
    index: int
    """which of the ten, which degree of freedom, or which rotor"""
    value: Scalar
    """in the model"""
    row: int = -1
    """the speed whose effort it enters directly, -1 for inertias"""
    carrier: int = -1
    """the node it loads with a wrench, -1 for none"""


def parameters(tree: Tree, include: Sequence[str] = ()) -> tuple[Parameter, ...]:
    """The columns: ten per node, then by joint what it has (or `include` names), then its rotors."""
    found = []
    for k, joint in enumerate(tree.joints):
        ten = tree.ten_vectors[k]
        found += [
            Parameter(f"{joint.child}.{name}", "inertia", k, i, ten[i], carrier=k)
            for i, name in enumerate(TEN)
        ]
    for k, joint in enumerate(tree.joints):
        s = tree.v_slices[k]
        labels = tree.model.speed_names[s]
        values = {
            "viscous": joint.friction.viscous if joint.friction else (),
            "coulomb": joint.friction.coulomb if joint.friction else (),
            "armature": joint.armature,
        }
        for term in TERMS:
            if term in include or any(x != 0.0 for x in values[term]):
                entries = values[term] or (0.0,) * joint.type.nv
                found += [
                    Parameter(f"{labels[i]}.{term}", term, k, i, x, row=s.start + i)
                    for i, x in enumerate(entries)
                ]
        for i, rotor in enumerate(joint.rotors):
            name = f"{joint.name}.rotor" if len(joint.rotors) == 1 else f"{joint.name}.rotor{i + 1}"
            row = s.start + rotor.dof
            found.append(Parameter(name, "rotor", k, i, rotor.inertia, row=row, carrier=tree.parents[k]))
    return tuple(found)


def body_regressor(b: Record) -> None:
    """(1), in world axes about the world's origin"""
    w, alpha = b.V.angular, b.A.angular
    d = b.A.linear + cross(w, b.V.linear)
    W = skew(w)
    moments = ca.horzcat(ca.SX(3, 1), -skew(d), _times_tensor(alpha) + W @ _times_tensor(w))
    forces = ca.horzcat(d, skew(alpha) + W @ W, ca.SX(3, 6))
    b.F = force_columns(b.X_W, ca.vertcat(moments, forces))


def _times_tensor(x: ca.SX) -> ca.SX:
    """L(x), 3 x 6"""
    o = ca.SX(1, 1)
    return matrix([[x[0], x[1], o, x[2], o, o], [o, x[0], x[1], o, x[2], o], [o, o, o, x[0], x[1], x[2]]])


REGRESSOR = Program(
    "regressor",
    {"q": "q", "v": "v", "a": "v"},
    (
        outward(place),
        outward(place_in_world),
        outward(move),
        outward(accelerate),
        outward(subspace_in_world),
        outward(body_regressor),
    ),
    {"columns": "v6", "F": "node"},
)


@dataclass(frozen=True, eq=False)
class Factors:
    """What the regressor is made of: Y = J F (where the carrier is outboard) + direct entries."""

    J: ca.SX
    """nv x 6"""
    F: ca.SX
    """6 x parameters"""
    direct: ca.SX
    """parameters x 1, in the row of each parameter"""
    known: ca.SX
    """nv x 1"""


def factors(
    tree: Tree, columns: Sequence[Parameter], given: Mapping[str, ca.SX], values: ca.SX, *, smoothing: float
) -> Factors:
    """The sweeps, and (3), as `SX`; `smoothing` is for joints whose model has no Coulomb friction."""
    records, _ = unroll(REGRESSOR, tree, given, values)
    named = {name: values[k] for k, (name, _) in enumerate(tree.model.parameters)}
    F, direct = ca.SX(6, len(columns)), ca.SX(len(columns), 1)
    for c, column in enumerate(columns):
        b, i = records[column.node], column.index
        if column.kind == "inertia":
            F[:, c] = b.F[:, i]
        elif column.kind == "viscous":
            direct[c] = b.v[i]
        elif column.kind == "armature":
            direct[c] = b.a[i]
        elif column.kind == "coulomb":
            friction = tree.joints[column.node].friction
            s = evaluate(friction.smoothing if friction else smoothing, named)
            direct[c] = b.v[i] / ca.sqrt(b.v[i] * b.v[i] + s * s)
        else:
            rotor = tree.joints[column.node].rotors[i]
            ratio = evaluate(rotor.ratio, named)
            e = b.receive("placement").rotation @ ca.vertcat(*(ca.SX(evaluate(x, named)) for x in rotor.axis))
            v, a = b.v[rotor.dof], b.a[rotor.dof]
            moment = ratio * (e * a + cross(b.receive("V").angular, e * v))
            F[:, c] = b.receive("X_W").force(Force(moment, ca.SX(3, 1))).vector()
            direct[c] = ratio * ratio * a + ratio * dot(e, b.receive("A").angular)
    J = ca.vertcat(ca.SX(0, 6), *(b.columns.T for b in records))
    return Factors(J, ca.sparsify(F), direct, ca.vertcat(ca.SX(0, 1), *(_spring(b) for b in records)))


def _spring(b: Record) -> ca.SX:
    """What the drive gives against the spring: the joint's own effort at rest, friction then being nothing."""
    own = b.node.own_effort(b.q, ca.SX.zeros(b.node.nv)) if b.node.structure.spring else None
    return ca.SX(b.node.nv, 1) if own is None else -own


def regressor(tree: Tree, columns: Sequence[Parameter], found: Factors) -> ca.SX:
    """(2): Y, nv x parameters."""
    Y = ca.SX(tree.model.nv, len(columns))
    for c, column in enumerate(columns):
        if column.carrier >= 0:
            for j in tree.ancestors[column.carrier]:
                s = tree.v_slices[j]
                Y[s, c] = found.J[s, :] @ found.F[:, c]
        if column.row >= 0:
            Y[column.row, c] += found.direct[c]
    return Y


def work(tree: Tree, columns: Sequence[Parameter]) -> int:
    """About how many products (2) takes when it is unrolled."""
    speeds = [sum(s.stop - s.start for s in (tree.v_slices[j] for j in chain)) for chain in tree.ancestors]
    return sum(5 * speeds[column.carrier] for column in columns if column.carrier >= 0)
