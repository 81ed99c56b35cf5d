"""The pages of the API reference say, also without the built site, what they are about."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("page", sorted((DOCS / "api").glob("*.md")), ids=lambda page: page.name)
def test_api_pages_are_current(page):
    """Signatures and first sentences, for readers without the built site."""
    spec = importlib.util.spec_from_file_location("generate_api", DOCS / "generate_api.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = page.read_text(encoding="utf-8")
    assert module.page(text) == text, "run python docs/generate_api.py"
