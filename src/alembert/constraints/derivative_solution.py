"""Derivatives of constrained accelerations by compiled functions, where the minimal set in use serves the states.

(2) of `derivatives` with the factors of `compiled`: M = L^T D L, Z = L^-T G^T and the factored admittance, each column of a
right-hand side (b; c) by sweeps,

    z = L^-T b,   f = Lambda^-1 (c - Z^T D^-1 z),   da = L^-1 D^-1 (z + Z f)                          (1)

(b; c) are the columns for q, v and tau; the mask of the minimal set is an argument. None says: look closer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.constraints.compiled import Admittance, Symbols, inward, outward
from alembert.constraints.equations import columns
from alembert.constraints.tolerances import CONSISTENT, OFF, RANK
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.lowering.plan import Call, Columns, Plan
from alembert.sensitivity.mass_factor import Pattern

if TYPE_CHECKING:
    from alembert.constraints.rows import ConstraintRows
    from alembert.constraints.system import ConstraintSystem
    from alembert.model import Model

Array = np.ndarray
CLEAR = 1e-2
"""smallest pivot of Lambda, with unit diagonal, at which it is used: the error is some eps/CLEAR^2"""
NEAR = 1e-7
"""how far off the surface the minimal set that is kept may be taken for that of the state"""
LARGEST = 6_000
"""numbers in the right-hand sides up to which they are spread by straight code"""


def accelerations(
    system: ConstraintSystem, given: Sequence[Any], masks: tuple[Array, Array], *, wrenches: bool
) -> tuple[Array, ...] | None:
    """Accelerations, forces, the tree's factor and (5) of `compiled`; `given` as in `quick.accelerations`."""
    rows = system.all
    if rows.slopes is None or rows.solution is None:
        return None
    last = given[-1:] if system.model.parameters else ()
    factor, rest = rows.tree(wrenches=wrenches)(*given)
    a, f, _, status = rows.solution(given[0], given[1], factor, rest, *masks, *last)
    return a, f, factor, status


def own_set(status: Array, closed: float) -> bool:
    """Whether the masks are at all states those of the minimal set that each would choose."""
    unique = status[..., 4] <= RANK**2
    return all_served(status, min(closed, NEAR)) and bool(unique if status.ndim == 1 else np.all(unique))


def all_served(status: Array, closed: float) -> bool:
    """Whether the factors are good enough for derivatives at all states."""
    if status.ndim > 1:
        return bool(np.all(served(status, closed)))
    quality, left, size, slack, _ = status.tolist()
    return bool(
        quality > CLEAR**2 and slack <= closed and left <= (CONSISTENT + min(100 * slack, OFF)) * size
    )


def served(status: Array, closed: float) -> Array:
    """At which states of a batch they are."""
    quality, left, size, slack, _ = np.moveaxis(status, -1, 0)
    good = (quality > CLEAR**2) & (slack <= closed)
    return good & (left <= (CONSISTENT + np.minimum(100 * slack, OFF)) * size)


def slopes(
    system: ConstraintSystem,
    given: Sequence[Any],
    forces: Array | None,
    solved: Sequence[Array],
    chosen: Array,
) -> tuple[Array, Array, Array]:
    """da/dq, da/dv, da/dtau where `accelerations` solved; `given` as there."""
    rows = system.all
    a, f, factor, _ = solved
    q, v = given[:2]
    last = given[-1:] if system.model.parameters else ()
    pushes = () if forces is None else (forces,)
    tree = rows.primary.compute.kernel("inverse_dynamics_derivatives", wrenches=forces is not None)
    r_q, r_v, _ = tree(q, v, a, *pushes, *last)
    packed = rows.derivatives(q, v, a, f, *last)
    assert rows.slopes is not None
    right = (r_q, r_v, *packed)
    if not takes_parts(rows.model, rows.count):
        right = matrices(rows, *right)
    dq, dv, dtau = rows.slopes(q, factor, chosen, *right, *last)
    return dq, dv, dtau


