"""From a program and a model to a compiled function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import casadi as ca

from alembert.arguments import choice
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.lowering.plan import Call, Copy, Offset, Plan, Step
from alembert.lowering.rolled import RolledSource
from alembert.model import Model
from alembert.spatial import Force, Pose
from alembert.sweeps import Program, Tree, expressions
from alembert.sweeps.program import flat
from alembert.sweeps.tree import Where

Lowering = Literal["auto", "specialised", "rolled"]
MOST_NODES = (
    40  # in specialised code, and modes; it compiles some 30 ms for each, and runs about a third faster
)
MOST_BLOCKS = (
    300  # of matrices that couple pairs of nodes; with more of them loops run as fast and compile sooner
)
Graph = Callable[..., list[ca.SX]]
"""A function of the inputs as `SX` (the parameters last) that gives the results."""


def arguments(model: Model, tree: Tree, program: Program, names: Sequence[str]) -> list[Argument]:
    """The kernel's arguments for the inputs of a program, with hints for wrong shapes."""
    sizes = {"q": (model.nq,), "v": (model.nv,), "node6": (len(tree), 6)}
    found = [Argument(name, sizes[program.given[name]], hint(model, program.given[name])) for name in names]
    if model.parameters:
        known = ", ".join(name for name, _ in model.parameters)
        found.append(Argument("parameters", (len(model.parameters),), f"the model has {known}"))
    return found


def program_graph(tree: Tree, program: Program, names: Sequence[str]) -> Graph:
    """All results of a program, in the order of `result_names`."""

    def graph(*inputs: ca.SX) -> list[ca.SX]:
        parameters = inputs[-1]
        given = dict(zip(names, inputs[:-1], strict=True))
        found = totals_of_nothing(program) if not len(tree) else {}
        found = found or expressions(program, tree, given, parameters)
        return [found[name] for name in result_names(program)]

    return graph


def result_names(program: Program) -> tuple[str, ...]:
    return (*program.result, *program.total, *(program.pairs.names if program.pairs else ()))


def results(model: Model, tree: Tree, program: Program) -> list[Argument]:
    n, nv = len(tree), model.nv
    shapes = {"q": (model.nq,), "v": (nv,), "v6": (nv, 6)}
    found = []
    for name, extent in program.result.items():
        found.append(Argument(name, shapes.get(extent) or (n, WIDTHS[name])))
    found += [Argument(name, (WIDTHS[name],)) for name in program.total]
    if program.pairs:
        found += [Argument(name, (nv, nv)) for name in program.pairs.names]
    return found


WIDTHS = {"X_W": 12, "V": 6, "A": 6, "T": 1, "E": 1, "I": 13, "h": 6}


def totals_of_nothing(program: Program) -> dict[str, ca.SX]:
    """What a program sums up where nothing moves."""
    return {name: ca.SX.zeros(WIDTHS[name]) for name in program.total}


def function(name: str, inputs: Sequence[Argument], tree: Tree, graph: Graph) -> ca.Function:
    """The graph as a CasADi function of its inputs (matrices where an argument has two dimensions)."""
    symbols = [ca.SX.sym(a.name, *a.shape) for a in inputs]
    if tree.model.parameters:
        symbols[-1] = tree.parameter_symbols
    values = symbols if tree.model.parameters else [*symbols, ca.SX(0, 1)]
    outputs = [ca.densify(value) for value in graph(*values)]
    return ca.Function(name, symbols, outputs)


def program_kernel(
    model: Model,
    tree: Tree,
    program: Program,
    names: Sequence[str],
    *,
    name: str = "",
    labels: Mapping[str, str] | None = None,
    lowering: Lowering = "auto",
) -> Kernel:
    """The kernel of a program for some of its inputs; the others are zero.

    Messages call it `name`, and its inputs as `labels` says.
    """
    rolled = is_rolled(tree, program, lowering)
    inputs = [
        replace(a, name=(labels or {}).get(a.name, a.name)) for a in arguments(model, tree, program, names)
    ]

    def build() -> KernelSource:
        return program_source(tree, program, names, lowering)

    key = f"{model.fingerprint}:{program.name}:{','.join(names)}:{'rolled' if rolled else 'specialised'}"
    return Kernel(name or program.name, inputs, results(model, tree, program), key=key, build=build)


def placement_kernel(model: Model, frame: str, placement: Where) -> Kernel:
    """A frame's pose on its body from the parameters: the rotation by rows, then the position."""

    def make() -> ca.Function:
        p = ca.SX.sym("p", len(model.parameters))
        X = placement.symbolic_pose({name: p[k] for k, name in enumerate(model.parameter_values)})
        return ca.Function("placement", [p], [flat(X)])

    given = {"parameters": (len(model.parameters),)}
    return model.compute.function_kernel("placement", given, {"X": (12,)}, make, key=("placement", frame))


