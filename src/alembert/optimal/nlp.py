"""General solvers on compiled functions of the stages: IPOPT and FATROP from CasADi, HiGHS for linear programs.

IPOPT gets DMOC in its smallest form, and what has none in stages; FATROP, whose linear algebra also follows the stages, gets
them as they are (`alembert.optimal.forms`).

`solver="highs"` takes problems whose rates, costs and bounds are linear, as one sparse linear program (HiGHS, by SciPy).
With stages that are linear in x, u and z the program of `alembert.optimal.forms` is

    min c' w,    lower <= A w + g(0) <= upper                                                         (1)

a *dynamic* or *staircase* linear program (Psiaki, 3rd Annual Conf. on Aerospace Computational Control, 1989): A has the
blocks of neighbouring stages beside its diagonal. The sweep in time takes such problems as well, with a factorisation that
follows the staircase; HiGHS ends at a vertex, where controls sit exactly at their bounds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import scipy

from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal import tuning
from alembert.optimal.barrier import Bounds
from alembert.optimal.forms import NlpForm, NonlinearProgram, has_smallest, nodes_of, smallest, staged
from alembert.optimal.interior_point import near_solution
from alembert.optimal.outcome import (
    Attempt,
    Deadline,
    Iterate,
    Iteration,
    IterationLog,
    Outcome,
    interruptible,
)
from alembert.optimal.scaling import Units
from alembert.optimal.stages import Stages

Array = np.ndarray
INFEASIBLE = "Infeasible_Problem_Detected"
"""as IPOPT calls it"""
WARM = dict.fromkeys(("mu_init", "bound_push", "bound_frac"), 1e-8)
WARM_IPOPT: dict[str, Any] = {
    **{"bound_mult_init_method": "mu-based"},
    **dict.fromkeys(("slack_bound_push", "slack_bound_frac"), 1e-8),
}
"""options for a start from a solution: else the first barrier pushes it off its bounds, and may lead to another optimum;
and those that only IPOPT has"""


def solve_nlp(attempt: Attempt, solver: str) -> Outcome:
    """Solve with one of CasADi's solvers."""
    stages, x, u, z = attempt.stages, attempt.x, attempt.u, attempt.z
    tolerance, iterations = attempt.tolerance, attempt.iterations
    began = time.perf_counter()
    is_fatrop = solver == "fatrop"
    minimal = not is_fatrop and has_smallest(stages)
    form = smallest(stages, x, u) if minimal else staged(stages, x, u, z)
    program = form.program
    log = IterationLog(program.lower, program.upper, attempt.report)
    oracle = Oracle(program, log, is_fatrop=is_fatrop)
    options: dict[str, Any] = {"print_time": False, "error_on_fail": False, "show_eval_warnings": False}
    options["cache"] = oracle.functions
    own: dict[str, Any] = {"tol": tolerance, "max_iter": iterations, "print_level": 0}
    own |= WARM if attempt.is_solution else {}
    given = dict(attempt.options)
    if is_fatrop:
        own |= given
        equality = (program.lower == program.upper).tolist()
        options |= {"structure_detection": "manual", "equality": equality, "fatrop": own, **form.structure}
    else:
        own |= {"sb": "yes", **(WARM_IPOPT if attempt.is_solution else {}), **given}
        each = EachIteration((program.size, program.rows), log)
        options |= {"ipopt": own, "iteration_callback": each}
    try:
        function = ca.nlpsol("solver", solver, oracle.expressions, options)
    except RuntimeError as error:
        if not given:
            raise
        reason = re.sub(r"^\S+:\d+: ", "", str(error).strip().splitlines()[-1].strip())
        raise ArgumentError(f"solve: {solver} does not take the options {given!r}: {reason}") from None
    if not is_fatrop:
        each.solver = function
    program.functions  # noqa: B018  (compiles what has not been compiled before)
    built, worked = time.perf_counter(), time.process_time()
    ended = ""
    with interruptible(log):
        try:
            if not _finite(program, form.start):  # FATROP would not come back
                raise RuntimeError("Invalid_Number_Detected")
            found = function(x0=form.start, lbg=program.lower, ubg=program.upper)
            w, y = (found[name].full()[:, 0] for name in ("x", "lam_g"))
        except RuntimeError as error:  # FATROP, where nothing is finite
            (w, y), ended = log.best or (form.start, np.zeros(program.rows)), str(error).rsplit(": ", 1)[-1]
    if given and (any(name in ended for name in given) or "type mismatch" in ended):
        raise ArgumentError(f"solve: {solver} does not take the options {given!r}: {ended.splitlines()[-1]}")
    done, log.stop = time.perf_counter(), log.is_over
    worked = time.process_time() - worked
    if log.failure is not None:
        raise log.failure
    if log.stop and log.best is not None:
        w, y = log.best
    stats = function.stats() if not ended else {}
    cost, g = program.values(w)
    if is_fatrop and not log.stop and not np.array_equal(w, log.latest):  # type: ignore[arg-type]
        log.add(cost, g, w, y)  # it asks for no second derivatives where it ends
    history = log.history if is_fatrop else _history(stats, done - built)
    if log.stop:
        status, message = "interrupted", "interrupted; this is the best iterate so far"
    elif stats.get("success") and not ended and stats.get("return_status") != "Solved_To_Acceptable_Level":
        status, message = "solved", "solved"
    elif (off := _error(program, w, y)) <= tuning.ACCEPTABLE * tolerance:
        status, message = near_solution(off, tolerance)
    elif len(history) > iterations:
        status, message = "iterations", f"stopped after {iterations} iterations"
    elif off <= tuning.HOPELESS * tolerance:
        status, message = near_solution(off, tolerance)
    elif stats.get("return_status") == INFEASIBLE:
        status, message = (
            "infeasible",
            (
                f"{solver}: no motion near here keeps all constraints ({INFEASIBLE}); diagnosis() names them. A longer "
                "duration, wider limits or another `guess` may help"
            ),
        )
    else:
        status, message = "failed", _reason(solver, ended or stats.get("return_status", ""), off)
    return Outcome(
        status,
        message,
        iterate(form, w, y, g),
        cost,
        float(np.max(np.maximum(program.lower - g, g - program.upper), initial=0.0)),
        float(np.abs(program.slope(w, 1.0, y)).max(initial=0.0)),
        history,
        np.zeros((stages.count, len(stages.u_names), stages.chart.tangent)),
        form.residuals(w, g),
        Units.ones(stages),
        {"total": done - built, "processor": worked, "with compiling": done - began},
    )


