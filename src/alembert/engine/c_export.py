"""Functions as C source, for targets without Python.

`export_c` writes three files: NAME.c (C99, needs only the mathematics library, no global state, no
allocation), NAME.h, and NAME_test.c, a program with one input and its expected output that says how far
the compiled code is off.

C text in single precision: `float`, literals with an f, and the functions of the mathematics library that end in f.

All arithmetic of the text is then that of a processor with single-precision hardware (Cortex-M4F): nothing is promoted.
"""

from __future__ import annotations

import keyword
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import casadi as ca
import numpy as np

from alembert.arguments import choice
from alembert.engine import instructions
from alembert.engine.instructions import InstructionList
from alembert.engine.vectormath import LIBRARY_BINARY, LIBRARY_UNARY
from alembert.errors import ArgumentError, UnsupportedError, made_folder, writing

PRECISIONS = ("double", "float")
SINGLE_TOLERANCE = 1e-3
"""of test programs in single precision, relative to the largest expected element: more is not rounding alone, or a problem
that single precision does not serve"""
_COMMENT = re.compile(r"(/\*.*?\*/)", re.DOTALL)
_LITERAL = re.compile(r"(?<![\w.])(\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?![\w.])")


def checked_precision(function: str, precision: str) -> str:
    return choice(function, "precision", precision, PRECISIONS)


def in_single(function: str, text: str, calls: Iterable[str]) -> str:
    """Text that was written for `double`; `calls` are the library's functions in it. Comments stay as they are."""
    library = re.compile(rf"\b({'|'.join(sorted(set(calls)))})\(")
    parts = _COMMENT.split(text)
    for k in range(0, len(parts), 2):
        part = re.sub(r"\bdouble\b", "float", parts[k])
        part = library.sub(r"\1f(", part)
        parts[k] = _LITERAL.sub(lambda found: _literal(function, found.group(1)), part)
    return "".join(parts)


def _literal(function: str, text: str) -> str:
    with np.errstate(over="ignore", under="ignore"):
        single = np.float32(text)
    if not np.isfinite(single) or (single == 0) != (float(text) == 0):
        raise UnsupportedError(
            f"{function}: the code has the number {text}, which single precision does not hold; use precision='double'"
        )
    return f"{text}f"


def representable(values: np.ndarray) -> np.ndarray:
    """The nearest numbers of single precision."""
    return np.asarray(values, dtype=float).astype(np.float32).astype(float)


TOLERANCE = 1e-9  # of the test program, relative to the largest expected element: conditioning and rounding

_INFIX = {ca.OP_ADD: "+", ca.OP_SUB: "-", ca.OP_MUL: "*", ca.OP_DIV: "/"}
_COMPARISON = {ca.OP_LT: "<", ca.OP_LE: "<=", ca.OP_EQ: "==", ca.OP_NE: "!=", ca.OP_AND: "&&", ca.OP_OR: "||"}
_CALLS = {
    **LIBRARY_UNARY,
    **LIBRARY_BINARY,
    ca.OP_SIN: "sin",
    ca.OP_COS: "cos",
    ca.OP_SQRT: "sqrt",
    ca.OP_FLOOR: "floor",
    ca.OP_CEIL: "ceil",
    ca.OP_FABS: "fabs",
    ca.OP_COPYSIGN: "copysign",
    ca.OP_FMIN: "fmin",
    ca.OP_FMAX: "fmax",
}


def export_c(
    function: ca.Function,
    name: str,
    directory: str | Path,
    *,
    argument_names: Sequence[str] | None = None,
    result_names: Sequence[str] | None = None,
    sample: Sequence[np.ndarray] | None = None,
    descriptions: Mapping[str, str] | None = None,
    precision: str = "double",
) -> list[Path]:
    """Write `void NAME(const double *argument, ..., double *result, ...)`; the paths of the three files.

    With `precision="float"` numbers are `float`, and the test program tells how far they are from those of `double`.
    Matrices are in C order. `sample` gives the test program's input (by default random numbers), `descriptions`
    what the header says about arguments and results. The results must not overlap the arguments; apart from that the
    function is re-entrant.
    """
    arguments = list(argument_names or (function.name_in(k) for k in range(function.n_in())))
    results = list(result_names or (function.name_out(k) for k in range(function.n_out())))
    _check_names(function, name, arguments, results)
    single = checked_precision("export_c", precision) == "float"
    code = instructions.share_reciprocals(instructions.read(function))
    if sample is None:
        generator = np.random.default_rng(0)
        sample = [generator.uniform(-1.0, 1.0, function.size_in(k)) for k in range(function.n_in())]
    inputs = [np.asarray(x, dtype=float).reshape(function.size_in(k)) for k, x in enumerate(sample)]
    if single:
        inputs = [representable(x) for x in inputs]
    outputs = [np.asarray(ca.DM(x).full()) for x in function.call([ca.DM(x) for x in inputs])]

    directory = made_folder(directory)
    sizes = [*code.input_sizes, *(len(elements) for elements in code.outputs)]
    prototype = _prototype(name, arguments, results)
    files = {
        f"{name}.h": _header(name, prototype, _described(arguments, results, sizes, descriptions or {})),
        f"{name}.c": _source(name, prototype, code, arguments, results),
        f"{name}_test.c": _test(name, arguments, inputs, results, outputs, "float" if single else "double"),
    }
    if single:
        for file in (f"{name}.h", f"{name}.c"):
            files[file] = single_text("export_c", files[file])
    with writing(directory):
        for file, text in files.items():
            (directory / file).write_text(text, encoding="utf-8")
    return [directory / file for file in files]


