"""Lists of instructions for functions that differ in their numbers alone."""

import casadi as ca
import numpy as np
import pytest

from alembert.engine import Argument, FunctionSource, Kernel, codegen, instructions, interpreter
from alembert.engine.target import host
from alembert.lowering.plan import Columns, Plan

SIZE = 300


def function(numbers):
    """Long enough to be looked for; the numbers are in sums, products and divisions."""
    x = ca.SX.sym("x", 4)
    y = x
    for k in range(SIZE):
        a = numbers[k % len(numbers)]
        y = ca.vertcat(a * y[1] + y[0], y[2] / 3.0 - a, ca.sin(y[3]) * 0.5, y[0])
    return ca.Function("f", [x], [y, ca.SX([0.0, 1.0]) * y[:2]])


def kernel(numbers, key):
    f = function(numbers)
    results = [Argument("y", (4,)), Argument("z", (2,))]
    return Kernel("f", [Argument("x", (4,))], results, key=key, build=lambda: FunctionSource(f)), f


@pytest.fixture
def known(monkeypatch):
    monkeypatch.setattr(interpreter, "KNOWN_FORMS", {})
    return interpreter.KNOWN_FORMS


def test_other_numbers_take_the_same_list(known, monkeypatch):
    """The list is made once, and the results are those of machine code to the bit, alone and in batches."""
    x = np.random.default_rng(0).normal(size=(40, 4))
    made = []
    monkeypatch.setattr(
        instructions, "read", lambda f, *more, _read=instructions.read: made.append(f) or _read(f, *more)
    )
    for k, numbers in enumerate([(0.25, 0.125), (0.75, 0.0625)]):
        first, f = kernel(numbers, f"tests: forms {k}")
        for each in (x[0], x):
            interpreted = first(each)
            assert first.interpreted or each is x
            good = kernel(numbers, f"tests: good {k}")[0]
            good.prepare(), good.prepare(1)
            for one, other in zip(interpreted, good(each), strict=True):
                np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(first(x[0])[0], np.array(f(x[0])[0]).ravel(), rtol=1e-12, atol=1e-12)
    assert len(known) == len({1, host().lanes})  # for one lane and for many
    assert len({f.name() for f in made}) == 1


def test_numbers_that_change_the_form(known):
    """Equal numbers that are no longer equal, and ones: each needs a list of its own."""
    found = {
        interpreter.form_of(function(x)).key
        for x in [(0.25, 0.5), (0.25, 0.125), (0.25, 1.0), (0.75, 0.0625)]
    }
    assert len(found) == 3  # the second and the last one are alike; 0.5 is there already


def test_short_functions_are_not_looked_for():
    x = ca.SX.sym("x", 2)
    assert interpreter.form_of(ca.Function("f", [x], [2.5 * x])) is None


def test_as_many_lists_as_there_is_room_for(known, monkeypatch):
    monkeypatch.setattr(interpreter, "MOST_FORMS", 1)
    for k, numbers in enumerate([(0.25, 0.125), (0.25,)]):
        kernel(numbers, f"tests: room {k}")[0](np.zeros(4))
        assert len(known) == 1


def test_a_solver_for_columns_is_listed_once_for_all_numbers(monkeypatch):
    """Functions on the columns of matrices in a plan are known by their form too."""

    def plan(scale):
        A, b = ca.SX.sym("A", 36), ca.SX.sym("b", 6)
        M = ca.reshape(A, 6, 6) + scale * ca.SX.eye(6)
        solve = ca.Function("solve", [A, b], [scale * ca.solve(M, b)])
        return Plan({"A": 36, "B": 24}, {"X": 24}, {}, [Columns(solve, "A", ["B"], ["X"], 4)])

    target = host().interpreting()
    first = plan(3.5).emit("f", 1, target)
    monkeypatch.setattr(interpreter, "Listing", None)  # nothing is listed again
    monkeypatch.setattr(codegen, "Listing", None)
    again, other = plan(3.5).emit("f", 1, target), plan(4.25).emit("f", 1, target)
    assert again.text == first.text == other.text
    (name,) = first.lists
    assert again.lists[name] == first.lists[name] != other.lists[name]
