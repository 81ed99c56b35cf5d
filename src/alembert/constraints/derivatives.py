"""Derivatives of constrained dynamics, through the equations that the solution satisfies.

With r(q, v, a) the tree's inverse dynamics, R the rows of the minimal set and f their forces,

    r(q, v, a) - R^T f = tau,     R a + gamma = 0                                                     (1)

    [M  -R^T] [da]   [dtau - (r_q - (R^T f)_q) dq - r_v dv]
    [R    0 ] [df] = [     - (R a + gamma)_q dq - gamma_v dv ]                                        (2)

and with respect to parameters, at fixed q, v and tau, with (-(r_p - (R^T f)_p); -(R a + gamma)_p) on the right. Derivatives
with respect to q are tangent. r_q, r_v and M are the tree's, in O(n depth).

Inverse dynamics: the efforts u of the driven degrees of freedom (S their columns, W their weights) are the smallest that,
with forces f, balance r,

    W u + S^T mu = 0,   R mu = 0,   S u + R^T f = r                                                   (3)

    W du + S^T dmu = 0,   R dmu = -(R mu)_x dx,   S du + R^T df = (r - R^T f)_x dx                    (4)

with x any of q, v, a and the parameters. That is the system of `saddle` once more: (W, 0) in place of M, (S, R^T) in place
of R, -mu in place of f. It is regular where the actuated set can give every motion that the constraints leave.

The minimal set is held: along the constraint surface the solution does not depend on it, away from it the derivative is
that of the solution of the chosen rows. Where a parameter changes the geometry of a loop, a state that was closed is so no
longer; how a closed state moves along with the parameter is in `reduced`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.constraints import compiled, drives, saddle, solver
from alembert.constraints.dynamics import drives_of, efforts_by_choice, listed, weight_vector
from alembert.constraints.results import (
    CLEAR,
    NEAR,
    REGULAR,
    ConstrainedDerivatives,
    ConstrainedInverseDerivatives,
)
from alembert.constraints.solver import Parameters, Wrenches
from alembert.constraints.states import RowTerms, States, finite
from alembert.constraints.system import ConstraintSystem
from alembert.errors import NumericalError

if TYPE_CHECKING:
    from alembert.constraints.compute import ConstrainedCompute
    from alembert.constraints.drives import Drives
    from alembert.model import Model

Array = np.ndarray
Active = Sequence[str] | None


def constrained_dynamics_derivatives(
    compute: ConstrainedCompute,
    q: Any,
    v: Any,
    tau: Any,
    active: Active,
    wrenches: Wrenches,
    parameters: Parameters,
    sensitive_to: Sequence[str],
    closure_tolerance: float,
) -> ConstrainedDerivatives:
    """(2)"""
    call = compute.call("constrained_dynamics_derivatives", active, wrenches, parameters, closure_tolerance)
    system, model, nv = call.system, call.model, call.model.nv
    chosen = model.compute.parameter_indices(call.function, sensitive_to)

    def by_kept_set(given: Any, pushes: Any, last: Any) -> ConstrainedDerivatives | None:
        masks = system.masks
        solved = None if masks is None else _compiled(system, given, pushes, last, masks)
        if masks is None or solved is None or not solver.is_own_set(solved[3], closure_tolerance):
            return None
        found = solver.derivatives(system, given, pushes, last, solved, masks[0])
        return ConstrainedDerivatives(solved[0], *found) if finite(solved[0], *found) else None

    if not (chosen or call.lockable):
        quickly = call.directly(by_kept_set, (q, v, tau))
        if quickly is not None:
            return quickly
    s = call.states(q, {"v": v, "tau": tau})
    with solver.no_bare_errors(s.function):
        free = system.tree("forward_dynamics", s)
        t = system.closed_terms(s, s.vectors[0], closure_tolerance)
        sets = system.choices(s, t)
        a, slopes = np.empty((len(s), nv)), np.empty((len(s), nv, 3 * nv + len(chosen)))
        served = np.zeros(len(s), dtype=bool)
        if not chosen:
            served = _by_sets(system, s, sets, closure_tolerance, a, slopes)
        fine = np.isfinite(free).all(axis=-1)  # not where a joint is locked
        served &= fine
        if not served.any():
            a, slopes = _dense(system, s, t, free, sets, wrenches, chosen)
        elif not served.all():
            at = ~served
            a[at], slopes[at] = _dense(system, s.at(at), t.at(at), free[at], sets[at], None, ())
    system.check_finite(s, a, slopes, but=~fine)
    a, dq, dv, dtau = s.shaped(a, *np.split(slopes, [nv, 2 * nv, 3 * nv], axis=2)[:3])
    by_name = {name: s.shaped(slopes[..., 3 * nv + i]) for i, name in enumerate(sensitive_to)}
    return ConstrainedDerivatives(a, dq, dv, dtau, by_name)


def _compiled(system: ConstraintSystem, given: Any, pushes: Any, last: Any, masks: Any) -> Any:
    """Accelerations by compiled functions with derivatives; None where there are none."""
    if system.all.solution_derivatives is None:
        return None
    return solver.accelerations(system, given, pushes, last, masks)


def _by_sets(
    system: ConstraintSystem, s: States, sets: Array, closed: float, a: Array, slopes: Array
) -> Array:
    """By compiled functions with the minimal sets of all states, into `a` and `slopes`; which states these served."""
    if not len(s) or not system.count:
        return np.zeros(len(s), dtype=bool)
    given, chosen = (s.q, *s.vectors), system.over_all(sets.astype(float))
    solved = _compiled(system, given, s.pushes, s.last, (chosen, system.active))
    if solved is None:
        return np.zeros(len(s), dtype=bool)
    a[:] = solved[0]
    found = solver.derivatives(system, given, s.pushes, s.last, solved, chosen)
    np.concatenate(found, axis=2, out=slopes)
    return compiled.states_served(solved[3], closed, pivot=CLEAR)


def _dense(
    system: ConstraintSystem,
    s: States,
    t: RowTerms,
    free: Array,
    sets: Array,
    wrenches: Wrenches,
    chosen: Sequence[int],
) -> tuple[Array, Array]:
    """Accelerations, and (2) by orthogonal factors for any minimal sets."""
    nv, v, M = system.model.nv, s.vectors[0], system.mass_matrix(s)
    c = -(t.bias[..., None] + t.jacobian @ free[..., None])
    x, f = saddle.by_sets(M, t.jacobian, sets, c)
    a, f = free + x[..., 0], f[..., 0]
    r_q, r_v, _ = _tree_derivatives(system, s, a)
    push_q, row_q, row_v = system.derivatives(s, v, a, f)
    of_bodies = [push_q - r_q, -r_v, np.broadcast_to(np.eye(nv), r_q.shape)]
    of_rows = [-row_q, -row_v, np.zeros_like(row_q)]
    if chosen:
        push_p, row_p, _ = system.parameter_derivatives(s, v, a, f, chosen)
        of_bodies.append(push_p - effort_derivatives(system, s, a, wrenches, chosen))
        of_rows.append(-row_p)
    b, c = (np.concatenate(parts, axis=2) for parts in (of_bodies, of_rows))
    return a, saddle.by_sets(M, t.jacobian, sets, c, b)[0]


def _tree_derivatives(system: ConstraintSystem, s: States, a: Array) -> tuple[Array, Array, Array]:
    """r_q, r_v and M"""
    kernel = system.all.primary.compute.kernel("inverse_dynamics_derivatives", wrenches=s.forces is not None)
    dq, dv, da = kernel(s.q, s.vectors[0], a, *s.pushes, *s.last)
    return dq, dv, da


def effort_derivatives(
    system: ConstraintSystem, s: States, a: Array, wrenches: Wrenches, chosen: Sequence[int]
) -> Array:
    """r_p (B, nv, k), wrenches on frames included."""
    forces = {frame: np.asarray(x, dtype=float) for frame, x in (wrenches or {}).items()}
    q, v, a, values = s.shaped(s.q, s.vectors[0], a, np.asarray(s.parameters))
    found = system.all.unconstrained.compute.effort_slopes(q, v, a, values, forces, chosen)
    return found.reshape(-1, *found.shape[-2:])


# --- efforts --------------------------------------------------------------------------------------------------------


def constrained_inverse_dynamics_derivatives(
    compute: ConstrainedCompute,
    q: Any,
    v: Any,
    a: Any,
    actuated: Sequence[str] | None,
    weights: Mapping[str, float] | None,
    active: Active,
    wrenches: Wrenches,
    parameters: Parameters,
    sensitive_to: Sequence[str],
    closure_tolerance: float,
) -> ConstrainedInverseDerivatives:
    """(4)"""
    call = compute.call(
        "constrained_inverse_dynamics_derivatives", active, wrenches, parameters, closure_tolerance
    )
    system, model, nv = call.system, call.model, call.model.nv
    chosen = model.compute.parameter_indices(call.function, sensitive_to)
    by = drives_of(system, call.function, actuated)
    w = weight_vector(model, call.function, weights)[by.driven]

    def by_current(given: Any, pushes: Any, last: Any) -> tuple[Array, ...] | None:
        """u, dq, dv, da, dr"""
        root, rows = np.sqrt(w), system.all
        u, f, _, mu, status = efforts_by_choice(system, by, root, given, pushes, last)
        if not drives.all_served(status, min(closure_tolerance, NEAR), unique=True):
            return None
        q, v, a = given
        tree = rows.primary.compute.kernel("inverse_dynamics_derivatives", wrenches=bool(pushes))
        push_q = rows.derivatives(q, v, a, f, *last)[0]
        row_q = rows.derivatives(q, np.zeros(nv), mu, f, *last)[1]  # (G mu)_q
        return u, *by.derivatives(q, root, *tree(q, v, a, *pushes, *last), push_q, row_q, *last)

    def named(found: Sequence[Array], by_name: Mapping[str, Array]) -> ConstrainedInverseDerivatives:
        """A wrench acts like efforts: dr = -J^T dF."""
        u, dq, dv, da, dr = found
        pushes = model.compute.generalised_forces(q, wrenches, parameters) if wrenches else {}
        by_frame = {frame: -dr @ J for frame, J in pushes.items()}
        return ConstrainedInverseDerivatives(u, dq, dv, da, by_name, by_frame)

    serves = by.current is not None and system.kept is not None and system.kept.rank == len(by.current[0])
    if serves and not chosen:
        quickly = call.directly(by_current, (q, v, a))
        if quickly is not None:
            return named(quickly, {})
    s = call.states(q, {"v": v, "a": a})
    with solver.no_bare_errors(s.function):
        u, du = _effort_derivatives_at(system, s, by, w, closure_tolerance, wrenches, chosen)
    system.check_finite(s, u, du)
    u, dq, dv, da, dp, dr = s.shaped(u, *np.split(du, [nv, 2 * nv, 3 * nv, 3 * nv + len(chosen)], axis=2))
    return named([u, dq, dv, da, dr], {name: dp[..., i] for i, name in enumerate(sensitive_to)})


def _effort_derivatives_at(
    system: ConstraintSystem,
    s: States,
    by: Drives,
    w: Array,
    closed: float,
    wrenches: Wrenches,
    chosen: Sequence[int],
) -> tuple[Array, Array]:
    """u (B, nv), and its derivatives (B, nv, columns) by q, v, a, parameters and changes of r."""
    model, nv, driven = system.model, system.model.nv, by.driven
    r = system.tree("inverse_dynamics", s)
    v, a = s.vectors
    t = system.closed_terms(s, v, closed)
    sets = system.choices(s, t)
    u, f, mu = np.zeros((len(s), nv)), np.zeros((len(s), system.count)), np.zeros((len(s), nv))
    for rows, at in saddle.alike(sets):
        R = t.jacobian[np.ix_(at, rows)]
        check_determined(model, s.function, R, driven, lambda k, at=at: s.which(at[k]))  # type: ignore[misc]
        solved = _balance(w, R, driven, r[at][..., None])
        u[at], f[np.ix_(at, rows)], mu[at] = (x[..., 0] for x in solved)  # (3)
    if len(s) and system.count:
        rows = np.flatnonzero(sets[0])
        by.learn(rows, saddle.independent_columns(t.jacobian[0, rows])[1])
    still = np.zeros_like(v)
    of_bodies = [*_tree_derivatives(system, s, a)]
    of_bodies[0] = of_bodies[0] - system.derivatives(s, v, a, f)[0]
    of_rows = [system.derivatives(s, still, mu, f)[1], *np.zeros((2, len(s), system.count, nv))]  # (G mu)_q
    if chosen:
        push, row, _ = system.parameter_derivatives(s, still, mu, f, chosen)
        of_bodies.append(effort_derivatives(system, s, a, wrenches, chosen) - push)
        of_rows.append(row)
    of_bodies.append(np.broadcast_to(np.eye(nv), (len(s), nv, nv)))  # changes of r
    of_rows.append(np.zeros((len(s), system.count, nv)))
    g, c = (np.concatenate(parts, axis=2) for parts in (of_bodies, of_rows))
    du = np.zeros_like(g)
    for rows, alike in saddle.alike(sets):
        for at in saddle.in_parts(alike, (2 * nv + len(rows)) * g.shape[2]):
            own = np.ix_(at, rows)
            du[at] = _balance(w, t.jacobian[own], driven, g[at], c[own])[0]  # (4)
    return u, du


def _balance(
    w: Array, R: Array, driven: Array, g: Array, c: Array | float = 0.0
) -> tuple[Array, Array, Array]:
    """Columns of u (all speeds), f and mu with W u + S^T mu = 0, R mu = -c, S u + R^T f = g, for rows (B, m, nv)."""
    n, m, nv = len(driven), *R.shape[1:]
    count, columns = len(R), g.shape[2]
    W, rows, b = (
        np.zeros((count, n + m, n + m)),
        np.zeros((count, nv, n + m)),
        np.zeros((count, n + m, columns)),
    )
    each = np.arange(n)
    W[:, each, each] = w
    rows[:, driven, each] = 1.0
    rows[:, :, n:] = np.swapaxes(R, -1, -2)
    b[:, n:] = -c
    x, minus_mu = saddle.orthogonal(W, rows, g, b)
    u = np.zeros((count, nv, columns))
    u[:, driven] = x[:, :n]
    return u, x[:, n:], -minus_mu


def check_determined(
    model: Model, function: str, R: Array, driven: Array, where: Callable[[int], str] = lambda k: ""
) -> None:
    """Whether the driven set can give every motion with R v = 0, for rows (B, m, nv); `where` is said of state k."""
    m = R.shape[1]
    left = model.nv - m
    V = np.linalg.svd(R)[2][:, m:] if m else np.broadcast_to(np.eye(left), (len(R), left, left))
    size = np.linalg.svd(V[..., driven], compute_uv=False)  # of the motions that are left
    drives = np.sum(size > REGULAR * np.maximum(1.0, size.max(axis=-1, keepdims=True, initial=0.0)), axis=-1)
    if np.any(drives < left):
        k = int(np.argmax(drives < left))
        raise NumericalError(
            f"{function}: the actuated set ({listed(model, driven)}) drives {drives[k]} of the {left} degrees of freedom "
            f"that the constraints leave{where(k)}; efforts exist for some motions only, and have no derivative there"
        )
