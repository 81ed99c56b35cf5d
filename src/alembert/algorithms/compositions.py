"""Compositions of sweeps and small functions, for models of any size.

What follows from sweeps (`alembert.algorithms.table`: the velocity of a frame from that of its body, the energy from two
totals, wrenches on frames that act on bodies) is a short list of operations on named buffers:

    SweepCall      a program over the bodies, or its adjoint, as loops
    Small          a function of a few numbers, as straight code
    Scatter        rows of a table that is zero elsewhere
    Gather         rows of a table
    Total          buffers added up
    MatrixProduct  the sum of products of matrices over the speeds
    Inverse        of a symmetric one

The graph of an algorithm is watched while it is built: the sweeps that it runs become operations, and what it makes of
their results short functions between them.

The tangent of a list has every operation together with its change, in the same order; the adjoint has the adjoints of the
operations in the opposite order, and sums what several of them give back to the same buffer. The tangent of the adjoint
makes Hessians (`alembert.algorithms.directional_kernels`).

Products with the Jacobians of the dynamics are in closed form (`alembert.sensitivity.products`), unless parameters vary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import casadi as ca

from alembert import sweeps
from alembert.algorithms import kernels
from alembert.algorithms.algorithm import Algorithm, GraphInputs, Options, graph_inputs, graph_results
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.dense import InverseSource, ProductSource, SumSource
from alembert.engine.kernel import Kernel
from alembert.errors import UnsupportedError
from alembert.lowering.plan import Call, Copy, Offset, Plan, Step
from alembert.lowering.rolled import Mode, RolledSource
from alembert.sensitivity import adjoint_traces, products
from alembert.spatial import Motion, Pose
from alembert.sweeps import Program, Tree
from alembert.sweeps.node import Record

if TYPE_CHECKING:
    from alembert.model import Model

    pass


@dataclass(frozen=True, eq=False)
class SweepCall:
    """`names` are the program's inputs; the parameters follow them, where the model has any, then weights in an adjoint."""

    program: Program
    names: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    mode: Mode = ""


@dataclass(frozen=True, eq=False)
class Small:
    function: ca.Function
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Scatter:
    rows: tuple[int, ...]
    count: int
    width: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Gather:
    rows: tuple[int, ...]
    count: int
    width: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Total:
    size: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class MatrixProduct:
    """sign (A B + C D + ...) of the inputs A, B, C, D, ..."""

    sign: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Inverse:
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


Operation = SweepCall | Small | Scatter | Gather | Total | MatrixProduct | Inverse


@dataclass(frozen=True, eq=False)
class Composition:
    """Buffers that go in and come out, the sizes of all, and the operations in order."""

    tree: Tree
    inputs: tuple[str, ...]
    results: tuple[str, ...]
    sizes: dict[str, int]
    operations: tuple[Operation, ...]
    shapes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """of a graph's results, by their names in it"""

    def change_size(self, buffer: str) -> int:
        return self.tree.model.nv if buffer == "q" else self.sizes[buffer]

    def source(self) -> KernelSource:
        made = self.needed()
        results, copies = _distinct(self)
        steps = [step for x in made for step in _steps(self.tree, x)]
        inside = {name for x in made for name in x.outputs} - set(results)
        sizes = self.sizes | {new: self.sizes[old] for new, old in zip(results, self.results, strict=True)}
        return Plan(
            {name: sizes[name] for name in self.inputs},
            {name: sizes[name] for name in results},
            {name: sizes[name] for name in sorted(inside)},
            [*steps, *copies],
        )

    def needed(self) -> list[Operation]:
        """The operations that some result depends on."""
        wanted, found = set(self.results), []
        for x in reversed(self.operations):
            if wanted & set(x.outputs):
                found.append(x)
                wanted |= set(x.inputs)
        return found[::-1]


def _distinct(c: Composition) -> tuple[list[str], list[Step]]:
    """Names of results that are neither inputs nor other results, and the copies that this takes."""
    names: list[str] = []
    copies: list[Step] = []
    for name in c.results:
        if name in c.inputs or name in names:
            copies.append(Copy(name, f"{name} as result {len(names)}"))
            name = f"{name} as result {len(names)}"
        names.append(name)
    return names, copies


