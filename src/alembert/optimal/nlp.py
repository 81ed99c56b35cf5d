"""The same stages for general solvers from CasADi: `solver="ipopt"` and `solver="fatrop"`.

Points are seen in charts about the guess, which stay fixed during a solve. IPOPT gets DMOC in its smallest form: with the
momenta eliminated, the unknowns are the configurations at the nodes and the controls, and the equations of motion
match the momenta of neighbouring stages (Leyendecker et al. 2009, (13) and (18)). FATROP, whose linear algebra
also follows the stages, gets them as they are.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from alembert.optimal.dmoc import Dmoc
from alembert.optimal.stages import Stages
from alembert.optimal.sweep import Bounds, Iterate, Iteration, Outcome, Residuals
from alembert.optimal.watching import Watch, interruptible

Array = np.ndarray


@dataclass(frozen=True)
class Nlp:
    """min f(w) with lower <= g(w) <= upper; `unpack(w)` gives x, u and z of the stages."""

    w: ca.MX
    f: ca.MX
    g: ca.MX
    lower: Array
    upper: Array
    start: Array
    unpack: ca.Function
    equality: list[bool]
    places: Places
    structure: dict[str, Any] = field(default_factory=dict)
    """how many of what each stage has"""


@dataclass(frozen=True)
class Places:
    """Which rows of g are what: bounds along the way (N, rows of d; -1 where there is none), and those at the end."""

    path: Array
    end: slice
    bounded: slice


def has_smallest(stages: Stages) -> bool:
    """Whether the momenta can be eliminated: DMOC without loops and what else reaches beyond a stage."""
    open_ = getattr(stages.plant, "closure", None) is None
    return isinstance(stages.scheme, Dmoc) and not stages.memory and not stages.problem.periodic and open_


def dimensions(stages: Stages) -> tuple[int, int]:
    """Variables and equations of the form that IPOPT gets."""
    n, m, nz, _ = stages.sizes
    N = stages.count
    if has_smallest(stages):
        nv = stages.chart.nv
        variables = (N + 1) * nv + N * m + stages.is_free
        return variables, len(stages.start_names) + (N - 1) * nv + len(stages.end_names)
    free = int(stages.is_free)
    variables = (N + 1) * (n - free) + N * (m + nz) + free
    return variables, len(stages.start_names) + N * (n - free + nz) + len(stages.end_names)


def _stage(stages: Stages) -> ca.Function:
    """(dx, u, z, x, after, s, p) -> f as seen from `after`, l, c, d."""
    n, m, nz, _ = stages.sizes
    chart = stages.chart
    dx, u, z = ca.SX.sym("dx", n), ca.SX.sym("u", m), ca.SX.sym("z", nz)
    x, after = ca.SX.sym("x", chart.point), ca.SX.sym("after", chart.point)
    s, p = ca.SX.sym("s", 3), ca.SX.sym("p", len(stages.problem.parameters))
    found, cost, c, d = stages.stage(chart.retract(x, dx), u, z, s, p)
    return ca.Function("stage", [dx, u, z, x, after, s, p], [chart.local(after, found), cost, c, d])


def _ends(stages: Stages) -> tuple[ca.Function, ca.Function]:
    chart = stages.chart
    dx, x, s = ca.SX.sym("dx", chart.tangent), ca.SX.sym("x", chart.point), ca.SX.sym("s", 3)
    p = ca.SX.sym("p", len(stages.problem.parameters))
    moved = chart.retract(x, dx)
    start = ca.Function("start", [dx, x, s, p], [stages.start(moved, s, p)])
    return start, ca.Function("end", [dx, x, s, p], list(stages.end.call([moved, s, p])))


def staged(stages: Stages, x: Array, u: Array, z: Array) -> Nlp:
    """All of the stages' unknowns, in their order."""
    n, m, nz, _ = stages.sizes
    N, width = stages.count, n + m + nz
    w = ca.MX.sym("w", N * width + n)
    inner = ca.reshape(w[: N * width], width, N)
    last = w[N * width :]
    dx = ca.horzcat(inner[:n, :], last)
    p = ca.DM(stages.problem.parameters)
    mapped = _stage(stages).map(N)
    gap, cost, c, d = mapped(
        dx[:, :N],
        inner[n : n + m, :],
        inner[n + m :, :],
        x[:-1].T,
        x[1:].T,
        stages.numbers.T,
        ca.repmat(p, 1, N),
    )
    start, end = _ends(stages)
    first = start(dx[:, 0], x[0], stages.numbers[0], p)
    final, equations, bounded = end(last, x[-1], stages.numbers[-1], p)
    parts: list[Any] = []
    lower: list[Array] = []
    upper: list[Array] = []
    equality: list[bool] = []
    rows: list[int] = []
    path = np.full(stages.lower.shape, -1)

    def add(expression: ca.MX, low: Any, high: Any) -> None:
        parts.append(expression)
        low, high = np.broadcast_to(low, expression.numel()), np.broadcast_to(high, expression.numel())
        lower.append(low)
        upper.append(high)
        equality.extend((low == high).tolist())

    for k in range(N):
        add(dx[:, k + 1] - gap[:, k], 0.0, 0.0)
        if k == 0:
            add(first, 0.0, 0.0)
        add(c[:, k], 0.0, 0.0)
        there = np.flatnonzero(np.isfinite(stages.lower[k]) | np.isfinite(stages.upper[k]))
        if len(there):
            path[k, there] = len(equality) + np.arange(len(there))
            add(d[there.tolist(), k], stages.lower[k, there], stages.upper[k, there])
        rows.append(len(equality) - n - sum(rows) - n * k)
    at = len(equality)
    add(equations, 0.0, 0.0)
    add(bounded, stages.end_lower, stages.end_upper)
    ends = len(stages.end_names)
    rows.append(len(equality) - sum(rows) - n * N)
    begin = np.concatenate([np.concatenate([np.zeros((N, n)), u, z], axis=1).ravel(), np.zeros(n)])
    structure = {"N": N, "nx": [n] * (N + 1), "nu": [m + nz] * N + [0], "ng": rows}
    unpack = ca.Function("unpack", [w], [dx, inner[n : n + m, :], inner[n + m :, :]])
    return Nlp(
        w,
        ca.sum2(cost) + final,
        ca.vertcat(*parts),
        np.concatenate(lower),
        np.concatenate(upper),
        begin,
        unpack,
        equality,
        Places(path, slice(at, at + ends), slice(at + ends, len(equality))),
        structure,
    )


