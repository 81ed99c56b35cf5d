"""TOML: reading with line numbers, and writing models so that people like to read them.

Values come from the standard library. Lines are found by a second pass over the text, made only when an error
has to be placed, which may rely on the text being valid.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from alembert.errors import FileError
from alembert.model.io.location import DEEPEST, Place, Source, check_sizes, depth_error
from alembert.model.io.notes import is_word, number, quoted

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
    return Source(name, data, lambda: Scanner(text).scan().lines)


@dataclass
class HeadedBlock:
    """A heading with the pairs below it, or the pairs before all headings; `start` to `end`, without comments around it."""

    place: Place
    start: int
    end: int


class Scanner:
    """Finds where every key, value and heading of a valid TOML text stands."""

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
        self.values: dict[Place, tuple[int, int]] = {}
        """what stands behind the equals sign of a key, and the entries of lists"""
        self.pairs: dict[Place, tuple[int, int]] = {}
        """key, equals sign and value"""
        self.names: dict[Place, list[tuple[int, int]]] = {}
        """where a key is spelt, in pairs and in headings"""
        self.blocks: list[HeadedBlock] = [HeadedBlock((), 0, 0)]

    def scan(self) -> Self:
        while self.skip(self._SPACE) < len(self.text):
            if self.text.startswith("[[", self.at):
                self.header(2)
            elif self.text[self.at] == "[":
                self.header(1)
            else:
                self.pair(self.blocks[-1].place)
            self.blocks[-1].end = self.at
        return self

    def skip(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.at

    def mark(self, place: Place, position: int) -> Place:
        self.lines.setdefault(place, bisect_right(self.starts, position))
        return place

    def header(self, brackets: int) -> None:
        start = self.at
        self.at += brackets
        *outer, (name, span) = self.keys()
        self.at += brackets
        place: Place = ()
        for key, where in outer:
            place = self.mark((*place, key), start)
            self.names.setdefault(place, []).append(where)
            place = self.inside(place)
        place = self.mark((*place, name), start)
        self.names.setdefault(place, []).append(span)
        if brackets == 2:
            self.last[place] = self.last.get(place, -1) + 1
            place = self.mark(self.inside(place), start)
        self.blocks.append(HeadedBlock(place, start, self.at))

    def inside(self, place: Place) -> Place:
        return (*place, self.last[place]) if place in self.last else place

    def keys(self) -> list[tuple[str, tuple[int, int]]]:
        found = []
        while True:
            self.skip(self._BLANK)
            start = self.at
            if self.text[start] in "\"'":
                self.skip(self._STRING)
                key = tomllib.loads(f"key = {self.text[start : self.at]}")["key"]
            else:
                self.skip(self._BARE_KEY)
                key = self.text[start : self.at]
            found.append((key, (start, self.at)))
            self.skip(self._BLANK)
            if self.text[self.at] != ".":
                return found
            self.at += 1

    def pair(self, prefix: Place) -> None:
        start = self.at
        place = prefix
        for key, span in self.keys():
            place = self.mark((*place, key), start)
            self.names.setdefault(place, []).append(span)
        self.at += 1  # the equals sign
        self.skip(self._BLANK)
        self.value(place)
        self.pairs[place] = (start, self.at)

    def value(self, place: Place) -> None:
        start = self.at
        opening = self.text[start]
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
            self.at = start + len(self.text[start : self.at].rstrip())
        self.values[place] = (start, self.at)

    def entries(self, closing: str) -> Iterator[None]:
        self.at += 1
        while self.text[self.skip(self._SPACE)] != closing:
            yield
            if self.text[self.skip(self._SPACE)] == ",":
                self.at += 1
        self.at += 1


def write(document: Mapping[str, Any]) -> str:
    """A document of tables of tables; small tables go on one line, larger ones get a heading."""
    return "\n".join(table_lines(document, ())).lstrip("\n") + "\n"


def table_lines(table: Mapping[str, Any], place: tuple[str, ...]) -> list[str]:
    """The lines of a table below its heading, and those of tables in it that have headings of their own."""
    lines, below = [], []
    for key, value in table.items():
        line = f"{written_key(key)} = {inline(value)}"
        if isinstance(value, Mapping) and (has_headings(place) or len(line) > WIDEST):
            below += _section(value, (*place, key))
        elif isinstance(value, list) and len(line) > WIDEST:
            lines += [f"{written_key(key)} = [", *(f"    {inline(entry)}," for entry in value), "]"]
        else:
            lines.append(line)
    return lines + below


def has_headings(place: tuple[str, ...]) -> bool:
    """The tables in a document and in its sections have headings of their own."""
    return len(place) < 2


def _section(table: Mapping[str, Any], place: tuple[str, ...]) -> list[str]:
    lines = table_lines(table, place)
    only_headings = lines and lines[0] == ""
    if only_headings:
        return lines
    return ["", f"[{'.'.join(written_key(key) for key in place)}]", *lines]


def inline(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{written_key(key)} = {inline(entry)}" for key, entry in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(inline(entry) for entry in value) + "]"
    return quoted(value) if isinstance(value, str) else number(value)


def written_key(key: str) -> str:
    return key if is_word(key) else quoted(key)
