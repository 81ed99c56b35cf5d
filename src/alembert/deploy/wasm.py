"""WebAssembly without a compiler: functions of CasADi's instructions as a binary module that any browser runs.

Functions take pointers to their arguments and results in one memory. Routines (`alembert.lowering.routine`) call them; their
own arrays have fixed places, so that a module needs no allocation. Functions of the mathematics library that WebAssembly
does not have come from the page (`Math.sin` and so on).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import casadi as ca

from alembert.engine import instructions
from alembert.engine.instructions import InstructionList
from alembert.errors import UnsupportedError
from alembert.lowering.plan import Buffer, Call, Copy, Repeat, Step, When
from alembert.lowering.routine import Parts, place

_F64, _I32 = 0x7C, 0x7F
_BINARY = {
    ca.OP_ADD: 0xA0,
    ca.OP_SUB: 0xA1,
    ca.OP_MUL: 0xA2,
    ca.OP_DIV: 0xA3,
    ca.OP_FMIN: 0xA4,
    ca.OP_FMAX: 0xA5,
    ca.OP_COPYSIGN: 0xA6,
}
_UNARY = {ca.OP_FABS: 0x99, ca.OP_NEG: 0x9A, ca.OP_CEIL: 0x9B, ca.OP_FLOOR: 0x9C, ca.OP_SQRT: 0x9F}
_COMPARED = {ca.OP_EQ: 0x61, ca.OP_NE: 0x62, ca.OP_LT: 0x63, ca.OP_LE: 0x65}
IMPORTED = {
    ca.OP_SIN: ("sin", 1),
    ca.OP_COS: ("cos", 1),
    ca.OP_TAN: ("tan", 1),
    ca.OP_ASIN: ("asin", 1),
    ca.OP_ACOS: ("acos", 1),
    ca.OP_ATAN: ("atan", 1),
    ca.OP_SINH: ("sinh", 1),
    ca.OP_COSH: ("cosh", 1),
    ca.OP_TANH: ("tanh", 1),
    ca.OP_EXP: ("exp", 1),
    ca.OP_LOG: ("log", 1),
    ca.OP_ATAN2: ("atan2", 2),
    ca.OP_POW: ("pow", 2),
    ca.OP_CONSTPOW: ("pow", 2),
}
"""by operation: the function of JavaScript's `Math`, and how many arguments it has"""
_LT, _GT, _EQ, _NE = 0x63, 0x64, 0x61, 0x62
_SELECT, _FROM_I32 = 0x1B, 0xB8


