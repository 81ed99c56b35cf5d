"""`solver="highs"`: problems whose rates, costs and bounds are linear, as one sparse linear program (HiGHS, by SciPy).

With stages that are linear in x, u and z the program of `alembert.optimal.forms` is

    min c' w,    lower <= A w + g(0) <= upper                                                         (1)

a *dynamic* or *staircase* linear program (Psiaki, 3rd Annual Conf. on Aerospace Computational Control, 1989): A has the
blocks of neighbouring stages beside its diagonal. The sweep in time takes such problems as well, with a factorisation that
follows the staircase; HiGHS ends at a vertex, where controls sit exactly at their bounds.
"""

from __future__ import annotations

import time

import casadi as ca
import numpy as np
import scipy

from alembert.errors import UnsupportedError
from alembert.optimal.forms import staged
from alembert.optimal.nlp import iterate
from alembert.optimal.outcome import Attempt, Deadline, Iteration, Outcome
from alembert.optimal.scaling import Units
from alembert.optimal.stages import Stages

Array = np.ndarray
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
    w = attempt_start(found.x, form.start)
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


def attempt_start(found: Array | None, start: Array) -> Array:
    """Where HiGHS ended; where it gives nothing, the guess."""
    return np.array(start if found is None else found, dtype=float)


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
