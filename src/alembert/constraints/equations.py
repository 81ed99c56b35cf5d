"""Loops, couplings and equations as one thing: rows on the speeds of the tree, on `SX`.

A part refers to pairs of frames (a_k, b_k) with relative poses X_k and velocities V_k in b_k axes, and to joints (or modes
of bodies) with coordinates q_j and speeds v_j. It gives its residual and rows as functions of these:

    phi(X, q),    0 = sum B_k(X, q) V_k + sum C_j(X, q) v_j                                            (1)

A loop is one pair of frames. A coupling has only joints,

    phi = q_j - offset - sum ratio_k q_k                                                               (2)

and an equation any of both: its rows are its derivatives, with dX = X V~ and dq_j = rate(q_j, v_j). On the tree,

    V_k = Ad(X_Wb)^-1 (V_b - V_a),    0 = sum B_k V_k + sum C_j v_j = G v
    G = sum B_k Ad(X_Wb)^-1 (J_b - J_a) + C                                                            (3)
    d/dt (G v) = G v' + gamma,
    gamma = sum B_k Ad(X_Wb)^-1 (A_b - A_a + V_b x V_a) + (dB_k/dt) V_k + (dC/dt) v     (A at v' = 0)  (4)

J, V and A in world axes about the world's origin, V_k in b axes; only joints between the nearest common ancestor and
either frame have columns, and the modes of a flexible body that carries the two at different places. Where phi = 0, G is
the derivative of its holonomic rows. (3) and (4) hold everywhere. Constraints within a vehicle do not depend on where it is
and how fast it flies: all is evaluated with its root at the origin and at rest, so that no digits are lost in orbit.

Constraint forces f enter as M v' + bias = tau + G^T f: of a loop, the wrench B^T f acts on b, at its origin and in its
axes, and its opposite on a.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.errors import ModelError
from alembert.expression import Expression, evaluate
from alembert.model.elements import DOT
from alembert.spatial import Motion, Pose
from alembert.spatial.arrays import skew
from alembert.sweeps.dynamics import accelerate, move, place, place_in_world, subspace_in_world
from alembert.sweeps.node import Record
from alembert.sweeps.program import Program, counterpart, outward, seen, unroll
from alembert.sweeps.tree import Tree, Where

if TYPE_CHECKING:
    from alembert.joints import JointType, Pair
    from alembert.model import Coupling, Equation, LoopJoint, Model
    from alembert.model.space import Owner

Values = Mapping[str, ca.SX]


@dataclass(frozen=True, eq=False)
class Rows:
    """phi (m), B_k (m x 6) by pair and C_j (m x nv_j) by owner of coordinates."""

    residual: ca.SX
    of_pairs: tuple[ca.SX, ...]
    of_owners: tuple[ca.SX, ...]


@dataclass(frozen=True, eq=False)
class Part:
    """`rows(poses, coordinates, parameters, residual)` gives (1), phi if asked for; `kind` is what messages call it.

    `graphs` are those of a loop of which all constants are numbers.
    """

    kind: str
    name: str
    holonomic: tuple[bool, ...]
    pairs: tuple[tuple[str, str], ...]
    owners: tuple[Owner, ...]
    rows: Callable[[Sequence[Pose], Sequence[ca.SX], Values, bool], Rows]
    graphs: tuple[ca.Function, ca.Function] | None = None

    @property
    def count(self) -> int:
        return len(self.holonomic)


def parts(model: Model) -> tuple[Part, ...]:
    """All loops, then all couplings, then all equations."""
    return (
        *(_loop(loop) for loop in model.loops),
        *(_coupling(model, coupling) for coupling in model.couplings),
        *(_equation(model, equation) for equation in model.equations),
    )


def _loop(loop: LoopJoint) -> Part:
    def rows(poses: Sequence[Pose], _: Sequence[ca.SX], values: Values, residual: bool) -> Rows:
        if graphs is not None:
            found, B = (ca.SX(ca.sparsify(x)) for x in graphs[0](poses[0].rotation, poses[0].translation))
            return Rows(found, (B,), ())
        constants = ca.vertcat(*(ca.SX(evaluate(x, values)) for x in loop.type.constants()))
        return pair_rows(loop.type, constants, poses[0], residual=residual)

    numeric = not any(isinstance(x, Expression) for x in loop.type.constants())
    graphs = _loop_graphs(loop.type) if numeric else None
    frames = ((loop.frame_a, loop.frame_b),)
    return Part("loop", loop.name, loop.type.holonomic, frames, (), rows, graphs)


@lru_cache(200)
def _loop_graphs(pair: Pair) -> tuple[ca.Function, ca.Function]:
    """phi and B as a function of R and p, (dB/dt) V as one of R, p and V: made once for all loops of a kind.

    To call them repeats every operation with the simplifications of CasADi, many times faster than to write it again.
    """
    R, p, V = ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3), ca.SX.sym("V", 6)
    constants = ca.SX(ca.DM([float(evaluate(x, {})) for x in pair.constants()]))
    rows = pair_rows(pair, constants, Pose(R, p))
    turned = rate_of_rows(
        lambda poses, _: pair_rows(pair, constants, poses[0], residual=False), [Pose(R, p)], [V]
    )
    phi = ca.Function("phi", [R, p], [rows.residual, rows.of_pairs[0]])
    return phi, ca.Function("turned", [R, p, V], [turned])


def pair_rows(pair: Pair, constants: ca.SX, X: Pose, *, residual: bool = True) -> Rows:
    """Of a pair with these constants, at a relative pose."""
    own = pair.with_constants(constants)
    return Rows(ca.SX(own.residual(X)) if residual else ca.SX(), (ca.SX(own.rows(X)),), ())


def _coupling(model: Model, coupling: Coupling) -> Part:
    def rows(_: Sequence[Pose], q: Sequence[ca.SX], values: Values, __: bool) -> Rows:
        """(2)"""
        residual = q[0] - evaluate(coupling.offset, values)
        slopes = [ca.SX(1.0)]
        for x, ratio in zip(q[1:], coupling.ratios, strict=True):
            value = ca.SX(evaluate(ratio, values))
            residual = residual - value * x
            slopes.append(-value)
        return Rows(residual, (), tuple(slopes))

    owners = tuple(model.space[model.joint_index(name)] for name in (coupling.joint, *coupling.masters))
    return Part("coupling", coupling.name, (True,), (), owners, rows)


def _equation(model: Model, equation: Equation) -> Part:
    frames: list[str] = []
    owners: list[Owner] = []
    owner_of = [o for o in model.space for _ in range(o.type.nq)]
    places: list[tuple[str, int, Any]] = []
    for _, quantity in equation.inputs:
        if quantity in model.coordinate_names:
            k = model.coordinate_names.index(quantity)
            owner = owner_of[k]
            owners += [owner] if owner not in owners else []
            places.append(("coordinate", owners.index(owner), k - owner.q.start))
        else:
            frame, _, part = quantity.rpartition(".")
            frames += [frame] if frame not in frames else []
            places.append(("frame", frames.index(frame), tuple("xyz".index(letter) for letter in part)))

    def rows(poses: Sequence[Pose], q: Sequence[ca.SX], values: Values, __: bool) -> Rows:
        V = [ca.SX.sym("V", 6) for _ in frames]
        v = [ca.SX.sym("v", owner.type.nv) for owner in owners]
        inputs, rates = {}, {}
        for (name, _), (what, k, at) in zip(equation.inputs, places, strict=True):
            if what == "coordinate":
                inputs[name] = q[k][at]
                rates[name] = ca.SX(owners[k].type.rate(q[k], v[k]))[at]
            else:
                inputs[name] = _entry(poses[k].rotation, poses[k].translation, at)
                turned = poses[k].rotation @ skew(V[k][0:3])
                rates[name] = _entry(turned, poses[k].rotation @ V[k][3:6], at)
        residual, speeds = [], []
        for text, holonomic in zip(equation.formulas, equation.holonomic, strict=True):
            phi, rate = _differentiated(equation, text, values, holonomic=holonomic)
            given = [ca.vertcat(*(ca.densify(x[n]) for n, _ in equation.inputs)) for x in (inputs, rates)]
            residual.append(phi(given[0], ca.SX.zeros(len(inputs))) if holonomic else ca.SX(1, 1))
            speeds.append(rate(*given))
        total = ca.vertcat(*speeds)
        return Rows(
            ca.vertcat(*residual),
            tuple(ca.jacobian(total, x) for x in V),
            tuple(ca.jacobian(total, x) for x in v),
        )

    pairs = tuple((equation.reference, frame) for frame in frames)
    return Part("equation", equation.name, equation.holonomic, pairs, tuple(owners), rows)


def _differentiated(
    equation: Equation, text: str, values: Values, *, holonomic: bool
) -> tuple[Callable[..., ca.SX], Callable[..., ca.SX]]:
    """A formula and what is to vanish of the rates, as functions of the inputs and their rates."""
    names = [name for name, _ in equation.inputs]
    x, dx = ca.SX.sym("x", len(names)), ca.SX.sym("dx", len(names))
    known = dict(values) | {name: x[k] for k, name in enumerate(names)}
    known |= {name + DOT: dx[k] for k, name in enumerate(names)}
    phi = ca.SX(Expression(text).evaluate(known))
    rate = ca.jtimes(phi, x, dx) if holonomic else phi
    if not holonomic:
        at_rest = ca.simplify(ca.substitute(phi, dx, ca.SX.zeros(len(names))))
        if ca.depends_on(ca.jacobian(phi, dx), dx) or not at_rest.is_zero():
            raise ModelError(
                f"equation {equation.name!r}: {text[:80]!r} is not linear in the rates of its inputs"
            )

    def of(what: ca.SX) -> Callable[..., ca.SX]:
        return lambda inputs, rates: ca.substitute([what], [x, dx], [ca.densify(inputs), ca.densify(rates)])[
            0
        ]

    return of(phi), of(rate)


def _entry(R: ca.SX, p: ca.SX, at: tuple[int, ...]) -> ca.SX:
    return p[at[0]] if len(at) == 1 else R[at[0], at[1]]


# --- on the speeds of the tree ----------------------------------------------------------------------------------


def move_in_world(b: Record) -> None:
    """Velocity, and acceleration at v' = 0, in world axes."""
    relative = Motion.from_vector(b.columns @ b.v)
    b.V = b.receive("V") + relative
    b.A = b.receive("A") + b.V.cross(relative)
    bias = b.node.joint.bias(b.q, b.v)
    if bias is not None:
        b.A = b.A + b.X_W.motion(Motion.from_vector(bias))


