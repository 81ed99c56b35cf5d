"""What the site needs beyond MkDocs: words for the tests, formulas without a script, a page that may be missing, a search
that works from a folder.

Words after the language of a fence (`python no-run`, `text output`) are for the tests; here they go.
Formulas become MathML, which browsers draw themselves: the site works without a network.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

FENCE = re.compile(r"^(\s*```)(python|text) (?:no-run|output)\s*$", re.MULTILINE)
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
TAG = re.compile(r"\\tag\{(.*?)\}")
ALPHABET = re.compile(r"\\math(cal|bf)\s*\{?([A-Z])\}?")
EXCEPTIONS = dict(zip("BEFHILMR", "ℬℰℱℋℐℒℳℛ", strict=True))
"""Script capitals that Unicode had before it had an alphabet of them."""


IN_BRIEF = re.compile(r"<!-- generated: in brief -->.*?<!-- end: in brief -->", re.DOTALL)
"""What `generate_api.py` writes for readers of the bare pages; the site has the whole text of every name."""

MEASURED = "benchmarks.md"
"""Written by `make bench`; the site is also built where that has not been run."""


def on_config(config: Any) -> Any:
    if not (Path(config["docs_dir"]) / MEASURED).exists():
        for section in config["nav"]:
            for pages in section.values() if isinstance(section, dict) else ():
                if MEASURED in pages:
                    pages.remove(MEASURED)
    return config


CHANGES = '--8<-- "CHANGELOG.md"'
"""The changelog lies beside the folder of the pages, and its links begin there."""


def on_page_markdown(markdown: str, **_: Any) -> str:
    if CHANGES in markdown:
        text = (Path(__file__).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
        markdown = markdown.replace(CHANGES, text.replace("](docs/", "]("))
    return IN_BRIEF.sub("\n", FENCE.sub(r"\1\2", markdown))


def on_page_content(content: str, **_: Any) -> str:
    return FORMULA.sub(_formula, content)


def on_post_build(config: Any, **_: Any) -> None:
    """The index of the search box as a script: see search.js."""
    folder = Path(config["site_dir"]) / "search"
    pages = json.loads((folder / "search_index.json").read_text(encoding="utf-8"))["docs"]
    plain = [
        {"location": x["location"], "title": _plain(x["title"]), "text": _plain(x["text"])} for x in pages
    ]
    (folder / "words.js").write_text(
        f"window.alembertPages = {json.dumps(plain, ensure_ascii=False)}", encoding="utf-8"
    )


def _plain(text: str) -> str:
    """Without tags."""
    return html.unescape(re.sub(r"<[^>]*>", " ", text))


def _formula(match: re.Match[str]) -> str:
    element, kind, text = match.groups()
    tex = ALPHABET.sub(_letter, html.unescape(text).replace(r"\mathrel{+}=", r"\;\text{+=}\;"))
    tags = TAG.findall(tex)
    display = "block" if kind == "[" else "inline"
    drawn = convert(TAG.sub("", tex).strip(), display=display)
    number = f'<span class="equation-number">({tags[0]})</span>' if tags else ""
    return f'<{element} class="formula">{drawn}{number}</{element}>'


def _letter(match: re.Match[str]) -> str:
    """Script and bold capitals as characters: browsers do not know the attribute for them."""
    style, letter = match.groups()
    position = ord(letter) - ord("A")
    return chr(0x1D400 + position) if style == "bf" else EXCEPTIONS.get(letter, chr(0x1D49C + position))
