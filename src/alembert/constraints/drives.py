"""Efforts and independent speeds on symbols and compiled, by rows and columns that were chosen at a state.

With the rows R of the minimal set, their dependent columns R_d = Q U and r = M a + bias of the tree:

    E = [1; -R_d^-1 R_i],   rate = [0; -R_d^-1 gamma]                                                  (1)
    B = E_S^T W^-1/2,   B B^T y = E^T r,   u = W^-1/2 B^T y         the smallest u^T W u               (2)
    R_d^T f = (r - u)_d                                             reactions of the minimal set       (3)

S are the driven degrees of freedom, W their weights. In derivatives, (4) of `derivatives`, columns g = (r - R^T f)_x and
c = (R mu)_x take, with mu = -E y,

    H = E_S^T W^-1 E_S,   x = [0; R_d^-1 c],   H y = E^T g - E_S^T W^-1 x_S,   du = W^-1 (E_S y + x_S)  (4)

A choice serves a state where, with the pivots U of R_d and the pivots P of B B^T,

    |U_kk| > CLEAR |column k of R_d|,   P_k > CLEAR^2 (B B^T)_kk,   P_k > REGULAR max (B B^T)_jj       (5)
    |D E| <= (RANK + 10 slack) (1 + |E|) scale                   the rows D left out follow from R     (6)

the acceleration keeps the constraints and all is finite. The status of the kernel is (serves, slack, other), slack and
other as in `compiled`. What a choice does not serve is computed state by state, by a
choice for each; the first of these are compiled as well (`dynamics.inverse`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.constraints.equations import Equations, equations
from alembert.constraints.factors import again, largest, scales
from alembert.constraints.kernels import KernelStages, Shape, function_of, make, nonzeros, stage
from alembert.constraints.results import BREAKS, CLEAR, CLOSED, GOOD, OFF, RANK, REGULAR, STILL
from alembert.engine.kernel import Kernel
from alembert.errors import UnsupportedError
from alembert.lowering.plan import Columns
from alembert.sweeps import INVERSE_DYNAMICS, expressions

if TYPE_CHECKING:
    from alembert.constraints.system import ConstraintRows, ConstraintSystem
    from alembert.model import Model

Array = np.ndarray
Chosen = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""rows, independent speeds and driven speeds"""
MOST_ROWS = 24
"""rows up to which (1) is unrolled: it takes some m^3 instructions"""
MOST = 4
"""choices that are compiled for one set of drives"""


class Drives:
    """Some driven speeds, and the choices of rows and independent speeds that served them. Kept by a thread."""

    def __init__(self, system: ConstraintSystem, driven: Array) -> None:
        self._system, self.driven, self.equal = system, driven, np.ones(len(driven))
        self._choices: list[Chosen] = []
        self.current: Chosen | None = None
        self._kernel: Kernel | None = None

    def learn(self, rows: Array, free: Array) -> Chosen | None:
        """The choice of a state becomes the current one, unless there are too many, or it is too large to compile."""
        small = 0 < len(rows) <= MOST_ROWS and len(free) and len(self.driven)
        if not small or self._system.all.solution is None:
            return None
        picked = self._system.picked
        first, second, third = (tuple(int(i) for i in x) for x in (picked[rows], free, self.driven))
        chosen = (first, second, third)
        if chosen not in self._choices:
            if len(self._choices) == MOST:
                return None
            self._choices.append(chosen)
        self._kernel = self._system.all.drives(chosen, tuple(picked.tolist()))
        self.current = chosen
        return chosen

    @property
    def derivatives(self) -> Kernel:
        """Of the efforts, by the current choice."""
        assert self.current is not None
        return self._system.all.drive_derivatives(self.current)

    def solve(self, given: Sequence[Any], r: Array, root: Array, last: Sequence[Array]) -> Any:
        """Efforts, forces of all rows, wrenches, mu and status for q, v, a and the tree's efforts, by the current choice."""
        assert self._kernel is not None
        return self._kernel(*given, r, root, *last)


def states_served(status: Array, closed: float, *, unique: bool = False) -> Array:
    """Which states of a batch a choice served; with `unique`, forces count: there must be no choice among them."""
    good = (status[..., 0] == 1.0) & (status[..., 1] <= closed)
    return good & (status[..., 2] <= RANK**2) if unique else good


def all_served(status: Array, closed: float, *, unique: bool = False) -> bool:
    """Whether it served all of them."""
    if status.ndim > 1:
        return bool(np.all(states_served(status, closed, unique=unique)))
    serves, slack, other = status.tolist()
    return bool(serves == 1.0 and slack <= closed and not (unique and other > RANK**2))


