import gc
import threading
import weakref

import casadi as ca
import numpy as np
import pytest
from engine_helpers import evaluated, kernel_of, pendulum_like, same_bits

from alembert.engine import Argument, FunctionSource, Kernel
from alembert.engine import kernel as kernel_module
from alembert.errors import ArgumentError

N = 5


@pytest.fixture(scope="module")
def kernel():
    return kernel_of(pendulum_like(N), "forward")


@pytest.fixture(scope="module")
def states():
    return np.random.default_rng(0).standard_normal((3, 40, N))


@pytest.fixture(scope="module")
def single(kernel, states):
    """Every state computed alone."""
    results = [kernel(*state) for state in zip(*states, strict=True)]
    return np.array([x for x, _ in results]), np.array([p for _, p in results])


def check(results, single, picks=slice(None)):
    x, power = results
    assert same_bits(x, single[0][picks])
    assert same_bits(power, single[1][picks])


# -- values ----------------------------------------------------------------------------------------


def test_agrees_with_casadi(states, single):
    expected = evaluated(pendulum_like(N), *states)
    np.testing.assert_allclose(single[0], expected[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(single[1], expected[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("count", [*range(1, 18), 40])
def test_every_batch_size_gives_the_same_bits(kernel, states, single, count):
    check(kernel(*states[:, :count]), single, slice(count))


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 100])
def test_threads_give_the_same_bits(kernel, states, single, threads):
    check(kernel(*states, threads=threads), single)


def test_large_batches_use_threads(kernel, states, single, monkeypatch):
    monkeypatch.setattr(kernel_module, "THREAD_WORK", 100)
    monkeypatch.setattr(kernel_module, "processors", lambda: 3)
    check(kernel(*states), single)


def test_empty_batch(kernel):
    x, power = kernel(*np.zeros((3, 0, N)))
    assert x.shape == (0, N)
    assert power.shape == (0, 1)
    x, power = kernel(*np.zeros((3, 4, 0, N)))
    assert x.shape == (4, 0, N)


# -- layouts ---------------------------------------------------------------------------------------


def strided(x: np.ndarray) -> np.ndarray:
    wide = np.zeros((x.shape[0] * 3, x.shape[1] * 2))
    wide[::3, ::2] = x
    return wide[::3, ::2]


LAYOUTS = {
    "fortran": np.asfortranarray,
    "strided": strided,
    "reversed states": lambda x: x[::-1].copy()[::-1],
    "reversed elements": lambda x: x[:, ::-1].copy()[:, ::-1],
    "transposed view": lambda x: x.T.copy().T,
    "unaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float64).reshape(x.shape),
    "big endian": lambda x: x.astype(">f8"),
    "read only": lambda x: np.broadcast_to(x, x.shape),
    "columns of a table": lambda x: np.hstack([np.zeros_like(x), x, x])[:, N : 2 * N],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("count", [1, 3, 13, 40])
def test_any_layout(kernel, states, single, layout, count):
    check(kernel(*(LAYOUTS[layout](x) for x in states[:, :count])), single, slice(count))


@pytest.mark.parametrize(
    "layout", ["fortran", "strided", "reversed states", "reversed elements", "columns of a table"]
)
@pytest.mark.parametrize("count", [3, 40])
def test_results_into_any_layout(kernel, states, single, layout, count):
    out = LAYOUTS[layout](np.zeros((count, N))), np.zeros((count, 1))
    returned = kernel(*states[:, :count], out=out)
    assert returned is out
    check(out, single, slice(count))


def test_broadcasting(kernel, states, single):
    q, v, u = states
    x, _ = kernel(q, v[0], u[1])
    assert same_bits(x, np.array([kernel(a, v[0], u[1])[0] for a in q]))
    x, power = kernel(q.reshape(4, 10, N), v.reshape(4, 10, N), u.reshape(4, 10, N))
    assert x.shape == (4, 10, N)
    assert same_bits(x.reshape(40, N), single[0])
    x, power = kernel(q[:4, None], v[:3], u[0])
    assert x.shape == (4, 3, N)
    assert power.shape == (4, 3, 1)
    expected = np.array([[kernel(a, b, u[0])[0] for b in v[:3]] for a in q[:4]])
    assert same_bits(x, expected)


def test_slices_of_higher_dimension(kernel, states, single):
    cube = np.random.default_rng(1).standard_normal((3, 4, 6, N))
    for pick in (np.s_[::2, ::3], np.s_[1:3, ::-1], np.s_[:, 2]):
        x, _ = kernel(*(c[pick] for c in cube))
        alone, _ = kernel(*(c[pick].reshape(-1, N) for c in cube))
        assert same_bits(x.reshape(-1, N), alone)


def test_lists_integers_and_single_precision(kernel):
    ones = kernel([1] * N, (1.0,) * N, np.ones(N, dtype=np.int32))
    floats = kernel(*np.ones((3, N), dtype=np.float32))
    for x, y in zip(ones, floats, strict=True):
        assert same_bits(x, y)


def test_matrices_are_in_c_order():
    A, x = ca.SX.sym("A", 3, 4), ca.SX.sym("x", 4)
    f = kernel_of(ca.Function("f", [A, x], [A @ x, A.T, ca.SX(ca.Sparsity.diag(2), ca.SX([1, 2]))]))
    rng = np.random.default_rng(0)
    for batch in ((), (3,), (20,), (2, 9)):
        a, b = rng.standard_normal((*batch, 3, 4)), rng.standard_normal((*batch, 4))
        product, transposed, diagonal = f(a, b)
        np.testing.assert_allclose(product, np.einsum("...ij,...j", a, b), rtol=1e-13, atol=1e-14)
        assert np.array_equal(transposed, np.swapaxes(a, -1, -2))
        assert np.array_equal(diagonal, np.broadcast_to(np.diag([1.0, 2.0]), (*batch, 2, 2)))
        swapped = np.swapaxes(np.swapaxes(a, -1, -2).copy(), -1, -2)  # not one stride over the elements
        assert same_bits(f(swapped, b)[0], product)
        out = np.zeros_like(product), np.swapaxes(np.zeros_like(a), -1, -2), np.zeros_like(diagonal)
        f(a, b, out=out)
        assert same_bits(out[1], transposed)


def test_three_dimensional_results_and_scalars():
    t, x = ca.SX.sym("t"), ca.SX.sym("x", 2)
    function = ca.Function("f", [t, x], [ca.vertcat(*[k * x[0] + t for k in range(8)]), t * x[1]])
    f = Kernel(
        "f",
        [Argument("t", ()), Argument("x", (2,))],
        [Argument("H", (2, 2, 2)), Argument("e", ())],
        key="three",
        build=lambda: FunctionSource(function),
    )
    H, e = f(2.0, [3.0, 4.0])
    assert np.array_equal(H, 3.0 * np.arange(8).reshape(2, 2, 2) + 2)
    assert isinstance(e, np.float64)
    assert e == 8.0
    H, e = f(np.array(2.0), np.array([3.0, 4.0]))
    assert isinstance(e, np.float64)
    assert e == 8.0
    H, e = f(np.arange(9.0), np.ones((9, 2)))
    assert H.shape == (9, 2, 2, 2)
    assert np.array_equal(e, np.arange(9.0))


# -- out -------------------------------------------------------------------------------------------


def test_out_may_overlap_the_arguments(states):
    q = ca.SX.sym("q", N)
    f = kernel_of(ca.Function("f", [q], [q[::-1] + q[0]]))
    for count in (1, 20):
        x = states[0, :count].copy()
        expected = f(x)
        assert f(x, out=x) is x
        assert same_bits(x, expected)
    x = states[0].copy()
    expected = f(x[:-1])
    f(x[:-1], out=x[1:])
    assert same_bits(x[1:], expected)


# -- messages --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def seven():
    x, y = ca.SX.sym("x", 7), ca.SX.sym("y", 7)
    return Kernel(
        "forward_dynamics",
        [
            Argument("q", (7,)),
            Argument("tau", (7,), "the model has 7 degrees of freedom (joint 'wrist' has 2)"),
        ],
        [Argument("a", (7,))],
        key="seven",
        build=lambda: FunctionSource(ca.Function("f", [x, y], [x + y])),
    )


@pytest.mark.parametrize("batch", [(), (12,)])
def test_wrong_shape(seven, batch):
    shape = str((*batch, 6)).replace("(", r"\(").replace(")", r"\)")
    expected = rf"^forward_dynamics: tau has shape {shape}, expected \(\.\.\., 7\); the model has 7 degrees"
    with pytest.raises(ArgumentError, match=expected):
        seven(np.zeros((*batch, 7)), np.zeros((*batch, 6)))
    with pytest.raises(ArgumentError, match=r"^forward_dynamics: q has shape \(\), expected \(\.\.\., 7\)$"):
        seven(1.0, np.zeros(7))


def test_wrong_batch(seven):
    expected = r"^forward_dynamics: the batch dimensions do not go together: q \(3,\), tau \(2, 4\)$"
    with pytest.raises(ArgumentError, match=expected):
        seven(np.zeros((3, 7)), np.zeros((2, 4, 7)))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.zeros(7, dtype=complex), "complex128"),
        (np.zeros(7, dtype=bool), "bool"),
        (np.array(["a"] * 7), "<U1"),
        ([None] * 7, "object"),
        (np.zeros(7, dtype="M8[s]"), r"datetime64\[s\]"),
    ],
)
def test_wrong_type(seven, value, dtype):
    with pytest.raises(
        ArgumentError, match=f"^forward_dynamics: q has dtype {dtype}, expected real numbers$"
    ):
        seven(value, np.zeros(7))


