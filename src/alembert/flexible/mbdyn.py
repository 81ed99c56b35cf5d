"""Flexible bodies from the .fem files of MBDyn's modal joint: nodes, modes, modal mass and stiffness, lumped masses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from alembert.arguments import unknown
from alembert.errors import ArgumentError, FileError
from alembert.flexible.finite_elements import UnitSystem, unit_system
from alembert.flexible.nastran_output import lines_of
from alembert.model.modal import ModalBody, ModalNode, Stiffening

Array = np.ndarray
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
