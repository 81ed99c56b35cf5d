import pytest


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    """Tests compile what they test."""
    monkeypatch.setenv("ALEMBERT_CACHE", "off")
