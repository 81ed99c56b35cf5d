"""The loops of a rolled program as IR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.engine import codegen
from alembert.engine.instructions import TRIGONOMETRIC, InstructionList, from_casadi
from alembert.engine.loops import Lines, NodeLoop, OffsetTable, Pointer, constant_data
from alembert.engine.target import Code, Target, sincos_symbol
from alembert.engine.vectormath import vector_type
from alembert.lowering.rolled_memory import Pass, round_up
from alembert.sweeps.visits import (
    ADDED,
    BARS,
    COMPUTED,
    GATHERED,
    INNER,
    PAIRED,
    PAIRED_BARS,
    PASSED,
    READ,
    SHARED,
    Loop,
    PairsAdjoint,
    PairsTrace,
    Visit,
    nonzeros,
    world_area,
)

if TYPE_CHECKING:
    from alembert.lowering.rolled import RolledSource

SINES, COSINES = "sines", "cosines"


_Key = tuple[int, bool]


@dataclass
class _Step:
    """A visit as instructions, with what its arguments and results are."""

    instructions: InstructionList
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


MOST = 1000
"""steps that are kept; some ten kilobytes each"""
_READ: dict[tuple[str, bool], InstructionList] = {}
_CODES: dict[tuple[object, ...], Code] = {}


def _keep(known: dict[Any, Any], key: object, value: object) -> None:
    if len(known) >= MOST:
        known.clear()
    known[key] = value


def _instructions(function: ca.Function, *, fuse: bool) -> InstructionList:
    """Of a visit, for the caller to change; they are read once, and serve other models with nodes of the same kinds."""
    key = function.serialize(), fuse
    if key not in _READ:
        _keep(_READ, key, from_casadi(function, fuse=fuse))
    return _READ[key].copy()


class RolledEmitter:
    def __init__(self, source: RolledSource, name: str, lanes: int, target: Target) -> None:
        self.source, self.name, self.lanes, self.target = source, name, lanes, target.compiling()
        self.memory = source.memory
        self.T = vector_type(lanes)
        self.text: list[str] = []
        self.helpers: set[tuple[str, int]] = set()
        self.functions: dict[tuple[object, ...], tuple[str, Code]] = {}
        self.work = 0
        self.arguments = {name: f"%i{k}" for k, name in enumerate(source.inputs)}
        self.outputs = {name: f"%o{k}" for k, name in enumerate(source.results)}
        pointers = (*self.arguments.values(), *self.outputs.values(), "%w")
        self.parameters = pointers
        self.main = Lines(1, lanes=lanes, fused=target.fused)
        """the main function, which calls the others"""

    def emit(self) -> Code:
        trace_ = self.source.trace
        steps = [self.steps(i) for i in range(len(trace_.loops))]
        own = [self.step(visit) for visit in trace_.pairs.own] if trace_.pairs else []
        self.place_angles([*steps, {(kind, False): step for kind, step in enumerate(own)}])
        self.emit_prologue()
        self.emit_padding()
        self.emit_angles()
        for run in self.memory.runs:
            if trace_.back and trace_.back.before == run.loops[0]:
                self.emit_pairs_adjoint(trace_.back)
            self.emit_run(run, steps)
        for name, (i, visit) in trace_.totals.items():
            self.emit_total(name, i, visit)
        if trace_.ends:
            self.emit_ends(trace_.ends)
        if trace_.pairs:
            self.emit_own_blocks(own)
            self.emit_pairs(trace_.pairs)
        self.text.append(self.main.function(self.name, self.parameters, "#0"))
        scratch = max((code.workspace for _, code in self.functions.values()), default=0)
        return Code(
            "".join(self.text),
            self.scratch + scratch,
            self.work,
            frozenset(self.helpers),
            self.target,
            constants={f"{self.name}_constants": [*self.memory.constants.tolist(), 0.0]},  # never empty
        )

    # -- steps -------------------------------------------------------------------------------------------

    def steps(self, loop: int) -> dict[_Key, _Step]:
        """By kind, and whether it is for the first nodes that add to their parents: nothing is to be read there."""
        found = {}
        for kind, visit in enumerate(self.source.trace.loops[loop].visits):
            for first in np.unique(self.memory.first[loop][self.memory.kind == kind]).tolist():
                found[kind, first] = self.step(_first(visit) if first else visit)
        return found

    def step(self, visit: Visit) -> _Step:
        function = ca.Function(
            "visit",
            [ca.vertcat(*symbols) for symbols in visit.inputs.values()],
            [ca.densify(ca.vertcat(*values)) for values in visit.outputs.values()],
        )
        instructions = _instructions(function, fuse=self.target.fused)
        inputs = list(visit.inputs)
        lowest = [0] * len(inputs)  # elements count from the first that is used: more code is alike
        for k in range(len(inputs)):
            lowest[k] = min(
                (element for argument, element in _inputs(instructions) if argument == k), default=0
            )
        for i, op in enumerate(instructions.op):
            if op == ca.OP_INPUT:
                instructions.b[i] -= lowest[instructions.a[i]]
        return _Step(instructions, inputs, list(visit.outputs), lowest)

    def place_angles(self, steps: Sequence[Mapping[_Key, _Step]]) -> None:
        """Turn sines and cosines of coordinates into inputs, and lay out the angles."""
        source = self.source
        per_kind: list[dict[int, int]] = [{} for _ in source.kinds]
        for visits in steps:
            for (number, _), step in visits.items():
                _hoist(step, per_kind[number])
        counts = np.array([len(angles) for angles in per_kind], dtype=np.int64)[self.memory.kind]
        self.angle = np.cumsum(counts) - counts
        self.angles = int(counts.sum())
        indices = np.zeros(self.angles, dtype=np.int64)
        for kind, angles in zip(source.kinds, per_kind, strict=True):
            for element, position in angles.items():
                indices[self.angle[kind.nodes] + position] = self.memory.q[kind.nodes] + element
        self.angle_indices = indices
        size = round_up(self.angles)
        start = self.memory.end
        self.angle_rows = (start, start, start + size)  # the sines take the place of the angles
        self.scratch = start + 2 * size

    def code(self, name: str, step: _Step) -> Code:
        """Of a step; kept for other models with nodes of the same kinds."""
        in_place = not set(step.inputs).isdisjoint(step.outputs)
        key = name, self.lanes, self.target, in_place, step.key
        if key not in _CODES:
            uniform = {k for k, label in enumerate(step.inputs) if label == READ}
            options: dict[str, Any] = {"uniform": uniform, "places": step.places, "in_place": in_place}
            _keep(
                _CODES,
                key,
                codegen.emit_function(name, step.instructions, self.lanes, self.target, **options),
            )
        return _CODES[key]

    def function(self, step: _Step, times: int = 1) -> str:
        """The name of the function of a step, called so many times; steps that are alike share one."""
        key = step.key
        if key not in self.functions:
            name = f"{self.name}_step{len(self.functions)}"
            code = self.code(name, step)
            self.text.append(code.text)
            self.helpers |= code.helpers
            self.functions[key] = name, code
        name, code = self.functions[key]
        self.work += times * code.work
        return name

    def pointers(self, step: _Step, outputs: Mapping[str, Pointer]) -> list[Pointer]:
        inputs = zip(step.inputs, step.shifts, strict=True)
        found = [self.input_pointer(label).moved(shift) for label, shift in inputs]
        return [*found, *(outputs[label] for label in step.outputs)]

    def visit(self, body: NodeLoop, step: _Step, pointers: Sequence[Pointer], times: int) -> None:
        """Call the function of a step on the row's places."""
        self.call(body, step, [body.address(pointer, "%row") for pointer in pointers], times)

    def call(self, body: NodeLoop, step: _Step, arguments: Sequence[str], times: int) -> None:
        function = self.function(step, times)
        body.call(function, [*arguments, body.at("%w", self.scratch)])

    def input_pointer(self, label: str) -> Pointer:
        if label in self.arguments:
            extent = self.source.program.given[label]
            column = {"node": label, "matrix": "diagonal"}.get(extent, extent)
            return Pointer(self.arguments[label], column)
        if label == READ:
            return Pointer(f"@{self.name}_constants", READ, double=True)
        if label in (SINES, COSINES):
            return Pointer("%w", "angle", self.angle_rows[1 if label == SINES else 2])
        return Pointer("%w", label if label in self.memory.own else _INPUT_COLUMN[label])

    def columns(self, loop: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        m = self.memory
        widths = {name: size * m.node for name, size in self.source.widths.items()}
        widths |= {name: size * m.node for name, size in self.source.weight_widths.items()}
        known = {"q": m.q, "v": m.v, "v6": 6 * m.v, "node6": 6 * m.node, READ: m.read, "angle": self.angle}
        nv = self.source.tree.model.nv
        known |= {"computed": m.computed, "record": m.record, "paired": m.paired, **m.own}
        known["paired bars"] = m.paired_bars
        sizes = np.array([owner.type.nv**2 for owner in self.source.tree.owners], dtype=np.int64)
        known |= {"table": m.v * self.table_steps[1], "own matrices": np.cumsum(sizes) - sizes}
        known |= {"parent record": m.parent_record, "row": nv * m.v, "diagonal": nv * m.v + m.v}
        above = np.where(m.parents < 0, 0, m.v[m.parents])
        known |= {"parent v": above, "parent row": nv * above}
        known |= {"seen below": nv * m.v + above, "seen above": nv * above + m.v}
        return known | widths | dict(loop)

    @property
    def table_steps(self) -> tuple[int, int]:
        """From row to row and from column to column of a table: what belongs to a speed is together with many lanes."""
        if self.lanes == 1:
            return self.source.table_stride, 1
        heights = [
            self.source.widths[name]
            for name, extent in self.source.program.result.items()
            if extent == "table"
        ]
        return 1, max(heights, default=0)

    # -- parts of the main function ----------------------------------------------------------------------

    def emit_prologue(self) -> None:
        values = self.memory.prologue
        if not values:
            return
        symbols = {"parameters": self.source.parameters, **self.source.trace.starts}
        known = {name: nonzeros(symbols[name]) for name in symbols if name in self.arguments}
        step = self.step(Visit(known, {"start": values}))
        function, main = self.function(step), self.main
        inputs = zip(step.inputs, step.shifts, strict=True)
        given = [main.at(self.arguments[name], shift) for name, shift in inputs]
        main.call(function, [*given, "%w", main.at("%w", self.scratch)])

    def emit_padding(self) -> None:
        """Zeros in the padding of tables: what memory holds by chance may be slow to compute with."""
        if self.lanes > 1:
            return  # nobody reads it
        stride, nv = self.source.table_stride, self.source.tree.model.nv
        for name, extent in self.source.program.result.items():
            if extent != "table":
                continue
            for row in range(self.source.widths[name]):
                for column in range(nv, stride):
                    self.main.put(self.main.element_zero, self.outputs[name], row * stride + column)

    def emit_angles(self) -> None:
        if not self.angles:
            return
        self.text.append(constant_data(f"{self.name}_angle_indices", self.angle_indices.astype(np.int32)))
        size, table = round_up(self.angles), f"@{self.name}_angle_indices"
        f = Lines(1, lanes=self.lanes, fused=self.target.fused)
        for k in range(self.angles, size):
            f.put(f.element_zero, "%x", k)
        each = f.loop("0", str(self.angles))
        f.put(f.scalar("%q", f.number(table, each.index)), "%x", each.index)
        f.end(each)
        self.text.append(f.function(f"{self.name}_angles", ["%q", "%x"], "#0"))
        x, s, c = (self.main.at("%w", row) for row in self.angle_rows)
        self.main.call(f"{self.name}_angles", [self.arguments["q"], x])
        self.main.call(sincos_symbol(self.target), [x, s, c], [size * self.lanes])
        self.work += 10 * self.angles

    def emit_run(self, run: Pass, steps: Sequence[Mapping[_Key, _Step]]) -> None:
        columns = {name: x for i in run.loops for name, x in self.memory.loops[i].items()}
        table = OffsetTable(f"{self.name}_table{run.loops[0]}", self.columns(columns))
        cases = [(i, key) for i in run.loops for key in steps[i]]
        visits = [
            cases.index((i, (int(self.memory.kind[k]), bool(self.memory.first[i][k])))) for i, k in run.visits
        ]
        body = NodeLoop(self.T, table)
        body.begin()
        for case in body.cases(len(cases)):
            i, (kind, first) = cases[case]
            self.emit_visit(body, self.source.trace.loops[i], kind, steps[i][kind, first], visits.count(case))
        body.end()
        order = np.array([k for _, k in run.visits], dtype=np.int64)
        self.finish(f"{self.name}_loop{run.loops[0]}", body, table, order, np.array(visits, dtype=np.int64))

    def emit_visit(self, body: NodeLoop, loop: Loop, kind: int, step: _Step, times: int) -> None:
        if not step.outputs:
            return
        outputs = {
            **{label: Pointer("%w", label) for label in self.memory.own},
            SHARED: Pointer("%w", "record", loop.shared_start),
            PASSED: Pointer("%w", "passed out"),
            ADDED: Pointer("%w", "added out"),
            BARS: Pointer("%w", "computed", self.memory.bars),
        }
        if loop.paired_start:
            outputs[PAIRED] = Pointer("%w", "paired", loop.paired_start[kind])
        for name, extent in self.source.program.result.items():
            outputs[name] = Pointer(self.outputs[name], _RESULT_COLUMN.get(extent) or name)
            if extent in ("table", "own") and name in step.outputs:
                step.places[step.outputs.index(name)] = self.places(name, extent, kind)
        self.visit(body, step, self.pointers(step, outputs), times)

    def places(self, name: str, extent: str, kind: int) -> list[int]:
        """Where the entries of a table or of the joint's own matrices go, from the first."""
        count, nv = self.source.widths[name], self.source.kinds[kind].structure.joint.nv
        if extent == "table":
            row, column = self.table_steps
            return [r * row + c * column for r in range(count) for c in range(nv)]
        return [m * self.source.own_size + k for m in range(count) for k in range(nv * nv)]

    def emit_total(self, name: str, i: int, visit: Visit) -> None:
        step = self.step(visit)
        function = self.function(step)
        main, where = self.main, self.memory.world_added[i]
        given = [main.at("%w", where + step.shifts[0])] if step.inputs else []
        main.call(function, [*given, self.outputs[name], main.at("%w", self.scratch)])

    def emit_ends(self, visit: Visit) -> None:
        """Gradients with respect to the parameters."""
        step = self.step(visit)
        function = self.function(step)
        where = {world_area(i): start for i, start in enumerate(self.memory.world_added)}
        where[BARS] = self.memory.bars
        inputs = zip(step.inputs, step.shifts, strict=True)
        given = [
            self.main.at(self.arguments.get(label, "%w"), where.get(label, 0) + shift)
            for label, shift in inputs
        ]
        scratch = self.main.at("%w", self.scratch)
        self.main.call(function, [*given, self.outputs["dparameters"], scratch])

    def emit_own_blocks(self, steps: list[_Step]) -> None:
        """The blocks of every node with itself; the others are zero until they are filled."""
        names, nv = self.pair_names, self.source.tree.model.nv
        parents = self.memory.parents
        if not np.array_equal(parents, np.arange(-1, len(parents) - 1)):
            for name in names:
                self.main.clear(self.outputs[name], nv * nv)
        table = OffsetTable(f"{self.name}_own_table", self.columns({}))
        body = NodeLoop(self.T, table)
        body.begin()
        sides = {"0": "diagonal", "2": "seen below", "3": "seen above"}
        outputs = {
            f"{name} {side}": Pointer(self.outputs[name], column)
            for name in names
            for side, column in sides.items()
        }
        for kind in body.cases(len(steps)):
            step, structure = steps[kind], self.source.kinds[kind].structure
            size, seen = structure.joint.nv, structure.carrier.modes
            shapes = {"0": (size, size), "2": (size, seen), "3": (seen, size)}
            step.places = {k: _block(*shapes[label[-1]], nv) for k, label in enumerate(step.outputs)}
            if step.outputs:
                self.visit(body, step, self.pointers(step, outputs), len(self.source.kinds[kind].nodes))
        body.end()
        self.finish(f"{self.name}_own", body, table, self.memory.node, self.memory.kind)

    def emit_pairs(self, pairs: PairsTrace) -> None:
        """For every node, a walk through its ancestors."""
        nv = self.source.tree.model.nv
        of_form = dict(zip(pairs.form, (kind.structure for kind in self.source.kinds), strict=True))
        widths = {form: structure.joint.nv for form, structure in of_form.items()}
        seen = {form: structure.carrier.modes for form, structure in of_form.items()}
        table = OffsetTable(f"{self.name}_pairs_table", self.columns({"parent": self.memory.parents}))
        body = NodeLoop(self.T, table)
        body.begin()
        forms = range(len(pairs.sizes))
        for outer in body.cases(len(forms)):
            v, row = body.load("%row", "v"), body.load("%row", "row")
            record = body.address(Pointer("%w", "paired"), "%row")
            first = body.load("%row", "parent")
            climb = f"climb{outer}"
            body.climb(climb, first)
            for inner in body.cases(len(forms), climb):
                step = self.step(pairs.visits[outer, inner])
                if not step.outputs:
                    continue
                at = f"%{climb}_row"
                places = {
                    "0": body.add(row, body.load(at, "v")),
                    "1": body.add(body.load(at, "row"), v),
                }
                if seen[inner]:
                    places["2"] = body.add(row, body.load(at, "parent v"))
                    places["3"] = body.add(body.load(at, "parent row"), v)
                arguments = []
                for label, shift in zip(step.inputs, step.shifts, strict=True):
                    pointer = Pointer("%w", "paired", shift)
                    arguments.append(
                        body.address(pointer, at)
                        if label.startswith(INNER)
                        else body.shifted(record, pointer, shift)
                    )
                for k, label in enumerate(step.outputs):
                    name, side = label.rsplit(" ", 1)
                    arguments.append(body.at(self.outputs[name], places[side]))
                    rows, columns = widths[outer], widths[inner] if side in "01" else seen[inner]
                    step.places[k] = _block(*((rows, columns) if side in "02" else (columns, rows)), nv)
                self.call(body, step, arguments, self.source.tree.pairs // len(pairs.visits))
            body.climbed(climb)
        body.end()
        self.finish(f"{self.name}_pairs", body, table, self.memory.node, self.memory.form)

    def emit_pairs_adjoint(self, pairs: PairsAdjoint) -> None:
        """For every node, a walk through its ancestors that gives back to both."""
        m = self.memory
        self.main.clear(self.main.at("%w", int(m.paired_bars[0])), m.paired_bars_size)
        table = OffsetTable(f"{self.name}_back_table", self.columns({"parent": m.parents}))
        body = NodeLoop(self.T, table)
        body.begin()
        forms = range(len(pairs.sizes))
        for outer in body.cases(len(forms)):
            v, row = body.load("%row", "v"), body.load("%row", "row")
            climb = f"climb{outer}"
            body.climb(climb, body.load("%row", "parent"))
            for inner in body.cases(len(forms), climb):
                at = f"%{climb}_row"
                places = {
                    "0": body.add(row, body.load(at, "v")),
                    "1": body.add(body.load(at, "row"), v),
                }
                visit, added = _additions(pairs.visits[outer, inner])
                step = self.step(visit)
                step.places = dict(enumerate(added))
                arguments = []
                for label, shift in [
                    *zip(step.inputs, step.shifts, strict=True),
                    *((x, 0) for x in step.outputs),
                ]:
                    base = label.removeprefix(INNER)
                    if base in _INPUT_COLUMN:
                        pointer = Pointer("%w", _INPUT_COLUMN[base], shift)
                        arguments.append(body.address(pointer, "%row" if base == label else at))
                    else:
                        matrix = body.at(self.arguments[label[:-2]], places[label[-1]])
                        arguments.append(body.at(matrix, shift))
                self.call(body, step, arguments, self.source.tree.pairs // len(pairs.visits))
            body.climbed(climb)
        body.end()
        self.finish(f"{self.name}_back", body, table, m.node, m.form)

    @property
    def pair_names(self) -> tuple[str, ...]:
        pairs = self.source.program.pairs
        return pairs.names if pairs else ()

    def finish(
        self, name: str, body: NodeLoop, table: OffsetTable, order: np.ndarray, cases: np.ndarray
    ) -> None:
        self.text.append(table.data(order, cases))
        self.text.append(body.function(name, self.parameters, len(order)))
        self.main.call(name, self.parameters)


_RESULT_COLUMN = {"q": "q", "v": "v", "v6": "v6", "node6": "node6", "table": "table", "own": "own matrices"}
_INPUT_COLUMN = {
    COMPUTED: "computed",
    SHARED: "parent record",
    PASSED: "passed in",
    PAIRED: "paired",
    PAIRED_BARS: "paired bars",
    GATHERED: "gathered",
    ADDED: "added in",
}


def _first(visit: Visit) -> Visit:
    """The visit of a node that is the first to add to its parent."""
    known = visit.inputs.get(ADDED, [])
    if not known:
        return visit
    values = [x for part in visit.outputs.values() for x in part]
    zeros = ca.SX.zeros(len(known))
    new = iter(nonzeros(ca.densify(ca.substitute(ca.vertcat(*values), ca.vertcat(*known), zeros))))
    inputs = {label: x for label, x in visit.inputs.items() if label != ADDED}
    return Visit(inputs, {label: [next(new) for _ in part] for label, part in visit.outputs.items()})


def _additions(visit: Visit) -> tuple[Visit, list[list[int]]]:
    """A visit that adds to what it reads, without what it leaves as it is, and the places of the rest."""
    outputs, places = {}, []
    for label, values in visit.outputs.items():
        known = [x.element_hash() for x in visit.inputs.get(label, [])]
        changed = [p for p, x in enumerate(values) if x.element_hash() != known[p]]
        if changed:
            outputs[label] = [values[p] for p in changed]
            places.append(changed)
    return Visit(visit.inputs, outputs), places


def _block(rows: int, columns: int, width: int) -> list[int]:
    """Where the entries of a block are in a matrix with rows of the given width."""
    return [i * width + j for i in range(rows) for j in range(columns)]


def _inputs(p: InstructionList) -> Iterator[tuple[int, int]]:
    """Argument and element of the inputs that are used."""
    return ((a, b) for op, a, b in zip(p.op, p.a, p.b, strict=True) if op == ca.OP_INPUT)


def _hoist(step: _Step, angles: dict[int, int]) -> None:
    """Make sines and cosines of coordinates inputs; `angles` maps the kind's coordinates to positions."""
    if "q" not in step.inputs:
        return
    p = step.instructions
    argument = step.inputs.index("q")
    new: dict[str, int] = {}
    for i, op in enumerate(p.op):
        if op not in TRIGONOMETRIC or p.op[p.a[i]] != ca.OP_INPUT or p.a[p.a[i]] != argument:
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