def _reason(solver: str, code: Any, off: float) -> str:
    """Why a solver has stopped; FATROP says it by a number."""
    if isinstance(code, str) and not code.lstrip("-").isdigit():
        return f"{solver}: {code}"
    return (
        f"{solver} stopped without a solution (its return code is {code}) at the error {off:.1e}; "
        "try another `guess`, or solver='sweep', whose diagnosis() says more"
    )


def _error(program: NonlinearProgram, w: Array, y: Array) -> float:
    """How far from a minimum: slope, products of multipliers and distances from bounds, and residuals, as IPOPT scales them
    (Waechter and Biegler 2006, (5))."""
    _, g = program.values(w)
    beyond = np.maximum(program.lower - g, g - program.upper)
    room = np.where(y > 0, program.upper - g, g - program.lower)
    products = np.abs(y * np.where((y == 0) | (program.lower == program.upper), 0.0, room))
    size = max(100.0, float(np.abs(y).mean())) / 100 if len(y) else 1.0
    slope = np.abs(program.slope(w, 1.0, y))
    found = [a.max(initial=0.0) for a in (slope / size, products / size, beyond)]
    return float(max(found)) if np.isfinite(found).all() else np.inf


def _finite(program: NonlinearProgram, w: Array) -> bool:
    """Whether a solver can begin there."""
    return all(np.isfinite(part).all() for part in program.first(w))


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


Evaluate = Callable[..., tuple[Any, ...]]


DETAILS = ("inf_du", "mu", "alpha_pr", "regularization_size")
"""what IPOPT calls the slope of the Lagrangian, the barrier, the length of the step and the shift"""


