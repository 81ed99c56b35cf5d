"""The code of the derivatives of inverse and forward dynamics.

Small models compute in straight code. For larger ones only the sweeps do; the matrices are then made by rows
(`alembert.lowering.tree_matrices`), in loops for any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import casadi as ca

from alembert.algorithms import kernels
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.dense import IdentitySource
from alembert.engine.kernel import Argument, Kernel
from alembert.lowering.plan import Call, Columns, Copy, Ending, Fold, MatrixRows, Offset, Plan, Step
from alembert.lowering.rolled import RolledSource
from alembert.lowering.tree_factor import TreeFactor
from alembert.lowering.tree_matrices import Relations, Sums, TreeMatrices, padded
from alembert.model import Model
from alembert.sensitivity.inverse_dynamics import (
    ABOVE,
    BELOW,
    INVERSE_DYNAMICS_AND_DERIVATIVES,
    INVERSE_DYNAMICS_DERIVATIVES,
    INVERSE_DYNAMICS_TERMS,
    ROW_COUNT,
    ROWS,
)
from alembert.sensitivity.mass_factor import Pattern
from alembert.sweeps import FORWARD_DYNAMICS, INVERSE_DYNAMICS, SOLVE_MASS_MATRIX, Tree
from alembert.sweeps.program import expressions

BY_ROWS = 12
"""speeds from which on rows fill the registers well enough (measured)"""
SIDE_BY_SIDE = 64
"""speeds up to which the five matrices of as many states as there are lanes stay near (measured: at 100 it is slower)"""
CHUNK = 220
"""instructions in one function of straight code; with many values in flight shorter ones are faster (measured)"""

SUMS = [
    Sums(
        [(ROWS[k][r], ROWS[j][r]) for k, j, count in BELOW[name] for r in range(count)],
        [(ROWS[ABOVE[name][0]][r], ROWS[ABOVE[name][1]][r]) for r in range(ABOVE[name][2])],
    )
    for name in ("dq", "dv", "da")
]


def kernel(model: Model, name: str, *, wrenches: bool, lowering: kernels.Lowering = "auto") -> Kernel:
    """Of inverse_dynamics_derivatives or forward_dynamics_derivatives."""
    tree, n = model.compute.tree, model.nv
    inverse = name == "inverse_dynamics_derivatives"
    names = ("q", "v", "a" if inverse else "tau", *(("wrench",) if wrenches else ()))
    program = INVERSE_DYNAMICS_DERIVATIVES if inverse else FORWARD_DYNAMICS
    inputs = kernels.arguments(model, tree, program, names)
    outputs = [Argument(x, (n, n)) for x in (("dq", "dv", "da") if inverse else ("dq", "dv", "dtau"))]
    if not inverse:
        outputs = [Argument("a", (n,)), *outputs]
    if tree.has_modes:
        by_rows = kernels.is_rolled(tree, INVERSE_DYNAMICS, lowering)
        key = f"{model.fingerprint}:{name}:{','.join(names)}:{'adjoint rows' if by_rows else 'columns'}"
        source = _flexible_rows if by_rows else _flexible_source
        return Kernel(
            name, inputs, outputs, key=key, build=lambda: source(tree, names, inputs, inverse=inverse)
        )
    by_rows = n >= BY_ROWS or kernels.is_rolled(tree, program, lowering)
    make = {
        (True, True): inverse_source,
        (False, True): forward_source,
        (True, False): _small_inverse_source,
        (False, False): _small_forward_source,
    }[inverse, by_rows]
    key = f"{model.fingerprint}:{name}:{','.join(names)}:{'rows' if by_rows else 'lanes'}"
    alone = not inverse and n > SIDE_BY_SIDE
    return Kernel(name, inputs, outputs, key=key, build=lambda: make(tree, names, inputs), alone=alone)


def _flexible_source(
    tree: Tree, names: Sequence[str], inputs: Sequence[Argument], *, inverse: bool
) -> KernelSource:
    """With bodies that have modes: tangents of the sweeps, a column of each matrix at a time."""
    program = INVERSE_DYNAMICS if inverse else FORWARD_DYNAMICS
    function = kernels.function(program.name, inputs, tree, kernels.program_graph(tree, program, names))
    n, space = tree.model.nv, tree.model.space
    given = [ca.SX.sym(a.name, *function.size_in(k)) for k, a in enumerate(inputs)]
    unit = [ca.SX.sym(f"unit_{x}", n) for x in ("q", "v", "x")]
    found = function(*given)
    q, v, x = given[:3]
    columns = [
        ca.jtimes(found, at, along) for at, along in ((q, space.rate(q, unit[0])), (v, unit[1]), (x, unit[2]))
    ]
    shared = ca.vertcat(*(ca.vec(value) for value in given))
    results = {name: n * n for name in ("dq", "dv", "da" if inverse else "dtau")}
    stages: list[Step] = [
        Call(FunctionSource(ca.Function("shared", given, [shared])), [a.name for a in inputs], ["shared"]),
        Call(IdentitySource(n), [], ["unit"]),
        Columns(ca.Function("columns", [shared, *unit], columns), "shared", ["unit"] * 3, list(results), n),
    ]
    if not inverse:
        stages.append(Call(FunctionSource(function), [a.name for a in inputs], ["a"]))
    sizes, temporaries = {a.name: a.size for a in inputs}, {"shared": shared.numel(), "unit": n * n}
    return Plan(sizes, results if inverse else {"a": n, **results}, temporaries, stages)


def _flexible_rows(
    tree: Tree, names: Sequence[str], inputs: Sequence[Argument], *, inverse: bool
) -> KernelSource:
    """With many of them: adjoint sweeps, which give a row of all matrices at a time.

    A row of the derivatives of forward dynamics belongs to the weight e_i: mu = M^-1 e_i, then those of inverse dynamics
    at the accelerations, weighted by mu, with the opposite sign.
    """
    n = tree.model.nv
    at_a = tuple("a" if name == "tau" else name for name in names)
    given = [a.name for a in inputs]
    at = ["a" if name == "tau" else name for name in given]
    tail = given[len(names) :]
    back = RolledSource(INVERSE_DYNAMICS, tree, at_a, "vjp")
    k, e = ca.SX.sym("k"), ca.SX.sym("row", 1 + 3 * n)
    parts = [ca.SX.sym(x, n) for x in ("dq", "dv", "last")]
    signs = (1, 1, 1) if inverse else (-1, -1, 1)
    following = ca.vertcat(k + 1, *(sign * x for sign, x in zip(signs, parts, strict=True)))
    weight = "unit" if inverse else "mu"
    others = {f"d {name}": size for name, size in zip(back.results, back.output_sizes, strict=True)}
    solve: list[Step] = []
    if not inverse:
        solver = RolledSource(SOLVE_MASS_MATRIX, tree, ("q", "tau"))
        solve = [Call(solver, ["q", "unit", *tail], ["mu"])]
    each: list[Step] = [
        Call("unit", ["begin"], ["number", "unit"]),
        *solve,
        Call(back, [*at, weight], list(others)),
        Call("next", ["number", "d dq", "d dv", "d da" if inverse else "mu"], ["next"]),
    ]
    first: list[Step] = [
        Copy(None, "begin"),
        Call("counts", [], ["every", "count"]),
    ]
    if not inverse:
        first.append(Call(kernels.program_source(tree, FORWARD_DYNAMICS, names, "auto"), given, ["a"]))
    results = ["dq", "dv", "da" if inverse else "dtau"]
    size = 1 + 3 * n
    rows: list[Step] = [
        Copy(Offset("records", i * size + 1 + m * n), Offset(result, i * n), n)
        for m, result in enumerate(results)
        for i in range(n)
    ]
    functions = {
        "unit": ([e], [e[0], ca.vertcat(*(e[0] == i for i in range(n)))]),
        "next": ([k, *parts], [following]),
        "counts": ([], [ca.SX(1), ca.SX(n)]),
    }
    sources = {
        key: FunctionSource(ca.Function(key, x, [ca.densify(y) for y in made]))
        for key, (x, made) in functions.items()
    }
    fold = Fold("begin", "now", "next", "every", "count", "records", each)
    temporaries = {
        **dict.fromkeys(("begin", "now", "next"), size),
        **dict.fromkeys(("unit", "mu"), n),
        **others,
    }
    temporaries |= {"number": 1, "every": 1, "count": 1, "records": n * size}
    matrices = dict.fromkeys(results, n * n)
    return Plan(
        {a.name: a.size for a in inputs},
        matrices if inverse else {"a": n, **matrices},
        temporaries,
        [*first, fold, *rows],
        sources,
    )


def _flexible_hybrid_source(tree: Tree, names: Sequence[str], inputs: Sequence[Argument]) -> KernelSource:
    """As `hybrid_kernel` says, from the derivatives of inverse dynamics."""
    n, pattern = tree.model.nv, Pattern(tree)
    derivatives = _flexible_rows if kernels.is_rolled(tree, INVERSE_DYNAMICS, "auto") else _flexible_source
    M, free = ca.SX.sym("M", n * n), ca.SX.sym("free", n)
    whole = ca.reshape(M, n, n).T
    m = ca.diag(free)
    factor = ca.vertcat(pattern.factor(m @ whole @ m + ca.diag(1 - free)), free)
    shared, columns = ca.SX.sym("shared", factor.numel()), [ca.SX.sym(x, n) for x in "qve"]
    L, chosen = shared[: pattern.size], shared[pattern.size :]
    q, v, unit = columns
    solved = [-pattern.solve(L, chosen * x) for x in (q, v)] + [pattern.solve(L, unit)]
    steps: list[Step] = [
        Call(
            derivatives(tree, names, inputs, inverse=True),
            [a.name for a in inputs],
            ["tau_q", "tau_v", "M"],
        ),
        Call(FunctionSource(ca.Function("factor", [M, free], [factor])), ["M", "free"], ["factor"]),
        Call(IdentitySource(n), [], ["one"]),
        Columns(
            ca.Function("solve", [shared, *columns], [ca.densify(x) for x in solved]),
            "factor",
            ["tau_q", "tau_v", "one"],
            ["dq", "dv", "inverse"],
            n,
        ),
    ]
    results = dict.fromkeys(("dq", "dv", "inverse", "tau_q", "tau_v", "M"), n * n)
    sizes = {a.name: a.size for a in inputs[:3]} | {"free": n} | {a.name: a.size for a in inputs[3:]}
    return Plan(sizes, results, {"factor": factor.numel(), "one": n * n}, steps)


def _small_inverse_source(tree: Tree, names: Sequence[str], inputs: Sequence[Argument]) -> KernelSource:
    graph = kernels.program_graph(tree, INVERSE_DYNAMICS_DERIVATIVES, names)
    return FunctionSource(
        kernels.function("inverse_dynamics_derivatives", inputs, tree, graph), chunk=CHUNK, interleave=True
    )


def _small_forward_source(tree: Tree, names: Sequence[str], inputs: Sequence[Argument]) -> KernelSource:
    """M and the efforts at rest, factor, accelerations, derivatives of inverse dynamics there; one solution per column.

    The accelerations come from the factor, which is needed anyway: sweeps of their own would take longer.
    """
    n, pattern, program = tree.model.nv, Pattern(tree), INVERSE_DYNAMICS_AND_DERIVATIVES

    def graph(*values: ca.SX) -> list[ca.SX]:
        given = dict(zip(names, values[:-1], strict=True))
        tau = given.pop("tau")
        at_rest = expressions(program, tree, given, values[-1])
        factor = pattern.factor(at_rest["da"])
        a = pattern.solve(factor, tau - at_rest["tau"])
        found = expressions(program, tree, {**given, "a": a}, values[-1])
        return [a, factor, ca.vec(pattern.inverse(factor)), found["dq"], found["dv"]]

    derivatives = kernels.function("forward_dynamics_derivatives", inputs, tree, graph)
    factor = ca.SX.sym("factor", pattern.size)
    columns = [ca.SX.sym(name, n) for name in ("b_q", "b_v")]
    solve = ca.Function("solve", [factor, *columns], [pattern.solve(factor, -b) for b in columns])
    steps: list[Step] = [
        Call(
            FunctionSource(derivatives, chunk=CHUNK, interleave=True),
            [a.name for a in inputs],
            ["a", "factor", "dtau", "tau_q", "tau_v"],
        ),
        Columns(solve, "factor", ["tau_q", "tau_v"], ["dq", "dv"], n),
    ]
    return Plan(
        {a.name: a.size for a in inputs},
        {"a": n, "dq": n * n, "dv": n * n, "dtau": n * n},
        {"tau_q": n * n, "tau_v": n * n, "factor": pattern.size},
        steps,
    )


def relations(tree: Tree) -> Relations:
    own, above = [], []
    for k, chain in enumerate(tree.ancestors):
        s = tree.v_slices[k]
        inboard = [i for j in chain[1:] for i in range(tree.v_slices[j].start, tree.v_slices[j].stop)]
        for _ in range(s.start, s.stop):
            own.append(range(s.start, s.stop))
            above.append(inboard)
    return Relations(own, above)


def inverse_source(tree: Tree, names: Sequence[str], inputs: Sequence[Argument]) -> KernelSource:
    """dq, dv, da by rows."""
    related = relations(tree)
    sizes = _table_sizes(related)
    terms = kernels.program_source(tree, INVERSE_DYNAMICS_TERMS, names, "rolled")

    results = ["dq", "dv", "da"]

    def end(tools: TreeMatrices) -> Ending:
        products = tools.products(SUMS, ROW_COUNT, final=True)
        rows = [f"rows of {x}" for x in results] if tools.lanes > 1 else []
        calls = [(products, ["terms", "blocks", *rows, *results])]
        return Ending(calls, 40 * related.n * tools.blocks, dict.fromkeys(rows, tools.products_buffer))

    steps: list[Step] = [
        Call(terms, [a.name for a in inputs], ["terms", "blocks"]),
        MatrixRows(results, related, end),
    ]
    return Plan({a.name: a.size for a in inputs}, dict.fromkeys(results, related.n**2), sizes, steps)


def forward_source(tree: Tree, names: Sequence[str], inputs: Sequence[Argument]) -> KernelSource:
    """Accelerations, derivatives of inverse dynamics there, factor of M, then all columns at once."""
    related = relations(tree)
    sizes = _table_sizes(related)
    at_a = tuple("a" if name == "tau" else name for name in names)
    forward = kernels.program_source(tree, FORWARD_DYNAMICS, names, "auto")  # the bits of `forward_dynamics`
    terms = kernels.program_source(tree, INVERSE_DYNAMICS_TERMS, at_a, "rolled")

    given, results = [a.name for a in inputs], ["dq", "dv", "dtau"]
    at = ["a" if name == "tau" else name for name in given]
    steps: list[Step] = [
        Call(forward, given, ["a"]),
        Call(terms, at, ["terms", "blocks"]),
        MatrixRows(results, related, partial(_solving, results=results)),
    ]
    n = related.n
    matrices = dict.fromkeys(results, n * n)
    return Plan({a.name: a.size for a in inputs}, {"a": n, **matrices}, sizes, steps)


def hybrid_kernel(model: Model, *, wrenches: bool) -> Kernel:
    """At the accelerations of hybrid dynamics, with `free` 1 or 0 for every speed: what its derivatives are made of.

    For M_ff the part of M for the free speeds, and all other rows zero: -M_ff^-1 times dtau/dq and dtau/dv, and M_ff^-1 with
    ones for the others; then dtau/dq, dtau/dv and M.
    """
    tree, n = model.compute.tree, model.nv
    names = ("q", "v", "a", *(("wrench",) if wrenches else ()))
    inputs = kernels.arguments(model, tree, INVERSE_DYNAMICS_DERIVATIVES, names)
    with_free = [*inputs[:3], Argument("free", (n,)), *inputs[3:]]
    outputs = [Argument(x, (n, n)) for x in ("dq", "dv", "inverse", "tau_q", "tau_v", "M")]

    def build() -> KernelSource:
        if tree.has_modes:
            return _flexible_hybrid_source(tree, names, inputs)
        related = relations(tree)
        terms = kernels.program_source(tree, INVERSE_DYNAMICS_TERMS, names, "rolled")
        results = [a.name for a in outputs]
        steps: list[Step] = [
            Call(terms, [a.name for a in inputs], ["terms", "blocks"]),
            Copy("free", "chosen"),  # with room for whole vectors
            MatrixRows(results, related, partial(_solving, results=results, chosen=True)),
        ]
        sizes = _table_sizes(related) | {"chosen": padded(related.n)}
        sizes_in = {a.name: a.size for a in with_free}
        return Plan(sizes_in, dict.fromkeys(results, n * n), sizes, steps)

    key = f"{model.fingerprint}:hybrid_dynamics_derivatives:{','.join(names)}"
    alone = n > SIDE_BY_SIDE
    return Kernel("hybrid_dynamics_derivatives", with_free, outputs, key=key, build=build, alone=alone)


def _solving(tools: TreeMatrices, *, results: Sequence[str], chosen: bool = False) -> Ending:
    """-M^-1 times dtau/dq and dtau/dv, and M^-1; where some speeds are `chosen`, for these, and what it was made from."""
    n, factored_only = tools.relations.n, tools.lanes > 1 and not chosen
    sums = [*SUMS[:2], Sums(SUMS[2].below, [])] if factored_only else SUMS  # half of M does
    factor = TreeFactor(tools)
    products = tools.products(sums, ROW_COUNT, zeros=factor.read_empty if factored_only else None)
    q, v, tau, M, L, D = (f"rows of {x}" for x in ("q", "v", "tau", "M", "L", "D"))
    calls = [(products, ["terms", "blocks", q, v, M])]
    if chosen:
        calls.append((factor.restrict(2), ["chosen", M, q, v, results[5], results[3], results[4]]))
    calls += [
        (factor.factorise(), [M, L, D]),
        (factor.invert(), [L, D, tau]),
        (factor.solve((-1, -1)), [L, D, q, v, tau, *results[:3]]),
    ]
    work = (40 * n + 4 * tools.entries) * tools.blocks
    return Ending(calls, work, {**dict.fromkeys((q, v, tau, M, L), tools.matrix), D: n})


def _table_sizes(related: Relations) -> dict[str, int]:
    return {"terms": padded(ROW_COUNT * padded(related.n)), "blocks": padded(3 * len(related.own_entries))}
