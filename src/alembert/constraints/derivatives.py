"""Derivatives of constrained dynamics, through the equations that the solution satisfies.

With r(q, v, a) the tree's inverse dynamics, R the rows of the minimal set and f their forces,

    r(q, v, a) - R^T f = tau,     R a + gamma = 0                                                     (1)

    [M  -R^T] [da]   [dtau - (r_q - (R^T f)_q) dq - r_v dv]
    [R    0 ] [df] = [     - (R a + gamma)_q dq - gamma_v dv ]                                        (2)

and with respect to parameters, at fixed q, v and tau, the right-hand side (see `parameter_slopes`)

    (-(r_p - (R^T f)_p) dp;  -(R a + gamma)_p dp)                                                     (3)

Derivatives with respect to q are tangent. r_q, r_v and M are the tree's, in O(n depth); the constraints' parts are
differentiated loop by loop, each with respect to the joints of its own loop only: a motion of all of a loop changes nothing.

The minimal set is held: along the constraint surface a does not depend on it, away from it the derivative is that of the
solution of the chosen rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.constraints import derivative_solution, parameter_slopes, rank, saddle
from alembert.constraints.dynamics import _at, _tree, _with_wrenches
from alembert.constraints.equations import columns, equations
from alembert.constraints.results import ConstrainedDerivatives
from alembert.constraints.states import States, Terms
from alembert.constraints.system import ConstraintSystem
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import ArgumentError
from alembert.lowering.plan import Call, Plan

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray
Evaluation = Callable[..., Any]
LARGEST = 1000
"""blocks' entries above which the derivatives are not compiled (up to a hundred instructions each)"""
AT_ONCE = 1 << 20
"""numbers in the right-hand sides of the states that are solved for at once"""


def forward(
    system: ConstraintSystem,
    function: str,
    q: Any,
    v: Any,
    tau: Any,
    wrenches: Mapping[str, Any] | None,
    parameters: Mapping[str, Any] | None,
    closed: float,
    sensitive_to: Sequence[str] = (),
) -> ConstrainedDerivatives:
    """(2) and (3)"""
    model = system.model
    chosen = model.compute.parameter_indices(function, sensitive_to)
    forces = model.compute.wrench_array(function, wrenches, parameters) if wrenches else None
    if not chosen:
        quickly = _attempt(system, function, (q, v, tau), forces, parameters, closed)
        if quickly is not None:
            return quickly
    s, forces = _with_wrenches(model, function, q, {"v": v, "tau": tau}, forces, parameters)
    free = _tree(system, "forward_dynamics", function, s, forces)
    if not system.count:
        return _tree_alone(system, s, forces, free, wrenches, sensitive_to, chosen)
    t = system.terms(s, s.vectors[0])
    system.check_closed(function, s, t, s.vectors[0], closed)
    sets = system.choices(function, s, t)
    a, slopes = np.empty((len(s), model.nv)), np.empty((len(s), model.nv, 3 * model.nv + len(chosen)))
    served = np.zeros(len(s), dtype=bool) if chosen else _by_sets(system, s, forces, sets, closed, a, slopes)
    served &= np.isfinite(free).all(axis=-1)  # not where a joint is locked
    if not served.any():
        a, slopes = _dense(system, s, t, free, sets, forces, wrenches, chosen)
    elif not served.all():
        at = ~served
        some = None if forces is None else forces[at]
        a[at], slopes[at] = _dense(system, s.at(at), _at(t, at), free[at], sets[at], some, None, chosen)
    return _shaped(s, a, slopes, sensitive_to)


def _attempt(
    system: ConstraintSystem,
    function: str,
    given: tuple[Any, ...],
    forces: Array | None,
    parameters: Mapping[str, Any] | None,
    closed: float,
) -> ConstrainedDerivatives | None:
    """By compiled functions on the arguments as they come, if the minimal set that is kept is that of all states."""
    model = system.model
    if system.kept is None or system.all.primary.compute.lockable or (parameters and not model.parameters):
        return None
    if forces is not None:
        given = (*given, forces)
    if model.parameters:
        given = (*given, model.compute.parameter_array(function, parameters))
    try:
        solved = derivative_solution.accelerations(system, given, system.masks, wrenches=forces is not None)
    except (ArgumentError, TypeError, ValueError):
        return None
    if solved is None or not derivative_solution.own_set(solved[-1], closed):
        return None
    return ConstrainedDerivatives(
        solved[0], *derivative_solution.slopes(system, given, forces, solved, system.masks[0])
    )


