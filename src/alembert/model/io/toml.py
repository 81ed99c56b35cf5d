"""TOML: reading with line numbers, and writing models so that people like to read them.

Values come from the standard library. Lines are found by a second pass over the text, made only when an error
has to be placed, which may rely on the text being valid.

Changes of a TOML text that leave all other bytes as they are: comments, layout, the order of keys.

    put(text, place, value)      a value in place of another, or where there was none
    remove(text, place)          a key, a table or an entry of a list
    rename(text, place, name)    a key, wherever it is spelt

A change is made in the text and then checked: the new text is read, and must say what the old one said but for
the change. So a layout that is not foreseen here is refused, never damaged.
"""

from __future__ import annotations

import copy
import itertools
import re
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from alembert.errors import FileError, UnsupportedError
from alembert.model.io.location import DEEPEST, Place, Source, check_sizes, depth_error, shown
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


Edit = tuple[int, int, str]
"""what stands from here to there becomes this"""


_REST = re.compile(r"[ \t]*,?[ \t]*(#[^\n]*)?\r?\n")
"""of a line that a list has for one entry"""


class _Missing:
    """No value at a place."""


MISSING = _Missing()


def at(data: Any, place: Place) -> Any:
    """What is at a place of a document, or `MISSING`."""
    for key in place:
        of_list = isinstance(data, list) and isinstance(key, int) and 0 <= key < len(data)
        if not of_list and not (isinstance(data, Mapping) and key in data):
            return MISSING
        data = data[key]
    return data


def put(text: str, place: Place, value: Any) -> str:
    """The text with a value (a number, a text, a list, a table of them) at a place."""

    def change(data: dict[str, Any]) -> None:
        inside: Any = data
        for key, below in itertools.pairwise(place):
            if isinstance(inside, dict):
                inside.setdefault(key, [] if isinstance(below, int) else {})
            inside = inside[key]
        if isinstance(inside, list) and place[-1] == len(inside):
            inside.append(value)
        else:
            inside[place[-1]] = value

    return _checked(text, lambda: _put(text, place, value), place, change)


def remove(text: str, place: Place) -> str:
    """The text without what is at a place."""

    def change(data: dict[str, Any]) -> None:
        del at(data, place[:-1])[place[-1]]
        for k in range(len(place) - 1, 0, -1):  # a table that only headings of others made
            if at(data, place[:k]) == {}:
                del at(data, place[: k - 1])[place[k - 1]]

    return _checked(text, lambda: _removed(text, place), place, change)


def rename(text: str, place: Place, name: str) -> str:
    """The text with another last key in a place."""

    def change(data: dict[str, Any]) -> None:
        table = at(data, place[:-1])
        renamed = {name if key == place[-1] else key: value for key, value in table.items()}
        table.clear()
        table.update(renamed)

    def renamed() -> str:
        spans = Scanner(text).scan().names[place]
        return _edited(text, [(a, b, written_key(name)) for a, b in spans])

    return _checked(text, renamed, place, change)


def _checked(
    old: str, make: Callable[[], str], place: Place, change: Callable[[dict[str, Any]], None]
) -> str:
    """The text that `make` gives, if it says what `change` makes of the old one's data."""
    expected = copy.deepcopy(tomllib.loads(old))
    try:
        change(expected)
        new = make()
        if _same(_bare(tomllib.loads(new)), _bare(expected)):
            return new
    except (tomllib.TOMLDecodeError, KeyError, IndexError, TypeError):
        pass  # there is no such place, or nothing that could be put there
    raise UnsupportedError(f"{shown(place)}: this cannot be changed here; change it in the text of the file")


def _bare(data: Any) -> Any:
    """Without empty tables: a heading without keys says nothing."""
    if isinstance(data, dict):
        kept = {key: _bare(value) for key, value in data.items()}
        return {key: value for key, value in kept.items() if value != {}}
    return [_bare(entry) for entry in data] if isinstance(data, list) else data


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and repr(a) == repr(b)


