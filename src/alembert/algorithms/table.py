"""The algorithms of a model: one record each.

The dynamics are programs of sweeps. What follows from poses, velocities and composite inertias is put together here from the
same records, for a frame C on body B at X_BC:

    V_C = Ad(X_BC)^-1 V_B,  referred by Ad(X_WC) to the world, by its rotation alone to world axes       (1)
    d/dt of the latter:  R (A_C + (0; w x v))                                                           (2)
    c = (sum m c)_W / sum m,   h about c = (h_w - c x h_v; h_v)                                         (3)
    M x = -tau_q, ...   with M = L^T D L, for the derivatives of forward dynamics                        (4)

Where m marks the free speeds of hybrid dynamics, (4) has m M m + (1 - m) for M.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import casadi as ca

from alembert import sweeps
from alembert.algorithms import derivative_kernels, kernels
from alembert.algorithms.algorithm import Algorithm, Build, GraphInputs, Results, solved
from alembert.arguments import unknown
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError, NumericalError
from alembert.sensitivity.inverse_dynamics import INVERSE_DYNAMICS_DERIVATIVES
from alembert.sensitivity.mass_factor import Pattern
from alembert.spatial import Motion
from alembert.spatial.arrays import cross
from alembert.sweeps import Program
from alembert.sweeps import operators as steps

if TYPE_CHECKING:
    from alembert.model import Model


def _frame_pose(s: GraphInputs) -> Results:
    record, X_BC, _ = s.at
    X = record.X_W @ X_BC
    return {"rotation": X.rotation, "translation": X.translation}


def _frame_velocity(s: GraphInputs) -> Results:
    record, X_BC, _ = s.at
    return {"velocity": s.refer(record.X_W @ X_BC, X_BC.motion_inverse(record.V)).vector()}


def _frame_acceleration(s: GraphInputs) -> Results:
    """(2)"""
    record, X_BC, _ = s.at
    V, A = X_BC.motion_inverse(record.V), X_BC.motion_inverse(record.A)
    if s.options.reference == "local_world_aligned":
        A = Motion(A.angular, A.linear + cross(V.angular, V.linear))
    return {"acceleration": s.refer(record.X_W @ X_BC, A).vector()}


def _frame_jacobian_rate(s: GraphInputs) -> Results:
    given = {**s.given, "a": ca.SX(s.tree.model.nv, 1)}
    return {"rate": _frame_acceleration(replace(s, given=given, wrenches={}))["acceleration"]}


def _frame_jacobian(s: GraphInputs) -> Results:
    record, X_BC, node = s.at
    X_WC = record.X_W @ X_BC
    J = ca.SX(6, s.tree.model.nv)
    for k in s.tree.ancestors[node] if node >= 0 else ():
        records = s.moved[0]
        columns = (sweeps.seen(s.tree, records, node, k) if s.tree.has_modes else records[k]).columns
        for i in range(columns.shape[1]):
            V = X_WC.motion_inverse(Motion.from_vector(columns[:, i]))
            J[:, s.tree.v_slices[k].start + i] = s.refer(X_WC, V).vector()
    return {"jacobian": J}


def _center_of_mass(s: GraphInputs) -> Results:
    """(3)"""
    total = s.run(sweeps.COMPOSITE)["I"]
    if total[0].is_zero():
        name = s.tree.model.name
        raise NumericalError(f"center_of_mass: nothing that moves in the model {name!r} has mass")
    return {"center": total[1:4] / total[0]}


def _momentum(s: GraphInputs) -> Results:
    return {"h": _about(s, s.run(sweeps.MOMENTUM)["h"])}


def _momentum_matrix(s: GraphInputs) -> Results:
    return {"matrix": _about(s, s.run(sweeps.MOMENTUM_MATRIX)["Y"].T)}


def _about(s: GraphInputs, h: ca.SX) -> ca.SX:
    """(3)"""
    if s.options.about == "world":
        return h
    return ca.vertcat(h[:3, :] - ca.skew(_center_of_mass(s)["center"]) @ h[3:, :], h[3:, :])


def _energy(s: GraphInputs) -> Results:
    return {"E": s.run(sweeps.KINETIC_ENERGY)["T"] + s.run(sweeps.POTENTIAL_ENERGY)["E"]}


def _power(s: GraphInputs) -> Results:
    total = ca.dot(s.given["tau"], s.given["v"])
    records, _ = s.moved
    for frame, F in s.wrenches.items():
        node, X = s.locate(frame)
        if node >= 0:
            total += ca.dot(F, X.motion_inverse(records[node].V).vector())
    return {"P": total}


def _inverse_mass_matrix(s: GraphInputs) -> Results:
    return {"inverse": s.inverse(s.run(sweeps.MASS_MATRIX)["matrix"])}


def _inverse_derivatives(s: GraphInputs, a: ca.SX | None = None) -> Results:
    """By their recursions; with flexible bodies, tangents of the sweep."""
    at = s.given["a"] if a is None else a
    if not s.tree.has_modes:
        return s.run(INVERSE_DYNAMICS_DERIVATIVES, a=at)
    q, v, held = s.given["q"], s.given["v"], ca.SX.sym("a", s.tree.model.nv)
    tau = s.run(sweeps.INVERSE_DYNAMICS, a=held)["tau"]
    e = ca.SX.sym("e", s.tree.model.nv)
    along = ca.jacobian(s.tree.model.space.rate(q, e), e)
    found = [ca.jacobian(tau, q) @ along, ca.jacobian(tau, v), ca.jacobian(tau, held)]
    return dict(zip(("dq", "dv", "da"), ca.substitute(found, [held], [at]), strict=True))


def _forward_derivatives(s: GraphInputs) -> Results:
    """(4)"""
    a = s.run(sweeps.FORWARD_DYNAMICS)["a"]
    d = _inverse_derivatives(s, a)
    pattern = Pattern(s.tree)
    factor = pattern.factor(d["da"])
    rows = {"dq": -d["dq"], "dv": -d["dv"], "dtau": ca.SX.eye(s.tree.model.nv)}
    return {"acceleration": a} | {name: solved(pattern, factor, b) for name, b in rows.items()}


def _hybrid(s: GraphInputs) -> Results:
    free = s.given["free"] if s.options.free is None else ca.SX(ca.DM([float(x) for x in s.options.free]))
    found = s.run(sweeps.HYBRID_DYNAMICS, a_given=s.given["a"], free=free)
    return {"accelerations": found["a"], "efforts": found["effort"]}


def _hybrid_derivatives(s: GraphInputs) -> Results:
    """(4) for the free speeds; the efforts of the others follow from M a + tau_q dq + tau_v dv."""
    assert s.options.free is not None
    result = _hybrid(s)
    d = _inverse_derivatives(s, result["accelerations"])
    n = s.tree.model.nv
    m = ca.diag(ca.SX(ca.DM([float(x) for x in s.options.free])))
    rest = ca.SX.eye(n) - m
    pattern = Pattern(s.tree)
    factor = pattern.factor(m @ d["da"] @ m + rest)

    def respond(rows: ca.SX) -> tuple[ca.SX, ca.SX]:
        change = solved(pattern, factor, -m @ rows)
        return change, rest @ (rows + d["da"] @ change)

    a_q, tau_q = respond(d["dq"])
    a_v, tau_v = respond(d["dv"])
    driven = solved(pattern, factor, m)
    a_given = rest + driven - solved(pattern, factor, m @ d["da"] @ rest)
    return {
        **result,
        **{"a_q": a_q, "tau_q": tau_q, "a_v": a_v, "tau_v": tau_v},
        **{"a_given": a_given, "tau_given": m + rest @ d["da"] @ a_given},
    }


def _admittance(s: GraphInputs) -> Results:
    places = [(node, place.symbolic_pose(s.parameters)) for node, place in s.options.frames]
    return {"Lambda": steps.admittance(s.tree, places, s.given["q"], s.p)}


def _of(program: Program) -> Callable[[GraphInputs], Results]:
    return lambda s: s.run(program)


def _on_manifold(name: str, inputs: tuple[str, str], result: str) -> Algorithm:
    """`integrate`, `difference` or `rate`, which the space of coordinates has."""

    def graph(s: GraphInputs) -> Results:
        return {result: getattr(s.tree.model.space, name)(*s.given.values())}

    return Algorithm(name, inputs, graph=graph, takes_parameters=False)


def _derivative_kernel(name: str) -> Build:
    def build(model: Model, wrenches: bool, lowering: kernels.Lowering) -> Kernel:
        return derivative_kernels.kernel(model, name, wrenches=wrenches, lowering=lowering)

    return build


def _hybrid_derivative_kernel(model: Model, wrenches: bool, lowering: kernels.Lowering) -> Kernel:
    return derivative_kernels.hybrid_kernel(model, wrenches=wrenches)


_FRAME = ("frame", "reference")
_ENTRIES = (
    Algorithm(
        "forward_dynamics",
        ("q", "v", "tau"),
        sweeps.FORWARD_DYNAMICS,
        takes_wrenches=True,
        solves=True,
        needs_tree=True,
        held="constrained_accelerations",
        instead="constrained_dynamics (on symbols, symbolic.constrained_dynamics)",
    ),
    Algorithm(
        "inverse_dynamics",
        ("q", "v", "a"),
        sweeps.INVERSE_DYNAMICS,
        takes_wrenches=True,
        needs_tree=True,
        held="constrained_efforts",
        instead="constrained_inverse_dynamics (on symbols, symbolic.constrained_inverse_dynamics)",
    ),
    Algorithm(
        "hybrid_dynamics",
        ("q", "v", "tau", "a_given", "free"),
        sweeps.HYBRID_DYNAMICS,
        graph=_hybrid,
        symbols=("q", "v", "tau", "a"),
        takes_wrenches=True,
        solves=True,
        needs_tree=True,
        held="constrained_hybrid",
        known_as={"tau": "torques", "a_given": "accelerations"},
    ),
    Algorithm("bias_forces", ("q", "v"), sweeps.INVERSE_DYNAMICS, takes_wrenches=True),
    Algorithm("gravity_forces", ("q",), sweeps.GRAVITY_FORCES),
    Algorithm("coriolis_forces", ("q", "v"), sweeps.CORIOLIS_FORCES),
    Algorithm("mass_matrix", ("q",), sweeps.MASS_MATRIX, gives_matrices=True),
    Algorithm("multiply_mass_matrix", ("q", "x"), sweeps.CORIOLIS_FORCES, ("q", "a")),
    Algorithm("solve_mass_matrix", ("q", "x"), sweeps.SOLVE_MASS_MATRIX, ("q", "tau"), solves=True),
    Algorithm("poses", ("q",), sweeps.POSES, is_method=False),
    Algorithm("velocities", ("q", "v"), sweeps.VELOCITIES, is_method=False),
    Algorithm("accelerations", ("q", "v", "a"), sweeps.ACCELERATIONS, is_method=False),
    Algorithm("subspaces", ("q",), sweeps.SUBSPACES, is_method=False),
    Algorithm("kinetic_energy", ("q", "v"), sweeps.KINETIC_ENERGY, gives_number=True),
    Algorithm("potential_energy", ("q",), sweeps.POTENTIAL_ENERGY, gives_number=True),
    Algorithm("composite", ("q",), sweeps.COMPOSITE, is_method=False),
    Algorithm("world_momentum", ("q", "v"), sweeps.MOMENTUM, is_method=False),
    Algorithm("world_momentum_rows", ("q",), sweeps.MOMENTUM_MATRIX, is_method=False),
    Algorithm(
        "inverse_dynamics_derivatives",
        ("q", "v", "a"),
        INVERSE_DYNAMICS_DERIVATIVES,
        graph=_inverse_derivatives,
        kernel=_derivative_kernel("inverse_dynamics_derivatives"),
        takes_wrenches=True,
        gives_matrices=True,
        needs_tree=True,
        instead="constrained_inverse_dynamics_derivatives",
    ),
    Algorithm("inverse_mass_matrix", ("q",), graph=_inverse_mass_matrix, gives_matrices=True),
    Algorithm("frame_pose", ("q",), graph=_frame_pose, options=("frame",), has_kernel=False),
    Algorithm("frame_velocity", ("q", "v"), graph=_frame_velocity, options=_FRAME, has_kernel=False),
    Algorithm(
        "frame_acceleration", ("q", "v", "a"), graph=_frame_acceleration, options=_FRAME, has_kernel=False
    ),
    Algorithm(
        "frame_jacobian",
        ("q",),
        graph=_frame_jacobian,
        options=_FRAME,
        gives_matrices=True,
        has_kernel=False,
    ),
    Algorithm(
        "frame_jacobian_rate", ("q", "v"), graph=_frame_jacobian_rate, options=_FRAME, has_kernel=False
    ),
    Algorithm("center_of_mass", ("q",), graph=_center_of_mass),
    Algorithm("momentum", ("q", "v"), graph=_momentum, options=("about",)),
    Algorithm(
        "momentum_matrix",
        ("q",),
        graph=_momentum_matrix,
        options=("about",),
        gives_matrices=True,
    ),
    Algorithm("energy", ("q", "v"), graph=_energy, gives_number=True),
    Algorithm("power", ("q", "v", "tau"), graph=_power, takes_wrenches=True, gives_number=True),
    Algorithm(
        "forward_dynamics_derivatives",
        ("q", "v", "tau"),
        graph=_forward_derivatives,
        kernel=_derivative_kernel("forward_dynamics_derivatives"),
        takes_wrenches=True,
        solves=True,
        needs_tree=True,
        instead="constrained_dynamics_derivatives",
        has_derivatives=False,
    ),
    Algorithm(
        "hybrid_dynamics_derivatives",
        ("q", "v", "tau", "a"),
        graph=_hybrid_derivatives,
        kernel=_hybrid_derivative_kernel,
        takes_wrenches=True,
        needs_tree=True,
        has_kernel=False,
        has_derivatives=False,
        has_source=False,
    ),
    Algorithm("innovations", ("q",), graph=_of(steps.INNOVATIONS), gives_matrices=True, is_method=False),
    Algorithm(
        "diagonalising_velocities", ("q", "v"), graph=_of(steps.DIAGONALISING_VELOCITIES), is_method=False
    ),
    Algorithm(
        "velocities_from_diagonal", ("q", "n"), graph=_of(steps.VELOCITIES_FROM_DIAGONAL), is_method=False
    ),
    Algorithm(
        "admittance",
        ("q",),
        graph=_admittance,
        has_kernel=False,
        has_derivatives=False,
        has_source=False,
        is_method=False,
    ),
    _on_manifold("integrate", ("q", "dv"), "moved"),
    _on_manifold("difference", ("q0", "q1"), "dv"),
    _on_manifold("rate", ("q", "v"), "dq"),
)
TABLE: dict[str, Algorithm] = {algorithm.name: algorithm for algorithm in _ENTRIES}


def find(function: str, name: str, what: str = "") -> Algorithm:
    """An algorithm that has a kernel, derivatives or source, as `what` asks; refuses others in the name of `function`."""
    found = TABLE.get(name) if isinstance(name, str) else None
    if found is None or (what and not getattr(found, what)):
        known = [entry.name for entry in TABLE.values() if not what or getattr(entry, what)]
        raise ArgumentError(unknown(f"{function}: no algorithm", name, known))
    return found


def known_as(name: str, label: str) -> str:
    """How callers of an algorithm name one of its inputs in messages."""
    if label == "wrench":
        return "wrenches"
    return TABLE[name].known_as.get(label, label) if name in TABLE else label


def all_with(what: str) -> tuple[str, ...]:
    """The names of algorithms that have a kernel, derivatives, source ..."""
    return tuple(entry.name for entry in TABLE.values() if getattr(entry, what))


@contextmanager
def added(algorithm: Algorithm) -> Iterator[Algorithm]:
    """One more algorithm, for a while."""
    assert algorithm.name not in TABLE, algorithm.name
    TABLE[algorithm.name] = algorithm
    try:
        yield algorithm
    finally:
        del TABLE[algorithm.name]
