"""The compiled iteration: damped Gauss-Newton steps (Levenberg, Marquardt) by levels of priority, within joint limits.

Level 0 are the loops, couplings and equations of the model; the others are the tasks by priority. With the rows r_k of
level k, their derivative J_k, and P the projector onto what the levels above leave free, a step is the sum of

    d_k = -A^T (A A^T + mu)^-1 (r_k + J_k (d_0 + ... + d_k-1)),    A = J_k P,    mu = lambda |r_k|^2        (1)

and a level of preferences alone goes along its gradient, projected (Siciliano and Slotine 1991; damping that vanishes with
the error keeps the convergence quadratic, Fan and Yuan 2005, also where rows depend on each other). Columns of joints that
are at a limit and would leave it, by the gradient, are zero; a step is cut off at the limits. It is taken when

    sum_k |r_k| / R^k,    R = 100                                                                           (2)

shrinks, and lambda then shrinks too; otherwise lambda grows. Norms that are not squared let a task of lower priority
never buy an error of a higher one that can be done. Of one that cannot, the norm is flat where it is least: a lower task
gains in proportion to a step what the higher one loses with its square, and buys 1 / R of its own. There R is larger, and
the search begins where the first tasks alone are done best. A state is done when all that is asked for is within the
tolerance (and, where something is only preferred, the steps are small), when lambda has grown beyond use, or when (2) has
stalled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from alembert.engine.codegen import FunctionSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import UnsupportedError
from alembert.lowering.plan import Call, Copy, Plan, Repeat
from alembert.model import Model
from alembert.reach.tasks import ReachTask, Symbols, TaskRows

MOST = 500
"""iterations in one call; how many are wanted is an argument"""
LARGEST = 400_000
"""rows^2 x columns of a level from which code without loops compiles too long"""
LONG = 8000
"""values from which code for many lanes is made quickly rather than well"""
FIRST, LEAST, LAST = 0.1, 1e-9, 1e9
"""lambda at the start, and between what it is kept; beyond the last a state is given up"""
GROW, SHRINK = 4.0, 0.5
"""fewer iterations and fewer starts than 0.15 or 0.3, on 2000 random poses of an arm of 7 joints"""
FARTHEST = 1.5
"""the longest step of a coordinate (m, rad)"""
STILL = 1e-9
"""a step (m, rad) after which preferences are satisfied"""
ROUNDING = 1e-14
"""of the largest pivot: added to all, so that dependent rows do not divide by zero"""
DEPENDENT = 1e-11
"""of the largest pivot, likewise, where a level says what it leaves free to those below it"""
LOOPS = 4.0
"""weight of the loops next to the first tasks in (2), instead of R, while several starts are tried: a step along a task
opens curved loops by its square, which 100 hardly allows (82 iterations in the median instead of 9 for a bay of a truss).
The last search, from the nearest that was found, has R, so that loops are closed where a task is out of reach"""
USUAL, STRICT = 100.0, 1e7
"""R in (2), and at the end where the first tasks are out of reach: what others buy of them is then below rounding"""
STALLED, PATIENCE = 1e-3, 4
"""a state that shrinks (2) by less than this part, so many times in a row, will not get there"""


@dataclass(frozen=True)
class Carried:
    """Where things are in what the kernel carries from step to step."""

    nq: int
    rows: int
    entries: int
    errors: int

    @property
    def parts(self) -> dict[str, int]:
        return {
            "done": 1,
            "lambda": 1,
            "merit": 1,
            "count": 1,
            "stalls": 1,
            "q": self.nq,
            "tried": self.nq,
            "errors": self.errors,
            "r": self.rows,
            "J": self.entries,
        }

    @property
    def size(self) -> int:
        return sum(self.parts.values())

    def split(self, x: ca.SX) -> dict[str, ca.SX]:
        found, at = {}, 0
        for name, size in self.parts.items():
            found[name] = x[at : at + size]
            at += size
        return found

    def join(self, **parts: ca.SX) -> ca.SX:
        return ca.densify(ca.vertcat(*(ca.SX(parts[name]) for name in self.parts)))


class TaskLevels:
    """Tasks of a model as levels of rows, with the columns that may move."""

    def __init__(self, model: Model, tasks: Sequence[ReachTask], moving: Sequence[int]) -> None:
        self.model, self.tasks, self.moving = model, tuple(tasks), tuple(moving)
        priorities = sorted({task.priority for task in tasks})
        self.first = priorities[0]
        self.levels = [[task for task in tasks if task.priority == p] for p in priorities]
        self.has_preferences = any(task.is_preference for task in tasks)
        self.held = bool(model.is_constrained)
        self.preferred = [False] * self.held + [all(t.is_preference for t in level) for level in self.levels]
        self.measures = [
            (task, k) for level in self.levels for task in level for k in range(len(task.measures))
        ]
        self.bounded = self._bounded()

    def _bounded(self) -> dict[int, int]:
        """Moving columns with a coordinate of their own, and which that is."""
        found = {}
        for owner in self.model.space:
            if owner.type.is_vector_space:
                for k in range(owner.type.nv):
                    if owner.v.start + k in self.moving:
                        found[self.moving.index(owner.v.start + k)] = owner.q.start + k
        return found

    @property
    def widths(self) -> list[int]:
        """Numbers of each task in the argument `targets`: its weight, its target."""
        return [1 + task.target.shape[-1] for task in self.tasks]

    def evaluate(self, q: ca.SX, targets: ca.SX, parameters: ca.SX) -> tuple[list[TaskRows], ca.SX]:
        """The rows of the levels, those of the model's constraints first, and all errors."""
        symbols = Symbols(self.model, q, parameters)
        ends = np.cumsum([0, *self.widths])
        of_task = {
            id(task): self._weighted(task, symbols, targets[int(ends[k]) : int(ends[k + 1])])
            for k, task in enumerate(self.tasks)
        }
        levels: list[TaskRows] = []
        errors: list[ca.SX] = []
        if self.held:
            graph = self.model.constrained_compute.rows.graph
            rows = np.flatnonzero(self.model.constrained_compute.rows.holonomic).tolist()
            found = ca.Function(
                "rows", graph.given(graph.q), [graph.found.residual[rows], graph.found.jacobian[rows, :]]
            )
            r, G = found(*graph.given(q)[:1], *([parameters] if parameters.numel() else []))
            levels.append(TaskRows(r, G, ()))
            errors.append(ca.norm_inf(r))
        for level in self.levels:
            parts = [of_task[id(task)] for task in level]
            levels.append(
                TaskRows(
                    ca.vertcat(*(part.residual for part in parts)),
                    ca.vertcat(*(part.jacobian for part in parts)),
                    tuple(e for part in parts for e in part.errors),
                )
            )
            errors += levels[-1].errors
        columns = list(self.moving)
        levels = [TaskRows(ca.densify(x.residual), x.jacobian[:, columns], x.errors) for x in levels]
        return levels, ca.vertcat(ca.SX(0, 1), *errors)

    @staticmethod
    def _weighted(task: ReachTask, symbols: Symbols, data: ca.SX) -> TaskRows:
        found = task.rows(symbols, data[1:])
        root = ca.sqrt(data[0])
        return TaskRows(root * found.residual, root * found.jacobian, found.errors)

    def kernel(self, structure: str) -> Kernel:
        """start, targets, bounds (lower, upper), settings (tolerance, iterations, patient, R) -> q, errors, status.

        `status` is (2) and the iterations. Without patience, a state that stalls is given up.
        """
        model = self.model
        arguments = [
            Argument("start", (model.nq,), f"the model has {model.nq} coordinates"),
            Argument("targets", (sum(self.widths),)),
            Argument("bounds", (2 * len(self.bounded),)),
            Argument("settings", (4,)),
        ]
        if model.parameters:
            arguments.append(Argument("parameters", (len(model.parameters),)))
        count = len(self.measures) + self.held
        results = [Argument("q", (model.nq,)), Argument("errors", (count,)), Argument("status", (2,))]
        return Kernel(
            "reach",
            arguments,
            results,
            key=f"{model.fingerprint}:reach:{structure}",
            build=lambda: self._source(arguments, results),
        )

    def _source(self, arguments: Sequence[Argument], results: Sequence[Argument]) -> Plan:
        model, n = self.model, len(self.moving)
        q, targets, bounds, settings = (ca.SX.sym(a.name, a.size) for a in arguments[:4])
        parameters = ca.SX.sym("parameters", len(model.parameters))
        levels, errors = self.evaluate(q, targets, parameters)
        for level in levels:
            m = level.residual.numel()
            if m * min(m, n) * max(m, n) > LARGEST:
                raise UnsupportedError(
                    f"reach: {m} rows of one priority on {n} degrees of freedom are more than compiled code takes; "
                    "use priorities, or hold joints with fixed="
                )
        J = [ca.sparsify(level.jacobian) for level in levels]
        sizes = [level.residual.numel() for level in levels]
        layout = Carried(model.nq, sum(sizes), sum(x.nnz() for x in J), errors.numel())
        given = [q, targets, *([parameters] if model.parameters else [])]
        entries = [ca.vec(ca.densify(x.nz[:])) for x in J if x.nnz()]
        values = ca.vertcat(errors, *(level.residual for level in levels), *entries)
        names = ["tried", "targets", *(["parameters"] if model.parameters else [])]

        x, new = ca.SX.sym("x", layout.size), ca.SX.sym("new", values.numel())
        advance = self._advance(
            layout, layout.split(x), new, sizes, [A.sparsity() for A in J], bounds, settings
        )
        begin = self._begin(layout, q, bounds)
        s = layout.split(x)
        functions = {
            "begin": ca.Function("begin", [q, bounds], [begin]),
            "tried": ca.Function("tried", [x], [s["tried"]]),
            "evaluate": ca.Function("evaluate", given, [ca.densify(values)]),
            "advance": ca.Function("advance", [x, new, bounds, settings], [advance]),
            "finish": ca.Function(
                "finish", [x], [s["q"], ca.densify(s["errors"]), ca.vertcat(s["merit"], s["count"])]
            ),
        }
        return Plan(
            {a.name: a.size for a in arguments},
            {f"found {a.name}": a.size for a in results},
            {"x": layout.size, "x_next": layout.size, "tried": model.nq, "new": values.numel()},
            [
                Call("begin", ["start", "bounds"], ["x"]),
                Repeat(
                    [
                        Call("tried", ["x"], ["tried"]),
                        Call("evaluate", names, ["new"]),
                        Call("advance", ["x", "new", "bounds", "settings"], ["x_next"]),
                        Copy("x_next", "x"),
                    ],
                    "x",
                    MOST,
                ),
                Call("finish", ["x"], [f"found {a.name}" for a in results]),
            ],
            {name: FunctionSource(function, longest=LONG) for name, function in functions.items()},
        )

    def _begin(self, layout: Carried, q: ca.SX, bounds: ca.SX) -> ca.SX:
        start = self._within(q, bounds)
        return layout.join(
            **{
                "done": ca.SX(0),
                "lambda": ca.SX(FIRST),
                "merit": ca.SX(ca.inf),
                "count": ca.SX(-1),
                "stalls": ca.SX(0),
                "q": start,
                "tried": start,
                "errors": ca.SX.zeros(layout.errors),
                "r": ca.SX.zeros(layout.rows),
                "J": ca.SX.zeros(layout.entries),
            }
        )

    def _within(self, q: ca.SX, bounds: ca.SX) -> ca.SX:
        count, found = len(self.bounded), ca.SX(q)
        for k, i in enumerate(self.bounded.values()):
            found[i] = ca.fmin(ca.fmax(q[i], bounds[k]), bounds[count + k])
        return found

    def _advance(
        self,
        layout: Carried,
        s: dict[str, ca.SX],
        new: ca.SX,
        sizes: Sequence[int],
        patterns: Sequence[ca.Sparsity],
        bounds: ca.SX,
        settings: ca.SX,
    ) -> ca.SX:
        tolerance, most, patient = settings[0], settings[1], settings[2]
        errors_new, r_new = new[: layout.errors], new[layout.errors : layout.errors + layout.rows]
        J_new = new[layout.errors + layout.rows :]
        weights = self._weights(len(sizes), patient, settings[3])
        merit_new = _merit(_split(r_new, sizes), weights)
        going = 1 - s["done"]  # what is done takes nothing new, and so stays as it is
        better = ca.logic_and(going, merit_new < s["merit"])
        q = ca.if_else(better, s["tried"], s["q"])
        r = ca.if_else(better, r_new, s["r"])
        entries = ca.if_else(better, J_new, s["J"])
        errors = ca.if_else(better, errors_new, s["errors"])
        merit = ca.if_else(better, merit_new, s["merit"])
        smaller = ca.fmax(SHRINK * s["lambda"], LEAST)
        first = s["count"] < 0
        damping = ca.if_else(first, s["lambda"], ca.if_else(better, smaller, GROW * s["lambda"]))
        stalled = ca.logic_and(better, s["merit"] - merit_new < STALLED * s["merit"])
        stalls = ca.if_else(stalled, s["stalls"] + 1, ca.if_else(better, 0, s["stalls"]))

        ends = np.cumsum([0, *(pattern.nnz() for pattern in patterns)])
        J = [
            ca.SX(pattern, entries[int(ends[k]) : int(ends[k + 1])])
            if pattern.nnz()
            else ca.SX(pattern.size1(), pattern.size2())
            for k, pattern in enumerate(patterns)
        ]
        residuals = _split(r, sizes)
        d = self._step(q, residuals, J, weights, damping, bounds)
        size = ca.norm_inf(d)
        d = d * ca.fmin(1.0, FARTHEST / ca.fmax(size, TINY))
        move = ca.SX(self.model.nv, 1)
        for k, column in enumerate(self.moving):
            move[column] = d[k]
        tried = self._within(self.model.space.integrate(q, ca.densify(move)), bounds)
        count = s["count"] + going
        asked = errors if errors.numel() else ca.SX(0)
        reached = ca.mmax(asked) <= tolerance
        if self.has_preferences:
            reached = ca.logic_and(reached, size <= STILL)
        hopeless = ca.logic_and(patient == 0, stalls >= PATIENCE)
        lost = ca.logic_or(damping > LAST, ca.logic_or(count >= most, hopeless))
        still = size <= 1e-15
        done = ca.logic_or(s["done"], ca.logic_or(reached, ca.logic_or(lost, still)))
        return layout.join(
            **{
                "done": ca.if_else(done, 1, 0),
                "lambda": damping,
                "merit": merit,
                "count": count,
                "stalls": stalls,
                "q": q,
                "tried": tried,
                "errors": errors,
                "r": r,
                "J": entries,
            }
        )

    def _weights(self, count: int, patient: ca.SX, ratio: ca.SX) -> list[ca.SX]:
        """Of the levels in (2)"""
        weights = [1 / ratio**k for k in range(count)]
        if self.held and count > 1:
            weights[0] = ca.if_else(patient == 0, LOOPS / ratio, 1.0)
        return weights

    def _step(
        self,
        q: ca.SX,
        residuals: Sequence[ca.SX],
        J: Sequence[ca.SX],
        weights: Sequence[ca.SX],
        damping: ca.SX,
        bounds: ca.SX,
    ) -> ca.SX:
        """(1)"""
        n, count = len(self.moving), len(self.bounded)
        gradient = ca.SX.zeros(n)
        for weight, r, A in zip(weights, residuals, J, strict=True):
            gradient += weight / ca.sqrt(ca.sumsqr(r) + TINY) * (A.T @ r)
        free = ca.SX.ones(n)
        for k, (column, i) in enumerate(self.bounded.items()):
            low = ca.logic_and(q[i] <= bounds[k], gradient[column] > 0)
            high = ca.logic_and(q[i] >= bounds[count + k], gradient[column] < 0)
            free[column] = ca.if_else(ca.logic_or(low, high), 0, 1)
        d = ca.SX.zeros(n)
        above: list[_Kept] = []
        for k, (r, rows) in enumerate(zip(residuals, J, strict=True)):
            A = rows @ ca.diag(free)
            d_free = free * d
            if self.preferred[k]:
                d = d + _eased(A, r + rows @ d_free, damping, above)
                continue
            for level in above:
                A = A - (level.solved(level.A @ A.T)).T @ level.A
            d = d + _damped(A, r + rows @ d_free, damping * ca.sumsqr(r))
            if k + 1 < len(J):
                above.append(_Kept(A))
        return d


