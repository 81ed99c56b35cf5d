"""Memory of large results serves the next ones, and never two at a time."""

import threading

import numpy as np
import pytest

import alembert as al
from alembert.engine import memory

LARGE = (3, memory.LARGE_BYTES // 8)


@pytest.fixture(autouse=True)
def no_blocks(monkeypatch):
    monkeypatch.setattr(memory, "_idle", [])


def address(x):
    return x.__array_interface__["data"][0]


def test_memory_serves_again_when_the_last_view_is_gone():
    first = memory.empty(LARGE)
    place = address(first)
    view = first[1:, ::2].T
    del first
    assert not memory._idle
    second = memory.empty(LARGE)
    assert not np.may_share_memory(view, second)
    del view
    assert address(memory.empty(LARGE)) == place


def test_arrays_are_as_any_others():
    x = memory.empty(LARGE)
    assert x.shape == LARGE
    assert x.dtype == np.float64
    assert x.flags.writeable
    assert x.flags.c_contiguous
    assert type(x) is np.ndarray
    assert al.library.two_link().mass_matrix([0.0, 0.0]).flags.owndata  # small ones are not from here


def test_little_is_kept(monkeypatch):
    monkeypatch.setattr(memory, "IDLE_BYTES", 3 * memory.LARGE_BYTES)
    monkeypatch.setattr(memory, "IDLE_BLOCKS", 2)
    size = memory.LARGE_BYTES // 8
    arrays = [memory.empty((size,)) for _ in range(4)]
    places = [address(x) for x in arrays]
    while arrays:
        del arrays[0]
    assert [address(block.memory) for block in memory._idle] == places[2:]
    del memory._idle[:]
    x, y = memory.empty((2 * size,)), memory.empty((2 * size,))
    del x, y
    assert len(memory._idle) == 1
    z = memory.empty((4 * size,))  # more than may be kept
    del z
    assert len(memory._idle) == 1


def test_results_of_calls_that_are_still_held_do_not_change():
    model = al.library.arm7()
    q, v, tau = np.random.default_rng(0).normal(size=(3, 1200, 7))
    first = model.forward_dynamics_derivatives(q, v, tau)
    copy = first.dq.copy()
    model.forward_dynamics_derivatives(q + 1.0, v, tau)
    other = model.forward_dynamics_derivatives(q + 2.0, v, tau)
    np.testing.assert_array_equal(first.dq, copy)
    assert not np.may_share_memory(first.dq, other.dq)
    kept = first.dq[7]  # a view of one state
    del first
    again = model.forward_dynamics_derivatives(q + 3.0, v, tau)
    np.testing.assert_array_equal(kept, copy[7])
    np.testing.assert_array_equal(model.forward_dynamics_derivatives(q + 3.0, v, tau).dq, again.dq)


def test_threads_do_not_share():
    failures = []

    def work(number):
        for k in range(200):
            x = memory.empty((memory.LARGE_BYTES // 8,))
            x[:] = value = 1000.0 * number + k
            if not (x == value).all():
                failures.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