def test_what_is_no_array(seven):
    with pytest.raises(ArgumentError, match=r"^forward_dynamics: q \(list\) does not convert to an array$"):
        seven([[1, 2], [3]], np.zeros(7))
    with pytest.raises(ArgumentError, match=r"^forward_dynamics: q \(SX\) does not convert to an array$"):
        seven(ca.SX.sym("q", 7), np.zeros(7))


def test_wrong_number_of_arguments(seven):
    with pytest.raises(
        ArgumentError, match=r"^forward_dynamics: takes 2 arguments \(q, tau\), got 1 argument$"
    ):
        seven(np.zeros(7))
    with pytest.raises(ArgumentError, match=r"got 3 arguments$"):
        seven(*np.zeros((3, 7)))
    with pytest.raises(TypeError, match="velocity"):
        seven(*np.zeros((2, 7)), velocity=3)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros(6), r"out has shape \(6,\), expected \(7,\)"),
        (np.zeros((1, 7)), r"out has shape \(1, 7\), expected \(7,\)"),
        (np.zeros(7, dtype=np.float32), r"out has dtype float32, expected float64"),
        ([0.0] * 7, r"out must have an array for 1 result \(a\), got 7 arrays"),
        ((np.zeros(7), np.zeros(7)), r"out must have an array for 1 result \(a\), got 2 arrays"),
        (np.broadcast_to(0.0, 7), r"out is read-only"),
        (3.0, r"out is a float, expected a NumPy array"),
    ],
)
def test_wrong_out(seven, out, message):
    with pytest.raises(ArgumentError, match=f"^forward_dynamics: {message}$"):
        seven(*np.zeros((2, 7)), out=out)


