"""The operations of straight-line code, and elementary functions, on vectors of some lanes as LLVM IR.

Sine and cosine are computed together, for whole vectors, by `sincos_array`. Notation: x = n pi/2 + r,
|r| <= pi/4, and r is kept as r - t with a small tail t:

    n = round(2x/pi)                                                    (1)
    r - t = ((x - n P1) - n P2) - (n P3 + n P4), t the rounding error   (2)
    sin r = r - (r^3 (1/6 - ...) + t (1 - r^2/2))                       (3)
    cos r = 1 - r^2/2 + (r^4 (1/24 - ...) + r t)                        (4)

P1, P2 and P3 are 33-bit pieces of pi/2, so that their products with |n| < 2^20 are exact; the polynomials are
those of fdlibm (Sun Microsystems, 1993; freely distributable). The error is below one unit in the last place
for |x| < 2^20 pi/2. The exponential is 2^n e^r with

    n = round(x/ln 2),   r = (x - n L1) - n L2,   e^r = 1 + (r + r^2 (1/2 + r/6 + ... + r^11/13!))      (5)

where L1 has 32 bits, so that n L1 is exact; the error is below one unit in the last place for |x| <= 708.
Larger arguments, infinities and NaN leave the vector path and go lane by lane to the C library, as do all functions
other than the square root, rounding and sign manipulation. A lane's result
therefore never depends on its neighbours or on the number of lanes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable

import casadi as ca

from alembert.engine.instructions import FMS, FNMA, SELECT
from alembert.engine.target import MATHEMATICS

LIBRARY_UNARY = {
    ca.OP_TAN: "tan",
    ca.OP_ASIN: "asin",
    ca.OP_ACOS: "acos",
    ca.OP_ATAN: "atan",
    ca.OP_SINH: "sinh",
    ca.OP_COSH: "cosh",
    ca.OP_TANH: "tanh",
    ca.OP_ASINH: "asinh",
    ca.OP_ACOSH: "acosh",
    ca.OP_ATANH: "atanh",
    ca.OP_EXP: "exp",
    ca.OP_LOG: "log",
    ca.OP_EXPM1: "expm1",
    ca.OP_LOG1P: "log1p",
    ca.OP_ERF: "erf",
}
LIBRARY_BINARY = {
    ca.OP_POW: "pow",
    ca.OP_ATAN2: "atan2",
    ca.OP_FMOD: "fmod",
    ca.OP_REMAINDER: "remainder",
    ca.OP_HYPOT: "hypot",
}

_PI_2_PIECES = ("0x3FF921FB54400000", "0x3DD0B4611A600000", "0x3BA3198A2E000000", "0x397B839A252049C1")
_TWO_OVER_PI = "0x3FE45F306DC9C883"
_ROUNDER = "0x4338000000000000"  # 1.5 * 2^52: adding it rounds to an integer, in the low bits
_LN2_PIECES = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
_EXPONENTIAL = tuple(1 / math.factorial(k) for k in range(13, 1, -1))
_MOST = 708.0
_LIMIT = 2.0**20 * 1.5707963267948966
# fdlibm's k_sin.c and k_cos.c, highest power first; sine with the opposite sign, see (3).
_SINE = (
    -1.58969099521155010221e-10,
    2.50507602534068634195e-08,
    -2.75573137070700676789e-06,
    1.98412698298579493134e-04,
    -8.33333333332248946124e-03,
    1.66666666666666324348e-01,
)
_COSINE = (
    -1.13596475577881948265e-11,
    2.08757232129817482790e-09,
    -2.75573143513906633035e-07,
    2.48015872894767294178e-05,
    -1.38888888888741095749e-03,
    4.16666666666666019037e-02,
)


def bits(value: float) -> str:
    """A double as LLVM writes it."""
    return f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}"


def vector_type(lanes: int, element: str = "double") -> str:
    return element if lanes == 1 else f"<{lanes} x {element}>"


def literal(text: str, lanes: int, element: str = "double") -> str:
    """A constant in all lanes, without its type."""
    return text if lanes == 1 else f"splat ({element} {text})"


def suffix(lanes: int, element: str = "f64") -> str:
    """The type in the name of an intrinsic."""
    return element if lanes == 1 else f"v{lanes}{element}"


def sincos_array(width: int, *, fused: bool) -> str:
    """IR of `void alembert_sincos(ptr x, ptr s, ptr c, i64 count)`, for whole, aligned vectors of `width`.

    The sines may take the place of the angles.
    """
    lines: list[str] = []
    T, I, B = vector_type(width), vector_type(width, "i64"), vector_type(width, "i1")
    kind = suffix(width)

    def line(name: str, text: str) -> str:
        lines.append(f"  %{name} = {text}")
        return f"%{name}"

    def number(value: float | str) -> str:
        return literal(value if isinstance(value, str) else bits(value), width)

    def integer(value: int) -> str:
        return literal(str(value), width, "i64")

    def binary(name: str, op: str, a: str, b: str) -> str:
        return line(name, f"{op} {I if op in _INTEGER else T} {a}, {b}")

    def multiply_add(name: str, a: str, b: str, c: str) -> str:
        if fused:
            return line(name, f"call {T} @llvm.fma.{kind}({T} {a}, {T} {b}, {T} {c})")
        return binary(name, "fadd", binary(name + "p", "fmul", a, b), c)

    def polynomial(name: str, z: str, coefficients: Iterable[float]) -> str:
        first, *rest = coefficients
        result = number(first)
        for k, coefficient in enumerate(rest):
            result = multiply_add(f"{name}{k}", result, z, number(coefficient))
        return result

    align = 8 * width
    lines.append(f"entry:\n  %angles = alloca {T}, align {align}\n  br label %loop\nloop:")
    lines.append("  %i = phi i64 [0, %entry], [%i1, %next]")
    line("px", "getelementptr double, ptr %x, i64 %i")
    line("ps", "getelementptr double, ptr %s, i64 %i")
    line("pc", "getelementptr double, ptr %c, i64 %i")
    x = line("v", f"load {T}, ptr %px, align {align}")
    # (1)
    shifted = binary("shifted", "fadd", binary("turns", "fmul", x, number(_TWO_OVER_PI)), number(_ROUNDER))
    n = binary("n", "fsub", shifted, number(_ROUNDER))
    quadrant = line("quadrant", f"bitcast {T} {shifted} to {I}")
    # (2)
    w1, w2, w3, w4 = (binary(f"w{k}", "fmul", n, number(piece)) for k, piece in enumerate(_PI_2_PIECES, 1))
    r1 = binary("r1", "fsub", x, w1)
    r = binary("r", "fsub", r1, w2)
    d = binary("d", "fsub", r, r1)
    lost = binary("lost", "fsub", r1, binary("rd", "fsub", r, d))
    t = binary("t0", "fsub", binary("wd", "fadd", w2, d), lost)
    t = binary("t1", "fadd", t, binary("w34", "fadd", w3, w4))
    coarse, r = r, binary("rn", "fsub", r, t)
    t = binary("t", "fsub", t, binary("dn", "fsub", coarse, r))
    z = binary("z", "fmul", r, r)
    half = binary("half", "fmul", z, number(0.5))
    base = binary("base", "fsub", number(1.0), half)
    # (3)
    cubic = binary("cubic", "fmul", binary("r3", "fmul", r, z), polynomial("ps_", z, _SINE))
    sine = binary("sine", "fsub", r, multiply_add("below", t, base, cubic))
    # (4)
    quartic = binary("quartic", "fmul", binary("z2", "fmul", z, z), polynomial("pc_", z, _COSINE))
    rounding = binary("rounding", "fsub", binary("gap", "fsub", number(1.0), base), half)
    above = multiply_add("above", r, t, quartic)
    cosine = binary("cosine", "fadd", base, binary("rest", "fadd", rounding, above))
    # quadrants: swap sine and cosine when n is odd, then the signs
    odd = line("odd", f"trunc {I} {quadrant} to {B}")
    next_quadrant = binary("quadrant1", "add", quadrant, integer(1))
    for name, first, second, count, target in (
        ("s", sine, cosine, quadrant, "%ps"),
        ("c", cosine, sine, next_quadrant, "%pc"),
    ):
        picked = line(f"{name}a", f"select {B} {odd}, {T} {second}, {T} {first}")
        raw = line(f"{name}b", f"bitcast {T} {picked} to {I}")
        sign = binary(f"{name}c", "shl", binary(f"{name}d", "lshr", count, integer(1)), integer(63))
        signed = line(f"{name}f", f"bitcast {I} {binary(f'{name}e', 'xor', raw, sign)} to {T}")
        lines.append(f"  store {T} {signed}, ptr {target}, align {align}")
    # leave the vector path
    size = line("size", f"call {T} @llvm.fabs.{kind}({T} {x})")
    far = line("far", f"fcmp ugt {T} {size}, {number(_LIMIT)}")
    if width > 1:
        far = line("any", f"call i1 @llvm.vector.reduce.or.{suffix(width, 'i1')}({B} {far})")
    lines.append(f"  br i1 {far}, label %rare, label %next, !prof !0")
    lines.append(
        f"rare:\n  store {T} {x}, ptr %angles, align {align}\n"
        f"  call void @alembert_sincos_far(ptr %angles, ptr %ps, ptr %pc, i64 {width})\n  br label %next"
    )
    lines.append("next:")
    line("i1", f"add i64 %i, {width}")
    line("more", "icmp ult i64 %i1, %count")
    lines.append("  br i1 %more, label %loop, label %done\ndone:\n  ret void")
    body = "\n".join(lines)
    parameters = "ptr %x, ptr %s, ptr noalias %c, i64 %count"
    head = f"define internal void @alembert_sincos({parameters}) #0"
    return f"{head} {{\n{body}\n}}\n{_SINCOS_FAR}"


def sincos_module(width: int, *, fused: bool) -> str:
    """`sincos_array` with all that it needs but the attributes."""
    return sincos_array(width, fused=fused)


_INTEGER = frozenset(("add", "shl", "lshr", "xor"))

_SINCOS_FAR = f"""\
define internal void @alembert_sincos_far(ptr %x, ptr %s, ptr %c, i64 %count) #0 {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %next]
  %px = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %px
  %size = call double @llvm.fabs.f64(double %v)
  %far = fcmp ugt double %size, {bits(_LIMIT)}
  br i1 %far, label %call, label %next
