"""Structures and bodies from the files of Abaqus, Ansys and MBDyn (those of Nastran: `alembert.flexible.nastran`).

**Abaqus**: matrices of *MATRIX OUTPUT in the format MATRIX INPUT, nodes of an input file. A line of a matrix is
`node, degree of freedom, node, degree of freedom, value`; symmetric ones have one triangle.

**MBDyn**: the .fem files of its modal joint: nodes, modes, modal mass and stiffness, lumped masses.

**Ansys**: a superelement (.sub), or the nodes of an archive (CDWRITE, .cdb) and matrices of a .full.

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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from alembert.arguments import unknown
from alembert.errors import ArgumentError, FileError, UnsupportedError, warn
from alembert.flexible.finite_elements import DIRECTIONS, SYMMETRIC, FiniteElements, UnitSystem, unit_system
from alembert.flexible.nastran_output import content_of, lines_of
from alembert.model.modal import ModalBody, ModalNode, Stiffening

Array = np.ndarray


def read_abaqus(
    nodes: str | Path, *, mass: str | Path, stiffness: str | Path, units: str | UnitSystem = "SI"
) -> FiniteElements:
    """A structure from the nodes of an input file (.inp) and two matrix files (.mtx). Nodes are named by their numbers."""
    places = _abaqus_nodes(Path(nodes))
    tables = [_matrix(Path(path)) for path in (mass, stiffness)]
    keys = np.unique(np.concatenate([t[:, k : k + 2] for t in tables for k in (0, 2)]).astype(int), axis=0)
    for node, freedom in keys:
        if node not in places:
            raise FileError(
                f"{stiffness}: node {node} is not among those of {nodes}; internal nodes are not read"
            )
        if not 1 <= freedom <= 6:
            raise UnsupportedError(
                f"{stiffness}: degree of freedom {freedom} of node {node}; 1 to 6 are read"
            )
    numbers = sorted({int(node) for node in keys[:, 0]})
    order = {node: k for k, node in enumerate(numbers)}
    dofs = np.array([(order[int(node)], int(freedom) - 1) for node, freedom in keys])
    lookup = {(int(a), int(b)): k for k, (a, b) in enumerate(keys)}
    found = []
    for t in tables:
        r, c = (np.array([lookup[int(a), int(b)] for a, b in t[:, k : k + 2]], dtype=int) for k in (0, 2))
        A = scipy.sparse.coo_array((t[:, 4], (r, c)), shape=(len(keys), len(keys))).tocsr()
        low, high = scipy.sparse.tril(A, -1), scipy.sparse.triu(A, 1)
        # one entry stands for both, whichever triangle it is in by the numbers of the nodes
        twice = abs(low).multiply(abs(high.T)).nnz
        found.append(A if twice else A + low.T + high.T)
    positions = np.array([places[k] for k in numbers])
    return FiniteElements.of_matrices(
        found[0], found[1], positions, dofs, names=[str(k) for k in numbers], units=units
    )


def _abaqus_nodes(path: Path) -> dict[int, Array]:
    found: dict[int, Array] = {}
    reads = False
    for k, line in enumerate(lines_of(path), start=1):
        text = line.strip()
        if not text or text.startswith("**"):
            continue
        if text.startswith("*"):
            word = text[1:].split(",")[0].strip().upper()
            if word in ("TRANSFORM", "SYSTEM", "INCLUDE", "NGEN", "NCOPY"):
                raise UnsupportedError(
                    f"{path}:{k}: *{word} is not read; nodes are expected as numbers in global axes"
                )
            reads = word == "NODE"
            continue
        if reads:
            parts = [p.strip() for p in text.split(",")]
            try:
                node, x = int(parts[0]), [float(p or 0) for p in [*parts[1:4], "0", "0", "0"][:3]]
            except ValueError:
                raise FileError(f"{path}:{k}: {text!r} is no line of *NODE: number, x, y, z") from None
            if node in found:
                raise FileError(f"{path}:{k}: node {node} is there twice")
            found[node] = np.array(x)
    if not found:
        raise FileError(f"{path}: no *NODE")
    return found


def _matrix(path: Path) -> Array:
    rows = []
    for k, line in enumerate(lines_of(path), start=1):
        text = line.strip()
        if not text or text.startswith("*"):
            continue
        parts = text.replace(",", " ").split()
        if len(parts) == 3:
            raise UnsupportedError(
                f"{path}:{k}: three numbers to a line do not tell the nodes; write FORMAT=MATRIX INPUT instead of COORDINATE"
            )
        try:
            row = [float(p.replace("D", "E").replace("d", "e")) for p in parts]
        except ValueError:
            row = []
        if len(row) != 5 or not np.isfinite(row).all():
            raise FileError(f"{path}:{k}: {text[:60]!r}, expected node, freedom, node, freedom, value")
        rows.append(row)
    if not rows:
        raise FileError(f"{path}: no entries")
    return np.array(rows)


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
    places = _ansys_nodes(Path(nodes))
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


def _ansys_nodes(path: Path) -> dict[int, Array]:
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


_GROUP = re.compile(r"\*\*\s*RECORD GROUP\s+(\d+)", re.IGNORECASE)


def read_mbdyn(
    path: str | Path,
    *,
    attachment: Any,
    nodes: Mapping[str, Any] | Sequence[Any] = (),
    units: str | UnitSystem = "SI",
    stiffening: Stiffening = "inconsistent",
) -> ModalBody:
    """A body from a .fem file, its frame at the node `attachment`; `nodes` names those for joints, frames and loads.

    Such files have no geometric stiffness: bodies are inconsistent. Lumped masses (record group 11) are needed.
    """
    name = str(path)
    if stiffening == "consistent":
        raise ArgumentError(
            f"read_mbdyn: {name} has no geometric stiffness; stiffening is 'inconsistent' or 'ruthless'"
        )
    scale = unit_system(units)
    groups = _groups(Path(path))
    count, modes = _header(name, groups)
    numbers = _read(name, groups, 2, count, "nodes", str)
    x = np.column_stack([_read(name, groups, k, count, "coordinates") for k in (5, 6, 7)]) * scale.length
    shapes = _read(name, groups, 8, modes * count * 6, "mode shapes").reshape(modes, count, 6)
    K = _read(name, groups, 10, modes * modes, "modal stiffness").reshape(modes, modes)
    if 11 not in groups:
        raise FileError(
            f"{name}: no record group 11; lumped masses of the nodes are needed for the integrals over the mass"
        )
    lumped = _read(name, groups, 11, 6 * count, "lumped masses").reshape(count, 6)
    C = (
        _read(name, groups, 13, modes * modes, "modal damping").reshape(modes, modes)
        if 13 in groups
        else np.zeros_like(K)
    )
    # modes have the unit of a displacement: coordinates are lengths of the file's unit
    phi, psi = shapes[:, :, :3].swapaxes(0, 1), shapes[:, :, 3:].swapaxes(0, 1) / scale.length
    m, J = lumped[:, :3].mean(axis=1) * scale.mass, lumped[:, 3:] * scale.mass * scale.length**2
    K, C = K * scale.mass / scale.time**2, C * scale.mass / scale.time
    order = {label: k for k, label in enumerate(numbers)}
    named = dict(nodes) if isinstance(nodes, Mapping) else {str(node): node for node in nodes}

    def place(label: str, node: Any) -> ModalNode:
        if str(node) not in order:
            raise ArgumentError(unknown(f"read_mbdyn: {name}: no node", node, order))
        k = order[str(node)]
        fields: list[Any] = [x[k], phi[k], psi[k]]
        return ModalNode(label, *fields)

    masses, places, moved = _points(m, J, x, phi, psi)
    if not masses.sum() > 0:
        raise FileError(f"{name}: the lumped masses add up to {masses.sum():g}")
    return ModalBody.of_points(
        masses,
        places,
        moved,
        stiffness=(K + K.T) / 2,
        damping=(C + C.T) / 2,
        nodes=[place("root", attachment), *(place(label, node) for label, node in named.items())],
        attachment="root",
        stiffening=stiffening,
        units=("m",) * modes,
    )


def _points(m: Array, J: Array, x: Array, phi: Array, psi: Array) -> tuple[Array, Array, Array]:
    """Nodes with moments of inertia are six points that turn with them; a node without mass has none."""
    parts = [(m, x, phi)]
    turning = np.flatnonzero((J > 0).any(axis=1) & (m > 0))
    for axis in range(3):
        second = np.maximum(J[turning].sum(axis=1) / 2 - J[turning, axis], 0.0)
        arm = np.zeros((len(turning), 3))
        arm[:, axis] = np.sqrt(3 * second / m[turning])
        for sign in (1.0, -1.0):
            parts.append(
                (
                    m[turning] / 6,
                    x[turning] + sign * arm,
                    phi[turning] + np.cross(psi[turning], sign * arm[:, None]),
                )
            )
    parts[0] = (np.where(np.isin(np.arange(len(m)), turning), 0.0, m), x, phi)
    masses, places, moved = (np.concatenate(each) for each in zip(*parts, strict=True))
    keep = masses > 0
    return masses[keep], places[keep], moved[keep]


def _groups(path: Path) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    current: list[str] | None = None
    for line in lines_of(path):
        start = _GROUP.match(line.strip())
        if start:
            current = found.setdefault(int(start[1]), [])
        elif current is not None and not line.strip().startswith("**"):
            current.extend(line.split())
    if 1 not in found:
        raise FileError(f"{path}: no '** RECORD GROUP 1'; it is no .fem file of MBDyn")
    return found


def _header(name: str, groups: Mapping[int, list[str]]) -> tuple[int, int]:
    """REV0 nodes normal attachment constraint rejected"""
    try:
        counts = [int(word) for word in groups[1][1:6]]
        nodes, modes = counts[0], sum(counts[1:4]) - counts[4]
    except (ValueError, IndexError):
        nodes = modes = 0
    if not (0 < nodes < 10_000_000 and 0 < modes < 10_000):
        raise FileError(
            f"{name}: the header is {' '.join(groups[1][:6])!r}, expected REV0, numbers of nodes and of modes"
        )
    return nodes, modes


def _read(
    name: str, groups: Mapping[int, list[str]], group: int, count: int, what: str, kind: Any = float
) -> Any:
    words = groups.get(group, [])
    if len(words) != count:
        raise FileError(f"{name}: record group {group} ({what}) has {len(words)} entries, expected {count}")
    if kind is str:
        return words
    try:
        values = np.array([float(w.replace("D", "E")) for w in words])
    except ValueError:
        values = np.array([np.nan])
    if not np.isfinite(values).all():
        raise FileError(f"{name}: record group {group} ({what}) has entries that are no numbers")
    return values