class EachIteration(ca.Callback):
    """For CasADi's option `iteration_callback`: keeps a log of the iterations, and stops the solver when it says so."""

    def __init__(self, sizes: tuple[int, int], log: IterationLog) -> None:
        super().__init__()
        self._sizes, self._log = sizes, log
        self.solver: ca.Function | None = None
        """IPOPT, which tells slope, barrier, step and shift while it runs"""
        self.construct("each_iteration", {})

    def get_n_in(self) -> int:
        return ca.nlpsol_n_out()

    def get_n_out(self) -> int:
        return 1

    def get_name_in(self, k: int) -> str:
        return ca.nlpsol_out(k)

    def get_sparsity_in(self, k: int) -> Any:
        x, g = self._sizes
        size = {"f": 1, "x": x, "lam_x": x, "g": g, "lam_g": g}.get(ca.nlpsol_out(k), 0)
        return ca.Sparsity.dense(size, 1) if size else ca.Sparsity(0, 0)

    def has_eval_buffer(self) -> bool:
        return True

    def eval_buffer(self, arguments: Any, results: Any) -> int:
        given = {ca.nlpsol_out(k): array(value) for k, value in enumerate(arguments)}
        self._log.add(float(given["f"][0]), given["g"], given["x"], given["lam_g"], self._details())
        array(results[0])[:] = self._log.stop
        return 0

    def _details(self) -> tuple[float, ...]:
        if self._log.report is None or self.solver is None:  # nobody looks, or nothing is known
            return ()
        told = self.solver.stats().get("iterations", {})
        return tuple(float(told[name][-1]) if told.get(name) else np.nan for name in DETAILS)


def array(buffer: Any) -> Array:
    """What CasADi hands to a callback, where it is."""
    return np.frombuffer(buffer) if buffer is not None and len(buffer) else np.empty(0)


class Called(ca.Callback):
    """A function from and to structural nonzeros. An exception in it stops the solver."""

    def __init__(
        self,
        name: str,
        inputs: dict[str, ca.Sparsity],
        outputs: dict[str, ca.Sparsity],
        evaluate: Evaluate,
        log: IterationLog,
    ) -> None:
        super().__init__()
        self._inputs, self._outputs, self._evaluate = list(inputs.items()), list(outputs.items()), evaluate
        self._log = log
        self.construct(name, {})

    def get_n_in(self) -> int:
        return len(self._inputs)

    def get_n_out(self) -> int:
        return len(self._outputs)

    def get_name_in(self, k: int) -> str:
        return self._inputs[k][0]

    def get_name_out(self, k: int) -> str:
        return self._outputs[k][0]

    def get_sparsity_in(self, k: int) -> ca.Sparsity:
        return self._inputs[k][1]

    def get_sparsity_out(self, k: int) -> ca.Sparsity:
        return self._outputs[k][1]

    def has_eval_buffer(self) -> bool:
        return True

    def eval_buffer(self, arguments: Any, results: Any) -> int:
        try:
            found = self._evaluate(*map(array, arguments))
        except BaseException as error:  # must not pass through the solver's machine code
            self._log.stop, self._log.failure = True, error
            found = (np.nan,) * len(results)
        for buffer, value in zip(results, found, strict=False):
            if buffer is not None:  # else it is not wanted
                array(buffer)[:] = value
        return 0