call:
  %ps = getelementptr double, ptr %s, i64 %i
  %pc = getelementptr double, ptr %c, i64 %i
  %sine = call double @{MATHEMATICS}sin(double %v)
  %cosine = call double @{MATHEMATICS}cos(double %v)
  store double %sine, ptr %ps
  store double %cosine, ptr %pc
  br label %next
next:
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}}
declare double @{MATHEMATICS}sin(double)
declare double @{MATHEMATICS}cos(double)
!0 = !{{!"branch_weights", i32 1, i32 100000}}
"""


def library_declaration(name: str, operands: int) -> str:
    scalars = ", ".join(["double"] * operands)
    return f"declare double @{MATHEMATICS}{name}({scalars})\n"


def library_call(name: str, operands: int, lanes: int) -> str:
    """IR of a function of vectors, which calls the C library's function lane by lane."""
    T = vector_type(lanes)
    lines = []
    result = "poison"
    for k in range(lanes):
        for j in range(operands):
            lines.append(f"  %e{k}_{j} = extractelement {T} %x{j}, i64 {k}")
        arguments = ", ".join(f"double %e{k}_{j}" for j in range(operands))
        lines.append(f"  %y{k} = call double @{MATHEMATICS}{name}({arguments})")
        lines.append(f"  %r{k} = insertelement {T} {result}, double %y{k}, i64 {k}")
        result = f"%r{k}"
    parameters = ", ".join(f"{T} %x{j}" for j in range(operands))
    body = "\n".join(lines)
    head = f"define internal {T} {library_callee(name, lanes)}({parameters}) #0"
    return f"{head} {{\n{body}\n  ret {T} {result}\n}}\n"