def test_wrong_out_of_several(kernel, states):
    with pytest.raises(
        ArgumentError, match=r"^forward: out\[1\] \(power\) has shape \(2,\), expected \(1,\)$"
    ):
        kernel(*states[:, 0], out=(np.zeros(N), np.zeros(2)))
    memory = np.zeros(N)
    with pytest.raises(ArgumentError, match=r"^forward: the arrays of out overlap$"):
        kernel(*states[:, 0], out=(memory, memory[:1]))


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2"])
def test_wrong_threads(seven, threads):
    with pytest.raises(
        ArgumentError, match=r"^forward_dynamics: threads is .*, expected a positive integer or None$"
    ):
        seven(*np.zeros((2, 30, 7)), threads=threads)


def test_declared_shapes_must_fit():
    x = ca.SX.sym("x", 3)
    build = lambda: FunctionSource(ca.Function("f", [x], [x]))  # noqa: E731
    f = Kernel("f", [Argument("x", (2,))], [Argument("y", (3,))], key="misfit", build=build)
    with pytest.raises(ArgumentError, match=r"^f: the arguments x \(2,\) do not fit code with sizes \[3\]$"):
        f(np.zeros(2))


# -- compilation -----------------------------------------------------------------------------------


def test_compiled_when_needed():
    x = ca.SX.sym("x", 2)
    built = []

    def build():
        built.append(1)
        return FunctionSource(ca.Function("f", [x], [2 * x]))

    f = Kernel("f", [Argument("x", (2,))], [Argument("y", (2,))], key="lazy", build=build)
    assert not built
    f(np.zeros((20, 2)))
    f.prepare(lanes=1)
    f(np.zeros(2))
    assert len(built) == 1
    assert "f(x) -> y" in repr(f)


