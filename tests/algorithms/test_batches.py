"""One state or many, any layout: the same bits."""

import threading

import numpy as np
import pytest
from dynamics_helpers import states, tree

from alembert.errors import ArgumentError


@pytest.fixture(scope="module")
def model():
    return tree("plain")


@pytest.fixture(scope="module")
def given(model):
    return states(model, 21)


ALGORITHMS = {
    "forward_dynamics": "qva",
    "inverse_dynamics": "qva",
    "mass_matrix": "q",
    "kinetic_energy": "qv",
    "center_of_mass": "q",
    "integrate": "qv",
    "rate": "qv",
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_state_gives_the_same_bits_alone_and_in_any_batch(model, given, name):
    q, v, a = given
    arrays = [{"q": q, "v": v, "a": a}[letter] for letter in ALGORITHMS[name]]
    call = getattr(model, name)
    together = call(*arrays)
    for k in range(len(q)):
        np.testing.assert_array_equal(call(*(x[k] for x in arrays)), together[k])
    for count in (1, 2, 3, 8, 9):
        np.testing.assert_array_equal(call(*(x[:count] for x in arrays)), together[:count])
    nested = call(*(x.reshape(3, 7, -1) for x in arrays))
    np.testing.assert_array_equal(nested.reshape(together.shape), together)


def test_arguments_broadcast(model, given):
    q, v, tau = given
    expected = model.forward_dynamics(q, v, np.tile(tau[0], (21, 1)))
    np.testing.assert_array_equal(model.forward_dynamics(q, v, tau[0]), expected)
    grid = model.forward_dynamics(q[:3, None], v[0], tau[None, :4])
    assert grid.shape == (3, 4, model.nv)
    np.testing.assert_array_equal(grid[2, 1], model.forward_dynamics(q[2], v[0], tau[1]))
    assert model.forward_dynamics(q[:0], v[0], tau[0]).shape == (0, model.nv)


def test_any_layout_and_number_type(model, given):
    q, v, tau = given
    expected = model.forward_dynamics(q, v, tau)
    wide = np.zeros((42, 2 * model.nv))
    wide[::2, ::2] = tau
    for other in (np.asfortranarray(tau), wide[::2, ::2], tau[::-1][::-1], tau.tolist()):
        np.testing.assert_array_equal(model.forward_dynamics(q, v, other), expected)
    whole = np.arange(model.nv)
    np.testing.assert_array_equal(
        model.forward_dynamics(q[0], v[0], whole), model.forward_dynamics(q[0], v[0], whole.astype(float))
    )


def test_results_into_given_arrays(model, given):
    q, v, tau = given
    for arrays in ((q, v, tau), (q[0], v[0], tau[0])):
        out = np.full_like(arrays[2], np.nan)
        assert model.forward_dynamics(*arrays, out=out) is out
        np.testing.assert_array_equal(out, model.forward_dynamics(*arrays))
        out = np.full_like(arrays[2], np.nan)
        assert model.inverse_dynamics(*arrays, out=out) is out
        np.testing.assert_array_equal(out, model.inverse_dynamics(*arrays))
    M = np.empty((21, model.nv, model.nv))
    assert model.mass_matrix(q, out=M) is M
    np.testing.assert_array_equal(M, model.mass_matrix(q))
    over = tau.copy()  # the result may take the place of an argument
    np.testing.assert_array_equal(
        model.forward_dynamics(q, v, over, out=over), model.forward_dynamics(q, v, tau)
    )
    with pytest.raises(ArgumentError, match=r"forward_dynamics: out has shape \(2,\), expected"):
        model.forward_dynamics(q[0], v[0], tau[0], out=np.empty(2))
    with pytest.raises(ArgumentError, match=r"forward_dynamics: out has shape \(2,\), expected"):
        model.forward_dynamics(q[0], v[0], tau[0], out=np.empty(2), method="factorise")


def test_compiled_handles(model, given):
    q, v, tau = given
    expected = model.forward_dynamics(q, v, tau)
    kernel = model.compile("forward_dynamics")
    np.testing.assert_array_equal(kernel(q[3], v[3], tau[3]), expected[3])
    np.testing.assert_array_equal(model.compile("forward_dynamics", batch=True)(q, v, tau), expected)
    function, fast = kernel.function(), kernel.fast()
    np.testing.assert_array_equal(function(q[4], v[4], tau[4]), expected[4])
    a = np.empty(model.nv)
    for k in range(len(q)):
        fast(q[k], v[k], tau[k], a)
        np.testing.assert_array_equal(a, expected[k])
    with pytest.raises(ArgumentError, match=r"compile: no algorithm 'forward_dynamic'.*forward_dynamics"):
        model.compile("forward_dynamic")


def test_threads_share_a_batch_and_kernels_may_be_called_from_several(model):
    q, v, tau = states(model, 3000, seed=5)
    kernel = model.compile("forward_dynamics", batch=True)
    expected = kernel(q, v, tau, threads=1)
    for threads in (2, 3, 7):
        np.testing.assert_array_equal(kernel(q, v, tau, threads=threads), expected)
    found = {}

    def work(k):
        found[k] = [model.forward_dynamics(q[i], v[i], tau[i]) for i in range(k, 200, 4)]

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for k in range(4):
        np.testing.assert_array_equal(found[k], expected[k:200:4])
