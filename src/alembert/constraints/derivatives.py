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

Products are those of the matrices that the constrained systems give. Of hybrid dynamics with prescribed speeds p, the others
f, from da = a_x dx + A dtau of constrained forward dynamics, x any of q (tangent), v, wrenches and parameters:

    A_pp dtau_p = da_p - (a_x dx)_p - A_pf dtau_f,     da = a_x dx + A dtau                            (5)

Second derivatives are those of expressions by a minimal set of constraint rows, which is held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.algorithms import directional_kernels, results
from alembert.algorithms.algorithm import Options
from alembert.algorithms.frames import QUIET
from alembert.algorithms.table import TABLE
from alembert.arguments import common
from alembert.constraints import compiled, drives, saddle, solver
from alembert.constraints.drives import check_unrolled
from alembert.constraints.dynamics import driven_dofs, drives_of, efforts_by_choice, listed, weight_vector
from alembert.constraints.results import (
    CLEAR,
    GOOD,
    NEAR,
    REGULAR,
    ConstrainedDerivatives,
    ConstrainedInverseDerivatives,
)
from alembert.constraints.solver import Parameters, Wrenches
from alembert.constraints.states import RowTerms, States, finite, states
from alembert.constraints.system import ConstraintSystem
from alembert.engine.codegen import FunctionSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import ArgumentError, NumericalError, UnsupportedError

if TYPE_CHECKING:
    from alembert.algorithms.results import HybridDerivatives, HybridResult
    from alembert.constraints.compute import ConstrainedCompute
    from alembert.constraints.drives import Drives
    from alembert.constraints.results import ConstrainedDerivatives
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


DEPENDENT = 1e-10
"""accelerations that efforts can tell apart by no more than this part of their response depend on each other"""


@dataclass(frozen=True, eq=False)
class _Slope:
    """Results, and the derivatives of all of them together with respect to each argument and the wrench on each frame."""

    values: tuple[Array, ...]
    matrices: list[Array]
    forces: Mapping[str, Array]


@QUIET
def jvp(
    model: Model,
    name: str,
    at: Sequence[Any],
    along: Sequence[Any],
    wrenches: Mapping[str, Any],
    along_wrenches: Mapping[str, Any],
) -> tuple[Any, Any]:
    with_parameters = _has_parameters(model, "jvp", name, along)
    found = _slope(model, "jvp", name, at, wrenches, with_parameters)
    names = [f"d{key}" for key in (*TABLE[name].inputs, "parameters")]
    changes = directional_kernels.gathered(tuple(found.forces), along_wrenches)
    given = [*zip(names, along, strict=False)]
    given += [(f"along_wrenches: {frame!r}", x) for frame, x in zip(found.forces, changes, strict=True)]
    matrices = [*found.matrices, *found.forces.values()]
    vectors = [
        model.compute.numbers("jvp", what, x, A.shape[-1])
        for (what, x), A in zip(given, matrices, strict=True)
    ]
    if name == "hybrid_dynamics":
        directional_kernels.check_choice(vectors[4])
    _check(model, "jvp", given, vectors, found)
    change = sum((A @ x[..., None])[..., 0] for A, x in zip(matrices, vectors, strict=True))
    if len(found.values) == 1:
        return found.values[0], change
    return found.values, tuple(np.split(change, len(found.values), axis=-1))


@QUIET
def vjp(
    model: Model, name: str, at: Sequence[Any], weight: Any, wrenches: Mapping[str, Any]
) -> tuple[Any, ...]:
    found = _slope(model, "vjp", name, at, wrenches, bool(model.parameters))
    labels = {"forward_dynamics": ["a"], "inverse_dynamics": ["tau"], "hybrid_dynamics": ["a", "effort"]}[
        name
    ]
    arguments = [Argument(label, (model.nv,)) for label in labels]
    given = directional_kernels.weights("vjp", arguments, weight, name)
    named = [(f"weight of {label}", x) for label, x in zip(labels, given, strict=True)]
    vectors = [model.compute.numbers("vjp", what, x, model.nv) for what, x in named]
    _check(model, "vjp", named, vectors, found)
    w = np.concatenate(np.broadcast_arrays(*vectors), axis=-1)[..., None, :]
    gradients = tuple((w @ A)[..., 0, :] for A in found.matrices)
    by_frame = {frame: (w @ A)[..., 0, :] for frame, A in found.forces.items()}
    return (*gradients, by_frame) if by_frame else gradients


