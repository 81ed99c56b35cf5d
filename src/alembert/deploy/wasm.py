"""WebAssembly without a compiler: functions of CasADi's instructions as a binary module that any browser runs.

All arguments and results of the functions are at fixed places of one memory, so that a module needs no allocation and its
functions take no arguments; `sequence` makes one function that calls others. Functions of the mathematics library that
WebAssembly does not have come from the page (`Math.sin` and so on).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import casadi as ca

from alembert.engine import instructions
from alembert.engine.instructions import InstructionList
from alembert.errors import UnsupportedError

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
    """Functions on one memory: `place` gives arrays their places, `add` and `sequence` make functions."""

    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    """by array: the place of its first number, and how many there are"""
    _size: int = 0
    _names: list[str] = field(default_factory=list)
    _codes: list[bytes] = field(default_factory=list)

    def place(self, **sizes: int) -> None:
        for name, size in sizes.items():
            self.places[name] = (self._size, size)
            self._size += max(size, 1)

    def add(self, name: str, function: ca.Function, arguments: Sequence[str], results: Sequence[str]) -> None:
        """A function from arrays to arrays."""
        code = instructions.share_reciprocals(instructions.read(function))
        self._names.append(name)
        self._codes.append(self._function(code, arguments, results))

    def sequence(self, name: str, steps: Sequence[str | tuple[str, str]]) -> None:
        """A function that calls others by name, and copies arrays (from, to)."""
        body = b""
        for step in steps:
            if isinstance(step, str):
                body += b"\x10" + _unsigned(len(_MATH) + self._names.index(step))
                continue
            source, size = self.places[step[0]]
            target, _ = self.places[step[1]]
            for k in range(size):
                body += b"\x41\x00" + self._load(source + k) + self._store(target + k)
        self._names.append(name)
        self._codes.append(_unsigned(0) + body + b"\x0b")

    def _load(self, element: int) -> bytes:
        """Of an address that is on the stack; here before it, see `_store`."""
        return b"\x41\x00\x2b\x03" + _unsigned(8 * element)

    def _store(self, element: int) -> bytes:
        return b"\x39\x03" + _unsigned(8 * element)

    def _function(self, code: InstructionList, arguments: Sequence[str], results: Sequence[str]) -> bytes:
        body: list[bytes] = []
        places: list[bytes] = []
        local = 0
        for i, wanted in enumerate(code.needed()):
            op = code.op[i]
            if op == ca.OP_INPUT:
                start, _ = self.places[arguments[code.a[i]]]
                places.append(self._load(start + code.b[i]))
            elif op == ca.OP_CONST:
                places.append(b"\x44" + struct.pack("<d", code.constants[code.a[i]]))
            elif not wanted:
                places.append(b"")
            else:
                body.append(
                    _expression(op, [places[j] for j in code.operands(i)]) + b"\x21" + _unsigned(local)
                )
                places.append(b"\x20" + _unsigned(local))
                local += 1
        for k, elements in enumerate(code.outputs):
            start, _ = self.places[results[k]]
            for element, i in enumerate(elements):
                body.append(b"\x41\x00" + places[i] + self._store(start + element))
        declared = _unsigned(1) + _unsigned(local) + bytes([_F64]) if local else _unsigned(0)
        return declared + b"".join(body) + b"\x0b"

    def binary(self) -> bytes:
        types = [b"\x60\x00\x00", b"\x60\x01\x7c\x01\x7c", b"\x60\x02\x7c\x7c\x01\x7c"]
        imports = [_text("m") + _text(name) + b"\x00" + _unsigned(count) for name, count in _MATH.items()]
        functions = [_unsigned(0)] * len(self._codes)
        pages = -(-8 * self._size // 65536) or 1
        exports = [_text("memory") + b"\x02\x00"]
        exports += [_text(name) + b"\x00" + _unsigned(len(_MATH) + k) for k, name in enumerate(self._names)]
        codes = [_unsigned(len(code)) + code for code in self._codes]
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
    zero, one = (b"\x44" + struct.pack("<d", value) for value in (0.0, 1.0))
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
        minus = b"\x44" + struct.pack("<d", -1.0)
        inner = one + x[0] + x[0] + zero + bytes([_GT, _SELECT])
        return minus + inner + x[0] + zero + bytes([_LT, _SELECT])
    if op in IMPORTED:
        name = IMPORTED[op][0]
        return b"".join(x) + b"\x10" + _unsigned(list(_MATH).index(name))
    raise UnsupportedError(f"live page: the operation {op} of CasADi has no counterpart in WebAssembly")


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
