"""Straight-line code that is run from a list of its instructions: what a kernel does until machine code of it pays.

LLVM takes some 20 us for an instruction; a list of them is made in a tenth of that, and runs two to five times slower. So
code of which little is run is never compiled. Its function only calls the interpreter, which is the same for all kernels
with so many lanes, with the list:

    operation, count, then for each of `count` instructions the places of its result and of its operands

Places are bytes into the workspace, where all values are: arguments and constants are copied there first. Values are
computed window by window in the order of their dependencies, instructions of one kind together, so that there is little to
decide on the way.
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
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from alembert.engine.instructions import (
    BINARY,
    FMA,
    FMS,
    FNMA,
    SELECT,
    TRIGONOMETRIC,
    UNARY,
    Chunk,
    InstructionList,
    algorithm,
    in_groups,
)
from alembert.engine.target import Code, Target, interpreter_symbol, sincos_symbol
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
    """The list of a program for so many lanes, and the room for its values (vectors).

    Values are ordered within windows: by how many of the window have to be there before, then by their operation. What
    no later window reads makes room for the next.
    """

    def __init__(
        self,
        program: InstructionList,
        lanes: int,
        uniform: Container[int],
        input_place: Place,
        output_place: Place,
    ) -> None:
        self.room = 0
        self._program, self._bytes = program, 8 * lanes
        self._op, self._operands = program.arrays()
        self._where = np.full(len(program), -1, dtype=np.int64)
        self._depth = [0] * (len(program) + 1)
        """of values in their window, which is in higher digits; the last is that of operands that are not there"""
        groups = in_groups(program)
        rows = [self._row(group, lanes) for group in groups]
        self.work = sum(len(group.values) + 10 * len(group.angles) for group in groups)
        words = self._loads(uniform, input_place, lanes)
        windows = _windows(groups)
        dying = self._dying(groups, windows)
        free = np.empty(0, dtype=np.int64)
        for group, row, places in zip(groups, rows, windows, strict=True):
            if group.angles:
                words += self._angles(group.angles, row)
                free = np.concatenate([free, self._where[dying[places[0]]]])
            else:
                order = self._ordered(group.values, places[0])
                for window, first in zip(places, range(0, len(order), WINDOW), strict=True):
                    free = self._place(order[first : first + WINDOW], free)
                    free = np.concatenate([free, self._where[dying[window]]])
                words += self._values(order)
        ends = [
            (8 * (len(program.input_sizes) + k), output_place(k, element), i)
            for k, result in enumerate(program.outputs)
            for element, i in enumerate(result)
        ]
        table = np.array(ends, dtype=np.int64).reshape(-1, 3)
        table[:, 2] = self._where[table[:, 2]]
        words += [*_instructions(OUTPUT, table), np.array([END, 0])]
        self.words = array("i", np.concatenate(words).astype(np.int32).tobytes())
        # a power of two, so that lists of much the same length need code of the same text
        self.room = max(8, 1 << (self.room - 1).bit_length())

    def _row(self, group: Chunk, lanes: int) -> tuple[int, int, int]:
        """Places of the angles of a group, their sines and cosines, each in whole vectors of the machine."""
        size = -(-len(group.angles) * lanes // WIDEST) * WIDEST // lanes
        row = tuple((self.room + k * size) * self._bytes for k in range(3))
        self.room += 3 * size
        for values, first in ((group.sines, row[1]), (group.cosines, row[2])):
            self._where[list(values)] = first + np.array(list(values.values()), dtype=np.int64) * self._bytes
        return row  # type: ignore[return-value]

    def _slots(self, count: int) -> np.ndarray:
        """New places."""
        self.room += count
        return np.arange(self.room - count, self.room) * self._bytes

    def _loads(self, uniform: Container[int], place: Place, lanes: int) -> list[np.ndarray]:
        """Arguments and constants into the workspace, where they stay."""
        program = self._program
        found: dict[int, list[tuple[int, int, int]]] = {INPUT: [], UNIFORM: [], CONSTANT: []}
        leaves = np.flatnonzero((self._op == ca.OP_INPUT) | (self._op == ca.OP_CONST))
        self._where[leaves] = self._slots(len(leaves))
        for i, where in zip(leaves.tolist(), self._where[leaves].tolist(), strict=True):
            a, b = program.a[i], program.b[i]
            if program.op[i] == ca.OP_CONST:
                number = struct.unpack("=2i", struct.pack("=d", program.constants[a]))
                found[CONSTANT].append((where, *number))
            elif a in uniform and lanes > 1:
                found[UNIFORM].append((where, 8 * a, 8 * b))
            else:
                found[INPUT].append((where, 8 * a, place(a, b)))
        return [x for code, table in found.items() for x in _instructions(code, np.array(table))]

    def _dying(self, groups: Sequence[Chunk], windows: Sequence[range]) -> list[np.ndarray]:
        """For each window, the computed values that are read in it for the last time; results are read at the end."""
        last = np.full(len(self._op) + 1, -1)  # one more for operands that are not there
        computed = np.zeros(len(self._op) + 1, dtype=bool)
        for group, places in zip(groups, windows, strict=True):
            last[group.angles] = places[0]
            window = places[0] + np.arange(len(group.values)) // WINDOW
            last[group.values] = window
            for operands in self._operands[:, group.values]:
                np.maximum.at(last, operands, window)
            computed[group.values] = True
        computed[[i for result in self._program.outputs for i in result]] = False
        values = np.flatnonzero(computed)
        values = values[np.argsort(last[values], kind="stable")]
        return np.split(
            values, np.searchsorted(last[values], np.arange(1, windows[-1][-1] + 1 if windows else 1))
        )

    def _angles(self, angles: Sequence[int], row: tuple[int, int, int]) -> list[np.ndarray]:
        first, after, each = row[0], row[0] + len(angles) * self._bytes, self._bytes
        return [
            *_instructions(COPY, np.stack([np.arange(first, after, each), self._where[angles]], axis=1)),
            *_instructions(CONSTANT, np.array([(place, 0, 0) for place in range(after, row[1], each)])),
            *_instructions(ANGLES, np.array([[*row, (row[1] - row[0]) // 8]])),
        ]

    def _ordered(self, values: Sequence[int], first: int) -> np.ndarray:
        """Within windows, of which the first is given, by depth and operation."""
        a, b, c, depth = self._program.a, self._program.b, self._program.c, self._depth
        for k, start in enumerate(range(0, len(values), WINDOW), first):
            base = k << 20
            for i in values[start : start + WINDOW]:
                depth[i] = 1 + max(base, depth[a[i]], depth[b[i]], depth[c[i]])
        given = np.array(values)
        return given[np.lexsort((self._op[given], [depth[i] for i in values]))]

    def _place(self, values: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Places for values; those that are free after it."""
        left = max(0, len(free) - len(values))
        reused = len(free) - left
        self._where[values[:reused]] = free[left:]
        self._where[values[reused:]] = self._slots(len(values) - reused)
        return free[:left]

    def _values(self, values: np.ndarray) -> list[np.ndarray]:
        """Instructions that compute them in this order, those of one kind together."""
        operands = self._operands[:, values]
        rows = np.column_stack([self._where[values], *np.where(operands < 0, -1, self._where[operands])])
        op = self._op[values]
        starts = np.flatnonzero(np.diff(op, prepend=op[0] - 1))
        runs = np.diff(starts, append=len(op))
        codes = np.array([CODES[x] for x in op[starts].tolist()])
        head = np.full((len(values), 2), -1)
        head[starts] = np.stack([codes, runs], axis=1)
        table = np.concatenate([head, rows], axis=1).ravel()
        return [table[table >= 0]]