def _by_sets(
    system: ConstraintSystem,
    s: States,
    forces: Array | None,
    sets: Array,
    closed: float,
    a: Array,
    slopes: Array,
) -> Array:
    """By compiled functions with the minimal sets of all states, into `a` and `slopes`; which states these served."""
    if not len(s):
        return np.zeros(0, dtype=bool)
    given = s.given(s.q, *s.vectors) if forces is None else s.given(s.q, *s.vectors, forces)
    chosen = np.zeros((len(s), system.all.count))
    chosen[:, system.picked] = sets
    solved = derivative_solution.accelerations(
        system, given, (chosen, system.masks[1]), wrenches=forces is not None
    )
    if solved is None:
        return np.zeros(len(s), dtype=bool)
    a[:] = solved[0]
    found = derivative_solution.slopes(system, given, forces, solved, chosen)
    np.concatenate(found, axis=2, out=slopes)
    return derivative_solution.served(solved[-1], closed)


def _dense(
    system: ConstraintSystem,
    s: States,
    t: Terms,
    free: Array,
    sets: Array,
    forces: Array | None,
    wrenches: Mapping[str, Any] | None,
    chosen: Sequence[int],
) -> tuple[Array, Array]:
    """Accelerations, and (2) and (3) by dense factors for any minimal sets."""
    nv, alike = system.model.nv, [*rank.alike(sets)]
    a, f = _solved(system, s, t, free, alike)
    right = _right_sides(system, s, a, f, forces, wrenches, chosen)
    slopes = np.empty_like(right.of_bodies)
    for rows, states in alike:
        for at in in_parts(states, right.size):
            R, M = t.jacobian[np.ix_(at, rows)], right.mass_matrix[at]
            of_rows = right.of_rows[np.ix_(at, system.picked[rows])]
            known = np.concatenate([right.of_bodies[at], of_rows], axis=1)
            slopes[at] = np.linalg.solve(_matrix(M, R), known)[:, :nv]
    return a, slopes


def _shaped(s: States, a: Array, slopes: Array, names: Sequence[str]) -> ConstrainedDerivatives:
    """From the derivatives with respect to q, v, tau and parameters, (B, nv, columns)."""
    nv = a.shape[-1]
    parts = (a, *np.split(slopes, [nv, 2 * nv, 3 * nv], axis=2)[:3])
    a, dq, dv, dtau = (x.reshape(*s.shape, *x.shape[1:]) for x in parts)
    return ConstrainedDerivatives(a, dq, dv, dtau, _by_name(s, slopes[..., 3 * nv :], names))


@dataclass(frozen=True, eq=False)
class _RightSides:
    """Of (2) and (3), for q, v, tau and parameters one after another: (B, nv, columns) and (B, all rows, columns); M."""

    of_bodies: Array
    of_rows: Array
    mass_matrix: Array

    @property
    def size(self) -> int:
        """Numbers per state."""
        return (self.of_bodies.shape[1] + self.of_rows.shape[1]) * self.of_bodies.shape[2]


def _right_sides(
    system: ConstraintSystem,
    s: States,
    a: Array,
    f: Array,
    forces: Array | None,
    wrenches: Mapping[str, Any] | None,
    chosen: Sequence[int],
) -> _RightSides:
    nv, count = system.model.nv, 3 * system.model.nv
    r_q, r_v, M = _inverse_derivatives(system, s, a, forces)
    push_q, row_q, row_v = _constraint_derivatives(system, s, a, f)
    bodies = np.zeros((len(s), nv, count + len(chosen)))
    rows = np.zeros((len(s), system.all.count, count + len(chosen)))
    bodies[..., :nv], bodies[..., nv : 2 * nv], bodies[..., 2 * nv : count] = push_q - r_q, -r_v, np.eye(nv)
    rows[..., :nv], rows[..., nv : 2 * nv] = -row_q, -row_v
    if chosen:
        r_p = parameter_slopes.effort_slopes(system, s, a, wrenches, chosen)
        slopes = parameter_slopes.constraint_slopes(system, s, a, f, chosen)
        bodies[..., count:] = slopes.push - r_p
        rows[:, system.picked, count:] = -slopes.row
    return _RightSides(bodies, rows, M)


