"""Constrained motions as compiled functions, for mechanisms whose equations are not too many: one for each right-hand side.

The first function gives the factors L, D of the tree's mass matrix and tau - bias; it belongs to the tree, whatever its
constraints. The others solve (1) to (3) of `factors` with these, for

    accelerations         b = tau - bias,  c = -gamma                                                  (1)
    positions, speeds     b = 0,           c = -phi and -G v                                           (2)
    derivatives           columns (b; c) of (2) in `derivatives`, and b = 1 for efforts                (3)
    prescribed speeds p   A_pp u = (a_given - a0)_p,  a = a0 + A u                                     (4)

In (4) a0 are the accelerations that the given efforts cause, and A, the response to efforts, comes from columns of 1; which
speeds are prescribed is an argument, a mask w with which (w A w + 1 - w) u = w (a_given - a0). Besides a and f, (1) returns
what tells whether the mask of the minimal set was good at this state:

    status = (quality, left, size, slack, other)                                                       (5)

quality: the smallest pivot, or the squared length of a chosen row relative to its loop's longest; left: the largest
violation among all active rows; size: of the terms there; slack: how far the state is from the constraint surface; other:
the squared relative length of the longest active row that was not chosen. Rows with active = 0 do not count. Of (2):

    status = (quality, largest phi / scale, largest phi, largest G (v + y))                            (6)

The quality of (4) is the smallest pivot relative to the diagonal of M^-1, the response of the tree alone: it tells how
independent of the constraints the prescribed speeds are.

Where the same speeds h are held all along, (1) and (2) do without the columns of (4). With their accelerations a_h (zero
for the others, m), x = a - a_h vanishes there, and

    M_mm x_m = (tau - bias - M a_h)_m + G_m^T f,   G_m x_m = -gamma - G a_h                            (7)
    G_m x_m = -phi,   G_m y_m = -G v                                                                   (8)

are (1) and (2) with the mass matrix [1 0; 0 M_mm] and rows that vanish at the held speeds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.constraints.equations import equations
from alembert.constraints.factors import Admittance, again, column_functions, largest
from alembert.constraints.kernels import (
    KernelStages,
    Shape,
    function_of,
    make,
    nonzeros,
    stage,
)
from alembert.constraints.results import CLOSED, CONSISTENT, GOOD, OFF, RANK, STILL
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.lowering.plan import Call, Columns, Plan, with_numbers
from alembert.lowering.rolled import RolledSource
from alembert.sensitivity.mass_factor import Pattern
from alembert.sweeps import INVERSE_DYNAMICS, MASS_MATRIX, expressions
from alembert.sweeps.form import form_of

if TYPE_CHECKING:
    from alembert.constraints.system import ConstraintRows
    from alembert.model import Model

Array = np.ndarray
PAIRS = 200
"""nodes and their ancestors, above which the tree's terms are loops: compiled in a fifth of the time, and half as fast"""
PRESCRIBED = 30
"""degrees of freedom up to which (4) is unrolled"""


# --- whether a minimal set served -----------------------------------------------------------------------------------


def served(
    status: Any,
    closed: float,
    *,
    pivot: float = GOOD,
    unique: bool = False,
    least: Callable[[Any, float], Any] = min,
) -> Any:
    """What (5) says, of five numbers, arrays or symbols (`least` is their minimum); with `unique`, forces count as well."""
    quality, left, size, slack, other = status
    good = (quality > pivot * pivot) * (slack <= closed)
    good = good * (left <= (CONSISTENT + least(100 * slack, OFF)) * size)
    return good * (other <= RANK**2) if unique else good


def states_served(status: Array, closed: float, *, pivot: float = GOOD, unique: bool = False) -> Array:
    """At which states of a batch the minimal set served."""
    return served(np.moveaxis(status, -1, 0), closed, pivot=pivot, unique=unique, least=np.minimum)


def all_served(status: Array, closed: float, *, pivot: float = GOOD, unique: bool = False) -> bool:
    """Whether the minimal set served at all states."""
    if status.ndim == 1:
        return bool(served(status.tolist(), closed, pivot=pivot, unique=unique))
    return bool(np.all(states_served(status, closed, pivot=pivot, unique=unique)))


def symbolic_served(status: ca.SX, closed: float, *, unique: bool = False) -> ca.SX:
    return served(ca.vertsplit(status), closed, unique=unique, least=ca.fmin)