def _check_names(function: ca.Function, name: str, arguments: list[str], results: list[str]) -> None:
    for kind, names, count in (
        ("argument", arguments, function.n_in()),
        ("result", results, function.n_out()),
    ):
        if len(names) != count:
            raise ArgumentError(
                f"export_c: {name} has {count} {kind}s, got {len(names)} names: {', '.join(names)}"
            )
    everything = [name, *arguments, *results]
    for word in everything:
        if not (word.isidentifier() and word.isascii()) or keyword.iskeyword(word) or word in _C_KEYWORDS:
            raise ArgumentError(f"export_c: '{word}' is not a name in C")
    repeated = sorted({word for word in everything if everything.count(word) > 1})
    if repeated:
        raise ArgumentError(f"export_c: the name '{repeated[0]}' is used twice")


_C_KEYWORDS = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int
    long main register restrict return short signed sizeof static struct switch typedef union unsigned void
    volatile while""".split()  # noqa: SIM905
)


def _prototype(name: str, arguments: Sequence[str], results: Sequence[str]) -> str:
    parameters = [*(f"const double *{x}" for x in arguments), *(f"double *{x}" for x in results)]
    return f"void {name}({', '.join(parameters) or 'void'})"


def _described(
    arguments: Sequence[str], results: Sequence[str], sizes: Sequence[int], descriptions: Mapping[str, str]
) -> str:
    """A line or more about each argument and result, as inside a comment."""
    lines = []
    for k, (x, size) in enumerate(zip([*arguments, *results], sizes, strict=True)):
        text = f"{x}[{size}]  {'in' if k < len(arguments) else 'out'}"
        if descriptions.get(x):
            text += f": {descriptions[x]}".replace("*/", "* /").replace("\n", " ")
        lines += textwrap.wrap(text, 100, initial_indent=" *   ", subsequent_indent=" *       ")
    return "\n".join(lines)


def _header(name: str, prototype: str, described: str) -> str:
    guard = f"{name.upper()}_H"
    return f"""\
#ifndef {guard}
#define {guard}

/* Written by Alembert. Matrices are in C order.
{described}
 */
#ifdef __cplusplus
extern "C" {{
#endif

{prototype};

#ifdef __cplusplus
}}
#endif

#endif
"""


def c_function(function: ca.Function, name: str, *, static: bool = False) -> tuple[str, int]:
    """The text of `void NAME(const double *argument, ..., double *result, ...)`, and its arithmetic operations."""
    arguments = [function.name_in(k) for k in range(function.n_in())]
    results = [function.name_out(k) for k in range(function.n_out())]
    _check_names(function, name, arguments, results)
    code = instructions.share_reciprocals(instructions.read(function))
    prototype = f"{'static ' if static else ''}{_prototype(name, arguments, results)}"
    body, count = _body(name, code, arguments, results)
    return f"{prototype}\n{{\n{body}\n}}\n", count


def _source(
    name: str, prototype: str, code: InstructionList, arguments: Sequence[str], results: Sequence[str]
) -> str:
    body, _ = _body(name, code, arguments, results)
    return f"""\
/* Written by Alembert. */
#include "{name}.h"

#include <math.h>

