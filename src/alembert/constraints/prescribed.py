"""Motions that are prescribed, and the forces of chosen actuators that bring them about.

S. K. Ider, "Modeling of control forces for kinematical constraints": geometric constraints (loops, guides) are kept by
reactions along their rows G, kinematical ones (desired motions) by control forces along directions A of the user's choice,

    M a + bias = tau + G^T f + A^T u,     G a = -gamma,     K a = h                                   (1)

With Z = [G; A], B = [G; K] and c = (-gamma; h), either all unknowns at once or the motion first,

    [M -Z^T; B 0] [a; nu] = [tau - bias; c]                                                "augmented" (2)
    [C^T M; B] a = [C^T (tau - bias); c],   Z C = 0,   Z^T nu = M a + bias - tau            "reduced"  (3)

It can be done where Z has full rank and the matrix of (3) is regular. With A = K it always can, and (1) is the motion under
ideal constraints; directions other than K reach the motion through the inertia of the mechanism. (Signs of forces are those
of `alembert.constraints`, opposite to the paper's.) Of actuators that are more than the motions, or depend on each other,
the smallest forces: with the accelerations a0 without them and the responses X to unit forces of each,

    K X u = h - K a0,     min u^T u                                                     "least norm"   (4)

Hybrid dynamics is A = K with rows of the unit matrix. There the given accelerations may depend on each other and on the
constraints; efforts and reactions together are the smallest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.arguments import check_known
from alembert.constraints import saddle, solver
from alembert.constraints.dynamics import listed, named_dofs
from alembert.constraints.results import CLOSED, CONSISTENT, FEASIBLE, ControlForces
from alembert.constraints.solver import ConstrainedCall, Parameters, Wrenches
from alembert.constraints.states import States, common_batch
from alembert.constraints.system import ConstraintSystem
from alembert.errors import ArgumentError, NumericalError
from alembert.model.space import with_own_axis

if TYPE_CHECKING:
    from alembert.constraints.compute import ConstrainedCompute
    from alembert.model import Model

Array = np.ndarray
Active = Sequence[str] | None
METHODS = ("augmented", "reduced", "least norm")


@dataclass(frozen=True, eq=False)
class _Wanted:
    """Kinematical rows: which constraints and which degrees of freedom, with their accelerations (..., rows)."""

    names: tuple[str, ...]
    dofs: Array
    values: Array


def control_forces(
    compute: ConstrainedCompute,
    q: Any,
    v: Any,
    tau: Any,
    motions: Mapping[str, Any],
    actuators: Any,
    method: str,
    active: Active,
    wrenches: Wrenches,
    parameters: Parameters,
) -> ControlForces:
    call = compute.call("control_forces", active, wrenches, parameters)
    system, model, nv, function = call.system, call.model, call.model.nv, call.function
    check_known(f"{function}: no method", method, METHODS)
    tau = np.zeros(nv) if tau is None else tau
    wanted = _wanted(system, function, (q, v, tau), motions)
    s = call.states(q, {"v": v, "tau": tau}, {"motions": wanted.values.shape[:-1]})
    v = s.vectors[0]
    geometric = system.all.system(function, [n for n in system.names if n not in wanted.names])
    kinematical = system.all.system(function, wanted.names)
    directions, labels = _directions(model, function, actuators)
    with solver.no_bare_errors(function):
        rest = s.vectors[1] - geometric.bias(s, v)
        t, k_terms = geometric.terms(s, v), kinematical.terms(s, v)
        unit = np.broadcast_to(np.eye(nv)[wanted.dofs], (len(s), len(wanted.dofs), nv))
        K = np.concatenate([k_terms.jacobian, unit], axis=1)
        h = np.broadcast_to(wanted.values, (*s.shape, K.shape[1])).reshape(len(s), K.shape[1]).copy()
        h[:, : kinematical.count] -= k_terms.bias
        A = K if directions is None else np.broadcast_to(directions, (len(s), *directions.shape))
        M = geometric.mass_matrix(s)
        a, f, u = np.empty((len(s), nv)), np.zeros((len(s), geometric.count)), np.empty((len(s), A.shape[1]))
        for k in range(len(s)):
            rows = geometric.chosen(t, k).rows
            G, c = t.jacobian[k, rows], np.concatenate([-t.bias[k, rows], h[k]])
            a[k], u[k], reaction = _solve(function, method, M[k], G, K[k], A[k], c, rest[k], labels)
            f[k] = (
                np.linalg.lstsq(t.jacobian[k].T, reaction, rcond=saddle.RANK)[0] if geometric.count else 0.0
            )
    system.check_finite(s, a, u, f)
    a, efforts, u = s.shaped(a, np.einsum("bij,bi->bj", A, u), u)
    return ControlForces(a, efforts, u, geometric.reactions(s, t, f))


def _solve(
    function: str,
    method: str,
    M: Array,
    G: Array,
    K: Array,
    A: Array,
    c: Array,
    b: Array,
    labels: tuple[str, ...],
) -> tuple[Array, Array, Array]:
    """a, u and G^T f of (2), (3) or (4) at one state, for b = tau - bias."""
    B, Z, m = np.vstack([G, K]), np.vstack([G, A]), len(G)
    if method == "least norm":
        a, u = _least_norm(function, M, G, K, A, c, b, labels)
        return a, u, M @ a - b - A.T @ u
    _check_feasible(function, M, B, Z, m, labels)
    if method == "augmented":  # (2)
        matrix = np.block([[M, -Z.T], [B, np.zeros((len(B), len(Z)))]])
        a, nu = np.split(np.linalg.solve(matrix, np.concatenate([b, c])), [len(M)])
    else:  # (3)
        a, nu = (x[:, 0] for x in saddle.orthogonal(M, B, c[:, None], b[:, None], Z))
    return a, nu[m:], G.T @ nu[:m]


def _check_feasible(
    function: str, M: Array, B: Array, Z: Array, geometric: int, labels: tuple[str, ...]
) -> None:
    """Whether there is one solution of (1)."""
    n = len(M)
    if len(Z) != len(B):
        raise ArgumentError(
            f"{function}: {len(Z) - geometric} actuators ({', '.join(labels)}) for {len(B) - geometric} prescribed motions; "
            "as many are needed, or method='least norm'"
        )
    U = np.linalg.cholesky(M).T  # x = U a: motions of the same energy have the same length

    def unit(X: Array) -> Array:
        Y = np.linalg.solve(U.T, X.T).T
        return Y / np.maximum(np.linalg.norm(Y, axis=1, keepdims=True), 1e-300)

    B_x, Z_x = unit(B), unit(Z)
    for what, X in (("prescribed motions and the constraints", B_x), ("actuators and the reactions", Z_x)):
        size = np.linalg.svd(X, compute_uv=False)
        if len(size) and (len(X) > n or size[-1] <= FEASIBLE):
            raise NumericalError(
                f"{function}: not feasible: the {what} depend on each other at this configuration ({len(X)} rows, "
                f"smallest singular value {size[-1]:.2g})"
            )
    C_x = np.linalg.svd(Z_x)[2][len(Z) :].T if len(Z) < n else np.zeros((n, 0))
    smallest = float(np.linalg.svd(np.vstack([C_x.T, B_x]), compute_uv=False)[-1])
    if smallest <= FEASIBLE:
        raise NumericalError(_cannot(function, labels, f"smallest singular value {smallest:.2g}"))


def _cannot(function: str, labels: tuple[str, ...], why: str) -> str:
    return (
        f"{function}: not feasible: the actuators ({', '.join(labels) or 'along the motions'}) cannot bring about the "
        f"prescribed motions at this configuration ({why}); choose others"
    )


def _least_norm(
    function: str, M: Array, G: Array, K: Array, A: Array, c: Array, b: Array, labels: tuple[str, ...]
) -> tuple[Array, Array]:
    """(4)"""
    right = np.column_stack([c[: len(G)], np.zeros((len(G), len(A)))])
    found = saddle.orthogonal(M, G, right, np.column_stack([b, A.T]))[0]
    a0, X = found[:, 0], found[:, 1:]
    wanted = c[len(G) :] - K @ a0
    u = np.linalg.lstsq(K @ X, wanted, rcond=FEASIBLE)[0]
    left = np.max(np.abs(K @ X @ u - wanted), initial=0.0)
    size = np.max(np.abs(c[len(G) :]), initial=0.0) + np.max(np.abs(K @ a0), initial=0.0)
    if left > CONSISTENT * max(size, 1e-12):
        raise NumericalError(_cannot(function, labels, f"accelerations of {left:.2g} are missing"))
    return a0 + X @ u, u


def hybrid(
    call: ConstrainedCall,
    q: Any,
    v: Any,
    tau: Array,
    a_given: Array,
    prescribed: Array,
    closed: float = CLOSED,
) -> tuple[Array, Array]:
    """Accelerations and efforts where some degrees of freedom follow given accelerations, each by its own effort."""
    system = call.system
    motion = (a_given, prescribed.astype(float))

    def by_kept_set(given: Any, pushes: Any, last: Any) -> tuple[Array, Array] | None:
        return solver.prescribed(system, given, pushes, last, motion, closed)

    quickly = call.directly(by_kept_set, (q, v, tau))
    if quickly is not None:
        return quickly
    s = call.states(q, {"v": v, "tau": tau, "a": a_given})
    with solver.no_bare_errors(s.function):
        a, efforts = _hybrid_at(system, s, np.flatnonzero(prescribed), closed)
    system.check_finite(s, a, efforts)
    return s.shaped(a, efforts)


def _hybrid_at(system: ConstraintSystem, s: States, dofs: Array, closed: float) -> tuple[Array, Array]:
    """By orthogonal factors of the rows of constraints and prescribed speeds together."""
    model, (v, tau, a_given) = system.model, s.vectors
    rest = tau - system.bias(s, v)
    t = system.terms(s, v)
    checked = t
    if closed > CLOSED:
        # iterates of a stage have the driven speeds of its time and the others of before; from rest that is all of them
        opened = np.max(np.abs(t.residual) / t.scale, axis=-1, initial=0.0)
        checked = replace(t, slack=opened)
    system.check_closed(s, checked, v, closed)
    if len(s):
        system.prepare(s, closed)
    S = np.broadcast_to(np.eye(model.nv)[dofs], (len(s), len(dofs), model.nv))
    B, c = np.concatenate([t.jacobian, S], axis=1), np.concatenate([-t.bias, a_given[:, dofs]], axis=1)
    groups = [*system.groups, *(slice(system.count + i, system.count + i + 1) for i in range(len(dofs)))]
    sets = saddle.choose_each(B, groups, system.tolerances(t))[0]
    M = system.mass_matrix(s)
    a = saddle.by_sets(M, B, sets, c[..., None], rest[..., None])[0][..., 0]
    left = np.abs((B @ a[..., None])[..., 0] - c)
    left[:, : system.count] /= t.scale
    worst = left.max(axis=1, initial=0.0)
    size = np.linalg.norm(a, axis=1) + np.einsum("bi,bi->b", v, v) + CONSISTENT
    broken = worst > (1e-6 + 100 * t.slack) * size
    if np.any(broken):
        k = int(np.argmax(broken))
        raise ArgumentError(
            f"{s.function}: the accelerations given contradict the constraints: {listed(model, dofs)} cannot all follow, by "
            f"{worst[k]:.3g}{s.which(k)}; prescribe fewer, or consistent ones"
        )
    efforts = tau.copy()
    efforts[:, dofs] += saddle.smallest_forces(B, (M @ a[..., None])[..., 0] - rest)[:, system.count :]
    return a, efforts


def _wanted(
    system: ConstraintSystem, function: str, at: Sequence[Any], motions: Mapping[str, Any]
) -> _Wanted:
    model = system.model
    if not isinstance(motions, Mapping) or not motions:
        raise ArgumentError(
            f"{function}: motions are {motions!r}, expected accelerations by constraint or joint"
        )
    dofs: dict[str, Array] = {}
    given = []
    for name, value in motions.items():
        rows = system.slices.get(name)
        if rows is None:
            dofs[name] = named_dofs(model, function, [name], "motions")
        width = len(dofs[name]) if rows is None else rows.stop - rows.start
        given.append((model.compute.numbers(function, f"motions: {name!r}", value), width))
    parts = dict(zip(motions, with_own_axis(given, at), strict=True))
    for (name, x), (_, width) in zip(parts.items(), given, strict=True):
        if x.shape[-1:] != (width,):
            raise ArgumentError(f"{function}: motions: {name!r} has shape {x.shape}, expected (..., {width})")
        if not np.isfinite(x).all():
            raise NumericalError(f"{function}: motions: {name!r} has entries that are not finite")
    batch = common_batch(function, {f"motions: {name!r}": x.shape[:-1] for name, x in parts.items()})
    ordered = tuple(name for name in system.names if name in parts)
    each = [np.broadcast_to(parts[name], (*batch, parts[name].shape[-1])) for name in (*ordered, *dofs)]
    return _Wanted(ordered, np.concatenate([np.arange(0), *dofs.values()]), np.concatenate(each, axis=-1))


def _directions(model: Model, function: str, actuators: Any) -> tuple[Array | None, tuple[str, ...]]:
    """A (rows, nv) and what its rows are called; None where forces act along the motions themselves."""
    if actuators is None:
        return None, ()
    if isinstance(actuators, Sequence) and all(isinstance(x, str) for x in actuators):
        rows, labels = [], []
        known = {actuator.name: actuator for actuator in model.actuators}
        for name in [actuators] if isinstance(actuators, str) else actuators:
            if name in known and name not in {o.name for o in model.space}:
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
    if not np.isfinite(A).all():
        raise NumericalError(f"{function}: actuators has entries that are not finite")
    if A.ndim != 2:
        raise ArgumentError(
            f"{function}: actuators has shape {A.shape}, expected names or directions (rows, {model.nv})"
        )
    return A, tuple(f"direction {k}" for k in range(len(A)))
