"""Interpreted code gives the bits of compiled code, and gives way to it when it has run often enough."""

import casadi as ca
import numpy as np
import pytest
from engine_helpers import Lanes, kernel_of, same_bits
from test_codegen import BINARY, UNARY

from alembert.engine import Argument, FunctionSource, Kernel, cache, kernel, loader, prepare
from alembert.engine.target import host
from alembert.lowering.plan import Call, Columns, Plan, recorded
from alembert.lowering.stage_loop import StageLoop


@pytest.fixture
def compiled(monkeypatch):
    """How long the modules were that LLVM has made machine code of, without those that all kernels share.

    Runs alone are counted, not Python's part in calls.
    """
    found: list[int] = []
    original = loader.compile_ir

    def counted(text, target, **options):
        if "@alembert_kernel(" in text or "alembert_stage" in text:
            found.append(len(text))
        return original(text, target, **options)

    monkeypatch.setattr(loader, "compile_ir", counted)
    monkeypatch.setattr(kernel, "CALL", 0)
    return found


def long(count: int = kernel.FEWEST) -> ca.Function:
    """More than `count` operations that depend on each other in no simple way."""
    x = ca.SX.sym("x", 3)
    y = ca.vertcat(ca.sin(x), ca.cos(x[0] * x[1]))
    while ca.Function("f", [x], [y]).n_instructions() < count + 20:
        z = ca.vertcat(y[1:] * y[:-1] - y[0], ca.sin(y[1]) / 3)
        y = z / (1 + z * z)
    return ca.Function("f", [x], [y, ca.sum1(y)], ["x"], ["y", "sum"])


@pytest.mark.parametrize("lanes", [1, 4])
def test_every_operation_gives_the_bits_of_compiled_code(lanes):
    x = ca.SX.sym("x", 2)
    values = [f(x[0]) for f in UNARY.values()] + [f(x[0], x[1]) for f in BINARY.values()]
    function = ca.Function("f", [x], [ca.vertcat(*values), 3 * x, ca.SX.zeros(2)])
    states = np.random.default_rng(3).uniform(-2, 2, (37, 2))
    states[:4] = [[np.nan, 1], [np.inf, -np.inf], [0.0, -0.0], [1e300, -1e9]]
    results = Lanes(function, lanes)(states), Lanes(function, lanes, target=host().interpreting())(states)
    for a, b in zip(*results, strict=True):
        assert np.array_equal(a, b, equal_nan=True)
        assert np.array_equal(np.signbit(a[np.isfinite(a)]), np.signbit(b[np.isfinite(b)]))


def test_values_share_room():
    function = long(4000)
    found = Lanes(function, 2, target=host().interpreting())
    assert found.work > 2000
    assert found.workspace < found.work / 3


def test_long_code_is_compiled_after_many_runs(compiled, monkeypatch):
    monkeypatch.setattr(loader, "RUNS", 20)
    f = kernel_of(long())
    x = np.array([0.3, -0.2, 0.7])
    first = f(x)
    assert f.interpreted
    assert not compiled  # the list runs as it is
    for _ in range(30):
        again = f(x)
    assert not f.interpreted
    assert len(compiled) == 1
    assert all(same_bits(a, b) for a, b in zip(first, again, strict=True))
    for _ in range(100):
        f(x)
    assert len(compiled) == 1


def test_runs_are_counted_in_vectors(compiled, monkeypatch):
    monkeypatch.setattr(loader, "RUNS", 20)
    f = kernel_of(long())
    lanes = host().lanes
    X = np.random.default_rng(0).normal(size=(16 * lanes, 3))  # 16 vectors
    single = [f(x)[0] for x in X[:3]]
    for _ in range(2):
        batch = f(X)[0]
    assert len(compiled) == 1
    assert same_bits(batch[:3], np.array(single))
    assert f.interpreted == (lanes > 1)


def test_short_code_is_compiled_at_once(compiled):
    x = ca.SX.sym("x", 2)
    f = kernel_of(ca.Function("f", [x], [ca.sin(x) * 2]))
    f([1.0, 2.0])
    f.prepare(1)
    assert not f.interpreted
    assert len(compiled) == 1


def test_constants_alone_are_interpreted():
    """The slopes of charts of vector spaces are: a stiff integrator asks for them."""
    x = ca.SX.sym("x", 20)
    function = ca.Function("f", [x], [ca.jacobian(2 * x, x), ca.densify(ca.SX(20, 20))])
    assert function.numel_out(0) + function.numel_out(1) > kernel.FEWEST
    found = kernel_of(function, key="constants alone")(np.zeros(20))
    assert np.array_equal(found[0], 2 * np.eye(20))
    assert not found[1].any()


@pytest.mark.parametrize("way", ["prepare", "function", "fast", "off", "foresee", "within"])
def test_who_wants_compiled_code_gets_it(compiled, monkeypatch, way):
    f = kernel_of(long())
    if way == "off":
        monkeypatch.setenv("ALEMBERT_INTERPRETER", "off")
        f(np.ones(3))
    elif way == "within":
        with prepare():
            f(np.ones(3))
    elif way == "foresee":
        f.foresee(10 * loader.RUNS)
    else:
        getattr(f, way)(*([1] if way == "prepare" else []))
    assert not f.interpreted
    assert len(compiled) == 1


