"""Independent speeds and constrained inverse dynamics on symbols, by rows and columns that were chosen beforehand.

With the rows R of the minimal set, their dependent columns R_d = Q U and r = M a + bias of the tree:

    E = [1; -R_d^-1 R_i],   rate = [0; -R_d^-1 gamma]                                                  (1)
    B = E_S^T W^-1/2,   B B^T y = E^T r,   u = W^-1/2 B^T y         the smallest u^T W u               (2)
    R_d^T f = (r - u)_d                                             reactions of the minimal set       (3)

S are the driven degrees of freedom, W their weights. Guarded, the results are NaN where a state is off the constraint
surface, an acceleration leaves it, or the chosen rows, columns or drives do not serve:

    min |U_kk| / |column k of R_d| > GOOD,   min pivot of B B^T / its largest entry > REGULAR          (4)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca

from alembert.constraints.compiled import largest, scales
from alembert.constraints.equations import Equations, equations
from alembert.constraints.tolerances import BREAKS, CLOSED, GOOD, STILL
from alembert.errors import UnsupportedError
from alembert.sweeps import INVERSE_DYNAMICS, expressions

if TYPE_CHECKING:
    from alembert.model import Model

REGULAR = 1e-10
"""of the driven set, in (4)"""
MOST = 24
"""rows up to which (1) is unrolled: it takes some m^3 instructions"""


@dataclass(frozen=True, eq=False)
class Basis:
    """(1), with the factors of R_d."""

    E: ca.SX
    rate: ca.SX
    Q: ca.SX
    U: ca.SX
    quality: ca.SX


@dataclass(frozen=True, eq=False)
class Efforts:
    """(2) and (3), with the wrenches of the loops and mu = -E y; the pivots of B B^T and its diagonal in their order."""

    u: ca.SX
    f: ca.SX
    wrenches: ca.SX
    mu: ca.SX
    D: ca.SX
    diagonal: ca.SX


def check_unrolled(model: Model, function: str, count: int) -> None:
    """Refuse more rows than are unrolled."""
    if count > MOST:
        raise UnsupportedError(
            f"{function}: the constraints of model {model.name!r} are too many for code without loops "
            f"({count} rows); the methods of the model take them"
        )


def basis(found: Equations, rows: Sequence[int], free: Sequence[int]) -> Basis:
    """(1)"""
    return basis_of(found.jacobian[list(rows), :], found.bias[list(rows)], free)


def basis_of(R: ca.SX, gamma: ca.SX, free: Sequence[int]) -> Basis:
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
    E[dependent, :] = -upper(U, Q.T @ R[:, list(free)])
    rate[dependent] = -upper(U, Q.T @ gamma)
    quality = ca.SX(1)
    for k in range(count):
        quality = ca.fmin(quality, ca.fabs(U[k, k]) / ca.sqrt(ca.sumsqr(R_d[:, k])))
    return Basis(E, rate, Q, U, quality)


def inverse(
    model: Model,
    slices: Sequence[slice],
    chosen: tuple[Sequence[int], Sequence[int], Sequence[int]],
    drives: tuple[Sequence[int], Sequence[float]],
    given: Mapping[str, ca.SX],
    parameters: ca.SX,
    *,
    guarded: bool,
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """u (nv), f of all rows and the wrenches of the loops; `chosen` are rows, active rows and independent columns."""
    rows, active, free = chosen
    driven, weights = drives
    r = expressions(INVERSE_DYNAMICS, model.compute.tree, dict(given), parameters)["tau"]
    found = equations(model.compute.tree, given["q"], given["v"], parameters)
    by = basis(found, rows, free)
    solved = efforts(model, slices, found, by, (rows, free, driven), ca.sqrt(ca.DM(list(weights))), r)
    results = (solved.u, solved.f, solved.wrenches)
    D = solved.D
    if not guarded:
        return results
    size = ca.SX(0)
    for k in range(D.numel()):
        size = ca.fmax(size, ca.fabs(D[k]))
    pivot = ca.SX(1)
    for k in range(D.numel()):
        pivot = ca.fmin(pivot, D[k] / size)
    slack, kept = on_surface(found, slices, active, given["v"], given["a"])
    good = ca.logic_and(slack <= CLOSED, kept)
    good = ca.logic_and(good, ca.logic_and(by.quality > GOOD, pivot > REGULAR))
    return tuple(ca.if_else(good, x, ca.SX.nan(*x.shape)) for x in map(ca.densify, results))  # type: ignore[return-value]


def efforts(
    model: Model,
    slices: Sequence[slice],
    found: Equations,
    by: Basis,
    chosen: tuple[Sequence[int], Sequence[int], Sequence[int]],
    root: ca.SX | ca.DM,
    r: ca.SX,
) -> Efforts:
    """(2) and (3) for r; `chosen` are rows, independent columns and driven ones, `root` is W^1/2 of these."""
    rows, free, driven = chosen
    B = ca.sparsify(by.E[list(driven), :].T @ ca.diag(1 / root))
    matrix = B @ B.T + ca.SX(ca.Sparsity.diag(len(free)), 0)  # pivots that vanish are there, and seen
    D, LT, order = ca.ldl(matrix)
    u = ca.SX(model.nv, 1)
    y = ca.ldl_solve(by.E.T @ r, D, LT, order)
    u[list(driven)] = B.T @ y / root
    f = ca.SX(slices[-1].stop, 1)
    if rows:
        dependent = [k for k in range(model.nv) if k not in set(free)]
        f[list(rows)] = by.Q @ _lower(by.U.T, (r - u)[dependent])
    wrenches = [f[s].T @ found.basis[s, :] for s in slices[: len(model.loops)]] or [ca.SX(1, 6)]
    return Efforts(u, f, ca.vertcat(*wrenches), -by.E @ y, D, ca.vertcat(*(matrix[i, i] for i in order)))


def on_surface(
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


def upper(U: ca.SX, b: ca.SX) -> ca.SX:
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