def _check(
    model: Model, function: str, named: Sequence[tuple[str, Any]], vectors: Sequence[Array], found: _Slope
) -> None:
    """Refuse directions or weights whose batch dimensions do not go with those of the state; tell of those not finite."""
    shapes = [(what, x.shape[:-1]) for (what, _), x in zip(named, vectors, strict=True)]
    common(function, [("the state", found.values[0].shape[:-1]), *shapes])
    for (what, _), x in zip(named, vectors, strict=True):
        wrong = ~np.isfinite(x)
        if np.any(wrong):
            first = tuple(np.argwhere(wrong)[0])
            reason = f"{what} is {x[first]} at entry {first[-1]}"
            model.compute.report(function, wrong.any(axis=-1), reason)


def _has_parameters(model: Model, function: str, name: str, given: Sequence[Any]) -> bool:
    """Whether arguments, or directions of them, end with the parameters."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ArgumentError(f"{function}: {name} takes a tuple of arguments, got {given!r}")
    own = len(TABLE[name].inputs)
    if len(given) not in (own, own + bool(model.parameters)):
        raise ArgumentError(
            f"{function}: {name} takes {own + bool(model.parameters)} arguments, got {len(given)}"
        )
    return len(given) > own


def _named_parameters(model: Model, function: str, name: str, at: Sequence[Any]) -> dict[str, Array] | None:
    """By name, where they are the last argument."""
    if not _has_parameters(model, function, name, at):
        return None
    values = model.compute.numbers(function, "parameters", at[-1], len(model.parameters))
    return {key: values[..., k] for k, key in enumerate(model.parameter_values)}


def _slope(
    model: Model,
    function: str,
    name: str,
    at: Sequence[Any],
    wrenches: Mapping[str, Any],
    with_parameters: bool,
) -> _Slope:
    named = _named_parameters(model, function, name, at)
    names = list(model.parameter_values) if with_parameters else []
    if name == "hybrid_dynamics":
        return _hybrid_slope(model, function, at, wrenches, named, names)
    options: dict[str, Any] = {"wrenches": wrenches, "parameters": named, "sensitive_to": names}
    by_frame: Mapping[str, Array]
    if name == "forward_dynamics":
        d = model.constrained_dynamics_derivatives(*at[:3], **options)
        forces = model.compute.generalised_forces(at[0], wrenches, named)
        value, slopes, matrices = d.acceleration, d.dparameters, [d.dq, d.dv, d.dtau]
        by_frame = {frame: d.dtau @ J for frame, J in forces.items()}
    else:
        i = model.constrained_inverse_dynamics_derivatives(*at[:3], **options)
        value, slopes, matrices = i.efforts, i.dparameters, [i.dq, i.dv, i.da]
        by_frame = i.dwrenches
    if names:
        matrices.append(np.stack([slopes[key] for key in names], axis=-1))
    return _Slope((value,), matrices, by_frame)


def _hybrid_slope(
    model: Model,
    function: str,
    at: Sequence[Any],
    wrenches: Mapping[str, Any],
    parameters: Mapping[str, Any] | None,
    names: Sequence[str],
) -> _Slope:
    """With respect to q, v, tau (where speeds are free), a_given (where they are not), free (of which there is none)."""
    nv, keys = model.nv, TABLE["hybrid_dynamics"].inputs
    arrays = [
        model.compute.numbers(function, key, x, model.nq if key == "q" else nv)
        for key, x in zip(keys, at, strict=False)
    ]
    batch = common(function, [(key, x.shape[:-1]) for key, x in zip(keys, arrays, strict=True)])
    q, v, tau, a_given, free = arrays
    is_free = _free(model, function, free)
    p, v = np.flatnonzero(~is_free), np.broadcast_to(v, (*batch, nv))
    result = model.hybrid_dynamics(
        q,
        v,
        accelerations={model.speed_names[k]: a_given[..., k : k + 1] for k in p},
        torques={model.speed_names[k]: tau[..., k : k + 1] for k in np.flatnonzero(is_free)},
        wrenches=wrenches,
        parameters=parameters,
    )
    d, by_parameters = hybrid_derivatives(model, function, result, q, v, p, wrenches, parameters, names)

    def stacked(x: Array) -> Array:
        """Accelerations, then efforts."""
        return x.reshape(*x.shape[:-3], 2 * nv, x.shape[-1])

    matrices = [d.dq, d.dv, d.dgiven * is_free, d.dgiven * ~is_free, 0 * d.dgiven]
    matrices += [by_parameters] if names else []
    forces = {frame: stacked(x) for frame, x in d.dwrenches.items()}
    return _Slope((result.accelerations, result.efforts), [stacked(x) for x in matrices], forces)


def _free(model: Model, function: str, value: Any) -> Array:
    """Which speeds are free, at all states of a batch."""
    free = model.compute.numbers(function, "free", value, model.nv)
    choices = free.reshape(-1, model.nv)
    if not np.all((free == 0) | (free == 1)):
        raise ArgumentError(f"{function}: free is {free}, expected 1 for free and 0 for prescribed speeds")
    if np.any(choices != choices[:1]):
        raise ArgumentError(
            f"{function}: free differs between states; of a model with loops, couplings or equations, give those with the "
            "same choice together"
        )
    return choices[0] == 1 if len(choices) else np.ones(model.nv, dtype=bool)


def hybrid_derivatives(
    model: Model,
    function: str,
    result: HybridResult,
    q: Any,
    v: Any,
    p: Array,
    wrenches: Mapping[str, Any] | None,
    parameters: Mapping[str, Any] | None,
    names: Sequence[str] = (),
) -> tuple[HybridDerivatives, Array]:
    """(5), and the derivatives with respect to named parameters, (..., 2, nv, len(names))."""
    d = model.constrained_dynamics_derivatives(
        q, v, result.efforts, wrenches=wrenches, parameters=parameters, sensitive_to=names
    )
    A = d.dtau
    if not wrenches and not names:
        quickly = _quick_hybrid(model, result, d, p)
        if quickly is not None:
            return quickly, np.zeros((*A.shape[:-2], 2, model.nv, 0))
    A_pp = A[..., p[:, None], p]
    size = np.linalg.norm(A, axis=(-2, -1))
    if len(p) and np.any(np.linalg.svd(A_pp, compute_uv=False)[..., -1] < DEPENDENT * size):
        listed = ", ".join(repr(model.speed_names[i]) for i in p)
        raise UnsupportedError(
            f"{function}: the accelerations of {listed} depend on each other through loops, couplings or equations, so that "
            "many efforts give them: prescribe fewer"
        )

    def respond(moved: Array, wanted: Array | float = 0.0) -> Array:
        """(accelerations; efforts) where the prescribed move as `wanted`, and all as `moved` if nothing pushed."""
        change = np.zeros((*moved.shape[:-2], 2, *moved.shape[-2:]))
        change[..., 1, p, :] = np.linalg.solve(A_pp, wanted - moved[..., p, :])
        change[..., 0, :, :] = moved + A[..., p] @ change[..., 1, p, :]
        return change

    prescribed = np.zeros(model.nv)
    prescribed[p] = 1.0
    by_given = respond(A * (1.0 - prescribed), np.diag(prescribed)[p])
    by_given[..., 1, :, :] += np.diag(1.0 - prescribed)
    pushes = model.compute.generalised_forces(q, wrenches, parameters)
    forces = {frame: respond(A @ J) for frame, J in pushes.items()}
    empty = np.zeros((*A.shape[:-1], 0))
    slopes = np.stack([d.dparameters[key] for key in names], axis=-1) if names else empty
    found = results.HybridDerivatives(result, respond(d.dq), respond(d.dv), by_given, forces)
    return found, respond(slopes)


def _quick_hybrid(
    model: Model, result: HybridResult, d: ConstrainedDerivatives, p: Array
) -> HybridDerivatives | None:
    """As `respond` does, by a compiled function, where the prescribed speeds are clearly independent."""
    if model.nv > compiled.PRESCRIBED:
        return None
    mask = np.zeros(model.nv)
    mask[p] = 1.0
    dq, dv, dgiven, quality = compiled.prescription_derivative_kernel(model.nv)(d.dtau, mask, d.dq, d.dv)
    if not (quality[..., 0].min(initial=1.0) > CLEAR**2 and quality[..., 1].min(initial=1.0) > CLEAR**3):
        return None
    return results.HybridDerivatives(result, dq, dv, dgiven, {})


# --- second derivatives ---------------------------------------------------------------------------------------


def hessian_kernel(
    model: Model, function: str, name: str, at: Sequence[Any], wrenches: tuple[str, ...]
) -> Kernel:
    """By the minimal set of the first state, which must serve at all of them."""
    named = _named_parameters(model, function, name, at)
    for frame in wrenches:
        model.compute.check_moves(function, frame)
    free = None
    if name == "hybrid_dynamics":
        _hybrid_slope(model, function, at, {}, named, ())  # refuses motions that many efforts give
        free = tuple(_free(model, function, at[4]).tolist())
    rows, independent = _common_choice(model, function, name, at, named)
    key = ("hessian", name, wrenches, rows, independent, free)
    if key not in model.compute.kernels:
        active = tuple(range(model.constrained_compute.rows.count))
        options = Options(wrenches=wrenches, chosen=rows, active=active, free=free)
        if name == "inverse_dynamics":
            driven = driven_dofs(model, function, None)
            weights = weight_vector(model, function, None)[driven]
            drives = (tuple(driven.tolist()), tuple(weights.tolist()))
            options = replace(options, independent=independent, drives=drives)
        model.compute.kernels[key] = _hessian_of(model, name, TABLE[name].held, options)
    return model.compute.kernels[key]


def _hessian_of(model: Model, called: str, name: str, options: Options) -> Kernel:
    """Of the graph of an algorithm, `called` something, by a given minimal set of constraint rows."""
    found, _ = directional_kernels.algorithm(model, name, options)
    inputs, outputs = directional_kernels.arguments(model, "hessian", found)
    places = [model.compute.carrier(x) for x in options.wrenches]
    key = f"{model.fingerprint}:hessian:{name}:{options!r}:{places!r}"
    return Kernel(
        f"hessian({called})",
        inputs,
        outputs,
        key=key,
        build=lambda: FunctionSource(directional_kernels.function(model, "hessian", name, options)),
    )


def _common_choice(
    model: Model, function: str, name: str, at: Sequence[Any], parameters: Mapping[str, Any] | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The minimal set of rows at the first of some states, and for inverse dynamics the independent columns."""
    system = model.constrained_compute.rows.system(function, None)
    s = states(model, function, at[0], {"v": at[1]}, parameters)
    if not len(s):
        raise ArgumentError(f"{function}: takes at least one state, to choose constraint rows at")
    t = system.closed_terms(s, s.vectors[0])
    choice = system.choice(s, t, 0)
    inverse = name == "inverse_dynamics"
    dependent, free = saddle.independent_columns(t.jacobian[0, choice.rows])
    if inverse:
        check_unrolled(model, function, len(choice.rows))
    G = t.jacobian[:, choice.rows]
    parts = [G / t.scale[:, choice.rows, None]]
    if inverse:
        check_determined(model, function, G, driven_dofs(model, function, None), s.which)
        parts.append(parts[0][..., dependent])
    served = saddle.choose_each(t.jacobian, system.groups, system.tolerances(t))[0].sum(axis=1) == choice.rank
    for X in parts if choice.rank else ():
        served &= np.linalg.svd(X, compute_uv=False)[:, -1] >= GOOD
    served[0] = True
    if not served.all():
        raise NumericalError(
            f"{function}: the constraint rows or speeds that are independent at the first state are not at state "
            f"{np.argmin(served)}; give the states one by one"
        )
    return tuple(system.picked[choice.rows].tolist()), tuple(free.tolist()) if inverse else ()
