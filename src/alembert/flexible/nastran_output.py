"""Matrices of Nastran's OUTPUT4 and OUTPUT2 files.

OUTPUT4 is text or binary, dense or sparse, of either byte order. A matrix is a header (columns, rows, form, type, name),
then a record for each column that is not zero, and one for the column behind the last. A record has the number of the
column, the first row, a count, and

    first row > 0    dense: the values from there on
    first row = 0    strings of values. Each has its length and row in two words ("bigmat", rows < 0 or >= 65536 in the
                     header), or in one as 65536 length + row; the length is in words, one more than the values take.

Types are 1 and 3 (single precision, real and complex) and 2 and 4 (double: two words to a value, one in files of 64-bit
words).

OUTPUT2 is of either byte order, with words of 32 or 64 bits. A file is a row of Fortran records, each between its length in
bytes. A record of one word is a key:

    k > 0     a record of k words follows; in matrices the word before the values is not counted
    k < 0     a part of a data block ends
    0         a data block ends; or the file, where no block has begun

The parts of a block are its name, a trailer (number, columns, rows, form, type, ...), its name again, and then the parts of
the data, each after a word that is 1 in matrices and 0 in tables and at the end. A part of a matrix is a column: strings of
values, each after the row of its first one. Types are 1 and 3 (single precision, real and complex; eight bytes where words
have 64 bits) and 2 and 4 (double). Tables and complex matrices are passed over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy

from alembert.errors import FileError, UnsupportedError

Array = np.ndarray
MOST = 4_000_000_000
"""bytes of a file"""
_ONE_WORD = 65536
"""rows from which on the row and the length of a string do not fit into one word"""


@dataclass(frozen=True)
class _Header:
    columns: int
    rows: int
    kind: int
    name: str

    @property
    def big(self) -> bool:
        return self.rows < 0 or self.rows >= _ONE_WORD


def content_of(path: Path, most: int = MOST) -> bytes:
    """All of a file of at most so many bytes."""
    try:
        if path.stat().st_size > most:
            raise FileError(f"{path}: more than {most} bytes")
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from None


def lines_of(path: Path, most: int = MOST) -> list[str]:
    """The lines of a text file of at most so many bytes."""
    return content_of(path, most).decode("latin-1").splitlines()


def read_output4(path: Path) -> dict[str, scipy.sparse.csr_array]:
    """All real matrices of a file, by their names in upper case."""
    content = content_of(path)
    found: dict[str, scipy.sparse.csr_array] = {}
    try:
        for header, entries in _matrices(
            _Binary(content) if b"\0" in content[:8] else _Text(content), str(path)
        ):
            if header.name in found:
                raise ValueError(f"there are two matrices {header.name}, expected one of each name")
            found[header.name] = _sparse(header.name, entries, (abs(header.rows), header.columns))
    except (ValueError, IndexError, struct.error, OverflowError) as error:
        raise FileError(f"{path}: not read as OUTPUT4: {error}") from None
    if not found:
        raise FileError(f"{path}: not read as OUTPUT4: the file is empty")
    return found


Entries = list[tuple[Array, Array, Array]]
"""rows, columns and values of strings of entries"""


def _sparse(name: str, entries: Entries, shape: tuple[int, int]) -> scipy.sparse.csr_array:
    none = np.zeros(0, dtype=int)
    i, j, x = (np.concatenate(part) for part in zip((none, none, np.zeros(0)), *entries, strict=True))
    if not np.isfinite(x).all():
        raise ValueError(f"{name} has entries that are no finite numbers")
    return scipy.sparse.csr_array((x, (i, j)), shape=shape)


class _Text:
    """The lines of a file: integers and values of fixed width."""

    def __init__(self, content: bytes) -> None:
        self.lines = iter(content.decode("latin-1").splitlines())
        self.per_line, self.width = 5, 16

    def header(self) -> _Header | None:
        line = next((line for line in self.lines if line.strip()), "").rstrip()
        if not line:
            return None
        wide = line.endswith("|I16")
        size = 16 if wide else 8
        line = line.removesuffix("|I16")
        ends = [size, 2 * size, 2 * size + 8, 2 * size + 16, 2 * size + 24]
        parts = [line[a:b] for a, b in zip([0, *ends], ends, strict=False)]
        form = line[ends[-1] :].strip().upper().replace("D", "E").removeprefix("1P,")
        if form:
            count, _, rest = form.partition("E")
            self.per_line, self.width = int(count), int(rest.partition(".")[0])
        return _Header(int(parts[0]), int(parts[1]), int(parts[3]), parts[4].strip().upper())

    def _line(self) -> str:
        line = next(self.lines, None)
        if line is None:
            raise ValueError("the file ends within a matrix")
        return line

    def words(self, kind: int) -> int:
        return 1 if kind % 2 else 2

    def record(self) -> tuple[int, int, int]:
        column, row, count = self.integers(3)
        return column, row, count

    def integers(self, count: int) -> list[int]:
        """Eight places each, or sixteen, as some write all of them where the header says |I16."""
        line = self._line().rstrip()
        size = 8 if len(line) <= 8 * count else 16
        return [int(line[size * k : size * (k + 1)] if count > 1 else line) for k in range(count)]

    def dense(self, count: int, words: int) -> int:
        """How many values a dense record of the given count has."""
        return count

    def values(self, count: int, kind: int) -> Array:
        text = "".join(
            self._line()[: self.per_line * self.width] for _ in range(-(-count // self.per_line))
        ).replace("D", "E")
        if len(text) < (count - 1) * self.width + 1:
            raise ValueError("the file ends within a matrix")
        return np.array([float(text[k * self.width : (k + 1) * self.width]) for k in range(count)])

    def skip(self, count: int) -> None:
        """The value behind the last column."""
        self._line()

    def finish(self) -> None:
        """Behind the content of a record."""


class _Binary:
    """Records of Fortran: a length of four bytes, the content, the length again."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at, self.end = content, 0, 0
        self.order = next((o for o in "<>" if struct.unpack(o + "i", content[:4])[0] in (24, 48)), "")
        if not self.order:
            raise ValueError("it begins neither as text nor with a record of 24 or 48 bytes")
        self.size = 4 if struct.unpack(self.order + "i", content[:4])[0] == 24 else 8

    def header(self) -> _Header | None:
        if self.at >= len(self.content):
            return None
        self._begin()
        columns, rows, _, kind = self.integers(4)
        name = self._take(2 * self.size).decode("latin-1").strip().upper()
        self.finish()
        return _Header(columns, rows, kind, name)

    def words(self, kind: int) -> int:
        return 1 if kind % 2 or self.size == 8 else 2

    def record(self) -> tuple[int, int, int]:
        self._begin()
        column, row, count = self.integers(3)
        return column, row, count

    def integers(self, count: int) -> list[int]:
        form = f"{self.order}{count}{'i' if self.size == 4 else 'q'}"
        return list(struct.unpack(form, self._take(count * self.size)))

    def dense(self, count: int, words: int) -> int:
        return count // words

    def values(self, count: int, kind: int) -> Array:
        size = 4 if kind % 2 and self.size == 4 else 8
        return np.frombuffer(self._take(count * size), dtype=f"{self.order}f{size}").astype(float)

    def skip(self, count: int) -> None:
        self.at = self.end

    def _begin(self) -> None:
        (length,) = struct.unpack(self.order + "i", self._take(4))
        self.end = self.at + length

    def finish(self) -> None:
        if self.at != self.end:
            raise ValueError(f"a record ends at byte {self.end}, what it holds at {self.at}")
        self._take(4)

    def _take(self, count: int) -> bytes:
        part = self.content[self.at : self.at + count]
        if len(part) < count:
            raise ValueError("the file ends within a matrix")
        self.at += count
        return part


