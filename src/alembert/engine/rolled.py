"""Programs over trees of any size: loops over the nodes, with a function for each loop and kind of node.

What depends on the number of nodes is data: a table of offsets for each loop, and the nodes' constants. So
the compile time does not grow with the tree, and the code stays in the instruction cache.

Memory is organised after the areas of `alembert.sweeps.tracing`. A node's own and shared records last for
the whole call. What is passed to children and added to parents lives only between two visits, in *slots*
that are given out and taken back like registers: a serial chain uses two of them, which never leave the
cache. A visit never writes the slot that it reads.

Sines and cosines of coordinates are computed for all nodes at once, before the loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from alembert.engine import codegen, program
from alembert.engine.codegen import Code
from alembert.engine.program import Program as Instructions
from alembert.engine.target import Target
from alembert.engine.vectormath import vector_type
from alembert.sweeps.kinds import kinds
from alembert.sweeps.program import Program, world
from alembert.sweeps.tracing import (
    ADDED,
    COMPUTED,
    GATHERED,
    INNER,
    OWN,
    PAIRED,
    PASSED,
    READ,
    SHARED,
    Loop,
    PairsTrace,
    Visit,
    elements,
    nonzeros,
    trace,
)
from alembert.sweeps.tree import Tree

SINES, COSINES = "sines", "cosines"
_ALIGNMENT = 8  # vectors: of regions that are worked on by full registers whatever the number of lanes


class RolledSource:
    """A program over a tree, as loops; it takes the inputs `given`, then the parameters if there are any."""

    def __init__(self, program: Program, tree: Tree, given: Sequence[str]) -> None:
        model = tree.model
        parameters = tree.parameter_symbols
        self.program, self.tree, self.given = program, tree, tuple(given)
        self.parameters = parameters
        self.kinds = kinds(tree, parameters)
        self.trace = trace(program, self.kinds, world(tree, parameters, gravity=program.gravity), given)
        self.memory = _Memory(self)

        sizes = {"q": model.nq, "v": model.nv, "node6": 6 * len(tree), "v6": 6 * model.nv}
        self.input_sizes = [sizes[program.given[name]] for name in given]
        if model.parameters:
            self.input_sizes.append(len(model.parameters))
        self.widths = {
            name: len(visit.outputs[name])
            for loop in self.trace.loops
            for visit in loop.visits
            for name in program.result
            if name in visit.outputs
        }
        self.results = {
            name: sizes.get(extent) or len(tree) * self.widths[name]
            for name, extent in program.result.items()
        }
        self.results |= {name: len(visit.outputs[name]) for name, (_, visit) in self.trace.totals.items()}
        self.results |= {name: model.nv**2 for name in (program.pairs.names if program.pairs else ())}
        self.output_sizes = list(self.results.values())

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        return _Emitter(self, name, lanes, target.compact() if lanes == 1 else target).emit()


class _Memory:
    """Where everything is: offsets in vectors from the start of the workspace, one for each node."""

    def __init__(self, source: RolledSource) -> None:
        tree, trace_ = source.tree, source.trace
        n = len(tree)
        self.kind = np.zeros(n, dtype=np.int64)
        for k, kind in enumerate(source.kinds):
            self.kind[kind.nodes] = k
        self.parents = np.array(tree.parents, dtype=np.int64)
        self.v = np.array([s.start for s in tree.v_slices], dtype=np.int64)
        self.q = np.array([s.start for s in tree.q_slices], dtype=np.int64)
        self.node = np.arange(n, dtype=np.int64)
        self.children = np.bincount(self.parents + 1, minlength=n + 1)

        self.constants, self.read = _constant_rows(source)
        # what the prologue fills: constants that follow from parameters, the world's parts, zeros
        self.computed, end = self._packed([len(kind.computed) for kind in source.kinds], 0)
        prologue: list[ca.SX] = [ca.SX(0)] * end
        for kind in source.kinds:
            for k, expression in zip(kind.nodes, kind.expressions, strict=False):
                start = int(self.computed[k])
                prologue[start : start + expression.numel()] = elements(expression)
        world_passes = []
        for loop in trace_.loops:
            world_passes.append(len(prologue))
            prologue += loop.world
        world_shared = len(prologue)
        prologue += trace_.shared
        zeros = len(prologue)
        prologue += [ca.SX(0)] * max((loop.gathered for loop in trace_.loops), default=0)
        self.prologue = prologue

        shared, own = len(trace_.shared), np.array(trace_.own_sizes)
        paired = np.zeros_like(own)
        if trace_.pairs:
            self.form = np.array(trace_.pairs.form)[self.kind]
            paired = np.array(trace_.pairs.sizes)[trace_.pairs.form]
        self.record, end = self._packed(shared + own + paired, len(prologue))
        self.own = self.record + shared
        self.paired = self.own + own[self.kind]
        self.parent_record = np.where(self.parents < 0, world_shared, self.record[self.parents])
        self.loops: list[dict[str, np.ndarray]] = []
        self.world_added: list[int] = []
        for loop, world_pass in zip(trace_.loops, world_passes, strict=True):
            columns: dict[str, np.ndarray] = {}
            if loop.world:
                end = self._pass_outward(columns, len(loop.world), world_pass, end)
            self.world_added.append(zeros)
            if loop.gathered:
                end = self._add_inward(columns, loop.gathered, zeros, end)
            self.loops.append(columns)
        self.end = _round_up(end)

    def _packed(self, sizes: Sequence[int] | np.ndarray, start: int) -> tuple[np.ndarray, int]:
        """Offsets of consecutive pieces whose size depends on the kind, and their end."""
        lengths = np.array(sizes, dtype=np.int64)[self.kind]
        ends = start + np.cumsum(lengths)
        return ends - lengths, int(ends[-1])

    def _pass_outward(self, columns: dict[str, np.ndarray], size: int, top: int, start: int) -> int:
        slots = _Slots(start, size)
        waiting = self.children[1:].tolist()  # children that have not been visited
        own = [0] * len(waiting)
        received = [0] * len(waiting)
        for k, parent in enumerate(self.parents.tolist()):
            own[k] = slots.take()
            received[k] = own[parent] if parent >= 0 else top
            if not waiting[k]:
                slots.free.append(own[k])
            if parent >= 0:
                waiting[parent] -= 1
                if not waiting[parent]:
                    slots.free.append(own[parent])
        columns["passed in"], columns["passed out"] = np.array(received), np.array(own)
        return slots.end

    def _add_inward(self, columns: dict[str, np.ndarray], size: int, zeros: int, start: int) -> int:
        slots = _Slots(start, size)
        n = len(self.parents)
        gathered = [zeros] * (n + 1)  # the world last
        before, after = [0] * n, [0] * n
        parents = self.parents.tolist()
        for k in reversed(range(n)):
            parent = parents[k]
            before[k] = gathered[parent]
            after[k] = gathered[parent] = slots.take()
            slots.free.extend(slot for slot in (before[k], gathered[k]) if slot != zeros)
        columns["gathered"], columns["added in"] = np.array(gathered[:n]), np.array(before)
        columns["added out"] = np.array(after)
        self.world_added[-1] = gathered[n]
        return slots.end


class _Slots:
    def __init__(self, start: int, size: int) -> None:
        self.end, self._size = start, size
        self.free: list[int] = []

    def take(self) -> int:
        if self.free:
            return self.free.pop()
        self.end += self._size
        return self.end - self._size


@dataclass(frozen=True)
class _Pointer:
    """An argument of a function: base pointer + column of the table + constant, in vectors (or doubles)."""

    base: str
    column: str
    shift: int = 0
    double: bool = False

    def moved(self, by: int) -> _Pointer:
        return _Pointer(self.base, self.column, self.shift + by, self.double)


@dataclass
class _Step:
    """A visit as instructions, with what its arguments and results are."""

    instructions: Instructions
    inputs: list[str]
    outputs: list[str]
    shifts: list[int]
    places: dict[int, list[int]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[object, ...]:
        p = self.instructions
        uniform = tuple(name == READ for name in self.inputs)
        placed = tuple((k, *places) for k, places in self.places.items())
        values: list[Sequence[float]] = [p.op, p.a, p.b, p.c, p.constants, *p.outputs]
        return (*(tuple(x) for x in values), uniform, placed)


class _Emitter:
    def __init__(self, source: RolledSource, name: str, lanes: int, target: Target) -> None:
        self.source, self.name, self.lanes, self.target = source, name, lanes, target
        self.memory = source.memory
        self.T = vector_type(lanes)
        self.text: list[str] = []
        self.helpers: set[str] = set()
        self.functions: dict[tuple[object, ...], tuple[str, Code]] = {}
        self.work = 0
        inputs = [*source.given, *(["parameters"] if source.tree.model.parameters else [])]
        self.arguments = {name: f"%i{k}" for k, name in enumerate(inputs)}
        self.outputs = {name: f"%o{k}" for k, name in enumerate(source.results)}
        pointers = (*self.arguments.values(), *self.outputs.values(), "%w")
        self.parameters = ", ".join(f"ptr noalias {p}" for p in pointers)
        self.passed = ", ".join(f"ptr {p}" for p in pointers)
        self.calls: list[str] = []
        """the body of the main function"""

    def emit(self) -> Code:
        trace_ = self.source.trace
        steps = [[self.step(visit) for visit in loop.visits] for loop in trace_.loops]
        own = [self.step(visit) for visit in trace_.pairs.own] if trace_.pairs else []
        self.place_angles([*steps, own])
        self.text.append(_data(f"{self.name}_constants", self.memory.constants))
        self.emit_prologue()
        self.emit_angles()
        for i, (loop, visits) in enumerate(zip(trace_.loops, steps, strict=True)):
            self.emit_loop(i, loop, visits)
        for name, (i, visit) in trace_.totals.items():
            self.emit_total(name, i, visit)
        if trace_.pairs:
            self.emit_own_blocks(own)
            self.emit_pairs(trace_.pairs)
        body = "\n  ".join([*self.calls, "ret void"])
        self.text.append(
            f"define internal void @{self.name}({self.parameters}) noinline #0 {{\n  {body}\n}}\n"
        )
        scratch = max((code.workspace for _, code in self.functions.values()), default=0)
        return Code(
            "".join(self.text), self.scratch + scratch, self.work, frozenset(self.helpers), self.target
        )

    # -- steps -------------------------------------------------------------------------------------------

    def step(self, visit: Visit) -> _Step:
        function = ca.Function(
            "visit",
            [ca.vertcat(*symbols) for symbols in visit.inputs.values()],
            [ca.densify(ca.vertcat(*values)) for values in visit.outputs.values()],
        )
        instructions = program.from_casadi(function, fuse=self.target.fused)
        inputs = list(visit.inputs)
        lowest = [0] * len(inputs)  # elements count from the first that is used: more code is alike
        for k in range(len(inputs)):
            elements = [b for op, a, b in _inputs(instructions) if a == k]
            lowest[k] = min(elements, default=0)
        for i, op in enumerate(instructions.op):
            if op == ca.OP_INPUT:
                instructions.b[i] -= lowest[instructions.a[i]]
        return _Step(instructions, inputs, list(visit.outputs), lowest)

    def place_angles(self, steps: list[list[_Step]]) -> None:
        """Turn sines and cosines of coordinates into inputs, and lay out the angles."""
        source = self.source
        per_kind: list[dict[int, int]] = [{} for _ in source.kinds]
        for visits in steps:
            for step, angles in zip(visits, per_kind, strict=False):
                _hoist(step, angles)
        counts = np.array([len(angles) for angles in per_kind], dtype=np.int64)[self.memory.kind]
        self.angle = np.cumsum(counts) - counts
        self.angles = int(counts.sum())
        indices = np.zeros(self.angles, dtype=np.int64)
        for kind, angles in zip(source.kinds, per_kind, strict=True):
            for element, position in angles.items():
                indices[self.angle[kind.nodes] + position] = self.memory.q[kind.nodes] + element
        self.angle_indices = indices
        size = _round_up(self.angles)
        start = self.memory.end
        self.angle_rows = (start, start + size, start + 2 * size)
        self.scratch = start + 3 * size

    def function(self, step: _Step) -> str:
        """The name of the function of a step; steps that are alike share one."""
        key = step.key
        if key not in self.functions:
            name = f"{self.name}_step{len(self.functions)}"
            uniform = {k for k, label in enumerate(step.inputs) if label == READ}
            code = codegen.emit_function(
                name, step.instructions, self.lanes, self.target, uniform=uniform, places=step.places
            )
            self.text.append(code.text)
            self.helpers |= code.helpers
            self.functions[key] = name, code
        return self.functions[key][0]

    def pointers(self, step: _Step, outputs: Mapping[str, _Pointer]) -> list[_Pointer]:
        inputs = zip(step.inputs, step.shifts, strict=True)
        found = [self.input_pointer(label).moved(shift) for label, shift in inputs]
        return [*found, *(outputs[label] for label in step.outputs)]

    def input_pointer(self, label: str) -> _Pointer:
        if label in self.arguments:
            return _Pointer(self.arguments[label], self.source.program.given[label])
        if label == READ:
            return _Pointer(f"@{self.name}_constants", READ, double=True)
        if label in (SINES, COSINES):
            return _Pointer("%w", "angle", self.angle_rows[1 if label == SINES else 2])
        return _Pointer("%w", _INPUT_COLUMN[label])

    def columns(self, loop: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        m = self.memory
        widths = {name: size * m.node for name, size in self.source.widths.items()}
        known = {"q": m.q, "v": m.v, "v6": 6 * m.v, "node6": 6 * m.node, READ: m.read, "angle": self.angle}
        nv = self.source.tree.model.nv
        known |= {"computed": m.computed, "own": m.own, "record": m.record, "paired": m.paired}
        known |= {"parent record": m.parent_record, "row": nv * m.v, "diagonal": nv * m.v + m.v}
        return known | widths | dict(loop)

    # -- parts of the main function ----------------------------------------------------------------------

    def emit_prologue(self) -> None:
        values = self.memory.prologue
        if not values:
            return
        has = "parameters" in self.arguments
        visit = Visit({"parameters": nonzeros(self.source.parameters)} if has else {}, {"start": values})
        step = self.step(visit)
        function = self.function(step)
        first = ""
        if has:
            start = f"getelementptr {self.T}, ptr {self.arguments['parameters']}, i64 {step.shifts[0]}"
            self.calls.append(f"%parameters = {start}")
            first = "ptr %parameters, "
        self.calls.append(f"%scratch0 = getelementptr {self.T}, ptr %w, i64 {self.scratch}")
        self.calls.append(f"call void @{function}({first}ptr %w, ptr %scratch0)")

    def emit_angles(self) -> None:
        if not self.angles:
            return
        x, s, c = (f"%angles{k}" for k in range(3))
        for name, row in zip((x, s, c), self.angle_rows, strict=True):
            self.calls.append(f"{name} = getelementptr {self.T}, ptr %w, i64 {row}")
        self.text.append(_data(f"{self.name}_angle_indices", self.angle_indices.astype(np.int32)))
        size = _round_up(self.angles)
        T, align = self.T, 8 * self.lanes
        padding = []
        for k in range(self.angles, size):
            padding.append(f"%z{k} = getelementptr {T}, ptr %x, i64 {k}")
            padding.append(f"store {T} zeroinitializer, ptr %z{k}, align {align}")
        if self.lanes == 1:
            padding = [line.replace("zeroinitializer", "0.0") for line in padding]
        rest = "\n  ".join(padding)
        self.text.append(f"""\
