"""Functions with loops as IR text, written line by line.

No optimisation passes run on the IR, so loops are written as the code generator wants them: counters and sums are phi
nodes, and everything that does not change stays outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alembert.engine.vectormath import suffix, vector_type


@dataclass
class Loop:
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

    def loop(
        self, start: str, stop: str, sums: Sequence[str] = (), *, step: int = 1, element: bool = False
    ) -> Loop:
        """From `start` while below `stop`; `element`: the sums are single elements."""
        self._count += 1
        name = f"l{self._count}"
        before = self._block
        self.do(f"br label %{name}_head")
        self.label(f"{name}_head")
        loop = Loop(
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

    def end(self, loop: Loop, sums: Sequence[str] = ()) -> None:
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

    # -- arithmetic ----------------------------------------------------------------------------------------

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

    def function(self, name: str, parameters: Sequence[str], attributes: str) -> str:
        body = "\n".join(self.text)
        return (
            f"define internal void @{name}({', '.join(parameters)}) noinline {attributes} {{\n"
            f"entry:\n{body}\n  ret void\n}}\n"
        )