# --- accelerations and positions ------------------------------------------------------------------------------------


Held = tuple[bool, ...]
"""which speeds are held, of all; empty: none, and nothing is masked"""


def tree_kernel(model: Model, *, wrenches: bool, held: Held = ()) -> Kernel:
    """(q, v, tau[, a of held speeds][, wrench][, parameters]) -> L and 1/D, tau - bias, or those of (7)."""
    tree, pattern = model.compute.tree, Pattern(model.compute.tree)
    inputs: dict[str, Shape] = {"q": (model.nq,), "v": (model.nv,), "tau": (model.nv,)}
    if held:
        inputs["a"] = (model.nv,)
    if wrenches:
        inputs["wrench"] = (len(tree), 6)

    def build() -> ca.Function | KernelStages:
        if is_large(model):
            last = ["parameters"] if model.parameters else []
            factor = Call(factor_source(model, held), ["q", *last], ["factor"])
            rest = rest_source(model, [*inputs], held)
            return KernelStages({}, [factor, Call(rest, [*inputs, *last], ["rest"])])
        given = {name: ca.SX.sym(name, *shape) for name, shape in inputs.items()}
        parameters = ca.SX.sym("parameters", len(model.parameters))
        outputs = _tree_terms(model, pattern, given, parameters, held)
        return function_of("tree", [*given.values(), *([parameters] if model.parameters else [])], outputs)

    results = {"factor": (pattern.size,), "rest": (model.nv,)}
    freedom = f"the model has {model.nv} degrees of freedom"
    hints = {"q": f"the model has {model.nq} coordinates", "v": freedom, "tau": freedom}
    content = f"factored_tree:{wrenches}{_held_text(held)}"
    return make(model, "forward_dynamics", content, inputs, results, build, hints)


def _tree_terms(
    model: Model, pattern: Pattern, given: Mapping[str, ca.SX], parameters: ca.SX, held: Held = ()
) -> list[ca.SX]:
    """The factor of M, and tau - bias; or those of (7)."""
    names = ("q", "v", "a", "wrench") if held else ("q", "v", "wrench")
    motion = {name: x for name, x in given.items() if name in names}
    bias = expressions(INVERSE_DYNAMICS, model.compute.tree, motion, parameters)["tau"]
    M = expressions(MASS_MATRIX, model.compute.tree, {"q": given["q"]}, parameters)["matrix"]
    return [pattern.factor(moving_mass(M, held)), moving(given["tau"] - bias, held)]


def _held_text(held: Held) -> str:
    return ":" + "".join(str(int(x)) for x in held) if held else ""


def moving(x: ca.SX, held: Held) -> ca.SX:
    """The entries of speeds that are not held; zero for the others."""
    return ca.DM([1.0 - h for h in held]) * x if held else x


def moving_mass(M: ca.SX, held: Held) -> ca.SX:
    """[1 0; 0 M_mm]"""
    if not held:
        return M
    free = ca.diag(ca.DM([1.0 - h for h in held]))
    return free @ M @ free + ca.diag(ca.DM([float(h) for h in held]))


def is_large(model: Model) -> bool:
    """Whether the tree's terms are made by loops."""
    return model.compute.tree.pairs > PAIRS


def factor_source(model: Model, held: Held = ()) -> KernelSource:
    """(q[, parameters]) -> L and 1/D"""
    tree, pattern, n = model.compute.tree, Pattern(model.compute.tree), model.nv
    sizes = {"q": model.nq, **({"parameters": len(model.parameters)} if model.parameters else {})}
    if is_large(model):
        M = ca.SX.sym("M", n, n)
        found = pattern.factor(moving_mass(M, held))
        factor = stage(function_of("factor", [M], [found]), ["M"], ["factor"])
        steps = [Call(RolledSource(MASS_MATRIX, tree, ["q"]), list(sizes), ["M"]), factor]
        return Plan(sizes, {"factor": pattern.size}, {"M": n * n}, steps)
    form = form_of(model)
    if form is not None:
        kept, key = form.model.compute.tree.found, f"factor{_held_text(held)}"
        if key not in kept:
            kept[key] = factor_source(form.model, held)
        return with_numbers(kept[key], sizes, {"factor": pattern.size}, form.numbers)
    q, p = ca.SX.sym("q", model.nq), ca.SX.sym("parameters", len(model.parameters))
    M = expressions(MASS_MATRIX, tree, {"q": q}, p)["matrix"]
    found = pattern.factor(moving_mass(M, held))
    return FunctionSource(function_of("factor", [q, p][: len(sizes)], [found]))


