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

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.constraints import admittance, parameter_slopes
from alembert.constraints.dynamics import _tree, _with_wrenches
from alembert.constraints.equations import columns, equations
from alembert.constraints.results import ConstrainedDerivatives
from alembert.constraints.states import States
from alembert.constraints.system import ConstraintSystem
from alembert.engine.kernel import Argument, Kernel
from alembert.engine.source import FunctionSource
from alembert.sensitivity.directional import rate

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray
Evaluation = Callable[..., Any]
LARGEST = 250
"""blocks' entries above which the derivatives are not compiled (some hundred instructions each)"""


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
    chosen = model._parameter_indices(function, sensitive_to)
    forces = model._wrench_array(function, wrenches, parameters) if wrenches else None
    s, forces = _with_wrenches(model, function, q, {"v": v, "tau": tau}, forces, parameters)
    nv, B = model.nv, len(s)
    free = _tree(system, "forward_dynamics", function, s, forces)
    if not system.count:
        return _tree_alone(system, s, forces, free, wrenches, sensitive_to, chosen)
    t = system.terms(s, s.vectors[0])
    system.check_closed(function, s, t, s.vectors[0], closed)
    a, f = np.empty((B, nv)), np.zeros((B, system.all.count))
    da_dq, da_dv, da_dtau = np.empty((B, nv, nv)), np.empty((B, nv, nv)), np.empty((B, nv, nv))
    rows = [system.choice(function, s, t, k).rows for k in range(B)]
    for k in range(B):
        a[k], own = _solved(system, s, t, free, k, rows[k])
        f[k, system.picked[rows[k]]] = own
    r_q, r_v, M = _inverse_derivatives(system, s, a, forces)
    push_q, row_q, row_v = _constraint_derivatives(system, s, a, f)
    da_dp = np.empty((B, nv, len(chosen)))
    if chosen:
        r_p = parameter_slopes.effort_slopes(system, s, a, wrenches, chosen)
        slopes = parameter_slopes.constraint_slopes(system, s, a, f, chosen)
    for k in range(B):
        R, picked = t.jacobian[k, rows[k]], system.picked[rows[k]]
        r = len(R)
        matrix = np.block([[M[k], -R.T], [R, np.zeros((r, r))]])
        right = np.block(
            [
                [-(r_q[k] - push_q[k]), -r_v[k], np.eye(nv)],
                [-row_q[k, picked], -row_v[k, picked], np.zeros((r, nv))],
            ]
        )
        if chosen:
            columns_p = np.vstack([-(r_p[k] - slopes.push[k]), -slopes.row[k, rows[k]]])  # (3)
            right = np.hstack([right, columns_p])
        answer = np.linalg.solve(matrix, right)[:nv]
        da_dq[k], da_dv[k], da_dtau[k], da_dp[k] = np.split(answer, [nv, 2 * nv, 3 * nv], axis=1)
    a, da_dq, da_dv, da_dtau = (x.reshape(*s.shape, *x.shape[1:]) for x in (a, da_dq, da_dv, da_dtau))
    return ConstrainedDerivatives(a, da_dq, da_dv, da_dtau, _by_name(s, da_dp, sensitive_to))


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
    system: ConstraintSystem, s: States, t: Any, free: Array, k: int, rows: Array
) -> tuple[Array, Array]:
    """Accelerations and forces of the minimal set, from the orthogonal factorisation (5) of `system`."""
    b = -(t.bias[k] + t.jacobian[k] @ free[k])
    x, f = admittance.orthogonal(system.mass_matrix(s.at(k))[0], t.jacobian[k, rows], b[rows])
    return free[k] + x, f


def _inverse_derivatives(
    system: ConstraintSystem, s: States, a: Array, forces: Array | None
) -> tuple[Array, Array, Array]:
    kernel = system.all.primary._kernel("inverse_dynamics_derivatives", wrenches=forces is not None)
    arrays = (s.q, s.vectors[0], a) if forces is None else (s.q, s.vectors[0], a, forces)
    dq, dv, da = kernel(*s.given(*arrays))
    return dq, dv, da