KINEMATICS = Program(
    "constraint_kinematics",
    {"q": "q", "v": "v"},
    (outward(place), outward(place_in_world), outward(subspace_in_world), outward(move_in_world)),
    gravity=False,
)


def in_world(b: Record) -> None:
    """V and A in world axes, from the body's own, in which its modes move what hangs on it."""
    b.V, b.A = b.X_W.motion(b.V), b.X_W.motion(b.A)


counterpart(in_world)(in_world)

DEFORMED_KINEMATICS = Program(
    "deformed_constraint_kinematics",
    {"q": "q", "v": "v", "a": "v"},
    tuple(outward(step) for step in (place, place_in_world, subspace_in_world, move, accelerate, in_world)),
    gravity=False,
)
"""the same where bodies have modes, with a left out: it is zero"""


@dataclass(frozen=True, eq=False)
class Equations:
    """phi (m), G (m x nv), gamma (m), and of loops B by rows (m x 6, zero elsewhere)."""

    residual: ca.SX
    jacobian: ca.SX
    bias: ca.SX
    basis: ca.SX


def equations(tree: Tree, q: ca.SX, v: ca.SX, parameters: ca.SX) -> Equations:
    """All loops of the model, then all couplings, then all equations."""
    model, given = tree.model, parts(tree.model)
    records: list[Record] = []
    world = Record()
    if any(part.pairs for part in given):  # couplings alone do not ask where bodies are
        program = DEFORMED_KINEMATICS if tree.has_modes else KINEMATICS
        records, world = unroll(program, tree, dict(zip("qv", _near(tree, q, v), strict=True)), parameters)
    values = {name: parameters[k] for k, (name, _) in enumerate(model.parameters)}
    found = [_part(tree, records, world, part, q, v, values) for part in given]
    return Equations(
        *(
            ca.vertcat(*(getattr(part, name) for part in found))
            for name in ("residual", "jacobian", "bias", "basis")
        )
    )