# --- on symbols -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Basis:
    """(1), with the factors of R_d."""

    E: ca.SX
    rate: ca.SX
    Q: ca.SX
    U: ca.SX
    quality: ca.SX


@dataclass(frozen=True, eq=False)
class SymbolicEfforts:
    """(2) and (3), with the wrenches of the loops and mu = -E y; the pivots of B B^T and its diagonal in their order."""

    u: ca.SX
    f: ca.SX
    wrenches: ca.SX
    mu: ca.SX
    D: ca.SX
    diagonal: ca.SX


def check_unrolled(model: Model, function: str, count: int) -> None:
    """Refuse more rows than are unrolled."""
    if count > MOST_ROWS:
        raise UnsupportedError(
            f"{function}: the constraints of model {model.name!r} are too many for code without loops "
            f"({count} rows); the methods of the model take them"
        )


def basis(R: ca.SX, gamma: ca.SX, free: Sequence[int]) -> Basis:
    """(1) for the rows of the minimal set."""
    count, n = R.shape
    dependent = [k for k in range(n) if k not in set(free)]
    R = ca.densify(R)
    R_d = R[:, dependent]
    E, rate = ca.SX(n, len(free)), ca.SX(n, 1)
    E[list(free), :] = ca.SX.eye(len(free))
    if not count:
        return Basis(E, rate, R_d, R_d, ca.SX(1))
    Q, U = ca.qr(R_d)
    E[dependent, :] = -upper_solution(U, Q.T @ R[:, list(free)])
    rate[dependent] = -upper_solution(U, Q.T @ gamma)
    quality = ca.SX(1)
    for k in range(count):
        quality = ca.fmin(quality, ca.fabs(U[k, k]) / ca.sqrt(ca.sumsqr(R_d[:, k])))
    return Basis(E, rate, Q, U, quality)


