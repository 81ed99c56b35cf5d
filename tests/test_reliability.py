"""Threads, processes, pickles, bad cache folders, and memory over many calls."""

import concurrent.futures
import multiprocessing as mp
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

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


def threaded():
    return MODEL.compile("forward_dynamics", batch=True)(*STATES, threads=2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    """The parent's threads do not come along: a child that waited for them would wait for ever."""
    expected = threaded()
    with mp.get_context("fork").Pool(1) as pool:
        found = pool.apply_async(threaded).get(timeout=60)
    np.testing.assert_array_equal(found, expected)


SCRIPT = """
import numpy as np
import alembert as al
print(al.library.two_link().forward_dynamics([0.1, 0.2], [0.3, 0.4], [0.5, 0.6]).tolist())
"""


def compute(cache, prepare=None):
    """What a new process computes with such a cache; it neither warns nor complains."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "ALEMBERT_CACHE": str(cache), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=prepare,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return np.array(eval(done.stdout))


@pytest.fixture
def expected():
    return MODEL.forward_dynamics([0.1, 0.2], [0.3, 0.4], [0.5, 0.6])


@pytest.mark.skipif(
    not os.path.isdir("/proc/self/fdinfo"), reason="needs a folder that even root cannot write"
)
def test_a_read_only_cache(expected):
    """It belongs to the user, nobody else can write to it, and nor can the user, not even as root."""
    with pytest.raises(OSError):
        Path("/proc/self/fdinfo/new").touch()
    np.testing.assert_array_equal(compute("/proc/self/fdinfo"), expected)


def test_a_cache_that_cannot_be_made(tmp_path, expected):
    file = tmp_path / "file"
    file.write_text("not a folder")
    np.testing.assert_array_equal(compute(file / "below"), expected)
    assert file.read_text() == "not a folder"


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are POSIX")
def test_a_full_cache(tmp_path, expected):
    """Writing fails half-way, as on a full disk: nothing is left behind, and the numbers come all the same."""
    import resource

    folder = tmp_path / "cache"

    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))  # bytes; kernels have some thousand

    def kernels():  # besides these there are the record of the machine and what kernels share, which are small
        return [path for path in folder.iterdir() if path.suffix not in (".als", ".alc")]

    np.testing.assert_array_equal(compute(folder, full), expected)
    assert kernels() == []
    np.testing.assert_array_equal(compute(folder), expected)  # there is room again
    entry, module = sorted(
        kernels(), key=lambda path: path.suffix == ".alm"
    )  # the kernel and its machine code
    assert module.stat().st_size > 512
    before = entry.stat().st_mtime_ns
    np.testing.assert_array_equal(compute(folder, full), expected)  # what is there is used
    assert set(kernels()) == {entry, module}
    assert entry.stat().st_mtime_ns >= before


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


@pytest.mark.parametrize(
    "question",
    [
        "'forward_dynamics' in dir(al.library.pendulum())",
        "'forward_dynamics' in dir(al.Model)",
        "al.Model.forward_dynamics.__name__ == 'forward_dynamics'",
        "not hasattr(al.Model, 'backward_dynamics')",
    ],
)
def test_a_model_that_has_not_computed_shows_its_algorithms(question):
    """They are imported on first use; the tabulator key and `help` come before that."""
    subprocess.run([sys.executable, "-c", f"import alembert as al; assert {question}"], check=True)


def test_warnings_name_the_line_of_the_caller(tmp_path):
    file = tmp_path / "m.urdf"
    file.write_text('<robot name="m"><link name="a"/><novelty/></robot>')
    with pytest.warns(al.AlembertWarning, match="novelty") as seen:
        al.load(file)
    assert seen[0].filename == __file__


def test_the_tests_limit_threads_before_numpy_is_there(tmp_path):
    """And turn warnings into errors all the same."""
    tests = Path(__file__).parent
    (tmp_path / "test_probe.py").write_text(
        "import os, warnings\nimport pytest\nfrom alembert import AlembertWarning\n"
        "def test_probe():\n"
        "    assert os.environ['EARLY'] == 'False'\n"
        "    with pytest.raises(AlembertWarning):\n"
        "        warnings.warn('so', AlembertWarning)\n"
    )
    early = "import os, sys\nos.environ['EARLY'] = str('numpy' in sys.modules)\n"
    (tmp_path / "conftest.py").write_text(early + (tests / "conftest.py").read_text(encoding="utf-8"))
    command = [sys.executable, "-m", "pytest", "-c", tests.parent / "pyproject.toml", "--rootdir", tmp_path]
    subprocess.run([*command, "-n", "0", "-q", tmp_path], check=True, timeout=120, cwd=tmp_path)
