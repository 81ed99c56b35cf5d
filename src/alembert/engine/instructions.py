"""Instructions of straight-line code: a CasADi function read into single-assignment form, simplified, and cut into chunks.

Value numbering gives every value one name, however often the expression graph repeats it. Then

1. values that no output needs are dropped;
2. divisions by a common denominator become products with one reciprocal;
3. the two halves of a choice, of which one is zero, become one selection;
4. a product that only feeds sums becomes a fused multiply-add.

All of it is decided here, before the number of lanes is known: every lane width runs the same arithmetic,
so that a state gives the same bits alone, in any lane and in any batch.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from alembert.errors import UnsupportedError

# Operations of our own; CasADi's are its non-negative codes.
FMA = -1  # a*b + c
FMS = -2  # a*b - c
FNMA = -3  # c - a*b
SELECT = -4  # b where a is not zero, otherwise c
OF_THREE = frozenset((FMA, FMS, FNMA, SELECT))
TRIGONOMETRIC = frozenset((ca.OP_SIN, ca.OP_COS))
BITS = 28  # of the number of a value
FEW = 100  # instructions that are asked for one by one
ANGLES = 256  # in one call for sines and cosines

COMMUTATIVE = frozenset((ca.OP_ADD, ca.OP_MUL, ca.OP_EQ, ca.OP_NE, ca.OP_AND, ca.OP_OR))

UNARY = frozenset(
    getattr(ca, f"OP_{name}")
    for name in """NEG FABS SIGN SQRT FLOOR CEIL NOT SIN COS TAN ASIN ACOS ATAN SINH COSH TANH ASINH ACOSH
    ATANH EXP LOG EXPM1 LOG1P ERF""".split()  # noqa: SIM905
)
BINARY = frozenset(
    getattr(ca, f"OP_{name}")
    for name in """ADD SUB MUL DIV POW ATAN2 FMOD REMAINDER HYPOT COPYSIGN FMIN FMAX LT LE EQ NE AND OR
    IF_ELSE_ZERO""".split()  # noqa: SIM905
)

_NAMES = {getattr(ca, name): name for name in dir(ca) if name.startswith("OP_")}


@dataclass
class InstructionList:
    """Values in topological order: value `i` is `op[i]` of the values `a[i]`, `b[i]`, `c[i]` (-1: none).

    An input has `a` = argument and `b` = element; a constant has `a` = index into `constants`.
    `outputs[k][e]` is the value of element `e` of result `k`. Elements count in C order.
    """

    input_sizes: list[int]
    outputs: list[list[int]] = field(default_factory=list)
    op: list[int] = field(default_factory=list)
    a: list[int] = field(default_factory=list)
    b: list[int] = field(default_factory=list)
    c: list[int] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)
    _numbers: dict[int, int] = field(default_factory=dict)
    """of values by operation and operands, which are packed into one integer"""
    _constant_numbers: dict[str, int] = field(default_factory=dict)

    def copy(self) -> InstructionList:
        """The same instructions, in lists of their own."""
        lists = (list(x) for x in (self.op, self.a, self.b, self.c, self.constants))
        return InstructionList(list(self.input_sizes), [list(x) for x in self.outputs], *lists)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.op)

    def value(self, op: int, a: int, b: int = -1) -> int:
        if a > b and op in COMMUTATIVE:
            a, b = b, a
        key = (op << 2 * BITS) + (a << BITS) + b
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.op)
            self.op.append(op)
            self.a.append(a)
            self.b.append(b)
            self.c.append(-1)
        return number

    def constant(self, value: float) -> int:
        text = value.hex()  # tells -0.0 from 0.0
        index = self._constant_numbers.get(text)
        if index is None:
            index = self._constant_numbers[text] = len(self.constants)
            self.constants.append(value)
        return self.value(ca.OP_CONST, index)

    def operands(self, i: int) -> tuple[int, ...]:
        op = self.op[i]
        if op == ca.OP_INPUT or op == ca.OP_CONST:
            return ()
        if op in OF_THREE:
            return (self.a[i], self.b[i], self.c[i])
        return (self.a[i],) if self.b[i] < 0 else (self.a[i], self.b[i])

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The operations, and a row for each operand."""
        return np.array(self.op, dtype=np.int64), np.array([self.a, self.b, self.c], dtype=np.int64)

    def needed(self) -> np.ndarray:
        """Which values some output depends on."""
        return _needed(*self.arrays(), self.outputs)[0]