def with_wrenches(model: Model, inner: Kernel, frames: Sequence[str]) -> Kernel:
    """A kernel that takes the wrenches on some frames instead of those on all nodes."""
    tree = model.compute.tree
    located = [model.compute.carrier(frame) for frame in frames]
    at = [a.name for a in inner.arguments].index("wrench")
    forces = [Argument(f"wrench on {frame!r}", (6,), "moment, then force") for frame in frames]
    inputs = [*inner.arguments[:at], *forces, *inner.arguments[at + 1 :]]

    def build() -> KernelSource:
        F = [ca.SX.sym(f"F{k}", 6) for k in range(len(frames))]
        p = ca.SX.sym("p", len(model.parameters))
        values = {name: p[k] for k, (name, _) in enumerate(model.parameters)}
        rows: dict[int, ca.SX] = {}
        for (node, placement), x in zip(located, F, strict=True):
            force = carried(placement.symbolic_pose(values), x)
            rows[node] = rows[node] + force if node in rows else force
        outputs = [ca.densify(row) for row in rows.values()]
        function = ca.Function("wrenches", [*F, p] if model.parameters else F, outputs)
        source = inner.source()
        names = list(source.arguments) if isinstance(source, Plan) else [a.name for a in inner.arguments]
        own = [f"wrench on frame {k}" for k in range(len(frames))]
        sizes = dict(
            zip([*names[:at], *own, *names[at + 1 :]], (argument.size for argument in inputs), strict=True)
        )
        on_nodes = {names[at]: 6 * len(tree)}
        parameters = names[-1:] if model.parameters else []
        places = [Offset(names[at], 6 * node) for node in rows]
        first: list[Step] = [
            Copy(None, names[at]),
            Call(FunctionSource(function), [*own, *parameters], places),
        ]
        if isinstance(source, Plan):
            return source.after(sizes, on_nodes, first)
        results = {f"result {a.name}": a.size for a in inner.results}
        return Plan(sizes, results, on_nodes, [*first, Call(source, names, list(results))])

    key = f"{inner.key}:on:{located!r}"
    return Kernel(inner.name, inputs, inner.results, key=key, build=build, alone=inner.alone)


def program_source(
    tree: Tree, program: Program, names: Sequence[str], lowering: Lowering = "auto"
) -> KernelSource:
    """The code of a program for some of its inputs (and the parameters, where there are any)."""
    if is_rolled(tree, program, lowering):
        return RolledSource(program, tree, names)
    inputs = arguments(tree.model, tree, program, names)
    return FunctionSource(function(program.name, inputs, tree, program_graph(tree, program, names)))


def check_lowering(function: str, lowering: Lowering) -> None:
    choice(function, "lowering", lowering, get_args(Lowering))


def is_rolled(tree: Tree, program: Program | None, lowering: Lowering) -> bool:
    """Whether to make loops over the nodes rather than code for each of them; without a program, of several."""
    if lowering == "auto":
        pairs = program.pairs if program is not None else None
        return len(tree) + tree.mode_count > MOST_NODES or (
            pairs is not None and tree.pairs * len(pairs.names) > MOST_BLOCKS
        )
    return lowering == "rolled" and len(tree) > 0


def carried(X_BC: Pose, F_C: ca.SX) -> ca.SX:
    """A wrench on a frame as one on the body that carries it, at the body's origin and in its axes."""
    return X_BC.force(Force.from_vector(F_C)).vector()


def hint(model: Model, extent: str) -> str:
    if extent == "q":
        sizes, what = [o.type.nq for o in model.space], f"the model has {model.nq} coordinates"
    elif extent == "v":
        sizes, what = [o.type.nv for o in model.space], f"the model has {model.nv} degrees of freedom"
    else:
        return "six per moving body"
    owners = zip(model.space, sizes, strict=True)
    several = [f"joint {owner.name!r} has {size}" for owner, size in owners if size > 1]
    return f"{what} ({', '.join(several[:3])})" if several else what


def graph_kernel(model: Model, graph_name: str, options: Any, name: str) -> Kernel:
    """An algorithm from its graph, without loops over the bodies."""
    graph = model.compute.symbolic.graph(graph_name, options)
    places = [model.compute.carrier(frame) for frame in (*options.wrenches, options.frame)]
    key = f"{model.fingerprint}:{graph_name}:{options!r}:{places!r}"
    return Kernel(
        name, list(graph.inputs), list(graph.results), key=key, build=lambda: FunctionSource(graph.function)
    )