def unseen_roots(tree: Tree) -> list[int]:
    """The roots whose place and velocity no constraint sees: all act within one tree, and none on the root's joint."""
    root: list[int] = []
    for k, parent in enumerate(tree.parents):
        root.append(k if parent < 0 else root[parent])
    seen: set[int] = set()
    for part in parts(tree.model):
        for pair in part.pairs:
            ends = {root[k] if (k := carrier(tree, name)[0]) >= 0 else -1 for name in pair}
            seen |= ends if len(ends) > 1 else set()
        starts = [owner.v.start for owner in part.owners]
        seen |= {k for k, s in enumerate(tree.v_slices) if s.start in starts and s.stop > s.start}
    return [k for k, parent in enumerate(tree.parents) if parent < 0 and k not in seen]


def _near(tree: Tree, q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
    """The state with roots that no constraint sees at the origin and without velocity."""
    q, v = ca.SX(q), ca.SX(v)
    for k in unseen_roots(tree):
        found = tree.joints[k].type.translation
        if found is not None:
            at, moving = tree.q_slices[k].start, tree.v_slices[k].start
            q[at + found.position.start : at + found.position.stop] = 0.0
            v[moving + found.linear.start : moving + found.linear.stop] = 0.0
    return q, v


def columns(tree: Tree) -> list[np.ndarray]:
    """For every constraint the speeds that its rows of G may depend on, ascending."""
    found = []
    for part in parts(tree.model):
        touched = np.zeros(tree.model.nv, dtype=bool)
        for frames in part.pairs:
            for k, _, _ in movers(tree, *(carrier(tree, name)[0] for name in frames)):
                touched[tree.v_slices[k]] = True
        for owner in part.owners:
            touched[owner.v] = True
        found.append(np.flatnonzero(touched))
    return found


def _part(
    tree: Tree, records: list[Record], world: Record, part: Part, q: ca.SX, v: ca.SX, values: dict[str, ca.SX]
) -> Equations:
    model = tree.model
    ends = [tuple(_frame(tree, records, name, values) for name in pair) for pair in part.pairs]
    poses = [X_Wa.inverse() @ X_Wb for (_, X_Wa), (_, X_Wb) in ends]
    at = [q[owner.q] for owner in part.owners]
    speeds = [v[owner.v] for owner in part.owners]
    rows = part.rows(poses, at, values, True)
    m = part.count
    G, gamma = ca.SX(m, model.nv), ca.SX(m, 1)
    velocities = []
    for B, ((node_a, _), (node_b, X_Wb)) in zip(rows.of_pairs, ends, strict=True):
        a, b = (records[k] if k >= 0 else world for k in (node_a, node_b))
        velocities.append(X_Wb.motion_inverse(b.V - a.V).vector())
        for k, end, sign in movers(tree, node_a, node_b):
            start, moving = tree.v_slices[k].start, seen(tree, records, end, k).columns
            for i in range(moving.shape[1]):
                moved = X_Wb.motion_inverse(Motion.from_vector(sign * moving[:, i]))
                G[:, start + i] += B @ moved.vector()  # (3)
        gamma += B @ X_Wb.motion_inverse(b.A - a.A + b.V.cross(a.V)).vector()
    for C, owner in zip(rows.of_owners, part.owners, strict=True):
        G[:, owner.v] += C
    types = [owner.type for owner in part.owners]
    if part.graphs is not None:
        gamma += ca.sparsify(part.graphs[1](poses[0].rotation, poses[0].translation, velocities[0]))  # (4)
    else:
        gamma += rate_of_rows(
            lambda X, q: part.rows(X, q, values, False), poses, velocities, (at, speeds, types)
        )  # (4)
    basis = rows.of_pairs[0] if part.kind == "loop" else ca.SX(m, 6)
    return Equations(rows.residual, G, gamma, basis)


def rate_of_rows(
    rows: Callable[[Sequence[Pose], Sequence[ca.SX]], Rows],
    poses: Sequence[Pose],
    velocities: Sequence[ca.SX],
    joints: tuple[Sequence[ca.SX], Sequence[ca.SX], Sequence[JointType]] = ((), (), ()),
) -> ca.SX:
    """dB/dt V + dC/dt v, by differentiating the rows along dX/dt = (R w~, R v) and dq/dt; `joints`: q, v and types."""
    at, speeds, types = joints
    R = [ca.SX.sym("R", 3, 3) for _ in poses]
    p = [ca.SX.sym("p", 3) for _ in poses]
    W = [ca.SX.sym("V", 6) for _ in poses]
    q = [ca.SX.sym("q", x.numel()) for x in at]
    v = [ca.SX.sym("v", x.numel()) for x in speeds]
    found = rows([Pose(*pair) for pair in zip(R, p, strict=True)], q)
    matrices = (*found.of_pairs, *found.of_owners)
    x = ca.vertcat(*map(ca.vec, R), *p, *q)
    if not any(ca.depends_on(B, x) for B in matrices):
        return ca.SX(matrices[0].shape[0], 1)
    turned = [ca.vec(r @ skew(w[0:3])) for r, w in zip(R, W, strict=True)]
    moved = [r @ w[3:6] for r, w in zip(R, W, strict=True)]
    rates = [kind.rate(a, b) for kind, a, b in zip(types, q, v, strict=True)]
    total = sum((B @ w for B, w in zip(matrices, (*W, *v), strict=True)), ca.SX(matrices[0].shape[0], 1))
    change = ca.jtimes(total, x, ca.vertcat(*turned, *moved, *rates))
    actual = [*(X.rotation for X in poses), *(X.translation for X in poses), *velocities, *at, *speeds]
    return ca.substitute([change], [*R, *p, *W, *q, *v], [ca.densify(ca.SX(y)) for y in actual])[0]


def _frame(tree: Tree, records: list[Record], name: str, values: dict[str, ca.SX]) -> tuple[int, Pose]:
    """The node that carries a frame (-1: the world), and X_WC."""
    node, placement = carrier(tree, name)
    X = placement.symbolic_pose(values)
    return node, (records[node].X_W @ X if node >= 0 else X)


def carrier(tree: Tree, name: str) -> tuple[int, Where]:
    return tree.carrier(tree.model.frame(name))


def movers(tree: Tree, a: int, b: int) -> list[tuple[int, int, float]]:
    """The nodes that move b relative to a (-1: the world), each with the end that it moves and a sign.

    They are those inboard of one end but not of the other. A mode node inboard of both counts for each where the two hang
    at different places of its body: that is the nearest one inboard of both.
    """
    of_a, of_b = (tree.ancestors[k] if k >= 0 else () for k in (a, b))
    shared = next((k for k in of_b if k in of_a), -1)
    both = {shared} if shared >= 0 and a != b and tree.flexible[shared] is not None else set()
    found = [(k, b, 1.0) for k in of_b if k not in of_a or k in both]
    return found + [(k, a, -1.0) for k in of_a if k not in of_b or k in both]
