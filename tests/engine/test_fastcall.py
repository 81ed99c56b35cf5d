"""The entry points that Python calls directly: what they accept, and that they count references right."""

import ctypes
import gc
import resource
import sys

import casadi as ca
import numpy as np
import pytest
from engine_helpers import kernel_of, pendulum_like, same_bits

from alembert.engine import Argument, FunctionSource, Kernel, fastcall
from alembert.engine.kernel import BODY, shared_entry
from alembert.engine.target import host
from alembert.errors import ArgumentError
from alembert.lowering.stage_loop import StageLoop

pytestmark = pytest.mark.skipif(not fastcall.supported(), reason="the general path is used on this platform")

N = 4


@pytest.fixture(scope="module")
def kernel():
    """Compiled at once: some tests say that entry points are not supported."""
    return kernel_of(pendulum_like(N), "forward", documentation="What it does.").prepare(1)


@pytest.fixture
def state():
    return list(np.random.default_rng(0).standard_normal((3, N)))


@pytest.fixture
def no_fallback(kernel, monkeypatch):
    """Fails the test when the fallback is used. The bound method is fixed, so its first step is replaced."""

    def refuse(*_):
        raise AssertionError("the fallback was used")

    monkeypatch.setattr(kernel, "read", refuse)


def test_it_is_a_function(kernel):
    function = kernel.function()
    assert type(function).__name__ == "builtin_function_or_method"
    assert function.__name__ == "forward"
    assert function.__doc__ == "What it does."


def test_plain_arrays_go_straight_through(kernel, state, no_fallback):
    x, power = kernel.function()(*state)
    assert x.shape == (N,)
    assert power.shape == (1,)
    assert x.flags.owndata
    assert x.flags.writeable


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.tolist(),
        lambda x: x.astype(np.float32).astype(float)[None][0].reshape(1, N)[0].astype(">f8"),
        lambda x: np.repeat(x, 2)[::2],
        lambda x: x.copy().view(np.recarray),
        lambda x: np.ma.masked_array(x),
        lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float64),
    ],
)
def test_everything_else_falls_back(kernel, state, change):
    expected = kernel(*state)
    for k in range(3):
        arguments = list(state)
        arguments[k] = change(state[k])
        value = kernel.function()(*arguments)
        np.testing.assert_allclose(value[0], expected[0], rtol=1e-5)
    assert kernel.function()(state[0][None], *state[1:])[0].shape == (1, N)


def test_wrong_arguments_reach_the_messages(kernel, state):
    function = kernel.function()
    with pytest.raises(ArgumentError, match="takes 3 arguments"):
        function()
    with pytest.raises(ArgumentError, match=r"q has shape \(5,\)"):
        function(np.zeros(5), *state[1:])
    with pytest.raises(ArgumentError, match="u has dtype object"):
        function(*state[:2], None)
    with pytest.raises(TypeError, match="wrong"):
        function(*state, wrong=1)


def test_keywords(kernel, state):
    out = np.zeros(N), np.zeros(1)
    assert kernel.function()(*state, out=out) is out
    assert same_bits(out[0], kernel(*state)[0])


def test_fast_fills_the_arrays(kernel, state, no_fallback):
    out = np.zeros(N), np.zeros(1)
    assert kernel.fast()(*state, *out) is None
    x, power = kernel.function()(*state)
    assert same_bits(out[0], x)
    assert same_bits(out[1], power)


def test_fast_accepts_overlap_and_other_layouts(kernel, state):
    x, _ = kernel(*state)
    fast = kernel.fast()
    q = state[0].copy()
    fast(q, *state[1:], q, np.zeros(1))
    assert same_bits(q, x)
    wide = np.zeros(2 * N)
    fast(*(y.tolist() for y in state), wide[::2], np.zeros(1))
    assert same_bits(wide[::2], x)


