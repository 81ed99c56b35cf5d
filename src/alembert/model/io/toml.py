"""TOML: reading with line numbers, and writing models so that people like to read them.

Values come from the standard library. Lines are found by a second pass over the text, made only when an error
has to be placed, which may rely on the text being valid.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

from alembert.errors import FileError
from alembert.model.io.location import DEEPEST, Place, Source, check_sizes, depth_error
from alembert.model.io.text import is_word, number, quoted

LARGEST = 32_000_000  # bytes; some ten seconds
LONGEST_LINE = 1_000_000  # characters
WIDEST = 120  # columns of what goes on one line

_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*+{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{DEEPEST}}}", re.MULTILINE)
"""a key of more parts than a document has levels"""


def parse(text: str, name: str) -> Source:
    for k, content in enumerate(text.split("\n") if len(text) > LONGEST_LINE else (), start=1):
        if len(content) > LONGEST_LINE:
            raise FileError(
                f"{name}:{k}: a line has {len(content)} characters; at most {LONGEST_LINE} are read"
            )
    if _LONG_KEY.search(text) is not None:  # the parser takes memory with the square of the parts
        raise depth_error(name)
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise depth_error(name) from None
    except (ValueError, OverflowError) as error:
        found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        line = found.group(1) if found else "1"
        what = str(error)[: found.start()] if found else str(error)
        if line is None:
            line, what = str(text.count("\n") + 1), f"{what} at the end of the document"
        raise FileError(f"{name}:{line}: not valid TOML: {what}") from None
    check_sizes(name, data)
    return Source(name, data, lambda: _Scanner(text).scan())


class _Scanner:
    """Finds the line of every key and list entry of a valid TOML text."""

    _BLANK = re.compile(r"[ \t]*")
    _SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
    _BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
    _BARE_VALUE = re.compile(r"[^,\]}#\r\n]*")
    _STRING = re.compile(
        r'"""(?:[^\\]|\\.)*?"{3,5}(?!")|' + r"'''.*?'{3,5}(?!')|" + r'"(?:[^"\\]|\\.)*"|' + r"'[^']*'",
        re.DOTALL,
    )

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.lines: dict[Place, int] = {(): 1}
        self.last: dict[Place, int] = {}  # array of tables -> its latest index

    def scan(self) -> dict[Place, int]:
        prefix: Place = ()
        while self.skip(self._SPACE) < len(self.text):
            if self.text.startswith("[[", self.at):
                prefix = self.header(2)
            elif self.text[self.at] == "[":
                prefix = self.header(1)
            else:
                self.pair(prefix)
        return self.lines

    def skip(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.at

    def mark(self, place: Place, position: int) -> Place:
        self.lines.setdefault(place, bisect_right(self.starts, position))
        return place

    def header(self, brackets: int) -> Place:
        start = self.at
        self.at += brackets
        *outer, name = self.keys()
        self.at += brackets
        place: Place = ()
        for key in outer:
            place = self.inside(self.mark((*place, key), start))
        place = self.mark((*place, name), start)
        if brackets == 2:
            self.last[place] = self.last.get(place, -1) + 1
            place = self.mark(self.inside(place), start)
        return place

    def inside(self, place: Place) -> Place:
        return (*place, self.last[place]) if place in self.last else place

    def keys(self) -> list[str]:
        found = []
        while True:
            self.skip(self._BLANK)
            start = self.at
            if self.text[start] in "\"'":
                self.skip(self._STRING)
                found.append(tomllib.loads(f"key = {self.text[start : self.at]}")["key"])
            else:
                self.skip(self._BARE_KEY)
                found.append(self.text[start : self.at])
            self.skip(self._BLANK)
            if self.text[self.at] != ".":
                return found
            self.at += 1

    def pair(self, prefix: Place) -> None:
        start = self.at
        place = prefix
        for key in self.keys():
            place = self.mark((*place, key), start)
        self.at += 1  # the equals sign
        self.skip(self._BLANK)
        self.value(place)

    def value(self, place: Place) -> None:
        opening = self.text[self.at]
        if opening in "\"'":
            self.skip(self._STRING)
        elif opening == "[":
            for k, _ in enumerate(self.entries("]")):
                self.value(self.mark((*place, k), self.at))
        elif opening == "{":
            for _ in self.entries("}"):
                self.pair(place)
        else:
            self.skip(self._BARE_VALUE)

    def entries(self, closing: str) -> Iterator[None]:
        self.at += 1
        while self.text[self.skip(self._SPACE)] != closing:
            yield
            if self.text[self.skip(self._SPACE)] == ",":
                self.at += 1
        self.at += 1


def write(document: Mapping[str, Any]) -> str:
    """A document of tables of tables; small tables go on one line, larger ones get a heading."""
    return "\n".join(_table(document, ())).lstrip("\n") + "\n"


def _table(table: Mapping[str, Any], place: tuple[str, ...]) -> list[str]:
    lines, below = [], []
    for key, value in table.items():
        line = f"{_key(key)} = {_inline(value)}"
        if isinstance(value, Mapping) and (_has_headings(place) or len(line) > WIDEST):
            below += _section(value, (*place, key))
        elif isinstance(value, list) and len(line) > WIDEST:
            lines += [f"{_key(key)} = [", *(f"    {_inline(entry)}," for entry in value), "]"]
        else:
            lines.append(line)
    return lines + below


def _has_headings(place: tuple[str, ...]) -> bool:
    """The tables in a document and in its sections have headings of their own."""
    return len(place) < 2


def _section(table: Mapping[str, Any], place: tuple[str, ...]) -> list[str]:
    lines = _table(table, place)
    only_headings = lines and lines[0] == ""
    if only_headings:
        return lines
    return ["", f"[{'.'.join(_key(key) for key in place)}]", *lines]


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {_inline(entry)}" for key, entry in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(_inline(entry) for entry in value) + "]"
    return quoted(value) if isinstance(value, str) else number(value)


def _key(key: str) -> str:
    return key if is_word(key) else quoted(key)