def _steps(tree: Tree, x: Operation) -> list[Step]:
    """An operation as steps of a plan."""
    if isinstance(x, Scatter):
        rows = zip(x.inputs, x.rows, strict=True)
        return [
            Copy(None, x.outputs[0]),
            *(Copy(row, Offset(x.outputs[0], x.width * k), x.width) for row, k in rows),
        ]
    if isinstance(x, Gather):
        rows = zip(x.outputs, x.rows, strict=True)
        return [Copy(Offset(x.inputs[0], x.width * k), row, x.width) for row, k in rows]
    return [Call(_source(tree, x), x.inputs, x.outputs)]


def _source(tree: Tree, x: SweepCall | Small | Total | MatrixProduct | Inverse) -> KernelSource:
    if isinstance(x, SweepCall):
        if x.program is sweeps.FORWARD_DYNAMICS and not x.mode and not tree.model.parameters:
            return kernels.program_source(tree, x.program, x.names)  # code for each body is a third faster
        return RolledSource(x.program, tree, x.names, x.mode)
    if isinstance(x, Small):
        return FunctionSource(x.function)
    if isinstance(x, Total):
        return SumSource((1,) * len(x.inputs), x.size)
    if isinstance(x, MatrixProduct):
        return ProductSource(tree.model.nv, len(x.inputs) // 2, x.sign)
    return InverseSource(tree.model.nv)


def of_program(model: Model, algorithm: Algorithm) -> Composition:
    program, names = algorithm.sweeps
    inputs = kernels.arguments(model, model.compute.tree, program, names)
    results = kernels.results(model, model.compute.tree, program)
    sizes = {a.name: a.size for a in inputs} | {f"result {r.name}": r.size for r in results}
    given, found = tuple(a.name for a in inputs), tuple(f"result {r.name}" for r in results)
    return Composition(model.compute.tree, given, found, sizes, (SweepCall(program, names, given, found),))


def of_graph(model: Model, algorithm: Algorithm, options: Options) -> Composition | None:
    """What a graph is composed of; None where it is not made of sweeps that have adjoints."""
    inputs, names = graph_inputs(model, algorithm, options)
    symbols = {a.name: ca.SX.sym("x", *a.shape) for a in inputs}
    keys = [*symbols]
    forces = keys[len(names) : len(names) + len(options.wrenches)]
    p = symbols.get("parameters", ca.SX(0, 1))
    s = _Watching(
        model.compute.tree,
        options,
        {key: symbols[key] for key in names},
        dict(zip(options.wrenches, (symbols[key] for key in forces), strict=True)),
        p,
        buffers=symbols,
    )
    try:
        found = algorithm.expressions(s)
    except _NotComposed:
        return None
    found = {key: ca.densify(x) for key, x in found.items()}
    known = {key: s.known(x) for key, x in found.items()}
    rest = {f"result {key}": x for key, x in found.items() if not known[key]}
    used = {h.element_hash() for x in rest.values() for h in ca.symvar(x)}
    given = {key: x for key, x in s.buffers.items() if used & {h.element_hash() for h in ca.symvar(x)}}
    if not {"q", "q0", "q1"}.isdisjoint(given):  # their directions are tangent
        return None
    sizes = {key: x.numel() for key, x in (s.buffers | rest).items()}
    operations = list(s.operations)
    if rest:
        last = ca.Function("last", [*given.values()], [*rest.values()])
        operations.append(Small(last, tuple(given), tuple(rest)))
    shapes = {key: x.shape for key, x in found.items()}
    outputs = tuple(known[key] or f"result {key}" for key in found)
    return Composition(model.compute.tree, tuple(keys), outputs, sizes, tuple(operations), shapes)


def kernel(model: Model, algorithm: Algorithm, options: Options, lowering: kernels.Lowering) -> Kernel:
    """Of a graph: code for each body, or loops over them where it is composed of sweeps."""
    name, tree = algorithm.name, model.compute.tree
    c = of_graph(model, algorithm, options) if kernels.is_rolled(tree, None, lowering) else None
    if c is None:
        if lowering == "rolled":
            raise UnsupportedError(f"compile: {name} is code for each body, which cannot be rolled")
        return kernels.graph_kernel(model, name, options, name)
    places = [model.compute.carrier(frame) for frame in options.wrenches]
    key = f"{model.fingerprint}:{name}:{options!r}:{places!r}:rolled"
    inputs, _ = graph_inputs(model, algorithm, options)
    return Kernel(name, inputs, graph_results(algorithm, c.shapes), key=key, build=c.source)


class _NotComposed(Exception):
    pass


@dataclass(frozen=True)
class _Watching(GraphInputs):
    """GraphInputs of a graph that note the sweeps it runs, and give symbols for their results."""

    buffers: dict[str, ca.SX] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)

    def run(self, program: Program, **more: ca.SX) -> dict[str, ca.SX]:
        if not adjoint_traces.has_adjoint(program) or not len(self.tree):
            raise _NotComposed
        if self.wrenches and "wrench" in program.given:
            more = {**more, "wrench": self.wrench_table}
        return self.sweep(program, *self.named(program, {**self.given, **more}))

    def named(self, program: Program, values: Mapping[str, ca.SX]) -> tuple[tuple[str, ...], list[str]]:
        """The inputs of a program that are given, and their buffers."""
        found = {key: self.label_of(values[key]) for key in program.given if key in values}
        found = {key: label for key, label in found.items() if label}
        return tuple(found), list(found.values())

    def sweep(
        self, program: Program, names: tuple[str, ...], given: Sequence[str], label: str = ""
    ) -> dict[str, ca.SX]:
        tail = ["parameters"] if self.tree.model.parameters else []
        label = label or f"{program.name} {len(self.operations)}"
        found = {}
        for r in kernels.results(self.tree.model, self.tree, program):
            found[r.name] = self.buffers[f"{label}: {r.name}"] = ca.SX.sym("y", *r.shape)
        outputs = tuple(f"{label}: {name}" for name in found)
        self.operations.append(SweepCall(program, names, (*given, *tail), outputs))
        return found

    def label_of(self, value: ca.SX) -> str:
        """The buffer that a symbol stands for; "" for zeros."""
        if not value.nnz():
            return ""
        label = self.known(value)
        if not label:
            raise _NotComposed
        return label

    def known(self, value: ca.SX) -> str:
        """The same, or "" where there is none."""
        for label, x in self.buffers.items():
            if x is value or (x.shape == value.shape and ca.is_equal(x, value)):
                return label
        return ""

    def inverse(self, M: ca.SX) -> ca.SX:
        label = self.label_of(M)
        self.buffers["inverse"] = ca.SX.sym("N", *M.shape)
        self.operations.append(Inverse((label,), ("inverse",)))
        return self.buffers["inverse"]

    @property
    def wrench_table(self) -> ca.SX:
        """The wrenches on the nodes, as a buffer."""
        label = "wrench on nodes"
        if label not in self.buffers:
            rows: dict[int, ca.SX] = {}
            for frame, F in self.wrenches.items():
                node, X = self.locate(frame)
                force = kernels.carried(X, F)
                rows[node] = rows[node] + force if node in rows else force
            given = [key for key in self.buffers if key.startswith("wrench on ") or key == "parameters"]
            carry = ca.Function(
                "carry", [self.buffers[key] for key in given], [ca.densify(x) for x in rows.values()]
            )
            parts = tuple(f"wrench on node {node}" for node in rows)
            self.operations.append(Small(carry, tuple(given), parts))
            for part in parts:
                self.buffers[part] = ca.SX.sym("f", 6)
            self.buffers[label] = ca.SX.sym("F", len(self.tree), 6)
            self.operations.append(Scatter(tuple(rows), len(self.tree), 6, parts, (label,)))
        return self.buffers[label]

    @property
    def moved(self) -> Any:
        return _Moved(self), _Moving(self, -1)

    @property
    def at(self) -> Any:
        node, X_BC = self.locate(self.options.frame)
        if node < 0:
            raise _NotComposed
        return self.moved[0][node], X_BC, node


