"""Loops, couplings and equations on the speeds of the tree, on `SX`.

For a part (see `parts`) with rows B_k on the motions of pairs of frames and C_j on joint speeds,

    V_k = Ad(X_Wb)^-1 (V_b - V_a),    0 = sum B_k V_k + sum C_j v_j = G v
    G = sum B_k Ad(X_Wb)^-1 (J_b - J_a) + C                                                            (1)
    d/dt (G v) = G v' + gamma,
    gamma = sum B_k Ad(X_Wb)^-1 (A_b - A_a + V_b x V_a) + (dB_k/dt) V_k + (dC/dt) v     (A at v' = 0)  (2)

J, V and A in world axes about the world's origin, V_k in b axes; only joints between the nearest common ancestor and
either frame have columns. Where phi = 0, G is the derivative of its holonomic rows. (1) and (2) hold everywhere.

Constraint forces f enter as M v' + bias = tau + G^T f: of a loop, the wrench B^T f acts on b, at its origin and in its
axes, and its opposite on a.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from alembert.constraints.parts import Part, Rows, parts
from alembert.model import WORLD
from alembert.spatial import Motion, Pose
from alembert.spatial.arrays import skew
from alembert.sweeps.kinematics import place, place_in_world, subspace_in_world
from alembert.sweeps.program import Program, Record, outward, unroll
from alembert.sweeps.tree import Tree, Where


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
    """phi (m), G (m x nv), gamma (m), and of loops B by rows (m x 6, zero elsewhere)."""

    residual: ca.SX
    jacobian: ca.SX
    bias: ca.SX
    basis: ca.SX


def equations(tree: Tree, q: ca.SX, v: ca.SX, parameters: ca.SX) -> Equations:
    """All loops of the model, then all couplings, then all equations."""
    model = tree.model
    records, world = unroll(KINEMATICS, tree, {"q": q, "v": v}, parameters)
    values = {name: parameters[k] for k, (name, _) in enumerate(model.parameters)}
    found = [_part(tree, records, world, part, q, v, values) for part in parts(model)]
    return Equations(
        *(
            ca.vertcat(*(getattr(part, name) for part in found))
            for name in ("residual", "jacobian", "bias", "basis")
        )
    )


def columns(tree: Tree) -> list[np.ndarray]:
    """For every constraint the speeds that its rows of G may depend on, ascending."""
    found = []
    for part in parts(tree.model):
        touched = np.zeros(tree.model.nv, dtype=bool)
        for frames in part.pairs:
            a, b = (_carrier(tree, name)[0] for name in frames)
            touched |= tree.support[a] ^ tree.support[b]
        for name in part.joints:
            touched[tree.model.v_slice(name)] = True
        found.append(np.flatnonzero(touched))
    return found


def _part(
    tree: Tree, records: list[Record], world: Record, part: Part, q: ca.SX, v: ca.SX, values: dict[str, ca.SX]
) -> Equations:
    model = tree.model
    ends = [tuple(_frame(tree, records, name, values) for name in pair) for pair in part.pairs]
    poses = [X_Wa.inverse() @ X_Wb for (_, X_Wa), (_, X_Wb) in ends]
    at = [q[model.q_slice(name)] for name in part.joints]
    speeds = [v[model.v_slice(name)] for name in part.joints]
    rows = part.rows(poses, at, values, True)
    m = part.count
    G, gamma = ca.SX(m, model.nv), ca.SX(m, 1)
    velocities = []
    for B, ((node_a, _), (node_b, X_Wb)) in zip(rows.of_pairs, ends, strict=True):
        a, b = (records[k] if k >= 0 else world for k in (node_a, node_b))
        velocities.append(X_Wb.motion_inverse(b.V - a.V).vector())
        for nodes, sign in (_between(tree, node_b, node_a, 1.0), _between(tree, node_a, node_b, -1.0)):
            for k in nodes:
                start = tree.v_slices[k].start
                for i in range(records[k].node.nv):
                    moved = X_Wb.motion_inverse(Motion.from_vector(sign * records[k].columns[:, i]))
                    G[:, start + i] += B @ moved.vector()  # (1)
        gamma += B @ X_Wb.motion_inverse(b.A - a.A + b.V.cross(a.V)).vector()
    for C, name in zip(rows.of_joints, part.joints, strict=True):
        G[:, model.v_slice(name)] += C
    gamma += _turning(tree, part, values, poses, velocities, at, speeds)  # (2)
    basis = rows.of_pairs[0] if part.kind == "loop" else ca.SX(m, 6)
    return Equations(rows.residual, G, gamma, basis)


def _turning(
    tree: Tree,
    part: Part,
    values: dict[str, ca.SX],
    poses: list[Pose],
    velocities: list[ca.SX],
    at: list[ca.SX],
    speeds: list[ca.SX],
) -> ca.SX:
    """dB/dt V + dC/dt v, by differentiating the rows along dX/dt = (R w~, R v) and dq/dt."""
    R = [ca.SX.sym("R", 3, 3) for _ in poses]
    p = [ca.SX.sym("p", 3) for _ in poses]
    W = [ca.SX.sym("V", 6) for _ in poses]
    q = [ca.SX.sym("q", x.numel()) for x in at]
    v = [ca.SX.sym("v", x.numel()) for x in speeds]
    rows: Rows = part.rows([Pose(*pair) for pair in zip(R, p, strict=True)], q, values, False)
    x = ca.vertcat(*map(ca.vec, R), *p, *q)
    turned = [ca.vec(r @ skew(w[0:3])) for r, w in zip(R, W, strict=True)]
    moved = [r @ w[3:6] for r, w in zip(R, W, strict=True)]
    rates = [tree.model.joint(name).type.rate(a, b) for name, a, b in zip(part.joints, q, v, strict=True)]
    total = ca.SX(part.count, 1)
    for B, w in zip((*rows.of_pairs, *rows.of_joints), (*W, *v), strict=True):
        total = total + B @ w
    if not any(ca.depends_on(B, x) for B in (*rows.of_pairs, *rows.of_joints)):
        return ca.SX(part.count, 1)
    found = ca.jtimes(total, x, ca.vertcat(*turned, *moved, *rates))
    actual = [*(X.rotation for X in poses), *(X.translation for X in poses), *velocities, *at, *speeds]
    return ca.substitute([found], [*R, *p, *W, *q, *v], [ca.densify(ca.SX(y)) for y in actual])[0]


def _frame(tree: Tree, records: list[Record], name: str, values: dict[str, ca.SX]) -> tuple[int, Pose]:
    """The node that carries a frame (-1: the world), and X_WC."""
    node, placement = _carrier(tree, name)
    X = placement.symbolic_pose(values)
    return node, (records[node].X_W @ X if node >= 0 else X)


def _carrier(tree: Tree, name: str) -> tuple[int, Where]:
    frame = tree.model.frame(name)
    if frame.body == WORLD:
        return -1, frame.placement
    node, where = tree.carriers[tree.model.body_index(frame.body)]
    return node, where @ frame.placement


def _between(tree: Tree, node: int, other: int, sign: float) -> tuple[list[int], float]:
    """The nodes inboard of one node, itself included, but not inboard of the other."""
    above = tree.ancestors[other] if other >= 0 else ()
    return [k for k in (tree.ancestors[node] if node >= 0 else ()) if k not in above], sign
