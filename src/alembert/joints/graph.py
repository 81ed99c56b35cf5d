"""Scalar functions as text: what a custom joint keeps of its placement.

The text is a list of instructions separated by `;`, each making one value from earlier ones, which are
counted from the inputs on: with two inputs, `sin 0; mul 2 1; -> 3 2` gives (x1 sin x0, sin x0). `const 0.5`
is a number.

It is written from a CasADi function and read back into one. CasADi's own serialisation will not do: a damaged
string ends the process, and one made on purpose can load a library.
"""

from __future__ import annotations

import math

import casadi as ca

from alembert.errors import ModelError

# fmt: off
_UNARY = (
    "neg", "exp", "log", "sqrt", "sq", "twice", "inv", "sin", "cos", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "fabs", "sign",
    "floor", "ceil", "not", "erf", "log1p", "expm1",
)
_BINARY = (
    "add", "sub", "mul", "div", "pow", "constpow", "atan2", "fmin", "fmax", "fmod", "copysign", "hypot",
    "lt", "le", "eq", "ne", "and", "or", "if_else_zero",
)
# fmt: on
_ARITY = dict.fromkeys(_UNARY, 1) | dict.fromkeys(_BINARY, 2)
_CODE = {name: getattr(ca, f"OP_{name.upper()}") for name in _ARITY}
_NAME = {code: name for name, code in _CODE.items()}
_LONGEST = 1_000_000  # characters


def write(function: ca.Function) -> str:
    """The text of a function of one `SX` vector; its outputs are flattened by columns, in order."""
    count = function.nnz_in(0)
    value: dict[int, int] = {}  # work register -> index of the value it holds
    lines: list[str] = []
    results: dict[tuple[int, int], int] = {}
    for k in range(function.n_instructions()):
        code = function.instruction_id(k)
        inputs, outputs = function.instruction_input(k), function.instruction_output(k)
        if code == ca.OP_INPUT:
            value[outputs[0]] = inputs[1]
        elif code == ca.OP_OUTPUT:
            results[outputs[0], outputs[1]] = value[inputs[0]]
        else:
            if code == ca.OP_CONST:
                line = f"const {function.instruction_constant(k)!r}"
            elif code in _NAME:
                line = " ".join([_NAME[code], *(str(value[register]) for register in inputs)])
            else:
                raise ModelError(
                    f"custom joint: placement(q) uses an operation (CasADi {code}) that is not kept"
                )
            value[outputs[0]] = count + len(lines)
            lines.append(line)
    places = [(o, nz) for o in range(function.n_out()) for nz in range(function.nnz_out(o))]
    return "; ".join([*lines, "-> " + " ".join(str(results[place]) for place in places)])


def read(text: str, x: ca.SX, count: int) -> list[ca.SX]:
    """The `count` results of the text at the inputs `x`."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise ModelError(f"custom joint graph is no text of at most {_LONGEST} characters")
    values = [x[k] for k in range(x.numel())]
    *lines, last = text.split(";")
    for line in lines:
        name, *operands = line.split() or [""]
        if name == "const" and len(operands) == 1:
            values.append(ca.SX(_number(operands[0], line)))
        elif _ARITY.get(name) == len(operands):
            parts = [_earlier(values, operand, line) for operand in operands]
            apply = ca.SX.unary if len(parts) == 1 else ca.SX.binary
            values.append(apply(_CODE[name], *parts))
        else:
            raise ModelError(f"custom joint graph has the instruction {line.strip()[:60]!r}, which is none")
    arrow, *results = last.split() or [""]
    if arrow != "->" or len(results) != count:
        raise ModelError(
            f"custom joint graph ends with {last.strip()[:60]!r}, expected '->' and {count} results"
        )
    return [_earlier(values, result, last) for result in results]


def _number(text: str, line: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ModelError(f"custom joint graph: {line.strip()[:60]!r} has no finite number")
    return number


def _earlier(values: list[ca.SX], text: str, line: str) -> ca.SX:
    if not (text.isascii() and text.isdigit() and len(text) < 8 and int(text) < len(values)):
        raise ModelError(
            f"custom joint graph: {line.strip()[:60]!r} refers to {text[:20]!r}, which is no earlier value"
        )
    return values[int(text)]
