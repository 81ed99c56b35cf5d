"""Matrices of batches reach every state's own place: whatever the way, the alignment and the number of states."""

import math

import numpy as np
import pytest

import alembert as al
from alembert.algorithms.derivative_kernels import BY_ROWS, SIDE_BY_SIDE
from alembert.engine.outlet import STREAMED_BYTES
from alembert.engine.target import host

NAMES = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")


@pytest.fixture(scope="module", params=[7, 8, 12, 14, 13])
def problem(request):
    """Small ones, and 12, 14 and 13 speeds: states are aligned by 64, 32 and 8 bytes."""
    model = al.library.random_tree(seed=3, bodies=request.param, kinds=["revolute"])
    rng = np.random.default_rng(0)
    count = 1 + STREAMED_BYTES // (3 * 8 * model.nv**2) + 5
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    return model, [q, *rng.normal(size=(2, count, model.nv))]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("streamed", [False, True])
def test_the_bits_of_single_states_at_any_place(problem, name, streamed):
    model, states = problem
    count = len(states[0]) if streamed else 13
    given = [x[:count] for x in states]
    kernel = model.compile(name, batch=True)
    expected = [np.empty((count, *r.shape)) for r in kernel.results]
    kernel(*given, out=expected, threads=1)
    for k in (0, 1, 5, 9, count // 2, count - 2, count - 1):
        for value, single in zip(expected, kernel(*(x[k] for x in given)), strict=True):
            np.testing.assert_array_equal(value[k], single)
    for shift in (1, 2, 5):
        memory = [np.full(x.size + 8, np.nan) for x in expected]
        out = [m[shift : shift + x.size].reshape(x.shape) for m, x in zip(memory, expected, strict=True)]
        kernel(*given, out=out, threads=1)
        for m, x, value in zip(memory, expected, out, strict=True):
            np.testing.assert_array_equal(value, x)
            assert np.isnan(m[:shift]).all()
            assert np.isnan(m[shift + x.size :]).all()


@pytest.mark.parametrize("name", NAMES)
def test_results_of_other_layouts(problem, name):
    """States last, and states further apart than their results."""
    model, states = problem
    given = [x[:21] for x in states]
    kernel = model.compile(name, batch=True)
    expected = kernel(*given)
    last = [np.moveaxis(np.full((*x.shape[1:], 21), np.nan), -1, 0) for x in expected]
    apart = [np.full((21, x[0].size + 3), np.nan) for x in expected]
    spaced = [m[:, : x[0].size].reshape(x.shape) for m, x in zip(apart, expected, strict=True)]
    for out in (last, spaced):
        kernel(*given, out=out)
        for value, x in zip(out, expected, strict=True):
            np.testing.assert_array_equal(value, x)


def test_the_inverse_mass_matrix(problem):
    """Made by halves, and so symmetric to the bit, where it is made by rows."""
    model, states = problem
    derivatives = model.forward_dynamics_derivatives(*(x[:9] for x in states))
    if model.nv >= BY_ROWS:
        np.testing.assert_array_equal(derivatives.dtau, derivatives.dtau.swapaxes(1, 2))
    identity = derivatives.dtau @ model.mass_matrix(states[0][:9])
    bound = 1e-14 * np.linalg.cond(derivatives.dtau).max() * model.nv  # of rounding
    assert np.abs(identity - np.eye(model.nv)).max() < bound


def test_batches_of_long_chains_go_state_by_state():
    model = al.library.chain(SIDE_BY_SIDE + 1)
    q, v, tau = np.random.default_rng(1).normal(size=(3, 9, model.nv))
    kernel = model.compile("forward_dynamics_derivatives", batch=True)
    for value, single in zip(kernel(q, v, tau), kernel(q[7], v[7], tau[7]), strict=True):
        np.testing.assert_array_equal(value[7], single)
    assert kernel.alone
    assert not model.compile("inverse_dynamics_derivatives").alone


@pytest.mark.parametrize("name", [*NAMES, "mass_matrix", "forward_dynamics"])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_not_finite_is_noticed_on_the_way(problem, name, streamed, wrong):
    """In any state of a block, by every way: near, streamed, unaligned, with the states last."""
    model, states = problem
    kernel = model.compile(name, batch=True)
    if host().lanes == 1:
        pytest.skip("states one by one leave by no outlet: results are looked at afterwards")
    count = len(states[0]) if streamed and name in NAMES else 29
    given = [x[:count].copy() for x in states[: len(kernel.arguments)]]
    shapes = [(count, *r.shape) for r in kernel.results]
    outs = [
        [np.empty(shape) for shape in shapes],
        [np.empty(8 * math.prod(shape) + 8).view(np.uint8)[8 : 8 + 8 * math.prod(shape)] for shape in shapes],
        [np.moveaxis(np.empty((*shape[1:], count)), -1, 0) for shape in shapes],
    ]
    outs[1] = [x.view(np.float64).reshape(shape) for x, shape in zip(outs[1], shapes, strict=True)]
    for out in outs if not streamed else outs[:2]:
        assert kernel.checked(*given, out=out)[1] is True
        for k in (0, 3, 8, count - 1):
            kept = given[0][k, 0]
            given[0][k, 0] = wrong
            assert kernel.checked(*given, out=out)[1] is False
            given[0][k, 0] = kept
    assert kernel.checked(*given)[1] is True


def test_single_states_are_not_checked_on_the_way(problem):
    model, states = problem
    kernel = model.compile("mass_matrix")
    assert kernel.checked(states[0][0])[1] is None
    assert kernel.checked(states[0][:0])[1] is True