def rest_source(model: Model, names: Sequence[str], held: Held = ()) -> KernelSource:
    """(q, v, tau[, a][, wrench][, parameters]) -> tau - bias of a large tree"""
    tree, n = model.compute.tree, model.nv
    all_sizes = {
        "q": model.nq,
        "v": n,
        "tau": n,
        "a": n,
        "wrench": 6 * len(tree),
        "parameters": len(model.parameters),
    }
    given = [*names, *(["parameters"] if model.parameters else [])]
    motion = [name for name in names if name != "tau"]
    tau, bias = ca.SX.sym("tau", n), ca.SX.sym("bias", n)
    return Plan(
        {name: all_sizes[name] for name in given},
        {"rest": n},
        {"bias": n},
        [
            Call(
                RolledSource(INVERSE_DYNAMICS, tree, motion),
                [name for name in given if name != "tau"],
                ["bias"],
            ),
            stage(function_of("rest", [tau, bias], [moving(tau - bias, held)]), ["tau", "bias"], ["rest"]),
        ],
    )


def acceleration_kernel(rows: ConstraintRows, held: Held = ()) -> Kernel:
    """(q, v, factor, rest[, a of held speeds], chosen, active[, parameters]) -> a, f, T f by loops, (5)."""
    loops, nv = max(1, len(rows.model.loops)), rows.model.nv
    results = {"a": (nv,), "f": (rows.count,), "reactions": (loops, 6), "status": (5,)}
    of_tree = ("factor", "rest", "a_held") if held else ("factor", "rest")
    return terms_and_solution(rows, "constraint_solution", of_tree, results, _accelerations, held)


def projection_kernel(rows: ConstraintRows, held: Held = ()) -> Kernel:
    """(q, v, factor, chosen, active[, parameters]) -> x, y with G x = -phi and G y = -G v, (6)."""
    results = {"x": (rows.model.nv,), "y": (rows.model.nv,), "status": (4,)}
    return terms_and_solution(rows, "constraint_projection", ("factor",), results, _projection, held)


def terms_and_solution(
    rows: ConstraintRows,
    name: str,
    of_tree: tuple[str, ...],
    results: Mapping[str, Shape],
    solution: Callable[[ConstraintRows, dict[str, ca.SX]], list[ca.SX]],
    held: Held = (),
    *,
    more: Mapping[str, int] | None = None,
    content: str = "",
) -> Kernel:
    """The terms at a state, then a solution from them and from what else is given; `content` tells it from others."""
    model, masks = rows.model, {"chosen": rows.count, "active": rows.count}
    sizes = {"factor": Pattern(model.compute.tree).size, "rest": model.nv, "a_held": model.nv, **(more or {})}
    kept = {"v": model.nv, **{part: sizes[part] for part in of_tree}, **masks}

    def build() -> KernelStages:
        at = rows.graph
        G, T = ca.sparsify(at.found.jacobian), ca.sparsify(at.found.basis)
        outputs = {"G": G.nz[:], "gamma": at.found.bias, "phi": at.found.residual, "T": T.nz[:]}
        given = at.given(at.q, at.v)
        terms = function_of("terms", given, list(outputs.values()))
        between = {f"{part}_": x.numel() for part, x in outputs.items()}
        inner = {part: ca.SX.sym(part, x.numel()) for part, x in outputs.items()}
        inner |= {part: ca.SX.sym(part, size) for part, size in kept.items()}
        matrices = {"G": ca.SX(G.sparsity(), inner["G"]), "T": ca.SX(T.sparsity(), inner["T"])}
        found = solution(rows, _held_rows(inner | matrices, held))
        solve = function_of("solve", list(inner.values()), found)
        return KernelStages(
            between,
            [
                stage(terms, ["q", "v", "parameters"][: len(given)], list(between)),
                stage(solve, [*between, *kept], list(results)),
            ],
        )

    inputs = {"q": (model.nq,), **{part: (size,) for part, size in kept.items()}}
    return make(model, name, (content or name) + _held_text(held), inputs, results, build)