def test_fast_messages(kernel, state):
    fast = kernel.fast()
    with pytest.raises(ArgumentError, match=r"forward: takes 5 arguments \(q, v, u, x, power\), got 3"):
        fast(*state)
    with pytest.raises(ArgumentError, match=r"forward: the fast function takes one state, not a batch"):
        fast(*(y[None] for y in state), np.zeros((1, N)), np.zeros((1, 1)))
    with pytest.raises(ArgumentError, match=r"forward: out\[0\] \(x\) is read-only"):
        fast(*state, np.broadcast_to(0.0, N), np.zeros(1))
    with pytest.raises(ArgumentError, match="overlap"):
        memory = np.zeros(N)
        fast(*state, memory, memory[:1])


def test_references_are_counted_right(kernel, state):
    x = ca.SX.sym("x", 3)
    scalar = Kernel(
        "energy",
        [Argument("x", (3,))],
        [Argument("e", ())],
        key="energy",
        build=lambda: FunctionSource(ca.Function("f", [x], [ca.dot(x, x)])),
    )
    calls = {
        "results": (kernel.function(), tuple(state)),
        "scalar": (scalar.function(), (np.ones(3),)),
        "into": (kernel.fast(), (*state, np.zeros(N), np.zeros(1))),
        "fallback": (kernel.function(), tuple(y.tolist() for y in state)),
    }
    descriptor = np.dtype(np.float64)
    for name, (function, arguments) in calls.items():
        watched = [*arguments, function, descriptor, np.ndarray]
        function(*arguments)
        gc.collect()
        gc.disable()  # what other tests left would be counted where it is freed meanwhile
        try:
            before = [sys.getrefcount(y) for y in watched]
            for _ in range(1000):
                function(*arguments)
            after = [sys.getrefcount(y) for y in watched]
        finally:
            gc.enable()
        assert before == after, name
        with pytest.raises((ArgumentError, TypeError)):
            function(*arguments, *arguments)
        assert [sys.getrefcount(y) for y in watched] == before, name
        result = function(*arguments)
        parts = result if isinstance(result, tuple) else (result,)
        if result is not None:
            del result
            assert all(sys.getrefcount(part) <= 4 for part in parts)


def test_a_million_calls_do_not_grow(kernel, state):
    function, fast = kernel.function(), kernel.fast()
    out = np.zeros(N), np.zeros(1)
    for _ in range(1000):
        function(*state)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(500_000):
        function(*state)
        fast(*state, *out)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 2000  # kB; one lost array in a hundred calls would be 500


def test_large_workspace_on_the_heap():
    n = 6000
    x = ca.SX.sym("x", n)
    s = ca.sin(x)
    f = kernel_of(ca.Function("f", [x], [ca.sum1(s * s[::-1])]))
    value = np.random.default_rng(0).uniform(-1, 1, n)
    np.testing.assert_allclose(f.function()(value)[0], np.sin(value) @ np.sin(value)[::-1], rtol=1e-11)


def test_general_path_alone_gives_the_same(monkeypatch, kernel, state):
    monkeypatch.setattr(fastcall, "supported", lambda: False)
    general = kernel_of(pendulum_like(N), "forward")
    assert same_bits(general(*state)[0], kernel(*state)[0])
    assert same_bits(general.function()(*state)[0], kernel(*state)[0])
    out = np.zeros(N), np.zeros(1)
    general.fast()(*state, *out)
    assert same_bits(out[0], kernel(*state)[0])


@pytest.mark.parametrize("count", [1, 21])
@pytest.mark.parametrize("supported", [True, False])
def test_bound_kernels_run_again_on_what_their_arrays_then_hold(monkeypatch, kernel, count, supported):
    monkeypatch.setattr(fastcall, "supported", lambda: supported)
    given = np.random.default_rng(1).standard_normal((3, count, N))
    left = np.zeros((count, N)), np.zeros((count, 1))
    run = kernel.prepare(1).prepare().bind(count, list(given), left)
    for _ in range(3):  # by the table of the kernel, and from then on by one call without arguments
        given *= 0.5
        run()
        for x, y in zip(left, kernel(*given), strict=True):
            assert same_bits(x, y)