def _matrices(read: _Text | _Binary, path: str) -> Iterator[tuple[_Header, Entries]]:
    while (header := read.header()) is not None:
        if header.kind not in (1, 2):
            what = "complex" if header.kind in (3, 4) else f"of type {header.kind}"
            raise UnsupportedError(f"{path}: matrix {header.name} is {what}; real matrices are read")
        entries: Entries = []
        words = read.words(header.kind)
        while True:
            column, row, count = read.record()
            if column > header.columns:  # one value behind the last column
                read.skip(count)
                read.finish()
                break
            entries += _record(read, header, column, row, count, words)
            read.finish()
        yield header, entries


def _record(
    read: _Text | _Binary, header: _Header, column: int, row: int, count: int, words: int
) -> Iterator[tuple[Array, Array, Array]]:
    """Rows, columns and values."""
    while count > 0:
        if row > 0:
            at, length, used = row, read.dense(count, words), count
        elif header.big:
            first, at = read.integers(2)
            length, used = (first - 1) // words, first + 1
        else:
            first, at = divmod(read.integers(1)[0], _ONE_WORD)
            length, used = (first - 1) // words, first
        if length < 0 or at < 1 or used < 1 or at - 1 + length > abs(header.rows):
            raise ValueError(f"{header.name} has {length} values from row {at} on in column {column}")
        values = read.values(length, header.kind)
        yield np.arange(at - 1, at - 1 + length), np.full(length, column - 1), values
        count -= used