def _needed(
    op: np.ndarray, operands: np.ndarray, outputs: Sequence[Sequence[int]]
) -> tuple[np.ndarray, np.ndarray]:
    """Which values some output depends on, and how often each of them is an operand or an output."""
    computed = (op != ca.OP_INPUT) & (op != ca.OP_CONST)
    read = operands[:, computed]
    uses = np.bincount(read[read >= 0], minlength=len(op))
    uses += np.bincount(
        np.array([i for result in outputs for i in result], dtype=np.int64), minlength=len(op)
    )
    needed = np.ones(len(op), dtype=bool)
    unused = np.flatnonzero(uses == 0)
    while len(unused):
        needed[unused] = False
        read = operands[:, unused[computed[unused]]]
        read = read[read >= 0]
        np.subtract.at(uses, read, 1)
        unused = np.unique(read[uses[read] == 0])
    return needed, uses


def from_casadi(
    function: ca.Function, *, fuse: bool = True, table: np.ndarray | None = None
) -> InstructionList:
    """The program of an `SX` function; `fuse` where the machine has fused multiply-adds.

    `table` is what `algorithm` finds, where it is known.
    """
    program = share_reciprocals(read(function, table))
    join_choices(program)
    return without_unused(program, fuse=fuse)


def interleaved(
    function: ca.Function, *, fuse: bool = True, table: np.ndarray | None = None
) -> InstructionList:
    """The same program with its last outputs, square matrices of one size, computed side by side after the others.

    Entries that couple the same two rows follow each other: they share operands, which then stay in registers.
    """
    values = function(
        *(symbols := [ca.SX.sym(f"x{k}", *function.size_in(k)) for k in range(function.n_in())])
    )
    outputs = list(values) if isinstance(values, tuple) else [values]
    n = outputs[-1].shape[0]
    places = [(m, k, 0) for m, x in enumerate(outputs) if x.shape != (n, n) for k in range(x.numel())] + [
        (m, i, j)
        for k in range(n)
        for other in range(k + 1)
        for i, j in dict.fromkeys([(k, other), (other, k)])
        for m, x in enumerate(outputs)
        if x.shape == (n, n)
    ]
    entries = [outputs[m][i, j] for m, i, j in places]
    single = from_casadi(ca.Function(function.name(), symbols, [ca.densify(ca.vertcat(*entries))]), fuse=fuse)
    computed = single.outputs[0]
    single.outputs = [[0] * x.numel() for x in outputs]
    for value, (m, i, j) in zip(computed, places, strict=True):
        single.outputs[m][i * outputs[m].shape[1] + j] = value
    return single


def read(function: ca.Function, table: np.ndarray | None = None) -> InstructionList:
    if not function.is_a("SXFunction"):
        function = _expanded(function)
    if function.has_free():
        names = ", ".join(str(s) for s in function.free_sx())
        raise UnsupportedError(f"{function.name()}: the expressions contain free symbols: {names}")

    program = InstructionList(input_sizes=[function.numel_in(k) for k in range(function.n_in())])
    rows_in = [_elements(function.sparsity_in(k)) for k in range(function.n_in())]
    rows_out = [_elements(function.sparsity_out(k)) for k in range(function.n_out())]
    zero, _ = program.constant(0.0), program.constant(1.0)
    program.outputs = [[zero] * function.numel_out(k) for k in range(function.n_out())]

    value, numbers = program.value, program._numbers
    ops, first, second = program.op, program.a, program.b
    work = [-1] * max(1, function.sz_w())
    columns = (algorithm(function) if table is None else table).T.tolist()
    for k, (op, i, a, b) in enumerate(zip(*columns, strict=True)):
        if op in BINARY:  # as `value` does; most of the time goes here
            x, y = work[a], work[b]
            if x > y and op in COMMUTATIVE:
                x, y = y, x
            key = (op << 2 * BITS) + (x << BITS) + y
            number = numbers.get(key)
            if number is None:
                number = numbers[key] = len(ops)
                ops.append(op)
                first.append(x)
                second.append(y)
            work[i] = number
        elif op in UNARY:
            work[i] = value(op, work[a])
        elif op == ca.OP_CONST:
            work[i] = program.constant(function.instruction_constant(k))
        elif op == ca.OP_INPUT:
            work[i] = value(op, a, rows_in[a][b])
        elif op == ca.OP_OUTPUT:
            program.outputs[i][rows_out[i][b]] = work[a]
        elif op in _DERIVED:
            operands = (work[a], work[b])[: 2 if op in _DERIVED_BINARY else 1]
            work[i] = _DERIVED[op](program, *operands)
        else:
            name = _NAMES.get(op, str(op)).removeprefix("OP_")
            raise UnsupportedError(f"{function.name()}: no machine code for the CasADi operation {name}")
    program.c = [-1] * len(ops)
    return program