class _Moved:
    def __init__(self, s: _Watching) -> None:
        self.s = s

    def __getitem__(self, node: int) -> _Moving:
        return _Moving(self.s, node)


class _Moving(Record):
    """Pose, velocity, acceleration and columns of one node, each read from the table that a sweep makes of them."""

    def __init__(self, s: _Watching, node: int) -> None:
        super().__init__(_s=s, _node=node)

    def __getattr__(self, name: str) -> Any:
        s, node = self.__dict__["_s"], self.__dict__["_node"]
        if node < 0 or name not in _TABLES:
            raise _NotComposed
        program, make = _TABLES[name]
        table = f"table: {name}"
        if table not in s.buffers:
            s.sweep(program, *s.named(program, s.given), "table")
        if name == "columns":
            return s.buffers[table][s.tree.v_slices[node], :].T
        row = f"{name} of node {node}"
        if row not in s.buffers:
            n, width = len(s.tree), kernels.WIDTHS[name]
            s.buffers[row] = ca.SX.sym("row", width)
            s.operations.append(Gather((node,), n, width, (table,), (row,)))
        return make(s.buffers[row])


def _pose(row: ca.SX) -> Pose:
    return Pose(ca.reshape(row[:9], 3, 3).T, row[9:])


_TABLES: dict[str, tuple[Program, Any]] = {
    "X_W": (sweeps.POSES, _pose),
    "V": (sweeps.VELOCITIES, Motion.from_vector),
    "A": (sweeps.ACCELERATIONS, Motion.from_vector),
    "columns": (replace(sweeps.SUBSPACES, name="columns", result={"columns": "v6"}), None),
}


