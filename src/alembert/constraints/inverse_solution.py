"""Derivatives of constrained inverse dynamics by compiled functions, for rows and independent speeds that served a state.

(3) of `inverse_derivatives` with the basis of `reduced_symbols`, E = [1; -R_d^-1 R_i] and R_d the dependent columns of the
minimal set R; S are the driven speeds and W their weights. For columns g = (r - R^T f)_x and c = (R mu)_x,

    H = E_S^T W^-1 E_S,   x = [0; R_d^-1 c],   H y = E^T g - E_S^T W^-1 x_S,   du = W^-1 (E_S y + x_S)  (1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from alembert.constraints import reduced_symbols
from alembert.constraints.compiled import Symbols
from alembert.constraints.derivative_solution import nonzeros, parts, spread_rows, spread_square
from alembert.constraints.equations import columns
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.lowering.plan import Call, Columns, Plan

if TYPE_CHECKING:
    from alembert.constraints.drives import Chosen
    from alembert.model import Model


def kernel(model: Model, slices: Sequence[slice], graph: Callable[[], Symbols], chosen: Chosen) -> Kernel:
    """(q, root, r_q, r_v, M, parts of (R^T f)_q and (R mu)_q[, parameters]) -> dq, dv, da, and dr for changes of r.

    The parts are those of `derivatives.derivative_kernel`, `root` is W^1/2.
    """
    nv, count = model.nv, slices[-1].stop
    square, flat = parts(model, slices)
    parameters = [Argument("parameters", (len(model.parameters),))] if model.parameters else []
    inputs = [
        Argument("q", (model.nq,)),
        Argument("root", (len(chosen[2]),)),
        *(Argument(name, (nv, nv)) for name in ("r_q", "r_v", "M")),
        Argument("push_q", (square,)),
        Argument("row_q", (flat,)),
        *parameters,
    ]
    results = [Argument(name, (nv, nv)) for name in ("dq", "dv", "da", "dr")]

    def build() -> KernelSource:
        at = graph()
        rows = list(chosen[0])
        G = ca.sparsify(at.found.jacobian[rows, :])
        state = [at.q, *([at.parameters] if model.parameters else [])]
        terms = ca.Function("terms", state, [nonzeros(G)])
        prepare, solve = _functions(model, count, G.sparsity(), chosen)
        matrices = {"g_q": nv * nv, "c_q": count * nv, "unit": nv * nv}
        touched = columns(model.compute.tree)
        r_q, push, row = (ca.SX.sym(name, n) for name, n in (("r_q", nv * nv), ("p", square), ("row", flat)))
        spread = [r_q - spread_square(push, nv, touched), spread_rows(row, nv, slices, touched)]
        spread.append(ca.SX(np.eye(nv).ravel()))
        right = ca.Function("spread", [r_q, push, row], [ca.densify(x) for x in spread])
        return Plan(
            {a.name: a.size for a in inputs},
            {a.name: a.size for a in results},
            {"G": G.nnz(), "shared": prepare.numel_out(0), **matrices},
            [
                Call(FunctionSource(terms), ["q", *(a.name for a in parameters)], ["G"]),
                Call(FunctionSource(prepare), ["G", "root"], ["shared"]),
                Call(FunctionSource(right), ["r_q", "push_q", "row_q"], list(matrices)),
                Columns(solve, "shared", ["g_q", "c_q", "r_v", "M", "unit"], [a.name for a in results], nv),
            ],
        )

    key = f"{model.fingerprint}:constrained_inverse_derivatives:{chosen}"
    return Kernel("inverse_dynamics_derivatives", inputs, results, key=key, build=build)


def _functions(
    model: Model, count: int, sparsity: ca.Sparsity, chosen: Chosen
) -> tuple[ca.Function, ca.Function]:
    """What all columns share, from the entries of R and W^1/2; (1) for four columns, three of them with c = 0."""
    rows, free, driven = (list(x) for x in chosen)
    dependent = [k for k in range(model.nv) if k not in set(free)]
    entries, root = ca.SX.sym("G", sparsity.nnz()), ca.SX.sym("root", len(driven))
    by = reduced_symbols.basis_of(ca.SX(sparsity, entries), ca.SX(len(rows), 1), free)
    inverse = reduced_symbols.upper(by.U, by.Q.T)
    B = ca.sparsify(by.E[driven, :].T @ ca.diag(1 / root))
    D, LT, order = ca.ldl(B @ B.T + ca.SX(ca.Sparsity.diag(len(free)), 0))
    LT = ca.sparsify(LT)
    kept = [root, ca.vec(ca.densify(by.E[dependent, :])), ca.vec(ca.densify(inverse)), D, nonzeros(LT)]
    prepare = ca.Function("prepare", [entries, root], [ca.densify(ca.vertcat(*kept))])

    shared = ca.SX.sym("shared", prepare.numel_out(0))
    root, e, i, D, upper = ca.vertsplit(shared, np.cumsum([0, *(x.numel() for x in kept)]).tolist())
    LT = ca.SX(LT.sparsity(), upper)
    E = ca.SX(model.nv, len(free))
    E[free, :] = ca.SX.eye(len(free))
    E[dependent, :] = ca.reshape(e, len(dependent), len(free))
    inverse = ca.reshape(i, len(dependent), len(rows))
    E_S, weight = E[driven, :], root * root

    def column(g: ca.SX, c: ca.SX | None = None) -> ca.SX:
        """(1)"""
        x = ca.SX(model.nv, 1)
        if c is not None:
            x[dependent] = inverse @ c[rows]
        x_S = x[driven]
        y = ca.ldl_solve(E.T @ g - E_S.T @ (x_S / weight), D, LT, order)
        du = ca.SX(model.nv, 1)
        du[driven] = (E_S @ y + x_S) / weight
        return ca.densify(du)

    given = [ca.SX.sym(f"g{k}", model.nv) for k in range(4)]
    c = ca.SX.sym("c", count)
    answers = [column(given[0], c), *(column(g) for g in given[1:])]
    return prepare, ca.Function("solve", [shared, given[0], c, *given[1:]], answers)
