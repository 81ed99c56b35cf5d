"""Numbers of a model: floats, or expressions of its named parameters.

An `Expression` is a small formula kept as text, such as `0.5 * m1 * l1**2`, so that models stay comparable,
hashable and writable to files. It evaluates on floats and on CasADi `SX`.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from numbers import Real
from typing import Any, TypeAlias

import casadi as ca
import numpy as np

from alembert.errors import ModelError

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
_FUNCTIONS = ("sin", "cos", "tan", "sqrt", "exp", "log", "asin", "acos", "atan")
_CONSTANTS = {"pi": math.pi}
_LONGEST = 20_000  # characters; a formula, not a program
_DEEPEST = 100
_LARGEST = 1e300
_WITH_UNIT = re.compile(r"[-+]?[\d.]+(e[-+]?\d+)? *[a-z%][\w/^]*", re.IGNORECASE)


class Expression:
    """A formula of named parameters.

    It may hold `+ - * / **`, parentheses, `pi`, sin, cos, tan, sqrt, exp, log, asin, acos and atan.
    """

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise ModelError(f"expression is {text!r}, expected a text")
        if len(text) > _LONGEST:
            raise ModelError(f"expression of {len(text)} characters; at most {_LONGEST} are allowed")
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            why = error.msg if isinstance(error, SyntaxError) else error  # without Python's own place
            if text.strip().endswith(("deg", "°")):
                why = "angles are in radians, as in 90*pi/180"
            elif _WITH_UNIT.fullmatch(text.strip()):
                why = "units are not written; numbers are in metres, kilograms, seconds and radians"
            raise ModelError(f"expression {text[:80]!r} is not a formula: {why}") from None
        _check(tree, text, 0)
        self.text = ast.unparse(tree)

    @cached_property
    def _tree(self) -> ast.expr:
        return ast.parse(self.text, mode="eval").body

    @cached_property
    def names(self) -> frozenset[str]:
        """The parameters that occur."""
        functions = {id(node.func) for node in ast.walk(self._tree) if isinstance(node, ast.Call)}
        found = (node for node in ast.walk(self._tree) if isinstance(node, ast.Name))
        return frozenset(node.id for node in found if id(node) not in functions) - set(_CONSTANTS)

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """The value with `values` (floats or `SX`) for the parameters."""
        try:
            value = _evaluate(self._tree, values)
        except KeyError as error:
            raise ModelError(
                f"expression {self.text[:80]!r} uses the parameter {error}, which has no value"
            ) from None
        except (ArithmeticError, ValueError) as error:
            raise ModelError(
                f"expression {self.text[:80]!r} has no value at {self._at(values)}: {error}"
            ) from None
        if isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)):
            raise ModelError(f"expression {self.text[:80]!r} is {value} at {self._at(values)}")
        return value

    def _at(self, values: Mapping[str, Any]) -> str:
        return ", ".join(f"{name} = {values[name]}" for name in sorted(self.names)) or "any parameters"

    def __reduce__(self) -> tuple[type[Expression], tuple[str]]:
        return Expression, (self.text,)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and other.text == self.text

    def __hash__(self) -> int:
        return hash((Expression, self.text))

    def __add__(self, other: Scalar) -> Expression:
        return _join(self, "+", other)

    def __radd__(self, other: Scalar) -> Expression:
        return _join(other, "+", self)

    def __sub__(self, other: Scalar) -> Expression:
        return _join(self, "-", other)

    def __rsub__(self, other: Scalar) -> Expression:
        return _join(other, "-", self)

    def __mul__(self, other: Scalar) -> Expression:
        return _join(self, "*", other)

    def __rmul__(self, other: Scalar) -> Expression:
        return _join(other, "*", self)

    def __truediv__(self, other: Scalar) -> Expression:
        return _join(self, "/", other)

    def __rtruediv__(self, other: Scalar) -> Expression:
        return _join(other, "/", self)

    def __pow__(self, other: Scalar) -> Expression:
        return _join(self, "**", other)

    def __rpow__(self, other: Scalar) -> Expression:
        return _join(other, "**", self)

    def __neg__(self) -> Expression:
        return Expression(f"-({self.text})")


Scalar: TypeAlias = float | Expression


def scalar(value: Any, what: str) -> Scalar:
    """`value` as a model's number; anything else, and NaN or infinity, is refused naming `what`."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value) + 0.0  # no negative zero: equal numbers are written alike
        except OverflowError:
            raise ModelError(f"{what} is too large for a number") from None
    else:
        try:
            number = float(value.item()) + 0.0  # 0-d and one-element arrays
        except (AttributeError, TypeError, ValueError):
            raise ModelError(f"{what} is {value!r}, expected a number or an Expression") from None
    if not math.isfinite(number):
        raise ModelError(f"{what} is {number}, expected a finite number")
    return number


