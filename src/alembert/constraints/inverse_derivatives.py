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

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.constraints import parameter_slopes
from alembert.constraints.derivatives import _constraint_derivatives, _inverse_derivatives
from alembert.constraints.dynamics import _driven, _listed, _no_terms, _tree, _with_wrenches, weight_vector
from alembert.constraints.results import ConstrainedInverseDerivatives
from alembert.constraints.states import States
from alembert.constraints.system import ConstraintSystem
from alembert.errors import NumericalError

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
    chosen = model._parameter_indices(function, sensitive_to)
    forces = model._wrench_array(function, wrenches, parameters) if wrenches else None
    s, forces = _with_wrenches(model, function, q, {"v": v, "a": a}, forces, parameters)
    driven = _driven(model, function, actuated)
    w = weight_vector(model, function, weights)[driven]
    r = _tree(system, "inverse_dynamics", function, s, forces)
    v, a = s.vectors
    t = system.terms(s, v) if system.count else _no_terms(s, nv)
    if system.count:
        system.check_closed(function, s, t, v, closed)
    rows = [system.choice(function, s, t, k).rows if system.count else np.arange(0) for k in range(len(s))]
    S = np.eye(nv)[:, driven]
    matrices, f, mu = [], np.zeros((len(s), system.all.count)), np.zeros((len(s), nv))
    u = np.zeros((len(s), nv))
    for k in range(len(s)):
        R = t.jacobian[k, rows[k]]
        check_determined(model, function, R, driven)
        n, m = len(driven), len(R)
        K = np.zeros((n + m + nv, n + m + nv))
        K[:n, :n] = np.diag(w)
        K[:n, n + m :], K[n + m :, :n] = S.T, S
        K[n : n + m, n + m :], K[n + m :, n : n + m] = R, R.T
        found = np.linalg.solve(K, np.concatenate([np.zeros(n + m), r[k]]))  # (2)
        u[k, driven], mu[k] = found[:n], found[n + m :]
        if m:
            f[k, system.picked[rows[k]]] = found[n : n + m]
        matrices.append(K)
    r_q, r_v, M = _inverse_derivatives(system, s, a, forces)
    still = States(s.shape, s.q, (np.zeros_like(v),), s.parameters)
    if system.count:
        push_q = _constraint_derivatives(system, s, a, f)[0]
        row_q = _constraint_derivatives(system, still, mu, f)[1]  # (G mu)_q
    else:
        push_q, row_q = np.zeros((len(s), nv, nv)), np.zeros((len(s), 0, nv))
    if chosen:
        r_p = parameter_slopes.effort_slopes(system, s, a, wrenches, chosen)
        slopes = parameter_slopes.constraint_slopes(system, still, mu, f, chosen) if system.count else None
    count = 3 * nv + len(chosen)
    pushed = nv if wrenches else 0  # a wrench acts like efforts: dr = -J^T dF
    answers = np.zeros((len(s), nv, count + pushed))
    for k in range(len(s)):
        n, m = len(driven), len(rows[k])
        right = np.zeros((n + m + nv, count + pushed))
        right[n + m :, count:] = np.eye(nv)[:, :pushed]
        right[n : n + m, :nv] = -row_q[k, system.picked[rows[k]]] if m else 0.0
        right[n + m :, : 3 * nv] = np.hstack([r_q[k] - push_q[k], r_v[k], M[k]])
        if chosen:
            right[n + m :, 3 * nv : count] = r_p[k] - (slopes.push[k] if slopes else 0.0)
            right[n : n + m, 3 * nv : count] = -slopes.row[k, rows[k]] if slopes else 0.0
        answers[k, driven] = np.linalg.solve(matrices[k], right)[:n]
    parts = (u, *np.split(answers, [nv, 2 * nv, 3 * nv, count], axis=2))
    u, dq, dv, da, dp, dr = (x.reshape(*s.shape, *x.shape[1:]) for x in parts)
    by_name = {name: dp[..., i] for i, name in enumerate(sensitive_to)}
    by_frame = {
        frame: -dr @ J for frame, J in model._generalised_forces(q, wrenches, parameters).items() if pushed
    }
    return ConstrainedInverseDerivatives(u, dq, dv, da, by_name, by_frame)


def check_determined(model: Model, function: str, R: Array, driven: Array) -> None:
    """Whether the driven set can give every motion with R v = 0."""
    V = np.linalg.svd(R)[2][len(R) :] if len(R) else np.eye(model.nv)  # motions that are left
    size = np.linalg.svd(V[:, driven], compute_uv=False)
    drives = int(np.sum(size > REGULAR * max(1.0, float(np.max(size, initial=0.0)))))
    if drives < len(V):
        raise NumericalError(
            f"{function}: the actuated set ({_listed(model, driven)}) drives {drives} of the {len(V)} degrees of freedom "
            "that the constraints leave; efforts exist for some motions only, and have no derivative there"
        )
