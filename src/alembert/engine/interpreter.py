"""Straight-line code that is run from a list of its instructions: what a kernel does until machine code of it pays.

LLVM takes some 20 us for an instruction; a list of them is made in a tenth of that, and runs some five times slower. So
code of which little is run is never compiled. Its function only calls the interpreter, which is the same for all kernels
with so many lanes, with the list:

    operation, count, then for each of `count` instructions the places of its result and of its operands

Places are bytes into the workspace, where all values are: arguments and constants are copied there first. Values are
computed in the order of their dependencies, instructions of one kind together, so that there is little to decide on the way.
Every instruction is the same operation that machine code would do: the results are bitwise the same.

A list is made for one function, and serves others that differ from it in their numbers alone. The *form* of a function is
all of it but its numbers: its operations, which constants are equal, and the constants that change how it is simplified
(0, 1, -1 and what is not finite). A model with other masses or lengths has functions of known forms; then only the numbers
in the list have to be changed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import struct
from array import array
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from alembert.engine.code import Code
from alembert.engine.instructions import (
    BINARY,
    FMA,
    FMS,
    FNMA,
    SELECT,
    TRIGONOMETRIC,
    UNARY,
    InstructionList,
    algorithm,
    in_pieces,
)
from alembert.engine.target import Target, interpreter_symbol, sincos_symbol
from alembert.engine.vectormath import Operations, library_calls, vector_type

WINDOW = 2000
"""operations and loads within which instructions are put together by kind; further ones would need more room"""
WIDEST = 8  # doubles in a vector of any machine; rows of angles are whole vectors

END, INPUT, UNIFORM, CONSTANT, OUTPUT, COPY, ANGLES = range(7)
_OPERATIONS = (FMA, FMS, FNMA, SELECT, *sorted(BINARY), *sorted(UNARY - TRIGONOMETRIC))
CODES = {op: 7 + k for k, op in enumerate(_OPERATIONS)}
"""of the operations of `alembert.engine.instructions`"""

Place = Callable[[int, int], int]
"""bytes from an argument's or a result's beginning to an element"""


class Listing:
    """The list of a program for so many lanes, and the room for its values (vectors)."""

    def __init__(
        self,
        program: InstructionList,
        lanes: int,
        uniform: Container[int],
        input_place: Place,
        output_place: Place,
    ) -> None:
        self.words = array("i")
        self.room = 0
        self._program, self._bytes, self._free = program, 8 * lanes, list[int]()
        needed = program.needed()
        self._uses = program.uses(needed)
        self._where = [-1] * len(program)
        pieces = in_pieces(program, WINDOW, needed)
        rows = [self._row(len(piece.angles), lanes) for piece in pieces]
        self.work = sum(len(piece.values) + 10 * len(piece.angles) for piece in pieces)
        self._load(needed, uniform, input_place, lanes)
        for k, piece in enumerate(pieces):
            if piece.angles:
                self._angles(piece.angles, rows[k], lanes)
                for values, first in ((piece.sines, rows[k][1]), (piece.cosines, rows[k][2])):
                    for i, position in values.items():
                        self._where[i] = first + position * self._bytes
            self._values(piece.values)
        where = self._where
        self._add(
            OUTPUT,
            (
                word
                for k, result in enumerate(program.outputs)
                for element, i in enumerate(result)
                for word in (8 * (len(program.input_sizes) + k), output_place(k, element), where[i])
            ),
            3,
        )
        self._add(END, (), 1)
        grain = 1 << max(3, self.room.bit_length() - 3)
        self.room = (
            -(-self.room // grain) * grain
        )  # so that lists of much the same length need code of the same text

    def _add(self, code: int, words: Sequence[int] | Iterator[int], each: int) -> None:
        """Instructions of one kind, of so many words `each`."""
        start = len(self.words)
        self.words.extend((code, 0))
        self.words.extend(words)
        self.words[start + 1] = (len(self.words) - start - 2) // each
        if code != END and not self.words[start + 1]:
            del self.words[start:]

    def _row(self, count: int, lanes: int) -> tuple[int, int, int]:
        """Places of so many angles, sines and cosines, each in whole vectors of the machine."""
        size = -(-count * lanes // WIDEST) * WIDEST // lanes
        first = self.room
        self.room += 3 * size
        return first * self._bytes, (first + size) * self._bytes, (first + 2 * size) * self._bytes

    def _slot(self) -> int:
        if self._free:
            return self._free.pop()
        self.room += 1
        return (self.room - 1) * self._bytes

    def _load(self, needed: Sequence[bool], uniform: Container[int], place: Place, lanes: int) -> None:
        """Arguments and constants into the workspace, where they stay."""
        program, where = self._program, self._where
        found: dict[int, list[int]] = {INPUT: [], UNIFORM: [], CONSTANT: []}
        for i, op in enumerate(program.op):
            if not needed[i] or (op != ca.OP_INPUT and op != ca.OP_CONST):
                continue
            where[i] = self._slot()
            a, b = program.a[i], program.b[i]
            if op == ca.OP_CONST:
                found[CONSTANT] += (where[i], *struct.unpack("=2i", struct.pack("=d", program.constants[a])))
            elif a in uniform and lanes > 1:
                found[UNIFORM] += (where[i], 8 * a, 8 * b)
            else:
                found[INPUT] += (where[i], 8 * a, place(a, b))
        for code, words in found.items():
            self._add(code, words, 3)

    def _angles(self, angles: Sequence[int], row: tuple[int, int, int], lanes: int) -> None:
        where, each = self._where, self._bytes
        self._add(COPY, [w for k, i in enumerate(angles) for w in (row[0] + k * each, where[i])], 2)
        zeros = range(row[0] + len(angles) * each, row[1], each)
        self._add(CONSTANT, [w for place in zeros for w in (place, 0, 0)], 3)
        self._add(ANGLES, [*row, (row[1] - row[0]) // 8], 4)

    def _values(self, values: Sequence[int]) -> None:
        program, where, uses, free, slot = self._program, self._where, self._uses, self._free, self._slot
        op, a, b, c = program.op, program.a, program.b, program.c
        leaf = (ca.OP_INPUT, ca.OP_CONST, *TRIGONOMETRIC)
        for kind, run in _runs(values, program):
            words: list[int] = []
            done: list[int] = []
            for i in run:
                where[i] = place = slot()
                words.append(place)
                for j in (a[i], b[i], c[i]):
                    if j >= 0:
                        words.append(where[j])
                        uses[j] -= 1
                        if not uses[j]:
                            done.append(j)
            self._add(CODES[kind], words, 2 + (b[run[0]] >= 0) + (kind < 0))
            free += [where[j] for j in done if op[j] not in leaf]


def constants_of(words: array[int]) -> tuple[int, int]:
    """Where the constants of a list begin, and how many there are: each has its place and two words of its number."""
    at = 0
    while words[at] in (INPUT, UNIFORM, CONSTANT):  # which come first
        if words[at] == CONSTANT:
            return at + 2, words[at + 1]
        at += 2 + 3 * words[at + 1]
    return at, 0


def _runs(values: Sequence[int], program: InstructionList) -> Iterator[tuple[int, list[int]]]:
    """The values in an order that respects their dependencies, as many of one operation together as there are."""
    op, a, b, c = program.op, program.a, program.b, program.c
    waiting = dict.fromkeys(values, 0)
    followers: dict[int, list[int]] = {i: [] for i in values}
    ready: dict[int, list[int]] = {}
    for i in values:
        for j in (a[i], b[i], c[i]):
            if j in waiting:
                followers[j].append(i)
                waiting[i] += 1
        if not waiting[i]:
            ready.setdefault(op[i], []).append(i)
    while ready:
        kind = max(ready, key=lambda x: len(ready[x]))
        run = ready.pop(kind)
        yield kind, run
        for i in run:
            for j in followers[i]:
                waiting[j] -= 1
                if not waiting[j]:
                    ready.setdefault(op[j], []).append(j)


def function(name: str, arguments: int, lanes: int, target: Target) -> str:
    """IR of `void NAME(ptr in0, ..., ptr out0, ..., ptr workspace)` that runs the list at `@NAME_list`."""
    pointers = [f"%a{k}" for k in range(arguments)]
    lines = [f"%table = alloca [{max(arguments, 1)} x ptr], align 8"]
    for k, pointer in enumerate(pointers):
        lines.append(f"%p{k} = getelementptr inbounds ptr, ptr %table, i64 {k}")
        lines.append(f"store ptr {pointer}, ptr %p{k}, align 8")
    lines.append(f"%list = load ptr, ptr @{name}_list, align 8")
    lines.append(f"call void @{interpreter_symbol(lanes, target)}(ptr %list, ptr %table, ptr %w)")
    parameters = ", ".join(f"ptr {x}" for x in (*pointers, "%w"))
    body = "\n  ".join([*lines, "ret void"])
    return f"define internal void @{name}({parameters}) noinline #0 {{\n  {body}\n}}\n"


def module(lanes: int, target: Target) -> str:
    """IR of `void alembert_run(ptr list, ptr table, ptr workspace)`; the table is of addresses of arguments and results."""
    T = vector_type(lanes)
    write = Operations(lanes)
    blocks = [
        _block(INPUT, 3, _address(1, "%table") + _loaded(T, lanes)),
        _block(
            UNIFORM,
            3,
            [*_address(1, "%table"), "%sUNIT = load double, ptr %fUNIT, align 8", *_splat(T, lanes)],
        ),
        _block(
            CONSTANT,
            3,
            [
                "%fUNIT = getelementptr inbounds i32, ptr %rUNIT, i64 1",
                "%sUNIT = load double, ptr %fUNIT, align 4",
                *_splat(T, lanes),
            ],
        ),
        _block(
            OUTPUT,
            3,
            [*_address(0, "%table"), *_operand(2, T, lanes), f"store {T} %x2UNIT, ptr %fUNIT, align 8"],
        ),
        _block(COPY, 2, [*_operand(1, T, lanes), *_stored(f"{T} %x1UNIT", lanes)]),
        _block(ANGLES, 4, _sincos(target)),
    ]
    for op in _OPERATIONS:
        count = 3 if op < 0 else 2 if op in BINARY else 1
        lines = [line for k in range(count) for line in _operand(k + 1, T, lanes)]
        write.write(lines, CODES[op], op, "%yUNIT", *(f"%x{k + 1}UNIT" for k in range(count)))
        blocks.append(_block(CODES[op], 1 + count, [*lines, *_stored(f"{T} %yUNIT", lanes)]))
    codes = [*range(1, 7), *CODES.values()]
    again = ", ".join(f"[%end{k}, %loop{k}]" for k in codes)
    cases = " ".join(f"i32 {k}, label %loop{k}" for k in codes)
    text = f"""\