def matrices(
    rows: ConstraintRows, r_q: Array, r_v: Array, push_q: Array, row_q: Array, row_v: Array
) -> tuple[Array, ...]:
    """The right-hand sides b and c for q and v, and the unit matrix."""
    batch, nv = r_q.shape[:-2], rows.model.nv
    c_q, c_v = (-rows.spread(x).reshape(*batch, -1, nv) for x in (row_q, row_v))
    return rows.spread_square(push_q).reshape(r_q.shape) - r_q, -r_v, c_q, c_v, np.eye(nv)


def takes_parts(model: Model, rows: int) -> bool:
    """Whether the kernel takes the parts of the right-hand sides, or matrices."""
    return model.nv * (2 * model.nv + 2 * rows) <= LARGEST


def kernel(model: Model, slices: Sequence[slice], graph: Callable[[], Symbols]) -> Kernel:
    """(q, factor, chosen, right-hand sides[, parameters]) -> dq, dv, dtau.

    The right-hand sides are r_q, r_v and the parts of `derivatives.derivative_kernel`, or the results of `matrices`.
    """
    nv, rows, pattern = model.nv, slices[-1].stop, Pattern(model.compute.tree)
    square, flat = parts(model, slices)
    parameters = [Argument("parameters", (len(model.parameters),))] if model.parameters else []
    of_parts = {"r_q": (nv, nv), "r_v": (nv, nv), "push_q": (square,), "row_q": (flat,), "row_v": (flat,)}
    spread = {"b_q": (nv, nv), "b_v": (nv, nv), "c_q": (rows, nv), "c_v": (rows, nv), "unit": (nv, nv)}
    small = takes_parts(model, rows)
    inputs = [
        Argument("q", (model.nq,)),
        Argument("factor", (pattern.size,)),
        Argument("chosen", (rows,)),
        *(Argument(*item) for item in (of_parts if small else spread).items()),
        *parameters,
    ]
    results = [Argument(name, (nv, nv)) for name in ("dq", "dv", "dtau")]

    def build() -> KernelSource:
        at = graph()
        G = ca.sparsify(at.found.jacobian)
        state = [at.q, *([at.parameters] if model.parameters else [])]
        terms = ca.Function("terms", state, [nonzeros(G)])
        by = column_functions(model, slices, pattern, G.sparsity())
        stages: list[Call | Columns] = [
            Call(FunctionSource(terms), ["q", *(a.name for a in parameters)], ["G"]),
            Call(FunctionSource(by.prepare), ["G", "factor", "chosen"], ["shared"]),
            Columns(by.solve, "shared", ["b_q", "c_q", "b_v", "c_v"], ["dq", "dv"], nv),
            Columns(by.respond, "shared", ["unit"], ["dtau"], nv),
        ]
        buffers = {"G": G.nnz(), "shared": by.prepare.numel_out(0)}
        if small:
            function = _spreading(model, slices, {name: math.prod(shape) for name, shape in of_parts.items()})
            stages.insert(2, Call(FunctionSource(function), list(of_parts), list(spread)))
            buffers |= {name: math.prod(shape) for name, shape in spread.items()}
        return Plan({a.name: a.size for a in inputs}, {a.name: a.size for a in results}, buffers, stages)

    key = f"{model.fingerprint}:constrained_derivatives:{small}"
    return Kernel("forward_dynamics_derivatives", inputs, results, key=key, build=build)


def _spreading(model: Model, slices: Sequence[slice], sizes: Mapping[str, int]) -> ca.Function:
    """`matrices` as straight code."""
    nv, touched = model.nv, columns(model.compute.tree)
    given = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    found = [
        spread_square(given["push_q"], nv, touched) - given["r_q"],
        -given["r_v"],
        *(-spread_rows(given[name], nv, slices, touched) for name in ("row_q", "row_v")),
        ca.SX(np.eye(nv).ravel()),
    ]
    return ca.Function("spread", list(given.values()), [ca.densify(x) for x in found])