def _edited(text: str, edits: list[Edit]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


# --- putting ------------------------------------------------------------------------------------------------


def _put(text: str, place: Place, value: Any) -> str:
    found, data = Scanner(text).scan(), tomllib.loads(text)
    old = at(data, place)
    if old is MISSING:
        return _inserted(text, found, data, place, value)
    if place in found.values:
        return _edited(text, _replaced(found, place, old, value))
    if isinstance(old, dict) and isinstance(value, Mapping):  # under a heading of its own, or by dotted keys
        for key in old:
            if key not in value:
                text = _removed(text, (*place, key))
        for key, entry in value.items():
            if not _same(old.get(key, MISSING), entry):
                text = _put(text, (*place, key), entry)
        return text
    return _put(_removed(text, place), place, value)


def _replaced(found: Scanner, place: Place, old: Any, new: Any) -> list[Edit]:
    """Only what differs."""
    start, end = found.values[place]
    if _same(old, new):
        return []
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        entries: list[tuple[str | int, Any, Any]] = [(k, old[k], new[k]) for k in range(len(old))]
    elif isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        entries = [(key, old[key], new[key]) for key in old]
    elif isinstance(old, list) and isinstance(new, list) and len(old) > 0 and _same(old, new[:-1]):
        return [_appended(found, place, len(old), new[-1])]
    else:
        return [(start, end, inline(new))]
    return [edit for key, a, b in entries for edit in _replaced(found, (*place, key), a, b)]


def _appended(found: Scanner, place: Place, count: int, value: Any) -> Edit:
    """A further entry of a list, on a line of its own where the last one is."""
    start, end = found.values[(*place, count - 1)]
    line = found.text.rfind("\n", 0, start) + 1
    before = found.text[line:start]
    if before.strip() == "" and line > found.values[place][0]:
        return (end, end, f",{_newline(found.text)}{before}{inline(value)}")
    return (end, end, f", {inline(value)}")


def _inserted(text: str, found: Scanner, data: Any, place: Place, value: Any) -> str:
    *outer, key = place
    parent = tuple(outer)
    table = at(data, parent)
    if isinstance(key, int):
        return _put(text, parent, [*([] if table is MISSING else table), value])
    if table is MISSING and parent:
        return _inserted(text, found, data, parent, {key: value})
    if parent in found.values:
        return _edited(text, [_into_braces(found, parent, f"{written_key(key)} = {inline(value)}")])
    names = tuple(str(part) for part in parent)
    lines = table_lines({key: value}, names)
    if isinstance(value, Mapping) and not value and has_headings(names):
        lines = ["", f"[{'.'.join(written_key(part) for part in (*names, key))}]"]
    if lines[0] == "":
        return _with_block(text, found, parent, lines[1:])
    own = [block for block in found.blocks if block.place == parent]
    if own:
        return _with_lines(text, own[-1].end, lines)
    if dotted := _dotted(found, parent):
        prefix, end = dotted
        return _with_lines(text, end, [f"{prefix}.{lines[0]}", *lines[1:]])
    heading = f"[{'.'.join(written_key(part) for part in names)}]"
    return _with_block(text, found, parent, [heading, *lines])


def _into_braces(found: Scanner, parent: Place, pair: str) -> Edit:
    start, end = found.values[parent]
    inside = [span[1] for place, span in found.pairs.items() if start < span[0] and span[1] < end]
    if inside:
        return (max(inside), max(inside), f", {pair}")
    return (start, end, f"{{ {pair} }}")


def _dotted(found: Scanner, parent: Place) -> tuple[str, int] | None:
    """Keys such as `inertia.mass` that make a table: how it is spelt there, and where the last one ends."""
    result = None
    for place, (start, end) in found.pairs.items():
        holder = next((b for b in reversed(found.blocks) if b.start <= start), found.blocks[0])
        if place[: len(parent)] == parent and len(holder.place) < len(parent) < len(place):
            keys = parent[len(holder.place) :]
            result = ".".join(written_key(str(key)) for key in keys), end
    return result


def _with_lines(text: str, end: int, lines: list[str]) -> str:
    """Below the line in which a pair or a heading ends."""
    newline = _newline(text)
    if end == 0:
        return newline.join([*lines, text])
    stop = _line_end(text, end)
    return text[:stop] + "".join(newline + line for line in lines) + text[stop:]


def _with_block(text: str, found: Scanner, parent: Place, lines: list[str]) -> str:
    """A heading with its lines behind those of the same section, or at the end."""
    newline = _newline(text)
    section = [block.end for block in found.blocks if parent and block.place[:1] == parent[:1]]
    addition = newline.join(["", "", *lines])
    if section:
        stop = _line_end(text, section[-1])
        return text[:stop] + addition + text[stop:]
    return text.rstrip() + addition + newline


def _line_end(text: str, position: int) -> int:
    stop = text.find("\n", position)
    stop = len(text) if stop < 0 else stop
    return stop - 1 if text[stop - 1 : stop] == "\r" and stop > position else stop


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


# --- removing -----------------------------------------------------------------------------------------------


def _removed(text: str, place: Place) -> str:
    found = Scanner(text).scan()
    if place in found.values and place not in found.pairs:  # an entry of a list
        return _edited(text, [_between_commas(found, place, found.values, place[-1])])
    around = [p for p in found.values if len(p) < len(place) and p == place[: len(p)]]
    if around:  # in braces
        return _edited(text, [_between_commas(found, place, found.pairs, None)])
    edits = [
        _whole_lines(text, span)
        for p, span in found.pairs.items()
        if p[: len(place)] == place and _outermost(found, p)
    ]
    for block in found.blocks[1:]:
        if block.place[: len(place)] == place:
            edits = [edit for edit in edits if not block.start <= edit[0] < block.end]
            edits.append(_whole_block(text, block))
    return _edited(text, edits)


def _outermost(found: Scanner, place: Place) -> bool:
    return not any(place[:k] in found.values for k in range(len(place)))


def _between_commas(found: Scanner, place: Place, spans: Mapping[Place, tuple[int, int]], index: Any) -> Edit:
    """An entry of a list or a pair in braces, with one of the commas around it."""
    holder = next(place[:k] for k in range(len(place) - 1, -1, -1) if place[:k] in found.values)
    first, last = found.values[holder]
    level = len(place) if index is not None else None
    siblings = sorted(
        span
        for p, span in spans.items()
        if p[: len(holder)] == holder
        and len(p) > len(holder)
        and first < span[0]
        and (level is None or len(p) == level)
    )
    siblings = [s for s in siblings if not any(o[0] <= s[0] and s[1] <= o[1] and o != s for o in siblings)]
    own = spans[place]
    start, end, _ = _whole_lines(found.text, own)
    if not found.text[start : own[0]].strip() and _REST.fullmatch(found.text[own[1] : end]):
        return (start, end, "")
    k = siblings.index(own)
    if k + 1 < len(siblings):
        return (own[0], siblings[k + 1][0], "")
    if k > 0:
        return (siblings[k - 1][1], own[1], "")
    return (first + 1, last - 1, "")


def _whole_lines(text: str, span: tuple[int, int]) -> Edit:
    """A pair with what is left of its line: blanks before it, a remark behind it."""
    end = text.find("\n", span[1])
    return (text.rfind("\n", 0, span[0]) + 1, len(text) if end < 0 else end + 1, "")


def _whole_block(text: str, block: HeadedBlock) -> Edit:
    """A heading with its pairs, the remarks right above it and the empty lines below."""
    start = text.rfind("\n", 0, block.start) + 1
    while start > 0:
        above = text.rfind("\n", 0, start - 1) + 1
        if not text[above:start].lstrip().startswith("#"):
            break
        start = above
    end = _line_end(text, block.end)
    while end < len(text) and text[end] in "\r\n":
        end += 1
    if end == len(text):  # the last one: the empty lines above go as well
        kept = len(text[:start].rstrip())
        start = kept + len(_newline(text)) if kept else 0
    return (start, end, "")