TINY = 1e-300


def _split(x: ca.SX, sizes: Sequence[int]) -> list[ca.SX]:
    ends = np.cumsum([0, *sizes])
    return [x[int(ends[k]) : int(ends[k + 1])] for k in range(len(sizes))]


def _merit(residuals: Sequence[ca.SX], weights: Sequence[ca.SX]) -> ca.SX:
    """(2)"""
    terms = (w * ca.sqrt(ca.sumsqr(r)) for w, r in zip(weights, residuals, strict=True))
    return ca.SX(sum(terms, ca.SX(0)))


def _damped(A: ca.SX, r: ca.SX, mu: ca.SX) -> ca.SX:
    """-A^T (A A^T + mu)^-1 r, with whichever of the two matrices is smaller."""
    m, n = A.shape
    wide = m <= n
    S = A @ A.T if wide else A.T @ A
    factor = _factored(S, mu + ROUNDING * ca.mmax(ca.diag(S)) + TINY)
    return -(A.T @ _solved(factor, r)) if wide else -_solved(factor, A.T @ r)


class _Kept:
    """The rows of a level, and what they leave free: P x = x - A^T (A A^T)^-1 A x, dependent rows taken once."""

    def __init__(self, A: ca.SX) -> None:
        self.A = A
        S = A @ A.T
        self._factor = _factored(S, DEPENDENT * ca.mmax(ca.diag(S)) + TINY)

    def solved(self, b: ca.SX) -> ca.SX:
        return ca.horzcat(*(_solved(self._factor, b[:, k]) for k in range(b.shape[1])))

    def project(self, x: ca.SX) -> ca.SX:
        return x - self.A.T @ self.solved(self.A @ x)