define internal void @{self.name}_angles(ptr noalias %q, ptr noalias %x) noinline #0 {{
entry:
  {rest}
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%next, %loop]
  %pi = getelementptr i32, ptr @{self.name}_angle_indices, i64 %k
  %i = load i32, ptr %pi
  %i64 = sext i32 %i to i64
  %pq = getelementptr {T}, ptr %q, i64 %i64
  %v = load {T}, ptr %pq, align {align}
  %px = getelementptr {T}, ptr %x, i64 %k
  store {T} %v, ptr %px, align {align}
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, {self.angles}
  br i1 %more, label %loop, label %done
done:
  ret void
}}
""")
        self.helpers.add("sincos")
        self.calls.append(f"call void @{self.name}_angles(ptr {self.arguments['q']}, ptr {x})")
        self.calls.append(f"call void @alembert_sincos(ptr {x}, ptr {s}, ptr {c}, i64 {size * self.lanes})")
        self.work += 10 * self.angles

    def emit_loop(self, i: int, loop: Loop, steps: Sequence[_Step]) -> None:
        table = _Table(f"{self.name}_table{i}", self.columns(self.memory.loops[i]))
        body = _Body(self, table)
        body.begin()
        for kind, step in body.kinds(steps):
            if not step.outputs:
                continue
            outputs = {
                OWN: _Pointer("%w", "own", loop.own_start[kind]),
                SHARED: _Pointer("%w", "record", loop.shared_start),
                PASSED: _Pointer("%w", "passed out"),
                ADDED: _Pointer("%w", "added out"),
            }
            if loop.paired_start:
                outputs[PAIRED] = _Pointer("%w", "paired", loop.paired_start[kind])
            for name, extent in self.source.program.result.items():
                outputs[name] = _Pointer(self.outputs[name], name if extent == "node" else extent)
            body.call(step, [body.address(pointer, "%row") for pointer in self.pointers(step, outputs)])
        body.end()
        order = self.memory.node if loop.direction == "outward" else self.memory.node[::-1]
        self.finish(f"{self.name}_loop{i}", body, table, order)

    def emit_total(self, name: str, i: int, visit: Visit) -> None:
        step = self.step(visit)
        function = self.function(step)
        where = self.memory.world_added[i] + (step.shifts[0] if step.inputs else 0)
        self.calls.append(f"%total_{name} = getelementptr {self.T}, ptr %w, i64 {where}")
        self.calls.append(f"%scratch_{name} = getelementptr {self.T}, ptr %w, i64 {self.scratch}")
        arguments = [f"%total_{name}"] if step.inputs else []
        pointers = (*arguments, self.outputs[name], f"%scratch_{name}")
        self.calls.append(f"call void @{function}({', '.join(f'ptr {p}' for p in pointers)})")

    def emit_own_blocks(self, steps: list[_Step]) -> None:
        """The blocks of every node with itself; the others are zero until they are filled."""
        names, nv = self.pair_names, self.source.tree.model.nv
        parents = self.memory.parents
        if not np.array_equal(parents, np.arange(-1, len(parents) - 1)):
            self.text.append("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n")
            for name in names:
                arguments = f"ptr {self.outputs[name]}, i8 0, i64 {8 * self.lanes * nv * nv}, i1 false"
                self.calls.append(f"call void @llvm.memset.p0.i64({arguments})")
        table = _Table(f"{self.name}_own_table", self.columns({}))
        body = _Body(self, table)
        body.begin()
        outputs = {f"{name} 0": _Pointer(self.outputs[name], "diagonal") for name in names}
        for kind, step in body.kinds(steps):
            size = self.source.kinds[kind].structure.joint.nv
            step.places = dict.fromkeys(range(len(step.outputs)), _block(size, size, nv))
            body.call(step, [body.address(pointer, "%row") for pointer in self.pointers(step, outputs)])
        body.end()
        self.finish(f"{self.name}_own", body, table, self.memory.node)

    def emit_pairs(self, pairs: PairsTrace) -> None:
        """For every node, a walk through its ancestors."""
        nv = self.source.tree.model.nv
        widths = {
            form: kind.structure.joint.nv for form, kind in zip(pairs.form, self.source.kinds, strict=True)
        }
        table = _Table(f"{self.name}_pairs_table", self.columns({"parent": self.memory.parents}))
        body = _Body(self, table)
        body.begin()
        forms = range(len(pairs.sizes))
        for outer in body.cases(len(forms)):
            v, row = body.load("%row", "v"), body.load("%row", "row")
            record = body.address(_Pointer("%w", "paired"), "%row")
            first = body.load("%row", "parent")
            climb = f"climb{outer}"
            body.climb(climb, first)
            for inner in body.cases(len(forms), climb):
                step = self.step(pairs.visits[outer, inner])
                at = f"%{climb}_row"
                below = body.line(f"add i64 {row}, {body.load(at, 'v')}")
                above = body.line(f"add i64 {body.load(at, 'row')}, {v}")
                arguments = []
                for label, shift in zip(step.inputs, step.shifts, strict=True):
                    pointer = _Pointer("%w", "paired", shift)
                    arguments.append(
                        body.address(pointer, at)
                        if label.startswith(INNER)
                        else body.shifted(record, pointer, shift)
                    )
                for k, label in enumerate(step.outputs):
                    name, side = label.rsplit(" ", 1)
                    arguments.append(body.at(self.outputs[name], below if side == "0" else above))
                    rows, columns = widths[outer], widths[inner]
                    step.places[k] = _block(*((rows, columns) if side == "0" else (columns, rows)), nv)
                body.call(step, arguments)
            body.climbed(climb)
        body.end()
        self.finish(f"{self.name}_pairs", body, table, self.memory.node, self.memory.form)

    @property
    def pair_names(self) -> tuple[str, ...]:
        pairs = self.source.program.pairs
        return pairs.names if pairs else ()

    def finish(
        self, name: str, body: _Body, table: _Table, order: np.ndarray, cases: np.ndarray | None = None
    ) -> None:
        kind = self.memory.kind if cases is None else cases
        self.text.append(table.data(order, kind))
        self.text.append(
            f"define internal void @{name}({self.parameters}) noinline #0 {{\n{body.finished(len(order))}}}\n"
        )
        self.calls.append(f"call void @{name}({self.passed})")


_INPUT_COLUMN = {
    COMPUTED: "computed",
    OWN: "own",
    SHARED: "parent record",
    PASSED: "passed in",
    PAIRED: "paired",
    GATHERED: "gathered",
    ADDED: "added in",
}


class _Table:
    """The offsets that a loop uses, one row of integers per node; columns that are alike are kept once."""

    def __init__(self, name: str, columns: dict[str, np.ndarray]) -> None:
        self.name, self._known = name, columns
        self._columns: list[np.ndarray] = []
        self._places: dict[bytes, int] = {}

    def place(self, column: str) -> int:
        values = self._known[column]
        key = values.tobytes()
        if key not in self._places:
            self._places[key] = len(self._columns)
            self._columns.append(values)
        return self._places[key]

    @property
    def width(self) -> int:
        return len(self._columns) + 1

    def data(self, order: np.ndarray, case: np.ndarray) -> str:
        """Rows in the order of the loop; the case comes last."""
        columns = [*self._columns, case]
        return _data(self.name, np.array(columns, dtype=np.int32).T[order])


class _Body:
    """The IR of a loop over the rows of a table."""

    def __init__(self, emitter: _Emitter, table: _Table) -> None:
        self.emitter, self.table = emitter, table
        self.T = emitter.T
        self.lines: list[str] = []
        self.count = 0

    def line(self, text: str) -> str:
        name = f"%t{self.count}"
        self.count += 1
        self.lines.append(f"  {name} = {text}")
        return name

    def begin(self) -> None:
        self.lines += [
            "entry:",
            "  br label %loop",
            "loop:",
            "  %k = phi i64 [0, %entry], [%next, %tail]",
            "  %shift = mul i64 %k, WIDTH",
            f"  %row = getelementptr i32, ptr @{self.table.name}, i64 %shift",
        ]

    def kinds(self, steps: Sequence[_Step]) -> Iterator[tuple[int, _Step]]:
        return ((k, steps[k]) for k in self.cases(len(steps)))

    def cases(self, count: int, label: str = "visit") -> Iterator[int]:
        """A block of code for each case, chosen by the row."""
        row, after = ("%row", "tail") if label == "visit" else (f"%{label}_row", f"{label}_tail")
        if count > 1:
            case = self.line(f"load i32, ptr {self.line(f'getelementptr i32, ptr {row}, i64 CASE')}")
            labels = " ".join(f"i32 {k}, label %{label}_{k}" for k in range(1, count))
            self.lines.append(f"  switch i32 {case}, label %{label}_0 [{labels}]")
        else:
            self.lines.append(f"  br label %{label}_0")
        for k in range(count):
            self.lines.append(f"{label}_{k}:")
            yield k
            self.lines.append(f"  br label %{after}")

    def load(self, row: str, column: str) -> str:
        place = self.line(f"getelementptr i32, ptr {row}, i64 {self.table.place(column)}")
        return self.line(f"sext i32 {self.line(f'load i32, ptr {place}')} to i64")

    def at(self, base: str, index: str | int) -> str:
        return self.line(f"getelementptr {self.T}, ptr {base}, i64 {index}")

    def address(self, pointer: _Pointer, row: str) -> str:
        kind = "double" if pointer.double else self.T
        place = self.line(f"getelementptr {kind}, ptr {pointer.base}, i64 {self.load(row, pointer.column)}")
        return self.shifted(place, pointer, pointer.shift)

    def shifted(self, place: str, pointer: _Pointer, shift: int) -> str:
        kind = "double" if pointer.double else self.T
        return self.line(f"getelementptr {kind}, ptr {place}, i64 {shift}") if shift else place

    def call(self, step: _Step, arguments: Sequence[str]) -> None:
        function = self.emitter.function(step)
        pointers = (*arguments, self.at("%w", self.emitter.scratch))
        self.lines.append(f"  call void @{function}({', '.join(f'ptr {p}' for p in pointers)})")

    def climb(self, c: str, first: str) -> None:
        """Begin the walk from the node to the root."""
        self.lines += [
            f"  br label %{c}_start",
            f"{c}_start:",
            f"  br label %{c}_test",
            f"{c}_test:",
            f"  %{c}_j = phi i64 [{first}, %{c}_start], [%{c}_next, %{c}_tail]",
            f"  %{c}_more = icmp sge i64 %{c}_j, 0",
            f"  br i1 %{c}_more, label %{c}_body, label %{c}_end",
            f"{c}_body:",
            f"  %{c}_shift = mul i64 %{c}_j, WIDTH",
            f"  %{c}_row = getelementptr i32, ptr @{self.table.name}, i64 %{c}_shift",
        ]

    def climbed(self, c: str) -> None:
        self.lines.append(f"{c}_tail:")
        following = self.load(f"%{c}_row", "parent")
        self.lines += [f"  %{c}_next = add i64 {following}, 0", f"  br label %{c}_test", f"{c}_end:"]

    def end(self) -> None:
        self.lines += [
            "tail:",
            "  %next = add i64 %k, 1",
            "  %more = icmp ult i64 %next, COUNT",
            "  br i1 %more, label %loop, label %done",
            "done:",
            "  ret void",
        ]

    def finished(self, count: int) -> str:
        width = self.table.width
        text = "\n".join(self.lines) + "\n"
        return text.replace("WIDTH", str(width)).replace("CASE", str(width - 1)).replace("COUNT", str(count))


def _constant_rows(source: RolledSource) -> tuple[np.ndarray, np.ndarray]:
    """The constants of all nodes in one array, equal rows once, and where each node's begin."""
    offsets = np.zeros(len(source.tree), dtype=np.int64)
    parts = []
    end = 0
    for kind in source.kinds:
        width = kind.values.shape[1]
        if width:
            rows, which = np.unique(kind.values, axis=0, return_inverse=True)
            offsets[kind.nodes] = end + width * which.reshape(-1)
            parts.append(rows.ravel())
            end += rows.size
    return np.concatenate(parts) if parts else np.zeros(0), offsets