def scalars(values: Any, count: int, what: str) -> tuple[Scalar, ...]:
    """`count` numbers."""
    try:
        entries = [values] if isinstance(values, str) else list(values)
    except TypeError:
        entries = [values]
    if count != 1 and len(entries) == 1 and entries[0] is values:
        raise ModelError(f"{what} is {values!r}, expected {count} numbers")
    if len(entries) != count:
        raise ModelError(f"{what} has {len(entries)} entries, expected {count}")
    return tuple(scalar(entry, f"{what}[{k}]") for k, entry in enumerate(entries))


def is_name(text: str) -> bool:
    """Whether a parameter may be called so: an identifier without a meaning of its own in a formula."""
    try:
        return text.isidentifier() and Expression(text).names == {text}
    except ModelError:
        return False


def evaluate(value: Scalar, values: Mapping[str, Any]) -> Any:
    return value.evaluate(values) if isinstance(value, Expression) else value


def names_in(values: Any) -> frozenset[str]:
    """All parameters that occur in a (nested) tuple of scalars."""
    if isinstance(values, Expression):
        return values.names
    if isinstance(values, tuple):
        return frozenset().union(*(names_in(value) for value in values))
    return frozenset()


def floats(entries: Any, values: Mapping[str, float]) -> np.ndarray:
    """Nested tuples of numbers and expressions as an array, at the given values of the parameters."""
    if isinstance(entries, tuple):
        return np.array([floats(entry, values) for entry in entries])
    if isinstance(entries, np.ndarray):
        return entries
    return np.array(float(evaluate(entries, values)))


def _join(left: Scalar, symbol: str, right: Scalar) -> Expression:
    return Expression(f"({_text(left)}) {symbol} ({_text(right)})")


def _text(value: Any) -> str:
    operand = scalar(value, "an operand of an expression")
    return operand.text if isinstance(operand, Expression) else repr(operand)


def _check(node: ast.AST, text: str, depth: int) -> None:
    if depth > _DEEPEST:
        raise ModelError(f"expression {text[:80]!r} is nested deeper than {_DEEPEST} levels")
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            parts = [left, right]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            parts = [operand]
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _FUNCTIONS:
            parts = [argument]
        case ast.Name(id=name) if name not in _FUNCTIONS:
            parts = []
        case ast.Constant(value=int() | float() as value) if (
            type(value) is not bool and abs(value) < _LARGEST
        ):
            parts = []
        case _:
            raise ModelError(
                f"expression {text[:80]!r} may hold numbers, parameter names, + - * / ** and "
                f"{', '.join(_FUNCTIONS)}; it has {ast.unparse(node)[:40]!r}"
            )
    for part in parts:
        _check(part, text, depth + 1)


def _evaluate(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_evaluate(left, values), _evaluate(right, values))
        case ast.UnaryOp(op=op, operand=operand):
            return _UNARY[type(op)](_evaluate(operand, values))
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            x = _evaluate(argument, values)
            return getattr(ca, name)(x) if isinstance(x, ca.SX) else getattr(math, name)(x)
        case ast.Constant(value=value):
            return float(value)  # type: ignore[arg-type]
        case ast.Name(id=name):
            return _CONSTANTS[name] if name in _CONSTANTS else values[name]
    raise AssertionError(node)