define internal void @alembert_run(ptr %list, ptr %table, ptr %w) #0 {{
entry:
  br label %next
next:
  %pc = phi ptr [%list, %entry], {again}
  %code = load i32, ptr %pc, align 4
  %where = getelementptr inbounds i32, ptr %pc, i64 1
  %short = load i32, ptr %where, align 4
  %count = zext i32 %short to i64
  %first = getelementptr inbounds i32, ptr %pc, i64 2
  switch i32 %code, label %done [{cases}]
{"".join(blocks)}done:
  ret void
}}
"""
    return "\n".join([target.attributes, *library_calls(write.helpers, fused=target.fused), text])


def _block(code: int, words: int, lines: Sequence[str]) -> str:
    """IR of the loop over instructions of one kind."""
    body = "\n  ".join(line.replace("UNIT", f"_{code}") for line in lines)
    return f"""\
loop{code}:
  %r_{code} = phi ptr [%first, %next], [%end{code}, %loop{code}]
  %k_{code} = phi i64 [%count, %next], [%left{code}, %loop{code}]
  {body}
  %end{code} = getelementptr inbounds i32, ptr %r_{code}, i64 {words}
  %left{code} = sub i64 %k_{code}, 1
  %more{code} = icmp ne i64 %left{code}, 0
  br i1 %more{code}, label %loop{code}, label %next
