"""Matrices of Nastran's OUTPUT2 files, of either byte order, with words of 32 or 64 bits.

A file is a row of Fortran records, each between its length in bytes. A record of one word is a key:

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
from pathlib import Path

import numpy as np
import scipy

from alembert.errors import FileError
from alembert.flexible.output4 import content_of

Array = np.ndarray
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
        i, j, x = [np.zeros(0, dtype=int)], [np.zeros(0, dtype=int)], [np.zeros(0)]
        parts = [part for part in block[3:] if part and self.words(part[0]) == [1]]
        for column, (_, *strings) in enumerate(parts):
            for string in strings:
                (row,) = self.words(string[: self.word])
                values = np.frombuffer(string[self.word :], value).astype(float)
                x.append(values)
                i.append(row - 1 + np.arange(len(values)))
                j.append(np.full(len(values), column))
        at, across, entries = np.concatenate(i), np.concatenate(j), np.concatenate(x)
        if not np.isfinite(entries).all():
            raise ValueError(f"{name} has entries that are no finite numbers")
        return scipy.sparse.csr_array((entries, (at, across)), shape=(rows, columns))
