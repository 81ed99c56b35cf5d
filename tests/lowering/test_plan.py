"""Plans against the same operations in NumPy; one state and batches give the same bits."""

import casadi as ca
import numpy as np
import pytest
from lowering_helpers import same_bits

from alembert.engine import Argument, FunctionSource, Kernel
from alembert.engine.target import host
from alembert.lowering.plan import RECORDS, Call, Columns, Copy, Offset, Plan, Repeat, recorded, with_numbers

RNG = np.random.default_rng(3)


def function(graph, *sizes):
    symbols = [ca.SX.sym(f"x{k}", *np.atleast_1d(size).tolist()) for k, size in enumerate(sizes)]
    found = graph(*symbols)
    return ca.Function(
        "f", symbols, [ca.densify(x) for x in (found if isinstance(found, tuple) else (found,))]
    )


def source(graph, *sizes):
    return FunctionSource(function(graph, *sizes))


def kernel(plan, shapes=None):
    def described(names):
        shape = shapes or {}
        return [Argument(name, shape.get(name, (size,))) for name, size in names.items()]

    return Kernel(
        "plan", described(plan.arguments), described(plan.results), key=str(id(plan)), build=lambda: plan
    )


def results(plan, *given, shapes=None):
    """Of a batch, after a comparison with those of its states."""
    run = kernel(plan, shapes)
    found = run(*given)
    found = found if isinstance(found, tuple) else (found,)
    for k in (0, len(given[0]) - 1):
        one = run(*(x[k] for x in given))
        for x, y in zip(found, one if isinstance(one, tuple) else (one,), strict=True):
            assert same_bits(x[k], y)
    return found


@pytest.mark.parametrize("count", [2, 21])
def test_calls_through_temporaries(count):
    x = RNG.normal(size=(count, 3))
    plan = Plan(
        {"x": 3},
        {"y": 3, "z": 1},
        {"between": 3},
        [
            Call(source(lambda x: 2 * x, 3), ["x"], ["between"]),
            Call(source(lambda a, b: (a + b, ca.sumsqr(a)), 3, 3), ["between", "x"], ["y", "z"]),
        ],
    )
    y, z = results(plan, x)
    np.testing.assert_allclose(y, 3 * x, rtol=1e-15)
    np.testing.assert_allclose(z[:, 0], (4 * x**2).sum(axis=1), rtol=1e-15)


def test_a_source_in_several_calls_is_there_once():
    double = source(lambda x: 2 * x, 3)
    steps = [Call(double, ["x"], ["between"]), Call(double, ["between"], ["y"])]
    plan = Plan({"x": 3}, {"y": 3}, {"between": 3}, steps)
    from alembert.engine.target import host

    assert plan.emit("f", 1, host()).text.count("define internal") == 2
    x = RNG.normal(size=(20, 3))
    assert same_bits(results(plan, x)[0], 4 * x)
    named = [Call("double", ["x"], ["between"]), Call("double", ["between"], ["y"])]
    assert same_bits(
        results(Plan({"x": 3}, {"y": 3}, {"between": 3}, named, {"double": double}), x)[0], 4 * x
    )


@pytest.mark.parametrize("size", [1, 5, 9])
def test_copies_and_parts(size):
    """MatrixRows of a table that is zero elsewhere, and rows of a table."""
    x = RNG.normal(size=(20, size))
    plan = Plan(
        {"x": size},
        {"table": 4 * size, "row": size},
        {},
        [
            Copy(None, "table"),
            Copy("x", Offset("table", 2 * size)),
            Call(source(lambda x: -x, size), ["x"], [Offset("table", size)]),
            Copy(Offset("table", size), "row", size),
        ],
    )
    table, row = results(plan, x)
    zero = np.zeros_like(x)
    np.testing.assert_array_equal(table, np.hstack([zero, -x, x, zero]))
    np.testing.assert_array_equal(row, -x)


@pytest.mark.parametrize("count", [0, 1, 3, 8, 13])
def test_columns(count):
    A, B, C = RNG.normal(size=(20, 2, 2)), RNG.normal(size=(20, 2, count)), RNG.normal(size=(20, 2, count))
    solve = function(lambda A, b, c: (ca.reshape(A, 2, 2).T @ b + c, b - c), 4, 2, 2)
    columns = Columns(solve, "A", ["B", "C"], ["X", "Y"], count)
    sizes = {"B": 2 * count, "C": 2 * count}
    plan = Plan({"A": 4, **sizes}, {"X": 2 * count, "Y": 2 * count}, {}, [columns])
    X, Y = results(plan, A.reshape(20, 4), B.reshape(20, -1), C.reshape(20, -1))
    np.testing.assert_allclose(X.reshape(B.shape), A @ B + C, atol=1e-14)
    np.testing.assert_allclose(Y.reshape(B.shape), B - C, atol=1e-15)


