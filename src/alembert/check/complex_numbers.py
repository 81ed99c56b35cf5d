"""A CasADi function on complex numbers, instruction by instruction, for the complex step."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from alembert.errors import UnsupportedError

Array = np.ndarray

_UNARY: dict[int, Callable[[Array], Array]] = {
    ca.OP_ASSIGN: lambda x: x,
    ca.OP_NEG: lambda x: -x,
    ca.OP_SQ: lambda x: x * x,
    ca.OP_TWICE: lambda x: 2 * x,
    ca.OP_INV: lambda x: 1 / x,
    ca.OP_SQRT: np.sqrt,
    ca.OP_SIN: np.sin,
    ca.OP_COS: np.cos,
    ca.OP_TAN: np.tan,
    ca.OP_EXP: np.exp,
    ca.OP_LOG: np.log,
    ca.OP_ASIN: np.arcsin,
    ca.OP_ACOS: np.arccos,
    ca.OP_ATAN: np.arctan,
    ca.OP_FABS: lambda x: np.where(x.real < 0, -x, x),
    ca.OP_SIGN: lambda x: np.sign(x.real) + 0j,
    ca.OP_NOT: lambda x: (x.real == 0) + 0j,
}
_BINARY: dict[int, Callable[[Array, Array], Array]] = {
    ca.OP_ADD: np.add,
    ca.OP_SUB: np.subtract,
    ca.OP_MUL: np.multiply,
    ca.OP_DIV: np.divide,
    ca.OP_POW: np.power,
    ca.OP_CONSTPOW: np.power,
    ca.OP_LT: lambda x, y: (x.real < y.real) + 0j,
    ca.OP_LE: lambda x, y: (x.real <= y.real) + 0j,
    ca.OP_EQ: lambda x, y: (x.real == y.real) + 0j,
    ca.OP_NE: lambda x, y: (x.real != y.real) + 0j,
    ca.OP_AND: lambda x, y: ((x.real != 0) & (y.real != 0)) + 0j,
    ca.OP_OR: lambda x, y: ((x.real != 0) | (y.real != 0)) + 0j,
    ca.OP_IF_ELSE_ZERO: lambda x, y: np.where(x.real != 0, y, 0j),
    ca.OP_FMIN: lambda x, y: np.where(x.real <= y.real, x, y),
    ca.OP_FMAX: lambda x, y: np.where(x.real >= y.real, x, y),
    ca.OP_ATAN2: lambda y, x: (
        np.arctan2(y.real, x.real) + 1j * (x.real * y.imag - y.real * x.imag) / (x.real**2 + y.real**2)
    ),
}


def run(function: ca.Function, columns: Array) -> Array:
    """Evaluate an `SX` function of column inputs on complex columns, one point per column of `columns`."""
    starts = np.cumsum([0, *(function.size1_in(k) for k in range(function.n_in()))])
    work: dict[int, Array] = {}
    result = np.zeros((function.size1_out(0), columns.shape[1]), dtype=complex)
    for k in range(function.n_instructions()):
        code, i, o = function.instruction_id(k), function.instruction_input(k), function.instruction_output(k)
        if code == ca.OP_INPUT:
            work[o[0]] = columns[starts[i[0]] + i[1]]
        elif code == ca.OP_OUTPUT:
            result[o[1]] = work[i[0]]
        elif code == ca.OP_CONST:
            work[o[0]] = np.full(columns.shape[1], function.instruction_constant(k), dtype=complex)
        elif code in _UNARY:
            work[o[0]] = _UNARY[code](work[i[0]])
        elif code in _BINARY:
            work[o[0]] = _BINARY[code](work[i[0]], work[i[1]])
        else:
            raise UnsupportedError(
                f"check.derivatives: complex_step does not know the CasADi operation {code}; use another oracle"
            )
    return result
