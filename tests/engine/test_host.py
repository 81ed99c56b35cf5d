"""What every key of a kernel holds besides the kernel, and how it is remembered."""

import sys

import numpy as np
import pytest

from alembert import own_source
from alembert.engine import cache
from alembert.engine import host as hosts
from alembert.engine import target as targets
from alembert.own_source import State

linux = pytest.mark.skipif(sys.platform != "linux", reason="one boot is told from another on Linux")


@pytest.fixture
def asked(monkeypatch):
    """How often LLVM was asked for the processor, and Alembert's files were read."""
    counts = []
    ask = targets.ask
    monkeypatch.setattr(targets, "ask", lambda: counts.append("LLVM") or ask())
    monkeypatch.setattr(own_source, "content", lambda: counts.append("files") or "content")
    show(monkeypatch)
    return counts


def show(monkeypatch, text="state", settled=True, changed=False):
    monkeypatch.setattr(own_source, "state", lambda: State(text, settled, changed))
    monkeypatch.setattr(own_source, "look", own_source.state)


def surroundings():
    """As another process would find them."""
    return hosts._surroundings.__wrapped__()


@linux
def test_a_second_process_need_not_ask(cache_directory, asked):
    first = surroundings()
    assert first == surroundings()
    assert asked == ["LLVM", "files"]
    assert first[0] == targets.ask()
    assert "content" in first[1]


@linux
def test_it_asks_again_when_something_else_is_there(cache_directory, asked, monkeypatch, tmp_path):
    surroundings()
    show(monkeypatch, "another state")
    surroundings()
    assert len(asked) == 4
    features = np._core._multiarray_umath.__cpu_features__
    other = {**features, "AVX512F": not features.get("AVX512F")}
    monkeypatch.setattr(np._core._multiarray_umath, "__cpu_features__", other)
    surroundings()
    assert len(asked) == 6
    (tmp_path / "binding").mkdir()
    monkeypatch.setattr(hosts.llvmlite, "__file__", str(tmp_path / "__init__.py"))
    surroundings()
    assert len(asked) == 8


@linux
def test_a_damaged_record_is_made_again(cache_directory, asked):
    first = surroundings()
    (path,) = cache_directory.glob("*.als")
    path.write_bytes(path.read_bytes()[:-1])
    assert surroundings() == first
    assert len(asked) == 4


def test_young_files_are_read_every_time(cache_directory, asked, monkeypatch):
    show(monkeypatch, settled=False)
    assert surroundings() == surroundings()
    assert asked.count("files") == 2


def test_without_the_number_of_a_boot_it_asks_every_time(cache_directory, asked, monkeypatch):
    def missing(*_, **__):
        raise OSError

    monkeypatch.setattr(hosts, "open", missing, raising=False)
    assert surroundings() == surroundings()
    assert asked.count("LLVM") == 2


def test_a_process_older_than_the_source_keeps_nothing(cache_directory, asked, monkeypatch):
    """It runs parts of both versions: what it compiles belongs to neither."""
    show(monkeypatch, changed=True)
    assert surroundings()[1] != surroundings()[1]
    hosts.store("f" * 64, {}, b"code")
    assert cache.entries() == []
    show(monkeypatch)
    monkeypatch.setattr(own_source, "look", lambda: State("edited since", True, False))
    hosts.store("f" * 64, {}, b"code")
    assert cache.entries() == []
    monkeypatch.setattr(own_source, "look", own_source.state)
    hosts.store("f" * 64, {}, b"code")
    assert len(cache.entries()) == 1


def test_old_records_go(cache_directory):
    for k in range(cache._MOST[cache.RECORD] + 5):
        cache.store(f"record{k}", {"k": k}, b"", cache.RECORD)
    assert len(list(cache_directory.glob("*.als"))) == cache._MOST[cache.RECORD]
    cache.store("f" * 64, {}, b"code")
    assert len(cache.entries()) == cache.clear() == 1
    assert list(cache_directory.iterdir()) == []
