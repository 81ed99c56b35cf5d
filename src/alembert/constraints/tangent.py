"""The directions in which a constrained state can change: its tangent space in independent coordinates.

Holonomic rows H of G hold for displacements, all rows for speeds, and G v = 0 where the displacement goes:

    dq = E_q e_i,                 H E_q = 0                                                   (1)
    dv = E_v dv_i + W e_i,        G E_v = 0,   G W = -(G v)_q E_q                             (2)

    dq = .. + P_q dp,   dv = .. + P_v dp,      zero at the independent entries, and              (3)
    H P_q = -phi_p,     G P_v = -((G v)_p + (G v)_q P_q)

e_i and dv_i are the entries of dq and dv at the independent degrees of freedom, fewer of speeds than of displacements where
something rolls. W is zero at rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from alembert.constraints import rank
from alembert.constraints.derivatives import _constraint_derivatives
from alembert.constraints.parameter_slopes import constraint_slopes
from alembert.constraints.states import States
from alembert.constraints.system import ConstraintSystem
from alembert.errors import NumericalError

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Tangent:
    """(1) to (3), with the indices of the independent displacements and speeds."""

    q_dofs: Array
    v_dofs: Array
    E_q: Array
    E_v: Array
    W: Array
    q_parameters: Array
    v_parameters: Array


def tangent(
    system: ConstraintSystem,
    function: str,
    s: States,
    chosen: tuple[Sequence[int], Sequence[int]] | None = None,
    parameters: Sequence[int] = (),
) -> Tangent:
    """At one state with speeds; `chosen` are the independent displacements and speeds, by default well conditioned.

    `parameters` are those of (3).
    """
    v = s.vectors[0]
    t = system.terms(s, v)
    G, scale = t.jacobian[0], t.scale[0]
    moved = _constraint_derivatives(
        system, States((), s.q, (np.zeros_like(v),), s.parameters), v, np.zeros((1, system.all.count))
    )[1][0, system.picked]  # (G v)_q
    all_rows = system._chosen(t, 0).rows
    holonomic = np.flatnonzero(system.holonomic)
    groups = [slice(k, k + 1) for k in range(len(holonomic))]
    tolerance = max(rank.RANK, min(10 * float(t.slack[0]), 1e-3))
    scaled = G[holonomic] / scale[holonomic, None]
    picked = rank.choose(scaled, groups, tolerance).rows if len(holonomic) else np.arange(0)
    E_q, q_dependent, q_dofs = _basis(function, scaled[picked], chosen[0] if chosen else None)
    R = G[all_rows]
    E_v, dependent, v_dofs = _basis(function, R, chosen[1] if chosen else None)
    W = np.zeros((system.model.nv, len(q_dofs)))
    if len(all_rows):
        W[dependent] = -np.linalg.solve(R[:, dependent], moved[all_rows] @ E_q)
    P_q, P_v = np.zeros((2, system.model.nv, len(parameters)))
    if len(parameters):
        still = States((), s.q, (np.zeros_like(v),), s.parameters)
        slopes = constraint_slopes(system, still, v, np.zeros((1, system.all.count)), parameters)
        if len(picked):
            right = slopes.residual[0][holonomic][picked] / scale[holonomic][picked, None]
            P_q[q_dependent] = -np.linalg.solve(scaled[picked][:, q_dependent], right)
        if len(all_rows):
            opened = slopes.row[0] + moved @ P_q
            P_v[dependent] = -np.linalg.solve(R[:, dependent], opened[all_rows])
    return Tangent(q_dofs, v_dofs, E_q, E_v, W, P_q, P_v)


@dataclass(frozen=True, eq=False)
class Slopes:
    """The rows at one state with their derivatives: of G^T f, G v and gamma with respect to q, of gamma to v."""

    residual: Array
    G: Array
    bias: Array
    holonomic: Array
    push_q: Array
    speed_q: Array
    bias_q: Array
    bias_v: Array


def slopes(system: ConstraintSystem, s: States, f: Array) -> Slopes:
    v, zero = s.vectors[0], np.zeros_like(s.vectors[0])
    t = system.terms(s, v)
    still = States((), s.q, (zero,), s.parameters)
    push, speed_q, _ = _constraint_derivatives(system, still, v, f[None])
    _, bias_q, bias_v = _constraint_derivatives(system, s, zero, f[None])
    parts = (x[0] for x in (push, speed_q, bias_q, bias_v))
    return Slopes(t.residual[0], t.jacobian[0], t.bias[0], system.holonomic, *parts)


def _basis(function: str, R: Array, chosen: Sequence[int] | None) -> tuple[Array, Array, Array]:
    """Columns that R sends to zero, the dependent and the independent entries."""
    if chosen is None:
        dependent, free = rank.independent_columns(R)
    else:
        free = np.asarray(chosen, dtype=int)
        dependent = np.setdiff1d(np.arange(R.shape[1]), free)
    size = np.linalg.svd(R[:, dependent], compute_uv=False) if len(dependent) == len(R) else np.zeros(1)
    if len(dependent) != len(R) or (len(R) and size[-1] <= rank.RANK * size[0]):
        raise NumericalError(
            f"{function}: the independent degrees of freedom of the first state do not determine the others at a later one; "
            "give the states one by one"
        )
    E = np.zeros((R.shape[1], len(free)))
    E[free] = np.eye(len(free))
    if len(R):
        E[dependent] = -np.linalg.solve(R[:, dependent], R[:, free])
    return E, dependent, free