def _matrix(M: Array, R: Array) -> Array:
    """Of (2), (B, nv + r, nv + r)."""
    nv, r = M.shape[-1], R.shape[-2]
    matrix = np.zeros((len(M), nv + r, nv + r))
    matrix[:, :nv, :nv], matrix[:, nv:, :nv] = M, R
    matrix[:, :nv, nv:] = -np.swapaxes(R, -1, -2)
    return matrix


def in_parts(states: Array, size: int) -> Iterator[Array]:
    """Some states after others, so that matrices of `size` numbers for each do not take too much memory at once."""
    count = max(1, AT_ONCE // max(1, size))
    for start in range(0, len(states), count):
        yield states[start : start + count]


def _by_name(s: States, columns: Array, names: Sequence[str]) -> dict[str, Array]:
    return {name: columns[..., i].reshape(*s.shape, -1) for i, name in enumerate(names)}


def _tree_alone(
    system: ConstraintSystem,
    s: States,
    forces: Array | None,
    a: Array,
    wrenches: Mapping[str, Any] | None,
    names: Sequence[str],
    chosen: Sequence[int],
) -> ConstrainedDerivatives:
    r_q, r_v, M = _inverse_derivatives(system, s, a, forces)
    inverse = np.linalg.inv(M)
    da_dp = np.zeros((*a.shape, 0))
    if chosen:
        da_dp = -inverse @ parameter_slopes.effort_slopes(system, s, a, wrenches, chosen)
    found = (x.reshape(*s.shape, *x.shape[1:]) for x in (a, -inverse @ r_q, -inverse @ r_v, inverse))
    a, da_dq, da_dv, da_dtau = found
    return ConstrainedDerivatives(a, da_dq, da_dv, da_dtau, _by_name(s, da_dp, names))


def _solved(
    system: ConstraintSystem, s: States, t: Terms, free: Array, sets: Sequence[tuple[Array, Array]]
) -> tuple[Array, Array]:
    """Accelerations, and forces of all rows by the minimal sets, from the factorisation (5) of `admittance`."""
    b = -(t.bias + (t.jacobian @ free[..., None])[..., 0])
    M, a, f = system.mass_matrix(s), free.copy(), np.zeros((len(s), system.all.count))
    for rows, at in sets:
        x, own = saddle.orthogonal(M[at], t.jacobian[np.ix_(at, rows)], b[np.ix_(at, rows)])
        a[at] += x
        f[np.ix_(at, system.picked[rows])] = own
    return a, f


def _inverse_derivatives(
    system: ConstraintSystem, s: States, a: Array, forces: Array | None
) -> tuple[Array, Array, Array]:
    kernel = system.all.primary.compute.kernel("inverse_dynamics_derivatives", wrenches=forces is not None)
    arrays = (s.q, s.vectors[0], a) if forces is None else (s.q, s.vectors[0], a, forces)
    dq, dv, da = kernel(*s.given(*arrays))
    return dq, dv, da


def _constraint_derivatives(
    system: ConstraintSystem, s: States, a: Array, f: Array
) -> tuple[Array, Array, Array]:
    """(R^T f)_q (B, nv, nv), (G a + gamma)_q and gamma_v (B, m, nv), of all constraints."""
    rows = system.all
    packed = rows.derivatives(*s.given(s.q, s.vectors[0], a, f))
    return rows.spread_square(packed[0]), rows.spread(packed[1]), rows.spread(packed[2])


def derivative_kernel(model: Model, slices: Sequence[slice]) -> Evaluation:
    """(q, v, a, f) -> for every constraint, by rows: (R^T f)_q, (G a + gamma)_q, gamma_v over its own joints."""
    touched = columns(model.compute.tree)
    sizes = [(s.stop - s.start, len(c)) for s, c in zip(slices, touched, strict=True)]
    inputs = [Argument("q", (model.nq,)), *(Argument(name, (model.nv,)) for name in ("v", "a"))]
    inputs.append(Argument("f", (slices[-1].stop,)))
    if model.parameters:
        inputs.append(Argument("parameters", (len(model.parameters),)))
    square, flat = sum(c * c for _, c in sizes), sum(m * c for m, c in sizes)
    results = [Argument("push_q", (square,)), Argument("row_q", (flat,)), Argument("row_v", (flat,))]

    if sum((m + c) * c for m, c in sizes) > LARGEST:
        symbols = [ca.SX.sym(a.name, *a.shape) for a in inputs]
        parts = [function.call(symbols) for function in _functions(model, slices, inputs)]
        whole = [ca.vertcat(ca.SX(0, 1), *column) for column in zip(*parts, strict=True)]
        return _interpreted(ca.Function("constraint_derivatives", symbols, whole))
    key = f"{model.fingerprint}:constraint_derivatives"
    return Kernel(
        "constraint_derivatives",
        inputs,
        results,
        key=key,
        build=lambda: _stages(_functions(model, slices, inputs), inputs, results),
    )


def _stages(
    functions: Sequence[ca.Function], inputs: Sequence[Argument], results: Sequence[Argument]
) -> KernelSource:
    """One constraint after another, so that compile time is linear in their number; then their parts in order."""
    given, kinds = [a.name for a in inputs], [a.name for a in results]
    parts = [
        {f"{kind}{k}": function.numel_out(i) for i, kind in enumerate(kinds)}
        for k, function in enumerate(functions)
    ]
    buffers = {name: size for part in parts for name, size in part.items()}
    symbols = {name: ca.SX.sym(name, size) for name, size in buffers.items()}
    whole = [ca.vertcat(*(symbols[f"{kind}{k}"] for k in range(len(parts)))) for kind in kinds]
    gather = ca.Function("gather", list(symbols.values()), whole)
    return Plan(
        {a.name: a.size for a in inputs},
        {a.name: a.size for a in results},
        buffers,
        [
            *(Call(FunctionSource(f), given, list(part)) for f, part in zip(functions, parts, strict=True)),
            Call(FunctionSource(gather), list(buffers), kinds),
        ],
    )


def _functions(model: Model, slices: Sequence[slice], inputs: Sequence[Argument]) -> list[ca.Function]:
    """For every constraint (R^T f)_q, (G a + gamma)_q, gamma_v over its own joints, by rows."""
    symbols = {a.name: ca.SX.sym(a.name, *a.shape) for a in inputs}
    q, v, a, f = (symbols[name] for name in ("q", "v", "a", "f"))
    found = equations(model.compute.tree, q, v, symbols.get("parameters", ca.SX(0, 1)))
    dv = ca.SX.sym("dv", model.nv)
    tangent = ca.jacobian(model.space.rate(q, dv), dv)
    functions = []
    for s, touched in zip(slices, columns(model.compute.tree), strict=True):
        own = [int(k) for k in touched]
        # only the coordinates of the loop's own joints: the others move all of it
        at = [k for k in range(model.nq) if tangent[k, own].nnz()]
        T = tangent[at, own]
        G = found.jacobian[s, own]
        row = G @ a[own] + found.bias[s]
        parts = [
            ca.jacobian(G.T @ f[s], q[at]) @ T,
            ca.jacobian(row, q[at]) @ T,
            ca.jacobian(found.bias[s], v[own]),
        ]
        functions.append(
            ca.Function("constraint_derivatives", list(symbols.values()), [_by_rows(x) for x in parts])
        )
    return functions


def _interpreted(function: ca.Function) -> Evaluation:
    """In CasADi's own machine: slow, but there is nothing to compile."""

    def evaluate(*given: Array) -> tuple[Array, ...]:
        shape = np.broadcast_shapes(*(x.shape[:-1] for x in given))
        whole = [np.broadcast_to(x, (*shape, x.shape[-1])).reshape(-1, x.shape[-1]) for x in given]
        found = function.call([ca.DM(x.T) for x in whole])  # a column for each state
        return tuple(np.array(x).T.reshape(*shape, -1) for x in found)

    return evaluate


def _by_rows(x: ca.SX) -> ca.SX:
    return ca.vec(ca.densify(x).T)
