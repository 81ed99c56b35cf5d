"""Random expression graphs over every operation, against CasADi's interpreter."""

import casadi as ca
import numpy as np
import pytest
import scipy.special
from engine_helpers import Lanes, evaluated, pendulum_like, same_bits

from alembert.engine.target import host

LANES = [1, 2, 4, 8]

# Each is applied to values in [-1, 1]-ish ranges that keep it well conditioned.
UNARY = {
    "neg": lambda x: -x,
    "sin": ca.sin,
    "cos": ca.cos,
    "tan": lambda x: ca.tan(x / 2),
    "asin": lambda x: ca.asin(ca.sin(x) / 2),
    "acos": lambda x: ca.acos(ca.sin(x) / 2),
    "atan": ca.atan,
    "sinh": lambda x: ca.sinh(ca.sin(x)),
    "cosh": lambda x: ca.cosh(ca.sin(x)),
    "tanh": ca.tanh,
    "asinh": ca.asinh,
    "acosh": lambda x: ca.acosh(2 + ca.sin(x)),
    "atanh": lambda x: ca.atanh(ca.sin(x) / 2),
    "exp": lambda x: ca.exp(ca.sin(x)),
    "log": lambda x: ca.log(3 + ca.sin(x)),
    "expm1": lambda x: ca.expm1(ca.sin(x)),
    "log1p": lambda x: ca.log1p(2 + ca.sin(x)),
    "erf": ca.erf,
    "erfinv": lambda x: ca.erfinv(ca.sin(x) / 4),
    "sqrt": lambda x: ca.sqrt(2 + ca.sin(x)),
    "square": lambda x: x**2,
    "inverse": lambda x: 1 / (2 + ca.sin(x)),
    "twice": lambda x: x + x,
    "power": lambda x: (2 + ca.sin(x)) ** 1.7,
    "fabs": ca.fabs,
    "sign": ca.sign,
    "floor": ca.floor,
    "ceil": ca.ceil,
    "not": ca.logic_not,
}
BINARY = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: ca.sin(x) * y,
    "div": lambda x, y: x / (2 + ca.sin(y)),
    "pow": lambda x, y: (2 + ca.sin(x)) ** ca.sin(y),
    "atan2": lambda x, y: ca.atan2(x, y),
    "fmod": lambda x, y: ca.fmod(x, 2 + ca.sin(y)),
    "remainder": lambda x, y: ca.remainder(x, 2 + ca.sin(y)),
    "hypot": ca.hypot,
    "copysign": ca.copysign,
    "fmin": ca.fmin,
    "fmax": ca.fmax,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "and": lambda x, y: ca.logic_and(x > 0, y),
    "or": lambda x, y: ca.logic_or(x > 0, y > 0.3),
    "if_else": lambda x, y: ca.if_else(x > y, x, ca.sin(y)),
    "if_else_zero": lambda x, y: ca.if_else(x > 0, y, 0),
}


@pytest.fixture(scope="module")
def states():
    return np.random.default_rng(3).uniform(-2, 2, (37, 2))


@pytest.mark.parametrize("lanes", LANES)
def test_every_operation(states, lanes):
    x = ca.SX.sym("x", 2)
    values = [f(x[0]) for f in UNARY.values()] + [f(x[0], x[1]) for f in BINARY.values()]
    function = ca.Function("f", [x], [ca.vertcat(*values)])
    (result,) = Lanes(function, lanes)(states)
    (expected,) = evaluated(function, states)
    for k, name in enumerate([*UNARY, *BINARY]):
        # a few roundings each, little amplified: sine and cosine differ from the C library's by one unit
        np.testing.assert_allclose(result[:, k], expected[:, k], rtol=4e-15, atol=4e-15, err_msg=name)


def test_inverse_error_function():
    x = ca.SX.sym("x")
    states = np.linspace(-0.999, 0.999, 101)[:, None]
    (result,) = Lanes(ca.Function("f", [x], [ca.erfinv(x)]), 4)(states)
    # the condition number at 0.999 is about 70
    np.testing.assert_allclose(result, scipy.special.erfinv(states), rtol=2e-14, atol=1e-16)


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, np.inf, -np.inf, np.nan, 1e-310, 1e300])


@pytest.mark.parametrize("lanes", [1, 4])
def test_special_values_follow_casadi(lanes):
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    values = [
        -x,
        ca.fabs(x),
        ca.sign(x),
        ca.floor(x),
        ca.ceil(x),
        ca.logic_not(x),
        ca.sqrt(x),
        ca.exp(x),
        x**2,
    ]
    values += [x + y, x - y, x * y, x / y, ca.copysign(x, y), ca.atan2(x, y), ca.fmod(x, y), x < y, x <= y]
    values += [x == y, x != y, ca.logic_and(x, y), ca.logic_or(x, y), ca.if_else(x, y, 0), ca.erfinv(x)]
    function = ca.Function("f", [x, y], [ca.vertcat(*values)])
    left, right = (z.reshape(-1, 1) for z in np.meshgrid(SPECIAL, SPECIAL))
    (result,) = Lanes(function, lanes)(left, right)
    (expected,) = evaluated(function, left, right)
    exact = slice(0, len(values) - 1)
    np.testing.assert_allclose(result[:, exact], expected[:, exact], rtol=1e-15)
    zero = expected[:, exact] == 0
    assert np.array_equal(np.signbit(result[:, exact])[zero], np.signbit(expected[:, exact])[zero])
    np.testing.assert_allclose(result[:, -1], expected[:, -1], rtol=1e-9)  # CasADi's is less accurate