def _held_rows(x: dict[str, ca.SX], held: Held) -> dict[str, ca.SX]:
    """The terms of (7) and (8); `all` are the rows as they are."""
    if not held:
        return x | {"all": x["G"]}
    free = ca.diag(ca.DM([1.0 - h for h in held]))
    found = x | {"all": x["G"], "G": ca.sparsify(x["G"] @ free)}
    if "a_held" in x:
        found["a_held"] = ca.DM([float(h) for h in held]) * x["a_held"]
        found["gamma"] = x["gamma"] + x["G"] @ found["a_held"]
    return found


def symbolic_solution(
    rows: ConstraintRows,
    masks: tuple[Array, Array],
    given: Mapping[str, ca.SX],
    parameters: ca.SX,
    *,
    guarded: bool,
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """a, f and the wrenches of the loops on symbols, by the rows chosen and active in `masks`, all in one graph.

    `given` has q, v, tau and, where wrenches act, `wrench` (nodes, 6). `guarded`: NaN where (5) says that the minimal set
    does not serve or loops are open.
    """
    a, f, wrenches, status = symbolic_state(rows, masks, given, parameters)
    if guarded:
        good = symbolic_served(status, CLOSED)
        a, f, wrenches = (ca.if_else(good, y, ca.SX.nan(*y.shape)) for y in map(ca.densify, (a, f, wrenches)))
    return a, f, wrenches


def symbolic_state(
    rows: ConstraintRows, masks: tuple[Any, Any], given: Mapping[str, ca.SX], parameters: ca.SX
) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """a, f, the wrenches of the loops and (5) on symbols; the masks of chosen and active rows may be symbols too."""
    factor, rest = _tree_terms(rows.model, Pattern(rows.model.compute.tree), given, parameters)
    x = _symbols(rows, masks, given["q"], given["v"], parameters) | {"factor": factor, "rest": rest}
    a, f, wrenches, status = _accelerations(rows, x)
    return a, f, wrenches, status


def symbolic_projection(
    rows: ConstraintRows, masks: tuple[Any, Any], q: ca.SX, v: ca.SX, parameters: ca.SX
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """x and y with G x = -phi and G y = -G v, and (6), on symbols."""
    pattern = Pattern(rows.model.compute.tree)
    M = expressions(MASS_MATRIX, rows.model.compute.tree, {"q": q}, parameters)["matrix"]
    x = _symbols(rows, masks, q, v, parameters) | {"factor": pattern.factor(M)}
    step, change, status = _projection(rows, x)
    return step, change, status


def _symbols(
    rows: ConstraintRows, masks: tuple[Any, Any], q: ca.SX, v: ca.SX, parameters: ca.SX
) -> dict[str, ca.SX]:
    found = equations(rows.model.compute.tree, q, v, parameters)
    terms = {
        "G": ca.sparsify(found.jacobian),
        "T": found.basis,
        "gamma": found.bias,
        "phi": found.residual,
    }
    return _held_rows({**terms, "v": v, "chosen": ca.SX(masks[0]), "active": ca.SX(masks[1])}, ())


def _accelerations(rows: ConstraintRows, x: dict[str, ca.SX]) -> list[ca.SX]:
    """(1) and (5)"""
    by = Admittance(Pattern(rows.model.compute.tree), rows.slice_list, x["factor"], x["chosen"], x["G"])
    G, T, v, active = x["G"], x["T"], x["v"], x["active"]
    z0 = by.inward(x["rest"])
    f = by.solve(-(x["gamma"] + by.weighted.T @ z0))
    a_free = by.outward(by.inverse * z0)
    a = by.outward(by.inverse * z0 + by.weighted @ f)
    wrenches = [f[s].T @ T[s, :] for s in rows.slice_list[: len(rows.model.loops)]] or [ca.SX(1, 6)]
    root = ca.sqrt(by.scale)
    left, broken, opened = (largest(active * y / root) for y in (G @ a + x["gamma"], x["all"] @ v, x["phi"]))
    if "a_held" in x:
        a = a + x["a_held"]
    speed = ca.dot(v, v)
    size = ca.sqrt(ca.dot(a, a)) + ca.sqrt(ca.dot(a_free, a_free)) + speed
    slack = opened + broken / ca.fmax(ca.sqrt(speed), STILL)
    other = largest((active - by.chosen) * by.lengths / by.scale)
    return [a, f, ca.vertcat(*wrenches), ca.vertcat(by.quality(), left, size, slack, other)]


def _projection(rows: ConstraintRows, x: dict[str, ca.SX]) -> list[ca.SX]:
    """(2) and (6)"""
    by = Admittance(Pattern(rows.model.compute.tree), rows.slice_list, x["factor"], x["chosen"], x["G"])
    v, phi = x["v"], x["active"] * x["phi"]
    step, change = (by.outward(by.weighted @ by.solve(-b)) for b in (phi, x["all"] @ v))
    opened, left = largest(phi / ca.sqrt(by.scale)), largest(x["active"] * (x["all"] @ (v + change)))
    return [step, change, ca.vertcat(by.quality(), opened, largest(phi), left)]


# --- derivatives ----------------------------------------------------------------------------------------------------


def derivative_kernel(rows: ConstraintRows) -> Kernel:
    """(q, factor, chosen, r_q, r_v, parts of `kernels.derivative_kernel`[, parameters]) -> dq, dv, dtau of (3)."""
    model, nv, blocks, pattern = rows.model, rows.model.nv, rows.blocks, Pattern(rows.model.compute.tree)
    flat = (len(blocks.rows),)
    parts = {"r_q": (nv, nv), "r_v": (nv, nv), "push_q": (len(blocks.square),), "row_q": flat, "row_v": flat}
    square, wide = nv * nv, rows.count * nv
    right = {"b_q": square, "b_v": square, "c_q": wide, "c_v": wide, "unit": square}

    def spread() -> ca.Function:
        """The right-hand sides b and c for q and v, and the unit matrix."""
        given = {name: ca.SX.sym(name, math.prod(shape)) for name, shape in parts.items()}
        found = [
            blocks.symbolic(given["push_q"], square=True) - given["r_q"],
            -given["r_v"],
            *(-blocks.symbolic(given[name], square=False) for name in ("row_q", "row_v")),
            ca.SX(np.eye(nv).ravel()),
        ]
        return function_of("spread", list(given.values()), found)

    def build() -> KernelStages:
        terms, buffers, sparsity = rows.graph.jacobian_stage()
        by = column_functions(rows.slice_list, pattern, sparsity)
        return KernelStages(
            {**buffers, **right, "shared": by.prepare.numel_out(0)},
            [
                terms,
                stage(by.prepare, ["G", "factor", "chosen"], ["shared"]),
                stage(spread(), list(parts), list(right)),
                Columns(by.solve, "shared", ["b_q", "c_q", "b_v", "c_v"], ["dq", "dv"], nv),
                Columns(by.respond, "shared", ["unit"], ["dtau"], nv),
            ],
        )

    tree: dict[str, Shape] = {"q": (model.nq,), "factor": (pattern.size,), "chosen": (rows.count,)}
    results = dict.fromkeys(("dq", "dv", "dtau"), (nv, nv))
    inputs = {**tree, **parts}
    name = "forward_dynamics_derivatives"
    return make(model, name, "constrained_derivatives", inputs, results, build)


# --- prescribed speeds ----------------------------------------------------------------------------------------------


def prescription_kernel(rows: ConstraintRows) -> Kernel:
    """(q, factor, chosen, a0, a_given, mask[, parameters]) -> a, u, quality of (4)."""
    model, nv, pattern = rows.model, rows.model.nv, Pattern(rows.model.compute.tree)
    given: dict[str, Shape] = dict.fromkeys(("a0", "a_given", "mask"), (nv,))
    results: dict[str, Shape] = {"a": (nv,), "u": (nv,), "quality": (1,)}

    def build() -> KernelStages:
        terms, buffers, sparsity = rows.graph.jacobian_stage()
        by = column_functions(rows.slice_list, pattern, sparsity)
        unit = function_of("unit", [ca.SX.sym("a0", nv)], [ca.SX(np.eye(nv).ravel())])
        of_tree, A = ca.SX.sym("T", nv * nv), ca.SX.sym("A", nv * nv)
        a0, a_given, mask = (ca.SX.sym(name, nv) for name in given)
        matrix, D, LT, order = _masked(A, mask)
        u = mask * ca.ldl_solve(mask * (a_given - a0), D, LT, order)
        quality = ca.SX(1)
        for k, i in enumerate(order):
            quality = ca.fmin(quality, ca.if_else(mask[i] > 0, D[k] / of_tree[i * nv + i], 1.0))
        solve = function_of("prescribe", [of_tree, A, a0, a_given, mask], [a0 + matrix @ u, u, quality])
        sizes = {"shared": by.prepare.numel_out(0), "unit": nv * nv, "of_tree": nv * nv, "A": nv * nv}
        return KernelStages(
            {**buffers, **sizes},
            [
                terms,
                stage(by.prepare, ["G", "factor", "chosen"], ["shared"]),
                stage(unit, ["a0"], ["unit"]),
                Columns(by.both, "shared", ["unit"], ["of_tree", "A"], nv),
                stage(solve, ["of_tree", "A", *given], list(results)),
            ],
        )

    inputs = {"q": (model.nq,), "factor": (pattern.size,), "chosen": (rows.count,), **given}
    return make(model, "hybrid_dynamics", "constrained_hybrid_dynamics", inputs, results, build)


@functools.cache
def prescription_derivative_kernel(nv: int) -> Kernel:
    """(A, mask, a0_q, a0_v) -> derivatives of (accelerations; efforts) by q, v and what is given, and the quality of (4).

    That is the smallest pivot relative to its diagonal entry, and the smallest of these relative to the size of A.
    """
    matrices = dict.fromkeys(("a_q", "a_v"), nv * nv)
    results = {**dict.fromkeys(("dq", "dv", "dgiven"), (2, nv, nv)), "quality": (2,)}

    def build() -> Plan:
        A, mask = ca.SX.sym("A", nv * nv), ca.SX.sym("mask", nv)
        _, D, LT, order = _masked(A, mask)
        pivot, smallest, size = ca.SX(1), ca.SX(1), ca.sqrt(ca.sumsqr(A))
        for k, i in enumerate(order):
            pivot = ca.fmin(pivot, ca.if_else(mask[i] > 0, D[k] / A[i * nv + i], 1.0))
            smallest = ca.fmin(smallest, ca.if_else(mask[i] > 0, A[i * nv + i] / size, 1.0))
        kept = [A, mask, D, nonzeros(LT)]
        outputs = [ca.vertcat(*kept), ca.SX(np.eye(nv).ravel()), ca.vertcat(pivot, smallest)]
        prepare = function_of("prepare", [A, mask], outputs)

        shared, (A, mask, D, upper) = again(kept)
        matrix, factor = ca.reshape(A, nv, nv).T, ca.SX(LT.sparsity(), upper)

        def respond(moved: ca.SX, wanted: ca.SX | float = 0.0) -> tuple[ca.SX, ca.SX]:
            """Accelerations and efforts where the prescribed move as `wanted`, and all as `moved` if nothing pushed."""
            u = mask * ca.ldl_solve(mask * (wanted - moved), D, factor, order)
            return moved + matrix @ u, u

        by_q, by_v, e = (ca.SX.sym(name, nv) for name in ("a_q", "a_v", "e"))
        free = (1 - mask) * e
        a, u = respond(matrix @ free, mask * e)
        found = [*(ca.vertcat(*respond(x)) for x in (by_q, by_v)), ca.vertcat(a, u + free)]
        solve = function_of("solve", [shared, by_q, by_v, e], found)
        return Plan(
            {"A": nv * nv, "mask": nv, **matrices},
            {name: math.prod(shape) for name, shape in results.items()},
            {"shared": prepare.numel_out(0), "unit": nv * nv},
            [
                stage(prepare, ["A", "mask"], ["shared", "unit", "quality"]),
                Columns(solve, "shared", ["a_q", "a_v", "unit"], ["dq", "dv", "dgiven"], nv),
            ],
        )

    inputs = [Argument("A", (nv, nv)), Argument("mask", (nv,)), *(Argument(x, (nv, nv)) for x in matrices)]
    found = [Argument(*item) for item in results.items()]
    return Kernel("hybrid_dynamics_derivatives", inputs, found, key=f"hybrid_slopes:{nv}", build=build)


def _masked(A: ca.SX, mask: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, list[int]]:
    """A (by rows) as a matrix, and the factors of w A w + 1 - w."""
    n = mask.numel()
    matrix = ca.reshape(A, n, n).T
    D, LT, order = ca.ldl(ca.diag(mask) @ matrix @ ca.diag(mask) + ca.diag(1 - mask))
    return matrix, D, ca.sparsify(LT), order