def exponential(lanes: int, *, fused: bool) -> str:
    """(5) as IR of a function of vectors; arguments beyond the range go to the C library."""
    T, I, B, kind = vector_type(lanes), vector_type(lanes, "i64"), vector_type(lanes, "i1"), suffix(lanes)
    lines: list[str] = []

    def line(text: str) -> str:
        lines.append(f"  %v{len(lines)} = {text}")
        return f"%v{len(lines) - 1}"

    def number(value: float | str) -> str:
        return literal(value if isinstance(value, str) else bits(value), lanes)

    def multiply_add(a: str, b: str, c: str) -> str:
        if fused:
            return line(f"call {T} @llvm.fma.{kind}({T} {a}, {T} {b}, {T} {c})")
        return line(f"fadd {T} {line(f'fmul {T} {a}, {b}')}, {c}")

    shifted = line(f"fadd {T} {line(f'fmul {T} %x0, {number(1 / math.log(2))}')}, {number(_ROUNDER)}")
    n = line(f"fsub {T} {shifted}, {number(_ROUNDER)}")
    r = multiply_add(n, number(-_LN2_PIECES[0]), "%x0")
    r = multiply_add(n, number(-_LN2_PIECES[1]), r)
    total = number(_EXPONENTIAL[0])
    for coefficient in _EXPONENTIAL[1:]:
        total = multiply_add(total, r, number(coefficient))
    rest = multiply_add(line(f"fmul {T} {r}, {r}"), total, r)
    y = line(f"bitcast {T} {line(f'fadd {T} {rest}, {number(1.0)}')} to {I}")
    power = line(f"shl {I} {line(f'bitcast {T} {shifted} to {I}')}, {literal('52', lanes, 'i64')}")
    y = line(f"bitcast {I} {line(f'add {I} {y}, {power}')} to {T}")
    size = line(f"call {T} @llvm.fabs.{kind}({T} %x0)")
    beyond = far = line(f"fcmp ugt {T} {size}, {number(_MOST)}")
    if lanes > 1:
        beyond = line(f"call i1 @llvm.vector.reduce.or.{suffix(lanes, 'i1')}({B} {far})")
    lines.append(f"  br i1 {beyond}, label %rare, label %done\ndone:\n  ret {T} {y}\nrare:")
    other = line(f"call {T} {library_callee('exp', lanes)}({T} %x0)")
    lines.append(f"  ret {T} {line(f'select {B} {far}, {T} {other}, {T} {y}')}")
    body = "\n".join(lines)
    return f"define internal {T} {exponential_callee(lanes)}({T} %x0) noinline #0 {{\n{body}\n}}\n"