class Oracle:
    """The functions of `program` for a solver: `expressions` and `functions` are for `casadi.nlpsol`.

    FATROP has no callback for iterations: it is watched where it asks for second derivatives, once in each. To stop it,
    costs and rows are not finite any more from the second iteration on, so that it finds no step: before that it would not
    come back. Matrices stay finite: with others its search for one that is regular does not end.

    A `NonlinearProgram` as the functions that CasADi's solvers call: compiled functions instead of CasADi's expressions.

    CasADi makes the derivatives that a solver wants from expressions, unless functions of their names are in its cache when
    the solver is built (option `cache`); here they are callbacks that read from and write to the solver's own memory.
    """

    def __init__(self, program: NonlinearProgram, log: IterationLog, *, is_fatrop: bool) -> None:
        p = program
        dense = ca.Sparsity.dense
        x = {"x": dense(p.size), "p": ca.Sparsity(0, 0)}
        weights = {"lam_f": dense(1), "lam_g": dense(p.rows)}
        f, g, slope = {"f": dense(1)}, {"g": dense(p.rows)}, {"grad_f_x": dense(p.size)}
        along = {"grad_gamma_x": dense(p.size)}

        begun = 0

        def second(w: Array, _: Array, sigma: Array, y: Array) -> Array:
            nonlocal begun
            begun += 1
            if is_fatrop and (log.best is None or not log.is_over):
                slope = float(np.abs(p.slope(w, float(sigma[0]), y)).max())
                log.add(*p.values(w), w, y, (slope,))
            return p.second(w, float(sigma[0]), y)

        def lagrangian(w: Array, _: Array, sigma: Array, y: Array) -> Array:
            return p.slope(w, float(sigma[0]), y)

        def stoppable(evaluate: Evaluate) -> Evaluate:
            return lambda *a: (np.nan,) if begun >= 2 and log.is_over else evaluate(*a)

        table: dict[str, tuple[dict[str, Any], dict[str, Any], Evaluate]] = {
            "nlp_f": (x, f, lambda w, _: p.values(w)[:1]),
            "nlp_g": (x, g, lambda w, _: p.values(w)[1:]),
            "nlp_grad_f": (x, f | slope, lambda w, _: p.first(w)[0::2]),
            "nlp_jac_g": (x, g | {"jac_g_x": p.jacobian}, lambda w, _: p.first(w)[1::2]),
            "nlp_hess_l": (x | weights, {"triu_hess_gamma_x_x": p.hessian}, lambda *a: (second(*a),)),
        }
        if is_fatrop:
            whole, places = p.mirrored()
            both = along | {"hess_gamma_x_x": whole}
            table["nlp_grad_f"] = x, slope, lambda w, _: p.first(w)[2:3]
            table["nlp_hess_l"] = x | weights, both, lambda *a: (lagrangian(*a), second(*a)[places])
            table |= {k: (*table[k][:2], stoppable(table[k][2])) for k in ("nlp_f", "nlp_g")}
        table["nlp_grad"] = (  # at the end, for what is given back
            x | weights,
            f | g | along | {"grad_gamma_p": ca.Sparsity(0, 0)},
            lambda *a: (*p.values(a[0]), lagrangian(*a), 0.0),
        )
        self.functions = {name: Called(name, *row, log) for name, row in table.items()}
        w, none = ca.MX.sym("x", p.size), ca.MX(0, 0)
        self.expressions = {
            "x": w,
            "f": self.functions["nlp_f"](w, none),
            "g": self.functions["nlp_g"](w, none),
        }


def iterate(form: NlpForm, w: Array, y: Array, g: Array) -> Iterate:
    """Where a solver is, with the unknowns w, the multipliers y and the values g of its rows.

    Multipliers of the stages from those of a nonlinear program, in the order and with the signs of `solver="sweep"`.

    The Lagrangian of the stages is

        L = sum_k l + lambda_{k+1}' local(x_{k+1}, f) + nu_k' c + y_k' d,  with those of start (sigma) and end (eta)    (1)

    In the form `staged` the multipliers of its rows are slopes along the numbers of a point, whose parts along its tangent
    vectors are -lambda. In the form `smallest` those of matching momenta are the parts of lambda that belong to momenta, and
    since c depends on them by -1, and what a stage displaces is its z,

        nu = l_p + d_p' y - lambda_p,k,    0 = l_z + f_z' lambda_{k+1} + d_z' y + c_z' nu                          (2)

    gives the others, in every stage for itself: nothing that a recursion over unstable motions would make larger.
    """
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
    begin, chart, p = stages.parts[0].stages.chart, stages.parts[-1].stages.chart, stages.parameters
    d, point, s = ca.SX.sym("d", chart.tangent), ca.SX.sym("x", chart.point), ca.SX.sym("s", 3)
    cost, equations, rows = stages.end(chart.retract(point, d), s, p)
    last = cost + ca.dot(eta, equations) + ca.dot(bounded, rows)
    first = -ca.dot(sigma, stages.start(begin.retract(point, d), s, p))
    f = ca.Function("ends", [d, point, s], [ca.gradient(first, d), ca.gradient(last, d)])
    zero = np.zeros(chart.tangent)
    start, end = f(zero, x[0], stages.numbers[0])[0], f(zero, x[-1], stages.numbers[-1])[1]
    return start.full()[:, 0], end.full()[:, 0]


def _along_tangents(stages: Stages, x: Array, y: Array) -> Array:
    """Slopes y along the numbers of the points x, as slopes along tangent vectors there."""
    if len(stages.parts) > 1:
        found = np.empty((len(x), stages.chart.tangent))
        for own, nodes in nodes_of(stages):
            ends = slice(max(nodes.start, 1) - 1, nodes.stop - 1)
            found[ends] = _along_tangents(own, x[ends], y[ends])
        return found
    chart = stages.chart
    if chart.model is None:
        return y[:, : chart.tangent]
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
    chart, N, p = stages.chart, stages.count, stages.parameters
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


