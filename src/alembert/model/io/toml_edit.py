"""Changes of a TOML text that leave all other bytes as they are: comments, layout, the order of keys.

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
from collections.abc import Callable, Mapping
from typing import Any

from alembert.errors import UnsupportedError
from alembert.model.io.location import Place, shown
from alembert.model.io.toml import HeadedBlock, Scanner, has_headings, inline, table_lines, written_key

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
