"""Code that is written by hand for speed, against the steps that it stands for."""

import numpy as np
import pytest

import alembert as al
from alembert import sweeps
from alembert.algorithms import derivative_kernels, kernels
from alembert.engine import Argument, Kernel, dense, elimination
from alembert.lowering.plan import Call, Plan
from alembert.lowering.stage_loop import elimination_loop
from alembert.optimal import time_sweep


@pytest.mark.parametrize(
    ("n", "m", "columns", "bounds"), [(2, 1, 1, 0), (5, 3, 3, 2), (9, 4, 2, 0), (4, 23, 3, 1)]
)
def test_elimination_on_vectors_is_the_inward_sweep_in_time(monkeypatch, n, m, columns, bounds):
    """`engine.elimination` against the straight code of the step, `sweeps.linear_quadratic`'s."""
    stages, rng = 6, np.random.default_rng(n)
    monkeypatch.setattr(time_sweep, "LARGEST_SCALAR", 1000)
    straight = time_sweep.inward_loop.__wrapped__(n, m, columns, bounds)
    half = rng.normal(size=(stages, n + m, n + m))
    H = half @ half.transpose(0, 2, 1) + np.eye(n + m)  # a convex cost
    given = {
        "A": rng.normal(size=(stages, n, n)),
        "B": rng.normal(size=(stages, n, m)),
        "b": rng.normal(size=(stages, n)),
        "Q": H[:, :n, :n],
        "N": H[:, :n, n:],
        "R": H[:, n:, n:],
        "q": rng.normal(size=(stages, n)),
        "r": rng.normal(size=(stages, m)),
        "D": rng.normal(size=(stages, bounds, n + m)),
        "push": rng.normal(size=(stages, bounds)),
        "shift": np.array([0.1]),
    }
    end = {
        "P": np.eye(n) + np.zeros((stages + 1, n, n)),
        "z": rng.normal(size=(stages + 1, n, columns)),
        "W": rng.normal(size=(stages + 1, columns - 1, columns)),
    }
    found = []
    for loop in (straight, elimination_loop(n, m, columns, bounds)):
        between = {name: x.copy() for name, x in end.items()}
        left = {"K": np.zeros((stages, m, n)), "k": np.zeros((stages, m, columns)), "flag": np.zeros(stages)}
        arrays = [*(np.ascontiguousarray(x) for x in given.values()), *between.values(), *between.values()]
        assert loop(stages, *arrays, *left.values()) == stages
        found.append([*between.values(), left["K"], left["k"]])
    # sums in another order, through a recursion whose gains are bounded by those of the first stages
    for x, y in zip(*found, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-9 * np.abs(x).max(initial=1))


def test_rows_eliminated_in_memory_have_the_bits_of_those_in_registers(monkeypatch):
    """The same operations in the same order: which of the two is taken may hang on the machine's lanes."""
    n, m, columns, rng = 4, 5, 3, np.random.default_rng(2)
    half = rng.normal(size=(3, n + m, n + m))
    H = half @ half.transpose(0, 2, 1) + np.eye(n + m)
    H[0, -1, -1] = -1e4  # a pivot that is not positive ends the loop at this stage
    given = [rng.normal(size=shape) for shape in ((3, n, n), (3, n, m), (3, n))]
    given += [H[:, :n, :n], H[:, :n, n:], H[:, n:, n:], rng.normal(size=(3, n)), rng.normal(size=(3, m))]
    given += [np.zeros((3, 0, n + m)), np.zeros((3, 0)), np.array([0.1])]
    found = []
    for most in (elimination.MOST, 0):
        monkeypatch.setattr(elimination, "MOST", most)
        end = [np.eye(n) + np.zeros((4, n, n)), np.ones((4, n, columns)), np.zeros((4, columns - 1, columns))]
        left = [np.zeros((3, m, n)), np.zeros((3, m, columns)), np.zeros(3)]
        loop = elimination_loop(n, m, columns, 0)
        loop._key += f" {most}"
        assert loop(3, *(np.ascontiguousarray(x) for x in given), *end, *end, *left) == 2
        found.append([*end, *left])
    for x, y in zip(*found, strict=True):
        assert np.array_equal(x, y)