def _block(rows: int, columns: int, width: int) -> list[int]:
    """Where the entries of a block are in a matrix with rows of the given width."""
    return [i * width + j for i in range(rows) for j in range(columns)]


def _inputs(p: Instructions) -> Iterator[tuple[int, int, int]]:
    return ((op, a, b) for op, a, b in zip(p.op, p.a, p.b, strict=True) if op == ca.OP_INPUT)


def _hoist(step: _Step, angles: dict[int, int]) -> None:
    """Make sines and cosines of coordinates inputs; `angles` maps the kind's coordinates to positions."""
    if "q" not in step.inputs:
        return
    p = step.instructions
    argument = step.inputs.index("q")
    new: dict[str, int] = {}
    for i, op in enumerate(p.op):
        if op not in codegen.TRIGONOMETRIC or p.op[p.a[i]] != ca.OP_INPUT or p.a[p.a[i]] != argument:
            continue
        element = p.b[p.a[i]] + step.shifts[argument]
        label = SINES if op == ca.OP_SIN else COSINES
        if label not in new:
            new[label] = len(step.inputs)
            step.inputs.append(label)
            step.shifts.append(0)
            p.input_sizes.append(0)
        position = angles.setdefault(element, len(angles))
        p.op[i], p.a[i], p.b[i] = ca.OP_INPUT, new[label], position


def _data(name: str, values: np.ndarray) -> str:
    """IR of a constant array."""
    content = np.ascontiguousarray(values).view(np.uint8).ravel()
    if not content.size:
        content = np.zeros(8, dtype=np.uint8)
    text = _BYTES[content].tobytes().decode()
    return f'@{name} = internal constant [{content.size} x i8] c"{text}", align 64\n'


_BYTES = np.frombuffer("".join(f"\\{k:02X}" for k in range(256)).encode(), dtype=np.uint8).reshape(256, 3)


def _round_up(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