def test_prepared_code_takes_the_place_of_interpreted_code(cache_directory, compiled):
    f = kernel_of(long(), key="prepared")
    first = f(np.ones(3))
    assert f.interpreted
    with prepare():
        again = f(np.ones(3))
    assert not f.interpreted
    assert all(same_bits(a, b) for a, b in zip(first, again, strict=True))
    later = kernel_of(long(), key="prepared")  # as in another process
    later(np.ones(3))
    assert not later.interpreted
    assert len(compiled) == 1
    other = kernel_of(long(), key="other")
    other(np.ones(3))
    assert other.interpreted  # only within


def test_lists_are_found_again_without_code(cache_directory, compiled):
    expected = kernel_of(long(), key="kept")(np.ones(3))
    again = kernel_of(long(), key="kept")
    again._build = None  # as in another process: it is not made again
    found = again(np.ones(3))
    assert again.interpreted
    assert not compiled
    assert all(same_bits(a, b) for a, b in zip(expected, found, strict=True))


def test_what_another_process_has_left_is_compiled_sooner(cache_directory, compiled, monkeypatch):
    monkeypatch.setattr(loader, "RUNS", 10_000)
    monkeypatch.setattr(loader, "AGAIN", 0.0005)
    expected = kernel_of(long(), key="left")(np.ones(3))
    f = kernel_of(long(), key="left")
    for _ in range(4):
        f(np.ones(3))
    assert f.interpreted
    assert not compiled
    for _ in range(4):
        found = f(np.ones(3))
    assert not f.interpreted
    assert len(compiled) == 1
    assert all(same_bits(a, b) for a, b in zip(expected, found, strict=True))
    assert not kernel_of(long(), key="left").prepare(1).interpreted
    assert len(compiled) == 1
    third = kernel_of(long(), key="left")
    third(np.ones(3))
    assert not third.interpreted
    assert len(compiled) == 1
    assert len(cache.entries()) == 2


def test_bound_kernels_change_over(compiled, monkeypatch):
    monkeypatch.setattr(loader, "RUNS", 3)
    f = kernel_of(long(), bound=True)
    X = np.random.default_rng(0).normal(size=(2, 3))
    Y, total = np.empty((2, *f.results[0].shape)), np.empty((2, 1))
    run = f.bind(2, [X], [Y, total])
    run()
    first = Y.copy()
    for _ in range(5):
        run()
    assert same_bits(first, Y)
    assert not f.interpreted
    assert len(compiled) == 1


def test_plans_interpret_what_they_call():
    """Calls, columns (with more lanes than the kernel) and rounds of a fold."""
    x, column, state = ca.SX.sym("x", 3), ca.SX.sym("c", 2), ca.SX.sym("state", 4)
    f = long()
    shared = ca.Function("shared", [x], [f(x)[0][:3]])
    by_column = ca.Function(
        "by_column", [x, column], [ca.vertcat(ca.sin(x[0]) * column, ca.dot(x[1:], column))]
    )
    steps = [Call(FunctionSource(shared), ["x"], ["s"]), Columns(by_column, "s", ["M"], ["N"], 11)]
    plan = Plan({"x": 3, "M": 22}, {"N": 33}, {"s": 3}, steps)
    following = ca.Function("following", [state], [ca.vertcat(state[0] + 1, f(state[1:])[0][:3])])
    fold = recorded(
        {"step": FunctionSource(following)},
        {"state": 4, "every": 1, "count": 1},
        {},
        [Call("step", ["state"], ["next"])],
    )
    rng = np.random.default_rng(1)
    for source, inputs, results in (
        (plan, {"x": (3,), "M": (2, 11)}, {"N": (3, 11)}),
        (fold, {"state": (4,), "every": (1,), "count": (1,)}, {"records": (32, 4)}),
    ):
        arguments = [Argument(k, shape) for k, shape in inputs.items()]
        made = [
            Kernel(
                "plan",
                arguments,
                [Argument(*pair) for pair in results.items()],
                key=key,
                build=lambda s=source: s,
            )
            for key in ("interpreted", "compiled")
        ]
        made[1].prepare(1)
        made[1].prepare()
        for batch in ((), (5,), (17,)):
            given = [
                np.full(1, 32.0) if shape == (1,) else rng.normal(size=(*batch, *shape))
                for shape in inputs.values()
            ]
            out = [np.zeros((*batch, *shape)) for shape in results.values()]
            a, b = (k(*given, out=np.zeros_like(out[0])) for k in made)
            assert np.array_equal(a, b)
        assert made[0].interpreted


def test_loops_over_stages_change_over(compiled, monkeypatch):
    monkeypatch.setattr(loader, "RUNS", 30)
    f = long()
    x, before = ca.SX.sym("x", 3), ca.SX.sym("before", 1)
    loop = StageLoop(ca.Function("step", [x, before], [f(x)[1] + before]), [0, 0, 1], backward=False)
    X, total = np.random.default_rng(2).normal(size=(20, 3)), np.zeros(21)
    run = loop.bind(20, [X, total, total])
    run()
    first = total.copy()
    assert len(compiled) == 1
    run()
    assert len(compiled) == 2
    assert same_bits(first, total)


def test_batches_of_interpreted_code_need_no_outlets(monkeypatch):
    """Outlets are compiled for each size of a result modulo the lanes; only machine code is worth them."""
    asked, leaving = [], kernel.leaving
    monkeypatch.setattr(kernel, "leaving", lambda *a: asked.append(a) or leaving(*a))
    x = ca.SX.sym("x", 3)
    f = kernel_of(ca.Function("f", [x], [ca.repmat(long(4000)(x)[0], 20, 1)]))
    X = np.random.default_rng(1).normal(size=(3 * host().lanes, 3))
    first = f(X)
    assert not asked
    assert same_bits(first, f.prepare()(X))
    assert len(asked) == int(host().lanes > 1)