def _constraint_derivatives(
    system: ConstraintSystem, s: States, a: Array, f: Array
) -> tuple[Array, Array, Array]:
    """(R^T f)_q (B, nv, nv), (G a + gamma)_q and gamma_v (B, m, nv), of all constraints."""
    rows = system.all
    nv, B = system.model.nv, len(s)
    packed = rows.derivatives(*s.given(s.q, s.vectors[0], a, f))
    push, row_q, row_v = np.zeros((B, nv, nv)), np.zeros((B, rows.count, nv)), np.zeros((B, rows.count, nv))
    start = np.zeros(2, dtype=int)
    for at, touched in zip(rows.slices.values(), columns(system.model._tree), strict=True):
        c, m = len(touched), at.stop - at.start
        own = np.arange(at.start, at.stop)
        block = packed[0][:, start[0] : start[0] + c * c].reshape(B, c, c)
        push[:, touched[:, None], touched] += block
        for target, source in ((row_q, packed[1]), (row_v, packed[2])):
            target[:, own[:, None], touched] = source[:, start[1] : start[1] + m * c].reshape(B, m, c)
        start += (c * c, m * c)
    return push, row_q, row_v


def derivative_kernel(model: Model, slices: Sequence[slice]) -> Evaluation:
    """(q, v, a, f) -> for every constraint, by rows: (R^T f)_q, (G a + gamma)_q, gamma_v over its own joints."""
    touched = columns(model._tree)
    sizes = [(s.stop - s.start, len(c)) for s, c in zip(slices, touched, strict=True)]
    inputs = [Argument("q", (model.nq,)), *(Argument(name, (model.nv,)) for name in ("v", "a"))]
    inputs.append(Argument("f", (slices[-1].stop,)))
    if model.parameters:
        inputs.append(Argument("parameters", (len(model.parameters),)))
    square, flat = sum(c * c for _, c in sizes), sum(m * c for m, c in sizes)
    results = [Argument("push_q", (square,)), Argument("row_q", (flat,)), Argument("row_v", (flat,))]

    if sum((m + c) * c for m, c in sizes) > LARGEST:
        return _interpreted(_function(model, slices, inputs))
    key = f"{model.fingerprint}:constraint_derivatives"
    return Kernel(
        "constraint_derivatives",
        inputs,
        results,
        key=key,
        build=lambda: FunctionSource(_function(model, slices, inputs)),
    )


def _function(model: Model, slices: Sequence[slice], inputs: Sequence[Argument]) -> ca.Function:
    symbols = {a.name: ca.SX.sym(a.name, *a.shape) for a in inputs}
    q, v, a, f = (symbols[name] for name in ("q", "v", "a", "f"))
    found = equations(model._tree, q, v, symbols.get("parameters", ca.SX(0, 1)))
    dv = ca.SX.sym("dv", model.nv)
    tangent = ca.jacobian(rate(model._tree, q, dv), dv)
    parts: list[list[ca.SX]] = [[], [], []]
    for s, touched in zip(slices, columns(model._tree), strict=True):
        own = [int(k) for k in touched]
        # only the coordinates of the loop's own joints: the others move all of it
        at = [k for k in range(model.nq) if tangent[k, own].nnz()]
        T = tangent[at, own]
        G = found.jacobian[s, own]
        row = G @ a[own] + found.bias[s]
        parts[0].append(_by_rows(ca.jacobian(G.T @ f[s], q[at]) @ T))
        parts[1].append(_by_rows(ca.jacobian(row, q[at]) @ T))
        parts[2].append(_by_rows(ca.jacobian(found.bias[s], v[own])))
    outputs = [ca.densify(ca.vertcat(ca.SX(0, 1), *part)) for part in parts]
    return ca.Function("constraint_derivatives", list(symbols.values()), outputs)


def _interpreted(function: ca.Function) -> Evaluation:
    """State by state in CasADi's own machine: slow, but there is nothing to compile."""

    def evaluate(*given: Array) -> tuple[Array, ...]:
        shape = np.broadcast_shapes(*(x.shape[:-1] for x in given))
        whole = [np.broadcast_to(x, (*shape, x.shape[-1])).reshape(-1, x.shape[-1]) for x in given]
        found = [[np.asarray(y).ravel() for y in function(*state)] for state in zip(*whole, strict=True)]
        return tuple(np.array(column) for column in zip(*found, strict=True))

    return evaluate


def _by_rows(x: ca.SX) -> ca.SX:
    return ca.vec(ca.densify(x).T)
