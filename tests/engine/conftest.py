import pytest


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    """Tests compile what they test, unless they ask for a cache."""
    monkeypatch.setenv("ALEMBERT_CACHE", "off")


@pytest.fixture
def cache_directory(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("ALEMBERT_CACHE", str(folder))
    return folder
