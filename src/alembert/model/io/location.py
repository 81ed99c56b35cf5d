"""Where things are in a model file: reading it within bounds, and errors that name file, line and path."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from alembert.errors import FileError

Place: TypeAlias = tuple[str | int, ...]
"""Keys and list indices from the top of a document."""

DEEPEST = 24
"""Levels of tables and lists in a document; the format needs seven."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


LARGEST_XML = 20_000_000
"""Bytes of an XML document"""

LONGEST_TEXT, LONGEST_KEY = 100_000, 1_000
"""Characters of a text and of a key in a document"""

_LARGEST_INTEGER = 14_000
"""Bits; Python refuses to print larger ones"""


class PlacedError(FileError):
    """What is wrong with a document, as one text and by place."""

    def __init__(self, text: str, problems: Sequence[tuple[Place, str]] = ()) -> None:
        super().__init__(text)
        self.problems = tuple(problems)


def read_bytes(path: str | os.PathLike[str], largest: int) -> bytes:
    """A file's content, or a `FileError` for one that is not there, no regular file or above `largest` bytes.

    Pipes and devices are refused without waiting for what they might send.
    """
    name = os.fspath(path)
    regular = True
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            regular = stat.S_ISREG(status.st_mode)
            content = file.read(largest + 1) if regular and status.st_size <= largest else b""
    except OSError as error:
        raise FileError(f"{name[:200]}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the name
        raise FileError(f"{name[:200]!r}: cannot be read: {error}") from None
    if not regular:
        raise FileError(f"{name}: is not a regular file")
    size = max(len(content), status.st_size)
    if size > largest:
        raise FileError(f"{name}: has {size} bytes; at most {largest} are read")
    return content


def read_text(path: str | os.PathLike[str], largest: int) -> str:
    """A file's text, as `read_bytes` reads it."""
    name, content = os.fspath(path), read_bytes(path, largest)
    if (nul := content.find(b"\0")) >= 0:
        raise FileError(f"{name}:{_line(content, nul)}: holds a NUL byte; it is not a text file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = _line(content, error.start)
        byte = content[error.start]
        raise FileError(f"{name}:{line}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8") from None


def _line(content: bytes, position: int) -> int:
    return content.count(b"\n", 0, position) + 1


@dataclass(frozen=True)
class Source:
    """A document read from a file: its plain data, and on demand the line of each part of it."""

    name: str
    data: Any
    index: Callable[[], Mapping[Place, int]]

    @cached_property
    def _lines(self) -> Mapping[Place, int]:
        return self.index()

    def line(self, place: Place) -> int:
        """The line of a place, or of the nearest part that holds it."""
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place, 1)

    def error(self, place: Place, what: str) -> FileError:
        return PlacedError(self.sentence(place, what), [(place, what)])

    def sentence(self, place: Place, what: str) -> str:
        """`file:line: path: what`"""
        path = f"{shown(place)}: " if place else ""
        return f"{self.name}:{self.line(place)}: {path}{what}"


def shown(place: Place) -> str:
    """`bodies.arm.visuals[0].color`; keys that are not words are quoted."""
    text = ""
    for key in place:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += ("." if text else "") + (key if _BARE.fullmatch(key) else repr(key))
    return text


def depth_error(name: str) -> FileError:
    return FileError(f"{name}: tables and lists are nested more than {DEEPEST} deep; no model needs that")


def check_sizes(name: str, data: Any) -> None:
    """Refuse documents with more than `DEEPEST` levels, or with texts or numbers without end."""
    level = [data]
    for _ in range(DEEPEST + 1):
        if not level:
            return
        inside = []
        for part in level:
            for key in part if isinstance(part, dict) else ():
                if len(key) > LONGEST_KEY:
                    raise FileError(
                        f"{name}: a key has {len(key)} characters; at most {LONGEST_KEY} are read"
                    )
            for item in part.values() if isinstance(part, dict) else part:
                if isinstance(item, (dict, list)):
                    inside.append(item)
                elif isinstance(item, str) and len(item) > LONGEST_TEXT:
                    raise FileError(
                        f"{name}: a text has {len(item)} characters; at most {LONGEST_TEXT} are read"
                    )
                elif isinstance(item, int) and item.bit_length() > _LARGEST_INTEGER:
                    raise FileError(
                        f"{name}: a whole number has {item.bit_length()} bits, too large for a number"
                    )
        level = inside
    raise depth_error(name)
