"""Every algorithm as a graph on `SX`, by the name of the method that has it: for expressions and for C source.

The dynamics are the programs of `alembert.algorithms.programs`. What follows from poses, velocities and composite
inertias is put together here from the same records, for a frame C on body B at X_BC:

    V_C = Ad(X_BC)^-1 V_B,  referred by Ad(X_WC) to the world, by its rotation alone to world axes       (1)
    d/dt of the latter:  R (A_C + (0; w x v))                                                           (2)
    c = (sum m c)_W / sum m,   h about c = (h_w - c x h_v; h_v)                                         (3)
    M x = -tau_q, ...   with M = L^T D L, for the derivatives of forward dynamics                        (4)

Where m marks the free speeds of hybrid dynamics, (4) has m M m + (1 - m) for M.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert import sweeps
from alembert.algorithms import kernels, manifold
from alembert.algorithms.frames import Reference
from alembert.algorithms.programs import LABELS, PROGRAMS
from alembert.constraints import compiled, reduced_symbols
from alembert.constraints.equations import equations
from alembert.engine.kernel import Argument
from alembert.errors import NumericalError
from alembert.sensitivity.inverse_dynamics import INVERSE_DYNAMICS_DERIVATIVES
from alembert.sensitivity.mass_factor import Pattern
from alembert.spatial import Motion, Pose
from alembert.spatial.arrays import cross
from alembert.sweeps import Program, Tree, expressions
from alembert.sweeps import operators as steps
from alembert.sweeps.program import Record, outward, unroll

if TYPE_CHECKING:
    from alembert.model import Model


@dataclass(frozen=True)
class Options:
    """What makes another graph of the same algorithm, rather than being an input of it."""

    frame: str = "world"
    reference: Reference = "local"
    point: bool = False
    """whether a point on the frame is an input"""
    about: str = "center_of_mass"
    wrenches: tuple[str, ...] = ()
    """the frames on which wrenches act, an input each"""
    free: tuple[bool, ...] | None = None
    """which speeds are free in hybrid dynamics; None makes it an input"""
    frames: tuple[tuple[int, Any], ...] = ()
    """nodes and placements, for the admittance"""
    chosen: tuple[int, ...] = ()
    """rows of constraints in the minimal set"""
    active: tuple[int, ...] = ()
    """rows of the constraints that hold"""
    independent: tuple[int, ...] = ()
    """speeds that determine the others"""
    drives: tuple[tuple[int, ...], tuple[float, ...]] = ((), ())
    """speeds that are driven in inverse dynamics, and their weights"""
    guarded: bool = False
    """NaN where the minimal set does not serve"""


@dataclass(frozen=True)
class Graph:
    """An algorithm with its inputs and the names of its results."""

    inputs: tuple[Argument, ...]
    function: ca.Function
    results: tuple[Argument, ...]


def graph(model: Model, name: str, options: Options) -> Graph:
    """The graph of an algorithm; the parameters are its last input, where the model has any."""
    inputs, names = graph_inputs(model, name, options)
    build = (CONSTRAINED[name] if name in CONSTRAINED else GRAPHS[name])[1]
    takes_parameters = bool(inputs) and inputs[-1].name == "parameters"
    symbols = [ca.SX.sym(f"x{k}", *a.shape) for k, a in enumerate(inputs)]
    p = symbols[-1] if takes_parameters else ca.SX(0, 1)
    wrenches = symbols[len(names) : len(names) + len(options.wrenches)]
    found = build(
        Inputs(
            model.compute.tree,
            options,
            dict(zip(names, symbols, strict=False)),
            dict(zip(options.wrenches, wrenches, strict=True)),
            p,
        )
    )
    outputs = [ca.densify(value) for value in found.values()]
    function = ca.Function(name, symbols, outputs, [f"x{k}" for k in range(len(inputs))], list(found))
    return Graph(tuple(inputs), function, graph_results(name, {key: x.shape for key, x in found.items()}))


def graph_results(name: str, shapes: Mapping[str, tuple[int, int]]) -> tuple[Argument, ...]:
    """The results of an algorithm: columns, but for those that are matrices."""
    return tuple(Argument(key, x if name in MATRICES or x[1] > 1 else x[:1]) for key, x in shapes.items())


def graph_inputs(model: Model, name: str, options: Options) -> tuple[list[Argument], tuple[str, ...]]:
    """All inputs of an algorithm, and the names of those that are neither wrenches nor the parameters."""
    names, _ = CONSTRAINED[name] if name in CONSTRAINED else GRAPHS[name]
    if options.point:
        names = (*names, "point")
    if name == "hybrid_dynamics" and options.free is None:
        names = (*names, "free")
    inputs = [_argument(model, key) for key in names]
    inputs += [Argument(f"wrench on {frame!r}", (6,), "moment, then force") for frame in options.wrenches]
    if model.parameters and name not in manifold.NAMES:
        known = ", ".join(key for key, _ in model.parameters)
        inputs.append(Argument("parameters", (len(model.parameters),), f"the model has {known}"))
    return inputs, names


def _argument(model: Model, name: str) -> Argument:
    if name == "point":
        return Argument(name, (3,))
    extent: Any = "q" if name in ("q", "q0", "q1") else "v"
    return Argument(name, (model.nq if extent == "q" else model.nv,), kernels.hint(model, extent))


@dataclass(frozen=True)
class Inputs:
    """What the graph of an algorithm is made from."""

    tree: Tree
    options: Options
    given: Mapping[str, ca.SX]
    wrenches: Mapping[str, ca.SX]
    p: ca.SX

    def run(self, program: Program, **more: ca.SX) -> dict[str, ca.SX]:
        """The results of a program, for the inputs of the algorithm or others."""
        given = {**self.given, **more}
        if self.wrenches and "wrench" in program.given:
            given["wrench"] = self.wrench_rows
        if not len(self.tree) and program.total:
            return kernels.totals_of_nothing(program)
        return expressions(program, self.tree, given, self.p)

    @cached_property
    def parameters(self) -> dict[str, ca.SX]:
        return {name: self.p[k] for k, (name, _) in enumerate(self.tree.model.parameters)}

    @cached_property
    def wrench_rows(self) -> ca.SX:
        """(n, 6): what acts on the nodes, in their axes."""
        rows = ca.SX(len(self.tree), 6)
        for frame, F in self.wrenches.items():
            node, X = self.locate(frame)
            rows[node, :] += kernels.carried(X, F).T
        return rows

    def locate(self, frame: str) -> tuple[int, Pose]:
        node, placement = self.tree.model.compute.carrier(frame)
        return node, placement.symbolic_pose(self.parameters)

    def inverse(self, M: ca.SX) -> ca.SX:
        """Of the mass matrix."""
        pattern = Pattern(self.tree)
        return _solved(pattern, pattern.factor(M), ca.SX.eye(self.tree.model.nv))

    @cached_property
    def moved(self) -> tuple[list[Record], Record]:
        """Records with poses, and with velocities and accelerations as far as speeds and accelerations are given."""
        steps = [sweep for name, sweep in _MOTIONS if name in self.given]
        program = Program(
            "motion", {name: _EXTENTS[name] for name, _ in _MOTIONS}, tuple(steps), gravity=False
        )
        return unroll(program, self.tree, self.given, self.p)

    @cached_property
    def at(self) -> tuple[Record, Pose, int]:
        """The record of the body that carries the frame, the frame's pose on it, and the index of its node."""
        node, X_BC = self.locate(self.options.frame)
        if self.options.point:
            X_BC = X_BC @ Pose(ca.SX.eye(3), self.given["point"])
        records, base = self.moved
        return (records[node] if node >= 0 else base), X_BC, node

    def refer(self, X_WC: Pose, V: Motion) -> Motion:
        """(1)"""
        if self.options.reference == "local":
            return V
        if self.options.reference == "world":
            return X_WC.motion(V)
        return Motion(X_WC.rotation @ V.angular, X_WC.rotation @ V.linear)


