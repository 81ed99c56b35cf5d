"""Structures from Ansys files: a superelement (.sub), or the nodes of an archive (CDWRITE, .cdb) and matrices of a .full.

Both binary files are a row of records: the number of 32-bit words, flags, the words, their number again. The header is the
second; pointers in it, in words, lead to the rest. In a .full file (WRFULL, sparse form), behind the header are the labels
of the unknowns (1 to 6: UX to ROTZ) and the numbers of the nodes, and by pointers

    unknowns     how many each node has; for each unknown, a negative number where it is held
    K, M         for each unknown two records: the others that it goes together with, itself the last; and the values.
                 A pair stands once

A .sub file (full matrices; Programmer's Reference, "Description of the Substructure Matrices File") has

    DOF, NOD     the labels that nodes may have, and the numbers of the nodes
    XYZ          a record for each node: place, and angles (degrees) that turn the axes of its unknowns: about z, the new x,
                 the new y
    DST          for each row of the matrices (place of its node in NOD - 1) * length of DOF + place of its label in DOF;
                 component modes are the last rows, at nodes without a place
    Mtx          the first row of each matrix (stiffness, mass, damping, stress stiffness, as far as there), then their
                 second rows, and so on

Not all of this description could be looked up again, so nothing is taken on trust: rows must make symmetric matrices, and
the stiffness must vanish for the rigid motions of the nodes.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import scipy

from alembert.errors import FileError, UnsupportedError, warn
from alembert.flexible.finite_elements import DIRECTIONS, SYMMETRIC, FiniteElements, UnitSystem, unit_system
from alembert.flexible.nastran_output import content_of, lines_of

Array = np.ndarray
MOST = 8_000_000_000
"""bytes of a file"""
_EQUATIONS, _LUMPED, _UNSYMMETRIC = 1, 10, 13
_STIFFNESS, _MASS, _UNKNOWNS = 18, 26, 35
"""places in the header of a .full file; pointers have two words"""
_SUB = {
    "rows": 1, "matrices": 2, "labels": 4, "nodes": 8, "unsymmetric": 9, "stiffness": 10, "mass": 11, "damping": 12,
    "stress stiffness": 13, "transformed": 20, "Mtx": 21, "DOF": 30, "DST": 31, "NOD": 34, "XYZ": 35, "thermal": 38,
    "modes": 43,
}  # fmt: skip
"""places in the header of a .sub file; pointers, in capitals, have one word"""
_AS_TEXT = (
    "let Ansys write its matrices as text (*DMAT,K,D,IMPORT,SUB,file.sub,STIFF; *EXPORT,K,MMF,K.mtx; the same with MASS) "
    "and give them to FiniteElements.of_matrices"
)


def read_ansys(
    nodes: str | Path, matrices: str | Path | None = None, *, units: str | UnitSystem = "SI"
) -> FiniteElements:
    """A structure from a superelement (.sub) alone, or from the nodes of an archive (.cdb) and the matrices of a .full file.

    The matrices must be those of a free structure, without supports. Nodes are named by their numbers. Component modes of
    a superelement are unknowns without a node.
    """
    path = Path(nodes if matrices is None else matrices)
    file = _Records(path)
    header, behind = file.record(file.record(0, "i")[1], "i")
    if len(header) > max(_SUB.values()) - 1 and header[0] in (8, 9):
        if matrices is not None:
            raise FileError(
                f"{path}: a .sub file has its own nodes; give it alone, read_ansys({path.name!r})"
            )
        return _superelement(file, header, unit_system(units))
    if matrices is None:
        raise FileError(
            f"{path}: it is no .sub file; matrices of a .full file need the nodes of an archive, "
            f"read_ansys('nodes.cdb', {path.name!r})"
        )
    places = _nodes(Path(nodes))
    numbers, dofs, M, K = _full(file, header, behind)
    missing = [k for k in numbers if k not in places]
    if missing:
        raise FileError(f"{path}: node {missing[0]} is not among the {len(places)} nodes of {nodes}")
    positions = np.array([places[k] for k in numbers])
    return FiniteElements.of_matrices(
        M, K, positions, dofs, names=[str(k) for k in numbers], units=unit_system(units)
    )


class _Records:
    def __init__(self, path: Path) -> None:
        self.path = path
        content = content_of(path, MOST)
        self.words = np.frombuffer(content[: len(content) // 4 * 4], "<i4")

    def record(self, at: int, kind: str) -> tuple[Array, int]:
        """Integers ("i") or floats ("f") of the record at a word, and where the next one is."""
        size = int(self.words[at]) if 0 <= at < len(self.words) - 2 else -1
        end = at + 2 + size
        if size < 0 or end >= len(self.words) or self.words[end] != size:
            raise FileError(f"{self.path}: no record at word {at}; it is no .full or .sub file, or damaged")
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

    def table(self, at: int, name: str) -> Array:
        """Integers at a pointer of a .sub file."""
        if not at:
            raise FileError(f"{self.path}: no table {name}, damaged?")
        return self.record(at & 0xFFFFFFFF, "i")[0].astype(int)

    def places(self, at: int, count: int) -> Array:
        """XYZ: count x 6."""
        found: list[Array] = []
        for _ in range(count):
            x, at = self.record(at & 0xFFFFFFFF, "f")
            if len(x) != 6 or not np.isfinite(x).all():
                raise FileError(f"{self.path}: node {len(found) + 1} has no place, damaged?")
            found.append(x)
        return np.array(found).reshape(-1, 6)


def _full(
    file: _Records, header: Array, at: int
) -> tuple[list[int], Array, scipy.sparse.csr_array, scipy.sparse.csr_array]:
    """Numbers of the nodes, unknowns (node, direction), M and K."""
    path = file.path
    if len(header) < 40 or header[0] != -4:
        raise UnsupportedError(f"{path}: it is no .full file of sparse matrices (EQSLV,SPARSE)")
    for place, what in ((_LUMPED, "lumped masses"), (_UNSYMMETRIC, "unsymmetric matrices")):
        if header[place]:
            raise UnsupportedError(f"{path}: {what} are not read; write them whole and symmetric")

    def pointer(place: int) -> int:
        to = int(header[place]) & 0xFFFFFFFF | int(header[place + 1]) << 32
        if not to:
            raise FileError(f"{path}: no mass or stiffness; write both (ANTYPE,MODAL, then WRFULL)")
        return to

    labels, at = file.record(at, "i")
    numbers, _ = file.record(at, "i")
    counts, at = file.record(pointer(_UNKNOWNS), "i")
    held, _ = file.record(at, "i")
    n = int(header[_EQUATIONS])
    if n < 1 or len(counts) != len(numbers) or counts.sum() != n or len(held) != n:
        raise FileError(f"{path}: its tables of nodes and unknowns do not fit one another")
    if not np.isin(labels, range(1, 7)).all() or not np.isin(counts, (0, len(labels))).all():
        raise UnsupportedError(
            f"{path}: unknowns {labels.tolist()}; UX to ROTZ (1 to 6), the same of every node, are read"
        )
    if (held < 0).any():
        raise FileError(
            f"{path}: {int((held < 0).sum())} of {n} unknowns are held by supports and not in the matrices; a body "
            "is held where it is attached: write the matrices of the free structure (DDELE,ALL, then WRFULL)"
        )
    owners = np.repeat(np.arange(len(numbers)), counts)
    directions = np.tile(labels - 1, int((counts > 0).sum()))
    M, K = (_sparse(file, pointer(place), n) for place in (_MASS, _STIFFNESS))
    return [int(k) for k in numbers], np.column_stack([owners, directions]), M, K


def _sparse(file: _Records, at: int, n: int) -> scipy.sparse.csr_array:
    i, j, x = [], [], []
    for row in range(n):
        columns, at = file.record(at, "i")
        values, at = file.record(at, "f")
        if len(columns) != len(values) or (len(columns) and not (columns.min() > 0 and columns.max() <= n)):
            raise FileError(f"{file.path}: unknown {row + 1} has entries that do not fit, damaged?")
        i.append(np.full(len(columns), row))
        j.append(columns - 1)
        x.append(values)
    half = scipy.sparse.csr_array((np.concatenate(x), (np.concatenate(i), np.concatenate(j))), shape=(n, n))
    return scipy.sparse.csr_array(half + half.T - scipy.sparse.diags_array(half.diagonal()))


def _superelement(file: _Records, header: Array, units: UnitSystem) -> FiniteElements:
    path, word = file.path, {name: int(header[place]) for name, place in _SUB.items()}
    for refused, what in (
        (header[0] == 9, "its matrices are in sparse form"),
        (word["unsymmetric"], "its matrices are unsymmetric"),
        (
            word["transformed"],
            "it is the turned or mirrored copy of another one (SETRAN, SESYMM); give that one, or",
        ),
        (word["thermal"], "it is one of temperatures"),
    ):
        if refused:
            raise UnsupportedError(f"{path}: this superelement is not read: {what}; {_AS_TEXT}")
    n, count, modes = word["rows"], word["nodes"], word["modes"]
    labels, rows, numbers = (file.table(word[name], name) for name in ("DOF", "DST", "NOD"))
    places = file.places(word["XYZ"], count)
    if (
        (len(labels), len(rows), len(numbers)) != (word["labels"], n, count)
        or not 0 <= modes < n
        or not len(labels)
        or any((np.diff(np.sort(table), prepend=0) < 1).any() for table in (numbers, rows))
    ):
        raise FileError(f"{path}: its tables of nodes and unknowns do not fit one another")
    if not np.isin(labels, range(1, 7)).all():
        raise UnsupportedError(f"{path}: unknowns {labels.tolist()}; UX to ROTZ (1 to 6) are read")
    dofs = np.column_stack([(rows - 1) // len(labels), labels[(rows - 1) % len(labels)] - 1])
    used = np.unique(dofs[: n - modes, 0])
    if used[-1] >= count or np.isin(dofs[n - modes :, 0], used).any():
        raise FileError(f"{path}: its tables of nodes and unknowns do not fit one another")
    dofs[: n - modes, 0] = np.searchsorted(used, dofs[: n - modes, 0])
    dofs[n - modes :] = -1
    names = [str(k) for k in numbers[used]]
    M, K = _dense(file, word)
    T = _turned(path, places[used, 3:], dofs, names)
    fe = FiniteElements.of_matrices(
        T @ M @ T.T, T @ K @ T.T, places[used, :3], dofs, names=names, units=units
    )
    held = [d for d, strain in zip(DIRECTIONS, fe.strain, strict=True) if strain > fe.rounding]
    if held:
        raise FileError(
            f"{path}: rigid motions of its nodes along {', '.join(held)} take forces. Supports hold it: a body is held "
            f"where it is attached, generate it without (DDELE,ALL); or it is not laid out as Ansys describes it: {_AS_TEXT}"
        )
    return fe


def _dense(file: _Records, word: dict[str, int]) -> tuple[Array, Array]:
    """M and K of a superelement."""
    path, n, at = file.path, word["rows"], word["Mtx"]
    there = [name for name in ("stiffness", "mass", "damping", "stress stiffness") if word[name]]
    if there[:2] != ["stiffness", "mass"]:
        raise FileError(f"{path}: no mass or stiffness; generate it with both (SEOPT,name,2)")
    if len(there) != word["matrices"]:
        raise FileError(f"{path}: {word['matrices']} matrices, but it names {', '.join(there)}; damaged?")
    found = []
    for k in range(n * len(there)):
        row, at = file.record(at, "f")
        if len(row) != n:
            raise FileError(f"{path}: record {k + 1} of its matrices has {len(row)} numbers, expected {n}")
        found.append(row)
    all_rows = np.array(found)
    by_row = all_rows.reshape(n, len(there), n).swapaxes(0, 1)
    for A in (by_row, all_rows.reshape(len(there), n, n)):  # whole matrices one after another would be seen
        size = np.abs(A).max(axis=(1, 2), keepdims=True)
        if (np.abs(A - A.swapaxes(1, 2)) <= SYMMETRIC * size).all():
            break
    else:
        raise FileError(
            f"{path}: its matrices have entries that are not finite, or are not symmetric; damaged?"
        )
    by_name = dict(zip(there, A, strict=True))
    if by_name.get("stress stiffness", A[:0]).any():
        raise UnsupportedError(
            f"{path}: it was generated under load and has stress stiffness, which a body that turns would not keep; "
            "generate it without (PSTRES,OFF)"
        )
    if by_name.get("damping", A[:0]).any():
        warn(f"{path}: its damping is left out; give it to structure_body as damping_ratio= or damping=")
    return by_name["mass"], by_name["stiffness"]


def _turned(path: Path, angles: Array, dofs: Array, names: list[str]) -> scipy.sparse.csr_array:
    """From unknowns in the axes of the nodes to those in global axes."""
    T = scipy.sparse.lil_array(np.eye(len(dofs)))
    for k in np.flatnonzero(angles.any(axis=1)):
        axes = scipy.spatial.transform.Rotation.from_euler("ZXY", angles[k], degrees=True).as_matrix()
        for first in (0, 3):
            at = np.flatnonzero((dofs[:, 0] == k) & (dofs[:, 1] // 3 == first // 3))
            if len(at) not in (0, 3):
                raise UnsupportedError(
                    f"{path}: node {names[k]} has axes of its own and unknowns along some of them only; make all three "
                    "masters, or turn its axes back (NROTAT, NMODIF)"
                )
            if len(at):
                T[np.ix_(at, at)] = axes[:, dofs[at, 1] - first][dofs[at, 1] - first]
    return scipy.sparse.csr_array(T)


def _nodes(path: Path) -> dict[int, Array]:
    """NBLOCK of an archive: lines of fixed width, as a line before them says."""
    lines = lines_of(path)
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
