import pytest

from alembert.engine.host import host


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    """Tests compile what they test, unless they ask for a cache."""
    monkeypatch.setenv("ALEMBERT_CACHE", "off")


@pytest.fixture
def cache_directory(tmp_path, monkeypatch):
    host()  # a process asks once, and keeps the answer in the cache
    folder = tmp_path / "cache"
    monkeypatch.setenv("ALEMBERT_CACHE", str(folder))
    return folder