def test_repeat_until_the_last_lane_is_done():
    """Newton's iteration for a square root; lanes that are done are left alone."""
    a = np.abs(RNG.normal(size=(21, 1))) * 10.0 ** RNG.integers(-6, 7, size=(21, 1))

    def iterate(x, a):
        following = (x[1] + a / x[1]) / 2
        done = ca.fabs(following - x[1]) <= 1e-14 * following
        return ca.if_else(x[0], x, ca.vertcat(ca.if_else(done, 1, 0), following, x[2] + 1))

    plan = Plan(
        {"a": 1},
        {"root": 3},
        {"next": 3},
        [
            Call(source(lambda a: ca.vertcat(0, a, 0), 1), ["a"], ["root"]),
            Repeat([Call(source(iterate, 3, 1), ["root", "a"], ["next"]), Copy("next", "root")], "root", 60),
        ],
    )
    (root,) = results(plan, a)
    np.testing.assert_allclose(root[:, 1], np.sqrt(a[:, 0]), rtol=1e-15)
    assert (root[:, 0] == 1).all()
    assert len(set(root[:, 2])) > 3  # iterations


def test_repeat_ends_after_the_most_rounds():
    steps = [Call(source(lambda x: ca.vertcat(0, x[1] + 1), 2), ["y"], ["next"]), Copy("next", "y")]
    plan = Plan({"x": 2}, {"y": 2}, {"next": 2}, [Copy("x", "y"), Repeat(steps, "y", 7)])
    np.testing.assert_array_equal(results(plan, np.zeros((20, 2)))[0][:, 1], 7)


@pytest.mark.parametrize("count", [0, 1, 5, RECORDS])
def test_fold_with_records(count):
    """x <- 2 x + u, three rounds between one record and the next."""
    x, u = RNG.normal(size=(2, 20, 2))
    step = Call("step", ["state", "u"], ["next"])
    arguments = {"state": 2, "u": 2, "every": 1, "count": 1}
    plan = recorded({"step": source(lambda x, u: 2 * x + u, 2, 2)}, arguments, {}, [step])
    run = kernel(plan, {"records": (RECORDS, 2), "every": (), "count": ()})
    found = run(x, u, 3.0, float(count))
    now = x
    for k in range(count):
        for _ in range(3):
            now = 2 * now + u
        np.testing.assert_allclose(found[:, k], now, rtol=1e-13)
    if count:
        one = run(x[4], u[4], 3.0, float(count))
        assert same_bits(one[:count], found[4, :count])


def test_steps_before_a_plan():
    inner = Plan({"a": 3, "b": 3}, {"y": 3}, {"t": 3}, [
        Copy("b", "t"), Call(source(lambda a, t: a - t, 3, 3), ["a", "t"], ["y"])
    ])  # fmt: skip
    first = [Call(source(lambda c: 3 * c, 3), ["c"], ["b"])]
    plan = inner.after({"a": 3, "c": 3}, {"b": 3}, first)
    a, c = RNG.normal(size=(2, 20, 3))
    np.testing.assert_allclose(results(plan, a, c)[0], a - 3 * c, atol=1e-15)


def test_a_plan_is_a_source():
    inner = Plan({"x": 2}, {"y": 2}, {}, [Call(source(lambda x: x + 1, 2), ["x"], ["y"])])
    plan = Plan({"x": 2}, {"y": 2}, {"t": 2}, [Call(inner, ["x"], ["t"]), Call(inner, ["t"], ["y"])])
    x = RNG.normal(size=(20, 2))
    assert same_bits(results(plan, x)[0], x + 1 + 1)


def test_numbers_are_in_tables():
    """Code whose last argument is fixed has the same text whatever the numbers are, for one state and for many."""
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p", 3)
    f = ca.Function("f", [x, p], [ca.vertcat(p[0] * x[0] + p[1], p[2] * x[1])])
    texts, states = set(), np.random.default_rng(0).normal(size=(40, 2))
    for numbers in (np.array([1.0, 2.5, -3.0]), np.array([0.5, 0.0, 7.0])):
        made = with_numbers(FunctionSource(f), {"x": 2}, {"y": 2}, numbers)
        texts.add(made.emit("f", 4, host()).text)
        kernel = Kernel(
            "f", [Argument("x", (2,))], [Argument("y", (2,))], key=f"tests:{numbers}", build=lambda m=made: m
        )
        wanted = states * numbers[[0, 2]] + np.array([numbers[1], 0.0])
        np.testing.assert_allclose(kernel(states), wanted, rtol=0, atol=1e-14)
        np.testing.assert_allclose(kernel(states[0]), wanted[0], rtol=0, atol=1e-14)
    assert len(texts) == 1