{prototype}
{{
{body}
}}
"""


def _body(
    name: str, code: InstructionList, arguments: Sequence[str], results: Sequence[str]
) -> tuple[str, int]:
    """The lines of a function, and how many of them compute something."""
    # Local names end in an underscore and a number, so that no argument can have them.
    text: list[str] = []
    lines: list[str] = []
    for i, wanted in enumerate(code.needed()):
        op = code.op[i]
        if op == ca.OP_INPUT:
            text.append(f"{arguments[code.a[i]]}[{code.b[i]}]")
        elif op == ca.OP_CONST:
            text.append(c_number(code.constants[code.a[i]]))
        else:
            text.append(f"{name}_v{i}_")
            if wanted:
                lines.append(
                    f"  const double {text[i]} = {_expression(op, *(text[j] for j in code.operands(i)))};"
                )
    stores = [
        f"  {results[k]}[{element}] = {text[i]};"
        for k, elements in enumerate(code.outputs)
        for element, i in enumerate(elements)
    ]
    read = {code.a[i] for i, wanted in enumerate(code.needed()) if wanted and code.op[i] == ca.OP_INPUT}
    unread = [f"  (void){x};" for k, x in enumerate(arguments) if k not in read]
    unread += [f"  (void){x};" for k, x in enumerate(results) if not code.outputs[k]]
    return "\n".join([*unread, *lines, *stores]), len(lines)


def _expression(op: int, x: str, y: str = "") -> str:
    if op in _INFIX:
        return f"{x} {_INFIX[op]} {y}"
    if op in _CALLS:
        return f"{_CALLS[op]}({x}, {y})" if y else f"{_CALLS[op]}({x})"
    if op in _COMPARISON:
        if op in (ca.OP_AND, ca.OP_OR):
            x, y = f"({x} != 0.0)", f"({y} != 0.0)"
        return f"({x} {_COMPARISON[op]} {y}) ? 1.0 : 0.0"
    if op == ca.OP_NEG:
        return f"-({x})"
    if op == ca.OP_NOT:
        return f"({x} == 0.0) ? 1.0 : 0.0"
    if op == ca.OP_IF_ELSE_ZERO:
        return f"({x} == 0.0) ? 0.0 : {y}"
    if op == ca.OP_SIGN:
        return f"({x} < 0.0) ? -1.0 : (({x} > 0.0) ? 1.0 : {x})"
    raise AssertionError(f"operation {op} passed the reader")


def single_text(function: str, text: str) -> str:
    """C text of this module in single precision."""
    return in_single(function, text, _CALLS.values())


def c_number(value: float) -> str:
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = repr(float(value))
    return f"({text})" if text.startswith("-") else text


def _test(
    name: str,
    arguments: Sequence[str],
    inputs: Sequence[np.ndarray],
    results: Sequence[str],
    outputs: Sequence[np.ndarray],
    real: str,
) -> str:
    def array(label: str, values: np.ndarray) -> str:
        elements = ", ".join(c_number(float(x)) for x in values.ravel()) or "0.0"
        return f"static const double {label}[] = {{{elements}}};"

    tolerance = TOLERANCE if real == "double" else SINGLE_TOLERANCE

    declarations = [array(f"{x}_in", values) for x, values in zip(arguments, inputs, strict=True)]
    if real == "float":
        declarations = [single_text("export_c", line) for line in declarations]
    declarations += [array(f"{x}_expected", values) for x, values in zip(results, outputs, strict=True)]
    declarations += [
        f"static {real} {x}_out[{max(1, values.size)}];" for x, values in zip(results, outputs, strict=True)
    ]
    call = ", ".join([*(f"{x}_in" for x in arguments), *(f"{x}_out" for x in results)])
    checks = "\n".join(
        f"  worst = fmax(worst, difference_from({x}_out, {x}_expected, {values.size}));"
        for x, values in zip(results, outputs, strict=True)
    )
    listed = "\n".join(declarations)
    return f"""\
/* Written by Alembert: compares {name} with values computed when it was exported. */
#include "{name}.h"

#include <math.h>
#include <stdio.h>

{listed}

/* The largest difference, relative to the largest expected element. */
static double difference_from(const {real} *x, const double *expected, int n)
{{
  double worst = 0.0, scale = 1e-300;
  for (int i = 0; i < n; ++i) {{
    const double found = (double)x[i];
    const int same = (isnan(found) && isnan(expected[i])) || found == expected[i];
    const double d = same ? 0.0 : fabs(found - expected[i]);
    worst = d <= worst ? worst : d;
    if (fabs(expected[i]) > scale) {{ scale = fabs(expected[i]); }}
  }}
  return isnan(worst) ? (double)INFINITY : worst / scale;
}}

int main(void)
{{
  double worst = 0.0;
  {name}({call});
{checks}
  printf("{name}: largest relative error %g\\n", worst);
  return worst <= {tolerance!r} ? 0 : 1;
}}
"""