def smallest(stages: Stages, x: Array, u: Array) -> Nlp:
    """DMOC in configurations and controls only; the duration, when it is free, is one more."""
    chart, N, m = stages.chart, stages.count, len(stages.u_names)
    nq, nv, free = chart.nq, chart.nv, int(stages.is_free)
    uk = ca.SX.sym("u", m)
    here, there = ca.SX.sym("here", nv), ca.SX.sym("there", nv)
    q, after, T = ca.SX.sym("q", nq), ca.SX.sym("after", nq), ca.SX.sym("T", free)
    s, p = ca.SX.sym("s", 3), ca.SX.sym("p", len(stages.problem.parameters))
    manifold = chart._manifold
    assert manifold is not None
    now, then = manifold.integrate(q, here), manifold.integrate(after, there)
    step = manifold.difference(now, then)
    whole = ca.vertcat(now, ca.SX.zeros(nv), T)
    before = stages.stage(whole, uk, step, s, p)[2]  # c with p = 0 is p^-
    point, spent, _, rows_d = stages.stage(ca.vertcat(now, before, T), uk, step, s, p)
    results = [before, point[nq : nq + nv], spent, rows_d]
    stage = ca.Function("stage", [here, uk, there, q, after, T, s, p], results)
    w: Any = ca.MX.sym("w", (N + 1) * nv + N * m + free)
    dq = ca.reshape(w[: (N + 1) * nv], nv, N + 1)
    us = ca.reshape(w[(N + 1) * nv : (N + 1) * nv + N * m], m, N)
    span = w[(N + 1) * nv + N * m :]
    values = ca.DM(stages.problem.parameters)
    minus, plus, cost, d = stage.map(N)(
        *(dq[:, :N], us, dq[:, 1:], x[:-1, :nq].T, x[1:, :nq].T, ca.repmat(span, 1, N)),
        *(stages.numbers.T, ca.repmat(values, 1, N)),
    )

    def whole_at(k: int, momentum: Any) -> Any:
        """The point of a stage as a change of one that has the guess's configuration and nothing else."""
        return ca.vertcat(dq[:, k], momentum, span)

    start, end = _ends(stages)
    zero = np.zeros(nv + free)
    first = start(whole_at(0, minus[:, 0]), np.concatenate([x[0, :nq], zero]), stages.numbers[0], values)
    final, equations, bounded = end(
        whole_at(N, plus[:, -1]), np.concatenate([x[-1, :nq], zero]), stages.numbers[-1], values
    )
    rows: list[Any] = [first, ca.vec(plus[:, :-1] - minus[:, 1:]), equations]
    lower = [np.zeros(sum(r.numel() for r in rows))]
    upper = [lower[0]]
    count, path = len(lower[0]), np.full(stages.lower.shape, -1)
    last = slice(count - len(stages.end_names), count)
    for k in range(N):
        finite = np.flatnonzero(np.isfinite(stages.lower[k]) | np.isfinite(stages.upper[k]))
        if len(finite):
            path[k, finite] = count + np.arange(len(finite))
            count += len(finite)
            rows.append(d[finite.tolist(), k])
            lower.append(stages.lower[k, finite])
            upper.append(stages.upper[k, finite])
    rows.append(bounded)
    lower.append(stages.end_lower)
    upper.append(stages.end_upper)
    low, high = np.concatenate(lower), np.concatenate(upper)
    momenta = ca.horzcat(minus, plus[:, -1])
    centre = ca.DM(x[:, nq : nq + nv].T)
    dx = ca.vertcat(dq, momenta - centre, *([ca.repmat(span, 1, N + 1) - x[0, -1]] if free else []))
    steps = _steps(stages).map(N)(dq[:, :N], dq[:, 1:], x[:-1, :nq].T, x[1:, :nq].T)
    begin = np.concatenate([np.zeros((N + 1) * nv), u.ravel(), x[0, -1:] if free else []])
    unpack = ca.Function("unpack", [w], [dx, us, steps])
    places = Places(path, last, slice(count, len(low)))
    return Nlp(
        w, ca.sum2(cost) + final, ca.vertcat(*rows), low, high, begin, unpack, (low == high).tolist(), places
    )


