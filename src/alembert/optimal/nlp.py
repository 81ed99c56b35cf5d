"""`solver="ipopt"` and `solver="fatrop"`: general solvers from CasADi, on compiled functions of the stages.

IPOPT gets DMOC in its smallest form, and what has none in stages; FATROP, whose linear algebra also follows the stages, gets
them as they are (`alembert.optimal.forms`).
"""

from __future__ import annotations

import time
from typing import Any

import casadi as ca
import numpy as np

from alembert.optimal.blocks import Program
from alembert.optimal.forms import has_smallest, smallest, staged
from alembert.optimal.iterations import Iteration, IterationLog, interruptible
from alembert.optimal.multipliers import iterate
from alembert.optimal.oracle import EachIteration, Oracle
from alembert.optimal.stages import Stages
from alembert.optimal.sweep import ACCEPTABLE, Outcome, acceptable

Array = np.ndarray
WARM = dict.fromkeys(("mu_init", "bound_push", "bound_frac"), 1e-8)
WARM_IPOPT: dict[str, Any] = {
    **{"bound_mult_init_method": "mu-based"},
    **dict.fromkeys(("slack_bound_push", "slack_bound_frac"), 1e-8),
}
"""options for a start from a solution: else the first barrier pushes it off its bounds, and may lead to another optimum;
and those that only IPOPT has"""


def solve_nlp(
    stages: Stages,
    x: Array,
    u: Array,
    z: Array,
    solver: str,
    tolerance: float,
    iterations: int,
    report: Any,
    warm: bool = False,
) -> Outcome:
    """Solve with one of CasADi's solvers; `warm`: the guess is a solution already."""
    began = time.perf_counter()
    is_fatrop = solver == "fatrop"
    minimal = not is_fatrop and has_smallest(stages)
    form = smallest(stages, x, u) if minimal else staged(stages, x, u, z)
    program = form.program
    log = IterationLog(program.lower, program.upper, report)
    oracle = Oracle(program, log, is_fatrop=is_fatrop)
    options: dict[str, Any] = {"print_time": False, "error_on_fail": False, "show_eval_warnings": False}
    options["cache"] = oracle.functions
    own: dict[str, Any] = {"tol": tolerance, "max_iter": iterations, "print_level": 0}
    own |= WARM if warm else {}
    if is_fatrop:
        equality = (program.lower == program.upper).tolist()
        options |= {"structure_detection": "manual", "equality": equality, "fatrop": own, **form.structure}
    else:
        own |= {"sb": "yes", **(WARM_IPOPT if warm else {})}
        each = EachIteration((program.size, program.rows), log)
        options |= {"ipopt": own, "iteration_callback": each}
    function = ca.nlpsol("solver", solver, oracle.expressions, options)
    if not is_fatrop:
        each.solver = function
    program.functions  # noqa: B018  (compiles what has not been compiled before)
    built = time.perf_counter()
    ended = ""
    with interruptible(log):
        try:
            if not _finite(program, form.start):  # FATROP would not come back
                raise RuntimeError("Invalid_Number_Detected")
            found = function(x0=form.start, lbg=program.lower, ubg=program.upper)
            w, y = (found[name].full()[:, 0] for name in ("x", "lam_g"))
        except RuntimeError as error:  # FATROP, where nothing is finite
            (w, y), ended = log.best or (form.start, np.zeros(program.rows)), str(error).rsplit(": ", 1)[-1]
    done = time.perf_counter()
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
    elif stats.get("success") and not ended:
        status, message = "solved", "solved"
    elif (off := _error(program, w, y)) <= ACCEPTABLE * tolerance:
        status, message = acceptable(off)
    elif len(history) > iterations:
        status, message = "iterations", f"stopped after {iterations} iterations"
    else:
        status, message = "failed", f"{solver}: {ended or stats.get('return_status', '')}"
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
        1.0,
        {"total": done - built, "with compiling": done - began},
    )


def _error(program: Program, w: Array, y: Array) -> float:
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


def _finite(program: Program, w: Array) -> bool:
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
