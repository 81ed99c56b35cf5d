"""Where things are in a model file: reading it within bounds, and errors that name file, line and path."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from alembert.errors import FileError

Place: TypeAlias = tuple[str | int, ...]
"""Keys and list indices from the top of a document."""

DEEPEST = 24
"""Levels of tables and lists in a document; the format needs seven."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def read_text(path: str | os.PathLike[str], largest: int) -> str:
    """A file's text, or a `FileError` for one that is not there, not text or above `largest` bytes."""
    name = os.fspath(path)
    try:
        with Path(path).open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise FileError(f"{name}: is not a regular file")
            content = file.read(largest + 1) if status.st_size <= largest else b""
    except OSError as error:
        raise FileError(f"{name}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the name
        raise FileError(f"{name!r}: cannot be read: {error}") from None
    size = max(len(content), status.st_size)
    if size > largest:
        raise FileError(f"{name}: has {size} bytes; at most {largest} are read")
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
        return FileError(self.sentence(place, what))

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


def too_deep(data: Any) -> bool:
    """Whether tables and lists go beyond `DEEPEST` levels."""
    level = [data]
    for _ in range(DEEPEST):
        level = [
            item
            for part in level
            for item in (part.values() if isinstance(part, dict) else part)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return False
    return True