_EXTENTS: dict[str, Any] = {"q": "q", "v": "v", "a": "v"}
_MOTIONS = (
    ("q", outward(sweeps.kinematics.place)),
    ("q", outward(sweeps.kinematics.place_in_world)),
    ("q", outward(sweeps.kinematics.subspace_in_world)),
    ("v", outward(sweeps.kinematics.move)),
    ("a", outward(sweeps.kinematics.accelerate)),
)

Results = dict[str, ca.SX]


def _of_program(name: str, program: Program, names: tuple[str, ...]) -> tuple[tuple[str, ...], Any]:
    labels = LABELS.get(name, {})

    def build(s: Inputs) -> Results:
        more = {inside: s.given[label] for inside, label in labels.items()}
        return s.run(program, **more)

    return tuple(labels.get(key, key) for key in names), build


def _frame_pose(s: Inputs) -> Results:
    record, X_BC, _ = s.at
    X = record.X_W @ X_BC
    return {"rotation": X.rotation, "translation": X.translation}


def _frame_velocity(s: Inputs) -> Results:
    record, X_BC, _ = s.at
    return {"velocity": s.refer(record.X_W @ X_BC, X_BC.motion_inverse(record.V)).vector()}


def _frame_acceleration(s: Inputs) -> Results:
    """(2)"""
    record, X_BC, _ = s.at
    V, A = X_BC.motion_inverse(record.V), X_BC.motion_inverse(record.A)
    if s.options.reference == "local_world_aligned":
        A = Motion(A.angular, A.linear + cross(V.angular, V.linear))
    return {"acceleration": s.refer(record.X_W @ X_BC, A).vector()}