def algorithm(function: ca.Function) -> np.ndarray:
    """Every instruction of an `SX` function as CasADi keeps it: operation, place of the result, places of the operands.

    Of an input, the operands are the argument and its nonzero; of an output, they are the value and the nonzero; of a
    constant they are not told. To ask for them one by one takes more time than all else that is done here, so they are
    looked for in the text that CasADi stores functions as: four numbers of 32 bits each, one instruction after the other. It
    is the right place where twenty of them and more, the first and the last ones too, are those that CasADi tells; where
    there is none, all are asked for.
    """
    count = function.n_instructions()
    if count >= FEW:
        text = np.frombuffer(function.serialize().encode(), dtype=np.uint8) - ord("a")
        content = (text[0::2] + 16 * text[1::2]).astype(np.uint8).tobytes()
        samples = sorted({*range(8), *range(0, count, count // 20), *range(count - 8, count)})
        known = {
            k: struct.pack("<4i", *_instruction(function, k))
            for k in samples
            if function.instruction_id(k) != ca.OP_CONST
        }
        first, wanted = next(iter(known.items()))
        start = content.find(wanted)
        while start >= 0:
            begin = start - 16 * first
            if begin >= 0 and all(content[begin + 16 * k :][:16] == x for k, x in known.items()):
                return np.frombuffer(content, "<i4", 4 * count, begin).reshape(-1, 4).copy()
            start = content.find(wanted, start + 1)
    return np.array([_instruction(function, k) for k in range(count)], dtype="<i4").reshape(-1, 4)


def _instruction(function: ca.Function, k: int) -> tuple[int, int, int, int]:
    op, source, target = (
        function.instruction_id(k),
        function.instruction_input(k),
        function.instruction_output(k),
    )
    if op == ca.OP_OUTPUT:
        return op, target[0], source[0], target[1]
    a, b = (*source, *source, 0, 0)[:2]
    return op, target[0], a, b


def _expanded(function: ca.Function) -> ca.Function:
    try:
        return function.expand()
    except RuntimeError as error:
        message = "machine code needs scalar (SX) expressions, and this function does not expand to them"
        raise UnsupportedError(f"{function.name()}: {message}") from error


def _elements(sparsity: ca.Sparsity) -> list[int]:
    """For each nonzero, its place in a dense array in C order."""
    rows, columns = sparsity.get_triplet()
    width = sparsity.size2()
    return [row * width + column for row, column in zip(rows, columns, strict=True)]


def _inverse_error_function(p: InstructionList, x: int) -> int:
    """CasADi's approximation with more Newton steps; its own two, for x > -0.7, leave errors of 3e-6."""

    def polynomial(z: int, *coefficients: float) -> int:
        result = p.constant(coefficients[0])
        for coefficient in coefficients[1:]:
            result = p.value(ca.OP_ADD, p.value(ca.OP_MUL, result, z), p.constant(coefficient))
        return result

    def tail(y: int) -> int:
        half = p.value(ca.OP_MUL, p.value(ca.OP_SUB, p.constant(1.0), y), p.constant(0.5))
        z = p.value(ca.OP_SQRT, p.value(ca.OP_NEG, p.value(ca.OP_LOG, half)))
        return p.value(
            ca.OP_DIV,
            polynomial(z, 1.641345311, 3.429567803, -1.624906493, -1.970840454),
            polynomial(z, 1.637067800, 3.543889200, 1.0),
        )

    def either(condition: int, yes: int, no: int) -> int:
        first = p.value(ca.OP_IF_ELSE_ZERO, condition, yes)
        return p.value(ca.OP_ADD, first, p.value(ca.OP_IF_ELSE_ZERO, p.value(ca.OP_NOT, condition), no))

    size = p.value(ca.OP_FABS, x)
    z = p.value(ca.OP_MUL, size, size)
    middle = p.value(
        ca.OP_DIV,
        p.value(ca.OP_MUL, size, polynomial(z, -0.140543331, 0.914624893, -1.645349621, 0.886226899)),
        polynomial(z, -0.329097515, 0.012229801, 1.442710462, -2.118377725, 1.0),
    )
    y = either(p.value(ca.OP_LT, size, p.constant(0.7)), middle, tail(size))
    for _ in range(4):
        slope = p.value(ca.OP_EXP, p.value(ca.OP_NEG, p.value(ca.OP_MUL, y, y)))
        slope = p.value(ca.OP_MUL, p.constant(2.0 / math.sqrt(math.pi)), slope)
        step = p.value(ca.OP_DIV, p.value(ca.OP_SUB, p.value(ca.OP_ERF, y), size), slope)
        y = p.value(ca.OP_SUB, y, step)
    one = p.constant(1.0)
    y = either(p.value(ca.OP_EQ, size, one), p.constant(math.inf), y)
    y = either(p.value(ca.OP_LT, one, size), p.constant(math.nan), y)
    return p.value(ca.OP_COPYSIGN, y, x)


_DERIVED_BINARY = (ca.OP_LIFT, ca.OP_CONSTPOW)
_DERIVED: dict[int, Callable[..., int]] = {
    ca.OP_ASSIGN: lambda p, x: x,
    ca.OP_LIFT: lambda p, x, guess: x,
    ca.OP_SQ: lambda p, x: p.value(ca.OP_MUL, x, x),
    ca.OP_TWICE: lambda p, x: p.value(ca.OP_ADD, x, x),
    ca.OP_INV: lambda p, x: p.value(ca.OP_DIV, p.constant(1.0), x),
    ca.OP_CONSTPOW: lambda p, x, y: p.value(ca.OP_POW, x, y),
    ca.OP_ERFINV: _inverse_error_function,
}


def share_reciprocals(program: InstructionList) -> InstructionList:
    """Divide by each denominator once.

    A division costs as much as some ten products. CasADi writes x*(1/d) as x/d, so that the articulated
    recursions divide by the same d many times over; x*(1/d) differs from x/d by at most one rounding.
    """
    op, (a, b, c) = program.arrays()
    divisions = np.flatnonzero(op == ca.OP_DIV)
    shared = np.flatnonzero(np.bincount(b[divisions], minlength=1) > 1)
    if not len(shared):
        return program
    one = program.constant(1.0)
    divisions = divisions[np.isin(b[divisions], shared)]
    # each reciprocal comes right after its denominator; nothing is before the constants 0 and 1
    place = np.arange(len(op)) + np.searchsorted(shared, np.arange(len(op)))
    reciprocal = place[shared] + 1
    by = np.full(len(op), -1)
    by[shared] = reciprocal
    alone = divisions[a[divisions] == one]
    op[divisions], by_value = ca.OP_MUL, by[b[divisions]]
    leaf = (op == ca.OP_INPUT) | (op == ca.OP_CONST)
    now = place.copy()
    now[alone] = by[b[alone]]
    a, b, c = (np.where(kept := leaf | (x < 0), x, now[np.where(kept, 0, x)]) for x in (a, b, c))
    b[divisions] = by_value
    swapped = divisions[a[divisions] > b[divisions]]
    a[swapped], b[swapped] = b[swapped], a[swapped]
    made = np.empty((4, len(op) + len(shared)), dtype=np.int64)
    made[:, place] = op, a, b, c
    made[:, reciprocal] = np.array([np.full(len(shared), x) for x in (ca.OP_DIV, now[one], 0, -1)])
    made[2, reciprocal] = place[shared]
    outputs = [now[np.array(output, dtype=np.int64)].tolist() for output in program.outputs]
    codes, first, second, third = made.tolist()
    return InstructionList(
        program.input_sizes, outputs, codes, first, second, third, constants=program.constants
    )


def join_choices(program: InstructionList) -> None:
    """CasADi writes a choice as a sum, (c ? x : 0) + (not c ? y : 0): select at once."""
    op, a, b, c = program.op, program.a, program.b, program.c
    if ca.OP_IF_ELSE_ZERO not in op:
        return
    codes, first, second = (np.array(x, dtype=np.int64) for x in (op, a, b))
    half = codes == ca.OP_IF_ELSE_ZERO
    sums = np.flatnonzero(codes == ca.OP_ADD)
    for i in sums[half[first[sums]] & half[second[sums]]].tolist():
        for yes, no in ((a[i], b[i]), (b[i], a[i])):
            if op[a[no]] == ca.OP_NOT and a[a[no]] == a[yes]:
                op[i], a[i], b[i], c[i] = SELECT, a[yes], b[yes], b[no]
                break


def without_unused(program: InstructionList, *, fuse: bool) -> InstructionList:
    """Only the values that some output needs; with `fuse`, sums of a product that has no other use are multiply-adds."""
    op, (a, b, c) = program.arrays()
    needed, uses = _needed(op, np.stack([a, b, c]), program.outputs)
    leaf = (op == ca.OP_INPUT) | (op == ca.OP_CONST)
    if fuse:
        single = (op == ca.OP_MUL) & (uses == 1)
        sums = np.flatnonzero(needed & ((op == ca.OP_ADD) | (op == ca.OP_SUB)))
        right, left = single[b[sums]], single[a[sums]]
        sums, right = sums[left | right], right[left | right]
        product, other = np.where(right, [b[sums], a[sums]], [a[sums], b[sums]])
        op[sums] = np.where(op[sums] == ca.OP_ADD, FMA, np.where(right, FNMA, FMS))
        a[sums], b[sums], c[sums] = a[product], b[product], other
        needed[product] = False
    now = np.cumsum(needed) - 1
    a, b, c = (np.where(leaf | (x < 0), x, now[np.where(leaf, 0, x)])[needed] for x in (a, b, c))
    outputs = [now[np.array(x, dtype=np.int64)].tolist() for x in program.outputs]
    codes, first, second, third = (x.tolist() for x in (op[needed], a, b, c))
    return InstructionList(
        program.input_sizes, outputs, codes, first, second, third, constants=program.constants
    )


@dataclass
class Chunk:
    """One function of the emitted code: straight-line values, or the sines and cosines of some angles."""

    values: list[int] = field(default_factory=list)
    angles: list[int] = field(default_factory=list)
    sines: dict[int, int] = field(default_factory=dict)  # value -> position of its angle
    cosines: dict[int, int] = field(default_factory=dict)
    kept: list[int] = field(default_factory=list)  # values that later pieces need
    copies: list[tuple[int, int, int]] = field(default_factory=list)  # (value, result, element)
    rows: tuple[int, int, int] = (0, 0, 0)


@dataclass
class Chunks:
    pieces: list[Chunk]
    dying: list[list[int]]  # kept values whose last use is in that piece
    results: dict[int, list[tuple[int, int]]]  # computed value -> where it is an output


def in_chunks(program: InstructionList, chunk: int) -> Chunks:
    """Order the values and cut them into pieces, with what each keeps for others."""
    pieces: list[Chunk] = []
    for group in in_groups(program):
        pieces += [group] if group.angles else _cut(group.values, program, chunk)
    return _with_lifetimes(pieces, program)


def in_groups(program: InstructionList) -> list[Chunk]:
    """The needed values in order.

    Angles come as early as their own operands allow; the rest keeps its order, which is depth first.
    """
    op, a = program.op, program.a
    codes = np.array(op, dtype=np.int64)
    done = ~program.needed() | (codes == ca.OP_INPUT) | (codes == ca.OP_CONST)
    trigonometric = np.flatnonzero(~done & np.isin(codes, list(TRIGONOMETRIC))).tolist()
    placed: list[bool] = done.tolist()
    level = dict.fromkeys(_unplaced_ancestors(trigonometric, program, placed.copy()), 0)
    by_level: list[list[int]] = []
    for i in level:
        level[i] = max(level.get(j, 0) for j in program.operands(i))
        if op[i] in TRIGONOMETRIC:
            if level[i] == len(by_level):
                by_level.append([])
            by_level[level[i]].append(i)
            placed[i] = True
            level[i] += 1
    groups: list[Chunk] = []
    for group in by_level:
        values = _unplaced_ancestors([a[i] for i in group], program, placed)
        groups += [*([Chunk(values)] if values else []), *_angles(group, program)]
    rest = np.flatnonzero(~np.array(placed, dtype=bool)).tolist()
    return [*groups, Chunk(rest)] if rest else groups


def _unplaced_ancestors(targets: Sequence[int], program: InstructionList, placed: list[bool]) -> list[int]:
    """With the targets themselves; they are placed then."""
    found: list[int] = []
    pending = list(targets)
    while pending:
        i = pending.pop()
        if not placed[i]:
            placed[i] = True
            found.append(i)
            pending.extend(program.operands(i))
    return sorted(found)


def _angles(group: Sequence[int], program: InstructionList) -> list[Chunk]:
    """Pieces for the given sines and cosines, with a bounded number of angles in each."""
    pieces: list[Chunk] = []
    place: dict[int, tuple[Chunk, int]] = {}
    for i in group:
        angle = program.a[i]
        if angle not in place:
            if not pieces or len(pieces[-1].angles) == ANGLES:
                pieces.append(Chunk())
            place[angle] = pieces[-1], len(pieces[-1].angles)
            pieces[-1].angles.append(angle)
        piece, position = place[angle]
        (piece.sines if program.op[i] == ca.OP_SIN else piece.cosines)[i] = position
    return pieces


def _cut(values: list[int], program: InstructionList, chunk: int) -> list[Chunk]:
    """Pieces of at most `chunk` operations and loads."""
    op, a, b, c = program.op, program.a, program.b, program.c
    pieces: list[Chunk] = []
    present: set[int] = set()
    size = chunk
    for i in values:
        if size >= chunk:
            pieces.append(Chunk())
            present = {-1}  # operands that are not there
            size = 0
        for j in (a[i], b[i], c[i]):
            if j not in present and op[j] != ca.OP_CONST:
                present.add(j)
                size += 1
        present.add(i)
        pieces[-1].values.append(i)
        size += 1
    return pieces


def _with_lifetimes(pieces: list[Chunk], program: InstructionList) -> Chunks:
    home = [-1] * len(program)
    for k, piece in enumerate(pieces):
        for i in piece.values:
            home[i] = k
    last = [*home, -1]  # one more for operands that are not there
    a, b, c = program.a, program.b, program.c
    for k, piece in enumerate(pieces):
        for i in piece.values:
            last[a[i]] = last[b[i]] = last[c[i]] = k
        for i in piece.angles:
            last[i] = k

    results: dict[int, list[tuple[int, int]]] = {}
    if not pieces:
        pieces.append(Chunk())
    for result, elements in enumerate(program.outputs):
        for element, i in enumerate(elements):
            if home[i] >= 0:
                results.setdefault(i, []).append((result, element))
            else:
                if not pieces[-1].values and pieces[-1].angles:
                    pieces.append(Chunk())
                pieces[-1].copies.append((i, result, element))

    dying: list[list[int]] = [[] for _ in pieces]
    for k, piece in enumerate(pieces):
        piece.kept = [i for i in piece.values if last[i] > k]
        for i in piece.kept:
            dying[last[i]].append(i)
    return Chunks(pieces, dying, results)