@dataclass
class WasmModule:
    """Functions on one memory: `place` gives arrays their places; what is exported takes nothing and works on these."""

    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    """by array: the place of its first number, and how many there are"""
    _size: int = 0
    _codes: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """by function: how many pointers it takes, and its code"""
    _exported: list[str] = field(default_factory=list)

    def place(self, **sizes: int) -> None:
        for name, size in sizes.items():
            self.places[name] = (self._size, size)
            self._size += max(size, 1)

    def add(self, name: str, function: ca.Function) -> None:
        """A function that takes pointers to its arguments and results."""
        code = instructions.share_reciprocals(instructions.read(function))
        count = function.n_in() + function.n_out()
        self._codes[name] = count, self._function(code, function.n_in(), count)

    def routine(self, parts: Parts, name: str) -> None:
        """A routine that takes pointers; its own arrays have places of their own."""
        routine = parts.routines[name]
        labels = {label: f"{name}:{label}" for label in routine.buffers}
        self.place(**{labels[label]: size for label, size in routine.buffers.items()})
        pointers = {label: k for k, label in enumerate(routine.arguments)}
        counters = 0

        def address(buffer: Buffer) -> tuple[bytes, int]:
            """Code that leaves a pointer, and an offset in bytes."""
            label, start = place(buffer)
            if label in pointers:
                return b"\x20" + _unsigned(pointers[label]), 8 * start
            return b"\x41\x00", 8 * (self.places[labels[label]][0] + start)

        def pointer(buffer: Buffer) -> bytes:
            base, offset = address(buffer)
            return base + (b"\x41" + _signed(offset) + b"\x6a" if offset else b"")

        def loaded(buffer: Buffer, k: int = 0) -> bytes:
            base, offset = address(buffer)
            return base + b"\x2b\x03" + _unsigned(offset + 8 * k)

        def written(steps: Sequence[Step]) -> bytes:
            nonlocal counters
            body = b""
            for step in steps:
                if isinstance(step, When):
                    inner = written(step.steps)
                    body += loaded(step.flag) + ZERO + bytes([_NE]) + b"\x04\x40" + inner + b"\x0b"
                elif isinstance(step, Repeat):
                    count = _unsigned(len(pointers) + counters)
                    counters += 1
                    inner = written(step.steps)
                    body += b"\x41\x00\x21" + count + b"\x02\x40\x03\x40"
                    body += loaded(step.flag) + ZERO + bytes([_NE]) + b"\x0d\x01"
                    body += b"\x20" + count + b"\x41" + _signed(step.most) + b"\x4e\x0d\x01"
                    body += inner + b"\x20" + count + b"\x41\x01\x6a\x21" + count + b"\x0c\x00\x0b\x0b"
                elif isinstance(step, Copy):
                    base, offset = address(step.target)
                    for k in range(parts.copied(routine, step)):
                        value = ZERO if step.source is None else loaded(step.source, k)
                        body += base + value + b"\x39\x03" + _unsigned(offset + 8 * k)
                else:
                    assert isinstance(step, Call)
                    body += b"".join(pointer(x) for x in (*step.inputs, *step.outputs))
                    body += self._call(str(step.source))
            return body

        body = written(routine.steps)
        declared = _unsigned(1) + _unsigned(counters) + bytes([_I32]) if counters else _unsigned(0)
        self._codes[name] = len(pointers), declared + body + b"\x0b"

    def export(self, name: str, function: str, arrays: Sequence[str]) -> None:
        """A function that takes nothing: another one on arrays that have places."""
        body = b"".join(b"\x41" + _signed(8 * self.places[x][0]) for x in arrays) + self._call(function)
        self._codes[name] = 0, _unsigned(0) + body + b"\x0b"
        self._exported.append(name)

    def _call(self, name: str) -> bytes:
        return b"\x10" + _unsigned(len(_MATH) + list(self._codes).index(name))

    def _function(self, code: InstructionList, inputs: int, pointers: int) -> bytes:
        body: list[bytes] = []
        places: list[bytes] = []
        local = pointers
        for i, wanted in enumerate(code.needed()):
            op = code.op[i]
            if op == ca.OP_INPUT:
                places.append(b"\x20" + _unsigned(code.a[i]) + b"\x2b\x03" + _unsigned(8 * code.b[i]))
            elif op == ca.OP_CONST:
                places.append(_constant(code.constants[code.a[i]]))
            elif not wanted:
                places.append(b"")
            else:
                body.append(
                    _expression(op, [places[j] for j in code.operands(i)]) + b"\x21" + _unsigned(local)
                )
                places.append(b"\x20" + _unsigned(local))
                local += 1
        for k, elements in enumerate(code.outputs):
            target = b"\x20" + _unsigned(inputs + k)
            for element, i in enumerate(elements):
                body.append(target + places[i] + b"\x39\x03" + _unsigned(8 * element))
        count = local - pointers
        declared = _unsigned(1) + _unsigned(count) + bytes([_F64]) if count else _unsigned(0)
        return declared + b"".join(body) + b"\x0b"

    def binary(self) -> bytes:
        counts = sorted({count for count, _ in self._codes.values()})
        types = [b"\x60\x01\x7c\x01\x7c", b"\x60\x02\x7c\x7c\x01\x7c"]
        types += [b"\x60" + _unsigned(n) + bytes([_I32]) * n + b"\x00" for n in counts]
        imports = [_text("m") + _text(name) + b"\x00" + _unsigned(count - 1) for name, count in _MATH.items()]
        functions = [_unsigned(2 + counts.index(count)) for count, _ in self._codes.values()]
        pages = -(-8 * self._size // 65536) or 1
        exports = [_text("memory") + b"\x02\x00"]
        names = list(self._codes)
        exports += [_text(x) + b"\x00" + _unsigned(len(_MATH) + names.index(x)) for x in self._exported]
        codes = [_unsigned(len(code)) + code for _, code in self._codes.values()]
        sections = (
            (1, types),
            (2, imports),
            (3, functions),
            (5, [b"\x00" + _unsigned(pages)]),
            (7, exports),
            (10, codes),
        )
        return b"\x00asm\x01\x00\x00\x00" + b"".join(
            _section(number, entries) for number, entries in sections
        )


_MATH: Mapping[str, int] = dict(IMPORTED.values())


def _expression(op: int, x: Sequence[bytes]) -> bytes:
    zero, one = ZERO, _constant(1.0)
    if op in _BINARY:
        return x[0] + x[1] + bytes([_BINARY[op]])
    if op in _UNARY:
        return x[0] + bytes([_UNARY[op]])
    if op in _COMPARED:
        return x[0] + x[1] + bytes([_COMPARED[op], _FROM_I32])
    if op in (ca.OP_AND, ca.OP_OR):
        both = x[0] + zero + bytes([_NE]) + x[1] + zero + bytes([_NE])
        return both + bytes([0x71 if op == ca.OP_AND else 0x72, _FROM_I32])
    if op == ca.OP_NOT:
        return x[0] + zero + bytes([_EQ, _FROM_I32])
    if op == ca.OP_IF_ELSE_ZERO:
        return zero + x[1] + x[0] + zero + bytes([_EQ, _SELECT])
    if op == ca.OP_SIGN:
        minus = _constant(-1.0)
        inner = one + x[0] + x[0] + zero + bytes([_GT, _SELECT])
        return minus + inner + x[0] + zero + bytes([_LT, _SELECT])
    if op in IMPORTED:
        name = IMPORTED[op][0]
        return b"".join(x) + b"\x10" + _unsigned(list(_MATH).index(name))
    raise UnsupportedError(f"live page: the operation {op} of CasADi has no counterpart in WebAssembly")


def _constant(value: float) -> bytes:
    return b"\x44" + struct.pack("<d", value)


ZERO = _constant(0.0)


def _signed(value: int) -> bytes:
    """LEB128 of what is not negative, with room for the sign."""
    found = b""
    while True:
        byte, value = value & 0x7F, value >> 7
        if not value and not byte & 0x40:
            return found + bytes([byte])
        found += bytes([byte | 0x80])


def _unsigned(value: int) -> bytes:
    """LEB128"""
    found = b""
    while True:
        byte, value = value & 0x7F, value >> 7
        if not value:
            return found + bytes([byte])
        found += bytes([byte | 0x80])


def _text(value: str) -> bytes:
    raw = value.encode()
    return _unsigned(len(raw)) + raw


def _section(number: int, entries: Sequence[bytes]) -> bytes:
    content = _unsigned(len(entries)) + b"".join(entries)
    return bytes([number]) + _unsigned(len(content)) + content
