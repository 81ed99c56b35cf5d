"""Structures from Abaqus: matrices of *MATRIX OUTPUT in the format MATRIX INPUT, nodes of an input file.

A line of a matrix is `node, degree of freedom, node, degree of freedom, value`; symmetric ones have one triangle.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy

from alembert.errors import FileError, UnsupportedError
from alembert.flexible.finite_elements import FiniteElements, UnitSystem
from alembert.flexible.nastran_output import lines_of

Array = np.ndarray


def read_abaqus(
    nodes: str | Path, *, mass: str | Path, stiffness: str | Path, units: str | UnitSystem = "SI"
) -> FiniteElements:
    """A structure from the nodes of an input file (.inp) and two matrix files (.mtx). Nodes are named by their numbers."""
    places = _nodes(Path(nodes))
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


def _nodes(path: Path) -> dict[int, Array]:
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