def symbolic_inverse(
    rows: ConstraintRows,
    chosen: tuple[Sequence[int], Sequence[int], Sequence[int]],
    drives: tuple[Sequence[int], Sequence[float]],
    given: Mapping[str, ca.SX],
    parameters: ca.SX,
    *,
    guarded: bool,
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """u (nv), f of all rows and the wrenches of the loops; `chosen` are rows, active rows and independent columns.

    `guarded`: NaN where a state is off the constraint surface, an acceleration leaves it, or the choice does not serve.
    """
    (own, active, free), (driven, weights) = chosen, drives
    model = rows.model
    r = expressions(INVERSE_DYNAMICS, model.compute.tree, dict(given), parameters)["tau"]
    found = equations(model.compute.tree, given["q"], given["v"], parameters)
    by = basis(found.jacobian[list(own), :], found.bias[list(own)], free)
    solved = _efforts(rows, found, by, (own, free, driven), ca.sqrt(ca.DM(list(weights))), r)
    results = (solved.u, solved.f, solved.wrenches)
    if not guarded:
        return results
    slack, good = _on_surface(found, rows.slice_list, active, given["v"], given["a"])
    highest = largest(solved.D)
    for k in range(solved.D.numel()):
        good = ca.logic_and(good, solved.D[k] > REGULAR * highest)
    good = ca.logic_and(good, ca.logic_and(slack <= CLOSED, by.quality > GOOD))
    return tuple(ca.if_else(good, x, ca.SX.nan(*x.shape)) for x in map(ca.densify, results))  # type: ignore[return-value]


def _efforts(
    rows: ConstraintRows,
    found: Equations,
    by: Basis,
    chosen: tuple[Sequence[int], Sequence[int], Sequence[int]],
    root: ca.SX | ca.DM,
    r: ca.SX,
) -> SymbolicEfforts:
    """(2) and (3) for r; `chosen` are rows, independent columns and driven ones, `root` is W^1/2 of these."""
    (own, free, driven), nv = chosen, rows.model.nv
    B = ca.sparsify(by.E[list(driven), :].T @ ca.diag(1 / root))
    matrix = B @ B.T + ca.SX(ca.Sparsity.diag(len(free)), 0)  # pivots that vanish are there, and seen
    D, LT, order = ca.ldl(matrix)
    u = ca.SX(nv, 1)
    y = ca.ldl_solve(by.E.T @ r, D, LT, order)
    u[list(driven)] = B.T @ y / root
    f = ca.SX(rows.count, 1)
    if own:
        dependent = [k for k in range(nv) if k not in set(free)]
        f[list(own)] = by.Q @ _lower(by.U.T, (r - u)[dependent])
    wrenches = [f[s].T @ found.basis[s, :] for s in rows.slice_list[: len(rows.model.loops)]] or [ca.SX(1, 6)]
    diagonal = ca.vertcat(*(matrix[i, i] for i in order))
    return SymbolicEfforts(u, f, ca.vertcat(*wrenches), -by.E @ y, D, diagonal)


def _on_surface(
    found: Equations, slices: Sequence[slice], active: Sequence[int], v: ca.SX, a: ca.SX
) -> tuple[ca.SX, ca.SX]:
    """How far the state is off, and whether the acceleration keeps it, by the tolerances of the numerical algorithms."""
    root, held = ca.sqrt(scales(found.jacobian, slices)), list(active)
    opened, broken, left = (
        largest((x / root)[held])
        for x in (found.residual, found.jacobian @ v, found.jacobian @ a + found.bias)
    )
    speed = ca.dot(v, v)
    slack = opened + broken / ca.fmax(ca.sqrt(speed), STILL)
    size = ca.fmax(ca.sqrt(ca.dot(a, a)) + speed, STILL)
    return slack, left <= (BREAKS + 100 * slack) * size


def upper_solution(U: ca.SX, b: ca.SX) -> ca.SX:
    """U^-1 b, row by row from the last."""
    n = U.shape[0]
    x: list[ca.SX] = [ca.SX(1, b.shape[1])] * n
    for i in reversed(range(n)):
        x[i] = (b[i, :] - sum((U[i, j] * x[j] for j in range(i + 1, n)), ca.SX(1, b.shape[1]))) / U[i, i]
    return ca.vertcat(*x)


def _lower(L: ca.SX, b: ca.SX) -> ca.SX:
    """L^-1 b, from the first."""
    x: list[ca.SX] = []
    for i in range(L.shape[0]):
        x.append((b[i] - sum((L[i, j] * x[j] for j in range(i)), ca.SX(0))) / L[i, i])
    return ca.vertcat(*x)


# --- compiled -------------------------------------------------------------------------------------------------------


def kernel(rows: ConstraintRows, chosen: Chosen, active: tuple[int, ...]) -> Kernel:
    """(q, v, a, r, root[, parameters]) -> efforts, f, T f by loops, mu, status."""
    own, free, driven = chosen
    model, nv = rows.model, rows.model.nv
    inputs = {"q": (model.nq,), **dict.fromkeys(("v", "a", "r"), (nv,)), "root": (len(driven),)}
    loops = (max(1, len(model.loops)), 6)
    results = {"efforts": (nv,), "f": (rows.count,), "wrenches": loops, "mu": (nv,), "status": (3,)}

    def build() -> ca.Function:
        at, slices = rows.graph, rows.slice_list
        found = at.found
        a, r, root = (ca.SX.sym(name, *inputs[name]) for name in ("a", "r", "root"))
        by = basis(found.jacobian[list(own), :], found.bias[list(own)], free)
        solved = _efforts(rows, found, by, chosen, root, r)
        slack, good = _on_surface(found, slices, active, at.v, a)
        scale = scales(found.jacobian, slices)
        total = sum((ca.sumsqr(x) for x in (at.q, at.v, a, r, solved.u, solved.f)), ca.SX(0))
        good = ca.logic_and(good, total < 1e300)  # not where one is not a number
        good = ca.logic_and(good, by.quality > CLEAR)
        highest = largest(solved.diagonal)
        for k in range(solved.D.numel()):  # (5)
            good = ca.logic_and(good, solved.D[k] > CLEAR**2 * solved.diagonal[k])
            good = ca.logic_and(good, solved.D[k] > REGULAR * highest)
        dropped = [i for i in active if i not in set(own)]
        other = ca.SX(0)
        if dropped:  # (6)
            D = found.jacobian[dropped, :]
            follows = largest(ca.vec((D @ by.E) / ca.repmat(ca.sqrt(scale[dropped]), 1, len(free))))
            allowed = (RANK + ca.fmin(10 * slack, OFF)) * (1 + largest(ca.vec(by.E)))
            good = ca.logic_and(good, follows <= allowed)
            other = largest(ca.sum2(D * D) / scale[dropped])
        status = ca.vertcat(good, slack, other)
        values = at.given(at.q, at.v, a, r, root)
        return function_of("drives", values, [solved.u, solved.f, solved.wrenches, solved.mu, status])

    return make(model, "constrained_inverse_dynamics", f"drives:{chosen}:{active}", inputs, results, build)


def derivative_kernel(rows: ConstraintRows, chosen: Chosen) -> Kernel:
    """(q, root, r_q, r_v, M, parts of (R^T f)_q and (R mu)_q[, parameters]) -> dq, dv, da, and dr for changes of r.

    The parts are those of `kernels.derivative_kernel`, `root` is W^1/2.
    """
    model, nv, count, blocks = rows.model, rows.model.nv, rows.count, rows.blocks
    square, flat = len(blocks.square), len(blocks.rows)
    tree: dict[str, Shape] = dict.fromkeys(("r_q", "r_v", "M"), (nv, nv))
    inputs = {"q": (model.nq,), "root": (len(chosen[2]),), **tree, "push_q": (square,), "row_q": (flat,)}
    results = dict.fromkeys(("dq", "dv", "da", "dr"), (nv, nv))

    def build() -> KernelStages:
        terms, buffers, sparsity = rows.graph.jacobian_stage(chosen[0])
        prepare, solve = _column_functions(model, count, sparsity, chosen)
        r_q, push, row = (ca.SX.sym(name, n) for name, n in (("r_q", nv * nv), ("p", square), ("row", flat)))
        spread = [r_q - blocks.symbolic(push, square=True), blocks.symbolic(row, square=False)]
        right = function_of("spread", [r_q, push, row], [*spread, ca.SX(np.eye(nv).ravel())])
        matrices = {"g_q": nv * nv, "c_q": count * nv, "unit": nv * nv}
        return KernelStages(
            {**buffers, "shared": prepare.numel_out(0), **matrices},
            [
                terms,
                stage(prepare, ["G", "root"], ["shared"]),
                stage(right, ["r_q", "push_q", "row_q"], list(matrices)),
                Columns(solve, "shared", ["g_q", "c_q", "r_v", "M", "unit"], list(results), nv),
            ],
        )

    content = f"constrained_inverse_derivatives:{chosen}"
    return make(model, "inverse_dynamics_derivatives", content, inputs, results, build)


def _column_functions(
    model: Model, count: int, sparsity: ca.Sparsity, chosen: Chosen
) -> tuple[ca.Function, ca.Function]:
    """What all columns share, from the entries of R and W^1/2; (4) for four columns, three of them with c = 0."""
    rows, free, driven = (list(x) for x in chosen)
    dependent = [k for k in range(model.nv) if k not in set(free)]
    entries, root = ca.SX.sym("G", sparsity.nnz()), ca.SX.sym("root", len(driven))
    by = basis(ca.SX(sparsity, entries), ca.SX(len(rows), 1), free)
    inverse = upper_solution(by.U, by.Q.T)
    B = ca.sparsify(by.E[driven, :].T @ ca.diag(1 / root))
    D, LT, order = ca.ldl(B @ B.T + ca.SX(ca.Sparsity.diag(len(free)), 0))
    LT = ca.sparsify(LT)
    kept = [root, ca.vec(ca.densify(by.E[dependent, :])), ca.vec(ca.densify(inverse)), D, nonzeros(LT)]
    prepare = function_of("prepare", [entries, root], [ca.vertcat(*kept)])

    shared, (root, e, i, D, upper) = again(kept)
    LT = ca.SX(LT.sparsity(), upper)
    E = ca.SX(model.nv, len(free))
    E[free, :] = ca.SX.eye(len(free))
    E[dependent, :] = ca.reshape(e, len(dependent), len(free))
    inverse = ca.reshape(i, len(dependent), len(rows))
    E_S, weight = E[driven, :], root * root

    def column(g: ca.SX, c: ca.SX | None = None) -> ca.SX:
        """(4)"""
        x = ca.SX(model.nv, 1)
        if c is not None:
            x[dependent] = inverse @ c[rows]
        x_S = x[driven]
        y = ca.ldl_solve(E.T @ g - E_S.T @ (x_S / weight), D, LT, order)
        du = ca.SX(model.nv, 1)
        du[driven] = (E_S @ y + x_S) / weight
        return du

    given = [ca.SX.sym(f"g{k}", model.nv) for k in range(4)]
    c = ca.SX.sym("c", count)
    answers = [column(given[0], c), *(column(g) for g in given[1:])]
    return prepare, function_of("solve", [shared, given[0], c, *given[1:]], answers)
