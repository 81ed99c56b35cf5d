"""Multipliers of the stages from those of a nonlinear program, in the order and with the signs of `solver="sweep"`.

The Lagrangian of the stages is

    L = sum_k l + lambda_{k+1}' local(x_{k+1}, f) + nu_k' c + y_k' d,  with those of start (sigma) and end (eta)    (1)

In the form `staged` the multipliers of its rows are slopes along the numbers of a point, whose parts along its tangent
vectors are -lambda. In the form `smallest`
those of matching momenta are the parts of lambda that belong to momenta, and since c depends on them by -1, and what a
stage displaces is its z,

    nu = l_p + d_p' y - lambda_p,k,    0 = l_z + f_z' lambda_{k+1} + d_z' y + c_z' nu                          (2)

gives the others, in every stage for itself: nothing that a recursion over unstable motions would make larger.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from alembert.optimal.forms import Form
from alembert.optimal.outcome import Iterate
from alembert.optimal.stages import Stages
from alembert.optimal.sweep import Bounds

Array = np.ndarray


def iterate(form: Form, w: Array, y: Array, g: Array) -> Iterate:
    """Where a solver is, with the unknowns w, the multipliers y and the values g of its rows."""
    stages, rows = form.stages, form.rows
    x, u, z = form.unpack(w)
    path, bounded = (np.where(at >= 0, np.append(y, 0.0)[at], 0.0) for at in (rows.path, rows.bounded))
    d, ends = (np.where(at >= 0, np.append(g, 0.0)[at], 0.0) for at in (rows.path, rows.bounded))
    sigma, eta = y[rows.start], y[rows.end]
    costates = np.empty((stages.count + 1, stages.chart.tangent))
    costates[0], costates[-1] = _at_the_ends(stages, x, sigma, eta, bounded)
    if form.is_smallest:
        _through_the_stages(stages, costates, y[rows.motion], x, u, z, path)
    else:
        costates[1:] = -_along_tangents(stages, x[1:], y[rows.motion])
    return Iterate(
        *(x, u, z, _held(d, stages.lower, stages.upper, path)),
        *(_held(ends, stages.end_lower, stages.end_upper, bounded), costates, sigma, eta),
    )


def _held(values: Array, lower: Array, upper: Array, y: Array) -> Bounds:
    bounds = Bounds.within(values, lower, upper, 0.0)
    equal = bounds.held > 0
    bounds.low[...] = np.where(equal, 0.0, np.maximum(-y, 0.0))
    bounds.high[...] = np.where(equal, y, np.maximum(y, 0.0))
    return bounds


def _at_the_ends(stages: Stages, x: Array, sigma: Array, eta: Array, bounded: Array) -> tuple[Array, Array]:
    """Costates of the first and of the last point, from the slopes of the conditions there."""
    chart, p = stages.chart, stages.problem.parameters
    d, point, s = ca.SX.sym("d", chart.tangent), ca.SX.sym("x", chart.point), ca.SX.sym("s", 3)
    moved = chart.retract(point, d)
    cost, equations, rows = stages.end(moved, s, p)
    last = cost + ca.dot(eta, equations) + ca.dot(bounded, rows)
    first = -ca.dot(sigma, stages.start(moved, s, p))
    f = ca.Function("ends", [d, point, s], [ca.gradient(first, d), ca.gradient(last, d)])
    zero = np.zeros(chart.tangent)
    start, end = f(zero, x[0], stages.numbers[0])[0], f(zero, x[-1], stages.numbers[-1])[1]
    return start.full()[:, 0], end.full()[:, 0]


def _along_tangents(stages: Stages, x: Array, y: Array) -> Array:
    """Slopes y along the numbers of the points x, as slopes along tangent vectors there."""
    chart = stages.chart
    if chart.model is None:
        return y
    d, point = ca.SX.sym("d", chart.tangent), ca.SX.sym("x", chart.point)
    value = ca.SX.sym("y", chart.point)
    slope = ca.gradient(ca.dot(value, chart.retract(point, d)), d)
    f = ca.Function("slope", [d, point, value], [ca.densify(slope)]).map(len(x))
    return np.asarray(f(np.zeros((len(x), chart.tangent)).T, x.T, y.T).full().T)


def _through_the_stages(
    stages: Stages, costates: Array, matched: Array, x: Array, u: Array, z: Array, y: Array
) -> None:
    """(2), between the ends; what belongs to the duration is a sum over the stages."""
    n, m, nz, nd = stages.sizes
    chart, N, p = stages.chart, stages.count, stages.problem.parameters
    momenta = slice(chart.nv, 2 * chart.nv)
    costates[1:-1, momenta] = matched
    dx, point, after = ca.SX.sym("dx", n), ca.SX.sym("x", chart.point), ca.SX.sym("after", chart.point)
    us, zs, s = ca.SX.sym("u", m), ca.SX.sym("z", nz), ca.SX.sym("s", 3)
    f, cost, c, d = stages.stage(chart.retract(point, dx), us, zs, s, p)
    rows, w = ca.vertcat(cost, chart.local(after, f), c, d), ca.vertcat(dx, zs)
    slopes = ca.Function("slopes", [dx, point, after, us, zs, s], [ca.densify(ca.jacobian(rows, w))])
    found = slopes.map(N)(np.zeros((n, N)), x[:-1].T, x[1:].T, u.T, z.T, stages.numbers.T)
    J = np.swapaxes(found.full().T.reshape(N, n + nz, 1 + n + nz + nd), 1, 2)
    F, C = J[:, 1 : 1 + n], J[:, 1 + n : 1 + n + nz]
    along = J[:, 0] + np.einsum("kij,ki->kj", J[:, 1 + n + nz :], y)
    nu = along[:, momenta] - costates[:-1, momenta]
    along += np.einsum("kij,ki->kj", C, nu)
    right = along[:, n:] + np.einsum("kij,ki->kj", F[:, momenta, n:], costates[1:, momenta])
    moved = np.swapaxes(F[:, : chart.nv, n:], 1, 2)
    costates[1:-1, : chart.nv] = -np.linalg.solve(moved[:-1], right[:-1, :, None])[:, :, 0]
    if stages.is_free:
        for k in range(N - 1, 0, -1):
            costates[k, -1] = along[k, n - 1] + F[k, :, n - 1] @ costates[k + 1]