Block = list[list[bytes]]
"""parts, each of some records"""


def read_output2(path: Path) -> dict[str, scipy.sparse.csr_array]:
    """All real matrices of a file, by their names in upper case; of a name that comes twice, the last."""
    content = content_of(path)
    found: dict[str, scipy.sparse.csr_array] = {}
    try:
        file = _File(content)
        for block in file.blocks():
            if len(block) > 3 and len(block[0]) == 1 and file.words(block[3][0]) == [1]:
                # two words, of four letters each
                letters = b"".join(block[0][0][k : k + 4] for k in range(0, 2 * file.word, file.word))
                name = letters.decode("latin-1").strip().upper()
                matrix = file.matrix(name, block)
                if matrix is not None:
                    found[name] = matrix
    except (ValueError, IndexError, struct.error) as error:
        raise FileError(f"{path}: not read as OUTPUT2: {error}") from None
    return found


class _File:
    def __init__(self, content: bytes) -> None:
        self.content = content
        first = content[:4]
        sizes = {order: struct.unpack(f"{order}i", first)[0] for order in "<>"} if len(first) == 4 else {}
        at = next((order for order, size in sizes.items() if size in (4, 8)), None)
        if at is None:
            raise ValueError("it does not begin with a key of one word, of 4 or 8 bytes")
        self.order, self.word = at, sizes[at]
        self.integer = np.dtype(f"{at}i{self.word}")

    def words(self, record: bytes) -> list[int]:
        return [int(x) for x in np.frombuffer(record, self.integer)]

    def _records(self) -> Iterator[bytes]:
        at, end = 0, len(self.content)
        while at + 8 <= end:
            (size,) = struct.unpack_from(f"{self.order}i", self.content, at)
            if size < 0 or at + 8 + size > end:
                raise ValueError(f"the record at byte {at} is longer than the file")
            if struct.unpack_from(f"{self.order}i", self.content, at + 4 + size)[0] != size:
                raise ValueError(f"the record at byte {at} has another length at its end")
            yield self.content[at + 4 : at + 4 + size]
            at += 8 + size

    def blocks(self) -> Iterator[Block]:
        block: Block = [[]]
        records = self._records()
        for record in records:
            if len(record) != self.word:
                raise ValueError(f"a record of {len(record)} bytes where a key of {self.word} is expected")
            (key,) = self.words(record)
            if key > 0:
                data = next(records, b"")
                if len(data) not in (key * self.word, (key + 1) * self.word):
                    raise ValueError(f"{key} words are announced, and {len(data)} bytes come")
                block[-1].append(data)
            elif key < 0:
                block.append([])
            elif block == [[]]:
                return
            else:
                yield block
                block = [[]]
        if block != [[]]:
            raise ValueError("the file ends within a data block")

    def matrix(self, name: str, block: Block) -> scipy.sparse.csr_array | None:
        _, columns, rows, _, kind, *_ = self.words(block[1][0])
        if kind not in (1, 2):
            return None
        if max(rows, columns) > len(self.content):  # every column has a record
            raise ValueError(
                f"{name} has {rows} rows and {columns} columns in {len(self.content)} bytes, damaged?"
            )
        value = np.dtype(f"{self.order}f{self.word if kind == 1 else 8}")
        entries: Entries = []
        parts = [part for part in block[3:] if part and self.words(part[0]) == [1]]
        for column, (_, *strings) in enumerate(parts):
            for string in strings:
                (row,) = self.words(string[: self.word])
                values = np.frombuffer(string[self.word :], value).astype(float)
                entries.append((row - 1 + np.arange(len(values)), np.full(len(values), column), values))
        return _sparse(name, entries, (rows, columns))
