import dataclasses
import hashlib
import os
import stat
import subprocess
import sys
import textwrap
import time

import casadi as ca
import numpy as np
import pytest

from alembert.engine import Argument, FunctionSource, Kernel, cache
from alembert.engine.target import host
from alembert.errors import AlembertWarning

try:
    import pwd
except ImportError:  # not a POSIX system
    pwd = None
posix = pytest.mark.skipif(sys.platform == "win32", reason="permissions are POSIX")
KINDS = (
    1 if host().lanes == 1 else 2
)  # of code: for one state, and for batches where vectors have several lanes


def make(built: list, key: str = "double"):
    x = ca.SX.sym("x", 2)

    def build():
        built.append(key)
        return FunctionSource(ca.Function("f", [x], [2 * x]))

    return Kernel("f", [Argument("x", (2,))], [Argument("y", (2,))], key=key, build=build)


def use(key: str = "double") -> int:
    """Run a kernel; how often it was built."""
    built: list[str] = []
    assert np.array_equal(make(built, key)(np.ones(2)), [2.0, 2.0])
    return len(built)


@pytest.fixture(autouse=True)
def fresh_warnings():
    cache._warn.cache_clear()


def test_second_use_comes_from_the_cache(cache_directory):
    assert use() == 1
    assert use() == 0
    assert use("another key") == 1
    assert len(cache.entries()) == 2
    assert cache.size() == sum(p.stat().st_size for p in cache_directory.iterdir()) > 0


def test_lanes_are_separate_entries(cache_directory):
    built: list[str] = []
    kernel = make(built)
    kernel(np.ones(2))
    kernel(np.ones((20, 2)))
    assert len(cache.entries()) == KINDS
    again: list[str] = []
    kernel = make(again)
    assert np.array_equal(kernel(np.ones((20, 2))), np.full((20, 2), 2.0))
    assert np.array_equal(kernel(np.ones(2)), [2.0, 2.0])
    assert not again


@posix
def test_directory_is_private(cache_directory):
    use()
    assert stat.S_IMODE(cache_directory.stat().st_mode) == 0o700
    assert all(not p.stat().st_mode & 0o022 for p in cache_directory.iterdir())


def test_clear(cache_directory):
    use()
    assert cache.clear() == 1
    assert cache.entries() == []
    assert cache.clear() == 0


def test_off(monkeypatch):
    monkeypatch.setenv("ALEMBERT_CACHE", "off")
    assert cache.directory() is None
    assert use() == use() == 1
    assert cache.entries() == []