def _windows(groups: Sequence[Chunk]) -> list[range]:
    """Which windows each group takes; angles are one."""
    counts = [max(1, -(-len(group.values) // WINDOW)) for group in groups]
    ends = np.cumsum(counts).tolist()
    return [range(end - count, end) for end, count in zip(ends, counts, strict=True)]


def _instructions(code: int, table: np.ndarray) -> list[np.ndarray]:
    """Words of instructions of one kind, a row each."""
    return [np.array([code, len(table)]), table.ravel()] if len(table) else []


def constants_of(words: array[int]) -> tuple[int, int]:
    """Where the constants of a list begin, and how many there are: each has its place and two words of its number."""
    at = 0
    while words[at] in (INPUT, UNIFORM, CONSTANT):  # which come first
        if words[at] == CONSTANT:
            return at + 2, words[at + 1]
        at += 2 + 3 * words[at + 1]
    return at, 0


def function(name: str, arguments: int, lanes: int, target: Target) -> str:
    """IR of `void NAME(ptr in0, ..., ptr out0, ..., ptr workspace)` that runs the list at `@NAME_list`."""
    pointers = [f"%a{k}" for k in range(arguments)]
    lines = [f"%table = alloca [{max(arguments, 1)} x ptr], align 8"]
    for k, pointer in enumerate(pointers):
        lines.append(f"%p{k} = getelementptr inbounds ptr, ptr %table, i64 {k}")
        lines.append(f"store ptr {pointer}, ptr %p{k}, align 8")
    lines.append(f"%list = load ptr, ptr @{name}_list, align 8")
    lines.append(f"call void @{interpreter_symbol(lanes, target)}(ptr %table, ptr %list, ptr %w)")
    parameters = ", ".join(f"ptr {x}" for x in (*pointers, "%w"))
    body = "\n  ".join([*lines, "ret void"])
    return f"define internal void @{name}({parameters}) noinline #0 {{\n  {body}\n}}\n"


def module(lanes: int, target: Target) -> str:
    """IR of `void alembert_run(ptr table, ptr list, ptr workspace)`; the table is of addresses of arguments and results."""
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
define internal void @alembert_run(ptr %table, ptr %list, ptr %w) #0 {{
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