def parts(model: Model, slices: Sequence[slice]) -> tuple[int, int]:
    """How many numbers of (R^T f)_q and of the rows' derivatives `derivatives.derivative_kernel` gives."""
    sizes = [(s.stop - s.start, len(c)) for s, c in zip(slices, columns(model.compute.tree), strict=True)]
    return sum(c * c for _, c in sizes), sum(m * c for m, c in sizes)


def nonzeros(x: ca.SX) -> ca.SX:
    """As a column, empty where there are none."""
    return ca.densify(x.nz[:]) if x.nnz() else ca.SX(0, 1)


def spread_square(packed: ca.SX, nv: int, touched: Sequence[Array]) -> ca.SX:
    """Blocks over the joints of each constraint, added up to a matrix, by rows."""
    found, k = ca.SX(nv * nv, 1), 0
    for own in touched:
        for i in own:
            for j in own:
                found[int(i * nv + j)] += packed[k]
                k += 1
    return found


def spread_rows(packed: ca.SX, nv: int, slices: Sequence[slice], touched: Sequence[Array]) -> ca.SX:
    """Rows of each constraint over its joints, as a matrix, by rows."""
    found, k = ca.SX(slices[-1].stop * nv, 1), 0
    for s, own in zip(slices, touched, strict=True):
        for i in range(s.start, s.stop):
            for j in own:
                found[int(i * nv + j)] = packed[k]
                k += 1
    return found


@dataclass(frozen=True)
class ColumnFunctions:
    """`prepare`: what all columns share, from entries of G, factor and mask. With that, `solve`: (1) for two columns (b; c),
    `respond`: (1) for b alone, and `both`: without constraints, and with them, for b alone."""

    prepare: ca.Function
    solve: ca.Function
    respond: ca.Function
    both: ca.Function


def column_functions(
    model: Model, slices: Sequence[slice], pattern: Pattern, G: ca.Sparsity
) -> ColumnFunctions:
    entries, factor = ca.SX.sym("G", G.nnz()), ca.SX.sym("factor", pattern.size)
    chosen = ca.SX.sym("chosen", G.size1())
    by = Admittance(model, pattern, {"factor": factor, "chosen": chosen, "G": ca.SX(G, entries)}, slices)
    Z, LT = ca.sparsify(by.Z), ca.sparsify(by.LT)
    kept = [factor, chosen, by.D, nonzeros(LT), nonzeros(Z)]
    prepare = ca.Function("prepare", [entries, factor, chosen], [ca.densify(ca.vertcat(*kept))])

    shared = ca.SX.sym("shared", prepare.numel_out(0))
    factor, chosen, D, upper, z = ca.vertsplit(shared, np.cumsum([0, *(x.numel() for x in kept)]).tolist())
    Z, LT = ca.SX(Z.sparsity(), z), ca.SX(LT.sparsity(), upper)
    inverse = factor[len(pattern.positions) :]
    weighted = ca.diag(inverse) @ Z

    def column(b: ca.SX, c: ca.SX | float = 0.0) -> tuple[ca.SX, ca.SX]:
        """(1), and what it would be without constraints."""
        x = inverse * inward(pattern, factor, b)
        f = chosen * ca.ldl_solve(chosen * (c - Z.T @ x), D, LT, by.order)
        found = outward(pattern, factor, x + weighted @ f), outward(pattern, factor, x)
        return ca.densify(found[0]), ca.densify(found[1])

    b, d = ca.SX.sym("b", model.nv), ca.SX.sym("d", model.nv)
    c, e = ca.SX.sym("c", G.size1()), ca.SX.sym("e", G.size1())
    alone, free = column(b)
    return ColumnFunctions(
        prepare,
        ca.Function("solve", [shared, b, c, d, e], [column(b, c)[0], column(d, e)[0]]),
        ca.Function("respond", [shared, b], [alone]),
        ca.Function("both", [shared, b], [free, alone]),
    )
