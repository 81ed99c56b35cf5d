"""The operations of straight-line code as LLVM IR text: what one instruction does to vectors of some lanes."""

from __future__ import annotations

import casadi as ca

from alembert.engine import vectormath
from alembert.engine.instructions import FMS, FNMA, SELECT
from alembert.engine.vectormath import LIBRARY_BINARY, LIBRARY_UNARY, literal, suffix, vector_type

_ARITHMETIC = {ca.OP_ADD: "fadd", ca.OP_SUB: "fsub", ca.OP_MUL: "fmul", ca.OP_DIV: "fdiv"}
_INTRINSIC = {
    ca.OP_SQRT: "sqrt",
    ca.OP_FLOOR: "floor",
    ca.OP_CEIL: "ceil",
    ca.OP_FABS: "fabs",
    ca.OP_COPYSIGN: "copysign",
}
_CONDITION = {ca.OP_LT: "olt", ca.OP_LE: "ole", ca.OP_EQ: "oeq", ca.OP_NE: "une", ca.OP_NOT: "oeq"}


class Operations:
    """For one number of lanes; `helpers` are the functions of the C library that were asked for, with it."""

    def __init__(self, lanes: int) -> None:
        self.lanes, self.T, self.B, self.kind = (
            lanes,
            vector_type(lanes),
            vector_type(lanes, "i1"),
            suffix(lanes),
        )
        self.zero, self.one = (literal(vectormath.bits(x), lanes) for x in (0.0, 1.0))
        self.helpers: set[tuple[str, int]] = set()
        self._fma = f"call {self.T} @llvm.fma.{self.kind}({self.T} "

    def write(self, lines: list[str], i: int, op: int, name: str, x: str, y: str = "", z: str = "") -> None:
        """Add lines that make the value `name` of its operands; `i` tells further names from those of other values."""
        T, B, kind = self.T, self.B, self.kind
        if op in _ARITHMETIC:
            lines.append(f"{name} = {_ARITHMETIC[op]} {T} {x}, {y}")
        elif op == SELECT:
            lines.append(f"%b{i} = fcmp oeq {T} {x}, {self.zero}")
            lines.append(f"{name} = select {B} %b{i}, {T} {z}, {T} {y}")
        elif op < 0:
            if op == FMS:
                lines.append(f"%n{i} = fneg {T} {z}")
                z = f"%n{i}"
            elif op == FNMA:
                lines.append(f"%n{i} = fneg {T} {x}")
                x = f"%n{i}"
            lines.append(f"{name} = {self._fma}{x}, {T} {y}, {T} {z})")
        elif op == ca.OP_NEG:
            lines.append(f"{name} = fneg {T} {x}")
        elif op in _INTRINSIC:
            arguments = f"{T} {x}, {T} {y}" if y else f"{T} {x}"
            lines.append(f"{name} = call {T} @llvm.{_INTRINSIC[op]}.{kind}({arguments})")
        elif op == ca.OP_EXP:
            self.helpers.add(("exp", self.lanes))
            lines.append(f"{name} = call {T} {vectormath.exponential_callee(self.lanes)}({T} {x})")
        elif op in LIBRARY_UNARY or op in LIBRARY_BINARY:
            function = LIBRARY_UNARY.get(op) or LIBRARY_BINARY[op]
            self.helpers.add((function, self.lanes))
            arguments = f"{T} {x}, {T} {y}" if y else f"{T} {x}"
            lines.append(f"{name} = call {T} {vectormath.library_callee(function, self.lanes)}({arguments})")
        elif op in _CONDITION:
            lines.append(f"%b{i} = fcmp {_CONDITION[op]} {T} {x}, {y or self.zero}")
            lines.append(f"{name} = select {B} %b{i}, {T} {self.one}, {T} {self.zero}")
        elif op == ca.OP_AND or op == ca.OP_OR:
            lines.append(f"%c{i} = fcmp une {T} {x}, {self.zero}")
            lines.append(f"%d{i} = fcmp une {T} {y}, {self.zero}")
            lines.append(f"%b{i} = {'and' if op == ca.OP_AND else 'or'} {B} %c{i}, %d{i}")
            lines.append(f"{name} = select {B} %b{i}, {T} {self.one}, {T} {self.zero}")
        elif op == ca.OP_IF_ELSE_ZERO:
            lines.append(f"%b{i} = fcmp oeq {T} {x}, {self.zero}")
            lines.append(f"{name} = select {B} %b{i}, {T} {self.zero}, {T} {y}")
        elif op == ca.OP_FMIN or op == ca.OP_FMAX:
            # the second operand, if it is beyond the first or the first is NaN
            lines.append(f"%c{i} = fcmp {'olt' if op == ca.OP_FMIN else 'ogt'} {T} {y}, {x}")
            lines.append(f"%d{i} = fcmp uno {T} {x}, {x}")
            lines.append(f"%b{i} = or {B} %c{i}, %d{i}")
            lines.append(f"{name} = select {B} %b{i}, {T} {y}, {T} {x}")
        elif op == ca.OP_SIGN:
            minus = literal(vectormath.bits(-1.0), self.lanes)
            lines.append(f"%b{i} = fcmp ogt {T} {x}, {self.zero}")
            lines.append(f"%c{i} = fcmp olt {T} {x}, {self.zero}")
            lines.append(f"%d{i} = select {B} %b{i}, {T} {self.one}, {T} {x}")
            lines.append(f"{name} = select {B} %c{i}, {T} {minus}, {T} %d{i}")
        else:
            raise AssertionError(f"operation {op} passed the reader")


def library_calls(helpers: set[tuple[str, int]] | frozenset[tuple[str, int]], *, fused: bool) -> list[str]:
    """IR of the functions that operations call, with their numbers of lanes: of the C library, and exponentials."""
    text = []
    for name in sorted({name for name, _ in helpers}):
        operands = 2 if name in LIBRARY_BINARY.values() else 1
        text.append(vectormath.library_declaration(name, operands))
        text += [
            vectormath.library_call(name, operands, n)
            for other, n in sorted(helpers)
            if other == name and n > 1
        ]
    text += [vectormath.exponential(n, fused=fused) for name, n in sorted(helpers) if name == "exp"]
    return text