"""


def _word(k: int, name: str) -> list[str]:
    """Lines that read word `k` of an instruction."""
    return [
        f"%q{name}UNIT = getelementptr inbounds i32, ptr %rUNIT, i64 {k}",
        f"%i{name}UNIT = load i32, ptr %q{name}UNIT, align 4",
        f"%l{name}UNIT = zext i32 %i{name}UNIT to i64",
    ]


def _place(k: int) -> list[str]:
    """Lines that make the address of the value at word `k`."""
    return [*_word(k, str(k)), f"%p{k}UNIT = getelementptr inbounds i8, ptr %w, i64 %l{k}UNIT"]


def _operand(k: int, T: str, lanes: int) -> list[str]:
    return [*_place(k), f"%x{k}UNIT = load {T}, ptr %p{k}UNIT, align {8 * lanes}"]


def _stored(value: str, lanes: int) -> list[str]:
    return [*_place(0), f"store {value}, ptr %p0UNIT, align {8 * lanes}"]


def _address(k: int, table: str) -> list[str]:
    """Lines that make the address of an element of an argument or a result, of which words k and k + 1 tell."""
    return [
        *_word(k, "e"),
        *_word(k + 1, "f"),
        f"%teUNIT = getelementptr inbounds i8, ptr {table}, i64 %leUNIT",
        "%geUNIT = load ptr, ptr %teUNIT, align 8",
        "%fUNIT = getelementptr inbounds i8, ptr %geUNIT, i64 %lfUNIT",
    ]


def _loaded(T: str, lanes: int) -> list[str]:
    return [f"%yUNIT = load {T}, ptr %fUNIT, align 8", *_stored(f"{T} %yUNIT", lanes)]


def _splat(T: str, lanes: int) -> list[str]:
    if lanes == 1:
        return _stored("double %sUNIT", 1)
    return [
        f"%eUNIT = insertelement {T} poison, double %sUNIT, i64 0",
        f"%yUNIT = shufflevector {T} %eUNIT, {T} poison, <{lanes} x i32> zeroinitializer",
        *_stored(f"{T} %yUNIT", lanes),
    ]


def _sincos(target: Target) -> list[str]:
    rows = [line for k in range(3) for line in _place(k)]
    places = ", ".join(f"ptr %p{k}UNIT" for k in range(3))
    return [*rows, *_word(3, "n"), f"call void @{sincos_symbol(target)}({places}, i64 %lnUNIT)"]


FEWEST_OF_FORM = 500  # instructions of a function worth to look for
MOST_FORMS = 200
"""lists that are kept; some hundred kilobytes each"""
_SPECIAL = (0.0, 1.0, -1.0)

KNOWN_FORMS: dict[tuple[object, ...], _Known] = {}


@dataclass(frozen=True)
class Form:
    """Of a function: what tells it from functions of other forms, and its numbers, each once."""

    key: bytes
    numbers: tuple[float, ...]
    algorithm: np.ndarray
    """its instructions, which are not to be looked for again"""


@dataclass(frozen=True)
class _Known:
    code: Code
    places: dict[str, tuple[np.ndarray, np.ndarray]]
    """for each list, words where numbers are, and which ones"""


def form_of(function: ca.Function) -> Form | None:
    """None where it is not worth it."""
    if not function.is_a("SXFunction") or function.n_instructions() < FEWEST_OF_FORM:
        return None
    found = algorithm(function)
    table = found.copy()
    constant = np.flatnonzero(table[:, 0] == ca.OP_CONST)
    if np.any(table[:, 0] == ca.OP_ERFINV):  # it brings constants of its own
        return None
    classes: dict[str, int] = {}
    special: dict[int, str] = {}
    order = []
    for k in constant.tolist():
        value = function.instruction_constant(k)
        number = classes.setdefault(value.hex(), len(classes))
        if value in _SPECIAL or not math.isfinite(value):
            special[number] = value.hex()
        order.append(number)
    table[constant, 2], table[constant, 3] = order, 0
    sizes = [function.sparsity_in(k) for k in range(function.n_in())]
    sizes += [function.sparsity_out(k) for k in range(function.n_out())]
    shapes = [x.shape if x.is_dense() else (x.shape, x.colind(), x.row()) for x in sizes]
    digest = hashlib.sha256(table.tobytes())
    digest.update(repr((function.n_in(), shapes, special)).encode())
    return Form(digest.digest(), tuple(float.fromhex(x) for x in classes), found)


def known_or_made(
    function: ca.Function,
    options: tuple[object, ...],
    make: Callable[[np.ndarray | None], Code],
) -> Code:
    """The interpreted code of a function: that of one of its form with its own numbers, or what `make` makes.

    `make` gets the instructions, where they were looked for already; `options` tells ways to make it from others.
    """
    form = form_of(function)
    if form is None:
        return make(None)
    key = form.key, *options
    code = recall(key, form)
    if code is None:
        code = make(form.algorithm)
        if code.lists:
            remember(key, form, code)
    return code


def remember(key: tuple[object, ...], form: Form, code: Code) -> None:
    """Keep the list of a function of this form."""
    which = {value.hex(): k for k, value in enumerate(form.numbers) if value not in _SPECIAL}
    places = {}
    for name, words in code.lists.items():
        start, count = constants_of(words)
        at = start + 3 * np.arange(count)
        table = np.array(words, dtype=np.int32)
        values = table[np.stack([at + 1, at + 2], axis=1)].view("=f8").ravel().tolist() if count else []
        number = np.array([which.get(x.hex(), -1) for x in values], dtype=np.int64)
        places[name] = at[number >= 0] + 1, number[number >= 0]
    if len(KNOWN_FORMS) >= MOST_FORMS:
        KNOWN_FORMS.clear()
    KNOWN_FORMS[key] = _Known(code, places)


def recall(key: tuple[object, ...], form: Form) -> Code | None:
    """The list of a function of this form, with its own numbers."""
    known = KNOWN_FORMS.get(key)
    if known is None:
        return None
    lists = {}
    for name, words in known.code.lists.items():
        table = np.array(words, dtype=np.int32)
        at, which = known.places[name]
        halves = (
            np.array(form.numbers)[which].view(np.int32).reshape(-1, 2)
            if len(which)
            else np.zeros((0, 2), int)
        )
        table[at], table[at + 1] = halves[:, 0], halves[:, 1]
        lists[name] = array("i", table.tobytes())
    return dataclasses.replace(known.code, lists=lists)