def tangent(c: Composition) -> Composition:
    """Results and their changes, for the inputs and their changes."""
    sizes = dict(c.sizes)
    operations: list[Operation] = []
    for x in c.needed():
        inputs, outputs = (*x.inputs, *_changes(x.inputs)), (*x.outputs, *_changes(x.outputs))
        if isinstance(x, SweepCall):
            operations.append(_tangent_sweep(c.tree, x, inputs, outputs))
        elif isinstance(x, Small):
            operations.append(Small(_tangent_of(x.function), inputs, outputs))
        elif isinstance(x, Total):
            operations += [x, replace(x, inputs=_changes(x.inputs), outputs=_changes(x.outputs))]
        elif isinstance(x, MatrixProduct):
            pairs = zip(x.inputs[::2], x.inputs[1::2], strict=True)
            terms = [y for A, B in pairs for y in (f"d {A}", B, A, f"d {B}")]
            operations += [x, MatrixProduct(x.sign, tuple(terms), _changes(x.outputs))]
        elif isinstance(x, Inverse):
            (M,), (N,), half = x.inputs, x.outputs, f"half of d {x.outputs[0]}"
            sizes[half] = c.sizes[N]
            operations += [
                x,
                MatrixProduct(1, (f"d {M}", N), (half,)),
                MatrixProduct(-1, (N, half), (f"d {N}",)),
            ]
        else:
            again = type(x)(x.rows, x.count, x.width, _changes(x.inputs), _changes(x.outputs))
            operations += [x, again]
    for buffer in c.sizes:
        sizes[f"d {buffer}"] = c.change_size(buffer)
    return Composition(
        c.tree,
        (*c.inputs, *_changes(c.inputs)),
        (*c.results, *_changes(c.results)),
        sizes,
        tuple(operations),
    )


