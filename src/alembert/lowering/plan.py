"""Plans: functions that are called one after the other in one kernel, on named buffers.

A buffer is an argument or a result of the kernel, or a temporary in its workspace; a `Offset` is what of it begins at some
element. The steps of a plan are

    Call     a source, once
    Copy     a buffer to another, or zeros to it
    Columns  a function on every column of some matrices: a solver for one right-hand side serves them all
    Repeat   steps until a flag is set in all lanes
    When     steps, if a flag is set
    Each     steps once for each of some records in a row, which `At` names in the buffers that have them
    Fold     steps over and over, each round on what the one before left, with a record now and then
    MatrixRows     functions that work on rows of matrices over the speeds (`alembert.lowering.tree_matrices`)

When the kernel has one lane, the lanes of the vector registers go to neighbouring columns in `Columns` and `MatrixRows`; the
operations and so the bits of the results are the same. No buffer may be both read and written by one call.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from alembert.engine import codegen, instructions, interpreter
from alembert.engine.codegen import KernelSource, Spacing
from alembert.engine.loops import Lines
from alembert.engine.target import Code, Target
from alembert.lowering.tree_matrices import LINE, Relations, TreeMatrices, padded

RECORDS = 32
"""room for records in one call of a kernel that runs steps over and over"""
WIDE = "#7"
"""attributes of functions whose vectors are as wide as the machine's, whatever the kernel's lanes"""


@dataclass(frozen=True)
class Offset:
    """The elements of a buffer from `start` on."""

    buffer: str
    start: int


@dataclass(frozen=True)
class At:
    """Within `Each`: the record of `size` elements in a buffer whose turn it is, counted from `start` on."""

    buffer: str
    size: int
    start: int = 0


Buffer = str | Offset | At


@dataclass(frozen=True)
class Call:
    """A source on buffers, or the name of one of the plan; the same one in several calls is there once."""

    source: KernelSource | str
    inputs: Sequence[Buffer]
    outputs: Sequence[Buffer]


@dataclass(frozen=True)
class Copy:
    """`size` elements (None: all that the source has) to another place; without a source, zeros.

    With `row`, a buffer with a whole number that all lanes share, they are that row of the source, `size` elements each.
    """

    source: Buffer | None
    target: Buffer
    size: int | None = None
    row: Buffer | None = None


@dataclass(frozen=True)
class Columns:
    """`function(shared, column, ...)` on the columns of one or more matrices side by side, into as many others.

    The matrices are by rows and all have `count` columns.
    """

    function: ca.Function
    shared: str
    sources: Sequence[Buffer]
    results: Sequence[Buffer]
    count: int


@dataclass(frozen=True)
class Repeat:
    """Steps until the first entry of the buffer `flag` is not zero in any lane, at most `most` times.

    They must leave the lanes alone that have theirs set, so that a lane's bits do not depend on its neighbours.
    """

    steps: Sequence[Step]
    flag: str
    most: int


@dataclass(frozen=True)
class When:
    """Steps that are done if the first entry of the buffer `flag`, the same in all lanes, is not zero."""

    flag: Buffer
    steps: Sequence[Step]


@dataclass(frozen=True)
class Each:
    """Steps for the records 0 ... count - 1 of buffers, or from the last one to the first."""

    count: int
    steps: Sequence[Step]
    backward: bool = False


@dataclass(frozen=True)
class Fold:
    """Steps that read `state` and leave the next one in `following`, `every` times between one record and the next.

    `count` records of the state go to `records`. Both numbers are buffers: they are known at run time, the same for all
    lanes. Within the steps the name of the state means the temporary `now`.
    """

    state: str
    now: str
    following: str
    every: str
    count: str
    records: str
    steps: Sequence[Step]


@dataclass(frozen=True)
class Ending:
    """Functions on rows of matrices, with the names of the buffers that each takes."""

    calls: Sequence[tuple[str, Sequence[str]]]
    work: int
    """for one state"""
    scratch: Mapping[str, int] = field(default_factory=dict)
    """further temporaries, in elements"""


@dataclass(frozen=True)
class MatrixRows:
    """What `make` emits, from tables to `results`: matrices that a batch sends straight to where they belong.

    Large matrices would otherwise go through memory three times: as lanes, as packed blocks, as results. It is the last step
    of a plan, and its results are the plan's last.
    """

    results: Sequence[str]
    relations: Relations
    make: Callable[[TreeMatrices], Ending]


Step = Call | Copy | Columns | Repeat | When | Each | Fold | MatrixRows


class Plan:
    """A source: `arguments` and `results` are the buffers that come in and go out, with their sizes, in order.

    `numbers` are buffers with a fixed content, in tables as the constants of functions. A plan that is `quick` to be
    compiled is not optimised.
    """

    def __init__(
        self,
        arguments: Mapping[str, int],
        results: Mapping[str, int],
        temporaries: Mapping[str, int],
        steps: Sequence[Step],
        sources: Mapping[str, KernelSource] | None = None,
        *,
        numbers: Mapping[str, np.ndarray] | None = None,
        quick: bool = False,
    ) -> None:
        self.sources, self.numbers, self.quick = sources or {}, numbers or {}, quick
        self.arguments, self.results, self.temporaries = dict(arguments), dict(results), dict(temporaries)
        self.steps = [step for step in steps if not isinstance(step, Columns) or step.count]
        self.input_sizes = list(arguments.values())
        self.output_sizes = list(results.values())

    def after(
        self, arguments: Mapping[str, int], temporaries: Mapping[str, int], first: Sequence[Step]
    ) -> Plan:
        """With steps before, which make what is no longer an argument."""
        inside = {**self.temporaries, **temporaries}
        return Plan(
            arguments, self.results, inside, [*first, *self.steps], self.sources, numbers=self.numbers
        )

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        return _Emitter(self, name, lanes, target).emit()


def with_numbers(
    source: KernelSource, arguments: Mapping[str, int], results: Mapping[str, int], numbers: np.ndarray
) -> Plan:
    """A source whose last argument has always these numbers, which the text of the code does not have."""
    steps = [Call(source, [*arguments, "numbers"], [*results])]
    return Plan(arguments, results, {}, steps, numbers={"numbers": numbers})


def recorded(
    sources: Mapping[str, KernelSource],
    arguments: Mapping[str, int],
    temporaries: Mapping[str, int],
    steps: Sequence[Step],
) -> Plan:
    """The plan that runs steps over and over: `arguments` start with the state and end with `every` and `count`.

    The steps leave the next state in `next`; the result has room for so many `RECORDS`.
    """
    state = next(iter(arguments))
    size = arguments[state]
    fold = Fold(state, "now", "next", "every", "count", "records", steps)
    inside = {"now": size, "next": size, **temporaries}
    return Plan(arguments, {"records": RECORDS * size}, inside, [fold], sources)


class _Emitter:
    """The code of a plan for one number of lanes."""

    def __init__(self, plan: Plan, name: str, lanes: int, target: Target) -> None:
        self.plan, self.name, self.lanes, self.target = plan, name, lanes, target
        fixed = {buffer: len(values) for buffer, values in plan.numbers.items()}
        self.sizes = {**plan.arguments, **plan.results, **plan.temporaries, **fixed}
        self.lines = Lines(1, lanes=lanes, fused=target.fused)
        self.codes: dict[int, tuple[str, Code]] = {}
        """by the step or the source, the function's name and code"""
        self.tools: dict[int, tuple[TreeMatrices, Ending]] = {}
        self.pointers: dict[str, str] = {}
        self.direct = 0
        self.turn = "0"
        """the number of the record within `Each`"""

    def emit(self) -> Code:
        plan, w = self.plan, self.lines
        for step in _flat(plan.steps):
            self.prepare(step)
        codes = [code for _, code in self.codes.values()]
        names = [*plan.arguments, *plan.results]
        self.pointers = {buffer: f"%b{k}" for k, buffer in enumerate(names)}
        self.pointers |= {buffer: f"@{self.name}_{buffer}" for buffer in plan.numbers}
        room = max((code.workspace for code in codes), default=0)
        scratch = {
            x: padded(size) + LINE for _, end in self.tools.values() for x, size in end.scratch.items()
        }
        for buffer, size in {**plan.temporaries, **scratch}.items():
            room = -(-room * self.lanes // LINE) * LINE // self.lanes
            self.pointers[buffer] = w.at("%w", room)
            room += size
        work = sum(self.write(step) for step in plan.steps)
        text = [code.text for code in codes]
        for tools, _ in self.tools.values():
            text += tools.text
        text.append(w.function(self.name, [*(f"%b{k}" for k in range(len(names))), "%w"], "#0"))
        if any(f" {WIDE} {{" in part for part in text):
            text.append(self.target.attributes.replace("#0", WIDE, 1))
        helpers = frozenset().union(*(code.helpers for code in codes))
        others = [code.target for code in codes if code.target != self.target]
        machine = others[0] if others else self.target
        constants = {name: values for code in codes for name, values in code.constants.items()}
        for buffer, values in plan.numbers.items():
            constants[f"{self.name}_{buffer}"] = np.repeat(values, self.lanes).tolist()
        lists = {name: words for code in codes for name, words in code.lists.items()}
        listed = sum(code.listed for code in codes)
        return Code(
            *("".join(text), room, work, helpers, machine, self.direct),
            constants=constants,
            lists=lists,
            listed=listed,
            quick=plan.quick,
        )

    def prepare(self, step: Step) -> None:
        """Emit the functions that a step calls."""
        if isinstance(step, Call):
            source = self.source(step)
            if id(source) not in self.codes:
                label = f"{self.name}_s{len(self.codes)}"
                self.codes[id(source)] = label, source.emit(label, self.lanes, self.target)
        elif isinstance(step, Columns):
            label = f"{self.name}_s{len(self.codes)}"
            self.codes[id(step)] = label, self.column_code(label, step)
        elif isinstance(step, MatrixRows):
            tools = TreeMatrices(f"{self.name}_rows", step.relations, self.target, WIDE, self.lanes)
            self.tools[id(step)] = tools, step.make(tools)
            self.direct = len(step.results) if self.lanes > 1 else 0

    def source(self, step: Call) -> KernelSource:
        return self.plan.sources[step.source] if isinstance(step.source, str) else step.source

    def width(self, step: Columns) -> int:
        """Lanes of the function for columns: of the kernel, or of the registers where that has one."""
        if self.lanes > 1:
            return self.lanes
        return self.target.lanes if step.count >= self.target.lanes else 1

    def column_code(self, label: str, step: Columns) -> Code:
        """The function for some columns or states at a time, with attributes of its own where these differ."""
        lanes, width, target = self.lanes, self.width(step), self.target
        apart, matrices = step.count * lanes, range(1, 1 + len(step.sources))

        def made(table: np.ndarray | None) -> Code:
            return codegen.emit_function(
                label,
                instructions.from_casadi(step.function, fuse=target.fused, table=table),
                width,
                target,
                uniform=(0,) if width > lanes else (),
                spacing=Spacing(apart, 8 * lanes, arguments=matrices),
                inline=False,
            )

        options = label, width, lanes, target, apart, len(matrices)
        known = interpreter.known_or_made
        code = known(step.function, options, made) if target.interprets else made(None)
        if width == lanes:
            return code
        text, room = code.text.replace(" #0 {", f" {WIDE} {{"), -(-code.workspace * width // lanes)
        return dataclasses.replace(code, text=text, target=target, workspace=room)

    def place(self, buffer: Buffer) -> str:
        if isinstance(buffer, Offset):
            return self.lines.at(self.pointers[buffer.buffer], buffer.start)
        if isinstance(buffer, At):
            moved = self.lines.add(self.lines.mul(self.turn, buffer.size), buffer.start)
            return self.lines.at(self.pointers[buffer.buffer], moved)
        return self.pointers[buffer]

    def write(self, step: Step) -> int:
        """The lines of a step; its work."""
        w, place = self.lines, self.place
        if isinstance(step, Call):
            label, code = self.codes[id(self.source(step))]
            w.call(label, [*map(place, step.inputs), *map(place, step.outputs), "%w"])
            return code.work
        if isinstance(step, Copy):
            return self.copy(step)
        if isinstance(step, Columns):
            return self.columns(step)
        if isinstance(step, Repeat):
            loop = w.repeat()
            work = sum(self.write(inner) for inner in step.steps)
            w.until(loop, place(step.flag), step.most)
            return 3 * work
        if isinstance(step, When):
            skipped = w.skip_unless(place(step.flag))
            work = sum(self.write(inner) for inner in step.steps)
            w.end_skip(skipped)
            return work
        if isinstance(step, Each):
            loop = w.loop("0", str(step.count))
            self.turn = w.sub(step.count - 1, loop.index) if step.backward else loop.index
            work = sum(self.write(inner) for inner in step.steps)
            w.end(loop)
            return work * step.count
        if isinstance(step, Fold):
            return self.fold(step)
        _, ending = self.tools[id(step)]
        for function, given in ending.calls:
            w.call(function, [self.pointers[x] for x in given])
        return ending.work * self.lanes

    def copy(self, step: Copy) -> int:
        if step.source is None:
            size = self.size(step.target) if step.size is None else step.size
            self.lines.clear(self.place(step.target), size)
        else:
            size = self.size(step.source) if step.size is None else step.size
            source = self.place(step.source)
            if step.row is not None:
                source = self.lines.at(source, self.lines.mul(self.lines.whole(self.place(step.row)), size))
            self.lines.copy(source, self.place(step.target), size)
        return size // 8

    def size(self, buffer: Buffer) -> int:
        return self.sizes[buffer] if isinstance(buffer, str) else self.sizes[buffer.buffer] - buffer.start

    def columns(self, step: Columns) -> int:
        w, (label, code), each = self.lines, self.codes[id(step)], self.width(step) // self.lanes
        loop, column = w.blocks(step.count, each)
        moved = [w.at(self.place(buffer), column) for buffer in (*step.sources, *step.results)]
        w.call(label, [self.pointers[step.shared], *moved, "%w"])
        w.end(loop)
        return code.work * -(-step.count // each)

    def fold(self, step: Fold) -> int:
        w, size = self.lines, self.sizes[step.state]
        every, count = (w.whole(self.pointers[x]) for x in (step.every, step.count))
        now = self.pointers[step.now]
        w.copy(self.pointers[step.state], now, size)
        self.pointers[step.state] = now
        record = w.loop("0", count)
        round_ = w.loop("0", every)
        work = sum(self.write(inner) for inner in step.steps)
        w.copy(self.pointers[step.following], now, size)
        w.end(round_)
        w.copy(now, w.at(self.pointers[step.records], w.mul(record.index, size)), size)
        w.end(record)
        return work * self.sizes[step.records] // size


def _flat(steps: Sequence[Step]) -> Iterator[Step]:
    """All steps, those within others too."""
    for step in steps:
        yield step
        if isinstance(step, Repeat | When | Each | Fold):
            yield from _flat(step.steps)