def _steps(stages: Stages) -> ca.Function:
    chart = stages.chart
    here, there = ca.SX.sym("here", chart.nv), ca.SX.sym("there", chart.nv)
    q, after = ca.SX.sym("q", chart.nq), ca.SX.sym("after", chart.nq)
    m = chart._manifold
    assert m is not None
    return ca.Function(
        "step", [here, there, q, after], [m.difference(m.integrate(q, here), m.integrate(after, there))]
    )


def solve_nlp(
    stages: Stages,
    x: Array,
    u: Array,
    z: Array,
    solver: str,
    tolerance: float,
    iterations: int,
    report: Any,
) -> Outcome:
    """Solve with one of CasADi's solvers."""
    began = time.perf_counter()
    minimal = solver == "ipopt" and has_smallest(stages)
    nlp = smallest(stages, x, u) if minimal else staged(stages, x, u, z)
    options: dict[str, Any] = {"expand": True, "print_time": False, "error_on_fail": False}
    own = {"tol": tolerance, "max_iter": iterations, "print_level": 0}
    if solver == "ipopt":
        options["ipopt"] = own | {"sb": "yes"}
    else:
        options |= {"structure_detection": "manual", "equality": nlp.equality, "fatrop": own}
        options |= nlp.structure
    watch = Watch((nlp.w.numel(), nlp.g.numel()), nlp.lower, nlp.upper, report)
    if solver == "ipopt":
        options["iteration_callback"] = watch
    problem = {"x": nlp.w, "f": nlp.f, "g": nlp.g}
    function = ca.nlpsol("solver", solver, problem, options)
    built = time.perf_counter()
    with interruptible(watch) if solver == "ipopt" else nullcontext():
        found = function(x0=nlp.start, lbg=nlp.lower, ubg=nlp.upper)
    stats = function.stats()
    done = time.perf_counter()
    dx, us, zs = (part.full().T for part in nlp.unpack(found["x"]))
    xs = stages.chart.move(x, dx)
    evaluate = _stage(stages).map(stages.count)
    p = np.tile(stages.problem.parameters[:, None], (1, stages.count))
    zero = np.zeros_like(dx[:-1])
    gap, cost, c, d = (
        part.full().T for part in evaluate(zero.T, us.T, zs.T, xs[:-1].T, xs[1:].T, stages.numbers.T, p)
    )
    residuals = Residuals(gap, c, d)
    last = stages.end(xs[-1], stages.numbers[-1], stages.problem.parameters)
    ends = [part.full()[:, 0] for part in last]
    multipliers = found["lam_g"].full()[:, 0]
    y = np.where(nlp.places.path >= 0, multipliers[nlp.places.path], 0.0)
    eta, end_y = multipliers[nlp.places.end], multipliers[nlp.places.bounded]
    iterate = Iterate(
        *(xs, us, zs),
        _held(d, stages.lower, stages.upper, y),
        _held(ends[2], stages.end_lower, stages.end_upper, end_y),
        *_costates(stages, xs, us, zs, y, eta, end_y),
        eta,
    )
    outside = np.maximum(stages.lower - d, d - stages.upper)
    start = stages.start(xs[0], stages.numbers[0], stages.problem.parameters).full()
    worst = max(
        float(np.max(np.abs(r), initial=0.0)) for r in (gap, c, np.maximum(outside, 0), start, ends[1])
    )
    history = _history(stats, done - built)
    if report is not None and solver != "ipopt":
        for line in history:
            report(line)
    success = bool(stats["success"])
    message = str(stats.get("return_status", "")) or ("solved" if success else "failed")
    reasons = {"Maximum_Iterations_Exceeded": "iterations", "User_Requested_Stop": "interrupted"}
    status = "solved" if success else reasons.get(message, "iterations" if "Iter" in message else "failed")
    return Outcome(
        status,
        "solved" if success else f"{solver}: {message}",
        iterate,
        float(np.sum(cost)) + float(ends[0][0]),
        worst,
        history[-1].slope if history else np.nan,
        history,
        np.zeros((stages.count, len(stages.u_names), stages.chart.tangent)),
        residuals,
        1.0,
        {"total": done - built, "with compiling": done - began},
    )


