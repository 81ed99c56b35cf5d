"""Motions that are prescribed, and the forces of chosen actuators that bring them about.

S. K. Ider, "Modeling of control forces for kinematical constraints": geometric constraints (loops, guides) are kept by
reactions along their rows G, kinematical ones (desired motions) by control forces along directions A of the user's choice,

    M a + bias = tau + G^T f + A^T u,     G a = -gamma,     K a = h                                   (1)

With Z = [G; A], B = [G; K] and b = (-gamma; h), either all unknowns at once or the motion first,

    [M -Z^T; B 0] [a; nu] = [tau - bias; b]                                                "augmented" (2)
    [C^T M; B] a = [C^T (tau - bias); b],   Z C = 0,   Z^T nu = M a + bias - tau            "reduced"  (3)

It can be done where Z has full rank and the matrix of (3) is regular. With A = K it always can, and (1) is the motion under
ideal constraints; directions other than K reach the motion through the inertia of the mechanism. (Signs of forces are those
of `alembert.constraints`, opposite to the paper's.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.constraints import hybrid_solution, rank, saddle
from alembert.constraints.dynamics import _listed, _smallest_forces, _tree, _with_wrenches, named_dofs
from alembert.constraints.results import ControlForces
from alembert.constraints.states import States
from alembert.constraints.system import ConstraintSystem
from alembert.constraints.tolerances import CONSISTENT
from alembert.errors import ArgumentError, NumericalError
from alembert.model.printing import unknown

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray
METHODS = ("augmented", "reduced")
REGULAR = 1e-8
"""smallest singular value of (3), in the metric of the mass matrix and rows of unit length, that counts as regular"""


@dataclass(frozen=True, eq=False)
class _Wanted:
    """Kinematical rows: which constraints and which degrees of freedom, with their accelerations (B, rows)."""

    names: tuple[str, ...]
    dofs: Array
    values: Array


def control_forces(
    system: ConstraintSystem,
    function: str,
    q: Any,
    v: Any,
    tau: Any,
    motions: Mapping[str, Any],
    actuators: Any,
    method: str,
    wrenches: Mapping[str, Any] | None,
    parameters: Mapping[str, Any] | None,
) -> ControlForces:
    if method not in METHODS:
        raise ArgumentError(unknown(f"{function}: no method", method, METHODS))
    model = system.model
    forces = model.compute.wrench_array(function, wrenches, parameters) if wrenches else None
    s, forces = _with_wrenches(model, function, q, {"v": v, "tau": tau}, forces, parameters)
    wanted = _wanted(system, function, s, motions)
    geometric = system.all.system(function, [n for n in system.names if n not in wanted.names])
    chosen = system.all.system(function, wanted.names)
    directions, labels = _directions(model, function, actuators)
    zero = np.zeros_like(s.vectors[0])
    bias = _tree(
        geometric,
        "inverse_dynamics",
        function,
        States(s.shape, s.q, (s.vectors[0], zero), s.parameters),
        forces,
    )
    M = geometric.mass_matrix(s)
    a = np.empty((len(s), model.nv))
    efforts = np.empty_like(a)
    f = np.zeros((len(s), geometric.count))
    count = len(labels) if labels else wanted.values.shape[-1]
    u = np.empty((len(s), count))
    t, k_terms = geometric.terms(s, s.vectors[0]), chosen.terms(s, s.vectors[0])
    for k in range(len(s)):
        rows = geometric._chosen(t, k).rows if geometric.count else np.arange(0)
        G = t.jacobian[k, rows]
        K = np.vstack([k_terms.jacobian[k], np.eye(model.nv)[wanted.dofs]])
        h = wanted.values[k] - np.concatenate([k_terms.bias[k], np.zeros(len(wanted.dofs))])
        A = K if directions is None else directions
        found = _solve(
            function,
            method,
            M[k],
            s.vectors[1][k] - bias[k],
            G,
            K,
            A,
            np.concatenate([-t.bias[k, rows], h]),
            labels,
        )
        a[k], nu = found
        u[k] = nu[len(rows) :]
        efforts[k] = A.T @ u[k]
        if geometric.count:
            f[k] = np.linalg.lstsq(t.jacobian[k].T, G.T @ nu[: len(rows)], rcond=rank.RANK)[0]
    shape = s.shape
    return ControlForces(
        a.reshape(*shape, -1),
        efforts.reshape(*shape, -1),
        u.reshape(*shape, -1),
        geometric.reactions(s, t, f),
    )


def _solve(
    function: str,
    method: str,
    M: Array,
    drive: Array,
    G: Array,
    K: Array,
    A: Array,
    b: Array,
    labels: tuple[str, ...],
) -> tuple[Array, Array]:
    """a and nu of (2) or (3), after the test that there is one solution."""
    n, B, Z = len(M), np.vstack([G, K]), np.vstack([G, A])
    if len(Z) != len(B):
        raise ArgumentError(
            f"{function}: {len(A)} actuators ({', '.join(labels)}) for {len(K)} prescribed motions; as many are needed"
        )
    U = np.linalg.cholesky(M).T  # x = U a: motions of the same energy have the same length

    def unit(X: Array) -> Array:
        Y = np.linalg.solve(U.T, X.T).T
        return Y / np.maximum(np.linalg.norm(Y, axis=1, keepdims=True), 1e-300)

    B_x, Z_x = unit(B), unit(Z)
    for what, X in (("prescribed motions and the constraints", B_x), ("actuators and the reactions", Z_x)):
        size = np.linalg.svd(X, compute_uv=False)
        if len(size) and (len(X) > n or size[-1] <= REGULAR):
            raise NumericalError(
                f"{function}: not feasible: the {what} depend on each other at this configuration ({len(X)} rows, "
                f"smallest singular value {size[-1]:.2g})"
            )
    C_x = np.linalg.svd(Z_x)[2][len(Z) :].T if len(Z) < n else np.zeros((n, 0))
    test = np.vstack([C_x.T, B_x])
    smallest = float(np.linalg.svd(test, compute_uv=False)[-1])
    if smallest <= REGULAR:
        raise NumericalError(
            f"{function}: not feasible: the actuators ({', '.join(labels) or 'along the motions'}) cannot bring about the "
            f"prescribed motions at this configuration (smallest singular value {smallest:.2g}); choose others"
        )
    if method == "augmented":  # (2)
        matrix = np.block([[M, -Z.T], [B, np.zeros((len(B), len(Z)))]])
        answer = np.linalg.solve(matrix, np.concatenate([drive, b]))
        return answer[:n], answer[n:]
    C = np.linalg.solve(U, C_x)
    a = np.linalg.solve(np.vstack([C.T @ M, B]), np.concatenate([C.T @ drive, b]))  # (3)
    return a, np.linalg.lstsq(Z.T, M @ a - drive, rcond=None)[0]


def hybrid(
    system: ConstraintSystem,
    function: str,
    q: Any,
    v: Any,
    tau: Array,
    a_given: Array,
    prescribed: Array,
    wrenches: Mapping[str, Any] | None,
    parameters: Mapping[str, Any] | None,
    closed: float,
) -> tuple[Array, Array]:
    """Accelerations and efforts where some degrees of freedom follow given accelerations, each by its own effort."""
    model = system.model
    forces = model.compute.wrench_array(function, wrenches, parameters) if wrenches else None
    quickly = hybrid_solution.hybrid(
        system, function, q, v, tau, a_given, prescribed, forces, parameters, closed
    )
    if quickly is not None:
        return quickly
    s, forces = _with_wrenches(model, function, q, {"v": v, "tau": tau, "a": a_given}, forces, parameters)
    v, tau, a_given = s.vectors
    bias = _tree(system, "inverse_dynamics", function, States(s.shape, s.q, (v, 0 * v), s.parameters), forces)
    M, t = system.mass_matrix(s), system.terms(s, v)
    system.check_closed(function, s, t, v, closed)
    if len(s):
        system.prepare(s, closed)
    dofs = np.flatnonzero(prescribed)
    S = np.broadcast_to(np.eye(model.nv)[dofs], (len(s), len(dofs), model.nv))
    B, b = np.concatenate([t.jacobian, S], axis=1), np.concatenate([-t.bias, a_given[:, dofs]], axis=1)
    groups = [*system.groups, *(slice(system.count + i, system.count + i + 1) for i in range(len(dofs)))]
    chosen = rank.choose_each(B, groups, system.tolerances(t))[0]
    a = np.linalg.solve(M, (tau - bias)[..., None])[..., 0]  # free
    for rows, at in rank.alike(chosen):
        R = B[np.ix_(at, rows)]
        a[at] += saddle.orthogonal(M[at], R, b[np.ix_(at, rows)] - (R @ a[at][..., None])[..., 0])[0]
    left = np.abs((B @ a[..., None])[..., 0] - b)
    left[:, : system.count] /= t.scale
    worst = left.max(axis=1, initial=0.0)
    size = np.linalg.norm(a, axis=1) + np.einsum("bi,bi->b", v, v) + CONSISTENT
    broken = worst > (1e-6 + 100 * t.slack) * size
    if np.any(broken):
        k = int(np.argmax(broken))
        raise ArgumentError(
            f"{function}: the accelerations given contradict the constraints: {_listed(model, dofs)} cannot all follow, by "
            f"{worst[k]:.3g}{system.which(s, k)}; prescribe fewer, or consistent ones"
        )
    efforts = tau.copy()
    needed = (M @ a[..., None])[..., 0] + bias - tau
    efforts[:, dofs] += _smallest_forces(B, needed)[:, system.count :]
    return a.reshape(*s.shape, a.shape[-1]), efforts.reshape(*s.shape, efforts.shape[-1])


def _wanted(system: ConstraintSystem, function: str, s: States, motions: Mapping[str, Any]) -> _Wanted:
    model = system.model
    if not isinstance(motions, Mapping) or not motions:
        raise ArgumentError(
            f"{function}: motions are {motions!r}, expected accelerations by constraint or joint"
        )
    names, dofs = [], []
    parts: dict[str, Array] = {}
    for name, value in motions.items():
        if name in system.slices:
            width = system.slices[name].stop - system.slices[name].start
            names.append(name)
        else:
            found = named_dofs(model, function, [name], "motions")
            width = len(found)
            dofs += found.tolist()
        given = model.compute.numbers(function, f"motions: {name!r}", np.atleast_1d(value), width)
        parts[name] = np.broadcast_to(given, (*s.shape, width)).reshape(-1, width)
    ordered = [name for name in system.names if name in names]
    of_joints = [parts[name] for name in motions if name not in system.slices]
    values = np.concatenate([*(parts[name] for name in ordered), *of_joints], axis=-1)
    return _Wanted(tuple(ordered), np.array(dofs, dtype=int), values)


def _directions(model: Model, function: str, actuators: Any) -> tuple[Array | None, tuple[str, ...]]:
    """A (rows, nv) and what its rows are called; None where forces act along the motions themselves."""
    if actuators is None:
        return None, ()
    if isinstance(actuators, Sequence) and all(isinstance(x, str) for x in actuators):
        rows, labels = [], []
        known = {actuator.name: actuator for actuator in model.actuators}
        for name in [actuators] if isinstance(actuators, str) else actuators:
            if name in known and name not in model._joint_index:
                row = np.zeros(model.nv)
                row[model.v_slice(known[name].joint).start + known[name].dof] = model.value(known[name].gear)
                rows.append(row)
                labels.append(name)
                continue
            for k in named_dofs(model, function, [name], "actuators"):
                rows.append(np.eye(model.nv)[k])
                labels.append(model.speed_names[k])
        return np.array(rows).reshape(-1, model.nv), tuple(labels)
    A = model.compute.numbers(function, "actuators", actuators, model.nv)
    if A.ndim != 2:
        raise ArgumentError(
            f"{function}: actuators has shape {A.shape}, expected names or directions (rows, {model.nv})"
        )
    return A, tuple(f"direction {k}" for k in range(len(A)))
