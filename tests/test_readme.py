"""The first session of the README runs as written, and what it names is there."""

import re
from pathlib import Path

from markdown_blocks import run

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def test_first_session(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(README) > 0


def test_commands_are_targets():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"^make (\w+)", README.read_text(encoding="utf-8"), re.MULTILINE)) <= targets


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target