def test_the_loop_over_batches_is_made_for_the_first_batch(states, single, monkeypatch):
    kernel = kernel_of(pendulum_like(N), "no loop yet")
    asked = []
    made = kernel_module.batch_entry
    monkeypatch.setattr(kernel_module, "batch_entry", lambda lanes: asked.append(lanes) or made(lanes))
    kernel.function()
    check(kernel(*states[:, 0]), single, 0)
    check(kernel(*states[:, 0].tolist()), single, 0)
    check([x[0] for x in kernel(*states[:, :1])], single, 0)
    assert not asked
    for _ in range(2):
        check(kernel(*states[:, :2]), single, slice(2))
    assert len(asked) == 1


def test_many_threads_may_call_and_compile_at_once(states, single):
    kernel = kernel_of(pendulum_like(N), "forward")
    failures = []
    barrier = threading.Barrier(6)

    def work(k):
        barrier.wait()
        for _ in range(20):
            x, _ = kernel(*states[:, k])
            batch, _ = kernel(*states)
            if not (same_bits(x, single[0][k]) and same_bits(batch, single[0])):
                failures.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_machine_code_lives_as_long_as_something_uses_it(states, single):
    kernel = kernel_of(pendulum_like(N), "forward")
    function = kernel.function()
    reference = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert same_bits(function(*states[:, 0])[0], single[0][0])
    del function
    gc.collect()
    assert reference() is None


def test_code_that_is_made_quickly_gives_the_same_bits():
    x, y = ca.SX.sym("x", 40), ca.SX.sym("y", 3)
    r = ca.sin(x) @ y.T
    function = ca.Function("f", [x, y], [ca.densify(r.T @ r), ca.sqrt(1 + ca.sumsqr(x)) * ca.cumsum(x)])
    kernels = [
        Kernel(
            "f",
            [Argument("x", (40,)), Argument("y", (3,))],
            [Argument("r", (3, 3)), Argument("s", (40,))],
            key=f"quick {longest}",
            build=lambda longest=longest: FunctionSource(function, longest=longest),
        )
        for longest in (None, 10)
    ]
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(21, 40)), rng.normal(size=(21, 3))
    for one, two in zip(kernels[0](x, y), kernels[1](x, y), strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_kernel_that_is_only_bound_has_no_entry_points():
    """Called all the same, it checks in Python and gives the same bits."""
    q, v, u = np.random.default_rng(5).normal(size=(3, 4))
    plain = kernel_of(pendulum_like(4))
    bound = kernel_of(pendulum_like(4), bound=True)
    for x, y in zip(plain(q, v, u), bound(q, v, u), strict=True):
        assert same_bits(np.asarray(x), np.asarray(y))
    assert bound._compiled[1].call is None
    results = np.empty((1, 4)), np.empty((1, 1))
    bound.bind(1, [x[None] for x in (q, v, u)], results)()
    assert same_bits(results[0][0], plain(q, v, u)[0])
    into = np.empty(4), np.empty(1)
    bound.fast()(q, v, u, *into)
    assert same_bits(into[0], results[0][0])
    with pytest.raises(ArgumentError, match="f: q has shape"):
        bound(q[:3], v, u)