@pytest.mark.parametrize("lanes", [1, 4])
def test_minimum_and_maximum_ignore_nan(lanes):
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    function = ca.Function("f", [x, y], [ca.fmin(x, y), ca.fmax(x, y)])
    left, right = (z.reshape(-1, 1) for z in np.meshgrid(SPECIAL, SPECIAL))
    low, high = Lanes(function, lanes)(left, right)
    np.testing.assert_array_equal(low, np.fmin(left, right))
    np.testing.assert_array_equal(high, np.fmax(left, right))


def test_a_false_condition_gives_zero_even_for_nan():
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    function = ca.Function("f", [x, y], [ca.if_else(x, ca.log(y), 0)])
    (result,) = Lanes(function, 4)(np.zeros((5, 1)), np.full((5, 1), -1.0))
    assert np.array_equal(result, np.zeros((5, 1)))


def random_graph(seed: int, size: int = 150) -> ca.Function:
    rng = np.random.default_rng(seed)
    x = ca.SX.sym("x", 5)
    values = [*ca.vertsplit(x), ca.SX(0.7)]
    unary, binary = list(UNARY.values()), list(BINARY.values())
    smooth = [BINARY[n] for n in ("add", "sub", "mul", "mul", "div")]
    for _ in range(size):
        a, b = (values[rng.integers(max(0, len(values) - 40), len(values))] for _ in range(2))
        kind = rng.random()
        value = rng.choice(unary)(a) if kind < 0.2 else rng.choice(binary if kind < 0.4 else smooth)(a, b)
        values.append(ca.sin(value) if rng.random() < 0.2 else value)
    picks = rng.choice(len(values), 20)
    return ca.Function("graph", [x], [ca.vertcat(*(ca.atan(values[i]) for i in picks))])


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(seed):
    function = random_graph(seed)
    x = np.random.default_rng(seed).uniform(-1, 1, (19, 5))
    results = [Lanes(function, lanes, chunk=chunk)(x)[0] for lanes, chunk in ((1, 1000), (4, 1000), (8, 23))]
    assert all(same_bits(results[0], r) for r in results[1:])
    # A comparison or a rounding of nearly equal values may fall either way; let a few elements differ.
    (expected,) = evaluated(function, x)
    close = np.isclose(results[0], expected, rtol=1e-10, atol=1e-10, equal_nan=True)
    assert close.mean() > 0.98


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("chunk", [7, 60, 10000])
def test_cuts_do_not_change_a_bit(lanes, chunk):
    function = pendulum_like(5)
    arrays = np.random.default_rng(0).standard_normal((3, 11, 5))
    reference = Lanes(function, 1)(*arrays)
    for x, y in zip(Lanes(function, lanes, chunk=chunk)(*arrays), reference, strict=True):
        assert same_bits(x, y)
    for x, y in zip(reference, evaluated(function, *arrays), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13, atol=1e-13)


def test_long_code_in_compact_encoding_gives_the_same_bits():
    function = pendulum_like(5)
    arrays = np.random.default_rng(0).standard_normal((3, 11, 5))
    compact = Lanes(function, 1, target=host().compact())(*arrays)
    assert all(same_bits(x, y) for x, y in zip(compact, Lanes(function, 8)(*arrays), strict=True))


def test_inputs_constants_and_sines_as_outputs():
    x = ca.SX.sym("x", 2)
    y = ca.SX.sym("y")
    sparse = ca.SX(ca.Sparsity.lower(2))
    sparse[0, 0], sparse[1, 0], sparse[1, 1] = x[0], 5.0, ca.sin(x[1])
    function = ca.Function("f", [x, y], [sparse, ca.sin(x), ca.SX(3.0), x])
    states, other = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]), np.zeros((3, 1))
    for lanes in (1, 4):
        a, b, c, d = Lanes(function, lanes)(states, other)
        np.testing.assert_allclose(a, np.c_[states[:, 0], np.zeros(3), np.full(3, 5.0), np.sin(states[:, 1])])
        np.testing.assert_allclose(b, np.sin(states))
        assert np.array_equal(c, np.full((3, 1), 3.0))
        assert np.array_equal(d, states)


def test_angles_that_depend_on_angles():
    x = ca.SX.sym("x", 3)
    y = x
    for _ in range(4):
        y = ca.sin(y * 2 + x[0]) + ca.cos(ca.sum1(y))
    function = ca.Function("f", [x], [y])
    states = np.random.default_rng(0).uniform(-1, 1, (9, 3))
    for lanes in (1, 8):
        np.testing.assert_allclose(
            Lanes(function, lanes)(states)[0], evaluated(function, states)[0], rtol=1e-13
        )


def test_function_without_inputs_of_size():
    x = ca.SX.sym("x", 0)
    y = ca.SX.sym("y", 2)
    function = ca.Function("f", [x, y], [2 * y, ca.SX(0, 1)])
    for lanes in (1, 8):
        a, b = Lanes(function, lanes)(np.zeros((5, 0)), np.ones((5, 2)))
        assert np.array_equal(a, np.full((5, 2), 2.0))
        assert b.shape == (5, 0)


def test_large_workspace_comes_from_the_heap():
    n = 6000
    x = ca.SX.sym("x", n)
    s = ca.sin(x)
    function = ca.Function("f", [x], [ca.sum1(s * s[::-1])])
    states = np.random.default_rng(0).uniform(-1, 1, (9, n))
    (result,) = Lanes(function, 8)(states)
    sine = np.sin(states)
    np.testing.assert_allclose(result[:, 0], (sine * sine[:, ::-1]).sum(1), rtol=1e-11)