def _frame_jacobian_rate(s: Inputs) -> Results:
    given = {**s.given, "a": ca.SX(s.tree.model.nv, 1)}
    return {"rate": _frame_acceleration(replace(s, given=given, wrenches={}))["acceleration"]}


def _frame_jacobian(s: Inputs) -> Results:
    record, X_BC, node = s.at
    X_WC = record.X_W @ X_BC
    J = ca.SX(6, s.tree.model.nv)
    for k in s.tree.ancestors[node] if node >= 0 else ():
        columns = s.moved[0][k].columns
        for i in range(columns.shape[1]):
            V = X_WC.motion_inverse(Motion.from_vector(columns[:, i]))
            J[:, s.tree.v_slices[k].start + i] = s.refer(X_WC, V).vector()
    return {"jacobian": J}


def _center_of_mass(s: Inputs) -> Results:
    """(3)"""
    total = s.run(sweeps.COMPOSITE)["I"]
    if total[0].is_zero():
        name = s.tree.model.name
        raise NumericalError(f"center_of_mass: nothing that moves in the model {name!r} has mass")
    return {"center": total[1:4] / total[0]}


def _momentum(s: Inputs) -> Results:
    return {"h": _about(s, s.run(sweeps.MOMENTUM)["h"])}


def _momentum_matrix(s: Inputs) -> Results:
    return {"matrix": _about(s, s.run(sweeps.MOMENTUM_MATRIX)["Y"].T)}


def _about(s: Inputs, h: ca.SX) -> ca.SX:
    """(3)"""
    if s.options.about == "world":
        return h
    return ca.vertcat(h[:3, :] - ca.skew(_center_of_mass(s)["center"]) @ h[3:, :], h[3:, :])


def _energy(s: Inputs) -> Results:
    return {"E": s.run(sweeps.KINETIC_ENERGY)["T"] + s.run(sweeps.POTENTIAL_ENERGY)["E"]}


def _power(s: Inputs) -> Results:
    total = ca.dot(s.given["tau"], s.given["v"])
    records, _ = s.moved
    for frame, F in s.wrenches.items():
        node, X = s.locate(frame)
        if node >= 0:
            total += ca.dot(F, X.motion_inverse(records[node].V).vector())
    return {"P": total}


def _inverse_mass_matrix(s: Inputs) -> Results:
    return {"inverse": s.inverse(s.run(sweeps.MASS_MATRIX)["matrix"])}


def _solved(pattern: Pattern, factor: ca.SX, columns: ca.SX) -> ca.SX:
    if not columns.shape[1]:
        return columns
    return ca.horzcat(*(pattern.solve(factor, columns[:, k]) for k in range(columns.shape[1])))