def _eased(A: ca.SX, r: ca.SX, damping: ca.SX, above: Sequence[_Kept]) -> ca.SX:
    """A step of preferences, along their gradient over the squares of the columns: many rows cost little."""

    def projected(x: ca.SX) -> ca.SX:
        for level in above:
            x = level.project(x)
        return x

    squares = ca.densify(ca.sum1(A * A).T)
    scale = (1 + damping) * (squares + 1e-3 * ca.mmax(squares) + TINY)
    return -projected(projected(ca.densify(A.T @ r)) / scale)


_Factor = tuple[list[list[ca.SX]], list[ca.SX]]


def _factored(S: ca.SX, more: ca.SX) -> _Factor:
    """L of S + more = L D L^T, and 1/D."""
    n = S.shape[0]
    S = ca.densify(S) + more * ca.SX.eye(n)
    L = [[S[i, j] for j in range(i + 1)] for i in range(n)]
    inverse: list[ca.SX] = []
    for j in range(n):
        inverse.append(1 / L[j][j])
        column = [L[i][j] for i in range(j + 1, n)]
        for i in range(j + 1, n):
            factor = column[i - j - 1] * inverse[j]
            for k in range(j + 1, i + 1):
                L[i][k] = L[i][k] - factor * column[k - j - 1]
            L[i][j] = factor
    return L, inverse


def _solved(factor: _Factor, b: ca.SX) -> ca.SX:
    L, inverse = factor
    n = len(inverse)
    x = [b[k] for k in range(n)]
    for i in range(n):
        for k in range(i):
            x[i] = x[i] - L[i][k] * x[k]
    x = [x[i] * inverse[i] for i in range(n)]
    for i in reversed(range(n)):
        for k in range(i + 1, n):
            x[i] = x[i] - L[k][i] * x[k]
    return ca.vertcat(*x)
