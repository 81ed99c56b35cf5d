"""Straight-line code as LLVM IR text: what most kernels are made from.

Its function works on packed data: element j of an argument with W lanes is the vector at
`pointer + j*W` doubles. It has the form

    void NAME(ptr in0, ..., ptr out0, ..., ptr workspace)

LLVM's effort grows faster than linearly with the length of straight-line code, so the code is cut into
chunks of bounded length, each a function of its own; a value that is needed across a cut goes through a
slot of the workspace. Sines and cosines of all angles that are known at the same time are computed by one
call on an array in the workspace, which fills the vector registers even when W = 1.

The text is written directly: building it from objects takes many times longer.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import casadi as ca
import numpy as np

from alembert.engine import interpreter, vectormath
from alembert.engine.instructions import Chunk, InstructionList, from_casadi, in_chunks, interleaved
from alembert.engine.interpreter import Listing
from alembert.engine.target import Code, Target, sincos_symbol
from alembert.engine.vectormath import Operations, library_calls, literal, vector_type

CHUNK = 1200  # operations and loads; shorter ones cost traffic, longer ones compile time
QUICK_CHUNK = (
    100  # without optimisation longer ones run slower: values leave the registers in any order (measured)
)
WIDEST = 8  # doubles in a vector of any machine; rows of angles are whole vectors
LONG = 3000  # values; beyond it one-lane code outgrows the first-level instruction cache


@dataclass(frozen=True)
class Spacing:
    """Elements `doubles` apart, each a vector aligned to `align` bytes, in all results and the given `arguments`."""

    doubles: int
    align: int
    arguments: Container[int]


def emit_function(
    name: str,
    program: InstructionList,
    lanes: int,
    target: Target,
    *,
    chunk: int = CHUNK,
    uniform: Container[int] = (),
    places: Mapping[int, Sequence[int]] | None = None,
    spacing: Spacing | None = None,
    in_place: bool = False,
    inline: bool = True,
) -> Code:
    """IR of the function `name` with the given number of lanes.

    The arguments `uniform` are single doubles, the same for all lanes. `places` says where the elements of a result go,
    unless it is one after the other. With a `spacing` elements are that far apart. `in_place` says that elements of results
    may be where elements of arguments are, of which each is read once, for that result. Constants are `inline`, or in a
    table of which the text does not have the numbers: then it is the same for all functions that differ in these alone.
    """
    if target.interprets and not (places or in_place):
        return _listed(name, program, lanes, target, uniform, spacing)
    if lanes == 1 and int(program.needed().sum()) > LONG:
        target = target.compact()
    emitter = _Emitter(name, program, lanes, target, chunk, uniform, places or {}, spacing, inline)
    if in_place:
        emitter.noalias = ""
    return emitter.emit()


def prelude(code: Code) -> str:
    """What the functions of a module share: attributes, constants, calls of the C library with their numbers of lanes."""
    text = [code.target.attributes]
    for name, values in code.constants.items():
        text.append(f"@{name} = dso_local global [{len(values)} x double] zeroinitializer, align 64\n")
    for name in code.lists:
        text.append(f"@{name} = dso_local global ptr null, align 8\n")
    return "\n".join([*text, *library_calls(code.helpers, fused=code.target.fused)]) + "\n"


def _listed(
    name: str,
    program: InstructionList,
    lanes: int,
    target: Target,
    uniform: Container[int],
    spacing: Spacing | None,
) -> Code:
    """The same function, interpreted."""

    def place(argument: int, element: int) -> int:
        far = spacing is not None and argument in spacing.arguments
        return 8 * element * (spacing.doubles if spacing is not None and far else lanes)

    def result(_: int, element: int) -> int:
        return 8 * element * (lanes if spacing is None else spacing.doubles)

    made = Listing(program, lanes, uniform, place, result)
    text = interpreter.function(name, len(program.input_sizes) + len(program.outputs), lanes, target)
    lists = {f"{name}_list": made.words}
    listed = made.work or len(made.words)  # constants alone take no work, but are interpreted all the same
    return Code(text, made.room, made.work, frozenset(), target, lists=lists, listed=listed, pure=True)


class _Emitter:
    def __init__(
        self,
        name: str,
        program: InstructionList,
        lanes: int,
        target: Target,
        chunk: int,
        uniform: Container[int],
        places: Mapping[int, Sequence[int]],
        spacing: Spacing | None,
        inline: bool,
    ):
        self.name = name
        self.noalias = " noalias"
        self.uniform = uniform
        self.places = places
        self.spacing = spacing
        self.program = program
        self.lanes = lanes
        self.target = target
        self.T = vector_type(lanes)
        self.align = 8 * lanes
        self.operations = Operations(lanes)
        self.chunks = in_chunks(program, chunk)

        # What each value is called in the chunk at hand; None: not there yet.
        self.names: list[str | None] = [None] * len(program)
        self.constants: list[float] = []
        self.places_of_constants: dict[int, int] = {}
        for i, (op, a) in enumerate(zip(program.op, program.a, strict=True)):
            if op == ca.OP_CONST:
                value = program.constants[a]
                if inline or value in _STRUCTURE or not math.isfinite(value):
                    self.names[i] = literal(vectormath.bits(value), lanes)
                else:
                    self.places_of_constants[i] = len(self.constants)
                    self.constants.append(value)
        self.slots: dict[int, int] = {}
        self.workspace = 0
        self.lines: list[str] = []
        self.local: list[int] = []
        self.pointers: set[str] = set()

    def emit(self) -> Code:
        self.allocate()
        functions, calls = [], []
        for k, piece in enumerate(self.chunks.pieces):
            if piece.angles:
                self.emit_angles(k, piece)
            else:
                self.emit_values(k, piece)
            callee = f"@{self.name}_{k}"
            pointers = ", ".join(f"ptr {p}" for p in sorted(self.pointers))
            noalias = ", ".join(f"ptr{self.noalias} {p}" for p in sorted(self.pointers))
            body = "\n  ".join(self.lines)
            functions.append(
                f"define internal void {callee}({noalias}) noinline #0 {{\n  {body}\n  ret void\n}}\n"
            )
            calls.append(f"call void {callee}({pointers})")
            self.reset()
        names = [f"%i{k}" for k in range(len(self.program.input_sizes))]
        names += [*(f"%o{k}" for k in range(len(self.program.outputs))), "%w"]
        parameters = [f"ptr{self.noalias} {x}" for x in names]
        if len(calls) == 1:
            functions.clear()
            calls = [body]
        body = "\n  ".join([*calls, "ret void"])
        functions.append(
            f"define internal void @{self.name}({', '.join(parameters)}) noinline #0 {{\n  {body}\n}}\n"
        )
        work = sum(len(piece.values) + 10 * len(piece.angles) for piece in self.chunks.pieces)
        constants = {f"{self.name}_constants": self.constants} if self.constants else {}
        return Code(
            "".join(functions),
            self.workspace,
            work,
            frozenset(self.operations.helpers),
            self.target,
            constants=constants,
        )

    def reset(self) -> None:
        for i in self.local:
            self.names[i] = None
        self.local.clear()
        self.lines = []
        self.pointers = set()

    def allocate(self) -> None:
        """Give every value that is needed across a cut a slot of the workspace; sines and cosines in rows."""
        for piece in self.chunks.pieces:
            if piece.angles:
                count = -(-len(piece.angles) * self.lanes // WIDEST) * WIDEST // self.lanes
                piece.rows = (self.workspace, self.workspace + count, self.workspace + 2 * count)
                self.workspace += 3 * count
                for values, row in zip((piece.sines, piece.cosines), piece.rows[1:], strict=True):
                    for i, position in values.items():
                        self.slots[i] = row + position
        free: list[int] = []
        for k, piece in enumerate(self.chunks.pieces):
            for i in piece.kept:
                if free:
                    self.slots[i] = free.pop()
                else:
                    self.slots[i] = self.workspace
                    self.workspace += 1
            free.extend(self.slots[i] for i in self.chunks.dying[k])

    def address(self, pointer: str, element: int) -> str:
        self.pointers.add(pointer)
        if element == 0:
            return pointer
        name = f"%p{len(self.lines)}"
        self.lines.append(f"{name} = getelementptr inbounds {self.T}, ptr {pointer}, i64 {element}")
        return name

    def argument(self, pointer: str, element: int) -> tuple[str, int]:
        """The address of an element of an argument or a result, and its alignment."""
        if self.spacing is None or (pointer[1] == "i" and int(pointer[2:]) not in self.spacing.arguments):
            return self.address(pointer, element), self.align
        self.pointers.add(pointer)
        name = f"%p{len(self.lines)}"
        offset = element * self.spacing.doubles
        self.lines.append(f"{name} = getelementptr inbounds double, ptr {pointer}, i64 {offset}")
        return name, self.spacing.align

    def load(self, i: int) -> str:
        program = self.program
        if program.op[i] == ca.OP_CONST:
            place = f"getelementptr inbounds (double, ptr @{self.name}_constants, i64 {self.places_of_constants[i]})"
            return self.load_number(i, place, ", !invariant.load !{}")
        if program.op[i] == ca.OP_INPUT and program.a[i] in self.uniform and self.lanes > 1:
            pointer = f"%i{program.a[i]}"
            self.pointers.add(pointer)
            self.lines.append(f"%p{i}_u = getelementptr inbounds double, ptr {pointer}, i64 {program.b[i]}")
            return self.load_number(i, f"%p{i}_u")
        align = self.align
        if program.op[i] == ca.OP_INPUT:
            address, align = self.argument(f"%i{program.a[i]}", program.b[i])
        else:
            address = self.address("%w", self.slots[i])
        name = self.names[i] = f"%v{i}"
        self.local.append(i)
        self.lines.append(f"{name} = load {self.T}, ptr {address}, align {align}")
        return name

    def load_number(self, i: int, place: str, kind: str = "") -> str:
        """One double for all lanes."""
        name = self.names[i] = f"%v{i}"
        self.local.append(i)
        T = self.T
        if self.lanes == 1:
            self.lines.append(f"{name} = load double, ptr {place}, align 8{kind}")
            return name
        self.lines += [
            f"%s{i}_u = load double, ptr {place}, align 8{kind}",
            f"%e{i}_u = insertelement {T} poison, double %s{i}_u, i64 0",
            f"{name} = shufflevector {T} %e{i}_u, {T} poison, <{self.lanes} x i32> zeroinitializer",
        ]
        return name

    def result(self, value: str, result: int, element: int) -> None:
        place = self.places[result][element] if result in self.places else element
        address, align = self.argument(f"%o{result}", place)
        self.lines.append(f"store {self.T} {value}, ptr {address}, align {align}")

    def store(self, value: str, pointer: str, element: int) -> None:
        address = self.address(pointer, element)
        self.lines.append(f"store {self.T} {value}, ptr {address}, align {self.align}")

    def emit_angles(self, k: int, piece: Chunk) -> None:
        angles, sines, _ = piece.rows
        for position, i in enumerate(piece.angles):
            self.store(self.names[i] or self.load(i), "%w", angles + position)
        for position in range(len(piece.angles), sines - angles):
            self.store(self.operations.zero, "%w", angles + position)
        x, s, c = (self.address("%w", row) for row in piece.rows)
        count = (sines - angles) * self.lanes
        self.lines.append(f"call void @{sincos_symbol(self.target)}(ptr {x}, ptr {s}, ptr {c}, i64 {count})")

    def emit_values(self, k: int, piece: Chunk) -> None:
        kept = set(piece.kept)
        program, names, slots, lines = self.program, self.names, self.slots, self.lines
        results = self.chunks.results
        ops, a, b, c = program.op, program.a, program.b, program.c
        load, local, write = self.load, self.local, self.operations.write
        for i in piece.values:
            op = ops[i]
            x = names[a[i]] or load(a[i])
            y = "" if b[i] < 0 else names[b[i]] or load(b[i])
            z = "" if c[i] < 0 else names[c[i]] or load(c[i])
            name = f"%v{i}"
            write(lines, i, op, name, x, y, z)
            names[i] = name
            local.append(i)
            if i in kept:
                self.store(name, "%w", slots[i])
            if i in results:
                for result, element in results[i]:
                    self.result(name, result, element)
        for i, result, element in piece.copies:
            self.result(names[i] or load(i), result, element)


_STRUCTURE = (0.0, 1.0, -1.0)
"""numbers that belong to the form of a function rather than to its values"""


class KernelSource(Protocol):
    """The content of a kernel, for any number of lanes."""

    @property
    def input_sizes(self) -> Sequence[int]: ...

    @property
    def output_sizes(self) -> Sequence[int]: ...

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        """IR of `void NAME(ptr in0, ..., ptr out0, ..., ptr workspace)` on packed data, and what it calls."""
        ...


class FunctionSource:
    """A CasADi function, unrolled.

    Input and output k of the function is a matrix for a two-dimensional argument, a column for a
    one-dimensional one, and a column in C order for more dimensions. Arrays are in C order; sparse
    outputs are filled with zeros. `interleave` computes all outputs side by side, first entries first, where they share
    most of their operands; `chunk` bounds the functions that the code is cut into. With more than `longest` values, code
    for many lanes is made quickly rather than well.
    """

    def __init__(
        self,
        function: ca.Function,
        *,
        chunk: int | None = None,
        interleave: bool = False,
        longest: int | None = None,
    ):
        self.function, self._chunk, self._interleave, self._longest = function, chunk, interleave, longest
        self.input_sizes = [function.numel_in(k) for k in range(function.n_in())]
        self.output_sizes = [function.numel_out(k) for k in range(function.n_out())]

    def __len__(self) -> int:
        """How many instructions CasADi has for it."""
        return int(self.function.n_instructions())

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        def made(table: np.ndarray | None) -> Code:
            read = interleaved if self._interleave else from_casadi
            program = read(self.function, fuse=target.fused, table=table)
            chunk, quick = self._chunk or CHUNK, False
            if self._longest is not None and lanes > 1 and len(program) > self._longest:
                chunk, quick = QUICK_CHUNK, True
            code = emit_function(name, program, lanes, target, chunk=chunk, inline=False)
            return dataclasses.replace(code, quick=quick)

        if not target.interprets:
            return made(None)
        options = name, lanes, target, self._interleave, self._longest
        return interpreter.known_or_made(self.function, options, made)
