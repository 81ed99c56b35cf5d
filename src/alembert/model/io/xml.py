"""XML with line numbers, read defensively: no document types, entities or network, bounded size and depth."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from alembert.errors import ArgumentError, FileError
from alembert.model.io.location import LARGEST_XML, read_bytes

MAX_ELEMENTS = 500_000
MAX_DEPTH = 100
MAX_NAME = 1000  # characters of a name
MAX_NUMBER = 1e100  # so that products of a few numbers stay finite

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)
_SPACE = " \t\r\n"


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    file: str
    line: int
    children: list[Element] = field(default_factory=list)
    text_line: int | None = None
    """Line of the first text that is not blank."""

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"

    def fail(self, message: str) -> NoReturn:
        raise FileError(f"{self.where}: {message}")

    def all(self, tag: str) -> list[Element]:
        return [child for child in self.children if child.tag == tag]

    def optional(self, tag: str) -> Element | None:
        """The only child with this tag, None when there is none."""
        found = self.all(tag)
        if len(found) > 1:
            found[1].fail(
                f"<{self.tag}> has {len(found)} <{tag}> elements, expected one "
                f"(first on line {found[0].line})"
            )
        return found[0] if found else None

    def one(self, tag: str) -> Element:
        found = self.optional(tag)
        return found if found is not None else self.fail(f"<{self.tag}> has no <{tag}>")

    def walk(self) -> Iterator[Element]:
        yield self
        for child in self.children:
            yield from child.walk()

    def text(self, name: str) -> str:
        """An attribute that must be there and not be empty."""
        value = self.attributes.get(name)
        if value is None:
            self.fail(f"<{self.tag}> has no attribute {name!r}")
        if not value.strip(_SPACE):
            self.fail(f"<{self.tag}> has an empty attribute {name!r}")
        if len(value) > MAX_NAME:
            self.fail(
                f"<{self.tag}> attribute {name!r} has {len(value)} characters; at most {MAX_NAME} are allowed"
            )
        return value

    def numbers(
        self,
        name: str,
        count: int,
        default: tuple[float, ...] | None = None,
        *,
        infinite: bool = False,
        lowest: float = -MAX_NUMBER,
    ) -> tuple[float, ...]:
        """An attribute of `count` numbers, all finite (unless `infinite`) and at least `lowest`."""
        value = self.attributes.get(name)
        if value is None:
            if default is None:
                self.fail(f"<{self.tag}> has no attribute {name!r}")
            return default
        words = value.split()
        what = f"<{self.tag}> attribute {name!r}"
        if len(words) != count:
            plural = "number" if count == 1 else "numbers"
            self.fail(f"{what} is {value[:80]!r}, expected {count} {plural}, got {len(words)}")
        found = []
        for word in words:
            if infinite and _INFINITE.fullmatch(word):
                found.append(float(word))
                continue
            if not _NUMBER.fullmatch(word):
                hint = "; expand the file with xacro first" if "${" in word else ""
                self.fail(f"{what} has {word[:40]!r}, expected a finite number{hint}")
            number = float(word)
            if abs(number) > MAX_NUMBER:
                if not infinite:
                    self.fail(f"{what} has {word[:40]!r}, which is out of range")
            elif number < lowest:
                self.fail(f"{what} has {word[:40]!r}, expected {lowest:g} or more")
            found.append(number)
        return tuple(found)

    def number(
        self,
        name: str,
        default: float | None = None,
        *,
        infinite: bool = False,
        lowest: float = -MAX_NUMBER,
    ) -> float:
        fallback = None if default is None else (default,)
        return self.numbers(name, 1, fallback, infinite=infinite, lowest=lowest)[0]


@dataclass(frozen=True)
class Document:
    """A document's bytes, the name for messages, and the folder it came from (None for a text)."""

    content: bytes
    file: str
    path: Path | None
    encoding: str | None = None

    @property
    def folder(self) -> Path | None:
        return None if self.path is None else self.path.parent


def read(source: str | os.PathLike[str]) -> Document:
    """The content of a file, or a text that starts with `<`; too large ones are refused unread."""
    if isinstance(source, str) and source.lstrip().startswith("<"):
        if len(source) > LARGEST_XML:
            raise FileError(
                f"<text>: document of {len(source)} characters; at most {LARGEST_XML} are allowed"
            )
        try:
            return Document(source.encode(), "<text>", None, "utf-8")
        except UnicodeEncodeError as error:
            line = source.count("\n", 0, error.start) + 1
            raise FileError(f"<text>:{line}: text that is no valid Unicode") from None
    if not isinstance(source, (str, os.PathLike)):
        raise ArgumentError(
            f"model file is {type(source).__name__}, expected a path or a text starting with '<'"
        )
    path = Path(source)
    return Document(read_bytes(path, LARGEST_XML), str(path), path)


def parse(source: Document) -> Element:
    """The root element; a `FileError` with the line for anything that is not plain, well-formed XML."""
    parser = expat.ParserCreate(source.encoding)
    parser.buffer_text = True
    stack: list[Element] = []
    roots: list[Element] = []
    count = 0

    def fail(message: str) -> NoReturn:
        raise FileError(f"{source.file}:{parser.CurrentLineNumber}: {message}")

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > MAX_ELEMENTS:
            fail(f"more than {MAX_ELEMENTS} elements")
        if len(stack) >= MAX_DEPTH:
            fail(f"elements nested deeper than {MAX_DEPTH} levels")
        element = Element(tag, attributes, source.file, parser.CurrentLineNumber)
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    def end(_: str) -> None:
        stack.pop()

    def text(data: str) -> None:
        if stack and stack[-1].text_line is None and data.strip(_SPACE):
            stack[-1].text_line = parser.CurrentLineNumber

    def refuse_doctype(*_: object) -> None:
        fail("the document has a DOCTYPE; document types and entities are not read")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = refuse_doctype
    try:
        parser.Parse(source.content, True)
    except expat.ExpatError as error:
        raise FileError(
            f"{source.file}:{error.lineno}: not well-formed XML: {expat.ErrorString(error.code)}"
        ) from None
    except (LookupError, UnicodeError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        fail(f"unknown or unsupported encoding: {error}")
    return roots[0]