def _forward_derivatives(s: Inputs) -> Results:
    """(4)"""
    a = s.run(sweeps.FORWARD_DYNAMICS)["a"]
    d = s.run(INVERSE_DYNAMICS_DERIVATIVES, a=a)
    pattern = Pattern(s.tree)
    factor = pattern.factor(d["da"])
    rows = {"dq": -d["dq"], "dv": -d["dv"], "dtau": ca.SX.eye(s.tree.model.nv)}
    return {"acceleration": a} | {name: _solved(pattern, factor, b) for name, b in rows.items()}


def _hybrid(s: Inputs) -> Results:
    free = s.given["free"] if s.options.free is None else ca.SX(ca.DM([float(x) for x in s.options.free]))
    found = s.run(sweeps.HYBRID_DYNAMICS, a_given=s.given["a"], free=free)
    return {"accelerations": found["a"], "efforts": found["effort"]}


def _hybrid_derivatives(s: Inputs) -> Results:
    """(4) for the free speeds; the efforts of the others follow from M a + tau_q dq + tau_v dv."""
    assert s.options.free is not None
    result = _hybrid(s)
    d = s.run(INVERSE_DYNAMICS_DERIVATIVES, a=result["accelerations"])
    n = s.tree.model.nv
    m = ca.diag(ca.SX(ca.DM([float(x) for x in s.options.free])))
    rest = ca.SX.eye(n) - m
    pattern = Pattern(s.tree)
    factor = pattern.factor(m @ d["da"] @ m + rest)

    def respond(rows: ca.SX) -> tuple[ca.SX, ca.SX]:
        change = _solved(pattern, factor, -m @ rows)
        return change, rest @ (rows + d["da"] @ change)

    a_q, tau_q = respond(d["dq"])
    a_v, tau_v = respond(d["dv"])
    driven = _solved(pattern, factor, m)
    a_given = rest + driven - _solved(pattern, factor, m @ d["da"] @ rest)
    return {
        **result,
        **{"a_q": a_q, "tau_q": tau_q, "a_v": a_v, "tau_v": tau_v},
        **{"a_given": a_given, "tau_given": m + rest @ d["da"] @ a_given},
    }


def _constrained(s: Inputs) -> Results:
    """Constrained accelerations, the forces of all rows, and the wrenches of loops."""
    rows = s.tree.model.compute.constraint_rows
    masks = np.zeros((2, rows.count))
    masks[0, list(s.options.chosen)] = 1.0
    masks[1, list(s.options.active)] = 1.0
    given = dict(s.given)
    if s.wrenches:
        given["wrench"] = s.wrench_rows
    slices = list(rows.slices.values())
    a, f, wrenches = compiled.solution(
        s.tree.model, slices, (masks[0], masks[1]), given, s.p, guarded=s.options.guarded
    )
    return {"a": a, "forces": f, "wrenches": wrenches}


def _constrained_forward(s: Inputs) -> Results:
    return {"a": _constrained(s)["a"]}


def _constrained_hybrid(s: Inputs) -> Results:
    """From a = a_0 + A_p tau_p, affine in the efforts of the prescribed speeds, A_pp tau_p = a_p - a_0p.

    What is prescribed is in the options; the input `free` changes nothing.
    """
    assert s.options.free is not None
    p = [k for k, free in enumerate(s.options.free) if not free]
    tau, unknown = ca.SX(s.given["tau"]), ca.SX.sym("unknown", len(p))
    tau[p] = unknown
    a = _constrained(replace(s, given={**s.given, "tau": tau}))["a"]
    if not p:
        return {"a": a, "effort": tau}
    A_p = ca.densify(ca.jacobian(a, unknown))
    a_0 = ca.substitute(a, unknown, ca.SX.zeros(len(p)))
    D, LT, order = ca.ldl(A_p[p, :])
    found = ca.ldl_solve(s.given["a"][p] - a_0[p], D, LT, order)
    tau[p] = found
    return {"a": a_0 + A_p @ found, "effort": tau}