@pytest.mark.parametrize("suffix", [cache.KERNEL, cache.MODULE])
@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "foreign"])
def test_damaged_entry_is_built_again(cache_directory, damage, suffix):
    use()
    (path,) = cache_directory.glob(f"*{suffix}")
    data = bytearray(path.read_bytes())
    if damage == "truncate":
        data = data[: len(data) // 2]
    elif damage == "flip":
        data[len(data) // 2] ^= 1
    elif damage == "empty":
        data = bytearray()
    else:
        data = bytearray(b"something else altogether")
    path.write_bytes(data)
    assert use() == 1
    assert use() == 0


def test_the_entry_of_another_kernel_does_not_run_under_this_name(cache_directory):
    use("one")
    (one,) = cache_directory.glob(f"*{cache.KERNEL}")
    use("other")
    (other,) = set(cache_directory.glob(f"*{cache.KERNEL}")) - {one}
    one.write_bytes(other.read_bytes())
    assert use("other") == 0
    assert use("one") == 1
    assert use("one") == 0


def test_what_killed_processes_left_is_removed(cache_directory):
    cache_directory.mkdir(mode=0o700)
    old, young = cache_directory / "old.tmp", cache_directory / "young.tmp"
    for path, age in ((old, 7200), (young, 60)):
        path.write_text("half of an entry")
        os.utime(path, (time.time() - age,) * 2)
    use()
    assert not old.exists()
    assert young.exists()  # somebody may be writing it
    cache.clear()
    assert list(cache_directory.iterdir()) == []


@posix
@pytest.mark.parametrize("setting", ["~nosuchuser/cache", ""])
def test_without_a_home(monkeypatch, setting):
    """A container with any user number has neither HOME nor an entry in the list of users."""
    monkeypatch.setenv("ALEMBERT_CACHE", setting)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", lambda number: {}[number])
    with pytest.warns(AlembertWarning, match="is not used: there is no such home directory"):
        assert use() == 1
    assert use() == 1  # and says so once
    assert cache.directory() is None
    assert cache.entries() == []
    assert cache.clear() == 0


@posix
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_directory_that_others_can_write_is_not_used(cache_directory, mode):
    use()
    cache_directory.chmod(mode)
    with pytest.warns(
        AlembertWarning, match="is not used: it belongs to another user, or others can write to it"
    ):
        assert use() == 1
    assert use() == 1  # and says so once


@posix
def test_directory_of_another_user_is_not_used(cache_directory, monkeypatch):
    use()
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    with pytest.warns(AlembertWarning, match="belongs to another user"):
        assert use() == 1


def test_kernels_that_differ_in_numbers_share_machine_code(cache_directory):
    x = ca.SX.sym("x", 2)
    for factor in (2.5, 3.75):
        source = FunctionSource(ca.Function("f", [x], [factor * ca.sin(x) + x / factor]))
        kernel = Kernel(
            "f", [Argument("x", (2,))], [Argument("y", (2,))], key=f"{factor}", build=lambda s=source: s
        )
        for given in (np.array([0.3, 0.4]), np.ones((20, 2))):
            # a rounding error or two: the product may be fused with the sum
            np.testing.assert_allclose(kernel(given), factor * np.sin(given) + given / factor, rtol=1e-15)
    assert len(cache.entries()) == 2 * KINDS
    assert len(list(cache_directory.glob(f"*{cache.MODULE}"))) == KINDS


@posix
@pytest.mark.parametrize("suffix", [cache.KERNEL, cache.MODULE])
def test_entry_that_others_can_write_is_not_used(cache_directory, suffix):
    use()
    (path,) = cache_directory.glob(f"*{suffix}")
    path.chmod(0o666)
    assert use() == 1


def test_path_that_is_a_file(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("ALEMBERT_CACHE", str(file))
    with pytest.warns(AlembertWarning, match="is not used: it is not a directory"):
        assert use() == 1
    assert use() == 1


def test_write_failure_is_ignored(cache_directory, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert use() == use() == 1
    assert list(cache_directory.iterdir()) == []


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root can write anywhere")
def test_read_only_directory(cache_directory):
    cache_directory.mkdir(mode=0o500)
    assert use() == use() == 1


def test_directory_that_cannot_be_made(monkeypatch):
    monkeypatch.setenv(
        "ALEMBERT_CACHE", "/proc/nothing/here" if sys.platform == "linux" else os.devnull + "/x"
    )
    assert use() == use() == 1


def test_least_recently_used_entries_go_first(cache_directory, monkeypatch):
    names = [cache.digest(key, 1, host()) for key in ("first", "second", "third", "fourth")]
    for k, name in enumerate(names[:3]):
        cache.store(name, {}, bytes(900))
        os.utime(cache_directory / f"{name}{cache.KERNEL}", (1000 + k, 1000 + k))
    assert cache.load(names[0]) is not None  # now the most recently used
    size = cache.size() // 3
    monkeypatch.setattr(cache, "SIZE_LIMIT", 3 * size + size // 2)
    cache.store(names[3], {}, bytes(900))
    assert len(cache.entries()) == 3
    assert cache.load(names[0]) is not None
    assert cache.load(names[1]) is None


def test_entries_are_counted_now_and_then(cache_directory, monkeypatch):
    """Counting is dear in a full cache: done once in a 64th of the limit, which is as much as the limit may be passed by."""
    counted = []
    trim = cache._trim
    monkeypatch.setattr(cache, "_trim", lambda folder: (counted.append(1), trim(folder)))
    monkeypatch.setattr(cache, "SIZE_LIMIT", 64 * 4 * 1000)
    for k in range(600):
        name = hashlib.sha256(str(k).encode()).hexdigest()
        cache.store(name, {}, bytes(900))
    assert 90 < len(counted) < 240  # of 600 entries with 1000 bytes each, one in four
    assert cache.size() < 1.1 * cache.SIZE_LIMIT


def test_default_directories(monkeypatch, tmp_path):
    monkeypatch.delenv("ALEMBERT_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache.directory() == tmp_path / "xdg" / "alembert"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.directory() == tmp_path / ".cache" / "alembert"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.directory() == tmp_path / "Library" / "Caches" / "alembert"
    monkeypatch.setattr(sys, "platform", "win32")
    assert cache.directory() == tmp_path / "local" / "alembert" / "cache"


def test_the_name_depends_on_everything():
    other = dataclasses.replace(host(), cpu="another")
    names = {
        cache.digest("a", 1, host()),
        cache.digest("b", 1, host()),
        cache.digest("a", 8, host()),
        cache.digest("a", 1, other),
    }
    assert len(names) == 4


def test_processes_may_write_the_same_entry(cache_directory):
    program = textwrap.dedent(
        """
        import casadi as ca, numpy as np
        from alembert.engine import Argument, FunctionSource, Kernel
        x = ca.SX.sym("x", 2)
        for k in range(5):
            f = Kernel("f", [Argument("x", (2,))], [Argument("y", (2,))], key=f"shared {k}",
                       build=lambda: FunctionSource(ca.Function("f", [x], [2 * x])))
            assert np.array_equal(f(np.ones(2)), [2.0, 2.0])
        """
    )
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
    assert [p.wait(timeout=60) for p in processes] == [0, 0, 0]
    assert len(cache.entries()) == 5
    assert all(cache.load(entry.path.stem) is not None for entry in cache.entries())
