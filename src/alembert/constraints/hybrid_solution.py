"""Hybrid dynamics of constrained models and its derivatives by compiled functions, for any choice of prescribed speeds.

With the accelerations a0 that the given efforts cause and the response A of accelerations to efforts, both under the
constraints, the efforts u of the prescribed speeds p follow from

    A_pp u = (a_given - a0)_p,     a = a0 + A u                                                        (1)

and in derivatives from the same with columns of a0_x (see `dynamics.constrained_products`). The choice is an argument: a
mask w, with which (w A w + 1 - w) u = w (a_given - a0). Its smallest pivot relative to the diagonal of M^-1, the response of
the tree alone, tells how independent of the constraints the prescribed speeds are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.constraints import derivative_solution
from alembert.constraints.compiled import Symbols
from alembert.constraints.derivative_solution import CLEAR, NEAR, column_functions, nonzeros
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import ArgumentError
from alembert.lowering.plan import Call, Columns, Plan
from alembert.sensitivity.mass_factor import Pattern

if TYPE_CHECKING:
    from alembert.constraints.system import ConstraintSystem
    from alembert.model import Model

Array = np.ndarray
MOST = 30
"""degrees of freedom up to which (1) is unrolled"""


def hybrid(
    system: ConstraintSystem,
    function: str,
    q: Any,
    v: Any,
    tau: Array,
    a_given: Array,
    prescribed: Array,
    forces: Array | None,
    parameters: Mapping[str, Any] | None,
    closed: float,
) -> tuple[Array, Array] | None:
    """Accelerations and efforts on the arguments as they come, if the minimal set that is kept serves all states."""
    model, kernel = system.model, system.all.prescription
    if kernel is None or system.kept is None or system.all.primary.compute.lockable:
        return None
    if parameters and not model.parameters:
        return None
    last = (model.compute.parameter_array(function, parameters),) if model.parameters else ()
    pushes = () if forces is None else (forces,)
    try:
        solved = derivative_solution.accelerations(
            system, (q, v, tau, *pushes, *last), system.masks, wrenches=forces is not None
        )
        if solved is None or not derivative_solution.all_served(solved[-1], min(closed, NEAR)):
            return None
        a0, _, factor, _ = solved
        a, u, quality = kernel(q, factor, system.masks[0], a0, a_given, prescribed.astype(float), *last)
    except (ArgumentError, TypeError, ValueError):
        return None
    if not (quality.min(initial=1.0) > CLEAR**2 and np.isfinite(a).all()):
        return None
    return a, tau + u


def prescription_kernel(model: Model, slices: Sequence[slice], graph: Callable[[], Symbols]) -> Kernel:
    """(q, factor, chosen, a0, a_given, mask[, parameters]) -> a, u, smallest pivot of (1)."""
    nv, rows, pattern = model.nv, slices[-1].stop, Pattern(model.compute.tree)
    parameters = [Argument("parameters", (len(model.parameters),))] if model.parameters else []
    inputs = [
        Argument("q", (model.nq,)),
        Argument("factor", (pattern.size,)),
        Argument("chosen", (rows,)),
        *(Argument(name, (nv,)) for name in ("a0", "a_given", "mask")),
        *parameters,
    ]
    results = [Argument("a", (nv,)), Argument("u", (nv,)), Argument("quality", (1,))]

    def build() -> KernelSource:
        at = graph()
        G = ca.sparsify(at.found.jacobian)
        state = [at.q, *([at.parameters] if model.parameters else [])]
        terms = ca.Function("terms", state, [nonzeros(G)])
        columns = column_functions(model, slices, pattern, G.sparsity())
        unit = ca.Function("unit", [ca.SX.sym("a0", nv)], [ca.densify(ca.SX(np.eye(nv).ravel()))])
        of_tree, A = ca.SX.sym("T", nv * nv), ca.SX.sym("A", nv * nv)
        a0, a_given, mask = (ca.SX.sym(name, nv) for name in ("a0", "a_given", "mask"))
        matrix, D, LT, order = _masked(A, mask)
        u = mask * ca.ldl_solve(mask * (a_given - a0), D, LT, order)
        quality = ca.SX(1)
        for k, i in enumerate(order):
            quality = ca.fmin(quality, ca.if_else(mask[i] > 0, D[k] / of_tree[i * nv + i], 1.0))
        outputs = [a0 + matrix @ u, u, quality]
        solve = ca.Function("prescribe", [of_tree, A, a0, a_given, mask], [ca.densify(x) for x in outputs])
        sizes = {"unit": nv * nv, "of_tree": nv * nv, "A": nv * nv}
        return Plan(
            {a.name: a.size for a in inputs},
            {a.name: a.size for a in results},
            {"G": G.nnz(), "shared": columns.prepare.numel_out(0), **sizes},
            [
                Call(FunctionSource(terms), ["q", *(a.name for a in parameters)], ["G"]),
                Call(FunctionSource(columns.prepare), ["G", "factor", "chosen"], ["shared"]),
                Call(FunctionSource(unit), ["a0"], ["unit"]),
                Columns(columns.both, "shared", ["unit"], ["of_tree", "A"], nv),
                Call(
                    FunctionSource(solve),
                    ["of_tree", "A", "a0", "a_given", "mask"],
                    [a.name for a in results],
                ),
            ],
        )

    key = f"{model.fingerprint}:constrained_hybrid_dynamics"
    return Kernel("hybrid_dynamics", inputs, results, key=key, build=build)


@functools.cache
def slopes_kernel(nv: int) -> Kernel:
    """(A, mask, a0_q, a0_v) -> derivatives of (accelerations; efforts) by q, v and what is given, and the quality of (1).

    That is the smallest pivot relative to its diagonal entry, and the smallest of these relative to the size of A.
    """
    inputs = [
        Argument("A", (nv, nv)),
        Argument("mask", (nv,)),
        *(Argument(x, (nv, nv)) for x in ("a_q", "a_v")),
    ]
    results = [*(Argument(name, (2, nv, nv)) for name in ("dq", "dv", "dgiven")), Argument("quality", (2,))]

    def build() -> KernelSource:
        A, mask = ca.SX.sym("A", nv * nv), ca.SX.sym("mask", nv)
        _, D, LT, order = _masked(A, mask)
        pivot, smallest, size = ca.SX(1), ca.SX(1), ca.sqrt(ca.sumsqr(A))
        for k, i in enumerate(order):
            pivot = ca.fmin(pivot, ca.if_else(mask[i] > 0, D[k] / A[i * nv + i], 1.0))
            smallest = ca.fmin(smallest, ca.if_else(mask[i] > 0, A[i * nv + i] / size, 1.0))
        kept = [A, mask, D, nonzeros(LT)]
        unit = ca.densify(ca.SX(np.eye(nv).ravel()))
        prepare = ca.Function(
            "prepare", [A, mask], [ca.densify(ca.vertcat(*kept)), unit, ca.vertcat(pivot, smallest)]
        )

        shared = ca.SX.sym("shared", prepare.numel_out(0))
        A, mask, D, upper = ca.vertsplit(shared, np.cumsum([0, *(x.numel() for x in kept)]).tolist())
        matrix, factor = ca.reshape(A, nv, nv).T, ca.SX(LT.sparsity(), upper)

        def respond(moved: ca.SX, wanted: ca.SX | float = 0.0) -> tuple[ca.SX, ca.SX]:
            """Accelerations and efforts where the prescribed move as `wanted`, and all as `moved` if nothing pushed."""
            u = mask * ca.ldl_solve(mask * (wanted - moved), D, factor, order)
            return moved + matrix @ u, u

        by_q, by_v, e = (ca.SX.sym(name, nv) for name in ("a_q", "a_v", "e"))
        free = (1 - mask) * e
        a, u = respond(matrix @ free, mask * e)
        answers = [*(ca.vertcat(*respond(x)) for x in (by_q, by_v)), ca.vertcat(a, u + free)]
        solve = ca.Function("solve", [shared, by_q, by_v, e], [ca.densify(x) for x in answers])
        return Plan(
            {a.name: a.size for a in inputs},
            {a.name: a.size for a in results},
            {"shared": prepare.numel_out(0), "unit": nv * nv},
            [
                Call(FunctionSource(prepare), ["A", "mask"], ["shared", "unit", "quality"]),
                Columns(solve, "shared", ["a_q", "a_v", "unit"], ["dq", "dv", "dgiven"], nv),
            ],
        )

    return Kernel("hybrid_dynamics_derivatives", inputs, results, key=f"hybrid_slopes:{nv}", build=build)


def _masked(A: ca.SX, mask: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, list[int]]:
    """A (by rows) as a matrix, and the factors of w A w + 1 - w."""
    n = mask.numel()
    matrix = ca.reshape(A, n, n).T
    D, LT, order = ca.ldl(ca.diag(mask) @ matrix @ ca.diag(mask) + ca.diag(1 - mask))
    return matrix, D, ca.sparsify(LT), order
