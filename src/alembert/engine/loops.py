"""Functions with loops, written operation by operation; the text of the intermediate language (IR) is made here alone.

No optimisation passes run on the IR, so loops are written as the code generator wants them: counters and sums are phi
nodes, and everything that does not change stays outside.

Loops over the nodes of a tree go through a table with a row of offsets for each node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from alembert.engine.vectormath import suffix, vector_type


@dataclass(frozen=True)
class Pointer:
    """An argument of a function: base pointer + column of the table + constant, in vectors (or doubles)."""

    base: str
    column: str
    shift: int = 0
    double: bool = False

    def moved(self, by: int) -> Pointer:
        return Pointer(self.base, self.column, self.shift + by, self.double)


class OffsetTable:
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
        """A row for each visit, of nodes in this `order`; its case comes last."""
        columns = [*(column[order] for column in self._columns), case]
        return constant_data(self.name, np.array(columns, dtype=np.int32).T)


class NodeLoop:
    """The IR of a loop over the rows of a table."""

    def __init__(self, T: str, table: OffsetTable) -> None:
        self.T, self.table = T, table
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

    def add(self, a: str, b: str) -> str:
        return self.line(f"add i64 {a}, {b}")

    def at(self, base: str, index: str | int) -> str:
        return self.line(f"getelementptr {self.T}, ptr {base}, i64 {index}")

    def address(self, pointer: Pointer, row: str) -> str:
        kind = "double" if pointer.double else self.T
        place = self.line(f"getelementptr {kind}, ptr {pointer.base}, i64 {self.load(row, pointer.column)}")
        return self.shifted(place, pointer, pointer.shift)

    def shifted(self, place: str, pointer: Pointer, shift: int) -> str:
        kind = "double" if pointer.double else self.T
        return self.line(f"getelementptr {kind}, ptr {place}, i64 {shift}") if shift else place

    def call(self, function: str, arguments: Sequence[str]) -> None:
        self.lines.append(f"  call void @{function}({', '.join(f'ptr {p}' for p in arguments)})")

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

    def function(self, name: str, pointers: Sequence[str], count: int) -> str:
        """The text of the function that goes through so many rows."""
        width = self.table.width
        text = "\n".join(self.lines)
        text = text.replace("WIDTH", str(width)).replace("CASE", str(width - 1)).replace("COUNT", str(count))
        parameters = ", ".join(f"ptr noalias {p}" for p in pointers)
        return f"define internal void @{name}({parameters}) noinline #0 {{\n{text}\n}}\n"


def constant_data(name: str, values: np.ndarray) -> str:
    """IR of a constant array."""
    content = np.ascontiguousarray(values).view(np.uint8).ravel()
    if not content.size:
        content = np.zeros(8, dtype=np.uint8)
    text = _BYTES[content].tobytes().decode()
    return f'@{name} = internal constant [{content.size} x i8] c"{text}", align 64\n'


_BYTES = np.frombuffer("".join(f"\\{k:02X}" for k in range(256)).encode(), dtype=np.uint8).reshape(256, 3)


@dataclass
class OpenLoop:
    name: str
    index: str
    sums: list[str]
    """values carried from round to round; after the loop, their final values"""
    _line: int
    _before: str
    _starts: Sequence[str]
    _step: int
    _kind: str


class Lines:
    """The body of a function that works on vectors: `width` neighbouring elements of one state, or one of `lanes` states.

    An element is a double, or with several `lanes` one for each state. Pointers count in elements.
    """

    def __init__(self, width: int, *, lanes: int = 1, fused: bool) -> None:
        size = width * lanes
        self.width, self.lanes, self.T, self.kind = width, lanes, vector_type(size), suffix(size)
        self.E = vector_type(lanes)
        self._bytes = 8 * size
        self._fused = fused
        self.text: list[str] = []
        self._count = 0
        self.mark = 0  # for labels
        self._block = "entry"

    def let(self, expression: str) -> str:
        name = f"%t{self._count}"
        self._count += 1
        self.text.append(f"  {name} = {expression}")
        return name

    def do(self, statement: str) -> None:
        self.text.append(f"  {statement}")

    def label(self, name: str) -> None:
        self.text.append(f"{name}:")
        self._block = name

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")

    def go(self, label: str) -> None:
        self.do(f"br label %{label}")

    def choice(self, number: str, labels: Sequence[str]) -> None:
        """Go on at the label with this number."""
        cases = " ".join(f"i64 {k}, label %{label}" for k, label in enumerate(labels) if k)
        self.do(f"switch i64 {number}, label %{labels[0]} [{cases}]")

    def call(self, function: str, pointers: Sequence[str], numbers: Sequence[str | int] = ()) -> None:
        arguments = [*(f"ptr {x}" for x in pointers), *(f"i64 {x}" for x in numbers)]
        self.do(f"call void @{function}({', '.join(arguments)})")

    def loop(
        self, start: str, stop: str, sums: Sequence[str] = (), *, step: int = 1, element: bool = False
    ) -> OpenLoop:
        """From `start` while below `stop`; `element`: the sums are single elements."""
        self._count += 1
        name = f"l{self._count}"
        before = self._block
        self.do(f"br label %{name}_head")
        self.label(f"{name}_head")
        loop = OpenLoop(
            name,
            f"%{name}_k",
            [f"%{name}_s{j}" for j in range(len(sums))],
            len(self.text),
            before,
            [start, *sums],
            step,
            self.E if element else self.T,
        )
        self.text += [""] * (1 + len(sums))
        more = self.let(f"icmp slt i64 {loop.index}, {stop}")
        self.branch(more, f"{name}_body", f"{name}_end")
        self.label(f"{name}_body")
        return loop

    def end(self, loop: OpenLoop, sums: Sequence[str] = ()) -> None:
        following = self.let(f"add nsw i64 {loop.index}, {loop._step}")
        kinds = ["i64", *[loop._kind] * len(sums)]
        for j, (name, kind, start, value) in enumerate(
            zip([loop.index, *loop.sums], kinds, loop._starts, [following, *sums], strict=True)
        ):
            self.text[loop._line + j] = (
                f"  {name} = phi {kind} [{start}, %{loop._before}], [{value}, %{self._block}]"
            )
        self.do(f"br label %{loop.name}_head")
        self.label(f"{loop.name}_end")

    def repeat(self) -> OpenLoop:
        """Begin what is done at least once, until `until`."""
        self._count += 1
        name = f"l{self._count}"
        loop = OpenLoop(name, f"%{name}_k", [], 0, self._block, ["0"], 1, self.T)
        self.go(f"{name}_body")
        self.label(f"{name}_body")
        loop._line = len(self.text)
        self.text.append("")
        return loop

    def until(self, loop: OpenLoop, flag: str, most: int) -> None:
        """Begin again, unless the element at `flag` is not zero in any lane or it was done `most` times."""
        E, B = self.E, vector_type(self.lanes, "i1")
        zero = "zeroinitializer" if self.lanes > 1 else "0.0"
        any_open = self.let(f"fcmp oeq {E} {self.scalar(flag)}, {zero}")
        if self.lanes > 1:  # one bit for each lane
            bits = self.let(f"bitcast {B} {any_open} to i{self.lanes}")
            any_open = self.let(f"icmp ne i{self.lanes} {bits}, 0")
        following = self.add(loop.index, 1)
        left = self.let(f"icmp ult i64 {following}, {most}")
        again = self.let(f"and i1 {any_open}, {left}")
        self.text[loop._line] = (
            f"  {loop.index} = phi i64 [0, %{loop._before}], [{following}, %{self._block}]"
        )
        self.branch(again, f"{loop.name}_body", f"{loop.name}_end")
        self.label(f"{loop.name}_end")

    def skip_unless(self, flag: str) -> str:
        """Begin what is done only if the element at `flag`, the same in all lanes, is not zero, up to `end_skip`."""
        self._count += 1
        name = f"s{self._count}"
        value = self.let(f"load double, ptr {flag}, align 8")
        self.branch(self.let(f"fcmp une double {value}, 0.0"), f"{name}_do", f"{name}_end")
        self.label(f"{name}_do")
        return name

    def end_skip(self, name: str) -> None:
        self.go(f"{name}_end")
        self.label(f"{name}_end")

    def blocks(self, size: int, step: int | None = None) -> tuple[OpenLoop, str]:
        """A loop over `step` neighbouring elements at a time (None: a vector), and where they begin.

        The last ones end with the last element and may overlap those before.
        """
        step = step or self.width
        loop = self.loop("0", str(size), step=step)
        over = self.let(f"icmp sgt i64 {loop.index}, {size - step}")
        return loop, self.let(f"select i1 {over}, i64 {size - step}, i64 {loop.index}")

    # -- integers ------------------------------------------------------------------------------------------

    def add(self, a: str | int, b: str | int) -> str:
        return str(a) if b == 0 else self.let(f"add nsw i64 {a}, {b}")

    def sub(self, a: str | int, b: str | int) -> str:
        return self.let(f"sub nsw i64 {a}, {b}")

    def mul(self, a: str | int, b: str | int) -> str:
        return self.let(f"mul nsw i64 {a}, {b}")

    def twice(self, a: str) -> str:
        return self.let(f"shl nsw i64 {a}, 1")

    def div(self, a: str | int, b: str | int) -> str:
        return self.let(f"udiv i64 {a}, {b}")

    def down(self, a: str, grain: int) -> str:
        """The multiple of `grain`, a power of two, below."""
        return self.let(f"and i64 {a}, {-grain}")

    def equal(self, a: str, b: str | int) -> str:
        return self.let(f"icmp eq i64 {a}, {b}")

    def whole(self, pointer: str) -> str:
        """A double that is a whole number, the same in all lanes."""
        return self.let(f"fptoui double {self.let(f'load double, ptr {pointer}, align 8')} to i64")

    # -- memory: pointers count in elements ----------------------------------------------------------------

    def at(self, pointer: str, index: str | int) -> str:
        return (
            pointer
            if index == 0
            else self.let(f"getelementptr inbounds {self.E}, ptr {pointer}, i64 {index}")
        )

    def load(self, pointer: str, index: str | int = 0, *, aligned: bool = True) -> str:
        align = self._bytes if aligned else 8
        return self.let(f"load {self.T}, ptr {self.at(pointer, index)}, align {align}")

    def store(self, value: str, pointer: str, index: str | int = 0, *, aligned: bool = True) -> None:
        align = self._bytes if aligned or self.lanes > 1 else 8
        self.do(f"store {self.T} {value}, ptr {self.at(pointer, index)}, align {align}")

    def store_first(
        self, value: str, count: int, pointer: str, index: int = 0, *, aligned: bool = False
    ) -> None:
        """The first `count` elements, to any place unless `aligned`."""
        if count == self.width:
            return self.store(value, pointer, index, aligned=aligned)
        done = 0
        while done < count:  # in parts whose sizes are powers of two
            size = 1 << ((count - done).bit_length() - 1)
            lanes = ", ".join(f"i32 {done + k}" for k in range(size))
            if size == 1:
                part = self.let(f"extractelement {self.T} {value}, i64 {done}")
            else:
                part = self.let(f"shufflevector {self.T} {value}, {self.T} poison, <{size} x i32> <{lanes}>")
            self.do(f"store {vector_type(size)} {part}, ptr {self.at(pointer, index + done)}, align 8")
            done += size

    def load_between(self, pointer: str, first: int, last: int, others: str) -> str:
        """The elements first..last-1 of the vector at a place, and what is in `others` for the rest of it."""
        if last - first == self.width:
            return self.load(pointer, aligned=False)
        call = f"call {self.T} @llvm.masked.load.{self.kind}.p0"
        return self.let(f"{call}(ptr {pointer}, i32 8, {self._between(first, last)}, {self.T} {others})")

    def store_between(self, value: str, pointer: str, first: int, last: int) -> None:
        """The elements first..last-1 of a vector, to their places in that at `pointer`."""
        if last - first == self.width:
            return self.store(value, pointer, aligned=False)
        call = f"call void @llvm.masked.store.{self.kind}.p0"
        return self.do(f"{call}({self.T} {value}, ptr {pointer}, i32 8, {self._between(first, last)})")

    def _between(self, first: int, last: int) -> str:
        marks = ", ".join(f"i1 {int(first <= k < last)}" for k in range(self.width))
        return f"{vector_type(self.width, 'i1')} <{marks}>"

    def element_of(self, vector: str, place: int) -> str:
        return self.let(f"extractelement {self.T} {vector}, i64 {place}")

    def copy(self, source: str, target: str, count: int) -> None:
        """So many elements."""
        size = 8 * self.lanes * count
        self.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")

    def clear(self, target: str, count: int) -> None:
        """So many elements become zero."""
        self.do(f"call void @llvm.memset.p0.i64(ptr {target}, i8 0, i64 {8 * self.lanes * count}, i1 false)")

    def scalar(self, pointer: str, index: str | int = 0) -> str:
        """One element."""
        return self.let(f"load {self.E}, ptr {self.at(pointer, index)}, align {8 * self.lanes}")

    def put(self, scalar: str, pointer: str, index: str | int = 0) -> None:
        self.do(f"store {self.E} {scalar}, ptr {self.at(pointer, index)}, align {8 * self.lanes}")

    def spread(self, scalar: str) -> str:
        """A vector of equal elements."""
        if self.width == 1:
            return scalar
        one = self.let(f"insertelement {self.T} poison, double {scalar}, i64 0")
        zeros = f"<{self.width} x i32> zeroinitializer"
        return self.let(f"shufflevector {self.T} {one}, {self.T} poison, {zeros}")

    def number(self, table: str, index: str | int, *, scale: int = 1) -> str:
        """An entry of a table of 32-bit integers, in 64 bits."""
        place = self.let(f"getelementptr inbounds i32, ptr {table}, i64 {index}")
        value = self.let(f"sext i32 {self.let(f'load i32, ptr {place}, align 4')} to i64")
        return value if scale == 1 else self.let(f"mul nsw i64 {value}, {scale}")

    # -- arithmetic: vectors, or single elements -----------------------------------------------------------

    def times(self, a: str, b: str) -> str:
        return self.let(f"fmul {self.T} {a}, {b}")

    def plus_product(self, a: str, b: str, c: str) -> str:
        """a b + c, in one rounding where the machine has it."""
        T = self.T
        if not self._fused:
            return self.let(f"fadd {T} {self.times(a, b)}, {c}")
        return self.let(f"call {T} @llvm.fma.{self.kind}({T} {a}, {T} {b}, {T} {c})")

    def element_plus_product(self, a: str, b: str, c: str) -> str:
        """The same for single elements."""
        E = self.E
        if not self._fused:
            return self.let(f"fadd {E} {self.let(f'fmul {E} {a}, {b}')}, {c}")
        return self.let(f"call {E} @llvm.fma.{suffix(self.lanes)}({E} {a}, {E} {b}, {E} {c})")

    def element_minus(self, a: str) -> str:
        return self.let(f"fneg {self.E} {a}")

    def element_times(self, a: str, b: str) -> str:
        return self.let(f"fmul {self.E} {a}, {b}")

    def element_plus(self, a: str, b: str) -> str:
        return self.let(f"fadd {self.E} {a}, {b}")

    def element_less(self, a: str, b: str) -> str:
        return self.let(f"fsub {self.E} {a}, {b}")

    def element_inverse(self, a: str) -> str:
        return self.let(f"fdiv {self.E} {self.one}, {a}")

    def plus(self, a: str, b: str) -> str:
        return self.let(f"fadd {self.T} {a}, {b}")

    @property
    def zero(self) -> str:
        """Of a vector."""
        return "zeroinitializer" if self.T != "double" else "0.0"

    @property
    def minus_zero(self) -> str:
        return "splat (double -0.0)" if self.T != "double" else "-0.0"

    @property
    def any(self) -> str:
        """A vector of whatever."""
        return "poison"

    @property
    def element_zero(self) -> str:
        return "zeroinitializer" if self.E != "double" else "0.0"

    @property
    def one(self) -> str:
        """As an element."""
        return "1.0" if self.E == "double" else "splat (double 1.0)"

    def minus(self, a: str) -> str:
        return self.let(f"fneg {self.T} {a}")

    def dot(self, pairs: Sequence[tuple[str, str]]) -> str:
        total = self.times(*pairs[0])
        for a, b in pairs[1:]:
            total = self.plus_product(a, b, total)
        return total

    def mask(self, bits: str) -> str:
        """Elements from the bits of a 64-bit integer."""
        small = self.let(f"trunc i64 {bits} to i{self.width}")
        if self.width == 1:
            return small
        return self.let(f"bitcast i{self.width} {small} to {vector_type(self.width, 'i1')}")

    def choose(self, mask: str, yes: str, no: str) -> str:
        T = self.T
        return self.let(f"select {vector_type(self.width, 'i1')} {mask}, {T} {yes}, {T} {no}")

    def function(
        self,
        name: str,
        pointers: Sequence[str],
        attributes: str,
        *,
        numbers: Sequence[str] = (),
        flags: Sequence[str] = (),
        alike: Sequence[str] = (),
    ) -> str:
        """The text of the function of these arguments; pointers that are not `alike` lead to places apart."""
        parameters = [f"ptr {p}" if p in alike else f"ptr noalias {p}" for p in pointers]
        parameters += [*(f"i64 {x}" for x in numbers), *(f"i1 {x}" for x in flags)]
        body = "\n".join(self.text)
        return (
            f"define internal void @{name}({', '.join(parameters)}) noinline {attributes} {{\n"
            f"entry:\n{body}\n  ret void\n}}\n"
        )


def stage_function(
    name: str, sizes: Sequence[int], shifts: Sequence[int | None], backward: bool, stop: int | None
) -> str:
    """IR of `i64 NAME_loop(i64 count, ptr table, ptr workspace)`: NAME on one entry of every array in the table after
    the other; how many were done.

    `sizes` are those of the entries, in doubles; with a shift of 1 an array's next entry is used, with None always the
    first. The loop ends where the array `stop` gets a number that is not positive.
    """
    entry, body, pointers = [], [], []
    for k, (size, shift) in enumerate(zip(sizes, shifts, strict=True)):
        entry += [
            f"%t{k} = getelementptr inbounds i64, ptr %table, i64 {k}",
            f"%b{k} = load ptr, ptr %t{k}",
        ]
        if shift is None:
            pointers.append(f"%b{k}")
            continue
        body += [
            f"%i{k} = add i64 %index, {shift}",
            f"%o{k} = mul i64 %i{k}, {size}",
            f"%p{k} = getelementptr inbounds double, ptr %b{k}, i64 %o{k}",
        ]
        pointers.append(f"%p{k}")
    order = "%index = sub i64 %last, %k" if backward else "%index = add i64 %k, 0"
    body = [order, *body, f"call void @{name}({', '.join(f'ptr {p}' for p in [*pointers, '%w'])})"]
    if stop is None:
        body.append("br label %after")
    else:
        body += [
            f"%flag = load double, ptr {pointers[stop]}",
            "%good = fcmp ogt double %flag, 0.0",
            "br i1 %good, label %after, label %end",
        ]
    lines = "\n  ".join
    return (
        f"define i64 @{name}_loop(i64 %count, ptr %table, ptr %w) #0 {{\nentry:\n  {lines(entry)}\n"
        "  %last = sub i64 %count, 1\n  br label %test\n"
        "test:\n  %k = phi i64 [0, %entry], [%next, %after]\n"
        "  %more = icmp slt i64 %k, %count\n  br i1 %more, label %stage, label %end\n"
        f"stage:\n  {lines(body)}\n"
        "after:\n  %next = add i64 %k, 1\n  br label %test\n"
        "end:\n  ret i64 %k\n}\n"
    )
