"""Loop joints and couplings as equations on the speeds of the tree, on `SX`.

A loop joint between frames a and b, with the relative pose X = X_ab, the joint's nearest coordinates q_c = fit(X),
and T(q_c) the wrenches that it transmits:

    phi = T^T log(placement(q_c)^-1 X)                                                        (1)
    T^T V_ab = G v,    G = T^T Ad(X_Wb)^-1 (J_b - J_a)                                        (2)
    d/dt (G v) = G v' + gamma,
    gamma = T^T Ad(X_Wb)^-1 (A_b - A_a + V_b x V_a) + (dT/dt)^T V_ab     (A at v' = 0)        (3)

J, V and A in world axes about the world's origin, V_ab in b axes; only joints between the nearest common ancestor and
either frame have columns. Where phi = 0, G is its derivative. (2) and (3) hold everywhere. A coupling is

    phi = q_j - offset - sum ratio_k q_k,    G constant,    gamma = 0                         (4)

Constraint forces f enter as M v' + bias = tau + G^T f: the wrench T f acts on b, at its origin and in its axes, and its
opposite on a.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from alembert.expression import evaluate
from alembert.joints import JointType
from alembert.model import WORLD, Coupling, LoopJoint, Placement
from alembert.spatial import Motion, Pose, se3
from alembert.spatial.arrays import skew
from alembert.sweeps.kinematics import place, place_in_world, subspace_in_world
from alembert.sweeps.program import Program, Record, outward, unroll
from alembert.sweeps.tree import Tree


def move_in_world(b: Record) -> None:
    """Velocity, and acceleration at v' = 0, in world axes."""
    relative = Motion.from_vector(b.columns @ b.v)
    b.V = b.parent.V + relative
    b.A = b.parent.A + b.V.cross(relative)
    bias = b.node.joint.bias(b.q, b.v)
    if bias is not None:
        b.A = b.A + b.X_W.motion(Motion.from_vector(bias))


KINEMATICS = Program(
    "constraint_kinematics",
    {"q": "q", "v": "v"},
    (outward(place), outward(place_in_world), outward(subspace_in_world), outward(move_in_world)),
    gravity=False,
)


@dataclass(frozen=True, eq=False)
class Equations:
    """phi (m), G (m x nv), gamma (m), and T^T by rows (m x 6, zero for couplings)."""

    residual: ca.SX
    jacobian: ca.SX
    bias: ca.SX
    basis: ca.SX


def equations(tree: Tree, q: ca.SX, v: ca.SX, parameters: ca.SX) -> Equations:
    """All loops of the model, then all couplings."""
    model = tree.model
    records, world = unroll(KINEMATICS, tree, {"q": q, "v": v}, parameters)
    values = {name: parameters[k] for k, (name, _) in enumerate(model.parameters)}
    parts = [_loop(tree, records, world, loop, values) for loop in model.loops]
    parts += [_coupling(tree, coupling, q, values) for coupling in model.couplings]
    return Equations(
        *(
            ca.vertcat(*(getattr(part, name) for part in parts))
            for name in ("residual", "jacobian", "bias", "basis")
        )
    )


def columns(tree: Tree) -> list[np.ndarray]:
    """For every constraint the speeds that its rows of G may depend on, ascending."""
    found = []
    for loop in tree.model.loops:
        a, b = (_carrier(tree, name)[0] for name in (loop.frame_a, loop.frame_b))
        found.append(np.flatnonzero(tree.support[a] ^ tree.support[b]))
    for coupling in tree.model.couplings:
        names = (coupling.joint, *coupling.masters)
        found.append(np.unique([tree.model.v_slice(name).start for name in names]))
    return found


