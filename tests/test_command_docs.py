"""The pages on the command line and on run files are what the commands say."""

import re
import sys
from pathlib import Path

import pytest

from alembert.study.run import load_study
from markdown_blocks import blocks, compare

DOCS = Path(__file__).parents[1] / "docs"
HINT = "run python docs/generate_commands.py"


@pytest.fixture(scope="module")
def generate():
    sys.path.insert(0, str(DOCS))
    try:
        import generate_commands
    finally:
        sys.path.remove(str(DOCS))
    return generate_commands


@pytest.fixture(scope="module")
def shown(generate):
    from generate import sections

    return {
        page: sections(page.read_text(encoding="utf-8"))
        for page in (generate.COMMANDS_PAGE, generate.FILES_PAGE)
    }


def test_generated_parts_are_current(generate, shown):
    for page, parts in generate.parts().items():
        for name, text in parts.items():
            assert shown[page][name] == text, f"{page.name}, {name}: {HINT}"


def test_the_session_is_what_the_commands_print(generate, shown):
    """Equal but for the last digits of numbers."""
    pytest.importorskip("matplotlib")
    compare(generate.session(), shown[generate.COMMANDS_PAGE]["session"], HINT)


def test_rounding_is_not_news(generate):
    """`make docs` leaves the page alone unless something has changed."""
    from generate import steady

    before = "kept to 4.0e-15 of 2 J\nat 10 s\n"
    assert steady(before, "kept to 2.6e-15 of 2 J\nat 10 s\n") == before
    for news in ("kept to 4.0e-15 of 3 J\nat 10 s\n", "held to 4.0e-15 of 2 J\nat 10 s\n", "more\n" + before):
        assert steady(before, news) == news


def test_run_files_on_the_page_load(tmp_path):
    found = [text for words, text, _ in blocks(DOCS / "run-files.md") if words == "toml"]
    assert found
    for text in found:
        path = tmp_path / "study.toml"
        path.write_text(text, encoding="utf-8")
        load_study(path)


def test_links_between_commands(generate):
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    targets = {
        f"#{title.lower().replace(' ', '-')}" for title in re.findall(r"^### (.*)$", text, re.MULTILINE)
    }
    assert set(re.findall(r"\((#alembert-\w+)\)", text)) <= targets
