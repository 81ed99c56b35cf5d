"""Structures from Ansys files: nodes of an archive (CDWRITE, .cdb), matrices of a .full file (WRFULL) in sparse form.

A .full file is a row of records: the number of 32-bit words, flags, the words, their number again. The header is the second;
behind it are the labels of the unknowns (1 to 6: UX to ROTZ) and the numbers of the nodes. Pointers in the header, in words,
lead to:

    unknowns     how many each node has; for each unknown, a negative number where it is held
    K, M         for each unknown two records: the others that it goes together with, itself the last; and the values.
                 A pair stands once
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import scipy

from alembert.errors import FileError, UnsupportedError
from alembert.flexible.finite_elements import FiniteElements, UnitSystem, unit_system
from alembert.flexible.output4 import content_of

Array = np.ndarray
MOST = 8_000_000_000
"""bytes of a file"""
_EQUATIONS, _LABELS, _LUMPED, _UNSYMMETRIC, _NODES = 1, 7, 10, 13, 32
_STIFFNESS, _MASS, _UNKNOWNS = 18, 26, 35
"""places in the header; pointers have two words"""


def read_ansys(nodes: str | Path, matrices: str | Path, *, units: str | UnitSystem = "SI") -> FiniteElements:
    """A structure from the nodes of an archive (.cdb) and the mass and stiffness of a .full file.

    The matrices must be those of a free structure, without supports. Nodes are named by their numbers.
    """
    places = _nodes(Path(nodes))
    path = Path(matrices)
    file = _Full(path)
    numbers, dofs, M, K = file.read()
    missing = [k for k in numbers if k not in places]
    if missing:
        raise FileError(f"{path}: node {missing[0]} is not among the {len(places)} nodes of {nodes}")
    positions = np.array([places[k] for k in numbers])
    return FiniteElements.of_matrices(
        M, K, positions, dofs, names=[str(k) for k in numbers], units=unit_system(units)
    )


class _Full:
    def __init__(self, path: Path) -> None:
        self.path = path
        content = content_of(path, MOST)
        self.words = np.frombuffer(content[: len(content) // 4 * 4], "<i4")

    def record(self, at: int, kind: str) -> tuple[Array, int]:
        """Integers ("i") or floats ("f") of the record at a word, and where the next one is."""
        size = int(self.words[at]) if 0 <= at < len(self.words) - 2 else -1
        end = at + 2 + size
        if size < 0 or end >= len(self.words) or self.words[end] != size:
            raise FileError(f"{self.path}: no record at word {at}; it is no .full file, or damaged")
        flags = int(self.words[at + 1]) & 0xFFFFFFFF
        if flags & 0x78000000:
            raise UnsupportedError(
                f"{self.path}: the record at word {at} is compressed or of half precision; write it plain (/FCOMP,FULL,0)"
            )
        integers = bool(flags & 0x80000000)
        if integers != (kind == "i"):
            raise FileError(f"{self.path}: the record at word {at} is not of the expected kind, damaged?")
        if not integers and size % 2:
            raise FileError(f"{self.path}: the record at word {at} ends within a number, damaged?")
        data = self.words[at + 2 : end]
        return (data if integers else np.frombuffer(data.tobytes(), "<f8")), end + 1

    def read(self) -> tuple[list[int], Array, scipy.sparse.csr_array, scipy.sparse.csr_array]:
        """Numbers of the nodes, unknowns (node, direction), M and K."""
        _, at = self.record(0, "i")
        header, at = self.record(at, "i")
        if len(header) > 40 and header[0] in (8, 9):
            raise UnsupportedError(
                f"{self.path}: a .sub file of a superelement is not read. Let Ansys write its matrices as text "
                "(*DMAT,K,D,IMPORT,SUB,file.sub,STIFF; *EXPORT,K,MMF,K.mtx; the same with MASS) and give them to "
                "FiniteElements.of_matrices, or write the .full file of the whole structure"
            )
        if len(header) < 40 or header[0] != -4:
            raise UnsupportedError(f"{self.path}: it is no .full file of sparse matrices (EQSLV,SPARSE)")
        for place, what in ((_LUMPED, "lumped masses"), (_UNSYMMETRIC, "unsymmetric matrices")):
            if header[place]:
                raise UnsupportedError(f"{self.path}: {what} are not read; write them whole and symmetric")
        labels, at = self.record(at, "i")
        numbers, _ = self.record(at, "i")
        counts, at = self.record(self._pointer(header, _UNKNOWNS), "i")
        held, _ = self.record(at, "i")
        n = int(header[_EQUATIONS])
        if n < 1 or len(counts) != len(numbers) or counts.sum() != n or len(held) != n:
            raise FileError(f"{self.path}: its tables of nodes and unknowns do not fit one another")
        if not np.isin(labels, range(1, 7)).all() or not np.isin(counts, (0, len(labels))).all():
            raise UnsupportedError(
                f"{self.path}: unknowns {labels.tolist()}; UX to ROTZ (1 to 6), the same of every node, are read"
            )
        if (held < 0).any():
            raise FileError(
                f"{self.path}: {int((held < 0).sum())} of {n} unknowns are held by supports and not in the matrices; a body "
                "is held where it is attached: write the matrices of the free structure (DDELE,ALL, then WRFULL)"
            )
        owners = np.repeat(np.arange(len(numbers)), counts)
        directions = np.tile(labels - 1, int((counts > 0).sum()))
        M, K = (self._matrix(self._pointer(header, place), n) for place in (_MASS, _STIFFNESS))
        return [int(k) for k in numbers], np.column_stack([owners, directions]), M, K

    def _pointer(self, header: Array, place: int) -> int:
        at = int(header[place]) & 0xFFFFFFFF | int(header[place + 1]) << 32
        if not at:
            raise FileError(f"{self.path}: no mass or stiffness; write both (ANTYPE,MODAL, then WRFULL)")
        return at

    def _matrix(self, at: int, n: int) -> scipy.sparse.csr_array:
        i, j, x = [], [], []
        for row in range(n):
            columns, at = self.record(at, "i")
            values, at = self.record(at, "f")
            if len(columns) != len(values) or (
                len(columns) and not (columns.min() > 0 and columns.max() <= n)
            ):
                raise FileError(f"{self.path}: unknown {row + 1} has entries that do not fit, damaged?")
            i.append(np.full(len(columns), row))
            j.append(columns - 1)
            x.append(values)
        half = scipy.sparse.csr_array(
            (np.concatenate(x), (np.concatenate(i), np.concatenate(j))), shape=(n, n)
        )
        return scipy.sparse.csr_array(half + half.T - scipy.sparse.diags_array(half.diagonal()))


def _nodes(path: Path) -> dict[int, Array]:
    """NBLOCK of an archive: lines of fixed width, as a line before them says."""
    try:
        lines = path.read_text(encoding="latin-1").splitlines()
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from None
    start = next((k for k, line in enumerate(lines) if line.upper().startswith("NBLOCK")), None)
    layout = "" if start is None else "".join(lines[start + 1 : start + 2]).strip().lower()
    form = re.match(r"\(([1-9]\d*)i([1-9]\d*),\d+e([1-9]\d*)\.", layout)
    if start is None or form is None:
        raise FileError(f"{path}: no NBLOCK with its format; write the archive with CDWRITE,DB")
    integers, width, size = (int(part) for part in form.groups())
    found: dict[int, Array] = {}
    for k, line in enumerate(lines[start + 2 :], start + 3):
        head = line[:width].strip()
        if not re.fullmatch(r"[1-9]\d*", head):
            break
        rest = line[integers * width :].rstrip()
        try:
            values = [float(rest[a : a + size]) for a in range(0, len(rest), size)]
        except ValueError:
            raise FileError(f"{path}:{k}: {line[:60]!r} is no line of NBLOCK") from None
        found[int(head)] = np.array([*values, 0.0, 0.0, 0.0][:3])
    return found