def _constrained_inverse(s: Inputs) -> Results:
    """Efforts, the forces of all rows, and the wrenches of loops."""
    o, model = s.options, s.tree.model
    given = dict(s.given) | ({"wrench": s.wrench_rows} if s.wrenches else {})
    slices = list(model.compute.constraint_rows.slices.values())
    u, f, wrenches = reduced_symbols.inverse(
        model, slices, (o.chosen, o.active, o.independent), o.drives, given, s.p, guarded=o.guarded
    )
    return {"efforts": u, "forces": f, "wrenches": wrenches}


def _constrained_efforts(s: Inputs) -> Results:
    return {"efforts": _constrained_inverse(s)["efforts"]}


def _independent(s: Inputs) -> Results:
    found = equations(s.tree, s.given["q"], s.given["v"], s.p)
    by = reduced_symbols.basis(found, s.options.chosen, s.options.independent)
    return {"E": by.E, "rate": by.rate}


def _admittance(s: Inputs) -> Results:
    places = [(node, place.symbolic_pose(s.parameters)) for node, place in s.options.frames]
    return {"Lambda": steps.admittance(s.tree, places, s.given["q"], s.p)}


def _on_manifold(name: str) -> tuple[tuple[str, ...], Any]:
    def build(s: Inputs) -> Results:
        result = {"integrate": "moved", "difference": "dv", "rate": "dq"}[name]
        return {result: getattr(s.tree.model.space, name)(*s.given.values())}

    return manifold.NAMES[name], build


GRAPHS: dict[str, tuple[tuple[str, ...], Callable[[Inputs], Results]]] = {
    **{name: _of_program(name, *found) for name, found in PROGRAMS.items()},
    "hybrid_dynamics": (("q", "v", "tau", "a"), _hybrid),
    "inverse_mass_matrix": (("q",), _inverse_mass_matrix),
    "frame_pose": (("q",), _frame_pose),
    "frame_velocity": (("q", "v"), _frame_velocity),
    "frame_acceleration": (("q", "v", "a"), _frame_acceleration),
    "frame_jacobian": (("q",), _frame_jacobian),
    "frame_jacobian_rate": (("q", "v"), _frame_jacobian_rate),
    "center_of_mass": (("q",), _center_of_mass),
    "momentum": (("q", "v"), _momentum),
    "momentum_matrix": (("q",), _momentum_matrix),
    "energy": (("q", "v"), _energy),
    "power": (("q", "v", "tau"), _power),
    "forward_dynamics_derivatives": (("q", "v", "tau"), _forward_derivatives),
    "hybrid_dynamics_derivatives": (("q", "v", "tau", "a"), _hybrid_derivatives),
    "innovations": _of_program("innovations", steps.INNOVATIONS, ("q",)),
    "diagonalising_velocities": _of_program("", steps.DIAGONALISING_VELOCITIES, ("q", "v")),
    "velocities_from_diagonal": _of_program("", steps.VELOCITIES_FROM_DIAGONAL, ("q", "n")),
    "admittance": (("q",), _admittance),
    **{name: _on_manifold(name) for name in manifold.NAMES},
}
"""inputs in order, and what makes the results"""
MATRICES = {
    "mass_matrix",
    "inverse_mass_matrix",
    "frame_jacobian",
    "momentum_matrix",
    "innovations",
    "inverse_dynamics_derivatives",
}
"""whose results are matrices, also where a model has one speed and they have one column"""
CONSTRAINED = {
    "constrained_dynamics": (("q", "v", "tau"), _constrained),
    "constrained_accelerations": (("q", "v", "tau"), _constrained_forward),
    "constrained_hybrid": (("q", "v", "tau", "a", "free"), _constrained_hybrid),
    "constrained_inverse_dynamics": (("q", "v", "a"), _constrained_inverse),
    "constrained_efforts": (("q", "v", "a"), _constrained_efforts),
    "independent_coordinates": (("q", "v"), _independent),
}
"""the same of models with loops, couplings or equations"""
TAKES_WRENCHES = {
    "power",
    "forward_dynamics_derivatives",
    "hybrid_dynamics_derivatives",
    "constrained_dynamics",
    "constrained_accelerations",
    "constrained_inverse_dynamics",
    *(name for name, (program, _) in PROGRAMS.items() if "wrench" in program.given),
} - {"solve_mass_matrix", "multiply_mass_matrix", "gravity_forces", "coriolis_forces"}