def _loop(
    tree: Tree, records: list[Record], world: Record, loop: LoopJoint, values: dict[str, ca.SX]
) -> Equations:
    node_a, X_Wa = _frame(tree, records, loop.frame_a, values)
    node_b, X_Wb = _frame(tree, records, loop.frame_b, values)
    a, b = (records[k] if k >= 0 else world for k in (node_a, node_b))
    joint = loop.type.with_constants(ca.vertcat(*(ca.SX(evaluate(x, values)) for x in loop.type.constants())))
    X = X_Wa.inverse() @ X_Wb
    V = X_Wb.motion_inverse(b.V - a.V).vector()
    T = ca.SX(joint.constraint_subspace(joint.fit(X)))
    rows = T.shape[1]
    G = ca.SX(rows, tree.model.nv)
    for nodes, sign in (_between(tree, node_b, node_a, 1.0), _between(tree, node_a, node_b, -1.0)):
        for k in nodes:
            start = tree.v_slices[k].start
            for i in range(records[k].node.nv):
                moved = X_Wb.motion_inverse(Motion.from_vector(sign * records[k].columns[:, i]))
                G[:, start + i] = T.T @ moved.vector()  # (2)
    gamma = T.T @ X_Wb.motion_inverse(b.A - a.A + b.V.cross(a.V)).vector() + _turning(joint, X, V)  # (3)
    return Equations(_residual(joint, X, T), G, gamma, T.T)


def _residual(joint: JointType, X: Pose, T: ca.SX) -> ca.SX:
    """(1)"""
    return T.T @ se3.log(joint.placement(joint.fit(X)).inverse() @ X)


def _turning(joint: JointType, X: Pose, V: ca.SX) -> ca.SX:
    """(dT/dt)^T V, by differentiating T along dX/dt = (R w~, R v)."""
    R, p, W = ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3), ca.SX.sym("V", 6)
    T = ca.SX(joint.constraint_subspace(joint.fit(Pose(R, p))))
    x, rate = ca.vertcat(ca.vec(R), p), ca.vertcat(ca.vec(R @ skew(W[0:3])), R @ W[3:6])
    if not ca.depends_on(T, x):
        return ca.SX(T.shape[1], 1)
    found = ca.vertcat(*(ca.dot(ca.jtimes(T[:, k], x, rate), W) for k in range(T.shape[1])))
    return ca.substitute(
        [found], [R, p, W], [ca.densify(X.rotation), ca.densify(X.translation), ca.densify(V)]
    )[0]


def _coupling(tree: Tree, coupling: Coupling, q: ca.SX, values: dict[str, ca.SX]) -> Equations:
    """(4)"""
    model = tree.model
    G = ca.SX(1, model.nv)
    G[0, model.v_slice(coupling.joint).start] = 1.0
    residual = q[model.q_slice(coupling.joint)] - evaluate(coupling.offset, values)
    for master, ratio in zip(coupling.masters, coupling.ratios, strict=True):
        value = ca.SX(evaluate(ratio, values))
        G[0, model.v_slice(master).start] -= value
        residual = residual - value * q[model.q_slice(master)]
    return Equations(residual, G, ca.SX(1, 1), ca.SX(1, 6))


def _frame(tree: Tree, records: list[Record], name: str, values: dict[str, ca.SX]) -> tuple[int, Pose]:
    """The node that carries a frame (-1: the world), and X_WC."""
    node, placement = _carrier(tree, name)
    X = placement.symbolic_pose(values)
    return node, (records[node].X_W @ X if node >= 0 else X)


def _carrier(tree: Tree, name: str) -> tuple[int, Placement]:
    frame = tree.model.frame(name)
    if frame.body == WORLD:
        return -1, frame.placement
    node, where = tree.carriers[tree.model.body_index(frame.body)]
    return node, where @ frame.placement


def _between(tree: Tree, node: int, other: int, sign: float) -> tuple[list[int], float]:
    """The nodes inboard of one node, itself included, but not inboard of the other."""
    above = tree.ancestors[other] if other >= 0 else ()
    return [k for k in (tree.ancestors[node] if node >= 0 else ()) if k not in above], sign