def exponential_callee(lanes: int) -> str:
    return f"@alembert_exponential{lanes}"


def library_callee(name: str, lanes: int) -> str:
    return f"@{MATHEMATICS}{name}" if lanes == 1 else f"@alembert_lanes{lanes}_{name}"


def library_functions() -> tuple[str, ...]:
    """What machine code may call of the C library, under its names there."""
    return ("sin", "cos", *LIBRARY_UNARY.values(), *LIBRARY_BINARY.values())


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
        self.zero, self.one = (literal(bits(x), lanes) for x in (0.0, 1.0))
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
            lines.append(f"{name} = call {T} {exponential_callee(self.lanes)}({T} {x})")
        elif op in LIBRARY_UNARY or op in LIBRARY_BINARY:
            function = LIBRARY_UNARY.get(op) or LIBRARY_BINARY[op]
            self.helpers.add((function, self.lanes))
            arguments = f"{T} {x}, {T} {y}" if y else f"{T} {x}"
            lines.append(f"{name} = call {T} {library_callee(function, self.lanes)}({arguments})")
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
            minus = literal(bits(-1.0), self.lanes)
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
        text.append(library_declaration(name, operands))
        text += [library_call(name, operands, n) for other, n in sorted(helpers) if other == name and n > 1]
    text += [exponential(n, fused=fused) for name, n in sorted(helpers) if name == "exp"]
    return text
