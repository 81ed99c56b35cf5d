import math
import pickle

import casadi as ca
import numpy as np
import pytest

from alembert.errors import ModelError
from alembert.expression import Expression, evaluate, is_name, names_in, scalar, scalars

VALUES = {"m": 2.0, "l": 0.5}


def refusal(function, *arguments):
    with pytest.raises(ModelError) as caught:
        function(*arguments)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("m", 2.0),
        ("m * l**2 / 3", 2.0 * 0.25 / 3),
        ("-(m - 1) + +l", -0.5),
        ("sqrt(m) * sin(pi * l)", math.sqrt(2.0)),
        ("atan(tan(l)) + asin(l) + acos(l) + cos(l)", 0.5 + math.pi / 2 + math.cos(0.5)),
        ("exp(log(m))", 2.0),
        ("1e-3", 1e-3),
    ],
)
def test_value_on_floats_and_on_symbols(text, value):
    expression = Expression(text)
    assert expression.evaluate(VALUES) == pytest.approx(value, rel=1e-15)
    symbols = {name: ca.SX.sym(name) for name in VALUES}
    function = ca.Function("f", list(symbols.values()), [expression.evaluate(symbols)])
    assert float(function(*VALUES.values())) == pytest.approx(value, rel=1e-15)


def test_arithmetic_makes_expressions():
    m, l = Expression("m"), Expression("l")
    made = (3 - 2 * m + m / 4 - 1) * (1 / l) ** 2 - -l + l**m + 2**m
    expected = (3 - 2 * 2.0 + 2.0 / 4 - 1) * (1 / 0.5) ** 2 + 0.5 + 0.5**2 + 4
    assert made.evaluate(VALUES) == pytest.approx(expected, rel=1e-15)
    assert made.names == {"m", "l"}
    assert (1 + m).text == "1.0 + m"
    assert (m - 1).text == "m - 1.0"


def test_names_leave_out_functions_and_constants():
    assert Expression("sin(a) * pi + b").names == {"a", "b"}
    assert names_in((1.0, Expression("a"), (Expression("b"), "text"))) == {"a", "b"}
    assert is_name("m1")
    assert not any(is_name(text) for text in ("sin", "pi", "lambda", "True", "1m", "a b", ""))


def test_equal_by_normalised_text():
    a, b = Expression("m*l"), Expression(" m * l ")
    assert a == b
    assert hash(a) == hash(b)
    assert a != Expression("l * m")
    assert a != "m * l"
    assert pickle.loads(pickle.dumps(a)) == a
    assert (str(a), repr(a)) == ("m * l", "Expression('m * l')")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("__import__('os')", "__import__('os')"),
        ("m.real", "m.real"),
        ("[1]", "[1]"),
        ("m if l else 1", "m if l else 1"),
        ("m // 2", "m // 2"),
        ("sin", "sin"),
        ("sin(m, l)", "sin(m, l)"),
        ("min(m)", "min(m)"),
        ("'text'", "'text'"),
        ("True", "True"),
        ("1j", "1j"),
        ("1e999", "1e309"),
        ("9" * 400, "9" * 40),
        ("~m", "~m"),
        ("lambda: 1", "lambda: 1"),
    ],
)
def test_only_formulas_are_taken(text, part):
    assert refusal(Expression, text) == (
        f"expression {text[:80]!r} may hold numbers, parameter names, + - * / ** and "
        f"sin, cos, tan, sqrt, exp, log, asin, acos, atan; it has {part!r}"
    )


def test_texts_that_are_no_formula():
    assert refusal(Expression, "m +").startswith("expression 'm +' is not a formula: ")
    assert (
        refusal(Expression, "90deg")
        == "expression '90deg' is not a formula: angles are in radians, as in 90*pi/180"
    )
    assert refusal(Expression, "").startswith("expression '' is not a formula: ")
    assert refusal(Expression, "m\0").startswith("expression 'm\\x00' is not a formula: ")
    assert refusal(Expression, 3.0) == "expression is 3.0, expected a text"
    assert refusal(Expression, "m" * 20_001) == ("expression of 20001 characters; at most 20000 are allowed")
    deep = "-" * 150 + "m"
    assert refusal(Expression, deep) == f"expression {deep[:80]!r} is nested deeper than 100 levels"
    assert "is not a formula" in refusal(Expression, "(" * 5000 + ")" * 5000)


def test_values_that_do_not_exist():
    assert refusal(Expression("1 / (m - 2)").evaluate, VALUES).startswith(
        "expression '1 / (m - 2)' has no value at m = 2.0: "
    )
    assert refusal(Expression("sqrt(-m)").evaluate, VALUES).startswith(
        "expression 'sqrt(-m)' has no value at m = 2.0: "
    )
    assert refusal(Expression("9**9**9").evaluate, {}).startswith(
        "expression '9 ** 9 ** 9' has no value at any parameters: "
    )
    assert refusal(Expression("(-m)**l").evaluate, VALUES).startswith("expression '(-m) ** l' is (")
    assert refusal(Expression("1e200 * 1e200").evaluate, {}) == (
        "expression '1e+200 * 1e+200' is inf at any parameters"
    )
    assert refusal(Expression("m * k").evaluate, VALUES) == (
        "expression 'm * k' uses the parameter 'k', which has no value"
    )


def test_operands_are_numbers():
    m = Expression("m")
    assert refusal(lambda: m * "2") == (
        "an operand of an expression is '2', expected a number or an Expression"
    )
    assert refusal(lambda: m + float("nan")) == "an operand of an expression is nan, expected a finite number"
    assert (np.float64(2.0) * m).text == "2.0 * m"


def test_scalar():
    assert scalar(np.float32(0.5), "x") == 0.5
    assert scalar(np.array([3]), "x") == 3.0
    assert scalar(Expression("m"), "x") == Expression("m")
    assert math.copysign(1.0, scalar(-0.0, "x")) == 1.0
    for value in ("1", None, [1.0], True, np.ones(2), 1j):
        assert refusal(scalar, value, "x") == f"x is {value!r}, expected a number or an Expression"
    for value in (float("nan"), float("inf"), -float("inf")):
        assert refusal(scalar, value, "x") == f"x is {value}, expected a finite number"
    assert refusal(scalar, 10**400, "x") == "x is too large for a number"


def test_scalars():
    assert scalars(np.arange(3), 3, "x") == (0.0, 1.0, 2.0)
    assert scalars(4, 1, "x") == (4.0,)
    assert refusal(scalars, (1, 2), 3, "x") == "x has 2 entries, expected 3"
    assert refusal(scalars, 1.0, 3, "x") == "x is 1.0, expected 3 numbers"
    assert refusal(scalars, (1, "a"), 2, "x") == "x[1] is 'a', expected a number or an Expression"


def test_evaluate():
    assert evaluate(3.0, {}) == 3.0
    assert evaluate(Expression("m"), VALUES) == 2.0