ENDED = {
    1: ("iterations", "HiGHS stopped at its limit of iterations"),
    2: ("infeasible", "no motion keeps all constraints: the linear program has no feasible point"),
    3: ("failed", "the cost has no minimum: the linear program is unbounded; bound the controls"),
}


def solve_linear(attempt: Attempt) -> Outcome:
    """Solve (1)."""
    stages = attempt.stages
    began = time.perf_counter()
    if len(stages.parts) > 1:
        raise UnsupportedError("solve: solver 'highs' takes no phases; take solver='sweep'")
    form = staged(stages, attempt.x, attempt.u, attempt.z)
    program = form.program
    if program.hessian.nnz():
        raise UnsupportedError(
            f"solve: solver 'highs' takes linear problems only, and {_curved(stages)}; solver='sweep' takes all"
        )
    built = time.perf_counter()
    zero = np.zeros(program.size)
    _, g0, slope, entries = (np.array(part) for part in program.first(zero))
    A = scipy.sparse.csc_matrix(
        (entries, program.jacobian.row(), program.jacobian.colind()), shape=(len(g0), program.size)
    ).tocsr()
    equal = program.lower == program.upper
    above, below = np.isfinite(program.upper) & ~equal, np.isfinite(program.lower) & ~equal
    limits = scipy.sparse.vstack([A[above], -A[below]])
    rooms = np.concatenate([(program.upper - g0)[above], (g0 - program.lower)[below]])
    own: dict[str, float] = {"maxiter": max(1, attempt.iterations)} if attempt.iterations < 500 else {}
    deadline = attempt.report if isinstance(attempt.report, Deadline) else None
    if deadline is not None:
        own["time_limit"] = deadline.left
    found = scipy.optimize.linprog(
        slope,
        *(limits if limits.shape[0] else None, rooms if len(rooms) else None),
        *(A[equal], (program.upper - g0)[equal], (None, None)),
        method="highs",
        options=own,
    )
    w = np.array(form.start if found.x is None else found.x, dtype=float)  # where HiGHS ended
    y = np.zeros(len(g0))
    if found.status == 0:
        y[equal] = -found.eqlin.marginals
        many = int(above.sum())
        if len(rooms):
            y[above] -= found.ineqlin.marginals[:many]
            y[below] += found.ineqlin.marginals[many:]
    cost, g = program.values(w)
    status, message = (
        ("solved", "solved") if found.status == 0 else ENDED.get(found.status, ("failed", found.message))
    )
    if deadline is not None and status == "iterations" and deadline.is_over:
        status = "interrupted"
    seconds = time.perf_counter() - built
    off = float(np.max(np.maximum(program.lower - g, g - program.upper), initial=0.0))
    left = float(np.abs(program.slope(w, 1.0, y)).max(initial=0.0))
    return Outcome(
        *(status, message, iterate(form, w, y, g), cost, off, left),
        [Iteration(k, cost, off, left, np.nan, np.nan, np.nan, seconds) for k in range(int(found.nit) + 1)],
        np.zeros((stages.count, len(stages.u_names), stages.chart.tangent)),
        form.residuals(w, g),
        Units.ones(stages),
        {"total": seconds, "with compiling": time.perf_counter() - began},
    )


def _curved(stages: Stages) -> str:
    """What is not linear, by name."""
    if stages.is_free:
        return "a free duration multiplies the rates"
    sizes = (stages.chart.point, *stages.sizes[1:3])
    x, u, z = (ca.SX.sym(name, size) for name, size in zip("xuz", sizes, strict=True))
    w = ca.vertcat(x, u, z)
    after, cost, c, d = stages.stage(x, u, z, stages.numbers[0], stages.parameters)
    named = [("the running cost", cost), *((f"{n!r}", d[k]) for k, n in enumerate(stages.path_names))]
    named += [(f"the motion of {n}", after[k]) for k, n in enumerate(stages.x_names[: after.numel()])]
    named += [(n, c[k]) for k, n in enumerate(stages.z_names)]
    for name, value in named:
        if ca.depends_on(ca.jacobian(value, w), w):
            return f"{name} is not linear"
    return "a condition or cost at an end is not linear"