def _held(values: Array, lower: Array, upper: Array, y: Array) -> Bounds:
    bounds = Bounds.within(values, lower, upper, 0.0)
    equal = bounds.held > 0
    bounds.low[...] = np.where(equal, 0.0, np.maximum(-y, 0.0))
    bounds.high[...] = np.where(equal, y, np.maximum(y, 0.0))
    return bounds


def _costates(
    stages: Stages, x: Array, u: Array, z: Array, y: Array, eta: Array, end_y: Array
) -> tuple[Array, Array]:
    """The costates, back from the end, and the multipliers of the start, given those of bounds and of the end.

    lambda_k = l_x + f_x' lambda_{k+1} + d_x' y + c_x' nu, with the nu of (2) in `alembert.optimal.evaluation`.
    """
    n, m, nz, nd = stages.sizes
    chart, p = stages.chart, stages.problem.parameters
    point = ca.SX.sym("x", chart.point), ca.SX.sym("after", chart.point)
    dx, us, zs, s = ca.SX.sym("dx", n), ca.SX.sym("u", m), ca.SX.sym("z", nz), ca.SX.sym("s", 3)
    costate, ys = ca.SX.sym("costate", n), ca.SX.sym("y", nd)
    f, cost, c, d = stages.stage(chart.retract(point[0], dx), us, zs, s, p)
    lagrangian = cost + ca.dot(costate, chart.local(point[1], f)) + ca.dot(ys, d)
    slope = ca.gradient(lagrangian, dx)
    if nz:
        nu = -ca.solve(ca.jacobian(c, zs).T, ca.gradient(lagrangian, zs))
        slope = slope + ca.jacobian(c, dx).T @ nu
    back = ca.Function("back", [*point, dx, us, zs, s, costate, ys], [slope])
    ends, rows = ca.SX.sym("eta", len(eta)), ca.SX.sym("rows", len(end_y))
    moved = chart.retract(point[0], dx)
    final, equations, bounded = stages.end(moved, s, p)
    last = final + ca.dot(ends, equations) + ca.dot(rows, bounded)
    first = ca.Function("first", [point[0], dx, s], [ca.jacobian(stages.start(moved, s, p), dx)])
    end = ca.Function("end", [point[0], dx, s, ends, rows], [ca.gradient(last, dx)])
    zero = np.zeros(n)
    found = np.empty((stages.count + 1, n))
    found[-1] = end(x[-1], zero, stages.numbers[-1], eta, end_y).full()[:, 0]
    for k in reversed(range(stages.count)):
        given = (x[k], x[k + 1], zero, u[k], z[k], stages.numbers[k], found[k + 1], y[k])
        found[k] = back(*given).full()[:, 0]
    C = first(x[0], zero, stages.numbers[0]).full()
    return found, -np.linalg.lstsq(C.T, found[0], rcond=1e-12)[0] if len(C) else np.zeros(0)


def _history(stats: dict[str, Any], seconds: float) -> list[Iteration]:
    count = int(stats.get("iter_count", 0))
    log = stats.get("iterations", {}) or {}

    def column(name: str) -> list[float]:
        return list(log.get(name, [])) or [np.nan] * (count + 1)

    rows = zip(
        *(column(name) for name in ("obj", "inf_pr", "inf_du", "mu", "alpha_pr", "regularization_size")),
        strict=False,
    )
    found = [
        Iteration(k, obj, pr, du, mu, alpha, shift, seconds * k / max(1, count))
        for k, (obj, pr, du, mu, alpha, shift) in enumerate(rows)
    ]
    unknown = (np.nan,) * 6
    return found or [Iteration(k, *unknown, seconds) for k in range(count + 1)]