def _tangent_sweep(tree: Tree, x: SweepCall, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> SweepCall:
    closed = products.tangent(x.program, x.names, parameters=bool(tree.model.parameters))
    if closed and not x.mode and not tree.has_modes:
        return SweepCall(*closed, inputs, outputs)
    return SweepCall(x.program, x.names, inputs, outputs, "jvp of vjp" if x.mode == "vjp" else "jvp")


def adjoint(c: Composition, held: Sequence[str] = ()) -> Composition:
    """The gradients of the weighted results with respect to the inputs, but for those that are `held`."""
    return _Adjoint(c, held).run()


class _Adjoint:
    def __init__(self, c: Composition, held: Sequence[str]) -> None:
        self.c, self.held, self.sizes = c, held, dict(c.sizes)
        self.operations: list[Operation] = list(c.needed())
        self.bars: dict[str, list[str]] = {}
        """for each buffer, what was given back to it so far"""

    def run(self) -> Composition:
        weights = []
        for k, name in enumerate(self.c.results):
            weights.append(self.new(f"weight {k}", self.c.sizes[name]))
            self.bars.setdefault(name, []).append(weights[-1])
        for x in reversed(self.c.needed()):
            if any(name in self.bars for name in x.outputs):
                self.reverse(x)
        wanted = [name for name in self.c.inputs if name not in self.held]
        results = tuple(self.bar(name) for name in wanted)
        return Composition(
            self.c.tree, (*self.c.inputs, *weights), results, self.sizes, tuple(self.operations)
        )

    def new(self, name: str, size: int) -> str:
        while name in self.sizes:
            name += "'"
        self.sizes[name] = size
        return name

    def bar(self, buffer: str) -> str:
        """The buffer of all that was given back to one."""
        parts, size = self.bars.get(buffer, []), self.c.change_size(buffer)
        if len(parts) == 1:
            return parts[0]
        name = self.new(f"bar {buffer}", size)
        self.operations.append(Total(size, tuple(parts), (name,)))
        self.bars[buffer] = [name]
        return name

    def give(self, buffers: Sequence[str]) -> tuple[str, ...]:
        """New buffers for what goes back to some."""
        found = []
        for buffer in buffers:
            found.append(self.new(f"bar {buffer}", self.c.change_size(buffer)))
            if buffer not in self.held:
                self.bars.setdefault(buffer, []).append(found[-1])
        return tuple(found)

    def reverse(self, x: Operation) -> None:
        weights = tuple(self.bar(name) for name in x.outputs)
        if isinstance(x, Gather):
            self.operations.append(Scatter(x.rows, x.count, x.width, weights, self.give(x.inputs)))
        elif isinstance(x, Scatter):
            self.operations.append(Gather(x.rows, x.count, x.width, weights, self.give(x.inputs)))
        elif isinstance(x, Small):
            kept = [k for k, name in enumerate(x.inputs) if name not in self.held]
            outputs = self.give([x.inputs[k] for k in kept])
            self.operations.append(Small(_adjoint_of(x.function, kept), (*x.inputs, *weights), outputs))
        elif isinstance(x, Inverse):  # M^-1 is symmetric
            (back,) = self.give(x.inputs)
            half = self.new(f"half of {back}", self.sizes[back])
            self.operations += [
                MatrixProduct(1, (weights[0], x.outputs[0]), (half,)),
                MatrixProduct(-1, (x.outputs[0], half), (back,)),
            ]
        elif isinstance(x, Total | MatrixProduct):  # only in derivatives, of which there are tangents
            raise AssertionError(f"{x} has no adjoint")
        else:
            self.reverse_sweep(x, weights)

    def reverse_sweep(self, x: SweepCall, weights: tuple[str, ...]) -> None:
        tail = x.inputs[len(x.names) :]
        closed = products.adjoint(x.program, x.names, parameters=any(name not in self.held for name in tail))
        if closed and not self.c.tree.has_modes:
            own = x.inputs[: len(x.names)]
            self.operations.append(SweepCall(*closed, (*own, *weights, *tail), self.give(own)))
        else:
            given = [name for name in x.inputs if name not in self.held]
            self.operations.append(
                SweepCall(x.program, x.names, (*x.inputs, *weights), self.give(given), "vjp")
            )


def _changes(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"d {name}" for name in names)


def _symbols(f: ca.Function) -> tuple[list[ca.SX], list[ca.SX]]:
    x = [ca.SX.sym("x", *f.size_in(k)) for k in range(f.n_in())]
    found = f(*x)
    return x, [ca.densify(y) for y in (found if isinstance(found, tuple) else (found,))]


def _tangent_of(f: ca.Function) -> ca.Function:
    x, y = _symbols(f)
    d = [ca.SX.sym("d", *each.shape) for each in x]
    along = ca.jtimes(products.stacked(y), products.stacked(x), products.stacked(d))
    return ca.Function("tangent", [*x, *d], [*y, *_like(along, y)])


def _adjoint_of(f: ca.Function, kept: Sequence[int]) -> ca.Function:
    """The gradient with respect to some of its inputs."""
    x, y = _symbols(f)
    w = [ca.SX.sym("w", *each.shape) for each in y]
    wanted = [x[k] for k in kept]
    back = ca.jtimes(products.stacked(y), products.stacked(wanted), products.stacked(w), True)
    return ca.Function("adjoint", [*x, *w], _like(back, wanted))


def _like(column: ca.SX, parts: Sequence[ca.SX]) -> list[ca.SX]:
    found, start = [], 0
    for part in parts:
        found.append(ca.densify(ca.reshape(column[start : start + part.numel()], *part.shape)))
        start += part.numel()
    return found