@pytest.mark.parametrize(
    ("name", "last", "by_rows", "straight"),
    [
        (
            "forward_dynamics",
            "tau",
            derivative_kernels.forward_source,
            derivative_kernels._small_forward_source,
        ),
        (
            "inverse_dynamics",
            "a",
            derivative_kernels.inverse_source,
            derivative_kernels._small_inverse_source,
        ),
    ],
)
@pytest.mark.parametrize("states", [1, 19])
def test_derivatives_by_rows_are_those_of_straight_code(name, last, by_rows, straight, states):
    """`lowering.tree_matrices`, and `tree_factor` against `sensitivity.mass_factor.Pattern`."""
    model = al.library.random_tree(1, bodies=7)
    tree, names = model.compute.tree, ("q", "v", last)
    inputs = kernels.arguments(model, tree, getattr(sweeps, name.upper()), names)
    rng = np.random.default_rng(1)
    q = np.array([model.random_configuration(rng) for _ in range(states)])
    v, tau = rng.normal(size=(2, states, model.nv))
    results = derivative_kernels.kernel(model, f"{name}_derivatives", wrenches=False).results
    made = []
    for make in (by_rows, straight):
        kernel = Kernel(
            "derivatives",
            inputs,
            results,
            key=f"{model.fingerprint}:{make.__name__}:{states}",
            build=lambda make=make: make(tree, names, inputs),
        )
        made.append(kernel(q, v, tau))
    condition = max(np.linalg.cond(M) for M in model.mass_matrix(q))
    for x, y in zip(*made, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-14 * condition * np.abs(x).max())


@pytest.mark.parametrize("n", [1, 3, 8, 21])
@pytest.mark.parametrize("states", [1, 19])
def test_loops_of_any_size_are_the_operations_of_numpy(n, states):
    """`engine.dense`; the inverses of a positive matrix, and of one whose last diagonal block is zero."""
    rng = np.random.default_rng(n)
    A, B, C = rng.normal(size=(3, states, n, n))
    positive = A @ A.swapaxes(-1, -2) + n * np.eye(n)
    bordered = positive.copy()
    bordered[:, n - n // 3 :, n - n // 3 :] = 0.0
    x = rng.normal(size=(states, n))
    none = np.zeros((states, n * n))
    cases = {
        "sum": (dense.SumSource((1, -1, 1), n * n), [A, B, C], A - B + C),
        "none": (dense.SumSource((), n * n), [], none),
        "products": (dense.ProductSource(n, 2, -1), [A, B, B, C], -(A @ B + B @ C)),
        "identity": (dense.IdentitySource(n), [], none + np.eye(n).ravel()),
        "vector": (dense.VectorProductSource(n), [A, x], np.einsum("...ij,...j->...i", A, x)),
        "inverse": (dense.InverseSource(n), [positive], np.linalg.inv(positive)),
        "bordered": (dense.InverseSource(n, forward=True), [bordered], np.linalg.inv(bordered)),
    }
    for name, (source, given, expected) in cases.items():
        sizes = [*source.input_sizes, 1]  # the last one says how many states there are
        kernel = Kernel(
            name,
            [Argument(f"x{k}", (size,)) for k, size in enumerate(sizes)],
            [Argument("y", tuple(source.output_sizes))],
            key=f"{name} {n}",
            build=lambda source=source, sizes=sizes: Plan(
                {f"x{k}": size for k, size in enumerate(sizes)},
                {"y": source.output_sizes[0]},
                {},
                [Call(source, [f"x{k}" for k in range(len(sizes) - 1)], ["y"])],
            ),
        )
        found = kernel(*(np.reshape(y, (states, -1)) for y in given), np.zeros((states, 1)))
        size = np.abs(expected).max()
        np.testing.assert_allclose(
            found, expected.reshape(states, -1), rtol=0, atol=1e-12 * size, err_msg=name
        )
