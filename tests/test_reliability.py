"""Threads, processes, pickles, bad cache folders, and memory over many calls."""

import concurrent.futures
import multiprocessing as mp
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import alembert as al

MODEL = al.library.two_link()
STATES = np.random.default_rng(0).normal(size=(3, 64, 2))


def accelerations(model=MODEL):
    return model.forward_dynamics(*STATES)


def in_child(model):
    """In another process: what forward dynamics gives, and whether the model is the same."""
    return model.forward_dynamics(*STATES), model == al.library.two_link(), hash(model)


def test_threads_share_a_model_that_none_has_compiled():
    """The first call compiles: eight threads may not get in each other's way, and all get the same bits."""
    builder = al.ModelBuilder("fresh")
    builder.body("a", al.Inertia.point(1.2345, (0, 0, -1)), joint=al.Revolute((0, 1, 0)))
    builder.body("b", al.Inertia.point(0.5, (0, 0, -1)), joint=al.Revolute((1, 0, 0)), parent="a")
    model = builder.build()
    barrier = threading.Barrier(8)

    def work(_):
        barrier.wait()
        return [
            model.forward_dynamics(*STATES),
            model.mass_matrix(STATES[0]),
            model.energy(STATES[0], STATES[1]),
        ]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(8)))
    for other in found[1:]:
        for x, y in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(x, y)


def test_one_kernel_from_many_threads():
    kernel = MODEL.compile("forward_dynamics", batch=True)
    expected = kernel(*STATES)

    def work(k):
        return all(np.array_equal(kernel(*STATES), expected) for _ in range(50))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_models_pickle_after_having_computed():
    expected = accelerations()
    other = pickle.loads(pickle.dumps(MODEL))
    assert other == MODEL
    assert hash(other) == hash(MODEL)
    np.testing.assert_array_equal(accelerations(other), expected)


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_other_processes(method):
    expected = accelerations()
    with mp.get_context(method).Pool(1) as pool:
        found, same, key = pool.apply(in_child, (MODEL,))
    np.testing.assert_array_equal(found, expected)
    assert same
    if method == "fork":  # texts hash differently in a process that was started anew
        assert key == hash(MODEL)


SCRIPT = """
import numpy as np
import alembert as al
print(al.library.two_link().forward_dynamics([0.1, 0.2], [0.3, 0.4], [0.5, 0.6]).tolist())
"""


def compute(cache, **environment):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "ALEMBERT_CACHE": str(cache), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return np.array(eval(done.stdout))


def test_a_cache_that_cannot_be_written(tmp_path):
    """A read-only folder, one below a file, and a full disk: the numbers come all the same."""
    expected = MODEL.forward_dynamics([0.1, 0.2], [0.3, 0.4], [0.5, 0.6])
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o500)
    file = tmp_path / "file"
    file.write_text("not a folder")
    for folder in (locked, file / "below", "off"):
        np.testing.assert_array_equal(compute(folder), expected)
    locked.chmod(0o700)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk(tmp_path, monkeypatch):
    """Writing an entry fails half-way with 'no space left': nothing is left behind, the result is right."""
    import errno

    from alembert.engine import cache

    monkeypatch.setenv("ALEMBERT_CACHE", str(tmp_path / "cache"))

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    assert cache.directory() == tmp_path / "cache"
    monkeypatch.setattr(cache.os, "replace", full)
    builder = al.ModelBuilder("full disk")
    builder.body("a", al.Inertia.point(1.71717, (0, 0, -1)), joint=al.Revolute((0, 1, 0)))
    model = builder.build()
    np.testing.assert_allclose(model.forward_dynamics([np.pi / 2], [0.0], [0.0]), [-9.81])
    left = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert left == []


def current():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads the memory from /proc")
def test_memory_is_stable_over_a_million_calls():
    """A million states in calls of one and of many, of kernels and of methods: no more memory after than before."""
    kernel = MODEL.compile("forward_dynamics")
    q, v, tau = (x[0].copy() for x in STATES)
    batch = tuple(np.tile(x, (16, 1)) for x in STATES)

    def calls(singles, batches, methods):
        for _ in range(singles):
            kernel(q, v, tau)
        for _ in range(batches):
            MODEL.forward_dynamics(*batch)
        for _ in range(methods):
            MODEL.mass_matrix(q)

    calls(2000, 20, 2000)
    before = current()
    calls(400_000, 500, 90_000)  # 400 000 + 512 000 + 90 000 states
    # the allocator keeps some arenas; a leak of one array of 16 bytes in each call would be 14 MB
    assert current() - before < 4e6


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads the memory from /proc")
def test_models_are_given_back():
    """Models made, compiled (from the cache) and dropped, again and again."""

    def one(k):
        builder = al.ModelBuilder("short-lived")
        builder.body("a", al.Inertia.point(1.0, (0, 0, -1)), joint=al.Revolute((0, 1, 0)))
        builder.build().forward_dynamics([0.1], [0.0], [0.0])

    for k in range(30):
        one(k)
    before = current()
    for k in range(100):
        one(k)
    # machine code and tables of a small model are some 100 kB: 10 MB if none were ever given back
    assert current() - before < 5e6