def test_what_machine_code_leaves_of_its_words():
    """The status of a kernel and the stages of a loop are both 32 bits, and small numbers have no references to lose."""
    x, before = ca.SX.sym("x"), ca.SX.sym("before")
    step = ca.Function("step", [x, before], [x + before, 3 - x])
    loop = StageLoop(step, [0, 0, 1, 0], backward=False, stop=1)
    values, sums, room = np.arange(6.0), np.zeros(7), np.zeros(6)
    run = loop.bind(6, [values, sums, sums, room])
    assert [run() for _ in range(1000)] == [3] * 1000
    values[...] = 1.0
    assert run() == 6
    assert sums[-1] == 6.0


def test_other_threads_may_run_beside_bound_kernels():
    """Python's lock is not held meanwhile: Python itself says so, as the machine code that is called."""
    held = ctypes.cast(ctypes.pythonapi.PyGILState_Check, ctypes.c_void_p).value or 0
    assert fastcall.again(shared_entry("again"), held, (), None)() == 0
    assert ctypes.pythonapi.PyGILState_Check() == 1


def test_entry_points_are_not_compiled_with_a_kernel(kernel):
    """All kernels share them: what a kernel has of its own is a table of words."""
    text = kernel._module(1, host()).text
    assert f"@{BODY}_one(" in text
    assert "vectorcall" not in text
    others = [kernel_of(pendulum_like(n)).function() for n in (2, 3)]
    assert all(type(f.__self__).__name__ == "_Table" for f in (*others, kernel.function()))


def test_matrices_scalars_and_many_arguments():
    """Shapes of any rank, results that become numbers, and more arguments than the entry points take."""
    x, A = ca.SX.sym("x", 3), ca.SX.sym("A", 3, 2)
    build = ca.Function("f", [x, A], [ca.dot(x, x), A, x])
    arguments = [Argument("x", (3,)), Argument("A", (3, 2))]
    results = [Argument("e", ()), Argument("B", (3, 2)), Argument("y", (3,))]
    f = Kernel("f", arguments, results, key="shapes", build=lambda: FunctionSource(build)).function()
    given = np.arange(3.0), np.arange(6.0).reshape(3, 2)
    e, B, y = f(*given)
    assert isinstance(e, float)
    assert e == 5.0
    np.testing.assert_array_equal(B, given[1])
    np.testing.assert_array_equal(y, given[0])
    with pytest.raises(ArgumentError, match=r"A has shape \(2, 3\), expected \(..., 3, 2\)"):
        f(given[0], given[1].reshape(2, 3))
    many = [ca.SX.sym("x", 1) for _ in range(fastcall.MOST)]
    total = ca.Function("g", many, [sum(many[1:], many[0])])
    names = [Argument(f"x{k}", (1,)) for k in range(len(many))]
    g = Kernel("g", names, [Argument("y", (1,))], key="many", build=lambda: FunctionSource(total))
    assert g.function()(*np.ones((len(many), 1))) == len(many)


def test_functions_that_the_collector_ends_read_memory_that_is_there():
    """Kernel and function refer to one another. The collector empties the function's table first, and the function, when it
    ends, reads its definition: which therefore is not the table's."""
    f = pendulum_like(N)
    for k in range(20):
        function = kernel_of(f, f"cycle {k % 2}").function()
        assert not any(isinstance(x, fastcall._MethodDefinition) for x in function.__self__.kept)
    before = fastcall._definition.cache_info().currsize
    del function
    gc.collect()
    assert fastcall._definition.cache_info().currsize == before
    kernel_of(f, "cycle 0").function()
    assert fastcall._definition.cache_info().currsize == before
