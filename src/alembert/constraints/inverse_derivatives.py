"""Derivatives of constrained inverse dynamics, through the conditions that its efforts satisfy.

The efforts u of the driven degrees of freedom (S their columns, W their weights) are the smallest that, with forces f of the
minimal set R, balance the tree's inverse dynamics r(q, v, a):

    min u^T W u / 2,   S u + R^T f = r                                                                (1)

    [W   0   S^T] [u ]   [0]
    [0   0   R  ] [f ] = [0]                                                                          (2)
    [S  R^T  0  ] [mu]   [r]

and with x any of q (tangent), v, a and the parameters,

    K d(u, f, mu) = (0; -(R mu)_x dx; (r - R^T f)_x dx)                                               (3)

The minimal set is held. K is regular where the actuated set can give every motion that the constraints leave.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.constraints import drives, parameter_slopes, rank
from alembert.constraints.derivative_solution import NEAR
from alembert.constraints.derivatives import _constraint_derivatives, _inverse_derivatives, in_parts
from alembert.constraints.drives import Drives
from alembert.constraints.dynamics import _drives, _listed, _no_terms, _tree, _with_wrenches, weight_vector
from alembert.constraints.results import ConstrainedInverseDerivatives
from alembert.constraints.states import States
from alembert.constraints.system import ConstraintSystem
from alembert.errors import ArgumentError, NumericalError

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray
REGULAR = 1e-10
"""smallest singular value of E^T S, relative to the largest, at which the driven set gives all motions"""


def inverse(
    system: ConstraintSystem,
    function: str,
    q: Any,
    v: Any,
    a: Any,
    actuated: Sequence[str] | None,
    weights: Mapping[str, float] | None,
    wrenches: Mapping[str, Any] | None,
    parameters: Mapping[str, Any] | None,
    closed: float,
    sensitive_to: Sequence[str],
) -> ConstrainedInverseDerivatives:
    """(3)"""
    model, nv = system.model, system.model.nv
    chosen = model.compute.parameter_indices(function, sensitive_to)
    forces = model.compute.wrench_array(function, wrenches, parameters) if wrenches else None
    by = _drives(system, function, actuated)
    driven, w = by.driven, weight_vector(model, function, weights)[by.driven]
    if not chosen:
        quickly = _attempt(system, function, (q, v, a), by, np.sqrt(w), forces, parameters, closed)
        if quickly is not None:
            u, dq, dv, da, dr = quickly
            pushes = model.compute.generalised_forces(q, wrenches, parameters)
            return ConstrainedInverseDerivatives(
                u, dq, dv, da, {}, {frame: -dr @ J for frame, J in pushes.items()}
            )
    s, forces = _with_wrenches(model, function, q, {"v": v, "a": a}, forces, parameters)
    r = _tree(system, "inverse_dynamics", function, s, forces)
    v, a = s.vectors
    t = system.terms(s, v) if system.count else _no_terms(s, nv)
    if system.count:
        system.check_closed(function, s, t, v, closed)
    chosen_rows = system.choices(function, s, t) if system.count else np.zeros((len(s), 0), dtype=bool)
    sets = [*rank.alike(chosen_rows)]
    f, mu, u = np.zeros((len(s), system.all.count)), np.zeros((len(s), nv)), np.zeros((len(s), nv))
    n = len(driven)
    for rows, at in sets:
        R, m = t.jacobian[np.ix_(at, rows)], len(rows)
        check_determined(model, function, R, driven, functools.partial(_which, system, s, at))
        known = np.concatenate([np.zeros((len(at), n + m)), r[at]], axis=1)
        found = np.linalg.solve(_matrix(w, R, driven), known[..., None])[..., 0]  # (2)
        u[np.ix_(at, driven)], mu[at] = found[:, :n], found[:, n + m :]
        f[np.ix_(at, system.picked[rows])] = found[:, n : n + m]
    if sets and system.count:
        by.learn(sets[0][0], rank.independent_columns(t.jacobian[0, sets[0][0]])[1])
    r_q, r_v, M = _inverse_derivatives(system, s, a, forces)
    still = States(s.shape, s.q, (np.zeros_like(v),), s.parameters)
    count = 3 * nv + len(chosen)
    pushed = nv if wrenches else 0  # a wrench acts like efforts: dr = -J^T dF
    of_bodies = np.zeros((len(s), nv, count + pushed))
    of_rows = np.zeros((len(s), system.all.count, count + pushed))
    of_bodies[..., : 3 * nv] = np.concatenate([r_q, r_v, M], axis=2)
    of_bodies[..., count:] = np.eye(nv)[:, :pushed]
    if system.count:
        of_bodies[..., :nv] -= _constraint_derivatives(system, s, a, f)[0]
        of_rows[..., :nv] = -_constraint_derivatives(system, still, mu, f)[1]  # (G mu)_q
    if chosen:
        of_bodies[..., 3 * nv : count] = parameter_slopes.effort_slopes(system, s, a, wrenches, chosen)
        if system.count:
            slopes = parameter_slopes.constraint_slopes(system, still, mu, f, chosen)
            of_bodies[..., 3 * nv : count] -= slopes.push
            of_rows[:, system.picked, 3 * nv : count] = -slopes.row
    answers = np.zeros((len(s), nv, count + pushed))
    for rows, states in sets:
        for at in in_parts(states, (2 * nv + len(rows)) * (count + pushed)):
            K = _matrix(w, t.jacobian[np.ix_(at, rows)], driven)
            none = np.zeros((len(at), n, count + pushed))
            right = np.concatenate([none, of_rows[np.ix_(at, system.picked[rows])], of_bodies[at]], axis=1)
            answers[np.ix_(at, driven)] = np.linalg.solve(K, right)[:, :n]  # (3)
    parts = (u, *np.split(answers, [nv, 2 * nv, 3 * nv, count], axis=2))
    u, dq, dv, da, dp, dr = (x.reshape(*s.shape, *x.shape[1:]) for x in parts)
    by_name = {name: dp[..., i] for i, name in enumerate(sensitive_to)}
    by_frame = {
        frame: -dr @ J
        for frame, J in model.compute.generalised_forces(q, wrenches, parameters).items()
        if pushed
    }
    return ConstrainedInverseDerivatives(u, dq, dv, da, by_name, by_frame)


def _attempt(
    system: ConstraintSystem,
    function: str,
    given: tuple[Any, ...],
    by: Drives,
    root: Array,
    forces: Array | None,
    parameters: Mapping[str, Any] | None,
    closed: float,
) -> tuple[Array, ...] | None:
    """u, dq, dv, da, dr by compiled functions on the arguments as they come, if their choice is that of all states."""
    model, rows = system.model, system.all
    if by.current is None or system.kept is None or system.kept.rank != len(by.current[0]):
        return None
    if parameters and not model.parameters:
        return None
    last = (model.compute.parameter_array(function, parameters),) if model.parameters else ()
    pushes = () if forces is None else (forces,)
    kernel = rows.primary.compute.kernel("inverse_dynamics", wrenches=forces is not None)
    try:
        r = kernel(*given, *pushes, *last)
        u, f, _, mu, status = by.solve(given, r, root, last)
    except (ArgumentError, TypeError, ValueError):
        return None
    if not drives.all_served(status, min(closed, NEAR), unique=True):
        return None
    q, v, a = given
    kernel = rows.primary.compute.kernel("inverse_dynamics_derivatives", wrenches=forces is not None)
    r_q, r_v, M = kernel(q, v, a, *pushes, *last)
    push_q = rows.derivatives(q, v, a, f, *last)[0]
    row_q = rows.derivatives(q, np.zeros(model.nv), mu, f, *last)[1]  # (G mu)_q
    return u, *by.slopes(q, root, r_q, r_v, M, push_q, row_q, *last)


def _which(system: ConstraintSystem, s: States, at: Array, k: int) -> str:
    return system.which(s, at[k])


def _matrix(w: Array, R: Array, driven: Array) -> Array:
    """K of (2) for rows (B, m, nv)."""
    n, m, nv = len(driven), *R.shape[1:]
    K = np.zeros((len(R), n + m + nv, n + m + nv))
    each = np.arange(n)
    K[:, each, each] = w
    K[:, each, n + m + driven] = K[:, n + m + driven, each] = 1.0
    K[:, n : n + m, n + m :], K[:, n + m :, n : n + m] = R, np.swapaxes(R, -1, -2)
    return K


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
            f"{function}: the actuated set ({_listed(model, driven)}) drives {drives[k]} of the {left} degrees of freedom "
            f"that the constraints leave{where(k)}; efforts exist for some motions only, and have no derivative there"
        )
